//! SDL to [`Schema`].
//!
//! Four passes over the documents, each linear: names of types and directives; contents of definitions, then of
//! extensions; root operation types; what follows from the tables (possible types, unreferenced scalars). Rules that
//! concern one definition are checked where it is read; applied directives and default values, which need complete
//! tables, are queued and checked by [`mod@crate::validate`] together with the rules between definitions.
//!
//! Invariants: a row is made only for what has a known type and a new name, so the tables are closed (no dangling
//! id) whatever the input; what was refused is in `errors`; an owner that lost a row is marked *incomplete* so that
//! no rule complains about the loss again.

mod content;

use ogive_base::{BitSet, Diagnostic, FastMap, Symbol};
use ogive_syntax::{
    Document,
    ast::{self, Definition, DirectiveDefinition, TypeDefinition, TypeDefinitionKind},
};

use crate::{
    Schema,
    builder::{BuildOptions, Builder, DIRECTIVES_MAX, DirectiveUse, TYPES_MAX},
    codes,
    report::Place,
    suggest,
    types::*,
    validate,
};

/// A schema and everything that was wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// What could be built; use it only if `errors` is empty.
    pub schema: Schema,
    /// Violations, in document order.
    pub errors: Vec<Diagnostic>,
}

/// Builds one schema from one or more documents (definitions and extensions in any order), adding the specified
/// scalars, directives and introspection types. O(n log n) in the documents.
pub fn build(documents: &[&Document], options: &BuildOptions) -> Built {
    let mut builder = Builder::new(documents, options);
    builder.collect_names();
    if options.extensions_define {
        builder.collect_extended_names();
    }
    builder.read_directives();
    builder.read_types();
    builder.read_schema();
    builder.schema.withhold_unreferenced(&builder.redeclared);
    compute_possible(&mut builder.schema);
    if options.validate {
        validate::validate(&mut builder, options.require_query);
    }
    for root in &mut builder.schema.roots {
        root.take_if(|id| builder.schema.types[*id].kind != TypeKind::Object);
    }
    Built {
        schema: builder.schema,
        errors: builder.report.into_errors(),
    }
}

/// Sets `possible` of every visible composite type from interfaces and members. Linear in both.
pub(crate) fn compute_possible(schema: &mut Schema) {
    for id in schema.types.ids() {
        schema.types[id].possible = BitSet::new();
    }
    for i in 0..schema.type_list.len() {
        let id = schema.type_list[i];
        match schema.types[id].kind {
            TypeKind::Object => {
                schema.types[id].possible.insert(id.0);
                for j in 0..schema.types[id].interfaces.len() {
                    let interface = schema.types[id].interfaces[j];
                    schema.types[interface].possible.insert(id.0);
                }
            }
            TypeKind::Union => {
                schema.types[id].possible = schema.types[id].members.iter().map(|m| m.0).collect();
            }
            _ => {}
        }
    }
}

impl<'d> Builder<'d> {
    fn collect_names(&mut self) {
        for (doc_index, doc) in (0..).zip(self.docs) {
            for definition in &doc.definitions {
                match definition {
                    Definition::Operation(_) | Definition::Fragment(_) => self.report.error(
                        codes::EXECUTABLE_DEFINITION,
                        "Operations and fragments cannot be part of a schema.".into(),
                        Place {
                            doc: doc_index,
                            span: definition.span(),
                        },
                    ),
                    Definition::Type(t) if t.extend => self.extensions.push((doc_index, *t)),
                    Definition::Type(t) => self.collect_type(doc_index, doc, t),
                    Definition::Directive(d) => self.collect_directive(doc_index, doc, d),
                    Definition::Schema(s) if s.extend => {
                        self.schema_extensions.push((doc_index, *s));
                    }
                    Definition::Schema(s) if self.schema_definition.is_some() => self.report.error(
                        codes::DUPLICATE_DEFINITION,
                        "Must provide only one schema definition.".into(),
                        Place {
                            doc: doc_index,
                            span: s.span,
                        },
                    ),
                    Definition::Schema(s) => self.schema_definition = Some((doc_index, *s)),
                }
            }
        }
    }

    /// Makes a row for every type that is only extended. It has no definition: its contents come with the extensions.
    fn collect_extended_names(&mut self) {
        for i in 0..self.extensions.len() {
            let (doc_index, extension) = self.extensions[i];
            let doc = self.docs[doc_index as usize];
            if self.schema.type_by_name(doc.name(extension.name)).is_none() {
                let defined = self.definitions.len();
                self.collect_type(doc_index, doc, &extension);
                // It is read as the extension it is.
                for (_, _, id) in self.definitions.drain(defined..) {
                    self.only_extended.insert(id.0);
                }
            }
        }
    }

    fn collect_type(&mut self, doc_index: u32, doc: &Document, definition: &TypeDefinition) {
        let text = doc.name(definition.name);
        let place = Place {
            doc: doc_index,
            span: definition.name.span(),
        };
        let name = self.schema.names.intern(text);
        if let Some(&first) = self.schema.types_by_name.get(&name) {
            let built_in = self.schema.types[first].built_in
                && self.schema.types[first].kind == kind_of(definition)
                && self.redeclared.insert(first.0);
            if built_in {
                // The built-in row stays; a row nobody sees takes the contents, so that they are checked.
                let row = type_row(name, doc, definition);
                let id = self.schema.types.push(row);
                self.type_places.push(place);
                self.definitions.push((doc_index, *definition, id));
            } else {
                self.report.error_with(
                    codes::DUPLICATE_DEFINITION,
                    format!("There can be only one type named \"{text}\"."),
                    place,
                    &[(self.type_places[first], "first defined here")],
                );
            }
            return;
        }
        if self.schema.types.len() >= TYPES_MAX as usize {
            self.refuse_size(place, "types", TYPES_MAX as usize);
            return;
        }
        self.check_name(text, place);
        let id = self.schema.types.push(type_row(name, doc, definition));
        self.type_places.push(place);
        self.schema.type_list.push(id);
        self.schema.types_by_name.insert(name, id);
        self.definitions.push((doc_index, *definition, id));
    }

    fn collect_directive(
        &mut self,
        doc_index: u32,
        doc: &Document,
        definition: &DirectiveDefinition,
    ) {
        let text = doc.name(definition.name);
        let place = Place {
            doc: doc_index,
            span: definition.name.span(),
        };
        let name = self.schema.names.intern(text);
        if let Some(&first) = self.schema.directives_by_name.get(&name) {
            let row = &mut self.schema.directive_defs[first];
            if row.built_in && self.redeclared_directives.insert(first.0) {
                row.description = description(doc, definition.description);
                row.span = place.span;
                row.args.clear();
                self.directive_places[first] = place;
                self.directives.push((doc_index, *definition, first));
            } else {
                self.report.error_with(
                    codes::DUPLICATE_DEFINITION,
                    format!("There can be only one directive named \"@{text}\"."),
                    place,
                    &[(self.directive_places[first], "first defined here")],
                );
            }
            return;
        }
        if self.schema.directive_defs.len() >= DIRECTIVES_MAX {
            self.refuse_size(place, "directives", DIRECTIVES_MAX);
            return;
        }
        self.check_name(text, place);
        let id = self.schema.directive_defs.push(DirectiveDef {
            name,
            args: Vec::new(),
            locations: Vec::new(),
            repeatable: definition.repeatable,
            description: description(doc, definition.description),
            span: place.span,
            built_in: false,
        });
        self.directive_places.push(place);
        self.schema.directive_list.push(id);
        self.schema.directives_by_name.insert(name, id);
        self.directives.push((doc_index, *definition, id));
    }

    fn read_schema(&mut self) {
        let definition = self.schema_definition;
        let extensions = std::mem::take(&mut self.schema_extensions);
        for (doc_index, schema) in definition.iter().chain(&extensions) {
            let doc = self.docs[*doc_index as usize];
            if !schema.extend {
                self.schema_place = Place {
                    doc: *doc_index,
                    span: schema.span,
                };
                self.schema.description = description(doc, schema.description);
            }
            let owner = Some(DirectiveUse::SCHEMA);
            let applied = self.apply(
                *doc_index,
                schema.directives,
                DirectiveLocation::Schema,
                owner,
            );
            self.schema.directives.extend(applied);
            for root in &doc[schema.root_types] {
                let place = Place {
                    doc: *doc_index,
                    span: root.ty.span(),
                };
                let kind = root.kind as usize;
                if let Some(first) = self.root_places[kind] {
                    self.report.error_with(
                        codes::DUPLICATE_DEFINITION,
                        format!(
                            "There can be only one {} type in schema.",
                            root.kind.as_str()
                        ),
                        place,
                        &[(first, "first defined here")],
                    );
                    continue;
                }
                self.root_places[kind] = Some(place);
                self.schema.roots[kind] = self.resolve(*doc_index, root.ty);
            }
        }
        if definition.is_none() {
            for (kind, name) in [(0, "Query"), (1, "Mutation"), (2, "Subscription")] {
                if self.root_places[kind].is_none()
                    && let Some(id) = self.schema.type_by_name(name)
                {
                    self.schema.roots[kind] = Some(id);
                    self.root_places[kind] = Some(self.type_places[id]);
                }
            }
        }
    }

    /// The type a name stands for; reports an unknown one.
    fn resolve(&mut self, doc: u32, name: ast::Name) -> Option<TypeId> {
        let text = self.docs[doc as usize].name(name);
        let found = self.schema.type_by_name(text);
        if found.is_none() && !self.report.is_full() {
            let visible = self.schema.types().map(|(_, t)| self.schema.name(t.name));
            let suggestions = suggest::suggestions(text, visible);
            let hint = suggest::did_you_mean(None, &suggestions);
            let place = Place {
                doc,
                span: name.span(),
            };
            let message = format!("Unknown type \"{text}\".{hint}");
            self.report.error(codes::UNKNOWN_TYPE, message, place);
        }
        found
    }

    fn check_name(&mut self, name: &str, place: Place) {
        if self.check && name.starts_with("__") {
            self.report.error(
                codes::RESERVED_NAME,
                format!(
                    "Name \"{name}\" must not begin with \"__\", which is reserved by GraphQL introspection."
                ),
                place,
            );
        }
    }

    /// Reports once that the schema is larger than a limit.
    fn refuse_size(&mut self, place: Place, what: &str, max: usize) {
        if !std::mem::replace(&mut self.too_large, true) {
            self.report.error(
                codes::SCHEMA_TOO_LARGE,
                format!("The schema has more than {max} {what}."),
                place,
            );
        }
    }
}

pub(crate) fn kind_of(definition: &TypeDefinition) -> TypeKind {
    match definition.kind {
        TypeDefinitionKind::Scalar => TypeKind::Scalar,
        TypeDefinitionKind::Object { .. } => TypeKind::Object,
        TypeDefinitionKind::Interface { .. } => TypeKind::Interface,
        TypeDefinitionKind::Union { .. } => TypeKind::Union,
        TypeDefinitionKind::Enum { .. } => TypeKind::Enum,
        TypeDefinitionKind::InputObject { .. } => TypeKind::InputObject,
    }
}

/// A type without contents.
fn type_row(name: Symbol, doc: &Document, definition: &TypeDefinition) -> TypeDef {
    TypeDef {
        name,
        kind: kind_of(definition),
        description: description(doc, definition.description),
        span: definition.name.span(),
        directives: Vec::new(),
        fields: Vec::new(),
        input_fields: Vec::new(),
        enum_values: Vec::new(),
        interfaces: Vec::new(),
        members: Vec::new(),
        possible: BitSet::new(),
        one_of: false,
        specified_by: None,
        built_in: false,
    }
}

fn description(doc: &Document, description: Option<ast::StringValue>) -> Option<Box<str>> {
    description.map(|d| doc.string_value(d).into())
}

/// First occurrence of each name among siblings.
type Seen = FastMap<Symbol, Place>;

#[cfg(test)]
mod tests {
    use ogive_syntax::{Limits, SourceId, parse};

    use super::*;
    use crate::builtins;

    fn built(sdl: &str) -> Built {
        let parsed = parse(sdl, SourceId(0), &Limits::default());
        assert_eq!(parsed.errors, []);
        build(&[&parsed.document], &BuildOptions::default())
    }

    #[test]
    fn builds_tables_from_definitions_and_extensions() {
        let built = built(
            r#"
            extend type Query { user(id: ID! = "1"): User @deprecated(reason: "old") }
            type Query { node: Node }
            interface Node { id: ID! }
            type User implements Node { id: ID! pet: Pet }
            type Dog implements Node { id: ID! }
            union Pet = Dog
            scalar Url @specifiedBy(url: "https://url.example")
            input One @oneOf { a: String b: Url }
            enum E { A B @deprecated }
            "#,
        );
        assert_eq!(built.errors, []);
        let schema = &built.schema;
        let id = |name: &str| schema.type_by_name(name).unwrap();
        assert_eq!(schema.root(ast::OperationKind::Query), Some(id("Query")));
        assert_eq!(schema.root(ast::OperationKind::Mutation), None);
        assert_eq!(id("Query"), TypeId(builtins::TYPES));
        let fields: Vec<_> = schema.types[id("Query")]
            .fields
            .iter()
            .map(|f| schema.field_name(*f))
            .collect();
        assert_eq!(fields, ["node", "user"]);
        let user = &schema.fields[schema.field_by_name(id("Query"), "user").unwrap()];
        assert_eq!(user.deprecated.as_deref(), Some("old"));
        let arg = &schema.inputs[user.args[0]];
        assert_eq!(schema.display_type(arg.ty), "ID!");
        assert_eq!(arg.default, Some(ConstValue::String("1".into())));
        assert_eq!(
            schema.types[id("Node")].possible.iter().collect::<Vec<_>>(),
            [id("User").0, id("Dog").0]
        );
        assert_eq!(
            schema.types[id("Pet")].possible.iter().collect::<Vec<_>>(),
            [id("Dog").0]
        );
        assert!(schema.types[id("One")].one_of);
        assert_eq!(
            schema.types[id("Url")].specified_by.as_deref(),
            Some("https://url.example")
        );
        let b = schema.enum_value_by_name(id("E"), "B").unwrap();
        assert_eq!(
            schema.enum_values[b].deprecated.as_deref(),
            Some("No longer supported")
        );
        assert_eq!(schema.type_by_name("Int"), None, "nothing references it");
        assert_eq!(schema.type_by_name("ID"), Some(builtins::ID));
        assert_eq!(schema.type_name(builtins::INTROSPECTION_TYPE), "__Type");
    }

    #[test]
    fn schema_definition_names_the_roots_alone() {
        let built = built("schema { query: Q } type Q { a: Int } type Mutation { a: Int }");
        assert_eq!(built.errors, []);
        assert_eq!(built.schema.roots[0], built.schema.type_by_name("Q"));
        assert_eq!(built.schema.roots[1], None);
    }
}
