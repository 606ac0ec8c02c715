//! Where values come from: a data file, generation, or a data file with generation for what it leaves out.

use std::sync::Arc;

use ogive_schema::TypeId;
use serde_json::{Map, Value};

use crate::{
    custom::{self, CustomSource},
    data::Data,
    generate::Generator,
    model::{Key, Model},
    node::{FieldCall, NodeKind, Resolved},
};

/// The values of one subgraph.
#[derive(Clone, Debug)]
pub enum Source {
    /// Rows, relations and rules of a data file.
    Data(Arc<Data>),
    /// Deterministic values without any data.
    Generated(Arc<Generator>),
    /// Values from code.
    Custom(Arc<dyn CustomSource>),
}

pub(crate) type Resolver = Source;

impl Source {
    /// The value of a field of an object.
    pub(crate) fn field<'s>(&'s self, call: &FieldCall<'_, 's>) -> Resolved<'s> {
        match (self, &call.node.kind) {
            (Source::Generated(generator), NodeKind::Root) => {
                generator.resolve(call.model, &generator.root_object(call), call)
            }
            (Source::Generated(generator), NodeKind::Generated(object)) => {
                generator.resolve(call.model, object, call)
            }
            (Source::Data(data), _) => data.field(call),
            (Source::Custom(source), _) => {
                let schema = &call.model.schema;
                let name = schema.field_name(call.field);
                custom::field(&**source, schema, call.node, name, call.arguments)
            }
            _ => Resolved::Null,
        }
    }

    /// The entity a representation stands for.
    pub(crate) fn entity<'s>(
        &'s self,
        model: &'s Model,
        ty: TypeId,
        keys: &[Key],
        representation: &Map<String, Value>,
    ) -> Resolved<'s> {
        match self {
            Source::Data(data) => data.entity(model, ty, keys, representation),
            Source::Generated(generator) => generator.entity(model, ty, keys, representation),
            Source::Custom(source) => custom::entity(&**source, &model.schema, representation),
        }
    }
}
