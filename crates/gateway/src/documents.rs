//! Documents known by an id: automatic persisted queries, and trusted documents from manifests.
//!
//! Part of stop 1: afterwards a request has a document, or was refused. An automatic persisted query is remembered only
//! after its document turned out to be valid, so that nobody can fill the memory with noise; its id must be the
//! document's SHA-256, so one client cannot change what another means.
//!
//! A trusted document is known by its canonical text ([`form`]): white space, commas, comments, descriptions, the order
//! of definitions and `query` before an anonymous query are how it is written, and all else is what it asks for.

use std::{path::Path, sync::Arc, time::Duration};

use ogive_base::{FastMap, FastSet, bounded_name};
use ogive_config::{Config, PersistedMode, StorageWord};
use ogive_files::Pipes;
use ogive_syntax::{Limits, SourceId, ast::Definition, parse, print_definition};
use ogive_telemetry::codes;
use quick_cache::{Weighter, sync::Cache};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{receive::GraphqlRequest, shared::error::RequestError, shared::json_value};

/// Largest manifest file in bytes.
const MANIFEST_BYTES_MAX: u64 = 256 << 20;
/// Largest `extensions.persistedQuery` in bytes.
const PERSISTED_QUERY_BYTES_MAX: usize = 8 << 10;
/// Longest id in bytes.
const ID_BYTES_MAX: usize = 512;

/// How documents are found.
#[derive(Clone, Debug, Default)]
pub struct DocumentOptions {
    /// Whether clients may register documents.
    pub apq: bool,
    /// How long those are kept where all processes find them; `None`: each process has its own.
    pub shared: Option<Duration>,
    /// Trusted documents, if ids are looked up.
    pub trusted: Option<Trusted>,
}

/// Trusted documents and what becomes of others.
#[derive(Clone, Debug)]
pub struct Trusted {
    /// The documents.
    pub manifest: Arc<Manifest>,
    /// What becomes of documents that are not among them.
    pub mode: PersistedMode,
    /// Whether a known document must be asked for by its id when others are refused.
    pub require_id: bool,
}

impl DocumentOptions {
    /// The options that a configuration asks for; reads its manifests. The error is for the operator.
    pub fn new(config: &Config) -> Result<Self, String> {
        let persisted = &config.persisted_queries;
        let trusted = if persisted.enabled {
            Some(Trusted {
                manifest: Arc::new(Manifest::read(&persisted.local_manifests)?),
                mode: persisted.mode,
                require_id: persisted.require_id,
            })
        } else {
            None
        };
        Ok(DocumentOptions {
            trusted,
            ..Self::without_files(config)
        })
    }

    /// The same without trusted documents.
    pub(crate) fn without_files(config: &Config) -> Self {
        let cache = &config.apq.router.cache;
        let is_shared = cache.storage == StorageWord::Redis;
        DocumentOptions {
            apq: config.apq.enabled,
            shared: is_shared.then_some(cache.ttl.0),
            trusted: None,
        }
    }
}

/// Most documents that were written in another way and are remembered, so that they are read once.
const REWRITTEN_MAX: usize = 1_000;

/// Documents by id.
#[derive(Clone, Debug)]
pub struct Manifest {
    by_id: FastMap<Box<str>, Known>,
    /// Of every document: SHA-256 of it without the white space around it, and its form.
    texts: FastMap<[u8; 32], Option<Form>>,
    /// The form of every document that can be read.
    forms: FastSet<Form>,
    /// Bytes of the longest document.
    longest: usize,
    /// SHA-256 of documents that are known although they are written in another way, and their forms.
    rewritten: Arc<Cache<[u8; 32], Form>>,
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
            by_id: FastMap::default(),
            texts: FastMap::default(),
            forms: FastSet::default(),
            longest: 0,
            rewritten: Arc::new(Cache::new(REWRITTEN_MAX)),
        }
    }
}

impl Manifest {
    /// Reads files, and the files of folders in order of their names.
    pub fn read(paths: &[String]) -> Result<Manifest, String> {
        let mut manifest = Manifest::default();
        for path in paths {
            let path = Path::new(path);
            if path.is_dir() {
                let fail = |e| format!("cannot read the folder `{}`: {e}", path.display());
                let mut files = Vec::new();
                for entry in std::fs::read_dir(path).map_err(fail)? {
                    files.push(entry.map_err(fail)?.path());
                }
                files.sort();
                for file in files {
                    let extension = file.extension().and_then(|e| e.to_str());
                    if matches!(extension, Some("json" | "graphql" | "gql")) {
                        manifest.read_file(&file)?;
                    }
                }
            } else {
                manifest.read_file(path)?;
            }
        }
        Ok(manifest)
    }

    fn read_file(&mut self, path: &Path) -> Result<(), String> {
        let fail = |what: &dyn std::fmt::Display| {
            format!("cannot use the manifest `{}`: {what}", path.display())
        };
        let bytes = ogive_files::read(path, MANIFEST_BYTES_MAX, Pipes::Refused);
        let bytes = bytes.map_err(|e| fail(&e))?;
        if path.extension().is_some_and(|e| e == "json") {
            return self.add_json(&bytes).map_err(|e| fail(&e));
        }
        let id = path
            .file_stem()
            .and_then(|s| s.to_str())
            .unwrap_or_default();
        let text = String::from_utf8(bytes).map_err(|_| fail(&"it is not UTF-8"))?;
        self.add(id, text).map_err(|e| fail(&e))
    }

    /// Adds Apollo's manifest, or Relay's object of id to document.
    pub fn add_json(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Value::Object(mut members) = json_value::read(bytes).map_err(|e| e.to_string())? else {
            return Err("it is not a JSON object".into());
        };
        match members.get("format").and_then(Value::as_str) {
            Some("apollo-persisted-query-manifest") => {}
            Some(other) => return Err(format!("its format `{other}` is not known")),
            None => {
                for (id, text) in members {
                    let Value::String(text) = text else {
                        return Err(format!("the document `{id}` is not a string"));
                    };
                    self.add(&id, text)?;
                }
                return Ok(());
            }
        }
        if members.get("version").and_then(Value::as_u64) != Some(1) {
            return Err("only version 1 of Apollo's manifest is known".into());
        }
        let Some(Value::Array(operations)) = members.swap_remove("operations") else {
            return Err("`operations` is not a list".into());
        };
        for mut operation in operations {
            let (Value::String(id), Value::String(body)) =
                (operation["id"].take(), operation["body"].take())
            else {
                return Err("an operation lacks `id` or `body`".into());
            };
            self.add(&id, body)?;
        }
        Ok(())
    }

    fn add(&mut self, id: &str, text: String) -> Result<(), String> {
        if id.is_empty() || id.len() > ID_BYTES_MAX {
            return Err(format!("an id has 1 to {ID_BYTES_MAX} bytes"));
        }
        let before = self.by_id.get(id);
        if before.is_some_and(|before| *before.text != *text) {
            return Err(format!("two documents have the id `{id}`"));
        }
        let form = form(&text).map(|form| sha256(&form));
        self.texts.insert(sha256(text.trim()), form);
        self.forms.extend(form);
        self.longest = self.longest.max(text.len());
        let text = text.into();
        self.by_id.insert(id.into(), Known { text, form });
        Ok(())
    }

    /// The document of an id.
    pub fn get(&self, id: &str) -> Option<&Arc<str>> {
        self.by_id.get(id).map(|known| &known.text)
    }
    /// Whether this is one of the documents, however it is written.
    pub fn has(&self, text: &str) -> bool {
        let hash = sha256(text.trim());
        self.texts.contains_key(&hash) || self.form_of(text, hash).is_some()
    }
    /// The form of a text, if it is that of a document; the text is read only if it was not lately. `hash` is that of the
    /// text.
    fn form_of(&self, text: &str, hash: [u8; 32]) -> Option<Form> {
        if let Some(form) = self.texts.get(&hash) {
            return *form;
        }
        if let Some(form) = self.rewritten.get(&hash) {
            return Some(form);
        }
        if !self.may_be_known(text) {
            return None;
        }
        let form = form(text).map(|form| sha256(&form));
        let form = form.filter(|form| self.forms.contains(form))?;
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
    fn is_of(&self, id: &str, text: &str) -> bool {
        let Some(known) = self.by_id.get(id) else {
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
        self.by_id.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

/// The canonical text of a document: what is left of it if how it is written does not count. `None` for a text that is
/// no document of operations and fragments.
pub fn form(text: &str) -> Option<String> {
    let parsed = parse(text, SourceId(0), &Limits::default());
    if !parsed.errors.is_empty() || parsed.document.definitions.is_empty() {
        return None;
    }
    let document = &parsed.document;
    let definitions = document.definitions.iter().map(|definition| {
        let mut definition = *definition;
        match &mut definition {
            Definition::Operation(operation) => operation.description = None,
            Definition::Fragment(fragment) => fragment.description = None,
            _ => return None,
        }
        Some(print_definition(document, &definition))
    });
    let mut definitions = definitions.collect::<Option<Vec<String>>>()?;
    definitions.sort_unstable();
    Some(definitions.join("\n\n"))
}

/// Documents that clients have registered.
#[derive(Debug)]
pub struct Registered {
    entries: Cache<[u8; 32], Arc<str>, BySize>,
}

#[derive(Clone, Debug)]
struct BySize;

impl Weighter<[u8; 32], Arc<str>> for BySize {
    fn weight(&self, _: &[u8; 32], text: &Arc<str>) -> u64 {
        1 + (text.len() >> 14) as u64
    }
}

impl Registered {
    /// Room for so many documents.
    pub fn new(size: usize) -> Self {
        Registered {
            entries: Cache::with_weighter(size, size as u64, BySize),
        }
    }
    /// Remembers a document; whether it was not known before.
    pub fn insert(&self, hash: [u8; 32], text: &str) -> bool {
        let is_new = self.entries.get(&hash).is_none();
        if is_new {
            self.entries.insert(hash, text.into());
        }
        is_new
    }
    /// Remembers the document of a request that has only its hash, if it is `text`: what others wrote down is not believed.
    pub(crate) fn insert_found(&self, hash: [u8; 32], text: &str) {
        if sha256(text) == hash {
            self.insert(hash, text);
        }
    }
    /// Whether a document is known.
    pub(crate) fn has(&self, hash: &[u8; 32]) -> bool {
        self.entries.get(hash).is_some()
    }
    /// Number of documents.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl DocumentOptions {
    /// Whether an operation that was let in may go on.
    pub(crate) fn still_admit(&self, text: &str) -> bool {
        self.trusted.as_ref().is_none_or(|trusted| {
            trusted.mode != PersistedMode::Require || trusted.manifest.has(text)
        })
    }
}

/// Gives a request its document, if it has not got it yet.
pub(crate) fn resolve_once(
    request: &mut GraphqlRequest,
    options: &DocumentOptions,
    registered: &Registered,
) -> Result<Option<[u8; 32]>, RequestError> {
    match request.resolved.take() {
        Some(resolved) => Ok(*resolved),
        None => resolve(request, options, registered),
    }
}

/// Gives a request its document. The hash, if any, is to be registered once the document has proved valid.
pub fn resolve(
    request: &mut GraphqlRequest,
    options: &DocumentOptions,
    registered: &Registered,
) -> Result<Option<[u8; 32]>, RequestError> {
    let hash = match persisted_hash(request)? {
        Some(hash) => Some(hash),
        None if request.document_id.is_none() && options.trusted.is_none() => return Ok(None),
        None => None,
    };
    if let Some(trusted) = &options.trusted {
        let id = request.document_id.as_deref().or(hash.as_deref());
        if let Some((id, text)) = id.and_then(|id| Some((id, trusted.manifest.get(id)?))) {
            if !request.query.is_empty() && !trusted.manifest.is_of(id, &request.query) {
                return Err(RequestError::graphql(
                    codes::PERSISTED_QUERY_HASH_MISMATCH,
                    "the document sent along is not the one of this id",
                ));
            }
            request.query = text.to_string();
            return Ok(None);
        }
        if request.query.is_empty()
            && (request.document_id.is_some() || trusted.mode == PersistedMode::Require)
        {
            if id.is_none() {
                return Ok(None);
            }
            return Err(not_in_list());
        }
        if !request.query.is_empty() && trusted.mode != PersistedMode::Allow {
            let known = trusted.manifest.has(&request.query);
            match (trusted.mode, known) {
                (PersistedMode::Require, false) => {
                    return Err(RequestError::graphql(
                        codes::QUERY_NOT_IN_SAFELIST,
                        "the operation is not in the list of known operations",
                    ));
                }
                (PersistedMode::Require, true) if trusted.require_id => {
                    return Err(RequestError::graphql(
                        codes::PERSISTED_QUERY_ID_REQUIRED,
                        "the operation must be asked for by its id",
                    ));
                }
                (PersistedMode::Log, false) => tracing::warn!(
                    operation = request
                        .operation_name
                        .as_deref()
                        .map(bounded_name)
                        .as_deref(),
                    sha256 = hex(&sha256(request.query.trim())),
                    "an operation is not in any manifest"
                ),
                _ => {}
            }
        }
    } else if request.document_id.is_some() && request.query.is_empty() {
        return Err(RequestError::graphql(
            codes::PERSISTED_QUERY_NOT_IN_LIST,
            "documents are not served by id here",
        ));
    }
    let Some(hash) = hash else {
        return Ok(None);
    };
    if !options.apq {
        return if request.query.is_empty() {
            Err(RequestError::graphql(
                codes::PERSISTED_QUERY_NOT_SUPPORTED,
                "PersistedQueryNotSupported",
            ))
        } else {
            Ok(None)
        };
    }
    let wanted = unhex(&hash).ok_or_else(|| {
        RequestError::graphql(
            codes::PERSISTED_QUERY_HASH_MISMATCH,
            "the hash is not a SHA-256 in hexadecimal",
        )
    })?;
    if request.query.is_empty() {
        // Clients of automatic persisted queries look for these very words.
        let text = registered.entries.get(&wanted).ok_or_else(|| {
            RequestError::graphql(codes::PERSISTED_QUERY_NOT_FOUND, "PersistedQueryNotFound")
        })?;
        request.query = text.to_string();
        return Ok(None);
    }
    if sha256(&request.query) != wanted {
        return Err(RequestError::graphql(
            codes::PERSISTED_QUERY_HASH_MISMATCH,
            "provided sha does not match query",
        ));
    }
    Ok(Some(wanted))
}

fn not_in_list() -> RequestError {
    RequestError::graphql(
        codes::PERSISTED_QUERY_NOT_IN_LIST,
        "no document has this id",
    )
}

/// `extensions.persistedQuery.sha256Hash` of version 1.
pub(crate) fn persisted_hash(request: &GraphqlRequest) -> Result<Option<String>, RequestError> {
    let Some(persisted) = &request.persisted_query else {
        return Ok(None);
    };
    let malformed = |what: &str| Err(RequestError::http(codes::INVALID_GRAPHQL_REQUEST, what));
    if persisted.len() > PERSISTED_QUERY_BYTES_MAX {
        return malformed("`extensions.persistedQuery` is larger than 8,192 bytes");
    }
    let persisted = json_value::read(persisted).unwrap_or_default();
    match persisted.get("version").and_then(Value::as_u64) {
        Some(1) => {}
        _ => return malformed("`extensions.persistedQuery.version` is not 1"),
    }
    match persisted.get("sha256Hash") {
        Some(Value::String(hash)) if hash.len() <= ID_BYTES_MAX => Ok(Some(hash.clone())),
        _ => malformed("`extensions.persistedQuery.sha256Hash` is not a hash"),
    }
}

fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

pub(crate) fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Option<[u8; 32]> {
    let bytes = text.as_bytes();
    if bytes.len() != 64 || !bytes.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(bytes.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_of_apollo_and_relay() {
        let mut manifest = Manifest::default();
        manifest
            .add_json(
                br#"{"format":"apollo-persisted-query-manifest","version":1,
                     "operations":[{"id":"a1","name":"A","type":"query","body":"query A{a}"}]}"#,
            )
            .unwrap();
        manifest.add_json(br#"{"b2":"query B{b}"}"#).unwrap();
        assert_eq!(manifest.len(), 2);
        assert_eq!(manifest.get("a1").map(|t| &**t), Some("query A{a}"));
        assert!(manifest.has("\nquery B{b} ") && !manifest.has("query C{c}"));
        for (bad, why) in [
            (&br#"[]"#[..], "not a JSON object"),
            (br#"{"format":"other"}"#, "`other`"),
            (
                br#"{"format":"apollo-persisted-query-manifest","version":2}"#,
                "version 1",
            ),
            (
                br#"{"format":"apollo-persisted-query-manifest","version":1}"#,
                "`operations`",
            ),
            (br#"{"a1":"{other}"}"#, "two documents"),
            (br#"{"x":1}"#, "`x` is not a string"),
        ] {
            let found = manifest.add_json(bad).unwrap_err();
            assert!(found.contains(why), "{found}");
        }
    }

    #[test]
    fn hashes_are_hexadecimal() {
        let hash = sha256("{__typename}");
        assert_eq!(
            hex(&hash),
            "ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38"
        );
        assert_eq!(unhex(&hex(&hash)), Some(hash));
        assert_eq!(unhex("xx"), None);
        assert_eq!(unhex(&"g".repeat(64)), None);
    }

    const KNOWN: &str = "query A($x: [Int!] = [1, 2]) @a(b: \"c\") { me(id: 1, o: {p: ENUM, q: [null, $x]}) { n: name ...F } }
                         fragment F on User { id @include(if: true) ... on Admin { name(s: \"\"\"b\"\"\") } }";

    fn manifest(text: &str) -> Manifest {
        let mut manifest = Manifest::default();
        manifest.add("known", text.to_owned()).unwrap();
        manifest
    }

    #[test]
    fn how_a_document_is_written_does_not_count() {
        let known = manifest(KNOWN);
        let printed = "# sent by a tool\nfragment F on User {\n  id @include(if: true)\n  ... on Admin {\n    \
                       name(s: \"\"\"\n      b\n    \"\"\")\n  }\n}\n\n\"\"\"What it is for\"\"\"\nquery A(\n  $x: [Int!] = [1 2]\n) \
                       @a(b: \"\\u0063\"), {\n  me(id: 1 o: {p: ENUM,, q: [null, $x]}) {\n    n: name\n    ...F\n  }\n}\n";
        assert!(known.has(KNOWN) && known.has(printed) && known.has(printed));
        assert!(known.is_of("known", printed) && known.is_of("known", KNOWN));
        let short = manifest("query { me { name } }");
        assert!(short.has("{me{name}}") && short.has("{ me, { name } } # !"));
        assert!(!short.has("query A { me { name } }"));
        // No document, or one that is far longer than any known: only the very text would do.
        assert!(!short.has("{me{name}") && !short.has("type Query { me: Int }"));
        assert!(!short.has(&format!("{{me{{name{}}}}}", " ".repeat(10_000))));
        assert!(manifest("not GraphQL").has(" not GraphQL "));
    }

    #[test]
    fn a_document_that_comes_with_its_id_is_read_once() {
        let mut known = manifest("query { me { name } }");
        known.add("other", "{ me { id } }".to_owned()).unwrap();
        assert_eq!(known.rewritten.len(), 0);
        for _ in 0..3 {
            assert!(known.is_of("known", "{me{name}}") && !known.is_of("other", "{me{name}}"));
            assert!(known.is_of("other", " { me { id } } "));
            assert_eq!(known.rewritten.len(), 1, "it is remembered");
        }
        // What is none of them is none the next time, and takes no room.
        assert!(!known.is_of("known", "{me{email}}") && !known.has("{me{email}}"));
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
            if known.has(&text) {
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
