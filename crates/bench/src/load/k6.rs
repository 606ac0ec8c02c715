//! k6, the generator of seeds 000, 003 and 004.
//!
//! The script only sends and counts: bodies are discarded unread, because touching an answer of 88 KB costs k6 more
//! CPU than most gateways need to make it. The lab checks answers itself, at a low rate beside the load.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};

use super::{Job, LoadResult, Outcome, tally::PERCENTILES};
use crate::{
    Error, Result,
    model::{Authorization, Shape},
    process,
};

/// What came due while all clients of k6 waited for answers.
const NEVER_SENT: &str = "never sent";

/// Runs k6.
pub fn run(path: &Path, job: &Job) -> Result<Outcome> {
    let script = super::write(job, "k6.js", script(job).as_bytes())?;
    let summary = job.work.join("k6-summary.json");
    let command = vec![
        path.display().to_string(),
        "run".into(),
        "--quiet".into(),
        "--no-usage-report".into(),
        "--env".into(),
        format!("SUMMARY={}", summary.display()),
        script.display().to_string(),
    ];
    let folder = job.work.clone();
    process::on_cpus(&job.cpus, move || {
        process::output(&command, &folder, &BTreeMap::new())
    })??;
    let text = std::fs::read_to_string(&summary).map_err(Error::file(&summary))?;
    let result = read(&text, job.shape.duration().as_secs_f64())
        .ok_or_else(|| Error::program("k6", "its summary is not what the lab knows"))?;
    let never = result.failures.get(NEVER_SENT).copied().unwrap_or(0);
    let next = job.first + result.answered + result.failed - never;
    Ok(Outcome {
        result,
        next,
        ..Outcome::default()
    })
}

/// The script.
pub fn script(job: &Job) -> String {
    let timeout = format!("{}ms", job.timeout.as_millis());
    let seconds = |d: std::time::Duration| format!("{}ms", d.as_millis());
    let (scenario, pause) = match &job.shape {
        Shape::Clients {
            clients,
            duration,
            pause,
        } => (
            json!({"executor": "constant-vus", "vus": clients, "duration": seconds(duration.0), "gracefulStop": "3s"}),
            pause.0,
        ),
        Shape::Rate { rate, duration } => (
            json!({"executor": "constant-arrival-rate", "rate": rate.round() as u64, "timeUnit": "1s",
                   "duration": seconds(duration.0), "gracefulStop": "3s",
                   // All of them from the start: k6 drops what comes due while it makes more.
                   "preAllocatedVUs": job.connections_max, "maxVUs": job.connections_max}),
            std::time::Duration::ZERO,
        ),
        Shape::Ramp {
            start,
            stages,
            pause,
        } => {
            let stages: Vec<Value> = stages
                .iter()
                .map(|stage| json!({"duration": seconds(stage.over.0), "target": stage.to}))
                .collect();
            (
                json!({"executor": "ramping-vus", "startVUs": start, "stages": stages, "gracefulStop": "3s"}),
                pause.0,
            )
        }
        // Loads that no tool makes.
        Shape::Rates { .. }
        | Shape::Starts { .. }
        | Shape::Events { .. }
        | Shape::Burst { .. }
        | Shape::Idle { .. }
        | Shape::Parts { .. } => (json!({}), std::time::Duration::ZERO),
    };
    let options = json!({
        "scenarios": { "load": scenario },
        "discardResponseBodies": true,
        "noConnectionReuse": !job.keep_alive,
        "summaryTrendStats": ["min", "avg", "med", "p(75)", "p(90)", "p(95)", "p(99)", "p(99.9)", "p(99.99)", "max", "count"],
    });
    let token = match job.request.authorization() {
        Authorization::None => "null".to_owned(),
        Authorization::Constant => "'Bearer t' + pad(0, 9)".to_owned(),
        Authorization::Unique => "'Bearer t' + pad(n, 9)".to_owned(),
    };
    let pause = match pause.as_secs_f64() {
        0.0 => String::new(),
        seconds => format!("  sleep({seconds});\n"),
    };
    let send = match job.request.method() {
        "GET" => "http.get(url, { headers, timeout })".to_owned(),
        _ => format!(
            "http.post(url, {}, {{ headers, timeout }})",
            job.request.script()
        ),
    };
    format!(
        "import http from 'k6/http';\nimport {{ sleep }} from 'k6';\nimport exec from 'k6/execution';\n\
         import {{ Counter }} from 'k6/metrics';\n\n\
         export const options = {options:#};\n\
         const url = {url};\nconst timeout = '{timeout}';\nconst first = {first};\nconst answered = new Counter('answered');\n\
         const pad = (n, width) => String(n).padStart(width, '0').slice(-width);\n\
         const draw = (low, high) => low + Math.floor(Math.random() * (high - low + 1));\n\n\
         export default function () {{\n  const n = first + exec.scenario.iterationInTest;\n  const token = {token};\n  \
         const headers = {{ 'content-type': 'application/json', accept: 'application/json' }};\n  \
         if (token) headers.authorization = token;\n  const response = {send};\n  \
         if (response.status === 200) answered.add(1);\n{pause}}}\n\n\
         export function handleSummary(data) {{\n  return {{ [__ENV.SUMMARY]: JSON.stringify(data) }};\n}}\n",
        url = Value::String(job.request.url()),
        first = job.first,
    )
}

/// Reads the summary.
pub fn read(text: &str, seconds: f64) -> Option<LoadResult> {
    let data: Value = serde_json::from_str(text).ok()?;
    let value = |metric: &str, name: &str| data["metrics"][metric]["values"][name].as_f64();
    let requests = value("http_reqs", "count")? as u64;
    let answered = value("answered", "count").unwrap_or(0.0) as u64;
    let dropped = value("dropped_iterations", "count").unwrap_or(0.0) as u64;
    let mut latency = BTreeMap::new();
    // k6 speaks of milliseconds.
    let mut put = |name: &str, metric: &str| {
        if let Some(ms) = value("http_req_duration", metric) {
            latency.insert(name.to_owned(), ms * 1e3);
        }
    };
    put("min", "min");
    put("mean", "avg");
    put("max", "max");
    for (name, _) in PERCENTILES {
        match name {
            "p50" => put(name, "med"),
            _ => put(name, &format!("p({})", &name[1..])),
        }
    }
    let mut failures = BTreeMap::new();
    for (kind, n) in [
        ("no status 200", requests.saturating_sub(answered)),
        (NEVER_SENT, dropped),
    ] {
        if n > 0 {
            failures.insert(kind.to_owned(), n);
        }
    }
    Some(LoadResult {
        tool: "k6".into(),
        seconds,
        answered,
        failed: failures.values().sum(),
        failures,
        bytes: value("data_received", "count").unwrap_or(0.0) as u64,
        latency,
        ..LoadResult::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_summary() {
        let text = r#"{"metrics":{
            "http_reqs":{"type":"counter","values":{"count":120,"rate":60.1}},
            "answered":{"type":"counter","values":{"count":118,"rate":59}},
            "dropped_iterations":{"values":{"count":5}},
            "data_received":{"values":{"count":1000}},
            "http_req_duration":{"type":"trend","values":{"min":1.5,"avg":2,"med":1.9,"p(95)":3,"p(99.9)":8,"max":9}}}}"#;
        let result = read(text, 2.0).unwrap();
        assert_eq!((result.answered, result.failed), (118, 7));
        assert_eq!(result.latency["p50"], 1900.0);
        assert_eq!(result.latency["p99.9"], 8000.0);
        assert_eq!(result.throughput(), 59.0);
        assert!(read("{}", 1.0).is_none());
    }
}
