//! Tags: an invalidation names tags, and invalidates all entries that have one of them.
//!
//! A tag is 64 bits of a keyed hash of its kind and its names. If the hashes of two names collide, an invalidation of one
//! invalidates the entries of the other, too.

use http::{HeaderMap, HeaderName};

use crate::{
    KeySecret,
    directives::joined,
    key::write_part,
    siphash::Siphash,
    structured::{Value, parse_list},
};

/// `Cache-Groups` (RFC 9875, section 2): groups that an answer belongs to.
pub const CACHE_GROUPS: HeaderName = HeaderName::from_static("cache-groups");
/// `Cache-Group-Invalidation` (RFC 9875, section 3): groups that an answer to a mutation invalidates.
pub const CACHE_GROUP_INVALIDATION: HeaderName =
    HeaderName::from_static("cache-group-invalidation");

/// Most groups of one answer; further groups are ignored. RFC 9875 requires at least 32.
pub const GROUPS_MAX: usize = 128;
/// Longest name of a group in bytes; groups with longer names are ignored. RFC 9875 requires at least 32.
pub const GROUP_BYTES_MAX: usize = 256;

/// The name of a tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TagName<'a> {
    /// All answers of a subgraph.
    Subgraph(&'a str),
    /// All entities of one type in the answers of a subgraph.
    Type {
        /// The subgraph's name.
        subgraph: &'a str,
        /// The type's name.
        name: &'a str,
    },
    /// One entity in the answers of a subgraph.
    Entity {
        /// The subgraph's name.
        subgraph: &'a str,
        /// The type's name.
        name: &'a str,
        /// Its key fields as JSON, in canonical form.
        key: &'a [u8],
    },
    /// A tag that subgraphs or directives define, for all subgraphs or for one.
    Free {
        /// The subgraph's name, if it is a tag of one subgraph.
        subgraph: Option<&'a str>,
        /// The tag.
        name: &'a str,
    },
}

/// A tag as entries and invalidations carry it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tag(pub u64);

impl Tag {
    /// The tag of a name.
    pub fn of(secret: &KeySecret, name: TagName<'_>) -> Self {
        let mut hash = secret.hash(b"tag");
        let parts: [&[u8]; 4] = match name {
            TagName::Subgraph(subgraph) => [b"s", subgraph.as_bytes(), b"", b""],
            TagName::Type { subgraph, name } => [b"t", subgraph.as_bytes(), name.as_bytes(), b""],
            TagName::Entity {
                subgraph,
                name,
                key,
            } => [b"e", subgraph.as_bytes(), name.as_bytes(), key],
            TagName::Free { subgraph, name } => match subgraph {
                Some(subgraph) => [b"o", subgraph.as_bytes(), name.as_bytes(), b""],
                None => [b"f", b"", name.as_bytes(), b""],
            },
        };
        parts.iter().for_each(|part| write_part(&mut hash, part));
        Tag(short(hash))
    }
}

fn short(hash: Siphash) -> u64 {
    u128::from_le_bytes(hash.finish()) as u64
}

/// The groups that an answer belongs to; none if the field is malformed.
pub fn cache_groups(headers: &HeaderMap) -> Vec<String> {
    groups(headers, &CACHE_GROUPS)
}

/// The groups that an answer invalidates. Call it for answers to mutations only (RFC 9875, section 3).
pub fn invalidated_groups(headers: &HeaderMap) -> Vec<String> {
    groups(headers, &CACHE_GROUP_INVALIDATION)
}

fn groups(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let text = joined(headers, name).unwrap_or_default();
    let items = parse_list(&text).unwrap_or_default();
    let groups = items.into_iter().filter_map(|item| match item {
        Value::String(group) if group.len() <= GROUP_BYTES_MAX => Some(group),
        _ => None,
    });
    groups.take(GROUPS_MAX).collect()
}
