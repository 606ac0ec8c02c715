//! Stop 1 of 5: receive. Comes from the HTTP edge (`server`), goes to [`prepare`](crate::prepare).
//!
//! Bytes and headers become one [`GraphqlRequest`] (GraphQL over HTTP, sections 5.1 to 5.4). Limits come first: the
//! method, the media type and the announced length are checked before the body is read, and reading stops at the
//! limit and at a deadline. JSON nested deeper than 128 is refused while it is scanned. Nothing becomes a tree: what is read
//! of a body are its document and names; variables stay as they are written, and the rest is skipped. What a request makes
//! the process hold is counted while it comes ([`ogive_base::memory`]).

pub(crate) mod percent;
pub(crate) mod stage;
pub mod uploads;

use std::{
    fmt::Display,
    future::{Future as _, poll_fn},
    ops::Range,
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, Method, header, request::Parts};
use hyper::body::Body;
use ogive_base::{Reservation, bounded};
use ogive_config::{BatchingOptions, Config, HttpOptions, Limit, LimitOptions, Measured};
use ogive_json::{JsonStr, Kind, ScanError, Scanner};
use ogive_net::encoding::{self, DecodeError, Encoding};
use ogive_telemetry::codes;

use crate::{
    schema::operation::Delivery,
    shared::error::{RequestError, no_memory},
    shared::json_value::{self, JsonObject},
    shared::measured::{Exceeded, note},
    shared::media::IncrementalMedia,
    shared::media::{self, ContentTypeError},
    shared::offload::{LIGHT_BODY, Offload},
};
use ogive_server::drain_body::{linger, read_refused};

/// One GraphQL request, wherever it came from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphqlRequest {
    /// The document; empty if the request only has an id for it ([`documents`](crate::documents) finds it).
    pub query: String,
    /// The id of a trusted document.
    pub document_id: Option<String>,
    /// Which operation of it.
    pub operation_name: Option<String>,
    /// Values of its variables.
    pub variables: JsonObject,
    /// The member `persistedQuery` of its extensions, as it is written; the other members mean nothing.
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
}

impl GraphqlRequest {
    /// How it is answered.
    pub(crate) fn delivery(&self) -> Delivery {
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

/// Bytes of a body that are read in one go; then other requests have their turn.
const TURN: usize = 64 << 10;

/// The body of a request, wherever it comes from.
pub trait RequestBody: Body<Data: Send, Error: Display> + Send + 'static {}

impl<B: Body<Data: Send, Error: Display> + Send + 'static> RequestBody for B {}

/// Reads a request. `document_id` is that of the path, if it has one; `exceeded` gets the limits that are only measured.
pub async fn receive<B: RequestBody>(
    parts: &Parts,
    body: B,
    limits: &ReceiveLimits,
    document_id: Option<&str>,
    (offload, memory): (&Offload, &Reservation),
    exceeded: &mut Exceeded,
) -> Result<Received, RequestError> {
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
            let mut body = read_body(&parts.headers, body, limits, memory, exceeded).await?;
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

/// How many times as much as goes in is expected to come out, beside what is counted when it does: what grows is copied, and
/// what it was copied from is not free at once. Whoever would not have room for that is refused before it is begun, because
/// a thousand that are half decoded leave room for none.
const DECODED_RATIO: usize = 256;

/// The limit holds for what arrives and for what it becomes.
async fn decoded(
    encoding: Encoding,
    body: &[u8],
    limits: &ReceiveLimits,
    memory: &Reservation,
) -> Result<Bytes, RequestError> {
    let max = limits.body.ceiling;
    let meanwhile = memory.beside();
    meanwhile.grow(body.len().saturating_mul(DECODED_RATIO).min(max))?;
    let decoded = encoding::decode(encoding, body, max, Some(memory)).await;
    drop(meanwhile);
    decoded.map_err(|error| match error {
        DecodeError::OutOfMemory => no_memory(),
        DecodeError::TooLarge => RequestError::http(
            codes::REQUEST_TOO_LARGE,
            format!("the request's decoded body is larger than {max} bytes"),
        ),
        DecodeError::Malformed(_) => invalid(format!(
            "the request's body is not what `content-encoding: {}` says",
            encoding.name()
        )),
    })
}

/// Reads and decodes a body before anything else is known of it.
pub(crate) async fn whole_body<B: RequestBody>(
    headers: &HeaderMap,
    body: B,
    limits: &ReceiveLimits,
    memory: &Reservation,
    exceeded: &mut Exceeded,
) -> Result<Bytes, RequestError> {
    let encoding = Encoding::of(headers).map_err(|name| {
        let message = format!("the encoding `{}` is not supported", clip(&name));
        RequestError::http(codes::UNSUPPORTED_MEDIA_TYPE, message)
    })?;
    let body = read_body(headers, body, limits, memory, exceeded).await?;
    match encoding {
        Some(encoding) => decoded(encoding, &body, limits, memory).await,
        None => Ok(body),
    }
}

async fn read_body<B: RequestBody>(
    headers: &HeaderMap,
    body: B,
    limits: &ReceiveLimits,
    memory: &Reservation,
    exceeded: &mut Exceeded,
) -> Result<Bytes, RequestError> {
    let max = limits.body.ceiling;
    let too_large = || {
        RequestError::http(
            codes::REQUEST_TOO_LARGE,
            format!("the request's body is larger than {max} bytes"),
        )
    };
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    let mut body = pin!(body);
    if announced.unwrap_or(body.size_hint().lower()) > max as u64 {
        // Whoever asks before sending (`expect: 100-continue`) is told not to.
        if !headers.contains_key(header::EXPECT) {
            Box::pin(linger(body)).await;
        }
        return Err(too_large());
    }
    // Pinned first: a future that goes into another one is copied.
    let mut reading = pin!(async {
        let mut first = Bytes::new();
        let mut rest: Option<BytesMut> = None;
        let mut turn = TURN;
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let frame = frame.map_err(|error| {
                tracing::debug!(%error, "the client's body ended early");
                RequestError::http(
                    codes::INVALID_GRAPHQL_REQUEST,
                    "the request's body could not be read",
                )
            })?;
            let Ok(mut data) = frame.into_data() else {
                continue;
            };
            let data = data.copy_to_bytes(data.remaining());
            let so_far = rest.as_ref().map_or(first.len(), BytesMut::len);
            let read = so_far + data.len();
            if read > max {
                Box::pin(linger(body.as_mut())).await;
                return Err(too_large());
            }
            if memory.grow(data.len()).is_err() {
                Box::pin(linger(body.as_mut())).await;
                return Err(no_memory());
            }
            match &mut rest {
                Some(buffer) => buffer.extend_from_slice(&data),
                None if first.is_empty() => first = data,
                None => {
                    let mut buffer = BytesMut::with_capacity(read);
                    buffer.extend_from_slice(&first);
                    buffer.extend_from_slice(&data);
                    rest = Some(buffer);
                }
            }
            if read >= turn {
                turn = read + TURN;
                tokio::task::yield_now().await;
            }
        }
        Ok(rest.map_or(first, BytesMut::freeze))
    });
    let began = limits.body_timeout.is_only_measured().then(Instant::now);
    // Most bodies have come with their heads; no timer is made for them.
    let body = match poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await {
        Poll::Ready(body) => body,
        Poll::Pending => tokio::time::timeout(limits.body_timeout.ceiling, reading)
            .await
            .unwrap_or_else(|_| {
                Err(RequestError::http(
                    codes::REQUEST_TIMEOUT,
                    "the request's body did not arrive in time",
                ))
            }),
    }?;
    if let Some(began) = began {
        note(&limits.body_timeout, &began.elapsed(), exceeded);
    }
    // What it becomes when it is decoded is looked at, too.
    note(&limits.body, &body.len(), exceeded);
    Ok(body)
}

/// Notes a batch of more requests than allowed.
pub(crate) fn note_batch(received: &Received, limits: &ReceiveLimits, exceeded: &mut Exceeded) {
    if let (Received::Batch(requests), Some(batch)) = (received, &limits.batch) {
        note(batch, &requests.len(), exceeded);
    }
}

/// As [`GraphqlRequest::bytes`].
fn counted(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn invalid(message: impl Into<String>) -> RequestError {
    RequestError::http(codes::INVALID_GRAPHQL_REQUEST, message)
}

/// Reads the body of a POST that holds one request.
pub fn from_json(body: &[u8], limits: &ReceiveLimits) -> Result<GraphqlRequest, RequestError> {
    match received(&Bytes::copy_from_slice(body), limits, None)? {
        Received::One(request) => Ok(request),
        Received::Batch(_) => Err(invalid("the request's body is not a JSON object")),
    }
}

/// What a body holds. Makes no more of it than whatever somebody reads.
pub(crate) fn received(
    body: &Bytes,
    limits: &ReceiveLimits,
    document_id: Option<&str>,
) -> Result<Received, RequestError> {
    if body.iter().all(u8::is_ascii_whitespace) && document_id.is_none() {
        return Err(invalid(
            "the request's body is empty: send a JSON object with `query`",
        ));
    }
    let most = limits.batch.map_or(0, |batch| batch.ceiling);
    let whole = Whole::read(body, most)
        .map_err(|error| invalid(format!("the request's body is not JSON: {error}")))?;
    match whole {
        Whole::One(members) => members.request(body, document_id).map(Received::One),
        Whole::Batch(_, 0) => Err(invalid("the list of requests is empty")),
        Whole::Batch(..) if limits.batch.is_none() => Err(RequestError::http(
            codes::BATCHING_NOT_ENABLED,
            "batched requests are not served here: send one JSON object",
        )),
        Whole::Batch(_, count) if count > most => Err(RequestError::http(
            codes::BATCH_LIMIT_EXCEEDED,
            format!("the list has {count} requests, more than the {most} allowed"),
        )),
        Whole::Batch(entries, _) => {
            let entries = entries.into_iter();
            let entries = entries.map(|members| members.request(body, document_id));
            Ok(Received::Batch(entries.collect()))
        }
    }
}

/// A body that was scanned.
enum Whole<'b> {
    One(Members<'b>),
    /// As many entries as are allowed, and the number of all.
    Batch(Vec<Members<'b>>, usize),
}

impl<'b> Whole<'b> {
    fn read(body: &'b [u8], most: usize) -> Result<Self, ScanError> {
        let mut scanner = Scanner::with_depth_max(body, json_value::DEPTH_MAX);
        if scanner.peek()? != Kind::Array {
            let members = Members::read(&mut scanner)?;
            scanner.finish()?;
            return Ok(Whole::One(members));
        }
        let (mut entries, mut count) = (Vec::new(), 0);
        let mut more = scanner.begin_array()?;
        while more {
            count += 1;
            if count <= most {
                entries.push(Members::read(&mut scanner)?)
            } else {
                scanner.skip_value()?;
            }
            more = scanner.next_item()?;
        }
        scanner.finish()?;
        Ok(Whole::Batch(entries, count))
    }
}

/// A member of a request, as far as anybody looks at it.
enum Member<'b> {
    Null,
    Text(JsonStr<'b>),
    Object(Range<usize>),
    Other,
}

impl<'b> Member<'b> {
    fn read(scanner: &mut Scanner<'b>) -> Result<Self, ScanError> {
        Ok(match scanner.peek()? {
            Kind::Null => {
                scanner.null()?;
                Member::Null
            }
            Kind::String => Member::Text(scanner.string()?),
            Kind::Object => Member::Object(scanner.skip_value()?),
            _ => {
                scanner.skip_value()?;
                Member::Other
            }
        })
    }
}

/// The members of a request that mean something.
#[derive(Default)]
struct Members<'b> {
    /// Whether it is something else than an object.
    is_other: bool,
    query: Option<Member<'b>>,
    operation_name: Option<Member<'b>>,
    variables: Option<Member<'b>>,
    extensions: Option<Member<'b>>,
    /// By [`DOCUMENT_ID`].
    ids: [Option<Member<'b>>; DOCUMENT_ID.len()],
}

impl<'b> Members<'b> {
    /// Reads a request; of members with the same name the last one counts.
    fn read(scanner: &mut Scanner<'b>) -> Result<Self, ScanError> {
        let mut members = Members::default();
        if scanner.peek()? != Kind::Object {
            scanner.skip_value()?;
            members.is_other = true;
            return Ok(members);
        }
        let mut more = scanner.begin_object()?;
        while more {
            let key = scanner.key()?.unescape();
            match members.place(&key) {
                Some(place) => *place = Some(Member::read(scanner)?),
                None => {
                    scanner.skip_value()?;
                }
            }
            more = scanner.next_member()?;
        }
        Ok(members)
    }

    fn place(&mut self, name: &str) -> Option<&mut Option<Member<'b>>> {
        Some(match name {
            "query" => &mut self.query,
            "operationName" => &mut self.operation_name,
            "variables" => &mut self.variables,
            "extensions" => &mut self.extensions,
            _ => &mut self.ids[DOCUMENT_ID.iter().position(|id| *id == name)?],
        })
    }

    fn request(
        self,
        body: &Bytes,
        document_id: Option<&str>,
    ) -> Result<GraphqlRequest, RequestError> {
        if self.is_other {
            return Err(invalid("the request's body is not a JSON object"));
        }
        let extensions = object("extensions", self.extensions, body)?;
        let persisted_query = persisted_query(&extensions);
        let mut id = document_id.map(str::to_owned);
        for value in self.ids {
            // Other tools use these names for other things.
            if let Some(Member::Text(text)) = value {
                id = id.or_else(|| Some(text.unescape().into_owned()));
            }
        }
        let query = match self.query {
            Some(Member::Text(query)) => query.unescape().into_owned(),
            None | Some(Member::Null) if id.is_some() || persisted_query.is_some() => String::new(),
            None | Some(Member::Null) => return Err(invalid("the request has no `query`")),
            Some(_) => return Err(invalid("`query` is not a string")),
        };
        let operation_name = match self.operation_name {
            Some(Member::Text(name)) => Some(name.unescape().into_owned()),
            None | Some(Member::Null) => None,
            Some(_) => return Err(invalid("`operationName` is not a string")),
        };
        Ok(GraphqlRequest {
            query,
            document_id: id,
            operation_name: operation_name.filter(|name| !name.is_empty()),
            variables: object("variables", self.variables, body)?,
            persisted_query,
            read_only: false,
            may_subscribe: false,
            in_parts: None,
            bytes: counted(body.len()),
            resolved: None,
        })
    }
}

/// Where clients write the id of a document: GraphQL over HTTP's appendix, then Relay's habits.
const DOCUMENT_ID: [&str; 3] = ["documentId", "id", "doc_id"];

/// Reads the query string of a GET.
pub fn from_query(text: &str) -> Result<GraphqlRequest, RequestError> {
    query_request(text, None)
}

fn query_request(text: &str, document_id: Option<&str>) -> Result<GraphqlRequest, RequestError> {
    let mut request = GraphqlRequest {
        read_only: true,
        may_subscribe: false,
        bytes: counted(text.len()),
        document_id: document_id.map(str::to_owned),
        ..GraphqlRequest::default()
    };
    let mut query = None;
    for pair in text.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let is_id = DOCUMENT_ID.contains(&key);
        if !is_id && !matches!(key, "query" | "operationName" | "variables" | "extensions") {
            continue;
        }
        let value = percent::decode_form(value)
            .ok_or_else(|| invalid(format!("`{key}` is not UTF-8 in percent-encoding")))?;
        match key {
            "query" => query = Some(value),
            _ if is_id => {
                request.document_id = request
                    .document_id
                    .or(Some(value).filter(|v| !v.is_empty()));
            }
            "operationName" => request.operation_name = Some(value).filter(|v| !v.is_empty()),
            "variables" => request.variables = object_text("variables", value)?,
            _ => request.persisted_query = persisted_query(&object_text("extensions", value)?),
        }
    }
    let by_id = request.document_id.is_some() || request.persisted_query.is_some();
    request.query = match query.filter(|query| !query.is_empty()) {
        Some(query) => query,
        None if by_id => String::new(),
        None => return Err(invalid("the request has no `query`")),
    };
    Ok(request)
}

fn object(name: &str, value: Option<Member<'_>>, body: &Bytes) -> Result<JsonObject, RequestError> {
    match value {
        Some(Member::Object(range)) => Ok(JsonObject::scanned(body.slice(range))),
        None | Some(Member::Null) => Ok(JsonObject::default()),
        Some(_) => Err(invalid(format!("`{name}` is not a JSON object"))),
    }
}

fn object_text(name: &str, text: String) -> Result<JsonObject, RequestError> {
    if text.is_empty() {
        return Ok(JsonObject::default());
    }
    let is_null = text.trim() == "null";
    let object = JsonObject::read(text.into())
        .map_err(|error| invalid(format!("`{name}` is not JSON: {error}")))?;
    match object {
        Some(object) => Ok(object),
        None if is_null => Ok(JsonObject::default()),
        None => Err(invalid(format!("`{name}` is not a JSON object"))),
    }
}

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

/// Foreign text in a message: short, and nothing but visible ASCII.
fn clip(text: &str) -> String {
    let visible = |c: &char| c.is_ascii_graphic() || *c == ' ';
    bounded(text, 60).chars().filter(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<GraphqlRequest, RequestError>) -> String {
        let error = result.expect_err("must be refused");
        assert_eq!(error.status, 400);
        assert_eq!(error.errors[0].code, codes::INVALID_GRAPHQL_REQUEST);
        error.errors[0].message.clone()
    }

    fn read(body: &[u8]) -> Result<GraphqlRequest, RequestError> {
        from_json(body, &ReceiveLimits::default())
    }

    #[test]
    fn a_body_with_everything() {
        let request = read(
            br#"{"query":"{a}","operationName":"A","variables":{"x":1.0},"extensions":{"x":0,"persistedQuery":{"y":[]}},"more":1}"#,
        )
        .unwrap();
        assert_eq!(request.query, "{a}");
        assert_eq!(request.operation_name.as_deref(), Some("A"));
        assert_eq!(request.variables.text(), br#"{"x":1.0}"#);
        assert_eq!(
            request.persisted_query.as_deref(),
            Some(&br#"{"y":[]}"#[..])
        );
        assert!(!request.read_only);
    }

    #[test]
    fn null_members_count_as_absent() {
        let request =
            read(br#"{"query":"{a}","operationName":null,"variables":null,"extensions":null}"#)
                .unwrap();
        assert_eq!(request.operation_name, None);
        assert!(request.variables.is_empty());
    }

    #[test]
    fn malformed_bodies_say_what_is_wrong() {
        let cases: [(&[u8], &str); 11] = [
            (b"", "is empty"),
            (b" \n", "is empty"),
            (b"{", "is not JSON"),
            (b"\xff", "is not JSON"),
            (b"{\"query\":\"\xff\"}", "is not JSON"),
            (b"3", "is not a JSON object"),
            (b"[]", "list of requests is empty"),
            (b"{}", "no `query`"),
            (b"{\"query\":1}", "`query` is not a string"),
            (
                b"{\"query\":\"{a}\",\"operationName\":1}",
                "`operationName`",
            ),
            (
                b"{\"query\":\"{a}\",\"variables\":[]}",
                "`variables` is not a JSON object",
            ),
        ];
        for (body, wanted) in cases {
            let found = message(read(body));
            assert!(found.contains(wanted), "{found}");
        }
    }

    #[test]
    fn deep_json_is_refused() {
        let body = format!(
            r#"{{"query":"{{a}}","variables":{{"x":{}{}}}}}"#,
            "[".repeat(500_000),
            "]".repeat(500_000)
        );
        assert!(message(read(body.as_bytes())).contains("nested"));
        let query = format!("query={{a}}&variables={}", "[".repeat(500_000));
        assert!(message(from_query(&query)).contains("nested"));
    }

    #[test]
    fn a_query_string_with_everything() {
        let request = from_query(
            "query=query+A(%24x%3AInt)%7Ba%7D&operationName=A&variables=%7B%22x%22%3A1%7D&other=%ff",
        )
        .unwrap();
        assert_eq!(request.query, "query A($x:Int){a}");
        assert_eq!(request.operation_name.as_deref(), Some("A"));
        assert_eq!(request.variables.text(), br#"{"x":1}"#);
        assert!(request.read_only);
    }

    #[test]
    fn malformed_query_strings_say_what_is_wrong() {
        for (query, wanted) in [
            ("", "no `query`"),
            ("query=", "no `query`"),
            ("query=%ff", "percent-encoding"),
            ("query=%2", "percent-encoding"),
            ("query={a}&variables=nope", "`variables` is not JSON"),
            ("query={a}&variables=3", "`variables` is not a JSON object"),
            (
                "query={a}&extensions=[]",
                "`extensions` is not a JSON object",
            ),
        ] {
            let found = message(from_query(query));
            assert!(found.contains(wanted), "{query}: {found}");
        }
    }
}
