//! Which roles a graph has: evidence that a run exercised them.

use std::collections::BTreeMap;

use super::super::{FieldSource, Kind, Model, TypeModel};

/// How many fields of each kind of role a graph has: evidence that a run exercised them.
pub fn roles(model: &Model) -> BTreeMap<&'static str, usize> {
    let mut out: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut count = |name: &'static str, is: bool| *out.entry(name).or_default() += usize::from(is);
    for ty in &model.types {
        count("interface", ty.kind == Kind::Interface);
        count("union", ty.kind == Kind::Union);
        count("enum", ty.kind == Kind::Enum);
        count("custom scalar", ty.kind == Kind::Scalar);
        count("input object", ty.kind == Kind::Input);
        count("entity", ty.is_entity());
        count(
            "value type",
            ty.kind == Kind::Object && !ty.is_entity() && !ty.is_root(),
        );
        let all = ty.subs();
        count(
            "partial abstract type or enum",
            ty.members.iter().any(|(_, s)| *s != all),
        );
        for place in ty.places.values() {
            let keys = place.keys.iter();
            count("interface object", place.interface_object);
            count(
                "interface object that cannot be entered",
                place.interface_object && { keys }.any(|k| !k.resolvable),
            );
            count(
                "interface with a key",
                ty.kind == Kind::Interface && !place.interface_object && !place.keys.is_empty(),
            );
            count("several keys", place.keys.len() > 1);
            for key in &place.keys {
                count("key through a value type", key.fields.get("ref").is_some());
                count("compound key", key.fields.items.len() > 1);
                count("nested key", key.fields.to_string().contains('{'));
                count("resolvable: false", !key.resolvable);
            }
        }
        for field in &ty.fields {
            count(
                "shared field",
                ty.kind == Kind::Object && field.active().count_ones() > 1,
            );
            count(
                "shared root field",
                ty.is_root() && field.active().count_ones() > 1,
            );
            count("field with arguments", !field.args.is_empty());
            for source in field.sources.values() {
                roles_of_source(model, ty, source, &mut count);
            }
        }
    }
    out
}

fn roles_of_source(
    model: &Model,
    ty: &TypeModel,
    source: &FieldSource,
    count: &mut dyn FnMut(&'static str, bool),
) {
    let requires = source.requires.as_ref().map(ToString::to_string);
    let provides = source.provides.as_ref().map(ToString::to_string);
    let by_object = |n: &str| {
        let sources = ty.field(n).into_iter().flat_map(|f| &f.sources);
        { sources }.any(|(s, _)| ty.places.get(s).is_some_and(|p| p.via.is_some()))
    };
    count(
        "interface object with requires",
        requires.is_some() && ty.kind == Kind::Interface,
    );
    count(
        "requires what an interface object brings",
        { source.requires.iter() }.any(|set| set.names().any(by_object)),
    );
    let hides = |name: &str| {
        let values = ty.field(name).map(|f| model.domain(f)).unwrap_or_default();
        values.len() > 1 && values.iter().any(|v| model.ty(v).is_some_and(|t| t.hidden))
    };
    count(
        "requires through a hidden type",
        { source.requires.iter() }.any(|set| set.names().any(hides)),
    );
    count("requires", requires.is_some());
    count(
        "nested requires",
        requires.as_ref().is_some_and(|t| t.contains('{')),
    );
    count(
        "requires with arguments",
        requires.as_ref().is_some_and(|t| t.contains('(')),
    );
    count(
        "chained requires",
        source.requires.as_ref().is_some_and(|set| {
            set.names()
                .any(|n| ty.field(n).is_some_and(|f| f.requires().is_some()))
        }),
    );
    count(
        "requires by type",
        requires.as_ref().is_some_and(|t| t.contains("... on")),
    );
    count(
        "provides by type",
        provides.as_ref().is_some_and(|t| t.contains("... on")),
    );
    count("provides", provides.is_some());
    count("nested provides", provides.is_some_and(|t| t.contains('{')));
    count("external", source.external);
    count("override", source.overrides.is_some());
}
