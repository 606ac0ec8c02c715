//! Cosmo Router's `config.yaml`.

use ogive_yaml::{Node, Value};

use super::{
    Verdict, attributes,
    convert::{address, brokers, duration, negated, same, size, texts},
    cors, costs, headers,
    nodes::{at, dotted, is_on, map, one, plain, quoted, scalar, set, text},
    rates, redis,
    rules::{Rule, Walk, bound, call, gate, no, noted, to, unneeded, with},
    section::{Entry, breaker_off, defaults, section},
    subscriptions, telemetry, tokens,
    why::{CLAIMS, CODE, COSTS, EVENTS, MUTATIONS, OFF, SUBSCRIPTIONS, TOOLS},
};

const COSMO: &str = "it is about Cosmo's own services";
const CONNECTING: &str = "part of the time for connecting";
const WHOLE: &str = "part of the time for the whole request";
const CONTINUE: &str = "it is not used";
const PROBES: &str = "dead connections are noticed and replaced";
const BUSY: &str = "busy connections are bounded by the requests";
const SUPERGRAPH: &str =
    "Cosmo's execution configuration is no supergraph; compose one with `ogive compose`";

pub(crate) const RULES: &[Rule] = &[
    unneeded("version", "there is one version"),
    with("listen_addr", "listen", address),
    to("graphql_path", "http.graphql_endpoint"),
    to("introspection_enabled", "supergraph.introspection"),
    to("introspection.enabled", "supergraph.introspection"),
    no(
        "introspection.secret",
        "introspection is on for every caller or off",
    ),
    to("playground.enabled", "homepage.enabled"),
    to("playground.path", "homepage.path"),
    unneeded("playground.concurrency_limit", "the page costs nothing"),
    to("playground_enabled", "homepage.enabled"),
    to("playground_path", "homepage.path"),
    to("log_level", "log.filter"),
    call("json_log", json_log),
    unneeded(
        "dev_mode",
        "set what it stands for: introspection and errors of subgraphs",
    ),
    with("grace_period", "http.connection_shutdown_timeout", duration),
    unneeded(
        "shutdown_delay",
        "readiness turns false at once, and what is in flight finishes",
    ),
    to("liveness_check_path", "health_check.path"),
    call("health_check_path", health),
    to("readiness_check_path", "health_check.readiness_path"),
    to("watch_config.enabled", "hot_reload.enabled"),
    bound("watch_config.interval", "hot_reload.interval", duration),
    unneeded("watch_config.startup_delay", "reloads fail no requests"),
    call("cors.enabled", cors_switch),
    call("cors.allow_origins", cors::cosmo_origins),
    to("cors.allow_methods", "cors.methods"),
    to("cors.allow_headers", "cors.allow_headers"),
    to("cors.allow_credentials", "cors.allow_credentials"),
    with("cors.max_age", "cors.max_age", duration),
    call("cors.match_origins", cors::cosmo_patterns),
    call("headers.all.request", headers::operations),
    call("headers.subgraphs.*.request", headers::operations),
    call("headers.all.response", headers::operations),
    call("headers.subgraphs.*.response", headers::operations),
    call("headers.router.response", router_response),
    no(
        "headers.cookie_whitelist",
        "a rule for `cookie` passes all cookies on or none",
    ),
    to(
        "override_routing_url.subgraphs.*",
        "override_subgraph_url.*",
    ),
    to(
        "overrides.subgraphs.*.routing_url",
        "override_subgraph_url.*",
    ),
    no("overrides.subgraphs.*.subscription_url", SUBSCRIPTIONS),
    call(
        "overrides.subgraphs.*.subscription_protocol",
        subscriptions::cosmo_protocol,
    ),
    call(
        "overrides.subgraphs.*.subscription_websocket_subprotocol",
        subscriptions::cosmo_subprotocol,
    ),
    bound(
        "traffic_shaping.router.max_request_body_size",
        "limits.http_max_request_bytes",
        size,
    ),
    bound(
        "traffic_shaping.router.max_header_bytes",
        "limits.http1_max_request_buf_size",
        size,
    ),
    unneeded(
        "traffic_shaping.router.decompression_enabled",
        "encoded bodies are always read",
    ),
    with(
        "traffic_shaping.router.response_compression_min_size",
        "http.compression.min_bytes",
        size,
    ),
    bound(
        "traffic_shaping.all.request_timeout",
        "traffic_shaping.all.timeout",
        duration,
    ),
    bound(
        "traffic_shaping.subgraphs.*.request_timeout",
        "traffic_shaping.subgraphs.*.timeout",
        duration,
    ),
    bound(
        "traffic_shaping.all.dial_timeout",
        "traffic_shaping.all.connect_timeout",
        duration,
    ),
    bound(
        "traffic_shaping.subgraphs.*.dial_timeout",
        "traffic_shaping.subgraphs.*.connect_timeout",
        duration,
    ),
    call("traffic_shaping.all.keep_alive_idle_timeout", idle),
    call("traffic_shaping.subgraphs.*.keep_alive_idle_timeout", idle),
    call("traffic_shaping.all.retry", retry),
    call("traffic_shaping.subgraphs.*.retry", retry),
    call("traffic_shaping.all.circuit_breaker", breaker),
    call("traffic_shaping.subgraphs.*.circuit_breaker", breaker),
    unneeded("traffic_shaping.all.tls_handshake_timeout", CONNECTING),
    unneeded(
        "traffic_shaping.subgraphs.*.tls_handshake_timeout",
        CONNECTING,
    ),
    unneeded("traffic_shaping.all.response_header_timeout", WHOLE),
    unneeded("traffic_shaping.subgraphs.*.response_header_timeout", WHOLE),
    unneeded("traffic_shaping.all.expect_continue_timeout", CONTINUE),
    unneeded(
        "traffic_shaping.subgraphs.*.expect_continue_timeout",
        CONTINUE,
    ),
    unneeded("traffic_shaping.all.keep_alive_probe_interval", PROBES),
    unneeded(
        "traffic_shaping.subgraphs.*.keep_alive_probe_interval",
        PROBES,
    ),
    bound(
        "traffic_shaping.all.max_idle_conns",
        "traffic_shaping.pool_idle_total_max",
        same,
    ),
    unneeded(
        "traffic_shaping.subgraphs.*.max_idle_conns",
        "idle connections are bounded per subgraph",
    ),
    unneeded("traffic_shaping.all.max_conns_per_host", BUSY),
    unneeded("traffic_shaping.subgraphs.*.max_conns_per_host", BUSY),
    call("security.complexity_limits.depth", complexity),
    call("security.complexity_limits.total_fields", complexity),
    call("security.complexity_limits.root_fields", complexity),
    call("security.complexity_limits.root_field_aliases", complexity),
    call("security.complexity_limits.mode", complexity_mode),
    call(
        "security.complexity_limits.ignore_introspection",
        bounded_introspection,
    ),
    call("security.depth_limit", complexity),
    unneeded(
        "security.complexity_calculation_cache",
        "limits are checked once per operation",
    ),
    no(
        "security.operation_name_length_limit",
        "names of operations are bounded with the document (`limits.parser_max_tokens`, `limits.http_max_request_bytes`)",
    ),
    no("security.cost_analysis", COSTS),
    call("security.cost_control", costs::cosmo),
    no(
        "security.parser_limits",
        "set `limits.parser_max_recursion` and `limits.parser_max_tokens`",
    ),
    call("security.block_mutations", block_mutations),
    call("security.block_subscriptions", block_subscriptions),
    call("security.block_non_persisted_operations", only_persisted),
    call("security.block_persisted_operations", no_persisted),
    call("rate_limit", rates::cosmo),
    to("automatic_persisted_queries.enabled", "apq.enabled"),
    unneeded(
        "automatic_persisted_queries.cache",
        "bounded by `apq.router.cache.in_memory.limit`",
    ),
    call(
        "automatic_persisted_queries.storage",
        redis::cosmo_documents,
    ),
    call("persisted_operations.safelist.enabled", safelist),
    call("persisted_operations.log_unknown", safelist),
    unneeded("persisted_operations.cache", "manifests are kept whole"),
    call("persisted_operations.storage", operations_storage),
    with(
        "persisted_operations.disabled",
        "persisted_queries.enabled",
        negated,
    ),
    call("subgraph_error_propagation.mode", error_mode),
    call("subgraph_error_propagation.enabled", error_mode),
    unneeded(
        "subgraph_error_propagation.rewrite_paths",
        "paths are always those of the client's operation",
    ),
    unneeded(
        "subgraph_error_propagation.default_extension_code",
        "it is `DOWNSTREAM_SERVICE_ERROR` here, too",
    ),
    with(
        "subgraph_error_propagation.allowed_extension_fields",
        "include_subgraph_errors.extensions",
        same,
    ),
    call(
        "subgraph_error_propagation.allow_all_extension_fields",
        all_extensions,
    ),
    call("subgraph_error_propagation.omit_locations", omitted),
    call("subgraph_error_propagation.omit_extensions", omitted),
    no(
        "subgraph_error_propagation.propagate_status_codes",
        "statuses of subgraphs are for the gateway; `telemetry` counts them",
    ),
    call(
        "subgraph_error_propagation.attach_service_name",
        service_name,
    ),
    unneeded(
        "subgraph_error_propagation.allowed_fields",
        "errors have a message, a path, locations and extensions only",
    ),
    no(
        "subgraph_error_propagation",
        "errors of a subgraph are shown or not",
    ),
    no(
        "subgraph_error_propagation.*",
        "errors of a subgraph are shown or not",
    ),
    to("batching.enabled", "batching.enabled"),
    bound(
        "batching.max_entries_per_batch",
        "batching.maximum_size",
        same,
    ),
    unneeded(
        "batching.max_concurrency",
        "entries share the request's thread",
    ),
    unneeded("batching.omit_extensions", "errors carry their code"),
    bound(
        "engine.execution_plan_cache_size",
        "query_planning.cache.size",
        same,
    ),
    unneeded(
        "engine.enable_single_flight",
        "equal requests in flight are decided here",
    ),
    to(
        "engine.enable_subgraph_fetch_operation_name",
        "traffic_shaping.all.operation_names",
    ),
    unneeded("engine", "the engine needs no tuning"),
    to("access_logs.enabled", "telemetry.access_log.enabled"),
    to("access_logs.output.file.path", "telemetry.access_log.path"),
    call("access_logs.router.fields", attributes::cosmo),
    no("access_logs", "choose `telemetry.access_log.fields`"),
    call("telemetry.attributes", attributes::cosmo),
    call("telemetry.tracing.attributes", attributes::cosmo),
    call("telemetry.metrics.attributes", attributes::cosmo),
    to("telemetry.service_name", "telemetry.service_name"),
    call("telemetry.resource_attributes", attributes::cosmo_resource),
    call("telemetry.tracing.exporters", telemetry::exporters),
    call("telemetry.metrics.otlp.exporters", telemetry::exporters),
    call("telemetry.tracing.enabled", switch),
    call("telemetry.metrics.otlp.enabled", switch),
    to(
        "telemetry.tracing.sampling_rate",
        "telemetry.exporters.tracing.common.sampler",
    ),
    to(
        "telemetry.tracing.parent_based_sampler",
        "telemetry.exporters.tracing.common.parent_based_sampler",
    ),
    call("telemetry.tracing.propagation", telemetry::propagation),
    no("telemetry.tracing", "spans have fixed attributes"),
    to(
        "telemetry.metrics.prometheus.enabled",
        "telemetry.exporters.metrics.prometheus.enabled",
    ),
    to(
        "telemetry.metrics.prometheus.path",
        "telemetry.exporters.metrics.prometheus.path",
    ),
    with(
        "telemetry.metrics.prometheus.listen_addr",
        "telemetry.exporters.metrics.prometheus.listen",
        address,
    ),
    no("telemetry.metrics", "metrics have fixed names and labels"),
    unneeded("graph", COSMO),
    unneeded("cdn", COSMO),
    unneeded("controlplane_url", COSMO),
    unneeded("poll_interval", COSMO),
    unneeded("router_registration", COSMO),
    unneeded("poll_jitter", COSMO),
    unneeded(
        "cache_warmup",
        "every kept operation is planned before a new schema serves",
    ),
    unneeded(
        "query_plans_enabled",
        "`query_planning.expose.enabled` shows plans",
    ),
    unneeded(
        "apollo_router_compatibility_flags",
        "statuses and codes are those of Apollo Router",
    ),
    unneeded("graphql_metrics", COSMO),
    unneeded("instance_id", COSMO),
    unneeded("cluster", COSMO),
    unneeded(
        "compliance",
        "addresses of clients are logged only where `telemetry.access_log.fields` names them",
    ),
    unneeded(
        "localhost_fallback_inside_docker",
        "name the host as the container sees it",
    ),
    unneeded("demo_mode", "`ogive demo` is one"),
    with(
        "client_header.name",
        "telemetry.clients.name_headers",
        texts,
    ),
    with(
        "client_header.version",
        "telemetry.clients.version_headers",
        texts,
    ),
    unneeded(
        "apollo_compatibility_flags",
        "statuses and codes are those of Apollo Router",
    ),
    no("execution_config", SUPERGRAPH),
    no("router_config_path", SUPERGRAPH),
    noted(
        "cache_control_policy.enabled",
        "headers.all.response",
        cache_control,
        "",
    ),
    no(
        "cache_control_policy",
        "write `default` into a rule for `cache-control`",
    ),
    gate("tls.server", tls_off),
    unneeded("tls.server.enabled", "TLS is on where a key is set"),
    to("tls.server.cert_file", "tls.supergraph.certificate_chain"),
    to("tls.server.key_file", "tls.supergraph.key"),
    to(
        "tls.server.client_auth.cert_file",
        "tls.supergraph.client_authentication.certificate_authorities",
    ),
    to(
        "tls.server.client_auth.required",
        "tls.supergraph.client_authentication.required",
    ),
    to(
        "tls.client.all.ca_file",
        "tls.subgraph.all.certificate_authorities",
    ),
    to(
        "tls.client.all.cert_file",
        "tls.subgraph.all.client_authentication.certificate_chain",
    ),
    to(
        "tls.client.all.key_file",
        "tls.subgraph.all.client_authentication.key",
    ),
    to(
        "tls.client.all.insecure_skip_ca_verification",
        "tls.subgraph.all.insecure_skip_verify",
    ),
    to(
        "tls.client.subgraphs.*.ca_file",
        "tls.subgraph.subgraphs.*.certificate_authorities",
    ),
    to(
        "tls.client.subgraphs.*.cert_file",
        "tls.subgraph.subgraphs.*.client_authentication.certificate_chain",
    ),
    to(
        "tls.client.subgraphs.*.key_file",
        "tls.subgraph.subgraphs.*.client_authentication.key",
    ),
    to(
        "tls.client.subgraphs.*.insecure_skip_ca_verification",
        "tls.subgraph.subgraphs.*.insecure_skip_verify",
    ),
    to("file_upload.enabled", "file_uploads.enabled"),
    bound("file_upload.max_size", "file_uploads.max_file_size", size),
    bound(
        "file_upload.max_file_size",
        "file_uploads.max_file_size",
        size,
    ),
    bound("file_upload.max_files", "file_uploads.max_files", same),
    call("authentication.jwt", tokens::cosmo),
    no(
        "authentication.ignore_introspection",
        "introspection is for callers alone where callers are required",
    ),
    no("authentication", CLAIMS),
    to(
        "authorization.reject_operation_if_unauthorized",
        "authorization.reject_unauthorized",
    ),
    call("authorization.require_authentication", tokens::required),
    with("events.providers.nats", "events.providers.nats", brokers),
    with("events.providers.kafka", "events.providers.kafka", brokers),
    with("events.providers.redis", "events.providers.redis", brokers),
    no("events", EVENTS),
    to("websocket.enabled", "subscription.client.websocket.enabled"),
    no("websocket", SUBSCRIPTIONS),
    no("modules", CODE),
    no("plugins", CODE),
    no("mcp", TOOLS),
    no("connect_rpc", TOOLS),
    unneeded("storage_providers", "what refers to one says where it is"),
];

/// Writes Cosmo Router's defaults that differ from ours.
pub(crate) fn finish(walk: &mut Walk<'_>) {
    if walk.text("introspection.secret").is_some() {
        walk.unset("supergraph.introspection");
        let why = "Cosmo Router answers introspection only with its secret; secrets are not supported here, so introspection is off";
        walk.implied("supergraph.introspection", "false", why);
    }
    let why = "Cosmo Router listens on port 3002 by default";
    walk.implied("listen", "localhost:3002", why);
    walk.implied(
        "supergraph.introspection",
        "true",
        "Cosmo Router answers introspection by default",
    );
    let cors_off = walk.text("cors.enabled") == Some("false");
    let listed = ["cors.allow_origins", "cors.match_origins"];
    let listed = listed.iter().any(|key| at(walk.root, key).is_some());
    if !cors_off && !listed {
        walk.implied(
            "cors.allow_any_origin",
            "true",
            "Cosmo Router admits every origin by default; list yours in `cors.policies`",
        );
    }
    let required = walk.text("security.block_non_persisted_operations.enabled");
    let required = required.is_some_and(|on| on != "false")
        || walk.is_on("persisted_operations.safelist.enabled")
        || walk.text("security.block_non_persisted_operations") == Some("true");
    if required && at(walk.root, "persisted_operations.storage").is_none() {
        let from = ["persisted_operations", "storage"].map(str::to_owned);
        let why = "without one, operations come from Cosmo's CDN, which Ogive does not query: publish a manifest (`ogive operations publish`) and name it in `persisted_queries.sources`";
        walk.lost(&from, why);
    }
    if listed && !cors_off && !walk.has("cors.allow_any_origin") {
        let why = "Cosmo Router rejects requests from pages whose origin is not listed; here this guard does";
        walk.implied("csrf.enabled", "true", why);
    }
    walk.implied(
        "csrf.enabled",
        "false",
        "Cosmo Router has no such guard; on is safer",
    );
    if at(walk.root, "health_check_path").is_none()
        && at(walk.root, "liveness_check_path").is_none()
    {
        walk.implied("health_check.path", "/health/live", "Cosmo Router's path");
    }
    // Those that are blocked for some are blocked for all: conditions are lost.
    let blocked = at(walk.root, "security.block_subscriptions");
    if !blocked.is_some_and(|node| blocks(node).0) {
        subscriptions::served(walk);
    }
    tokens::enforce(walk, "Cosmo Router enforces them whatever is set");
    pass_no_cookies(walk);
    own_tls(walk);
    let prometheus = "telemetry.exporters.metrics.prometheus";
    let why = "Cosmo Router serves metrics by default";
    walk.implied(&format!("{prometheus}.enabled"), "true", why);
    walk.implied(
        &format!("{prometheus}.listen"),
        "127.0.0.1:8088",
        "Cosmo Router's address",
    );
    walk.implied(
        "health_check.readiness_path",
        "/health/ready",
        "Cosmo Router's path",
    );
}

/// What chose among cookies is lost, so no subgraph gets any.
fn pass_no_cookies(walk: &mut Walk<'_>) {
    let chosen = at(walk.root, "headers.cookie_whitelist").filter(|node| !node.is_null());
    if !chosen.is_some_and(|node| !matches!(&node.value, Value::List(items) if items.is_empty())) {
        return;
    }
    let subgraphs = at(walk.root, "headers.subgraphs").map(|node| &node.value);
    let names: Vec<String> = match subgraphs {
        Some(Value::Map(entries)) => entries
            .iter()
            .map(|(key, _)| quoted(&key.text).into())
            .collect(),
        _ => Vec::new(),
    };
    let targets = names
        .iter()
        .map(|name| format!("headers.subgraphs.{name}.request"));
    for target in std::iter::once("headers.all.request".to_owned()).chain(targets) {
        if walk.has(&target) {
            let (mut remove, mut rule) = (map(), map());
            set(&mut remove, "named", text("cookie"));
            set(&mut rule, "remove", remove);
            let why = "what chose among cookies is lost, so none is passed on";
            walk.implied_item(&target, rule, why);
        }
    }
}

/// In Cosmo Router a subgraph's section replaces `all`; here it inherits the keys that it does not set.
fn own_tls(walk: &mut Walk<'_>) {
    const ALL: &str = "tls.client.all";
    let of_all = |key: &str| at(walk.root, &format!("{ALL}.{key}")).filter(|node| !node.is_null());
    let (skips, shows) = (
        of_all("insecure_skip_ca_verification").is_some_and(is_on),
        of_all("cert_file").is_some(),
    );
    let subgraphs = at(walk.root, "tls.client.subgraphs").map(|node| &node.value);
    let Some(Value::Map(entries)) = subgraphs else {
        return;
    };
    for (name, own) in entries {
        let target = format!(
            "tls.subgraph.subgraphs.{}.insecure_skip_verify",
            quoted(&name.text)
        );
        if skips && at(own, "insecure_skip_ca_verification").is_none() {
            walk.implied(
                &target,
                "false",
                "in Cosmo Router, the subgraph's section replaces `all`",
            );
        }
        if shows && at(own, "cert_file").is_none() {
            let from = ["tls", "client", "subgraphs", &name.text, "cert_file"].map(str::to_owned);
            let why = "Cosmo Router sends this subgraph no certificate; here it gets the one of `all`, if it requests one";
            walk.row(&from, None, Verdict::Unsupported, why);
        }
    }
}

/// Cosmo Router ignores the files unless the switch is on.
fn tls_off(walk: &mut Walk<'_>, path: &[String], node: &Node) -> bool {
    let is_off = !at(node, "enabled").is_some_and(is_on);
    if is_off {
        walk.not_needed(path, OFF);
    }
    is_off
}

/// What Cosmo sends to its own services unless exporters are listed.
fn switch(walk: &mut Walk<'_>, path: &[String], _: &Node) {
    let why = "it is on where an exporter is listed";
    walk.not_needed(path, why);
}

fn cache_control(_: super::Format, _: &Node) -> Result<Node, String> {
    Err("write `default` into a rule for `cache-control`".into())
}

fn json_log(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let format = match scalar(node) {
        Some("true") => "json",
        _ => "text",
    };
    walk.put(path, "log.format", plain(format), "");
}

/// Two liveness paths there, one here.
fn health(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    if at(walk.root, "liveness_check_path").is_some() {
        let why = "`health_check.path` is the liveness path; use that";
        walk.unsupported(path, why);
        return;
    }
    let target = "health_check.path";
    match same(walk.format, node) {
        Ok(value) if scalar(node) == Some("/health/live") => walk.put(path, target, value, ""),
        Ok(value) => {
            let note = "the only one: `/health/live`, which Cosmo Router serves as well, is not";
            walk.put(path, target, value, note);
        }
        Err(why) => walk.unsupported(path, &why),
    }
}

fn cors_switch(walk: &mut Walk<'_>, path: &[String], _: &Node) {
    let why = "CORS is on if a policy or `allow_any_origin` is set";
    walk.not_needed(path, why);
}

fn router_response(walk: &mut Walk<'_>, path: &[String], _: &Node) {
    let why = "headers of the gateway's own are not set by rules";
    walk.unsupported(path, why);
}

/// Zero is Go's word for "as the library does".
fn idle(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let mut target = dotted(&path[..path.len() - 1]);
    target.push_str(".pool_idle_timeout");
    match (scalar(node), duration(walk.format, node)) {
        (Some("0s" | "0"), _) => walk.not_needed(path, "the default holds"),
        (_, Ok(value)) => walk.put(path, &target, value, ""),
        (_, Err(why)) => walk.unsupported(path, &why),
    }
}

fn retry(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    // Without any of its own, what Cosmo Router has.
    const DEFAULTS: [(&str, &str); 3] =
        [("attempts", "5"), ("backoff", "3s"), ("backoff_max", "10s")];
    section(walk, path, node, |format, key, value| match key {
        "max_attempts" => Entry::To("attempts", same(format, value)),
        "interval" => Entry::To("backoff", duration(format, value)),
        "max_duration" => Entry::To("backoff_max", duration(format, value)),
        "algorithm" => Entry::NotNeeded("waits grow and are random here, too"),
        _ => Entry::Unknown,
    });
    if at(node, "enabled").is_some_and(is_on) {
        defaults(walk, path, &DEFAULTS, "Cosmo Router's default");
    }
}

fn breaker(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    // Without any of its own, what Cosmo Router has.
    const DEFAULTS: [(&str, &str); 4] = [
        ("error_threshold_percent", "50"),
        ("volume_threshold", "20"),
        ("window", "10s"),
        ("reset_timeout", "5s"),
    ];
    if !at(node, "enabled").is_some_and(is_on) {
        return breaker_off(walk, path);
    }
    section(walk, path, node, |format, key, value| match key {
        "error_threshold_percentage" => Entry::To("error_threshold_percent", same(format, value)),
        "request_threshold" => Entry::To("volume_threshold", same(format, value)),
        "rolling_duration" => Entry::To("window", duration(format, value)),
        "sleep_window" => Entry::To("reset_timeout", duration(format, value)),
        "half_open_attempts" | "required_successful" => {
            Entry::NotNeeded("one request tries again, and its answer decides")
        }
        "num_buckets" => Entry::NotNeeded("the window slides"),
        _ => Entry::Unknown,
    });
    defaults(walk, path, &DEFAULTS, "Cosmo Router's default");
}

fn complexity(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = match path.last().map(String::as_str) {
        Some("total_fields") => "limits.max_height",
        Some("root_fields") => "limits.max_root_fields",
        Some("root_field_aliases") => "limits.max_aliases",
        _ => "limits.max_depth",
    };
    const PERSISTED: &str = "ignore_persisted_operations";
    walk.others(path, node, &["enabled", "limit", PERSISTED]);
    let on = at(node, "enabled").is_some_and(is_on);
    if let Some(ignored) = at(node, PERSISTED).filter(|_| on) {
        let from = [path, &[PERSISTED.to_owned()]].concat();
        let why = "documents that are known by their id are bounded, too";
        let verdict = if is_on(ignored) {
            Verdict::Unsupported
        } else {
            Verdict::NotNeeded
        };
        walk.row(&from, None, verdict, why);
    }
    match (on, at(node, "limit")) {
        (true, Some(limit)) => {
            let limit = same(walk.format, limit);
            let is_kept = limit.is_ok();
            walk.try_put(path, target, limit);
            if is_kept && target == "limits.max_aliases" {
                walk.note("aliases of all fields count, not those of root fields alone");
            }
        }
        _ => walk.not_needed(path, OFF),
    }
}

/// Limits are enforced here, whatever is measured there.
fn complexity_mode(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match scalar(node) {
        Some("enforce") => walk.not_needed(path, "limits are enforced"),
        _ => {
            let why = "limits are enforced; `limits.warn_only` has them logged instead";
            walk.row(path, None, Verdict::Unsupported, why);
        }
    }
}

fn bounded_introspection(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    const WHY: &str = "introspection is bounded as all operations are";
    match scalar(node) {
        Some("false") => walk.not_needed(path, WHY),
        _ => walk.row(path, None, Verdict::Unsupported, WHY),
    }
}

/// A switch, or `{ enabled, condition }`: whether it is on, and whether that depends on the request.
fn blocks(node: &Node) -> (bool, bool) {
    let switch = at(node, "enabled").unwrap_or(node);
    let condition = at(node, "condition").and_then(scalar);
    // A section without `enabled` is off; a switch whose value is not `false` is on.
    let section = matches!(switch.value, Value::Map(_));
    (
        !section && is_on(switch),
        condition.is_some_and(|condition| !condition.is_empty()),
    )
}

const CONDITIONS: &str = "expressions per request have no counterpart";

const SWITCH: [&str; 2] = ["enabled", "condition"];

fn block_mutations(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    walk.others(path, node, &SWITCH);
    match blocks(node) {
        (false, _) => walk.not_needed(path, OFF),
        (true, false) if is_plainly_on(node) => walk.refuse(path, "mutations"),
        (true, _) => walk.unsupported(path, MUTATIONS),
    }
}

/// `finish` turns subscriptions on unless they are blocked, so the switch means what it means in Cosmo Router.
fn block_subscriptions(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    walk.others(path, node, &SWITCH);
    match blocks(node) {
        (false, _) => walk.not_needed(path, OFF),
        (true, false) if is_plainly_on(node) => walk.refuse(path, "subscriptions"),
        (true, _) => walk.unsupported(path, CONDITIONS),
    }
}

fn is_plainly_on(node: &Node) -> bool {
    at(node, "enabled").map_or_else(|| scalar(node), scalar) == Some("true")
}

fn only_persisted(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    walk.others(path, node, &SWITCH);
    match blocks(node) {
        (false, _) => walk.not_needed(path, OFF),
        (true, true) => walk.unsupported(path, CONDITIONS),
        (true, false) => {
            let note = "clients send the id of an operation";
            walk.put(path, "persisted_queries.mode", plain("require"), note);
            walk.put(path, "persisted_queries.require_id", plain("true"), note);
            let why = "Cosmo Router has persisted operations on";
            walk.implied("persisted_queries.enabled", "true", why);
        }
    }
}

fn no_persisted(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    walk.others(path, node, &SWITCH);
    match blocks(node) {
        (false, _) => walk.not_needed(path, OFF),
        (true, true) => walk.unsupported(path, CONDITIONS),
        (true, false) => {
            walk.put(path, "persisted_queries.enabled", plain("false"), "");
        }
    }
}

/// What clients never see here.
fn omitted(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let locations = path.last().is_some_and(|key| key == "omit_locations");
    match (scalar(node), locations) {
        (Some("true"), _) => walk.not_needed(path, "this is the default here"),
        (_, true) => walk.unsupported(path, "places in requests to subgraphs are never shown"),
        (_, false) => {
            let all = one(text("*"));
            walk.put(path, "include_subgraph_errors.extensions", all, "");
        }
    }
}

fn service_name(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    const WHY: &str = "`extensions.service` names the subgraph where its errors are shown";
    match scalar(node) {
        Some("false") => walk.unsupported(path, WHY),
        _ => walk.not_needed(path, WHY),
    }
}

fn safelist(walk: &mut Walk<'_>, path: &[String], _: &Node) {
    let blocked = at(walk.root, "security.block_non_persisted_operations");
    let mode = match (
        walk.is_on("persisted_operations.safelist.enabled")
            || blocked.is_some_and(|node| blocks(node) == (true, false)),
        walk.is_on("persisted_operations.log_unknown"),
    ) {
        (true, _) => "require",
        (false, true) => "log",
        (false, false) => "allow",
    };
    walk.put(path, "persisted_queries.mode", plain(mode), "");
    if mode != "allow" {
        let why = "Cosmo Router has persisted operations on";
        walk.implied("persisted_queries.enabled", "true", why);
    }
}

/// A folder with one file per operation can be read here, too. `storage_providers` says which storage the id means.
fn operations_storage(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    walk.others(path, node, &["provider_id", "object_prefix"]);
    let prefix = at(node, "object_prefix")
        .and_then(scalar)
        .unwrap_or_default();
    let id = at(node, "provider_id").and_then(scalar).unwrap_or_default();
    let provider = |kind: &str| {
        let all = at(walk.root, &format!("storage_providers.{kind}"))?;
        let Value::List(items) = &all.value else {
            return None;
        };
        let mut items = items.iter();
        items.find(|item| at(item, "id").and_then(scalar) == Some(id))
    };
    match provider("file_system").and_then(|provider| at(provider, "path")).and_then(scalar) {
        Some(folder) => {
            let folder = format!("{}/{prefix}", folder.trim_end_matches('/'));
            let note = "folders of single clients are named one by one in `persisted_queries.sources`, with `client_name`";
            let value = super::nodes::list(vec![text(folder.trim_end_matches('/'))]);
            walk.put(path, "persisted_queries.local_manifests", value, note);
        }
        None => walk.unsupported(
            path,
            "operations that lie one by one in Cosmo's CDN or in a bucket are not fetched: publish one manifest \
             (`ogive operations publish`), and name it in `persisted_queries.sources`",
        ),
    }
}

fn all_extensions(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match scalar(node) {
        Some("true") => {
            let all = one(text("*"));
            walk.put(path, "include_subgraph_errors.extensions", all, "");
        }
        _ => walk.not_needed(path, "the default holds"),
    }
}

fn error_mode(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let off = walk.text("subgraph_error_propagation.enabled") == Some("false");
    match scalar(node).filter(|_| !off) {
        Some("pass-through" | "wrapped" | "true") => {
            walk.put(path, "include_subgraph_errors.all", plain("true"), "");
        }
        _ => walk.put(path, "include_subgraph_errors.all", plain("false"), ""),
    }
}
