//! A small HTTP/1.1 client: pre-written requests, answers read to their end.
//!
//! Own code, because the load generator shares CPUs with the subgraphs on small machines: what it spends is taken from
//! what it measures. A request is written once into bytes; an answer's head is read by `httparse`, its body only
//! counted, or kept where a sample is wanted.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Most headers of an answer.
const HEADERS_MAX: usize = 64;
/// Longest head of an answer.
const HEAD_MAX: usize = 64 << 10;
/// Size of the read buffer.
const BUFFER: usize = 64 << 10;

/// An answer; the body is empty unless it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Bytes of its body.
    pub length: usize,
    /// Its body.
    pub body: Vec<u8>,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
    open: bool,
}

enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

impl Connection {
    /// Connects.
    pub async fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            buffer: vec![0; BUFFER],
            filled: 0,
            open: true,
        })
    }

    /// Whether another request may be sent.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Sends a request and reads its answer into `answer`, whose memory is used again.
    pub async fn ask(&mut self, request: &[u8], keep: bool, answer: &mut Answer) -> io::Result<()> {
        self.open = false;
        self.stream.write_all(request).await?;
        let (status, framing, close, head) = self.head().await?;
        answer.status = status;
        answer.length = 0;
        answer.body.clear();
        self.buffer.copy_within(head..self.filled, 0);
        self.filled -= head;
        match framing {
            Framing::Length(length) => self.exactly(length, answer, keep).await?,
            Framing::Chunked => self.chunks(answer, keep).await?,
            Framing::UntilClose => {
                loop {
                    let n = self.filled;
                    self.take(n, answer, keep);
                    if !self.fill().await? {
                        break;
                    }
                }
                return Ok(());
            }
        }
        self.open = !close;
        Ok(())
    }

    async fn head(&mut self) -> io::Result<(u16, Framing, bool, usize)> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let mut head = httparse::Response::new(&mut headers);
            let parsed = head.parse(&self.buffer[..self.filled]).map_err(invalid)?;
            if let httparse::Status::Complete(length) = parsed {
                let status = head.code.unwrap_or(0);
                let mut framing = Framing::UntilClose;
                let mut close = head.version == Some(0);
                for header in head.headers.iter() {
                    let value = std::str::from_utf8(header.value).unwrap_or("").trim();
                    if header.name.eq_ignore_ascii_case("content-length") {
                        framing = Framing::Length(value.parse().map_err(invalid)?);
                    } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                        framing = Framing::Chunked;
                    } else if header.name.eq_ignore_ascii_case("connection") {
                        close = value.eq_ignore_ascii_case("close");
                    }
                }
                if matches!(status, 204 | 304) {
                    framing = Framing::Length(0);
                }
                return Ok((status, framing, close, length));
            }
            if self.filled >= HEAD_MAX || !self.fill().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn exactly(
        &mut self,
        mut left: usize,
        answer: &mut Answer,
        keep: bool,
    ) -> io::Result<()> {
        loop {
            let n = left.min(self.filled);
            self.take(n, answer, keep);
            left -= n;
            if left == 0 {
                return Ok(());
            }
            self.must_fill().await?;
        }
    }

    async fn chunks(&mut self, answer: &mut Answer, keep: bool) -> io::Result<()> {
        loop {
            let (head, size) = loop {
                match httparse::parse_chunk_size(&self.buffer[..self.filled]) {
                    Ok(httparse::Status::Complete(found)) => break found,
                    Ok(httparse::Status::Partial) => self.must_fill().await?,
                    Err(_) => return Err(invalid("a chunk size that is none")),
                }
            };
            self.skip(head).await?;
            if size == 0 {
                return self.trailer().await;
            }
            self.exactly(size as usize, answer, keep).await?;
            self.skip(2).await?;
        }
    }

    /// Lines up to and with an empty one.
    async fn trailer(&mut self) -> io::Result<()> {
        loop {
            let end = self.buffer[..self.filled]
                .windows(2)
                .position(|w| w == b"\r\n");
            match end {
                Some(0) => return self.skip(2).await,
                Some(at) => self.skip(at + 2).await?,
                None => self.must_fill().await?,
            }
        }
    }

    async fn skip(&mut self, n: usize) -> io::Result<()> {
        while self.filled < n {
            self.must_fill().await?;
        }
        self.buffer.copy_within(n..self.filled, 0);
        self.filled -= n;
        Ok(())
    }

    fn take(&mut self, n: usize, answer: &mut Answer, keep: bool) {
        if keep {
            answer.body.extend_from_slice(&self.buffer[..n]);
        }
        answer.length += n;
        self.buffer.copy_within(n..self.filled, 0);
        self.filled -= n;
    }

    async fn must_fill(&mut self) -> io::Result<()> {
        if self.fill().await? {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    async fn fill(&mut self) -> io::Result<bool> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let n = self.stream.read(&mut self.buffer[self.filled..]).await?;
        self.filled += n;
        Ok(n > 0)
    }
}

fn invalid(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// Asks once, on a runtime of its own; for everything that is not measured.
pub fn once(address: SocketAddr, request: &[u8], patience: Duration) -> io::Result<Answer> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let asking = async {
            let mut connection = Connection::open(address).await?;
            let mut answer = Answer::default();
            connection.ask(request, true, &mut answer).await?;
            Ok(answer)
        };
        tokio::time::timeout(patience, asking)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    })
}

/// A GET request in bytes.
pub fn get(path: &str, address: SocketAddr) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: {address}\r\naccept: application/json\r\n\r\n")
        .into_bytes()
}

/// A POST request in bytes.
pub fn post(path: &str, address: SocketAddr, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
