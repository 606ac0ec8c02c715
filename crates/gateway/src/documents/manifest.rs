//! Trusted documents, by id and by what they ask for.
//!
//! A trusted document is known by its canonical text ([`form()`]): white space, commas, comments, descriptions, the order
//! of definitions and `query` before an anonymous query are how it is written, and all else is what it asks for. A document
//! may be one client's only; what is everybody's is every client's, too.

use std::{path::Path, sync::Arc};

use ogive_base::{FastMap, FastSet, encode::decode_hex};
use ogive_documents::{ManifestEntry, form, manifest, sha256};
use ogive_files::Pipes;
use quick_cache::sync::Cache;

/// Largest manifest file in bytes.
const MANIFEST_BYTES_MAX: u64 = 256 << 20;
/// Most documents that were written in another way and are remembered, so that they are read once.
const REWRITTEN_MAX: usize = 1_000;

/// Documents by id.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Those of all clients.
    all: Part,
    /// Those of some, by their names.
    clients: FastMap<Box<str>, Part>,
    /// Bytes of the longest document.
    longest: usize,
    /// SHA-256 of documents that are known although they are written in another way, and their forms.
    rewritten: Arc<Cache<[u8; 32], Form>>,
    /// When the first of them ends.
    ends: Option<u64>,
}

/// Documents of the same clients.
#[derive(Clone, Debug, Default)]
struct Part {
    by_id: FastMap<Box<str>, Known>,
    /// Of every document: SHA-256 of it without the white space around it, and its form.
    texts: FastMap<[u8; 32], Option<Form>>,
    /// By the SHA-256 of the whole document.
    by_hash: FastMap<[u8; 32], Known>,
    /// The form of every document that can be read.
    forms: FastSet<Form>,
}

/// SHA-256 of a canonical text.
type Form = [u8; 32];

/// A document that has an id.
#[derive(Clone, Debug)]
struct Known {
    text: Arc<str>,
    /// None for a text that is no document.
    form: Option<Form>,
}

impl Default for Manifest {
    fn default() -> Self {
        Manifest {
            all: Part::default(),
            clients: FastMap::default(),
            longest: 0,
            rewritten: Arc::new(Cache::new(REWRITTEN_MAX)),
            ends: None,
        }
    }
}

/// Reads the documents of files, and of the files of folders in order of their names.
pub(crate) fn read_files(paths: &[String]) -> Result<Vec<ManifestEntry>, String> {
    let mut entries = Vec::new();
    for path in paths {
        let path = Path::new(path);
        if !path.is_dir() {
            read_file(path, &mut entries)?;
            continue;
        }
        let fail = |e| format!("cannot read the folder `{}`: {e}", path.display());
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).map_err(fail)? {
            files.push(entry.map_err(fail)?.path());
        }
        files.sort();
        for file in files {
            let extension = file.extension().and_then(|e| e.to_str());
            if matches!(extension, Some("json" | "graphql" | "gql")) {
                read_file(&file, &mut entries)?;
            }
        }
    }
    Ok(entries)
}

fn read_file(path: &Path, out: &mut Vec<ManifestEntry>) -> Result<(), String> {
    let fail = |what: &dyn std::fmt::Display| {
        format!("cannot use the manifest `{}`: {what}", path.display())
    };
    let bytes = ogive_files::read(path, MANIFEST_BYTES_MAX, Pipes::Refused);
    let bytes = bytes.map_err(|e| fail(&e))?;
    let id = path.file_stem().and_then(|s| s.to_str());
    if path.extension().is_some_and(|e| e == "json") {
        out.extend(manifest::read(&bytes, id).map_err(|e| fail(&e))?);
        return Ok(());
    }
    let text = String::from_utf8(bytes).map_err(|_| fail(&"it is not UTF-8"))?;
    out.push(ManifestEntry::new(id.unwrap_or_default(), text));
    Ok(())
}

impl Manifest {
    /// Reads files, and the files of folders in order of their names.
    pub fn read(paths: &[String]) -> Result<Manifest, String> {
        let mut manifest = Manifest::default();
        for entry in read_files(paths)? {
            manifest.add(&entry)?;
        }
        Ok(manifest)
    }

    /// All documents that have not ended by then, in seconds since 1970. Of two with one id the first counts.
    pub(crate) fn of<'e>(entries: impl Iterator<Item = &'e ManifestEntry>, now: u64) -> Manifest {
        let mut manifest = Manifest::default();
        for entry in entries {
            if entry.expires.is_some_and(|end| end <= now) {
                continue;
            }
            manifest.ends = manifest.ends.into_iter().chain(entry.expires).min();
            if let Err(why) = manifest.add(entry) {
                tracing::warn!("a trusted document is left out: {why}");
            }
        }
        manifest
    }

    /// Adds a document. No other one may have its id.
    pub fn add(&mut self, entry: &ManifestEntry) -> Result<(), String> {
        let part = match &entry.client {
            None => &mut self.all,
            Some(client) => self.clients.entry(client.as_str().into()).or_default(),
        };
        let (id, text) = (&*entry.id, &entry.text);
        let before = part.by_id.get(id);
        if before.is_some_and(|before| *before.text != **text) {
            return Err(format!("two documents have the id `{id}`"));
        }
        let form = form(text).map(|form| sha256(&form));
        let known = Known {
            text: Arc::clone(text),
            form,
        };
        part.texts.insert(sha256(text.trim()), form);
        part.by_hash.insert(sha256(text), known.clone());
        part.forms.extend(form);
        part.by_id.insert(id.into(), known);
        self.longest = self.longest.max(text.len());
        Ok(())
    }

    /// When the first of them ends, in seconds since 1970.
    pub(crate) fn ends(&self) -> Option<u64> {
        self.ends
    }
    /// Whether any document is some client's only.
    pub(crate) fn tells_clients_apart(&self) -> bool {
        !self.clients.is_empty()
    }

    /// What a client has: its own documents, and everybody's.
    fn parts<'m>(&'m self, client: Option<&str>) -> impl Iterator<Item = &'m Part> {
        let own = client.and_then(|client| self.clients.get(client));
        own.into_iter().chain([&self.all])
    }
    fn known(&self, client: Option<&str>, id: &str) -> Option<&Known> {
        let hash = id.strip_prefix(manifest::SHA256_PREFIX);
        let hash = hash.and_then(decode_hex);
        self.parts(client).find_map(|part| {
            let by_hash = || part.by_hash.get(&hash?);
            part.by_id.get(id).or_else(by_hash)
        })
    }
    /// The document of an id, as a client means it.
    pub fn get(&self, client: Option<&str>, id: &str) -> Option<&Arc<str>> {
        self.known(client, id).map(|known| &known.text)
    }
    /// Whether this is one of a client's documents, however it is written.
    pub fn has(&self, client: Option<&str>, text: &str) -> bool {
        let hash = sha256(text.trim());
        if self
            .parts(client)
            .any(|part| part.texts.contains_key(&hash))
        {
            return true;
        }
        let form = self.form_of(text, hash);
        form.is_some_and(|form| self.parts(client).any(|part| part.forms.contains(&form)))
    }
    /// The same for whichever client.
    pub(crate) fn has_for_any(&self, text: &str) -> bool {
        self.has(None, text)
            || self
                .clients
                .keys()
                .any(|client| self.has(Some(client), text))
    }
    /// The form of a text, if it is that of a document; the text is read only if it was not lately. `hash` is that of the
    /// text.
    fn form_of(&self, text: &str, hash: [u8; 32]) -> Option<Form> {
        let mut all = self.clients.values().chain([&self.all]);
        if let Some(form) = all.find_map(|part| part.texts.get(&hash)) {
            return *form;
        }
        if let Some(form) = self.rewritten.get(&hash) {
            return Some(form);
        }
        if !self.may_be_known(text) {
            return None;
        }
        let form = form(text).map(|form| sha256(&form));
        let mut all = self.clients.values().chain([&self.all]);
        let form = form.filter(|form| all.any(|part| part.forms.contains(form)))?;
        self.rewritten.insert(hash, form);
        Some(form)
    }
    /// Whether it is worth reading: indentation makes a document several times as long, and no more.
    fn may_be_known(&self, text: &str) -> bool {
        const TIMES_MAX: usize = 8;
        text.len()
            <= self
                .longest
                .saturating_mul(TIMES_MAX)
                .saturating_add(1 << 10)
    }
    /// Whether a text is the document of an id, however it is written.
    pub(super) fn is_of(&self, client: Option<&str>, id: &str, text: &str) -> bool {
        let Some(known) = self.known(client, id) else {
            return false;
        };
        let is_same_form = || {
            let form = self.form_of(text, sha256(text.trim()));
            form.is_some() && form == known.form
        };
        text.trim() == known.text.trim() || is_same_form()
    }
    /// Number of ids.
    pub fn len(&self) -> usize {
        let clients = self.clients.values().map(|part| part.by_id.len());
        self.all.by_id.len() + clients.sum::<usize>()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(client: Option<&str>, id: &str, text: &str) -> ManifestEntry {
        ManifestEntry {
            client: client.map(str::to_owned),
            ..ManifestEntry::new(id, text)
        }
    }

    #[test]
    fn a_document_is_everybodys_or_one_clients() {
        let web = Some("web");
        let mut entries = [
            entry(None, "1", "{all}"),
            entry(web, "1", "{web}"),
            entry(web, "2", "{own}"),
            entry(Some("ios"), "3", "{ios}"),
            entry(None, "1", "{other}"),
        ];
        entries[2].expires = Some(100);
        let manifest = Manifest::of(entries.iter(), 99);
        assert_eq!((manifest.len(), manifest.ends()), (4, Some(100)));
        let get = |client, id| manifest.get(client, id).map(|t| &**t);
        assert_eq!(
            (get(None, "1"), get(web, "1")),
            (Some("{all}"), Some("{web}"))
        );
        assert_eq!(
            (get(None, "2"), get(web, "2"), get(web, "3")),
            (None, Some("{own}"), None)
        );
        assert!(manifest.has(web, "query { all }") && manifest.has(web, "{ own }"));
        assert!(!manifest.has(None, "{ own }") && !manifest.has(Some("ios"), "{own}"));
        assert!(manifest.has_for_any("{ own }") && !manifest.has_for_any("{x}"));
        assert!(manifest.is_of(web, "1", "{ web }") && !manifest.is_of(None, "1", "{ web }"));
        let hash = format!("sha256:{}", ogive_base::encode::hex(&sha256("{all}")));
        assert_eq!(get(None, &hash), Some("{all}"));
        assert_eq!(get(None, "sha256:00"), None);
        assert_eq!(
            Manifest::of(entries.iter(), 100).get(web, "2"),
            None,
            "it has ended"
        );
    }

    const KNOWN: &str = "query A($x: [Int!] = [1, 2]) @a(b: \"c\") { me(id: 1, o: {p: ENUM, q: [null, $x]}) { n: name ...F } }
                         fragment F on User { id @include(if: true) ... on Admin { name(s: \"\"\"b\"\"\") } }";

    fn manifest(text: &str) -> Manifest {
        let mut manifest = Manifest::default();
        manifest.add(&entry(None, "known", text)).unwrap();
        manifest
    }

    #[test]
    fn how_a_document_is_written_does_not_count() {
        let known = manifest(KNOWN);
        let printed = "# sent by a tool\nfragment F on User {\n  id @include(if: true)\n  ... on Admin {\n    \
                       name(s: \"\"\"\n      b\n    \"\"\")\n  }\n}\n\n\"\"\"What it is for\"\"\"\nquery A(\n  $x: [Int!] = [1 2]\n) \
                       @a(b: \"\\u0063\"), {\n  me(id: 1 o: {p: ENUM,, q: [null, $x]}) {\n    n: name\n    ...F\n  }\n}\n";
        assert!(known.has(None, KNOWN) && known.has(None, printed) && known.has(None, printed));
        assert!(known.is_of(None, "known", printed) && known.is_of(None, "known", KNOWN));
        let short = manifest("query { me { name } }");
        assert!(short.has(None, "{me{name}}") && short.has(None, "{ me, { name } } # !"));
        assert!(!short.has(None, "query A { me { name } }"));
        // No document, or one that is far longer than any known: only the very text would do.
        assert!(!short.has(None, "{me{name}") && !short.has(None, "type Query { me: Int }"));
        assert!(!short.has(None, &format!("{{me{{name{}}}}}", " ".repeat(10_000))));
        assert!(manifest("not GraphQL").has(None, " not GraphQL "));
    }

    #[test]
    fn a_document_that_comes_with_its_id_is_read_once() {
        let mut known = manifest("query { me { name } }");
        known.add(&entry(None, "other", "{ me { id } }")).unwrap();
        assert_eq!(known.rewritten.len(), 0);
        for _ in 0..3 {
            assert!(
                known.is_of(None, "known", "{me{name}}")
                    && !known.is_of(None, "other", "{me{name}}")
            );
            assert!(known.is_of(None, "other", " { me { id } } "));
            assert_eq!(known.rewritten.len(), 1, "it is remembered");
        }
        // What is none of them is none the next time, and takes no room.
        assert!(!known.is_of(None, "known", "{me{email}}") && !known.has(None, "{me{email}}"));
        assert_eq!(known.rewritten.len(), 1);
    }

    /// Every change of one token, and every token left out or written twice, is another document. No change that
    /// passes as the same reads as anything else.
    #[test]
    fn what_a_document_asks_for_counts() {
        let tokens = tokens(KNOWN);
        assert!(tokens.len() > 80);
        let known = manifest(KNOWN);
        let (mut others, mut same) = (0, 0);
        let mut check = |changed: &[&str]| {
            let text = changed.join(" ");
            if known.has(None, &text) {
                // Commas and the order of definitions are all that may differ.
                let mut sorted = changed.to_vec();
                let mut wanted = tokens.clone();
                for all in [&mut sorted, &mut wanted] {
                    all.retain(|token| *token != ",");
                    all.sort_unstable();
                }
                assert_eq!(sorted, wanted, "{text}");
                same += 1;
            } else {
                others += 1;
            }
        };
        for at in 0..tokens.len() {
            let with = |other: &[&'static str]| {
                let other = other.iter().copied();
                let (before, after) = (&tokens[..at], &tokens[at + 1..]);
                before
                    .iter()
                    .copied()
                    .chain(other)
                    .chain(after.iter().copied())
                    .collect::<Vec<&str>>()
            };
            check(&with(&[]));
            for other in [
                "z", "A", "x", "id", "2", "true", "null", "\"z\"", "...", "$", "!", "{", "}", "@b",
                "n : m", ",",
            ] {
                if other != tokens[at] {
                    check(&with(&[other]));
                }
            }
            let mut twice = tokens.clone();
            twice.insert(at, tokens[at]);
            check(&twice);
            if at > 0 {
                let mut swapped = tokens.clone();
                swapped.swap(at - 1, at);
                check(&swapped);
            }
        }
        assert!(
            others > 1_000 && same > 5,
            "{others} others, {same} the same"
        );
    }

    /// The tokens of a text, commas included.
    fn tokens(text: &'static str) -> Vec<&'static str> {
        let mut out = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = match first {
                '"' if rest.starts_with("\"\"\"") => 6 + rest[3..].find("\"\"\"").unwrap(),
                '"' => 2 + rest[1..].find('"').unwrap(),
                '.' => 3,
                c if name(c) => rest.find(|c| !name(c)).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            out.push(&rest[..length]);
            rest = rest[length..].trim_start();
        }
        out
    }
}
