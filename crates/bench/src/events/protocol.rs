//! Frames of WebSocket (RFC 6455, without fragments and extensions), chunks of HTTP/1.1: only what loads of events need,
//! in bytes that are written once.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::digest;

/// What a key is hashed with (RFC 6455, section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The longest frame that is read.
const FRAME_MAX: usize = 1 << 20;

/// A text message.
pub const TEXT: u8 = 1;
/// The end of a connection.
pub const CLOSE: u8 = 8;
/// A question whether somebody is there.
pub const PING: u8 = 9;
/// Its answer.
pub const PONG: u8 = 10;

/// The value that a server answers a key with.
pub fn accept(key: &[u8]) -> String {
    let mut hash = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key);
    hash.update(GUID);
    STANDARD.encode(hash.finish())
}

/// A frame within bytes that have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub opcode: u8,
    /// Where its content begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// What its content is masked with.
    pub mask: [u8; 4],
}

/// The first frame, once it is there as a whole; an error if it is one that nobody here sends.
pub fn read(bytes: &[u8]) -> Result<Option<Frame>, &'static str> {
    let [first, second, ..] = *bytes else {
        return Ok(None);
    };
    if first & 0x80 == 0 || first & 0x70 != 0 {
        return Err("a fragment, or an extension nobody asked for");
    }
    let (length, mut start) = match second & 0x7f {
        126 => match bytes.get(2..4) {
            Some(more) => (usize::from(u16::from_be_bytes([more[0], more[1]])), 4),
            None => return Ok(None),
        },
        127 => match bytes.get(2..10).and_then(|more| more.try_into().ok()) {
            Some(more) => (u64::from_be_bytes(more) as usize, 10),
            None => return Ok(None),
        },
        short => (usize::from(short), 2),
    };
    if length > FRAME_MAX {
        return Err("a frame that is too long");
    }
    let mut mask = [0; 4];
    if second & 0x80 != 0 {
        match bytes.get(start..start + 4) {
            Some(found) => mask.copy_from_slice(found),
            None => return Ok(None),
        }
        start += 4;
    }
    let end = start + length;
    Ok((bytes.len() >= end).then_some(Frame {
        opcode: first & 0x0f,
        start,
        end,
        mask,
    }))
}

impl Frame {
    /// Its content, unmasked in place.
    pub fn content<'a>(&self, bytes: &'a mut [u8]) -> &'a [u8] {
        let content = &mut bytes[self.start..self.end];
        if self.mask != [0; 4] {
            for (byte, mask) in content.iter_mut().zip(self.mask.iter().cycle()) {
                *byte ^= mask;
            }
        }
        content
    }
}

/// Begins a frame of a server.
pub fn write_head(out: &mut Vec<u8>, opcode: u8, length: usize) {
    head(out, opcode, length, 0);
}

/// A frame of a client. Its mask is 0: whoever reads it has the same work as with any other.
pub fn write_masked(out: &mut Vec<u8>, opcode: u8, content: &[u8]) {
    head(out, opcode, content.len(), 0x80);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(content);
}

fn head(out: &mut Vec<u8>, opcode: u8, length: usize, masked: u8) {
    out.push(0x80 | opcode);
    match length {
        0..126 => out.push(masked | length as u8),
        126..=0xffff => {
            out.push(masked | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(masked | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

/// A piece of a body that goes out in chunks.
pub fn write_chunk(out: &mut Vec<u8>, content: &[u8]) {
    out.extend_from_slice(format!("{:x}\r\n", content.len()).as_bytes());
    out.extend_from_slice(content);
    out.extend_from_slice(b"\r\n");
}

/// Takes chunks apart as they come. Nobody here sends trailers.
#[derive(Debug, Default)]
pub struct Chunks {
    /// Bytes of a chunk, with the line end behind it, that are still to come.
    left: usize,
    /// Whether that is the last chunk.
    last: bool,
    /// Whether the body is whole.
    pub ended: bool,
}

impl Chunks {
    /// Moves what is content from `raw` to `body`; what cannot be told yet stays.
    pub fn take(&mut self, raw: &mut Vec<u8>, body: &mut Vec<u8>) -> Result<(), &'static str> {
        let mut at = 0;
        while at < raw.len() && !self.ended {
            if self.left == 0 {
                match httparse::parse_chunk_size(&raw[at..]) {
                    Ok(httparse::Status::Complete((head, size))) => {
                        at += head;
                        self.last = size == 0;
                        self.left = size as usize + 2;
                    }
                    Ok(httparse::Status::Partial) => break,
                    Err(_) => return Err("a chunk size that is none"),
                }
                continue;
            }
            let n = self.left.min(raw.len() - at);
            // The last two bytes are the line end.
            let content = n.min(self.left.saturating_sub(2));
            body.extend_from_slice(&raw[at..at + content]);
            self.left -= n;
            at += n;
            self.ended = self.last && self.left == 0;
        }
        raw.drain(..at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard_is_answered_as_it_says() {
        assert_eq!(
            accept(b"dGhlIHNhbXBsZSBub25jZQ=="),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
    }

    #[test]
    fn frames_of_all_lengths_come_out_as_they_went_in() {
        for length in [0, 125, 126, 65_535, 65_536] {
            let content = vec![b'x'; length];
            let mut bytes = Vec::new();
            write_masked(&mut bytes, TEXT, &content);
            assert_eq!(read(&bytes[..bytes.len() - 1]), Ok(None), "{length}");
            let frame = read(&bytes).unwrap().unwrap();
            assert_eq!((frame.opcode, frame.end), (TEXT, bytes.len()));
            assert_eq!(frame.content(&mut bytes), content);
        }
        let mut bytes = vec![0x81, 0x82, 1, 2, 3, 4, b'a' ^ 1, b'b' ^ 2];
        let frame = read(&bytes).unwrap().unwrap();
        assert_eq!(frame.content(&mut bytes), b"ab");
        assert!(read(&[0x01, 0x00]).is_err());
    }

    #[test]
    fn chunks_are_taken_apart_wherever_they_are_cut() {
        let mut whole = Vec::new();
        write_chunk(&mut whole, b"data: one\n\n");
        write_chunk(&mut whole, b"data: two\n\n");
        whole.extend_from_slice(b"0\r\n\r\n");
        for cut in 0..whole.len() {
            let (mut chunks, mut body) = (Chunks::default(), Vec::new());
            let mut raw = whole[..cut].to_vec();
            chunks.take(&mut raw, &mut body).unwrap();
            raw.extend_from_slice(&whole[cut..]);
            chunks.take(&mut raw, &mut body).unwrap();
            assert_eq!(body, b"data: one\n\ndata: two\n\n", "{cut}");
            assert!(chunks.ended, "{cut}");
        }
    }
}
