//! Who asks, as components say it (`authentication.router.components`): asked before tokens and keys are looked at, by the
//! head of the request as far as each may read it.
//!
//! One that failed has proved nobody: the request is refused, or it counts as if it knew nothing.

use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, request::Parts};
use ogive_component::{CallError, Decision, Exchange, Plugin, Verdict};
use ogive_coprocessor::CallMode;
use ogive_edge::error::RequestError;
use ogive_identity::{Caller, TokenError, claims};
use ogive_telemetry::codes;

use super::{
    credential::Credential,
    kept_head::KeptHead,
    tokens::{Authentication, CallerVerdict, refusal},
};
use crate::{
    coprocessor::{decide::Question, plugins::LoadedPlugin},
    shared::telling::Telling,
    subscribe::owner::kept_apart,
};

/// The head of a request, of one that is there or of one that was kept ([`KeptHead`]).
#[derive(Clone, Copy)]
struct Head<'h> {
    method: &'h str,
    uri: &'h str,
    headers: &'h HeaderMap,
}

impl Head<'_> {
    /// What of it a component is lent.
    fn lent_to(self, plugin: &Plugin) -> Exchange {
        Exchange {
            method: self.method.to_owned(),
            uri: self.uri.to_owned(),
            headers: readable(self.headers, std::iter::once(plugin)),
            ..Exchange::to_decide()
        }
    }
}

/// Headers that one of some components may read.
fn readable<'p>(headers: &HeaderMap, plugins: impl Iterator<Item = &'p Plugin>) -> HeaderMap {
    let permitted: Vec<_> = plugins
        .map(|plugin| &plugin.options().permissions.read_headers)
        .collect();
    let is_read = |name: &str| permitted.iter().any(|names| names.contains(name));
    kept_apart(headers.iter().filter(|(name, _)| is_read(name.as_str())))
}

/// The path with the query string.
fn uri(parts: &Parts) -> &str {
    parts.uri.path_and_query().map_or("", |path| path.as_str())
}

impl Authentication {
    /// What is kept of a head, if components look at it.
    pub(crate) fn kept_head(&self, parts: &Parts) -> Option<KeptHead> {
        let components = self.options().components();
        if components.is_empty() {
            return None;
        }
        let plugins = components.iter().map(|of| &*of.plugin);
        Some(KeptHead {
            method: parts.method.as_str().into(),
            uri: uri(parts).into(),
            headers: readable(&parts.headers, plugins),
        })
    }

    /// Who asks, as components say it of a request; `None` if none of them knows anything of what it brings.
    pub(crate) async fn ask_components(
        &self,
        parts: &Parts,
        telling: Telling<'_>,
    ) -> Option<(CallerVerdict, &'static str)> {
        let head = Head {
            method: parts.method.as_str(),
            uri: uri(parts),
            headers: &parts.headers,
        };
        self.ask_all(head, telling).await
    }

    /// The same of what was kept.
    pub(crate) async fn ask_about(
        &self,
        kept: &Credential,
        telling: Telling<'_>,
    ) -> Option<(CallerVerdict, &'static str)> {
        let kept = kept.head()?;
        let head = Head {
            method: &kept.method,
            uri: &kept.uri,
            headers: &kept.headers,
        };
        self.ask_all(head, telling).await
    }

    /// The first that knows something says it; with what that one is called.
    async fn ask_all(
        &self,
        head: Head<'_>,
        telling: Telling<'_>,
    ) -> Option<(CallerVerdict, &'static str)> {
        for of in self.options().components() {
            if let Some(known) = self.ask_one(of, head, telling).await {
                return Some((known, of.hook.word()));
            }
        }
        None
    }

    async fn ask_one(
        &self,
        of: &LoadedPlugin,
        head: Head<'_>,
        telling: Telling<'_>,
    ) -> Option<CallerVerdict> {
        let mut lent = head.lent_to(&of.plugin);
        let said = of.ask(
            Question {
                decision: Decision::Authenticate,
                call: move |plugin: &Plugin, mode: CallMode| said(plugin, &mut lent, mode),
                ends: |verdict: &Verdict| matches!(verdict, Verdict::Refused(_)),
                code: codes::AUTHENTICATION_UNAVAILABLE,
            },
            telling,
        );
        match said.await {
            Err(cause) => Some(Err(RequestError {
                cause: Some(cause),
                ..RequestError::http(
                    codes::AUTHENTICATION_UNAVAILABLE,
                    "it cannot be said now who asks",
                )
            })),
            Ok(None | Some(Verdict::Unknown)) => None,
            Ok(Some(Verdict::Refused(reason))) => Some(Err(RequestError {
                cause: Some(format!("`{}` refuses it: {reason}", of.name()).into()),
                challenge: Some(self.options().challenge.into()),
                ..RequestError::http(
                    codes::CREDENTIALS_REFUSED,
                    "what came with the request does not let it in",
                )
            })),
            Ok(Some(Verdict::Claims(claims))) => {
                let end = claims::end(&claims).ok().flatten();
                if end.is_some_and(|end| end <= now()) {
                    return Some(Err(refusal(TokenError::Expired)));
                }
                let caller = Caller::proved(claims, self.options().caller_options());
                Some(Ok(caller.into()))
            }
        }
    }
}

/// What a component says, if its claims can be those of a caller.
fn said(plugin: &Plugin, lent: &mut Exchange, mode: CallMode) -> Result<Verdict, CallError> {
    let verdict = plugin.authenticate(lent, mode)?;
    if let Verdict::Claims(claims) = &verdict {
        claims::end(claims).map_err(|why| CallError::Malformed(format!("claims, whose {why}")))?;
    }
    Ok(verdict)
}

/// Seconds since 1970.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}
