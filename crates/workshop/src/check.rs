//! Whether a changed graph may go out: the changes judged by what clients use, what is waived and what was deprecated.
//!
//! Without knowledge of operations every breaking change fails. With it, one that no operation meets passes; and
//! every operation that was valid is validated against the new schema, which has the last word.

use std::collections::BTreeSet;

use ogive_config::checks::{Date, Waiver, matches};
use ogive_cost::{Scratch, Settings, compile};
use ogive_federation::Supergraph;
use ogive_operation::{NormaliseLimits, ValidationLimits, Variables, normalise, validate};
use ogive_syntax::{Document, ast::OperationDefinition};

use crate::{
    diff::{self, Change, Impact},
    usage::{ClientUse, Usage, Used},
};

/// How to judge.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckOptions<'a> {
    /// What clients send, if that is known; needs are those of the schema before.
    pub usage: Option<&'a Usage>,
    /// Accepted changes.
    pub waivers: &'a [Waiver],
    /// The day waivers are held against; `None` for the beginning of time.
    pub today: Option<Date>,
    /// Whether what was deprecated may go, if no operation is known to use it.
    pub deprecated_may_go: bool,
    /// Whether the check may pass although some operations cannot be checked.
    pub allow_unchecked: bool,
}

/// What becomes of one change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It fails the check.
    Fails,
    /// Breaking, and accepted.
    Waived {
        /// Until that day.
        until: Date,
        /// For that reason.
        reason: String,
    },
    /// Breaking, and no known operation meets it.
    Unused,
    /// Breaking, and deprecated before.
    WasDeprecated,
    /// Not breaking.
    Passes,
}

/// One change, judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judged {
    /// The change.
    pub change: Change,
    /// What becomes of it.
    pub verdict: Verdict,
    /// Known operations that meet it; at most [`NAMES_MAX`].
    pub used_by: Vec<Use>,
}

/// One operation that meets a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Use {
    /// Its name.
    pub name: String,
    /// Where it first does: file, line and column.
    pub place: String,
    /// Who asks it, most often first, if that is known.
    pub clients: Vec<ClientUse>,
}

/// An operation whose cost changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CostChange {
    /// Its name.
    pub name: String,
    /// Its file.
    pub place: String,
    /// What it was estimated to cost with no variables given...
    pub before: u64,
    /// ... and what it is.
    pub after: u64,
}

/// Most operations that are named per change.
pub const NAMES_MAX: usize = 10;

/// An operation that is not valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrokenOperation {
    /// Its name.
    pub name: String,
    /// Where it is not: file, line and column.
    pub place: String,
    /// The first reason.
    pub message: String,
}

/// The outcome.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Every change, most severe first.
    pub changes: Vec<Judged>,
    /// Operations that were valid and are not any more, and which no waived change meets.
    pub broken: Vec<BrokenOperation>,
    /// Operations that were not valid before either: they cannot be checked.
    pub invalid: Vec<BrokenOperation>,
    /// Requests that a gateway has counted without their operation: they cannot be checked.
    pub unattributed_requests: u64,
    /// Whether it passes although some operations cannot be checked.
    pub allow_unchecked: bool,
    /// Operations whose cost changes, those that become dearest first.
    pub costs: Vec<CostChange>,
    /// How many operations are known; `None` if that was not asked.
    pub operations: Option<usize>,
    /// Waivers that are past their day, by position.
    pub expired: Vec<usize>,
    /// Waivers that no change needs, by position.
    pub idle: Vec<usize>,
}

impl Outcome {
    /// Whether the graph may go out. What cannot be checked does not pass.
    pub fn passes(&self) -> bool {
        self.broken.is_empty()
            && self.changes.iter().all(|c| c.verdict != Verdict::Fails)
            && (self.allow_unchecked || self.is_complete())
    }

    /// Whether all known operations could be checked.
    pub fn is_complete(&self) -> bool {
        self.invalid.is_empty() && self.unattributed_requests == 0
    }
}

/// Judges the way from one graph to another.
pub fn check(before: &Supergraph, after: &Supergraph, options: &CheckOptions<'_>) -> Outcome {
    let mut outcome = Outcome {
        operations: options.usage.map(|u| u.operations.len()),
        unattributed_requests: options.usage.map_or(0, |u| u.unattributed_requests),
        allow_unchecked: options.allow_unchecked,
        ..Outcome::default()
    };
    let mut needed = vec![false; options.waivers.len()];
    let mut waived = BTreeSet::new();
    for change in diff::diff(before, after) {
        let met_by = options.usage.map_or(Vec::new(), |u| met_by(u, &change));
        let verdict = verdict(&change, !met_by.is_empty(), options, &mut needed);
        if let Verdict::Waived { .. } = verdict {
            waived.extend(met_by.iter().map(|met| met.operation));
        }
        let uses = met_by.iter().take(NAMES_MAX);
        let used_by = uses.filter_map(|met| met.in_words(options.usage?));
        outcome.changes.push(Judged {
            used_by: used_by.collect(),
            change,
            verdict,
        });
    }
    for (at, waiver) in options.waivers.iter().enumerate() {
        if is_past(waiver, options.today) {
            outcome.expired.push(at);
        } else if !needed[at] {
            outcome.idle.push(at);
        }
    }
    if let Some(usage) = options.usage {
        judge_operations(before, after, usage, &waived, &mut outcome);
    }
    outcome
}

fn is_past(waiver: &Waiver, today: Option<Date>) -> bool {
    today.is_some_and(|today| waiver.until < today)
}

fn verdict(
    change: &Change,
    is_used: bool,
    options: &CheckOptions<'_>,
    needed: &mut [bool],
) -> Verdict {
    if change.kind.impact != Impact::Breaking {
        return Verdict::Passes;
    }
    if options.usage.is_some() && !is_used {
        return Verdict::Unused;
    }
    if options.deprecated_may_go && change.deprecated.is_some() && !is_used {
        return Verdict::WasDeprecated;
    }
    for (at, waiver) in options.waivers.iter().enumerate() {
        let kind = waiver
            .change
            .as_deref()
            .is_none_or(|c| c == change.kind.code);
        if kind && matches(&waiver.coordinate, &change.coordinate) {
            needed[at] = true;
            if !is_past(waiver, options.today) {
                return Verdict::Waived {
                    until: waiver.until,
                    reason: waiver.reason.clone(),
                };
            }
        }
    }
    Verdict::Fails
}

/// A known operation that meets a change.
struct Met {
    /// Which of the known operations.
    operation: usize,
    /// The byte of its document where it first does.
    at: u32,
}

impl Met {
    fn in_words(&self, usage: &Usage) -> Option<Use> {
        let used = usage.operations.get(self.operation)?;
        Some(Use {
            name: used.name.clone(),
            place: usage.place(used, self.at),
            clients: used.clients.clone(),
        })
    }
}

/// Known operations that meet a change.
fn met_by(usage: &Usage, change: &Change) -> Vec<Met> {
    if change.ownership {
        return Vec::new();
    }
    let needs = meets(change);
    let operations = usage.operations.iter().enumerate();
    let met = operations.filter_map(|(operation, used)| {
        let at = *needs.iter().filter_map(|need| used.needs.get(need)).min()?;
        Some(Met { operation, at })
    });
    met.collect()
}

/// What an operation that meets a change needs at least one of, in the words of [`needs`](crate::usage::needs).
fn meets(change: &Change) -> Vec<String> {
    let coordinate = change.coordinate.clone();
    let parent = coordinate
        .split(['.', '('])
        .next()
        .unwrap_or_default()
        .to_owned();
    let field = coordinate.split('(').next().unwrap_or_default().to_owned();
    let anything = format!("{parent}.*");
    let omitted = format!("{coordinate} omitted");
    // The other type that a sentence about members and interfaces names.
    let other = change
        .message
        .split('`')
        .nth(3)
        .unwrap_or_default()
        .to_owned();
    match change.kind {
        diff::TYPE_REMOVED => vec![format!("on {coordinate}"), coordinate],
        diff::TYPE_KIND_CHANGED => vec![
            format!("on {coordinate}"),
            format!("out {coordinate}"),
            coordinate,
        ],
        diff::FIELD_REMOVED | diff::FIELD_TYPE_CHANGED | diff::ARGUMENT_REMOVED => vec![coordinate],
        diff::REQUIRED_ARGUMENT_ADDED => vec![field],
        // Whoever leaves it out meets a type that has become non-null, too.
        diff::ARGUMENT_TYPE_CHANGED if is_required_now(change) => vec![coordinate, omitted],
        diff::ARGUMENT_TYPE_CHANGED => vec![coordinate],
        diff::ARGUMENT_DEFAULT_CHANGED => vec![omitted],
        diff::INPUT_FIELD_REMOVED => vec![coordinate, anything],
        diff::INPUT_FIELD_TYPE_CHANGED if is_required_now(change) => {
            vec![coordinate, omitted, anything]
        }
        diff::INPUT_FIELD_TYPE_CHANGED => vec![coordinate, anything],
        diff::INPUT_FIELD_DEFAULT_CHANGED => vec![omitted, anything],
        diff::REQUIRED_INPUT_FIELD_ADDED | diff::ONE_OF_ADDED => vec![parent],
        diff::ENUM_VALUE_REMOVED => vec![coordinate, anything],
        diff::ENUM_VALUE_ADDED => vec![format!("out {parent}")],
        diff::UNION_MEMBER_REMOVED => vec![format!("on {other}")],
        diff::UNION_MEMBER_ADDED => vec![coordinate],
        diff::IMPLEMENTATION_REMOVED => vec![format!("on {coordinate}"), format!("on {other}")],
        diff::IMPLEMENTATION_ADDED => vec![other],
        diff::DIRECTIVE_REMOVED
        | diff::DIRECTIVE_ARGUMENT_REMOVED
        | diff::DIRECTIVE_LOCATION_REMOVED
        | diff::DIRECTIVE_NOT_REPEATABLE => vec![coordinate],
        diff::REQUIRED_DIRECTIVE_ARGUMENT_ADDED => vec![field],
        diff::DEPRECATION_ADDED => vec![coordinate],
        // Nobody meets what is new and optional, or promises more.
        _ => Vec::new(),
    }
}

/// Whether an input's new type is non-null: then operations that leave it out fail, too.
fn is_required_now(change: &Change) -> bool {
    change.message.ends_with("!`")
}

/// Finds operations that were valid and are not any more, and those that never were.
fn judge_operations(
    before: &Supergraph,
    after: &Supergraph,
    usage: &Usage,
    waived: &BTreeSet<usize>,
    outcome: &mut Outcome,
) {
    let limits = ValidationLimits::default();
    let first = |used: &Used, graph: &Supergraph| {
        let error = validate(&graph.api, &used.document, &limits)
            .into_iter()
            .next()?;
        let at = error.labels.first().map_or(0, |l| l.span.start);
        Some(BrokenOperation {
            name: used.name.clone(),
            place: usage.place(used, at),
            message: error.message,
        })
    };
    for (operation, used) in usage.operations.iter().enumerate() {
        // What never worked is not broken by this change.
        if let Some(invalid) = first(used, before) {
            outcome.invalid.push(invalid);
        } else if let Some(broken) = first(used, after) {
            if !waived.contains(&operation) {
                outcome.broken.push(broken);
            }
        } else {
            outcome.costs.extend(cost_change(used, before, after));
        }
    }
    let grown = |change: &CostChange| change.after.abs_diff(change.before);
    outcome
        .costs
        .sort_by_key(|change| std::cmp::Reverse((change.after > change.before, grown(change))));
}

/// How the cost of a document's operations changes, all of them together.
fn cost_change(used: &Used, before: &Supergraph, after: &Supergraph) -> Option<CostChange> {
    let cost = |graph| -> Option<u64> {
        let operations = used.document.operations();
        operations
            .map(|operation| cost(graph, &used.document, operation))
            .sum()
    };
    let (before, after) = (cost(before)?, cost(after)?);
    (before != after).then(|| CostChange {
        name: used.name.clone(),
        place: used.place.clone(),
        before,
        after,
    })
}

/// What an operation is estimated to cost if no variables are given: lists that they size have as many items as those of
/// which nobody says the size.
fn cost(graph: &Supergraph, document: &Document, operation: &OperationDefinition) -> Option<u64> {
    let normal = normalise(&graph.api, document, operation, &NormaliseLimits::default()).ok()?;
    let (schema, costs) = (&graph.schema, &graph.graph.costs);
    let program = compile(schema, costs, &normal, &Settings::default());
    let scratch = &mut Scratch::default();
    let estimate = program.evaluate(schema, costs, &Variables::default(), scratch);
    Some(estimate.cost)
}
