//! The example as a client sees it.

#![allow(clippy::unwrap_used, reason = "it is a test")]

#[path = "../../examples/own_gateway.rs"]
mod own_gateway;

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use ogive::{Error, Gateway};
use tokio::sync::oneshot;

/// The answer of the example to a request with some header lines.
fn ask(address: SocketAddr, headers: &str) -> String {
    let body = r#"{"query":"{ me { name salary } }"}"#;
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /graphql HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         {headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Serves the example while `test` asks it.
fn served(test: impl FnOnce(SocketAddr, ogive::GatewayReload)) {
    let (tell, told) = std::sync::mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let gateway = own_gateway::gateway("127.0.0.1:0").unwrap();
            let listening = gateway.listen().await.unwrap();
            tell.send((listening.address().unwrap(), listening.reloading()))
                .unwrap();
            let shutdown = async {
                let _ = stopped.await;
            };
            listening.serve(shutdown).await.unwrap();
        });
    });
    let (address, handle) = told.recv().unwrap();
    test(address, handle);
    drop(stop);
    thread.join().unwrap();
}

#[test]
fn the_example_has_a_stage_a_transport_and_a_policy_of_its_own() {
    served(|address, _| {
        let closed = ask(address, "");
        assert!(closed.starts_with("HTTP/1.1 401 "), "{closed}");
        assert!(closed.contains("no key"), "{closed}");
        let known = ask(address, "x-key: secret\r\n");
        assert!(known.starts_with("HTTP/1.1 200 "), "{known}");
        assert!(
            known.to_lowercase().contains("x-answered-by: own\r\n"),
            "{known}"
        );
        assert!(known.contains(r#""name":"Ida","salary":null"#), "{known}");
        assert!(known.contains("UNAUTHORIZED_FIELD_OR_TYPE"), "{known}");
        for (role, expected) in [
            ("boss", r#""salary":"a lot""#),
            ("clerk", r#""salary":null"#),
        ] {
            let claims = format!("x-claims: {{\"claims\":{{\"role\":\"{role}\"}}}}\r\n");
            let answer = ask(address, &format!("x-key: secret\r\n{claims}"));
            assert!(answer.contains(expected), "{role}: {answer}");
        }
    });
}

#[test]
fn a_supergraph_is_replaced_while_it_serves_or_nothing_changes() {
    served(|address, handle| {
        let sdl = include_str!("../../examples/supergraph.graphql");
        assert!(matches!(
            handle.replace_supergraph("type Query"),
            Err(Error::Supergraph(_))
        ));
        let renamed = sdl.replace("name: \"people\"", "name: \"others\"");
        assert!(matches!(
            handle.replace_supergraph(&renamed),
            Err(Error::Supergraph(_))
        ));
        assert!(ask(address, "x-key: secret\r\n").contains("Ida"));
        let open = sdl.replace("@policy(policies: [[\"boss\"]])", "");
        handle.replace_supergraph(&open).unwrap();
        assert!(ask(address, "x-key: secret\r\n").contains("a lot"));
    });
}

#[test]
fn what_cannot_be_used_is_said() {
    let build = |yaml: &str, sdl: &str| {
        let built = Gateway::builder()
            .configuration(yaml)
            .supergraph(sdl)
            .build();
        built.map(drop).unwrap_err()
    };
    let sdl = include_str!("../../examples/supergraph.graphql");
    assert!(matches!(build("listen: {", sdl), Error::Configuration(_)));
    assert!(
        matches!(build("listten: a", sdl), Error::Configuration(why) if why.contains("listten"))
    );
    assert!(matches!(build("", "nothing"), Error::Supergraph(_)));
    // Restrictions that nobody says what to do about.
    assert!(matches!(build("", sdl), Error::Supergraph(why) if why.contains("salary")));
}
