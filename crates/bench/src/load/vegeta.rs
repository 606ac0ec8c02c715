//! vegeta: the fixed rates of seed 002. It is in no registry this lab can reach, so the user names the program.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use super::{Job, LoadResult, Outcome};
use crate::{Error, Result, model::Shape, process};

/// Runs vegeta.
pub fn run(path: &Path, job: &Job) -> Result<Outcome> {
    let rate = match job.shape {
        Shape::Rate { rate, .. } => rate,
        _ => 1.0,
    };
    let body = super::write(job, "body.json", &job.request.body(job.first))?;
    let token = job.request.token(job.first);
    let token = token.map_or(String::new(), |token| format!("authorization: {token}\n"));
    let attached = match job.request.method() {
        "GET" => String::new(),
        _ => format!("@{}\n", body.display()),
    };
    let targets = format!(
        "{} {}\ncontent-type: application/json\naccept: application/json\n{token}{attached}",
        job.request.method(),
        job.request.url()
    );
    let targets = super::write(job, "targets.txt", targets.as_bytes())?;
    let results = job.work.join("vegeta.bin");
    let program = path.display().to_string();
    let attack = [
        &program,
        "attack",
        &format!("-rate={}/s", rate.round() as u64),
        &format!("-duration={}ms", job.shape.duration().as_millis()),
        &format!("-timeout={}ms", job.timeout.as_millis()),
        &format!("-keepalive={}", job.keep_alive),
        &format!("-targets={}", targets.display()),
        &format!("-output={}", results.display()),
    ]
    .map(str::to_owned)
    .to_vec();
    let report = [
        &program,
        "report",
        "-type=json",
        &results.display().to_string(),
    ]
    .map(str::to_owned)
    .to_vec();
    let folder = job.work.clone();
    let text = process::on_cpus(&job.cpus, move || {
        process::output(&attack, &folder, &BTreeMap::new())?;
        process::output(&report, &folder, &BTreeMap::new())
    })??;
    let result = read(&text)
        .ok_or_else(|| Error::program("vegeta", "its report is not what the lab knows"))?;
    let next = job.first + result.answered + result.failed;
    Ok(Outcome {
        result,
        next,
        ..Outcome::default()
    })
}

/// Reads its JSON report.
pub fn read(text: &str) -> Option<LoadResult> {
    let data: Value = serde_json::from_str(text).ok()?;
    let mut latency = BTreeMap::new();
    // vegeta speaks of nanoseconds.
    for (name, key) in [
        ("mean", "mean"),
        ("min", "min"),
        ("max", "max"),
        ("p50", "50th"),
        ("p90", "90th"),
        ("p95", "95th"),
        ("p99", "99th"),
    ] {
        if let Some(nanos) = data["latencies"][key].as_f64() {
            latency.insert(name.to_owned(), nanos / 1e3);
        }
    }
    let mut failures = BTreeMap::new();
    let mut answered = 0;
    for (status, n) in data["status_codes"].as_object()? {
        let n = n.as_u64().unwrap_or(0);
        match status.as_str() {
            "200" => answered = n,
            "0" => drop(failures.insert("no answer".to_owned(), n)),
            status => drop(failures.insert(format!("status {status}"), n)),
        }
    }
    Some(LoadResult {
        tool: "vegeta".into(),
        seconds: data["duration"].as_f64()? / 1e9,
        answered,
        failed: failures.values().sum(),
        failures,
        bytes: data["bytes_in"]["total"].as_u64().unwrap_or(0),
        latency,
        ..LoadResult::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_report() {
        let text = r#"{"latencies":{"total":1,"mean":3000000,"50th":2900000,"99th":9000000,"max":12000000,"min":1000000},
            "bytes_in":{"total":500,"mean":1},"duration":2000000000,"requests":20,"status_codes":{"200":18,"0":1,"503":1}}"#;
        let result = read(text).unwrap();
        assert_eq!(
            (result.answered, result.failed, result.seconds),
            (18, 2, 2.0)
        );
        assert_eq!(result.latency["p99"], 9000.0);
        assert!(read("null").is_none());
    }
}
