//! What each pass found, as text for `ogive plan --stage`: stable, complete enough to see why a plan is as it is.
//!
//! Waves are numbered from 1, as in plans. Objects are named by their place and concrete type
//! (`topProducts[].reviews[] Review`), values by their field.

use std::fmt::Write;

use ogive_base::BitSet;
use ogive_federation::{FieldSetId, SubgraphId, field_set::write_field_set};
use ogive_schema::TypeId;

use crate::{
    assign::{Schedule, Via, Visit},
    closure::{Closure, NEVER, Requests},
    search::Found,
    tree::{Fact, FactId, KeyAlternative, NodeId, PlaceId, Scope, Tree},
};

/// The planning tree: every object with its values, who resolves them, and the keys it can be entered by.
pub fn tree(tree: &Tree<'_>) -> String {
    let mut out = String::new();
    let client = tree.facts.iter().filter(|(_, f)| f.client.is_some());
    let _ = writeln!(
        out,
        "{} places, {} objects, {} values ({} of them the client's)",
        tree.places.len(),
        tree.nodes.len(),
        tree.facts.len(),
        client.count()
    );
    for (_, node) in tree.nodes.iter() {
        let _ = writeln!(
            out,
            "{} known to {}",
            object(tree, node.place, node.ty),
            subgraphs(tree, &node.types_known)
        );
        for key in &node.keys {
            let _ = writeln!(
                out,
                "    key of {}{}: {}",
                subgraph(tree, key.subgraph.0),
                key_owner(tree, key),
                key_text(tree, node.ty, key)
            );
        }
        for fact in &node.facts {
            let _ = writeln!(out, "    {}", value(tree, &tree.facts[*fact]));
        }
    }
    out
}

/// With everything allowed in every wave: when each object can be held by whom, and when each value is known first.
pub fn closure(tree: &Tree<'_>, scope: &Scope, waves: usize) -> String {
    let all = Requests {
        waves: vec![BitSet::all(tree.supergraph.subgraphs.len()); waves],
    };
    let mut closure = Closure::default();
    closure.run(tree, scope, &all);
    let mut out = String::new();
    let _ = writeln!(out, "everything allowed in {waves} waves");
    for id in &scope.nodes {
        let node = &tree.nodes[*id];
        let _ = writeln!(out, "{}", object(tree, node.place, node.ty));
        for wave in 0..waves {
            let open = closure.open(*id, wave);
            if open.is_empty() {
                continue;
            }
            let _ = write!(out, "    wave {}: {}", wave + 1, subgraphs(tree, open));
            let known: Vec<&str> = facts(tree, scope, *id)
                .filter(|f| closure.known(*f) == wave as u32)
                .map(|f| name(tree, &tree.facts[f]))
                .collect();
            if !known.is_empty() {
                let _ = write!(out, " -> {}", known.join(" "));
            }
            out.push('\n');
        }
        let never: Vec<&str> = facts(tree, scope, *id)
            .filter(|f| closure.known(*f) == NEVER)
            .map(|f| name(tree, &tree.facts[f]))
            .collect();
        if !never.is_empty() {
            let _ = writeln!(out, "    never: {}", never.join(" "));
        }
    }
    out
}

/// The chosen requests of a scope, wave by wave, and how good the choice is.
pub fn search(tree: &Tree<'_>, found: &Found) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", summary(found));
    for (wave, set) in found.requests.waves.iter().enumerate() {
        let _ = writeln!(out, "    wave {}: {}", wave + 1, subgraphs(tree, set));
    }
    out
}

/// How good the choice of a scope is, in one line.
pub fn summary(found: &Found) -> String {
    let requests = found.requests.count();
    let verdict = match (requests == found.lower_bound, found.proven) {
        (true, _) => "which is the lower bound",
        (false, true) => "proven to be the fewest for this many waves",
        (false, false) => "not proven to be the fewest",
    };
    format!(
        "{requests} requests in {} waves, {verdict} (lower bound {}); fuel used: {} rule firings",
        found.requests.waves.len(),
        found.lower_bound,
        found.firings
    )
}

/// Which request brings which value, and how each object is reached there.
pub fn assign(tree: &Tree<'_>, schedule: &Schedule) -> String {
    let mut visits: Vec<(usize, &Visit)> = schedule
        .visits
        .iter()
        .filter(|(_, visit)| visit.live)
        .map(|(id, visit)| (id.0 as usize, visit))
        .collect();
    visits.sort_by_key(|(id, visit)| (visit.wave, visit.subgraph, visit.node, *id));
    let mut brings: Vec<Vec<&str>> = vec![Vec::new(); schedule.visits.len()];
    for (id, fact) in tree.facts.iter() {
        if let Some(visit) = schedule.provider.get(&id) {
            brings[visit.0 as usize].push(name(tree, fact));
        }
    }
    let mut out = String::new();
    let mut request = None;
    for (id, visit) in visits {
        if request != Some((visit.wave, visit.subgraph)) {
            request = Some((visit.wave, visit.subgraph));
            let _ = writeln!(
                out,
                "wave {} {}",
                visit.wave + 1,
                subgraph(tree, visit.subgraph)
            );
        }
        let node = &tree.nodes[visit.node];
        let way = match visit.via {
            Via::Root => "root".to_owned(),
            Via::Parent(_) => "below".to_owned(),
            Via::Key(key) => match node.keys.get(key) {
                Some(key) => {
                    let owner = key_owner(tree, key);
                    format!("by{owner} {}", key_text(tree, node.ty, key))
                }
                None => "by ?".to_owned(),
            },
        };
        let _ = writeln!(
            out,
            "    {} ({way}): {}",
            object(tree, node.place, node.ty),
            brings[id].join(" ")
        );
    }
    out
}

fn facts<'t>(
    tree: &'t Tree<'_>,
    scope: &'t Scope,
    node: NodeId,
) -> impl Iterator<Item = FactId> + 't {
    let facts = match node {
        Tree::ROOT => &scope.root_facts,
        node => &tree.nodes[node].facts,
    };
    facts.iter().copied()
}

/// `me.reviews[] Review`; the root is its type alone.
fn object(tree: &Tree<'_>, place: PlaceId, ty: TypeId) -> String {
    let mut steps = Vec::new();
    let mut at = place;
    // Places come after their parents.
    while let Some(edge) = tree.places[at].edge {
        let fact = &tree.facts[edge];
        let name = match fact.client {
            Some(client) => &tree.op.keys[tree.op.fields[client].key],
            None => tree.schema().field_name(fact.field),
        };
        let lists = usize::from(fact.ty.wrapping.lists());
        steps.push(format!("{name}{}", "[]".repeat(lists)));
        at = tree.nodes[fact.node].place;
    }
    steps.reverse();
    let name = tree.schema().type_name(ty);
    match steps.as_slice() {
        [] => name.to_owned(),
        steps => format!("{} {name}", steps.join(".")),
    }
}

/// The field's name, or that of the concrete type.
fn name<'t>(tree: &'t Tree<'_>, fact: &Fact) -> &'t str {
    if fact.is_type {
        "__typename"
    } else {
        tree.schema().field_name(fact.field)
    }
}

fn value(tree: &Tree<'_>, fact: &Fact) -> String {
    let mut out = name(tree, fact).to_owned();
    if let Some(client) = fact.client {
        let key = &tree.op.keys[tree.op.fields[client].key];
        if *key != *out {
            out = format!("{key}: {out}");
        }
    } else {
        out.push_str(" (helper)");
    }
    let _ = write!(out, " from {}", subgraphs(tree, &fact.plain));
    let provided = fact.provided.difference(&fact.plain);
    if !provided.is_empty() {
        let _ = write!(out, ", provided by {}", subgraphs(tree, &provided));
    }
    for requirement in &fact.requires {
        let _ = write!(
            out,
            ", {} given {}",
            subgraph(tree, requirement.subgraph.0),
            match requirement.fields {
                Some(set) => fields(tree, tree.nodes[fact.node].ty, set),
                None if requirement.contexts.is_empty() => "__typename".to_owned(),
                None => String::new(),
            }
        );
        for context in &requirement.contexts {
            let above = &tree.nodes[context.node];
            let _ = write!(
                out,
                " {} of {}",
                fields(tree, above.ty, context.fields),
                tree.schema().type_name(above.ty)
            );
        }
    }
    out
}

/// ` Media` for a key of the interface `Media`; empty for the concrete type's own.
fn key_owner(tree: &Tree<'_>, key: &KeyAlternative) -> String {
    let name = key.by_interface.map(|ty| tree.schema().type_name(ty));
    name.map_or(String::new(), |name| format!(" {name}"))
}

fn key_text(tree: &Tree<'_>, ty: TypeId, key: &KeyAlternative) -> String {
    match key.fields {
        Some(set) => fields(tree, ty, set),
        None => "being a root".to_owned(),
    }
}

/// A field set as far as it concerns one concrete type.
fn fields(tree: &Tree<'_>, ty: TypeId, set: FieldSetId) -> String {
    let mut out = String::new();
    let types = tree.schema().types[ty].possible.clone();
    write_field_set(
        tree.schema(),
        &tree.graph().field_sets,
        set,
        &types,
        &mut out,
    );
    out
}

fn subgraph<'t>(tree: &'t Tree<'_>, subgraph: u32) -> &'t str {
    let found = tree.supergraph.subgraphs.get(SubgraphId(subgraph));
    found.map_or("?", |subgraph| &subgraph.name)
}

fn subgraphs(tree: &Tree<'_>, set: &BitSet) -> String {
    if set.is_empty() {
        return "nobody".to_owned();
    }
    let names: Vec<&str> = set.iter().map(|s| subgraph(tree, s)).collect();
    names.join(", ")
}
