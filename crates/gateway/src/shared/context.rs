//! What is known of a request on its way through the stages, besides its body. Stages write it in their order, and all that
//! come later read it:
//!
//! - [`RequestContext`], of one HTTP request: its head, who asks ([`Identity`]), and what accompanies it;
//! - [`OperationContext`], of one GraphQL operation in it: what the caller may see, and what is decided on the way.

use std::{
    cell::{OnceCell, RefCell, RefMut},
    sync::Arc,
};

use http::{HeaderMap, HeaderValue, request::Parts};
use ogive_base::{Client, Reservation};
use ogive_edge::{
    error_rules::ErrorRewrites,
    measured::{Exceeded, count},
    receive::uploads::Entry,
};
use ogive_execute::Transport;
use ogive_identity::Caller;
use ogive_plan::Claims;
use ogive_schema::Schema;
use ogive_telemetry::{Record, Telemetry};
use ogive_transport::CallerContext;

pub(crate) use crate::shared::identity::Identity;
use crate::{
    hooks::run::{HookRun, OperationHooks},
    shared::{
        cost_transport::{CostTransport, RefusedSubgraph},
        stage_observer::{StageEvent, StageObserver},
        worker::WorkerState,
    },
};

/// One HTTP request: kept by the outermost function of the pipeline, and lent to all others.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    /// Its head, without what the identify stage has taken out.
    pub(crate) parts: &'a Parts,
    pub(crate) identity: &'a Identity,
    /// What its thread has.
    pub(crate) worker: &'a WorkerState,
    pub(crate) telemetry: &'a Telemetry,
    /// What is logged, counted and traced of it, if anybody wants that.
    pub(crate) record: Option<&'a Record>,
    /// Who is told of it, if anybody is.
    pub(crate) hooks: Option<&'a HookRun<'a>>,
    /// What clients are told of errors in place of what happened.
    pub(crate) error_rules: Option<&'a ErrorRewrites>,
}

impl RequestContext<'_> {
    /// Says that a stage is behind it, if anybody watches the worker.
    pub(crate) fn passed<'p>(&self, stage: impl FnOnce() -> StageEvent<'p>) {
        self.worker.passed(stage);
    }
    /// Likewise, with a text for people.
    pub(crate) fn note(&self, stage: &'static str, text: impl Fn() -> String) {
        self.worker.passed(|| StageEvent::Other(stage, &text));
    }
    /// Counts limits that are exceeded and only measured.
    pub(crate) fn count_exceeded<'c>(&self, codes: impl IntoIterator<Item = &'c &'static str>) {
        count(self.telemetry, self.record, codes);
    }
    /// Whether nothing may be sent: it ends where it would be executed.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.worker
            .observer()
            .is_some_and(StageObserver::is_dry_run)
    }
}

/// One GraphQL operation.
pub struct OperationContext<'a> {
    /// The client's headers.
    pub headers: &'a HeaderMap,
    /// The head of its request, where it came in one.
    pub(crate) parts: Option<&'a Parts>,
    identity: Option<&'a Identity>,
    /// Who asks, if anybody is known.
    caller: Option<Arc<Caller>>,
    /// What the subgraphs' answers add to the response's headers.
    added: RefCell<HeaderMap>,
    observer: Option<&'a dyn StageObserver>,
    telemetry: Option<&'a Telemetry>,
    uploads: Option<Entry<'a>>,
    memory: Option<&'a Reservation>,
    hooks: Option<&'a OperationHooks<'a>>,
    exceeded: RefCell<Exceeded>,
    /// What the caller has with the policies that were decided; in a box, because most operations ask for none.
    decided: OnceCell<Box<Claims>>,
    /// What introspection shows the caller, if that is not what it shows everybody.
    view: OnceCell<Arc<Schema>>,
    /// Subgraphs that are not asked.
    refused: OnceCell<Vec<RefusedSubgraph>>,
    /// Who asks: the peer, or the client that a trusted proxy names.
    client: Option<Client>,
}

impl<'a> OperationContext<'a> {
    /// An operation of a request with these headers.
    pub fn new(headers: &'a HeaderMap) -> Self {
        OperationContext {
            headers,
            parts: None,
            identity: None,
            caller: None,
            added: RefCell::default(),
            observer: None,
            telemetry: None,
            uploads: None,
            memory: None,
            hooks: None,
            exceeded: RefCell::default(),
            decided: OnceCell::new(),
            view: OnceCell::new(),
            refused: OnceCell::new(),
            client: None,
        }
    }
    /// Tells a coprocessor of it.
    pub(crate) fn with_hooks(self, hooks: Option<&'a OperationHooks<'a>>) -> Self {
        OperationContext { hooks, ..self }
    }
    /// Who is told of it, if anybody is.
    pub(crate) fn hooks(&self) -> Option<&'a OperationHooks<'a>> {
        self.hooks
    }
    /// The client's headers as header rules see them.
    pub(crate) fn headers_to_send(&self) -> &'a HeaderMap {
        let changed = self.hooks.and_then(|told| told.headers.get());
        changed.unwrap_or(self.headers)
    }
    /// Says in which request it came.
    pub(crate) fn in_request(self, parts: &'a Parts, identity: &'a Identity) -> Self {
        OperationContext {
            parts: Some(parts),
            identity: Some(identity),
            ..self
        }
    }
    /// The head of its request, where it came in one.
    pub(crate) fn parts(&self) -> Option<&'a Parts> {
        self.parts
    }
    /// The head of its request as the client sent it, and what was found out by that.
    pub(crate) fn origin(&self) -> Option<(&'a Parts, &'a Identity)> {
        match self.hooks {
            Some(told) => Some(told.run.origin),
            None => self.parts.zip(self.identity),
        }
    }
    /// Who asks, to be kept.
    pub(crate) fn shared_caller(&self) -> Option<&Arc<Caller>> {
        self.caller.as_ref()
    }
    /// Says who the caller is.
    #[must_use]
    pub fn asked_by(self, caller: Option<Arc<Caller>>) -> Self {
        OperationContext { caller, ..self }
    }
    /// What restrictions ask of the caller.
    pub(crate) fn claims(&self) -> &Claims {
        const NOTHING: &Claims = &Claims {
            authenticated: false,
            scopes: Vec::new(),
            policies: Vec::new(),
        };
        if let Some(decided) = self.decided.get() {
            return decided;
        }
        self.caller
            .as_ref()
            .map_or(NOTHING, |caller| &caller.granted)
    }
    /// The caller, if anybody is known.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.caller.as_deref()
    }
    /// Notes what introspection shows the caller.
    pub(crate) fn note_view(&self, view: Arc<Schema>) {
        let _ = self.view.set(view);
    }
    /// What introspection shows the caller, if that is not what it shows everybody.
    pub(crate) fn shared_view(&self) -> Option<&Arc<Schema>> {
        self.view.get()
    }
    /// The same, to be looked at.
    pub(crate) fn view(&self) -> Option<&Schema> {
        self.view.get().map(|view| &**view)
    }
    /// Notes once what the caller has with the policies that were decided.
    pub(crate) fn note_decided(&self, claims: Claims) {
        let _ = self.decided.set(Box::new(claims));
    }
    /// Says which client asks.
    pub(crate) fn of_client(self, client: Client) -> Self {
        let client = Some(client);
        OperationContext { client, ..self }
    }
    /// Which client asks.
    pub(crate) fn client(&self) -> Option<Client> {
        self.client
    }
    /// Notes once which subgraphs are not asked.
    pub(crate) fn refuse(&self, refused: Vec<RefusedSubgraph>) {
        let _ = self.refused.set(refused);
    }
    /// A transport that does not ask them, if there are any.
    pub(crate) fn limited<'t>(&'t self, transport: &'t dyn Transport) -> Option<CostTransport<'t>> {
        let refused = self.refused()?;
        Some(CostTransport { transport, refused })
    }
    /// The subgraphs that are not asked, if there are any.
    pub(crate) fn refused(&self) -> Option<&[RefusedSubgraph]> {
        self.refused.get().map(Vec::as_slice)
    }
    /// Lets somebody watch it pass the stages.
    pub(crate) fn observed_by(self, observer: Option<&'a dyn StageObserver>) -> Self {
        OperationContext { observer, ..self }
    }
    /// Tells operators what goes wrong.
    pub(crate) fn told_to(self, telemetry: &'a Telemetry) -> Self {
        OperationContext {
            telemetry: Some(telemetry),
            ..self
        }
    }
    /// Who tells operators what goes wrong.
    pub(crate) fn telemetry(&self) -> Option<&'a Telemetry> {
        self.telemetry
    }
    /// Who watches it.
    pub(crate) fn observer(&self) -> Option<&'a dyn StageObserver> {
        self.observer
    }
    /// The record of its request, if there is one.
    pub(crate) fn record(&self) -> Option<&'a Record> {
        self.observer.and_then(StageObserver::record)
    }
    /// Says that a stage is behind it, if anybody watches.
    pub(crate) fn passed<'p>(&self, stage: impl FnOnce() -> StageEvent<'p>) {
        if let Some(observer) = self.observer {
            observer.passed(&stage());
        }
    }
    /// Likewise, with a text for people.
    pub(crate) fn note(&self, stage: &'static str, text: impl Fn() -> String) {
        if let Some(observer) = self.observer {
            observer.passed(&StageEvent::Other(stage, &text));
        }
    }
    /// Lets it use the files that came along.
    pub(crate) fn with_uploads(self, uploads: Option<Entry<'a>>) -> Self {
        OperationContext { uploads, ..self }
    }
    /// The files that came along.
    pub(crate) fn uploads(&self) -> Option<Entry<'a>> {
        self.uploads
    }
    /// Counts what the request makes the process hold.
    pub(crate) fn counted_in(self, memory: &'a Reservation) -> Self {
        let memory = Some(memory);
        OperationContext { memory, ..self }
    }
    /// What counts it.
    pub(crate) fn memory(&self) -> Option<&'a Reservation> {
        self.memory
    }
    /// Notes limits that are exceeded and only measured.
    pub(crate) fn exceeded(&self) -> RefMut<'_, Exceeded> {
        self.exceeded.borrow_mut()
    }
    /// Counts limits that are exceeded and only measured.
    pub(crate) fn count_exceeded<'c>(&self, codes: impl IntoIterator<Item = &'c &'static str>) {
        if let Some(telemetry) = self.telemetry {
            count(telemetry, self.record(), codes);
        }
    }
    /// Adds headers to the response.
    pub(crate) fn add(&self, headers: HeaderMap) {
        if !headers.is_empty() {
            self.added.borrow_mut().extend(headers);
        }
    }
    /// The headers added so far.
    pub(crate) fn take_added(&self) -> HeaderMap {
        self.added.take()
    }
}

/// Header rules read claims. A claim that is empty, or has white space around it, is none: it would arrive as what another
/// caller claims. One that no header can hold at all is [unsayable](CallerContext::is_unsayable).
impl CallerContext for OperationContext<'_> {
    fn claim(&self, path: &str) -> Option<HeaderValue> {
        let claim = self.caller.as_ref()?.claim(path)?;
        if claim.is_empty() || claim.trim() != claim {
            return None;
        }
        let mut value = HeaderValue::from_bytes(claim.as_bytes()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
    fn is_unsayable(&self, path: &str) -> bool {
        let claim = self.caller.as_ref().and_then(|caller| caller.claim(path));
        claim.is_some_and(|claim| HeaderValue::from_bytes(claim.as_bytes()).is_err())
    }
}
