//! What a gateway does not take from the schema, as a configuration asks for it.

use std::{net::IpAddr, sync::Arc};

use ogive_base::{Client, ShareLimits};
use ogive_cache::CacheOptions;
use ogive_config::{CedarOptions, Config, IncrementalFormat, OperationWord};
use ogive_edge::{
    cors::{Cors, Csrf},
    dev_diagnostics::DevDiagnostics,
    proxies::Proxies,
    receive::{ReceiveLimits, uploads::UploadOptions},
};
use ogive_execute::incremental::IncrementalForm;
use ogive_identity::api_keys::ApiKeys;
use ogive_store::StoreOptions;
use ogive_transport::SubgraphService;

use crate::{
    admit::{
        operation_rates::{OperationRates, SubgraphRates},
        overload::OverloadOptions,
        rates::AdmissionOptions,
    },
    authorize::ClaimsSource,
    charge::ChargeOptions,
    documents::DocumentOptions,
    hooks::{
        components::{self, LoadedComponent, LoadedHooks},
        settings::HookSettings,
    },
    identify::{revocation_options::RevocationOptions, tokens::AuthenticationOptions},
    policies::{LoadedPolicies, PolicyOptions},
    respond::expose::ExposeOptions,
    router::static_responses::StaticResponses,
    schema::{access::UpgradeAccess, state::SchemaState},
    shared::{
        memory, observe_options::ObserveOptions, response_cache::cache_options,
        shared_state::store_options,
    },
    subscribe::options::SubscriptionOptions,
    usage::UsageOptions,
};

/// What does not change with the schema.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Path of the GraphQL endpoint.
    pub graphql_path: String,
    /// Path of GraphiQL; `None` if it is off.
    pub homepage_path: Option<String>,
    /// Paths of liveness and readiness; `None` if they are off, or on an address of their own.
    pub health_paths: Option<(String, String)>,
    /// Limits on what is received.
    pub receive: ReceiveLimits,
    /// Files that clients may send along; `None` if they may not.
    pub uploads: Option<UploadOptions>,
    /// Whether clients may see plans.
    pub expose: ExposeOptions,
    /// Who gets in.
    pub admission: AdmissionOptions,
    /// Which peers speak for others.
    pub proxies: Proxies,
    /// How the caller of a request is known.
    pub claims: ClaimsSource,
    /// How callers are known by what they bring; `None` if they are not.
    pub authentication: Option<AuthenticationOptions>,
    /// What operations may cost; `None`: whatever they like.
    pub demand_control: Option<ChargeOptions>,
    /// Rates of operations.
    pub operation_rates: Option<OperationRates>,
    /// How often subgraphs may be asked; `None`: as often as anybody likes.
    pub subgraph_rates: Option<Arc<SubgraphRates>>,
    /// How often what goes on is judged again.
    pub revocation: RevocationOptions,
    /// What is counted of clients; `None` if nothing is.
    pub usage: Option<UsageOptions>,
    /// What is refused under overload; `None` if nothing is.
    pub overload: Option<OverloadOptions>,
    /// How much of subgraphs' answers is kept across requests; `None` if nothing is.
    pub cache: Option<CacheOptions>,
    /// Where processes share state; `None` if they share none.
    pub store: Option<StoreOptions>,
    /// Who decides policies; `None` if nobody does.
    pub policies: Option<PolicyOptions>,
    /// How a coprocessor is asked; `None` if there is none.
    pub hook_settings: Option<HookSettings>,
    /// What clients of whom nothing is known are asked for.
    pub challenge: &'static str,
    /// Whether every operation needs a caller that is known.
    pub caller_required: bool,
    /// Whether GraphiQL is for known callers only.
    pub graphiql_needs_caller: bool,
    /// By what it is known who asks over connections that stay open.
    pub upgrade_access: UpgradeAccess,
    /// Scripts and components, of which some decide who asks and who may.
    pub hooks: Arc<LoadedHooks>,
    /// Which pages of other origins may use the gateway.
    pub cors: Cors,
    /// Whether the listener speaks TLS itself.
    pub is_encrypted: bool,
    /// The guard against requests that any page can cause.
    pub csrf: Csrf,
    /// What is answered without asking anybody; `None`: nothing.
    pub static_responses: Option<StaticResponses>,
    /// How subscriptions are served; `None` if they are not.
    pub subscription: Option<Arc<SubscriptionOptions>>,
    /// The form of answers in parts for clients that name none; `None` if nothing is answered in parts.
    pub incremental: Option<IncrementalForm>,
    /// How documents are found by an id.
    pub documents: DocumentOptions,
    /// What of requests is noted and told.
    pub observe: ObserveOptions,
    /// Most bytes that all requests under way make the process hold.
    pub memory_max: usize,
    /// How much of what all clients share one of them may have, in percent.
    pub client_share: usize,
    /// Most operations that wait to be validated and planned because nobody has asked for them before.
    pub waiting_max: usize,
    /// Smallest answer that is encoded; `None` if none is.
    pub encoded_bytes_min: Option<usize>,
    /// Most documents that clients can have registered at a time.
    pub registered_max: usize,
    /// The operation GraphiQL starts with.
    pub graphiql_query: Option<String>,
    /// What GraphiQL says about composition; served at [`ogive_edge::dev_diagnostics::PATH`] unless `None`.
    pub dev_diagnostics: Option<DevDiagnostics>,
}

impl GatewayOptions {
    /// Whose share something is of; `None` if nobody can tell.
    pub(crate) fn counted(&self, client: Option<Client>) -> Option<IpAddr> {
        self.proxies.counted(client?)
    }
    /// How much of this all clients and each of them may have.
    pub(crate) fn share_of(&self, all: usize) -> ShareLimits {
        ShareLimits::of(all, self.client_share)
    }

    /// Whether WebSockets are opened at a path.
    pub(crate) fn is_websocket(&self, path: &str) -> bool {
        let subscription = self.subscription.as_ref();
        let websocket = subscription.and_then(|subscription| subscription.websocket.as_ref());
        websocket.is_some_and(|websocket| websocket.path == path)
    }
    /// The id of a subscription in the path of a request of its subgraph.
    pub(crate) fn callback_id<'p>(&self, path: &'p str) -> Option<&'p str> {
        let prefix = self.subscription.as_ref()?.callback_path.as_ref()?;
        path.strip_prefix(&**prefix).filter(|id| !id.is_empty())
    }
    /// The options that a configuration asks for, and the files it names. The error is for the operator.
    pub fn load(config: &Config) -> Result<Self, String> {
        Self::load_with(config, |_| Err("nobody reads them here".into()))
    }

    /// The same, with somebody who reads policies of Cedar.
    pub fn load_with(
        config: &Config,
        read: impl FnOnce(&CedarOptions) -> Result<LoadedPolicies, String>,
    ) -> Result<Self, String> {
        if let Some(keys) = &config.authentication.router.api_keys {
            ApiKeys::check(keys.file.as_ref())
                .map_err(|why| format!("`authentication.router.api_keys`: {why}"))?;
        }
        let components = components::load(config)?;
        let hook_settings = HookSettings::load(config, &components)?;
        let hooks = Arc::new(LoadedHooks {
            program: hook_settings.as_ref().and_then(|of| of.program().cloned()),
            components: components
                .iter()
                .filter(|of| of.has_stages())
                .cloned()
                .collect(),
        });
        let mut options = GatewayOptions {
            documents: DocumentOptions::new(config)?,
            hook_settings,
            upgrade_access: UpgradeAccess::new(config, Arc::clone(&hooks)),
            hooks,
            store: store_options(config)?,
            ..Self::new(config)
        };
        if let (Some(policies), Some(cedar)) =
            (&mut options.policies, &config.authorization.policies.cedar)
        {
            let loaded = read(cedar);
            let loaded = loaded.map_err(|why| format!("`authorization.policies.cedar`: {why}"))?;
            policies.engine = Some(loaded);
        }
        options.decide_by_components(config, &components);
        Ok(options)
    }

    /// What hooks do not do that they seem to, for the operator: each a sentence.
    pub fn notes(&self) -> Vec<String> {
        let hooks = self.hook_settings.as_ref();
        let notes = hooks.map(|hooks| hooks.notes());
        notes.unwrap_or_default()
    }

    /// Whether scripts can be used with a schema: their entry points are run for each of its subgraphs. The error is for the
    /// operator.
    pub fn check_scripts(&self, state: &SchemaState) -> Result<(), String> {
        let hooks = self.hook_settings.as_ref();
        hooks.map_or(Ok(()), |hooks| hooks.check_scripts(state))
    }

    /// The same for a configuration that is only looked at.
    pub fn check_scripts_of(config: &Config, state: &SchemaState) -> Result<(), String> {
        let hooks = HookSettings::with_scripts(config)?;
        hooks.map_or(Ok(()), |hooks| hooks.check_scripts(state))
    }

    /// Notes of a configuration that is only looked at; nothing of hooks that cannot be used, which is an error of its own.
    pub fn notes_of(config: &Config) -> Vec<String> {
        hooks_of(config).map_or_else(Vec::new, |hooks| hooks.notes())
    }

    /// The tables in which the rates of operations and subgraphs keep their keys.
    pub(crate) fn rate_tables(&self) -> impl Iterator<Item = &str> {
        let operations = self.operation_rates.iter();
        let operations = operations.flat_map(|rates| &rates.rates);
        let subgraphs = self.subgraph_rates.iter();
        let subgraphs = subgraphs.flat_map(|rates| rates.all_rates());
        operations.chain(subgraphs).map(|rate| &*rate.table)
    }

    /// Lets components decide what the configuration names them for; it was checked that they are there.
    fn decide_by_components(&mut self, config: &Config, components: &[LoadedComponent]) {
        let named = |name: &str| components.iter().find(|of| of.name() == name).cloned();
        if let Some(authentication) = &mut self.authentication {
            let names = config.authentication.router.components.iter();
            authentication.components = names.filter_map(|name| named(name)).collect();
        }
        if let Some(policies) = &mut self.policies {
            let name = config.authorization.policies.component.as_deref();
            policies.component = name.and_then(named);
        }
        if let Some(rates) = &mut self.operation_rates {
            rates.set_components(named);
        }
    }

    /// Asks something in this process at the stages of the coprocessor, in its place. The error is for the operator.
    pub fn ask_locally(&mut self, service: Arc<dyn SubgraphService>) -> Result<(), String> {
        let Some(settings) = &mut self.hook_settings else {
            return Err("no stage of `coprocessor` is on, so nobody would be asked".into());
        };
        settings.ask_locally(service);
        Ok(())
    }

    /// Lets an engine decide policies. The error is for the operator.
    pub fn decide_by(&mut self, config: &Config, policies: LoadedPolicies) -> Result<(), String> {
        let Some(options) = PolicyOptions::decided_by(config, policies) else {
            return Err(
                "policies are decided only if restrictions are enforced: set `authorization.directives: enforce`"
                    .into(),
            );
        };
        self.policies = Some(options);
        Ok(())
    }

    /// The options that a configuration asks for; reads no files, so there are no trusted documents.
    pub fn new(config: &Config) -> Self {
        let health = &config.health_check;
        GatewayOptions {
            graphql_path: config.http.graphql_endpoint.0.clone(),
            homepage_path: config
                .homepage
                .enabled
                .then(|| config.homepage.path.0.clone()),
            health_paths: (health.enabled && health.listen.is_none())
                .then(|| (health.path.0.clone(), health.readiness_path.0.clone())),
            receive: ReceiveLimits::new(config),
            uploads: UploadOptions::new(config),
            admission: AdmissionOptions::new(config),
            proxies: Proxies::new(config),
            claims: ClaimsSource::new(config),
            authentication: AuthenticationOptions::new(config),
            demand_control: ChargeOptions::new(config),
            operation_rates: OperationRates::new(config),
            subgraph_rates: SubgraphRates::new(config).map(Arc::new),
            revocation: RevocationOptions::new(config),
            overload: OverloadOptions::new(config),
            static_responses: StaticResponses::new(config),
            usage: UsageOptions::new(config),
            cache: cache_options(config),
            store: None,
            policies: PolicyOptions::new(config),
            hook_settings: HookSettings::new(config),
            challenge: ogive_edge::error::challenge(config),
            caller_required: config.authorization.require_authentication,
            graphiql_needs_caller: {
                let required = &config.authorization.require_authentication_for;
                required.contains(&OperationWord::Graphiql)
            },
            upgrade_access: UpgradeAccess::new(config, Arc::default()),
            hooks: Arc::default(),
            cors: Cors::new(config),
            is_encrypted: config.tls.supergraph.is_some(),
            csrf: Csrf::new(config),
            subscription: SubscriptionOptions::new(config).map(Arc::new),
            incremental: (config.supergraph.defer_support).then_some(
                match config.supergraph.incremental_format_default {
                    IncrementalFormat::V01 => IncrementalForm::Repeated,
                    IncrementalFormat::V02 => IncrementalForm::Distinct,
                },
            ),
            documents: DocumentOptions::without_files(config),
            encoded_bytes_min: config
                .http
                .compression
                .enabled
                .then_some(config.http.compression.min_bytes.0),
            memory_max: memory::limit(config),
            client_share: config.limits.client_share.0.get().into(),
            waiting_max: config.query_planning.max_waiting.get(),
            registered_max: config.apq.router.cache.in_memory.limit.get(),
            expose: ExposeOptions::new(config),
            observe: ObserveOptions::new(config),
            graphiql_query: None,
            dev_diagnostics: None,
        }
    }
}

/// The hooks of a configuration that is only looked at, if they can be used.
fn hooks_of(config: &Config) -> Option<HookSettings> {
    // Components matter to subscriptions alone, and compiling them takes long.
    let components = config
        .subscription
        .enabled
        .then(|| components::load(config));
    let components = components.unwrap_or_else(|| Ok(Vec::new())).ok()?;
    HookSettings::load(config, &components).ok()?
}
