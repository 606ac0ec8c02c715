//! What is looked at when metrics are asked for.

use ogive_telemetry::{
    metrics::{Gauges, Histogram, SubgraphGauges, SubscriptionGauges},
    process::Process,
};
use ogive_transport::Endpoint;

use crate::{gateway::Gateway, subscribe::counts::LAG_BOUNDS};

impl Gateway {
    /// What is looked at when metrics are asked for.
    pub fn gauges(&self) -> Gauges {
        let state = self.state();
        Gauges {
            operations: state.operations.len(),
            plans: state.plans.len(),
            plan_bytes: state.plans.bytes(),
            memory_used: self.memory().used(),
            memory_limit: self.memory().limit(),
            memory_refused: self.memory().refused() as u64,
            planning_waiting: self.offload().waiting(),
            ready: self.is_ready(),
            subgraphs: state.endpoints.iter().map(gauges).collect(),
            key_sets: self.key_sets(),
            sources: ogive_sources::counts(),
            logs: self.telemetry().logs(),
            suppressed: self.telemetry().failures.suppressed(),
            subscriptions: self.subscription_gauges(),
            process: Process::look(),
        }
    }
}

impl Gateway {
    /// What is counted of subscriptions, by subgraph.
    fn subscription_gauges(&self) -> Vec<SubscriptionGauges> {
        let counts = self.sources.counts_by_subgraph().into_iter();
        let gauges = counts.map(|(subgraph, counts)| SubscriptionGauges {
            subgraph,
            open: counts.open,
            sources: counts.sources,
            events: counts.events,
            deliveries: counts.deliveries,
            dropped: counts.dropped,
            overflows: counts.overflows,
            lag: Histogram {
                bounds: LAG_BOUNDS.as_slice().into(),
                buckets: counts.lag.to_vec(),
                sum: counts.lag_sum,
                unit: 1_000_000_000,
            },
        });
        gauges.collect()
    }
    /// The key sets of tokens, each once.
    fn key_sets(&self) -> Vec<(String, u64, u64)> {
        let authentication = self.authentication();
        let jwt = authentication.as_ref().and_then(|known| known.jwt());
        let mut out: Vec<(String, u64, u64)> = Vec::new();
        for source in jwt.into_iter().flat_map(|jwt| jwt.sources()) {
            let (shown, fetches, failures) = (
                source.options().shown(),
                source.fetches(),
                source.failures(),
            );
            // Two sets may differ in what is not shown.
            match out.iter_mut().find(|(known, ..)| *known == shown) {
                Some(known) => *known = (shown, known.1 + fetches, known.2 + failures),
                None => out.push((shown, fetches, failures)),
            }
        }
        out.sort();
        out
    }
}

fn gauges(endpoint: &Endpoint) -> SubgraphGauges {
    let (traffic, replicas) = (&endpoint.traffic, endpoint.replicas.as_ref().ok());
    let replicas = replicas.filter(|_| traffic.outlier.is_some());
    SubgraphGauges {
        name: endpoint.name.clone(),
        is_open: traffic.breaker.map(|_| endpoint.health.is_open()),
        ejected: replicas.map(|replicas| replicas.ejected()),
    }
}
