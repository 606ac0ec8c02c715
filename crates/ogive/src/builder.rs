//! Putting a gateway together.

use std::{fmt, sync::Arc};

use ogive_base::{Diagnostic, SourceId};
use ogive_config::Config;
use ogive_federation::{ReadOptions, read_supergraph};
use ogive_gateway::{
    GatewayOptions, LoadedPolicies, SchemaState, authorize, redaction, shared::observe,
};

use crate::{
    Error, PolicyEngine, Stages, SubgraphTransport, policies::loaded, stages::EmbeddedStages,
    transport::EmbeddedTransport,
};

/// A gateway that does not listen yet.
pub struct Gateway {
    pub(crate) gateway: Arc<ogive_gateway::Gateway>,
    pub(crate) config: Config,
    parts: Parts,
}

/// What a gateway is made of besides configuration and schema.
#[derive(Clone, Default)]
struct Parts {
    stages: Option<Arc<EmbeddedStages>>,
    transports: Vec<(String, Arc<EmbeddedTransport>)>,
    policies: Option<LoadedPolicies>,
}

/// What a gateway is made of.
#[derive(Default)]
pub struct GatewayBuilder {
    configuration: String,
    supergraph: String,
    parts: Parts,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayBuilder").finish_non_exhaustive()
    }
}

impl GatewayBuilder {
    /// The text of `ogive.yaml`; default empty. Variables of the environment and files in it are expanded by whoever reads it.
    #[must_use]
    pub fn configuration(mut self, yaml: impl Into<String>) -> Self {
        self.configuration = yaml.into();
        self
    }
    /// The supergraph's SDL.
    #[must_use]
    pub fn supergraph(mut self, sdl: impl Into<String>) -> Self {
        self.supergraph = sdl.into();
        self
    }
    /// Who is told of requests at their stages, in place of a coprocessor.
    #[must_use]
    pub fn stages(mut self, stages: impl Stages) -> Self {
        self.parts.stages = Some(Arc::new(EmbeddedStages(Arc::new(stages))));
        self
    }
    /// What answers for a subgraph in place of HTTP.
    #[must_use]
    pub fn transport(
        mut self,
        subgraph: impl Into<String>,
        transport: impl SubgraphTransport,
    ) -> Self {
        let transport = Arc::new(EmbeddedTransport(Arc::new(transport)));
        self.parts.transports.push((subgraph.into(), transport));
        self
    }
    /// Who decides policies.
    #[must_use]
    pub fn policies(mut self, policies: impl PolicyEngine) -> Self {
        let policies: Arc<dyn PolicyEngine> = Arc::new(policies);
        self.parts.policies = Some(loaded(&policies));
        self
    }

    /// Reads configuration and supergraph.
    pub fn build(self) -> Result<Gateway, Error> {
        let config = ogive_config::load(SourceId(0), &self.configuration, &|_| None);
        let config = config.map_err(|errors| Error::Configuration(told(&errors)))?;
        let (state, options) = self.parts.compile(&self.supergraph, &config)?;
        let telemetry = observe::telemetry(&config, None).map_err(Error::Configuration)?;
        let gateway = ogive_gateway::Gateway::new(state, options).observed_by(telemetry);
        Ok(Gateway {
            gateway: Arc::new(gateway),
            config,
            parts: self.parts,
        })
    }
}

impl Parts {
    fn compile(
        &self,
        supergraph: &str,
        config: &Config,
    ) -> Result<(SchemaState, GatewayOptions), Error> {
        let read = read_supergraph(supergraph, SourceId(0), &ReadOptions::default());
        let supergraph = read.map_err(|errors| Error::Supergraph(told(&errors)))?;
        authorize::check(&supergraph, config).map_err(Error::Supergraph)?;
        redaction::check(&supergraph, config).map_err(Error::Supergraph)?;
        let (mut state, _) = SchemaState::new(supergraph, config);
        for (name, transport) in &self.transports {
            let service = Arc::clone(transport);
            if !state.serve_locally(name, service) {
                let why = format!("it has no subgraph `{name}`, which a transport is for");
                return Err(Error::Supergraph(why));
            }
        }
        let mut options = GatewayOptions::load(config).map_err(Error::Configuration)?;
        if let Some(stages) = &self.stages {
            let stages = Arc::clone(stages);
            options.ask_locally(stages).map_err(Error::Configuration)?;
        }
        if let Some(policies) = &self.policies {
            let policies = policies.clone();
            options
                .decide_by(config, policies)
                .map_err(Error::Configuration)?;
        }
        Ok((state, options))
    }
}

impl Gateway {
    /// One that has nothing yet.
    pub fn builder() -> GatewayBuilder {
        GatewayBuilder::default()
    }
    pub(crate) fn replace(&self, supergraph: &str) -> Result<(), Error> {
        let (state, options) = self.parts.compile(supergraph, &self.config)?;
        self.gateway.replace_all(state, options);
        Ok(())
    }
}

/// The first of some errors, and how many more there are.
fn told(errors: &[Diagnostic]) -> String {
    let first = errors.first().map_or("", |error| &error.message);
    match errors.len() {
        0 | 1 => first.to_owned(),
        n => format!("{first} (and {} more errors)", n - 1),
    }
}
