//! The options of `traffic_shaping.router.overload`.

use std::num::NonZeroUsize;

use ogive_selectors::Condition;

use crate::{Duration, decode::section, scalars::nonzero};

section! {
    /// `traffic_shaping.router.overload`
    pub struct OverloadOptions {
        /// Whether requests are refused with 503, `REQUEST_OVERLOADED` and `retry-after` when so many run at a time that they
        /// take longer for it. Default no.
        pub enabled: bool = false,
        /// How long requests may take on average, in percent of what they take while there are few; default 150. More, and
        /// fewer run at a time.
        pub latency_percent: u32 = 150,
        /// So many may run at a time in any case; default 8.
        pub concurrency_min: NonZeroUsize = nonzero(8),
        /// Most that may run at a time; default 1000.
        pub concurrency_max: NonZeroUsize = nonzero(1_000),
        /// When those come back that are refused; default `1s`.
        pub retry_after: Duration = Duration::seconds(1),
        /// Classes of requests, the highest first; at most 16. A request is of the first whose condition it meets, or else of
        /// one below them all. Under overload the lowest are refused first.
        pub classes: Vec<OverloadClass> = Vec::new(),
    }

    /// `traffic_shaping.router.overload.classes[]`
    pub struct OverloadClass {
        /// How it is called.
        pub name: String = String::new(),
        /// Which requests are of it: by claims, headers, the client's name, version and address. What is asked is not known
        /// yet, so not by the operation. Default all.
        pub when: Option<Condition> = None,
    }
}
