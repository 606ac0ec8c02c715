//! Subscriptions: the request whose answers are events, and the response to one event.
//!
//! The plan of a subscription has one request of that kind, its source; everything else follows from each event (rule 53 in
//! `docs/planner-rules.md`). So one event is an execution like any other, in which the source has answered already.

use std::{cell::Cell, future::ready};

use ogive_plan::{FetchId, OperationKind, Plan};

use crate::error_rules::ErrorRules;
use crate::{
    condition::Conditions,
    failure_report::FailureReport,
    gather::Gathered,
    request,
    run::{ExecuteInput, ExecuteOutput, Run, execute},
    stream_scan::{StreamScan, StreamScans},
    transport::{
        Event, RequestLimits, SubgraphRequest, SubgraphResponse, Transport, TransportFuture,
        no_events,
    },
};

/// The request that opens the source of a subscription; `None` if there is nothing to ask, or the limits do not let it:
/// then [`execute`] says why.
pub fn source_request(plan: &Plan, input: &ExecuteInput<'_>) -> Option<SubgraphRequest> {
    let is_source = |kind| kind == OperationKind::Subscription;
    let mut fetches = plan.fetches.iter();
    let (id, fetch) = fetches.find(|(_, fetch)| is_source(fetch.kind))?;
    let conditions = Conditions::evaluate(plan, input.variables, input.granted);
    let root = fetch.root.as_ref()?;
    let gathered = Gathered {
        root: conditions.hold(root.cond),
        ..Gathered::default()
    };
    let (variables, limits) = (input.variables, (&input.limits, input.operation_names));
    let body = request::body((id, fetch), &gathered, &conditions, variables, plan, limits);
    Some(SubgraphRequest {
        subgraph: fetch.subgraph,
        body: body.ok()??,
        idempotent: false,
    })
}

/// The response to one event of the source.
pub async fn execute_event(
    plan: &Plan,
    input: ExecuteInput<'_>,
    transport: &dyn Transport,
    event: Event,
) -> ExecuteOutput {
    let transport = AfterEvent {
        transport,
        event: Cell::new(Some(event)),
    };
    execute(plan, input, &transport).await
}

/// The same at once, if nothing else belongs to the response; `None`: something does. The transport is sent nothing.
pub fn answer_event(
    plan: &Plan,
    input: ExecuteInput<'_>,
    transport: &dyn Transport,
    event: &SubgraphResponse,
) -> Option<ExecuteOutput> {
    let [_] = plan.fetches.as_slice() else {
        return None;
    };
    let conditions = Conditions::evaluate(plan, input.variables, input.granted);
    let streams = StreamScans::new(plan, conditions.for_patterns(), &input.limits);
    let mut run = Run::new(plan, &input, transport, (&conditions, &streams));
    run.answered(FetchId(0), event.clone());
    Some(run.finish())
}

/// A transport whose source has answered. What else a subscription asks are queries.
struct AfterEvent<'t> {
    transport: &'t dyn Transport,
    event: Cell<Option<Event>>,
}

impl AfterEvent<'_> {
    fn event(&self) -> TransportFuture<'_> {
        Box::pin(ready(self.event.take().unwrap_or_else(|| Err(no_events()))))
    }
}

impl Transport for AfterEvent<'_> {
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        if request.idempotent {
            self.transport.send(request)
        } else {
            self.event()
        }
    }
    fn send_scanned<'a>(
        &'a self,
        request: SubgraphRequest,
        ahead: StreamScan<'a>,
    ) -> TransportFuture<'a> {
        if request.idempotent {
            self.transport.send_scanned(request, ahead)
        } else {
            self.event()
        }
    }
    fn request_limits(&self, subgraph: u32) -> RequestLimits {
        self.transport.request_limits(subgraph)
    }
    fn shows_errors(&self, subgraph: u32) -> bool {
        self.transport.shows_errors(subgraph)
    }
    fn names_service(&self, subgraph: u32) -> bool {
        self.transport.names_service(subgraph)
    }
    fn error_rules(&self) -> Option<&dyn ErrorRules> {
        self.transport.error_rules()
    }
    fn failed(&self, failure: &FailureReport<'_>) {
        self.transport.failed(failure);
    }
    fn holds(&self, bytes: usize) {
        self.transport.holds(bytes);
    }
}
