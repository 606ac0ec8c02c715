//! Bundles of plans: made by `ogive plan build`, loaded by `ogive serve --plans`.
//!
//! [`BundleBuilder`] plans operations exactly as a gateway would and keeps the results under their canonical forms.
//! [`load`] puts those plans of a bundle whose types are unchanged into a schema's plan cache.

use std::sync::Arc;

use ogive_base::FastMap;
use ogive_plan::{Bundle, BundledPlan};
use ogive_schema::TypeId;

use crate::{
    canonical::canonical,
    error::RequestError,
    fingerprint::{renumbered, rests_on},
    plans::SharedPlan,
    prepare::prepare_operation,
    state::SchemaState,
};

/// Collects plans.
#[derive(Debug)]
pub struct BundleBuilder<'s> {
    state: &'s SchemaState,
    bundle: Bundle,
    type_rows: FastMap<TypeId, u32>,
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
            type_rows: FastMap::default(),
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
        let types = rests_on(&state.supergraph, &form.operation);
        let types = types.iter().map(|ty| self.type_row(*ty)).collect();
        let at = self.bundle.plans.len();
        self.keys.insert(form.key.clone(), at);
        self.bundle.plans.push(BundledPlan {
            key: form.key,
            name: label.into(),
            types,
            plan,
        });
        Ok(Added {
            plan: at,
            shared: false,
        })
    }

    fn type_row(&mut self, ty: TypeId) -> u32 {
        let types = &mut self.bundle.types;
        let (schema, hashes) = (&self.state.supergraph.schema, &self.state.fingerprints);
        *self.type_rows.entry(ty).or_insert_with(|| {
            types.push((schema.type_name(ty).into(), hashes.of(ty)));
            types.len() as u32 - 1
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
    /// Types that changed or are gone.
    pub changed_types: Vec<Box<str>>,
}

/// Puts the plans of a bundle into a schema's plan cache. Plans that rest on changed types are left out; a bundle of
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
    let mut rows: Vec<Option<TypeId>> = Vec::new();
    let mut loaded = Loaded::default();
    for (name, hash) in &bundle.types {
        let found = schema.type_by_name(name);
        let same = found.filter(|ty| state.fingerprints.of(*ty) == *hash);
        if same.is_none() {
            loaded.changed_types.push(name.clone());
        }
        rows.push(same);
    }
    let total = bundle.plans.len();
    for bundled in bundle.plans {
        let types = bundled
            .types
            .iter()
            .map(|row| rows.get(*row as usize).copied().flatten());
        let types: Option<Box<[TypeId]>> = types.collect();
        let plan = renumbered(&bundled.plan, &state.supergraph);
        let (Some(types), Some(plan)) = (types, plan) else {
            loaded.outdated.push(bundled.name);
            continue;
        };
        loaded.used += 1;
        let shared = SharedPlan {
            plan: Arc::new(plan),
            types,
            bundled: true,
        };
        let key: Arc<[u8]> = bundled.key.into();
        state.plans.insert_bundled(key, Arc::new(shared));
    }
    if total > 0 && loaded.used == 0 {
        let changed = loaded.changed_types.len();
        return Err(Refused(format!(
            "all of its {total} plans were made for another schema ({changed} of the types they rest on changed)"
        )));
    }
    Ok(loaded)
}
