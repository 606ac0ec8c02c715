//! One subgraph's own schema, rebuilt from the rows of a supergraph.
//!
//! It holds what the subgraph can be asked for: its types and fields with their local types, external fields
//! included (they may be asked for inside `@provides`), and the entity entry points. Every request sent to a
//! subgraph must validate against it. An `@interfaceObject` is an object type here; implementations that reach the
//! subgraph only through it do not exist here. Descriptions and directives that change no request are left out.

use std::fmt::Write;

use ogive_base::{BitSet, SourceId};
use ogive_schema::{
    BuildOptions, DirectiveDef, DirectiveLocation, EnumValueId, FieldId, InputId, OperationKind,
    Schema, TypeDef, TypeId, TypeKind, build,
};
use ogive_syntax::{Limits, parse};

use crate::{FieldSetId, SubgraphId, Supergraph, TypeSource, field_set::write_field_set};

const FEDERATION_LINK: &str = "extend schema\n  @link(url: \"https://specs.apollo.dev/link/v1.0\")\n  \
    @link(url: \"https://specs.apollo.dev/federation/v2.3\", import: [\"@key\", \"@external\", \"@requires\", \
    \"@provides\", \"@interfaceObject\", \"FieldSet\"])\n";

const FEDERATION_DEFINITIONS: &str = "
directive @link(url: String!, as: String, import: [link__Import], for: link__Purpose) repeatable on SCHEMA

directive @key(fields: FieldSet!, resolvable: Boolean = true) repeatable on OBJECT | INTERFACE

directive @external on OBJECT | FIELD_DEFINITION

directive @requires(fields: FieldSet!) on FIELD_DEFINITION

directive @provides(fields: FieldSet!) on FIELD_DEFINITION

directive @interfaceObject on OBJECT

scalar FieldSet

scalar link__Import

enum link__Purpose {
  EXECUTION
  SECURITY
}

scalar _Any

type _Service {
  sdl: String
}
";

/// The schema of a subgraph as requests to it see it, and the same as SDL. Linear in the subgraph.
///
/// The schema is built without validation: the supergraph was checked as a whole.
pub fn subgraph_schema(supergraph: &Supergraph, subgraph: SubgraphId) -> (Schema, String) {
    let sdl = subgraph_sdl(supergraph, subgraph);
    let parsed = parse(sdl.as_str(), SourceId(0), &Limits::default());
    let built = build(
        &[&parsed.document],
        &BuildOptions {
            validate: false,
            ..BuildOptions::default()
        },
    );
    (built.schema, sdl)
}

/// The SDL of [`subgraph_schema`].
pub fn subgraph_sdl(supergraph: &Supergraph, subgraph: SubgraphId) -> String {
    let mut writer = Writer {
        supergraph,
        schema: &supergraph.schema,
        subgraph,
        out: String::new(),
    };
    writer.all();
    writer.out
}

struct Writer<'a> {
    supergraph: &'a Supergraph,
    schema: &'a Schema,
    subgraph: SubgraphId,
    out: String,
}

impl<'a> Writer<'a> {
    fn all(&mut self) {
        let schema = self.schema;
        let query = schema.root(OperationKind::Query);
        let mut roots = String::new();
        for kind in [
            OperationKind::Query,
            OperationKind::Mutation,
            OperationKind::Subscription,
        ] {
            // The query root is there for `_service` even if it has no fields of its own.
            if let Some(root) = schema.root(kind)
                && (kind == OperationKind::Query || !self.fields(root).is_empty())
            {
                let _ = writeln!(roots, "  {}: {}", kind.as_str(), schema.type_name(root));
            }
        }
        let _ = write!(self.out, "schema {{\n{roots}}}\n\n{FEDERATION_LINK}");
        self.out.push_str(FEDERATION_DEFINITIONS);
        for id in &schema.directive_list {
            let def = &schema.directive_defs[*id];
            let is_custom = !def.built_in
                && self
                    .supergraph
                    .links
                    .owner_of_directive(schema.name(def.name))
                    .is_none();
            if is_custom {
                self.directive(def);
            }
        }
        let mut entities: Vec<&str> = Vec::new();
        for (ty, _) in schema.types() {
            let source = self.source(ty);
            let keyed = |s: &TypeSource| s.keys.iter().any(|k| k.resolvable);
            if source.is_some_and(keyed) && self.kind(ty) == TypeKind::Object {
                entities.push(schema.type_name(ty));
            }
        }
        if !entities.is_empty() {
            let _ = writeln!(self.out, "\nunion _Entity = {}", entities.join(" | "));
        }
        for (ty, def) in schema.types() {
            if Some(ty) == query {
                self.query(ty, !entities.is_empty());
            } else if let Some(source) = self.source(ty)
                && !def.built_in
                && !(schema.roots.contains(&Some(ty)) && self.fields(ty).is_empty())
            {
                self.type_definition(ty, def, source);
            }
        }
    }

    fn source(&self, ty: TypeId) -> Option<&'a TypeSource> {
        self.supergraph.graph.type_source(ty, self.subgraph)
    }
    /// The kind here: an `@interfaceObject` is an object.
    fn kind(&self, ty: TypeId) -> TypeKind {
        let here = self.source(ty).is_some_and(|s| s.interface_object);
        if here {
            TypeKind::Object
        } else {
            self.schema.types[ty].kind
        }
    }
    fn is_here(&self, ty: TypeId) -> bool {
        self.source(ty).is_some()
    }
    /// The fields of a type that this subgraph defines.
    fn fields(&self, ty: TypeId) -> Vec<FieldId> {
        let graph = &self.supergraph.graph;
        let fields = self.schema.types[ty].fields.iter().copied();
        fields
            .filter(|f| {
                let source = graph.field_source(*f, self.subgraph);
                source.is_some_and(|s| {
                    let value = s.ty.unwrap_or(self.schema.fields[*f].ty);
                    s.via_interface_object.is_none() && self.is_here(value.id)
                })
            })
            .collect()
    }

    fn query(&mut self, ty: TypeId, entities: bool) {
        let _ = writeln!(self.out, "\ntype {} {{", self.schema.type_name(ty));
        for field in self.fields(ty) {
            self.field(field);
        }
        if entities {
            self.out
                .push_str("  _entities(representations: [_Any!]!): [_Entity]!\n");
        }
        self.out.push_str("  _service: _Service!\n}\n");
    }

    fn type_definition(&mut self, ty: TypeId, def: &TypeDef, source: &TypeSource) {
        let kind = self.kind(ty);
        let keyword = match kind {
            TypeKind::Scalar => "scalar",
            TypeKind::Object => "type",
            TypeKind::Interface => "interface",
            TypeKind::Union => "union",
            TypeKind::Enum => "enum",
            TypeKind::InputObject => "input",
        };
        let _ = write!(self.out, "\n{keyword} {}", self.schema.type_name(ty));
        if matches!(kind, TypeKind::Object | TypeKind::Interface) {
            self.implements(ty, def, source);
        }
        if source.interface_object {
            self.out.push_str(" @interfaceObject");
        }
        for key in &source.keys {
            self.out.push_str(" @key(fields: \"");
            self.selection(key.fields, ty);
            self.out.push('"');
            if !key.resolvable {
                self.out.push_str(", resolvable: false");
            }
            self.out.push(')');
        }
        match kind {
            TypeKind::Scalar => {}
            TypeKind::Object | TypeKind::Interface => {
                let fields = self.fields(ty);
                self.block(!fields.is_empty(), |writer| {
                    for field in fields {
                        writer.field(field);
                    }
                });
            }
            TypeKind::Union => {
                let members = source
                    .possible
                    .iter()
                    .map(|t| self.schema.type_name(TypeId(t)));
                let members = members.collect::<Vec<_>>().join(" | ");
                if !members.is_empty() {
                    let _ = write!(self.out, " = {members}");
                }
            }
            TypeKind::Enum => {
                let schema = self.schema;
                let here = |v: &&EnumValueId| source.enum_values.contains(v.0);
                let values: Vec<_> = def.enum_values.iter().filter(here).collect();
                self.block(!values.is_empty(), |writer| {
                    for value in values {
                        let name = schema.name(schema.enum_values[*value].name);
                        let _ = writeln!(writer.out, "  {name}");
                    }
                });
            }
            TypeKind::InputObject => {
                let inputs = self.inputs_here(&def.input_fields);
                self.block(!inputs.is_empty(), |writer| {
                    for input in inputs {
                        writer.out.push_str("  ");
                        writer.input(input);
                        writer.out.push('\n');
                    }
                });
            }
        }
        self.out.push('\n');
    }

    /// Braces around members, or nothing: a type may have lost all of them to overrides.
    fn block(&mut self, any: bool, write: impl FnOnce(&mut Self)) {
        if any {
            self.out.push_str(" {\n");
            write(self);
            self.out.push('}');
        }
    }

    fn implements(&mut self, ty: TypeId, def: &TypeDef, source: &TypeSource) {
        // An interface implements another here if whatever can be the one can be the other.
        let possible: BitSet = match def.kind {
            TypeKind::Object => [ty.0].into_iter().collect(),
            _ => source.possible.clone(),
        };
        let names: Vec<&str> = def
            .interfaces
            .iter()
            .filter(|i| {
                self.source(**i).is_some_and(|s| {
                    !s.interface_object && !possible.is_empty() && possible.is_subset(&s.possible)
                })
            })
            .map(|i| self.schema.type_name(*i))
            .collect();
        if !names.is_empty() {
            let _ = write!(self.out, " implements {}", names.join(" & "));
        }
    }

    fn field(&mut self, field: FieldId) {
        let def = &self.schema.fields[field];
        let Some(source) = self.supergraph.graph.field_source(field, self.subgraph) else {
            return;
        };
        let _ = write!(self.out, "  {}", self.schema.field_name(field));
        let args = self.inputs_here(&def.args);
        if !args.is_empty() || !source.context_args.is_empty() {
            self.out.push('(');
            let mut first = true;
            for arg in args {
                self.out.push_str(if first { "" } else { ", " });
                self.input(arg);
                first = false;
            }
            for arg in &source.context_args {
                let comma = if first { "" } else { ", " };
                let _ = write!(self.out, "{comma}{}: {}", arg.name, arg.ty);
                first = false;
            }
            self.out.push(')');
        }
        let ty = source.ty.unwrap_or(def.ty);
        let _ = write!(self.out, ": {}", self.schema.display_type(ty));
        if source.external {
            self.out.push_str(" @external");
        }
        if let Some(set) = source.requires {
            self.out.push_str(" @requires(fields: \"");
            self.selection(set, def.parent);
            self.out.push_str("\")");
        }
        if let Some(set) = source.provides {
            self.out.push_str(" @provides(fields: \"");
            self.selection(set, ty.id);
            self.out.push_str("\")");
        }
        self.out.push('\n');
    }

    fn inputs_here(&self, inputs: &[InputId]) -> Vec<InputId> {
        let graph = &self.supergraph.graph;
        let here = |i: &InputId| {
            let partial = graph.partial_inputs.get(i);
            partial.is_none_or(|p| p.contains(self.subgraph.0))
                && self.is_here(self.schema.inputs[*i].ty.id)
        };
        inputs.iter().copied().filter(here).collect()
    }

    fn input(&mut self, input: InputId) {
        let def = &self.schema.inputs[input];
        let local = self
            .supergraph
            .graph
            .input_types
            .get(&(input, self.subgraph));
        let ty = local.copied().unwrap_or(def.ty);
        let _ = write!(
            self.out,
            "{}: {}",
            self.schema.name(def.name),
            self.schema.display_type(ty)
        );
        if let Some(default) = &def.default {
            let _ = write!(self.out, " = {default}");
        }
    }

    /// A field set inside a string literal.
    fn selection(&mut self, set: FieldSetId, parent: TypeId) {
        let mut text = String::new();
        write_field_set(
            self.schema,
            &self.supergraph.graph.field_sets,
            set,
            &self.schema.types[parent].possible,
            &mut text,
        );
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
        self.out.push_str(&escaped);
    }

    /// Custom directives that requests may carry.
    fn directive(&mut self, def: &DirectiveDef) {
        let locations: Vec<&str> = def
            .locations
            .iter()
            .filter(|l| **l < DirectiveLocation::Schema)
            .map(|l| l.as_str())
            .collect();
        if locations.is_empty() {
            return;
        }
        let _ = write!(self.out, "\ndirective @{}", self.schema.name(def.name));
        let args = self.inputs_here(&def.args);
        for (i, arg) in args.iter().enumerate() {
            self.out.push_str(if i == 0 { "(" } else { ", " });
            self.input(*arg);
        }
        self.out.push_str(if args.is_empty() { "" } else { ")" });
        self.out
            .push_str(if def.repeatable { " repeatable" } else { "" });
        let _ = writeln!(self.out, " on {}", locations.join(" | "));
    }
}
