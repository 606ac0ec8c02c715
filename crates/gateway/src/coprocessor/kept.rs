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
use ogive_coprocessor::ContextEntries;
use ogive_identity::Caller;
use ogive_script::Scripts;

use super::{
    message_batch::MessageBatch,
    run::{CoprocessorRun, OperationCoprocessor, RequestHead, SentHead},
    settings::CoprocessorStages,
};
use crate::{
    gateway::{Gateway, Serving},
    options::GatewayOptions,
    shared::{identity::Identity, worker::WorkerState},
};

/// What is kept of the stages of a request and of one operation of it.
pub(crate) struct KeptRun {
    gateway: Arc<Gateway>,
    worker: Rc<WorkerState>,
    stages: Arc<CoprocessorStages>,
    scripts: Option<Arc<Scripts>>,
    options: Arc<GatewayOptions>,
    sdl: Option<Arc<str>>,
    id: String,
    origin: (Parts, Identity),
    entries: Rc<RefCell<ContextEntries>>,
    own: Rc<RefCell<ContextEntries>>,
    asked_by: Option<Arc<Caller>>,
    head: Option<Rc<RequestHead>>,
    sent: Rc<OnceCell<SentHead>>,
    memory: Reservation,
}

impl KeptRun {
    /// Keeps what goes on; `None` if nothing can go on behind the request.
    pub(crate) fn of(
        told: &OperationCoprocessor<'_>,
        gateway: &Gateway,
        serving: &Serving,
        worker: &WorkerState,
    ) -> Option<Self> {
        let (run, served) = (told.run, serving.coprocessor.as_ref()?);
        let (parts, identity) = run.origin;
        Some(KeptRun {
            gateway: gateway.handle_of()?,
            worker: worker.handle()?,
            stages: Arc::clone(&served.stages),
            scripts: run.scripts.cloned(),
            options: Arc::clone(&serving.options),
            sdl: run.sdl.cloned(),
            id: run.id.clone(),
            origin: (parts.clone(), identity.clone()),
            entries: Rc::clone(&run.entries),
            own: Rc::clone(&told.own),
            asked_by: run.changed.get().unwrap_or(&run.asked_by).clone(),
            head: run.changed_head.get().cloned(),
            sent: Rc::clone(&run.sent),
            memory: run.memory.beside(),
        })
    }

    /// The stages while something passes them.
    pub(crate) fn run(&self) -> CoprocessorRun<'_> {
        let (parts, identity) = &self.origin;
        let head = OnceCell::new();
        if let Some(known) = &self.head {
            let _ = head.set(Rc::clone(known));
        }
        CoprocessorRun {
            stages: &self.stages,
            client: &self.worker.client,
            sdl: self.sdl.as_ref(),
            id: self.id.clone(),
            origin: (parts, identity),
            entries: Rc::clone(&self.entries),
            memory: self.memory.beside(),
            address: identity.client,
            asked_by: self.asked_by.clone(),
            changed: OnceCell::new(),
            changed_head: head,
            sent: Rc::clone(&self.sent),
            scripts: self.scripts.as_ref(),
            observe: &self.options.observe,
            is_batch: Cell::new(false),
            telemetry: &self.gateway.telemetry,
            record: None,
            worker: &self.worker,
            has_errors: Cell::new(false),
        }
    }

    /// The operation while something of it passes the stages.
    pub(crate) fn operation<'a>(&'a self, run: &'a CoprocessorRun<'a>) -> OperationCoprocessor<'a> {
        OperationCoprocessor {
            run,
            own: Rc::clone(&self.own),
            body: None,
            method: self.origin.0.method.as_str(),
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
        let Some(served) = &serving.coprocessor else {
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

    /// Who has it.
    pub(crate) fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }
}
