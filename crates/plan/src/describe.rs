//! Words for the parts of a plan, shared by its text form, its JSON form and the verifier's messages.

use ogive_base::{BitSet, FastSet, id::Id};

use crate::{
    deferral::{Deferral, StreamOutput},
    ids::*,
    ir::*,
};

/// The place of a layout in the response, e.g. `me.reviews[].author`; empty for the root.
pub fn layout_path(plan: &Plan, layout: LayoutId) -> String {
    let mut steps = Vec::new();
    let mut at = layout;
    // A layout's parent comes before it, so a broken plan cannot make this loop.
    while let Some((parent, slot)) = plan.layouts.get(at).and_then(|l| l.parent)
        && parent < at
    {
        steps.push(slot_name(plan, parent, slot));
        at = parent;
    }
    steps.reverse();
    steps.join(".")
}

/// The place of a slot in the response, e.g. `me.reviews[].body`.
pub fn slot_path(plan: &Plan, layout: LayoutId, slot: SlotIndex) -> String {
    let mut path = layout_path(plan, layout);
    if !path.is_empty() {
        path.push('.');
    }
    path + &slot_name(plan, layout, slot)
}

fn slot_name(plan: &Plan, layout: LayoutId, index: SlotIndex) -> String {
    let slots = plan.layouts.get(layout).map(|layout| &layout.slots);
    let Some(slot) = slots.and_then(|slots| slots.get(usize::from(index))) else {
        return format!("?{index}");
    };
    let name = slot.client_key.as_deref().unwrap_or(&slot.name);
    name.to_owned() + &"[]".repeat(usize::from(slot.lists))
}

/// The names of a set of types, e.g. `Book|Film`.
pub fn type_names(plan: &Plan, types: &BitSet) -> String {
    let name = |ty| match plan.types.get(RuntimeType(ty)) {
        Some(name) => name.to_string(),
        None => format!("?{ty}"),
    };
    types.iter().map(name).collect::<Vec<_>>().join("|")
}

/// A condition, e.g. `$a and not $b or $c`; empty if it always holds.
pub fn condition(plan: &Plan, cond: Cond) -> String {
    let Some(terms) = plan.conditions.get(cond) else {
        return format!("?{}", cond.0);
    };
    if terms.iter().any(Vec::is_empty) {
        return String::new();
    }
    if terms.is_empty() {
        return "never".to_owned();
    }
    let literal = |&(variable, wanted): &(u32, bool)| {
        let not = if wanted { "" } else { "not " };
        match plan.variables.get(variable as usize) {
            Some(name) => format!("{not}${name}"),
            None => {
                let number = (variable as usize).wrapping_sub(plan.variables.len());
                match plan.requirements.get(number) {
                    Some(_) => format!("{not}granted {number}"),
                    None => format!("{not}?{variable}"),
                }
            }
        }
    };
    let term = |term: &Vec<_>| term.iter().map(literal).collect::<Vec<_>>().join(" and ");
    terms.iter().map(term).collect::<Vec<_>>().join(" or ")
}

/// `  if $a`, or nothing for a condition that always holds.
pub(crate) fn if_clause(plan: &Plan, cond: Cond) -> String {
    match condition(plan, cond).as_str() {
        "" => String::new(),
        text => format!(" if {text}"),
    }
}

/// A subgraph's name.
pub(crate) fn subgraph_name(plan: &Plan, subgraph: u32) -> &str {
    plan.subgraphs
        .get(subgraph as usize)
        .map_or("?", |name| name)
}

/// The whole GraphQL text of a fetch, as if every gate were open; laid out canonically if it parses.
pub fn query_text(fetch: &Fetch) -> String {
    laid_out(request_text(fetch))
}

/// The whole GraphQL text of a fetch as it is sent when every gate is open.
pub fn request_text(fetch: &Fetch) -> String {
    let escaped: String = fetch.segments.iter().map(|s| &*s.text).collect();
    let quoted = format!("\"{escaped}\"");
    match ogive_json::Scanner::new(quoted.as_bytes()).string() {
        Ok(string) => string.unescape().into_owned(),
        Err(_) => escaped,
    }
}

/// A document laid out canonically if it parses, else as it is.
pub(crate) fn laid_out(text: String) -> String {
    let parsed = parse(&text);
    if parsed.errors.is_empty() {
        ogive_syntax::print_document(&parsed.document)
    } else {
        text
    }
}

pub(crate) fn parse(text: &str) -> ogive_syntax::Parsed {
    let limits = ogive_syntax::Limits::default();
    ogive_syntax::parse(text, ogive_syntax::SourceId(0), &limits)
}

/// The fetches of each wave.
pub(crate) fn waves(plan: &Plan) -> Vec<(u32, Vec<FetchId>)> {
    let mut waves: Vec<(u32, Vec<FetchId>)> = Vec::new();
    for (id, fetch) in plan.fetches.iter() {
        match waves.last_mut() {
            Some((wave, ids)) if *wave == fetch.wave => ids.push(id),
            _ => waves.push((fetch.wave, vec![id])),
        }
    }
    waves
}

/// Places that a shape fills, in reading order: leaves, for they imply the objects above them, and objects of which
/// nothing is asked but their type.
pub(crate) fn places_filled(plan: &Plan, shape: ShapeId) -> Vec<String> {
    let mut places = Vec::new();
    // (shape, next field); shapes below a shape belong to deeper layouts, so this ends.
    let mut open = vec![(shape, 0)];
    while let Some((shape, next)) = open.last_mut() {
        let Some(shape) = plan.shapes.get(*shape) else {
            open.pop();
            continue;
        };
        let Some(field) = shape.fields.get(*next) else {
            if shape.fields.is_empty() {
                // Whether there is an object, and of which type, is a value too.
                places.push(layout_path(plan, shape.layout));
            }
            open.pop();
            continue;
        };
        *next += 1;
        match field.shape {
            Some(child) if child_is_deeper(plan, shape, child) => open.push((child, 0)),
            _ => {
                let mut place = slot_path(plan, shape.layout, field.slot);
                if let Some(types) = &field.types {
                    place = format!("{place} ({})", type_names(plan, types));
                }
                places.push(place);
            }
        }
    }
    places
}

fn child_is_deeper(plan: &Plan, shape: &ObjectShape, child: ShapeId) -> bool {
    let child = plan.shapes.get(child);
    child.is_some_and(|child| child.layout.index() > shape.layout.index())
}

/// What only some callers may see: `user.email if granted 0`, `items (Draft) if granted 1`.
pub(crate) fn restricted_places(plan: &Plan) -> Vec<String> {
    let mut out = Vec::new();
    for (id, layout) in plan.layouts.iter() {
        let path = layout_path(plan, id);
        let below = match path.as_str() {
            "" => String::new(),
            path => format!("{path}."),
        };
        for restricted in &layout.restricted {
            let types = type_names(plan, &restricted.types);
            out.push(format!(
                "{path} ({types}){}",
                if_clause(plan, restricted.granted)
            ));
        }
        for field in layout.output.iter().filter(|f| f.granted != Cond::TRUE) {
            let types = field.types.as_ref().map(|types| type_names(plan, types));
            let types = types.map_or_else(String::new, |types| format!(" ({types})"));
            let granted = if_clause(plan, field.granted);
            out.push(format!("{below}{}{types}{granted}", field.key));
        }
    }
    out.dedup();
    out
}

/// A list that is streamed.
pub(crate) fn streamed_place(plan: &Plan, stream: &StreamOutput) -> String {
    let layout = &plan.layouts[stream.layout];
    let entry = layout.output.get(stream.entry as usize);
    match entry.map(|entry| &entry.source) {
        Some(OutSource::Leaf(slot, _) | OutSource::Object(slot)) => {
            slot_path(plan, stream.layout, *slot)
        }
        _ => layout_path(plan, stream.layout),
    }
}

/// The deferred groups that a fetch belongs to.
pub(crate) fn groups_of(plan: &Plan, fetch: FetchId) -> &[u32] {
    let Some(deferral) = &plan.deferral else {
        return &[];
    };
    let part = deferral.of_fetch(fetch.index()) as usize;
    deferral.parts.get(part).map_or(&[], Vec::as_slice)
}

/// Values of the response that come with a deferred group, without those inside objects that come with it as a whole.
pub(crate) fn deferred_places(plan: &Plan, deferral: &Deferral, group: u32) -> Vec<String> {
    let has = |part: u32| {
        let part = deferral.parts.get(part as usize);
        part.is_some_and(|groups| groups.contains(&group))
    };
    let mut out: Vec<String> = Vec::new();
    let mut whole: FastSet<LayoutId> = FastSet::default();
    // Places come after those they hang below.
    for output in deferral.outputs.iter().filter(|output| has(output.part)) {
        let layout = &plan.layouts[output.layout];
        let Some(field) = layout.output.get(output.entry as usize) else {
            continue;
        };
        if let OutSource::Object(slot) = field.source
            && let Some(child) = layout.slots[usize::from(slot)].child
        {
            whole.insert(child);
        }
        if whole.contains(&output.layout) {
            continue;
        }
        let path = match field.source {
            OutSource::Leaf(slot, _) | OutSource::Object(slot) => {
                slot_path(plan, output.layout, slot)
            }
            OutSource::Typename | OutSource::Local(_) | OutSource::Null => {
                match layout_path(plan, output.layout) {
                    path if path.is_empty() => field.key.to_string(),
                    path => format!("{path}.{}", field.key),
                }
            }
        };
        if !out.contains(&path) {
            out.push(path);
        }
    }
    out
}
