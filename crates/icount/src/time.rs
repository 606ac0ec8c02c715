//! Timing by the clock, as ratios within one run: the machine is rarely alone, so every number is the minimum over
//! rounds in which all candidates take turns.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::Result;
use ogive_json::{Level, scan::validate};

use crate::{graph::Graph, scenario::respond};

/// Rounds in which every candidate runs once.
const ROUNDS: usize = 40;

/// Compares scanning and emitting eight megabytes with copying them. Gives a table.
pub fn big_response() -> Result<String> {
    let all = Graph::read("big-response", "all", "{}")?.prepare()?;
    let held = Graph::read("big-response", "held", "{}")?.prepare()?;
    let body = all.answers[0].1.clone();
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
