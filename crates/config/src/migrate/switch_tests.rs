//! What was off stays off, what was on stays on, and what was bounded stays bounded: the smallest case of each.

use ogive_base::SourceId;

use super::{
    Format, Migration, Verdict,
    closed_tests::{loaded, migrated},
};
use crate::{Expansion, codes};

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
    assert_eq!(migration.problems(SourceId(0), from), []);
    migration
        .yaml
        .push_str("apq: { enabled: '${env.APQ}' }\nbatching: { enabled: maybe }\n");
    let found = migration.problems(SourceId(0), from);
    let codes: Vec<&str> = found.iter().map(|error| error.code).collect();
    assert_eq!(codes, [codes::INVALID_VALUE], "{found:?}");
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
