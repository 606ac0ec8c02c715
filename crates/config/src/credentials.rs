//! Headers that hold a credential: nothing of one is shown in a log line, a span or a metric, so attributes of these names
//! are refused, and so are names of clients. What header rules call them towards subgraphs counts, too.

use ogive_base::Span;
use ogive_selectors::Selector;

use crate::{
    Attribute, AttributeSource, Config, HeaderRule, HeaderSelector, ResponseHeaderRule,
    TokenSourceRule, decode::Errors,
};

/// Headers that are of no use but to prove who asks.
const CREDENTIALS: [&str; 23] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "api-key",
    "apikey",
    "x-auth-token",
    "x-access-token",
    "x-amz-security-token",
    "x-csrf-token",
    "x-xsrf-token",
    "x-id-token",
    "x-refresh-token",
    "x-forwarded-authorization",
    "x-forwarded-access-token",
    "private-token",
    "x-gitlab-token",
    "x-amzn-oidc-data",
    "x-amzn-oidc-accesstoken",
    "x-goog-iap-jwt-assertion",
    "cf-access-jwt-assertion",
    // Clients that can set no header put their token there.
    "sec-websocket-protocol",
];

/// As those read a name who take `_` for `-`.
fn plain(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

/// Names of headers that hold a credential.
pub struct CredentialHeaders {
    names: Vec<String>,
    /// What rules insert towards subgraphs: nobody knows whether it is secret.
    inserted: Vec<String>,
}

impl CredentialHeaders {
    /// The credential headers of a configuration: well-known names, those of the options, and what header rules call them.
    pub fn of(config: &Config) -> Self {
        let router = &config.authentication.router;
        let sources = router.jwt.sources.iter().filter_map(|source| match source {
            TokenSourceRule::Header { name, .. } => Some(name.as_str()),
            TokenSourceRule::Cookie { .. } => None,
        });
        let keys = router
            .api_keys
            .as_ref()
            .map(|keys| keys.header_name.0.as_str());
        let claims = config.authorization.claims.header.as_ref();
        let mut names: Vec<String> = CREDENTIALS
            .into_iter()
            .chain([router.jwt.header_name.0.as_str()])
            .chain([config.telemetry.execution_trace.header.0.as_str()])
            .chain(sources)
            .chain(keys)
            .chain(claims.map(|header| header.0.as_str()))
            .map(plain)
            .collect();
        let mut inserted = Vec::new();
        let sections = config.headers.subgraphs.values();
        let sections = std::iter::once(&config.headers.all).chain(sections);
        for section in sections {
            for rule in &section.request {
                match rule.effect() {
                    HeaderRule::Propagate {
                        from: HeaderSelector::Named(from),
                        rename: Some(to),
                        ..
                    } if names.contains(&plain(from)) => names.push(plain(to)),
                    HeaderRule::Insert { name, .. } | HeaderRule::InsertTemplate { name, .. } => {
                        inserted.push(plain(name));
                    }
                    _ => {}
                }
            }
            for rule in &section.response {
                if let ResponseHeaderRule::Propagate {
                    from: HeaderSelector::Named(from),
                    rename: Some(to),
                    ..
                } = rule.effect()
                    && names.contains(&plain(from))
                {
                    names.push(plain(to));
                }
            }
        }
        CredentialHeaders { names, inserted }
    }

    /// Whether a header is one.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(&plain(name))
    }

    /// Refuses an attribute that would show one.
    fn check(&self, name: &str, attribute: &Attribute, at: Span, errors: &mut Errors) {
        let AttributeSource::Selector(selector) = &attribute.from else {
            return;
        };
        let shown = match selector {
            Selector::RequestHeader(header) | Selector::ResponseHeader(header) => {
                Some(header).filter(|header| self.has(header))
            }
            Selector::SubgraphRequestHeader(header) => {
                let is_inserted = self.inserted.contains(&plain(header));
                Some(header).filter(|header| is_inserted || self.has(header))
            }
            _ => None,
        };
        if let Some(header) = shown {
            let message =
                format!("the attribute `{name}` would show a credential: `{header}` may hold one");
            let help = "tell callers apart by a claim, such as `{ jwt_claim: sub }`";
            errors.invalid(at, message, help);
        }
    }
}

/// Refuses attributes and names of clients that would show a credential. `spans` are the places of `telemetry.access_log`,
/// `telemetry.instrumentation` and `telemetry.clients`.
pub(crate) fn check(
    config: &Config,
    [log, instrumentation, clients]: [Span; 3],
    errors: &mut Errors,
) {
    let headers = CredentialHeaders::of(config);
    let telemetry = &config.telemetry;
    let (spans, instruments) = (
        &telemetry.instrumentation.spans,
        &telemetry.instrumentation.instruments,
    );
    for (name, attribute) in &telemetry.access_log.attributes.0 {
        headers.check(name, attribute, log, errors);
    }
    let all = [
        &spans.router.attributes.0,
        &spans.supergraph.attributes.0,
        &spans.subgraph.attributes.0,
        &instruments.router.0.0,
        &instruments.supergraph.0.0,
        &instruments.subgraph.0.0,
    ];
    for (name, attribute) in all.into_iter().flatten() {
        headers.check(name, attribute, instrumentation, errors);
    }
    let names = telemetry.clients.name_headers.iter();
    for header in names.chain(&telemetry.clients.version_headers) {
        if headers.has(&header.0) {
            let message = format!(
                "`{}` may hold a credential, and names of clients are shown",
                header.0
            );
            errors.invalid(clients, message, "name another header");
        }
    }
}
