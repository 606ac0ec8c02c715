//! The JSON schema of `ogive.yaml`, made from the same declarations as the reference: editors complete and check with
//! it. And the defaults, as a file to start from.

use std::{collections::BTreeMap, fmt::Write};

use ogive_limits::Limit;

use crate::reference::{OptionRow, options};

/// One place of the tree.
#[derive(Default)]
struct Place {
    /// Keys in order of documentation; `<name>` stands for any.
    keys: Vec<String>,
    below: BTreeMap<String, Place>,
    row: Option<OptionRow>,
}

fn tree() -> Place {
    let mut root = Place::default();
    for row in options() {
        let mut place = &mut root;
        for part in row.path.split('.') {
            // `policies[]`: a list of sections.
            let (key, list) = match part.strip_suffix("[]") {
                Some(key) => (key, true),
                None => (part, false),
            };
            for key in std::iter::once(key).chain(list.then_some("[]")) {
                if !place.keys.iter().any(|k| k == key) {
                    place.keys.push(key.to_owned());
                }
                place = place.below.entry(key.to_owned()).or_default();
            }
        }
        place.row = Some(row);
    }
    root
}

/// The schema, as JSON text (draft 2020-12).
pub fn schema() -> String {
    let mut out = String::from(
        "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n  \"title\": \"ogive.yaml\",\n  ",
    );
    write_place(&tree(), 1, &mut out);
    out.push_str("\n}\n");
    out
}

/// Nesting is that of the declarations.
fn write_place(place: &Place, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    if let Some(row) = &place.row {
        let _ = write!(
            out,
            "{},\n{indent}\"description\": {}",
            kind(&row.kind),
            quoted(&row.doc)
        );
        if !row.default.is_empty() {
            let _ = write!(out, ",\n{indent}\"default\": {}", json_default(row));
        }
        return;
    }
    if place.keys.iter().any(|k| k == "[]") {
        let _ = write!(
            out,
            "\"type\": [\"array\", \"null\"],\n{indent}\"items\": {{\n{indent}  "
        );
        write_place(&place.below["[]"], depth + 1, out);
        let _ = write!(out, "\n{indent}}}");
        return;
    }
    out.push_str("\"type\": [\"object\", \"null\"],\n");
    if place.keys.iter().any(|k| k == "<name>") {
        let _ = write!(out, "{indent}\"additionalProperties\": {{\n{indent}  ");
        write_place(&place.below["<name>"], depth + 1, out);
        let _ = write!(out, "\n{indent}}}");
        return;
    }
    let _ = write!(
        out,
        "{indent}\"additionalProperties\": false,\n{indent}\"properties\": {{"
    );
    for (i, key) in place.keys.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\n{indent}  {}: {{\n{indent}    ", quoted(key));
        write_place(&place.below[key], depth + 2, out);
        let _ = write!(out, "\n{indent}  }}");
    }
    let _ = write!(out, "\n{indent}}}");
}

/// Every scalar may be text, too: `${env.NAME}` is.
fn kind(kind: &str) -> String {
    let expanded = r#"{ "type": "string", "pattern": "\\$\\{.*\\}" }"#;
    match kind {
        "true or false" => format!(r#""anyOf": [{{ "type": ["boolean", "null"] }}, {expanded}]"#),
        "number" => format!(
            r#""anyOf": [{{ "type": ["integer", "null"], "minimum": 0 }}, {expanded}, {{ "type": "string", "pattern": "^[0-9_]+$" }}]"#
        ),
        "size" => r#""type": ["string", "integer", "null"]"#.into(),
        "list of texts" | "list of regular expressions" | "list of URLs" => {
            r#""type": ["array", "null"], "items": { "type": ["string", "number", "boolean"] }"#
                .into()
        }
        "text or list of texts" => {
            r#""type": ["array", "string", "null"], "items": { "type": "string" }"#.into()
        }
        "list of numbers" => {
            r#""type": ["array", "null"], "items": { "type": ["number", "string"] }"#.into()
        }
        "list of rules" => r#""type": ["array", "null"], "items": { "type": "object" }"#.into(),
        "selector" => r#""type": "object", "minProperties": 1, "maxProperties": 2"#.into(),
        "header name or selector" => format!(
            r#""anyOf": [{{ "type": ["string", "null"] }}, {{ "type": "object", "minProperties": 1, "maxProperties": 1 }}, {expanded}]"#
        ),
        "condition" => r#""type": "object", "minProperties": 1, "maxProperties": 1"#.into(),
        "`true`, `false` or list of limits" => {
            let limits: Vec<String> = Limit::WORDS.iter().map(|w| quoted(w)).collect();
            format!(
                r#""anyOf": [{{ "type": ["boolean", "null"] }}, {{ "type": "array", "items": {{ "enum": [{}] }} }}, {expanded}]"#,
                limits.join(", ")
            )
        }
        "percentage" => format!(
            r#""anyOf": [{{ "type": ["string", "null"], "pattern": "^[0-9]+ *%$" }}, {expanded}]"#
        ),
        "`true`, `false` or percentage" => format!(
            r#""anyOf": [{{ "type": ["boolean", "null"] }}, {{ "type": "string", "pattern": "^[0-9.]+ *%$" }}, {expanded}]"#
        ),
        "`true`, `false`, `all`, `deprecated` or selection" => format!(
            r#""anyOf": [{{ "enum": [true, false, "all", "deprecated", null] }}, {{ "type": "object", "required": ["selective"], "additionalProperties": false, "properties": {{ "selective": {{ "type": "array", "items": {{ "type": "string" }} }} }} }}, {expanded}]"#
        ),
        words if words.contains("` or `") || words.contains("`, `") => {
            let words: Vec<String> = words.split('`').skip(1).step_by(2).map(quoted).collect();
            format!(
                r#""anyOf": [{{ "enum": [{}, null] }}, {expanded}]"#,
                words.join(", ")
            )
        }
        _ => r#""type": ["string", "number", "boolean", "null"]"#.into(),
    }
}

fn json_default(row: &OptionRow) -> String {
    match row.kind.as_str() {
        "true or false"
        | "number"
        | "list of numbers"
        | "`true`, `false` or list of limits"
        | "`true`, `false`, `all`, `deprecated` or selection" => row.default.clone(),
        "list of texts" | "text or list of texts" => {
            let inner = row.default.trim_matches(['[', ']']);
            let items: Vec<String> = inner.split(", ").map(quoted).collect();
            format!("[{}]", items.join(", "))
        }
        _ => quoted(&row.default),
    }
}

/// A text as a string of JSON.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Every option that has a default, with it, as YAML with the documentation above each.
pub fn defaults() -> String {
    let mut out = String::new();
    write_defaults(&tree(), 0, &mut out);
    out
}

fn write_defaults(place: &Place, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    for key in &place.keys {
        let below = &place.below[key];
        match &below.row {
            Some(row) if !row.default.is_empty() => {
                let default = match row.kind.as_str() {
                    "true or false"
                    | "number"
                    | "size"
                    | "duration"
                    | "share"
                    | "list of texts"
                    | "text or list of texts"
                    | "list of numbers"
                    | "`true`, `false` or list of limits"
                    | "`true`, `false`, `all`, `deprecated` or selection" => row.default.clone(),
                    _ => quoted(&row.default),
                };
                let _ = writeln!(out, "{indent}# {}\n{indent}{key}: {default}", row.doc);
            }
            Some(_) => {}
            None => {
                let mut inner = String::new();
                if !below.keys.iter().any(|k| k == "[]" || k == "<name>") {
                    write_defaults(below, depth + 1, &mut inner);
                }
                if !inner.is_empty() {
                    let _ = write!(out, "{indent}{key}:\n{inner}");
                }
            }
        }
    }
}
