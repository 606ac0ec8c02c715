//! Message brokers of a configuration, and the event subgraphs that they stand in for.

use std::{fmt::Write, sync::Arc};

use ogive_brokers::{
    Brokers, ConnectionSettings, Credentials, EventService, ProviderSettings, QueueLimits,
    Reconnect, Settings, TlsSettings,
};
use ogive_config::{BrokerTlsOptions, BrokerUserOptions, Config, ScramWord, SecretText};
use ogive_federation::{Broker, EventAction, Supergraph};
use ogive_plan::Plan;
use ogive_transport::{Endpoint, EndpointError, Pem};

/// Puts brokers in the place of event subgraphs. Nothing is done where there are none.
pub(crate) fn stand_in(
    supergraph: &Supergraph,
    config: &Config,
    endpoints: &mut [Endpoint],
    notes: &mut Vec<String>,
) {
    if supergraph.events.is_empty() {
        return;
    }
    let brokers = settings(config).and_then(Brokers::new);
    let brokers = match brokers {
        Ok(brokers) => Arc::new(brokers),
        Err(why) => {
            notes.push(format!("no message broker can be used: {why}"));
            return;
        }
    };
    for field in &supergraph.events {
        let (broker, id) = (field.broker, &field.provider);
        if !brokers.knows(broker, id) {
            let note = format!(
                "the supergraph needs the broker `{id}`, which `events.providers.{}` does not have: what is bound to it \
                 fails",
                broker.name()
            );
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    for (id, _) in supergraph.subgraphs.iter() {
        if let (Some(service), Some(endpoint)) = (
            EventService::new(supergraph, id, &brokers),
            endpoints.get_mut(id.0 as usize),
        ) {
            endpoint.service = Some(Arc::new(service));
            // What goes wrong is said by us, in our own words.
            endpoint.shows_errors = true;
            endpoint.replicas = Err(EndpointError::Missing);
        }
    }
}

/// One line for each root field of a plan that is bound to a broker.
pub(crate) fn brokers_text(supergraph: &Supergraph, plan: &Plan, out: &mut String) {
    for (id, fetch) in plan.fetches.iter() {
        let pieces = fetch.segments.iter().map(|segment| &*segment.text);
        let text: String = pieces.collect();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for field in &supergraph.events {
            let name = supergraph.schema.field_name(field.field);
            let is_of = field.subgraph.0 == fetch.subgraph
                && field.kind.as_str() == fetch.kind.as_str()
                && words.clone().any(|word| word == name);
            if !is_of {
                continue;
            }
            let does = match field.action {
                EventAction::Subscribe => "hears",
                EventAction::Publish => "publishes on",
                EventAction::Request => "asks",
            };
            let channels = field.channels.join("`, `");
            let (broker, provider) = (field.broker.name(), &field.provider);
            let _ = write!(
                out,
                "\nfetch {}: `{name}` {does} `{channels}` of {broker} `{provider}`",
                id.0
            );
            if let Some(consumer) = &field.consumer {
                let (position, stream) = (&consumer.consumer, &consumer.stream);
                let _ = write!(
                    out,
                    ", from the position `{position}` in the stream `{stream}`"
                );
            }
            out.push_str(if field.filter.is_some() {
                ", filtered\n"
            } else {
                "\n"
            });
        }
    }
}

pub(crate) fn settings(config: &Config) -> Result<Settings, String> {
    let events = &config.events;
    let patience = Reconnect {
        attempts: config.subscription.max_reconnect_attempts,
        delay: config.subscription.reconnect_delay.0,
    };
    let mut providers = Vec::new();
    let mut add = |broker, id: &str, urls: Vec<Box<str>>, credentials, tls| {
        let connection = ConnectionSettings {
            urls,
            credentials,
            tls,
            patience,
        };
        providers.push(ProviderSettings {
            broker,
            id: id.into(),
            connection,
        });
    };
    for one in &events.providers.nats {
        let urls = one.url.0.split(',').map(|url| url.trim().into()).collect();
        let token = &one.authentication.token;
        let credentials = match &one.authentication.user_info {
            Some(user) => known(user),
            None if token.0.is_empty() => Credentials::None,
            None => Credentials::Token(text(token)),
        };
        add(
            Broker::Nats,
            &one.id,
            urls,
            credentials,
            tls(one.tls.as_ref())?,
        );
    }
    for one in &events.providers.kafka {
        let urls = one.brokers.iter().map(|url| url.as_str().into()).collect();
        let authentication = &one.authentication;
        let credentials = match (&authentication.sasl_plain, &authentication.sasl_scram) {
            (Some(user), _) => known(user),
            (None, Some(scram)) => {
                let is_long = scram.mechanism == ScramWord::Sha512;
                Credentials::Scram(
                    scram.username.as_str().into(),
                    text(&scram.password),
                    is_long,
                )
            }
            (None, None) => Credentials::None,
        };
        add(
            Broker::Kafka,
            &one.id,
            urls,
            credentials,
            tls(one.tls.as_ref())?,
        );
    }
    for one in &events.providers.redis {
        let urls = one.urls.iter().map(|url| url.as_str().into()).collect();
        let credentials = one.authentication.as_ref().map_or(Credentials::None, known);
        add(
            Broker::Redis,
            &one.id,
            urls,
            credentials,
            tls(one.tls.as_ref())?,
        );
    }
    Ok(Settings {
        providers,
        queue: QueueLimits {
            events: events.queue_capacity.get(),
            bytes: events.queue_bytes.0,
            ..QueueLimits::default()
        },
        patience,
        durable_max: events.max_durable_positions.get(),
        instance: instance(config).into(),
    })
}

fn text(secret: &SecretText) -> Box<str> {
    secret.0.as_str().into()
}

fn known(user: &BrokerUserOptions) -> Credentials {
    Credentials::User(user.username.as_str().into(), text(&user.password))
}

/// PEM that is read once: a broker whose certificates change is connected to anew after a reload.
fn tls(options: Option<&BrokerTlsOptions>) -> Result<Option<TlsSettings>, String> {
    let Some(options) = options.filter(|options| options.enabled) else {
        return Ok(None);
    };
    let read = |pem: &str| Pem::new(pem).read().map_err(|error| error.to_string());
    let authorities = options.certificate_authorities.as_deref().map(read);
    let identity = match &options.client_authentication {
        Some(identity) => Some((read(&identity.certificate_chain)?, read(&identity.key)?)),
        None => None,
    };
    Ok(Some(TlsSettings {
        authorities: authorities.transpose()?,
        identity,
    }))
}

/// What tells the durable positions of this process from those of others.
fn instance(config: &Config) -> String {
    match &config.events.instance {
        Some(instance) => instance.clone(),
        None => {
            let system = rustix::system::uname();
            let host = system.nodename().to_string_lossy();
            format!("{host}/{}", config.listen.0)
        }
    }
}
