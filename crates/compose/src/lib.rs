//! Composition: subgraphs to a supergraph, with every error and hint pointing into a subgraph's source.
//!
//! [`compose`] runs the stages in order and stops after the first stage with errors, with all errors of that stage:
//! read each subgraph, upgrade federation 1 ones, validate each alone, merge, check what was merged, check that every
//! query of the result can be resolved. Pure and deterministic: subgraphs are processed in order of their names, and
//! nothing depends on hash order.
//!
//! Reading order: [`codes`] (what errors and hints are called), [`spec`] (what is known of each specification),
//! [`subgraph`] and [`fields`] (one subgraph), `links`, [`merge`], [`print`].

pub mod codes;
pub mod fields;
mod links;
pub mod merge;
mod post;
mod premerge;
pub mod print;
pub mod report;
pub mod satisfy;
pub mod spec;
pub mod subgraph;
mod upgrade;
mod validate;

use ogive_base::{Diagnostic, SourceId, Sources};
use ogive_federation::vocabulary::Version;

use report::Report;

/// One subgraph to compose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubgraphInput<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where it is served.
    pub url: &'a str,
    /// Its schema.
    pub sdl: &'a str,
}

/// How to compose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ComposeOptions {
    /// The join version to print; `None` for the oldest that can say everything.
    pub join_version: Option<Version>,
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Composed {
    /// The supergraph, unless there are errors.
    pub supergraph_sdl: Option<String>,
    /// Errors of the first stage that had any.
    pub errors: Vec<Diagnostic>,
    /// Hints.
    pub hints: Vec<Diagnostic>,
    /// The subgraphs' texts, in order of their names; labels point into them.
    pub sources: Sources,
}

/// Composes subgraphs.
pub fn compose(subgraphs: &[SubgraphInput<'_>], options: &ComposeOptions) -> Composed {
    let mut inputs: Vec<&SubgraphInput<'_>> = subgraphs.iter().collect();
    inputs.sort_by_key(|s| s.name);
    let mut composed = Composed::default();
    let mut preludes = subgraph::Preludes::default();
    let mut subs = Vec::with_capacity(inputs.len());
    for input in &inputs {
        let id = composed.sources.add(input.name, input.sdl);
        let mut sub = subgraph::read(input.name, input.url, input.sdl, &mut preludes);
        sub.relabel(SourceId(id.0));
        composed.errors.append(&mut sub.errors);
        subs.push(sub);
    }
    if !composed.errors.is_empty() {
        return composed;
    }
    let mut report = Report::default();
    let merged = stages(&mut subs, &mut report);
    composed.errors = report.errors;
    composed.hints = report.hints;
    if let Some(merged) = merged.filter(|_| composed.errors.is_empty()) {
        let join = options
            .join_version
            .unwrap_or_else(|| print::join_version(merged.federation));
        composed.supergraph_sdl = Some(print::supergraph(&merged, &subs, join));
    }
    composed
}

/// The stages after reading; each needs the one before to have found no error.
fn stages(subs: &mut [subgraph::Subgraph], report: &mut Report) -> Option<merge::Merged> {
    premerge::extensions(subs, report);
    upgrade::upgrade(subs, report);
    if report.has_errors() {
        return None;
    }
    for sub in subs.iter_mut() {
        report.errors.append(&mut sub.field_set_errors);
        validate::validate(sub, report);
    }
    if report.has_errors() {
        return None;
    }
    premerge::check(subs, report);
    if report.has_errors() {
        return None;
    }
    premerge::queries(subs, report);
    let merged = merge::merge(subs, report);
    if report.has_errors() {
        return None;
    }
    post::check(&merged, subs, report);
    if report.has_errors() {
        return None;
    }
    satisfy::check(&merged, subs, report);
    Some(merged)
}
