//! What the end of a credential does to what goes on by it, and to those who share that.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ogive_stream::{Protocol, Received, WebSocket, WebSocketLimits};
use serde_json::json;

use super::{
    GRAPH, Streamed,
    over_http::{ADDED, Client, MULTIPART, SSE, event},
    over_websocket::{Client as Socket, MODERN, run, upgrade},
};
use crate::{http_client::post_with, scripts::Script};

/// Believes this machine about who asks.
pub(super) const TRUSTED: &str =
    "authorization: { claims: { header: x-claims, trusted: [127.0.0.1] } }\n";

/// What a proxy says of a caller whose credential ends then.
pub(super) fn until(exp: &str) -> String {
    format!("x-claims: {{\"claims\":{{\"sub\":\"ida\",\"exp\":{exp}}}}}\r\n")
}

#[test]
fn a_credential_that_ends_in_no_year_is_refused_and_breaks_nobodys_subscription() {
    let graph = Streamed::with(TRUSTED);
    let address = graph.served.address;
    for exp in ["1e19", "1e300", "253402300800", "-1", "\"soon\""] {
        let refused = Client::with(address, SSE, ADDED, &until(exp));
        let head = &refused.head;
        assert!(head.starts_with("HTTP/1.1 400"), "{exp}: {head}");
    }
    let last = until("253402300799");
    let mut first = Client::with(address, SSE, ADDED, &last);
    let mut source = graph.feed.opened();
    let mut second = Client::subscribe(address, MULTIPART, ADDED);
    graph.wait_for_open(2);
    source.add("1");
    first.until(&event("1"));
    second.until("text of 1");
    assert!(graph.feed.is_quiet());
}

#[test]
fn strangers_do_not_subscribe_where_queries_or_mutations_need_somebody_who_is_known() {
    for word in ["query", "mutation", "subscription", "introspection"] {
        let graph = Streamed::with(&format!(
            "authorization: {{ require_authentication_for: [{word}], claims: {{ header: x-claims, trusted: [127.0.0.1] }} }}\n"
        ));
        let address = graph.served.address;
        let known = Client::with(address, SSE, ADDED, "x-claims: {}\r\n");
        assert!(known.head.starts_with("HTTP/1.1 200"), "{}", known.head);
        let wanted = if word == "introspection" { 200 } else { 401 };
        for claims in ["", "x-claims: {\"authenticated\":false}\r\n"] {
            let stranger = Client::with(address, MULTIPART, ADDED, claims);
            let head = &stranger.head;
            let wanted = format!("HTTP/1.1 {wanted}");
            assert!(head.starts_with(&wanted), "{word}: {head}");
        }
        let query = post_with(address, "{ping}", &[]).status;
        assert_eq!(query == 401, word == "query", "{word}");
    }
}

/// A connection of a client of whom a proxy says this, which has introduced itself.
pub(super) async fn socket(graph: &Streamed, protocol: Protocol, headers: &str) -> Socket {
    let (status, answer, stream, handshake) = upgrade(graph, protocol, headers).await;
    handshake.check(status, &answer).unwrap();
    let socket = WebSocket::client(stream, &[], WebSocketLimits::default());
    let mut client = Socket { socket };
    client.say(json!({"type": "connection_init"})).await;
    client
}

/// Asks something, unless the connection has ended already.
async fn ask(client: &mut Socket) {
    let operation = json!({"type": "subscribe", "id": "q", "payload": {"query": "{ping}"}});
    let _ = client.socket.send(operation.to_string()).await;
}

/// The code with which a connection ends on which nothing is answered with data.
async fn closed_without_data(client: &mut Socket) -> u16 {
    loop {
        match client.socket.receive().await {
            Received::Closed(Some(close)) => return close.code,
            Received::Text(text) => assert!(!text.as_str().contains("\"data\""), "{text:?}"),
            Received::Control => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_connection_ends_with_what_a_proxy_said_of_its_caller() {
    let graph = Streamed::with(TRUSTED);
    let soon = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(1);
    run(async {
        for exp in ["1".to_owned(), soon.as_secs().to_string()] {
            let mut client = socket(&graph, MODERN, &until(&exp)).await;
            assert_eq!(client.closed().await, 4403, "{exp}");
        }
        let mut client = socket(&graph, MODERN, &until("1")).await;
        ask(&mut client).await;
        assert_eq!(closed_without_data(&mut client).await, 4403);
        let mut client = socket(&graph, MODERN, &until("253402300799")).await;
        assert_eq!(client.hear().await["type"], "connection_ack");
        client.subscribe("q", "mutation{ping}").await;
        assert_eq!(client.hear().await["payload"]["data"]["ping"], 1);
    });
}

#[test]
fn a_connection_is_opened_anew_when_it_is_found_out_otherwise_who_asks() {
    let others = "authorization: { claims: { header: x-claims, trusted: [10.9.9.9] } }\n";
    let pages = "cors: { policies: [{ origins: ['https://a.example'] }] }\n";
    let behind = "http: { trusted_proxies: [10.9.9.9] }\n";
    for (before, after) in [(TRUSTED, others), ("", TRUSTED), ("", pages), ("", behind)] {
        for window in ["0s", "1h"] {
            let yaml = |more: &str| format!("  reload_window: {window}\n{more}");
            let graph = Streamed::with(&yaml(before));
            let served = |more: &str| format!("subscription:\n  enabled: true\n{}", yaml(more));
            run(async {
                let mut client = socket(&graph, MODERN, "x-claims: {}\r\n").await;
                assert_eq!(client.hear().await["type"], "connection_ack");
                // What changes nothing of that leaves it open.
                let other = format!("{before}limits: {{ max_depth: 9 }}\n");
                graph.reload_as(&GRAPH, &served(&other));
                client.subscribe("q", "{ping}").await;
                assert_eq!(client.hear().await["payload"]["data"]["ping"], 1);
                assert_eq!(client.hear().await["type"], "complete");
                graph.reload_as(&GRAPH, &served(after));
                if window == "1h" {
                    // Its turn comes late, and it is asked no more until then.
                    ask(&mut client).await;
                }
                assert_eq!(closed_without_data(&mut client).await, 1012, "{after}");
            });
        }
    }
}

/// A client that asks again for a mutation would have it done twice.
#[test]
fn what_is_being_answered_is_waited_for_before_a_connection_is_opened_anew() {
    let graph = Streamed::with("  reload_window: 1h\n");
    let after = "subscription: { enabled: true, reload_window: 1h }\n\
                 cors: { policies: [{ origins: ['https://a.example'] }] }\n";
    run(async {
        let mut client = Socket::open(&graph, MODERN).await;
        client
            .subscribe("m", "mutation { withheld_subscription: ping }")
            .await;
        let mut asked = graph.feed.opened();
        graph.reload_as(&GRAPH, after);
        client.subscribe("q", "{ ping }").await;
        client.say(json!({"type": "ping"})).await;
        assert_eq!(client.hear().await["type"], "pong");
        asked.answer(200, r#"{"data":{"withheld_subscription":1}}"#);
        let told = client.hear().await;
        assert_eq!((&told["id"], &told["type"]), (&json!("m"), &json!("next")));
        assert_eq!(client.hear().await["type"], "complete");
        assert_eq!(client.closed().await, 1012);
    });
}

/// Found by a review: they went on where sockets were closed.
#[test]
fn a_stream_ends_when_other_pages_may_read_it_or_other_proxies_are_believed() {
    let pages = "cors: { policies: [{ origins: ['https://a.example'] }] }\n";
    let behind = "http: { trusted_proxies: [10.9.9.9] }\n";
    for after in [pages, behind] {
        let graph = Streamed::with("  reload_window: 0s\n");
        let client = Client::subscribe(graph.served.address, SSE, ADDED);
        let source = graph.feed.opened();
        let options = "subscription: { enabled: true, reload_window: 0s }\n";
        graph.reload_as(&GRAPH, &format!("{options}{after}"));
        let rest = client.rest();
        assert!(!rest.contains("complete"), "{rest}");
        source.wait_until_left();
    }
}

/// Found by a reviewer: what a script had let in went on when the script let it in no more.
#[test]
fn what_was_let_in_by_another_script_comes_back() {
    let text = |more: &str| {
        format!("fn router_service(service) {{ service.map_request(|request| {{ {more} }}); }}")
    };
    let script = Script::new(&text(""));
    let yaml = format!("  reload_window: 0s\n{}", script.yaml());
    let graph = Streamed::with(&yaml);
    run(async {
        let mut stream = Client::subscribe(graph.served.address, SSE, ADDED);
        let mut source = graph.feed.opened();
        let mut client = socket(&graph, MODERN, "").await;
        assert_eq!(client.hear().await["type"], "connection_ack");
        // What is the same lets the same in.
        graph.reload();
        source.add("1");
        stream.until(&event("1"));
        client.subscribe("q", "{ping}").await;
        assert_eq!(client.hear().await["payload"]["data"]["ping"], 1);
        assert_eq!(client.hear().await["type"], "complete");
        script.write(&text("throw #{ status: 403 };"));
        graph.reload();
        assert_eq!(client.closed().await, 1012);
        let rest = stream.rest();
        assert!(!rest.contains("complete"), "{rest}");
        source.wait_until_left();
    });
}
