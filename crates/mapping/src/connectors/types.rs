//! The types of a document as shapes.

use ogive_base::FastMap;
use ogive_syntax::ast::{
    Definition, Document, InputValueDefinition, Name, OperationKind, TypeDefinition,
    TypeDefinitionKind, TypeRef,
};

use crate::shape::{FieldShape, ObjectShape, Shape, ShapeId, Shapes};

/// Shapes of named types, and which of them are roots.
pub(super) struct Types<'d> {
    named: FastMap<&'d str, ShapeId>,
    /// Object types by the interfaces that they implement.
    implementers: FastMap<&'d str, Vec<ShapeId>>,
    roots: Vec<(OperationKind, &'d str)>,
}

impl<'d> Types<'d> {
    /// Reads all types. Types refer to each other, so all have rows before any has fields.
    pub(super) fn read(document: &'d Document, shapes: &mut Shapes) -> Self {
        let mut types = Types {
            named: FastMap::default(),
            implementers: FastMap::default(),
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
            types.read_interfaces(document, definition);
        }
        for definition in definitions(document) {
            types.read_type(document, definition, shapes);
        }
        types
    }

    fn read_interfaces(&mut self, document: &'d Document, definition: &TypeDefinition) {
        let TypeDefinitionKind::Object { interfaces, .. } = definition.kind else {
            return;
        };
        let id = self.named(document.name(definition.name));
        for interface in &document[interfaces] {
            let interface = document.name(*interface);
            self.implementers.entry(interface).or_default().push(id);
        }
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
                self.object(document, name, id, fields, shapes)
            }
            TypeDefinitionKind::InputObject { fields } => {
                let fields = document[fields].iter().map(|field| (field.name, field.ty));
                self.object(document, name, id, fields, shapes)
            }
            TypeDefinitionKind::Union { members } => {
                let mut all = match shapes.take(id) {
                    Shape::OneOf(before) => before,
                    _ => Vec::new(),
                };
                let members = document[members].iter();
                all.extend(members.map(|member| self.named(document.name(*member))));
                Shape::OneOf(all)
            }
            TypeDefinitionKind::Interface { .. } => {
                let mut members = self.implementers.get(name).cloned().unwrap_or_default();
                members.dedup();
                Shape::OneOf(members)
            }
        };
        shapes.set(id, shape);
    }

    /// An object type; fields of its definitions that were read before stay.
    fn object(
        &self,
        document: &'d Document,
        name: &str,
        id: ShapeId,
        fields: impl Iterator<Item = (Name, TypeRef)>,
        shapes: &mut Shapes,
    ) -> Shape {
        let mut object = match shapes.take(id) {
            Shape::Object(object) => object,
            _ => ObjectShape::default(),
        };
        object.name = Some(name.into());
        self.add_fields(document, &mut object, fields, shapes);
        Shape::Object(object)
    }
    fn add_fields(
        &self,
        document: &Document,
        object: &mut ObjectShape,
        fields: impl Iterator<Item = (Name, TypeRef)>,
        shapes: &mut Shapes,
    ) {
        object.fields.extend(fields.map(|(name, ty)| FieldShape {
            name: document.name(name).into(),
            shape: self.reference(document, ty, shapes),
            span: None,
        }));
    }

    /// The shape of the arguments of a field.
    pub(super) fn arguments(
        &self,
        document: &'d Document,
        arguments: &[InputValueDefinition],
        shapes: &mut Shapes,
    ) -> ShapeId {
        let mut object = ObjectShape::default();
        let fields = arguments.iter().map(|one| (one.name, one.ty));
        self.add_fields(document, &mut object, fields, shapes);
        shapes.add(Shape::Object(object))
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
    /// The shape of a named type; unknown for a type that the document does not define.
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
