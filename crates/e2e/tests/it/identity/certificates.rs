//! Client certificates as callers.

use std::io::{Read, Write};

use serde_json::{Value, json};

use crate::{
    authorization::RESTRICTED,
    certificates::{Authority, Folder, Issued, tls},
    graph::Graph,
    http_client::{Answer, Connection, request},
};

/// Asks over TLS, with a certificate or without, on a connection of its own.
pub(super) fn ask_as(
    graph: &Graph,
    authority: &Authority,
    who: Option<&Issued>,
    query: &str,
    headers: &[(&str, &str)],
) -> Answer {
    let stream = tls(graph.address(), authority, who, &["http/1.1"]).unwrap();
    let mut connection = Connection::over(stream);
    let headers: Vec<_> = [("content-type", "application/json")]
        .iter()
        .chain(headers)
        .copied()
        .collect();
    let body = json!({ "query": query }).to_string();
    connection.write(&request("POST", "/graphql", &headers, body.as_bytes()));
    connection.read()
}

#[test]
fn a_client_certificate_says_who_asks_and_no_header_does() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let folder = Folder::new("client-certificates");
    let identity = folder.identity("server", &authority.issue("localhost"));
    let trusted = folder.write("clients.pem", &clients.pem);
    let graph = |name: &str, trusted_proxy: &str| {
        let yaml = format!(
            "tls: {{ supergraph: {{ {identity}, client_authentication: {{ certificate_authorities: '{trusted}', required: false }} }} }}\n\
             authentication: {{ router: {{ client_certificate: {{ sub_from: {name} }} }} }}\n\
             authorization: {{ directives: enforce, claims: {{ header: x-claims, trusted: [{trusted_proxy}] }}, \
             policies: {{ rules: {{ stock: {{ contains: [{{ jwt_claim: certificate.dns }}, client.example] }} }} }} }}\n\
             headers: {{ all: {{ request: [{{ insert: {{ name: x-user, from_context: 'apollo::authentication::jwt_claims', path: .sub }} }}, \
             {{ propagate: {{ matching: '.*' }} }}] }} }}\n"
        );
        Graph::changed(&yaml, RESTRICTED)
    };
    let stock = "{ topProducts(first: 1) { warehouse { city } } }";
    let by_name = graph("dns", "10.1.2.3");
    let known = clients.issue("client.example");
    let ask = |who, query: &str, headers: &[(&str, &str)]| {
        ask_as(&by_name, &authority, who, query, headers)
    };
    assert_eq!(ask(Some(&known), stock, &[]).codes(), [""; 0]);
    let other = clients.issue("other.example");
    assert_eq!(
        ask(Some(&other), stock, &[]).codes(),
        ["UNAUTHORIZED_FIELD_OR_TYPE"]
    );
    let forged = [
        ("x-client-cert", "client.example"),
        ("ssl-client-s-dn", "CN=client.example"),
        ("x-forwarded-client-cert", "DNS=client.example"),
        ("x-user", "client.example"),
    ];
    assert_eq!(
        ask(None, stock, &forged).codes(),
        ["UNAUTHORIZED_FIELD_OR_TYPE"]
    );
    // Subgraphs learn the name, and nobody else's.
    by_name.service.configure("accounts", |s| s.record = true);
    let sent = |who| {
        let before = by_name.service.recorded().len();
        assert_eq!(ask(who, "{ me { name } }", &forged).codes(), [""; 0]);
        let headers = by_name.service.recorded()[before].headers.clone();
        let users = headers.into_iter().filter(|(name, _)| name == "x-user");
        users.map(|(_, value)| value).collect::<Vec<_>>()
    };
    assert_eq!(sent(Some(&known)), ["client.example"]);
    assert_eq!(sent(Some(&other)), ["other.example"]);
    assert_eq!(sent(None), [""; 0]);
    // A proxy that is trusted says whom it asks for, or nothing; its certificate is its own.
    let proxied = graph("dns", "127.0.0.1");
    let people = [("x-claims", r#"{"scopes":["people"]}"#)];
    for (headers, city) in [(&people[..], true), (&[], false)] {
        let query = "{ me { city } topProducts(first: 1) { warehouse { city } } }";
        let answer = ask_as(&proxied, &authority, Some(&known), query, headers);
        assert_eq!(answer.json()["data"]["me"]["city"].is_string(), city);
        assert!(answer.json()["data"]["topProducts"][0]["warehouse"].is_null());
    }
    // A certificate without a name of the kind names nobody.
    let by_uri = graph("uri", "10.1.2.3");
    let refused = ask_as(&by_uri, &authority, Some(&known), "{ me { name } }", &[]);
    assert_eq!(
        (refused.status, refused.codes()),
        (401, vec!["INVALID_CLIENT_CERTIFICATE".to_owned()])
    );
    assert_eq!(refused.header("www-authenticate"), Some(CERTIFICATE));
}

const CERTIFICATE: &str = "ClientCertificate realm=\"graphql\"";

#[test]
fn where_only_certificates_are_judged_nobody_is_asked_for_a_token() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let folder = Folder::new("only-certificates");
    let identity = folder.identity("server", &authority.issue("localhost"));
    let trusted = folder.write("clients.pem", &clients.pem);
    let graph = Graph::with(&format!(
        "tls: {{ supergraph: {{ {identity}, client_authentication: {{ certificate_authorities: '{trusted}', required: false }} }} }}\n\
         authentication: {{ router: {{ client_certificate: {{ sub_from: dns }} }} }}\n\
         authorization: {{ require_authentication: true }}\n"
    ));
    let nobody = ask_as(&graph, &authority, None, "{ me { name } }", &[]);
    assert_eq!(
        (nobody.status, nobody.codes()),
        (401, vec!["UNAUTHENTICATED".to_owned()])
    );
    assert_eq!(nobody.header("www-authenticate"), Some(CERTIFICATE));
    let message = nobody.json()["errors"][0]["message"].to_string();
    assert!(!message.contains("token"), "{message}");
}

/// A WebSocket over a connection that is open, for messages of few bytes.
struct PlainWebSocket<S>(S);

impl<S: Read + Write> PlainWebSocket<S> {
    fn open(mut stream: S, headers: &str) -> Self {
        let upgrade = format!(
            "GET /graphql HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             sec-websocket-protocol: graphql-transport-ws\r\n{headers}\r\n"
        );
        stream.write_all(upgrade.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        PlainWebSocket(stream)
    }
    /// In one frame, masked with zeros.
    fn say(&mut self, message: &Value) {
        let text = message.to_string();
        let length = u8::try_from(text.len()).unwrap();
        assert!(length < 126);
        let head = [0x81, 0x80 | length, 0, 0, 0, 0];
        self.0
            .write_all(&[&head, text.as_bytes()].concat())
            .unwrap();
    }
    /// A message, or the code with which it is closed.
    fn hear(&mut self) -> Value {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        let is_close = head[0] == 0x88;
        let mut length = usize::from(head[1]);
        if length == 126 {
            self.0.read_exact(&mut head).unwrap();
            length = usize::from(u16::from_be_bytes(head));
        }
        let mut text = vec![0; length];
        self.0.read_exact(&mut text).unwrap();
        if is_close {
            return u16::from_be_bytes([text[0], text[1]]).into();
        }
        serde_json::from_slice(&text).unwrap()
    }
}

#[test]
fn a_client_certificate_says_who_asks_over_a_websocket_unless_a_foreign_page_opened_it() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let folder = Folder::new("websocket-certificates");
    let identity = folder.identity("server", &authority.issue("localhost"));
    let trusted = folder.write("clients.pem", &clients.pem);
    let graph = Graph::with(&format!(
        "subscription: {{ enabled: true, client: {{ heartbeat_interval: 0s, websocket: {{ connection_init_timeout: 60s }} }} }}\n\
         cors: {{ policies: [{{ origins: ['https://page.example'] }}] }}\n\
         tls: {{ supergraph: {{ {identity}, client_authentication: {{ certificate_authorities: '{trusted}' }} }} }}\n\
         authentication: {{ router: {{ client_certificate: {{ sub_from: dns }} }} }}\n\
         authorization: {{ require_authentication: true }}\n"
    ));
    let known = clients.issue("client.example");
    let connect = |headers: &str| {
        let stream = tls(graph.address(), &authority, Some(&known), &["http/1.1"]).unwrap();
        let mut socket = PlainWebSocket::open(stream, headers);
        socket.say(&json!({ "type": "connection_init" }));
        socket
    };
    let mut own = connect("");
    assert_eq!(own.hear()["type"], "connection_ack");
    own.say(&json!({ "type": "subscribe", "id": "1", "payload": { "query": "{ me { name } }" } }));
    let next = own.hear();
    assert!(next["payload"]["data"]["me"]["name"].is_string(), "{next}");
    // A browser shows the certificate of its user to whatever page connects.
    let mut page = connect("origin: https://page.example\r\n");
    assert_eq!(page.hear(), 4403);
}

#[test]
fn a_bad_token_that_counts_as_none_leaves_the_certificate() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let folder = Folder::new("token-and-certificate");
    let identity = folder.identity("server", &authority.issue("localhost"));
    let trusted = folder.write("clients.pem", &clients.pem);
    let keys = folder.write("jwks.json", "{\"keys\":[]}");
    let known = clients.issue("client.example");
    for (on_error, status) in [("continue", 200), ("error", 401)] {
        let graph = Graph::with(&format!(
            "tls: {{ supergraph: {{ {identity}, client_authentication: {{ certificate_authorities: '{trusted}' }} }} }}\n\
             authentication: {{ router: {{ client_certificate: {{ sub_from: dns }}, \
             jwt: {{ on_error: {on_error}, jwks: [{{ url: 'file://{keys}' }}] }} }} }}\n\
             authorization: {{ require_authentication: true }}\n"
        ));
        let bad = [("authorization", "Bearer x")];
        let answer = ask_as(&graph, &authority, Some(&known), "{ me { name } }", &bad);
        assert_eq!(answer.status, status, "{on_error}: {:?}", answer.codes());
    }
}

/// The configuration of the page, with files of its own.
pub(super) fn the_documented_set_up_starts(yaml: &str) {
    let (authority, clients) = (Authority::new(), Authority::new());
    let folder = Folder::new("documented-certificates");
    folder.identity("server", &authority.issue("localhost"));
    folder.write("clients.pem", &clients.pem);
    let graph = Graph::with(&yaml.replace("/etc/ogive/", &folder.path("")));
    let known = clients.issue("client.example");
    let answer = ask_as(&graph, &authority, Some(&known), "{ me { name } }", &[]);
    assert_eq!(answer.codes(), [""; 0]);
    assert!(crate::certificates::ask(graph.address(), &authority, None).is_err());
}
