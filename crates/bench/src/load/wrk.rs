//! wrk: closed-loop saturation, with a Lua script that makes each request.

use std::{collections::BTreeMap, path::Path};

use super::{Job, LoadResult, Outcome};
use crate::{
    Error, Result,
    model::{Authorization, Shape},
    process,
    units::Time,
};

/// Stands in the head of a request for the digits of its token.
const TOKEN: &str = "@token@@@";

/// Runs wrk.
pub fn run(path: &Path, job: &Job) -> Result<Outcome> {
    let script = super::write(job, "wrk.lua", script(job).as_bytes())?;
    let clients = match job.shape {
        Shape::Clients { clients, .. } => clients,
        _ => 1,
    };
    let threads = clients.min(job.cpus.len().max(1));
    let command = vec![
        path.display().to_string(),
        "--latency".into(),
        format!("-t{threads}"),
        format!("-c{clients}"),
        format!("-d{}s", job.shape.duration().as_secs().max(1)),
        "--timeout".into(),
        format!("{}s", job.timeout.as_secs().max(1)),
        "-s".into(),
        script.display().to_string(),
        job.request.url(),
    ];
    let folder = job.work.clone();
    let text = process::on_cpus(&job.cpus, move || {
        process::output(&command, &folder, &BTreeMap::new())
    })??;
    let result =
        read(&text).ok_or_else(|| Error::program("wrk", "its output is not what the lab knows"))?;
    let next = job.first + result.answered + result.failed;
    Ok(Outcome {
        result,
        next,
        ..Outcome::default()
    })
}

/// The script. The head of a request is put together once for each thread: wrk shares its CPU with the subgraphs, and what
/// a request costs here is missing there.
fn script(job: &Job) -> String {
    let token = match job.request.authorization() {
        Authorization::None => String::new(),
        Authorization::Constant => "  headers['authorization'] = 'Bearer t000000000'\n".into(),
        Authorization::Unique => format!("  headers['authorization'] = 'Bearer t{TOKEN}'\n"),
    };
    let method = job.request.method();
    let body = if method == "GET" {
        "nil".to_owned()
    } else {
        job.request.lua()
    };
    // All bodies have the same length, so the head holds for all.
    format!(
        "local thread_n = 0\nfunction setup(thread)\n  thread:set('id', thread_n)\n  thread_n = thread_n + 1\nend\n\
         local n = {first}\nlocal before, after, same\n\
         local function body() return {body} end\n\
         function init(args)\n  n = n + id * 100000000\n  \
         local headers = {{ ['content-type'] = 'application/json', accept = 'application/json' }}\n\
         {token}  local text = body()\n  same = wrk.format('{method}', '{path}', headers, text)\n  \
         local head = text and string.sub(same, 1, #same - #text) or same\n  \
         local from, to = string.find(head, '{TOKEN}', 1, true)\n  \
         before, after = head, ''\n  \
         if from then before, after = string.sub(head, 1, from - 1), string.sub(head, to + 1) end\nend\n\
         {request}",
        first = job.first,
        path = job.request.path(),
        request = match (job.request.authorization(), job.request.varies()) {
            (_, false) => "function request() return same end\n",
            (Authorization::Unique, true) => {
                "function request()\n  n = n + 1\n  \
                 return before .. string.format('%09d', n) .. after .. (body() or '')\nend\n"
            }
            (_, true) => {
                "function request()\n  n = n + 1\n  return before .. (body() or '')\nend\n"
            }
        },
    )
}

/// Reads its text.
pub fn read(text: &str) -> Option<LoadResult> {
    let mut latency = BTreeMap::new();
    let (mut answered, mut seconds, mut bad, mut socket) = (None, 0.0, 0u64, 0u64);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Latency", mean, _, max, _] => {
                latency.insert("mean".to_owned(), micros(mean)?);
                latency.insert("max".to_owned(), micros(max)?);
            }
            [share, value] if share.ends_with('%') => {
                let share = share.trim_end_matches('%').parse::<f64>().ok()?;
                latency.insert(format!("p{share}"), micros(value)?);
            }
            [n, "requests", "in", time, ..] => {
                answered = n.parse::<u64>().ok();
                seconds = micros(time.trim_end_matches(','))? / 1e6;
            }
            ["Non-2xx", "or", "3xx", "responses:", n] => bad = n.parse().ok()?,
            ["Socket", "errors:", rest @ ..] => {
                socket = rest
                    .iter()
                    .filter_map(|w| w.trim_end_matches(',').parse::<u64>().ok())
                    .sum();
            }
            _ => {}
        }
    }
    let mut failures = BTreeMap::new();
    for (kind, n) in [
        ("no status 2xx or 3xx", bad),
        ("socket errors and time-outs", socket),
    ] {
        if n > 0 {
            failures.insert(kind.to_owned(), n);
        }
    }
    Some(LoadResult {
        tool: "wrk".into(),
        seconds,
        answered: answered?.saturating_sub(bad),
        failed: failures.values().sum(),
        failures,
        latency,
        ..LoadResult::default()
    })
}

fn micros(text: &str) -> Option<f64> {
    Time::parse(text)
        .ok()
        .map(|time| time.0.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_output() {
        let text = "Running 2s test @ http://127.0.0.1:1/graphql\n  1 threads and 10 connections\n\
            \x20 Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     1.20ms  300.00us  15.00ms   90.00%\n\
            \x20   Req/Sec     8.00k     1.00k    9.00k    80.00%\n  Latency Distribution\n     50%    1.10ms\n     75%    1.30ms\n\
            \x20    90%    1.60ms\n     99%    4.00ms\n  16000 requests in 2.01s, 20.00MB read\n\
            \x20 Socket errors: connect 0, read 1, write 0, timeout 2\n  Non-2xx or 3xx responses: 5\nRequests/sec:   7960.20\n";
        let result = read(text).unwrap();
        assert_eq!((result.answered, result.failed), (15_995, 8));
        assert!((result.latency["p99"] - 4000.0).abs() < 1e-6);
        assert!((result.latency["mean"] - 1200.0).abs() < 1e-6);
        assert!((result.seconds - 2.01).abs() < 1e-9);
        assert!(read("").is_none());
    }
}
