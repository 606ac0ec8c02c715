//! `ogive health` as a probe asks.

use std::{
    io::{Read, Write},
    net::TcpListener,
};

use ogive_testbase::subgraph::ManualSubgraph;

use crate::process::{Running, address, ask, demo, file, ogive, run};

#[test]
fn a_gateway_is_alive_and_ready_until_it_drains() {
    let accounts = ManualSubgraph::start();
    let config = file(
        "health.yaml",
        format!(
            "listen: 127.0.0.1:0\nhealth_check: {{ listen: 127.0.0.1:0 }}\nhttp: {{ connection_shutdown_timeout: 10m }}\n\
             override_subgraph_url: {{ accounts: '{}' }}\n",
            accounts.url()
        ),
    );
    let mut serve = Running::start(&["serve", "-s", &demo("supergraph.graphql"), "-c", &config]);
    let health = address(&serve.logged("health at http"));
    let gateway = address(&serve.logged("serving http://"));
    let url = format!("http://{health}");
    for arguments in [
        &["health", "--url", &url][..],
        &["health", "--ready", "--url", &url],
    ] {
        assert_eq!(run(arguments), (Some(0), String::new(), String::new()));
    }
    // A request in flight keeps it draining until the test answers.
    let _client = ask(
        &gateway,
        "POST",
        "/graphql",
        r#"{"query":"{ me { name } }"}"#,
    );
    let _upstream = accounts.next();
    serve.signal("TERM");
    serve.logged("draining");
    let (code, _, err) = run(&["health", "--ready", "--url", &url]);
    assert_eq!(code, Some(1));
    assert!(err.contains("answers 503 at /health?ready"), "{err}");
    assert_eq!(run(&["health", "--url", &url]).0, Some(0));
}

#[test]
fn the_address_is_that_of_the_environment() {
    let mut demo = Running::start(&["demo", "--listen", "127.0.0.1:0"]);
    let gateway = address(&demo.printed("GraphQL "));
    let port = gateway.rsplit(':').next().unwrap();
    let listen = format!("0.0.0.0:{port}");
    let probe = ogive(&["health", "--ready"])
        .env("OGIVE_LISTEN", &listen)
        .output()
        .unwrap();
    assert_eq!(probe.status.code(), Some(0), "{probe:?}");
}

#[test]
fn what_does_not_answer_is_not_alive() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 64];
        let _ = stream.read(&mut request).unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n").unwrap();
        let (stream, _) = listener.accept().unwrap();
        // Silent until the probe gives up.
        let _ = { stream }.read_to_end(&mut Vec::new());
    });
    let (code, _, err) = run(&["health", "--url", &url]);
    assert_eq!(code, Some(1));
    assert!(err.contains("the answer is not HTTP"), "{err}");
    let (code, _, err) = run(&["health", "--timeout", "1", "--url", &url]);
    assert_eq!(code, Some(1));
    assert!(err.contains("does not answer"), "{err}");
    server.join().unwrap();
    // Nothing listens there any more.
    assert_eq!(run(&["health", "--url", &url]).0, Some(1));
    let (code, _, err) = run(&["health", "--url", "https://127.0.0.1:1"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("health_check.listen"), "{err}");
}
