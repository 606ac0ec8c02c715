//! How the answers of one subgraph are kept across requests, and what of a request makes their keys.
//!
//! The cache stands below header rules and hooks ([`crate::request`]): the request as it leaves is the key, so no rule and
//! no hook makes the cache give one caller's answer to another.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_cache::{
    Content, Key, KeyParts, ResponseCache, StoringPolicy, Tag, TagName, entities::type_of, tag,
};

use crate::CallerContext;

/// What identifies a user, for answers that say `private`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrivateId {
    /// A header that is sent to the subgraph.
    Header(HeaderName),
    /// A claim of the caller, by its path.
    Claim(Box<str>),
}

/// How the answers of a subgraph are kept.
#[derive(Clone, PartialEq, Debug)]
pub struct SubgraphCachePolicy {
    /// Which, and for how long.
    pub storing: StoringPolicy,
    /// The URLs of the subgraph.
    pub url: Box<str>,
    /// Headers on which no answer depends: they are not part of keys.
    pub ignore_headers: Box<[HeaderName]>,
    /// Default: answers that say `private` are not kept.
    pub private_id: Option<PrivateId>,
}

impl SubgraphCachePolicy {
    /// The policy of the subgraph at another URL.
    pub(crate) fn at(&self, url: &str) -> Self {
        SubgraphCachePolicy {
            url: url.into(),
            ..self.clone()
        }
    }

    /// The headers that are part of keys.
    pub(crate) fn headers<'h>(
        &self,
        sent: &'h HeaderMap,
    ) -> Vec<(&'h HeaderName, &'h HeaderValue)> {
        let is_part = |(name, _): &(&HeaderName, _)| !self.ignore_headers.contains(name);
        sent.iter().filter(is_part).collect()
    }

    /// The id of the user whose request this is.
    pub(crate) fn private_id<'c>(
        &self,
        sent: &'c HeaderMap,
        caller: Option<&'c dyn CallerContext>,
    ) -> Option<Cow<'c, [u8]>> {
        match self.private_id.as_ref()? {
            PrivateId::Header(name) => Some(Cow::Borrowed(sent.get(name)?.as_bytes())),
            PrivateId::Claim(path) => match caller?.claim_text(path)? {
                Cow::Borrowed(text) => Some(Cow::Borrowed(text.as_bytes())),
                Cow::Owned(text) => Some(Cow::Owned(text.into_bytes())),
            },
        }
    }

    /// The first key of a request or of one of its entities. All that the answer depends on is in the text that is sent, so
    /// another schema of the gateway makes no difference.
    pub(crate) fn first_key(
        &self,
        cache: &ResponseCache,
        subgraph: &str,
        content: Content<'_>,
        extensions: &[u8],
    ) -> Key {
        cache.keys().first(&KeyParts {
            subgraph,
            url: &self.url,
            schema: 0,
            extensions,
            content,
        })
    }
}

/// The tags of answers of one subgraph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubgraphTags<'t> {
    pub(crate) cache: &'t ResponseCache,
    pub(crate) subgraph: &'t str,
}

impl SubgraphTags<'_> {
    /// The tags of an answer by its headers, and by the names that it states itself.
    pub(crate) fn of_answer(self, headers: &HeaderMap, names: &[String]) -> Vec<Tag> {
        let groups = tag::cache_groups(headers);
        let names = names.iter().take(tag::GROUPS_MAX);
        let free = groups.iter().chain(names).map(|name| self.free(name));
        std::iter::once(self.of(TagName::Subgraph(self.subgraph)))
            .chain(free)
            .collect()
    }

    /// The tag of the type of a representation.
    pub(crate) fn of_entity(self, representation: &[u8]) -> Option<Tag> {
        let name = type_of(representation)?;
        Some(self.of(TagName::Type {
            subgraph: self.subgraph,
            name: &name,
        }))
    }

    /// A tag that the subgraph defines.
    pub(crate) fn free(self, name: &str) -> Tag {
        self.of(TagName::Free {
            subgraph: Some(self.subgraph),
            name,
        })
    }

    fn of(self, name: TagName<'_>) -> Tag {
        Tag::of(self.cache.keys().secret(), name)
    }
}
