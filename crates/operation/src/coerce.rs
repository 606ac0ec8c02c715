//! Coercion of variable values (specification 6.1.2, 3.x "Input Coercion").

use ogive_base::{Diagnostic, Span};
use ogive_schema::Schema;
use ogive_syntax::{Document, ast::OperationDefinition};

/// Coerced variable values of one request, in the order of the operation's variable definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    /// JSON text of each value, ready to be sent: defaults filled in, single items wrapped into lists, input object
    /// fields in definition order; numbers and custom scalars byte-exact. `None`: not provided and no default.
    pub values: Vec<Option<Box<str>>>,
}

impl Variables {
    /// The boolean value of variable `index`; `None` if absent or no boolean.
    pub fn boolean(&self, index: usize) -> Option<bool> {
        match self.values.get(index)?.as_deref()? {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
}

/// Coerces the provided `input` (the request's `variables` object) to the types of `operation`'s variables.
/// Errors carry the messages of the reference implementation and the code `VALIDATION_INVALID_TYPE_VARIABLE`.
pub fn coerce_variables(
    schema: &Schema,
    document: &Document,
    operation: &OperationDefinition,
    input: &serde_json::Map<String, serde_json::Value>,
) -> Result<Variables, Vec<Diagnostic>> {
    let _ = (schema, document, operation, input, Span::default());
    todo!()
}
