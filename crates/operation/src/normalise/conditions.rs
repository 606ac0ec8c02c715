//! Under which conditions fields are asked for, by `@skip` and `@include` with variables.

use ogive_base::{Diagnostic, FastSet, Span};
use ogive_failure::codes;
use ogive_syntax::ast::{self, List, ValueKind};

use super::{Work, refused};
use crate::ir::*;

impl Work<'_> {
    /// The conjunction of `clause` with `@skip` and `@include`; `None` if it never holds.
    pub(super) fn conditions(
        &self,
        directives: List<ast::Directive>,
        clause: &Clause,
    ) -> Result<Option<Clause>, Diagnostic> {
        let mut out = clause.clone();
        for directive in &self.document[directives] {
            let wanted = match self.document.name(directive.name) {
                "skip" => false,
                "include" => true,
                _ => continue,
            };
            let Some(argument) = self.document[directive.arguments].first() else {
                continue;
            };
            match argument.value.kind {
                ValueKind::Boolean(value) if value == wanted => {}
                ValueKind::Boolean(_) => return Ok(None),
                ValueKind::Variable(name) => {
                    let variable = self.variable(name)?;
                    if out.contains(&(variable, !wanted)) {
                        return Ok(None);
                    }
                    if let Err(at) = out.binary_search(&(variable, wanted)) {
                        out.insert(at, (variable, wanted));
                    }
                }
                _ => {
                    return Err(refused(
                        self.document,
                        argument.span,
                        "`if` must be a boolean",
                    ));
                }
            }
        }
        Ok(Some(out))
    }

    pub(super) fn condition(&mut self, clause: &Clause) -> CondId {
        if clause.is_empty() {
            return CondId::TRUE;
        }
        let cond = self.op.conditions.of(vec![clause.clone()]);
        cond.unwrap_or(CondId::TRUE)
    }

    pub(super) fn widened(&mut self, clauses: impl Iterator<Item = Clause>) -> CondId {
        let mut seen: FastSet<Clause> = FastSet::default();
        let distinct: Vec<Clause> = clauses.filter(|c| seen.insert(c.clone())).collect();
        if distinct.len() > Conditions::CLAUSES_MAX {
            return CondId::TRUE;
        }
        self.op.conditions.of(distinct).unwrap_or(CondId::TRUE)
    }

    pub(super) fn too_many_conditions(&self, span: Span) -> Diagnostic {
        let most = self.limits.conditional_max;
        Diagnostic::error(
            codes::OPERATION_TOO_LARGE.as_str(),
            format!(
                "the operation has more than {most} selections under `@skip` or `@include` once fragments are expanded"
            ),
        )
        .label(self.document.source_id(), span, "the limit is reached here")
        .help("use `@skip` and `@include` less, and not on fragments that spread others under them")
    }
}

/// Most clauses of the condition of one appearance of a mutation's root field.
const APPEARANCE_CLAUSES_MAX: usize = 256;

/// Most appearances of one response key among a mutation's root fields, if they have conditions.
const APPEARANCES_MAX: usize = 256;

/// Clauses for "`clause` holds and none of `earlier` does"; empty if that is never; `None` if there are too many.
pub(super) fn without(clause: &Clause, earlier: &[&Clause]) -> Option<Vec<Clause>> {
    // Whatever comes after an appearance without condition never counts.
    if earlier.iter().any(|other| other.is_empty()) {
        return Some(Vec::new());
    }
    if earlier.len() > APPEARANCES_MAX {
        return None;
    }
    let mut out = vec![clause.clone()];
    for other in earlier {
        let mut next = Vec::new();
        for clause in out {
            if other.iter().any(|(v, want)| clause.contains(&(*v, !want))) {
                next.push(clause);
                continue;
            }
            for (variable, want) in other.iter().filter(|l| !clause.contains(l)) {
                let mut with = clause.clone();
                if let Err(at) = with.binary_search(&(*variable, !want)) {
                    with.insert(at, (*variable, !want));
                }
                next.push(with);
            }
        }
        out = next;
        if out.len() > APPEARANCE_CLAUSES_MAX {
            return None;
        }
    }
    Some(out)
}
