//! Manifests: lists of documents by id.
//!
//! | format | shape |
//! |---|---|
//! | Apollo's persisted query manifest | `{"format":"apollo-persisted-query-manifest","version":1,"operations":[{id,name,type,body,clientName?}]}` |
//! | Relay's persisted queries, Hive's app deployments, GraphQL Code Generator's persisted documents | `{ID: TEXT}` |
//! | Cosmo's manifest, Cosmo's file of one operation | `{"version":1,"operations":{ID: TEXT}}`, `{"version":1,"body":TEXT}` |
//! | documents without ids | `[TEXT]`, `[{body or query, name?, id?}]`, `{"operations":[...]}` of either |
//!
//! An operation of Apollo's format may say until when it is served (`expires`, seconds since 1970), so that a manifest can
//! hold what old versions of an app still send.
//!
//! A manifest comes from others: it is read without recursion, and what is wrong with it is said by [`ManifestError`].

use std::sync::Arc;

use ogive_base::encode::hex;
use ogive_json::{Kind, Node, Tree, write_string};
use ogive_syntax::{Limits, SourceId, parse};
use thiserror::Error;

use crate::form::sha256;

/// Longest id in bytes.
pub const ID_BYTES_MAX: usize = 512;
/// Most documents of a manifest.
pub const ENTRIES_MAX: usize = 1_000_000;
/// Deepest nesting of JSON.
const DEPTH_MAX: u32 = 32;
/// What begins an id that says how it was made (GraphQL over HTTP, appendix A).
pub const SHA256_PREFIX: &str = "sha256:";

const APOLLO: &str = "apollo-persisted-query-manifest";

/// A document that has an id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ManifestEntry {
    /// By which clients ask for it.
    pub id: String,
    /// The client it is for; all, if none is named.
    pub client: Option<String>,
    /// Name of its operation, if the manifest says.
    pub name: Option<String>,
    /// When it is not served any more, in seconds since 1970.
    pub expires: Option<u64>,
    /// How often it was asked for, if somebody has counted.
    pub requests: Option<u64>,
    /// The document.
    pub text: Arc<str>,
}

impl ManifestEntry {
    /// A document for all clients, for as long as the manifest lists it.
    pub fn new(id: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        ManifestEntry {
            id: id.into(),
            client: None,
            name: None,
            expires: None,
            requests: None,
            text: text.into(),
        }
    }
    /// The same by the SHA-256 of the document.
    pub fn by_hash(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        ManifestEntry::new(hex(&sha256(&text)), text)
    }
}

/// What a manifest is written as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ManifestFormat {
    /// Apollo's persisted query manifest.
    Apollo,
    /// One object of id and document: Relay's persisted queries, Hive's app deployments.
    Map,
}

/// Why a text is no manifest.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ManifestError {
    /// It is no JSON.
    #[error("it is no JSON: {0}")]
    Json(String),
    /// It looks like a page for people.
    #[error("it is HTML, not JSON")]
    Html,
    /// It is JSON of another shape.
    #[error("it is not a JSON object")]
    Shape,
    /// Its format has another name.
    #[error("its format `{0}` is not known")]
    Format(String),
    /// Its version is another one.
    #[error("only version 1 of its format is known")]
    Version,
    /// It lists nothing.
    #[error("`operations` is not a list")]
    Operations,
    /// An operation lacks what is needed.
    #[error("an operation lacks `id` or `body`")]
    Incomplete,
    /// A document is no string.
    #[error("the document `{0}` is not a string")]
    Text(String),
    /// An id is empty or too long.
    #[error("an id has 1 to {ID_BYTES_MAX} bytes")]
    Id,
    /// Two documents have one id.
    #[error("two documents have the id `{0}`")]
    Twice(String),
    /// An id says that it is a hash, and is that of another document.
    #[error("the id `{0}` is not the SHA-256 of its document")]
    Hash(String),
    /// It is too long.
    #[error("it has more than {ENTRIES_MAX} documents")]
    TooMany,
}

/// Reads a manifest. A text without ids of its own, and a file of one operation, are known by `stem`, if there is one,
/// else by their hash.
pub fn read(bytes: &[u8], stem: Option<&str>) -> Result<Vec<ManifestEntry>, ManifestError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.trim_ascii_start().starts_with(b"<") {
        return Err(ManifestError::Html);
    }
    let tree = Tree::read(bytes, DEPTH_MAX);
    let tree = tree.map_err(|error| ManifestError::Json(error.to_string()))?;
    let root = tree.root();
    let entries = match root.kind() {
        Kind::Array => list(root)?,
        Kind::Object => object(root, stem)?,
        _ => return Err(ManifestError::Shape),
    };
    check(&entries)?;
    Ok(entries)
}

fn object(root: Node<'_>, stem: Option<&str>) -> Result<Vec<ManifestEntry>, ManifestError> {
    let format = root.get("format").and_then(Node::string);
    let has_version = root
        .get("version")
        .is_some_and(|v| v.kind() == Kind::Number);
    match format.as_deref() {
        Some(APOLLO) => {}
        Some(other) if !looks_like_document(other) => {
            return Err(ManifestError::Format(shown(other)));
        }
        _ if has_version => {}
        _ => match root.get("operations") {
            Some(listed) if listed.kind() == Kind::Array => return list(listed),
            _ => return map(root),
        },
    }
    if root.get("version").and_then(Node::number) != Some("1") {
        return Err(ManifestError::Version);
    }
    if let Some(text) = root.get("body").and_then(Node::string) {
        let mut entry = ManifestEntry::by_hash(text);
        if let Some(stem) = stem {
            stem.clone_into(&mut entry.id);
        }
        return Ok(vec![entry]);
    }
    let operations = root.get("operations").ok_or(ManifestError::Operations)?;
    match operations.kind() {
        Kind::Array => operations
            .items()
            .map(|item| operation(item, None))
            .collect(),
        Kind::Object => {
            let members = operations
                .members()
                .map(|(id, value)| (id.unescape(), value));
            let read = members.map(|(id, value)| match value.string() {
                Some(text) => Ok(ManifestEntry::new(id, text)),
                None => operation(value, Some(&id)),
            });
            read.collect()
        }
        _ => Err(ManifestError::Operations),
    }
}

/// A map may have a document by the id `format`.
fn looks_like_document(text: &str) -> bool {
    text.contains('{')
}

fn operation(node: Node<'_>, id: Option<&str>) -> Result<ManifestEntry, ManifestError> {
    let field = |name: &str| {
        let value = node.get(name).and_then(Node::string);
        value.map(|value| value.into_owned())
    };
    let number = |name: &str| {
        let value = node.get(name).and_then(Node::number);
        value.and_then(|value| value.parse().ok())
    };
    let id = field("id").or(id.map(str::to_owned));
    let (Some(id), Some(text)) = (id, field("body")) else {
        return Err(ManifestError::Incomplete);
    };
    Ok(ManifestEntry {
        client: field("clientName").filter(|name| !name.is_empty()),
        name: field("name").filter(|name| !name.is_empty()),
        expires: number("expires"),
        requests: number("requests"),
        ..ManifestEntry::new(id, text)
    })
}

fn map(root: Node<'_>) -> Result<Vec<ManifestEntry>, ManifestError> {
    let members = root.members().map(|(id, value)| (id.unescape(), value));
    let read = members.map(|(id, value)| match value.string() {
        Some(text) => Ok(ManifestEntry::new(id, text)),
        None => Err(ManifestError::Text(shown(&id))),
    });
    read.collect()
}

fn list(root: Node<'_>) -> Result<Vec<ManifestEntry>, ManifestError> {
    let read = root.items().map(|item| {
        if let Some(text) = item.string() {
            return Ok(ManifestEntry::by_hash(text));
        }
        let text = item.get("body").or(item.get("query"));
        let text = text.and_then(Node::string);
        let text = text.ok_or(ManifestError::Incomplete)?;
        let field = |name: &str| {
            let value = item.get(name).and_then(Node::string);
            value.map(|value| value.into_owned())
        };
        let mut entry = ManifestEntry::by_hash(text);
        entry.name = field("name");
        if let Some(id) = field("id") {
            entry.id = id;
        }
        Ok(entry)
    });
    read.collect()
}

fn check(entries: &[ManifestEntry]) -> Result<(), ManifestError> {
    if entries.len() > ENTRIES_MAX {
        return Err(ManifestError::TooMany);
    }
    for entry in entries {
        if entry.id.is_empty() || entry.id.len() > ID_BYTES_MAX {
            return Err(ManifestError::Id);
        }
        let said = entry.id.strip_prefix(SHA256_PREFIX);
        if said.is_some_and(|said| said != hex(&sha256(&entry.text))) {
            return Err(ManifestError::Hash(shown(&entry.id)));
        }
    }
    Ok(())
}

/// How many ids look like the SHA-256 of their document, and are not.
pub fn foreign_hashes(entries: &[ManifestEntry]) -> usize {
    let looks = |id: &str| id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit());
    let wrong = entries.iter().filter(|entry| {
        looks(&entry.id) && !entry.id.eq_ignore_ascii_case(&hex(&sha256(&entry.text)))
    });
    wrong.count()
}

/// Something foreign, short enough for a message.
fn shown(text: &str) -> String {
    text.chars().take(80).filter(|c| !c.is_control()).collect()
}

/// Writes a manifest: sorted by name, client and id, one operation per line.
pub fn write(entries: &[ManifestEntry], format: ManifestFormat) -> Vec<u8> {
    let mut entries: Vec<&ManifestEntry> = entries.iter().collect();
    let key = |entry: &ManifestEntry| {
        let (name, client) = (entry.name.clone(), entry.client.clone());
        (name.unwrap_or_default(), client, entry.id.clone())
    };
    entries.sort_by_cached_key(|entry| key(entry));
    match format {
        ManifestFormat::Apollo => apollo(&entries),
        ManifestFormat::Map => {
            let mut out = b"{".to_vec();
            let mut sorted = entries;
            sorted.sort_by(|a, b| a.id.cmp(&b.id));
            sorted.dedup_by(|a, b| a.id == b.id);
            for (i, entry) in sorted.iter().enumerate() {
                out.extend_from_slice(if i == 0 { b"\n  " } else { b",\n  " });
                write_string(&mut out, &entry.id);
                out.extend_from_slice(b": ");
                write_string(&mut out, &entry.text);
            }
            out.extend_from_slice(b"\n}\n");
            out
        }
    }
}

fn apollo(entries: &[&ManifestEntry]) -> Vec<u8> {
    let mut out =
        format!("{{\n  \"format\": \"{APOLLO}\",\n  \"version\": 1,\n  \"operations\": [")
            .into_bytes();
    for (i, entry) in entries.iter().enumerate() {
        out.extend_from_slice(if i == 0 { b"\n" } else { b",\n" });
        let mut member = |head: &str, text: &str| {
            out.extend_from_slice(head.as_bytes());
            write_string(&mut out, text);
        };
        member("    {\n      \"id\": ", &entry.id);
        member(
            ",\n      \"name\": ",
            entry.name.as_deref().unwrap_or_default(),
        );
        member(",\n      \"type\": ", kind_of(&entry.text));
        if let Some(client) = &entry.client {
            member(",\n      \"clientName\": ", client);
        }
        member(",\n      \"body\": ", &entry.text);
        for (name, value) in [("expires", entry.expires), ("requests", entry.requests)] {
            if let Some(value) = value {
                out.extend_from_slice(format!(",\n      \"{name}\": {value}").as_bytes());
            }
        }
        out.extend_from_slice(b"\n    }");
    }
    out.extend_from_slice(if entries.is_empty() {
        b"]\n}\n"
    } else {
        b"\n  ]\n}\n"
    });
    out
}

fn kind_of(text: &str) -> &'static str {
    let parsed = parse(text, SourceId(0), &Limits::default());
    let first = parsed.document.operations().next();
    first.map_or("query", |operation| operation.kind.as_str())
}

/// The documents of a new manifest, and those of the one before that are not in it any more: they live until then, or to
/// their own end, if that is earlier. Withdrawing a document has to work whatever end it was published with.
pub fn with_replaced(
    new: Vec<ManifestEntry>,
    before: &[ManifestEntry],
    now: u64,
    until: u64,
) -> Vec<ManifestEntry> {
    let mut out = new;
    let key = |entry: &ManifestEntry| (entry.client.clone(), entry.id.clone());
    let known: std::collections::BTreeSet<_> = out.iter().map(key).collect();
    for entry in before {
        let expires = entry.expires.map_or(until, |own| own.min(until));
        if expires > now && !known.contains(&key(entry)) {
            out.push(ManifestEntry {
                expires: Some(expires),
                ..entry.clone()
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<(String, String)> {
        let entries = read(text.as_bytes(), Some("stem")).unwrap();
        entries
            .into_iter()
            .map(|e| (e.id, e.text.to_string()))
            .collect()
    }

    #[test]
    fn every_format_is_read() {
        let one = |id: &str| vec![(id.to_owned(), "{a}".to_owned())];
        for text in [
            r#"{"format":"apollo-persisted-query-manifest","version":1,"operations":[{"id":"i","body":"{a}","name":"A","type":"query"}]}"#,
            r#"{"i":"{a}"}"#,
            "\u{feff}{\"i\":\"{a}\"}",
            r#"{"version":1,"revision":"r","generatedAt":"t","operations":{"i":"{a}"}}"#,
            r#"{"format":"apollo-persisted-query-manifest","version":1,"operations":{"i":{"body":"{a}","name":"A"}}}"#,
        ] {
            assert_eq!(ids(text), one("i"), "{text}");
        }
        assert_eq!(ids(r#"{"version":1,"body":"{a}"}"#), one("stem"));
        assert_eq!(ids(r#"["{a}"]"#), one(&hex(&sha256("{a}"))));
        assert_eq!(ids(r#"{"operations":["{a}"]}"#), one(&hex(&sha256("{a}"))));
        assert_eq!(
            ids(r#"{"operations":[{"id":"i","query":"{a}"}]}"#),
            one("i")
        );
        assert_eq!(ids(r#"{"format":"{a}"}"#), one("format"));
        assert_eq!(ids("{}"), vec![]);
    }

    #[test]
    fn what_is_no_manifest_says_why() {
        let apollo = "\"format\":\"apollo-persisted-query-manifest\"";
        for (text, why) in [
            ("<!doctype html><p>", "HTML"),
            ("", "no JSON"),
            ("{\"a\":\"{", "no JSON"),
            ("3", "not a JSON object"),
            ("{\"format\":\"other\",\"version\":1}", "`other`"),
            (&format!("{{{apollo},\"version\":2}}"), "version 1"),
            (&format!("{{{apollo},\"version\":1}}"), "`operations`"),
            (
                &format!("{{{apollo},\"version\":1,\"operations\":[{{}}]}}"),
                "lacks",
            ),
            ("{\"x\":1}", "`x` is not a string"),
            ("{\"\":\"{a}\"}", "1 to 512"),
            ("{\"sha256:00\":\"{a}\"}", "not the SHA-256"),
            (&format!("[{}", "[".repeat(100_000)), "no JSON"),
        ] {
            let found = read(text.as_bytes(), None).unwrap_err().to_string();
            assert!(found.contains(why), "{found}");
        }
    }

    #[test]
    fn what_is_written_is_read_again_and_sorted() {
        let entry = |id: &str, name: &str| ManifestEntry {
            name: Some(name.to_owned()),
            client: Some("web \"1\"".to_owned()),
            expires: Some(7),
            ..ManifestEntry::new(id, "mutation A {\n  a\n}")
        };
        let entries = [entry("2", "B"), entry("3", "A")];
        let sorted = vec![entries[1].clone(), entries[0].clone()];
        let written = write(&entries, ManifestFormat::Apollo);
        assert_eq!(read(&written, None).unwrap(), sorted);
        let text = String::from_utf8(written).unwrap();
        assert!(text.contains("\"type\": \"mutation\""), "{text}");
        let map = write(&entries, ManifestFormat::Map);
        assert_eq!(read(&map, None).unwrap().len(), 2);
        assert_eq!(read(&write(&[], ManifestFormat::Apollo), None), Ok(vec![]));
        assert_eq!(read(&write(&[], ManifestFormat::Map), None), Ok(vec![]));
    }

    #[test]
    fn what_is_replaced_lives_on_for_a_while() {
        let old = |id: &str, expires| ManifestEntry {
            expires,
            ..ManifestEntry::new(id, "{a}")
        };
        let before = [
            old("gone", None),
            old("stays", None),
            old("going", Some(150)),
            old("past", Some(90)),
        ];
        let now = with_replaced(
            vec![old("stays", None), old("new", None)],
            &before,
            100,
            200,
        );
        let now: Vec<_> = now.iter().map(|e| (&*e.id, e.expires)).collect();
        assert_eq!(
            now,
            [
                ("stays", None),
                ("new", None),
                ("gone", Some(200)),
                ("going", Some(150))
            ]
        );
    }
}
