//! A server that follows a script: one list of acts per connection.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// What to do next on a connection. After the last act the connection is held until the client closes it.
pub(crate) enum Act {
    /// Read a request and write these bytes.
    Answer(&'static str),
    /// Read a request and close without an answer.
    ReadAndClose,
    /// Close at once.
    Close,
    /// Read a request and say nothing.
    Silence,
    /// Read a request and write these bytes, a packet each.
    Drip(&'static str),
    /// Read a request, write these bytes and close.
    Last(Vec<u8>),
    /// Read a request, write these bytes, and end only this direction.
    HalfClose(&'static str),
    /// Read the head of a request and write these bytes before anything of its body is read.
    Early(&'static str),
    /// The same, and close without reading the rest.
    EarlyLast(&'static str),
    /// Write these bytes without being asked.
    Say(&'static str),
}

#[derive(Clone, Default)]
struct Seen {
    connections: usize,
    requests: Vec<String>,
    closed: Vec<usize>,
    said: usize,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: watch::Receiver<Seen>,
}

impl Server {
    pub(crate) async fn start(script: Vec<Vec<Act>>) -> Server {
        Server::start_at("127.0.0.1:0".parse().unwrap(), script).await
    }
    pub(crate) async fn start_at(address: SocketAddr, script: Vec<Vec<Act>>) -> Server {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, seen) = watch::channel(Seen::default());
        let tell = Arc::new(tell);
        let script = Mutex::new(script.into_iter());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut number = 0;
                tell.send_modify(|seen| {
                    number = seen.connections;
                    seen.connections += 1;
                });
                let acts = script.lock().unwrap().next().unwrap_or_default();
                let tell = Arc::clone(&tell);
                tokio::spawn(async move {
                    play(stream, acts, &tell).await;
                    tell.send_modify(|seen| seen.closed.push(number));
                });
            }
        });
        Server { address, seen }
    }
    pub(crate) fn connections(&self) -> usize {
        self.seen.borrow().connections
    }
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.borrow().requests.clone()
    }
    /// Waits until so many requests have been read.
    pub(crate) async fn received(&self, count: usize) {
        let mut seen = self.seen.clone();
        seen.wait_for(|s| s.requests.len() >= count).await.unwrap();
    }
    /// Waits until that connection is closed from either side.
    pub(crate) async fn closed(&self, connection: usize) {
        let mut seen = self.seen.clone();
        seen.wait_for(|s| s.closed.contains(&connection))
            .await
            .unwrap();
    }
    /// Waits until something was said without being asked.
    pub(crate) async fn said(&self) {
        let mut seen = self.seen.clone();
        seen.wait_for(|s| s.said > 0).await.unwrap();
    }
}

async fn play(mut stream: TcpStream, acts: Vec<Act>, tell: &watch::Sender<Seen>) {
    stream.set_nodelay(true).unwrap();
    for act in acts {
        match act {
            Act::Close => return,
            Act::Say(bytes) => {
                stream.write_all(bytes.as_bytes()).await.unwrap();
                tell.send_modify(|seen| seen.said += 1);
                continue;
            }
            _ => {}
        }
        let is_early = matches!(act, Act::Early(_) | Act::EarlyLast(_));
        let Some(request) = read_request(&mut stream, !is_early).await else {
            return;
        };
        tell.send_modify(|seen| seen.requests.push(request));
        match act {
            Act::Answer(bytes) | Act::Early(bytes) => {
                stream.write_all(bytes.as_bytes()).await.unwrap();
            }
            Act::EarlyLast(bytes) => {
                stream.write_all(bytes.as_bytes()).await.unwrap();
                return;
            }
            Act::Last(bytes) => {
                stream.write_all(&bytes).await.unwrap();
                return;
            }
            Act::HalfClose(bytes) => {
                stream.write_all(bytes.as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
            }
            Act::Drip(bytes) => {
                for byte in bytes.as_bytes() {
                    stream.write_all(&[*byte]).await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
            Act::Silence | Act::Say(_) => {}
            Act::ReadAndClose | Act::Close => return,
        }
    }
    let mut bytes = vec![0; 64 << 10];
    while stream.read(&mut bytes).await.is_ok_and(|n| n > 0) {}
}

async fn read_request(stream: &mut TcpStream, with_body: bool) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0; 1];
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes.clone()).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; if with_body { length } else { 0 }];
    stream.read_exact(&mut body).await.ok()?;
    bytes.extend(body);
    Some(String::from_utf8(bytes).unwrap())
}
