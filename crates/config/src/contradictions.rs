//! What is wrong although every value is fine by itself: times in which nothing can be done, paths that are needed
//! twice, keys that need each other. What is no mistake, but does not do what it seems to, is in [`crate::warnings`].

use ogive_base::Span;
use ogive_selectors::{Condition, Selector};
use ogive_yaml::tree::{items, nodes, span};
use ogive_yaml::{Node, Value};

use crate::{
    ACCESS_LOG_FIELDS, Config, Place, RateCharge, RateLimitKey, RateLimitRule, StorageWord,
    SubgraphRateRule, TokenSourceRule,
    decode::Errors,
    scalars::is_loopback,
    selectors::{is_known_at, word_of},
    units::{Duration, parse_duration},
};

/// Times that are no time at all if they are zero; `*` stands for any key. Other durations may well be zero.
const TIMES: &[&[&str]] = &[
    &["supergraph", "poll_interval"],
    &["supergraph", "request_timeout"],
    &["hot_reload", "interval"],
    &["http", "header_read_timeout"],
    &["http", "body_read_timeout"],
    &["http", "write_timeout"],
    &["tls", "reload_interval"],
    &["file_uploads", "timeout"],
    &["traffic_shaping", "router", "timeout"],
    &["traffic_shaping", "router", "rate_limit", "interval"],
    &["traffic_shaping", "all", "timeout"],
    &["traffic_shaping", "all", "connect_timeout"],
    &["traffic_shaping", "all", "first_byte_timeout"],
    &["traffic_shaping", "all", "circuit_breaker", "window"],
    &["traffic_shaping", "subgraphs", "*", "timeout"],
    &["traffic_shaping", "subgraphs", "*", "connect_timeout"],
    &["traffic_shaping", "subgraphs", "*", "first_byte_timeout"],
    &[
        "traffic_shaping",
        "subgraphs",
        "*",
        "circuit_breaker",
        "window",
    ],
    &["authentication", "subgraph", "all", "bearer", "timeout"],
    &[
        "authentication",
        "subgraph",
        "all",
        "message_signature",
        "expires",
    ],
    &[
        "authentication",
        "subgraph",
        "subgraphs",
        "*",
        "bearer",
        "timeout",
    ],
    &[
        "authentication",
        "subgraph",
        "subgraphs",
        "*",
        "message_signature",
        "expires",
    ],
    &["authorization", "policies", "http", "timeout"],
    &["authorization", "revocation", "check_interval"],
    &["coprocessor", "timeout"],
    &["rhai", "limits", "timeout"],
    &["coprocessor", "circuit_breaker", "window"],
    &[
        "authentication",
        "router",
        "introspection",
        "request_timeout",
    ],
    &["telemetry", "exporters", "metrics", "otlp", "interval"],
    &["telemetry", "exporters", "metrics", "otlp", "timeout"],
    &["telemetry", "exporters", "tracing", "otlp", "timeout"],
];

/// Headers that pages of other origins can send without asking (Fetch, "CORS-safelisted request-header"), and those that
/// browsers write themselves ("forbidden request-header"), but for all that begin with `sec-` or `proxy-`.
const SENT_WITHOUT_ASKING: &[&str] = &[
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "access-control-request-headers",
    "access-control-request-method",
    "cache-control",
    "connection",
    "content-language",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "dnt",
    "expect",
    "host",
    "if-modified-since",
    "if-none-match",
    "keep-alive",
    "origin",
    "pragma",
    "priority",
    "range",
    "referer",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "upgrade-insecure-requests",
    "user-agent",
    "via",
];

/// Whether a browser sends a header for a page of another origin without asking whether it may.
fn is_sent_without_asking(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SENT_WITHOUT_ASKING.contains(&&*name) || name.starts_with("sec-") || name.starts_with("proxy-")
}

/// Reports what contradicts itself. `config` is what was read from `root`.
pub(crate) fn check(root: &Node, config: &Config, errors: &mut Errors) {
    for path in TIMES {
        for node in nodes(root, path) {
            let Value::Scalar { text, .. } = &node.value else {
                continue;
            };
            if parse_duration(text) == Ok(Duration::seconds(0)) {
                let message = format!("`{text}` leaves no time at all");
                errors.invalid(
                    node.span,
                    message,
                    "there is no \"never\" here; the longest duration is `24h`",
                );
            }
        }
    }
    crate::subgraph_authentication::check(root, config, errors);
    crate::coprocessor::check(span(root, &["coprocessor"]), config, errors);
    crate::documents::check(span(root, &["persisted_queries"]), config, errors);
    crate::plugins::check(span(root, &["plugins"]), config, errors);
    crate::plugins::check_deciding(root, config, errors);
    crate::static_responses::check(span(root, &["static_responses"]), config, errors);
    crate::error_rules::check(span(root, &["error_rules"]), config, errors);
    crate::redaction::check(span(root, &["authorization", "redact"]), config, errors);
    let urls = nodes(root, &["override_subgraph_urls"]);
    crate::subgraph_urls::check(urls.first().copied(), config, errors);
    paths(root, config, errors);
    callbacks(root, config, errors);
    addresses(root, config, errors);
    for node in nodes(root, &["cors", "policies"]) {
        for policy in items(node) {
            for origin in nodes(policy, &["origins"]).into_iter().flat_map(items) {
                if let Value::Scalar { text, .. } = &origin.value
                    && let Err(help) = origin_is_one(text)
                {
                    errors.invalid(origin.span, format!("`{text}` is no origin"), help);
                }
            }
        }
    }
    if config.csrf.enabled && config.csrf.required_headers.is_empty() {
        errors.invalid(
            span(root, &["csrf", "required_headers"]),
            "without any header there is nothing that would tell a page of another origin",
            "name one, or switch the guard off with `csrf.enabled: false`",
        );
    }
    for node in nodes(root, &["csrf", "required_headers"])
        .into_iter()
        .flat_map(items)
    {
        if let Value::Scalar { text, .. } = &node.value
            && is_sent_without_asking(text)
        {
            errors.invalid(
                node.span,
                format!(
                    "`{text}` proves nothing: browsers send it for pages of other origins, too"
                ),
                "name a header of your own, such as `x-apollo-operation-name`",
            );
        }
    }
    if config.traffic_shaping.all.urls.is_some() {
        errors.invalid(
            span(root, &["traffic_shaping", "all", "urls"]),
            "all subgraphs cannot be at the same URLs",
            "set `urls` below `traffic_shaping.subgraphs.NAME`",
        );
    }
    let secret = &config.telemetry.execution_trace.secret;
    if secret.as_ref().is_some_and(String::is_empty) {
        errors.invalid(
            span(root, &["telemetry", "execution_trace", "secret"]),
            "an empty secret is none",
            "leave the key out, or set it to something that nobody guesses",
        );
    }
    let rate = config.traffic_shaping.router.rate_limit.as_ref();
    if rate.is_some_and(|rate| rate.key == RateLimitKey::Claim) && !config.may_know_claims() {
        let at = ["traffic_shaping", "router", "rate_limit", "key"];
        errors.invalid(
            span(root, &at),
            "rates by `claim` need to know the claims of callers",
            "set `authorization.claims.header`, and `trusted` beside it, or `authentication.router`",
        );
    }
    rates(root, config, errors);
    overload(root, config, errors);
    store(root, config, errors);
    authentication(root, config, errors);
    brokers(root, &config.events, errors);
    operation_rules(root, config, errors);
    policies(root, config, errors);
    let of = |key| span(root, &["telemetry", key]);
    let shown = [of("access_log"), of("instrumentation"), of("clients")];
    crate::credentials::check(config, shown, errors);
    access_log(root, config, errors);
    crate::claims::check(root, config, errors);
}

/// Fields that there are not, and attributes that are called like one.
fn access_log(root: &Node, config: &Config, errors: &mut Errors) {
    let log = &config.telemetry.access_log;
    let is_field = |name: &&String| ACCESS_LOG_FIELDS.contains(&name.as_str());
    let at = |key| span(root, &["telemetry", "access_log", key]);
    if let Some(name) = log.fields.iter().find(|name| !is_field(name)) {
        let message = format!("`telemetry.access_log.fields` has no field `{name}`");
        let help = format!("there are {}", ACCESS_LOG_FIELDS.join(", "));
        errors.invalid(at("fields"), message, &help);
    }
    if let Some(name) = log.attributes.0.keys().find(is_field) {
        let message = format!("`{name}` is the name of a field of the access log");
        errors.invalid(
            at("attributes"),
            message,
            "call the attribute something else",
        );
    }
}

/// Most rates of one configuration.
const RATES_MAX: usize = 32;

/// Rates of operations.
fn rates(root: &Node, config: &Config, errors: &mut Errors) {
    let traffic = &config.traffic_shaping;
    let at = span(root, &["traffic_shaping", "router", "rate_limits"]);
    rate_rules(at, &traffic.router.rate_limits, config, errors);
    let of_subgraphs = traffic.subgraphs.values().map(|one| &one.rate_limits);
    let mut of_subgraphs = of_subgraphs.chain([&traffic.all.rate_limits]).flatten();
    let is_component = |one: &Selector| matches!(one, Selector::Component(_));
    if let Some(rate) = of_subgraphs.find(|rate| rate.key.iter().any(is_component)) {
        let message = format!(
            "`component` says nothing in rates of subgraphs, and is in the key of `{}`",
            rate.name
        );
        let help = "a component is asked once for an operation: use it in `traffic_shaping.router.rate_limits`";
        errors.invalid(span(root, &["traffic_shaping"]), message, help);
    }
    let rules = |rules: &[SubgraphRateRule]| rules.iter().map(SubgraphRateRule::as_rule).collect();
    let all: Vec<RateLimitRule> = rules(&traffic.all.rate_limits);
    let at = span(root, &["traffic_shaping", "all", "rate_limits"]);
    rate_rules(at, &all, config, errors);
    for (name, subgraph) in &traffic.subgraphs {
        let own: Vec<RateLimitRule> = rules(&subgraph.rate_limits);
        let at = span(root, &["traffic_shaping", "subgraphs", name, "rate_limits"]);
        rate_rules(at, &own, config, errors);
    }
}

fn rate_rules(at: Span, rates: &[RateLimitRule], config: &Config, errors: &mut Errors) {
    if rates.len() > RATES_MAX {
        errors.invalid(at, format!("there are more than {RATES_MAX} rates"), "");
    }
    let control = &config.demand_control;
    let strategy = &control.strategy.static_estimated;
    for (number, rate) in rates.iter().enumerate() {
        let name = &rate.name;
        if name.is_empty() {
            errors.invalid(at, "a rate needs a `name`", "clients see it in `RateLimit`");
        } else if !name.chars().all(|c| matches!(c, ' '..='~')) {
            let message = format!("the name of the rate `{name}` is to be plain ASCII");
            errors.invalid(at, message, "it is sent in a header");
        } else if rates[..number].iter().any(|other| other.name == *name) {
            errors.invalid(at, format!("there are two rates `{name}`"), "");
        }
        if rate.interval.0.is_zero() {
            let message = format!("the rate `{name}` has no time");
            errors.invalid(at, message, "set `interval`, for instance to `1s`");
        }
        if rate.storage == StorageWord::Redis && config.store.redis.is_none() {
            let message = format!(
                "the rate `{name}` is to be counted in Redis, and nobody says where that is"
            );
            errors.invalid(at, message, "set `store.redis.urls`");
        }
        if rate.charge != RateCharge::Request && !control.enabled {
            let message =
                format!("the rate `{name}` is charged by cost, and costs are not counted");
            errors.invalid(at, message, "set `demand_control.enabled: true`");
        } else if rate.charge == RateCharge::ActualCost && strategy.actual_cost_mode.is_none() {
            let message = format!(
                "the rate `{name}` is charged by what operations did cost, which is not counted"
            );
            let help = "set `demand_control.strategy.static_estimated.actual_cost_mode: by_response_shape`";
            errors.invalid(at, message, help);
        }
        if rate.overrides.iter().any(|o| o.matching.is_none()) {
            let message = format!("an override of the rate `{name}` does not say for whom");
            errors.invalid(at, message, "set `matching`");
        }
        let conditions = rate.overrides.iter().filter_map(|o| o.matching.as_ref());
        let conditions = conditions.chain(&rate.when).flat_map(Condition::selectors);
        let claims = |selector: &Selector| matches!(selector, Selector::JwtClaim(_));
        if conditions.chain(&rate.key).any(claims) && !config.may_know_claims() {
            let message = format!("the rate `{name}` needs to know the claims of callers");
            let help = "set `authorization.claims.header`, and `trusted` beside it, or `authentication.router`";
            errors.invalid(at, message, help);
        }
    }
}

/// What is to be shared without a place for it.
fn store(root: &Node, config: &Config, errors: &mut Errors) {
    let redis = config.store.redis.as_ref();
    if redis.is_some_and(|redis| redis.urls.is_empty()) {
        let help = "set it to `[redis://HOST:6379]`";
        errors.invalid(span(root, &["store", "redis"]), "`urls` is empty", help);
    }
    let cache = &config.apq.router.cache;
    if cache.storage == StorageWord::Redis && redis.is_none() {
        errors.invalid(
            span(root, &["apq", "router", "cache", "storage"]),
            "registered documents are to be kept in Redis, and nobody says where that is",
            "set `store.redis.urls`",
        );
    }
}

/// Most classes of requests.
const CLASSES_MAX: usize = 16;

/// Classes that nobody could be of, or that are not known in time.
fn overload(root: &Node, config: &Config, errors: &mut Errors) {
    let overload = &config.traffic_shaping.router.overload;
    let at = span(root, &["traffic_shaping", "router", "overload"]);
    if overload.concurrency_min > overload.concurrency_max {
        errors.invalid(at, "`concurrency_min` is more than `concurrency_max`", "");
    }
    if overload.classes.len() > CLASSES_MAX {
        errors.invalid(at, format!("there are more than {CLASSES_MAX} classes"), "");
    }
    for class in &overload.classes {
        let selectors = class.when.iter().flat_map(Condition::selectors);
        for selector in selectors {
            if !is_known_at(selector, Place::Overload) {
                let message = format!(
                    "`{}` says nothing in {}",
                    word_of(selector),
                    Place::Overload.shown()
                );
                let help = format!(
                    "the class `{}` is decided on before it is known what is asked: use claims, headers, or the client's \
                     name or address",
                    class.name
                );
                errors.invalid(at, message, &help);
            }
            let is_claim = matches!(selector, Selector::JwtClaim(_));
            if is_claim && !config.may_know_claims() {
                let name = &class.name;
                let message = format!("the class `{name}` needs to know the claims of callers");
                let help = "set `authorization.claims.header`, and `trusted` beside it, or `authentication.router`";
                errors.invalid(at, message, help);
            }
        }
    }
}

const TOKEN: &str = "a token";

/// One header that is to hold two things about the caller: who takes the first out leaves the other nothing. And headers that
/// nobody takes out of the payload of `connection_init`, so that they would go on to subgraphs as the client has written them.
fn caller_headers(root: &Node, config: &Config, errors: &mut Errors) {
    let router = &config.authentication.router;
    let mut known: Vec<(String, &str)> = Vec::new();
    let mut add = |names: Vec<&str>, what: &'static str, path: &[&str]| {
        // As those read them who take `_` for `-`.
        let names = names
            .iter()
            .map(|n| n.to_ascii_lowercase().replace('_', "-"));
        let names: Vec<String> = names.collect();
        let used = known.iter().find(|(known, _)| names.contains(known));
        if let Some((name, other)) = used {
            errors.invalid(
                span(root, path),
                format!("the header `{name}` cannot hold both {other} and {what}"),
                "name another header for one of them",
            );
        }
        known.extend(names.into_iter().map(|name| (name, what)));
    };
    if let Some(header) = &config.authorization.claims.header {
        let path = ["authorization", "claims", "header"];
        add(vec![&header.0], "claims of the caller", &path);
    }
    let jwt = &router.jwt;
    if !jwt.jwks.is_empty() || router.introspection.is_some() {
        let sources = jwt.sources.iter().filter_map(|source| match source {
            TokenSourceRule::Header { name, .. } => Some(name.as_str()),
            TokenSourceRule::Cookie { .. } => None,
        });
        let names = std::iter::once(jwt.header_name.0.as_str()).chain(sources);
        add(names.collect(), TOKEN, &["authentication", "router", "jwt"]);
    }
    if let Some(keys) = &router.api_keys {
        let path = ["authentication", "router", "api_keys"];
        add(vec![&keys.header_name.0], "an API key", &path);
    }
    let path = ["subscription", "client", "websocket", "headers_from_init"];
    for header in &config.subscription.client.websocket.headers_from_init {
        let name = header.to_ascii_lowercase().replace('_', "-");
        let used = known.iter().find(|(known, _)| *known == name);
        // A token is looked for there, too. What else says who asks is taken out of the upgrade alone.
        if let Some((_, what)) = used.filter(|(_, what)| *what != TOKEN) {
            errors.invalid(
                span(root, &path),
                format!("the header `{header}` holds {what}, which a payload of `connection_init` cannot say"),
                "let clients send it with the upgrade",
            );
        }
    }
}

/// Brokers that are nowhere, or two of one name.
fn brokers(root: &Node, options: &crate::EventsOptions, errors: &mut Errors) {
    let providers = &options.providers;
    let nats = providers.nats.iter();
    let nats = nats.map(|one| (&*one.id, !one.url.0.is_empty()));
    let kafka = providers.kafka.iter();
    let kafka = kafka.map(|one| (&*one.id, !one.brokers.is_empty()));
    let redis = providers.redis.iter();
    let redis = redis.map(|one| (&*one.id, !one.urls.is_empty()));
    let kinds: [(_, _, Vec<(&str, bool)>); 3] = [
        ("nats", "url", nats.collect()),
        ("kafka", "brokers", kafka.collect()),
        ("redis", "urls", redis.collect()),
    ];
    for (kind, key, list) in kinds {
        let at = span(root, &["events", "providers", kind]);
        for (index, (id, has_place)) in list.iter().enumerate() {
            if !has_place {
                errors.invalid(
                    at,
                    format!("`{id}` needs `{key}`"),
                    "say where the broker is",
                );
            }
            if list[..index].iter().any(|(other, _)| other == id) {
                errors.invalid(
                    at,
                    format!("two brokers are called `{id}`"),
                    "give each an `id` of its own",
                );
            }
        }
    }
}

/// How many there are who say who callers are, each with names of its own.
fn origins_of_callers(config: &Config) -> usize {
    let router = &config.authentication.router;
    let issuers: std::collections::BTreeSet<&str> = router
        .jwt
        .jwks
        .iter()
        .flat_map(|set| &set.issuers)
        .map(String::as_str)
        .collect();
    // Whoever is named by no set of its own may be anybody.
    let open = router
        .jwt
        .jwks
        .iter()
        .filter(|set| set.issuers.is_empty() && set.discovery.is_none());
    let discovered = router
        .jwt
        .jwks
        .iter()
        .filter_map(|set| set.discovery.as_ref());
    let discovered: std::collections::BTreeSet<&str> = discovered.map(|url| &*url.0).collect();
    [
        router.introspection.is_some(),
        router.api_keys.is_some(),
        router.client_certificate.is_some(),
        config.authorization.claims.header.is_some(),
    ]
    .into_iter()
    .map(usize::from)
    .sum::<usize>()
        + router.components.len()
        + issuers.union(&discovered).count()
        + open.count()
}

/// Key sets that are nowhere, or can be changed by whoever is on the way; and callers that must be known and cannot be.
fn authentication(root: &Node, config: &Config, errors: &mut Errors) {
    const JWKS: [&str; 4] = ["authentication", "router", "jwt", "jwks"];
    let router = &config.authentication.router;
    let jwt = &router.jwt;
    // Where keys are kept is said by whoever deploys, and asks for none.
    let unasked = crate::JwtOptions {
        last_known_good: jwt.last_known_good.clone(),
        ..crate::JwtOptions::default()
    };
    let is_asked_for = *jwt != unasked || !nodes(root, &JWKS).is_empty();
    if jwt.jwks.is_empty() && is_asked_for && router.introspection.is_none() {
        errors.invalid(
            span(root, &JWKS[..3]),
            "without a key set no token can be good",
            "name one in `jwks`, such as `- discovery: https://issuer.example.com`",
        );
    }
    let sets = nodes(root, &JWKS).into_iter().flat_map(items);
    for (set, node) in jwt.jwks.iter().zip(sets) {
        if let Err((message, help)) = key_set(set) {
            errors.invalid(node.span, message, help);
        }
    }
    if router
        .api_keys
        .as_ref()
        .is_some_and(|keys| keys.file.is_empty())
    {
        let at = span(root, &["authentication", "router", "api_keys"]);
        errors.invalid(at, "`api_keys` needs `file`", "");
    }
    introspection(root, config, errors);
    let clients = config.tls.supergraph.as_ref();
    let clients = clients.and_then(|tls| tls.client_authentication.as_ref());
    if router.client_certificate.is_some() && clients.is_none() {
        errors.invalid(
            span(root, &["authentication", "router", "client_certificate"]),
            "no client shows a certificate",
            "name the authorities that sign them in `tls.supergraph.client_authentication`",
        );
    }
    caller_headers(root, config, errors);
    let options = &config.authorization;
    let requires = options.require_authentication || !options.require_authentication_for.is_empty();
    if requires && !config.may_know_claims() {
        let key = if options.require_authentication {
            "require_authentication"
        } else {
            "require_authentication_for"
        };
        errors.invalid(
            span(root, &["authorization", key]),
            "nobody can be known, so every operation is refused",
            "say how callers are known: `authentication.router`, or `authorization.claims`",
        );
    }
}

/// Issuers that would not know who asks them, or whom whoever is on the way could play.
fn introspection(root: &Node, config: &Config, errors: &mut Errors) {
    let Some(options) = &config.authentication.router.introspection else {
        return;
    };
    let at = span(root, &["authentication", "router", "introspection"]);
    let url = &options.endpoint.0;
    if url.is_empty() {
        errors.invalid(at, "`introspection` needs `endpoint`", "");
    } else if !url.starts_with("http") {
        errors.invalid(at, "the issuer is behind no `https://` URL", "");
    } else if url.starts_with("http://") && !is_loopback(url) && !options.allow_plain_http {
        errors.invalid(
            at,
            "whoever is on the way to the issuer could be anybody, and read tokens",
            "use https; or, if nobody is on the way, set `allow_plain_http: true`",
        );
    }
    if options.client_id.is_empty() && options.headers.is_empty() {
        errors.invalid(
            at,
            "issuers answer only those they know",
            "set `client_id` and `client_secret`, or `headers` with a token of the gateway",
        );
    } else if options.client_id.is_empty() != options.client_secret.0.is_empty() {
        errors.invalid(at, "`client_id` and `client_secret` go together", "");
    }
}

/// Rules that refuse nothing, or look at claims of callers that nobody knows.
fn operation_rules(root: &Node, config: &Config, errors: &mut Errors) {
    let knows = config.may_know_claims();
    for rule in &config.limits.operation_rules {
        let conditions = rule.when.iter().chain(&rule.unless);
        let mut selectors = conditions.flat_map(Condition::selectors);
        let lists = rule.refuse == Some(crate::RefusedWord::Documents);
        let (message, help) = if rule.refuse.is_none() {
            let help = "write `refuse: mutations`, or another of its words";
            ("a rule says what it refuses", help)
        } else if lists == rule.documents.is_empty() {
            ("`refuse: documents` and `documents` go together", "")
        } else if !knows && selectors.any(|one| matches!(one, Selector::JwtClaim(_))) {
            let help =
                "say how callers are known: `authentication.router`, or `authorization.claims`";
            ("a rule looks at claims, and nobody is known by any", help)
        } else {
            continue;
        };
        errors.invalid(span(root, &["limits", "operation_rules"]), message, help);
    }
}

/// Policies that nobody decides, or that whoever is on the way can decide.
fn policies(root: &Node, config: &Config, errors: &mut Errors) {
    let policies = &config.authorization.policies;
    let is_enforced = config.authorization.directives == crate::AuthorizationDirectives::Enforce;
    if *policies != crate::PolicyOptions::default() && !is_enforced {
        errors.invalid(
            span(root, &["authorization", "policies"]),
            "policies are decided only if restrictions are enforced",
            "set `authorization.directives: enforce`",
        );
    }
    let shown = config.authorization.introspection;
    if shown == crate::IntrospectionWord::Authorized && !is_enforced {
        errors.invalid(
            span(root, &["authorization", "introspection"]),
            "introspection shows everything as long as restrictions are not enforced",
            "set `authorization.directives: enforce`",
        );
    }
    if let Some(cedar) = &policies.cedar {
        let at = span(root, &["authorization", "policies", "cedar"]);
        if cedar.policies.is_empty() {
            errors.invalid(at, "Cedar needs `policies`: a list of files", "");
        }
        if policies.http.is_some() {
            let message = "policies are decided by Cedar or by a service, not by both";
            errors.invalid(at, message, "take one of them out");
        }
        let by_issuer = cedar.principal_claim.0.iter().any(|claim| claim == "iss");
        if cedar.entities.is_some() && !by_issuer && origins_of_callers(config) > 1 {
            let message = "callers come from several origins, and one of them could call somebody what `entities` calls \
                           another";
            let help =
                "set `principal_claim: [iss, sub]`, and name callers in `entities` as `ISSUER|SUB`";
            errors.invalid(at, message, help);
        }
    }
    if policies.component.is_some() && (policies.cedar.is_some() || policies.http.is_some()) {
        errors.invalid(
            span(root, &["authorization", "policies", "component"]),
            "policies are decided by a component, by Cedar or by a service, and by no two of them",
            "take the others out",
        );
    }
    let Some(service) = &policies.http else {
        return;
    };
    let at = span(root, &["authorization", "policies", "http"]);
    let url = &service.url.0;
    if url.is_empty() {
        errors.invalid(at, "the service that decides policies needs `url`", "");
    } else if !url.starts_with("http") {
        errors.invalid(
            at,
            "the service that decides policies is behind no `https://` URL",
            "",
        );
    } else if url.starts_with("http://") && !is_loopback(url) && !service.allow_plain_http {
        errors.invalid(
            at,
            "whoever is on the way to the service could decide policies, and read claims",
            "use https; or, if nobody is on the way, set `allow_plain_http: true`",
        );
    }
}

/// What is wrong with a key set, and what to do.
fn key_set(set: &crate::JwksOptions) -> Result<(), (&'static str, &'static str)> {
    let url = match (&set.url, &set.discovery) {
        (Some(crate::KeySetUrl::Http(url)), None) | (None, Some(url)) => url,
        (Some(crate::KeySetUrl::File(_)), None) => return no_empty_list(set),
        _ => return Err(("a key set needs one of `url` and `discovery`", "")),
    };
    if !url.0.starts_with("http") {
        return Err(("the key set is behind no `https://` URL", ""));
    }
    if url.0.starts_with("http://") && !is_loopback(&url.0) && !set.allow_plain_http {
        return Err((
            "whoever is on the way to the key set could put keys of their own into it",
            "use https; or, if nobody is on the way, set `allow_plain_http: true`",
        ));
    }
    if set.poll_interval == Some(Duration::seconds(0))
        || set.request_timeout == Duration::seconds(0)
    {
        return Err((
            "the key set is fetched in no time at all",
            "write a time such as `60s`",
        ));
    }
    no_empty_list(set)
}

fn no_empty_list(set: &crate::JwksOptions) -> Result<(), (&'static str, &'static str)> {
    match &set.algorithms {
        Some(list) if list.is_empty() => Err((
            "no algorithm is allowed, so no token can be good",
            "leave `algorithms` out, or name some",
        )),
        _ => Ok(()),
    }
}

/// The endpoints that share an address need paths of their own.
fn paths(root: &Node, config: &Config, errors: &mut Errors) {
    let health = &config.health_check;
    if !health.enabled {
        return;
    }
    let live = (&health.path.0, ["health_check", "path"]);
    let ready = (&health.readiness_path.0, ["health_check", "readiness_path"]);
    let graphql = (
        &config.http.graphql_endpoint.0,
        ["http", "graphql_endpoint"],
    );
    let mut pairs = vec![(live, ready)];
    if health.listen.is_none() {
        pairs.extend([(live, graphql), (ready, graphql)]);
    }
    for (one, other) in pairs {
        if one.0 == other.0 {
            let message = format!(
                "`{}` is the path of both `{}` and `{}`",
                one.0,
                one.1.join("."),
                other.1.join(".")
            );
            let at = match nodes(root, &one.1).first() {
                Some(node) => node.span,
                None => span(root, &other.1),
            };
            errors.invalid(at, message, "give each a path of its own");
        }
    }
}

/// Subgraphs that send events need to know where to, and a path that is nothing else.
fn callbacks(root: &Node, config: &Config, errors: &mut Errors) {
    const SUBGRAPHS: &[&str] = &["subscription", "mode", "callback", "subgraphs"];
    const PATH: &[&str] = &["subscription", "mode", "callback", "path"];
    let callback = &config.subscription.mode.callback;
    if callback.subgraphs.is_empty() {
        return;
    }
    if callback.public_url.is_none() {
        let message = "`subscription.mode.callback` has `subgraphs` and no `public_url`";
        let help = "write the URL at which they reach this process, with the path";
        errors.invalid(span(root, SUBGRAPHS), message, help);
    }
    let path = callback.path.0.trim_end_matches('/');
    if path.is_empty() || path == config.http.graphql_endpoint.0.trim_end_matches('/') {
        let message = "`subscription.mode.callback.path` is the path of something else";
        errors.invalid(span(root, PATH), message, "give it a path of its own");
    }
}

/// Endpoints with an address of their own cannot have that of GraphQL, and those that share one need different paths.
fn addresses(root: &Node, config: &Config, errors: &mut Errors) {
    let (health, metrics) = (
        &config.health_check,
        &config.telemetry.exporters.metrics.prometheus,
    );
    let own = health.listen.as_ref().filter(|_| health.enabled);
    const HEALTH: &[&str] = &["health_check", "listen"];
    const METRICS: &[&str] = &["telemetry", "exporters", "metrics", "prometheus", "listen"];
    const METRICS_PATH: &[&str] = &["telemetry", "exporters", "metrics", "prometheus", "path"];
    let metrics_on = metrics.enabled.then_some(&metrics.listen);
    for (listen, path) in [(own, HEALTH), (metrics_on, METRICS)] {
        let Some(listen) = listen.filter(|l| **l == config.listen && !l.0.ends_with(":0")) else {
            continue;
        };
        let message = format!(
            "`{}` is the address of both `listen` and `{}`",
            listen.0,
            path.join(".")
        );
        errors.invalid(span(root, path), message, "give each an address of its own");
    }
    let shared = own.is_some() && own == metrics_on && !metrics.listen.0.ends_with(":0");
    if shared && [&health.path, &health.readiness_path].contains(&&metrics.path) {
        let message = format!(
            "`{}` is the path of both metrics and health, at one address",
            metrics.path.0
        );
        errors.invalid(
            span(root, METRICS_PATH),
            message,
            "give each a path of its own",
        );
    }
}

/// Whether a browser would send this as the origin of a page; else what to write.
fn origin_is_one(text: &str) -> Result<(), &'static str> {
    if text == "null" {
        return Ok(());
    }
    if text == "*" {
        return Err("write `cors.allow_any_origin: true` for every origin");
    }
    if text.contains('*') {
        return Err("write a pattern as a regular expression, below `match_origins`");
    }
    let help = "write scheme and host in lower case, and the port if it is not the usual one, such as \
                `https://app.example.com`; no path, no slash at the end";
    let (scheme, authority) = text.split_once("://").ok_or(help)?;
    let ok = !scheme.is_empty()
        && !authority.is_empty()
        && !authority.contains(['/', '?', '#', '@', ' '])
        && !text.bytes().any(|b| b.is_ascii_uppercase());
    ok.then_some(()).ok_or(help)
}
