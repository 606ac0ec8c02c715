//! The server over real sockets: routes, keep-alive, faults on the wire, delays, counters.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use ogive_mock::{
    Config, Data, Delay, Fault, Options, Server, Service, Settings, Source, Subgraph, assemble,
};
use serde_json::{Value, json};

/// What came back on one connection: status, head and body; `None` if it was closed before a head.
#[derive(Debug)]
struct Received {
    status: u16,
    head: String,
    body: Vec<u8>,
    /// The body is as long as the head announced.
    complete: bool,
}

/// A connection, and what was read of it and is no answer yet.
struct Client(TcpStream, Vec<u8>);

impl Client {
    fn new(addr: SocketAddr) -> Client {
        let stream = TcpStream::connect(addr).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Client(stream, Vec::new())
    }

    fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Option<Received> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: mock\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        self.0.write_all(request.as_bytes()).unwrap();
        self.receive()
    }

    fn receive(&mut self) -> Option<Received> {
        let mut buffer = [0; 65536];
        loop {
            if let Some(received) = parse(&self.1, false) {
                let length = received.head.len() + 4 + received.body.len();
                self.1.drain(..length);
                return Some(received);
            }
            match self.0.read(&mut buffer) {
                Ok(0) | Err(_) => return parse(&self.1, true),
                Ok(n) => self.1.extend_from_slice(&buffer[..n]),
            }
        }
    }

    fn post(&mut self, path: &str, headers: &str, query: &str) -> Received {
        let body = json!({ "query": query }).to_string();
        self.send("POST", path, headers, &body).expect("an answer")
    }
}

fn parse(bytes: &[u8], closed: bool) -> Option<Received> {
    let text = String::from_utf8_lossy(bytes);
    let (head, _) = text.split_once("\r\n\r\n")?;
    let body = &bytes[head.len() + 4..];
    let length = head
        .lines()
        .find_map(|l| l.strip_prefix("content-length: "))
        .and_then(|l| l.parse::<usize>().ok())
        .unwrap_or(0);
    let complete = body.len() >= length;
    (complete || closed).then(|| Received {
        status: head[9..12].parse().unwrap(),
        head: head.to_string(),
        body: body[..length.min(body.len())].to_vec(),
        complete,
    })
}

impl Received {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

const USERS: &str = r#"type Query { users: [User] name: String! } type User @key(fields: "id") { id: ID! name: String }"#;
const DATA: &str =
    "types: { User: [{ id: 1, name: Ann }, { id: 2, name: Bob }], Query: { name: q } }";

fn service(settings: Settings) -> Arc<Service> {
    let source = Source::Data(Data::parse(DATA).unwrap().into());
    let subgraph = Subgraph::new("users", USERS, source, Options::default()).unwrap();
    let other = Subgraph::new(
        "other",
        "type Query { a: Int }",
        Source::Data(Arc::default()),
        Options::default(),
    );
    let mut service = Service::new();
    service.add("users", subgraph, settings);
    service.add("other", other.unwrap(), Settings::default());
    service.into()
}

fn start(settings: Settings) -> (Arc<Service>, Server, Client) {
    let service = service(settings);
    let server = Server::start(service.clone(), "127.0.0.1:0", 2).unwrap();
    let client = Client::new(server.addr());
    (service, server, client)
}

#[test]
fn answers_on_all_routes_over_one_connection() {
    let (_service, server, mut client) = start(Settings::default());
    assert!(server.url("users").ends_with("/graphql/users"));
    let answer = client.post("/graphql/users", "", "{ users { id } }");
    assert_eq!(
        answer.json(),
        json!({"data": {"users": [{"id": "1"}, {"id": "2"}]}})
    );
    assert!(answer.head.contains("content-type: application/json"));
    let answer = client.post(
        "/users",
        "accept: application/graphql-response+json\r\n",
        "{ name }",
    );
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({"data": {"name": "q"}}))
    );
    assert!(
        answer
            .head
            .contains("content-type: application/graphql-response+json")
    );
    let get = "/graphql/users?query=query($i:+Boolean!)%7Bname+@include(if:$i)%7D&variables=%7B%22i%22:true%7D";
    let answer = client.send("GET", get, "", "").unwrap();
    assert_eq!(answer.json(), json!({"data": {"name": "q"}}));
    let answer = client.send("GET", "/health", "", "").unwrap();
    assert_eq!(
        (answer.status, answer.body.as_slice()),
        (200, b"OK".as_slice())
    );
    let answer = client.send("GET", "/graphql/nope", "", "").unwrap();
    assert_eq!(answer.status, 404);
    assert!(String::from_utf8_lossy(&answer.body).contains("/graphql/other"));
    assert_eq!(client.send("PUT", "/users", "", "{}").unwrap().status, 405);
}

#[test]
fn requests_may_come_in_pieces_and_several_at_once() {
    let (service, _server, mut client) = start(Settings::default());
    let body = r#"{"query":"{ name }"}"#;
    let one = format!(
        "POST /graphql/users?n=1 HTTP/1.1\r\nHost: mock\r\nContent-Length: {}\r\nConnection: Keep-Alive\r\n\r\n{body}",
        body.len()
    );
    let chunked = format!(
        "POST /users HTTP/1.1\r\nhost: mock\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    for (at, byte) in one.bytes().enumerate() {
        assert!(service.counts("users").unwrap().requests == 0, "{at}");
        client.0.write_all(&[byte]).unwrap();
    }
    let right = json!({"data": {"name": "q"}});
    let first = client.receive().unwrap();
    assert_eq!((first.status, first.json()), (200, right.clone()));
    for name in [
        "content-length: ",
        "date: ",
        "access-control-allow-origin: *",
    ] {
        assert!(first.head.contains(name), "{}", first.head);
    }
    // The last of them goes the long way, with what follows it.
    client
        .0
        .write_all(format!("{one}{one}{chunked}{one}").as_bytes())
        .unwrap();
    for _ in 0..4 {
        assert_eq!(client.receive().unwrap().json(), right);
    }
    assert_eq!(service.counts("users").unwrap().requests, 5);
    client
        .0
        .write_all(one.replace("Keep-Alive", "close").as_bytes())
        .unwrap();
    assert_eq!(client.receive().unwrap().json(), right);
    assert!(client.receive().is_none(), "the connection is closed");
}

#[test]
fn short_and_long_bodies_are_the_same_either_way() {
    let (_service, _server, mut client) = start(Settings::default());
    // Longer than what is copied behind the head, and so long that it is not plain any more.
    for (names, width) in [(1, 1), (2_000, 10), (2_000, 300), (2_000, 600)] {
        let fields = (0..names).map(|i| format!("name_{i:0width$}: name"));
        let fields: Vec<String> = fields.collect();
        let body = json!({ "query": format!("{{ {} }}", fields.join(" ")) }).to_string();
        let mut ask = |headers: &str| client.send("POST", "/users", headers, &body).unwrap();
        let plain = ask("");
        assert!(plain.complete && plain.status == 200);
        let names_of = plain.json()["data"].as_object().map(|data| data.len());
        assert_eq!(names_of, Some(names));
        let odd = ask("x-mock-delay: 0\r\n");
        assert_eq!((plain.status, plain.body), (odd.status, odd.body));
    }
}

#[test]
fn wrong_requests_are_refused_with_400() {
    let (service, _server, mut client) = start(Settings::default());
    for (body, part) in [
        ("", "JSON object"),
        ("[]", "JSON object"),
        ("{}", "no \\\"query\\\""),
        (r#"{"query":"{ nope }"}"#, "Cannot query field"),
        (r#"{"query":"{ users }"}"#, "must have a selection"),
        (r#"{"query":"{"}"#, "Syntax Error"),
        (
            r#"{"query":"query A { name }","operationName":"B"}"#,
            "Unknown operation",
        ),
        (
            r#"{"query":"query($a: Int!) { name }","variables":{}}"#,
            "$a",
        ),
        (r#"{"query":"{ name }","variables":[1]}"#, "variables"),
        (r#"{"query":"mutation { a }"}"#, "mutation"),
    ] {
        let answer = client.send("POST", "/users", "", body).unwrap();
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 400, "{body}: {text}");
        assert!(text.contains(part), "{body}: {text}");
        assert!(answer.json()["errors"].is_array() && answer.json().get("data").is_none());
    }
    assert_eq!(service.counts("users").unwrap().refused, 10);
}

#[test]
fn counters_count_and_reset() {
    let (service, _server, mut client) = start(Settings::default());
    let entities = r#"{ _entities(representations: [{__typename: "User", id: 1}, {__typename: "User", id: 2}]) { __typename } }"#;
    client.post("/users", "", entities);
    client.post("/users", "", entities);
    let stats = client.send("GET", "/stats", "", "").unwrap().json();
    let users = &stats["subgraphs"]["users"];
    assert_eq!(
        (&users["requests"], &users["entities"], &users["cache_hits"]),
        (&json!(2), &json!(4), &json!(1))
    );
    assert_eq!(stats["subgraphs"]["other"]["requests"], json!(0));
    assert_eq!(stats["total"]["requests"], json!(2));
    assert_eq!(users["bytes_out"].as_u64(), Some(service.total().bytes_out));
    for (method, path) in [("DELETE", "/stats"), ("POST", "/stats/reset")] {
        client.post("/users", "", "{ name }");
        let stats = client.send(method, path, "", "").unwrap().json();
        assert_eq!(stats["total"]["requests"], json!(0), "{path}");
    }
}

#[test]
fn faults_show_on_the_wire() {
    let (_service, server, _) = start(Settings::default());
    let ask = |fault: &str, query: &str| {
        let body = json!({ "query": query }).to_string();
        let header = format!("x-mock-fault: {fault}\r\n");
        Client::new(server.addr()).send("POST", "/users", &header, &body)
    };
    let answer = |fault: &str| ask(fault, "{ users { id name } name }").unwrap();
    assert_eq!(answer("status:503").status, 503);
    assert!(ask("drop", "{ name }").is_none());
    let cut = answer("truncate");
    assert!(!cut.complete && cut.status == 200 && !cut.body.is_empty());
    assert!(serde_json::from_slice::<Value>(&answer("malformed").body).is_err());
    assert!(answer("html").head.contains("text/html"));
    assert!(answer("empty").body.is_empty());
    assert!(answer("not-an-object").json().is_array());
    assert_eq!(answer("null-data").json(), json!({ "data": null }));
    assert_eq!(
        answer("request-error").json()["errors"][0]["message"],
        json!("Injected error")
    );
    let errors = answer("error:User.name:no name today").json();
    assert_eq!(errors["data"]["users"][0], json!({"id": "1", "name": null}));
    assert_eq!(errors["errors"][1]["path"], json!(["users", 1, "name"]));
    assert_eq!(errors["errors"][1]["message"], json!("no name today"));
    assert_eq!(answer("null:Query.name").json()["data"], json!(null));
    assert!(answer("wrong-type:User.id").json()["data"]["users"][0]["id"].is_object());
    assert!(answer("wrong-type:Query.users").json()["data"]["users"].is_string());
    let entities = r#"{ _entities(representations: [{__typename: "User", id: 1}, {__typename: "User", id: 2}]) { __typename } }"#;
    let short = ask("short-entities", entities).unwrap().json();
    assert_eq!(short["data"]["_entities"].as_array().map(Vec::len), Some(1));
    let slow = Instant::now();
    assert!(answer("slow-body:50ms").complete);
    assert!(
        slow.elapsed() >= Duration::from_millis(45),
        "{:?}",
        slow.elapsed()
    );
    assert_eq!(answer("nonsense").status, 400);
    // Without the header all is well, and no fault was remembered as an answer.
    let mut client = Client::new(server.addr());
    let fine = client
        .post("/users", "", "{ users { id name } name }")
        .json();
    assert_eq!(fine["data"]["users"][0], json!({"id": "1", "name": "Ann"}));
}

#[test]
fn settings_change_while_serving() {
    let (service, _server, mut client) = start(Settings {
        faults: vec![Fault::parse("status:500@2").unwrap()],
        ..Settings::default()
    });
    let mut status = || client.post("/users", "", "{ name }").status;
    assert_eq!(
        [status(), status(), status(), status()],
        [200, 500, 200, 500]
    );
    assert!(service.configure("users", |s| s.faults.clear()));
    assert_eq!([status(), status()], [200, 200]);
    assert!(!service.configure("nobody", |_| {}));
    service.configure("users", |s| s.headers = false);
    assert_eq!(
        client
            .post("/users", "x-mock-fault: status:500\r\n", "{ name }")
            .status,
        200
    );
}

#[test]
fn answers_are_held_back() {
    let (service, _server, mut client) = start(Settings {
        delay: Delay::parse("30ms").unwrap(),
        ..Settings::default()
    });
    let mut time = |headers: &str| {
        let start = Instant::now();
        client.post("/users", headers, "{ name }");
        start.elapsed()
    };
    assert!(time("") >= Duration::from_millis(30));
    assert!(time("x-mock-delay: 60ms\r\n") >= Duration::from_millis(60));
    assert!(time("x-mock-fault: delay:40ms\r\n") >= Duration::from_millis(70));
    assert_eq!(service.counts("users").unwrap().requests, 3);
}

#[test]
fn requests_are_recorded() {
    let (service, _server, mut client) = start(Settings {
        record: true,
        ..Settings::default()
    });
    client.post("/users", "authorization: Bearer t\r\n", "{ name }");
    let log = client.send("GET", "/requests", "", "").unwrap().json();
    assert_eq!(log[0]["subgraph"], json!("users"));
    assert_eq!(log[0]["body"], json!(r#"{"query":"{ name }"}"#));
    assert!(
        log[0]["headers"]
            .as_array()
            .unwrap()
            .contains(&json!(["authorization", "Bearer t"]))
    );
    assert_eq!(service.recorded().len(), 1);
    client.send("DELETE", "/requests", "", "");
    assert!(service.recorded().is_empty());
}

#[test]
fn a_config_becomes_a_service() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/demo");
    let text = "data: data.yaml\ndelay: 1..2ms\nsubgraphs:\n  accounts: accounts.graphql\n  p: { sdl: products.graphql, data: null, delay: 0, faults: ['error:Product.name@2'] }\n";
    let config = Config::parse(text, &folder).unwrap_or_else(|e| panic!("{e}"));
    let delays: Vec<Duration> = config
        .subgraphs
        .iter()
        .map(|s| s.settings.delay.max)
        .collect();
    assert_eq!(delays, [Duration::from_millis(2), Duration::ZERO]);
    let assembled = assemble(&config).unwrap_or_else(|e| panic!("{e}"));
    // The data has rows for subgraphs that are not served here.
    assert!(
        assembled.warnings.iter().any(|w| w.contains("\"Review\"")),
        "{:?}",
        assembled.warnings
    );
    let body = json!({"query": "{ me { name } }"}).to_string().into();
    let reply = assembled.service.respond("accounts", &[], &body).unwrap();
    assert_eq!(reply.body, r#"{"data":{"me":{"name":"Ida Lindqvist"}}}"#);
    for (text, place) in [
        ("subgraphs: { a: 5 }", "subgraphs.a"),
        ("subgraphs: { a: { data: x } }", "subgraphs.a"),
        (
            "subgraphs: { a: { sdl: x, dely: 1ms } }",
            "subgraphs.a.dely",
        ),
        ("subgraphs: {}\ndelay: soon", "delay"),
        ("subgraphs: {}\nfaults: [boom]", "faults"),
        (
            "subgraphs: {}\ngenerate: { lengths: { A.b: 5..1 } }",
            "generate.lengths.A.b",
        ),
        ("subgraphs: {}\ngenerate: { sed: 1 }", "generate.sed"),
        ("listen: x", "subgraphs"),
        ("lissen: x", "lissen"),
    ] {
        assert_eq!(
            Config::parse(text, &folder).unwrap_err().place,
            place,
            "{text}"
        );
    }
    let wrong = "subgraphs: { a: { sdl: accounts.graphql, faults: ['null:Person.nope'] } }";
    let error = assemble(&Config::parse(wrong, &folder).unwrap()).unwrap_err();
    assert!(error.to_string().contains("Person.nope"));
}
