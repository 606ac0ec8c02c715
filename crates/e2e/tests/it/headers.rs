//! Which client headers subgraphs see.

use crate::{
    graph::{Graph, demo_file},
    http_client::post_with,
};

const RULES: &str = r#"
headers:
  all:
    request:
      - propagate: { named: authorization }
      - propagate: { matching: "^x-tenant-" }
      - insert: { name: x-from, value: gateway }
      - propagate: { named: connection }
  subgraphs:
    products:
      request:
        - propagate: { named: x-user, rename: x-account, default: nobody }
        - remove: { named: x-tenant-b }
"#;

fn record(graph: &Graph) {
    for name in ["accounts", "inventory", "products", "reviews"] {
        graph
            .service
            .configure(name, |settings| settings.record = true);
    }
}

#[test]
fn rules_decide_per_subgraph_what_travels() {
    let graph = Graph::with(RULES);
    record(&graph);
    let client = [
        ("authorization", "Bearer t"),
        ("x-tenant-a", "1"),
        ("x-tenant-b", "2"),
        ("cookie", "session=secret"),
        ("connection", "keep-alive, x-tenant-c"),
        ("x-tenant-c", "3"),
    ];
    let answer = post_with(graph.address(), &demo_file("query.graphql"), &client);
    assert_eq!(answer.codes(), Vec::<String>::new());
    let recorded = graph.service.recorded();
    assert_eq!(recorded.len(), 6);
    for request in recorded {
        let get = |name: &str| {
            let found = request.headers.iter().find(|(n, _)| n == name);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(
            get("authorization"),
            Some("Bearer t"),
            "{}",
            request.subgraph
        );
        assert_eq!(get("x-tenant-a"), Some("1"));
        assert_eq!(get("x-from"), Some("gateway"));
        assert_eq!(get("cookie"), None, "nothing travels without a rule");
        assert_eq!(get("x-tenant-c"), None, "named by `connection`: hop-by-hop");
        assert_eq!(get("connection"), None);
        assert_eq!(get("content-type"), Some("application/json"));
        let products = &*request.subgraph == "products";
        assert_eq!(get("x-account"), products.then_some("nobody"));
        assert_eq!(get("x-tenant-b"), (!products).then_some("2"));
    }
}

#[test]
fn without_rules_nothing_of_the_client_travels() {
    let graph = Graph::start();
    record(&graph);
    post_with(
        graph.address(),
        "{ me { name } }",
        &[("authorization", "Bearer t"), ("x-a", "1")],
    );
    let recorded = graph.service.recorded();
    let mut names: Vec<&str> = recorded[0]
        .headers
        .iter()
        .map(|(n, _)| n.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "accept",
            "content-length",
            "content-type",
            "host",
            "user-agent"
        ]
    );
}
