//! A plain HTTP/1.1 client: every byte under the test's control.

use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::{Value, json};

/// A test that waits longer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that are written in one go: the operating system may let nobody else run meanwhile.
const PIECE: usize = 16 << 10;

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e} in {}", self.text()))
    }
    /// Codes of all errors; checks that the body is a well-formed GraphQL response.
    pub(crate) fn codes(&self) -> Vec<String> {
        let json = self.json();
        let Some(errors) = json.get("errors") else {
            return Vec::new();
        };
        let errors = errors.as_array().expect("errors is a list");
        assert!(!errors.is_empty(), "an empty list of errors: {json}");
        errors
            .iter()
            .map(|error| {
                assert!(
                    error["message"].as_str().is_some_and(|m| !m.is_empty()),
                    "{json}"
                );
                error["extensions"]["code"]
                    .as_str()
                    .unwrap_or_else(|| panic!("no code: {json}"))
                    .to_owned()
            })
            .collect()
    }
}

/// Bytes both ways.
pub(crate) trait Io: Read + Write {}
impl<T: Read + Write> Io for T {}

/// A connection that is kept alive.
pub(crate) struct Connection {
    stream: Box<dyn Io>,
    buffer: Vec<u8>,
}

/// A TCP connection that does not wait for ever.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Connection {
        Connection::over(connect(address))
    }
    /// From another address of this machine.
    pub(crate) fn open_from(from: IpAddr, address: SocketAddr) -> Connection {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind((from, 0).into()).unwrap();
            socket.connect(address).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Connection::over(stream)
    }
    /// Over TLS, or a unix socket.
    pub(crate) fn over(stream: impl Io + 'static) -> Connection {
        Connection {
            stream: Box::new(stream),
            buffer: Vec::new(),
        }
    }
    /// Writes as far as the other side takes it: one that refuses early may close before everything is written.
    pub(crate) fn write_what_is_taken(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.chunks(PIECE);
        let _ = pieces.try_for_each(|piece| self.stream.write_all(piece));
    }
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE) {
            self.stream.write_all(piece).unwrap();
        }
    }
    /// Reads one answer.
    pub(crate) fn read(&mut self) -> Answer {
        let head_end = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            assert!(
                self.fill(),
                "closed in the middle of a head: {:?}",
                String::from_utf8_lossy(&self.buffer)
            );
        };
        let head = String::from_utf8(self.buffer.drain(..head_end).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(':').unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        if headers.contains(&("transfer-encoding".into(), "chunked".into())) {
            return Answer {
                status: status.parse().unwrap(),
                headers,
                body: self.read_chunks(),
            };
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
        while self.buffer.len() < length {
            assert!(self.fill(), "closed in the middle of a body");
        }
        Answer {
            status: status.parse().unwrap(),
            headers,
            body: self.buffer.drain(..length).collect(),
        }
    }
    fn read_chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                match find(&self.buffer, b"\r\n") {
                    Some(end) => break end,
                    None => assert!(self.fill(), "closed in the middle of a body"),
                }
            };
            let size = std::str::from_utf8(&self.buffer[..end]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            while self.buffer.len() < end + 2 + size + 2 {
                assert!(self.fill(), "closed in the middle of a chunk");
            }
            let chunk: Vec<u8> = self.buffer.drain(..end + 2 + size + 2).collect();
            body.extend_from_slice(&chunk[end + 2..end + 2 + size]);
            if size == 0 {
                return body;
            }
        }
    }
    /// Whether the other side has closed the connection; waits until it does or says something.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && !self.fill()
    }
    /// Reads one answer; `None` if the connection ends before it began.
    pub(crate) fn try_read(&mut self) -> Option<Answer> {
        (!self.buffer.is_empty() || self.fill()).then(|| self.read())
    }
    /// Reads what comes next, whatever it is; false at the end.
    pub(crate) fn read_some(&mut self, into: &mut Vec<u8>) -> bool {
        let more = self.fill();
        into.append(&mut self.buffer);
        more
    }
    fn fill(&mut self) -> bool {
        let mut piece = [0; 16 << 10];
        match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(n) => {
                self.buffer.extend_from_slice(&piece[..n]);
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => false,
            Err(error) => panic!("{error}"),
        }
    }
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|w| w == needle)
}

/// A whole request.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut out = format!("{method} {path} HTTP/1.1\r\nhost: test\r\n").into_bytes();
    for (name, value) in headers {
        out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    if method == "POST" {
        out.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    out
}

/// One request on a connection of its own.
pub(crate) fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut connection = Connection::open(address);
    connection.write_what_is_taken(&request(method, path, headers, body));
    connection.read()
}

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

/// One GraphQL request.
pub(crate) fn post(address: SocketAddr, query: &str) -> Answer {
    post_with(address, query, &[])
}

/// One GraphQL request with headers.
pub(crate) fn post_with(address: SocketAddr, query: &str, headers: &[(&str, &str)]) -> Answer {
    let body = json!({ "query": query }).to_string();
    let mut all = vec![JSON];
    all.extend_from_slice(headers);
    send(address, "POST", "/graphql", &all, body.as_bytes())
}
