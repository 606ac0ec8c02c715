//! Names of the operations that subgraphs are sent, made of the client's: `Shop__reviews__0`.
//!
//! Plans know no names, since operations that differ in them alone have one plan. So a name is written into the text of each
//! request, behind the word that opens it. It is unique among the fetches of a plan, because it ends with the fetch's number.

use ogive_base::id::Id;
use ogive_plan::{Fetch, FetchId};

/// Longest part of a name, in bytes; what is longer is cut off.
const PART_MAX: usize = 256;

/// Which subgraphs are told names, and how they are called in them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NamedSubgraphs(Box<[Option<Box<str>>]>);

impl NamedSubgraphs {
    /// By subgraph index: the name of each that is told names. `None` if there is no such subgraph.
    pub fn new<'n>(names: impl IntoIterator<Item = Option<&'n str>>) -> Option<Self> {
        let names = names.into_iter().map(|name| name.map(cleaned));
        let names: Box<[Option<Box<str>>]> = names.collect();
        names
            .iter()
            .any(Option::is_some)
            .then_some(NamedSubgraphs(names))
    }
}

/// What no name of GraphQL can hold becomes `_`.
fn cleaned(name: &str) -> Box<str> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let letters = name.chars().map(|c| if is_fine(c) { c } else { '_' });
    letters.take(PART_MAX).collect::<String>().into()
}

/// The names of one operation.
#[derive(Clone, Copy, Debug)]
pub struct OperationNames<'a> {
    /// Of a GraphQL document that was parsed, so that it is one.
    operation: &'a str,
    subgraphs: &'a NamedSubgraphs,
}

impl<'a> OperationNames<'a> {
    /// The names of the operation that its client calls so.
    pub fn new(operation: &'a str, subgraphs: &'a NamedSubgraphs) -> Self {
        let length = operation.len().min(PART_MAX);
        OperationNames {
            // Names are ASCII.
            operation: operation.get(..length).unwrap_or_default(),
            subgraphs,
        }
    }
    /// How the client calls it, cut as it is told.
    pub fn operation(&self) -> &'a str {
        self.operation
    }
    /// What the subgraph of a fetch is told; nothing if it is told no names.
    pub(crate) fn of(self, id: FetchId, fetch: &Fetch) -> Option<String> {
        let subgraph = self.subgraphs.0.get(fetch.subgraph as usize)?.as_ref()?;
        Some(format!("{}__{subgraph}__{}", self.operation, id.index()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_subgraph_is_called_its_part_of_a_name_is_one() {
        for (name, expected) in [
            ("reviews", "reviews"),
            ("shop-eu.reviews", "shop_eu_reviews"),
            ("2nd stock", "2nd_stock"),
            ("größe", "gr__e"),
        ] {
            assert_eq!(&*cleaned(name), expected);
        }
        assert_eq!(cleaned(&"é".repeat(1_000)).len(), PART_MAX);
    }

    #[test]
    fn a_long_name_is_cut_and_no_subgraph_that_is_told_none_costs_anything() {
        let subgraphs = NamedSubgraphs::new([None, Some("a")]).unwrap();
        let names = "N".repeat(PART_MAX + 1);
        assert_eq!(
            OperationNames::new(&names, &subgraphs).operation.len(),
            PART_MAX
        );
        assert_eq!(NamedSubgraphs::new([None, None]), None);
    }
}
