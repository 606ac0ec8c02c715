//! Stop 5 of 5: respond. Comes from [`execute`](crate::execute), or from any stop that refused the request; goes to
//! the client.
//!
//! The executor's output program has written the data already; what is left is the frame: status, media type and
//! body. A response with errors in single fields is still 200, because the request was executed.

pub mod expose;
pub(crate) mod parts;
pub(crate) mod refusal;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use ogive_edge::media::Media;
use ogive_execute::ExecuteOutput;
use ogive_server::ResponseBody;
use ogive_telemetry::{spans, stop_span};
use ogive_transport::{ADDED_BYTES_MAX, is_for_caches};

use crate::{
    admit::latency_sample::LatencySample,
    options::GatewayOptions,
    respond::expose::{add_extensions, plan_extension},
    schema::{operation::PlannedOperation, state::SchemaState},
    shared::{context::OperationContext, stage::Stage, stage_observer::StageObserver},
    subscribe::format::whole,
};

/// The response to an executed operation.
pub fn respond(output: ExecuteOutput, media: Media) -> Response<ResponseBody> {
    framed(StatusCode::OK, media, output.body.into_segments().collect())
}

/// Frames what was executed as an HTTP response.
#[derive(Debug)]
pub(crate) struct Respond {
    pub(crate) state: Arc<SchemaState>,
    pub(crate) options: Arc<GatewayOptions>,
}

impl Stage for Respond {
    const NAME: &'static str = "respond";
    const DOES: &'static str = "write status, media type and extensions of the response";
}

impl Respond {
    /// `plan`: if the client asked for it.
    pub(crate) fn run(
        &self,
        context: &OperationContext<'_>,
        media: Media,
        output: ExecuteOutput,
        plan: Option<&PlannedOperation>,
    ) -> Response<ResponseBody> {
        let _span = stop_span!(spans::RESPOND).entered();
        let sample = LatencySample::of_execution(&output.stats);
        let mut extensions = Vec::new();
        if let Some(plan) = plan {
            extensions.push(("apolloQueryPlan", plan_extension(plan)));
        }
        let traces = |_: &&dyn StageObserver| self.options.observe.traces(context.headers);
        if let Some(observer) = context.observer().filter(traces)
            && let Some(timeline) = observer.timeline(&self.state.endpoints)
        {
            extensions.push(("ogiveTrace", timeline));
        }
        let mut response = match extensions.as_slice() {
            [] => respond(output, media),
            all => respond_with(add_extensions(&output.body.into_bytes(), all).into(), media),
        };
        let added = context.take_added();
        if !added.is_empty() {
            add_headers(&mut response, added, !extensions.is_empty());
        }
        if self.options.overload.is_some() {
            sample.tell(&mut response);
        }
        response
    }
}

/// A response whose body is written already.
pub fn respond_with(body: Bytes, media: Media) -> Response<ResponseBody> {
    framed(StatusCode::OK, media, body.into())
}

/// The responses to a batch, as one list in the order of the requests. The list was read and answered, so its status
/// is 200 whatever became of the entries.
pub fn respond_batch(entries: Vec<Response<ResponseBody>>, media: Media) -> Response<ResponseBody> {
    let size: usize = entries.iter().map(|e| e.body().len() + 1).sum();
    let mut body = Vec::with_capacity(size + 1);
    for entry in &entries {
        body.push(if body.is_empty() { b'[' } else { b',' });
        for piece in entry.body().pieces() {
            body.extend_from_slice(piece);
        }
    }
    body.push(b']');
    let mut response = framed(StatusCode::OK, media, Bytes::from(body).into());
    let samples = entries.iter().map(LatencySample::of);
    if let Some(sample) = samples.max() {
        sample.tell(&mut response);
    }
    let headers = response.headers_mut();
    let mut room = ADDED_BYTES_MAX;
    for (name, value) in entries.iter().flat_map(Response::headers) {
        let Some(left) = room.checked_sub(name.as_str().len() + value.len()) else {
            break;
        };
        room = left;
        if name == header::SET_COOKIE || name == header::VARY {
            // Entries mostly vary by the same.
            if name != header::VARY || !headers.get_all(name).iter().any(|known| known == value) {
                headers.append(name, value.clone());
            }
        } else if is_for_caches(name) {
            // What single answers say of themselves does not hold for a list of them.
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        } else if !matches!(
            *name,
            header::CONTENT_TYPE | header::ALLOW | header::RETRY_AFTER
        ) {
            headers.insert(name, value.clone());
        }
    }
    response
}

/// The headers that subgraphs' answers add to a response. `by_request`: whether it says what only this request asked for,
/// such as its plan.
pub fn add_headers(response: &mut Response<ResponseBody>, mut added: HeaderMap, by_request: bool) {
    let names = added.keys().filter(|name| is_for_caches(name));
    let for_caches: Vec<HeaderName> = names.cloned().collect();
    let speaks = !for_caches.is_empty();
    for name in for_caches.into_iter().filter(|_| by_request) {
        added.remove(name);
    }
    let headers = response.headers_mut();
    headers.extend(added);
    if speaks && by_request {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    } else if speaks {
        // Whoever keeps it has to know that it would be written in another way for others.
        headers.append(header::VARY, HeaderValue::from_static("accept"));
    }
}

fn framed(status: StatusCode, media: Media, body: ResponseBody) -> Response<ResponseBody> {
    let (media, body) = match media {
        // Whoever reads streams only can read a status.
        Media::Stream(_) if status != StatusCode::OK => (Media::Json, body),
        Media::Stream(stream) => (media, whole(stream, &body.to_vec()).into()),
        _ => (media, body),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, media.content_type());
    response
}
