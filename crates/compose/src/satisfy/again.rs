//! Checking satisfiability again after a few types changed.
//!
//! Every state of the last walk was found resolvable. A state is resolvable still if nothing about its type changed
//! and its children are the same; so only the states of touched types are expanded again, with all that comes of it.
//! A state that cannot be reached any more is expanded all the same: that can only find fault where there is none,
//! and whoever is told of a fault walks everything anew.

use ogive_base::FastMap;

use super::{
    Closure, Contexts, Hidden, MTypeId, Merged, Runtime, State, Subgraph, Walk,
    graph::{Graph, NodeId, Parts, Want},
    hidden,
};

/// How much larger than after a full walk the kept states may grow.
const GROWTH_MAX: usize = 2;

/// A finished check of a graph without faults, to start the next one from.
#[derive(Clone, Debug)]
pub struct Kept {
    pub(super) parts: Parts,
    pub(super) closure: Closure,
    pub(super) states: Vec<State>,
    pub(super) visited: FastMap<MTypeId, Vec<u32>>,
    pub(super) hidden: Hidden,
}

impl Kept {
    /// Checks again after `changed` subgraphs were replaced by others of the same shape; `touched` types, sorted, are
    /// those they have a part in. `None` if everything must be walked anew, be it to say what is wrong.
    pub(crate) fn again(
        self,
        merged: &Merged,
        subs: &[Subgraph],
        changed: &[u32],
        touched: &[MTypeId],
        states_max: usize,
    ) -> Option<Kept> {
        let hidden = hidden(merged);
        if hidden.types != self.hidden.types {
            return None;
        }
        let contexts = Contexts::default();
        let mut graph = Graph::again(self.parts, merged, subs, changed)?;
        let mut closure = self.closure;
        let mut doubtful: Vec<MTypeId> = touched.to_vec();
        doubtful.extend(far_reaching(&graph));
        doubtful.sort_unstable();
        doubtful.dedup();
        let is_doubtful = |ty: &MTypeId| doubtful.binary_search(ty).is_ok();
        let nodes: Vec<NodeId> = graph
            .nodes
            .iter()
            .filter(|(_, n)| is_doubtful(&n.merged))
            .map(|(id, _)| id)
            .collect();
        if !closure.prove_again(&mut graph, &nodes) {
            return None;
        }
        let first_new = self.states.len();
        let mut walk = Walk {
            graph: &mut graph,
            closure: &mut closure,
            hidden: &hidden,
            contexts: &contexts,
            states: self.states,
            visited: self.visited,
            failures: Vec::new(),
            checks: true,
            exact: false,
            states_max: states_max.min(first_new.saturating_mul(GROWTH_MAX) + 1_024),
            trials: 0,
        };
        let mut runtime = Runtime::new();
        for at in 0..first_new {
            if is_doubtful(&walk.states[at].ty) {
                walk.expand(at, &mut runtime);
            }
        }
        walk.expand_from(first_new, &mut runtime);
        let fine = walk.failures.is_empty()
            && runtime.is_empty()
            && walk.trials == 0
            && walk.states.len() < walk.states_max;
        let (states, visited) = (walk.states, walk.visited);
        fine.then(|| Kept {
            parts: graph.into_parts(),
            closure,
            states,
            visited,
            hidden,
        })
    }
}

/// Types of which facts may depend on other types: keys and requirements that select below a field, or on an
/// abstract type.
fn far_reaching(graph: &Graph<'_>) -> Vec<MTypeId> {
    let is_deep = |wants: &[Want]| {
        wants.iter().any(|w| match w {
            Want::Field(_, inner) => !inner.is_empty(),
            Want::On(..) => true,
        })
    };
    let mut out = Vec::new();
    for (ty, groups) in graph.groups_of.iter().enumerate() {
        let id = MTypeId(ty as u32);
        let is_abstract = graph.merged.types[id].kind.is_abstract();
        if groups
            .iter()
            .any(|g| is_abstract || is_deep(&graph.groups[*g as usize].wants))
        {
            out.push(id);
        }
    }
    for ((sub, field), wants) in &graph.requires {
        let parent = graph.subs[*sub as usize].schema.fields[*field].parent;
        let Some(id) = graph.merged.of(*sub, parent) else {
            continue;
        };
        if is_deep(wants) || graph.merged.types[id].kind.is_abstract() {
            out.push(id);
        }
    }
    out
}
