//! oha: saturation, and fixed rates with its own correction for coordinated omission.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use super::{Job, LoadResult, Outcome, tally::PERCENTILES};
use crate::{Error, Result, model::Shape, process};

/// Runs oha.
pub fn run(path: &Path, job: &Job) -> Result<Outcome> {
    let command = command(path, job)?;
    let folder = job.work.clone();
    let text = process::on_cpus(&job.cpus, move || {
        process::output(&command, &folder, &BTreeMap::new())
    })??;
    let result =
        read(&text).ok_or_else(|| Error::program("oha", "its output is not what the lab knows"))?;
    let next = job.first + result.answered + result.failed;
    Ok(Outcome {
        result,
        next,
        ..Outcome::default()
    })
}

fn command(path: &Path, job: &Job) -> Result<Vec<String>> {
    let body = super::write(job, "body.json", &job.request.body(job.first))?;
    let mut command: Vec<String> = [
        path.display().to_string().as_str(),
        "--no-tui",
        "--output-format",
        "json",
        "-m",
        job.request.method(),
        "-H",
        "content-type: application/json",
        "-H",
        "accept: application/json",
        // Nobody else asks for compressed answers.
        "--disable-compression",
        "-z",
        &format!("{}ms", job.shape.duration().as_millis()),
        "-t",
        &format!("{}ms", job.timeout.as_millis()),
    ]
    .map(str::to_owned)
    .to_vec();
    let mut add = |more: &[&str]| command.extend(more.iter().map(|s| (*s).to_owned()));
    if let Some(token) = job.request.token(job.first) {
        add(&["-H", &format!("authorization: {token}")]);
    }
    if !job.keep_alive {
        add(&["--disable-keepalive"]);
    }
    match job.shape {
        Shape::Rate { rate, .. } => add(&[
            "-c",
            &job.connections_max.to_string(),
            "-q",
            &(rate.round() as u64).to_string(),
            "--latency-correction",
        ]),
        Shape::Clients { clients, .. } => add(&["-c", &clients.to_string()]),
        _ => {}
    }
    if job.request.method() == "POST" {
        add(&["-D", &body.display().to_string()]);
    }
    command.push(job.request.url());
    Ok(command)
}

/// Reads its JSON.
pub fn read(text: &str) -> Option<LoadResult> {
    let data: Value = serde_json::from_str(text).ok()?;
    let summary = &data["summary"];
    let mut latency = BTreeMap::new();
    // oha speaks of seconds.
    let mut put = |name: &str, value: &Value| {
        if let Some(seconds) = value.as_f64() {
            latency.insert(name.to_owned(), seconds * 1e6);
        }
    };
    put("mean", &summary["average"]);
    put("min", &summary["fastest"]);
    put("max", &summary["slowest"]);
    for (name, _) in PERCENTILES {
        put(name, &data["latencyPercentiles"][name]);
    }
    let statuses = data["statusCodeDistribution"].as_object()?;
    let mut failures = BTreeMap::new();
    let mut answered = 0;
    for (status, n) in statuses {
        let n = n.as_u64().unwrap_or(0);
        if status == "200" {
            answered = n;
        } else {
            failures.insert(format!("status {status}"), n);
        }
    }
    for (kind, n) in data["errorDistribution"].as_object().into_iter().flatten() {
        // Requests that were under way when the time was up are no failures.
        if !kind.contains("deadline") {
            failures.insert(kind.clone(), n.as_u64().unwrap_or(0));
        }
    }
    Some(LoadResult {
        tool: "oha".into(),
        seconds: summary["total"].as_f64()?,
        answered,
        failed: failures.values().sum(),
        failures,
        bytes: summary["totalData"].as_u64().unwrap_or(0),
        latency,
        ..LoadResult::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_output() {
        let text = r#"{"summary":{"successRate":1.0,"total":2.0,"slowest":0.02,"fastest":0.001,"average":0.002,
            "requestsPerSec":500,"totalData":4096},"latencyPercentiles":{"p50":0.0019,"p99":0.01,"p99.9":0.015},
            "statusCodeDistribution":{"200":998,"503":2},"errorDistribution":{"aborted due to deadline":3}}"#;
        let result = read(text).unwrap();
        assert_eq!((result.answered, result.failed), (998, 2));
        assert!((result.latency["p50"] - 1900.0).abs() < 1e-6);
        assert_eq!(result.failures["status 503"], 2);
        assert!(read("[]").is_none());
    }
}
