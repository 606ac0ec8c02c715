//! `ogive fix`: mechanical repairs of subgraphs that do not compose.
//!
//! Composition says what is wrong and where; a repair is an edit of a few bytes there, made only if it follows from the
//! diagnostic alone. Repairs are made in rounds, because the next stage of composition may find more. *Suggested* repairs
//! also change what a subgraph promises (that it can be entered by a key, that it owns a type), so they are made only
//! when asked for.

mod apply;
mod repairs;

use ogive_base::Diagnostic;
use ogive_compose::{ComposeOptions, Composer};

use crate::load::{Loaded, compose};
use apply::apply;
pub use apply::unified;
use repairs::Repairs;

/// Most rounds.
pub const ROUNDS_MAX: usize = 32;

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
    for round in 0..=ROUNDS_MAX {
        let composed = compose(&mut composer, &fixed.loaded, &ComposeOptions::default());
        let mut repairs = Repairs::new(&fixed.loaded, options.suggested);
        for diagnostic in composed.errors.iter().chain(&composed.hints) {
            repairs.of(diagnostic);
        }
        fixed.errors = composed.errors;
        let Repairs {
            edits, suggestions, ..
        } = repairs;
        fixed.suggestions = suggestions;
        if round == ROUNDS_MAX {
            break;
        }
        let done = apply(&mut fixed.loaded, edits);
        if done.is_empty() {
            break;
        }
        fixed.repairs.extend(done);
    }
    fixed
}
