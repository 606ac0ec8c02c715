//! Names of subjects, channels and topics with arguments in them: `users.{{ args.id }}`.
//!
//! Invariant: what a client sends never widens what a name means. An argument is one token of it, without wildcards.

use ogive_federation::Broker;
use serde_json::{Map, Value};

/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 1_024;

/// A piece of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Text(Box<str>),
    /// An argument, and what is below it.
    Argument(Vec<Box<str>>),
}

/// A text with arguments in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

impl Template {
    /// Reads a template. What is no argument stands for itself.
    pub(crate) fn new(text: &str) -> Template {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((inner, behind)) = after.split_once("}}") else {
                break;
            };
            if !before.is_empty() {
                pieces.push(Piece::Text(before.into()));
            }
            let path = inner.trim().strip_prefix("args.").unwrap_or_default();
            pieces.push(Piece::Argument(path.split('.').map(Box::from).collect()));
            rest = behind;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.into()));
        }
        Template { pieces }
    }
    /// Whether its text depends on arguments.
    pub(crate) fn has_arguments(&self) -> bool {
        let mut pieces = self.pieces.iter();
        pieces.any(|piece| matches!(piece, Piece::Argument(_)))
    }
    /// The values of a template that is one argument: those of a list one by one.
    pub(crate) fn values<'a>(&self, arguments: &'a Map<String, Value>) -> Option<Vec<&'a Value>> {
        let [Piece::Argument(path)] = self.pieces.as_slice() else {
            return None;
        };
        Some(match at(arguments, path) {
            Some(Value::Array(list)) => list.iter().collect(),
            Some(value) => vec![value],
            None => Vec::new(),
        })
    }
    /// The text with scalars in it; the argument without one is the error.
    pub(crate) fn text(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        self.render(arguments, |_| None)
    }
    /// The name of something that a broker knows.
    pub(crate) fn name(
        &self,
        arguments: &Map<String, Value>,
        broker: Broker,
    ) -> Result<Box<str>, String> {
        let name = self.render(arguments, |value| {
            let separator = || value.chars().find(|c| self.separates(broker, *c));
            let separator = || separator().map(|c| format!("a `{c}`, which separates tokens,"));
            let refused = refused(broker, value).map(str::to_owned);
            refused.or_else(separator)
        })?;
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(format!("a name has 1 to {NAME_BYTES_MAX} bytes"));
        }
        Ok(name.into())
    }

    /// Whether a character separates tokens of the names: by the rules of the broker, or because the template has it around
    /// its arguments. Hyphens and underscores do not: identifiers have them.
    fn separates(&self, broker: Broker, c: char) -> bool {
        let is_of_identifiers = c.is_alphanumeric() || matches!(c, '-' | '_');
        let is_there = |piece: &Piece| matches!(piece, Piece::Text(text) if text.contains(c));
        let by_rule = broker == Broker::Nats && c == '.';
        by_rule || !is_of_identifiers && self.pieces.iter().any(is_there)
    }

    fn render(
        &self,
        arguments: &Map<String, Value>,
        refuse: impl Fn(&str) -> Option<String>,
    ) -> Result<String, String> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Argument(path) => {
                    let shown = path.join(".");
                    let value = at(arguments, path).and_then(scalar);
                    let value = value.ok_or_else(|| {
                        format!("the argument `{shown}` is no text, number or boolean")
                    })?;
                    if value.is_empty() {
                        return Err(format!("the argument `{shown}` is empty"));
                    }
                    if let Some(why) = refuse(&value) {
                        return Err(format!("the argument `{shown}` has {why} in it"));
                    }
                    out.push_str(&value);
                }
            }
        }
        Ok(out)
    }
}

fn at<'a>(arguments: &'a Map<String, Value>, path: &[Box<str>]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let mut value = arguments.get(&**first)?;
    for name in rest {
        value = value.as_object()?.get(&**name)?;
    }
    Some(value)
}

/// The text of a scalar.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        _ => None,
    }
}

/// What an argument may not have in it.
fn refused(broker: Broker, value: &str) -> Option<&'static str> {
    if value.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Some("white space");
    }
    match broker {
        Broker::Nats if value.contains(['*', '>']) => Some("a wildcard"),
        Broker::Redis if is_pattern(value) => Some("a wildcard"),
        Broker::Kafka
            if !value
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) =>
        {
            Some("what no topic may have")
        }
        _ => None,
    }
}

/// Whether Redis takes a name for a pattern.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '[', ']', '\\'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(json: &str) -> Map<String, Value> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn arguments_are_written_into_names() {
        let template = Template::new("users.{{ args.id }}.{{args.input.kind}}.x");
        let arguments = arguments(r#"{"id": 12345678901234567890, "input": {"kind": "A"}}"#);
        let name = template.name(&arguments, Broker::Nats);
        assert_eq!(name.as_deref(), Ok("users.12345678901234567890.A.x"));
    }

    #[test]
    fn an_argument_never_widens_a_name() {
        let template = Template::new("users.{{ args.id }}");
        for (broker, id) in [
            (Broker::Nats, "*"),
            (Broker::Nats, ">"),
            (Broker::Nats, "1.secret"),
            (Broker::Nats, "a b"),
            (Broker::Nats, "a\r\nPUB x 1"),
            (Broker::Nats, ""),
            (Broker::Redis, "*"),
            (Broker::Redis, "[a-z]"),
            (Broker::Redis, "1.secret"),
            (Broker::Kafka, "1.secret"),
            (Broker::Kafka, "a/b"),
        ] {
            let arguments = serde_json::json!({ "id": id });
            let name = template.name(arguments.as_object().unwrap(), broker);
            assert!(name.is_err(), "{id:?}: {name:?}");
        }
        for json in ["{}", r#"{"id": null}"#, r#"{"id": [1]}"#, r#"{"id": {}}"#] {
            assert!(
                template.name(&arguments(json), Broker::Nats).is_err(),
                "{json}"
            );
        }
    }

    #[test]
    fn what_a_template_does_not_separate_by_may_be_in_arguments() {
        for (template, broker, id, is_good) in [
            ("room:{{ args.id }}", Broker::Redis, "a:b", false),
            ("room:{{ args.id }}", Broker::Redis, "a.b", true),
            (
                "room:{{ args.id }}:{{ args.id }}",
                Broker::Redis,
                "a-b_c",
                true,
            ),
            ("orders-{{ args.id }}", Broker::Kafka, "2f-4d.x", true),
            ("{{ args.id }}", Broker::Kafka, "eu.orders", true),
            ("{{ args.id }}", Broker::Nats, "eu.orders", false),
        ] {
            let arguments = serde_json::json!({ "id": id });
            let name = Template::new(template).name(arguments.as_object().unwrap(), broker);
            assert_eq!(name.is_ok(), is_good, "{template} {id}: {name:?}");
        }
    }
}
