//! Texts of data and config files as JSON values.
//!
//! JSON is YAML too, so one reader serves both. Core schema of YAML 1.2: only plain `true`, `false`, `null`, `~` and
//! numbers are special, so `no` and `on` are strings.

use ogive_yaml::{Limits, Node};
use serde_json::Value;

/// What a file may have.
const LIMITS: Limits = Limits {
    subject: "a file",
    text_bytes: 1 << 30,
    depth: 128,
    nodes: 2_000_000,
    aliases: true,
};

/// A file that is no YAML, with the line of the fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// One-based line.
    pub line: usize,
    /// One-based column.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for YamlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.message
        )
    }
}

impl std::error::Error for YamlError {}

/// Reads YAML or JSON text.
pub fn read(text: &str) -> Result<Value, YamlError> {
    // JSON text goes through the JSON parser: far faster for big data files, and tabs are fine there.
    if text.trim_start().starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(value);
    }
    let mut first = None;
    let root = ogive_yaml::parse(text, LIMITS, &mut |error| {
        first.get_or_insert(error);
    });
    match (root, first) {
        (Some(root), None) => Ok(json(root)),
        (_, Some(error)) => Err(at(text, error)),
        (None, None) => Ok(Value::Null),
    }
}

fn at(text: &str, error: ogive_yaml::YamlError) -> YamlError {
    let before = text.get(..error.span.start as usize).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    YamlError {
        line: before.matches('\n').count() + 1,
        column: line.chars().count() + 1,
        message: error.message,
    }
}

/// The JSON value of a node. The depth of the tree is bounded.
fn json(node: Node) -> Value {
    match node.value {
        ogive_yaml::Value::Scalar { text, plain: true } => plain(text),
        ogive_yaml::Value::Scalar { text, plain: false } => Value::String(text),
        ogive_yaml::Value::List(items) => items.into_iter().map(json).collect(),
        ogive_yaml::Value::Map(entries) => {
            let entries = entries.into_iter();
            entries.map(|(key, node)| (key.text, json(node))).collect()
        }
    }
}

/// A scalar without quotes.
fn plain(text: String) -> Value {
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => {
            let first = text.as_bytes()[0];
            if first.is_ascii_digit() || first == b'-' {
                // A plain `007` is no JSON number and stays a string.
                if let Ok(number) = serde_json::from_str::<serde_json::Number>(&text) {
                    return Value::Number(number);
                }
            }
            Value::String(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_the_core_schema() {
        let text = "a: 1\nb: [x, 2.50, 'no', no, ~]\nc:\n  - {d: true}\n  - \"1\"\ne: &x {f: 007}\ng: *x\n";
        assert_eq!(
            read(text).unwrap(),
            json!({"a": 1, "b": ["x", serde_json::from_str::<Value>("2.50").unwrap(), "no", "no", null],
                   "c": [{"d": true}, "1"], "e": {"f": "007"}, "g": {"f": "007"}})
        );
        assert_eq!(read("{\"a\":\t1e2}").unwrap().to_string(), "{\"a\":1e+2}");
    }

    #[test]
    fn refuses_duplicate_keys_and_bombs() {
        let error = read("a: 1\na: 2\n").unwrap_err();
        assert_eq!((error.line, error.column), (2, 1));
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..12 {
            let refs = vec![format!("*a{}", i - 1); 10].join(", ");
            bomb.push_str(&format!("a{i}: &a{i} [{refs}]\n"));
        }
        let message = read(&bomb).unwrap_err().message;
        assert_eq!(message, "a file has at most 2000000 values nested 128 deep");
    }
}
