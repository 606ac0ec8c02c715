//! The stages at responses: what hooks make of a response, which may be one that goes on behind its head (parts, events). What
//! comes behind the head passes [`parts`](super::parts).

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode, header};
use ogive_edge::error::RequestError;
use ogive_hooks::{Body, CoprocessorError, Exchange, Stage};
use ogive_server::ResponseBody;

use super::{
    body::{break_response, with_has_next},
    run::{HookRun, OperationHooks},
};
use crate::shared::open_response::{FirstPart, goes_on};

impl HookRun<'_> {
    /// Lets the hooks of a stage see a response: all of it, or its head and its first part, if that is there already. After an
    /// error the response is not to be used.
    pub(crate) async fn answered(
        &self,
        operation: Option<&OperationHooks<'_>>,
        stage: Stage,
        response: &mut Response<ResponseBody>,
    ) -> Result<(), RequestError> {
        if !self.is_on(stage) {
            return Ok(());
        }
        let is_whole = !goes_on(response);
        let first = response.extensions().get::<FirstPart>().cloned();
        let has_next = match &first {
            Some(first) => first.has_next,
            None => !is_whole,
        };
        let is_told = self.looks_at_body(stage);
        let body: Option<Bytes> = match &first {
            _ if !is_told => None,
            Some(first) => Some(first.json()),
            None => is_whole.then(|| response.body().to_vec().into()),
        };
        let copied = body.as_ref().map_or(0, Bytes::len);
        self.memory.grow(copied)?;
        // Of what has one answer the outermost stage is told nothing more.
        let tells_next = !is_whole || stage != Stage::RouterResponse;
        // By it a client reads where parts begin and end.
        let media = response.headers().get(header::CONTENT_TYPE).cloned();
        let media = media.filter(|_| !is_whole);
        let mut exchange = Exchange {
            // Lent, and put back below: nothing is copied that no hook changes.
            headers: Arc::new(std::mem::take(response.headers_mut())),
            body: body.map(|body| message_body(stage, body)),
            status: Some(response.status().as_u16()),
            has_next: tells_next.then_some(has_next),
            ..self.exchange(stage)
        };
        let check = |exchange: &Exchange| changed_body(exchange, is_whole, first.as_ref());
        let asked = self.ask(operation, &mut exchange, check).await;
        self.memory.shrink(copied);
        let body = asked?.flatten();
        if let Some(ending) = exchange.changes.ending.take() {
            *response = break_response(*ending, !stage.body_is_text());
            return Ok(());
        }
        *response.headers_mut() = Arc::unwrap_or_clone(exchange.headers);
        if let Some(media) = media.filter(|_| exchange.changes.headers) {
            response.headers_mut().insert(header::CONTENT_TYPE, media);
        }
        let status = exchange.status.filter(|_| exchange.changes.status);
        if let Some(status) = status.and_then(|status| StatusCode::from_u16(status).ok()) {
            *response.status_mut() = status;
        }
        match (body, first) {
            (Some(body), Some(first)) => first.set(body),
            (Some(body), None) => {
                response.headers_mut().remove(header::CONTENT_LENGTH);
                response.body_mut().replace(body);
            }
            (None, _) => {}
        }
        Ok(())
    }
}

/// A body as a stage is told it.
pub(super) fn message_body(stage: Stage, body: Bytes) -> Body {
    if stage.body_is_text() {
        Body::Text(body)
    } else {
        Body::Json(body)
    }
}

/// A body that has to be a response of GraphQL.
pub(super) fn response_body(body: &Body, may_be_text: bool) -> Result<Bytes, CoprocessorError> {
    let is_text = matches!(body, Body::Text(_)) && !may_be_text;
    let body = body.bytes();
    if is_text || !body.starts_with(b"{") {
        return Err(CoprocessorError::Malformed("body", "a GraphQL response"));
    }
    Ok(body.clone())
}

/// The body that a response gets. `is_whole`: nothing comes behind it; `first`: something may, and its first part is there.
fn changed_body(
    exchange: &Exchange,
    is_whole: bool,
    first: Option<&FirstPart>,
) -> Result<Option<Bytes>, CoprocessorError> {
    let is_text = exchange.stage.body_is_text();
    let body = exchange.body.as_ref().filter(|_| exchange.changes.body);
    Ok(match (body, first) {
        (Some(body), _) if is_whole && is_text => Some(body.bytes().clone()),
        (Some(body), _) if is_whole => Some(response_body(body, false)?),
        (Some(body), Some(first)) => {
            let body = response_body(body, is_text)?;
            Some(with_has_next(body, first.has_next)?)
        }
        _ => None,
    })
}
