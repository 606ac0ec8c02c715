//! Requests by which subgraphs send events (`callback/1.0`): found by the id in the path, read up to the limit of the
//! subgraph's answers, handed to the subscription, which may be on any worker.
//!
//! Nobody is asked who he is: whoever knows the id and the secret of a subscription is who was told them. Of an id that is
//! none nothing is kept. The statuses are those of the protocol: 204 for a `check`, 202 for what was accepted, 400 for what
//! is not understood, 404 for a subscription that is over.

use http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use ogive_edge::{
    media::Media,
    receive::{RequestBody, growing::Arriving},
};
use ogive_server::{ResponseBody, drain_body::read_refused};
use ogive_stream::callback::{HEADER, VERSION};
use ogive_transport::CallbackAnswer;

use crate::{
    gateway::{Gateway, Serving},
    respond::refusal::refuse,
    shared::context::RequestContext,
    subscribe::whole_body::read_whole,
};

impl Gateway {
    /// Takes what a subgraph says of a subscription.
    pub(crate) async fn called_back<B: RequestBody>(
        &self,
        serving: &Serving,
        body: B,
        context: RequestContext<'_>,
        id: &str,
    ) -> Response<ResponseBody> {
        let parts = context.parts;
        if parts.method != Method::POST {
            read_refused(&parts.headers, body).await;
            let mut response = answer(StatusCode::METHOD_NOT_ALLOWED);
            let post = HeaderValue::from_static("POST");
            response.headers_mut().insert(header::ALLOW, post);
            return response;
        }
        let Some(subscription) = self.callbacks.get(id) else {
            read_refused(&parts.headers, body).await;
            return answer(StatusCode::NOT_FOUND);
        };
        let memory = context.worker.reserve(&self.memory);
        let limits = (Arriving::of(&memory), subscription.bytes_max());
        let body = match read_whole(serving, parts, body, limits).await {
            Ok(body) => body,
            Err(error) => {
                // Of whoever has not shown the secret it ends nothing.
                tracing::warn!(
                    status = error.status,
                    "an event of a subscription was not read: it may be missing"
                );
                return refuse(&error, Media::Json);
            }
        };
        answer(match subscription.receive(body).await {
            CallbackAnswer::Wanted => StatusCode::NO_CONTENT,
            CallbackAnswer::Accepted => StatusCode::ACCEPTED,
            CallbackAnswer::Malformed => StatusCode::BAD_REQUEST,
            CallbackAnswer::Over => StatusCode::NOT_FOUND,
        })
    }
}

fn answer(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::default());
    *response.status_mut() = status;
    let name = HeaderName::from_static(HEADER);
    let version = HeaderValue::from_static(VERSION);
    response.headers_mut().insert(name, version);
    response
}
