//! Conditions over boolean variables, evaluated once per request.

use ogive_base::{BitSet, id::Id};
use ogive_plan::{Cond, Gate, Plan};

/// Which conditions of a plan hold for one set of variable values.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    holding: BitSet,
}

impl Conditions {
    /// Evaluates all of `plan`'s conditions. A variable without a boolean value satisfies no literal.
    pub(crate) fn evaluate(plan: &Plan, variables: &[Option<Box<str>>]) -> Self {
        let literal_holds = |&(variable, wanted): &(u32, bool)| {
            let value = variables.get(variable as usize).and_then(Option::as_deref);
            value == Some(if wanted { "true" } else { "false" })
        };
        let mut holding: BitSet = plan
            .conditions
            .iter()
            .filter(|(_, terms)| terms.iter().any(|term| term.iter().all(literal_holds)))
            .map(|(cond, _)| cond.index() as u32)
            .collect();
        holding.insert(Cond::TRUE.0);
        Conditions { holding }
    }

    pub(crate) fn hold(&self, cond: Cond) -> bool {
        self.holding.contains(cond.0)
    }

    /// Whether something behind `gates` is sent: if any is open, or there is none. `live` says whether a look-up has
    /// representations.
    pub(crate) fn open(&self, gates: &[Gate], live: impl Fn(u16) -> bool) -> bool {
        gates.is_empty()
            || gates
                .iter()
                .any(|gate| self.hold(gate.cond) && gate.lookup.is_none_or(&live))
    }
}
