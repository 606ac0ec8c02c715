//! Which roles a graph has: evidence that a run exercised them.

use std::collections::BTreeMap;

use super::super::{FieldModel, FieldSource, Kind, Model, TypeModel, print};

/// How many fields of each kind of role a graph has: evidence that a run exercised them.
pub fn roles(model: &Model) -> BTreeMap<&'static str, usize> {
    let mut out: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut count = |name: &'static str, is: bool| *out.entry(name).or_default() += usize::from(is);
    for ty in &model.types {
        count("interface", ty.kind == Kind::Interface);
        count(
            "interface that nothing implements",
            model.stands_alone(&ty.name),
        );
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
            count(
                "key inside keys",
                ty.name == "Deep0" && !place.keys.is_empty(),
            );
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
            roles_of_members(model, ty, field, &mut count);
            for source in field.sources.values() {
                roles_of_source(model, ty, source, &mut count);
            }
        }
    }
    out
}

/// Abstract types of which several subgraphs may serve a field, and labels below interfaces.
fn roles_of_members(
    model: &Model,
    ty: &TypeModel,
    field: &FieldModel,
    count: &mut impl FnMut(&'static str, bool),
) {
    let value = field.merged_ty().unwrap_or_default();
    let partly = |kind: Kind, is_list: bool| {
        let knows = |sub| model.possible_in(value.name(), sub);
        let mut known = field.sources.keys().map(|sub| knows(*sub));
        let first = known.next();
        let is_it = model.kind(value.name()) == kind && value.is_list() == is_list;
        is_it && ty.kind == Kind::Object && known.any(|other| Some(other) != first)
    };
    count("shared list of a partial union", partly(Kind::Union, true));
    count("shared partial union", partly(Kind::Union, false));
    count(
        "shared list of a partial interface",
        partly(Kind::Interface, true),
    );
    count("shared partial interface", partly(Kind::Interface, false));
    for sub in field.sources.keys() {
        let source = &field.sources[sub];
        let has_ended = source.overrides.is_some() && field.taken_from(*sub).is_none();
        count("override of a field that is gone", has_ended);
        count(
            "labelled override of a field that is gone",
            has_ended && source.label.is_some(),
        );
        count(
            "labelled override below an interface",
            print::leaves_an_interface(model, ty, field, *sub),
        );
    }
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
        "requires through composite keys",
        requires
            .as_ref()
            .is_some_and(|t| t.contains("next { next { leaf")),
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
