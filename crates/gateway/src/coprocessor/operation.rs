//! The stages of one operation: around all of it (`SupergraphRequest`, `SupergraphResponse`), and around the execution of its
//! plan.

use std::cell::{Cell, OnceCell};

use bytes::Bytes;
use http::{Response, header, request::Parts};
use ogive_coprocessor::{
    Control, Message, MessageBody, Stage,
    entries::{OPERATION_KIND, OPERATION_NAME},
    headers::replaced,
};
use ogive_plan::{OperationKind, apollo};
use ogive_server::ResponseBody;
use ogive_telemetry::codes;

use super::{
    body::{self, break_response},
    run::{CoprocessorRun, OperationCoprocessor},
};
use crate::{
    documents::resolve,
    gateway::{Gateway, Serving},
    operation::OperationInput,
    prepare::Prepared,
    receive::GraphqlRequest,
    respond::refusal::refused,
    schema::operation::PlannedOperation,
    shared::context::RequestContext,
    shared::error::RequestError,
    shared::media::Media,
    subscribe::format::whole,
};

impl Gateway {
    /// One operation of which a coprocessor is told.
    pub(crate) async fn coprocess_operation(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        run: &CoprocessorRun<'_>,
        mut input: OperationInput<'_>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let media = input.media;
        // Parts would leave before anybody has looked at them.
        if run.stages.looks_at_answers() || run.stages.looks_at_fetches() {
            input.request.in_parts = None;
        }
        // What is one event of a stream is framed after everybody has looked at it.
        if let Media::Stream(_) = media {
            input.media = Media::Json;
        }
        let mut changed = None;
        if run.at(Stage::SupergraphRequest).is_some() {
            let told = self.supergraph_request(serving, context, run, input.request);
            match told.await? {
                Some(Changed::Parts(parts)) => changed = Some(parts),
                Some(Changed::Ended(response)) => return Ok(reframed(response, media)),
                None => {}
            }
        }
        let parts = changed.as_ref().unwrap_or(context.parts);
        let execution = run.at(Stage::ExecutionRequest);
        let is_told = execution.is_some_and(|settings| settings.selection.body);
        let operation = OperationCoprocessor {
            run,
            body: is_told.then(|| body::of_request(input.request).into()),
            method: context.parts.method.as_str(),
            headers: OnceCell::new(),
            is_executed: Cell::new(false),
        };
        let within = RequestContext { parts, ..context };
        let inner = input.media;
        let answer = Box::pin(self.run_operation(serving, within, Some(&operation), input));
        let mut response = match answer.await {
            Ok(response) => response,
            Err(error) if run.at(Stage::SupergraphResponse).is_none() => return Err(error),
            Err(error) => refused(context, &error, inner),
        };
        if operation.is_executed.get() {
            run.answered(Stage::ExecutionResponse, &mut response)
                .await?;
        }
        run.answered(Stage::SupergraphResponse, &mut response)
            .await?;
        Ok(reframed(response, media))
    }

    /// Tells of a request of GraphQL, and takes over what is said of it.
    async fn supergraph_request(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        run: &CoprocessorRun<'_>,
        request: &mut GraphqlRequest,
    ) -> Result<Option<Changed>, RequestError> {
        let stage = Stage::SupergraphRequest;
        let Some(settings) = run.at(stage) else {
            return Ok(None);
        };
        let mut register = resolve(request, &serving.options.documents, &self.registered)?;
        let body = settings.selection.body.then(|| body::of_request(request));
        let message = Message {
            headers: Some(&context.parts.headers),
            body: body.as_deref().map(MessageBody::Json),
            method: Some(context.parts.method.as_str()),
            ..Message::new(stage, &run.id)
        };
        let reply = run.ask(settings, message).await?;
        let mut parts = None;
        if let Some(mut reply) = reply {
            if let Control::Break(status) = reply.control {
                let ended = break_response(status, reply, Some(&context.parts.headers), true);
                return match ended {
                    Ok(response) => Ok(Some(Changed::Ended(response))),
                    Err(error) => Err(run.failed_to_end(stage, &error)),
                };
            }
            let headers = reply.headers.take();
            let headers = headers.map(|said| replaced(&context.parts.headers, &said));
            let original = request.query.clone();
            let taken = match reply.body.take() {
                Some(body) => body::to_request(request, body),
                None => Ok(()),
            };
            match (headers.transpose(), taken) {
                (Ok(headers), Ok(())) => {
                    parts = headers.map(|headers| {
                        let mut parts = context.parts.clone();
                        parts.headers = headers;
                        parts
                    });
                }
                (Err(error), _) | (_, Err(error)) => run.failed(stage, &error)?,
            }
            // The hash is that of what the client has sent.
            if request.query != original
                && let Some(hash) = register.take()
            {
                self.registered.insert(hash, &original);
            }
        }
        request.resolved = Some(Box::new(register));
        Ok(parts.map(Changed::Parts))
    }
}

/// What became of a request at a stage.
enum Changed {
    /// It goes on with this head.
    Parts(Parts),
    /// It ends.
    Ended(Response<ResponseBody>),
}

impl OperationCoprocessor<'_> {
    /// Notes what operation it is, and tells of it before it is executed. A response ends it.
    pub(crate) async fn planned(
        &self,
        headers: &http::HeaderMap,
        prepared: &Prepared,
        planned: &PlannedOperation,
    ) -> Result<Option<Response<ResponseBody>>, RequestError> {
        let run = self.run;
        let kind = prepared.operation.definition.kind;
        if let Some(name) = &prepared.operation.definition.name {
            run.note(OPERATION_NAME, &prepared.operation.document.name(*name));
        }
        run.note(OPERATION_KIND, &kind.as_str());
        let looks = run.stages.looks_at_answers() || run.stages.looks_at_fetches();
        if kind == OperationKind::Subscription && looks {
            let message = "subscriptions are not served here: the coprocessor looks at answers, and is not told of events";
            return Err(RequestError::graphql(
                codes::SUBSCRIPTIONS_NOT_SUPPORTED,
                message,
            ));
        }
        let ended = self.execution_request(headers, planned).await?;
        let goes_on = ended.is_none() && kind != OperationKind::Subscription;
        self.is_executed.set(goes_on);
        Ok(ended)
    }

    async fn execution_request(
        &self,
        headers: &http::HeaderMap,
        planned: &PlannedOperation,
    ) -> Result<Option<Response<ResponseBody>>, RequestError> {
        let (run, stage) = (self.run, Stage::ExecutionRequest);
        let Some(settings) = run.at(stage) else {
            return Ok(None);
        };
        let plan = settings.selection.query_plan;
        let plan = plan.then(|| apollo::json_line(&planned.plan));
        let body: Option<&Bytes> = self.body.as_ref();
        let message = Message {
            headers: Some(headers),
            body: body.map(|body| MessageBody::Json(body)),
            method: Some(self.method),
            query_plan: plan.as_deref(),
            ..Message::new(stage, &run.id)
        };
        let Some(reply) = run.ask(settings, message).await? else {
            return Ok(None);
        };
        if let Control::Break(status) = reply.control {
            return match break_response(status, reply, Some(headers), true) {
                Ok(response) => Ok(Some(response)),
                Err(error) => Err(run.failed_to_end(stage, &error)),
            };
        }
        match reply.headers.map(|said| replaced(headers, &said)) {
            Some(Ok(headers)) => {
                let _ = self.headers.set(headers);
            }
            Some(Err(error)) => run.failed(stage, &error)?,
            None => {}
        }
        Ok(None)
    }
}

/// A response as the client reads it that reads streams only.
fn reframed(mut response: Response<ResponseBody>, media: Media) -> Response<ResponseBody> {
    let Media::Stream(stream) = media else {
        return response;
    };
    if response.status() != http::StatusCode::OK || response.body().is_in_parts() {
        return response;
    }
    let body = whole(stream, &response.body().to_vec());
    response.body_mut().replace(body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, media.content_type());
    response
}
