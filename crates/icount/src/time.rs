//! Timing by the clock, as ratios within one run: the machine is rarely alone, so every number is the minimum over
//! rounds in which all candidates take turns.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::Result;
use bytes::Bytes;
use ogive_json::{Level, scan::validate};
use serde_json::Value;

use crate::{graph::Graph, scenario::respond};

/// Rounds in which every candidate runs once.
const ROUNDS: usize = 40;

/// The same value with the members of every object the other way round.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(members) => {
            let members = members.iter().rev();
            Value::Object(members.map(|(k, v)| (k.clone(), reversed(v))).collect())
        }
        scalar => scalar.clone(),
    }
}

/// The same text with an escape in every string that has an `e`.
fn escaped(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    let strings = text.split('"').enumerate();
    let parts: Vec<String> = strings
        .map(|(at, part)| {
            // Every other part is inside quotes; the generated texts have none in them.
            if at % 2 == 1 && part.len() > 7 && !part.contains('\\') {
                part.replacen('e', "\\u0065", 1)
            } else {
                part.to_owned()
            }
        })
        .collect();
    parts.join("\"").into_bytes()
}

/// Compares scanning and emitting eight megabytes with copying them. Gives a table.
pub fn big_response() -> Result<String> {
    let all = Graph::read("big-response", "all", "{}")?.prepare()?;
    let held = Graph::read("big-response", "held", "{}")?.prepare()?;
    let body = all.answers[0].1.clone();
    let value: Value = serde_json::from_slice(&body)?;
    let mut variants = Vec::new();
    for (name, text) in [
        ("pretty-printed", serde_json::to_vec_pretty(&value)?),
        ("members reversed", serde_json::to_vec(&reversed(&value))?),
        ("strings escaped", escaped(&body)),
    ] {
        let mut variant = Graph::read("big-response", "all", "{}")?.prepare()?;
        variant.answers[0].1 = Bytes::from(text);
        variants.push((name, variant));
    }
    let mut copy = vec![0u8; body.len()];
    let best = Level::current();
    let mut rows: Vec<(String, Duration)> = Vec::new();
    for round in 0..ROUNDS {
        let mut at = 0;
        let mut time = |name: String, then: &mut dyn FnMut() -> Result<()>| -> Result<()> {
            let started = Instant::now();
            then()?;
            let took = started.elapsed();
            if round == 0 {
                rows.push((name, took));
            } else {
                rows[at].1 = rows[at].1.min(took);
            }
            at += 1;
            Ok(())
        };
        time("memcpy".to_owned(), &mut || {
            copy.copy_from_slice(black_box(&body));
            black_box(&mut copy);
            Ok(())
        })?;
        for level in Level::available() {
            level.force();
            time(format!("validate, {level:?}"), &mut || {
                Ok(validate(black_box(&body))?)
            })?;
            time(format!("execute, {level:?}"), &mut || {
                black_box(respond(&all)?);
                Ok(())
            })?;
        }
        best.force();
        time("execute with a join".to_owned(), &mut || {
            black_box(respond(&held)?);
            Ok(())
        })?;
        for (name, variant) in &variants {
            time((*name).to_owned(), &mut || {
                black_box(respond(variant)?);
                Ok(())
            })?;
        }
        time("execute into one buffer".to_owned(), &mut || {
            black_box(held.run()?.body.into_bytes());
            Ok(())
        })?;
    }
    let unit = rows[0].1.as_secs_f64();
    let mut out = format!("{} bytes\n", body.len());
    for (name, took) in rows {
        out.push_str(&format!(
            "{name:<26} {:>9.3} ms {:>7.2} x memcpy\n",
            took.as_secs_f64() * 1e3,
            took.as_secs_f64() / unit
        ));
    }
    Ok(out)
}
