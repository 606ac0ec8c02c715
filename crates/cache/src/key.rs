//! Keys of entries: everything that leaves for a subgraph is part of them.
//!
//! The first key is what is asked: subgraph, URL, schema, text, variables, representation. Under it a [`VaryRecord`] says
//! which headers tell answers apart. The second key adds the values of those headers, the credentials and the private id,
//! as the record says; an entry is stored under it.
//!
//! Keys are 128 bits of a keyed hash over parts with their lengths, so no two lists of parts are written alike.

use std::{cell::OnceCell, fmt};

use http::{HeaderName, HeaderValue, header};
use ring::{
    digest,
    rand::{SecureRandom, SystemRandom},
};

use crate::{CREDENTIALS, Vary, VaryRecord, canonical::canonical, siphash::Siphash};

/// Rises when keys are made in another way.
const FORMAT: u8 = 1;

/// What keys are made with; processes that share entries share it.
#[derive(Clone)]
pub struct KeySecret([u8; 16]);

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(..)")
    }
}

impl KeySecret {
    /// The secret of one process. Fails where the system has no random numbers.
    pub fn random() -> Option<Self> {
        let mut secret = [0; 16];
        SystemRandom::new().fill(&mut secret).ok()?;
        Some(KeySecret(secret))
    }
    /// The secret of all processes that are given this text.
    pub fn derive(text: &[u8]) -> Self {
        let digest = digest::digest(&digest::SHA256, text);
        let (half, _) = digest.as_ref().as_chunks::<16>();
        KeySecret(half[0])
    }
    /// Begins a hash for one purpose.
    pub(crate) fn hash(&self, purpose: &[u8]) -> Siphash {
        let mut hash = Siphash::new(self.0);
        hash.write(&[FORMAT]);
        write_part(&mut hash, purpose);
        hash
    }
}

/// Writes a part with its length.
pub(crate) fn write_part(hash: &mut Siphash, part: &[u8]) {
    hash.write(&(part.len() as u64).to_le_bytes());
    hash.write(part);
}

/// The key of an entry or of a `Vary` record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u8; 16]);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// What is asked, without headers and caller.
#[derive(Clone, Copy, Debug)]
pub struct KeyParts<'a> {
    /// The subgraph's name.
    pub subgraph: &'a str,
    /// The URL that was chosen for this request.
    pub url: &'a str,
    /// The fingerprint of the part of the schema that the selection touches: another schema may read an answer otherwise.
    pub schema: u128,
    /// Members of the body's extensions that are sent.
    pub extensions: &'a [u8],
    /// What is asked for.
    pub content: Content<'a>,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A whole request, by its body as it is sent.
    Whole {
        /// The body.
        body: &'a [u8],
    },
    /// What is selected of one entity.
    Entity {
        /// The text of the selection.
        selection: &'a [u8],
        /// The variables that it uses, as JSON, in the order of the plan.
        variables: &'a [u8],
        /// The representation, as JSON.
        representation: &'a [u8],
    },
}

/// The headers that a request is sent with, without those of the transport and of tracing.
pub type SentHeaders<'a> = &'a [(&'a HeaderName, &'a HeaderValue)];

/// What of a caller is part of keys: the headers of a request, and what the operator knows the caller by. Digests are made
/// once for all entities of a request.
#[derive(Debug)]
pub struct CallerKey<'a> {
    headers: SentHeaders<'a>,
    private_id: Option<&'a [u8]>,
    all: OnceCell<[u8; 16]>,
    credentials: OnceCell<[u8; 16]>,
}

impl<'a> CallerKey<'a> {
    /// `private_id`: tells users apart, for answers that are private.
    pub fn new(headers: SentHeaders<'a>, private_id: Option<&'a [u8]>) -> Self {
        CallerKey {
            headers,
            private_id,
            all: OnceCell::new(),
            credentials: OnceCell::new(),
        }
    }
    /// Whether private answers can be kept for the caller.
    pub fn has_private_id(&self) -> bool {
        self.private_id.is_some_and(|id| !id.is_empty())
    }
}

/// A part of a key, which a test leaves out to see that it is needed.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ingredient {
    Subgraph,
    Url,
    Schema,
    Extensions,
    Text,
    Variables,
    Representation,
    Headers,
    Credentials,
    PrivateId,
}

/// Makes keys.
#[derive(Clone, Debug)]
pub struct KeyMaker {
    secret: KeySecret,
    #[cfg(test)]
    pub(crate) left_out: Option<Ingredient>,
}

/// Writes a part of a key, unless a test leaves it out.
macro_rules! write_ingredient {
    ($maker:expr, $hash:expr, $ingredient:ident, $part:expr) => {
        let part: &[u8] = $part;
        #[cfg(test)]
        let part = match $maker.left_out {
            Some(Ingredient::$ingredient) => b"",
            _ => part,
        };
        write_part(&mut $hash, part);
    };
}

impl KeyMaker {
    /// Makes keys with this secret.
    pub fn new(secret: KeySecret) -> Self {
        KeyMaker {
            secret,
            #[cfg(test)]
            left_out: None,
        }
    }

    /// The secret.
    pub fn secret(&self) -> &KeySecret {
        &self.secret
    }

    /// The key of what is asked.
    pub fn first(&self, parts: &KeyParts<'_>) -> Key {
        let mut hash = self.secret.hash(b"first");
        write_ingredient!(self, hash, Subgraph, parts.subgraph.as_bytes());
        write_ingredient!(self, hash, Url, parts.url.as_bytes());
        write_ingredient!(self, hash, Schema, &parts.schema.to_le_bytes());
        write_ingredient!(self, hash, Extensions, parts.extensions);
        match parts.content {
            Content::Whole { body } => {
                hash.write(b"w");
                write_ingredient!(self, hash, Text, body);
            }
            Content::Entity {
                selection,
                variables,
                representation,
            } => {
                hash.write(b"e");
                write_ingredient!(self, hash, Text, selection);
                write_ingredient!(self, hash, Variables, variables);
                let representation = canonical(representation);
                write_ingredient!(self, hash, Representation, &representation);
            }
        }
        Key(hash.finish())
    }

    /// The key of an entry below a first key.
    pub fn second(&self, first: Key, record: &VaryRecord, caller: &CallerKey<'_>) -> Key {
        let mut hash = self.secret.hash(b"second");
        hash.write(&first.0);
        // All headers of one request may be the named ones of another.
        let (kind, of_headers) = match &record.vary {
            Vary::AllHeaders => {
                let digest = || self.digest_all(caller.headers);
                (b"a", *caller.all.get_or_init(digest))
            }
            Vary::Named(names) => (b"n", self.digest(caller.headers, names)),
        };
        hash.write(kind);
        write_ingredient!(self, hash, Headers, &of_headers);
        if record.scope.by_credentials {
            hash.write(b"c");
            let digest = || self.digest(caller.headers, &CREDENTIALS);
            let of_credentials = *caller.credentials.get_or_init(digest);
            write_ingredient!(self, hash, Credentials, &of_credentials);
        }
        if record.scope.by_private_id {
            hash.write(b"p");
            write_ingredient!(self, hash, PrivateId, caller.private_id.unwrap_or_default());
        }
        Key(hash.finish())
    }

    /// A digest of all headers but credentials, whatever their order.
    fn digest_all(&self, headers: SentHeaders<'_>) -> [u8; 16] {
        let mut names: Vec<HeaderName> = headers.iter().map(|(name, _)| (*name).clone()).collect();
        names.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        names.dedup();
        names.retain(|name| !CREDENTIALS.contains(name));
        self.digest(headers, &names)
    }

    /// A digest of the values of headers. A header that is missing differs from one that is empty.
    fn digest(&self, headers: SentHeaders<'_>, names: &[HeaderName]) -> [u8; 16] {
        let mut hash = self.secret.hash(b"headers");
        for name in names {
            write_part(&mut hash, name.as_str().as_bytes());
            match value(headers, name) {
                None => hash.write(b"-"),
                Some(value) => {
                    hash.write(b"+");
                    write_part(&mut hash, &value);
                }
            }
        }
        hash.finish()
    }
}

/// All values of a header as one, in the form in which they are compared (RFC 9111, section 4.1).
fn value(headers: SentHeaders<'_>, name: &HeaderName) -> Option<Vec<u8>> {
    let mut values = headers.iter().filter(|(known, _)| *known == name);
    let mut out = values.next()?.1.as_bytes().trim_ascii().to_vec();
    for (_, value) in values {
        out.extend_from_slice(b", ");
        out.extend_from_slice(value.as_bytes().trim_ascii());
    }
    if *name == header::ACCEPT_LANGUAGE {
        // Neither case nor space says anything (RFC 9110, section 12.5.4).
        out.make_ascii_lowercase();
        out.retain(|byte| !byte.is_ascii_whitespace());
    }
    Some(out)
}
