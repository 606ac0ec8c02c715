//! `ogive config`.

use crate::process::{Running, address, answer, ask, demo, file, folder, ogive, run};

#[test]
fn a_configuration_is_checked() {
    let good = file("good.yaml", "limits: { max_depth: 5 }\n");
    let (code, out, _) = run(&["config", "validate", &good]);
    assert_eq!(code, Some(0));
    assert!(out.contains("is fine"), "{out}");
    let bad = file("bad.yaml", "limits:\n  max_dept: 5\n");
    let (code, _, err) = run(&["config", "validate", &bad]);
    assert_eq!(code, Some(1));
    assert!(
        err.contains("did you mean `max_depth`?") && err.contains("bad.yaml:2:3"),
        "{err}"
    );
    assert_eq!(run(&["config", "validate", "no-such.yaml"]).0, Some(1));
}

#[test]
fn the_defaults_can_be_started_from_and_the_schema_is_json() {
    let (code, defaults, _) = run(&["config", "defaults"]);
    assert_eq!(code, Some(0));
    let path = file("defaults.yaml", &defaults);
    assert_eq!(run(&["config", "validate", &path]).0, Some(0), "{defaults}");
    let (code, schema, _) = run(&["config", "schema"]);
    assert_eq!(code, Some(0));
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let limits = &schema["properties"]["limits"];
    assert_eq!(limits["additionalProperties"], false);
    assert_eq!(limits["properties"]["parser_max_tokens"]["default"], 15_000);
    let policy = &schema["properties"]["cors"]["properties"]["policies"]["items"];
    assert!(policy["properties"]["origins"].is_object(), "{policy}");
}

#[test]
fn the_stages_of_a_configuration_are_listed() {
    let stages = |yaml: &str| {
        let (code, out, err) = run(&["config", "pipeline", &file("stages.yaml", yaml)]);
        assert_eq!(code, Some(0), "{err}");
        out
    };
    let state = |out: &str, stage: &str| {
        let line = out.lines().find(|line| line.starts_with(stage));
        let line = line.unwrap_or_else(|| panic!("{stage} is not in:\n{out}"));
        line[stage.len()..]
            .split_whitespace()
            .next()
            .map(str::to_owned)
    };
    let few = stages("{}\n");
    let more = stages(
        "demand_control: { enabled: true, mode: measure, strategy: { static_estimated: { max: 9 } } }\n",
    );
    for (out, charge) in [(&few, "off"), (&more, "on")] {
        assert_eq!(state(out, "identify").as_deref(), Some("on"));
        assert_eq!(state(out, "charge").as_deref(), Some(charge), "{out}");
        assert_eq!(state(out, "check rules").as_deref(), Some("off"));
    }
    let place = |stage: &str| few.lines().position(|line| line.starts_with(stage));
    assert!(place("admit ") < place("receive") && place("receive") < place("finish"));
}

/// What is wrong by itself, what contradicts something else, and what cannot be had on this machine: all at once.
#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let bad = file(
        "all-wrong.yaml",
        "listen: nowhere\n\
         supergraph: { url: 'ftp://a' }\n\
         limits: { max_dept: 5 }\n\
         http: { header_read_timeout: 0s }\n\
         cors: { policies: [{ origins: ['https://a/'], match_origins: ['('] }] }\n\
         override_subgraph_url: { products: 'http://:4001/' }\n\
         persisted_queries: { enabled: true, local_manifests: [no-such.json] }\n\
         tls: { supergraph: { certificate_chain: no-such.pem, key: no-such.key } }\n\
         log: { filter: loud }\n\
         telemetry: { access_log: { fields: [colour] } }\n",
    );
    let (code, _, err) = run(&["config", "validate", &bad]);
    assert_eq!(code, Some(1));
    for wanted in [
        "`nowhere` is no address",
        "`ftp://a` is no URL",
        "did you mean `max_depth`?",
        "`0s` leaves no time at all",
        "`https://a/` is no origin",
        "`(` is no regular expression",
        "`http://:4001/` is no URL",
        "no-such.json",
        "no-such.pem",
        "`loud` is no log filter",
        "`colour` is no field",
    ] {
        assert!(err.contains(wanted), "{wanted}\n{err}");
    }
    for line in 1..=10 {
        assert!(
            err.contains(&format!("all-wrong.yaml:{line}:")),
            "{line}\n{err}"
        );
    }
}

/// What one of them refuses for reasons of the configuration alone, the other refuses, too, and says the same.
#[test]
fn a_configuration_that_serve_refuses_is_not_fine() {
    let supergraph = demo("supergraph.graphql");
    for (name, text, wanted) in [
        (
            "key-in-the-clear",
            "supergraph: { url: 'http://192.0.2.1/schema', headers: { x-key: k1 } }",
            "would send its key to `http://192.0.2.1/schema`",
        ),
        (
            "key-in-the-query",
            "supergraph: { url: 'http://192.0.2.1/schema?key=k1' }",
            "would send its key to `http://192.0.2.1/schema`",
        ),
        (
            "no-header",
            "supergraph: { url: 'https://192.0.2.1/', headers: { 'x y': k1 } }",
            "`x y`",
        ),
        (
            "user",
            "supergraph: { url: 'https://u:k1@192.0.2.1/' }",
            "the URL `https://192.0.2.1/` has a user or a password",
        ),
        ("filter", "log: { filter: loud }", "`loud` is no log filter"),
        (
            "field",
            "telemetry: { access_log: { enabled: true, fields: [colour] } }",
            "`colour`",
        ),
        (
            "folder",
            "telemetry: { access_log: { enabled: true, path: /no/such/folder } }",
            "`/no/such/folder`",
        ),
        (
            "manifest",
            "persisted_queries: { enabled: true, local_manifests: [/no/such.json] }",
            "/no/such.json",
        ),
        (
            "certificate",
            "tls: { supergraph: { certificate_chain: /no/such.pem, key: /no/such.key } }",
            "/no/such.pem",
        ),
        (
            "collector",
            "telemetry: { exporters: { metrics: { otlp: { enabled: true, endpoint: 'http://u:p@a/' } } } }",
            "the URL `http://a/` has a user or a password",
        ),
        (
            "trust",
            "listen: 127.0.0.1:0\nhttp: { trusted_proxies: [unix] }",
            "nobody listens on a unix socket",
        ),
        (
            "urls",
            "traffic_shaping: { all: { urls: ['http://a/'] } }",
            "all subgraphs cannot be at the same URLs",
        ),
    ] {
        let config = file(&format!("refused-{name}.yaml"), text);
        let mut serve = vec!["serve", "-c", &config];
        if !text.starts_with("supergraph") {
            serve.extend(["-s", &supergraph]);
        }
        if !text.starts_with("listen") {
            serve.extend(["-l", "127.0.0.1:0"]);
        }
        for arguments in [serve, vec!["config", "validate", &config]] {
            let (code, _, err) = run(&arguments);
            assert_eq!(code, Some(1), "{name}: {arguments:?}\n{err}");
            assert!(err.contains(wanted), "{name}: {arguments:?}\n{err}");
            // What is checked is shown as it stands in the file.
            assert!(
                arguments[0] == "config" || !err.contains("k1"),
                "{name}: {err}"
            );
        }
    }
}

#[test]
fn one_mistake_is_one_error() {
    let filter = file("unset.yaml", "log: { filter: '${env.OGIVE_NO_SUCH}' }\n");
    let (_, _, err) = run(&["config", "validate", &filter]);
    assert_eq!(err.matches("error[").count(), 1, "{err}");
    assert!(err.contains("`OGIVE_NO_SUCH` is not set"), "{err}");
}

/// A value of the environment is not one of the file, and may be a secret.
#[test]
fn a_value_of_the_environment_that_cannot_be_used_is_told_by_its_name() {
    let config = file("fine-filter.yaml", "log: { filter: info }\n");
    let mut command = ogive(&["config", "validate", &config]);
    let refused = command
        .env("OGIVE__LOG__filter", "s3cret")
        .output()
        .unwrap();
    let err = String::from_utf8(refused.stderr).unwrap();
    assert!(
        err.contains("the environment variable `OGIVE__LOG__filter`: its value is no log filter"),
        "{err}"
    );
    assert!(
        !err.contains("s3cret") && !err.contains("fine-filter.yaml:"),
        "{err}"
    );
}

/// What is put beside it only where it is served is no mistake, and is said all the same.
#[test]
fn a_supergraph_that_is_not_there_yet_is_said() {
    let config = file(
        "without-supergraph.yaml",
        "supergraph: { path: no-such.graphql }\n",
    );
    let (code, out, err) = run(&["config", "validate", &config]);
    assert_eq!(code, Some(0));
    assert!(out.ends_with("; its supergraph was not checked\n"), "{out}");
    assert!(
        err.contains("there is no file `no-such.graphql` here"),
        "{err}"
    );
}

/// Argument, environment, file, default: each wins over the next. No value is told.
#[test]
fn the_environment_stands_between_arguments_and_the_file() {
    let config = file(
        "environment.yaml",
        "http: { graphql_endpoint: /of-file }\nlog: { filter: warn }\n",
    );
    let mut command = ogive(&["serve", "--log", "info"]);
    command
        .env("OGIVE_CONFIG", &config)
        .env("OGIVE_SUPERGRAPH", demo("supergraph.graphql"))
        .env("OGIVE_LISTEN", "127.0.0.1:0")
        .env("OGIVE_LOG", "error")
        .env("OGIVE__HTTP__GRAPHQL_ENDPOINT", "/of-environment")
        .env("OGIVE__telemetry__execution_trace__secret", "s3cret");
    let mut serve = Running::of(command);
    let from = serve.logged("configuration from ");
    assert!(from.contains("environment.yaml"), "{from}");
    assert!(
        from.contains("OGIVE__HTTP__GRAPHQL_ENDPOINT, OGIVE__telemetry__execution_trace__secret"),
        "{from}"
    );
    assert!(!from.contains("s3cret"), "{from}");
    let gateway = address(&serve.logged("/of-environment"));
    let query = r#"{"query":"{ __typename }"}"#;
    assert_eq!(
        answer(ask(&gateway, "POST", "/of-environment", query)).0,
        200
    );
    drop(serve);

    let mut command = ogive(&["config", "validate", &config]);
    let refused = command
        .env("OGIVE__limits__max_dept", "s3cret")
        .output()
        .unwrap();
    let err = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        err.contains("did you mean `OGIVE__limits__max_depth`?"),
        "{err}"
    );
    assert!(!err.contains("s3cret"), "{err}");
}

/// What was found without being named is said.
#[test]
fn serve_says_which_configuration_it_found() {
    let here = folder().join("found-and-said");
    std::fs::create_dir_all(&here).unwrap();
    std::fs::write(here.join("ogive.yaml"), "listen: 127.0.0.1:0\n").unwrap();
    let mut command = ogive(&["serve", "-s", &demo("supergraph.graphql")]);
    command.current_dir(&here);
    let mut serve = Running::of(command);
    serve.logged("configuration from ogive.yaml, found in the working directory");
}
