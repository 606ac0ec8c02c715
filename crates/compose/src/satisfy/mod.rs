//! Satisfiability: whether every query of the supergraph can be resolved by its subgraphs.
//!
//! Walks the API schema with *sets* of nodes (see [`graph`]) instead of paths: a state is a merged type, the nodes
//! one may be at, closed under key hops, and the contexts set on the way. A state is skipped if one with fewer nodes
//! was visited: what can be resolved from fewer can be resolved from more. Breadth first, so the first query that
//! fails is a shortest one. Progressive overrides are explored with their labels off and on.

mod again;
mod closure;
mod explain;
pub mod graph;

use std::{ops::Range, rc::Rc};

use ogive_base::{FastMap, FastSet};
use ogive_schema::{FieldId, OperationKind, TypeKind};

use crate::{
    codes::{self, hint},
    merge::{MFieldId, MTypeId, Merged},
    report::{Place, Report},
    spec::Word,
    subgraph::Subgraph,
};
pub use again::Kept;
use closure::Closure;
use graph::{Graph, NodeId, Want, wants};

/// Most states of one check; a graph that needs more is refused.
pub const STATES_MAX: usize = 2_000_000;
/// Most states of the second walk, which finds every failure of a graph that has some.
pub const RECOUNT_STATES_MAX: usize = 200_000;
/// Most labels of progressive overrides whose combinations are all explored; beyond, each label is flipped alone.
pub const LABELS_MAX: usize = 4;

/// One step of a query.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Field(MFieldId),
    On(MTypeId),
}

#[derive(Clone, Debug)]
struct State {
    ty: MTypeId,
    nodes: Vec<NodeId>,
    contexts: Vec<u32>,
    from: Option<(u32, Step)>,
}

/// A field that cannot be resolved from some state.
struct Failure {
    field: MFieldId,
    state: usize,
    count: usize,
}

struct Walk<'a, 'g> {
    graph: &'g mut Graph<'a>,
    closure: &'g mut Closure,
    hidden: &'g Hidden,
    contexts: &'g Contexts,
    states: Vec<State>,
    visited: FastMap<MTypeId, Vec<u32>>,
    failures: Vec<Failure>,
    /// Report runtime types; off in trial walks.
    checks: bool,
    /// Skip only states that were visited as they are.
    exact: bool,
    /// Most states.
    states_max: usize,
    /// Shared mutations tried subgraph by subgraph.
    trials: usize,
}

/// What clients cannot see.
#[derive(Clone, Default, Debug)]
struct Hidden {
    types: FastSet<MTypeId>,
    fields: FastSet<MFieldId>,
}

/// Arguments that are filled from contexts, by id, and the types that fill them.
#[derive(Default)]
struct Contexts {
    /// By subgraph and its field: ids of the field's first argument from a context, and of the one after the last.
    ids: FastMap<(u32, FieldId), Range<u32>>,
    set_by: FastMap<MTypeId, Vec<Setter>>,
}

/// What an argument takes from a type.
struct Setter {
    argument: u32,
    wants: Rc<[Want]>,
}

/// Checks the merged graph; errors and hints go to the report.
///
/// What is returned makes it cheaper to check again after small changes, and is nothing where it could not.
pub fn check(
    merged: &Merged,
    subs: &[Subgraph],
    states_max: usize,
    report: &mut Report,
) -> Option<Kept> {
    let hidden = hidden(merged);
    let contexts = contexts(merged, subs);
    let mut seen: FastSet<(MFieldId, &'static str)> = FastSet::default();
    let assignments = assignments(subs);
    let only_one = assignments.len() == 1;
    for labels in assignments {
        let mut graph = Graph::new(merged, subs, labels);
        let mut closure = Closure::default();
        closure.settle(&mut graph);
        let mut start = |exact: bool, states_max: usize| {
            let mut walk = Walk {
                graph: &mut graph,
                closure: &mut closure,
                hidden: &hidden,
                contexts: &contexts,
                states: Vec::new(),
                visited: FastMap::default(),
                failures: Vec::new(),
                checks: true,
                exact,
                states_max,
                trials: 0,
            };
            let runtime = walk.run();
            let simple = walk.trials == 0 && runtime.is_empty();
            (walk.states, walk.failures, runtime, walk.visited, simple)
        };
        let (mut states, mut failures, mut runtime, visited, simple) = start(false, states_max);
        let exceeded = states.len() >= states_max;
        if !failures.is_empty() {
            // What a failing state covers was skipped, and may fail further on: look again at everything.
            let again = start(true, RECOUNT_STATES_MAX);
            if again.0.len() < RECOUNT_STATES_MAX {
                (states, failures, runtime, ..) = again;
            }
        }
        let explainer = explain::Explainer {
            states: &states,
            graph: &graph,
            closure: &closure,
        };
        let fresh: Vec<&Failure> = failures
            .iter()
            .filter(|f| seen.insert((f.field, codes::SATISFIABILITY_ERROR)))
            .collect();
        explainer.report(&fresh, report);
        for (field, mismatch) in runtime {
            if seen.insert((
                field,
                hint::INCONSISTENT_RUNTIME_TYPES_FOR_SHAREABLE_RETURN.code,
            )) {
                runtime_types(merged, subs, field, mismatch, report);
            }
        }
        if exceeded {
            let about = "Query";
            report.error(
                codes::MAX_VALIDATION_SUBGRAPH_PATHS_EXCEEDED,
                about,
                format!("checking this graph needs more than {states_max} states"),
                &first_place(subs),
            );
        }
        if report.has_errors() {
            return None;
        }
        if only_one && simple && contexts.ids.is_empty() {
            return Some(Kept {
                parts: graph.into_parts(),
                closure,
                states,
                visited,
                hidden,
            });
        }
    }
    None
}

fn first_place(subs: &[Subgraph]) -> Vec<(Place, String)> {
    subs.first()
        .map(|s| (s.place(ogive_base::Span::new(0, 0)), String::new()))
        .into_iter()
        .collect()
}

/// Which labels to switch on, run by run.
fn assignments(subs: &[Subgraph]) -> Vec<Vec<Box<str>>> {
    let mut labels: Vec<Box<str>> = subs
        .iter()
        .flat_map(|s| s.fields.as_slice())
        .filter_map(|f| f.override_label.clone())
        .collect();
    labels.sort();
    labels.dedup();
    if labels.len() <= LABELS_MAX {
        return (0..1u32 << labels.len())
            .map(|bits| {
                labels
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| bits >> i & 1 == 1)
                    .map(|(_, l)| l.clone())
                    .collect()
            })
            .collect();
    }
    let mut out = vec![Vec::new(), labels.clone()];
    for label in &labels {
        out.push(vec![label.clone()]);
        out.push(labels.iter().filter(|l| *l != label).cloned().collect());
    }
    out
}

fn hidden(merged: &Merged) -> Hidden {
    let marked =
        |list: &[crate::merge::Applied]| list.iter().any(|a| a.word == Some(Word::Inaccessible));
    Hidden {
        types: merged
            .types
            .iter()
            .filter(|(_, t)| marked(&t.directives))
            .map(|(id, _)| id)
            .collect(),
        fields: merged
            .fields
            .iter()
            .filter(|(_, f)| marked(&f.directives))
            .map(|(id, _)| id)
            .collect(),
    }
}

fn contexts(merged: &Merged, subs: &[Subgraph]) -> Contexts {
    let mut out = Contexts::default();
    let mut next = 0;
    for (s, sub) in subs.iter().enumerate() {
        for (field, info) in sub.fields.iter() {
            if info.context_args.is_empty() {
                continue;
            }
            let first = next;
            for arg in &info.context_args {
                let argument = next;
                next += 1;
                for (setter, items) in sub.selected(arg) {
                    let Some(ty) = merged.of(s as u32, setter) else {
                        continue;
                    };
                    let wants: Rc<[Want]> = wants(merged, subs, s as u32, &items).into();
                    let objects = merged.types[ty].possible.iter().map(MTypeId);
                    for ty in objects.filter(|object| *object != ty).chain([ty]) {
                        let wants = Rc::clone(&wants);
                        let setters = out.set_by.entry(ty).or_default();
                        setters.push(Setter { argument, wants });
                    }
                }
            }
            out.ids.insert((s as u32, field), first..next);
        }
    }
    out
}

/// Fields with different runtime types, and whether they have none in common.
type Runtime = Vec<(MFieldId, bool)>;

impl Walk<'_, '_> {
    fn run(&mut self) -> Runtime {
        let merged = self.graph.merged;
        for kind in [
            OperationKind::Query,
            OperationKind::Mutation,
            OperationKind::Subscription,
        ] {
            let Some(root) = merged.root(kind) else {
                continue;
            };
            let nodes: Vec<NodeId> = merged.types[root]
                .sources
                .iter()
                .map(|(s, t)| self.graph.node(*s, *t, 0))
                .collect();
            self.closure.refresh(self.graph);
            let nodes = self.closure.close(self.graph, &nodes);
            self.enter(root, nodes, Vec::new(), None);
        }
        let mut runtime = Runtime::new();
        self.expand_from(0, &mut runtime);
        runtime
    }

    /// Expands all states from one on, and those that come of it.
    fn expand_from(&mut self, mut at: usize, runtime: &mut Runtime) {
        while at < self.states.len() && self.states.len() < self.states_max {
            self.expand(at, runtime);
            at += 1;
        }
    }

    fn enter(
        &mut self,
        ty: MTypeId,
        nodes: Vec<NodeId>,
        contexts: Vec<u32>,
        from: Option<(u32, Step)>,
    ) {
        let visited = self.visited.entry(ty).or_default();
        let covered = visited.iter().any(|v| {
            let known = &self.states[*v as usize];
            if self.exact {
                return known.nodes == nodes && known.contexts == contexts;
            }
            known.nodes.len() <= nodes.len()
                && is_subset(&known.nodes, &nodes)
                && is_subset(&known.contexts, &contexts)
        });
        if covered {
            return;
        }
        visited.push(self.states.len() as u32);
        self.states.push(State {
            ty,
            nodes,
            contexts,
            from,
        });
    }

    fn expand(&mut self, at: usize, runtime: &mut Runtime) {
        let merged = self.graph.merged;
        let ty = self.states[at].ty;
        let row = &merged.types[ty];
        let nodes = self.states[at].nodes.clone();
        let contexts = self.contexts_below(at);
        if row.kind == TypeKind::Object {
            let mutation = merged.root(OperationKind::Mutation) == Some(ty);
            for field in &row.fields {
                if !self.hidden.fields.contains(field)
                    && !self.hidden.types.contains(&merged.fields[*field].ty.ty)
                {
                    self.field(at, *field, &nodes, &contexts, mutation, runtime);
                }
            }
            return;
        }
        for object in row.possible.iter().map(MTypeId) {
            if self.hidden.types.contains(&object) {
                continue;
            }
            let mut next: Vec<NodeId> = Vec::new();
            let mut is_possible = true;
            for node in &nodes {
                match self.graph.downcast(*node, object) {
                    Some(node) => next.push(node),
                    None => is_possible &= self.graph.nodes[*node].interface_object,
                }
            }
            // Subgraphs agree on what they share: what one of them does not know as a member is none.
            if !is_possible {
                continue;
            }
            if next.is_empty() {
                if let Some(field) = merged.types[object].fields.first() {
                    self.fail(*field, at);
                }
                continue;
            }
            next.sort_unstable();
            next.dedup();
            self.closure.refresh(self.graph);
            let closed = self.closure.close(self.graph, &next);
            self.enter(
                object,
                closed,
                contexts.clone(),
                Some((at as u32, Step::On(object))),
            );
        }
    }

    /// Arguments that can be filled below a state. The nearest object that sets a context fills them, or nothing does.
    fn contexts_below(&mut self, at: usize) -> Vec<u32> {
        let mut filled = self.states[at].contexts.clone();
        let contexts = self.contexts;
        let Some(setters) = contexts.set_by.get(&self.states[at].ty) else {
            return filled;
        };
        filled.retain(|argument| setters.iter().all(|s| s.argument != *argument));
        for setter in setters {
            if self.holds(at, &setter.wants) {
                filled.push(setter.argument);
            }
        }
        filled.sort_unstable();
        filled.dedup();
        filled
    }

    /// Whether everything wanted can be had at a state.
    fn holds(&mut self, at: usize, wants: &[Want]) -> bool {
        loop {
            let nodes = self.graph.nodes.len();
            let from = &self.states[at].nodes;
            let holds = self.closure.holds(self.graph, wants, from);
            // Of nodes made meanwhile it is not known yet where they lead.
            if self.graph.nodes.len() == nodes {
                return holds;
            }
            self.closure.refresh(self.graph);
        }
    }

    fn fail(&mut self, field: MFieldId, state: usize) {
        match self.failures.iter_mut().find(|f| f.field == field) {
            Some(known) => known.count += 1,
            None => self.failures.push(Failure {
                field,
                state,
                count: 1,
            }),
        }
    }

    fn field(
        &mut self,
        at: usize,
        field: MFieldId,
        nodes: &[NodeId],
        contexts: &[u32],
        mutation: bool,
        runtime: &mut Runtime,
    ) {
        let merged = self.graph.merged;
        let row = &merged.fields[field];
        let composite = merged.types[row.ty.ty].kind.is_composite();
        let mut found = false;
        let mut targets: Vec<NodeId> = Vec::new();
        for node in nodes {
            let Some(local) = self.graph.edge(*node, row.name) else {
                continue;
            };
            if !self.closure.resolves(self.graph, *node, local)
                || !self.has_contexts(*node, local, contexts)
            {
                continue;
            }
            found = true;
            if !composite {
                return;
            }
            targets.extend(self.graph.target(*node, local));
        }
        if !found {
            self.fail(field, at);
            return;
        }
        targets.sort_unstable();
        targets.dedup();
        if self.checks && merged.types[row.ty.ty].kind.is_abstract() && targets.len() > 1 {
            self.compare_runtime(field, &targets, runtime);
        }
        self.closure.refresh(self.graph);
        if mutation && targets.len() > 1 && self.checks {
            self.mutation(at, field, &targets, contexts);
            return;
        }
        let closed = self.closure.close(self.graph, &targets);
        self.enter(
            row.ty.ty,
            closed,
            contexts.to_vec(),
            Some((at as u32, Step::Field(field))),
        );
    }

    /// A shared mutation runs in one subgraph, so one of them must do for everything below it.
    fn mutation(&mut self, at: usize, field: MFieldId, targets: &[NodeId], contexts: &[u32]) {
        self.trials += 1;
        let ty = self.graph.merged.fields[field].ty.ty;
        for target in targets {
            let start = self.closure.close(self.graph, &[*target]);
            let mut trial = Walk {
                graph: &mut *self.graph,
                closure: &mut *self.closure,
                hidden: self.hidden,
                contexts: self.contexts,
                states: Vec::new(),
                visited: FastMap::default(),
                failures: Vec::new(),
                checks: false,
                exact: false,
                states_max: self.states_max,
                trials: 0,
            };
            trial.enter(ty, start, contexts.to_vec(), None);
            let mut runtime = Runtime::new();
            let mut next = 0;
            while next < trial.states.len()
                && trial.failures.is_empty()
                && trial.states.len() < trial.states_max
            {
                trial.expand(next, &mut runtime);
                next += 1;
            }
            if trial.failures.is_empty() {
                return;
            }
        }
        self.fail(field, at);
    }

    fn has_contexts(&self, node: NodeId, field: FieldId, contexts: &[u32]) -> bool {
        let key = (self.graph.nodes[node].sub, field);
        let mut wanted = self.contexts.ids.get(&key).into_iter().cloned().flatten();
        wanted.all(|argument| contexts.contains(&argument))
    }

    fn compare_runtime(&mut self, field: MFieldId, targets: &[NodeId], runtime: &mut Runtime) {
        let sets: Vec<Vec<MTypeId>> = targets
            .iter()
            .filter(|t| !self.graph.nodes[**t].interface_object)
            .map(|t| possible(self.graph, *t))
            .collect();
        let Some(first) = sets.first() else { return };
        if sets.iter().all(|s| s == first) {
            return;
        }
        let disjoint = !first.iter().any(|t| sets.iter().all(|s| s.contains(t)));
        if !runtime.iter().any(|(f, _)| *f == field) {
            runtime.push((field, disjoint));
        }
    }
}

/// The object types values of a node can have, sorted.
fn possible(graph: &Graph<'_>, node: NodeId) -> Vec<MTypeId> {
    let row = &graph.nodes[node];
    let schema = &graph.subs[row.sub as usize].schema;
    let mut out: Vec<MTypeId> = schema.types[row.ty]
        .possible
        .iter()
        .filter_map(|t| graph.merged.of(row.sub, ogive_schema::TypeId(t)))
        .collect();
    out.sort_unstable();
    out
}

fn is_subset<T: Ord>(small: &[T], big: &[T]) -> bool {
    let mut rest = big.iter();
    small.iter().all(|x| rest.by_ref().any(|y| y == x))
}

fn runtime_types(
    merged: &Merged,
    subs: &[Subgraph],
    field: MFieldId,
    disjoint: bool,
    report: &mut Report,
) {
    let row = &merged.fields[field];
    let about = merged.coordinate(field);
    let at: Vec<(Place, String)> = row
        .sources
        .iter()
        .filter(|(s, f)| !subs[*s as usize].fields[*f].external)
        .map(|(s, f)| {
            let sub = &subs[*s as usize];
            let def = &sub.schema.fields[*f];
            let types = sub.schema.types[def.ty.id].possible.iter();
            let names = types.map(|t| sub.schema.type_name(ogive_schema::TypeId(t)));
            let types = match names.collect::<Vec<_>>().join(" | ") {
                none if none.is_empty() => "no type".to_owned(),
                types => types,
            };
            (sub.place(def.span), format!("{types} in `{}`", sub.name))
        })
        .collect();
    if disjoint {
        report.error_help(
            codes::SHAREABLE_HAS_MISMATCHED_RUNTIME_TYPES,
            &about,
            format!("`{about}` is shared, and no object type can be returned by all subgraphs that resolve it"),
            "return the same object types everywhere".into(),
            &at,
        );
    } else {
        report.hint(
            hint::INCONSISTENT_RUNTIME_TYPES_FOR_SHAREABLE_RETURN,
            &about,
            format!("`{about}` is shared, and its subgraphs do not know the same object types"),
            &at,
        );
    }
}
