//! Whether a request gets in: before its body is read ([`Admit`]), by the limits that do not depend on its caller and, as
//! soon as the caller is known, by those that do; and once more per operation ([`operation`]).

mod component_keys;
pub(crate) mod latency_sample;
pub(crate) mod log_sample;
pub(crate) mod operation;
pub mod operation_rates;
pub mod overload;
pub(crate) mod rate_keys;
pub mod rates;
pub(crate) mod subgraph_rates;

use std::sync::{Arc, Mutex, PoisonError};

use ogive_edge::error::RequestError;

use crate::{
    admit::{
        overload::Overload,
        rates::{Admission, Admitted},
    },
    options::GatewayOptions,
    shared::{context::RequestContext, operation_values::RequestValues, stage::Stage},
};

/// In the extensions of a request that was let in before its body was read.
#[derive(Clone, Debug)]
pub(crate) struct AdmittedSlot(Arc<Mutex<Option<Admitted>>>);

impl AdmittedSlot {
    pub(crate) fn new(admitted: Admitted) -> Self {
        AdmittedSlot(Arc::new(Mutex::new(Some(admitted))))
    }
    fn take(&self) -> Option<Admitted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Admits requests before their bodies are read.
#[derive(Debug)]
pub(crate) struct Admit {
    pub(crate) admission: Arc<Admission>,
    pub(crate) overload: Option<Arc<Overload>>,
    pub(crate) options: Arc<GatewayOptions>,
}

impl Stage for Admit {
    const NAME: &'static str = "admit";
    const DOES: &'static str = "count the request against rates and limits before its body is read, reject it under overload";
}

impl Admit {
    /// Counts a request, or an entry of a batch, against the limits that do not depend on its caller.
    pub(crate) fn run(&self, context: RequestContext<'_>) -> Result<Admitted, RequestError> {
        let (parts, client) = (context.parts, context.identity.client);
        let slot = parts.extensions.get::<AdmittedSlot>();
        if let Some(admitted) = slot.and_then(AdmittedSlot::take) {
            return Ok(admitted);
        }
        let limits = &self.options.admission;
        let admitted = self.admission.admit(limits, &parts.headers, client)?;
        context.count_exceeded(&admitted.exceeded);
        Ok(admitted)
    }
    /// Counts it against the rate of its caller, who is known now.
    pub(crate) fn charge_caller(
        &self,
        context: RequestContext<'_>,
        admitted: &mut Admitted,
    ) -> Result<(), RequestError> {
        let (identity, limits) = (context.identity, &self.options.admission);
        let claim = |name: &str| identity.claim(name);
        let charged = self
            .admission
            .admit_caller(limits, identity.client, claim)?;
        if let Some(charged) = charged {
            context.count_exceeded(&charged.exceeded);
            admitted.rate = Some(charged.state);
        }
        Ok(())
    }
    /// Gives it a place among the requests that run, if there is one for its class.
    pub(crate) fn enter(
        &self,
        context: RequestContext<'_>,
        admitted: &mut Admitted,
    ) -> Result<(), RequestError> {
        if let Some(overload) = &self.overload {
            let caller = context.identity.caller.as_deref();
            let values = RequestValues {
                headers: &context.parts.headers,
                caller: caller.and_then(|caller| caller.as_deref().ok()),
                client: Some(context.identity.client),
                observe: &self.options.observe,
            };
            admitted.slot = Some(overload.enter(&values)?);
        }
        Ok(())
    }
}
