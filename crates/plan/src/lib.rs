//! The immutable query plan: a DAG of fetches, request templates, response shapes, representation programs and the
//! output program. Pure data plus its text form and verifier; knows neither the search that found it nor the
//! executor that runs it.
//!
//! Reading order: [`ids`], [`representation`] and [`ir`] (the data), [`requirement`] (who may see what),
//! [`mod@deferral`] (what may come later), [`derived`] (what the executor wants to know besides), `derive` (how that is
//! worked out), [`mod@text`] (for people), [`json_form`] and [`apollo`] (for tools), [`mod@graph`] with [`mod@dot`],
//! [`mod@mermaid`] and [`mod@svg`] (pictures), [`mod@encode`] and [`bundle`] (files), [`size`] (memory),
//! [`mod@verify`] (what must hold), [`describe`] (words shared by them).

pub mod apollo;
pub mod binary;
pub mod bundle;
pub mod deferral;
mod derive;
pub mod derived;
pub mod describe;
pub mod dot;
pub mod encode;
pub mod graph;
pub mod ids;
pub mod ir;
pub mod json_form;
mod keys;
mod lookups;
pub mod mermaid;
pub mod order;
pub mod output_costs;
mod prefetch;
pub mod representation;
pub mod requirement;
mod reuse_sources;
pub mod shared;
pub mod size;
pub mod sizes;
mod steps;
pub mod svg;
pub mod text;
pub mod verify;

pub use binary::{DecodeError, stable_hash};
pub use bundle::{Bundle, BundledPlan};
pub use deferral::{Deferral, DeferredGroup, DeferredOutput, StreamOutput};
pub use derived::{
    Derived, DerivedCell, FieldFacts, LookupFacts, OutStep, Prefetch, Prefix, Programs, ReadStep,
    ReuseSource, ShapeFacts, ShapeSteps, StringStep,
};
pub use dot::dot;
pub use encode::{Header, decode, encode};
pub use graph::graph;
pub use ids::*;
pub use ir::*;
pub use json_form::json;
pub use mermaid::mermaid;
pub use order::{LearnedOrder, MemberOrder};
pub use output_costs::{FieldCost, LayoutCosts, OutputCosts, OutputEntry};
pub use representation::{Member, Representation};
pub use requirement::{Claims, Granted, Requirement};
pub use shared::Shared;
pub use sizes::LearnedSizes;
pub use svg::svg;
pub use text::text;
pub use verify::verify;
