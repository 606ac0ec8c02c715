//! The four samples: what becomes of them is written beside them; `BLESS=1` rewrites it.

use std::{fs, path::PathBuf};

use ogive_base::Sources;
use ogive_config::{Config, load};
use ogive_testbase::Recorded;

use super::{closed_tests::migrated, *};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn loaded(migration: &Migration) -> Config {
    let mut sources = Sources::new();
    let id = sources.add("ogive.yaml", migration.yaml.as_str());
    let env = |name: &str| (name == "KEY").then(|| "secret".to_owned());
    load(id, &migration.yaml, &env).unwrap_or_else(|errors| {
        let errors: Vec<String> = errors.iter().map(|e| e.render(&sources, false)).collect();
        panic!("{}\n{}", errors.join("\n"), migration.yaml)
    })
}

/// Every key of the sample is in the report, the result loads, and both are as they were.
#[test]
fn the_samples_are_brought_over() {
    let mut recorded = Recorded::new();
    for format in Format::ALL {
        let extension = if format == Format::Grafbase {
            "toml"
        } else {
            "yaml"
        };
        let file = folder().join(format!("{}.{extension}", format.word()));
        let migration = migrated(format, &fs::read_to_string(file).unwrap());
        loaded(&migration);
        for row in &migration.report {
            assert_eq!(
                row.to.is_some(),
                matches!(
                    row.verdict,
                    Verdict::Kept | Verdict::Renamed | Verdict::Added
                )
            );
            assert!(
                row.verdict == Verdict::Kept
                    || row.verdict == Verdict::Renamed
                    || !row.note.is_empty()
            );
        }
        let found = format!("{}\n---\n{}", migration.yaml, migration.report_text());
        recorded.compare(folder().join(format!("{}.out", format.word())), &found);
    }
    recorded.finish(Format::ALL.len());
}

#[test]
fn values_arrive() {
    let sample = |name: &str| fs::read_to_string(folder().join(name)).unwrap();
    let config = loaded(&migrated(Format::Apollo, &sample("apollo.yaml")));
    assert_eq!(config.listen.0, "0.0.0.0:4100");
    assert_eq!(config.http.graphql_endpoint.0, "/");
    assert_eq!(config.traffic("reviews").timeout.as_millis(), 1_500);
    assert_eq!(config.request_header_rules("products").count(), 4);
    let config = loaded(&migrated(Format::Hive, &sample("hive.yaml")));
    assert_eq!(config.listen.0, "127.0.0.1:4200");
    assert_eq!(config.limits.max_depth, Some(30));
    assert_eq!(config.request_header_rules("accounts").count(), 5);
    assert_eq!(config.response_header_rules("accounts").count(), 2);
    let config = loaded(&migrated(Format::Grafbase, &sample("grafbase.toml")));
    assert_eq!(config.http.graphql_endpoint.0, "/gql");
    assert_eq!(config.traffic("products").timeout.as_secs(), 2);
    assert_eq!(config.traffic("products").retry.unwrap().budget_percent, 25);
    let config = loaded(&migrated(Format::Cosmo, &sample("cosmo.yaml")));
    assert_eq!(config.listen.0, "0.0.0.0:3100");
    assert_eq!(config.traffic("products").timeout.as_secs(), 90);
    assert_eq!(
        config.cors.policies[0].match_origins[0].0,
        "https://[^/]*\\.example\\.com"
    );
}

fn notes(migration: &Migration, verdict: Verdict) -> Vec<(&str, &str)> {
    let rows = migration.report.iter().filter(|r| r.verdict == verdict);
    rows.map(|r| (&*r.from, &*r.note)).collect()
}

/// Certificates both ways, and what each gateway calls them.
#[test]
fn certificates_are_brought_over() {
    let grafbase = migrated(
        Format::Grafbase,
        "[tls]\ncertificate = \"a.pem\"\nkey = \"b.pem\"\n\
         [subgraphs.products.mtls]\nroot.certificate = \"ca.pem\"\nroot.is_bundle = true\n\
         identity = \"me.pem\"\nallow_invalid_certs = true\n",
    );
    assert_eq!(notes(&grafbase, Verdict::Unsupported), []);
    let config = loaded(&grafbase);
    let listener = config.tls.supergraph.as_ref().unwrap();
    assert_eq!(
        (&*listener.certificate_chain, &*listener.key),
        ("a.pem", "b.pem")
    );
    let tls = config.subgraph_tls("products");
    assert_eq!(tls.certificate_authorities.as_deref(), Some("ca.pem"));
    assert_eq!(tls.insecure_skip_verify, Some(true));
    // One file with both.
    let shown = tls.client_authentication.unwrap();
    assert_eq!(
        (&*shown.certificate_chain, &*shown.key),
        ("me.pem", "me.pem")
    );
    assert_eq!(config.subgraph_tls("reviews"), Default::default());

    let hive = migrated(
        Format::Hive,
        "traffic_shaping:
  router: { tls: { cert_file: [a.pem], key_file: b.pem, client_auth: { cert_file: ca.pem, required: false } } }
  all: { tls: { cert_file: ca.pem, client_auth: { cert_file: me.pem, key_file: key.pem } } }
  subgraphs: { products: { tls: { insecure_skip_ca_verification: true } } }
",
    );
    assert_eq!(notes(&hive, Verdict::Unsupported), []);
    let config = loaded(&hive);
    let listener = config.tls.supergraph.as_ref().unwrap();
    assert_eq!(
        (&*listener.certificate_chain, &*listener.key),
        ("a.pem", "b.pem")
    );
    let clients = listener.client_authentication.as_ref().unwrap();
    assert_eq!(
        (&*clients.certificate_authorities, clients.required),
        ("ca.pem", false)
    );
    let tls = config.subgraph_tls("products");
    assert_eq!(tls.insecure_skip_verify, Some(true));
    assert_eq!(tls.client_authentication.unwrap().key, "key.pem");
}

#[test]
fn hive_errors_are_masked_as_before() {
    let masked = |text: &str| {
        let migration = migrated(Format::Hive, text);
        let errors = loaded(&migration).include_subgraph_errors;
        (errors.all, errors.subgraphs, errors.extensions)
    };
    let all = || vec!["*".to_owned()];
    let none = Default::default;
    assert_eq!(
        masked("error_masking: { enabled: true }"),
        (false, none(), vec![])
    );
    assert_eq!(
        masked("error_masking: { enabled: false }"),
        (true, none(), all())
    );
    assert_eq!(
        masked("error_masking: { enabled: false, all: { enabled: true } }"),
        (true, none(), all())
    );
    assert_eq!(
        masked("error_masking: { all: { enabled: false } }"),
        (true, none(), all())
    );
    let chosen =
        "error_masking: { all: { enabled: false, extensions: { mode: allow, keys: [code, a] } } }";
    assert_eq!(masked(chosen), (true, none(), vec!["a".to_owned()]));
    let products = [("products".to_owned(), true)].into();
    let own = "error_masking: { subgraphs: { products: { enabled: false } } }";
    assert_eq!(masked(own), (false, products, all()));
}

#[test]
fn hive_documents_labels_and_the_registry_are_brought_over() {
    let text = "supergraph: { source: hive, endpoint: [\"https://cdn.example.com/t/\", \"https://b\"], key: { from_env: KEY } }
persisted_documents: { enabled: true, require_id: true, storage: { type: file, path: ids.json } }
override_labels: { a.b: true, c: false }
traffic_shaping: { router: { dedupe: { enabled: true } } }
authorization: { directives: { unauthorized: { mode: reject } } }
";
    let migration = migrated(Format::Hive, text);
    assert_eq!(notes(&migration, Verdict::Unsupported), []);
    let config = loaded(&migration);
    let url = config.supergraph.url.as_ref().map(|url| url.0.to_string());
    assert_eq!(url.as_deref(), Some("https://cdn.example.com/t/supergraph"));
    assert_eq!(config.supergraph.headers["x-hive-cdn-key"], "secret");
    let queries = &config.persisted_queries;
    assert!(queries.enabled && queries.require_id);
    assert_eq!(queries.mode, ogive_config::PersistedMode::Require);
    assert_eq!(queries.local_manifests, ["ids.json"]);
    assert_eq!(config.override_labels.labels.len(), 2);
    assert!(config.override_labels.labels.contains_key("a.b"));
    assert!(config.traffic_shaping.router.deduplicate_query);
    assert!(config.authorization.reject_unauthorized);
    assert_eq!(
        config.authorization.directives,
        ogive_config::AuthorizationDirectives::Enforce
    );
}

/// What the rules of operations refuse.
fn refused(config: &Config) -> Vec<ogive_config::RefusedWord> {
    let rules = config.limits.operation_rules.iter();
    rules.filter_map(|rule| rule.refuse).collect()
}

#[test]
fn what_cosmo_blocks_is_refused_or_named() {
    let text = "security: { block_non_persisted_operations: { enabled: true }, block_mutations: { enabled: false } }
persisted_operations: { log_unknown: true, storage: { provider_id: fs } }
storage_providers: { file_system: [ { id: fs, path: a } ] }
authorization: { reject_operation_if_unauthorized: true }
";
    let migration = migrated(Format::Cosmo, text);
    assert_eq!(notes(&migration, Verdict::Unsupported), []);
    let config = loaded(&migration);
    assert!(config.persisted_queries.enabled && config.persisted_queries.require_id);
    assert_eq!(
        config.persisted_queries.mode,
        ogive_config::PersistedMode::Require
    );
    assert!(config.authorization.reject_unauthorized);
    assert_eq!(
        config.authorization.directives,
        ogive_config::AuthorizationDirectives::Enforce
    );

    let text = "security: { block_mutations: true, block_persisted_operations: { enabled: true } }";
    let migration = migrated(Format::Cosmo, text);
    assert_eq!(notes(&migration, Verdict::Unsupported), []);
    let config = loaded(&migration);
    assert!(!config.persisted_queries.enabled);
    assert_eq!(refused(&config), [ogive_config::RefusedWord::Mutations]);

    let text =
        "security: { block_mutations: { enabled: true }, block_subscriptions: { enabled: true } }";
    let refused = refused(&loaded(&migrated(Format::Cosmo, text)));
    let both = [
        ogive_config::RefusedWord::Mutations,
        ogive_config::RefusedWord::Subscriptions,
    ];
    assert_eq!(refused, both);
    let text =
        "security: { block_mutations: { enabled: true, condition: 'request.header.Get(\"a\")' } }";
    let migration = migrated(Format::Cosmo, text);
    let unsupported = notes(&migration, Verdict::Unsupported);
    assert_eq!(unsupported, [("security.block_mutations", why::MUTATIONS)]);
}

#[test]
fn grafbase_origins_and_copied_headers_are_brought_over() {
    let text = "[cors]\nallow_origins = [\"*.example.com\", \"https://a.example.org\"]\n\
                [[headers]]\nrule = \"rename_duplicate\"\nname = \"a\"\nrename = \"b\"\ndefault = \"c\"\n";
    let migration = migrated(Format::Grafbase, text);
    assert_eq!(notes(&migration, Verdict::Unsupported), []);
    let config = loaded(&migration);
    let policy = &config.cors.policies[0];
    assert_eq!(policy.origins, ["https://a.example.org"]);
    assert_eq!(policy.match_origins[0].0, "https?://[^/]*\\.example\\.com");
    assert_eq!(config.request_header_rules("x").count(), 2);
}

#[test]
fn retries_of_older_apollo_routers_are_brought_over() {
    let text = "traffic_shaping: { all: { experimental_retry: { min_per_sec: 7, ttl: 10s, retry_percent: 0.3, retry_mutations: false } } }
forbid_mutations: true
";
    let migration = migrated(Format::Apollo, text);
    assert_eq!(notes(&migration, Verdict::Unsupported), []);
    let config = loaded(&migration);
    assert_eq!(refused(&config), [ogive_config::RefusedWord::Mutations]);
    let retry = loaded(&migration).traffic("x").retry.unwrap();
    assert_eq!((retry.min_per_sec, retry.budget_percent), (7, 30));
}

/// What is off need not be there.
#[test]
fn sections_that_are_off_are_not_needed() {
    for (format, text) in [
        (Format::Hive, "jwt: { enabled: false, x: 1 }"),
        (Format::Grafbase, "[entity_caching]\nenabled = false"),
        (
            Format::Cosmo,
            "authorization: { require_authentication: false }",
        ),
    ] {
        let migration = migrated(format, text);
        assert_eq!(notes(&migration, Verdict::Unsupported), [], "{text}");
        assert_eq!(migration.count(Verdict::NotNeeded), 1, "{text}");
    }
    let on = migrated(Format::Hive, "jwt: { enabled: true }");
    assert_eq!(on.count(Verdict::Unsupported), 1);
}

/// Every reason says something: what is there instead, or why there is nothing.
#[test]
fn reasons_are_given() {
    let tables = [apollo::RULES, hive::RULES, grafbase::RULES, cosmo::RULES];
    for rule in tables.into_iter().flatten() {
        if let rules::Action::No(why) | rules::Action::Drop(why) = rule.action {
            assert!(why.len() > 8 && !why.ends_with('.'), "{}: {why}", rule.from);
            assert!(
                !why.contains("nothing of this kind"),
                "{}: {why}",
                rule.from
            );
        }
    }
}

/// Nothing is lost in silence: what no table knows is named.
#[test]
fn unknown_keys_are_named() {
    for format in [Format::Apollo, Format::Hive, Format::Cosmo] {
        let migration = migrated(format, "a: { b: [1], c: { d: x } }\n");
        let unknown: Vec<&str> = migration
            .report
            .iter()
            .filter(|r| r.verdict == Verdict::Unsupported)
            .map(|r| r.from.as_str())
            .collect();
        assert_eq!(unknown, ["a.b", "a.c.d"], "{format:?}");
    }
}

#[test]
fn nothing_is_a_configuration_too() {
    for format in Format::ALL {
        loaded(&migrated(format, ""));
    }
}

#[test]
fn texts_that_cannot_be_read_say_where() {
    let errors = migrate(SourceId(0), "a = [", Format::Grafbase).unwrap_err();
    assert!(errors[0].message.contains("not valid TOML"));
    let errors = migrate(SourceId(0), "a: [", Format::Apollo).unwrap_err();
    assert!(errors[0].message.contains("not valid YAML"));
    let errors = migrate(SourceId(0), "- a", Format::Cosmo).unwrap_err();
    assert!(errors[0].message.contains("expected a mapping"));
}

/// The tables' targets are keys of ours, so that a renamed option cannot leave them behind.
#[test]
fn targets_exist() {
    let known: Vec<String> = ogive_config::reference::options()
        .into_iter()
        .map(|row| row.path.replace("<name>", "*"))
        .collect();
    let tables = [apollo::RULES, hive::RULES, grafbase::RULES, cosmo::RULES];
    for rule in tables.into_iter().flatten() {
        if let rules::Action::To(target, ..) | rules::Action::Bound(target, _) = rule.action {
            assert!(
                known.iter().any(|k| k == target
                    || k.strip_suffix(".*") == Some(target)
                    || k.strip_prefix(target)
                        .is_some_and(|rest| rest.starts_with("[]"))),
                "{} -> {target}",
                rule.from
            );
        }
    }
}

#[test]
fn brokers_of_cosmo_are_brought_over() {
    let yaml = "events:
  providers:
    nats: [{ id: n, url: 'nats://a:4222', authentication: { user_info: { username: u, password: p } } }]
    kafka: [{ id: k, brokers: ['a:9092'], authentication: { sasl_plain: { username: u, password: p } }, tls: { enabled: true } }]
    redis: [{ id: r, urls: ['redis://a:6379/2'], cluster_enabled: false }]
";
    let config = loaded(&migrated(Format::Cosmo, yaml));
    let providers = &config.events.providers;
    assert_eq!(
        (&*providers.nats[0].id, &*providers.nats[0].url.0),
        ("n", "nats://a:4222")
    );
    let user = providers.nats[0].authentication.user_info.as_ref().unwrap();
    assert_eq!((&*user.username, &*user.password.0), ("u", "p"));
    assert!(providers.kafka[0].tls.as_ref().unwrap().enabled);
    assert_eq!(providers.redis[0].urls, ["redis://a:6379/2"]);
    let cluster = yaml.replace("cluster_enabled: false", "cluster_enabled: true");
    assert!(
        loaded(&migrated(Format::Cosmo, &cluster))
            .events
            .providers
            .redis
            .is_empty()
    );
}
