//! What a response says to caches: statements merged, and taken back where the response is not everybody's.
//!
//! A subgraph says `public` of what it answered. It does not know that the gateway was asked for somebody: what depends on
//! a header that rules copy from the client, or on the caller's claims, is stored by the client's own cache only
//! (`private`), and told apart by those headers (`vary`). However the statement came about: merged, taken from one
//! answer, or written by a rule.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The statements of `cache-control` (RFC 9111, section 5.2.2) that can be merged. Others are dropped: what nobody
/// understands cannot be promised for the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct CacheControl {
    no_store: bool,
    no_cache: bool,
    private: bool,
    must_revalidate: bool,
    no_transform: bool,
    public: bool,
    immutable: bool,
    max_age: Option<u64>,
    s_maxage: Option<u64>,
}

impl CacheControl {
    pub(crate) fn parse(value: &HeaderValue) -> Self {
        let mut out = CacheControl::default();
        let Ok(text) = value.to_str() else {
            out.no_store = true;
            return out;
        };
        for item in text.split(',') {
            let (name, argument) = match item.trim().split_once('=') {
                Some((name, argument)) => (name.trim_end(), argument.trim().trim_matches('"')),
                None => (item.trim(), ""),
            };
            // An age that cannot be read is no age at all.
            let seconds = || Some(argument.parse().unwrap_or(0));
            match &*name.to_ascii_lowercase() {
                "no-store" => out.no_store = true,
                "no-cache" => out.no_cache = true,
                "private" => out.private = true,
                "must-revalidate" | "proxy-revalidate" => out.must_revalidate = true,
                "no-transform" => out.no_transform = true,
                "public" => out.public = true,
                "immutable" => out.immutable = true,
                "max-age" => out.max_age = seconds(),
                "s-maxage" => out.s_maxage = seconds(),
                _ => {}
            }
        }
        out
    }
    /// What holds for both.
    pub(crate) fn and(self, other: Self) -> Self {
        // For shared caches `s-maxage` stands in for `max-age`, so one side's may only be kept if the other has either.
        let shared = |c: Self| c.s_maxage.or(c.max_age);
        let both = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.min(b));
        let has_shared = self.s_maxage.is_some() || other.s_maxage.is_some();
        CacheControl {
            no_store: self.no_store || other.no_store,
            no_cache: self.no_cache || other.no_cache,
            private: self.private || other.private,
            must_revalidate: self.must_revalidate || other.must_revalidate,
            no_transform: self.no_transform || other.no_transform,
            public: self.public && other.public,
            immutable: self.immutable && other.immutable,
            max_age: both(self.max_age, other.max_age),
            s_maxage: has_shared
                .then(|| both(shared(self), shared(other)))
                .flatten(),
        }
    }
    /// What is left of it after an answer was kept for this time.
    pub(crate) fn after(self, age: Duration) -> Self {
        let left = |seconds: Option<u64>| seconds.map(|s| s.saturating_sub(age.as_secs()));
        CacheControl {
            max_age: left(self.max_age),
            s_maxage: left(self.s_maxage),
            ..self
        }
    }
    pub(crate) fn to_value(self) -> HeaderValue {
        if self.no_store {
            return HeaderValue::from_static("no-store");
        }
        let mut out: Vec<String> = Vec::new();
        let words = [
            (self.no_cache, "no-cache"),
            (self.private, "private"),
            (self.public && !self.private, "public"),
            (self.must_revalidate, "must-revalidate"),
            (self.no_transform, "no-transform"),
            (self.immutable, "immutable"),
        ];
        out.extend(
            words
                .iter()
                .filter(|(is, _)| *is)
                .map(|(_, w)| (*w).to_owned()),
        );
        out.extend(self.max_age.map(|s| format!("max-age={s}")));
        let shared = self.s_maxage.filter(|_| !self.private);
        out.extend(shared.map(|s| format!("s-maxage={s}")));
        // Nothing in common: nothing may be promised.
        HeaderValue::from_str(&out.join(", "))
            .ok()
            .filter(|v| !v.is_empty())
            .unwrap_or(HeaderValue::from_static("no-store"))
    }
}

/// What headers state to caches. Headers that state nothing permit nothing.
pub(crate) fn stated(headers: &HeaderMap) -> CacheControl {
    let mut lines = headers.get_all(header::CACHE_CONTROL).iter();
    let first = lines.next().map_or_else(
        || CacheControl {
            no_store: true,
            ..CacheControl::default()
        },
        CacheControl::parse,
    );
    lines
        .map(CacheControl::parse)
        .fold(first, CacheControl::and)
}

/// Whether some cache would store a response by this header.
pub fn is_for_caches(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.ends_with("cache-control")
        || matches!(
            name,
            "expires" | "surrogate-control" | "edge-control" | "x-accel-expires"
        )
}

/// Lets nobody keep a response of which nothing is said yet: a cache that is told nothing may.
pub(crate) fn forbid(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Whether headers say anything to caches.
pub(crate) fn speaks(headers: &HeaderMap) -> bool {
    headers.keys().any(is_for_caches)
}

/// Makes them true. `own`: whether the response is one client's, or that of clients that send the same `sources`.
pub(crate) fn settle(headers: &mut HeaderMap, own: bool, sources: Vec<HeaderName>) {
    let stored = |value: &HeaderValue| !CacheControl::parse(value).no_store;
    let is_stored = headers.get_all(header::CACHE_CONTROL).iter().all(stored);
    if own || !is_stored {
        let is_other = |name: &&HeaderName| is_for_caches(name) && *name != header::CACHE_CONTROL;
        let gone: Vec<HeaderName> = headers.keys().filter(is_other).cloned().collect();
        for name in gone {
            headers.remove(name);
        }
    }
    if !own || !headers.contains_key(header::CACHE_CONTROL) {
        return;
    }
    if !is_stored {
        let value = HeaderValue::from_static("no-store");
        headers.insert(header::CACHE_CONTROL, value);
        return;
    }
    let mut words = vec!["private"];
    for value in headers.get_all(header::CACHE_CONTROL) {
        match value.to_str() {
            // A list within a word.
            Ok(text) if text.contains('"') => words.push("no-cache"),
            Ok(text) => words.extend(text.split(',').map(str::trim)),
            Err(_) => words.push("no-store"),
        }
    }
    let is_kept = |word: &&str| {
        let name = word.split('=').next().unwrap_or_default().trim_end();
        let shared = ["public", "s-maxage", "proxy-revalidate", "private"];
        !name.is_empty() && !shared.iter().any(|w| name.eq_ignore_ascii_case(w))
    };
    let (first, rest) = words.split_at(1);
    let words: Vec<&str> = first
        .iter()
        .chain(rest.iter().filter(|word| is_kept(word)))
        .copied()
        .collect();
    let value = HeaderValue::from_str(&words.join(", "));
    let value = value.unwrap_or(HeaderValue::from_static("no-store"));
    headers.insert(header::CACHE_CONTROL, value);
    vary_by(headers, sources);
}

/// Names headers by which a response varies, besides those that it names already.
fn vary_by(headers: &mut HeaderMap, sources: Vec<HeaderName>) {
    for name in sources {
        let is_named = headers.get_all(header::VARY).iter().any(|value| {
            let mut items = value.as_bytes().split(|byte| *byte == b',');
            items.any(|item| {
                let item = item.trim_ascii();
                item == b"*" || item.eq_ignore_ascii_case(name.as_str().as_bytes())
            })
        });
        if !is_named {
            headers.append(header::VARY, HeaderValue::from_name(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(own: bool, sources: &[&'static str], said: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in said {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let sources = sources.iter().map(|n| HeaderName::from_static(n));
        settle(&mut headers, own, sources.collect());
        let lines = headers.iter();
        let lines: Vec<String> = lines
            .map(|(n, v)| format!("{n}: {}", v.to_str().unwrap()))
            .collect();
        lines.join("; ")
    }

    /// Found by a review: `public` stood on answers that depend on claims.
    #[test]
    fn what_is_one_clients_is_public_for_nobody() {
        let of = |value| settled(true, &["authorization"], &[("cache-control", value)]);
        for (said, expected) in [
            ("public, max-age=60", "private, max-age=60"),
            ("Public, S-MaxAge=9, max-age = 60", "private, max-age = 60"),
            ("max-age=60", "private, max-age=60"),
            ("public", "private"),
            ("private=\"x-a\", max-age=60", "private, no-cache"),
            (
                "max-age=60, stale-while-revalidate=30",
                "private, max-age=60, stale-while-revalidate=30",
            ),
        ] {
            let expected = format!("cache-control: {expected}; vary: authorization");
            assert_eq!(of(said), expected, "{said}");
        }
        assert_eq!(of("public, no-store"), "cache-control: no-store");
    }

    #[test]
    fn no_other_header_tells_a_cache_to_store_it() {
        let said = [
            ("expires", "Thu, 01 Jan 2099 00:00:00 GMT"),
            ("cdn-cache-control", "max-age=60"),
            ("surrogate-control", "max-age=60"),
            ("x-a", "1"),
        ];
        assert_eq!(settled(true, &["cookie"], &said), "x-a: 1");
        assert_eq!(settled(false, &[], &said).matches("; ").count(), 3);
        let not_stored = [("cache-control", "no-store"), said[0]];
        let settled = settled(false, &[], &not_stored);
        assert_eq!(settled, "cache-control: no-store");
    }

    #[test]
    fn an_answer_that_was_kept_is_fresh_for_what_is_left_of_its_lifetime() {
        for (said, expected) in [
            (
                "public, max-age=60, s-maxage=5",
                "public, max-age=50, s-maxage=0",
            ),
            ("no-cache", "no-cache"),
            ("MAX-AGE=10", "max-age=0"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(said));
            let left = stated(&headers).after(Duration::from_secs(10));
            assert_eq!(left.to_value(), expected);
        }
        assert_eq!(stated(&HeaderMap::new()).to_value(), "no-store");
    }

    #[test]
    fn what_is_everybodys_stays_as_it_was_said() {
        let said = [("cache-control", "public, max-age=60")];
        let expected = "cache-control: public, max-age=60";
        assert_eq!(settled(false, &[], &said), expected);
    }

    #[test]
    fn a_header_is_named_once_in_vary() {
        let said = [("cache-control", "max-age=1"), ("vary", "Cookie, origin")];
        let expected = "cache-control: private, max-age=1; vary: Cookie, origin; vary: x-a";
        assert_eq!(settled(true, &["cookie", "x-a", "x-a"], &said), expected);
    }
}
