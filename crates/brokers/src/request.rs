//! What a request asks for: root fields with their arguments as values.
//!
//! Requests are made by the planner, so what cannot be read is our own mistake; it is told all the same.

use ogive_base::SourceId;
use ogive_syntax::{
    Document, Limits,
    ast::{
        Directive, Field, List, OperationDefinition, Selection, SelectionSet, Value as Ast,
        ValueKind,
    },
    parse,
};
use serde_json::{Map, Value};

/// A request.
pub(crate) struct EventRequest {
    pub(crate) document: Document,
    operation: OperationDefinition,
    variables: Map<String, Value>,
}

impl EventRequest {
    /// Reads the body of a request.
    pub(crate) fn read(body: &[u8]) -> Result<EventRequest, String> {
        let mut body: Map<String, Value> =
            serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let query = match body.get("query") {
            Some(Value::String(query)) => query.as_str(),
            _ => return Err("no `query`".to_owned()),
        };
        let parsed = parse(query, SourceId(0), &Limits::default());
        if let Some(error) = parsed.errors.first() {
            return Err(error.message.clone());
        }
        let operation = parsed.document.operations().next().copied();
        let variables = match body.remove("variables") {
            Some(Value::Object(variables)) => variables,
            _ => Map::new(),
        };
        Ok(EventRequest {
            operation: operation.ok_or("no operation")?,
            document: parsed.document,
            variables,
        })
    }
    /// The root fields.
    pub(crate) fn fields(&self) -> Vec<Field> {
        let mut out = Vec::new();
        self.collect(self.operation.selection_set, &mut |_| true, &mut out);
        out
    }
    /// Fields of a selection, those of fragments included that `applies` lets in.
    pub(crate) fn collect(
        &self,
        set: SelectionSet,
        applies: &mut dyn FnMut(&str) -> bool,
        out: &mut Vec<Field>,
    ) {
        for selection in &self.document[set.items] {
            match selection {
                Selection::Field(field) => {
                    if self.holds(field.directives) {
                        out.push(*field);
                    }
                }
                Selection::Inline(inline) => {
                    let condition = inline.type_condition.map(|name| self.document.name(name));
                    if self.holds(inline.directives) && condition.is_none_or(&mut *applies) {
                        self.collect(inline.selection_set, applies, out);
                    }
                }
                Selection::Spread(spread) => {
                    let name = self.document.name(spread.name);
                    let mut fragments = self.document.fragments();
                    let fragment = fragments
                        .find(|f| self.document.name(f.name) == name)
                        .copied();
                    if let Some(fragment) = fragment
                        && self.holds(spread.directives)
                        && applies(self.document.name(fragment.type_condition))
                    {
                        // Fragments of our own requests do not contain themselves.
                        self.collect(fragment.selection_set, applies, out);
                    }
                }
            }
        }
    }
    /// `@skip` and `@include`.
    fn holds(&self, directives: List<Directive>) -> bool {
        self.document[directives].iter().all(|directive| {
            let wanted = match self.document.name(directive.name) {
                "skip" => false,
                "include" => true,
                _ => return true,
            };
            let argument = self.document[directive.arguments].first();
            let value = argument.and_then(|argument| self.value(&argument.value));
            value == Some(Value::Bool(wanted))
        })
    }
    /// The arguments of a field that are given.
    pub(crate) fn arguments(&self, field: &Field) -> Map<String, Value> {
        let arguments = self.document[field.arguments].iter();
        let given = arguments.filter_map(|argument| {
            let name = self.document.name(argument.name).to_owned();
            Some((name, self.value(&argument.value)?))
        });
        given.collect()
    }
    /// A value; `None` for a variable that is not given.
    fn value(&self, value: &Ast) -> Option<Value> {
        let document = &self.document;
        Some(match value.kind {
            ValueKind::Variable(name) => self.variables.get(document.name(name))?.clone(),
            ValueKind::Int | ValueKind::Float => {
                serde_json::from_str(document.text(value.span)).ok()?
            }
            ValueKind::String { .. } => {
                let text = value.as_string()?;
                Value::String(document.string_value(text).into_owned())
            }
            ValueKind::Boolean(is) => Value::Bool(is),
            ValueKind::Null => Value::Null,
            ValueKind::Enum => Value::String(document.text(value.span).to_owned()),
            ValueKind::List(list) => {
                let values = document[list].iter();
                let or_null = |value| self.value(value).unwrap_or(Value::Null);
                Value::Array(values.map(or_null).collect())
            }
            ValueKind::Object(fields) => {
                let fields = document[fields].iter();
                let given = fields.filter_map(|field| {
                    let name = document.name(field.name).to_owned();
                    Some((name, self.value(&field.value)?))
                });
                Value::Object(given.collect())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_values_whether_written_or_given() {
        let body = r#"{"query": "query($a: ID, $b: [Int!], $c: Int) { x: f(id: $a, in: {list: [1, $c], e: RED, b: $b, t: \"é\\n\", m: $c}) { id } g @skip(if: true) }", "variables": {"a": "1", "b": [12345678901234567890]}}"#;
        let asked = EventRequest::read(body.as_bytes()).unwrap();
        let fields = asked.fields();
        assert_eq!(fields.len(), 1);
        let arguments = Value::Object(asked.arguments(&fields[0]));
        let expected =
            r#"{"id":"1","in":{"list":[1,null],"e":"RED","b":[12345678901234567890],"t":"é\n"}}"#;
        assert_eq!(arguments.to_string(), expected);
    }
}
