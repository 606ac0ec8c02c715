//! Client certificates as callers.

use serde_json::json;

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
