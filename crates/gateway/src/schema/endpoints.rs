//! The subgraphs of a schema as the transport knows them: where they are, and how they are asked.

use std::{num::NonZeroU32, sync::Arc};

use http::{HeaderName, HeaderValue};
use ogive_config::{
    AttributeSource, ClientsOptions, CompressionWord, Config, EventProtocolWord, HeaderAlgorithm,
    HeaderSelector, Http2Word, ReuseWord,
};
use ogive_execute::{RequestLimits, Reuse};
use ogive_limits::Limit;
use ogive_selectors::Selector;
use ogive_transport::{
    CallbackSource, CircuitBreaker, ClientValue, ConditionalEndpoint, Encoding, Endpoint,
    EventProtocol, EventSource, ExtensionValue, HeaderRule, HeaderRules, Hedge, Http2, Merge,
    NameMatch, OutlierEjection, Reconnect, RequestExtension, RequestExtensions, ResponseHeaderRule,
    ResponseHeaderRules, Retry, TemplatePart, Traffic,
};

use super::{
    conditions::{ClientHeaders, condition},
    signers::{own_headers, signer},
};
use crate::{
    shared::{attributes::looks_at_answers, response_cache::cache_policy},
    tls::subgraph_tls,
};

/// One subgraph.
pub(crate) fn endpoint(config: &Config, name: &str, url: &str) -> Endpoint {
    let traffic = config.traffic(name);
    let url = config
        .override_subgraph_url
        .get(name)
        .map_or(url, |url| url.0.as_str());
    let mut urls: Vec<&str> = traffic.urls.iter().map(|url| url.0.as_str()).collect();
    if urls.is_empty() {
        urls.push(url);
    }
    let http2 = match traffic.http2 {
        Http2Word::Enable => Http2::Enable,
        Http2Word::Disable => Http2::Disable,
        Http2Word::Only => Http2::Only,
    };
    let answer = config.limits.warn_only.size(
        Limit::Response,
        traffic.response_max_bytes,
        Traffic::default().response_bytes_max,
    );
    let mut endpoint = Endpoint::with_replicas(
        name,
        &urls,
        Traffic {
            timeout: traffic.timeout,
            connect_timeout: traffic.connect_timeout,
            response_bytes_max: answer.limit,
            response_bytes_ceiling: Some(answer.ceiling),
            compression: traffic.compression.map(|word| match word {
                CompressionWord::Gzip => Encoding::Gzip,
                CompressionWord::Br => Encoding::Brotli,
                CompressionWord::Zstd => Encoding::Zstd,
            }),
            accept_compression: traffic.accept_compression,
            deduplicate_query: traffic.deduplicate_query,
            request_limits: RequestLimits {
                representations_max: traffic
                    .max_representations
                    .map(|most| NonZeroU32::try_from(most).unwrap_or(NonZeroU32::MAX)),
                split_retry: traffic.split_retry,
                reuse: match config.execution.subgraphs.get(name) {
                    Some(own) => reuse(own.reuse.unwrap_or(ReuseWord::All)),
                    None => Reuse::All,
                },
            },
            first_byte_timeout: traffic.first_byte_timeout,
            hedge: traffic.hedge.map(|hedge| Hedge {
                percentile: hedge.percentile.clamp(1, 100),
                delay_min: hedge.min_delay.0,
                budget_percent: hedge.budget_percent,
            }),
            outlier: traffic.outlier_ejection.map(|outlier| OutlierEjection {
                consecutive_failures: outlier.consecutive_failures,
                base_ejection_time: outlier.base_ejection_time.0,
                max_ejection_percent: outlier.max_ejection_percent,
            }),
            http2,
            deadline_header: traffic
                .deadline_header
                .and_then(|name| header_name(&name.0)),
            retry: traffic.retry.map(|retry| Retry {
                attempts: retry.attempts,
                backoff: retry.backoff.0,
                backoff_max: retry.backoff_max.0,
                budget_percent: retry.budget_percent,
                budget_per_second: retry.min_per_sec,
            }),
            breaker: traffic.circuit_breaker.map(|breaker| CircuitBreaker {
                error_percent: breaker.error_threshold_percent,
                volume: breaker.volume_threshold,
                window: breaker.window.0,
                reset_timeout: breaker.reset_timeout.0,
            }),
            idle_timeout: traffic.pool_idle_timeout,
            connection_age_max: traffic.pool_max_age,
            idle_max: traffic.pool_idle_max,
            idle_total_max: config.traffic_shaping.pool_idle_total_max.get(),
        },
        HeaderRules::new(
            config
                .request_header_rules(name)
                .filter_map(|rule| header_rule(rule, &config.telemetry.clients))
                .collect(),
        )
        .owning(own_headers(config, name)),
    );
    endpoint.response_headers = response_header_rules(config, name);
    if endpoint.is_https() || may_go_elsewhere(config) {
        endpoint.tls = subgraph_tls(config, name, http2);
    }
    endpoint.extensions = extensions(config, name);
    endpoint.keeps_headers = keeps_headers(config);
    endpoint.cache = cache_policy(config, name, &urls);
    endpoint.events = event_source(config, name);
    endpoint.signer = signer(config, name);
    endpoint.shows_errors = config.includes_subgraph_errors(name);
    add_elsewhere(config, name, http2, &mut endpoint);
    endpoint
}

/// What becomes of the headers of a subgraph's answers.
fn response_header_rules(config: &Config, name: &str) -> ResponseHeaderRules {
    let rules = config.response_header_rules(name);
    let rules = rules.filter_map(|rule| response_header_rule(rule, &config.telemetry.clients));
    ResponseHeaderRules::new(rules.collect())
}

/// The other URLs of a subgraph, and what has to hold of requests that go there.
fn add_elsewhere(config: &Config, name: &str, http2: Http2, endpoint: &mut Endpoint) {
    let clients = &config.telemetry.clients;
    let rules = config.subgraph_urls(name).map(|(when, url)| {
        let mut there = endpoint.at(&url.0);
        if there.is_https() {
            there.tls = subgraph_tls(config, name, http2);
        }
        ConditionalEndpoint {
            when: condition(when, clients),
            endpoint: there,
        }
    });
    let rules = rules.collect();
    endpoint.elsewhere = rules;
}

/// Whether a coprocessor, a script or a component may send requests to another place.
fn may_go_elsewhere(config: &Config) -> bool {
    let is_told = config.coprocessor.subgraph.all.request.0.is_on();
    is_told || config.rhai.scripts.is_some() || !config.plugins.is_empty()
}

/// Whether anybody looks at the headers of answers.
fn keeps_headers(config: &Config) -> bool {
    let is_told = config.coprocessor.subgraph.all.response.0.headers;
    is_told
        || config.rhai.scripts.is_some()
        || !config.plugins.is_empty()
        || looks_at_answers(config)
}

/// How a subgraph sends events; `None` if subscriptions are off.
fn event_source(config: &Config, name: &str) -> Option<Arc<EventSource>> {
    let source = config.event_source(name)?;
    let default = EventSource::default();
    let names = source.connection_init_headers.iter();
    Some(Arc::new(EventSource {
        protocol: match source.protocol {
            _ if source.callback.is_some() => EventProtocol::Callback,
            EventProtocolWord::Auto => EventProtocol::Auto,
            EventProtocolWord::GraphqlWs => EventProtocol::TransportWs,
            EventProtocolWord::GraphqlTransportWs => EventProtocol::LegacyWs,
            EventProtocolWord::Sse => EventProtocol::Sse,
            EventProtocolWord::Multipart => EventProtocol::Multipart,
        },
        path: source.path.and_then(|path| path.0.parse().ok()),
        heartbeat_interval: source.heartbeat_interval,
        acknowledge_timeout: source.acknowledge_timeout,
        connection_init: names.filter_map(|name| header_name(name)).collect(),
        callback: source
            .callback
            .map(|(url, heartbeat_interval)| CallbackSource {
                url: url.into(),
                heartbeat_interval,
            }),
        reconnect: Reconnect {
            attempts: config.subscription.max_reconnect_attempts,
            delay: config.subscription.reconnect_delay.0,
            ..default.reconnect
        },
        ..default
    }))
}

fn header_name(text: &str) -> Option<HeaderName> {
    HeaderName::from_bytes(text.as_bytes()).ok()
}

fn selector(selector: &HeaderSelector) -> Option<NameMatch> {
    Some(match selector {
        HeaderSelector::Named(text) => NameMatch::Named(header_name(text)?),
        HeaderSelector::Matching(regex) => NameMatch::matching(regex)?,
    })
}

/// The configuration was checked when it was read, so nothing is lost here.
fn header_rule(rule: &ogive_config::HeaderRule, clients: &ClientsOptions) -> Option<HeaderRule> {
    Some(match rule {
        ogive_config::HeaderRule::Propagate {
            from,
            rename,
            default,
        } => HeaderRule::Propagate {
            from: selector(from)?,
            rename: rename.as_deref().and_then(header_name),
            default: default
                .as_deref()
                .and_then(|v| HeaderValue::from_str(v).ok()),
        },
        ogive_config::HeaderRule::Insert { name, value } => {
            HeaderRule::Insert(header_name(name)?, HeaderValue::from_str(value).ok()?)
        }
        ogive_config::HeaderRule::InsertFrom {
            name,
            from,
            default,
        } => {
            let (name, default) = (header_name(name)?, default.as_deref());
            let default = default.and_then(|v| HeaderValue::from_str(v).ok());
            let from = match from {
                Selector::JwtClaim(path) => {
                    let path = path.as_str().into();
                    return Some(HeaderRule::InsertClaim {
                        name,
                        path,
                        default,
                    });
                }
                Selector::ClientName => ClientHeaders::new(clients).names,
                Selector::ClientVersion => ClientHeaders::new(clients).versions,
                other => {
                    // The configuration refuses others.
                    let value = client_value(other)?;
                    return Some(HeaderRule::InsertValue {
                        name,
                        value,
                        default,
                    });
                }
            };
            HeaderRule::InsertFirst {
                name,
                from,
                default,
            }
        }
        ogive_config::HeaderRule::InsertTemplate {
            name,
            template,
            default,
        } => HeaderRule::InsertTemplate {
            name: header_name(name)?,
            parts: template
                .iter()
                .map(|part| template_part(part, clients))
                .collect::<Option<_>>()?,
            default: default
                .as_deref()
                .and_then(|v| HeaderValue::from_str(v).ok()),
        },
        ogive_config::HeaderRule::When(when, rule) => HeaderRule::When(
            condition(when, clients),
            Box::new(header_rule(rule, clients)?),
        ),
        ogive_config::HeaderRule::Remove(from) => HeaderRule::Remove(selector(from)?),
    })
}

fn template_part(
    part: &ogive_selectors::TemplatePart,
    clients: &ClientsOptions,
) -> Option<TemplatePart> {
    let selector = match part {
        ogive_selectors::TemplatePart::Text(text) => {
            return Some(TemplatePart::Text(text.as_str().into()));
        }
        ogive_selectors::TemplatePart::Selector(selector) => selector,
    };
    Some(match selector {
        Selector::JwtClaim(path) => TemplatePart::Claim(path.as_str().into()),
        Selector::RequestHeader(name) => TemplatePart::Header(header_name(name)?),
        Selector::ClientName => TemplatePart::First(ClientHeaders::new(clients).names),
        Selector::ClientVersion => TemplatePart::First(ClientHeaders::new(clients).versions),
        other => TemplatePart::Known(client_value(other)?),
    })
}

fn client_value(selector: &Selector) -> Option<ClientValue> {
    Some(match selector {
        Selector::ClientAddress => ClientValue::Address,
        Selector::OperationName => ClientValue::OperationName,
        Selector::OperationKind => ClientValue::OperationKind,
        _ => return None,
    })
}

/// What requests say in their extensions.
fn extensions(config: &Config, subgraph: &str) -> RequestExtensions {
    let (members, clients) = (
        config.traffic(subgraph).request_extensions,
        &config.telemetry.clients,
    );
    let names = |names: &[ogive_config::HeaderName]| {
        let names = names.iter().filter_map(|name| header_name(&name.0));
        ExtensionValue::ClientText(names.collect())
    };
    let members = members.0.iter().filter_map(|(name, member)| {
        let value = match &member.from {
            AttributeSource::Static(text) => ExtensionValue::Static(text.as_str().into()),
            AttributeSource::Selector(selector) => match selector {
                Selector::JwtClaim(path) => ExtensionValue::Claim(path.as_str().into()),
                Selector::RequestHeader(name) => ExtensionValue::Header(header_name(name)?),
                Selector::ClientName => names(&clients.name_headers),
                Selector::ClientVersion => names(&clients.version_headers),
                other => ExtensionValue::Known(client_value(other)?),
            },
        };
        Some(RequestExtension {
            name: name.as_str().into(),
            value,
            default: member.default.as_deref().map(Into::into),
        })
    });
    RequestExtensions(members.collect())
}

fn response_header_rule(
    rule: &ogive_config::ResponseHeaderRule,
    clients: &ClientsOptions,
) -> Option<ResponseHeaderRule> {
    Some(match rule {
        ogive_config::ResponseHeaderRule::Propagate {
            from,
            rename,
            default,
            algorithm,
        } => ResponseHeaderRule::Propagate {
            from: selector(from)?,
            rename: rename.as_deref().and_then(header_name),
            default: default
                .as_deref()
                .and_then(|v| HeaderValue::from_str(v).ok()),
            algorithm: algorithm.map(|algorithm| match algorithm {
                HeaderAlgorithm::First => Merge::First,
                HeaderAlgorithm::Last => Merge::Last,
                HeaderAlgorithm::Append => Merge::Append,
            }),
        },
        ogive_config::ResponseHeaderRule::Insert { name, value } => {
            ResponseHeaderRule::Insert(header_name(name)?, HeaderValue::from_str(value).ok()?)
        }
        ogive_config::ResponseHeaderRule::InsertTemplate {
            name,
            template,
            default,
        } => {
            let parts = template.iter().map(|part| template_part(part, clients));
            ResponseHeaderRule::InsertTemplate {
                name: header_name(name)?,
                parts: parts.collect::<Option<_>>()?,
                default: default
                    .as_deref()
                    .and_then(|v| HeaderValue::from_str(v).ok()),
            }
        }
        ogive_config::ResponseHeaderRule::When(when, rule) => ResponseHeaderRule::When(
            condition(when, clients),
            Box::new(response_header_rule(rule, clients)?),
        ),
        ogive_config::ResponseHeaderRule::Remove(from) => {
            ResponseHeaderRule::Remove(selector(from)?)
        }
    })
}

/// What the executor may reuse of what a subgraph answered.
pub(crate) fn reuse(word: ReuseWord) -> Reuse {
    match word {
        ReuseWord::Off => Reuse::Off,
        ReuseWord::Entities => Reuse::Entities,
        ReuseWord::All => Reuse::All,
    }
}
