//! What a source of events works by: the operation and its plan under one schema. Another schema brings another one, and
//! the source goes on by that if its subgraph would be asked the same ([`SourcePlan::under`]).
//!
//! Whoever shares a source was equal under the schema before it, in what subgraphs are sent and in what may be seen. That
//! has to follow for the new one from the configuration and the plans alone, because nothing else is known of those who
//! joined; otherwise the subscriptions end, and their clients come back and are judged anew.

use std::{collections::BTreeSet, sync::Arc};

use ogive_edge::{json_value::JsonObject, receive::GraphqlRequest};
use ogive_execute::{ExecuteInput, ExecuteOutput, SubgraphRequest, source_request};
use ogive_plan::{Fetch, Granted, OperationKind, Plan};
use ogive_telemetry::Telemetry;
use ogive_transport::{Endpoint, RequestTransport};

use crate::{
    charge::OperationCost,
    documents::DocumentClient,
    execution::BoundOperation,
    gateway::{Gateway, Serving},
    hooks::{
        components::LoadedHooks,
        settings::{HookStages, HookState},
    },
    prepare::Prepared,
    schema::{operation::PlannedOperation, state::SchemaState},
    shared::{
        context::OperationContext,
        operation_values::{OperationCaller, OperationValues},
        worker::WorkerState,
    },
    subscribe::{
        owner::Opener,
        rates::{EventRates, look_alike},
        sources::SourceKey,
    },
};

/// A subscription under one schema.
pub(crate) struct SourcePlan {
    pub(crate) state: Arc<SchemaState>,
    pub(crate) planned: Arc<PlannedOperation>,
    pub(crate) bound: BoundOperation<'static>,
    /// Values of the client's variables.
    pub(crate) asked: Vec<Option<Box<str>>>,
    /// What each event is charged against, if what answers cost is counted.
    pub(crate) charged: Option<OperationCost>,
    /// What its events take from, if there are rates of subgraphs.
    pub(crate) rates: Option<EventRates>,
    /// What of requests to subgraphs it is shared by.
    pub(crate) identity: SourceIdentity,
    /// The stages that its events pass, if anybody looks at them.
    pub(crate) hooks: Option<Arc<HookStages>>,
    /// By which it was let in.
    pub(crate) loaded: Arc<LoadedHooks>,
}

/// What of requests to subgraphs equal subscriptions agree on.
#[derive(Clone, Debug)]
pub(crate) enum SourceIdentity {
    /// What header rules make of the client's request, for each subgraph.
    Rules,
    /// What hooks have decided that the source is sent, as bytes. No other request follows.
    Hooks(Box<[u8]>),
    /// What hooks would decide is not known: nobody shares the source.
    Private,
}

/// What a source works by from now on.
pub(crate) struct Migrated {
    pub(crate) plan: SourcePlan,
    /// Whether it is known to hold for whoever opened the source, and for nobody else.
    pub(crate) for_opener: bool,
}

/// How often the variables of a plan are kept while its source runs: by the plan, by the key that others find the source by,
/// and in what the subgraph is asked.
const COPIES: usize = 3;

fn bytes_of(variables: &[Option<Box<str>>]) -> usize {
    let text: usize = variables.iter().flatten().map(|text| text.len()).sum();
    text + size_of_val(variables)
}

impl SourcePlan {
    /// Bytes that variables take while the source runs, about.
    pub(crate) fn variable_bytes(&self) -> usize {
        bytes_of(&self.asked) + COPIES * bytes_of(&self.bound.variables)
    }
    /// What the executor needs for one event. `traces`: whether it gives the fetches with their bodies.
    pub(crate) fn input(&self, traces: bool) -> ExecuteInput<'_> {
        self.bound.input(&self.state, traces, false)
    }
    /// Counts what an event did cost.
    pub(crate) fn settle(&self, telemetry: &Telemetry, output: &ExecuteOutput) {
        if let Some((charged, actual)) = self.charged.zip(output.cost) {
            charged.settle_sent(telemetry, actual);
        }
    }
    /// The name of the source's subgraph.
    pub(crate) fn subgraph(&self) -> &str {
        let plan = &self.planned.plan;
        let mut fetches = plan.fetches.as_slice().iter();
        let source = fetches.find(|fetch| fetch.kind == OperationKind::Subscription);
        let name = source.and_then(|source| plan.subgraphs.get(source.subgraph as usize));
        name.map_or("", |name| name)
    }
    /// What the source is asked, and where it is; `None` if nothing may be asked.
    pub(crate) fn source(&self) -> Option<(SubgraphRequest, &Endpoint)> {
        let request = source_request(&self.planned.plan, &self.input(false))?;
        let endpoint = self.state.endpoints.get(request.subgraph as usize)?;
        Some((request, endpoint))
    }
    /// The same, for as long as the source lasts: it keeps nothing of the schema it was opened under but its endpoint, which is
    /// the only one.
    pub(crate) fn lasting_source(&self) -> Option<(SubgraphRequest, Arc<[Endpoint; 1]>)> {
        let (mut request, _) = self.source()?;
        let endpoint = self.state.event_endpoint(request.subgraph)?;
        request.subgraph = 0;
        Some((request, endpoint))
    }
    /// What equal subscriptions are equal by; `None` if nobody can share this one.
    pub(crate) fn key(
        &self,
        context: &OperationContext<'_>,
        worker: &WorkerState,
    ) -> Option<SourceKey> {
        let identities = match &self.identity {
            SourceIdentity::Private => return None,
            SourceIdentity::Hooks(sent) => vec![sent.clone()],
            SourceIdentity::Rules => {
                let endpoints = &self.state.endpoints;
                let headers = context.headers_to_send();
                let transport = RequestTransport::new(&worker.client, endpoints, headers, None);
                let caller = OperationCaller::new(context, &self.bound.operation);
                identities(&self.planned.plan, &transport.asked_by(Some(&caller)))?
            }
        };
        Some(SourceKey {
            state: std::ptr::from_ref(&*self.state) as usize,
            form: Arc::clone(self.planned.slot.key()),
            variables: self.bound.variables.clone(),
            granted: self.bound.granted.clone(),
            locals: self.bound.locals.clone(),
            name: (self.bound.names(&self.state)).map(|names| names.operation().into()),
            identities,
            rates: self.rates.as_ref().map_or_else(Vec::new, |rates| {
                rates.values(self.asked_by_events(), context, &self.bound.operation)
            }),
        })
    }

    /// The same subscription under what is served now; `None` if its clients have to come back.
    pub(crate) async fn under(
        &self,
        serving: &Serving,
        gateway: &Gateway,
        opener: &Opener,
        worker: &WorkerState,
    ) -> Option<Migrated> {
        let state = &serving.state;
        let text = self.bound.operation.document.source();
        serving.options.subscription.as_ref()?;
        let client = DocumentClient {
            headers: &opener.headers,
            observe: &serving.options.observe,
        };
        let is_admitted = serving.options.documents.still_admit(text, client);
        let hooks = serving.hooks.as_ref();
        let passes_alike = HookState::passes_alike(self.hooks.as_ref(), hooks);
        let is_judged_alike =
            self.state.access == state.access && *self.loaded == *serving.options.hooks;
        if !is_judged_alike || !is_admitted || !passes_alike {
            return None;
        }
        let (pipeline, memory) = (&serving.pipeline, worker.reserve(&gateway.memory));
        let mut request = self.request();
        let prepared = pipeline
            .prepare
            .run(&mut request, &worker.share, &memory)
            .await;
        let (prepared, permit) = prepared.ok()?;
        let context = opener.context();
        let mut estimate = None;
        if let Some(charge) = &pipeline.charge {
            estimate = charge.run(&context, worker, &prepared).ok()?;
        }
        let asked = OperationValues {
            context: &context,
            operation: &prepared.operation,
            observe: &serving.options.observe,
        };
        let planned = pipeline
            .plan
            .run(&asked, &worker.share, &memory, permit)
            .await;
        let planned = planned.ok()?.0;
        if let Some(charge) = &pipeline.charge {
            let operation = (&prepared, &*planned);
            charge.run_planned(&context, worker, operation).ok()?;
        }
        let control = serving.options.demand_control.as_ref();
        let charged = OperationCost::open(control, &prepared, estimate);
        let migrated = self.by(serving, prepared, planned, worker)?;
        Some(Migrated {
            plan: SourcePlan {
                charged,
                ..migrated.plan
            },
            ..migrated
        })
    }

    /// The request of the client, once more.
    fn request(&self) -> GraphqlRequest {
        let (document, definition) = (
            &self.bound.operation.document,
            &self.bound.operation.definition,
        );
        let mut variables = String::new();
        let defined = document[definition.variables].iter();
        for (variable, value) in defined.zip(&self.asked) {
            if let Some(value) = value {
                variables.push(if variables.is_empty() { '{' } else { ',' });
                // Names need no escapes.
                variables.extend(["\"", document.name(variable.name), "\":", value]);
            }
        }
        if !variables.is_empty() {
            variables.push('}');
        }
        GraphqlRequest {
            query: document.source().to_owned(),
            operation_name: definition.name.map(|name| document.name(name).to_owned()),
            variables: JsonObject::scanned(variables.into()),
            may_subscribe: true,
            ..GraphqlRequest::default()
        }
    }

    /// The same by another plan, if the source would be asked the same.
    fn by(
        &self,
        serving: &Serving,
        prepared: Prepared,
        planned: Arc<PlannedOperation>,
        worker: &WorkerState,
    ) -> Option<Migrated> {
        let state = &serving.state;
        // What introspection shows depends on the caller.
        if planned.plan.locals > 0 && state.views.is_some() {
            return None;
        }
        let granted = self.still_granted(&planned.plan)?;
        let options = &state.options.authorization;
        if options.reject && granted != Granted::everything(&planned.plan) {
            return None;
        }
        let asked = prepared.variables.values.clone();
        let bound = BoundOperation::ungranted(state, prepared, &planned, None, worker).ok()?;
        let mut bound = bound.into_owned();
        bound.granted = granted;
        let plan = SourcePlan {
            state: Arc::clone(state),
            bound,
            planned,
            asked,
            charged: None,
            rates: EventRates::of(&serving.options),
            identity: self.identity.clone(),
            hooks: self.hooks.clone(),
            // Equal ones, so that nothing keeps the others.
            loaded: Arc::clone(&serving.options.hooks),
        };
        // Hooks have seen no request but that of the source.
        if matches!(plan.identity, SourceIdentity::Hooks(_)) && plan.asks_more() {
            return None;
        }
        let ((before, was_at), (now, is_at)) = (self.source()?, plan.source()?);
        if before.body != now.body || !was_at.has_same_events(is_at, &now.body) {
            return None;
        }
        Some(Migrated {
            for_opener: !self.tells_the_same(&plan),
            plan,
        })
    }

    /// What of another plan is granted to all to whom the same is granted of this one; `None` if that cannot be told.
    fn still_granted(&self, plan: &Plan) -> Option<Granted> {
        let known = &self.planned.plan.requirements;
        let mut met = Vec::new();
        for (number, requirement) in (0..).zip(&plan.requirements) {
            let before = known.iter().position(|known| known == requirement)?;
            met.extend(self.bound.granted.contains(before as u32).then_some(number));
        }
        Some(met.into_iter().collect())
    }

    /// Whether requests to subgraphs follow an event.
    pub(crate) fn asks_more(&self) -> bool {
        self.asked_by_events().next().is_some()
    }

    /// The names of the subgraphs that are asked for each event, each once.
    fn asked_by_events(&self) -> impl Iterator<Item = &str> {
        let plan = &self.planned.plan;
        let fetches = plan.fetches.as_slice().iter();
        let further = fetches.filter(|fetch| fetch.kind != OperationKind::Subscription);
        let asked: BTreeSet<u32> = further.map(|fetch| fetch.subgraph).collect();
        let asked = asked.into_iter();
        asked.filter_map(|at| Some(&**plan.subgraphs.get(at as usize)?))
    }

    /// The endpoints of the subgraphs that the plan asks.
    fn asked_endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        let asked = subgraphs(&self.planned.plan).into_iter();
        asked.filter_map(|at| self.state.endpoints.get(at as usize))
    }

    /// Whether another plan tells subgraphs the same of all clients of whom this one does, asks them at the same place, and
    /// counts them together.
    fn tells_the_same(&self, plan: &SourcePlan) -> bool {
        let tells = |now: &Endpoint| {
            self.asked_endpoints()
                .any(|known| known.knows_clients_like(now))
        };
        let counts = |now: &str| {
            let mut known = self.asked_by_events();
            let now = (plan.rates.as_ref(), now);
            known.any(|known| look_alike((self.rates.as_ref(), known), now))
        };
        plan.asked_endpoints().all(tells) && plan.asked_by_events().all(counts)
    }
}

/// Notes what a subscription does, for people.
pub(crate) fn note_source(state: &SchemaState, plan: &Plan, context: &OperationContext<'_>) {
    if plan.kind == OperationKind::Subscription {
        context.note("subscribe", || source_text(state, plan));
    }
}

fn source_text(state: &SchemaState, plan: &Plan) -> String {
    let is_source = |fetch: &&Fetch| fetch.kind == OperationKind::Subscription;
    let fetches = plan.fetches.as_slice();
    let Some(source) = fetches.iter().find(is_source) else {
        return "nothing is subscribed to".to_owned();
    };
    let endpoint = state.endpoints.get(source.subgraph as usize);
    let name = endpoint.map_or("", |endpoint| &*endpoint.name);
    let events = endpoint.and_then(|endpoint| endpoint.events.as_deref());
    let protocol = events.map_or(
        "which is switched off (`subscription.enabled`)".to_owned(),
        |events| format!("by the protocol `{}`", events.protocol.word()),
    );
    let mut out = format!("source: one stream of `{name}`, {protocol}\n");
    let further = fetches.iter().filter(|fetch| !is_source(fetch));
    let further: Vec<String> = further
        .filter_map(|fetch| {
            Some(format!(
                "`{}`",
                plan.subgraphs.get(fetch.subgraph as usize)?
            ))
        })
        .collect();
    out.push_str(&match further.as_slice() {
        [] => "for each event: no further request".to_owned(),
        all => format!(
            "for each event: {} further, of {}",
            all.len(),
            all.join(", ")
        ),
    });
    out
}

/// The subgraphs that a plan asks.
fn subgraphs(plan: &Plan) -> Vec<u32> {
    let mut subgraphs: Vec<u32> = plan.fetches.as_slice().iter().map(|f| f.subgraph).collect();
    subgraphs.sort_unstable();
    subgraphs.dedup();
    subgraphs
}

fn identities(plan: &Plan, transport: &RequestTransport<'_>) -> Option<Vec<Box<[u8]>>> {
    let identity = |subgraph| Some(transport.identity(subgraph)?.as_ref().into());
    subgraphs(plan).into_iter().map(identity).collect()
}
