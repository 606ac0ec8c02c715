//! What one schema brings along: the supergraph, its endpoints and the operations seen with it.
//!
//! A state never changes. A new schema is compiled beside the old one and swapped by one pointer; requests in flight
//! keep theirs.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use ogive_base::BitSet;
use ogive_cache::ResponseCache;
use ogive_config::Config;
use ogive_federation::Supergraph;
use ogive_planner::PlanOptions;
use ogive_transport::{Endpoint, SubgraphService};

use crate::{
    authorize as authorization,
    schema::access::Access,
    schema::brokers::stand_in,
    schema::cache_limits::CacheLimits,
    schema::canonical::ComparedFields,
    schema::endpoints::endpoint,
    schema::feedback::{Epoch, Feedback},
    schema::fingerprint::Fingerprints,
    schema::labels::Labels,
    schema::operation_cache::OperationCache,
    schema::operation_rules::OperationRules,
    schema::options::PipelineOptions,
    schema::plan_cache::PlanCache,
    schema::refinement::{RefineLimits, Refinement},
    schema::views::SchemaViews,
};

/// One schema, ready to serve.
#[derive(Debug)]
pub struct SchemaState {
    /// The supergraph.
    pub supergraph: Supergraph,
    /// Where its subgraphs are, by subgraph id.
    pub endpoints: Vec<Endpoint>,
    /// The same for sources of events, each on its own, as they outlive the schema.
    event_endpoints: Box<[OnceLock<Arc<[Endpoint; 1]>>]>,
    /// Operations seen before.
    pub operations: OperationCache,
    /// Plans made before, for any number of documents each.
    pub plans: PlanCache,
    /// Hashes of the supergraph's types: tell which plans outlive it.
    pub fingerprints: Fingerprints,
    /// Fields whose literal arguments the planner compares.
    pub compared: ComparedFields,
    /// How progressive overrides are settled.
    pub labels: Labels,
    /// What running requests teach.
    pub feedback: Feedback,
    /// Plans that wait for a better one.
    pub refinement: Refinement,
    /// What introspection shows callers; `None` if it shows everybody everything.
    pub views: Option<SchemaViews>,
    /// Which operations are refused by what they are; `None` if none is.
    pub rules: Option<OperationRules>,
    /// How requests are treated.
    pub options: PipelineOptions,
    /// Who may ask for what.
    pub(crate) access: Access,
    /// Where answers of subgraphs are kept across requests; empty if they are not.
    cache: OnceLock<Arc<ResponseCache>>,
}

impl SchemaState {
    /// Makes a supergraph ready to serve. Returns notes for the operator about parts of the configuration or the
    /// supergraph that will not do what they seem to.
    pub fn new(mut supergraph: Supergraph, config: &Config) -> (SchemaState, Vec<String>) {
        let mut notes = authorization::settle(&mut supergraph, config);
        if config.supergraph.defer_support {
            supergraph.api.list_incremental_directives();
        }
        notes.extend(config.notes());
        for (section, name) in config.mentioned_subgraphs() {
            let known = || supergraph.subgraphs.iter().map(|(_, s)| &*s.name);
            if !known().any(|known| known == name) {
                let meant = ogive_config::nearest(name, known());
                let meant = meant.map(|meant| format!("; did you mean `{meant}`?"));
                notes.push(format!(
                    "`{section}` mentions the subgraph `{name}`, which the supergraph does not have{}",
                    meant.unwrap_or_default()
                ));
            }
        }
        let mut endpoints: Vec<Endpoint> = supergraph
            .subgraphs
            .iter()
            .map(|(_, subgraph)| endpoint(config, &subgraph.name, &subgraph.url))
            .collect();
        stand_in(&supergraph, config, &mut endpoints, &mut notes);
        for endpoint in endpoints.iter().filter(|e| e.service.is_none()) {
            let name = &endpoint.name;
            if let Err(error) = &endpoint.replicas {
                notes.push(format!(
                    "the subgraph `{name}` cannot be asked: {error}; set `override_subgraph_url.{name}`"
                ));
            }
            if let Err(error) = &endpoint.tls {
                notes.push(format!(
                    "the subgraph `{name}` cannot be asked: {error}; correct `tls.subgraph`"
                ));
            }
        }
        let labels = Labels::new(&supergraph, config);
        for label in labels.unknown(config) {
            notes.push(format!(
                "`override_labels.labels` mentions `{label}`, which no `@override` of the supergraph has"
            ));
        }
        let cache = &config.query_planning.cache;
        let limits = cache.enabled.then(|| CacheLimits {
            entries_max: cache.size.get(),
            bytes_max: cache.memory.0,
        });
        let compared = ComparedFields::new(&supergraph);
        let state = SchemaState {
            rules: OperationRules::new(&supergraph, &compared, config, &mut notes),
            operations: OperationCache::new(limits),
            plans: PlanCache::new(limits),
            fingerprints: Fingerprints::new(&supergraph),
            compared,
            options: PipelineOptions::new(
                config,
                &endpoints,
                PipelineOptions::planning_for(config, &supergraph),
            ),
            access: Access::new(config),
            labels,
            views: SchemaViews::new(&supergraph, config),
            feedback: Feedback::new(config, endpoints.iter().map(|e| &*e.name)),
            refinement: Refinement::new(RefineLimits::new(config)),
            supergraph,
            cache: OnceLock::new(),
            event_endpoints: endpoints.iter().map(|_| OnceLock::new()).collect(),
            endpoints,
        };
        (state, notes)
    }
}

impl SchemaState {
    /// Keeps answers of subgraphs across requests in this cache. A later call with another cache has no effect.
    pub(crate) fn keep_answers_in(&self, cache: &Arc<ResponseCache>) {
        let _ = self.cache.set(Arc::clone(cache));
    }

    /// Where answers of subgraphs are kept across requests.
    #[inline]
    pub(crate) fn cache(&self) -> Option<&ResponseCache> {
        self.cache.get().map(|cache| &**cache)
    }

    /// Lets something in this process answer for a subgraph, in place of HTTP. Whether there is such a subgraph.
    pub fn serve_locally(&mut self, name: &str, service: Arc<dyn SubgraphService>) -> bool {
        let Some(endpoint) = self.endpoints.iter_mut().find(|one| *one.name == *name) else {
            return false;
        };
        endpoint.serve_locally(service);
        true
    }
    /// The endpoint of a subgraph for sources of events; they have it together.
    pub(crate) fn event_endpoint(&self, subgraph: u32) -> Option<Arc<[Endpoint; 1]>> {
        let endpoint = self.endpoints.get(subgraph as usize)?;
        let known = self.event_endpoints.get(subgraph as usize)?;
        let known = known.get_or_init(|| Arc::new([endpoint.clone()]));
        Some(Arc::clone(known))
    }
    /// The planning options with some override labels on, and with what was measured.
    pub(crate) fn planning_with(&self, on: &BitSet, epoch: &Epoch) -> Cow<'_, PlanOptions> {
        let options = &self.options.plan;
        if on.is_empty() && epoch.measured.is_none() {
            return Cow::Borrowed(options);
        }
        Cow::Owned(PlanOptions {
            labels: options.labels.union(on),
            measured: epoch.measured.clone(),
            ..options.clone()
        })
    }
}
