//! Events over HTTP: SSE and multipart answers, each on a connection of its own. Over HTTP/1.1 whoever wants the events
//! reads the socket; no task and no channel is between them.
//!
//! A body is read when somebody wants the next event, so the subgraph feels how fast events are taken. Answers that are no
//! stream are a GraphQL response, such as that to a subscription that does not validate, or a failure.

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use ogive_execute::SubgraphResponse;
use ogive_failure::Failure;
use ogive_stream::{
    callback,
    multipart::{self, MultipartReader, SubscriptionPart},
    sse::{self, SseEvent, SseReader},
};

use super::{
    driven::response,
    failures::{lost, malformed, no_stream},
    source::EventProtocol,
    subscribe_request::SubscribeRequest,
};
use crate::{
    address::Address,
    answer::no_redirect,
    connect::{connect, speak_http2},
    endpoint::Endpoint,
    error::{HTTP_ERROR, chain, failed},
    exchange::{JSON, USER_AGENT, tls_of},
    http1::{
        Connection, OutgoingRequest,
        framing::HeaderScope,
        request::{self, Headers},
    },
    over_hyper::fit_http2,
    sign,
};

/// What a subgraph answers a subscription with.
pub(crate) enum HttpAnswer {
    /// Events.
    Events(Box<HttpEvents>),
    /// One response, and that is all.
    Whole(SubgraphResponse),
    /// Neither.
    Neither(Failure),
}

/// The events of one subscription.
pub(crate) struct HttpEvents {
    body: Pieces,
    reader: Reader,
    ready: VecDeque<Bytes>,
    is_complete: bool,
    /// What is wrong behind what is ready.
    failed: Option<Failure>,
}

enum Reader {
    Sse(SseReader),
    Multipart(MultipartReader),
}

/// What a subgraph is asked for.
fn accept(protocol: EventProtocol) -> HeaderValue {
    HeaderValue::from_static(match protocol {
        EventProtocol::Sse => "text/event-stream",
        EventProtocol::Multipart => {
            "multipart/mixed;boundary=\"graphql\";subscriptionSpec=\"1.0\", application/json"
        }
        EventProtocol::Callback => callback::ACCEPT,
        _ => {
            "text/event-stream, multipart/mixed;boundary=\"graphql\";subscriptionSpec=\"1.0\";q=0.9, application/json;q=0.1"
        }
    })
}

/// Asks for a stream of events.
pub(crate) async fn open(
    opening: &SubscribeRequest<'_>,
    address: &Address,
    body: Bytes,
) -> Result<HttpAnswer, Failure> {
    let endpoint = opening.endpoint;
    let mut headers = opening.all_headers();
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::ACCEPT, accept(opening.source.protocol));
    headers.remove(header::ACCEPT_ENCODING);
    headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
    if let Some(signer) = &endpoint.signer {
        let to = (endpoint, address);
        sign::sign_stream(&**signer, to, &body, &mut headers).await?;
    }
    let tls = tls_of(endpoint, address)?;
    let connected = connect(endpoint, address, tls, opening.names).await;
    let (stream, http2) = connected.map_err(Failure::retried)?;
    if let Some(interval) = opening.source.heartbeat_interval {
        stream.keep_alive(interval);
    }
    let unanswered = |why: String| {
        let what = "the connection failed before an answer came";
        failed(HTTP_ERROR, &endpoint.name, what, why).retried()
    };
    let (status, headers, body) = if http2 {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.headers_mut() = headers;
        fit_http2(&mut request, address);
        let sender = speak_http2(stream).await;
        let mut sender = sender.map_err(|error| unanswered(chain(&error)))?;
        let answer = sender.send_request(request).await;
        let (head, body) = answer
            .map_err(|error| unanswered(chain(&error)))?
            .into_parts();
        (head.status, head.headers, Pieces::Http2(Box::new(body)))
    } else {
        let headers = Headers {
            common: &headers,
            own: HeaderMap::new(),
            binds: false,
        };
        let length = Some(body.len());
        let mut connection = Box::new(Connection::new(stream));
        let asked = OutgoingRequest {
            head: &|out| request::write(out, ("POST", address), &[], &headers, length),
            body: &body,
            is_head: false,
            wanted: HeaderScope::All,
        };
        let head = connection.ask(asked).await;
        let head = head.map_err(|why| unanswered(why.to_string()))?;
        (head.status, head.headers, Pieces::Http1(connection))
    };
    no_redirect(endpoint, status, &headers)?;
    answer(endpoint, (status, &headers), body).await
}

/// The body of an answer as it comes.
enum Pieces {
    Http1(Box<Connection>),
    Http2(Box<Incoming>),
}

impl Pieces {
    /// The next bytes; `None` at the end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, String>> {
        let body = match self {
            Pieces::Http1(connection) => return connection.poll_piece(cx),
            Pieces::Http2(body) => body,
        };
        loop {
            match ready!(Pin::new(&mut **body).poll_frame(cx)) {
                None => return Poll::Ready(Ok(None)),
                Some(Err(error)) => return Poll::Ready(Err(chain(&error))),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Ok(Some(data)));
                    }
                }
            }
        }
    }
}

/// What an answer is, by its head.
async fn answer(
    endpoint: &Endpoint,
    (status, headers): (StatusCode, &HeaderMap),
    body: Pieces,
) -> Result<HttpAnswer, Failure> {
    let bytes_max = endpoint.traffic.response_bytes_refused();
    let content_type = headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default();
    let media = content_type.split(';').next().unwrap_or_default().trim();
    let media = media.to_ascii_lowercase();
    // `none` is no word of HTTP; GraphQL Yoga says it of every stream.
    let plain = |value: &HeaderValue| matches!(value.as_bytes(), b"identity" | b"none");
    if !headers.get_all(header::CONTENT_ENCODING).iter().all(plain) {
        let detail = "an encoded answer, though nobody asked for one";
        return Ok(HttpAnswer::Neither(malformed(endpoint, detail)));
    }
    let reader = if !status.is_success() {
        None
    } else if media == sse::MEDIA_TYPE {
        Some(Reader::Sse(SseReader::new(bytes_max)))
    } else {
        let boundary = multipart::boundary(content_type);
        boundary.map(|boundary| Reader::Multipart(MultipartReader::new(&boundary, bytes_max)))
    };
    if let Some(reader) = reader {
        return Ok(HttpAnswer::Events(Box::new(HttpEvents {
            body,
            reader,
            ready: VecDeque::new(),
            is_complete: false,
            failed: None,
        })));
    }
    if !matches!(
        &*media,
        "application/json" | "application/graphql-response+json"
    ) {
        let shown = ogive_base::foreign::bounded_name(content_type).into_owned();
        return Ok(HttpAnswer::Neither(no_stream(endpoint, status, &shown)));
    }
    let body = whole(endpoint, body, bytes_max).await?;
    let status = status.as_u16();
    Ok(HttpAnswer::Whole(SubgraphResponse { status, body }))
}

/// Reads an answer that is no stream.
async fn whole(endpoint: &Endpoint, mut body: Pieces, bytes_max: usize) -> Result<Bytes, Failure> {
    let mut read = Vec::new();
    while let Some(data) = poll_fn(|cx| body.poll_next(cx))
        .await
        .map_err(|why| lost(endpoint, why))?
    {
        if read.len() + data.len() > bytes_max {
            let detail = format!("the answer is larger than {bytes_max} bytes");
            return Err(malformed(endpoint, detail));
        }
        read.extend_from_slice(&data);
    }
    Ok(read.into())
}

impl HttpEvents {
    /// The next event; `None` when the subscription is over.
    pub(crate) fn poll_next(
        &mut self,
        endpoint: &Endpoint,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Failure>>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if self.ready.is_empty() {
                    // No room is kept while nothing comes.
                    self.ready = VecDeque::new();
                }
                return Poll::Ready(Some(Ok(event)));
            }
            if let Some(error) = self.failed.take() {
                return Poll::Ready(Some(Err(error)));
            }
            if self.is_complete {
                return Poll::Ready(None);
            }
            match ready!(self.body.poll_next(cx)) {
                Ok(Some(data)) => self.failed = self.read(endpoint, &data).err(),
                Err(why) => return Poll::Ready(Some(Err(lost(endpoint, why)))),
                Ok(None) => {
                    let detail = "the stream ended without saying that the subscription is over";
                    return Poll::Ready(Some(Err(lost(endpoint, detail))));
                }
            }
        }
    }

    fn read(&mut self, endpoint: &Endpoint, data: &[u8]) -> Result<(), Failure> {
        match &mut self.reader {
            Reader::Sse(reader) => {
                let read = reader.push(data);
                while let Some(event) = reader.take() {
                    match event {
                        SseEvent::Next(event) => self.ready.push_back(event),
                        SseEvent::Complete => self.is_complete = true,
                        SseEvent::Heartbeat | SseEvent::Other(_) => {}
                    }
                }
                read.map_err(|error| malformed(endpoint, format!("the event stream: {error}")))
            }
            Reader::Multipart(reader) => {
                let read = reader.push(data);
                while let Some(part) = reader.take() {
                    match multipart::subscription_part(&part) {
                        None => {
                            let detail = "a part that is no event of `subscriptionSpec=1.0`";
                            return Err(malformed(endpoint, detail));
                        }
                        Some(SubscriptionPart::Heartbeat) => {}
                        Some(SubscriptionPart::Payload(event)) => {
                            self.ready.push_back(part.slice_ref(event.as_bytes()));
                        }
                        Some(SubscriptionPart::Fatal(errors)) => {
                            self.ready.push_back(response(errors));
                            self.is_complete = true;
                            return Ok(());
                        }
                    }
                }
                self.is_complete |= reader.is_complete();
                read.map_err(|error| malformed(endpoint, format!("the multipart stream: {error}")))
            }
        }
    }
}
