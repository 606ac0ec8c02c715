//! Hive Router's `router.config.yaml`.

use ogive_yaml::{Node, Value};

use super::{
    convert::{duration, files, percent, same, seconds, size, text_map, texts},
    cors, headers, hive_urls, masking,
    nodes::{at, dotted, is_on, list, map, plain, quoted, scalar, set_key, text},
    rules::{Rule, Walk, call, gate, keep, no, noted, off, to, unneeded, with},
    section::{Entry, breaker_off, defaults, section},
    settings, signatures, subscriptions, telemetry, tokens,
    why::{CODE, COSTS, HIVE_COPROCESSOR, OFF, SIGNATURES, SUBSCRIPTIONS},
};

const EXPRESSIONS: &str = "expressions per request have no counterpart";

pub(crate) const RULES: &[Rule] = &[
    call("supergraph.source", source),
    call("supergraph.path", path_of_file),
    call("supergraph.poll_interval", poll_interval),
    call("supergraph.endpoint", endpoint),
    call("supergraph.key", key),
    with(
        "supergraph.request_timeout",
        "supergraph.request_timeout",
        duration,
    ),
    unneeded(
        "supergraph.connect_timeout",
        "part of the time for the whole request",
    ),
    unneeded(
        "supergraph.retry_policy",
        "the gateway fetches again at every `supergraph.poll_interval`, and keeps the last good supergraph",
    ),
    call("supergraph.accept_invalid_certs", invalid_certs),
    call("http.host", listen),
    call("http.port", listen),
    keep("http.graphql_endpoint"),
    to("graphiql.enabled", "homepage.enabled"),
    to("laboratory.enabled", "homepage.enabled"),
    to("log.level", "log.filter"),
    to("log.filter", "log.filter"),
    call("log.format", log_format),
    call("introspection", introspection),
    call("headers.all.request", headers::steps),
    call("headers.subgraphs.*.request", headers::steps),
    call("headers.all.response", headers::steps),
    call("headers.subgraphs.*.response", headers::steps),
    call("override_subgraph_urls.*.url", url),
    call("override_subgraph_urls.subgraphs.*.url", url),
    no("override_subgraph_urls.all", EXPRESSIONS),
    call("override_labels", labels),
    unneeded(
        "query_planner.timeout",
        "planning is bounded by work, not by time",
    ),
    to(
        "query_planner.allow_expose",
        "query_planning.expose.enabled",
    ),
    with(
        "traffic_shaping.router.request_timeout",
        "traffic_shaping.router.timeout",
        duration,
    ),
    to(
        "traffic_shaping.router.dedupe.enabled",
        "traffic_shaping.router.deduplicate_query",
    ),
    unneeded(
        "traffic_shaping.router.dedupe.headers",
        "requests are equal here if every subgraph would get the same headers",
    ),
    no(
        "traffic_shaping.router.max_long_lived_clients",
        SUBSCRIPTIONS,
    ),
    with(
        "traffic_shaping.router.tls.cert_file",
        "tls.supergraph.certificate_chain",
        files,
    ),
    to("traffic_shaping.router.tls.key_file", "tls.supergraph.key"),
    with(
        "traffic_shaping.router.tls.client_auth.cert_file",
        "tls.supergraph.client_authentication.certificate_authorities",
        files,
    ),
    to(
        "traffic_shaping.router.tls.client_auth.required",
        "tls.supergraph.client_authentication.required",
    ),
    with(
        "traffic_shaping.all.tls.cert_file",
        "tls.subgraph.all.certificate_authorities",
        files,
    ),
    with(
        "traffic_shaping.all.tls.client_auth.cert_file",
        "tls.subgraph.all.client_authentication.certificate_chain",
        files,
    ),
    to(
        "traffic_shaping.all.tls.client_auth.key_file",
        "tls.subgraph.all.client_authentication.key",
    ),
    to(
        "traffic_shaping.all.tls.insecure_skip_ca_verification",
        "tls.subgraph.all.insecure_skip_verify",
    ),
    with(
        "traffic_shaping.subgraphs.*.tls.cert_file",
        "tls.subgraph.subgraphs.*.certificate_authorities",
        files,
    ),
    with(
        "traffic_shaping.subgraphs.*.tls.client_auth.cert_file",
        "tls.subgraph.subgraphs.*.client_authentication.certificate_chain",
        files,
    ),
    to(
        "traffic_shaping.subgraphs.*.tls.client_auth.key_file",
        "tls.subgraph.subgraphs.*.client_authentication.key",
    ),
    to(
        "traffic_shaping.subgraphs.*.tls.insecure_skip_ca_verification",
        "tls.subgraph.subgraphs.*.insecure_skip_verify",
    ),
    with(
        "traffic_shaping.all.request_timeout",
        "traffic_shaping.all.timeout",
        duration,
    ),
    with(
        "traffic_shaping.subgraphs.*.request_timeout",
        "traffic_shaping.subgraphs.*.timeout",
        duration,
    ),
    with(
        "traffic_shaping.all.pool_idle_timeout",
        "traffic_shaping.all.pool_idle_timeout",
        seconds,
    ),
    with(
        "traffic_shaping.subgraphs.*.pool_idle_timeout",
        "traffic_shaping.subgraphs.*.pool_idle_timeout",
        seconds,
    ),
    to(
        "traffic_shaping.all.dedupe_enabled",
        "traffic_shaping.all.deduplicate_query",
    ),
    to(
        "traffic_shaping.subgraphs.*.dedupe_enabled",
        "traffic_shaping.subgraphs.*.deduplicate_query",
    ),
    noted(
        "traffic_shaping.max_connections_per_host",
        "traffic_shaping.all.pool_idle_max",
        same,
        "bounds idle connections; busy ones are bounded by the requests",
    ),
    call("traffic_shaping.all.circuit_breaker", circuit_breaker),
    call(
        "traffic_shaping.subgraphs.*.circuit_breaker",
        circuit_breaker,
    ),
    keep("cors.allow_any_origin"),
    keep("cors.allow_credentials"),
    keep("cors.allow_headers"),
    keep("cors.expose_headers"),
    keep("cors.methods"),
    with("cors.max_age", "cors.max_age", seconds),
    call("cors.policies", cors::policies),
    gate("cors", cors::hive_off),
    unneeded(
        "cors.enabled",
        "CORS is on if a policy or `allow_any_origin` is set",
    ),
    keep("csrf.enabled"),
    call("csrf.required_headers", required_headers),
    to("limits.max_depth.n", "limits.max_depth"),
    to("limits.max_directives.n", "limits.max_directives"),
    to("limits.max_aliases.n", "limits.max_aliases"),
    to("limits.max_tokens.n", "limits.parser_max_tokens"),
    unneeded("limits.*.enabled", "a limit is on where it is set"),
    unneeded(
        "limits.*.flatten_fragments",
        "fragments are always expanded",
    ),
    unneeded(
        "limits.*.ignore_introspection",
        "introspection has limits of its own",
    ),
    no("limits.*.expose_limits", "messages name the limit's key"),
    with(
        "limits.max_request_body_size",
        "limits.http_max_request_bytes",
        size,
    ),
    unneeded("telemetry.hive", "it is about Hive's own services"),
    unneeded("usage_reporting", "it is about Hive's own services"),
    with(
        "telemetry.client_identification.name_header",
        "telemetry.clients.name_headers",
        texts,
    ),
    with(
        "telemetry.client_identification.version_header",
        "telemetry.clients.version_headers",
        texts,
    ),
    with(
        "usage_reporting.client_name_header",
        "telemetry.clients.name_headers",
        texts,
    ),
    with(
        "usage_reporting.client_version_header",
        "telemetry.clients.version_headers",
        texts,
    ),
    with(
        "telemetry.resource.attributes",
        "telemetry.resource",
        text_map,
    ),
    to(
        "telemetry.tracing.collect.sampling",
        "telemetry.exporters.tracing.common.sampler",
    ),
    to(
        "telemetry.tracing.collect.parent_based_sampler",
        "telemetry.exporters.tracing.common.parent_based_sampler",
    ),
    unneeded(
        "telemetry.tracing.collect",
        "spans have few attributes, all of them bounded",
    ),
    call("telemetry.tracing.propagation", telemetry::propagation),
    no(
        "telemetry.tracing.instrumentation",
        "spans have fixed names",
    ),
    no(
        "telemetry.metrics.instrumentation",
        "metrics have fixed names",
    ),
    call("telemetry.tracing.exporters", telemetry::exporters),
    call("telemetry.metrics.exporters", telemetry::exporters),
    call("traffic_shaping.all.allow_only_http2", only_http2),
    call("traffic_shaping.subgraphs.*.allow_only_http2", only_http2),
    call("jwt", tokens::hive),
    with(
        "authorization.directives.enabled",
        "authorization.directives",
        settings::enforced,
    ),
    call("authorization.directives.unauthorized.mode", unauthorized),
    gate("demand_control", off),
    keep("demand_control.enabled"),
    keep("demand_control.mode"),
    keep("demand_control.strategy.static_estimated.max"),
    keep("demand_control.strategy.static_estimated.list_size"),
    unneeded(
        "demand_control.strategy.static_estimated.actual_cost_mode",
        "Hive Router does not reject a response by its actual cost; here `actual_cost_mode` would, so it is not set",
    ),
    no(
        "demand_control.include_extension_metadata",
        "costs are reported in headers (`demand_control.expose_headers`) and in the log",
    ),
    keep("demand_control.strategy.static_estimated.subgraph.all.max"),
    keep("demand_control.strategy.static_estimated.subgraph.all.list_size"),
    keep("demand_control.strategy.static_estimated.subgraph.subgraphs.*.max"),
    keep("demand_control.strategy.static_estimated.subgraph.subgraphs.*.list_size"),
    call("demand_control.expose_headers", expose_costs),
    to("demand_control.operation_cost.mode", "demand_control.mode"),
    to(
        "demand_control.operation_cost.max",
        "demand_control.strategy.static_estimated.max",
    ),
    to(
        "demand_control.default_list_size",
        "demand_control.strategy.static_estimated.list_size",
    ),
    no("demand_control", COSTS),
    no("coprocessor", HIVE_COPROCESSOR),
    no("plugins", CODE),
    call("hmac_signature", signatures::hmac),
    no("aws_sig_v4", SIGNATURES),
    to("subscriptions.enabled", "subscription.enabled"),
    to(
        "subscriptions.broadcast_capacity",
        "subscription.queue_capacity",
    ),
    unneeded(
        "subscriptions.subgraph_buffer_capacity",
        "a subgraph waits while the gateway reads no events; no event is dropped",
    ),
    call(
        "subscriptions.websocket.all.path",
        subscriptions::hive_websocket,
    ),
    call(
        "subscriptions.websocket.subgraphs.*.path",
        subscriptions::hive_websocket,
    ),
    to(
        "subscriptions.callback.public_url",
        "subscription.mode.callback.public_url",
    ),
    to(
        "subscriptions.callback.path",
        "subscription.mode.callback.path",
    ),
    to(
        "subscriptions.callback.subgraphs",
        "subscription.mode.callback.subgraphs",
    ),
    call(
        "subscriptions.callback.heartbeat_interval",
        subscriptions::callback_heartbeat,
    ),
    call(
        "subscriptions.callback.listen",
        subscriptions::callback_listener,
    ),
    no("subscriptions", SUBSCRIPTIONS),
    to("websocket.enabled", "subscription.client.websocket.enabled"),
    to("websocket.path", "subscription.client.websocket.path"),
    no("websocket", SUBSCRIPTIONS),
    to("persisted_documents.enabled", "persisted_queries.enabled"),
    call("persisted_documents.require_id", documents),
    call("persisted_documents.log_missing_id", documents),
    call(
        "persisted_documents.storage",
        super::hive_documents::storage,
    ),
    no(
        "persisted_documents.selectors",
        "ids are looked for in `documentId`, `id`, `doc_id`, `extensions.persistedQuery.sha256Hash` and the path",
    ),
    no(
        "persisted_documents.extractors",
        "ids are looked for in `documentId`, `id`, `doc_id`, `extensions.persistedQuery.sha256Hash` and the path",
    ),
    call("error_masking", masking::masking),
    unneeded("storages", "what refers to one says where it is"),
];

/// Writes Hive Router's defaults that differ from ours.
pub(crate) fn finish(walk: &mut Walk<'_>) {
    let why = "Hive Router listens on all interfaces by default";
    walk.implied("listen", "0.0.0.0:4000", why);
    if at(walk.root, "introspection").is_some_and(|node| !node.is_null()) {
        let why = "Hive Router decided this by an expression, which has no counterpart, so introspection is off";
        walk.implied("supergraph.introspection", "false", why);
    }
    if at(walk.root, "csrf").is_some_and(|node| !node.is_null()) {
        let why = "Hive Router's section `csrf` is set and not off";
        walk.implied("csrf.enabled", "true", why);
    }
    walk.implied(
        "csrf.enabled",
        "false",
        "Hive Router has this guard off by default; on is safer",
    );
    tokens::enforce(walk, "Hive Router enforces them by default");
    walk.implied(
        "supergraph.introspection",
        "true",
        "Hive Router answers introspection by default",
    );
}

fn source(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match scalar(node) {
        Some("file") => walk.not_needed(path, "files are the default"),
        Some("hive") if at(walk.root, "supergraph.endpoint").is_some() => {
            walk.not_needed(path, "`supergraph.endpoint` sets the URL");
        }
        Some("hive") => walk.unsupported(
            path,
            "set `supergraph.url`: its endpoint is not in the file",
        ),
        _ => walk.unsupported(path, "supergraphs come from files and URLs"),
    }
}

/// Of a file, or of a URL.
fn poll_interval(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = if at(walk.root, "supergraph.path").is_some() {
        "hot_reload.interval"
    } else {
        "supergraph.poll_interval"
    };
    walk.try_put(path, target, duration(walk.format, node))
}

fn path_of_file(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    walk.try_put(path, "supergraph.path", same(walk.format, node));
    if at(walk.root, "supergraph.poll_interval").is_some() {
        walk.implied("hot_reload.enabled", "true", "the file is polled");
    }
}

fn listen(walk: &mut Walk<'_>, path: &[String], _: &Node) {
    let part = |name: &str, default: &str| match at(walk.root, name) {
        Some(node) => match same(walk.format, node) {
            Ok(node) => scalar(&node).unwrap_or(default).to_owned(),
            Err(_) => default.to_owned(),
        },
        None => default.to_owned(),
    };
    let address = format!(
        "{}:{}",
        part("http.host", "0.0.0.0"),
        part("http.port", "4000")
    );
    walk.put(path, "listen", text(address), "");
}

fn log_format(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match scalar(node) {
        Some("json") => walk.put(path, "log.format", plain("json"), ""),
        _ => walk.put(path, "log.format", plain("text"), ""),
    }
}

fn introspection(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    const TARGET: &str = "supergraph.introspection";
    if let (Value::Map(entries), Some(switch)) = (&node.value, at(node, "enabled")) {
        // Whatever else there is may restrict it.
        match entries.len() {
            1 => introspection(walk, &[path, &["enabled".to_owned()]].concat(), switch),
            _ => walk.unsupported(path, EXPRESSIONS),
        }
        return;
    }
    match same(walk.format, node) {
        Ok(value) => walk.put(path, TARGET, value, ""),
        Err(_) => walk.unsupported(path, EXPRESSIONS),
    }
}

/// A URL, or an expression that chooses one by what the request says.
fn url(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let name = path.iter().rev().nth(1).cloned().unwrap_or_default();
    let always = format!("override_subgraph_url.{}", quoted(&name));
    if let Ok(value) = same(walk.format, node) {
        return walk.put(path, &always, value, "");
    }
    walk.others(path, node, &["expression"]);
    let expression = at(node, "expression").and_then(scalar);
    let Some(choice) = expression.and_then(hive_urls::choice) else {
        let why = "expressions choose a URL by `if`, `==`, `!=`, `&&` and `||` of headers, claims and operations, \
                   or have no counterpart: see `override_subgraph_urls`";
        return walk.unsupported(path, why);
    };
    let has_rules = !choice.rules.is_empty();
    if has_rules {
        let rules = format!("override_subgraph_urls.{}", quoted(&name));
        walk.put(path, &rules, list(choice.rules), "");
    }
    match choice.otherwise {
        Some(url) => walk.put(path, &always, text(url), ""),
        None if !has_rules => walk.not_needed(path, "the URL of the supergraph is the default"),
        None => {}
    }
}

fn only_http2(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let mut target = dotted(&path[..path.len() - 1]);
    target.push_str(".http2");
    match scalar(node) {
        Some("true") => walk.put(path, &target, plain("http2only"), ""),
        _ => walk.not_needed(path, OFF),
    }
}

/// Names of headers there, a switch for all of them here.
fn expose_costs(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, "it is not a mapping");
    };
    for (key, value) in entries {
        let from = [path, std::slice::from_ref(&key.text)].concat();
        match (&*key.text, scalar(value)) {
            ("max" | "estimated" | "actual", Some("false") | None) => walk.not_needed(&from, OFF),
            ("actual", _) => {
                let why = "what operations did cost is not counted; `x-cost-actual` says it with `demand_control.strategy.static_estimated.actual_cost_mode`, which also refuses answers that cost too much";
                walk.unsupported(&from, why);
            }
            ("max" | "estimated", _) => {
                let note = "both of `x-cost-estimated` and `x-cost-max`";
                walk.put(&from, "demand_control.expose_headers", plain("true"), note);
            }
            _ => walk.unknown(&from),
        }
    }
}

/// The place of a target's artifacts, below which the supergraph is; of several the first.
fn endpoint(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let (first, others) = match &node.value {
        Value::List(items) => (items.first(), items.len() > 1),
        _ => (Some(node), false),
    };
    let url = match first.map(|node| same(walk.format, node)) {
        Some(Ok(url)) => scalar(&url).unwrap_or_default().to_owned(),
        _ => return walk.unsupported(path, "it is not a URL"),
    };
    let whole = url.ends_with("/supergraph") || url.starts_with("${");
    let note = match (url.starts_with("${"), others) {
        (true, _) => "it has to end in `/supergraph`",
        (_, true) => "the first of them; there is one URL here",
        _ => "",
    };
    let url = if whole {
        url
    } else {
        format!("{}/supergraph", url.trim_end_matches('/'))
    };
    walk.put(path, "supergraph.url", text(url), note);
}

fn key(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let value = same(walk.format, node);
    walk.try_put(path, "supergraph.headers.x-hive-cdn-key", value);
}

fn invalid_certs(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match scalar(node) {
        Some("false") => walk.not_needed(path, OFF),
        _ => walk.unsupported(
            path,
            "the certificate of the supergraph's URL is always checked",
        ),
    }
}

/// By label a switch, or an expression.
fn labels(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, "it is not a mapping");
    };
    let mut known = map();
    for (label, value) in entries {
        let mut from = path.to_vec();
        from.push(label.text.clone());
        match scalar(value) {
            Some(word @ ("true" | "false")) => {
                set_key(&mut known, &label.text, plain(word));
                // All labels again: the last time all of them are there.
                walk.put(&from, "override_labels.labels", known.clone(), "");
            }
            _ => {
                let why = "expressions per request have no counterpart; a percentage and the header `override_labels.header` do";
                walk.unsupported(&from, why);
            }
        }
    }
}

fn unauthorized(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let reject = match scalar(node) {
        Some("reject") => "true",
        _ => "false",
    };
    walk.put(path, "authorization.reject_unauthorized", plain(reject), "");
}

/// Two switches there, one word here.
fn documents(walk: &mut Walk<'_>, path: &[String], _: &Node) {
    let required = walk.is_on("persisted_documents.require_id");
    let mode = match (required, walk.is_on("persisted_documents.log_missing_id")) {
        (true, _) => "require",
        (false, true) => "log",
        (false, false) => "allow",
    };
    walk.put(path, "persisted_queries.mode", plain(mode), "");
    if required {
        walk.put(path, "persisted_queries.require_id", plain("true"), "");
    }
}

fn required_headers(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match &node.value {
        Value::List(items) if items.is_empty() => {
            walk.not_needed(path, "the default headers hold");
        }
        _ => walk.try_put(path, "csrf.required_headers", same(walk.format, node)),
    }
}

/// `{ enabled, error_threshold, volume_threshold, reset_timeout }`.
fn circuit_breaker(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    // Without any of its own, what Hive Router has.
    const DEFAULTS: [(&str, &str); 3] = [
        ("error_threshold_percent", "50"),
        ("volume_threshold", "5"),
        ("reset_timeout", "30s"),
    ];
    if path.get(1).is_some_and(|key| key == "all") && at(node, "enabled").is_none() {
        return walk.not_needed(path, OFF);
    }
    if at(node, "enabled").and_then(scalar) == Some("false") {
        return breaker_off(walk, path);
    }
    section(walk, path, node, |format, key, value| match key {
        "error_threshold" => Entry::To("error_threshold_percent", percents(value)),
        "volume_threshold" => Entry::To("volume_threshold", same(format, value)),
        "reset_timeout" => Entry::To("reset_timeout", duration(format, value)),
        _ => Entry::Unknown,
    });
    let of_all = path.get(1).is_some_and(|key| key == "all");
    if of_all && at(node, "enabled").is_some_and(is_on) {
        defaults(walk, path, &DEFAULTS, "Hive Router's default");
    }
}

/// `50%` or a fraction.
fn percents(node: &Node) -> Result<Node, String> {
    match scalar(node).and_then(|t| t.strip_suffix('%')) {
        Some(number) => Ok(plain(number.trim())),
        None => percent(super::Format::Hive, node),
    }
}
