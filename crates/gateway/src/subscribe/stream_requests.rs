//! The single connection mode of graphql-sse: a token by `PUT`, one stream of events by `GET`, operations by `POST` or
//! `GET` with their answers in the stream, an end by `DELETE`.
//!
//! Operations pass all stages by the head of their own request. A token is of whoever reserved it: with the credentials of
//! another caller there is no such stream.

use std::{future::poll_fn, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
    request::Parts,
};
use http_body_util::Full;
use ogive_base::encode::decode_form;
use ogive_edge::{
    error::{RequestError, internal, no_subscriptions},
    media::{Media, StreamMedia, message_form, stream_media},
    receive::RequestBody,
};
use ogive_server::{ResponseBody, drain_body::read_refused, parts::PartStream};
use ogive_stream::session::ID_BYTES_MAX;
use ogive_telemetry::codes;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::{
    admit::AdmittedSlot,
    gateway::{Gateway, Serving},
    options::GatewayOptions,
    respond::refusal::refused,
    shared::context::RequestContext,
    subscribe::{
        STREAM_HEADERS, SubscriberSlot,
        options::{SingleConnectionOptions, SubscriptionOptions},
        owner::Owner,
        sources::share,
        streams::{CountedBytes, EventStream, PlaceRefusal, StreamAnswer, StreamBody},
        whole_body::{read_whole, refusal},
    },
};

/// Where clients say which stream they mean; else the parameter `token` of the URL does.
const TOKEN: HeaderName = HeaderName::from_static("x-graphql-event-stream-token");

/// Random bytes of a token.
const TOKEN_BYTES: usize = 16;

/// What a client asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum StreamRequest {
    /// A token.
    Reserve,
    /// The stream of a token.
    Open(String),
    /// An operation in it.
    Operate(String),
    /// The end of an operation.
    Stop(String),
}

impl StreamRequest {
    /// What a request asks for; `None` if it has nothing to do with such streams.
    pub(crate) fn of(options: &GatewayOptions, parts: &Parts) -> Option<Self> {
        options.subscription.as_ref()?.single_connection.as_ref()?;
        let is_operation = parts.extensions.get::<SubscriberSlot>().is_some();
        if is_operation {
            return None;
        }
        if parts.uri.path() != options.graphql_path {
            return None;
        }
        if parts.method == Method::PUT {
            return Some(StreamRequest::Reserve);
        }
        let token = token(parts)?;
        let is_stream = stream_media(&parts.headers) == Some(StreamMedia::EventStream);
        match parts.method {
            Method::DELETE => Some(StreamRequest::Stop(token)),
            Method::GET if is_stream && parameter(parts, "query").is_none() => {
                Some(StreamRequest::Open(token))
            }
            // An answer of its own is a stream of its own.
            Method::GET | Method::POST if !is_stream => Some(StreamRequest::Operate(token)),
            _ => None,
        }
    }

    /// Whether an operation in a stream is of whoever has the stream; all other requests are.
    pub(crate) fn is_let_in(options: &GatewayOptions, context: RequestContext<'_>) -> bool {
        if options.subscription.is_none() {
            return true;
        }
        let owner = context.parts.extensions.get::<Owner>();
        owner.is_none_or(|owner| {
            let caller = context.identity.caller();
            caller.is_ok_and(|caller| Owner::of(caller.as_deref()) == *owner)
        })
    }
}

fn token(parts: &Parts) -> Option<String> {
    match parts.headers.get(TOKEN) {
        Some(token) => token.to_str().ok().map(str::to_owned),
        None => parameter(parts, "token"),
    }
}

fn parameter(parts: &Parts, name: &str) -> Option<String> {
    let mut pairs = parts
        .uri
        .query()?
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    decode_form(value)
}

impl Gateway {
    /// Answers what has to do with streams of many operations.
    pub(crate) async fn stream_request<B: RequestBody>(
        &self,
        serving: &Serving,
        body: B,
        context: RequestContext<'_>,
        asked: StreamRequest,
    ) -> Response<ResponseBody> {
        let answer = match asked {
            StreamRequest::Operate(token) => self.operate(serving, body, context, &token).await,
            asked => {
                read_refused(&context.parts.headers, body).await;
                let answer = self.manage(serving, context, asked).await;
                if let (Ok(_), Some(record)) = (&answer, context.record) {
                    record.admit();
                }
                answer
            }
        };
        answer.unwrap_or_else(|error| refused(context, &error, Media::Json))
    }

    async fn manage(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        asked: StreamRequest,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let (subscription, single) = options(serving)?;
        let known = self
            .introduced(context.parts, context.identity, context.worker)
            .await?;
        let owner = Owner::of(known.as_deref());
        match asked {
            StreamRequest::Reserve => self.reserve(serving, single, owner, context),
            StreamRequest::Open(token) => {
                self.stream_of(&token, &owner)?;
                let stream = self
                    .streams
                    .open(&token)
                    .ok_or_else(|| refusal(409, "the stream of this token is open already"))?;
                Ok(self.opened(subscription, stream, &token))
            }
            StreamRequest::Stop(token) | StreamRequest::Operate(token) => {
                let id = parameter(context.parts, "operationId").ok_or_else(no_operation_id)?;
                self.stream_of(&token, &owner)?.stop(&id);
                Ok(Response::new(ResponseBody::default()))
            }
        }
    }

    fn stream_of(&self, token: &str, owner: &Owner) -> Result<Arc<EventStream>, RequestError> {
        let stream = self.streams.get(token);
        stream
            .filter(|stream| stream.is_of(owner))
            .ok_or_else(no_stream)
    }

    fn reserve(
        &self,
        serving: &Serving,
        single: &SingleConnectionOptions,
        owner: Owner,
        context: RequestContext<'_>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        // Where nothing can go on behind a request there is no stream either.
        context.worker.handle().ok_or_else(no_subscriptions)?;
        let mut random = [0; TOKEN_BYTES];
        SystemRandom::new()
            .fill(&mut random)
            .map_err(|_| internal())?;
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let client = serving.options.counted(Some(context.identity.client));
        let limits = serving.options.share_of(single.streams_max);
        let reserved = self.streams.reserve(&token, owner, client, limits);
        let stream = reserved.map_err(|shortage| super::limited(shortage, "stream"))?;
        let (streams, expiring) = (Arc::clone(&self.streams), token.clone());
        let timeout = single.reservation_timeout;
        tokio::task::spawn_local(async move {
            tokio::select! {
                () = tokio::time::sleep(timeout) => streams.expire(&expiring),
                // Nobody waits for what is gone, or many would.
                () = stream.left() => {}
            }
        });
        let mut response = Response::new(ResponseBody::from(Bytes::from(token)));
        *response.status_mut() = StatusCode::CREATED;
        let headers = response.headers_mut();
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, plain);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    fn opened(
        &self,
        options: &SubscriptionOptions,
        stream: Arc<EventStream>,
        token: &str,
    ) -> Response<ResponseBody> {
        let mut ending = self.sources.ending();
        let own = options.drain_window.mul_f64(share(self.sources.number()));
        let leaving = async move {
            let _ = ending.wait_for(|ending| ending.drains).await;
            tokio::time::sleep(own).await;
        };
        let known = (Arc::clone(&self.streams), Arc::clone(&self.sources));
        let body = StreamBody::new(stream, token, known, options.heartbeat, leaving);
        let mut response = Response::new(ResponseBody::of_parts(Box::pin(body)));
        let headers = response.headers_mut();
        let media = Media::Stream(StreamMedia::EventStream);
        headers.insert(header::CONTENT_TYPE, media.content_type());
        for (name, value) in STREAM_HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }

    /// Runs an operation whose answer goes into a stream.
    async fn operate<B: RequestBody>(
        &self,
        serving: &Serving,
        body: B,
        context: RequestContext<'_>,
        token: &str,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let (_, single) = options(serving)?;
        let parts = context.parts;
        // Nothing is read for whoever has no stream. Whose it is is seen when it is known who asks.
        let Some(stream) = self.streams.get(token) else {
            read_refused(&parts.headers, body).await;
            return Err(no_stream());
        };
        // Nor for whoever is beyond a rate.
        let admitted = match serving.pipeline.admit.run(context) {
            Ok(admitted) => admitted,
            Err(error) => {
                read_refused(&parts.headers, body).await;
                return Err(error);
            }
        };
        let (id, body) = match parts.method {
            Method::GET => (
                parameter(parts, "extensions").and_then(|text| id_in(text.as_bytes())),
                None,
            ),
            _ => {
                // Its id is needed before anything else. The stage that takes the body counts it again.
                let memory = context.worker.reserve(&self.memory);
                let most = serving.options.receive.body.ceiling;
                let arriving = serving.pipeline.receive.arriving(context.identity, &memory);
                let body = read_whole(serving, parts, body, (arriving, most)).await?;
                (operation_id(&body), Some(body))
            }
        };
        let id = id.ok_or_else(no_operation_id)?;
        let place = stream.begin(&id, single.operations_max).map_err(no_place)?;
        let slot = SubscriberSlot::with_parts(message_form(&parts.headers));
        let mut head = head(parts, &slot, stream.owner());
        head.extensions.insert(AdmittedSlot::new(admitted));
        let context = RequestContext {
            parts: &head,
            ..context
        };
        let answering = self.graphql(serving, Full::new(body.unwrap_or_default()), context, None);
        let mut response = Box::pin(answering).await;
        let answer = match slot.take(&response) {
            Some(subscriber) => StreamAnswer::Events(Box::new(subscriber)),
            // What was never executed is told at once.
            None if !response.status().is_success() => return Ok(response),
            None => match response.body_mut().take_parts() {
                Some(parts) => StreamAnswer::Parts(forwarded(parts, response.body_mut())),
                None => {
                    let json = response.body().to_vec();
                    let memory = context.worker.reserve(&self.memory);
                    StreamAnswer::Whole(CountedBytes::new(json, memory))
                }
            },
        };
        place.answer(answer);
        let mut accepted = Response::new(ResponseBody::default());
        *accepted.status_mut() = StatusCode::ACCEPTED;
        *accepted.extensions_mut() = std::mem::take(response.extensions_mut());
        Ok(accepted)
    }
}

/// Parts for a stream that another thread may write. One waits at most, so that the execution feels how fast they are taken.
fn forwarded(
    mut parts: PartStream,
    body: &mut ResponseBody,
) -> mpsc::Receiver<Option<std::io::Result<Bytes>>> {
    let (forward, forwarded) = mpsc::channel(1);
    // Holds the memory of the request.
    let memory = std::mem::take(body);
    tokio::task::spawn_local(async move {
        while let Ok(room) = forward.reserve().await {
            let part = tokio::select! {
                part = poll_fn(|cx| parts.as_mut().poll_next(cx)) => part,
                () = forward.closed() => break,
            };
            let is_last = part.is_none();
            room.send(part);
            if is_last {
                break;
            }
        }
        drop(memory);
    });
    forwarded
}

fn options(
    serving: &Serving,
) -> Result<(&SubscriptionOptions, &SingleConnectionOptions), RequestError> {
    let subscription = serving.options.subscription.as_deref();
    let single = subscription.and_then(|options| options.single_connection.as_ref());
    subscription.zip(single).ok_or_else(no_subscriptions)
}

/// The head of an operation's request.
fn head(parts: &Parts, slot: &SubscriberSlot, owner: &Owner) -> Parts {
    let mut request = Request::new(());
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = parts.uri.clone();
    *request.version_mut() = parts.version;
    let mut headers: HeaderMap = parts.headers.clone();
    headers.remove(TOKEN);
    let accept = HeaderValue::from_static("application/graphql-response+json");
    headers.insert(header::ACCEPT, accept);
    *request.headers_mut() = headers;
    *request.extensions_mut() = parts.extensions.clone();
    request.extensions_mut().insert(slot.clone());
    request.extensions_mut().insert(owner.clone());
    request.into_parts().0
}

#[derive(Deserialize)]
struct OperationRequest {
    extensions: Option<OperationExtensions>,
}

#[derive(Deserialize)]
struct OperationExtensions {
    #[serde(rename = "operationId")]
    id: Option<String>,
}

fn operation_id(body: &[u8]) -> Option<String> {
    let request: OperationRequest = serde_json::from_slice(body).ok()?;
    request.extensions?.id.filter(|id| !id.is_empty())
}

fn id_in(extensions: &[u8]) -> Option<String> {
    let extensions: OperationExtensions = serde_json::from_slice(extensions).ok()?;
    extensions.id.filter(|id| !id.is_empty())
}

pub(crate) fn no_stream() -> RequestError {
    refusal(404, "there is no stream of this token: reserve one by PUT")
}

fn no_operation_id() -> RequestError {
    refusal(
        400,
        "the request does not say which operation of the stream it is: `operationId`",
    )
}

fn no_place(why: PlaceRefusal) -> RequestError {
    match why {
        PlaceRefusal::Duplicate => refusal(409, "an operation of this id runs in the stream"),
        PlaceRefusal::Over => no_stream(),
        PlaceRefusal::LongId => RequestError {
            status: 400,
            ..RequestError::http(
                codes::INVALID_GRAPHQL_REQUEST,
                format!("ids of operations have at most {ID_BYTES_MAX} bytes"),
            )
        },
        PlaceRefusal::TooMany => RequestError::http(
            codes::OPERATIONS_LIMITED,
            "the stream has as many operations as it may have at a time",
        ),
    }
}
