//! Many callers at a time: nobody gets what is somebody else's, and new keys cost no good token its answer.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use ogive_testbase::{
    Rng,
    subgraph::{Reply as StubReply, StubSubgraph, answer as stub_answer},
};
use serde_json::{Value, json};

use super::{
    ISSUER, claims,
    made::{Made, Server, jwks, ok},
};
use crate::{
    authorization::RESTRICTED,
    graph::Graph,
    http_client::{Connection, request},
    toxic::{Reply, Toxic, answer},
};

const SHARING: &str = "traffic_shaping: { all: { deduplicate_query: true }, router: { deduplicate_query: true } }\n\
    headers: { all: { request: [{ insert: { name: x-user, from_context: 'apollo::authentication::jwt_claims', path: .sub } }, \
    { propagate: { named: x-key } }] } }\nhttp: { workers: 1 }\n";

/// Fields of `Person` that policies are about: one that the gateway decides, and one that a service does.
const POLICIES: (&str, &str) = (
    "  joinedOn: Date! @join__field(graph: ACCOUNTS)",
    "  joinedOn: Date! @join__field(graph: ACCOUNTS)\n\
     plan: String @join__field(graph: ACCOUNTS) @policy(policies: [[\"paid\"]])\n\
     seat: String @join__field(graph: ACCOUNTS) @policy(policies: [[\"vip\"]])",
);

/// Operations; `OGIVE_CALLERS` says another number.
fn operations() -> usize {
    let asked = std::env::var("OGIVE_CALLERS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(20_000)
}

fn bear(connection: &mut Connection, token: Option<&str>, query: &str) {
    bear_with(connection, token, None, query);
}

fn bear_with(connection: &mut Connection, token: Option<&str>, key: Option<&str>, query: &str) {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    headers.extend(key.map(|key| ("x-key", key)));
    let body = json!({ "query": query }).to_string();
    connection.write(&request("POST", "/graphql", &headers, body.as_bytes()));
}

/// A subgraph that says by whom and with which credential it was told to be asked, and what else it was asked for.
fn echo() -> Toxic {
    Toxic::start(|_, request| {
        let header = |name: &str| {
            let mut lines = request.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let (user, key) = (header("x-user"), header("x-key"));
        let mut me = json!({
            "name": format!("{}/{}", user.unwrap_or("nobody"), key.unwrap_or("none")),
        });
        let text = request.rsplit("\r\n").next().unwrap_or_default();
        for field in ["city", "plan", "seat"] {
            if text.contains(field) {
                me[field] = "Oslo".into();
            }
        }
        let body = json!({ "data": { "me": me } }).to_string();
        Reply::Whole(answer(200, "", body.as_bytes()))
    })
}

/// Tokens with what their bearers see: every user with and without the scope, with every outcome of both policies, and
/// with claims that nothing depends on.
fn all_callers(key: &Made) -> Vec<(Option<String>, Value)> {
    let mut callers = vec![(None, json!(["nobody", null, null, null]))];
    for user in ["ann", "ben", "cem", "a", "annn"] {
        for scope in ["people", "other", "peoples"] {
            for (plan, vip) in [
                ("gold", true),
                ("gold", false),
                ("lead", true),
                ("golden", false),
            ] {
                let more = json!({ "sub": user, "scope": scope, "plan": plan, "vip": vip });
                let seen = |may: bool| may.then_some("Oslo");
                let sees = json!([
                    user,
                    seen(scope == "people"),
                    seen(plan == "gold"),
                    seen(vip)
                ]);
                callers.push((Some(key.token(&claims(more))), sees));
            }
        }
    }
    callers
}

/// What of an answer depends on who asks: a header made of a claim, a credential that is passed on, a field that needs a
/// scope, and fields that need policies.
#[test]
fn no_two_callers_with_other_claims_share_an_answer() {
    let accounts = echo();
    let decides = StubSubgraph::start(|_, request| {
        let asked = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let asked: Value = serde_json::from_str(asked).unwrap_or_default();
        let decided = json!({ "policies": { "vip": asked["claims"]["vip"] } });
        StubReply::Whole(stub_answer(200, "", decided.to_string().as_bytes()))
    });
    let key = Made::new("1");
    let server = Server::json(&jwks(&[&key]));
    let yaml = format!(
        "override_subgraph_url: {{ accounts: '{}' }}\n{SHARING}\
         authorization: {{ directives: enforce, policies: {{ rules: {{ paid: {{ eq: [{{ jwt_claim: plan }}, gold] }} }}, \
         http: {{ url: '{}', timeout: 60s, cache_ttl: 1h }} }} }}\n\
         authentication: {{ router: {{ jwt: {{ last_known_good: '', jwks: [{{ url: '{}', poll_interval: 1h, request_timeout: 60s, issuers: ['{ISSUER}'], audiences: [us] }}] }} }} }}\n",
        accounts.url(),
        decides.url(),
        server.url()
    );
    let graph = Graph::changed(&yaml, &[RESTRICTED, &[POLICIES]].concat());
    let callers = all_callers(&key);
    let (done, all) = (AtomicUsize::new(0), operations());
    std::thread::scope(|scope| {
        for seed in 0..8 {
            let (callers, done, address) = (&callers, &done, graph.address());
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                let mut connections: Vec<Connection> =
                    (0..8).map(|_| Connection::open(address)).collect();
                while done.fetch_add(8, Ordering::Relaxed) < all {
                    // All of them ask before any of them reads.
                    let mut asked = Vec::new();
                    for connection in &mut connections {
                        let at = rng.below(callers.len());
                        let credential = [None, Some("k"), Some("kk")][rng.below(3)];
                        let (token, query) =
                            (callers[at].0.as_deref(), "{ me { name city plan seat } }");
                        bear_with(connection, token, credential, query);
                        asked.push((at, credential.unwrap_or("none")));
                    }
                    for (connection, (at, credential)) in connections.iter_mut().zip(asked) {
                        let answer = connection.read().json();
                        let (me, mut expected) = (&answer["data"]["me"], callers[at].1.clone());
                        let user = expected[0].as_str().unwrap();
                        expected[0] = format!("{user}/{credential}").into();
                        let found = json!([me["name"], me["city"], me["plan"], me["seat"]]);
                        assert_eq!(found, expected, "{answer}");
                    }
                }
            });
        }
    });
    let asked = accounts.asked();
    assert!(asked < all, "nothing was shared: {asked}");
    println!(
        "{all} operations of {} callers, {asked} requests",
        callers.len()
    );
    assert_eq!(server.requests().len(), 1);
    // What the service decided is known of each caller that has claims.
    assert!(decides.asked() < callers.len(), "{}", decides.asked());
}

/// A key is replaced by another while clients ask 500 times a second: every token is good all the time, and the set is
/// fetched once more, or twice if a request had looked for its key just before the set came.
#[test]
fn keys_are_replaced_under_load_and_no_good_token_is_refused() {
    const CLIENTS: u32 = 4;
    const TURNS: u32 = 500;
    /// Of one client: all of them ask 500 times a second.
    const PACE: Duration = Duration::from_millis(8);
    let (old, new) = (Made::new("old"), Made::new("new"));
    let server = Server::json(&jwks(&[&old]));
    let yaml = format!(
        "authentication: {{ router: {{ jwt: {{ last_known_good: '', jwks: [{{ url: '{}', poll_interval: 1h, request_timeout: 60s, \
         issuers: ['{ISSUER}'], audiences: [us] }}] }} }} }}\n\
         authorization: {{ directives: enforce, require_authentication: true }}\n",
        server.url()
    );
    let graph = Graph::changed(&yaml, RESTRICTED);
    let rotated = AtomicUsize::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (old, new, rotated, server, address) =
                (&old, &new, &rotated, &server, graph.address());
            scope.spawn(move || {
                let mut connection = Connection::open(address);
                for turn in 0..TURNS {
                    // On time, or at once if that is over.
                    std::thread::sleep(
                        (start + PACE * turn).saturating_duration_since(Instant::now()),
                    );
                    if client == 0 && turn == TURNS / 3 {
                        server.answer(Some(ok(&jwks(&[new]), "")));
                        rotated.store(1, Ordering::Release);
                    }
                    // Tokens are made with the new key once it is published; old ones go on.
                    let is_new = rotated.load(Ordering::Acquire) == 1 && turn % 2 == 0;
                    let key = if is_new { new } else { old };
                    let token = key.token(&claims(json!({ "sub": format!("{client}-{turn}") })));
                    bear(&mut connection, Some(&token), "{ me { name } }");
                    let answer = connection.read();
                    assert_eq!(answer.codes(), [""; 0], "{client} {turn}");
                }
            });
        }
    });
    let (all, took) = (CLIENTS * TURNS, start.elapsed());
    let fetched = server.requests().len();
    println!("{all} requests in {took:?}, {fetched} fetches");
    // The first was before.
    assert!((2..=3).contains(&fetched), "{fetched}");
}
