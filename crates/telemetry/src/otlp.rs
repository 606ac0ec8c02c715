//! OpenTelemetry's protocol: spans and metrics as the bytes of its export requests. Sending them is the gateway's work.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value},
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
