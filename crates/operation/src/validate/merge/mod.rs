//! Field selection merging (specification 5.3.2).
//!
//! Three parts. [`table`] lists every field of the document once, with what the rule compares. [`decide`] says
//! whether everything merges, by grouping instead of comparing pairs, so a valid document costs O(n log n) in the
//! fields of its distinct merged selection sets. Only when there is a conflict does [`explain`] look for pairs,
//! because clients know the reference implementation's wording, which names each pair and the path to it.
//!
//! Invariants: `decide` alone gives the verdict; steps of both parts are counted and limited.

use ogive_syntax::ast::SelectionSet;

use super::context::Context;
use table::Table;

mod decide;
mod explain;
mod table;

/// Most steps spent on wording conflicts; beyond them the remaining ones go unnamed.
const EXPLAIN_STEPS_MAX: u32 = 100_000;

/// What the rule found, and what it needs to say so.
#[derive(Default)]
pub(super) struct Merge<'a> {
    steps: u32,
    conflict: Option<Conflict>,
    explain: Option<explain::Explain<'a>>,
}

/// Two fields that cannot be merged, as rows of the table.
#[derive(Clone, Copy)]
struct Conflict {
    a: u32,
    b: u32,
}

impl<'a> Merge<'a> {
    /// Decides whether all fields of the document merge. Reports only that it would take too long.
    pub(super) fn check(cx: &mut Context<'a>) -> Self {
        let table = Table::new(cx);
        let mut merge = Merge::default();
        let outcome = decide::decide(cx, &table, &mut merge.steps);
        match outcome {
            Ok(()) => {}
            Err(decide::Stop::Conflict(conflict)) => {
                merge.conflict = Some(conflict);
                merge.explain = Some(explain::Explain::new(table));
            }
            Err(decide::Stop::TooComplex(place)) => {
                let most = cx.limits.merge_steps_max;
                let message =
                    format!("Checking that fields can be merged takes more than {most} steps.");
                let refusal = cx.too_complex(place, message);
                cx.out.push(refusal);
            }
        }
        merge
    }

    /// Reports the conflicts of one selection set, as far as wording them stays within the limit.
    pub(super) fn explain(&mut self, cx: &mut Context<'a>, set: &SelectionSet) {
        if let Some(explain) = &mut self.explain
            && !cx.is_full()
        {
            explain.selection_set(cx, set);
        }
    }

    /// Reports the conflict that decided, unless conflicts have been worded already.
    pub(super) fn finish(&mut self, cx: &mut Context<'a>) {
        if let (Some(conflict), Some(explain)) = (self.conflict, &self.explain)
            && !explain.has_reported()
        {
            explain.report_plainly(cx, conflict);
        }
    }

    /// How many steps deciding took.
    pub(super) fn steps(&self) -> u32 {
        self.steps
    }
}
