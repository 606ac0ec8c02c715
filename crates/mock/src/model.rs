//! One subgraph's type system with its federation facts: keys, `@external`, `@requires`, `@provides`.
//!
//! Why: the engine must know which objects can be entered by `_entities`, which fields a strict subgraph refuses
//! to resolve, and which representation members a field depends on.
//!
//! Invariants: facts exist only for ids of `schema`; field sets hold names, not ids, because a name is looked up
//! again on each concrete type; a directive counts under the local name its `@link` import gives it.

use std::sync::Arc;

use ogive_base::{Diagnostic, FastMap, FastSet, SourceId, Sources};
use ogive_schema::{AppliedDirective, BuildOptions, FieldId, Schema, TypeId, TypeKind, build};
use ogive_syntax::{Limits, ast, parse, parse_selection_set};

use crate::sdl::{self, Federation, Vocabulary};

/// A type system and what federation says about it.
#[derive(Clone, Debug)]
pub struct Model {
    /// The type system as served, federation machinery included.
    pub schema: Arc<Schema>,
    /// The SDL as given: the answer of `_service { sdl }`.
    pub sdl: Arc<str>,
    /// Keys per type, resolvable or not, in order of definition.
    pub keys: FastMap<TypeId, Vec<Key>>,
    /// Facts of the fields that have any.
    pub fields: FastMap<FieldId, FieldFacts>,
    /// Fields that are members of some key, nested ones included.
    pub key_fields: FastSet<FieldId>,
    /// Types with `@interfaceObject`.
    pub interface_objects: FastSet<TypeId>,
    /// Whether federation machinery was found or added.
    pub federated: bool,
}

/// One `@key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its members.
    pub fields: FieldSet,
    /// Whether `_entities` can be asked by it.
    pub resolvable: bool,
}

/// What federation says about one field.
#[derive(Clone, Debug, Default)]
pub struct FieldFacts {
    /// `@external`, on the field or its type.
    pub external: bool,
    /// `@requires(fields:)`.
    pub requires: Option<Arc<FieldSet>>,
    /// `@provides(fields:)`.
    pub provides: Option<Arc<FieldSet>>,
}

/// A selection by names, as in `"id organization { id }"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Members in order.
    pub items: Vec<FieldSetItem>,
}

/// One member of a field set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSetItem {
    /// Field name.
    pub name: Box<str>,
    /// Type condition it stands under, if any.
    pub on: Option<Box<str>>,
    /// Sub-selection; empty for leaves.
    pub sub: FieldSet,
    /// Whether it is selected with arguments.
    pub has_arguments: bool,
}

impl FieldSet {
    /// Reads a field set; `None` if it is not one.
    pub fn parse(text: &str) -> Option<FieldSet> {
        let parsed = parse_selection_set(text, SourceId(0), &Limits::default());
        if !parsed.errors.is_empty() {
            return None;
        }
        let document = &parsed.document;
        let operation = document.operations().next()?;
        Some(Self::convert(document, operation.selection_set.items, None))
    }

    // Recursion is bounded by the parser's depth limit.
    fn convert(
        document: &ast::Document,
        items: ast::List<ast::Selection>,
        on: Option<&str>,
    ) -> FieldSet {
        let mut set = FieldSet::default();
        for selection in &document[items] {
            match selection {
                ast::Selection::Field(field) => set.items.push(FieldSetItem {
                    name: document.name(field.name).into(),
                    on: on.map(Into::into),
                    sub: field
                        .selection_set
                        .map(|s| Self::convert(document, s.items, None))
                        .unwrap_or_default(),
                    has_arguments: !field.arguments.is_empty(),
                }),
                ast::Selection::Inline(inline) => {
                    let on = inline.type_condition.map(|n| document.name(n)).or(on);
                    let inner = Self::convert(document, inline.selection_set.items, on);
                    set.items.extend(inner.items);
                }
                ast::Selection::Spread(_) => {}
            }
        }
        set
    }

    /// The member of that name, whatever its type condition.
    pub fn get(&self, name: &str) -> Option<&FieldSetItem> {
        self.items.iter().find(|i| &*i.name == name)
    }
    /// Whether it has no member.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl Model {
    /// Reads a subgraph schema or a plain schema and completes it with the federation definitions it lacks.
    /// Diagnostics point into a source named `name`.
    pub fn from_sdl(name: &str, sdl: &str, federation: Federation) -> Result<Model, SdlError> {
        let mut sources = Sources::new();
        let id = sources.add(name, sdl);
        let fail = |sources: Sources, diagnostics: Vec<Diagnostic>| SdlError {
            sources,
            diagnostics,
        };
        let parsed = parse(sdl, id, &Limits::default());
        if !parsed.errors.is_empty() {
            return Err(fail(sources, parsed.errors));
        }
        let completed = sdl::complete(&parsed.document, federation);
        let own = parse(completed.text.as_str(), id, &Limits::default());
        if !own.errors.is_empty() {
            return Err(fail(sources, own.errors));
        }
        let added_id = sources.add("federation definitions", completed.added.as_str());
        let added = parse(completed.added.as_str(), added_id, &Limits::default());
        // Without machinery the text is empty, which is no document but no mistake either.
        if !completed.added.is_empty() && !added.errors.is_empty() {
            return Err(fail(sources, added.errors));
        }
        let built = build(&[&own.document, &added.document], &BuildOptions::default());
        if !built.errors.is_empty() {
            return Err(fail(sources, built.errors));
        }
        let mut model = Model::from_schema(Arc::new(built.schema), sdl, &completed.vocabulary);
        model.federated = completed.federated;
        Ok(model)
    }

    /// A model over a schema that was built elsewhere, for example the API schema of a supergraph.
    pub fn from_schema(schema: Arc<Schema>, sdl: &str, vocabulary: &Vocabulary) -> Model {
        let mut model = Model {
            sdl: sdl.into(),
            keys: FastMap::default(),
            fields: FastMap::default(),
            key_fields: FastSet::default(),
            interface_objects: FastSet::default(),
            federated: true,
            schema: schema.clone(),
        };
        for (id, ty) in schema.types() {
            let mut type_external = false;
            for directive in &ty.directives {
                match vocabulary.canonical(schema.name(directive.name)) {
                    Some("key") => {
                        if let Some(fields) = field_set(&schema, directive) {
                            let resolvable = arg_bool(&schema, directive, "resolvable");
                            model.keys.entry(id).or_default().push(Key {
                                fields,
                                resolvable: resolvable.unwrap_or(true),
                            });
                        }
                    }
                    Some("interfaceObject") => {
                        model.interface_objects.insert(id);
                    }
                    Some("external") => type_external = true,
                    _ => {}
                }
            }
            for field in &ty.fields {
                let mut facts = FieldFacts {
                    external: type_external,
                    ..FieldFacts::default()
                };
                for directive in &schema.fields[*field].directives {
                    match vocabulary.canonical(schema.name(directive.name)) {
                        Some("external") => facts.external = true,
                        Some("requires") => {
                            facts.requires = field_set(&schema, directive).map(Arc::new);
                        }
                        Some("provides") => {
                            facts.provides = field_set(&schema, directive).map(Arc::new);
                        }
                        _ => {}
                    }
                }
                if facts.external || facts.requires.is_some() || facts.provides.is_some() {
                    model.fields.insert(*field, facts);
                }
            }
        }
        for id in schema.type_list.iter() {
            for key in model.keys.get(id).cloned().unwrap_or_default() {
                mark_key_fields(&schema, *id, &key.fields, &mut model.key_fields);
            }
        }
        model
    }

    /// The types of `_Entity`: object types with a resolvable key, in definition order.
    pub fn entity_types(&self) -> impl Iterator<Item = TypeId> {
        self.schema.types().filter_map(|(id, ty)| {
            (ty.kind == TypeKind::Object && self.keys.get(&id)?.iter().any(|k| k.resolvable))
                .then_some(id)
        })
    }
}

/// Marks the fields a key selects. An interface's key fields are marked on its implementing types too.
fn mark_key_fields(schema: &Schema, ty: TypeId, set: &FieldSet, out: &mut FastSet<FieldId>) {
    let mut work = vec![(ty, set)];
    while let Some((ty, set)) = work.pop() {
        for item in &set.items {
            let parent = item.on.as_deref().and_then(|n| schema.type_by_name(n));
            let parent = parent.unwrap_or(ty);
            let possible = schema.types[parent].possible.iter();
            for holder in possible.map(TypeId).chain([parent]) {
                if let Some(field) = schema.field_by_name(holder, &item.name) {
                    out.insert(field);
                    if !item.sub.is_empty() {
                        work.push((schema.fields[field].ty.id, &item.sub));
                    }
                }
            }
        }
    }
}

fn field_set(schema: &Schema, directive: &AppliedDirective) -> Option<FieldSet> {
    let name = schema.names.get("fields")?;
    // Federation v1 also accepted a list of strings.
    match directive.arg(name)? {
        ogive_schema::ConstValue::String(text) => FieldSet::parse(text),
        ogive_schema::ConstValue::List(items) => {
            let parts: Vec<&str> = items.iter().filter_map(|i| i.as_str()).collect();
            FieldSet::parse(&parts.join(" "))
        }
        _ => None,
    }
}

fn arg_bool(schema: &Schema, directive: &AppliedDirective, name: &str) -> Option<bool> {
    directive.arg(schema.names.get(name)?)?.as_bool()
}

/// An SDL that cannot be served, with everything that is wrong with it.
#[derive(Clone, Debug)]
pub struct SdlError {
    /// The texts the diagnostics point into.
    pub sources: Sources,
    /// What is wrong, in document order.
    pub diagnostics: Vec<Diagnostic>,
}

impl std::fmt::Display for SdlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, diagnostic) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{}", diagnostic.render(&self.sources, false))?;
        }
        Ok(())
    }
}

impl std::error::Error for SdlError {}
