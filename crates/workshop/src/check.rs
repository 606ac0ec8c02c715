//! Whether a changed graph may go out: the changes judged by what clients use, what is waived and what was deprecated.
//!
//! Without knowledge of operations every breaking change fails. With it, one that no operation meets passes; and
//! every operation that was valid is validated against the new schema, which has the last word.

use ogive_config::checks::{Date, Waiver, matches};
use ogive_federation::Supergraph;
use ogive_operation::{ValidationLimits, validate};

use crate::{
    diff::{self, Change, Impact},
    usage::Usage,
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
    /// Known operations that meet it, by name; at most [`NAMES_MAX`].
    pub used_by: Vec<String>,
}

/// Most operations that are named per change.
pub const NAMES_MAX: usize = 10;

/// An operation that was valid and is not any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrokenOperation {
    /// Its name.
    pub name: String,
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
    /// How many operations are known; `None` if that was not asked.
    pub operations: Option<usize>,
    /// Waivers that are past their day, by position.
    pub expired: Vec<usize>,
    /// Waivers that no change needs, by position.
    pub idle: Vec<usize>,
}

impl Outcome {
    /// Whether the graph may go out.
    pub fn passes(&self) -> bool {
        self.broken.is_empty() && self.changes.iter().all(|c| c.verdict != Verdict::Fails)
    }
}

/// Judges the way from one graph to another.
pub fn check(before: &Supergraph, after: &Supergraph, options: &CheckOptions<'_>) -> Outcome {
    let mut outcome = Outcome {
        operations: options.usage.map(|u| u.operations.len()),
        ..Outcome::default()
    };
    let mut needed = vec![false; options.waivers.len()];
    for change in diff::diff(before, after) {
        let used_by = options.usage.map_or(Vec::new(), |u| used_by(u, &change));
        let verdict = verdict(&change, &used_by, options, &mut needed);
        outcome.changes.push(Judged {
            change,
            verdict,
            used_by,
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
        outcome.broken = broken(before, after, usage, &outcome.changes);
    }
    outcome
}

fn is_past(waiver: &Waiver, today: Option<Date>) -> bool {
    today.is_some_and(|today| waiver.until < today)
}

fn verdict(
    change: &Change,
    used_by: &[String],
    options: &CheckOptions<'_>,
    needed: &mut [bool],
) -> Verdict {
    if change.kind.impact != Impact::Breaking {
        return Verdict::Passes;
    }
    if options.usage.is_some() && used_by.is_empty() {
        return Verdict::Unused;
    }
    if options.deprecated_may_go && change.deprecated.is_some() && used_by.is_empty() {
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

/// Known operations that meet a change.
fn used_by(usage: &Usage, change: &Change) -> Vec<String> {
    if change.ownership {
        return Vec::new();
    }
    let coordinate = &*change.coordinate;
    let fields = coordinate.contains('.') || coordinate.contains('(');
    let parent = coordinate.split(['.', '(']).next().unwrap_or(coordinate);
    // Members of enums and input types are met wherever their type is; so are new arguments wherever their field is.
    let needed = match change.kind {
        diff::FIELD_REMOVED | diff::FIELD_TYPE_CHANGED | diff::ARGUMENT_REMOVED => coordinate,
        diff::ARGUMENT_TYPE_CHANGED if !is_required_now(change) => coordinate,
        diff::REQUIRED_ARGUMENT_ADDED | diff::ARGUMENT_TYPE_CHANGED => {
            coordinate.split('(').next().unwrap_or(coordinate)
        }
        _ if fields && !coordinate.starts_with('@') => parent,
        _ => coordinate,
    };
    usage
        .operations
        .iter()
        .filter(|o| o.needs.contains(needed))
        .map(|o| o.name.clone())
        .take(NAMES_MAX)
        .collect()
}

/// Whether an argument's new type is non-null: then operations that leave it out fail, too.
fn is_required_now(change: &Change) -> bool {
    change.message.ends_with("!`")
}

fn broken(
    before: &Supergraph,
    after: &Supergraph,
    usage: &Usage,
    changes: &[Judged],
) -> Vec<BrokenOperation> {
    let limits = ValidationLimits::default();
    let waived = |name: &String| {
        let mut waived = changes
            .iter()
            .filter(|c| matches!(c.verdict, Verdict::Waived { .. }));
        waived.any(|c| c.used_by.contains(name))
    };
    let mut out = Vec::new();
    for operation in &usage.operations {
        let errors = validate(&after.api, &operation.document, &limits);
        let Some(error) = errors.into_iter().next() else {
            continue;
        };
        // What never worked is not broken by this change.
        let was_valid = validate(&before.api, &operation.document, &limits).is_empty();
        if was_valid && !waived(&operation.name) {
            out.push(BrokenOperation {
                name: operation.name.clone(),
                message: error.message,
            });
        }
    }
    out
}
