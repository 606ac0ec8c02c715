//! Plain POSTs to subgraphs, answered at the least cost: in a benchmark the mock has one CPU with the load generator, so
//! what it takes is what gateways cannot be seen to differ by.
//!
//! Plain is a whole HTTP/1.1 request with `content-length`, to a subgraph without faults, with no header that concerns
//! the mock or the connection. Everything else is [`End::Odd`] and hyper's, unread. No header is kept, no future is made
//! per request but those that wait, and a small answer is one write.

use std::{
    cell::{Cell, RefCell},
    io,
    mem::MaybeUninit,
    ops::Range,
    time::{Instant, SystemTime},
};

use bytes::{Buf, BytesMut};
use http::StatusCode;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    Worker, due,
    routes::{likes_graphql_json, single},
};
use crate::service::{Reply, Service};

/// Most headers of a plain request.
const HEADERS_MAX: usize = 64;
/// Longest head of a plain request.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Longest body of a plain request.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Room there is at least for what is read next.
const READ_BYTES: usize = 4 << 10;
/// Longest body that is copied behind its head to be sent by one plain write.
const COPY_BYTES_MAX: usize = 16 << 10;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client has closed the connection.
    Closed,
    /// A request that is not plain came.
    Odd,
}

/// Answers plain requests for as long as there are such. `read` is what was read and not answered; at [`End::Odd`] it
/// begins with the odd request.
pub(super) async fn serve(
    stream: &mut TcpStream,
    worker: &Worker,
    read: &mut BytesMut,
) -> io::Result<End> {
    let mut out = Vec::new();
    let mut accept = Accept::default();
    loop {
        let request = match Seen::look(read, &worker.service, &mut accept) {
            Seen::Plain(request) => request,
            Seen::Odd => return Ok(End::Odd),
            Seen::Part { missing } => {
                read.reserve(missing.max(READ_BYTES));
                if stream.read_buf(read).await? == 0 {
                    return Ok(End::Closed);
                }
                continue;
            }
        };
        let arrived = Instant::now();
        let body = &read[request.body.clone()];
        let Some(mut reply) = worker.service.respond_plainly(request.subgraph, body) else {
            return Ok(End::Odd);
        };
        if read.len() == request.body.end {
            // The room is used again; what is only cut off at the front is not.
            read.clear();
        } else {
            read.advance(request.body.end);
        }
        if !reply.delay.is_zero() {
            worker.timer.until(due(arrived, reply.delay)).await;
        }
        if request.graphql_json {
            reply.prefer_graphql_json();
        }
        out.clear();
        worker.dates.write_head(&mut out, &reply);
        if reply.body.len() <= COPY_BYTES_MAX {
            out.extend_from_slice(&reply.body);
            stream.write_all(&out).await?;
        } else {
            let mut all = Buf::chain(out.as_slice(), reply.body);
            stream.write_all_buf(&mut all).await?;
        }
    }
}

/// What there is at the front of the bytes read.
#[derive(Debug)]
enum Seen {
    Plain(Plain),
    Odd,
    /// The beginning of what may become plain; so many bytes are missing at least.
    Part {
        missing: usize,
    },
}

/// A plain request.
#[derive(Debug)]
struct Plain {
    /// Its place in the service.
    subgraph: usize,
    /// Where its body is.
    body: Range<usize>,
    graphql_json: bool,
}

impl Seen {
    fn look(read: &[u8], service: &Service, accept: &mut Accept) -> Seen {
        let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut head = httparse::Request::new(&mut []);
        let length = match head.parse_with_uninit_headers(read, &mut headers) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if read.len() < HEAD_BYTES_MAX => {
                return Seen::Part { missing: 1 };
            }
            _ => return Seen::Odd,
        };
        let path = match (head.method, head.path, head.version) {
            (Some("POST"), Some(path), Some(1)) => path,
            _ => return Seen::Odd,
        };
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        let name = path.strip_prefix("/graphql/").or(path.strip_prefix('/'));
        let name = match name {
            Some("" | "graphql") => single(service),
            name => name,
        };
        let Some(subgraph) = name.and_then(|name| service.place(name)) else {
            return Seen::Odd;
        };
        let (mut body, mut graphql_json) = (None, false);
        for header in &*head.headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                match decimal(header.value) {
                    Some(n) if n <= BODY_BYTES_MAX && body.is_none() => body = Some(n),
                    _ => return Seen::Odd,
                }
            } else if is("accept") {
                if header.value.ends_with(b"callbackSpec=1.0")
                    || header.value.starts_with(b"text/event-stream")
                    || header.value.starts_with(b"multipart/")
                {
                    return Seen::Odd;
                }
                graphql_json = accept.likes_graphql_json(header.value);
            } else if is("connection") {
                if !header.value.eq_ignore_ascii_case(b"keep-alive") {
                    return Seen::Odd;
                }
            } else if is("transfer-encoding")
                || is("expect")
                || is("upgrade")
                || header
                    .name
                    .get(..7)
                    .is_some_and(|start| start.eq_ignore_ascii_case("x-mock-"))
            {
                return Seen::Odd;
            }
        }
        let Some(body) = body else {
            return Seen::Odd;
        };
        let end = length + body;
        match end.checked_sub(read.len()) {
            None | Some(0) => Seen::Plain(Plain {
                subgraph,
                body: length..end,
                graphql_json,
            }),
            Some(missing) => Seen::Part { missing },
        }
    }
}

fn decimal(text: &[u8]) -> Option<usize> {
    let digits = text.iter().all(u8::is_ascii_digit);
    digits.then(|| str::from_utf8(text).ok()?.parse().ok())?
}

/// The time of the `date` header, written anew once a second.
#[derive(Debug, Default)]
pub(super) struct Dates {
    second: Cell<u64>,
    text: RefCell<String>,
}

impl Dates {
    /// The status line and all headers; the same ones that hyper sends.
    fn write_head(&self, out: &mut Vec<u8>, reply: &Reply) {
        let now = SystemTime::now();
        let second = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let mut date = self.text.borrow_mut();
        if date.is_empty() || self.second.get() != second {
            self.second.set(second);
            *date = httpdate::fmt_http_date(now);
        }
        let mut put = |text: &str| out.extend_from_slice(text.as_bytes());
        put("HTTP/1.1 ");
        match StatusCode::from_u16(reply.status).unwrap_or_default() {
            StatusCode::OK => put("200 OK"),
            status => {
                put(status.as_str());
                put(" ");
                put(status.canonical_reason().unwrap_or(""));
            }
        }
        put("\r\ncontent-type: ");
        put(reply.content_type);
        put("\r\naccess-control-allow-origin: *\r\naccess-control-allow-headers: *\r\ndate: ");
        put(&date);
        put("\r\ncontent-length: ");
        put(&reply.body.len().to_string());
        put("\r\n\r\n");
    }
}

/// The `accept` header a connection sent last and what it likes: clients send the same one each time.
#[derive(Debug, Default)]
struct Accept {
    value: Vec<u8>,
    likes_graphql_json: bool,
}

impl Accept {
    fn likes_graphql_json(&mut self, value: &[u8]) -> bool {
        if self.value != value {
            value.clone_into(&mut self.value);
            self.likes_graphql_json = str::from_utf8(value).is_ok_and(likes_graphql_json);
        }
        self.likes_graphql_json
    }
}
