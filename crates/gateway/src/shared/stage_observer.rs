//! Who watches an operation pass the stages. There is one run of them, and all who tell of it watch that one: the execution
//! trace and the access log ([`crate::shared::observe::Watch`]), and `ogive explain` ([`crate::explain`]).
//!
//! Who watches one operation is in its context. `ogive explain` watches all that one worker does, from the head of a request to
//! what goes on behind it: parts of answers, and events ([`WorkerState::observer`](crate::shared::worker::WorkerState)).
//!
//! An operation that nobody watches costs one look per stage. A new stage says that it was passed with [`StageEvent::Other`],
//! and is shown from then on.

use http::request::Parts;
use ogive_edge::receive::GraphqlRequest;
use ogive_execute::{ExecuteOutput, FailureReport, incremental::IncrementalOutput};
use ogive_telemetry::{HookCall, Record};
use ogive_transport::{Endpoint, Observer};

use crate::{
    prepare::Prepared,
    schema::{operation::PlannedOperation, plan_cache::PlanSource, state::SchemaState},
    shared::identity::Identity,
};

/// A stage that a request or an operation has passed, with what came of it.
pub(crate) enum StageEvent<'a> {
    /// It is known who asks, or why nobody is believed.
    Known(&'a Parts, &'a Identity),
    /// It was read.
    Receive(&'a GraphqlRequest),
    /// It has its document.
    Document(&'a GraphqlRequest),
    /// It is valid.
    Prepare(&'a SchemaState, &'a Prepared),
    /// It is known what it is estimated to cost.
    Charge(u64),
    /// It has a plan.
    Plan(&'a PlannedOperation, PlanSource),
    /// It has an answer.
    Execute(&'a PlannedOperation, &'a ExecuteOutput),
    /// A payload of an answer in parts leaves, in JSON.
    Part(&'a [u8]),
    /// All payloads have left.
    ExecuteInParts(&'a PlannedOperation, &'a IncrementalOutput),
    /// A subgraph is asked for events, by this body.
    Source(&'a str, &'a [u8]),
    /// An event has its answer.
    Event(&'a PlannedOperation, &'a ExecuteOutput),
    /// A coprocessor, a script or a service was called.
    Hook(&'a HookCall),
    /// The answer is written.
    Respond,
    /// A stage with a text for people, of which nobody else makes anything. No text: nothing to be said.
    Other(&'static str, &'a dyn Fn() -> String),
}

/// Watches one operation.
pub(crate) trait StageObserver {
    /// A stage is behind it.
    fn passed(&self, stage: &StageEvent<'_>);
    /// Something went wrong with a subgraph.
    fn failed(&self, _failure: &FailureReport<'_>) {}
    /// The record of its request.
    fn record(&self) -> Option<&Record> {
        None
    }
    /// Who watches the requests to subgraphs.
    fn requests(&self) -> Option<&dyn Observer> {
        None
    }
    /// The execution trace so far.
    fn timeline(&self, _endpoints: &[Endpoint]) -> Option<Vec<u8>> {
        None
    }
    /// Whether the executor is to give the fetches with their bodies.
    fn wants_fetches(&self) -> bool {
        false
    }
    /// Whether nothing may be sent: it ends where it would be executed.
    fn is_dry_run(&self) -> bool {
        false
    }
}
