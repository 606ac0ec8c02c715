//! The parts of a configuration that decide who may ask for what, and who proves to subgraphs who asks.
//!
//! What was let in under them goes on behind its request only as long as they stay the same: nobody asks again.

use std::{fmt, sync::Arc};

use ogive_base::PeerRange;
use ogive_config::{
    AuthenticationOptions, AuthorizationOptions, ClientAddressHeader, Config, CoprocessorOptions,
    CorsOptions, OperationRuleOptions, OverrideLabelOptions, PersistedQueriesOptions,
    PluginSection, RhaiOptions, StaticResponseOptions, WebSocketOptions, tls::TlsOptions,
};

use crate::hooks::components::LoadedHooks;

/// Those parts.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Access {
    authentication: AuthenticationOptions,
    authorization: AuthorizationOptions,
    persisted_queries: PersistedQueriesOptions,
    override_labels: OverrideLabelOptions,
    tls: TlsOptions,
    operation_rules: Vec<OperationRuleOptions>,
    coprocessor: CoprocessorOptions,
    rhai: RhaiOptions,
    plugins: Vec<PluginSection>,
    /// Whose word about the client's address is believed.
    trusted_proxies: Vec<PeerRange>,
    client_address_header: ClientAddressHeader,
    /// Which pages may read what is answered.
    cors: CorsOptions,
}

impl Access {
    pub(crate) fn new(config: &Config) -> Self {
        Access {
            authentication: config.authentication.clone(),
            authorization: config.authorization.clone(),
            persisted_queries: config.persisted_queries.clone(),
            override_labels: config.override_labels.clone(),
            tls: config.tls.clone(),
            operation_rules: config.limits.operation_rules.clone(),
            coprocessor: config.coprocessor.clone(),
            rhai: config.rhai.clone(),
            plugins: config.plugins.clone(),
            trusted_proxies: config.http.trusted_proxies.clone(),
            client_address_header: config.http.client_address_header,
            cors: config.cors.clone(),
        }
    }
}

/// What decides who asks over a connection that stays open, and whether there would be one: what was found out at its beginning
/// counts for as long as this stays the same.
#[derive(Clone)]
pub struct UpgradeAccess(Arc<UpgradeAccessOptions>);

/// What it is made of is a copy of the configuration, secrets included.
impl fmt::Debug for UpgradeAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpgradeAccess")
    }
}

#[derive(PartialEq)]
struct UpgradeAccessOptions {
    authentication: AuthenticationOptions,
    authorization: AuthorizationOptions,
    coprocessor: CoprocessorOptions,
    rhai: RhaiOptions,
    plugins: Vec<PluginSection>,
    hooks: Arc<LoadedHooks>,
    /// Whether there are such connections at all, and what is answered instead.
    subscriptions: bool,
    websocket: WebSocketOptions,
    static_responses: Vec<StaticResponseOptions>,
    /// Whose word about the client's address is believed.
    trusted_proxies: Vec<PeerRange>,
    client_address_header: ClientAddressHeader,
    /// Which pages come with the credentials of whoever looks at them.
    cors: CorsOptions,
}

impl UpgradeAccess {
    pub(crate) fn new(config: &Config, hooks: Arc<LoadedHooks>) -> Self {
        UpgradeAccess(Arc::new(UpgradeAccessOptions {
            hooks,
            authentication: config.authentication.clone(),
            authorization: config.authorization.clone(),
            coprocessor: config.coprocessor.clone(),
            rhai: config.rhai.clone(),
            plugins: config.plugins.clone(),
            subscriptions: config.subscription.enabled,
            websocket: config.subscription.client.websocket.clone(),
            static_responses: config.static_responses.clone(),
            trusted_proxies: config.http.trusted_proxies.clone(),
            client_address_header: config.http.client_address_header,
            cors: config.cors.clone(),
        }))
    }
    /// Whether it is still the same.
    pub(crate) fn is(&self, other: &UpgradeAccess) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}
