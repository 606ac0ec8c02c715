//! The text form of a plan: what is sent where, after what, and where the answers go. Made for people and for
//! snapshots: stable, complete enough to review, free of addresses and hashes.

use std::fmt::{self, Write};

use crate::{
    describe::{
        condition, deferred_places, groups_of, if_clause, layout_path, places_filled, query_text,
        restricted_places, streamed_place, subgraph_name, type_names, waves,
    },
    ids::*,
    ir::*,
    representation::Member,
};

/// The text form of a plan.
pub fn text(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_plan(plan, &mut out);
    out
}

fn write_plan(plan: &Plan, out: &mut String) -> fmt::Result {
    let waves = waves(plan);
    let kind = match plan.kind {
        OperationKind::Query => "query",
        OperationKind::Mutation => "mutation",
        OperationKind::Subscription => "subscription",
    };
    writeln!(
        out,
        "{kind}: {} in {}",
        count(plan.fetches.len(), "fetch", "fetches"),
        count(waves.len(), "wave", "waves"),
    )?;
    if !plan.requirements.is_empty() {
        writeln!(out, "\nonly for some callers")?;
        for (number, requirement) in plan.requirements.iter().enumerate() {
            writeln!(out, "  granted {number}: {requirement}")?;
        }
        for restriction in restricted_places(plan) {
            writeln!(out, "  {restriction}")?;
        }
    }
    if let Some(deferral) = &plan.deferral {
        writeln!(out, "\nmay come later")?;
        for (number, group) in deferral.groups.iter().enumerate() {
            let kind = if group.is_conditional() {
                "conditional"
            } else {
                "deferred"
            };
            write!(out, "  {kind} {number}")?;
            if let Some(label) = &group.label {
                write!(out, " {label:?}")?;
            }
            match layout_path(plan, group.layout) {
                path if path.is_empty() => write!(out, " of the root")?,
                path => write!(out, " of {path}")?,
            }
            if let Some(parent) = group.parent {
                write!(out, " below {parent}")?;
            }
            if let Some(variable) = group.variable {
                let name = plan.variables.get(variable as usize);
                write!(out, " if ${}", name.map_or("?", |name| name))?;
            }
            if group.is_conditional() {
                write!(out, " if {}", condition(plan, group.cond))?;
            }
            writeln!(out)?;
            for place in deferred_places(plan, deferral, number as u32) {
                writeln!(out, "    -> {place}")?;
            }
        }
        for stream in &deferral.streams {
            write!(out, "  streamed {}", streamed_place(plan, stream))?;
            if let Some(label) = &stream.label {
                write!(out, " {label:?}")?;
            }
            let name = |variable: u32| plan.variables.get(variable as usize).map_or("?", |n| n);
            match stream.initial_variable {
                Some(variable) => write!(out, " after ${}", name(variable))?,
                None => write!(out, " after {}", stream.initial_count)?,
            }
            if let Some(variable) = stream.variable {
                write!(out, " if ${}", name(variable))?;
            }
            writeln!(out)?;
        }
    }
    for (wave, fetches) in waves {
        writeln!(out, "\nwave {wave}")?;
        for id in fetches {
            write_fetch(plan, id, out)?;
        }
    }
    Ok(())
}

fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn write_fetch(plan: &Plan, id: FetchId, out: &mut String) -> fmt::Result {
    let fetch = &plan.fetches[id];
    write!(
        out,
        "  fetch {} {}",
        id.0,
        subgraph_name(plan, fetch.subgraph)
    )?;
    let after: Vec<String> = fetch.dependencies.iter().map(|f| f.0.to_string()).collect();
    if !after.is_empty() {
        write!(out, " after {}", after.join(", "))?;
    }
    let deferred: Vec<String> = groups_of(plan, id).iter().map(u32::to_string).collect();
    if !deferred.is_empty() {
        write!(out, " for deferred {}", deferred.join(", "))?;
    }
    writeln!(out)?;
    for line in query_text(fetch).trim_end().lines() {
        if line.is_empty() {
            writeln!(out)?;
        } else {
            writeln!(out, "    | {line}")?;
        }
    }
    if let Some(root) = &fetch.root {
        writeln!(out, "    root fields{}", if_clause(plan, root.cond))?;
        write_places(plan, root.shape, out)?;
    }
    for lookup in &fetch.lookups {
        if lookup.is_reentry() {
            writeln!(out, "    root fields again")?
        } else {
            writeln!(out, "    {}(${})", lookup.response_key, lookup.variable)?
        }
        for target in &lookup.targets {
            write_target(plan, target, lookup.is_reentry(), out)?;
        }
    }
    Ok(())
}

fn write_target(plan: &Plan, target: &Target, is_reentry: bool, out: &mut String) -> fmt::Result {
    let types = match (&target.types, target.untyped) {
        (Some(types), false) => format!(" ({})", type_names(plan, types)),
        (Some(types), true) => format!(" ({} or not known yet)", type_names(plan, types)),
        (None, true) => " (known or not)".to_owned(),
        (None, false) => String::new(),
    };
    writeln!(
        out,
        "      of {}{types}{}",
        layout_path(plan, target.layout),
        if_clause(plan, target.cond),
    )?;
    let keys: &[_] = if is_reentry {
        &[]
    } else {
        &target.representations
    };
    for (at, representation) in keys.iter().enumerate() {
        let word = if at == 0 { "by" } else { "or by" };
        let typename = representation.typename.as_deref();
        let typename = typename.map_or(String::new(), |name| format!(" {name}"));
        writeln!(
            out,
            "        {word}{typename} {}",
            members(plan, target.layout, &representation.members)
        )?;
    }
    for context in &target.contexts {
        writeln!(
            out,
            "        ${} from {} {}{}",
            context.variable,
            match layout_path(plan, context.layout).as_str() {
                "" => "the root",
                path => path,
            },
            members(plan, context.layout, &context.members),
            if_clause(plan, context.cond),
        )?;
    }
    write_places(plan, target.shape, out)
}

fn write_places(plan: &Plan, shape: ShapeId, out: &mut String) -> fmt::Result {
    for place in places_filled(plan, shape) {
        writeln!(out, "        -> {place}")?;
    }
    Ok(())
}

/// Members as a selection; required values that are no key have a question mark, values from slots of another name
/// name the slot: `{ id size { unit } price? }`.
pub(crate) fn members(plan: &Plan, layout: LayoutId, members: &[Member]) -> String {
    let mut text = "{".to_owned();
    // Members still to be written, by open brace.
    let mut open = vec![(layout, members.iter())];
    while let Some((layout, rest)) = open.last_mut() {
        let Some(member) = rest.next() else {
            open.pop();
            text.push_str(" }");
            continue;
        };
        let key = String::from_utf8_lossy(&member.key_json);
        let key = key.trim_end_matches(':').trim_matches('"');
        text.push(' ');
        text.push_str(key);
        let slots = plan.layouts.get(*layout).map(|layout| &layout.slots);
        let slot = member
            .slot
            .and_then(|slot| slots.and_then(|slots| slots.get(usize::from(slot))));
        if let Some(slot) = slot
            && *slot.name != *key
        {
            let _ = write!(text, "={}", slot.name);
        }
        if !member.key {
            text.push('?');
        }
        if let Some(types) = &member.types {
            let _ = write!(text, "({})", type_names(plan, types));
        }
        if let Some(child) = slot.and_then(|slot| slot.child)
            && !member.members.is_empty()
        {
            text.push_str(" {");
            open.push((child, member.members.iter()));
        }
    }
    text
}
