//! What a supergraph says about how much there is and what it costs: `@listSize` and `@cost`.
//!
//! These are estimates. They decide which of several right plans is better, never whether one is right, so what makes
//! no sense is left out instead of refused.

use ogive_base::{FastMap, Symbol};
use ogive_schema::{AppliedDirective, ConstValue, FieldId, InputId, Schema};

use crate::{Links, applied::applied, vocabulary::Spec};

/// How long a list is, as its `@listSize` says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListSize {
    /// `assumedSize`: its length if no argument says it.
    pub assumed: Option<u32>,
    /// `slicingArguments`: arguments of the field that say it; the largest one counts.
    pub slicing: Vec<InputId>,
    /// `sizedFields`: the lists it is about are those below the field, of these names; empty: the field itself.
    pub sized: Vec<Symbol>,
}

/// Everything about sizes and costs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Costs {
    /// By field with `@listSize`.
    pub list_sizes: FastMap<FieldId, ListSize>,
    /// `@cost` of a field, else of the type it returns; absent: the usual.
    pub weights: FastMap<FieldId, u32>,
}

/// Reads both directives.
pub(crate) fn read_costs(schema: &Schema, links: &Links) -> Costs {
    let symbol = |element: &str| schema.names.get(&links.directive(Spec::Cost, element)?);
    let (size, cost) = (symbol("listSize"), symbol("cost"));
    let mut costs = Costs::default();
    if size.is_none() && cost.is_none() {
        return costs;
    }
    let weight = |directives: &[AppliedDirective]| {
        let applied = applied(directives, cost).next()?;
        number(applied.arg(schema.names.get("weight")?)?)
    };
    for (id, field) in schema.fields.iter() {
        if let Some(applied) = applied(&field.directives, size).next() {
            costs.list_sizes.insert(id, list_size(schema, id, applied));
        }
        let of_type = || weight(&schema.types[field.ty.id].directives);
        if let Some(weight) = weight(&field.directives).or_else(of_type) {
            costs.weights.insert(id, weight);
        }
    }
    costs
}

fn list_size(schema: &Schema, field: FieldId, applied: &AppliedDirective) -> ListSize {
    let arg = |name: &str| applied.arg(schema.names.get(name)?);
    let names = |name: &str| -> Vec<Symbol> {
        let texts = match arg(name) {
            Some(ConstValue::List(texts)) => texts.as_slice(),
            // One value is a list of one.
            Some(text) => std::slice::from_ref(text),
            None => &[],
        };
        let texts = texts.iter().filter_map(ConstValue::as_str);
        texts.filter_map(|text| schema.names.get(text)).collect()
    };
    let args = &schema.fields[field].args;
    let slicing = names("slicingArguments").into_iter();
    ListSize {
        assumed: arg("assumedSize").and_then(number),
        slicing: slicing
            .filter_map(|name| {
                args.iter()
                    .copied()
                    .find(|a| schema.inputs[*a].name == name)
            })
            .collect(),
        sized: names("sizedFields"),
    }
}

/// A whole number that is not negative; weights were strings in early versions of the specification.
fn number(value: &ConstValue) -> Option<u32> {
    match value {
        ConstValue::Int(text) | ConstValue::String(text) => text.parse().ok(),
        _ => None,
    }
}
