//! How many fields an operation has at least once its fragments are expanded, without expanding them.
//!
//! Fragments that are spread twice in each other make billions of fields of a few lines. Counting them is one walk through
//! what is written, each fragment once, in numbers that stop at the largest.
//!
//! The count is never more than there are, so that nothing is refused for it that would not be refused anyway: fields of
//! one response key count once, as much as the largest of them; of several fragments in one place the largest counts; and
//! what may not be there at all, under a condition or for some types only, does not count.
//!
//! Recursion follows the nesting within one definition, which validation bounds; fragments wait for each other on a stack.

use ogive_base::FastMap;
use ogive_schema::{Schema, TypeId};
use ogive_syntax::{
    Document,
    ast::{FragmentDefinition, List, Selection},
};

/// A document to be counted.
pub(crate) struct Least<'a> {
    schema: &'a Schema,
    document: &'a Document,
    fragments: &'a FastMap<&'a str, &'a FragmentDefinition>,
}

/// Fields of fragments, by name, each on an object of its type; none while those are counted that it spreads.
type Known<'a> = FastMap<&'a str, Option<u32>>;

impl<'a> Least<'a> {
    pub(crate) fn new(
        schema: &'a Schema,
        document: &'a Document,
        fragments: &'a FastMap<&'a str, &'a FragmentDefinition>,
    ) -> Self {
        Least {
            schema,
            document,
            fragments,
        }
    }

    /// The least number of fields in `items` and below where an object of type `ty` is. O(what is written).
    pub(crate) fn of(&self, ty: TypeId, items: List<Selection>) -> u32 {
        let mut known = Known::default();
        let mut waiting = Vec::new();
        self.spread(items, &known, &mut waiting);
        while let Some(name) = waiting.last().copied() {
            let fragment = self.fragments[name];
            let items = fragment.selection_set.items;
            match known.get(name) {
                None => {
                    known.insert(name, None);
                    self.spread(items, &known, &mut waiting);
                    continue;
                }
                // Spread in several places.
                Some(Some(_)) => {}
                Some(None) => {
                    let condition = self.document.name(fragment.type_condition);
                    let ty = self.schema.type_by_name(condition);
                    let count = ty.map_or(0, |ty| self.count(items, ty, &known));
                    known.insert(name, Some(count));
                }
            }
            waiting.pop();
        }
        self.count(items, ty, &known)
    }

    /// Adds the fragments that are spread in `items` and below, and were not looked at yet.
    fn spread(&self, items: List<Selection>, known: &Known<'a>, waiting: &mut Vec<&'a str>) {
        let mut lists = vec![items];
        while let Some(items) = lists.pop() {
            for selection in &self.document[items] {
                match selection {
                    Selection::Field(field) => {
                        lists.extend(field.selection_set.as_ref().map(|set| set.items));
                    }
                    Selection::Inline(inline) => lists.push(inline.selection_set.items),
                    Selection::Spread(spread) => {
                        let name = self.document.name(spread.name);
                        if self.fragments.contains_key(name) && !known.contains_key(name) {
                            waiting.push(name);
                        }
                    }
                }
            }
        }
    }

    /// Those of `items` where an object of type `ty` is.
    fn count(&self, items: List<Selection>, ty: TypeId, known: &Known<'a>) -> u32 {
        if self.schema.types[ty].possible.is_empty() {
            return 0;
        }
        let mut fields: FastMap<&str, u32> = FastMap::default();
        let mut most = 0;
        for selection in &self.document[items] {
            match selection {
                Selection::Field(field) if field.directives.is_empty() => {
                    let name = self.document.name(field.name);
                    let below = field.selection_set.as_ref().map_or(0, |set| {
                        let below = self.type_below(ty, name);
                        below.map_or(0, |below| self.count(set.items, below, known))
                    });
                    let count = fields
                        .entry(self.document.name(field.response_key()))
                        .or_default();
                    *count = below.saturating_add(1).max(*count);
                }
                Selection::Inline(inline) if inline.directives.is_empty() => {
                    let inside = match inline.type_condition {
                        None => Some(ty),
                        Some(name) => self.if_always(ty, self.document.name(name)),
                    };
                    let items = inline.selection_set.items;
                    let count = inside.map_or(0, |inside| self.count(items, inside, known));
                    most = count.max(most);
                }
                Selection::Spread(spread) if spread.directives.is_empty() => {
                    let name = self.document.name(spread.name);
                    let condition = self.fragments.get(name).map(|fragment| {
                        let condition = fragment.type_condition;
                        self.if_always(ty, self.document.name(condition))
                    });
                    if condition.flatten().is_some() {
                        most = known
                            .get(name)
                            .copied()
                            .flatten()
                            .unwrap_or_default()
                            .max(most);
                    }
                }
                _ => {}
            }
        }
        let all = fields.into_values().fold(0, u32::saturating_add);
        all.max(most)
    }

    /// The type of that name if every object of type `ty` is of it.
    fn if_always(&self, ty: TypeId, name: &str) -> Option<TypeId> {
        let types = &self.schema.types;
        let found = self.schema.type_by_name(name)?;
        let mut both = types[ty].possible.clone();
        both.intersect_with(&types[found].possible);
        (found == ty || both == types[ty].possible).then_some(found)
    }

    /// The type of a field's objects. Of an abstract type only if it is the same whatever the object: one that implements
    /// it may promise more.
    fn type_below(&self, ty: TypeId, name: &str) -> Option<TypeId> {
        let types = &self.schema.types;
        let field = self.schema.field_by_name(ty, name)?;
        let below = self.schema.fields[field].ty.id;
        let is_settled = !types[ty].kind.is_abstract() || !types[below].kind.is_abstract();
        is_settled.then_some(below)
    }
}
