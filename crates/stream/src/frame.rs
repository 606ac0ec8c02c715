//! Frames of WebSockets (RFC 6455, section 5): the heads of those that come, and the bytes of those that go.
//!
//! Nothing here reads or writes; whoever does says which side it is. Clients mask what they send, servers do not, so a
//! frame of a server may be written once for many.

use bytes::Bytes;
use ring::rand::{SecureRandom, SystemRandom};

/// Most bytes of a control frame's payload.
pub(crate) const CONTROL_BYTES_MAX: usize = 125;
/// Most bytes of a head.
const HEAD_BYTES_MAX: usize = 14;
/// The same without a mask.
const SERVER_HEAD_BYTES_MAX: usize = 10;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    fn read(bits: u8) -> Option<Opcode> {
        Some(match bits {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }
    pub(crate) fn is_control(self) -> bool {
        self as u8 >= 8
    }
}

/// Which side of a connection we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Server,
    Client,
}

/// The head of a frame that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) opcode: Opcode,
    /// Whether it is the last one of its message.
    pub(crate) is_last: bool,
    pub(crate) mask: Option<[u8; 4]>,
    /// Bytes of the head itself.
    pub(crate) head: usize,
    /// Bytes of the payload.
    pub(crate) payload: u64,
}

impl Head {
    /// Reads a head; `None` if it is not all there. An error says what the peer does wrong.
    pub(crate) fn read(bytes: &[u8], role: Role) -> Result<Option<Head>, &'static str> {
        let [first, second, ..] = *bytes else {
            return Ok(None);
        };
        if first & 0x70 != 0 {
            return Err("reserved bits are set");
        }
        let opcode = Opcode::read(first & 0x0f).ok_or("an unknown kind of frame")?;
        let (is_last, is_masked) = (first & 0x80 != 0, second & 0x80 != 0);
        match (role, is_masked) {
            (Role::Server, false) => return Err("a frame of a client without a mask"),
            (Role::Client, true) => return Err("a frame of a server with a mask"),
            _ => {}
        }
        let (length, mut head) = match second & 0x7f {
            126 => (bytes.get(2..4).map(big_endian), 4),
            127 => (bytes.get(2..10).map(big_endian), 10),
            short => (Some(u64::from(short)), 2),
        };
        let Some(payload) = length else {
            return Ok(None);
        };
        if payload >> 63 != 0 {
            return Err("a length of more than 63 bits");
        }
        if opcode.is_control() && (!is_last || payload > CONTROL_BYTES_MAX as u64) {
            return Err("a control frame in fragments, or of more than 125 bytes");
        }
        let mut mask = None;
        if is_masked {
            let Some(key) = bytes.get(head..head + 4) else {
                return Ok(None);
            };
            mask = key.try_into().ok();
            head += 4;
        }
        Ok(Some(Head {
            opcode,
            is_last,
            mask,
            head,
            payload,
        }))
    }
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// Masks a payload, or takes its mask away.
pub(crate) fn mask(payload: &mut [u8], key: [u8; 4]) {
    let word = u32::from_ne_bytes(key);
    let mut words = payload.chunks_exact_mut(4);
    for bytes in &mut words {
        let masked = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) ^ word;
        bytes.copy_from_slice(&masked.to_ne_bytes());
    }
    let rest = words.into_remainder().iter_mut();
    rest.zip(key).for_each(|(byte, key)| *byte ^= key);
}

/// Writes a whole frame. It fails if the system gives no random bytes for the mask of a client.
pub(crate) fn write(
    out: &mut Vec<u8>,
    opcode: Opcode,
    payload: &[u8],
    role: Role,
) -> Result<(), String> {
    out.reserve(HEAD_BYTES_MAX + payload.len());
    write_head(out, opcode, payload.len(), role);
    if role == Role::Server {
        out.extend_from_slice(payload);
        return Ok(());
    }
    let mut key = [0; 4];
    let filled = SystemRandom::new().fill(&mut key);
    filled.map_err(|_| "the system gives no random bytes".to_owned())?;
    out.extend_from_slice(&key);
    let begin = out.len();
    out.extend_from_slice(payload);
    mask(&mut out[begin..], key);
    Ok(())
}

/// Writes a head without the key of its mask.
fn write_head(out: &mut Vec<u8>, opcode: Opcode, length: usize, role: Role) {
    let masked = match role {
        Role::Server => 0,
        Role::Client => 0x80,
    };
    out.push(0x80 | opcode as u8);
    match length {
        short @ 0..126 => out.push(masked | short as u8),
        middle @ 126..65_536 => {
            out.push(masked | 126);
            out.extend_from_slice(&(middle as u16).to_be_bytes());
        }
        long => {
            out.push(masked | 127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
}

/// A text message of a server as one frame, for all connections that are sent the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFrame(pub(crate) Bytes);

impl SharedFrame {
    /// The frame of what is written.
    pub fn of(write: impl FnOnce(&mut String)) -> Self {
        // The head is as long as the text asks for, and stands right before it.
        let room = "\0".repeat(SERVER_HEAD_BYTES_MAX);
        let mut text = room;
        write(&mut text);
        let mut bytes = text.into_bytes();
        let payload = bytes.len() - SERVER_HEAD_BYTES_MAX;
        let mut head = Vec::with_capacity(SERVER_HEAD_BYTES_MAX);
        write_head(&mut head, Opcode::Text, payload, Role::Server);
        let begin = SERVER_HEAD_BYTES_MAX - head.len();
        bytes[begin..SERVER_HEAD_BYTES_MAX].copy_from_slice(&head);
        SharedFrame(Bytes::from(bytes).split_off(begin))
    }
    /// Its bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_all_lengths_are_read_as_they_were_written_and_only_when_they_are_whole() {
        for length in [0, 1, 125, 126, 127, 65_535, 65_536, 70_000] {
            for (ours, theirs) in [(Role::Server, Role::Client), (Role::Client, Role::Server)] {
                let payload: Vec<u8> = (0..length).map(|n| n as u8).collect();
                let mut out = Vec::new();
                write(&mut out, Opcode::Text, &payload, theirs).unwrap();
                let head = Head::read(&out, ours).unwrap().unwrap();
                assert_eq!((head.opcode, head.is_last), (Opcode::Text, true));
                assert_eq!(head.payload, length as u64);
                assert_eq!(head.head + payload.len(), out.len());
                for cut in 0..head.head {
                    assert_eq!(Head::read(&out[..cut], ours), Ok(None), "{length} {cut}");
                }
                let mut read = out.split_off(head.head);
                if let Some(key) = head.mask {
                    mask(&mut read, key);
                }
                assert!(read == payload, "{length}");
                assert!(
                    Head::read(&out, theirs).is_err(),
                    "the mask of the other side"
                );
                if theirs == Role::Server {
                    let text = "x".repeat(length);
                    let frame = SharedFrame::of(|out| out.push_str(&text));
                    assert!(frame.0.ends_with(text.as_bytes()));
                    assert_eq!(frame.0[..out.len()], out, "the same head");
                }
            }
        }
    }
}
