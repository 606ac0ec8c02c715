//! The table of metrics: names, units, labels. The page `docs/metrics.md` is made from it.
//!
//! Names and attributes are OpenTelemetry's (semantic conventions for HTTP and GraphQL) wherever it has one; ours start
//! with `ogive.`.

/// What kind of number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Now.
    Gauge,
    /// How often which duration.
    Histogram,
}

/// One metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Its name, with dots.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its unit in UCUM: `s`, `By`, or `1` for plain numbers.
    pub unit: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub doc: &'static str,
}

macro_rules! metrics {
    ($( $(#[doc = $about:literal])* $ident:ident = $name:literal $kind:ident $unit:literal [$($label:expr),*] $doc:literal; )*) => {
        $( $(#[doc = $about])* pub static $ident: Metric = Metric {
            name: $name, kind: Kind::$kind, unit: $unit, labels: &[$($label),*], doc: $doc,
        }; )*
        /// The table.
        pub static ALL: &[&Metric] = &[$( &$ident ),*];
    };
}

/// Attribute: the HTTP method.
pub const METHOD: &str = "http.request.method";
/// Attribute: the HTTP status; 499 if the client left.
pub const STATUS: &str = "http.response.status_code";
/// Attribute: the operation's name; empty if it has none.
pub const OPERATION_NAME: &str = "graphql.operation.name";
/// Attribute: `query`, `mutation` or `subscription`.
pub const OPERATION_TYPE: &str = "graphql.operation.type";
/// Attribute: whether the response has errors.
pub const FAILED: &str = "graphql.response.has_errors";
/// Attribute: the subgraph's name.
pub const SUBGRAPH: &str = "subgraph.name";
/// Attribute: the code of a request that got no answer.
pub const ERROR_TYPE: &str = "error.type";
/// Attribute: a code of `docs/errors.md`.
pub const ERROR_CODE: &str = "graphql.error.code";
/// Attribute: what a client calls itself.
pub const CLIENT_NAME: &str = "graphql.client.name";
/// Attribute: the version that it says it has.
pub const CLIENT_VERSION: &str = "graphql.client.version";
/// Attribute: `accepted`, or a code of `docs/errors.md`.
pub const AUTHENTICATION_RESULT: &str = "ogive.authentication.result";
/// Attribute: where a key set is, without anything secret.
pub const KEY_SET: &str = "ogive.key_set";
/// Attribute: `COST_OK`, or the code of the limit that is exceeded.
pub const COST_RESULT: &str = "cost.result";
/// The result of operations that exceed nothing.
pub const COST_OK: &str = "COST_OK";
/// Attribute: one of the five stops.
pub const STOP: &str = "ogive.stop";
/// Attribute: where the plan came from: `bundle`, `cache` or `planner`.
pub const PLAN_SOURCE: &str = "ogive.plan.source";
/// Attribute: `coprocessor`, `script` or `policies`.
pub const HOOK: &str = "ogive.hook";
/// Attribute: the stage of a hook, in the words of the protocol of coprocessors.
pub const HOOK_STAGE: &str = "ogive.hook.stage";
/// Attribute: `continue`, `break` or `failed`.
pub const HOOK_OUTCOME: &str = "ogive.hook.outcome";
/// Attribute: which text that is looked at again and again.
pub const SOURCE: &str = "ogive.source";
/// Attribute: the version of the gateway.
pub const VERSION: &str = "version";
/// Attribute: the commit that the gateway was built from.
pub const COMMIT: &str = "commit";
/// Attribute: `access` or `process`.
pub const LOG: &str = "ogive.log";
/// Attribute: everything beyond the limit on series.
pub const OVERFLOW: &str = "otel.metric.overflow";

metrics! {
    /// See the table.
    CLIENT_REQUESTS = "ogive.client.requests" Counter "1" [CLIENT_NAME, CLIENT_VERSION]
        "Requests of clients that say what they are called (`telemetry.clients`); a label is left out if they do not say it.";
    /// See the table.
    AUTHENTICATIONS = "ogive.authentications" Counter "1" [AUTHENTICATION_RESULT]
        "Requests that bring a token or a key: `accepted`, or the code they were refused with. Bad tokens that `on_error: continue` lets pass are not among them.";
    /// See the table.
    KEY_SET_FETCHES = "ogive.key_set.fetches" Counter "1" [KEY_SET]
        "How often a key set came, that of a file whenever it changed; since the configuration that names it serves.";
    /// See the table.
    KEY_SET_FAILURES = "ogive.key_set.failures" Counter "1" [KEY_SET]
        "How often it did not come, or could not be used.";
    /// See the table.
    REQUEST_DURATION = "http.server.request.duration" Histogram "s" [METHOD, STATUS]
        "Requests of clients to the GraphQL endpoint, and those to other paths that were refused.";
    /// See the table.
    ACTIVE_REQUESTS = "http.server.active_requests" Gauge "1" []
        "Requests of clients that are being answered.";
    /// See the table.
    RESPONSE_BYTES = "http.server.response.body.size" Counter "By" []
        "Bytes of response bodies, before they are encoded.";
    /// See the table.
    OPERATION_DURATION = "graphql.operation.duration" Histogram "s" [OPERATION_NAME, OPERATION_TYPE, FAILED]
        "GraphQL operations that were valid.";
    /// See the table.
    SUBGRAPH_DURATION = "http.client.request.duration" Histogram "s" [SUBGRAPH, STATUS, ERROR_TYPE]
        "Requests to subgraphs, all tries included; either status or error type is set.";
    /// See the table.
    SUBGRAPH_RETRIES = "ogive.subgraph.retries" Counter "1" []
        "Further tries of requests to subgraphs.";
    /// See the table.
    SUBGRAPH_JOINED = "ogive.subgraph.joined" Counter "1" []
        "Requests to subgraphs that were not sent because an equal one was under way.";
    /// See the table.
    BREAKER_OPEN = "ogive.subgraph.breaker.open" Gauge "1" [SUBGRAPH]
        "1 while the circuit breaker of a subgraph is open, or its probe under way; of subgraphs that have one.";
    /// See the table.
    REPLICAS_EJECTED = "ogive.subgraph.replicas.ejected" Gauge "1" [SUBGRAPH]
        "Replicas that are left alone because they failed too often; of subgraphs with `outlier_ejection`.";
    /// See the table.
    STOP_DURATION = "ogive.stop.duration" Histogram "s" [STOP]
        "The five stops of requests.";
    /// See the table.
    HOOK_DURATION = "ogive.hook.duration" Histogram "s" [HOOK, HOOK_STAGE, HOOK_OUTCOME]
        "Calls of coprocessors, scripts and components (`component NAME`) at their stages, and of the service that decides policies, waiting included; what Apollo Router counts in `apollo.router.operations.coprocessor.duration` and `apollo.router.operations.rhai.duration`.";
    /// See the table.
    PLAN_DURATION = "ogive.plan.duration" Histogram "s" [PLAN_SOURCE]
        "Getting plans, by where they came from; the share of `planner` is what the plan cache missed.";
    /// See the table.
    ERRORS = "ogive.errors" Counter "1" [SUBGRAPH, ERROR_CODE]
        "Refused requests, and everything that went wrong with requests to subgraphs, by code; errors that subgraphs report count by their own.";
    /// See the table.
    LIMITS_EXCEEDED = "ogive.limits.exceeded" Counter "1" [ERROR_CODE]
        "Requests beyond a limit that is only measured, by the code they would have been refused with.";
    /// See the table.
    COST_ESTIMATED = "cost.estimated" Histogram "1" [COST_RESULT]
        "What operations are estimated to cost (`demand_control`), by what became of them: `COST_OK`, or the code of the limit that they exceed, measured or not.";
    /// See the table.
    COST_ACTUAL = "cost.actual" Histogram "1" [COST_RESULT]
        "What operations did cost (`demand_control.strategy.static_estimated.actual_cost_mode`).";
    /// See the table.
    COST_DELTA = "cost.delta" Histogram "1" [COST_RESULT]
        "How much more they were estimated to cost; 0 if it was less.";
    /// See the table.
    OPERATIONS_KEPT = "ogive.operation_cache.entries" Gauge "1" []
        "Operations kept ready.";
    /// See the table.
    PLANS_KEPT = "ogive.plan_cache.entries" Gauge "1" []
        "Plans kept, bundled ones included.";
    /// See the table.
    PLAN_BYTES = "ogive.plan_cache.size" Gauge "By" []
        "Memory of the plans that can be evicted.";
    /// See the table.
    MEMORY_USED = "ogive.memory.used" Gauge "By" []
        "Bytes that requests under way make the process hold, as counted against `limits.max_memory`.";
    /// See the table.
    MEMORY_LIMIT = "ogive.memory.limit" Gauge "By" []
        "`limits.max_memory`, or what it is by default here.";
    /// See the table.
    MEMORY_REFUSED = "ogive.memory.refused" Counter "1" []
        "How often there was no memory for a request or a part of one.";
    /// See the table.
    PLANNING_WAITING = "ogive.planning.waiting" Gauge "1" []
        "Operations that nobody has asked for before and that wait to be validated and planned.";
    /// See the table.
    PLANS_REFINED = "ogive.plan.refined" Counter "1" []
        "Plans that were looked at again in the background.";
    /// See the table.
    PLANS_IMPROVED = "ogive.plan.improved" Counter "1" []
        "Those that were replaced by a better one.";
    /// See the table.
    REFINEMENT_DROPPED = "ogive.plan.refinement.dropped" Counter "1" []
        "Plans that found the queue of the background planner full.";
    /// See the table.
    BUILD_INFO = "ogive.build_info" Gauge "1" [VERSION, COMMIT]
        "Always 1; the labels are the version that runs and the commit it was built from, if that is known.";
    /// See the table.
    LOG_LINES_SUPPRESSED = "ogive.telemetry.log_lines.suppressed" Counter "1" []
        "Lines about failures that were left out because there were many like them; the next one says how many.";
    /// See the table.
    PROCESS_CPU = "process.cpu" Counter "s" []
        "Processor time that the process has used, user and system.";
    /// See the table.
    PROCESS_RESIDENT = "process.resident_memory" Gauge "By" []
        "Memory of the process that is there.";
    /// See the table.
    PROCESS_VIRTUAL = "process.virtual_memory" Gauge "By" []
        "Memory of the process that is mapped.";
    /// See the table.
    PROCESS_THREADS = "process.threads" Gauge "1" []
        "Threads of the process.";
    /// See the table.
    PROCESS_STARTED = "process.start_time" Gauge "s" []
        "When the process began, in seconds since 1970.";
    /// See the table.
    PROCESS_FILES = "process.open_fds" Gauge "1" []
        "Files and sockets that the process has open.";
    /// See the table.
    PROCESS_FILES_MAX = "process.max_fds" Gauge "1" []
        "Files and sockets that it may have open.";
    /// See the table.
    READY = "ogive.ready" Gauge "1" []
        "1 while new requests are welcome.";
    /// See the table.
    RELOADS = "ogive.reloads" Counter "1" []
        "Configurations and supergraphs swapped in while serving.";
    /// See the table.
    RELOADS_REFUSED = "ogive.reloads.refused" Counter "1" []
        "Those that were refused.";
    /// See the table.
    SOURCES_TAKEN = "ogive.sources.taken" Counter "1" [SOURCE]
        "Texts that were taken over because they have changed: configuration, supergraph, certificates, signing keys, key sets, API keys.";
    /// See the table.
    SOURCES_REFUSED = "ogive.sources.refused" Counter "1" [SOURCE]
        "Such texts that did not come or were not usable, each once; the last good one goes on.";
    /// See the table.
    SPANS_DROPPED = "ogive.telemetry.spans.dropped" Counter "1" []
        "Spans that found the queue of the exporter full.";
    /// See the table.
    SUBSCRIPTIONS_OPEN = "ogive.subscriptions.open" Gauge "1" [SUBGRAPH]
        "Subscriptions of clients that are open. Metrics of subscriptions are there once somebody has subscribed.";
    /// See the table.
    SUBSCRIPTION_SOURCES = "ogive.subscriptions.sources" Gauge "1" [SUBGRAPH]
        "Sources of events in subgraphs that are open; equal subscriptions share one.";
    /// See the table.
    SUBSCRIPTION_EVENTS = "ogive.subscriptions.events" Counter "1" [SUBGRAPH]
        "Events that came from sources.";
    /// See the table.
    SUBSCRIPTION_DELIVERIES = "ogive.subscriptions.deliveries" Counter "1" [SUBGRAPH]
        "Events that were queued for clients: one for each event and subscription.";
    /// See the table.
    SUBSCRIPTION_LAG = "ogive.subscriptions.lag" Histogram "s" [SUBGRAPH]
        "How long events have waited, from the subgraph to the connection of the client; what waits in buffers of the connection is not counted.";
    /// See the table.
    SUBSCRIPTION_DROPPED = "ogive.subscriptions.dropped" Counter "1" [SUBGRAPH]
        "Events that were dropped because a client has not taken them (`on_overflow: drop_oldest`).";
    /// See the table.
    SUBSCRIPTION_OVERFLOWS = "ogive.subscriptions.overflows" Counter "1" [SUBGRAPH]
        "Subscriptions that ended because their client has not taken its events (`on_overflow: close`).";
    /// See the table.
    LOG_LINES_DROPPED = "ogive.telemetry.log_lines.dropped" Counter "1" [LOG]
        "Lines of a log that were not read or could not be written.";
    /// See the table.
    LOG_WRITE_ERRORS = "ogive.telemetry.log_write_errors" Counter "1" [LOG]
        "Failed attempts to write to a log.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::text::prometheus_name;

    /// The page of the documentation; `BLESS=1` rewrites it.
    #[test]
    fn the_page_of_metrics_is_up_to_date() {
        let mut page = include_str!("metrics_page.md").to_owned();
        let mut all = ALL.to_vec();
        all.sort_by_key(|m| m.name);
        for metric in all {
            let labels: Vec<String> = metric.labels.iter().map(|l| format!("`{l}`")).collect();
            let kind = format!("{:?}", metric.kind).to_lowercase();
            page.push_str(&format!(
                "| `{}` | `{}` | {kind} | {} | {} |\n",
                metric.name,
                prometheus_name(metric),
                labels.join(", "),
                metric.doc
            ));
        }
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
        ogive_testbase::assert_recorded(path, &page);
    }

    /// Every name that the dashboard asks for exists, and every metric is on it but readiness, which only selects.
    #[test]
    fn the_dashboard_asks_for_what_there_is() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../deploy/grafana/ogive.json");
        let text = std::fs::read_to_string(&path).unwrap();
        let known: Vec<String> = ALL
            .iter()
            .flat_map(|metric| {
                let name = prometheus_name(metric);
                match metric.kind {
                    Kind::Histogram => vec![format!("{name}_bucket"), format!("{name}_count")],
                    _ => vec![name],
                }
            })
            .collect();
        let labels: Vec<String> = ALL
            .iter()
            .flat_map(|m| m.labels)
            .map(|label| label.replace('.', "_"))
            .collect();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let asked: Vec<&str> = words
            .filter(|w| {
                ["http_", "graphql_", "ogive_", "process_", "cost_"]
                    .iter()
                    .any(|p| w.starts_with(p))
            })
            .filter(|w| !labels.iter().any(|l| l == w))
            .collect();
        for word in &asked {
            assert!(known.iter().any(|k| k == word), "{word} is no metric");
        }
        for metric in ALL {
            let name = prometheus_name(metric);
            assert!(
                asked.iter().any(|w| w.starts_with(&name)),
                "{name} is not shown"
            );
        }
    }
}
