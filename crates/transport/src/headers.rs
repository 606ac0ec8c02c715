//! Header rules: the client's headers to a subgraph's, once per client request and subgraph.
//!
//! Without rules nothing travels. Steps run in order; `propagate` leaves a header that an earlier step has set as it
//! is, `insert` replaces, `remove` takes back.
//!
//! What a claim of the caller says, and what proves the gateway to a subgraph, is the gateway's to write ([`OwnHeader`]):
//! a client's own header of that name is never copied, whether there is such a claim or not. Neither is one that has `_`
//! for `-`: many servers read both names as one (RFC 3875, section 4.1.18). What the operator inserts stays.
//!
//! Where a rule says what a claim says, the client's header of that name counts as not sent ([`HeaderRules::believed`]):
//! under another name, in a text, in `extensions` or in a condition it would say the same to the subgraph.
//!
//! What a client's `connection` names is never copied from the client, as if it had not been sent. That is all it can do:
//! what the operator inserts, and the default of a header that is missing, stay. Headers for all recipients, such as
//! credentials and what proxies say about the client, cannot be named (RFC 9110, section 7.6.1). Other headers that a proxy adds
//! can be, if it passes the client's `connection` on, which it must not.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use ogive_base::bounded;
use regex_lite::{Regex, RegexBuilder};

use crate::{
    caller::{CallerContext, ClientValue},
    condition::SharedCondition,
};

/// One step.
#[derive(Clone, PartialEq, Debug)]
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
    /// Sets a header to what a claim of the caller says; without such a claim there is no such header.
    InsertClaim {
        /// The header.
        name: HeaderName,
        /// The claim.
        path: Box<str>,
        /// Value if there is no such claim.
        default: Option<HeaderValue>,
    },
    /// Sets a header to what the client says in the first of some headers; without any there is no such header.
    InsertFirst {
        /// The header.
        name: HeaderName,
        /// Where the client says it.
        from: Box<[HeaderName]>,
        /// Value if it says nothing.
        default: Option<HeaderValue>,
    },
    /// Sets a header to something else that is known of the client or its operation; without it there is no such header.
    InsertValue {
        /// The header.
        name: HeaderName,
        /// What.
        value: ClientValue,
        /// Value if it is not known.
        default: Option<HeaderValue>,
    },
    /// Sets a header to a text with what is known in it; if something of it is not known there is no such header.
    InsertTemplate {
        /// The header.
        name: HeaderName,
        /// The text.
        parts: Box<[TemplatePart]>,
        /// Value if something of it is not known.
        default: Option<HeaderValue>,
    },
    /// Takes headers back.
    Remove(NameMatch),
    /// Another step, for requests of which something holds.
    When(SharedCondition, Box<HeaderRule>),
}

/// A part of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TemplatePart {
    /// As it is.
    Text(Box<str>),
    /// What a claim of the caller says.
    Claim(Box<str>),
    /// A header of the client.
    Header(HeaderName),
    /// What the client says in the first of some headers.
    First(Box<[HeaderName]>),
    /// Something else that is known.
    Known(ClientValue),
}

impl TemplatePart {
    /// Whether it depends on who asks.
    pub(crate) fn claims(&self) -> bool {
        matches!(
            self,
            TemplatePart::Claim(_) | TemplatePart::Known(ClientValue::Address)
        )
    }
    /// The headers of the client that it depends on.
    pub(crate) fn sources(&self) -> &[HeaderName] {
        match self {
            TemplatePart::Header(name) => std::slice::from_ref(name),
            TemplatePart::First(names) => names,
            _ => &[],
        }
    }
}

/// Which header names.
#[derive(Clone, Debug)]
pub enum NameMatch {
    /// That one.
    Named(HeaderName),
    /// Those a regular expression finds a match in.
    Matching(Regex),
}

impl PartialEq for NameMatch {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (NameMatch::Named(one), NameMatch::Named(other)) => one == other,
            (NameMatch::Matching(one), NameMatch::Matching(other)) => {
                one.as_str() == other.as_str()
            }
            _ => false,
        }
    }
}

impl NameMatch {
    /// Names that a regular expression finds a match in; `None` if it is malformed. Names of headers have no case, and are
    /// written in lower case here: `^X-` means what `^x-` does.
    pub fn matching(regex: &str) -> Option<Self> {
        let regex = RegexBuilder::new(regex).case_insensitive(true).build();
        regex.ok().map(NameMatch::Matching)
    }
    pub(crate) fn matches(&self, name: &HeaderName) -> bool {
        match self {
            NameMatch::Named(wanted) => wanted == name,
            NameMatch::Matching(regex) => regex.is_match(name.as_str()),
        }
    }
}

impl HeaderRule {
    /// What it does where it holds.
    fn step(&self) -> &HeaderRule {
        match self {
            HeaderRule::When(_, rule) => rule.step(),
            rule => rule,
        }
    }
    /// Whether what it does depends on who asks.
    fn claims(&self) -> bool {
        match self {
            HeaderRule::When(when, rule) => when.0.claims() || rule.claims(),
            HeaderRule::InsertClaim { .. } => true,
            HeaderRule::InsertValue { value, .. } => *value == ClientValue::Address,
            HeaderRule::InsertTemplate { parts, .. } => parts.iter().any(TemplatePart::claims),
            _ => false,
        }
    }
    /// The header that it sets, if it sets one.
    fn target(&self) -> Option<&HeaderName> {
        match self.step() {
            HeaderRule::Insert(name, _)
            | HeaderRule::InsertClaim { name, .. }
            | HeaderRule::InsertFirst { name, .. }
            | HeaderRule::InsertValue { name, .. }
            | HeaderRule::InsertTemplate { name, .. } => Some(name),
            _ => None,
        }
    }
    /// Whether it says something that is known of the caller, client or operation.
    fn tells(&self) -> bool {
        match self.step() {
            // What only some callers get says who asks, so nobody says it of themselves.
            HeaderRule::Insert(..) => self.claims(),
            _ => self.target().is_some(),
        }
    }
    /// The header that it would set, if no header can say what the claim for it says.
    fn unsayable(&self, client: &HeaderMap, caller: &dyn CallerContext) -> Option<&HeaderName> {
        match self {
            HeaderRule::InsertClaim { name, path, .. } => caller.is_unsayable(path).then_some(name),
            HeaderRule::InsertTemplate { name, parts, .. } => {
                let is_unsayable = |part: &TemplatePart| match part {
                    TemplatePart::Claim(path) => caller.is_unsayable(path),
                    _ => false,
                };
                parts.iter().any(is_unsayable).then_some(name)
            }
            HeaderRule::When(when, rule) if when.0.is_met(client, Some(caller)) => {
                rule.unsayable(client, caller)
            }
            _ => None,
        }
    }

    /// Whether it says what a claim says, or what holds of some callers only. An address alone is no claim: proxies add it to
    /// what the client's header says.
    fn tells_claim(&self) -> bool {
        match self {
            HeaderRule::When(when, rule) => when.0.claims() || rule.tells_claim(),
            HeaderRule::InsertClaim { .. } => true,
            HeaderRule::InsertTemplate { parts, .. } => parts
                .iter()
                .any(|part| matches!(part, TemplatePart::Claim(_))),
            _ => false,
        }
    }
    /// Whether what it does depends on the client's headers.
    fn copies(&self) -> bool {
        match self {
            HeaderRule::When(when, rule) => {
                when.0.claims() || !when.0.headers().is_empty() || rule.copies()
            }
            HeaderRule::Propagate { .. }
            | HeaderRule::InsertClaim { .. }
            | HeaderRule::InsertFirst { .. } => true,
            HeaderRule::InsertTemplate { parts, .. } => {
                let mut parts = parts.iter();
                parts.any(|part| part.claims() || !part.sources().is_empty())
            }
            _ => false,
        }
    }
    /// Adds the headers of the client that what it does depends on.
    fn add_sources(&self, client: &HeaderMap, out: &mut Vec<HeaderName>) {
        match self {
            HeaderRule::When(when, rule) => {
                out.extend_from_slice(when.0.headers());
                rule.add_sources(client, out);
            }
            HeaderRule::InsertFirst { from, .. } => out.extend(from.iter().cloned()),
            HeaderRule::InsertTemplate { parts, .. } => {
                let sources = parts.iter().flat_map(TemplatePart::sources);
                out.extend(sources.cloned());
            }
            HeaderRule::Propagate { from, .. } => {
                let named = match from {
                    NameMatch::Named(name) => Some(name),
                    NameMatch::Matching(_) => None,
                };
                let matching = client
                    .keys()
                    .filter(|name| named.is_none() && from.matches(name));
                for name in named.into_iter().chain(matching) {
                    if !is_copied_never(name) && !out.contains(name) {
                        out.push(name.clone());
                    }
                }
            }
            _ => {}
        }
    }
}

/// A header that is the gateway's to write, and the operator's by rules that insert: what a client sent is never copied
/// to it. Nor is what stands in its place for servers that take `_` for `-`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OwnHeader {
    /// That one.
    Named(HeaderName),
    /// All whose names begin so; with `-`, in lower case.
    Prefixed(&'static str),
}

impl OwnHeader {
    fn is(&self, name: &HeaderName) -> bool {
        match self {
            OwnHeader::Named(own) => is_read_as(name, own),
            OwnHeader::Prefixed(prefix) => {
                let bytes = name.as_str().bytes().map(dashed);
                name.as_str().len() >= prefix.len() && bytes.take(prefix.len()).eq(prefix.bytes())
            }
        }
    }
}

/// All steps for one subgraph.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HeaderRules {
    rules: Vec<HeaderRule>,
    /// What rules set to something that is known of the caller, client or operation.
    told: Vec<HeaderName>,
    /// Those of them that say what a claim says, or what holds of some callers only.
    claimed: Vec<HeaderName>,
    own: Vec<OwnHeader>,
    claims: bool,
}

impl HeaderRules {
    /// Rules in the order in which they are applied.
    pub fn new(rules: Vec<HeaderRule>) -> Self {
        let told = rules.iter().filter(|rule| rule.tells());
        let claimed = rules.iter().filter(|rule| rule.tells_claim());
        HeaderRules {
            claims: rules.iter().any(HeaderRule::claims),
            told: told.filter_map(HeaderRule::target).cloned().collect(),
            claimed: claimed.filter_map(HeaderRule::target).cloned().collect(),
            own: Vec::new(),
            rules,
        }
    }

    /// Keeps these headers from clients, too.
    #[must_use]
    pub fn owning(mut self, own: impl IntoIterator<Item = OwnHeader>) -> Self {
        self.own.extend(own);
        self
    }

    /// Whether what a subgraph is sent depends on who asks.
    pub fn claims(&self) -> bool {
        self.claims
    }

    /// The headers to send besides those of the exchange itself.
    pub fn apply(&self, client: &HeaderMap, caller: Option<&dyn CallerContext>) -> HeaderMap {
        let mut out = HeaderMap::new();
        if self.rules.is_empty() {
            return out;
        }
        let client = &*self.believed(client);
        let from = RuleInput {
            client,
            caller,
            named: ConnectionOptions::by(client),
            told: &self.told,
            own: &self.own,
        };
        for rule in &self.rules {
            from.take(rule, &mut out);
        }
        out
    }

    /// A header that would say what a claim says, if no header can say that.
    pub(crate) fn unsayable(
        &self,
        client: &HeaderMap,
        caller: Option<&dyn CallerContext>,
    ) -> Option<&HeaderName> {
        let caller = caller.filter(|_| self.claims)?;
        let client = &*self.believed(client);
        let mut rules = self.rules.iter();
        rules.find_map(|rule| rule.unsayable(client, caller))
    }

    /// The client's headers without those by which it would say what a claim has to say.
    pub(crate) fn believed<'c>(&self, client: &'c HeaderMap) -> Cow<'c, HeaderMap> {
        let is_claimed = |name: &HeaderName| self.claimed.iter().any(|own| is_read_as(name, own));
        if self.claimed.is_empty() || !client.keys().any(is_claimed) {
            return Cow::Borrowed(client);
        }
        let mut out = HeaderMap::with_capacity(client.len());
        for (name, value) in client.iter().filter(|(name, _)| !is_claimed(name)) {
            out.append(name.clone(), value.clone());
        }
        Cow::Owned(out)
    }

    /// The client's headers that what a subgraph is sent may depend on: those that rules name, whether this client sent
    /// them or not, and those of this client in which a rule's expression finds a match.
    pub fn sources(&self, client: &HeaderMap) -> Vec<HeaderName> {
        let mut out: Vec<HeaderName> = Vec::new();
        for rule in &self.rules {
            rule.add_sources(client, &mut out);
        }
        out
    }

    /// Whether anything of a client's headers may reach the subgraph.
    pub fn copies(&self) -> bool {
        self.rules.iter().any(HeaderRule::copies)
    }
}

/// What steps are taken with.
pub(crate) struct RuleInput<'a> {
    client: &'a HeaderMap,
    caller: Option<&'a dyn CallerContext>,
    named: ConnectionOptions<'a>,
    told: &'a [HeaderName],
    own: &'a [OwnHeader],
}

impl<'a> RuleInput<'a> {
    /// A client's request alone.
    pub(crate) fn of(client: &'a HeaderMap, caller: Option<&'a dyn CallerContext>) -> Self {
        RuleInput {
            client,
            caller,
            named: ConnectionOptions::by(client),
            told: &[],
            own: &[],
        }
    }
}

impl RuleInput<'_> {
    /// Whether a condition holds.
    pub(crate) fn holds(&self, when: &SharedCondition) -> bool {
        when.0.is_met(self.client, self.caller)
    }
    fn is_copied(&self, name: &HeaderName) -> bool {
        !is_copied_never(name) && (!self.named.has(name) || is_for_everybody(name))
    }
    /// Whether a rule says something that is known by this header.
    fn is_told(&self, name: &HeaderName) -> bool {
        self.told.iter().any(|told| is_read_as(name, told))
    }
    fn is_own(&self, name: &HeaderName) -> bool {
        self.is_told(name) || self.own.iter().any(|own| own.is(name))
    }

    /// Takes one step.
    fn take(&self, rule: &HeaderRule, out: &mut HeaderMap) {
        let (client, caller) = (self.client, self.caller);
        match rule {
            HeaderRule::Propagate {
                from: NameMatch::Named(name),
                rename,
                default,
            } => {
                let target = rename.as_ref().unwrap_or(name);
                if is_hop_by_hop(target) || is_hop_by_hop(name) || out.contains_key(target) {
                    return;
                }
                if self.is_own(target) {
                    return;
                }
                // By another name, too, the client would say what the gateway says.
                if self.is_copied(name) && !self.is_told(name) {
                    for value in client.get_all(name) {
                        out.append(target, value.clone());
                    }
                }
                if let Some(default) = default
                    && !out.contains_key(target)
                {
                    out.insert(target, default.clone());
                }
            }
            HeaderRule::Propagate { from, .. } => {
                for name in client.keys() {
                    if !from.matches(name) || !self.is_copied(name) || out.contains_key(name) {
                        continue;
                    }
                    if self.is_own(name) {
                        continue;
                    }
                    for value in client.get_all(name) {
                        out.append(name, value.clone());
                    }
                }
            }
            HeaderRule::Insert(name, value) => {
                if !is_hop_by_hop(name) {
                    out.insert(name, value.clone());
                }
            }
            HeaderRule::InsertClaim {
                name,
                path,
                default,
            } => {
                let claim = caller.and_then(|caller| caller.claim(path));
                insert_known(out, name, claim, default.as_ref());
            }
            HeaderRule::InsertFirst {
                name,
                from,
                default,
            } => {
                let copied = from.iter().filter(|name| self.is_copied(name));
                let value = first_text(client, copied);
                let value = value.and_then(|text| HeaderValue::from_str(&text).ok());
                insert_known(out, name, value, default.as_ref());
            }
            HeaderRule::InsertValue {
                name,
                value,
                default,
            } => {
                let value = caller.and_then(|caller| caller.value(*value));
                let value = value.and_then(|text| HeaderValue::from_str(&text).ok());
                insert_known(out, name, value, default.as_ref());
            }
            HeaderRule::InsertTemplate {
                name,
                parts,
                default,
            } => insert_known(out, name, self.filled(parts), default.as_ref()),
            HeaderRule::When(when, rule) => {
                if self.holds(when) {
                    self.take(rule, out);
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

    /// A text; `None` if something of it is not known, or if no header can say it.
    pub(crate) fn filled(&self, parts: &[TemplatePart]) -> Option<HeaderValue> {
        let mut out: Vec<u8> = Vec::new();
        let mut is_secret = false;
        for part in parts {
            match part {
                TemplatePart::Text(text) => out.extend_from_slice(text.as_bytes()),
                TemplatePart::Claim(path) => {
                    out.extend_from_slice(self.caller?.claim(path)?.as_bytes());
                    is_secret = true;
                }
                TemplatePart::Header(name) => {
                    let value = self.client.get(name).filter(|_| self.is_copied(name))?;
                    out.extend_from_slice(value.as_bytes());
                }
                TemplatePart::First(names) => {
                    let copied = names.iter().filter(|name| self.is_copied(name));
                    out.extend_from_slice(first_text(self.client, copied)?.as_bytes());
                }
                TemplatePart::Known(value) => {
                    out.extend_from_slice(self.caller?.value(*value)?.as_bytes());
                }
            }
        }
        let mut value = HeaderValue::from_bytes(&out).ok()?;
        value.set_sensitive(is_secret);
        Some(value)
    }
}

/// Sets a header to what is known, else to the default, else takes it back.
fn insert_known(
    out: &mut HeaderMap,
    name: &HeaderName,
    value: Option<HeaderValue>,
    default: Option<&HeaderValue>,
) {
    match value.or_else(|| default.cloned()) {
        _ if is_hop_by_hop(name) => {}
        Some(value) => {
            out.insert(name, value);
        }
        None => {
            out.remove(name);
        }
    }
}

/// Longest name or version of a client, in bytes.
const CLIENT_TEXT_MAX: usize = 128;

/// What a client says in the first of some headers that is there, if that is a text; cut in the middle beyond 128 bytes.
pub fn first_text<'h, 'n>(
    client: &'h HeaderMap,
    names: impl IntoIterator<Item = &'n HeaderName>,
) -> Option<Cow<'h, str>> {
    let value = names.into_iter().find_map(|name| client.get(name))?;
    let text = value.to_str().ok()?.trim();
    (!text.is_empty()).then(|| bounded(text, CLIENT_TEXT_MAX))
}

/// The headers that a message's `connection` names: they are of one connection, like `connection` itself.
pub(crate) struct ConnectionOptions<'m> {
    /// `None`: there is none, or it says no more than whether the connection is kept.
    lines: Option<&'m HeaderMap>,
}

impl<'m> ConnectionOptions<'m> {
    pub(crate) fn by(message: &'m HeaderMap) -> Self {
        let mut lines = message.get_all(header::CONNECTION).iter();
        let says_nothing = |value: &HeaderValue| {
            let value = value.as_bytes();
            value.eq_ignore_ascii_case(b"keep-alive") || value.eq_ignore_ascii_case(b"close")
        };
        ConnectionOptions {
            lines: (!lines.all(says_nothing)).then_some(message),
        }
    }
    pub(crate) fn has(&self, name: &HeaderName) -> bool {
        let Some(message) = self.lines else {
            return false;
        };
        // As bytes: a byte that is no ASCII must not hide the names beside it.
        let mut items = message
            .get_all(header::CONNECTION)
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        let name = name.as_str().as_bytes();
        items.any(|item| item.trim_ascii().eq_ignore_ascii_case(name))
    }
}

/// Headers for whoever answers in the end, and those in which proxies say who the client is.
fn is_for_everybody(name: &HeaderName) -> bool {
    const NAMES: [HeaderName; 6] = [
        header::AUTHORIZATION,
        header::CACHE_CONTROL,
        header::COOKIE,
        header::FORWARDED,
        header::ORIGIN,
        header::USER_AGENT,
    ];
    let text = name.as_str();
    NAMES.contains(name)
        || text.starts_with("x-forwarded-")
        || matches!(
            text,
            "x-real-ip" | "traceparent" | "tracestate" | "baggage" | "x-request-id"
        )
}

/// Headers of one connection or one body that are never copied: what a body is in describes the client's, not ours.
fn is_copied_never(name: &HeaderName) -> bool {
    // Servers that take `_` for `-` would read one as the other.
    let written = name.as_str().contains('_');
    let dashed = written.then(|| name.as_str().replace('_', "-"));
    let text = dashed.as_deref().unwrap_or(name.as_str());
    ogive_base::is_of_one_hop(text)
        || text.starts_with("content-")
        || text.starts_with("sec-websocket-")
}

/// Whether servers that take `_` for `-` read one name as the other.
pub fn is_read_as(a: &HeaderName, b: &HeaderName) -> bool {
    let (a, b) = (a.as_str().bytes(), b.as_str().bytes());
    a.len() == b.len() && a.map(dashed).eq(b.map(dashed))
}

fn dashed(byte: u8) -> u8 {
    if byte == b'_' { b'-' } else { byte }
}

/// Whether nobody but the exchange writes a header.
pub(crate) fn is_hop_by_hop(name: &HeaderName) -> bool {
    ogive_base::is_of_one_hop(name.as_str())
}

#[cfg(test)]
mod tests;
