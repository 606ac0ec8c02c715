//! What the rates of subgraphs look at in the clients of a subscription.
//!
//! Each event takes from them by what is known of whoever opened the source. So only those share one of whom the same rates
//! say the same, as values: nobody's events are empty because a stranger has nothing left.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use ogive_base::Client;
use ogive_selectors::{Condition, Selector};

use crate::{
    admit::{
        operation::RateSources,
        operation_rates::{OperationRate, SubgraphRates},
        subgraph_rates::FetchRates,
    },
    options::GatewayOptions,
    schema::operation::PreparedOperation,
    shared::{
        context::OperationContext,
        observe_options::ObserveOptions,
        operation_values::OperationValues,
        selectors::{Selected, is_met},
    },
};

/// The rates that events take from, and where clients say what they are called.
pub(crate) struct EventRates {
    rates: Arc<SubgraphRates>,
    observe: ObserveOptions,
}

/// What a rate looks at, as it is written.
type Looks<'r> = (&'r [Selector], Option<&'r Condition>, Vec<&'r Condition>);

impl EventRates {
    /// Those of a configuration; `None` if there are none.
    pub(crate) fn of(options: &GatewayOptions) -> Option<EventRates> {
        Some(EventRates {
            rates: Arc::clone(options.subgraph_rates.as_ref()?),
            observe: options.observe.clone(),
        })
    }
    /// Takes from them for an event: from those by which its source was opened or found to go on, whatever is served
    /// meanwhile, as they have decided who shares it.
    pub(crate) fn admission<'a>(
        &'a self,
        sources: RateSources<'a>,
        asked: (&'a OperationContext<'a>, &'a Arc<PreparedOperation>),
    ) -> FetchRates<'a> {
        FetchRates::new(sources, (&self.rates, &self.observe), asked)
    }
    /// What the rates of these subgraphs see of whoever asks.
    pub(crate) fn values<'s>(
        &self,
        subgraphs: impl Iterator<Item = &'s str>,
        context: &OperationContext<'_>,
        operation: &Arc<PreparedOperation>,
    ) -> Vec<u8> {
        // Events are sent by these headers.
        let asked_by = OperationContext::new(context.headers_to_send());
        let asked_by = asked_by.asked_by(context.shared_caller().cloned());
        let asked_by = match context.client() {
            Some(client) => asked_by.of_client(client),
            None => asked_by,
        };
        let asked = OperationValues {
            context: &asked_by,
            operation,
            observe: &self.observe,
        };
        let mut seen = Seen::default();
        for subgraph in subgraphs {
            for rate in self.rates.of_subgraph(subgraph) {
                see(rate, &asked, &mut seen);
            }
        }
        seen.0
    }
    fn look<'r>(&'r self, subgraph: &str) -> Vec<Looks<'r>> {
        let rates = self.rates.of_subgraph(subgraph).iter();
        let looks = rates.map(|rate| -> Looks<'r> {
            let overrides = rate.overrides.iter().map(|(matching, _)| matching);
            (&rate.key, rate.when.as_ref(), overrides.collect())
        });
        // What looks at nothing is the same for everybody.
        let sees =
            |looks: &Looks<'_>| !looks.0.is_empty() || looks.1.is_some() || !looks.2.is_empty();
        looks.filter(sees).collect()
    }
}

/// Whether clients of whom the rates of a subgraph saw the same are the same for those of another one, too.
pub(crate) fn look_alike(
    (before, was): (Option<&EventRates>, &str),
    (now, is): (Option<&EventRates>, &str),
) -> bool {
    let look = |rates: Option<&'_ EventRates>, subgraph: &str| {
        rates.is_some_and(|rates| !rates.look(subgraph).is_empty())
    };
    match (before, now) {
        (Some(before), Some(now)) => {
            let names = |of: &EventRates| {
                let ObserveOptions {
                    client_names,
                    client_versions,
                    ..
                } = &of.observe;
                (client_names.clone(), client_versions.clone())
            };
            let looks = now.look(is);
            looks.is_empty() || looks == before.look(was) && names(before) == names(now)
        }
        (_, now) => !look(now, is),
    }
}

/// Notes what decides how a rate counts an operation: whether it does, by which quota, together with whom.
fn see(rate: &OperationRate, asked: &OperationValues<'_>, seen: &mut Seen) {
    let counts = rate.when.as_ref().is_none_or(|when| is_met(when, asked));
    counts.hash(seen);
    if !counts {
        return;
    }
    let mut overrides = rate.overrides.iter();
    let own = overrides.position(|(matching, _)| is_met(matching, asked));
    own.hash(seen);
    let network = || asked.client().and_then(Client::network);
    for selector in &rate.key {
        let is_there = if matches!(selector, Selector::ClientAddress) {
            network().hash(seen);
            network().is_some()
        } else {
            let text = asked.text(selector);
            text.hash(seen);
            text.is_some()
        };
        if !is_there {
            // They are counted by their network then.
            network().hash(seen);
            return;
        }
    }
}

/// What is noted, byte by byte.
#[derive(Default)]
struct Seen(Vec<u8>);

impl Hasher for Seen {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
    /// Nobody asks for it: the bytes themselves are compared.
    fn finish(&self) -> u64 {
        0
    }
}
