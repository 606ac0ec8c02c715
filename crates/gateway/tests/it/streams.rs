//! Subscriptions, where they are off, get one error whatever it is asked over; and whoever asks
//! at the wrong place learns the right one.

use http::Request;
use http_body_util::Full;

use crate::setup::{Answer, gateway_with, get, post, send};

const CODE: &str = "SUBSCRIPTIONS_NOT_SUPPORTED";
const SUBSCRIPTION: &str = r#"{"query":"subscription { renamed { id } }"}"#;
const QUERY: &str = r#"{"query":"{ __typename }"}"#;

fn told(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.code())
}

#[tokio::test(flavor = "current_thread")]
async fn subscriptions_get_one_error_on_every_transport() {
    let gateway = gateway_with("");
    assert_eq!(
        told(&post(&gateway, "*/*", SUBSCRIPTION).await),
        (400, CODE.into())
    );
    let path = "/graphql?query=subscription%7Brenamed%7Bid%7D%7D";
    assert_eq!(told(&get(&gateway, path, "*/*").await), (400, CODE.into()));
    for accept in [
        "text/event-stream",
        "multipart/mixed;subscriptionSpec=\"1.0\", text/event-stream",
    ] {
        for body in [SUBSCRIPTION, QUERY] {
            let answer = post(&gateway, accept, body).await;
            assert_eq!(told(&answer), (406, CODE.into()), "{accept}");
            assert_eq!(
                answer.header("content-type"),
                "application/json; charset=utf-8"
            );
        }
        // As an `EventSource` asks, which can send no other headers.
        let request = Request::get(path).header("accept", accept);
        let answer = send(&gateway, request.body(Full::default()).unwrap()).await;
        assert_eq!(told(&answer), (406, CODE.into()), "{accept}");
    }
    // Parts are for what is deferred.
    let parts = post(&gateway, "multipart/mixed", SUBSCRIPTION).await;
    assert_eq!(told(&parts), (400, CODE.into()));
    let parts = post(&gateway, "multipart/mixed", QUERY).await;
    assert_eq!(parts.status, 200);
    assert!(parts.header("content-type").starts_with("multipart/mixed"));
    // Whoever can read JSON as well is answered.
    let both = post(
        &gateway,
        "multipart/mixed;deferSpec=20220824, application/json",
        QUERY,
    )
    .await;
    assert_eq!(both.status, 200);
    assert_eq!(
        post(&gateway, "text/event-stream;q=0, */*", QUERY)
            .await
            .status,
        200
    );
}

#[tokio::test(flavor = "current_thread")]
async fn websockets_get_the_same_error_wherever_they_knock() {
    let gateway = gateway_with("");
    for path in [
        "/graphql",
        "/",
        "/graphql?query=%7B__typename%7D",
        "/subscriptions",
    ] {
        let request = Request::get(path)
            .header("connection", "Upgrade")
            .header("upgrade", "WebSocket")
            .header("sec-websocket-protocol", "graphql-transport-ws");
        let answer = send(&gateway, request.body(Full::default()).unwrap()).await;
        assert_eq!(told(&answer), (400, CODE.into()), "{path}");
        let message = answer.json()["errors"][0]["message"].to_string();
        assert!(message.contains("WebSocket"), "{message}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn the_endpoint_is_named_to_whoever_misses_it() {
    let gateway = gateway_with("http: { graphql_endpoint: /api/graphql }");
    for (method, path, status) in [
        ("POST", "/", 405),
        ("POST", "/health", 405),
        ("POST", "/graphql", 404),
        ("GET", "/query", 404),
        ("PUT", "/nothing", 404),
    ] {
        let request = Request::builder().method(method).uri(path);
        let answer = send(&gateway, request.body(Full::from(QUERY)).unwrap()).await;
        assert_eq!(answer.status, status, "{method} {path}");
        let message = answer.json()["errors"][0]["message"].to_string();
        assert!(
            message.contains("/api/graphql"),
            "{method} {path}: {message}"
        );
    }
}
