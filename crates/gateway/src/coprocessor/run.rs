//! What the stages of one HTTP request share when a coprocessor is asked: an id, the context, and how it is asked.

use std::cell::{Cell, OnceCell, RefCell};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use ogive_coprocessor::{
    ContextEntries, Control, CoprocessorError, Message, MessageBody, Reply, Stage,
    headers::replaced,
};
use ogive_server::ResponseBody;
use ogive_telemetry::codes;
use ogive_transport::Client;
use serde_json::value::{RawValue, to_raw_value};

use super::{
    body::break_response,
    settings::{CoprocessorStages, StageSettings},
};
use crate::shared::error::RequestError;

/// One HTTP request.
pub(crate) struct CoprocessorRun<'a> {
    pub(crate) stages: &'a CoprocessorStages,
    pub(crate) client: &'a Client,
    /// The schema, if a stage is told it.
    pub(crate) sdl: Option<&'a str>,
    pub(crate) id: String,
    pub(crate) entries: RefCell<ContextEntries>,
}

/// One operation of it.
pub(crate) struct OperationCoprocessor<'a> {
    pub(crate) run: &'a CoprocessorRun<'a>,
    /// The request as the supergraph stage left it, if the execution stage is told it.
    pub(crate) body: Option<Bytes>,
    /// The method of its HTTP request.
    pub(crate) method: &'a str,
    /// The headers from the execution stage on.
    pub(crate) headers: OnceCell<HeaderMap>,
    /// Whether its plan was executed.
    pub(crate) is_executed: Cell<bool>,
}

impl CoprocessorRun<'_> {
    /// What a stage is told; `None` if it is off.
    pub(crate) fn at(&self, stage: Stage) -> Option<&StageSettings> {
        self.stages.at(stage)
    }

    /// Leaves an entry for later stages. What cannot be written, or is too much, is not left.
    pub(crate) fn note(&self, name: &str, value: &impl serde::Serialize) {
        if let Ok(value) = to_raw_value(value) {
            let _ = self.entries.borrow_mut().set(name, value);
        }
    }

    /// An entry, as it is written.
    pub(crate) fn entry(&self, name: &str) -> Option<Box<RawValue>> {
        self.entries.borrow().get(name).map(ToOwned::to_owned)
    }

    /// Tells the coprocessor what its stage selects of a message, and takes over what it says of the context. `None` if it
    /// failed, and the request goes on all the same.
    pub(crate) async fn ask(
        &self,
        settings: &StageSettings,
        mut message: Message<'_>,
    ) -> Result<Option<Reply>, RequestError> {
        let selection = &settings.selection;
        message.headers = message.headers.filter(|_| selection.headers);
        message.sdl = self.sdl.filter(|_| selection.sdl);
        message.path = message.path.filter(|_| selection.path);
        message.method = message.method.filter(|_| selection.method);
        message.uri = message.uri.filter(|_| selection.uri);
        message.service_name = message.service_name.filter(|_| selection.service_name);
        message.status_code = message.status_code.filter(|_| selection.status_code);
        let id = message.subgraph_request_id;
        message.subgraph_request_id = id.filter(|_| selection.subgraph_request_id);
        let asked = self.told(settings, &message).await;
        match asked {
            Ok(reply) => Ok(Some(reply)),
            Err(error) => self.failed(message.stage, &error).map(|()| None),
        }
    }

    async fn told(
        &self,
        settings: &StageSettings,
        message: &Message<'_>,
    ) -> Result<Reply, CoprocessorError> {
        let json = {
            let entries = self.entries.borrow();
            let is_told = settings.context != ogive_coprocessor::ContextSelection::Nothing;
            let context = is_told.then_some((&*entries, &settings.context));
            let mut message: Message<'_> = message.clone();
            message.context = context;
            message.to_json()
        };
        let coprocessor = &self.stages.coprocessor;
        let reply = coprocessor.ask(self.client, settings.url, message, json);
        let mut reply = reply.await?;
        if let Some(said) = reply.entries.take() {
            let merged = self.entries.borrow_mut().merge(&settings.context, said);
            // What is to end ends, whatever else is wrong with it.
            if reply.control == Control::Continue {
                merged?;
            }
        }
        Ok(reply)
    }

    /// Tells the operator that it failed. The error ends the request, unless it goes on.
    pub(crate) fn failed(
        &self,
        stage: Stage,
        error: &CoprocessorError,
    ) -> Result<(), RequestError> {
        let goes_on = self.stages.goes_on();
        tracing::error!(
            stage = stage.name(),
            goes_on,
            cause = %error,
            id = self.id,
            "the coprocessor failed"
        );
        if goes_on {
            return Ok(());
        }
        Err(failed())
    }

    /// The same of one that wanted to end the request: that it cannot be told how does not let it go on.
    pub(crate) fn failed_to_end(&self, stage: Stage, error: &CoprocessorError) -> RequestError {
        self.failed(stage, error).err().unwrap_or_else(failed)
    }

    /// Lets the coprocessor look at a response.
    pub(crate) async fn answered(
        &self,
        stage: Stage,
        response: &mut Response<ResponseBody>,
    ) -> Result<(), RequestError> {
        let Some(settings) = self.at(stage) else {
            return Ok(());
        };
        let in_parts = response.body().is_in_parts();
        let is_told = settings.selection.body && !in_parts;
        let body = is_told.then(|| response.body().to_vec());
        let told_body = body.as_deref().map(|body| {
            if stage.body_is_text() {
                MessageBody::Text(body)
            } else {
                MessageBody::Json(body)
            }
        });
        let headers = response.headers().clone();
        let has_next = (stage != Stage::RouterResponse).then_some(in_parts);
        let reply = self
            .ask(
                settings,
                Message {
                    headers: Some(&headers),
                    body: told_body,
                    status_code: Some(response.status().as_u16()),
                    has_next,
                    ..Message::new(stage, &self.id)
                },
            )
            .await?;
        let Some(reply) = reply else {
            return Ok(());
        };
        let ends = reply.control != Control::Continue;
        match apply_to_response(stage, reply, response, in_parts) {
            Ok(()) => Ok(()),
            Err(error) if ends => Err(self.failed_to_end(stage, &error)),
            Err(error) => self.failed(stage, &error),
        }
    }
}

/// Takes over what a coprocessor says of a response.
fn apply_to_response(
    stage: Stage,
    reply: Reply,
    response: &mut Response<ResponseBody>,
    in_parts: bool,
) -> Result<(), CoprocessorError> {
    if let Control::Break(status) = reply.control {
        *response = break_response(status, reply, None, !stage.body_is_text())?;
        return Ok(());
    }
    let headers = match &reply.headers {
        Some(said) => Some(replaced(response.headers(), said)?),
        None => None,
    };
    let body = match reply.body {
        Some(body) if !in_parts => {
            let is_text = matches!(body, ogive_coprocessor::ReplyBody::Text(_));
            let body = body.into_bytes();
            if !stage.body_is_text() && (is_text || !body.starts_with(b"{")) {
                let expected = "a GraphQL response";
                return Err(CoprocessorError::Malformed("body", expected));
            }
            Some(body)
        }
        _ => None,
    };
    if let Some(headers) = headers {
        *response.headers_mut() = headers;
    }
    if let Some(status) = reply.status_code {
        *response.status_mut() = status;
    }
    if let Some(body) = body {
        response.headers_mut().remove(header::CONTENT_LENGTH);
        response.body_mut().replace(body);
    }
    Ok(())
}

/// What a client is told whose request a coprocessor failed at.
pub(crate) fn failed() -> RequestError {
    RequestError {
        status: StatusCode::INTERNAL_SERVER_ERROR.as_u16(),
        ..RequestError::http(
            codes::COPROCESSOR_FAILED,
            "the request could not be processed",
        )
    }
}
