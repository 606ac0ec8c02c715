//! Arguments of fields and of field sets, as text that is equal where they mean the same.

use serde_json::{Map, Value as Json};

use crate::graph::{InputModel, Kind, Model};

/// A number that keeps its text.
pub(super) fn number(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or(Json::Null)
}

/// Coerced arguments as text that is equal exactly when the arguments mean the same.
pub(super) fn canonical_args(
    model: &Model,
    inputs: &[InputModel],
    args: &Map<String, Json>,
) -> String {
    let mut out = String::new();
    for input in inputs {
        if let Some(value) = args.get(&input.name)
            && input.is_visible()
        {
            out.push_str(&input.name);
            out.push('=');
            canonical(model, input.ty.name(), value, &mut out);
            out.push(';');
        }
    }
    out
}

pub(super) fn canonical(model: &Model, ty: &str, value: &Json, out: &mut String) {
    match value {
        Json::Array(items)
            if model.kind(ty) != Kind::Scalar || crate::graph::SCALARS.contains(&ty) =>
        {
            out.push('[');
            for item in items {
                canonical(model, ty, item, out);
                out.push(',');
            }
            out.push(']');
        }
        Json::Object(map) if model.kind(ty) == Kind::Input => {
            out.push('{');
            if let Some(row) = model.ty(ty) {
                out.push_str(&canonical_args(model, &row.inputs, map));
            }
            out.push('}');
        }
        // 1, 1.0 and 1e0 are the same Float.
        Json::Number(n) if ty == "Float" => match n.as_f64() {
            Some(f) => out.push_str(&f.to_string()),
            None => out.push_str(&n.to_string()),
        },
        other => out.push_str(&other.to_string()),
    }
}

/// The arguments of a field in a field set, defaults filled in.
pub(super) fn set_args(inputs: &[InputModel], text: &str) -> Map<String, Json> {
    let mut given: Vec<(&str, Json)> = Vec::new();
    let mut rest = text.trim();
    while let Some((name, tail)) = rest.split_once(':') {
        let (value, after) = literal(tail.trim_start());
        given.push((
            name.trim_matches(|c: char| c == ',' || c.is_whitespace()),
            value,
        ));
        rest = after;
    }
    let mut out = Map::new();
    for input in inputs {
        let value = given
            .iter()
            .find(|(n, _)| *n == input.name)
            .map(|(_, v)| v.clone())
            .or_else(|| input.default.as_deref().map(|d| literal(d).0));
        if let Some(value) = value {
            let value = match (input.ty.is_list(), &value) {
                (true, Json::Array(_) | Json::Null) | (false, _) => value,
                (true, _) => Json::Array(vec![value]),
            };
            out.insert(input.name.clone(), value);
        }
    }
    out
}

/// One GraphQL literal of the plain kinds that field sets and defaults use, and the text after it.
pub(super) fn literal(text: &str) -> (Json, &str) {
    if let Some(rest) = text.strip_prefix('[') {
        let mut items = Vec::new();
        let mut rest = rest.trim_start();
        while !rest.is_empty() && !rest.starts_with(']') {
            let (item, after) = literal(rest);
            items.push(item);
            rest = after.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        }
        return (Json::Array(items), rest.get(1..).unwrap_or(""));
    }
    if text.starts_with('"') {
        let mut escaped = false;
        for (i, c) in text.char_indices().skip(1) {
            match c {
                '\\' if !escaped => escaped = true,
                '"' if !escaped => {
                    let value = serde_json::from_str(&text[..=i]).unwrap_or(Json::Null);
                    return (value, &text[i + 1..]);
                }
                _ => escaped = false,
            }
        }
        return (Json::Null, "");
    }
    let end = text
        .find(|c: char| c.is_whitespace() || ",])".contains(c))
        .unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let value = serde_json::from_str(word).unwrap_or_else(|_| Json::from(word));
    (value, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Ty;

    #[test]
    fn field_set_arguments_are_read() {
        let inputs = [
            InputModel::plain("a", Ty::named("Int").list(), None),
            InputModel::plain("b", Ty::named("String"), Some("\"x\"".to_owned())),
        ];
        let read = |text| Json::Object(set_args(&inputs, text)).to_string();
        assert_eq!(read(r#"b: "y, z", a: 4"#), r#"{"a":[4],"b":"y, z"}"#);
        assert_eq!(read("a: [1, 2]"), r#"{"a":[1,2],"b":"x"}"#);
    }
}
