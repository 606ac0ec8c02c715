//! Where Redis is, and how it is spoken to.

use std::{fmt, time::Duration};

use redis::RedisError;

/// What Redis is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Topology {
    /// One server, or one address for all of them.
    Single,
    /// A cluster, of which the URLs name some nodes.
    Cluster,
    /// Sentinels at the URLs, that know where the server of this name is.
    Sentinel(String),
}

/// TLS, where URLs begin with `rediss://`. All of it as PEM.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct StoreTls {
    /// Authorities to trust; `None`: those that the operating system trusts.
    pub authorities: Option<Vec<u8>>,
    /// What to show a server that asks for it: certificates and key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Keys are in no log.
impl fmt::Debug for StoreTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreTls").finish_non_exhaustive()
    }
}

/// Where Redis is, and how it is spoken to.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreOptions {
    /// `redis://` or, with TLS, `rediss://`.
    pub urls: Vec<String>,
    /// What is there.
    pub topology: Topology,
    /// Who asks, if the URLs do not say it.
    pub username: Option<String>,
    /// How that is proven.
    pub password: Option<String>,
    /// TLS.
    pub tls: StoreTls,
    /// Before every key.
    pub namespace: String,
    /// How long an answer may take.
    pub timeout: Duration,
}

/// Passwords are in no log.
impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("topology", &self.topology)
            .field("namespace", &self.namespace)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Why Redis did not answer.
#[derive(Debug)]
pub enum StoreError {
    /// It was not asked, because it did not answer a moment ago.
    Unavailable,
    /// It took too long.
    Timeout,
    /// It said no, the connection broke, or the options make no sense.
    Redis(Box<RedisError>),
    /// There is no thread for it.
    Thread(std::io::Error),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Unavailable => f.write_str("Redis did not answer a moment ago"),
            StoreError::Timeout => f.write_str("Redis did not answer in time"),
            StoreError::Redis(error) => error.fmt(f),
            StoreError::Thread(error) => error.fmt(f),
        }
    }
}
impl std::error::Error for StoreError {}

impl From<RedisError> for StoreError {
    fn from(error: RedisError) -> Self {
        StoreError::Redis(Box::new(error))
    }
}
