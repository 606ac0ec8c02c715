//! The stages at responses: what whoever is asked makes of a response, which may be one that goes on behind its head (parts,
//! events). What comes behind the head passes [`parts`](super::parts).

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use ogive_coprocessor::{Control, CoprocessorError, Message, MessageBody, ReplyBody, Stage};
use ogive_edge::error::RequestError;
use ogive_server::ResponseBody;

use super::{
    body::{break_response, with_has_next},
    change::Change,
    run::{CoprocessorRun, OperationCoprocessor},
};
use crate::shared::open_response::{FirstPart, goes_on};

impl CoprocessorRun<'_> {
    /// Lets whoever is asked look at a response: all of it, or its head and its first part, if that is there already.
    pub(crate) async fn answered(
        &self,
        operation: Option<&OperationCoprocessor<'_>>,
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
        let message = Message {
            headers: Some(response.headers()),
            body: body.as_ref().map(|body| message_body(stage, body)),
            status_code: Some(response.status().as_u16()),
            has_next: tells_next.then_some(has_next),
            ..Message::new(stage, &self.id)
        };
        let take = |change| ResponseChange::of(stage, change, is_whole, first.as_ref());
        let asked = self.ask(operation, message, take).await;
        self.memory.shrink(copied);
        if let Some(change) = asked? {
            change.apply(response);
        }
        Ok(())
    }
}

/// A body as a stage is told it.
pub(super) fn message_body(stage: Stage, body: &[u8]) -> MessageBody<'_> {
    if stage.body_is_text() {
        MessageBody::Text(body)
    } else {
        MessageBody::Json(body)
    }
}

/// A body that has to be a response of GraphQL.
pub(super) fn response_body(body: ReplyBody, may_be_text: bool) -> Result<Bytes, CoprocessorError> {
    let is_text = matches!(body, ReplyBody::Text(_)) && !may_be_text;
    let body = body.into_bytes();
    if is_text || !body.starts_with(b"{") {
        return Err(CoprocessorError::Malformed("body", "a GraphQL response"));
    }
    Ok(body)
}

/// What becomes of a response.
enum ResponseChange {
    /// Another one stands in its place.
    Instead(Box<Response<ResponseBody>>),
    /// It has another head or body.
    Parts {
        headers: Option<HeaderMap>,
        status_code: Option<StatusCode>,
        body: Option<Bytes>,
    },
}

impl ResponseChange {
    /// `is_whole`: nothing comes behind it; `first`: something may, and its first part is there.
    fn of(
        stage: Stage,
        change: Change,
        is_whole: bool,
        first: Option<&FirstPart>,
    ) -> Result<Self, CoprocessorError> {
        if let Control::Break(status) = change.control {
            let ended = break_response(status, change, !stage.body_is_text());
            return Ok(ResponseChange::Instead(Box::new(ended)));
        }
        let body = match (change.body, first) {
            (Some(body), _) if is_whole && stage.body_is_text() => Some(body.into_bytes()),
            (Some(body), _) if is_whole => Some(response_body(body, false)?),
            (Some(body), Some(first)) => {
                let body = response_body(body, stage.body_is_text())?;
                Some(with_has_next(body, first.has_next)?)
            }
            _ => None,
        };
        Ok(ResponseChange::Parts {
            headers: change.headers,
            status_code: change.status_code,
            body,
        })
    }

    fn apply(self, response: &mut Response<ResponseBody>) {
        let (headers, status_code, body) = match self {
            ResponseChange::Instead(ended) => {
                *response = *ended;
                return;
            }
            ResponseChange::Parts {
                headers,
                status_code,
                body,
            } => (headers, status_code, body),
        };
        if let Some(mut headers) = headers {
            // By it a client reads where parts begin and end.
            if goes_on(response)
                && let Some(media) = response.headers_mut().remove(header::CONTENT_TYPE)
            {
                headers.insert(header::CONTENT_TYPE, media);
            }
            *response.headers_mut() = headers;
        }
        if let Some(status) = status_code {
            *response.status_mut() = status;
        }
        let Some(body) = body else { return };
        match response.extensions().get::<FirstPart>() {
            Some(first) => first.set(body),
            None => {
                response.headers_mut().remove(header::CONTENT_LENGTH);
                response.body_mut().replace(body);
            }
        }
    }
}
