//! `Vary` records (RFC 9111, section 4.1): which headers tell the answers to equal requests apart.
//!
//! A cache of the web takes an answer without `Vary` for everyone's. Servers of GraphQL rarely send `Vary`, and mean
//! nothing by leaving it out, so here an answer that names nothing depends on all headers that were sent. Names that
//! middleware adds on its own (`accept-encoding` for compression, `origin` for CORS) promise nothing either.

use http::{HeaderName, header};

use crate::Timestamp;

/// Most names in a `Vary` that is honoured; an answer that names more depends on all headers.
pub const NAMES_MAX: usize = 32;

/// Names that say nothing about the answer's data.
const OF_MIDDLEWARE: [HeaderName; 4] = [
    header::ACCEPT_ENCODING,
    header::ORIGIN,
    header::ACCESS_CONTROL_REQUEST_HEADERS,
    header::ACCESS_CONTROL_REQUEST_METHOD,
];

/// Which headers tell answers apart. Credentials are told apart by [`Scope`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Vary {
    /// All headers that are sent.
    AllHeaders,
    /// These, in alphabetical order, each once.
    Named(Box<[HeaderName]>),
}

impl Vary {
    /// What an answer that names these headers depends on.
    pub fn naming(mut names: Vec<HeaderName>) -> Self {
        let says_something = names.iter().any(|name| !OF_MIDDLEWARE.contains(name));
        if !says_something || names.len() > NAMES_MAX {
            return Vary::AllHeaders;
        }
        sort(&mut names);
        Vary::Named(names.into())
    }

    /// What tells apart the answers of both.
    #[must_use]
    pub fn and(&self, other: &Vary) -> Self {
        let (Vary::Named(some), Vary::Named(others)) = (self, other) else {
            return Vary::AllHeaders;
        };
        let mut names = [&**some, &**others].concat();
        sort(&mut names);
        if names.len() > NAMES_MAX {
            return Vary::AllHeaders;
        }
        Vary::Named(names.into())
    }
}

fn sort(names: &mut Vec<HeaderName>) {
    names.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
}

/// Whom an entry is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scope {
    /// Callers with equal credentials only.
    pub by_credentials: bool,
    /// The caller with this private id only.
    pub by_private_id: bool,
}

/// What is stored under a first key: how the second key is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VaryRecord {
    /// Which headers are part of it.
    pub vary: Vary,
    /// Whether credentials and private id are.
    pub scope: Scope,
    /// How long it holds; then answers say again what they depend on.
    pub until: Timestamp,
}

impl Default for VaryRecord {
    /// For requests to which no answer is known: nothing is shared by requests that differ in anything.
    fn default() -> Self {
        VaryRecord {
            vary: Vary::AllHeaders,
            scope: Scope {
                by_credentials: true,
                by_private_id: false,
            },
            until: Timestamp::default(),
        }
    }
}

impl VaryRecord {
    /// A record that says nothing of how long it holds.
    pub fn new(vary: Vary, scope: Scope) -> Self {
        let until = Timestamp::default();
        VaryRecord { vary, scope, until }
    }

    /// Whether it says what holds without a record.
    pub fn is_default(&self) -> bool {
        self.says_what(&VaryRecord::default())
    }

    /// Whether keys are made alike by both.
    pub fn says_what(&self, other: &VaryRecord) -> bool {
        self.vary == other.vary && self.scope == other.scope
    }

    /// Bytes that it refers to.
    pub(crate) fn bytes(&self) -> usize {
        match &self.vary {
            Vary::AllHeaders => 0,
            Vary::Named(names) => {
                let own = names.iter().map(|name| name.as_str().len());
                own.sum::<usize>() + size_of_val(&**names)
            }
        }
    }

    /// The record under which answers of both can be stored: nothing that tells either apart is left out. Two answers may
    /// name different headers; if each replaced the record of the other, neither would be found.
    #[must_use]
    pub fn and(&self, other: &VaryRecord) -> Self {
        VaryRecord {
            vary: self.vary.and(&other.vary),
            scope: Scope {
                by_credentials: self.scope.by_credentials || other.scope.by_credentials,
                by_private_id: self.scope.by_private_id || other.scope.by_private_id,
            },
            until: self.until.max(other.until),
        }
    }
}
