//! Requests for a WebSocket: who may open one, and what each of its operations has from its head.
//!
//! A page of another origin can open a WebSocket with its visitor's cookies, and nobody asks for permission first. So the
//! origin is checked against `cors`, where there is one. A policy without credentials lets a page in as a stranger: nothing
//! in its upgrade says who asks, because browsers and proxies write that from cookies; `connection_init` may say it.

use std::sync::Arc;

use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Version, header, request::Parts,
};
use ogive_edge::{client_shares, error::RequestError, media::message_form};
use ogive_server::{ClientCertificate, ResponseBody, Upgrade};
use ogive_stream::{
    Protocol,
    handshake::{self, UpgradeRefusal},
};
use ogive_telemetry::codes;

use crate::{
    gateway::Gateway,
    options::GatewayOptions,
    router::no_websockets,
    shared::context::{Identity, RequestContext},
    subscribe::{
        owner::kept_apart,
        sender::OperationSender,
        websocket::{SessionStart, serve},
    },
};

/// What a session holds while nothing is said, in bytes.
const SESSION_BYTES: usize = 8 << 10;

impl Gateway {
    /// Answers a request for a WebSocket.
    pub(crate) fn open_websocket(
        &self,
        options: &GatewayOptions,
        context: RequestContext<'_>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let parts = context.parts;
        let subscription = options.subscription.as_ref().ok_or_else(no_websockets)?;
        let websocket = subscription.websocket.as_ref().ok_or_else(no_websockets)?;
        if parts.uri.path() != websocket.path {
            return Err(no_websockets());
        }
        let origin = check_origin(options, &parts.headers)?;
        let protocol = Protocol::choose(&parts.headers);
        let asked = (&parts.method, parts.version);
        let answer = handshake::accept(asked, &parts.headers, protocol).map_err(refusal)?;
        let (gateway, worker) = self
            .handle_of()
            .zip(context.worker.handle())
            .ok_or_else(no_websockets)?;
        let place = gateway.sessions.take(
            options.counted(Some(context.identity.client)),
            1,
            options.share_of(websocket.connections_max),
        );
        let place = place
            .map_err(|why| client_shares::refused(codes::CONNECTIONS_LIMITED, why, "WebSocket"))?;
        // One that is a stream of many has nothing of its connection.
        let memory = (parts.version == Version::HTTP_2)
            .then(|| gateway.session_memory.hold(SESSION_BYTES))
            .transpose()?;
        let start = SessionStart {
            _place: place,
            _memory: memory,
            number: gateway.sources.number(),
            sender: OperationSender {
                gateway,
                worker,
                identity: match origin {
                    PageOrigin::Trusted => context.identity.clone(),
                    PageOrigin::Stranger => Identity::like(context.identity),
                },
                upgrade_access: options.upgrade_access.clone(),
                template: template(parts, origin),
                form: message_form(&parts.headers),
                // A browser shows it without asking, like a cookie.
                certificate: {
                    let shown = parts.extensions.get::<ClientCertificate>();
                    shown.filter(|_| origin == PageOrigin::Trusted).cloned()
                },
            },
            options: Arc::clone(subscription),
        };
        let upgrade = Upgrade::new(move |upgraded| serve(upgraded, protocol, start));
        let mut response = Response::new(ResponseBody::of_upgrade(upgrade));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *response.headers_mut() = answer;
        Ok(response)
    }
}

fn refusal(refusal: UpgradeRefusal) -> RequestError {
    let message = match refusal {
        UpgradeRefusal::NotAsked => "this is no request for a WebSocket",
        UpgradeRefusal::Malformed(what) => what,
        UpgradeRefusal::Version => "only version 13 of WebSockets is spoken",
    };
    let error = RequestError::http(codes::INVALID_GRAPHQL_REQUEST, message);
    let status = match refusal {
        UpgradeRefusal::Version => 426,
        _ => 400,
    };
    RequestError { status, ..error }
}

/// Where an upgrade comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PageOrigin {
    /// A page of this origin or of one that may use credentials, or no page.
    Trusted,
    /// A page that may come without credentials only.
    Stranger,
}

/// Refuses a page of an origin that is neither this one nor one of `cors`. Clients that are no pages name none.
fn check_origin(options: &GatewayOptions, headers: &HeaderMap) -> Result<PageOrigin, RequestError> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = match (origins.next(), origins.next()) {
        (None, _) => return Ok(PageOrigin::Trusted),
        (Some(origin), None) => origin,
        (Some(_), Some(_)) => return Err(foreign_origin()),
    };
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let text = origin.as_bytes();
    // Without TLS of our own, a proxy may have it.
    let plain = text
        .strip_prefix(b"http://")
        .filter(|_| !options.is_encrypted);
    let own = plain.or_else(|| text.strip_prefix(b"https://"));
    if own.is_some() && own == host {
        return Ok(PageOrigin::Trusted);
    }
    match options.cors.lets_credentials(origin) {
        Some(true) => Ok(PageOrigin::Trusted),
        Some(false) => Ok(PageOrigin::Stranger),
        None => Err(foreign_origin()),
    }
}

fn foreign_origin() -> RequestError {
    RequestError {
        status: 403,
        ..RequestError::http(
            codes::CSRF_ERROR,
            "pages of this origin may not open WebSockets here: see `cors`",
        )
    }
}

/// The head of each operation's request: that of the upgrade, without what is of the connection. Of a stranger's only what
/// cannot say who asks.
fn template(parts: &Parts, origin: PageOrigin) -> HeaderMap {
    let is_let_in = |name: &HeaderName| {
        origin == PageOrigin::Trusted
            || matches!(
                *name,
                header::HOST | header::ORIGIN | header::USER_AGENT | header::ACCEPT_LANGUAGE
            )
    };
    let of_connection = |name: &HeaderName| {
        matches!(
            *name,
            header::CONNECTION
                | header::UPGRADE
                | header::CONTENT_LENGTH
                | header::CONTENT_ENCODING
                | header::TRANSFER_ENCODING
                | header::ACCEPT_ENCODING
        ) || name.as_str().starts_with("sec-websocket-")
    };
    let kept = parts
        .headers
        .iter()
        .filter(|(name, _)| !of_connection(name) && is_let_in(name));
    let mut headers = kept_apart(kept);
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json.clone());
    headers.insert(header::ACCEPT, json);
    headers
}
