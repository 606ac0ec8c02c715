//! Connections that become something else.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use http::{Response, StatusCode, header};
use ogive_server::{ResponseBody, Upgrade, Upgraded};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{Noted, Running};

/// Says back what it hears, in capitals, until the client has nothing more to say.
async fn echo(mut bytes: Upgraded, noted: Noted) {
    let mut piece = [0; 16];
    loop {
        let n = bytes.read(&mut piece).await.unwrap();
        if n == 0 {
            break;
        }
        piece[..n].make_ascii_uppercase();
        bytes.write_all(&piece[..n]).await.unwrap();
        bytes.flush().await.unwrap();
    }
    noted.lock().unwrap().push("over");
}

#[test]
fn after_the_head_the_bytes_belong_to_whoever_answered() {
    let noted = Noted::default();
    let note = Noted::clone(&noted);
    let server = Running::start(
        |_| {},
        move |_| {
            let note = Noted::clone(&note);
            let upgrade = Upgrade::new(|bytes| echo(bytes, note));
            let mut response = Response::new(ResponseBody::of_upgrade(upgrade));
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            let headers = response.headers_mut();
            headers.insert(header::CONNECTION, "upgrade".parse().unwrap());
            headers.insert(header::UPGRADE, "echo".parse().unwrap());
            response
        },
    );
    let mut stream = TcpStream::connect(server.address).unwrap();
    // Some clients do not wait for the answer; and what follows is no request, however much it looks like one.
    let asked = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nearly";
    stream.write_all(asked.as_bytes()).unwrap();
    let mut read = Vec::new();
    let mut until = |stream: &mut TcpStream, end: &str| {
        while !read.ends_with(end.as_bytes()) {
            let mut piece = [0; 64];
            let n = stream.read(&mut piece).unwrap();
            assert!(n > 0, "{}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&piece[..n]);
        }
        String::from_utf8(std::mem::take(&mut read)).unwrap()
    };
    let head = until(&mut stream, "EARLY");
    assert!(
        head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"),
        "{head}"
    );
    let like_http = "get / http/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(like_http.as_bytes()).unwrap();
    let upper = like_http.to_uppercase();
    assert_eq!(until(&mut stream, &upper), upper);
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(*noted.lock().unwrap(), ["over"]);
    assert_eq!(server.stop().cut_off, 0);
}

#[test]
fn an_answer_without_an_upgrade_leaves_the_connection_as_it_is() {
    let server = Running::start(
        |_| {},
        |_| Response::new(ResponseBody::from(bytes::Bytes::from("ok"))),
    );
    let mut stream = TcpStream::connect(server.address).unwrap();
    let asked = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    for _ in 0..2 {
        stream.write_all(asked.as_bytes()).unwrap();
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n\r\nok") {
            let mut piece = [0; 256];
            let n = stream.read(&mut piece).unwrap();
            assert!(n > 0, "{}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&piece[..n]);
        }
    }
    server.stop();
}
