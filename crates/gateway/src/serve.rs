//! The gateway as what a server serves: how it answers, and what it says to those whom the server refuses.

use std::{
    fmt::Debug,
    future::Future,
    io,
    pin::Pin,
    rc::Rc,
    sync::{Arc, atomic::Ordering},
};

use http::{Response, StatusCode, request::Parts};
use hyper::body::Incoming;
use ogive_base::{Peer, Reservation};
use ogive_edge::{
    error::{RequestError, no_memory},
    media::Media,
};
use ogive_limits::Measured;
use ogive_net::TlsError;
use ogive_server::{Bound, Drained, Refusal, ResponseBody, ServeOptions, Service};
use ogive_sources::SourceKind;
use ogive_telemetry::codes;

use crate::{
    background::certificates::refreshed_source, gateway::Gateway, respond::refusal::refuse,
    shared::worker::WorkerState,
};

/// Serves a gateway on a bound socket until `shutdown` completes, then drains. Fails only if threads cannot be started.
///
/// The types are erased here, so that the code of a request is compiled with this crate and not with each program that
/// serves.
pub fn serve(
    bound: Bound,
    gateway: Arc<Gateway>,
    options: ServeOptions,
    shutdown: impl Future<Output = ()> + 'static,
) -> Pin<Box<dyn Future<Output = io::Result<Drained>>>> {
    serve_until(bound, gateway, options, Box::pin(shutdown))
}

fn serve_until(
    bound: Bound,
    gateway: Arc<Gateway>,
    options: ServeOptions,
    shutdown: Pin<Box<dyn Future<Output = ()>>>,
) -> Pin<Box<dyn Future<Output = io::Result<Drained>>>> {
    Box::pin(bound.serve(gateway, options, shutdown))
}

impl Service for Gateway {
    type Worker = Rc<WorkerState>;

    fn worker(self: &Arc<Self>) -> Rc<WorkerState> {
        self.go_on();
        WorkerState::with_streams(Arc::clone(&self.callbacks))
    }
    fn answer(
        &self,
        head: &mut Parts,
        body: Incoming,
        peer: Peer,
        worker: &Rc<WorkerState>,
    ) -> impl Future<Output = Response<ResponseBody>> {
        self.answer_parts(head, body, peer, worker)
    }
    fn refuse(&self, refusal: Refusal, head: &Parts, peer: Peer) -> Response<ResponseBody> {
        let (mut response, code) = refused(refusal);
        self.log_refused(head, peer, &mut response, code);
        response
    }
    fn is_health(&self, head: &Parts) -> bool {
        self.is_about_health(head)
    }
    fn opens_websockets(&self) -> bool {
        let serving = self.serving.load();
        let subscription = serving.options.subscription.as_ref();
        subscription.is_some_and(|subscription| subscription.websocket.is_some())
    }
    fn reserve(&self, worker: &Rc<WorkerState>) -> Reservation {
        worker.reserve(&self.memory)
    }
    fn note<T: PartialOrd + Debug>(&self, measured: &Measured<T>, found: &T) {
        self.note_exceeded(measured, found);
    }
    fn looked_at_certificates(&self, refreshed: Result<bool, TlsError>) {
        let refreshed = refreshed.map_err(|error| error.to_string());
        refreshed_source(SourceKind::Certificates, "the listener", refreshed);
    }
    fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.sources.drain();
    }
    fn generation(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }
    fn trim(&self, worker: &Rc<WorkerState>) -> bool {
        worker.client.trim() > 0
    }
}

/// What a client reads, and the code that is logged.
fn refused(refusal: Refusal) -> (Response<ResponseBody>, &'static str) {
    let empty = |status: StatusCode| {
        let mut response = Response::new(ResponseBody::default());
        *response.status_mut() = status;
        response
    };
    let error = match refusal {
        Refusal::HeaderCount => {
            let response = empty(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
            return (response, codes::limits::HEADERS);
        }
        Refusal::HeaderSize => {
            let response = empty(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
            return (response, codes::limits::HEADER_SIZE);
        }
        Refusal::Malformed => {
            let response = empty(StatusCode::BAD_REQUEST);
            return (response, codes::INVALID_GRAPHQL_REQUEST.as_str());
        }
        Refusal::Host => RequestError::http(
            codes::INVALID_GRAPHQL_REQUEST,
            "the request has no `host` header, several, or one that names no host",
        ),
        Refusal::Framing => RequestError::http(
            codes::INVALID_GRAPHQL_REQUEST,
            "the request has both `content-length` and `transfer-encoding`, or another coding than `chunked`",
        ),
        Refusal::Memory => no_memory(),
        Refusal::Connections => RequestError::http(
            codes::CONNECTIONS_LIMITED,
            "too many connections: retry later",
        ),
    };
    let code = error.code().as_str();
    (refuse(&error, Media::Json), code)
}
