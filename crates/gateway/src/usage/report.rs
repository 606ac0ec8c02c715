//! How usage is told: lines of a file, Hive's usage reporting (version 2), or log records of OpenTelemetry.

use std::{
    fs,
    io::{self, Write},
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use ogive_config::{UsageOtlpOptions, without_secrets};
use ogive_telemetry::otlp::{Resource, UsageRecord};
use ogive_transport::{Http2, Source};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use super::{BUCKETS, Counts, HiveOptions, Row, Usage, UsageReport};
use crate::{background::export::Collector, gateway::Gateway};

/// How often it is looked whether usage is counted at all.
const IDLE: Duration = Duration::from_secs(5);

/// Tells what was counted until `stop` is told, and then what is left.
pub(crate) async fn run(gateway: Arc<Gateway>, resource: Resource, stop: Arc<Notify>) {
    let mut failing = false;
    let mut collector = UsageCollector {
        resource,
        made: None,
    };
    loop {
        let interval = gateway.usage().map_or(IDLE, |usage| usage.options.interval);
        let is_over = tokio::time::timeout(interval, stop.notified())
            .await
            .is_ok();
        if let Some(usage) = gateway.usage() {
            let told = tell(&usage, &mut collector).await;
            match told {
                Ok(()) if std::mem::take(&mut failing) => {
                    tracing::info!("usage is written down again");
                }
                Ok(()) => {}
                Err(why) if !std::mem::replace(&mut failing, true) => {
                    tracing::warn!("usage cannot be written down: {why}");
                }
                Err(_) => {}
            }
        }
        if is_over {
            return;
        }
    }
}

async fn tell(usage: &Usage, collector: &mut UsageCollector) -> Result<(), String> {
    let period = usage.take();
    if period.rows.is_empty() && period.others.requests == 0 {
        return Ok(());
    }
    let mut failure = Ok(());
    if let Some((path, max)) = &usage.options.file {
        let text = lines(&period, SystemTime::now());
        let written = append(Path::new(path), *max, &text);
        failure = written.map_err(|error| format!("`{path}`: {error}"));
    }
    if let Some(hive) = &usage.options.hive {
        failure = failure.and(send(hive, &period).await);
    }
    if let Some(otlp) = &usage.options.otlp {
        let told = collector.tell(otlp, &period).await;
        failure = failure.and(told);
    }
    failure
}

/// A collector, once it is told something.
struct UsageCollector {
    /// Who reports.
    resource: Resource,
    /// The collector, and what it was made for.
    made: Option<(UsageOtlpOptions, Collector)>,
}

impl UsageCollector {
    /// Tells it; it says itself whether it is reached.
    async fn tell(
        &mut self,
        options: &UsageOtlpOptions,
        period: &UsageReport,
    ) -> Result<(), String> {
        let made = self.made.take().filter(|(made, _)| made == options);
        let (_, collector) = match made {
            Some(made) => self.made.insert(made),
            None => {
                let collector = Collector::of_usage(options, self.resource.clone())?;
                self.made.insert((options.clone(), collector))
            }
        };
        collector.usage(&records(period), period.since).await;
        Ok(())
    }
}

fn records(period: &UsageReport) -> Vec<UsageRecord> {
    let milliseconds = |nanoseconds: u64| nanoseconds as f64 / 1e6;
    let counted = |counts: &Counts| UsageRecord {
        requests: (counts.requests, counts.failed),
        milliseconds: (
            milliseconds(counts.nanoseconds / counts.requests.max(1)),
            milliseconds(counts.longest),
        ),
        cost: counts.cost,
        ..UsageRecord::default()
    };
    let rows = period.rows.iter().map(|row| UsageRecord {
        name: row.name.to_string(),
        document: row.text.to_string(),
        fields: row.fields.iter().map(|field| field.to_string()).collect(),
        client: (row.client.name.to_string(), row.client.version.to_string()),
        ..counted(&row.counts)
    });
    let others = (period.others.requests > 0).then(|| counted(&period.others));
    rows.chain(others).collect()
}

/// One JSON object per line.
pub(crate) fn lines(period: &UsageReport, now: SystemTime) -> String {
    let (from, to) = (seconds(period.since), seconds(now));
    let mut out = String::new();
    let mut add = |mut row: Map<String, Value>, counts: &Counts| {
        row.insert("requests".into(), counts.requests.into());
        row.insert("errors".into(), counts.failed.into());
        let milliseconds = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        let times = json!({
            "mean": milliseconds(counts.nanoseconds / counts.requests.max(1)),
            "max": milliseconds(counts.longest),
        });
        row.insert("duration_ms".into(), times);
        row.insert("cost".into(), counts.cost.into());
        row.insert("from".into(), from.into());
        row.insert("to".into(), to.into());
        out.push_str(&Value::Object(row).to_string());
        out.push('\n');
    };
    for row in &period.rows {
        let client = json!({ "name": row.client.name, "version": row.client.version });
        let head = [
            ("name".to_owned(), Value::from(&*row.name)),
            ("client".to_owned(), client),
            ("operation".to_owned(), Value::from(&*row.text)),
        ];
        add(head.into_iter().collect(), &row.counts);
    }
    if period.others.requests > 0 {
        add(Map::new(), &period.others);
    }
    out
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Appends to a file, which is begun anew when it is large.
fn append(path: &Path, max: u64, text: &str) -> io::Result<()> {
    let size = fs::metadata(path).map_or(0, |file| file.len());
    if size > 0 && size + text.len() as u64 > max {
        let mut before = path.as_os_str().to_owned();
        before.push(".1");
        fs::rename(path, before)?;
    }
    // Documents and clients are for the operator.
    let mut file = ogive_files::append(path, 0o600)?;
    file.write_all(text.as_bytes())
}

async fn send(hive: &HiveOptions, period: &UsageReport) -> Result<(), String> {
    let at = |why: &dyn std::fmt::Display| format!("`{}`: {why}", without_secrets(&hive.endpoint));
    let mut source = Source::new(&hive.endpoint, Http2::Disable).map_err(|why| at(&why))?;
    source.timeout = hive.timeout;
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    let version = HeaderName::from_static("x-usage-api-version");
    headers.insert(version, HeaderValue::from_static("2"));
    let token = HeaderValue::from_str(&format!("Bearer {}", hive.token.0));
    let mut token = token.map_err(|_| at(&"the token cannot be sent"))?;
    token.set_sensitive(true);
    headers.insert(header::AUTHORIZATION, token);
    let body = hive_report(period, hive.executions_max, SystemTime::now());
    let sent = source.send(Method::POST, headers, Bytes::from(body.to_string()));
    let answer = sent.await.map_err(|why| at(&why))?;
    if (200..300).contains(&answer.status) {
        Ok(())
    } else {
        Err(at(&format!("it answers {}", answer.status)))
    }
}

/// What Hive is told: each operation once, and each execution of it. Of more than `max` executions a part is told, of each
/// row as large a one.
fn hive_report(period: &UsageReport, max: u64, now: SystemTime) -> Value {
    let all: u64 = period.rows.iter().map(|row| row.counts.requests).sum();
    let (mut map, mut executions) = (Map::new(), Vec::new());
    let timestamp = seconds(now) * 1_000;
    for row in &period.rows {
        let key = key(row);
        map.entry(&key).or_insert_with(|| {
            let name = Some(&*row.name).filter(|name| !name.is_empty());
            json!({ "operationName": name, "operation": &*row.text, "fields": &*row.fields })
        });
        let counts = &row.counts;
        // As large a part of each.
        let told = counts
            .requests
            .min((counts.requests * max).div_ceil(all.max(1)));
        let failed = (counts.failed * told).div_ceil(counts.requests.max(1));
        for number in 0..told {
            let is_ok = number >= failed;
            let nanoseconds = duration(counts, number, told);
            executions.push(json!({
                "operationMapKey": key,
                "timestamp": timestamp,
                "execution": {
                    "ok": is_ok,
                    "duration": nanoseconds,
                    "errorsTotal": u8::from(!is_ok),
                },
                "metadata": { "client": { "name": row.client.name, "version": row.client.version } },
            }));
        }
    }
    json!({ "size": map.len(), "map": map, "operations": executions })
}

fn key(row: &Row) -> String {
    let digest = Sha256::digest(format!("{}\n{}", row.name, row.text));
    let bytes = digest.iter().take(16);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// How long the execution took that is the `number`th of so many, the fastest first: what the middle of its bucket says.
fn duration(counts: &Counts, number: u64, of: u64) -> u64 {
    let wanted = (number * counts.requests) / of.max(1);
    let mut before = 0;
    for (bucket, count) in counts.durations.iter().enumerate().take(BUCKETS) {
        before += u64::from(*count);
        if before > wanted {
            return 1_500 << bucket;
        }
    }
    counts.longest
}
