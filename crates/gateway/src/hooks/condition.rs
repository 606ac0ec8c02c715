//! Of which requests somebody is told at a stage: a condition of the configuration, and under which names it looks at the
//! context. Coprocessors and components have the same ones.

use ogive_hooks::{
    ContextSelection,
    entries::{OPERATION_KIND, OPERATION_NAME},
};
use ogive_selectors::{Condition, Selector};

use crate::shared::selectors::{Selected, is_met, is_met_by_known};

/// The condition of one stage.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StageCondition {
    /// `None`: of all.
    pub(crate) condition: Option<Condition>,
    /// Entries of the context are called there as these are.
    pub(crate) names: ContextSelection,
}

impl StageCondition {
    /// A condition that knows entries of the context by their current names, as with `context: all`.
    pub(crate) fn of(condition: Option<Condition>) -> Self {
        StageCondition {
            condition,
            names: ContextSelection::All,
        }
    }
    /// Whether it is met.
    pub(crate) fn is_met(&self, of: &impl Selected) -> bool {
        let condition = self.condition.as_ref();
        condition.is_none_or(|condition| is_met(condition, of))
    }
    /// Whether it may be met by a request of which it is `known` what some selectors say.
    pub(crate) fn may_be_met(&self, of: &impl Selected, known: &dyn Fn(&Selector) -> bool) -> bool {
        let condition = self.condition.as_ref();
        condition.is_none_or(|condition| is_met_by_known(condition, of, known) != Some(false))
    }
    /// Whether it looks at an entry of the context.
    pub(crate) fn looks_at(&self, entry: &str) -> bool {
        let mut selectors = self.selectors().into_iter();
        selectors.any(|selector| self.is_entry(selector, entry))
    }
    /// Whether a selector names an entry of the context.
    pub(crate) fn is_entry(&self, selector: &Selector, entry: &str) -> bool {
        matches!(selector, Selector::RequestContext(name) if self.names.known(name) == entry)
    }
    /// Whether it looks at any entry of the context.
    pub(crate) fn looks_at_context(&self) -> bool {
        let mut selectors = self.selectors().into_iter();
        selectors.any(|selector| {
            matches!(selector, Selector::RequestContext(_)) || self.is_of_operation(selector)
        })
    }
    /// Whether it looks at whether there are errors.
    pub(crate) fn looks_at_errors(&self) -> bool {
        self.selectors().contains(&&Selector::OnGraphqlError)
    }
    /// Whether it looks at what the operation is.
    pub(crate) fn looks_at_operation(&self) -> bool {
        let mut selectors = self.selectors().into_iter();
        selectors.any(|selector| self.is_of_operation(selector))
    }
    /// Whether a selector is about what the operation is.
    pub(crate) fn is_of_operation(&self, selector: &Selector) -> bool {
        matches!(selector, Selector::OperationName | Selector::OperationKind)
            || [OPERATION_NAME, OPERATION_KIND]
                .iter()
                .any(|entry| self.is_entry(selector, entry))
    }
    /// What it looks at.
    pub(crate) fn selectors(&self) -> Vec<&Selector> {
        let condition = self.condition.as_ref();
        condition.map_or_else(Vec::new, Condition::selectors)
    }
    /// What is said of it to people.
    pub(crate) fn shown(&self) -> &'static str {
        match self.condition {
            Some(_) => ", if its condition is met",
            None => "",
        }
    }
}
