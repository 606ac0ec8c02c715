//! Response names in requests: which of an object's are taken, and by what.
//!
//! A value keeps the client's response key if no other value of the same object claims it with another field, arguments,
//! type or sub-selection; else it gets an alias (`SameResponseShape`, specification 5.3.2, holds by construction).

use ogive_base::{FastMap, Symbol};
use ogive_schema::{FieldId, Type};

use crate::{
    emit::{Emitter, selection::SelectionId, tables::Positions},
    tree::FactId,
};

/// A response name that is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) name: Symbol,
    /// The value; `None` for `__typename`.
    pub(crate) fact: Option<FactId>,
    /// Type in the subgraph.
    pub(crate) ty: Type,
    pub(crate) sub: Option<SelectionId>,
}

impl Taken {
    /// Whether both may stand in one selection set for different concrete types (`SameResponseShape`).
    pub(crate) fn agrees_with(&self, other: &Taken) -> bool {
        self.ty == other.ty && self.sub == other.sub
    }
}

/// The response names of one object.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) taken: Vec<Taken>,
    pub(crate) at: Positions<Symbol>,
    /// Aliases given instead of a name: by that name, the field's name, the type and the sub-selection.
    aliases: FastMap<(Symbol, Symbol, Type, Option<SelectionId>), Vec<Taken>>,
    /// By name, the number of the next alias.
    numbers: FastMap<Symbol, u32>,
}

impl Names {
    /// None yet; uses the memory of empty lists.
    pub(crate) fn within(taken: Vec<Taken>, at: Positions<Symbol>) -> Self {
        Names {
            taken,
            at,
            ..Names::default()
        }
    }
    /// All names, in order.
    pub(crate) fn taken(&self) -> impl Iterator<Item = Symbol> {
        self.taken.iter().map(|taken| taken.name)
    }
    pub(crate) fn push(&mut self, taken: Taken) {
        self.at.push(taken.name);
        self.taken.push(taken);
    }
}

impl Emitter<'_> {
    /// The client's response key, unless another value of the object has it; then an alias.
    pub(crate) fn name(
        &mut self,
        fact_id: FactId,
        ty: Type,
        sub: Option<SelectionId>,
        subgraph: u32,
        names: &mut Names,
    ) -> Symbol {
        let tree = self.tree;
        let fact = &tree.facts[fact_id];
        let field = tree.schema().fields[fact.field].name;
        let same = |taken: &Taken| {
            let call = taken.fact.map(|other| &tree.facts[other]);
            taken.ty == ty
                && taken.sub == sub
                && call.is_some_and(|other| {
                    tree.schema().fields[other.field].name == field
                        && other.has_args(&fact.args)
                        && (other.slot == fact.slot
                            || other.node != fact.node
                                && (!tree.reads_untold(fact.node, subgraph)
                                    || !tree.reads_untold(other.node, subgraph)))
                })
        };
        let wanted = match fact.client {
            // Response keys of the operation have the same symbols here.
            Some(c) => tree.op.fields[c].key,
            None => self.field_name(fact.field),
        };
        let mut taken = Taken {
            name: wanted,
            fact: Some(fact_id),
            ty,
            sub,
        };
        match names.at.find(wanted) {
            Some(at) if same(&names.taken[at]) => return wanted,
            Some(_) => {}
            None => {
                names.push(taken);
                return wanted;
            }
        }
        let aliases = names.aliases.entry((wanted, field, ty, sub)).or_default();
        if let Some(alias) = aliases.iter().find(|alias| same(alias)) {
            return alias.name;
        }
        let number = names.numbers.entry(wanted).or_default();
        loop {
            let text = format!("_{number}_{}", &self.names[wanted]);
            taken.name = self.names.intern(&text);
            *number += 1;
            if names.at.find(taken.name).is_none() {
                aliases.push(taken);
                names.push(taken);
                return taken.name;
            }
        }
    }

    /// The name of a field among the response names.
    fn field_name(&mut self, field: FieldId) -> Symbol {
        let schema = self.tree.schema();
        let name = schema.fields[field].name;
        let names = &mut self.names;
        let intern = || names.intern(schema.name(name));
        *self.schema_names.entry(name).or_insert_with(intern)
    }
}
