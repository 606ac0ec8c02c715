//! What is known of a caller: whether anybody is there at all, what restrictions ask for, and further claims.

use std::{borrow::Cow, sync::OnceLock};

use ogive_plan::Claims;
use serde_json::{Map, Value, json};

use crate::digest::{Digest, digest_of};

/// How claims of tokens are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallerOptions {
    /// The claims with the scopes, each a text with spaces between them or a list; those of all that are there count. A dot leads
    /// into an object, unless there is a claim of the whole name.
    pub scopes: Vec<Box<str>>,
    /// The claims with the policies, likewise.
    pub policies: Vec<Box<str>>,
}

impl Default for CallerOptions {
    fn default() -> Self {
        CallerOptions {
            scopes: vec!["scope".into(), "scp".into()],
            policies: Vec::new(),
        }
    }
}

/// Who asks.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// What restrictions ask for.
    pub granted: Claims,
    /// Everything that is claimed.
    pub claims: Map<String, Value>,
    /// When the credential ends that no claim says the end of (an API key, a certificate), in seconds since 1970.
    pub end: Option<u64>,
    /// See [`Caller::digest`].
    pub digest: CallerDigest,
}

/// A digest that is made when somebody asks for it, and kept.
#[derive(Clone, Debug, Default)]
pub struct CallerDigest(OnceLock<Digest>);

impl Caller {
    /// A caller whose claims are proved.
    pub fn proved(claims: Map<String, Value>, options: &CallerOptions) -> Self {
        let all = |names: &[Box<str>]| -> Vec<Box<str>> {
            let mut out: Vec<Box<str>> = Vec::new();
            for text in names.iter().flat_map(|name| texts(at(&claims, name))) {
                if !out.iter().any(|known| **known == *text) {
                    out.push(text.into());
                }
            }
            out
        };
        Caller {
            granted: Claims {
                authenticated: true,
                scopes: all(&options.scopes),
                policies: all(&options.policies),
            },
            claims,
            end: None,
            digest: CallerDigest::default(),
        }
    }

    /// What a claim says, if it says anything. What an unauthenticated caller claims counts for nothing.
    pub fn value(&self, path: &str) -> Option<&Value> {
        if !self.granted.authenticated {
            return None;
        }
        at(&self.claims, path).filter(|value| !value.is_null())
    }

    /// What a claim says, texts as they are, other values as JSON. What an unauthenticated caller claims counts for nothing.
    pub fn claim(&self, path: &str) -> Option<Cow<'_, str>> {
        match self.value(path)? {
            Value::String(text) => Some(Cow::Borrowed(text)),
            other => Some(Cow::Owned(other.to_string())),
        }
    }
}

impl Caller {
    /// What is known of it, as far as it decides policies: equal only for callers of whom the same is. Made once.
    pub fn digest(&self) -> &Digest {
        self.digest.0.get_or_init(|| {
            let known = json!({ "scopes": self.granted.scopes, "claims": self.claims });
            digest_of(known.to_string().as_bytes())
        })
    }
    /// What a claim says if it is one value; lists and objects are none.
    pub fn scalar(&self, path: &str) -> Option<Cow<'_, str>> {
        match at(&self.claims, path)? {
            Value::Array(_) | Value::Object(_) => None,
            _ => self.claim(path),
        }
    }
    /// The words of a claim that is a text, or the texts of one that is a list.
    pub fn items(&self, path: &str) -> Vec<&str> {
        if !self.granted.authenticated {
            return Vec::new();
        }
        texts(at(&self.claims, path))
    }
}

/// The claim of a name or of a path: `.sub`, `sub`, `realm_access.roles`, `https://example.com/roles`.
fn at<'c>(claims: &'c Map<String, Value>, path: &str) -> Option<&'c Value> {
    let path = path.strip_prefix('.').unwrap_or(path);
    if let Some(found) = claims.get(path) {
        return Some(found);
    }
    let mut steps = path.split('.');
    let mut value = claims.get(steps.next()?)?;
    for step in steps {
        value = match value {
            Value::Object(members) => members.get(step)?,
            Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value)
}

/// The words of a text, or the texts of a list.
fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(text)) => text.split_ascii_whitespace().collect(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}
