//! The options of `store`: what several processes share.

use crate::{Duration, RedisMode, SecretText, TlsIdentityOptions, decode::section};

section! {
    /// `store`
    pub struct StoreSection {
        /// Redis, for rates with `storage: redis` and registered documents with `apq.router.cache.storage: redis`. While it does
        /// not answer, each process goes on by itself.
        pub redis: Option<RedisOptions> = None,
    }

    /// `store.redis`
    pub struct RedisOptions {
        /// Where it is: `redis://HOST:PORT/DATABASE`, with TLS `rediss://`. Of a cluster some of the nodes; of sentinels all
        /// of them.
        pub urls: Vec<String> = Vec::new(),
        /// What is there: one server (`single`, the default), a `cluster`, or `sentinel`s.
        pub mode: RedisMode = RedisMode::Single,
        /// What the sentinels call the server, with `mode: sentinel`; default `mymaster`.
        pub sentinel_service: String = "mymaster".into(),
        /// Who asks the server, if the URLs do not say it (`ACL SETUSER`). Sentinels are told only what their URLs say.
        pub username: Option<String> = None,
        /// The password, if the URLs do not have it.
        pub password: SecretText = SecretText::default(),
        /// TLS of `rediss://` URLs; not set: authorities of the operating system.
        pub tls: Option<RedisTlsOptions> = None,
        /// Before every key, so that several gateways can share a server; default `ogive`.
        pub namespace: String = "ogive".into(),
        /// How long an answer may take; a request waits for no longer, and most do not wait at all. Default `100ms`.
        pub timeout: Duration = Duration::milliseconds(100),
    }

    /// `store.redis.tls`
    pub struct RedisTlsOptions {
        /// Authorities to trust; default: those that the operating system trusts.
        pub certificate_authorities: Option<String> = None,
        /// What to show a server that asks for a certificate (mTLS).
        pub client_authentication: Option<TlsIdentityOptions> = None,
    }
}
