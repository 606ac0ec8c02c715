//! Scripts on real sockets: where they are called, what they may change, and what becomes of a request when they end it, fail,
//! or never end.

use std::path::PathBuf;

use serde_json::json;

use crate::{
    coprocessor::{ME, playing},
    faults::{compare, seen},
    graph::Graph,
    http_client::{Answer, post_with, send},
    identity::Known,
    incremental::{CURRENT, Coming, OF_2022, QUERY, held_back, is_known},
    telemetry::{lines, scratch},
};

/// A folder with one script; gone with the test.
pub(crate) struct Script(PathBuf);

impl Script {
    pub(crate) fn new(text: &str) -> Script {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ogive-e2e-script-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        let script = Script(path);
        script.write(text);
        script
    }
    /// Puts another text in its place.
    pub(crate) fn write(&self, text: &str) {
        std::fs::write(self.0.join("entry.rhai"), text).unwrap();
    }
    pub(crate) fn yaml(&self) -> String {
        format!(
            // A call may have to wait for its turn; what never ends has its operations counted.
            "rhai: {{ scripts: '{}', main: entry.rhai, limits: {{ timeout: 60s }} }}\n",
            self.0.display()
        )
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A graph with a script, and further configuration.
pub(crate) fn with(text: &str, more: &str) -> Graph {
    let script = Script::new(text);
    Graph::with(&format!("{}{more}", script.yaml()))
}

fn ask(graph: &Graph, headers: &[(&str, &str)]) -> Answer {
    post_with(graph.address(), ME, headers)
}

/// A coprocessor ends what a script has changed: the client is told nothing of its own request, or of what was made of it.
#[test]
fn what_a_request_ends_with_has_nothing_of_the_request() {
    let script = r#"
fn change(request) { request.headers["x-internal"] = "secret"; }
fn router_service(service) { service.map_request(|request| { change(request); }); }
fn supergraph_service(service) {
    service.map_request(|request| { change(request); request.context["changed"] = "Changed"; });
}
fn execution_service(service) { service.map_request(|request| { change(request); }); }
"#;
    for stage in ["router", "supergraph", "execution"] {
        let coprocessor = playing(|_| json!({ "control": { "break": 401 } }));
        let graph = with(
            script,
            &format!(
                "coprocessor: {{ url: '{}', timeout: 20s, {stage}: {{ request: {{ headers: true }} }} }}\n",
                coprocessor.url()
            ),
        );
        let answer = ask(&graph, &[("authorization", "Bearer mine")]);
        assert_eq!(answer.status, 401, "{stage}");
        for name in ["x-internal", "authorization", "host"] {
            assert_eq!(answer.header(name), None, "{stage}");
        }
        let length = answer.header("content-length").unwrap();
        assert_eq!(length, answer.text().len().to_string(), "{stage}");
        assert!(
            !answer.text().contains("Changed"),
            "{stage}: {}",
            answer.text()
        );
    }
}

#[test]
fn a_script_is_called_for_each_part_and_has_the_head_with_the_first() {
    let ask = |head: &str| {
        let script = Script::new(&format!(
            "fn supergraph_service(service) {{ service.map_response(|response| {{
                {head}
                response.body.extensions = #{{ next: response.has_next }};
            }}); }}"
        ));
        let (graph, inventory) = held_back(&script.yaml());
        let mut coming = Coming::ask(graph.address(), QUERY, CURRENT);
        let first = coming.until("\"next\":true").to_owned();
        is_known(&mut inventory.next());
        (first, coming.parts())
    };
    let (first, parts) =
        ask("if response.is_primary() { response.headers[\"x-first\"] = \"yes\"; }");
    assert!(first.contains("x-first: yes"), "{first}");
    assert_eq!(parts[1]["extensions"]["next"], false);
    assert!(parts[1].to_string().contains("inStock"));
    // There are none to change any more.
    let (_, parts) = ask("response.headers[\"x-first\"] = \"yes\";");
    let last = parts.last().unwrap();
    assert_eq!((parts.len(), &last["hasNext"]), (2, &false.into()));
    let text = last.to_string();
    assert!(
        text.contains("SCRIPT_FAILED") && !text.contains("inStock"),
        "{text}"
    );
}

#[test]
fn a_script_hides_what_comes_in_later_parts() {
    let hiding = Script::new(
        r#"fn supergraph_service(service) { service.map_response(|response| {
            let parts = response.body.incremental;
            if parts != () {
                for (part, at) in parts { parts[at].data.inStock = (); }
                response.body.incremental = parts;
            }
        }); }"#,
    );
    let setting = Script::new(
        "fn execution_service(service) { service.map_response(|response| { response.body.data = #{}; }); }",
    );
    let last = |script: &Script, accept: &str| {
        let (graph, inventory) = held_back(&script.yaml());
        let mut coming = Coming::ask(graph.address(), QUERY, accept);
        coming.until("\"hasNext\":true");
        is_known(&mut inventory.next());
        coming.parts().pop().unwrap()
    };
    for accept in [CURRENT, OF_2022] {
        let part = last(&hiding, accept);
        for at in 0..2 {
            let data = &part["incremental"][at]["data"];
            assert_eq!(*data, json!({ "inStock": null }), "{part}");
        }
        // A member that no part has ends the answer: it would be malformed.
        let part = last(&setting, accept);
        let text = part.to_string();
        assert!(text.contains("SCRIPT_FAILED"), "{text}");
        assert!(
            part.get("data").is_none() && !text.contains("inStock"),
            "{text}"
        );
    }
}

/// Notes every stage in the context, and in headers where there are some.
const NOTING: &str = r#"
fn note(message, stage) {
    message.context.upsert("stages", |before| if before == () { stage } else { before + " " + stage });
}
fn router_service(service) {
    service.map_request(|request| { note(request, "router"); request.headers["x-in"] = "1"; });
    service.map_response(|response| {
        note(response, "router-out");
        response.headers["x-stages"] = response.context["stages"];
    });
}
fn supergraph_service(service) {
    service.map_request(|request| { note(request, "supergraph"); });
    service.map_response(|response| { note(response, "supergraph-out"); });
}
fn execution_service(service) {
    service.map_request(|request| { note(request, "execution"); });
    service.map_response(|response| { note(response, "execution-out"); });
}
fn subgraph_service(service, subgraph) {
    service.map_request(|request| {
        note(request, subgraph);
        request.subgraph.headers["x-of"] = request.headers["x-in"] + " " + subgraph;
    });
    service.map_response(|response| { note(response, subgraph + "-out"); });
}
"#;

#[test]
fn scripts_stand_at_every_stage_and_share_a_context_with_the_coprocessor() {
    let coprocessor = playing(|told| {
        let stages = told["context"]["entries"]["stages"]
            .as_str()
            .unwrap_or("")
            .to_owned();
        let said = format!("{stages} told");
        json!({ "context": { "entries": { "stages": said } } })
    });
    let more = format!(
        "coprocessor: {{ url: '{}', timeout: 20s, supergraph: {{ request: {{ context: all }}, response: {{ context: all }} }} }}\n",
        coprocessor.url()
    );
    let graph = with(NOTING, &more);
    graph
        .service
        .configure("accounts", |settings| settings.record = true);
    let answer = ask(&graph, &[]);
    assert_eq!((answer.status, answer.codes()), (200, vec![]));
    assert_eq!(
        answer.header("x-stages"),
        Some(
            "router supergraph told execution accounts accounts-out execution-out told supergraph-out router-out"
        )
    );
    let recorded = graph.service.recorded();
    let mut sent = recorded[0].headers.iter();
    assert!(sent.any(|(name, value)| name == "x-of" && value == "1 accounts"));
}

#[test]
fn bodies_are_changed_and_errors_rewritten() {
    let graph = with(
        r#"fn supergraph_service(service) {
            service.map_request(|request| { request.body.query = "{ me { name: id } }"; });
            service.map_response(|response| { response.body.extensions.seen = response.body.data.me.name; });
        }"#,
        "",
    );
    let plain = Graph::with("");
    let expected =
        post_with(plain.address(), "{ me { id } }", &[]).json()["data"]["me"]["id"].clone();
    let answer = ask(&graph, &[]).json();
    assert_eq!(answer["data"]["me"]["name"], expected);
    assert_eq!(answer["extensions"]["seen"], expected);
}

#[test]
fn what_is_thrown_ends_the_request_or_its_fetch() {
    for (service, expected) in [
        ("router", 401),
        ("supergraph", 401),
        ("execution", 401),
        ("subgraph", 200),
    ] {
        for way in ["map_request", "map_response"] {
            let parameters = if service == "subgraph" {
                "service, subgraph"
            } else {
                "service"
            };
            let text = format!(
                "fn {service}_service({parameters}) {{ service.{way}(|message| {{ throw #{{ status: 401, message: \"not you\" }}; }}); }}"
            );
            let graph = with(&text, "include_subgraph_errors: { all: true }\n");
            let answer = ask(&graph, &[]);
            assert_eq!(answer.status, expected, "{service} {way}");
            assert_eq!(answer.codes(), ["SCRIPT_BREAK"], "{service} {way}");
            assert_eq!(answer.json()["errors"][0]["message"], "not you");
        }
    }
}

#[test]
fn what_fails_says_nothing_of_why() {
    for text in [
        "len(1, 2, 3)",
        "throw \"a secret\"",
        "request.headers[\"x-none\"]",
    ] {
        let script = format!(
            "fn supergraph_service(service) {{ service.map_request(|request| {{ {text}; }}); }}"
        );
        let answer = ask(&with(&script, ""), &[]);
        assert_eq!(
            (answer.status, answer.codes()),
            (500, vec!["SCRIPT_FAILED".into()])
        );
        assert!(!answer.text().contains("secret") && !answer.text().contains("i64"));
    }
}

/// What a script does, and what the client gets if it does that at the stage of a client's request, and at a stage of a
/// subgraph.
pub(crate) const SCRIPT_FAULTS: [(&str, &str, &str, &str); 10] = [
    ("never ends", "loop { }", FAILED, FAILED_FETCH),
    ("recurses without end", "deep(0)", FAILED, FAILED_FETCH),
    (
        "takes more and more memory",
        "let a = \"x\"; loop { a += a; }",
        FAILED,
        FAILED_FETCH,
    ),
    (
        "makes a gigabyte at once",
        "blob(1000000000)",
        FAILED,
        FAILED_FETCH,
    ),
    (
        "leaves more than 1 MiB in the context",
        "let a = \"x\"; a.pad(600000, \"y\"); for n in 0..3 { message.context[`${n}`] = a; }",
        FAILED,
        FAILED_FETCH,
    ),
    (
        "calls what is not there",
        "len(1, 2, 3)",
        FAILED,
        FAILED_FETCH,
    ),
    ("throws a text", "throw \"a secret\"", FAILED, FAILED_FETCH),
    (
        "throws a status that is none",
        "throw #{ status: 99, message: \"a secret\" }",
        FAILED,
        FAILED_FETCH,
    ),
    (
        "throws a status that is a text",
        "throw #{ status: \"401\", message: \"a secret\" }",
        FAILED,
        FAILED_FETCH,
    ),
    (
        "throws a status",
        "throw #{ status: 403, message: \"no\" }",
        "403 SCRIPT_BREAK",
        "200 SCRIPT_BREAK",
    ),
];

const FAILED: &str = "500 SCRIPT_FAILED";
const FAILED_FETCH: &str = "200 SCRIPT_FAILED";

#[test]
fn whatever_a_script_does_ends_its_request_or_its_fetch() {
    let mut found = Vec::new();
    for (fault, body, of_request, of_fetch) in SCRIPT_FAULTS {
        for (service, parameters, expected) in [
            ("router", "service", of_request),
            ("supergraph", "service", of_request),
            ("execution", "service", of_request),
            ("subgraph", "service, subgraph", of_fetch),
        ] {
            for way in ["map_request", "map_response"] {
                let text = format!(
                    "fn deep(n) {{ deep(n + 1) }}\nfn {service}_service({parameters}) {{ service.{way}(|message| {{ {body}; }}); }}"
                );
                let more = "include_subgraph_errors: { all: true }\n";
                let answer = ask(&with(&text, more), &[]);
                found.push((
                    format!("{fault} at {service} {way}"),
                    seen(&answer),
                    expected,
                ));
            }
        }
    }
    let found: Vec<_> = found
        .iter()
        .map(|(name, seen, expected)| (name.as_str(), seen.clone(), *expected))
        .collect();
    compare(&found);
}

#[test]
fn an_endless_script_fails_its_own_request_and_nobody_elses() {
    let graph = with(
        r#"fn router_service(service) {
            service.map_request(|request| { if request.headers.contains("x-loop") { loop { } } });
        }"#,
        "",
    );
    for round in 0..3 {
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let graph = &graph;
            let ask = move |at: usize| {
                let looping: &[(&str, &str)] = if at == 0 { &[("x-loop", "1")] } else { &[] };
                ask(graph, looping)
            };
            let running: Vec<_> = (0..4).map(|at| scope.spawn(move || ask(at))).collect();
            running
                .into_iter()
                .map(|running| running.join().unwrap())
                .collect()
        });
        assert_eq!(answers[0].codes(), ["SCRIPT_FAILED"], "{round}");
        for answer in &answers[1..] {
            assert_eq!((answer.status, answer.codes()), (200, vec![]), "{round}");
        }
    }
}

#[test]
fn policies_are_decided_by_scripts_too() {
    const STOCK: &str = "{ topProducts(first: 1) { warehouse { city } } }";
    let script = Script::new(
        r#"fn supergraph_service(service) {
            service.map_request(|request| {
                let key = "apollo::authorization::required_policies";
                let policies = request.context[key];
                if policies != () {
                    let claims = request.context[Router.APOLLO_AUTHENTICATION_JWT_CLAIMS];
                    for name in policies.keys() { policies[name] = claims.plan == "gold"; }
                    request.context[key] = policies;
                }
            });
        }"#,
    );
    let yaml = format!(
        "authorization: {{ directives: enforce }}\n{}",
        script.yaml()
    );
    let known = Known::with("", &yaml);
    for (plan, shows) in [("gold", true), ("tin", false)] {
        let answer = known
            .bear(STOCK, &known.token(json!({ "plan": plan })))
            .json();
        let found = answer["data"]["topProducts"][0]["warehouse"].is_object();
        assert_eq!(found, shows, "{plan}: {answer}");
    }
}

#[test]
fn scripts_are_replaced_under_load_and_bad_ones_change_nothing() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let text = |number: usize| {
        format!(
            "fn router_service(service) {{ service.map_response(|response| {{ response.headers[\"x-script\"] = \"{number}\"; }}); }}"
        )
    };
    let script = Script::new(&text(0));
    let graph = Graph::with(&script.yaml());
    let write = |text: &str| script.write(text);
    /// Ends the load, also when the test fails.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = Over(&is_over);
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let answer = ask(&graph, &[]);
                    assert_eq!((answer.status, answer.codes()), (200, vec![]));
                    assert!(answer.header("x-script").is_some());
                }
            });
        }
        for number in 1..20 {
            write(&text(number));
            assert_eq!(graph.reload(), Ok(()));
            let number = number.to_string();
            assert_eq!(ask(&graph, &[]).header("x-script"), Some(number.as_str()));
            write("fn router_service(service) {");
            assert!(graph.reload().is_err());
            assert_eq!(ask(&graph, &[]).header("x-script"), Some(number.as_str()));
        }
        drop(over);
    });
}

/// A script ends a request with a body of its own that says no code: the log says who ended it.
#[test]
fn the_access_log_says_that_a_script_has_ended_a_request() {
    let path = scratch("break-script.txt");
    let text = r#"fn supergraph_service(service) { service.map_request(|request| {
        throw #{ status: 403, body: #{ errors: [#{ message: "no" }] } };
    }); }"#;
    let more = format!(
        "telemetry: {{ access_log: {{ enabled: true, format: text, path: '{}', fields: [status, code] }} }}\n",
        path.display()
    );
    assert_eq!(ask(&with(text, &more), &[]).status, 403);
    assert_eq!(lines(&path, 1), ["status=403 code=SCRIPT_BREAK"]);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn claims_that_a_script_removes_count_nowhere() {
    const STOCK: &str = "{ topProducts(first: 1) { warehouse { city } } }";
    let shows = |text: &str| {
        let script = Script::new(&format!(
            "fn router_service(service) {{ service.map_request(|request| {{ {text} }}); }}"
        ));
        let enforce = "authorization: { directives: enforce, policies: { rules: { stock: { eq: [{ jwt_claim: stock }, yes] } } } }\n";
        let known = Known::with("", &format!("{enforce}{}", script.yaml()));
        let token = known.token(json!({ "stock": "yes" }));
        let answer = known.bear(STOCK, &token).json();
        answer["data"]["topProducts"][0]["warehouse"].is_object()
    };
    let claims = "request.context[Router.APOLLO_AUTHENTICATION_JWT_CLAIMS]";
    assert!(shows(&format!("{claims}.sub.split(\"-\");")));
    assert!(!shows(&format!("{claims} = ();")));
    assert!(!shows(
        "request.context.remove(\"apollo::authentication::jwt_claims\");"
    ));
}

#[test]
fn a_script_sees_the_extensions_of_the_client() {
    let script = r#"fn supergraph_service(service) {
        service.map_request(|request| {
            throw #{ status: 418, message: request.body.extensions.mark };
        });
    }"#;
    let graph = with(script, "");
    let body = json!({ "query": ME, "extensions": { "mark": "mine" } }).to_string();
    let kind = [("content-type", "application/json")];
    let answer = send(graph.address(), "POST", "/graphql", &kind, body.as_bytes());
    assert_eq!(
        (
            answer.status,
            answer.json()["errors"][0]["message"].as_str()
        ),
        (418, Some("mine"))
    );
}

/// Calls that are slow beside calls that are fast: each is answered as its own.
#[test]
fn slow_calls_are_made_again_beside_the_workers_with_all_that_they_were_lent() {
    let script = r#"fn supergraph_service(service) {
        service.map_request(|request| {
            request.context.count = if request.context.count == () { 1 } else { request.context.count + 1 };
            let n = 0;
            if request.headers.contains("x-slow") { while n < 20000 { n += 1; } }
            request.context.n = n;
        });
        service.map_response(|response| {
            response.headers["x-n"] = `${response.context.n} ${response.context.count}`;
        });
    }"#;
    let graph = with(script, "");
    for _ in 0..3 {
        let slow = ask(&graph, &[("x-slow", "1")]);
        assert_eq!(
            (slow.codes(), slow.header("x-n")),
            (vec![], Some("20000 1"))
        );
        let fast = ask(&graph, &[]);
        assert_eq!((fast.codes(), fast.header("x-n")), (vec![], Some("0 1")));
    }
}
