//! What `ogive explain` shows of a token: which key set and which key prove it, what it claims, or why it does not count.

use std::{fmt::Write, sync::Arc};

use ogive_config::Config;
use ogive_identity::{
    Authenticator, Caller, TokenError,
    authenticator::SignatureCheck,
    key_source::now,
    token_introspection::{TokenIntrospection, is_jwt},
};

use crate::identify::tokens::{Authentication, AuthenticationOptions};

/// Judges a token as the configuration says; fetches key sets for it.
pub async fn explain_token(config: &Config, token: &str) -> (String, Option<Arc<Caller>>) {
    let mut out = String::new();
    let options = AuthenticationOptions::new(config);
    let authentication = options.map(|options| Authentication::start(options, None));
    let introspection = authentication
        .as_ref()
        .and_then(Authentication::introspection);
    let jwt = authentication.as_ref().and_then(Authentication::jwt);
    let (jwt, endpoint) = match (jwt, introspection) {
        (None, None) => {
            out.push_str(
                "neither `authentication.router.jwt` nor `introspection` is set: tokens mean nothing\n",
            );
            return (out, None);
        }
        (jwt, endpoint) => (
            jwt.filter(|_| endpoint.is_none() || is_jwt(token)),
            endpoint,
        ),
    };
    let Some(jwt) = jwt else {
        return match endpoint {
            Some(endpoint) => introspected(endpoint, token, out).await,
            None => (out, None),
        };
    };
    for (at, source) in jwt.sources().iter().enumerate() {
        source.tried().await;
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
    match judge(jwt, token, &mut out).await {
        Ok(caller) => (out, Some(caller)),
        Err(error) => {
            let _ = writeln!(out, "refused: {} ({})", error.description(), error.code());
            (out, None)
        }
    }
}

/// What its issuer says of a token that only it can read.
async fn introspected(
    endpoint: &TokenIntrospection,
    token: &str,
    mut out: String,
) -> (String, Option<Arc<Caller>>) {
    match endpoint.caller(token).await {
        Ok((caller, end)) => {
            let _ = writeln!(
                out,
                "good, says {}; ends {}",
                endpoint.shown(),
                shown_end(end)
            );
            write_claims(&caller, &mut out);
            (out, Some(caller))
        }
        Err(error) => {
            let (why, code) = (error.description(), error.code());
            let _ = writeln!(out, "refused by {}: {why} ({code})", endpoint.shown());
            (out, None)
        }
    }
}

fn shown_end(end: u64) -> String {
    match end {
        u64::MAX => "never".to_owned(),
        end => format!("in {} s", end.saturating_sub(now())),
    }
}

async fn judge(
    jwt: &Authenticator,
    token: &str,
    out: &mut String,
) -> Result<Arc<Caller>, TokenError> {
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
    Ok(judged.caller)
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
