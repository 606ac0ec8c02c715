//! Commands that serve: addresses, answers, signals.

use std::time::{Duration, Instant};

use ogive_testbase::subgraph::ManualSubgraph;

use crate::process::{Running, address, answer, ask, demo, file};

const QUERY: &str = r#"{"query":"{ me { name } topProducts(first: 1) { name inStock } }"}"#;
const ANSWER: &str = r#"{"data":{"me":{"name":"Ida Lindqvist"},"topProducts":[{"name":"Ridge 30 backpack","inStock":true}]}}"#;

#[test]
fn demo_serves_until_it_is_told_to_stop() {
    let mut demo = Running::start(&["demo", "--listen", "127.0.0.1:0"]);
    let gateway = address(&demo.printed("GraphQL "));
    assert_eq!(
        answer(ask(&gateway, "POST", "/graphql", QUERY)),
        (200, ANSWER.into())
    );
    let (status, page) = answer(ask(&gateway, "GET", "/", ""));
    assert_eq!(status, 200);
    assert!(
        page.contains("query Shop"),
        "the page starts with the demo's query"
    );
    let paste = demo.printed("curl ");
    assert!(paste.contains(&gateway), "{paste}");
    demo.signal("INT");
    assert_eq!(demo.ended().0, Some(0));
}

#[test]
fn serve_and_mock_work_together() {
    let mut mock = Running::start(&[
        "mock",
        "--config",
        &demo("mock.yaml"),
        "--listen",
        "127.0.0.1:0",
    ]);
    let subgraphs = address(&mock.printed("accounts "));
    let config: String = ["accounts", "inventory", "products", "reviews"]
        .iter()
        .map(|name| format!("  {name}: http://{subgraphs}/graphql/{name}\n"))
        .collect();
    let config = file(
        "serve.yaml",
        format!(
            "listen: 127.0.0.1:0\nsupergraph: {{ path: '{}' }}\noverride_subgraph_url:\n{config}",
            demo("supergraph.graphql")
        ),
    );
    let mut serve = Running::start(&["serve", "--config", &config]);
    let gateway = address(&serve.logged("serving http://"));
    assert_eq!(
        answer(ask(&gateway, "POST", "/graphql", QUERY)),
        (200, ANSWER.into())
    );
    serve.signal("TERM");
    serve.logged("SIGTERM: draining");
    let (code, rest) = serve.ended();
    assert_eq!(code, Some(0), "{rest}");
    assert!(rest.contains("stopped"), "{rest}");
}

#[test]
fn sigterm_lets_a_request_in_flight_finish() {
    // The test plays the subgraph, so it decides when the answer comes.
    let accounts = ManualSubgraph::start();
    let config = file(
        "drain.yaml",
        format!(
            "listen: 127.0.0.1:0\nhttp: {{ connection_shutdown_timeout: 10m }}\n\
             override_subgraph_url: {{ accounts: '{}' }}\n",
            accounts.url()
        ),
    );
    let mut serve = Running::start(&["serve", "-s", &demo("supergraph.graphql"), "-c", &config]);
    let gateway = address(&serve.logged("serving http://"));
    let client = ask(
        &gateway,
        "POST",
        "/graphql",
        r#"{"query":"{ me { name } }"}"#,
    );
    let mut upstream = accounts.next();
    serve.signal("TERM");
    serve.logged("draining");
    let body = r#"{"data":{"me":{"name":"Ann"}}}"#;
    upstream.answer(200, "", body);
    assert_eq!(answer(client), (200, body.into()));
    let (code, rest) = serve.ended();
    assert_eq!(code, Some(0), "{rest}");
    assert!(!rest.contains("cut off"), "{rest}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let accounts = ManualSubgraph::start();
    let config = file(
        "impatient.yaml",
        format!(
            "listen: 127.0.0.1:0\nhttp: {{ connection_shutdown_timeout: 10m }}\n\
             override_subgraph_url: {{ accounts: '{}' }}\n",
            accounts.url()
        ),
    );
    let mut serve = Running::start(&["serve", "-s", &demo("supergraph.graphql"), "-c", &config]);
    let gateway = address(&serve.logged("serving http://"));
    let _client = ask(
        &gateway,
        "POST",
        "/graphql",
        r#"{"query":"{ me { name } }"}"#,
    );
    let _upstream = accounts.next();
    let began = Instant::now();
    serve.signal("TERM");
    serve.logged("draining");
    // A second SIGTERM so soon may be a supervisor's, and counts as the same; two seconds later it does not any more.
    serve.signal("TERM");
    serve.signal("INT");
    let line = serve.logged(" again: stopping without draining");
    assert!(
        line.contains("SIGINT again") || began.elapsed() >= Duration::from_secs(2),
        "{line}"
    );
    serve.ended();
}

/// What clients may not see, operators do: what happens again and again in one answer on ten lines at most.
#[test]
fn errors_kept_from_clients_are_logged() {
    let accounts = ManualSubgraph::start();
    let config = file(
        "masked.yaml",
        format!(
            "listen: 127.0.0.1:0\noverride_subgraph_url: {{ accounts: '{}' }}\n",
            accounts.url()
        ),
    );
    let mut serve = Running::start(&["serve", "-s", &demo("supergraph.graphql"), "-c", &config]);
    let gateway = address(&serve.logged("serving http://"));
    let query = r#"{"query":"{ me { name } }"}"#;
    let client = ask(&gateway, "POST", "/graphql", query);
    let mut upstream = accounts.next();
    let errors: Vec<String> = (0..12)
        .map(|n| {
            format!(
                r#"{{"message":"no\nrow {n}","path":["me","name"],"extensions":{{"code":"GONE"}}}}"#
            )
        })
        .collect();
    let body = format!(
        r#"{{"data":{{"me":null}},"errors":[{}]}}"#,
        errors.join(",")
    );
    upstream.answer(200, "", body);
    let (status, text) = answer(client);
    assert!(status == 200 && text.contains("SUBREQUEST_GRAPHQL_ERROR"));
    assert!(!text.contains("row") && !text.contains("GONE"), "{text}");
    for n in 0..10 {
        let line = serve.logged("a subgraph reported an error");
        let said = format!(r#""no row {n}""#);
        for part in ["accounts", "GONE", "me.name", &said] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }
    serve.signal("TERM");
    let (code, rest) = serve.ended();
    assert_eq!(code, Some(0));
    assert!(!rest.contains("row"), "{rest}");
}

#[test]
fn notes_about_the_configuration_are_logged() {
    let config = file(
        "notes.yaml",
        "listen: 127.0.0.1:0\noverride_subgraph_url: { acounts: 'http://localhost:1/', reviews: 'unix:///run/reviews.sock?x=1' }\n",
    );
    let mut serve = Running::start(&["serve", "-s", &demo("supergraph.graphql"), "-c", &config]);
    serve.logged("mentions the subgraph `acounts`");
    let note = serve.logged("the subgraph `reviews` cannot be asked");
    assert!(note.contains("override_subgraph_url.reviews"), "{note}");
    serve.logged("serving http://");
    serve.signal("TERM");
    assert_eq!(serve.ended().0, Some(0));
}

#[test]
fn a_start_may_need_the_keys_of_tokens() {
    let config = |when_missing: &str| {
        let text = format!(
            "listen: 127.0.0.1:0\nsupergraph: {{ path: '{}' }}\n\
             authentication: {{ router: {{ jwt: {{ last_known_good: '', when_missing: {when_missing}, \
             jwks: [{{ url: 'http://127.0.0.1:1/jwks', audiences: [us] }}] }} }} }}\n",
            demo("supergraph.graphql")
        );
        file(&format!("keys-{when_missing}.yaml"), text)
    };
    let fails = Running::start(&["serve", "--config", &config("fail")]);
    let (code, said) = fails.ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("there is no key set from `http://127.0.0.1:1/jwks`"),
        "{said}"
    );
    // Else it serves whoever has no token.
    let mut serves = Running::start(&["serve", "--config", &config("refuse_tokens")]);
    let gateway = address(&serves.logged("serving http://"));
    let query = r#"{"query":"{ __typename }"}"#;
    assert_eq!(answer(ask(&gateway, "POST", "/graphql", query)).0, 200);
}

#[test]
fn policies_are_explained() {
    let keys = file(
        "explain-policies-jwks.json",
        r#"{"keys":[{"kty":"oct","kid":"s","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}"#,
    );
    let config = file(
        "explain-policies.yaml",
        format!(
            "authentication: {{ router: {{ jwt: {{ jwks: [{{ url: 'file://{keys}' }}] }} }} }}\n\
             authorization: {{ directives: enforce, policies: {{ rules: {{ paid: {{ eq: [{{ jwt_claim: sub }}, ida] }} }} }} }}\n"
        ),
    );
    let link = "  @link(url: \"https://specs.apollo.dev/join/v0.3\", for: EXECUTION)";
    let policy = "\n  @link(url: \"https://specs.apollo.dev/policy/v0.1\", for: SECURITY)";
    let city = "  city: String @join__field(graph: ACCOUNTS)";
    let directive =
        "directive @policy(policies: [[String!]!]!) on FIELD_DEFINITION | OBJECT\ndirective @link(";
    let sdl = std::fs::read_to_string(demo("supergraph.graphql")).unwrap();
    let sdl = sdl
        .replace(link, &format!("{link}{policy}"))
        .replace("directive @link(", directive)
        .replace(
            city,
            &format!("{city} @policy(policies: [[\"paid\"], [\"free\"]])"),
        );
    let schema = file("explain-policies.graphql", &sdl);
    let query = file("explain-policies-query.graphql", "{ me { city } }");
    let token = include_str!("token.txt").trim();
    let arguments = [
        "explain", "-s", &schema, "-c", &config, "--token", token, &query,
    ];
    let (code, out, err) = crate::process::run(&arguments);
    assert_eq!(code, Some(0), "{err}");
    for line in [
        "policy paid: holds, decided by `authorization.policies.rules`",
        "policy free: does not hold, nobody decides it",
        "restriction policies paid or free: met",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
}

#[test]
fn a_token_is_explained() {
    let keys = file(
        "explain-jwks.json",
        r#"{"keys":[{"kty":"oct","kid":"s","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}"#,
    );
    let config = file(
        "explain.yaml",
        format!(
            "authentication: {{ router: {{ jwt: {{ jwks: [{{ url: 'file://{keys}' }}] }} }} }}"
        ),
    );
    // HS256 with 32 zeros: {"sub":"ida","scope":"a b","exp":9999999999}
    let good = include_str!("token.txt").trim();
    let explained = |token: &str| {
        let schema = demo("supergraph.graphql");
        let query = file("explain.graphql", "{ me { name } }");
        let arguments = [
            "explain", "-s", &schema, "-c", &config, "--token", token, &query,
        ];
        let (code, out, _) = crate::process::run(&arguments);
        (code, out)
    };
    let (code, out) = explained(good);
    assert_eq!(code, Some(0), "{out}");
    for line in [
        "proved by key set 0, key s, HS256",
        "scopes: a b",
        "claim sub: \"ida\"",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    // Without an operation only the token is judged.
    let alone = ["explain", "--config", &config, "--token", good];
    let (code, out, err) = crate::process::run(&alone);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("claim sub: \"ida\""), "{out}");
    // What the gateway would refuse is a failure, with the code that clients see.
    let (code, out) = explained(&good.replace('.', ".x"));
    assert!(
        out.contains("refused: ") && out.contains("(INVALID_TOKEN)"),
        "{out}"
    );
    assert!(out.contains("HTTP 401 Unauthorized\n"), "{out}");
    assert_eq!(code, Some(1));
    // A token in a header is one like that of the argument.
    let schema = demo("supergraph.graphql");
    let query = file("explain-header.graphql", "{ me { name } }");
    let header = format!("authorization: Bearer {good}");
    let arguments = [
        "explain", "-s", &schema, "-c", &config, "-H", &header, &query,
    ];
    let (code, out, err) = crate::process::run(&arguments);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("proved by key set 0, key s, HS256"), "{out}");
}

/// What is wrong with a token is told beside what is configured; nobody has to decode it by hand.
#[test]
fn a_refused_token_is_shown_beside_what_is_configured() {
    let keys = file(
        "explain-other-jwks.json",
        r#"{"keys":[{"kty":"oct","kid":"s","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}"#,
    );
    let set = format!("url: 'file://{keys}', issuers: [us], audiences: [a, b]");
    let config = file(
        "explain-other.yaml",
        format!("authentication: {{ router: {{ jwt: {{ jwks: [{{ {set} }}] }} }} }}"),
    );
    let token = include_str!("token.txt").trim();
    let (code, out, err) = crate::process::run(&["explain", "-c", &config, "--token", token]);
    assert_eq!(code, Some(1), "{err}");
    for line in [
        "refused: the token is of an unknown issuer (UNKNOWN_ISSUER)\n",
        "the token says: ",
        "exp 9999999999 (in ",
        "key set 0 takes: iss us; aud a, b; exp and 5 s of clock skew",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
}

/// Configuration and supergraph are found as `ogive serve` finds them.
#[test]
fn what_would_be_served_is_what_is_explained() {
    let folder = crate::process::folder().join("found");
    std::fs::create_dir_all(&folder).unwrap();
    let query = file("found.graphql", "{ topProducts(first: 3) { name } }");
    let yaml = format!(
        "supergraph: {{ path: '{}' }}\n\
         query_planning: {{ profile: fewest-requests }}\n\
         demand_control: {{ enabled: true, mode: enforce, strategy: {{ static_estimated: {{ list_size: 7, max: 2 }} }} }}\n",
        demo("supergraph.graphql")
    );
    std::fs::write(folder.join("ogive.yaml"), yaml).unwrap();
    let config = folder.join("ogive.yaml").to_string_lossy().into_owned();
    let here = |arguments: &[&str]| {
        let output = crate::process::ogive(arguments)
            .current_dir(&folder)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    for named in [&[][..], &["--config", &config]] {
        let of = |command: &[&'static str]| [command, &[&query], named].concat();
        let (code, out, err) = here(&of(&["explain"]));
        assert_eq!(code, Some(1), "{err}");
        assert!(
            out.contains("COST_ESTIMATED_TOO_EXPENSIVE") && out.contains(": refused"),
            "{out}"
        );
        let (code, out, err) = here(&of(&["plan"]));
        assert_eq!(code, Some(0), "{err}");
        assert!(out.starts_with("query: "), "{out}");
        let (code, _, err) = here(&of(&["cost"]));
        assert_eq!(code, Some(0), "{err}");
    }
    // An argument wins, and what is missing is said.
    let (code, _, err) = here(&["plan", "-s", "nowhere.graphql", &query]);
    assert!(
        code == Some(1) && err.contains("`nowhere.graphql`"),
        "{err}"
    );
    let (code, _, err) = crate::process::run(&["explain", &query]);
    assert!(
        code == Some(1) && err.contains("error[NO_SUPERGRAPH]"),
        "{err}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

/// What the configuration names has to be there, or nothing is served: with a code, and the same as is told by `validate`.
#[test]
fn a_file_that_is_missing_keeps_the_start_from_happening() {
    let nowhere = crate::process::folder().join("nowhere");
    let nowhere = nowhere.display();
    let sections = [
        (
            "authentication.router.jwt.jwks.0.url",
            format!(
                "authentication: {{ router: {{ jwt: {{ last_known_good: '', jwks: [{{ url: 'file://{nowhere}.json', audiences: [us] }}] }} }} }}"
            ),
        ),
        (
            "authentication.router.api_keys",
            format!("authentication: {{ router: {{ api_keys: {{ file: '{nowhere}.json' }} }} }}"),
        ),
        (
            "persisted_queries",
            format!("persisted_queries: {{ enabled: true, local_manifests: ['{nowhere}.json'] }}"),
        ),
        (
            "tls.supergraph",
            format!(
                "tls: {{ supergraph: {{ certificate_chain: '{nowhere}.pem', key: '{nowhere}.key' }} }}"
            ),
        ),
        (
            "tls.subgraph",
            format!(
                "tls: {{ subgraph: {{ all: {{ certificate_authorities: '{nowhere}.pem' }} }} }}"
            ),
        ),
        (
            "authentication.subgraph.all",
            format!(
                "authentication: {{ subgraph: {{ all: {{ message_signature: {{ key: '{nowhere}.pem', key_id: a, \
                 algorithm: ed25519, components: ['@method'] }} }} }} }}"
            ),
        ),
        ("rhai", format!("rhai: {{ scripts: '{nowhere}' }}")),
    ];
    for (key, section) in sections {
        let text = format!(
            "listen: 127.0.0.1:0\nsupergraph: {{ path: '{}' }}\n{section}\n",
            demo("supergraph.graphql")
        );
        let config = file("missing.yaml", text);
        let (code, _, said) = crate::process::run(&["serve", "--config", &config]);
        assert_eq!(code, Some(1), "{key}: {said}");
        assert!(
            said.contains("error[CONFIG_UNUSABLE]: ") && said.contains("nowhere"),
            "{key}: {said}"
        );
        let (code, _, said) = crate::process::run(&["config", "validate", &config]);
        assert_eq!(code, Some(1), "{key}: {said}");
        assert!(
            said.contains("error[CONFIG_UNUSABLE]: ") && said.contains("nowhere"),
            "{key}: {said}"
        );
    }
}
