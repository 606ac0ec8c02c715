//! The options of `response_cache`: answers and entities of subgraphs that are kept across requests.

use std::collections::BTreeMap;

use ogive_selectors::Selector;

use crate::{ByteSize, Config, Duration, HeaderName, HeaderRule, HeaderSelector, decode::section};

section! {
    /// `response_cache`
    pub struct ResponseCacheOptions {
        /// Whether answers and entities of subgraphs are kept across requests. Default no. docs/response-cache.md.
        pub enabled: bool = false,
        /// The memory of this process.
        pub in_memory: InMemoryCacheOptions = InMemoryCacheOptions::default(),
        /// What holds for subgraphs.
        pub subgraph: SubgraphCacheOptions = SubgraphCacheOptions::default(),
    }

    /// `response_cache.in_memory`
    pub struct InMemoryCacheOptions {
        /// Most bytes of entries; they count in the memory of the process, and are given up when requests need it. Default `64MiB`.
        pub bytes: ByteSize = ByteSize(64 << 20),
        /// Largest entry; a larger answer is not kept. Default `1MiB`.
        pub entry_max_bytes: ByteSize = ByteSize(1 << 20),
    }

    /// `response_cache.subgraph`
    pub struct SubgraphCacheOptions {
        /// Every subgraph.
        pub all: SubgraphCacheRule = SubgraphCacheRule::default(),
        /// By subgraph name; what is not set here is taken from `all`.
        pub subgraphs: BTreeMap<String, SubgraphCacheRule> = BTreeMap::new(),
    }

    /// `response_cache.subgraph.all` and `response_cache.subgraph.subgraphs.<name>`
    pub struct SubgraphCacheRule {
        /// Whether answers of the subgraph are kept; default yes.
        pub enabled: Option<bool> = None,
        /// How long answers are kept that state no lifetime (`cache-control`, `expires`); default: they are not kept.
        pub ttl: Option<Duration> = None,
        /// How long an answer that is no longer fresh is used if the subgraph fails, unless the answer states it
        /// (`stale-if-error`) or forbids it; default `0s`.
        pub stale_if_error: Option<Duration> = None,
        /// What identifies a user. Answers that say `private` are kept for one user; without a `private_id` they are not kept.
        pub private_id: Option<PrivateIdOptions> = None,
        /// Headers to the subgraph on which no answer depends, such as `x-request-id`. All other headers are part of the keys
        /// of entries, unless the answer narrows them by `vary`. Default none.
        pub ignore_headers: Option<Vec<HeaderName>> = None,
        /// Whether callers with different credentials share answers that do not say `public` or `s-maxage`. Default no: an
        /// answer is kept for the credentials of its request (`authorization` and `cookie`).
        pub shared_with_credentials: Option<bool> = None,
    }

    /// `response_cache.subgraph.all.private_id` and `response_cache.subgraph.subgraphs.<name>.private_id`
    pub struct PrivateIdOptions {
        /// A claim of the caller's token, such as `sub`; a dot leads into an object.
        pub jwt_claim: Option<String> = None,
        /// A header as it is sent to the subgraph, after header rules. If a rule copies it from the client, clients choose
        /// their id.
        pub sent_header: Option<HeaderName> = None,
    }
}

/// What holds for the cache of one subgraph, defaults filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct ResolvedCacheRule {
    /// See [`SubgraphCacheRule::ttl`].
    pub ttl: Option<std::time::Duration>,
    /// See [`SubgraphCacheRule::stale_if_error`].
    pub stale_if_error: std::time::Duration,
    /// See [`SubgraphCacheRule::private_id`].
    pub private_id: Option<PrivateIdOptions>,
    /// See [`SubgraphCacheRule::ignore_headers`].
    pub ignore_headers: Vec<HeaderName>,
    /// See [`SubgraphCacheRule::shared_with_credentials`].
    pub shared_with_credentials: bool,
}

impl Config {
    /// How answers of a subgraph are kept; `None` if they are not.
    pub fn response_cache(&self, subgraph: &str) -> Option<ResolvedCacheRule> {
        let options = &self.response_cache.subgraph;
        let (all, none) = (&options.all, SubgraphCacheRule::default());
        let own = options.subgraphs.get(subgraph).unwrap_or(&none);
        let is_on = self.response_cache.enabled && own.enabled.or(all.enabled).unwrap_or(true);
        let ignored = own.ignore_headers.as_ref().or(all.ignore_headers.as_ref());
        let stale_if_error = own.stale_if_error.or(all.stale_if_error);
        let shared = own.shared_with_credentials.or(all.shared_with_credentials);
        is_on.then(|| ResolvedCacheRule {
            ttl: own.ttl.or(all.ttl).map(|ttl| ttl.0),
            stale_if_error: stale_if_error.map_or(std::time::Duration::ZERO, |time| time.0),
            private_id: own.private_id.as_ref().or(all.private_id.as_ref()).cloned(),
            ignore_headers: ignored.cloned().unwrap_or_default(),
            shared_with_credentials: shared.unwrap_or(false),
        })
    }
}

/// Headers that have another value in each request.
const OF_ONE_REQUEST: [&str; 11] = [
    "x-request-id",
    "x-correlation-id",
    "request-id",
    "x-amzn-trace-id",
    "x-cloud-trace-context",
    "traceparent",
    "tracestate",
    "b3",
    "x-b3-traceid",
    "x-b3-spanid",
    "cf-ray",
];

impl Config {
    /// What makes the cache less useful than it seems to be, for the operator: each a sentence.
    pub(crate) fn note_response_cache(&self) -> Vec<String> {
        let options = &self.response_cache;
        if !options.enabled {
            let is_set = *options != ResponseCacheOptions::default();
            let note = "`response_cache` has no effect: `response_cache.enabled` is false";
            return is_set.then(|| note.to_owned()).into_iter().collect();
        }
        let mut notes = Vec::new();
        // Rules for all subgraphs are looked at once, under a name that no subgraph has.
        let names = self.headers.subgraphs.keys().map(|name| (&**name, false));
        for (name, is_any) in names.chain([("", true)]) {
            let Some(rule) = self.response_cache(name) else {
                continue;
            };
            let of = if is_any { "all" } else { name };
            let sent = SentNames::of(self, name);
            let is_ignored = |header: &str| rule.ignore_headers.iter().any(|own| own.0 == header);
            for header in OF_ONE_REQUEST {
                if sent.contains(header) && !is_ignored(header) {
                    notes.push(format!(
                        "answers are hardly ever found in the cache: `headers` of `{of}` sends `{header}`, which differs in each \
                         request and is part of each key; add it to `response_cache.subgraph.all.ignore_headers`"
                    ));
                }
            }
            let identifies = ["authorization", "cookie"].iter().any(|h| sent.contains(h));
            if (identifies || sent.has_claims) && rule.private_id.is_none() {
                notes.push(format!(
                    "answers that say `private` are not kept: `headers` of `{of}` tells subgraphs who the caller is, and \
                     `response_cache.subgraph.all.private_id` does not say what identifies a user"
                ));
            }
        }
        notes.dedup();
        notes
    }
}

/// The headers that rules send to a subgraph.
struct SentNames<'a> {
    named: Vec<&'a str>,
    patterns: Vec<regex_lite::Regex>,
    /// Whether a rule writes a claim of the caller.
    has_claims: bool,
}

impl<'a> SentNames<'a> {
    fn of(config: &'a Config, subgraph: &str) -> Self {
        let mut sent = SentNames {
            named: Vec::new(),
            patterns: Vec::new(),
            has_claims: false,
        };
        for rule in config.request_header_rules(subgraph) {
            match rule.effect() {
                HeaderRule::Propagate {
                    from: HeaderSelector::Named(name),
                    rename,
                    ..
                } => sent.named.push(rename.as_deref().unwrap_or(name)),
                HeaderRule::Propagate {
                    from: HeaderSelector::Matching(pattern),
                    ..
                } => sent.patterns.extend(regex_lite::Regex::new(pattern)),
                HeaderRule::Insert { name, .. } | HeaderRule::InsertTemplate { name, .. } => {
                    sent.named.push(name);
                }
                HeaderRule::InsertFrom { name, from, .. } => {
                    sent.named.push(name);
                    sent.has_claims |= matches!(from, Selector::JwtClaim(_));
                }
                HeaderRule::Remove(HeaderSelector::Named(gone)) => {
                    sent.named.retain(|name| name != gone);
                }
                HeaderRule::Remove(_) | HeaderRule::When(..) => {}
            }
        }
        sent
    }

    fn contains(&self, header: &str) -> bool {
        self.named.contains(&header) || self.patterns.iter().any(|p| p.is_match(header))
    }
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;

    use super::*;

    fn config(text: &str) -> Config {
        crate::load(SourceId(0), text, &|_| None).unwrap()
    }

    #[test]
    fn what_is_not_set_for_a_subgraph_is_taken_from_all() {
        let config = config(
            "response_cache:\n  enabled: true\n  subgraph:\n    all: { ttl: 5s, private_id: { jwt_claim: sub } }\n    \
             subgraphs: { a: { enabled: false }, b: { ttl: 9s, ignore_headers: [x-request-id], shared_with_credentials: true } }",
        );
        assert_eq!(config.response_cache("a"), None);
        let b = config.response_cache("b").unwrap();
        assert_eq!(b.ttl.map(|ttl| ttl.as_secs()), Some(9));
        assert_eq!(b.private_id.unwrap().jwt_claim.as_deref(), Some("sub"));
        assert!(b.shared_with_credentials);
        let other = config.response_cache("other").unwrap();
        assert_eq!(other.ttl.map(|ttl| ttl.as_secs()), Some(5));
        assert!(other.ignore_headers.is_empty() && !other.shared_with_credentials);
        assert_eq!(Config::default().response_cache("a"), None);
    }

    #[test]
    fn headers_that_make_each_key_unique_are_reported_unless_ignored() {
        let on = "response_cache: { enabled: true, subgraph: { all: { ";
        let rule = |rule: &str| format!("}} }} }}\nheaders: {{ all: {{ request: [ {rule} ] }} }}");
        let notes = |set: &str, header: &str| {
            config(&format!("{on}{set}{}", rule(header))).note_response_cache()
        };
        let id = "propagate: { named: x-request-id }";
        let all = "propagate: { matching: '.*' }";
        assert!(notes("", id)[0].contains("`x-request-id`, which differs in each request"));
        assert_eq!(notes("ignore_headers: [x-request-id]", id), [""; 0]);
        assert!(
            notes("", all)
                .iter()
                .any(|note| note.contains("`traceparent`"))
        );
        assert!(notes("", "propagate: { named: cookie }")[0].contains("`private`"));
        let claim = "insert: { name: x-user, from: { jwt_claim: sub } }";
        assert!(notes("", claim)[0].contains("`private`"));
        assert_eq!(notes("private_id: { jwt_claim: sub }", claim), [""; 0]);
        assert_eq!(notes("enabled: false", id), [""; 0]);
        let off = config("response_cache: { in_memory: { bytes: 1MiB } }");
        assert!(off.note_response_cache()[0].contains("`response_cache.enabled` is false"));
    }
}
