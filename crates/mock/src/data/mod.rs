//! Data files: rows per type, relations by reference, and rules for fields.
//!
//! One file may serve every subgraph of a graph: each takes the fields its SDL has. The format is documented for
//! users in `docs/mock.md`.
//!
//! Reading order: this file (the format and the tables), `rule` and `expr` (computed values), `resolve` (fields
//! and entities), `reference` (from keys to rows and back), `subject` (names on an object).

pub(crate) mod expr;
mod reference;
mod resolve;
pub(crate) mod rule;
mod subject;

pub(crate) use resolve::COUNT_ARGUMENTS;

use ogive_base::FastMap;
use serde_json::{Map, Value};

use crate::yaml;
use expr::text_of;
use rule::Rule;

/// A data file.
#[derive(Clone, Debug, Default)]
pub struct Data {
    tables: FastMap<String, Table>,
    /// Rules by type and field.
    rules: FastMap<String, FastMap<String, Rule>>,
    /// The field a plain reference names, where it is not the type's first key.
    keys: FastMap<String, String>,
    /// Types whose entities exist even without a row.
    open: Vec<String>,
}

/// The rows of one type.
#[derive(Clone, Debug, Default)]
struct Table {
    rows: Vec<Map<String, Value>>,
    /// Rows by field and spelled value, in row order. Lists are indexed by their items.
    index: FastMap<String, FastMap<String, Vec<u32>>>,
}

/// A data file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError {
    /// Where in the file, as a path of keys; empty for syntax errors.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for DataError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.place.is_empty() {
            write!(f, "{}", self.message)
        } else {
            write!(f, "{}: {}", self.place, self.message)
        }
    }
}

impl std::error::Error for DataError {}

impl Data {
    /// Reads a YAML or JSON text.
    pub fn parse(text: &str) -> Result<Data, DataError> {
        let value = yaml::read(text).map_err(|e| error("", e.to_string()))?;
        Data::from_json(value)
    }

    /// Reads a data file from its JSON value.
    pub fn from_json(value: Value) -> Result<Data, DataError> {
        let mut data = Data::default();
        let Value::Object(file) = value else {
            return Err(error(
                "",
                "expected a mapping with \"types\" and \"fields\"",
            ));
        };
        for (section, value) in file {
            let Some(entries) = into_map(value) else {
                return Err(error(&section, "expected a mapping"));
            };
            match section.as_str() {
                "types" => {
                    for (ty, rows) in entries {
                        let table = table(&ty, rows)?;
                        data.tables.insert(ty, table);
                    }
                }
                "fields" => {
                    for (coordinate, value) in entries {
                        let place = format!("fields.{coordinate}");
                        let Some((ty, field)) = coordinate.split_once('.') else {
                            return Err(error(&place, "expected a coordinate \"Type.field\""));
                        };
                        let rule = Rule::parse(&value).map_err(|m| error(&place, m))?;
                        data.rules
                            .entry(ty.to_string())
                            .or_default()
                            .insert(field.to_string(), rule);
                    }
                }
                "keys" => {
                    for (ty, field) in entries {
                        data.keys.insert(ty, text_of(&field));
                    }
                }
                "open" => data.open.extend(entries.into_iter().map(|(ty, _)| ty)),
                _ => {
                    return Err(error(
                        &section,
                        "unknown section; known are types, fields, keys, open",
                    ));
                }
            }
        }
        Ok(data)
    }

    /// Adds a row of a type.
    pub fn insert(&mut self, ty: &str, row: Map<String, Value>) {
        self.tables.entry(ty.to_string()).or_default().push(row);
    }

    /// Sets the rule of a field, as in the `fields` section.
    pub fn set_field(&mut self, ty: &str, field: &str, rule: &Value) -> Result<(), DataError> {
        let rule =
            Rule::parse(rule).map_err(|message| error(&format!("fields.{ty}.{field}"), message))?;
        self.rules
            .entry(ty.to_string())
            .or_default()
            .insert(field.to_string(), rule);
        Ok(())
    }

    /// The types with rows or rules that `known` does not know, sorted: probably misspelt.
    pub fn unknown_types(&self, known: impl Fn(&str) -> bool) -> Vec<String> {
        let mut names: Vec<String> = self
            .tables
            .keys()
            .chain(self.rules.keys())
            .filter(|name| !known(name))
            .cloned()
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

/// `open` may be a list; the other sections are mappings.
fn into_map(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        Value::Null => Some(Map::new()),
        Value::Array(items) => items
            .into_iter()
            .map(|item| Some((item.as_str()?.to_string(), Value::Null)))
            .collect(),
        _ => None,
    }
}

fn table(ty: &str, rows: Value) -> Result<Table, DataError> {
    let rows = match rows {
        Value::Array(rows) => rows,
        // One object, as for the root types.
        row @ Value::Object(_) => vec![row],
        Value::Null => Vec::new(),
        _ => return Err(error(&format!("types.{ty}"), "expected a list of rows")),
    };
    let mut table = Table::default();
    for (i, row) in rows.into_iter().enumerate() {
        let Value::Object(row) = row else {
            let place = format!("types.{ty}[{i}]");
            return Err(error(
                &place,
                "expected a row: a mapping of fields to values",
            ));
        };
        table.push(row);
    }
    Ok(table)
}

impl Table {
    fn push(&mut self, row: Map<String, Value>) {
        let id = self.rows.len() as u32;
        for (field, value) in &row {
            let index = self.index.entry(field.clone()).or_default();
            let mut add = |value: &Value| {
                if let Some(text) = spelled(value) {
                    let ids: &mut Vec<u32> = index.entry(text).or_default();
                    if ids.last() != Some(&id) {
                        ids.push(id);
                    }
                }
            };
            match value {
                Value::Array(items) => items.iter().for_each(add),
                value => add(value),
            }
        }
        self.rows.push(row);
    }
    fn find(&self, field: &str, text: &str) -> &[u32] {
        self.index
            .get(field)
            .and_then(|by_text| by_text.get(text))
            .map_or(&[], Vec::as_slice)
    }
}

/// How a scalar or reference is spelled in the index.
fn spelled(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Array(_) => None,
        Value::Object(map) => map.get("$ref").and_then(spelled),
        scalar => Some(text_of(scalar)),
    }
}

fn error(place: &str, message: impl Into<String>) -> DataError {
    DataError {
        place: place.to_string(),
        message: message.into(),
    }
}
