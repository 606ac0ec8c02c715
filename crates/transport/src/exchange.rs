//! A request to a subgraph as a connection carries it.

use std::rc::Rc;

use bytes::Bytes;
use http::HeaderValue;
use ogive_execute::{Failure, StreamScan};

use crate::{
    ClientTls,
    address::Address,
    answer::Exchanged,
    budget::Budget,
    coalescing::SharingScope,
    encoding::Encoding,
    endpoint::Endpoint,
    error::{HTTP_ERROR, failed},
    http1::request::Headers,
    pool::Origin,
};

macro_rules! user_agent {
    () => {
        concat!("ogive/", env!("CARGO_PKG_VERSION"))
    };
}
macro_rules! json {
    () => {
        "application/json"
    };
}
macro_rules! accept {
    () => {
        "application/graphql-response+json, application/json;q=0.9"
    };
}
macro_rules! accept_encoding {
    () => {
        "zstd, br, gzip"
    };
}

/// What the gateway calls itself.
pub(crate) const USER_AGENT: HeaderValue = HeaderValue::from_static(user_agent!());
pub(crate) const JSON: HeaderValue = HeaderValue::from_static(json!());
pub(crate) const ACCEPT_ENCODING: HeaderValue = HeaderValue::from_static(accept_encoding!());
pub(crate) const ACCEPT: HeaderValue = HeaderValue::from_static(accept!());

/// The same as lines.
pub(crate) const USER_AGENT_LINE: &[u8] = concat!("user-agent: ", user_agent!(), "\r\n").as_bytes();
pub(crate) const JSON_LINES: &[u8] =
    concat!("content-type: ", json!(), "\r\naccept: ", accept!(), "\r\n").as_bytes();
pub(crate) const ACCEPT_ENCODING_LINE: &[u8] =
    concat!("accept-encoding: ", accept_encoding!(), "\r\n").as_bytes();

/// A request to send.
pub(crate) struct ExchangeRequest<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) address: &'a Address,
    pub(crate) headers: Headers<'a>,
    pub(crate) body: Bytes,
    /// What the body is encoded in.
    pub(crate) encoding: Option<Encoding>,
    pub(crate) budget: &'a Budget<'a>,
    /// Who looks at the answer while it arrives.
    pub(crate) ahead: Option<StreamScan<'a>>,
    pub(crate) tls: Option<&'a ClientTls>,
    pub(crate) origin: Origin<'a>,
}

/// The TLS that a URL asks for.
pub(crate) fn tls_of<'e>(
    endpoint: &'e Endpoint,
    address: &Address,
) -> Result<Option<&'e ClientTls>, Failure> {
    if !address.https {
        return Ok(None);
    }
    let why = match &endpoint.tls {
        Ok(Some(tls)) => return Ok(Some(tls)),
        Ok(None) => "its URL is https, and TLS was not set up".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(failed(
        HTTP_ERROR,
        &endpoint.name,
        "the subgraph's URL cannot be used",
        format!("subgraph `{}`: {why}", endpoint.name),
    ))
}

/// A whole answer, or the lack of one.
pub(crate) type Outcome = Result<Exchanged, Failure>;

/// What it is shared as.
#[derive(Clone)]
pub(crate) struct SharedOutcome {
    pub(crate) outcome: Outcome,
    pub(crate) scope: SharingScope,
}

/// What requests to subgraphs are equal by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestKey {
    pub(crate) identity: Rc<[u8]>,
    pub(crate) body: Bytes,
}
