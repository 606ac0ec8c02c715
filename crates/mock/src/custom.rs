//! Values from code: a seam for tests that own their data, such as the differential test's worlds.

use std::{fmt, sync::Arc};

use ogive_schema::Schema;
use serde_json::{Map, Value};

use crate::{
    input::Values,
    node::{CustomObject, Node, NodeKind, Resolved},
};

/// Resolves every field and entity of one subgraph.
pub trait CustomSource: fmt::Debug + Send + Sync {
    /// The value of a field of an object of type `ty`; the operation root has no object. Arguments are coerced.
    fn field(
        &self,
        ty: &str,
        object: Option<&CustomObject>,
        field: &str,
        arguments: &Map<String, Value>,
    ) -> CustomValue;
    /// The entity a representation stands for.
    fn entity(&self, representation: &Map<String, Value>) -> CustomValue;
}

/// The value of a field.
#[derive(Clone)]
pub enum CustomValue {
    /// `null`
    Null,
    /// A leaf.
    Leaf(Value),
    /// A list.
    List(Vec<CustomValue>),
    /// An object of a concrete type.
    Object {
        /// The type's name.
        ty: Arc<str>,
        /// What the source will be asked about.
        object: CustomObject,
    },
    /// A field error.
    Error(String),
}

pub(crate) fn field<'s>(
    source: &'s dyn CustomSource,
    schema: &Schema,
    node: &Node<'s>,
    name: &str,
    arguments: &Values,
) -> Resolved<'s> {
    let object = match &node.kind {
        NodeKind::Custom(object) => Some(object),
        _ => None,
    };
    resolved(
        schema,
        source.field(schema.type_name(node.ty), object, name, arguments),
    )
}

pub(crate) fn entity<'s>(
    source: &'s dyn CustomSource,
    schema: &Schema,
    representation: &Map<String, Value>,
) -> Resolved<'s> {
    resolved(schema, source.entity(representation))
}

// Recursion follows the lists of one value; sources are test code.
fn resolved<'s>(schema: &Schema, value: CustomValue) -> Resolved<'s> {
    match value {
        CustomValue::Null => Resolved::Null,
        CustomValue::Leaf(value) => Resolved::leaf(value),
        CustomValue::List(items) => {
            Resolved::List(items.into_iter().map(|v| resolved(schema, v)).collect())
        }
        CustomValue::Object { ty, object } => match schema.type_by_name(&ty) {
            Some(id) => Resolved::Object(Node::new(id, NodeKind::Custom(object))),
            None => Resolved::error(format!("Type \"{ty}\" is not defined here")),
        },
        CustomValue::Error(message) => Resolved::error(message),
    }
}
