//! Requests as hyper reads them: every route, every method, every fault.

use std::{rc::Rc, sync::Arc, time::Instant};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Either};
use hyper::body::Incoming;
use ogive_base::encode::decode_form_lossy;
use ogive_stream::{Protocol, handshake};
use serde_json::{Map, Value, json};

use super::{
    Closed,
    callback::Subscriber,
    due,
    payload::Payload,
    subscriptions::{self, EventBody, Framing},
};
use crate::{
    events::EventFaultKind,
    service::{Reply, Service, Transfer},
    timer::Timer,
};

/// Longest request body.
const BODY_BYTES_MAX: usize = 64 << 20;

/// Answers one request.
pub(super) async fn answer(
    service: Arc<Service>,
    timer: Rc<Timer>,
    mut request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Closed> {
    let upgrade = handshake::is_asked(request.headers()).then(|| hyper::upgrade::on(&mut request));
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let name = path.strip_prefix("/graphql/").or(path.strip_prefix('/'));
    let name = match name {
        Some("" | "graphql") => single(&service).unwrap_or_default().to_string(),
        Some(name) => name.to_string(),
        None => String::new(),
    };
    if service.subgraph(&name).is_none() {
        let reply = side(&service, &parts.method, path);
        return send(reply, Instant::now(), &timer).await;
    }
    if let Some(upgrade) = upgrade {
        return Ok(upgraded(&parts, upgrade, service, name, &timer));
    }
    let body = match parts.method {
        Method::POST => match collect(body).await {
            Some(body) => body,
            None => {
                let reply = Reply::text(413, "The request body is too long or incomplete.");
                return send(reply, Instant::now(), &timer).await;
            }
        },
        Method::GET => get_body(parts.uri.query().unwrap_or("")),
        Method::OPTIONS => return send(Reply::text(204, ""), Instant::now(), &timer).await,
        _ => {
            return send(Reply::text(405, "Use POST or GET."), Instant::now(), &timer).await;
        }
    };
    if let Some(framing) = Framing::of(&parts.headers)
        && service.is_subscription(&name, &body)
    {
        return Ok(stream(
            EventBody::new(service, name, body, framing),
            framing,
        ));
    }
    if let Some(subscriber) = Subscriber::of(&parts.headers, &body)
        && service.is_subscription(&name, &body)
    {
        let reply = called_back(subscriber, service, name, body).await;
        return send(reply, Instant::now(), &timer).await;
    }
    let arrived = Instant::now();
    let headers = header_list(&parts.headers, service.is_recording(&name));
    let reply = service.respond(&name, &headers, &body);
    let mut reply = reply.unwrap_or_else(|| Reply::text(404, "No such subgraph."));
    let accept = parts.headers.get(header::ACCEPT);
    if accept.is_some_and(|a| a.to_str().is_ok_and(likes_graphql_json)) {
        reply.prefer_graphql_json();
    }
    send(reply, arrived, &timer).await
}

/// Begins to send events by requests, if they are wanted.
async fn called_back(
    mut subscriber: Subscriber,
    service: Arc<Service>,
    name: String,
    body: Bytes,
) -> Reply {
    let schedule = service.event_schedule(&name);
    if schedule.has(EventFaultKind::Early) {
        subscriber.send_early().await;
    }
    if !schedule.has(EventFaultKind::NoAck) {
        if !subscriber.check().await {
            let errors = json!({"errors": [{"message": "Nobody wants the events."}]});
            return Reply::new(500, "application/json", errors.to_string());
        }
        tokio::task::spawn_local(subscriber.feed(service, name, body));
    }
    Reply::new(200, "application/json", r#"{"data":null}"#.to_owned())
}

/// The name of the one subgraph, if there is one only.
pub(super) fn single(service: &Service) -> Option<&str> {
    let mut names = service.names();
    match (names.next(), names.next()) {
        (Some(name), None) => Some(name),
        _ => None,
    }
}

/// Everything that is no subgraph.
fn side(service: &Service, method: &Method, path: &str) -> Reply {
    let json = |value: Value| Reply::new(200, "application/json", value.to_string());
    match (method, path) {
        (&Method::GET, "/health") => Reply::text(200, "OK"),
        (&Method::GET, "/stats") => json(service.stats()),
        (&Method::DELETE, "/stats" | "/requests") | (&Method::POST, "/stats/reset") => {
            service.reset();
            json(service.stats())
        }
        (&Method::GET, "/requests") => json(
            service
                .recorded()
                .iter()
                .map(|request| {
                    let headers = request.headers.iter();
                    json!({
                        "subgraph": &*request.subgraph,
                        "headers": headers.map(|(n, v)| json!([n, v])).collect::<Vec<_>>(),
                        "body": String::from_utf8_lossy(&request.body),
                    })
                })
                .collect(),
        ),
        _ => {
            let names: Vec<&str> = service.names().collect();
            let known = names.join(", /graphql/");
            Reply::text(
                404,
                format!("Nothing here. There is: /graphql/{known}, /stats, /requests, /health\n"),
            )
        }
    }
}

async fn collect(mut body: Incoming) -> Option<Bytes> {
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else {
            continue;
        };
        match &first {
            None => first = Some(data),
            Some(start) => {
                if rest.is_empty() {
                    rest.extend_from_slice(start);
                }
                rest.extend_from_slice(&data);
            }
        }
        if rest.len() > BODY_BYTES_MAX {
            return None;
        }
    }
    if rest.is_empty() {
        return Some(first.unwrap_or_default());
    }
    Some(rest.freeze())
}

/// All headers, or only those that control the mock.
fn header_list(headers: &HeaderMap, all: bool) -> Vec<(String, String)> {
    headers
        .iter()
        .filter(|(name, _)| all || name.as_str().starts_with("x-mock-"))
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_string(), value)
        })
        .collect()
}

/// Whether an `accept` header likes the GraphQL media type better than plain JSON.
pub(super) fn likes_graphql_json(accept: &str) -> bool {
    let graphql = accept.find("application/graphql-response+json");
    let json = accept.find("application/json");
    // Named first, or alone: clients list what they like best first.
    graphql.is_some_and(|g| json.is_none_or(|j| g < j))
}

/// The body a POST would have for the query string of a GET.
fn get_body(query: &str) -> Bytes {
    let mut request = Map::new();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode_form_lossy(value);
        match name {
            "query" | "operationName" => {
                request.insert(name.to_string(), value.into());
            }
            "variables" | "extensions" => {
                // Something that is no JSON stays a string, which is refused later.
                let parsed = serde_json::from_str(&value).unwrap_or_else(|_| value.into());
                request.insert(name.to_string(), parsed);
            }
            _ => {}
        }
    }
    Value::Object(request).to_string().into()
}

/// The body of an answer.
pub(super) type AnswerBody = Either<Payload, EventBody>;

/// Agrees on WebSocket, or says why not.
fn upgraded(
    parts: &http::request::Parts,
    upgrade: hyper::upgrade::OnUpgrade,
    service: Arc<Service>,
    name: String,
    timer: &Rc<Timer>,
) -> Response<AnswerBody> {
    let protocol = Protocol::choose(&parts.headers);
    let first = (&parts.method, parts.version);
    let accepted = handshake::accept(first, &parts.headers, protocol);
    let mut response = Response::new(Either::Left(Payload::new(
        Bytes::new(),
        Transfer::Whole,
        timer,
    )));
    let (Ok(headers), Some(protocol)) = (accepted, protocol) else {
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return response;
    };
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    tokio::task::spawn_local(subscriptions::websocket(upgrade, protocol, service, name));
    response
}

/// An answer that is a stream of events.
fn stream(body: EventBody, framing: Framing) -> Response<AnswerBody> {
    let mut response = Response::new(Either::Right(body));
    let headers = response.headers_mut();
    let set = http::HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, set(framing.content_type()));
    headers.insert(header::CACHE_CONTROL, set("no-cache"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, set("*"));
    response
}

async fn send(
    reply: Reply,
    arrived: Instant,
    timer: &Rc<Timer>,
) -> Result<Response<AnswerBody>, Closed> {
    if !reply.delay.is_zero() {
        timer.until(due(arrived, reply.delay)).await;
    }
    if reply.transfer == Transfer::Drop {
        return Err(Closed);
    }
    let length = reply.body.len();
    let mut response = Response::new(Either::Left(Payload::new(
        reply.body,
        reply.transfer,
        timer,
    )));
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    let set = http::HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, set(reply.content_type));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, set("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, set("*"));
    if reply.transfer == Transfer::Truncate {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    Ok(response)
}
