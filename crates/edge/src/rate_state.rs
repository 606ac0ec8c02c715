//! What clients are told of a rate: what there is, what is left of it, and when there is more.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_store::gcra::{Quota, Remaining};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATE: HeaderName = HeaderName::from_static("ratelimit");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// What is left of a rate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RateState {
    /// How the rate is called, as a string of structured fields.
    pub name: Box<str>,
    /// What there is in one interval.
    pub limit: u64,
    /// The interval, in seconds.
    pub(crate) window_seconds: u64,
    /// What is left.
    pub remaining: u64,
    /// When the next request would fit, or when everything is free again; `None` if it never fits.
    pub reset_seconds: Option<u64>,
}

impl RateState {
    /// What is told of a rate; `name` is a string of structured fields.
    pub fn of(name: &str, quota: &Quota, remaining: &Remaining) -> Self {
        let seconds = |time: Duration| time.as_millis().div_ceil(1000) as u64;
        RateState {
            name: name.into(),
            limit: quota.capacity,
            window_seconds: seconds(quota.interval),
            remaining: remaining.remaining,
            reset_seconds: Some(seconds(remaining.reset)),
        }
    }
    /// For people.
    pub fn describe(&self) -> String {
        let RateState {
            name,
            limit,
            window_seconds,
            remaining,
            ..
        } = self;
        format!("rate {name}: {remaining} left of {limit} in {window_seconds} s")
    }
    /// Writes `RateLimit` and `RateLimit-Policy`, and the older `RateLimit-Limit`, `RateLimit-Remaining` and
    /// `RateLimit-Reset`. Where headers tell of a rate of which less is left, they stay.
    pub fn write(&self, headers: &mut HeaderMap) {
        let told = headers.get(REMAINING).and_then(|value| value.to_str().ok());
        let told: Option<u64> = told.and_then(|text| text.parse().ok());
        if told.is_some_and(|told| told < self.remaining) {
            return;
        }
        let (name, limit, left) = (&self.name, self.limit, self.remaining);
        let (window, reset) = (self.window_seconds, self.reset_seconds);
        let policy = HeaderValue::try_from(format!("{name};q={limit};w={window}"));
        let until = reset.map_or_else(String::new, |reset| format!(";t={reset}"));
        let rate = HeaderValue::try_from(format!("{name};r={left}{until}"));
        if let (Ok(policy), Ok(rate)) = (policy, rate) {
            headers.insert(POLICY, policy);
            headers.insert(RATE, rate);
        }
        headers.insert(LIMIT, HeaderValue::from(limit));
        headers.insert(REMAINING, HeaderValue::from(left));
        match reset {
            Some(reset) => headers.insert(RESET, HeaderValue::from(reset)),
            None => headers.remove(RESET),
        };
    }
}

/// A name as a string of structured fields (RFC 9651): what has no place there is left out.
pub fn quoted(name: &str) -> Box<str> {
    let mut out = String::from("\"");
    for c in name.chars().filter(|c| matches!(c, ' '..='~')) {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_strings_of_structured_fields() {
        assert_eq!(&*quoted("a \"b\" \\ ü"), "\"a \\\"b\\\" \\\\ \"");
    }

    #[test]
    fn the_rate_of_which_least_is_left_speaks() {
        let state = |name: &str, remaining| RateState {
            name: quoted(name),
            limit: 10,
            window_seconds: 60,
            remaining,
            reset_seconds: Some(6),
        };
        let mut headers = HeaderMap::new();
        state("wide", 7).write(&mut headers);
        state("tight", 2).write(&mut headers);
        state("other", 3).write(&mut headers);
        assert_eq!(headers["ratelimit"], "\"tight\";r=2;t=6");
        assert_eq!(headers["ratelimit-policy"], "\"tight\";q=10;w=60");
        assert_eq!(headers["ratelimit-remaining"], "2");
        let never = RateState {
            reset_seconds: None,
            ..state("never", 1)
        };
        never.write(&mut headers);
        assert_eq!(headers["ratelimit"], "\"never\";r=1");
        assert!(!headers.contains_key("ratelimit-reset"));
    }
}
