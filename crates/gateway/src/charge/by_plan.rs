//! What the plan of an operation costs: requests, entities that are looked up, and what is asked of each subgraph.
//!
//! A subgraph is charged for every field that it answers, and for the objects that it looks up. What is counted is the
//! client's operation with its variables, so the sizes of lists are those of the whole operation; the plan says only who
//! answers what. Compiled once per operation and plan.

use ogive_base::{BitSet, FastMap, FastSet};
use ogive_cost::{Program, Settings, compile};
use ogive_edge::error::RequestError;
use ogive_operation::{FieldNodeId, FieldRef, Operation, SelectionSetId};
use ogive_plan::{LayoutId, OperationKind, OutSource, Plan, ShapeId, SlotIndex};
use ogive_telemetry::codes;

use super::{Charge, PlanLimits, with_numbers};
use crate::{
    prepare::Prepared,
    schema::{operation::PlannedOperation, plan_costs::PlanCosts, state::SchemaState},
    shared::{context::OperationContext, cost_transport::RefusedSubgraph, worker::WorkerState},
};

/// Where a value is.
type Place = (LayoutId, SlotIndex);

impl Charge {
    /// Rejects an operation whose plan costs too much, or notes the subgraphs that are not asked.
    pub(crate) fn run_planned(
        &self,
        context: &OperationContext<'_>,
        worker: &WorkerState,
        (prepared, planned): (&Prepared, &PlannedOperation),
    ) -> Result<(), RequestError> {
        let (options, state) = (&self.control, &*self.state);
        let Some(limits) = options.plan.as_deref() else {
            return Ok(());
        };
        let costs = planned.costs.get_or_init(|| {
            plan_costs(limits, state, &prepared.operation.operation, &planned.plan)
        });
        let of = (&state.supergraph.schema, &state.supergraph.graph.costs);
        let scratch = &mut worker.scratch.borrow_mut();
        let mut evaluate = |program: &Program| {
            let estimate = program.evaluate(of.0, of.1, &prepared.variables, scratch);
            estimate.cost
        };
        let requests = planned.plan.fetches.len() as u64;
        let entities = costs.entities.as_ref().map_or(0, &mut evaluate);
        let counted = [
            (
                limits.requests,
                requests,
                codes::COST_TOO_MANY_SUBGRAPH_REQUESTS,
                "requests to subgraphs",
            ),
            (
                limits.entities,
                entities,
                codes::COST_TOO_MANY_ENTITIES,
                "look-ups of entities",
            ),
        ];
        for (max, found, code, what) in counted {
            let Some(max) = max.filter(|max| found > *max) else {
                continue;
            };
            if options.is_enforced {
                let message =
                    format!("the operation takes {found} {what}, and may take no more than {max}");
                let error = RequestError::graphql(code, message);
                let numbers = vec![("cost.estimated", found), ("cost.max", max)];
                return Err(with_numbers(error, numbers));
            }
            context.count_exceeded(&[code.as_str()]);
        }
        let mut refused = Vec::new();
        for (subgraph, max, program) in &costs.subgraphs {
            let estimated = evaluate(program);
            if estimated > *max {
                refused.push(RefusedSubgraph {
                    subgraph: *subgraph,
                    estimated,
                    max: *max,
                });
            }
        }
        if refused.is_empty() {
            return Ok(());
        }
        let code = codes::SUBGRAPH_COST_ESTIMATED_TOO_EXPENSIVE;
        if !options.is_enforced {
            context.count_exceeded(&[code.as_str()]);
        } else if planned.plan.kind == OperationKind::Subscription {
            // Its events would all lack the same fields.
            let message = "what is asked of a subgraph is estimated to cost more than it may";
            return Err(RequestError::graphql(code, message));
        } else {
            context.refuse(refused);
        }
        Ok(())
    }
}

/// Compiles what a plan costs.
fn plan_costs(
    limits: &PlanLimits,
    state: &SchemaState,
    operation: &Operation,
    plan: &Plan,
) -> PlanCosts {
    let (schema, costs) = (&state.supergraph.schema, &state.supergraph.graph.costs);
    let nodes = nodes_by_place(operation, plan);
    let places = places_by_subgraph(plan);
    let subgraphs = places.iter().enumerate().filter_map(|(index, places)| {
        let (max, list_size) = limits.of(plan.subgraphs.get(index)?)?;
        let counted = places.iter().filter_map(|place| nodes.get(place)).flatten();
        let counted: BitSet = counted.map(|node| node.0).collect();
        let settings = Settings {
            list_size,
            counted: Some(&counted),
            ..Settings::default()
        };
        let program = compile(schema, costs, operation, &settings);
        Some((index as u32, max, program))
    });
    let subgraphs = subgraphs.collect();
    let entities = limits.entities.map(|_| {
        let weights = look_ups(plan, &nodes);
        let settings = Settings {
            list_size: limits.list_size,
            weights: Some(&weights),
            ..Settings::default()
        };
        compile(schema, costs, operation, &settings)
    });
    PlanCosts {
        subgraphs,
        entities,
    }
}

/// How often each item of a field is looked up.
fn look_ups(plan: &Plan, nodes: &FastMap<Place, Vec<FieldNodeId>>) -> FastMap<FieldNodeId, u64> {
    let mut weights: FastMap<FieldNodeId, u64> = FastMap::default();
    let lookups = plan
        .fetches
        .as_slice()
        .iter()
        .flat_map(|fetch| &fetch.lookups);
    for target in lookups.filter(|l| !l.is_reentry()).flat_map(|l| &l.targets) {
        let place = plan.layouts.get(target.layout).and_then(|l| l.parent);
        for node in place
            .and_then(|place| nodes.get(&place))
            .into_iter()
            .flatten()
        {
            *weights.entry(*node).or_default() += 1;
        }
    }
    weights
}

/// The fields of the client that each place of a plan answers.
fn nodes_by_place(operation: &Operation, plan: &Plan) -> FastMap<Place, Vec<FieldNodeId>> {
    let mut out: FastMap<Place, Vec<FieldNodeId>> = FastMap::default();
    let mut seen: FastSet<(SelectionSetId, LayoutId)> = FastSet::default();
    let mut open = vec![(operation.root, Plan::ROOT)];
    while let Some((set, at)) = open.pop() {
        if !seen.insert((set, at)) {
            continue;
        }
        let (Some(set), Some(layout)) = (operation.selection_sets.get(set), plan.layouts.get(at))
        else {
            continue;
        };
        // Response keys of what is answered later are not in the output.
        let slots = layout.slots.iter().enumerate();
        let slots = slots.filter_map(|(i, slot)| Some((slot.client_key.as_deref()?, i)));
        let mut by_key: FastMap<&str, Vec<SlotIndex>> = FastMap::default();
        for (key, slot) in slots {
            by_key.entry(key).or_default().push(slot as SlotIndex);
        }
        for field in layout.output.iter() {
            if let OutSource::Leaf(slot, _) | OutSource::Object(slot) = field.source {
                let slots = by_key.entry(&field.key).or_default();
                if !slots.contains(&slot) {
                    slots.push(slot);
                }
            }
        }
        for id in &set.fields {
            let node = &operation.fields[*id];
            if !matches!(node.field, FieldRef::Field(_)) {
                continue;
            }
            let slots = by_key.get(operation.keys.text(node.key));
            for slot in slots.into_iter().flatten() {
                let nodes = out.entry((at, *slot)).or_default();
                if !nodes.contains(id) {
                    nodes.push(*id);
                }
                let child = layout.slots.get(usize::from(*slot)).and_then(|s| s.child);
                open.extend(node.selection_set.zip(child));
            }
        }
    }
    out
}

/// By subgraph, the places that it answers or looks up.
fn places_by_subgraph(plan: &Plan) -> Vec<FastSet<Place>> {
    let mut out: Vec<FastSet<Place>> = plan.subgraphs.iter().map(|_| FastSet::default()).collect();
    for fetch in plan.fetches.as_slice() {
        let Some(places) = out.get_mut(fetch.subgraph as usize) else {
            continue;
        };
        let targets = fetch.lookups.iter().flat_map(|lookup| &lookup.targets);
        for target in targets.clone() {
            places.extend(plan.layouts.get(target.layout).and_then(|l| l.parent));
        }
        let roots = fetch.root.iter().map(|root| root.shape);
        let mut open: Vec<ShapeId> = roots.chain(targets.map(|t| t.shape)).collect();
        let mut seen: FastSet<ShapeId> = FastSet::default();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let Some(shape) = plan.shapes.get(id) else {
                continue;
            };
            for field in shape.fields.iter() {
                places.insert((shape.layout, field.slot));
                open.extend(field.shape);
            }
        }
    }
    out
}
