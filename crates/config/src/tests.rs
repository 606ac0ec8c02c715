//! Behaviour of whole texts.

use ogive_base::Sources;

use super::*;

fn load_text(text: &str) -> Result<Config, String> {
    load_in(text, |name| match name {
        "PORT" => Some("4321".to_owned()),
        "EMPTY" => Some(String::new()),
        "YAML" => Some("a: {b".to_owned()),
        _ => None,
    })
}

fn load_in(text: &str, env: impl Fn(&str) -> Option<String>) -> Result<Config, String> {
    let mut sources = Sources::new();
    let id = sources.add("ogive.yaml", text);
    load(id, text, &env).map_err(|errors| {
        errors
            .iter()
            .map(|e| e.render(&sources, false))
            .collect::<Vec<_>>()
            .join("\n")
    })
}

fn fails_with(text: &str, wanted: &[&str]) {
    let found = load_text(text).expect_err("this configuration must be refused");
    for part in wanted {
        assert!(found.contains(part), "no {part:?} in:\n{found}");
    }
}

#[test]
fn nothing_is_all_defaults() {
    assert_eq!(load_text("").unwrap(), Config::default());
    assert_eq!(load_text("# only a comment\n").unwrap(), Config::default());
    assert_eq!(load_text("headers:\nlimits:\n").unwrap(), Config::default());
}

#[test]
fn everything_of_a_full_file_arrives() {
    let config = load_text(
        r#"
listen: 0.0.0.0:${env.PORT}
supergraph: { path: "${env.SCHEMA:-super.graphql}", introspection: false }
http: { graphql_endpoint: /api, workers: 3, connections_max: 5 }
homepage: { enabled: false }
health_check: { path: /healthz }
limits: { http_max_request_bytes: 1MiB, parser_max_tokens: 20_000 }
headers:
  all:
    request:
      - propagate: { named: Authorization }
      - propagate: { matching: "^x-tenant-" }
      - insert: { name: X-From, value: "costs 5$$" }
  subgraphs:
    products:
      request:
        - propagate: { named: x-user, rename: x-account, default: nobody }
        - remove: { matching: "^x-tenant-$" }
override_subgraph_url:
  products: http://localhost:4002/graphql
traffic_shaping:
  router: { timeout: 5s }
  all: { timeout: 250ms, response_max_bytes: 10MB }
  subgraphs: { reviews: { timeout: 1m } }
query_planning: { cache: { enabled: false, size: 7 } }
include_subgraph_errors: { all: false, subgraphs: { accounts: true } }
log: { filter: "warn,ogive_transport=debug", format: json }
"#,
    )
    .unwrap();
    assert_eq!(config.listen.0, "0.0.0.0:4321");
    assert_eq!(config.supergraph.path.as_deref(), Some("super.graphql"));
    assert!(!config.supergraph.introspection);
    assert_eq!(config.http.workers.unwrap().get(), 3);
    assert_eq!(config.limits.http_max_request_bytes, ByteSize(1 << 20));
    assert_eq!(config.limits.parser_max_tokens, 20_000);
    let rules: Vec<_> = config.request_header_rules("products").cloned().collect();
    assert_eq!(
        rules,
        [
            HeaderRule::Propagate {
                from: HeaderSelector::Named("authorization".into()),
                rename: None,
                default: None
            },
            HeaderRule::Propagate {
                from: HeaderSelector::Matching("^x-tenant-".into()),
                rename: None,
                default: None
            },
            HeaderRule::Insert {
                name: "x-from".into(),
                value: "costs 5$".into()
            },
            HeaderRule::Propagate {
                from: HeaderSelector::Named("x-user".into()),
                rename: Some("x-account".into()),
                default: Some("nobody".into())
            },
            HeaderRule::Remove(HeaderSelector::Matching("^x-tenant-$".into())),
        ]
    );
    assert_eq!(config.request_header_rules("reviews").count(), 3);
    assert_eq!(config.traffic("reviews").timeout.as_secs(), 60);
    assert_eq!(config.traffic("reviews").response_max_bytes, 10_000_000);
    assert_eq!(config.traffic("other").timeout.as_millis(), 250);
    assert_eq!(config.traffic("other").connect_timeout.as_secs(), 5);
    assert!(!config.query_planning.cache.enabled);
    assert!(!config.includes_subgraph_errors("products"));
    assert!(config.includes_subgraph_errors("accounts"));
    assert_eq!(config.log.format, LogFormat::Json);
}

#[test]
fn an_unknown_key_names_its_place_and_the_key_that_was_meant() {
    fails_with(
        "listen: 127.0.0.1:4000\nlimits:\n  parser_max_token: 5\n",
        &[
            "error[CONFIG_UNKNOWN_KEY]: unknown key `parser_max_token`",
            "ogive.yaml:3:3",
            "did you mean `parser_max_tokens`?",
        ],
    );
    fails_with(
        "telemetries_of_all_kinds: {}\n",
        &[
            "unknown key `telemetries_of_all_kinds`",
            "known keys here: listen, listen_mode, supergraph",
        ],
    );
}

#[test]
fn a_key_that_stands_elsewhere_is_told_its_place() {
    fails_with(
        "demand_control: { enabled: true, actual_cost_mode: by_response_shape }\n",
        &["`actual_cost_mode` stands in `demand_control.strategy.static_estimated`"],
    );
}

#[test]
fn every_mistake_is_reported_in_order() {
    let found = load_text("listen: 4000\nhomepage: { enabled: nope }\nwat: 1\n").unwrap_err();
    let places: Vec<_> = ["ogive.yaml:1:9", "ogive.yaml:2:22", "ogive.yaml:3:1"]
        .iter()
        .map(|p| {
            found
                .find(p)
                .unwrap_or_else(|| panic!("no {p} in:\n{found}"))
        })
        .collect();
    assert!(places.is_sorted(), "{found}");
}

#[test]
fn values_of_the_wrong_kind_are_refused() {
    fails_with(
        "traffic_shaping: { all: { timeout: 30 } }",
        &["write the unit too"],
    );
    fails_with("traffic_shaping: { all: { timeout: 30x } }", &["units are"]);
    fails_with("traffic_shaping: { all: { timeout: 90h } }", &["`24h`"]);
    fails_with("limits: 5", &["expected a mapping, found a single value"]);
    fails_with(
        "limits: { http_max_request_bytes: -1 }",
        &["is no number of bytes"],
    );
    fails_with("query_planning: { cache: { size: 0 } }", &["at least 1"]);
    fails_with("http: { graphql_endpoint: graphql }", &["starts with `/`"]);
    fails_with(
        "override_subgraph_url: { a: localhost }",
        &["write the whole URL"],
    );
    fails_with(
        "headers: { all: { request: { insert: {} } } }",
        &["expected a list"],
    );
    fails_with(
        "supergraph: { path: [a] }",
        &["expected text, found a list"],
    );
}

/// A section that is named and left blank switched its protection off without a word.
#[test]
fn a_section_without_a_value_is_refused() {
    let at = "traffic_shaping: { subgraphs: { a: { circuit_breaker: VALUE } } }";
    let load = |value: &str| load_text(&at.replace("VALUE", value));
    fails_with(
        &at.replace("VALUE", ""),
        &["this section has no value", "write `{}`"],
    );
    let breaker = |value: &str| {
        let config = load(value).unwrap();
        config.traffic_shaping.subgraphs["a"]
            .circuit_breaker
            .is_some()
    };
    assert!(breaker("{}"));
    assert!(!breaker("null"));
}

#[test]
fn header_rules_are_checked() {
    let rule = |rule: &str| format!("headers:\n  all:\n    request:\n      - {rule}\n");
    fails_with(
        &rule("propogate: { named: a }"),
        &["did you mean `propagate`?"],
    );
    fails_with(&rule("propagate: { names: a }"), &["did you mean `named`?"]);
    fails_with(
        &rule("propagate: { named: a, matching: b }"),
        &["one of `named` and `matching`"],
    );
    fails_with(
        &rule("propagate: { matching: '(' }"),
        &["is no regular expression"],
    );
    fails_with(
        &rule("propagate: { matching: a, rename: b }"),
        &["go with `named`"],
    );
    fails_with(&rule("insert: { name: a }"), &["needs `name` and `value`"]);
    fails_with(
        &rule("insert: { name: a b, value: c }"),
        &["is no header name"],
    );
    fails_with(
        &rule("insert: { name: a, value: \"b\\r\\nc: d\" }"),
        &["line breaks"],
    );
    fails_with(
        &rule("{ insert: { name: a, value: b }, remove: { named: c } }"),
        &["own list item"],
    );
}

#[test]
fn expansion_needs_a_known_source_and_never_changes_structure() {
    fails_with(
        "supergraph:\n  path: ${env.NOPE}\n",
        &[
            "error[CONFIG_EXPANSION]",
            "`NOPE` is not set",
            "ogive.yaml:2:9",
            "${env.NOPE:-default}",
        ],
    );
    fails_with(
        "supergraph: { path: '${cmd.x}' }",
        &["`${cmd.x}` is not known"],
    );
    fails_with("supergraph: { path: '${env.X' }", &["without a closing"]);
    let config = load_text("supergraph: { path: '${env.YAML}' }").unwrap();
    assert_eq!(config.supergraph.path.as_deref(), Some("a: {b"));
    let config = load_text("supergraph: { path: '${env.EMPTY}' }").unwrap();
    assert_eq!(config.supergraph.path.as_deref(), Some(""));
}

#[test]
fn broken_yaml_is_one_diagnostic_with_its_place() {
    fails_with("listen: 'abc\n", &["error[CONFIG_SYNTAX]", "ogive.yaml:"]);
    fails_with("a: &x 1\nb: *x\n", &["anchors"]);
    fails_with("listen: a:1\n---\nlisten: b:1\n", &["one YAML document"]);
    fails_with(
        "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n",
        &["`listen` is set twice", "first set here", "ogive.yaml:2:1"],
    );
}

#[test]
fn places_are_right_after_wide_characters() {
    fails_with(
        "supergraph: { path: \"ää€𝄞\" }\nnope: 1\n",
        &["ogive.yaml:2:1"],
    );
}

#[test]
fn deep_or_huge_texts_are_refused_fast() {
    fails_with(&"[".repeat(200), &["error[CONFIG_"]);
    fails_with(
        &format!("listen:\n{}", "- a\n".repeat(20_001)),
        &["error[CONFIG_LIMIT]"],
    );
}

#[test]
fn a_text_beyond_any_sensible_size_is_not_even_read() {
    fails_with(&"#\n".repeat(1 << 20), &["error[CONFIG_LIMIT]", "1 MiB"]);
}

#[test]
fn every_option_is_documented() {
    let rows = reference::options();
    for row in &rows {
        assert!(!row.doc.is_empty(), "{} has no documentation", row.path);
    }
    let found = |path: &str| {
        let row = rows.iter().find(|row| row.path == path);
        row.map(|row| row.default.as_str())
    };
    assert_eq!(found("limits.parser_max_tokens"), Some("15000"));
    assert_eq!(found("limits.http_max_request_bytes"), Some("2MB"));
    assert_eq!(found("headers.subgraphs.<name>.request"), Some(""));
    assert_eq!(found("override_subgraph_url.<name>"), Some(""));
    let all = reference::rows();
    let retry = all
        .iter()
        .find(|row| row.path == "traffic_shaping.all.retry");
    let retry = retry.expect("sections that may be left out have a row");
    assert!(retry.doc.contains("Default never"), "{}", retry.doc);
    for row in &all {
        assert!(!row.doc.is_empty(), "{} has no documentation", row.path);
    }
}

/// The page of the documentation; `BLESS=1` rewrites it.
#[test]
fn the_reference_page_is_up_to_date() {
    let mut page = include_str!("reference.md").to_owned();
    for row in reference::rows() {
        let default = match row.default.as_str() {
            "" => String::new(),
            default => format!("`{default}`"),
        };
        page.push_str(&format!(
            "| `{}` | {} | {default} | {} |\n",
            row.path, row.kind, row.doc
        ));
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    ogive_testbase::assert_recorded(path, &page);
}

/// The examples of the pages are configurations, but for those whose first key is none of ours.
#[test]
fn the_examples_of_the_pages_can_be_loaded() {
    // Files of `ogive mock` have keys of the same names.
    const OTHERS: &str = "mock.md";
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (mut checked, mut wrong) = (0, Vec::new());
    for page in std::fs::read_dir(docs).unwrap() {
        let path = page.unwrap().path();
        if path.extension().is_none_or(|e| e != "md") || path.ends_with(OTHERS) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for rest in text.split("```yaml\n").skip(1) {
            let example = rest.split("```").next().unwrap();
            let key = example.split(':').next().unwrap();
            if !Config::OPTIONS.iter().any(|option| option.name == key) {
                continue;
            }
            checked += 1;
            let loaded = load_in(example, |name| {
                Some(format!("value-of-{}", name.to_lowercase()))
            });
            let mistakes = match loaded {
                // Whoever begins with an example is not to be warned that it does nothing for anybody.
                Ok(config) => {
                    let mut notes = config.notes();
                    notes.retain(|note| note.contains("nobody is known by any"));
                    notes
                }
                Err(errors) => vec![errors],
            };
            let page = path.display();
            wrong.extend(mistakes.iter().map(|what| format!("{page}: {what}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked >= 40, "{checked}");
}

#[test]
fn the_defaults_are_the_defaults() {
    let text = schema::defaults();
    assert_eq!(
        load_text(&text).unwrap_or_else(|e| panic!("{e}\n{text}")),
        Config::default()
    );
    for row in reference::options() {
        let key = row.path.rsplit('.').next().unwrap();
        let shown = text
            .lines()
            .any(|l| l.trim_start().starts_with(&format!("{key}: ")));
        assert!(shown || row.default.is_empty(), "{} is missing", row.path);
    }
}

#[test]
fn the_schema_has_every_option() {
    let text = schema::schema();
    for row in reference::options() {
        let keys = row.path.split('.').map(|part| part.trim_end_matches("[]"));
        for key in keys.filter(|key| *key != "<name>") {
            assert!(
                text.contains(&format!("\"{key}\": {{")),
                "{} is missing",
                row.path
            );
        }
    }
    let (open, close) = (text.matches('{').count(), text.matches('}').count());
    assert!(
        text.starts_with('{') && text.ends_with("}\n"),
        "{open} {close}"
    );
}

/// The file next to the page; `BLESS=1` rewrites it.
#[test]
fn the_schema_file_is_up_to_date() {
    let schema = schema::schema();
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ogive.schema.json");
    ogive_testbase::assert_recorded(path, &schema);
}

#[test]
fn files_are_expanded_without_the_line_break_at_their_end() {
    let file = |path: &str| match path {
        "/run/secrets/token" => Ok("a: {b\r\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let load = |text: &str| {
        let from = Expansion {
            env: &|_| None,
            file: &file,
        };
        load_with(SourceId(0), text, from)
    };
    let rule = |value: &str| {
        format!(
            "headers: {{ all: {{ request: [{{ insert: {{ name: a, value: '{value}' }} }}] }} }}"
        )
    };
    let config = load(&rule("Bearer ${file./run/secrets/token}")).unwrap();
    assert_eq!(
        config.headers.all.request,
        [HeaderRule::Insert {
            name: "a".into(),
            value: "Bearer a: {b".into()
        }]
    );
    assert!(load(&rule("${file.nope:-x}")).is_ok());
    let errors = load(&rule("${file.nope}")).unwrap_err();
    assert_eq!(errors[0].code, codes::EXPANSION);
    assert!(
        errors[0]
            .message
            .contains("`nope` cannot be read: no such file")
    );
}

#[test]
fn response_header_rules_are_read_and_checked() {
    let config = load_text(
        r#"
headers:
  all:
    response:
      - propagate: { named: Set-Cookie }
      - propagate: { matching: "^x-", algorithm: first }
      - insert: { name: x-served-by, value: ogive }
  subgraphs:
    a:
      response:
        - propagate: { named: x-a, rename: x-b, default: c, algorithm: append }
        - remove: { named: x-internal }
"#,
    )
    .unwrap();
    assert_eq!(config.response_header_rules("b").count(), 3);
    let rules: Vec<_> = config.response_header_rules("a").cloned().collect();
    assert_eq!(
        rules[3],
        ResponseHeaderRule::Propagate {
            from: HeaderSelector::Named("x-a".into()),
            rename: Some("x-b".into()),
            default: Some("c".into()),
            algorithm: Some(HeaderAlgorithm::Append),
        }
    );
    let rule = |rule: &str| format!("headers: {{ all: {{ response: [{rule}] }} }}");
    fails_with(
        &rule("{ propagate: { named: a, algorithm: newest } }"),
        &["`first`, `last`, `append`"],
    );
    fails_with(
        &rule("{ propagate: { name: a } }"),
        &["did you mean `named`?"],
    );
    fails_with(&rule("{ set: { name: a } }"), &["unknown key `set`"]);
    // What is made of the client's request, and conditions on it.
    let rules = |text: &str| {
        let config = load_text(&rule(text)).unwrap();
        config.response_header_rules("a").next().cloned().unwrap()
    };
    let text = rules("{ insert: { name: X-A, template: '{client_name}!', default: b } }");
    assert!(
        matches!(text, ResponseHeaderRule::InsertTemplate { name, template, default: Some(_) }
        if name == "x-a" && template.len() == 2)
    );
    for one in [
        "{ insert: { name: a, from: { jwt_claim: sub } } }",
        "{ insert: { name: a, from_context: 'apollo::authentication::jwt_claims', path: .sub } }",
    ] {
        let made = rules(one);
        assert!(
            matches!(&made, ResponseHeaderRule::InsertTemplate { .. }),
            "{one}"
        );
        assert_eq!(made.selectors().len(), 1, "{one}");
    }
    let when = "when: { exists: { request_header: x-debug } }";
    let held = rules(&format!("{{ propagate: {{ named: a }}, {when} }}"));
    assert!(matches!(
        held.effect(),
        ResponseHeaderRule::Propagate { .. }
    ));
    assert_eq!(held.selectors().len(), 1);
    for (bad, why) in [
        (
            "{ insert: { name: a, from: { request_header: b } } }",
            "names no header of the client",
        ),
        (
            "{ insert: { name: a, template: '{response_status}' } }",
            "says nothing",
        ),
        (
            "{ insert: { name: a, template: '{client_name}', value: b } }",
            "stands alone",
        ),
        (
            "{ remove: { named: a }, when: { exists: { response_header: b } } }",
            "says nothing",
        ),
    ] {
        fails_with(&rule(bad), &[why]);
    }
}

/// Every key of the reference names the test that shows that it changes behaviour, or why there is none. What holds for
/// one subgraph is picked by one function that [`everything_of_a_full_file_arrives`] tests, so the keys of `all` stand for
/// those of single subgraphs.
#[test]
fn every_key_has_a_test_or_a_reviewed_reason() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let table = std::fs::read_to_string(crates.join("config/tests/keys.txt")).unwrap();
    let table: Vec<(&str, &str)> = table
        .lines()
        .map(|line| {
            line.split_once(" = ")
                .unwrap_or_else(|| panic!("no `KEY = TEST`: {line}"))
        })
        .collect();
    let mut missing = Vec::new();
    let known: Vec<String> = reference::options()
        .into_iter()
        .map(|row| row.path)
        .collect();
    for key in &known {
        let all = key.replacen(".subgraphs.<name>.", ".all.", 1);
        if !table.iter().any(|(k, _)| k == key || *k == all) {
            missing.push(key);
        }
    }
    assert!(
        missing.is_empty(),
        "name a test for them in crates/config/tests/keys.txt: {missing:#?}"
    );
    for (key, shown) in table {
        assert!(known.iter().any(|k| k == key), "{key} is no key any more");
        if let Some(reason) = shown.strip_prefix("reviewed: ") {
            assert!(reason.len() > 20, "{key}: {reason} is no reason");
            continue;
        }
        let (file, test) = shown
            .split_once("::")
            .unwrap_or_else(|| panic!("{key}: {shown}"));
        let text = std::fs::read_to_string(crates.join(file)).unwrap_or_default();
        let found = ["#[test]", "#[tokio::test"].iter().any(|attribute| {
            text.split(attribute).skip(1).any(|rest| {
                rest.split_once("fn ")
                    .is_some_and(|(_, f)| f.starts_with(&format!("{test}(")))
            })
        });
        assert!(found, "{key}: {file} has no test {test}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    fails_with(
        "traffic_shaping:\n  subgraphs:\n    a: { timeout: 0s }\nhttp: { body_read_timeout: 0ms }\n",
        &[
            "`0s` leaves no time at all",
            "ogive.yaml:3:19",
            "ogive.yaml:4:28",
            "the longest duration is `24h`",
        ],
    );
    load_text("http: { drain_delay: 0s, connection_shutdown_timeout: 0s }").unwrap();
    for (text, wanted) in [
        (
            "health_check: { path: /graphql }",
            "`/graphql` is the path of both `health_check.path` and `http.graphql_endpoint`",
        ),
        (
            "http: { graphql_endpoint: /readiness }",
            "`/readiness` is the path of both `health_check.readiness_path` and `http.graphql_endpoint`",
        ),
        (
            "health_check: { listen: 127.0.0.1:0, readiness_path: /health }",
            "`/health` is the path of both `health_check.path` and `health_check.readiness_path`",
        ),
        (
            "cors: { policies: [{ origins: ['https://a.example/'] }] }",
            "no slash at the end",
        ),
        (
            "cors: { policies: [{ origins: [a.example] }] }",
            "`a.example` is no origin",
        ),
        (
            "cors: { policies: [{ origins: ['https://A.example'] }] }",
            "lower case",
        ),
        (
            "cors: { policies: [{ origins: ['*'] }] }",
            "cors.allow_any_origin: true",
        ),
        (
            "cors: { policies: [{ origins: ['https://*.a.example'] }] }",
            "match_origins",
        ),
        (
            "traffic_shaping: { router: { rate_limit: { key: claim } } }",
            "set `authorization.claims.header`",
        ),
        (
            "{ authorization: { claims: { header: Authorization } }, authentication: { router: { jwt: { jwks: [{ discovery: 'https://a' }] } } } }",
            "`authorization` cannot hold both claims of the caller and a token",
        ),
        (
            "{ authorization: { claims: { header: x-who } }, subscription: { client: { websocket: { headers_from_init: [X_Who] } } } }",
            "the header `X_Who` holds claims of the caller, which a payload of `connection_init` cannot say",
        ),
        (
            "{ authentication: { router: { api_keys: { file: k } } }, subscription: { client: { websocket: { headers_from_init: [authorization, x-api-key] } } } }",
            "the header `x-api-key` holds an API key, which a payload",
        ),
        (
            "{ authorization: { claims: { header: x-who } }, authentication: { router: { api_keys: { file: k, header_name: x_who } } } }",
            "`x-who` cannot hold both claims of the caller and an API key",
        ),
        (
            "authentication: { router: { jwt: { sources: [{ type: header, name: x-api-key }], jwks: [{ discovery: 'https://a' }] }, api_keys: { file: k } } }",
            "`x-api-key` cannot hold both a token and an API key",
        ),
        ("csrf: { required_headers: [] }", "csrf.enabled: false"),
        (
            "telemetry: { execution_trace: { enabled: true, secret: '' } }",
            "an empty secret is none",
        ),
        ("listen_mode: 0999", "three octal digits"),
        ("listen_mode: 66", "three octal digits"),
        (
            "traffic_shaping: { router: { rate_limit: { key: header, header: 'a b' } } }",
            "`a b` is no header name",
        ),
    ] {
        fails_with(text, &["ogive.yaml:1:", wanted]);
    }
    for fine in [
        "health_check: { path: /graphql, listen: 127.0.0.1:0 }",
        "health_check: { path: /graphql, enabled: false }",
        "cors: { policies: [{ origins: ['http://localhost:3000', 'null', 'app://x', 'http://[::1]:80'] }] }",
    ] {
        load_text(fine).unwrap();
    }
}

#[test]
fn headers_that_any_page_can_send_are_no_guard() {
    for name in ["accept", "Content-Type", "sec-fetch-site", "range"] {
        let yaml = format!("csrf: {{ required_headers: [x-own, {name}] }}");
        let errors = load_text(&yaml).expect_err(name);
        let said = format!("{errors:?}");
        assert!(said.contains("proves nothing"), "{said}");
    }
    assert!(load_text("csrf: { required_headers: [x-own, authorization] }").is_ok());
}

#[test]
fn what_has_no_effect_is_said() {
    let notes = |text: &str| load_text(text).unwrap().notes();
    assert_eq!(notes(""), [""; 0]);
    // What files for deployment say for whoever may need it.
    let kept = "supergraph: { path: a.graphql, last_known_good: /var/lib/b.graphql }\n\
                authentication: { router: { jwt: { last_known_good: /var/lib/keys } } }";
    assert_eq!(notes(kept), [""; 0]);
    for (text, wanted) in [
        (
            "persisted_queries: { mode: require }",
            "`persisted_queries.enabled` is false",
        ),
        (
            "events: { providers: { nats: [{ id: n, url: nats://n:4222 }] } }",
            "nobody gets events of `events.providers`",
        ),
        (
            "demand_control: { mode: enforce }",
            "`demand_control` has no effect",
        ),
        (
            "demand_control: { enabled: true, strategy: { static_estimated: { max: 1 } } }",
            "`demand_control.mode` is not set",
        ),
        ("usage: { interval: 1s }", "`usage` has no effect"),
        ("usage: { enabled: true }", "told to nobody"),
        (
            "telemetry: { access_log: { path: a.log } }",
            "`telemetry.access_log` has no effect",
        ),
        (
            "subscription: { queue_capacity: 7 }",
            "`subscription` has no effect",
        ),
        (
            "persisted_queries: { enabled: true, mode: require }",
            "`persisted_queries.local_manifests` is empty",
        ),
        (
            "cors: { allow_any_origin: true, allow_credentials: true }",
            "`cors.allow_credentials` has no effect",
        ),
        (
            "supergraph: { path: a.graphql, url: 'http://a/' }",
            "`supergraph.path` has no effect",
        ),
        (
            "traffic_shaping: { router: { rate_limit: { key: ip, header: x-a } } }",
            "`key` is not `header`",
        ),
        ("limits: { max_depth: 0 }", "`limits.max_depth` is 0"),
        (
            "limits: { parser_max_recursion: 0 }",
            "`limits.parser_max_recursion` is 0",
        ),
        (
            "http: { trusted_proxies: [0.0.0.0/2, 64.0.0.0/2] }",
            "`http.trusted_proxies` holds half of all addresses",
        ),
        ("csrf: { enabled: false }", "`csrf.enabled` is false"),
        (
            "cors: { policies: [{ origins: ['null'], allow_credentials: true }] }",
            "the origin `null`",
        ),
        (
            "cors: { allow_credentials: true, policies: [{ match_origins: ['https?://.*'] }] }",
            "matches every origin",
        ),
        (
            "authorization: { claims: { trusted: [10.0.0.1, 0.0.0.0/0] } }",
            "anybody can be anybody: `authorization.claims.trusted`",
        ),
        (
            "http: { trusted_proxies: ['::/0'] }",
            "`http.trusted_proxies` holds half of all addresses",
        ),
        (
            "query_planning: { expose: { enabled: true } }",
            "every client that sends the header `apollo-expose-query-plan` sees plans",
        ),
        (
            "telemetry: { execution_trace: { enabled: true } }",
            "set `telemetry.execution_trace.secret`",
        ),
        (
            "listen: unix:///a.sock\ntraffic_shaping: { router: { rate_limit: { key: ip } } }",
            "all clients share one rate",
        ),
        (
            "telemetry: { exporters: { tracing: { otlp: { enabled: true, endpoint: 'http://c:1', headers: { k: v } } } } }",
            "everybody on the way can read `telemetry.exporters.tracing.otlp.headers`",
        ),
        (
            "headers: { all: { request: [{ insert: { name: Connection, value: close } }, { remove: { named: te } }] } }",
            "`headers.all.request` for `connection` has no effect",
        ),
        (
            "headers: { subgraphs: { a: { request: [{ propagate: { named: x-a, rename: host } }] } } }",
            "`headers.subgraphs.a.request` for `host` has no effect",
        ),
    ] {
        let notes = notes(text);
        assert!(notes.len() == 1 && notes[0].contains(wanted), "{notes:?}");
    }
}

#[test]
fn a_unix_socket_is_trusted_only_where_there_is_one() {
    let refusals = |text: &str| load_text(text).unwrap().refusals();
    for trusting in [
        "authorization: { claims: { header: x-claims, trusted: [10.0.0.0/8, unix] } }",
        "http: { trusted_proxies: [unix] }",
    ] {
        let refused = refusals(trusting);
        assert!(
            refused.len() == 1 && refused[0].1.contains("nobody listens on a unix socket"),
            "{refused:?}"
        );
        assert!(refusals(&format!("listen: unix:///a.sock\n{trusting}")).is_empty());
    }
    assert!(refusals("http: { trusted_proxies: [10.0.0.1] }").is_empty());
}

#[test]
fn a_client_has_a_part_of_all_connections() {
    let most = |text: &str| {
        let http = load_text(text).unwrap().http;
        http.connections_per_client_max().get()
    };
    assert_eq!(most(""), 2_500);
    assert_eq!(most("http: { connections_max: 200 }"), 100);
    assert_eq!(most("http: { connections_max: 20 }"), 20);
    assert_eq!(most("http: { connections_per_client_max: 9000 }"), 9_000);
}

#[test]
fn the_keys_that_a_text_sets() {
    let text = "limits: { max_depth: 5 }\ncors:\n  policies: [{ origins: [a] }]\nlisten: a\n";
    assert_eq!(
        keys_set(text),
        ["cors.policies", "limits.max_depth", "listen"]
    );
    for nothing in ["", "# no key", "[", "{}"] {
        assert!(keys_set(nothing).is_empty(), "{nothing}");
    }
}
