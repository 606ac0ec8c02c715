//! What a subgraph defines or applies itself although it is not its own: types of introspection, machinery of
//! federation, directives that say the same twice.

use ogive_base::{BitSet, Diagnostic, SourceId, Span};
use ogive_schema::{OperationKind, Schema, TypeId, TypeKind};
use ogive_syntax::{
    Document,
    ast::{Definition, Directive, List, TypeDefinitionKind},
};

use crate::codes;

/// Fields of the query root that every subgraph has, and types that only they mention.
const FIELDS: [&str; 2] = ["_service", "_entities"];
const TYPES: [&str; 3] = ["\"_Service\"", "\"_Any\"", "\"_Entity\""];

/// Whether an error is about a type of the machinery that the fields of the machinery mention and nobody defines:
/// these fields are left out of the merge anyway.
pub(crate) fn is_of_machinery(doc: &Document, schema: &Schema, error: &Diagnostic) -> bool {
    if error.code != ogive_schema::codes::UNKNOWN_TYPE
        || !TYPES.iter().any(|t| error.message.contains(t))
    {
        return false;
    }
    let (Some(label), Some(query)) = (error.labels.first(), schema.root(OperationKind::Query))
    else {
        return false;
    };
    let query = schema.type_name(query);
    doc.definitions.iter().any(|definition| {
        let Definition::Type(ty) = definition else {
            return false;
        };
        let TypeDefinitionKind::Object { fields, .. } = ty.kind else {
            return false;
        };
        doc.name(ty.name) == query
            && doc[fields].iter().any(|f| {
                FIELDS.contains(&doc.name(f.name))
                    && f.span.start <= label.span.start
                    && label.span.end <= f.span.end
            })
    })
}

/// Types of introspection and of specifications belong to whoever is asked, and are not part of the supergraph: nothing
/// of a subgraph's own can be of such a type.
pub(crate) fn check(schema: &Schema, machinery: &BitSet, errors: &mut Vec<Diagnostic>) {
    let mut checker = Checker {
        schema,
        machinery,
        own: true,
        errors,
    };
    for (id, ty) in schema.types() {
        if ty.built_in {
            continue;
        }
        if machinery.contains(id.0) {
            checker.kind(id);
        }
        checker.own = !machinery.contains(id.0);
        for field in &ty.fields {
            let row = &schema.fields[*field];
            checker.refuse(row.ty.id, || schema.field_coordinate(*field), row.span);
            for arg in &row.args {
                let row = &schema.inputs[*arg];
                checker.refuse(row.ty.id, || schema.field_coordinate(*field), row.span);
            }
        }
        for input in &ty.input_fields {
            let row = &schema.inputs[*input];
            let about = || format!("{}.{}", schema.type_name(id), schema.name(row.name));
            checker.refuse(row.ty.id, about, row.span);
        }
        for member in &ty.members {
            checker.refuse(*member, || schema.type_name(id).to_owned(), ty.span);
        }
    }
}

struct Checker<'a> {
    schema: &'a Schema,
    machinery: &'a BitSet,
    /// Whether the type that is looked at is the subgraph's own.
    own: bool,
    errors: &'a mut Vec<Diagnostic>,
}

impl Checker<'_> {
    fn refuse(&mut self, ty: TypeId, about: impl FnOnce() -> String, span: Span) {
        let name = self.schema.type_name(ty);
        let is_introspection = self.schema.types[ty].built_in && name.starts_with("__");
        let is_machinery = self.own && self.machinery.contains(ty.0);
        if !is_introspection && !is_machinery {
            return;
        }
        let about = about();
        let message = if is_introspection {
            format!("Unknown type \"{name}\".")
        } else {
            format!("`{about}` is of type `{name}`, which is not part of the supergraph")
        };
        self.errors.push(
            Diagnostic::error(codes::INVALID_GRAPHQL, message)
                .about(about)
                .label(SourceId(0), span, "")
                .help("types of introspection and of linked specifications are nobody's data: define a type for this"),
        );
    }

    /// The types that every subgraph has beside its own are inputs or outputs, as its two fields need them.
    fn kind(&mut self, ty: TypeId) {
        let name = self.schema.type_name(ty);
        let row = &self.schema.types[ty];
        let (fits, what) = match name {
            "_Any" => (row.kind.is_input(), "an input type"),
            "_Service" | "_Entity" => (row.kind != TypeKind::InputObject, "an output type"),
            _ => return,
        };
        if !fits {
            let message = format!("`{name}` is {what} of every subgraph");
            self.errors.push(
                Diagnostic::error(codes::INVALID_GRAPHQL, message)
                    .about(name)
                    .label(SourceId(0), row.span, "")
                    .help("leave the definition out, or choose another name"),
            );
        }
    }
}

/// `@shareable` may be repeated so that a type and its extensions can each have it; one place has it once.
pub(crate) fn repeated_shareable(doc: &Document, name: &str) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    let mut check = |list: List<Directive>, about: &dyn Fn() -> String| {
        let mut found = doc[list].iter().filter(|d| doc.name(d.name) == name);
        if let (Some(first), Some(second)) = (found.next(), found.next()) {
            let about = about();
            let message = format!("`{about}` is marked `@{name}` twice in one place");
            errors.push(
                Diagnostic::error(codes::INVALID_SHAREABLE_USAGE, message)
                    .about(about)
                    .label(doc.source_id(), second.span, "")
                    .label(doc.source_id(), first.span, "said here already")
                    .help("remove one of them"),
            );
        }
    };
    for definition in &doc.definitions {
        let Definition::Type(ty) = definition else {
            continue;
        };
        check(ty.directives, &|| doc.name(ty.name).to_owned());
        if let TypeDefinitionKind::Object { fields, .. } = ty.kind {
            for field in &doc[fields] {
                let about = || format!("{}.{}", doc.name(ty.name), doc.name(field.name));
                check(field.directives, &about);
            }
        }
    }
    errors
}
