//! Conditions over boolean variables and requirements of callers, evaluated once per request.

use ogive_base::id::Id;
use ogive_plan::{Cond, Gate, Granted, Plan};

/// Which conditions of a plan hold for one set of variable values.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    holding: ogive_json::Conditions,
    /// What the caller meets.
    granted: Granted,
}

impl Conditions {
    /// Evaluates all of `plan`'s conditions. A variable without a boolean value satisfies no literal.
    pub(crate) fn evaluate(plan: &Plan, variables: &[Option<Box<str>>], granted: &Granted) -> Self {
        let n_variables = plan.variables.len() as u32;
        let literal_holds = |&(variable, wanted): &(u32, bool)| {
            if let Some(requirement) = variable.checked_sub(n_variables) {
                return granted.contains(requirement) == wanted;
            }
            let value = variables.get(variable as usize).and_then(Option::as_deref);
            value == Some(if wanted { "true" } else { "false" })
        };
        let mut holding = ogive_json::Conditions::default();
        for (cond, terms) in plan.conditions.iter() {
            if cond != Cond::TRUE && terms.iter().any(|term| term.iter().all(literal_holds)) {
                holding.set(cond.index() as u32);
            }
        }
        Conditions {
            holding,
            granted: granted.clone(),
        }
    }

    pub(crate) fn hold(&self, cond: Cond) -> bool {
        self.holding.hold(cond.0)
    }

    /// What the caller sees of a field whose value it may not see.
    pub(crate) fn mask<'p>(&self, plan: &'p Plan, granted: Cond) -> Option<&'p str> {
        plan.mask(granted, &self.granted)
    }

    /// The same for patterns, by the same numbers.
    pub(crate) fn for_patterns(&self) -> &ogive_json::Conditions {
        &self.holding
    }

    /// Whether something behind `gates` is sent: if any is open, or there is none. `live` says whether a part of
    /// the request is asked.
    pub(crate) fn open(&self, gates: &[Gate], live: impl Fn(u16) -> bool) -> bool {
        gates.is_empty()
            || gates
                .iter()
                .any(|gate| self.hold(gate.cond) && gate.lookup.is_none_or(&live))
    }
}
