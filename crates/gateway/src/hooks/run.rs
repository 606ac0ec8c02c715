//! What the stages of one HTTP request share when a coprocessor is asked: an id, the context, and who asks.

use std::{
    cell::{Cell, OnceCell, RefCell},
    rc::Rc,
    sync::Arc,
    time::Instant,
};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, request::Parts};
use ogive_base::{Client as PeerClient, Reservation};
use ogive_hooks::{
    ContextEntries, Exchange, RequestHead, Stage,
    entries::{COST_ACTUAL, COST_ESTIMATED, COST_RESULT, COST_STRATEGY},
    scripts::Scripts,
};
use ogive_identity::Caller;
use ogive_server::ResponseBody;
use ogive_telemetry::{Hook, HookOutcome, Record, Telemetry};
use ogive_transport::Client;
use serde_json::value::{RawValue, to_raw_value};

use super::{
    body::has_errors,
    components::LoadedComponent,
    message_batch::MessageBatch,
    settings::{HookStages, StageSettings},
};
use crate::shared::{
    identity::Identity, observe_options::ObserveOptions, open_response::FirstPart,
    stage_observer::StageEvent, worker::WorkerState,
};

/// The stages at what is sent to clients, in their order.
pub(crate) const PART_STAGES: [Stage; 3] = [
    Stage::ExecutionResponse,
    Stage::SupergraphResponse,
    Stage::RouterResponse,
];

/// One HTTP request.
pub(crate) struct HookRun<'a> {
    pub(crate) stages: &'a HookStages,
    pub(crate) client: &'a Client,
    /// The schema, if a stage is told it.
    pub(crate) sdl: Option<&'a Arc<str>>,
    pub(crate) id: Arc<str>,
    /// Its head as the client sent it, and who it is.
    pub(crate) origin: (&'a Parts, &'a Identity),
    /// Shared with what goes on behind it.
    pub(crate) entries: Rc<RefCell<ContextEntries>>,
    /// What counts messages while they are under way, and replies until the response has left.
    pub(crate) memory: Reservation,
    /// Which client asks.
    pub(crate) address: PeerClient,
    /// Who asks, until claims are changed.
    pub(crate) asked_by: Option<Arc<Caller>>,
    /// Who asks, after claims were changed.
    pub(crate) changed: OnceCell<Option<Arc<Caller>>>,
    /// The head of the request as the first stage leaves it.
    pub(crate) head: OnceCell<Arc<RequestHead>>,
    /// The head of a response behind which something comes, once it has left.
    pub(crate) sent: Rc<OnceCell<SentHead>>,
    /// The scripts that are called at its stages.
    pub(crate) scripts: Option<&'a Arc<Scripts>>,
    pub(crate) observe: &'a ObserveOptions,
    /// Whether anything may read or write the context; if not, nothing is left there.
    pub(crate) uses_context: bool,
    /// Whether several operations come in it.
    pub(crate) is_batch: Cell<bool>,
    pub(crate) telemetry: &'a Telemetry,
    /// The record of its request.
    pub(crate) record: Option<&'a Record>,
    /// What its thread has.
    pub(crate) worker: &'a WorkerState,
    /// Whether anything of what is answered has errors; noted if a condition looks at that.
    pub(crate) has_errors: Cell<bool>,
}

/// The head of a response.
pub(crate) struct SentHead {
    pub(crate) status: StatusCode,
    pub(crate) headers: Arc<HeaderMap>,
}

/// One operation of it.
pub(crate) struct OperationHooks<'a> {
    pub(crate) run: &'a HookRun<'a>,
    /// Entries of the context that belong to it alone, beginning with those that the request had.
    /// Shared with what goes on behind its request.
    pub(crate) own: Rc<RefCell<ContextEntries>>,
    /// The request as the supergraph stage left it, if the execution stage is told it.
    pub(crate) body: Option<Bytes>,
    /// The headers from the execution stage on.
    pub(crate) headers: OnceCell<HeaderMap>,
    /// The messages of requests to subgraphs that begin together, if they are told so.
    pub(crate) batch: MessageBatch,
    /// Whether its plan was executed, or its source is subscribed to.
    pub(crate) is_executed: Cell<bool>,
}

impl HookRun<'_> {
    /// Who asks, if anybody is known.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.changed.get().unwrap_or(&self.asked_by).as_deref()
    }

    /// The head of the request as the first stage leaves it.
    pub(crate) fn head(&self) -> &Arc<RequestHead> {
        let parts = self.origin.0;
        self.head
            .get_or_init(|| Arc::new(request_head(parts, Arc::new(parts.headers.clone()))))
    }

    /// An exchange about the client's request.
    pub(crate) fn exchange(&self, stage: Stage) -> Exchange {
        Exchange::of(stage, Arc::clone(&self.id), Arc::clone(self.head()))
    }

    /// What a stage is told; `None` if it is off.
    pub(crate) fn at(&self, stage: Stage) -> Option<&StageSettings> {
        self.stages.at(stage)
    }

    /// The scripts that are called at a stage.
    pub(crate) fn scripts_at(&self, stage: Stage) -> Option<&Arc<Scripts>> {
        self.scripts.filter(|scripts| scripts.has(stage))
    }

    /// The components that are called at a stage.
    pub(crate) fn components_at(
        &self,
        stage: Stage,
    ) -> impl DoubleEndedIterator<Item = &LoadedComponent> {
        let components = self.stages.components().iter();
        components.filter(move |of| of.component.is_at(stage))
    }

    /// Whether anybody is asked at a stage.
    pub(crate) fn is_on(&self, stage: Stage) -> bool {
        self.at(stage).is_some()
            || self.scripts_at(stage).is_some()
            || self.components_at(stage).next().is_some()
    }

    /// Whether anybody looks at bodies there.
    pub(crate) fn looks_at_body(&self, stage: Stage) -> bool {
        let scripts = self.scripts_at(stage).filter(|_| !stage.body_is_text());
        self.at(stage).is_some_and(StageSettings::looks_at_body)
            || scripts.is_some_and(|scripts| scripts.looks_at_bodies())
            || self.components_at(stage).any(|of| {
                let by_errors = stage != Stage::RouterResponse && of.when(stage).looks_at_errors();
                by_errors || of.component.looks_at_body(stage)
            })
    }

    /// Notes a call that began at `since`.
    pub(crate) fn called(&self, hook: Hook, stage: Stage, outcome: HookOutcome, since: Instant) {
        let of = (hook, stage.name());
        let call = self.telemetry.hook_called(self.record, of, outcome, since);
        self.worker.passed(|| StageEvent::Hook(&call));
    }

    /// Whether it has to be known at the end whether there are errors.
    pub(crate) fn looks_at_errors(&self) -> bool {
        let stage = Stage::RouterResponse;
        self.at(stage).is_some_and(StageSettings::looks_at_errors)
            || self
                .components_at(stage)
                .any(|of| of.when(stage).looks_at_errors())
    }

    /// Whether a response of GraphQL has errors.
    pub(crate) fn sees_errors(&self, response: &Response<ResponseBody>) -> bool {
        if let Some(first) = response.extensions().get::<FirstPart>() {
            return has_errors(&first.json());
        }
        let body = response.body();
        let mut pieces = body.pieces();
        if let (Some(only), None) = (pieces.next(), pieces.next()) {
            return has_errors(only);
        }
        self.memory.count(body.len());
        let has_errors = has_errors(&body.to_vec());
        self.memory.shrink(body.len());
        has_errors
    }

    /// Keeps the head of a response for the stages at what comes behind it.
    pub(crate) fn sent_head(&self, response: &Response<ResponseBody>) {
        let _ = self.sent.set(SentHead {
            status: response.status(),
            headers: Arc::new(response.headers().clone()),
        });
    }

    /// Lets a response hold what replies said, which may be in it.
    pub(crate) fn hold(&self, response: &mut Response<ResponseBody>) {
        let held = self.memory.beside();
        held.count(self.memory.used());
        response.body_mut().hold_also(held);
    }

    /// Whether anybody looks at requests to subgraphs, or at answers of them.
    pub(crate) fn looks_at_fetches(&self) -> bool {
        self.is_on(Stage::SubgraphRequest) || self.is_on(Stage::SubgraphResponse)
    }

    /// Whether anybody looks at what comes behind the head of a response, at a stage. The outermost one is about the head:
    /// who looks at bodies there is told of what comes behind it.
    pub(crate) fn is_on_parts(&self, stage: Stage) -> bool {
        match stage {
            Stage::RouterResponse => {
                self.at(stage).is_some_and(|at| at.selection.body)
                    || self
                        .components_at(stage)
                        .any(|of| of.component.looks_at_body(stage))
            }
            stage => self.is_on(stage),
        }
    }

    /// The same at any stage.
    pub(crate) fn looks_at_parts(&self) -> bool {
        PART_STAGES.iter().any(|stage| self.is_on_parts(*stage))
    }

    /// Leaves an entry for later stages. What cannot be written, or is too much, is not left.
    pub(crate) fn note(&self, name: &str, value: &impl serde::Serialize) {
        if self.uses_context {
            note(&self.entries, name, value);
        }
    }

    /// An entry, as it is written.
    pub(crate) fn entry(&self, name: &str) -> Option<Box<RawValue>> {
        self.entries.borrow().get(name).map(ToOwned::to_owned)
    }
}

impl OperationHooks<'_> {
    /// Leaves an entry that is of this operation alone.
    pub(crate) fn note(&self, name: &str, value: &impl serde::Serialize) {
        if self.run.uses_context {
            note(&self.own, name, value);
        }
    }
    /// Leaves what it is estimated to cost; `result` is the code of what that exceeds, or `COST_OK`.
    pub(crate) fn note_estimated_cost(&self, estimated: u64, result: &str) {
        self.note(COST_STRATEGY, &"static_estimated");
        self.note(COST_ESTIMATED, &(estimated as f64));
        self.note(COST_RESULT, &result);
    }
    /// Leaves what its answer did cost.
    pub(crate) fn note_actual_cost(&self, actual: u64, result: &str) {
        self.note(COST_ACTUAL, &(actual as f64));
        self.note(COST_RESULT, &result);
    }
    /// Lets the stages of the whole request see what is of its only operation.
    pub(crate) fn hand_over(&self) {
        if self.run.is_batch.get() || !self.run.uses_context {
            return;
        }
        let mut entries = self.run.entries.borrow_mut();
        entries.take_operation(&self.own.borrow());
    }
}

/// The head of a request with these headers.
pub(crate) fn request_head(parts: &Parts, headers: Arc<HeaderMap>) -> RequestHead {
    let path = parts.uri.path_and_query();
    RequestHead {
        method: parts.method.clone(),
        headers,
        path: path.map_or("", |path| path.as_str()).into(),
    }
}

fn note(entries: &RefCell<ContextEntries>, name: &str, value: &impl serde::Serialize) {
    if let Ok(value) = to_raw_value(value) {
        let _ = entries.borrow_mut().set(name, value);
    }
}
