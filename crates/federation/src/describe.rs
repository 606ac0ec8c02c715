//! The rows of a supergraph as text, for tests, bug reports and people.
//!
//! One block per type in order of definition, one line per field. A subgraph that mentions a field without
//! resolving it freely (external, requires, overridden) stands in parentheses. Order and wording are stable.

use std::fmt::Write;

use ogive_base::{BitSet, without_secrets};
use ogive_schema::{FieldId, Schema, TypeDef, TypeId, TypeKind};

use crate::{
    FieldSetId, FieldSource, SubgraphId, Supergraph, TypeSource, field_set::write_field_set,
};

/// Describes all rows.
pub fn describe(supergraph: &Supergraph) -> String {
    let mut writer = Writer {
        supergraph,
        schema: &supergraph.schema,
        out: String::new(),
    };
    writer.all();
    writer.out
}

struct Writer<'a> {
    supergraph: &'a Supergraph,
    schema: &'a Schema,
    out: String,
}

impl Writer<'_> {
    fn all(&mut self) {
        for (_, subgraph) in self.supergraph.subgraphs.iter() {
            let _ = write!(self.out, "subgraph {}", subgraph.name);
            if !subgraph.url.is_empty() {
                let _ = write!(self.out, " at {}", without_secrets(&subgraph.url));
            }
            self.out.push('\n');
        }
        for (i, label) in self.supergraph.graph.override_labels.iter().enumerate() {
            let _ = writeln!(self.out, "label {i} {label}");
        }
        for (ty, def) in self.schema.types() {
            let row = &self.supergraph.graph.types[ty];
            if !def.built_in && !row.sources.is_empty() {
                self.type_block(ty, def);
            }
        }
        self.hidden();
        for warning in &self.supergraph.warnings {
            let _ = write!(
                self.out,
                "\nwarning[{}]: {}\n",
                warning.code, warning.message
            );
        }
    }

    fn name(&self, subgraph: SubgraphId) -> &str {
        &self.supergraph.subgraphs[subgraph].name
    }

    fn type_block(&mut self, ty: TypeId, def: &TypeDef) {
        let row = &self.supergraph.graph.types[ty];
        let _ = write!(
            self.out,
            "\n{} {}",
            kind(def.kind),
            self.schema.type_name(ty)
        );
        if row.is_entity {
            self.out.push_str(" (entity)");
        }
        self.out.push('\n');
        for source in &row.sources {
            let text = self.type_source(ty, def, source);
            let _ = writeln!(self.out, "  in {text}");
        }
        for field in &def.fields {
            self.field(*field);
        }
        for input in &def.input_fields {
            let name = self.schema.name(self.schema.inputs[*input].name);
            let partial = self.supergraph.graph.partial_inputs.get(input);
            let mut text = String::new();
            for source in &row.sources {
                if partial.is_some_and(|p| !p.contains(source.subgraph.0)) {
                    continue;
                }
                let _ = write!(text, " {}", self.name(source.subgraph));
                let local = self
                    .supergraph
                    .graph
                    .input_types
                    .get(&(*input, source.subgraph));
                if let Some(local) = local {
                    let _ = write!(text, " as {}", self.schema.display_type(*local));
                }
            }
            let _ = writeln!(self.out, "  {name}:{text}");
        }
    }

    fn type_source(&self, ty: TypeId, def: &TypeDef, source: &TypeSource) -> String {
        let mut text = self.name(source.subgraph).to_owned();
        if source.extension {
            text.push_str(" extension");
        }
        if source.interface_object {
            text.push_str(" interface-object");
        }
        for key in &source.keys {
            text.push_str(if key.resolvable {
                " key"
            } else {
                " unresolvable-key"
            });
            let _ = write!(text, " \"{}\"", self.selection(key.fields, ty));
        }
        if def.kind.is_abstract() {
            let names = source
                .possible
                .iter()
                .map(|t| self.schema.type_name(TypeId(t)));
            let _ = write!(text, " = {}", names.collect::<Vec<_>>().join(" | "));
        }
        if def.kind == TypeKind::Enum {
            let values = def
                .enum_values
                .iter()
                .filter(|v| source.enum_values.contains(v.0));
            let names = values.map(|v| self.schema.name(self.schema.enum_values[*v].name));
            let _ = write!(text, " = {}", names.collect::<Vec<_>>().join(" "));
        }
        text
    }

    fn field(&mut self, field: FieldId) {
        let row = &self.supergraph.graph.fields[field];
        let texts: Vec<String> = row
            .sources
            .iter()
            .map(|source| {
                let text = self.field_source(field, source);
                if row.resolvers.contains(source.subgraph.0) {
                    text
                } else {
                    format!("({text})")
                }
            })
            .collect();
        let name = self.schema.field_name(field);
        let texts = if texts.is_empty() {
            "nobody".to_owned()
        } else {
            texts.join(", ")
        };
        let _ = write!(self.out, "  {name}: {texts}");
        let costs = &self.supergraph.graph.costs;
        for size in costs.list_sizes.get(&field).into_iter().flatten() {
            self.out.push_str(", list of");
            for slicing in &size.slicing {
                let path = std::iter::once(&slicing.input).chain(&slicing.path);
                let path: Vec<&str> = path
                    .map(|input| self.schema.name(self.schema.inputs[*input].name))
                    .collect();
                let _ = write!(self.out, " ${}", path.join("."));
            }
            if let Some(assumed) = size.assumed {
                let _ = write!(self.out, " {assumed}");
            }
            for path in &size.sized {
                let path: Vec<&str> = path.iter().map(|name| self.schema.name(*name)).collect();
                let _ = write!(self.out, " in {}", path.join("."));
            }
        }
        if let Some(weight) = costs.of_field(self.schema, field) {
            let _ = write!(self.out, ", weight {weight}");
        }
        self.out.push('\n');
    }

    fn field_source(&self, field: FieldId, source: &FieldSource) -> String {
        let def = &self.schema.fields[field];
        let mut text = self.name(source.subgraph).to_owned();
        if let Some(interface) = source.via_interface_object {
            let _ = write!(text, " via {}", self.schema.type_name(interface));
        }
        if source.external {
            text.push_str(" external");
        }
        if source.used_overridden {
            text.push_str(" overridden");
        }
        if let Some((from, label)) = source.overrides {
            let _ = write!(text, " overrides {}", self.name(from));
            if let Some(label) = label {
                let _ = write!(text, " if label {label}");
            }
        }
        if let Some(ty) = source.ty {
            let _ = write!(text, " as {}", self.schema.display_type(ty));
        }
        if let Some(set) = source.requires {
            let _ = write!(text, " requires \"{}\"", self.selection(set, def.parent));
        }
        if let Some(set) = source.provides {
            let value = source.ty.unwrap_or(def.ty).id;
            let _ = write!(text, " provides \"{}\"", self.selection(set, value));
        }
        for arg in &source.context_args {
            let _ = write!(
                text,
                " {}: {} from {} \"{}\"",
                arg.name, arg.ty, arg.context, arg.selection
            );
        }
        text
    }

    fn selection(&self, set: FieldSetId, parent: TypeId) -> String {
        let mut text = String::new();
        let types: &BitSet = &self.schema.types[parent].possible;
        write_field_set(
            self.schema,
            &self.supergraph.graph.field_sets,
            set,
            types,
            &mut text,
        );
        text
    }

    /// What clients do not see of the graph's own elements.
    fn hidden(&mut self) {
        let api = &self.supergraph.api;
        let mut hidden: Vec<String> = Vec::new();
        for (ty, def) in self.schema.types() {
            let name = self.schema.type_name(ty);
            if def.built_in || self.supergraph.graph.types[ty].sources.is_empty() {
                continue;
            }
            if api.type_by_name(name).is_none() {
                hidden.push(name.to_owned());
                continue;
            }
            for field in &def.fields {
                let coordinate = self.schema.field_coordinate(*field);
                if !api.types[ty].fields.contains(field) {
                    hidden.push(coordinate);
                    continue;
                }
                for arg in &self.schema.fields[*field].args {
                    if !api.fields[*field].args.contains(arg) {
                        let arg = self.schema.name(self.schema.inputs[*arg].name);
                        hidden.push(format!("{coordinate}({arg}:)"));
                    }
                }
            }
            let see = &api.types[ty];
            let inputs = def
                .input_fields
                .iter()
                .filter(|i| !see.input_fields.contains(i));
            let values = def
                .enum_values
                .iter()
                .filter(|v| !see.enum_values.contains(v));
            let inputs = inputs.map(|i| self.schema.inputs[*i].name);
            let values = values.map(|v| self.schema.enum_values[*v].name);
            hidden.extend(
                inputs
                    .chain(values)
                    .map(|n| format!("{name}.{}", self.schema.name(n))),
            );
        }
        if !hidden.is_empty() {
            let _ = write!(self.out, "\nhidden from clients: {}\n", hidden.join(", "));
        }
    }
}

fn kind(kind: TypeKind) -> &'static str {
    match kind {
        TypeKind::Scalar => "scalar",
        TypeKind::Object => "type",
        TypeKind::Interface => "interface",
        TypeKind::Union => "union",
        TypeKind::Enum => "enum",
        TypeKind::InputObject => "input",
    }
}
