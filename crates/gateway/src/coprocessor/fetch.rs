//! The stages around each request to a subgraph. What fails there fails that request alone, and nulls its own fields.

use bytes::Bytes;
use ogive_coprocessor::{Control, CoprocessorError, Message, MessageBody, ReplyBody, Stage};
use ogive_edge::error::RequestError;
use ogive_execute::Failure;
use ogive_transport::{FetchAnswer, FetchDecision, FetchHook, FetchRequest, HookFuture};

use super::{
    body,
    change::Change,
    run::{CoprocessorRun, OperationCoprocessor},
};

impl FetchHook for OperationCoprocessor<'_> {
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
        Box::pin(after(self, (number, subgraph), answer))
    }
}

fn as_it_is(request: FetchRequest<'_>) -> FetchDecision {
    FetchDecision::Send {
        headers: request.headers,
        body: request.body,
        url: None,
    }
}

async fn before(
    operation: &OperationCoprocessor<'_>,
    number: u32,
    request: FetchRequest<'_>,
) -> Result<FetchDecision, Failure> {
    let run = operation.run;
    let id = fetch_id(run, number);
    let message = Message {
        subgraph_request_id: Some(&id),
        headers: Some(&request.headers),
        body: Some(MessageBody::Json(&request.body)),
        uri: request.url.as_deref(),
        method: Some("POST"),
        service_name: Some(request.subgraph),
        ..Message::new(Stage::SubgraphRequest, &run.id)
    };
    let take = |change: Change| {
        if let Control::Break(status) = change.control {
            return Ok(FetchDecision::Answer(FetchAnswer {
                // What it says is a response of GraphQL, which counts whatever the status.
                status: 200,
                headers: change.headers.unwrap_or_default(),
                body: body::of_break(status, change.break_code, change.body),
            }));
        }
        let url = change.uri;
        Ok(FetchDecision::Send {
            headers: change.headers.unwrap_or_else(|| request.headers.clone()),
            body: object(change.body, &request.body)?,
            url: url.filter(|url| Some(url) != request.url.as_ref()),
        })
    };
    let taken = run.ask(Some(operation), message, take).await;
    let taken = taken.map_err(|error| failed(request.subgraph, &error))?;
    Ok(taken.unwrap_or_else(|| as_it_is(request)))
}

async fn after(
    operation: &OperationCoprocessor<'_>,
    (number, subgraph): (u32, &str),
    answer: FetchAnswer,
) -> Result<FetchAnswer, Failure> {
    let run = operation.run;
    if !run.is_on(Stage::SubgraphResponse) {
        return Ok(answer);
    }
    // What is no JSON is no answer of GraphQL, and told as a text would be.
    let told = run.looks_at_body(Stage::SubgraphResponse)
        && std::str::from_utf8(&answer.body).is_ok_and(body::is_json);
    let body = if told {
        MessageBody::Json(&answer.body)
    } else {
        MessageBody::Text(&answer.body)
    };
    let id = fetch_id(run, number);
    let message = Message {
        subgraph_request_id: Some(&id),
        headers: Some(&answer.headers),
        body: Some(body),
        service_name: Some(subgraph),
        status_code: Some(answer.status),
        ..Message::new(Stage::SubgraphResponse, &run.id)
    };
    let take = |change: Change| {
        let headers = change.headers.unwrap_or_else(|| answer.headers.clone());
        if let Control::Break(status) = change.control {
            return Ok(FetchAnswer {
                status: 200,
                headers,
                body: body::of_break(status, change.break_code, change.body),
            });
        }
        let status = change.status_code.map(|status| status.as_u16());
        Ok(FetchAnswer {
            status: status.unwrap_or(answer.status),
            headers,
            body: match change.body {
                // What was told as a text, and comes back as it was.
                Some(ReplyBody::Text(text)) if !told => Bytes::from(text),
                body => object(body, &answer.body)?,
            },
        })
    };
    let taken = run.ask(Some(operation), message, take).await;
    let taken = taken.map_err(|error| failed(subgraph, &error))?;
    Ok(taken.unwrap_or(answer))
}

/// A body that has to be an object; what was there before if nothing is said.
fn object(said: Option<ReplyBody>, before: &Bytes) -> Result<Bytes, CoprocessorError> {
    match said {
        None => Ok(before.clone()),
        Some(ReplyBody::Json(json)) if json.starts_with(b"{") => Ok(json),
        Some(_) => Err(CoprocessorError::Malformed("body", "an object")),
    }
}

/// Tells the requests of one client request apart.
fn fetch_id(run: &CoprocessorRun<'_>, number: u32) -> String {
    format!("{}-{number}", run.id)
}

/// What ends a request to a subgraph; the operator is told why.
fn failed(subgraph: &str, error: &RequestError) -> Failure {
    let message = format!("the request to '{subgraph}' could not be processed");
    let told = error.errors.first().map(|error| &*error.message);
    let cause = error.cause.as_deref().or(told).unwrap_or_default();
    Failure::new(error.code(), message, cause)
}
