//! The types of a document as shapes.

use ogive_base::FastMap;
use ogive_syntax::ast::{
    Definition, Document, InputValueDefinition, OperationKind, TypeDefinition, TypeDefinitionKind,
    TypeRef,
};

use crate::shape::{FieldShape, ObjectShape, Shape, ShapeId, Shapes};

/// Shapes of named types, and which of them are roots.
pub(super) struct Types<'d> {
    named: FastMap<&'d str, ShapeId>,
    roots: Vec<(OperationKind, &'d str)>,
}

impl<'d> Types<'d> {
    /// Reads all types. Types refer to each other, so all have rows before any has fields.
    pub(super) fn read(document: &'d Document, shapes: &mut Shapes) -> Self {
        let mut types = Types {
            named: FastMap::default(),
            roots: roots(document),
        };
        for (name, shape) in [
            ("Int", Shapes::NUMBER),
            ("Float", Shapes::NUMBER),
            ("String", Shapes::STRING),
            ("Boolean", Shapes::BOOL),
            ("ID", Shapes::SCALAR),
        ] {
            types.named.insert(name, shape);
        }
        for definition in definitions(document) {
            let name = document.name(definition.name);
            types
                .named
                .entry(name)
                .or_insert_with(|| shapes.add(Shape::Unknown));
        }
        for definition in definitions(document) {
            types.read_type(document, definition, shapes);
        }
        types
    }

    fn read_type(&self, document: &'d Document, definition: &TypeDefinition, shapes: &mut Shapes) {
        let name = document.name(definition.name);
        let Some(id) = self.named.get(name).copied() else {
            return;
        };
        let shape = match definition.kind {
            TypeDefinitionKind::Scalar => return,
            TypeDefinitionKind::Enum { .. } => Shape::String,
            TypeDefinitionKind::Object { fields, .. } => {
                let fields = document[fields].iter().map(|field| (field.name, field.ty));
                let fields: Vec<_> = fields.collect();
                self.object(document, Some(name), &fields, id, shapes)
            }
            TypeDefinitionKind::InputObject { fields } => {
                let fields = document[fields].iter().map(|field| (field.name, field.ty));
                let fields: Vec<_> = fields.collect();
                self.object(document, Some(name), &fields, id, shapes)
            }
            TypeDefinitionKind::Union { members } => {
                let members = document[members].iter();
                Shape::OneOf(
                    members
                        .map(|member| self.named(document.name(*member)))
                        .collect(),
                )
            }
            TypeDefinitionKind::Interface { .. } => {
                let members = definitions(document).filter(|other| match other.kind {
                    TypeDefinitionKind::Object { interfaces, .. } => document[interfaces]
                        .iter()
                        .any(|interface| document.name(*interface) == name),
                    _ => false,
                });
                let members = members.map(|member| self.named(document.name(member.name)));
                let mut members: Vec<ShapeId> = members.collect();
                members.dedup();
                Shape::OneOf(members)
            }
        };
        shapes.set(id, shape);
    }

    /// An object with these fields; those of other definitions of the type stay.
    fn object(
        &self,
        document: &'d Document,
        name: Option<&str>,
        fields: &[(ogive_syntax::ast::Name, TypeRef)],
        before: ShapeId,
        shapes: &mut Shapes,
    ) -> Shape {
        let mut object = match shapes.get(before) {
            Shape::Object(object) => object.clone(),
            _ => ObjectShape::default(),
        };
        object.name = name.map(Into::into);
        for (name, ty) in fields {
            let shape = self.reference(document, *ty, shapes);
            object.fields.push(FieldShape {
                name: document.name(*name).into(),
                shape,
                span: None,
            });
        }
        Shape::Object(object)
    }

    /// The shape of the arguments of a field.
    pub(super) fn arguments(
        &self,
        document: &'d Document,
        arguments: &[InputValueDefinition],
        shapes: &mut Shapes,
    ) -> ShapeId {
        let fields: Vec<_> = arguments.iter().map(|one| (one.name, one.ty)).collect();
        let object = self.object(document, None, &fields, Shapes::UNKNOWN, shapes);
        shapes.add(object)
    }

    /// The shape of a type with its lists.
    pub(super) fn reference(
        &self,
        document: &Document,
        ty: TypeRef,
        shapes: &mut Shapes,
    ) -> ShapeId {
        let mut shape = self.named(document.name(ty.name));
        for _ in 0..ty.wrapping.lists() {
            shape = shapes.add(Shape::List(shape));
        }
        shape
    }
    /// The shape of a named type; nothing is known of types of other documents.
    pub(super) fn named(&self, name: &str) -> ShapeId {
        self.named.get(name).copied().unwrap_or(Shapes::UNKNOWN)
    }
    /// Whether a type is a root, and of what.
    pub(super) fn root(&self, name: &str) -> Option<OperationKind> {
        let found = self.roots.iter().find(|(_, root)| *root == name);
        found.map(|(kind, _)| *kind)
    }
}

fn definitions(document: &Document) -> impl Iterator<Item = &TypeDefinition> {
    document
        .definitions
        .iter()
        .filter_map(|definition| match definition {
            Definition::Type(definition) => Some(definition),
            _ => None,
        })
}

/// The root types: those that the schema names, and the usual names of the others.
fn roots(document: &Document) -> Vec<(OperationKind, &str)> {
    let mut roots = Vec::new();
    for definition in &document.definitions {
        if let Definition::Schema(schema) = definition {
            let named = document[schema.root_types].iter();
            roots.extend(named.map(|root| (root.kind, document.name(root.ty))));
        }
    }
    for (kind, name) in [
        (OperationKind::Query, "Query"),
        (OperationKind::Mutation, "Mutation"),
        (OperationKind::Subscription, "Subscription"),
    ] {
        if roots.iter().all(|(found, _)| *found != kind) {
            roots.push((kind, name));
        }
    }
    roots
}
