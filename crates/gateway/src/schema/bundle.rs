//! Bundles of plans: made by `ogive plan build`, loaded by `ogive serve --plans`.
//!
//! [`BundleBuilder`] plans operations exactly as a gateway would and keeps the results under their canonical forms.
//! [`load`] puts those plans of a bundle that rest on nothing changed into a schema's plan cache.

use std::sync::{Arc, OnceLock};

use ogive_base::FastMap;
use ogive_edge::error::RequestError;
use ogive_plan::{Bundle, BundledPlan};

use crate::{
    prepare::prepare_operation,
    schema::{
        canonical::canonical,
        fingerprint::{Part, renumbered, rests_on},
        plan_cache::{SharedPlan, Tier},
        state::SchemaState,
    },
};

/// Collects plans.
#[derive(Debug)]
pub struct BundleBuilder<'s> {
    state: &'s SchemaState,
    bundle: Bundle,
    part_rows: FastMap<Part, u32>,
    keys: FastMap<Box<[u8]>, usize>,
}

/// What became of one operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Added {
    /// Index of its plan in the bundle.
    pub plan: usize,
    /// Whether an equivalent operation was there already.
    pub shared: bool,
}

impl<'s> BundleBuilder<'s> {
    /// An empty bundle for a schema.
    pub fn new(state: &'s SchemaState) -> Self {
        BundleBuilder {
            state,
            bundle: Bundle {
                planner: ogive_planner::VERSION.into(),
                schema: state.fingerprints.whole(),
                ..Bundle::default()
            },
            part_rows: FastMap::default(),
            keys: FastMap::default(),
        }
    }

    /// Plans one operation of a document.
    pub fn add(
        &mut self,
        label: &str,
        document: &str,
        operation_name: Option<&str>,
    ) -> Result<Added, RequestError> {
        let state = self.state;
        let prepared = prepare_operation(state, document, operation_name)?;
        let form = canonical(&state.supergraph, &state.compared, &prepared.operation);
        if let Some(plan) = self.keys.get(&form.key) {
            return Ok(Added {
                plan: *plan,
                shared: true,
            });
        }
        let plan = ogive_planner::plan(&state.supergraph, &form.operation, &state.options.plan)
            .map_err(|error| RequestError::graphql(error.code, error.message))?;
        let parts = rests_on(&state.supergraph, &form.operation);
        let parts = parts.iter().map(|part| self.part_row(*part)).collect();
        let at = self.bundle.plans.len();
        self.keys.insert(form.key.clone(), at);
        self.bundle.plans.push(BundledPlan {
            key: form.key,
            name: label.into(),
            parts,
            plan,
        });
        Ok(Added {
            plan: at,
            shared: false,
        })
    }

    fn part_row(&mut self, part: Part) -> u32 {
        let parts = &mut self.bundle.parts;
        let (schema, hashes) = (&self.state.supergraph.schema, &self.state.fingerprints);
        *self.part_rows.entry(part).or_insert_with(|| {
            parts.push((part.name(schema).into(), hashes.of(part)));
            parts.len() as u32 - 1
        })
    }

    /// The bundle so far.
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }
    /// The bundle.
    pub fn finish(self) -> Bundle {
        self.bundle
    }
}

/// Why no plan of a bundle is used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused(pub String);

/// What became of a bundle.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Loaded {
    /// Number of plans in use.
    pub used: usize,
    /// Names of plans that are not, because the schema changed below them.
    pub outdated: Vec<Box<str>>,
    /// Types and fields that changed or are gone.
    pub changed: Vec<Box<str>>,
}

/// Puts the plans of a bundle into a schema's plan cache. Plans that rest on what changed are left out; a bundle of
/// which nothing fits, or that another planner made, is refused.
pub fn load(state: &mut SchemaState, bundle: Bundle) -> Result<Loaded, Refused> {
    if *bundle.planner != *ogive_planner::VERSION {
        return Err(Refused(format!(
            "its plans were made by planner {}, this is {}",
            bundle.planner,
            ogive_planner::VERSION
        )));
    }
    let schema = &state.supergraph.schema;
    let mut rows: Vec<Option<Part>> = Vec::new();
    let mut loaded = Loaded::default();
    for (name, hash) in &bundle.parts {
        let found = Part::find(schema, name);
        let same = found.filter(|part| state.fingerprints.of(*part) == *hash);
        if same.is_none() {
            loaded.changed.push(name.clone());
        }
        rows.push(same);
    }
    let total = bundle.plans.len();
    for bundled in bundle.plans {
        let parts = bundled
            .parts
            .iter()
            .map(|row| rows.get(*row as usize).copied().flatten());
        let parts: Option<Box<[Part]>> = parts.collect();
        let plan = renumbered(&bundled.plan, &state.supergraph);
        let (Some(parts), Some(plan)) = (parts, plan) else {
            loaded.outdated.push(bundled.name);
            continue;
        };
        loaded.used += 1;
        let shared = SharedPlan {
            plan: Arc::new(plan),
            parts,
            tier: Tier::Bundle,
            quality: None,
            epoch: 0,
            bytes: OnceLock::new(),
        };
        let key: Arc<[u8]> = bundled.key.into();
        state.plans.insert_bundled(key, Arc::new(shared));
    }
    if total > 0 && loaded.used == 0 {
        let changed = match loaded.changed.as_slice() {
            [] => "its subgraphs".to_owned(),
            [one] => format!("`{one}`"),
            [one, rest @ ..] => format!("`{one}` and {} more types and fields", rest.len()),
        };
        return Err(Refused(format!(
            "all of its {total} plans were made for another schema: {changed} differ here"
        )));
    }
    Ok(loaded)
}
