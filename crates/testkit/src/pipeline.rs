//! The gateway's pipeline in process: validate, normalise, plan, verify, execute over engines instead of sockets.
//!
//! Answers come back in an order drawn from the seed, since nothing may depend on it. Every request is validated
//! against the schema the product derives for that subgraph, and again by the subgraph itself; any refusal or error a
//! subgraph answers with is a complaint, because the world has no errors of its own.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    future::Future,
    num::NonZeroU32,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use ogive_base::BitSet;
use ogive_cost::OutputProgram;
use ogive_execute::{
    ErrorCode, ExecuteInput, ExecuteLimits, ExecuteOptions, Failure, NamedSubgraphs,
    OperationNames, RequestLimits, Reuse, SubgraphRequest, SubgraphResponse, Transport,
    TransportFuture, execute,
    incremental::{IncrementalForm, Payload, execute_incrementally},
};
use ogive_federation::subgraph_schema;
use ogive_json::Tree;
use ogive_operation::{
    NormaliseLimits, Operation, Variables, coerce_variables, introspection::answer_locals,
    normalise,
};
use ogive_plan::{Granted, OperationKind, OutputCosts, Plan};
use ogive_planner::{PlanOptions, plan};
use ogive_schema::Schema;
use ogive_transport::Coalescer;
use serde_json::{Value as Json, value::RawValue};

use crate::{
    engines::Engines,
    faults::{Fault, FaultKind, members, nothing, unplaced},
    ops::RUN,
    rng::Rng,
    schemas::{Schemas, valid_document},
    world::FAULT,
};

/// Most polls of one execution; more means that it hangs.
const POLLS_MAX: usize = 1_000_000;

/// What the gateway made of one operation.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The `data` member, byte for byte; empty if there is none.
    pub data: String,
    /// The `errors` member, if there is one.
    pub errors: Option<String>,
    /// Requests in the order of sending: subgraph and body.
    pub requests: Vec<(String, String)>,
    /// Everything that should not have happened.
    pub complaints: Vec<String>,
    /// The plan as text.
    pub plan: String,
    /// The plan.
    pub compiled: Option<Arc<Plan>>,
    /// Waves of the plan.
    pub waves: u32,
    /// What it costs, if that was counted.
    pub cost: Option<u64>,
    /// The client's keys of root fields that were made to fail.
    pub failed_roots: Vec<String>,
}

/// The payloads of an answer in parts, everything that should not have happened, and what it costs if that was counted.
pub type InParts = (Vec<Payload>, Vec<String>, Option<u64>);

/// How a plan is executed. Every mode must give the same answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// What one operation may take over from itself.
    pub reuse: Reuse,
    /// Whether parts of fetches are sent early; only [`Reuse::All`] does.
    pub early: bool,
    /// Whether two clients ask at the same time and equal requests to a subgraph are sent once. Mutations are executed
    /// for one client all the same.
    pub shared: bool,
}

impl Mode {
    /// All that there are.
    pub const ALL: [Mode; 5] = [
        Mode::of(Reuse::Off, false, false),
        Mode::of(Reuse::Entities, false, false),
        Mode::of(Reuse::All, true, false),
        Mode::of(Reuse::All, false, false),
        Mode::of(Reuse::All, true, true),
    ];

    const fn of(reuse: Reuse, early: bool, shared: bool) -> Mode {
        Mode {
            reuse,
            early,
            shared,
        }
    }
    /// One of the three ways to reuse, by a seed.
    pub fn by_seed(seed: u64) -> Mode {
        Mode::ALL[(seed % 3) as usize]
    }
    /// The one of the seed, then all others.
    pub fn all_from(seed: u64) -> Vec<Mode> {
        let first = Mode::by_seed(seed);
        let others = Mode::ALL.into_iter().filter(|mode| *mode != first);
        std::iter::once(first).chain(others).collect()
    }
}

/// An operation with its plan.
#[derive(Debug)]
pub struct Prepared {
    plan: Arc<Plan>,
    text: String,
    variables: Variables,
    locals: Vec<Bytes>,
    /// What the fields of its answers cost.
    costs: Option<OutputCosts>,
    /// What it is estimated to cost with lists of so many items.
    pub estimate: Option<u64>,
}

/// Override labels are on or off by the seed.
pub fn labels_are_on(seed: u64) -> bool {
    seed % 2 == 1
}

/// Half of the operations tell all subgraphs their name.
fn named(plan: &Plan, seed: u64) -> Option<NamedSubgraphs> {
    let names = plan.subgraphs.iter().map(|name| Some(&**name));
    (seed % 4 < 2).then(|| NamedSubgraphs::new(names)).flatten()
}

fn names(subgraphs: Option<&NamedSubgraphs>) -> Option<OperationNames<'_>> {
    Some(OperationNames::new("Generated", subgraphs?))
}

/// The gateway over one graph.
#[derive(Debug)]
pub struct Gateway<'a> {
    schemas: &'a Schemas,
    engines: &'a Engines,
    /// What the product says each subgraph serves.
    served: Vec<Schema>,
    /// Items of lists of unknown size, if it is counted what answers cost.
    counts: Option<u32>,
}

impl<'a> Gateway<'a> {
    /// A gateway for these schemas in front of these engines.
    pub fn new(schemas: &'a Schemas, engines: &'a Engines) -> Self {
        let served = schemas
            .supergraph
            .subgraphs
            .ids()
            .map(|id| subgraph_schema(&schemas.supergraph, id).0)
            .collect();
        Gateway {
            schemas,
            engines,
            served,
            counts: None,
        }
    }

    /// The same; it is counted what answers cost, and estimated with lists of so many items.
    #[must_use]
    pub fn counting(mut self, list_size: u32) -> Self {
        self.counts = Some(list_size);
        self
    }

    /// What an operation is estimated to cost, and what the fields of its answers do.
    fn costs(
        &self,
        operation: &Operation,
        plan: &Plan,
        variables: &Variables,
    ) -> Option<(u64, OutputCosts)> {
        let supergraph = &self.schemas.supergraph;
        let of = (&supergraph.schema, &supergraph.graph.costs);
        let settings = ogive_cost::Settings {
            fields: true,
            list_size: self.counts?,
            ..ogive_cost::Settings::default()
        };
        let program = ogive_cost::compile(of.0, of.1, operation, &settings);
        let scratch = &mut ogive_cost::Scratch::default();
        let estimate = program.evaluate(of.0, of.1, variables, scratch).cost;
        let output = OutputProgram::compile(of.0, operation, &program, plan);
        let costs = output.evaluate(&program, of, variables, scratch);
        Some((estimate, costs))
    }

    fn labels(&self, seed: u64) -> BitSet {
        let labels = self.schemas.supergraph.graph.override_labels.len() as u32;
        if labels_are_on(seed) {
            (0..labels).collect()
        } else {
            BitSet::new()
        }
    }

    /// Answers one request, one request of which may fail. The error tells which stop failed and why.
    pub fn answer(
        &self,
        document: &str,
        variables: &str,
        seed: u64,
        fails: Option<Fault>,
    ) -> Result<Answer, String> {
        let prepared = self.prepare(document, variables, seed)?;
        self.execute(&prepared, Mode::by_seed(seed), seed, fails)
    }

    /// Everything before the execution, which does not depend on the mode.
    pub fn prepare(&self, document: &str, variables: &str, seed: u64) -> Result<Prepared, String> {
        self.prepare_with(document, variables, seed, NormaliseLimits::default())
    }

    /// The same for an answer in parts.
    pub fn prepare_in_parts(
        &self,
        document: &str,
        variables: &str,
        seed: u64,
    ) -> Result<Prepared, String> {
        let limits = NormaliseLimits {
            deferral: true,
            ..NormaliseLimits::default()
        };
        self.prepare_with(document, variables, seed, limits)
    }

    fn prepare_with(
        &self,
        document: &str,
        variables: &str,
        seed: u64,
        limits: NormaliseLimits,
    ) -> Result<Prepared, String> {
        let api = &self.schemas.supergraph.api;
        let document = valid_document(api, "operation", document)?;
        let operation = document
            .operations()
            .find(|op| op.name.is_some_and(|n| document.name(n) == RUN))
            .or_else(|| document.operations().next())
            .ok_or("the document has no operation")?;
        let input = Tree::read(variables.as_bytes(), 128).map_err(|e| format!("variables: {e}"))?;
        let variables = coerce_variables(api, &document, operation, Some(input.root()), true)
            .map_err(|e| format!("variables: {e:?}"))?;
        let operation = normalise(api, &document, operation, &limits)
            .map_err(|e| format!("normalise: {e:?}"))?;
        let plan = plan(
            &self.schemas.supergraph,
            &operation,
            &PlanOptions {
                labels: self.labels(seed),
                ..PlanOptions::default()
            },
        )
        .map_err(|e| format!("plan: {e}"))?;
        let text = ogive_plan::text(&plan);
        ogive_plan::verify(&plan)
            .map_err(|problems| format!("verify: {}\n{text}", problems.join("\n")))?;
        let locals: Vec<Bytes> = answer_locals(api, &operation, &variables, usize::MAX)
            .map_err(|e| format!("introspection: {e:?}"))?
            .into_iter()
            .map(Bytes::from)
            .collect();
        let costs = self.costs(&operation, &plan, &variables);
        let (estimate, costs) = costs.unzip();
        Ok(Prepared {
            costs,
            estimate,
            plan: Arc::new(plan),
            text,
            variables,
            locals,
        })
    }

    /// Executes a plan in parts: the payloads, and everything that should not have happened.
    pub fn execute_in_parts(
        &self,
        prepared: &Prepared,
        form: IncrementalForm,
        seed: u64,
    ) -> Result<InParts, String> {
        let Prepared { plan, text, .. } = prepared;
        let transport = InProcess {
            gateway: self,
            plan,
            rng: RefCell::new(Rng::new(seed)),
            requests: RefCell::default(),
            complaints: RefCell::default(),
            fails: None,
            failing: RefCell::default(),
            representations_max: None,
            texts: RefCell::default(),
            flights: None,
        };
        let granted = Granted::default();
        let named = named(plan, seed);
        let input = ExecuteInput {
            costs: prepared.costs.as_ref(),
            operation_names: names(named.as_ref()),
            error_extensions: &[],
            variables: &prepared.variables.values,
            granted: &granted,
            locals: &prepared.locals,
            // Lists are short here.
            limits: ExecuteLimits {
                stream_window: 1 + (seed % 3) as u32,
                stream_chunk_bytes: if seed.is_multiple_of(2) { 40 } else { 64 << 10 },
                ..ExecuteLimits::default()
            },
            options: ExecuteOptions {
                reuse: Mode::by_seed(seed).reuse,
                prefetch: Mode::by_seed(seed).early,
                ..ExecuteOptions::default()
            },
        };
        let mut payloads = Vec::new();
        let send = async |payload: Payload| {
            payloads.push(payload);
            true
        };
        let run = execute_incrementally(plan, input, form, &transport, send);
        let output = drive(run).ok_or_else(|| format!("execute: hangs\n{text}"))?;
        if !output.is_complete {
            return Err(format!(
                "execute: the last payload says that others follow\n{text}"
            ));
        }
        Ok((payloads, transport.complaints.take(), output.cost))
    }

    /// The plan of an operation as text.
    pub fn plan_text<'p>(&self, prepared: &'p Prepared) -> &'p str {
        &prepared.text
    }

    /// Executes a plan in one mode.
    pub fn execute(
        &self,
        prepared: &Prepared,
        mode: Mode,
        seed: u64,
        fails: Option<Fault>,
    ) -> Result<Answer, String> {
        let Prepared { plan, text, .. } = prepared;
        let shared = mode.shared && plan.kind == OperationKind::Query;
        let transport = InProcess {
            gateway: self,
            plan,
            rng: RefCell::new(Rng::new(seed)),
            requests: RefCell::default(),
            complaints: RefCell::default(),
            fails,
            failing: RefCell::default(),
            representations_max: NonZeroU32::new(2).filter(|_| seed.is_multiple_of(5)),
            texts: RefCell::default(),
            flights: shared.then(Coalescer::default),
        };
        let (transport, granted) = (&transport, Granted::default());
        let named = named(plan, seed);
        let run = || {
            let options = ExecuteOptions {
                reuse: mode.reuse,
                prefetch: mode.early,
                ..ExecuteOptions::default()
            };
            let input = ExecuteInput {
                costs: prepared.costs.as_ref(),
                operation_names: names(named.as_ref()),
                error_extensions: &[],
                variables: &prepared.variables.values,
                granted: &granted,
                locals: &prepared.locals,
                limits: ExecuteLimits::default(),
                options,
            };
            async move { execute(plan, input, transport).await }
        };
        let hangs = || format!("execute: hangs\n{text}");
        let output = if shared {
            let (first, second) = drive(both(run(), run())).ok_or_else(hangs)?;
            let bodies = [&first, &second].map(|output| output.body.clone().into_bytes());
            if split(&bodies[0])?.0 != split(&bodies[1])?.0 {
                return Err(format!(
                    "sharing: one client got\n{}\nand the other\n{}\n{text}",
                    String::from_utf8_lossy(&bodies[0]),
                    String::from_utf8_lossy(&bodies[1])
                ));
            }
            first
        } else {
            drive(run()).ok_or_else(hangs)?
        };
        let cost = output.cost;
        let (data, errors) = split(&output.body.into_bytes())?;
        Ok(Answer {
            failed_roots: transport.failed_roots(),
            cost,
            data,
            errors,
            requests: transport.requests.take(),
            complaints: transport.complaints.take(),
            waves: plan.fetches.iter().map(|(_, f)| f.wave).max().unwrap_or(0),
            plan: text.clone(),
            compiled: Some(Arc::clone(plan)),
        })
    }
}

/// Polls two futures in turn until both are ready.
async fn both<F: Future>(first: F, second: F) -> (F::Output, F::Output) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut one, mut other) = (None, None);
    std::future::poll_fn(move |context| {
        for (future, outcome) in [(&mut first, &mut one), (&mut second, &mut other)] {
            if outcome.is_none()
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                *outcome = Some(output);
            }
        }
        match (one.take(), other.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (a, b) => {
                (one, other) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}

/// The `data` and `errors` of a response, byte for byte.
pub fn split(body: &[u8]) -> Result<(String, Option<String>), String> {
    let text = std::str::from_utf8(body).map_err(|e| format!("response: {e}"))?;
    let mut members: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(text).map_err(|e| format!("response: {e}\n{text}"))?;
    let mut take = |name: &str| members.remove(name).map(|v| v.get().to_owned());
    Ok((take("data").unwrap_or_default(), take("errors")))
}

/// Whether all errors of an answer are those the world was told to raise.
fn only_faults(body: &[u8]) -> bool {
    let Ok(answer) = serde_json::from_slice::<Json>(body) else {
        return false;
    };
    answer["errors"].as_array().is_some_and(|errors| {
        errors
            .iter()
            .all(|e| e["message"].as_str().is_some_and(|m| m.ends_with(FAULT)))
    })
}

/// Polls a future to its end on this thread.
fn drive<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..POLLS_MAX {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
    }
    None
}

/// Subgraphs one function call away.
struct InProcess<'a> {
    gateway: &'a Gateway<'a>,
    plan: &'a Plan,
    rng: RefCell<Rng>,
    requests: RefCell<Vec<(String, String)>>,
    complaints: RefCell<Vec<String>>,
    fails: Option<Fault>,
    /// Root fields that fail whenever they are asked, and the subgraph.
    failing: RefCell<Option<(u32, Vec<String>)>>,
    /// Most entities in a request.
    representations_max: Option<NonZeroU32>,
    /// Texts with root fields that were sent, by subgraph.
    texts: RefCell<BTreeSet<(u32, String)>>,
    /// Requests under way, if they are shared.
    flights: Option<Coalescer<(u32, Bytes), Result<SubgraphResponse, Failure>>>,
}

impl InProcess<'_> {
    fn answer(&self, request: &SubgraphRequest) -> Vec<u8> {
        let name = self
            .plan
            .subgraphs
            .get(request.subgraph as usize)
            .map_or("?", |n| n);
        let text = String::from_utf8_lossy(&request.body).into_owned();
        let complain = |message: String| {
            self.complaints
                .borrow_mut()
                .push(format!("{name}: {message}\n{text}"));
        };
        let supergraph = &self.gateway.schemas.supergraph;
        let found = supergraph
            .subgraphs
            .iter()
            .find(|(_, s)| &*s.name == name)
            .map(|(id, _)| id.0 as usize);
        let Some(index) = found else {
            complain("no such subgraph".to_owned());
            return Vec::new();
        };
        match query_of(&request.body) {
            None => complain("no query".to_owned()),
            Some(query) => {
                if let Err(e) = valid_document(&self.gateway.served[index], "request", &query) {
                    complain(e);
                }
            }
        }
        // Names identify: the order of subgraphs is the product's own.
        let Some(engine) = self.gateway.engines.subgraph(name) else {
            complain("no engine".to_owned());
            return Vec::new();
        };
        let answer = engine.execute_body(&request.body, &Default::default());
        if answer.status != 200 || answer.has_errors && !only_faults(&answer.body) {
            complain(String::from_utf8_lossy(&answer.body).into_owned());
        }
        let query = query_of(&request.body).unwrap_or_default();
        let (roots, lookups) = members(&query, &answer.body);
        let asked = (request.subgraph, query);
        let is_first = roots.is_empty() || self.texts.borrow_mut().insert(asked);
        // A request that is sent in parts has its root fields in one of them.
        if !is_first && lookups > 0 && self.flights.is_none() {
            complain(format!("root fields {roots:?} are asked twice"));
        }
        if answer.is_mutation == request.idempotent {
            complain(format!("idempotent: {}", request.idempotent));
        }
        self.requests.borrow_mut().push((name.to_owned(), text));
        answer.body
    }
}

impl Transport for InProcess<'_> {
    fn request_limits(&self, _: u32) -> RequestLimits {
        RequestLimits {
            representations_max: self.representations_max,
            ..RequestLimits::default()
        }
    }
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        match &self.flights {
            Some(flights) if request.idempotent => {
                let key = (request.subgraph, request.body.clone());
                Box::pin(flights.join_or_lead(key, move || self.ask(request)))
            }
            _ => self.ask(request),
        }
    }
}

/// The text of a request.
fn query_of(body: &[u8]) -> Option<String> {
    let body: Json = serde_json::from_slice(body).ok()?;
    Some(body.get("query")?.as_str()?.to_owned())
}

impl InProcess<'_> {
    /// Sends a request; its answer comes after some polls.
    fn ask(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        let number = self.requests.borrow().len();
        let body = self.answer(&request);
        let result = self.failed(&request, number, body).map(Bytes::from);
        let mut delay = self.rng.borrow_mut().below(6);
        Box::pin(std::future::poll_fn(move |context| {
            if delay > 0 {
                delay -= 1;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(match &result {
                Some(body) => Ok(SubgraphResponse {
                    status: 200,
                    body: body.clone(),
                }),
                None => Err(Failure::new(
                    ErrorCode::SUBREQUEST_HTTP_ERROR,
                    "no answer",
                    "",
                )),
            })
        }))
    }

    /// What becomes of an answer; `None` if there is none.
    fn failed(&self, request: &SubgraphRequest, number: usize, body: Vec<u8>) -> Option<Vec<u8>> {
        let query = query_of(&request.body).unwrap_or_default();
        let (roots, lookups) = members(&query, &body);
        let is_failing = |(subgraph, keys): &(u32, Vec<String>)| {
            *subgraph == request.subgraph && roots.iter().any(|key| keys.contains(key))
        };
        if self.failing.borrow().as_ref().is_some_and(is_failing) {
            return Some(nothing(roots.first().map(|key| &**key)));
        }
        match self.fails.filter(|fault| fault.request == number) {
            None => Some(body),
            Some(fault) => match fault.kind {
                FaultKind::Lost => None,
                FaultKind::Unplaced => Some(unplaced(&body, &mut self.rng.borrow_mut())),
                FaultKind::Root if (1..=SPLIT_MAX - 1).contains(&lookups) && request.idempotent => {
                    let Some(first) = roots.first().cloned() else {
                        return Some(nothing(None));
                    };
                    *self.failing.borrow_mut() = Some((request.subgraph, roots));
                    Some(nothing(Some(&first)))
                }
                FaultKind::Nothing | FaultKind::Root => Some(nothing(None)),
            },
        }
    }

    /// The client's keys of root fields that fail.
    fn failed_roots(&self) -> Vec<String> {
        let failing = self.failing.borrow();
        let Some((subgraph, keys)) = failing.as_ref() else {
            return Vec::new();
        };
        let fetches = self.plan.fetches.as_slice().iter();
        let of_subgraph = fetches.filter(|fetch| fetch.subgraph == *subgraph);
        let roots = of_subgraph.filter_map(|fetch| fetch.root.as_ref());
        let fields = roots.flat_map(|root| &self.plan.shapes[root.shape].fields);
        let failed = fields.filter(|field| keys.iter().any(|key| *key == *field.key));
        let slots = &self.plan.layouts[Plan::ROOT].slots;
        let client_keys =
            failed.filter_map(|field| slots[usize::from(field.slot)].client_key.as_deref());
        client_keys.map(str::to_owned).collect()
    }
}

/// Most members of a request that the gateway asks for one by one once it fails.
const SPLIT_MAX: usize = 8;
