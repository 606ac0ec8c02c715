//! Rules: how a field's value follows from its object and arguments.
//!
//! A string with `{..}` is a template, an object with one of the `$` words is an instruction, everything else is
//! itself. A template that is one placeholder keeps the type of its value.

use serde_json::{Map, Value};

use super::expr::{Expr, Scope, text_of};

/// Longest list one `$repeat` makes.
pub(crate) const REPEAT_MAX: usize = 100_000;

/// How to get a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rule {
    Literal(Value),
    Template(Vec<Part>),
    Expr(Expr),
    /// Rows of a type: `{ $list: Review, by: product, where: { .. }, first: n }`.
    List(ListRule),
    /// `{ $repeat: count, item: rule }`; `$index` counts from 0.
    Repeat(Box<Rule>, Box<Rule>),
    Array(Vec<Rule>),
    Object(Vec<(String, Rule)>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Text(String),
    Expr(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListRule {
    pub(crate) ty: String,
    /// The field of a row that refers to this object.
    pub(crate) by: Option<String>,
    /// Fields of a row with the values they must have.
    pub(crate) filter: Vec<(String, Rule)>,
    /// At most so many.
    pub(crate) first: Option<Box<Rule>>,
}

impl Rule {
    /// Reads a rule. Nesting is bounded by the reader of the file.
    pub(crate) fn parse(value: &Value) -> Result<Rule, String> {
        Ok(match value {
            Value::String(text) => template(text),
            Value::Array(items) => {
                Rule::Array(items.iter().map(Rule::parse).collect::<Result<_, _>>()?)
            }
            Value::Object(map) => match map.keys().find(|k| k.starts_with('$')) {
                None => Rule::Object(members(map)?),
                Some(word) => instruction(word, map)?,
            },
            other => Rule::Literal(other.clone()),
        })
    }

    /// Whether it looks at arguments itself, so that conventions must not apply them again.
    pub(crate) fn uses_arguments(&self) -> bool {
        match self {
            Rule::Literal(_) => false,
            Rule::Template(parts) => parts
                .iter()
                .any(|p| matches!(p, Part::Expr(e) if e.uses_arguments())),
            Rule::Expr(expr) => expr.uses_arguments(),
            Rule::List(list) => {
                list.filter.iter().any(|(_, r)| r.uses_arguments())
                    || list.first.as_ref().is_some_and(|r| r.uses_arguments())
            }
            Rule::Repeat(count, item) => count.uses_arguments() || item.uses_arguments(),
            Rule::Array(items) => items.iter().any(Rule::uses_arguments),
            Rule::Object(members) => members.iter().any(|(_, r)| r.uses_arguments()),
        }
    }

    /// Its value; `rows` answers a `$list`.
    pub(crate) fn eval(&self, scope: &dyn RuleScope) -> Result<Value, String> {
        Ok(match self {
            Rule::Literal(value) => value.clone(),
            Rule::Template(parts) => match parts.as_slice() {
                [Part::Expr(expr)] => expr.eval(scope.expr())?,
                parts => {
                    let mut text = String::new();
                    for part in parts {
                        match part {
                            Part::Text(t) => text.push_str(t),
                            Part::Expr(e) => text.push_str(&text_of(&e.eval(scope.expr())?)),
                        }
                    }
                    Value::String(text)
                }
            },
            Rule::Expr(expr) => expr.eval(scope.expr())?,
            Rule::List(list) => scope.rows(list)?,
            Rule::Repeat(count, item) => {
                let count = count.eval(scope)?;
                let n = count.as_f64().or_else(|| count.as_str()?.parse().ok());
                let n = n.ok_or_else(|| format!("$repeat: {count} is no number"))?;
                // A float to integer cast saturates, so a negative count is 0.
                let n = (n as usize).min(REPEAT_MAX);
                let items = (0..n).map(|i| item.eval(&*scope.at_index(i)));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Rule::Array(items) => {
                let items = items.iter().map(|r| r.eval(scope));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Rule::Object(members) => {
                let mut map = Map::new();
                for (name, rule) in members {
                    map.insert(name.clone(), rule.eval(scope)?);
                }
                Value::Object(map)
            }
        })
    }
}

/// What a rule can see.
pub(crate) trait RuleScope {
    fn expr(&self) -> &dyn Scope;
    fn rows(&self, list: &ListRule) -> Result<Value, String>;
    fn at_index<'a>(&'a self, index: usize) -> Box<dyn RuleScope + 'a>;
}

fn members(map: &Map<String, Value>) -> Result<Vec<(String, Rule)>, String> {
    map.iter()
        .map(|(name, value)| Ok((name.clone(), Rule::parse(value)?)))
        .collect()
}

fn instruction(word: &str, map: &Map<String, Value>) -> Result<Rule, String> {
    let allow = |names: &[&str]| match map
        .keys()
        .find(|k| *k != word && !names.contains(&k.as_str()))
    {
        Some(other) => Err(format!("\"{other}\" is not known beside \"{word}\"")),
        None => Ok(()),
    };
    let text = |name: &str| -> Result<Option<String>, String> {
        match map.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(format!("\"{name}\" must be a word, not {other}")),
        }
    };
    match word {
        "$expr" => {
            allow(&[])?;
            let source = match &map[word] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Expr::parse(&source).map(Rule::Expr)
        }
        "$ref" | "$error" => {
            allow(&[])?;
            Ok(Rule::Object(vec![(
                word.to_string(),
                Rule::parse(&map[word])?,
            )]))
        }
        "$literal" => {
            allow(&[])?;
            Ok(Rule::Literal(map[word].clone()))
        }
        "$list" => {
            allow(&["by", "where", "first"])?;
            let filter = match map.get("where") {
                None => Vec::new(),
                Some(Value::Object(filter)) => members(filter)?,
                Some(_) => return Err("\"where\" must be a mapping".to_string()),
            };
            let first = map.get("first").map(Rule::parse).transpose()?;
            Ok(Rule::List(ListRule {
                ty: text(word)?.unwrap_or_default(),
                by: text("by")?,
                filter,
                first: first.map(Box::new),
            }))
        }
        "$repeat" => {
            allow(&["item"])?;
            let item = map.get("item").ok_or("\"$repeat\" needs an \"item\"")?;
            Ok(Rule::Repeat(
                Box::new(Rule::parse(&map[word])?),
                Box::new(Rule::parse(item)?),
            ))
        }
        _ => Err(format!(
            "unknown instruction \"{word}\"; known are $expr, $ref, $list, $repeat, $error, $literal"
        )),
    }
}

/// A string with placeholders. Braces that hold no expression are text.
fn template(text: &str) -> Rule {
    let mut parts: Vec<Part> = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}').map(|c| open + c) else {
            break;
        };
        plain.push_str(&rest[..open]);
        match Expr::parse(&rest[open + 1..close]) {
            Ok(expr) => {
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(Part::Expr(expr));
            }
            Err(_) => plain.push_str(&rest[open..=close]),
        }
        rest = &rest[close + 1..];
    }
    plain.push_str(rest);
    if parts.is_empty() {
        return Rule::Literal(Value::String(plain));
    }
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    Rule::Template(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_templates_and_instructions() {
        assert_eq!(
            Rule::parse(&json!("a {} b")),
            Ok(Rule::Literal(json!("a {} b")))
        );
        assert!(matches!(Rule::parse(&json!("f-{id}")), Ok(Rule::Template(p)) if p.len() == 2));
        assert!(matches!(
            Rule::parse(&json!({"$expr": "1"})),
            Ok(Rule::Expr(_))
        ));
        assert!(Rule::parse(&json!({"$expr": "1 +"})).is_err());
        assert!(Rule::parse(&json!({"$lst": "A"})).is_err());
        assert!(Rule::parse(&json!({"$list": "A", "bye": "b"})).is_err());
        assert!(Rule::parse(&json!({"$repeat": 1})).is_err());
    }
}
