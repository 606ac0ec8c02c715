//! Subscribers: clients that wait for events, all on one thread, each with a connection and a subscription of its own.
//!
//! What comes is not parsed: number and time stand at known keys. Only messages without a number are looked at as JSON,
//! and the few events that are kept to be compared when all is over.

use std::{
    cell::{Cell, RefCell},
    io,
    net::SocketAddr,
    rc::Rc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
};

use super::{now_micros, protocol, read_payload};
use crate::{load::Tally, model::EventProtocol};

/// The key of the handshake: nobody here checks what it is answered with.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
/// How long one subscriber may take to be there.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many subscribers come at the same time.
const TOGETHER: usize = 32;
/// What an event says that follows others which were dropped.
const DROPPED: &[u8] = b"droppedEvents";
/// How many events are kept at the beginning to be compared.
const KEEP_FIRST: u64 = 16;
/// Every how many events one is kept after that.
const KEEP_EVERY: u64 = 997;
/// Most events that are kept.
const KEPT_MAX: usize = 64;

/// What subscribers ask, and how.
#[derive(Clone, Debug)]
pub struct Question {
    /// Where.
    pub address: SocketAddr,
    /// How.
    pub protocol: EventProtocol,
    /// The path.
    pub path: String,
    /// The operation.
    pub query: String,
    /// Whether each asks for something else.
    pub distinct: bool,
}

impl Question {
    fn body(&self, i: usize) -> Value {
        let of = if self.distinct { i } else { 0 };
        json!({ "query": self.query, "variables": { "of": of } })
    }
}

/// What one subscriber got.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// The number of the last event.
    pub last: u64,
    /// Events of the range that is counted.
    pub counted: u64,
    /// Events behind a later one, or twice; they are not counted otherwise.
    pub disordered: u64,
    /// Whether it was told of a loss, or of an end.
    pub told: bool,
    /// How it ended, if it did.
    pub end: Option<String>,
}

/// All subscribers.
pub struct Clients {
    /// What each got.
    pub received: Rc<Vec<RefCell<Received>>>,
    /// What all got.
    pub deliveries: Rc<DeliveryTally>,
    tasks: Vec<JoinHandle<()>>,
}

/// What all got together.
pub struct DeliveryTally {
    /// Events from this number on are counted.
    from: Cell<u64>,
    start: Cell<Instant>,
    /// When the last one came.
    pub last: Cell<Instant>,
    /// Lags, and how many.
    pub tally: RefCell<Tally>,
    /// Messages to be compared.
    pub kept: RefCell<Vec<Vec<u8>>>,
    length: Cell<usize>,
    n: Cell<u64>,
}

impl DeliveryTally {
    /// Counts anew, from this event on.
    pub fn reset(&self, from: u64) {
        self.from.set(from);
        self.start.set(Instant::now());
        self.last.set(Instant::now());
        *self.tally.borrow_mut() = Tally::new(false);
        self.kept.borrow_mut().clear();
        self.n.set(0);
    }

    /// Notes an event.
    fn event(&self, received: &mut Received, message: &[u8], n: u64, at: u64) {
        if n <= received.last {
            received.disordered += 1;
            return;
        }
        received.last = n;
        if n < self.from.get() {
            return;
        }
        received.counted += 1;
        let now = Instant::now();
        self.last.set(now);
        let lag = Duration::from_micros(now_micros().saturating_sub(at));
        let length = message.len();
        // Messages of WebSockets hold ids, so lengths are compared as long as they are the same for all.
        let odd = self.length.replace(length) != length;
        let since = now - self.start.get();
        self.tally.borrow_mut().answer(since, lag, lag, length, odd);
        if odd && message.windows(DROPPED.len()).any(|w| w == DROPPED) {
            received.told = true;
        }
        let before = self.n.replace(self.n.get() + 1);
        if odd || before < KEEP_FIRST || before.is_multiple_of(KEEP_EVERY) {
            let mut kept = self.kept.borrow_mut();
            if kept.len() < KEPT_MAX {
                kept.push(message.to_vec());
            }
        }
    }
}

impl Clients {
    /// Lets so many subscribers come, or says why one could not.
    pub async fn open(question: &Question, n: usize) -> Result<Clients, String> {
        let now = Instant::now();
        let deliveries = Rc::new(DeliveryTally {
            from: Cell::new(0),
            start: Cell::new(now),
            last: Cell::new(now),
            tally: RefCell::new(Tally::new(false)),
            kept: RefCell::default(),
            length: Cell::new(0),
            n: Cell::new(0),
        });
        let received = Rc::new(vec![RefCell::new(Received::default()); n]);
        let mut clients = Clients {
            received: Rc::clone(&received),
            deliveries: Rc::clone(&deliveries),
            tasks: Vec::with_capacity(n),
        };
        let numbers: Vec<usize> = (0..n).collect();
        for numbers in numbers.chunks(TOGETHER) {
            let coming = numbers.iter().map(|i| {
                let (question, i) = (question.clone(), *i);
                let open = async move { Connection::open(&question, i).await };
                let open = tokio::time::timeout(PATIENCE, open);
                (i, tokio::task::spawn_local(open))
            });
            for (i, coming) in coming.collect::<Vec<_>>() {
                let failed = |why: &str| format!("subscriber {} of {n}: {why}", i + 1);
                let connection = match coming.await {
                    Ok(Ok(Ok(connection))) => connection,
                    Ok(Ok(Err(error))) => return Err(failed(&error.to_string())),
                    Ok(Err(_)) => return Err(failed("not there in time")),
                    Err(_) => return Err(failed("a task of the lab panicked")),
                };
                let (received, deliveries) = (Rc::clone(&received), Rc::clone(&deliveries));
                clients.tasks.push(tokio::task::spawn_local(async move {
                    let end = connection.listen(&received[i], &deliveries).await;
                    let mut received = received[i].borrow_mut();
                    received.told = true;
                    received.end.get_or_insert(end);
                }));
            }
        }
        Ok(clients)
    }

    /// How many have got an event with this number or a later one, or wait for none any more.
    pub fn n_beyond(&self, n: u64) -> usize {
        let beyond = |received: &&RefCell<Received>| {
            let received = received.borrow();
            received.last >= n || received.end.is_some()
        };
        self.received.iter().filter(beyond).count()
    }

    /// How the first one ended that did, if any.
    pub fn first_end(&self) -> Option<String> {
        let mut ends = self.received.iter().filter_map(|r| r.borrow().end.clone());
        ends.next()
    }

    /// Counts anew, from this event on.
    pub fn reset(&self, from: u64) {
        for received in self.received.iter() {
            let mut received = received.borrow_mut();
            (received.counted, received.disordered) = (0, 0);
        }
        self.deliveries.reset(from);
    }

    /// Leaves, without a word.
    pub fn leave(self) {
        for task in self.tasks {
            task.abort();
        }
    }
}

/// A connection with one subscription.
struct Connection {
    stream: TcpStream,
    protocol: EventProtocol,
    raw: Vec<u8>,
    is_chunked: bool,
}

impl Connection {
    async fn open(question: &Question, i: usize) -> io::Result<Connection> {
        let mut stream = TcpStream::connect(question.address).await?;
        stream.set_nodelay(true)?;
        let (path, host) = (&question.path, question.address);
        let body = question.body(i).to_string();
        let (request, wanted) = match question.protocol {
            EventProtocol::Websocket => (
                format!(
                    "GET {path} HTTP/1.1\r\nhost: {host}\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
                     sec-websocket-version: 13\r\nsec-websocket-key: {KEY}\r\n\
                     sec-websocket-protocol: graphql-transport-ws\r\n\r\n"
                ),
                101,
            ),
            EventProtocol::Sse => (
                format!(
                    "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
                     accept: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                ),
                200,
            ),
        };
        stream.write_all(request.as_bytes()).await?;
        let mut connection = Connection {
            stream,
            protocol: question.protocol,
            raw: Vec::with_capacity(4096),
            is_chunked: false,
        };
        connection.head(wanted).await?;
        if question.protocol == EventProtocol::Websocket {
            connection.say("{\"type\":\"connection_init\"}").await?;
            connection.acknowledged().await?;
            let payload = body;
            let subscribe =
                format!("{{\"id\":\"1\",\"type\":\"subscribe\",\"payload\":{payload}}}");
            connection.say(&subscribe).await?;
        }
        Ok(connection)
    }

    async fn head(&mut self, wanted: u16) -> io::Result<()> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut head = httparse::Response::new(&mut headers);
            if let httparse::Status::Complete(end) = head.parse(&self.raw).map_err(other)? {
                let status = head.code.unwrap_or(0);
                if status != wanted {
                    let rest = String::from_utf8_lossy(&self.raw[end..]);
                    return Err(other(format!("status {status}: {rest}")));
                }
                let mut headers = head.headers.iter();
                self.is_chunked = headers.any(|h| h.name.eq_ignore_ascii_case("transfer-encoding"));
                self.raw.drain(..end);
                return Ok(());
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.raw).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn say(&mut self, text: &str) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(text.len() + 8);
        protocol::write_masked(&mut bytes, protocol::TEXT, text.as_bytes());
        self.stream.write_all(&bytes).await
    }

    async fn acknowledged(&mut self) -> io::Result<()> {
        loop {
            while let Some(frame) = protocol::read(&self.raw).map_err(other)? {
                let content = frame.content(&mut self.raw).to_vec();
                self.raw.drain(..frame.end);
                let text = String::from_utf8_lossy(&content);
                if text.contains("connection_ack") {
                    return Ok(());
                }
                if frame.opcode == protocol::CLOSE {
                    return Err(other(format!("closed: {}", close_words(&content))));
                }
            }
            self.fill().await?;
        }
    }

    /// Notes what comes, to the end, and says how it ended.
    async fn listen(mut self, received: &RefCell<Received>, deliveries: &DeliveryTally) -> String {
        let listened = match self.protocol {
            EventProtocol::Websocket => self.messages(received, deliveries).await,
            EventProtocol::Sse => self.stream(received, deliveries).await,
        };
        listened.unwrap_or_else(|error| error.to_string())
    }

    async fn messages(
        &mut self,
        received: &RefCell<Received>,
        deliveries: &DeliveryTally,
    ) -> io::Result<String> {
        let mut answer = Vec::new();
        loop {
            let mut at = 0;
            while let Some(frame) = protocol::read(&self.raw[at..]).map_err(other)? {
                let content = frame.content(&mut self.raw[at..]);
                match frame.opcode {
                    protocol::TEXT => match read_payload(content) {
                        Some((n, time)) => {
                            deliveries.event(&mut received.borrow_mut(), content, n, time);
                        }
                        None => match Word::of_message(content) {
                            Word::Ping => {
                                let pong = b"{\"type\":\"pong\"}";
                                protocol::write_masked(&mut answer, protocol::TEXT, pong);
                            }
                            word => word.note(&mut received.borrow_mut()),
                        },
                    },
                    protocol::PING => {
                        protocol::write_masked(&mut answer, protocol::PONG, content);
                    }
                    protocol::CLOSE => return Ok(format!("closed: {}", close_words(content))),
                    _ => {}
                }
                at += frame.end;
            }
            self.raw.drain(..at);
            if !answer.is_empty() {
                self.stream.write_all(&answer).await?;
                answer.clear();
            }
            self.fill().await?;
        }
    }

    async fn stream(
        &mut self,
        received: &RefCell<Received>,
        deliveries: &DeliveryTally,
    ) -> io::Result<String> {
        let (mut chunks, mut body) = (protocol::Chunks::default(), Vec::with_capacity(4096));
        loop {
            if self.is_chunked {
                chunks.take(&mut self.raw, &mut body).map_err(other)?;
            } else {
                body.append(&mut self.raw);
            }
            let mut at = 0;
            while let Some(length) = body[at..].windows(2).position(|w| w == b"\n\n") {
                let event = &body[at..at + length];
                at += length + 2;
                match read_payload(event) {
                    Some((n, time)) => deliveries.event(&mut received.borrow_mut(), event, n, time),
                    None => Word::of_event(event).note(&mut received.borrow_mut()),
                }
            }
            body.drain(..at);
            if chunks.ended {
                return Ok("the stream ended".into());
            }
            self.fill().await?;
        }
    }
}

/// What a message says that is no event.
enum Word {
    Nothing,
    Ping,
    /// Something was lost, or went wrong.
    Told,
    /// It is over.
    End(String),
}

impl Word {
    fn of_message(content: &[u8]) -> Word {
        let message: Value = serde_json::from_slice(content).unwrap_or_default();
        let shown = || String::from_utf8_lossy(content).chars().take(300).collect();
        match message["type"].as_str().unwrap_or_default() {
            "ping" => Word::Ping,
            "error" | "complete" => Word::End(shown()),
            "next" => Word::Told,
            _ => Word::Nothing,
        }
    }

    fn of_event(event: &[u8]) -> Word {
        let text = String::from_utf8_lossy(event);
        let shown = || text.chars().take(300).collect();
        if text
            .lines()
            .all(|line| line.starts_with(':') || line.is_empty())
        {
            return Word::Nothing;
        }
        if text.contains("complete") {
            return Word::End(shown());
        }
        // Heartbeats may be events without data.
        let has_data = text
            .lines()
            .any(|line| line.starts_with("data:") && line.len() > 6);
        if has_data { Word::Told } else { Word::Nothing }
    }

    fn note(self, received: &mut Received) {
        match self {
            Word::Nothing | Word::Ping => {}
            Word::Told => received.told = true,
            Word::End(shown) => {
                received.told = true;
                received.end.get_or_insert(shown);
            }
        }
    }
}

/// Code and reason of a close frame.
fn close_words(content: &[u8]) -> String {
    match content {
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            format!("{code} {}", String::from_utf8_lossy(reason))
        }
        _ => "without a code".into(),
    }
}

fn other(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
