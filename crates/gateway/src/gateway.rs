//! A gateway: the schema and the configuration it serves, and what outlives both.

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::SystemTime,
};

use arc_swap::ArcSwap;
use ogive_base::{CommonReservation, MemoryBudget};
use ogive_telemetry::Telemetry;
use ogive_transport::Callbacks;
use tokio::sync::Notify;

use crate::{
    admit::{
        overload::{Overload, overload},
        rates::Admission,
    },
    coprocessor::settings::{CoprocessorStages, CoprocessorState},
    documents::{Registered, written::WrittenDocuments},
    identify::{revocation::Revocations, tokens::Authentication},
    options::GatewayOptions,
    policies::{Policies, policies},
    schema::refinement::Wakeup,
    schema::state::SchemaState,
    shared::client_shares::ClientShares,
    shared::offload::Offload,
    shared::shared_state::{SharedState, shared_state},
    stages::Stages,
    subscribe::source_memory::SourceMemory,
    subscribe::sources::{Sources, SubscriptionCounts},
    subscribe::streams::EventStreams,
    usage::{Usage, usage},
};

/// A gateway: one schema at a time, any number of workers.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) serving: ArcSwap<Serving>,
    /// Documents that clients registered; they outlive schemas and configurations.
    pub(crate) registered: Registered,
    /// Those of them that were written where all processes find them.
    pub(crate) written: WrittenDocuments,
    pub(crate) admission: Admission,
    pub(crate) draining: AtomicBool,
    /// Whether there is no schema yet, and what is served is only a stand-in.
    pub(crate) waiting: AtomicBool,
    /// When it was made, and how often its schema was replaced since: together they name a schema for GraphiQL.
    pub(crate) started: u64,
    pub(crate) replaced: AtomicU64,
    pub(crate) telemetry: Arc<Telemetry>,
    /// Wakes its thread when a plan waits to be refined, whatever the schema.
    pub(crate) wakeup: Arc<Wakeup>,
    pub(crate) offload: Offload,
    /// What requests make the process hold.
    pub(crate) memory: Arc<MemoryBudget>,
    /// What arrives, by client.
    pub(crate) arriving: Arc<ClientShares>,
    /// What sources of subscriptions keep.
    pub(crate) source_memory: Arc<SourceMemory>,
    /// The sources of subscriptions.
    pub(crate) sources: Arc<Sources>,
    /// Sessions over WebSockets, by client.
    pub(crate) sessions: Arc<ClientShares>,
    /// What those of them hold that have no connection of their own.
    pub(crate) session_memory: Arc<CommonReservation>,
    /// Streams for many operations.
    pub(crate) streams: Arc<EventStreams>,
    /// Told when other documents may be trusted.
    pub(crate) documents_changed: Notify,
    /// What goes on by a credential.
    pub(crate) revocations: Arc<Revocations>,
    /// Subscriptions whose events come by requests.
    pub(crate) callbacks: Arc<Callbacks>,
    /// Itself, for what goes on behind requests.
    own: OnceLock<Weak<Gateway>>,
}

/// What new requests are served with: swapped as one, so that no request sees the schema of one configuration and the
/// options of another.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) state: Arc<SchemaState>,
    pub(crate) options: Arc<GatewayOptions>,
    /// The stages that the options ask for.
    pub(crate) stages: Stages,
    /// What judges tokens and keys, if the options ask for it.
    pub(crate) authentication: Option<Arc<Authentication>>,
    /// What decides policies, likewise.
    pub(crate) policies: Option<Arc<Policies>>,
    /// The coprocessor, likewise.
    pub(crate) coprocessor: Option<CoprocessorState>,
    /// What is counted of clients, likewise.
    pub(crate) usage: Option<Arc<Usage>>,
    /// How many requests may run, likewise.
    pub(crate) overload: Option<Arc<Overload>>,
    /// What is shared with other processes, likewise.
    pub(crate) shared: Option<Arc<SharedState>>,
}

/// What judges tokens and keys; what was there before goes on if the options ask for the same.
fn authentication(
    options: &GatewayOptions,
    before: Option<Arc<Authentication>>,
) -> Option<Arc<Authentication>> {
    let asked = options.authentication.as_ref()?;
    Some(match before {
        Some(before) if before.is_for(asked) => before,
        before => Arc::new(Authentication::start(asked.clone(), before.as_deref())),
    })
}

impl Gateway {
    /// A gateway that serves `state`.
    pub fn new(mut state: SchemaState, options: GatewayOptions) -> Self {
        let wakeup = Arc::default();
        let memory = Arc::new(MemoryBudget::new(options.memory_max));
        let offload = Offload::default();
        offload.set_waiting_max(options.waiting_max);
        state.refinement.wake_at(&wakeup);
        let state = Arc::new(state);
        let sources = Arc::<Sources>::default();
        sources.tell_by(state.options.error_rules.as_ref());
        Gateway {
            wakeup,
            registered: Registered::new(options.registered_max),
            written: WrittenDocuments::default(),
            admission: {
                let admission = Admission::new(&memory);
                admission.count_by(&options.admission, options.rate_tables());
                admission
            },
            serving: ArcSwap::from_pointee(Serving {
                stages: Stages::new(&options),
                authentication: authentication(&options, None),
                policies: policies(options.policies.as_ref(), None),
                coprocessor: CoprocessorState::of(options.coprocessor.as_ref(), None, &state),
                usage: usage(options.usage.as_ref(), None),
                overload: overload(options.overload.as_ref(), None),
                shared: shared_state(options.store.as_ref(), None),
                state,
                options: Arc::new(options),
            }),
            draining: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            started: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |time| time.as_micros() as u64),
            replaced: AtomicU64::new(0),
            telemetry: Arc::default(),
            offload,
            source_memory: Arc::new(SourceMemory::new(&memory)),
            session_memory: Arc::new(CommonReservation::new(&memory)),
            sessions: Arc::default(),
            memory,
            arriving: Arc::default(),
            sources,
            streams: Arc::default(),
            documents_changed: Notify::new(),
            revocations: Arc::default(),
            callbacks: Arc::default(),
            own: OnceLock::new(),
        }
    }
    /// Until the first [`Gateway::replace_all`] there is no schema: GraphQL is answered with 503, and readiness says no.
    /// What the gateway was made with only stands in for one.
    #[must_use]
    pub fn without_schema(self) -> Self {
        Gateway {
            waiting: AtomicBool::new(true),
            ..self
        }
    }
    /// Counts, traces and logs every request.
    #[must_use]
    pub fn observed_by(self, telemetry: Telemetry) -> Self {
        Gateway {
            telemetry: Arc::new(telemetry),
            ..self
        }
    }
    /// Does there what takes long.
    #[must_use]
    pub fn with_offload(self, offload: Offload) -> Self {
        offload.set_waiting_max(self.options().waiting_max);
        Gateway { offload, ..self }
    }
    /// What is counted, traced and logged.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }
    /// What workers hand over.
    pub fn offload(&self) -> &Offload {
        &self.offload
    }
    /// What requests make the process hold.
    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }
    /// Lets something go on behind requests.
    pub(crate) fn go_on(self: &Arc<Self>) {
        self.own.get_or_init(|| Arc::downgrade(self));
    }
    /// Itself, if anything can go on behind requests.
    pub(crate) fn handle_of(&self) -> Option<Arc<Gateway>> {
        self.own.get()?.upgrade()
    }
    /// What is counted of subscriptions.
    pub fn subscriptions(&self) -> SubscriptionCounts {
        self.sources.counts()
    }
    /// Whether new requests are welcome.
    pub fn is_ready(&self) -> bool {
        !self.draining.load(Ordering::Relaxed) && !self.waiting.load(Ordering::Relaxed)
    }
    /// The schema that new requests are served with.
    pub fn state(&self) -> Arc<SchemaState> {
        Arc::clone(&self.serving.load().state)
    }
    /// Serves new requests with another schema; requests in flight keep theirs.
    pub fn replace(&self, state: SchemaState) {
        self.serve(state, self.options());
    }
    /// Serves new requests with another schema and other options; requests in flight keep theirs.
    pub fn replace_all(&self, state: SchemaState, mut options: GatewayOptions) {
        let before = self.options();
        if options.upgrade_access.is(&before.upgrade_access) {
            // Found out once, not with each operation.
            options.upgrade_access = before.upgrade_access.clone();
        }
        self.serve(state, Arc::new(options));
    }
    fn serve(&self, mut state: SchemaState, options: Arc<GatewayOptions>) {
        state.refinement.wake_at(&self.wakeup);
        let state = Arc::new(state);
        self.memory.set_limit(options.memory_max);
        self.admission
            .count_by(&options.admission, options.rate_tables());
        self.offload.set_waiting_max(options.waiting_max);
        let documents = &self.options().documents;
        if let (Some(trusted), Some(before)) = (&options.documents.trusted, &documents.trusted)
            && !Arc::ptr_eq(trusted, before)
        {
            trusted.go_on(before);
        }
        // Before anybody sees that something else is served, and ends because of it.
        self.sources.tell_by(state.options.error_rules.as_ref());
        self.serving.store(Arc::new(Serving {
            authentication: authentication(&options, self.authentication()),
            policies: policies(options.policies.as_ref(), self.policies()),
            coprocessor: CoprocessorState::of(
                options.coprocessor.as_ref(),
                self.coprocessor(),
                &state,
            ),
            usage: usage(options.usage.as_ref(), self.usage()),
            overload: overload(options.overload.as_ref(), self.overload()),
            shared: shared_state(options.store.as_ref(), self.shared()),
            stages: Stages::new(&options),
            state,
            options,
        }));
        self.replaced.fetch_add(1, Ordering::Relaxed);
        self.waiting.store(false, Ordering::Release);
        self.sources.reload();
        self.documents_changed.notify_waiters();
        self.wakeup.wake();
    }
    pub(crate) fn wakeup(&self) -> &Arc<Wakeup> {
        &self.wakeup
    }
    /// What judges tokens and keys, if the configuration asks for it.
    pub fn authentication(&self) -> Option<Arc<Authentication>> {
        self.serving.load().authentication.clone()
    }
    /// Waits for trusted documents, if the configuration asks for it. The error says what does not come, and why.
    pub async fn documents_ready(&self) -> Result<(), String> {
        let trusted = self.options().documents.trusted.clone();
        match trusted {
            Some(trusted) => trusted.ready().await,
            None => Ok(()),
        }
    }
    /// What decides policies, if the configuration asks for it.
    pub(crate) fn policies(&self) -> Option<Arc<Policies>> {
        self.serving.load().policies.clone()
    }
    /// The coprocessor, if the configuration asks for one.
    fn coprocessor(&self) -> Option<Arc<CoprocessorStages>> {
        let serving = self.serving.load();
        let served = serving.coprocessor.as_ref()?;
        Some(Arc::clone(&served.stages))
    }
    /// What is counted of clients, if the configuration asks for it.
    pub(crate) fn usage(&self) -> Option<Arc<Usage>> {
        self.serving.load().usage.clone()
    }
    /// How many requests may run, if the configuration asks for it.
    fn overload(&self) -> Option<Arc<Overload>> {
        self.serving.load().overload.clone()
    }
    /// What is shared with other processes, if anything is.
    fn shared(&self) -> Option<Arc<SharedState>> {
        self.serving.load().shared.clone()
    }
    /// What does not change with the schema.
    pub fn options(&self) -> Arc<GatewayOptions> {
        Arc::clone(&self.serving.load().options)
    }
}
