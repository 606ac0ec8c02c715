//! Rates of operations, as a configuration asks for them; [`super::operation`] takes from them. What does not depend on the
//! operation is worked out here, once per configuration.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ogive_config::{Config, RateCharge, RateLimitRule, StorageWord, SubgraphRateRule};
use ogive_edge::rate_state::quoted;
use ogive_selectors::{Condition, Selector};
use ogive_store::gcra::Quota;

use crate::{admit::log_sample::LogSample, hooks::components::LoadedComponent};

/// The rates of one configuration.
#[derive(Clone, Debug, Default)]
pub struct OperationRates {
    pub(crate) rates: Vec<OperationRate>,
    /// Components that keys name, each once; read from files, so they come later.
    pub(crate) components: Vec<LoadedComponent>,
}

#[derive(Clone, Debug)]
pub(crate) struct OperationRate {
    pub(crate) name: Box<str>,
    /// By what its keys are found.
    pub(crate) table: Box<str>,
    /// As a string of structured fields.
    pub(crate) quoted: Box<str>,
    pub(crate) quota: Quota,
    pub(crate) key: Vec<Selector>,
    pub(crate) charge: RateCharge,
    pub(crate) when: Option<Condition>,
    pub(crate) overrides: Vec<(Condition, Quota)>,
    /// Whether all processes count together.
    pub(crate) is_shared: bool,
    /// Where exceeding it is only measured: how often that is logged.
    pub(crate) measured: Option<Arc<LogSample>>,
}

/// The component that a selector names, if it names one.
pub(crate) fn component(selector: &Selector) -> Option<&str> {
    match selector {
        Selector::Component(name) => Some(name),
        _ => None,
    }
}

impl OperationRates {
    /// Those that a configuration asks for; `None` if there are none.
    pub fn new(config: &Config) -> Option<Self> {
        Self::of("router", &config.traffic_shaping.router.rate_limits)
    }

    /// `place`: where they stand in the configuration.
    fn of(place: &str, rules: &[RateLimitRule]) -> Option<Self> {
        let rates = rules.iter().map(|rule| {
            let interval = rule.interval.0.max(Duration::from_millis(1));
            let quota = |capacity: std::num::NonZeroUsize| Quota {
                capacity: capacity.get() as u64,
                interval,
            };
            let overrides = rule.overrides.iter().filter_map(|one| {
                let matching = one.matching.clone()?;
                Some((matching, quota(one.capacity)))
            });
            OperationRate {
                name: rule.name.as_str().into(),
                table: format!("{place} {}", rule.name).into(),
                quoted: quoted(&rule.name),
                quota: quota(rule.capacity),
                key: rule.key.clone(),
                charge: rule.charge,
                when: rule.when.clone(),
                overrides: overrides.collect(),
                is_shared: rule.storage == StorageWord::Redis,
                measured: rule
                    .measure_only
                    .then(|| Arc::new(LogSample::new(interval.max(Duration::from_secs(1))))),
            }
        });
        (!rules.is_empty()).then(|| OperationRates {
            rates: rates.collect(),
            components: Vec::new(),
        })
    }

    /// Takes the components that keys name, where they are there: one that is not says nothing.
    pub(crate) fn set_components(&mut self, named: impl Fn(&str) -> Option<LoadedComponent>) {
        let keys = self.rates.iter().flat_map(|rate| &rate.key);
        let mut names: Vec<&str> = keys.filter_map(component).collect();
        names.sort_unstable();
        names.dedup();
        self.components = names.into_iter().filter_map(named).collect();
    }
}

/// The rates at which subgraphs may be asked.
#[derive(Clone, Debug, Default)]
pub struct SubgraphRates {
    all: OperationRates,
    subgraphs: BTreeMap<String, OperationRates>,
}

impl SubgraphRates {
    /// Those that a configuration asks for; `None` if there are none.
    pub fn new(config: &Config) -> Option<Self> {
        let traffic = &config.traffic_shaping;
        let of = |place: &str, rules: &[SubgraphRateRule]| {
            let rules: Vec<RateLimitRule> = rules.iter().map(SubgraphRateRule::as_rule).collect();
            OperationRates::of(place, &rules)
        };
        let all = of("all", &traffic.all.rate_limits);
        let own = traffic.subgraphs.iter();
        let own = own.filter_map(|(name, own)| {
            let place = format!("subgraphs {name}");
            Some((name.clone(), of(&place, &own.rate_limits)?))
        });
        let subgraphs: BTreeMap<String, OperationRates> = own.collect();
        (all.is_some() || !subgraphs.is_empty()).then(|| SubgraphRates {
            all: all.unwrap_or_default(),
            subgraphs,
        })
    }
    /// Those of all subgraphs.
    pub(crate) fn all_rates(&self) -> impl Iterator<Item = &OperationRate> {
        let own = self.subgraphs.values();
        own.chain([&self.all]).flat_map(|rates| &rates.rates)
    }
    /// Those of one subgraph.
    pub(crate) fn of_subgraph(&self, name: &str) -> &[OperationRate] {
        &self.subgraphs.get(name).unwrap_or(&self.all).rates
    }
}
