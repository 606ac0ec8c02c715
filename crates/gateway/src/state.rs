//! What one schema brings along: the supergraph, its endpoints and the operations seen with it.
//!
//! A state never changes. A new schema is compiled beside the old one and swapped by one pointer; requests in flight
//! keep theirs.

use std::{num::NonZeroU32, time::Duration};

use http::{HeaderName, HeaderValue};
use ogive_config::{
    BatchingWord, CompressionWord, Config, HeaderAlgorithm, HeaderSelector, Http2Word, Limit,
    Measured, PlanProfile, ReuseWord,
};
use ogive_execute::{ExecuteLimits, ExecuteOptions, RequestLimits, Reuse};
use ogive_federation::Supergraph;
use ogive_operation::ValidationLimits;
use ogive_planner::{Batching, PlanOptions, Profile};
use ogive_syntax::Limits;
use ogive_transport::{
    CircuitBreaker, Encoding, Endpoint, HeaderRule, HeaderRules, Hedge, Http2, Merge, NameMatch,
    OutlierEjection, ResponseHeaderRule, ResponseHeaderRules, Retry, Traffic,
};

use crate::{
    authorization::{self, EnforceOptions},
    cache::{CacheLimits, OperationCache},
    canonical::ComparedFields,
    feedback::Feedback,
    fingerprint::Fingerprints,
    labels::Labels,
    memory,
    operation_limits::{OperationLimits, tokens},
    plans::PlanCache,
    prepare::PrepareLimits,
    receive::ReceiveLimits,
    refine::{RefineLimits, Refinement},
    tls::subgraph_tls,
};

/// Bytes of a slot in the response store.
const BYTES_PER_VALUE: usize = 16;

/// One schema, ready to serve.
#[derive(Debug)]
pub struct SchemaState {
    /// The supergraph.
    pub supergraph: Supergraph,
    /// Where its subgraphs are, by subgraph id.
    pub endpoints: Vec<Endpoint>,
    /// Operations seen before.
    pub operations: OperationCache,
    /// Plans made before, for any number of documents each.
    pub plans: PlanCache,
    /// Hashes of the supergraph's types: tell which plans outlive it.
    pub fingerprints: Fingerprints,
    /// Fields whose literal arguments the planner compares.
    pub compared: ComparedFields,
    /// How progressive overrides are settled.
    pub labels: Labels,
    /// What running requests teach.
    pub feedback: Feedback,
    /// Plans that wait for a better one.
    pub refinement: Refinement,
    /// How requests are treated.
    pub options: PipelineOptions,
}

/// How requests are treated on their way through the five stops.
#[derive(Clone, Debug)]
pub struct PipelineOptions {
    /// Limits on documents.
    pub prepare: PrepareLimits,
    /// Limits on planning, and what plans make small.
    pub plan: PlanOptions,
    /// Limits on execution.
    pub execute: ExecuteLimits,
    /// What responses tell about subgraphs.
    pub tell: ExecuteOptions,
    /// Members of `extensions` that clients see of errors of subgraphs, besides `code`.
    pub error_extensions: Vec<Box<str>>,
    /// Whether `__schema` and `__type` are answered; default true.
    pub introspection: bool,
    /// What becomes of operations that ask for what their callers may not see.
    pub authorization: EnforceOptions,
    /// Whether equal operations under way are executed once; default no.
    pub share_operations: bool,
    /// Most bytes of subgraphs' answers that one request holds; default 256 MiB.
    pub request_memory: Measured<usize>,
    /// How long the execution of a request may take; default 60 s.
    pub request_timeout: Duration,
}

impl SchemaState {
    /// Makes a supergraph ready to serve. Returns notes for the operator about parts of the configuration or the
    /// supergraph that will not do what they seem to.
    pub fn new(mut supergraph: Supergraph, config: &Config) -> (SchemaState, Vec<String>) {
        let mut notes = authorization::settle(&mut supergraph, config);
        notes.extend(config.notes());
        for (section, name) in config.mentioned_subgraphs() {
            if !supergraph.subgraphs.iter().any(|(_, s)| &*s.name == name) {
                notes.push(format!(
                    "`{section}` mentions the subgraph `{name}`, which the supergraph does not have"
                ));
            }
        }
        if config.traffic_shaping.all.urls.is_some() {
            notes.push(
                "`traffic_shaping.all.urls` means nothing: replicas belong to one subgraph, below `subgraphs`"
                    .to_owned(),
            );
        }
        let endpoints: Vec<Endpoint> = supergraph
            .subgraphs
            .iter()
            .map(|(_, subgraph)| endpoint(config, &subgraph.name, &subgraph.url))
            .collect();
        for endpoint in &endpoints {
            let name = &endpoint.name;
            if let Err(error) = &endpoint.replicas {
                notes.push(format!(
                    "the subgraph `{name}` cannot be asked: {error}; set `override_subgraph_url.{name}`"
                ));
            }
            if let Err(error) = &endpoint.tls {
                notes.push(format!(
                    "the subgraph `{name}` cannot be asked: {error}; correct `tls.subgraph`"
                ));
            }
        }
        let labels = Labels::new(&supergraph, config);
        for label in labels.unknown(config) {
            notes.push(format!(
                "`override_labels.labels` mentions `{label}`, which no `@override` of the supergraph has"
            ));
        }
        let cache = &config.query_planning.cache;
        let limits = cache.enabled.then(|| CacheLimits {
            entries_max: cache.size.get(),
            bytes_max: cache.memory.0,
        });
        let state = SchemaState {
            operations: OperationCache::new(limits),
            plans: PlanCache::new(limits),
            fingerprints: Fingerprints::new(&supergraph),
            compared: ComparedFields::new(&supergraph),
            options: PipelineOptions::new(
                config,
                &endpoints,
                PipelineOptions::planning_for(config, &supergraph),
            ),
            labels,
            feedback: Feedback::new(config, endpoints.iter().map(|e| &*e.name)),
            refinement: Refinement::new(RefineLimits::new(config)),
            supergraph,
            endpoints,
        };
        (state, notes)
    }
}

impl PipelineOptions {
    /// The planning options that a configuration asks for.
    pub fn planning(config: &Config) -> PlanOptions {
        PlanOptions {
            profile: match config.query_planning.profile {
                PlanProfile::CriticalPath => Profile::CriticalPath,
                PlanProfile::FewestRequests => Profile::FewestRequests,
                PlanProfile::LeastLoad => Profile::LeastLoad,
            },
            ..PlanOptions::default()
        }
    }
    /// The same for the subgraphs of one supergraph.
    pub fn planning_for(config: &Config, supergraph: &Supergraph) -> PlanOptions {
        let batching = |name: &str| {
            let traffic = config.traffic(name);
            let most = traffic.max_aliases.map(|most| u32::try_from(most.get()));
            match traffic.batching {
                BatchingWord::Off => Batching::Off,
                BatchingWord::Paths => Batching::Paths,
                BatchingWord::All => Batching::All(most.and_then(Result::ok).unwrap_or(u32::MAX)),
            }
        };
        let subgraphs = supergraph.subgraphs.iter();
        let mut batching: Vec<Batching> = subgraphs.map(|(_, s)| batching(&s.name)).collect();
        // Plans outlive a change of subgraphs if nothing is limited.
        if batching.iter().all(|b| *b == Batching::default()) {
            batching.clear();
        }
        PlanOptions {
            batching,
            ..PipelineOptions::planning(config)
        }
    }
    fn new(config: &Config, endpoints: &[Endpoint], plan: PlanOptions) -> Self {
        let execute = ExecuteLimits::default();
        let largest = endpoints.iter().map(|e| &e.traffic);
        let usual = largest.clone().map(|t| t.response_bytes_max).max();
        let largest = largest.map(Traffic::response_bytes_refused).max();
        let usual = usual.unwrap_or(execute.answer_bytes_max);
        let largest = largest.unwrap_or(execute.answer_bytes_max);
        let limits = &config.limits;
        let most = execute.answers_bytes_max.max(usual);
        let memory = limits.max_request_memory.map_or(most, |size| size.0);
        let memory = limits
            .warn_only
            .size(Limit::RequestMemory, memory, execute.answers_bytes_max);
        PipelineOptions {
            request_memory: memory,
            prepare: PrepareLimits {
                syntax: Limits {
                    source_bytes_max: ReceiveLimits::new(config).body.ceiling,
                    tokens_max: u32::try_from(tokens(limits).ceiling).unwrap_or(u32::MAX),
                    depth_max: limits.parser_max_recursion,
                    ..Limits::default()
                },
                validation: ValidationLimits {
                    errors_max: limits.errors_max,
                    // What introspection does not tell, messages must not tell one by one.
                    suggestions: config.supergraph.introspection,
                    ..ValidationLimits::default()
                },
                operation: OperationLimits::new(limits),
                ..PrepareLimits::default()
            },
            plan,
            // The transport has the limit of each subgraph and of a request; the executor must only not be stricter. It
            // counts the answer that it looks at twice.
            execute: ExecuteLimits {
                // Objects of one request never take more than a quarter of what all requests may.
                values_max: u32::try_from(memory::limit(config) / 4 / BYTES_PER_VALUE)
                    .unwrap_or(u32::MAX)
                    .min(execute.values_max),
                answer_bytes_max: largest,
                // Every field that may be asked for may be answered: an object in a list in a list.
                depth_max: limits
                    .parser_max_recursion
                    .saturating_mul(3)
                    .max(execute.depth_max),
                answers_bytes_max: memory.ceiling.saturating_add(largest),
                // Whatever fits into the memory of a request can be sent on.
                response_bytes_max: match limits.max_response_size {
                    Some(size) => size.0,
                    None => execute.response_bytes_max.max(memory.ceiling),
                },
                ..execute
            },
            error_extensions: {
                let names = config.include_subgraph_errors.extensions.iter();
                names.map(|name| name.as_str().into()).collect()
            },
            tell: ExecuteOptions {
                subgraph_error_extensions: {
                    let mut names = config.include_subgraph_errors.extensions.iter();
                    names.any(|name| name == "*")
                },
                reuse: reuse(config.execution.reuse),
                ..ExecuteOptions::default()
            },
            authorization: EnforceOptions::new(config),
            share_operations: config.traffic_shaping.router.deduplicate_query,
            introspection: config.supergraph.introspection,
            request_timeout: config.traffic_shaping.router.timeout.0,
        }
    }
}

fn reuse(word: ReuseWord) -> Reuse {
    match word {
        ReuseWord::Off => Reuse::Off,
        ReuseWord::Entities => Reuse::Entities,
        ReuseWord::All => Reuse::All,
    }
}

fn endpoint(config: &Config, name: &str, url: &str) -> Endpoint {
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
                .filter_map(header_rule)
                .collect(),
        ),
    );
    let answers = config.response_header_rules(name);
    endpoint.response_headers =
        ResponseHeaderRules::new(answers.filter_map(response_header_rule).collect());
    if endpoint.is_https() {
        endpoint.tls = subgraph_tls(config, name, http2);
    }
    endpoint.shows_errors = config.includes_subgraph_errors(name);
    endpoint
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
fn header_rule(rule: &ogive_config::HeaderRule) -> Option<HeaderRule> {
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
        ogive_config::HeaderRule::Remove(from) => HeaderRule::Remove(selector(from)?),
    })
}

fn response_header_rule(rule: &ogive_config::ResponseHeaderRule) -> Option<ResponseHeaderRule> {
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
        ogive_config::ResponseHeaderRule::Remove(from) => {
            ResponseHeaderRule::Remove(selector(from)?)
        }
    })
}
