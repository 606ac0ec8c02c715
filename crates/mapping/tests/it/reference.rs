//! A second evaluator: it walks the parsed mapping over trees of `serde_json`, in the shortest way. It knows no limits, no
//! programs and no byte ranges, so it makes other mistakes than the one that ships.

use std::collections::BTreeMap;

use ogive_mapping::{
    Variable,
    ast::{
        Entry, EntryKind, ExprId, ExprKind, FallbackOperator, Mapping, Path, PathRoot, Root,
        StepKind,
    },
};
use serde_json::{Map, Number, Value, json};

/// A value, or none.
type Maybe = Option<Value>;

/// What the reference gives.
pub(crate) fn evaluate(
    mapping: &Mapping,
    body: Option<&str>,
    variables: &[(Variable, &str)],
) -> Maybe {
    let body = body.map(|json| serde_json::from_str(json).unwrap());
    let variables = variables
        .iter()
        .map(|(variable, json)| {
            let value: Value = serde_json::from_str(json).unwrap();
            (variable.name().to_owned(), value)
        })
        .collect();
    let reference = Reference { mapping };
    let scope = Scope {
        dollar: body.clone(),
        at: body.clone(),
        variables,
    };
    match (mapping.root, body) {
        (Root::Selection(object), Some(body)) => reference.select(object, &body, &scope),
        (root, _) => reference.expr(root.expr(), &scope),
    }
}

/// Says how the two differ, if they are not one value. Numbers are compared digit for digit.
pub(crate) fn difference(json: Option<&str>, reference: &Maybe) -> Option<String> {
    let got: Maybe = json.map(|json| serde_json::from_str(json).unwrap());
    let shown = |value: &Maybe| {
        let json = value.as_ref().map(Value::to_string);
        json.unwrap_or_else(|| "missing".to_owned())
    };
    (got != *reference).then(|| format!("got {}, the reference {}", shown(&got), shown(reference)))
}

#[derive(Clone)]
struct Scope {
    dollar: Maybe,
    at: Maybe,
    variables: BTreeMap<String, Value>,
}

struct Reference<'m> {
    mapping: &'m Mapping,
}

impl Reference<'_> {
    fn expr(&self, id: ExprId, scope: &Scope) -> Maybe {
        match &self.mapping.exprs[id].kind {
            ExprKind::Null | ExprKind::Invalid => Some(Value::Null),
            ExprKind::Bool(value) => Some(json!(value)),
            ExprKind::Number(text) => Some(serde_json::from_str(text).unwrap()),
            ExprKind::String(text) => Some(json!(text)),
            ExprKind::List(items) => {
                let items = items.iter().map(|item| self.expr(*item, scope));
                Some(items.map(Option::unwrap_or_default).collect())
            }
            ExprKind::Object(entries) => self.object(entries, scope),
            ExprKind::Path(path) => self.path(path, scope),
            ExprKind::Fallback(fallback) => {
                let mut value = None;
                for operand in &fallback.operands {
                    value = self.expr(*operand, scope);
                    match (&value, fallback.operator) {
                        (None, _) | (Some(Value::Null), FallbackOperator::Nullish) => {}
                        _ => break,
                    }
                }
                value
            }
        }
    }

    fn object(&self, entries: &[Entry], scope: &Scope) -> Maybe {
        if let [entry] = entries
            && matches!(entry.kind, EntryKind::Unnamed)
        {
            return self.expr(entry.value, scope);
        }
        let mut object = Map::new();
        for entry in entries {
            let value = self.expr(entry.value, scope);
            match (&entry.kind, value) {
                (EntryKind::Named(name), Some(value)) => {
                    object.insert(name.to_string(), value);
                }
                (EntryKind::Spread, Some(Value::Null)) => return Some(Value::Null),
                (EntryKind::Spread | EntryKind::Unnamed, Some(Value::Object(added))) => {
                    object.extend(added);
                }
                _ => {}
            }
        }
        Some(Value::Object(object))
    }

    fn select(&self, object: ExprId, value: &Value, scope: &Scope) -> Maybe {
        match value {
            Value::Null => Some(Value::Null),
            Value::Array(items) => {
                let items = items.iter().map(|item| self.select(object, item, scope));
                Some(items.map(Option::unwrap_or_default).collect())
            }
            value => {
                let mut inner = scope.clone();
                inner.dollar = Some(value.clone());
                inner.at = Some(value.clone());
                self.expr(object, &inner)
            }
        }
    }

    fn path(&self, path: &Path, scope: &Scope) -> Maybe {
        let mut scope = scope.clone();
        let mut value = match &path.root {
            PathRoot::Dollar => scope.dollar.clone(),
            PathRoot::At => scope.at.clone(),
            PathRoot::Variable(name) => scope.variables.get(&**name).cloned(),
            PathRoot::Key(name) => key(scope.dollar.clone()?, name),
            PathRoot::Group(expr) => self.expr(*expr, &scope),
        };
        if path.optional {
            value = value.filter(|value| !value.is_null());
        }
        for step in &path.steps {
            let of = value?;
            value = match &step.kind {
                StepKind::Key(name) => key(of, name),
                StepKind::Method(call) if &*call.name == "as" => {
                    let ExprKind::Path(variable) = &self.mapping.exprs[call.arguments[0]].kind
                    else {
                        panic!("a variable is bound")
                    };
                    let PathRoot::Variable(name) = &variable.root else {
                        panic!("a variable is bound")
                    };
                    let bound = match call.arguments.get(1) {
                        Some(expr) => self.expr(*expr, &with_at(&scope, &of)),
                        None => Some(of.clone()),
                    };
                    bound.map(|bound| {
                        scope.variables.insert(name.to_string(), bound);
                        of
                    })
                }
                StepKind::Method(call) => self.call(&call.name, &call.arguments, of, &scope),
            };
            if step.optional {
                value = value.filter(|value| !value.is_null());
            }
        }
        match path.selection {
            Some(object) => self.select(object, &value?, &scope),
            None => value,
        }
    }

    fn call(&self, name: &str, arguments: &[ExprId], of: Value, scope: &Scope) -> Maybe {
        let inner = with_at(scope, &of);
        let each = |item: &Value| self.expr(arguments[0], &with_at(scope, item));
        if let Some(value) = self.lazy(name, arguments, &of, &inner, &each) {
            return value;
        }
        let arguments: Vec<Value> = arguments
            .iter()
            .map(|argument| self.expr(*argument, &inner))
            .collect::<Option<_>>()?;
        strict(name, &arguments, of)
    }

    /// Methods that do not evaluate all their arguments once; `None` for the others.
    fn lazy(
        &self,
        name: &str,
        arguments: &[ExprId],
        of: &Value,
        inner: &Scope,
        each: &dyn Fn(&Value) -> Maybe,
    ) -> Option<Maybe> {
        Some(match (name, of) {
            ("map", Value::Array(items)) => Some(
                items
                    .iter()
                    .map(|item| each(item).unwrap_or_default())
                    .collect(),
            ),
            ("map", other) => Some(json!([each(other).unwrap_or_default()])),
            ("filter", Value::Array(items)) => {
                let mut kept = Vec::new();
                for item in items {
                    match each(item) {
                        Some(Value::Bool(true)) => kept.push(item.clone()),
                        Some(Value::Bool(false)) => {}
                        _ => return Some(None),
                    }
                }
                Some(Value::Array(kept))
            }
            ("find", Value::Array(items)) => {
                for item in items {
                    match each(item) {
                        Some(Value::Bool(true)) => return Some(Some(item.clone())),
                        Some(Value::Bool(false)) => {}
                        _ => return Some(None),
                    }
                }
                None
            }
            ("filter" | "find", _) => None,
            ("match", of) => {
                for pair in arguments {
                    let ExprKind::List(pair) = &self.mapping.exprs[*pair].kind else {
                        panic!("pairs are matched")
                    };
                    let candidate = self.expr(pair[0], inner);
                    if candidate.is_some_and(|candidate| equal(&candidate, of)) {
                        return Some(self.expr(pair[1], inner));
                    }
                }
                None
            }
            _ => return None,
        })
    }
}

fn with_at(scope: &Scope, at: &Value) -> Scope {
    let mut scope = scope.clone();
    scope.at = Some(at.clone());
    scope
}

fn key(of: Value, name: &str) -> Maybe {
    match of {
        Value::Object(mut object) => object.shift_remove(name),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| key(item, name));
            Some(items.map(Option::unwrap_or_default).collect())
        }
        _ => None,
    }
}

/// Methods whose arguments are values.
fn strict(name: &str, arguments: &[Value], of: Value) -> Maybe {
    let first = arguments.first();
    let index = |at: usize| arguments.get(at).map(as_index);
    Some(match (name, of) {
        ("echo", _) => first?.clone(),
        ("first", Value::Array(items)) => items.first()?.clone(),
        ("last", Value::Array(items)) => items.last()?.clone(),
        ("size", Value::Array(items)) => json!(items.len()),
        ("size", Value::Object(object)) => json!(object.len()),
        ("size", Value::String(text)) => json!(text.chars().count()),
        ("get", Value::Array(items)) => items.get(index(0)??)?.clone(),
        ("get", Value::String(text)) => json!(text.chars().nth(index(0)??)?),
        ("get", Value::Object(object)) => object.get(first?.as_str()?)?.clone(),
        ("slice", Value::Array(items)) => {
            let start = index(0)??.min(items.len());
            let end = index(1)
                .unwrap_or(Some(items.len()))?
                .clamp(start, items.len());
            json!(items[start..end])
        }
        ("slice", Value::String(text)) => {
            let start = index(0)??;
            let end = index(1).unwrap_or(Some(usize::MAX))?;
            let letters = text.chars().skip(start).take(end.saturating_sub(start));
            json!(letters.collect::<String>())
        }
        ("joinNotNull", Value::Array(items)) => {
            let separator = first?.as_str()?;
            let there = items.iter().filter(|item| !item.is_null());
            let texts: Option<Vec<String>> = there.map(text_of).collect();
            json!(texts?.join(separator))
        }
        ("contains", Value::Array(items)) => {
            json!(
                items
                    .iter()
                    .any(|item| equal(item, arguments.first().unwrap()))
            )
        }
        ("in", of) => {
            let values = match arguments {
                [Value::Array(values)] => values,
                values => values,
            };
            json!(values.iter().any(|value| equal(value, &of)))
        }
        ("eq", of) => json!(equal(&of, first?)),
        ("ne", of) => json!(!equal(&of, first?)),
        ("gt" | "gte" | "lt" | "lte", of) => json!(ordered(name, &of, first?)?),
        ("not", Value::Bool(truth)) => json!(!truth),
        ("and" | "or", Value::Bool(truth)) => {
            let all: Option<Vec<bool>> = arguments.iter().map(Value::as_bool).collect();
            let all = all?;
            match name {
                "and" => json!(truth && all.iter().all(|one| *one)),
                _ => json!(truth || all.iter().any(|one| *one)),
            }
        }
        ("add" | "sub" | "mul" | "div" | "mod", Value::Number(of)) => {
            let mut result = of;
            for argument in arguments {
                let Value::Number(argument) = argument else {
                    return None;
                };
                result = arithmetic(name, &result, argument)?;
            }
            // A result is written anew even if nothing changed.
            Value::Number(normal(&result)?)
        }
        ("parseInt", of) => parse_int(&of, index(0))?,
        ("toString", of) => json!(if of.is_null() {
            String::new()
        } else {
            text_of(&of)?
        }),
        ("jsonStringify", of) => json!(of.to_string()),
        ("jsonParse", Value::String(text)) => serde_json::from_str(&text).ok()?,
        ("entries", Value::Object(object)) => object
            .into_iter()
            .map(|(key, value)| json!({ "key": key, "value": value }))
            .collect(),
        ("split", Value::String(text)) => {
            let separator = first?.as_str()?;
            let most = index(1).unwrap_or(Some(usize::MAX))?;
            if separator.is_empty() {
                json!(
                    text.chars()
                        .take(most)
                        .map(String::from)
                        .collect::<Vec<_>>()
                )
            } else {
                json!(text.split(separator).take(most).collect::<Vec<_>>())
            }
        }
        ("keysToCamelCase", Value::Object(object)) => camel_case(Value::Object(object), false),
        ("keysToCamelCaseDeep", of @ (Value::Object(_) | Value::Array(_))) => camel_case(of, true),
        ("trim", Value::String(text)) => json!(text.trim()),
        ("trimStart", Value::String(text)) => json!(text.trim_start()),
        ("trimEnd", Value::String(text)) => json!(text.trim_end()),
        _ => return None,
    })
}

fn as_index(value: &Value) -> Option<usize> {
    let Value::Number(number) = value else {
        return None;
    };
    if let Some(index) = number.as_u64() {
        return usize::try_from(index).ok();
    }
    let float = number.as_f64()?;
    (float >= 0.0 && float.fract() == 0.0 && float < 4e9).then_some(float as usize)
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
        scalar => Some(scalar.to_string()),
    }
}

fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other).is_eq(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| equal(value, other)))
        }
        (one, other) => one == other,
    }
}

fn compare(one: &Number, other: &Number) -> std::cmp::Ordering {
    match (
        one.to_string().parse::<i128>(),
        other.to_string().parse::<i128>(),
    ) {
        (Ok(one), Ok(other)) => one.cmp(&other),
        _ => {
            let (one, other) = (float(one), float(other));
            one.partial_cmp(&other).unwrap()
        }
    }
}

fn float(number: &Number) -> f64 {
    number.to_string().parse().unwrap()
}

fn ordered(name: &str, one: &Value, other: &Value) -> Option<bool> {
    let order = match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other),
        (Value::String(one), Value::String(other)) => one.cmp(other),
        _ => return None,
    };
    Some(match name {
        "gt" => order.is_gt(),
        "gte" => order.is_ge(),
        "lt" => order.is_lt(),
        _ => order.is_le(),
    })
}

fn normal(number: &Number) -> Option<Number> {
    match number.to_string().parse::<i64>() {
        Ok(integer) => Some(integer.into()),
        Err(_) => written(float(number)),
    }
}
fn written(float: f64) -> Option<Number> {
    float
        .is_finite()
        .then(|| serde_json::from_str(&format!("{float:?}")).unwrap())
}

fn arithmetic(name: &str, one: &Number, other: &Number) -> Option<Number> {
    let integers = (
        one.to_string().parse::<i64>(),
        other.to_string().parse::<i64>(),
    );
    if let (Ok(one), Ok(other)) = integers {
        return match name {
            "add" => one.checked_add(other).map(Into::into),
            "sub" => one.checked_sub(other).map(Into::into),
            "mul" => one.checked_mul(other).map(Into::into),
            "mod" => one.checked_rem(other).map(Into::into),
            _ if other == 0 => None,
            _ if one.checked_rem(other)? == 0 => Some((one / other).into()),
            _ => written(one as f64 / other as f64),
        };
    }
    let (one, other) = (float(one), float(other));
    match name {
        "add" => written(one + other),
        "sub" => written(one - other),
        "mul" => written(one * other),
        _ if other == 0.0 => None,
        "mod" => written(one % other),
        _ => written(one / other),
    }
}

fn parse_int(of: &Value, base: Option<Option<usize>>) -> Maybe {
    let base = match base {
        None => 10,
        Some(base) => u32::try_from(base?)
            .ok()
            .filter(|base| (2..=36).contains(base))?,
    };
    match of {
        Value::String(text) => i64::from_str_radix(text, base).ok().map(Value::from),
        Value::Number(number) => match number.to_string().parse::<i64>() {
            Ok(integer) => Some(integer.into()),
            Err(_) => {
                let float = float(number);
                (float.abs() < 9_007_199_254_740_992.0).then_some((float as i64).into())
            }
        },
        _ => None,
    }
}

fn camel_case(of: Value, deep: bool) -> Value {
    let inner = |value: Value| if deep { camel_case(value, deep) } else { value };
    match of {
        Value::Object(object) => object
            .into_iter()
            .map(|(key, value)| (camel_case_key(&key), inner(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(inner).collect(),
        other => other,
    }
}

/// Letters one by one: what follows an underscore is a capital letter, and so is a capital letter that begins a word.
fn camel_case_key(key: &str) -> String {
    let letters: Vec<char> = key.chars().collect();
    let lead = letters.iter().take_while(|letter| **letter == '_').count();
    let mut out: String = letters[..lead].iter().collect();
    let mut capital = false;
    for at in lead..letters.len() {
        let letter = letters[at];
        if letter == '_' || letter == '-' {
            capital = out.len() > lead;
            continue;
        }
        let before = letters[..at].last().filter(|_| at > lead);
        let after_small = before.is_some_and(|before| before.is_lowercase() || before.is_numeric());
        let ends_capitals = before.is_some_and(|before| before.is_uppercase())
            && letters
                .get(at + 1)
                .is_some_and(|after| after.is_lowercase());
        capital |= letter.is_uppercase() && (after_small || ends_capitals);
        if capital {
            out.extend(letter.to_uppercase());
        } else {
            out.extend(letter.to_lowercase());
        }
        capital = false;
    }
    out
}
