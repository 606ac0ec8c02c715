//! The cache of answers and entities that a configuration asks for. Its entries outlive schemas and configurations, as long as
//! the limits of the cache are equal.

use std::sync::Arc;

use http::HeaderName;
use ogive_base::MemoryBudget;
use ogive_cache::{
    CacheOptions, KeySecret, LifetimePolicy, MemoryLimits, ResponseCache, StoringPolicy,
};
use ogive_config::{Config, PrivateIdOptions};
use ogive_transport::{PrivateId, SubgraphCachePolicy};

/// The limits of the cache; `None` if it is off.
pub(crate) fn cache_options(config: &Config) -> Option<CacheOptions> {
    let options = &config.response_cache;
    options.enabled.then(|| CacheOptions {
        memory: MemoryLimits {
            bytes: options.in_memory.bytes.0,
            client_percent: config.limits.client_share.0.get().into(),
        },
        ..CacheOptions::default()
    })
}

/// The cache with these limits: the previous one, if it has equal limits.
pub(crate) fn response_cache(
    options: Option<&CacheOptions>,
    before: Option<Arc<ResponseCache>>,
    memory: &Arc<MemoryBudget>,
) -> Option<Arc<ResponseCache>> {
    let options = options?;
    if let Some(before) = before.filter(|before| before.options() == options) {
        return Some(before);
    }
    let Some(secret) = KeySecret::random() else {
        tracing::error!("the system has no random numbers: the response cache is off");
        return None;
    };
    Some(Arc::new(ResponseCache::new(secret, *options, None, memory)))
}

/// How the answers of a subgraph at these URLs are kept; `None` if they are not.
pub(crate) fn cache_policy(
    config: &Config,
    subgraph: &str,
    urls: &[&str],
) -> Option<Arc<SubgraphCachePolicy>> {
    let rule = config.response_cache(subgraph)?;
    let ignored = rule.ignore_headers.iter();
    let header = |name: &str| HeaderName::from_bytes(name.as_bytes()).ok();
    let private_id = rule.private_id.as_ref().and_then(|id| match id {
        PrivateIdOptions {
            jwt_claim: Some(claim),
            ..
        } => Some(PrivateId::Claim(claim.as_str().into())),
        PrivateIdOptions { sent_header, .. } => {
            header(&sent_header.as_ref()?.0).map(PrivateId::Header)
        }
    });
    Some(Arc::new(SubgraphCachePolicy {
        storing: StoringPolicy {
            lifetime: LifetimePolicy {
                ttl: rule.ttl,
                stale_if_error: rule.stale_if_error,
                ..LifetimePolicy::default()
            },
            shared_with_credentials: rule.shared_with_credentials,
            revalidates: false,
            entry_bytes_max: config.response_cache.in_memory.entry_max_bytes.0,
        },
        url: urls.join(" ").into(),
        ignore_headers: ignored.filter_map(|name| header(&name.0)).collect(),
        private_id,
    }))
}
