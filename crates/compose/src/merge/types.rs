//! The one type of a field, argument or input field whose subgraphs write different ones: outputs take the least
//! strict, inputs the strictest.

use super::{Merger, Ref};
use crate::{
    codes::{self, HintCode, hint},
    report::Place,
};

/// Where the type stands, which says in which direction it may vary.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// What a field returns.
    Output,
    /// What an argument takes.
    Argument,
    /// What a field of an input object takes.
    InputField,
}

/// One subgraph's type and where it says so.
pub(super) struct Stated {
    pub(super) sub: u32,
    pub(super) place: Place,
    pub(super) ty: Ref,
}

impl Merger<'_> {
    /// The type of all. A conflict is reported, and the first fitting type goes on.
    pub(super) fn merge_types(
        &mut self,
        about: &str,
        stated: Vec<Stated>,
        position: Position,
    ) -> Ref {
        let Some(mut best) = stated.first().map(|s| s.ty) else {
            return Ref::UNKNOWN;
        };
        let (mut conflict, mut uneven) = (false, false);
        for Stated { ty, .. } in &stated[1..] {
            if *ty == best {
                continue;
            }
            uneven = true;
            let (narrow, wide) = match position {
                Position::Output => (best, *ty),
                Position::Argument | Position::InputField => (*ty, best),
            };
            if self.out.is_subtype(narrow, wide) {
                best = *ty;
            } else if !self.out.is_subtype(wide, narrow) {
                conflict = true;
            }
        }
        if uneven {
            let at: Vec<(Place, String)> = stated
                .into_iter()
                .map(|s| {
                    let name = &self.subs[s.sub as usize].name;
                    (s.place, format!("`{}` in `{name}`", self.out.display(s.ty)))
                })
                .collect();
            if conflict {
                let (why, help) = position.conflict();
                let message = format!("`{about}` has types in different subgraphs {why}");
                self.report
                    .error_help(position.code(), about, message, help.into(), &at);
            } else {
                let shown = self.out.display(best);
                let message = format!(
                    "`{about}` has different types in different subgraphs; the supergraph uses `{shown}`"
                );
                self.report.hint(position.hint(), about, message, &at);
            }
        }
        best
    }
}

impl Position {
    fn code(self) -> &'static str {
        match self {
            Position::Argument => codes::FIELD_ARGUMENT_TYPE_MISMATCH,
            Position::Output | Position::InputField => codes::FIELD_TYPE_MISMATCH,
        }
    }
    fn hint(self) -> HintCode {
        match self {
            Position::Argument => hint::INCONSISTENT_BUT_COMPATIBLE_ARGUMENT_TYPE,
            Position::Output | Position::InputField => hint::INCONSISTENT_BUT_COMPATIBLE_FIELD_TYPE,
        }
    }
    fn conflict(self) -> (&'static str, &'static str) {
        match self {
            Position::Output => (
                "that have nothing in common",
                "return the same type everywhere, or types of which one includes the others",
            ),
            Position::Argument | Position::InputField => {
                ("that no value fits", "use one type everywhere")
            }
        }
    }
}
