//! `Vary` records (RFC 9111, section 4.1): the headers on which the answers to one first key depend.
//!
//! A web cache treats an answer without `Vary` as independent of headers. GraphQL servers rarely send `Vary`, even where
//! their answers depend on headers. So here an answer without `Vary` depends on all headers that were sent. The same holds if
//! `Vary` names only headers that middleware adds (`accept-encoding` for compression, `origin` for CORS).

use http::{HeaderName, header};

use crate::Timestamp;

/// Most names in `Vary`; an answer that names more headers depends on all headers.
pub const NAMES_MAX: usize = 32;

/// Names that say nothing about the data of an answer.
const OF_MIDDLEWARE: [HeaderName; 4] = [
    header::ACCEPT_ENCODING,
    header::ORIGIN,
    header::ACCESS_CONTROL_REQUEST_HEADERS,
    header::ACCESS_CONTROL_REQUEST_METHOD,
];

/// The headers on which answers depend, without credentials, which are part of [`Scope`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Vary {
    /// All headers that were sent.
    AllHeaders,
    /// These headers, in alphabetical order, each once.
    Named(Box<[HeaderName]>),
}

impl Vary {
    /// The dependency of an answer whose `Vary` names these headers.
    pub fn naming(mut names: Vec<HeaderName>) -> Self {
        let says_something = names.iter().any(|name| !OF_MIDDLEWARE.contains(name));
        if !says_something || names.len() > NAMES_MAX {
            return Vary::AllHeaders;
        }
        sort(&mut names);
        Vary::Named(names.into())
    }

    /// The headers on which at least one of two answers depends.
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

/// The callers that may get an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scope {
    /// Callers with equal credentials only.
    pub by_credentials: bool,
    /// The caller with this private id only.
    pub by_private_id: bool,
}

/// How second keys are computed from a first key, under which the record is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VaryRecord {
    /// The headers that are part of the second key.
    pub vary: Vary,
    /// Whether credentials and private id are part of the second key.
    pub scope: Scope,
    /// When the record expires; later answers make a new one.
    pub until: Timestamp,
}

impl Default for VaryRecord {
    /// The record of requests without a known answer: requests that differ in any header or credential share nothing.
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
    /// A record that has expired already; the cache sets its time when it stores the record.
    pub fn new(vary: Vary, scope: Scope) -> Self {
        let until = Timestamp::default();
        VaryRecord { vary, scope, until }
    }

    /// Whether it gives the second keys that are used without a record.
    pub fn is_default(&self) -> bool {
        self.says_what(&VaryRecord::default())
    }

    /// Whether both records give equal second keys.
    pub fn says_what(&self, other: &VaryRecord) -> bool {
        self.vary == other.vary && self.scope == other.scope
    }

    /// Bytes of the names.
    pub(crate) fn bytes(&self) -> usize {
        match &self.vary {
            Vary::AllHeaders => 0,
            Vary::Named(names) => {
                let own = names.iter().map(|name| name.as_str().len());
                own.sum::<usize>() + size_of_val(&**names)
            }
        }
    }

    /// The record under which the answers of both can be stored: it names every header that one of them names. Two answers
    /// may name different headers; if each replaced the record of the other, neither answer would be found.
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
