//! YAML text to JSON values, on top of `saphyr-parser`'s events.
//!
//! Why: data and config files are written by hand. JSON is YAML too, so one reader serves both. Anchors and aliases
//! work; the number of values is bounded after expansion, so a small file cannot become a huge one. Core schema of
//! YAML 1.2: only plain `true`, `false`, `null`, `~` and numbers are special, so `no` and `on` are strings.

use ogive_base::FastMap;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// Deepest nesting of mappings and lists.
const DEPTH_MAX: usize = 128;
/// Most scalars, mappings and lists, aliases expanded.
const VALUES_MAX: usize = 2_000_000;

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

enum Open {
    List(Vec<Value>),
    Map(Map<String, Value>, Option<String>),
}

/// Reads YAML or JSON text.
pub fn read(text: &str) -> Result<Value, YamlError> {
    // JSON text goes through the JSON parser: far faster for big data files, and tabs are fine there.
    if text.trim_start().starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(value);
    }
    let mut stack: Vec<(Open, usize)> = Vec::new();
    let mut anchors: FastMap<usize, (Value, usize)> = FastMap::default();
    let mut root = Value::Null;
    let mut values = 0usize;
    let mut documents = 0;
    let mut weights: Vec<usize> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| YamlError {
            line: e.marker().line(),
            column: e.marker().col() + 1,
            message: e.info().to_string(),
        })?;
        let fail = |message: &str| YamlError {
            line: span.start.line(),
            column: span.start.col() + 1,
            message: message.to_string(),
        };
        let (value, anchor, weight) = match event {
            Event::Scalar(text, style, anchor, _) => {
                let value = match style {
                    ScalarStyle::Plain => plain(&text),
                    _ => Value::String(text.into_owned()),
                };
                (value, anchor, 1)
            }
            Event::Alias(id) => match anchors.get(&id) {
                Some((value, weight)) => (value.clone(), 0, *weight),
                None => return Err(fail("an alias refers to its own parent")),
            },
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                if stack.len() >= DEPTH_MAX {
                    return Err(fail("nested too deeply"));
                }
                let open = match event {
                    Event::SequenceStart(..) => Open::List(Vec::new()),
                    _ => Open::Map(Map::new(), None),
                };
                stack.push((open, anchor));
                weights.push(values);
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (Some((open, anchor)), Some(before)) = (stack.pop(), weights.pop()) else {
                    continue;
                };
                let value = match open {
                    Open::List(items) => Value::Array(items),
                    Open::Map(map, _) => Value::Object(map),
                };
                // The members were counted when they were added.
                let weight = values - before + 1;
                if anchor > 0 {
                    anchors.insert(anchor, (value.clone(), weight));
                }
                values += 1;
                attach(&mut stack, &mut root, value).map_err(|m| fail(&m))?;
                continue;
            }
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    return Err(fail("expected one document"));
                }
                continue;
            }
            _ => continue,
        };
        values += weight;
        if values > VALUES_MAX {
            return Err(fail("too many values"));
        }
        if anchor > 0 {
            anchors.insert(anchor, (value.clone(), 1));
        }
        attach(&mut stack, &mut root, value).map_err(|m| fail(&m))?;
    }
    Ok(root)
}

fn attach(stack: &mut [(Open, usize)], root: &mut Value, value: Value) -> Result<(), String> {
    match stack.last_mut() {
        None => *root = value,
        Some((Open::List(items), _)) => items.push(value),
        Some((Open::Map(map, key), _)) => match key.take() {
            None => {
                let text = match value {
                    Value::String(text) => text,
                    Value::Number(number) => number.to_string(),
                    Value::Bool(b) => b.to_string(),
                    _ => return Err("a key must be a word".to_string()),
                };
                if map.contains_key(&text) {
                    return Err(format!("key \"{text}\" is there twice"));
                }
                *key = Some(text);
            }
            Some(key) => {
                map.insert(key, value);
            }
        },
    }
    Ok(())
}

/// A scalar without quotes.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => {
            let first = text.as_bytes()[0];
            if first.is_ascii_digit() || first == b'-' {
                // A plain `007` is no JSON number and stays a string.
                if let Ok(number) = serde_json::from_str::<serde_json::Number>(text) {
                    return Value::Number(number);
                }
            }
            Value::String(text.to_string())
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
        assert_eq!(read(&bomb).unwrap_err().message, "too many values");
    }
}
