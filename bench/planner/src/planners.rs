//! The planners: each takes the text of an operation and gives a plan, remembering nothing between operations.
//!
//! What is measured of both is the same: parse, validate, normalise, plan with the documents of all requests written,
//! count, and drop everything. Reading the supergraph is not measured.

use std::panic::{AssertUnwindSafe, catch_unwind};

use graphql_tools::validation::{
    rules::default_rules_validation_plan, utils::ValidationError, validate::ValidationPlan,
};
use hive_router_query_planner::{
    ast::normalization::normalize_operation,
    graph::PlannerOverrideContext,
    planner::{
        Planner as HivePlanner, QueryPlannerOptions,
        plan_nodes::{PlanNode, QueryPlan},
    },
    utils::{
        cancellation::CancellationToken,
        parsing::{safe_parse_operation, safe_parse_schema},
    },
};
use ogive_base::SourceId;
use ogive_federation::Supergraph;
use ogive_operation::{NormaliseLimits, ValidationLimits, normalise, validate};
use ogive_plan::Plan;
use ogive_planner::PlanOptions;
use ogive_syntax::{Limits, parse};

/// Patience of the refined plans of the table.
pub const REFINED_PATIENCE: u32 = 50;
/// Rule firings the refined plans of the table may spend on searching.
pub const REFINED_FUEL: u64 = 400_000_000;
/// Rule firings the refined plans of the table may spend on proof.
pub const REFINED_EXACT_FUEL: u64 = 20_000_000;

/// One way to plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// This project's planner as the gateway runs it on a request.
    Ogive,
    /// The same with more patience, then exact.
    Refined,
    /// The crate `hive-router-query-planner`.
    Hive,
}

impl Who {
    /// All, in the order of the table.
    pub const ALL: [Who; 3] = [Who::Ogive, Who::Refined, Who::Hive];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Who::Ogive => "ogive",
            Who::Refined => "refined",
            Who::Hive => "hive",
        }
    }
}

/// What a plan comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// HTTP requests, those under conditions included.
    pub requests: u32,
    /// Longest chain of requests.
    pub waves: u32,
}

/// A planner over one supergraph.
pub enum Engine {
    /// Ours, and its options.
    Ogive(Box<Supergraph>, PlanOptions),
    /// Theirs, and the rules of validation.
    Hive(Box<HivePlanner>, Box<ValidationPlan>),
}

impl Engine {
    /// Reads a supergraph.
    pub fn new(who: Who, sdl: &str) -> Result<Engine, String> {
        let options = match who {
            Who::Hive => return caught(|| hive_engine(sdl)),
            Who::Ogive => PlanOptions::default(),
            Who::Refined => PlanOptions {
                patience: REFINED_PATIENCE,
                fuel: REFINED_FUEL,
                exact_fuel: REFINED_EXACT_FUEL,
                ..PlanOptions::default()
            },
        };
        let supergraph = ogive_testkit::schemas::supergraph(sdl)?;
        Ok(Engine::Ogive(Box::new(supergraph), options))
    }

    /// Plans one operation.
    pub fn plan(&self, text: &str) -> Result<Counts, String> {
        match self {
            Engine::Ogive(supergraph, options) => {
                let plan = ogive(supergraph, options, text)?;
                Ok(Counts {
                    requests: plan.fetches.len() as u32,
                    waves: plan.fetches.iter().map(|(_, f)| f.wave).max().unwrap_or(0),
                })
            }
            Engine::Hive(planner, rules) => {
                let plan = hive(planner, rules, text)?;
                Ok(plan.node.as_ref().map_or(Counts::default(), count))
            }
        }
    }

    /// Bytes of our plan in memory, as a cache keeps it.
    pub fn plan_bytes(&self, text: &str) -> Result<usize, String> {
        match self {
            Engine::Ogive(supergraph, options) => {
                let mut plan = ogive(supergraph, options, text)?;
                plan.shrink_to_fit();
                Ok(plan.heap_bytes())
            }
            Engine::Hive(..) => Err("not known".to_owned()),
        }
    }

    /// Plans one operation, for people to read.
    pub fn explain(&self, text: &str) -> Result<String, String> {
        match self {
            Engine::Ogive(supergraph, options) => {
                ogive(supergraph, options, text).map(|plan| ogive_plan::text(&plan))
            }
            Engine::Hive(planner, rules) => {
                let plan = hive(planner, rules, text)?;
                serde_json::to_string_pretty(&plan).map_err(|e| e.to_string())
            }
        }
    }

    /// The same, with a panic as an error.
    pub fn plan_caught(&self, text: &str) -> Result<Counts, String> {
        caught(|| self.plan(text))
    }
}

fn ogive(supergraph: &Supergraph, options: &PlanOptions, text: &str) -> Result<Plan, String> {
    let parsed = parse(text, SourceId(0), &Limits::default());
    if let Some(error) = parsed.errors.first() {
        return Err(format!("refused: {}", error.message));
    }
    let document = parsed.document;
    let api = &supergraph.api;
    if let Some(error) = validate(api, &document, &ValidationLimits::default()).first() {
        return Err(format!("refused: {}", error.message));
    }
    let definition = document.operations().next().ok_or("no operation")?;
    let operation = normalise(api, &document, definition, &NormaliseLimits::default())
        .map_err(|error| format!("refused: {}", error.message))?;
    ogive_planner::plan(supergraph, &operation, options).map_err(|e| e.to_string())
}

fn hive_engine(sdl: &str) -> Result<Engine, String> {
    let document = safe_parse_schema(sdl).map_err(|e| e.to_string())?;
    let planner = HivePlanner::new_from_supergraph(&document, QueryPlannerOptions::default())
        .map_err(|e| e.to_string())?;
    let rules = default_rules_validation_plan();
    Ok(Engine::Hive(Box::new(planner), Box::new(rules)))
}

fn hive(planner: &HivePlanner, rules: &ValidationPlan, text: &str) -> Result<QueryPlan, String> {
    let document = safe_parse_operation(text).map_err(|e| format!("refused: {e}"))?;
    let errors: Vec<ValidationError> = graphql_tools::validation::validate::validate(
        &planner.consumer_schema.document,
        &document,
        rules,
    );
    if let Some(error) = errors.first() {
        return Err(format!("refused: {}", error.message));
    }
    let normal = normalize_operation(&planner.supergraph, &document, None)
        .map_err(|e| format!("refused: {e}"))?;
    planner
        .plan_from_normalized_operation(
            &normal.operation,
            PlannerOverrideContext::default(),
            &CancellationToken::new(),
        )
        .map_err(|e| e.to_string())
}

/// Requests of a plan tree and its longest chain. Recursion is as deep as the plan the crate itself recursed over.
fn count(node: &PlanNode) -> Counts {
    let both = |counts: Counts, more: Counts| Counts {
        requests: counts.requests + more.requests,
        waves: counts.waves.max(more.waves),
    };
    match node {
        PlanNode::Fetch(_) | PlanNode::BatchFetch(_) | PlanNode::Subscription(_) => Counts {
            requests: 1,
            waves: 1,
        },
        PlanNode::Sequence(sequence) => {
            let parts = sequence.nodes.iter().map(count);
            parts.fold(Counts::default(), |sum, part| Counts {
                requests: sum.requests + part.requests,
                waves: sum.waves + part.waves,
            })
        }
        PlanNode::Parallel(parallel) => {
            let parts = parallel.nodes.iter().map(count);
            parts.fold(Counts::default(), both)
        }
        PlanNode::Flatten(flatten) => count(&flatten.node),
        PlanNode::Condition(condition) => [&condition.if_clause, &condition.else_clause]
            .into_iter()
            .flatten()
            .map(|clause| count(clause))
            .fold(Counts::default(), both),
        // Nothing here asks for `@defer`.
        PlanNode::Defer(defer) => defer
            .primary
            .node
            .as_ref()
            .map_or(Counts::default(), |node| count(node)),
    }
}

fn caught<T>(f: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("");
        Err(format!("panicked: {message}"))
    })
}
