//! The head of an answer.

use std::mem::MaybeUninit;

use bytes::{Buf, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{
    HEAD_MAX, HEADERS_MAX, INTERIM_MAX, Malformed,
    personal::{is_personal, list},
};

/// Which headers to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeaderScope {
    /// All.
    All,
    /// Those that decide what becomes of the answer: `content-encoding`, `location` and `retry-after`.
    Deciding,
}

/// How a body ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Framing {
    /// After so many bytes.
    Length(u64),
    /// After the last chunk.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// The head of an answer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) framing: Framing,
    /// Whether the connection may carry another request after it.
    pub(crate) keep_alive: bool,
    /// Whether the answer belongs to whoever asked for it alone.
    pub(crate) personal: bool,
}

/// Waits for the head of an answer.
#[derive(Debug)]
pub(crate) struct HeadReader {
    wanted: HeaderScope,
    /// Whether the request was `HEAD`, so that no body comes whatever the head says.
    is_head: bool,
    interim: usize,
    /// Length of the buffer when it was parsed last, to no end.
    tried: usize,
    /// How much of it was searched for the end of the head.
    searched: usize,
}

impl HeadReader {
    pub(crate) fn new(wanted: HeaderScope, is_head: bool) -> Self {
        HeadReader {
            wanted,
            is_head,
            interim: 0,
            tried: 0,
            searched: 0,
        }
    }

    /// Takes the head off the front of what came, and interim answers before it; `None`: it is not whole yet.
    ///
    /// Altogether linear in the bytes of the head, also if they come one at a time.
    pub(crate) fn read(&mut self, buffer: &mut BytesMut) -> Result<Option<Head>, Malformed> {
        while let Some((length, head)) = self.parse(buffer)? {
            if length > HEAD_MAX {
                return Err(TOO_LONG);
            }
            buffer.advance(length);
            match head.status.as_u16() {
                101 => return Err(Malformed("it switches protocols, which nobody asked for")),
                100..=199 => self.interim += 1,
                _ => return Ok(Some(head)),
            }
            if self.interim > INTERIM_MAX {
                return Err(Malformed("too many interim answers"));
            }
            (self.tried, self.searched) = (0, 0);
        }
        if buffer.len() > HEAD_MAX {
            return Err(TOO_LONG);
        }
        Ok(None)
    }

    fn parse(&mut self, buffer: &[u8]) -> Result<Option<(usize, Head)>, Malformed> {
        match buffer.first() {
            None => return Ok(None),
            // An empty line would be skipped, however many there are.
            Some(b'H') => {}
            Some(_) => return Err(Malformed("it does not begin with `HTTP/1.`")),
        }
        // Garbage is noticed before its end, and what drips in is not parsed again for every drop.
        let due = buffer.len() / 2 >= self.tried || ends(buffer, self.searched);
        self.searched = buffer.len();
        if !due {
            return Ok(None);
        }
        let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut head = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut head,
            buffer,
            &mut headers,
        );
        match parsed {
            Ok(httparse::Status::Complete(length)) => {
                let head = interpret(&head, self.wanted, self.is_head)?;
                Ok(Some((length, head)))
            }
            Ok(httparse::Status::Partial) => {
                self.tried = buffer.len();
                Ok(None)
            }
            Err(error) => Err(Malformed(match error {
                httparse::Error::HeaderName => "a header's name is malformed",
                httparse::Error::HeaderValue => "a header's value is malformed",
                httparse::Error::NewLine => "a line does not end as lines do",
                httparse::Error::Status => "its status is malformed",
                httparse::Error::Token => "its first line is malformed",
                httparse::Error::TooManyHeaders => "it has more than 100 headers",
                httparse::Error::Version => "it does not begin with `HTTP/1.`",
            })),
        }
    }
}

const TOO_LONG: Malformed = Malformed("its head is longer than 64 KiB");

/// Whether an empty line ends in what came after the first `searched` bytes.
fn ends(buffer: &[u8], searched: usize) -> bool {
    let new = &buffer[searched.saturating_sub(3)..];
    new.windows(2).any(|end| end == b"\n\n") || new.windows(3).any(|end| end == b"\n\r\n")
}

/// What a parsed head means.
fn interpret(
    head: &httparse::Response<'_, '_>,
    wanted: HeaderScope,
    is_head: bool,
) -> Result<Head, Malformed> {
    let status = StatusCode::from_u16(head.code.unwrap_or(0));
    let status = status.map_err(|_| Malformed("its status is malformed"))?;
    let is_http11 = head.version == Some(1);
    let mut headers = HeaderMap::new();
    let mut length = None;
    let mut coding = Coding::None;
    let (mut close, mut keep_alive, mut personal) = (false, false, false);
    for header in &*head.headers {
        let (name, value) = (header.name, header.value);
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            14 if is("content-length") => length = Some(lengths(value, length)?),
            17 if is("transfer-encoding") => coding = coding.and(value)?,
            10 if is("connection") => {
                for option in list(value) {
                    close |= option.eq_ignore_ascii_case(b"close");
                    keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            _ => {}
        }
        personal |= is_personal(name, value);
        let keep = match wanted {
            HeaderScope::All => true,
            HeaderScope::Deciding => match name.len() {
                8 => is("location"),
                11 => is("retry-after"),
                16 => is("content-encoding"),
                _ => false,
            },
        };
        if keep {
            if wanted == HeaderScope::All && headers.is_empty() {
                headers.reserve(head.headers.len());
            }
            let name = HeaderName::from_bytes(name.as_bytes());
            let name = name.map_err(|_| Malformed("a header's name is malformed"))?;
            let value = HeaderValue::from_bytes(value);
            let value = value.map_err(|_| Malformed("a header's value is malformed"))?;
            headers.append(name, value);
        }
    }
    let keep_alive = !close && (is_http11 || keep_alive);
    if coding != Coding::None && !is_http11 {
        // RFC 9112, section 6.1: the framing is faulty.
        return Err(Malformed("`transfer-encoding` in HTTP/1.0"));
    }
    // RFC 9112, section 6.3.
    let (framing, keep_alive) = match (status.as_u16(), coding, length) {
        (100..=199 | 204 | 304, ..) => (Framing::Length(0), keep_alive),
        _ if is_head => (Framing::Length(0), keep_alive),
        // With a length as well somebody may have been misled: nothing may follow.
        (_, Coding::Chunked, length) => (Framing::Chunked, keep_alive && length.is_none()),
        (_, Coding::Other, _) | (_, Coding::None, None) => (Framing::UntilClose, false),
        (_, Coding::None, Some(length)) => (Framing::Length(length), keep_alive),
    };
    Ok(Head {
        status,
        headers,
        framing,
        keep_alive,
        personal,
    })
}

/// What `transfer-encoding` says at its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coding {
    None,
    Chunked,
    Other,
}

impl Coding {
    /// With one more line of it.
    fn and(self, value: &[u8]) -> Result<Self, Malformed> {
        let mut last = self;
        for coding in list(value) {
            if last == Coding::Chunked {
                // RFC 9112, section 6.1: nothing is applied after `chunked`, and it only once.
                return Err(Malformed("`chunked` is not the last transfer coding"));
            }
            last = if coding.eq_ignore_ascii_case(b"chunked") {
                Coding::Chunked
            } else {
                Coding::Other
            };
        }
        match last {
            Coding::None => Ok(Coding::Other),
            last => Ok(last),
        }
    }
}

/// One line of `content-length`: a number, or the same one several times (RFC 9112, section 6.3).
fn lengths(value: &[u8], before: Option<u64>) -> Result<u64, Malformed> {
    const MALFORMED: Malformed = Malformed("its `content-length` is no number");
    let mut all = before;
    for item in value.split(|byte| *byte == b',') {
        let item = item.trim_ascii();
        if item.is_empty() {
            return Err(MALFORMED);
        }
        let mut length = 0_u64;
        for byte in item {
            let digit = match byte {
                b'0'..=b'9' => u64::from(byte - b'0'),
                _ => return Err(MALFORMED),
            };
            let more = length.checked_mul(10).and_then(|l| l.checked_add(digit));
            length = more.ok_or(MALFORMED)?;
        }
        if all.is_some_and(|all| all != length) {
            return Err(Malformed("it has several lengths"));
        }
        all = Some(length);
    }
    all.ok_or(MALFORMED)
}
