//! Server-sent events, as WHATWG HTML frames them and graphql-sse uses them (distinct connections).
//!
//! Every answer is `event: next` with the answer as data; the end is `event: complete` with empty data, which clients
//! need, as a lost connection must not look like an end. Comments keep the connection alive.

use std::collections::VecDeque;

use bytes::Bytes;
use memchr::memchr2;

/// The media type.
pub const MEDIA_TYPE: &str = "text/event-stream";
/// The end of an operation on a connection of its own.
pub const COMPLETE: &[u8] = b"event: complete\ndata:\n\n";
/// Keeps a connection alive.
pub const HEARTBEAT: &[u8] = b":\n\n";

/// Writes an answer, JSON, as an event.
pub fn write_next(out: &mut Vec<u8>, payload: &[u8]) {
    write(out, "next", None, payload);
}

/// Writes an event. With `id` data is `{"id":…,"payload":…}`, as on a single connection.
pub fn write(out: &mut Vec<u8>, event: &str, id: Option<&str>, payload: &[u8]) {
    out.reserve(payload.len() + 64);
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(event.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    match id {
        None => write_line(out, payload),
        Some(id) => {
            let mut quoted = String::new();
            crate::envelope::write_string(&mut quoted, id);
            out.extend_from_slice(b"{\"id\":");
            out.extend_from_slice(quoted.as_bytes());
            if !payload.is_empty() {
                out.extend_from_slice(b",\"payload\":");
                write_line(out, payload);
            }
            out.push(b'}');
        }
    }
    out.extend_from_slice(b"\n\n");
}

/// JSON as one line: line breaks are nothing but white space in it, and would end the data here.
fn write_line(out: &mut Vec<u8>, mut json: &[u8]) {
    while let Some(at) = memchr2(b'\n', b'\r', json) {
        out.extend_from_slice(&json[..at]);
        out.push(b' ');
        json = &json[at + 1..];
    }
    out.extend_from_slice(json);
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SseEvent {
    /// An answer: event `next`.
    Next(Bytes),
    /// The operation is over: event `complete`.
    Complete,
    /// Somebody is there: a comment.
    Heartbeat,
    /// An event of another name, which nobody has to understand.
    Other(Box<str>),
}

/// What is wrong with a stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseError {
    /// An event, or a line of one, is longer than it may be.
    TooLong,
    /// It is not UTF-8.
    NotText,
    /// There is no `complete`: the stream was cut off.
    CutOff,
}

/// For operators.
impl std::fmt::Display for SseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SseError::TooLong => "an event is longer than it may be",
            SseError::NotText => "it is not UTF-8",
            SseError::CutOff => "it ends without `complete`",
        })
    }
}
impl std::error::Error for SseError {}

/// Reads a stream of events that comes in pieces.
#[derive(Debug)]
pub struct SseReader {
    event_bytes_max: usize,
    /// The line that is not complete.
    line: Vec<u8>,
    /// The data of the event that is not complete, each line with its end.
    data: Vec<u8>,
    event: Vec<u8>,
    /// Whether the last byte was a carriage return, whose line feed may follow.
    after_return: bool,
    /// Whether the first line, which may begin with a byte order mark, is over.
    has_begun: bool,
    is_complete: bool,
    events: VecDeque<SseEvent>,
}

impl SseReader {
    /// Events may take so many bytes.
    pub fn new(event_bytes_max: usize) -> Self {
        SseReader {
            event_bytes_max,
            line: Vec::new(),
            data: Vec::new(),
            event: Vec::new(),
            after_return: false,
            has_begun: false,
            is_complete: false,
            events: VecDeque::new(),
        }
    }

    /// The next event that is whole.
    pub fn take(&mut self) -> Option<SseEvent> {
        self.events.pop_front()
    }

    /// Reads a piece. What comes after `complete` is not read.
    pub fn push(&mut self, mut piece: &[u8]) -> Result<(), SseError> {
        while !piece.is_empty() && !self.is_complete {
            if std::mem::take(&mut self.after_return) && piece[0] == b'\n' {
                piece = &piece[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', piece);
            let taken = &piece[..end.unwrap_or(piece.len())];
            if self.line.len() + self.data.len() + taken.len() > self.event_bytes_max {
                return Err(SseError::TooLong);
            }
            self.line.extend_from_slice(taken);
            let Some(end) = end else {
                return Ok(());
            };
            self.after_return = piece[end] == b'\r';
            piece = &piece[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.read_line(&line)?;
            self.line = line;
            self.line.clear();
        }
        Ok(())
    }

    /// The stream has ended: an event that is not whole does not count, and without `complete` it was cut off.
    pub fn finish(&self) -> Result<(), SseError> {
        if self.is_complete {
            Ok(())
        } else {
            Err(SseError::CutOff)
        }
    }

    fn read_line(&mut self, mut line: &[u8]) -> Result<(), SseError> {
        if !std::mem::replace(&mut self.has_begun, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let colon = memchr::memchr(b':', line);
        let (name, value) = match colon {
            Some(0) => {
                // One is as good as many.
                if self.events.back() != Some(&SseEvent::Heartbeat) {
                    self.events.push_back(SseEvent::Heartbeat);
                }
                return Ok(());
            }
            Some(at) => {
                let value = &line[at + 1..];
                (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => {
                self.event.clear();
                self.event.extend_from_slice(value);
            }
            // `id` and `retry` are about coming back, which clients of GraphQL cannot; all others are ignored.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self) -> Result<(), SseError> {
        let event = std::mem::take(&mut self.event);
        let mut data = std::mem::take(&mut self.data);
        // By the letter an event without any line of data is none; `complete` means its end with and without.
        if event == b"complete" {
            self.is_complete = true;
            self.events.push_back(SseEvent::Complete);
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        data.pop();
        if std::str::from_utf8(&data).is_err() {
            return Err(SseError::NotText);
        }
        let event = match &*event {
            // Servers from before the protocol give answers no name.
            b"next" | b"" => SseEvent::Next(data.into()),
            _ => {
                let name = String::from_utf8_lossy(&event);
                SseEvent::Other(ogive_base::foreign::bounded_name(&name).into())
            }
        };
        self.events.push_back(event);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Result<Vec<SseEvent>, SseError> {
        let mut reader = SseReader::new(1_000);
        let mut events = Vec::new();
        for piece in pieces {
            reader.push(piece)?;
            events.extend(std::iter::from_fn(|| reader.take()));
        }
        Ok(events)
    }

    fn next(text: &str) -> SseEvent {
        SseEvent::Next(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn what_is_written_is_read_however_it_is_cut() {
        let mut stream = Vec::new();
        write_next(&mut stream, b"{\"data\":{\"a\":\"\xc3\xbc\"}}");
        stream.extend_from_slice(HEARTBEAT);
        write_next(&mut stream, b"{\n\"data\":\r\n1}");
        stream.extend_from_slice(COMPLETE);
        let expected = [
            next("{\"data\":{\"a\":\"ü\"}}"),
            SseEvent::Heartbeat,
            next("{ \"data\":  1}"),
            SseEvent::Complete,
        ];
        assert_eq!(read(&[&stream]).unwrap(), expected);
        for cut in 0..stream.len() {
            let (head, tail) = stream.split_at(cut);
            assert_eq!(read(&[head, tail]).unwrap(), expected, "{cut}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read(&bytes).unwrap(), expected);
    }

    #[test]
    fn every_line_end_field_and_mark_of_the_standard_is_read() {
        let stream = "\u{feff}event:next\r\ndata: {\"a\":\rdata:1}\n\revent: next\n\nid: 3\nretry: 5\nfoo: bar\nevent: note\ndata\n\nevent: complete\n\nevent: next\ndata: 2\n\n";
        let found = read(&[stream.as_bytes()]).unwrap();
        let other = SseEvent::Other("note".into());
        assert_eq!(found, [next("{\"a\":\n1}"), other, SseEvent::Complete]);
    }

    #[test]
    fn long_events_foreign_bytes_and_cut_streams_are_told_apart() {
        let long = format!("data: {}", "x".repeat(1_000));
        assert_eq!(read(&[long.as_bytes()]), Err(SseError::TooLong));
        let lines = "data: xxxxxxxxxxxxxxxx\n".repeat(100);
        assert_eq!(read(&[lines.as_bytes()]), Err(SseError::TooLong));
        let many = "event: next\ndata: 1\n\n".repeat(1_000);
        assert_eq!(read(&[many.as_bytes()]).unwrap().len(), 1_000);
        let bytes = b"event: next\ndata: \xff\n\n";
        assert_eq!(read(&[bytes]), Err(SseError::NotText));
        let mut reader = SseReader::new(100);
        reader.push(b"event: next\ndata: 1\n\n").unwrap();
        assert_eq!(reader.finish(), Err(SseError::CutOff));
        reader.push(COMPLETE).unwrap();
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn operations_of_a_single_connection_are_named() {
        let mut out = Vec::new();
        write(&mut out, "next", Some("1\""), b"{}");
        write(&mut out, "complete", Some("1"), b"");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "event: next\ndata: {\"id\":\"1\\\"\",\"payload\":{}}\n\nevent: complete\ndata: {\"id\":\"1\"}\n\n"
        );
    }
}
