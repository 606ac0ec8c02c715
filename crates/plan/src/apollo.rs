//! A plan in the words of Apollo's plan tree (`QueryPlan`, `Sequence`, `Parallel`, `Flatten`, `Fetch`, `Condition`),
//! which many tools read: as JSON ([`json`]) and in the usual text notation ([`text`]).
//!
//! The tree says less than the plan. Waves become `Sequence`s of `Parallel`s, one per group of requests that have
//! nothing to do with each other, although at run time a request waits for what it needs only. And a `Fetch` of the
//! tree has one path: a request that looks up entities of several places appears once per place, each time with the
//! same `id`, so requests are counted by distinct `id`s.

use ogive_base::id::Id;
use ogive_json::Writer;
use ogive_syntax::ast::{Definition, Selection};

use crate::{
    deferral::Deferral,
    describe::{groups_of, laid_out, parse, request_text, subgraph_name, waves},
    ids::*,
    ir::*,
    representation::Member,
};

/// Most literals of a condition that is shown as nested `Condition`s; a longer one is left out.
const LITERALS_MAX: usize = 8;

/// One node of the tree.
enum Node<'p> {
    Sequence(Vec<Node<'p>>),
    Parallel(Vec<Node<'p>>),
    /// Variable, wanted value, what happens then.
    Condition(&'p str, bool, Box<Node<'p>>),
    Subscription(Box<Node<'p>>, Option<Box<Node<'p>>>),
    /// What is answered first, and by deferred group what may come later.
    Defer(Option<Box<Node<'p>>>, Vec<(u32, Option<Node<'p>>)>),
    /// Root fields of a request.
    Root(FetchId),
    /// One place of a look-up.
    Entities(FetchId, &'p Lookup, &'p Target),
}

/// The tree as JSON: `{"kind":"QueryPlan","node":..}`, indented.
pub fn json(plan: &Plan) -> String {
    let mut out = Writer::pretty();
    write_plan(plan, &mut out);
    out.into_string()
}

/// The tree as JSON on one line.
pub fn json_line(plan: &Plan) -> String {
    let mut out = Writer::compact();
    write_plan(plan, &mut out);
    out.into_string()
}

fn write_plan(plan: &Plan, out: &mut Writer) {
    begin(out, "QueryPlan");
    if let Some(root) = tree(plan) {
        out.key("node");
        write_node(plan, &root, out);
    }
    out.end_object();
}

/// The tree, from the plan's waves.
fn tree(plan: &Plan) -> Option<Node<'_>> {
    match &plan.deferral {
        Some(deferral) => part(plan, deferral, None),
        None => steps(plan, |_| true),
    }
}

/// What comes with a deferred group, or first, and the groups below it. A request of several groups stands in the first
/// of them. Groups nest as deep as fragments, which the parser's depth limit bounds.
fn part<'p>(plan: &'p Plan, deferral: &'p Deferral, group: Option<u32>) -> Option<Node<'p>> {
    let first = |id| groups_of(plan, id).first().copied();
    let own = steps(plan, |id| deferral.fragment(first(id)) == group);
    let groups = (0..).zip(&deferral.groups);
    let below = groups
        .filter(|(_, below)| !below.is_conditional() && deferral.fragment(below.parent) == group);
    let below: Vec<_> = below
        .map(|(id, _)| (id, part(plan, deferral, Some(id))))
        .collect();
    if below.is_empty() {
        own
    } else {
        Some(Node::Defer(own.map(Box::new), below))
    }
}

/// Requests that the ones of a group wait for, without its own.
fn depends(plan: &Plan, group: u32) -> Vec<FetchId> {
    let is_own = |id: &FetchId| groups_of(plan, *id).contains(&group);
    let own = plan.fetches.ids().filter(is_own);
    let mut out: Vec<FetchId> = own
        .flat_map(|id| plan.fetches[id].dependencies.iter().copied())
        .filter(|id| !is_own(id))
        .collect();
    out.sort();
    out.dedup();
    out
}

/// Some of the requests.
fn steps(plan: &Plan, wanted: impl Fn(FetchId) -> bool) -> Option<Node<'_>> {
    let mut groups: Vec<Vec<FetchId>> = Vec::new();
    for (id, fetch) in plan.fetches.iter().filter(|(id, _)| wanted(*id)) {
        // Dependencies come first, so one pass joins all groups a fetch connects.
        let mut own = vec![id];
        groups.retain_mut(|group| {
            let connected = fetch.dependencies.iter().any(|d| group.contains(d));
            if connected {
                own.append(group);
            }
            !connected
        });
        own.sort();
        groups.push(own);
    }
    groups.sort();
    if plan.kind == OperationKind::Subscription {
        let mut nodes = waves(plan)
            .into_iter()
            .filter_map(|(_, ids)| wave(plan, &ids));
        let primary = nodes.next()?;
        let rest = joined(nodes.collect(), Node::Sequence);
        return Some(Node::Subscription(Box::new(primary), rest.map(Box::new)));
    }
    let branches = groups.into_iter().filter_map(|group| {
        let steps = waves(plan).into_iter().filter_map(|(_, ids)| {
            let own: Vec<FetchId> = ids.into_iter().filter(|id| group.contains(id)).collect();
            wave(plan, &own)
        });
        joined(steps.collect(), Node::Sequence)
    });
    joined(branches.collect(), Node::Parallel)
}

fn wave<'p>(plan: &'p Plan, ids: &[FetchId]) -> Option<Node<'p>> {
    let nodes = ids.iter().flat_map(|id| {
        let fetch = &plan.fetches[*id];
        let root = fetch.root.iter().map(|root| (Node::Root(*id), root.cond));
        let lookups = fetch.lookups.iter().flat_map(|lookup| {
            let node = |target| Node::Entities(*id, lookup, target);
            lookup.targets.iter().map(move |t| (node(t), t.cond))
        });
        let nodes: Vec<(Node<'p>, Cond)> = root.chain(lookups).collect();
        nodes
    });
    let nodes = nodes.map(|(node, cond)| conditional(plan, node, cond));
    joined(nodes.collect(), Node::Parallel)
}

fn joined<'p>(mut nodes: Vec<Node<'p>>, many: fn(Vec<Node<'p>>) -> Node<'p>) -> Option<Node<'p>> {
    match nodes.len() {
        0 | 1 => nodes.pop(),
        _ => Some(many(nodes)),
    }
}

/// A conjunction as nested conditions; other conditions cannot be said in this tree.
fn conditional<'p>(plan: &'p Plan, node: Node<'p>, cond: Cond) -> Node<'p> {
    let literals = match plan.conditions.get(cond).map(Vec::as_slice) {
        // Neither can what depends on the caller.
        Some([term])
            if term.len() <= LITERALS_MAX
                && (term.iter()).all(|(v, _)| (*v as usize) < plan.variables.len()) =>
        {
            term.as_slice()
        }
        _ => &[],
    };
    literals
        .iter()
        .rev()
        .fold(node, |node, (variable, wanted)| {
            let name = plan.variables.get(*variable as usize);
            Node::Condition(name.map_or("?", |name| name), *wanted, Box::new(node))
        })
}

fn begin(out: &mut Writer, kind: &str) {
    out.begin_object();
    out.key("kind");
    out.string(kind);
}

/// The tree is a constant number of levels deep, plus [`LITERALS_MAX`].
fn write_node(plan: &Plan, node: &Node<'_>, out: &mut Writer) {
    match node {
        Node::Sequence(nodes) | Node::Parallel(nodes) => {
            let sequence = matches!(node, Node::Sequence(_));
            begin(out, if sequence { "Sequence" } else { "Parallel" });
            out.key("nodes");
            out.begin_array();
            for node in nodes {
                write_node(plan, node, out);
            }
            out.end_array();
            out.end_object();
        }
        Node::Condition(variable, wanted, node) => {
            begin(out, "Condition");
            out.key("condition");
            out.string(variable);
            out.key(if *wanted { "ifClause" } else { "elseClause" });
            write_node(plan, node, out);
            out.end_object();
        }
        Node::Subscription(primary, rest) => {
            begin(out, "Subscription");
            out.key("primary");
            write_node(plan, primary, out);
            if let Some(rest) = rest {
                out.key("rest");
                write_node(plan, rest, out);
            }
            out.end_object();
        }
        Node::Defer(primary, deferred) => {
            begin(out, "Defer");
            out.key("primary");
            out.begin_object();
            if let Some(node) = primary {
                out.key("node");
                write_node(plan, node, out);
            }
            out.end_object();
            out.key("deferred");
            out.begin_array();
            for (group, node) in deferred {
                write_deferred(plan, *group, node.as_ref(), out);
            }
            out.end_array();
            out.end_object();
        }
        Node::Root(id) => write_fetch(plan, *id, None, out),
        Node::Entities(id, lookup, target) => {
            begin(out, "Flatten");
            out.key("path");
            out.begin_array();
            for step in path(plan, target.layout) {
                out.string(&step);
            }
            out.end_array();
            out.key("node");
            write_fetch(plan, *id, Some((lookup, target)), out);
            out.end_object();
        }
    }
}

fn write_deferred(plan: &Plan, id: u32, node: Option<&Node<'_>>, out: &mut Writer) {
    let deferral = plan.deferral.as_ref();
    let Some(group) = deferral.and_then(|d| d.groups.get(id as usize)) else {
        return;
    };
    out.begin_object();
    out.key("depends");
    out.begin_array();
    for fetch in depends(plan, id) {
        out.begin_object();
        out.key("id");
        out.string(&fetch.0.to_string());
        out.end_object();
    }
    out.end_array();
    if let Some(label) = &group.label {
        out.key("label");
        out.string(label);
    }
    if let Some(variable) = group.variable {
        let name = plan.variables.get(variable as usize);
        out.key("if");
        out.string(name.map_or("?", |name| name));
    }
    out.key("queryPath");
    out.begin_array();
    for step in path(plan, group.layout) {
        out.string(&step);
    }
    out.end_array();
    if let Some(node) = node {
        out.key("node");
        write_node(plan, node, out);
    }
    out.end_object();
}

fn write_fetch(plan: &Plan, id: FetchId, part: Option<(&Lookup, &Target)>, out: &mut Writer) {
    let fetch = &plan.fetches[id];
    begin(out, "Fetch");
    out.key("id");
    out.string(&id.0.to_string());
    out.key("serviceName");
    out.string(subgraph_name(plan, fetch.subgraph));
    if let Some((_, target)) = part.filter(|(lookup, _)| !lookup.is_reentry()) {
        out.key("requires");
        out.begin_array();
        for (typename, members) in required(plan, target) {
            begin(out, "InlineFragment");
            out.key("typeCondition");
            out.string(&typename);
            out.key("selections");
            out.begin_array();
            begin(out, "Field");
            out.key("name");
            out.string("__typename");
            out.end_object();
            write_members(&members, out);
            out.end_array();
            out.end_object();
        }
        out.end_array();
    }
    out.key("variableUsages");
    out.begin_array();
    for used in &fetch.variables {
        let name = plan.variables.get(used.variable as usize);
        out.string(name.map_or("?", |name| name));
    }
    out.end_array();
    out.key("operation");
    out.string(&request_text(fetch));
    out.key("operationKind");
    out.string(fetch.kind.as_str());
    out.end_object();
}

/// Nesting is that of the schema's key and requires selections.
fn write_members(members: &[&Member], out: &mut Writer) {
    for member in members {
        begin(out, "Field");
        out.key("name");
        out.string(&member_name(member));
        if !member.members.is_empty() {
            out.key("selections");
            out.begin_array();
            write_members(&member.members.iter().collect::<Vec<_>>(), out);
            out.end_array();
        }
        out.end_object();
    }
}

fn member_name(member: &Member) -> String {
    let key = String::from_utf8_lossy(&member.key_json);
    key.trim_end_matches(':').trim_matches('"').to_owned()
}

/// What is sent of an object, by type; alternatives one after another.
fn required<'p>(plan: &'p Plan, target: &'p Target) -> Vec<(String, Vec<&'p Member>)> {
    let all = plan.layouts.get(target.layout).map(|layout| &layout.types);
    let types = target.types.as_ref().or(all);
    let mut out = Vec::new();
    for representation in &target.representations {
        if let Some(typename) = &representation.typename {
            let members = representation.members.iter().collect();
            out.push((typename.to_string(), members));
            continue;
        }
        for ty in types.iter().flat_map(|types| types.iter()) {
            let name = plan.types.get(RuntimeType(ty));
            let members = representation.members.iter();
            let members = members.filter(|m| m.types.as_ref().is_none_or(|t| t.contains(ty)));
            out.push((
                name.map_or("?".to_owned(), |name| name.to_string()),
                members.filter(|m| member_name(m) != "__typename").collect(),
            ));
        }
    }
    out
}

/// Response keys from the root, with `@` for every list.
fn path(plan: &Plan, layout: LayoutId) -> Vec<String> {
    let mut steps = Vec::new();
    let mut at = layout;
    // A layout's parent comes before it, so a broken plan cannot make this loop.
    while let Some((parent, slot)) = plan.layouts.get(at).and_then(|l| l.parent)
        && parent < at
    {
        let slots = plan.layouts.get(parent).map(|layout| &layout.slots);
        let slot = slots.and_then(|slots| slots.get(usize::from(slot)));
        if let Some(slot) = slot {
            steps.extend((0..slot.lists).map(|_| "@".to_owned()));
            steps.push(slot.client_key.as_deref().unwrap_or(&slot.name).to_owned());
        }
        at = parent;
    }
    steps.reverse();
    steps
}

/// The tree in the usual text notation.
pub fn text(plan: &Plan) -> String {
    let mut out = String::from("QueryPlan {\n");
    if let Some(root) = tree(plan) {
        text_node(plan, &root, 1, &mut out);
    }
    out.push_str("}\n");
    out
}

fn line(depth: usize, text: &str, out: &mut String) {
    out.push_str(&"  ".repeat(depth));
    out.push_str(text);
    out.push('\n');
}

fn text_node(plan: &Plan, node: &Node<'_>, depth: usize, out: &mut String) {
    match node {
        Node::Sequence(nodes) | Node::Parallel(nodes) => {
            let sequence = matches!(node, Node::Sequence(_));
            line(
                depth,
                if sequence { "Sequence {" } else { "Parallel {" },
                out,
            );
            for node in nodes {
                text_node(plan, node, depth + 1, out);
            }
            line(depth, "},", out);
        }
        Node::Condition(variable, wanted, node) => {
            let word = if *wanted { "Include" } else { "Skip" };
            line(depth, &format!("{word}(if: ${variable}) {{"), out);
            text_node(plan, node, depth + 1, out);
            line(depth, "},", out);
        }
        Node::Subscription(primary, rest) => {
            line(depth, "Subscription {", out);
            line(depth + 1, "Primary: {", out);
            text_node(plan, primary, depth + 2, out);
            line(depth + 1, "},", out);
            if let Some(rest) = rest {
                line(depth + 1, "Rest: {", out);
                text_node(plan, rest, depth + 2, out);
                line(depth + 1, "}", out);
            }
            line(depth, "},", out);
        }
        Node::Defer(primary, deferred) => {
            line(depth, "Defer {", out);
            line(depth + 1, "Primary {", out);
            if let Some(node) = primary {
                text_node(plan, node, depth + 2, out);
            }
            line(depth + 1, "}, [", out);
            for (id, node) in deferred {
                line(depth + 2, &deferred_head(plan, *id), out);
                if let Some(node) = node {
                    text_node(plan, node, depth + 3, out);
                }
                line(depth + 2, "},", out);
            }
            line(depth + 1, "]", out);
            line(depth, "},", out);
        }
        Node::Root(id) => text_fetch(plan, *id, None, depth, out),
        Node::Entities(id, lookup, target) => {
            let path = path(plan, target.layout).join(".");
            line(depth, &format!("Flatten(path: \"{path}\") {{"), out);
            text_fetch(plan, *id, Some((lookup, target)), depth + 1, out);
            line(depth, "},", out);
        }
    }
}

fn deferred_head(plan: &Plan, id: u32) -> String {
    let deferral = plan.deferral.as_ref();
    let Some(group) = deferral.and_then(|d| d.groups.get(id as usize)) else {
        return "Deferred() {".to_owned();
    };
    let depends: Vec<String> = depends(plan, id).iter().map(|f| f.0.to_string()).collect();
    let mut out = format!(
        "Deferred(depends: [{}], path: \"{}\"",
        depends.join(", "),
        path(plan, group.layout).join(".")
    );
    if let Some(label) = &group.label {
        out += &format!(", label: {label:?}");
    }
    if let Some(variable) = group.variable {
        let name = plan.variables.get(variable as usize);
        out += &format!(", if: ${}", name.map_or("?", |name| name));
    }
    out + ") {"
}

fn text_fetch(
    plan: &Plan,
    id: FetchId,
    part: Option<(&Lookup, &Target)>,
    depth: usize,
    out: &mut String,
) {
    let fetch = &plan.fetches[id];
    let subgraph = subgraph_name(plan, fetch.subgraph);
    let head = format!("Fetch(service: \"{subgraph}\", id: {}) {{", id.index());
    line(depth, &head, out);
    let request = request_text(fetch);
    let selection = match part {
        Some((lookup, _)) if lookup.is_reentry() => selection_of(&request, |_| false),
        Some((lookup, target)) => {
            line(depth + 1, "{", out);
            for (typename, members) in required(plan, target) {
                line(depth + 2, &format!("... on {typename} {{"), out);
                line(depth + 3, "__typename", out);
                text_members(&members, depth + 3, out);
                line(depth + 2, "}", out);
            }
            line(depth + 1, "} =>", out);
            selection_of(&request, |key| key == &*lookup.response_key)
        }
        // Entity look-ups of the same request are shown at their places.
        None if fetch.lookups.is_empty() => selection_of(&request, |_| false),
        None => None,
    };
    for text in laid_out(selection.unwrap_or(request)).trim_end().lines() {
        line(depth + 1, text, out);
    }
    line(depth, "},", out);
}

fn text_members(members: &[&Member], depth: usize, out: &mut String) {
    for member in members {
        let mut name = member_name(member);
        if member.members.is_empty() {
            line(depth, &name, out);
            continue;
        }
        name.push_str(" {");
        line(depth, &name, out);
        text_members(&member.members.iter().collect::<Vec<_>>(), depth + 1, out);
        line(depth, "}", out);
    }
}

/// The selection set of the first root field whose response key `wanted` accepts, or of the operation itself if it
/// accepts none.
fn selection_of(request: &str, wanted: impl Fn(&str) -> bool) -> Option<String> {
    let parsed = parse(request);
    if !parsed.errors.is_empty() {
        return None;
    }
    let document = &parsed.document;
    let operation = document.definitions.iter().find_map(|d| match d {
        Definition::Operation(operation) => Some(operation),
        _ => None,
    })?;
    let found =
        document[operation.selection_set.items]
            .iter()
            .find_map(|selection| match selection {
                Selection::Field(field) if wanted(document.name(field.response_key())) => {
                    field.selection_set
                }
                _ => None,
            });
    let set = found.unwrap_or(operation.selection_set);
    Some(document.text(set.span).to_owned())
}
