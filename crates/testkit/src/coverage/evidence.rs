//! What one operation exercised: by what it selects from which model, by its plan, and by what was sent and answered.

use std::collections::{BTreeMap, BTreeSet};

use ogive_plan::{
    Cond, Fetch, Layout, LayoutId, Member, OperationKind, OutSource, Plan, SlotIndex, Target,
};
use serde_json::Value as Json;

use super::RuleSet;
use crate::{
    graph::{FieldModel, Kind, Model, Sub, TypeModel, clean, interface_objects, print},
    ops::{Op, Sel, Val, features::features},
};

/// Deepest selection that is looked at; fragments inside fragments repeat.
const DEPTH_MAX: usize = 40;

/// Everything there is to judge by.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The graph.
    pub model: &'a Model,
    /// The operation.
    pub op: &'a Op,
    /// Its plan.
    pub plan: &'a Plan,
    /// What was sent: subgraph and body.
    pub requests: &'a [(String, String)],
    /// The answer's data, byte for byte.
    pub data: &'a str,
    /// The answer's errors, if there are any.
    pub errors: Option<&'a str>,
    /// Whether the operation also ran with a request that fails.
    pub failed_request: bool,
}

/// The rules that an operation exercised.
pub fn exercised(evidence: &Evidence<'_>) -> RuleSet {
    let mut out = RuleSet::default();
    selections(evidence, &mut out);
    plan(evidence, &mut out);
    wire(evidence, &mut out);
    answer(evidence, &mut out);
    out
}

/// One selected field with the type it is selected on.
struct Seen<'a> {
    ty: &'a TypeModel,
    field: &'a FieldModel,
    args: &'a [(String, Val)],
    conditional: bool,
}

/// What a walk over the selections finds.
#[derive(Default)]
struct Walk<'a> {
    seen: Vec<Seen<'a>>,
    narrows: bool,
}

impl<'a> Walk<'a> {
    fn set(
        &mut self,
        evidence: &Evidence<'a>,
        set: &'a [Sel],
        ty: &'a TypeModel,
        conditional: bool,
        depth: usize,
    ) {
        let model = evidence.model;
        if depth > DEPTH_MAX {
            return;
        }
        for selection in set {
            match selection {
                Sel::Field(selected) => {
                    let Some(field) = ty.field(&selected.name) else {
                        continue;
                    };
                    let conditional = conditional || !selected.directives.is_empty();
                    self.seen.push(Seen {
                        ty,
                        field,
                        args: &selected.args,
                        conditional,
                    });
                    if let Some(value) = value_type(model, field) {
                        self.set(
                            evidence,
                            &selected.selections,
                            value,
                            conditional,
                            depth + 1,
                        );
                    }
                }
                Sel::Inline {
                    on,
                    directives,
                    selections,
                } => {
                    let inner = on.as_deref().and_then(|on| model.ty(on)).unwrap_or(ty);
                    self.narrowing(model, ty, inner);
                    let conditional = conditional || !directives.is_empty();
                    self.set(evidence, selections, inner, conditional, depth + 1);
                }
                Sel::Spread {
                    fragment,
                    directives,
                } => {
                    let fragment = &evidence.op.fragments[*fragment];
                    let Some(inner) = model.ty(&fragment.on) else {
                        continue;
                    };
                    self.narrowing(model, ty, inner);
                    let conditional = conditional || !directives.is_empty();
                    self.set(
                        evidence,
                        &fragment.selections,
                        inner,
                        conditional,
                        depth + 1,
                    );
                }
            }
        }
    }

    fn narrowing(&mut self, model: &Model, outer: &TypeModel, inner: &TypeModel) {
        let inside = model.possible(&inner.name);
        self.narrows |= model
            .possible(&outer.name)
            .iter()
            .any(|t| !inside.contains(t));
    }
}

fn value_type<'m>(model: &'m Model, field: &FieldModel) -> Option<&'m TypeModel> {
    model.ty(field.sources.values().next()?.ty.name())
}

fn selections(evidence: &Evidence<'_>, out: &mut RuleSet) {
    let (model, op) = (evidence.model, evidence.op);
    let mut walk = Walk::default();
    let root = if op.mutation { "Mutation" } else { "Query" };
    if let Some(root) = model.ty(root) {
        walk.set(evidence, &op.selections, root, false, 0);
    }
    out.set(33, walk.narrows);
    let mut requiring: Vec<(Sub, &FieldModel, &TypeModel)> = Vec::new();
    for seen in &walk.seen {
        one(model, seen, out);
        for ty in concrete(model, seen.ty) {
            if let Some(field) = ty.field(&seen.field.name)
                && let Some((sub, _)) = field.requires()
            {
                requiring.push((sub, field, ty));
            }
        }
    }
    out.set(22, circular(&requiring));
    let found = features(model, op);
    let has = |name: &str| found.contains(name);
    out.set(38, has("same key under different types"));
    out.set(44, has("field repeated in one set"));
    out.set(46, has("named fragment") || has("inline fragment"));
    out.set(47, has("@skip variable") || has("@include variable"));
    let root_typename = op
        .selections
        .iter()
        .any(|s| matches!(s, Sel::Field(f) if f.name == "__typename"));
    out.set(49, has("introspection") || root_typename);
    out.set(51, has("mutation with several root fields"));
    out.set(52, op.mutation);
    out.set(56, has("variable in argument"));
    out.set(59, !op.others.is_empty());
}

/// Object types among which a value of the type is.
fn concrete<'m>(model: &'m Model, ty: &'m TypeModel) -> Vec<&'m TypeModel> {
    let names = model.possible(&ty.name);
    names.into_iter().filter_map(|t| model.ty(t)).collect()
}

fn one(model: &Model, seen: &Seen<'_>, out: &mut RuleSet) {
    let value = value_type(model, seen.field);
    out.set(57, seen.args.iter().any(|(_, v)| !matches!(v, Val::Var(_))));
    out.set(58, value.is_some_and(|v| v.kind == Kind::Scalar));
    for ty in concrete(model, seen.ty) {
        let Some(field) = ty.field(&seen.field.name) else {
            continue;
        };
        concrete_field(model, ty, field, seen.conditional, out);
    }
    if seen.ty.kind == Kind::Interface {
        let mut active = concrete(model, seen.ty)
            .into_iter()
            .filter_map(|t| t.field(&seen.field.name))
            .map(FieldModel::active);
        let first = active.next();
        out.set(35, active.any(|a| Some(a) != first));
    }
    if let Some(value) = value {
        let places: Vec<Sub> = seen.field.sources.keys().copied().collect();
        let all = model.possible(&value.name);
        let partly = |sub: &Sub| match value.kind {
            Kind::Interface | Kind::Union => model.possible_in(&value.name, *sub).len() < all.len(),
            Kind::Enum => value.members.iter().any(|(_, s)| s & (1 << sub) == 0),
            _ => false,
        };
        let differs = places.iter().any(partly);
        let local = seen.field.args.iter().any(|a| a.only != 0 || a.loose != 0);
        out.set(34, differs || local);
        out.set(37, differs && value.kind.is_abstract());
        let several = seen.field.active().count_ones() > 1;
        let is_list = seen.field.merged_ty().is_some_and(|t| t.is_list());
        let alone = differs && is_list && value.kind == Kind::Union;
        out.set(69, several && (alone || value.kind == Kind::Interface));
        out.set(70, model.stands_alone(&value.name));
        let hidden = value.hidden || !value.hidden_members.is_empty();
        out.set(27, hidden);
    }
}

fn concrete_field(
    model: &Model,
    ty: &TypeModel,
    field: &FieldModel,
    conditional: bool,
    out: &mut RuleSet,
) {
    let value = value_type(model, field);
    let active = field.active().count_ones();
    out.set(54, value.is_some_and(TypeModel::is_root));
    out.set(11, !ty.is_entity() && !ty.is_root());
    out.set(15, active > 1);
    out.set(
        12,
        active > 1
            && value.is_some_and(|v| v.kind == Kind::Object && !v.is_entity() && !v.is_root()),
    );
    out.set(
        27,
        ty.fields.iter().any(|f| f.hidden) || field.args.iter().any(|a| a.hidden),
    );
    out.set(30, print::advice(&ty.name, &field.name).is_some());
    for (sub, source) in &field.sources {
        out.set(13, source.external);
        out.set(16, source.provides.is_some());
        out.set(24, source.overrides.is_some() && source.label.is_none());
        out.set(25, field.label(*sub).is_some());
        out.set(
            26,
            source.overridden && clean::is_key_member(ty, *sub, &field.name)
                || print::leaves_an_interface(model, ty, field, *sub),
        );
        if let Some(set) = &source.requires {
            let text = set.to_string();
            let chained = set
                .names()
                .any(|n| ty.field(n).is_some_and(|f| f.requires().is_some()));
            out.set(18, chained);
            out.set(19, text.contains('('));
            out.set(20, text.contains("... on"));
            out.set(23, conditional);
        }
    }
}

/// Whether two of the fields need something of each other's subgraph.
fn circular(requiring: &[(Sub, &FieldModel, &TypeModel)]) -> bool {
    let needs = |(sub, field, ty): &(Sub, &FieldModel, &TypeModel), from: Sub| {
        field
            .sources
            .get(sub)
            .and_then(|s| s.requires.as_ref())
            .is_some_and(|set| {
                set.names()
                    .any(|n| ty.field(n).is_some_and(|f| f.active() & (1 << from) != 0))
            })
    };
    requiring.iter().any(|a| {
        requiring
            .iter()
            .any(|b| a.0 != b.0 && needs(a, b.0) && needs(b, a.0))
    })
}

/// Whether a slot holds an object of the gateway's own, and another one the client's of the same name.
fn is_asked_again(layout: &Layout, slot: SlotIndex) -> bool {
    let own = &layout.slots[usize::from(slot)];
    let is_object = own.child.is_some() && own.client_key.is_none();
    is_object
        && layout
            .slots
            .iter()
            .any(|other| other.name == own.name && other.client_key.is_some())
}

fn plan(evidence: &Evidence<'_>, out: &mut RuleSet) {
    let (model, plan) = (evidence.model, evidence.plan);
    let mut roots = BTreeSet::new();
    for (_, fetch) in plan.fetches.iter() {
        if fetch.root.is_some() {
            roots.insert(fetch.subgraph);
        }
        let follows = fetch
            .dependencies
            .iter()
            .any(|d| !plan.fetches[*d].lookups.is_empty());
        for target in fetch.lookups.iter().flat_map(|l| &l.targets) {
            out.set(5, follows);
            looked_up(evidence, fetch, target, out);
        }
    }
    let mut shown = plan
        .layouts
        .iter()
        .flat_map(|(_, layout)| layout.output.iter());
    out.set(68, shown.any(|field| field.source == OutSource::Null));
    out.set(50, plan.kind == OperationKind::Query && roots.len() > 1);
    out.set(31, model.join != 3);
    for (_, shape) in plan.shapes.iter() {
        let layout = &plan.layouts[shape.layout];
        out.set(32, shape.typename_key.is_some() && layout.types.len() > 1);
        out.set(
            36,
            layout.types.len() > 1 && shape.fields.iter().any(|f| f.types.is_none()),
        );
        out.set(65, shape.fields.iter().any(|f| f.key.starts_with('_')));
    }
    out.set(45, out_of_order(plan));
    let conditional = plan.conditions.iter().any(|(id, _)| id != Cond::TRUE);
    out.set(
        48,
        conditional && evidence.requests.len() < plan.fetches.len(),
    );
}

/// A subgraph of the plan, in the model.
fn sub_of(evidence: &Evidence<'_>, subgraph: u32) -> Option<usize> {
    let name = evidence.plan.subgraphs.get(subgraph as usize)?;
    let mut subgraphs = evidence.model.subgraphs.iter();
    subgraphs.position(|s| **s == **name)
}

/// What one target of a look-up shows.
fn looked_up(evidence: &Evidence<'_>, fetch: &Fetch, target: &Target, out: &mut RuleSet) {
    let (model, plan) = (evidence.model, evidence.plan);
    let layout = &plan.layouts[target.layout];
    let types: Vec<&TypeModel> = layout
        .types
        .iter()
        .filter(|t| target.types.as_ref().is_none_or(|own| own.contains(*t)))
        .filter_map(|t| model.ty(plan.types.as_slice().get(t as usize)?))
        .collect();
    let members = || target.representations.iter().flat_map(|r| &r.members);
    out.set(1, members().any(|m| m.key));
    out.set(
        2,
        types
            .iter()
            .any(|t| t.places.values().any(|p| p.keys.len() > 1)),
    );
    out.set(
        3,
        target.representations.iter().any(|r| {
            let keys: Vec<_> = r.members.iter().filter(|m| m.key).collect();
            keys.len() > 1
                || keys
                    .iter()
                    .any(|m| !m.members.is_empty() || *m.key_json == *b"\"codes\":")
        }),
    );
    out.set(
        4,
        types.iter().any(|t| {
            t.places
                .values()
                .any(|p| p.keys.iter().any(|k| !k.resolvable))
        }),
    );
    out.set(6, layout.types.len() > 1);
    out.set(43, target.types.is_some());
    out.set(7, target.representations.len() > 1);
    out.set(
        10,
        target.representations.iter().any(|r| r.members.is_empty()),
    );
    out.set(9, below_list(plan, target.layout));
    out.set(17, members().any(|m| !m.key));
    let is_own = |m: &Member| m.slot.is_some_and(|slot| is_asked_again(layout, slot));
    out.set(71, members().any(is_own));
    out.set(65, true);
    if let Some(sub) = sub_of(evidence, fetch.subgraph) {
        let used = |t: &&TypeModel| {
            t.fields.iter().any(|f| {
                f.sources.get(&sub).is_some_and(|s| s.overridden)
                    && clean::is_key_member(t, sub, &f.name)
            })
        };
        out.set(26, types.iter().any(used));
    }
    out.set(39, behind_keyed_interface(evidence, &types));
    for name in target.representations.iter().flat_map(|r| &r.typename) {
        let several = interface_objects::objects(model, name).len() > 1;
        out.set(40, true);
        out.set(41, several || members().any(|m| !m.key));
    }
}

fn below_list(plan: &Plan, layout: LayoutId) -> bool {
    let mut at = layout;
    while let Some((parent, slot)) = plan.layouts[at].parent {
        if plan.layouts[parent].slots[usize::from(slot)].lists > 0 {
            return true;
        }
        at = parent;
    }
    false
}

fn behind_keyed_interface(evidence: &Evidence<'_>, types: &[&TypeModel]) -> bool {
    types.iter().any(|t| {
        t.interfaces().iter().any(|i| {
            evidence
                .model
                .ty(i)
                .is_some_and(|i| i.places.values().any(|p| !p.keys.is_empty()))
        })
    })
}

/// Whether some object's values arrive in another order than they are answered in.
fn out_of_order(plan: &Plan) -> bool {
    let mut wave_of: BTreeMap<(LayoutId, u16), u32> = BTreeMap::new();
    for (_, fetch) in plan.fetches.iter() {
        let root = fetch.root.iter().map(|r| r.shape);
        let entries = fetch
            .lookups
            .iter()
            .flat_map(|l| l.targets.iter().map(|t| t.shape));
        let mut todo: Vec<_> = root.chain(entries).collect();
        while let Some(shape) = todo.pop() {
            let shape = &plan.shapes[shape];
            for field in &shape.fields {
                let wave = wave_of
                    .entry((shape.layout, field.slot))
                    .or_insert(fetch.wave);
                *wave = (*wave).min(fetch.wave);
                todo.extend(field.shape);
            }
        }
    }
    plan.layouts.iter().any(|(id, layout)| {
        let waves: Vec<u32> = layout
            .output
            .iter()
            .filter_map(|o| match o.source {
                OutSource::Leaf(slot, _) | OutSource::Object(slot) => {
                    wave_of.get(&(id, slot)).copied()
                }
                _ => None,
            })
            .collect();
        waves.windows(2).any(|w| w[0] > w[1])
    })
}

fn wire(evidence: &Evidence<'_>, out: &mut RuleSet) {
    for (_, body) in evidence.requests {
        let Ok(body) = serde_json::from_str::<Json>(body) else {
            continue;
        };
        for (_, value) in body["variables"].as_object().into_iter().flatten() {
            let representations = value.as_array().into_iter().flatten();
            let objects: Vec<_> = representations
                .filter_map(|r| r.as_object().filter(|r| r.contains_key("__typename")))
                .collect();
            out.set(8, objects.len() > 1);
            out.set(21, objects.iter().any(|r| r.values().any(Json::is_null)));
        }
    }
    out.set(66, evidence.failed_request);
}

fn answer(evidence: &Evidence<'_>, out: &mut RuleSet) {
    let Some(errors) = evidence.errors else {
        return;
    };
    let errors: Vec<Json> = serde_json::from_str(errors).unwrap_or_default();
    let data: Json = serde_json::from_str(evidence.data).unwrap_or_default();
    for error in &errors {
        let Some(path) = error["path"].as_array() else {
            continue;
        };
        out.set(61, true);
        let mut value = &data;
        let mut reached = 0;
        for segment in path {
            let next = match segment {
                Json::String(key) => value.get(key.as_str()),
                other => other.as_u64().and_then(|i| value.get(i as usize)),
            };
            let Some(next) = next else { break };
            value = next;
            reached += 1;
        }
        out.set(62, reached < path.len());
        // The world words its own errors; the gateway speaks of values it may not show.
        let message = error["message"].as_str().unwrap_or_default();
        if !message.ends_with(crate::world::FAULT) {
            let is_type = error["extensions"]["code"] == "SUBREQUEST_UNEXPECTED_TYPE";
            out.set(42, is_type);
            out.set(64, true);
        }
    }
}
