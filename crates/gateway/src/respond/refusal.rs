//! The responses to requests that are refused, at whatever stage.

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use ogive_edge::{
    error::RequestError,
    error_rules::ErrorRewrites,
    media::{Accept, Media, accept},
};
use ogive_server::ResponseBody;
use ogive_telemetry::{spans, stop_span};

use crate::{
    gateway::Gateway,
    options::GatewayOptions,
    respond::framed,
    shared::{context::RequestContext, failures},
};

impl Gateway {
    /// Refuses a request that is no GraphQL. It leads as far as any other: its answer has an id, it is logged and counted.
    pub(crate) fn refuse_elsewhere(
        &self,
        options: &GatewayOptions,
        context: RequestContext<'_>,
        error: &RequestError,
    ) -> Response<ResponseBody> {
        let (parts, observe) = (context.parts, &options.observe);
        let is_wanted = context.record.is_none()
            && (self.telemetry.is_on() || observe.is_on())
            && parts.method != Method::OPTIONS;
        let own = is_wanted.then(|| self.record(options, parts));
        let context = RequestContext {
            record: own.as_ref().or(context.record),
            ..context
        };
        let mut response = refused(context, error, media_of(parts));
        if let Some(record) = &own {
            self.end(options, record, parts, context.identity, &mut response);
        }
        response
    }
}

/// Refuses a request, and tells of it.
pub(crate) fn refused(
    context: RequestContext<'_>,
    error: &RequestError,
    media: Media,
) -> Response<ResponseBody> {
    let _span = stop_span!(spans::RESPOND).entered();
    failures::refused(context.telemetry, context.record, error);
    if let Some(run) = context.hooks {
        run.has_errors.set(true);
    }
    refuse_by(context.error_rules, error, media)
}

/// The response to a refused request.
pub(crate) fn refuse(error: &RequestError, media: Media) -> Response<ResponseBody> {
    refuse_by(None, error, media)
}

/// The same by rules for what clients are told.
fn refuse_by(
    rules: Option<&ErrorRewrites>,
    error: &RequestError,
    media: Media,
) -> Response<ResponseBody> {
    // Clients from before the status told anything take every other status for a broken connection.
    let status = match media {
        Media::LegacyJson | Media::Stream(_) if error.well_formed && error.status < 500 => {
            StatusCode::OK
        }
        _ => StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    };
    let mut response = framed(status, media, Bytes::from(error.to_json_by(rules)).into());
    // A cache that keeps what nothing is said about must not keep, for instance, that a document is not known yet.
    let never = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, never);
    if let Some(seconds) = error.retry_after {
        let seconds = HeaderValue::from(seconds);
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    if let Some(rate) = &error.rate {
        rate.write(response.headers_mut());
    }
    if let Some(challenge) = &error.challenge
        && let Ok(challenge) = HeaderValue::from_str(challenge)
    {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, challenge);
    }
    if let Some(allow) = error.allow {
        let allow = HeaderValue::from_static(allow);
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

/// The media type of a refusal.
pub(crate) fn media_of(parts: &Parts) -> Media {
    match accept(&parts.headers) {
        Accept::Graphql(media) => media,
        Accept::Html | Accept::Nothing => Media::Json,
    }
}
