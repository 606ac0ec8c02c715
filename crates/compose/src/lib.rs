//! Composition: subgraphs to a supergraph, with every error and hint pointing into a subgraph's source.
//!
//! [`compose`] runs the stages in order and stops after the first stage with errors, with all errors of that stage:
//! read each subgraph, upgrade federation 1 ones, validate each alone, merge, check what was merged, check that every
//! query of the result can be resolved. Pure and deterministic: subgraphs are processed in order of their names, and
//! nothing depends on hash order.
//!
//! Reading order: [`codes`] (what errors and hints are called), [`spec`] (what is known of each specification),
//! [`subgraph`] and [`fields`] (one subgraph), `links`, `validate`, `upgrade`, `premerge`, [`merge`], `post`, `selections`,
//! [`satisfy`], [`mod@print`], [`composer`], [`contract`].

mod again;
pub mod codes;
pub mod composer;
pub mod contract;
mod event_vocabulary;
mod events;
pub mod fields;
mod links;
pub mod merge;
mod own;
mod post;
mod premerge;
pub mod print;
pub mod report;
pub mod satisfy;
mod selections;
pub mod spec;
pub mod subgraph;
mod upgrade;
mod validate;

use ogive_base::{Diagnostic, SourceId, Sources};
use ogive_federation::vocabulary::Version;

pub use composer::Composer;
pub use contract::{Contract, ContractFilter};
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
    /// Most states of the check that every query can be resolved; `None` for [`satisfy::STATES_MAX`].
    pub states_max: Option<usize>,
    /// Do not check that every query can be resolved: for tools that look at what would be served.
    pub assume_satisfiable: bool,
}

/// Number of stages: reading, upgrading, each subgraph, all of them, merging, the merged graph, satisfiability.
pub const STAGES: u8 = 7;

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Composed {
    /// The supergraph, unless there are errors.
    pub supergraph_sdl: Option<String>,
    /// Errors of the first stage that had any.
    pub errors: Vec<Diagnostic>,
    /// How many stages found no error, all of them being [`STAGES`]: of two compositions of much the same subgraphs, the
    /// one that came further is the better one, whatever the number of its errors.
    pub stages_passed: u8,
    /// Hints.
    pub hints: Vec<Diagnostic>,
    /// The subgraphs' texts, in order of their names; labels point into them.
    pub sources: Sources,
    /// The merged graph, for contracts.
    graph: Option<Merging>,
}

/// The merged graph, or what to make it of: a composer keeps its own for the next time.
#[derive(Clone, Debug)]
enum Merging {
    Done(Box<Graph>),
    /// Names and URLs of the subgraphs, in order.
    Again(Vec<(Box<str>, Box<str>)>, ComposeOptions),
}

/// What a contract starts from.
#[derive(Clone, Debug)]
struct Graph {
    merged: merge::Merged,
    subs: Vec<subgraph::Subgraph>,
    join: Version,
}

impl Composed {
    /// Does something with the merged graph.
    fn with_graph<T>(&self, work: impl FnOnce(&Graph) -> T) -> Option<T> {
        let (names, options) = match self.graph.as_ref()? {
            Merging::Done(graph) => return Some(work(graph)),
            Merging::Again(names, options) => (names, options),
        };
        let inputs: Vec<SubgraphInput<'_>> = names
            .iter()
            .enumerate()
            .filter_map(|(i, (name, url))| {
                // Sources may be called after their files by now; the subgraphs are not.
                let source = self.sources.get(SourceId(i as u32))?;
                Some(SubgraphInput {
                    name,
                    url,
                    sdl: &source.text,
                })
            })
            .collect();
        match compose(&inputs, options).graph? {
            Merging::Done(graph) => Some(work(&graph)),
            Merging::Again(..) => None,
        }
    }

    /// The schema clients see, as SDL; `None` if composition failed.
    pub fn api_sdl(&self) -> Option<String> {
        api_sdl(self.supergraph_sdl.as_deref()?)
    }
}

/// The schema clients of a supergraph see, as SDL; `None` if it is no supergraph.
pub fn api_sdl(supergraph: &str) -> Option<String> {
    let options = ogive_federation::ReadOptions::default();
    let read = ogive_federation::read_supergraph(supergraph, SourceId(0), &options).ok()?;
    let print = ogive_schema::print::PrintOptions {
        applied: ogive_schema::print::Applied::Specified,
        ..Default::default()
    };
    Some(ogive_schema::print::print(&read.api, &print))
}

/// Composes subgraphs once.
pub fn compose(subgraphs: &[SubgraphInput<'_>], options: &ComposeOptions) -> Composed {
    let mut inputs: Vec<&SubgraphInput<'_>> = subgraphs.iter().collect();
    inputs.sort_by_key(|s| s.name);
    let mut composed = Composed::default();
    let mut preludes = subgraph::Preludes::default();
    let mut subs = Vec::with_capacity(inputs.len());
    for input in &inputs {
        let id = composed.sources.add(input.name, input.sdl);
        let mut sub = subgraph::read(input.name, input.url, input.sdl, &mut preludes);
        sub.relabel(id);
        composed.errors.append(&mut sub.errors);
        subs.push(sub);
    }
    if let Some(done) = finish(subs, &mut composed, options) {
        let Graph { merged, subs, join } = &done.graph;
        composed.supergraph_sdl = Some(print::supergraph(merged, subs, *join));
        composed.graph = Some(Merging::Done(Box::new(done.graph)));
    }
    composed
}

/// What a composition leaves behind beside its result, if it had no errors.
struct Finished {
    graph: Graph,
    report: Report,
    keys: upgrade::FirstKeys,
    satisfied: Option<satisfy::Kept>,
}

/// Everything after reading, but for printing.
fn finish(
    mut subs: Vec<subgraph::Subgraph>,
    composed: &mut Composed,
    options: &ComposeOptions,
) -> Option<Finished> {
    let mut report = Report::default();
    same_names(&subs, &mut report);
    composed.errors.append(&mut report.errors);
    if !composed.errors.is_empty() {
        return None;
    }
    let staged = stages(&mut subs, &mut report, &mut composed.stages_passed, options);
    composed.errors.clone_from(&report.errors);
    composed.hints.clone_from(&report.hints);
    let staged = staged.filter(|_| composed.errors.is_empty())?;
    let mut join = options
        .join_version
        .unwrap_or_else(|| print::join_version(staged.merged.federation));
    if subs.iter().any(|sub| sub.events) {
        join = join.max(print::DIRECTIVE_SINCE);
    }
    Some(Finished {
        graph: Graph {
            merged: staged.merged,
            subs,
            join,
        },
        report,
        keys: staged.keys,
        satisfied: staged.satisfied,
    })
}

/// Two subgraphs of one name cannot be told apart.
fn same_names(subs: &[subgraph::Subgraph], report: &mut Report) {
    for pair in subs.windows(2) {
        if pair[0].name == pair[1].name {
            let at: Vec<(report::Place, String)> = pair
                .iter()
                .map(|s| (s.place(ogive_base::Span::new(0, 0)), String::new()))
                .collect();
            report.error_help(
                codes::INVALID_SUBGRAPH_NAME,
                "",
                format!("two subgraphs are called `{}`", pair[0].name),
                "give each subgraph a name of its own".into(),
                &at,
            );
        }
    }
}

/// What comes out of the stages.
struct Staged {
    merged: merge::Merged,
    keys: upgrade::FirstKeys,
    satisfied: Option<satisfy::Kept>,
}

/// The stages after reading; each needs the one before to have found no error.
fn stages(
    subs: &mut [subgraph::Subgraph],
    report: &mut Report,
    passed: &mut u8,
    options: &ComposeOptions,
) -> Option<Staged> {
    *passed = 1;
    premerge::extensions(subs, report);
    let keys = upgrade::upgrade(subs, report);
    if report.has_errors() {
        return None;
    }
    *passed = 2;
    for sub in subs.iter_mut() {
        report.errors.append(&mut sub.field_set_errors);
        validate::validate(sub, report);
    }
    if report.has_errors() {
        return None;
    }
    *passed = 3;
    premerge::check(subs, report);
    if report.has_errors() {
        return None;
    }
    *passed = 4;
    premerge::queries(subs, report);
    premerge::orphans(subs, report);
    let merged = merge::merge(subs, report);
    if report.has_errors() {
        return None;
    }
    *passed = 5;
    post::check(&merged, subs, report);
    selections::check(&merged, subs, report);
    if report.has_errors() {
        return None;
    }
    *passed = 6;
    let states_max = options.states_max.unwrap_or(satisfy::STATES_MAX);
    let satisfied = if options.assume_satisfiable {
        None
    } else {
        satisfy::check(&merged, subs, states_max, report)
    };
    if !report.has_errors() {
        *passed = STAGES;
    }
    Some(Staged {
        merged,
        keys,
        satisfied,
    })
}
