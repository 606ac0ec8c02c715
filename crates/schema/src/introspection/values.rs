//! What each field of each introspection type is, row by row.

use std::borrow::Cow;

use super::Meta;
use crate::{OperationKind, types::*};

/// An object of an introspection type.
#[derive(Clone, Copy)]
pub(super) enum Node<'s> {
    Schema,
    Type(Type),
    Field(&'s FieldDef),
    Input(&'s InputDef),
    EnumValue(&'s EnumValueDef),
    Directive(&'s DirectiveDef),
}

impl Node<'_> {
    pub(super) fn named(id: TypeId) -> Self {
        Node::Type(Type {
            id,
            wrapping: crate::Wrapping::NULLABLE,
        })
    }

    fn typename(&self) -> &'static str {
        match self {
            Node::Schema => "__Schema",
            Node::Type(_) => "__Type",
            Node::Field(_) => "__Field",
            Node::Input(_) => "__InputValue",
            Node::EnumValue(_) => "__EnumValue",
            Node::Directive(_) => "__Directive",
        }
    }
}

/// The value of a field.
pub(super) enum Shown<'s> {
    Null,
    Bool(bool),
    Text(Cow<'s, str>),
    Node(Node<'s>),
    List(Items<'s>),
    Locations(&'s [DirectiveLocation]),
}

/// The rest of a list of objects.
pub(super) enum Items<'s> {
    Types(std::slice::Iter<'s, TypeId>),
    /// Possible types of an interface.
    Possible(Box<dyn Iterator<Item = u32> + 's>),
    Fields(std::slice::Iter<'s, FieldId>, bool),
    Inputs(std::slice::Iter<'s, InputId>, bool),
    EnumValues(std::slice::Iter<'s, EnumValueId>, bool),
    Directives(std::slice::Iter<'s, DirectiveId>),
}

impl<'s> Items<'s> {
    /// The next item; deprecated ones only where they are included.
    pub(super) fn next(&mut self, schema: &'s Schema) -> Option<Node<'s>> {
        match self {
            Items::Types(ids) => ids.next().map(|id| Node::named(*id)),
            Items::Possible(ids) => ids.next().map(|id| Node::named(TypeId(id))),
            Items::Fields(ids, all) => ids
                .map(|id| &schema.fields[*id])
                .find(|row| *all || row.deprecated.is_none())
                .map(Node::Field),
            Items::Inputs(ids, all) => ids
                .map(|id| &schema.inputs[*id])
                .find(|row| *all || row.deprecated.is_none())
                .map(Node::Input),
            Items::EnumValues(ids, all) => ids
                .map(|id| &schema.enum_values[*id])
                .find(|row| *all || row.deprecated.is_none())
                .map(Node::EnumValue),
            Items::Directives(ids) => ids
                .next()
                .map(|id| Node::Directive(&schema.directive_defs[*id])),
        }
    }
}

macro_rules! parts {
    ($($part:ident = $name:literal),* $(,)?) => {
        /// A field name of the introspection types.
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(super) enum Part {
            Typename,
            Unknown,
            $($part,)*
        }

        impl Part {
            pub(super) fn of(schema: &Schema, field: Meta) -> Part {
                match field {
                    Meta::Typename => Part::Typename,
                    Meta::Field(id) => match schema.field_name(id) {
                        $($name => Part::$part,)*
                        _ => Part::Unknown,
                    },
                }
            }
        }
    };
}

parts! {
    Args = "args",
    DefaultValue = "defaultValue",
    DeprecationReason = "deprecationReason",
    Description = "description",
    Directives = "directives",
    EnumValues = "enumValues",
    Fields = "fields",
    InputFields = "inputFields",
    Interfaces = "interfaces",
    IsDeprecated = "isDeprecated",
    IsOneOf = "isOneOf",
    IsRepeatable = "isRepeatable",
    Kind = "kind",
    Locations = "locations",
    MutationType = "mutationType",
    Name = "name",
    OfType = "ofType",
    PossibleTypes = "possibleTypes",
    QueryType = "queryType",
    SpecifiedByUrl = "specifiedByURL",
    SubscriptionType = "subscriptionType",
    Type = "type",
    Types = "types",
}

/// The value of field `part` of `node`; null where the specification wants null.
pub(super) fn resolve<'s>(
    schema: &'s Schema,
    node: &Node<'s>,
    part: Part,
    include_deprecated: bool,
) -> Shown<'s> {
    if part == Part::Typename {
        return Shown::Text(node.typename().into());
    }
    match node {
        Node::Schema => of_schema(schema, part),
        Node::Type(ty) if ty.wrapping == crate::Wrapping::NULLABLE => {
            of_named(schema, ty.id, part, include_deprecated)
        }
        Node::Type(ty) => of_wrapper(*ty, part),
        Node::Field(row) => match part {
            Part::Name => name(schema, row.name),
            Part::Description => text(&row.description),
            Part::Args => Shown::List(Items::Inputs(row.args.iter(), include_deprecated)),
            Part::Type => Shown::Node(Node::Type(row.ty)),
            Part::IsDeprecated => Shown::Bool(row.deprecated.is_some()),
            Part::DeprecationReason => text(&row.deprecated),
            _ => Shown::Null,
        },
        Node::Input(row) => match part {
            Part::Name => name(schema, row.name),
            Part::Description => text(&row.description),
            Part::Type => Shown::Node(Node::Type(row.ty)),
            Part::DefaultValue => row
                .default
                .as_ref()
                .map_or(Shown::Null, |v| Shown::Text(v.to_string().into())),
            Part::IsDeprecated => Shown::Bool(row.deprecated.is_some()),
            Part::DeprecationReason => text(&row.deprecated),
            _ => Shown::Null,
        },
        Node::EnumValue(row) => match part {
            Part::Name => name(schema, row.name),
            Part::Description => text(&row.description),
            Part::IsDeprecated => Shown::Bool(row.deprecated.is_some()),
            Part::DeprecationReason => text(&row.deprecated),
            _ => Shown::Null,
        },
        Node::Directive(row) => match part {
            Part::Name => name(schema, row.name),
            Part::Description => text(&row.description),
            Part::IsRepeatable => Shown::Bool(row.repeatable),
            Part::Locations => Shown::Locations(&row.locations),
            Part::Args => Shown::List(Items::Inputs(row.args.iter(), include_deprecated)),
            _ => Shown::Null,
        },
    }
}

fn of_schema(schema: &Schema, part: Part) -> Shown<'_> {
    let root = |kind| {
        schema
            .root(kind)
            .map_or(Shown::Null, |id| Shown::Node(Node::named(id)))
    };
    match part {
        Part::Description => text(&schema.description),
        Part::Types => Shown::List(Items::Types(schema.type_list.iter())),
        Part::QueryType => root(OperationKind::Query),
        Part::MutationType => root(OperationKind::Mutation),
        Part::SubscriptionType => root(OperationKind::Subscription),
        Part::Directives => Shown::List(Items::Directives(schema.directive_list.iter())),
        _ => Shown::Null,
    }
}

fn of_named(schema: &Schema, id: TypeId, part: Part, include_deprecated: bool) -> Shown<'_> {
    let row = &schema.types[id];
    match (part, row.kind) {
        (Part::Kind, kind) => Shown::Text(
            match kind {
                TypeKind::Scalar => "SCALAR",
                TypeKind::Object => "OBJECT",
                TypeKind::Interface => "INTERFACE",
                TypeKind::Union => "UNION",
                TypeKind::Enum => "ENUM",
                TypeKind::InputObject => "INPUT_OBJECT",
            }
            .into(),
        ),
        (Part::Name, _) => name(schema, row.name),
        (Part::Description, _) => text(&row.description),
        (Part::SpecifiedByUrl, TypeKind::Scalar) => text(&row.specified_by),
        (Part::Fields, TypeKind::Object | TypeKind::Interface) => {
            Shown::List(Items::Fields(row.fields.iter(), include_deprecated))
        }
        (Part::Interfaces, TypeKind::Object | TypeKind::Interface) => {
            Shown::List(Items::Types(row.interfaces.iter()))
        }
        (Part::PossibleTypes, TypeKind::Union) => Shown::List(Items::Types(row.members.iter())),
        (Part::PossibleTypes, TypeKind::Interface) => {
            // An interface that nothing implements may stand for itself, which is no type of an object.
            let objects = row
                .possible
                .iter()
                .filter(|ty| schema.types[TypeId(*ty)].kind == TypeKind::Object);
            Shown::List(Items::Possible(Box::new(objects)))
        }
        (Part::EnumValues, TypeKind::Enum) => Shown::List(Items::EnumValues(
            row.enum_values.iter(),
            include_deprecated,
        )),
        (Part::InputFields, TypeKind::InputObject) => {
            Shown::List(Items::Inputs(row.input_fields.iter(), include_deprecated))
        }
        (Part::IsOneOf, TypeKind::InputObject) => Shown::Bool(row.one_of),
        _ => Shown::Null,
    }
}

/// A list or non-null: the outermost layer of `ty`.
fn of_wrapper<'s>(ty: Type, part: Part) -> Shown<'s> {
    let inner = if ty.wrapping.is_non_null() {
        Some(ty.wrapping.nullable())
    } else {
        ty.wrapping.item()
    };
    match part {
        Part::Kind if ty.wrapping.is_non_null() => Shown::Text("NON_NULL".into()),
        Part::Kind => Shown::Text("LIST".into()),
        Part::OfType => inner.map_or(Shown::Null, |wrapping| {
            Shown::Node(Node::Type(Type {
                id: ty.id,
                wrapping,
            }))
        }),
        _ => Shown::Null,
    }
}

fn name(schema: &Schema, symbol: ogive_base::Symbol) -> Shown<'_> {
    Shown::Text(schema.name(symbol).into())
}

fn text(text: &Option<Box<str>>) -> Shown<'_> {
    text.as_deref()
        .map_or(Shown::Null, |text| Shown::Text(text.into()))
}
