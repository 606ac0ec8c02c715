//! What can be set about metrics, traces and logs of requests.

use std::{collections::BTreeMap, num::NonZeroUsize};

use ogive_yaml::Node;

use crate::{
    Attributes, Duration, HeaderName, Instruments, Listen, LogFormat, OtlpProtocol, Path, Url,
    decode::{Decode, Errors, section},
    scalars::nonzero,
};

section! {
    /// `telemetry`
    pub struct TelemetryOptions {
        /// What the gateway calls itself, `service.name`.
        pub service_name: String = "ogive".into(),
        /// Further attributes of the process, such as `deployment.environment.name`.
        pub resource: BTreeMap<String, String> = BTreeMap::new(),
        /// Where metrics and traces go.
        pub exporters: ExporterOptions = ExporterOptions::default(),
        /// What spans and metrics say besides what they say anyway.
        pub instrumentation: InstrumentationOptions = InstrumentationOptions::default(),
        /// A line for every request.
        pub access_log: AccessLogOptions = AccessLogOptions::default(),
        /// Telling clients apart by what they say they are called.
        pub clients: ClientsOptions = ClientsOptions::default(),
        /// Telling requests apart.
        pub request_id: RequestIdOptions = RequestIdOptions::default(),
        /// Showing clients where the time went.
        pub execution_trace: ExecutionTraceOptions = ExecutionTraceOptions::default(),
    }

    /// `telemetry.exporters`
    pub struct ExporterOptions {
        /// Numbers.
        pub metrics: MetricsExporterOptions = MetricsExporterOptions::default(),
        /// Spans.
        pub tracing: TracingExporterOptions = TracingExporterOptions::default(),
    }

    /// `telemetry.exporters.metrics`
    pub struct MetricsExporterOptions {
        /// For every exporter.
        pub common: MetricsCommonOptions = MetricsCommonOptions::default(),
        /// An endpoint to scrape.
        pub prometheus: PrometheusOptions = PrometheusOptions::default(),
        /// A collector.
        pub otlp: OtlpMetricsOptions = OtlpMetricsOptions::default(),
    }

    /// `telemetry.exporters.metrics.common`
    pub struct MetricsCommonOptions {
        /// Most series of one metric; what is beyond it is counted together, marked `otel.metric.overflow`. Of those with names
        /// that clients choose one client brings `limits.client_share` at most.
        pub cardinality_limit: NonZeroUsize = nonzero(2_000),
        /// Most values of one attribute of `telemetry.instrumentation.instruments`; every further one is counted as `other`, which
        /// is told once. One client brings `limits.client_share` of them at most.
        pub attribute_values_max: NonZeroUsize = nonzero(200),
        /// Whether operations are told apart by name.
        pub operation_names: bool = true,
        /// Whether clients that say what they are called (`telemetry.clients`) are counted by name and version.
        pub clients: bool = true,
        /// Upper bounds of the buckets that durations are counted in, in seconds, smallest first, 1 to 50 of them; what
        /// takes longer than the last is counted in a bucket of its own.
        pub buckets: Buckets = Buckets::default(),
    }

    /// `telemetry.exporters.metrics.prometheus`
    pub struct PrometheusOptions {
        /// Whether metrics can be scraped.
        pub enabled: bool = false,
        /// Address of its own, `HOST:PORT`.
        pub listen: Listen = Listen("127.0.0.1:9090".into()),
        /// Path.
        pub path: Path = Path("/metrics".into()),
    }

    /// `telemetry.exporters.metrics.otlp`
    pub struct OtlpMetricsOptions {
        /// Whether metrics are sent to a collector.
        pub enabled: bool = false,
        /// The collector; with `protocol: http` the path is that of `/v1/metrics` unless it has one.
        pub endpoint: Url = Url("http://127.0.0.1:4318".into()),
        /// `http` (protobuf) or `grpc`.
        pub protocol: OtlpProtocol = OtlpProtocol::Http,
        /// Headers to send along, such as a key.
        pub headers: BTreeMap<String, String> = BTreeMap::new(),
        /// How often.
        pub interval: Duration = Duration::seconds(60),
        /// How long the collector may take.
        pub timeout: Duration = Duration::seconds(10),
    }

    /// `telemetry.exporters.tracing`
    pub struct TracingExporterOptions {
        /// For every exporter.
        pub common: TracingCommonOptions = TracingCommonOptions::default(),
        /// How the trace of a request travels.
        pub propagation: PropagationOptions = PropagationOptions::default(),
        /// A collector.
        pub otlp: OtlpTracingOptions = OtlpTracingOptions::default(),
    }

    /// `telemetry.exporters.tracing.common`
    pub struct TracingCommonOptions {
        /// Share of the requests that are traced, 0 to 1, or `always_on` or `always_off`.
        pub sampler: Ratio = Ratio(1.0),
        /// Whether a client that says whether its trace is recorded decides for the gateway as well.
        pub parent_based_sampler: bool = true,
    }

    /// `telemetry.exporters.tracing.propagation`
    pub struct PropagationOptions {
        /// W3C `traceparent` and `tracestate`.
        pub trace_context: bool = true,
        /// W3C `baggage` is passed on.
        pub baggage: bool = false,
        /// Zipkin's `b3` and `x-b3-...`.
        pub b3: bool = false,
        /// Jaeger's `uber-trace-id`.
        pub jaeger: bool = false,
        /// Datadog's `x-datadog-...`.
        pub datadog: bool = false,
    }

    /// `telemetry.exporters.tracing.otlp`
    pub struct OtlpTracingOptions {
        /// Whether spans are sent to a collector. Traces are read from clients and written for subgraphs only if so.
        pub enabled: bool = false,
        /// The collector; with `protocol: http` the path is that of `/v1/traces` unless it has one.
        pub endpoint: Url = Url("http://127.0.0.1:4318".into()),
        /// `http` (protobuf) or `grpc`.
        pub protocol: OtlpProtocol = OtlpProtocol::Http,
        /// Headers to send along, such as a key.
        pub headers: BTreeMap<String, String> = BTreeMap::new(),
        /// How long the collector may take.
        pub timeout: Duration = Duration::seconds(10),
        /// Collecting spans before they are sent.
        pub batch_processor: BatchOptions = BatchOptions::default(),
    }

    /// `telemetry.exporters.tracing.otlp.batch_processor`
    pub struct BatchOptions {
        /// How long spans wait for more at most.
        pub scheduled_delay: Duration = Duration::seconds(5),
        /// Most spans of one message.
        pub max_export_batch_size: NonZeroUsize = nonzero(512),
        /// Most spans that wait; more are dropped and counted.
        pub max_queue_size: NonZeroUsize = nonzero(2_048),
    }

    /// `telemetry.access_log`
    pub struct AccessLogOptions {
        /// Whether every GraphQL request is logged.
        pub enabled: bool = false,
        /// `json`, an object per line, or `text`, `name=value` pairs.
        pub format: LogFormat = LogFormat::Json,
        /// File that lines are appended to; without one they go to standard output.
        pub path: Option<String> = None,
        /// What a line says, in this order.
        pub fields: Vec<String> = access_fields(),
        /// What it says besides, by name: `{ user: { jwt_claim: sub, default: nobody } }`. A value is a [selector](selectors.md) of
        /// the request or its response, or `{ static: TEXT }`; with at most 256 bytes, and left out if nothing is there and there
        /// is no `default`. Headers that may hold a credential are refused.
        pub attributes: Attributes<0> = Attributes::default(),
    }

    /// `telemetry.instrumentation`
    pub struct InstrumentationOptions {
        /// Of spans.
        pub spans: SpanOptions = SpanOptions::default(),
        /// Of metrics.
        pub instruments: InstrumentOptions = InstrumentOptions::default(),
    }

    /// `telemetry.instrumentation.spans`
    pub struct SpanOptions {
        /// The span of a request.
        pub router: SpanAttributes = SpanAttributes::default(),
        /// The span of an operation, `request.execute`.
        pub supergraph: OperationSpanAttributes = OperationSpanAttributes::default(),
        /// The spans of requests to subgraphs.
        pub subgraph: SubgraphSpanAttributes = SubgraphSpanAttributes::default(),
    }

    /// `telemetry.instrumentation.spans.router`
    pub struct SpanAttributes {
        /// Attributes by name, each a selector as in `telemetry.access_log.attributes`; one of a name that the span has anyway
        /// stands for it.
        pub attributes: Attributes<0> = Attributes::default(),
    }

    /// `telemetry.instrumentation.spans.supergraph`
    pub struct OperationSpanAttributes {
        /// Attributes by name, each a selector of the operation.
        pub attributes: Attributes<1> = Attributes::default(),
    }

    /// `telemetry.instrumentation.spans.subgraph`
    pub struct SubgraphSpanAttributes {
        /// Attributes by name, each a selector of the request to the subgraph, of its answer, or of the client's request.
        pub attributes: Attributes<2> = Attributes::default(),
    }

    /// `telemetry.instrumentation.instruments`
    pub struct InstrumentOptions {
        /// Attributes of `http.server.request.duration`, as `{ http.server.request.duration: { attributes: { tenant: { jwt_claim:
        /// tenant } } } }`. Each value of each attribute is a series of its own:
        /// `telemetry.exporters.metrics.common.attribute_values_max` bounds them.
        pub router: Instruments<0> = Instruments::default(),
        /// Likewise of `graphql.operation.duration`.
        pub supergraph: Instruments<1> = Instruments::default(),
        /// Likewise of `http.client.request.duration`.
        pub subgraph: Instruments<2> = Instruments::default(),
    }

    /// `telemetry.clients`
    pub struct ClientsOptions {
        /// Headers in which a client says what it is called; the first that is there counts. Default
        /// `apollographql-client-name`, `graphql-client-name`. Names and versions are shown with at most 128 bytes.
        pub name_headers: Vec<HeaderName> = header_names(["apollographql-client-name", "graphql-client-name"]),
        /// Headers in which it says its version, likewise. Default `apollographql-client-version`, `graphql-client-version`.
        pub version_headers: Vec<HeaderName> = header_names(["apollographql-client-version", "graphql-client-version"]),
    }

    /// `telemetry.request_id`
    pub struct RequestIdOptions {
        /// Whether every request has an id: that of the client, if it is one, else a new one. It goes back to the
        /// client, on to subgraphs and into logs and traces.
        pub enabled: bool = false,
        /// The header it travels in.
        pub header: HeaderName = HeaderName("x-request-id".into()),
    }

    /// `telemetry.execution_trace`
    pub struct ExecutionTraceOptions {
        /// Whether a client that sends the header below gets `extensions.ogiveTrace` with its response: when it was
        /// prepared, planned and executed, and the requests to subgraphs, with times.
        pub enabled: bool = false,
        /// The header.
        pub header: HeaderName = HeaderName("x-ogive-trace".into()),
        /// What the header must say; without it, `true`.
        pub secret: Option<String> = None,
    }
}

/// A share, 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ratio(pub f64);

impl Decode for Ratio {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "a number between 0 and 1")?;
        let ratio = match text {
            "always_on" => Some(1.0),
            "always_off" => Some(0.0),
            text => text.parse().ok().filter(|r| (0.0..=1.0).contains(r)),
        };
        if ratio.is_none() {
            errors.invalid(
                node.span,
                format!("expected a number between 0 and 1, found `{text}`"),
                "`always_on` is 1, `always_off` is 0",
            );
        }
        ratio.map(Ratio)
    }
}

/// Upper bounds in nanoseconds, smallest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buckets(pub Vec<u64>);

/// Most bounds: every series has a counter for each.
const BUCKETS_MAX: usize = 50;

impl Default for Buckets {
    fn default() -> Self {
        let micros = [
            500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
            2_500_000, 5_000_000, 10_000_000,
        ];
        Buckets(micros.map(|micros: u64| micros * 1_000).to_vec())
    }
}

impl Decode for Buckets {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let texts = Vec::<String>::decode(node, errors)?;
        let bounds = texts.iter().map(|text| {
            let seconds = text.parse::<f64>().ok();
            // A day is longer than anything here takes.
            let seconds = seconds.filter(|s| (1e-6..=86_400.0).contains(s))?;
            Some((seconds * 1e9).round() as u64)
        });
        let bounds: Option<Vec<u64>> = bounds.collect();
        let bounds = bounds.filter(|bounds| {
            (1..=BUCKETS_MAX).contains(&bounds.len()) && bounds.is_sorted_by(|a, b| a < b)
        });
        if bounds.is_none() {
            errors.invalid(
                node.span,
                format!("expected 1 to {BUCKETS_MAX} numbers of seconds, smallest first"),
                "write them as `[0.005, 0.05, 0.5, 5]`, from 0.000001 to 86400",
            );
        }
        bounds.map(Buckets)
    }
}

/// What a line of the access log says unless told otherwise.
fn header_names<const N: usize>(names: [&str; N]) -> Vec<HeaderName> {
    names.map(|name| HeaderName(name.to_owned())).to_vec()
}

/// All fields that a line of the access log can have.
pub const ACCESS_LOG_FIELDS: [&str; 24] = [
    "time",
    "request_id",
    "trace_id",
    "client_address",
    "method",
    "path",
    "status",
    "duration_ms",
    "response_bytes",
    "operation_name",
    "operation_type",
    "operations",
    "plan_source",
    "subgraph_requests",
    "errors",
    "code",
    "user_agent",
    "client_name",
    "client_version",
    "cost_estimated",
    "cost_actual",
    "limits_exceeded",
    "events",
    "end",
];

fn access_fields() -> Vec<String> {
    let fields = [
        "time",
        "request_id",
        "trace_id",
        "method",
        "path",
        "status",
        "duration_ms",
        "operation_name",
        "operation_type",
        "client_name",
        "client_version",
        "subgraph_requests",
        "errors",
        "code",
        "events",
        "end",
    ];
    fields.map(str::to_owned).to_vec()
}
