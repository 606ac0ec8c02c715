//! `ogive fix`: mechanical repairs of subgraphs that do not compose.
//!
//! Composition says what is wrong and where; a repair is an edit of a few bytes there, made only if it follows from the
//! diagnostic alone. Repairs are made in rounds, because the next stage of composition may find more. *Suggested* repairs
//! also change what a subgraph promises (that it can be entered by a key, that it owns a type), so they are made only
//! when asked for.
//!
//! A repair that leaves the composition worse than before is not made, one that takes something away only if it leaves
//! it better, and fields go only when nothing else is wrong. So what is added is never taken away and added again: the
//! rounds come to an end, and repairing what is repaired changes nothing.

mod apply;
mod repairs;

use ogive_base::Diagnostic;
use ogive_compose::{ComposeOptions, Composed, Composer, codes};

use crate::load::{Loaded, compose};
pub use apply::unified;
use apply::{Edit, apply};
use repairs::Repairs;

/// Most rounds.
pub const ROUNDS_MAX: usize = 128;
/// Most repairs of one round that are tried one by one when they do not go together.
pub const SINGLE_MAX: usize = 64;

/// How to repair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FixOptions {
    /// Whether suggested repairs are made, too.
    pub suggested: bool,
}

/// One repair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repair {
    /// Code of the diagnostic behind it.
    pub code: &'static str,
    /// The subgraph that is changed.
    pub subgraph: String,
    /// What is done, in one sentence.
    pub what: String,
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    /// The subgraphs after all repairs, in order of names.
    pub loaded: Vec<Loaded>,
    /// What was done, in order.
    pub repairs: Vec<Repair>,
    /// Suggested repairs that were not made.
    pub suggestions: Vec<Repair>,
    /// Errors that are left.
    pub errors: Vec<Diagnostic>,
}

/// Repairs subgraphs.
pub fn fix(loaded: &[Loaded], options: &FixOptions) -> Fixed {
    let mut fixed = Fixed {
        loaded: loaded.to_vec(),
        ..Fixed::default()
    };
    fixed.loaded.sort_by(|a, b| a.name.cmp(&b.name));
    let mut composer = Composer::new();
    let mut now = composed(&mut composer, &fixed.loaded);
    for _ in 0..ROUNDS_MAX {
        let (edits, suggestions) = proposed(&fixed.loaded, &now, options.suggested);
        fixed.suggestions = suggestions;
        let Some((texts, done, after)) = improved(&mut composer, &fixed.loaded, &now, &edits)
        else {
            break;
        };
        fixed.loaded = texts;
        fixed.repairs.extend(done);
        now = after;
    }
    fixed.errors = now.errors;
    fixed
}

fn composed(composer: &mut Composer, loaded: &[Loaded]) -> Composed {
    compose(composer, loaded, &ComposeOptions::default())
}

/// The edits that the diagnostics of a composition ask for, and the repairs that are only suggested.
fn proposed(loaded: &[Loaded], now: &Composed, suggested: bool) -> (Vec<Edit>, Vec<Repair>) {
    let mut repairs = Repairs::new(loaded, suggested);
    for diagnostic in now.errors.iter().chain(&now.hints) {
        repairs.of(diagnostic);
    }
    let Repairs {
        mut edits,
        suggestions,
        ..
    } = repairs;
    // What looks unused may be what something else that is wrong is meant to use.
    let only_unused = now.errors.iter().all(|e| e.code == codes::EXTERNAL_UNUSED);
    if edits.iter().any(|e| !e.takes_field) || !only_unused {
        edits.retain(|e| !e.takes_field);
    }
    (edits, suggestions)
}

/// The texts after as many of the edits as do good, with what was done and what they compose to; all of them at once if
/// that is so, else the first that is good alone.
fn improved(
    composer: &mut Composer,
    loaded: &[Loaded],
    now: &Composed,
    edits: &[Edit],
) -> Option<(Vec<Loaded>, Vec<Repair>, Composed)> {
    let mut attempt = |edits: &[Edit]| {
        let mut texts = loaded.to_vec();
        let done = apply(&mut texts, edits.to_vec());
        if done.is_empty() {
            return None;
        }
        let after = composed(composer, &texts);
        let takes = edits.iter().any(|e| !e.range.is_empty());
        is_good(now, &after, takes).then_some((texts, done, after))
    };
    if let Some(all) = attempt(edits) {
        return Some(all);
    }
    let mut groups: Vec<usize> = edits.iter().map(|e| e.group).collect();
    groups.dedup();
    if groups.len() < 2 {
        return None;
    }
    groups.into_iter().take(SINGLE_MAX).find_map(|group| {
        let alone: Vec<Edit> = edits.iter().filter(|e| e.group == group).cloned().collect();
        attempt(&alone)
    })
}

/// Whether a step leads somewhere: never to something worse, and if it takes anything away, to something better.
fn is_good(before: &Composed, after: &Composed, takes: bool) -> bool {
    let standing = |c: &Composed| {
        let fewer = |n: usize| std::cmp::Reverse(n);
        (c.stages_passed, fewer(c.errors.len()), fewer(c.hints.len()))
    };
    let (before_is, after_is) = (standing(before), standing(after));
    if takes {
        return after_is > before_is;
    }
    // An addition may meet the next mistake in the same place; the mistake it is for has to be gone.
    let left = |e: &Diagnostic| {
        after
            .errors
            .iter()
            .any(|a| a.code == e.code && a.message == e.message)
    };
    (after_is.0, after_is.1) >= (before_is.0, before_is.1) && !before.errors.iter().all(left)
}
