//! The memory of all requests together: every path fills it, new requests are refused near the limit, and everything is
//! given back.

use std::{
    io::Write as _,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame};
use ogive_base::{
    Peer, Reservation,
    memory::{CHUNK, SMALL},
};
use ogive_gateway::{Gateway, ResponseBody, WorkerState};

use crate::setup::{gateway_with, get, post, send};

/// A body of which a part came, and nothing more comes.
struct Stuck(Option<Bytes>);

impl Body for Stuck {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Poll::Pending,
        }
    }
}

/// A body of which these pieces came, the last of them first; `None` is its end. Without it more is to come.
struct Pieces(Vec<Option<Bytes>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        match self.0.pop() {
            Some(bytes) => Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes)))),
            None => Poll::Pending,
        }
    }
}

fn json(body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::post("/graphql").header("content-type", "application/json");
    request.body(Full::new(body.into())).unwrap()
}

/// Waits until nothing is counted: threads may still be giving back.
async fn settled(gateway: &Gateway) {
    while gateway.memory().used() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn new_requests_are_refused_near_the_limit_and_what_runs_is_finished() {
    let gateway = gateway_with("limits: { max_memory: 1MB }");
    let memory = gateway.memory();
    assert_eq!(memory.limit(), 1_000_000);
    let ask = || post(&gateway, "", r#"{"query":"{__typename}"}"#);
    assert_eq!(ask().await.status, 200);
    assert_eq!(memory.used(), 0, "all of it is given back");
    let others = Reservation::new(memory);
    others.grow(45 * CHUNK).unwrap();
    assert_eq!(ask().await.status, 200, "it is small");
    let large = format!(
        r#"{{"query":"{{__typename}}","x":"{}"}}"#,
        "x".repeat(50_000)
    );
    let refused = post(&gateway, "", large).await;
    assert_eq!(
        (refused.status.as_u16(), &*refused.code()),
        (503, "GATEWAY_MEMORY_LIMIT")
    );
    others.run();
    others
        .grow(12 * CHUNK)
        .expect("what runs may use the rest, but for a sixteenth");
    others.grow(100_000).expect_err("that is for small ones");
    assert_eq!(ask().await.status, 200, "nothing large keeps it out");
    let small = Reservation::new(memory);
    small.grow(SMALL).unwrap();
    let refused = ask().await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.code(), "GATEWAY_MEMORY_LIMIT");
    assert_eq!(refused.header("retry-after"), "1");
    drop((others, small));
    assert_eq!(ask().await.status, 200);
}

#[tokio::test(flavor = "current_thread")]
async fn every_way_in_counts_and_is_refused() {
    let padded = |n: usize| {
        format!(
            r#"{{"query":"{{__typename}}","nobody":"{}"}}"#,
            "x".repeat(n)
        )
    };
    let gzip = |text: &str| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(text.as_bytes()).unwrap();
        out.finish().unwrap()
    };
    let small = |yaml: &str| gateway_with(&format!("limits: {{ max_memory: 1MB }}\n{yaml}"));
    let gateway = small("");
    for body in [
        padded(700_000),
        // The table of its values.
        format!(
            r#"{{"query":"{{__typename}}","variables":{{"a":[{}0]}}}}"#,
            "0,".repeat(100_000)
        ),
        // The text of a document, and its syntax tree.
        format!(
            r##"{{"query":"#{}\n{{__typename}}"}}"##,
            "x".repeat(300_000)
        ),
    ] {
        let answer = post(&gateway, "", body).await;
        assert_eq!(
            (answer.status.as_u16(), &*answer.code()),
            (503, "GATEWAY_MEMORY_LIMIT")
        );
        settled(&gateway).await;
    }
    // A few hundred bytes become 900,000.
    let encoded = gzip(&padded(900_000));
    assert!(encoded.len() < 10_000);
    let mut request = json(encoded);
    let value = http::HeaderValue::from_static("gzip");
    request.headers_mut().insert("content-encoding", value);
    let answer = send(&gateway, request).await;
    assert_eq!(
        (answer.status.as_u16(), &*answer.code()),
        (503, "GATEWAY_MEMORY_LIMIT")
    );
    settled(&gateway).await;
    let path = format!("/graphql?query={{__typename}}&x={}", "x".repeat(60_000));
    let gateway = gateway_with("limits: { max_memory: 100kB }");
    let answer = get(&gateway, &path, "").await;
    assert_eq!(answer.code(), "GATEWAY_MEMORY_LIMIT");
    settled(&gateway).await;
    // Every entry of a batch costs what a request costs.
    let gateway = small("batching: { enabled: true, maximum_size: 1000 }");
    let batch = format!("[{}]", vec![r#"{"query":"{__typename}"}"#; 200].join(","));
    let answer = post(&gateway, "", batch).await;
    let entries = answer.json();
    let entries = entries.as_array().unwrap();
    let refused = |entry: &&serde_json::Value| {
        entry["errors"][0]["extensions"]["code"] == "GATEWAY_MEMORY_LIMIT"
    };
    let refused = entries.iter().filter(refused).count();
    assert!((1..200).contains(&refused), "{refused} of 200");
    settled(&gateway).await;
    // Fields before files.
    let gateway = small("file_uploads: { enabled: true }");
    let form = format!(
        "--x\r\ncontent-disposition: form-data; name=\"operations\"\r\n\r\n{}\r\n--x--\r\n",
        padded(800_000)
    );
    let request = Request::post("/graphql")
        .header("content-type", "multipart/form-data; boundary=x")
        .header("apollo-require-preflight", "true");
    let answer = send(&gateway, request.body(Full::new(form.into())).unwrap()).await;
    assert_eq!(
        (answer.status.as_u16(), &*answer.code()),
        (503, "GATEWAY_MEMORY_LIMIT")
    );
    settled(&gateway).await;
}

#[tokio::test(flavor = "current_thread")]
async fn what_arrives_counts_and_a_client_that_leaves_gives_it_back() {
    let gateway = gateway_with("limits: { max_memory: 1MB }");
    let worker = WorkerState::new();
    let request = Request::post("/graphql").header("content-type", "application/json");
    let body = Stuck(Some(Bytes::from(vec![b' '; 400_000])));
    {
        let mut stuck = pin!(gateway.handle(request.body(body).unwrap(), Peer::Unix, &worker));
        let mut context = Context::from_waker(Waker::noop());
        while gateway.memory().used() < 400_000 {
            assert!(stuck.as_mut().poll(&mut context).is_pending());
        }
        let other = post(&gateway, "", " ".repeat(500_000)).await;
        assert_eq!(other.code(), "GATEWAY_MEMORY_LIMIT");
        let small = post(&gateway, "", r#"{"query":"{__typename}"}"#).await;
        assert_eq!(small.status, 200, "there is room for small ones");
    }
    assert_eq!(gateway.memory().used(), 0);
}

#[tokio::test(flavor = "current_thread")]
async fn a_response_counts_until_it_is_sent() {
    let yaml = "limits: { max_memory: 1MB }\nsupergraph: { introspection: true }";
    let gateway = gateway_with(yaml);
    let request = json(r#"{"query":"{__schema{types{name fields{name}}}}"}"#);
    let worker = WorkerState::new();
    let response: Response<ResponseBody> = gateway.handle(request, Peer::Unix, &worker).await;
    assert_eq!(response.status(), 200);
    let held = gateway.memory().used();
    assert!(held >= response.body().len(), "{held} bytes");
    let sent = response.into_body().collect().await.unwrap();
    assert!(!sent.to_bytes().is_empty());
    assert_eq!(gateway.memory().used(), 0);
}

/// An encoder holds much more than what it makes, for as long as its client takes nothing.
#[tokio::test(flavor = "current_thread")]
async fn encoders_count_and_without_room_for_one_an_answer_is_sent_as_it_is() {
    let gateway = gateway_with("limits: { max_memory: 16MB }");
    let worker = WorkerState::new();
    let long = "x".repeat(1_200);
    let fields: String = (0..100).map(|i| format!("{long}{i}:__typename ")).collect();
    let mut responses = Vec::new();
    for _ in 0..10 {
        let mut request = json(format!(r#"{{"query":"{{{fields}}}"}}"#));
        let value = http::HeaderValue::from_static("br");
        request.headers_mut().insert("accept-encoding", value);
        let response: Response<ResponseBody> = gateway.handle(request, Peer::Unix, &worker).await;
        assert_eq!(response.status(), 200);
        responses.push(response);
    }
    let is_encoded = |r: &&Response<ResponseBody>| r.headers().contains_key("content-encoding");
    let encoded = responses.iter().filter(is_encoded).count();
    assert!((1..10).contains(&encoded), "{encoded} of 10 are encoded");
    assert!(gateway.memory().used() <= gateway.memory().limit());
    for response in responses {
        let sent = response.into_body().collect().await.unwrap();
        assert!(!sent.to_bytes().is_empty());
    }
    assert_eq!(gateway.memory().used(), 0);
}

/// Nobody reads them, so they cost no more than their bytes.
#[tokio::test(flavor = "current_thread")]
async fn what_nobody_reads_is_skipped() {
    let gateway = gateway_with("limits: { max_memory: 8MB }");
    let noise = vec![r#"{"":0}"#; 250_000].join(",");
    for body in [
        format!(r#"{{"query":"{{__typename}}","extensions":{{"a":[{noise}]}}}}"#),
        format!(r#"{{"query":"{{__typename}}","nobody":[{noise}]}}"#),
    ] {
        let answer = post(&gateway, "", body).await;
        assert_eq!(answer.status, 200);
    }
    assert_eq!(gateway.memory().refused(), 0);
}

#[tokio::test(flavor = "current_thread")]
async fn variables_count_against_the_memory_of_a_request() {
    let gateway = gateway_with("limits: { max_request_memory: 100kB }");
    let body = |n: usize| {
        let list = "0,".repeat(n);
        format!(r#"{{"query":"{{__typename}}","variables":{{"a":[{list}0]}}}}"#)
    };
    assert_eq!(post(&gateway, "", body(1_000)).await.status, 200);
    let refused = post(&gateway, "", body(20_000)).await;
    assert_eq!(
        (refused.status.as_u16(), &*refused.code()),
        (413, "REQUEST_MEMORY_LIMIT")
    );
}

/// A client that holds up many bodies gets no more than its share of the memory, and others are answered.
#[tokio::test(flavor = "current_thread")]
async fn bodies_that_do_not_end_leave_memory_for_other_clients() {
    let gateway = gateway_with("limits: { max_memory: 8MB }");
    let worker = WorkerState::new();
    let ask = |last: u8, body: Pieces| {
        let request = Request::post("/graphql").header("content-type", "application/json");
        let request = request.body(body).unwrap();
        let peer = Peer::Tcp(([10, 0, 0, last], 1).into());
        Box::pin(gateway.handle(request, peer, &worker))
    };
    let piece = Bytes::from_static(&[b' '; 10_000]);
    let mut cx = Context::from_waker(Waker::noop());
    // Some wait for the rest, some are refused and drained.
    let mut held = Vec::new();
    for _ in 0..400 {
        let pieces = vec![Some(piece.clone()), Some(piece.clone())];
        let mut asked = ask(1, Pieces(pieces));
        let _ = asked.as_mut().poll(&mut cx);
        held.push(asked);
    }
    let used = gateway.memory().used();
    assert!((3_000_000..=5_000_000).contains(&used), "{used}");
    let body = Bytes::from_static(br#"{"query":"{__typename}"}"#);
    let pieces = vec![None, Some(body.clone()), Some(piece.clone())];
    let other = ask(2, Pieces(pieces)).await;
    assert_eq!(other.status(), 200);
    drop((held, other));
    settled(&gateway).await;
    let again = ask(1, Pieces(vec![None, Some(body), Some(piece)])).await;
    assert_eq!(again.status(), 200);
}
