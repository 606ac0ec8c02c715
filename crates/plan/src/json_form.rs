//! The JSON form of a plan, for tools: the same facts as the text form, one object per fetch.

use ogive_json::Writer;

use crate::{
    describe::{
        condition, deferred_places, groups_of, layout_path, places_filled, query_text,
        restricted_places, streamed_place, subgraph_name, type_names, waves,
    },
    ids::*,
    ir::*,
    text::members,
};

/// The JSON form of a plan, indented.
pub fn json(plan: &Plan) -> String {
    let mut out = Writer::pretty();
    out.begin_object();
    out.key("kind");
    out.string(match plan.kind {
        OperationKind::Query => "query",
        OperationKind::Mutation => "mutation",
        OperationKind::Subscription => "subscription",
    });
    out.key("waves");
    out.integer(waves(plan).len() as i64);
    if !plan.requirements.is_empty() {
        out.key("requirements");
        out.begin_array();
        for requirement in &plan.requirements {
            out.string(&requirement.to_string());
        }
        out.end_array();
        out.key("restricted");
        out.begin_array();
        for restriction in restricted_places(plan) {
            out.string(&restriction);
        }
        out.end_array();
    }
    if let Some(deferral) = &plan.deferral {
        out.key("deferred");
        out.begin_array();
        for (number, group) in deferral.groups.iter().enumerate() {
            out.begin_object();
            out.key("id");
            out.integer(number as i64);
            if let Some(label) = &group.label {
                out.key("label");
                out.string(label);
            }
            if let Some(parent) = group.parent {
                out.key("parent");
                out.integer(parent.into());
            }
            out.key("path");
            out.string(&layout_path(plan, group.layout));
            if let Some(variable) = group.variable {
                let name = plan.variables.get(variable as usize);
                out.key("if");
                out.string(name.map_or("?", |name| name));
            }
            if group.is_conditional() {
                out.key("condition");
                out.string(&condition(plan, group.cond));
            }
            out.key("values");
            out.begin_array();
            for place in deferred_places(plan, deferral, number as u32) {
                out.string(&place);
            }
            out.end_array();
            out.end_object();
        }
        out.end_array();
        if !deferral.streams.is_empty() {
            out.key("streamed");
            out.begin_array();
            for stream in &deferral.streams {
                out.string(&streamed_place(plan, stream));
            }
            out.end_array();
        }
    }
    out.key("fetches");
    out.begin_array();
    for (id, fetch) in plan.fetches.iter() {
        write_fetch(plan, id, fetch, &mut out);
    }
    out.end_array();
    out.end_object();
    out.into_string()
}

fn write_fetch(plan: &Plan, id: FetchId, fetch: &Fetch, out: &mut Writer) {
    out.begin_object();
    out.key("id");
    out.integer(id.0.into());
    out.key("wave");
    out.integer(fetch.wave.into());
    out.key("subgraph");
    out.string(subgraph_name(plan, fetch.subgraph));
    out.key("dependencies");
    out.begin_array();
    for dependency in &fetch.dependencies {
        out.integer(dependency.0.into());
    }
    out.end_array();
    if !groups_of(plan, id).is_empty() {
        out.key("deferred");
        out.begin_array();
        for group in groups_of(plan, id) {
            out.integer((*group).into());
        }
        out.end_array();
    }
    out.key("query");
    out.string(query_text(fetch).trim_end());
    out.key("variables");
    out.begin_array();
    for used in &fetch.variables {
        let name = plan.variables.get(used.variable as usize);
        out.string(name.map_or("?", |name| name));
    }
    out.end_array();
    if let Some(root) = &fetch.root {
        out.key("root");
        out.begin_object();
        write_condition(plan, root.cond, out);
        write_places(plan, root.shape, out);
        out.end_object();
    }
    out.key("lookups");
    out.begin_array();
    for lookup in &fetch.lookups {
        out.begin_object();
        if lookup.is_reentry() {
            out.key("reentry");
            out.boolean(true);
        } else {
            out.key("responseKey");
            out.string(&lookup.response_key);
            out.key("variable");
            out.string(&lookup.variable);
        }
        out.key("targets");
        out.begin_array();
        for target in &lookup.targets {
            write_target(plan, target, out);
        }
        out.end_array();
        out.end_object();
    }
    out.end_array();
    out.end_object();
}

fn write_target(plan: &Plan, target: &Target, out: &mut Writer) {
    out.begin_object();
    out.key("path");
    out.string(&layout_path(plan, target.layout));
    if let Some(types) = &target.types {
        out.key("types");
        out.string(&type_names(plan, types));
    }
    if target.untyped {
        out.key("untyped");
        out.boolean(true);
    }
    write_condition(plan, target.cond, out);
    if !target.contexts.is_empty() {
        out.key("contexts");
        out.begin_array();
        for context in &target.contexts {
            out.begin_object();
            out.key("variable");
            out.string(&context.variable);
            out.key("path");
            out.string(&layout_path(plan, context.layout));
            out.key("members");
            out.string(&members(plan, context.layout, &context.members));
            out.end_object();
        }
        out.end_array();
    }
    out.key("representations");
    out.begin_array();
    for representation in &target.representations {
        out.begin_object();
        if let Some(typename) = &representation.typename {
            out.key("typename");
            out.string(typename);
        }
        out.key("members");
        out.string(&members(plan, target.layout, &representation.members));
        out.end_object();
    }
    out.end_array();
    write_places(plan, target.shape, out);
    out.end_object();
}

fn write_condition(plan: &Plan, cond: Cond, out: &mut Writer) {
    let text = condition(plan, cond);
    if !text.is_empty() {
        out.key("if");
        out.string(&text);
    }
}

fn write_places(plan: &Plan, shape: ShapeId, out: &mut Writer) {
    out.key("fills");
    out.begin_array();
    for place in places_filled(plan, shape) {
        out.string(&place);
    }
    out.end_array();
}
