//! Single requests to those who give tokens and credentials: bounded in size and time, without redirects.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use ogive_json::{Node, Tree};
use ogive_transport::{Http2, Source};

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

/// Most objects and lists of an answer that are open at a time.
const DEPTH_MAX: u32 = 32;

/// An answer as JSON. Not by `serde_json`, which recurses without a limit into objects with one of its private names.
pub(crate) fn json(answer: &[u8]) -> Option<Tree<'_>> {
    Tree::read(answer, DEPTH_MAX).ok()
}

/// The word by which an answer says what is wrong (RFC 6749, section 5.2). Nothing else of it is shown: it may repeat what
/// it was sent.
fn word(body: &[u8]) -> Option<String> {
    let answer = json(body)?;
    let answer = answer.root();
    let word = answer.get("error").or(answer.get("Code"));
    let word = word.and_then(Node::string)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    (word.len() <= 64 && word.chars().all(plain)).then(|| word.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each text is read as JSON again by `serde_json`, with lists of its own.
    #[test]
    fn texts_within_texts_nest_nothing() {
        let mut answer = "1".to_owned();
        for _ in 0..9 {
            let lists = format!("{}{answer}{}", "[".repeat(100), "]".repeat(100));
            let mut text = Vec::new();
            ogive_json::write_string(&mut text, &lists);
            let text = String::from_utf8(text).unwrap();
            answer = format!("{{\"error\":\"bad\",\"$serde_json::private::RawValue\":{text}}}");
        }
        assert_eq!(word(answer.as_bytes()).as_deref(), Some("bad"));
        assert!(json(&[b'['; 1 << 17]).is_none());
    }
}
