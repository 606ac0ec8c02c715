//! Commands that serve: addresses, answers, signals.

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
            "listen: 127.0.0.1:0\noverride_subgraph_url: {{ accounts: '{}' }}\n",
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
            "listen: 127.0.0.1:0\noverride_subgraph_url: {{ accounts: '{}' }}\n",
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
    serve.signal("TERM");
    serve.logged("draining");
    // A second SIGTERM so soon may be a supervisor's, and counts as the same.
    serve.signal("TERM");
    serve.signal("INT");
    serve.logged("SIGINT again: stopping without draining");
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
        "listen: 127.0.0.1:0\noverride_subgraph_url: { acounts: 'http://localhost:1/', reviews: 'http://u:p@localhost/' }\n",
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
        let (code, out, err) = crate::process::run(&arguments);
        assert_eq!(code, Some(0), "{err}");
        out
    };
    let out = explained(good);
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
    let out = explained(&good.replace('.', ".x"));
    assert!(
        out.contains("refused: ") && out.contains("(INVALID_TOKEN)"),
        "{out}"
    );
}
