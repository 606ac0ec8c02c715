//! Header rules: the client's headers to a subgraph's, once per client request and subgraph.
//!
//! Without rules nothing travels. Steps run in order; `propagate` leaves a header that an earlier step has set as it
//! is, `insert` replaces, `remove` takes back.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use regex_lite::Regex;

/// One step.
#[derive(Clone, Debug)]
pub enum HeaderRule {
    /// Copies client headers.
    Propagate {
        /// Which.
        from: NameMatch,
        /// Name towards the subgraph, for a single header.
        rename: Option<HeaderName>,
        /// Value if the client sent none, for a single header.
        default: Option<HeaderValue>,
    },
    /// Sets a header.
    Insert(HeaderName, HeaderValue),
    /// Takes headers back.
    Remove(NameMatch),
}

/// Which header names.
#[derive(Clone, Debug)]
pub enum NameMatch {
    /// That one.
    Named(HeaderName),
    /// Those a regular expression finds a match in.
    Matching(Regex),
}

impl NameMatch {
    /// Names that a regular expression finds a match in; `None` if it is malformed.
    pub fn matching(regex: &str) -> Option<Self> {
        Regex::new(regex).ok().map(NameMatch::Matching)
    }
    pub(crate) fn matches(&self, name: &HeaderName) -> bool {
        match self {
            NameMatch::Named(wanted) => wanted == name,
            NameMatch::Matching(regex) => regex.is_match(name.as_str()),
        }
    }
}

/// All steps for one subgraph.
#[derive(Clone, Debug, Default)]
pub struct HeaderRules {
    rules: Vec<HeaderRule>,
}

impl HeaderRules {
    /// Rules in the order in which they are applied.
    pub fn new(rules: Vec<HeaderRule>) -> Self {
        HeaderRules { rules }
    }

    /// The headers to send besides those of the exchange itself.
    pub fn apply(&self, client: &HeaderMap) -> HeaderMap {
        let mut out = HeaderMap::new();
        for rule in &self.rules {
            match rule {
                HeaderRule::Propagate {
                    from: NameMatch::Named(name),
                    rename,
                    default,
                } => {
                    let target = rename.as_ref().unwrap_or(name);
                    if is_reserved(target, client)
                        || is_reserved(name, client)
                        || out.contains_key(target)
                    {
                        continue;
                    }
                    for value in client.get_all(name) {
                        out.append(target, value.clone());
                    }
                    if let Some(default) = default
                        && !out.contains_key(target)
                    {
                        out.insert(target, default.clone());
                    }
                }
                HeaderRule::Propagate { from, .. } => {
                    for name in client.keys() {
                        if !from.matches(name)
                            || is_reserved(name, client)
                            || out.contains_key(name)
                        {
                            continue;
                        }
                        for value in client.get_all(name) {
                            out.append(name, value.clone());
                        }
                    }
                }
                HeaderRule::Insert(name, value) => {
                    if !is_reserved(name, client) {
                        out.insert(name, value.clone());
                    }
                }
                HeaderRule::Remove(names) => {
                    let gone: Vec<HeaderName> =
                        out.keys().filter(|n| names.matches(n)).cloned().collect();
                    for name in gone {
                        out.remove(name);
                    }
                }
            }
        }
        out
    }
}

/// Headers of one connection or one body: they describe the client's hop, and copying them would at best lie and at
/// worst let a client smuggle requests (RFC 9110, section 7.6.1).
fn is_reserved(name: &HeaderName, client: &HeaderMap) -> bool {
    is_hop_by_hop(name)
        || client.get_all(header::CONNECTION).iter().any(|value| {
            // `Connection: close, x-mine` makes `x-mine` hop-by-hop too.
            value.to_str().is_ok_and(|list| {
                list.split(',')
                    .any(|item| item.trim().eq_ignore_ascii_case(name.as_str()))
            })
        })
}

/// The same, as far as the name alone tells.
pub(crate) fn is_hop_by_hop(name: &HeaderName) -> bool {
    const RESERVED: [HeaderName; 16] = [
        header::ACCEPT,
        header::ACCEPT_CHARSET,
        header::ACCEPT_ENCODING,
        header::CONNECTION,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::EXPECT,
        header::HOST,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::VIA,
    ];
    RESERVED.contains(name) || name == "keep-alive" || name == "proxy-connection"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &'static str) -> NameMatch {
        NameMatch::Named(HeaderName::from_static(name))
    }
    fn propagate(from: NameMatch) -> HeaderRule {
        HeaderRule::Propagate {
            from,
            rename: None,
            default: None,
        }
    }
    fn all() -> NameMatch {
        NameMatch::Matching(Regex::new(".*").unwrap())
    }
    fn insert(name: &'static str, value: &'static str) -> HeaderRule {
        HeaderRule::Insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    }
    fn apply(rules: Vec<HeaderRule>, client: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut map = HeaderMap::new();
        for (name, value) in client {
            map.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        let out = HeaderRules::new(rules).apply(&map);
        let mut out: Vec<String> = out
            .iter()
            .map(|(n, v)| format!("{n}: {}", v.to_str().unwrap()))
            .collect();
        out.sort();
        out
    }

    #[test]
    fn nothing_travels_without_rules() {
        assert!(apply(vec![], &[("authorization", "x"), ("cookie", "y")]).is_empty());
    }

    #[test]
    fn propagation_keeps_every_value() {
        let rules = vec![propagate(named("x-a"))];
        assert_eq!(
            apply(rules, &[("x-a", "1"), ("x-a", "2"), ("x-b", "3")]),
            ["x-a: 1", "x-a: 2"]
        );
    }

    #[test]
    fn renaming_and_defaults() {
        let rule = HeaderRule::Propagate {
            from: named("x-user"),
            rename: Some(HeaderName::from_static("x-account")),
            default: Some(HeaderValue::from_static("nobody")),
        };
        assert_eq!(
            apply(vec![rule.clone()], &[("x-user", "ann")]),
            ["x-account: ann"]
        );
        assert_eq!(apply(vec![rule], &[]), ["x-account: nobody"]);
    }

    #[test]
    fn the_first_propagation_wins_and_insertion_replaces() {
        let rename = HeaderRule::Propagate {
            from: named("x-a"),
            rename: Some(HeaderName::from_static("x-b")),
            default: None,
        };
        let client = [("x-a", "1"), ("x-b", "2")];
        let rules = vec![rename.clone(), propagate(named("x-b"))];
        assert_eq!(apply(rules, &client), ["x-b: 1"]);
        let rules = vec![rename, insert("x-b", "3")];
        assert_eq!(apply(rules, &client), ["x-b: 3"]);
    }

    #[test]
    fn removal_takes_back_what_earlier_steps_set() {
        let rules = vec![
            propagate(all()),
            HeaderRule::Remove(NameMatch::Matching(Regex::new("^x-int").unwrap())),
            HeaderRule::Remove(named("cookie")),
        ];
        let client = [("cookie", "c"), ("x-internal", "1"), ("x-a", "2")];
        assert_eq!(apply(rules, &client), ["x-a: 2"]);
    }

    #[test]
    fn hop_by_hop_headers_never_travel() {
        let client = [
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("content-length", "5"),
            ("host", "a"),
            ("upgrade", "websocket"),
            ("x-ok", "1"),
        ];
        assert_eq!(apply(vec![propagate(all())], &client), ["x-ok: 1"]);
        let sneaky = vec![
            insert("transfer-encoding", "chunked"),
            HeaderRule::Propagate {
                from: named("x-ok"),
                rename: Some(HeaderName::from_static("host")),
                default: None,
            },
        ];
        assert!(apply(sneaky, &client).is_empty());
    }
}
