//! Bodies that come in parts.

use std::{
    io::{Read, Write},
    net::TcpStream,
    pin::Pin,
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
    parts::{PartReceiver, channel},
};
use tokio::sync::Notify;

use crate::Running;

/// Parts that the test hands over one by one, from its own thread.
fn handed_over(parts: tokio::sync::mpsc::UnboundedReceiver<Bytes>) -> PartReceiver {
    let (mut sender, receiver) = channel(1 << 10);
    let mut parts = parts;
    tokio::task::spawn_local(async move {
        while let Some(part) = parts.recv().await {
            if sender.send(part).await.is_err() {
                break;
            }
        }
    });
    receiver
}

/// A server whose only answer is made of the parts that the test sends.
fn serving(
    configure: impl FnOnce(&mut ogive_server::ServeOptions),
) -> (Running, tokio::sync::mpsc::UnboundedSender<Bytes>) {
    let (send, parts) = tokio::sync::mpsc::unbounded_channel();
    let parts = Mutex::new(Some(parts));
    let answer = move |_: &Parts| {
        let parts = parts.lock().unwrap().take().expect("asked once");
        Response::new(ResponseBody::of_parts(Box::pin(handed_over(parts))))
    };
    (Running::start(configure, answer), send)
}

#[test]
fn each_part_leaves_before_the_next_one_is_made() {
    let (server, parts) = serving(|_| {});
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    let mut read = String::new();
    let mut until = |end: &str| {
        while !read.ends_with(end) {
            let mut piece = [0; 1 << 10];
            let n = stream.read(&mut piece).unwrap();
            assert!(n > 0, "{read}");
            read.push_str(std::str::from_utf8(&piece[..n]).unwrap());
        }
        std::mem::take(&mut read)
    };
    until("\r\n\r\n");
    for part in ["one", "two"] {
        parts.send(part.into()).unwrap();
        assert_eq!(until(&format!("{part}\r\n")), format!("3\r\n{part}\r\n"));
    }
    drop(parts);
    assert_eq!(until("0\r\n\r\n"), "0\r\n\r\n");
    assert_eq!(server.stop().cut_off, 0);
}

#[tokio::test]
async fn over_http2_an_answer_whose_client_waits_for_the_next_part_is_not_stalled() {
    let brief = Duration::from_millis(250);
    let (server, parts) = serving(|options| options.write_timeout = brief);
    let stream = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    let handshake = hyper::client::conn::http2::handshake;
    let (mut send, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::get("http://a/")
        .body(Empty::<Bytes>::new())
        .unwrap();
    let mut body = send.send_request(request).await.unwrap().into_body();
    for part in ["one", "two"] {
        // Longer than a client may take nothing of an answer that is there.
        tokio::time::sleep(brief * 4).await;
        parts.send(part.into()).unwrap();
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), part);
    }
    drop(parts);
    assert!(body.collect().await.unwrap().to_bytes().is_empty());
    drop(send);
    connection.await.unwrap().unwrap();
    server.stop();
}

/// Never ready; tells when it is dropped.
struct Endless(mpsc::Sender<()>, Notify);

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}
impl futures_core::Stream for Endless {
    type Item = std::io::Result<Bytes>;
    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let _ = &self.1;
        Poll::Pending
    }
}

#[test]
fn whoever_makes_the_parts_feels_that_the_client_has_left() {
    let (dropped, is_dropped) = mpsc::channel();
    let server = Running::start(
        |_| {},
        move |_| {
            let parts = Endless(dropped.clone(), Notify::new());
            Response::new(ResponseBody::of_parts(Box::pin(parts)))
        },
    );
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    assert!(stream.read(&mut [0; 1 << 10]).unwrap() > 0);
    drop(stream);
    is_dropped.recv_timeout(Duration::from_secs(60)).unwrap();
    server.stop();
}
