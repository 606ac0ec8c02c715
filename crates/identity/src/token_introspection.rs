//! Tokens that only their issuer can read (RFC 7662): it is asked whether they hold, and what they say.
//!
//! What it said is remembered by the digest of the token: a good one until it ends, but not for longer than the
//! configuration says, so that a token that was taken back is refused soon; a bad one for a short time. If the endpoint
//! does not answer, nobody knows, and nothing is remembered. Who asks for one token at the same time waits for one request.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use ogive_base::{encode::percent_encode, without_secrets};
use ogive_transport::Source;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::{
    base64url,
    caller::{Caller, CallerOptions},
    claims::{self, ClaimRules},
    digest::digest_of,
    error::TokenError,
    inflight::{AnswerCache, ENTRY_BYTES, Inflight},
    json,
    key_source::now,
    token_cache::size_of,
};

/// Largest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// How an endpoint is asked.
#[derive(Clone, PartialEq, Eq)]
pub struct IntrospectionOptions {
    /// Where it is.
    pub endpoint: String,
    /// Who the gateway is to it.
    pub client_id: String,
    /// Its secret; none if `headers` say who asks.
    pub client_secret: String,
    /// Whether both are in the body instead of the header `authorization`.
    pub in_body: bool,
    /// Headers to send along.
    pub headers: HeaderMap,
    /// One of these has to be in `aud`; none listed: whatever it says.
    pub audiences: Vec<Box<str>>,
    /// How claims are read.
    pub caller: CallerOptions,
    /// How far clocks may differ.
    pub clock_skew: Duration,
    /// How long it may take.
    pub timeout: Duration,
    /// Most requests at a time.
    pub in_flight_max: usize,
    /// How long a good token is believed without asking again.
    pub ttl: Duration,
    /// How long a bad one is refused without asking again.
    pub inactive_ttl: Duration,
    /// Most bytes of answers that are remembered.
    pub cache_bytes_max: usize,
    /// Largest token, in bytes.
    pub token_bytes_max: usize,
}

/// Never shows the secret.
impl std::fmt::Debug for IntrospectionOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IntrospectionOptions")
            .field("endpoint", &without_secrets(&self.endpoint))
            .field("client_id", &self.client_id)
            .field("in_body", &self.in_body)
            .field("headers", &self.headers)
            .field("audiences", &self.audiences)
            .field("caller", &self.caller)
            .field("clock_skew", &self.clock_skew)
            .field("timeout", &self.timeout)
            .field("in_flight_max", &self.in_flight_max)
            .field("ttl", &self.ttl)
            .field("inactive_ttl", &self.inactive_ttl)
            .field("cache_bytes_max", &self.cache_bytes_max)
            .field("token_bytes_max", &self.token_bytes_max)
            .finish_non_exhaustive()
    }
}

/// What is known of a token: who has it, and the second since 1970 from which on it does not hold; or why it does not.
type Verdict = Result<(Arc<Caller>, u64), TokenError>;

/// An endpoint that is asked.
#[derive(Debug)]
pub struct TokenIntrospection {
    options: IntrospectionOptions,
    source: Result<Source, String>,
    slots: Semaphore,
    known: AnswerCache<Verdict>,
    asking: Inflight<Verdict>,
    /// Whether the operator was told that it fails.
    is_told: AtomicBool,
}

/// Whether a token is one that key sets could prove: three parts, of which the first is a JSON object.
pub fn is_jwt(token: &str) -> bool {
    let mut parts = token.split('.');
    let (Some(head), Some(_), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let head = base64url::decode(head.as_bytes());
    head.is_some_and(|head| head.trim_ascii_start().starts_with(b"{"))
}

impl TokenIntrospection {
    /// An endpoint that is asked when a token comes.
    pub fn new(options: IntrospectionOptions) -> Self {
        let source = Source::kept(&options.endpoint).map(|mut source| {
            source.timeout = options.timeout;
            source.body_bytes_max = ANSWER_BYTES_MAX;
            source
        });
        TokenIntrospection {
            source,
            slots: Semaphore::new(options.in_flight_max),
            known: AnswerCache::new(options.cache_bytes_max),
            asking: Inflight::default(),
            is_told: AtomicBool::new(false),
            options,
        }
    }
    /// How it is asked.
    pub fn options(&self) -> &IntrospectionOptions {
        &self.options
    }
    /// Where it is, without anything secret.
    pub fn shown(&self) -> String {
        without_secrets(&self.options.endpoint)
    }

    /// Who has a token, and until when that holds; the endpoint is asked if that is not known.
    pub async fn caller(&self, token: &str) -> Result<(Arc<Caller>, u64), TokenError> {
        if token.len() > self.options.token_bytes_max {
            return Err(TokenError::Malformed("the token is too large"));
        }
        // RFC 6750, section 2.1.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if !token.bytes().all(is_plain) {
            return Err(TokenError::Malformed(
                "the token has other characters than tokens have",
            ));
        }
        let digest = digest_of(token.as_bytes());
        let verdict = match self.known.get(&digest, Instant::now()) {
            Some(verdict) => verdict,
            None => {
                let ask = async || {
                    // Who asked before may have been told since it was looked.
                    match self.known.get(&digest, Instant::now()) {
                        Some(verdict) => verdict,
                        None => {
                            let verdict = self.asked(token).await;
                            self.remember(digest, token, &verdict);
                            verdict
                        }
                    }
                };
                self.asking.share(digest, ask).await
            }
        };
        match verdict {
            Ok((_, end)) if end <= now() => Err(TokenError::Expired),
            verdict => verdict,
        }
    }

    fn remember(&self, digest: crate::digest::Digest, token: &str, verdict: &Verdict) {
        let (ttl, size) = match verdict {
            Ok((caller, end)) => {
                let left = Duration::from_secs(end.saturating_sub(now()));
                let claims = Value::Object(caller.claims.clone()).to_string();
                (
                    self.options.ttl.min(left),
                    size_of(token.len() + claims.len()),
                )
            }
            Err(TokenError::Unanswered) => return,
            Err(_) => (self.options.inactive_ttl, ENTRY_BYTES),
        };
        if !ttl.is_zero() {
            let until = Instant::now() + ttl;
            self.known.insert(digest, verdict.clone(), until, size);
        }
    }

    /// Asks, and tells the operator of the first failure in a row.
    async fn asked(&self, token: &str) -> Verdict {
        let answer = self.ask(token).await;
        let verdict = answer.and_then(|answer| self.read(&answer));
        match verdict {
            Ok(verdict) => {
                if self.is_told.swap(false, Ordering::Relaxed) {
                    tracing::info!(from = self.shown(), "tokens are introspected again");
                }
                verdict
            }
            Err(why) => {
                if !self.is_told.swap(true, Ordering::Relaxed) {
                    tracing::error!(from = self.shown(), "tokens are not introspected: {why}");
                }
                Err(TokenError::Unanswered)
            }
        }
    }

    async fn ask(&self, token: &str) -> Result<Bytes, String> {
        let source = self.source.as_ref().map_err(Clone::clone)?;
        let (headers, body) = self.request(token);
        let sent = async {
            // It is never closed.
            let _slot = self.slots.acquire().await;
            source.send(Method::POST, headers, body).await
        };
        let answer = match tokio::time::timeout(self.options.timeout, sent).await {
            Ok(answer) => answer?,
            Err(_) => return Err(format!("no answer within {:?}", self.options.timeout)),
        };
        match answer.status {
            200 => Ok(answer.body),
            401 => Err("it answers 401: it does not know the gateway".to_owned()),
            status => Err(format!("it answers {status}")),
        }
    }

    fn request(&self, token: &str) -> (HeaderMap, Bytes) {
        let options = &self.options;
        let mut headers = options.headers.clone();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, form);
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let encoded = |text: &str| {
            let mut out = String::with_capacity(text.len());
            percent_encode(&mut out, text.as_bytes(), b"");
            out
        };
        let (id, secret) = (encoded(&options.client_id), encoded(&options.client_secret));
        let mut body = format!("token={}&token_type_hint=access_token", encoded(token));
        if options.in_body {
            body.push_str(&format!("&client_id={id}&client_secret={secret}"));
        } else if !id.is_empty() {
            let basic = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
            if let Ok(mut basic) = HeaderValue::from_str(&basic) {
                basic.set_sensitive(true);
                headers.insert(header::AUTHORIZATION, basic);
            }
        }
        (headers, body.into())
    }

    /// What an answer says. The error is for the operator: that it says nothing.
    fn read(&self, answer: &[u8]) -> Result<Verdict, String> {
        let Some(mut members) = json::object(answer) else {
            return Err("it answers with no JSON object".into());
        };
        match members.remove("active") {
            Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => return Ok(Err(TokenError::Inactive)),
            _ => return Err("it does not say whether the token is `active`".into()),
        }
        if !is_for_access(&members) {
            return Ok(Err(TokenError::Inactive));
        }
        let rules = ClaimRules {
            audiences: &self.options.audiences,
            allow_missing_exp: true,
            skew: self.options.clock_skew.as_secs(),
        };
        match claims::check(&members, rules, now()) {
            Ok(end) => {
                let caller = Caller::proved(members, &self.options.caller);
                Ok(Ok((Arc::new(caller), end)))
            }
            Err(TokenError::Malformed(why)) => Err(why.into()),
            Err(error) => Ok(Err(error)),
        }
    }
}

/// Whether a token is one to ask with: not one to get others with, nor one about a person, nor one that holds only for whoever
/// has a key (RFC 7800), which nobody checks here.
fn is_for_access(members: &Map<String, Value>) -> bool {
    let is_one_of = |name: &str, words: &[&str]| match members.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(word)) => words.iter().any(|known| known.eq_ignore_ascii_case(word)),
        Some(_) => false,
    };
    !members.contains_key("cnf")
        && is_one_of("token_type", &["bearer", "access_token"])
        && is_one_of("token_use", &["access", "access_token"])
        && is_one_of("typ", &["bearer", "jwt", "at+jwt"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn endpoint(in_body: bool) -> TokenIntrospection {
        TokenIntrospection::new(IntrospectionOptions {
            endpoint: "http://127.0.0.1:1/".into(),
            client_id: "gate:way".into(),
            client_secret: "s3c ret".into(),
            in_body,
            headers: HeaderMap::new(),
            audiences: vec!["us".into()],
            caller: CallerOptions::default(),
            clock_skew: Duration::ZERO,
            timeout: Duration::from_secs(1),
            in_flight_max: 1,
            ttl: Duration::from_secs(60),
            inactive_ttl: Duration::ZERO,
            cache_bytes_max: 1 << 20,
            token_bytes_max: 100,
        })
    }

    #[test]
    fn the_gateway_says_who_it_is_in_the_header_or_the_body() {
        let (headers, body) = endpoint(false).request("a+/=");
        let both = STANDARD.encode("gate%3Away:s3c%20ret");
        assert_eq!(headers[header::AUTHORIZATION], format!("Basic {both}"));
        assert_eq!(body, "token=a%2B%2F%3D&token_type_hint=access_token");
        let (headers, body) = endpoint(true).request("a");
        assert!(!headers.contains_key(header::AUTHORIZATION));
        let expected =
            "token=a&token_type_hint=access_token&client_id=gate%3Away&client_secret=s3c%20ret";
        assert_eq!(body, expected);
        assert!(!format!("{:?}", endpoint(true)).contains("s3c"));
    }

    #[test]
    fn only_tokens_to_ask_with_count_and_what_says_nothing_is_no_answer() {
        let read = |answer: Value| endpoint(false).read(answer.to_string().as_bytes());
        let good = json!({ "active": true, "aud": "us", "sub": "ida", "scope": "a b" });
        let (caller, end) = read(good.clone()).unwrap().unwrap();
        assert_eq!((end, caller.granted.scopes.len()), (u64::MAX, 2));
        assert_eq!(caller.claim("sub").as_deref(), Some("ida"));
        let with = |name: &str, value: Value| {
            let mut answer = good.clone();
            answer[name] = value;
            read(answer)
        };
        for (name, value, expected) in [
            ("active", json!(false), TokenError::Inactive),
            ("token_type", json!("DPoP"), TokenError::Inactive),
            ("token_use", json!("refresh_token"), TokenError::Inactive),
            ("typ", json!("Refresh"), TokenError::Inactive),
            ("cnf", json!({}), TokenError::Inactive),
            ("aud", json!(["them"]), TokenError::Audience),
            ("exp", json!(1), TokenError::Expired),
            ("nbf", json!(99_999_999_999u64), TokenError::NotYetValid),
        ] {
            assert_eq!(
                with(name, value).unwrap().map(|_| ()),
                Err(expected),
                "{name}"
            );
        }
        for (name, value) in [
            ("token_type", "Bearer"),
            ("typ", "at+jwt"),
            ("token_use", "access_token"),
        ] {
            assert!(with(name, value.into()).unwrap().is_ok(), "{name}");
        }
        for (name, value) in [
            ("active", json!("true")),
            ("active", json!(1)),
            ("exp", json!("1")),
            ("sub", json!(1)),
        ] {
            assert!(with(name, value).is_err(), "{name}");
        }
        assert!(read(json!([])).is_err() && read(json!({})).is_err());
    }

    #[test]
    fn tokens_of_key_sets_are_told_from_others() {
        for (token, expected) in [
            ("e30.e30.AA", true),
            ("eyJhbGciOiJub25lIn0.e30.", true),
            ("abc", false),
            ("a.b.c", false),
            ("e30.e30", false),
            ("e30.e30.e30.e30.e30", false),
        ] {
            assert_eq!(is_jwt(token), expected, "{token}");
        }
    }
}
