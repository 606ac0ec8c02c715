//! Licences and sources of everything the workspace depends on, as `deny.toml` allows them.
//!
//! `cargo deny` checks the same and advisories, for which it needs a network and a database; this needs only `cargo`.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, bail};

/// Checks all dependencies of the lock file; fails with all that are not allowed.
pub(crate) fn run(root: &Path) -> Result<()> {
    let allowed = std::fs::read_to_string(root.join("deny.toml")).context("deny.toml")?;
    let allowed = allowed_licences(&allowed);
    if allowed.is_empty() {
        bail!("deny.toml allows no licence");
    }
    let tree = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["tree", "--workspace", "--locked", "--target", "all"])
        .arg("--all-features")
        .args([
            "--edges",
            "normal,build,dev",
            "--prefix",
            "none",
            "--format",
            "{p}\t{l}",
        ])
        .output()
        .context("cargo tree")?;
    if !tree.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&tree.stderr));
    }
    let mut packages: Vec<&str> = std::str::from_utf8(&tree.stdout)?.lines().collect();
    packages.sort_unstable();
    packages.dedup();
    // Members stand apart by empty lines.
    packages.retain(|p| !p.is_empty());
    let wrong: Vec<String> = packages
        .iter()
        .filter_map(|p| refusal(p, &allowed))
        .collect();
    if wrong.is_empty() {
        println!("licences: {} packages, all allowed", packages.len());
        return Ok(());
    }
    for line in &wrong {
        println!("licences: {line}");
    }
    bail!("{} package(s) not allowed by deny.toml", wrong.len())
}

/// What `[licenses]` allows.
fn allowed_licences(deny: &str) -> Vec<String> {
    let section = deny.split("\n[licenses]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let list = section.split("allow = [").nth(1).unwrap_or_default();
    let list = list.split(']').next().unwrap_or_default();
    let quoted = list.split('"').skip(1).step_by(2);
    quoted.map(str::to_string).collect()
}

/// Why a line of `cargo tree` is refused: `NAME VERSION (SOURCE)`, a tab, and the licence.
fn refusal(package: &str, allowed: &[String]) -> Option<String> {
    let (package, licence) = package.split_once('\t').unwrap_or((package, ""));
    // Sources other than the registry stand in brackets; folders are those of the workspace.
    if package.contains("(git+") || package.contains("(registry+") {
        return Some(format!("{package}: its source is not the registry"));
    }
    let licence = licence.trim_end_matches(" (*)").trim();
    if allows(licence, allowed) {
        None
    } else {
        Some(format!("{package}: `{licence}`"))
    }
}

/// Whether an SPDX expression can be met by allowed licences; `/` is the older way to write `OR`.
fn allows(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ");
    let spaced = spaced.replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    let is_met = any(&mut rest, allowed);
    is_met && rest.is_empty()
}

/// `AND` binds stronger than `OR`.
fn any(tokens: &mut &[&str], allowed: &[String]) -> bool {
    let mut is_met = all(tokens, allowed);
    while let ["OR", rest @ ..] = tokens {
        *tokens = rest;
        is_met |= all(tokens, allowed);
    }
    is_met
}

fn all(tokens: &mut &[&str], allowed: &[String]) -> bool {
    let mut is_met = one(tokens, allowed);
    while let ["AND", rest @ ..] = tokens {
        *tokens = rest;
        is_met &= one(tokens, allowed);
    }
    is_met
}

fn one(tokens: &mut &[&str], allowed: &[String]) -> bool {
    match *tokens {
        ["(", rest @ ..] => {
            *tokens = rest;
            let is_met = any(tokens, allowed);
            let [")", rest @ ..] = tokens else {
                return false;
            };
            *tokens = rest;
            is_met
        }
        [licence, "WITH", exception, rest @ ..] => {
            *tokens = rest;
            allowed.contains(&format!("{licence} WITH {exception}"))
        }
        [licence, rest @ ..] => {
            *tokens = rest;
            allowed.iter().any(|a| a == licence)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_met_by_what_is_allowed() {
        let deny = "[x]\n[licenses]\nallow = [\n  \"MIT\",\n  \"ISC\", \"Apache-2.0 WITH LLVM-exception\",\n]\n[bans]\nallow = [\"GPL-3.0\"]";
        let allowed = allowed_licences(&format!("\n{deny}"));
        assert_eq!(allowed, ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"]);
        for (expression, is_met) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND ISC", true),
            ("MIT AND (GPL-3.0 OR BSL-1.0)", false),
            ("MIT OR GPL-3.0 AND BSL-1.0", true),
            ("Apache-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("(MIT", false),
            ("MIT)", false),
        ] {
            assert_eq!(allows(expression, &allowed), is_met, "{expression}");
        }
    }

    #[test]
    fn other_sources_are_refused() {
        let allowed = ["MIT".to_string()];
        assert_eq!(refusal("a v1.0.0\tMIT", &allowed), None);
        assert!(refusal("a v1.0.0 (git+https://example.com/a)\tMIT", &allowed).is_some());
        assert!(refusal("a v1.0.0\tGPL-3.0", &allowed).is_some());
    }
}
