//! A schema back to SDL, in the layout of the document printer.
//!
//! Invariants: only visible rows are printed; building the printed text gives an equal schema (withheld rows aside);
//! the text is a fixpoint of `parse` and `print_document`; the same schema prints the same text on every machine.

mod strings;

use std::fmt::Write;

use crate::{OperationKind, builtins, types::*, value::write_value};

/// What to print, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// Print specified scalars and directives and introspection types too; default false.
    pub built_ins: bool,
    /// Order of everything that has a name; default [`Order::Definition`].
    pub order: Order,
    /// Which applied directives to print; default [`Applied::All`].
    pub applied: Applied,
    /// Print descriptions; default true.
    pub descriptions: bool,
}

/// Order of types, fields, arguments, values, members and directive definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As in the tables: definition order.
    Definition,
    /// By name, byte by byte; for comparing schemas.
    Name,
}

/// Which applied directives are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// All.
    All,
    /// `@deprecated`, `@specifiedBy`, `@oneOf`: those that introspection shows; for API schemas.
    Specified,
}

impl Default for PrintOptions {
    fn default() -> Self {
        PrintOptions {
            built_ins: false,
            order: Order::Definition,
            applied: Applied::All,
            descriptions: true,
        }
    }
}

/// Prints the schema definition (where it says more than the names of the types do), directive definitions and types,
/// separated by empty lines.
pub fn print(schema: &Schema, options: &PrintOptions) -> String {
    let mut printer = Printer {
        schema,
        options,
        out: String::new(),
        indent: 0,
    };
    printer.schema_definition();
    let directives = schema
        .directive_list
        .iter()
        .copied()
        .filter(|id| options.built_ins || !schema.directive_defs[*id].built_in)
        .collect();
    for id in printer.sorted(directives, |id| schema.directive_defs[id].name) {
        printer.begin();
        printer.directive_definition(id);
    }
    let types = schema
        .types()
        .filter(|(_, ty)| options.built_ins || !ty.built_in)
        .map(|(id, _)| id)
        .collect();
    for id in printer.sorted(types, |id| schema.types[id].name) {
        printer.begin();
        printer.type_definition(id);
    }
    if !printer.out.is_empty() {
        printer.out.push('\n');
    }
    printer.out
}

struct Printer<'a> {
    schema: &'a Schema,
    options: &'a PrintOptions,
    out: String,
    indent: usize,
}

impl Printer<'_> {
    fn schema_definition(&mut self) {
        let schema = self.schema;
        let kinds = [
            (OperationKind::Query, "Query"),
            (OperationKind::Mutation, "Mutation"),
            (OperationKind::Subscription, "Subscription"),
        ];
        let implied = kinds
            .iter()
            .all(|(kind, name)| schema.root(*kind) == schema.type_by_name(name));
        let described = self.options.descriptions && schema.description.is_some();
        let applied = schema.directives.iter().any(|d| self.is_printed(d));
        if implied && !described && !applied {
            return;
        }
        self.begin();
        if schema.roots.iter().all(Option::is_none) {
            // A definition needs a root operation type; its directives can stand without one.
            self.out.push_str("extend schema");
            self.applied(&schema.directives);
            return;
        }
        self.description(schema.description.as_deref());
        self.out.push_str("schema");
        self.applied(&schema.directives);
        self.open();
        for (kind, _) in kinds {
            if let Some(id) = schema.root(kind) {
                self.line();
                let _ = write!(self.out, "{}: {}", kind.as_str(), schema.type_name(id));
            }
        }
        self.close();
    }

    fn directive_definition(&mut self, id: DirectiveId) {
        let schema = self.schema;
        let row = &schema.directive_defs[id];
        self.description(row.description.as_deref());
        let _ = write!(self.out, "directive @{}", schema.name(row.name));
        self.args(&row.args);
        if row.repeatable {
            self.out.push_str(" repeatable");
        }
        for (i, location) in row.locations.iter().enumerate() {
            self.out.push_str(if i == 0 { " on " } else { " | " });
            self.out.push_str(location.as_str());
        }
    }

    fn type_definition(&mut self, id: TypeId) {
        let schema = self.schema;
        let row = &schema.types[id];
        self.description(row.description.as_deref());
        self.out.push_str(match row.kind {
            TypeKind::Scalar => "scalar ",
            TypeKind::Object => "type ",
            TypeKind::Interface => "interface ",
            TypeKind::Union => "union ",
            TypeKind::Enum => "enum ",
            TypeKind::InputObject => "input ",
        });
        self.out.push_str(schema.name(row.name));
        let interfaces = self.sorted(row.interfaces.clone(), |id| schema.types[id].name);
        self.names(" implements ", &interfaces, " & ");
        self.applied(&row.directives);
        let members = self.sorted(row.members.clone(), |id| schema.types[id].name);
        self.names(" = ", &members, " | ");
        if row.fields.is_empty() && row.enum_values.is_empty() && row.input_fields.is_empty() {
            return;
        }
        self.open();
        for id in self.sorted(row.fields.clone(), |id| schema.fields[id].name) {
            self.line();
            let field = &schema.fields[id];
            self.description(field.description.as_deref());
            self.out.push_str(schema.name(field.name));
            self.args(&field.args);
            self.out.push_str(": ");
            let _ = field
                .ty
                .wrapping
                .write(schema.type_name(field.ty.id), &mut self.out);
            self.applied(&field.directives);
        }
        for id in self.sorted(row.enum_values.clone(), |id| schema.enum_values[id].name) {
            self.line();
            let value = &schema.enum_values[id];
            self.description(value.description.as_deref());
            self.out.push_str(schema.name(value.name));
            self.applied(&value.directives);
        }
        for id in self.sorted(row.input_fields.clone(), |id| schema.inputs[id].name) {
            self.line();
            self.input(id);
        }
        self.close();
    }

    /// `(a: T, b: U)`, or one per line if any is described.
    fn args(&mut self, args: &[InputId]) {
        let schema = self.schema;
        if args.is_empty() {
            return;
        }
        let spread = self.options.descriptions
            && args
                .iter()
                .any(|id| schema.inputs[*id].description.is_some());
        self.out.push('(');
        self.indent += 1;
        let args = self.sorted(args.to_vec(), |id| schema.inputs[id].name);
        for (i, id) in args.into_iter().enumerate() {
            if spread {
                self.line();
            } else if i > 0 {
                self.out.push_str(", ");
            }
            self.input(id);
        }
        self.indent -= 1;
        if spread {
            self.line();
        }
        self.out.push(')');
    }

    fn input(&mut self, id: InputId) {
        let schema = self.schema;
        let row = &schema.inputs[id];
        self.description(row.description.as_deref());
        self.out.push_str(schema.name(row.name));
        self.out.push_str(": ");
        let name = schema.type_name(row.ty.id);
        let _ = row.ty.wrapping.write(name, &mut self.out);
        if let Some(default) = &row.default {
            self.out.push_str(" = ");
            let _ = write_value(default, &mut self.out);
        }
        self.applied(&row.directives);
    }

    fn is_printed(&self, directive: &AppliedDirective) -> bool {
        self.options.applied == Applied::All
            || [
                builtins::DEPRECATED,
                builtins::SPECIFIED_BY,
                builtins::ONE_OF,
            ]
            .iter()
            .any(|id| self.schema.directive_defs[*id].name == directive.name)
    }

    fn applied(&mut self, directives: &[AppliedDirective]) {
        for directive in directives {
            if !self.is_printed(directive) {
                continue;
            }
            let _ = write!(self.out, " @{}", self.schema.name(directive.name));
            for (i, (name, value)) in directive.args.iter().enumerate() {
                self.out.push_str(if i == 0 { "(" } else { ", " });
                self.out.push_str(self.schema.name(*name));
                self.out.push_str(": ");
                let _ = write_value(value, &mut self.out);
            }
            if !directive.args.is_empty() {
                self.out.push(')');
            }
        }
    }

    fn names(&mut self, before: &str, ids: &[TypeId], separator: &str) {
        for (i, id) in ids.iter().enumerate() {
            self.out.push_str(if i == 0 { before } else { separator });
            self.out.push_str(self.schema.type_name(*id));
        }
    }

    fn sorted<I: Copy>(&self, mut ids: Vec<I>, name: impl Fn(I) -> ogive_base::Symbol) -> Vec<I> {
        if self.options.order == Order::Name {
            ids.sort_by_key(|id| self.schema.name(name(*id)));
        }
        ids
    }

    /// An empty line, unless nothing is printed yet.
    fn begin(&mut self) {
        if !self.out.is_empty() {
            self.out.push_str("\n\n");
        }
    }

    fn open(&mut self) {
        self.out.push_str(" {");
        self.indent += 1;
    }

    fn close(&mut self) {
        self.indent -= 1;
        self.line();
        self.out.push('}');
    }

    fn line(&mut self) {
        self.out.push('\n');
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
    }
}
