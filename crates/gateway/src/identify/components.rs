//! Who asks, as components say it (`authentication.router.components`): asked before tokens and keys are looked at, by the
//! head of the request as far as each may read it.
//!
//! One that failed has proved nobody: the request is refused, or it counts as if it knew nothing.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, request::Parts};
use ogive_edge::error::RequestError;
use ogive_hooks::{
    CallError, CallMode, Exchange, RequestHead, Stage,
    components::{Component, Decision, Verdict},
};
use ogive_identity::{Caller, TokenError, claims};
use ogive_telemetry::codes;

use super::{
    credential::Credential,
    tokens::{Authentication, CallerVerdict, refusal},
};
use crate::{
    hooks::{components::LoadedComponent, decide::Question, run::request_head},
    shared::telling::Telling,
    subscribe::owner::kept_apart,
};

/// Headers that one of some components may read.
fn readable<'p>(headers: &HeaderMap, components: impl Iterator<Item = &'p Component>) -> HeaderMap {
    let permitted: Vec<_> = components
        .map(|component| &component.options().permissions.read_headers)
        .collect();
    let is_read = |name: &str| permitted.iter().any(|names| names.contains(name));
    kept_apart(headers.iter().filter(|(name, _)| is_read(name.as_str())))
}

impl Authentication {
    /// What is kept of a head, if components look at it.
    pub(crate) fn kept_head(&self, parts: &Parts) -> Option<RequestHead> {
        let components = self.options().components();
        if components.is_empty() {
            return None;
        }
        let components = components.iter().map(|of| &*of.component);
        let headers = readable(&parts.headers, components);
        Some(request_head(parts, headers.into()))
    }

    /// Who asks, as components say it of a request; `None` if none of them knows anything of what it brings.
    pub(crate) async fn ask_components(
        &self,
        parts: &Parts,
        telling: Telling<'_>,
    ) -> Option<(CallerVerdict, &'static str)> {
        self.ask_all(
            &request_head(parts, Arc::default()),
            &parts.headers,
            telling,
        )
        .await
    }

    /// The same of what was kept.
    pub(crate) async fn ask_about(
        &self,
        kept: &Credential,
        telling: Telling<'_>,
    ) -> Option<(CallerVerdict, &'static str)> {
        let head = kept.head()?;
        self.ask_all(head, &head.headers, telling).await
    }

    /// The first that knows something says it; with what that one is called.
    async fn ask_all(
        &self,
        head: &RequestHead,
        headers: &HeaderMap,
        telling: Telling<'_>,
    ) -> Option<(CallerVerdict, &'static str)> {
        for of in self.options().components() {
            if let Some(known) = self.ask_one(of, (head, headers), telling).await {
                return Some((known, of.hook.word()));
            }
        }
        None
    }

    async fn ask_one(
        &self,
        of: &LoadedComponent,
        (head, headers): (&RequestHead, &HeaderMap),
        telling: Telling<'_>,
    ) -> Option<CallerVerdict> {
        let head = RequestHead {
            headers: readable(headers, std::iter::once(&*of.component)).into(),
            ..head.clone()
        };
        let mut lent = Exchange::of(Stage::RouterRequest, Arc::default(), head.into());
        let said = of.ask(
            Question {
                decision: Decision::Authenticate,
                call: move |component: &Component, mode: CallMode| said(component, &mut lent, mode),
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
fn said(component: &Component, lent: &mut Exchange, mode: CallMode) -> Result<Verdict, CallError> {
    let verdict = component.authenticate(lent, mode)?;
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
