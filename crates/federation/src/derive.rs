//! What follows from raw rows: fields through `@interfaceObject`, key members, overrides, and who resolves what.
//!
//! Order matters: interface objects add sources, overrides and keys qualify them, resolvers sum them up.
//!
//! External key fields: an extension (federation 1, `extension: true`) repeats the fields of its keys as external
//! and does resolve them. Anywhere else an external field is what it says, even inside a key: the subgraph takes it
//! in representations and cannot be asked for it. Composition judges satisfiability the same way.

use ogive_base::{BitSet, FastSet};
use ogive_schema::{FieldId, TypeId, TypeKind};

use crate::{FieldSetId, SubgraphId, rows::Rows};

impl Rows<'_> {
    /// Completes the rows.
    pub(crate) fn derive(&mut self) {
        self.contexts();
        self.interface_objects();
        self.overrides();
        self.external_key_paths();
        self.entities();
        self.resolvers();
    }

    /// Which types set which context, and what the arguments filled from it select there.
    fn contexts(&mut self) {
        let schema = self.schema;
        let Some(directive) = self.names.context else {
            return;
        };
        let contexts = &mut self.graph.contexts;
        for (ty, def) in schema.types() {
            for applied in def.directives.iter().filter(|d| d.name == directive) {
                let name = applied.args.iter().find(|(n, _)| schema.name(*n) == "name");
                let Some(name) = name.and_then(|(_, value)| value.as_str()) else {
                    continue;
                };
                match contexts.iter_mut().find(|(known, _)| **known == *name) {
                    Some((_, types)) => types.push(ty),
                    None => contexts.push((name.into(), vec![ty])),
                }
            }
        }
        for (_, row) in self.graph.fields.iter_mut() {
            for arg in row.sources.iter_mut().flat_map(|s| &mut s.context_args) {
                let types = self.graph.contexts.iter().find(|(n, _)| *n == arg.context);
                let text = arg.selection.trim();
                let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
                for ty in types.iter().flat_map(|(_, types)| types) {
                    let text = text.unwrap_or(&arg.selection);
                    if let Ok(set) = self.sets.resolve(schema, *ty, text) {
                        arg.selections.push((*ty, set));
                    }
                }
            }
        }
    }

    /// A subgraph with interface `I` as `@interfaceObject` resolves `I`'s fields on every implementation of `I`.
    fn interface_objects(&mut self) {
        let schema = self.schema;
        for (ty, def) in schema.types() {
            for interface in &def.interfaces {
                let hosts: Vec<SubgraphId> = self.graph.types[*interface]
                    .sources
                    .iter()
                    .filter(|s| s.interface_object)
                    .map(|s| s.subgraph)
                    .collect();
                if hosts.is_empty() {
                    continue;
                }
                for field in &def.fields {
                    let name = schema.field_name(*field);
                    let Some(of_interface) = schema.field_by_name(*interface, name) else {
                        continue;
                    };
                    for host in &hosts {
                        self.inherit(*field, ty, of_interface, *interface, *host);
                    }
                }
            }
        }
    }

    fn inherit(
        &mut self,
        field: FieldId,
        ty: TypeId,
        of_interface: FieldId,
        interface: TypeId,
        host: SubgraphId,
    ) {
        let Some(source) = self.graph.field_source(of_interface, host) else {
            return;
        };
        let mut source = source.clone();
        source.via_interface_object = Some(interface);
        if source.requires.is_some()
            && let Some(text) = self.requires_text.get(&(of_interface, host))
            && let Ok(requires) = self.sets.resolve(self.schema, ty, text)
        {
            source.requires = Some(requires);
        }
        let sources = &mut self.graph.fields[field].sources;
        if let Err(at) = sources.binary_search_by_key(&host, |s| s.subgraph) {
            sources.insert(at, source);
        }
    }

    /// A loser that is listed as if nothing had happened is no resolver. Progressive overrides keep both, also where
    /// the loser is marked as used although overridden: while the label is off, it resolves the field as ever. Where the
    /// loser does not have the field, nobody else would resolve it while the label is off, so the label does not count.
    fn overrides(&mut self) {
        for (_, row) in self.graph.fields.iter_mut() {
            let having: BitSet = row.sources.iter().map(|s| s.subgraph.0).collect();
            for over in row.sources.iter_mut().filter_map(|s| s.overrides.as_mut()) {
                if !having.contains(over.0.0) {
                    over.1 = None;
                }
            }
            let losers = |progressive: bool| -> BitSet {
                let overrides = row.sources.iter().filter_map(|s| s.overrides);
                let those = overrides.filter(|(_, label)| label.is_some() == progressive);
                those.map(|(from, _)| from.0).collect()
            };
            let (for_good, for_now) = (losers(false), losers(true));
            for source in &mut row.sources {
                if for_good.contains(source.subgraph.0) && !source.external {
                    source.used_overridden = true;
                } else if for_now.contains(source.subgraph.0) {
                    source.used_overridden = false;
                }
            }
        }
    }

    /// A key `a { b }` of an extension whose `b` is external says that `a` brings `b` along: the field provides it.
    fn external_key_paths(&mut self) {
        let types: Vec<TypeId> = self.graph.types.ids().collect();
        for ty in types {
            let keys: Vec<(SubgraphId, FieldSetId)> = self.graph.types[ty]
                .sources
                .iter()
                .filter(|s| s.extension)
                .flat_map(|s| s.keys.iter().map(|k| (s.subgraph, k.fields)))
                .collect();
            for (subgraph, key) in keys {
                let nested: Vec<(FieldId, FieldSetId)> = self.sets.sets[key]
                    .items
                    .iter()
                    .filter_map(|i| Some((i.field?, i.selection?)))
                    .filter(|(_, selection)| self.has_external(*selection, subgraph))
                    .collect();
                for (field, selection) in nested {
                    let sources = &mut self.graph.fields[field].sources;
                    if let Ok(at) = sources.binary_search_by_key(&subgraph, |s| s.subgraph) {
                        let provides = &mut sources[at].provides;
                        *provides = Some(match *provides {
                            None => selection,
                            Some(known) => self.sets.merge(known, selection),
                        });
                    }
                }
            }
        }
    }

    fn has_external(&self, set: FieldSetId, subgraph: SubgraphId) -> bool {
        let mut open = vec![set];
        while let Some(set) = open.pop() {
            for item in &self.sets.sets[set].items {
                let source = item
                    .field
                    .and_then(|f| self.graph.field_source(f, subgraph));
                if source.is_some_and(|s| s.external) {
                    return true;
                }
                open.extend(item.selection);
            }
        }
        false
    }

    fn entities(&mut self) {
        for (_, row) in self.graph.types.iter_mut() {
            row.is_entity = row
                .sources
                .iter()
                .any(|s| s.keys.iter().any(|k| k.resolvable));
        }
    }

    fn resolvers(&mut self) {
        let schema = self.schema;
        let mut extension_keys: FastSet<(FieldId, SubgraphId)> = FastSet::default();
        for (_, row) in self.graph.types.iter() {
            for source in row.sources.iter().filter(|s| s.extension) {
                for key in &source.keys {
                    let items = &self.sets.sets[key.fields].items;
                    let fields = items.iter().filter_map(|i| i.field);
                    extension_keys.extend(fields.map(|f| (f, source.subgraph)));
                }
            }
        }
        for (field, row) in self.graph.fields.iter_mut() {
            row.resolvers = row
                .sources
                .iter()
                .filter(|s| !s.external || extension_keys.contains(&(field, s.subgraph)))
                .filter(|s| s.requires.is_none() && s.context_args.is_empty() && !s.used_overridden)
                // Labels count as off until the operation's labels are known: the overridden subgraph resolves.
                .filter(|s| !matches!(s.overrides, Some((_, Some(_)))))
                .map(|s| s.subgraph.0)
                .collect();
        }
        let unresolved: Vec<FieldId> = schema
            .types()
            .filter(|(ty, def)| self.is_of_graph(*ty) && def.kind == TypeKind::Object)
            .flat_map(|(_, def)| def.fields.iter().copied())
            .filter(|f| self.graph.fields[*f].sources.is_empty())
            .collect();
        for field in unresolved {
            let message = format!("no subgraph resolves `{}`", schema.field_coordinate(field));
            let span = schema.fields[field].span;
            let help = "operations that select it will be refused; compose the supergraph again";
            self.warn("FIELD_WITHOUT_SUBGRAPH", span, message, help);
        }
    }
}
