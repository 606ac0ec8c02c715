//! The layer table: which crate may depend on which.
//!
//! A row may depend on rows above it only, less what its third column forbids. Test crates may depend on anything;
//! nothing that ships may depend on them. Dev-dependencies obey the same table, except that tests may use test crates.

use crate::manifest::{Kind, workspace_dependencies};

/// Layer, crate folder, crates above it that it must not use all the same.
const TABLE: &[(u8, &str, &[&str])] = &[
    (0, "base", &[]),
    (0, "json", &["base"]),
    (1, "syntax", &["json"]),
    (1, "schema", &[]),
    (1, "operation", &[]),
    (2, "federation", &[]),
    (2, "compose", &[]),
    (3, "cost", &["compose"]),
    (
        3,
        "plan",
        &["schema", "operation", "federation", "compose", "cost"],
    ),
    (3, "planner", &["compose", "cost"]),
    (
        4,
        "execute",
        &["schema", "operation", "federation", "compose", "planner"],
    ),
    (
        4,
        "files",
        &[
            "execute",
            "planner",
            "plan",
            "federation",
            "compose",
            "operation",
            "schema",
            "syntax",
            "json",
            "base",
        ],
    ),
    (
        5,
        "stream",
        &[
            "files",
            "execute",
            "planner",
            "plan",
            "federation",
            "compose",
            "operation",
            "schema",
            "syntax",
        ],
    ),
    (
        5,
        "transport",
        &["schema", "operation", "federation", "compose", "planner"],
    ),
    (
        5,
        "signing",
        &[
            "execute",
            "planner",
            "plan",
            "federation",
            "compose",
            "operation",
            "schema",
            "syntax",
        ],
    ),
    (
        5,
        "config",
        &[
            "signing",
            "execute",
            "transport",
            "planner",
            "plan",
            "federation",
            "compose",
            "operation",
            "schema",
            "syntax",
        ],
    ),
    (
        5,
        "telemetry",
        &[
            "signing",
            "execute",
            "transport",
            "planner",
            "plan",
            "federation",
            "compose",
            "operation",
            "schema",
            "syntax",
        ],
    ),
    (
        5,
        "identity",
        &[
            "execute",
            "config",
            "planner",
            "federation",
            "compose",
            "operation",
            "schema",
            "syntax",
        ],
    ),
    (
        5,
        "coprocessor",
        &[
            "identity",
            "telemetry",
            "config",
            "signing",
            "stream",
            "files",
            "planner",
            "plan",
            "federation",
            "compose",
            "operation",
            "schema",
            "syntax",
        ],
    ),
    (
        6,
        "server",
        &[
            "telemetry",
            "identity",
            "coprocessor",
            "execute",
            "planner",
            "plan",
            "federation",
            "compose",
            "operation",
            "schema",
            "syntax",
            "json",
        ],
    ),
    (6, "gateway", &[]),
    (
        6,
        "mock",
        &[
            "federation",
            "compose",
            "plan",
            "planner",
            "execute",
            "transport",
            "signing",
            "config",
            "telemetry",
            "server",
            "gateway",
        ],
    ),
    (
        6,
        "bench",
        &[
            "schema",
            "operation",
            "federation",
            "compose",
            "plan",
            "planner",
            "execute",
            "transport",
            "signing",
            "config",
            "telemetry",
            "server",
            "gateway",
            "mock",
        ],
    ),
    (
        6,
        "workshop",
        &[
            "plan", "planner", "execute", "server", "gateway", "mock", "bench",
        ],
    ),
    (7, "cli", &[]),
];

/// Crates that exist for tests only.
const TEST_CRATES: &[&str] = &["testbase", "testkit", "e2e", "icount"];

/// Crates of layers 0 to 3: no clock, environment, files, threads or async.
pub(crate) fn pure_crates() -> impl Iterator<Item = &'static str> {
    TABLE
        .iter()
        .filter(|(layer, _, _)| *layer <= 3)
        .map(|(_, name, _)| *name)
}

/// What is wrong with the dependencies of one crate.
pub(crate) fn check(krate: &str, manifest: &str) -> Vec<String> {
    if TEST_CRATES.contains(&krate) {
        return Vec::new();
    }
    let Some(row) = TABLE.iter().position(|(_, name, _)| *name == krate) else {
        return vec![format!(
            "crate `{krate}` is not in the layer table (xtask/src/layers.rs): give it a row"
        )];
    };
    let mut wrong = Vec::new();
    for (dependency, kind) in workspace_dependencies(manifest) {
        if kind == Kind::Dev && TEST_CRATES.contains(&dependency.as_str()) {
            continue;
        }
        let above = TABLE[..row].iter().any(|(_, name, _)| *name == dependency);
        let (layer, _, never) = TABLE[row];
        if !above {
            wrong.push(format!(
                "crate `{krate}` (layer {layer}) depends on `{dependency}`, which is not above it: move the shared part down, or invert the dependency with a trait"
            ));
        } else if never.contains(&dependency.as_str()) && kind == Kind::Normal {
            wrong.push(format!(
                "crate `{krate}` must never depend on `{dependency}` (xtask/src/layers.rs)"
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_upward_dependency_is_refused() {
        let planted =
            "[dependencies]\nogive-base.workspace = true\nogive-gateway.workspace = true\n";
        let wrong = check("planner", planted);
        assert_eq!(wrong.len(), 1);
        assert!(
            wrong[0].contains("`planner` (layer 3) depends on `gateway`"),
            "{wrong:?}"
        );
    }

    #[test]
    fn siblings_stay_apart_and_tests_may_use_test_crates() {
        assert_eq!(
            check(
                "execute",
                "[dependencies]\nogive-planner.workspace = true\n"
            )
            .len(),
            1
        );
        assert_eq!(
            check(
                "planner",
                "[dev-dependencies]\nogive-testkit.workspace = true\n"
            ),
            Vec::<String>::new()
        );
        assert_eq!(
            check(
                "planner",
                "[dependencies]\nogive-testkit.workspace = true\n"
            )
            .len(),
            1
        );
        assert_eq!(check("nowhere", "").len(), 1);
    }
}
