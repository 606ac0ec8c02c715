//! What is done with subgraphs before they serve: reading them from wherever they are, composing them again when they
//! change, comparing, checking, linting, repairing and explaining.
//!
//! The logic behind `ogive compose`, `dev`, `diff`, `check`, `lint`, `fix`, `explain CODE` and `graph why`; the
//! commands themselves only read arguments and print. Composition is [`ogive_compose`]'s.
//!
//! Reading order: [`inputs`] (which subgraphs), [`mod@introspect`] (asking a running one), [`load`] (their texts),
//! [`live`] (watching them), [`report`] (how diagnostics are written), [`mod@diff`] (what changed), [`usage`] (what clients
//! use), [`mod@check`] (whether the change may go out), [`mod@why`] (who resolves a field), [`mod@lint`] (what could be better), [`mod@fix`] (mechanical repairs), [`pages`] (what codes mean).

pub mod check;
pub mod diff;
pub mod fix;
pub mod inputs;
pub mod introspect;
pub mod lint;
pub mod live;
pub mod load;
pub mod pages;
pub mod report;
pub mod usage;
pub mod why;

use ogive_base::{Diagnostic, Sources};

/// Why something could not be done, in the form of diagnostics.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    /// What is wrong; at least one.
    pub diagnostics: Vec<Diagnostic>,
    /// What they point into; empty if into nothing.
    pub sources: Sources,
}

impl Refused {
    /// One diagnostic that points into nothing.
    pub fn new(diagnostic: Diagnostic) -> Self {
        Refused {
            diagnostics: vec![diagnostic],
            sources: Sources::new(),
        }
    }
}

/// Codes of this crate's diagnostics that no composition knows.
pub mod codes {
    /// An input cannot be read.
    pub const UNREADABLE_INPUT: &str = "UNREADABLE_INPUT";
    /// Inputs contradict each other or say too little.
    pub const INVALID_INPUT: &str = "INVALID_INPUT";
    /// A running subgraph does not tell its schema.
    pub const SUBGRAPH_UNREACHABLE: &str = "SUBGRAPH_UNREACHABLE";
    /// A subgraph's schema comes from the cache because the subgraph does not answer.
    pub const SUBGRAPH_FROM_CACHE: &str = "SUBGRAPH_FROM_CACHE";
    /// Nothing is named that could be served.
    pub const NO_SUPERGRAPH: &str = "NO_SUPERGRAPH";
    /// A supergraph restricts who may see what, and nobody said what becomes of that.
    pub const SUPERGRAPH_RESTRICTED: &str = "SUPERGRAPH_RESTRICTED";
    /// A rule of redaction does not fit the supergraph.
    pub const REDACTION_UNUSABLE: &str = "REDACTION_UNUSABLE";
    /// An address cannot be listened on.
    pub const ADDRESS_UNUSABLE: &str = "ADDRESS_UNUSABLE";
    /// An argument of a command is none of those that it may be.
    pub const INVALID_ARGUMENT: &str = "INVALID_ARGUMENT";
    /// Nobody said where a subgraph is served.
    pub const SUBGRAPH_WITHOUT_URL: &str = "SUBGRAPH_WITHOUT_URL";
}
