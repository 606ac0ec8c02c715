//! The texts of subgraphs: files are read, running subgraphs asked, all at the same time.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ogive_base::{Diagnostic, Severity, Sources, hash::hash_one, without_secrets};
use ogive_compose::{ComposeOptions, Composed, Composer, SubgraphInput};
use ogive_files::{
    Pipes,
    kept::{Readers, keep},
};

use crate::{
    Refused, codes,
    inputs::{Entry, Origin, read_text},
    introspect::{Answer, introspect},
};

/// A subgraph that was read.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its name.
    pub name: String,
    /// Where it is served.
    pub url: String,
    /// Its schema.
    pub sdl: Arc<str>,
    /// What excerpts call it: its file, or its name and address.
    pub called: String,
    /// Its file, if it is one.
    pub file: Option<PathBuf>,
}

/// Reads every subgraph; says of each one that cannot be read why.
pub async fn load(entries: &[Entry]) -> Result<Vec<Loaded>, Refused> {
    let mut asking = Vec::new();
    for entry in entries {
        if let Origin::Url { url, headers } = &entry.origin {
            let (url, headers) = (url.clone(), headers.clone());
            asking.push(Some(tokio::spawn(async move {
                introspect(&url, &headers, None).await
            })));
        } else {
            asking.push(None);
        }
    }
    let mut refused = Refused::default();
    let mut loaded = Vec::with_capacity(entries.len());
    for (entry, asking) in entries.iter().zip(asking) {
        let sdl = match (&entry.origin, asking) {
            (Origin::File(path), _) => read_text(path, "subgraph", Pipes::Read),
            (Origin::Text { sdl, .. }, _) => Ok(sdl.clone()),
            (Origin::Url { url, .. }, Some(asking)) => match asking.await {
                Ok(Ok(Answer::Sdl { sdl, .. })) => Ok(sdl),
                Ok(Ok(Answer::NotModified)) => Err(unanswered(&entry.name, url, "304")),
                Ok(Err(why)) => Err(unanswered(&entry.name, url, &why)),
                Err(_) => Err(unanswered(&entry.name, url, "asking it failed")),
            },
            (Origin::Url { url, .. }, None) => {
                Err(unanswered(&entry.name, url, "it was not asked"))
            }
        };
        match sdl {
            Ok(sdl) => loaded.push(entry_loaded(entry, sdl.into())),
            Err(mut why) => refused.diagnostics.append(&mut why.diagnostics),
        }
    }
    if refused.diagnostics.is_empty() {
        Ok(loaded)
    } else {
        Err(refused)
    }
}

/// What is known of an entry whose text is there.
pub(crate) fn entry_loaded(entry: &Entry, sdl: Arc<str>) -> Loaded {
    let (called, file) = match &entry.origin {
        Origin::File(path) => (path.display().to_string(), Some(path.clone())),
        Origin::Url { url, .. } => (format!("{} ({})", entry.name, without_secrets(url)), None),
        Origin::Text { called, .. } => (called.clone(), None),
    };
    Loaded {
        name: entry.name.clone(),
        url: entry.url.clone(),
        sdl,
        called,
        file,
    }
}

/// A subgraph that cannot be asked for its schema.
pub(crate) fn unanswered(name: &str, url: &str, why: &str) -> Refused {
    let url = without_secrets(url);
    let message = format!("the subgraph `{name}` at {url} does not tell its schema: {why}");
    Refused::new(
        Diagnostic::error(codes::SUBGRAPH_UNREACHABLE, message).help(
            "start the subgraph, check its URL and its `introspection_headers`, or give its schema as a file",
        ),
    )
}

/// Composes what was loaded. Sources of the result are called as the subgraphs are.
pub fn compose(composer: &mut Composer, loaded: &[Loaded], options: &ComposeOptions) -> Composed {
    let inputs: Vec<SubgraphInput<'_>> = loaded
        .iter()
        .map(|s| SubgraphInput {
            name: &s.name,
            url: &s.url,
            sdl: &s.sdl,
        })
        .collect();
    let mut composed = composer.compose(&inputs, options);
    composed.sources = sources(loaded);
    composed
}

/// What composes and cannot be served as it is: subgraphs without a URL.
pub fn warnings(loaded: &[Loaded], composed: &Composed) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    if composed.supergraph_sdl.is_none() {
        return out;
    }
    let mut warn = |code: &'static str, message: String, help: String| {
        let mut warning = Diagnostic::error(code, message).help(help);
        warning.severity = Severity::Warning;
        out.push(warning);
    };
    let mut sorted: Vec<&Loaded> = loaded.iter().filter(|s| s.url.is_empty()).collect();
    // A message broker stands in for the others.
    sorted.retain(|subgraph| !subgraph.sdl.contains("@edfs__"));
    sorted.sort_by_key(|s| &s.name);
    for subgraph in sorted {
        let name = &subgraph.name;
        warn(
            codes::SUBGRAPH_WITHOUT_URL,
            format!("the subgraph `{name}` has no URL: a gateway cannot ask it"),
            format!("say where it is served: `--url {name}=http://...`"),
        );
    }
    out
}

/// The sources of a composition of what was loaded: in order of names, under the names people know.
pub fn sources(loaded: &[Loaded]) -> Sources {
    let mut sorted: Vec<&Loaded> = loaded.iter().collect();
    sorted.sort_by_key(|s| &s.name);
    let mut sources = Sources::new();
    for subgraph in sorted {
        sources.add(&*subgraph.called, Arc::clone(&subgraph.sdl));
    }
    sources
}

/// Schemas of subgraphs that answered before, for when they do not.
#[derive(Clone, Debug)]
pub struct SchemaCache {
    folder: PathBuf,
}

impl SchemaCache {
    /// A cache in a folder, which is made when something is written.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        SchemaCache {
            folder: folder.into(),
        }
    }
    fn path(&self, name: &str, url: &str) -> PathBuf {
        let plain: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '-' {
                    c
                } else {
                    '_'
                }
            })
            .take(64)
            .collect();
        let key = hash_one(&(name, url));
        self.folder.join(format!("{plain}-{key:016x}.graphql"))
    }
    /// What the subgraph answered last, if it ever did.
    pub fn get(&self, name: &str, url: &str) -> Option<String> {
        let path = self.path(name, url);
        read_text(&path, "cached schema", Pipes::Refused).ok()
    }
    /// Keeps an answer.
    pub fn put(&self, name: &str, url: &str, sdl: &str) -> std::io::Result<()> {
        let path = self.path(name, url);
        let old = read_text(&path, "cached schema", Pipes::Refused);
        if old.is_ok_and(|old| old == sdl) {
            return Ok(());
        }
        keep(&path, sdl.as_bytes(), Readers::Owner)
    }
    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}
