//! What resolvers hand to the engine: objects, leaves, lists, nulls and errors.

use std::{any::Any, borrow::Cow, sync::Arc};

use ogive_schema::{DirectiveId, EnumValueId, FieldId, InputId, TypeId, Wrapping};
use serde_json::{Map, Value};

use crate::{
    input::Values,
    model::{FieldSet, Model},
};

/// The value of one field before completion (specification 6.4.3).
#[derive(Clone, Debug)]
pub(crate) enum Resolved<'s> {
    Null,
    /// A scalar or enum value as JSON.
    Leaf(Cow<'s, Value>),
    List(Vec<Resolved<'s>>),
    Object(Node<'s>),
    /// Written as it is, whatever the type says: an injected fault.
    Raw(Value),
    /// A field error: it takes the place of the value.
    Error(Box<FieldError>),
}

impl Resolved<'_> {
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Resolved::Error(Box::new(FieldError {
            message: message.into(),
            extensions: None,
        }))
    }
    pub(crate) fn leaf(value: impl Into<Value>) -> Self {
        Resolved::Leaf(Cow::Owned(value.into()))
    }
}

/// A field error without its path.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The message.
    pub message: String,
    /// `extensions`, if any.
    pub extensions: Option<Map<String, Value>>,
}

/// An object of a concrete type.
#[derive(Clone, Debug)]
pub(crate) struct Node<'s> {
    /// Its concrete type.
    pub(crate) ty: TypeId,
    pub(crate) kind: NodeKind<'s>,
    /// External fields the path to this object provides (`@provides`).
    pub(crate) provided: Option<Arc<FieldSet>>,
}

impl<'s> Node<'s> {
    pub(crate) fn new(ty: TypeId, kind: NodeKind<'s>) -> Self {
        Node {
            ty,
            kind,
            provided: None,
        }
    }
}

/// Whatever identifies an object to a source in code.
pub type CustomObject = Arc<dyn Any + Send + Sync>;

/// One field to resolve.
#[derive(Clone, Copy)]
pub(crate) struct FieldCall<'c, 's> {
    pub(crate) model: &'s Model,
    pub(crate) node: &'c Node<'s>,
    pub(crate) field: FieldId,
    pub(crate) arguments: &'c Values,
    /// The number of the event of a subscription, counted from 0.
    pub(crate) event: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeKind<'s> {
    /// The query or mutation root.
    Root,
    /// A row of the data file, an inline object of it, or both.
    Data(DataNode<'s>),
    /// A generated object.
    Generated(Generated),
    /// An object of a custom source.
    Custom(CustomObject),
    /// `_service`
    Service,
    /// Introspection.
    Meta(Meta),
}

impl<'s> NodeKind<'s> {
    /// A row as it is.
    pub(crate) fn of_row(row: &'s Map<String, Value>) -> Self {
        NodeKind::Data(DataNode {
            row: Some(row),
            over: Over::None,
        })
    }
}

/// A row with values laid over it: inline objects and representations.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataNode<'s> {
    pub(crate) row: Option<&'s Map<String, Value>>,
    pub(crate) over: Over<'s>,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Over<'s> {
    #[default]
    None,
    Ref(&'s Map<String, Value>),
    Own(Arc<Map<String, Value>>),
}

/// Identity of a generated object.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// Identity space: type name, or the name of the entity interface its implementing types share.
    pub space: Arc<str>,
    /// Entities: the instance number. Value objects: a hash of where they are reached.
    pub identity: u64,
    /// Whether key fields spell out `identity` (entities and objects inside their keys).
    pub coded: bool,
    /// What the representation said, if it was reached by one; `@requires` checks it.
    pub(crate) representation: Option<Arc<Map<String, Value>>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Meta {
    Schema,
    /// A type under the outer layers of a wrapping.
    Type(TypeId, Wrapping),
    Field(FieldId),
    Input(InputId),
    EnumValue(EnumValueId),
    Directive(DirectiveId),
}
