//! Prometheus' text format, version 0.0.4: what `/metrics` answers.
//!
//! Names are those of OpenTelemetry with `_` for `.`, the unit behind them and `_total` behind counters.

use std::fmt::Write;

use super::family::{Family, Histogram, Value};
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
        let _ = writeln!(out, "# HELP {name} {}", plain(family.metric.doc));
        let _ = writeln!(out, "# TYPE {name} {kind}");
        for series in &family.series {
            let labels = labels(&series.labels);
            match &series.value {
                Value::Counter(count) => {
                    let _ = writeln!(out, "{name}{} {count}", braced(&labels));
                }
                Value::Total(value) | Value::Gauge(value) => {
                    let _ = writeln!(out, "{name}{} {value}", braced(&labels));
                }
                Value::Histogram(histogram) => write_histogram(&name, &labels, histogram, &mut out),
            }
        }
    }
    out
}

/// A text of the documentation without the marks for code and links, which are for readers of the page.
fn plain(doc: &str) -> String {
    let mut out = String::with_capacity(doc.len());
    let mut rest = doc;
    while let Some(at) = rest.find(['`', '[']) {
        out.push_str(&rest[..at]);
        let marked = &rest[at..];
        let link = marked.strip_prefix('[').and_then(|link| {
            let (words, behind) = link.split_once("](")?;
            Some((words, behind.split_once(')')?.1))
        });
        rest = match link {
            Some((words, behind)) => {
                out.push_str(words);
                behind
            }
            None => {
                out.push_str(marked[..1].trim_matches('`'));
                &marked[1..]
            }
        };
    }
    out.push_str(rest);
    out.replace('\\', "\\\\").replace('\n', "\\n")
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
        let bound = histogram.scaled(*bound);
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {seen}");
    }
    let count = histogram.count();
    let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
    let sum = histogram.scaled(histogram.sum);
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
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let _ = write!(out, "{name}=\"");
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        metrics::{Gauges, Metrics, MetricsOptions},
        process::Process,
    };

    #[test]
    fn marks_of_the_documentation_are_not_in_help_texts() {
        assert_eq!(
            plain("1 `a` of [the list](limits.md), [b"),
            "1 a of the list, [b"
        );
        for metric in crate::names::ALL {
            let text = plain(metric.doc);
            assert!(
                !text.contains(['`', '[', ']']) && !text.contains("limits.md"),
                "{text}"
            );
        }
    }

    /// What a scraper insists on: help and type before every metric, once, and label values that are escaped.
    #[test]
    fn every_metric_has_help_and_type() {
        let metrics = Metrics::new(MetricsOptions::default());
        metrics.failed("a\"b\\c\nd", "CODE");
        let text = write(&metrics.snapshot(Gauges {
            process: Process::look(),
            ..Gauges::default()
        }));
        let mut known = BTreeSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(known.insert(name.to_owned()) && !help.is_empty(), "{line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                assert!(known.contains(rest.split(' ').next().unwrap()), "{line}");
            } else {
                let name = line.split(['{', ' ']).next().unwrap();
                let family = ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|end| name.strip_suffix(end))
                    .unwrap_or(name);
                assert!(known.contains(family) || known.contains(name), "{line}");
            }
        }
        let escaped =
            r#"ogive_errors_total{subgraph_name="a\"b\\c\nd",graphql_error_code="CODE"} 1"#;
        assert!(text.contains(escaped), "{text}");
        let version = env!("CARGO_PKG_VERSION");
        let built = format!("ogive_build_info{{version=\"{version}\"}} 1\n");
        assert!(text.contains(&built), "{text}");
    }

    #[test]
    fn the_commit_is_told_where_it_is_known() {
        let metrics = Metrics::new(MetricsOptions {
            commit: Some("0123abc"),
            ..MetricsOptions::default()
        });
        let text = write(&metrics.snapshot(Gauges::default()));
        assert!(text.contains(",commit=\"0123abc\"} 1\n"), "{text}");
    }
}
