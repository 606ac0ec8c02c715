//! The channels of one broker that are heard, what they are called, and what went wrong.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ogive_base::FastMap;
use ogive_federation::Broker;
use tokio::{task::JoinHandle, time::timeout};

use crate::queue::Channel;

/// What is heard.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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
pub(crate) enum OutgoingError {
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

/// What is done on the brokers' thread, if it is done in time. Otherwise it is given up, so that it does not happen later.
pub(crate) async fn in_time<T>(
    mut working: JoinHandle<Result<T, OutgoingError>>,
    within: Duration,
) -> Result<T, OutgoingError> {
    match timeout(within, &mut working).await {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => Err(OutgoingError::Refused(error.to_string())),
        Err(_) => {
            working.abort();
            Err(OutgoingError::Late)
        }
    }
}

/// The channels that are heard, and what is known of the connection.
#[derive(Default)]
pub(crate) struct ChannelTable {
    pub(crate) channels: Mutex<FastMap<ChannelKey, Arc<Channel>>>,
    /// What went wrong last.
    trouble: Mutex<String>,
}

/// What is behind a lock, whoever has left it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ChannelTable {
    /// All channels.
    pub(crate) fn all(&self) -> Vec<(ChannelKey, Arc<Channel>)> {
        let channels = lock(&self.channels);
        let mut all: Vec<_> = channels
            .iter()
            .map(|(key, channel)| (key.clone(), Arc::clone(channel)))
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
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
        if channels
            .get(key)
            .is_some_and(|known| Arc::ptr_eq(known, channel))
        {
            channels.remove(key);
        }
    }
    /// Notes what went wrong.
    pub(crate) fn trouble(&self, broker: Broker, why: String) {
        tracing::warn!(
            broker = broker.name(),
            cause = &*why,
            "a message broker cannot be used"
        );
        *lock(&self.trouble) = why;
    }
    /// What went wrong last.
    pub(crate) fn last_trouble(&self) -> String {
        lock(&self.trouble).clone()
    }
}
