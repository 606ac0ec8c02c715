//! The parts of a configuration that decide who may ask for what, and who proves to subgraphs who asks.
//!
//! What was let in under them goes on behind its request only as long as they stay the same: nobody asks again.

use ogive_config::{
    AuthenticationOptions, AuthorizationOptions, Config, CoprocessorOptions, OperationRuleOptions,
    OverrideLabelOptions, PersistedQueriesOptions, PluginSection, RhaiOptions, tls::TlsOptions,
};

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
        }
    }
}
