//! The stages around each request to a subgraph. What fails there fails that request alone, and nulls its own fields.

use bytes::Bytes;
use http::HeaderMap;
use ogive_coprocessor::{
    Control, CoprocessorError, Message, MessageBody, ReplyBody, Stage,
    headers::{of_break, replaced},
};
use ogive_execute::TransportError;
use ogive_telemetry::codes;
use ogive_transport::{FetchAnswer, FetchDecision, FetchHook, FetchRequest, HookFuture};

use super::{
    body,
    run::{CoprocessorRun, OperationCoprocessor},
    settings::StageSettings,
};

impl FetchHook for OperationCoprocessor<'_> {
    fn request<'a>(
        &'a self,
        number: u32,
        request: FetchRequest<'a>,
    ) -> HookFuture<'a, FetchDecision> {
        Box::pin(async move {
            match self.run.at(Stage::SubgraphRequest) {
                Some(settings) => before(self.run, settings, number, request).await,
                None => Ok(as_it_is(request)),
            }
        })
    }

    fn response<'a>(
        &'a self,
        number: u32,
        subgraph: &'a str,
        answer: FetchAnswer,
    ) -> HookFuture<'a, FetchAnswer> {
        Box::pin(async move {
            match self.run.at(Stage::SubgraphResponse) {
                Some(settings) => after(self.run, settings, (number, subgraph), answer).await,
                None => Ok(answer),
            }
        })
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
    run: &CoprocessorRun<'_>,
    settings: &StageSettings,
    number: u32,
    request: FetchRequest<'_>,
) -> Result<FetchDecision, TransportError> {
    let body = settings.selection.body.then_some(&*request.body);
    let id = fetch_id(run, number);
    let message = Message {
        subgraph_request_id: Some(&id),
        headers: Some(&request.headers),
        body: body.map(MessageBody::Json),
        uri: request.url.as_deref(),
        method: Some("POST"),
        service_name: Some(request.subgraph),
        ..Message::new(Stage::SubgraphRequest, &run.id)
    };
    let reply = run.ask(settings, message).await;
    let Some(mut reply) = reply.map_err(|_| failed(request.subgraph))? else {
        return Ok(as_it_is(request));
    };
    // Whatever else is wrong with it, what is to end does not go on.
    let ends = reply.control != Control::Continue;
    let mut decided = || -> Result<FetchDecision, CoprocessorError> {
        if let Control::Break(status) = reply.control {
            let headers = match &reply.headers {
                Some(said) => of_break(Some(&request.headers), said)?,
                None => HeaderMap::new(),
            };
            return Ok(FetchDecision::Answer(FetchAnswer {
                // What it says is a response of GraphQL, which counts whatever the status.
                status: 200,
                headers,
                body: body::of_break(status, reply.body.take()),
            }));
        }
        let headers = match &reply.headers {
            Some(said) => replaced(&request.headers, said)?,
            None => request.headers.clone(),
        };
        Ok(FetchDecision::Send {
            headers,
            body: object(reply.body.take(), &request.body)?,
            url: reply
                .uri
                .take()
                .filter(|url| Some(url) != request.url.as_ref()),
        })
    };
    match decided() {
        Ok(decision) => Ok(decision),
        Err(error) => {
            let goes_on = run.failed(Stage::SubgraphRequest, &error);
            goes_on.map_err(|_| failed(request.subgraph))?;
            if ends {
                return Err(failed(request.subgraph));
            }
            Ok(as_it_is(request))
        }
    }
}

async fn after(
    run: &CoprocessorRun<'_>,
    settings: &StageSettings,
    (number, subgraph): (u32, &str),
    answer: FetchAnswer,
) -> Result<FetchAnswer, TransportError> {
    // What is no JSON is no answer of GraphQL, and told as a text would be.
    let told = std::str::from_utf8(&answer.body).is_ok_and(body::is_json);
    let body = settings.selection.body.then(|| {
        if told {
            MessageBody::Json(&answer.body)
        } else {
            MessageBody::Text(&answer.body)
        }
    });
    let id = fetch_id(run, number);
    let message = Message {
        subgraph_request_id: Some(&id),
        headers: Some(&answer.headers),
        body,
        service_name: Some(subgraph),
        status_code: Some(answer.status),
        ..Message::new(Stage::SubgraphResponse, &run.id)
    };
    let reply = run.ask(settings, message).await;
    let Some(mut reply) = reply.map_err(|_| failed(subgraph))? else {
        return Ok(answer);
    };
    // Whatever else is wrong with it, what is to end does not go on.
    let ends = reply.control != Control::Continue;
    let mut decided = || -> Result<FetchAnswer, CoprocessorError> {
        let headers = match &reply.headers {
            Some(said) => replaced(&answer.headers, said)?,
            None => answer.headers.clone(),
        };
        if let Control::Break(status) = reply.control {
            let body = body::of_break(status, reply.body.take());
            return Ok(FetchAnswer {
                status: 200,
                headers,
                body,
            });
        }
        Ok(FetchAnswer {
            status: reply
                .status_code
                .map_or(answer.status, |status| status.as_u16()),
            headers,
            body: match reply.body.take() {
                // What was told as a text, and comes back as it was.
                Some(ReplyBody::Text(text)) if !told => Bytes::from(text),
                body => object(body, &answer.body)?,
            },
        })
    };
    match decided() {
        Ok(answer) => Ok(answer),
        Err(error) => {
            let goes_on = run.failed(Stage::SubgraphResponse, &error);
            goes_on.map_err(|_| failed(subgraph))?;
            if ends {
                return Err(failed(subgraph));
            }
            Ok(answer)
        }
    }
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

fn failed(subgraph: &str) -> TransportError {
    TransportError {
        code: codes::COPROCESSOR_FAILED,
        message: format!("the request to '{subgraph}' could not be processed"),
        detail: "the coprocessor failed".into(),
    }
}
