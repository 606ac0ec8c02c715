//! One side is ours, the other one writes frames by hand.

use std::{cell::Cell, future::poll_fn, task::Poll, time::Duration};

use ogive_base::OutOfMemory;
use ogive_stream::{Close, Received, WebSocket, WebSocketLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

const TEXT: u8 = 0x81;
const TEXT_BEGUN: u8 = 0x01;
const CONTINUED: u8 = 0x00;
const LAST: u8 = 0x80;
const PING: u8 = 0x89;

/// A frame as clients send it, with a mask that changes nothing.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..126 => frame.push(0x80 | short as u8),
        long => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&(long as u16).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

async fn server() -> (WebSocket<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(1 << 20);
    let limits = WebSocketLimits {
        message_bytes_max: 1_000,
        control_frames_max: 5,
        ..WebSocketLimits::default()
    };
    (WebSocket::server(ours, limits), theirs)
}

/// What the server makes of these bytes, first message or end.
async fn received(bytes: &[u8]) -> Received {
    let (mut server, mut client) = server().await;
    client.write_all(bytes).await.expect("the server reads");
    loop {
        match server.receive().await {
            Received::Control => {}
            other => return other,
        }
    }
}

fn code(received: &Received) -> u16 {
    match received {
        Received::Violation { close, .. } => close.code,
        other => panic!("no violation: {other:?}"),
    }
}

#[tokio::test]
async fn fragments_with_control_frames_between_them_are_one_message() {
    let mut bytes = masked(TEXT_BEGUN, "h\u{fc}".as_bytes().split_at(2).0);
    bytes.extend(masked(PING, b"x"));
    bytes.extend(masked(CONTINUED, &"h\u{fc}".as_bytes()[2..]));
    bytes.extend(masked(LAST, b"!"));
    assert_eq!(received(&bytes).await, Received::Text("h\u{fc}!".into()));
}

#[tokio::test]
async fn what_the_protocol_forbids_has_its_code() {
    // Not masked.
    assert_eq!(code(&received(&[TEXT, 1, b'a']).await), 1002);
    // Reserved bits, reserved opcode, a control frame in fragments, a continuation of nothing.
    assert_eq!(code(&received(&masked(TEXT | 0x40, b"a")).await), 1002);
    assert_eq!(code(&received(&masked(0x83, b"a")).await), 1002);
    assert_eq!(code(&received(&masked(0x09, b"a")).await), 1002);
    assert_eq!(code(&received(&masked(LAST, b"a")).await), 1002);
    // A text that begins inside another one.
    let mut nested = masked(TEXT_BEGUN, b"a");
    nested.extend(masked(TEXT, b"b"));
    assert_eq!(code(&received(&nested).await), 1002);
    // Not UTF-8.
    assert_eq!(code(&received(&masked(TEXT, b"\xff")).await), 1007);
    // Larger than it may be, at once and in fragments.
    assert_eq!(code(&received(&masked(TEXT, &[b'a'; 1_001])).await), 1009);
    let mut parts = masked(TEXT_BEGUN, &[b'a'; 600]);
    parts.extend(masked(LAST, &[b'a'; 600]));
    assert_eq!(code(&received(&parts).await), 1009);
    // A length that no memory has.
    let mut huge = vec![TEXT, 0x80 | 127];
    huge.extend_from_slice(&(u64::MAX >> 1).to_be_bytes());
    huge.extend_from_slice(&[0; 4]);
    assert_eq!(code(&received(&huge).await), 1009);
    let binary = received(&masked(0x82, b"a")).await;
    assert_eq!(binary, Received::Binary);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_pings_is_a_violation_and_a_ping_now_and_then_is_not() {
    let (mut server, mut client) = server().await;
    for _ in 0..20 {
        client.write_all(&masked(PING, b"")).await.unwrap();
        assert_eq!(server.receive().await, Received::Control);
        tokio::time::advance(Duration::from_secs(3)).await;
    }
    for _ in 0..6 {
        client.write_all(&masked(PING, b"")).await.unwrap();
    }
    for _ in 0..5 {
        assert_eq!(server.receive().await, Received::Control);
    }
    assert_eq!(code(&server.receive().await), 1008);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_empty_fragments_is_a_violation_and_a_few_are_not() {
    let few = [
        masked(TEXT_BEGUN, b"a"),
        masked(CONTINUED, b"").repeat(5),
        masked(LAST, b"b"),
    ];
    assert_eq!(received(&few.concat()).await, Received::Text("ab".into()));
    let many = [masked(TEXT_BEGUN, b""), masked(CONTINUED, b"").repeat(6)];
    assert_eq!(code(&received(&many.concat()).await), 1008);
}

#[tokio::test]
async fn the_reason_of_a_close_arrives_on_both_sides() {
    let mut bytes = 4_400u16.to_be_bytes().to_vec();
    bytes.extend_from_slice(b"why");
    let closed = received(&masked(0x88, &bytes)).await;
    assert_eq!(closed, Received::Closed(Some(Close::new(4_400, "why"))));

    let (mut server, mut client) = server().await;
    let closing = tokio::spawn(async move {
        server
            .close(Close::duplicate("1"), Duration::from_secs(5))
            .await;
    });
    let mut head = [0; 4];
    client.read_exact(&mut head).await.unwrap();
    assert_eq!(head[0], 0x88);
    assert_eq!(u16::from_be_bytes([head[2], head[3]]), 4_409);
    // The answer ends the wait.
    client.write_all(&masked(0x88, &head[2..4])).await.unwrap();
    closing.await.unwrap();
    let mut reason = String::new();
    client.read_to_string(&mut reason).await.unwrap();
    assert_eq!(reason, "Subscriber for 1 already exists");
}

#[tokio::test]
async fn a_close_is_answered_with_what_it_says_and_once() {
    for said in [&b""[..], b"\x03\xe8", b"\x11\x30why"] {
        let (mut server, mut client) = server().await;
        client
            .write_all(&masked(0x88, said).repeat(2))
            .await
            .unwrap();
        assert!(matches!(server.receive().await, Received::Closed(_)));
        assert_eq!(server.receive().await, Received::Closed(None));
        server.close(Close::normal(), Duration::from_secs(5)).await;
        drop(server);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, [&[0x88, said.len() as u8], said].concat());
    }
}

#[tokio::test]
async fn of_a_peer_that_asks_and_takes_nothing_one_question_waits_for_its_answer() {
    let (ours, mut theirs) = duplex(1 << 10);
    let limits = WebSocketLimits {
        control_frames_max: u32::MAX,
        ..WebSocketLimits::default()
    };
    let mut server = WebSocket::server(ours, limits);
    for _ in 0..1_000 {
        theirs.write_all(&masked(PING, &[b'x'; 125])).await.unwrap();
        assert_eq!(server.receive().await, Received::Control);
    }
    assert!(server.held_bytes() < 8 << 10, "{}", server.held_bytes());
}

#[tokio::test]
async fn lengths_in_more_bytes_than_needed_are_read_and_what_is_no_text_is_found_out_at_its_first_fragment()
 {
    let mut long = vec![TEXT, 0x80 | 127];
    long.extend_from_slice(&2u64.to_be_bytes());
    long.extend_from_slice(&[0; 4]);
    long.extend_from_slice(b"ok");
    assert_eq!(received(&long).await, Received::Text("ok".into()));
    // A ping of 126 bytes.
    assert_eq!(code(&received(&masked(PING, &[b'x'; 126])).await), 1002);
    // A character that is cut is none yet; a byte that begins none is none.
    let mut cut = masked(TEXT_BEGUN, b"\xe2\x82");
    cut.extend(masked(LAST, b"\xac"));
    assert_eq!(received(&cut).await, Received::Text("\u{20ac}".into()));
    assert_eq!(code(&received(&masked(TEXT_BEGUN, b"\xff")).await), 1007);
    let half = received(&masked(0x88, b"\x03")).await;
    assert_eq!(code(&half), 1002);
    assert_eq!(code(&received(&masked(0x88, b"\x03\xed")).await), 1002);
    assert_eq!(code(&received(&masked(0x88, b"\x03\xe8\xff")).await), 1007);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_never_answers_a_close_is_left_in_time() {
    let (mut server, _client) = server().await;
    let started = tokio::time::Instant::now();
    let within = Duration::from_secs(2);
    server.close(Close::going_away(), within).await;
    assert_eq!(started.elapsed(), within);
}

#[tokio::test]
async fn a_connection_that_breaks_is_no_violation() {
    let (mut server, client) = server().await;
    drop(client);
    assert!(matches!(server.receive().await, Received::Broken(_)));
}

#[tokio::test]
async fn both_ends_speak_to_each_other_and_waiting_loses_nothing() {
    let (left, right) = duplex(64);
    let limits = WebSocketLimits::default();
    let mut server = WebSocket::server(left, limits);
    let mut client = WebSocket::client(right, &[], limits);
    let long = "x".repeat(10_000);
    let text = long.clone();
    let sending = tokio::spawn(async move {
        client.send(text).await.unwrap();
        client.receive().await
    });
    let received = loop {
        // Given up again and again: what was read of the message is kept.
        let waited = tokio::select! {
            biased;
            received = server.receive() => Some(received),
            () = tokio::task::yield_now() => None,
        };
        if let Some(received) = waited {
            break received;
        }
    };
    assert_eq!(received, Received::Text(long.into()));
    server.send("{}").await.unwrap();
    assert_eq!(sending.await.unwrap(), Received::Text("{}".into()));
}

/// A frame with a mask that changes something.
fn masked_by(key: [u8; 4], first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = masked(first, payload);
    let head = frame.len() - payload.len();
    frame[head - 4..head].copy_from_slice(&key);
    for (nth, byte) in frame[head..].iter_mut().enumerate() {
        *byte ^= key[nth % 4];
    }
    frame
}

/// What has come by now.
async fn polled(server: &mut WebSocket<DuplexStream>) -> Poll<Received> {
    poll_fn(|cx| Poll::Ready(server.poll_receive(cx))).await
}

/// However a frame is cut on its way, and whatever its mask, the message is the same.
#[tokio::test]
async fn a_frame_that_comes_in_pieces_is_the_message_it_was() {
    let text: String = ('a'..='z').cycle().take(900).collect();
    let (one, other) = text.split_at(333);
    let mut bytes = masked_by([1, 2, 3, 4], TEXT_BEGUN, one.as_bytes());
    bytes.extend(masked_by([9, 8, 7, 6], PING, b"between"));
    bytes.extend(masked_by([5, 0, 250, 1], LAST, other.as_bytes()));
    bytes.extend(masked_by([3, 3, 1, 7], TEXT, text.as_bytes()));
    for piece in [1, 2, 3, 5, 7, 64, 331, 1_000] {
        let (mut server, mut client) = server().await;
        let mut messages = 0;
        for piece in bytes.chunks(piece) {
            client.write_all(piece).await.unwrap();
            while let Poll::Ready(received) = polled(&mut server).await {
                match received {
                    Received::Control => {}
                    Received::Text(came) => {
                        assert_eq!(&*came, text);
                        messages += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(messages, 2);
    }
}

/// What is held of a message that does not end is known as it comes, and is no more than that; what is not counted is not
/// read.
#[tokio::test]
async fn what_is_held_of_a_message_is_known_while_it_comes() {
    let (ours, mut client) = duplex(1 << 20);
    let mut server = WebSocket::server(ours, WebSocketLimits::default());
    let mut head = vec![TEXT, 0x80 | 127];
    head.extend_from_slice(&(2_u64 << 20).to_be_bytes());
    head.extend_from_slice(&[0; 4]);
    client.write_all(&head).await.unwrap();
    client.write_all(&[b'x'; 300 << 10]).await.unwrap();
    let mut seen = 0;
    let polled = poll_fn(|cx| {
        Poll::Ready(server.poll_receive_within(cx, |held| {
            seen = held;
            Ok(())
        }))
    });
    assert!(polled.await.is_pending());
    assert_eq!(seen, server.held_bytes());
    assert!((300 << 10..=600 << 10).contains(&seen), "{seen}");
    client.write_all(&[b'x'; 500 << 10]).await.unwrap();
    let polled = poll_fn(|cx| {
        Poll::Ready(server.poll_receive_within(cx, |held| {
            if held > 600 << 10 {
                Err(OutOfMemory)
            } else {
                Ok(())
            }
        }))
    });
    assert_eq!(polled.await, Poll::Ready(Err(OutOfMemory)));
    assert!(
        server.held_bytes() <= 1_300 << 10,
        "{}",
        server.held_bytes()
    );
}

/// Once we have said that the connection ends, nothing is kept of what its client goes on to say, and its answer is found
/// behind all of that.
#[tokio::test]
async fn a_connection_that_ends_keeps_nothing_of_what_still_comes() {
    let (ours, mut client) = duplex(64 << 10);
    let mut server = WebSocket::server(ours, WebSocketLimits::default());
    let mut frame = vec![TEXT_BEGUN, 0x80 | 127];
    frame.extend_from_slice(&(1_u64 << 20).to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&[b'x'; 40 << 10]);
    client.write_all(&frame).await.unwrap();
    assert!(polled(&mut server).await.is_pending());
    assert!(server.held_bytes() >= 40 << 10);
    let talks = async {
        for _ in 0..(1 << 20) / (8 << 10) - 5 {
            client.write_all(&[b'x'; 8 << 10]).await.unwrap();
        }
        client
            .write_all(&masked(CONTINUED, &[b'x'; 60_000]))
            .await
            .unwrap();
        client.write_all(&masked(0x88, b"\x03\xf5")).await.unwrap();
    };
    let held = Cell::new(usize::MAX);
    let ends = async {
        let closing = server.close(Close::try_again_later(), Duration::from_secs(60));
        closing.await;
        held.set(server.held_bytes());
    };
    tokio::join!(talks, ends);
    assert!(held.get() < 1 << 10, "{} bytes", held.get());
    let answer = polled(&mut server).await;
    assert_eq!(
        answer,
        Poll::Ready(Received::Closed(None)),
        "the client has answered"
    );
}
