//! Policies that the gateway decides itself, by conditions or by asking a service.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ogive_gateway::{GatewayOptions, LoadedPolicies};
use ogive_identity::policy_engine::{PolicyAnswer, PolicyEngine, PolicyQuestion};
use ogive_testbase::subgraph::{ManualSubgraph, Reply, StubSubgraph, answer, read_request};
use serde_json::{Value, json};

use super::{Known, services::FAULTS};
use crate::{
    faults::{compare, seen},
    graph::config,
    http_client::Answer,
    telemetry::scrape,
};

const STOCK: &str = "{ topProducts(first: 1) { warehouse { city } } }";

fn enforced(policies: &str) -> String {
    // A service of a test may have to wait for its turn.
    let patient = if policies.contains("timeout: ") {
        "http: { "
    } else {
        "http: { timeout: 60s, "
    };
    let policies = policies.replace("http: { ", patient);
    format!("authorization: {{ directives: enforce, policies: {{ {policies} }} }}\n")
}

/// A service that decides by a claim `stock`.
fn by_claim() -> StubSubgraph {
    StubSubgraph::start(|_, request| {
        let asked = body(request);
        let holds = asked["claims"]["stock"] == true;
        let decided = json!({ "policies": { "stock": holds } });
        Reply::Whole(answer(200, "", decided.to_string().as_bytes()))
    })
}

fn body(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn shows(answer: &Answer) -> bool {
    let warehouse = &answer.json()["data"]["topProducts"][0]["warehouse"];
    let codes = answer.codes();
    match warehouse {
        Value::Null => {
            assert_eq!(codes, ["UNAUTHORIZED_FIELD_OR_TYPE"]);
            false
        }
        _ => {
            assert_eq!(codes, [""; 0]);
            true
        }
    }
}

#[test]
fn conditions_on_claims_decide_and_what_nobody_decides_does_not_hold() {
    let rule = "{ any: [{ contains: [{ jwt_claim: groups }, staff] }, { eq: [{ jwt_claim: org.plan }, gold] }] }";
    let known = Known::with("", &enforced(&format!("rules: {{ stock: {rule} }}")));
    let ask = |claims: Value| shows(&known.bear(STOCK, &known.token(claims)));
    assert!(ask(json!({ "groups": ["a", "staff"] })));
    assert!(ask(json!({ "org": { "plan": "gold" } })));
    assert!(!ask(json!({ "groups": ["a"], "org": { "plan": "lead" } })));
    assert!(!ask(json!({})));
    assert!(!shows(&known.ask(STOCK, &[])), "nobody is nobody");
    let state = known.graph.served.gateway.state();
    assert_eq!(state.plans.len(), 1, "one plan for all");
    // Nothing is decided of whom nothing is known, not even what holds for all others.
    let all = "rules: { stock: { not: { exists: { jwt_claim: banned } } } }";
    let known = Known::with("", &enforced(all));
    assert!(shows(&known.bear(STOCK, &known.token(json!({})))));
    assert!(!shows(
        &known.bear(STOCK, &known.token(json!({ "banned": 1 })))
    ));
    assert!(!shows(&known.ask(STOCK, &[])));
    // Other policies are not this one.
    let other = "rules: { stocks: { exists: { jwt_claim: sub } } }";
    let known = Known::with("", &enforced(other));
    assert!(!shows(&known.bear(STOCK, &known.token(json!({})))));
}

/// Callers, and whether a policy holds for each, whoever decides it: the same cases are Cedar's.
const CALLERS: &str = include_str!("../../../../cedar/tests/callers.json");

#[test]
fn every_evaluator_decides_the_same_of_the_same_callers() {
    let rule = "{ all: [{ any: [{ contains: [{ jwt_claim: groups }, staff] }, { eq: [{ jwt_claim: plan }, gold] }] }, \
                { not: { eq: [{ jwt_claim: suspended }, true] } }] }";
    let service = StubSubgraph::start(|_, request| {
        let asked = body(request);
        let claims = &asked["claims"];
        let is_staff = match &claims["groups"] {
            Value::String(text) => text.split(' ').any(|group| group == "staff"),
            Value::Array(items) => items.contains(&json!("staff")),
            _ => false,
        };
        let holds = (is_staff || claims["plan"] == "gold") && claims["suspended"] != true;
        let decided = json!({ "policies": { "stock": holds } });
        Reply::Whole(answer(200, "", decided.to_string().as_bytes()))
    });
    let cases: Vec<Value> = serde_json::from_str(CALLERS).unwrap();
    for evaluator in [
        format!("rules: {{ stock: {rule} }}"),
        format!("http: {{ url: '{}' }}", service.url()),
    ] {
        let known = Known::with("", &enforced(&evaluator));
        for case in &cases {
            let token = known.token(case["claims"].clone());
            let shown = shows(&known.bear(STOCK, &token));
            assert_eq!(shown, case["holds"] == true, "{evaluator}: {case}");
        }
    }
}

/// Decides by a claim of this name.
#[derive(Debug)]
struct ByClaim(&'static str, Arc<AtomicUsize>);

impl PolicyEngine for ByClaim {
    fn decide(&self, question: &PolicyQuestion<'_>) -> Vec<PolicyAnswer> {
        assert!(matches!(question.policies, [one] if **one == *"stock"));
        assert_eq!(question.operation, "query");
        // No worker waits for it.
        let thread = std::thread::current();
        assert_eq!(thread.name(), Some("ogive-heavy"));
        self.1.fetch_add(1, Ordering::SeqCst);
        vec![PolicyAnswer {
            holds: question.caller.claim(self.0).as_deref() == Some("true"),
            failures: vec!["something cannot be evaluated".into()],
        }]
    }
}

#[test]
fn an_engine_decides_once_for_equal_callers_until_its_policies_change() {
    let known = Known::with("", &enforced(""));
    let (staff, paid) = (
        known.token(json!({ "staff": true })),
        known.token(json!({ "paid": true })),
    );
    assert!(!shows(&known.bear(STOCK, &staff)), "nobody decides");
    let asked = Arc::<AtomicUsize>::default();
    let engine = |claim: &'static str, digest: u8| LoadedPolicies {
        engine: Arc::new(ByClaim(claim, Arc::clone(&asked))),
        digest: [digest; 32],
        cache_bytes_max: 1 << 20,
    };
    let cedar = "cedar: { policies: [a.cedar], cache_memory: 1MiB }";
    known.graph.reload_with(cedar, engine("staff", 1));
    for _ in 0..3 {
        assert!(shows(&known.bear(STOCK, &staff)));
        assert!(!shows(&known.bear(STOCK, &paid)));
        assert!(!shows(&known.ask(STOCK, &[])), "nobody is decided about");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    // The same texts decide the same.
    known.graph.reload_with(cedar, engine("staff", 1));
    assert!(shows(&known.bear(STOCK, &staff)));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    known.graph.reload_with(cedar, engine("paid", 2));
    assert!(!shows(&known.bear(STOCK, &staff)));
    assert!(shows(&known.bear(STOCK, &paid)));
    assert_eq!(asked.load(Ordering::SeqCst), 4);
    // A condition counts before it.
    let rule = "rules: { stock: { exists: { jwt_claim: staff } } }";
    known
        .graph
        .reload_with(&format!("{rule}, {cedar}"), engine("paid", 2));
    assert!(shows(&known.bear(STOCK, &staff)));
    assert!(!shows(&known.bear(STOCK, &paid)));
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}

#[test]
fn without_an_engine_a_configuration_with_cedar_is_refused() {
    let yaml = enforced("cedar: { policies: [a.cedar] }");
    let error = GatewayOptions::load(&config(&yaml)).unwrap_err();
    assert!(
        error.starts_with("`authorization.policies.cedar`"),
        "{error}"
    );
}

#[test]
fn a_service_is_asked_over_connections_that_are_kept_and_once_more_if_one_was_closed() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let decided = answer(200, "", br#"{"policies":{"stock":true}}"#);
        // Three decisions on the first connection, which it closes without a word; the rest on another one.
        for requests in [3, 2] {
            let (mut stream, mut buffer) = (listener.accept().unwrap().0, Vec::new());
            for _ in 0..requests {
                read_request(&mut stream, &mut buffer).unwrap();
                stream.write_all(&decided).unwrap();
            }
        }
    });
    let yaml = format!(
        "http: {{ workers: 1 }}\n{}",
        enforced(&format!("http: {{ url: '{url}', cache_ttl: 0s }}"))
    );
    let known = Known::with("", &yaml);
    let token = known.token(json!({}));
    for turn in 0..5 {
        assert!(shows(&known.bear(STOCK, &token)), "{turn}");
    }
    served.join().unwrap();
}

#[test]
fn a_service_decides_once_for_equal_claims() {
    let service = by_claim();
    let http = format!(
        "http: {{ url: '{}', headers: [{{ name: x-key, value: k }}], cache_ttl: 1h, cache_memory: 1MiB }}",
        service.url()
    );
    let known = Known::with("", &enforced(&http));
    let (may, may_not) = (json!({ "stock": true, "scope": "a b" }), json!({}));
    let (may, may_not) = (known.token(may), known.token(may_not));
    for _ in 0..3 {
        assert!(shows(&known.bear(STOCK, &may)));
        assert!(!shows(&known.bear(STOCK, &may_not)));
        assert!(!shows(&known.ask(STOCK, &[])));
    }
    // Whoever asks for nothing of that kind has nobody asked.
    assert_eq!(known.bear("{ me { name } }", &may).codes(), [""; 0]);
    assert_eq!(service.asked(), 2);
    let asked = &service.requests()[0];
    assert!(asked.starts_with("POST / ") && asked.contains("x-key: k"));
    let asked = body(asked);
    assert_eq!(asked["policies"], json!(["stock"]));
    assert_eq!(asked["scopes"], json!(["a", "b"]));
    assert_eq!(asked["claims"]["sub"], "ida");
    assert_eq!(asked["version"], 1);
    // An answer may say that it is good for itself only.
    let service = StubSubgraph::answering(
        200,
        "cache-control: no-store\r\n",
        r#"{"policies":{"stock":true}}"#,
    );
    let known = Known::with(
        "",
        &enforced(&format!("http: {{ url: '{}' }}", service.url())),
    );
    let token = known.token(json!({}));
    for _ in 0..2 {
        assert!(shows(&known.bear(STOCK, &token)));
    }
    assert_eq!(service.asked(), 2);
}

#[test]
fn equal_questions_at_one_time_are_asked_once_and_no_more_than_allowed_at_a_time() {
    let service = ManualSubgraph::start();
    let http = format!(
        "http: {{ url: '{}', max_in_flight: 1, timeout: 20s }}",
        service.url()
    );
    let yaml = format!("http: {{ workers: 3 }}\n{}", enforced(&http));
    let known = Known::with("", &yaml);
    let same = known.token(json!({}));
    let other = known.token(json!({ "other": 1 }));
    std::thread::scope(|scope| {
        let (first, known) = (&same, &known);
        let asking: Vec<_> = [first, first, first, &other]
            .into_iter()
            .map(|token| scope.spawn(move || shows(&known.bear(STOCK, token))))
            .collect();
        for _ in 0..2 {
            let mut asked = service.next();
            let holds = body(&asked.request)["claims"]["other"].is_null();
            let decided = json!({ "policies": { "stock": holds } }).to_string();
            asked.answer(200, "connection: close\r\n", decided);
        }
        let shown: Vec<bool> = asking.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!(shown, [true, true, true, false]);
    });
}

#[test]
fn callers_of_whom_something_else_is_decided_never_share_an_answer() {
    let service = by_claim();
    let yaml = format!(
        "http: {{ workers: 2 }}\ntraffic_shaping: {{ router: {{ deduplicate_query: true }} }}\n{}",
        enforced(&format!(
            "http: {{ url: '{}', cache_ttl: 0s }}",
            service.url()
        ))
    );
    let known = Known::with("", &yaml);
    let tokens = [
        json!({ "stock": true }),
        json!({ "stock": false }),
        json!({}),
    ];
    let tokens = tokens.map(|claims| known.token(claims));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (known, tokens) = (&known, &tokens);
            scope.spawn(move || {
                for at in 0..60 {
                    let which = (thread + at) % 4;
                    let answer = match tokens.get(which) {
                        Some(token) => known.bear(STOCK, token),
                        None => known.ask(STOCK, &[]),
                    };
                    assert_eq!(shows(&answer), which == 0);
                    assert_eq!(answer.header("cache-control"), Some("no-store"));
                }
            });
        }
    });
}

/// What a client is answered if the service has a fault, or has none.
pub(crate) const UNDECIDED: &str = "503 POLICIES_UNAVAILABLE";

#[test]
fn faults_of_services_that_decide_policies() {
    let mut all = Vec::new();
    for fault in FAULTS {
        let (_service, url) = fault.start();
        let http = format!("http: {{ url: '{url}', timeout: 300ms }}");
        let known = Known::with("", &enforced(&http));
        let token = known.token(json!({}));
        let refused = known.bear(STOCK, &token);
        assert_eq!(refused.header("retry-after"), Some("1"), "{}", fault.fault);
        all.push((fault.fault, seen(&refused), UNDECIDED));
        // Nothing else suffers.
        let others = known.bear("{ me { name } }", &token);
        all.push((fault.fault, seen(&others), "200"));
    }
    compare(&all);
    // What it does not mention does not hold; that is no fault.
    let service = StubSubgraph::answering(200, "", r#"{"policies":{}}"#);
    let known = Known::with(
        "",
        &enforced(&format!("http: {{ url: '{}' }}", service.url())),
    );
    assert!(!shows(&known.bear(STOCK, &known.token(json!({})))));
}

#[test]
fn a_service_that_was_away_decides_as_soon_as_it_answers() {
    let service = StubSubgraph::in_turn(vec![
        Reply::Last(Vec::new()),
        Reply::Whole(answer(200, "", br#"{"policies":{"stock":true}}"#)),
    ]);
    let counted = "telemetry: { exporters: { metrics: { prometheus: { enabled: true, listen: '127.0.0.1:0' } } } }\n";
    let policies = enforced(&format!("http: {{ url: '{}' }}", service.url()));
    let known = Known::with("", &format!("{policies}{counted}"));
    let token = known.token(json!({}));
    assert_eq!(seen(&known.bear(STOCK, &token)), UNDECIDED);
    assert!(shows(&known.bear(STOCK, &token)));
    // Both calls are counted, by how they ended.
    let metrics = scrape(&known.graph);
    let of_policies = metrics.lines().filter(|line| {
        line.starts_with("ogive_hook_duration_seconds_count{")
            && line.contains("ogive_hook=\"policies\"")
    });
    let mut outcomes: Vec<&str> = of_policies
        .filter_map(|line| line.split("ogive_hook_outcome=\"").nth(1))
        .collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["continue\"} 1", "failed\"} 1"]);
}
