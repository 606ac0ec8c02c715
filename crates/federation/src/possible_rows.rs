//! What abstract types and enums can be in each subgraph: `@join__implements`, `@join__unionMember`,
//! `@join__enumValue`.
//!
//! An interface that nothing implements, but that some subgraph has as `@interfaceObject`, *stands alone*: it is its own
//! only possible type, so that the objects of that subgraph have fields. Nobody can say what they are. A subgraph that
//! defines the interface itself may lead to such an object, and cannot be entered for one.

use ogive_base::{BitSet, Diagnostic, Span};
use ogive_schema::{AppliedDirective, ConstValue, Schema, TypeId, TypeKind};

use crate::{
    Links, SubgraphId,
    applied::{JoinNames, Words, applied},
    field_set::did_you_mean,
    rows::Rows,
};

/// Interfaces that stand alone.
pub(crate) fn standing_alone(schema: &Schema, links: &Links) -> Vec<TypeId> {
    let (names, words) = (JoinNames::new(schema, links), Words::new(schema));
    let is_object = |directive: &AppliedDirective| {
        let flag = words
            .is_interface_object
            .and_then(|name| directive.arg(name));
        flag.and_then(ConstValue::as_bool) == Some(true)
    };
    let alone = schema.types().filter(|(_, def)| {
        def.kind == TypeKind::Interface
            && def.possible.is_empty()
            && applied(&def.directives, names.ty).any(is_object)
    });
    alone.map(|(ty, _)| ty).collect()
}

impl Rows<'_> {
    pub(crate) fn read_possible(&mut self) {
        let schema = self.schema;
        for (ty, def) in schema.types() {
            if !self.is_of_graph(ty) {
                continue;
            }
            match def.kind {
                TypeKind::Object => {
                    for source in &mut self.graph.types[ty].sources {
                        source.possible.insert(ty.0);
                    }
                    self.read_implements(ty);
                }
                TypeKind::Interface => {
                    let alone = def.possible.contains(ty.0);
                    for source in &mut self.graph.types[ty].sources {
                        if source.interface_object || alone {
                            source.possible.union_with(&def.possible);
                        }
                        if alone && !source.interface_object {
                            source
                                .keys
                                .iter_mut()
                                .for_each(|key| key.resolvable = false);
                        }
                    }
                    self.read_implements(ty);
                }
                TypeKind::Union => self.read_members(ty),
                _ => {}
            }
        }
    }

    /// Adds `ty` to what the interfaces it implements can be, subgraph by subgraph.
    fn read_implements(&mut self, ty: TypeId) {
        let schema = self.schema;
        let def = &schema.types[ty];
        let mut stated: Vec<(TypeId, SubgraphId)> = Vec::new();
        for directive in applied(&def.directives, self.names.implements) {
            let Ok(Some(subgraph)) = self.graph_arg(directive) else {
                continue;
            };
            let name = self.text(directive, self.words.interface).unwrap_or("");
            match schema.type_by_name(name) {
                Some(interface) => stated.push((interface, subgraph)),
                None => {
                    let interfaces = def.interfaces.iter().map(|i| schema.type_name(*i));
                    self.unknown_type(directive.span, name, did_you_mean(name, interfaces));
                }
            }
        }
        for interface in &def.interfaces {
            if !stated.iter().any(|(i, _)| i == interface) {
                let both = self.graph.types[ty]
                    .subgraphs
                    .intersection(&self.graph.types[*interface].subgraphs);
                stated.extend(both.iter().map(|s| (*interface, SubgraphId(s))));
            }
        }
        for (interface, subgraph) in stated {
            let Some(source) = self.graph.type_source(ty, subgraph) else {
                continue;
            };
            // An interface is no runtime type, unless it stands for its implementations.
            let adds = match def.kind {
                TypeKind::Object => source.possible.clone(),
                _ if source.interface_object => def.possible.clone(),
                _ => continue,
            };
            let sources = &mut self.graph.types[interface].sources;
            if let Ok(at) = sources.binary_search_by_key(&subgraph, |s| s.subgraph) {
                sources[at].possible.union_with(&adds);
            }
        }
    }

    fn read_members(&mut self, ty: TypeId) {
        let schema = self.schema;
        let def = &schema.types[ty];
        let mut stated: Vec<(TypeId, SubgraphId)> = Vec::new();
        let mut any = false;
        for directive in applied(&def.directives, self.names.union_member) {
            any = true;
            let Ok(Some(subgraph)) = self.graph_arg(directive) else {
                continue;
            };
            let name = self.text(directive, self.words.member).unwrap_or("");
            match schema.type_by_name(name) {
                Some(member) => stated.push((member, subgraph)),
                None => {
                    let members = def.members.iter().map(|m| schema.type_name(*m));
                    self.unknown_type(directive.span, name, did_you_mean(name, members));
                }
            }
        }
        if !any {
            for member in &def.members {
                let subgraphs = &self.graph.types[*member].subgraphs;
                stated.extend(subgraphs.iter().map(|s| (*member, SubgraphId(s))));
            }
        }
        let sources = &mut self.graph.types[ty].sources;
        for (member, subgraph) in stated {
            if let Ok(at) = sources.binary_search_by_key(&subgraph, |s| s.subgraph) {
                sources[at].possible.insert(member.0);
            }
        }
    }

    pub(crate) fn unknown_type(&mut self, span: Span, name: &str, help: Option<String>) {
        self.error(
            Diagnostic::error("UNKNOWN_TYPE", format!("no type is called `{name}`"))
                .label(self.source, span, "")
                .help(help.unwrap_or_else(|| "compose the supergraph again".to_owned())),
        );
    }

    pub(crate) fn read_enums(&mut self) {
        let schema = self.schema;
        for (ty, def) in schema.types() {
            if def.kind != TypeKind::Enum || !self.is_of_graph(ty) {
                continue;
            }
            let any = def.enum_values.iter().any(|v| {
                let list = &schema.enum_values[*v].directives;
                applied(list, self.names.enum_value).next().is_some()
            });
            for value in &def.enum_values {
                let mut subgraphs = BitSet::new();
                if any {
                    for d in applied(
                        &schema.enum_values[*value].directives,
                        self.names.enum_value,
                    ) {
                        if let Ok(Some(subgraph)) = self.graph_arg(d) {
                            subgraphs.insert(subgraph.0);
                        }
                    }
                } else {
                    subgraphs = self.graph.types[ty].subgraphs.clone();
                }
                for source in &mut self.graph.types[ty].sources {
                    if subgraphs.contains(source.subgraph.0) {
                        source.enum_values.insert(value.0);
                    }
                }
            }
        }
    }
}
