//! Arguments that are filled from objects above (`@fromContext`, planner rule 29).
//!
//! Each becomes a variable of the request, named after the argument's coordinate. Which object fills it, and from which
//! slot, is part of the look-up; records with different values are looked up by different requests.

use ogive_federation::{FieldSetId, SubgraphId};
use ogive_operation::CondId;
use ogive_plan::{ContextValue, Gate, Lookup, Representation};
use ogive_schema::FieldId;

use crate::{
    assign::VisitId,
    emit::{
        Emitter,
        assemble::{any_of, gate},
        output::layout_id,
        plan_cond,
    },
    tree::{Fact, FactId, NodeId},
};

impl Emitter<'_> {
    /// The variable of an argument.
    fn context_variable(&self, field: FieldId, arg: &str) -> String {
        let coordinate = self.tree.schema().field_coordinate(field);
        self.free_name(format!("_{}_{arg}", coordinate.replace('.', "_")))
    }

    /// Adds the arguments a subgraph wants besides the client's, which may have been written already.
    pub(super) fn context_arguments(&self, fact: &Fact, subgraph: SubgraphId, text: &mut String) {
        let source = self.tree.graph().field_source(fact.field, subgraph);
        let mut is_first = !text.ends_with(')');
        if !is_first {
            text.pop();
        }
        for arg in source.iter().flat_map(|source| &source.context_args) {
            text.push(if is_first { '(' } else { ',' });
            is_first = false;
            text.push_str(&arg.name);
            text.push_str(":$");
            text.push_str(&self.context_variable(fact.field, &arg.name));
        }
        text.push(')');
    }

    /// Facts in groups, each with its representations, so that an object without a value from above that some facts need is
    /// still asked for the others.
    pub(super) fn split_by_contexts(
        &mut self,
        id: VisitId,
        facts: Vec<FactId>,
        representations: Vec<Representation>,
    ) -> Vec<(Vec<FactId>, Vec<Representation>)> {
        let tree = self.tree;
        if tree.graph().contexts.is_empty() {
            return vec![(facts, representations)];
        }
        let subgraph = SubgraphId(self.schedule.visits[id].subgraph);
        let needed = |fact: FactId| {
            let fact = &tree.facts[fact];
            let source = tree.graph().field_source(fact.field, subgraph);
            let requires = fact.requires.iter().filter(|r| r.subgraph == subgraph);
            let contexts = requires.flat_map(|r| &r.contexts).filter(|context| {
                let arg = source.and_then(|source| source.context_args.get(context.arg));
                arg.is_some_and(|arg| arg.ty.ends_with('!'))
            });
            let values = contexts.map(|context| (context.node, context.fields));
            values.collect::<Vec<_>>()
        };
        let mut needs: Vec<Vec<(NodeId, FieldSetId)>> = Vec::new();
        let mut groups: Vec<Vec<FactId>> = Vec::new();
        for fact in facts {
            let needed = needed(fact);
            match needs.iter().position(|values| *values == needed) {
                Some(at) => groups[at].push(fact),
                None => {
                    needs.push(needed);
                    groups.push(vec![fact]);
                }
            }
        }
        if groups.len() == 1 {
            return groups
                .into_iter()
                .map(|group| (group, representations.clone()))
                .collect();
        }
        let groups = groups.into_iter().map(|group| {
            let representations = self.representations(id, &group);
            (group, representations)
        });
        groups.collect()
    }

    /// Where the variables of an entry that brings these facts get their values.
    pub(super) fn contexts(&mut self, id: VisitId, facts: &[FactId]) -> Vec<ContextValue> {
        let tree = self.tree;
        let subgraph = SubgraphId(self.schedule.visits[id].subgraph);
        let mut out: Vec<(ContextValue, CondId)> = Vec::new();
        for fact_id in facts {
            let fact = &tree.facts[*fact_id];
            let requires = fact.requires.iter().filter(|r| r.subgraph == subgraph);
            for context in requires.flat_map(|r| &r.contexts) {
                let source = tree.graph().field_source(fact.field, subgraph);
                let Some(arg) = source.and_then(|s| s.context_args.get(context.arg)) else {
                    continue;
                };
                let cond = self.conditional.of_fact(*fact_id);
                let variable = self.context_variable(fact.field, &arg.name);
                // One field with several sets of other arguments.
                if let Some((_, known)) = out.iter_mut().find(|(c, _)| *c.variable == *variable) {
                    *known = self.conditional.or(*known, cond);
                    continue;
                }
                let mut members = Vec::new();
                self.members(context.node, context.fields, false, &mut members);
                self.context_types
                    .insert(variable.as_str().into(), arg.ty.clone());
                let value = ContextValue {
                    variable: variable.into(),
                    layout: layout_id(tree.nodes[context.node].place),
                    members,
                    required: arg.ty.ends_with('!'),
                    cond: plan_cond(CondId::TRUE),
                };
                out.push((value, cond));
            }
        }
        let settled = out.into_iter().map(|(value, cond)| ContextValue {
            cond: plan_cond(cond),
            ..value
        });
        settled.collect()
    }

    /// The definitions of the variables of all look-ups, with their gates.
    pub(super) fn context_headers(&self, lookups: &[Lookup]) -> Vec<(String, Vec<Gate>)> {
        let mut out: Vec<(&str, Vec<Gate>)> = Vec::new();
        for (at, lookup) in lookups.iter().enumerate() {
            for context in lookup.targets.iter().flat_map(|target| &target.contexts) {
                let gate = gate(Some(at as u16), CondId(context.cond.0));
                match out.iter_mut().find(|(v, _)| *v == &*context.variable) {
                    Some((_, gates)) => gates.extend(gate),
                    None => out.push((&context.variable, gate.into_iter().collect())),
                }
            }
        }
        out.into_iter()
            .map(|(variable, gates)| {
                let ty = self.context_types.get(variable).map_or("", |ty| &**ty);
                (format!("${variable}:{ty} "), any_of(gates))
            })
            .collect()
    }
}
