//! Right answers: the joined query, GET, pages, many clients at once.

use serde_json::Value;

use crate::{
    graph::{Graph, demo_file},
    http_client::{Connection, post, request, send},
};

fn expected() -> String {
    let expected: Value = serde_json::from_str(&demo_file("expected.json")).unwrap();
    expected.to_string()
}

#[test]
fn the_demo_query_is_joined_from_four_subgraphs() {
    let graph = Graph::start();
    let answer = post(graph.address(), &demo_file("query.graphql"));
    assert_eq!(answer.status, 200);
    assert_eq!(answer.text(), expected());
    for name in ["accounts", "inventory", "products", "reviews"] {
        let counts = graph.service.counts(name).unwrap();
        assert!(counts.requests > 0, "{name} was not asked");
        assert_eq!(counts.refused, 0, "{name} got a request it cannot accept");
    }
    assert_eq!(graph.service.total().requests, 6);
}

#[test]
fn a_second_request_comes_from_the_cache_and_gives_the_same_answer() {
    let graph = Graph::start();
    let query = demo_file("query.graphql");
    let first = post(graph.address(), &query);
    let second = post(graph.address(), &query);
    assert_eq!(first.body, second.body);
    assert_eq!(graph.served.gateway.state().operations.len(), 1);
}

#[test]
fn other_literals_share_a_plan_and_get_their_own_answer() {
    let graph = Graph::start();
    let names = |first: u32| -> Vec<Value> {
        let query = format!("{{ topProducts(first: {first}) {{ name inStock }} }}");
        let answer: Value = serde_json::from_str(&post(graph.address(), &query).text()).unwrap();
        let products = answer["data"]["topProducts"].as_array();
        products.unwrap_or_else(|| panic!("{answer}")).clone()
    };
    let (one, three) = (names(1), names(3));
    assert_eq!((one.len(), three.len()), (1, 3));
    assert_eq!(one[0], three[0]);
    let counts = graph.served.gateway.state().plans.counts();
    assert_eq!((counts.planner, counts.cache), (1, 1));
}

#[test]
fn mutations_reach_their_subgraph_once() {
    let graph = Graph::start();
    let answer = post(
        graph.address(),
        r#"mutation { addReview(review: {product: "HP-204", stars: 5, title: "New"}) { stars } }"#,
    );
    assert_eq!(answer.codes(), Vec::<String>::new(), "{}", answer.text());
    assert_eq!(graph.service.total().requests, 1);
}

#[test]
fn get_answers_queries() {
    let graph = Graph::start();
    let answer = send(
        graph.address(),
        "GET",
        "/graphql?query=query(%24n:Int){topProducts(first:%24n){name}}&variables=%7B%22n%22:1%7D",
        &[
            ("accept", "application/graphql-response+json"),
            ("apollo-require-preflight", "true"),
        ],
        b"",
    );
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.text(),
        r#"{"data":{"topProducts":[{"name":"Ridge 30 backpack"}]}}"#
    );
    assert_eq!(
        answer.header("content-type"),
        Some("application/graphql-response+json; charset=utf-8")
    );
}

#[test]
fn deferred_fragments_are_answered_at_once_and_are_no_business_of_subgraphs() {
    let graph = Graph::start();
    for name in ["accounts", "inventory", "products", "reviews"] {
        assert!(graph.service.configure(name, |s| s.record = true));
    }
    let plain =
        "{ me { name } topProducts(first: 2) { name inStock reviews(first: 1) { stars } } }";
    let deferred = "query ($late: Boolean! = true) { me { name } topProducts(first: 2) { name ... @defer { inStock \
        ...Said @defer(label: \"said\", if: $late) } } } fragment Said on Product { reviews(first: 1) { stars } }";
    let answer = post(graph.address(), plain);
    let counts = graph.service.total();
    let same = post(graph.address(), deferred);
    assert_eq!(answer.status, 200);
    assert_eq!(same.header("content-type"), answer.header("content-type"));
    assert_eq!(same.text(), answer.text());
    assert!(same.text().contains("stars"), "{}", same.text());
    assert_eq!(graph.service.total().requests, 2 * counts.requests);
    assert_eq!(graph.service.total().refused, 0);
    // One plan serves both.
    let counts = graph.served.gateway.state().plans.counts();
    assert_eq!((counts.planner, counts.cache), (1, 1));
    for request in graph.service.recorded() {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        assert!(!body.contains("defer") && !body.contains("late"), "{body}");
    }
    let refused = post(graph.address(), "{ me { name @defer } }").json();
    let message = &refused["errors"][0]["message"];
    assert_eq!(message, "Directive \"@defer\" may not be used on FIELD.");
}

#[test]
fn plans_in_parts_give_the_same_answer() {
    // No configuration has this yet: parts are executed, and still answered at once.
    let graph = Graph::altered("", &[], |state| {
        state.options.prepare.normalise.deferral = true;
    });
    let deferred = "query Shop { me { ... @defer { name } reviews { stars ... @defer { product { name } } } } \
        topProducts(first: 3) { ... @defer(label: \"a\") { name price { amount currency } inStock \
        ...Shipping @defer(label: \"b\") } shippingCost { amount } ... @defer(label: \"c\") { \
        reviews(first: 2) { stars title author { username ... @defer { city } } } } } \
        ... @defer { promotions { headline subject { ... on Product @defer { name inStock } \
        ... on Maker { name ... @defer { account { name joinedOn } } } } } } } \
        fragment Shipping on Product { shippingCost { amount } }";
    let answer = post(graph.address(), deferred);
    let right: Value = serde_json::from_str(&expected()).unwrap();
    // As values, for fields stand in another order here.
    assert_eq!(answer.json(), right);
    assert_eq!(graph.service.total().refused, 0);
    assert!(graph.service.total().requests > 6);
}

#[test]
fn introspection_is_answered_without_subgraphs() {
    let graph = Graph::with("supergraph: { introspection: true }");
    let answer = post(
        graph.address(),
        "{ __schema { queryType { name } types { name } } __type(name: \"Person\") { kind } }",
    );
    let json = answer.json();
    assert_eq!(json["data"]["__schema"]["queryType"]["name"], "Query");
    assert_eq!(json["data"]["__type"]["kind"], "OBJECT");
    let names = json["data"]["__schema"]["types"].to_string();
    assert!(
        names.contains("Promotion") && !names.contains("join__"),
        "{names}"
    );
    assert_eq!(graph.service.total().requests, 0);
}

#[test]
fn the_browser_gets_graphiql_with_all_its_assets() {
    let graph = Graph::start();
    let page = send(graph.address(), "GET", "/", &[("accept", "text/html")], b"");
    assert_eq!(page.status, 200);
    assert!(page.header("content-security-policy").is_some());
    let text = page.text();
    let assets: Vec<&str> = text
        .split('"')
        .filter(|part| part.starts_with("/__graphiql/"))
        .collect();
    assert_eq!(assets.len(), 5);
    for asset in assets {
        let answer = send(graph.address(), "GET", asset, &[], b"");
        assert_eq!(answer.status, 200, "{asset}");
        if answer.header("content-encoding") == Some("gzip") {
            assert!(answer.body.starts_with(&[0x1f, 0x8b]), "{asset}");
        }
    }
}

#[test]
fn health_and_readiness() {
    let graph = Graph::start();
    for path in ["/health", "/readiness"] {
        let answer = send(graph.address(), "GET", path, &[], b"");
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, r#"{"status":"UP"}"#)
        );
    }
}

#[test]
fn one_connection_takes_many_requests_even_pipelined() {
    let graph = Graph::start();
    let mut connection = Connection::open(graph.address());
    let json = [("content-type", "application/json")];
    let one = |n| {
        let body = format!(r#"{{"query":"{{ topProducts(first: {n}) {{ name }} }}"}}"#);
        request("POST", "/graphql", &json, body.as_bytes())
    };
    connection.write(&[one(1), one(2), one(3)].concat());
    for n in 1..=3 {
        let answer = connection.read().json();
        assert_eq!(
            answer["data"]["topProducts"].as_array().map(Vec::len),
            Some(n)
        );
    }
    connection.write(&one(2));
    assert_eq!(connection.read().status, 200);
}

#[test]
fn many_clients_at_once_all_get_their_own_answer() {
    let graph = Graph::start();
    let address = graph.address();
    let query = demo_file("query.graphql");
    let wanted = expected();
    std::thread::scope(|scope| {
        for client in 0..32 {
            let (query, wanted) = (&query, &wanted);
            scope.spawn(move || {
                for round in 0..5 {
                    if (client + round) % 2 == 0 {
                        assert_eq!(&post(address, query).text(), wanted);
                    } else {
                        let n = client % 3 + 1;
                        let answer =
                            post(address, &format!("{{ topProducts(first: {n}) {{ sku }} }}"));
                        let json = answer.json();
                        assert_eq!(json["data"]["topProducts"].as_array().unwrap().len(), n);
                    }
                }
            });
        }
    });
}
