//! TLS on both sides, with certificates made for each test. The subgraph is a second gateway over the same graph.

use crate::{
    certificates::{Authority, Folder, ask, open, tls},
    graph::Graph,
    http_client::{post, request},
};

const ANSWER: &str = r#"{"data":{"me":{"name":"Ida Lindqvist"}}}"#;
const QUERY: &[u8] = br#"{"query":"{ me { name } }"}"#;

#[test]
fn the_listener_speaks_tls() {
    let (authority, folder) = (Authority::new(), Folder::new("tls-listener"));
    let identity = folder.identity("server", &authority.issue("localhost"));
    let graph = Graph::with(&format!("tls: {{ supergraph: {{ {identity} }} }}"));
    let mut connection = open(graph.address(), &authority);
    let headers = [("content-type", "application/json")];
    for _ in 0..2 {
        connection.write(&request("POST", "/graphql", &headers, QUERY));
        assert_eq!(connection.read().text(), ANSWER);
    }
    let error = ask(graph.address(), &Authority::new(), None).unwrap_err();
    assert!(error.contains("certificate"), "another authority: {error}");
    // Whoever speaks without TLS gets no HTTP.
    let mut plain = crate::http_client::Connection::open(graph.address());
    plain.write(b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n");
    let mut said = Vec::new();
    while plain.read_some(&mut said) {}
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
}

#[test]
fn both_sides_agree_on_the_version_of_http() {
    let (authority, folder) = (Authority::new(), Folder::new("tls-alpn"));
    let identity = folder.identity("server", &authority.issue("localhost"));
    for (http2, offered, agreed) in [
        (true, &["h2", "http/1.1"][..], Some("h2")),
        (true, &["http/1.1"], Some("http/1.1")),
        (true, &[], None),
        (false, &["h2", "http/1.1"], Some("http/1.1")),
    ] {
        let graph = Graph::with(&format!(
            "tls: {{ supergraph: {{ {identity} }} }}\nhttp: {{ http2: {{ enabled: {http2} }} }}"
        ));
        let stream = tls(graph.address(), &authority, None, offered).unwrap();
        let found = stream.conn.alpn_protocol().map(String::from_utf8_lossy);
        assert_eq!(found.as_deref(), agreed, "{http2} {offered:?}");
    }
}

#[test]
fn clients_show_certificates_if_they_must_or_may() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let folder = Folder::new("tls-clients");
    let identity = folder.identity("server", &authority.issue("localhost"));
    let trusted = folder.write("clients.pem", &clients.pem);
    let known = clients.issue("client");
    let stranger = Authority::new().issue("client");
    for (required, nobody) in [(true, false), (false, true)] {
        let graph = Graph::with(&format!(
            "tls: {{ supergraph: {{ {identity}, client_authentication: {{ certificate_authorities: '{trusted}', required: {required} }} }} }}"
        ));
        let ask = |who| ask(graph.address(), &authority, who);
        assert_eq!(ask(Some(&known)), Ok(200));
        assert_eq!(ask(None).is_ok(), nobody, "required: {required}");
        assert!(ask(Some(&stranger)).is_err(), "required: {required}");
    }
}

#[test]
fn changed_certificates_are_used_by_new_connections() {
    let folder = Folder::new("tls-reload");
    let (before, after) = (Authority::new(), Authority::new());
    let identity = folder.identity("server", &before.issue("localhost"));
    let graph = Graph::with(&format!(
        "tls: {{ supergraph: {{ {identity} }}, reload_interval: 20ms }}"
    ));
    let address = graph.address();
    let mut old = open(address, &before);
    // Half of a change, or nonsense: nothing changes.
    folder.write("server.pem", "nonsense");
    for _ in 0..20 {
        assert_eq!(ask(address, &before, None), Ok(200));
    }
    folder.identity("server", &after.issue("localhost"));
    while ask(address, &after, None) != Ok(200) {}
    assert!(ask(address, &before, None).is_err());
    old.write(&request("GET", "/health", &[], b""));
    assert_eq!(old.read().status, 200, "an open connection goes on");
}

/// A handshake may have to wait for its turn.
const PATIENT: &str = "traffic_shaping: { all: { connect_timeout: 30s } }\n";

/// A gateway in front of a gateway: the second one is the subgraph `accounts`, on `https`.
fn in_front_of(subgraph: &Graph, tls: &str) -> Graph {
    let port = subgraph.address().port();
    Graph::with(&format!(
        "override_subgraph_url: {{ accounts: 'https://localhost:{port}/graphql' }}\n{PATIENT}tls: {{ subgraph: {{ {tls} }} }}"
    ))
}

#[test]
fn subgraphs_are_asked_over_tls() {
    let (authority, folder) = (Authority::new(), Folder::new("tls-subgraph"));
    let ca = folder.write("ca.pem", &authority.pem);
    let wrong = folder.write("wrong.pem", &Authority::new().pem);
    let identity = folder.identity("server", &authority.issue("localhost"));
    let other = folder.identity("other", &authority.issue("accounts.internal"));
    let localhost = Graph::with(&format!("tls: {{ supergraph: {{ {identity} }} }}"));
    let elsewhere = Graph::with(&format!("tls: {{ supergraph: {{ {other} }} }}"));
    let inline = authority.pem.replace('\n', "\\n");
    for (subgraph, tls, well) in [
        (
            &localhost,
            format!("all: {{ certificate_authorities: '{ca}' }}"),
            true,
        ),
        (
            &localhost,
            format!("all: {{ certificate_authorities: \"{inline}\" }}"),
            true,
        ),
        (
            &localhost,
            format!(
                "all: {{ certificate_authorities: '{wrong}' }}, subgraphs: {{ accounts: {{ certificate_authorities: '{ca}' }} }}"
            ),
            true,
        ),
        (
            &localhost,
            format!("all: {{ certificate_authorities: '{wrong}' }}"),
            false,
        ),
        // The system does not know the test's authority.
        (&localhost, "all: {}".into(), false),
        (
            &localhost,
            "subgraphs: { accounts: { insecure_skip_verify: true } }".into(),
            true,
        ),
        (
            &localhost,
            "subgraphs: { reviews: { insecure_skip_verify: true } }".into(),
            false,
        ),
        (
            &localhost,
            "all: { certificate_authorities: /does/not/exist.pem }".into(),
            false,
        ),
        (
            &elsewhere,
            format!("all: {{ certificate_authorities: '{ca}' }}"),
            false,
        ),
        (
            &elsewhere,
            format!("all: {{ certificate_authorities: '{ca}', server_name: accounts.internal }}"),
            true,
        ),
    ] {
        let graph = in_front_of(subgraph, &tls);
        let answer = post(
            graph.address(),
            "{ me { name } topProducts(first: 1) { name } }",
        );
        let name = answer.json()["data"]["me"]["name"] == "Ida Lindqvist";
        assert_eq!(name, well, "{tls}: {}", answer.text());
        if !well {
            assert_eq!(answer.codes(), ["SUBREQUEST_HTTP_ERROR"], "{tls}");
        }
        let other = &answer.json()["data"]["topProducts"][0]["name"];
        assert_eq!(other, "Ridge 30 backpack", "{tls}");
    }
}

#[test]
fn the_gateway_shows_subgraphs_its_certificate() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let folder = Folder::new("tls-mutual");
    let ca = folder.write("ca.pem", &authority.pem);
    let trusted = folder.write("clients.pem", &clients.pem);
    let server = folder.identity("server", &authority.issue("localhost"));
    let subgraph = Graph::with(&format!(
        "tls: {{ supergraph: {{ {server}, client_authentication: {{ certificate_authorities: '{trusted}' }} }} }}"
    ));
    let client = folder.identity("client", &clients.issue("gateway"));
    let with = format!(
        "all: {{ certificate_authorities: '{ca}', client_authentication: {{ {client} }} }}"
    );
    let graph = in_front_of(&subgraph, &with);
    assert_eq!(post(graph.address(), "{ me { name } }").text(), ANSWER);
    let without = format!("all: {{ certificate_authorities: '{ca}' }}");
    let graph = in_front_of(&subgraph, &without);
    assert_eq!(
        post(graph.address(), "{ me { name } }").codes(),
        ["SUBREQUEST_HTTP_ERROR"]
    );
}

#[test]
fn changed_authorities_are_used_by_new_connections_to_subgraphs() {
    let (authority, folder) = (Authority::new(), Folder::new("tls-subgraph-reload"));
    let server = folder.identity("server", &authority.issue("localhost"));
    let ca = folder.write("ca.pem", &authority.pem);
    let subgraph = Graph::with(&format!("tls: {{ supergraph: {{ {server} }} }}"));
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: 'https://localhost:{}/graphql' }}\n{PATIENT}\
         tls: {{ reload_interval: 20ms, subgraph: {{ all: {{ certificate_authorities: '{ca}' }} }} }}",
        subgraph.address().port()
    ));
    assert_eq!(post(graph.address(), "{ me { name } }").text(), ANSWER);
    // Connections that were made with what was trusted before are not used any more.
    folder.write("ca.pem", &Authority::new().pem);
    while post(graph.address(), "{ me { name } }").text() == ANSWER {}
    folder.write("ca.pem", &authority.pem);
    while post(graph.address(), "{ me { name } }").text() != ANSWER {}
}

#[test]
fn what_is_missing_is_named() {
    let load = |yaml: &str| {
        let error =
            ogive_gateway::listen::listener_tls(&crate::graph::config(yaml)).expect_err(yaml);
        error.to_string()
    };
    let folder = Folder::new("tls-missing");
    let (ca, issued) = (Authority::new(), Authority::new().issue("localhost"));
    let other = ca.issue("localhost");
    let chain = folder.write("chain.pem", &issued.chain);
    let key = folder.write("other.key", &other.key);
    for (options, wanted) in [
        (
            "key: a".to_owned(),
            "`tls.supergraph.certificate_chain` is missing",
        ),
        (
            "certificate_chain: a".to_owned(),
            "`tls.supergraph.key` is missing",
        ),
        (
            "certificate_chain: /a/b, key: /a/c".to_owned(),
            "`/a/b`: No such file",
        ),
        (
            format!("certificate_chain: '{chain}', key: '{chain}'"),
            "the key is no PEM key",
        ),
        (
            format!("certificate_chain: '{key}', key: '{key}'"),
            "no certificate",
        ),
        (
            format!("certificate_chain: '{chain}', key: '{key}'"),
            "tls.supergraph",
        ),
    ] {
        let found = load(&format!("tls: {{ supergraph: {{ {options} }} }}"));
        assert!(found.contains(wanted), "{options}: {found}");
    }
}
