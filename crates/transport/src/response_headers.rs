//! Header rules for answers: what of the subgraphs' headers reaches the client.
//!
//! Without rules nothing does. The rules of a subgraph run for each of its answers; what they select is merged in the
//! order in which the requests were sent, so that the outcome does not depend on which subgraph is faster.
//!
//! Three headers are not like others. Every line of `set-cookie` is a cookie of its own, so all of them are kept as lines
//! of their own whatever the algorithm. `cache-control`, unless an algorithm is named, becomes the strictest statement that
//! holds for every part of the response; a part without a statement makes it `no-store`. `vary` names what any part
//! depends on, whatever the algorithm.
//!
//! A rule may depend on the client's request (conditions, templates): what it does is settled before the subgraph is asked, and is
//! part of what has to be equal for an answer to be shared.
//!
//! Headers of one connection (those that the answer's `connection` names included) or one body, and those the gateway
//! answers for itself (CORS), are never copied.

use std::cell::{Cell, RefCell};

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::{
    CallerContext,
    cache_control::CacheControl,
    condition::SharedCondition,
    headers::{ConnectionOptions, NameMatch, RuleInput, TemplatePart, is_hop_by_hop},
};

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
    /// Sets a header to a text with what is known of the client's request in it; if something of it is not known there is no such
    /// header.
    InsertTemplate {
        /// The header.
        name: HeaderName,
        /// The text.
        parts: Box<[TemplatePart]>,
        /// Value if something of it is not known.
        default: Option<HeaderValue>,
    },
    /// Takes back what earlier steps have copied from the same answer.
    Remove(NameMatch),
    /// Another step, for client requests of which something holds.
    When(SharedCondition, Box<ResponseHeaderRule>),
}

impl ResponseHeaderRule {
    /// Whether what it does depends on the client's request.
    fn depends(&self) -> bool {
        matches!(
            self,
            ResponseHeaderRule::When(..) | ResponseHeaderRule::InsertTemplate { .. }
        )
    }
    /// Whether what it does depends on who asks.
    fn claims(&self) -> bool {
        match self {
            ResponseHeaderRule::When(when, rule) => when.0.claims() || rule.claims(),
            ResponseHeaderRule::InsertTemplate { parts, .. } => {
                parts.iter().any(TemplatePart::claims)
            }
            _ => false,
        }
    }
    /// Adds the headers of the client that what it does depends on.
    fn add_sources(&self, out: &mut Vec<HeaderName>) {
        match self {
            ResponseHeaderRule::When(when, rule) => {
                out.extend_from_slice(when.0.headers());
                rule.add_sources(out);
            }
            ResponseHeaderRule::InsertTemplate { parts, .. } => {
                out.extend(parts.iter().flat_map(TemplatePart::sources).cloned());
            }
            _ => {}
        }
    }
    /// What it does for one client request; `None` if nothing.
    fn settled(&self, from: &RuleInput<'_>) -> Option<ResponseHeaderRule> {
        match self {
            ResponseHeaderRule::When(when, rule) if from.holds(when) => rule.settled(from),
            ResponseHeaderRule::When(..) => None,
            ResponseHeaderRule::InsertTemplate {
                name,
                parts,
                default,
            } => Some(match from.filled(parts).or_else(|| default.clone()) {
                Some(value) => ResponseHeaderRule::Insert(name.clone(), value),
                None => ResponseHeaderRule::Remove(NameMatch::Named(name.clone())),
            }),
            rule => Some(rule.clone()),
        }
    }
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
    /// Whether what they do depends on the client's request.
    depends: bool,
}

/// The rules as they are for one client request.
#[derive(Clone, Debug)]
pub(crate) struct FixedRules {
    pub(crate) rules: ResponseHeaderRules,
    /// Bytes that are equal only if the rules are, of requests to one endpoint.
    pub(crate) identity: Box<[u8]>,
}

/// What one answer adds.
#[derive(Debug)]
struct Part {
    name: HeaderName,
    values: Vec<HeaderValue>,
    how: How,
    /// Whether it answers a header that was sent for one client request alone.
    echo: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Merge(Merge),
    Replace,
    /// All values, each once, each a line of its own.
    Union,
    Strictest,
}

/// What the answers of one client request add to its response.
#[derive(Debug, Default)]
pub struct Collected {
    /// Number of the request, by the order of sending, and what its answer adds; `None`: no answer, or no rules.
    parts: RefCell<Vec<(u32, Option<Vec<Part>>)>>,
    /// Bytes of all parts.
    bytes: Cell<usize>,
    /// Whether there was too much.
    full: Cell<bool>,
}

/// Most bytes of headers that all answers together add to one response, every line counted with [`LINE`] more. As much as
/// the head of one answer may have.
pub const ADDED_BYTES_MAX: usize = 64 << 10;
/// What a line costs besides its name and value.
const LINE: usize = 32;

impl ResponseHeaderRules {
    /// Rules in the order in which they are applied.
    pub fn new(rules: Vec<ResponseHeaderRule>) -> Self {
        ResponseHeaderRules {
            depends: rules.iter().any(ResponseHeaderRule::depends),
            rules,
        }
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
    /// Whether what they add depends on who asks.
    pub(crate) fn claims(&self) -> bool {
        self.depends && self.rules.iter().any(ResponseHeaderRule::claims)
    }
    /// The client's headers that what they add depends on.
    pub(crate) fn sources(&self) -> Vec<HeaderName> {
        let mut out = Vec::new();
        for rule in self.rules.iter().filter(|_| self.depends) {
            rule.add_sources(&mut out);
        }
        out
    }

    /// What they are for one client request; `None` if they are the same for all.
    pub(crate) fn settled(
        &self,
        client: &HeaderMap,
        caller: Option<&dyn CallerContext>,
    ) -> Option<FixedRules> {
        if !self.depends {
            return None;
        }
        let from = RuleInput::of(client, caller);
        let (mut rules, mut identity) = (Vec::new(), Vec::new());
        for rule in &self.rules {
            let settled = rule.settled(&from);
            identity.push(u8::from(settled.is_some()));
            if rule.depends()
                && let Some(ResponseHeaderRule::Insert(_, value)) = &settled
            {
                // Longer than any that is taken back, which has no bytes at all.
                identity.extend_from_slice(&(value.len() as u64 + 1).to_ne_bytes());
                identity.extend_from_slice(value.as_bytes());
            } else if rule.depends() {
                identity.extend_from_slice(&0_u64.to_ne_bytes());
            }
            rules.extend(settled);
        }
        Some(FixedRules {
            rules: ResponseHeaderRules::new(rules),
            identity: identity.into(),
        })
    }

    /// `echoes`: names of headers that were sent for one client request alone.
    fn apply(&self, answer: &HeaderMap, echoes: &[HeaderName]) -> Vec<Part> {
        let named = ConnectionOptions::by(answer);
        let is_copied = |name: &HeaderName| !is_copied_never(name) && !named.has(name);
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
                    if is_copied_never(name) || is_copied_never(target) {
                        continue;
                    }
                    let mut values: Vec<HeaderValue> = if is_copied(name) {
                        answer.get_all(name).iter().cloned().collect()
                    } else {
                        Vec::new()
                    };
                    let echo = !values.is_empty() && echoes.contains(name);
                    if values.is_empty() {
                        values.extend(default.clone());
                    }
                    propagate(&mut out, target, (values, echo), *algorithm);
                }
                ResponseHeaderRule::Propagate {
                    from, algorithm, ..
                } => {
                    for name in answer.keys() {
                        if from.matches(name) && is_copied(name) {
                            let values = answer.get_all(name).iter().cloned().collect();
                            let echo = echoes.contains(name);
                            propagate(&mut out, name, (values, echo), *algorithm);
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
                            echo: false,
                        });
                    }
                }
                ResponseHeaderRule::Remove(names) => out.retain(|p| !names.matches(&p.name)),
                // Settled for every client request before.
                ResponseHeaderRule::InsertTemplate { .. } | ResponseHeaderRule::When(..) => {}
            }
        }
        out
    }
}

/// A header that an earlier step has taken stays as it is.
fn propagate(
    out: &mut Vec<Part>,
    name: &HeaderName,
    (values, echo): (Vec<HeaderValue>, bool),
    algorithm: Option<Merge>,
) {
    if values.is_empty() || out.iter().any(|part| part.name == *name) {
        return;
    }
    let how = match algorithm {
        _ if name == header::SET_COOKIE || name == header::VARY => How::Union,
        None if name == header::CACHE_CONTROL => How::Strictest,
        algorithm => How::Merge(algorithm.unwrap_or(Merge::Last)),
    };
    out.push(Part {
        name: name.clone(),
        values,
        how,
        echo,
    });
}

impl Collected {
    /// A request is about to be sent; the number is for [`Collected::came`].
    pub(crate) fn sent(&self) -> u32 {
        let mut parts = self.parts.borrow_mut();
        let number = parts.len() as u32;
        parts.push((number, None));
        number
    }
    /// The answer of an endpoint came, whose rules these are. `echoes`: see [`apply`](ResponseHeaderRules::apply).
    pub(crate) fn came(
        &self,
        number: u32,
        rules: &ResponseHeaderRules,
        (headers, echoes): (&HeaderMap, &[HeaderName]),
    ) {
        if rules.is_empty() {
            return;
        }
        let added = rules.apply(headers, echoes);
        let lines = added.iter().flat_map(|part| {
            let name = part.name.as_str().len() + LINE;
            part.values.iter().map(move |value| name + value.len())
        });
        let bytes = lines.fold(self.bytes.get(), usize::saturating_add);
        if bytes > ADDED_BYTES_MAX {
            if !self.full.replace(true) {
                tracing::warn!(
                    limit = ADDED_BYTES_MAX,
                    "the answers to one request have more headers for the client than it may have; those of some are left out"
                );
            }
            return;
        }
        self.bytes.set(bytes);
        if let Some(part) = self.parts.borrow_mut().get_mut(number as usize) {
            part.1 = Some(added);
        }
    }

    /// Whether an answer's header speaks of one client request alone.
    pub(crate) fn has_echoes(&self) -> bool {
        let parts = self.parts.borrow();
        let mut all = parts.iter().flat_map(|(_, part)| part).flatten();
        all.any(|part| part.echo)
    }

    /// The headers for the response. `errors`: whether the response has any, in which case nobody may store it by what
    /// single answers say. `echoes`: whether those that speak of this client request alone are among them.
    pub(crate) fn merge_with(&self, errors: bool, echoes: bool) -> HeaderMap {
        let parts = self.parts.borrow();
        let mut out = HeaderMap::new();
        let mut strictest: Option<CacheControl> = None;
        let mut all_said = true;
        for (_, part) in parts.iter() {
            let mut said = false;
            let part = part.iter().flatten();
            for part in part.filter(|part| echoes || !part.echo) {
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
                    How::Union => {
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
            let value = if all_said && !errors {
                strictest.to_value()
            } else {
                HeaderValue::from_static("no-store")
            };
            out.insert(header::CACHE_CONTROL, value);
        }
        out
    }
}

/// What is never copied from an answer: what describes its body does not describe ours.
fn is_copied_never(name: &HeaderName) -> bool {
    is_reserved(name) || name.as_str().starts_with("content-")
}

/// What no rule writes.
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
            collected.came(*number, &rules, (&map(headers), &[]));
        }
        let out = collected.merge_with(errors, true);
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
            ("content-language", "de"),
            ("content-location", "/internal"),
            ("content-disposition", "attachment"),
            ("content-security-policy", "default-src 'none'"),
            ("connection", "x-hop, X-Other"),
            ("x-hop", "1"),
            ("x-other", "1"),
            ("date", "now"),
            ("x-ok", "1"),
        ];
        assert_eq!(merged(&[(&all, &answer)], false), ["x-ok: 1"]);
        let csp = HeaderName::from_static("content-security-policy");
        let rules = [
            named("content-location", None),
            ResponseHeaderRule::Propagate {
                from: NameMatch::Named(HeaderName::from_static("x-hop")),
                rename: None,
                default: Some(HeaderValue::from_static("0")),
                algorithm: None,
            },
            ResponseHeaderRule::Insert(csp, HeaderValue::from_static("sandbox")),
        ];
        // What the operator says is the operator's.
        let expected = ["content-security-policy: sandbox", "x-hop: 0"];
        assert_eq!(merged(&[(&rules, &answer)], false), expected);
    }

    #[test]
    fn a_response_varies_by_what_any_of_its_parts_varies_by() {
        let rules = [named("vary", Some(Merge::Last))];
        let answers: [(&[_], Headers<'_>); 2] = [
            (&rules, &[("vary", "accept-language")]),
            (&rules, &[("vary", "x-tenant"), ("vary", "accept-language")]),
        ];
        let out = merged(&answers, false);
        assert_eq!(out, ["vary: accept-language", "vary: x-tenant"]);
    }

    #[test]
    fn headers_that_speak_of_one_client_request_can_be_left_out() {
        let rules = [
            ResponseHeaderRule::Propagate {
                from: NameMatch::Named(HeaderName::from_static("x-request-id")),
                rename: Some(HeaderName::from_static("x-upstream-id")),
                default: None,
                algorithm: None,
            },
            named("x-a", None),
        ];
        let collected = Collected::default();
        let answer = map(&[("x-request-id", "7"), ("x-a", "1")]);
        let echoes = [HeaderName::from_static("x-request-id")];
        let rules = ResponseHeaderRules::new(rules.to_vec());
        collected.came(collected.sent(), &rules, (&answer, &echoes));
        assert!(collected.has_echoes());
        assert_eq!(collected.merge_with(false, true).len(), 2);
        assert_eq!(collected.merge_with(false, false), map(&[("x-a", "1")]));
    }

    #[test]
    fn headers_for_one_response_have_a_limit_altogether() {
        let all = [ResponseHeaderRule::Propagate {
            from: NameMatch::matching(".").unwrap(),
            rename: None,
            default: None,
            algorithm: None,
        }];
        let rules = ResponseHeaderRules::new(all.to_vec());
        let collected = Collected::default();
        // As many names as would be too many for a map.
        for answer in 0..400 {
            let mut headers = HeaderMap::new();
            for n in 0..100 {
                let name = format!("x-{answer}-{n}").parse::<HeaderName>().unwrap();
                headers.append(name, HeaderValue::from_static("1"));
            }
            headers.append(header::CACHE_CONTROL, HeaderValue::from_static("public"));
            collected.came(collected.sent(), &rules, (&headers, &[]));
        }
        let merged = collected.merge_with(false, true);
        assert!((1_000..2_000).contains(&merged.len()), "{}", merged.len());
        // Not all of them are known to be for everybody.
        assert_eq!(merged[header::CACHE_CONTROL], "no-store");
    }
}
