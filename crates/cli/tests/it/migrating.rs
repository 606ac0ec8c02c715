//! `ogive config migrate`: what it writes can be checked and served.

use std::{fs, path::Path};

use crate::process::{Running, address, answer, ask, demo, file, folder, run};

const ANSWERED: (u16, &str) = (200, r#"{"data":{"__typename":"Query"}}"#);
const REFUSED: (u16, &str) = (
    401,
    r#"{"errors":[{"message":"nobody is known to ask: send a token","extensions":{"code":"UNAUTHENTICATED"}}]}"#,
);

/// Samples with the files' usual names, the path where GraphQL is served with them, and what becomes of a request without
/// a token.
const SAMPLES: [(&str, &str, &str, (u16, &str)); 4] = [
    ("apollo.yaml", "router.yaml", "/", REFUSED),
    ("hive.yaml", "router.config.yaml", "/api", ANSWERED),
    ("grafbase.toml", "grafbase.toml", "/gql", ANSWERED),
    ("cosmo.yaml", "config.yaml", "/graphql", ANSWERED),
];

fn sample(name: &str, usual: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrate/tests");
    let text = fs::read_to_string(folder.join(name)).unwrap();
    // A variable that every process has.
    let text = text
        .replace("KEY}", "PATH}")
        .replace("env.KEY ", "env.PATH ");
    file(usual, text)
}

/// Puts a folder of scripts in the place of one that a sample names.
fn with_scripts(path: &str) {
    let scripts = folder().join("rhai");
    fs::create_dir_all(&scripts).unwrap();
    fs::write(scripts.join("main.rhai"), "").unwrap();
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, text.replace("./rhai", &scripts.to_string_lossy())).unwrap();
}

#[test]
fn serve_starts_with_every_migrated_sample() {
    for (name, usual, path, expected) in SAMPLES {
        let from = sample(name, usual);
        let to = folder().join(format!("migrated-{name}.yaml"));
        let _ = fs::remove_file(&to);
        let to = to.to_string_lossy().into_owned();
        let (code, out, report) = run(&["config", "migrate", &from, "--output", &to]);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{report}");
        assert!(report.starts_with("NOT PROTECTED AS BEFORE"), "{report}");
        let written = fs::read_to_string(&to).unwrap();
        assert!(written.contains("\n# NOT PROTECTED AS BEFORE"), "{written}");
        let _ = fs::remove_file(&to);
        let accepted = [
            "config",
            "migrate",
            &from,
            "--output",
            &to,
            "--accept-unsupported",
        ];
        assert_eq!(run(&accepted).0, Some(0));
        assert!(report.contains(" unsupported"), "{report}");
        with_scripts(&to);
        let (code, _, err) = run(&["config", "validate", &to]);
        assert_eq!(code, Some(0), "{err}");
        let mut serving = Running::start(&[
            "serve",
            "--config",
            &to,
            "--supergraph",
            &demo("supergraph.graphql"),
            "--listen",
            "127.0.0.1:0",
            "--log",
            "info",
        ]);
        let gateway = address(&serving.logged("serving http://"));
        let (status, body) = answer(ask(&gateway, "POST", path, r#"{"query":"{ __typename }"}"#));
        assert_eq!((status, body.as_str()), expected, "{name}");
        serving.signal("TERM");
        assert_eq!(serving.ended().0, Some(0));
    }
}

#[test]
fn the_report_can_be_json_and_nothing_is_replaced() {
    let from = sample("hive.yaml", "other-name.yaml");
    let (code, _, err) = run(&["config", "migrate", &from]);
    assert_eq!(code, Some(1));
    assert!(err.contains("--from apollo"), "{err}");
    let (code, yaml, report) = run(&[
        "config", "migrate", &from, "--from", "hive", "--report", "json",
    ]);
    assert_eq!(code, Some(1));
    assert!(yaml.starts_with("# From a configuration of Hive Router.\n"));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let keys = report["keys"].as_array().unwrap();
    let of = |from: &str| keys.iter().find(|k| k["from"] == from).unwrap();
    assert_eq!(of("http.port")["to"], "listen");
    assert_eq!(of("jwt")["to"], "authentication.router.jwt");
    let lost = of("error_masking.subgraphs.products.extensions");
    assert_eq!(lost["verdict"], "unsupported");
    assert_eq!(lost["protection"], true);
    assert_eq!(keys[0]["protection"], true);
    assert_eq!(of("http.port")["protection"], false);
    let (code, _, err) = run(&["config", "migrate", &from, "--from", "hive", "-o", &from]);
    assert_eq!(code, Some(1));
    assert!(err.contains("does not exist yet"), "{err}");
}

/// A file that was not written completely is nothing to migrate: its result would be the defaults, which let everybody in.
#[test]
fn a_configuration_without_keys_is_refused() {
    for (usual, text) in [
        ("router.yaml", ""),
        ("router.config.yaml", "# later\n"),
        ("grafbase.toml", "\n"),
        ("config.yaml", "{}"),
    ] {
        let from = file(usual, text);
        let (code, out, err) = run(&["config", "migrate", &from]);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{usual}: {err}");
        assert!(err.contains("has no keys to migrate"), "{err}");
    }
}

/// What is not there is named, as it may be where the gateway is served; what is there has to be usable.
#[test]
fn what_a_result_names_is_looked_at() {
    let scripts = folder().join("migrated-scripts");
    fs::create_dir_all(&scripts).unwrap();
    let throws = "fn supergraph_service(service) { throw \"no\" }";
    fs::write(scripts.join("main.rhai"), throws).unwrap();
    let of = |rest: &str| {
        let from = file("named.yaml", format!("{rest}\n"));
        run(&["config", "migrate", &from, "--from", "apollo"])
    };
    for (text, says) in [
        ("rhai: { scripts: ./not-there }", "not-there"),
        ("supergraph: { listen: '${env.NOT_SET_X}' }", "NOT_SET_X"),
        (
            "tls: { supergraph: { certificate: '${file./not/there.pem}', key: '${file./not/there.key}', \
             certificate_chain: '${file./not/there.pem}' } }",
            "/not/there.pem",
        ),
    ] {
        let (_, _, report) = of(text);
        let (_, absent) = report.split_once("\nNOT HERE:\n").expect(&report);
        assert!(absent.contains(says), "{report}");
        assert!(!report.contains("CANNOT BE LOADED"), "{report}");
    }
    assert_eq!(of("rhai: { scripts: ./not-there }").0, Some(0));
    let (code, _, report) = of(&format!("rhai: {{ scripts: '{}' }}", scripts.display()));
    assert_eq!(code, Some(1), "{report}");
    assert!(report.contains("THE RESULT CANNOT BE LOADED"), "{report}");
}

#[test]
fn a_result_that_cannot_be_loaded_is_said_whatever_is_accepted() {
    let text = "limits: { max_depth: '${env.NOT_SET_HERE:-deep}' }\n";
    let from = file("wrong.yaml", text);
    let all = [
        "config",
        "migrate",
        &from,
        "--from",
        "apollo",
        "--accept-unsupported",
    ];
    let (code, yaml, report) = run(&all);
    assert_eq!(code, Some(1), "{report}");
    assert!(yaml.contains("max_depth"), "{yaml}");
    assert!(report.contains("THE RESULT CANNOT BE LOADED"), "{report}");
    assert!(report.contains("CONFIG_INVALID_VALUE"), "{report}");
}

/// Hooks at requests to subgraphs see those of subscriptions: both are kept.
#[test]
fn subscriptions_are_kept_beside_hooks_at_requests_to_subgraphs() {
    let text = "subscription: { enabled: true }\n\
                coprocessor: { url: 'http://127.0.0.1:1', subgraph: { all: { request: { headers: true } } } }\n";
    let from = file("subscription-hook.yaml", text);
    let (code, _, report) = run(&["config", "migrate", "--from", "apollo", &from]);
    assert_eq!(code, Some(0), "{report}");
    assert!(!report.contains("unsupported  subscription"), "{report}");
    assert!(!report.contains("subscription is refused"), "{report}");
}

/// The warnings of a configuration, wherever the result is looked at.
#[test]
fn warnings_of_the_result_are_in_the_report() {
    let other = file(
        "documents-without-effect.yaml",
        "persisted_queries: { safelist: { enabled: true } }\n",
    );
    let (_, _, report) = run(&["config", "migrate", "--from", "apollo", &other]);
    assert!(
        report.contains("`persisted_queries` has no effect"),
        "{report}"
    );
}
