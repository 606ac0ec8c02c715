//! Whether a request gets in: what the client reads, whether there is a schema, the limits that do not depend on who asks,
//! and those that do as soon as that is known ([`rates`], [`operation`]).

mod component_keys;
pub(crate) mod latency_sample;
pub(crate) mod log_sample;
pub(crate) mod operation;
pub mod operation_rates;
pub mod overload;
pub(crate) mod rate_keys;
pub mod rates;
pub(crate) mod subgraph_rates;

use std::sync::{Arc, Mutex, PoisonError, atomic::Ordering};

use http::{HeaderMap, Method, Response, request::Parts};
use ogive_server::ResponseBody;
use ogive_telemetry::codes;

use crate::{
    admit::rates::{AdmissionOptions, Admitted},
    gateway::Gateway,
    options::GatewayOptions,
    respond::refusal::refused,
    shared::context::{Identity, OperationContext, RequestContext},
    shared::error::RequestError,
    shared::media::{
        Media, asks_for_websocket, graphql_media, incremental_media, stream_asked, stream_media,
    },
    shared::rate_state::RateState,
};

/// After how many seconds clients come back while there is no schema.
const WAITING_SECONDS: u64 = 5;

/// In the extensions of a request that was let in before its body was read.
#[derive(Clone, Debug)]
pub(crate) struct AdmittedSlot(Arc<Mutex<Option<Admitted>>>);

impl AdmittedSlot {
    pub(crate) fn new(admitted: Admitted) -> Self {
        AdmittedSlot(Arc::new(Mutex::new(Some(admitted))))
    }
    fn take(&self) -> Option<Admitted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Gateway {
    /// Lets a request for GraphQL in, or refuses it.
    pub(crate) fn admit(
        &self,
        options: &GatewayOptions,
        context: RequestContext<'_>,
    ) -> Result<(Media, Admitted), Box<Response<ResponseBody>>> {
        let parts = context.parts;
        let headers = &parts.headers;
        let whole = graphql_media(headers).or_else(|| stream_only(options, parts));
        let Some(media) = whole.or_else(|| parts_only(options, parts)) else {
            let error = not_acceptable(parts);
            return Err(Box::new(refused(context, &error, Media::Json)));
        };
        if parts.method == Method::GET && asks_for_websocket(&parts.headers) {
            let opened = self.open_websocket(options, context);
            return Err(Box::new(match opened {
                Ok(response) => response,
                Err(error) => refused(context, &error, media),
            }));
        }
        if self.waiting.load(Ordering::Acquire) {
            let error = RequestError {
                retry_after: Some(WAITING_SECONDS),
                ..RequestError::http(
                    codes::SCHEMA_NOT_LOADED,
                    "the gateway has no schema yet: come back in a moment",
                )
            };
            return Err(Box::new(refused(context, &error, media)));
        }
        let known = parts
            .extensions
            .get::<AdmittedSlot>()
            .and_then(AdmittedSlot::take);
        match known.map_or_else(|| self.let_in(options, context), Ok) {
            Ok(admitted) => Ok((media, admitted)),
            Err((error, rate)) => {
                let mut response = refused(context, &error, media);
                if let Some(rate) = rate {
                    rate.write(response.headers_mut());
                }
                Err(Box::new(response))
            }
        }
    }

    /// Counts a request, or an entry of a batch, against the limits that do not depend on who asks.
    pub(crate) fn let_in(
        &self,
        options: &GatewayOptions,
        context: RequestContext<'_>,
    ) -> Result<Admitted, (RequestError, Option<RateState>)> {
        let (headers, identity) = (&context.parts.headers, context.identity);
        let admission = &self.admission;
        let admitted = admission.admit(&options.admission, headers, identity.client)?;
        self.exceeded(context.record, admitted.exceeded.iter());
        Ok(admitted)
    }

    /// Counts it against the rate of its caller, as soon as that one is known.
    pub(crate) fn let_caller_in(
        &self,
        options: &GatewayOptions,
        context: RequestContext<'_>,
        identity: &Identity,
    ) -> Result<Option<RateState>, (RequestError, RateState)> {
        let claim = |name: &str| identity.claim(name);
        let admission = &self.admission;
        let admitted = admission.admit_caller(&options.admission, identity.client, claim)?;
        let Some((state, exceeded)) = admitted else {
            return Ok(None);
        };
        let exceeded = exceeded.then_some(codes::REQUEST_RATE_LIMITED.as_str());
        self.exceeded(context.record, exceeded.iter());
        Ok(Some(state))
    }

    /// Lets an entry of a batch in, or refuses it: each of them costs as much as a request of its own. The first one was let
    /// in with the request.
    pub(crate) fn admit_entry(
        &self,
        options: &GatewayOptions,
        context: RequestContext<'_>,
        at: usize,
    ) -> Result<Option<Admitted>, RequestError> {
        if at == 0 {
            return Ok(None);
        }
        // By what the client has sent, like the first one, whatever a coprocessor has made of it since.
        let context = match context.coprocessor {
            Some(run) => RequestContext {
                parts: run.origin.0,
                identity: run.origin.1,
                ..context
            },
            None => context,
        };
        // A list is answered with one head, which says nothing of the rate of one entry.
        let admitted = self.let_in(options, context).map_err(|(error, _)| error)?;
        let of_caller = self.let_caller_in(options, context, context.identity);
        of_caller.map_err(|(error, _)| error)?;
        Ok(Some(admitted))
    }

    /// Rates of operations are taken from when it is known which operation it is.
    pub(crate) fn admit_operation(
        &self,
        options: &AdmissionOptions,
        name: Option<&str>,
        context: &OperationContext<'_>,
    ) -> Result<(), RequestError> {
        let admitted = self.admission.admit_operation(options, name);
        // One that is refused says with `retry-after` when to come back.
        let admitted = admitted.map_err(|(error, _)| error)?;
        if let Some((state, exceeded)) = admitted {
            let mut headers = HeaderMap::new();
            state.write(&mut headers);
            context.add(headers);
            let exceeded = exceeded.then_some(codes::REQUEST_RATE_LIMITED.as_str());
            self.exceeded(context.record(), exceeded.iter());
        }
        Ok(())
    }
}

/// The stream that a client asks for who reads nothing else.
#[cold]
fn stream_only(options: &GatewayOptions, parts: &Parts) -> Option<Media> {
    options.subscription.as_ref()?;
    stream_media(&parts.headers).map(Media::Stream)
}

/// What a client gets that is answered as a whole though it reads answers in parts only: refusals.
#[cold]
fn parts_only(options: &GatewayOptions, parts: &Parts) -> Option<Media> {
    incremental_media(&parts.headers, options.incremental?).map(|_| Media::Json)
}

/// A request whose `accept` header admits nothing that there is.
pub(crate) fn not_acceptable(parts: &Parts) -> RequestError {
    let Some(stream) = stream_asked(&parts.headers) else {
        let message = "the `accept` header admits neither `application/graphql-response+json` nor \
                       `application/json`";
        return RequestError::http(codes::NOT_ACCEPTABLE, message);
    };
    let message = match stream {
        "multipart/mixed" => {
            "no answer is `multipart/mixed` of this kind here: accept `application/json`, too, and `@defer` is answered \
             in one response"
        }
        _ => {
            "no answer is a stream of events here, because subscriptions are not served: accept `application/json`, or \
             `multipart/mixed` for answers in parts"
        }
    };
    RequestError {
        status: 406,
        ..RequestError::http(codes::SUBSCRIPTIONS_NOT_SUPPORTED, message)
    }
}
