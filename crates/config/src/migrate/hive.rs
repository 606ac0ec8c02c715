//! Hive Router's `router.config.yaml`.

use super::{
    apollo,
    convert::{duration, seconds, size},
    headers,
    rules::{Rule, Walk, at, call, keep, no, noted, plain, scalar, text, to, unneeded, with},
    section::{Entry, OFF, section},
    telemetry,
};
use crate::yaml::{Node, Value};

const EXTENSION: &str = "nothing of this kind is here yet";

pub(super) const RULES: &[Rule] = &[
    call("supergraph.source", source),
    call("supergraph.path", path_of_file),
    call("supergraph.poll_interval", poll_interval),
    no(
        "supergraph.endpoint",
        "set `supergraph.url` and `supergraph.headers` by hand",
    ),
    no(
        "supergraph.key",
        "set `supergraph.url` and `supergraph.headers` by hand",
    ),
    no(
        "supergraph.request_timeout",
        "set `supergraph.url` and `supergraph.headers` by hand",
    ),
    no(
        "supergraph.connect_timeout",
        "set `supergraph.url` and `supergraph.headers` by hand",
    ),
    no(
        "supergraph.retry_policy",
        "set `supergraph.url` and `supergraph.headers` by hand",
    ),
    no(
        "supergraph.accept_invalid_certs",
        "certificates are always checked",
    ),
    call("http.host", listen),
    call("http.port", listen),
    keep("http.graphql_endpoint"),
    to("graphiql.enabled", "homepage.enabled"),
    to("laboratory.enabled", "homepage.enabled"),
    to("log.level", "log.filter"),
    to("log.filter", "log.filter"),
    call("log.format", log_format),
    call("introspection", introspection),
    call("introspection.enabled", introspection),
    call("headers.all.request", headers::steps),
    call("headers.subgraphs.*.request", headers::steps),
    call("headers.all.response", headers::steps),
    call("headers.subgraphs.*.response", headers::steps),
    call("override_subgraph_urls.*.url", url),
    call("override_subgraph_urls.subgraphs.*.url", url),
    no("override_subgraph_urls.all", EXTENSION),
    unneeded(
        "override_labels",
        "it has no effect without progressive overrides",
    ),
    with(
        "query_planner.timeout",
        "traffic_shaping.router.timeout",
        no_planner_timeout,
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
    unneeded(
        "traffic_shaping.router.dedupe",
        "equal requests in flight are decided here",
    ),
    no(
        "traffic_shaping.router.max_long_lived_clients",
        "subscriptions are not served yet",
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
        super::convert::same,
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
    call("cors.policies", policies),
    unneeded(
        "cors.enabled",
        "CORS is on where a policy or `allow_any_origin` says so",
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
    unneeded(
        "telemetry.client_identification",
        "it is about Hive's own services",
    ),
    with(
        "telemetry.resource.attributes",
        "telemetry.resource",
        super::convert::text_map,
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
    to(
        "telemetry.tracing.propagation.trace_context",
        "telemetry.exporters.tracing.propagation.trace_context",
    ),
    to(
        "telemetry.tracing.propagation.baggage",
        "telemetry.exporters.tracing.propagation.baggage",
    ),
    to(
        "telemetry.tracing.propagation.b3",
        "telemetry.exporters.tracing.propagation.b3",
    ),
    to(
        "telemetry.tracing.propagation.jaeger",
        "telemetry.exporters.tracing.propagation.jaeger",
    ),
    no(
        "telemetry.tracing.propagation",
        "collectors translate other formats",
    ),
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
    no("jwt", EXTENSION),
    no("authorization", EXTENSION),
    no("demand_control", EXTENSION),
    no("coprocessor", EXTENSION),
    no("plugins", EXTENSION),
    no("subscriptions", "subscriptions are not served yet"),
    no("websocket", "subscriptions are not served yet"),
    no(
        "persisted_documents",
        "set `persisted_queries` by hand: its sources are other ones",
    ),
    no("error_masking", "set `include_subgraph_errors` by hand"),
];

/// What Hive Router does without being told.
pub(super) fn finish(walk: &mut Walk<'_>) {
    let why = "Hive Router listens on all interfaces unless told otherwise";
    walk.implied("listen", "0.0.0.0:4000", why);
    walk.implied(
        "csrf.enabled",
        "false",
        "Hive Router has this guard off unless told otherwise; on is safer",
    );
    walk.implied(
        "supergraph.introspection",
        "true",
        "Hive Router answers introspection unless told otherwise",
    );
}

fn source(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match scalar(node) {
        Some("file") => walk.not_needed(path, "files are the default"),
        _ => walk.unsupported(path, "supergraphs are read from files"),
    }
}

/// Of a file, or of a URL.
fn poll_interval(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = match at(walk.root, "supergraph.path").is_some() {
        true => "hot_reload.interval",
        false => "supergraph.poll_interval",
    };
    walk.try_put(path, target, duration(walk.format, node))
}

fn path_of_file(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    if let Ok(value) = super::convert::same(walk.format, node) {
        walk.put(path, "supergraph.path", value, "");
    }
    if at(walk.root, "supergraph.poll_interval").is_some() {
        walk.implied("hot_reload.enabled", "true", "the file is polled");
    }
}

fn listen(walk: &mut Walk<'_>, path: &[String], _: &Node) {
    let part = |name: &str, default: &str| match at(walk.root, name) {
        Some(node) => match super::convert::same(walk.format, node) {
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
    match (scalar(node), &node.value) {
        (Some(word @ ("true" | "false")), _) => {
            walk.put(path, "supergraph.introspection", plain(word), "");
        }
        (None, Value::Map(entries)) if entries.iter().any(|(k, _)| k.text == "enabled") => {
            let enabled = entries.iter().find(|(k, _)| k.text == "enabled");
            if let Some((_, node)) = enabled {
                introspection(walk, path, node);
            }
        }
        _ => {
            let why = "expressions per request have no counterpart";
            walk.unsupported(path, why);
        }
    }
}

fn url(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let name = path.iter().rev().nth(1).cloned().unwrap_or_default();
    match scalar(node) {
        Some(_) => {
            if let Ok(value) = super::convert::same(walk.format, node) {
                walk.put(path, &format!("override_subgraph_url.{name}"), value, "");
            }
        }
        None => {
            let why = "expressions per request have no counterpart";
            walk.unsupported(path, why);
        }
    }
}

fn only_http2(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let mut target = path[..path.len() - 1].join(".");
    target.push_str(".http2");
    match scalar(node) {
        Some("true") => walk.put(path, &target, plain("http2only"), ""),
        _ => walk.not_needed(path, OFF),
    }
}

fn no_planner_timeout(_: super::Format, _: &Node) -> Result<Node, String> {
    Err("planning is bounded by work, not by time".into())
}

fn required_headers(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match &node.value {
        Value::List(items) if items.is_empty() => {
            walk.not_needed(path, "the default headers hold");
        }
        _ => walk.try_put(
            path,
            "csrf.required_headers",
            super::convert::same(walk.format, node),
        ),
    }
}

fn policies(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    if let Value::List(items) = &node.value {
        for (index, item) in items.iter().enumerate() {
            apollo::policy(walk, path, index, item);
        }
    }
}

/// `{ enabled, error_threshold, volume_threshold, reset_timeout }`.
fn circuit_breaker(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    section(walk, path, node, |format, key, value| match key {
        "error_threshold" => Entry::To("error_threshold_percent", percents(value)),
        "volume_threshold" => Entry::To("volume_threshold", super::convert::same(format, value)),
        "reset_timeout" => Entry::To("reset_timeout", duration(format, value)),
        _ => Entry::Unknown,
    });
}

/// `50%` or a fraction.
fn percents(node: &Node) -> Result<Node, String> {
    match scalar(node).and_then(|t| t.strip_suffix('%')) {
        Some(number) => Ok(plain(number.trim())),
        None => super::convert::percent(super::Format::Hive, node),
    }
}
