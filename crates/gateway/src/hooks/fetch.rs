//! The stages around each request to a subgraph. What fails there fails that request alone, and nulls its own fields.

use std::sync::Arc;

use http::HeaderMap;
use ogive_edge::error::RequestError;
use ogive_execute::{Failure, SubgraphResponse};
use ogive_hooks::{Body, Break, CoprocessorError, Exchange, Stage};
use ogive_transport::{FetchAnswer, FetchDecision, FetchHook, FetchRequest, HookFuture};

use super::{
    body::{self, is_empty_object},
    run::{HookRun, OperationHooks},
};

impl FetchHook for OperationHooks<'_> {
    fn request<'a>(
        &'a self,
        number: u32,
        request: FetchRequest<'a>,
    ) -> HookFuture<'a, FetchDecision> {
        Box::pin(before(self, number, request))
    }

    fn response<'a>(
        &'a self,
        number: u32,
        subgraph: &'a str,
        answer: FetchAnswer,
    ) -> HookFuture<'a, FetchAnswer> {
        Box::pin(after(self, (number, subgraph), answer, None))
    }
}

/// What a hook of responses of subgraphs is told at the end of a source, in place of an event.
const END: &[u8] = b"{}";

impl OperationHooks<'_> {
    /// Lets the hooks of responses of subgraphs see an event; `None` if one of them drops the event, which a hook does by an empty
    /// object as its body.
    pub(crate) async fn event(
        &self,
        subgraph: &str,
        event: SubgraphResponse,
    ) -> Result<Option<SubgraphResponse>, Failure> {
        let before = event.body.clone();
        let event = FetchAnswer {
            status: event.status,
            headers: HeaderMap::new(),
            body: event.body,
        };
        let event = after(self, (0, subgraph), event, Some(true)).await?;
        let is_dropped = event.body != before && is_empty_object(&event.body);
        Ok((!is_dropped).then_some(SubgraphResponse {
            status: event.status,
            body: event.body,
        }))
    }

    /// Lets the hooks of responses of subgraphs see that no event comes any more. They can change nothing of it.
    pub(crate) async fn events_ended(&self, subgraph: &str) -> Result<(), Failure> {
        let end = FetchAnswer {
            status: 200,
            headers: HeaderMap::new(),
            body: END.into(),
        };
        let ended = after(self, (0, subgraph), end, Some(false)).await;
        ended.map(|_| ())
    }
}

async fn before(
    operation: &OperationHooks<'_>,
    number: u32,
    request: FetchRequest<'_>,
) -> Result<FetchDecision, Failure> {
    let (run, stage) = (operation.run, Stage::SubgraphRequest);
    if !run.is_on(stage) {
        return Ok(FetchDecision::Send {
            headers: request.headers,
            body: request.body,
            url: None,
        });
    }
    let mut exchange = Exchange {
        subgraph_request_id: Some(fetch_id(run, number)),
        subgraph: Some(request.subgraph.into()),
        uri: request.url.as_deref().map(Into::into),
        headers: request.headers.into(),
        body: Some(Body::Json(request.body)),
        ..run.exchange(stage)
    };
    let asked = run.ask(Some(operation), &mut exchange, check_object).await;
    asked.map_err(|error| failed(request.subgraph, &error))?;
    if let Some(ending) = exchange.changes.ending.take() {
        return Ok(FetchDecision::Answer(answered(*ending, None)));
    }
    let url = exchange.uri.as_deref().filter(|_| exchange.changes.uri);
    Ok(FetchDecision::Send {
        url: url
            .filter(|url| Some(*url) != request.url.as_deref())
            .map(str::to_owned),
        headers: Arc::unwrap_or_clone(exchange.headers),
        body: exchange.body.map(Body::into_bytes).unwrap_or_default(),
    })
}

async fn after(
    operation: &OperationHooks<'_>,
    (number, subgraph): (u32, &str),
    answer: FetchAnswer,
    has_next: Option<bool>,
) -> Result<FetchAnswer, Failure> {
    let (run, stage) = (operation.run, Stage::SubgraphResponse);
    if !run.is_on(stage) {
        return Ok(answer);
    }
    // What is no JSON is no answer of GraphQL, and told as a text would be.
    let is_json =
        run.looks_at_body(stage) && std::str::from_utf8(&answer.body).is_ok_and(Body::is_json);
    let body = if is_json { Body::Json } else { Body::Text };
    let mut exchange = Exchange {
        subgraph_request_id: Some(fetch_id(run, number)),
        subgraph: Some(subgraph.into()),
        headers: answer.headers.into(),
        status: Some(answer.status),
        has_next,
        body: Some(body(answer.body)),
        ..run.exchange(stage)
    };
    let check = |exchange: &Exchange| match &exchange.body {
        // What was told as a text, and comes back as it was.
        Some(Body::Text(_)) if !is_json => Ok(()),
        _ => check_object(exchange),
    };
    let asked = run.ask(Some(operation), &mut exchange, check).await;
    asked.map_err(|error| failed(subgraph, &error))?;
    if let Some(ending) = exchange.changes.ending.take() {
        return Ok(answered(*ending, Some(exchange.headers)));
    }
    Ok(FetchAnswer {
        status: exchange.status.unwrap_or(answer.status),
        headers: Arc::unwrap_or_clone(exchange.headers),
        body: exchange.body.map(Body::into_bytes).unwrap_or_default(),
    })
}

/// What a request to a subgraph is answered with by a hook that ends it: a response of GraphQL, which counts whatever the status.
fn answered(mut ending: Break, headers: Option<Arc<HeaderMap>>) -> FetchAnswer {
    let said = ending.headers.take();
    FetchAnswer {
        status: 200,
        headers: said.unwrap_or_else(|| headers.map(Arc::unwrap_or_clone).unwrap_or_default()),
        body: body::of_break(ending),
    }
}

/// Refuses a changed body that is no object.
fn check_object(exchange: &Exchange) -> Result<(), CoprocessorError> {
    match &exchange.body {
        Some(Body::Json(json)) if json.starts_with(b"{") => Ok(()),
        _ if !exchange.changes.body => Ok(()),
        _ => Err(CoprocessorError::Malformed("body", "an object")),
    }
}

/// Tells the requests of one client request apart.
fn fetch_id(run: &HookRun<'_>, number: u32) -> Arc<str> {
    format!("{}-{number}", run.id).into()
}

/// What ends a request to a subgraph; the operator is told why.
fn failed(subgraph: &str, error: &RequestError) -> Failure {
    let message = format!("the request to '{subgraph}' could not be processed");
    let told = error.errors.first().map(|error| &*error.message);
    let cause = error.cause.as_deref().or(told).unwrap_or_default();
    Failure::new(error.code(), message, cause)
}
