//! Sending metrics and spans to a collector (OTLP over HTTP or gRPC), away from the requests.
//!
//! What cannot be delivered after a few tries is dropped: a collector that is down must cost neither memory nor
//! requests. The log says so once, and once more when it works again.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use ogive_config::{Config, OtlpProtocol, Url, UsageOtlpOptions, without_secrets};
use ogive_telemetry::otlp::{self, Resource, UsageRecord};
use ogive_transport::{Fetched, Http2, Source};
use tokio::sync::Notify;

use crate::Gateway;

/// Tries of one message, the first included.
const TRIES: u32 = 3;
/// Wait before the second try; doubled with each.
const BACKOFF: Duration = Duration::from_millis(500);
/// Most operations of one message.
const USAGE_BATCH: usize = 256;

/// Which of the collector's services.
#[derive(Clone, Copy)]
enum Service {
    Metrics,
    Traces,
    Logs,
}

impl Service {
    fn http_path(self) -> &'static str {
        match self {
            Service::Metrics => "/v1/metrics",
            Service::Traces => "/v1/traces",
            Service::Logs => "/v1/logs",
        }
    }
    fn grpc_path(self) -> &'static str {
        match self {
            Service::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Service::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Service::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        }
    }
    fn word(self) -> &'static str {
        match self {
            Service::Metrics => "metrics",
            Service::Traces => "spans",
            Service::Logs => "counts of usage",
        }
    }
}

/// One collector's service.
pub(crate) struct Collector {
    service: Service,
    source: Source,
    grpc: bool,
    headers: HeaderMap,
    resource: Resource,
    failing: bool,
}

/// Everything that is exported.
pub(crate) struct Exporter {
    gateway: Arc<Gateway>,
    /// Who reports.
    pub(crate) resource: Resource,
    metrics: Option<(Collector, Duration)>,
    traces: Option<Traces>,
}

struct Traces {
    collector: Collector,
    delay: Duration,
    batch: usize,
    full: Arc<Notify>,
}

impl Exporter {
    /// What a configuration asks for. The error is for the operator.
    pub(crate) fn new(config: &Config, gateway: Arc<Gateway>) -> Result<Self, String> {
        let options = &config.telemetry;
        let resource = Resource::new(&options.service_name, options.resource.clone());
        let (metrics, traces) = (
            &options.exporters.metrics.otlp,
            &options.exporters.tracing.otlp,
        );
        let metrics = if metrics.enabled {
            Some((
                Collector::new(
                    Service::Metrics,
                    &metrics.endpoint,
                    metrics.protocol,
                    &metrics.headers,
                    metrics.timeout.0,
                    resource.clone(),
                )?,
                metrics.interval.0.max(Duration::from_millis(10)),
            ))
        } else {
            None
        };
        let traces = if traces.enabled {
            let batch = &traces.batch_processor;
            let full = Arc::new(Notify::new());
            let (wake, size) = (Arc::clone(&full), batch.max_export_batch_size.get());
            if let Some(tracing) = &gateway.telemetry().tracing {
                tracing.when_waiting(size, Box::new(move || wake.notify_one()));
            }
            Some(Traces {
                collector: Collector::new(
                    Service::Traces,
                    &traces.endpoint,
                    traces.protocol,
                    &traces.headers,
                    traces.timeout.0,
                    resource.clone(),
                )?,
                delay: batch.scheduled_delay.0.max(Duration::from_millis(10)),
                batch: size,
                full,
            })
        } else {
            None
        };
        Ok(Exporter {
            gateway,
            resource,
            metrics,
            traces,
        })
    }

    /// Exports until `stop` is told, and then what is left.
    pub(crate) async fn run(self, stop: Arc<Notify>) {
        let Exporter {
            gateway,
            mut metrics,
            mut traces,
            ..
        } = self;
        let working = async {
            tokio::join!(
                async {
                    while let Some((collector, interval)) = &mut metrics {
                        tokio::time::sleep(*interval).await;
                        collector.metrics(&gateway).await;
                    }
                },
                async {
                    while let Some(traces) = &mut traces {
                        let full = Arc::clone(&traces.full);
                        let _ = tokio::time::timeout(traces.delay, full.notified()).await;
                        traces.export(&gateway).await;
                    }
                }
            );
        };
        tokio::select! {
            () = async { working.await; std::future::pending().await } => {}
            () = stop.notified() => {}
        }
        if let Some(traces) = &mut traces {
            traces.export(&gateway).await;
        }
        if let Some((collector, _)) = &mut metrics {
            collector.metrics(&gateway).await;
        }
    }
}

/// What is wrong with collectors, each with where it is configured.
pub(crate) fn problems(config: &Config) -> Vec<(&'static [&'static str], String)> {
    let options = &config.telemetry;
    let (metrics, traces) = (
        &options.exporters.metrics.otlp,
        &options.exporters.tracing.otlp,
    );
    let resource = || Resource::new(&options.service_name, options.resource.clone());
    let metrics = metrics.enabled.then(|| {
        Collector::new(
            Service::Metrics,
            &metrics.endpoint,
            metrics.protocol,
            &metrics.headers,
            metrics.timeout.0,
            resource(),
        )
    });
    let traces = traces.enabled.then(|| {
        Collector::new(
            Service::Traces,
            &traces.endpoint,
            traces.protocol,
            &traces.headers,
            traces.timeout.0,
            resource(),
        )
    });
    let usage = config.usage.otlp.as_ref().filter(|_| config.usage.enabled);
    let usage = usage.map(|otlp| Collector::of_usage(otlp, resource()));
    let made = [
        (&["telemetry", "exporters", "metrics", "otlp"][..], metrics),
        (&["telemetry", "exporters", "tracing", "otlp"], traces),
        (&["usage", "otlp"], usage),
    ]
    .into_iter();
    made.filter_map(|(key, made)| Some((key, made?.err()?)))
        .collect()
}

impl Traces {
    async fn export(&mut self, gateway: &Gateway) {
        let Some(tracing) = &gateway.telemetry().tracing else {
            return;
        };
        let mut spans = tracing.take();
        while !spans.is_empty() {
            let rest = spans.split_off(spans.len().min(self.batch));
            let message = otlp::traces(&self.collector.resource, spans);
            self.collector.deliver(message).await;
            spans = rest;
        }
    }
}

impl Collector {
    fn new(
        service: Service,
        endpoint: &Url,
        protocol: OtlpProtocol,
        further: &std::collections::BTreeMap<String, String>,
        timeout: Duration,
        resource: Resource,
    ) -> Result<Self, String> {
        let grpc = protocol == OtlpProtocol::Grpc;
        let http2 = if grpc { Http2::Only } else { Http2::Disable };
        let mut source = Source::new(&endpoint.0, http2).map_err(|why| {
            format!(
                "the collector `{}` cannot be used: {why}",
                without_secrets(&endpoint.0)
            )
        })?;
        source.timeout = timeout;
        match (grpc, source.path()) {
            (true, _) => source.set_path(service.grpc_path()),
            (false, "/") => source.set_path(service.http_path()),
            (false, _) => {}
        }
        let mut headers = HeaderMap::new();
        for (name, value) in further {
            let pair = HeaderName::from_bytes(name.as_bytes())
                .ok()
                .zip(HeaderValue::from_str(value).ok());
            let Some((name, value)) = pair else {
                return Err(format!(
                    "`{name}` cannot be sent to the collector as a header"
                ));
            };
            headers.insert(name, value);
        }
        let kind = if grpc {
            "application/grpc"
        } else {
            "application/x-protobuf"
        };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        if grpc {
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
        }
        Ok(Collector {
            service,
            source,
            grpc,
            headers,
            resource,
            failing: false,
        })
    }

    /// One that is told usage.
    pub(crate) fn of_usage(options: &UsageOtlpOptions, resource: Resource) -> Result<Self, String> {
        Collector::new(
            Service::Logs,
            &options.endpoint,
            options.protocol,
            &options.headers,
            options.timeout.0,
            resource,
        )
    }

    /// Tells what was used since then.
    pub(crate) async fn usage(&mut self, records: &[UsageRecord], since: SystemTime) {
        let now = SystemTime::now();
        for records in records.chunks(USAGE_BATCH) {
            let message = otlp::usage(&self.resource, records, (since, now));
            self.deliver(message).await;
        }
    }

    async fn metrics(&mut self, gateway: &Gateway) {
        let telemetry = gateway.telemetry();
        if let Some(metrics) = &telemetry.metrics {
            let families = metrics.snapshot(gateway.gauges());
            let now = SystemTime::now();
            let message = otlp::metrics(&self.resource, &families, telemetry.started, now);
            self.deliver(message).await;
        }
    }

    async fn deliver(&mut self, message: Vec<u8>) {
        let body: Bytes = if self.grpc {
            // gRPC: not compressed, then the length.
            let mut framed = BytesMut::with_capacity(message.len() + 5);
            framed.put_u8(0);
            framed.put_u32(message.len() as u32);
            framed.extend_from_slice(&message);
            framed.freeze()
        } else {
            message.into()
        };
        let mut wait = BACKOFF;
        for attempt in 1..=TRIES {
            let sent = self
                .source
                .send(Method::POST, self.headers.clone(), body.clone());
            let (why, again) = match sent.await {
                Ok(answer) => match self.verdict(&answer) {
                    Ok(()) => {
                        if std::mem::take(&mut self.failing) {
                            tracing::info!("{} reach the collector again", self.service.word());
                        }
                        return;
                    }
                    Err(verdict) => verdict,
                },
                Err(why) => (why, true),
            };
            if !again || attempt == TRIES {
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!("{} do not reach the collector: {why}", self.service.word());
                }
                return;
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
    }

    /// Why a message was not taken, and whether another try may help.
    fn verdict(&self, answer: &Fetched) -> Result<(), (String, bool)> {
        if !(200..300).contains(&answer.status) {
            let again = matches!(answer.status, 429 | 502 | 503 | 504);
            return Err((format!("it answers {}", answer.status), again));
        }
        let status = answer.headers.get("grpc-status").map(HeaderValue::as_bytes);
        match (self.grpc, status) {
            (false, _) | (true, Some(b"0")) => Ok(()),
            (true, Some(status)) => {
                let status = String::from_utf8_lossy(status);
                // Those that the protocol calls retryable.
                let again = matches!(&*status, "1" | "4" | "8" | "10" | "11" | "14" | "15");
                Err((format!("it answers with gRPC status {status}"), again))
            }
            (true, None) => Err(("it does not speak gRPC".to_owned(), false)),
        }
    }
}
