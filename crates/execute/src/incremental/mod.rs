//! Executing a plan with deferred groups (`@defer`, planner rule 55) so that parts of the response leave as soon as they
//! are ready: the initial one when nothing of the primary part is under way any more, then every group when its fetches
//! are done, and never before the group around it.
//!
//! Reading order: [`execute_incrementally`] (entry), `groups` (which groups there are for these variables, and when they
//! are ready), `delivery` (what is written when), `filter` (what of an object belongs to what is written), `errors` (to which
//! part an error belongs). What [`Payload`]s look like is in `format`.
//!
//! Invariants: all payloads put together are the response of [`execute`](crate::execute); an object is written before
//! anything in it is announced; a group that fails is `completed` with errors, and nothing but what is inside of it is
//! lost with it; [`Payload::has_next`] is false once, in the last payload.

mod delivery;
mod errors;
mod groups;

mod filter;
mod format;

use std::{collections::VecDeque, future::Future, pin::pin, task::Poll};

use bytes::Bytes;
use ogive_plan::{FetchId, Plan};

use crate::{
    condition::Conditions,
    incremental::{
        delivery::{Delivery, Step},
        groups::Groups,
    },
    output::ResponseBody,
    run::{ExecuteInput, ExecuteStats, FetchTrace, Prepared, Run},
    store::Source,
    stream_scan::StreamScans,
    transport::{SubgraphResponse, Transport, TransportError},
};

/// What becomes of a field that several groups ask for, or one that the response has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncrementalForm {
    /// It is sent once: with the initial response, or with the first group that is ready.
    Distinct,
    /// Every group is sent with all that its fragment asks for, as the form of 2022 has it.
    Repeated,
}

/// What leaves at one time.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    /// The initial response; only in the first payload.
    pub initial: Option<InitialData>,
    /// Groups that will be sent.
    pub pending: Vec<PendingGroup>,
    /// Values of groups.
    pub incremental: Vec<GroupData>,
    /// Groups of which all was sent, or that failed.
    pub completed: Vec<CompletedGroup>,
    /// Whether another payload follows.
    pub has_next: bool,
}

/// What the response has without deferred groups.
#[derive(Clone, Debug)]
pub struct InitialData {
    /// The object of `data`; `None`: null.
    pub data: Option<ResponseBody>,
    /// The list of errors, if there are any.
    pub errors: Option<Bytes>,
}

/// A group at one object of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingGroup {
    /// Its number.
    pub id: u32,
    /// The object, as a JSON list.
    pub path: Bytes,
    /// What the client calls the group.
    pub label: Option<Box<str>>,
}

/// Values of a group.
#[derive(Clone, Debug)]
pub struct GroupData {
    /// The group: of several, the one with the longest path.
    pub id: u32,
    /// Its label.
    pub label: Option<Box<str>>,
    /// The object that the values belong to, as a JSON list...
    pub path: Bytes,
    /// ... and the same from the path of the group on; `None`: it is that object.
    pub sub_path: Option<Bytes>,
    /// The values as an object; `None` only with [`IncrementalForm::Repeated`], of a group that failed.
    pub data: Option<ResponseBody>,
    /// The list of errors, if there are any.
    pub errors: Option<Bytes>,
}

/// A group of which nothing more comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedGroup {
    /// Its number.
    pub id: u32,
    /// Why none of it came: null where none may be. A list of errors.
    pub errors: Option<Bytes>,
}

/// What an execution in parts came to.
#[derive(Clone, Debug)]
pub struct IncrementalOutput {
    /// Number of errors, those that the limits left out included.
    pub errors_total: usize,
    /// What it took.
    pub stats: ExecuteStats,
    /// Number of payloads.
    pub payloads: u32,
    /// Whether all payloads were taken; otherwise the execution ended early.
    pub is_complete: bool,
    /// All fetches in plan order, if asked for.
    pub trace: Option<Vec<FetchTrace>>,
}

/// Whether anything of a plan is deferred for these variables.
pub fn defers(plan: &Plan, variables: &[Option<Box<str>>]) -> bool {
    let groups = |deferral| Groups::new(plan, deferral, variables, IncrementalForm::Distinct);
    let deferral = plan.deferral.as_deref();
    deferral.is_some_and(|deferral| groups(deferral).defers())
}

/// Answers one operation in parts, which are handed to `send` one after another. If `send` says that nobody takes them
/// any more, all work ends. While it waits, answers of subgraphs are taken in.
pub async fn execute_incrementally(
    plan: &Plan,
    input: ExecuteInput<'_>,
    form: IncrementalForm,
    transport: &dyn Transport,
    mut send: impl AsyncFnMut(Payload) -> bool,
) -> IncrementalOutput {
    let conditions = Conditions::evaluate(plan, input.variables, input.granted);
    let streams = StreamScans::new(plan, conditions.for_patterns(), &input.limits);
    let mut run = Run::new(plan, &input, transport, (&conditions, &streams));
    let nothing = ogive_plan::Deferral::default();
    let deferral = plan.deferral.as_deref().unwrap_or(&nothing);
    let groups = Groups::new(plan, deferral, input.variables, form);
    let mut delivery = Delivery::new(groups, &input.limits);
    let mut work = Fetching::new(plan);
    let (mut payloads, mut is_complete) = (0, false);
    loop {
        work.start(&mut run, &mut delivery);
        while let Step::Payload(payload) = delivery.step(&mut run) {
            is_complete = !payload.has_next;
            payloads += 1;
            if !work.while_sending(&mut run, send(payload)).await {
                is_complete = false;
                delivery.stop();
            }
        }
        if delivery.is_over() || !work.take_in(&mut run, &mut delivery).await {
            break;
        }
    }
    let errors_total = run.errors_total();
    let (stats, trace) = run.end();
    IncrementalOutput {
        errors_total,
        stats,
        payloads,
        is_complete,
        trace,
    }
}

type Answer = (Source, Result<SubgraphResponse, TransportError>);

/// Fetches that can start, and answers that were not looked at.
struct Fetching {
    ready: Vec<FetchId>,
    /// Fetches all of whose representations are under way elsewhere, until something is answered.
    parked: Vec<FetchId>,
    /// What came while a payload was sent.
    arrived: VecDeque<Answer>,
    /// Whether nothing was under way: then everything counts as complete.
    is_idle: bool,
}

impl Fetching {
    fn new(plan: &Plan) -> Self {
        let ids = plan.fetches.ids();
        let mut ready: Vec<FetchId> = ids
            .filter(|fetch| plan.fetches[*fetch].dependencies.is_empty())
            .collect();
        ready.reverse();
        Fetching {
            ready,
            parked: Vec::new(),
            arrived: VecDeque::new(),
            is_idle: false,
        }
    }

    /// Sends what can be sent.
    fn start(&mut self, run: &mut Run<'_>, delivery: &mut Delivery<'_>) {
        while let Some(fetch) = self.ready.pop() {
            match run.prepare(fetch) {
                Prepared::Sent => {}
                Prepared::Done => {
                    delivery.groups.complete(fetch);
                    run.complete(fetch, &mut self.ready);
                }
                Prepared::Wait => self.parked.push(fetch),
            }
        }
    }

    /// Takes the next answer in; false if there is none, and everything was told.
    async fn take_in(&mut self, run: &mut Run<'_>, delivery: &mut Delivery<'_>) -> bool {
        let next = match self.arrived.pop_front() {
            None => run.in_flight.next().await,
            arrived => arrived,
        };
        let Some((source, result)) = next else {
            let is_first = !std::mem::replace(&mut self.is_idle, true);
            delivery.groups.complete_all();
            return is_first;
        };
        if run.absorb(source, result) {
            delivery.groups.complete(source.fetch());
            run.complete(source.fetch(), &mut self.ready);
        }
        self.ready.append(&mut self.parked);
        true
    }

    /// Waits for a payload to be taken, and keeps the answers that come meanwhile.
    async fn while_sending(
        &mut self,
        run: &mut Run<'_>,
        sending: impl Future<Output = bool>,
    ) -> bool {
        let mut sending = pin!(sending);
        std::future::poll_fn(|context| {
            if let Poll::Ready(is_taken) = sending.as_mut().poll(context) {
                return Poll::Ready(is_taken);
            }
            while let Poll::Ready(Some(answer)) = pin!(run.in_flight.next()).poll(context) {
                self.arrived.push_back(answer);
            }
            Poll::Pending
        })
        .await
    }
}
