//! Classes of concrete types that need not be told apart while planning.
//!
//! Two concrete types of a place are in one class if the client selects the same fields on both, and every subgraph
//! treats both alike: same keys, same resolvers of every field that is selected or could help (keys and `@requires`,
//! transitively), same field types, and no field set that names one but not the other. A place with seventy implementers
//! of one kind then costs one node, and so does everything below it (planner rule 35).
//!
//! The treatment of a type and of a field is written down as text once and interned, so that comparing classes compares
//! numbers.

use std::fmt::Write as _;

use ogive_base::{BitSet, FastMap, Interner, Symbol};
use ogive_federation::{FieldSetId, Supergraph, TypeSource};
use ogive_operation::{FieldRef, Operation, SelectionSetId};
use ogive_schema::{FieldId, TypeId};

/// Caches signatures of one planning run.
pub(crate) struct Classes<'a> {
    supergraph: &'a Supergraph,
    texts: Interner,
    types: FastMap<TypeId, Symbol>,
    fields: FastMap<FieldId, Symbol>,
    /// Sets of concrete types that some field set tells from others.
    told_apart: Option<Vec<BitSet>>,
    /// What arguments are filled with: the type that sets the context, and what is selected there.
    context_sets: Vec<(TypeId, FieldSetId)>,
}

fn context_sets(supergraph: &Supergraph) -> Vec<(TypeId, FieldSetId)> {
    if supergraph.graph.contexts.is_empty() {
        return Vec::new();
    }
    let rows = supergraph.graph.fields.as_slice().iter();
    let args = rows.flat_map(|row| row.sources.iter().flat_map(|s| &s.context_args));
    args.flat_map(|arg| arg.selections.iter().copied())
        .collect()
}

impl<'a> Classes<'a> {
    pub(crate) fn new(supergraph: &'a Supergraph) -> Self {
        Classes {
            supergraph,
            texts: Interner::new(),
            types: FastMap::default(),
            fields: FastMap::default(),
            told_apart: None,
            context_sets: context_sets(supergraph),
        }
    }

    /// The classes of `possible` under a selection, in order of their first type. `known` gives the subgraphs that can
    /// answer a type at the place.
    pub(crate) fn partition(
        &mut self,
        op: &Operation,
        selection: SelectionSetId,
        possible: &BitSet,
        known: impl Fn(TypeId) -> BitSet,
    ) -> Vec<BitSet> {
        let mut out: Vec<BitSet> = Vec::new();
        let mut known_at: FastMap<Vec<u32>, usize> = FastMap::default();
        // All that matters of a type, as numbers; the lists in it are set apart.
        let mut signature: Vec<u32> = Vec::new();
        for t in possible.iter() {
            let ty = TypeId(t);
            signature.clear();
            signature.push(self.of_type(ty).0);
            signature.extend(known(ty).iter());
            signature.push(u32::MAX);
            let mut names: Vec<Symbol> = self.key_names(ty);
            for field in &op.selection_sets[selection].fields {
                let node = &op.fields[*field];
                if !node.types.contains(t) {
                    continue;
                }
                signature.push(field.0);
                if let FieldRef::Field(row) = node.field {
                    names.push(self.supergraph.schema.fields[row].name);
                }
            }
            signature.push(u32::MAX);
            let mut next = 0;
            while next < names.len() {
                let name = names[next];
                next += 1;
                let row = self
                    .supergraph
                    .schema
                    .fields_by_name
                    .get(&(ty, name))
                    .copied();
                let Some(row) = row else { continue };
                signature.push(self.of_field(row).0);
                for source in &self.supergraph.graph.fields[row].sources {
                    for required in source.requires.into_iter().flat_map(|set| self.names(set)) {
                        if !names.contains(&required) {
                            names.push(required);
                        }
                    }
                }
            }
            signature.push(u32::MAX);
            let told_apart = self.told_apart().iter().zip(0..);
            signature.extend(
                told_apart
                    .filter(|(set, _)| set.contains(t))
                    .map(|(_, i)| i),
            );
            match known_at.get(&signature) {
                Some(at) => {
                    out[*at].insert(t);
                }
                None => {
                    known_at.insert(signature.clone(), out.len());
                    out.push([t].into_iter().collect());
                }
            }
        }
        out
    }

    /// Type conditions in the sub-selections of field sets. (A top-level member belongs to the one type that has the
    /// key or field.)
    fn told_apart(&mut self) -> &[BitSet] {
        let supergraph = self.supergraph;
        self.told_apart.get_or_insert_with(|| {
            let sets = &supergraph.graph.field_sets;
            let mut out: Vec<BitSet> = Vec::new();
            for item in sets.iter().flat_map(|(_, set)| &set.items) {
                let (Some(field), Some(below)) = (item.field, item.selection) else {
                    continue;
                };
                let ty = supergraph.schema.fields[field].ty.id;
                for member in &sets[below].items {
                    let is_everyone = supergraph.schema.types[ty]
                        .possible
                        .is_subset(&member.types);
                    if !is_everyone && !out.contains(&member.types) {
                        out.push(member.types.clone());
                    }
                }
            }
            out
        })
    }

    fn key_names(&self, ty: TypeId) -> Vec<Symbol> {
        let sources = &self.supergraph.graph.types[ty].sources;
        let keys = sources.iter().flat_map(|s| &s.keys);
        let of_interfaces = self.interface_keys(ty).flat_map(|(_, s)| &s.keys);
        let sets = keys.chain(of_interfaces).map(|k| k.fields);
        let types = &self.supergraph.schema.types;
        let contexts = self.context_sets.iter();
        let contexts = contexts.filter(|(setter, _)| types[*setter].possible.contains(ty.0));
        sets.chain(contexts.map(|(_, set)| *set))
            .flat_map(|set| self.names(set))
            .collect()
    }

    /// Keys of interfaces by which objects of a type may be entered.
    fn interface_keys(&self, ty: TypeId) -> impl Iterator<Item = (TypeId, &'a TypeSource)> {
        let supergraph = self.supergraph;
        let interfaces = supergraph.schema.types[ty].interfaces.iter();
        interfaces.flat_map(|i| {
            let sources = supergraph.graph.types[*i].sources.iter();
            let with_keys = sources.filter(|s| s.interface_object || !s.keys.is_empty());
            with_keys.map(|s| (*i, s))
        })
    }

    /// Names of the top-level members of a field set.
    fn names(&self, set: FieldSetId) -> Vec<Symbol> {
        let items = &self.supergraph.graph.field_sets[set].items;
        let fields = &self.supergraph.schema.fields;
        items
            .iter()
            .filter_map(|i| i.field.map(|f| fields[f].name))
            .collect()
    }

    fn of_type(&mut self, ty: TypeId) -> Symbol {
        if let Some(found) = self.types.get(&ty) {
            return *found;
        }
        let mut text = String::new();
        for (context, setters) in &self.supergraph.graph.contexts {
            for setter in setters {
                let types = &self.supergraph.schema.types;
                if types[*setter].possible.contains(ty.0) {
                    let _ = write!(text, "{context} {} ", setter.0);
                }
            }
        }
        for source in &self.supergraph.graph.types[ty].sources {
            let _ = write!(text, "{}{}", source.subgraph.0, source.interface_object);
            for key in &source.keys {
                let _ = write!(text, "[{}", key.resolvable);
                self.write_set(key.fields, &mut text);
            }
        }
        for (interface, source) in self.interface_keys(ty) {
            let _ = write!(
                text,
                " {}:{}{}",
                interface.0, source.subgraph.0, source.interface_object
            );
            for key in &source.keys {
                let _ = write!(text, "[{}", key.resolvable);
                self.write_set(key.fields, &mut text);
            }
        }
        let signature = self.texts.intern(&text);
        self.types.insert(ty, signature);
        signature
    }

    fn of_field(&mut self, field: FieldId) -> Symbol {
        if let Some(found) = self.fields.get(&field) {
            return *found;
        }
        let row = &self.supergraph.graph.fields[field];
        let definition = &self.supergraph.schema.fields[field];
        let mut text = format!(
            "{} {:?} {:?}",
            definition.name.0, definition.ty, row.resolvers
        );
        for source in &row.sources {
            let _ = write!(
                text,
                " {} {} {:?} {} {:?} {:?}",
                source.subgraph.0,
                source.external,
                source.ty,
                source.used_overridden,
                source.via_interface_object,
                source.overrides
            );
            for arg in &source.context_args {
                let _ = write!(text, "{}={}{}", arg.name, arg.context, arg.selection);
            }
            for set in [source.requires, source.provides] {
                text.push('/');
                if let Some(set) = set {
                    self.write_set(set, &mut text);
                }
            }
        }
        let signature = self.texts.intern(&text);
        self.fields.insert(field, signature);
        signature
    }

    /// A field set by names; nesting is that of schema text, which is limited.
    fn write_set(&self, set: FieldSetId, text: &mut String) {
        text.push('{');
        for item in &self.supergraph.graph.field_sets[set].items {
            match item.field {
                Some(field) => text.push_str(self.supergraph.schema.field_name(field)),
                None => text.push_str("__typename"),
            }
            let _ = write!(text, "{:?}", item.args);
            match item.selection {
                Some(selection) => self.write_set(selection, text),
                None => text.push(' '),
            }
        }
        text.push('}');
    }
}
