//! Policies that a service decides: asked with the claims of a caller, and for all policies of an operation at once.
//!
//! ```json
//! { "version": 1, "policies": ["paid"], "scopes": ["read"], "claims": { "sub": "ida" } }
//! { "policies": { "paid": true } }
//! ```
//!
//! What it does not say `true` of does not hold. Decisions are remembered by policy and by everything it was told of the
//! caller. If it does not answer, nothing holds and whoever asks is told so: that nobody decided is not remembered.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use ogive_base::without_secrets;
use ogive_transport::Source;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    caller::Caller,
    digest::{Digest, digest_of},
    inflight::{AnswerCache, ENTRY_BYTES, Inflight},
    json,
    key_fetch::max_age,
};

/// Largest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// How a service is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyServiceOptions {
    /// Where it is.
    pub url: String,
    /// Headers to send along.
    pub headers: HeaderMap,
    /// How long it may take.
    pub timeout: Duration,
    /// Most requests at a time.
    pub in_flight_max: usize,
    /// How long decisions are good.
    pub ttl: Duration,
    /// Most bytes of decisions that are remembered.
    pub cache_bytes_max: usize,
}

/// Why nothing is decided, for the operator.
pub type PolicyError = Arc<str>;

/// A service that decides policies.
#[derive(Debug)]
pub struct PolicyService {
    options: PolicyServiceOptions,
    source: Result<Source, String>,
    slots: Semaphore,
    decided: AnswerCache<bool>,
    /// Those of the policies asked for that hold, by their places.
    under_way: Inflight<Result<Arc<[bool]>, PolicyError>>,
    /// Whether it failed when it was asked last.
    has_failed: AtomicBool,
}

impl PolicyService {
    /// A service that is asked when somebody wants to know.
    pub fn new(options: PolicyServiceOptions) -> Self {
        let source = Source::kept(&options.url).map(|mut source| {
            source.timeout = options.timeout;
            source.body_bytes_max = ANSWER_BYTES_MAX;
            source
        });
        PolicyService {
            source,
            slots: Semaphore::new(options.in_flight_max),
            decided: AnswerCache::new(options.cache_bytes_max),
            under_way: Inflight::default(),
            has_failed: AtomicBool::new(false),
            options,
        }
    }
    /// How it is asked.
    pub fn options(&self) -> &PolicyServiceOptions {
        &self.options
    }
    /// Where it is, without anything secret.
    pub fn shown(&self) -> String {
        without_secrets(&self.options.url)
    }
    /// Decisions that are remembered.
    pub fn remembered(&self) -> usize {
        self.decided.len()
    }

    /// Which of these policies hold for a caller, by their places. The error says that nobody knows.
    pub async fn decide(
        &self,
        policies: &[&str],
        caller: &Caller,
    ) -> Result<Vec<bool>, PolicyError> {
        let of_caller = caller.digest();
        let now = Instant::now();
        let known: Vec<Option<bool>> = policies
            .iter()
            .map(|policy| self.decided.get(&key_of(of_caller, &[policy]), now))
            .collect();
        let unknown = policies.iter().zip(&known);
        let unknown: Vec<&str> = unknown
            .filter(|(_, k)| k.is_none())
            .map(|(p, _)| *p)
            .collect();
        let mut answers = if unknown.is_empty() {
            Vec::new()
        } else {
            let ask = async || {
                // Who asked before may have been told since it was looked.
                let now = Instant::now();
                let told: Option<Arc<[bool]>> = unknown
                    .iter()
                    .map(|policy| self.decided.get(&key_of(of_caller, &[policy]), now))
                    .collect();
                match told {
                    Some(told) => Ok(told),
                    None => self.asked(&unknown, caller).await,
                }
            };
            let asked = self.under_way.share(key_of(of_caller, &unknown), ask);
            asked.await?.to_vec()
        }
        .into_iter();
        let decided = known.into_iter();
        Ok(decided
            .map(|known| known.unwrap_or_else(|| answers.next().unwrap_or(false)))
            .collect())
    }

    /// Asks, and remembers what was said. Whoever needs it tells the operator of failures; here it is told that they are over.
    async fn asked(&self, policies: &[&str], caller: &Caller) -> Result<Arc<[bool]>, PolicyError> {
        match self.ask(policies, caller).await {
            Ok((answers, fresh)) => {
                if self.has_failed.swap(false, Ordering::Relaxed) {
                    tracing::info!(from = self.shown(), "policies are decided again");
                }
                let ttl = fresh.map_or(self.options.ttl, |fresh| fresh.min(self.options.ttl));
                if !ttl.is_zero() {
                    for (policy, answer) in policies.iter().zip(&*answers) {
                        let (key, until) =
                            (key_of(caller.digest(), &[policy]), Instant::now() + ttl);
                        self.decided.insert(key, *answer, until, ENTRY_BYTES);
                    }
                }
                Ok(answers)
            }
            Err(why) => {
                self.has_failed.store(true, Ordering::Relaxed);
                Err(why.into())
            }
        }
    }

    async fn ask(
        &self,
        policies: &[&str],
        caller: &Caller,
    ) -> Result<(Arc<[bool]>, Option<Duration>), String> {
        let source = self.source.as_ref().map_err(Clone::clone)?;
        let body = json!({
            "version": 1,
            "policies": policies,
            "scopes": caller.granted.scopes,
            "claims": caller.claims,
        });
        let mut headers = self.options.headers.clone();
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json.clone());
        headers.entry(header::ACCEPT).or_insert(json);
        let sent = async {
            // It is never closed.
            let _slot = self.slots.acquire().await;
            let body = Bytes::from(body.to_string());
            source.send(Method::POST, headers, body).await
        };
        let answer = match tokio::time::timeout(self.options.timeout, sent).await {
            Ok(answer) => answer?,
            Err(_) => return Err(format!("no answer within {:?}", self.options.timeout)),
        };
        if answer.status != 200 {
            return Err(format!("it answers {}", answer.status));
        }
        Ok((read(&answer.body, policies)?, max_age(&answer.headers)))
    }
}

/// What an answer says of policies.
fn read(answer: &[u8], policies: &[&str]) -> Result<Arc<[bool]>, String> {
    let members = json::object(answer);
    let Some(Value::Object(said)) = members.as_ref().and_then(|m| m.get("policies")) else {
        return Err("it answers with no JSON object that has `policies`".into());
    };
    let of = |policy: &&str| match said.get(*policy) {
        Some(Value::Bool(holds)) => Ok(*holds),
        None | Some(Value::Null) => Ok(false),
        Some(_) => Err("it says of a policy neither `true` nor `false`".to_owned()),
    };
    policies.iter().map(of).collect()
}

/// What a decision about policies is known by.
fn key_of(of_caller: &Digest, policies: &[&str]) -> Digest {
    let mut text = of_caller.to_vec();
    for policy in policies {
        text.extend_from_slice(&(policy.len() as u64).to_le_bytes());
        text.extend_from_slice(policy.as_bytes());
    }
    digest_of(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_to_hold_does_not_hold() {
        let read = |answer: &str| read(answer.as_bytes(), &["a", "b"]).map(|all| all.to_vec());
        assert_eq!(
            read(r#"{"policies":{"a":true,"b":false}}"#),
            Ok(vec![true, false])
        );
        assert_eq!(
            read(r#"{"policies":{"a":null,"c":true}}"#),
            Ok(vec![false, false])
        );
        for bad in [
            "",
            "true",
            "{}",
            r#"{"policies":["a","b"]}"#,
            r#"{"policies":{"a":"true"}}"#,
            r#"{"policies":{"a":1}}"#,
            r#"{"policies":{"a":true},"policies":{}}"#,
            r#"{"policies":{"a":false,"a":true}}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn decisions_are_known_by_all_that_was_asked() {
        let of = |caller: u8, policies: &[&str]| key_of(&[caller; 32], policies);
        let all = [
            of(1, &["a"]),
            of(2, &["a"]),
            of(1, &["ab"]),
            of(1, &["a", "b"]),
            of(1, &["b", "a"]),
        ];
        let distinct: std::collections::BTreeSet<Digest> = all.into();
        assert_eq!(distinct.len(), all.len());
    }
}
