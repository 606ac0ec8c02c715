//! Who asks, by what the client brings: the stage after a request was let in, because only what is let in and counted may
//! have keys fetched and signatures checked.

use std::{pin::pin, sync::Arc};

use http::request::Parts;
use ogive_config::Peer;
use ogive_identity::Caller;

use crate::{
    gateway::{Gateway, Serving},
    shared::context::{Identity, RequestContext},
    shared::error::RequestError,
    shared::telling::Telling,
    shared::worker::WorkerState,
};

impl Gateway {
    /// Who asks, by what the client brings; `None` if that changes nothing.
    pub(crate) async fn known(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
    ) -> Option<Identity> {
        let (authentication, identity) = (serving.authentication.as_ref()?, context.identity);
        let telling = Telling::of_request(context);
        let said = match authentication.options().components() {
            [] => None,
            _ => Box::pin(authentication.ask_components(context.parts, telling)).await,
        };
        let (caller, component) = match said {
            Some((caller, component)) => (caller, Some(component)),
            None => {
                let identified =
                    pin!(authentication.identify(context.parts, identity, &self.offload));
                (identified.await?, None)
            }
        };
        if let Some(metrics) = &self.telemetry.metrics {
            metrics.authenticated(caller.as_ref().err().map(|error| error.code().as_str()));
        }
        if let (Some(record), Ok(caller)) = (context.record, &caller)
            && let Some(rules) = &serving.options.observe.attributes
        {
            rules.note_caller(record, caller);
        }
        Some(Identity {
            caller: Some(Box::new(caller)),
            is_proved: true,
            component,
            api_key: identity.api_key.clone(),
            ..Identity::like(identity)
        })
    }

    /// Lets a request for a page in that is for known callers only. It costs as much as one for GraphQL.
    pub(crate) async fn let_page_in(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
    ) -> Result<(), RequestError> {
        let admitted = self.let_in(&serving.options, context);
        let _admitted = admitted.map_err(|(error, _)| error)?;
        let known = match &serving.authentication {
            Some(_) => Box::pin(self.known(serving, context)).await,
            None => None,
        };
        let identity = known.as_ref().unwrap_or(context.identity);
        let of_caller = self.let_caller_in(&serving.options, context, identity);
        of_caller.map_err(|(error, _)| error)?;
        identity.check(true, serving.options.challenge)
    }

    /// Who introduces itself like this, and may ask anything.
    pub(crate) async fn introduced(
        &self,
        parts: &Parts,
        identity: &Identity,
        worker: &WorkerState,
    ) -> Result<Option<Arc<Caller>>, RequestError> {
        let serving = self.serving.load_full();
        let context = RequestContext {
            parts,
            identity,
            worker,
            telemetry: &self.telemetry,
            record: None,
            coprocessor: None,
            error_rules: serving.state.options.error_rules.as_deref(),
        };
        let options = &serving.options;
        // Whoever guesses tokens is slowed down as with requests.
        let _admitted = self.let_in(options, context).map_err(|(error, _)| error)?;
        let known = self.known(&serving, context).await;
        let identity = known.as_ref().unwrap_or(identity);
        identity.check(options.caller_required, options.challenge)?;
        identity.caller()
    }

    /// Who asks with such a head, as a request's own stage finds it out; for whoever measures that.
    pub async fn caller_of(
        &self,
        parts: &Parts,
        peer: Peer,
        worker: &WorkerState,
    ) -> Option<Arc<Caller>> {
        let serving = self.serving.load_full();
        let context = RequestContext {
            parts,
            identity: &Identity::of(peer),
            worker,
            telemetry: &self.telemetry,
            record: None,
            coprocessor: None,
            error_rules: serving.state.options.error_rules.as_deref(),
        };
        let known = pin!(self.known(&serving, context)).await?;
        known.caller().ok().flatten()
    }
}
