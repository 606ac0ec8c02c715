//! Who asks, by what the client brings: the stage after a request was let in, because only what is let in and counted may
//! have keys fetched and signatures checked.

use std::{pin::pin, sync::Arc};

use ogive_server::offload::Offload;

use crate::{
    identify::tokens::Authentication,
    options::GatewayOptions,
    shared::{context::RequestContext, identity::Identity, stage::Stage, telling::Telling},
};

/// Finds out who asks, by a token, an API key or a certificate.
#[derive(Debug)]
pub(crate) struct Authenticate {
    pub(crate) authentication: Arc<Authentication>,
    pub(crate) offload: Arc<Offload>,
    pub(crate) options: Arc<GatewayOptions>,
}

impl Stage for Authenticate {
    const NAME: &'static str = "authenticate";
    const DOES: &'static str =
        "find out who asks, by a token, an API key, a certificate or a component";
    const OPTION: Option<&'static str> = Some("authentication.router");
}

impl Authenticate {
    /// Whether requests pass it.
    pub(crate) fn is_on(options: &GatewayOptions) -> bool {
        options.authentication.is_some()
    }
    /// Who asks, by what the client brings; `None` if that changes nothing.
    pub(crate) async fn run(&self, context: RequestContext<'_>) -> Option<Identity> {
        let (authentication, identity) = (&self.authentication, context.identity);
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
        if let Some(metrics) = &context.telemetry.metrics {
            metrics.authenticated(caller.as_ref().err().map(|error| error.code().as_str()));
        }
        if let (Some(record), Ok(caller)) = (context.record, &caller)
            && let Some(rules) = &self.options.observe.attributes
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
}
