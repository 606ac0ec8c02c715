//! What one worker thread lends to requests: its connections, and the work under way that equal requests may join.
//!
//! Two client requests are equal if their plans are the same plan, the values of its variables are equal, their callers
//! may see the same of it, and every subgraph the plan asks would be sent equal headers ([`RequestTransport::identity`]). Then every byte of every
//! subgraph request would be equal, and so is the response, unless a subgraph made its answer for one client alone: then
//! the others execute the operation themselves, and so does for a while whoever asks for it later, as those do who share
//! requests to subgraphs ([`Personal`]). Mutations are never shared.

use std::{
    cell::RefCell,
    ptr,
    rc::{Rc, Weak},
    sync::Arc,
};

use bytes::Bytes;
use http::HeaderMap;
use ogive_base::{MemoryBudget, MemoryShare, Reservation};
use ogive_cost::Scratch;
use ogive_execute::{ExecuteInput, ExecuteOutput};
use ogive_plan::{Granted, OperationKind, Plan};
use ogive_server::offload::Share;
use ogive_transport::{Callbacks, Client, Coalescer, Personal, RequestTransport, SharingScope};

use crate::shared::stage_observer::{StageEvent, StageObserver};

/// What equal requests share.
#[derive(Clone)]
pub(crate) struct Executed {
    /// The response.
    pub(crate) output: ExecuteOutput,
    /// The headers that subgraphs' answers add to it.
    pub(crate) headers: HeaderMap,
    /// Those of others who share it, if they are others: ids of requests are of one of them only.
    pub(crate) headers_of_others: Option<HeaderMap>,
    /// Whom it is for. Others may have more time than whoever asked.
    pub(crate) scope: SharingScope,
}

/// What lives as long as a worker thread.
#[derive(Default)]
pub struct WorkerState {
    /// Connections to subgraphs, and requests to them under way.
    pub client: Client,
    /// Whole operations under way.
    pub(crate) operations: Coalescer<Rc<OperationKey>, Executed>,
    /// Those that others better do not join.
    pub(crate) personal: Personal,
    /// What it may spend on operations that are not known.
    pub(crate) share: Share,
    /// Room for counting what operations cost.
    pub(crate) scratch: RefCell<Scratch>,
    /// Its part of the memory that requests may take.
    memory: RefCell<Option<Arc<MemoryShare>>>,
    /// Itself, for what goes on behind requests.
    own: Weak<WorkerState>,
    /// Who watches all that it does.
    observer: Option<Rc<dyn StageObserver>>,
}

impl WorkerState {
    /// A worker without connections.
    pub fn new() -> Self {
        WorkerState::default()
    }
    /// The same for a thread on which subscriptions can go on behind their requests.
    pub fn with_streams(callbacks: Arc<Callbacks>) -> Rc<Self> {
        Rc::new_cyclic(|own| WorkerState {
            own: Weak::clone(own),
            client: Client::new().with_callbacks(callbacks),
            ..WorkerState::default()
        })
    }
    /// The same for one of which somebody watches all that it does.
    pub(crate) fn watched(callbacks: Arc<Callbacks>, observer: Rc<dyn StageObserver>) -> Rc<Self> {
        Rc::new_cyclic(|own| WorkerState {
            own: Weak::clone(own),
            client: Client::new().with_callbacks(callbacks),
            observer: Some(observer),
            ..WorkerState::default()
        })
    }
    /// Says that a stage is passed, if anybody watches.
    pub(crate) fn passed<'p>(&self, stage: impl FnOnce() -> StageEvent<'p>) {
        if let Some(observer) = self.observer() {
            observer.passed(&stage());
        }
    }
    /// Who watches all that it does, if anybody does.
    pub(crate) fn observer(&self) -> Option<&dyn StageObserver> {
        self.observer.as_deref()
    }
    /// Itself, if anything can go on behind requests.
    pub(crate) fn handle(&self) -> Option<Rc<WorkerState>> {
        self.own.upgrade()
    }
    /// Counts what a request makes the process hold.
    pub(crate) fn reserve(&self, budget: &Arc<MemoryBudget>) -> Reservation {
        let mut share = self.memory.borrow_mut();
        match &*share {
            Some(share) if share.is_of(budget) => Reservation::of(share),
            _ => Reservation::of(share.insert(MemoryShare::new(budget))),
        }
    }
    /// How many operations were executed and how many joined one under way, of those that could be shared.
    pub fn shared_operations(&self) -> (u64, u64) {
        (self.operations.led(), self.operations.joined())
    }
}

/// What client requests are equal by.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) struct OperationKey {
    /// Address of the plan, which everybody who shares it keeps alive.
    plan: usize,
    variables: Vec<Option<Box<str>>>,
    /// What the caller may see: callers that may not see the same never share an answer.
    granted: Granted,
    locals: Vec<Bytes>,
    /// What subgraphs are told of the operation's name.
    name: Option<Box<str>>,
    /// For every subgraph the plan asks, in the plan's order.
    identities: Vec<Rc<[u8]>>,
}

impl OperationKey {
    /// The key of an operation; `None` if it must not be shared.
    pub(crate) fn new(
        plan: &Arc<Plan>,
        input: &ExecuteInput<'_>,
        transport: &RequestTransport<'_>,
    ) -> Option<Self> {
        if plan.kind != OperationKind::Query {
            return None;
        }
        let mut identities = Vec::new();
        let mut asked: Vec<u32> = Vec::new();
        for fetch in plan.fetches.as_slice() {
            let subgraph = fetch.subgraph;
            if !asked.contains(&subgraph) {
                asked.push(subgraph);
                identities.push(transport.identity(subgraph)?);
            }
        }
        Some(OperationKey {
            plan: ptr::from_ref(&**plan) as usize,
            variables: input.variables.to_vec(),
            granted: input.granted.clone(),
            locals: input.locals.to_vec(),
            name: input.operation_names.map(|names| names.operation().into()),
            identities,
        })
    }
}
