//! The files that users get: the binary, licences, manual pages, completions, the systemd unit.

use std::{fs, path::Path, process::Command, rc::Rc};

use anyhow::{Context, Result, bail};

use super::{content::Content, entries::Entry, product::NAME};

/// Shells with completions: the shell, the name in the archive, and the place below `usr/share`.
const SHELLS: [(&str, &str, &str); 3] = [
    ("bash", "ogive.bash", "bash-completion/completions/ogive"),
    ("zsh", "_ogive", "zsh/vendor-completions/_ogive"),
    ("fish", "ogive.fish", "fish/vendor_completions.d/ogive.fish"),
];

/// The file with the licences of the libraries in the binary.
pub(crate) const NOTICES: &str = "THIRD-PARTY-NOTICES.txt";

/// Everything, read once.
pub(crate) struct Payload {
    pub(crate) binary: Rc<Content>,
    /// Name and text of licences and notices.
    pub(crate) licences: Vec<(&'static str, Rc<Content>)>,
    /// Name and text of manual pages.
    manuals: Vec<(String, Rc<Content>)>,
    /// Texts in the order of [`SHELLS`].
    completions: Vec<Rc<Content>>,
    unit: Rc<Content>,
}

impl Payload {
    /// Reads the files of the repository, and asks the program for its manual pages and completions.
    pub(crate) fn collect(root: &Path, program: &Path, notices: String) -> Result<Payload> {
        let read = |path: &Path| -> Result<Rc<Content>> {
            let bytes = fs::read(path).with_context(|| path.display().to_string())?;
            Ok(Content::new(bytes))
        };
        let mut licences = Vec::new();
        for name in ["LICENSE-APACHE", "LICENSE-MIT", "NOTICE"] {
            licences.push((name, read(&root.join(name))?));
        }
        licences.push((NOTICES, Content::new(notices.into_bytes())));
        let folder = std::env::temp_dir().join(format!("ogive-manuals-{}", std::process::id()));
        print(program, &["man", "--output", &folder.to_string_lossy()])?;
        let mut manuals = Vec::new();
        for entry in fs::read_dir(&folder).context("manual pages")? {
            let entry = entry?;
            manuals.push((
                entry.file_name().to_string_lossy().into_owned(),
                read(&entry.path())?,
            ));
        }
        fs::remove_dir_all(&folder)?;
        manuals.sort_by(|a, b| a.0.cmp(&b.0));
        let mut completions = Vec::new();
        for (shell, _, _) in SHELLS {
            completions.push(Content::new(print(program, &["completions", shell])?));
        }
        let unit = root.join("deploy/systemd/ogive.service");
        let unit = fs::read_to_string(&unit).with_context(|| unit.display().to_string())?;
        let unit = unit.replace("/usr/local/bin/", "/usr/bin/");
        Ok(Payload {
            binary: read(program)?,
            licences,
            manuals,
            completions,
            unit: Content::new(unit.into_bytes()),
        })
    }

    /// The files of the archive.
    pub(crate) fn archive(&self) -> Vec<Entry> {
        let mut out = vec![Entry::program(NAME, &self.binary)];
        out.extend(
            self.licences
                .iter()
                .map(|(name, text)| Entry::file(*name, text)),
        );
        let manuals = self.manuals.iter();
        out.extend(manuals.map(|(name, text)| Entry::file(format!("man/man1/{name}"), text)));
        for ((_, name, _), text) in SHELLS.iter().zip(&self.completions) {
            out.push(Entry::file(format!("completions/{name}"), text));
        }
        out
    }

    /// The files of a system's package, below the root.
    pub(crate) fn system(&self) -> Vec<Entry> {
        let mut out = vec![
            Entry::program(format!("usr/bin/{NAME}"), &self.binary),
            Entry::file("usr/lib/systemd/system/ogive.service", &self.unit),
        ];
        let licences = self.licences.iter();
        out.extend(
            licences.map(|(name, text)| Entry::file(format!("usr/share/doc/{NAME}/{name}"), text)),
        );
        let manuals = self.manuals.iter();
        out.extend(
            manuals.map(|(name, text)| Entry::file(format!("usr/share/man/man1/{name}"), text)),
        );
        for ((_, _, path), text) in SHELLS.iter().zip(&self.completions) {
            out.push(Entry::file(format!("usr/share/{path}"), text));
        }
        out
    }

    /// A payload of a few bytes.
    #[cfg(test)]
    pub(crate) fn small() -> Payload {
        let content = || Content::new(*b"text");
        Payload {
            binary: Content::new(*b"#!/bin/sh\necho small\n"),
            licences: vec![("LICENSE-MIT", content())],
            manuals: vec![("ogive.1".to_owned(), content())],
            completions: vec![content(), content(), content()],
            unit: content(),
        }
    }
}

/// What the program prints.
fn print(program: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| program.display().to_string())?;
    if !output.status.success() {
        bail!(
            "{} {}: {}",
            program.display(),
            arguments[0],
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(output.stdout)
}
