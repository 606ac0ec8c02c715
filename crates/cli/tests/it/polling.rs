//! A supergraph that is fetched from a URL, and secrets that change.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use crate::process::{Running, address, answer, ask, demo, file, folder};

const QUERY: &str = r#"{"query":"{ __typename }"}"#;
const ANSWER: &str = r#"{"data":{"__typename":"Query"}}"#;

/// A place where a supergraph is kept, with validators.
struct Registry {
    address: SocketAddr,
    text: Arc<Mutex<String>>,
    up: Arc<AtomicBool>,
    unchanged: Arc<AtomicUsize>,
}

impl Registry {
    fn start(text: &str) -> Registry {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let registry = Registry {
            address: listener.local_addr().unwrap(),
            text: Arc::new(Mutex::new(text.to_owned())),
            up: Arc::new(AtomicBool::new(true)),
            unchanged: Arc::default(),
        };
        let (text, up) = (Arc::clone(&registry.text), Arc::clone(&registry.up));
        let unchanged = Arc::clone(&registry.unchanged);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = String::new();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
                let text = text.lock().unwrap().clone();
                let tag = format!("\"{}\"", text.len());
                let answer = if !up.load(Ordering::SeqCst) {
                    "HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n".to_owned()
                } else if !head.contains("x-key: k1\r\n") {
                    "HTTP/1.1 401 X\r\ncontent-length: 0\r\n\r\n".to_owned()
                } else if head.contains(&format!("if-none-match: {tag}")) {
                    unchanged.fetch_add(1, Ordering::SeqCst);
                    "HTTP/1.1 304 X\r\n\r\n".to_owned()
                } else {
                    let length = text.len();
                    format!(
                        "HTTP/1.1 200 X\r\netag: {tag}\r\ncontent-length: {length}\r\n\r\n{text}"
                    )
                };
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        registry
    }
    fn set(&self, text: &str) {
        text.clone_into(&mut self.text.lock().unwrap());
    }
}

#[test]
fn a_supergraph_is_fetched_kept_and_fetched_again() {
    let schema = fs::read_to_string(demo("supergraph.graphql")).unwrap();
    let registry = Registry::start(&schema);
    let kept = folder().join("polled/last.graphql");
    let _ = fs::remove_file(&kept);
    let config = file(
        "polling.yaml",
        format!(
            "listen: 127.0.0.1:0\nsupergraph:\n  url: http://{}/schema\n  poll_interval: 20ms\n  \
             headers: {{ x-key: k1 }}\n  last_known_good: '{}'\n",
            registry.address,
            kept.display()
        ),
    );
    let mut serve = Running::start(&["serve", "-c", &config]);
    let gateway = address(&serve.logged("serving http://"));
    assert_eq!(fs::read_to_string(&kept).unwrap(), schema);
    // Something broken is refused and not kept.
    registry.set("type Query { broken");
    serve.logged("no supergraph, serving on as before");
    assert_eq!(fs::read_to_string(&kept).unwrap(), schema);
    assert_eq!(
        answer(ask(&gateway, "POST", "/graphql", QUERY)),
        (200, ANSWER.into())
    );
    let other = format!("{schema}\n# another one\n");
    registry.set(&other);
    serve.logged("the URL has another supergraph: reloaded");
    assert_eq!(fs::read_to_string(&kept).unwrap(), other);
    while registry.unchanged.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    serve.signal("TERM");
    assert_eq!(serve.ended().0, Some(0));
    // The URL does not answer at the next start.
    registry.up.store(false, Ordering::SeqCst);
    let mut serve = Running::start(&["serve", "-c", &config]);
    serve.logged("serving the last good one from");
    let gateway = address(&serve.logged("serving http://"));
    assert_eq!(
        answer(ask(&gateway, "POST", "/graphql", QUERY)),
        (200, ANSWER.into())
    );
    registry.up.store(true, Ordering::SeqCst);
    serve.logged("the supergraph can be fetched again");
    drop(serve);
    // And there is nothing on disk either.
    registry.up.store(false, Ordering::SeqCst);
    fs::remove_file(&kept).unwrap();
    let (code, rest) = Running::start(&["serve", "-c", &config]).ended();
    assert_eq!(code, Some(1));
    assert!(
        rest.contains("it answers 503") && rest.contains("last_known_good"),
        "{rest}"
    );
}

#[test]
fn a_secret_that_changes_is_read_again() {
    let secret = file("secret.txt", "first\n");
    let config = file(
        "secrets.yaml",
        format!(
            "listen: 127.0.0.1:0\nhot_reload: {{ enabled: true, interval: 10ms }}\n\
             telemetry: {{ execution_trace: {{ enabled: true, secret: '${{file.{secret}}}' }} }}\n"
        ),
    );
    let mut serve = Running::start(&["serve", "-c", &config, "-s", &demo("supergraph.graphql")]);
    let gateway = address(&serve.logged("serving http://"));
    let traced = |secret: &str| {
        let path = format!("/graphql HTTP/1.1\r\nx-ogive-trace: {secret}\r\nx-rest:");
        let (status, body) = answer(ask(&gateway, "POST", &path, QUERY));
        assert_eq!(status, 200, "{body}");
        body.contains("ogiveTrace")
    };
    assert!(traced("first") && !traced("second"));
    let other = file("secret.new", "second\n");
    fs::rename(other, &secret).unwrap();
    serve.logged("a file has changed: reloaded");
    assert!(traced("second") && !traced("first"));
}
