//! Grafbase Gateway's `grafbase.toml`.

use ogive_yaml::Node;

use super::{
    Verdict,
    convert::{duration, percent, same, size, text_map, texts},
    cors, costs, grafbase_tokens, headers,
    nodes::{at, is_on, plain, quoted, scalar, text},
    rates, redis,
    rules::{Rule, Walk, call, no, noted, to, unneeded, with},
    settings, subscriptions, telemetry, tokens,
    why::{BUDGET, CACHES, CLAIMS, CODE, COSTS, OFF, SIGNATURES, SUBSCRIPTIONS, TOOLS},
};

const DEVELOPMENT: &str = "it is for `grafbase dev`; `ogive dev` reads rover's `supergraph.yaml`";

const BYPASS: &str = "no header lets a client past the manifest; a second gateway without it can serve those clients";

pub(crate) const RULES: &[Rule] = &[
    to("graph.path", "http.graphql_endpoint"),
    to("graph.introspection", "supergraph.introspection"),
    to("graph.websocket_path", "subscription.client.websocket.path"),
    to("network.listen_address", "listen"),
    with(
        "gateway.timeout",
        "traffic_shaping.router.timeout",
        duration,
    ),
    with(
        "gateway.subgraph_timeout",
        "traffic_shaping.all.timeout",
        duration,
    ),
    to("gateway.batching.enabled", "batching.enabled"),
    to("gateway.batching.limit", "batching.maximum_size"),
    call("gateway.retry.enabled", retry_switch),
    call("subgraphs.*.retry.enabled", retry_switch),
    to(
        "gateway.retry.min_per_second",
        "traffic_shaping.all.retry.min_per_sec",
    ),
    to(
        "subgraphs.*.retry.min_per_second",
        "traffic_shaping.subgraphs.*.retry.min_per_sec",
    ),
    with(
        "gateway.retry.retry_percent",
        "traffic_shaping.all.retry.budget_percent",
        percent,
    ),
    with(
        "subgraphs.*.retry.retry_percent",
        "traffic_shaping.subgraphs.*.retry.budget_percent",
        percent,
    ),
    unneeded("gateway.retry.ttl", BUDGET),
    unneeded("subgraphs.*.retry.ttl", BUDGET),
    call("gateway.retry.retry_mutations", settings::retry_mutations),
    call(
        "subgraphs.*.retry.retry_mutations",
        settings::retry_mutations,
    ),
    to("operation_caching.enabled", "query_planning.cache.enabled"),
    to("operation_caching.limit", "query_planning.cache.size"),
    unneeded(
        "operation_caching.warm_on_reload",
        "every kept operation is planned before a new schema serves",
    ),
    call("gateway.rate_limit.storage", storage),
    call("gateway.rate_limit.global", rates::grafbase),
    call("gateway.rate_limit.redis", redis::grafbase),
    no("gateway.message_signatures", SIGNATURES),
    with("request_body_limit", "limits.http_max_request_bytes", size),
    no(
        "executable_document_limit",
        "set `limits.parser_max_tokens` or the body's limit",
    ),
    to("operation_limits.depth", "limits.max_depth"),
    to("operation_limits.height", "limits.max_height"),
    to("operation_limits.aliases", "limits.max_aliases"),
    to("operation_limits.root_fields", "limits.max_root_fields"),
    no("operation_limits.complexity", COSTS),
    noted(
        "csrf.enabled",
        "csrf.enabled",
        same,
        "requests with a JSON body need no header: browsers ask before a page of another origin sends one",
    ),
    with("csrf.header_name", "csrf.required_headers", texts),
    to("cors.allow_credentials", "cors.allow_credentials"),
    with("cors.max_age", "cors.max_age", duration),
    call("cors.allow_origins", cors::grafbase_origins),
    call("cors.allow_methods", cors::grafbase_list),
    call("cors.allow_headers", cors::grafbase_list),
    call("cors.expose_headers", cors::grafbase_list),
    call("cors.allow_private_network", private_network),
    call("headers", all_headers),
    call("subgraphs.*.headers", subgraph_headers),
    to("subgraphs.*.url", "override_subgraph_url.*"),
    with(
        "subgraphs.*.timeout",
        "traffic_shaping.subgraphs.*.timeout",
        duration,
    ),
    no("subgraphs.*.websocket_url", SUBSCRIPTIONS),
    call(
        "subgraphs.*.subscriptions_protocol",
        subscriptions::grafbase_protocol,
    ),
    call("gateway.rate_limit.enabled", rate_switch),
    call("subgraphs.*.rate_limit", rates::of_subgraph),
    no("subgraphs.*.entity_caching", CACHES),
    no("subgraphs.*.message_signatures", SIGNATURES),
    call(
        "subgraphs.*.subscription_protocol",
        subscriptions::grafbase_protocol,
    ),
    unneeded("subgraphs.*.schema_path", DEVELOPMENT),
    unneeded("subgraphs.*.introspection_url", DEVELOPMENT),
    unneeded("subgraphs.*.introspection_headers", DEVELOPMENT),
    to(
        "subgraphs.*.mtls.root.certificate",
        "tls.subgraph.subgraphs.*.certificate_authorities",
    ),
    unneeded(
        "subgraphs.*.mtls.root.is_bundle",
        "a file may have one certificate or several",
    ),
    call("subgraphs.*.mtls.identity", identity),
    to(
        "subgraphs.*.mtls.allow_invalid_certs",
        "tls.subgraph.subgraphs.*.insecure_skip_verify",
    ),
    to(
        "subgraphs.*.mtls.accept_invalid_certs",
        "tls.subgraph.subgraphs.*.insecure_skip_verify",
    ),
    to("health.enabled", "health_check.enabled"),
    to("health.path", "health_check.path"),
    to("trusted_documents.enabled", "persisted_queries.enabled"),
    call("trusted_documents.enforced", enforced),
    no("trusted_documents.bypass_header_name", BYPASS),
    no("trusted_documents.bypass_header_value", BYPASS),
    no("trusted_documents.bypass_header", BYPASS),
    unneeded(
        "trusted_documents.document_id_unknown_log_level",
        "unknown ids are refused with a code of their own",
    ),
    unneeded(
        "trusted_documents.inline_document_unknown_log_level",
        "unknown documents are refused with a code of their own",
    ),
    no(
        "graph.error_code_mapping",
        "codes are replaced by `error_rules`, by code, subgraph and path",
    ),
    unneeded(
        "trusted_documents.document_id_and_query_mismatch_log_level",
        "they are refused with a code of their own",
    ),
    to("apq.enabled", "apq.enabled"),
    to("automatic_persisted_queries.enabled", "apq.enabled"),
    unneeded("federation", "it is about Grafbase's own services"),
    unneeded("telemetry.grafbase", "it is about Grafbase's own services"),
    no("telemetry.logs", "the log goes to standard error"),
    to("tls.certificate", "tls.supergraph.certificate_chain"),
    to("tls.key", "tls.supergraph.key"),
    call("authentication.default", grafbase_tokens::default),
    call("authentication.providers", grafbase_tokens::providers),
    no("authentication", CLAIMS),
    call("extensions.jwt", grafbase_tokens::extension),
    no("entity_caching", CACHES),
    call("complexity_control", costs::grafbase),
    no("extensions", CODE),
    no("mcp", TOOLS),
    no("hooks", CODE),
    no("websockets", SUBSCRIPTIONS),
    to(
        "gateway.access_logs.enabled",
        "telemetry.access_log.enabled",
    ),
    to("gateway.access_logs.format", "telemetry.access_log.format"),
    noted(
        "gateway.access_logs.path",
        "telemetry.access_log.path",
        log_file,
        "Grafbase names a folder, we a file",
    ),
    no("gateway.access_logs.rotate", "rotate the file from outside"),
    call("health.listen", health_listen),
    to("telemetry.service_name", "telemetry.service_name"),
    with(
        "telemetry.resource_attributes",
        "telemetry.resource",
        text_map,
    ),
    call("telemetry.exporters.otlp", telemetry::grafbase_otlp),
    call("telemetry.metrics.exporters.otlp", telemetry::grafbase_otlp),
    call("telemetry.tracing.exporters.otlp", telemetry::grafbase_otlp),
    no(
        "telemetry.exporters.stdout",
        "send OTLP to a collector, or log requests",
    ),
    no(
        "telemetry.metrics.exporters.stdout",
        "scrape metrics, or send OTLP to a collector",
    ),
    no(
        "telemetry.tracing.exporters.stdout",
        "send OTLP to a collector",
    ),
    to(
        "telemetry.tracing.sampling",
        "telemetry.exporters.tracing.common.sampler",
    ),
    to(
        "telemetry.tracing.parent_based_sampler",
        "telemetry.exporters.tracing.common.parent_based_sampler",
    ),
    call("telemetry.tracing.propagation", telemetry::propagation),
    unneeded(
        "telemetry.tracing.collect",
        "spans have few attributes, all of them bounded",
    ),
];

/// Writes Grafbase Gateway's defaults that differ from ours.
pub(crate) fn finish(walk: &mut Walk<'_>) {
    let why = "Grafbase Gateway listens on port 5000 by default";
    walk.implied("listen", "127.0.0.1:5000", why);
    if walk.is_on("csrf.enabled") {
        let why = "the header that Grafbase Gateway asks for";
        let names = ["x-grafbase-csrf-protection"];
        walk.implied_list("csrf.required_headers", &names, why);
    }
    if walk.is_on("trusted_documents.enabled") {
        let why = "its documents come from Grafbase's service, which Ogive does not query: publish a manifest (`ogive operations publish`) and name it in `persisted_queries.sources`";
        walk.lost(&["trusted_documents".to_owned()], why);
    }
    walk.implied(
        "csrf.enabled",
        "false",
        "Grafbase Gateway has this guard off by default; on is safer",
    );
    tokens::enforce(walk, "Grafbase Gateway enforces them whatever is set");
    subscriptions::served(walk);
}

fn log_file(format: super::Format, node: &Node) -> Result<Node, String> {
    let folder = same(format, node)?;
    let folder = scalar(&folder)
        .unwrap_or_default()
        .trim_end_matches('/')
        .to_owned();
    Ok(text(format!("{folder}/access.log")))
}

fn retry_switch(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = match path.first().map(String::as_str) {
        Some("gateway") => "traffic_shaping.all.retry".to_owned(),
        _ => format!("traffic_shaping.subgraphs.{}.retry", quoted(&path[1])),
    };
    match scalar(node) {
        Some("true") => walk.put(
            path,
            &format!("{target}.attempts"),
            plain("2"),
            "how often at most",
        ),
        _ => walk.put(path, &format!("{target}.attempts"), plain("0"), "never"),
    }
}

/// Its address for health has TLS there if GraphQL has.
fn health_listen(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let has_tls = at(walk.root, "tls.certificate").is_some();
    let note = if has_tls {
        "without TLS, which GraphQL alone has here"
    } else {
        ""
    };
    match same(walk.format, node) {
        Ok(value) => walk.put(path, "health_check.listen", value, note),
        Err(why) => walk.unsupported(path, &why),
    }
}

/// A rate is limited where it is set.
fn rate_switch(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    if is_on(node) {
        walk.not_needed(path, "rates are limited where they are set")
    } else {
        walk.row(
            path,
            None,
            Verdict::Unsupported,
            "rates are limited where they are set; remove `traffic_shaping.router.rate_limit`",
        )
    }
}

fn storage(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match scalar(node) {
        Some("memory") => walk.not_needed(path, "rates are counted in memory"),
        Some("redis") if at(walk.root, "gateway.rate_limit.redis").is_some() => {
            walk.not_needed(path, "it is where `storage: redis` is");
        }
        _ => walk.unsupported(
            path,
            "rates are counted in memory, or in Redis: set `store.redis` by hand",
        ),
    }
}

fn enforced(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let mode = if is_on(node) { "require" } else { "allow" };
    walk.put(path, "persisted_queries.mode", plain(mode), "");
}

/// One file with certificate and key.
fn identity(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = format!(
        "tls.subgraph.subgraphs.{}.client_authentication",
        quoted(&path[1])
    );
    for key in ["certificate_chain", "key"] {
        walk.try_put(path, &format!("{target}.{key}"), same(walk.format, node));
    }
}

fn private_network(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match scalar(node) {
        Some("false") => walk.not_needed(path, OFF),
        _ => {
            let why = "the header that lets pages of public networks send requests is not sent";
            walk.unsupported(path, why);
        }
    }
}

fn all_headers(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    headers::rules(walk, path, node, "headers.all.request");
}

fn subgraph_headers(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = format!("headers.subgraphs.{}.request", quoted(&path[1]));
    headers::rules(walk, path, node, &target);
}
