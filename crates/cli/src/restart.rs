//! Which keys of the configuration are read once, so that a change needs a restart.
//!
//! All others are part of what a reload makes anew. That every key is one or the other is tested for each.

use ogive_config::{AccessLogOptions, Config, SupergraphOptions};
use ogive_limits::Limit;

/// Limits of the server, which reads them once.
const MEASURED_AT_START: [Limit; 5] = [
    Limit::Headers,
    Limit::HeaderSize,
    Limit::Connections,
    Limit::ClientConnections,
    Limit::HeaderTimeout,
];

/// What is served with after a reload: keys of which a part only could be reloaded are as they were at the start, so that no
/// two parts of the process go by different values, and health is not asked for where nobody listens.
pub(crate) fn held(first: &Config, config: &Config) -> Config {
    let mut held = config.clone();
    held.http
        .trusted_proxies
        .clone_from(&first.http.trusted_proxies);
    held.http.connection_shutdown_timeout = first.http.connection_shutdown_timeout;
    held.tls.supergraph.clone_from(&first.tls.supergraph);
    held.health_check
        .listen
        .clone_from(&first.health_check.listen);
    held.apq.router.cache.clone_from(&first.apq.router.cache);
    // Attributes are noted for whoever shows them, which is who did at the start.
    held.telemetry
        .exporters
        .clone_from(&first.telemetry.exporters);
    held.telemetry.access_log.enabled = first.telemetry.access_log.enabled;
    held
}

/// Keys that are read once.
pub(crate) fn needs_restart(before: &Config, after: &Config) -> Vec<&'static str> {
    let (old, new) = (&before.http, &after.http);
    let changed = [
        ("listen", before.listen != after.listen),
        ("listen_mode", before.listen_mode != after.listen_mode),
        (
            "supergraph.subgraphs",
            before.supergraph.subgraphs != after.supergraph.subgraphs,
        ),
        ("http.workers", old.workers != new.workers),
        (
            "http.connections_max",
            old.connections_max != new.connections_max,
        ),
        (
            "http.connections_per_client_max",
            old.connections_per_client_max != new.connections_per_client_max,
        ),
        (
            "http.trusted_proxies",
            old.trusted_proxies != new.trusted_proxies,
        ),
        (
            "http.header_read_timeout",
            old.header_read_timeout != new.header_read_timeout,
        ),
        ("http.write_timeout", old.write_timeout != new.write_timeout),
        ("http.http2", old.http2 != new.http2),
        ("http.drain_delay", old.drain_delay != new.drain_delay),
        (
            "http.drain_idle_timeout",
            old.drain_idle_timeout != new.drain_idle_timeout,
        ),
        (
            "tls.supergraph",
            before.tls.supergraph != after.tls.supergraph,
        ),
        (
            "tls.reload_interval",
            before.tls.reload_interval != after.tls.reload_interval,
        ),
        (
            "http.connection_shutdown_timeout",
            old.connection_shutdown_timeout != new.connection_shutdown_timeout,
        ),
        (
            "limits.http1_max_request_headers",
            before.limits.http1_max_request_headers != after.limits.http1_max_request_headers,
        ),
        (
            "limits.http1_max_request_buf_size",
            before.limits.http1_max_request_buf_size != after.limits.http1_max_request_buf_size,
        ),
        (
            "limits.warn_only",
            MEASURED_AT_START.iter().any(|limit| {
                let held = |config: &Config| config.limits.warn_only.holds_for(*limit);
                held(before) != held(after)
            }),
        ),
        (
            "apq.router.cache",
            before.apq.router.cache != after.apq.router.cache,
        ),
        ("log", before.log != after.log),
        (
            "health_check.listen",
            before.health_check.listen != after.health_check.listen,
        ),
        (
            "telemetry.service_name",
            before.telemetry.service_name != after.telemetry.service_name,
        ),
        (
            "telemetry.resource",
            before.telemetry.resource != after.telemetry.resource,
        ),
        (
            "telemetry.exporters",
            before.telemetry.exporters != after.telemetry.exporters,
        ),
        (
            "telemetry.access_log",
            access_log(before) != access_log(after),
        ),
    ];
    changed
        .into_iter()
        .chain(source(&before.supergraph, &after.supergraph))
        .filter(|(_, is)| *is)
        .map(|(key, _)| key)
        .collect()
}

/// How lines are written, and which fields they have. Attributes are asked for with each request.
fn access_log(config: &Config) -> AccessLogOptions {
    AccessLogOptions {
        attributes: Default::default(),
        ..config.telemetry.access_log.clone()
    }
}

/// What polling begins with.
fn source(source: &SupergraphOptions, other: &SupergraphOptions) -> [(&'static str, bool); 6] {
    [
        ("supergraph.url", source.url != other.url),
        (
            "supergraph.poll_interval",
            source.poll_interval != other.poll_interval,
        ),
        (
            "supergraph.request_timeout",
            source.request_timeout != other.request_timeout,
        ),
        ("supergraph.headers", source.headers != other.headers),
        (
            "supergraph.allow_plain_http",
            source.allow_plain_http != other.allow_plain_http,
        ),
        (
            "supergraph.last_known_good",
            source.last_known_good != other.last_known_good,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;
    use ogive_config::{
        Expansion, INSTRUMENTS,
        reference::{self, OptionRow},
    };
    use ogive_gateway::{GatewayOptions, SchemaState};

    use super::*;

    /// Switches everything on whose other keys would have no effect.
    const ALL_ON: &str = "
telemetry:
  execution_trace: { enabled: true }
  access_log: { enabled: true }
  exporters: { metrics: { prometheus: { enabled: true } }, tracing: { otlp: { enabled: true } } }
  request_id: { enabled: true }
query_planning: { expose: { enabled: true }, feedback: { enabled: true } }
file_uploads: { enabled: true }
persisted_queries: { enabled: true }
http: { compression: { enabled: true } }
batching: { enabled: true }
cors: { policies: [{ origins: ['https://a.example'] }] }
override_subgraph_url: { products: 'https://products.example/' }
authentication: { router: { jwt: { jwks: [{ url: 'https://idp.example/jwks' }] }, introspection: { endpoint: 'https://idp.example/', client_id: a, client_secret: b } } }
demand_control: { enabled: true, strategy: { static_estimated: { subgraph: { all: { max: 5 } } } } }
coprocessor: { url: 'https://coprocessor.example/', router: { request: { body: true }, response: { body: true } }, supergraph: { request: { body: true }, response: { body: true } }, execution: { request: { body: true }, response: { body: true } }, subgraph: { all: { request: { body: true }, response: { body: true } } } }
subscription: { enabled: true, mode: { callback: { public_url: 'https://callback.example/', subgraphs: [reviews] } } }
authorization: { directives: enforce, claims: { header: x-claims, trusted: [10.0.0.0/8] }, policies: { http: { url: 'https://policies.example/' } } }
store: { redis: { urls: ['redis://store.example'] } }
apq: { router: { cache: { storage: redis } } }
response_cache: { enabled: true }
usage: { enabled: true, file: { path: usage.ndjson }, hive: { endpoint: 'https://usage.example/' }, otlp: { timeout: 3s } }
traffic_shaping: { router: { rate_limit: { capacity: 5, key: header, header: x-one }, overload: { enabled: true } } }
";

    /// Keys that are reloaded though [`made`] does not show it, and why.
    const NOT_SHOWN: [(&str, &str); 30] = [
        (
            "plugins",
            "components are read from files, which have to be there",
        ),
        (
            "authentication.router.components",
            "components are read from files, which have to be there",
        ),
        (
            "authorization.policies.component",
            "components are read from files, which have to be there",
        ),
        (
            "authorization.policies.cedar",
            "policies are read from files, which have to be there",
        ),
        ("usage.hive.token", "a secret, which nothing shows"),
        (
            "store.redis",
            "connections are made for what is counted and kept there",
        ),
        (
            "rhai.scripts",
            "scripts are read from a folder, which has to be there",
        ),
        (
            "rhai.main",
            "scripts are read from a folder, which has to be there",
        ),
        (
            "rhai.limits.operations",
            "scripts are read from a folder, which has to be there",
        ),
        (
            "rhai.limits.timeout",
            "scripts are read from a folder, which has to be there",
        ),
        (
            "rhai.limits.depth",
            "scripts are read from a folder, which has to be there",
        ),
        (
            "rhai.limits.memory",
            "scripts are read from a folder, which has to be there",
        ),
        (
            "authentication.router.api_keys",
            "keys are read from a file, which has to be there",
        ),
        (
            "authentication.router.client_certificate",
            "needs TLS of the listener, whose files have to be there",
        ),
        (
            "authentication.router.introspection.client_secret",
            "a secret, which nothing shows",
        ),
        (
            "authentication.router.introspection.allow_plain_http",
            "says which URLs are refused when the configuration is read",
        ),
        (
            "authorization.introspection",
            "the views are made with the schema",
        ),
        (
            "authorization.policies.http.allow_plain_http",
            "says which URLs are refused when the configuration is read",
        ),
        (
            "authentication.subgraph",
            "signers are made with the schema, of several keys at once",
        ),
        ("hot_reload.enabled", "asked for at every look"),
        ("hot_reload.interval", "asked for at every look"),
        ("supergraph.path", "asked for at every look"),
        (
            "supergraph.when_missing",
            "asked for at the start, and means nothing later",
        ),
        (
            "authorization.directives",
            "a part of the supergraph that is served",
        ),
        (
            "query_planning.cache.size",
            "the caches are made with the schema",
        ),
        (
            "query_planning.cache.memory",
            "the caches are made with the schema",
        ),
        (
            "override_labels.labels.<name>",
            "the labels are those of the supergraph",
        ),
        ("traffic_shaping.all.urls", "refused"),
        ("limits.operation_rules", "rules are made with the schema"),
        (
            "events.",
            "brokers are made with the schema, where it has event subgraphs",
        ),
    ];

    /// Values of keys whose kind does not say what differs from [`ALL_ON`] and the defaults.
    const VALUES: [(&str, &str); 33] = [
        ("telemetry.access_log.fields", "[status]"),
        ("authorization.redact[].fields", "[Person.city]"),
        ("authorization.redact[].mask", "other"),
        (
            "authorization.redact[].unless",
            "{ exists: { jwt_claim: other } }",
        ),
        ("override_subgraph_urls.<name>[].when", CONDITION),
        ("static_responses[].status", "404"),
        ("traffic_shaping.router.overload.classes[].when", CONDITION),
        (
            "traffic_shaping.router.rate_limits[].key",
            "[{ client_name: true }]",
        ),
        (
            "traffic_shaping.router.rate_limits[].charge",
            "estimated_cost",
        ),
        ("traffic_shaping.router.rate_limits[].when", CONDITION),
        (
            "traffic_shaping.all.rate_limits[].key",
            "[{ client_name: true }]",
        ),
        (
            "traffic_shaping.subgraphs.<name>.rate_limits[].key",
            "[{ client_name: true }]",
        ),
        ("traffic_shaping.all.rate_limits[].when", CONDITION),
        (
            "traffic_shaping.all.rate_limits[].overrides[].matching",
            CONDITION,
        ),
        (
            "traffic_shaping.router.rate_limits[].overrides[].matching",
            CONDITION,
        ),
        ("authentication.router.jwt.scopes_claim", "other"),
        ("authentication.router.jwt.policies_claim", "other"),
        (
            "authentication.router.jwt.sources",
            "[{ type: cookie, name: other }]",
        ),
        ("authentication.router.jwt.jwks[].algorithms", "[ES256]"),
        (
            "authentication.router.jwt.jwks[].headers",
            "[{ name: x-other, value: other }]",
        ),
        ("authorization.require_authentication_for", "[mutation]"),
        (
            "authorization.policies.rules.<name>",
            "{ exists: { jwt_claim: other } }",
        ),
        (
            "authentication.router.introspection.headers",
            "[{ name: x-other, value: other }]",
        ),
        (
            "authorization.policies.http.headers",
            "[{ name: x-other, value: other }]",
        ),
        ("telemetry.clients.name_headers", "[x-other]"),
        ("telemetry.clients.version_headers", "[x-other]"),
        ("http.trusted_proxies", "[10.1.0.0/16]"),
        ("authorization.claims.trusted", "[10.1.0.0/16]"),
        ("cors.policies[].origins", "['https://other.example']"),
        ("headers.all.request", REQUEST_RULES),
        ("headers.all.response", RESPONSE_RULES),
        ("headers.subgraphs.<name>.request", REQUEST_RULES),
        ("headers.subgraphs.<name>.response", RESPONSE_RULES),
    ];
    const CONDITION: &str = "{ exists: { request_header: x-other } }";
    const REQUEST_RULES: &str = "[{ propagate: { named: x-other } }]";
    const RESPONSE_RULES: &str = "[{ propagate: { named: x-other, algorithm: first } }]";

    /// A file with an attribute of a metric, if that is the key: names of metrics have dots, which names of variables cannot have.
    fn instrumented(key: &str, value: &str) -> Option<String> {
        let rest = key.strip_prefix("telemetry.instrumentation.instruments.")?;
        let stage = rest.split('.').next()?;
        let stages = ["router", "supergraph", "subgraph"];
        let (metric, _) = INSTRUMENTS[stages.iter().position(|known| *known == stage)?];
        let written = format!(
            "telemetry:\n  instrumentation: {{ instruments: {{ {stage}: {{ {metric}: {{ attributes: {{ a: {value} }} }} }} }} }}\n"
        );
        Some(ALL_ON.replacen("telemetry:\n", &written, 1))
    }

    fn load(key: &str, value: &str) -> Result<Config, String> {
        let (name, value) = match key.split_once("[].") {
            Some((list, "origins")) => (list, format!("[{{ origins: {value} }}]")),
            Some((list, key)) if list.ends_with("queries.sources") => {
                let source = match key.split_once('.') {
                    Some((part @ ("s3" | "hive"), key)) => {
                        format!("{part}: {{ {key}: {value} }}")
                    }
                    Some((part, _)) => {
                        format!("url: 'https://a.example', {part}: {{ a: {value} }}")
                    }
                    None if ["url", "path"].contains(&key) => format!("{key}: {value}"),
                    None => format!("url: 'https://a.example', {key}: {value}"),
                };
                (list, format!("[{{ {source} }}]"))
            }
            Some((list @ "error_rules", "set_extensions.<name>")) => (
                list,
                format!("[{{ set_extensions: {{ other: {value} }} }}]"),
            ),
            Some((list @ "error_rules", key)) => {
                let rule = match key {
                    "set_code" => format!("[{{ {key}: {value} }}]"),
                    _ => format!("[{{ set_code: OTHER_CODE, {key}: {value} }}]"),
                };
                (list, rule)
            }
            Some((list @ "authorization.redact", key)) => {
                let other = match key {
                    "fields" => "unless: { exists: { jwt_claim: one } }",
                    _ => "fields: [Person.city]",
                };
                (list, format!("[{{ {other}, {key}: {value} }}]"))
            }
            Some((list @ "override_subgraph_urls.<name>", key)) => {
                let other = match key {
                    "url" => format!("when: {CONDITION}"),
                    _ => "url: 'https://other.example/'".to_owned(),
                };
                (list, format!("[{{ {other}, {key}: {value} }}]"))
            }
            Some((list, key @ ("url" | "discovery"))) => (list, format!("[{{ {key}: {value} }}]")),
            Some((list, key)) if list.ends_with("jwks") => (
                list,
                format!("[{{ url: 'https://idp.example/jwks', {key}: {value} }}]"),
            ),
            Some((list, "name")) => (list, format!("[{{ name: {value} }}]")),
            Some((list, key)) if list.ends_with("rate_limits") => {
                let rest = match key.strip_prefix("overrides[].") {
                    Some("matching") => format!("overrides: [{{ matching: {value} }}]"),
                    Some(key) => {
                        format!("overrides: [{{ matching: {CONDITION}, {key}: {value} }}]")
                    }
                    None => format!("{key}: {value}"),
                };
                (list, format!("[{{ name: a, {rest} }}]"))
            }
            Some((list @ "static_responses", "headers.<name>")) => {
                (list, format!("[{{ headers: {{ x-other: {value} }} }}]"))
            }
            Some((list @ "static_responses", key)) => (list, format!("[{{ {key}: {value} }}]")),
            Some((list, key)) if list.ends_with("classes") || list.ends_with("queries.clients") => {
                (list, format!("[{{ name: a, {key}: {value} }}]"))
            }
            Some((list, key)) => (
                list,
                format!("[{{ origins: ['https://a.example'], {key}: {value} }}]"),
            ),
            None => (key, value.to_owned()),
        };
        let name = name.replace("<name>", "products").replace('.', "__");
        let text = instrumented(key, &value);
        let overrides = [(format!("OGIVE__{name}"), value)];
        let is_written = key.is_empty() || text.is_some();
        let overrides = if is_written { &[][..] } else { &overrides };
        let from = Expansion {
            env: &|_| None,
            file: &|_| Err(String::new()),
        };
        let text = text.as_deref().unwrap_or(ALL_ON);
        let (config, errors) = ogive_config::load_whole(SourceId(0), text, from, overrides);
        match errors.first() {
            None => Ok(config),
            Some(error) => Err(error.message.clone()),
        }
    }

    /// Values of which one at least is not that of [`ALL_ON`] or the default.
    fn values(row: &OptionRow) -> Vec<String> {
        if let Some((_, value)) = VALUES.iter().find(|(key, _)| *key == row.path) {
            return vec![(*value).to_owned()];
        }
        let values: &[&str] = match row.kind.as_str() {
            "true or false" | "`true`, `false` or list of limits" => &["true", "false"],
            "number" => &["7", "8"],
            "duration" => &["7s", "8s"],
            "condition" => &["{ exists: { request_header: x-one } }"],
            "size" => &["77KiB", "78KiB"],
            "text" => &["other"],
            "path" => &["/other"],
            "URL" => &["https://other.example/"],
            "header name" | "header name or selector" => &["x-other"],
            "selector" => &["{ client_name: true }"],
            "share" => &["0.25"],
            "mode of a file" => &["0600", "0660"],
            "list of texts" => &["[other]"],
            "list of URLs" => &["['https://other.example/']"],
            "list of numbers" => &["[0.5]"],
            "list of regular expressions" => &["['https://other']"],
            "`HOST:PORT` or a unix socket" => &["127.0.0.1:7"],
            "percentage" | "`true`, `false` or percentage" => &["'25%'"],
            words => {
                let words = words.split('`').skip(1).step_by(2);
                return words.map(str::to_owned).collect();
            }
        };
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    /// All that a reload makes anew, as text.
    fn made(config: &Config) -> String {
        let sdl = include_str!("../../../examples/demo/supergraph.graphql");
        let supergraph = crate::load::supergraph_text("demo", sdl).unwrap();
        let (state, _) = SchemaState::new(supergraph, config);
        let options = GatewayOptions::load(config);
        let text = format!(
            "{options:?}{:?}{:?}{:?}{:?}{:?}{:?}",
            state.options,
            state.endpoints,
            state.labels,
            state.feedback,
            state.refinement,
            state.supergraph.restrictions
        );
        // When it was made does not count.
        let mut pieces = text.split("Instant {");
        let first = pieces.next().unwrap_or_default().to_owned();
        let rest = pieces.filter_map(|piece| piece.split_once('}'));
        rest.fold(first, |text, (_, piece)| text + piece)
    }

    #[test]
    fn every_key_is_reloaded_or_told() {
        let before = load("", "").unwrap();
        let text = made(&before);
        assert!(text == made(&before), "what is the same looks the same");
        let (mut wrong, mut partly, mut live) = (Vec::new(), Vec::new(), 0);
        for row in reference::options() {
            let key = row.path.as_str();
            if NOT_SHOWN.iter().any(|(known, _)| key.starts_with(known)) {
                continue;
            }
            let configs = values(&row).into_iter().map(|value| load(key, &value));
            let others: Vec<_> = configs.filter(|c| c.as_ref() != Ok(&before)).collect();
            let is_live = |other: &Result<Config, String>| {
                other
                    .as_ref()
                    .is_ok_and(|other| made(&held(&before, other)) != text)
            };
            let is_told = |other: &Result<Config, String>| {
                let told = other.as_ref().map(|other| needs_restart(&before, other));
                // Attributes are of the request.
                let is_read_once = !key.starts_with("telemetry.access_log.attributes");
                told.is_ok_and(|told| is_read_once && told.iter().any(|told| key.starts_with(told)))
            };
            match others.iter().any(is_live) {
                true => {
                    live += 1;
                    if others.iter().any(is_told) {
                        partly.push(row.path);
                    }
                }
                false if others.iter().any(is_told) => {}
                false => wrong.push((row.path, others.into_iter().find_map(Result::err))),
            }
        }
        assert!(wrong.is_empty(), "neither reloaded nor told: {wrong:#?}");
        assert!(live > 100, "{live}");
        assert!(
            partly.is_empty(),
            "reloaded, and told to need a restart: {partly:?}"
        );
    }
}
