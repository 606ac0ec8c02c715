//! The options of `traffic_shaping.router.rate_limits` and of `rate_limits` of subgraphs: several limits at once, by whatever
//! a request says.

use std::num::NonZeroUsize;

use ogive_selectors::{Condition, Selector};

use crate::{Duration, RateCharge, StorageWord, decode::section, scalars::nonzero};

section! {
    /// `traffic_shaping.router.rate_limits[]`
    pub struct RateLimitRule {
        /// How it is called, in `RateLimit` headers and in the log. Rates of one name keep what was taken when the
        /// configuration is reloaded.
        pub name: String = String::new(),
        /// So much; default 1000.
        pub capacity: NonZeroUsize = nonzero(1_000),
        /// In so much time; default `1s`.
        pub interval: Duration = Duration::seconds(1),
        /// Whose operations are counted together: those for which all of these say the same, such as
        /// `[{ jwt_claim: sub }, { operation_name: true }]`. Where one says nothing, callers are told apart by their address.
        /// Default: everybody's.
        pub key: Vec<Selector> = Vec::new(),
        /// What is taken for an operation: 1 (`request`, the default), what it is estimated to cost (`estimated_cost`), or
        /// that, and what it did not cost is given back (`actual_cost`). Costs need `demand_control`.
        pub charge: RateCharge = RateCharge::Request,
        /// Only operations that meet this condition are counted; default all.
        pub when: Option<Condition> = None,
        /// Others than `capacity` for some: the first whose condition is met counts.
        pub overrides: Vec<RateOverride> = Vec::new(),
        /// Who counts: each process by itself (`local`, the default), or all that share `store.redis` together (`redis`).
        pub storage: StorageWord = StorageWord::Local,
        /// Whether exceeding the rate is only logged, and counted in `ogive.limits.exceeded`; default no.
        pub measure_only: bool = false,
    }

    /// `traffic_shaping.all.rate_limits[]` and `traffic_shaping.subgraphs.<name>.rate_limits[]`
    pub struct SubgraphRateRule {
        /// How it is called, in errors and in the log. Rates of one name and subgraph keep what was taken when the
        /// configuration is reloaded.
        pub name: String = String::new(),
        /// So many requests to the subgraph; default 1000.
        pub capacity: NonZeroUsize = nonzero(1_000),
        /// In so much time; default `1s`.
        pub interval: Duration = Duration::seconds(1),
        /// Whose requests are counted together: those of operations for which all of these say the same. Where one says
        /// nothing, callers are told apart by their address. Default: everybody's.
        pub key: Vec<Selector> = Vec::new(),
        /// Only requests of operations that meet this condition are counted; default all.
        pub when: Option<Condition> = None,
        /// Others than `capacity` for some: the first whose condition is met counts.
        pub overrides: Vec<RateOverride> = Vec::new(),
        /// Who counts: each process by itself (`local`, the default), or all that share `store.redis` together (`redis`).
        pub storage: StorageWord = StorageWord::Local,
        /// Whether exceeding the rate is only logged, and counted in `ogive.limits.exceeded`; default no.
        pub measure_only: bool = false,
    }

    /// `traffic_shaping.router.rate_limits[].overrides[]`, and those of subgraphs
    pub struct RateOverride {
        /// Whose operations.
        pub matching: Option<Condition> = None,
        /// So much for them; default 1000.
        pub capacity: NonZeroUsize = nonzero(1_000),
    }
}

impl SubgraphRateRule {
    /// The same as a rate of operations, which is what it is checked and counted as.
    pub fn as_rule(&self) -> RateLimitRule {
        RateLimitRule {
            name: self.name.clone(),
            capacity: self.capacity,
            interval: self.interval,
            key: self.key.clone(),
            charge: RateCharge::Request,
            when: self.when.clone(),
            overrides: self.overrides.clone(),
            storage: self.storage,
            measure_only: self.measure_only,
        }
    }
}
