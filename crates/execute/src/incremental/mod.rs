//! Executing a plan with deferred groups (`@defer`, planner rule 55) and streamed lists (`@stream`) so that parts of the response leave as soon as they
//! are ready: the initial one when nothing of the primary part is under way any more, then every group when its fetches
//! are done, and never before the group around it; items of a list when their look-ups are.
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
mod filter;
mod format;
mod fragments;
mod groups;
mod items;
mod part;
mod passes;
mod pending;
mod streams;

use bytes::Bytes;
use ogive_plan::{Granted, Plan};

use crate::{
    condition::Conditions,
    incremental::{
        delivery::{Delivery, Step},
        groups::Groups,
        passes::FetchPasses,
        streams::{Streams, streams_any},
    },
    limits::{ExecuteOptions, Reuse},
    output::ResponseBody,
    run::{ExecuteInput, ExecuteStats, FetchTrace, Run},
    stream_scan::StreamScans,
    transport::Transport,
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

/// A group at one object of the response, or what is left of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingGroup {
    /// Its number.
    pub id: u32,
    /// The object or list, as a JSON list.
    pub path: Bytes,
    /// What the client calls it.
    pub label: Option<Box<str>>,
}

/// Values of a group.
#[derive(Clone, Debug)]
pub struct GroupData {
    /// The group: of several, the one with the longest path.
    pub id: u32,
    /// Its label.
    pub label: Option<Box<str>>,
    /// The object or list that the values belong to, as a JSON list; of items with [`IncrementalForm::Repeated`] the first of
    /// them...
    pub path: Bytes,
    /// ... and the same from the path of the group on; `None`: it is that object.
    pub sub_path: Option<Bytes>,
    /// The values.
    pub data: GroupValues,
    /// The list of errors, if there are any.
    pub errors: Option<Bytes>,
}

/// What a group has, or a list.
#[derive(Clone, Debug)]
pub enum GroupValues {
    /// Members of an object.
    Object(ResponseBody),
    /// Items of a list, one after another.
    Items(Vec<ResponseBody>),
    /// Null, of a group that failed: only with [`IncrementalForm::Repeated`].
    NoObject,
    /// Null, of a list that failed: only with [`IncrementalForm::Repeated`].
    NoItems,
}

impl Payload {
    /// Bytes of the values in it, but for those of the first groups.
    fn bytes(&self, but: usize) -> usize {
        let of = |group: &GroupData| match &group.data {
            GroupValues::Items(items) => items.iter().map(|item| item.len() + 1).sum(),
            GroupValues::Object(data) => data.len(),
            GroupValues::NoObject | GroupValues::NoItems => 0,
        };
        self.incremental.iter().skip(but).map(of).sum()
    }
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
    /// Parts, pieces, groups and errors that were looked at to make them...
    pub steps: u64,
    /// ... in so many slices, between which other work of the thread has its turn.
    pub slices: u32,
    /// Whether all payloads were taken; otherwise the execution ended early.
    pub is_complete: bool,
    /// All fetches in plan order, if asked for.
    pub trace: Option<Vec<FetchTrace>>,
    /// What was sent costs, if that was asked for.
    pub cost: Option<u64>,
    /// Whether that leaves out what was fetched: an object around it became null, or it would have been too long.
    pub cost_is_partial: bool,
}

/// Whether anything of a plan is deferred or streamed for these variables.
pub fn defers(plan: &Plan, variables: &[Option<Box<str>>]) -> bool {
    let conditions = Conditions::evaluate(plan, variables, &Granted::default());
    let values = (variables, &conditions);
    let groups = |deferral| Groups::new(plan, deferral, values, IncrementalForm::Distinct, 1);
    let deferral = plan.deferral.as_deref();
    deferral.is_some_and(|deferral| streams_any(deferral, variables) || groups(deferral).defers())
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
    let nothing = ogive_plan::Deferral::default();
    let deferral = plan.deferral.as_deref().unwrap_or(&nothing);
    let window = input.limits.stream_window;
    let streams = Streams::new(plan, deferral, input.variables, window);
    let passes = streams.passes();
    // Answers are reused, and fetches split, as though each ran once.
    let options = match passes {
        1 => input.options,
        _ => ExecuteOptions {
            reuse: Reuse::Off,
            prefetch: false,
            ..input.options
        },
    };
    let input = ExecuteInput { options, ..input };
    let conditions = Conditions::evaluate(plan, input.variables, input.granted);
    let scans = StreamScans::new(plan, conditions.for_patterns(), &input.limits);
    let mut run = Run::new(plan, &input, transport, (&conditions, &scans));
    let values = (input.variables, &conditions);
    let groups = Groups::new(plan, deferral, values, form, passes);
    let mut delivery = Delivery::new(groups, streams, &input.limits);
    let mut work = FetchPasses::new(plan, passes);
    let (mut payloads, mut slices, mut is_complete) = (0, 1, false);
    loop {
        work.start(&mut run, &mut delivery);
        delivery.refresh(&run);
        loop {
            match delivery.step(&mut run) {
                Step::Payload(payload) => {
                    is_complete = !payload.has_next;
                    payloads += 1;
                    if !work.while_sending(&mut run, send(payload)).await {
                        is_complete = false;
                        delivery.stop();
                    }
                }
                Step::Pause => {}
                Step::Wait => break,
            }
            if delivery.has_more() {
                slices += 1;
                give_way().await;
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
        steps: delivery.steps,
        slices,
        is_complete,
        trace,
        cost: input
            .costs
            .map(|costs| costs.base.saturating_add(delivery.cost)),
        cost_is_partial: delivery.cost_is_partial,
    }
}

/// Lets other tasks of the thread have their turn.
async fn give_way() {
    let mut gave_way = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut gave_way, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}
