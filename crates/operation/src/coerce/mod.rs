//! Coercion of variable values (specification 6.1.2, 3.x "Input Coercion").
//!
//! Values are read from a [`Tree`](ogive_json::Tree), checked and written in one pass: what comes out is JSON text ready to
//! be sent. Numbers stay as the client wrote them unless the type demands another form (`ID` takes a string, `Int` an
//! integer), and custom scalars are passed through, without white space, and of members with equal keys the last one.
//!
//! Invariants: messages equal the reference implementation's (npm `graphql` 16); recursion follows the nesting of the
//! JSON value, which [`DEPTH_MAX`] bounds before it starts; a schema's default values are trusted to be valid.
//!
//! Reading order: [`coerce_variables`], [`provided`] (values from the request), [`literal`] (defaults), [`inspect`]
//! (values in messages). Tests: `tests/it/variables.rs`.

use ogive_base::{Diagnostic, Span};
use ogive_failure::codes;
use ogive_json::Node;
use ogive_schema::{Schema, Type, value::const_value};
use ogive_syntax::{Document, ast::OperationDefinition};

mod inspect;
mod literal;
mod provided;

pub use literal::literal_json;

/// The code of every error about variables.
pub const CODE: &str = codes::VALIDATION_INVALID_TYPE_VARIABLE.as_str();

/// Deepest nesting of one variable's value.
pub const DEPTH_MAX: u32 = 200;

/// Most errors reported for one request.
pub const ERRORS_MAX: usize = 50;

/// Bytes of messages after which no more are made. One message may have a name of megabytes in it.
pub(crate) const MESSAGES_BYTES_MAX: usize = 4_000_000;

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

/// Coerces the provided `input` (the request's `variables` object, if it has one) to the types of `operation`'s variables.
/// `suggestions`: whether messages name what the client may have meant, as of
/// [`ValidationLimits`](crate::ValidationLimits).
/// Errors carry the messages of the reference implementation and the code `VALIDATION_INVALID_TYPE_VARIABLE`.
pub fn coerce_variables(
    schema: &Schema,
    document: &Document,
    operation: &OperationDefinition,
    input: Option<Node<'_>>,
    suggestions: bool,
) -> Result<Variables, Vec<Diagnostic>> {
    let mut errors = Errors::default();
    let mut values = Vec::with_capacity(operation.variables.len());
    for definition in &document[operation.variables] {
        if errors.is_full() {
            break;
        }
        let name = document.name(definition.name);
        let ty = schema
            .type_by_name(document.name(definition.ty.name))
            .filter(|id| schema.types[*id].kind.is_input())
            .map(|id| Type {
                id,
                wrapping: definition.ty.wrapping,
            });
        let wrapping = definition.ty.wrapping;
        let label = |message: String, span: Span| {
            Diagnostic::error(CODE, message).label(document.source_id(), span, "")
        };
        let display = || wrapping.display(document.name(definition.ty.name));
        let Some(ty) = ty else {
            let ty = display();
            errors.push(label(
                format!("Variable \"${name}\" expected value of type \"{ty}\" which cannot be used as an input type."),
                definition.ty.span,
            ));
            continue;
        };
        let value = match input.and_then(|input| input.get(name)) {
            None => match &definition.default {
                Some(default) => literal_json(schema, &const_value(document, default), ty),
                None if wrapping.is_non_null() => {
                    let ty = display();
                    errors.push(label(
                        format!("Variable \"${name}\" of required type \"{ty}\" was not provided."),
                        definition.span,
                    ));
                    None
                }
                None => None,
            },
            Some(value) if value.is_null() && wrapping.is_non_null() => {
                let ty = display();
                errors.push(label(
                    format!("Variable \"${name}\" of non-null type \"{ty}\" must not be null."),
                    definition.span,
                ));
                None
            }
            Some(value)
                if value.tree().depth() > DEPTH_MAX as usize
                    && provided::is_deeper_than(value, DEPTH_MAX) =>
            {
                errors.push(label(
                    format!(
                        "Variable \"${name}\" got a value nested more than {DEPTH_MAX} levels deep."
                    ),
                    definition.span,
                ));
                None
            }
            Some(value) => {
                let mut report = |message| {
                    errors.push(label(message, definition.span));
                    !errors.is_full()
                };
                Some(provided::coerce(
                    (schema, suggestions),
                    name,
                    value,
                    ty,
                    &mut report,
                ))
            }
        };
        values.push(value.map(String::into_boxed_str));
    }
    errors.into_result(Variables { values })
}

/// Errors so far, cut off at [`ERRORS_MAX`].
#[derive(Default)]
struct Errors {
    list: Vec<Diagnostic>,
    /// Bytes of their messages, which have names that are as long as clients write them.
    words: usize,
    is_cut_off: bool,
}

impl Errors {
    fn is_full(&self) -> bool {
        self.is_cut_off
    }

    fn push(&mut self, error: Diagnostic) {
        if self.list.len() < ERRORS_MAX && self.words <= MESSAGES_BYTES_MAX {
            self.words += error.message.len();
            self.list.push(error);
        } else if !self.is_full() {
            self.is_cut_off = true;
            self.list.push(Diagnostic::error(
                CODE,
                "Too many errors processing variables, error limit reached. Execution aborted.",
            ));
        }
    }

    fn into_result<T>(self, value: T) -> Result<T, Vec<Diagnostic>> {
        if self.list.is_empty() {
            Ok(value)
        } else {
            Err(self.list)
        }
    }
}
