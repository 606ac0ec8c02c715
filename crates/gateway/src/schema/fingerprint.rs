//! What a plan rests on: the types and fields whose definitions the planner looked at, and whether they are still the
//! same.
//!
//! Every type has a hash of what a planner can see of it apart from its fields (kind, keys by subgraph, possible types,
//! enum values, input fields), every field one of its own (type, arguments, who resolves it and under which
//! requirements). A plan is good for another schema if all parts it rests on have the same hash there: a new root field
//! disturbs no plan. Parts go by name, because ids mean nothing in another schema.
//!
//! Invariant: the set is closed. If none of its parts changed, the planner would look at the same set again, except
//! for what is new; new resolvers and keys change the hashes of the parts they are on.

use std::fmt::Write;

use ogive_base::{BitSet, FastSet, IdVec, Symbol, id::Id as _};
use ogive_federation::{FieldSetId, FieldSource, SubgraphId, Supergraph, field_set};
use ogive_operation::{FieldRef, Operation};
use ogive_plan::{Plan, stable_hash};
use ogive_schema::{FieldId, InputId, Schema, TypeId};

/// A part of a schema.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// A type, its output fields not counted.
    Type(TypeId),
    /// A field of an object or interface.
    Field(FieldId),
}

impl Part {
    /// `Type` or `Type.field`.
    pub fn name(self, schema: &Schema) -> String {
        match self {
            Part::Type(ty) => schema.type_name(ty).to_owned(),
            Part::Field(field) => schema.field_coordinate(field),
        }
    }
    /// The part of that name, if there is one.
    pub fn find(schema: &Schema, name: &str) -> Option<Part> {
        match name.split_once('.') {
            None => schema.type_by_name(name).map(Part::Type),
            Some((ty, field)) => {
                let ty = schema.type_by_name(ty)?;
                schema.field_by_name(ty, field).map(Part::Field)
            }
        }
    }
}

/// A hash for every part of one schema.
#[derive(Clone, Debug)]
pub struct Fingerprints {
    types: IdVec<TypeId, u128>,
    fields: IdVec<FieldId, u128>,
    whole: u128,
}

impl Fingerprints {
    /// Hashes all parts. Linear in the schema.
    pub fn new(supergraph: &Supergraph) -> Self {
        let schema = &supergraph.schema;
        let mut writer = Writer {
            supergraph,
            schema,
            out: String::new(),
        };
        let mut types = IdVec::new();
        let mut fields = IdVec::new();
        let mut all: Vec<(String, u128)> = Vec::new();
        for ty in schema.types.ids() {
            writer.out.clear();
            writer.ty(ty);
            let hash = stable_hash(writer.out.as_bytes());
            all.push((Part::Type(ty).name(schema), hash));
            types.push(hash);
        }
        for field in schema.fields.ids() {
            writer.out.clear();
            writer.field(field);
            let hash = stable_hash(writer.out.as_bytes());
            all.push((Part::Field(field).name(schema), hash));
            fields.push(hash);
        }
        all.sort_unstable();
        let names = supergraph.subgraphs.iter().map(|(_, s)| &s.name);
        let whole = stable_hash(format!("{all:?}{:?}", names.collect::<Vec<_>>()).as_bytes());
        Fingerprints {
            types,
            fields,
            whole,
        }
    }
    /// The hash of the whole schema.
    pub fn whole(&self) -> u128 {
        self.whole
    }
    /// The hash of a part.
    pub fn of(&self, part: Part) -> u128 {
        let found = match part {
            Part::Type(ty) => self.types.get(ty),
            Part::Field(field) => self.fields.get(field),
        };
        found.copied().unwrap_or_default()
    }
}

/// The parts the plan of an operation rests on, sorted.
pub fn rests_on(supergraph: &Supergraph, operation: &Operation) -> Box<[Part]> {
    let schema = &supergraph.schema;
    let mut walk = Walk {
        supergraph,
        seen: FastSet::default(),
        found: Vec::new(),
        sets: FastSet::default(),
    };
    for (_, set) in operation.selection_sets.iter() {
        walk.ty(set.ty);
        walk.types(&set.possible);
        for field in &set.fields {
            let field = &operation.fields[*field];
            walk.ty(field.ty.id);
            if let FieldRef::Field(row) = field.field {
                let name = schema.fields[row].name;
                walk.field(row);
                walk.field_named(set.ty, name);
                for ty in set.possible.iter().map(TypeId) {
                    walk.field_named(ty, name);
                }
            }
        }
    }
    for variable in &operation.variables {
        walk.ty(variable.ty.id);
    }
    let mut next = 0;
    while let Some(part) = walk.found.get(next).copied() {
        next += 1;
        match part {
            Part::Type(ty) => walk.expand_type(ty),
            Part::Field(field) => walk.expand_field(field),
        }
    }
    walk.found.sort_unstable();
    walk.found.into()
}

struct Walk<'a> {
    supergraph: &'a Supergraph,
    seen: FastSet<Part>,
    found: Vec<Part>,
    sets: FastSet<FieldSetId>,
}

impl Walk<'_> {
    fn add(&mut self, part: Part) {
        if self.seen.insert(part) {
            self.found.push(part);
        }
    }
    fn ty(&mut self, ty: TypeId) {
        self.add(Part::Type(ty));
    }
    fn types(&mut self, types: &BitSet) {
        for ty in types.iter() {
            self.ty(TypeId(ty));
        }
    }
    fn field(&mut self, field: FieldId) {
        self.add(Part::Field(field));
    }
    fn field_named(&mut self, ty: TypeId, name: Symbol) {
        let found = self.supergraph.schema.fields_by_name.get(&(ty, name));
        if let Some(field) = found {
            self.field(*field);
        }
    }

    /// Adds what a type can lead the planner to.
    fn expand_type(&mut self, ty: TypeId) {
        let (graph, schema) = (&self.supergraph.graph, &self.supergraph.schema);
        let def = &schema.types[ty];
        self.types(&def.possible);
        for interface in &def.interfaces {
            self.ty(*interface);
        }
        for input in &def.input_fields {
            self.ty(schema.inputs[*input].ty.id);
        }
        for source in graph.types.get(ty).iter().flat_map(|row| &row.sources) {
            for key in &source.keys {
                self.field_set(key.fields);
            }
        }
    }

    fn expand_field(&mut self, id: FieldId) {
        let (graph, schema) = (&self.supergraph.graph, &self.supergraph.schema);
        let field = &schema.fields[id];
        self.ty(field.parent);
        self.ty(field.ty.id);
        // The planner may ask an interface instead of its types.
        for interface in &schema.types[field.parent].interfaces {
            self.field_named(*interface, field.name);
        }
        for arg in &field.args {
            self.ty(schema.inputs[*arg].ty.id);
        }
        for source in graph.fields.get(id).iter().flat_map(|row| &row.sources) {
            for set in source.requires.iter().chain(&source.provides) {
                self.field_set(*set);
            }
            if let Some(ty) = source.ty {
                self.ty(ty.id);
            }
            if let Some(interface) = source.via_interface_object {
                self.ty(interface);
            }
            if !source.context_args.is_empty() {
                // A context may be set on any type above, and select anything there.
                for ty in schema.types.ids() {
                    self.ty(ty);
                }
                for field in schema.fields.ids() {
                    self.field(field);
                }
            }
        }
    }

    /// Adds everything a field set goes through.
    fn field_set(&mut self, set: FieldSetId) {
        let (graph, schema) = (&self.supergraph.graph, &self.supergraph.schema);
        let mut open = vec![set];
        while let Some(set) = open.pop() {
            if !self.sets.insert(set) {
                continue;
            }
            for item in &graph.field_sets[set].items {
                self.types(&item.types);
                if let Some(field) = item.field {
                    self.field(field);
                    for ty in item.types.iter().map(TypeId) {
                        self.field_named(ty, schema.fields[field].name);
                    }
                }
                open.extend(item.selection);
            }
        }
    }
}

/// Writes all a planner can see of one part, subgraphs by name.
struct Writer<'a> {
    supergraph: &'a Supergraph,
    schema: &'a Schema,
    out: String,
}

impl<'a> Writer<'a> {
    fn ty(&mut self, ty: TypeId) {
        let (schema, graph) = (self.schema, &self.supergraph.graph);
        let (def, api) = (&schema.types[ty], &self.supergraph.api.types[ty]);
        let _ = write!(self.out, "{:?} {}", def.kind, schema.type_name(ty));
        for (context, types) in &graph.contexts {
            if types.contains(&ty) {
                let _ = write!(self.out, " sets {context:?}");
            }
        }
        if let Some(weight) = graph.costs.types.get(&ty) {
            let _ = write!(self.out, " weight {weight}");
        }
        self.restrictions(self.supergraph.restrictions.of_type(ty));
        self.names("possible", def.possible.iter().map(TypeId));
        self.names("interfaces", def.interfaces.iter().copied());
        for value in &def.enum_values {
            let visible = api.enum_values.contains(value);
            let name = schema.name(schema.enum_values[*value].name);
            let _ = write!(self.out, "\nvalue {name} {visible}");
        }
        // Built-in types are everywhere, and the same everywhere.
        let row = graph.types.get(ty).filter(|_| !def.built_in);
        for source in row.iter().flat_map(|row| &row.sources) {
            let name = self.subgraph(source.subgraph);
            let _ = write!(
                self.out,
                "\nin {name:?} {} {}",
                source.interface_object, source.extension
            );
            for key in &source.keys {
                let _ = write!(self.out, " key {} ", key.resolvable);
                self.field_set(key.fields, &def.possible);
            }
            self.names("possible", source.possible.iter().map(TypeId));
            for value in source.enum_values.iter() {
                let value = ogive_schema::EnumValueId::from_usize(value as usize);
                let name = schema.name(schema.enum_values[value].name);
                let _ = write!(self.out, " {name}");
            }
        }
        for input in &def.input_fields {
            self.input(*input);
        }
    }

    fn field(&mut self, id: FieldId) {
        let schema = self.schema;
        let field = &schema.fields[id];
        let possible = &schema.types[field.parent].possible;
        let costs = &self.supergraph.graph.costs;
        for size in costs.list_sizes.get(&id).into_iter().flatten() {
            let slicing = size.slicing.iter().map(|slicing| {
                let path = std::iter::once(&slicing.input).chain(&slicing.path);
                path.map(|i| schema.name(schema.inputs[*i].name)).collect()
            });
            let slicing: Vec<Vec<&str>> = slicing.collect();
            let sized = size.sized.iter();
            let sized: Vec<Vec<&str>> = sized
                .map(|path| path.iter().map(|name| schema.name(*name)).collect())
                .collect();
            let (assumed, one) = (size.assumed, size.exactly_one);
            let _ = write!(self.out, " size {assumed:?} {slicing:?} {sized:?} {one}");
        }
        if let Some(weight) = costs.fields.get(&id) {
            let _ = write!(self.out, " weight {weight}");
        }
        let _ = write!(
            self.out,
            "\nfield {}: {}",
            schema.name(field.name),
            schema.display_type(field.ty)
        );
        for arg in &field.args {
            self.input(*arg);
        }
        self.restrictions(self.supergraph.restrictions.of_field(id));
        let value_types = &schema.types[field.ty.id].possible;
        let row = self.supergraph.graph.fields.get(id);
        for source in row.iter().flat_map(|row| &row.sources) {
            self.field_source(source, possible, value_types);
        }
        for subgraph in row.iter().flat_map(|row| row.resolvers.iter()) {
            let name = self.subgraph(SubgraphId(subgraph));
            let _ = write!(self.out, " resolves {name:?}");
        }
    }

    /// Who may see it.
    fn restrictions(&mut self, rows: &[u32]) {
        for row in rows {
            let requirement = &self.supergraph.restrictions.requirements[*row as usize];
            let _ = write!(self.out, "\nrestricted {requirement:?}");
        }
    }

    fn field_source(&mut self, source: &FieldSource, possible: &BitSet, value_types: &BitSet) {
        let FieldSource {
            subgraph,
            external,
            requires,
            provides,
            ty,
            used_overridden,
            overrides,
            context_args,
            via_interface_object,
        } = source;
        let name = self.subgraph(*subgraph);
        let _ = write!(self.out, "\n  in {name:?} {external} {used_overridden}");
        for arg in context_args {
            let (context, name, ty, text) = (&arg.context, &arg.name, &arg.ty, &arg.selection);
            let _ = write!(self.out, " from {context:?} {name:?} {ty:?} {text:?}");
        }
        if let Some(set) = requires {
            self.out.push_str(" requires ");
            self.field_set(*set, possible);
        }
        if let Some(set) = provides {
            self.out.push_str(" provides ");
            self.field_set(*set, value_types);
        }
        if let Some(ty) = ty {
            let _ = write!(self.out, " as {}", self.schema.display_type(*ty));
        }
        if let Some((from, label)) = overrides {
            let labels = &self.supergraph.graph.override_labels;
            let label = label.and_then(|label| labels.get(label as usize));
            let from = self.subgraph(*from);
            let _ = write!(self.out, " overrides {from:?} {label:?}");
        }
        self.names("via", via_interface_object.iter().copied());
    }

    fn input(&mut self, id: InputId) {
        let (schema, graph) = (self.schema, &self.supergraph.graph);
        let input = &schema.inputs[id];
        let _ = write!(
            self.out,
            "\n  input {}: {} = {:?}",
            schema.name(input.name),
            schema.display_type(input.ty),
            input.default
        );
        if let Some(weight) = graph.costs.inputs.get(&id) {
            let _ = write!(self.out, " weight {weight}");
        }
        for subgraph in graph.partial_inputs.get(&id).iter().flat_map(|s| s.iter()) {
            let name = self.subgraph(SubgraphId(subgraph));
            let _ = write!(self.out, " only {name:?}");
        }
        for (subgraph, row) in self.supergraph.subgraphs.iter() {
            if let Some(ty) = graph.input_types.get(&(id, subgraph)) {
                let ty = schema.display_type(*ty);
                let _ = write!(self.out, " in {:?} {ty}", row.name);
            }
        }
    }

    fn field_set(&mut self, set: FieldSetId, types: &BitSet) {
        let sets = &self.supergraph.graph.field_sets;
        self.out.push('{');
        field_set::write_field_set(self.schema, sets, set, types, &mut self.out);
        self.out.push('}');
    }
    fn names(&mut self, what: &str, types: impl Iterator<Item = TypeId>) {
        let mut names: Vec<&str> = types.map(|ty| self.schema.type_name(ty)).collect();
        names.sort_unstable();
        let _ = write!(self.out, " {what} {names:?}");
    }
    fn subgraph(&self, id: SubgraphId) -> &'a str {
        let found = self.supergraph.subgraphs.get(id);
        found.map_or("?", |subgraph| &subgraph.name)
    }
}

/// The plan with its subgraphs numbered as in another supergraph. `None` if that lacks one of them, or has them in an
/// order in which the plan's fetches would no longer be sorted.
pub fn renumbered(plan: &Plan, supergraph: &Supergraph) -> Option<Plan> {
    let names: Vec<Box<str>> = supergraph
        .subgraphs
        .iter()
        .map(|(_, subgraph)| subgraph.name.clone())
        .collect();
    let mut out = plan.clone();
    for (_, fetch) in out.fetches.iter_mut() {
        let name = plan.subgraphs.get(fetch.subgraph as usize)?;
        fetch.subgraph = names.iter().position(|known| known == name)? as u32;
    }
    let fetches = out.fetches.as_slice();
    let sorted = fetches.is_sorted_by_key(|fetch| (fetch.wave, fetch.subgraph));
    out.subgraphs = names;
    sorted.then_some(out)
}
