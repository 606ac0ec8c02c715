//! Collects the fragments of `changes/` into `CHANGELOG.md`.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// Kinds of fragments, in the order in which the changelog has them, and its headings.
pub(crate) const KINDS: &[(&str, &str)] = &[
    ("breaking", "Breaking"),
    ("security", "Security"),
    ("feature", "New"),
    ("fix", "Fixed"),
    ("perf", "Faster or smaller"),
    ("docs", "Documentation"),
];

/// The line below which releases stand, the newest first.
const MARK: &str = "Unreleased changes are in [changes/](changes/).\n";

/// Writes the section of a release and removes its fragments; without a version, prints the section of the next one.
pub(crate) fn run(root: &Path, version: Option<&str>) -> Result<()> {
    let fragments = fragments(&root.join("changes"))?;
    let Some(version) = version else {
        print!("{}", section("Unreleased", &fragments));
        return Ok(());
    };
    if fragments.is_empty() {
        bail!("there is nothing in changes/");
    }
    let path = root.join("CHANGELOG.md");
    let changelog = fs::read_to_string(&path).context("CHANGELOG.md")?;
    let Some((before, releases)) = changelog.split_once(MARK) else {
        bail!("CHANGELOG.md has no line `{}`", MARK.trim_end());
    };
    if releases.contains(&format!("\n## {version}\n")) {
        bail!("CHANGELOG.md has {version} already");
    }
    let section = section(version, &fragments);
    fs::write(&path, format!("{before}{MARK}\n{section}{releases}"))?;
    for fragment in fragments {
        fs::remove_file(&fragment.path)?;
    }
    Ok(())
}

struct Fragment {
    path: PathBuf,
    kind: String,
    text: String,
}

fn fragments(folder: &Path) -> Result<Vec<Fragment>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).context("changes/")? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        if name == "README.md" {
            continue;
        }
        let kind = name.split('-').next().unwrap_or("").to_string();
        let text = fs::read_to_string(&path)?;
        out.push(Fragment { path, kind, text });
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}

/// One release: a heading for each kind there is, a point for each fragment.
fn section(version: &str, fragments: &[Fragment]) -> String {
    let mut out = format!("## {version}\n");
    for (kind, heading) in KINDS {
        let mut of_kind = fragments.iter().filter(|f| f.kind == *kind).peekable();
        if of_kind.peek().is_some() {
            let _ = write!(out, "\n### {heading}\n\n");
        }
        for fragment in of_kind {
            let lines = fragment.text.lines().map(str::trim_end);
            let lines: Vec<&str> = lines.filter(|line| !line.starts_with("icount:")).collect();
            let text = lines.join("\n  ");
            let text = text.trim().replace("\n  \n", "\n\n");
            let _ = writeln!(out, "- {text}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(kind: &str, text: &str) -> Fragment {
        Fragment {
            path: PathBuf::new(),
            kind: kind.into(),
            text: text.into(),
        }
    }

    #[test]
    fn a_release_has_its_fragments_by_kind() {
        let fragments = [
            fragment("fix", "A mend.\nicount: x +1 % because y\n"),
            fragment("breaking", "One.\nTwo.\n"),
        ];
        let expected = "## 1.0\n\n### Breaking\n\n- One.\n  Two.\n\n### Fixed\n\n- A mend.\n";
        assert_eq!(section("1.0", &fragments), expected);
    }
}
