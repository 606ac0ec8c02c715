//! What selectors give for a request, and whether conditions on it are met.

use std::{borrow::Cow, cmp::Ordering};

use http::HeaderMap;
use ogive_base::Client;
use ogive_identity::Caller;
use ogive_selectors::{Condition, Operand, Selector};

/// What selectors are asked of.
pub(crate) trait Selected {
    /// The value as a text, the first if there are several; lists and objects are none.
    fn text(&self, selector: &Selector) -> Option<Cow<'_, str>>;
    /// The headers in which it is looked for, where it is a header.
    fn headers<'a>(&'a self, selector: &'a Selector) -> Option<(&'a HeaderMap, &'a str)>;
    /// The items of a value: those of a list, or the words of a text.
    fn items(&self, selector: &Selector) -> Vec<Cow<'_, str>>;
    /// Whether there is such a value, of whatever kind.
    fn has(&self, selector: &Selector) -> bool;
    /// Who asks: the peer, or the client that a trusted proxy names.
    fn client(&self) -> Option<Client>;
}

/// A caller says nothing but claims.
impl Selected for Caller {
    fn text(&self, selector: &Selector) -> Option<Cow<'_, str>> {
        match selector {
            Selector::JwtClaim(claim) => self.scalar(claim),
            _ => None,
        }
    }
    fn items(&self, selector: &Selector) -> Vec<Cow<'_, str>> {
        match selector {
            Selector::JwtClaim(claim) => {
                let items = self.items(claim).into_iter();
                items.map(Cow::Borrowed).collect()
            }
            _ => Vec::new(),
        }
    }
    fn headers<'a>(&'a self, _: &'a Selector) -> Option<(&'a HeaderMap, &'a str)> {
        None
    }
    fn client(&self) -> Option<Client> {
        None
    }
    fn has(&self, selector: &Selector) -> bool {
        matches!(selector, Selector::JwtClaim(claim) if self.claim(claim).is_some())
    }
}

/// A client's address as a text.
pub(crate) fn shown(client: Client) -> Cow<'static, str> {
    match client {
        Client::At(address) => address.to_string().into(),
        Client::Unix => "unix".into(),
    }
}

/// How much of a header that comes several times has to fit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    /// One value.
    One,
    /// Every value.
    Every,
}

impl Needed {
    /// What a negated condition needs.
    fn negated(self) -> Self {
        match self {
            Needed::One => Needed::Every,
            Needed::Every => Needed::One,
        }
    }
}

/// Whether a condition is met that something is done by: a rule holds, somebody is asked. As deep as the configuration may be.
/// Of a header that comes several times one value is enough, under `not` every value has to fit: who adds a value to what
/// others have sent is not let pass for it.
pub(crate) fn is_met(condition: &Condition, of: &impl Selected) -> bool {
    judge(condition, of, Needed::One)
}

/// The same of one that lets pass (`unless`): every value of a header has to fit, as under `not`.
pub(crate) fn is_met_by_all(condition: &Condition, of: &impl Selected) -> bool {
    judge(condition, of, Needed::Every)
}

fn judge(condition: &Condition, of: &impl Selected, needed: Needed) -> bool {
    let both = |left, right, holds: fn(&str, &str) -> bool| {
        fits(left, of, needed, &mut |left| {
            fits(right, of, needed, &mut |right| holds(left, right))
        })
    };
    match condition {
        Condition::Eq(left, right) => both(left, right, |left, right| left == right),
        Condition::Within(ranges) => {
            let client = of.client();
            client.is_some_and(|client| ranges.iter().any(|range| range.contains(client)))
        }
        Condition::Contains(list, item) => fits(item, of, needed, &mut |item| match list {
            Operand::Text(list) => list.split_ascii_whitespace().any(|word| word == item),
            Operand::Selector(list) => has_item(list, of, needed, item),
        }),
        Condition::Gt(left, right) => both(left, right, |left, right| {
            compared(left, right) == Some(Ordering::Greater)
        }),
        Condition::Lt(left, right) => both(left, right, |left, right| {
            compared(left, right) == Some(Ordering::Less)
        }),
        Condition::Exists(selector) => match of.headers(selector) {
            // Whatever bytes it has.
            Some((headers, name)) => headers.contains_key(name),
            None => of.has(selector),
        },
        Condition::Not(inner) => !judge(inner, of, needed.negated()),
        Condition::All(all) => all.iter().all(|one| judge(one, of, needed)),
        Condition::Any(all) => all.iter().any(|one| judge(one, of, needed)),
    }
}

/// Whether a condition is met, as far as that is `known` of what it looks at; `None`: the rest decides.
pub(crate) fn is_met_by_known(
    condition: &Condition,
    of: &impl Selected,
    known: &dyn Fn(&Selector) -> bool,
) -> Option<bool> {
    judge_known(condition, of, Needed::One, known)
}

fn judge_known(
    condition: &Condition,
    of: &impl Selected,
    needed: Needed,
    known: &dyn Fn(&Selector) -> bool,
) -> Option<bool> {
    match condition {
        Condition::Not(inner) => judge_known(inner, of, needed.negated(), known).map(|met| !met),
        Condition::All(all) | Condition::Any(all) => {
            let mut is_open = false;
            let decides = matches!(condition, Condition::Any(_));
            for one in all {
                match judge_known(one, of, needed, known) {
                    Some(met) if met == decides => return Some(decides),
                    met => is_open |= met.is_none(),
                }
            }
            (!is_open).then_some(!decides)
        }
        _ => {
            let mut selectors = condition.selectors().into_iter();
            selectors.all(known).then(|| judge(condition, of, needed))
        }
    }
}

/// How two numbers compare.
fn compared(left: &str, right: &str) -> Option<Ordering> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    number(left)?.partial_cmp(&number(right)?)
}

/// Whether something holds of a value of an operand, or of every one; lists and objects have none.
fn fits(
    operand: &Operand,
    of: &impl Selected,
    needed: Needed,
    holds: &mut dyn FnMut(&str) -> bool,
) -> bool {
    let selector = match operand {
        Operand::Text(text) => return holds(text),
        Operand::Selector(selector) => selector,
    };
    match of.headers(selector) {
        Some((headers, name)) => values_fit(headers, name, needed, holds),
        None => of.text(selector).is_some_and(|text| holds(&text)),
    }
}

/// The same of the values of a header; without any it does not hold.
fn values_fit(
    headers: &HeaderMap,
    name: &str,
    needed: Needed,
    holds: &mut dyn FnMut(&str) -> bool,
) -> bool {
    let mut texts = header_texts(headers, name);
    match needed {
        Needed::One => texts.any(|text| holds(&text)),
        Needed::Every => headers.contains_key(name) && texts.all(|text| holds(&text)),
    }
}

/// Whether a list, or the words of a text, have an item.
fn has_item(list: &Selector, of: &impl Selected, needed: Needed, item: &str) -> bool {
    let has = |text: &str| text.split_ascii_whitespace().any(|word| word == item);
    match of.headers(list) {
        Some((headers, name)) => values_fit(headers, name, needed, &mut |text| has(text)),
        None => of.items(list).iter().any(|known| *known == item),
    }
}

/// The values of a header as texts, whatever bytes they have.
fn header_texts<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = Cow<'h, str>> {
    let values = headers.get_all(name).iter();
    values.map(|value| String::from_utf8_lossy(value.as_bytes()))
}

/// The first value of a header as a text, whatever bytes it has.
pub(crate) fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<Cow<'h, str>> {
    header_texts(headers, name).next()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use ogive_base::SourceId;

    use super::*;
    use crate::shared::{observe_options::ObserveOptions, operation_values::RequestValues};

    fn condition(text: &str) -> Condition {
        let yaml =
            format!("limits: {{ operation_rules: [{{ refuse: mutations, when: {text} }}] }}");
        let config = ogive_config::load(SourceId(0), &yaml, &|_| None).unwrap();
        config.limits.operation_rules[0].when.clone().unwrap()
    }

    #[test]
    fn what_is_known_decides_where_the_rest_cannot() {
        let key = "{ exists: { request_header: x-key } }";
        let is_mutation = "{ eq: [{ operation_kind: true }, mutation] }";
        let decided = |text: &str, has_key: bool| {
            let mut headers = HeaderMap::new();
            if has_key {
                headers.insert("x-key", HeaderValue::from_static("1"));
            }
            let values = RequestValues {
                headers: &headers,
                caller: None,
                client: None,
                observe: &ObserveOptions::default(),
            };
            let known = |selector: &Selector| !matches!(selector, Selector::OperationKind);
            is_met_by_known(&condition(text), &values, &known)
        };
        let all = format!("{{ all: [{is_mutation}, {key}] }}");
        let any = format!("{{ any: [{is_mutation}, {key}] }}");
        let not = format!("{{ not: {all} }}");
        for (text, has_key, expected) in [
            (key, true, Some(true)),
            (key, false, Some(false)),
            (is_mutation, true, None),
            (&all, true, None),
            (&all, false, Some(false)),
            (&any, true, Some(true)),
            (&any, false, None),
            (&not, true, None),
            (&not, false, Some(true)),
        ] {
            assert_eq!(decided(text, has_key), expected, "{text} {has_key}");
        }
    }

    #[test]
    fn every_value_of_a_header_counts_whatever_bytes_it_has() {
        let met = |text: &str, values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                let value = HeaderValue::from_bytes(value).unwrap();
                headers.append(HeaderName::from_static("x-plan"), value);
            }
            is_met(
                &condition(text),
                &RequestValues {
                    headers: &headers,
                    caller: None,
                    client: None,
                    observe: &ObserveOptions::default(),
                },
            )
        };
        let exists = "{ exists: { request_header: x-plan } }";
        assert!(!met(exists, &[]));
        assert!(met(exists, &[b""]) && met(exists, &[b"\xff"]));
        let eq = "{ eq: [{ request_header: x-plan }, gold] }";
        assert!(met(eq, &[b"gold"]) && met(eq, &[b"free", b"gold"]));
        assert!(!met(eq, &[]) && !met(eq, &[b"free", b"go"]));
        assert!(met(
            "{ eq: [{ request_header: x-plan }, 'größe'] }",
            &["größe".as_bytes()]
        ));
        let contains = "{ contains: [{ request_header: x-plan }, gold] }";
        assert!(met(contains, &[b"free", b"silver gold"]) && !met(contains, &[b"golden"]));
        let within = "{ contains: ['gold silver', { request_header: x-plan }] }";
        assert!(met(within, &[b"\xff", b"silver"]) && !met(within, &[b"free"]));
        let gt = "{ gt: [{ request_header: x-plan }, 5] }";
        assert!(met(gt, &[b"1", b"6"]) && !met(gt, &[b"1", b"x"]));
        let lt = "{ lt: [{ request_header: x-plan }, 5] }";
        assert!(met(lt, &[b"9", b"1"]) && !met(lt, &[b"9"]));
        // Who adds the right value to another one is not let pass for it.
        let not = "{ not: { eq: [{ request_header: x-plan }, gold] } }";
        assert!(met(not, &[]) && met(not, &[b"free"]) && met(not, &[b"free", b"gold"]));
        assert!(!met(not, &[b"gold"]) && !met(not, &[b"gold", b"gold"]));
        let not = "{ not: { contains: [{ request_header: x-plan }, gold] } }";
        assert!(met(not, &[b"free", b"silver gold"]) && !met(not, &[b"silver gold"]));
        let twice = "{ not: { not: { eq: [{ request_header: x-plan }, gold] } } }";
        assert!(met(twice, &[b"free", b"gold"]) && !met(twice, &[b"free"]));
    }
}
