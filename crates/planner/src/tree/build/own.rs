//! Objects that field sets go through, where the client selects the same objects.
//!
//! `@requires(fields: "owner { name }")` needs `owner`, and the client may ask for `owner { name rank }`. Mostly one
//! selection serves both. It does not where one could lose the object by the other:
//!
//! - a client's field that must not be null fails, and the subgraph's null takes the object with it;
//! - the same with a field that only the field set wants (but for members of keys: an object that fails to say which one
//!   it is, is none);
//! - the object is of a type that clients must not see;
//! - subgraphs that can serve the object know different types of it, so that one of them serves the client;
//! - the client has switched the object off, and what it wants of it would have to be wanted and not wanted at once.
//!
//! Then field sets go through an object of the gateway's own: a second fact of the same field, which the client has
//! not asked for, so that the request has it under another response key. All field sets of an object share it, since their
//! values stand in one representation. Where a null would take the entity itself with it, the client's field that is
//! computed goes too, and nothing is kept apart; nor is anything where different subgraphs are asked.
//!
//! Whether a field set can share is known once it is met, when others may have gone through the client's object already. Then
//! the tree is grown again with what was learned; that ends, since objects are only ever kept apart.

use ogive_base::{BitSet, FastMap, FastSet};
use ogive_federation::{FieldSetId, FieldSetItem, FieldSource};
use ogive_operation::{ArgValue, Clause, CondId, Conditions};
use ogive_schema::{FieldId, TypeId, Wrapping};

use super::Grower;
use crate::PlanError;
use crate::tree::{Fact, FactId, NodeId, PlaceId};

/// Which facts field sets go through.
#[derive(Debug, Default)]
pub(super) struct Choices {
    /// By the client's first fact of a field: how many facts with the same arguments were found to be unfit.
    unfit: FastMap<FactId, usize>,
    /// Those that a field set goes through.
    used: FastSet<FactId>,
    /// Field sets (and whether they are keys) that have been looked at.
    settled: FastSet<(FactId, FieldSetId, bool)>,
    /// Whether one that was used turned out to be unfit.
    is_stale: bool,
}

impl Choices {
    /// Whether the tree has to be grown again, now that more is known.
    pub(super) fn start_again(&mut self) -> bool {
        self.used.clear();
        self.settled.clear();
        std::mem::take(&mut self.is_stale)
    }
}

impl Grower<'_, '_> {
    /// The fact by which a field set goes through an object that the client selects, by the client's first fact for it.
    pub(super) fn through(
        &mut self,
        found: FactId,
        set: FieldSetId,
        is_key: bool,
    ) -> Result<FactId, PlanError> {
        // Many facts of one object may need the same.
        if !self.choices.settled.insert((found, set, is_key)) {
            return Ok(self.tree.own.get(&found).copied().unwrap_or(found));
        }
        let before = self.choices.unfit.get(&found).copied().unwrap_or(0);
        let fits = |fact: &FactId| !self.clashes(*fact, set, is_key);
        let rest = self.alike(found).skip(before);
        let (n, shared) = rest
            .enumerate()
            .find(|(_, fact)| fits(fact))
            .map_or((usize::MAX, None), |(n, fact)| (n, Some(fact)));
        let used = !self.choices.used.insert(found);
        if n > 0 && before != usize::MAX {
            self.choices.unfit.insert(found, before.saturating_add(n));
            self.choices.is_stale |= used;
        }
        let chosen = match (shared, self.tree.own.get(&found)) {
            (Some(shared), _) => shared,
            (None, Some(own)) if self.tree.facts[*own].client.is_none() => *own,
            (None, _) => {
                let Fact { node, field, .. } = self.tree.facts[found];
                let args = self.tree.facts[found].args.clone();
                self.fact(node, field, args, None)?
            }
        };
        if chosen != found {
            self.tree.own.insert(found, chosen);
        }
        Ok(chosen)
    }

    /// The client's facts with the same field and arguments of the same object, the given one first.
    fn alike(&self, found: FactId) -> impl Iterator<Item = FactId> {
        let first = &self.tree.facts[found];
        let facts = self.tree.nodes[first.node].facts.iter().copied();
        facts.filter(move |other| {
            let other = &self.tree.facts[*other];
            other.client.is_some() && other.field == first.field && other.has_args(&first.args)
        })
    }

    /// Whether a field set cannot go through the client's object.
    fn clashes(&self, fact: FactId, set: FieldSetId, is_key: bool) -> bool {
        let row = &self.tree.facts[fact];
        let Some(place) = row.child else { return false };
        let is_solid = row.ty.wrapping.is_solid();
        // What is switched off takes nothing with it.
        let is_certain = row.cond == Some(CondId::TRUE);
        !(is_solid && is_certain) && self.hides_types(place)
            || self.is_uneven(fact, place)
            || !is_solid && self.may_be_lost(fact, place, set, is_key)
            || !is_certain
                && row
                    .cond
                    .is_some_and(|cond| self.contradicts(cond, place, set))
    }

    /// Whether the client's fields of an object that it may have switched off cannot be told to be off as well, where a
    /// field set has the object asked for all the same: nothing is both wanted and not.
    fn contradicts(&self, cond: CondId, place: PlaceId, set: FieldSetId) -> bool {
        let conditions = &self.tree.op.conditions;
        let of_object = conditions.clauses(cond);
        let facts = self.tree.places[place].nodes.iter();
        let mut facts = facts.flat_map(|node| &self.tree.nodes[*node].facts);
        facts.any(|fact| {
            let fact = &self.tree.facts[*fact];
            let Some(own) = fact.cond.filter(|_| fact.client.is_some()) else {
                return false;
            };
            let own = conditions.clauses(own);
            let excludes = |a: &Clause, b: &Clause| {
                let mut literals = a.iter();
                literals.any(|literal| b.contains(&(literal.0, !literal.1)))
            };
            let never = of_object.iter().all(|a| own.iter().all(|b| excludes(a, b)));
            never
                || of_object.len() * own.len() > Conditions::CLAUSES_MAX
                || fact.child.is_some_and(|place| {
                    let below = self.below(fact, set);
                    below.is_some_and(|set| self.contradicts(cond, place, set))
                })
        })
    }

    /// What a field set wants of an object in one of the client's fields.
    fn below(&self, fact: &Fact, set: FieldSetId) -> Option<FieldSetId> {
        let schema = &self.tree.supergraph.schema;
        let name = schema.fields[fact.field].name;
        let mut items = self.tree.supergraph.graph.field_sets[set].items.iter();
        let is_it = |item: &&FieldSetItem| {
            let same = item.field.is_some_and(|f| schema.fields[f].name == name);
            same && has_args(fact, item)
        };
        items.find(is_it)?.selection
    }

    /// Whether objects of a place can be of types that clients must not see.
    fn hides_types(&self, place: PlaceId) -> bool {
        let here = &self.tree.places[place];
        let all = &self.tree.supergraph.schema.types[here.ty].possible;
        let hidden = all.difference(&here.possible);
        let mut hidden = hidden.iter();
        hidden.any(|ty| !self.look_types_known(place, TypeId(ty)).is_empty())
    }

    /// Whether subgraphs that may serve the objects of a place know different types of them: who serves the client, and
    /// with which types, is settled by what the client wants.
    fn is_uneven(&self, fact: FactId, place: PlaceId) -> bool {
        let Fact {
            field,
            ref provided,
            ..
        } = self.tree.facts[fact];
        let nodes = self.tree.places[place].nodes.iter();
        let mut nodes = nodes.map(|node| &self.tree.nodes[*node]);
        if self.tree.places[place].nodes.len() < 2 {
            return false;
        }
        let leading = self.askable(field, provided);
        leading.len() > 1
            && nodes.any(|node| node.unites.is_empty() && !leading.is_subset(&node.types_known))
    }

    /// Whether a null for a field of the client's takes away what a field set needs, or the other way round.
    fn may_be_lost(&self, fact: FactId, place: PlaceId, set: FieldSetId, is_key: bool) -> bool {
        let graph = &self.tree.supergraph.graph;
        let object = self.askable(self.tree.facts[fact].field, &self.tree.facts[fact].provided);
        self.tree.places[place].nodes.iter().any(|node| {
            let ty = self.tree.nodes[*node].ty;
            let items = graph.field_sets[set].items.iter();
            let needed = items.filter(|i| i.types.contains(ty.0) && i.field.is_some());
            self.loses(*node, &object, &needed.collect::<Vec<_>>(), is_key)
        })
    }

    fn loses(&self, node: NodeId, object: &BitSet, needed: &[&FieldSetItem], is_key: bool) -> bool {
        let schema = &self.tree.supergraph.schema;
        let ty = self.tree.nodes[node].ty;
        let concrete = |item: &FieldSetItem| {
            let name = schema.fields[item.field?].name;
            schema.fields_by_name.get(&(ty, name)).copied()
        };
        let facts = self.tree.nodes[node].facts.iter();
        let clients: Vec<(FactId, &Fact)> = facts
            .map(|id| (*id, &self.tree.facts[*id]))
            .filter(|(_, fact)| fact.client.is_some())
            .collect();
        let is_same = |fact: &Fact, item: &FieldSetItem| {
            concrete(item) == Some(fact.field) && has_args(fact, item)
        };
        // Whoever may be asked for the object, or for what is needed of it.
        let mut needing = object.clone();
        for item in needed {
            if let Some(field) = concrete(item) {
                needing.union_with(&self.askable_at(node, field));
            }
        }
        let mut asking = object.clone();
        for (id, fact) in &clients {
            let askable = self.askable(fact.field, &fact.provided);
            let is_lost = match needed.iter().find(|item| is_same(fact, item)) {
                // What both want fails both.
                Some(item) => match (fact.child, item.selection) {
                    (Some(place), Some(set)) => {
                        self.takes_its_object(fact.field, &askable)
                            && (self.hides_types(place)
                                || self.may_be_lost(*id, place, set, is_key))
                    }
                    _ => false,
                },
                None => self.is_non_null(fact.field, &askable.intersection(&needing)),
            };
            if is_lost {
                return true;
            }
            asking.union_with(&askable);
        }
        // Keys do not fail.
        !is_key
            && needed.iter().any(|item| {
                let Some(field) = concrete(item) else {
                    return false;
                };
                let wanted = clients.iter().any(|(_, fact)| is_same(fact, item));
                let askable = || self.askable_at(node, field).intersection(&asking);
                !wanted && !self.is_in_key(ty, field) && self.is_non_null(field, &askable())
            })
    }

    /// Subgraphs that may be asked for a field.
    fn askable(&self, field: FieldId, provided: &BitSet) -> BitSet {
        let row = &self.tree.supergraph.graph.fields[field];
        let labels = &self.options.labels;
        let mut out = row.resolvers_with(labels);
        out.union_with(provided);
        let computed = |s: &&FieldSource| s.requires.is_some() || !s.context_args.is_empty();
        for source in row.sources.iter().filter(computed) {
            if row.is_active(source, labels) {
                out.insert(source.subgraph.0);
            }
        }
        out
    }
    fn askable_at(&self, node: NodeId, field: FieldId) -> BitSet {
        let node = &self.tree.nodes[node];
        let provided = self.provided(node.place, node.ty, field);
        let provided = provided.into_iter().map(|(subgraph, _)| subgraph.0);
        self.askable(field, &provided.collect())
    }

    /// Whether one of these subgraphs nulls the object if the field fails.
    fn is_non_null(&self, field: FieldId, subgraphs: &BitSet) -> bool {
        self.any_type(field, subgraphs, Wrapping::is_non_null)
    }
    /// Whether one of these subgraphs nulls the object if an object in the field does not come.
    fn takes_its_object(&self, field: FieldId, subgraphs: &BitSet) -> bool {
        self.any_type(field, subgraphs, Wrapping::is_solid)
    }
    fn any_type(&self, field: FieldId, subgraphs: &BitSet, is: impl Fn(Wrapping) -> bool) -> bool {
        let merged = self.tree.supergraph.schema.fields[field].ty.wrapping;
        let sources = &self.tree.supergraph.graph.fields[field].sources;
        let asked = || sources.iter().filter(|s| subgraphs.contains(s.subgraph.0));
        // A subgraph may promise more than the merged schema, never less.
        !subgraphs.is_empty() && is(merged)
            || asked().any(|s| s.ty.is_some_and(|ty| is(ty.wrapping)))
    }

    /// Whether a field is a member of a key of its type.
    fn is_in_key(&self, ty: TypeId, field: FieldId) -> bool {
        let graph = &self.tree.supergraph.graph;
        let schema = &self.tree.supergraph.schema;
        let name = schema.fields[field].name;
        let keys = graph.types[ty].sources.iter().flat_map(|s| &s.keys);
        let mut items = keys.flat_map(|key| &graph.field_sets[key.fields].items);
        items.any(|item| item.field.is_some_and(|f| schema.fields[f].name == name))
    }
}

fn has_args(fact: &Fact, item: &FieldSetItem) -> bool {
    fact.args.len() == item.args.len()
        && item.args.iter().all(|(name, value)| {
            let mut args = fact.args.iter();
            args.any(|a| a.name == *name && matches!(&a.value, ArgValue::Const(c) if c == value))
        })
}
