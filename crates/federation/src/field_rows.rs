//! Who defines which field and input field: `@join__field`.

use ogive_base::{BitSet, Span};
use ogive_schema::{AppliedDirective, ConstValue, FieldId, InputId, Type, TypeId, TypeKind};
use ogive_syntax::{Limits, parse_type_ref};

use crate::{ContextArg, FieldSource, SubgraphId, applied::applied, rows::Rows};

impl Rows<'_> {
    pub(crate) fn read_fields(&mut self) {
        let schema = self.schema;
        for (ty, def) in schema.types() {
            if self.is_of_graph(ty) {
                for field in &def.fields {
                    self.read_field(*field);
                }
            }
        }
    }

    fn read_field(&mut self, field: FieldId) {
        let schema = self.schema;
        let def = &schema.fields[field];
        let mut stated = applied(&def.directives, self.names.field).peekable();
        if stated.peek().is_none() {
            let parents = &self.graph.types[def.parent].sources;
            self.graph.fields[field].sources = parents
                .iter()
                .map(|s| new_field_source(s.subgraph))
                .collect();
            return;
        }
        for directive in stated {
            let Ok(Some(subgraph)) = self.graph_arg(directive) else {
                // Without subgraph: it comes from an `@interfaceObject`, see `derive`.
                continue;
            };
            if !self.graph.types[def.parent].subgraphs.contains(subgraph.0) {
                let message = format!(
                    "`{}` comes from `{}`, which does not define its type",
                    schema.field_coordinate(field),
                    self.subgraphs[subgraph].name
                );
                self.warn(
                    "FIELD_OUTSIDE_TYPE",
                    directive.span,
                    message,
                    "compose the supergraph again",
                );
                self.type_source(def.parent, subgraph);
            }
            let source = self.field_source(field, subgraph, directive);
            let sources = &mut self.graph.fields[field].sources;
            if let Err(at) = sources.binary_search_by_key(&subgraph, |s| s.subgraph) {
                sources.insert(at, source);
            }
        }
    }

    /// One `@join__field` with a subgraph.
    pub(crate) fn field_source(
        &mut self,
        field: FieldId,
        subgraph: SubgraphId,
        directive: &AppliedDirective,
    ) -> FieldSource {
        let schema = self.schema;
        let def = &schema.fields[field];
        let mut source = new_field_source(subgraph);
        source.external = self.flag(directive, self.words.external, false);
        source.used_overridden = self.flag(directive, self.words.used_overridden, false);
        if let Some(text) = self.text(directive, self.words.ty) {
            source.ty = self
                .local_type(text, directive.span)
                .filter(|ty| *ty != def.ty);
        }
        if let Some(text) = self.text(directive, self.words.requires) {
            source.requires = self.requires(field, text, directive.span);
            if schema.types[def.parent].kind == TypeKind::Interface {
                self.requires_text.insert((field, subgraph), text.into());
            }
        }
        if let Some(text) = self.text(directive, self.words.provides) {
            let value = source.ty.map_or(def.ty.id, |ty| ty.id);
            source.provides = self.provides(field, value, text, directive.span);
        }
        if let Some(from) = self.text(directive, self.words.over)
            && let Some(from) = self.by_name.get(from).copied()
        {
            let label = self.text(directive, self.words.label);
            source.overrides = Some((from, label.map(|l| self.label(l))));
        }
        if let Some(ConstValue::List(items)) = self.arg(directive, self.words.context_arguments) {
            source.context_args = items.iter().filter_map(context_arg).collect();
        }
        source
    }

    fn label(&mut self, label: &str) -> u32 {
        let labels = &mut self.graph.override_labels;
        let at = labels.iter().position(|l| &**l == label);
        at.unwrap_or_else(|| {
            labels.push(label.into());
            labels.len() - 1
        }) as u32
    }

    fn local_type(&mut self, text: &str, span: Span) -> Option<Type> {
        let parsed = parse_type_ref(text, &Limits::default()).ok();
        let ty = parsed.and_then(|(document, ty)| {
            Some(Type {
                id: self.schema.type_by_name(document.name(ty.name))?,
                wrapping: ty.wrapping,
            })
        });
        if ty.is_none() {
            self.unknown_type(span, text, None);
        }
        ty
    }

    pub(crate) fn read_inputs(&mut self) {
        let schema = self.schema;
        for (ty, def) in schema.types() {
            if def.kind == TypeKind::InputObject && self.is_of_graph(ty) {
                for input in &def.input_fields {
                    self.read_input(ty, *input);
                }
            }
        }
    }

    fn read_input(&mut self, ty: TypeId, input: InputId) {
        let schema = self.schema;
        let def = &schema.inputs[input];
        let mut subgraphs = BitSet::new();
        for directive in applied(&def.directives, self.names.field) {
            let Ok(Some(subgraph)) = self.graph_arg(directive) else {
                continue;
            };
            subgraphs.insert(subgraph.0);
            if let Some(text) = self.text(directive, self.words.ty)
                && let Some(local) = self.local_type(text, directive.span)
                && local != def.ty
            {
                self.graph.input_types.insert((input, subgraph), local);
            }
        }
        if !subgraphs.is_empty() && subgraphs != self.graph.types[ty].subgraphs {
            self.graph.partial_inputs.insert(input, subgraphs);
        }
    }
}

/// A field that a subgraph simply resolves.
pub(crate) fn new_field_source(subgraph: SubgraphId) -> FieldSource {
    FieldSource {
        subgraph,
        external: false,
        requires: None,
        provides: None,
        ty: None,
        used_overridden: false,
        overrides: None,
        context_args: Vec::new(),
        via_interface_object: None,
    }
}

fn context_arg(value: &ConstValue) -> Option<ContextArg> {
    let ConstValue::Object(fields) = value else {
        return None;
    };
    let text = |name: &str| {
        let (_, value) = fields.iter().find(|(n, _)| &**n == name)?;
        value.as_str().map(Box::from)
    };
    Some(ContextArg {
        context: text("context")?,
        name: text("name")?,
        ty: text("type")?,
        selection: text("selection")?,
        selections: Vec::new(),
    })
}
