//! Subgraphs that a test plays on real sockets: every byte and every end of a connection under its control.
//!
//! - [`StubSubgraph`] answers by itself: a reply for every request.
//! - [`ManualSubgraph`] is answered for by the test, which so decides when an answer comes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

/// What a subgraph does once it has read a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// These bytes; then it waits for the next request.
    Whole(Vec<u8>),
    /// These bytes; then it closes.
    Last(Vec<u8>),
    /// These bytes; then nothing, until the gateway leaves.
    Hang(Vec<u8>),
    /// These bytes; then the connection is reset.
    Reset(Vec<u8>),
    /// These bytes; then one more at a time, until the gateway leaves.
    Drip(Vec<u8>),
}

/// A subgraph that answers as it was told to.
#[derive(Debug)]
pub struct StubSubgraph {
    /// Where it listens.
    pub address: SocketAddr,
    asked: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl StubSubgraph {
    /// `reply` is called with the number of the request, from 0, and its text.
    pub fn start(reply: impl Fn(usize, &str) -> Reply + Send + Sync + 'static) -> StubSubgraph {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let scripted = StubSubgraph {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
            requests: Arc::default(),
        };
        let asked = Arc::clone(&scripted.asked);
        let requests = Arc::clone(&scripted.requests);
        let reply = Arc::new(reply);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let (asked, requests) = (Arc::clone(&asked), Arc::clone(&requests));
                let reply = Arc::clone(&reply);
                std::thread::spawn(move || {
                    let mut buffer = Vec::new();
                    while let Some(request) = read_request(&mut stream, &mut buffer) {
                        let nth = asked.fetch_add(1, Ordering::SeqCst);
                        let what = reply(nth, &request);
                        requests.lock().unwrap().push(request);
                        if !play(&mut stream, what) {
                            return;
                        }
                    }
                });
            }
        });
        scripted
    }
    /// One reply after the other, whatever the connection; the last one repeats.
    pub fn in_turn(replies: Vec<Reply>) -> StubSubgraph {
        StubSubgraph::start(move |nth, _| replies[nth.min(replies.len() - 1)].clone())
    }
    /// The same answer to every request.
    pub fn answering(status: u16, headers: &str, body: impl AsRef<[u8]>) -> StubSubgraph {
        let answer = answer(status, headers, body.as_ref());
        StubSubgraph::start(move |_, _| Reply::Whole(answer.clone()))
    }
    /// How many requests came.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
    /// What came, as text.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

/// How long a test waits for what has to come.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A subgraph whose requests the test answers.
#[derive(Debug)]
pub struct ManualSubgraph {
    /// Where it listens.
    pub address: SocketAddr,
    connections: mpsc::Receiver<TcpStream>,
}

impl ManualSubgraph {
    /// Listens.
    pub fn start() -> ManualSubgraph {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, connections) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stream.is_ok_and(|stream| tell.send(stream).is_err()) {
                    return;
                }
            }
        });
        ManualSubgraph {
            address,
            connections,
        }
    }
    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
    /// Waits for the next connection and reads its first request.
    ///
    /// # Panics
    /// If none comes.
    pub fn next(&self) -> ReceivedRequest {
        let stream = self.connections.recv_timeout(PATIENCE);
        let mut stream = stream.expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = Vec::new();
        let request = read_request(&mut stream, &mut rest).expect("a request");
        ReceivedRequest { request, stream }
    }
}

/// A request that waits for its answer.
#[derive(Debug)]
pub struct ReceivedRequest {
    /// Its text.
    pub request: String,
    /// Its connection; what is read from it comes after the request.
    pub stream: TcpStream,
}

impl ReceivedRequest {
    /// Writes an answer. The connection stays open.
    pub fn answer(&mut self, status: u16, headers: &str, body: impl AsRef<[u8]>) {
        let answer = answer(status, headers, body.as_ref());
        self.stream.write_all(&answer).unwrap();
    }
    /// Whether the other side has left, or leaves while this waits, without saying anything more.
    pub fn is_left(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(n) => n == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

/// A whole HTTP answer.
pub fn answer(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    out.extend_from_slice(body);
    out
}

fn play(stream: &mut TcpStream, reply: Reply) -> bool {
    // A gateway that has heard enough leaves while it is written to.
    match reply {
        Reply::Whole(bytes) => stream.write_all(&bytes).is_ok(),
        Reply::Last(bytes) => {
            let _ = stream.write_all(&bytes);
            false
        }
        Reply::Hang(bytes) => {
            let _ = stream.write_all(&bytes);
            let _ = stream.read(&mut [0]);
            false
        }
        Reply::Reset(bytes) => {
            let _ = stream.write_all(&bytes);
            let now = Some(Duration::ZERO);
            rustix::net::sockopt::set_socket_linger(&*stream, now).unwrap();
            false
        }
        Reply::Drip(bytes) => {
            let _ = stream.write_all(&bytes);
            // A socket that nothing comes from is a clock.
            let tick = Some(Duration::from_millis(5));
            stream.set_read_timeout(tick).unwrap();
            loop {
                match stream.read(&mut [0]) {
                    Err(error)
                        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                    {
                        if stream.write_all(b" ").is_err() {
                            return false;
                        }
                    }
                    _ => return false,
                }
            }
        }
    }
}

/// Reads a request that has `content-length`; `None` at the end.
pub fn read_request(stream: &mut impl Read, buffer: &mut Vec<u8>) -> Option<String> {
    let mut piece = [0; 16 << 10];
    loop {
        if let Some(head) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
            let length = text.split("content-length: ").nth(1).unwrap_or("0");
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            let end = head + 4 + length;
            if buffer.len() >= end {
                let request = String::from_utf8_lossy(&buffer[..end]).into_owned();
                buffer.drain(..end);
                return Some(request);
            }
        }
        match stream.read(&mut piece) {
            Ok(n) if n > 0 => buffer.extend_from_slice(&piece[..n]),
            _ => return None,
        }
    }
}
