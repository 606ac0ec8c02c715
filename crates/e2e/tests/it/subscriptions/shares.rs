//! What one client may have of subscriptions and streams: others get theirs, however many it asks for.

use crate::http_client::{Connection, request};

use super::{
    Streamed,
    over_http::{ADDED, Client, SSE},
};

/// Tables of 150 places, of which one client may have 100. Clients are named by a proxy.
const SHARES: &str = "  max_opened_subscriptions: 150\n  client: { single_connection: { max_streams: 150 } }\n\
                      http: { trusted_proxies: [127.0.0.1] }\n";
const EACH: usize = 100;

fn header(client: u8) -> String {
    format!("x-forwarded-for: 10.0.0.{client}\r\n")
}

#[test]
fn one_client_leaves_subscriptions_for_others() {
    let graph = Streamed::with(SHARES);
    let address = graph.served.address;
    let subscribe = |client| Client::with(address, SSE, ADDED, &header(client));
    let many: Vec<Client> = (0..EACH).map(|_| subscribe(1)).collect();
    assert!(many.iter().all(|one| one.head.starts_with("HTTP/1.1 200 ")));
    let refused = subscribe(1);
    assert!(
        refused.head.starts_with("HTTP/1.1 503 "),
        "{}",
        refused.head
    );
    let other = subscribe(2);
    assert!(other.head.starts_with("HTTP/1.1 200 "), "{}", other.head);
    graph.wait_for_open(EACH + 1);
    drop(many);
    graph.wait_for_open(1);
    let again = subscribe(1);
    assert!(again.head.starts_with("HTTP/1.1 200 "), "{}", again.head);
}

#[test]
fn whoever_reserves_streams_all_the_time_takes_no_others_away() {
    let graph = Streamed::with(SHARES);
    let address = graph.served.address;
    let mut connection = Connection::open(address);
    let mut reserve = |client: u8| {
        let from = format!("10.0.0.{client}");
        connection.write(&request(
            "PUT",
            "/graphql",
            &[("x-forwarded-for", &from)],
            b"",
        ));
        let answer = connection.read();
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.text()
    };
    let mine = reserve(2);
    let others: Vec<String> = (0..3 * EACH).map(|_| reserve(1)).collect();
    let open = |token: &str, client| {
        let head = format!(
            "GET /graphql HTTP/1.1\r\nhost: {address}\r\naccept: {SSE}\r\n{}\
             x-graphql-event-stream-token: {token}\r\n\r\n",
            header(client)
        );
        Client::send(address, &head).head
    };
    let opened = open(&mine, 2);
    assert!(opened.starts_with("HTTP/1.1 200 "), "{opened}");
    // Its own ones it replaces.
    let replaced = open(&others[0], 1);
    assert!(replaced.starts_with("HTTP/1.1 404 "), "{replaced}");
    let newest = open(&others[3 * EACH - 1], 1);
    assert!(newest.starts_with("HTTP/1.1 200 "), "{newest}");
}
