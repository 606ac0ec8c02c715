//! Apollo Router's `router.yaml`, whose words are ours wherever both have a thing.

use ogive_base::SourceId;

use super::{
    Format, attributes,
    convert::{address, duration, negated, percent, same, size, text_map, texts, whole},
    cors, headers,
    nodes::{at, dotted, is_on, plain, scalar, text},
    rates, redis,
    rules::{Rule, Walk, call, keep, no, to, unneeded, with},
    settings, signatures, subscriptions, telemetry, tokens,
    versions::SectionPlace,
    why::{
        BUDGET, CACHES, CLAIMS, CODE, CONNECTORS, COPROCESSOR, COSTS, MUTATIONS, OFF, SIGNATURES,
        SUBSCRIPTIONS,
    },
};

use ogive_config::{HookCondition, decode::Errors};
use ogive_yaml::{Node, Value};

const STUDIO: &str = "it is about Apollo's own services";
const ALWAYS: &str = "it always is so here";

/// Names of other versions, as documented: those with `preview_` and `experimental_`, and limits by whose they are.
pub(crate) const PLACES: &[SectionPlace] = &[
    ("preview_operation_limits", "limits"),
    ("limits.router", "limits"),
    (
        "limits.experimental_http_max_request_bytes",
        "limits.http_max_request_bytes",
    ),
    ("preview_demand_control", "demand_control"),
    ("preview_persisted_queries", "persisted_queries"),
    ("experimental_batching", "batching"),
    (
        "authorization.preview_directives",
        "authorization.directives",
    ),
];

pub(crate) const RULES: &[Rule] = &[
    with("supergraph.listen", "listen", address),
    to("supergraph.path", "http.graphql_endpoint"),
    keep("supergraph.introspection"),
    with(
        "supergraph.connection_shutdown_timeout",
        "http.connection_shutdown_timeout",
        duration,
    ),
    to(
        "supergraph.query_planning.cache.in_memory.limit",
        "query_planning.cache.size",
    ),
    no(
        "supergraph.query_planning.cache.redis",
        "plans are kept in memory; `ogive plan build` makes them ahead of time",
    ),
    unneeded(
        "supergraph.query_planning.warmed_up_queries",
        "every kept operation is planned before a new schema serves",
    ),
    unneeded("supergraph.query_planning", "the planner needs no tuning"),
    unneeded(
        "supergraph.generate_query_fragments",
        "requests are written compactly anyway",
    ),
    unneeded("supergraph.early_cancel", ALWAYS),
    unneeded("supergraph.strict_variable_validation", ALWAYS),
    keep("supergraph.defer_support"),
    call(
        "supergraph.redact_query_validation_errors",
        validation_messages,
    ),
    keep("health_check.enabled"),
    keep("health_check.path"),
    with("health_check.listen", "health_check.listen", address),
    unneeded(
        "health_check.readiness",
        "overload is answered with 503 and `retry-after` instead",
    ),
    keep("homepage.enabled"),
    to("sandbox.enabled", "homepage.enabled"),
    unneeded("homepage.graph_ref", STUDIO),
    with(
        "limits.subgraph.all.http_max_response_size",
        "traffic_shaping.all.response_max_bytes",
        size,
    ),
    with(
        "limits.subgraph.subgraphs.*.http_max_response_size",
        "traffic_shaping.subgraphs.*.response_max_bytes",
        size,
    ),
    no("limits.connector", CONNECTORS),
    keep("limits.max_depth"),
    keep("limits.max_height"),
    keep("limits.max_aliases"),
    keep("limits.max_root_fields"),
    keep("limits.warn_only"),
    keep("limits.parser_max_tokens"),
    keep("limits.parser_max_recursion"),
    with(
        "limits.http_max_request_bytes",
        "limits.http_max_request_bytes",
        size,
    ),
    keep("limits.http1_max_request_headers"),
    with(
        "limits.http1_max_request_buf_size",
        "limits.http1_max_request_buf_size",
        size,
    ),
    unneeded(
        "limits.introspection_max_depth",
        "introspection has limits of its own",
    ),
    with(
        "server.http.header_read_timeout",
        "http.header_read_timeout",
        duration,
    ),
    keep("cors.allow_any_origin"),
    keep("cors.allow_credentials"),
    keep("cors.allow_headers"),
    keep("cors.expose_headers"),
    keep("cors.methods"),
    with("cors.max_age", "cors.max_age", duration),
    call("cors.policies", cors::policies),
    call("cors.origins", cors::apollo_origins),
    call("cors.match_origins", cors::apollo_origins),
    with("csrf.unsafe_disabled", "csrf.enabled", negated),
    keep("csrf.required_headers"),
    call("headers.all.request", headers::steps),
    call("headers.subgraphs.*.request", headers::steps),
    call("headers.all.response", headers::steps),
    call("headers.subgraphs.*.response", headers::steps),
    no("headers.connector", CONNECTORS),
    keep("override_subgraph_url.*"),
    with(
        "traffic_shaping.router.timeout",
        "traffic_shaping.router.timeout",
        duration,
    ),
    keep("traffic_shaping.router.concurrency_limit"),
    to(
        "traffic_shaping.router.global_rate_limit.capacity",
        "traffic_shaping.router.rate_limit.capacity",
    ),
    with(
        "traffic_shaping.router.global_rate_limit.interval",
        "traffic_shaping.router.rate_limit.interval",
        duration,
    ),
    with(
        "traffic_shaping.all.timeout",
        "traffic_shaping.all.timeout",
        duration,
    ),
    with(
        "traffic_shaping.subgraphs.*.timeout",
        "traffic_shaping.subgraphs.*.timeout",
        duration,
    ),
    with(
        "traffic_shaping.all.compression",
        "traffic_shaping.all.compression",
        compression,
    ),
    with(
        "traffic_shaping.subgraphs.*.compression",
        "traffic_shaping.subgraphs.*.compression",
        compression,
    ),
    with(
        "traffic_shaping.all.pool_idle_timeout",
        "traffic_shaping.all.pool_idle_timeout",
        duration,
    ),
    with(
        "traffic_shaping.subgraphs.*.pool_idle_timeout",
        "traffic_shaping.subgraphs.*.pool_idle_timeout",
        duration,
    ),
    to(
        "traffic_shaping.all.experimental_retry.min_per_sec",
        "traffic_shaping.all.retry.min_per_sec",
    ),
    to(
        "traffic_shaping.subgraphs.*.experimental_retry.min_per_sec",
        "traffic_shaping.subgraphs.*.retry.min_per_sec",
    ),
    with(
        "traffic_shaping.all.experimental_retry.retry_percent",
        "traffic_shaping.all.retry.budget_percent",
        percent,
    ),
    with(
        "traffic_shaping.subgraphs.*.experimental_retry.retry_percent",
        "traffic_shaping.subgraphs.*.retry.budget_percent",
        percent,
    ),
    unneeded("traffic_shaping.all.experimental_retry.ttl", BUDGET),
    unneeded("traffic_shaping.subgraphs.*.experimental_retry.ttl", BUDGET),
    call(
        "traffic_shaping.all.experimental_retry.retry_mutations",
        settings::retry_mutations,
    ),
    call(
        "traffic_shaping.subgraphs.*.experimental_retry.retry_mutations",
        settings::retry_mutations,
    ),
    no(
        "traffic_shaping.all.dns_resolution_strategy",
        "addresses of both families are tried in turn, the next after a quarter of a second",
    ),
    no(
        "traffic_shaping.subgraphs.*.dns_resolution_strategy",
        "addresses of both families are tried in turn, the next after a quarter of a second",
    ),
    keep("traffic_shaping.all.deduplicate_query"),
    keep("traffic_shaping.subgraphs.*.deduplicate_query"),
    to(
        "traffic_shaping.all.experimental_http2",
        "traffic_shaping.all.http2",
    ),
    to(
        "traffic_shaping.subgraphs.*.experimental_http2",
        "traffic_shaping.subgraphs.*.http2",
    ),
    keep("tls.supergraph.key"),
    call("tls.supergraph.certificate", certificates),
    call("tls.supergraph.certificate_chain", certificates),
    keep("tls.subgraph.all.certificate_authorities"),
    keep("tls.subgraph.all.client_authentication.certificate_chain"),
    keep("tls.subgraph.all.client_authentication.key"),
    keep("tls.subgraph.subgraphs.*.certificate_authorities"),
    keep("tls.subgraph.subgraphs.*.client_authentication.certificate_chain"),
    keep("tls.subgraph.subgraphs.*.client_authentication.key"),
    unneeded("traffic_shaping.deduplicate_variables", ALWAYS),
    call("traffic_shaping.all.global_rate_limit", rates::of_subgraph),
    call(
        "traffic_shaping.subgraphs.*.global_rate_limit",
        rates::of_subgraph,
    ),
    no("traffic_shaping.connector", CONNECTORS),
    keep("apq.enabled"),
    keep("apq.router.cache.in_memory.limit"),
    call("apq.router.cache.redis", redis::apollo),
    unneeded("apq.subgraph", "requests to subgraphs carry their document"),
    keep("persisted_queries.enabled"),
    keep("persisted_queries.local_manifests"),
    to(
        "persisted_queries.experimental_local_manifests",
        "persisted_queries.local_manifests",
    ),
    keep("persisted_queries.log_unknown"),
    call("persisted_queries.safelist.enabled", safelist),
    to(
        "persisted_queries.safelist.require_id",
        "persisted_queries.require_id",
    ),
    unneeded(
        "persisted_queries.experimental_prewarm_query_plan_cache",
        ALWAYS,
    ),
    unneeded(
        "persisted_queries.hot_reload",
        "manifests are watched with `hot_reload.enabled`",
    ),
    call("include_subgraph_errors.all", shown),
    call("include_subgraph_errors.subgraphs.*", shown),
    keep("batching.enabled"),
    keep("batching.maximum_size"),
    unneeded("batching.mode", "there is one mode"),
    unneeded(
        "batching.subgraph",
        "entities of one request are joined anyway",
    ),
    with(
        "telemetry.apollo.client_name_header",
        "telemetry.clients.name_headers",
        texts,
    ),
    with(
        "telemetry.apollo.client_version_header",
        "telemetry.clients.version_headers",
        texts,
    ),
    unneeded("telemetry.apollo", STUDIO),
    call("telemetry.instrumentation.events", telemetry::apollo_events),
    call("telemetry.instrumentation.spans.router", attributes::span),
    call(
        "telemetry.instrumentation.spans.supergraph",
        attributes::span,
    ),
    call("telemetry.instrumentation.spans.subgraph", attributes::span),
    call(
        "telemetry.instrumentation.instruments.router",
        attributes::instruments,
    ),
    call(
        "telemetry.instrumentation.instruments.supergraph",
        attributes::instruments,
    ),
    call(
        "telemetry.instrumentation.instruments.subgraph",
        attributes::instruments,
    ),
    no(
        "telemetry.instrumentation",
        "spans and instruments have fixed names",
    ),
    call("telemetry.exporters.logging.stdout.format", log_format),
    to(
        "telemetry.exporters.metrics.common.service_name",
        "telemetry.service_name",
    ),
    to(
        "telemetry.exporters.tracing.common.service_name",
        "telemetry.service_name",
    ),
    with(
        "telemetry.exporters.metrics.common.resource",
        "telemetry.resource",
        text_map,
    ),
    with(
        "telemetry.exporters.tracing.common.resource",
        "telemetry.resource",
        text_map,
    ),
    keep("telemetry.exporters.metrics.common.buckets"),
    no(
        "telemetry.exporters.metrics.common.views",
        "metrics have fixed names",
    ),
    keep("telemetry.exporters.metrics.prometheus.enabled"),
    with(
        "telemetry.exporters.metrics.prometheus.listen",
        "telemetry.exporters.metrics.prometheus.listen",
        address,
    ),
    keep("telemetry.exporters.metrics.prometheus.path"),
    call("telemetry.exporters.metrics.otlp", telemetry::apollo_otlp),
    call("telemetry.exporters.tracing.otlp", telemetry::apollo_otlp),
    keep("telemetry.exporters.tracing.common.sampler"),
    keep("telemetry.exporters.tracing.common.parent_based_sampler"),
    unneeded(
        "telemetry.exporters.tracing.common",
        "spans have few attributes, all of them bounded",
    ),
    keep("telemetry.exporters.tracing.propagation.trace_context"),
    keep("telemetry.exporters.tracing.propagation.baggage"),
    keep("telemetry.exporters.tracing.propagation.jaeger"),
    keep("telemetry.exporters.tracing.propagation.datadog"),
    to(
        "telemetry.exporters.tracing.propagation.zipkin",
        "telemetry.exporters.tracing.propagation.b3",
    ),
    no(
        "telemetry.exporters.tracing.propagation.aws_xray",
        "collectors translate it",
    ),
    to(
        "telemetry.exporters.tracing.propagation.request.header_name",
        "telemetry.request_id.header",
    ),
    no(
        "telemetry.exporters.tracing.propagation.request",
        "see `telemetry.request_id`",
    ),
    no(
        "telemetry.exporters.tracing.zipkin",
        "send OTLP to a collector",
    ),
    no(
        "telemetry.exporters.tracing.datadog",
        "send OTLP to a collector",
    ),
    no(
        "telemetry.exporters.tracing.experimental_response_trace_id",
        "see `telemetry.request_id`",
    ),
    unneeded(
        "telemetry.exporters.logging",
        "the log goes to standard error",
    ),
    unneeded("apollo_public_metrics", STUDIO),
    unneeded("apollo", STUDIO),
    unneeded("license", "there is nothing to license"),
    unneeded("fleet_detector", STUDIO),
    keep("subscription.enabled"),
    keep("subscription.mode.passthrough.all.path"),
    keep("subscription.mode.passthrough.all.protocol"),
    with(
        "subscription.mode.passthrough.all.heartbeat_interval",
        "subscription.mode.passthrough.all.heartbeat_interval",
        heartbeat,
    ),
    keep("subscription.mode.passthrough.subgraphs.*.path"),
    keep("subscription.mode.passthrough.subgraphs.*.protocol"),
    with(
        "subscription.mode.passthrough.subgraphs.*.heartbeat_interval",
        "subscription.mode.passthrough.subgraphs.*.heartbeat_interval",
        heartbeat,
    ),
    keep("subscription.max_opened_subscriptions"),
    keep("subscription.queue_capacity"),
    keep("subscription.max_reconnect_attempts"),
    with(
        "subscription.reconnect_delay",
        "subscription.reconnect_delay",
        duration,
    ),
    keep("subscription.mode.callback.public_url"),
    keep("subscription.mode.callback.path"),
    keep("subscription.mode.callback.subgraphs"),
    call(
        "subscription.mode.callback.heartbeat_interval",
        subscriptions::callback_heartbeat,
    ),
    call(
        "subscription.mode.callback.listen",
        subscriptions::callback_listener,
    ),
    no("subscription", SUBSCRIPTIONS),
    call("authentication.subgraph.all.aws_sig_v4", signatures::aws),
    call(
        "authentication.subgraph.subgraphs.*.aws_sig_v4",
        signatures::aws,
    ),
    no("authentication.subgraph", SIGNATURES),
    no("authentication.connector", CONNECTORS),
    call("authentication.router.jwt", tokens::apollo),
    no("authentication", CLAIMS),
    no("tls.connector", CONNECTORS),
    with(
        "authorization.directives.enabled",
        "authorization.directives",
        settings::enforced,
    ),
    to(
        "authorization.directives.reject_unauthorized",
        "authorization.reject_unauthorized",
    ),
    to("authorization.directives.dry_run", "authorization.dry_run"),
    no(
        "authorization.directives.errors",
        "what may not be seen is an error of the response, and logged with `dry_run`",
    ),
    call("authorization.require_authentication", tokens::required),
    no("authorization", CLAIMS),
    keep("coprocessor.url"),
    keep("coprocessor.timeout"),
    keep("coprocessor.client.experimental_http2"),
    keep("coprocessor.router.request.headers"),
    with(
        "coprocessor.router.request.context",
        "coprocessor.router.request.context",
        whole,
    ),
    keep("coprocessor.router.request.body"),
    keep("coprocessor.router.request.sdl"),
    keep("coprocessor.router.request.path"),
    keep("coprocessor.router.request.method"),
    keep("coprocessor.router.request.url"),
    keep("coprocessor.router.response.headers"),
    with(
        "coprocessor.router.response.context",
        "coprocessor.router.response.context",
        whole,
    ),
    keep("coprocessor.router.response.body"),
    keep("coprocessor.router.response.sdl"),
    keep("coprocessor.router.response.status_code"),
    keep("coprocessor.router.response.url"),
    keep("coprocessor.supergraph.request.headers"),
    with(
        "coprocessor.supergraph.request.context",
        "coprocessor.supergraph.request.context",
        whole,
    ),
    keep("coprocessor.supergraph.request.body"),
    keep("coprocessor.supergraph.request.sdl"),
    keep("coprocessor.supergraph.request.method"),
    keep("coprocessor.supergraph.request.url"),
    keep("coprocessor.supergraph.response.headers"),
    with(
        "coprocessor.supergraph.response.context",
        "coprocessor.supergraph.response.context",
        whole,
    ),
    keep("coprocessor.supergraph.response.body"),
    keep("coprocessor.supergraph.response.sdl"),
    keep("coprocessor.supergraph.response.status_code"),
    keep("coprocessor.supergraph.response.url"),
    keep("coprocessor.execution.request.headers"),
    with(
        "coprocessor.execution.request.context",
        "coprocessor.execution.request.context",
        whole,
    ),
    keep("coprocessor.execution.request.body"),
    keep("coprocessor.execution.request.sdl"),
    keep("coprocessor.execution.request.method"),
    keep("coprocessor.execution.request.query_plan"),
    keep("coprocessor.execution.request.url"),
    keep("coprocessor.execution.response.headers"),
    with(
        "coprocessor.execution.response.context",
        "coprocessor.execution.response.context",
        whole,
    ),
    keep("coprocessor.execution.response.body"),
    keep("coprocessor.execution.response.sdl"),
    keep("coprocessor.execution.response.status_code"),
    keep("coprocessor.execution.response.url"),
    keep("coprocessor.subgraph.all.request.headers"),
    with(
        "coprocessor.subgraph.all.request.context",
        "coprocessor.subgraph.all.request.context",
        whole,
    ),
    keep("coprocessor.subgraph.all.request.body"),
    keep("coprocessor.subgraph.all.request.uri"),
    keep("coprocessor.subgraph.all.request.method"),
    keep("coprocessor.subgraph.all.request.service_name"),
    keep("coprocessor.subgraph.all.request.subgraph_request_id"),
    keep("coprocessor.subgraph.all.request.url"),
    keep("coprocessor.subgraph.all.response.headers"),
    with(
        "coprocessor.subgraph.all.response.context",
        "coprocessor.subgraph.all.response.context",
        whole,
    ),
    keep("coprocessor.subgraph.all.response.body"),
    keep("coprocessor.subgraph.all.response.service_name"),
    keep("coprocessor.subgraph.all.response.subgraph_request_id"),
    keep("coprocessor.subgraph.all.response.status_code"),
    keep("coprocessor.subgraph.all.response.url"),
    with(
        "coprocessor.router.request.condition",
        "coprocessor.router.request.condition",
        hook_condition::<0>,
    ),
    with(
        "coprocessor.router.response.condition",
        "coprocessor.router.response.condition",
        hook_condition::<1>,
    ),
    with(
        "coprocessor.supergraph.request.condition",
        "coprocessor.supergraph.request.condition",
        hook_condition::<2>,
    ),
    with(
        "coprocessor.supergraph.response.condition",
        "coprocessor.supergraph.response.condition",
        hook_condition::<3>,
    ),
    with(
        "coprocessor.execution.request.condition",
        "coprocessor.execution.request.condition",
        hook_condition::<4>,
    ),
    with(
        "coprocessor.execution.response.condition",
        "coprocessor.execution.response.condition",
        hook_condition::<5>,
    ),
    with(
        "coprocessor.subgraph.all.request.condition",
        "coprocessor.subgraph.all.request.condition",
        hook_condition::<6>,
    ),
    with(
        "coprocessor.subgraph.all.response.condition",
        "coprocessor.subgraph.all.response.condition",
        hook_condition::<7>,
    ),
    no("coprocessor", COPROCESSOR),
    keep("rhai.scripts"),
    keep("rhai.main"),
    no("rhai", CODE),
    no("plugins", CODE),
    keep("demand_control.enabled"),
    keep("demand_control.mode"),
    keep("demand_control.strategy.static_estimated.list_size"),
    keep("demand_control.strategy.static_estimated.max"),
    with(
        "demand_control.strategy.static_estimated.actual_cost_mode",
        "demand_control.strategy.static_estimated.actual_cost_mode",
        actual_cost_mode,
    ),
    keep("demand_control.strategy.static_estimated.subgraph.all.max"),
    keep("demand_control.strategy.static_estimated.subgraph.all.list_size"),
    keep("demand_control.strategy.static_estimated.subgraph.subgraphs.*.max"),
    keep("demand_control.strategy.static_estimated.subgraph.subgraphs.*.list_size"),
    no("demand_control", COSTS),
    no("connectors", CONNECTORS),
    no(
        "progressive_override",
        "labels are switched in `override_labels`",
    ),
    to("preview_file_uploads.enabled", "file_uploads.enabled"),
    unneeded(
        "preview_file_uploads.protocols.multipart.enabled",
        "it is the only protocol",
    ),
    unneeded("preview_file_uploads.protocols.multipart.mode", ALWAYS),
    with(
        "preview_file_uploads.protocols.multipart.limits.max_file_size",
        "file_uploads.max_file_size",
        size,
    ),
    to(
        "preview_file_uploads.protocols.multipart.limits.max_files",
        "file_uploads.max_files",
    ),
    no("preview_entity_cache", CACHES),
    no("response_cache", CACHES),
    unneeded("experimental_type_conditioned_fetching", ALWAYS),
    call("forbid_mutations", mutations),
];

/// A condition of the hook of this place, if all that it looks at is there.
fn hook_condition<const AT: usize>(format: Format, node: &Node) -> Result<Node, String> {
    let mut errors = Errors::new(SourceId(0));
    match HookCondition::decode_at(node, ogive_config::HOOK_PLACES[AT], true, &mut errors) {
        Some(_) if errors.is_empty() => whole(format, node),
        _ => Err("it looks at something that conditions do not look at here".to_owned()),
    }
}

/// What Apollo Router does without being told.
pub(crate) fn finish(walk: &mut Walk<'_>) {
    if walk.text("health_check.enabled") != Some("false") {
        let why = "Apollo Router's default address for health";
        walk.implied("health_check.listen", "127.0.0.1:8088", why);
    }
    if walk.is_on("persisted_queries.enabled") && !walk.has("persisted_queries.local_manifests") {
        let why = "its documents come from GraphOS, which Ogive does not query: publish a manifest (`ogive operations publish`) and name it in `persisted_queries.sources`";
        walk.lost(&["persisted_queries".to_owned()], why);
    }
    if walk.has("telemetry.request_id.header") {
        walk.implied(
            "telemetry.request_id.enabled",
            "true",
            "a header for request ids is named",
        );
    }
    tokens::enforce(walk, "Apollo Router enforces them by default");
    walk.implied(
        "http.graphql_endpoint",
        "/",
        "Apollo Router serves GraphQL at `/` by default",
    );
    if walk.has("traffic_shaping.router.rate_limit.interval")
        || walk.has("traffic_shaping.router.rate_limit.capacity")
    {
        walk.implied(
            "traffic_shaping.router.rate_limit.key",
            "global",
            "a global rate limit",
        );
    }
}

/// A switch there, a word here.
fn safelist(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let mode = if is_on(node) { "require" } else { "allow" };
    walk.put(path, "persisted_queries.mode", plain(mode), "");
}

/// Actual costs are those of whole responses here, where Apollo Router can also add up those of subgraphs.
fn actual_cost_mode(format: Format, node: &Node) -> Result<Node, String> {
    match scalar(node) {
        Some("by_response_shape") => same(format, node),
        _ => Err("actual costs are counted from the response: `by_response_shape`".to_owned()),
    }
}

fn log_format(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    walk.others(path, node, &["json", "text"]);
    for name in ["json", "text"] {
        let Some(Value::Map(options)) = at(node, name).map(|node| &node.value) else {
            continue;
        };
        for (key, _) in options {
            let from = [path, &[name.to_owned(), key.text.clone()]].concat();
            walk.unsupported(&from, "lines of the log have fixed fields");
        }
    }
    let word = match &node.value {
        Value::Map(entries) => entries
            .iter()
            .map(|(key, _)| key.text.as_str())
            .find(|word| ["json", "text"].contains(word)),
        _ => scalar(node),
    };
    match word {
        Some("json") => walk.put(path, "log.format", plain("json"), ""),
        Some("text") => walk.put(path, "log.format", plain("text"), ""),
        _ => walk.unsupported(path, "formats are `text` and `json`"),
    }
}

fn validation_messages(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match scalar(node) {
        Some("false") => walk.not_needed(path, OFF),
        _ => {
            let why = "messages name what is wrong, and suggest nothing; `persisted_queries.mode: require` hides them";
            walk.unsupported(path, why);
        }
    }
}

fn mutations(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match scalar(node) {
        Some("false") => walk.not_needed(path, OFF),
        Some("true") => walk.refuse(path, "mutations"),
        // Only the environment knows the value.
        _ => walk.unsupported(path, MUTATIONS),
    }
}

/// Whether errors are shown, and which of their extensions. Extensions are those of all subgraphs here.
fn shown(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    const EXTENSIONS: &str = "include_subgraph_errors.extensions";
    let target = dotted(path);
    let Value::Map(entries) = &node.value else {
        match scalar(node) {
            Some("true") => {
                walk.put(path, &target, plain("true"), "");
                let why = "Apollo Router shows all extensions of errors that are shown";
                if !chooses_extensions(walk) {
                    walk.implied_list(EXTENSIONS, &["*"], why);
                }
            }
            Some("false") => walk.put(path, &target, plain("false"), ""),
            _ => walk.try_put(path, &target, same(walk.format, node)),
        }
        return;
    };
    let of_all = path.last().is_some_and(|last| last == "all") && path.len() == 2;
    for (key, value) in entries {
        let mut below = path.to_vec();
        below.push(key.text.clone());
        match (&*key.text, scalar(value)) {
            ("redact_message", Some("false")) => walk.put(&below, &target, plain("true"), ""),
            ("redact_message", _) => {
                let why = "code and extensions are shown with the message, or nothing is";
                walk.put(&below, &target, plain("false"), why);
            }
            ("redact_locations", Some("true")) => {
                walk.not_needed(&below, "places in requests to subgraphs are never shown");
            }
            ("allow_extensions_keys", _) if !of_all => {
                walk.unsupported(&below, "one list of extensions holds for all subgraphs");
            }
            ("allow_extensions_keys", _) => {
                let note = "for all subgraphs whose errors are shown";
                match same(walk.format, value) {
                    Ok(names) => walk.put(&below, EXTENSIONS, names, note),
                    Err(why) => walk.unsupported(&below, &why),
                }
            }
            _ => walk.unsupported(&below, "name the extensions that are shown instead"),
        }
    }
}

/// Whether any subgraph's extensions are chosen, so that not all of all subgraphs may be shown.
fn chooses_extensions(walk: &Walk<'_>) -> bool {
    let Some(shown) = at(walk.root, "include_subgraph_errors") else {
        return false;
    };
    let mut open = vec![shown];
    while let Some(node) = open.pop() {
        let Value::Map(entries) = &node.value else {
            continue;
        };
        if entries.iter().any(|(key, _)| key.text.ends_with("_keys")) {
            return true;
        }
        open.extend(entries.iter().map(|(_, below)| below));
    }
    false
}

/// The certificate and those that lead to its authority are two keys there, and one text here.
fn certificates(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    const TARGET: &str = "tls.supergraph.certificate_chain";
    let own = walk.text("tls.supergraph.certificate");
    match (own, walk.text(TARGET)) {
        (Some(own), Some(chain)) => {
            let both = format!("{own}\n{chain}");
            let note = "the certificate, and those that lead to its authority";
            walk.put(path, TARGET, text(both), note);
        }
        _ => walk.try_put(path, TARGET, same(walk.format, node)),
    }
}

/// A duration, or a word: on is every ten seconds.
fn heartbeat(format: Format, node: &Node) -> Result<Node, String> {
    match scalar(node) {
        Some("enabled" | "true") => Ok(plain("10s")),
        Some("disabled" | "false") => Ok(plain("0s")),
        _ => duration(format, node),
    }
}

fn compression(_: Format, node: &Node) -> Result<Node, String> {
    match scalar(node) {
        Some(word @ ("gzip" | "br" | "zstd")) => Ok(plain(word)),
        Some("identity") => Err("no compression is the default".into()),
        _ => Err("encodings are `gzip`, `br` and `zstd`".into()),
    }
}
