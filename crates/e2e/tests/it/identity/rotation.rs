//! Many callers at a time: nobody gets what is somebody else's, and new keys cost no good token its answer.

use std::sync::atomic::{AtomicUsize, Ordering};

use ogive_testbase::Rng;
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
    headers: { all: { request: [{ insert: { name: x-user, from_context: 'apollo::authentication::jwt_claims', path: .sub } }] } }\n\
    authorization: { directives: enforce }\nhttp: { workers: 1 }\n";

/// Operations; `OGIVE_CALLERS` says another number.
fn operations() -> usize {
    let asked = std::env::var("OGIVE_CALLERS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(4_000)
}

fn bear(connection: &mut Connection, token: Option<&str>, query: &str) {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    let body = json!({ "query": query }).to_string();
    connection.write(&request("POST", "/graphql", &headers, body.as_bytes()));
}

/// What of an answer depends on who asks: a header made of a claim, and a field that needs a scope.
#[test]
fn no_two_callers_with_other_claims_share_an_answer() {
    // Says whom it was told to be asked by.
    let accounts = Toxic::start(|_, request| {
        let user = request
            .lines()
            .find_map(|line| line.strip_prefix("x-user: "));
        let user = user.unwrap_or("nobody");
        let city = if request.contains("city") {
            ",\"city\":\"Oslo\""
        } else {
            ""
        };
        let body = format!("{{\"data\":{{\"me\":{{\"name\":\"{user}\"{city}}}}}}}");
        Reply::Whole(answer(200, "", body.as_bytes()))
    });
    let key = Made::new("1");
    let server = Server::json(&jwks(&[&key]));
    let yaml = format!(
        "override_subgraph_url: {{ accounts: '{}' }}\n{SHARING}\
         authentication: {{ router: {{ jwt: {{ last_known_good: '', jwks: [{{ url: '{}', issuers: ['{ISSUER}'], audiences: [us] }}] }} }} }}\n",
        accounts.url(),
        server.url()
    );
    let graph = Graph::changed(&yaml, RESTRICTED);
    // Callers by what they claim: every user with and without the scope, and with claims that nothing depends on.
    let mut callers: Vec<(Option<String>, Value)> = vec![(None, json!(["nobody", null]))];
    for user in ["ann", "ben", "cem", "a", "annn"] {
        for scope in ["people", "other", "peoples"] {
            for other in 0..2 {
                let more = json!({ "sub": user, "scope": scope, "other": other });
                let city = (scope == "people").then_some("Oslo");
                callers.push((Some(key.token(&claims(more))), json!([user, city])));
            }
        }
    }
    let (done, joined) = (AtomicUsize::new(0), operations());
    std::thread::scope(|scope| {
        for seed in 0..8 {
            let (callers, done, address) = (&callers, &done, graph.address());
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                let mut connections: Vec<Connection> =
                    (0..8).map(|_| Connection::open(address)).collect();
                while done.fetch_add(8, Ordering::Relaxed) < joined {
                    // All of them ask before any of them reads.
                    let asked: Vec<usize> = connections
                        .iter_mut()
                        .map(|connection| {
                            let at = rng.below(callers.len());
                            bear(connection, callers[at].0.as_deref(), "{ me { name city } }");
                            at
                        })
                        .collect();
                    for (connection, at) in connections.iter_mut().zip(asked) {
                        let answer = connection.read().json();
                        let me = &answer["data"]["me"];
                        assert_eq!(json!([me["name"], me["city"]]), callers[at].1, "{answer}");
                    }
                }
            });
        }
    });
    assert!(
        accounts.asked() < operations(),
        "nothing was shared: {}",
        accounts.asked()
    );
    assert_eq!(server.requests().len(), 1);
}

/// A key is replaced by another while clients ask: every token is good all the time, and the set is fetched once more,
/// or twice if a request had looked for its key just before the set came.
#[test]
fn keys_are_replaced_under_load_and_no_good_token_is_refused() {
    let (old, new) = (Made::new("old"), Made::new("new"));
    let server = Server::json(&jwks(&[&old]));
    let yaml = format!(
        "authentication: {{ router: {{ jwt: {{ last_known_good: '', jwks: [{{ url: '{}', poll_interval: 1h, \
         issuers: ['{ISSUER}'], audiences: [us] }}] }} }} }}\n\
         authorization: {{ directives: enforce, require_authentication: true }}\n",
        server.url()
    );
    let graph = Graph::changed(&yaml, RESTRICTED);
    let rotated = AtomicUsize::new(0);
    let each = 300;
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (old, new, rotated, server, address) =
                (&old, &new, &rotated, &server, graph.address());
            scope.spawn(move || {
                let mut connection = Connection::open(address);
                for turn in 0..each {
                    if client == 0 && turn == each / 3 {
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
    let fetched = server.requests().len();
    assert!((2..=3).contains(&fetched), "{fetched}");
}
