//! The options of `events`: message brokers that event subgraphs are bound to.

use std::num::NonZeroUsize;

use crate::{
    ByteSize, SecretText, TlsIdentityOptions, decode::section, scalars::nonzero, words::words,
};

section! {
    /// `events`
    pub struct EventsOptions {
        /// The brokers, by kind; schemas name them by `providerId`.
        pub providers: EventProvidersOptions = EventProvidersOptions::default(),
        /// What tells this process's durable positions (JetStream) from those of other processes, which hear every event,
        /// too. Keep it over restarts. Default: the host's name and `listen`.
        pub instance: Option<String> = None,
        /// Most events that wait for one subscription. One that has no room for another is ended with
        /// `SUBREQUEST_STREAM_OVERFLOW`.
        pub queue_capacity: NonZeroUsize = nonzero(65_536),
        /// Most bytes of them; an event that is larger waits alone.
        pub queue_bytes: ByteSize = ByteSize(16 << 20),
        /// Most durable positions (JetStream) that are heard at a time at one broker; a subscription that needs another one is
        /// refused with `SUBREQUEST_STREAM_REFUSED`. Subjects with other arguments have positions of their own.
        pub max_durable_positions: NonZeroUsize = nonzero(1_000),
    }

    /// `events.providers`
    pub struct EventProvidersOptions {
        /// NATS, with JetStream.
        pub nats: Vec<NatsProviderOptions> = Vec::new(),
        /// Kafka.
        pub kafka: Vec<KafkaProviderOptions> = Vec::new(),
        /// Redis, by its publish and subscribe.
        pub redis: Vec<RedisProviderOptions> = Vec::new(),
    }

    /// `events.providers.nats[]`
    pub struct NatsProviderOptions {
        /// What schemas call it; those that say nothing mean `default`.
        pub id: String = "default".into(),
        /// Where it is, `nats://HOST:PORT`; several of one cluster are separated by commas.
        pub url: SecretText = SecretText::default(),
        /// Who we are.
        pub authentication: NatsAuthenticationOptions = NatsAuthenticationOptions::default(),
        /// TLS; not set: only with `tls://` URLs.
        pub tls: Option<BrokerTlsOptions> = None,
    }

    /// `events.providers.nats[].authentication`
    pub struct NatsAuthenticationOptions {
        /// A token.
        pub token: SecretText = SecretText::default(),
        /// User and password instead.
        pub user_info: Option<BrokerUserOptions> = None,
    }

    /// `events.providers.kafka[]`
    pub struct KafkaProviderOptions {
        /// What schemas call it; those that say nothing mean `default`.
        pub id: String = "default".into(),
        /// Where it is: brokers to ask first, `HOST:PORT`.
        pub brokers: Vec<String> = Vec::new(),
        /// Who we are.
        pub authentication: KafkaAuthenticationOptions = KafkaAuthenticationOptions::default(),
        /// TLS; not set: none.
        pub tls: Option<BrokerTlsOptions> = None,
    }

    /// `events.providers.kafka[].authentication`
    pub struct KafkaAuthenticationOptions {
        /// User and password as they are.
        pub sasl_plain: Option<BrokerUserOptions> = None,
        /// User and password by a challenge.
        pub sasl_scram: Option<KafkaScramOptions> = None,
    }

    /// `events.providers.kafka[].authentication.sasl_scram`
    pub struct KafkaScramOptions {
        /// The user.
        pub username: String = String::new(),
        /// The password.
        pub password: SecretText = SecretText::default(),
        /// By which hash.
        pub mechanism: ScramWord = ScramWord::Sha512,
    }

    /// `events.providers.redis[]`
    pub struct RedisProviderOptions {
        /// What schemas call it; those that say nothing mean `default`.
        pub id: String = "default".into(),
        /// Where it is, `redis://HOST:PORT` or `rediss://HOST:PORT`. The first one is used.
        pub urls: Vec<String> = Vec::new(),
        /// Who we are, if the URL does not say it.
        pub authentication: Option<BrokerUserOptions> = None,
        /// TLS for `rediss://` URLs; not set: authorities of the operating system.
        pub tls: Option<BrokerTlsOptions> = None,
    }

    /// `events.providers.*[].authentication.user_info` and its like
    pub struct BrokerUserOptions {
        /// The user.
        pub username: String = String::new(),
        /// The password.
        pub password: SecretText = SecretText::default(),
    }

    /// `events.providers.*[].tls`
    pub struct BrokerTlsOptions {
        /// Whether TLS is spoken; default yes.
        pub enabled: bool = true,
        /// Authorities to trust; default: those that the operating system trusts.
        pub certificate_authorities: Option<String> = None,
        /// What to show brokers that ask for a certificate (mTLS).
        pub client_authentication: Option<TlsIdentityOptions> = None,
    }
}

words! {
    /// The hash of a challenge.
    pub enum ScramWord {
        /// SHA-256.
        Sha256 = "SCRAM-SHA-256",
        /// SHA-512.
        Sha512 = "SCRAM-SHA-512",
    }
}
