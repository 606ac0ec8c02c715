//! What is counted of subscriptions, by the subgraph that has the events.

use super::family::{Family, Histogram, Series, Value};
use crate::names::{self, Metric};

/// Numbers of all subscriptions whose source is one subgraph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubscriptionGauges {
    /// Its name.
    pub subgraph: Box<str>,
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
    /// How long events waited that were taken.
    pub lag: Histogram,
}

impl SubscriptionGauges {
    /// None where nobody has subscribed yet.
    pub(super) fn families(all: &[Self]) -> Vec<Family> {
        if all.is_empty() {
            return Vec::new();
        }
        let family = |metric: &'static Metric, value: fn(&Self) -> Value| Family {
            metric,
            series: all
                .iter()
                .map(|own| Series {
                    labels: vec![(names::SUBGRAPH, own.subgraph.to_string())],
                    value: value(own),
                })
                .collect(),
        };
        vec![
            family(&names::SUBSCRIPTIONS_OPEN, |own| {
                Value::Gauge(own.open as f64)
            }),
            family(&names::SUBSCRIPTION_SOURCES, |own| {
                Value::Gauge(own.sources as f64)
            }),
            family(&names::SUBSCRIPTION_EVENTS, |own| {
                Value::Counter(own.events)
            }),
            family(&names::SUBSCRIPTION_DELIVERIES, |own| {
                Value::Counter(own.deliveries)
            }),
            family(&names::SUBSCRIPTION_DROPPED, |own| {
                Value::Counter(own.dropped)
            }),
            family(&names::SUBSCRIPTION_OVERFLOWS, |own| {
                Value::Counter(own.overflows)
            }),
            family(&names::SUBSCRIPTION_LAG, |own| {
                Value::Histogram(own.lag.clone())
            }),
        ]
    }
}
