//! Stop 4, execute: runs the fetches of a plan.
//!
//! Every fetch counts the fetches it waits for and is sent at the moment its own count reaches zero; there are no
//! waves to wait for. A fetch that has nothing to ask is complete at once. Serial mutations are serial because the plan
//! chains their fetches. Nothing here depends on a runtime: the caller's executor polls one future.

use std::{
    cell::{Cell, OnceCell},
    time::{Duration, Instant},
};

use bytes::Bytes;
use ogive_base::{FastMap, id::Id};
use ogive_plan::{
    FetchId, Granted, LayoutId, OperationKind, OutField, OutputCosts, Plan, Prefetch,
};

use crate::{
    answer::{self, Absorb},
    condition::Conditions,
    errors::Errors,
    failure_report::FailureReport,
    gather::{self, FetchPart, Gather, Gathered, gather},
    inflight::InflightFutures,
    limits::{ExecuteLimits, ExecuteOptions, Reuse},
    operation_names::OperationNames,
    output::ResponseBody,
    request,
    respond::{Respond, Responded, respond, respond_counted},
    reuse::Entities,
    scan::fail_fields,
    stop::LimitReached,
    store::{RecordId, RecordList, Source, Store},
    stream_scan::StreamScans,
    transport::{Failure, SubgraphRequest, SubgraphResponse, Transport},
    value_costs::CountedValues,
};

/// What one execution works on.
#[derive(Clone, Copy, Debug)]
pub struct ExecuteInput<'a> {
    /// JSON text of the coerced variables, by operation variable index; `None` if there is no value.
    pub variables: &'a [Option<Box<str>>],
    /// What the caller may see.
    pub granted: &'a Granted,
    /// JSON values of the fields the gateway answers itself, by [`ogive_plan::OutSource::Local`].
    pub locals: &'a [Bytes],
    /// Bounds.
    pub limits: ExecuteLimits,
    /// What to tell.
    pub options: ExecuteOptions,
    /// Members of `extensions` of subgraph errors that are passed on besides `code`; [`ExecuteOptions`] may say all.
    pub error_extensions: &'a [Box<str>],
    /// What subgraphs are told of the operation's name.
    pub operation_names: Option<OperationNames<'a>>,
    /// What the fields of the response cost; `None` if nobody counts it.
    pub costs: Option<&'a OutputCosts>,
}

/// The result of one execution: always a whole GraphQL response.
#[derive(Clone, Debug)]
pub struct ExecuteOutput {
    /// The response.
    pub body: ResponseBody,
    /// Number of entries in its `errors`.
    pub errors: usize,
    /// Number of errors, those that the limits left out included.
    pub errors_total: usize,
    /// What it took.
    pub stats: ExecuteStats,
    /// All fetches in plan order, if asked for.
    pub trace: Option<Vec<FetchTrace>>,
    /// What it costs, if that was asked for.
    pub cost: Option<u64>,
    /// Whether that leaves out what was fetched: an object around it became null, or the response would have been too long.
    pub cost_is_partial: bool,
}

/// What one execution took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecuteStats {
    /// Requests sent.
    pub fetches_sent: u32,
    /// Fetches that had nothing to ask.
    pub fetches_skipped: u32,
    /// Entity representations sent.
    pub representations: u64,
    /// Objects that got an entity of an earlier answer instead of having it asked for again.
    pub reused: u64,
    /// Parts of fetches that were prefetched.
    pub prefetched: u32,
    /// Of those, the ones whose fetch had nothing else to ask.
    pub prefetch_sufficed: u32,
    /// Bytes of request bodies.
    pub request_bytes: u64,
    /// Bytes of answers.
    pub answer_bytes: u64,
    /// Of those, bytes that were known to be as expected before their answer was whole.
    pub streamed_bytes: u64,
    /// Objects in the response store.
    pub records: u32,
    /// Objects that were looked at to find the places of errors.
    pub looked_at: u64,
}

/// What became of one fetch.
#[derive(Clone, Debug)]
pub struct FetchTrace {
    /// The fetch.
    pub fetch: FetchId,
    /// The body that was sent; `None` if there was nothing to ask.
    pub request: Option<Bytes>,
    /// The status and body that came, or why none came.
    pub response: Option<Result<(u16, Bytes), Failure>>,
    /// When it was sent, or would have been, counted from the start of the execution.
    pub started: Duration,
    /// How long the answer took.
    pub took: Duration,
}

/// Answers one operation.
pub async fn execute(
    plan: &Plan,
    input: ExecuteInput<'_>,
    transport: &dyn Transport,
) -> ExecuteOutput {
    let conditions = Conditions::evaluate(plan, input.variables, input.granted);
    let streams = StreamScans::new(plan, conditions.for_patterns(), &input.limits);
    let mut run = Run::new(plan, &input, transport, (&conditions, &streams));
    let mut ready: Vec<FetchId> = plan
        .fetches
        .ids()
        .filter(|fetch| plan.fetches[*fetch].dependencies.is_empty())
        .collect();
    // Fetches all of whose representations are under way elsewhere, until something is answered.
    let mut parked: Vec<FetchId> = Vec::new();
    // Popped from the end: fetches that become ready together start in plan order.
    ready.reverse();
    loop {
        while let Some(fetch) = ready.pop() {
            match run.prepare(fetch) {
                Prepared::Sent => {}
                Prepared::Done => run.complete(fetch, &mut ready),
                Prepared::Wait => parked.push(fetch),
            }
        }
        let Some((source, result)) = run.in_flight.next().await else {
            break;
        };
        if run.absorb(source, result) {
            run.complete(source.fetch(), &mut ready);
        }
        ready.append(&mut parked);
    }
    run.finish()
}

/// What to do with a fetch whose dependencies are complete.
pub(crate) enum Prepared {
    /// Its requests are under way.
    Sent,
    /// There is nothing to ask.
    Done,
    /// Others are asking what it would ask.
    Wait,
}

/// Most members of a request that is sent again member by member.
const SPLIT_MAX: usize = 8;

/// Where a fetch, or a part of one, stands.
#[derive(Default)]
struct Progress {
    /// Dependencies that are not complete yet.
    waits_for: u32,
    /// Its requests that are not answered yet...
    unanswered: u32,
    /// ... and all of them.
    requests: u32,
    /// Representations of its first request while that is under way.
    gathered: Gathered,
}

/// One execution under way.
pub(crate) struct Run<'e> {
    plan: &'e Plan,
    input: &'e ExecuteInput<'e>,
    transport: &'e dyn Transport,
    conditions: &'e Conditions,
    /// What was found out about answers while they arrived.
    streams: &'e StreamScans<'e>,
    store: Store<'e>,
    errors: Errors<'e>,
    /// Where every fetch stands; after the fetches, the parts that can be prefetched.
    progress: Vec<Progress>,
    /// The parts that can be prefetched.
    prefetches: &'e [Prefetch],
    /// Of those, the ones that were sent.
    is_prefetched: Vec<bool>,
    /// Representations of all requests but the first of each fetch.
    further: Option<FastMap<Source, Gathered>>,
    /// Requests that are not answered yet.
    pub(crate) in_flight: InflightFutures<'e, Source, Result<SubgraphResponse, Failure>>,
    /// What was sent and may be reused; none if nothing can be.
    entities: Option<Entities>,
    stats: ExecuteStats,
    trace: Option<Vec<(Source, FetchTrace)>>,
    /// Subgraphs that have answered with another status than 200, and with which, if it was always the same.
    not_ok: Vec<(u32, Option<u16>)>,
    started: Instant,
}

impl<'e> Run<'e> {
    pub(crate) fn new(
        plan: &'e Plan,
        input: &'e ExecuteInput<'e>,
        transport: &'e dyn Transport,
        (conditions, streams): (&'e Conditions, &'e StreamScans<'e>),
    ) -> Self {
        let fetches = plan.fetches.as_slice();
        let prefetches = match input.options {
            options if options.prefetch && options.reuse == Reuse::All => {
                &*plan.reusable().prefetches
            }
            _ => &[],
        };
        let dependencies = fetches.iter().map(|fetch| &fetch.dependencies);
        let dependencies = dependencies.chain(prefetches.iter().map(|part| &part.dependencies));
        let mut store = Store::new(plan, &input.limits);
        let counted = input.costs.map(|costs| Box::new(CountedValues::new(costs)));
        store.counted = counted;
        let mut progress = Vec::with_capacity(fetches.len() + prefetches.len());
        progress.extend(dependencies.map(|dependencies| Progress {
            waits_for: dependencies.len() as u32,
            ..Progress::default()
        }));
        Run {
            plan,
            input,
            transport,
            conditions,
            streams,
            store,
            errors: Errors::new(&input.limits).ruled(transport.error_rules(), plan),
            progress,
            further: None,
            in_flight: InflightFutures::new(),
            prefetches,
            is_prefetched: vec![false; prefetches.len()],
            entities: (plan.kind == OperationKind::Query
                && match input.options.reuse {
                    Reuse::Off => false,
                    Reuse::Entities => plan.derived().asks_twice,
                    Reuse::All => {
                        plan.derived().asks_twice || {
                            let reusable = plan.reusable();
                            !reusable.sources.is_empty() || !reusable.prefetches.is_empty()
                        }
                    }
                })
            .then(|| Entities::new(&input.limits)),
            stats: ExecuteStats::default(),
            trace: input.options.trace.then(Vec::new),
            not_ok: Vec::new(),
            started: Instant::now(),
        }
    }

    /// The part that an id beyond the fetches stands for.
    fn part_of(&self, id: FetchId) -> Option<&'e Prefetch> {
        self.prefetches
            .get(id.index().checked_sub(self.plan.fetches.len())?)
    }
    /// The fetch of the plan that an id stands for.
    fn whole(&self, id: FetchId) -> FetchId {
        self.part_of(id).map_or(id, |part| part.fetch)
    }
    /// What of a fetch an id stands for.
    fn part_of_fetch(&self, id: FetchId) -> FetchPart<'e> {
        if let Some(part) = self.part_of(id) {
            return FetchPart::Prefetch(part);
        }
        let prefetches = self.prefetches.iter().zip(&self.is_prefetched);
        let mut prefetched = prefetches.filter(|(part, is_sent)| **is_sent && part.fetch == id);
        prefetched
            .next()
            .map_or(FetchPart::Whole, |(part, _)| FetchPart::Rest(part))
    }

    /// What may be reused of a subgraph's answers.
    fn reuse_of(&self, subgraph: u32) -> Reuse {
        let allowed = self.transport.request_limits(subgraph).reuse;
        allowed.min(self.input.options.reuse)
    }

    /// Builds the requests of a fetch, or of a part that is prefetched, whose dependencies are complete: one, unless it
    /// has more representations than the subgraph takes at a time.
    pub(crate) fn prepare(&mut self, id: FetchId) -> Prepared {
        self.prepare_with(id, true)
    }

    /// The same of some objects only; whether its root fields are asked.
    pub(crate) fn prepare_narrowed(
        &mut self,
        id: FetchId,
        asks_root: bool,
        mut narrowed: Vec<(LayoutId, RecordList)>,
    ) -> Prepared {
        for (layout, records) in &mut narrowed {
            self.store.exchange(*layout, records);
        }
        let prepared = self.prepare_with(id, asks_root);
        for (layout, records) in &mut narrowed {
            self.store.exchange(*layout, records);
        }
        prepared
    }
    /// How many requests of a fetch there were, and how many of them are not answered.
    pub(crate) fn requests_of(&self, id: FetchId) -> (u32, u32) {
        let progress = &self.progress[id.index()];
        (progress.requests, progress.unanswered)
    }

    #[inline(always)]
    fn prepare_with(&mut self, id: FetchId, asks_root: bool) -> Prepared {
        let (whole, part) = (self.whole(id), self.part_of_fetch(id));
        let fetch = &self.plan.fetches[whole];
        let reuse = self.reuse_of(fetch.subgraph);
        let from = &mut Gather {
            store: &self.store,
            conditions: self.conditions,
            id: whole,
            fetch,
            sent_as: id,
            part,
            reuse,
            entities: self.entities.as_mut().filter(|_| reuse != Reuse::Off),
            null_by_error: self.errors.null_slots(),
        };
        let gathered = gather(from);
        let first = Source::new(id, 0);
        let mut gathered = match gathered {
            Ok(None) => return Prepared::Wait,
            Ok(Some(gathered)) => gathered,
            Err(limit) => {
                let gathered = Gathered {
                    root: fetch
                        .root
                        .as_ref()
                        .is_some_and(|root| asks_root && self.conditions.hold(root.cond)),
                    lookups: gather::everything(from),
                    ..Gathered::default()
                };
                self.refuse(first, &gathered, limit);
                self.trace_request(first, None);
                self.stats.fetches_skipped += 1;
                return Prepared::Done;
            }
        };
        gathered.root &= asks_root;
        for (shape, record) in std::mem::take(&mut gathered.unasked) {
            fail_fields(&mut self.store, shape, record);
        }
        if gathered.has_reused() {
            self.stats.reused += gathered.n_reused();
            self.with(first, &gathered, |mut absorb| absorb.absorb_reused());
            gathered.forget_reused();
        }
        let most = self
            .transport
            .request_limits(fetch.subgraph)
            .representations_max;
        let has_context = gathered.lookups.iter().any(|l| !l.contexts.is_empty());
        let sent = match most {
            _ if has_context => {
                let parts = gathered.split_by_context().into_iter();
                let parts: Vec<Gathered> = parts
                    .flat_map(|part| match most {
                        Some(most) => part.split(most),
                        None => vec![part],
                    })
                    .collect();
                // As many as can be told apart; a context with so many values would be a key.
                if parts.len() > Source::CONTEXTS_MAX {
                    let first = Source::new(id, 0);
                    for part in &parts {
                        self.refuse(first, part, LimitReached("parts_max"));
                    }
                    self.stats.fetches_skipped += 1;
                    return Prepared::Done;
                }
                self.post(id, parts)
            }
            Some(most) if gathered.n_representations() > u64::from(most.get()) => {
                let parts = gathered.split(most);
                self.post(id, parts)
            }
            _ => self.post(id, [gathered]),
        };
        match sent {
            0 => {
                self.stats.fetches_skipped += 1;
                self.stats.prefetch_sufficed += u32::from(matches!(part, FetchPart::Rest(_)));
                Prepared::Done
            }
            _ => Prepared::Sent,
        }
    }

    /// Sends requests of a fetch; says how many there are.
    fn post(&mut self, id: FetchId, parts: impl IntoIterator<Item = Gathered>) -> u32 {
        let whole = self.whole(id);
        let fetch = &self.plan.fetches[whole];
        let mut sent = 0;
        for gathered in parts {
            let progress = &mut self.progress[id.index()];
            let part = progress.requests;
            progress.requests += 1;
            let source = Source::new(id, part);
            let body = request::body(
                (whole, fetch),
                &gathered,
                self.conditions,
                self.input.variables,
                self.plan,
                (&self.input.limits, self.input.operation_names),
            );
            let body = match body {
                Ok(body) => body,
                Err(limit) => {
                    self.refuse(source, &gathered, limit);
                    None
                }
            };
            self.trace_request(source, body.clone());
            let Some(body) = body else { continue };
            sent += 1;
            self.progress[id.index()].unanswered += 1;
            self.stats.fetches_sent += 1;
            self.stats.representations += gathered.n_representations();
            self.stats.request_bytes += body.len() as u64;
            let root = fetch.root.as_ref().map(|root| root.shape);
            let root = root.filter(|_| gathered.root && gathered.n_representations() == 0);
            match part {
                0 => self.progress[id.index()].gathered = gathered,
                _ => {
                    let further = self.further.get_or_insert_default();
                    further.insert(source, gathered);
                }
            }
            let request = SubgraphRequest {
                subgraph: fetch.subgraph,
                body,
                idempotent: fetch.kind == OperationKind::Query,
            };
            // What is expected of the answer is known before it is whole.
            let answer = match root {
                None => self.transport.send(request),
                Some(shape) => self.transport.send_scanned(request, self.streams.of(shape)),
            };
            self.in_flight.push(source, answer);
        }
        sent
    }

    /// Takes in the answer to a fetch without representations that nobody asks here.
    pub(crate) fn answered(&mut self, id: FetchId, answer: SubgraphResponse) {
        let root = self.plan.fetches[id].root.as_ref();
        let gathered = Gathered {
            root: root.is_some_and(|root| self.conditions.hold(root.cond)),
            ..Gathered::default()
        };
        let progress = &mut self.progress[id.index()];
        (progress.requests, progress.unanswered) = (1, 1);
        let asks = gathered.root;
        progress.gathered = gathered;
        if asks {
            self.stats.fetches_sent += 1;
            self.absorb(Source::new(id, 0), Ok(answer));
        }
    }

    fn refuse(&mut self, source: Source, gathered: &Gathered, limit: LimitReached) {
        self.with(source, gathered, |mut absorb| {
            absorb.fail_fetch(answer::too_large(limit));
            absorb.tell(None);
        });
        self.give_up(gathered);
    }

    fn trace_request(&mut self, source: Source, request: Option<Bytes>) {
        let whole = self.whole(source.fetch());
        if let Some(trace) = &mut self.trace {
            let row = FetchTrace {
                fetch: whole,
                request,
                response: None,
                started: self.started.elapsed(),
                took: Duration::ZERO,
            };
            trace.push((source, row));
        }
    }

    /// Takes an answer in; says whether the fetch is complete.
    pub(crate) fn absorb(
        &mut self,
        source: Source,
        result: Result<SubgraphResponse, Failure>,
    ) -> bool {
        let id = source.fetch();
        if let Some(trace) = &mut self.trace
            && let Some((_, row)) = trace.iter_mut().rev().find(|(of, _)| *of == source)
        {
            row.took = self.started.elapsed().saturating_sub(row.started);
            row.response = Some(match &result {
                Ok(response) => Ok((response.status, response.body.clone())),
                Err(error) => Err(error.clone()),
            });
        }
        let bytes = result.as_ref().map_or(0, |answer| answer.body.len());
        let gathered = match source.part() {
            0 => std::mem::take(&mut self.progress[id.index()].gathered),
            _ => {
                let further = self.further.as_mut();
                let found = further.and_then(|further| further.remove(&source));
                found.unwrap_or_default()
            }
        };
        let unanswered = &mut self.progress[id.index()].unanswered;
        *unanswered = unanswered.saturating_sub(1);
        self.stats.answer_bytes += bytes as u64;
        if let Ok(answer) = &result
            && answer.status != 200
        {
            self.note_status(id, answer.status);
        }
        if let Ok(response) = &result
            && self.is_worth_splitting(id, &gathered, response)
        {
            self.post(id, gathered.split_for_retry());
            return self.progress[id.index()].unanswered == 0;
        }
        let head = result.as_ref().ok();
        let head = head.and_then(|response| self.streams.take(&response.body));
        self.stats.streamed_bytes += head.as_ref().map_or(0, |head| head.bytes() as u64);
        self.with(source, &gathered, |mut absorb| {
            absorb.head = head;
            answer::absorb(&mut absorb, result);
        });
        self.give_up(&gathered);
        self.transport.holds(self.store.heap_bytes());
        self.progress[id.index()].unanswered == 0
    }

    /// Whether a request of several independent members failed as a whole, with an answer that says so: then each is
    /// asked on its own, so that one of them does not null the others (never for mutations).
    fn is_worth_splitting(
        &self,
        id: FetchId,
        gathered: &Gathered,
        response: &SubgraphResponse,
    ) -> bool {
        let fetch = &self.plan.fetches[self.whole(id)];
        !gathered.is_retry
            && fetch.kind == OperationKind::Query
            && (2..=SPLIT_MAX).contains(&gathered.n_members())
            && self.progress[id.index()].requests as usize + SPLIT_MAX <= Source::PARTS_MAX
            && self.transport.request_limits(fetch.subgraph).split_retry
            && answer::failed_as_a_whole(response, &self.input.limits)
    }

    /// What was not answered well is to be asked again.
    fn give_up(&mut self, gathered: &Gathered) {
        if let Some(entities) = &mut self.entities {
            for ticket in gathered.lookups.iter().flat_map(|l| &l.tickets).flatten() {
                entities.give_up(*ticket);
            }
        }
    }

    fn with(&mut self, source: Source, gathered: &Gathered, then: impl FnOnce(Absorb<'_, 'e>)) {
        let whole = self.whole(source.fetch());
        let fetch = &self.plan.fetches[whole];
        let used = usize::try_from(self.stats.answer_bytes).unwrap_or(usize::MAX);
        let transport = self.transport;
        let shows_errors = transport.shows_errors(fetch.subgraph);
        then(Absorb {
            store: &mut self.store,
            errors: &mut self.errors,
            conditions: self.conditions,
            options: ExecuteOptions {
                error_service_names: self.input.options.error_service_names
                    || transport.names_service(fetch.subgraph),
                ..self.input.options
            },
            error_extensions: self.input.error_extensions,
            shows_errors,
            failed: &|failure: &FailureReport<'_>| transport.failed(failure),
            source,
            whole,
            is_only: self.progress[source.fetch().index()].requests == 1,
            fetch,
            gathered,
            head: None,
            entities: self.entities.as_mut(),
            root: gathered.root,
            bytes_left: self.input.limits.answers_bytes_max.saturating_sub(used),
            looks_left: Cell::new(None),
            dependents: OnceCell::new(),
        });
    }

    /// Counts a fetch as done for those that wait for it.
    pub(crate) fn complete(&mut self, id: FetchId, ready: &mut Vec<FetchId>) {
        // It may have brought objects that another one, which failed, was to bring, too.
        for (shape, record) in self.store.take_expected() {
            fail_fields(&mut self.store, shape, record);
        }
        let n_fetches = self.plan.fetches.len();
        if let Some(part) = self.part_of(id) {
            // The fetch waited for its part too.
            return self.arrive(part.fetch, ready);
        }
        for (at, part) in self.prefetches.iter().enumerate() {
            let subgraph = self.plan.fetches[part.fetch].subgraph;
            if !part.dependencies.contains(&id) || self.reuse_of(subgraph) != Reuse::All {
                continue;
            }
            let of_part = &mut self.progress[n_fetches + at];
            of_part.waits_for -= 1;
            let is_ready = of_part.waits_for == 0;
            // A fetch that can be sent whole now is better sent whole.
            if is_ready && !self.is_last_for(id, part.fetch) {
                self.progress[part.fetch.index()].waits_for += 1;
                self.is_prefetched[at] = true;
                if let Some(entities) = &mut self.entities {
                    entities.prefetched(part.fetch, FetchId::from_usize(n_fetches + at));
                }
                self.stats.prefetched += 1;
                ready.push(FetchId::from_usize(n_fetches + at));
            }
        }
        for successor in self.plan.fetches[id].successors.iter().rev() {
            self.arrive(*successor, ready);
        }
    }

    /// Whether a fetch waits for nothing but `id`.
    fn is_last_for(&self, id: FetchId, fetch: FetchId) -> bool {
        let waits = self.plan.fetches[fetch].dependencies.contains(&id);
        waits && self.progress[fetch.index()].waits_for == 1
    }

    /// Counts one of those that a fetch waits for as done.
    fn arrive(&mut self, fetch: FetchId, ready: &mut Vec<FetchId>) {
        if let Some(progress) = self.progress.get_mut(fetch.index()) {
            progress.waits_for = progress.waits_for.saturating_sub(1);
            if progress.waits_for == 0 {
                ready.push(fetch);
            }
        }
    }

    /// What the fields of the response cost, if somebody counts it.
    pub(crate) fn costs(&self) -> Option<&'e OutputCosts> {
        self.input.costs
    }
    pub(crate) fn store(&self) -> &Store<'e> {
        &self.store
    }
    /// The store, and what is told of what is written from it.
    pub(crate) fn writing(&mut self) -> (&Store<'e>, &mut Errors<'e>) {
        (&self.store, &mut self.errors)
    }

    /// Lends what is needed to write a part of the response, then tells operators what was found out.
    pub(crate) fn write<T>(&mut self, then: impl FnOnce(Respond<'_, 'e>) -> T) -> T {
        let transport = self.transport;
        let tells_service = |subgraph: u32| {
            self.input.options.error_service_names || transport.names_service(subgraph)
        };
        let written = then(Respond {
            store: &self.store,
            conditions: self.conditions,
            locals: self.input.locals,
            errors: &mut self.errors,
            tells_service: &tells_service,
        });
        for noted in &self.errors.take_news() {
            transport.failed(&noted.of_value(|subgraph| self.status_of(subgraph)));
        }
        written
    }

    /// Whether an entry of an object's output is there at all.
    pub(crate) fn applies(&self, record: RecordId, field: &OutField) -> bool {
        let ty = self.store.known_type(record);
        let of_type = match &field.types {
            Some(types) => ty.is_some_and(|ty| types.contains(ty.0)),
            None => true,
        };
        of_type && self.conditions.hold(field.cond)
    }

    /// Notes the status of an answer that is not 200.
    fn note_status(&mut self, id: FetchId, status: u16) {
        let subgraph = self.plan.fetches[self.whole(id)].subgraph;
        match self.not_ok.iter_mut().find(|(known, _)| *known == subgraph) {
            Some((_, known)) if *known == Some(status) => {}
            Some((_, known)) => *known = None,
            None => self.not_ok.push((subgraph, Some(status))),
        }
    }
    /// The status of all answers of a subgraph, if they have one. What came as an event has none.
    fn status_of(&self, subgraph: u32) -> Option<u16> {
        let mut asked = self.plan.fetches.as_slice().iter();
        let asked = asked.by_ref().filter(|fetch| fetch.subgraph == subgraph);
        let (mut fetches, mut has_events) = (0, false);
        for fetch in asked {
            fetches += 1;
            has_events |= fetch.kind == OperationKind::Subscription;
        }
        let not_ok = self.not_ok.iter().find(|(known, _)| *known == subgraph);
        match not_ok {
            _ if has_events => None,
            None => Some(200),
            // Of several requests others may have had 200.
            Some((_, status)) => status.filter(|_| fetches == 1),
        }
    }

    /// Number of errors so far, those that the limits left out included.
    pub(crate) fn errors_total(&self) -> usize {
        self.errors.total()
    }

    /// What the execution took.
    pub(crate) fn end(&mut self) -> (ExecuteStats, Option<Vec<FetchTrace>>) {
        self.stats.records = self.store.len() as u32;
        self.stats.looked_at = self.errors.looked_at();
        self.store.learn_sizes();
        let trace = self.trace.take().map(|mut rows| {
            rows.sort_by_key(|(source, row)| (row.fetch, *source));
            rows.into_iter().map(|(_, row)| row).collect()
        });
        (self.stats, trace)
    }

    pub(crate) fn finish(&mut self) -> ExecuteOutput {
        let (stats, trace) = self.end();
        let transport = self.transport;
        let tells_service = |subgraph: u32| {
            self.input.options.error_service_names || transport.names_service(subgraph)
        };
        let written = Respond {
            store: &self.store,
            conditions: self.conditions,
            locals: self.input.locals,
            errors: &mut self.errors,
            tells_service: &tells_service,
        };
        let responded = match self.input.costs {
            None => respond(written),
            Some(costs) => respond_counted(written, costs),
        };
        for noted in &responded.news {
            transport.failed(&noted.of_value(|subgraph| self.status_of(subgraph)));
        }
        let Responded {
            body,
            errors,
            errors_total,
            cost,
            cost_is_partial,
            ..
        } = responded;
        ExecuteOutput {
            body,
            errors,
            errors_total,
            stats,
            trace,
            cost,
            cost_is_partial,
        }
    }
}
