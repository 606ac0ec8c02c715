//! The caller of what does not pass the whole pipeline: pages for authenticated callers, connections and streams that stay
//! open, and benchmarks of authentication.

use std::sync::Arc;

use http::request::Parts;
use ogive_base::Peer;
use ogive_edge::error::RequestError;
use ogive_identity::Caller;

use crate::{
    gateway::{Gateway, Serving},
    shared::{context::RequestContext, identity::Identity, worker::WorkerState},
};

impl Gateway {
    /// Admits a request for a page that only authenticated callers may see. It counts like a request for GraphQL.
    pub(crate) async fn let_page_in(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
    ) -> Result<(), RequestError> {
        let admit = &serving.pipeline.admit;
        let mut admitted = admit.run(context)?;
        let known = authenticate(serving, context).await;
        let identity = known.as_ref().unwrap_or(context.identity);
        let known = RequestContext {
            identity,
            ..context
        };
        admit.charge_caller(known, &mut admitted)?;
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
        let context = self.context(&serving, (parts, identity), worker, None);
        let options = &serving.options;
        // Whoever guesses tokens is slowed down as with requests.
        let _admitted = serving.pipeline.admit.run(context)?;
        let known = authenticate(&serving, context).await;
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
        let identity = Identity::of(peer);
        let context = self.context(&serving, (parts, &identity), worker, None);
        let known = authenticate(&serving, context).await?;
        known.caller().ok().flatten()
    }
}

/// Who asks, by what the client brings; `None` if that changes nothing.
async fn authenticate(serving: &Serving, context: RequestContext<'_>) -> Option<Identity> {
    let authenticate = serving.pipeline.authenticate.as_ref()?;
    Box::pin(authenticate.run(context)).await
}
