//! How the source of a subscription is opened where hooks look at requests to subgraphs.
//!
//! The hooks see the request that opens the source, once for each subscription. What they decide is part of what equal subscriptions
//! are equal by, so subscriptions share a source if it is sent what the hooks of each decided. Nothing is shared where hooks see
//! more than that request: the events, or requests that follow an event.

use std::{
    future::ready,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use ogive_execute::{
    Event, EventStreamFuture, Failure, SubgraphRequest, SubgraphResponse, Transport,
};
use ogive_hooks::Stage;
use ogive_transport::{Endpoint, FetchDecision, RequestTransport};

use crate::{
    hooks::run::OperationHooks,
    shared::context::OperationContext,
    shared::operation_values::OperationCaller,
    shared::worker::WorkerState,
    subscribe::plan::{SourceIdentity, SourcePlan},
};

/// How the stream of a source is opened.
pub(crate) enum Opening {
    /// As the header rules say; no hook looks at requests to subgraphs.
    Planned,
    /// As hooks decided.
    Hooked(HookedSource),
    /// Hooks have answered instead of the subgraph: this is the only event.
    Answered(SubgraphResponse),
    /// A hook has failed, or its decision cannot be followed.
    Failed(Failure),
}

/// What hooks made of the request that opens a source.
pub(crate) struct HookedSource {
    headers: HeaderMap,
    body: Bytes,
    /// The place that hooks chose instead of the subgraph's own.
    elsewhere: Option<Arc<[Endpoint; 1]>>,
}

/// What hooks decided of a subscription.
pub(crate) struct HookedOpening {
    pub(crate) opening: Opening,
    /// What its source is shared by.
    pub(crate) identity: SourceIdentity,
    /// Whether hooks see anything of the source later.
    pub(crate) is_kept: bool,
}

impl Opening {
    /// Lets hooks decide how a source is opened.
    pub(crate) async fn decide(
        told: &OperationHooks<'_>,
        plan: &SourcePlan,
        context: &OperationContext<'_>,
        worker: &WorkerState,
    ) -> HookedOpening {
        let is_kept = told.run.is_on(Stage::SubgraphResponse) || plan.asks_more();
        let (opening, sent) = match asked(told, plan, context, worker).await {
            Ok(decided) => decided,
            Err(error) => (Opening::Failed(error), None),
        };
        let identity = match sent {
            Some(sent) if !is_kept => SourceIdentity::Hooks(sent),
            _ => SourceIdentity::Private,
        };
        HookedOpening {
            opening,
            identity,
            is_kept,
        }
    }

    /// Whether the subgraph is asked.
    pub(crate) fn asks_subgraph(&self) -> bool {
        matches!(self, Opening::Planned | Opening::Hooked(_))
    }

    /// Where the source is, if hooks chose another place.
    pub(crate) fn endpoint(&self) -> Option<Arc<[Endpoint; 1]>> {
        match self {
            Opening::Hooked(hooked) => hooked.elsewhere.clone(),
            _ => None,
        }
    }

    /// Opens the stream. `request` is what the plan asks.
    pub(crate) fn open<'s>(
        &'s self,
        transport: &'s RequestTransport<'_>,
        mut request: SubgraphRequest,
    ) -> EventStreamFuture<'s> {
        match self {
            Opening::Planned => transport.subscribe(request),
            Opening::Hooked(hooked) => {
                request.body = hooked.body.clone();
                Box::pin(transport.subscribe_as(request, &hooked.headers))
            }
            Opening::Answered(event) => {
                let only = OnlyEvent(Some(Ok(event.clone())));
                Box::pin(ready(Ok(Box::pin(only) as _)))
            }
            Opening::Failed(error) => Box::pin(ready(Err(error.clone()))),
        }
    }
}

/// Asks the hooks, and writes what identifies their decision; `None` if nobody can share it.
async fn asked(
    told: &OperationHooks<'_>,
    plan: &SourcePlan,
    context: &OperationContext<'_>,
    worker: &WorkerState,
) -> Result<(Opening, Option<Box<[u8]>>), Failure> {
    let Some((mut request, endpoint)) = plan.lasting_source() else {
        return Ok((Opening::Planned, None));
    };
    let headers = context.headers_to_send();
    let caller = OperationCaller::new(context, &plan.bound.operation);
    let transport = RequestTransport::new(&worker.client, &*endpoint, headers, None);
    let transport = transport.asked_by(Some(&caller));
    match transport.decide_source(told, &request).await? {
        FetchDecision::Answer(answer) => {
            let event = SubgraphResponse {
                status: answer.status,
                body: answer.body,
            };
            Ok((Opening::Answered(event), None))
        }
        FetchDecision::Send { headers, body, url } => {
            let [endpoint] = &*endpoint;
            let elsewhere = url.as_deref().map(|url| endpoint.with_events_at(url));
            request.body = body;
            let sent = identity(&headers, &request.body, url.as_deref());
            let hooked = HookedSource {
                headers,
                body: request.body,
                elsewhere: elsewhere.transpose()?.map(|endpoint| Arc::new([endpoint])),
            };
            Ok((Opening::Hooked(hooked), Some(sent)))
        }
    }
}

/// All that a source is sent, as bytes that are equal only if all of it is.
fn identity(headers: &HeaderMap, body: &[u8], url: Option<&str>) -> Box<[u8]> {
    let mut bytes = Vec::new();
    let mut add = |part: &[u8]| {
        bytes.extend_from_slice(&(part.len() as u64).to_ne_bytes());
        bytes.extend_from_slice(part);
    };
    add(url.unwrap_or_default().as_bytes());
    add(body);
    for (name, value) in headers {
        add(name.as_str().as_bytes());
        add(value.as_bytes());
    }
    bytes.into()
}

/// A stream of one event.
struct OnlyEvent(Option<Event>);

impl Stream for OnlyEvent {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Event>> {
        Poll::Ready(self.0.take())
    }
}
