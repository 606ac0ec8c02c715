//! What callers must be allowed to see types and fields: `@authenticated`, `@requiresScopes` and `@policy`
//! (planner rule 28).
//!
//! The directives of one element are one [`Requirement`]; equal ones are one row. The rules are about concrete types,
//! because a plan knows the concrete type of every object:
//!
//! - A field asks for what its concrete parent type, the field itself and the declared type of its value ask for.
//! - An object of a restricted type asks for what its type asks for, wherever it comes from.
//! - What an interface's field asks for is asked of the implementations' fields, unless these ask for all of it anyway:
//!   composition gives an interface the conjunction of its implementations, which would otherwise close fields that
//!   some of them leave open. Implementations that know the field through an `@interfaceObject` always take it over.
//!
//! Look here for: [`Restrictions`] (the table), [`read_restrictions`] (SDL directives to rows).

use ogive_base::FastMap;
use ogive_schema::{AppliedDirective, ConstValue, FieldId, Schema, TypeId, TypeKind};

use crate::{Links, QueryGraph, vocabulary::Spec};

/// Alternatives, each a list of names that must all be there.
pub type Alternatives = Vec<Vec<Box<str>>>;

/// What a caller must be. All parts must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// Must be authenticated.
    pub authenticated: bool,
    /// Must have all scopes of one alternative; `None` asks for none.
    pub scopes: Option<Alternatives>,
    /// All policies of one alternative must hold; `None` asks for none.
    pub policies: Option<Alternatives>,
    /// What others see instead; `None` is null, with an error.
    pub mask: Option<Box<str>>,
}

impl Requirement {
    fn is_empty(&self) -> bool {
        *self == Requirement::default()
    }
}

/// Who may see what. Empty in most supergraphs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restrictions {
    /// Distinct requirements, in order of first use.
    pub requirements: Vec<Requirement>,
    types: FastMap<TypeId, Vec<u32>>,
    fields: FastMap<FieldId, Vec<u32>>,
}

impl Restrictions {
    /// Whether nothing is restricted.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty() && self.fields.is_empty()
    }
    /// Requirements of a type, by index, sorted; all must hold.
    pub fn of_type(&self, ty: TypeId) -> &[u32] {
        self.types.get(&ty).map_or(&[], Vec::as_slice)
    }
    /// Requirements of a field itself, without those of its parent and of its value's type.
    pub fn of_field(&self, field: FieldId) -> &[u32] {
        self.fields.get(&field).map_or(&[], Vec::as_slice)
    }

    /// Restricts a field, and if it is one of an interface, that of everything that implements it.
    pub fn restrict(&mut self, schema: &Schema, field: FieldId, requirement: Requirement) {
        let row = self.row(requirement);
        insert(self.fields.entry(field).or_default(), row);
        let (parent, name) = (schema.fields[field].parent, schema.fields[field].name);
        for ty in schema.types[parent].possible.iter().map(TypeId) {
            if let Some(implementation) = schema.fields_by_name.get(&(ty, name)) {
                insert(self.fields.entry(*implementation).or_default(), row);
            }
        }
    }

    fn row(&mut self, requirement: Requirement) -> u32 {
        let found = self.requirements.iter().position(|r| *r == requirement);
        found.unwrap_or_else(|| {
            self.requirements.push(requirement);
            self.requirements.len() - 1
        }) as u32
    }
}

/// Reads the restrictions of a supergraph. Linear in the schema, times the implementations of restricted interface
/// fields.
pub fn read_restrictions(schema: &Schema, links: &Links, graph: &QueryGraph) -> Restrictions {
    let words = Words::new(schema, links);
    let mut out = Restrictions::default();
    if words.is_empty() {
        return out;
    }
    for (ty, def) in schema.types() {
        for requirement in words.read(schema, &def.directives) {
            let row = out.row(requirement);
            insert(out.types.entry(ty).or_default(), row);
        }
        for field in &def.fields {
            for requirement in words.read(schema, &schema.fields[*field].directives) {
                let row = out.row(requirement);
                insert(out.fields.entry(*field).or_default(), row);
            }
        }
    }
    let of_fields = out.fields.clone();
    for (interface, def) in schema.types() {
        if def.kind != TypeKind::Interface {
            continue;
        }
        for field in &def.fields {
            if let Some(rows) = of_fields.get(field) {
                hand_down(schema, graph, &mut out, &of_fields, interface, *field, rows);
            }
        }
    }
    out
}

/// Gives the requirements of an interface's field to the implementations' fields.
fn hand_down(
    schema: &Schema,
    graph: &QueryGraph,
    out: &mut Restrictions,
    of_fields: &FastMap<FieldId, Vec<u32>>,
    interface: TypeId,
    field: FieldId,
    rows: &[u32],
) {
    let name = schema.fields[field].name;
    let mut implementations: Vec<FieldId> = Vec::new();
    let mut together: Vec<&Requirement> = Vec::new();
    for ty in schema.types[interface].possible.iter().map(TypeId) {
        let Some(implementation) = schema.fields_by_name.get(&(ty, name)) else {
            continue;
        };
        implementations.push(*implementation);
        let own = of_fields.get(implementation).into_iter().flatten();
        let asked = out.of_type(ty).iter().chain(own);
        together.extend(asked.map(|row| &out.requirements[*row as usize]));
    }
    let is_covered = |row: &u32| covers(&together, &out.requirements[*row as usize]);
    let uncovered: Vec<u32> = rows.iter().copied().filter(|r| !is_covered(r)).collect();
    for implementation in implementations {
        let mut sources = graph.fields[implementation].sources.iter();
        let is_added = sources.any(|s| s.via_interface_object == Some(interface));
        let rows = if is_added { rows } else { &uncovered };
        for row in rows {
            insert(out.fields.entry(implementation).or_default(), *row);
        }
    }
}

fn insert(rows: &mut Vec<u32>, row: u32) {
    if let Err(at) = rows.binary_search(&row) {
        rows.insert(at, row);
    }
}

/// Most alternatives of a conjunction that are compared; with more, nothing counts as covered.
const ALTERNATIVES_MAX: usize = 256;

/// Whether who satisfies all of `together` satisfies `other`.
fn covers(together: &[&Requirement], other: &Requirement) -> bool {
    let implies = |part: fn(&Requirement) -> Option<&Alternatives>| {
        let Some(wanted) = part(other) else {
            return true;
        };
        let mut all: Alternatives = vec![Vec::new()];
        for alternatives in together.iter().filter_map(|r| part(r)) {
            let mut next = Vec::new();
            for have in &all {
                for more in alternatives {
                    let mut both = have.clone();
                    both.extend(more.iter().filter(|name| !have.contains(name)).cloned());
                    next.push(both);
                }
            }
            if next.len() > ALTERNATIVES_MAX {
                return false;
            }
            all = next;
        }
        let meets = |have: &Vec<Box<str>>| {
            let mut wanted = wanted.iter();
            wanted.any(|names| names.iter().all(|name| have.contains(name)))
        };
        all.iter().all(meets)
    };
    (!other.authenticated || together.iter().any(|r| r.authenticated))
        && implies(|r| r.scopes.as_ref())
        && implies(|r| r.policies.as_ref())
}

/// The names of the directives in one supergraph.
struct Words {
    names: [Option<String>; 3],
}

impl Words {
    fn new(schema: &Schema, links: &Links) -> Self {
        let specs = [Spec::Authenticated, Spec::RequiresScopes, Spec::Policy];
        let name = |spec: Spec| links.directive(spec, spec.name());
        let known = |name: &String| schema.names.get(name).is_some();
        Words {
            names: specs.map(|spec| name(spec).filter(known)),
        }
    }
    fn is_empty(&self) -> bool {
        self.names.iter().all(Option::is_none)
    }
    /// What the directives of one element ask for: one requirement, or more where a directive is repeated.
    fn read(&self, schema: &Schema, directives: &[AppliedDirective]) -> Vec<Requirement> {
        let mut first = Requirement::default();
        let mut more = Vec::new();
        for applied in directives {
            let name = schema.name(applied.name);
            let Some(word) = self.names.iter().position(|n| n.as_deref() == Some(name)) else {
                continue;
            };
            let value = || alternatives(applied.args.first().map(|(_, value)| value));
            let mut further = Requirement::default();
            match word {
                0 => first.authenticated = true,
                1 if first.scopes.is_none() => first.scopes = Some(value()),
                1 => further.scopes = Some(value()),
                _ if first.policies.is_none() => first.policies = Some(value()),
                _ => further.policies = Some(value()),
            }
            more.extend((!further.is_empty()).then_some(further));
        }
        let first = (!first.is_empty()).then_some(first);
        first.into_iter().chain(more).collect()
    }
}

/// `[["a", "b"], ["c"]]`, with list coercion. What is no name can never be had.
fn alternatives(value: Option<&ConstValue>) -> Alternatives {
    let name = |value: &ConstValue| match value {
        ConstValue::String(text) | ConstValue::Enum(text) => text.clone(),
        _ => Box::default(),
    };
    let names = |value: &ConstValue| match value {
        ConstValue::List(items) => items.iter().map(name).collect(),
        other => vec![name(other)],
    };
    match value {
        Some(ConstValue::List(items)) => items.iter().map(names).collect(),
        Some(other) => vec![names(other)],
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(alternatives: &[&[&str]]) -> Requirement {
        let names = |list: &&[&str]| list.iter().map(|s| Box::from(*s)).collect();
        Requirement {
            scopes: Some(alternatives.iter().map(names).collect()),
            ..Requirement::default()
        }
    }

    #[test]
    fn a_conjunction_covers_what_follows_from_it() {
        let signed_in = Requirement {
            authenticated: true,
            ..Requirement::default()
        };
        let (a, b) = (scopes(&[&["a"]]), scopes(&[&["b"], &["c"]]));
        let both = scopes(&[&["a", "b"], &["c", "a"]]);
        assert!(covers(&[&a, &b], &both));
        assert!(covers(&[&a, &signed_in], &a));
        assert!(!covers(&[&b], &both));
        assert!(!covers(&[&a], &signed_in));
        assert!(!covers(&[], &a));
        // Nobody satisfies a list without alternatives.
        assert!(!covers(&[&a], &scopes(&[])));
        assert!(covers(&[&scopes(&[])], &a));
    }
}
