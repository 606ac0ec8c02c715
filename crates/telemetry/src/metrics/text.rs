//! Prometheus' text format, version 0.0.4: what `/metrics` answers.
//!
//! Names are those of OpenTelemetry with `_` for `.`, the unit behind them and `_total` behind counters.

use std::fmt::Write;

use super::{Family, Histogram, Value};
use crate::names::{Kind, Metric};

/// The media type.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text.
pub fn write(families: &[Family]) -> String {
    let mut out = String::with_capacity(16 << 10);
    for family in families {
        let name = prometheus_name(family.metric);
        let kind = match family.metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(out, "# HELP {name} {}", family.metric.doc);
        let _ = writeln!(out, "# TYPE {name} {kind}");
        for series in &family.series {
            let labels = labels(&series.labels);
            match &series.value {
                Value::Counter(count) => {
                    let _ = writeln!(out, "{name}{} {count}", braced(&labels));
                }
                Value::Gauge(value) => {
                    let _ = writeln!(out, "{name}{} {value}", braced(&labels));
                }
                Value::Histogram(histogram) => write_histogram(&name, &labels, histogram, &mut out),
            }
        }
    }
    out
}

/// The name in this format.
pub fn prometheus_name(metric: &Metric) -> String {
    let mut name = metric.name.replace('.', "_");
    match metric.unit {
        "s" => name.push_str("_seconds"),
        "By" => name.push_str("_bytes"),
        _ => {}
    }
    if metric.kind == Kind::Counter {
        name.push_str("_total");
    }
    name
}

fn write_histogram(name: &str, labels: &str, histogram: &Histogram, out: &mut String) {
    let comma = if labels.is_empty() { "" } else { "," };
    let mut seen = 0;
    for (bound, count) in histogram.bounds.iter().zip(&histogram.buckets) {
        seen += count;
        let bound = *bound as f64 / 1e9;
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {seen}");
    }
    let count = histogram.count();
    let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
    let sum = histogram.sum_ns as f64 / 1e9;
    let _ = writeln!(out, "{name}_sum{} {sum}", braced(labels));
    let _ = writeln!(out, "{name}_count{} {count}", braced(labels));
}

fn braced(labels: &str) -> String {
    match labels {
        "" => String::new(),
        labels => format!("{{{labels}}}"),
    }
}

fn labels(labels: &[(&'static str, String)]) -> String {
    let mut out = String::new();
    for (name, value) in labels {
        if !out.is_empty() {
            out.push(',');
        }
        let _ = write!(out, "{}=\"", name.replace('.', "_"));
        for c in value.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                c => out.push(c),
            }
        }
        out.push('"');
    }
    out
}
