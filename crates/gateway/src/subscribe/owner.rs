//! By whose credential a subscription goes on: whether two are of one caller, when one ends, what of it a source keeps.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_base::Client;
use ogive_identity::{Caller, claims::END_MAX};
use ogive_plan::Claims;
use serde_json::{Map, Value};

use crate::shared::context::{Identity, OperationContext};

/// Claims about a token rather than about whoever has it.
const OF_TOKENS: [&str; 6] = ["exp", "expires_in", "iat", "nbf", "jti", "auth_time"];

/// A caller without what a fresh token says anew. Of those of whom nothing is known all are equal.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Owner {
    granted: Claims,
    claims: Map<String, Value>,
}

impl Owner {
    pub(crate) fn of(caller: Option<&Caller>) -> Self {
        let Some(caller) = caller else {
            return Owner::default();
        };
        let claims = caller.claims.iter();
        let kept = claims.filter(|(name, _)| !OF_TOKENS.contains(&name.as_str()));
        Owner {
            granted: caller.granted.clone(),
            claims: kept
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }
}

/// Who opened a source, or by whose credential it goes on. What subgraphs see of it is the same for all who share it.
#[derive(Debug)]
pub(crate) struct Opener {
    pub(crate) headers: HeaderMap,
    pub(crate) caller: Option<Arc<Caller>>,
    pub(crate) client: Option<Client>,
}

impl Opener {
    /// As an operation of it.
    pub(crate) fn context(&self) -> OperationContext<'_> {
        let context = OperationContext::new(&self.headers).asked_by(self.caller.clone());
        match self.client {
            Some(client) => context.of_client(client),
            None => context,
        }
    }
}

/// The same headers on their own. Values share memory with the whole head of the request in which they came, which would
/// be kept for as long as one of them is.
pub(crate) fn kept_apart<'h>(
    headers: impl IntoIterator<Item = (&'h HeaderName, &'h HeaderValue)>,
) -> HeaderMap {
    let apart = |(name, value): (&HeaderName, &HeaderValue)| {
        // What is a value is one as a copy, too.
        let mut copy = HeaderValue::from_bytes(value.as_bytes()).ok()?;
        copy.set_sensitive(value.is_sensitive());
        Some((name.clone(), copy))
    };
    let headers: Vec<_> = headers.into_iter().filter_map(apart).collect();
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        kept.append(name, value);
    }
    kept
}

/// When a caller's credential ends, since 1970; `None` if it does not say. Before 1970 it has ended, and with the year 9999
/// everything has.
fn end_of(caller: &Caller) -> Option<Duration> {
    let claim = caller.claims.get("exp").and_then(Value::as_f64);
    let claim = claim.map(|at| Duration::from_secs_f64(at.clamp(0.0, END_MAX as f64)));
    let end = caller.end.map(|end| Duration::from_secs(end.min(END_MAX)));
    claim.into_iter().chain(end).min()
}

/// The same in whole seconds, for a caller whose claims change.
pub(crate) fn ends_at(caller: &Caller) -> Option<u64> {
    end_of(caller).map(|end| end.as_secs())
}

/// How long a caller's credential still holds; `None` if it does not say.
pub(crate) fn expires_after(caller: &Caller) -> Option<Duration> {
    let expires = end_of(caller)?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Some(expires.saturating_sub(now))
}

/// How long what an identity says of its caller still holds; `None` if nobody says.
pub(crate) fn claims_end(identity: &Identity) -> Option<Duration> {
    let caller = identity.caller.as_deref()?.as_ref().ok()?;
    expires_after(caller)
}

#[cfg(test)]
mod tests {
    use ogive_identity::CallerOptions;
    use serde_json::json;

    use super::*;

    fn owner(claims: Value) -> Owner {
        let claims = claims.as_object().unwrap().clone();
        Owner::of(Some(&Caller::proved(claims, &CallerOptions::default())))
    }

    #[test]
    fn headers_that_are_kept_share_nothing_with_those_they_came_with() {
        let head = bytes::Bytes::from_static(b"a-value-of-a-head");
        let mut value = HeaderValue::from_maybe_shared(head.slice(2..7)).unwrap();
        value.set_sensitive(true);
        let mut headers = HeaderMap::new();
        for _ in 0..2 {
            headers.append("x-one", value.clone());
        }
        let apart = kept_apart(&headers);
        assert_eq!(apart, headers);
        assert!(apart["x-one"].is_sensitive());
        let lies_in =
            |value: &HeaderValue| head.as_ptr_range().contains(&value.as_bytes().as_ptr());
        assert!(headers.values().all(lies_in));
        assert!(!apart.values().any(lies_in));
    }

    #[test]
    fn a_credential_ends_when_the_first_says_so_that_says_anything() {
        let caller = |claims: Value, end| Caller {
            end,
            ..Caller::proved(
                claims.as_object().unwrap().clone(),
                &CallerOptions::default(),
            )
        };
        assert_eq!(ends_at(&caller(json!({}), None)), None);
        assert_eq!(ends_at(&caller(json!({"exp": 70.5}), None)), Some(70));
        assert_eq!(ends_at(&caller(json!({}), Some(80))), Some(80));
        assert_eq!(ends_at(&caller(json!({"exp": 90}), Some(80))), Some(80));
        assert_eq!(ends_at(&caller(json!({"exp": 70}), Some(80))), Some(70));
        assert_eq!(ends_at(&caller(json!({"exp": -1}), None)), Some(0));
        for far in [1e19, 1e30, f64::MAX] {
            let far = caller(json!({ "exp": far }), Some(u64::MAX));
            assert_eq!(ends_at(&far), Some(END_MAX));
        }
    }

    #[test]
    fn a_fresh_token_is_of_the_same_caller_only_if_it_says_the_same_of_it() {
        let first = owner(json!({"sub": "a", "scope": "r", "exp": 1, "jti": "x"}));
        assert_eq!(
            first,
            owner(json!({"sub": "a", "scope": "r", "exp": 2, "iat": 1}))
        );
        assert_ne!(first, owner(json!({"sub": "b", "scope": "r", "exp": 2})));
        assert_ne!(first, owner(json!({"sub": "a", "scope": "r w", "exp": 2})));
        assert_ne!(first, Owner::of(None));
    }
}
