//! Any bytes as an HTTP/1.1 answer: reading must not panic, and must find the same however the bytes are cut.
//!
//! The framing is included as source, so that nothing but it has to be built.

#![no_main]

#[path = "../../crates/transport/src/http1/framing/mod.rs"]
#[allow(dead_code, reason = "the crate it belongs to uses all of it")]
mod framing;

use bytes::BytesMut;
use framing::{Body, HeadReader, HeaderScope, Malformed};
use libfuzzer_sys::fuzz_target;

/// Status, whether the connection may be used again by the head, and the body.
type Read = (u16, bool, Vec<u8>);

/// `None`: it is not whole.
fn read(pieces: &[&[u8]]) -> Result<Option<Read>, Malformed> {
    let mut buffer = BytesMut::new();
    let mut reader = HeadReader::new(HeaderScope::All, false);
    let mut answer = None;
    let mut came = 0;
    for piece in pieces {
        buffer.extend_from_slice(piece);
        came += piece.len();
        if answer.is_none() {
            let head = reader.read(&mut buffer)?;
            answer = head.map(|head| (Body::new(head.framing), head));
        }
        if let Some((body, _)) = &mut answer {
            let whole = body.read(&mut buffer)?;
            assert!(body.len() <= came && body.announced() >= body.len() as u64);
            if whole {
                break;
            }
        }
    }
    let Some((mut body, head)) = answer else {
        return Ok(None);
    };
    if !body.read(&mut buffer)? && !body.may_end() {
        return Ok(None);
    }
    let (bytes, _) = body.take(&mut buffer);
    Ok(Some((
        head.status.as_u16(),
        head.keep_alive,
        bytes.to_vec(),
    )))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((seed, bytes)) = bytes.split_first() else {
        return;
    };
    let whole = read(&[bytes]).unwrap_or_default();
    let drops: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read(&drops).unwrap_or_default(), whole);
    let size = usize::from(*seed).max(2);
    let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
    assert_eq!(read(&pieces).unwrap_or_default(), whole);
});
