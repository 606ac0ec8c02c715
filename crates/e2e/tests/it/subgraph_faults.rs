//! Subgraphs that are down, slow or lying: the answer stays well-formed, says so, and keeps what is left.

use ogive_failure::ErrorCode;
use ogive_mock::Fault;

use crate::{
    graph::Graph,
    http_client::{Answer, post},
};

/// `shippingCost` is nullable and comes from the inventory, so its loss stays local.
const QUERY: &str = "{ me { name } topProducts(first: 2) { name shippingCost { amount } } }";

/// Lets one subgraph fail and asks the query.
fn ask_with(graph: &Graph, subgraph: &str, fault: &str) -> Answer {
    let fault = Fault::parse(fault).unwrap();
    assert!(graph.service.configure(subgraph, |settings| {
        settings.faults = vec![fault];
        settings.cache = false;
    }));
    let answer = post(graph.address(), QUERY);
    graph
        .service
        .configure(subgraph, |settings| settings.faults.clear());
    answer
}

/// The answer lacks what the inventory would have said, says why, and lacks nothing else.
fn only_shipping_costs_are_missing(answer: &Answer, fault: &str) {
    assert_eq!(answer.status, 200, "{fault}");
    let json = answer.json();
    assert_eq!(
        json["data"].to_string(),
        concat!(
            r#"{"me":{"name":"Ida Lindqvist"},"topProducts":["#,
            r#"{"name":"Ridge 30 backpack","shippingCost":null},"#,
            r#"{"name":"Enamel kettle","shippingCost":null}]}"#
        ),
        "{fault}"
    );
    assert!(!answer.codes().is_empty(), "{fault}: no error: {json}");
    for code in answer.codes() {
        assert!(
            ErrorCode::find(&code).is_some() || code == "INJECTED",
            "{fault}: {code} is not in the table"
        );
    }
    for error in json["errors"].as_array().unwrap() {
        let text = error.to_string();
        assert!(!text.contains("127.0.0.1"), "a host is shown: {text}");
    }
}

#[test]
fn partial_data_survives_every_lie() {
    let graph = Graph::with("include_subgraph_errors: { all: true }");
    let cases = [
        ("status:503", "SUBREQUEST_HTTP_ERROR"),
        ("status:404", "SUBREQUEST_HTTP_ERROR"),
        ("drop", "SUBREQUEST_HTTP_ERROR"),
        ("truncate", "SUBREQUEST_HTTP_ERROR"),
        ("malformed", "SUBREQUEST_MALFORMED_RESPONSE"),
        ("html", "SUBREQUEST_MALFORMED_RESPONSE"),
        ("empty", "SUBREQUEST_MALFORMED_RESPONSE"),
        ("not-an-object", "SUBREQUEST_MALFORMED_RESPONSE"),
        ("null-data", "SUBREQUEST_MALFORMED_RESPONSE"),
        // A code that the subgraph chose is passed on.
        ("request-error", "INJECTED"),
    ];
    for (fault, code) in cases {
        let answer = ask_with(&graph, "inventory", fault);
        only_shipping_costs_are_missing(&answer, fault);
        assert_eq!(answer.codes()[0], code, "{fault}: {}", answer.text());
    }
    let answer = post(graph.address(), QUERY);
    assert_eq!(answer.codes(), Vec::<String>::new(), "all is well again");
}

#[test]
fn lies_about_single_fields_cost_those_fields() {
    let graph = Graph::start();
    for fault in [
        "short-entities",
        "error:Product.shippingCost",
        "wrong-type:Product.shippingCost",
        "wrong-type:Money.amount",
    ] {
        let answer = ask_with(&graph, "inventory", fault);
        let json = answer.json();
        assert_eq!(answer.status, 200, "{fault}");
        assert_eq!(
            json["data"]["me"]["name"], "Ida Lindqvist",
            "{fault}: {json}"
        );
        assert_eq!(
            json["data"]["topProducts"][1]["name"], "Enamel kettle",
            "{fault}: {json}"
        );
        assert!(!answer.codes().is_empty(), "{fault}: no error: {json}");
    }
}

#[test]
fn a_subgraph_that_is_down() {
    // A port at which nobody listens, nor begins to.
    let graph = Graph::with("override_subgraph_url: { inventory: 'http://127.0.0.1:1/graphql' }");
    let answer = post(graph.address(), QUERY);
    only_shipping_costs_are_missing(&answer, "down");
    assert_eq!(answer.codes()[0], "SUBREQUEST_HTTP_ERROR");
}

#[test]
fn a_subgraph_that_is_slow() {
    let graph = Graph::with("traffic_shaping: { subgraphs: { inventory: { timeout: 100ms } } }");
    let answer = ask_with(&graph, "inventory", "delay:20s");
    only_shipping_costs_are_missing(&answer, "slow");
    assert_eq!(answer.codes()[0], "GATEWAY_TIMEOUT");
}

#[test]
fn a_request_that_takes_too_long_altogether_keeps_what_it_has() {
    // Time enough for the other subgraphs.
    let graph = Graph::with("traffic_shaping: { router: { timeout: 12s } }");
    let answer = ask_with(&graph, "inventory", "delay:60s");
    only_shipping_costs_are_missing(&answer, "slow");
    assert_eq!(answer.codes()[0], "GATEWAY_TIMEOUT");
}

#[test]
fn a_subgraph_url_that_cannot_be_used() {
    let graph = Graph::with("override_subgraph_url: { inventory: 'https://localhost/graphql' }");
    let answer = post(graph.address(), QUERY);
    only_shipping_costs_are_missing(&answer, "https");
    assert_eq!(answer.codes()[0], "SUBREQUEST_HTTP_ERROR");
}

#[test]
fn what_subgraphs_say_about_their_errors_can_be_kept_back() {
    let secret = "error:Product.shippingCost:secret detail";
    let graph = Graph::with("include_subgraph_errors: { subgraphs: { accounts: true } }");
    let answer = ask_with(&graph, "inventory", secret);
    only_shipping_costs_are_missing(&answer, "kept back");
    assert_eq!(answer.codes()[0], "SUBREQUEST_GRAPHQL_ERROR");
    assert!(!answer.text().contains("secret"), "{}", answer.text());
    let path = answer.json()["errors"][0]["path"].to_string();
    assert_eq!(
        path, r#"["topProducts",0,"shippingCost"]"#,
        "where it was is still told"
    );
    let answer = ask_with(
        &Graph::with("include_subgraph_errors: { all: true }"),
        "inventory",
        secret,
    );
    assert!(answer.text().contains("secret detail"), "{}", answer.text());
}

#[test]
fn extensions_of_errors_are_shown_by_name() {
    let text = r#"{"data":{"me":null},"errors":[{"message":"no","path":["me"],"extensions":{"reason":{"a":[1]},"stack":"secret","code":"GONE"}}]}"#;
    let accounts = crate::toxic::Toxic::answering(200, "", text);
    let extensions = |yaml: &str| {
        let graph = Graph::with(&format!(
            "override_subgraph_url: {{ accounts: '{}' }}\ninclude_subgraph_errors: {{ {yaml} }}",
            accounts.url()
        ));
        let answer = post(graph.address(), "{ me { name } }").json();
        answer["errors"][0]["extensions"].to_string()
    };
    let (some, all) = ("extensions: [reason, other]", "extensions: ['*']");
    let on = "subgraphs: { accounts: true }";
    assert_eq!(extensions(on), r#"{"code":"GONE","service":"accounts"}"#);
    assert_eq!(
        extensions(&format!("{on}, {some}")),
        r#"{"reason":{"a":[1]},"code":"GONE","service":"accounts"}"#
    );
    assert_eq!(
        extensions(&format!("{on}, {all}")),
        r#"{"reason":{"a":[1]},"stack":"secret","code":"GONE","service":"accounts"}"#
    );
    let hidden = r#"{"code":"SUBREQUEST_GRAPHQL_ERROR"}"#;
    assert_eq!(extensions(some), hidden);
    assert_eq!(extensions(all), hidden);
}
