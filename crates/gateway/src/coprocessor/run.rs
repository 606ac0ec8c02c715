//! What the stages of one HTTP request share when a coprocessor is asked: an id, the context, and who asks.

use std::{
    cell::{Cell, OnceCell, RefCell},
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderMap, Method, request::Parts};
use ogive_base::Reservation;
use ogive_config::Client as PeerClient;
use ogive_coprocessor::{ContextEntries, Stage};
use ogive_identity::Caller;
use ogive_script::Scripts;
use ogive_transport::Client;
use serde_json::value::{RawValue, to_raw_value};

use super::settings::{CoprocessorStages, StageSettings};
use crate::shared::{identity::Identity, observe::ObserveOptions, offload::Offload};

/// One HTTP request.
pub(crate) struct CoprocessorRun<'a> {
    pub(crate) stages: &'a CoprocessorStages,
    pub(crate) client: &'a Client,
    /// The schema, if a stage is told it.
    pub(crate) sdl: Option<&'a str>,
    pub(crate) id: String,
    /// Its head as the client sent it, and who it is.
    pub(crate) origin: (&'a Parts, &'a Identity),
    pub(crate) entries: RefCell<ContextEntries>,
    /// What counts messages while they are under way, and replies until the response has left.
    pub(crate) memory: Reservation,
    /// Which client asks.
    pub(crate) address: PeerClient,
    /// Who asks, until claims are changed.
    pub(crate) asked_by: Option<Arc<Caller>>,
    /// Who asks, after claims were changed.
    pub(crate) changed: OnceCell<Option<Arc<Caller>>>,
    /// The method and headers after the first stage, if a condition looks back at them.
    pub(crate) head: OnceCell<Box<RequestHead>>,
    /// The scripts that are called at its stages.
    pub(crate) scripts: Option<&'a Arc<Scripts>>,
    /// What does what takes long.
    pub(crate) offload: &'a Offload,
    pub(crate) observe: &'a ObserveOptions,
    /// Whether several operations come in it.
    pub(crate) is_batch: Cell<bool>,
}

/// What the client asked for, as later stages look back at it.
pub(crate) struct RequestHead {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    /// With its query string.
    pub(crate) path: String,
}

/// One operation of it.
pub(crate) struct OperationCoprocessor<'a> {
    pub(crate) run: &'a CoprocessorRun<'a>,
    /// Entries of the context that belong to it alone.
    pub(crate) own: RefCell<ContextEntries>,
    /// The request as the supergraph stage left it, if the execution stage is told it.
    pub(crate) body: Option<Bytes>,
    /// The method of its HTTP request.
    pub(crate) method: &'a str,
    /// The headers from the execution stage on.
    pub(crate) headers: OnceCell<HeaderMap>,
    /// Whether its plan was executed.
    pub(crate) is_executed: Cell<bool>,
}

impl CoprocessorRun<'_> {
    /// Who asks, if anybody is known.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.changed.get().unwrap_or(&self.asked_by).as_deref()
    }

    /// What a stage is told; `None` if it is off.
    pub(crate) fn at(&self, stage: Stage) -> Option<&StageSettings> {
        self.stages.at(stage)
    }

    /// The scripts that are called at a stage.
    pub(crate) fn scripts_at(&self, stage: Stage) -> Option<&Arc<Scripts>> {
        self.scripts.filter(|scripts| scripts.has(stage))
    }

    /// Whether anybody is asked at a stage.
    pub(crate) fn is_on(&self, stage: Stage) -> bool {
        self.at(stage).is_some() || self.scripts_at(stage).is_some()
    }

    /// Whether anybody looks at bodies there.
    pub(crate) fn looks_at_body(&self, stage: Stage) -> bool {
        let scripts = self.scripts_at(stage).filter(|_| !stage.body_is_text());
        self.at(stage).is_some_and(StageSettings::looks_at_body)
            || scripts.is_some_and(|scripts| scripts.looks_at_bodies())
    }

    /// Whether anybody looks at requests to subgraphs, or at answers of them.
    pub(crate) fn looks_at_fetches(&self) -> bool {
        self.is_on(Stage::SubgraphRequest) || self.is_on(Stage::SubgraphResponse)
    }

    /// Whether anybody looks at what is answered.
    pub(crate) fn looks_at_answers(&self) -> bool {
        let mut stages = Stage::ALL.into_iter().filter(|stage| stage.is_response());
        stages.any(|stage| self.is_on(stage))
    }

    /// Leaves an entry for later stages. What cannot be written, or is too much, is not left.
    pub(crate) fn note(&self, name: &str, value: &impl serde::Serialize) {
        note(&self.entries, name, value);
    }

    /// An entry, as it is written.
    pub(crate) fn entry(&self, name: &str) -> Option<Box<RawValue>> {
        self.entries.borrow().get(name).map(ToOwned::to_owned)
    }
}

impl OperationCoprocessor<'_> {
    /// Leaves an entry that is of this operation alone.
    pub(crate) fn note(&self, name: &str, value: &impl serde::Serialize) {
        note(&self.own, name, value);
    }
    /// Lets the stages of the whole request see what is of its only operation.
    pub(crate) fn hand_over(&self) {
        if self.run.is_batch.get() {
            return;
        }
        let mut entries = self.run.entries.borrow_mut();
        for (name, value) in self.own.borrow().iter() {
            let _ = entries.set(name, value.to_owned());
        }
    }
}

fn note(entries: &RefCell<ContextEntries>, name: &str, value: &impl serde::Serialize) {
    if let Ok(value) = to_raw_value(value) {
        let _ = entries.borrow_mut().set(name, value);
    }
}
