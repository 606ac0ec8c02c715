//! What of the stages of a request goes on after its response has begun: at parts that come later ([`parts`](super::parts)), at
//! the events of a subscription, and at what subgraphs are asked for deferred parts.
//!
//! It shares the context with the stages of the request, which end with the head of the response. What was opened goes on
//! under the settings that it was opened with; the scripts become those of a schema that is served later.

use std::{
    cell::{Cell, OnceCell, RefCell},
    rc::Rc,
    sync::Arc,
};

use http::request::Parts;
use ogive_base::Reservation;
use ogive_execute::{Failure, FailureReport, SubgraphResponse};
use ogive_hooks::scripts::Scripts;
use ogive_hooks::{ContextEntries, RequestHead};
use ogive_identity::Caller;
use ogive_transport::Reporter;

use super::{
    message_batch::MessageBatch,
    run::{HookRun, OperationHooks, SentHead},
    settings::HookStages,
};
use crate::{
    gateway::{Gateway, Serving},
    options::GatewayOptions,
    shared::{failures::Telling, identity::Identity, worker::WorkerState},
};

/// What is kept of the stages of a request and of one operation of it.
pub(crate) struct KeptRun {
    gateway: Arc<Gateway>,
    worker: Rc<WorkerState>,
    stages: Arc<HookStages>,
    scripts: Option<Arc<Scripts>>,
    options: Arc<GatewayOptions>,
    sdl: Option<Arc<str>>,
    id: Arc<str>,
    origin: (Parts, Identity),
    entries: Rc<RefCell<ContextEntries>>,
    own: Rc<RefCell<ContextEntries>>,
    asked_by: Option<Arc<Caller>>,
    head: Arc<RequestHead>,
    sent: Rc<OnceCell<SentHead>>,
    memory: Reservation,
}

impl KeptRun {
    /// Keeps what goes on; `None` if nothing can go on behind the request.
    pub(crate) fn of(
        told: &OperationHooks<'_>,
        gateway: &Gateway,
        serving: &Serving,
        worker: &WorkerState,
    ) -> Option<Self> {
        let (run, served) = (told.run, serving.hooks.as_ref()?);
        let (parts, identity) = run.origin;
        Some(KeptRun {
            gateway: gateway.handle_of()?,
            worker: worker.handle()?,
            stages: Arc::clone(&served.stages),
            scripts: run.scripts.cloned(),
            options: Arc::clone(&serving.options),
            sdl: run.sdl.cloned(),
            id: Arc::clone(&run.id),
            origin: (parts.clone(), identity.clone()),
            entries: Rc::clone(&run.entries),
            own: Rc::clone(&told.own),
            asked_by: run.changed.get().unwrap_or(&run.asked_by).clone(),
            head: Arc::clone(run.head()),
            sent: Rc::clone(&run.sent),
            memory: run.memory.beside(),
        })
    }

    /// The stages while something passes them.
    pub(crate) fn run(&self) -> HookRun<'_> {
        let (parts, identity) = &self.origin;
        HookRun {
            stages: &self.stages,
            client: &self.worker.client,
            sdl: self.sdl.as_ref(),
            id: Arc::clone(&self.id),
            origin: (parts, identity),
            entries: Rc::clone(&self.entries),
            memory: self.memory.beside(),
            address: identity.client,
            asked_by: self.asked_by.clone(),
            changed: OnceCell::new(),
            head: Arc::clone(&self.head).into(),
            sent: Rc::clone(&self.sent),
            scripts: self.scripts.as_ref(),
            uses_context: self.stages.uses_context() || self.options.observe.attributes.is_some(),
            observe: &self.options.observe,
            is_batch: Cell::new(false),
            telemetry: &self.gateway.telemetry,
            record: None,
            worker: &self.worker,
            has_errors: Cell::new(false),
        }
    }

    /// The operation while something of it passes the stages.
    pub(crate) fn operation<'a>(&'a self, run: &'a HookRun<'a>) -> OperationHooks<'a> {
        OperationHooks {
            run,
            own: Rc::clone(&self.own),
            body: None,
            // What goes on has kept them itself.
            headers: OnceCell::new(),
            batch: MessageBatch::default(),
            is_executed: Cell::new(true),
        }
    }

    /// Goes on with the scripts of what is served now, and what they know of the schema, if the settings are the same; if not, the
    /// stream is about to be ended by the reload.
    pub(crate) fn refresh(&mut self) {
        let serving = self.gateway.serving.load_full();
        let Some(served) = &serving.hooks else {
            return;
        };
        let scripts = match &served.scripts {
            Some(Err(_)) => return,
            Some(Ok(scripts)) => Some(Arc::clone(scripts)),
            None => None,
        };
        if !Arc::ptr_eq(&served.stages, &self.stages) {
            return;
        }
        self.scripts = scripts;
        self.sdl = served.told_sdl(&serving.state.supergraph).cloned();
        self.options = Arc::clone(&serving.options);
    }

    /// Lets the hooks of responses of subgraphs see an event of a source; `None` if one of them drops it.
    pub(crate) async fn see_event(
        &self,
        subgraph: &str,
        event: SubgraphResponse,
    ) -> Result<Option<SubgraphResponse>, Failure> {
        let run = self.run();
        self.operation(&run).event(subgraph, event).await
    }

    /// Tells the hooks of responses of subgraphs that a source has ended; what fails there is logged and changes nothing.
    pub(crate) async fn tell_end(&self, subgraph: &str) {
        let run = self.run();
        let told = self.operation(&run);
        if let Err(error) = told.events_ended(subgraph).await {
            let telling = Telling {
                telemetry: &self.gateway.telemetry,
                observer: None,
                operation: None,
            };
            telling.failed(subgraph, &FailureReport::of(0, &error));
        }
    }

    /// Who has it.
    pub(crate) fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }
}
