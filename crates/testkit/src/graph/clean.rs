//! Makes a model consistent by removing what hangs in the air.
//!
//! The generator adds and drops roles freely and the shrinker removes anything at all; this pass then restores what
//! composition would insist on: field sets refer to fields of their subgraph, external fields serve something,
//! interfaces are implemented everywhere, overrides have both ends, no type is empty or unreachable. It only removes,
//! so it reaches a fixpoint.

use std::collections::{BTreeSet, HashSet};

use super::{
    FieldSet, InputModel, Item, KeyModel, Kind, Model, Place, SCALARS, Sub, Subs, TypeModel,
    interface_objects,
};

/// Two keys of one entity that may be null, though never both.
pub const SPARE_KEYS: [&str; 2] = ["na", "nb"];

/// Removes inconsistencies until there are none.
pub fn clean(model: &mut Model) {
    loop {
        interface_objects::copy(model);
        let before = model.clone();
        leaf_places(model);
        spare_keys(model);
        members(model);
        fields(model);
        field_sets(model);
        unused_externals(model);
        overrides(model);
        interfaces(model);
        interfaces_of_interfaces(model);
        empty_types(model);
        seen(model);
        collect_garbage(model);
        interface_objects::settle(model);
        if *model == before {
            break;
        }
    }
    unused_subgraphs(model);
}

/// Scalars, enums and input objects are defined where they are used.
fn leaf_places(model: &mut Model) {
    let mut used: BTreeSet<(String, Sub)> = BTreeSet::new();
    for ty in &model.types {
        for field in &ty.fields {
            for (sub, source) in &field.sources {
                used.insert((source.ty.name().to_owned(), *sub));
                for arg in &field.args {
                    used.insert((arg.ty.name().to_owned(), *sub));
                }
            }
        }
    }
    loop {
        let mut more = Vec::new();
        for (name, sub) in &used {
            if let Some(ty) = model.ty(name).filter(|t| t.kind == Kind::Input) {
                for input in &ty.inputs {
                    more.push((input.ty.name().to_owned(), *sub));
                }
            }
        }
        let before = used.len();
        used.extend(more);
        if used.len() == before {
            break;
        }
    }
    for ty in &mut model.types {
        match ty.kind {
            Kind::Scalar | Kind::Input | Kind::Enum => {
                let here = |sub: &Sub| {
                    used.contains(&(ty.name.clone(), *sub))
                        && (ty.kind != Kind::Enum
                            || ty.members.iter().any(|(_, s)| s & (1 << sub) != 0))
                };
                let places: Vec<Sub> = (0..model.subgraphs.len()).filter(here).collect();
                ty.places = places.into_iter().map(|s| (s, Place::default())).collect();
            }
            _ => {}
        }
    }
}

/// Members of unions must be defined in the same subgraph.
fn members(model: &mut Model) {
    let placed = placed(model);
    for ty in &mut model.types {
        let here = ty.subs();
        for (member, subs) in &mut ty.members {
            match ty.kind {
                Kind::Union => {
                    for sub in super::subs(*subs) {
                        if !placed.contains(&(member.clone(), sub)) || here & (1 << sub) == 0 {
                            *subs &= !(1 << sub);
                        }
                    }
                }
                Kind::Enum => *subs &= here,
                _ => {}
            }
        }
        ty.members.retain(|(_, subs)| *subs != 0);
    }
}

fn placed(model: &Model) -> HashSet<(String, Sub)> {
    model
        .types
        .iter()
        .flat_map(|t| {
            let defined = t.places.iter().filter(|(_, p)| p.via.is_none());
            defined.map(|(s, _)| (t.name.clone(), *s))
        })
        .collect()
}

fn is_defined(placed: &HashSet<(String, Sub)>, name: &str, sub: Sub) -> bool {
    SCALARS.contains(&name) || placed.contains(&(name.to_owned(), sub))
}

/// Fields need their parent and value types; a field that nobody resolves is none.
fn fields(model: &mut Model) {
    let placed = placed(model);
    let names: HashSet<String> = model.types.iter().map(|t| t.name.clone()).collect();
    let mut without_data: HashSet<(String, String)> = HashSet::new();
    for ty in &model.types {
        for field in &ty.fields {
            let value = field.sources.values().next().map_or("", |s| s.ty.name());
            if matches!(
                model.kind(value),
                Kind::Enum | Kind::Union | Kind::Interface
            ) && model.domain(field).is_empty()
            {
                without_data.insert((ty.name.clone(), field.name.clone()));
            }
        }
    }
    for ty in &mut model.types {
        let name = ty.name.clone();
        ty.fields
            .retain(|f| !without_data.contains(&(name.clone(), f.name.clone())));
        let here = ty.subs();
        for field in &mut ty.fields {
            field
                .args
                .retain(|a| SCALARS.contains(&a.ty.name()) || names.contains(a.ty.name()));
            field.sources.retain(|sub, source| {
                here & (1 << sub) != 0 && is_defined(&placed, source.ty.name(), *sub)
            });
        }
        ty.fields.retain(|f| f.active() != 0);
        inputs(&mut ty.inputs, here);
        for field in &mut ty.fields {
            let all = field.sources.keys().fold(0, |set: Subs, s| set | 1 << s);
            inputs(&mut field.args, all);
            // Whoever calls a field external has the arguments of all that define it, and of the same types.
            let defining = field.sources.iter().filter(|(_, s)| !s.external);
            let defining = defining.fold(0, |set: Subs, (s, _)| set | 1 << s);
            field
                .args
                .retain(|a| a.only == 0 || defining & !a.only != 0);
            if all != defining {
                field.args.iter_mut().for_each(|a| a.loose = 0);
            }
        }
        ty.inputs
            .retain(|i| SCALARS.contains(&i.ty.name()) || names.contains(i.ty.name()));
    }
}

/// An input that only some subgraphs know is known to some but not to all of them; likewise one they take null for.
fn inputs(inputs: &mut Vec<InputModel>, all: Subs) {
    inputs.retain_mut(|input| {
        let local = input.only != 0;
        input.only &= all;
        input.loose &= all;
        if input.loose == all || !input.ty.is_non_null() || local {
            input.loose = 0;
        }
        !local || (input.only != 0 && input.only != all)
    });
}

/// A key that may be null stands beside its spare, or not at all.
fn spare_keys(model: &mut Model) {
    for ty in &mut model.types {
        let mut single = Vec::new();
        for (sub, place) in &ty.places {
            let has = |name: &str| {
                place
                    .keys
                    .iter()
                    .any(|k| k.resolvable && k.fields == FieldSet::leaves(&[name]))
            };
            let known = |name: &str| {
                ty.field(name)
                    .and_then(|f| f.sources.get(sub))
                    .is_some_and(|s| s.active())
            };
            let both = SPARE_KEYS.iter().all(|k| has(k) && known(k));
            if !both {
                single.push(*sub);
            }
        }
        for sub in single {
            if let Some(place) = ty.places.get_mut(&sub) {
                place
                    .keys
                    .retain(|k| !SPARE_KEYS.iter().any(|s| k.fields.get(s).is_some()));
            }
            for name in SPARE_KEYS {
                if let Some(field) = ty.field_mut(name) {
                    field.sources.remove(&sub);
                }
            }
        }
    }
}

/// Whether a field set makes sense in a subgraph; external fields count.
fn valid(model: &Model, ty: &str, sub: Sub, set: &FieldSet) -> bool {
    says_something(set)
        && set.items.iter().all(|item| match item {
            Item::On { ty: on, sub: inner } => {
                model
                    .possible_in(ty, sub)
                    .iter()
                    .any(|p| model.possible_in(on, sub).contains(p))
                    && valid(model, on, sub, inner)
            }
            Item::Field { name, .. } if name == "__typename" => true,
            Item::Field {
                name, sub: inner, ..
            } => {
                let Some(source) = model.field(ty, name).and_then(|f| f.sources.get(&sub)) else {
                    return false;
                };
                let child = source.ty.name();
                !source.overridden
                    && model.kind(child).is_composite() != inner.is_empty()
                    && (inner.is_empty() || valid(model, child, sub, inner))
            }
        })
}

/// Whether what clients see is a schema: nothing is empty, and interfaces are implemented.
pub fn is_presentable(model: &Model) -> bool {
    let visible = model.visible();
    visible.types.iter().all(|ty| {
        let full = match ty.kind {
            Kind::Object | Kind::Interface => !ty.fields.is_empty(),
            Kind::Enum | Kind::Union => !ty.members.is_empty(),
            Kind::Input => !ty.inputs.is_empty(),
            Kind::Scalar => true,
        };
        let implemented = ty.interfaces().iter().all(|i| {
            visible
                .ty(i)
                .is_none_or(|i| i.fields.iter().all(|f| ty.field(&f.name).is_some()))
        });
        let told = ty.fields.iter().all(|f| {
            let value = f.sources.values().next().map_or("", |s| s.ty.name());
            match visible.kind(value) {
                Kind::Enum | Kind::Union | Kind::Interface => {
                    let possible: Vec<&str> = match visible.ty(value) {
                        Some(row) if row.kind == Kind::Enum => {
                            row.members.iter().map(|(m, _)| m.as_str()).collect()
                        }
                        _ => visible.possible(value),
                    };
                    model
                        .field(&ty.name, &f.name)
                        .is_some_and(|f| model.domain(f).iter().any(|d| possible.contains(d)))
                }
                _ => true,
            }
        });
        full && implemented && told
    })
}

/// Un-hides what must be seen. Only ever un-hides, so it comes to an end.
fn seen(model: &mut Model) {
    if is_presentable(model) {
        return;
    }
    for ty in &mut model.types {
        ty.hidden = false;
        ty.hidden_members.clear();
        for field in &mut ty.fields {
            field.hidden = false;
        }
    }
}

/// Whether a field is a member of some key of a type in a subgraph.
pub fn is_key_member(ty: &TypeModel, sub: Sub, field: &str) -> bool {
    ty.places
        .get(&sub)
        .is_some_and(|p| p.keys.iter().any(|k| k.fields.names().any(|n| n == field)))
}

/// Whether all implementers of an interface have its key in a subgraph.
fn all_have(model: &Model, interface: &str, sub: Sub, key: &KeyModel) -> bool {
    model.possible_in(interface, sub).iter().all(|t| {
        model
            .ty(t)
            .and_then(|t| t.places.get(&sub))
            .is_some_and(|p| p.keys.contains(key))
    })
}

/// Whether a key makes sense: it may be the type's name alone, and a member may be overridden.
fn valid_key(model: &Model, ty: &str, sub: Sub, set: &FieldSet) -> bool {
    let overridden = |item: &Item| match item {
        Item::Field {
            name, sub: inner, ..
        } => {
            inner.is_empty()
                && model
                    .field(ty, name)
                    .and_then(|f| f.sources.get(&sub))
                    .is_some_and(|s| s.overridden)
        }
        Item::On { .. } => false,
    };
    let plain: Vec<Item> = set
        .items
        .iter()
        .filter(|i| !overridden(i))
        .cloned()
        .collect();
    !set.items.is_empty()
        && (plain.iter().all(|i| *i == Item::field("__typename"))
            || valid(model, ty, sub, &FieldSet { items: plain }))
}

/// Drops what `@requires` and `@provides` may not mention: leaves that the subgraph resolves by itself.
fn only_external(model: &Model, ty: &str, sub: Sub, set: &mut FieldSet, inside_external: bool) {
    set.items.retain_mut(|item| match item {
        Item::On { ty: on, sub: inner } => {
            only_external(model, on, sub, inner, inside_external);
            says_something(inner)
        }
        Item::Field { name, .. } if name == "__typename" => true,
        Item::Field {
            name, sub: inner, ..
        } => {
            let row = model.field(ty, name);
            let Some(source) = row.and_then(|f| f.sources.get(&sub)) else {
                return false;
            };
            let external = inside_external || source.external;
            if inner.is_empty() {
                return external;
            }
            // Composition insists that whoever resolves the field knows the types it is asked about.
            let data = row.map(|f| model.domain(f)).unwrap_or_default();
            inner.items.retain(|item| match item {
                Item::On { ty: on, .. } => {
                    model.possible_in(on, sub).iter().any(|p| data.contains(p))
                }
                Item::Field { .. } => true,
            });
            only_external(model, source.ty.name(), sub, inner, external);
            says_something(inner)
        }
    });
}

/// More than `__typename`.
fn says_something(set: &FieldSet) -> bool {
    set.items
        .iter()
        .any(|i| !matches!(i, Item::Field { name, .. } if name == "__typename"))
}

fn field_sets(model: &mut Model) {
    let reference = model.clone();
    for ty in &mut model.types {
        for field in &mut ty.fields {
            for (sub, source) in &mut field.sources {
                if let Some(set) = &mut source.requires {
                    only_external(&reference, &ty.name, *sub, set, false);
                }
                let child = source.ty.name().to_owned();
                if let Some(set) = &mut source.provides {
                    only_external(&reference, &child, *sub, set, false);
                }
            }
        }
    }
    for ty in &mut model.types {
        for (sub, place) in &mut ty.places {
            place.keys.retain(|k| {
                valid_key(&reference, &ty.name, *sub, &k.fields)
                    && (ty.kind != Kind::Interface || all_have(&reference, &ty.name, *sub, k))
            });
        }
        for field in &mut ty.fields {
            field.sources.retain(|sub, source| {
                source
                    .requires
                    .as_ref()
                    .is_none_or(|r| valid(&reference, &ty.name, *sub, r))
            });
            for (sub, source) in &mut field.sources {
                let child = source.ty.name().to_owned();
                if source
                    .provides
                    .as_ref()
                    .is_some_and(|p| !valid(&reference, &child, *sub, p))
                {
                    source.provides = None;
                }
            }
        }
    }
}

/// Every (type, field, subgraph) that a `@provides` mentions.
pub fn provided(model: &Model) -> HashSet<(String, String, Sub)> {
    let mut out = HashSet::new();
    for field in model.types.iter().flat_map(|t| &t.fields) {
        for (sub, source) in &field.sources {
            if let Some(set) = &source.provides {
                mention(model, source.ty.name(), *sub, set, &mut out);
            }
        }
    }
    out
}

/// Every (type, field, subgraph) that a field set mentions.
pub fn mentioned(model: &Model) -> HashSet<(String, String, Sub)> {
    let mut out = HashSet::new();
    for ty in &model.types {
        for (sub, place) in &ty.places {
            for key in &place.keys {
                mention(model, &ty.name, *sub, &key.fields, &mut out);
            }
        }
        for field in &ty.fields {
            for (sub, source) in &field.sources {
                if let Some(set) = &source.requires {
                    mention(model, &ty.name, *sub, set, &mut out);
                }
                if let Some(set) = &source.provides {
                    mention(model, source.ty.name(), *sub, set, &mut out);
                }
            }
        }
    }
    out
}

fn mention(
    model: &Model,
    ty: &str,
    sub: Sub,
    set: &FieldSet,
    out: &mut HashSet<(String, String, Sub)>,
) {
    for item in &set.items {
        match item {
            Item::On { ty, sub: inner } => mention(model, ty, sub, inner, out),
            Item::Field {
                name, sub: inner, ..
            } => {
                out.insert((ty.to_owned(), name.clone(), sub));
                let mut objects = model.possible_in(ty, sub);
                objects.push(ty);
                for object in objects {
                    if model.ty(object).is_some_and(|t| t.field(name).is_some()) {
                        out.insert((object.to_owned(), name.clone(), sub));
                    }
                }
                if let Some(source) = model.field(ty, name).and_then(|f| f.sources.get(&sub)) {
                    mention(model, source.ty.name(), sub, inner, out);
                }
            }
        }
    }
}

fn unused_externals(model: &mut Model) {
    let mentioned = mentioned(model);
    for ty in &mut model.types {
        for field in &mut ty.fields {
            let key = (ty.name.clone(), field.name.clone());
            field.sources.retain(|sub, source| {
                !source.external || mentioned.contains(&(key.0.clone(), key.1.clone(), *sub))
            });
        }
    }
}

/// Both ends of an override are subgraphs; the one that lost the field may no longer have it.
fn overrides(model: &mut Model) {
    let subgraphs = model.subgraphs.len();
    for ty in &mut model.types {
        for field in &mut ty.fields {
            let sources: Vec<Sub> = field.sources.keys().copied().collect();
            let mut lost: Subs = 0;
            for (sub, source) in &mut field.sources {
                match source.overrides {
                    Some(from) if from != *sub && from < subgraphs => {
                        if source.label.is_none() && sources.contains(&from) {
                            lost |= 1 << from;
                        }
                    }
                    _ => {
                        source.overrides = None;
                        source.label = None;
                    }
                }
            }
            for (sub, source) in &mut field.sources {
                source.overridden = lost & (1 << sub) != 0;
            }
        }
    }
}

/// An object implements an interface only if it has all its fields, in the subgraph and in the merged schema.
fn interfaces(model: &mut Model) {
    let reference = model.clone();
    for ty in model
        .types
        .iter_mut()
        .filter(|t| matches!(t.kind, Kind::Object | Kind::Interface))
    {
        let mut refused: Vec<String> = Vec::new();
        for interface in reference.types.iter().filter(|t| t.kind == Kind::Interface) {
            let complete = interface
                .fields
                .iter()
                .all(|f| ty.field(&f.name).is_some_and(|own| own.args == f.args));
            if !complete {
                refused.push(interface.name.clone());
            }
        }
        let fields = ty.fields.clone();
        for (sub, place) in &mut ty.places {
            place.implements.retain(|name| {
                !refused.contains(name)
                    && reference.ty(name).is_some_and(|i| {
                        i.kind == Kind::Interface
                            && i.places.contains_key(sub)
                            && i.fields
                                .iter()
                                .filter(|f| f.sources.contains_key(sub))
                                .all(|f| {
                                    fields.iter().any(|own| {
                                        own.name == f.name && own.sources.contains_key(sub)
                                    })
                                })
                    })
            });
        }
    }
}

/// An interface implements another one only if whoever implements the former implements the latter, in every subgraph
/// and in the merged schema.
fn interfaces_of_interfaces(model: &mut Model) {
    let reference = model.clone();
    for ty in model.types.iter_mut().filter(|t| t.kind == Kind::Interface) {
        let followed = |parent: &str| {
            reference
                .types
                .iter()
                .filter(|t| t.kind == Kind::Object)
                .all(|t| {
                    t.places.values().all(|p| {
                        !p.implements.contains(&ty.name) || p.implements.iter().any(|i| i == parent)
                    })
                })
        };
        let refused: Vec<String> = ty
            .interfaces()
            .into_iter()
            .filter(|parent| !followed(parent))
            .map(str::to_owned)
            .collect();
        for place in ty.places.values_mut() {
            place.implements.retain(|i| !refused.contains(i));
        }
    }
}

/// Types without content are none.
fn empty_types(model: &mut Model) {
    let reference = model.clone();
    for ty in &mut model.types {
        match ty.kind {
            Kind::Object => {
                let fields = &ty.fields;
                ty.places
                    .retain(|sub, _| fields.iter().any(|f| f.sources.contains_key(sub)));
            }
            Kind::Interface => {
                let fields = &ty.fields;
                let name = &ty.name;
                ty.places.retain(|sub, _| {
                    fields.iter().any(|f| f.sources.contains_key(sub))
                        && (!reference.possible_in(name, *sub).is_empty()
                            || reference.stands_alone(name))
                });
            }
            Kind::Union => {
                let members = &ty.members;
                ty.places
                    .retain(|sub, _| members.iter().any(|(_, s)| s & (1 << sub) != 0));
            }
            _ => {}
        }
    }
    model.types.retain(|t| {
        !t.places.is_empty()
            && match t.kind {
                Kind::Input => !t.inputs.is_empty(),
                Kind::Enum => !t.members.is_empty(),
                _ => true,
            }
    });
}

/// Types that no root reaches, in the merged schema, are dropped.
fn collect_garbage(model: &mut Model) {
    let mut seen: HashSet<String> = HashSet::new();
    let mut todo: Vec<String> = vec!["Query".to_owned(), "Mutation".to_owned()];
    while let Some(name) = todo.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let Some(ty) = model.ty(&name) else { continue };
        for field in &ty.fields {
            for source in field.sources.values() {
                todo.push(source.ty.name().to_owned());
            }
            for arg in &field.args {
                todo.push(arg.ty.name().to_owned());
            }
        }
        for input in &ty.inputs {
            todo.push(input.ty.name().to_owned());
        }
        todo.extend(ty.interfaces().into_iter().map(str::to_owned));
        if ty.kind.is_abstract() {
            todo.extend(model.possible(&name).into_iter().map(str::to_owned));
        }
    }
    model.types.retain(|t| seen.contains(&t.name));
    for ty in &mut model.types {
        for place in ty.places.values_mut() {
            place.implements.retain(|i| seen.contains(i));
        }
    }
}

/// Subgraphs without any type go, and the others move up.
fn unused_subgraphs(model: &mut Model) {
    let used: Subs = model.types.iter().fold(0, |set, t| set | t.subs());
    let map: Vec<Option<Sub>> = (0..model.subgraphs.len())
        .scan(0, |next, sub| {
            Some(if used & (1 << sub) == 0 {
                None
            } else {
                *next += 1;
                Some(*next - 1)
            })
        })
        .collect();
    if map.iter().all(Option::is_some) {
        return;
    }
    let remap = |set: Subs| {
        super::subs(set)
            .filter_map(|s| map[s])
            .fold(0, |set, s| set | 1 << s)
    };
    for ty in &mut model.types {
        ty.places = std::mem::take(&mut ty.places)
            .into_iter()
            .filter_map(|(s, p)| Some((map[s]?, p)))
            .collect();
        for (_, subs) in &mut ty.members {
            *subs = remap(*subs);
        }
        let args = ty.fields.iter_mut().flat_map(|f| &mut f.args);
        for input in args.chain(&mut ty.inputs) {
            input.only = remap(input.only);
            input.loose = remap(input.loose);
        }
        for field in &mut ty.fields {
            field.sources = std::mem::take(&mut field.sources)
                .into_iter()
                .filter_map(|(s, mut source)| {
                    source.overrides = source.overrides.and_then(|from| map[from]);
                    Some((map[s]?, source))
                })
                .collect();
        }
    }
    let mut sub = 0;
    model.subgraphs.retain(|_| {
        sub += 1;
        map[sub - 1].is_some()
    });
}
