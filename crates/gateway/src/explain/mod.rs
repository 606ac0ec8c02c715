//! One request on its way through the gateway's stages, each with what came of it: what `ogive explain` shows and one test
//! snapshots. It is the gateway's own run, from the head of an HTTP request to its last byte, with an observer
//! ([`recorder`]).
//!
//! Nothing is sent unless it is to be executed; only what says who asks is looked up, as for any request: key sets, token
//! introspection, policies.

mod recorder;

use std::{rc::Rc, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header, request::Parts};
use http_body_util::{BodyExt, Full};
use ogive_base::Peer;
use ogive_edge::{error::RequestError, receive::GraphqlRequest};
use ogive_json::write_string;
use ogive_plan::OperationKind;
use ogive_server::ResponseBody;
use tokio::{task::LocalSet, time::timeout};

use crate::{
    gateway::{Gateway, Serving},
    identify::explain_token,
    prepare::Prepared,
    shared::{context::OperationContext, stage_observer::StageObserver, worker::WorkerState},
    subscribe::check_subscribable,
};
use recorder::{HOOKS, Recorder, WHO_ASKS};

pub use recorder::literals_text;

/// How long an event of a subscription is waited for.
const EVENT_WAIT: Duration = Duration::from_secs(10);

/// What is accepted where nothing is said: everything that there is, in the form that tells most.
const ACCEPT: &str = "application/graphql-response+json, multipart/mixed, text/event-stream";

/// What is to be explained.
#[derive(Debug)]
pub struct ExplainInput {
    /// The request, as it is received.
    pub request: GraphqlRequest,
    /// The client's headers. What a client of GraphQL sends anyway may be left out.
    pub headers: HeaderMap,
    /// A token to ask with, which is put where the configuration looks for one.
    pub token: Option<String>,
    /// Where the request comes from.
    pub peer: Peer,
    /// Whether subgraphs are asked. Otherwise it stays at home, and the last two stops have nothing to show.
    pub is_executed: bool,
    /// Whether to say how long fetches took, which differs from run to run.
    pub has_timings: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// One section per stage, for people.
    pub text: String,
    /// Whether the request was refused.
    pub is_refused: bool,
    /// Whether hooks, which were not called, may still refuse it.
    pub is_undecided: bool,
}

impl Gateway {
    /// Takes a request through the stages, and says what came of each.
    pub async fn explain(self: &Arc<Self>, input: ExplainInput) -> Explanation {
        let serving = self.serving.load_full();
        self.go_on();
        if let Some(authentication) = &serving.services.authentication {
            authentication.tried().await;
        }
        let recorder = Rc::new(Recorder::new(&serving, &input));
        if let Some(served) = serving.hooks.as_ref().filter(|_| !input.is_executed) {
            recorder.note(HOOKS, served.shown());
        }
        let worker = WorkerState::watched(Arc::clone(&self.callbacks), Rc::clone(&recorder) as _);
        let mut parts = head(&serving, &input);
        let body = Full::new(body_of(&input.request));
        let answering = async {
            let response = self.answer_parts(&mut parts, body, input.peer, &worker);
            answered(response.await, &recorder).await
        };
        // What goes on behind the request does on this thread.
        let is_refused = LocalSet::new().run_until(answering).await;
        if let Some(brought) = recorder.brought() {
            let told = explain_token::brought_text(&serving, &brought);
            recorder.note(WHO_ASKS, told.await);
        }
        let has_hooks = serving.hooks.is_some();
        Explanation {
            text: recorder.text(),
            is_refused,
            is_undecided: has_hooks && !input.is_executed && !is_refused,
        }
    }
}

/// What ends an operation that is only explained once it is planned: a subscription that would be refused is refused.
pub(crate) fn only_explained(
    serving: &Serving,
    context: &OperationContext<'_>,
    prepared: &Prepared,
) -> Option<Result<Response<ResponseBody>, RequestError>> {
    if !context.observer().is_some_and(StageObserver::is_dry_run) {
        return None;
    }
    let checked = match prepared.operation.definition.kind {
        OperationKind::Subscription => check_subscribable(serving),
        _ => Ok(()),
    };
    Some(checked.map(|()| Response::default()))
}

/// The head of the HTTP request.
fn head(serving: &Serving, input: &ExplainInput) -> Parts {
    let (mut parts, ()) = Request::new(()).into_parts();
    (parts.method, parts.headers) = (Method::POST, input.headers.clone());
    parts.uri = Uri::try_from(&serving.options.graphql_path).unwrap_or_default();
    for (name, value) in [
        (header::HOST, "localhost"),
        (header::CONTENT_TYPE, "application/json"),
        (header::ACCEPT, ACCEPT),
    ] {
        let value = HeaderValue::from_static(value);
        parts.headers.entry(name).or_insert(value);
    }
    if let (Some(token), Some(options)) = (&input.token, &serving.options.authentication) {
        options.bring(token, &mut parts.headers);
    }
    parts
}

/// The body of the HTTP request.
fn body_of(request: &GraphqlRequest) -> Bytes {
    let mut out = b"{\"query\":".to_vec();
    write_string(&mut out, &request.query);
    for (name, text) in [
        (",\"operationName\":", &request.operation_name),
        (",\"documentId\":", &request.document_id),
    ] {
        if let Some(text) = text {
            out.extend_from_slice(name.as_bytes());
            write_string(&mut out, text);
        }
    }
    if !request.variables.is_empty() {
        out.extend_from_slice(b",\"variables\":");
        out.extend_from_slice(request.variables.text());
    }
    if let Some(persisted) = &request.persisted_query {
        out.extend_from_slice(b",\"extensions\":{\"persistedQuery\":");
        out.extend_from_slice(persisted);
        out.push(b'}');
    }
    out.push(b'}');
    out.into()
}

/// Notes the response; of a stream as much as the first event takes. Says whether it refuses.
async fn answered(response: Response<ResponseBody>, recorder: &Recorder) -> bool {
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    let reading = async {
        while let Some(frame) = body.frame().await {
            if let Some(data) = frame.map_err(|error| error.to_string())?.data_ref() {
                bytes.extend_from_slice(data);
            }
            if recorder.has_event() {
                break;
            }
        }
        Ok::<(), String>(())
    };
    // Events may never come; parts have the time of the request.
    let read = if recorder.is_subscription() {
        let seconds = EVENT_WAIT.as_secs();
        let late = || Err(format!("no event within {seconds} s"));
        timeout(EVENT_WAIT, reading)
            .await
            .unwrap_or_else(|_| late())
    } else {
        reading.await
    };
    recorder.responded(&head, &bytes, read.err())
}
