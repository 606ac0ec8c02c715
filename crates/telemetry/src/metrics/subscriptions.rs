//! What is counted of subscriptions, where they are served.

use super::family::{Family, Series, Value};
use crate::names::{self, Metric};

/// Numbers of all subscriptions of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SubscriptionGauges {
    /// Subscriptions that are open.
    pub open: usize,
    /// Their sources.
    pub sources: usize,
    /// Events that came from sources.
    pub events: u64,
    /// Events that were queued for clients.
    pub deliveries: u64,
    /// Events that were dropped because a client has not taken them.
    pub dropped: u64,
    /// Subscriptions that ended because of it.
    pub overflows: u64,
}

impl SubscriptionGauges {
    pub(super) fn families(&self) -> [Family; 6] {
        let family = |metric: &'static Metric, value: Value| Family {
            metric,
            series: vec![Series {
                labels: Vec::new(),
                value,
            }],
        };
        let gauge = |number: usize| Value::Gauge(number as f64);
        [
            family(&names::SUBSCRIPTIONS_OPEN, gauge(self.open)),
            family(&names::SUBSCRIPTION_SOURCES, gauge(self.sources)),
            family(&names::SUBSCRIPTION_EVENTS, Value::Counter(self.events)),
            family(
                &names::SUBSCRIPTION_DELIVERIES,
                Value::Counter(self.deliveries),
            ),
            family(&names::SUBSCRIPTION_DROPPED, Value::Counter(self.dropped)),
            family(
                &names::SUBSCRIPTION_OVERFLOWS,
                Value::Counter(self.overflows),
            ),
        ]
    }
}
