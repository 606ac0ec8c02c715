//! Pass 0: restrictions of the supergraph become conditions of the operation (planner rule 28).
//!
//! Whether the caller meets a requirement is a boolean like a variable's value. A restricted field is fetched only if
//! its requirements are met, and so is what serves it alone: that follows from its condition, as with `@include`.
//! Unlike with `@include` it stays in the response; [`FieldNode::granted`] says when its value may be seen. Keys and
//! `@requires` values that the gateway fetches for itself are not restricted, since nobody sees them.
//!
//! A field that concrete types restrict differently is split, with all below it.

use std::borrow::Cow;

use ogive_base::{BitSet, FastMap, IdVec};
use ogive_federation::{Restrictions, Supergraph};
use ogive_operation::{
    Clause, CondId, FieldNode, FieldNodeId, FieldRef, Occurrence, Operation, SelectionSet,
    SelectionSetId, local_fields,
};
use ogive_schema::{Schema, TypeId};

use crate::PlanError;

/// Most fields of the result.
const FIELDS_MAX: usize = 50_000;

/// Applies the restrictions of a supergraph to an operation in normal form; the operation itself if the supergraph has
/// none. [`grow`](crate::tree::grow) refuses an operation that has not been here. Linear in the result.
pub fn restrict<'o>(
    supergraph: &Supergraph,
    operation: &'o Operation,
) -> Result<Cow<'o, Operation>, PlanError> {
    let restrictions = &supergraph.restrictions;
    if restrictions.is_empty() {
        return Ok(Cow::Borrowed(operation));
    }
    let mut work = Work {
        schema: &supergraph.schema,
        restrictions,
        op: operation.clone(),
        implied: IdVec::from_vec(vec![Vec::new(); operation.selection_sets.len()]),
        local: local_sets(operation),
        literals: FastMap::default(),
    };
    let mut next = SelectionSetId(0);
    while (next.0 as usize) < work.op.selection_sets.len() {
        if !work.local.contains(next.0) {
            work.set(next)?;
        }
        next.0 += 1;
    }
    work.op.is_restricted = true;
    Ok(Cow::Owned(work.op))
}

/// Selection sets below `__schema` and `__type`.
fn local_sets(operation: &Operation) -> BitSet {
    let mut local = BitSet::new();
    let roots: BitSet = local_fields(operation).map(|field| field.0).collect();
    // Children come after their parents.
    for (id, set) in operation.selection_sets.iter() {
        if let Some(field) = set.parent {
            let above = operation.fields[field].parent;
            if roots.contains(field.0) || local.contains(above.0) {
                local.insert(id.0);
            }
        }
    }
    local
}

struct Work<'a> {
    schema: &'a Schema,
    restrictions: &'a Restrictions,
    op: Operation,
    /// By selection set: requirements that hold wherever its objects are seen, sorted.
    implied: IdVec<SelectionSetId, Vec<u32>>,
    local: BitSet,
    /// Literals of requirements, by index into the table of the supergraph.
    literals: FastMap<u32, u32>,
}

impl Work<'_> {
    fn set(&mut self, id: SelectionSetId) -> Result<(), PlanError> {
        if id != self.op.root {
            self.objects(id);
        }
        for field in self.op.selection_sets[id].fields.clone() {
            let node = &self.op.fields[field];
            if !matches!(node.field, FieldRef::Field(_)) {
                continue;
            }
            let mut classes: Vec<(Vec<u32>, BitSet)> = Vec::new();
            for ty in node.types.iter() {
                let asked = self.asked(id, node, TypeId(ty));
                match classes.iter_mut().find(|(same, _)| *same == asked) {
                    Some((_, types)) => {
                        types.insert(ty);
                    }
                    None => classes.push((asked, [ty].into_iter().collect())),
                }
            }
            let parts = self.split(field, &classes)?;
            for (part, (asked, _)) in parts.into_iter().zip(classes) {
                self.apply(part, &asked);
            }
        }
        Ok(())
    }

    /// Notes the objects of restricted types.
    fn objects(&mut self, id: SelectionSetId) {
        let mut classes: Vec<(Vec<u32>, BitSet)> = Vec::new();
        for ty in self.op.selection_sets[id].possible.iter() {
            let asked = self.missing(id, self.restrictions.of_type(TypeId(ty)));
            match classes.iter_mut().find(|(same, _)| *same == asked) {
                _ if asked.is_empty() => {}
                Some((_, types)) => {
                    types.insert(ty);
                }
                None => classes.push((asked, [ty].into_iter().collect())),
            }
        }
        for (asked, types) in classes {
            let granted = self.granted(&asked);
            self.op.selection_sets[id].restricted.push((types, granted));
        }
    }

    /// What a field of a concrete type asks for beyond what its object does, sorted.
    fn asked(&self, set: SelectionSetId, node: &FieldNode, ty: TypeId) -> Vec<u32> {
        let mut asked: Vec<u32> = self.restrictions.of_type(ty).to_vec();
        if let FieldRef::Field(field) = node.field {
            let name = self.schema.fields[field].name;
            let concrete = self.schema.fields_by_name.get(&(ty, name));
            let field = concrete.copied().unwrap_or(field);
            asked.extend(self.restrictions.of_field(field));
            let value = self.schema.fields[field].ty.id;
            asked.extend(self.restrictions.of_type(value));
        }
        asked.sort_unstable();
        asked.dedup();
        self.missing(set, &asked)
    }

    fn missing(&self, set: SelectionSetId, asked: &[u32]) -> Vec<u32> {
        let implied = &self.implied[set];
        let missing = asked.iter().filter(|row| !implied.contains(row));
        missing.copied().collect()
    }

    /// Makes one field of each class of types; their ids in order of classes.
    fn split(
        &mut self,
        field: FieldNodeId,
        classes: &[(Vec<u32>, BitSet)],
    ) -> Result<Vec<FieldNodeId>, PlanError> {
        let [_, further @ ..] = classes else {
            return Ok(vec![field]);
        };
        let mut parts = vec![field];
        if further.is_empty() {
            return Ok(parts);
        }
        for (_, types) in further {
            parts.push(self.copy(field, types)?);
        }
        self.op.fields[field].types = classes[0].1.clone();
        let set = &mut self.op.selection_sets[self.op.fields[field].parent];
        set.fields.extend(&parts[1..]);
        let mut order = Vec::with_capacity(set.order.len() + further.len());
        for occurrence in std::mem::take(&mut set.order) {
            if occurrence.field != field {
                order.push(occurrence);
                continue;
            }
            for (part, (_, types)) in parts.iter().zip(classes) {
                let types = types.intersection(&occurrence.types);
                if !types.is_empty() {
                    order.push(Occurrence {
                        field: *part,
                        types,
                        cond: occurrence.cond,
                        defer: occurrence.defer,
                    });
                }
            }
        }
        set.order = order;
        Ok(parts)
    }

    /// A copy of a field with all below it, for other types. The parent's lists do not mention it yet.
    fn copy(&mut self, field: FieldNodeId, types: &BitSet) -> Result<FieldNodeId, PlanError> {
        let row = FieldNode {
            types: types.clone(),
            ..self.op.fields[field].clone()
        };
        let copy = self.op.fields.push(row);
        self.op.deferral.copy(field, copy);
        // Fields whose selection sets are still those of the originals.
        let mut open = vec![copy];
        while let Some(owner) = open.pop() {
            let Some(original) = self.op.fields[owner].selection_set else {
                continue;
            };
            let set = SelectionSet {
                parent: Some(owner),
                ..self.op.selection_sets[original].clone()
            };
            let set = self.op.selection_sets.push(set);
            self.implied.push(Vec::new());
            self.op.fields[owner].selection_set = Some(set);
            let mut copies: FastMap<FieldNodeId, FieldNodeId> = FastMap::default();
            for at in 0..self.op.selection_sets[set].fields.len() {
                let below = self.op.selection_sets[set].fields[at];
                let row = FieldNode {
                    parent: set,
                    ..self.op.fields[below].clone()
                };
                let copy = self.op.fields.push(row);
                self.op.deferral.copy(below, copy);
                self.op.selection_sets[set].fields[at] = copy;
                copies.insert(below, copy);
                open.push(copy);
            }
            for occurrence in &mut self.op.selection_sets[set].order {
                if let Some(copy) = copies.get(&occurrence.field) {
                    occurrence.field = *copy;
                }
            }
            if self.op.fields.len() > FIELDS_MAX {
                return Err(PlanError::too_large(format!(
                    "the operation has more than {FIELDS_MAX} fields once those are told apart that only some callers \
                     may see; ask for less in one operation"
                )));
            }
        }
        Ok(copy)
    }

    /// Puts a field under its requirements.
    fn apply(&mut self, field: FieldNodeId, asked: &[u32]) {
        let FieldNode {
            parent,
            cond,
            selection_set,
            ..
        } = self.op.fields[field];
        if let Some(set) = selection_set {
            let mut implied = self.implied[parent].clone();
            implied.extend(asked);
            self.implied[set] = implied;
        }
        if asked.is_empty() {
            return;
        }
        let clause = self.clause(asked);
        let clauses = self.op.conditions.clauses(cond).iter();
        // Variables come before requirements, so that the clauses stay sorted.
        let clauses = clauses.map(|c| c.iter().chain(&clause).copied().collect());
        let clauses: Vec<Clause> = clauses.collect();
        let cond = self.op.conditions.of(clauses).unwrap_or(CondId::TRUE);
        let granted = self.granted(asked);
        let node = &mut self.op.fields[field];
        (node.cond, node.granted) = (cond, granted);
    }

    fn granted(&mut self, asked: &[u32]) -> CondId {
        let clause = self.clause(asked);
        let granted = self.op.conditions.of(vec![clause]);
        granted.unwrap_or(CondId::TRUE)
    }

    fn clause(&mut self, asked: &[u32]) -> Clause {
        let n_variables = self.op.variables.len() as u32;
        let requirements = &mut self.op.requirements;
        let mut clause: Clause = Vec::new();
        for row in asked {
            let literal = self.literals.entry(*row).or_insert_with(|| {
                requirements.push(*row);
                n_variables + requirements.len() as u32 - 1
            });
            clause.push((*literal, true));
        }
        clause.sort_unstable();
        clause
    }
}
