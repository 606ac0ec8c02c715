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
use ogive_edge::client_shares::ClientShares;
use ogive_server::offload::Offload;
use ogive_telemetry::Telemetry;
use ogive_transport::Callbacks;
use tokio::sync::Notify;

use crate::{
    admit::{overload::overload, rates::Admission},
    documents::{Registered, written::WrittenDocuments},
    hooks::settings::HookState,
    identify::{revocation::Revocations, tokens::Authentication},
    options::GatewayOptions,
    policies::policies,
    schema::{refinement::Wakeup, state::SchemaState},
    shared::response_cache::response_cache,
    shared::shared_state::shared_state,
    stages::{Pipeline, Process, Services},
    subscribe::{
        source_memory::SourceMemory,
        sources::{Sources, SubscriptionCounts},
        streams::EventStreams,
    },
    usage::{Usage, usage},
};

/// A gateway: one schema at a time, any number of workers.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) serving: ArcSwap<Serving>,
    /// Documents that clients registered; they outlive schemas and configurations.
    pub(crate) registered: Arc<Registered>,
    /// Those of them that were written where all processes find them.
    pub(crate) written: Arc<WrittenDocuments>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) draining: AtomicBool,
    /// Whether there is no schema yet, and what is served is only a stand-in.
    pub(crate) waiting: AtomicBool,
    /// When it was made, and how often its schema was replaced since: together they name a schema for GraphiQL.
    pub(crate) started: u64,
    pub(crate) replaced: AtomicU64,
    pub(crate) telemetry: Arc<Telemetry>,
    /// Wakes its thread when a plan waits to be refined, whatever the schema.
    pub(crate) wakeup: Arc<Wakeup>,
    pub(crate) offload: Arc<Offload>,
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
    /// The stages that both ask for.
    pub(crate) pipeline: Pipeline,
    pub(crate) services: Services,
    /// The coprocessor, if the options ask for it.
    pub(crate) hooks: Option<HookState>,
    /// What is counted of clients, if the options ask for it.
    pub(crate) usage: Option<Arc<Usage>>,
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

impl Serving {
    /// Composes what new requests are served with. What was there before goes on where the options ask for the same.
    fn compose(
        process: &Process,
        state: Arc<SchemaState>,
        options: Arc<GatewayOptions>,
        before: Option<&Serving>,
    ) -> Serving {
        let hooks = before.and_then(|before| before.hooks.as_ref());
        let hooks = hooks.map(|served| Arc::clone(&served.stages));
        let counted = before.and_then(|before| before.usage.clone());
        let before = before.map_or_else(Services::default, |before| before.services.clone());
        let services = Services {
            authentication: authentication(&options, before.authentication),
            policies: policies(options.policies.as_ref(), before.policies),
            overload: overload(options.overload.as_ref(), before.overload),
            shared: shared_state(options.store.as_ref(), before.shared),
            cache: response_cache(options.cache.as_ref(), before.cache, &process.memory),
        };
        if let Some(cache) = &services.cache {
            state.keep_answers_in(cache);
        }
        Serving {
            pipeline: Pipeline::new(process, &services, &state, &options),
            services,
            hooks: HookState::of(options.hook_settings.as_ref(), hooks, &state),
            usage: usage(options.usage.as_ref(), counted),
            state,
            options,
        }
    }
}

impl Gateway {
    /// A gateway that serves `state`.
    pub fn new(mut state: SchemaState, options: GatewayOptions) -> Self {
        let wakeup = Arc::default();
        let memory = Arc::new(MemoryBudget::new(options.memory_max));
        let process = Process {
            admission: Arc::new(Admission::new(&memory)),
            offload: Arc::default(),
            arriving: Arc::default(),
            registered: Arc::new(Registered::new(options.registered_max)),
            written: Arc::default(),
            memory,
        };
        process.offload.set_waiting_max(options.waiting_max);
        let memory = &process.memory;
        state.refinement.wake_at(&wakeup);
        let state = Arc::new(state);
        let sources = Arc::<Sources>::default();
        sources.tell_by(state.options.error_rules.as_ref());
        let admission = &process.admission;
        admission.count_by(&options.admission, options.rate_tables());
        let serving = Serving::compose(&process, state, Arc::new(options), None);
        Gateway {
            wakeup,
            serving: ArcSwap::from_pointee(serving),
            draining: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            started: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |time| time.as_micros() as u64),
            replaced: AtomicU64::new(0),
            telemetry: Arc::default(),
            source_memory: Arc::new(SourceMemory::new(memory)),
            session_memory: Arc::new(CommonReservation::new(memory)),
            sessions: Arc::default(),
            admission: process.admission,
            offload: process.offload,
            memory: process.memory,
            arriving: process.arriving,
            registered: process.registered,
            written: process.written,
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
        let process = Process {
            offload: Arc::new(offload),
            ..self.process()
        };
        let mut shared = self.serving.into_inner();
        // Only methods that borrow the gateway share it, and this one owns the gateway.
        let serving = Arc::get_mut(&mut shared).expect("nothing is served yet");
        let (state, options) = (&serving.state, &serving.options);
        process.offload.set_waiting_max(options.waiting_max);
        serving.pipeline = Pipeline::new(&process, &serving.services, state, options);
        Gateway {
            serving: ArcSwap::from(shared),
            offload: process.offload,
            ..self
        }
    }
    /// What stages share.
    fn process(&self) -> Process {
        Process {
            admission: Arc::clone(&self.admission),
            offload: Arc::clone(&self.offload),
            memory: Arc::clone(&self.memory),
            arriving: Arc::clone(&self.arriving),
            registered: Arc::clone(&self.registered),
            written: Arc::clone(&self.written),
        }
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
        let before = self.serving.load();
        let serving = Serving::compose(&self.process(), state, options, Some(&before));
        self.serving.store(Arc::new(serving));
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
        self.serving.load().services.authentication.clone()
    }
    /// Waits for trusted documents, if the configuration asks for it. The error says what does not come, and why.
    pub async fn documents_ready(&self) -> Result<(), String> {
        let trusted = self.options().documents.trusted.clone();
        match trusted {
            Some(trusted) => trusted.ready().await,
            None => Ok(()),
        }
    }
    /// What is counted of clients, if the configuration asks for it.
    pub(crate) fn usage(&self) -> Option<Arc<Usage>> {
        self.serving.load().usage.clone()
    }
    /// What does not change with the schema.
    pub fn options(&self) -> Arc<GatewayOptions> {
        Arc::clone(&self.serving.load().options)
    }
}
