//! What introspection shows a caller: the API schema without the types and fields that this caller may not see.
//!
//! A view is made for every set of requirements that some caller meets, once, and kept; there are at most [`VIEWS_MAX`].
//! What only hidden fields lead to is hidden with them.
//! Scalars and enums that clients may have to write stay, whatever is asked of those who read them: without them nobody
//! could give the arguments of fields that are not restricted. The query root stays, too: introspection itself is there.

use std::sync::{Arc, Mutex, PoisonError};

use ogive_base::{BitSet, FastSet};
use ogive_config::{AuthorizationDirectives, Config, IntrospectionWord};
use ogive_federation::Supergraph;
use ogive_plan::{Claims, Requirement};
use ogive_schema::{InputId, OperationKind, Schema, TypeId, TypeKind, retain::Element};

/// Most views that are kept; beyond that the oldest goes.
const VIEWS_MAX: usize = 32;

/// The views of one schema.
#[derive(Debug)]
pub struct SchemaViews {
    /// Those of the supergraph, in its order.
    pub(crate) requirements: Vec<Requirement>,
    kept: Mutex<Vec<(BitSet, Arc<Schema>)>>,
}

impl SchemaViews {
    /// The views of a supergraph; `None` if everybody sees everything.
    pub(crate) fn new(supergraph: &Supergraph, config: &Config) -> Option<Self> {
        let options = &config.authorization;
        let is_on = options.directives == AuthorizationDirectives::Enforce
            && options.introspection == IntrospectionWord::Authorized
            && !options.dry_run
            && !supergraph.restrictions.is_empty();
        let requirements = supergraph.restrictions.requirements.iter();
        let requirements = requirements.map(|requirement| Requirement {
            authenticated: requirement.authenticated,
            scopes: requirement.scopes.clone(),
            policies: requirement.policies.clone(),
            mask: requirement.mask.clone(),
        });
        is_on.then(|| SchemaViews {
            requirements: requirements.collect(),
            kept: Mutex::default(),
        })
    }

    /// The requirements that a caller meets.
    pub(crate) fn met_by(&self, claims: &Claims) -> BitSet {
        let rows = (0..).zip(&self.requirements);
        let met = rows.filter(|(_, requirement)| requirement.is_met_by(claims));
        met.map(|(row, _)| row).collect()
    }

    /// The view that is kept for who meets these requirements.
    pub(crate) fn get(&self, met: &BitSet) -> Option<Arc<Schema>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = kept.iter();
        kept.find(|(of, _)| of == met)
            .map(|(_, view)| Arc::clone(view))
    }
    /// Keeps a view.
    pub(crate) fn insert(&self, met: BitSet, view: Arc<Schema>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= VIEWS_MAX {
            kept.remove(0);
        }
        kept.push((met, view));
    }
}

/// What callers see who meet these requirements. Linear in the schema, times how often something is hidden because of what
/// was hidden before.
pub(crate) fn view(supergraph: &Supergraph, met: &BitSet) -> Schema {
    let (api, restrictions) = (&supergraph.api, &supergraph.restrictions);
    let may = |rows: &[u32]| rows.iter().all(|row| met.contains(*row));
    // Who may not see a value sees a mask instead: the field is there for everybody.
    let is_masked = |row: u32| {
        let row = restrictions.requirements.get(row as usize);
        row.is_some_and(|row| row.mask.is_some())
    };
    let may_ask = |rows: &[u32]| {
        let mut rows = rows.iter();
        rows.all(|row| met.contains(*row) || is_masked(*row))
    };
    let inputs = || api.inputs.iter().map(|(_, input)| input.ty.id);
    let written: FastSet<TypeId> = inputs().collect();
    let root = api.root(OperationKind::Query);
    let is_leaf = |ty: TypeId| matches!(api.types[ty].kind, TypeKind::Scalar | TypeKind::Enum);
    let stays = |ty: TypeId| Some(ty) == root || is_leaf(ty) && written.contains(&ty);
    let may_read = |ty: TypeId| may(restrictions.of_type(ty));
    let mut gone: FastSet<TypeId> = FastSet::default();
    loop {
        let (view, withheld) = api.retain(|element| match element {
            Element::Type(ty) => stays(ty) || may_read(ty) && !gone.contains(&ty),
            Element::Field(field) => {
                may_ask(restrictions.of_field(field)) && may_read(api.fields[field].ty.id)
            }
            _ => true,
        });
        let before = gone.len();
        gone.extend(withheld.empty.into_iter().filter(|ty| !stays(*ty)));
        if gone.len() == before {
            // What only hidden fields lead to has a name that is as secret as they are. Types to which nothing leads at all
            // were never hidden.
            let (led_to, still) = (reached(api), reached(&view));
            gone.extend(led_to.difference(&still));
        }
        if gone.len() == before {
            return view;
        }
    }
}

/// The types that one gets to from the roots, by fields, arguments, interfaces, and what implements or is a member.
fn reached(schema: &Schema) -> FastSet<TypeId> {
    let inputs = |list: &[InputId]| -> Vec<TypeId> {
        list.iter()
            .map(|input| schema.inputs[*input].ty.id)
            .collect()
    };
    let mut out: FastSet<TypeId> = FastSet::default();
    let mut open: Vec<TypeId> = schema.roots.iter().flatten().copied().collect();
    for directive in &schema.directive_list {
        open.extend(inputs(&schema.directive_defs[*directive].args));
    }
    // Introspection is always there.
    open.extend(
        schema
            .types()
            .filter(|(_, def)| def.built_in)
            .map(|(ty, _)| ty),
    );
    while let Some(ty) = open.pop() {
        if !out.insert(ty) {
            continue;
        }
        let def = &schema.types[ty];
        open.extend(inputs(&def.input_fields));
        open.extend(def.interfaces.iter().chain(&def.members));
        open.extend(def.possible.iter().map(TypeId));
        for field in &def.fields {
            let field = &schema.fields[*field];
            open.push(field.ty.id);
            open.extend(inputs(&field.args));
        }
    }
    out
}
