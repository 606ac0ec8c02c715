//! Subgraphs learn who asks them: what they are sent, what becomes of it when it cannot be had, and what others say of it.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpListener,
    process::{Command, Stdio},
    time::Instant,
};

use ogive_testbase::{
    left_out,
    needs::{ORACLE_IS_OFF, oracle},
    subgraph::{Reply, StubSubgraph, answer},
};
use serde_json::{Value, json};

use crate::{
    faults::{compare, seen},
    graph::Graph,
    http_client::{Connection, post, post_with, request},
};

const GOOD: &[u8] = br#"{"data":{"me":{"name":"Zoe"},"account":{"name":"Zoe"}}}"#;
const QUERY: &str = "{ me { name } }";
/// RFC 9421, appendix B.1.4.
const ED25519: &str = "-----BEGIN PRIVATE KEY-----\\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\\n-----END PRIVATE KEY-----";
const ED25519_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=\n-----END PUBLIC KEY-----\n";
const AWS: &str = "aws_sig_v4: { hardcoded: { region: eu-central-1, service_name: execute-api, access_key_id: AKIDEXAMPLE, \
                   secret_access_key: s3cret-of-aws } }";
const HMAC: &str = "hmac: { secret: s3cret-of-hmac-16 }";

fn subgraph() -> StubSubgraph {
    StubSubgraph::answering(200, "", GOOD)
}

/// A graph whose accounts are asked at `url`, with this proof; `more` are further options.
fn graph(url: &str, proof: &str, more: &str) -> Graph {
    let yaml = format!(
        "override_subgraph_url: {{ accounts: '{url}' }}\nauthentication: {{ subgraph: {{ subgraphs: {{ accounts: {{ {proof} }} }} }} }}\n{more}"
    );
    Graph::with(&yaml)
}

/// A request that came, taken apart.
struct Came {
    headers: BTreeMap<String, String>,
    body: String,
}

impl Came {
    fn of(text: &str) -> Came {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let headers = head.lines().skip(1).map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_owned(), value.to_owned())
        });
        let mut map = BTreeMap::new();
        for (name, value) in headers {
            assert!(
                map.insert(name.clone(), value).is_none(),
                "{name} came twice"
            );
        }
        Came {
            headers: map,
            body: body.to_owned(),
        }
    }
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

fn last(subgraph: &StubSubgraph) -> Came {
    Came::of(subgraph.requests().last().unwrap())
}

#[test]
fn requests_for_aws_carry_its_signature_and_not_the_clients() {
    let subgraph = subgraph();
    let rules = "headers: { all: { request: [ { propagate: { matching: '.*' } }, { insert: { name: x-amz-target, value: of-the-operator } } ] } }";
    let graph = graph(&subgraph.url(), AWS, rules);
    let own = [
        ("authorization", "Bearer of-the-client"),
        ("x-amz-date", "19700101T000000Z"),
        ("x-amz-security-token", "of-the-client"),
        ("x-amz-target", "of-the-client"),
        ("x-amz-invocation-type", "Event-of-the-client"),
    ];
    assert_eq!(
        post_with(graph.address(), QUERY, &own).codes(),
        Vec::<String>::new()
    );
    let came = last(&subgraph);
    let authorization = came.header("authorization");
    assert!(
        authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"),
        "{authorization}"
    );
    assert!(
        authorization.contains("/eu-central-1/execute-api/aws4_request, SignedHeaders="),
        "{authorization}"
    );
    assert!(
        !came
            .headers
            .values()
            .any(|value| value.contains("of-the-client"))
    );
    assert_eq!(came.header("x-amz-target"), "of-the-operator");
    assert!(authorization.contains("x-amz-target"), "{authorization}");
    assert!(came.header("x-amz-date") > "2026", "{:?}", came.headers);
    assert!(!came.headers.values().any(|value| value.contains("s3cret")));
}

#[test]
fn query_and_variables_are_signed_in_an_extension() {
    let subgraph = subgraph();
    let graph = graph(
        &subgraph.url(),
        "hmac: { secret: s3cret-of-hmac-16, extension_name: by }",
        "",
    );
    assert_eq!(post(graph.address(), QUERY).status, 200);
    let body: Value = serde_json::from_str(&last(&subgraph).body).unwrap();
    assert_eq!(body["extensions"]["by"].as_str().unwrap().len(), 44);
    assert!(body["query"].as_str().unwrap().contains("me"));
}

#[test]
fn messages_are_signed_over_what_is_sent() {
    let subgraph = subgraph();
    let proof = format!(
        "{HMAC}, message_signature: {{ algorithm: ed25519, key: \"{ED25519}\", key_id: k1, label: ogive, expires: 60s, tag: t, \
         include_algorithm: false, digest: sha-512, components: ['@method', content-digest, content-length, host-id] }}"
    );
    let rules = "headers: { all: { request: [ { insert: { name: host-id, value: h1 } }, { propagate: { named: signature } } ] } }";
    let graph = graph(&subgraph.url(), &proof, rules);
    let answer = post_with(graph.address(), QUERY, &[("signature", "of-the-client")]);
    assert_eq!(answer.codes(), Vec::<String>::new());
    let came = last(&subgraph);
    let input = came.header("signature-input");
    assert!(
        input.starts_with(
            "ogive=(\"@method\" \"content-digest\" \"content-length\" \"host-id\");created="
        ),
        "{input}"
    );
    assert!(
        input.contains(";expires=") && input.ends_with(";keyid=\"k1\";tag=\"t\""),
        "{input}"
    );
    assert!(came.header("signature").starts_with("ogive=:"));
    assert!(came.header("content-digest").starts_with("sha-512=:"));
}

/// A token endpoint that gives `t1`, `t2`, ...
fn tokens() -> StubSubgraph {
    StubSubgraph::start(|nth, _| {
        let body = format!(
            r#"{{"access_token":"t{}","token_type":"Bearer","expires_in":3600}}"#,
            nth + 1
        );
        Reply::Whole(answer(200, "", body.as_bytes()))
    })
}

fn bearer(url: &str, id: &str) -> String {
    bearer_within(url, id, "60s")
}

/// A token that may take so long.
fn bearer_within(url: &str, id: &str, timeout: &str) -> String {
    format!(
        "bearer: {{ token_endpoint: '{url}token', client_id: {id}, client_secret: s3cret-of-bearer, timeout: {timeout} }}"
    )
}

#[test]
fn a_token_is_fetched_once_for_all() {
    let (subgraph, tokens) = (subgraph(), tokens());
    let proof = format!(
        "bearer: {{ token_endpoint: '{}token', client_id: once, client_secret: s3cret-of-bearer, client_authentication: post, \
         scopes: [a, b], audience: c, timeout: 60s }}",
        tokens.url()
    );
    let graph = graph(
        &subgraph.url(),
        &proof,
        "http: { workers: 2 }\ntraffic_shaping: { all: { deduplicate_query: false } }",
    );
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(post(graph.address(), QUERY).codes(), Vec::<String>::new()));
        }
    });
    assert_eq!((tokens.asked(), subgraph.asked()), (1, 8));
    for request in subgraph.requests() {
        assert_eq!(Came::of(&request).header("authorization"), "Bearer t1");
    }
    let fields = "grant_type=client_credentials&scope=a%20b&audience=c&client_id=once&client_secret=s3cret-of-bearer";
    let asked = last(&tokens);
    assert_eq!(
        (asked.body.as_str(), asked.header("content-type")),
        (fields, "application/x-www-form-urlencoded")
    );
}

/// A subgraph that takes one token only.
fn taking(token: &'static str) -> StubSubgraph {
    StubSubgraph::start(move |_, request| {
        let good = request.contains(&format!("authorization: Bearer {token}\r\n"));
        let status = if good { 200 } else { 401 };
        Reply::Whole(answer(status, "", if good { GOOD } else { b"" }))
    })
}

#[test]
fn a_refused_token_is_renewed_once_and_a_mutation_is_not_sent_again() {
    let (subgraph, tokens) = (taking("t2"), tokens());
    let graph = graph(&subgraph.url(), &bearer(&tokens.url(), "refused"), "");
    assert_eq!(post(graph.address(), QUERY).codes(), Vec::<String>::new());
    assert_eq!((tokens.asked(), subgraph.asked()), (2, 2));
    assert_eq!(post(graph.address(), QUERY).codes(), Vec::<String>::new());
    assert_eq!((tokens.asked(), subgraph.asked()), (2, 3));
}

#[test]
fn a_subgraph_that_refuses_every_token_is_not_a_storm() {
    let (subgraph, tokens) = (taking("none"), tokens());
    let graph = graph(&subgraph.url(), &bearer(&tokens.url(), "storm"), "");
    let began = Instant::now();
    for _ in 0..5 {
        assert_eq!(
            post(graph.address(), QUERY).codes(),
            ["SUBREQUEST_HTTP_ERROR"]
        );
    }
    // One in ten seconds, and here that is one.
    let (renewals, most) = (tokens.asked() - 1, 1 + began.elapsed().as_secs() / 10);
    assert!((1..=most as usize).contains(&renewals), "{renewals}");
    assert_eq!(subgraph.asked(), 5 + renewals, "one more try for each");
}

#[test]
fn a_mutation_that_is_refused_is_not_sent_again() {
    let (subgraph, tokens) = (taking("t2"), tokens());
    let yaml = format!(
        "override_subgraph_url: {{ reviews: '{}' }}\nauthentication: {{ subgraph: {{ all: {{ {} }} }} }}",
        subgraph.url(),
        bearer(&tokens.url(), "mutation")
    );
    let graph = Graph::with(&yaml);
    let mutation =
        r#"mutation { addReview(review: {product: "HP-204", stars: 5, title: "New"}) { stars } }"#;
    assert!(!post(graph.address(), mutation).codes().is_empty());
    assert_eq!(subgraph.asked(), 1);
}

/// What a token endpoint does, what a client sees, and what is written in the log.
pub(crate) struct Case {
    pub(crate) fault: &'static str,
    reply: fn() -> Reply,
    pub(crate) seen: &'static str,
    pub(crate) survives: &'static str,
}

const UNAVAILABLE: &str = "200 SUBREQUEST_CREDENTIALS_UNAVAILABLE";
const OTHERS: &str = "data of the other subgraphs; the subgraph is not asked";

const fn case(fault: &'static str, reply: fn() -> Reply) -> Case {
    Case {
        fault,
        reply,
        seen: UNAVAILABLE,
        survives: OTHERS,
    }
}

pub(crate) const CASES: &[Case] = &[
    case("closes instead of answering", || Reply::Last(Vec::new())),
    case("accepts, and never answers", || Reply::Hang(Vec::new())),
    case("drips, a byte at a time", || {
        Reply::Drip(b"HTTP/1.1 200 OK\r\n".to_vec())
    }),
    case("speaks no HTTP", || {
        Reply::Last(b"SSH-2.0-OpenSSH\r\n".to_vec())
    }),
    case("answers 503", || Reply::Whole(answer(503, "", b"busy"))),
    case("answers 400 `invalid_client`", || {
        Reply::Whole(answer(400, "", br#"{"error":"invalid_client"}"#))
    }),
    case("answers 200 with HTML", || {
        Reply::Whole(answer(200, "", b"<html>Sign in</html>"))
    }),
    case("answers a megabyte", || {
        Reply::Whole(answer(200, "", &[b' '; 1 << 20]))
    }),
    case("redirects to another host", || {
        Reply::Whole(answer(302, "location: http://127.0.0.1:1/\r\n", b""))
    }),
    case("answers without a token", || {
        Reply::Whole(answer(200, "", b"{}"))
    }),
    case("answers a token of another type", || {
        Reply::Whole(answer(
            200,
            "",
            br#"{"access_token":"t","token_type":"mac"}"#,
        ))
    }),
    case("answers a token that would add a header", || {
        Reply::Whole(answer(
            200,
            "",
            br#"{"access_token":"t\r\nx-admin: 1","token_type":"Bearer"}"#,
        ))
    }),
    case("answers a token that has ended", || {
        Reply::Whole(answer(
            200,
            "",
            br#"{"access_token":"t","token_type":"Bearer","expires_in":0}"#,
        ))
    }),
];

#[test]
fn what_goes_wrong_with_a_token_server() {
    let found: Vec<_> = CASES
        .iter()
        .enumerate()
        .map(|(number, case)| {
            let (subgraph, reply) = (subgraph(), case.reply);
            let tokens = StubSubgraph::start(move |_, _| reply());
            let proof = bearer_within(&tokens.url(), &format!("fault{number}"), "300ms");
            let graph = graph(&subgraph.url(), &proof, "");
            let answer = post(
                graph.address(),
                "{ me { name } topProducts(first: 1) { name } }",
            );
            let data = &answer.json()["data"];
            assert!(
                data["topProducts"][0]["name"].is_string(),
                "{}: {}",
                case.fault,
                answer.text()
            );
            assert_eq!(data["me"], Value::Null, "{}", case.fault);
            assert_eq!(subgraph.asked(), 0, "{}", case.fault);
            // Nothing is asked again so soon. A pause may be over on a busy machine, but the next one is longer.
            let mut tries = 0;
            loop {
                let asked = tokens.asked();
                let again = post(graph.address(), QUERY);
                assert_eq!(seen(&again), case.seen, "{}", case.fault);
                if tokens.asked() == asked {
                    break;
                }
                tries += 1;
                assert!(tries < 10, "{}", case.fault);
            }
            (case.fault, seen(&answer), case.seen)
        })
        .collect();
    compare(&found);
}

#[test]
fn waiting_for_a_token_is_not_the_subgraphs_time_and_opens_no_breaker() {
    let subgraph = subgraph();
    let tokens = StubSubgraph::start(|_, _| Reply::Hang(Vec::new()));
    let traffic = "traffic_shaping: { all: { timeout: 50ms, circuit_breaker: { volume_threshold: 2, reset_timeout: 1h } } }";
    let proof = bearer_within(&tokens.url(), "slow", "1s");
    let graph = graph(&subgraph.url(), &proof, traffic);
    let began = Instant::now();
    for _ in 0..6 {
        assert_eq!(seen(&post(graph.address(), QUERY)), UNAVAILABLE);
    }
    // Between two there is a pause of a second at least.
    let most = 1 + began.elapsed().as_secs();
    assert!(tokens.asked() as u64 <= most, "{}", tokens.asked());
    assert_eq!(subgraph.asked(), 0);
}

#[test]
fn a_key_that_cannot_be_used_lets_nothing_pass() {
    let subgraph = subgraph();
    let proof = "message_signature: { key: /no/such/key.pem }";
    let graph = graph(&subgraph.url(), proof, "");
    assert_eq!(seen(&post(graph.address(), QUERY)), UNAVAILABLE);
    assert_eq!(subgraph.asked(), 0);
}

#[test]
fn every_try_is_signed_anew() {
    let replies = vec![
        Reply::Whole(answer(503, "", b"busy")),
        Reply::Whole(answer(200, "", GOOD)),
    ];
    let subgraph = StubSubgraph::in_turn(replies);
    // A signature of ECDSA is another one each time.
    let key = "-----BEGIN PRIVATE KEY-----\\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjJysxla9KNk/cqdpb+XKPEo0+3ZfDAiDYSyUBB46k1GhRANCAASoM/cgnFuEh2UlXo2QsolHy2JQo94YGTUaXP7KpNagRip6nA5+/qh+PvL0pu/sLOWazWb9pjlM3wUwZuch7cnb\\n-----END PRIVATE KEY-----";
    let (id, more) = (
        "ec",
        "traffic_shaping: { all: { retry: { attempts: 1, backoff: 1ms } } }",
    );
    let proof = format!(
        "message_signature: {{ algorithm: ecdsa-p256-sha256, key: \"{key}\", key_id: {id} }}"
    );
    let graph = graph(&subgraph.url(), &proof, more);
    assert_eq!(post(graph.address(), QUERY).codes(), Vec::<String>::new());
    let sent: Vec<Came> = subgraph
        .requests()
        .iter()
        .map(|request| Came::of(request))
        .collect();
    assert_eq!(sent.len(), 2);
    assert_ne!(sent[0].header("signature"), sent[1].header("signature"));
    assert_eq!(sent[0].body, sent[1].body);
}

#[test]
fn the_digest_is_that_of_the_bytes_as_they_are_compressed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let subgraph = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut came = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "it ended early");
            came.extend_from_slice(&piece[..read]);
            let Some(head) = came.windows(4).position(|w| w == b"\r\n\r\n") else {
                continue;
            };
            let text = String::from_utf8(came[..head].to_vec()).unwrap();
            let length = text.split("content-length: ").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            if came.len() == head + 4 + length {
                stream.write_all(&answer(200, "", GOOD)).unwrap();
                return (text, came.split_off(head + 4));
            }
        }
    });
    let proof = format!("message_signature: {{ key: \"{ED25519}\" }}");
    let graph = graph(
        &url,
        &proof,
        "traffic_shaping: { all: { compression: gzip } }",
    );
    let id = "long ".repeat(400);
    let body = json!({"query": "query Q($id: ID!) { account(id: $id) { name } }", "variables": {"id": id}});
    let mut connection = Connection::open(graph.address());
    let json = [("content-type", "application/json")];
    let body = body.to_string();
    connection.write(&request("POST", "/graphql", &json, body.as_bytes()));
    assert_eq!(connection.read().status, 200);
    let (head, sent) = subgraph.join().unwrap();
    assert!(head.contains("content-encoding: gzip"), "{head}");
    let digest = ring::digest::digest(&ring::digest::SHA256, &sent);
    let digest = ogive_identity::base64url::encode(digest.as_ref());
    let digest = digest.replace('-', "+").replace('_', "/");
    let line = format!("content-digest: sha-256=:{digest}=:");
    assert!(head.contains(&line), "{line}\n{head}");
}

/// A request as `oracle/signing/verify.mjs` takes it.
fn question(kind: &str, subgraph: &StubSubgraph, path: &str, more: &Value) -> Value {
    let came = last(subgraph);
    let url = format!("{}{path}", subgraph.url().trim_end_matches('/'));
    let mut question = json!({"kind": kind, "method": "POST", "url": url, "headers": came.headers, "body": came.body});
    for (name, value) in more.as_object().unwrap() {
        question[name] = value.clone();
    }
    question
}

#[test]
fn programs_of_others_verify_what_is_signed() {
    let Some(folder) = oracle("signing/node_modules/aws4") else {
        return left_out(ORACLE_IS_OFF);
    };
    let with_variables = json!({
        "query": "query Q($id: ID!) { account(id: $id) { name } }",
        "variables": {"id": "\u{e9}\u{1f600} \"quoted\"\n"}
    });
    let mut questions = Vec::new();
    for path in ["/", "/a%20b//graphql/x?z=1&a=%C3%A9&a=b%2Fc"] {
        for variables in [false, true] {
            let ask = |kind: &str, proof: &str, more: &Value| {
                let subgraph = subgraph();
                let url = format!("{}{path}", subgraph.url().trim_end_matches('/'));
                let graph = graph(&url, proof, "");
                let body = if variables {
                    with_variables.to_string()
                } else {
                    json!({"query": QUERY}).to_string()
                };
                let mut connection = Connection::open(graph.address());
                let json = [("content-type", "application/json")];
                connection.write(&request("POST", "/graphql", &json, body.as_bytes()));
                assert_eq!(connection.read().status, 200);
                question(kind, &subgraph, path, more)
            };
            let aws = json!({"service": "execute-api", "region": "eu-central-1", "key": "AKIDEXAMPLE", "secret": "s3cret-of-aws"});
            questions.push(ask("aws", AWS, &aws));
            let hmac = json!({"secret": "s3cret-of-hmac-16", "extension": "hmac-signature"});
            questions.push(ask("hmac", HMAC, &hmac));
            for components in [
                "",
                ", components: ['@method', '@target-uri', '@scheme', '@request-target', '@query', content-digest, accept]",
            ] {
                let proof =
                    format!("message_signature: {{ key: \"{ED25519}\", key_id: k1{components} }}");
                let known =
                    json!({"algorithm": "ed25519", "publicKey": ED25519_PUBLIC, "keyid": "k1"});
                questions.push(ask("message", &proof, &known));
                let proof = format!(
                    "{HMAC}, message_signature: {{ algorithm: hmac-sha256, key: s3cret-of-messages, key_id: k2, digest: sha-512{components} }}"
                );
                let known = json!({"algorithm": "hmac-sha256", "secret": "s3cret-of-messages", "keyid": "k2"});
                questions.push(ask("message", &proof, &known));
            }
        }
    }
    for (algorithm, kind, options) in [
        ("ecdsa-p256-sha256", "ec", "{namedCurve: 'P-256'}"),
        ("ecdsa-p384-sha384", "ec", "{namedCurve: 'P-384'}"),
        ("rsa-pss-sha512", "rsa", "{modulusLength: 2048}"),
        ("rsa-v1_5-sha256", "rsa", "{modulusLength: 2048}"),
        ("ed25519", "ed25519", "{}"),
    ] {
        let (private, public) = key_pair(kind, options);
        let private = private.replace('\n', "\\n");
        let proof = format!(
            "message_signature: {{ algorithm: {algorithm}, key: \"{private}\", key_id: k3 }}"
        );
        let subgraph = subgraph();
        let graph = graph(&subgraph.url(), &proof, "");
        assert_eq!(
            post(graph.address(), QUERY).codes(),
            Vec::<String>::new(),
            "{algorithm}"
        );
        let known = json!({"algorithm": algorithm, "publicKey": public, "keyid": "k3"});
        questions.push(question("message", &subgraph, "/", &known));
    }
    let answers = verified(&folder, &questions);
    for (answer, question) in answers.iter().zip(&questions) {
        assert_eq!(*answer, json!(true), "{question:#}");
    }
    // The programs can tell: one byte of the body, or of the URL, is another request.
    let mut changed = questions.clone();
    for question in &mut changed {
        question["body"] = json!(
            question["body"]
                .as_str()
                .unwrap()
                .replacen("name", "nane", 1)
        );
    }
    let answers = verified(&folder, &changed);
    assert_eq!(answers.len(), questions.len());
    assert!(answers.iter().all(Value::is_string), "{answers:?}");
}

/// A private and a public key, in PEM.
fn key_pair(kind: &str, options: &str) -> (String, String) {
    let script = format!(
        "const k = require('crypto').generateKeyPairSync('{kind}', {options});\
         console.log(JSON.stringify([k.privateKey.export({{type: 'pkcs8', format: 'pem'}}), k.publicKey.export({{type: 'spki', format: 'pem'}})]))"
    );
    let output = Command::new("node").args(["-e", &script]).output().unwrap();
    let keys: [String; 2] = serde_json::from_slice(&output.stdout).unwrap();
    let [private, public] = keys;
    (private, public)
}

fn verified(folder: &std::path::Path, questions: &[Value]) -> Vec<Value> {
    let mut child = Command::new("node")
        .arg("signing/verify.mjs")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = json!(questions).to_string();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answers.len(), questions.len());
    answers
}

/// What a page's configurations stand for here.
fn filled(text: &str, tokens: &StubSubgraph) -> String {
    let text = text
        .replace(
            "https://login.example.com/oauth2/token",
            &format!("{}token", tokens.url()),
        )
        .replace("${env.SIGNING_KEY_FILE}", &format!("\"{ED25519}\""));
    let mut parts = text.split("${env.");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let (_, rest) = part.split_once('}').unwrap();
        out.push_str("s3cret-of-the-page");
        out.push_str(rest);
    }
    out
}

/// The page's first configuration takes keys from the environment, which is one of a process: so the test is one.
#[test]
fn the_configurations_of_the_page_start_and_prove_who_asks() {
    let (name, key) = ("AWS_ACCESS_KEY_ID", "AKIDOFTHEPAGE");
    if std::env::var(name).as_deref() == Ok(key) {
        the_configurations_of_the_page();
    } else {
        let this =
            "subgraph_authentication::the_configurations_of_the_page_start_and_prove_who_asks";
        let output = Command::new(std::env::current_exe().unwrap())
            .args([this, "--exact"])
            .env(name, key)
            .env("AWS_SECRET_ACCESS_KEY", "s3cret-of-the-page")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert!(text.contains("1 passed"), "{text}");
    }
}

fn the_configurations_of_the_page() {
    let page = include_str!("../../../../docs/subgraph-authentication.md");
    let blocks: Vec<&str> = page
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(blocks.len(), 5);
    let mut proofs = Vec::new();
    for block in blocks {
        let (subgraph, tokens) = (subgraph(), tokens());
        let yaml = format!(
            "override_subgraph_url: {{ accounts: '{}' }}\n{}",
            subgraph.url(),
            filled(block, &tokens)
        );
        let graph = Graph::with(&yaml);
        let answer = post(graph.address(), QUERY);
        assert_eq!(answer.codes(), Vec::<String>::new(), "{block}");
        let came = last(&subgraph);
        let scheme = came.header("authorization").split(' ').next().unwrap();
        proofs.push(format!(
            "{scheme} {} {}",
            came.headers.contains_key("signature"),
            came.body.contains("hmac-signature")
        ));
    }
    assert_eq!(
        proofs,
        [
            "AWS4-HMAC-SHA256 false false",
            "AWS4-HMAC-SHA256 false false",
            " true false",
            " false true",
            "Bearer false false"
        ]
    );
}
