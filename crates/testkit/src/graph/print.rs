//! The three texts of a model: subgraph SDL as its author writes it, the supergraph, and the merged schema of the
//! monolith.

use std::{collections::HashSet, fmt::Write};

use super::{FieldModel, FieldSource, InputModel, Kind, Model, Sub, Ty, TypeModel, clean};
use crate::rng::hash_texts;

/// What a subgraph author writes: federation v2 with `@link`.
pub fn subgraph_sdl(model: &Model, sub: Sub) -> String {
    let objects = model.types.iter().filter_map(|t| t.places.get(&sub));
    let more = if { objects }.any(|p| p.interface_object) {
        ", \"@interfaceObject\""
    } else {
        ""
    };
    let mut out = format!(
        "extend schema\n  @link(url: \"https://specs.apollo.dev/federation/v2.7\", import: [\"@key\", \"@external\", \
         \"@requires\", \"@provides\", \"@shareable\", \"@override\", \"@inaccessible\"{more}])\n\n",
    );
    subgraph_types(model, sub, &mut out);
    out
}

fn subgraph_types(model: &Model, sub: Sub, out: &mut String) {
    let provided = clean::provided(model);
    for ty in &model.types {
        let Some(place) = ty.places.get(&sub).filter(|p| p.via.is_none()) else {
            continue;
        };
        match ty.kind {
            Kind::Object | Kind::Interface => {
                let kind = if place.interface_object {
                    Kind::Object
                } else {
                    ty.kind
                };
                let _ = write!(out, "{} {}", keyword(kind), ty.name);
                if !place.implements.is_empty() {
                    let _ = write!(out, " implements {}", place.implements.join(" & "));
                }
                for key in &place.keys {
                    let resolvable = if key.resolvable {
                        ""
                    } else {
                        ", resolvable: false"
                    };
                    let _ = write!(
                        out,
                        " @key(fields: {}{resolvable})",
                        quoted(&key.fields.to_string())
                    );
                }
                if place.interface_object {
                    out.push_str(" @interfaceObject");
                }
                hidden(ty.hidden, out);
                out.push_str(" {\n");
                for field in &ty.fields {
                    let Some(source) = field.sources.get(&sub) else {
                        continue;
                    };
                    let args = args_in(&field.args, sub);
                    let _ = write!(out, "  {}{args}: {}", field.name, source.ty);
                    hidden(field.hidden && !source.external, out);
                    subgraph_directives(model, ty, field, source, sub, &provided, out);
                    out.push('\n');
                }
                out.push_str("}\n\n");
            }
            Kind::Union | Kind::Enum => {
                let here: Vec<&str> = ty
                    .members
                    .iter()
                    .filter(|(_, s)| s & (1 << sub) != 0)
                    .map(|(m, _)| m.as_str())
                    .collect();
                let mut applied = String::new();
                hidden(ty.hidden, &mut applied);
                members(ty, &here, &applied, out);
            }
            Kind::Scalar => leaf_type(ty, "", out),
            Kind::Input => {
                let mut own = ty.clone();
                own.inputs.retain(|i| i.is_in(sub));
                leaf_type(&own, "", out);
            }
        }
    }
}

fn hidden(is: bool, out: &mut String) {
    if is {
        out.push_str(" @inaccessible");
    }
}

fn subgraph_directives(
    model: &Model,
    ty: &TypeModel,
    field: &FieldModel,
    source: &FieldSource,
    sub: Sub,
    provided: &HashSet<(String, String, Sub)>,
    out: &mut String,
) {
    if source.external {
        out.push_str(" @external");
    }
    if let Some(set) = &source.requires {
        let _ = write!(out, " @requires(fields: {})", quoted(&set.to_string()));
    }
    if let Some(set) = &source.provides {
        let _ = write!(out, " @provides(fields: {})", quoted(&set.to_string()));
    }
    if let Some(from) = source.overrides {
        let label = match &source.label {
            Some(label) => format!(", label: {}", quoted(label)),
            None => String::new(),
        };
        let from = quoted(&model.subgraphs[from]);
        let _ = write!(out, " @override(from: {from}{label})");
    }
    // Key members are shareable anyway.
    let key_member = ty.places.get(&sub).is_some_and(|p| {
        p.keys
            .iter()
            .any(|k| k.fields.names().any(|n| n == field.name))
    });
    // A field that another subgraph provides is resolved there too.
    let shared = field.active().count_ones() > 1
        || provided
            .iter()
            .any(|(t, f, s)| *t == ty.name && *f == field.name && *s != sub);
    if ty.kind == Kind::Object && source.active() && !key_member && shared {
        out.push_str(" @shareable");
    }
}

/// The merged schema without a trace of federation.
pub fn merged_sdl(model: &Model) -> String {
    let mut out = String::new();
    let model = &model.visible();
    for ty in &model.types {
        match ty.kind {
            Kind::Object | Kind::Interface => {
                // A monolith has to say what its objects are.
                let kind = if model.stands_alone(&ty.name) {
                    Kind::Object
                } else {
                    ty.kind
                };
                let _ = write!(out, "{} {}", keyword(kind), ty.name);
                let interfaces = ty.interfaces();
                if !interfaces.is_empty() {
                    let _ = write!(out, " implements {}", interfaces.join(" & "));
                }
                out.push_str(" {\n");
                for field in &ty.fields {
                    if let Some(merged) = field.merged_ty() {
                        let _ = writeln!(out, "  {}{}: {merged}", field.name, args(&field.args));
                    }
                }
                out.push_str("}\n\n");
            }
            Kind::Union | Kind::Enum => {
                let all: Vec<&str> = ty.members.iter().map(|(m, _)| m.as_str()).collect();
                members(ty, &all, "", &mut out);
            }
            Kind::Scalar | Kind::Input => leaf_type(ty, "", &mut out),
        }
    }
    out
}

/// Definitions of the machinery of join v0.3 and link v1.0.
const MACHINERY: &str = "\
directive @cost(weight: Int!) on FIELD_DEFINITION

directive @listSize(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = true) on FIELD_DEFINITION

directive @tag(name: String!) repeatable on FIELD_DEFINITION | OBJECT

directive @inaccessible on FIELD_DEFINITION | OBJECT | INTERFACE | UNION | ARGUMENT_DEFINITION | SCALAR | ENUM | ENUM_VALUE | INPUT_OBJECT | INPUT_FIELD_DEFINITION

directive @join__enumValue(graph: join__Graph!) repeatable on ENUM_VALUE

directive @join__graph(name: String!, url: String!) on ENUM_VALUE

directive @join__implements(graph: join__Graph!, interface: String!) repeatable on OBJECT | INTERFACE

directive @join__type(graph: join__Graph!, key: join__FieldSet, extension: Boolean! = false, resolvable: Boolean! = true, isInterfaceObject: Boolean! = false) repeatable on OBJECT | INTERFACE | UNION | ENUM | INPUT_OBJECT | SCALAR

directive @join__unionMember(graph: join__Graph!, member: String!) repeatable on UNION

directive @link(url: String, as: String, for: link__Purpose, import: [link__Import]) repeatable on SCHEMA

scalar join__FieldSet

enum link__Purpose {
  SECURITY
  EXECUTION
}

scalar link__Import

";

/// `@join__field` up to v0.3.
const JOIN_FIELD: &str = "\
directive @join__field(graph: join__Graph, requires: join__FieldSet, provides: join__FieldSet, type: String, external: Boolean, override: String, usedOverridden: Boolean) repeatable on FIELD_DEFINITION | INPUT_FIELD_DEFINITION

";

/// What v0.4 and v0.5 add: override labels, context arguments and carried directives.
const JOIN_FIELD_NEW: &str = "\
directive @join__directive(graphs: [join__Graph!], name: String!, args: join__DirectiveArguments) repeatable on SCHEMA | OBJECT | INTERFACE | FIELD_DEFINITION

directive @join__field(graph: join__Graph, requires: join__FieldSet, provides: join__FieldSet, type: String, external: Boolean, override: String, usedOverridden: Boolean, overrideLabel: String, contextArguments: [join__ContextArgument!]) repeatable on FIELD_DEFINITION | INPUT_FIELD_DEFINITION

input join__ContextArgument {
  name: String!
  type: String!
  context: String!
  selection: join__FieldValue!
}

scalar join__DirectiveArguments

scalar join__FieldValue

";

/// The version of join that a supergraph is printed in; labels need v0.4.
fn join_version(model: &Model) -> u8 {
    match model.join {
        5 => 5,
        4 => 4,
        _ if !model.labels().is_empty() => 4,
        _ => 3,
    }
}

/// Directives on a field of the supergraph that advise and change no data, on about one field of five.
pub fn advice(ty: &str, field: &str) -> Option<&'static str> {
    match hash_texts(0, &["advice", ty, field]) % 16 {
        0 => Some(" @tag(name: \"internal\")"),
        1 => Some(" @cost(weight: 7)"),
        2 => Some(" @listSize(assumedSize: 3)"),
        _ => None,
    }
}

/// The supergraph, straight from the model.
pub fn supergraph_sdl(model: &Model) -> String {
    let version = join_version(model);
    let mut out = format!(
        "schema\n  @link(url: \"https://specs.apollo.dev/link/v1.0\")\n  @link(url: \
         \"https://specs.apollo.dev/join/v0.{version}\", for: EXECUTION)\n  @link(url: \"https://specs.apollo.dev/tag/v0.3\")\n  @link(url: \
         \"https://specs.apollo.dev/cost/v0.1\")\n  @link(url: \"https://specs.apollo.dev/inaccessible/v0.2\", for: SECURITY)\n{{\n  query: Query\n",
    );
    if model.ty("Mutation").is_some() {
        out.push_str("  mutation: Mutation\n");
    }
    out.push_str("}\n\n");
    out.push_str(MACHINERY);
    out.push_str(if version > 3 {
        JOIN_FIELD_NEW
    } else {
        JOIN_FIELD
    });
    out.push_str("enum join__Graph {\n");
    for name in &model.subgraphs {
        let _ = writeln!(
            out,
            "  {} @join__graph(name: {}, url: \"\")",
            graph_name(name),
            quoted(name)
        );
    }
    out.push_str("}\n\n");
    let graphs: Vec<String> = model.subgraphs.iter().map(|n| graph_name(n)).collect();
    for ty in &model.types {
        let applied = join_types(ty, &graphs);
        type_in_supergraph(model, ty, applied, &graphs, &mut out);
    }
    out
}

/// `@join__type`s and `@join__implements` of a type.
fn join_types(ty: &TypeModel, graphs: &[String]) -> String {
    let mut applied = String::new();
    // Every subgraph has a query root, for `_entities` if for nothing else.
    if ty.name == "Query" {
        for graph in graphs {
            let _ = write!(applied, "\n  @join__type(graph: {graph})");
        }
    }
    let defined = ty.places.iter().filter(|(_, p)| p.via.is_none());
    for (sub, place) in defined.clone() {
        if place.keys.is_empty() && ty.name != "Query" {
            let _ = write!(applied, "\n  @join__type(graph: {})", graphs[*sub]);
        }
        for key in &place.keys {
            let mut resolvable = if key.resolvable {
                String::new()
            } else {
                ", resolvable: false".to_owned()
            };
            if place.interface_object {
                resolvable.push_str(", isInterfaceObject: true");
            }
            let _ = write!(
                applied,
                "\n  @join__type(graph: {}, key: {}{resolvable})",
                graphs[*sub],
                quoted(&key.fields.to_string())
            );
        }
    }
    for (sub, place) in defined {
        for interface in &place.implements {
            let _ = write!(
                applied,
                "\n  @join__implements(graph: {}, interface: {})",
                graphs[*sub],
                quoted(interface)
            );
        }
    }
    applied
}

/// The definition of a type, with what is applied to it so far.
fn type_in_supergraph(
    model: &Model,
    ty: &TypeModel,
    mut applied: String,
    graphs: &[String],
    out: &mut String,
) {
    match ty.kind {
        Kind::Object | Kind::Interface => {
            let _ = write!(out, "{} {}", keyword(ty.kind), ty.name);
            let interfaces = ty.interfaces();
            if !interfaces.is_empty() {
                let _ = write!(out, " implements {}", interfaces.join(" & "));
            }
            hidden(ty.hidden, &mut applied);
            let _ = writeln!(out, "{applied}\n{{");
            for field in &ty.fields {
                if let Some(merged) = field.merged_ty() {
                    let args = args_in_supergraph(&field.args);
                    let _ = write!(out, "  {}{args}: {merged}", field.name);
                    hidden(field.hidden, out);
                    out.push_str(advice(&ty.name, &field.name).unwrap_or_default());
                    join_fields(model, ty, field, &merged, graphs, out);
                    out.push('\n');
                }
            }
            out.push_str("}\n\n");
        }
        Kind::Union => {
            for (member, known) in &ty.members {
                for sub in super::subs(*known) {
                    let _ = write!(
                        applied,
                        "\n  @join__unionMember(graph: {}, member: {})",
                        graphs[sub],
                        quoted(member)
                    );
                }
            }
            let all: Vec<&str> = ty.members.iter().map(|(m, _)| m.as_str()).collect();
            members(ty, &all, &applied, out);
        }
        Kind::Enum => {
            let _ = writeln!(out, "enum {}{applied}\n{{", ty.name);
            for (value, known) in &ty.members {
                let _ = write!(out, "  {value}");
                hidden(ty.hidden_members.contains(value), out);
                for sub in super::subs(*known) {
                    let _ = write!(out, " @join__enumValue(graph: {})", graphs[sub]);
                }
                out.push('\n');
            }
            out.push_str("}\n\n");
        }
        Kind::Scalar => leaf_type(ty, &applied, out),
        Kind::Input => {
            let mut merged = ty.clone();
            merged.inputs.retain(|i| i.only == 0);
            leaf_type(&merged, &applied, out);
        }
    }
}

/// `@join__field`s, left out where they would say nothing: all subgraphs of the type resolve the field alike.
fn join_fields(
    model: &Model,
    ty: &TypeModel,
    field: &FieldModel,
    merged: &Ty,
    graphs: &[String],
    out: &mut String,
) {
    let plain = |(sub, s): (&Sub, &FieldSource)| {
        s.active()
            && s.requires.is_none()
            && s.provides.is_none()
            && field.taken_from(*sub).is_none()
            && s.ty == *merged
    };
    let is_defined = |sub: &Sub| ty.places.get(sub).is_none_or(|p| p.via.is_none());
    let everywhere = if ty.name == "Query" {
        model.subgraphs.len()
    } else {
        ty.places.keys().filter(|s| is_defined(s)).count()
    };
    let defined = || field.sources.iter().filter(|(s, _)| is_defined(s));
    if defined().count() == everywhere && defined().all(plain) {
        return;
    }
    // It comes from an interface object.
    if !defined().any(|(_, s)| s.active()) {
        out.push_str(" @join__field");
    }
    // As composition writes it: all local types, or none.
    let differs = field
        .sources
        .values()
        .any(|s| !s.overridden && s.ty != *merged);
    for (sub, source) in defined() {
        // Also while it is not overridden yet.
        let leaves = leaves_an_interface(model, ty, field, *sub);
        let used = leaves || source.overridden && clean::is_key_member(ty, *sub, &field.name);
        if source.overridden && !used {
            continue;
        }
        let _ = write!(out, " @join__field(graph: {}", graphs[*sub]);
        if used {
            out.push_str(", usedOverridden: true");
        }
        if let Some(set) = &source.requires {
            let _ = write!(out, ", requires: {}", quoted(&set.to_string()));
        }
        if let Some(set) = &source.provides {
            let _ = write!(out, ", provides: {}", quoted(&set.to_string()));
        }
        if let Some(from) = source.overrides {
            let _ = write!(out, ", override: {}", quoted(&model.subgraphs[from]));
            if let Some(label) = field.label(*sub) {
                let _ = write!(out, ", overrideLabel: {}", quoted(label));
            }
        }
        if differs {
            let _ = write!(out, ", type: \"{}\"", source.ty);
        }
        if source.external {
            out.push_str(", external: true");
        }
        out.push(')');
    }
}

/// The `join__Graph` value of a subgraph.
fn graph_name(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}

fn keyword(kind: Kind) -> &'static str {
    match kind {
        Kind::Object => "type",
        Kind::Interface => "interface",
        Kind::Union => "union",
        Kind::Enum => "enum",
        Kind::Scalar => "scalar",
        Kind::Input => "input",
    }
}

/// Whether a label may take a field from a subgraph that needs it for an interface of its own.
pub fn leaves_an_interface(model: &Model, ty: &TypeModel, field: &FieldModel, sub: Sub) -> bool {
    let mut sources = field.sources.values();
    let is_labelled = sources.any(|s| s.label.is_some() && s.overrides == Some(sub));
    let place = ty.places.get(&sub);
    let mut interfaces = place.into_iter().flat_map(|p| &p.implements);
    is_labelled
        && interfaces.any(|i| {
            let field = model.field(i, &field.name);
            field.is_some_and(|f| f.sources.contains_key(&sub))
        })
}

/// Arguments as a subgraph defines them.
fn args_in(inputs: &[InputModel], sub: Sub) -> String {
    let own: Vec<InputModel> = inputs
        .iter()
        .filter(|i| i.is_in(sub))
        .map(|i| {
            let mut own = i.clone();
            if own.loose & (1 << sub) != 0 {
                own.ty = own.ty.nullable().clone();
            }
            own
        })
        .collect();
    args(&own)
}

/// Arguments that all subgraphs define.
fn args_in_supergraph(inputs: &[InputModel]) -> String {
    let shared: Vec<InputModel> = inputs.iter().filter(|i| i.only == 0).cloned().collect();
    args(&shared)
}

fn args(inputs: &[InputModel]) -> String {
    if inputs.is_empty() {
        return String::new();
    }
    let all: Vec<String> = inputs.iter().map(input).collect();
    format!("({})", all.join(", "))
}

fn input(input: &InputModel) -> String {
    let hidden = if input.hidden { " @inaccessible" } else { "" };
    match &input.default {
        None => format!("{}: {}{hidden}", input.name, input.ty),
        Some(default) => format!("{}: {} = {default}{hidden}", input.name, input.ty),
    }
}

/// A union or enum with these members.
fn members(ty: &TypeModel, names: &[&str], applied: &str, out: &mut String) {
    if ty.kind == Kind::Union {
        let _ = writeln!(out, "union {}{applied} = {}\n", ty.name, names.join(" | "));
    } else {
        let mut values = String::new();
        for name in names {
            values.push(' ');
            values.push_str(name);
            hidden(ty.hidden_members.contains(*name), &mut values);
        }
        let _ = writeln!(out, "enum {}{applied} {{{values} }}\n", ty.name);
    }
}

/// A scalar or input object.
fn leaf_type(ty: &TypeModel, applied: &str, out: &mut String) {
    let _ = write!(out, "{} {}{applied}", keyword(ty.kind), ty.name);
    if ty.kind == Kind::Input {
        let all: Vec<String> = ty.inputs.iter().map(input).collect();
        let _ = write!(out, " {{ {} }}", all.join(", "));
    }
    out.push_str("\n\n");
}

/// A GraphQL string of plain text.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
