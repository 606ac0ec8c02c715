//! Federation 1 subgraphs among others: what they meant, in the words of federation 2.
//!
//! Federation 1 had no `@shareable`, was loose about `@external` and knew extensions; the rules here turn such a
//! subgraph into one that the checks and the merge of federation 2 can judge. Runs for all federation 1 subgraphs
//! together, because sharing and key fields depend on what the others define.

use ogive_base::{BitSet, FastMap, FastSet};
use ogive_schema::{FieldId, OperationKind, TypeId, TypeKind};

use crate::{
    codes, fields,
    merge::root_name,
    report::Report,
    spec::Word,
    subgraph::{Fields, Subgraph},
};

/// First keys by name of the type.
pub(crate) type FirstKeys = FastMap<String, Vec<String>>;

/// Upgrades every federation 1 subgraph in place; returns what it took from all of them.
pub(crate) fn upgrade(subs: &mut [Subgraph], report: &mut Report) -> FirstKeys {
    if subs.iter().all(|s| !s.is_v1()) {
        return FirstKeys::default();
    }
    let keys = first_keys(subs);
    for sub in subs.iter_mut().filter(|s| s.is_v1()) {
        alone(sub, &keys, report);
    }
    for group in groups(subs) {
        together(subs, &group);
    }
    keys
}

/// What one subgraph needs, given the first keys of all.
pub(crate) fn alone(sub: &mut Subgraph, keys: &FirstKeys, report: &mut Report) {
    externals(sub, keys);
    field_sets(sub);
    unused(sub, report);
    sub.mark_uses();
    definitions(sub);
}

/// What depends on all definitions of one type.
pub(crate) fn together(subs: &mut [Subgraph], group: &[(u32, TypeId)]) {
    if group.iter().any(|(s, _)| subs[*s as usize].is_v1()) {
        tags(subs, group);
        share(subs, group);
    }
}

/// Definitions of types by the names they are merged under.
fn groups(subs: &[Subgraph]) -> Vec<Vec<(u32, TypeId)>> {
    let mut at: FastMap<&str, usize> = FastMap::default();
    let mut out: Vec<Vec<(u32, TypeId)>> = Vec::new();
    for (s, sub) in subs.iter().enumerate() {
        for ty in sub.merged_types() {
            let i = *at.entry(merged_name(sub, ty)).or_insert_with(|| {
                out.push(Vec::new());
                out.len() - 1
            });
            out[i].push((s as u32, ty));
        }
    }
    out
}

/// Name under which a type is merged.
fn merged_name(sub: &Subgraph, ty: TypeId) -> &str {
    match sub.root_kind(ty) {
        Some(kind) => root_name(kind),
        None => sub.schema.type_name(ty),
    }
}

/// The fields of the first key of each type, by name of the type, from the first subgraph that has one.
fn first_keys(subs: &[Subgraph]) -> FirstKeys {
    let mut out = FirstKeys::default();
    for sub in subs {
        for ty in sub.merged_types() {
            let Some(key) = sub.types[ty].keys.first() else {
                continue;
            };
            out.entry(sub.schema.type_name(ty).to_owned())
                .or_insert_with(|| {
                    key.items
                        .iter()
                        .filter_map(|i| match i {
                            fields::Item::Field { field: Some(f), .. } => {
                                Some(sub.schema.field_name(*f).to_owned())
                            }
                            _ => None,
                        })
                        .collect()
                });
        }
    }
    out
}

/// `@external` that federation 1 wrote out of habit.
fn externals(sub: &mut Subgraph, keys: &FirstKeys) {
    let types: Vec<TypeId> = sub.merged_types().collect();
    for ty in types {
        let kind = sub.schema.types[ty].kind;
        let extension = sub.is_extension(ty);
        // A key that cannot be read is a key all the same.
        let own_keys = sub
            .find(&sub.schema.types[ty].directives, Word::Key)
            .is_some();
        let foreign: &[String] = if own_keys {
            &[]
        } else {
            keys.get(sub.schema.type_name(ty)).map_or(&[], |k| &k[..])
        };
        let mut key_fields: FastSet<FieldId> = FastSet::default();
        for key in &sub.types[ty].keys {
            fields::each_field(&key.items, &mut |f, _| {
                key_fields.insert(f);
            });
        }
        for field in sub.schema.types[ty].fields.clone() {
            let name = sub.schema.field_name(field);
            let in_key =
                extension && (key_fields.contains(&field) || foreign.iter().any(|k| k == name));
            let info = &mut sub.fields[field];
            if kind == TypeKind::Interface || info.external_by_type || in_key {
                info.external = false;
                info.marked_external = None;
                info.external_by_type = false;
            }
        }
    }
}

/// `@provides` and `@requires` of what is not external, on interfaces or on leaves; keys of interfaces.
fn field_sets(sub: &mut Subgraph) {
    let types: Vec<TypeId> = sub.merged_types().collect();
    for ty in types {
        let interface = sub.schema.types[ty].kind == TypeKind::Interface;
        if interface {
            sub.types[ty].keys.clear();
        }
        for field in sub.schema.types[ty].fields.clone() {
            let mut info = std::mem::take(&mut sub.fields[field]);
            if interface
                || !sub.schema.types[sub.schema.fields[field].ty.id]
                    .kind
                    .is_composite()
            {
                info.provides = None;
            }
            if interface {
                info.requires = None;
            }
            for set in [&mut info.requires, &mut info.provides] {
                if let Some(known) = set.take() {
                    *set = keep_external(sub, known);
                }
            }
            sub.fields[field] = info;
        }
    }
}

/// What remains of a field set without the fields its subgraph resolves anyway.
fn keep_external(sub: &Subgraph, set: Fields) -> Option<Fields> {
    fn keep(
        sub: &Subgraph,
        items: &[fields::Item],
        under_external: bool,
    ) -> (Vec<fields::Item>, bool) {
        let mut out = Vec::new();
        let mut dropped = false;
        for item in items {
            match item {
                fields::Item::Field {
                    field: Some(f),
                    parent,
                    args,
                    sub: inner,
                } => {
                    let external = under_external || sub.fields[*f].external;
                    if inner.is_empty() {
                        if external {
                            out.push(item.clone());
                        } else {
                            dropped = true;
                        }
                        continue;
                    }
                    let (kept, lost) = keep(sub, inner, external);
                    dropped |= lost;
                    if kept.is_empty() {
                        dropped = true;
                    } else {
                        out.push(fields::Item::Field {
                            field: Some(*f),
                            parent: *parent,
                            args: args.clone(),
                            sub: kept,
                        });
                    }
                }
                fields::Item::On { ty, sub: inner } => {
                    let (kept, lost) = keep(sub, inner, under_external);
                    dropped |= lost;
                    if !kept.is_empty() {
                        out.push(fields::Item::On { ty: *ty, sub: kept });
                    }
                }
                other => out.push(other.clone()),
            }
        }
        (out, dropped)
    }
    let (items, dropped) = keep(sub, &set.items, false);
    if items.is_empty() {
        return None;
    }
    let text = if dropped {
        write_items(sub, &items).into()
    } else {
        set.text
    };
    Some(Fields {
        text,
        items,
        span: set.span,
    })
}

/// A field set as text.
fn write_items(sub: &Subgraph, items: &[fields::Item]) -> String {
    let mut out = String::new();
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        let inner = match item {
            fields::Item::Field {
                field,
                args,
                sub: inner,
                ..
            } => {
                out.push_str(field.map_or("__typename", |f| sub.schema.field_name(f)));
                for (i, (name, value)) in args.iter().enumerate() {
                    out.push_str(if i == 0 { "(" } else { ", " });
                    out.push_str(&format!("{name}: {value}"));
                }
                if !args.is_empty() {
                    out.push(')');
                }
                inner
            }
            fields::Item::On { ty, sub: inner } => {
                out.push_str(&format!("... on {}", sub.schema.type_name(*ty)));
                inner
            }
        };
        if !inner.is_empty() {
            out.push_str(&format!(" {{ {} }}", write_items(sub, inner)));
        }
    }
    out
}

/// External fields nothing uses go, and types that are empty then.
fn unused(sub: &mut Subgraph, report: &mut Report) {
    let types: Vec<TypeId> = sub.merged_types().collect();
    let mut used: BitSet = BitSet::new();
    for info in sub.types.as_slice().iter() {
        for key in &info.keys {
            mark(sub, &key.items, &mut used);
        }
    }
    for info in sub.fields.as_slice() {
        for set in [&info.requires, &info.provides].into_iter().flatten() {
            mark(sub, &set.items, &mut used);
        }
    }
    let mut emptied = Vec::new();
    for ty in types {
        let before = sub.schema.types[ty].fields.len();
        let row = &sub.schema.types[ty];
        let keep: Vec<FieldId> = row
            .fields
            .iter()
            .copied()
            .filter(|f| {
                let name = sub.schema.fields[*f].name;
                !sub.fields[*f].external
                    || used.contains(f.0)
                    || row
                        .interfaces
                        .iter()
                        .any(|i| sub.schema.fields_by_name.contains_key(&(*i, name)))
            })
            .collect();
        if keep.len() == before {
            continue;
        }
        let dropped: Vec<FieldId> = row
            .fields
            .iter()
            .copied()
            .filter(|f| !keep.contains(f))
            .collect();
        for field in dropped {
            let name = sub.schema.fields[field].name;
            sub.schema.fields_by_name.remove(&(ty, name));
        }
        if keep.is_empty() {
            emptied.push(ty);
        }
        sub.schema.types[ty].fields = keep;
    }
    for ty in emptied {
        let name = sub.schema.type_name(ty).to_owned();
        {
            report.error_help(
                codes::TYPE_WITH_ONLY_UNUSED_EXTERNAL,
                &name,
                format!(
                    "`{name}` of subgraph `{}` has external fields only, and nothing uses them",
                    sub.name
                ),
                "drop the type and what refers to it, or give it a field".into(),
                &[(sub.place(sub.schema.types[ty].span), String::new())],
            );
        }
        sub.schema.type_list.retain(|t| *t != ty);
    }
}

fn mark(sub: &Subgraph, items: &[fields::Item], used: &mut BitSet) {
    fields::each_field(items, &mut |field, _| {
        used.insert(field.0);
        for f in fields::implementations(&sub.schema, field) {
            used.insert(f.0);
        }
    });
}

/// Extensions become definitions; those written as `@extends` keep saying so.
fn definitions(sub: &mut Subgraph) {
    for (_, info) in sub.types.iter_mut() {
        info.defined |= info.extended;
        for key in &mut info.keys {
            key.of_extension = false;
        }
    }
    // What was external in name only stays resolvable although the type is no extension any more.
}

/// A tag on an external field stands on the definition if another subgraph says so too.
fn tags(subs: &mut [Subgraph], group: &[(u32, TypeId)]) {
    let mut tagged: FastSet<String> = FastSet::default();
    for (s, ty) in group {
        let sub = &subs[*s as usize];
        for field in &sub.schema.types[*ty].fields {
            let directives = &sub.schema.fields[*field].directives;
            if !directives.is_empty()
                && !sub.fields[*field].external
                && sub.find(directives, Word::Tag).is_some()
            {
                tagged.insert(sub.schema.field_name(*field).to_owned());
            }
        }
    }
    if tagged.is_empty() {
        return;
    }
    for (s, ty) in group {
        let sub = &mut subs[*s as usize];
        let Some(tag) = sub.words[Word::Tag as usize].filter(|_| sub.is_v1()) else {
            continue;
        };
        for field in sub.schema.types[*ty].fields.clone() {
            if sub.fields[field].external && tagged.contains(sub.schema.field_name(field)) {
                sub.schema.fields[field]
                    .directives
                    .retain(|d| d.name != tag);
            }
        }
    }
}

/// `@shareable` where federation 1 shared without saying.
fn share(subs: &mut [Subgraph], group: &[(u32, TypeId)]) {
    let is_object = |sub: &Subgraph, ty: &TypeId| sub.schema.types[*ty].kind == TypeKind::Object;
    let mut entity = false;
    let mut root = false;
    for (s, ty) in group {
        let sub = &subs[*s as usize];
        if is_object(sub, ty) {
            entity |= !sub.types[*ty].keys.is_empty();
            root |= sub.root_kind(*ty).is_some();
        }
    }
    // Who resolves which field; values are shared whoever does.
    let mut resolvers: FastMap<String, u32> = FastMap::default();
    if entity || root {
        for (s, ty) in group {
            let sub = &subs[*s as usize];
            if !is_object(sub, ty) {
                continue;
            }
            for field in &sub.schema.types[*ty].fields {
                if !sub.fields[*field].external {
                    let name = sub.schema.field_name(*field);
                    match resolvers.get_mut(name) {
                        Some(count) => *count += 1,
                        None => {
                            resolvers.insert(name.to_owned(), 1);
                        }
                    }
                }
            }
        }
    }
    for (s, ty) in group {
        let sub = &mut subs[*s as usize];
        if !sub.is_v1()
            || !is_object(sub, ty)
            || sub.root_kind(*ty) == Some(OperationKind::Subscription)
        {
            continue;
        }
        let special = entity || sub.root_kind(*ty).is_some();
        for field in sub.schema.types[*ty].fields.clone() {
            let shared = !special
                || resolvers
                    .get(sub.schema.field_name(field))
                    .is_some_and(|count| *count > 1);
            if shared && !sub.fields[field].external {
                sub.fields[field].shareable = true;
            }
        }
    }
}
