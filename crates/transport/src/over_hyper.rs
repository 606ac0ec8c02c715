//! Exchanges over hyper: all of HTTP/2, and requests with files.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, Version, header, uri::Scheme};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use ogive_execute::Failure;

use crate::{
    address::Address,
    answer::{Exchanged, Head, Intake, no_redirect, whole},
    budget::Budget,
    connect::{Sender, connect, speak_http1, speak_http2},
    endpoint::Endpoint,
    error::{HTTP_ERROR, chain, failed},
    exchange::{ACCEPT, ACCEPT_ENCODING, ExchangeRequest, JSON, USER_AGENT, tls_of},
    growth,
    resolve::Names,
    sign,
    upload::{Attachment, FeedError, Pieces},
};

/// The request of an exchange, for HTTP/2.
pub(crate) fn request(ask: &ExchangeRequest<'_>) -> Request<Full<Bytes>> {
    let mut headers = ask.headers.clone().into_map();
    if ask.endpoint.traffic.accept_compression {
        headers.insert(header::ACCEPT_ENCODING, ACCEPT_ENCODING);
    }
    if let Some(encoding) = ask.encoding {
        let name = HeaderValue::from_static(encoding.name());
        headers.insert(header::CONTENT_ENCODING, name);
    }
    let mut request = build(headers, Full::new(ask.body.clone()));
    fit_http2(&mut request, ask.address);
    request
}

/// Sends a body that is made while it is sent, on a connection of its own: it can be sent only once. Reads the
/// whole answer.
pub(crate) async fn upload(
    names: &Names,
    endpoint: &Endpoint,
    address: &Address,
    mut headers: HeaderMap,
    (attachment, budget): (Attachment<'_>, &Budget<'_>),
) -> Result<Exchanged, Failure> {
    let tls = tls_of(endpoint, address)?;
    if endpoint.traffic.accept_compression {
        headers.insert(header::ACCEPT_ENCODING, ACCEPT_ENCODING);
    }
    let content_type = attachment.content_type;
    if let Some(signer) = &endpoint.signer {
        let to = (endpoint, address);
        sign::sign_upload(&**signer, to, &content_type, &mut headers).await?;
    }
    let mut request = build(headers, attachment.pieces);
    request
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    let (stream, http2) = connect(endpoint, address, tls, names).await?;
    let sender = if http2 {
        fit_http2(&mut request, address);
        speak_http2(stream).await.map(Sender::Http2)
    } else {
        fit_http1(&mut request, address);
        speak_http1(stream).await.map(Sender::Http1)
    };
    let unanswered = |error: hyper::Error| -> Failure {
        let what = "the connection failed before an answer came";
        failed(HTTP_ERROR, &endpoint.name, what, chain(&error))
    };
    let mut sender: Sender<Pieces> = sender.map_err(unanswered)?;
    let answering = async {
        let sent = match &mut sender {
            Sender::Http1(sender) => sender.send_request(request).await,
            Sender::Http2(sender) => sender.send_request(request).await,
        };
        let (head, body) = sent.map_err(unanswered)?.into_parts();
        no_redirect(endpoint, head.status, &head.headers)?;
        let body = read_body(Intake::new(endpoint, budget), body).await?;
        let head = Head::new(head.status, head.headers);
        whole(endpoint, head, body, budget).await
    };
    let mut answering = pin!(answering);
    let mut feed = attachment.feed;
    tokio::select! {
        // A subgraph may answer before it has read everything.
        answer = answering.as_mut() => return answer,
        fed = feed.as_mut() => match fed {
            Ok(()) | Err(FeedError::NobodyReads) => {}
            Err(FeedError::Refused { code, message }) => {
                let detail = format!("files for subgraph `{}`: {message}", endpoint.name);
                return Err(Failure::new(code, message, detail));
            }
        },
    }
    drop(feed);
    answering.await
}

fn build<B>(mut headers: HeaderMap, body: B) -> Request<B> {
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::ACCEPT, ACCEPT);
    headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.headers_mut() = headers;
    request
}

/// Writes the request's target as HTTP/1.1 wants it.
pub(crate) fn fit_http1<B>(request: &mut Request<B>, address: &Address) {
    let host = address.host.clone();
    request.headers_mut().insert(header::HOST, host);
    *request.uri_mut() = address.path.clone().into();
    *request.version_mut() = Version::HTTP_11;
}

/// Writes the request's target as HTTP/2 wants it.
pub(crate) fn fit_http2<B>(request: &mut Request<B>, address: &Address) {
    request.headers_mut().remove(header::HOST);
    let scheme = if address.https {
        Scheme::HTTPS
    } else {
        Scheme::HTTP
    };
    let uri = Uri::builder()
        .scheme(scheme)
        .authority(address.host.as_bytes())
        .path_and_query(address.path.clone());
    // The parts come from a URL that was taken apart.
    *request.uri_mut() = uri.build().unwrap_or_default();
    *request.version_mut() = Version::HTTP_2;
}

/// Reads a body to its end.
pub(crate) async fn read_body(
    mut intake: Intake<'_>,
    mut body: Incoming,
) -> Result<Bytes, Failure> {
    let expected = body.size_hint().lower();
    intake.announced(expected)?;
    // The announced length is only a hint from outside: never reserve more than this ahead of the bytes themselves.
    const RESERVE_MAX: u64 = 16 << 20;
    let mut first = Bytes::new();
    let mut rest: Option<BytesMut> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| intake.cut(chain(&error)))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let so_far = rest.as_ref().map_or(first.len(), BytesMut::len);
        let read = so_far + data.len();
        intake.announced(read as u64)?;
        match &mut rest {
            Some(buffer) => {
                if buffer.capacity() - so_far < data.len() {
                    // Unless it said its length it may have all that is wanted.
                    let most = match expected {
                        0 => intake.limit(),
                        expected => usize::try_from(expected).unwrap_or(usize::MAX),
                    };
                    buffer.reserve(growth::room(so_far, data.len(), most));
                }
                buffer.extend_from_slice(&data);
            }
            // Small answers come as one frame and are never copied.
            None if first.is_empty() => first = data,
            None => {
                let room = read.max(expected.min(RESERVE_MAX) as usize);
                let mut buffer = BytesMut::with_capacity(room);
                buffer.extend_from_slice(&first);
                buffer.extend_from_slice(&data);
                rest = Some(buffer);
            }
        }
        intake.came(read).await?;
    }
    intake.whole();
    Ok(rest.map_or(first, BytesMut::freeze))
}

/// Whether a connection was closed or reset, or a request turned away unread.
pub(crate) fn is_reset(error: &hyper::Error) -> bool {
    use std::{error::Error, io::ErrorKind};
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return matches!(
                io.kind(),
                ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe
            );
        }
        // HTTP/2: the connection is being closed, or the stream was turned away unread.
        if let Some(http2) = error.downcast_ref::<h2::Error>() {
            return http2.is_go_away()
                || http2.is_io()
                || http2.reason() == Some(h2::Reason::REFUSED_STREAM);
        }
        cause = error.source();
    }
    false
}
