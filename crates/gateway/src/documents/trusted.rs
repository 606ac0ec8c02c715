//! All trusted documents of a configuration: from files, from sources that are asked again and again, and from Hive's CDN
//! one by one; and what becomes of documents that are none of them.
//!
//! What requests look at is one [`Manifest`], swapped as a whole whenever a source has another text or a document ends; no
//! request sees half of a release. What sources gave outlives a reload that leaves them as they are.

use std::sync::{Arc, Mutex};

use arc_swap::{ArcSwap, Guard};
use ogive_base::FastMap;
use ogive_config::{Config, DocumentSourceOptions, PersistedMode};
use ogive_documents::ManifestEntry;

pub(crate) use super::source::DocumentSource;
use super::{
    epoch::{lock, named, seconds_since_1970},
    hive::HiveDocuments,
    manifest::{Manifest, read_files},
    unknown::UnknownDocuments,
};

/// What becomes of a client's documents that are not trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DocumentRule {
    /// What becomes of documents that are not trusted.
    pub mode: PersistedMode,
    /// Whether a trusted document must be asked for by its id when others are refused.
    pub require_id: bool,
}

/// Trusted documents and what becomes of others.
#[derive(Debug)]
pub struct Trusted {
    /// For clients without a rule of their own.
    rule: DocumentRule,
    clients: FastMap<Box<str>, DocumentRule>,
    /// Whether what would be refused is served.
    pub(super) warn_only: bool,
    /// Whether unknown documents are logged, served or not.
    pub(super) log_unknown: bool,
    /// What files say.
    files: Vec<ManifestEntry>,
    pub(crate) sources: Vec<Arc<DocumentSource>>,
    pub(super) hive: Vec<Arc<HiveDocuments>>,
    pub(crate) unknown: Mutex<Arc<UnknownDocuments>>,
    current: ArcSwap<Manifest>,
    /// Held while it is put together, so that no older state of a source replaces a newer one.
    refreshing: Mutex<()>,
}

impl Trusted {
    /// What a configuration asks for; reads its files. The error is for the operator.
    pub(super) fn new(config: &Config) -> Result<Self, String> {
        let persisted = &config.persisted_queries;
        let mut files = read_files(&persisted.local_manifests)?;
        let (mut sources, mut hive) = (Vec::new(), Vec::new());
        for options in &persisted.sources {
            if options.kind().is_none() {
                return Err(
                    "`persisted_queries.sources`: of `path`, `url`, `s3` and `hive`, one has to be set".into(),
                );
            }
            if let Some(path) = &options.path {
                let mut entries = read_files(std::slice::from_ref(path))?;
                named(&mut entries, options);
                files.extend(entries);
            } else if options.hive.is_some() {
                hive.push(Arc::new(HiveDocuments::new(options)?));
            } else {
                sources.push(Arc::new(DocumentSource::new(options)?));
            }
        }
        // Files of one release do not contradict one another.
        let mut together = Manifest::default();
        for entry in &files {
            together.add(entry)?;
        }
        let rules = persisted.clients.iter().map(|client| {
            let rule = DocumentRule {
                mode: client.mode,
                require_id: client.require_id,
            };
            (client.name.as_str().into(), rule)
        });
        let trusted = Trusted {
            rule: DocumentRule {
                mode: persisted.mode,
                require_id: persisted.require_id,
            },
            clients: rules.collect(),
            warn_only: persisted.warn_only,
            log_unknown: persisted.log_unknown,
            files,
            sources,
            hive,
            unknown: Mutex::new(Arc::new(UnknownDocuments::new(&persisted.unknown))),
            current: ArcSwap::default(),
            refreshing: Mutex::default(),
        };
        trusted.refresh();
        Ok(trusted)
    }

    /// The documents as they are now.
    pub fn documents(&self) -> Guard<Arc<Manifest>> {
        self.current.load()
    }
    /// What becomes of a client's documents.
    pub(super) fn rule(&self, client: Option<&str>) -> DocumentRule {
        let own = client.and_then(|client| self.clients.get(client));
        *own.unwrap_or(&self.rule)
    }
    /// Whether it makes a difference who asks, or is told to anybody.
    pub(super) fn asks_for_client(&self, manifest: &Manifest) -> bool {
        !self.clients.is_empty()
            || manifest.tells_clients_apart()
            || self.hive.iter().any(|hive| hive.client_name().is_some())
            || self.rule.mode == PersistedMode::Log
            || self.warn_only
            || self.log_unknown
    }
    /// Whether a document that was let in may go on; `None`: whichever client asked.
    pub(super) fn still_admits(&self, text: &str, client: Option<&str>) -> bool {
        let is_required = match client {
            Some(_) => self.rule(client).mode == PersistedMode::Require,
            None => {
                let mut rules = self.clients.values().chain([&self.rule]);
                rules.any(|rule| rule.mode == PersistedMode::Require)
            }
        };
        let documents = self.documents();
        let is_known = match client {
            Some(_) => documents.has(client, text),
            None => documents.has_for_any(text),
        };
        !is_required || self.warn_only || is_known || self.hive.iter().any(|hive| hive.has(text))
    }
    /// Documents that are none of them.
    pub(crate) fn unknown(&self) -> Arc<UnknownDocuments> {
        Arc::clone(&lock(&self.unknown))
    }

    /// Puts what there is together. Gives when the first document ends.
    pub(crate) fn refresh(&self) -> Option<u64> {
        let _refreshing = lock(&self.refreshing);
        let fetched: Vec<Arc<Vec<ManifestEntry>>> =
            self.sources.iter().map(|source| source.entries()).collect();
        let all = self
            .files
            .iter()
            .chain(fetched.iter().flat_map(|entries| entries.iter()));
        let manifest = Manifest::of(all, seconds_since_1970());
        let ends = manifest.ends();
        self.current.store(Arc::new(manifest));
        ends
    }

    /// Takes over what was there before a reload, of sources that are the same.
    pub(crate) fn go_on(&self, before: &Trusted) {
        for source in &self.sources {
            let same = before.sources.iter().find(|b| b.is_same_place(source));
            if let Some(same) = same {
                source.go_on(same);
            }
        }
        for hive in &self.hive {
            let same = before.hive.iter().find(|b| b.is_same_place(hive));
            if let Some(same) = same {
                hive.go_on(same);
            }
        }
        let unknown = before.unknown();
        if unknown.is_for(&self.unknown()) {
            *lock(&self.unknown) = unknown;
        }
        self.refresh();
    }

    /// Waits for the first answer of every source, where the configuration asks for it. The error says what does not come.
    pub async fn ready(&self) -> Result<(), String> {
        for source in &self.sources {
            source.ready().await?;
        }
        Ok(())
    }
}

/// Whether a source can be used. The error is for the operator.
pub(crate) fn check_source(options: &DocumentSourceOptions) -> Result<(), String> {
    match (options.kind(), &options.path) {
        (None, _) => Err("of `path`, `url`, `s3` and `hive`, one has to be set".into()),
        (_, Some(path)) => Manifest::read(std::slice::from_ref(path)).map(drop),
        (Some("hive"), _) => HiveDocuments::new(options).map(drop),
        _ => DocumentSource::new(options).map(drop),
    }
}
