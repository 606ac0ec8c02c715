//! Streams of events that an operation asks for.

use http::HeaderMap;
use ogive_execute::{EventStream, Failure, FailureReport, SubgraphRequest, Transport, no_events};
use tokio::time::Instant;

use crate::{
    Answered, Endpoint, FetchDecision, FetchHook, FetchRequest, RequestTransport, ServiceRequest,
    SubgraphService,
    error::is_no_fault_of_subgraph,
    events::{self, SubscribeRequest},
    extensions::extended,
    sign,
};

use super::{
    hooked::{elsewhere, url_of},
    left_alone, too_slow,
};

impl Endpoint {
    /// This subgraph with its streams of events at another `http` or `https` URL, which is the whole URL of the streams.
    pub fn with_events_at(&self, url: &str) -> Result<Endpoint, Failure> {
        let mut endpoint = elsewhere(self, url)?;
        endpoint.events = endpoint.events.map(|events| {
            let mut events = events.as_ref().clone();
            events.path = None;
            events.into()
        });
        Ok(endpoint)
    }
    /// Where its streams of events are opened; the first of several places.
    fn events_url(&self) -> Option<String> {
        let url = url_of(self)?;
        let Some(path) = self.events.as_ref().and_then(|events| events.path.as_ref()) else {
            return Some(url);
        };
        let (scheme, rest) = url
            .split_once("://")
            .filter(|(scheme, _)| *scheme != "unix")?;
        let host = rest.split_once('/').map_or(rest, |(host, _)| host);
        Some(format!("{scheme}://{host}{path}"))
    }
}

impl RequestTransport<'_> {
    /// Lets a hook see the request that opens a stream of events. The stream is opened as the hook decides by
    /// [`subscribe_as`](Self::subscribe_as).
    pub async fn decide_source(
        &self,
        hook: &dyn FetchHook,
        request: &SubgraphRequest,
    ) -> Result<FetchDecision, Failure> {
        let (endpoint, outgoing) = self.outgoing(request.subgraph)?;
        let asked = FetchRequest {
            subgraph: &endpoint.name,
            url: endpoint.events_url(),
            headers: outgoing.headers.clone(),
            body: match &outgoing.extensions {
                None => request.body.clone(),
                Some(extensions) => extended(&request.body, extensions),
            },
        };
        hook.request(0, asked).await
    }

    /// Opens a stream of events with the headers that a hook decided; the body has all extensions.
    pub async fn subscribe_as<'s>(
        &'s self,
        request: SubgraphRequest,
        headers: &'s HeaderMap,
    ) -> Result<EventStream<'s>, Failure> {
        self.subscribed(request, Some(headers)).await
    }

    pub(super) async fn subscribed<'s>(
        &'s self,
        request: SubgraphRequest,
        decided: Option<&'s HeaderMap>,
    ) -> Result<EventStream<'s>, Failure> {
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
            Some(extensions) if decided.is_none() => extended(&request.body, extensions),
            _ => request.body,
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
            headers: decided.unwrap_or(&common.headers),
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
