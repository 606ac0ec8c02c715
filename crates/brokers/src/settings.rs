//! Which brokers there are, and how patient we are with them.

use std::{fmt, time::Duration};

use ogive_federation::Broker;

/// Every broker, and the limits of what waits for its reader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The brokers.
    pub providers: Vec<ProviderSettings>,
    /// What waits for one subscription.
    pub queue: QueueLimits,
    /// When a broker that is away is given up.
    pub patience: Reconnect,
    /// Most durable positions at a time at one broker; default 1,000.
    pub durable_max: usize,
    /// Tells this process's durable positions from those of others.
    pub instance: Box<str>,
}

/// Bounds of what waits for one subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueLimits {
    /// Most events; default 65,536.
    pub events: usize,
    /// Most bytes of them; default 16 MiB. An event that is larger waits alone.
    pub bytes: usize,
    /// How long a subscription may hold up others where the broker waits for its readers; default 5 s.
    pub stall_timeout: Duration,
}

impl Default for QueueLimits {
    fn default() -> Self {
        QueueLimits {
            events: 65_536,
            bytes: 16 << 20,
            stall_timeout: Duration::from_secs(5),
        }
    }
}

/// When a broker that is away is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reconnect {
    /// Tries to reach it; none: a subscription ends with its connection. Default 5.
    pub attempts: u32,
    /// How long to wait before the first; each further time twice as long. Default 1 s.
    pub delay: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Reconnect {
            attempts: 5,
            delay: Duration::from_secs(1),
        }
    }
}

/// The longest wait before a try.
const DELAY_MAX: Duration = Duration::from_secs(30);

impl Reconnect {
    /// How long to wait before that try.
    pub(crate) fn wait(&self, attempt: u32) -> Duration {
        let times = 1u32.checked_shl(attempt).unwrap_or(u32::MAX);
        self.delay.saturating_mul(times).min(DELAY_MAX)
    }
    /// How long all tries take together: so long a subscription lasts without its broker.
    pub(crate) fn altogether(&self) -> Duration {
        (0..self.attempts.min(1_000))
            .map(|attempt| self.wait(attempt))
            .sum()
    }
}

/// One broker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProviderSettings {
    /// Its kind.
    pub broker: Broker,
    /// What schemas call it.
    pub id: Box<str>,
    /// Where it is, and who we are.
    pub connection: ConnectionSettings,
}

/// Where a broker is, and who we are. Equal ones share a connection.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// URLs, or `HOST:PORT` for Kafka.
    pub urls: Vec<Box<str>>,
    /// Who we are.
    pub credentials: Credentials,
    /// TLS; `None`: only what the URL asks for.
    pub tls: Option<TlsSettings>,
    /// When a try to connect is given up, and how long to wait between tries.
    pub patience: Reconnect,
}

/// Who we are.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Nobody says, unless the URL does.
    None,
    /// A token.
    Token(Box<str>),
    /// User and password.
    User(Box<str>, Box<str>),
    /// User and password by a challenge, SHA-256 or SHA-512: Kafka's SCRAM.
    Scram(Box<str>, Box<str>, bool),
}

/// TLS towards a broker, as PEM.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TlsSettings {
    /// Authorities to trust; default those of the operating system.
    pub authorities: Option<Vec<u8>>,
    /// What we show: certificates and key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for ConnectionSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // URLs may have passwords in them.
        f.debug_struct("ConnectionSettings")
            .field("urls", &self.urls.len())
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_the_sum_of_its_waits() {
        assert_eq!(
            Reconnect::default().altogether(),
            Duration::from_secs(1 + 2 + 4 + 8 + 16)
        );
        let none = Reconnect {
            attempts: 0,
            ..Reconnect::default()
        };
        assert_eq!(none.altogether(), Duration::ZERO);
        assert_eq!(Reconnect::default().wait(40), DELAY_MAX);
    }

    #[test]
    fn credentials_are_not_shown() {
        let settings = ConnectionSettings {
            urls: vec!["nats://user:secret@broker".into()],
            credentials: Credentials::Token("secret".into()),
            tls: None,
            patience: Reconnect::default(),
        };
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
