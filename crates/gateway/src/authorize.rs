//! Who may see what (planner rule 28): `@authenticated`, `@requiresScopes` and `@policy` of the supergraph.
//!
//! Plans carry the requirements; here is what the configuration makes of them, and how the gateway learns who a caller
//! is. A supergraph with restrictions is refused unless the configuration says what to do with them, because serving
//! it would show everybody what its authors meant for some.
//!
//! Invariants: a caller of whom nothing is known has no claims; the header with claims never reaches anything but
//! [`ClaimsSource::take`]; ignoring restrictions takes them out of the supergraph, so that no plan made while they were
//! ignored is good for a gateway that enforces them (the fingerprints differ).

use http::{HeaderMap, HeaderName};
use ogive_base::{Peer, PeerRange};
use ogive_config::{AuthorizationDirectives, Config, OperationWord};
use ogive_edge::{
    error::{CHALLENGE, RequestError, challenge},
    header::take,
    json_value,
};
use ogive_execute::refused_places;
use ogive_federation::{Restrictions, Supergraph, vocabulary::Spec};
use ogive_identity::Caller;
use ogive_json::ValueError;
use ogive_plan::{Claims, Granted, OperationKind, Plan};
use ogive_schema::AppliedDirective;
use ogive_telemetry::codes;
use serde_json::{Map, Value};

use crate::redaction;

/// Checks that nothing is restricted, or that the configuration says what becomes of it. The error says what is, and
/// what to do.
pub fn check(supergraph: &Supergraph, config: &Config) -> Result<(), String> {
    if config.authorization.directives != AuthorizationDirectives::Refuse {
        return Ok(());
    }
    match restricted(supergraph).as_slice() {
        [] => Ok(()),
        [first, rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                1 => " and one more type or field".to_owned(),
                n => format!(" and {n} more types and fields"),
            };
            Err(format!(
                "the supergraph restricts {first}{more}, and the configuration does not say what to do about it"
            ))
        }
    }
}

/// What is restricted, by which directive.
fn restricted(supergraph: &Supergraph) -> Vec<String> {
    let schema = &supergraph.schema;
    let names: Vec<String> = [Spec::Authenticated, Spec::RequiresScopes, Spec::Policy]
        .into_iter()
        .filter_map(|spec| supergraph.links.directive(spec, spec.name()))
        .collect();
    let by = |directives: &[AppliedDirective]| {
        let applied = directives.iter().map(|d| schema.name(d.name));
        applied
            .filter_map(|applied| names.iter().find(|name| **name == *applied))
            .next()
            .cloned()
    };
    let mut out = Vec::new();
    for (ty, def) in schema.types() {
        if let Some(name) = by(&def.directives) {
            out.push(format!("`{}` with `@{name}`", schema.type_name(ty)));
        }
        for field in &def.fields {
            if let Some(name) = by(&schema.fields[*field].directives) {
                out.push(format!(
                    "`{}` with `@{name}`",
                    schema.field_coordinate(*field)
                ));
            }
        }
    }
    out
}

/// Takes the restrictions out of a supergraph if they are to be ignored; returns notes for the operator.
pub(crate) fn settle(supergraph: &mut Supergraph, config: &Config) -> Vec<String> {
    let options = &config.authorization;
    let mut notes = Vec::new();
    if options.directives == AuthorizationDirectives::Ignore {
        supergraph.restrictions = Restrictions::default();
    }
    if options.directives != AuthorizationDirectives::Enforce {
        return notes;
    }
    match (&options.claims.header, options.claims.trusted.as_slice()) {
        (None, _) if !supergraph.restrictions.is_empty() && !config.knows_callers() => notes.push(
            "nobody may see what the supergraph restricts: neither `authentication.router` nor \
             `authorization.claims.header` is set, so every caller is unauthenticated"
                .to_owned(),
        ),
        (Some(header), []) => notes.push(format!(
            "nobody is believed about `{}`: `authorization.claims.trusted` is empty, so every caller is unauthenticated",
            header.0
        )),
        _ => {}
    }
    redaction::restrict(supergraph, config, &mut notes);
    let asked: Vec<&str> = supergraph
        .restrictions
        .requirements
        .iter()
        .filter_map(|requirement| requirement.policies.as_ref())
        .flat_map(|alternatives| alternatives.iter().flatten().map(|policy| &**policy))
        .collect();
    for name in options.policies.rules.keys() {
        if !asked.contains(&name.as_str()) {
            notes.push(format!(
                "`authorization.policies.rules` mentions the policy `{name}`, which the supergraph does not have"
            ));
        }
    }
    if options.dry_run && !supergraph.restrictions.is_empty() {
        notes.push(
            "`authorization.dry_run` is on: what the supergraph restricts is shown to everybody"
                .to_owned(),
        );
    }
    notes
}

/// What becomes of operations that ask for what their callers may not see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnforceOptions {
    /// They are refused as a whole; else what may not be seen is null.
    pub reject: bool,
    /// They are only logged.
    pub dry_run: bool,
    /// Whether queries need a caller that is known.
    pub queries_need_caller: bool,
    /// Whether mutations do.
    pub mutations_need_caller: bool,
    /// Whether subscriptions do.
    pub subscriptions_need_caller: bool,
    /// Whether introspection does.
    pub introspection_needs_caller: bool,
    /// How callers prove who they are, as in `www-authenticate`.
    pub challenge: &'static str,
}

fn needs_caller(config: &Config, word: OperationWord) -> bool {
    let options = &config.authorization;
    options.require_authentication || options.require_authentication_for.contains(&word)
}

/// Most places named in an error or in the log.
const PLACES_MAX: usize = 10;

impl EnforceOptions {
    /// The options that a configuration asks for.
    pub fn new(config: &Config) -> Self {
        let options = &config.authorization;
        let enforces = options.directives == AuthorizationDirectives::Enforce;
        // Events show what queries show: who keeps either from strangers keeps both.
        let subscriptions = [
            OperationWord::Subscription,
            OperationWord::Query,
            OperationWord::Mutation,
        ];
        EnforceOptions {
            reject: enforces && options.reject_unauthorized,
            dry_run: enforces && options.dry_run,
            queries_need_caller: needs_caller(config, OperationWord::Query),
            mutations_need_caller: needs_caller(config, OperationWord::Mutation),
            subscriptions_need_caller: subscriptions.iter().any(|word| needs_caller(config, *word)),
            introspection_needs_caller: needs_caller(config, OperationWord::Introspection),
            challenge: challenge(config),
        }
    }

    /// Whether operations of a kind need a caller that is known.
    pub(crate) fn needs_caller(&self, kind: OperationKind) -> bool {
        match kind {
            OperationKind::Query => self.queries_need_caller,
            OperationKind::Mutation => self.mutations_need_caller,
            OperationKind::Subscription => self.subscriptions_need_caller,
        }
    }
    /// Whether operations of any kind do.
    pub(crate) fn ever_needs_caller(&self) -> bool {
        self.queries_need_caller || self.mutations_need_caller || self.subscriptions_need_caller
    }
    /// Whether what a plan does needs one.
    pub(crate) fn needs_caller_of(&self, plan: &Plan) -> bool {
        self.needs_caller(plan.kind) || self.introspection_needs_caller && plan.locals > 0
    }

    /// What a caller may see of a plan. The error refuses the operation.
    pub fn granted(
        &self,
        plan: &Plan,
        variables: &[Option<Box<str>>],
        claims: &Claims,
    ) -> Result<Granted, RequestError> {
        if plan.requirements.is_empty() {
            return Ok(Granted::default());
        }
        let granted = plan.granted_to(claims);
        if !self.reject && !self.dry_run {
            return Ok(granted);
        }
        // A mask is what such a caller is to see; a dry run shows what is behind it.
        let places = refused_places(plan, variables, &granted, PLACES_MAX, self.dry_run);
        if places.is_empty() {
            return Ok(granted);
        }
        let places = places.join(", ");
        if self.dry_run {
            tracing::warn!(
                places,
                "a caller asks for what it may not see; shown in a dry run"
            );
            return Ok(Granted::everything(plan));
        }
        let message = format!("Unauthorized field or type: {places}");
        Err(RequestError {
            challenge: insufficient(self.challenge, claims),
            ..RequestError::graphql(codes::UNAUTHORIZED_FIELD_OR_TYPE, message)
        })
    }
}

/// What a refused caller is asked for: a token that may do more (RFC 6750, section 3.1), or to say who it is.
fn insufficient(challenge: &'static str, claims: &Claims) -> Option<Box<str>> {
    if !claims.authenticated {
        return Some(challenge.into());
    }
    let further = challenge.strip_prefix(CHALLENGE)?;
    Some(format!("{CHALLENGE}, error=\"insufficient_scope\"{further}").into())
}

/// How the caller of a request is known: from a header that peers in front of the gateway set.
#[derive(Clone, Debug, Default)]
pub struct ClaimsSource {
    header: Option<HeaderName>,
    trusted: Vec<PeerRange>,
}

impl ClaimsSource {
    /// The source that a configuration names.
    pub fn new(config: &Config) -> Self {
        let claims = &config.authorization.claims;
        let header = claims.header.as_ref();
        ClaimsSource {
            header: header.and_then(|name| HeaderName::from_bytes(name.0.as_bytes()).ok()),
            trusted: claims.trusted.clone(),
        }
    }

    /// Whether callers can have claims at all.
    pub(crate) fn is_on(&self) -> bool {
        self.header.is_some()
    }

    /// Takes the claims out of a request's headers, whoever sent it. They count only if a trusted peer did.
    pub fn take(&self, headers: &mut HeaderMap, peer: Peer) -> Result<Caller, RequestError> {
        let Some(name) = &self.header else {
            return Ok(Caller::default());
        };
        let values = take(headers, name);
        if values.is_empty() {
            return Ok(Caller::default());
        }
        let client = peer.client();
        if !self.trusted.iter().any(|range| range.contains(client)) {
            tracing::debug!(header = %name, "claims of a peer that is not trusted are dropped");
            return Ok(Caller::default());
        }
        // A second value could be the client's, behind or before that of the proxy.
        match values.as_slice() {
            [one] => caller(one.as_bytes()).map_err(invalid),
            _ => Err(invalid("it is there more than once")),
        }
    }
}

fn invalid(why: &'static str) -> RequestError {
    RequestError::http(
        codes::INVALID_CLAIMS,
        format!("the header that says who the caller is cannot be used: {why}"),
    )
}

/// `{"authenticated": true, "scopes": ["a"], "policies": ["p"], "claims": {"sub": "x"}}`; all members may be left out,
/// others are refused, so that a misspelt one is noticed.
fn caller(json: &[u8]) -> Result<Caller, &'static str> {
    let members = match json_value::read_once(json) {
        Ok(Value::Object(members)) => members,
        Err(ValueError::MemberTwice) => return Err("a member is there more than once"),
        Err(ValueError::HalfCharacter) => return Err("a text in it has half a character"),
        _ => return Err("it is no JSON object"),
    };
    let names = |value: Value| -> Result<Vec<Box<str>>, &'static str> {
        let Value::Array(items) = value else {
            return Err("`scopes` and `policies` are lists of texts");
        };
        let text = |item| match item {
            Value::String(text) => Ok(text.into_boxed_str()),
            _ => Err("`scopes` and `policies` are lists of texts"),
        };
        items.into_iter().map(text).collect()
    };
    let mut out = Claims {
        authenticated: true,
        ..Claims::default()
    };
    let mut claims = Map::new();
    for (name, value) in members {
        match (name.as_str(), value) {
            ("authenticated", Value::Bool(authenticated)) => out.authenticated = authenticated,
            ("authenticated", _) => return Err("`authenticated` is true or false"),
            ("scopes", value) => out.scopes = names(value)?,
            ("policies", value) => out.policies = names(value)?,
            ("claims", Value::Object(members)) => claims = members,
            ("claims", _) => return Err("`claims` is a JSON object"),
            _ => return Err("its members are `authenticated`, `scopes`, `policies` and `claims`"),
        }
    }
    ogive_identity::claims::end(&claims)?;
    Ok(Caller {
        granted: out,
        claims,
        ..Caller::default()
    })
}
