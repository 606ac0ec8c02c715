//! What this process shares with others, as a configuration asks for it: [`ogive_store`]. What was there before goes on over
//! reloads, with its connections and what was leased, if the configuration asks for the same.

use std::sync::Arc;

use ogive_config::{Config, RedisMode, StorageWord};
use ogive_store::{SharedRates, Store, StoreOptions, StoreTls, Topology};
use ogive_transport::Pem;

use crate::admit::rate_keys::KEYS_MAX;

/// What is shared.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub(crate) store: Store,
    pub(crate) rates: SharedRates,
}

/// The store that a configuration asks for, if anything is to be kept there. The error is for the operator.
pub(crate) fn store_options(config: &Config) -> Result<Option<StoreOptions>, String> {
    let Some(redis) = &config.store.redis else {
        return Ok(None);
    };
    let traffic = &config.traffic_shaping;
    let of_subgraphs = traffic.subgraphs.values().chain([&traffic.all]);
    let of_subgraphs = of_subgraphs.flat_map(|own| &own.rate_limits);
    let mut storages = (traffic.router.rate_limits.iter().map(|rate| rate.storage))
        .chain(of_subgraphs.map(|rate| rate.storage));
    let is_used = storages.any(|storage| storage == StorageWord::Redis)
        || config.apq.router.cache.storage == StorageWord::Redis;
    if !is_used {
        return Ok(None);
    }
    let read = |key: &str, pem: &str| {
        let pem = Pem::new(pem).read();
        pem.map_err(|why| format!("`store.redis.tls.{key}`: {why}"))
    };
    let mut tls = StoreTls::default();
    if let Some(options) = &redis.tls {
        if let Some(authorities) = &options.certificate_authorities {
            tls.authorities = Some(read("certificate_authorities", authorities)?);
        }
        if let Some(identity) = &options.client_authentication {
            let key = "client_authentication";
            tls.identity = Some((
                read(key, &identity.certificate_chain)?,
                read(key, &identity.key)?,
            ));
        }
    }
    Ok(Some(StoreOptions {
        urls: redis.urls.clone(),
        topology: match redis.mode {
            RedisMode::Single => Topology::Single,
            RedisMode::Cluster => Topology::Cluster,
            RedisMode::Sentinel => Topology::Sentinel(redis.sentinel_service.clone()),
        },
        username: redis.username.clone(),
        password: Some(redis.password.0.clone()).filter(|password| !password.is_empty()),
        tls,
        namespace: redis.namespace.clone(),
        timeout: redis.timeout.0,
    }))
}

/// What the options ask for. Where Redis cannot be spoken to at all, each process goes on by itself.
pub(crate) fn shared_state(
    options: Option<&StoreOptions>,
    before: Option<Arc<SharedState>>,
) -> Option<Arc<SharedState>> {
    let options = options?;
    if let Some(before) = before.filter(|before| before.store.options() == options) {
        return Some(before);
    }
    match Store::new(options.clone()) {
        Ok(store) => Some(Arc::new(SharedState {
            rates: SharedRates::new(store.clone(), KEYS_MAX),
            store,
        })),
        Err(error) => {
            tracing::error!(%error, "Redis cannot be used: this process goes on by itself");
            None
        }
    }
}
