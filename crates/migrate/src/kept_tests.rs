//! What Ogive can read, or has in another form, is never dropped: the smallest case of each.

use ogive_base::SourceId;
use ogive_config::{AttributeSource, HeaderRule, load};
use ogive_selectors::Selector;

use super::{
    Format, Migration, Verdict,
    closed_tests::{loaded, migrated},
    migrate,
};

/// The note about a key.
fn note<'m>(migration: &'m Migration, from: &str) -> (Verdict, &'m str) {
    let row = migration.report.iter().find(|row| row.from == from);
    let row = row.unwrap_or_else(|| panic!("{from}\n{}", migration.report_text()));
    (row.verdict, &row.note)
}

#[test]
fn headers_keep_saying_what_claims_say() {
    let apollo = "headers: { all: { request: [ { insert: { name: x-user, \
                  from_context: 'apollo::authentication::jwt_claims', path: .org.id, default: none } }, \
                  { insert: { name: x-app, from_context: 'apollo::telemetry::client_name' } } ] } }";
    let hive = "headers: { all: { request: [ { insert: { name: x-user, expression: .request.jwt.claims.org.id } } ] } }";
    let cosmo = "headers: { all: { request: [ { op: set, name: x-user, expression: request.auth.claims.org.id } ] } }";
    for (format, text, path) in [
        (Format::Apollo, apollo, ".org.id"),
        (Format::Hive, hive, "org.id"),
        (Format::Cosmo, cosmo, "org.id"),
    ] {
        let migration = migrated(format, text);
        assert_eq!(
            migration.protections_lost(),
            0,
            "{}",
            migration.report_text()
        );
        let config = loaded(&migration);
        let rule = config.request_header_rules("any").next();
        let Some(HeaderRule::InsertFrom { name, from, .. }) = rule else {
            panic!("{rule:?}\n{}", migration.yaml);
        };
        assert_eq!(name, "x-user");
        assert_eq!(*from, Selector::JwtClaim(path.to_owned()));
    }
    let config = loaded(&migrated(Format::Apollo, apollo));
    assert!(config.request_header_rules("any").any(|rule| matches!(
        rule,
        HeaderRule::InsertFrom {
            from: Selector::ClientName,
            ..
        }
    )));
}

/// Found by a first user: a form that the gateway reads, and names from before version 2.0.
#[test]
fn contexts_are_named_as_ever() {
    let text = "coprocessor: { url: 'http://localhost:1', router: { request: { headers: true, context: { selective: [a, b] } } } }\n\
                headers: { all: { request: [ { insert: { name: x-op, from_context: operation_name } }, \
                { insert: { name: x-user, from_context: 'apollo_authentication::JWT::claims', path: .sub } }, \
                { insert: { name: x-app, from_context: 'apollo_telemetry::client_name' } } ] } }\n";
    let migration = migrated(Format::Apollo, text);
    let report = migration.report_text();
    assert_eq!(migration.protections_lost(), 0, "{report}");
    let config = loaded(&migration);
    let names = ["a", "b"].map(str::to_owned).to_vec();
    assert_eq!(
        config.coprocessor.router.request.0.context,
        ogive_config::coprocessor::ContextWord::Selective(names)
    );
    let rules = config.request_header_rules("any").map(|rule| match rule {
        HeaderRule::InsertFrom { from, .. } => from.clone(),
        rule => panic!("{rule:?}"),
    });
    assert_eq!(
        rules.collect::<Vec<_>>(),
        [
            Selector::OperationName,
            Selector::JwtClaim(".sub".to_owned()),
            Selector::ClientName
        ]
    );
    let text =
        "headers: { all: { request: [ { insert: { name: x, from_context: operation_nam } } ] } }";
    let help = load(SourceId(0), text, &|_| None).unwrap_err()[0]
        .help
        .clone();
    let help = help.unwrap();
    assert!(
        help.contains("`apollo::supergraph::operation_name`"),
        "{help}"
    );
}

#[test]
fn what_is_no_claim_alone_is_named_as_lost() {
    for (format, expression) in [
        (Format::Hive, "'.request.jwt.claims.sub ?? \"x\"'"),
        (Format::Hive, "'.request.jwt.claims.\"https://e/x\"'"),
        (Format::Hive, ".request.jwt.claims."),
        (
            Format::Cosmo,
            "'request.auth.claims.sub + request.auth.claims.iss'",
        ),
        (Format::Cosmo, "request.auth.claims"),
    ] {
        let text = match format {
            Format::Hive => format!(
                "headers: {{ all: {{ request: [ {{ insert: {{ name: x, expression: {expression} }} }} ] }} }}"
            ),
            _ => format!(
                "headers: {{ all: {{ request: [ {{ op: set, name: x, expression: {expression} }} ] }} }}"
            ),
        };
        let migration = migrated(format, &text);
        assert_eq!(
            migration.protections_lost(),
            1,
            "{text}\n{}",
            migration.report_text()
        );
        loaded(&migration);
    }
}

#[test]
fn gateways_that_serve_subscriptions_without_a_switch_go_on_to() {
    let events = "events: { providers: { nats: [ { id: n, url: 'nats://n:4222' } ] } }";
    for (format, text, wanted) in [
        (Format::Cosmo, events, true),
        (Format::Cosmo, "listen_addr: ':1'", true),
        (
            Format::Cosmo,
            "security: { block_subscriptions: true }",
            false,
        ),
        (
            Format::Cosmo,
            "security: { block_subscriptions: { enabled: true, condition: x } }",
            false,
        ),
        (
            Format::Cosmo,
            "security: { block_subscriptions: { enabled: true } }\noverrides: { subgraphs: { a: { subscription_protocol: sse } } }",
            false,
        ),
        (Format::Grafbase, "[graph]\npath = \"/g\"", true),
        (Format::Hive, "subscriptions: { enabled: true }", true),
        (Format::Hive, "http: { port: 1 }", false),
        (Format::Apollo, "supergraph: { path: /g }", false),
    ] {
        let config = loaded(&migrated(format, text));
        assert_eq!(config.subscription.enabled, wanted, "{text}");
    }
}

#[test]
fn clients_keep_the_headers_that_name_them() {
    for (format, text) in [
        (
            Format::Hive,
            "telemetry: { client_identification: { name_header: x-n, version_header: x-v } }",
        ),
        (Format::Cosmo, "client_header: { name: x-n, version: x-v }"),
        (
            Format::Apollo,
            "telemetry: { apollo: { client_name_header: x-n, client_version_header: x-v } }",
        ),
    ] {
        let clients = loaded(&migrated(format, text)).telemetry.clients;
        let first = |names: &[ogive_config::HeaderName]| names.first().map(|name| name.0.clone());
        assert_eq!(
            first(&clients.name_headers).as_deref(),
            Some("x-n"),
            "{text}"
        );
        assert_eq!(
            first(&clients.version_headers).as_deref(),
            Some("x-v"),
            "{text}"
        );
    }
}

#[test]
fn key_sets_stay_where_something_beside_them_is_lost() {
    let hive = migrated(
        Format::Hive,
        "jwt: { require_authentication: true, forward_claims_to_upstream_extensions: { enabled: true, field_name: jwt }, \
         jwks_providers: [ { source: remote, url: 'https://e/jwks' } ] }",
    );
    let config = loaded(&hive);
    assert_eq!(config.authentication.router.jwt.jwks.len(), 1);
    assert!(config.authorization.require_authentication);
    let (verdict, why) = note(&hive, "jwt.forward_claims_to_upstream_extensions");
    assert_eq!(verdict, Verdict::Unsupported);
    assert!(why.contains("jwt_claim"), "{why}");

    let cosmo = migrated(
        Format::Cosmo,
        "authentication: { jwt: { jwks: [ { url: 'https://a/jwks' }, \
         { secret: s, symmetric_algorithm: HS256, header_key_id: k }, { url: 'https://b/jwks' } ] } }\n\
         authorization: { require_authentication: true }",
    );
    let config = loaded(&cosmo);
    assert_eq!(config.authentication.router.jwt.jwks.len(), 2);
    assert!(config.authorization.require_authentication);
    let (verdict, why) = note(&cosmo, "authentication.jwt.jwks.1");
    assert_eq!(verdict, Verdict::Unsupported);
    assert!(
        why.contains("refused now") && why.contains("`oct`"),
        "{why}"
    );
}

#[test]
fn rates_stay_those_of_each_caller() {
    let rate = |suffix: &str| {
        format!(
            "authentication: {{ jwt: {{ jwks: [ {{ url: 'https://a/jwks' }} ] }} }}\n\
             rate_limit: {{ enabled: true, simple_strategy: {{ rate: 60, period: 60s }}, key_suffix_expression: {suffix} }}"
        )
    };
    let found = |text: &str| {
        let rates = loaded(&migrated(Format::Cosmo, text)).traffic_shaping;
        rates.all.rate_limits[0].key.clone()
    };
    let by_claim = found(&rate("request.auth.claims.sub"));
    assert_eq!(by_claim, [Selector::JwtClaim("sub".into())]);
    let by_header = found(&rate("\"request.header.Get('X-Key')\""));
    assert_eq!(by_header, [Selector::RequestHeader("x-key".into())]);
    // Whoever reads the report knows what holds until something is done.
    let other = migrated(Format::Cosmo, &rate("request.url.path"));
    let (_, why) = note(&other, "rate_limit.key_suffix_expression");
    assert!(why.contains("all clients share the one rate"), "{why}");
    assert_eq!(other.protections_lost(), 1);
    // Without key sets nobody has claims.
    let text = "rate_limit: { enabled: true, simple_strategy: { rate: 60, period: 60s }, key_suffix_expression: request.auth.claims.sub }";
    let unknown = migrated(Format::Cosmo, text);
    assert_eq!(unknown.protections_lost(), 1);
    loaded(&unknown);
}

#[test]
fn limits_on_costs_stay_limits() {
    for (format, text) in [
        (
            Format::Grafbase,
            "[complexity_control]\nmode = \"enforce\"\nlimit = 700\nlist_size = 7",
        ),
        (
            Format::Cosmo,
            "security: { cost_control: { enabled: true, mode: enforce, max_estimated_limit: 700, estimated_list_size: 7 } }",
        ),
    ] {
        let migration = migrated(format, text);
        assert_eq!(
            migration.protections_lost(),
            0,
            "{}",
            migration.report_text()
        );
        let demand = loaded(&migration).demand_control;
        assert!(demand.is_enforced(), "{text}");
        let estimated = demand.strategy.static_estimated;
        assert_eq!((estimated.max.get(), estimated.list_size.get()), (700, 7));
    }
    let unknown = migrated(
        Format::Grafbase,
        "[complexity_control]\nmode = \"other\"\nlimit = 700",
    );
    assert_eq!(unknown.protections_lost(), 1);
}

#[test]
fn whoever_ran_programs_is_told_of_coprocessors() {
    for (format, text, from) in [
        (Format::Apollo, "plugins: { a.b: { c: 1 } }", "plugins"),
        (Format::Cosmo, "modules: { mine: { value: 1 } }", "modules"),
        (Format::Grafbase, "[hooks]\nlocation = \"x\"", "hooks"),
    ] {
        let migration = migrated(format, text);
        let (_, why) = note(&migration, from);
        assert!(why.contains("coprocessor"), "{from}: {why}");
        assert!(migration.yaml.contains("coprocessor"));
    }
    let key = "coprocessor: { url: 'http://127.0.0.1:1', router: { request: { headers: true, detached: true } } }";
    let migration = migrated(Format::Apollo, key);
    let (_, why) = note(&migration, "coprocessor.router.request.detached");
    assert!(why.contains("stages that are brought over"), "{why}");
}

#[test]
fn attributes_keep_saying_what_they_say() {
    let apollo = "telemetry: { instrumentation: { spans: { router: { attributes: { x.user: { request_header: x-user, default: none }, \
                  http.request.method: true, secret: { request_header: authorization } } }, \
                  supergraph: { attributes: { name: { operation_name: string } } }, \
                  subgraph: { attributes: { where: { subgraph_name: true }, b: { baggage: a } } } }, \
                  instruments: { router: { http.server.request.duration: { attributes: { app: { request_header: x-app } } }, \
                  http.server.active_requests: { attributes: { a: { request_header: a } } } } }, \
                  events: { router: { response: { level: info, attributes: { shop: { request_header: x-shop } } } } } } }";
    let migration = migrated(Format::Apollo, apollo);
    let telemetry = loaded(&migration).telemetry;
    let header = |name: &str| AttributeSource::Selector(Selector::RequestHeader(name.into()));
    let spans = &telemetry.instrumentation.spans;
    let user = &spans.router.attributes.0["x.user"];
    assert_eq!(
        (&user.from, user.default.as_deref()),
        (&header("x-user"), Some("none"))
    );
    assert_eq!(spans.router.attributes.0.len(), 1);
    let name = &spans.supergraph.attributes.0["name"].from;
    assert_eq!(*name, AttributeSource::Selector(Selector::OperationName));
    let place = &spans.subgraph.attributes.0["where"].from;
    assert_eq!(*place, AttributeSource::Selector(Selector::SubgraphName));
    let metric = &telemetry.instrumentation.instruments.router.0.0["app"].from;
    assert_eq!(*metric, header("x-app"));
    assert_eq!(
        telemetry.access_log.attributes.0["shop"].from,
        header("x-shop")
    );
    assert!(telemetry.access_log.enabled);
    let at = |rest: &str| note(&migration, &format!("telemetry.instrumentation.{rest}"));
    let verdicts = [
        at("spans.router.attributes.\"http.request.method\"").0,
        at("spans.router.attributes.secret").0,
        at("spans.subgraph.attributes.b").0,
        at("instruments.router.\"http.server.active_requests\"").0,
    ];
    assert_eq!(
        verdicts,
        [
            Verdict::NotNeeded,
            Verdict::Unsupported,
            Verdict::Unsupported,
            Verdict::Unsupported
        ]
    );

    let cosmo = "telemetry: { attributes: [ { key: shop, default: none, value_from: { request_header: x-shop } }, \
                 { key: place, default: eu } ] }\n\
                 authentication: { jwt: { jwks: [ { url: 'https://e.example/jwks' } ] } }\n\
                 access_logs: { enabled: true, router: { fields: [ { key: user, value_from: { expression: request.auth.claims.sub } }, \
                 { key: name, value_from: { context_field: operation_name } }, { key: odd, value_from: { context_field: operation_hash } } ] } }";
    let migration = migrated(Format::Cosmo, cosmo);
    let telemetry = loaded(&migration).telemetry;
    let (spans, metrics) = (
        &telemetry.instrumentation.spans.router.attributes.0,
        &telemetry.instrumentation.instruments.router.0.0,
    );
    assert_eq!(spans, metrics);
    assert_eq!(spans["place"].from, AttributeSource::Static("eu".into()));
    assert_eq!(spans["shop"].from, header("x-shop"));
    let log = &telemetry.access_log.attributes.0;
    let claim = AttributeSource::Selector(Selector::JwtClaim("sub".into()));
    assert_eq!(log["user"].from, claim);
    assert_eq!(log.len(), 2);
    assert_eq!(
        note(&migration, "access_logs.router.fields.2").0,
        Verdict::Unsupported
    );
}

/// What cannot be called so here, or would look at what nobody has, is named, and the rest can be served with.
#[test]
fn attributes_that_cannot_be_are_named_as_lost() {
    let apollo = "telemetry: { instrumentation: { instruments: { router: { http.server.request.duration: { attributes: { \
                  le: { request_header: x }, 'a b': { request_header: y }, http_response_status_code: { request_header: z }, \
                  __a: { request_header: a }, fine: { request_header: f } } } } }, \
                  spans: { router: { attributes: { le: { request_header: x }, entry: { request_context: e } } } }, \
                  events: { router: { request: { level: info, attributes: { status: { request_header: x-user } } } } } } }";
    let cosmo = "authentication: { jwt: { jwks: [ { secret: s, algorithm: HS256 } ] } }\n\
                 access_logs: { enabled: true, router: { fields: [ { key: operation_name, value_from: { context_field: operation_name } }, \
                 { key: user, value_from: { expression: request.auth.claims.sub } } ] } }";
    for (format, text, lost) in [
        (
            Format::Apollo,
            apollo,
            &[
                r#"telemetry.instrumentation.instruments.router."http.server.request.duration".attributes.le"#,
                r#"telemetry.instrumentation.instruments.router."http.server.request.duration".attributes.a b"#,
                r#"telemetry.instrumentation.instruments.router."http.server.request.duration".attributes.http_response_status_code"#,
                r#"telemetry.instrumentation.instruments.router."http.server.request.duration".attributes.__a"#,
                "telemetry.instrumentation.spans.router.attributes.entry",
                "telemetry.instrumentation.events.router.request.attributes.status",
            ][..],
        ),
        (
            Format::Cosmo,
            cosmo,
            &["access_logs.router.fields.0", "access_logs.router.fields.1"],
        ),
    ] {
        let migration = migrated(format, text);
        let telemetry = loaded(&migration).telemetry;
        for from in lost {
            assert_eq!(note(&migration, from).0, Verdict::Unsupported, "{from}");
        }
        let metrics = &telemetry.instrumentation.instruments.router.0.0;
        assert_eq!(metrics.contains_key("fine"), format == Format::Apollo);
        assert!(telemetry.access_log.attributes.0.is_empty());
    }
}

#[test]
fn rates_of_subgraphs_are_kept() {
    let apollo = "traffic_shaping: { all: { global_rate_limit: { capacity: 5, interval: 2s } }, \
                  subgraphs: { a: { global_rate_limit: { capacity: 7, interval: 1s } } } }";
    let grafbase = "[subgraphs.a.rate_limit]\nlimit = 7\nduration = \"1s\"";
    let config = loaded(&migrated(Format::Apollo, apollo));
    let rates = |rates: &[ogive_config::SubgraphRateRule]| -> Vec<(usize, u128)> {
        let rates = rates.iter();
        let rates = rates.map(|rate| (rate.capacity.get(), rate.interval.0.as_millis()));
        rates.collect()
    };
    assert_eq!(rates(&config.traffic_shaping.all.rate_limits), [(5, 2000)]);
    for config in [config, loaded(&migrated(Format::Grafbase, grafbase))] {
        let own = &config.traffic_shaping.subgraphs["a"].rate_limits;
        assert_eq!(rates(own), [(7, 1000)]);
    }
}

#[test]
fn conditions_of_stages_keep_holding() {
    let apollo = "coprocessor: { url: 'http://127.0.0.1:1', router: { request: { headers: true, \
                  condition: { any: [ { exists: { request_header: x-key } }, { not: { eq: [ { request_method: true }, GET ] } } ] } } } }";
    let migration = migrated(Format::Apollo, apollo);
    let stage = loaded(&migration).coprocessor.router.request.0;
    assert_eq!(
        stage.condition.map(|found| found.0.selectors().len()),
        Some(2)
    );
    assert!(stage.headers);
}

/// Keys that are called `x`, or have dots in them, in every format.
#[test]
fn entries_are_kept_whatever_they_are_called() {
    let grafbase = "[subgraphs.x.rate_limit]\nlimit = 5\nduration = '1s'\n[subgraphs.y]\nurl = 'http://y'\n\
                    [subgraphs.'a.b'.rate_limit]\nlimit = 6\nduration = '1s'\n";
    let migration = migrated(Format::Grafbase, grafbase);
    let config = loaded(&migration);
    let names: Vec<&str> = config
        .traffic_shaping
        .subgraphs
        .iter()
        .filter(|(_, options)| !options.rate_limits.is_empty())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["a.b", "x"], "{}", migration.report_text());

    let hive = "override_labels: { x: true, beta: false, a.b: true }\n\
                override_subgraph_urls: { subgraphs: { a.b: { url: 'http://a' }, x: { url: 'http://x' } } }\n\
                subscriptions: { enabled: true, websocket: { subgraphs: { a.b: { path: /ws } } } }\n\
                error_masking: { all: { enabled: true }, subgraphs: { a.b: { enabled: false } } }";
    let config = loaded(&migrated(Format::Hive, hive));
    assert_eq!(config.override_labels.labels.len(), 3);
    let urls: Vec<&String> = config.override_subgraph_url.keys().collect();
    assert_eq!(urls, ["a.b", "x"]);
    let passthrough = &config.subscription.mode.passthrough.subgraphs;
    assert!(passthrough.contains_key("a.b"));
    assert!(config.include_subgraph_errors.subgraphs.contains_key("a.b"));

    let apollo = "override_subgraph_url: { a.b: 'http://a' }\n\
                  headers: { subgraphs: { a.b: { request: [ { propagate: { named: x-a } } ] } } }\n\
                  traffic_shaping: { subgraphs: { a.b: { timeout: 3s, experimental_retry: { retry_mutations: false } } } }\n\
                  telemetry: { exporters: { tracing: { common: { resource: { x: one, deployment.environment: two } } } } }\n\
                  persisted_queries: { enabled: false }";
    let migration = migrated(Format::Apollo, apollo);
    let config = loaded(&migration);
    assert!(config.override_subgraph_url.contains_key("a.b"));
    assert_eq!(config.request_header_rules("a.b").count(), 1);
    assert!(config.traffic_shaping.subgraphs.contains_key("a.b"));
    assert_eq!(config.telemetry.resource.len(), 2);
    assert_eq!(
        note(&migration, "override_subgraph_url.\"a.b\"").0,
        Verdict::Kept
    );
    // A key with a dot is not the key below another one.
    let migration = migrated(
        Format::Apollo,
        "limits: { max_depth: 3 }\nlimits.max_depth: 4",
    );
    assert_eq!(loaded(&migration).limits.max_depth, Some(3));
    assert!(note(&migration, "\"limits.max_depth\"").0 == Verdict::Unsupported);
}

#[test]
fn costs_and_logged_documents_of_apollo_router_are_kept() {
    let apollo = "demand_control: { enabled: true, mode: measure, strategy: { static_estimated: { list_size: 10, max: 1000, \
                  actual_cost_mode: by_response_shape } } }\n\
                  persisted_queries: { enabled: true, log_unknown: true, safelist: { enabled: true }, local_manifests: [a.json] }\n\
                  coprocessor: { url: 'http://127.0.0.1:1', supergraph: { response: { \
                  condition: { eq: [ true, { is_primary_response: true } ] }, body: true } } }\n\
                  telemetry: { instrumentation: { instruments: { supergraph: { cost.estimated: true, cost.actual: true, \
                  cost.delta: { attributes: { a: { request_header: x-a } } } } } } }";
    let migration = migrated(Format::Apollo, apollo);
    assert_eq!(
        migration.protections_lost(),
        0,
        "{}",
        migration.report_text()
    );
    let config = loaded(&migration);
    let estimated = &config.demand_control.strategy.static_estimated;
    assert_eq!(
        estimated.actual_cost_mode,
        Some(ogive_config::ActualCostMode::ByResponseShape)
    );
    assert!(config.persisted_queries.log_unknown);
    assert_eq!(
        config.persisted_queries.mode,
        ogive_config::PersistedMode::Require
    );
    assert!(config.coprocessor.supergraph.response.0.condition.is_some());
    let metric = |name: &str| {
        let from = format!("telemetry.instrumentation.instruments.supergraph.\"{name}\"");
        note(&migration, &from).0
    };
    assert_eq!(metric("cost.estimated"), Verdict::NotNeeded);
    assert_eq!(metric("cost.actual"), Verdict::NotNeeded);
    assert_eq!(metric("cost.delta"), Verdict::Unsupported);
    // What sums up the costs of subgraphs is counted in another way.
    let by_subgraph = apollo.replace("by_response_shape", "by_subgraph");
    assert_eq!(migrated(Format::Apollo, &by_subgraph).protections_lost(), 1);
}

#[test]
fn headers_and_urls_of_hive_router_keep_their_exceptions() {
    let hive = "headers: { all: { request: [ { propagate: { matching: '^x-.*', exclude: ['^x-internal-.*', x-secret] } } ] } }\n\
                override_subgraph_urls: { products: { url: { expression: 'if .request.headers.\"x-stage\" == \"canary\" \
                { \"http://canary\" } else { .default }' } }, reviews: { url: { expression: .default } }, \
                users: { url: { expression: 'exists(.request)' } } }";
    let migration = migrated(Format::Hive, hive);
    let config = loaded(&migration);
    let rules: Vec<&HeaderRule> = config.request_header_rules("any").collect();
    let [
        HeaderRule::Propagate { .. },
        HeaderRule::Remove(_),
        HeaderRule::Remove(_),
    ] = rules[..]
    else {
        panic!("{rules:?}");
    };
    assert_eq!(config.subgraph_urls("products").count(), 1);
    assert_eq!(config.subgraph_urls("reviews").count(), 0);
    assert_eq!(
        note(&migration, "override_subgraph_urls.reviews.url").0,
        Verdict::NotNeeded
    );
    assert_eq!(
        note(&migration, "override_subgraph_urls.users.url").0,
        Verdict::Unsupported
    );
}

/// The report begins with what needs work, and fits a terminal.
#[test]
fn what_is_unsupported_comes_first_and_lines_are_short() {
    let sample = include_str!("../tests/apollo.yaml");
    let text = migrated(Format::Apollo, sample).report_text();
    let long = text.lines().find(|line| line.chars().count() > 120);
    assert_eq!(long, None);
    let verdicts = text.lines().filter_map(|line| line.split("  ").next());
    let is_unsupported: Vec<bool> = verdicts
        .filter(|word| ["kept", "renamed", "added", "not needed", "unsupported"].contains(word))
        .map(|word| word == "unsupported")
        .collect();
    let first_other = is_unsupported.iter().position(|unsupported| !unsupported);
    let last = is_unsupported.iter().rposition(|unsupported| *unsupported);
    assert!(last < first_other, "{text}");
    assert!(last.is_some_and(|last| last > 1), "{text}");
}

#[test]
fn aliases_stand_for_what_is_written_elsewhere() {
    let hive = "limits: { max_depth: &deep { n: 7 }, max_aliases: *deep }\n\
                traffic_shaping: { all: { circuit_breaker: &breaker { enabled: true, volume_threshold: 5 } }, \
                subgraphs: { a: { circuit_breaker: *breaker } } }";
    let config = loaded(&migrated(Format::Hive, hive));
    assert_eq!(config.limits.max_depth, Some(7));
    assert_eq!(config.limits.max_aliases, Some(7));
    assert!(
        config.traffic_shaping.subgraphs["a"]
            .circuit_breaker
            .is_some()
    );
    // Aliases that expand without bound, or contain themselves, are refused.
    let mut bomb = "a0: &a0 [x, x]\n".to_owned();
    for level in 1..40 {
        let below = level - 1;
        bomb.push_str(&format!("a{level}: &a{level} [*a{below}, *a{below}]\n"));
    }
    for text in [bomb.as_str(), "a: &a [*a]"] {
        assert!(migrate(SourceId(0), text, Format::Hive).is_err());
    }
}

/// Where a value comes from the environment, it is kept, and checked when the result is loaded.
#[test]
fn key_sets_and_resources_may_come_from_the_environment() {
    let apollo = "authentication: { router: { jwt: { jwks: [ { url: '${env.KEYS:-http://127.0.0.1:9100/jwks.json}' } ] } } }";
    let migration = migrated(Format::Apollo, apollo);
    assert_eq!(
        migration.protections_lost(),
        0,
        "{}",
        migration.report_text()
    );
    assert!(
        migration
            .yaml
            .contains("${env.KEYS:-http://127.0.0.1:9100/jwks.json}")
    );
    let hive = "telemetry: { resource: { attributes: { deployment.environment: { expression: 'env(\"A\", \"prod\")' } } } }";
    let config = loaded(&migrated(Format::Hive, hive));
    assert_eq!(config.telemetry.resource["deployment.environment"], "1");
    let grafbase = "[cors]\nallow_origins = 'https://a.example'\nexpose_headers = 'x-request-id'";
    let config = loaded(&migrated(Format::Grafbase, grafbase));
    assert_eq!(config.cors.expose_headers.len(), 1);
    // A list of values is not cut to its first.
    let apollo = "telemetry: { exporters: { tracing: { otlp: { enabled: true, http: { headers: { x-a: [one, two] } } } } } }";
    let migration = migrated(Format::Apollo, apollo);
    assert_eq!(
        migration.count(Verdict::Unsupported),
        1,
        "{}",
        migration.report_text()
    );
}
