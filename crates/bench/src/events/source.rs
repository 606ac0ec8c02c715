//! The source of events: a subgraph with one subscription field, in a process of its own.
//!
//! It speaks `graphql-transport-ws` with any number of subscriptions on a connection, and server-sent events. Every
//! event goes to every subscription. It is written once and copied from then on, so that it is not what is measured.
//! `POST /emit?events=N&rate=R` has it send events, without a rate all at once: who takes them slowly makes it wait.
//! `GET /stats` says how many subscriptions are open, and the number of the next event.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    io,
    rc::Rc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Notify,
    task::LocalSet,
};

use super::{FIRST, now_micros, payload, protocol};
use crate::{Error, Result};

/// Longest request.
const REQUEST_MAX: usize = 64 << 10;
/// About how much is written at once.
const WRITE: usize = 64 << 10;
/// Most events of one order.
const EVENTS_MAX: u64 = 10_000_000;

/// Serves until the process ends.
pub fn serve(listen: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::system("the source of events could not be started"))?;
    let serving = async move {
        let listener = TcpListener::bind(listen).await?;
        let source = Rc::new(Source::default());
        loop {
            let (stream, _) = listener.accept().await?;
            let source = Rc::clone(&source);
            tokio::task::spawn_local(async move {
                // Who leaves is nobody's problem.
                let _ = connection(stream, &source).await;
            });
        }
    };
    let served: io::Result<()> = LocalSet::new().block_on(&runtime, serving);
    served.map_err(Error::system("the source of events ended"))
}

#[derive(Default)]
struct Source {
    feeds: RefCell<Vec<Rc<Feed>>>,
    /// Events that were made.
    made: Cell<u64>,
    /// Subscriptions since the last reset.
    opened: Cell<u64>,
    /// Whether somebody asks for `__typename`.
    typename: Cell<bool>,
}

/// One connection with subscriptions.
struct Feed {
    queue: RefCell<VecDeque<Item>>,
    wake: Notify,
    is_websocket: bool,
    /// Ids as they are written in JSON, and whether `__typename` is asked for.
    subscriptions: RefCell<Vec<(String, bool)>>,
}

enum Item {
    Event(Rc<Made>),
    /// Bytes as they are.
    Bytes(Vec<u8>),
}

/// An event in bytes.
struct Made {
    plain: String,
    typed: String,
}

impl Feed {
    fn push(&self, item: Item) {
        self.queue.borrow_mut().push_back(item);
        self.wake.notify_one();
    }

    fn push_text(&self, text: &str) {
        let mut bytes = Vec::with_capacity(text.len() + 4);
        protocol::write_head(&mut bytes, protocol::TEXT, text.len());
        bytes.extend_from_slice(text.as_bytes());
        self.push(Item::Bytes(bytes));
    }

    fn write(&self, item: &Item, out: &mut Vec<u8>) {
        let made = match item {
            Item::Bytes(bytes) => return out.extend_from_slice(bytes),
            Item::Event(made) => made,
        };
        for (id, typename) in self.subscriptions.borrow().iter() {
            let payload = if *typename { &made.typed } else { &made.plain };
            if self.is_websocket {
                let (before, between) = ("{\"id\":", ",\"type\":\"next\",\"payload\":");
                let length = before.len() + id.len() + between.len() + payload.len() + 1;
                protocol::write_head(out, protocol::TEXT, length);
                for part in [before, id, between, payload, "}"] {
                    out.extend_from_slice(part.as_bytes());
                }
            } else {
                let content = format!("event: next\ndata: {payload}\n\n");
                protocol::write_chunk(out, content.as_bytes());
            }
        }
    }
}

impl Source {
    fn n_open(&self) -> usize {
        let feeds = self.feeds.borrow();
        feeds.iter().map(|f| f.subscriptions.borrow().len()).sum()
    }

    fn stats(&self) -> Value {
        json!({
            "total": { "requests": self.opened.get(), "bytes_out": 0 },
            "open": self.n_open(),
            "next": FIRST + self.made.get(),
        })
    }

    fn subscribe(&self, feed: &Feed, id: String, request: &Value) {
        let query = request["query"].as_str().unwrap_or_default();
        let typename = query.contains("__typename");
        self.typename.set(self.typename.get() || typename);
        self.opened.set(self.opened.get() + 1);
        feed.subscriptions.borrow_mut().push((id, typename));
    }

    fn emit(&self) {
        let (n, at) = (FIRST + self.made.get(), now_micros());
        self.made.set(self.made.get() + 1);
        let typed = if self.typename.get() {
            payload(n, at, true)
        } else {
            String::new()
        };
        let made = Rc::new(Made {
            plain: payload(n, at, false),
            typed,
        });
        for feed in self.feeds.borrow().iter() {
            feed.push(Item::Event(Rc::clone(&made)));
        }
    }

    /// Sends so many events, at a rate or at once.
    async fn emit_all(&self, events: u64, rate: f64) {
        let start = Instant::now();
        let mut sent = 0;
        while sent < events {
            let due = if rate > 0.0 {
                ((start.elapsed().as_secs_f64() * rate) as u64 + 1).min(events)
            } else {
                events
            };
            while sent < due {
                self.emit();
                sent += 1;
            }
            if sent < events {
                let next = start + Duration::from_secs_f64(sent as f64 / rate);
                tokio::time::sleep_until(next.into()).await;
            }
        }
    }
}

/// What a connection turned out to be.
enum Kind {
    WebSocket,
    Stream(Value),
}

async fn connection(stream: TcpStream, source: &Rc<Source>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = stream.into_split();
    let mut buffer = Vec::with_capacity(2048);
    let kind = loop {
        let Some((head, body)) = request(&mut reader, &mut buffer).await? else {
            return Ok(());
        };
        if let Some(key) = &head.key {
            let accept = protocol::accept(key.as_bytes());
            let answer = format!(
                "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
                 sec-websocket-accept: {accept}\r\nsec-websocket-protocol: graphql-transport-ws\r\n\r\n"
            );
            writer.write_all(answer.as_bytes()).await?;
            break Kind::WebSocket;
        }
        if let Some(asked) = head.subscription(body) {
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
                          transfer-encoding: chunked\r\n\r\n";
            writer.write_all(answer.as_bytes()).await?;
            break Kind::Stream(asked);
        }
        let answer = answer(&head, source).to_string();
        let text = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
            answer.len()
        );
        writer.write_all(text.as_bytes()).await?;
    };
    feed(kind, source, reader, writer, buffer).await
}

/// Serves one connection of events to its end.
async fn feed(
    kind: Kind,
    source: &Rc<Source>,
    mut reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    mut buffer: Vec<u8>,
) -> io::Result<()> {
    let feed = Rc::new(Feed {
        queue: RefCell::default(),
        wake: Notify::new(),
        is_websocket: matches!(kind, Kind::WebSocket),
        subscriptions: RefCell::default(),
    });
    source.feeds.borrow_mut().push(Rc::clone(&feed));
    let writing = tokio::task::spawn_local(write(writer, Rc::clone(&feed)));
    let ended = match kind {
        Kind::WebSocket => messages(source, &feed, &mut reader, &mut buffer).await,
        Kind::Stream(body) => {
            source.subscribe(&feed, String::new(), &body);
            let mut nothing = [0; 64];
            loop {
                match reader.read(&mut nothing).await {
                    Ok(0) => break Ok(()),
                    Ok(_) => {}
                    Err(error) => break Err(error),
                }
            }
        }
    };
    let left = |other: &Rc<Feed>| !Rc::ptr_eq(other, &feed);
    source.feeds.borrow_mut().retain(left);
    writing.abort();
    ended
}

async fn write(mut writer: OwnedWriteHalf, feed: Rc<Feed>) {
    let mut out = Vec::with_capacity(2 * WRITE);
    loop {
        feed.wake.notified().await;
        loop {
            out.clear();
            while out.len() < WRITE {
                let Some(item) = feed.queue.borrow_mut().pop_front() else {
                    break;
                };
                feed.write(&item, &mut out);
            }
            if out.is_empty() {
                break;
            }
            if writer.write_all(&out).await.is_err() {
                return;
            }
        }
    }
}

/// Messages of `graphql-transport-ws`.
async fn messages(
    source: &Source,
    feed: &Feed,
    reader: &mut OwnedReadHalf,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    loop {
        while let Some(frame) = protocol::read(buffer).map_err(invalid)? {
            let content = frame.content(buffer);
            match frame.opcode {
                protocol::TEXT => message(source, feed, content)?,
                protocol::PING => {
                    let mut pong = Vec::new();
                    protocol::write_head(&mut pong, protocol::PONG, content.len());
                    pong.extend_from_slice(content);
                    feed.push(Item::Bytes(pong));
                }
                protocol::CLOSE => return Ok(()),
                _ => {}
            }
            buffer.drain(..frame.end);
        }
        if reader.read_buf(buffer).await? == 0 {
            return Ok(());
        }
    }
}

fn message(source: &Source, feed: &Feed, content: &[u8]) -> io::Result<()> {
    let message: Value = serde_json::from_slice(content).map_err(invalid)?;
    let id = message["id"].to_string();
    match message["type"].as_str().unwrap_or_default() {
        "connection_init" => feed.push_text("{\"type\":\"connection_ack\"}"),
        "ping" => feed.push_text("{\"type\":\"pong\"}"),
        "subscribe" => source.subscribe(feed, id, &message["payload"]),
        "complete" => feed
            .subscriptions
            .borrow_mut()
            .retain(|(known, _)| *known != id),
        _ => {}
    }
    Ok(())
}

struct Head {
    method: String,
    target: String,
    key: Option<String>,
    accepts_events: bool,
}

impl Head {
    /// The subscription that is asked for, if that is what the request is.
    fn subscription(&self, body: Value) -> Option<Value> {
        if !self.accepts_events {
            return None;
        }
        if self.method == "POST" {
            return (!body["query"].is_null()).then_some(body);
        }
        // As it is written in the URL: names need no escaping there.
        let (_, query) = self.target.split_once("query=")?;
        Some(json!({ "query": query }))
    }
}

/// The next request; `None`: there is none.
async fn request(
    reader: &mut OwnedReadHalf,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<(Head, Value)>> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Request::new(&mut headers);
        if let httparse::Status::Complete(start) = parsed.parse(buffer).map_err(invalid)? {
            let header = |name: &str| {
                let mut all = parsed.headers.iter();
                let found = all.find(|header| header.name.eq_ignore_ascii_case(name));
                found.map(|header| String::from_utf8_lossy(header.value).into_owned())
            };
            let length = header("content-length").and_then(|text| text.parse().ok());
            let end = start + length.unwrap_or(0usize);
            if buffer.len() >= end {
                let head = Head {
                    method: parsed.method.unwrap_or_default().to_owned(),
                    target: parsed.path.unwrap_or_default().to_owned(),
                    key: header("sec-websocket-key"),
                    accepts_events: header("accept").is_some_and(|a| a.contains("event-stream")),
                };
                let body = serde_json::from_slice(&buffer[start..end]).unwrap_or_default();
                buffer.drain(..end);
                return Ok(Some((head, body)));
            }
        }
        if buffer.len() > REQUEST_MAX {
            return Err(invalid("a request that is too long"));
        }
        if reader.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

fn answer(head: &Head, source: &Rc<Source>) -> Value {
    let (path, query) = head.target.split_once('?').unwrap_or((&head.target, ""));
    let parameter = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    match path {
        "/health" => json!("OK"),
        "/stats" => source.stats(),
        "/stats/reset" => {
            source.opened.set(0);
            source.stats()
        }
        "/emit" => {
            let events = parameter("events").and_then(|text| text.parse().ok());
            let events: u64 = events.unwrap_or(1).min(EVENTS_MAX);
            let rate = parameter("rate").and_then(|text| text.parse().ok());
            let stats = source.stats();
            let source = Rc::clone(source);
            tokio::task::spawn_local(async move {
                source.emit_all(events, rate.unwrap_or(0.0)).await;
            });
            stats
        }
        // Gateways that ask whether a subgraph is there.
        _ => json!({ "data": { "__typename": "Query" } }),
    }
}

fn invalid(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
