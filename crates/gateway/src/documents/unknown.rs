//! Documents that clients ask for and no manifest lists: each told once, counted, and written to a file in the form of a
//! manifest, so that the commands that read manifests read it, too.
//!
//! Bounded by number and bytes; what is beyond is not remembered, and logged no more. Texts that are no documents are not
//! remembered either.

use std::{path::Path, sync::Mutex};

use ogive_base::{FastMap, bounded_name, encode::hex};
use ogive_config::UnknownDocumentsOptions;
use ogive_documents::{
    ManifestEntry, ManifestFormat, form, form::operation_name, manifest, sha256,
};
use ogive_files::{
    Pipes,
    kept::{Readers, keep},
};

use super::epoch::lock;

/// Most bytes of documents.
const BYTES_MAX: usize = 16 << 20;
/// Longest name of a client.
const CLIENT_BYTES_MAX: usize = 128;

/// Documents that are not trusted.
#[derive(Debug)]
pub(crate) struct UnknownDocuments {
    options: UnknownDocumentsOptions,
    state: Mutex<State>,
    /// One writes at a time: nothing older comes after what is newer, and the end waits for what is under way.
    writing: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    rows: FastMap<([u8; 32], Option<Box<str>>), ManifestEntry>,
    bytes: usize,
    is_full: bool,
    /// Whether there is anything that is not in the file.
    is_new: bool,
}

impl UnknownDocuments {
    /// Goes on with what the file says.
    pub(super) fn new(options: &UnknownDocumentsOptions) -> Self {
        let unknown = UnknownDocuments {
            options: options.clone(),
            state: Mutex::default(),
            writing: Mutex::default(),
        };
        let file = options.file.as_deref().map(Path::new);
        let bytes = file.and_then(|file| ogive_files::read(file, 1 << 28, Pipes::Refused).ok());
        let entries = bytes.and_then(|bytes| manifest::read(&bytes, None).ok());
        let mut state = lock(&unknown.state);
        for entry in entries.unwrap_or_default() {
            let client = entry.client.as_deref().map(Box::from);
            unknown.insert(&mut state, (sha256(entry.text.trim()), client), entry);
        }
        state.is_new = false;
        drop(state);
        unknown
    }
    /// Whether it is what equal options ask for.
    pub(super) fn is_for(&self, other: &UnknownDocuments) -> bool {
        self.options == other.options
    }
    /// Whether there is a file.
    pub(crate) fn is_written(&self) -> bool {
        self.options.file.is_some()
    }
    /// How often the file is written.
    pub(crate) fn interval(&self) -> std::time::Duration {
        self.options.interval.0
    }

    fn insert(&self, state: &mut State, key: ([u8; 32], Option<Box<str>>), entry: ManifestEntry) {
        let bytes = entry.text.len();
        if state.rows.len() >= self.options.max.get() || state.bytes + bytes > BYTES_MAX {
            if !std::mem::replace(&mut state.is_full, true) {
                tracing::warn!(
                    "more documents are asked for that are in no manifest than `persisted_queries.unknown.max`"
                );
            }
            return;
        }
        state.bytes += bytes;
        state.rows.insert(key, entry);
        state.is_new = true;
    }

    /// Notes that a document was asked for.
    pub(super) fn note(&self, client: Option<&str>, name: Option<&str>, text: &str, why: &str) {
        let hash = sha256(text.trim());
        let client = client.map(|client| bounded_client(client).into());
        let key = (hash, client);
        let mut state = lock(&self.state);
        if let Some(row) = state.rows.get_mut(&key) {
            row.requests = row.requests.map(|count| count.saturating_add(1));
            state.is_new = true;
            return;
        }
        if state.is_full {
            return;
        }
        drop(state);
        // Others need not wait for it to be read.
        if form(text).is_none() {
            return;
        }
        // Clients need not name the only operation of a document.
        let only = name.is_none().then(|| operation_name(text)).flatten();
        let name = name.or(only.as_deref());
        tracing::warn!(
            operation = name.map(bounded_name).as_deref(),
            client = key.1.as_deref(),
            sha256 = hex(&hash),
            "{why}"
        );
        let entry = ManifestEntry {
            client: key.1.as_deref().map(str::to_owned),
            name: name.map(|name| bounded_name(name).to_string()),
            requests: Some(1),
            ..ManifestEntry::by_hash(text)
        };
        let mut state = lock(&self.state);
        self.insert(&mut state, key, entry);
    }

    /// Writes the file, if there is anything new.
    pub(crate) fn write(&self) {
        let Some(path) = &self.options.file else {
            return;
        };
        let _writing = lock(&self.writing);
        let entries: Vec<ManifestEntry> = {
            let mut state = lock(&self.state);
            if !std::mem::take(&mut state.is_new) {
                return;
            }
            let mut entries: Vec<ManifestEntry> = Vec::with_capacity(state.rows.len());
            entries.extend(state.rows.values().cloned());
            entries
        };
        let bytes = manifest::write(&entries, ManifestFormat::Apollo);
        if let Err(error) = keep(Path::new(path), &bytes, Readers::Owner) {
            tracing::warn!(%error, path, "the documents that are in no manifest cannot be written down");
            lock(&self.state).is_new = true;
        }
    }
}

/// As much of a client's name as is kept.
fn bounded_client(client: &str) -> &str {
    let mut end = client.len().min(CLIENT_BYTES_MAX);
    while !client.is_char_boundary(end) {
        end -= 1;
    }
    &client[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_bounded_counted_and_a_manifest() {
        let file = std::env::temp_dir().join(format!("ogive-unknown-{}.json", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let options = UnknownDocumentsOptions {
            file: Some(file.display().to_string()),
            max: std::num::NonZeroUsize::new(2).unwrap(),
            ..UnknownDocumentsOptions::default()
        };
        let unknown = UnknownDocuments::new(&options);
        let why = "not listed";
        for text in ["{a}", "{a} ", "no document", "query B {b}", "{c}"] {
            unknown.note(None, None, text, why);
        }
        unknown.note(Some("web"), None, "{a}", why);
        unknown.write();
        let read = || manifest::read(&std::fs::read(&file).unwrap(), None).unwrap();
        let entries = read();
        assert_eq!(entries.len(), 2);
        let names: Vec<_> = entries.iter().filter_map(|e| e.name.as_deref()).collect();
        assert!(names.contains(&"B"), "{names:?}");
        assert_eq!(entries.iter().filter_map(|e| e.requests).max(), Some(2));
        // The next process goes on with it.
        let next = UnknownDocuments::new(&options);
        next.note(None, None, "{a}", why);
        next.write();
        assert_eq!(read().iter().filter_map(|e| e.requests).max(), Some(3));
        std::fs::remove_file(&file).unwrap();
    }
}
