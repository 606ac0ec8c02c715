//! A supergraph that is fetched from a URL, and secrets that change.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ogive_testbase::subgraph::ManualSubgraph;

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
                let Ok(mut stream) = stream else { continue };
                let mut head = String::new();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while !head.ends_with("\r\n\r\n")
                    && reader.read_line(&mut head).is_ok_and(|n| n > 0)
                {}
                let text = text.lock().unwrap().clone();
                let tag = format!("\"{}\"", text.len());
                let answer = if !up.load(Ordering::SeqCst) {
                    "HTTP/1.1 503 X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_owned()
                } else if !head.contains("x-key: k1\r\n") {
                    "HTTP/1.1 401 X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_owned()
                } else if head.contains(&format!("if-none-match: {tag}")) {
                    unchanged.fetch_add(1, Ordering::SeqCst);
                    "HTTP/1.1 304 X\r\nconnection: close\r\n\r\n".to_owned()
                } else {
                    let length = text.len();
                    format!(
                        "HTTP/1.1 200 X\r\nconnection: close\r\netag: {tag}\r\ncontent-length: {length}\r\n\r\n{text}"
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
    serve.logged("supergraph: not usable, going on with what was there before");
    assert_eq!(fs::read_to_string(&kept).unwrap(), schema);
    assert_eq!(
        answer(ask(&gateway, "POST", "/graphql", QUERY)),
        (200, ANSWER.into())
    );
    let other = format!("{schema}\n# another one\n");
    registry.set(&other);
    serve.logged("the URL has another supergraph: reloaded");
    // It is handed on before it is kept.
    while fs::read_to_string(&kept).unwrap() != other {
        std::thread::yield_now();
    }
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
    serve.logged("supergraph: usable again");
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
fn a_key_is_not_sent_over_plain_http_to_another_machine() {
    let schema = fs::read_to_string(demo("supergraph.graphql")).unwrap();
    let registry = Registry::start(&schema);
    let port = registry.address.port();
    let start = |url: &str, more: &str| {
        let kept = folder().join("plain/last.graphql");
        // That of another run would be served.
        let _ = fs::remove_file(&kept);
        let config = file(
            "plain.yaml",
            format!(
                "listen: 127.0.0.1:0\nsupergraph:\n  url: {url}\n  last_known_good: '{}'\n{more}",
                kept.display()
            ),
        );
        Running::start(&["serve", "-c", &config])
    };
    // Not known to be this machine.
    let url = format!("http://0.0.0.0:{port}/schema");
    for (url, more) in [
        (url.clone(), "  headers: { x-key: k1 }\n"),
        (format!("{url}?key=k1"), ""),
    ] {
        let (code, text) = start(&url, more).ended();
        assert_eq!(code, Some(1));
        assert!(
            text.contains(&format!(
                "would send its key to `http://0.0.0.0:{port}/schema`"
            )) && text.contains("supergraph.allow_plain_http: true"),
            "{text}"
        );
        assert!(!text.contains("k1"), "{text}");
    }
    let (code, text) = start(&format!("http://u:p@0.0.0.0:{port}/schema"), "").ended();
    assert_eq!(code, Some(1));
    assert!(
        text.contains("has a user or a password") && !text.contains("u:p"),
        "{text}"
    );
    // Without a key the registry refuses, after there was a warning.
    let (_, text) = start(&url, "").ended();
    assert!(
        text.contains("can change the supergraph") && text.contains("it answers 401"),
        "{text}"
    );
    let allowed = "  headers: { x-key: k1 }\n  allow_plain_http: true\n";
    start(&url, allowed).logged("serving http://");
    let address = registry.address;
    start(
        &format!("http://{address}/schema"),
        "  headers: { x-key: k1 }\n",
    )
    .logged("serving http://");
}

/// A large one takes a second to read, 2 MB in a debug build as well as 5 MB in one that ships (`bash bench/load.sh
/// newcomers`); nobody waits for that. What else goes on on the machine may hold a newcomer up, too, but not each time.
#[test]
#[allow(clippy::print_stdout, reason = "how long is worth knowing")]
fn newcomers_do_not_wait_for_a_new_supergraph() {
    let mut large = fs::read_to_string(demo("supergraph.graphql")).unwrap();
    let small = large.clone();
    let ships = std::env::var_os("OGIVE_LOAD_BINARY").is_some();
    let bytes = if ships { 5 << 20 } else { 2 << 20 };
    for i in 0.. {
        if large.len() > bytes {
            break;
        }
        large.push_str(&format!(
            "\ntype Large{i} @join__type(graph: ACCOUNTS) {{ a: String b(c: Int): [Large{i}!] d: Large0 }}"
        ));
    }
    let registry = Registry::start(&small);
    let config = file(
        "newcomers.yaml",
        format!(
            "listen: 127.0.0.1:0\nsupergraph:\n  url: http://{}/schema\n  poll_interval: 20ms\n  \
             headers: {{ x-key: k1 }}\n  last_known_good: '{}'\n",
            registry.address,
            folder().join("newcomers/last.graphql").display()
        ),
    );
    let mut serve = Running::start(&["serve", "-c", &config]);
    let gateway = address(&serve.logged("serving http://"));
    let mut waited: Vec<(Duration, Duration)> = Vec::new();
    while waited
        .last()
        .is_none_or(|(longest, took)| *longest >= *took / 8)
    {
        assert!(
            waited.len() < 20,
            "each time a newcomer waited so long of a reload: {waited:?}"
        );
        // Another one of another length, by which the registry tells them apart.
        large.push_str("\n#");
        let reloaded = AtomicBool::new(false);
        let (longest, number, took) = std::thread::scope(|scope| {
            let newcomers = scope.spawn(|| {
                let (mut longest, mut number) = (Duration::ZERO, 0);
                while !reloaded.load(Ordering::SeqCst) {
                    let began = Instant::now();
                    // Each asks on a connection of its own.
                    let (method, path, body) = match number % 2 {
                        0 => ("GET", "/health", ""),
                        _ => ("POST", "/graphql", r#"{"query":"{ __typename }"}"#),
                    };
                    assert_eq!(answer(ask(&gateway, method, path, body)).0, 200);
                    longest = longest.max(began.elapsed());
                    number += 1;
                }
                (longest, number)
            });
            let began = Instant::now();
            registry.set(&large);
            serve.logged("the URL has another supergraph: reloaded");
            let took = began.elapsed();
            reloaded.store(true, Ordering::SeqCst);
            let (longest, number) = newcomers.join().unwrap();
            (longest, number, took)
        });
        println!(
            "a supergraph of {} bytes: the longest of {number} newcomers waited {longest:?}; the reload took {took:?}",
            large.len()
        );
        waited.push((longest, took));
    }
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
    serve.logged("` has changed: reloaded");
    assert!(traced("second") && !traced("first"));
}

#[test]
fn without_a_supergraph_it_waits_if_that_is_asked_for() {
    let schema = fs::read_to_string(demo("supergraph.graphql")).unwrap();
    let registry = Registry::start(&schema);
    registry.up.store(false, Ordering::SeqCst);
    let kept = folder().join("waiting/last.graphql");
    let _ = fs::remove_file(&kept);
    let config = file(
        "waiting.yaml",
        format!(
            "listen: 127.0.0.1:0\nsupergraph:\n  url: http://{}/schema\n  poll_interval: 20ms\n  \
             headers: {{ x-key: k1 }}\n  when_missing: wait\n  last_known_good: '{}'\n",
            registry.address,
            kept.display()
        ),
    );
    let mut serve = Running::start(&["serve", "-c", &config]);
    let gateway =
        address(&serve.logged(" answers 503 until there is a supergraph: waiting for http://"));
    serve.logged("no supergraph yet, waiting for one: it answers 503");
    let health = |path: &str| answer(ask(&gateway, "GET", path, "")).0;
    let mut refused = String::new();
    ask(&gateway, "POST", "/graphql", QUERY)
        .read_to_string(&mut refused)
        .unwrap();
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("\r\nretry-after: 5\r\n"), "{refused}");
    assert!(refused.contains("SCHEMA_NOT_LOADED"), "{refused}");
    assert_eq!((health("/health"), health("/readiness")), (200, 503));
    registry.up.store(true, Ordering::SeqCst);
    serve.logged("the URL has another supergraph: reloaded");
    assert_eq!(
        answer(ask(&gateway, "POST", "/graphql", QUERY)),
        (200, ANSWER.into())
    );
    assert_eq!((health("/health"), health("/readiness")), (200, 200));
    drop(serve);
    // The same with a file that comes later.
    let later = folder().join("later.graphql");
    let _ = fs::remove_file(&later);
    let config = file(
        "waiting-file.yaml",
        format!(
            "listen: 127.0.0.1:0\nsupergraph: {{ path: '{}', when_missing: wait }}\n\
             hot_reload: {{ enabled: true, interval: 10ms }}\n",
            later.display()
        ),
    );
    let mut serve = Running::start(&["serve", "-c", &config]);
    let line = serve.logged(" answers 503 until there is a supergraph: waiting for ");
    assert!(
        line.contains("later.graphql") && !line.contains("serving"),
        "{line}"
    );
    let gateway = address(&line);
    assert_eq!(answer(ask(&gateway, "POST", "/graphql", QUERY)).0, 503);
    let beside = file("later.new", &schema);
    fs::rename(beside, &later).unwrap();
    serve.logged("later.graphql` has changed: reloaded");
    assert_eq!(answer(ask(&gateway, "POST", "/graphql", QUERY)).0, 200);
}

/// Whoever is slow to give the supergraph keeps nobody from being told so.
#[test]
fn it_listens_while_the_first_supergraph_is_on_its_way() {
    let schema = fs::read_to_string(demo("supergraph.graphql")).unwrap();
    for kept_text in [None, Some(&schema)] {
        let registry = ManualSubgraph::start();
        let kept = folder().join("slow/last.graphql");
        fs::create_dir_all(kept.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&kept);
        if let Some(text) = kept_text {
            fs::write(&kept, text).unwrap();
        }
        let config = file(
            "slow.yaml",
            format!(
                "listen: 127.0.0.1:0\nsupergraph: {{ url: '{}', when_missing: wait, poll_interval: 1h, \
                 request_timeout: 10m, last_known_good: '{}' }}\n",
                registry.url(),
                kept.display()
            ),
        );
        let mut serve = Running::start(&["serve", "-c", &config]);
        let gateway = address(&serve.logged(" answers 503 until there is a supergraph"));
        let mut asked = registry.next();
        let ready = || answer(ask(&gateway, "GET", "/readiness", "")).0;
        let (status, body) = answer(ask(&gateway, "POST", "/graphql", QUERY));
        assert!(
            status == 503 && body.contains("SCHEMA_NOT_LOADED"),
            "{body}"
        );
        assert_eq!(
            (ready(), answer(ask(&gateway, "GET", "/health", "")).0),
            (503, 200)
        );
        match kept_text {
            None => asked.answer(200, "", &schema),
            Some(_) => {
                asked.answer(500, "", "");
                serve.logged("no supergraph, serving the last good one from ");
            }
        }
        serve.logged("the URL has another supergraph: reloaded");
        assert_eq!(ready(), 200);
        assert_eq!(
            answer(ask(&gateway, "POST", "/graphql", QUERY)),
            (200, ANSWER.into())
        );
    }
}

#[test]
fn a_configuration_is_fetched_kept_and_fetched_again() {
    let registry = Registry::start("listen: 127.0.0.1:0\n");
    let kept = folder().join("fetched/config.yaml");
    let _ = fs::remove_file(&kept);
    let url = format!("http://{}/config?key=s3cret", registry.address);
    let (kept_text, schema) = (kept.display().to_string(), demo("supergraph.graphql"));
    let arguments = |url: &str, header: &str| {
        let all = ["serve", "-s", &schema, "-c", url];
        let polling = [
            "--config-poll-interval",
            "20ms",
            "--config-kept",
            &kept_text,
        ];
        let all = all
            .into_iter()
            .chain(polling)
            .chain(["--config-header", header]);
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut serve = Running::start(&arguments(&url, "x-key: k1"));
    let gateway = address(&serve.logged("serving http://"));
    let mode = fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    registry.set("listen: 127.0.0.1:0\nhttp: { graphql_endpoint: /api }\n");
    serve.logged("the URL has another configuration: reloaded");
    let ask_at = |path: &str| answer(ask(&gateway, "POST", path, QUERY));
    assert_eq!(ask_at("/api"), (200, ANSWER.into()));
    registry.set("listen: 127.0.0.1:0\nhttp: { graphql_endpiont: /other }\n");
    let line = serve.logged("configuration: not usable, going on with what was there before");
    assert!(!line.contains("s3cret"), "{line}");
    assert_eq!(ask_at("/api"), (200, ANSWER.into()));
    assert!(fs::read_to_string(&kept).unwrap().contains("/api"));
    drop(serve);
    // The URL does not answer at the next start.
    registry.up.store(false, Ordering::SeqCst);
    let mut serve = Running::start(&arguments(&url, "x-key: k1"));
    let line = serve.logged("serving with the last good one from");
    assert!(!line.contains("s3cret"), "{line}");
    let gateway = address(&serve.logged("serving http://"));
    assert_eq!(answer(ask(&gateway, "POST", "/api", QUERY)).0, 200);
    drop(serve);
    // Nothing is kept either, or the header is missing.
    fs::remove_file(&kept).unwrap();
    registry.up.store(true, Ordering::SeqCst);
    let (code, rest) = Running::start(&arguments(&url, "x-key: ${env.HOME}")).ended();
    assert_eq!(code, Some(1));
    assert!(
        rest.contains("it answers 401") && rest.contains("--config-kept"),
        "{rest}"
    );
    let home = std::env::var("HOME").unwrap_or_default();
    assert!(!rest.contains("s3cret") && (home.len() < 2 || !rest.contains(&format!("{home}\n"))));
    let (code, rest) = Running::start(&arguments("http://192.0.2.1/config", "x-key: k1")).ended();
    assert_eq!(code, Some(1));
    assert!(rest.contains("use https"), "{rest}");
}

#[test]
fn a_tls_file_that_cannot_be_used_is_an_error() {
    let bad = file("bad-authorities.pem", "no certificate\n");
    let schema = demo("supergraph.graphql");
    let text = |tls: bool| {
        if tls {
            format!(
                "listen: 127.0.0.1:0\noverride_subgraph_url: {{ accounts: 'https://127.0.0.1:1/' }}\n\
             tls: {{ subgraph: {{ all: {{ certificate_authorities: '{bad}' }} }} }}\n"
            )
        } else {
            "listen: 127.0.0.1:0\n".to_owned()
        }
    };
    let config = file("bad-tls.yaml", text(true));
    let (code, rest) = Running::start(&["serve", "-c", &config, "-s", &schema]).ended();
    assert_eq!(code, Some(1));
    assert!(
        rest.contains("`tls.subgraph.all`") && rest.contains(&bad),
        "{rest}"
    );
    // While serving, what was served before goes on.
    file("bad-tls.yaml", text(false));
    let mut serve = Running::start(&["serve", "-c", &config, "-s", &schema]);
    let gateway = address(&serve.logged("serving http://"));
    file("bad-tls.yaml", text(true));
    serve.signal("HUP");
    let line = serve.logged("reload refused, serving on as before");
    assert!(line.contains(&bad), "{line}");
    assert_eq!(answer(ask(&gateway, "POST", "/graphql", QUERY)).0, 200);
}

#[test]
fn documents_that_do_not_come_keep_it_from_starting() {
    // Nobody listens there, nor can another test get it.
    let port = 1;
    let start = |source: &str| {
        let text = format!(
            "listen: 127.0.0.1:0\npersisted_queries: {{ enabled: true, mode: require, sources: [{{ {source} }}] }}\n"
        );
        let config = file("documents-missing.yaml", text);
        let supergraph = demo("supergraph.graphql");
        Running::start(&["serve", "--supergraph", &supergraph, "--config", &config])
    };
    let (code, said) = start(&format!("url: 'http://127.0.0.1:{port}/m.json'")).ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("there are no documents from"), "{said}");
    let mut waits = start(&format!(
        "url: 'http://127.0.0.1:{port}/m.json', when_missing: wait"
    ));
    let address = address(&waits.logged("serving http"));
    let (_, text) = answer(ask(&address, "POST", "/graphql", QUERY));
    assert!(
        text.contains("QUERY_NOT_IN_SAFELIST"),
        "nothing is trusted because nothing is there: {text}"
    );
    let (code, said) = start("url: 'http://releases.example/m.json'").ended();
    assert_eq!(code, Some(1));
    assert!(said.contains("no https"), "{said}");
    let (code, said) = start("url: 'https://a.example/', path: m.json").ended();
    assert_eq!(code, Some(1));
    assert!(said.contains("one has to be set"), "{said}");
}
