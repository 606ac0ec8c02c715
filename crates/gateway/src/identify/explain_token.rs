//! What `ogive explain` shows of who asks: which key set and which key prove a token, what it claims, or why it does not count,
//! beside what is configured.
//!
//! What came of it is what the stage has found ([`CallerFacts`]). The details of a good token are asked once more of what has judged
//! it; those of a bad one are read without being believed.

use std::{fmt::Write, sync::Arc};

use http::{HeaderMap, Request, request::Parts};
use ogive_base::Peer;
use ogive_config::Config;
use ogive_edge::error::RequestError;
use ogive_identity::{
    Authenticator, Caller, TokenError, authenticator::SignatureCheck, base64url, key_source::now,
    token_introspection::is_jwt,
};
use ogive_server::offload::Offload;
use serde_json::{Map, Value};

use crate::{
    gateway::Serving,
    identify::tokens::{Authentication, AuthenticationOptions},
    shared::identity::Identity,
};

/// What a request has brought to say who asks, and what the stage has found.
pub(crate) struct CallerFacts {
    token: Option<Result<String, TokenError>>,
    has_api_key: bool,
    has_certificate: bool,
    /// The component that has said who asks, if one has.
    component: Option<&'static str>,
    /// `None` if nobody looked.
    caller: Option<Result<Arc<Caller>, RequestError>>,
    /// Whether anything could say who asks.
    is_wanted: bool,
    peer: Peer,
}

impl CallerFacts {
    /// That of a request behind the stage. `is_wanted`: it is to be told of, in any case.
    pub(crate) fn of(
        authentication: Option<&Authentication>,
        parts: &Parts,
        identity: &Identity,
        is_wanted: bool,
    ) -> Self {
        let token = authentication.and_then(|authentication| {
            let token = authentication.token(&parts.headers).transpose();
            token.map(|token| token.map(str::to_owned))
        });
        let certificate = authentication.and_then(|all| all.certificate(parts, identity));
        CallerFacts {
            token,
            has_api_key: !identity.api_key.is_empty(),
            has_certificate: certificate.is_some(),
            component: identity.component,
            caller: identity.caller.as_deref().cloned(),
            is_wanted: is_wanted || authentication.is_some() || identity.caller.is_some(),
            peer: identity.peer,
        }
    }

    /// What came of it, in one line; nothing if nothing could say who asks.
    pub(crate) fn summary(&self) -> String {
        match &self.caller {
            _ if !self.is_wanted => String::new(),
            Some(Err(error)) => {
                let message = error.errors.first().map_or("", |first| &first.message);
                format!("refused: {message} ({})", error.code())
            }
            Some(Ok(caller)) if caller.granted.authenticated => "known".to_owned(),
            _ => "nobody is known to ask".to_owned(),
        }
    }
}

/// What is shown of who asks.
pub(crate) async fn brought_text(serving: &Serving, brought: &CallerFacts) -> String {
    let mut out = String::new();
    let authentication = serving.services.authentication.as_deref();
    let told = match (authentication, &brought.token) {
        // Nobody has looked at the token then.
        _ if brought.component.is_some() => false,
        (Some(authentication), Some(Ok(token))) => {
            token_text(authentication, token, brought, &mut out).await;
            true
        }
        _ => false,
    };
    if told {
        return out;
    }
    let _ = writeln!(out, "{}", summary_of(brought, authentication));
    if let Some(Ok(caller)) = &brought.caller
        && caller.granted.authenticated
    {
        write_claims(caller, &mut out);
    }
    out
}

/// What was brought, and what came of it.
fn summary_of(brought: &CallerFacts, authentication: Option<&Authentication>) -> String {
    let summary = brought.summary();
    let is_known = matches!(&brought.caller, Some(Ok(caller)) if caller.granted.authenticated);
    let is_refused = matches!(&brought.caller, Some(Err(_)));
    if let Some(component) = brought.component {
        return format!("{component}: {summary}");
    }
    match authentication {
        Some(_) if brought.has_api_key && (is_known || is_refused) => format!("API key: {summary}"),
        Some(_) if brought.has_certificate && (is_known || is_refused) => {
            format!("client certificate: {summary}")
        }
        _ if is_known || is_refused => {
            format!("claims of {}: {summary}", shown_peer(brought.peer))
        }
        Some(authentication) => {
            format!(
                "{summary}; looked for in {}",
                authentication.options().places()
            )
        }
        None if brought.caller.is_some() => format!(
            "{summary}; {} claims nothing, or is not among `authorization.claims.trusted`",
            shown_peer(brought.peer)
        ),
        None => format!("{summary}; {NO_TOKENS}"),
    }
}

fn shown_peer(peer: Peer) -> String {
    match peer {
        Peer::Tcp(address) => format!("the peer {}", address.ip()),
        Peer::Unix => "the peer at the unix socket".to_owned(),
    }
}

const NO_TOKENS: &str =
    "neither `authentication.router.jwt` nor `introspection` is set: tokens mean nothing";

/// What is shown of a token.
async fn token_text(
    authentication: &Authentication,
    token: &str,
    brought: &CallerFacts,
    out: &mut String,
) {
    let endpoint = authentication.introspection();
    let jwt = authentication.jwt();
    let jwt = jwt.filter(|_| endpoint.is_none() || is_jwt(token));
    if let Some(jwt) = jwt {
        write_key_sets(jwt, out);
    }
    let by = match (jwt, endpoint) {
        (None, Some(endpoint)) => format!(", says {}", endpoint.shown()),
        _ => String::new(),
    };
    match &brought.caller {
        // What the stage has found counts, whatever would be found now.
        Some(Err(_)) => {
            let _ = writeln!(out, "{}{by}", brought.summary());
        }
        Some(Ok(caller)) if jwt.is_none() && caller.granted.authenticated => {
            let end = caller.claims.get("exp").and_then(Value::as_u64);
            let end = end.map_or_else(String::new, |end| format!("; ends {}", shown_end(end)));
            let _ = writeln!(out, "good{by}{end}");
            write_claims(caller, out);
            return;
        }
        _ => {
            let why = match jwt {
                // The details of the proof, which the caller has no more.
                Some(jwt) => match judge(jwt, token, out).await {
                    Ok(()) => return,
                    Err(error) => format!("{} ({})", error.description(), error.code()),
                },
                None => "the token does not count".to_owned(),
            };
            let _ = writeln!(out, "refused{by}: {why}");
            out.push_str("the request goes on as if it had no token (`on_error: continue`)\n");
        }
    }
    if let Some(jwt) = jwt {
        write_token(token, out);
        write_rules(jwt, out);
    }
}

/// Judges a token as the configuration says; fetches key sets for it.
pub async fn explain_token(config: &Config, token: &str) -> (String, Option<Arc<Caller>>) {
    let Some(options) = AuthenticationOptions::new(config) else {
        return (format!("{NO_TOKENS}\n"), None);
    };
    let (mut parts, ()) = Request::new(()).into_parts();
    options.bring(token, &mut parts.headers);
    let authentication = Authentication::start(options, None);
    authentication.tried().await;
    let mut identity = Identity::of(Peer::Unix);
    let offload = Offload::default();
    let found = authentication.identify(&parts, &identity, &offload).await;
    identity.caller = found.map(Box::new);
    let brought = CallerFacts::of(Some(&authentication), &parts, &identity, true);
    let mut out = String::new();
    match &brought.token {
        Some(Ok(token)) => token_text(&authentication, token, &brought, &mut out).await,
        Some(Err(error)) => {
            let _ = writeln!(out, "refused: {} ({})", error.description(), error.code());
        }
        None if authentication.options().credentials().sources.is_empty() => {
            let _ = writeln!(out, "{NO_TOKENS}");
        }
        None => out.push_str("refused: no header can hold the token (INVALID_TOKEN)\n"),
    }
    if !config.authentication.router.components.is_empty() {
        out.push_str(
            "components are asked first where an operation is explained, and were not asked here\n",
        );
    }
    (out, identity.caller().ok().flatten())
}

impl AuthenticationOptions {
    /// Puts a token where one is looked for first.
    pub(crate) fn bring(&self, token: &str, headers: &mut HeaderMap) {
        self.credentials().put(token, headers);
    }
}

fn write_key_sets(jwt: &Authenticator, out: &mut String) {
    for (at, source) in jwt.sources().iter().enumerate() {
        let _ = write!(out, "key set {at}: {}", source.options().shown());
        match (source.keys(), source.failure()) {
            (Some(keys), _) => {
                let names = keys.keys().iter().map(|key| {
                    let kid = key.kid().unwrap_or("(no kid)");
                    format!("{kid} {:?}", key.allowed())
                });
                let _ = writeln!(out, ": {}", names.collect::<Vec<_>>().join(", "));
                for why in &keys.skipped {
                    let _ = writeln!(out, "  left out: {why}");
                }
            }
            (None, Some(why)) => {
                let _ = writeln!(out, ": no keys: {why}");
            }
            (None, None) => out.push_str(": no keys yet\n"),
        }
    }
}

/// What a token says of itself, which nobody believes.
fn write_token(token: &str, out: &mut String) {
    let mut parts = token.split('.');
    let mut part = || -> Option<Map<String, Value>> {
        let bytes = base64url::decode(parts.next()?.as_bytes())?;
        serde_json::from_slice(&bytes).ok()
    };
    let (head, claims) = (part(), part());
    let mut said = Vec::new();
    for (of, name) in [
        (&claims, "iss"),
        (&claims, "aud"),
        (&head, "kid"),
        (&head, "alg"),
        (&head, "typ"),
        (&claims, "exp"),
        (&claims, "nbf"),
    ] {
        let Some(value) = of.as_ref().and_then(|members| members.get(name)) else {
            continue;
        };
        let when = match (name, value.as_f64()) {
            ("exp" | "nbf", Some(at)) => match (at as i64).saturating_sub(now() as i64) {
                past @ ..=0 => format!(" ({} s ago)", past.unsigned_abs()),
                ahead => format!(" (in {ahead} s)"),
            },
            _ => String::new(),
        };
        said.push(format!("{name} {value}{when}"));
    }
    let said = match said.as_slice() {
        [] => "nothing that can be read".to_owned(),
        said => said.join(", "),
    };
    let _ = writeln!(out, "the token says: {said}");
}

/// What tokens have to say.
fn write_rules(jwt: &Authenticator, out: &mut String) {
    let options = jwt.options();
    for (at, set) in options.sets.iter().enumerate() {
        let list = |names: &[Box<str>], otherwise: &str| match names {
            [] => otherwise.to_owned(),
            names => names.join(", "),
        };
        let _ = writeln!(
            out,
            "key set {at} takes: iss {}; aud {}; {} and {} s of clock skew",
            list(&set.issuers, "whatever no other set names"),
            list(&set.audiences, "whatever it says"),
            if set.allow_missing_exp {
                "exp or none"
            } else {
                "exp"
            },
            options.clock_skew.as_secs(),
        );
    }
}

fn shown_end(end: u64) -> String {
    match end {
        u64::MAX => "never".to_owned(),
        end => format!("in {} s", end.saturating_sub(now())),
    }
}

async fn judge(jwt: &Authenticator, token: &str, out: &mut String) -> Result<(), TokenError> {
    let check = async |check: SignatureCheck| check();
    let (judged, _) = jwt.judge(token, now(), &check).await?;
    let end = shown_end(judged.end);
    let kid = judged.kid.as_deref().unwrap_or("(no kid)");
    let _ = writeln!(
        out,
        "proved by key set {}, key {kid}, {}; ends {end}",
        judged.set,
        judged.algorithm.name()
    );
    write_claims(&judged.caller, out);
    Ok(())
}

fn write_claims(caller: &Caller, out: &mut String) {
    let list = |names: &[Box<str>]| {
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(" ")
        }
    };
    let _ = writeln!(out, "scopes: {}", list(&caller.granted.scopes));
    let _ = writeln!(out, "policies: {}", list(&caller.granted.policies));
    for (name, value) in &caller.claims {
        let _ = writeln!(out, "claim {name}: {value}");
    }
}
