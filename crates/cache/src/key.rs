//! Keys of entries: everything that is sent to a subgraph is part of them.
//!
//! The first key identifies a request without its headers and caller: subgraph, URL, schema, text, variables,
//! representation. A [`VaryRecord`] is stored under it and names the headers on which answers depend. The second key adds the
//! values of these headers, the credentials and the private id, as far as the record names them. Entries are stored under
//! second keys.
//!
//! A key is a keyed hash of 128 bits. Each part is hashed with its length, so different lists of parts never give equal
//! bytes.

use std::{cell::OnceCell, fmt};

use http::{HeaderName, HeaderValue, header};
use ogive_base::encode::hex;
use ring::{
    digest,
    rand::{SecureRandom, SystemRandom},
};

use crate::{CREDENTIALS, Vary, VaryRecord, canonical::canonical, siphash::Siphash};

/// Increase it when keys are computed in another way.
const FORMAT: u8 = 1;

/// The secret of the keyed hash. Processes that share entries need equal secrets.
#[derive(Clone)]
pub struct KeySecret([u8; 16]);

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(..)")
    }
}

impl KeySecret {
    /// A random secret, for one process. `None` if the system has no random numbers.
    pub fn random() -> Option<Self> {
        let mut secret = [0; 16];
        SystemRandom::new().fill(&mut secret).ok()?;
        Some(KeySecret(secret))
    }
    /// The secret that follows from a text: equal texts give equal secrets.
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
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// The parts of a first key: a request without its headers and caller.
#[derive(Clone, Copy, Debug)]
pub struct KeyParts<'a> {
    /// The subgraph's name.
    pub subgraph: &'a str,
    /// The URL to which this request is sent.
    pub url: &'a str,
    /// The fingerprint of the part of the schema that the selection uses: an answer may mean something else under another
    /// schema.
    pub schema: u128,
    /// The extensions of the body that are sent.
    pub extensions: &'a [u8],
    /// The text of the request.
    pub content: Content<'a>,
}

/// The text of a request, or the part of it that selects one entity.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A whole request, by its body as it is sent.
    Whole {
        /// The body.
        body: &'a [u8],
    },
    /// The selection of one entity.
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

/// The parts of a second key that depend on the caller: the headers of its request, and the private id. Digests are computed
/// once for all entities of a request.
#[derive(Debug)]
pub struct CallerKey<'a> {
    headers: SentHeaders<'a>,
    private_id: Option<&'a [u8]>,
    all: OnceCell<[u8; 16]>,
    credentials: OnceCell<[u8; 16]>,
}

impl<'a> CallerKey<'a> {
    /// `private_id`: an id of the user, by the operator's choice. Answers that are `private` are stored for one such id.
    pub fn new(headers: SentHeaders<'a>, private_id: Option<&'a [u8]>) -> Self {
        CallerKey {
            headers,
            private_id,
            all: OnceCell::new(),
            credentials: OnceCell::new(),
        }
    }
    /// Whether private answers can be stored for the caller.
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

    /// The first key of a request.
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

    /// The second key: that of the entry that this caller may get for a first key.
    pub fn second(&self, first: Key, record: &VaryRecord, caller: &CallerKey<'_>) -> Key {
        let mut hash = self.secret.hash(b"second");
        hash.write(&first.0);
        // The list of all headers of one request can equal the list of named headers of another.
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

    /// A digest of all headers except credentials, independent of their order.
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

/// Joins all values of a header, normalized for comparison (RFC 9111, section 4.1).
fn value(headers: SentHeaders<'_>, name: &HeaderName) -> Option<Vec<u8>> {
    let mut values = headers.iter().filter(|(known, _)| *known == name);
    let mut out = values.next()?.1.as_bytes().trim_ascii().to_vec();
    for (_, value) in values {
        out.extend_from_slice(b", ");
        out.extend_from_slice(value.as_bytes().trim_ascii());
    }
    if *name == header::ACCEPT_LANGUAGE {
        // Case and space are insignificant (RFC 9110, section 12.5.4).
        out.make_ascii_lowercase();
        out.retain(|byte| !byte.is_ascii_whitespace());
    }
    Some(out)
}
