//! Rates of operations, as a configuration asks for them; [`super::operation`] takes from them.

use std::time::Duration;

use ogive_config::{Condition, Config, RateCharge, Selector};

use crate::{admit::gcra::Quota, shared::rate_state::quoted};

/// The rates of one configuration.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OperationRates {
    pub(crate) rates: Vec<OperationRate>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct OperationRate {
    pub(crate) name: Box<str>,
    /// As a string of structured fields.
    pub(crate) quoted: Box<str>,
    pub(crate) quota: Quota,
    pub(crate) key: Vec<Selector>,
    pub(crate) charge: RateCharge,
    pub(crate) when: Option<Condition>,
    pub(crate) overrides: Vec<(Option<Condition>, u64)>,
    pub(crate) measure_only: bool,
}

impl OperationRates {
    /// Those that a configuration asks for; `None` if there are none.
    pub fn new(config: &Config) -> Option<Self> {
        let rules = &config.traffic_shaping.router.rate_limits;
        let rates = rules.iter().map(|rule| OperationRate {
            name: rule.name.as_str().into(),
            quoted: quoted(&rule.name),
            quota: Quota {
                capacity: rule.capacity.get() as u64,
                interval: rule.interval.0.max(Duration::from_millis(1)),
            },
            key: rule.key.clone(),
            charge: rule.charge,
            when: rule.when.clone(),
            overrides: {
                let overrides = rule.overrides.iter();
                let rows = overrides.map(|o| (o.matching.clone(), o.capacity.get() as u64));
                rows.collect()
            },
            measure_only: rule.measure_only,
        });
        (!rules.is_empty()).then(|| OperationRates {
            rates: rates.collect(),
        })
    }
}
