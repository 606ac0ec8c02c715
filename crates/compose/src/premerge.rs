//! Rules that need all subgraphs and nothing merged yet.

use ogive_base::{FastMap, FastSet};
use ogive_schema::{OperationKind, TypeId, TypeKind};

use crate::{
    codes,
    report::{Place, Report, quoted},
    subgraph::Subgraph,
    validate::names_of,
};

/// Checks the subgraphs together.
pub(crate) fn check(subs: &[Subgraph], report: &mut Report) {
    interface_objects(subs, report);
    interface_keys(subs, report);
}

/// A graph without queries; judged after the merge rules had their say.
pub(crate) fn queries(subs: &[Subgraph], report: &mut Report) {
    let has_query = |s: &Subgraph| {
        s.schema
            .root(OperationKind::Query)
            .is_some_and(|q| !s.schema.types[q].fields.is_empty())
    };
    if subs.iter().any(has_query) {
        return;
    }
    let at: Vec<(Place, String)> = subs
        .iter()
        .map(|s| (s.place(ogive_base::Span::new(0, 0)), String::new()))
        .collect();
    report.error_help(
        codes::NO_QUERIES,
        "",
        "no subgraph defines a query".into(),
        "add a field to `type Query` in one of them".into(),
        &at,
    );
}

/// Extensions of a type that nobody defines.
pub(crate) fn extensions(subs: &[Subgraph], report: &mut Report) {
    let mut defined: FastSet<&str> = FastSet::default();
    let mut extended: Vec<(&str, usize, TypeId)> = Vec::new();
    for (s, sub) in subs.iter().enumerate() {
        for ty in sub.merged_types() {
            let name = sub.schema.type_name(ty);
            if sub.is_extension(ty) && sub.root_kind(ty).is_none() {
                extended.push((name, s, ty));
            } else {
                defined.insert(name);
            }
        }
    }
    let mut seen: FastSet<&str> = FastSet::default();
    for (name, s, ty) in extended {
        if defined.contains(name) || !seen.insert(name) {
            continue;
        }
        let sub = &subs[s];
        report.error_help(
            codes::EXTENSION_WITH_NO_BASE,
            name,
            format!(
                "`{name}` is extended by subgraph `{}` and defined by none",
                sub.name
            ),
            "define it in the subgraph it belongs to".into(),
            &[(sub.place(sub.schema.types[ty].span), String::new())],
        );
    }
}

fn interface_objects(subs: &[Subgraph], report: &mut Report) {
    for (s, sub) in subs.iter().enumerate() {
        for ty in sub
            .merged_types()
            .filter(|t| sub.types[*t].interface_object)
        {
            let name = sub.schema.type_name(ty);
            let at = vec![(sub.place(sub.schema.types[ty].span), String::new())];
            let interfaces: Vec<(&Subgraph, TypeId)> = subs
                .iter()
                .enumerate()
                .filter(|(o, _)| *o != s)
                .filter_map(|(_, o)| {
                    let t = o.schema.type_by_name(name)?;
                    (o.schema.types[t].kind == TypeKind::Interface).then_some((o, t))
                })
                .collect();
            // Implementations the same subgraph defines too.
            for (other, interface) in &interfaces {
                for t in other.schema.types[*interface].possible.iter() {
                    let implementation = other.schema.type_name(TypeId(t));
                    if let Some(own) = sub.schema.type_by_name(implementation) {
                        let mut at = at.clone();
                        at.push((
                            sub.place(sub.schema.types[own].span),
                            "an implementation".into(),
                        ));
                        report.error_help(
                            codes::INTERFACE_OBJECT_USAGE_ERROR,
                            name,
                            format!("subgraph `{}` has `{name}` as an `@interfaceObject` and defines its implementation `{implementation}` too", sub.name),
                            "define either the interface with its implementations or the interface object".into(),
                            &at,
                        );
                    }
                }
            }
        }
    }
}

/// Interface objects whose interface nobody defines.
pub(crate) fn orphans(subs: &[Subgraph], report: &mut Report) {
    let mut seen: FastSet<&str> = FastSet::default();
    for sub in subs {
        for ty in sub
            .merged_types()
            .filter(|t| sub.types[*t].interface_object)
        {
            let name = sub.schema.type_name(ty);
            let holders = subs
                .iter()
                .filter_map(|s| Some((s, s.schema.type_by_name(name)?)));
            let defined = holders.clone().any(|(s, t)| !s.types[t].interface_object);
            if defined || !seen.insert(name) {
                continue;
            }
            let at: Vec<(Place, String)> = holders
                .map(|(s, t)| (s.place(s.schema.types[t].span), String::new()))
                .collect();
            report.error_help(
                codes::INTERFACE_OBJECT_USAGE_ERROR,
                name,
                format!("`{name}` is an `@interfaceObject` wherever it is defined; no subgraph defines interface `{name}`"),
                format!("define `interface {name}` with its implementations and the same key in another subgraph"),
                &at,
            );
        }
    }
}

/// A subgraph with a keyed interface must know every implementation.
fn interface_keys(subs: &[Subgraph], report: &mut Report) {
    let mut implementations: FastMap<&str, Vec<&str>> = FastMap::default();
    let mut interface_objects: FastSet<&str> = FastSet::default();
    for sub in subs {
        for ty in sub.merged_types() {
            if sub.types[ty].interface_object {
                interface_objects.insert(sub.schema.type_name(ty));
            }
            if sub.schema.types[ty].kind == TypeKind::Interface {
                let known = implementations.entry(sub.schema.type_name(ty)).or_default();
                for t in sub.schema.types[ty].possible.iter() {
                    let name = sub.schema.type_name(TypeId(t));
                    if !known.contains(&name) {
                        known.push(name);
                    }
                }
            }
        }
    }
    for sub in subs {
        for ty in sub.merged_types() {
            if sub.schema.types[ty].kind != TypeKind::Interface
                || !sub.types[ty].keys.iter().any(|k| k.resolvable)
            {
                continue;
            }
            let name = sub.schema.type_name(ty);
            let own: Vec<&str> = sub.schema.types[ty]
                .possible
                .iter()
                .map(|t| sub.schema.type_name(TypeId(t)))
                .collect();
            let missing: Vec<&str> = implementations
                .get(name)
                .into_iter()
                .flatten()
                .copied()
                .filter(|i| !own.contains(i))
                .collect();
            if missing.is_empty() {
                continue;
            }
            let key = &sub.types[ty].keys[0];
            let types = quoted(&missing);
            let _ = names_of(sub, &key.items);
            report.error_help(
                codes::INTERFACE_KEY_MISSING_IMPLEMENTATION_TYPE,
                name,
                format!("interface `{name}` has a key in subgraph `{}`, which does not know its implementations {types}", sub.name),
                format!("define {types} with the key in subgraph `{}`", sub.name),
                &[(sub.place(key.span), String::new()), (sub.place(sub.schema.types[ty].span), String::new())],
            );
        }
    }
}
