//! A supergraph that was read and checked.

use ogive_base::{Diagnostic, IdVec, define_id};
use ogive_schema::Schema;

use crate::{EventField, Links, QueryGraph, Restrictions};

define_id! {
    /// A subgraph, in order of the `join__Graph` enum.
    pub struct SubgraphId;
}

/// One subgraph of a supergraph.
#[derive(Clone, Debug)]
pub struct Subgraph {
    /// Its name, from `@join__graph(name:)`.
    pub name: Box<str>,
    /// The `join__Graph` enum value that stands for it.
    pub enum_value: Box<str>,
    /// Where it is served, from `@join__graph(url:)`; may be empty.
    pub url: Box<str>,
}

/// A supergraph: three views of one id space.
#[derive(Clone, Debug)]
pub struct Supergraph {
    /// Everything, including inaccessible elements and the join machinery.
    pub schema: Schema,
    /// What clients see: a view of `schema` without inaccessible elements and without machinery (join, link, core,
    /// tag, ... definitions). Ids are those of `schema`.
    pub api: Schema,
    /// Subgraphs in enum order.
    pub subgraphs: IdVec<SubgraphId, Subgraph>,
    /// The compiled query graph.
    pub graph: QueryGraph,
    /// What the supergraph links: tells the names of `@authenticated`, `@tag`, `@cost`, ... in this document.
    pub links: Links,
    /// Who may see what; empty if nothing is restricted, or if the restrictions are somebody else's business.
    pub restrictions: Restrictions,
    /// Root fields that are bound to message brokers instead of a service.
    pub events: Vec<EventField>,
    /// Accepted, but worth a word.
    pub warnings: Vec<Diagnostic>,
}
