//! Multipart answers (RFC 2046, section 5.1): the framing of Apollo's subscriptions over HTTP 1.0 and of incremental
//! delivery.
//!
//! A part is complete only when the delimiter after it came. So every part is written with the delimiter behind it, and
//! nobody waits for the next one to read this one.

use std::collections::VecDeque;

use bytes::Bytes;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The content type of subscriptions.
pub const SUBSCRIPTION_TYPE: &str = "multipart/mixed;boundary=graphql;subscriptionSpec=1.0";
/// The boundary that we write for subscriptions.
pub const BOUNDARY: &str = "graphql";
/// The answer that keeps a connection alive.
pub const HEARTBEAT: &[u8] = b"{}";

/// Longest boundary in bytes (RFC 2046).
const BOUNDARY_BYTES_MAX: usize = 70;
/// Longest head of a part in bytes.
const PART_HEAD_BYTES_MAX: usize = 4 << 10;

/// Writes what stands before the first part.
pub fn write_start(out: &mut Vec<u8>, boundary: &str) {
    out.extend_from_slice(b"--");
    out.extend_from_slice(boundary.as_bytes());
}

/// Writes a part, JSON, with the delimiter behind it.
pub fn write_part(out: &mut Vec<u8>, boundary: &str, json: &[u8]) {
    out.reserve(json.len() + boundary.len() + 48);
    out.extend_from_slice(b"\r\ncontent-type: application/json\r\n\r\n");
    out.extend_from_slice(json);
    out.extend_from_slice(b"\r\n--");
    out.extend_from_slice(boundary.as_bytes());
}

/// Writes what stands behind the last part.
pub fn write_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"--\r\n");
}

/// Writes an answer of a subscription, a JSON object, as a part.
pub fn write_payload(out: &mut Vec<u8>, answer: &[u8]) {
    let mut part = Vec::with_capacity(answer.len() + 12);
    part.extend_from_slice(b"{\"payload\":");
    part.extend_from_slice(answer);
    part.push(b'}');
    write_part(out, BOUNDARY, &part);
}

/// Writes errors, a JSON list, that end a subscription, as a part.
pub fn write_fatal(out: &mut Vec<u8>, errors: &[u8]) {
    let mut part = Vec::with_capacity(errors.len() + 32);
    part.extend_from_slice(b"{\"payload\":null,\"errors\":");
    part.extend_from_slice(errors);
    part.push(b'}');
    write_part(out, BOUNDARY, &part);
}

/// What a part of a subscription says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionPart<'p> {
    /// Somebody is there.
    Heartbeat,
    /// An answer: JSON object.
    Payload(&'p str),
    /// The subscription is over because of these errors: JSON list.
    Fatal(&'p str),
}

#[derive(Deserialize)]
struct PartMembers<'p> {
    #[serde(default, borrow)]
    payload: Option<&'p RawValue>,
    #[serde(default, borrow)]
    errors: Option<&'p RawValue>,
}

/// Reads a part of a subscription; `None` if it is none.
pub fn subscription_part(json: &[u8]) -> Option<SubscriptionPart<'_>> {
    let text = std::str::from_utf8(json).ok()?.trim_ascii();
    if !text.starts_with('{') {
        return None;
    }
    let part: PartMembers<'_> = serde_json::from_str(text).ok()?;
    let payload = part.payload.map(RawValue::get);
    let errors = part.errors.map(RawValue::get);
    match (payload.filter(|p| *p != "null"), errors) {
        (_, Some(errors)) if errors.starts_with('[') && errors[1..].trim_ascii() != "]" => {
            Some(SubscriptionPart::Fatal(errors))
        }
        (Some(payload), _) => payload
            .starts_with('{')
            .then_some(SubscriptionPart::Payload(payload)),
        (None, None) => Some(SubscriptionPart::Heartbeat),
        (None, Some(_)) => None,
    }
}

/// The boundary in a content type, if it is multipart and has a usable one. Without one it is `-`, as in GraphQL over HTTP.
pub fn boundary(content_type: &str) -> Option<String> {
    let mut parameters = content_type.split(';');
    let media = parameters.next()?.trim();
    if !media.eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    let of = |parameter: &str| {
        let (name, value) = parameter.split_once('=')?;
        let named = name.trim().eq_ignore_ascii_case("boundary");
        named.then(|| value.trim().trim_matches('"').to_owned())
    };
    let boundary = parameters.find_map(of).unwrap_or_else(|| "-".into());
    let usable = !boundary.is_empty()
        && boundary.len() <= BOUNDARY_BYTES_MAX
        && boundary.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    usable.then_some(boundary)
}

/// What is wrong with a stream of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultipartError {
    /// A part is longer than it may be.
    TooLong,
    /// There is something between delimiters that is no part.
    Malformed,
    /// There is no last delimiter: the stream was cut off.
    CutOff,
}

/// For operators.
impl std::fmt::Display for MultipartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MultipartError::TooLong => "a part is longer than it may be",
            MultipartError::Malformed => "there is something between delimiters that is no part",
            MultipartError::CutOff => "it ends without its last delimiter",
        })
    }
}
impl std::error::Error for MultipartError {}

/// Where a reader stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the first delimiter.
    Preamble,
    /// Behind a delimiter, before its line ends.
    Delimiter,
    /// In the head or the body of a part.
    Part,
    /// Behind the last delimiter.
    Epilogue,
}

/// Reads a stream of parts that comes in pieces.
#[derive(Debug)]
pub struct MultipartReader {
    /// Line break, two dashes, boundary.
    delimiter: Vec<u8>,
    part_bytes_max: usize,
    place: Place,
    buffer: Vec<u8>,
    /// How far the buffer was searched in vain.
    searched: usize,
    parts: VecDeque<Bytes>,
}

impl MultipartReader {
    /// Parts may take so many bytes.
    pub fn new(boundary: &str, part_bytes_max: usize) -> Self {
        MultipartReader {
            delimiter: format!("\r\n--{boundary}").into_bytes(),
            part_bytes_max,
            place: Place::Preamble,
            // The first delimiter may stand at the very beginning.
            buffer: b"\r\n".to_vec(),
            searched: 0,
            parts: VecDeque::new(),
        }
    }

    /// The body of the next part that is whole.
    pub fn take(&mut self) -> Option<Bytes> {
        self.parts.pop_front()
    }

    /// Whether the last delimiter came.
    pub fn is_complete(&self) -> bool {
        self.place == Place::Epilogue
    }

    /// The stream has ended: without a last delimiter it was cut off.
    pub fn finish(&self) -> Result<(), MultipartError> {
        if self.is_complete() {
            Ok(())
        } else {
            Err(MultipartError::CutOff)
        }
    }

    /// Reads a piece. What comes after the last delimiter is not read.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), MultipartError> {
        if self.place == Place::Epilogue {
            return Ok(());
        }
        self.buffer.extend_from_slice(piece);
        let mut read = 0;
        while let Some(used) = self.step(read)? {
            read += used;
            self.searched = 0;
        }
        self.buffer.drain(..read);
        let room = self.part_bytes_max + PART_HEAD_BYTES_MAX + self.delimiter.len();
        if self.buffer.len() > room {
            return Err(MultipartError::TooLong);
        }
        Ok(())
    }

    /// Reads the next thing that is whole from there on; says how many bytes it took.
    fn step(&mut self, from: usize) -> Result<Option<usize>, MultipartError> {
        let rest = &self.buffer[from..];
        match self.place {
            Place::Epilogue => Ok(None),
            Place::Delimiter => {
                let line = match rest {
                    [b'-', b'-', ..] => {
                        self.place = Place::Epilogue;
                        return Ok(Some(rest.len()));
                    }
                    [] | [b'-'] => return Ok(None),
                    _ => memmem::find(rest, b"\r\n"),
                };
                // Only padding may stand between a delimiter and the end of its line.
                let padding = &rest[..line.unwrap_or(rest.len())];
                let padding = padding.strip_suffix(b"\r").unwrap_or(padding);
                if !padding.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
                    return Err(MultipartError::Malformed);
                }
                if line.is_none() && rest.len() > PART_HEAD_BYTES_MAX {
                    return Err(MultipartError::TooLong);
                }
                if line.is_some() {
                    self.place = Place::Part;
                }
                // The line break stays: a head without lines begins with the empty one.
                Ok(line)
            }
            Place::Preamble | Place::Part => {
                let Some(at) = memmem::find(&rest[self.searched..], &self.delimiter) else {
                    self.searched = rest.len().saturating_sub(self.delimiter.len());
                    return Ok(None);
                };
                let at = self.searched + at;
                // Between two delimiters there may be nothing at all: Strawberry ends its streams so.
                if self.place == Place::Part && at > 0 {
                    let body = body(&rest[..at])?;
                    if body.len() > self.part_bytes_max {
                        return Err(MultipartError::TooLong);
                    }
                    self.parts.push_back(Bytes::copy_from_slice(body));
                }
                self.place = Place::Delimiter;
                Ok(Some(at + self.delimiter.len()))
            }
        }
    }
}

/// The body of a part, which begins with the line break that ends its delimiter.
fn body(part: &[u8]) -> Result<&[u8], MultipartError> {
    let end = memmem::find(part, b"\r\n\r\n").ok_or(MultipartError::Malformed)?;
    if end > PART_HEAD_BYTES_MAX {
        return Err(MultipartError::TooLong);
    }
    Ok(&part[end + 4..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(boundary: &str, pieces: &[&[u8]]) -> Result<(Vec<String>, bool), MultipartError> {
        let mut reader = MultipartReader::new(boundary, 100);
        let mut parts = Vec::new();
        for piece in pieces {
            reader.push(piece)?;
            let taken = std::iter::from_fn(|| reader.take());
            parts.extend(taken.map(|part| String::from_utf8(part.to_vec()).unwrap()));
        }
        Ok((parts, reader.is_complete()))
    }

    #[test]
    fn what_is_written_is_read_however_it_is_cut() {
        let mut stream = Vec::new();
        write_start(&mut stream, BOUNDARY);
        write_payload(&mut stream, b"{\"data\":{\"a\":1}}");
        write_part(&mut stream, BOUNDARY, HEARTBEAT);
        write_fatal(&mut stream, b"[{\"message\":\"no\"}]");
        write_end(&mut stream);
        let expected = [
            "{\"payload\":{\"data\":{\"a\":1}}}",
            "{}",
            "{\"payload\":null,\"errors\":[{\"message\":\"no\"}]}",
        ];
        let expected = (expected.map(String::from).to_vec(), true);
        assert_eq!(read(BOUNDARY, &[&stream]).unwrap(), expected);
        for cut in 0..stream.len() {
            let (head, tail) = stream.split_at(cut);
            assert_eq!(read(BOUNDARY, &[head, tail]).unwrap(), expected, "{cut}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read(BOUNDARY, &bytes).unwrap(), expected);
    }

    #[test]
    fn a_part_is_read_before_the_next_one_comes() {
        let mut stream = Vec::new();
        write_start(&mut stream, "-");
        write_part(&mut stream, "-", b"{}");
        assert_eq!(read("-", &[&stream]).unwrap(), (vec!["{}".into()], false));
    }

    #[test]
    fn preambles_padding_and_parts_without_a_head_are_read() {
        let stream = b"hello\r\n--b \t\r\n\r\n1\r\n--b\r\nX: y\r\n\r\n2\r\n--b--\r\nbye";
        let expected = (vec!["1".to_owned(), "2".to_owned()], true);
        assert_eq!(read("b", &[stream]).unwrap(), expected);
    }

    #[test]
    fn between_two_delimiters_there_may_be_nothing() {
        let stream = b"--b\r\n\r\n1\r\n--b\r\n--b--\r\n";
        let expected = (vec!["1".to_owned()], true);
        assert_eq!(read("b", &[stream]).unwrap(), expected);
    }

    #[test]
    fn what_is_no_part_is_refused_and_what_is_too_long_is_not_kept() {
        let garbage = b"--b\r\nno head\r\n--b";
        assert_eq!(read("b", &[garbage]), Err(MultipartError::Malformed));
        assert_eq!(
            read("b", &[b"--bounds\r\n"]),
            Err(MultipartError::Malformed)
        );
        let long = format!("--b\r\n\r\n{}\r\n--b", "x".repeat(101));
        assert_eq!(read("b", &[long.as_bytes()]), Err(MultipartError::TooLong));
        let piece = [b'x'; 1_000];
        let endless: Vec<&[u8]> = (0..10).map(|_| &piece[..]).collect();
        assert_eq!(read("b", &endless), Err(MultipartError::TooLong));
        let mut reader = MultipartReader::new("b", 10);
        reader.push(b"--b\r\n\r\n1\r\n--b").unwrap();
        assert_eq!(reader.finish(), Err(MultipartError::CutOff));
    }

    #[test]
    fn parts_of_subscriptions_are_told_apart() {
        let part = |json: &'static str| subscription_part(json.as_bytes());
        assert_eq!(part("{}"), Some(SubscriptionPart::Heartbeat));
        assert_eq!(
            part(" {\"payload\":null}\n"),
            Some(SubscriptionPart::Heartbeat)
        );
        assert_eq!(
            part("{\"payload\":{\"data\":1}}"),
            Some(SubscriptionPart::Payload("{\"data\":1}"))
        );
        assert_eq!(
            part("{\"payload\":null,\"errors\":[{}]}"),
            Some(SubscriptionPart::Fatal("[{}]"))
        );
        for wrong in [
            "",
            "[]",
            "{\"payload\":1}",
            "{\"payload\":null,\"errors\":1}",
            "<html>",
        ] {
            assert_eq!(part(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn boundaries_come_from_the_content_type() {
        assert_eq!(boundary(SUBSCRIPTION_TYPE).as_deref(), Some("graphql"));
        let quoted = "Multipart/Mixed; x=y; Boundary=\"a b\"";
        assert_eq!(boundary(quoted).as_deref(), Some("a b"));
        assert_eq!(boundary("multipart/mixed").as_deref(), Some("-"));
        assert_eq!(boundary("text/html; boundary=x"), None);
        assert_eq!(boundary("multipart/mixed; boundary="), None);
    }
}
