//! Where one key of another gateway changes what another key means: the smallest case of each.

use ogive_base::SourceId;

use super::{
    Format, Migration, Verdict,
    closed_tests::{loaded, migrated},
};

/// The verdict about a key.
fn verdict(migration: &Migration, from: &str) -> Verdict {
    let row = migration.report.iter().find(|row| row.from == from);
    row.unwrap_or_else(|| panic!("{from}\n{}", migration.report_text()))
        .verdict
}

/// A subgraph has the breaker of all subgraphs unless its own says something else.
#[test]
fn a_breaker_that_is_off_for_one_subgraph_stays_off() {
    for format in [Format::Hive, Format::Cosmo] {
        let text = "traffic_shaping: { all: { circuit_breaker: { enabled: true } }, \
                    subgraphs: { a: { circuit_breaker: { enabled: false } } } }";
        let config = loaded(&migrated(format, text));
        let breaker = |name| config.traffic(name).circuit_breaker.expect("inherited");
        assert!(breaker("b").volume_threshold < 100);
        assert_eq!(breaker("a").volume_threshold, u32::MAX);
        let text = "traffic_shaping: { subgraphs: { a: { circuit_breaker: { enabled: false } } } }";
        let config = loaded(&migrated(format, text));
        assert!(config.traffic("a").circuit_breaker.is_none());
    }
}

#[test]
fn patterns_of_origins_mean_what_they_mean_there() {
    let text =
        "cors: { allow_origins: [], match_origins: ['^https://([a-z]+\\.)*example\\.com$'] }";
    let migration = migrated(Format::Cosmo, text);
    let policies = loaded(&migration).cors.policies;
    assert_eq!(policies.len(), 1, "{}", migration.yaml);
    assert_eq!(
        policies[0].match_origins[0].0,
        "^https://([a-z]+\\.)*example\\.com$"
    );
    assert_eq!(
        verdict(&migration, "cors.allow_origins"),
        Verdict::NotNeeded
    );
    let text = "[cors]\nallow_origins = ['https://{dev,qa}.a.com', 'http://localhost:300[0-9]', 'https://[!a-c]?.b', 'https://c+d.e']";
    let policies = loaded(&migrated(Format::Grafbase, text)).cors.policies;
    let patterns: Vec<&str> = policies[0].match_origins.iter().map(|p| &*p.0).collect();
    assert_eq!(
        patterns,
        [
            "https://(?:dev|qa)\\.a\\.com",
            "http://localhost:300[0-9]",
            "https://[^a-c][^/]\\.b"
        ]
    );
    assert_eq!(policies[0].origins, ["https://c+d.e"]);
}

/// Cosmo Router refuses what pages of other origins send, whatever the browser asks first.
#[test]
fn origins_that_are_not_listed_stay_out() {
    for (text, is_guarded) in [
        ("cors: { allow_origins: ['https://a'] }", true),
        ("cors: { match_origins: ['https://a'] }", true),
        ("cors: { allow_origins: [] }", true),
        ("cors: { allow_origins: ['*'] }", false),
        (
            "cors: { enabled: false, allow_origins: ['https://a'] }",
            false,
        ),
        ("version: '1'", false),
    ] {
        let config = loaded(&migrated(Format::Cosmo, text));
        assert_eq!(config.csrf.enabled, is_guarded, "{text}");
    }
}

/// Directives of the supergraph are enforced there without a key that says so.
#[test]
fn directives_are_enforced_where_tokens_are_read() {
    use ogive_config::AuthorizationDirectives::Enforce;
    for (format, text) in [
        (
            Format::Apollo,
            "authentication: { router: { jwt: { jwks: [{ url: 'https://a/b' }] } } }",
        ),
        (
            Format::Hive,
            "jwt: { jwks_providers: [{ source: remote, url: 'https://a/b' }] }",
        ),
        (
            Format::Cosmo,
            "authentication: { jwt: { jwks: [{ url: 'https://a/b' }] } }",
        ),
        (
            Format::Grafbase,
            "[extensions.jwt]\nversion = '1'\n[extensions.jwt.config]\nurl = 'https://a/b'",
        ),
    ] {
        let migration = migrated(format, text);
        let directives = loaded(&migration).authorization.directives;
        assert_eq!(directives, Enforce, "{}", migration.yaml);
    }
}

/// A key set whose URL is only known where the gateway is served lacks nothing.
#[test]
fn what_follows_from_a_missing_variable_is_no_error() {
    let text = "authentication: { router: { jwt: { jwks: [{ url: '${env.JWKS_URL}' }] } } }";
    let migration = migrated(Format::Apollo, text);
    let from = ogive_config::Expansion {
        env: &|_| None,
        file: &|_| Err(String::new()),
    };
    let read = migration.loaded(SourceId(0), from);
    assert_eq!(read.errors.len(), 0, "{:?}", read.errors);
    assert_eq!(read.missing.len(), 1, "{:?}", read.missing);
}

/// What chose among cookies is lost, and so no cookie is passed on.
#[test]
fn cookies_that_were_chosen_are_not_passed_on_whole() {
    let text = "headers: { cookie_whitelist: [session], all: { request: [{ op: propagate, matching: '.*' }] }, \
                subgraphs: { a.b: { request: [{ op: propagate, named: Cookie }] } } }";
    let migration = migrated(Format::Cosmo, text);
    for rules in ["headers.all.request", "headers.subgraphs.\"a.b\".request"] {
        let added = migration
            .report
            .iter()
            .filter(|row| row.verdict == Verdict::Added && row.to.as_deref() == Some(rules));
        assert_eq!(added.count(), 1, "{}", migration.report_text());
    }
    let last = loaded(&migration)
        .request_header_rules("a.b")
        .last()
        .cloned();
    assert!(format!("{last:?}").contains("Remove"), "{last:?}");
}

/// A subgraph's section replaces that of all subgraphs there.
#[test]
fn tls_of_a_subgraph_is_its_own() {
    let text = "tls: { client: { all: { cert_file: /c, key_file: /k, insecure_skip_ca_verification: true }, \
                subgraphs: { a.b: { ca_file: /ca } } } }";
    let migration = migrated(Format::Cosmo, text);
    let own = &loaded(&migration).tls.subgraph.subgraphs["a.b"];
    assert_eq!(own.insecure_skip_verify, Some(false));
    let shown = "tls.client.subgraphs.\"a.b\".cert_file";
    assert_eq!(verdict(&migration, shown), Verdict::Unsupported);
}

/// A subgraph's name may have a dot: its settings are those of a name without one.
#[test]
fn names_of_subgraphs_with_dots_are_one_key() {
    let hive = "traffic_shaping: { all: { circuit_breaker: { enabled: true } }, subgraphs: { NAME: { request_timeout: 1s, \
                dedupe_enabled: false, circuit_breaker: { enabled: false }, tls: { cert_file: /c, client_auth: { cert_file: /d, key_file: /e } } } } }\n\
                headers: { subgraphs: { NAME: { request: [{ propagate: { named: [a, b], default: c } }, { remove: { matching: d } }], \
                response: [{ propagate: { named: e, algorithm: last } }] } } }\n\
                override_subgraph_urls: { NAME: { url: { expression: 'if .request.headers.\"x\" == \"y\" { \"http://a\" } else { .default }' } } }\n\
                error_masking: { subgraphs: { NAME: { enabled: false } } }\n\
                demand_control: { enabled: true, strategy: { static_estimated: { max: 1, subgraph: { subgraphs: { NAME: { max: 2 } } } } } }\n\
                subscriptions: { enabled: true, websocket: { subgraphs: { NAME: { path: /ws } } } }";
    let cosmo = "traffic_shaping: { all: { circuit_breaker: { enabled: true } }, subgraphs: { NAME: { request_timeout: 1s, dial_timeout: 2s, \
                 keep_alive_idle_timeout: 3s, retry: { enabled: true, max_attempts: 2 }, circuit_breaker: { enabled: false } } } }\n\
                 headers: { cookie_whitelist: [a], subgraphs: { NAME: { request: [{ op: propagate, named: a, rename: b }], \
                 response: [{ op: set, name: c, value: d }] } } }\n\
                 overrides: { subgraphs: { NAME: { routing_url: 'http://a', subscription_protocol: ws } } }\n\
                 tls: { client: { all: { cert_file: /a, key_file: /b, insecure_skip_ca_verification: true }, subgraphs: { NAME: { ca_file: /c } } } }";
    let apollo = "traffic_shaping: { subgraphs: { NAME: { timeout: 1s, global_rate_limit: { capacity: 1, interval: 1s }, compression: br } } }\n\
                  headers: { subgraphs: { NAME: { request: [{ remove: { named: a } }] } } }\noverride_subgraph_url: { NAME: 'http://a' }\n\
                  include_subgraph_errors: { all: false, subgraphs: { NAME: true } }\n\
                  tls: { subgraph: { subgraphs: { NAME: { certificate_authorities: /a } } } }\n\
                  authentication: { subgraph: { subgraphs: { NAME: { aws_sig_v4: { hardcoded: { access_key_id: a, secret_access_key: b, region: c, service_name: d } } } } } }\n\
                  subscription: { enabled: true, mode: { passthrough: { subgraphs: { NAME: { path: /ws, protocol: graphql_ws } } } } }";
    let grafbase = "[subgraphs.NAME]\nurl = 'http://a'\ntimeout = '1s'\nsubscriptions_protocol = 'websocket'\n\
                    rate_limit = { limit = 1, duration = '1s' }\nretry = { enabled = false }\n\
                    headers = [{ rule = 'remove', name = 'a' }, { rule = 'forward', name = 'b', rename = 'c' }]\n\
                    mtls = { root.certificate = '/a', identity = '/b' }\n";
    for (format, text) in [
        (Format::Hive, hive),
        (Format::Cosmo, cosmo),
        (Format::Apollo, apollo),
        (Format::Grafbase, grafbase),
    ] {
        let dotted = migrated(format, &text.replace("NAME", "\"a.b\""));
        let plain = migrated(format, &text.replace("NAME", "plainname"));
        assert_eq!(
            dotted
                .yaml
                .replace("\"a.b\"", "plainname")
                .replace("a.b", "plainname"),
            plain.yaml,
            "{format:?}"
        );
        loaded(&dotted);
    }
}

#[test]
fn what_is_counted_and_limited_is_said_as_it_is() {
    let set = "authentication: { jwt: { jwks: [{ url: 'https://a/b', allowed_use: [sig] }] } }";
    let migration = migrated(Format::Cosmo, set);
    assert_eq!(
        migration.protections_lost(),
        0,
        "{}",
        migration.report_text()
    );
    let other = set.replace("[sig]", "[sig, enc]");
    assert_eq!(migrated(Format::Cosmo, &other).protections_lost(), 1);
    let costs = "demand_control: { enabled: true, expose_headers: { estimated: true, actual: x-cost }, \
                 strategy: { static_estimated: { max: 1 } } }";
    let migration = migrated(Format::Hive, costs);
    let actual = verdict(&migration, "demand_control.expose_headers.actual");
    assert_eq!(actual, Verdict::Unsupported);
    let limits = "security: { operation_name_length_limit: 5, cost_control: { enabled: true, max_estimated_limit: 1, expose_headers: true }, \
                  complexity_limits: { mode: enforce, ignore_introspection: false, depth: { enabled: true, limit: 3 } } }";
    let migration = migrated(Format::Cosmo, limits);
    assert_eq!(
        migration.protections_lost(),
        1,
        "{}",
        migration.report_text()
    );
    assert!(loaded(&migration).demand_control.expose_headers);
}
