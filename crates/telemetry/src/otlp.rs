//! OpenTelemetry's protocol: spans and metrics as the bytes of its export requests. Sending them is the gateway's work.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::ExportLogsServiceRequest, metrics::v1::ExportMetricsServiceRequest,
        trace::v1::ExportTraceServiceRequest,
    },
    common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value},
    logs::v1 as logs,
    metrics::v1 as metrics,
    resource::v1 as resource,
    trace::v1 as trace,
};
use prost::Message;

use crate::{
    metrics::{Family, Value},
    names::Kind,
    traces::{Attribute, Span, SpanKind},
};

/// Who reports: attributes of the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resource {
    /// Names and values; `service.name` among them.
    pub attributes: Vec<(String, String)>,
}

impl Resource {
    /// The resource of a service; `more` wins over what is set here.
    pub fn new(service: &str, more: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut attributes = vec![
            ("service.name".to_owned(), service.to_owned()),
            (
                "service.version".to_owned(),
                env!("CARGO_PKG_VERSION").to_owned(),
            ),
        ];
        for (name, value) in more {
            attributes.retain(|(known, _)| *known != name);
            attributes.push((name, value));
        }
        Resource { attributes }
    }
    fn message(&self) -> resource::Resource {
        let attributes = self.attributes.iter();
        resource::Resource {
            attributes: attributes.map(|(k, v)| text(k, v)).collect(),
            ..Default::default()
        }
    }
}

fn key_value(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..Default::default()
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    key_value(key, any_value::Value::StringValue(value.to_owned()))
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "ogive".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Default::default()
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The request that exports spans.
pub fn traces(resource: &Resource, spans: Vec<Span>) -> Vec<u8> {
    let spans = spans.into_iter().map(|span| trace::Span {
        trace_id: span.trace_id.to_be_bytes().to_vec(),
        span_id: span.span_id.to_be_bytes().to_vec(),
        parent_span_id: match span.parent_id {
            0 => Vec::new(),
            id => id.to_be_bytes().to_vec(),
        },
        trace_state: span.state,
        name: span.name,
        kind: match span.kind {
            SpanKind::Internal => trace::span::SpanKind::Internal,
            SpanKind::Server => trace::span::SpanKind::Server,
            SpanKind::Client => trace::span::SpanKind::Client,
        } as i32,
        start_time_unix_nano: nanoseconds(span.start),
        end_time_unix_nano: nanoseconds(span.start + span.took),
        attributes: span
            .attributes
            .into_iter()
            .map(|(key, value)| match value {
                Attribute::Text(value) => text(key, &value),
                Attribute::Number(n) => key_value(key, any_value::Value::IntValue(n)),
                Attribute::Switch(on) => key_value(key, any_value::Value::BoolValue(on)),
            })
            .collect(),
        status: span.failed.then(|| trace::Status {
            code: trace::status::StatusCode::Error as i32,
            ..Default::default()
        }),
        ..Default::default()
    });
    let request = ExportTraceServiceRequest {
        resource_spans: vec![trace::ResourceSpans {
            resource: Some(resource.message()),
            scope_spans: vec![trace::ScopeSpans {
                scope: Some(scope()),
                spans: spans.collect(),
                ..Default::default()
            }],
            ..Default::default()
        }],
    };
    request.encode_to_vec()
}

/// The request that exports metrics; counters and histograms count from `started`.
pub fn metrics(
    resource: &Resource,
    families: &[Family],
    started: SystemTime,
    now: SystemTime,
) -> Vec<u8> {
    let (start, now) = (nanoseconds(started), nanoseconds(now));
    let all = families.iter().map(|family| metrics::Metric {
        name: family.metric.name.to_owned(),
        description: family.metric.doc.to_owned(),
        unit: family.metric.unit.to_owned(),
        data: Some(data(family, start, now)),
        ..Default::default()
    });
    let request = ExportMetricsServiceRequest {
        resource_metrics: vec![metrics::ResourceMetrics {
            resource: Some(resource.message()),
            scope_metrics: vec![metrics::ScopeMetrics {
                scope: Some(scope()),
                metrics: all.collect(),
                ..Default::default()
            }],
            ..Default::default()
        }],
    };
    request.encode_to_vec()
}

/// What one client asked of one operation in some time; of no operation: what was not told apart.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct UsageRecord {
    /// The name of the operation; empty: it has none.
    pub name: String,
    /// Its document without literals; empty: these are several.
    pub document: String,
    /// Coordinates of the fields and arguments that it uses.
    pub fields: Vec<String>,
    /// The client's name and version.
    pub client: (String, String),
    /// How often it was asked, and how often it was answered with errors.
    pub requests: (u64, u64),
    /// How long it took in milliseconds: on average, and at most.
    pub milliseconds: (f64, f64),
    /// What it cost.
    pub cost: u64,
}

/// The request that exports usage since `from`: log records of the event `ogive.usage`.
pub fn usage(
    resource: &Resource,
    records: &[UsageRecord],
    (from, now): (SystemTime, SystemTime),
) -> Vec<u8> {
    let records = records.iter().map(|record| logs::LogRecord {
        time_unix_nano: nanoseconds(now),
        observed_time_unix_nano: nanoseconds(now),
        severity_number: logs::SeverityNumber::Info as i32,
        event_name: "ogive.usage".to_owned(),
        attributes: usage_attributes(record, nanoseconds(from)),
        ..Default::default()
    });
    let request = ExportLogsServiceRequest {
        resource_logs: vec![logs::ResourceLogs {
            resource: Some(resource.message()),
            scope_logs: vec![logs::ScopeLogs {
                scope: Some(scope()),
                log_records: records.collect(),
                ..Default::default()
            }],
            ..Default::default()
        }],
    };
    request.encode_to_vec()
}

fn usage_attributes(record: &UsageRecord, from: u64) -> Vec<KeyValue> {
    let number = |key: &str, n: u64| {
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        key_value(key, any_value::Value::IntValue(n))
    };
    let decimal = |key: &str, n: f64| key_value(key, any_value::Value::DoubleValue(n));
    let fields = record.fields.iter().map(|field| AnyValue {
        value: Some(any_value::Value::StringValue(field.clone())),
    });
    let fields = ArrayValue {
        values: fields.collect(),
    };
    let mut out = vec![
        number("ogive.usage.from", from),
        number("ogive.usage.requests", record.requests.0),
        number("ogive.usage.errors", record.requests.1),
        decimal("ogive.usage.duration.mean", record.milliseconds.0),
        decimal("ogive.usage.duration.max", record.milliseconds.1),
        number("ogive.usage.cost", record.cost),
    ];
    if !record.document.is_empty() {
        out.push(text("graphql.operation.name", &record.name));
        out.push(text("graphql.document", &record.document));
        out.push(text("client.name", &record.client.0));
        out.push(text("client.version", &record.client.1));
        out.push(key_value(
            "ogive.usage.fields",
            any_value::Value::ArrayValue(fields),
        ));
    }
    out
}

fn data(family: &Family, start: u64, now: u64) -> metrics::metric::Data {
    let labels = |labels: &[(&'static str, String)]| -> Vec<KeyValue> {
        labels.iter().map(|(k, v)| text(k, v)).collect()
    };
    let cumulative = metrics::AggregationTemporality::Cumulative as i32;
    if family.metric.kind == Kind::Histogram {
        let points = family.series.iter().filter_map(|series| {
            let Value::Histogram(histogram) = &series.value else {
                return None;
            };
            Some(metrics::HistogramDataPoint {
                attributes: labels(&series.labels),
                start_time_unix_nano: start,
                time_unix_nano: now,
                count: histogram.count(),
                sum: Some(histogram.scaled(histogram.sum)),
                bucket_counts: histogram.buckets.clone(),
                explicit_bounds: {
                    let bounds = histogram.bounds.iter();
                    bounds.map(|bound| histogram.scaled(*bound)).collect()
                },
                ..Default::default()
            })
        });
        return metrics::metric::Data::Histogram(metrics::Histogram {
            data_points: points.collect(),
            aggregation_temporality: cumulative,
        });
    }
    let points = family.series.iter().map(|series| metrics::NumberDataPoint {
        attributes: labels(&series.labels),
        start_time_unix_nano: start,
        time_unix_nano: now,
        value: Some(match &series.value {
            Value::Counter(n) => metrics::number_data_point::Value::AsInt(*n as i64),
            Value::Total(n) | Value::Gauge(n) => metrics::number_data_point::Value::AsDouble(*n),
            Value::Histogram(h) => metrics::number_data_point::Value::AsInt(h.count() as i64),
        }),
        ..Default::default()
    });
    let points = points.collect();
    match family.metric.kind {
        Kind::Counter => metrics::metric::Data::Sum(metrics::Sum {
            data_points: points,
            aggregation_temporality: cumulative,
            is_monotonic: true,
        }),
        _ => metrics::metric::Data::Gauge(metrics::Gauge {
            data_points: points,
        }),
    }
}
