//! Stop 4, execute: runs the fetches of a plan.
//!
//! Every fetch counts the fetches it waits for and is sent at the moment its own count reaches zero; there are no
//! waves to wait for. A fetch that has nothing to ask is complete at once. Serial mutations are serial because the plan
//! chains their fetches. Nothing here depends on a runtime: the caller's executor polls one future.

use std::time::{Duration, Instant};

use bytes::Bytes;
use ogive_base::id::Id;
use ogive_plan::{FetchId, OperationKind, Plan, early::EarlyPart};

use crate::{
    answer::{self, Absorb},
    condition::Conditions,
    errors::Errors,
    inflight::InFlight,
    limits::{ExecuteLimits, ExecuteOptions},
    output::ResponseBody,
    request::{self, Gather, Gathered},
    respond::{Respond, respond},
    reuse::{Entities, Reuse},
    store::Store,
    transport::{SubgraphRequest, SubgraphResponse, Transport, TransportError},
};

/// What one execution works on.
#[derive(Clone, Copy, Debug)]
pub struct ExecuteInput<'a> {
    /// JSON text of the coerced variables, by operation variable index; `None` if there is no value.
    pub variables: &'a [Option<Box<str>>],
    /// JSON values of the fields the gateway answers itself, by [`ogive_plan::OutSource::Local`].
    pub locals: &'a [Bytes],
    /// Bounds.
    pub limits: ExecuteLimits,
    /// What to tell.
    pub options: ExecuteOptions,
}

/// The result of one execution: always a whole GraphQL response.
#[derive(Clone, Debug)]
pub struct ExecuteOutput {
    /// The response.
    pub body: ResponseBody,
    /// Number of entries in its `errors`.
    pub errors: usize,
    /// What it took.
    pub stats: ExecuteStats,
    /// All fetches in plan order, if asked for.
    pub trace: Option<Vec<FetchTrace>>,
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
    /// Parts of fetches that were sent early.
    pub early: u32,
    /// Of those, the ones whose fetch had nothing else to ask.
    pub early_sufficed: u32,
    /// Bytes of request bodies.
    pub request_bytes: u64,
    /// Bytes of answers.
    pub answer_bytes: u64,
    /// Objects in the response store.
    pub records: u32,
}

/// What became of one fetch.
#[derive(Clone, Debug)]
pub struct FetchTrace {
    /// The fetch.
    pub fetch: FetchId,
    /// The body that was sent; `None` if there was nothing to ask.
    pub request: Option<Bytes>,
    /// The status and body that came, or why none came.
    pub response: Option<Result<(u16, Bytes), TransportError>>,
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
    let mut run = Run::new(plan, input, transport);
    let mut in_flight = InFlight::new();
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
                Prepared::Send(request) => in_flight.push(fetch, transport.send(request)),
                Prepared::Done => run.complete(fetch, &mut ready),
                Prepared::Wait => parked.push(fetch),
            }
        }
        let Some((fetch, result)) = in_flight.next().await else {
            break;
        };
        run.absorb(fetch, result);
        run.complete(fetch, &mut ready);
        ready.append(&mut parked);
    }
    drop(in_flight);
    run.finish()
}

/// What to do with a fetch whose dependencies are complete.
enum Prepared {
    Send(SubgraphRequest),
    /// There is nothing to ask.
    Done,
    /// Others are asking what it would ask.
    Wait,
}

struct Run<'e> {
    plan: &'e Plan,
    input: ExecuteInput<'e>,
    transport: &'e dyn Transport,
    conditions: Conditions,
    store: Store<'e>,
    errors: Errors<'e>,
    /// Dependencies still open, by fetch; after the fetches, of the parts that can be sent early.
    waiting: Vec<u32>,
    /// The parts that can be sent early.
    early: &'e [EarlyPart],
    /// Of those, the ones that were sent.
    sent_early: Vec<bool>,
    /// Representations of fetches under way.
    gathered: Vec<Gathered>,
    /// What was sent and may be reused; none if nothing can be.
    entities: Option<Entities>,
    stats: ExecuteStats,
    trace: Option<Vec<FetchTrace>>,
    started: Instant,
}

impl<'e> Run<'e> {
    fn new(plan: &'e Plan, input: ExecuteInput<'e>, transport: &'e dyn Transport) -> Self {
        let fetches = plan.fetches.as_slice();
        let early = match input.options {
            options if options.early && options.reuse == Reuse::All => &*plan.reusable().early,
            _ => &[],
        };
        let dependencies = fetches.iter().map(|fetch| &fetch.dependencies);
        let dependencies = dependencies.chain(early.iter().map(|part| &part.dependencies));
        Run {
            plan,
            input,
            transport,
            conditions: Conditions::evaluate(plan, input.variables),
            store: Store::new(plan, input.limits),
            errors: Errors::new(&input.limits),
            waiting: dependencies.clone().map(|d| d.len() as u32).collect(),
            gathered: dependencies.map(|_| Gathered::default()).collect(),
            early,
            sent_early: vec![false; early.len()],
            entities: (plan.kind == OperationKind::Query
                && match input.options.reuse {
                    Reuse::Off => false,
                    Reuse::Entities => plan.derived().asks_twice,
                    Reuse::All => {
                        plan.derived().asks_twice || {
                            let reusable = plan.reusable();
                            !reusable.donors.is_empty() || !reusable.early.is_empty()
                        }
                    }
                })
            .then(Entities::default),
            stats: ExecuteStats::default(),
            trace: input.options.trace.then(Vec::new),
            started: Instant::now(),
        }
    }

    /// The part that an id beyond the fetches stands for.
    fn part_of(&self, id: FetchId) -> Option<&'e EarlyPart> {
        self.early
            .get(id.index().checked_sub(self.plan.fetches.len())?)
    }
    /// The fetch of the plan that an id stands for.
    fn whole(&self, id: FetchId) -> FetchId {
        self.part_of(id).map_or(id, |part| part.fetch)
    }
    /// The part of a fetch that was sent early, and whether `id` is it.
    fn split(&self, id: FetchId) -> Option<(&'e EarlyPart, bool)> {
        if let Some(part) = self.part_of(id) {
            return Some((part, true));
        }
        let sent = self.early.iter().zip(&self.sent_early);
        let mut sent = sent.filter(|(part, sent)| **sent && part.fetch == id);
        sent.next().map(|(part, _)| (part, false))
    }

    /// Builds the request of a fetch, or a part of one, whose dependencies are complete.
    fn prepare(&mut self, id: FetchId) -> Prepared {
        let (whole, split) = (self.whole(id), self.split(id));
        let fetch = &self.plan.fetches[whole];
        let gathered = request::gather(Gather {
            store: &self.store,
            conditions: &self.conditions,
            id: whole,
            fetch,
            sent_as: id,
            part: split,
            reuse: self.input.options.reuse,
            entities: self.entities.as_mut(),
        });
        let body = match gathered {
            Ok(None) => return Prepared::Wait,
            Err(limit) => Err(limit),
            Ok(Some(gathered)) => {
                self.gathered[id.index()] = gathered;
                request::body(
                    fetch,
                    &self.gathered[id.index()],
                    &self.conditions,
                    self.input.variables,
                    self.plan,
                    &self.input.limits,
                )
            }
        };
        if self.gathered[id.index()].has_reused() {
            let mut gathered = std::mem::take(&mut self.gathered[id.index()]);
            self.stats.reused += gathered.n_reused();
            self.with(id, &gathered, |mut absorb| absorb.absorb_reused());
            gathered.forget_reused();
            self.gathered[id.index()] = gathered;
        }
        let body = match body {
            Ok(body) => body,
            Err(limit) => {
                self.with_absorb(id, |mut absorb| absorb.fail_fetch(answer::too_large(limit)));
                None
            }
        };
        if let Some(trace) = &mut self.trace {
            trace.push(FetchTrace {
                fetch: whole,
                request: body.clone(),
                response: None,
                started: self.started.elapsed(),
                took: Duration::ZERO,
            });
        }
        let Some(body) = body else {
            self.stats.fetches_skipped += 1;
            self.stats.early_sufficed += u32::from(matches!(split, Some((_, false))));
            return Prepared::Done;
        };
        self.stats.fetches_sent += 1;
        self.stats.representations += self.gathered[id.index()].n_representations();
        self.stats.request_bytes += body.len() as u64;
        Prepared::Send(SubgraphRequest {
            subgraph: fetch.subgraph,
            body,
            idempotent: fetch.kind == OperationKind::Query,
        })
    }

    fn absorb(&mut self, id: FetchId, result: Result<SubgraphResponse, TransportError>) {
        let whole = self.whole(id);
        if let Some(trace) = &mut self.trace
            && let Some(row) = trace.iter_mut().rev().find(|row| row.fetch == whole)
        {
            row.took = self.started.elapsed().saturating_sub(row.started);
            row.response = Some(match &result {
                Ok(response) => Ok((response.status, response.body.clone())),
                Err(error) => Err(error.clone()),
            });
        }
        let bytes = result.as_ref().map_or(0, |answer| answer.body.len());
        self.with_absorb(id, |absorb| answer::absorb(absorb, result));
        self.stats.answer_bytes += bytes as u64;
    }

    fn with_absorb(&mut self, id: FetchId, then: impl FnOnce(Absorb<'_, 'e>)) {
        let gathered = std::mem::take(&mut self.gathered[id.index()]);
        self.with(id, &gathered, then);
        if let Some(entities) = &mut self.entities {
            // What was not answered well is to be asked again.
            for ticket in gathered.lookups.iter().flat_map(|l| &l.tickets).flatten() {
                entities.give_up(*ticket);
            }
        }
    }

    fn with(&mut self, id: FetchId, gathered: &Gathered, then: impl FnOnce(Absorb<'_, 'e>)) {
        let whole = self.whole(id);
        let fetch = &self.plan.fetches[whole];
        let used = usize::try_from(self.stats.answer_bytes).unwrap_or(usize::MAX);
        then(Absorb {
            store: &mut self.store,
            errors: &mut self.errors,
            conditions: &self.conditions,
            options: self.input.options,
            shows_errors: self.transport.shows_errors(fetch.subgraph),
            fetch_id: id,
            whole,
            fetch,
            gathered,
            entities: self.entities.as_mut(),
            root: fetch
                .root
                .as_ref()
                .is_some_and(|root| self.conditions.hold(root.cond)),
            bytes_left: self.input.limits.answers_bytes_max.saturating_sub(used),
            shared_places: Vec::new(),
        });
    }

    /// Counts a fetch as done for those that wait for it.
    fn complete(&mut self, id: FetchId, ready: &mut Vec<FetchId>) {
        let n_fetches = self.plan.fetches.len();
        if let Some(part) = self.part_of(id) {
            // The fetch waited for its part too.
            return self.arrive(part.fetch, ready);
        }
        for (at, part) in self.early.iter().enumerate() {
            if !part.dependencies.contains(&id) {
                continue;
            }
            self.waiting[n_fetches + at] -= 1;
            // A fetch that can be sent whole now is better sent whole.
            if self.waiting[n_fetches + at] == 0 && !self.is_last_for(id, part.fetch) {
                self.waiting[part.fetch.index()] += 1;
                self.sent_early[at] = true;
                self.stats.early += 1;
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
        waits && self.waiting[fetch.index()] == 1
    }

    /// Counts one of those that a fetch waits for as done.
    fn arrive(&mut self, fetch: FetchId, ready: &mut Vec<FetchId>) {
        if let Some(waiting) = self.waiting.get_mut(fetch.index()) {
            *waiting = waiting.saturating_sub(1);
            if *waiting == 0 {
                ready.push(fetch);
            }
        }
    }

    fn finish(mut self) -> ExecuteOutput {
        self.stats.records = self.store.len() as u32;
        if let Some(trace) = &mut self.trace {
            trace.sort_by_key(|row| row.fetch);
        }
        let (body, errors) = respond(Respond {
            store: &self.store,
            conditions: &self.conditions,
            locals: self.input.locals,
            errors: self.errors,
        });
        ExecuteOutput {
            body,
            errors,
            stats: self.stats,
            trace: self.trace,
        }
    }
}
