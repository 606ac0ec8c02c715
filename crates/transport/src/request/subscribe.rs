//! Streams of events that an operation asks for.

use http::HeaderMap;
use ogive_execute::{EventStream, Failure, FailureReport, SubgraphRequest, Transport, no_events};
use tokio::time::Instant;

use crate::{
    Answered, Endpoint, RequestTransport, ServiceRequest, SubgraphService,
    error::is_no_fault_of_subgraph,
    events::{self, SubscribeRequest},
    extensions::extended,
    sign,
};

use super::{left_alone, too_slow};

impl RequestTransport<'_> {
    pub(super) async fn subscribed(
        &self,
        request: SubgraphRequest,
    ) -> Result<EventStream<'_>, Failure> {
        let (endpoint, common) = self.outgoing(request.subgraph)?;
        if let Some(service) = &endpoint.service {
            return self.subscribed_to(&**service, endpoint, request).await;
        }
        let Some(source) = endpoint.events.as_deref() else {
            return Err(no_events());
        };
        let mut own = HeaderMap::new();
        let watched = self.observer.map(|o| o.asked(request.subgraph));
        if let (Some(observer), Some(number)) = (self.observer, watched) {
            observer.sending(number, &mut own);
        }
        let asked = match &common.extensions {
            None => request.body,
            Some(extensions) => extended(&request.body, extensions),
        };
        let body = match &endpoint.signer {
            None => asked,
            Some(signer) => {
                let signed = sign::body(&**signer, endpoint, &asked);
                let signed = signed?;
                signed.unwrap_or(asked)
            }
        };
        let subgraph = request.subgraph;
        let wanted = SubscribeRequest {
            names: &self.client.names,
            endpoint,
            source,
            headers: &common.headers,
            own,
            body,
            deadline: self.deadline,
            on_loss: Box::new(move |error| self.lost(subgraph, error)),
        };
        let shared = (&self.client.sockets, &self.client.callbacks);
        let opened = events::subscribe(shared, wanted).await;
        if let (Some(observer), Some(number)) = (self.observer, watched) {
            let answered = match &opened {
                Ok(_) => Answered::Status(200, 0),
                Err(error) => Answered::Failed(error.code),
            };
            observer.answered(number, answered);
        }
        opened
    }

    /// Subscribes to what stands in for a subgraph without URL.
    async fn subscribed_to<'s>(
        &'s self,
        service: &'s dyn SubgraphService,
        endpoint: &'s Endpoint,
        request: SubgraphRequest,
    ) -> Result<EventStream<'s>, Failure> {
        let now = Instant::now();
        let own = endpoint.traffic.timeout;
        let left = self.deadline.map(|at| at.saturating_duration_since(now));
        let within = left.map_or(own, |left| left.min(own));
        let subgraph = request.subgraph;
        let watched = self.observer.map(|o| o.asked(subgraph));
        let permit = endpoint.health.admit(endpoint.traffic.breaker);
        let permit = permit.ok_or_else(|| left_alone(endpoint))?;
        let opening = service.subscribe(ServiceRequest {
            request,
            within,
            bytes_max: endpoint.traffic.response_bytes_refused(),
            on_loss: Box::new(move |error| self.lost(subgraph, error)),
        });
        let opened = match tokio::time::timeout(within, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(too_slow(endpoint)),
        };
        permit.done(opened.as_ref().err().is_none_or(is_no_fault_of_subgraph));
        if let (Some(observer), Some(number)) = (self.observer, watched) {
            let answered = match &opened {
                Ok(_) => Answered::Status(200, 0),
                Err(error) => Answered::Failed(error.code),
            };
            observer.answered(number, answered);
        }
        opened
    }

    /// A stream of events was lost, and is going to be opened again: nobody knows what happened meanwhile.
    fn lost(&self, subgraph: u32, error: &Failure) {
        self.failed(&FailureReport::of(subgraph, error));
    }
}
