//! Credentials that are withdrawn, and policies that are decided otherwise, end what goes on by them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ogive_identity::digest::digest_of;
use ogive_testbase::subgraph::{Reply, StubSubgraph, answer};
use serde_json::{Value, json};

use super::{
    EVENTS, GRAPH, Streamed, TEXTS,
    feed::FeedStream,
    over_http::{ADDED, Client, MULTIPART, SSE},
    over_websocket::{self, MODERN, run},
    paid_texts, set_up,
};
use crate::{
    graph::Served,
    http_client::post_with,
    identity::{
        ISSUER, claims,
        made::{Folder, Made, jwks},
    },
    subscriptions::feed::Feed,
};

const OFTEN: &str = "authorization: { revocation: { check_interval: 20ms } }\n";
/// The same, and who does not answer for this long is not waited for. Who is slow answers sooner.
const IMPATIENT: &str =
    "authorization: { revocation: { check_interval: 20ms, unanswered_max: 15s } }\n";

/// A file with one key, `abc`.
fn api_keys(scopes: &Value) -> String {
    let digest: String = digest_of(b"abc")
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    json!({"keys": {"a": {"sha256": digest, "scopes": scopes}}}).to_string()
}

fn router(yaml: &str) -> String {
    format!("authentication: {{ router: {{ {yaml} }} }}\n{OFTEN}")
}

/// Whoever knows tokens: until it is told otherwise, all are active.
struct Issuer {
    service: StubSubgraph,
    withdrawn: Arc<AtomicBool>,
    fails: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Issuer {
    fn start() -> Issuer {
        let (withdrawn, fails) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let asked = Arc::<AtomicUsize>::default();
        let (gone, dead, counted) = (withdrawn.clone(), fails.clone(), asked.clone());
        let service = StubSubgraph::start(move |_, request| {
            counted.fetch_add(1, Ordering::SeqCst);
            if dead.load(Ordering::SeqCst) {
                return Reply::Whole(answer(500, "", b"{}"));
            }
            let is_kept = request.contains("token=kept");
            let is_active = is_kept || !gone.load(Ordering::SeqCst);
            let said = json!({ "active": is_active, "sub": "ida" }).to_string();
            Reply::Whole(answer(200, "", said.as_bytes()))
        });
        Issuer {
            service,
            withdrawn,
            fails,
            asked,
        }
    }
    fn yaml(&self) -> String {
        format!(
            "introspection: {{ endpoint: '{}', client_id: gw, client_secret: s3c, cache_ttl: 0s, request_timeout: 60s }}",
            self.service.url()
        )
    }
    /// Waits until it was asked so many times more.
    fn wait_for_more(&self, more: usize) {
        let enough = self.asked.load(Ordering::SeqCst) + more;
        wait_until(|| self.asked.load(Ordering::SeqCst) >= enough);
    }
}

/// Fails if it takes too long.
fn wait_until(is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
}

/// What a client reads of a subscription that was withdrawn after its first event.
fn read(graph: &Streamed, accept: &str, headers: &str, withdraw: impl FnOnce()) -> String {
    let mut client = Client::with(graph.served.address, accept, ADDED, headers);
    let mut source = graph.feed.opened();
    source.add("1");
    client.until("text of 1");
    withdraw();
    let rest = client.rest();
    source.wait_until_left();
    rest
}

#[test]
fn whatever_withdraws_a_credential_ends_what_goes_on_by_it() {
    let folder = Folder::new();
    let keys = folder.write("keys.json", &api_keys(&json!([])));
    let graph = Streamed::with(&router(&format!(
        "api_keys: {{ file: '{}' }}",
        keys.display()
    )));
    for accept in [SSE, MULTIPART] {
        let text = read(&graph, accept, "x-api-key: abc\r\n", || {
            folder.write("keys.json", r#"{"keys":{}}"#);
        });
        assert!(text.contains("INVALID_API_KEY"), "{accept}: {text}");
        folder.write("keys.json", &api_keys(&json!([])));
        // It is good again for whoever comes back, as soon as the file was looked at.
        let address = graph.served.address;
        wait_until(|| post_with(address, "{ping}", &[("x-api-key", "abc")]).status == 200);
    }

    let issuer = Issuer::start();
    let graph = Streamed::with(&router(&issuer.yaml()));
    let text = read(&graph, SSE, "authorization: Bearer t\r\n", || {
        issuer.withdrawn.store(true, Ordering::SeqCst);
    });
    assert!(text.contains("INVALID_TOKEN"), "{text}");
    assert!(text.ends_with("event: complete\ndata:\n\n"), "{text}");

    let (key, other) = (Made::new("1"), Made::new("2"));
    let path = folder.write("jwks.json", &jwks(&[&key]));
    let set = format!(
        "jwt: {{ removed_keys_grace: 0s, jwks: [{{ url: 'file://{}', issuers: ['{ISSUER}'] }}] }}",
        path.display()
    );
    let graph = Streamed::with(&router(&set));
    let bearer = format!(
        "authorization: Bearer {}\r\n",
        key.token(&claims(json!({})))
    );
    let text = read(&graph, SSE, &bearer, || {
        folder.write("jwks.json", &jwks(&[&other]));
    });
    assert!(text.contains("INVALID_TOKEN"), "{text}");
}

#[test]
fn a_withdrawal_is_told_by_rules() {
    let folder = Folder::new();
    let keys = folder.write("keys.json", &api_keys(&json!([])));
    let rule = "error_rules: [{ codes: [INVALID_API_KEY], set_code: TOLD }]\n";
    let graph = Streamed::with(&format!(
        "{rule}{}",
        router(&format!("api_keys: {{ file: '{}' }}", keys.display()))
    ));
    let text = read(&graph, SSE, "x-api-key: abc\r\n", || {
        folder.write("keys.json", r#"{"keys":{}}"#);
    });
    assert!(text.contains("\"TOLD\""), "{text}");
}

#[test]
fn an_issuer_that_a_reload_removes_ends_what_its_tokens_began() {
    let (folder, key) = (Folder::new(), Made::new("1"));
    let path = folder.write("jwks.json", &jwks(&[&key]));
    let of = |issuer: &str| {
        // Not judged again before the reload ends it.
        let set = format!(
            "jwks: [{{ url: 'file://{}', issuers: ['{issuer}'] }}]",
            path.display()
        );
        let seldom = "authorization: { revocation: { check_interval: 10m } }";
        format!("authentication: {{ router: {{ jwt: {{ {set} }} }} }}\n{seldom}\n")
    };
    let graph = Streamed::with(&format!("  reload_window: 0s\n{}", of(ISSUER)));
    let bearer = format!(
        "authorization: Bearer {}\r\n",
        key.token(&claims(json!({})))
    );
    let text = read(&graph, MULTIPART, &bearer, || {
        let yaml = format!(
            "subscription: {{ enabled: true }}\n{}",
            of("https://other.example")
        );
        graph.reload_as(&GRAPH, &yaml);
    });
    assert!(text.contains("SUBSCRIPTION_SCHEMA_RELOAD"), "{text}");
    let again = Client::with(graph.served.address, SSE, ADDED, &bearer);
    assert!(again.head.starts_with("HTTP/1.1 401"), "{}", again.head);
}

#[test]
fn what_else_a_key_says_of_its_caller_ends_what_went_on_as_before() {
    let folder = Folder::new();
    let keys = folder.write("keys.json", &api_keys(&json!(["a"])));
    let graph = Streamed::with(&router(&format!(
        "api_keys: {{ file: '{}' }}",
        keys.display()
    )));
    let text = read(&graph, SSE, "x-api-key: abc\r\n", || {
        folder.write("keys.json", &api_keys(&json!(["a", "b"])));
    });
    assert!(text.contains("AUTHORIZATION_CHANGED"), "{text}");
}

#[test]
fn what_nobody_can_judge_goes_on_for_a_while() {
    let issuer = Issuer::start();
    let graph = Streamed::with(&router(&issuer.yaml()));
    let headers = "authorization: Bearer t\r\n";
    let mut client = Client::with(graph.served.address, SSE, ADDED, headers);
    let mut source = graph.feed.opened();
    issuer.fails.store(true, Ordering::SeqCst);
    issuer.wait_for_more(3);
    source.add("1");
    assert!(client.until("text of 1").ends_with("text of 1"));
    drop(client);

    issuer.fails.store(false, Ordering::SeqCst);
    let yaml = router(&issuer.yaml()).replace(OFTEN, IMPATIENT);
    let graph = Streamed::with(&yaml);
    let text = read(&graph, SSE, headers, || {
        issuer.fails.store(true, Ordering::SeqCst);
    });
    assert!(text.contains("AUTHENTICATION_UNAVAILABLE"), "{text}");
}

/// An issuer that takes the question and never answers: neither holds up what somebody else judges, nor goes on for ever.
#[test]
fn an_issuer_that_never_answers_holds_up_nobody_else_and_is_waited_for_no_longer_than_allowed() {
    let folder = Folder::new();
    let keys = folder.write("keys.json", &api_keys(&json!([])));
    let hangs = Arc::<AtomicBool>::default();
    let (is_hung, asked) = (Arc::clone(&hangs), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&asked);
    let service = StubSubgraph::start(move |_, _| {
        if is_hung.load(Ordering::SeqCst) {
            counted.fetch_add(1, Ordering::SeqCst);
            return Reply::Hang(Vec::new());
        }
        Reply::Whole(answer(200, "", br#"{"active":true,"sub":"ida"}"#))
    });
    let yaml = |revocation: &str| {
        router(&format!(
            "introspection: {{ endpoint: '{}', client_id: gw, client_secret: s3c, cache_ttl: 0s, request_timeout: 10m }}, \
             api_keys: {{ file: '{}' }}",
            service.url(),
            keys.display()
        ))
        .replace(OFTEN, revocation)
    };
    let graph = Streamed::with(&yaml(OFTEN));
    let bearer = "authorization: Bearer t\r\n";
    let mut opaque = Client::with(
        graph.served.address,
        SSE,
        "subscription { counted }",
        bearer,
    );
    let mut source = graph.feed.opened();
    source.send(r#"{"counted":1}"#);
    opaque.until("{\"counted\":1}");
    let text = read(&graph, SSE, "x-api-key: abc\r\n", || {
        hangs.store(true, Ordering::SeqCst);
        wait_until(|| asked.load(Ordering::SeqCst) > 0);
        folder.write("keys.json", r#"{"keys":{}}"#);
    });
    assert!(text.contains("INVALID_API_KEY"), "{text}");
    // The other one goes on: it may for five minutes.
    source.send(r#"{"counted":2}"#);
    opaque.until("{\"counted\":2}");
    hangs.store(false, Ordering::SeqCst);

    let graph = Streamed::with(&yaml(IMPATIENT));
    let text = read(&graph, SSE, "authorization: Bearer t\r\n", || {
        hangs.store(true, Ordering::SeqCst);
    });
    assert!(text.contains("AUTHENTICATION_UNAVAILABLE"), "{text}");
}

/// With `on_error: continue` a bad token beside what a proxy says of the caller counts as none, later too.
#[test]
fn a_bad_token_that_counted_as_none_ends_nothing_later() {
    let issuer = Issuer::start();
    let (folder, key) = (Folder::new(), Made::new("1"));
    let path = folder.write("jwks.json", &jwks(&[&key]));
    let graph = Streamed::with(&format!(
        "authentication: {{ router: {{ jwt: {{ on_error: Continue, jwks: [{{ url: 'file://{}', issuers: ['{ISSUER}'] }}] }}, {} }} }}\n\
         authorization: {{ claims: {{ header: x-claims, trusted: [127.0.0.1] }}, revocation: {{ check_interval: 20ms }} }}\n",
        path.display(),
        issuer.yaml()
    ));
    let expired = key.token(&claims(json!({ "exp": 1_000 })));
    let headers = format!(
        "authorization: Bearer {expired}\r\nx-claims: {{\"claims\":{{\"sub\":\"a\"}}}}\r\n"
    );
    let mut client = Client::with(graph.served.address, SSE, ADDED, &headers);
    let mut source = graph.feed.opened();
    source.add("1");
    client.until("text of 1");
    // Another one is judged as often, which shows how often that was.
    let bearer = "authorization: Bearer t\r\n";
    let _other = Client::with(
        graph.served.address,
        SSE,
        "subscription { counted }",
        bearer,
    );
    let _counter = graph.feed.opened();
    issuer.wait_for_more(5);
    source.add("2");
    client.until("text of 2");
}

#[test]
fn a_websocket_closes_when_its_credential_is_withdrawn_and_goes_on_by_a_fresh_one() {
    let issuer = Issuer::start();
    let graph = Streamed::with(&router(&issuer.yaml()));
    run(async {
        let mut client = over_websocket::Client::connect(&graph, MODERN).await;
        let payload = |token: &str| json!({ "authorization": format!("Bearer {token}") });
        client
            .say(json!({"type": "connection_init", "payload": payload("t")}))
            .await;
        assert_eq!(client.hear().await["type"], "connection_ack");
        client.subscribe("1", ADDED).await;
        let mut source = graph.feed.opened();
        client
            .say(json!({"type": "ping", "payload": payload("kept")}))
            .await;
        assert_eq!(client.hear().await["type"], "pong");
        issuer.withdrawn.store(true, Ordering::SeqCst);
        issuer.wait_for_more(2);
        source.add("1");
        assert_eq!(client.hear().await["payload"]["data"]["added"]["id"], "1");

        issuer.withdrawn.store(false, Ordering::SeqCst);
        let mut other = over_websocket::Client::connect(&graph, MODERN).await;
        other
            .say(json!({"type": "connection_init", "payload": payload("u")}))
            .await;
        assert_eq!(other.hear().await["type"], "connection_ack");
        other.subscribe("1", "subscription { counted }").await;
        let _counted = graph.feed.opened();
        issuer.withdrawn.store(true, Ordering::SeqCst);
        assert_eq!(other.closed().await, 4403);
    });
}

#[test]
fn policies_are_decided_again_for_what_goes_on() {
    // 0: it holds, 1: it does not, 2: nobody knows.
    let decided = Arc::new(AtomicU64::new(0));
    let says = Arc::clone(&decided);
    let asked = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&asked);
    let service = StubSubgraph::start(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        let said = says.load(Ordering::SeqCst);
        let body = json!({ "policies": { "paid": said == 0 } }).to_string();
        Reply::Whole(match said {
            2 => answer(500, "", b""),
            _ => answer(200, "", body.as_bytes()),
        })
    });
    let texts = paid_texts();
    let feed = Feed::start();
    let yaml = format!(
        "subscription: {{ enabled: true }}\nauthorization: {{ directives: enforce, revocation: {{ check_interval: 20ms }}, \
         claims: {{ header: x-claims, trusted: [127.0.0.1] }}, policies: {{ http: {{ url: '{}', cache_ttl: 0s, timeout: 60s }} }} }}\n",
        service.url()
    );
    let (state, config) = set_up(&[("events", EVENTS), ("texts", &texts)], &yaml, &feed);
    let graph = Streamed {
        served: Served::start(state, &config),
        feed,
        yaml,
    };
    let (paid, anybody) = ("x-claims: {\"claims\":{\"sub\":\"a\"}}\r\n", "");
    let mut stranger = Client::with(
        graph.served.address,
        SSE,
        "subscription { counted }",
        anybody,
    );
    let mut counter = graph.feed.opened();
    let text = read(&graph, SSE, paid, || {
        decided.store(2, Ordering::SeqCst);
        let enough = asked.load(Ordering::SeqCst) + 2;
        wait_until(|| asked.load(Ordering::SeqCst) >= enough);
        decided.store(1, Ordering::SeqCst);
    });
    assert!(text.contains("AUTHORIZATION_CHANGED"), "{text}");
    // Who comes back sees what is decided now.
    let mut client = Client::with(graph.served.address, SSE, ADDED, paid);
    let mut source: FeedStream = graph.feed.opened();
    source.add("2");
    let shown = client.until("\n\n") + &client.until("\n\n");
    assert!(shown.contains("UNAUTHORIZED_FIELD_OR_TYPE"), "{shown}");
    // Who needs no policy goes on.
    counter.send(r#"{"counted":1}"#);
    stranger.until("{\"counted\":1}");
}

/// What a client reads of an answer whose deferred part never comes, from where its key is withdrawn.
fn deferred(accept: &str) -> String {
    let events = EVENTS.replace("ping: Int }\ntype Mut", "review: Review }\ntype Mut");
    let first = StubSubgraph::start(|_, _| {
        let review = r#"{"data":{"review":{"__typename":"Review","id":"1"}}}"#;
        Reply::Whole(answer(
            200,
            "content-type: application/json\r\n",
            review.as_bytes(),
        ))
    });
    let never = StubSubgraph::start(|_, _| Reply::Hang(Vec::new()));
    let folder = Folder::new();
    let keys = folder.write("keys.json", &api_keys(&json!([])));
    let feed = Feed::start();
    let yaml = format!(
        "override_subgraph_url: {{ events: '{}', texts: '{}' }}\n{}",
        first.url(),
        never.url(),
        router(&format!("api_keys: {{ file: '{}' }}", keys.display()))
    );
    let (state, config) = set_up(&[("events", &events), ("texts", TEXTS)], &yaml, &feed);
    let served = Served::start(state, &config);
    let query = "{ review { id ... @defer { text } } }";
    let mut client = Client::with(served.address, accept, query, "x-api-key: abc\r\n");
    assert!(client.until("\"hasNext\":true").contains(r#""id":"1""#));
    folder.write("keys.json", r#"{"keys":{}}"#);
    client.rest()
}

#[test]
fn an_answer_in_parts_ends_with_its_credential() {
    for (accept, place) in [
        (
            "multipart/mixed;incrementalSpec=v0.2, application/json",
            "completed",
        ),
        (
            "multipart/mixed;deferSpec=20220824, application/json",
            "incremental",
        ),
    ] {
        let rest = deferred(accept);
        assert!(rest.contains("INVALID_API_KEY"), "{rest}");
        assert!(rest.contains(&format!("\"{place}\":[")), "{rest}");
        assert!(rest.contains("\"hasNext\":false"), "{rest}");
        assert!(
            rest.trim_end().ends_with("--"),
            "the framing ends, too: {rest}"
        );
    }
}
