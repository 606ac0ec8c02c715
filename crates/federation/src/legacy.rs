//! Rows of join v0.1 (supergraphs of federation 1): ownership instead of one row per subgraph.
//!
//! An entity has one owner; its fields come from the owner unless `@join__field` says otherwise, and every other
//! subgraph that extends it repeats the fields of its key. Everything else is a value type, which says nothing
//! about subgraphs: it exists, whole, wherever some field of a subgraph leads to it. External fields are not listed
//! either; they follow from `@provides` and `@requires`.

use ogive_base::{BitSet, FastMap};
use ogive_schema::{FieldId, OperationKind, TypeId, TypeKind};

use crate::{FieldSetId, SubgraphId, applied::applied, field_rows::new_field_source, rows::Rows};

impl Rows<'_> {
    /// Reads everything of a v0.1 supergraph.
    pub(crate) fn read_legacy(&mut self) {
        let schema = self.schema;
        let everywhere = self.everywhere();
        let mut values = BitSet::new();
        let mut entities: Vec<TypeId> = Vec::new();
        let roots = [
            OperationKind::Query,
            OperationKind::Mutation,
            OperationKind::Subscription,
        ]
        .map(|kind| schema.root(kind));
        for (ty, def) in schema.types() {
            if def.built_in && def.kind == TypeKind::Scalar {
                self.define_in(ty, &everywhere);
            }
            if !self.is_of_graph(ty) {
                continue;
            }
            if roots.contains(&Some(ty)) {
                if roots[0] == Some(ty) {
                    self.define_in(ty, &everywhere);
                }
                for field in &def.fields {
                    self.legacy_field(*field, &everywhere);
                }
            } else if def.kind == TypeKind::Object && self.legacy_entity(ty) {
                entities.push(ty);
            } else {
                values.insert(ty.0);
            }
        }
        let keyed: Vec<(FieldSetId, SubgraphId)> = entities
            .iter()
            .flat_map(|ty| &self.graph.types[*ty].sources)
            .flat_map(|s| s.keys.iter().map(|k| (k.fields, s.subgraph)))
            .collect();
        for (key, subgraph) in keyed {
            self.mention(key, subgraph, false, &values);
        }
        self.reach(&values);
        let selections: Vec<(FieldSetId, SubgraphId)> = self
            .graph
            .fields
            .iter()
            .flat_map(|(_, row)| &row.sources)
            .flat_map(|s| [(s.requires, s.subgraph), (s.provides, s.subgraph)])
            .filter_map(|(set, subgraph)| Some((set?, subgraph)))
            .collect();
        for (set, subgraph) in selections {
            self.mention(set, subgraph, true, &values);
        }
        // Mentioned fields can lead to value types that nothing else leads to.
        self.reach(&values);
        self.legacy_possible();
    }

    /// Reads owner and keys of an object type, then its fields; `false` if it is no entity.
    fn legacy_entity(&mut self, ty: TypeId) -> bool {
        let schema = self.schema;
        let def = &schema.types[ty];
        let mut owner = None;
        for directive in applied(&def.directives, self.names.owner) {
            if let Ok(Some(subgraph)) = self.graph_arg(directive) {
                owner = Some(subgraph);
                self.type_source(ty, subgraph);
            }
        }
        let mut keyed = false;
        for directive in applied(&def.directives, self.names.ty) {
            keyed = true;
            let Ok(Some(subgraph)) = self.graph_arg(directive) else {
                continue;
            };
            self.type_source(ty, subgraph).extension = owner.is_some_and(|o| o != subgraph);
            if let Some(text) = self.text(directive, self.words.key)
                && let Some(fields) = self.key(ty, text, directive.span)
            {
                self.add_key(ty, subgraph, fields, true);
            }
        }
        if owner.is_none() && !keyed {
            return false;
        }
        let default = match owner {
            Some(owner) => [owner.0].into_iter().collect(),
            None => self.graph.types[ty].subgraphs.clone(),
        };
        for field in &def.fields {
            self.legacy_field(*field, &default);
        }
        true
    }

    /// A field of an entity or root type comes from the subgraph it names, else from `default`.
    fn legacy_field(&mut self, field: FieldId, default: &BitSet) {
        let def = &self.schema.fields[field];
        let mut subgraphs = BitSet::new();
        for directive in applied(&def.directives, self.names.field) {
            let Ok(Some(subgraph)) = self.graph_arg(directive) else {
                continue;
            };
            self.type_source(def.parent, subgraph);
            let source = self.field_source(field, subgraph, directive);
            if subgraphs.insert(subgraph.0) {
                self.graph.fields[field].sources.push(source);
            }
        }
        if subgraphs.is_empty() {
            self.define_in(def.parent, default);
            let sources = default.iter().map(|s| new_field_source(SubgraphId(s)));
            self.graph.fields[field].sources.extend(sources);
        }
        self.graph.fields[field].sources.sort_by_key(|s| s.subgraph);
    }

    /// A subgraph that mentions a field in a field set defines it; `external` unless it is part of a key.
    fn mention(&mut self, set: FieldSetId, subgraph: SubgraphId, external: bool, values: &BitSet) {
        let mut open = vec![set];
        while let Some(set) = open.pop() {
            for item in self.sets.sets[set].items.clone() {
                let Some(field) = item.field else { continue };
                open.extend(item.selection);
                let parent = self.schema.fields[field].parent;
                self.type_source(parent, subgraph);
                if values.contains(parent.0) {
                    continue; // Value types are whole wherever they are.
                }
                let sources = &mut self.graph.fields[field].sources;
                if let Err(at) = sources.binary_search_by_key(&subgraph, |s| s.subgraph) {
                    let mut source = new_field_source(subgraph);
                    source.external = external;
                    sources.insert(at, source);
                }
            }
        }
    }

    /// Spreads every subgraph along its fields and arguments over the value types they lead to.
    fn reach(&mut self, values: &BitSet) {
        let schema = self.schema;
        let is_value = |ty: TypeId| values.contains(ty.0);
        let mut open: Vec<(TypeId, SubgraphId)> = Vec::new();
        for (ty, def) in schema.types() {
            if !self.is_of_graph(ty) {
                continue;
            }
            if is_value(ty) {
                // Seeds of an earlier round or of a field set: spread them again, they may be new.
                open.extend(
                    self.graph.types[ty]
                        .sources
                        .iter()
                        .map(|s| (ty, s.subgraph)),
                );
                continue;
            }
            for field in &def.fields {
                for source in &self.graph.fields[*field].sources {
                    open.extend(led_to(schema, *field).map(|t| (t, source.subgraph)));
                }
            }
        }
        let mut done: FastMap<TypeId, BitSet> = FastMap::default();
        while let Some((ty, subgraph)) = open.pop() {
            if !self.is_of_graph(ty) || !done.entry(ty).or_default().insert(subgraph.0) {
                continue;
            }
            self.type_source(ty, subgraph);
            if !is_value(ty) {
                continue;
            }
            let def = &schema.types[ty];
            for field in &def.fields {
                let sources = &mut self.graph.fields[*field].sources;
                if let Err(at) = sources.binary_search_by_key(&subgraph, |s| s.subgraph) {
                    let mut source = new_field_source(subgraph);
                    // `@provides` of a value type's field names its subgraph; others of the kind have none.
                    let stated = applied(&schema.fields[*field].directives, self.names.field)
                        .next()
                        .cloned();
                    if let Some(directive) = stated
                        && self.graph_arg(&directive) == Ok(Some(subgraph))
                    {
                        source = self.field_source(*field, subgraph, &directive);
                    }
                    self.graph.fields[*field].sources.insert(at, source);
                }
                open.extend(led_to(schema, *field).map(|t| (t, subgraph)));
            }
            let inputs = def.input_fields.iter();
            open.extend(inputs.map(|i| (schema.inputs[*i].ty.id, subgraph)));
            if def.kind.is_abstract() {
                let concrete = def.possible.iter().map(TypeId);
                open.extend(concrete.filter(|t| is_value(*t)).map(|t| (t, subgraph)));
            }
        }
    }

    /// Objects are themselves; abstract types are what a subgraph knows of their types; enums are whole.
    fn legacy_possible(&mut self) {
        let schema = self.schema;
        for (ty, def) in schema.types() {
            let mut sources = std::mem::take(&mut self.graph.types[ty].sources);
            for source in &mut sources {
                let known = |t: &u32| {
                    *t == ty.0
                        || self.graph.types[TypeId(*t)]
                            .subgraphs
                            .contains(source.subgraph.0)
                };
                source.possible = def.possible.iter().filter(known).collect();
                source.enum_values = def.enum_values.iter().map(|v| v.0).collect();
            }
            self.graph.types[ty].sources = sources;
        }
    }
}

/// Types of a field's value and arguments.
fn led_to(schema: &ogive_schema::Schema, field: FieldId) -> impl Iterator<Item = TypeId> + use<'_> {
    let def = &schema.fields[field];
    let args = def.args.iter().map(|a| schema.inputs[*a].ty.id);
    std::iter::once(def.ty.id).chain(args)
}
