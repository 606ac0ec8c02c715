//! One broker: its connection, and the channels that are heard.
//!
//! Providers with equal settings are one in the whole process, whatever asks for them: a new schema or another gateway of
//! the same process finds the connection that is there. Their work is done on a thread of its own.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use ogive_base::FastMap;
use ogive_federation::Broker;
use tokio::runtime::Handle;

use crate::{
    kafka::Kafka,
    nats::Nats,
    queue::{Channel, Feed},
    redis::Redis,
    settings::{ConnectionSettings, Patience, ProviderSettings},
};

/// What is heard.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ChannelKey {
    /// A subject, channel or topic.
    Named(Box<str>),
    /// A durable position in a stream.
    Durable {
        stream: Box<str>,
        consumer: Box<str>,
        subjects: Vec<Box<str>>,
        inactive: Option<Duration>,
    },
}

/// How something that was sent failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// It cannot be reached.
    #[error("the broker cannot be reached: {0}")]
    Away(String),
    /// It took too long.
    #[error("no answer in time")]
    Late,
    /// It refuses.
    #[error("{0}")]
    Refused(String),
}

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
    shared: Arc<Heard>,
}

/// The channels that are heard, and what is known of the connection.
#[derive(Default)]
pub(crate) struct Heard {
    channels: Mutex<FastMap<ChannelKey, Arc<Channel>>>,
    /// What went wrong last.
    trouble: Mutex<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Heard {
    /// All channels.
    pub(crate) fn all(&self) -> Vec<(ChannelKey, Arc<Channel>)> {
        let channels = lock(&self.channels);
        let mut all: Vec<_> = channels.iter().map(|(key, channel)| (key.clone(), Arc::clone(channel))).collect();
        all.sort_by(|a, b| format!("{:?}", a.0).cmp(&format!("{:?}", b.0)));
        all
    }
    /// Those with a name of their own.
    pub(crate) fn named(&self) -> Vec<(Box<str>, Arc<Channel>)> {
        let named = |(key, channel)| match key {
            ChannelKey::Named(name) => Some((name, channel)),
            ChannelKey::Durable { .. } => None,
        };
        self.all().into_iter().filter_map(named).collect()
    }
    /// One of them.
    pub(crate) fn get(&self, key: &ChannelKey) -> Option<Arc<Channel>> {
        lock(&self.channels).get(key).cloned()
    }
    /// Nobody finds the channel any more.
    pub(crate) fn remove(&self, key: &ChannelKey, channel: &Arc<Channel>) {
        let mut channels = lock(&self.channels);
        if channels.get(key).is_some_and(|known| Arc::ptr_eq(known, channel)) {
            channels.remove(key);
        }
    }
    /// Notes what went wrong.
    pub(crate) fn trouble(&self, broker: Broker, why: String) {
        tracing::warn!(broker = broker.name(), cause = &*why, "a message broker cannot be used");
        *lock(&self.trouble) = why;
    }
    /// What went wrong last.
    pub(crate) fn last_trouble(&self) -> String {
        lock(&self.trouble).clone()
    }
}

/// The thread that all brokers are driven by.
fn runtime() -> Result<Handle, String> {
    static RUNTIME: OnceLock<Result<Handle, String>> = OnceLock::new();
    let start = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let handle = runtime.handle().clone();
        let drive = move || runtime.block_on(std::future::pending::<()>());
        let thread = std::thread::Builder::new().name("brokers".to_owned()).spawn(drive);
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
        let shared: Arc<Heard> = Arc::default();
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
    pub(crate) fn patience(&self) -> Patience {
        self.connection.patience
    }
    /// What went wrong last.
    pub(crate) fn last_trouble(&self) -> String {
        self.shared.last_trouble()
    }
    /// Lets a queue hear a channel.
    pub(crate) fn hear(&self, key: &ChannelKey, feed: &Arc<Feed>) -> Arc<Channel> {
        let mut channels = lock(&self.shared.channels);
        if let Some(channel) = channels.get(key)
            && channel.enter(feed)
        {
            return Arc::clone(channel);
        }
        let channel = Arc::new(Channel::new());
        channel.enter(feed);
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
    ) -> Result<(), SendError> {
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
    ) -> Result<Bytes, SendError> {
        match &self.driver {
            Driver::Nats(nats) => nats.request(channel, payload, within).await,
            _ => Err(SendError::Refused("this broker answers no requests".to_owned())),
        }
    }
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider").field("broker", &self.broker).finish_non_exhaustive()
    }
}
