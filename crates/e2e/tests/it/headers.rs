//! Which client headers subgraphs see.

use crate::{
    authorization::{ENFORCE, RESTRICTED},
    graph::{Graph, demo_file},
    http_client::{Answer, post, post_with, send},
    resilience::{Scripted, Step},
};

const RULES: &str = r#"
headers:
  all:
    request:
      - propagate: { named: authorization }
      - propagate: { matching: "^x-tenant-" }
      - insert: { name: x-from, value: gateway }
      - propagate: { named: connection }
  subgraphs:
    products:
      request:
        - propagate: { named: x-user, rename: x-account, default: nobody }
        - remove: { named: x-tenant-b }
"#;

fn record(graph: &Graph) {
    for name in ["accounts", "inventory", "products", "reviews"] {
        graph
            .service
            .configure(name, |settings| settings.record = true);
    }
}

#[test]
fn subgraphs_are_told_what_a_client_is_called() {
    let graph = Graph::with(
        "headers: { all: { request: [{ insert: { name: x-client, from: { client_name: true }, default: none } },\n\
         { insert: { name: x-version, from_context: 'apollo::telemetry::client_version' } }] } }\n\
         telemetry: { clients: { name_headers: [x-app, graphql-client-name] } }\n",
    );
    record(&graph);
    let named = [("graphql-client-name", "web"), ("x-client", "forged")];
    let both = [
        ("graphql-client-name", "web"),
        ("x-app", "shop"),
        ("graphql-client-version", "3"),
    ];
    for (sent, expected) in [
        (&named[..], (Some("web"), None)),
        (&both, (Some("shop"), Some("3"))),
        (&[], (Some("none"), None)),
    ] {
        post_with(graph.address(), "{ me { name } }", sent);
        let recorded = graph.service.recorded();
        let headers = &recorded.last().unwrap().headers;
        let get = |name: &str| {
            let found = headers.iter().find(|(n, _)| n == name);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!((get("x-client"), get("x-version")), expected);
    }
}

#[test]
fn rules_hold_by_condition_and_write_texts_of_what_is_known() {
    let graph = Graph::with(
        r#"
headers:
  all:
    request:
      - insert: { name: x-app, template: "{client_name}/{client_version}", default: unknown }
      - insert: { name: x-trace, template: "{{{operation_kind}}} {request_header: x-tenant}" }
      - insert: { name: x-debug, value: "on" }
        when: { eq: [{ request_header: x-env }, test] }
      - propagate: { named: x-secret }
        when: { not: { exists: { request_header: x-public } } }
"#,
    );
    record(&graph);
    let named = [
        ("apollographql-client-name", "web"),
        ("apollographql-client-version", "3"),
    ];
    for (sent, expected) in [
        (
            &[("x-env", "test"), ("x-tenant", "a"), ("x-secret", "s")][..],
            [Some("unknown"), Some("{query} a"), Some("on"), Some("s")],
        ),
        (&named, [Some("web/3"), None, None, None]),
        // What a rule may write is never copied, and a condition holds for nobody by accident.
        (
            &[
                ("x-app", "forged"),
                ("x-trace", "forged"),
                ("x-env", "tests"),
                ("x-public", ""),
                ("x-secret", "s"),
            ],
            [Some("unknown"), None, None, None],
        ),
    ] {
        post_with(graph.address(), "{ me { name } }", sent);
        let recorded = graph.service.recorded();
        let headers = &recorded.last().unwrap().headers;
        let get = |name: &str| {
            let found = headers.iter().find(|(n, _)| n == name);
            found.map(|(_, value)| value.as_str())
        };
        let found = ["x-app", "x-trace", "x-debug", "x-secret"].map(get);
        assert_eq!(found, expected, "{sent:?}");
    }
}

#[test]
fn what_only_some_callers_are_given_nobody_says_of_themselves() {
    let graph = Graph::with(
        r#"
authorization: { claims: { header: x-claims, trusted: [127.0.0.1] } }
headers:
  all:
    request:
      - propagate: { matching: "^x-" }
      - propagate: { named: x-role }
      - insert: { name: x-role, value: admin }
        when: { eq: [{ jwt_claim: role }, admin] }
      - insert: { name: x-plan, value: free }
      - insert: { name: x-plan, value: gold }
        when: { eq: [{ jwt_claim: role }, admin] }
      - insert: { name: x-env, value: canary }
        when: { eq: [{ request_header: x-canary }, "1"] }
"#,
    );
    record(&graph);
    let admin = ("x-claims", r#"{"claims":{"role":"admin"}}"#);
    let (role, env) = (("x-role", "admin"), ("x-env", "mine"));
    for (sent, expected) in [
        (&[role, env][..], [None, Some("mine"), Some("free")]),
        (
            &[("x_role", "admin"), ("x-canary", "1"), env],
            [None, Some("canary"), Some("free")],
        ),
        (
            &[admin, ("x-role", "forged"), ("x-plan", "mine")],
            [Some("admin"), None, Some("gold")],
        ),
    ] {
        post_with(graph.address(), "{ me { name } }", sent);
        let recorded = graph.service.recorded();
        let headers = &recorded.last().unwrap().headers;
        let all = |name: &str| {
            let found = headers.iter().filter(|(n, _)| n.replace('_', "-") == name);
            found.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
        };
        let expected = expected.map(Vec::from_iter);
        assert_eq!(["x-role", "x-env", "x-plan"].map(all), expected, "{sent:?}");
    }
}

#[test]
fn rules_decide_per_subgraph_what_travels() {
    let graph = Graph::with(RULES);
    record(&graph);
    let client = [
        ("authorization", "Bearer t"),
        ("x-tenant-a", "1"),
        ("x-tenant-b", "2"),
        ("cookie", "session=secret"),
        ("connection", "keep-alive, x-tenant-c"),
        ("x-tenant-c", "3"),
    ];
    let answer = post_with(graph.address(), &demo_file("query.graphql"), &client);
    assert_eq!(answer.codes(), Vec::<String>::new());
    let recorded = graph.service.recorded();
    assert_eq!(recorded.len(), 6);
    for request in recorded {
        let get = |name: &str| {
            let found = request.headers.iter().find(|(n, _)| n == name);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(
            get("authorization"),
            Some("Bearer t"),
            "{}",
            request.subgraph
        );
        assert_eq!(get("x-tenant-a"), Some("1"));
        assert_eq!(get("x-from"), Some("gateway"));
        assert_eq!(get("cookie"), None, "nothing travels without a rule");
        assert_eq!(get("x-tenant-c"), None, "named by `connection`: hop-by-hop");
        assert_eq!(get("connection"), None);
        assert_eq!(get("content-type"), Some("application/json"));
        let products = &*request.subgraph == "products";
        assert_eq!(get("x-account"), products.then_some("nobody"));
        assert_eq!(get("x-tenant-b"), (!products).then_some("2"));
    }
}

#[test]
fn without_rules_nothing_of_the_client_travels() {
    let graph = Graph::start();
    record(&graph);
    post_with(
        graph.address(),
        "{ me { name } }",
        &[("authorization", "Bearer t"), ("x-a", "1")],
    );
    let recorded = graph.service.recorded();
    let mut names: Vec<&str> = recorded[0]
        .headers
        .iter()
        .map(|(n, _)| n.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "accept",
            "content-length",
            "content-type",
            "host",
            "user-agent"
        ]
    );
}

/// The answer of a subgraph that says a lot about itself.
const TALKATIVE: Step = Step::Answer(
    200,
    "set-cookie: a=1\r\nset-cookie: b=2; HttpOnly\r\ncache-control: private, max-age=60\r\n\
     x-trace: t\r\nx-internal-host: db7\r\nserver: secret/1.0\r\n",
    r#"{"data":{"me":{"name":"Zoe"}}}"#,
);

const RESPONSE_RULES: &str = r#"
headers:
  all:
    response:
      - propagate: { named: set-cookie }
      - propagate: { named: cache-control }
  subgraphs:
    accounts:
      response:
        - propagate: { matching: "^x-" }
        - remove: { matching: "^x-internal" }
        - insert: { name: x-from, value: accounts }
"#;

fn values<'a>(answer: &'a Answer, name: &str) -> Vec<&'a str> {
    let all = answer.headers.iter().filter(|(n, _)| n == name);
    all.map(|(_, value)| value.as_str()).collect()
}

#[test]
fn rules_decide_what_of_an_answer_reaches_the_client() {
    let graph = Scripted::start(&[TALKATIVE]).graph(RESPONSE_RULES);
    let answer = post(graph.address(), "{ me { name } }");
    assert_eq!(values(&answer, "set-cookie"), ["a=1", "b=2; HttpOnly"]);
    assert_eq!(values(&answer, "cache-control"), ["private, max-age=60"]);
    assert_eq!(values(&answer, "x-trace"), ["t"]);
    assert_eq!(values(&answer, "x-from"), ["accounts"]);
    assert_eq!(values(&answer, "x-internal-host"), Vec::<&str>::new());
    assert_eq!(values(&answer, "server"), Vec::<&str>::new());
    // The products say nothing about being stored, so the whole may not be.
    let answer = post(
        graph.address(),
        "{ me { name } topProducts(first: 1) { name } }",
    );
    assert_eq!(answer.codes(), Vec::<String>::new());
    assert_eq!(values(&answer, "cache-control"), ["no-store"]);
    assert_eq!(values(&answer, "set-cookie"), ["a=1", "b=2; HttpOnly"]);
}

#[test]
fn rules_towards_clients_hold_by_condition_and_write_texts_of_what_is_known() {
    let graph = Graph::with(
        r#"
authorization: { claims: { header: x-claims, trusted: [127.0.0.1] } }
headers:
  all:
    response:
      - insert: { name: x-app, template: "{client_name}/{operation_kind}", default: unknown }
      - insert: { name: x-tenant, from: { jwt_claim: org.tenant } }
      - insert: { name: x-debug, value: "on" }
        when: { eq: [{ request_header: x-env }, test] }
      - insert: { name: x-role, value: member }
      - remove: { named: x-role }
        when: { not: { exists: { jwt_claim: sub } } }
      - insert: { name: cache-control, value: "public, max-age=60" }
"#,
    );
    let known = (
        "x-claims",
        r#"{"claims":{"sub":"ida","org":{"tenant":"a"}}}"#,
    );
    let (web, test) = (("apollographql-client-name", "web"), ("x-env", "test"));
    for (sent, expected) in [
        (
            &[web, test][..],
            [Some("web/query"), None, Some("on"), None],
        ),
        (&[known], [Some("unknown"), Some("a"), None, Some("member")]),
        (&[], [Some("unknown"), None, None, None]),
    ] {
        let answer = post_with(graph.address(), "{ me { name } }", sent);
        let found = ["x-app", "x-tenant", "x-debug", "x-role"].map(|name| answer.header(name));
        assert_eq!(found, expected, "{sent:?}");
        // It depends on the client, and on who asks.
        let cached = answer.header("cache-control").unwrap();
        assert_eq!(cached, "private, max-age=60", "{sent:?}");
        let vary = values(&answer, "vary").join(", ");
        assert!(vary.contains("x-env"), "{vary}");
    }
}

/// Equal requests at the same time, of clients that are told something else: none gets what is another one's.
#[test]
fn what_clients_are_told_of_themselves_is_shared_with_nobody() {
    let graph = Graph::with(
        r#"
headers:
  all:
    response:
      - insert: { name: x-echo, template: "{request_header: x-who}" }
      - insert: { name: x-staff, value: "1" }
        when: { eq: [{ request_header: x-who }, "0"] }
"#,
    );
    let graph = &graph;
    std::thread::scope(|scope| {
        for client in 0..8 {
            scope.spawn(move || {
                let who = client.to_string();
                for _ in 0..20 {
                    let sent = [("x-who", who.as_str())];
                    let answer = post_with(graph.address(), "{ me { name } }", &sent);
                    assert_eq!(answer.header("x-echo"), Some(who.as_str()));
                    assert_eq!(answer.header("x-staff").is_some(), client == 0);
                }
            });
        }
    });
}

#[test]
fn without_rules_nothing_of_a_subgraph_reaches_the_client() {
    let graph = Scripted::start(&[TALKATIVE]).graph("");
    let answer = post(graph.address(), "{ me { name } }");
    let names: Vec<&str> = answer.headers.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["content-type", "content-length", "date"]);
}

#[test]
fn a_batch_keeps_every_cookie_and_is_never_stored() {
    let graph = Scripted::start(&[TALKATIVE])
        .graph(&format!("batching: {{ enabled: true }}\n{RESPONSE_RULES}"));
    let body = r#"[{"query":"{ me { name } }"},{"query":"{ me { name } }"}]"#;
    let json = ("content-type", "application/json");
    let answer = send(
        graph.address(),
        "POST",
        "/graphql",
        &[json],
        body.as_bytes(),
    );
    assert_eq!(answer.status, 200);
    assert_eq!(values(&answer, "cache-control"), ["no-store"]);
    assert_eq!(values(&answer, "set-cookie").len(), 4);
    assert_eq!(values(&answer, "content-type").len(), 1);
}

/// Found by a review: `Connection: x-from` took away what the operator inserts.
#[test]
fn a_clients_connection_takes_no_header_of_the_operator_away() {
    let graph = Graph::with(RULES);
    record(&graph);
    let client = [
        ("authorization", "Bearer t"),
        ("connection", "keep-alive, X-From, x-user"),
        ("connection", "Authorization, x-account, te, x-tenant-a"),
        ("x-user", "ann"),
        ("x-tenant-a", "1"),
        ("te", "trailers"),
    ];
    let answer = post_with(
        graph.address(),
        "{ topProducts(first: 1) { name } }",
        &client,
    );
    assert_eq!(answer.codes(), Vec::<String>::new());
    let recorded = graph.service.recorded();
    let get = |name: &str| {
        let found = recorded[0].headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    };
    assert_eq!(get("x-from"), Some("gateway"));
    assert_eq!(get("x-account"), Some("nobody"));
    assert_eq!(get("authorization"), Some("Bearer t"));
    assert_eq!(
        (get("x-tenant-a"), get("te"), get("connection")),
        (None, None, None)
    );
}

const PUBLIC: Step = Step::Answer(
    200,
    "cache-control: public, max-age=60, s-maxage=90\r\nexpires: Thu, 01 Jan 2099 00:00:00 GMT\r\n\
     vary: x-theirs\r\n",
    r#"{"data":{"me":{"name":"Zoe"}}}"#,
);

const CITY: Step = Step::Answer(
    200,
    "cache-control: public, max-age=60\r\n",
    r#"{"data":{"me":{"city":"Oslo"}}}"#,
);

/// Found by a review: `public` stood on answers that depend on who asks.
#[test]
fn what_depends_on_the_client_is_public_for_nobody() {
    let request = "request: [{ propagate: { named: authorization } }, { propagate: { matching: '^x-tenant' } }]";
    let by_rules = [
        "propagate: { named: cache-control }",
        "propagate: { named: cache-control, algorithm: last }",
        "propagate: { matching: '.' }",
        "insert: { name: cache-control, value: 'public, max-age=60' }",
        "propagate: { named: x-none, rename: cache-control, default: 'public, max-age=60' }",
    ];
    for rule in by_rules {
        let yaml = format!("headers: {{ all: {{ {request}, response: [{{ {rule} }}] }} }}\n");
        let graph = Scripted::start(&[PUBLIC]).graph(&yaml);
        let answer = post_with(graph.address(), "{ me { name } }", &[("x-tenant-a", "1")]);
        assert_eq!(
            values(&answer, "cache-control"),
            ["private, max-age=60"],
            "{rule}"
        );
        let varies = values(&answer, "vary");
        for name in ["authorization", "x-tenant-a", "accept"] {
            assert!(varies.contains(&name), "{rule}: {varies:?}");
        }
        assert_eq!(values(&answer, "expires"), Vec::<&str>::new(), "{rule}");
    }
    let yaml = "headers: { all: { response: [{ propagate: { named: cache-control } }] } }\n";
    // By claims, although no subgraph is sent anything of the client.
    let enforced = format!("{ENFORCE}{yaml}");
    let graph = Scripted::start(&[CITY]).changed(&enforced, RESTRICTED);
    let claims = [("x-claims", r#"{"scopes":["admin"]}"#)];
    let answer = post_with(graph.address(), "{ me { city } }", &claims);
    assert_eq!(answer.text(), r#"{"data":{"me":{"city":"Oslo"}}}"#);
    assert_eq!(values(&answer, "cache-control"), ["private, max-age=60"]);
    let graph = Scripted::start(&[PUBLIC]).graph(yaml);
    let answer = post_with(
        graph.address(),
        "{ me { name } }",
        &[("authorization", "Bearer t")],
    );
    let everybodys = ["public, max-age=60, s-maxage=90"];
    assert_eq!(values(&answer, "cache-control"), everybodys);
    assert_eq!(values(&answer, "vary"), ["accept"]);
}

/// Found by a review: an answer that sets a cookie, and says that it is public, was public with the cookie taken away.
#[test]
fn what_a_subgraph_answers_for_one_client_is_public_for_nobody() {
    const NAME: &str = r#"{"data":{"me":{"name":"Zoe"}}}"#;
    let personal = [
        "set-cookie: session=1\r\n",
        "vary: *\r\n",
        "www-authenticate: Basic\r\n",
        "cache-control: private\r\n",
    ];
    let rules = [
        "propagate: { named: cache-control }",
        "propagate: { named: cache-control, algorithm: first }",
        "insert: { name: cache-control, value: 'public, max-age=60' }",
    ];
    for line in personal {
        for rule in rules {
            let lines = format!("cache-control: public, max-age=60\r\n{line}");
            let yaml = format!("headers: {{ all: {{ response: [{{ {rule} }}] }} }}\n");
            let step = Step::Answer(200, String::leak(lines), NAME);
            let graph = Scripted::start(&[step]).graph(&yaml);
            let answer = post(graph.address(), "{ me { name } }");
            assert_eq!(answer.text(), NAME);
            let told = values(&answer, "cache-control");
            assert_eq!(told.len(), 1, "{line} {rule}: {told:?}");
            let is_private = told[0].starts_with("private") && !told[0].contains("public");
            assert!(is_private, "{line} {rule}: {told:?}");
        }
    }
}

/// Some caches keep whatever nothing is said about. That a document is not known is true for a moment only.
#[test]
fn refusals_are_stored_by_nobody() {
    let graph = Graph::start();
    let unknown = "/graphql?extensions=%7B%22persistedQuery%22%3A%7B%22version%22%3A1%2C%22sha256Hash%22%3A%22ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38%22%7D%7D";
    for (method, path) in [
        ("GET", unknown),
        ("GET", "/nowhere"),
        ("DELETE", "/graphql"),
    ] {
        let preflighted = [("apollo-require-preflight", "true")];
        let answer = send(graph.address(), method, path, &preflighted, b"");
        assert_eq!(values(&answer, "cache-control"), ["no-store"], "{path}");
    }
}
