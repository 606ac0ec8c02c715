//! How long an answer may be used: freshness and age (RFC 9111, section 4.2), stale answers (RFC 5861), validators
//! (section 4.3).
//!
//! There is no heuristic freshness: an answer to a POST is stored only with an explicit lifetime (RFC 9110, section 9.3.3),
//! or with the lifetime that the operator configures for answers that state none.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};

use crate::{Directives, Timestamp, directives::parse_digits};

/// Lifetimes that the operator configures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LifetimePolicy {
    /// Lifetime of answers that state none. Default: such answers are not stored.
    pub ttl: Option<Duration>,
    /// Longest time that an answer is fresh. Default: a day.
    pub ttl_max: Duration,
    /// How long a stale answer is used while the cache revalidates it, unless the answer states or forbids it. Default: zero.
    pub stale_while_revalidate: Duration,
    /// How long a stale answer is used when revalidation fails, unless the answer states or forbids it. Default: zero.
    pub stale_if_error: Duration,
    /// Longest time that an entry is kept after its request was sent, stale time included. The list of invalidations
    /// remembers them for this time. Default: two days.
    pub kept_max: Duration,
}

impl Default for LifetimePolicy {
    fn default() -> Self {
        LifetimePolicy {
            ttl: None,
            ttl_max: Duration::from_hours(24),
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            kept_max: Duration::from_hours(48),
        }
    }
}

/// When a request was sent, and when its answer arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// When the request was sent.
    pub asked_at: Timestamp,
    /// When the answer arrived.
    pub answered_at: Timestamp,
}

/// When an answer was made, and for how long it may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetime {
    /// When the answer was made, by our clock.
    pub made_at: Timestamp,
    /// How long the answer is fresh, from `made_at` on.
    pub fresh: Duration,
    /// How long after that the stale answer may be used while the cache revalidates it.
    pub stale_while_revalidate: Duration,
    /// How long after being fresh the stale answer may be used if revalidation fails.
    pub stale_if_error: Duration,
    /// From this time on the answer must not be used, whatever the other limits are.
    pub gone_at: Timestamp,
}

/// Whether an answer may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Yes, without revalidation.
    Fresh,
    /// Yes, while the cache revalidates it in the background.
    WhileRevalidating,
    /// Only if revalidation fails.
    IfError,
    /// Only after successful validation.
    Never,
}

impl Lifetime {
    /// The lifetime of an answer; `None` if nothing states one.
    pub fn of(
        headers: &HeaderMap,
        directives: &Directives,
        exchange: Exchange,
        policy: &LifetimePolicy,
    ) -> Option<Self> {
        let date = date(headers, header::DATE).flatten();
        let stated = stated(headers, directives, date.unwrap_or(exchange.answered_at));
        // An answer that is validated before each use needs no lifetime.
        let validated = directives.no_cache.then_some(Duration::ZERO);
        let fresh = stated.or(policy.ttl).or(validated)?.min(policy.ttl_max);
        let age = initial_age(headers, date, exchange);
        let made_at = exchange.answered_at.minus(age.unwrap_or_default());
        // The real age is unknown if `Age` cannot be read.
        let is_usable = age.is_some() && !directives.no_cache;
        let fresh = if is_usable { fresh } else { Duration::ZERO };
        // A shared cache must validate what `s-maxage` made fresh (section 5.2.2.10), unless the answer itself says how
        // long it may be stale.
        let is_forbidden = !is_usable || directives.must_revalidate;
        let is_silent = directives.s_maxage.is_none();
        let stale = |said: Option<u64>, usual: Duration| match said {
            _ if is_forbidden => Duration::ZERO,
            Some(seconds) => Duration::from_secs(seconds).min(policy.kept_max),
            None if is_silent => usual,
            None => Duration::ZERO,
        };
        Some(Lifetime {
            made_at,
            fresh,
            stale_while_revalidate: stale(
                directives.stale_while_revalidate,
                policy.stale_while_revalidate,
            ),
            stale_if_error: stale(directives.stale_if_error, policy.stale_if_error),
            gone_at: exchange.asked_at.plus(policy.kept_max),
        })
    }

    /// The age of the answer (section 4.2.3).
    pub fn age(&self, now: Timestamp) -> Duration {
        now.since(self.made_at)
    }

    /// How long the answer is still fresh; zero if it is stale.
    pub fn remaining(&self, now: Timestamp) -> Duration {
        self.fresh.saturating_sub(self.age(now))
    }

    /// Whether the answer may be used.
    pub fn usability(&self, now: Timestamp) -> Use {
        let age = self.age(now);
        if now >= self.gone_at {
            Use::Never
        } else if age < self.fresh {
            Use::Fresh
        } else if age - self.fresh < self.stale_while_revalidate {
            Use::WhileRevalidating
        } else if age - self.fresh < self.stale_if_error {
            Use::IfError
        } else {
            Use::Never
        }
    }

    /// From this time on the answer may only be used after validation.
    pub fn ends_at(&self) -> Timestamp {
        let stale = self.stale_while_revalidate.max(self.stale_if_error);
        let end = self.made_at.plus(self.fresh).plus(stale);
        end.min(self.gone_at)
    }
}

/// The lifetime that an answer states (section 4.2.1). `date`: its `Date`, or when it arrived.
fn stated(headers: &HeaderMap, directives: &Directives, date: Timestamp) -> Option<Duration> {
    if let Some(seconds) = directives.s_maxage.or(directives.max_age) {
        return Some(Duration::from_secs(seconds));
    }
    if directives.is_targeted {
        return None;
    }
    let expires = self::date(headers, header::EXPIRES)?;
    // An invalid date is in the past (section 5.3).
    Some(expires.map_or(Duration::ZERO, |expires| expires.since(date)))
}

/// The age of an answer when it arrived (section 4.2.3); `None` if its `Age` cannot be read.
fn initial_age(
    headers: &HeaderMap,
    date: Option<Timestamp>,
    exchange: Exchange,
) -> Option<Duration> {
    let apparent = date.map_or(Duration::ZERO, |date| exchange.answered_at.since(date));
    let mut values = headers.get_all(header::AGE).iter();
    let said = match (values.next(), values.next()) {
        (None, _) => 0,
        (Some(value), None) => parse_digits(value.to_str().ok()?)?,
        (Some(_), Some(_)) => return None,
    };
    let delay = exchange.answered_at.since(exchange.asked_at);
    let corrected = Duration::from_secs(said).saturating_add(delay);
    Some(apparent.max(corrected))
}

/// A date in a header: `None` if the header is missing, `Some(None)` if it is not a date or occurs several times.
fn date(headers: &HeaderMap, name: header::HeaderName) -> Option<Option<Timestamp>> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next()?, values.next());
    let text = first.to_str().ok().filter(|_| second.is_none());
    let date = text.and_then(|text| httpdate::parse_http_date(text).ok());
    Some(date.map(Timestamp::from))
}

/// Validators: a subgraph confirms by them that a stored answer has not changed (RFC 9110, section 8.8).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Validators {
    /// `ETag`.
    pub etag: Option<HeaderValue>,
    /// `Last-Modified`.
    pub last_modified: Option<HeaderValue>,
}

impl Validators {
    /// The validators in the headers of an answer.
    pub fn of(headers: &HeaderMap) -> Self {
        Validators {
            etag: headers.get(header::ETAG).cloned(),
            last_modified: headers.get(header::LAST_MODIFIED).cloned(),
        }
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
    /// Makes a request conditional (RFC 9111, section 4.3.1): the subgraph answers 304 if nothing has changed.
    pub fn make_conditional(&self, headers: &mut HeaderMap) {
        if let Some(etag) = &self.etag {
            headers.insert(header::IF_NONE_MATCH, etag.clone());
        }
        if let Some(date) = &self.last_modified {
            headers.insert(header::IF_MODIFIED_SINCE, date.clone());
        }
    }
    /// Whether an answer 304 confirms the stored answer (section 4.3.4): it repeats the `ETag` that was sent, or has none.
    pub fn are_confirmed_by(&self, headers: &HeaderMap) -> bool {
        let bare = |etag: &HeaderValue| {
            let text = etag.as_bytes();
            text.strip_prefix(b"W/").unwrap_or(text).to_vec()
        };
        match (headers.get(header::ETAG), &self.etag) {
            (None, _) => true,
            (Some(theirs), Some(ours)) => bare(theirs) == bare(ours),
            (Some(_), None) => false,
        }
    }
}
