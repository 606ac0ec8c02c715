//! Rates of subgraphs: how often one may be asked, whoever asks or by whatever an operation says. Taken from where a request
//! is about to be sent, so what is shared with others under way costs nothing, and each try is one. A request that finds
//! nothing left is not sent: its fields are null, and all others are answered.

use std::sync::Arc;

use ogive_failure::Failure;
use ogive_telemetry::codes;
use ogive_transport::{AdmissionFuture, FetchAdmission};

use crate::{
    admit::{operation::RateSources, operation_rates::SubgraphRates},
    options::GatewayOptions,
    schema::operation::PreparedOperation,
    shared::{
        context::OperationContext, observe_options::ObserveOptions,
        operation_values::OperationValues,
    },
};

/// The rates that one operation takes from while it asks subgraphs.
pub(crate) struct FetchRates<'a> {
    rates: &'a SubgraphRates,
    sources: RateSources<'a>,
    asked: OperationValues<'a>,
}

impl<'a> FetchRates<'a> {
    /// `None` if there are none.
    pub(crate) fn of(
        sources: RateSources<'a>,
        options: &'a GatewayOptions,
        context: &'a OperationContext<'a>,
        operation: &'a Arc<PreparedOperation>,
    ) -> Option<FetchRates<'a>> {
        let rates = (options.subgraph_rates.as_deref()?, &options.observe);
        Some(Self::new(sources, rates, (context, operation)))
    }

    /// Takes from `rates`, which were configured together with where clients say what they are called.
    pub(crate) fn new(
        sources: RateSources<'a>,
        (rates, observe): (&'a SubgraphRates, &'a ObserveOptions),
        (context, operation): (&'a OperationContext<'a>, &'a Arc<PreparedOperation>),
    ) -> FetchRates<'a> {
        FetchRates {
            rates,
            sources,
            asked: OperationValues {
                context,
                operation,
                observe,
            },
        }
    }

    async fn take(&self, subgraph: &str) -> Result<(), Failure> {
        let mut taken = Vec::new();
        for rate in self.rates.of_subgraph(subgraph) {
            let found = rate.take(self.sources, &self.asked, (subgraph, 1)).await;
            let Some((one, left)) = found else {
                continue;
            };
            match (left, &rate.measured) {
                (Ok(_), _) => taken.push(one),
                (Err(_), Some(measured)) => {
                    if let Some(requests) = measured.count(self.sources.admission.now()) {
                        tracing::warn!(
                            rate = &*rate.name,
                            subgraph,
                            requests,
                            "requests to a subgraph exceed a rate that is only measured"
                        );
                    }
                    let code = codes::REQUEST_RATE_LIMITED.as_str();
                    self.asked.context.count_exceeded(&[code]);
                }
                (Err(_), None) => {
                    for one in &taken {
                        one.give_back(one.units, self.sources.admission.now());
                    }
                    let name = &rate.name;
                    let message = format!(
                        "too many requests to this subgraph: the rate `{name}` has not enough left"
                    );
                    let code = codes::REQUEST_RATE_LIMITED;
                    return Err(Failure::new(code, message.clone(), message));
                }
            }
        }
        Ok(())
    }
}

impl FetchAdmission for FetchRates<'_> {
    fn admit<'a>(&'a self, subgraph: &'a str) -> AdmissionFuture<'a> {
        Box::pin(self.take(subgraph))
    }
}
