//! Requests that something in this process answers in place of HTTP.

use http::HeaderMap;
use ogive_execute::Failure;
use tokio::time::Instant;

use super::{Outcome, Prepared, RequestTransport, left_alone, too_slow, verdict};
use crate::{ServiceRequest, answer::Exchanged};

impl RequestTransport<'_> {
    /// The answer of what stands in for a subgraph without URL.
    pub(super) async fn serviced(&self, request: &Prepared<'_>, error: Failure) -> Outcome {
        if let Some(admission) = self.admission {
            self.admit(admission, request.endpoint).await?;
        }
        serviced(request, error).await
    }
}

async fn serviced(request: &Prepared<'_>, error: Failure) -> Outcome {
    let endpoint = request.endpoint;
    let Some(service) = &endpoint.service else {
        return Err(error);
    };
    let permit = endpoint.health.admit(endpoint.traffic.breaker);
    let permit = permit.ok_or_else(|| left_alone(endpoint))?;
    let within = request.deadline.saturating_duration_since(Instant::now());
    let answered = service.send(ServiceRequest {
        request: request.request.clone(),
        within,
        bytes_max: endpoint.traffic.response_bytes_refused(),
        on_loss: Box::new(|_| {}),
    });
    let answered = match tokio::time::timeout_at(request.deadline, answered).await {
        Ok(answered) => answered,
        Err(_) => Err(too_slow(endpoint)),
    };
    let answered = answered.map(|response| Exchanged {
        response,
        retry_after: None,
        headers: HeaderMap::new(),
        personal: false,
        echoes: Vec::new(),
    });
    let verdict = match &answered {
        // Whatever its status is.
        Ok(_) => Some(true),
        Err(_) => verdict(request, &answered),
    };
    if verdict.is_some_and(|is_well| permit.done(is_well)) {
        tracing::warn!(subgraph = &*endpoint.name, "the circuit breaker opens");
    }
    answered
}
