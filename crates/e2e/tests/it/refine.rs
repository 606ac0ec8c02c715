//! Plans that get better in the background: counted on the wire, switched off, bounded, ended and reloaded.
//!
//! The graph is seven museums that know of each other's pieces. Each link and each value is known to two or three of
//! them, so there are very many plans, and the first one is not the best.

use std::{
    fmt::Write,
    sync::{Arc, Weak},
    time::Duration,
};

use ogive_config::Url;
use ogive_gateway::{
    Gateway, GatewayOptions, SchemaState,
    plan::plan_now,
    prepare::prepare_operation,
    schema::operation::PlannedOperation,
    schema::plan_cache::Tier,
    schema::refine::{Refined, Refiner},
    schema::refinement::RefineCounts,
};
use ogive_mock::{Data, Options, Server, Service, Settings, Source, Subgraph};
use serde_json::{Map, Value, json};

use crate::{
    graph::{Served, config, state},
    http_client::{Answer, post_with, send},
};

const MUSEUMS: [&str; 7] = [
    "athens", "berlin", "cairo", "delhi", "essen", "florence", "graz",
];
/// Links between pieces, and who knows them.
const LINKS: [(&str, &[usize]); 3] = [
    ("copyOf", &[3, 4]),
    ("pendant", &[0, 5]),
    ("study", &[3, 5, 6]),
];
/// Values, and who knows them.
const VALUES: [(&str, &[usize]); 3] = [("title", &[0, 2]), ("artist", &[1, 2]), ("room", &[2, 6])];
/// Which values are asked for, innermost pieces first.
const WANTED: [&[usize]; 5] = [&[0, 1], &[0], &[], &[1, 2], &[0, 2]];

/// Requests of the first plan and of the best.
const COLD: u64 = 9;
const BEST: u64 = 6;

fn supergraph() -> String {
    let mut out = String::from(
        "schema @link(url: \"https://specs.apollo.dev/link/v1.0\") \
         @link(url: \"https://specs.apollo.dev/join/v0.3\", for: EXECUTION) { query: Query }\n\
         directive @join__field(graph: join__Graph) repeatable on FIELD_DEFINITION\n\
         directive @join__graph(name: String!, url: String!) on ENUM_VALUE\n\
         directive @join__type(graph: join__Graph!, key: join__FieldSet) repeatable on OBJECT\n\
         directive @link(url: String, for: link__Purpose) repeatable on SCHEMA\n\
         scalar join__FieldSet\nenum link__Purpose { SECURITY EXECUTION }\nenum join__Graph {",
    );
    for name in MUSEUMS {
        let upper = name.to_uppercase();
        let _ = write!(out, " {upper} @join__graph(name: \"{name}\", url: \"\")");
    }
    let everywhere = |key: &str| {
        let of = |name: &&str| format!(" @join__type(graph: {}{key})", name.to_uppercase());
        MUSEUMS.iter().map(of).collect::<String>()
    };
    let _ = write!(
        out,
        " }}\ntype Query{} {{ centre: Piece @join__field(graph: ATHENS) }}\ntype Piece{} {{ id: ID!",
        everywhere(""),
        everywhere(", key: \"id\"")
    );
    for (fields, ty) in [(LINKS, "Piece"), (VALUES, "String")] {
        for (field, known_to) in fields {
            let _ = write!(out, "\n{field}: {ty}");
            for at in known_to {
                let _ = write!(out, " @join__field(graph: {})", MUSEUMS[*at].to_uppercase());
            }
        }
    }
    out + " }"
}

/// The SDL of one museum.
fn subgraph(at: usize) -> String {
    let mut out = String::from(
        "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.3\", import: [\"@key\", \"@shareable\"])\n",
    );
    if at == 0 {
        out += "type Query { centre: Piece }\n";
    }
    out += "type Piece @key(fields: \"id\") { id: ID!";
    for (fields, ty) in [(LINKS, "Piece"), (VALUES, "String")] {
        for (field, known_to) in fields {
            if known_to.contains(&at) {
                let _ = write!(out, " {field}: {ty} @shareable");
            }
        }
    }
    out + " }"
}

/// The operation; `alias` makes it another one.
fn query(alias: &str) -> String {
    let mut below = String::new();
    for (depth, wanted) in WANTED.iter().enumerate() {
        let mut here = String::from("{");
        for at in *wanted {
            let _ = write!(here, " {}", VALUES[*at].0);
        }
        for (link, _) in LINKS.iter().filter(|_| depth > 0) {
            let _ = write!(here, " {link} {below}");
        }
        below = here + " }";
    }
    format!("{{ {alias}: centre {below} }}")
}

struct Museums {
    served: Served,
    service: Arc<Service>,
    _mock: Server,
}

impl Museums {
    fn with(yaml: &str) -> Museums {
        let mut fields = Map::new();
        fields.insert("Query.centre".into(), "Piece/0".into());
        for (at, (link, _)) in LINKS.iter().enumerate() {
            fields.insert(format!("Piece.{link}"), format!("Piece/{{id}}{at}").into());
        }
        for (value, _) in VALUES {
            fields.insert(format!("Piece.{value}"), format!("{value} {{id}}").into());
        }
        let data = Data::from_json(json!({ "fields": fields })).unwrap();
        let source = Source::Data(data.into());
        let mut service = Service::new();
        for (at, name) in MUSEUMS.into_iter().enumerate() {
            let museum = Subgraph::new(name, &subgraph(at), source.clone(), Options::default());
            let museum = museum.unwrap_or_else(|e| panic!("{name}: {e}"));
            service.add(name, museum, Settings::default());
        }
        let service = Arc::new(service);
        let mock = Server::start(Arc::clone(&service), "127.0.0.1:0", 1).unwrap();
        // What is counted is the plan's requests: `reuse: all` sends the first part of one early, apart from the rest.
        let mut config = config(&format!("{yaml}\nexecution: {{ reuse: entities }}"));
        for name in MUSEUMS {
            let url = Url(mock.url(name));
            config.override_subgraph_url.insert(name.into(), url);
        }
        Museums {
            served: Served::start(state(&supergraph(), &config), &config),
            service,
            _mock: mock,
        }
    }
    /// Sends the operation; the answer, and how many requests it took.
    fn ask(&self) -> (Answer, u64) {
        self.service.reset();
        let expose = [("apollo-expose-query-plan", "true")];
        let answer = post_with(self.served.address, &query("centre"), &expose);
        let total = self.service.total();
        assert_eq!(total.refused, 0);
        (answer, total.requests)
    }
    fn refiner(&self) -> &Refiner {
        self.served.background.as_ref().unwrap().refiner()
    }
    fn counts(&self) -> RefineCounts {
        self.served.gateway.state().refinement.counts()
    }
}

const EXPOSED: &str = "query_planning: { expose: { enabled: true } }\n\
     telemetry: { exporters: { metrics: { prometheus: { enabled: true, listen: '127.0.0.1:0' } } } }";

fn tier(answer: &Answer) -> Value {
    answer.json()["extensions"]["apolloQueryPlan"]["tier"].clone()
}

#[test]
fn a_plan_gets_better_in_the_background() {
    let museums = Museums::with(EXPOSED);
    let (cold, requests) = museums.ask();
    assert_eq!((requests, tier(&cold)), (COLD, "greedy".into()));
    assert!(
        cold.json()["data"]["centre"]["study"]["copyOf"]["pendant"]["study"]["title"].is_string()
    );
    museums.refiner().settle();
    let (warm, requests) = museums.ask();
    assert_eq!((requests, tier(&warm)), (BEST, "refined".into()));
    assert_eq!(cold.json()["data"], warm.json()["data"]);
    let done = RefineCounts {
        refined: 1,
        improved: 1,
        ..RefineCounts::default()
    };
    assert_eq!(museums.counts(), done, "what is refined stays so");
    let background = museums.served.background.as_ref().unwrap();
    let metrics = background.metrics_address().unwrap();
    let text = send(metrics, "GET", "/metrics", &[], b"").text();
    for line in [
        "ogive_plan_refined_total 1",
        "ogive_plan_improved_total 1",
        "ogive_plan_refinement_dropped_total 0",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}: {text}");
    }
}

#[test]
fn plans_stay_as_they_are_if_that_is_wanted() {
    for keys in [
        "refinement: { enabled: false }",
        "cache: { enabled: false }",
    ] {
        let museums = Museums::with(&format!("query_planning: {{ {keys} }}"));
        assert_eq!(museums.ask().1, COLD);
        museums.refiner().settle();
        assert_eq!(museums.ask().1, COLD);
        assert_eq!(museums.counts(), RefineCounts::default());
    }
}

#[test]
fn without_fuel_nothing_better_is_found() {
    let museums = Museums::with("query_planning: { refinement: { fuel: 1 } }");
    assert_eq!(museums.ask().1, COLD);
    museums.refiner().settle();
    assert_eq!(museums.ask().1, COLD);
    let counts = museums.counts();
    assert_eq!((counts.refined, counts.improved), (1, 0));
}

fn fresh(yaml: &str) -> SchemaState {
    state(&supergraph(), &config(yaml))
}

fn planned(state: &SchemaState, text: &str) -> Arc<PlannedOperation> {
    let operation = prepare_operation(state, text, None).unwrap_or_else(|_| panic!("{text}"));
    plan_now(state, &operation)
        .unwrap_or_else(|_| panic!("{text}"))
        .0
}

#[test]
fn the_queue_is_bounded_and_what_finds_no_place_may_come_again() {
    let state = fresh("query_planning: { refinement: { queue_size: 2, fuel: 1_000_000 } }");
    for alias in ["a", "b", "c"] {
        planned(&state, &query(alias));
    }
    let counts = state.refinement.counts();
    assert_eq!((counts.waiting, counts.dropped), (2, 1));
    while state.refine_next().is_some() {}
    // Another document of the first form, which is refined already; one of the third, which is not.
    for alias in ["a", "c"] {
        planned(&state, &format!("query Again {}", query(alias)));
    }
    assert_eq!(state.refinement.counts().waiting, 1);
    assert_eq!(state.refine_next(), Some(Refined::Improved));
    assert_eq!(state.refine_next(), None);
    // What is known to be the best is not offered.
    let simple = planned(&state, "{ centre { title } }");
    assert_eq!(simple.shared.tier, Tier::Exact);
    assert_eq!(state.refinement.counts().waiting, 0);
}

/// Whoever has a plan keeps it; whoever comes next has the better one, whatever was planned before.
#[test]
fn the_better_plan_depends_on_the_operation_alone() {
    let yaml = "query_planning: { refinement: { fuel: 1_000_000 } }";
    let (one, two) = (fresh(yaml), fresh(yaml));
    let operation = prepare_operation(&one, &query("a"), None).unwrap();
    let (before, _) = plan_now(&one, &operation).unwrap();
    for alias in ["c", "b", "a"] {
        planned(&two, &query(alias));
    }
    assert_eq!(one.refine_next(), Some(Refined::Improved));
    while two.refine_next().is_some() {}
    let (after, _) = plan_now(&one, &operation).unwrap();
    assert_eq!(
        before.plan.fetches.len() as u64,
        COLD,
        "a running request keeps its plan"
    );
    assert_eq!(after.plan.fetches.len() as u64, BEST);
    let (again, _) = plan_now(&one, &operation).unwrap();
    assert!(Arc::ptr_eq(&after, &again), "it is kept with the operation");
    assert_eq!(*after.plan, *planned(&two, &query("a")).plan);
    let best = "refined; no plan is better for this profile";
    assert_eq!(after.shared.describe(), best);
}

#[test]
fn what_waits_goes_with_its_schema_and_the_new_one_begins_anew() {
    let config = config("");
    let gateway = Arc::new(Gateway::new(fresh(""), GatewayOptions::new(&config)));
    let old: Weak<SchemaState> = {
        let state = gateway.state();
        for alias in ["a", "b"] {
            let operation = prepare_operation(&state, &query(alias), None).unwrap();
            plan_now(&state, &operation).unwrap();
            state.operations.insert(None, Arc::new(operation));
        }
        assert_eq!(state.refine_next(), Some(Refined::Improved));
        assert_eq!(state.refinement.counts().waiting, 1);
        Arc::downgrade(&state)
    };
    let refiner = Refiner::start(Arc::clone(&gateway)).unwrap();
    let done = gateway.reload(fresh(""));
    assert_eq!((done.kept, done.planned), (2, 0));
    refiner.settle();
    assert!(old.upgrade().is_none(), "nobody holds the old schema");
    let state = gateway.state();
    for alias in ["a", "b"] {
        let plan = planned(&state, &query(alias));
        assert_eq!(
            (plan.plan.fetches.len() as u64, plan.shared.tier),
            (BEST, Tier::Refined)
        );
    }
}

#[test]
fn the_thread_ends_although_plans_wait() {
    let config = config("");
    let gateway = Arc::new(Gateway::new(fresh(""), GatewayOptions::new(&config)));
    let state = gateway.state();
    for n in 0..40 {
        planned(&state, &query(&format!("a{n}")));
    }
    let refiner = Refiner::start(Arc::clone(&gateway)).unwrap();
    drop(refiner);
    let counts = state.refinement.counts();
    assert_eq!(counts.refined as usize + counts.waiting, 40);
    assert_eq!(Arc::strong_count(&gateway), 1, "the thread is gone");
}

/// Who is asked for what the first museum does not know.
fn asked(planned: &PlannedOperation) -> Box<str> {
    let plan = &planned.plan;
    let last = plan.fetches.as_slice().last().unwrap();
    plan.subgraphs[last.subgraph as usize].clone()
}

#[test]
fn a_slow_subgraph_is_avoided_and_plans_do_not_flap() {
    let state = fresh("query_planning: { feedback: { enabled: true, answers: 16 } }");
    let text = "{ centre { room } }";
    let operation = prepare_operation(&state, text, None).unwrap();
    let plan = || plan_now(&state, &operation).unwrap().0;
    let usual = asked(&plan());
    let number = |name: &str| MUSEUMS.iter().position(|m| *m == name).unwrap() as u32;
    let answers = |name: &str, times: u32, micros: u64| {
        for _ in 0..times {
            let took = Duration::from_micros(micros);
            state.feedback.answered(number(name), took);
        }
    };
    answers(&usual, 16, 1_000);
    assert_eq!(state.feedback.epoch().number, 0, "everybody is fast");
    answers(&usual, 320, 100_000);
    let slow = state.feedback.epoch().number;
    assert!(slow > 0);
    assert_eq!(asked(&plan()), usual, "until there is another plan");
    assert_eq!(state.refinement.counts().waiting, 1);
    plan();
    assert_eq!(state.refinement.counts().waiting, 1, "asked for once");
    assert_eq!(state.refine_next(), Some(Refined::Replaced));
    let other = asked(&plan());
    assert_ne!(other, usual);
    assert_eq!(plan().plan.fetches.len(), 2);
    // A new document gets the same at once.
    let fresh = planned(&state, "{ c: centre { room } }");
    assert_eq!(asked(&fresh), other);
    // Around the edge of a step nothing changes.
    for _ in 0..50 {
        answers(&other, 8, 1_800);
        answers(&other, 8, 2_200);
    }
    answers(&usual, 160, 100_000);
    assert_eq!(state.feedback.epoch().number, slow);
    assert_eq!(state.refinement.counts().waiting, 0);
    // Fast again: as before.
    answers(&usual, 320, 500);
    assert!(state.feedback.epoch().number > slow);
    plan();
    assert_eq!(state.refine_next(), Some(Refined::Replaced));
    assert_eq!(asked(&plan()), usual);
}

#[test]
fn answers_are_timed_if_that_is_wanted() {
    for (yaml, timed) in [
        ("query_planning: { feedback: { enabled: true } }", true),
        ("", false),
    ] {
        let museums = Museums::with(yaml);
        museums.ask();
        let state = museums.served.gateway.state();
        assert_eq!(state.feedback.answers_of(0) > 0, timed, "{yaml}");
    }
}

#[test]
fn what_was_learnt_outlives_a_reload_of_the_same_subgraphs() {
    let yaml = "query_planning: { feedback: { enabled: true, answers: 16 } }";
    let before = fresh(yaml);
    for _ in 0..16 {
        before.feedback.answered(2, Duration::from_millis(100));
    }
    assert_eq!(before.feedback.epoch().number, 1);
    let mut same = fresh(yaml);
    same.warm_up(&before);
    assert_eq!(same.feedback.epoch().number, 1);
    assert_eq!(
        same.feedback.epoch().measured,
        before.feedback.epoch().measured
    );
    let mut off = fresh("");
    off.warm_up(&before);
    assert_eq!(
        off.feedback.epoch().number,
        2,
        "plans that rest on it are made anew"
    );
    assert_eq!(off.feedback.epoch().measured, None);
}
