//! What selectors give for a request, and whether conditions on it are met.

use std::{borrow::Cow, cmp::Ordering};

use ogive_config::{Client, Condition, Operand, Selector};
use ogive_identity::Caller;

/// What selectors are asked of.
pub(crate) trait Selected {
    /// The value as a text; lists and objects are none.
    fn text(&self, selector: &Selector) -> Option<Cow<'_, str>>;
    /// The items of a value: those of a list, or the words of a text.
    fn items(&self, selector: &Selector) -> Vec<Cow<'_, str>>;
    /// Whether there is such a value, of whatever kind.
    fn has(&self, selector: &Selector) -> bool;
    /// Who asks: the peer, or the client that a trusted proxy names.
    fn client(&self) -> Option<Client>;
}

/// A caller says nothing but claims.
impl Selected for Caller {
    fn text(&self, selector: &Selector) -> Option<Cow<'_, str>> {
        match selector {
            Selector::JwtClaim(claim) => self.scalar(claim),
            _ => None,
        }
    }
    fn items(&self, selector: &Selector) -> Vec<Cow<'_, str>> {
        match selector {
            Selector::JwtClaim(claim) => {
                let items = self.items(claim).into_iter();
                items.map(Cow::Borrowed).collect()
            }
            _ => Vec::new(),
        }
    }
    fn client(&self) -> Option<Client> {
        None
    }
    fn has(&self, selector: &Selector) -> bool {
        matches!(selector, Selector::JwtClaim(claim) if self.claim(claim).is_some())
    }
}

/// Whether a condition is met. As deep as the configuration may be.
pub(crate) fn is_met(condition: &Condition, of: &impl Selected) -> bool {
    match condition {
        Condition::Eq(left, right) => match (text(left, of), text(right, of)) {
            (Some(left), Some(right)) => left == right,
            _ => false,
        },
        Condition::Within(ranges) => {
            let client = of.client();
            client.is_some_and(|client| ranges.iter().any(|range| range.contains(client)))
        }
        Condition::Contains(list, item) => {
            let Some(item) = text(item, of) else {
                return false;
            };
            match list {
                Operand::Text(list) => list.split_ascii_whitespace().any(|word| *word == *item),
                Operand::Selector(list) => of.items(list).contains(&item),
            }
        }
        Condition::Gt(left, right) => compared(left, right, of) == Some(Ordering::Greater),
        Condition::Lt(left, right) => compared(left, right, of) == Some(Ordering::Less),
        Condition::Exists(selector) => of.has(selector),
        Condition::Not(inner) => !is_met(inner, of),
        Condition::All(all) => all.iter().all(|one| is_met(one, of)),
        Condition::Any(all) => all.iter().any(|one| is_met(one, of)),
    }
}

/// How two numbers compare.
fn compared(left: &Operand, right: &Operand, of: &impl Selected) -> Option<Ordering> {
    let number = |operand| text(operand, of)?.trim().parse::<f64>().ok();
    number(left)?.partial_cmp(&number(right)?)
}

/// What an operand says; lists and objects say nothing.
fn text<'a>(operand: &'a Operand, of: &'a impl Selected) -> Option<Cow<'a, str>> {
    match operand {
        Operand::Text(text) => Some(text.as_str().into()),
        Operand::Selector(selector) => of.text(selector),
    }
}
