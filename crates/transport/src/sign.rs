//! Proof towards a subgraph of who asks.
//!
//! What is signed with is waited for before a subgraph is tried ([`ready`]): that time is not the subgraph's, so neither
//! its breaker nor the delay of its hedged requests counts it. A [`Signer`] is asked after all header rules, once the bytes of the body are what the connection carries, and again for
//! every try, so that no two tries share a time or a signature. What it adds replaces headers of the same name, whoever
//! set them. An endpoint without one costs nothing.
//!
//! What is added belongs to the endpoint, never to the client that asks: equal requests of several clients stay equal.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use tokio::time::{Instant, timeout_at};

use crate::{
    address::Address,
    endpoint::Endpoint,
    error::failed,
    exchange::{ACCEPT, ACCEPT_ENCODING, ExchangeRequest, JSON, USER_AGENT},
    signer::{SignError, Signer, Unsigned},
};
use ogive_execute::Failure;

/// The gateway cannot prove who it is, so the subgraph was not asked.
pub(crate) use ogive_failure::codes::SUBREQUEST_CREDENTIALS_UNAVAILABLE as CREDENTIALS_UNAVAILABLE;

fn unavailable(endpoint: &Endpoint, error: &SignError) -> Failure {
    failed(
        CREDENTIALS_UNAVAILABLE,
        &endpoint.name,
        "the gateway has no credentials for the subgraph now",
        error.to_string(),
    )
}

/// One more try of a request that was answered with 401, if there are other credentials by then. Mutations have no use for
/// it: nobody knows what became of the first try.
pub(crate) struct Renewal<'e> {
    signer: &'e dyn Signer,
    began: Instant,
    spent: bool,
}

impl<'e> Renewal<'e> {
    /// That of a request that begins now.
    pub(crate) fn of(endpoint: &'e Endpoint) -> Option<Self> {
        endpoint.signer.as_deref().map(|signer| Renewal {
            signer,
            began: Instant::now(),
            spent: false,
        })
    }
    /// Whether an answer of this status is worth another try; if so, waits for other credentials, and no longer than until
    /// `deadline`.
    pub(crate) async fn helps(&mut self, status: u16, deadline: Instant) -> bool {
        if status != 401 || std::mem::replace(&mut self.spent, true) {
            return false;
        }
        let refused = self.signer.refused(self.began);
        timeout_at(deadline, refused).await.unwrap_or(false)
    }
}

/// Waits for what a request is signed with, and no longer than until `deadline`.
pub(crate) async fn ready(endpoint: &Endpoint, deadline: Instant) -> Result<(), Failure> {
    let Some(signer) = &endpoint.signer else {
        return Ok(());
    };
    let late = || SignError("they did not come before the time for the request was over".into());
    let ready = timeout_at(deadline, signer.ready()).await;
    let ready = ready.unwrap_or_else(|_| Err(late()));
    ready.map_err(|error| unavailable(endpoint, &error))
}

/// The body that is sent instead, if it is another one.
pub(crate) fn body(
    signer: &dyn Signer,
    endpoint: &Endpoint,
    body: &Bytes,
) -> Result<Option<Bytes>, Failure> {
    let signed = signer.body(body);
    signed.map_err(|error| unavailable(endpoint, &error))
}

/// Adds proof to a request that is about to be sent.
pub(crate) async fn sign(
    signer: &dyn Signer,
    ask: &mut ExchangeRequest<'_>,
) -> Result<(), Failure> {
    let mut headers = HeaderMap::new();
    if signer.reads_headers() {
        headers = ask.headers.clone().into_map();
        complete(&mut headers, ask.endpoint);
        if let Some(encoding) = ask.encoding {
            let name = HeaderValue::from_static(encoding.name());
            headers.insert(header::CONTENT_ENCODING, name);
        }
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(ask.body.len()));
    }
    let request = unsigned(ask.address, &headers, Some(&ask.body));
    let proof = signer.sign(request).await;
    let proof = proof.map_err(|error| unavailable(ask.endpoint, &error))?;
    // Sends anew what an earlier try has added.
    ask.headers.own.extend(proof);
    Ok(())
}

/// Adds proof to a request whose body is made while it is sent.
pub(crate) async fn sign_upload(
    signer: &dyn Signer,
    (endpoint, address): (&Endpoint, &Address),
    content_type: &HeaderValue,
    headers: &mut HeaderMap,
) -> Result<(), Failure> {
    let mut all = HeaderMap::new();
    if signer.reads_headers() {
        all.clone_from(headers);
        complete(&mut all, endpoint);
        all.insert(header::CONTENT_TYPE, content_type.clone());
    }
    let proof = signer.sign(unsigned(address, &all, None)).await;
    headers.extend(proof.map_err(|error| unavailable(endpoint, &error))?);
    Ok(())
}

/// Adds proof to the request for a WebSocket connection.
pub(crate) async fn sign_upgrade(
    signer: &dyn Signer,
    (endpoint, address): (&Endpoint, &Address),
    headers: &mut HeaderMap,
) -> Result<(), Failure> {
    let all = if signer.reads_headers() {
        headers.clone()
    } else {
        HeaderMap::new()
    };
    let none = Bytes::new();
    let request = Unsigned {
        method: &Method::GET,
        ..unsigned(address, &all, Some(&none))
    };
    let proof = signer.sign(request).await;
    headers.extend(proof.map_err(|error| unavailable(endpoint, &error))?);
    Ok(())
}

/// Adds proof to a request whose answer is a stream.
pub(crate) async fn sign_stream(
    signer: &dyn Signer,
    (endpoint, address): (&Endpoint, &Address),
    body: &Bytes,
    headers: &mut HeaderMap,
) -> Result<(), Failure> {
    let mut all = HeaderMap::new();
    if signer.reads_headers() {
        all.clone_from(headers);
        all.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    let proof = signer.sign(unsigned(address, &all, Some(body))).await;
    headers.extend(proof.map_err(|error| unavailable(endpoint, &error))?);
    Ok(())
}

/// The headers that every request has.
fn complete(headers: &mut HeaderMap, endpoint: &Endpoint) {
    for name in [
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::HOST,
        header::TRANSFER_ENCODING,
    ] {
        headers.remove(name);
    }
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::ACCEPT, ACCEPT);
    headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
    if endpoint.traffic.accept_compression {
        headers.insert(header::ACCEPT_ENCODING, ACCEPT_ENCODING);
    }
}

fn unsigned<'a>(
    address: &'a Address,
    headers: &'a HeaderMap,
    body: Option<&'a Bytes>,
) -> Unsigned<'a> {
    Unsigned {
        method: &Method::POST,
        https: address.https,
        authority: &address.host,
        target: &address.path,
        headers,
        body,
    }
}
