//! Several rates at once (`traffic_shaping.router.rate_limits`): keys, costs, conditions, overrides, and what clients are told.

use crate::{
    graph::Graph,
    http_client::{Answer, post_with, send},
    telemetry::scrape,
};

const CLAIMS: &str = "authorization: { claims: { header: x-claims, trusted: [127.0.0.0/8] } }\n";

fn graph(rates: &str, more: &str) -> Graph {
    Graph::with(&format!(
        "traffic_shaping: {{ router: {{ rate_limits: [{rates}] }} }}\n{more}"
    ))
}

fn ask(graph: &Graph, query: &str, header: (&str, &str)) -> Answer {
    let body = format!("{{\"query\":\"{query}\"}}");
    let headers = [("content-type", "application/json"), header];
    send(
        graph.address(),
        "POST",
        "/graphql",
        &headers,
        body.as_bytes(),
    )
}

fn is_limited(answer: &Answer) -> bool {
    answer.status == 429 && answer.codes() == ["REQUEST_RATE_LIMITED"]
}

const NOBODY: (&str, &str) = ("x-nothing", "at all");

#[test]
fn the_tightest_of_several_rates_speaks_and_one_that_is_exceeded_takes_from_no_other() {
    let rates = "{ name: all, capacity: 4, interval: 1h }, \
                 { name: 'a \"client\"', capacity: 2, interval: 2h, key: [{ request_header: x-client }] }";
    let graph = graph(rates, "");
    let ask = |client| ask(&graph, "{ __typename }", ("x-client", client));
    let first = ask("a");
    assert_eq!(
        first.header("ratelimit"),
        Some("\"a \\\"client\\\"\";r=1;t=3600")
    );
    assert_eq!(
        first.header("ratelimit-policy"),
        Some("\"a \\\"client\\\"\";q=2;w=7200")
    );
    assert_eq!(first.header("ratelimit-remaining"), Some("1"));
    assert_eq!(ask("a").status, 200);
    for _ in 0..3 {
        let refused = ask("a");
        assert!(is_limited(&refused), "{}", refused.text());
        assert!(
            refused
                .header("ratelimit")
                .unwrap()
                .starts_with("\"a \\\"client\\\"\";r=0;t=")
        );
        let seconds: u32 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((3_000..=3_600).contains(&seconds), "{seconds}");
    }
    // What was refused took nothing from the rate of all.
    assert_eq!((ask("b").status, ask("c").status), (200, 200));
    let refused = ask("d");
    assert!(is_limited(&refused));
    assert!(
        refused
            .header("ratelimit")
            .unwrap()
            .starts_with("\"all\";r=0;t=")
    );
}

#[test]
fn rates_are_taken_from_by_what_operations_are_estimated_to_cost() {
    let costs =
        "demand_control: { enabled: true, strategy: { static_estimated: { list_size: 4 } } }";
    let graph = graph(
        "{ name: cost, capacity: 10, interval: 1h, charge: estimated_cost }",
        costs,
    );
    let ask = |query| ask(&graph, query, NOBODY);
    let products = "{ topProducts { name } }";
    assert_eq!(ask(products).header("ratelimit-remaining"), Some("6"));
    assert_eq!(ask(products).header("ratelimit-remaining"), Some("2"));
    assert!(is_limited(&ask(products)));
    // What costs nothing is answered still.
    assert_eq!(ask("{ __typename }").status, 200);
}

#[test]
fn what_an_operation_did_not_cost_is_given_back() {
    let costs = "demand_control: { enabled: true, strategy: { static_estimated: \
                 { list_size: 50, actual_cost_mode: by_response_shape } } }";
    let graph = graph(
        "{ name: cost, capacity: 100, interval: 1h, charge: actual_cost }",
        costs,
    );
    let ask = |query| ask(&graph, query, NOBODY);
    for _ in 0..4 {
        let answer = ask("{ topProducts { name } }");
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let left: u32 = ask("{ __typename }")
        .header("ratelimit-remaining")
        .unwrap()
        .parse()
        .unwrap();
    assert!((40..100).contains(&left), "{left}");
}

/// Null that reaches the root, a list or a part has cost what was fetched for it.
#[test]
fn nothing_is_given_back_for_what_was_fetched_and_became_null() {
    let more = "demand_control: { enabled: true, mode: measure, expose_headers: true, strategy: { static_estimated: \
                { list_size: 10, actual_cost_mode: by_response_shape } } }\n\
                authorization:\n  directives: enforce\n  claims: { header: x-claims, trusted: [127.0.0.1] }\n  \
                redact: [{ fields: [Person.name], unless: { contains: [{ jwt_claim: roles }, support] } }]";
    let rates = "{ name: cost, capacity: 1000, interval: 1h, charge: actual_cost }";
    let may = ("x-claims", r#"{"claims":{"sub":"a","roles":["support"]}}"#);
    for (query, accept) in [
        (
            "{ products(first: 3) { sku } accounts { name } }",
            "application/json",
        ),
        (
            "{ accounts { name } products(first: 3) { sku } }",
            "application/json",
        ),
        (
            "{ products(first: 3) { sku } ... @defer { accounts { name } } }",
            "multipart/mixed;incrementalSpec=v0.2",
        ),
    ] {
        let graph = graph(rates, more);
        let taken = |who| {
            let answer = post_with(graph.address(), query, &[("accept", accept), who]);
            let left = post_with(graph.address(), "{ __typename }", &[]);
            let left: u32 = left.header("ratelimit-remaining").unwrap().parse().unwrap();
            (1_000 - left, answer)
        };
        let (before, whole) = taken(may);
        assert!(!whole.text().contains("errors"), "{}", whole.text());
        let (after, cut) = taken(NOBODY);
        assert!(
            cut.text().contains("UNAUTHORIZED_FIELD_OR_TYPE"),
            "{}",
            cut.text()
        );
        let estimated = cut.header("x-cost-estimated").unwrap();
        let estimated: u32 = estimated.parse().unwrap();
        assert!(before < estimated, "{query}: {before} of {estimated}");
        // The question for what is left costs 1, and time gives a little back.
        let cost = after - before;
        assert!(
            (estimated..=estimated + 1).contains(&cost),
            "{query}: {cost} of {estimated}"
        );
    }
}

#[test]
fn what_is_estimated_to_cost_nothing_counts_as_one() {
    let costs = "demand_control: { enabled: true, strategy: { static_estimated: \
                 { list_size: 4, actual_cost_mode: by_response_shape } } }";
    for charge in ["estimated_cost", "actual_cost"] {
        let rate = format!("{{ name: cost, capacity: 2, interval: 1h, charge: {charge} }}");
        let graph = graph(&rate, costs);
        let asked = [0; 3].map(|_| ask(&graph, "{ __typename }", NOBODY).status);
        assert_eq!(asked, [200, 200, 429], "{charge}");
    }
}

#[test]
fn conditions_say_what_counts_and_overrides_for_whom_there_is_more() {
    let rates = "{ name: caller, capacity: 1, interval: 1h, key: [{ jwt_claim: sub }, { operation_name: true }], \
                 when: { eq: [{ operation_kind: true }, query] }, \
                 overrides: [{ matching: { eq: [{ jwt_claim: plan }, gold] }, capacity: 2 }] }";
    let graph = graph(rates, CLAIMS);
    let ask = |query, claims| ask(&graph, query, ("x-claims", claims)).status;
    let one = r#"{"claims":{"sub":"a"}}"#;
    let gold = r#"{"claims":{"sub":"b","plan":"gold"}}"#;
    let (a, b) = ("query A { __typename }", "query B { __typename }");
    assert_eq!((ask(a, one), ask(a, one), ask(b, one)), (200, 429, 200));
    assert_eq!((ask(a, gold), ask(a, gold), ask(a, gold)), (200, 200, 429));
    let mutation = "mutation A { __typename }";
    assert_eq!((ask(mutation, one), ask(mutation, one)), (200, 200));
}

#[test]
fn callers_without_the_key_are_told_apart_by_their_address() {
    let rates = "{ name: caller, capacity: 1, interval: 1h, key: [{ jwt_claim: sub }] }";
    let graph = graph(
        rates,
        &format!("{CLAIMS}http: {{ trusted_proxies: [127.0.0.0/8] }}"),
    );
    let from = |address| ask(&graph, "{ __typename }", ("x-forwarded-for", address)).status;
    assert_eq!(
        (from("1.2.3.4"), from("1.2.3.4"), from("1.2.3.5")),
        (200, 429, 200)
    );
}

#[test]
fn every_operation_of_a_batch_pays() {
    let graph = graph(
        "{ name: all, capacity: 3, interval: 1h }",
        "batching: { enabled: true }",
    );
    let body = b"[{\"query\":\"{a:__typename}\"},{\"query\":\"{b:__typename}\"},{\"query\":\"{c:__typename}\"},{\"query\":\"{d:__typename}\"}]";
    let headers = [("content-type", "application/json")];
    let answer = send(graph.address(), "POST", "/graphql", &headers, body);
    assert_eq!(
        answer.text().matches("REQUEST_RATE_LIMITED").count(),
        1,
        "{}",
        answer.text()
    );
    assert_eq!(answer.text().matches("\"data\"").count(), 3);
}

#[test]
fn a_rate_can_be_measured_only() {
    let metrics = "telemetry: { exporters: { metrics: { prometheus: { enabled: true, listen: '127.0.0.1:0' } } } }";
    let graph = graph(
        "{ name: all, capacity: 1, interval: 1h, measure_only: true }",
        metrics,
    );
    for _ in 0..3 {
        assert_eq!(ask(&graph, "{ __typename }", NOBODY).status, 200);
    }
    let counted = "ogive_limits_exceeded_total{graphql_error_code=\"REQUEST_RATE_LIMITED\"} 2";
    assert!(scrape(&graph).contains(counted));
}

#[test]
fn rates_are_for_ranges_of_addresses() {
    let rate = |range: &str| {
        format!(
            "{{ name: a, capacity: 1, interval: 1h, when: {{ contains: ['{range}', {{ client_address: true }}] }} }}"
        )
    };
    for (range, limited) in [("127.0.0.0/8", true), ("10.0.0.0/8", false)] {
        let graph = graph(&rate(range), "");
        assert_eq!(ask(&graph, "{ __typename }", NOBODY).status, 200);
        let second = ask(&graph, "{ __typename }", NOBODY);
        assert_eq!(is_limited(&second), limited, "{range}: {}", second.text());
    }
}

#[test]
fn who_asks_for_more_than_a_rate_ever_has_is_not_told_to_come_back() {
    let costs =
        "demand_control: { enabled: true, strategy: { static_estimated: { list_size: 40 } } }";
    let graph = graph(
        "{ name: cost, capacity: 30, interval: 1s, charge: estimated_cost }",
        costs,
    );
    let refused = ask(&graph, "{ topProducts(first: 31) { name } }", NOBODY);
    assert!(is_limited(&refused), "{}", refused.text());
    assert_eq!(refused.header("retry-after"), None);
    assert_eq!(refused.header("ratelimit"), Some("\"cost\";r=30"));
    assert_eq!(refused.header("ratelimit-reset"), None);
    assert!(
        refused.text().contains("never has more than 30"),
        "{}",
        refused.text()
    );
    assert_eq!(ask(&graph, "{ __typename }", NOBODY).status, 200);
}

/// With these rates of the subgraph that knows what shipping costs.
fn of_inventory(rates: &str) -> Graph {
    Graph::with(&format!(
        "{CLAIMS}telemetry: {{ exporters: {{ metrics: {{ prometheus: {{ enabled: true, listen: '127.0.0.1:0' }} }} }} }}\n\
         traffic_shaping: {{ subgraphs: {{ inventory: {{ rate_limits: [{rates}] }} }} }}"
    ))
}

const SHIPPED: &str = "{ topProducts { name shippingCost { amount } } }";

fn lacks_inventory(answer: &Answer) -> bool {
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}");
    assert!(text.contains("\"name\":\""), "{text}");
    let is_refused = text.contains("REQUEST_RATE_LIMITED");
    assert_eq!(is_refused, text.contains("\"shippingCost\":null"), "{text}");
    is_refused
}

#[test]
fn a_subgraph_that_is_asked_too_often_is_not_asked_and_nulls_only_its_own_fields() {
    let graph = of_inventory("{ name: stock, capacity: 2, interval: 1h }");
    let asked = |graph: &Graph| ask(graph, SHIPPED, NOBODY);
    assert!(!lacks_inventory(&asked(&graph)) && !lacks_inventory(&asked(&graph)));
    assert!(lacks_inventory(&asked(&graph)));
    let series = "http_client_request_duration_seconds_count{subgraph_name=\"inventory\"";
    let text = scrape(&graph);
    let sent: u64 = text
        .lines()
        .filter(|line| line.starts_with(series) && !line.contains("REQUEST_RATE_LIMITED"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum();
    assert_eq!(sent, 2, "{text}");
    // Others have what is theirs, and the rate of all is one of each.
    let graph = Graph::with(
        "traffic_shaping: { all: { rate_limits: [{ name: stock, capacity: 1, interval: 1h }] } }",
    );
    assert!(!lacks_inventory(&asked(&graph)));
    let text = asked(&graph).text();
    assert!(text.contains("REQUEST_RATE_LIMITED"), "{text}");
}

#[test]
fn rates_of_subgraphs_have_keys_conditions_and_overrides() {
    let rate = "{ name: stock, capacity: 1, interval: 1h, key: [{ jwt_claim: sub }], \
                when: { exists: { jwt_claim: sub } }, \
                overrides: [{ matching: { eq: [{ jwt_claim: plan }, gold] }, capacity: 2 }] }";
    let graph = of_inventory(rate);
    let asked = |claims| ask(&graph, SHIPPED, ("x-claims", claims));
    let (ann, bob) = (
        "{\"claims\":{\"sub\":\"ann\"}}",
        "{\"claims\":{\"sub\":\"bob\",\"plan\":\"gold\"}}",
    );
    assert!(!lacks_inventory(&asked(ann)));
    assert!(lacks_inventory(&asked(ann)));
    assert!(!lacks_inventory(&asked(bob)) && !lacks_inventory(&asked(bob)));
    assert!(lacks_inventory(&asked(bob)));
    for _ in 0..3 {
        assert!(
            !lacks_inventory(&asked("{}")),
            "nothing counts those without"
        );
    }
    let measured = of_inventory("{ name: stock, capacity: 1, interval: 1h, measure_only: true }");
    for _ in 0..2 {
        assert!(!lacks_inventory(&ask(&measured, SHIPPED, NOBODY)));
    }
    let counted = "ogive_limits_exceeded_total{graphql_error_code=\"REQUEST_RATE_LIMITED\"} 1";
    let text = scrape(&measured);
    assert!(text.contains(counted), "{text}");
}
