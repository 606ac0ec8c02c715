//! Rates of operations: several at once, each of whatever it is keyed by, charged by request or by cost. They are taken from
//! when it is known who asks what and what that is estimated to cost; so a batch pays for each of its operations, and what is
//! not valid pays nothing. All of them have to have enough, or nothing is taken from any.

use std::{borrow::Cow, hash::BuildHasher, sync::Arc};

use http::HeaderMap;
use ogive_config::{Client, PeerRange, RateCharge, Selector};
use ogive_telemetry::{codes, operation::ClientIdentity};

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
        context::OperationContext,
        error::RequestError,
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
        let asked = AskedOperation {
            context,
            prepared,
            client: run.serving.options.observe.client_of(context.headers),
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
        asked: &AskedOperation<'_>,
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

    fn key(&self, admission: &Admission, asked: &AskedOperation<'_>) -> u64 {
        let values: Option<Vec<Cow<'_, str>>> = self
            .key
            .iter()
            .map(|selector| asked.text(selector))
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

/// What selectors are asked of.
struct AskedOperation<'a> {
    context: &'a OperationContext<'a>,
    prepared: &'a Prepared,
    client: Option<Box<ClientIdentity>>,
}

impl Selected for AskedOperation<'_> {
    fn is_within(&self, range: &str) -> bool {
        let range = PeerRange::parse(range);
        let client = self.context.client();
        client.is_some_and(|client| range.is_ok_and(|range| range.contains(client)))
    }
    fn text(&self, selector: &Selector) -> Option<Cow<'_, str>> {
        let client = |text: fn(&ClientIdentity) -> &str| {
            let text = text(self.client.as_deref()?);
            (!text.is_empty()).then_some(Cow::Borrowed(text))
        };
        let definition = &self.prepared.operation.definition;
        match selector {
            Selector::JwtClaim(_) => self.context.caller()?.text(selector),
            Selector::RequestHeader(name) => {
                let value = self.context.headers.get(name)?;
                Some(String::from_utf8_lossy(value.as_bytes()))
            }
            Selector::ClientName => client(|client| &client.name),
            Selector::ClientVersion => client(|client| &client.version),
            Selector::ClientAddress => {
                let network = self.context.client()?.network()?;
                Some(format!("{network:?}").into())
            }
            Selector::OperationName => {
                let name = definition.name?;
                Some(self.prepared.operation.document.name(name).into())
            }
            Selector::OperationKind => Some(definition.kind.as_str().into()),
        }
    }
    fn items(&self, selector: &Selector) -> Vec<Cow<'_, str>> {
        match selector {
            Selector::JwtClaim(_) => {
                let caller = self.context.caller();
                caller.map_or_else(Vec::new, |caller| Selected::items(caller, selector))
            }
            _ => {
                let text = self.text(selector).unwrap_or_default();
                let words = text.split_ascii_whitespace();
                words.map(|word| Cow::Owned(word.to_owned())).collect()
            }
        }
    }
    fn has(&self, selector: &Selector) -> bool {
        match selector {
            Selector::JwtClaim(_) => {
                let caller = self.context.caller();
                caller.is_some_and(|caller| caller.has(selector))
            }
            _ => self.text(selector).is_some(),
        }
    }
}
