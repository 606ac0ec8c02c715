//! What was off stays off, what was on stays on, and what was bounded stays bounded: the smallest case of each.

use ogive_base::SourceId;
use ogive_config::{
    DemandControlMode, Expansion, HeaderRule, HeaderSelector, ResponseHeaderRule, StorageWord,
    codes,
};

use super::{
    Format, Migration, Verdict,
    closed_tests::{loaded, migrated},
};

fn verdict(migration: &Migration, from: &str) -> Option<Verdict> {
    let row = migration.report.iter().find(|row| row.from == from);
    row.map(|row| row.verdict)
}

/// A result that cannot be read is told from one whose values are elsewhere.
#[test]
fn results_that_cannot_be_loaded_are_noticed() {
    let mut migration = migrated(Format::Apollo, "supergraph: { listen: '${env.ADDRESS}' }");
    let from = Expansion {
        env: &|_| None,
        file: &|_| Err("not here".to_owned()),
    };
    let read = migration.loaded(SourceId(0), from);
    assert_eq!(read.errors, []);
    assert_eq!(read.missing.len(), 1, "{:?}", read.missing);
    migration
        .yaml
        .push_str("apq: { enabled: '${env.APQ}' }\nbatching: { enabled: maybe }\n");
    let found = migration.loaded(SourceId(0), from).errors;
    let codes: Vec<&str> = found.iter().map(|error| error.code).collect();
    assert_eq!(codes, [codes::INVALID_VALUE], "{found:?}");
}

/// What is no regular expression stays in the file, where it is found when that is loaded.
#[test]
fn broken_patterns_are_not_dropped() {
    let rules = "[ { propagate: { matching: '([' } } ]";
    for (format, way) in [
        (Format::Apollo, "request"),
        (Format::Apollo, "response"),
        (Format::Hive, "request"),
        (Format::Cosmo, "request"),
    ] {
        let rules = match format {
            Format::Cosmo => "[ { op: propagate, matching: '([' } ]",
            _ => rules,
        };
        let migration = migrated(format, &format!("headers: {{ all: {{ {way}: {rules} }} }}"));
        let from = Expansion {
            env: &|_| None,
            file: &|_| Err("not here".to_owned()),
        };
        let found = migration.loaded(SourceId(0), from).errors;
        let messages: Vec<&str> = found.iter().map(|error| &*error.message).collect();
        assert!(
            matches!(messages.as_slice(), [one] if one.starts_with("`([` is no regular expression")),
            "{messages:?}\n{}",
            migration.yaml
        );
    }
}

/// An address of its own for the events of subgraphs may be one that others do not reach.
#[test]
fn an_own_address_of_callbacks_is_lost_as_a_protection() {
    let of = |listen: &str| {
        let text = format!(
            "supergraph: {{ listen: '0.0.0.0:4000' }}\n\
             subscription: {{ enabled: true, mode: {{ callback: {{ public_url: 'http://a/callback', listen: '{listen}', \
             subgraphs: [a] }} }} }}\n"
        );
        let migration = migrated(Format::Apollo, &text);
        loaded(&migration);
        let row = |row: &&super::ReportRow| row.from == "subscription.mode.callback.listen";
        let row = migration.report.iter().find(row).unwrap();
        (row.verdict, row.protection)
    };
    assert_eq!(of("127.0.0.1:4002"), (Verdict::Unsupported, true));
    assert_eq!(of("0.0.0.0:4000"), (Verdict::NotNeeded, false));
}

/// Hive Router's CORS is off unless its switch is on.
#[test]
fn cors_that_is_off_stays_off() {
    for text in [
        "cors: { enabled: false, allow_any_origin: true }",
        "cors: { policies: [ { origins: [https://a.example.com] } ] }",
        "cors: { enabled: { from_env: X }, allow_any_origin: true }",
    ] {
        let migration = migrated(Format::Hive, text);
        let cors = loaded(&migration).cors;
        assert!(!cors.allow_any_origin && cors.policies.is_empty(), "{text}");
        assert!(verdict(&migration, "cors").is_some(), "{text}");
    }
    let on = "cors: { enabled: true, policies: [ { origins: [https://a.example.com] } ] }";
    assert_eq!(loaded(&migrated(Format::Hive, on)).cors.policies.len(), 1);
}

#[test]
fn a_guard_that_is_written_down_is_on_unless_it_is_off() {
    for (text, on) in [
        ("csrf: { required_headers: [x-a] }", true),
        ("csrf: { enabled: false, required_headers: [x-a] }", false),
        ("http: { port: 1 }", false),
    ] {
        let csrf = loaded(&migrated(Format::Hive, text)).csrf;
        assert_eq!(csrf.enabled, on, "{text}");
    }
}

/// Of two bounds that are one here the smaller holds, in whichever order they are written.
#[test]
fn the_smaller_of_two_bounds_holds() {
    let depth = "security: { complexity_limits: { depth: { enabled: true, limit: 3 } }, depth_limit: { enabled: true, limit: 4 } }";
    let other = "security: { depth_limit: { enabled: true, limit: 4 }, complexity_limits: { depth: { enabled: true, limit: 3 } } }";
    for text in [depth, other] {
        let migration = migrated(Format::Cosmo, text);
        assert_eq!(loaded(&migration).limits.max_depth, Some(3), "{text}");
        let report = migration.report_text();
        let words: Vec<&str> = report.split_whitespace().collect();
        assert!(words.join(" ").contains("the smaller of the two holds"));
    }
    let files = "file_upload: { max_size: 1MB, max_file_size: 900kB }";
    let config = loaded(&migrated(Format::Cosmo, files));
    assert_eq!(config.file_uploads.max_file_size.0, 900_000);
    let introspection = "introspection: { enabled: false }\nintrospection_enabled: true";
    assert!(
        !loaded(&migrated(Format::Cosmo, introspection))
            .supergraph
            .introspection
    );
}

/// Go's 0 is no bound at all, and no bound here is 0.
#[test]
fn bounds_of_zero_are_left_out_and_named() {
    let text =
        "traffic_shaping: { all: { request_timeout: 0s }, router: { max_request_body_size: 0 } }";
    let migration = migrated(Format::Cosmo, text);
    let config = loaded(&migration);
    assert_eq!(
        config.limits.http_max_request_bytes,
        ogive_config::Config::default()
            .limits
            .http_max_request_bytes
    );
    for from in [
        "traffic_shaping.all.request_timeout",
        "traffic_shaping.router.max_request_body_size",
    ] {
        assert_eq!(verdict(&migration, from), Some(Verdict::Unsupported));
    }
    assert_eq!(migration.protections_lost(), 0);
    for text in [
        "watch_config: { enabled: true, interval: 0s }",
        "traffic_shaping: { all: { max_idle_conns: 0 } }",
        "security: { cost_control: { enabled: true, mode: enforce, max_estimated_limit: 0, estimated_list_size: 0 } }",
    ] {
        loaded(&migrated(Format::Cosmo, text));
    }
}

#[test]
fn names_of_other_versions_are_known() {
    let demand = "preview_demand_control: { enabled: true, mode: enforce, strategy: { static_estimated: { max: 9, list_size: 8 } } }";
    let migration = migrated(Format::Apollo, demand);
    let config = loaded(&migration).demand_control;
    assert_eq!(
        (config.enabled, config.mode),
        (true, Some(DemandControlMode::Enforce))
    );
    assert_eq!(config.strategy.static_estimated.max.get(), 9);
    assert_eq!(
        verdict(&migration, "preview_demand_control.mode"),
        Some(Verdict::Renamed)
    );

    let limits = "limits: { router: { max_depth: 3 }, subgraph: { all: { http_max_response_size: 2MB }, subgraphs: { a: { http_max_response_size: 1MB } } } }";
    let config = loaded(&migrated(Format::Apollo, limits));
    assert_eq!(config.limits.max_depth, Some(3));
    assert_eq!(config.traffic("a").response_max_bytes, 1_000_000);
    assert_eq!(config.traffic("b").response_max_bytes, 2_000_000);

    let documents = "preview_persisted_queries: { enabled: true, safelist: { enabled: true } }\nauthorization: { preview_directives: { enabled: false } }";
    let config = loaded(&migrated(Format::Apollo, documents));
    assert_eq!(
        config.persisted_queries.mode,
        ogive_config::PersistedMode::Require
    );
    assert_eq!(
        config.authorization.directives,
        ogive_config::AuthorizationDirectives::Ignore
    );
}

fn headers(format: Format, rules: &str) -> Vec<HeaderRule> {
    let text = format!("headers: {{ all: {{ request: {rules} }} }}");
    loaded(&migrated(format, &text)).headers.all.request
}

#[test]
fn lists_of_headers_are_several_rules() {
    let matching = |text: &str| HeaderSelector::Matching(text.to_owned());
    let rules = headers(
        Format::Hive,
        "[ { propagate: { matching: [^x-q, ^x-w] } }, { remove: { matching: [^x-q-a] } } ]",
    );
    let wanted = [
        HeaderRule::Propagate {
            from: matching("^x-q"),
            rename: None,
            default: None,
        },
        HeaderRule::Propagate {
            from: matching("^x-w"),
            rename: None,
            default: None,
        },
        HeaderRule::Remove(matching("^x-q-a")),
    ];
    assert_eq!(rules, wanted);
    let response = "headers: { all: { response: [ { remove: { matching: [^x-q, ^x-w] } } ] } }";
    let rules = loaded(&migrated(Format::Hive, response))
        .headers
        .all
        .response;
    assert_eq!(rules[1], ResponseHeaderRule::Remove(matching("^x-w")));
}

/// The first of several headers that is there counts, and the default if none is.
#[test]
fn a_default_of_several_headers_is_that_of_the_last() {
    let rules = headers(
        Format::Hive,
        "[ { propagate: { named: [x-a, x-b], rename: x-c, default: d } } ]",
    );
    let defaults: Vec<Option<&str>> = rules
        .iter()
        .map(|rule| match rule {
            HeaderRule::Propagate {
                default, rename, ..
            } if rename.as_deref() == Some("x-c") => default.as_deref(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(defaults, [None, Some("d")]);
    let text =
        "headers: { all: { request: [ { propagate: { named: [x-a, x-b], default: d } } ] } }";
    let migration = migrated(Format::Hive, text);
    assert_eq!(loaded(&migration).headers.all.request.len(), 2);
    let from = "headers.all.request.0.propagate.default";
    assert_eq!(verdict(&migration, from), Some(Verdict::Unsupported));
}

#[test]
fn headers_keep_saying_what_the_operation_is_called() {
    for (format, rules) in [
        (
            Format::Apollo,
            "[ { insert: { name: x-op, path: .operationName, default: none } } ]",
        ),
        (
            Format::Hive,
            "[ { insert: { name: x-op, expression: .request.operation.name } } ]",
        ),
        (
            Format::Cosmo,
            "[ { op: set, name: x-op, value_from: { context_field: operation_name } } ]",
        ),
    ] {
        let found = headers(format, rules);
        let is_name = matches!(
            &found[0],
            HeaderRule::InsertFrom {
                from: ogive_selectors::Selector::OperationName,
                ..
            }
        );
        assert!(is_name, "{found:?}");
    }
}

/// Cosmo Router counts what it asks subgraphs, in Redis.
#[test]
fn rates_count_what_they_counted() {
    let text = "rate_limit: { enabled: true, simple_strategy: { rate: 5, period: 10s }, storage: { urls: ['redis://r:6379'], key_prefix: c, cluster_enabled: true } }";
    let migration = migrated(Format::Cosmo, text);
    let config = loaded(&migration);
    assert!(config.traffic_shaping.router.rate_limit.is_none());
    let rate = &config.traffic_shaping.all.rate_limits[0];
    assert_eq!((rate.capacity.get(), rate.interval.0.as_secs()), (5, 10));
    assert_eq!(rate.storage, StorageWord::Redis);
    let redis = config.store.redis.unwrap();
    assert_eq!(
        (&*redis.urls[0], &*redis.namespace),
        ("redis://r:6379", "c")
    );
    assert_eq!(redis.mode, ogive_config::RedisMode::Cluster);
    assert_eq!(
        migration.protections_lost(),
        0,
        "{}",
        migration.report_text()
    );

    let text = "[gateway.rate_limit]\nstorage = \"redis\"\nglobal.limit = 5\nglobal.duration = \"1s\"\nredis.url = \"redis://r:6379\"";
    let config = loaded(&migrated(Format::Grafbase, text));
    assert_eq!(
        config.traffic_shaping.router.rate_limits[0].storage,
        StorageWord::Redis
    );
    assert!(config.store.redis.is_some());
}

/// Documents that clients register stay in Redis; two servers are not one.
#[test]
fn registered_documents_stay_in_redis() {
    let apollo = "apq: { router: { cache: { redis: { urls: ['rediss://r:6379'], ttl: 1h, timeout: 5ms, namespace: n, tls: { certificate_authorities: ca.pem } } } } }";
    let config = loaded(&migrated(Format::Apollo, apollo));
    assert_eq!(config.apq.router.cache.storage, StorageWord::Redis);
    let tls = config.store.redis.unwrap().tls.unwrap();
    assert_eq!(tls.certificate_authorities.as_deref(), Some("ca.pem"));
    let cosmo = "rate_limit: { enabled: true, simple_strategy: { rate: 5, period: 10s }, storage: { urls: ['redis://a:6379'] } }\n\
                 automatic_persisted_queries: { storage: { provider_id: b } }\n\
                 storage_providers: { redis: [ { id: b, urls: ['redis://b:6379'] } ] }";
    let migration = migrated(Format::Cosmo, cosmo);
    let config = loaded(&migration);
    assert_eq!(config.apq.router.cache.storage, StorageWord::Local);
    assert_eq!(config.store.redis.unwrap().urls, ["redis://a:6379"]);
    let from = "automatic_persisted_queries.storage";
    assert_eq!(verdict(&migration, from), Some(Verdict::Unsupported));
}

#[test]
fn tls_that_is_off_stays_off() {
    let files = "cert_file: a.pem, key_file: b.pem";
    for (switch, on) in [
        ("enabled: false,", false),
        ("", false),
        ("enabled: true,", true),
    ] {
        let text = format!("tls: {{ server: {{ {switch} {files} }} }}");
        let config = loaded(&migrated(Format::Cosmo, &text));
        assert_eq!(config.tls.supergraph.is_some(), on, "{text}");
    }
}

/// Hive Router's keys for costs are ours.
#[test]
fn costs_of_hive_stay_bounded() {
    let text = "demand_control: { enabled: true, mode: enforce, expose_headers: { max: true }, strategy: { static_estimated: { max: 10, \
                list_size: 7, actual_cost_mode: by_response_shape, subgraph: { all: { max: 5 }, subgraphs: { a: { max: 4, list_size: 3 } } } } } }";
    let migration = migrated(Format::Hive, text);
    assert_eq!(
        migration.protections_lost(),
        0,
        "{}",
        migration.report_text()
    );
    let costs = loaded(&migration).demand_control;
    assert!(costs.is_enforced() && costs.expose_headers);
    let estimated = costs.strategy.static_estimated;
    assert_eq!((estimated.max.get(), estimated.list_size.get()), (10, 7));
    let off = text.replace("enabled: true", "enabled: false");
    let migration = migrated(Format::Hive, &off);
    assert_eq!(
        migration.protections_lost(),
        0,
        "{}",
        migration.report_text()
    );
    assert!(!loaded(&migration).demand_control.enabled);
}

#[test]
fn a_guard_asks_for_the_header_that_clients_send() {
    let csrf = loaded(&migrated(Format::Grafbase, "[csrf]\nenabled = true")).csrf;
    let names: Vec<&str> = csrf.required_headers.iter().map(String::as_str).collect();
    assert_eq!(
        (csrf.enabled, &names[..]),
        (true, &["x-grafbase-csrf-protection"][..])
    );
}

/// Whoever was let in without a token still is, and whoever was not is not.
#[test]
fn callers_of_grafbase_are_required_as_before() {
    let extension =
        "[extensions.jwt]\nversion = \"1.1\"\n[extensions.jwt.config]\nurl = \"https://e/jwks\"\n";
    let by_extension =
        "[[authentication.providers]]\n[authentication.providers.extension]\nextension = \"jwt\"\n";
    let older = "[[authentication.providers]]\n[authentication.providers.jwt]\nname = \"a\"\n[authentication.providers.jwt.jwks]\n\
                 url = \"https://e/jwks\"\nissuer = \"https://e\"\n[authentication.providers.jwt.header]\nname = \"X-Auth\"\nvalue_prefix = \"Token \"\n";
    let nobody = "[[authentication.providers]]\n[authentication.providers.anonymous]\n";
    let open = "[authentication]\ndefault = \"anonymous\"\n";
    for (text, required) in [
        (format!("{open}{by_extension}{extension}"), false),
        (format!("{by_extension}{nobody}{extension}"), false),
        (format!("{by_extension}{extension}"), true),
        (older.to_owned(), true),
        (format!("{older}{nobody}"), false),
        (format!("{open}{older}"), false),
    ] {
        let migration = migrated(Format::Grafbase, &text);
        assert_eq!(
            migration.protections_lost(),
            0,
            "{text}\n{}",
            migration.report_text()
        );
        let config = loaded(&migration);
        assert_eq!(config.authentication.router.jwt.jwks.len(), 1, "{text}");
        assert_eq!(
            config.authorization.require_authentication, required,
            "{text}"
        );
    }
    let jwt = loaded(&migrated(Format::Grafbase, older))
        .authentication
        .router
        .jwt;
    assert_eq!(
        (&*jwt.header_name.0, &*jwt.header_value_prefix),
        ("x-auth", "Token")
    );
}

/// Key sets stay where only the claim of scopes has another name.
#[test]
fn scopes_are_found_where_they_were() {
    let text = "authentication: { jwt: { jwks: [ { url: 'https://e/jwks', refresh_unknown_kid: { enabled: true } } ], scope_claim: mine } }";
    let migration = migrated(Format::Cosmo, text);
    assert_eq!(
        migration.protections_lost(),
        0,
        "{}",
        migration.report_text()
    );
    let jwt = loaded(&migration).authentication.router.jwt;
    assert_eq!(
        (jwt.jwks.len(), &jwt.scopes_claim.0[..]),
        (1, &["mine".to_owned()][..])
    );
}

/// A safelist without its documents refuses everything, and somebody has to know why.
#[test]
fn documents_of_another_service_are_lost() {
    for (format, text) in [
        (
            Format::Apollo,
            "persisted_queries: { enabled: true, safelist: { enabled: true } }",
        ),
        (
            Format::Grafbase,
            "[trusted_documents]\nenabled = true\nenforced = true",
        ),
        (
            Format::Cosmo,
            "persisted_operations: { safelist: { enabled: true } }",
        ),
        (
            Format::Cosmo,
            "security: { block_non_persisted_operations: { enabled: true } }",
        ),
    ] {
        let migration = migrated(format, text);
        assert_eq!(
            migration.protections_lost(),
            1,
            "{text}\n{}",
            migration.report_text()
        );
        let mode = loaded(&migration).persisted_queries.mode;
        assert_eq!(mode, ogive_config::PersistedMode::Require, "{text}");
    }
    let here = "persisted_queries: { enabled: true, local_manifests: [a.json], safelist: { enabled: true } }";
    assert_eq!(migrated(Format::Apollo, here).protections_lost(), 0);
}

/// Addresses for health stay where whoever asks them looks for them, or the report says that they do not.
#[test]
fn health_is_where_it_was() {
    let listen = |text: &str| loaded(&migrated(Format::Apollo, text)).health_check.listen;
    assert_eq!(
        listen("supergraph: { path: /g }").map(|at| at.0).as_deref(),
        Some("127.0.0.1:8088")
    );
    assert!(listen("health_check: { enabled: false }").is_none());
    let migration = migrated(Format::Cosmo, "health_check_path: /health");
    assert!(
        migration.report_text().contains("`/health/live`"),
        "{}",
        migration.report_text()
    );
}

#[test]
fn words_for_what_there_is_here_are_known() {
    let resource =
        "telemetry: { resource_attributes: [ { key: deployment.environment, value: prod } ] }";
    let telemetry = loaded(&migrated(Format::Cosmo, resource)).telemetry;
    assert_eq!(telemetry.resource["deployment.environment"], "prod");
    let path = "[graph]\nwebsocket_path = \"/events\"";
    let websocket = loaded(&migrated(Format::Grafbase, path))
        .subscription
        .client
        .websocket;
    assert_eq!(
        websocket.path.map(|path| path.0).as_deref(),
        Some("/events")
    );
    for (word, seconds) in [("enabled", 10), ("disabled", 0), ("7s", 7)] {
        let text = format!(
            "subscription: {{ mode: {{ passthrough: {{ all: {{ heartbeat_interval: {word} }} }} }} }}"
        );
        let all = loaded(&migrated(Format::Apollo, &text))
            .subscription
            .mode
            .passthrough
            .all;
        assert_eq!(
            all.heartbeat_interval.map(|every| every.0.as_secs()),
            Some(seconds)
        );
    }
}

/// What nobody knows about what is told of requests keeps nobody out.
#[test]
fn unknown_keys_of_telemetry_are_no_protections() {
    for (format, text) in [
        (Format::Apollo, "telemetry: { tracing: { other: 1 } }"),
        (Format::Hive, "log: { other: 1 }"),
        (
            Format::Cosmo,
            "telemetry: { other: 1 }\naccess_logs: { other: 1 }",
        ),
        (Format::Grafbase, "[telemetry]\nother = 1"),
    ] {
        let migration = migrated(format, text);
        assert_eq!(migration.protections_lost(), 0, "{text}");
        assert!(migration.count(Verdict::Unsupported) > 0, "{text}");
    }
}
