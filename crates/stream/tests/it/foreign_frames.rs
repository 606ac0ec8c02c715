//! Frames beside those of tungstenite: what it writes is read as what it is, however it is cut, what is written here is read
//! there, and of damaged frames both make the same.

use std::io::{self, Cursor, Read, Write};

use ogive_stream::{Close, Received, WebSocket, WebSocketLimits};
use ogive_testbase::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_tungstenite::tungstenite::{
    self, Message,
    protocol::{
        Role,
        frame::{
            Frame, FrameHeader,
            coding::{Control, Data, OpCode},
        },
    },
};

const MESSAGE_BYTES_MAX: usize = 100_000;

/// Bytes that are there, and then no more for now.
struct There(Cursor<Vec<u8>>, Vec<u8>);

impl Read for There {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match Read::read(&mut self.0, out) {
            Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
            read => read,
        }
    }
}

impl Write for There {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(&mut self.1, bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What one side makes of bytes, in words that both can say.
#[derive(Clone, PartialEq, Debug)]
enum Seen {
    Text(String),
    Binary,
    Control,
    Closed(Option<u16>),
    Refused,
}

/// tungstenite names what the peer does wrong as if the peer had named it.
fn closed(code: Option<u16>) -> Seen {
    match code {
        Some(1002) => Seen::Refused,
        code => Seen::Closed(code),
    }
}

/// What tungstenite makes of bytes as a server.
fn theirs(bytes: &[u8]) -> Vec<Seen> {
    let config = tungstenite::protocol::WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let there = There(Cursor::new(bytes.to_vec()), Vec::new());
    let mut socket = tungstenite::WebSocket::from_raw_socket(there, Role::Server, Some(config));
    let mut read = Vec::new();
    loop {
        read.push(match socket.read() {
            Ok(Message::Text(text)) => Seen::Text(text.to_string()),
            Ok(Message::Binary(_) | Message::Frame(_)) => Seen::Binary,
            Ok(Message::Ping(_) | Message::Pong(_)) => Seen::Control,
            Ok(Message::Close(frame)) => {
                let code = frame.map(|frame| u16::from(frame.code));
                read.push(closed(code));
                return read;
            }
            Err(tungstenite::Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                return read;
            }
            Err(_) => {
                read.push(Seen::Refused);
                return read;
            }
        });
    }
}

fn limits() -> WebSocketLimits {
    WebSocketLimits {
        message_bytes_max: MESSAGE_BYTES_MAX,
        control_frames_max: u32::MAX,
        ..WebSocketLimits::default()
    }
}

/// What we make of bytes that come in pieces of random lengths.
async fn ours(bytes: &[u8], rng: &mut Rng) -> Vec<Seen> {
    let (stream, mut client) = duplex(1 << 22);
    let mut server = WebSocket::server(stream, limits());
    let mut read = Vec::new();
    let mut rest = bytes;
    loop {
        let received = tokio::select! {
            biased;
            received = server.receive() => received,
            () = std::future::ready(()) => {
                if rest.is_empty() {
                    return read;
                }
                let (piece, behind) = rest.split_at(1 + rng.below(rest.len().min(5_000)));
                client.write_all(piece).await.expect("it is there");
                rest = behind;
                continue;
            }
        };
        read.push(match received {
            Received::Text(text) => Seen::Text(text.to_string()),
            Received::Binary => Seen::Binary,
            Received::Control => Seen::Control,
            Received::Closed(close) => closed(close.map(|close| close.code)),
            Received::Violation { .. } => Seen::Refused,
            Received::Broken(why) => panic!("{why}"),
        });
        if matches!(read.last(), Some(Seen::Closed(_) | Seen::Refused)) {
            return read;
        }
    }
}

/// Frames of a client, most of them as they should be.
fn frames(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut begun = false;
    for _ in 0..rng.below(8) + 1 {
        let control = rng.below(4) == 0;
        let length = match rng.below(4) {
            0 => rng.below(3),
            1 => rng.below(126),
            2 if !control => 126 + rng.below(300),
            _ if !control => rng.below(70_000),
            _ => 125,
        };
        let is_last = rng.below(3) > 0;
        let opcode = match rng.below(3) {
            0 if control => OpCode::Control(Control::Pong),
            _ if control => OpCode::Control(Control::Ping),
            _ if begun => OpCode::Data(Data::Continue),
            0 => OpCode::Data(Data::Binary),
            _ => OpCode::Data(Data::Text),
        };
        if !control {
            begun = !is_last;
        }
        let header = FrameHeader {
            is_final: control || is_last,
            opcode,
            mask: Some(
                rng.next().to_ne_bytes()[..4]
                    .try_into()
                    .expect("it is there"),
            ),
            ..FrameHeader::default()
        };
        let payload: Vec<u8> = (0..length).map(|_| b' ' + rng.below(90) as u8).collect();
        let frame = Frame::from_payload(header, payload.into());
        frame.format(&mut bytes).expect("it is there");
    }
    if rng.below(3) == 0 {
        let code = [1000u16, 1001, 1004, 1005, 1012, 3000, 4999, 5000, 999][rng.below(9)];
        let mut payload = code.to_be_bytes().to_vec();
        payload.truncate([2, 2, 2, 1, 0][rng.below(5)]);
        let header = FrameHeader {
            opcode: OpCode::Control(Control::Close),
            mask: Some([1, 2, 3, 4]),
            ..FrameHeader::default()
        };
        let frame = Frame::from_payload(header, payload.into());
        frame.format(&mut bytes).expect("it is there");
    }
    bytes
}

#[tokio::test]
async fn of_whole_and_of_damaged_frames_both_make_the_same() {
    let mut rng = Rng::new(7);
    let mut refused = 0;
    for round in 0..2_000 {
        let mut bytes = frames(&mut rng);
        if round % 2 == 1 {
            // One bit of the first heads, mostly.
            let at = rng.below(bytes.len().min(40));
            bytes[at] ^= 1 << rng.below(8);
        }
        let mut theirs = theirs(&bytes);
        let ours = ours(&bytes, &mut rng).await;
        if round % 2 == 1 && ours.len() == theirs.len() + 1 && ours.last() == Some(&Seen::Refused) {
            // A head tells of it before the rest of the frame has come, which never does.
            theirs.push(Seen::Refused);
        }
        assert!(
            theirs == ours,
            "round {round}: {} and {}",
            shown(&theirs),
            shown(&ours)
        );
        refused += usize::from(theirs.contains(&Seen::Refused));
    }
    assert!((200..1_200).contains(&refused), "{refused}");
}

fn shown(read: &[Seen]) -> String {
    let shown = read.iter().map(|read| match read {
        Seen::Text(text) => format!("text of {}", text.len()),
        other => format!("{other:?}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// What comes out of a stream until it is closed.
async fn written(mut stream: DuplexStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.expect("it is there");
    bytes
}

#[tokio::test]
async fn what_a_client_writes_is_read_as_what_it_is() {
    for length in [0, 1, 125, 126, 65_535, 65_536, 90_000] {
        let (ours, stream) = duplex(1 << 20);
        let mut client = WebSocket::client(ours, &[], limits());
        let text = "x".repeat(length);
        client.send(&text).await.expect("it is there");
        client.ping().await.expect("it is there");
        client
            .close(Close::normal(), std::time::Duration::ZERO)
            .await;
        drop(client);
        let wanted = [Seen::Text(text), Seen::Control, Seen::Closed(Some(1000))];
        assert!(theirs(&written(stream).await) == wanted, "{length}");
    }
}
