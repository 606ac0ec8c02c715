//! What the page of subscriptions tells newcomers to do, done as it says.

use std::sync::Arc;

use ogive_compose::{ComposeOptions, SubgraphInput, compose};
use ogive_mock::{Server, assemble, config::Config as MockConfig};

use super::over_http::{Client, SSE};
use crate::graph::{Served, config, state};

/// The blocks of code of the section, each with its language.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let page = include_str!("../../../../../docs/subscriptions.md");
    let (_, rest) = page.split_once("## First steps\n").unwrap();
    let (section, _) = rest.split_once("\n## ").unwrap();
    let fenced = section.split("```").skip(1).step_by(2);
    fenced
        .map(|block| block.split_once('\n').unwrap())
        .collect()
}

#[test]
fn the_first_steps_of_the_page_lead_to_what_it_prints() {
    let blocks = blocks();
    let [schema, data, mock, gateway, .., asked, printed] = blocks.as_slice() else {
        panic!("other steps: {blocks:?}");
    };
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = folder.join(format!("first-steps-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("orders.graphql"), schema.1).unwrap();
    std::fs::write(folder.join("data.yaml"), data.1).unwrap();
    let played = MockConfig::parse(mock.1, &folder).unwrap();
    let assembled = assemble(&played).unwrap_or_else(|e| panic!("{e}"));
    let server = Server::start(Arc::new(assembled.service), "127.0.0.1:0", 1).unwrap();
    let url = server.url("orders");
    let input = SubgraphInput {
        name: "orders",
        url: &url,
        sdl: schema.1,
    };
    let supergraph = compose(&[input], &ComposeOptions::default()).supergraph_sdl;
    let mut config = config(gateway.1);
    super::unhurried(&mut config);
    let served = Served::start(state(&supergraph.unwrap(), &config), &config);
    let (_, body) = asked.1.split_once("-d '").unwrap();
    let body: serde_json::Value =
        serde_json::from_str(body.trim_end().trim_end_matches('\'')).unwrap();
    let text = Client::subscribe(served.address, SSE, body["query"].as_str().unwrap()).rest();
    assert_eq!(text.trim_end(), printed.1.trim_end());
    std::fs::remove_dir_all(folder).unwrap();
}
