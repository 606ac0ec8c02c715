//! Which subgraphs: arguments of the command line to a list of entries.
//!
//! `NAME=FILE`, `FILE` (named after itself), `NAME=http://…` (asked for its schema), `NAME=-` (standard input), a folder
//! (its `supergraph.yaml`, else its SDL files), a `supergraph.yaml`, or `-` (a `supergraph.yaml` on standard input).

use std::{
    fs,
    path::{Path, PathBuf},
};

use ogive_base::{Diagnostic, Sources};
use ogive_config::{
    Expansion,
    subgraphs::{SchemaSource, SubgraphList},
};
use ogive_files::Pipes;

use crate::{Refused, codes};

/// Largest text of one input, in bytes.
pub const TEXT_BYTES_MAX: u64 = 64 << 20;
/// Largest file that a list of subgraphs may refer to for a value.
const SECRET_BYTES_MAX: u64 = 1 << 20;
/// Endings of SDL files in a folder.
const SDL: [&str; 4] = ["graphql", "graphqls", "gql", "sdl"];
/// The list that a folder may hold.
const LIST: [&str; 2] = ["supergraph.yaml", "supergraph.yml"];

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// As in the module's documentation.
    pub arguments: Vec<String>,
    /// Where subgraphs are served, by name.
    pub urls: Vec<(String, String)>,
    /// Headers for every subgraph that is asked for its schema.
    pub headers: Vec<(String, String)>,
    /// What standard input holds, if an argument is or ends in `-`; read by the caller, once.
    pub stdin: Option<String>,
}

/// One subgraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Where it is served; may be empty.
    pub url: String,
    /// Where its schema is.
    pub origin: Origin,
}

/// Where a schema is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file.
    File(PathBuf),
    /// A running subgraph.
    Url {
        /// Its address.
        url: String,
        /// Headers to send.
        headers: Vec<(String, String)>,
    },
    /// Given as it is.
    Text {
        /// The schema.
        sdl: String,
        /// What to call it in messages.
        called: String,
    },
}

/// The entries, and what else to watch: a change there changes the entries.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// In order of the arguments; names are unique.
    pub entries: Vec<Entry>,
    /// Lists and folders.
    pub watched: Vec<PathBuf>,
}

impl Inputs {
    /// Whether standard input is wanted.
    pub fn wants_stdin(&self) -> bool {
        self.arguments.iter().any(|a| a == "-" || a.ends_with("=-"))
    }

    /// Reads lists and folders.
    pub fn resolve(&self) -> Result<Resolved, Refused> {
        let mut resolved = Resolved::default();
        for argument in &self.arguments {
            self.argument(argument, &mut resolved)?;
        }
        for entry in &mut resolved.entries {
            if let Some((_, url)) = self.urls.iter().find(|(name, _)| *name == entry.name) {
                entry.url.clone_from(url);
            }
            if let Origin::Url { headers, .. } = &mut entry.origin {
                headers.extend(self.headers.iter().cloned());
            }
        }
        self.check(&resolved)?;
        Ok(resolved)
    }

    fn check(&self, resolved: &Resolved) -> Result<(), Refused> {
        let entries = &resolved.entries;
        for (at, entry) in entries.iter().enumerate() {
            if entries[..at].iter().any(|e| e.name == entry.name) {
                return Err(invalid(
                    format!("two subgraphs are called `{}`", entry.name),
                    "give each its own name, as in NAME=FILE",
                ));
            }
        }
        for (name, _) in &self.urls {
            if !entries.iter().any(|e| e.name == *name) {
                return Err(invalid(
                    format!("`--url` names the subgraph `{name}`, which is not there"),
                    "check the name",
                ));
            }
        }
        if entries.is_empty() {
            return Err(invalid(
                "no subgraphs are given".into(),
                "name files as NAME=FILE, a folder of SDL files, or a supergraph.yaml",
            ));
        }
        Ok(())
    }

    fn argument(&self, argument: &str, out: &mut Resolved) -> Result<(), Refused> {
        if argument == "-" {
            let text = self.stdin.as_deref().unwrap_or_default();
            let list = read_list("standard input", text)?;
            return listed(list, Path::new("."), out);
        }
        // A path may hold `=`, a name may not hold `/`.
        let named = argument
            .split_once('=')
            .filter(|(name, _)| !name.contains(['/', '\\', ':']));
        let (name, place) = match named {
            Some((name, place)) => (Some(name), place),
            None => (None, argument),
        };
        if is_url(place) {
            let Some(name) = name else {
                return Err(invalid(
                    format!("the subgraph at {place} has no name"),
                    "write it as NAME=URL",
                ));
            };
            out.entries.push(Entry {
                name: name.into(),
                url: place.into(),
                origin: Origin::Url {
                    url: place.into(),
                    headers: Vec::new(),
                },
            });
            return Ok(());
        }
        if let (Some(name), "-") = (name, place) {
            out.entries.push(Entry {
                name: name.into(),
                url: String::new(),
                origin: Origin::Text {
                    sdl: self.stdin.clone().unwrap_or_default(),
                    called: format!("{name} (standard input)"),
                },
            });
            return Ok(());
        }
        let path = Path::new(place);
        if name.is_none() && path.is_dir() {
            return folder(path, out);
        }
        if name.is_none() && is_list(path) {
            return list_file(path, out);
        }
        out.entries.push(file(name, path.to_path_buf()));
        Ok(())
    }
}

fn file(name: Option<&str>, path: PathBuf) -> Entry {
    let name = match name {
        Some(name) => name.to_owned(),
        None => {
            let stem = path.file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        }
    };
    Entry {
        name,
        url: String::new(),
        origin: Origin::File(path),
    }
}

fn is_url(place: &str) -> bool {
    place.starts_with("http://") || place.starts_with("https://")
}

fn is_list(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "yaml" || e == "yml")
}

fn folder(path: &Path, out: &mut Resolved) -> Result<(), Refused> {
    if let Some(list) = LIST.iter().map(|l| path.join(l)).find(|l| l.is_file()) {
        return list_file(&list, out);
    }
    let unreadable = |error: std::io::Error| {
        unreadable(
            format!("cannot read the folder `{}`: {error}", path.display()),
            "check the path",
        )
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let sdl = path
            .extension()
            .is_some_and(|e| SDL.iter().any(|s| e == *s));
        // A link that leads nowhere is an SDL file that cannot be read.
        if sdl && !path.is_dir() {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(invalid(
            format!(
                "the folder `{}` holds neither a supergraph.yaml nor SDL files",
                path.display()
            ),
            "name SDL files *.graphql, one per subgraph",
        ));
    }
    files.sort();
    out.watched.push(path.to_path_buf());
    out.entries.extend(files.into_iter().map(|p| file(None, p)));
    Ok(())
}

fn list_file(path: &Path, out: &mut Resolved) -> Result<(), Refused> {
    let text = read_text(path, "list of subgraphs", Pipes::Refused)?;
    let list = read_list(&path.display().to_string(), &text)?;
    out.watched.push(path.to_path_buf());
    listed(list, path.parent().unwrap_or(Path::new("")), out)
}

fn read_list(called: &str, text: &str) -> Result<SubgraphList, Refused> {
    let mut sources = Sources::new();
    let id = sources.add(called, text);
    ogive_config::subgraphs::load(id, text, expansion()).map_err(|diagnostics| Refused {
        diagnostics,
        sources,
    })
}

fn listed(list: SubgraphList, folder: &Path, out: &mut Resolved) -> Result<(), Refused> {
    for entry in list.subgraphs {
        let (origin, own) = match entry.schema {
            SchemaSource::File(file) => (Origin::File(folder.join(file)), String::new()),
            SchemaSource::Url { url, headers } => {
                let own = url.clone();
                (Origin::Url { url, headers }, own)
            }
            SchemaSource::Sdl(sdl) => {
                let called = format!("{} (in the list)", entry.name);
                (Origin::Text { sdl, called }, String::new())
            }
        };
        out.entries.push(Entry {
            name: entry.name,
            url: entry.routing_url.unwrap_or(own),
            origin,
        });
    }
    Ok(())
}

/// Reads a text file.
pub fn read_text(path: &Path, what: &str, pipes: Pipes) -> Result<String, Refused> {
    let fail = |error: &dyn std::fmt::Display| {
        unreadable(
            format!("cannot read the {what} `{}`: {error}", path.display()),
            "check the path",
        )
    };
    let bytes = ogive_files::read(path, TEXT_BYTES_MAX, pipes).map_err(|e| fail(&e))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|b| **b == b'\n').count();
        unreadable(
            format!("the {what} `{}` is not UTF-8 (line {line})", path.display()),
            "save the file as UTF-8",
        )
    })
}

/// `${env.NAME}` and `${file.PATH}` in files of this crate.
pub fn expansion() -> Expansion<'static> {
    Expansion {
        env: &|name| std::env::var(name).ok(),
        file: &|path| {
            let text = ogive_files::read_text(Path::new(path), SECRET_BYTES_MAX, Pipes::Refused);
            let text = text.map_err(|error| error.to_string())?;
            Ok(text.trim_end().to_owned())
        },
    }
}

pub(crate) fn unreadable(message: String, help: &str) -> Refused {
    Refused::new(Diagnostic::error(codes::UNREADABLE_INPUT, message).help(help))
}

pub(crate) fn invalid(message: String, help: &str) -> Refused {
    Refused::new(Diagnostic::error(codes::INVALID_INPUT, message).help(help))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(arguments: &[&str]) -> Result<Resolved, String> {
        let inputs = Inputs {
            arguments: arguments.iter().map(|a| (*a).to_owned()).collect(),
            urls: vec![("a".into(), "http://a/graphql".into())],
            headers: vec![("x".into(), "1".into())],
            stdin: Some("subgraphs: { a: { schema: { file: sub/a.graphql } } }".into()),
        };
        inputs
            .resolve()
            .map_err(|r| r.diagnostics[0].message.clone())
    }

    #[test]
    fn arguments_name_files_urls_and_standard_input() {
        let found = resolve(&["a=x.graphql", "dir=1/b.graphql", "c=http://c/", "d=-"]).unwrap();
        let names: Vec<&str> = found.entries.iter().map(|e| &*e.name).collect();
        assert_eq!(names, ["a", "dir", "c", "d"]);
        assert_eq!(found.entries[0].url, "http://a/graphql");
        assert_eq!(found.entries[2].url, "http://c/");
        assert!(
            matches!(&found.entries[2].origin, Origin::Url { headers, .. } if headers.len() == 1)
        );
        let found = resolve(&["-"]).unwrap();
        assert_eq!(
            found.entries[0].origin,
            Origin::File("./sub/a.graphql".into())
        );
    }

    #[test]
    fn contradictions_are_refused() {
        for (arguments, message) in [
            (&["a=x", "a=y"][..], "two subgraphs are called `a`"),
            (
                &["b=x"],
                "`--url` names the subgraph `a`, which is not there",
            ),
            (&["http://b/"], "the subgraph at http://b/ has no name"),
        ] {
            assert_eq!(resolve(arguments).unwrap_err(), message);
        }
        let none = Inputs::default().resolve().unwrap_err();
        assert_eq!(none.diagnostics[0].message, "no subgraphs are given");
    }
}
