//! Names of operations towards subgraphs: `Shop__reviews__0`.

use std::collections::BTreeSet;

use ogive_testbase::subgraph::StubSubgraph;

use crate::{graph::Graph, http_client::post};

const SHOP: &str =
    "query Shop { me { name reviews { title product { name } } } topProducts(first: 1) { name } }";

/// A request: subgraph, name in the text, `operationName`.
type Named = (String, Option<String>, Option<String>);

/// What subgraphs are asked for an operation.
fn asked(graph: &Graph, document: &str) -> Vec<Named> {
    for name in ["accounts", "inventory", "products", "reviews"] {
        graph
            .service
            .configure(name, |settings| settings.record = true);
    }
    let answer = post(graph.address(), document);
    assert_eq!(answer.codes(), Vec::<String>::new(), "{}", answer.text());
    let mut asked = Vec::new();
    for request in graph.service.recorded() {
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        let text = body["query"].as_str().unwrap();
        let head = text.split(['(', '{']).next().unwrap();
        let name = head.split_once(' ').map(|(_, name)| name.to_owned());
        let said = body.get("operationName").and_then(|name| name.as_str());
        asked.push((request.subgraph.to_string(), name, said.map(str::to_owned)));
    }
    asked
}

#[test]
fn every_request_has_a_name_of_its_own() {
    let graph = Graph::with("traffic_shaping: { all: { operation_names: true } }");
    let asked = asked(&graph, SHOP);
    assert!(asked.len() > 2, "{asked:?}");
    let mut names = BTreeSet::new();
    for (subgraph, name, said) in asked {
        let name = name.unwrap();
        assert_eq!(said.as_ref(), Some(&name));
        let number = name.strip_prefix(&format!("Shop__{subgraph}__")).unwrap();
        assert!(number.parse::<u32>().is_ok(), "{name}");
        assert!(names.insert(name));
    }
}

#[test]
fn names_of_subgraphs_are_made_fit() {
    let reviews = StubSubgraph::answering(200, "", r#"{"data":null}"#);
    let renamed = [("name: \"reviews\"", "name: \"shop-eu.reviews\"")];
    let yaml = format!(
        "traffic_shaping: {{ all: {{ operation_names: true }} }}\noverride_subgraph_url: {{ shop-eu.reviews: '{}' }}",
        reviews.url()
    );
    let graph = Graph::changed(&yaml, &renamed);
    post(graph.address(), SHOP);
    let asked = reviews.requests();
    let named = |request: &String| request.contains("query Shop__shop_eu_reviews__");
    assert!(!asked.is_empty() && asked.iter().all(named), "{asked:?}");
}

#[test]
fn only_subgraphs_that_are_to_be_told_names_are_told_any() {
    let told = |yaml: &str, document: &str| -> BTreeSet<String> {
        let graph = Graph::with(yaml);
        let asked = asked(&graph, document).into_iter();
        asked
            .filter(|(_, name, said)| name.is_some() || said.is_some())
            .map(|(subgraph, ..)| subgraph)
            .collect()
    };
    assert!(told("", SHOP).is_empty());
    let one = "traffic_shaping: { subgraphs: { reviews: { operation_names: true } } }";
    assert_eq!(told(one, SHOP), ["reviews".to_owned()].into());
    let all = "traffic_shaping: { all: { operation_names: true } }";
    assert!(told(all, &SHOP.replace("query Shop ", "")).is_empty());
}
