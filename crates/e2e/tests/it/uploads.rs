//! Files of clients on their way to subgraphs.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::mpsc::{Receiver, Sender, channel},
    time::Duration,
};

use ogive_base::Reservation;
use ogive_testbase::{left_out, runs};
use serde_json::{Map, Value, json};

use crate::{
    graph::{Served, config, state},
    http_client::{Answer, Connection, send},
};

/// What a subgraph notices.
#[derive(Debug, PartialEq)]
enum Notice {
    /// A piece of a body has come; how many bytes there are now.
    Body(usize),
    /// The connection ended in the middle of a body.
    Cut,
    /// A whole request: field and what it got.
    Whole(String),
}

/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A subgraph that answers every field it knows with a summary of the files that came for it.
struct Receiving {
    address: SocketAddr,
    notices: Receiver<Notice>,
}

impl Receiving {
    fn start(fields: &'static [&'static str]) -> Receiving {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, notices) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), tell) = (stream, tell.clone()) else {
                    continue;
                };
                std::thread::spawn(move || receive(stream, fields, &tell));
            }
        });
        Receiving { address, notices }
    }
    fn next(&self) -> Notice {
        self.notices.recv_timeout(PATIENCE).unwrap()
    }
    /// Waits for something.
    fn until(&self, wanted: impl Fn(&Notice) -> bool) {
        while !wanted(&self.next()) {}
    }
    /// The requests that came whole, in order.
    fn whole(&self) -> Vec<String> {
        let all = self.notices.try_iter();
        all.filter_map(|n| match n {
            Notice::Whole(text) => Some(text),
            _ => None,
        })
        .collect()
    }
}

fn receive(stream: TcpStream, fields: &[&str], tell: &Sender<Notice>) {
    let mut out = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let head = head.to_ascii_lowercase();
        let body = if head.contains("transfer-encoding: chunked") {
            chunks(&mut reader, tell)
        } else {
            let length = head.split("content-length: ").nth(1).unwrap();
            let mut body = vec![0; length.lines().next().unwrap().parse().unwrap()];
            reader.read_exact(&mut body).ok().map(|()| body)
        };
        let Some(body) = body else {
            let _ = tell.send(Notice::Cut);
            return;
        };
        let (query, files) = match head.split("boundary=").nth(1) {
            Some(rest) => {
                let boundary = rest.lines().next().unwrap();
                // Header names were written in lower case above, and the boundary with them.
                read_parts(&body, boundary)
            }
            None => {
                let body: Value = serde_json::from_slice(&body).unwrap();
                (body["query"].as_str().unwrap().to_owned(), String::new())
            }
        };
        let asked = fields.iter().filter(|field| query.contains(**field));
        let data: Map<String, Value> = asked
            .map(|field| {
                tell.send(Notice::Whole(format!("{field} {files}")))
                    .unwrap();
                let many = field.ends_with("Many");
                let value = if many { json!([files]) } else { json!(files) };
                ((*field).to_owned(), value)
            })
            .collect();
        let answer = json!({ "data": data }).to_string();
        let length = answer.len();
        let head = format!(
            "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        if out.write_all((head + answer.as_str()).as_bytes()).is_err() {
            return;
        }
    }
}

fn chunks(reader: &mut impl BufRead, tell: &Sender<Notice>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        if reader.read_line(&mut size).ok()? == 0 {
            return None;
        }
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(&chunk[..size]);
        let _ = tell.send(Notice::Body(body.len()));
    }
}

/// The operation, and `path=name(media type):size` of each file. Checks that files come in the order of `map` and that
/// variables have null in their places.
fn read_parts(body: &[u8], boundary: &str) -> (String, String) {
    let text = String::from_utf8_lossy(body);
    let separator = format!("--{boundary}\r\n");
    let mut parts = text.split(&separator).skip(1);
    let mut next = |name: &str| {
        let part = parts.next().unwrap_or_else(|| panic!("no {name}"));
        let (head, content) = part.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("name=\"{name}\"")), "{head}");
        let content = content
            .strip_suffix(&format!("--{boundary}--\r\n"))
            .unwrap_or(content);
        (
            head.to_owned(),
            content.strip_suffix("\r\n").unwrap().to_owned(),
        )
    };
    let operations: Value = serde_json::from_str(&next("operations").1).unwrap();
    let map: Value = serde_json::from_str(&next("map").1).unwrap();
    let mut files = Vec::new();
    for (key, paths) in map.as_object().unwrap() {
        let (head, content) = next(key);
        let mut places = Vec::new();
        for path in paths.as_array().unwrap() {
            let path = path.as_str().unwrap();
            let at = operations.pointer(&format!("/{}", path.replace('.', "/")));
            assert_eq!(at, Some(&Value::Null), "{path} in {operations}");
            // Names of variables are the gateway's.
            places.push(path.splitn(3, '.').nth(2).unwrap_or("").to_owned());
        }
        let name = head
            .split("filename=\"")
            .nth(1)
            .map_or("", |n| n.split('"').next().unwrap());
        let media = head.split("Content-Type: ").nth(1).unwrap_or("");
        files.push(format!(
            "{}{name}({media}):{}",
            places.join("+"),
            content.len()
        ));
    }
    (
        operations["query"].as_str().unwrap().to_owned(),
        files.join(" "),
    )
}

/// A gateway in front of two subgraphs that take files.
struct Graph {
    served: Served,
    a: Receiving,
    b: Receiving,
}

impl Graph {
    fn with(uploads: &str, more: &str) -> Graph {
        let a = Receiving::start(&["storeA", "storeMany", "storeDoc", "seeA", "hello", "note"]);
        let b = Receiving::start(&["storeB", "seeB"]);
        let config = config(&format!(
            "file_uploads: {{ {uploads} }}\noverride_subgraph_url: {{ a: 'http://{}/', b: 'http://{}/' }}\n{more}",
            a.address, b.address
        ));
        let state = state(include_str!("uploads.graphql"), &config);
        let served = Served::start(state, &config);
        Graph { served, a, b }
    }
    fn post(&self, parts: &[(&str, &str)]) -> Answer {
        let body = form(parts);
        send(self.served.address, "POST", "/graphql", &HEADERS, &body)
    }
}

const HEADERS: [(&str, &str); 2] = [
    ("content-type", "multipart/form-data; boundary=XX"),
    ("apollo-require-preflight", "1"),
];

/// A body; parts whose name is a number are files.
fn form(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut body = String::new();
    for (name, content) in parts {
        let file = match name.parse::<u32>() {
            Ok(_) => format!("; filename=\"{name}.txt\"\r\nContent-Type: text/plain"),
            Err(_) => String::new(),
        };
        body += &format!(
            "--XX\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{content}\r\n"
        );
    }
    (body + "--XX--\r\n").into_bytes()
}

const STORE_A: &str =
    r#"{"query":"mutation($f: Upload!) { storeA(file: $f) }","variables":{"f":null}}"#;
const MAP: &str = r#"{"0":["variables.f"]}"#;

#[test]
fn curl_sends_a_file_to_the_subgraph_that_wants_it() {
    if !runs("curl") {
        return left_out("`curl` is not installed");
    }
    let graph = Graph::with("enabled: true", "");
    let file = std::env::temp_dir().join(format!("ogive-upload-{}.txt", std::process::id()));
    std::fs::write(&file, "x".repeat(3_000_000)).unwrap();
    let output = Command::new("curl")
        .args(["-sS", "-H", "apollo-require-preflight: 1"])
        .arg(format!("http://{}/graphql", graph.served.address))
        .args([
            "-F",
            &format!("operations={STORE_A}"),
            "-F",
            &format!("map={MAP}"),
            "-F",
        ])
        .arg(format!(
            "0=@{};filename=big \"one\".txt;type=text/plain",
            file.display()
        ))
        .output()
        .unwrap();
    std::fs::remove_file(&file).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("(text/plain):3000000\"}}"), "{text}");
    assert_eq!(graph.b.whole(), Vec::<String>::new());
}

#[test]
fn a_browsers_form_data_sends_files() {
    if !runs("node") {
        return left_out("`node` is not installed");
    }
    let graph = Graph::with("enabled: true", "");
    // As apollo-upload-client takes files out of variables and numbers them.
    let script = "const form = new FormData();\
        form.append('operations', JSON.stringify({ query: 'mutation($f: [Upload!]!) { storeMany(files: $f) }', \
            variables: { f: [null, null] } }));\
        form.append('map', JSON.stringify({ 1: ['variables.f.0'], 2: ['variables.f.1'] }));\
        form.append('1', new Blob(['one'], { type: 'text/plain' }), 'größe.txt');\
        form.append('2', new Blob(['two!'], { type: 'image/png' }), '2.png');\
        const answer = await fetch(process.argv[1], { method: 'POST', body: form, \
            headers: { 'apollo-require-preflight': 'true' } });\
        process.stdout.write(answer.status + ' ' + await answer.text());";
    let output = Command::new("node")
        .args(["--input-type=module", "-e", script])
        .arg(format!("http://{}/graphql", graph.served.address))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        text,
        r#"200 {"data":{"storeMany":["0größe.txt(text/plain):3 12.png(image/png):4"]}}"#,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn files_are_passed_on_while_they_arrive() {
    let graph = Graph::with("enabled: true", "");
    let half = "y".repeat(100_000);
    let body = form(&[
        ("operations", STORE_A),
        ("map", MAP),
        ("0", &half.repeat(2)),
    ]);
    let mut client = Connection::open(graph.served.address);
    let head = crate::http_client::request("POST", "/graphql", &HEADERS, &body);
    let cut = head.len() - half.len();
    client.write(&head[..cut]);
    // The second half is sent only after the subgraph has most of the first.
    graph
        .a
        .until(|n| matches!(n, Notice::Body(size) if *size > 90_000));
    client.write(&head[cut..]);
    assert_eq!(
        client.read().json(),
        json!({ "data": { "storeA": "0.txt(text/plain):200000" } })
    );
}

#[test]
fn a_client_that_leaves_takes_its_upload_along() {
    let graph = Graph::with("enabled: true", "");
    let body = form(&[
        ("operations", STORE_A),
        ("map", MAP),
        ("0", &"y".repeat(100_000)),
    ]);
    let head = crate::http_client::request("POST", "/graphql", &HEADERS, &body);
    let mut client = Connection::open(graph.served.address);
    client.write(&head[..head.len() - 50_000]);
    graph.a.until(|n| matches!(n, Notice::Body(_)));
    drop(client);
    // Not a short file: an end with an error.
    graph.a.until(|n| *n == Notice::Cut);
}

#[test]
fn a_subgraph_that_takes_nothing_slows_the_client_down() {
    // Nobody reads from this listener's connections.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let yaml = format!(
        "file_uploads: {{ enabled: true, max_file_size: 1GiB, max_request_size: 1GiB, timeout: 2s }}\n\
         override_subgraph_url: {{ a: 'http://{address}/' }}\n"
    );
    let config = config(&yaml);
    let served = Served::start(state(include_str!("uploads.graphql"), &config), &config);
    let mut client = TcpStream::connect(served.address).unwrap();
    client
        .set_write_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let body = form(&[("operations", STORE_A), ("map", MAP), ("0", "")]);
    let begin = String::from_utf8(body).unwrap();
    let begin = begin.strip_suffix("\r\n--XX--\r\n").unwrap();
    let head = format!(
        "POST /graphql HTTP/1.1\r\nhost: t\r\ncontent-type: {}\r\napollo-require-preflight: 1\r\n\
         content-length: 900000000\r\n\r\n{begin}",
        HEADERS[0].1
    );
    client.write_all(head.as_bytes()).unwrap();
    let piece = vec![b'z'; 1 << 20];
    let mut written = 0;
    // What the sockets' own buffers hold gets through; then it stops.
    while client.write_all(&piece).is_ok() {
        written += piece.len();
        assert!(written < 200 << 20, "the gateway takes whatever comes");
    }
    drop(listener);
}

#[test]
fn places_of_files() {
    let graph = Graph::with("enabled: true", "");
    let many = r#"{"query":"mutation($d: Doc!, $f: [Upload!]!) { storeDoc(doc: $d) storeMany(files: $f) }",
        "variables":{"d":{"file":null,"note":"n"},"f":[null,null]}}"#;
    let map = r#"{"0":["variables.d.file"],"1":["variables.f.0"],"2":["variables.f.1"]}"#;
    let answer = graph.post(&[
        ("operations", many),
        ("map", map),
        ("0", "a"),
        ("1", "bb"),
        ("2", "ccc"),
    ]);
    // One request to the subgraph has them all.
    let files = "file0.txt(text/plain):1 01.txt(text/plain):2 12.txt(text/plain):3";
    let data = json!({ "data": { "storeDoc": files, "storeMany": [files] } });
    assert_eq!(answer.json(), data);
}

#[test]
fn files_wanted_in_another_order_are_kept_within_a_limit() {
    let both = r#"{"query":"mutation($f: Upload!, $g: Upload!) { storeB(file: $g) storeA(file: $f) }",
        "variables":{"f":null,"g":null}}"#;
    let map = r#"{"0":["variables.f"],"1":["variables.g"]}"#;
    let parts = [
        ("operations", both),
        ("map", map),
        ("0", "first"),
        ("1", "second!"),
    ];
    let graph = Graph::with("enabled: true", "");
    assert_eq!(
        graph.post(&parts).text(),
        r#"{"data":{"storeB":"1.txt(text/plain):7","storeA":"0.txt(text/plain):5"}}"#
    );
    let graph = Graph::with("enabled: true, buffer_size: 4", "");
    let answer = graph.post(&parts);
    assert_eq!(
        (answer.status, answer.codes()),
        (400, vec!["UPLOAD_OUT_OF_ORDER".into()])
    );
    assert_eq!((graph.a.whole().len(), graph.b.whole().len()), (0, 0));
}

/// Answers have to fit beside the files that are kept.
/// An upload that was begun is finished where nothing new is begun.
#[test]
fn kept_files_of_what_was_begun_may_use_what_nothing_new_may() {
    let graph = Graph::with("enabled: true", "limits: { max_memory: 1MB }");
    let memory = graph.served.gateway.memory();
    let query = r#"{"query":"mutation($f: Upload!, $g: Upload!) { storeA(file: $f) storeB(file: $g) }","variables":{"f":null,"g":null}}"#;
    let parts = |file: &str| {
        form(&[
            ("operations", query),
            ("map", r#"{"0":["variables.g"],"1":["variables.f"]}"#),
            ("0", file),
            ("1", "x"),
        ])
    };
    let file = "y".repeat(400_000);
    let body = parts(&file);
    let mut client = Connection::open(graph.served.address);
    let request = crate::http_client::request("POST", "/graphql", &HEADERS, &body);
    // All but the end of the file that is wanted last, and comes first.
    let cut = request.len() - 60_000;
    client.write(&request[..cut]);
    while memory.used() < 320_000 {
        std::thread::yield_now();
    }
    // With this nothing new is begun any more.
    let others = Reservation::new(memory);
    others.run();
    others.grow(memory.admitting() - memory.used() + 1).unwrap();
    client.write(&request[cut..]);
    let expected = json!({ "data": { "storeA": "1.txt(text/plain):1", "storeB": "0.txt(text/plain):400000" } });
    assert_eq!(client.read().json(), expected);
}

#[test]
fn kept_files_count_in_the_memory_of_a_request() {
    // Far more than variables and answers take.
    let first = "x".repeat(20_000);
    let ask = |fields: &str| {
        let graph = Graph::with("enabled: true", "limits: { max_request_memory: 20050 }");
        let operations = format!(
            r#"{{"query":"mutation($f: Upload!, $g: Upload!) {{ {fields} }}","variables":{{"f":null,"g":null}}}}"#
        );
        let map = r#"{"0":["variables.f"],"1":["variables.g"]}"#;
        let parts = [
            ("operations", operations.as_str()),
            ("map", map),
            ("0", &first),
            ("1", "second!"),
        ];
        graph.post(&parts).codes()
    };
    let in_order = ask("storeA(file: $f) storeB(file: $g)");
    assert_eq!(in_order, [""; 0], "nothing is kept");
    let kept = ask("storeB(file: $g) storeA(file: $f)");
    assert!(
        kept.contains(&"REQUEST_MEMORY_LIMIT".to_owned()),
        "{kept:?}"
    );
}

#[test]
fn one_file_for_two_subgraphs() {
    let both =
        r#"{"query":"query($f: Upload) { seeA(file: $f) seeB(file: $f) }","variables":{"f":null}}"#;
    let graph = Graph::with("enabled: true", "");
    assert_eq!(
        graph
            .post(&[("operations", both), ("map", MAP), ("0", "12345")])
            .text(),
        r#"{"data":{"seeA":"0.txt(text/plain):5","seeB":"0.txt(text/plain):5"}}"#
    );
    // What one subgraph got stays when the other cannot have it.
    let graph = Graph::with("enabled: true, buffer_size: 4", "");
    let answer = graph.post(&[("operations", both), ("map", MAP), ("0", "12345")]);
    assert_eq!(
        (answer.status, answer.codes()),
        (200, vec!["UPLOAD_OUT_OF_ORDER".into()])
    );
    assert_eq!(
        answer.json()["data"].to_string().matches("0.txt").count(),
        1
    );
}

#[test]
fn entries_of_a_batch_have_files_of_their_own() {
    let graph = Graph::with("enabled: true", "batching: { enabled: true }");
    let entry: Value = serde_json::from_str(STORE_A).unwrap();
    let operations = json!([entry, entry, { "query": "{ hello }" }]).to_string();
    let map = r#"{"0":["0.variables.f"],"1":["1.variables.f"]}"#;
    let answer = graph.post(&[
        ("operations", &operations),
        ("map", map),
        ("0", "x"),
        ("1", "xx"),
    ]);
    assert_eq!(
        answer.text(),
        r#"[{"data":{"storeA":"0.txt(text/plain):1"}},{"data":{"storeA":"1.txt(text/plain):2"}},{"data":{"hello":""}}]"#
    );
}

#[test]
fn an_upload_is_sent_once() {
    // A subgraph that closes every connection it has read a request from.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, asked) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut line = String::new();
            while !line.ends_with("--\r\n") && reader.read_line(&mut line).unwrap_or(0) > 0 {}
            tell.send(()).unwrap();
        }
    });
    let yaml = format!(
        "file_uploads: {{ enabled: true }}\noverride_subgraph_url: {{ a: 'http://{address}/' }}\n\
         traffic_shaping: {{ all: {{ retry: {{ attempts: 3 }} }} }}\n"
    );
    let config = config(&yaml);
    let served = Served::start(state(include_str!("uploads.graphql"), &config), &config);
    for query in [
        "mutation($f: Upload!) { storeA(file: $f) }",
        "query($f: Upload) { seeA(file: $f) }",
    ] {
        let operations = json!({ "query": query, "variables": { "f": null } }).to_string();
        let body = form(&[("operations", &operations), ("map", MAP), ("0", "x")]);
        let answer = send(served.address, "POST", "/graphql", &HEADERS, &body);
        assert_eq!(
            (answer.status, answer.codes()),
            (200, vec!["SUBREQUEST_HTTP_ERROR".into()])
        );
    }
    asked.recv_timeout(PATIENCE).unwrap();
    asked.recv_timeout(PATIENCE).unwrap();
    assert!(asked.try_recv().is_err(), "sent a second time");
}

/// The parser looks through all that it has whenever more comes, and counts none of it: a part has to begin soon.
#[test]
fn a_part_that_does_not_begin_is_refused() {
    let graph = Graph::with("enabled: true", "");
    let endless = format!("--XX\r\nX: {}", "a".repeat(3 << 20));
    let preamble = "p".repeat(3 << 20);
    let map = form(&[("operations", STORE_A), ("map", MAP)]);
    let map = map.strip_suffix(b"--XX--\r\n").unwrap();
    for body in [
        preamble.as_bytes().to_vec(),
        endless.as_bytes().to_vec(),
        [map, endless.as_bytes()].concat(),
    ] {
        let answer = send(graph.served.address, "POST", "/graphql", &HEADERS, &body);
        assert_eq!(
            (answer.status, answer.codes()),
            (400, vec!["INVALID_GRAPHQL_REQUEST".to_owned()])
        );
    }
    // What nobody asks for is passed over however large it is.
    let other = "o".repeat(1 << 20);
    let served = graph.post(&[
        ("operations", STORE_A),
        ("map", MAP),
        ("7", &other),
        ("0", "x"),
    ]);
    assert_eq!(served.status, 200, "{}", served.text());
    assert!(served.codes().is_empty(), "{}", served.text());
}

#[test]
fn refusals_of_files() {
    let graph = Graph::with(
        "enabled: true, max_files: 2, max_file_size: 1000, max_request_size: 5000, timeout: 20s",
        "http: { body_read_timeout: 200ms }",
    );
    let refused = |parts: &[(&str, &str)]| {
        let answer = graph.post(parts);
        let codes = answer.codes();
        assert_eq!(codes.len(), 1, "{}", answer.text());
        (answer.status, codes[0].clone())
    };
    let is = |status: u16, code: &str| (status, code.to_owned());
    let large = "l".repeat(1_001);
    let whole = [("operations", STORE_A), ("map", MAP), ("0", "x")];
    let with = |map: &'static str| [("operations", STORE_A), ("map", map), ("0", "x")];
    assert_eq!(
        refused(&[("operations", STORE_A), ("map", MAP), ("0", &large)]),
        is(413, "UPLOAD_TOO_LARGE")
    );
    assert_eq!(
        refused(&[
            ("operations", STORE_A),
            ("map", MAP),
            ("0", &large.repeat(5))
        ]),
        is(413, "UPLOAD_TOO_LARGE")
    );
    assert_eq!(
        refused(&with(r#"{"0":["variables.f"],"1":[],"2":[]}"#)),
        is(413, "UPLOAD_TOO_MANY_FILES")
    );
    assert_eq!(refused(&whole[..2]), is(400, "UPLOAD_FILE_MISSING"));
    let invalid = is(400, "INVALID_GRAPHQL_REQUEST");
    for map in [
        "[]",
        "{",
        r#"{"0":"variables.f"}"#,
        r#"{"0":[1]}"#,
        r#"{"0":["variables"]}"#,
        r#"{"0":["variables.g"]}"#,
        r#"{"0":["query"]}"#,
        r#"{"0":["variables.f","variables.f"]}"#,
    ] {
        assert_eq!(refused(&with(map)), invalid, "{map}");
    }
    assert_eq!(refused(&[("map", MAP), ("operations", STORE_A)]), invalid);
    assert_eq!(refused(&[("operations", "{}"), ("map", "{}")]), invalid);
    let text = r#"{"query":"mutation($f: String) { note(text: $f) }","variables":{"f":null}}"#;
    assert_eq!(
        refused(&[("operations", text), ("map", MAP), ("0", "x")]),
        is(400, "VALIDATION_INVALID_TYPE_VARIABLE")
    );
    // A client that stops in the middle of a file.
    let body = form(&whole);
    let mut head = crate::http_client::request("POST", "/graphql", &HEADERS, &body);
    head.truncate(head.len() - 10);
    let mut client = Connection::open(graph.served.address);
    client.write(&head);
    let answer = client.read();
    assert_eq!(
        (answer.status, answer.codes()),
        (400, vec!["UPLOAD_FILE_MISSING".into()])
    );
    assert_eq!(graph.a.whole(), Vec::<String>::new());
    // The next request is answered.
    assert_eq!(graph.post(&whole).status, 200);
}

#[test]
fn pages_need_leave_to_upload_and_uploads_are_off_unless_asked_for() {
    let body = form(&[("operations", STORE_A), ("map", MAP), ("0", "x")]);
    let plain = [HEADERS[0]];
    let graph = Graph::with("enabled: true", "");
    let answer = send(graph.served.address, "POST", "/graphql", &plain, &body);
    assert_eq!(
        (answer.status, answer.codes()),
        (400, vec!["CSRF_ERROR".into()])
    );
    let graph = Graph::with("enabled: true", "csrf: { enabled: false }");
    let answer = send(graph.served.address, "POST", "/graphql", &plain, &body);
    assert_eq!(
        answer.text(),
        r#"{"data":{"storeA":"0.txt(text/plain):1"}}"#
    );
    let graph = Graph::with("enabled: false", "");
    let answer = send(graph.served.address, "POST", "/graphql", &HEADERS, &body);
    assert_eq!(
        (answer.status, answer.codes()),
        (415, vec!["UNSUPPORTED_MEDIA_TYPE".into()])
    );
}
