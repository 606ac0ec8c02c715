//! Header rules for answers: what of the subgraphs' headers reaches the client.
//!
//! Without rules nothing does. The rules of a subgraph run for each of its answers; what they select is merged in the
//! order in which the requests were sent, so that the outcome does not depend on which subgraph is faster.
//!
//! Two headers are not like others. Every line of `set-cookie` is a cookie of its own, so all of them are kept as lines
//! of their own whatever the algorithm. `cache-control`, unless an algorithm is named, becomes the strictest statement that
//! holds for every part of the response; a part without a statement makes it `no-store`.
//!
//! Headers of one connection or one body, and those the gateway answers for itself (CORS), are never copied.

use std::cell::RefCell;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::headers::{NameMatch, is_hop_by_hop};

/// One step.
#[derive(Clone, Debug)]
pub enum ResponseHeaderRule {
    /// Copies headers of the answer.
    Propagate {
        /// Which.
        from: NameMatch,
        /// Name towards the client, for a single header.
        rename: Option<HeaderName>,
        /// Value if the answer has none, for a single header.
        default: Option<HeaderValue>,
        /// How several answers are merged; `None`: as the header needs it, else the last counts.
        algorithm: Option<Merge>,
    },
    /// Sets a header, whatever it was before.
    Insert(HeaderName, HeaderValue),
    /// Takes back what earlier steps have copied from the same answer.
    Remove(NameMatch),
}

/// What becomes of a header that several answers have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merge {
    /// That of the request that was sent first.
    First,
    /// That of the request that was sent last.
    Last,
    /// All of them, as one list.
    Append,
}

/// All steps for one subgraph's answers.
#[derive(Clone, Debug, Default)]
pub struct ResponseHeaderRules {
    rules: Vec<ResponseHeaderRule>,
}

/// What one answer adds.
#[derive(Debug)]
struct Part {
    name: HeaderName,
    values: Vec<HeaderValue>,
    how: How,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Merge(Merge),
    Replace,
    Cookies,
    Strictest,
}

/// What the answers of one client request add to its response.
#[derive(Debug, Default)]
pub struct Collected {
    /// Number of the request, by the order of sending, and what its answer adds; `None`: no answer, or no rules.
    parts: RefCell<Vec<(u32, Option<Vec<Part>>)>>,
}

impl ResponseHeaderRules {
    /// Rules in the order in which they are applied.
    pub fn new(rules: Vec<ResponseHeaderRule>) -> Self {
        ResponseHeaderRules { rules }
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    fn apply(&self, answer: &HeaderMap) -> Vec<Part> {
        let mut out: Vec<Part> = Vec::new();
        for rule in &self.rules {
            match rule {
                ResponseHeaderRule::Propagate {
                    from: NameMatch::Named(name),
                    rename,
                    default,
                    algorithm,
                } => {
                    let target = rename.as_ref().unwrap_or(name);
                    if is_reserved(name) || is_reserved(target) {
                        continue;
                    }
                    let mut values: Vec<HeaderValue> =
                        answer.get_all(name).iter().cloned().collect();
                    if values.is_empty() {
                        values.extend(default.clone());
                    }
                    propagate(&mut out, target, values, *algorithm);
                }
                ResponseHeaderRule::Propagate {
                    from, algorithm, ..
                } => {
                    for name in answer.keys() {
                        if from.matches(name) && !is_reserved(name) {
                            let values = answer.get_all(name).iter().cloned().collect();
                            propagate(&mut out, name, values, *algorithm);
                        }
                    }
                }
                ResponseHeaderRule::Insert(name, value) => {
                    if !is_reserved(name) {
                        out.retain(|part| part.name != *name);
                        out.push(Part {
                            name: name.clone(),
                            values: vec![value.clone()],
                            how: How::Replace,
                        });
                    }
                }
                ResponseHeaderRule::Remove(names) => out.retain(|p| !names.matches(&p.name)),
            }
        }
        out
    }
}

/// A header that an earlier step has taken stays as it is.
fn propagate(
    out: &mut Vec<Part>,
    name: &HeaderName,
    values: Vec<HeaderValue>,
    algorithm: Option<Merge>,
) {
    if values.is_empty() || out.iter().any(|part| part.name == *name) {
        return;
    }
    let how = match algorithm {
        _ if name == header::SET_COOKIE => How::Cookies,
        None if name == header::CACHE_CONTROL => How::Strictest,
        algorithm => How::Merge(algorithm.unwrap_or(Merge::Last)),
    };
    out.push(Part {
        name: name.clone(),
        values,
        how,
    });
}

impl Collected {
    /// A request is about to be sent; the number is for [`Collected::answered`].
    pub(crate) fn sent(&self) -> u32 {
        let mut parts = self.parts.borrow_mut();
        let number = parts.len() as u32;
        parts.push((number, None));
        number
    }
    /// The headers of its answer came.
    pub(crate) fn answered(&self, number: u32, rules: &ResponseHeaderRules, answer: &HeaderMap) {
        if rules.is_empty() {
            return;
        }
        if let Some(part) = self.parts.borrow_mut().get_mut(number as usize) {
            part.1 = Some(rules.apply(answer));
        }
    }

    /// The headers for the response. `errors`: whether the response has any, in which case nobody may store it by what
    /// single answers say.
    pub fn merge(&self, errors: bool) -> HeaderMap {
        let parts = self.parts.borrow();
        let mut out = HeaderMap::new();
        let mut strictest: Option<CacheControl> = None;
        let mut all_said = true;
        for (_, part) in parts.iter() {
            let mut said = false;
            for part in part.iter().flatten() {
                let name = &part.name;
                match part.how {
                    How::Merge(Merge::First) if out.contains_key(name) => {}
                    How::Merge(Merge::First | Merge::Last) | How::Replace => {
                        out.remove(name);
                        for value in &part.values {
                            out.append(name, value.clone());
                        }
                    }
                    How::Merge(Merge::Append) => {
                        let before = out.remove(name);
                        let list = before.iter().chain(&part.values);
                        let list: Vec<&[u8]> = list.map(HeaderValue::as_bytes).collect();
                        if let Ok(list) = HeaderValue::from_bytes(&list.join(&b", "[..])) {
                            out.insert(name, list);
                        }
                    }
                    How::Cookies => {
                        for value in &part.values {
                            if !out.get_all(name).iter().any(|v| v == value) {
                                out.append(name, value.clone());
                            }
                        }
                    }
                    How::Strictest => {
                        said = true;
                        for value in &part.values {
                            let one = CacheControl::parse(value);
                            strictest = Some(match strictest.take() {
                                Some(before) => before.and(one),
                                None => one,
                            });
                        }
                    }
                }
            }
            all_said &= said;
        }
        if let Some(strictest) = strictest {
            let value = match all_said && !errors {
                true => strictest.to_value(),
                false => HeaderValue::from_static("no-store"),
            };
            out.insert(header::CACHE_CONTROL, value);
        }
        out
    }
}

/// The statements of `cache-control` (RFC 9111, section 5.2.2) that can be merged. Others are dropped: what nobody
/// understands cannot be promised for the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct CacheControl {
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
    fn parse(value: &HeaderValue) -> Self {
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
    fn and(self, other: Self) -> Self {
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
    fn to_value(self) -> HeaderValue {
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

/// What is never copied from an answer.
fn is_reserved(name: &HeaderName) -> bool {
    is_hop_by_hop(name)
        || matches!(
            name.as_str(),
            "date" | "server" | "content-range" | "alt-svc"
        )
        || name.as_str().starts_with("access-control-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &'static str, algorithm: Option<Merge>) -> ResponseHeaderRule {
        ResponseHeaderRule::Propagate {
            from: NameMatch::Named(HeaderName::from_static(name)),
            rename: None,
            default: None,
            algorithm,
        }
    }
    fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }
    type Headers<'h> = &'h [(&'static str, &'static str)];

    /// Answers in the order of sending, each with the rules of its subgraph; they come in the opposite order.
    fn merged(answers: &[(&[ResponseHeaderRule], Headers)], errors: bool) -> Vec<String> {
        let collected = Collected::default();
        let numbers: Vec<u32> = answers.iter().map(|_| collected.sent()).collect();
        for (number, (rules, headers)) in numbers.iter().zip(answers).rev() {
            let rules = ResponseHeaderRules::new(rules.to_vec());
            collected.answered(*number, &rules, &map(headers));
        }
        let out = collected.merge(errors);
        let mut out: Vec<String> = out
            .iter()
            .map(|(n, v)| format!("{n}: {}", v.to_str().unwrap()))
            .collect();
        out.sort();
        out
    }

    #[test]
    fn the_order_of_sending_decides() {
        let one = |how| {
            let rules = [named("x-a", how)];
            merged(
                &[(&rules, &[("x-a", "1")]), (&rules, &[("x-a", "2")])],
                false,
            )
        };
        assert_eq!(one(Some(Merge::First)), ["x-a: 1"]);
        assert_eq!(one(Some(Merge::Last)), ["x-a: 2"]);
        assert_eq!(one(None), ["x-a: 2"]);
        assert_eq!(one(Some(Merge::Append)), ["x-a: 1, 2"]);
    }

    #[test]
    fn every_cookie_is_a_line_of_its_own() {
        let rules = [named("set-cookie", Some(Merge::Append))];
        let out = merged(
            &[
                (
                    &rules,
                    &[("set-cookie", "a=1"), ("set-cookie", "b=2; Path=/")],
                ),
                (&rules, &[("set-cookie", "c=3"), ("set-cookie", "a=1")]),
            ],
            false,
        );
        assert_eq!(
            out,
            [
                "set-cookie: a=1",
                "set-cookie: b=2; Path=/",
                "set-cookie: c=3"
            ]
        );
    }

    #[test]
    fn cache_control_is_the_strictest() {
        let rules = [named("cache-control", None)];
        let of = |values: &[&'static str], errors| {
            let headers: Vec<_> = values.iter().map(|v| [("cache-control", *v)]).collect();
            let answers: Vec<(&[ResponseHeaderRule], &[_])> =
                headers.iter().map(|h| (&rules[..], &h[..])).collect();
            merged(&answers, errors).concat()
        };
        assert_eq!(of(&["max-age=60"], false), "cache-control: max-age=60");
        assert_eq!(
            of(&["public, max-age=60", "max-age=30, public"], false),
            "cache-control: public, max-age=30"
        );
        assert_eq!(
            of(&["public, max-age=60", "private, max-age=90"], false),
            "cache-control: private, max-age=60"
        );
        assert_eq!(
            of(&["max-age=60", "no-store"], false),
            "cache-control: no-store"
        );
        assert_eq!(
            of(&["max-age=60, s-maxage=10", "max-age=5"], false),
            "cache-control: max-age=5, s-maxage=5"
        );
        assert_eq!(of(&["public", "private"], false), "cache-control: private");
        assert_eq!(
            of(&["public", "immutable"], false),
            "cache-control: no-store"
        );
        assert_eq!(of(&["max-age=soon"], false), "cache-control: max-age=0");
        assert_eq!(of(&["max-age=60"], true), "cache-control: no-store");
        // A part that says nothing, and one that is not asked for it.
        let silent = merged(
            &[(&rules, &[("cache-control", "max-age=60")]), (&rules, &[])],
            false,
        );
        assert_eq!(silent, ["cache-control: no-store"]);
        let unruled = merged(
            &[(&rules, &[("cache-control", "max-age=60")]), (&[], &[])],
            false,
        );
        assert_eq!(unruled, ["cache-control: no-store"]);
    }

    #[test]
    fn names_defaults_insertion_and_removal() {
        let rules = [
            ResponseHeaderRule::Propagate {
                from: NameMatch::Named(HeaderName::from_static("x-a")),
                rename: Some(HeaderName::from_static("x-b")),
                default: Some(HeaderValue::from_static("none")),
                algorithm: None,
            },
            ResponseHeaderRule::Propagate {
                from: NameMatch::matching("^x-").unwrap(),
                rename: None,
                default: None,
                algorithm: None,
            },
            ResponseHeaderRule::Remove(NameMatch::matching("^x-internal").unwrap()),
            ResponseHeaderRule::Insert(
                HeaderName::from_static("x-by"),
                HeaderValue::from_static("ogive"),
            ),
        ];
        assert_eq!(
            merged(
                &[(
                    &rules,
                    &[("x-c", "1"), ("x-internal-d", "2"), ("x-by", "me")]
                )],
                false
            ),
            ["x-b: none", "x-by: ogive", "x-c: 1"]
        );
        assert!(merged(&[(&[], &[("x-a", "1")])], false).is_empty());
    }

    #[test]
    fn the_gateways_own_headers_are_never_copied() {
        let all = [ResponseHeaderRule::Propagate {
            from: NameMatch::matching(".").unwrap(),
            rename: None,
            default: None,
            algorithm: None,
        }];
        let answer = [
            ("content-length", "5"),
            ("content-encoding", "gzip"),
            ("transfer-encoding", "chunked"),
            ("connection", "close"),
            ("access-control-allow-origin", "*"),
            ("date", "now"),
            ("x-ok", "1"),
        ];
        assert_eq!(merged(&[(&all, &answer)], false), ["x-ok: 1"]);
    }
}
