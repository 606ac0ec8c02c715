//! What could help: keys by which nodes can be entered, and what `@requires`, contexts and keys are made of.

use std::rc::Rc;

use ogive_base::BitSet;
use ogive_federation::{FieldSetId, FieldSource, QueryGraph, SubgraphId};
use ogive_operation::{Arg, ArgValue};
use ogive_schema::Schema;

use super::Grower;
use crate::{
    PlanError,
    tree::{Context, FactId, KeyAlternative, NodeId, PlaceId, Requirement, Tree},
};

impl<'a> Grower<'a, '_> {
    /// Whether a place adds no further places for keys and `@requires`: types may refer to each other in circles.
    pub(super) fn is_too_deep(&mut self, place: PlaceId) -> bool {
        let is_too_deep = self.tree.places[place].internal_depth >= self.depth;
        self.tree.is_cut |= is_too_deep;
        is_too_deep
    }

    /// Whether a field set goes through objects.
    pub(super) fn is_composite(&self, set: FieldSetId) -> bool {
        let items = &self.tree.supergraph.graph.field_sets[set].items;
        items.iter().any(|item| item.selection.is_some())
    }

    /// Adds what could help: keys of the node, and `@requires` of its facts.
    pub(super) fn helper_facts(&mut self, node: NodeId) -> Result<(), PlanError> {
        let graph: &'a QueryGraph = &self.tree.supergraph.graph;
        let ty = self.tree.nodes[node].ty;
        if !self.tree.nodes[node].unites.is_empty() {
            self.keys_of_united(node);
            return Ok(());
        }
        // Requirements first: they may add facts to this node, which have requirements themselves.
        let mut next = 0;
        while next < self.tree.nodes[node].facts.len() {
            let fact = self.tree.nodes[node].facts[next];
            self.requirements(node, fact)?;
            next += 1;
        }
        if node == Tree::ROOT {
            return Ok(());
        }
        if Some(ty) == self.tree.supergraph.schema.roots[0] {
            self.reentries(node);
            return Ok(());
        }
        let sources = &graph.types[ty].sources;
        self.tree.nodes[node].keys.reserve(sources.len());
        // Most keys are those of the subgraph before.
        let mut last: Option<(FieldSetId, Rc<[FactId]>)> = None;
        for source in sources {
            for key in source.keys.iter().filter(|k| k.resolvable) {
                if let Some((set, facts)) = &last
                    && graph.field_sets[*set] == graph.field_sets[key.fields]
                {
                    let facts = Rc::clone(facts);
                    self.tree.nodes[node].keys.push(KeyAlternative {
                        subgraph: source.subgraph,
                        by_interface: None,
                        fields: Some(key.fields),
                        facts,
                    });
                    continue;
                }
                let place = self.tree.nodes[node].place;
                if self.is_composite(key.fields) && self.is_too_deep(place) {
                    continue;
                }
                let first = self.tree.facts.len();
                let mut facts = self.field_set(node, key.fields, true)?;
                // The members of other keys come from a subgraph that knows the type; a name comes from nowhere.
                if facts.is_empty() && self.tree.nodes[node].told_by.is_none() {
                    let (telling, all) = self.telling(node);
                    if !all {
                        for fact in self.tokens(node, &telling)? {
                            self.tree.nodes[node].keys.push(KeyAlternative {
                                subgraph: source.subgraph,
                                by_interface: None,
                                fields: Some(key.fields),
                                facts: Rc::new([fact]),
                            });
                        }
                        continue;
                    }
                }
                facts.extend(self.tree.nodes[node].told_by);
                let facts: Rc<[FactId]> = facts.into();
                last = Some((key.fields, Rc::clone(&facts)));
                self.tree.nodes[node].keys.push(KeyAlternative {
                    subgraph: source.subgraph,
                    by_interface: None,
                    fields: Some(key.fields),
                    facts,
                });
                self.requirements_since(first)?;
            }
        }
        self.interface_keys(node)
    }

    /// Members of keys and contexts are rarely computed, but may be: the facts from `first` on, of nodes that will not be
    /// visited again.
    pub(super) fn requirements_since(&mut self, first: usize) -> Result<(), PlanError> {
        let mut at = first;
        while at < self.tree.facts.len() {
            let fact = FactId(at as u32);
            let node = self.tree.facts[fact].node;
            if node <= self.visiting {
                self.requirements(node, fact)?;
            }
            at += 1;
        }
        Ok(())
    }

    /// A query root in the middle of the response: whoever resolves something of it can be asked (planner rule 54).
    pub(super) fn reentries(&mut self, node: NodeId) {
        let mut subgraphs = BitSet::new();
        for fact in &self.tree.nodes[node].facts {
            subgraphs.union_with(&self.tree.facts[*fact].plain);
        }
        let keys = subgraphs.iter().map(|subgraph| KeyAlternative {
            subgraph: SubgraphId(subgraph),
            by_interface: None,
            fields: None,
            facts: Rc::new([]),
        });
        self.tree.nodes[node].keys = keys.collect();
    }

    /// Notes what the subgraphs with `@requires` on a fact need; a subgraph that an override label switches off, or has
    /// taken the field from, resolves nothing.
    pub(super) fn requirements(&mut self, node: NodeId, fact: FactId) -> Result<(), PlanError> {
        let graph: &'a QueryGraph = &self.tree.supergraph.graph;
        if self.tree.facts[fact].is_type || !self.is_noted.insert(fact.0) {
            return Ok(());
        }
        let row = &graph.fields[self.tree.facts[fact].field];
        for source in &row.sources {
            let is_plain = source.requires.is_none() && source.context_args.is_empty();
            if is_plain || !row.is_active(source, &self.options.labels) {
                continue;
            }
            let place = self.tree.nodes[node].place;
            if source.requires.is_some_and(|set| self.is_composite(set)) && self.is_too_deep(place)
            {
                continue;
            }
            let mut facts = match source.requires {
                Some(fields) => self.field_set(node, fields, false)?,
                None => Vec::new(),
            };
            let Some(contexts) = self.contexts(node, source, &mut facts)? else {
                continue;
            };
            if self.needs_told_type(fact, source.subgraph) {
                facts.extend(self.tree.nodes[node].told_by);
            }
            let requirement = Requirement {
                subgraph: source.subgraph,
                fields: source.requires,
                facts,
                contexts,
            };
            self.tree.facts[fact].requires.push(requirement);
        }
        Ok(())
    }

    /// The objects above a node that fill a field's arguments; `None` if one of them is not there.
    pub(super) fn contexts(
        &mut self,
        node: NodeId,
        source: &FieldSource,
        facts: &mut Vec<FactId>,
    ) -> Result<Option<Vec<Context>>, PlanError> {
        let mut out = Vec::new();
        // What an interface object adds is asked for all types together, which have no one object above.
        if !source.context_args.is_empty() && source.via_interface_object.is_some() {
            return Ok(None);
        }
        for (arg, argument) in source.context_args.iter().enumerate() {
            let sets = |node: NodeId| {
                let ty = self.tree.nodes[node].ty;
                let types = &self.tree.schema().types;
                let mut selections = argument.selections.iter();
                selections.find(|(setter, _)| types[*setter].possible.contains(ty.0))
            };
            let mut above = self.tree.parent(self.tree.nodes[node].place);
            let found = loop {
                let Some(at) = above else { return Ok(None) };
                if let Some((_, fields)) = sets(at) {
                    break (at, *fields);
                }
                above = self.tree.parent(self.tree.nodes[at].place);
            };
            let (node, fields) = found;
            let first = self.tree.facts.len();
            facts.extend(self.field_set(node, fields, false)?);
            self.requirements_since(first)?;
            out.push(Context { arg, node, fields });
        }
        Ok(Some(out))
    }

    /// Subgraphs that can lead to this type from the parent, and whether all that lead to the place do.
    pub(super) fn telling(&self, node: NodeId) -> (BitSet, bool) {
        let here = &self.tree.nodes[node];
        let Some(edge) = self.tree.places[here.place].edge else {
            return (BitSet::new(), true);
        };
        let fact = &self.tree.facts[edge];
        let parent = &self.tree.nodes[fact.node];
        let holds = |s: u32| {
            parent.types_known.contains(s) || parent.keys.iter().any(|k| k.subgraph.0 == s)
        };
        let leads = |s: u32| {
            fact.plain.contains(s)
                || fact.provided.contains(s)
                || fact.requires.iter().any(|r| r.subgraph.0 == s)
        };
        let leading: BitSet = (0..self.tree.supergraph.subgraphs.len() as u32)
            .filter(|s| holds(*s) && leads(*s))
            .collect();
        let telling = leading.intersection(&here.types_known);
        let all = !telling.is_empty() && telling == leading;
        (telling, all)
    }

    /// For each of these subgraphs a value whose arrival shows that the object is of the node's type.
    pub(super) fn tokens(
        &mut self,
        node: NodeId,
        subgraphs: &BitSet,
    ) -> Result<Vec<FactId>, PlanError> {
        let graph: &'a QueryGraph = &self.tree.supergraph.graph;
        let schema: &'a Schema = &self.tree.supergraph.schema;
        let fields = &schema.types[self.tree.nodes[node].ty].fields;
        let place = self.tree.nodes[node].place;
        let mut out = Vec::new();
        // Subgraphs that can name the type and nothing else.
        let mut nameless = BitSet::new();
        for subgraph in subgraphs.iter() {
            let token = fields
                .iter()
                .copied()
                .filter(|f| {
                    let args = &schema.fields[*f].args;
                    graph.fields[*f].resolvers.contains(subgraph)
                        && !args.iter().any(|a| schema.inputs[*a].is_required())
                })
                .min_by_key(|f| schema.types[schema.fields[*f].ty.id].kind.is_composite());
            let Some(token) = token else {
                nameless.insert(subgraph);
                continue;
            };
            let fact = match self.find(node, token, &[]) {
                Some(fact) => fact,
                // An object may hold another of its type, and so on.
                None if schema.types[schema.fields[token].ty.id].kind.is_composite()
                    && self.is_too_deep(place) =>
                {
                    continue;
                }
                None => self.fact(node, token, Vec::new(), None)?,
            };
            if !out.contains(&fact) {
                out.push(fact);
            }
        }
        let edge = self.tree.places[place].edge;
        if let (Some(edge), false) = (edge, nameless.is_empty()) {
            let field = self.tree.facts[edge].field;
            out.push(self.type_fact(node, field, nameless, None));
        }
        Ok(out)
    }

    /// All facts a field set stands for at a node, made where missing. Nesting is that of schema text, not of requests.
    pub(super) fn field_set(
        &mut self,
        node: NodeId,
        set: FieldSetId,
        is_key: bool,
    ) -> Result<Vec<FactId>, PlanError> {
        let graph: &'a QueryGraph = &self.tree.supergraph.graph;
        let schema: &'a Schema = &self.tree.supergraph.schema;
        let ty = self.tree.nodes[node].ty;
        let mut out = Vec::new();
        for item in &graph.field_sets[set].items {
            let Some(row) = item.field else { continue };
            if !item.types.contains(ty.0) {
                continue;
            }
            let Some(row) = schema
                .fields_by_name
                .get(&(ty, schema.fields[row].name))
                .copied()
            else {
                continue;
            };
            let fact = match (self.find(node, row, &item.args), item.selection) {
                (Some(fact), Some(set)) if self.tree.facts[fact].client.is_some() => {
                    self.through(fact, set, is_key)?
                }
                (Some(fact), _) => fact,
                (None, _) => {
                    let args = item
                        .args
                        .iter()
                        .map(|(name, value)| Arg {
                            input: schema
                                .arg_by_name(&schema.fields[row].args, name)
                                .unwrap_or(ogive_schema::InputId(u32::MAX)),
                            name: name.clone(),
                            value: ArgValue::Const(value.clone()),
                        })
                        .collect();
                    self.fact(node, row, args, None)?
                }
            };
            if !out.contains(&fact) {
                out.push(fact);
            }
            if let (Some(sub), Some(child)) = (item.selection, self.tree.facts[fact].child) {
                for child_node in self.tree.places[child].nodes.clone() {
                    if !self.tree.nodes[child_node].unites.is_empty() {
                        continue;
                    }
                    for f in self.field_set(child_node, sub, is_key)? {
                        if !out.contains(&f) {
                            out.push(f);
                        }
                    }
                }
            }
        }
        Ok(out)
    }
}
