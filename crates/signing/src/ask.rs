//! Single requests to those who give tokens and credentials: bounded in size and time, without redirects.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use ogive_transport::{Http2, Source};
use serde_json::Value;

/// Largest answer. Tokens with all claims of a company are some kilobytes.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 << 10;

/// An answer with a good status.
pub(crate) async fn ask(
    url: &str,
    timeout: Duration,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Bytes, String> {
    let mut source = Source::new(url, Http2::Enable)?;
    source.timeout = timeout;
    source.body_bytes_max = ANSWER_BYTES_MAX;
    let answer = source.send(method, headers, body).await?;
    match answer.status {
        200..300 => Ok(answer.body),
        status => Err(match word(&answer.body) {
            Some(word) => format!("it answered {status}, `{word}`"),
            None => format!("it answered {status}"),
        }),
    }
}

/// The word by which an answer says what is wrong (RFC 6749, section 5.2). Nothing else of it is shown: it may repeat what
/// it was sent.
fn word(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let word = value.get("error").or(value.get("Code"))?.as_str()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    (word.len() <= 64 && word.chars().all(plain)).then(|| word.to_owned())
}
