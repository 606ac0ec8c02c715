//! CPU time, as ratios within one run: the machine is rarely alone, so every number is the minimum over rounds in which
//! all candidates take turns.

use std::{hint::black_box, path::Path, time::Duration};

use anyhow::{Context as _, Result};
use ogive_json::{Level, scan::validate};
use rustix::time::{ClockId, clock_gettime};

use crate::{
    graph::Graph,
    scenario::{respond, validate_and_copy},
    variant::Variant,
};

/// Rounds in which every candidate runs once.
const ROUNDS: usize = 40;

/// CPU time of this thread, as far as the kernel knows: what others do meanwhile does not count, their use of the caches
/// does.
fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// The time in which the JSON in a file is validated and copied: least and median of [`ROUNDS`], as two lines that begin
/// with their names, in milliseconds.
pub fn validate_and_copy_file(path: &Path) -> Result<String> {
    let body = std::fs::read(path).with_context(|| path.display().to_string())?;
    let mut copied = Vec::new();
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        let started = cpu();
        validate_and_copy(&body, &mut copied)?;
        took.push(cpu().saturating_sub(started).as_secs_f64() * 1e3);
    }
    took.sort_by(f64::total_cmp);
    Ok(format!(
        "plain_min {:.3}\nplain_median {:.3}\n",
        took[0],
        took[ROUNDS / 2]
    ))
}

/// Compares scanning and emitting eight megabytes with copying them. Gives a table.
pub fn big_response() -> Result<String> {
    let all = Graph::read("big-response", "all", "{}")?.prepare()?;
    let held = Graph::read("big-response", "held", "{}")?.prepare()?;
    let body = all.answers[0].1.clone();
    let mut variants = Vec::new();
    for (name, variant) in Variant::ALL {
        variants.push((name, variant.prepare()?));
    }
    let mut copy = vec![0u8; body.len()];
    let mut copied = Vec::new();
    let best = Level::current();
    let mut rows: Vec<(String, Duration)> = Vec::new();
    for round in 0..ROUNDS {
        let mut at = 0;
        let mut time = |name: String, then: &mut dyn FnMut() -> Result<()>| -> Result<()> {
            let started = cpu();
            then()?;
            let took = cpu().saturating_sub(started);
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
            time(format!("validate and copy, {level:?}"), &mut || {
                validate_and_copy(&body, &mut copied)
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
    let plain = format!("validate and copy, {best:?}");
    let plain = rows.iter().find(|(name, _)| *name == plain);
    let plain = plain.map_or(unit, |(_, took)| took.as_secs_f64());
    let mut out = format!("{} bytes\n", body.len());
    for (name, took) in rows {
        out.push_str(&format!(
            "{name:<26} {:>9.3} ms {:>7.2} x memcpy {:>6.2} x validate and copy\n",
            took.as_secs_f64() * 1e3,
            took.as_secs_f64() / unit,
            took.as_secs_f64() / plain
        ));
    }
    Ok(out)
}
