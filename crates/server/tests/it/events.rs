//! Answers of events, which are written beside the parser of HTTP/1.1 and end with their connection.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{Mutex, mpsc},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use ogive_server::{
    ResponseBody,
    events::{Events, PartFraming, chunk},
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::Running;

/// Events that the test hands over one by one, from its own thread; tells when it is dropped.
struct HandedOver(UnboundedReceiver<&'static str>, mpsc::Sender<()>);

impl Events for HandedOver {
    fn poll_part(&mut self, cx: &mut Context<'_>, framing: PartFraming) -> Poll<Option<Bytes>> {
        self.0.poll_recv(cx).map(|part| {
            part.map(|part| match framing {
                PartFraming::Plain => part.into(),
                PartFraming::Chunked => chunk(part.as_bytes()),
            })
        })
    }
}

impl Drop for HandedOver {
    fn drop(&mut self) {
        let _ = self.1.send(());
    }
}

/// A server whose only answer is made of the events that the test sends.
fn serving() -> (Running, UnboundedSender<&'static str>, mpsc::Receiver<()>) {
    let (send, parts) = unbounded_channel();
    let (dropped, is_dropped) = mpsc::channel();
    let parts = Mutex::new(Some(HandedOver(parts, dropped)));
    let answer = move |_: &Parts| {
        let parts = parts.lock().unwrap().take().expect("asked once");
        Response::new(ResponseBody::of_events(parts))
    };
    (Running::start(|_| {}, answer), send, is_dropped)
}

fn ask(server: &Running, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut read = String::new();
    while !read.ends_with(end) {
        let mut byte = [0; 1];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{read}");
        read.push(char::from(byte[0]));
    }
    read
}

fn rest(stream: &mut TcpStream) -> String {
    let mut read = String::new();
    stream.read_to_string(&mut read).unwrap();
    read
}

#[test]
fn each_event_is_a_chunk_that_leaves_at_once_and_the_connection_ends_with_the_last() {
    let (server, parts, _dropped) = serving();
    // The second request is never answered, as its client is told.
    let request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let mut stream = ask(&server, &request.repeat(2));
    let head = until(&mut stream, "\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("connection: close\r\n"), "{head}");
    assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
    for part in ["one", "two"] {
        parts.send(part).unwrap();
        let wanted = format!("3\r\n{part}\r\n");
        assert_eq!(until(&mut stream, &format!("{part}\r\n")), wanted);
    }
    for part in ["a", "", "b"] {
        parts.send(part).unwrap();
    }
    drop(parts);
    assert_eq!(rest(&mut stream), "1\r\na\r\n1\r\nb\r\n0\r\n\r\n");
    assert_eq!(server.stop().cut_off, 0);
}

#[test]
fn who_knows_no_chunks_is_sent_events_as_they_are() {
    let (server, parts, _dropped) = serving();
    let mut stream = ask(&server, "GET / HTTP/1.0\r\nhost: a\r\n\r\n");
    let head = until(&mut stream, "\r\n\r\n");
    assert!(!head.contains("transfer-encoding"), "{head}");
    parts.send("one").unwrap();
    parts.send("two").unwrap();
    drop(parts);
    assert_eq!(rest(&mut stream), "onetwo");
    server.stop();
}

#[test]
fn whoever_makes_the_events_feels_that_the_client_has_left() {
    let (server, parts, dropped) = serving();
    let mut stream = ask(&server, "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    until(&mut stream, "\r\n\r\n");
    stream.write_all(&[b'x'; 5_000]).unwrap();
    parts.send("one").unwrap();
    until(&mut stream, "one\r\n");
    drop(stream);
    dropped.recv_timeout(Duration::from_secs(60)).unwrap();
    server.stop();
}

#[tokio::test]
async fn over_http2_they_are_parts_like_others() {
    let (server, parts, _dropped) = serving();
    let stream = tokio::net::TcpStream::connect(server.address);
    let stream = TokioIo::new(stream.await.unwrap());
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream);
    let (mut send, connection) = handshake.await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::get("http://a/").body(Empty::<Bytes>::new());
    let answer = send.send_request(request.unwrap()).await.unwrap();
    let mut body = answer.into_body();
    for part in ["one", "two"] {
        parts.send(part).unwrap();
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), part);
    }
    drop(parts);
    assert!(body.collect().await.unwrap().to_bytes().is_empty());
    drop(send);
    connection.await.unwrap().unwrap();
    server.stop();
}
