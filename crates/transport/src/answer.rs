//! What becomes of an answer, whatever brings it: its limits while it arrives, redirects, decoding.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode, header};
use ogive_base::Reservation;
use ogive_execute::{Failure, SubgraphResponse};

use crate::{
    budget::{Budget, Reading},
    encoding::{self, DecodeError, Encoding},
    endpoint::Endpoint,
    error::{HTTP_ERROR, REDIRECT, failed, over_budget},
    http1::framing::{self, is_personal},
};

/// Bytes that are read in one go; then other requests have their turn.
const TURN: usize = 64 << 10;

/// A whole answer.
#[derive(Clone)]
pub(crate) struct Exchanged {
    pub(crate) response: SubgraphResponse,
    /// How long the subgraph asks to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// Its headers; without rules for them, only those that decided what became of it.
    pub(crate) headers: HeaderMap,
    /// Whether it belongs to whoever asked for it alone.
    pub(crate) personal: bool,
    /// Names of headers that were sent for this client request alone, so that headers of the answer with the same name
    /// speak of it: ids of requests and traces. Empty without rules for the answer's headers.
    pub(crate) echoes: Vec<HeaderName>,
}

impl Exchanged {
    /// As those get it who did not ask themselves.
    pub(crate) fn for_others(mut self) -> Self {
        for name in self.echoes.drain(..) {
            self.headers.remove(name);
        }
        self
    }
}

/// What an answer begins with.
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// See [`Exchanged::personal`].
    pub(crate) personal: bool,
}

impl Head {
    /// That of an answer of which all headers are known.
    pub(crate) fn new(status: StatusCode, headers: HeaderMap) -> Self {
        let mut all = headers.iter();
        let personal = all.any(|(name, value)| is_personal(name.as_str(), value.as_bytes()));
        Head {
            status,
            headers,
            personal,
        }
    }
}

impl From<framing::Head> for Head {
    fn from(head: framing::Head) -> Self {
        Head {
            status: head.status,
            headers: head.headers,
            personal: head.personal,
        }
    }
}

/// The limits of an answer that arrives.
pub(crate) struct Intake<'e> {
    endpoint: &'e Endpoint,
    budget: &'e Budget<'e>,
    reading: Reading<'e, 'e>,
    limit: usize,
    came: usize,
    turn: usize,
}

impl<'e> Intake<'e> {
    pub(crate) fn new(endpoint: &'e Endpoint, budget: &'e Budget<'e>) -> Self {
        Intake {
            endpoint,
            budget,
            reading: budget.read(),
            limit: endpoint.traffic.response_bytes_refused(),
            came: 0,
            turn: TURN,
        }
    }

    /// Bytes beyond which it is refused.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// The answer will have at least so many bytes. How many is up to what a client asks for, so one that is too large is
    /// not held against the subgraph.
    pub(crate) fn announced(&self, bytes: u64) -> Result<(), Failure> {
        if bytes <= self.limit as u64 {
            return Ok(());
        }
        let what = "the answer is too large";
        let detail = format!(
            "the answer is larger than {} bytes: see `response_max_bytes`",
            self.limit
        );
        Err(failed(HTTP_ERROR, &self.endpoint.name, what, detail).answered())
    }

    /// So many bytes of it have come altogether. Gives other requests a turn now and then.
    pub(crate) async fn came(&mut self, bytes: usize) -> Result<(), Failure> {
        self.announced(bytes as u64)?;
        if !self.reading.take(bytes - self.came) {
            return Err(over_budget(&self.endpoint.name, self.budget));
        }
        self.came = bytes;
        if bytes >= self.turn {
            self.turn = bytes + TURN;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// It is whole.
    pub(crate) fn whole(self) {
        measure(self.endpoint, self.came, self.budget);
    }

    /// The connection ended before that.
    pub(crate) fn cut(&self, why: String) -> Failure {
        failed(
            HTTP_ERROR,
            &self.endpoint.name,
            "the connection failed in the middle of an answer",
            why,
        )
        .retried()
    }
}

pub(crate) fn no_redirect(
    endpoint: &Endpoint,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<(), Failure> {
    if !status.is_redirection() {
        return Ok(());
    }
    match headers.get(header::LOCATION) {
        Some(to) => Err(failed(
            REDIRECT,
            &endpoint.name,
            "the subgraph answered with a redirect, which is not followed",
            format!("{status} to {to:?}: correct its URL"),
        )),
        None => Ok(()),
    }
}

/// An answer that has arrived, decoded.
pub(crate) async fn whole(
    endpoint: &Endpoint,
    head: Head,
    body: Bytes,
    budget: &Budget<'_>,
) -> Result<Exchanged, Failure> {
    let body = match Encoding::of(&head.headers) {
        Ok(None) => body,
        Ok(Some(encoding)) => Box::pin(decoded(endpoint, encoding, &body, budget)).await?,
        Err(name) => {
            let what = "the answer is in an encoding that is not supported";
            let detail = format!("content-encoding `{name}`");
            return Err(failed(HTTP_ERROR, &endpoint.name, what, detail));
        }
    };
    Ok(Exchanged {
        response: SubgraphResponse {
            status: head.status.as_u16(),
            body,
        },
        retry_after: retry_after(&head.headers),
        headers: head.headers,
        personal: head.personal,
        echoes: Vec::new(),
    })
}

pub(crate) async fn decoded(
    endpoint: &Endpoint,
    encoding: Encoding,
    body: &[u8],
    budget: &Budget<'_>,
) -> Result<Bytes, Failure> {
    let most = endpoint.traffic.response_bytes_refused();
    let limit = most.min(budget.left());
    // It counts while it comes out; whoever keeps the answer takes it for good.
    let memory = budget.process().map(Reservation::beside);
    let (what, detail) = match encoding::decode(encoding, body, limit, memory.as_ref()).await {
        Ok(body) => {
            measure(endpoint, body.len(), budget);
            return Ok(body);
        }
        Err(DecodeError::OutOfMemory) => return Err(over_budget(&endpoint.name, budget)),
        Err(DecodeError::TooLarge) if limit < most => {
            return Err(over_budget(&endpoint.name, budget));
        }
        Err(DecodeError::TooLarge) => {
            let what = "the answer is too large";
            let detail = format!(
                "the decoded answer is larger than {limit} bytes: see `response_max_bytes`"
            );
            return Err(failed(HTTP_ERROR, &endpoint.name, what, detail).answered());
        }
        Err(DecodeError::Malformed(why)) => (
            "the answer cannot be decoded",
            format!("it is no {}: {why}", encoding.name()),
        ),
    };
    Err(failed(HTTP_ERROR, &endpoint.name, what, detail))
}

/// `retry-after`, in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(
        date.duration_since(SystemTime::now())
            .unwrap_or(Duration::ZERO),
    )
}

/// Notes an answer beyond a limit that is only measured.
fn measure(endpoint: &Endpoint, bytes: usize, budget: &Budget<'_>) {
    let limit = endpoint.traffic.response_bytes_max;
    if bytes > limit && budget.note_answer() {
        let subgraph = &*endpoint.name;
        tracing::warn!(
            subgraph,
            bytes,
            limit,
            "an answer exceeds `response_max_bytes`, which is only measured"
        );
    }
}
