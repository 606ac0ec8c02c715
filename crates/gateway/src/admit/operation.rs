//! Rates of operations: several at once, each of whatever it is keyed by, charged by request or by cost. They are taken from
//! when it is known who asks what and what that is estimated to cost; so a batch pays for each of its operations, and what is
//! not valid pays nothing. All of them have to have enough, or nothing is taken from any.

use std::{
    hash::{BuildHasher, Hash, Hasher},
    pin::Pin,
    sync::Arc,
};

use http::HeaderMap;
use ogive_base::Client;
use ogive_config::{RateCharge, RateLimitKey};
use ogive_edge::{error::RequestError, rate_state::RateState};
use ogive_selectors::Selector;
use ogive_store::{
    SharedRates, SharedTaken,
    gcra::{Cell, Quota, Remaining},
};
use ogive_telemetry::codes;
use sha2::{Digest, Sha256};

use crate::{
    admit::{
        component_keys::component_keys,
        operation_rates::{OperationRate, OperationRates},
        rate_keys::RateKey,
        rates::Admission,
    },
    charge::OperationEstimate,
    options::GatewayOptions,
    prepare::Prepared,
    shared::{
        context::OperationContext,
        operation_values::OperationValues,
        selectors::{Selected, is_met},
        shared_state::SharedState,
        stage::Stage,
    },
};

/// What was taken for one operation.
#[derive(Debug)]
pub(super) struct Taken {
    from: TakenFrom,
    pub(super) quota: Quota,
    pub(super) units: u64,
    /// Whether what the operation does not cost is given back.
    by_actual: bool,
}

/// Whose it was.
#[derive(Debug)]
enum TakenFrom {
    /// This process' own, which will have come free by itself at that time.
    Own(Arc<Cell>, u64),
    /// That of all processes.
    Shared(SharedRates, SharedTaken),
}

impl Taken {
    pub(super) fn give_back(&self, units: u64, now: u64) {
        let units = units.min(self.units);
        match &self.from {
            TakenFrom::Own(cell, until) => cell.give_back(&self.quota, units, *until, now),
            TakenFrom::Shared(rates, taken) => rates.give_back(taken, units),
        }
    }
}

/// What was taken from all rates.
#[derive(Debug, Default)]
pub(crate) struct TakenRates(Vec<Taken>);

impl TakenRates {
    /// Gives back what the operation was estimated to cost and did not cost, where that is charged; says how much that was.
    pub(crate) fn settle(&self, unused: u64, admission: &Admission) -> u64 {
        for taken in self.0.iter().filter(|taken| taken.by_actual) {
            let most = taken.units.saturating_sub(1);
            taken.give_back(unused.min(most), admission.now());
        }
        unused
    }
}

/// Takes from rates. Boxed: keeps the common future small.
type RateFuture<'a> = Pin<Box<dyn Future<Output = Result<TakenRates, RequestError>> + 'a>>;

/// What of a process rates are taken from.
#[derive(Clone, Copy)]
pub(crate) struct RateSources<'a> {
    pub(crate) admission: &'a Admission,
    pub(crate) shared: Option<&'a SharedState>,
}

/// Admits an operation: takes from all rates that count it, or rejects it.
#[derive(Debug)]
pub(crate) struct AdmitOperation {
    pub(crate) admission: Arc<Admission>,
    pub(crate) shared: Option<Arc<SharedState>>,
    pub(crate) options: Arc<GatewayOptions>,
}

impl Stage for AdmitOperation {
    const NAME: &'static str = "admit operation";
    const DOES: &'static str = "take from the rates that count the operation";
    const OPTION: Option<&'static str> = Some("traffic_shaping.router.rate_limits");
}

impl AdmitOperation {
    /// Whether requests pass it.
    pub(crate) fn is_on(options: &GatewayOptions) -> bool {
        let rate = options.admission.rate.as_ref();
        options.operation_rates.is_some()
            || rate.is_some_and(|rate| rate.key == RateLimitKey::Operation)
    }
    /// `None` if there are no rates that have to be waited for.
    pub(crate) fn run<'a>(
        &'a self,
        context: &'a OperationContext<'a>,
        prepared: &'a Prepared,
        estimate: Option<OperationEstimate>,
    ) -> Result<Option<RateFuture<'a>>, RequestError> {
        let name = prepared.operation.name();
        let limits = &self.options.admission;
        let charged = self.admission.admit_operation(limits, name);
        // Who is rejected learns from `retry-after` when to come back: entries of a batch share one head.
        let charged = charged.map_err(|error| RequestError {
            rate: None,
            ..error
        })?;
        if let Some(charged) = charged {
            let mut headers = HeaderMap::new();
            charged.state.write(&mut headers);
            context.add(headers);
            context.count_exceeded(&charged.exceeded);
        }
        let rates = self.options.operation_rates.as_ref();
        Ok(rates.map(|rates| Box::pin(self.take_all(rates, context, prepared, estimate)) as _))
    }

    /// Waits only for Redis, and only where nothing is leased, and for components that keys name.
    async fn take_all(
        &self,
        rates: &OperationRates,
        context: &OperationContext<'_>,
        prepared: &Prepared,
        estimate: Option<OperationEstimate>,
    ) -> Result<TakenRates, RequestError> {
        let asked = OperationValues {
            context,
            operation: &prepared.operation,
            observe: &self.options.observe,
        };
        let asked = component_keys(rates, &asked).await?;
        let cost = estimate.map_or(1, |estimate| estimate.estimated);
        let sources = RateSources {
            admission: &self.admission,
            shared: self.shared.as_deref(),
        };
        let mut taken: Vec<Taken> = Vec::with_capacity(rates.rates.len());
        let mut told = HeaderMap::new();
        for rate in &rates.rates {
            let Some((one, left)) = rate.take(sources, &asked, ("", cost)).await else {
                continue;
            };
            let remaining = left.unwrap_or_else(|left| left);
            let mut state = RateState::of(&rate.quoted, &one.quota, &remaining);
            if one.units > one.quota.capacity {
                // However long anybody waits.
                state.reset_seconds = None;
            }
            context.note("rates", || {
                let (taken, rate) = (one.units, state.describe());
                match &left {
                    Ok(_) => format!("{rate}; {taken} are taken for this operation"),
                    Err(_) => format!("{rate}; not enough for this operation, which takes {taken}"),
                }
            });
            match (left, &rate.measured) {
                (Ok(_), _) => taken.push(one),
                (Err(_), Some(measured)) => {
                    if let Some(operations) = measured.count(self.admission.now()) {
                        tracing::warn!(
                            rate = &*rate.name,
                            operations,
                            "operations exceed a rate that is only measured"
                        );
                    }
                    let code = codes::REQUEST_RATE_LIMITED.as_str();
                    context.count_exceeded(&[code]);
                }
                (Err(_), None) => {
                    for taken in &taken {
                        taken.give_back(taken.units, self.admission.now());
                    }
                    return Err(refusal(rate, &one, state));
                }
            }
            state.write(&mut told);
        }
        context.add(told);
        Ok(TakenRates(taken))
    }
}

fn refusal(rate: &OperationRate, asked: &Taken, state: RateState) -> RequestError {
    let (name, units, capacity) = (&rate.name, asked.units, asked.quota.capacity);
    let (message, retry_after) = if units > capacity {
        // Nobody has to come back for it.
        let message = format!(
            "the operation is estimated to cost {units}, and the rate `{name}` never has more than {capacity}"
        );
        (message, None)
    } else {
        let message = format!("too many requests: the rate `{name}` has not enough left");
        (
            message,
            Some(state.reset_seconds.unwrap_or_default().max(1)),
        )
    };
    RequestError {
        retry_after,
        rate: Some(Box::new(state)),
        ..RequestError::http(codes::REQUEST_RATE_LIMITED, message)
    }
}

impl OperationRate {
    /// `None` if it does not count the operation. `scope`: the subgraph that it is a rate of, if it is.
    pub(super) async fn take(
        &self,
        sources: RateSources<'_>,
        asked: &impl Selected,
        (scope, cost): (&str, u64),
    ) -> Option<(Taken, Result<Remaining, Remaining>)> {
        if !self.when.as_ref().is_none_or(|when| is_met(when, asked)) {
            return None;
        }
        let mut overrides = self.overrides.iter();
        let own = overrides.find(|(matching, _)| is_met(matching, asked));
        let quota = own.map_or(self.quota, |(_, quota)| *quota);
        let units = match self.charge {
            RateCharge::Request => 1,
            // What costs nothing would never be limited, however much it has subgraphs do.
            RateCharge::EstimatedCost | RateCharge::ActualCost => cost.max(1),
        };
        let admission = sources.admission;
        let mut hasher = admission.hasher().build_hasher();
        let is_known = self.key(scope, asked, &mut hasher);
        let hash = hasher.finish();
        let (from, left) = match sources.shared.filter(|_| self.is_shared) {
            None => {
                let key = if is_known {
                    RateKey::known(hash)
                } else {
                    RateKey::stranger(hash)
                };
                let cell = admission.cell(&self.table, key);
                let now = admission.now();
                let left = cell.take(&quota, units, now);
                let reset = left.as_ref().map_or(0, |left| left.reset.as_nanos() as u64);
                (TakenFrom::Own(cell, now.saturating_add(reset)), left)
            }
            Some(state) => {
                let mut is_new = false;
                let key = || {
                    is_new = true;
                    let mut digest = TextDigest(Sha256::new());
                    self.key(scope, asked, &mut digest);
                    digest.key()
                };
                let (left, taken) = state.rates.take(hash, key, &quota, units).await;
                if is_new {
                    admission.count_shared_key(|| state.rates.len());
                }
                (TakenFrom::Shared(state.rates.clone(), taken), left)
            }
        };
        let taken = Taken {
            from,
            quota,
            units,
            by_actual: self.charge == RateCharge::ActualCost,
        };
        Some((taken, left))
    }

    /// What operations are counted together by: what the selectors say, or else the client's network. Whether they do.
    fn key(&self, scope: &str, asked: &impl Selected, to: &mut impl Hasher) -> bool {
        self.name.hash(to);
        if !scope.is_empty() {
            to.write_u8(5);
            scope.hash(to);
        }
        for selector in &self.key {
            let is_there = match selector {
                // Who has an address has all of its network.
                Selector::ClientAddress => match asked.client().and_then(Client::network) {
                    Some(network) => {
                        network.hash(to);
                        true
                    }
                    None => false,
                },
                _ => match asked.text(selector) {
                    Some(text) => {
                        text.hash(to);
                        true
                    }
                    None => false,
                },
            };
            if !is_there {
                // Strangers must not share one rate: any of them could use it up for all others.
                to.write_u8(7);
                asked.client().and_then(Client::network).hash(to);
                return false;
            }
        }
        to.write_u8(6);
        true
    }
}

/// A key that is the same in all processes, and that nobody can make equal to another one.
struct TextDigest(Sha256);

impl Hasher for TextDigest {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    /// Nobody asks for it: [`TextDigest::key`] is longer.
    fn finish(&self) -> u64 {
        0
    }
}

impl TextDigest {
    fn key(self) -> Box<str> {
        let digest = self.0.finalize();
        let bytes = digest.iter().take(16);
        let hex: String = bytes.map(|byte| format!("{byte:02x}")).collect();
        format!("rate:{hex}").into()
    }
}
