//! Rates of operations: several at once, each of whatever it is keyed by, charged by request or by cost. They are taken from
//! when it is known who asks what and what that is estimated to cost; so a batch pays for each of its operations, and what is
//! not valid pays nothing. All of them have to have enough, or nothing is taken from any.

use std::{borrow::Cow, hash::BuildHasher, sync::Arc};

use http::HeaderMap;
use ogive_config::{Client, RateCharge, Selector};
use ogive_telemetry::codes;

use crate::{
    admit::{
        gcra::{Cell, Quota, Remaining},
        operation_rates::OperationRate,
        rates::Admission,
    },
    charge::OperationEstimate,
    gateway::Gateway,
    operation::OperationRun,
    prepare::Prepared,
    shared::{
        error::RequestError,
        operation_values::OperationValues,
        rate_state::RateState,
        selectors::{Selected, is_met},
    },
};

/// What was taken for one operation.
#[derive(Debug)]
struct Taken {
    cell: Arc<Cell>,
    quota: Quota,
    units: u64,
    /// Whether what the operation does not cost is given back.
    by_actual: bool,
}

impl Taken {
    fn give_back(&self, units: u64) {
        self.cell.give_back(&self.quota, units.min(self.units));
    }
}

/// What was taken from all rates.
#[derive(Debug, Default)]
pub(crate) struct TakenRates(Vec<Taken>);

impl TakenRates {
    /// Gives back what the operation was estimated to cost and did not cost, where that is charged.
    pub(crate) fn settle(&self, unused: u64) {
        for taken in self.0.iter().filter(|taken| taken.by_actual) {
            taken.give_back(unused);
        }
    }
}

impl Gateway {
    /// Takes from all rates that count an operation, or refuses it.
    pub(crate) fn take_rates(
        &self,
        run: &OperationRun<'_>,
        prepared: &Prepared,
        estimate: Option<OperationEstimate>,
    ) -> Result<TakenRates, RequestError> {
        let name = prepared.operation.name();
        self.admit_operation(&run.serving.options.admission, name, run.context)?;
        let Some(rates) = &run.serving.options.operation_rates else {
            return Ok(TakenRates::default());
        };
        let context = run.context;
        let asked = OperationValues {
            context,
            operation: &prepared.operation,
            observe: &run.serving.options.observe,
        };
        let cost = estimate.map_or(1, |estimate| estimate.estimated);
        let mut taken: Vec<Taken> = Vec::new();
        let mut told = HeaderMap::new();
        for rate in &rates.rates {
            let (one, left) = match rate.take(&self.admission, &asked, cost) {
                None => continue,
                Some(found) => found,
            };
            let state = left.unwrap_or_else(|left| left);
            let state = state.state(&rate.quoted, &one.quota);
            match left {
                Ok(_) => taken.push(one),
                Err(_) if rate.measure_only => {
                    let name = &*rate.name;
                    tracing::warn!(
                        rate = name,
                        "an operation exceeds a rate that is only measured"
                    );
                    self.exceeded([codes::REQUEST_RATE_LIMITED].iter());
                }
                Err(_) => {
                    for taken in &taken {
                        taken.give_back(taken.units);
                    }
                    return Err(refusal(rate, state));
                }
            }
            state.write(&mut told);
        }
        context.add(told);
        Ok(TakenRates(taken))
    }
}

fn refusal(rate: &OperationRate, state: RateState) -> RequestError {
    let name = &rate.name;
    let message = format!("too many requests: the rate `{name}` has not enough left");
    RequestError {
        retry_after: Some(state.reset_seconds.max(1)),
        rate: Some(Box::new(state)),
        ..RequestError::http(codes::REQUEST_RATE_LIMITED, message)
    }
}

impl OperationRate {
    /// `None` if it does not count the operation.
    fn take(
        &self,
        admission: &Admission,
        asked: &OperationValues<'_>,
        cost: u64,
    ) -> Option<(Taken, Result<Remaining, Remaining>)> {
        if !self.when.as_ref().is_none_or(|when| is_met(when, asked)) {
            return None;
        }
        let mut overrides = self.overrides.iter();
        let own = overrides.find(|(matching, _)| {
            matching
                .as_ref()
                .is_some_and(|matching| is_met(matching, asked))
        });
        let quota = Quota {
            capacity: own.map_or(self.quota.capacity, |(_, capacity)| *capacity),
            interval: self.quota.interval,
        };
        let units = match self.charge {
            RateCharge::Request => 1,
            RateCharge::EstimatedCost | RateCharge::ActualCost => cost,
        };
        let cell = admission.cell(self.key(admission, asked));
        let left = cell.take(&quota, units, admission.now());
        let taken = Taken {
            cell,
            quota,
            units,
            by_actual: self.charge == RateCharge::ActualCost,
        };
        Some((taken, left))
    }

    fn key(&self, admission: &Admission, asked: &OperationValues<'_>) -> u64 {
        let values: Option<Vec<Cow<'_, str>>> = self
            .key
            .iter()
            .map(|selector| key_text(selector, asked))
            .collect();
        match values {
            Some(values) => admission.hasher().hash_one((6_u8, &self.name, values)),
            // Strangers must not share one rate: any of them could use it up for all others.
            None => {
                let network = asked.context.client().and_then(Client::network);
                admission.hasher().hash_one((7_u8, &self.name, network))
            }
        }
    }
}

/// What operations are counted together by. Of an address that is the network: who has one has all addresses in it.
fn key_text<'a>(selector: &Selector, asked: &'a OperationValues<'_>) -> Option<Cow<'a, str>> {
    match selector {
        Selector::ClientAddress => {
            let network = asked.context.client()?.network()?;
            Some(format!("{network:?}").into())
        }
        _ => asked.text(selector),
    }
}
