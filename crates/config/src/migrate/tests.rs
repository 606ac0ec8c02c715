//! The four samples: what becomes of them is written beside them; `BLESS=1` rewrites it.

use std::{fs, path::PathBuf};

use ogive_base::Sources;

use super::*;
use crate::{Config, load};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/migrate")
}

fn migrated(format: Format, text: &str) -> Migration {
    migrate(SourceId(0), text, format).unwrap_or_else(|e| panic!("{e:#?}"))
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
        let path = folder().join(format!("{}.out", format.word()));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &found).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == expected,
            "{} has changed; look at it and bless it with BLESS=1\n{found}",
            path.display()
        );
    }
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
    assert_eq!(config.request_header_rules("accounts").count(), 4);
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
    let known: Vec<String> = crate::reference::options()
        .into_iter()
        .map(|row| row.path.replace("<name>", "*"))
        .collect();
    let tables = [apollo::RULES, hive::RULES, grafbase::RULES, cosmo::RULES];
    for rule in tables.into_iter().flatten() {
        if let rules::Action::To(target, ..) = rule.action {
            assert!(
                known
                    .iter()
                    .any(|k| k == target || k.strip_suffix(".*") == Some(target)),
                "{} -> {target}",
                rule.from
            );
        }
    }
}
