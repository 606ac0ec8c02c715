//! Stop 1 of 5: receive. Comes from the HTTP edge (`server`), goes to `prepare` of the gateway.
//!
//! Bytes and headers become one [`GraphqlRequest`] (GraphQL over HTTP, sections 5.1 to 5.4). Limits come first: the
//! method, the media type and the announced length are checked before the body is read, and reading stops at the
//! limit and at a deadline. JSON nested deeper than 128 is refused while it is scanned. Nothing becomes a tree: what is read
//! of a body are its document and names; variables stay as they are written, and the rest is skipped. What a request makes
//! the process hold is counted while it comes ([`ogive_base::memory`]).

mod body;
pub mod growing;
mod json;
mod query;
pub mod uploads;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, request::Parts};
use ogive_base::bounded;
use ogive_config::{BatchingOptions, Config, HttpOptions, LimitOptions};
use ogive_json::Scanner;
use ogive_limits::{Limit, Measured};
use ogive_net::encoding::Encoding;
use ogive_server::{
    drain_body::read_refused,
    offload::{LIGHT_BODY, Offload},
};
use ogive_telemetry::codes;

use crate::{
    error::RequestError,
    json_value::{self, JsonObject},
    measured::{Exceeded, note},
    media::{self, ContentTypeError, IncrementalMedia},
};
use body::{decoded, read_body};
use growing::Arriving;
use query::query_request;

pub use body::RequestBody;
pub use body::whole_body;
pub use json::from_json;
pub use json::received;
pub use query::from_query;

/// How an operation is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Delivery {
    /// As a whole, whatever it defers.
    #[default]
    Whole,
    /// In parts: what it defers may come later, which is another operation to all who plan it.
    InParts,
}

/// One GraphQL request, wherever it came from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphqlRequest {
    /// The document; empty if the request only has an id for it (the gateway finds it).
    pub query: String,
    /// The id of a trusted document.
    pub document_id: Option<String>,
    /// Which operation of it.
    pub operation_name: Option<String>,
    /// Values of its variables.
    pub variables: JsonObject,
    /// Its extensions; hooks are told of them.
    pub extensions: JsonObject,
    /// Their member `persistedQuery`, as it is written; the other members mean nothing.
    pub persisted_query: Option<Bytes>,
    /// Whether only queries are allowed: GET must not change anything.
    pub read_only: bool,
    /// Whether it may be a subscription.
    pub may_subscribe: bool,
    /// How it is answered if some of it is deferred; `None`: as a whole.
    pub in_parts: Option<IncrementalMedia>,
    /// Bytes of the body or query string it came in; 0 if it came in none.
    pub bytes: u32,
    /// The hash to register it under, if its document was found already.
    pub resolved: Option<Box<Option<[u8; 32]>>>,
    /// The document that the client sent, if another one has taken its place: what a hash stands for.
    pub original: Option<Box<str>>,
}

impl GraphqlRequest {
    /// How it is answered.
    pub fn delivery(&self) -> Delivery {
        match self.in_parts {
            None => Delivery::Whole,
            Some(_) => Delivery::InParts,
        }
    }
}

/// What one HTTP request holds.
#[derive(Clone, Debug)]
pub enum Received {
    /// One GraphQL request.
    One(GraphqlRequest),
    /// A list; each entry succeeds or fails on its own.
    Batch(Vec<Result<GraphqlRequest, RequestError>>),
}

/// Limits on the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveLimits {
    /// Most bytes; default 2,000,000.
    pub body: Measured<usize>,
    /// How long the body may take to arrive; default 30 s.
    pub body_timeout: Measured<Duration>,
    /// Most requests of one batch; `None`, the default, if batches are refused.
    pub batch: Option<Measured<usize>>,
}

impl ReceiveLimits {
    /// The limits that a configuration asks for.
    pub fn new(config: &Config) -> Self {
        let (limits, batching) = (&config.limits, &config.batching);
        let warn_only = limits.warn_only;
        let bytes = LimitOptions::default().http_max_request_bytes.0;
        let time = HttpOptions::default().body_read_timeout.0;
        let batch = BatchingOptions::default().maximum_size.get();
        ReceiveLimits {
            body: warn_only.size(Limit::Body, limits.http_max_request_bytes.0, bytes),
            body_timeout: warn_only.time(Limit::BodyTimeout, config.http.body_read_timeout.0, time),
            batch: batching
                .enabled
                .then(|| warn_only.size(Limit::Batch, batching.maximum_size.get(), batch)),
        }
    }
}

impl Default for ReceiveLimits {
    fn default() -> Self {
        ReceiveLimits::new(&Config::default())
    }
}

/// Reads a request. `document_id` is that of the path, if it has one; `exceeded` gets the limits that are only measured.
pub async fn receive<B: RequestBody>(
    parts: &Parts,
    body: B,
    limits: &ReceiveLimits,
    document_id: Option<&str>,
    (offload, arriving): (&Offload, Arriving<'_>),
    exceeded: &mut Exceeded,
) -> Result<Received, RequestError> {
    let memory = arriving.memory;
    match parts.method {
        Method::GET => {
            let query = parts.uri.query().unwrap_or_default();
            // What it is decoded to is no longer.
            memory.grow(2 * query.len())?;
            query_request(query, document_id).map(Received::One)
        }
        Method::POST => {
            let encoding = match check_content(&parts.headers) {
                Ok(encoding) => encoding,
                Err(error) => {
                    read_refused(&parts.headers, body).await;
                    return Err(error);
                }
            };
            let mut body = read_body(&parts.headers, body, limits, arriving, exceeded).await?;
            // What is rare is in a box, because it takes much room, and room is moved with every request.
            if let Some(encoding) = encoding {
                let encoded = body.len();
                body = Box::pin(decoded(encoding, &body, limits, memory)).await?;
                memory.shrink(encoded);
            }
            note(&limits.body, &body.len(), exceeded);
            // The document is copied out of it.
            memory.grow(body.len())?;
            let received = if body.len() <= LIGHT_BODY {
                received(&body, limits, document_id)
            } else {
                let (limits, id) = (*limits, document_id.map(str::to_owned));
                let work = offload.run(move || received(&body, &limits, id.as_deref()));
                Box::pin(work).await
            }?;
            note_batch(&received, limits, exceeded);
            Ok(received)
        }
        _ => {
            read_refused(&parts.headers, body).await;
            Err(RequestError {
                allow: Some("GET, POST"),
                ..RequestError::http(
                    codes::METHOD_NOT_ALLOWED,
                    format!(
                        "{} is not allowed here: use GET or POST",
                        clip(parts.method.as_str())
                    ),
                )
            })
        }
    }
}

fn check_content(headers: &HeaderMap) -> Result<Option<Encoding>, RequestError> {
    let unsupported = |message: String| RequestError::http(codes::UNSUPPORTED_MEDIA_TYPE, message);
    media::content_type_is_json(headers).map_err(|error| {
        unsupported(match error {
            ContentTypeError::Missing => {
                "the request has no `content-type`: send `application/json`".into()
            }
            ContentTypeError::Unsupported(name) => {
                format!(
                    "`{}` is not supported: send `application/json`",
                    clip(&name)
                )
            }
            ContentTypeError::Repeated => {
                "the request has several `content-type` headers: send one".into()
            }
            ContentTypeError::Charset(name) => {
                format!("the charset `{}` is not supported: send UTF-8", clip(&name))
            }
        })
    })?;
    Encoding::of(headers).map_err(|name| {
        unsupported(format!(
            "the encoding `{}` is not supported: send `gzip`, `br`, `zstd` or none",
            clip(&name)
        ))
    })
}

/// Notes a batch of more requests than allowed.
pub(crate) fn note_batch(received: &Received, limits: &ReceiveLimits, exceeded: &mut Exceeded) {
    if let (Received::Batch(requests), Some(batch)) = (received, &limits.batch) {
        note(batch, &requests.len(), exceeded);
    }
}

/// Where clients write the id of a document: GraphQL over HTTP's appendix, then Relay's habits.
const DOCUMENT_ID: [&str; 3] = ["documentId", "id", "doc_id"];

/// The member `persistedQuery` of `extensions`; nobody reads the others.
fn persisted_query(extensions: &JsonObject) -> Option<Bytes> {
    let text = &extensions.bytes();
    if text.is_empty() {
        return None;
    }
    let mut scanner = Scanner::with_depth_max(text, json_value::DEPTH_MAX);
    let mut found = None;
    // It was scanned before, so nothing is wrong with it.
    let mut more = scanner.begin_object().ok()?;
    while more {
        let is_it = scanner.key().ok()?.is("persistedQuery");
        let range = scanner.skip_value().ok()?;
        if is_it {
            found = Some(range);
        }
        more = scanner.next_member().ok()?;
    }
    found.map(|range| text.slice(range))
}

/// As [`GraphqlRequest::bytes`].
fn counted(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn invalid(message: impl Into<String>) -> RequestError {
    RequestError::http(codes::INVALID_GRAPHQL_REQUEST, message)
}

/// Foreign text in a message: short, and nothing but visible ASCII.
fn clip(text: &str) -> String {
    let visible = |c: &char| c.is_ascii_graphic() || *c == ' ';
    bounded(text, 60).chars().filter(visible).collect()
}
