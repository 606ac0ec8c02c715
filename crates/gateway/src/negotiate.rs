//! The media type of an answer, by the head of its request. Nothing is counted before a client accepts one.

use std::sync::atomic::Ordering;

use http::{Method, Response, request::Parts};
use ogive_edge::{
    error::RequestError,
    media::{
        Media, asks_for_websocket, graphql_media, incremental_media, stream_asked, stream_media,
    },
};
use ogive_server::ResponseBody;
use ogive_telemetry::codes;

use crate::{
    gateway::Gateway, options::GatewayOptions, respond::refusal::refused,
    shared::context::RequestContext,
};

/// Seconds after which clients retry while the gateway has no schema.
const WAITING_SECONDS: u64 = 5;

impl Gateway {
    /// The media type of the answer to a request for GraphQL; or a response at once, which opens a WebSocket or rejects the
    /// request.
    pub(crate) fn negotiate(
        &self,
        options: &GatewayOptions,
        context: RequestContext<'_>,
    ) -> Result<Media, Box<Response<ResponseBody>>> {
        let parts = context.parts;
        let headers = &parts.headers;
        let whole = graphql_media(headers).or_else(|| stream_only(options, parts));
        let Some(media) = whole.or_else(|| parts_only(options, parts)) else {
            let error = not_acceptable(parts);
            return Err(Box::new(refused(context, &error, Media::Json)));
        };
        if parts.method == Method::GET && asks_for_websocket(headers) {
            let opened = self.open_websocket(options, context);
            let response = opened.unwrap_or_else(|error| refused(context, &error, media));
            return Err(Box::new(response));
        }
        if self.waiting.load(Ordering::Acquire) {
            let error = RequestError {
                retry_after: Some(WAITING_SECONDS),
                ..RequestError::http(
                    codes::SCHEMA_NOT_LOADED,
                    "the gateway has no schema yet: retry later",
                )
            };
            return Err(Box::new(refused(context, &error, media)));
        }
        Ok(media)
    }
}

/// The stream of events for a client that accepts nothing else.
#[cold]
fn stream_only(options: &GatewayOptions, parts: &Parts) -> Option<Media> {
    options.subscription.as_ref()?;
    stream_media(&parts.headers).map(Media::Stream)
}

/// The media type of whole answers, such as rejections, for a client that accepts answers in parts only.
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
