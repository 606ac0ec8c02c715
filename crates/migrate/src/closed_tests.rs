//! Nothing that protected anything is lost without a word.

use ogive_base::{SourceId, Sources};
use ogive_config::{Config, load};

use super::{Format, Migration, Verdict, migrate};

pub(crate) fn migrated(format: Format, text: &str) -> Migration {
    migrate(SourceId(0), text, format).unwrap_or_else(|e| panic!("{text}\n{e:#?}"))
}

/// What is written must be a configuration, whatever was lost.
pub(crate) fn loaded(migration: &Migration) -> Config {
    let mut sources = Sources::new();
    let id = sources.add("ogive.yaml", migration.yaml.as_str());
    load(id, &migration.yaml, &|_| Some("1".to_owned())).unwrap_or_else(|errors| {
        let errors: Vec<String> = errors.iter().map(|e| e.render(&sources, false)).collect();
        panic!("{}\n{}", errors.join("\n"), migration.yaml)
    })
}

const APOLLO: &[&str] = &[
    "authentication: { router: { jwt: { jwks: [ { url: 'http://e/jwks' } ] } } }",
    "authentication: { router: { jwt: { jwks: [ { url: 'https://e/jwks', algorithms: [ES512] } ] } } }",
    "authentication: { router: { jwt: { jwks: [ { url: 'https://e/jwks', other: 1 } ] } } }",
    "authentication: { router: { jwt: { other: 1, jwks: [ { url: 'https://e/jwks' } ] } } }",
    "authentication: { router: { jwt: { jwks: [] } } }",
    "authentication: { subgraph: { all: { aws_sig_v4: { default_chain: { region: x } } } } }",
    "authentication: { subgraph: { subgraphs: { a: { aws_sig_v4: { default_chain: { region: x, service_name: y, other: z } } } } } }",
    "authentication: { subgraph: { all: { aws_sig_v4: { hardcoded: { region: x, service_name: y, access_key_id: z } } } } }",
    "authorization: { require_authentication: true }",
    "authorization: { require_authentication: '${env.REQUIRED}' }",
    "coprocessor: { url: 'http://127.0.0.1:1', router: { request: { condition: { exists: { baggage: a } }, headers: true } } }",
    "coprocessor: { url: 'http://127.0.0.1:1', connector: { all: { request: { headers: true } } } }",
    "rhai: { scripts: ./rhai, other: 1 }",
    "plugins: { mine.auth: { key: x } }",
    "demand_control: { enabled: true, mode: enforce, strategy: { static_estimated: { max: 10, actual_cost_mode: by_subgraph } } }",
    "forbid_mutations: '${env.X}'",
    "limits: { max_depth: 4, router: { max_depth: 3 } }",
    "preview_demand_control: { mode: enforce, other: 1 }",
    "headers: { all: { request: [ { insert: { name: x, path: .extensions.app } } ] } }",
    "headers: { all: { response: [ { insert: { name: x, value: y, from_context: z } } ] } }",
    "limits: { max_depth: { n: 3 } }",
    "cors: { policies: [ { origins: ['https://a'], methods: [GET] } ] }",
    "headers: { all: { request: [ { remove: { named: x, when: y } } ] } }",
    "headers: { all: { request: [ { insert: { name: x, from_context: claims } } ] } }",
    "headers: { subgraphs: { a: { response: [ { mask: { named: x } } ] } } }",
    "supergraph: { redact_query_validation_errors: true }",
    "include_subgraph_errors: { all: { redact_message: false, deny_extensions_keys: [stack] } }",
    "traffic_shaping: { all: { global_rate_limit: { capacity: 1, interval: 1s, burst: 3 } } }",
    "traffic_shaping: { subgraphs: { a: { global_rate_limit: { capacity: 1 } } } }",
    "traffic_shaping: { router: { other: 1 } }",
    "tls: { supergraph: { client_authentication: { required: true } } }",
    "not_a_key: 1",
    "supergraph: { not_a_key: { a: 1 } }",
];

const HIVE: &[&str] = &[
    "jwt: { require_authentication: true, jwks_providers: [] }",
    "jwt: { jwks_providers: [ { source: remote, url: 'http://e/jwks' } ] }",
    "jwt: { jwks_providers: [ { source: remote, url: 'https://e/jwks' } ], lookup_locations: [ { source: cookies, name: c } ] }",
    "jwt: { jwks_providers: [ { source: remote, url: 'https://e/jwks' } ], allowed_algorithms: [ES512] }",
    "jwt: { jwks_providers: [ { source: remote, url: 'https://e/jwks' } ], other: 1 }",
    "jwt: { jwks_providers: [ { source: remote, url: 'https://e/jwks' } ], forward_claims_to_upstream_extensions: { enabled: true, field_name: j } }",
    "introspection: { expression: '.request.headers.x == \"y\"' }",
    "introspection: { enabled: true, expression: '.request.headers.x == \"y\"' }",
    "headers: { all: { request: [ { insert: { name: x, expression: .request.method } } ] } }",
    "headers: { all: { request: [ { remove: { named: x, exclude: y } } ] } }",
    "limits: { max_breadth: { n: 3 } }",
    "coprocessor: { url: x }",
    "demand_control: { enabled: true, max_cost: 3 }",
    "demand_control: { enabled: true, operation_cost: { mode: enforce, max: 3 }, subgraphs_budget: { mode: enforce } }",
    "hmac_signature: { enabled: { expression: 'true' }, secret: x }",
    "hmac_signature: { enabled: true, secret: x, other: y }",
    "aws_sig_v4: { all: { region: x } }",
    "plugins: { mine: { enabled: true } }",
    "error_masking: { all: { enabled: false, extensions: { mode: deny, keys: [stack] } } }",
    "authorization: { other: 1 }",
    "traffic_shaping: { router: { tls: { client_auth: { other: 1 } } } }",
];

const GRAFBASE: &[&str] = &[
    "[[authentication.providers]]\ntype = \"jwt\"\n[authentication.providers.jwks]\nurl = \"https://e\"",
    "[authentication]\ndefault = \"deny\"",
    "[authentication]\ndefault = \"deny\"\n[extensions.jwt.config]\nurl = \"http://e/jwks\"",
    "[extensions.jwt.config]\nurl = \"https://e/jwks\"\ncookie_name = \"c\"",
    "executable_document_limit = \"32KiB\"",
    "[operation_limits]\ncomplexity = 7",
    "[complexity_control]\nmode = \"other\"\nlimit = 5",
    "[extensions.mine]\nversion = \"1\"",
    "[hooks]\nlocation = \"x.wasm\"",
    "[gateway.message_signatures]\nenabled = true",
    "[subgraphs.a.message_signatures]\nenabled = true",
    "[subgraphs.a.rate_limit]\nlimit = 1",
    "[gateway.rate_limit]\nstorage = \"redis\"",
    "[gateway.rate_limit]\nstorage = \"redis\"\n[gateway.rate_limit.redis]\nkey_prefix = \"a\"",
    "[[headers]]\nrule = \"remove\"\nname = \"x\"\nwhen = \"y\"",
    "[[headers]]\nrule = \"insert\"\nname = \"x\"\nvalue = \"{{ jwt.sub }}\"",
    "[[subgraphs.a.headers]]\nrule = \"hide\"\nname = \"x\"",
    "[operation_limits]\nbreadth = 1",
    "not_a_key = 1",
];

const COSMO: &[&str] = &[
    "authentication: { jwt: { jwks: [ { url: 'http://e/jwks' } ] } }",
    "authentication: { jwt: { jwks: [ { secret: s, symmetric_algorithm: HS256, header_key_id: k } ] } }",
    "authentication: { jwt: { jwks: [ { url: 'https://e/jwks' } ], header_sources: [ { type: header, name: x, value_prefixes: [a, b] } ] } }",
    "authentication: { providers: [ { name: x } ] }",
    "authorization: { require_authentication: true }",
    "authorization: { require_authentication: '${REQUIRED}' }",
    "introspection: { enabled: true, secret: x }",
    "security: { block_mutations: { enabled: true, condition: 'a' } }",
    "security: { block_subscriptions: { enabled: true, condition: 'a' } }",
    "security: { block_mutations: '${X}' }",
    "security: { block_non_persisted_operations: { enabled: true, condition: 'a' } }",
    "security: { cost_analysis: { enabled: true, mode: enforce } }",
    "security: { parser_limits: { approximate_depth_limit: 3 } }",
    "security: { other: 1 }",
    "rate_limit: { enabled: true, simple_strategy: { rate: 1, period: 1s }, key_suffix_expression: 'a' }",
    "rate_limit: { enabled: true, storage: { urls: [x] } }",
    "rate_limit: { enabled: true, overrides: [ { matching: x } ] }",
    "headers: { cookie_whitelist: [a] }",
    "headers: { all: { request: [ { op: set, name: x, expression: 'request.auth' } ] } }",
    "headers: { all: { request: [ { op: remove, named: x } ] } }",
    "headers: { router: { response: [ { name: x, expression: y } ] } }",
    "subgraph_error_propagation: { other: 1 }",
    "modules: { mine: { value: 1 } }",
    "plugins: { enabled: true }",
    "tls: { server: { enabled: true, client_auth: { other: 1 } } }",
    "not_a_key: 1",
];

fn cases() -> impl Iterator<Item = (Format, &'static str)> {
    let tables = [
        (Format::Apollo, APOLLO),
        (Format::Hive, HIVE),
        (Format::Grafbase, GRAFBASE),
        (Format::Cosmo, COSMO),
    ];
    tables
        .into_iter()
        .flat_map(|(format, table)| table.iter().map(move |text| (format, *text)))
}

#[test]
fn lost_protections_come_first_and_stand_in_the_result() {
    for (format, text) in cases() {
        // Something that is brought over comes before it in the file.
        let before = match format {
            Format::Apollo => "apq: { enabled: false }\n",
            Format::Hive => "http: { graphql_endpoint: /q }\n",
            Format::Grafbase => "",
            Format::Cosmo => "graphql_path: /q\n",
        };
        let migration = migrated(format, &format!("{before}{text}"));
        assert!(
            migration.protections_lost() > 0,
            "{format:?} {text}\n{}",
            migration.report_text()
        );
        let first = &migration.report[0];
        assert!(
            first.protection && first.verdict == Verdict::Unsupported,
            "{first:?}"
        );
        assert!(
            migration
                .report_text()
                .starts_with("NOT PROTECTED AS BEFORE")
        );
        let comment = format!("\n# {}: {}\n", first.from, first.note);
        assert!(migration.yaml.contains(&comment), "{}", migration.yaml);
        assert!(
            !loaded(&migration).supergraph.introspection
                || format == Format::Cosmo
                || format == Format::Hive
        );
    }
}

/// What was guarded by something that is lost is closed.
#[test]
fn what_a_lost_guard_guarded_is_closed() {
    let closed = |format, text: &str| !loaded(&migrated(format, text)).supergraph.introspection;
    for text in HIVE.iter().filter(|text| text.starts_with("introspection")) {
        assert!(closed(Format::Hive, text), "{text}");
    }
    assert!(closed(
        Format::Cosmo,
        "introspection: { enabled: true, secret: x }"
    ));
    let cors = loaded(&migrated(
        Format::Cosmo,
        "cors: { allow_origins: ['https://*.a.b'] }",
    ))
    .cors;
    assert!(!cors.allow_any_origin);
    assert_eq!(cors.policies[0].match_origins[0].0, "https://[^/]*\\.a\\.b");
}

/// A switch whose value only the environment knows is on.
#[test]
fn switches_that_are_not_known_protect() {
    use ogive_config::PersistedMode::Require;
    let mode = |format, text: &str| loaded(&migrated(format, text)).persisted_queries.mode;
    let apollo = "persisted_queries: { enabled: true, safelist: { enabled: '${env.SAFE:-true}' } }";
    assert_eq!(mode(Format::Apollo, apollo), Require);
    let hive = "persisted_documents: { enabled: true, require_id: { from_env: SAFE } }";
    assert_eq!(mode(Format::Hive, hive), Require);
    let grafbase = "[trusted_documents]\nenabled = true\nenforced = \"{{ env.SAFE }}\"";
    assert_eq!(mode(Format::Grafbase, grafbase), Require);
    let cosmo = "persisted_operations: { safelist: { enabled: '${SAFE}' } }";
    assert_eq!(mode(Format::Cosmo, cosmo), Require);
    let cosmo = "security: { complexity_limits: { depth: { enabled: '${DEEP}', limit: 7 } } }";
    assert_eq!(
        loaded(&migrated(Format::Cosmo, cosmo)).limits.max_depth,
        Some(7)
    );
}

/// Extensions that one subgraph keeps to itself are not shown because another shows its own.
#[test]
fn extensions_that_are_chosen_are_never_all_of_them() {
    for (format, text) in [
        (
            Format::Apollo,
            "include_subgraph_errors: { all: true, subgraphs: { a: { redact_message: false, deny_extensions_keys: [s] } } }",
        ),
        (
            Format::Apollo,
            "include_subgraph_errors: { subgraphs: { a: { redact_message: false, allow_extensions_keys: [s] } } }",
        ),
        (
            Format::Hive,
            "error_masking: { all: { enabled: false, extensions: { mode: deny, keys: [s] } } }",
        ),
        (
            Format::Hive,
            "error_masking: { all: { enabled: false }, subgraphs: { a: { extensions: { mode: allow, keys: [s] } } } }",
        ),
    ] {
        let shown = loaded(&migrated(format, text))
            .include_subgraph_errors
            .extensions;
        assert!(shown.is_empty(), "{text}: {shown:?}");
    }
}

/// What was there in other words is no loss.
#[test]
fn what_is_brought_over_is_not_called_lost() {
    for (format, text) in [
        (
            Format::Apollo,
            "limits: { max_depth: 3, max_aliases: 4 }\ncsrf: { unsafe_disabled: false }",
        ),
        (
            Format::Apollo,
            "authorization: { require_authentication: false }",
        ),
        (
            Format::Apollo,
            "demand_control: { enabled: true, mode: measure }",
        ),
        (
            Format::Apollo,
            "headers: { all: { request: [ { propagate: { named: a, path: b } } ] } }",
        ),
        (
            Format::Apollo,
            "telemetry: { instrumentation: { spans: { mode: x } } }",
        ),
        (
            Format::Hive,
            "authorization: { directives: { enabled: true, unauthorized: { mode: reject } } }",
        ),
        (
            Format::Apollo,
            "authentication: { subgraph: { all: { aws_sig_v4: { default_chain: { region: x, service_name: y, \
             assume_role: { role_arn: r, session_name: s } } } } } }",
        ),
        (
            Format::Hive,
            "hmac_signature: { enabled: true, secret: x, extension_name: y }",
        ),
        (Format::Grafbase, "[operation_limits]\ndepth = 3"),
        (
            Format::Cosmo,
            "security: { complexity_limits: { depth: { enabled: true, limit: 3 } } }",
        ),
        (
            Format::Cosmo,
            "subgraph_error_propagation: { attach_service_name: true }",
        ),
    ] {
        let migration = migrated(format, text);
        assert_eq!(
            migration.protections_lost(),
            0,
            "{text}\n{}",
            migration.report_text()
        );
        assert!(
            !migration.yaml.contains("NOT PROTECTED"),
            "{}",
            migration.yaml
        );
    }
}

/// A comment cannot be left by a key or a value that breaks the line.
#[test]
fn comments_stay_comments() {
    let text = "\"a\\nlisten: evil\\u2028x\": \"b\\nlisten: evil\"\nrhai: { other: \"x\\nlisten: 0.0.0.0:1\" }\n";
    let migration = migrated(Format::Apollo, text);
    assert_eq!(
        loaded(&migration).listen.0,
        "127.0.0.1:4000",
        "{}",
        migration.yaml
    );
    assert!(
        migration
            .yaml
            .lines()
            .all(|line| !line.starts_with("listen"))
    );
}

#[test]
fn references_to_the_environment_keep_their_rules() {
    let of = |format, text: &str| {
        let migration = migrated(format, text);
        assert_eq!(
            migration.count(Verdict::Unsupported),
            0,
            "{}",
            migration.report_text()
        );
        migration.yaml
    };
    let hive = of(
        Format::Hive,
        "headers: { all: { request: [ { insert: { name: x-key, expression: 'env(\"KEY\", \"none\")' } } ] } }\n\
         override_subgraph_urls: { subgraphs: { a: { url: { expression: 'env(\"URL\")' } } } }\n",
    );
    assert!(
        hive.contains(r#"insert: { name: x-key, value: "${env.KEY:-none}" }"#),
        "{hive}"
    );
    assert!(hive.contains(r#"a: "${env.URL}""#), "{hive}");
    let cosmo = of(
        Format::Cosmo,
        "listen_addr: $ADDRESS\ntraffic_shaping: { all: { request_timeout: '${T}' } }\n\
         cors: { allow_origins: ['https://${HOST}'] }\n",
    );
    assert!(cosmo.contains(r#"listen: "${env.ADDRESS}""#), "{cosmo}");
    assert!(cosmo.contains(r#"timeout: "${env.T}""#), "{cosmo}");
    assert!(
        cosmo.contains(r#"origins: ["https://${env.HOST}"]"#),
        "{cosmo}"
    );
    let grafbase = of(Format::Grafbase, "[gateway]\ntimeout = \"{{ env.T }}\"\n");
    assert!(grafbase.contains(r#"timeout: "${env.T}""#), "{grafbase}");
}

/// A breaker that is only switched on has the other gateway's values.
#[test]
fn breakers_that_are_only_switched_on_are_on() {
    for (format, reset) in [(Format::Cosmo, 5), (Format::Hive, 30)] {
        let text = "traffic_shaping: { all: { circuit_breaker: { enabled: true } } }";
        let breaker = loaded(&migrated(format, text)).traffic("a").circuit_breaker;
        assert_eq!(
            breaker.map(|b| b.reset_timeout.0.as_secs()),
            Some(reset),
            "{format:?}"
        );
    }
}

#[test]
fn events_of_apollo_are_the_access_log() {
    let text = "telemetry: { instrumentation: { events: { router: { request: off, response: info, error: error, \
                mine: { message: x } }, subgraph: { request: info } } } }";
    let migration = migrated(Format::Apollo, text);
    assert!(loaded(&migration).telemetry.access_log.enabled);
    assert_eq!(
        migration.count(Verdict::Unsupported),
        2,
        "{}",
        migration.report_text()
    );
    let off = "telemetry: { instrumentation: { events: { router: { response: off } } } }";
    assert!(
        !loaded(&migrated(Format::Apollo, off))
            .telemetry
            .access_log
            .enabled
    );
}

#[test]
fn key_sets_and_required_callers_are_brought_over_together() {
    let text = "authentication: { router: { jwt: { header_value_prefix: Token, on_error: Continue, \
        sources: [ { type: cookie, name: session } ], jwks: [ { url: 'https://e/jwks', issuer: 'https://e', \
        audiences: [us], algorithms: [RS256], poll_interval: 30s, headers: [ { name: x, value: '${env.KEY}' } ] } ] } } }\n\
        authorization: { require_authentication: true }";
    let migration = migrated(Format::Apollo, text);
    let config = loaded(&migration);
    let jwt = &config.authentication.router.jwt;
    assert_eq!(jwt.header_value_prefix, "Token");
    assert_eq!(jwt.on_error, ogive_config::OnTokenError::Continue);
    assert_eq!((jwt.sources.len(), jwt.jwks.len()), (1, 1));
    assert_eq!(jwt.jwks[0].issuers, ["https://e"]);
    assert_eq!(jwt.jwks[0].audiences, ["us"]);
    assert_eq!(
        jwt.jwks[0].poll_interval,
        Some(ogive_config::Duration::seconds(30))
    );
    assert!(config.authorization.require_authentication);
    assert!(
        !migration.yaml.contains("# authentication"),
        "{}",
        migration.yaml
    );
}

#[test]
fn key_sets_of_other_gateways_are_brought_over_with_what_they_require() {
    let jwt = |format, text: &str| {
        let migration = migrated(format, text);
        assert_eq!(
            migration.protections_lost(),
            0,
            "{}",
            migration.report_text()
        );
        let config = loaded(&migration);
        let required = config.authorization.require_authentication;
        (config.authentication.router.jwt, required)
    };
    let hive = "jwt:\n  require_authentication: true\n  issuers: ['https://e/']\n  audiences: [us]\n  allowed_algorithms: [RS256, ES256]\n  \
        jwks_providers:\n    - { source: remote, url: 'https://e/jwks', polling_interval: 15m, prefetch: true }\n    - { source: file, path: /etc/jwks.json }\n  \
        lookup_locations:\n    - { source: header, name: X-Token, prefix: 'Token ' }\n    - { source: cookies, name: session }\n";
    let (found, required) = jwt(Format::Hive, hive);
    assert!(required);
    assert_eq!(
        (&*found.header_name.0, &*found.header_value_prefix),
        ("x-token", "Token")
    );
    assert_eq!((found.jwks.len(), found.sources.len()), (2, 1));
    for set in &found.jwks {
        assert_eq!(
            (&set.issuers[..], &set.audiences[..]),
            (&["https://e/".to_owned()][..], &["us".to_owned()][..])
        );
        assert_eq!(set.algorithms.as_ref().unwrap().len(), 2);
    }
    assert_eq!(
        found.jwks[0].poll_interval,
        Some(ogive_config::Duration::seconds(900))
    );
    assert_eq!(
        found.jwks[1].url,
        Some(ogive_config::KeySetUrl::File("/etc/jwks.json".into()))
    );

    let cosmo = "authentication:\n  jwt:\n    jwks:\n      - { url: 'https://e/jwks', refresh_interval: 1m, algorithms: [RS256], audiences: [us] }\n    \
        header_name: X-Token\n    header_value_prefix: Token\n    header_sources: [ { type: header, name: x-other, value_prefixes: [Bearer] } ]\n\
        authorization: { require_authentication: true }\n";
    let (found, required) = jwt(Format::Cosmo, cosmo);
    assert!(required);
    assert_eq!(
        (&*found.header_name.0, &*found.header_value_prefix),
        ("x-token", "Token")
    );
    assert_eq!((found.jwks.len(), found.sources.len()), (1, 1));
    assert_eq!(found.jwks[0].audiences, ["us"]);

    let grafbase = "[extensions.jwt]\nversion = \"1\"\n[extensions.jwt.config]\nurl = \"https://e/jwks\"\nissuer = \"https://e/\"\n\
        audience = \"us\"\npoll_interval = 60\nheader_name = \"X-Token\"\nheader_value_prefix = \"Token \"\n";
    let (found, required) = jwt(Format::Grafbase, grafbase);
    assert!(required, "it refuses whoever brings no token");
    assert_eq!(
        (&*found.header_name.0, &*found.header_value_prefix),
        ("x-token", "Token")
    );
    assert_eq!(found.jwks[0].issuers, ["https://e/"]);
    assert_eq!(
        found.jwks[0].poll_interval,
        Some(ogive_config::Duration::seconds(60))
    );
    let anonymous = format!("[authentication]\ndefault = \"anonymous\"\n{grafbase}");
    assert!(!jwt(Format::Grafbase, &anonymous).1);
}

/// Where callers were required and how they were known is lost, nobody is let in.
#[test]
fn required_callers_stay_required_without_what_knew_them() {
    const LOST: &[(Format, &str)] = &[
        (
            Format::Apollo,
            "authorization: { require_authentication: true }\n\
             authentication: { router: { jwt: { other: 1, jwks: [ { url: 'https://e/jwks' } ] } } }",
        ),
        (
            Format::Apollo,
            "authorization: { require_authentication: '${env.X}' }",
        ),
        (
            Format::Hive,
            "jwt: { require_authentication: true, other: 1, jwks_providers: [ { source: remote, url: 'https://e/jwks' } ] }",
        ),
        (
            Format::Hive,
            "jwt: { require_authentication: true, allowed_algorithms: [ES512], jwks_providers: [ { source: remote, url: 'https://e/jwks' } ] }",
        ),
        (
            Format::Cosmo,
            "authorization: { require_authentication: true }\n\
             authentication: { jwt: { jwks: [ { url: 'https://e/jwks', other: 1 } ] } }",
        ),
        (
            Format::Grafbase,
            "[extensions.jwt.config]\nurl = \"https://e/jwks\"\ncookie_name = \"c\"",
        ),
        (Format::Grafbase, "[authentication]\ndefault = \"deny\""),
        (
            Format::Grafbase,
            "[[authentication.providers]]\ntype = \"jwt\"",
        ),
    ];
    for (format, text) in LOST {
        let config = loaded(&migrated(*format, text));
        assert!(config.authorization.require_authentication, "{text}");
        assert!(!config.knows_callers(), "{text}");
        assert!(config.authorization.claims.trusted.is_empty(), "{text}");
    }
    // Who was let in without a token still is.
    for (format, text) in [
        (Format::Hive, "jwt: { other: 1 }"),
        (
            Format::Hive,
            "jwt: { require_authentication: false, other: 1 }",
        ),
        (
            Format::Grafbase,
            "[authentication]\ndefault = \"anonymous\"\n[extensions.jwt.config]\nother = 1",
        ),
    ] {
        let config = loaded(&migrated(format, text));
        assert!(!config.authorization.require_authentication, "{text}");
    }
}

#[test]
fn algorithms_that_are_not_known_are_left_out_and_named() {
    let hive = "jwt: { require_authentication: true, allowed_algorithms: [RS256, ES512], \
        jwks_providers: [ { source: remote, url: 'https://e/jwks' } ] }";
    let cosmo = "authorization: { require_authentication: true }\n\
        authentication: { jwt: { jwks: [ { url: 'https://e/jwks', algorithms: [ES512, RS256] } ] } }";
    for (format, text) in [(Format::Hive, hive), (Format::Cosmo, cosmo)] {
        let migration = migrated(format, text);
        let config = loaded(&migration);
        assert!(config.authorization.require_authentication, "{text}");
        let sets = &config.authentication.router.jwt.jwks;
        let words = sets[0].algorithms.iter().flatten().map(|word| word.word());
        assert_eq!(words.collect::<Vec<_>>(), ["RS256"], "{text}");
        assert_eq!(migration.count(Verdict::Unsupported), 1, "{text}");
    }
}

#[test]
fn a_section_without_anything_takes_what_its_older_name_says() {
    for text in [
        "limits:\npreview_operation_limits: { max_depth: 5 }",
        "limits: ~\npreview_operation_limits: { max_depth: 5 }",
        "preview_operation_limits: { max_depth: 5 }\nlimits: {}",
    ] {
        let migration = migrated(Format::Apollo, text);
        assert!(
            migration.yaml.contains("max_depth: 5"),
            "{}",
            migration.yaml
        );
        loaded(&migration);
    }
}
