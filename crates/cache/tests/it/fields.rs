//! Structured fields, compared with the npm package structured-headers.

use ogive_cache::structured::{Malformed, Value as Item, parse_dictionary, parse_list};
use ogive_testbase::{left_out, needs::ORACLE_IS_OFF};
use serde_json::{Value, json};

use crate::made::{file, record};

#[test]
fn fields_are_read_as_the_reference_reads_them() {
    let recorded = std::fs::read_to_string(file("fields.jsonl")).unwrap();
    assert!(judge_all(&recorded, 400) > 100);
}

#[test]
fn ten_thousand_more_fields_are_read_as_the_reference_reads_them() {
    let Some(made) = record("fields", "structured-headers") else {
        return left_out(ORACLE_IS_OFF);
    };
    judge_all(&made, 10_000);
}

/// Reads all fields; gives how many contain something.
fn judge_all(lines: &str, count: usize) -> usize {
    assert_eq!(lines.lines().count(), count);
    let mut read = 0;
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = line["text"].as_str().unwrap();
        let members = parse_dictionary(text).map(|members| {
            let members = members.iter();
            members
                .map(|(name, item)| json!([name, shown(item)]))
                .collect()
        });
        let items = parse_list(text).map(|items| items.iter().map(shown).collect());
        read += usize::from(members.is_ok() || items.is_ok());
        for (ours, theirs) in [
            (or_null(members), &line["dictionary"]),
            (or_null(items), &line["list"]),
        ] {
            // The package takes what follows a date for a part of it (RFC 9651, section 4.2.9: it ends behind its digits).
            let is_excused = theirs.is_null() && text.contains('@');
            assert!(
                ours == *theirs || is_excused,
                "{text:?}: {ours}, not {theirs}"
            );
        }
    }
    read
}

fn or_null(found: Result<Vec<Value>, Malformed>) -> Value {
    found.map_or(Value::Null, Value::Array)
}

fn shown(item: &Item) -> Value {
    match item {
        Item::Integer(number) => json!({ "number": number }),
        // As JavaScript writes it.
        Item::Decimal(number) if number.fract() == 0.0 => json!({ "number": *number as i64 }),
        Item::Decimal(number) => json!({ "number": number }),
        Item::String(text) => json!({ "string": text }),
        Item::Token(text) => json!({ "token": text }),
        Item::Boolean(is) => json!({ "boolean": is }),
        Item::Other => json!("other"),
    }
}
