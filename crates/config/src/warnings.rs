//! What is no mistake, but does not do what it seems to, for the operator ([`Config::notes`]), and what must not be served
//! with once arguments have been applied ([`Config::refusals`]).

use ogive_base::PeerRange;

use crate::{Config, HeaderRule, HeaderSelector, RateLimitKey, scalars::without_secrets};

/// Origins that nobody means.
const NOBODYS_ORIGINS: [&str; 2] = ["https://a.invalid", "https://xn--9-zqb.invalid:8443"];

impl Config {
    /// Why it must not be served with, once arguments have been applied to it: what it trusts is not there, so it may
    /// trust something else than was meant. With the key, part by part.
    pub fn refusals(&self) -> Vec<(&'static [&'static str], String)> {
        let trusting: [(&'static [&'static str], _); 2] = [
            (
                &["authorization", "claims", "trusted"],
                &self.authorization.claims.trusted,
            ),
            (&["http", "trusted_proxies"], &self.http.trusted_proxies),
        ];
        let unix = trusting
            .into_iter()
            .filter(|(_, ranges)| !self.listen.is_unix() && ranges.contains(&PeerRange::Unix));
        unix.map(|(key, _)| {
            let message = format!(
                "`{}` has `unix`, but nobody listens on a unix socket: `listen` is {}",
                key.join("."),
                self.listen.0
            );
            (key, message)
        })
        .collect()
    }

    /// What does not do what it seems to, for the operator: each a sentence.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Notes::default();
        self.note_documents_and_origins(&mut notes);
        self.note_trust(&mut notes);
        self.note_pages_of_others(&mut notes);
        self.note_what_clients_see(&mut notes);
        self.note_shared_rate(&mut notes);
        notes.0.extend(self.note_clear_text());
        self.note_without_effect(&mut notes);
        self.note_switched_off(&mut notes);
        self.note_limits(&mut notes);
        self.note_header_rules(&mut notes);
        notes.0.extend(self.note_what_subgraphs_are_told());
        self.note_tokens(&mut notes);
        self.note_subscriptions(&mut notes);
        notes.0.extend(self.note_response_cache());
        notes.0
    }
    /// Whether there are tokens, keys or components by which callers are known.
    pub fn knows_callers(&self) -> bool {
        let router = &self.authentication.router;
        !router.jwt.jwks.is_empty()
            || router.api_keys.is_some()
            || router.introspection.is_some()
            || router.client_certificate.is_some()
            || !router.components.is_empty()
    }
    /// Events and subscriptions that are set up, and that nobody gets.
    fn note_subscriptions(&self, notes: &mut Notes) {
        if self.subscription.enabled {
            return;
        }
        let providers = &self.events.providers;
        let are_there = *providers != crate::EventProvidersOptions::default();
        notes.add(
            are_there,
            "nobody gets events of `events.providers`: `subscription.enabled` is false, so every subscription is refused",
        );
        notes.add(
            !are_there && self.subscription != crate::SubscriptionOptions::default(),
            "`subscription` has no effect: `subscription.enabled` is false, so every subscription is refused",
        );
    }
    /// Tokens that were made for others, and that nobody would notice.
    fn note_tokens(&self, notes: &mut Notes) {
        let introspection = self.authentication.router.introspection.as_ref();
        if introspection.is_some_and(|options| options.audiences.is_empty()) {
            notes.0.push(
                "tokens that their issuer made for other services are good here, too: `authentication.router.introspection` \
                 has no `audiences`"
                    .to_owned(),
            );
        }
        for set in &self.authentication.router.jwt.jwks {
            let name = match (&set.url, &set.discovery) {
                (Some(crate::KeySetUrl::Http(url)), _) | (None, Some(url)) => &url.0,
                (Some(crate::KeySetUrl::File(path)), _) => path,
                (None, None) => continue,
            };
            let name = without_secrets(name);
            if set.audiences.is_empty() {
                notes.0.push(format!(
                    "tokens that its issuer made for other services are good here, too: the key set `{name}` has no `audiences`"
                ));
            }
            if set.discovery.is_none() && set.issuers.is_empty() {
                notes.0.push(format!(
                    "tokens of every issuer that no other key set is for are good here if a key of `{name}` made them: it has no `issuers`"
                ));
            }
        }
    }
    /// Persisted documents that are not asked for, and credentials that no page may send.
    fn note_documents_and_origins(&self, notes: &mut Notes) {
        let (documents, cors) = (&self.persisted_queries, &self.cors);
        let any = documents.mode != crate::PersistedMode::Allow
            || documents.require_id
            || documents.log_unknown
            || !documents.clients.is_empty()
            || !documents.sources.is_empty()
            || !documents.local_manifests.is_empty();
        notes.add(
            any && !documents.enabled,
            "`persisted_queries` has no effect: `persisted_queries.enabled` is false, so every document is served",
        );
        notes.add(
            documents.enabled
                && documents.mode == crate::PersistedMode::Require
                && documents.sources.is_empty()
                && documents.local_manifests.is_empty(),
            "every operation is refused: `persisted_queries.mode` is `require`, and \
             `persisted_queries.local_manifests` is empty",
        );
        let strictness = |mode, require_id| (mode as u8, require_id);
        let asked = strictness(documents.mode, documents.require_id);
        let open = documents.clients.iter();
        let mut open = open.filter(|rule| strictness(rule.mode, rule.require_id) < asked);
        let open = open.next().filter(|_| documents.enabled);
        if let Some(rule) = open {
            notes.0.push(format!(
                "anybody can say that it is `{}`: its rule in `persisted_queries.clients` allows more than \
                 `persisted_queries.mode`, and so allows it to everybody",
                rule.name
            ));
        }
        notes.add(
            documents.unknown.file.is_some()
                && !documents.warn_only
                && !documents.log_unknown
                && documents.mode != crate::PersistedMode::Log
                && documents.clients.iter().all(|rule| rule.mode != crate::PersistedMode::Log),
            "`persisted_queries.unknown` has no effect: unknown documents are not logged; set \
             `persisted_queries.log_unknown`, `persisted_queries.mode: log` or `persisted_queries.warn_only`",
        );
        notes.add(
            cors.allow_any_origin && cors.allow_credentials && cors.policies.is_empty(),
            "`cors.allow_credentials` has no effect: with `allow_any_origin` no page may send credentials; name the \
             origins that may in `cors.policies`",
        );
    }
    /// Everybody being trusted to say who a client is.
    fn note_trust(&self, notes: &mut Notes) {
        notes.add(
            PeerRange::hold_half_of_all(&self.authorization.claims.trusted),
            "anybody can be anybody: `authorization.claims.trusted` holds half of all addresses or more; name those of the \
             proxies that set the header",
        );
        notes.add(
            PeerRange::hold_half_of_all(&self.http.trusted_proxies),
            "every client can name itself as it likes, and has no limit on connections: `http.trusted_proxies` holds half of \
             all addresses or more; name those of the proxies",
        );
    }
    /// Pages of other origins that may send what a visitor's browser is trusted with.
    fn note_pages_of_others(&self, notes: &mut Notes) {
        let (csrf, cors) = (&self.csrf, &self.cors);
        notes.add(
            !csrf.enabled,
            "any page can have its visitors' browsers send operations: `csrf.enabled` is false",
        );
        for policy in &cors.policies {
            if !policy.allow_credentials.unwrap_or(cors.allow_credentials) {
                continue;
            }
            notes.add(
                policy.origins.iter().any(|origin| origin == "null"),
                "any page can act for its visitors: a policy of `cors.policies` lets the origin `null` send credentials, and \
                 every page can have that origin",
            );
            let every = policy.match_origins.iter().any(|pattern| {
                let whole = regex_lite::Regex::new(&format!("^(?:{})$", pattern.0));
                whole.is_ok_and(|whole| NOBODYS_ORIGINS.iter().all(|origin| whole.is_match(origin)))
            });
            notes.add(
                every,
                "any page can act for its visitors: a pattern of `cors.policies` that may send credentials matches every \
                 origin; name yours",
            );
        }
    }
    /// Plans and times that every client can ask for.
    fn note_what_clients_see(&self, notes: &mut Notes) {
        let expose = &self.query_planning.expose;
        if expose.enabled {
            notes.0.push(format!(
                "every client that sends the header `{}` sees plans, with the names of subgraphs and what they are asked: \
                 `query_planning.expose` knows no secret, so let the proxy in front take the header away",
                expose.header.0
            ));
        }
        let trace = &self.telemetry.execution_trace;
        if trace.enabled && trace.secret.is_none() {
            notes.0.push(format!(
                "every client that sends `{}: true` sees the names of subgraphs and how long they take: set \
                 `telemetry.execution_trace.secret`",
                trace.header.0
            ));
        }
    }
    /// Addresses that all clients have in common.
    fn note_shared_rate(&self, notes: &mut Notes) {
        let rate = self.traffic_shaping.router.rate_limit.as_ref();
        notes.add(
            rate.is_some_and(|rate| rate.key == RateLimitKey::Ip)
                && self.listen.is_unix()
                && !self.http.trusted_proxies.contains(&PeerRange::Unix),
            "all clients share one rate: at a unix socket nobody has an address; let the proxy name the clients, and set \
             `http.trusted_proxies: [unix]`",
        );
    }
    /// Sections that say something and are not switched on.
    fn note_switched_off(&self, notes: &mut Notes) {
        let costs = &self.demand_control;
        let nothing = crate::DemandControlOptions::default();
        notes.add(
            !costs.enabled && *costs != nothing,
            "`demand_control` has no effect: `demand_control.enabled` is false, so nothing costs anything",
        );
        notes.add(
            costs.enabled && costs.mode.is_none(),
            "no operation is refused for what it costs: `demand_control.mode` is not set, so costs are only measured; set \
             `enforce`, or `measure` if that is meant",
        );
        let nothing = crate::UsageOptions::default();
        notes.add(
            !self.usage.enabled && self.usage != nothing,
            "`usage` has no effect: `usage.enabled` is false, so nothing is counted",
        );
        let usage = &self.usage;
        let is_told = usage.file.path.is_some() || usage.hive.is_some() || usage.otlp.is_some();
        notes.add(
            usage.enabled && !is_told,
            "usage is counted and told to nobody: set `usage.file.path`, `usage.hive` or `usage.otlp`",
        );
        let (log, nothing) = (
            &self.telemetry.access_log,
            crate::AccessLogOptions::default(),
        );
        notes.add(
            !log.enabled && *log != nothing,
            "`telemetry.access_log` has no effect: `telemetry.access_log.enabled` is false",
        );
    }
    /// Keys that another one makes void.
    fn note_without_effect(&self, notes: &mut Notes) {
        let supergraph = &self.supergraph;
        notes.add(
            supergraph.url.is_some() && supergraph.path.is_some(),
            "`supergraph.path` has no effect: `supergraph.url` is set, too",
        );
        if let Some(rate) = &self.traffic_shaping.router.rate_limit {
            notes.add(
                rate.key != RateLimitKey::Header && rate.header.0 != "authorization",
                "`traffic_shaping.router.rate_limit.header` has no effect: `key` is not `header`",
            );
        }
    }
    /// Limits that nothing can keep.
    fn note_limits(&self, notes: &mut Notes) {
        notes.add(
            self.limits.parser_max_recursion == 0,
            "every operation is refused: `limits.parser_max_recursion` is 0",
        );
        for (key, most) in [
            ("max_depth", self.limits.max_depth),
            ("max_height", self.limits.max_height),
            ("max_root_fields", self.limits.max_root_fields),
        ] {
            if most == Some(0) {
                notes.0.push(format!(
                    "every operation is refused: `limits.{key}` is 0; `null` is no limit"
                ));
            }
        }
    }
    /// Rules for headers that rules cannot write.
    fn note_header_rules(&self, notes: &mut Notes) {
        let sections = self.headers.subgraphs.iter();
        let sections = sections.map(|(name, section)| (format!("subgraphs.{name}"), section));
        let all = ("all".to_owned(), &self.headers.all);
        for (place, section) in [all].into_iter().chain(sections) {
            for name in section.request.iter().filter_map(written_by_request_rule) {
                if ogive_base::is_of_one_hop(&name.to_ascii_lowercase()) {
                    notes.0.push(format!(
                        "a rule of `headers.{place}.request` for `{name}` has no effect: only the connection writes it"
                    ));
                }
            }
        }
    }
}

/// Sentences for the operator.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    fn add(&mut self, wrong: bool, text: &str) {
        if wrong {
            self.0.push(text.to_owned());
        }
    }
}

/// The header that a rule writes or copies, if it names one.
fn written_by_request_rule(rule: &HeaderRule) -> Option<&str> {
    match rule.effect() {
        HeaderRule::Propagate {
            rename: Some(name), ..
        }
        | HeaderRule::Propagate {
            from: HeaderSelector::Named(name),
            ..
        }
        | HeaderRule::Insert { name, .. }
        | HeaderRule::InsertFrom { name, .. }
        | HeaderRule::InsertTemplate { name, .. } => Some(name),
        HeaderRule::Propagate { .. } | HeaderRule::Remove(_) | HeaderRule::When(..) => None,
    }
}
