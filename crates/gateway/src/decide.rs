//! The decisions about a caller that execution needs: which policies hold ([`crate::policies`]), and what introspection
//! shows. This stage follows [`plan`](crate::plan), because the plan lists the policies and introspection fields.

use std::sync::Arc;

use ogive_edge::error::{RequestError, unauthenticated};
use ogive_plan::Plan;
use ogive_server::offload::Offload;

use crate::{
    policies::Policies,
    schema::{state::SchemaState, views::view},
    shared::{context::OperationContext, stage::Stage},
};

/// Decides which policies hold for the caller, and finds what introspection shows.
#[derive(Debug)]
pub(crate) struct Decide {
    pub(crate) state: Arc<SchemaState>,
    pub(crate) policies: Option<Arc<Policies>>,
    pub(crate) offload: Arc<Offload>,
    pub(crate) challenge: &'static str,
}

impl Stage for Decide {
    const NAME: &'static str = "decide";
    const DOES: &'static str =
        "decide which policies hold for the caller, and what introspection shows";
}

impl Decide {
    /// Notes the decisions in the context. Rejects a caller that the plan needs to know and that is not authenticated.
    pub(crate) async fn run(
        &self,
        plan: &Plan,
        context: &OperationContext<'_>,
    ) -> Result<(), RequestError> {
        let state = &self.state;
        let authorization = &state.options.authorization;
        if authorization.needs_caller_of(plan) && !context.claims().authenticated {
            return Err(unauthenticated(self.challenge));
        }
        if self.policies.is_none() && state.views.is_none() && context.hooks().is_none() {
            return Ok(());
        }
        // Boxed: keeps the common future small.
        Box::pin(self.decide(plan, context)).await
    }

    async fn decide(
        &self,
        plan: &Plan,
        context: &OperationContext<'_>,
    ) -> Result<(), RequestError> {
        let (state, offload) = (&self.state, &*self.offload);
        let views = state.views.as_ref().filter(|_| plan.locals > 0);
        let mut decided = None;
        if let Some(policies) = &self.policies {
            let requirements = match views {
                // They include the requirements of the plan.
                Some(views) => &views.requirements,
                None => &plan.requirements,
            };
            decided = policies
                .decide_for(requirements, plan.kind, context, offload)
                .await?;
        }
        // A coprocessor may have granted policies to this caller.
        let mut granted = context
            .hooks()
            .map_or_else(Vec::new, |told| told.policies());
        if !granted.is_empty() {
            let claims = decided.get_or_insert_with(|| context.claims().clone());
            claims.policies.append(&mut granted);
        }
        if let Some(decided) = decided {
            context.note_decided(decided);
        }
        let Some(views) = views else {
            return Ok(());
        };
        let met = views.met_by(context.claims());
        let seen = match views.get(&met) {
            Some(seen) => seen,
            None => {
                let (shared, of) = (Arc::clone(state), met.clone());
                let made = offload.run(move || Arc::new(view(&shared.supergraph, &of)));
                let made = made.await;
                views.insert(met, Arc::clone(&made));
                made
            }
        };
        context.note_view(seen);
        Ok(())
    }
}
