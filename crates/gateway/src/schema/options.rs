//! How requests are treated on their way through the five stops, as a configuration asks for it.

use std::{sync::Arc, time::Duration};

use ogive_config::{BatchingWord, Config, IntrospectionWord, PlanProfile};
use ogive_edge::{error_rules::ErrorRewrites, receive::ReceiveLimits};
use ogive_execute::{ErrorRules, ExecuteLimits, ExecuteOptions, NamedSubgraphs};
use ogive_federation::Supergraph;
use ogive_limits::{Limit, Measured};
use ogive_operation::{NormaliseLimits, ValidationLimits};
use ogive_planner::{Batching, PlanOptions, Profile};
use ogive_syntax::Limits;
use ogive_transport::{Endpoint, Traffic};

use crate::{
    authorize::EnforceOptions,
    prepare::operation_limits::{OperationLimits, tokens},
    schema::endpoints::reuse,
    shared::memory,
};

/// Bytes of a slot in the response store.
const BYTES_PER_VALUE: usize = 16;

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
    /// What clients are told of errors in place of what happened; `None`: what happened.
    pub(crate) error_rules: Option<Arc<ErrorRewrites>>,
    /// Whether `__schema` and `__type` are answered; default true.
    pub introspection: bool,
    /// What becomes of operations that ask for what their callers may not see.
    pub authorization: EnforceOptions,
    /// Which subgraphs are told names of operations; default none.
    pub named_subgraphs: Option<NamedSubgraphs>,
    /// Whether equal operations under way are executed once; default no.
    pub share_operations: bool,
    /// Most bytes of subgraphs' answers that one request holds; default 256 MiB.
    pub request_memory: Measured<usize>,
    /// How long the execution of a request may take; default 60 s.
    pub request_timeout: Duration,
}

/// Limits on documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrepareLimits {
    /// For the parser; default 15,000 tokens, nesting of 200, 2 MB.
    pub syntax: Limits,
    /// For validation.
    pub validation: ValidationLimits,
    /// For the normal form.
    pub normalise: NormaliseLimits,
    /// For the operation as a whole.
    pub operation: OperationLimits,
    /// Items of lists of unknown size, for estimates of costs; default `None`: nothing is estimated.
    pub list_size: Option<u32>,
    /// Whether it will be counted what answers did cost.
    pub prices: bool,
}

impl Default for PrepareLimits {
    fn default() -> Self {
        PrepareLimits {
            syntax: Limits {
                source_bytes_max: 2_000_000,
                tokens_max: 15_000,
                ..Limits::default()
            },
            validation: ValidationLimits::default(),
            normalise: NormaliseLimits::default(),
            operation: OperationLimits::default(),
            list_size: None,
            prices: false,
        }
    }
}

impl PipelineOptions {
    /// What clients are told of errors, as the executor asks for it.
    pub(crate) fn error_rules(&self) -> Option<&dyn ErrorRules> {
        self.error_rules.as_deref().map(|rules| rules as _)
    }
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
    pub(crate) fn new(config: &Config, endpoints: &[Endpoint], plan: PlanOptions) -> Self {
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
                    suggestions: config.supergraph.introspection
                        && config.authorization.introspection == IntrospectionWord::All,
                    ..ValidationLimits::default()
                },
                operation: OperationLimits::new(limits),
                list_size: {
                    let control = &config.demand_control;
                    let size = control.strategy.static_estimated.list_size.get();
                    control
                        .enabled
                        .then(|| u32::try_from(size).unwrap_or(u32::MAX))
                },
                prices: {
                    let strategy = &config.demand_control.strategy.static_estimated;
                    strategy.actual_cost_mode.is_some()
                },
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
                stream_window: u32::try_from(config.supergraph.stream_window.get())
                    .unwrap_or(u32::MAX),
                stream_chunk_bytes: config.supergraph.stream_chunk_size.0,
                ..execute
            },
            error_extensions: {
                let names = config.include_subgraph_errors.extensions.iter();
                names.map(|name| name.as_str().into()).collect()
            },
            error_rules: ErrorRewrites::new(config).map(Arc::new),
            tell: ExecuteOptions {
                subgraph_error_extensions: {
                    let mut names = config.include_subgraph_errors.extensions.iter();
                    names.any(|name| name == "*")
                },
                reuse: reuse(config.execution.reuse),
                ..ExecuteOptions::default()
            },
            authorization: EnforceOptions::new(config),
            named_subgraphs: {
                let names = endpoints.iter().map(|endpoint| &*endpoint.name);
                NamedSubgraphs::new(names.map(|name| {
                    let is_told = config.traffic(name).operation_names;
                    is_told.then_some(name)
                }))
            },
            share_operations: config.traffic_shaping.router.deduplicate_query,
            introspection: config.supergraph.introspection,
            request_timeout: config.traffic_shaping.router.timeout.0,
        }
    }
}
