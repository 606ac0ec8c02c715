//! Keys of other gateways that restrict access or bound the cost of a request: authentication, authorization, limits,
//! safelists, TLS, masking. The report lists the loss of such a key first.
//!
//! Header rules are not listed: what a rule that is left out means depends on its kind (`headers`).

use super::Format;

struct Table {
    /// Paths below which keys protect; `*` stands for any key.
    protect: &'static [&'static str],
    /// Paths among them that do not, or whose loss leaves less open, never more.
    harmless: &'static [&'static str],
}

const APOLLO: Table = Table {
    protect: &[
        "authentication",
        "authorization",
        "batching.maximum_size",
        "coprocessor",
        "cors.match_origins",
        "cors.origins",
        "cors.policies",
        "csrf",
        "demand_control",
        "forbid_mutations",
        "include_subgraph_errors",
        "limits",
        "persisted_queries",
        "plugins",
        "preview_file_uploads.protocols.multipart.limits",
        "rhai",
        "server",
        "supergraph.introspection",
        "supergraph.redact_query_validation_errors",
        "tls",
        "traffic_shaping.*.global_rate_limit",
        "traffic_shaping.router",
        "traffic_shaping.subgraphs.*.global_rate_limit",
    ],
    harmless: &[
        "authentication.connector",
        "authorization.directives.errors",
        "persisted_queries.local_manifests",
        "persisted_queries.log_unknown",
        "tls.connector",
    ],
};

const HIVE: Table = Table {
    protect: &[
        "authorization",
        "aws_sig_v4",
        "coprocessor",
        "cors.policies",
        "csrf",
        "demand_control",
        "error_masking",
        "hmac_signature",
        "introspection",
        "jwt",
        "limits",
        "persisted_documents",
        "plugins",
        "traffic_shaping.*.tls",
        "traffic_shaping.router",
        "traffic_shaping.subgraphs.*.tls",
    ],
    harmless: &[
        "demand_control.expose_headers",
        "demand_control.include_extension_metadata",
        "error_masking.redacted_error_message",
        "limits.*.expose_limits",
        "persisted_documents.extractors",
        "persisted_documents.selectors",
        "persisted_documents.storage",
        "traffic_shaping.router.max_long_lived_clients",
    ],
};

const GRAFBASE: Table = Table {
    protect: &[
        "authentication",
        "authorization",
        "complexity_control",
        "cors.allow_origins",
        "csrf",
        "executable_document_limit",
        "extensions",
        "gateway.batching.limit",
        "gateway.message_signatures",
        "gateway.rate_limit",
        "gateway.timeout",
        "graph.introspection",
        "hooks",
        "operation_limits",
        "request_body_limit",
        "subgraphs.*.message_signatures",
        "subgraphs.*.mtls",
        "subgraphs.*.rate_limit",
        "tls",
        "trusted_documents",
    ],
    harmless: &[
        "trusted_documents.bypass_header",
        "trusted_documents.bypass_header_name",
        "trusted_documents.bypass_header_value",
    ],
};

const COSMO: Table = Table {
    protect: &[
        "authentication",
        "authorization",
        "batching.max_entries_per_batch",
        "compliance",
        "cors.allow_origins",
        "cors.match_origins",
        "file_upload",
        "headers.cookie_whitelist",
        "headers.router",
        "introspection",
        "introspection_enabled",
        "modules",
        "persisted_operations",
        "plugins",
        "rate_limit",
        "security",
        "subgraph_error_propagation",
        "tls",
        "traffic_shaping.router",
    ],
    harmless: &[
        "authentication.ignore_introspection",
        "persisted_operations.cache",
        "persisted_operations.storage",
        "rate_limit.debug",
        "subgraph_error_propagation.attach_service_name",
        "subgraph_error_propagation.default_extension_code",
        "subgraph_error_propagation.omit_locations",
        "subgraph_error_propagation.propagate_status_codes",
    ],
};

/// Whether a key that is not brought over leaves something open that was closed.
pub(crate) fn holds(format: Format, path: &[String]) -> bool {
    let table = match format {
        Format::Apollo => &APOLLO,
        Format::Hive => &HIVE,
        Format::Grafbase => &GRAFBASE,
        Format::Cosmo => &COSMO,
    };
    let harmless = table.harmless.iter().any(|pattern| is_below(path, pattern));
    !harmless && table.protect.iter().any(|pattern| meets(path, pattern))
}

/// Sections about telemetry and pages: no key below them restricts access.
const TELLING: [&str; 14] = [
    "access_logs",
    "fleet_detector",
    "graphiql",
    "graphql_metrics",
    "homepage",
    "laboratory",
    "log",
    "log_level",
    "playground",
    "sandbox",
    "telemetry",
    "usage_reporting",
    "experimental_logging",
    "gateway.access_logs",
];

/// Whether an unknown key may have restricted access.
pub(crate) fn may_hold(format: Format, path: &[String]) -> bool {
    holds(format, path) || !TELLING.iter().any(|section| is_below(path, section))
}

/// Whether a path is the pattern's, or below it.
fn is_below(path: &[String], pattern: &str) -> bool {
    pattern.split('.').count() <= path.len() && meets(path, pattern)
}

/// Whether one of the two is, or is below, the other: a whole section that is lost takes its protections along.
fn meets(path: &[String], pattern: &str) -> bool {
    let mut pairs = path.iter().zip(pattern.split('.'));
    pairs.all(|(key, part)| part == "*" || part == key)
}
