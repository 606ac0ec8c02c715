//! Whom a request is for, where it says so twice.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use bytes::Bytes;
use http::{Response, header};
use ogive_server::ResponseBody;

use crate::Running;

/// The host that the service sees of a request with this head.
fn host(head: &str) -> String {
    let server = Running::start(
        |_| {},
        |parts| {
            let host = parts.headers.get_all(header::HOST).iter();
            let hosts: Vec<&str> = host.map(|host| host.to_str().unwrap()).collect();
            let path = parts.uri.path();
            let text = format!("{path} of {hosts:?}");
            Response::new(ResponseBody::from(Bytes::from(text)))
        },
    );
    let mut client = TcpStream::connect(server.address).unwrap();
    client.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    drop(client);
    server.stop();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    body.to_owned()
}

/// RFC 9112, section 3.2.2.
#[test]
fn the_host_of_a_whole_url_counts_and_not_that_of_the_header() {
    for (line, host_line, expected) in [
        ("GET /a HTTP/1.1", "host: here\r\n", "/a of [\"here\"]"),
        (
            "GET http://There:8080/a HTTP/1.1",
            "host: here\r\n",
            "/a of [\"There:8080\"]",
        ),
        ("GET http://there/a HTTP/1.0", "", "/a of [\"there\"]"),
    ] {
        let head = format!("{line}\r\n{host_line}connection: close\r\n\r\n");
        assert_eq!(host(&head), expected, "{line}");
    }
}
