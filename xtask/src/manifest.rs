//! The little of a `Cargo.toml` that the checks read: which workspace crates it depends on, and how.

/// How a crate is depended on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// `[dependencies]` or `[build-dependencies]`
    Normal,
    /// `[dev-dependencies]`
    Dev,
}

/// Dependencies on workspace crates, by their folder names, as written.
pub(crate) fn workspace_dependencies(manifest: &str) -> Vec<(String, Kind)> {
    let mut kind = None;
    let mut out = Vec::new();
    for line in manifest.lines() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            kind = section_kind(section);
            // `[dependencies.ogive-base]`
            if let (Some(k), Some((_, name))) = (kind, section.rsplit_once("dependencies.")) {
                out.extend(folder(name).map(|f| (f, k)));
                kind = None;
            }
            continue;
        }
        if let Some(k) = kind
            && let Some((name, _)) = line.split_once(['=', '.'])
        {
            out.extend(folder(name).map(|f| (f, k)));
        }
    }
    out
}

fn section_kind(section: &str) -> Option<Kind> {
    let section = section.rsplit_once("').").map_or(section, |(_, s)| s);
    let name = section
        .split_once("dependencies.")
        .map_or(section.to_string(), |(s, _)| format!("{s}dependencies"));
    match name.rsplit('.').next()? {
        "dependencies" | "build-dependencies" => Some(Kind::Normal),
        "dev-dependencies" => Some(Kind::Dev),
        _ => None,
    }
}

fn folder(name: &str) -> Option<String> {
    let name = name.trim().trim_matches('"');
    name.strip_prefix("ogive-").map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_way_to_write_a_dependency() {
        let manifest = "\
[package]
name = \"ogive-x\"
[dependencies]
ogive-base.workspace = true
ogive-json = { path = \"../json\" }
serde = \"1\"
[dependencies.ogive-syntax]
path = \"../syntax\"
[target.'cfg(unix)'.dependencies]
ogive-plan.workspace = true
[dev-dependencies]
ogive-testkit.workspace = true
";
        let found = workspace_dependencies(manifest);
        let names: Vec<(&str, Kind)> = found.iter().map(|(n, k)| (n.as_str(), *k)).collect();
        assert_eq!(
            names,
            [
                ("base", Kind::Normal),
                ("json", Kind::Normal),
                ("syntax", Kind::Normal),
                ("plan", Kind::Normal),
                ("testkit", Kind::Dev)
            ]
        );
    }
}
