//! The layer table: which crate may depend on which.
//!
//! A row may depend on rows above it only, as far as its third column lets it. Test crates may depend on anything;
//! nothing that ships may depend on them. Dev-dependencies obey the same table, except that tests may use test crates.

use crate::manifest::{Kind, workspace_dependencies};

/// What a crate may use of the rows above it.
enum Uses {
    /// All of them.
    All,
    /// All but these: for the core, where siblings stay apart.
    AllBut(&'static [&'static str]),
    /// These only: for what runs, where a crate knows few others. A new row changes none of these.
    Only(&'static [&'static str]),
}

use Uses::{All, AllBut, Only};

/// Layer, crate folder, what it may use.
const TABLE: &[(u8, &str, Uses)] = &[
    (0, "base", All),
    (0, "json", AllBut(&["base"])),
    (0, "failure", Only(&[])),
    (0, "limits", Only(&[])),
    (1, "yaml", Only(&["base"])),
    (1, "syntax", AllBut(&["json"])),
    (1, "schema", All),
    (1, "operation", All),
    (1, "mapping", Only(&["base", "json", "syntax"])),
    (2, "federation", All),
    (2, "compose", All),
    (3, "plan", Only(&["base", "json", "syntax"])),
    (3, "cost", AllBut(&["compose"])),
    (3, "planner", AllBut(&["compose", "cost"])),
    (3, "cedar", Only(&[])),
    (
        4,
        "execute",
        Only(&["base", "failure", "json", "syntax", "plan"]),
    ),
    (4, "files", Only(&[])),
    (4, "documents", Only(&["base", "json", "syntax", "files"])),
    (4, "net", Only(&["base", "files"])),
    (5, "stream", Only(&["base", "json", "net"])),
    (5, "cache", Only(&["base", "json"])),
    (
        5,
        "transport",
        Only(&[
            "base", "failure", "json", "plan", "execute", "files", "net", "stream", "cache",
        ]),
    ),
    (
        5,
        "brokers",
        Only(&[
            "base",
            "failure",
            "syntax",
            "schema",
            "federation",
            "execute",
            "transport",
        ]),
    ),
    (5, "sources", Only(&["files", "transport"])),
    (5, "signing", Only(&["base", "json", "files", "transport"])),
    (5, "selectors", Only(&["base"])),
    (5, "config", Only(&["base", "limits", "yaml", "selectors"])),
    (5, "store", Only(&[])),
    (5, "telemetry", Only(&["base", "failure", "json", "files"])),
    (
        5,
        "identity",
        Only(&[
            "base",
            "failure",
            "json",
            "plan",
            "files",
            "transport",
            "sources",
            "signing",
        ]),
    ),
    (
        5,
        "hooks",
        Only(&["base", "failure", "json", "files", "execute", "transport"]),
    ),
    (
        6,
        "server",
        Only(&["base", "files", "limits", "net", "stream"]),
    ),
    (
        6,
        "edge",
        Only(&[
            "base",
            "failure",
            "limits",
            "json",
            "syntax",
            "schema",
            "plan",
            "execute",
            "net",
            "stream",
            "transport",
            "store",
            "config",
            "telemetry",
            "server",
        ]),
    ),
    (6, "gateway", All),
    (
        6,
        "mock",
        Only(&[
            "base",
            "yaml",
            "json",
            "syntax",
            "schema",
            "operation",
            "federation",
            "files",
            "net",
            "stream",
        ]),
    ),
    (6, "bench", Only(&["base", "json"])),
    (
        6,
        "workshop",
        AllBut(&[
            "plan", "planner", "execute", "server", "gateway", "mock", "bench",
        ]),
    ),
    (7, "migrate", Only(&["base", "yaml", "selectors", "config"])),
    (7, "cli", All),
    (
        7,
        "ogive",
        Only(&[
            "base",
            "failure",
            "federation",
            "execute",
            "transport",
            "config",
            "identity",
            "server",
            "gateway",
        ]),
    ),
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
        let (layer, _, uses) = &TABLE[row];
        let is_never = match uses {
            All => false,
            AllBut(never) => never.contains(&dependency.as_str()),
            Only(these) => !these.contains(&dependency.as_str()),
        };
        if !above {
            wrong.push(format!(
                "crate `{krate}` (layer {layer}) depends on `{dependency}`, which is not above it: move the shared part down, or invert the dependency with a trait"
            ));
        } else if is_never && kind == Kind::Normal {
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
