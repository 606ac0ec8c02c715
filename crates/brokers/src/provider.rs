//! One broker: its connection, and the channels that are heard.
//!
//! Providers with equal settings are one in the whole process, whatever asks for them: a new schema or another gateway of
//! the same process finds the connection that is there. Their work is done on a thread of its own.

use std::{
    sync::{Arc, Mutex, OnceLock, Weak},
    time::Duration,
};

use bytes::Bytes;
use ogive_federation::Broker;
use tokio::runtime::Handle;

use crate::{
    channels::{ChannelKey, ChannelTable, OutgoingError, lock},
    kafka::Kafka,
    nats::Nats,
    queue::{Channel, Feed},
    redis::Redis,
    settings::{ConnectionSettings, ProviderSettings, Reconnect},
};

/// The library below it.
enum Driver {
    Nats(Nats),
    Redis(Redis),
    Kafka(Kafka),
}

/// One broker.
pub(crate) struct Provider {
    broker: Broker,
    connection: ConnectionSettings,
    driver: Driver,
    shared: Arc<ChannelTable>,
}

/// The thread that all brokers are driven by.
fn runtime() -> Result<Handle, String> {
    static RUNTIME: OnceLock<Result<Handle, String>> = OnceLock::new();
    let start = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let handle = runtime.handle().clone();
        let drive = move || runtime.block_on(std::future::pending::<()>());
        let thread = std::thread::Builder::new()
            .name("brokers".to_owned())
            .spawn(drive);
        thread.map_err(|error| error.to_string())?;
        Ok(handle)
    };
    RUNTIME.get_or_init(start).clone()
}

impl Provider {
    /// The provider with these settings: the one that is there, or a new one. It connects when somebody needs it.
    pub(crate) fn get(settings: &ProviderSettings) -> Result<Arc<Provider>, String> {
        static PROVIDERS: Mutex<Vec<Weak<Provider>>> = Mutex::new(Vec::new());
        let mut known = lock(&PROVIDERS);
        known.retain(|provider| provider.strong_count() > 0);
        let is_equal = |provider: &Arc<Provider>| {
            provider.broker == settings.broker && provider.connection == settings.connection
        };
        if let Some(provider) = known.iter().filter_map(Weak::upgrade).find(is_equal) {
            return Ok(provider);
        }
        let runtime = runtime()?;
        let shared: Arc<ChannelTable> = Arc::default();
        let connection = settings.connection.clone();
        let (of, heard) = (connection.clone(), Arc::clone(&shared));
        let driver = match settings.broker {
            Broker::Nats => Driver::Nats(Nats::new(of, heard, runtime)),
            Broker::Redis => Driver::Redis(Redis::new(of, heard, runtime)),
            Broker::Kafka => Driver::Kafka(Kafka::new(of, heard, runtime)),
        };
        let provider = Arc::new(Provider {
            broker: settings.broker,
            connection,
            driver,
            shared,
        });
        known.push(Arc::downgrade(&provider));
        Ok(provider)
    }
    /// When it is given up.
    pub(crate) fn patience(&self) -> Reconnect {
        self.connection.patience
    }
    /// What went wrong last.
    pub(crate) fn last_trouble(&self) -> String {
        self.shared.last_trouble()
    }
    /// Lets a queue hear a channel, of which so many may be durable positions.
    pub(crate) fn hear(
        &self,
        key: &ChannelKey,
        feed: &Arc<Feed>,
        durable_max: usize,
    ) -> Arc<Channel> {
        let mut channels = lock(&self.shared.channels);
        if let Some(channel) = channels.get(key)
            && channel.enter(feed)
        {
            return Arc::clone(channel);
        }
        let channel = Arc::new(Channel::new());
        channel.enter(feed);
        if !has_room(channels.keys(), key, durable_max) {
            channel.refuse("there are as many durable positions as `events.max_durable_positions`");
            return channel;
        }
        channels.insert(key.clone(), Arc::clone(&channel));
        drop(channels);
        match &self.driver {
            Driver::Nats(nats) => nats.hear(key.clone(), Arc::clone(&channel)),
            Driver::Redis(redis) => redis.hear(key.clone(), Arc::clone(&channel)),
            Driver::Kafka(kafka) => kafka.hear(key.clone(), Arc::clone(&channel)),
        }
        channel
    }
    /// Publishes.
    pub(crate) async fn publish(
        &self,
        channel: &str,
        payload: Bytes,
        within: Duration,
    ) -> Result<(), OutgoingError> {
        match &self.driver {
            Driver::Nats(nats) => nats.publish(channel, payload, within).await,
            Driver::Redis(redis) => redis.publish(channel, payload, within).await,
            Driver::Kafka(kafka) => kafka.publish(channel, payload, within).await,
        }
    }
    /// Asks, and waits for the answer.
    pub(crate) async fn request(
        &self,
        channel: &str,
        payload: Bytes,
        within: Duration,
    ) -> Result<Bytes, OutgoingError> {
        match &self.driver {
            Driver::Nats(nats) => nats.request(channel, payload, within).await,
            _ => Err(OutgoingError::Refused(
                "this broker answers no requests".to_owned(),
            )),
        }
    }
}

/// Whether there may be another channel of this kind.
fn has_room<'k>(
    known: impl Iterator<Item = &'k ChannelKey>,
    wanted: &ChannelKey,
    durable_max: usize,
) -> bool {
    let is_durable = |key: &&ChannelKey| matches!(key, ChannelKey::Durable { .. });
    // One that everybody has left is replaced.
    let others = known.filter(|key| is_durable(key) && *key != wanted);
    !is_durable(&wanted) || others.count() < durable_max
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider")
            .field("broker", &self.broker)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_only_so_many_durable_positions() {
        let named = ChannelKey::Named("a".into());
        let durable = |consumer: &str| ChannelKey::Durable {
            stream: "s".into(),
            consumer: consumer.into(),
            subjects: Vec::new(),
            inactive: None,
        };
        let known = [named.clone(), durable("1"), durable("2")];
        assert!(has_room(known.iter(), &durable("3"), 3));
        assert!(!has_room(known.iter(), &durable("3"), 2));
        assert!(has_room(known.iter(), &named, 2));
        assert!(has_room(known.iter(), &durable("2"), 2));
    }
}
