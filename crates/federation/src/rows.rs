//! Join directives to rows: which subgraph defines which type, and which resolves which field.
//!
//! Join v0.2 to v0.5 say it per subgraph (`@join__type`, `@join__field`, ...); v0.1 says it by ownership, which
//! [`legacy`](crate::legacy) turns into the same raw rows. What follows from raw rows is in
//! [`derive`](crate::derive). Directives are found by the names the document's links give them.
//!
//! Lenient where a supergraph says less than it could (no `@join__unionMember` at all means every member), strict
//! where it contradicts itself (an unknown subgraph, a key over an unknown field).

use ogive_base::{BitSet, Diagnostic, FastMap, IdVec, SourceId, Span, Symbol};
use ogive_schema::{
    AppliedDirective, ConstValue, FieldId, InputId, Schema, Type, TypeId, TypeKind,
};
use ogive_syntax::{Limits, parse_type_ref};

use crate::{
    ContextArg, FieldSetId, FieldSource, Key, Links, QueryGraph, Subgraph, SubgraphId, TypeSource,
    field_set::{FieldSetError, FieldSets, did_you_mean},
    vocabulary::{Spec, Version, join},
};

macro_rules! words {
    ($($field:ident = $text:literal),* $(,)?) => {
        /// Argument names of join directives as symbols of the schema; `None` for words it never uses.
        pub(crate) struct Words { $(pub(crate) $field: Option<Symbol>),* }
        impl Words {
            fn new(schema: &Schema) -> Words {
                Words { $($field: schema.names.get($text)),* }
            }
        }
    };
}

words! {
    graph = "graph", key = "key", extension = "extension", resolvable = "resolvable",
    is_interface_object = "isInterfaceObject", requires = "requires", provides = "provides", ty = "type",
    external = "external", over = "override", label = "overrideLabel", used_overridden = "usedOverridden",
    context_arguments = "contextArguments", interface = "interface", member = "member",
}

/// Names of the join directives in this document.
pub(crate) struct JoinNames {
    pub(crate) ty: Option<Symbol>,
    pub(crate) owner: Option<Symbol>,
    pub(crate) field: Option<Symbol>,
    pub(crate) implements: Option<Symbol>,
    pub(crate) union_member: Option<Symbol>,
    pub(crate) enum_value: Option<Symbol>,
}

impl JoinNames {
    fn new(schema: &Schema, links: &Links) -> JoinNames {
        let name = |element: &str| schema.names.get(&links.directive(Spec::Join, element)?);
        JoinNames {
            ty: name(join::TYPE),
            owner: name(join::OWNER),
            field: name(join::FIELD),
            implements: name(join::IMPLEMENTS),
            union_member: name(join::UNION_MEMBER),
            enum_value: name(join::ENUM_VALUE),
        }
    }
}

/// What the rows are read from.
pub(crate) struct Input<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) links: &'a Links,
    pub(crate) version: Version,
    pub(crate) subgraphs: &'a IdVec<SubgraphId, Subgraph>,
    pub(crate) source: SourceId,
    pub(crate) errors_max: usize,
}

/// Rows under construction.
pub(crate) struct Rows<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) names: JoinNames,
    pub(crate) words: Words,
    pub(crate) subgraphs: &'a IdVec<SubgraphId, Subgraph>,
    source: SourceId,
    errors_max: usize,
    by_value: FastMap<&'a str, SubgraphId>,
    by_name: FastMap<&'a str, SubgraphId>,
    /// Types that belong to specifications, not to the graph.
    pub(crate) machinery: BitSet,
    pub(crate) sets: FieldSets,
    pub(crate) graph: QueryGraph,
    /// `@requires` of interface fields as written, for the types that get the field from an `@interfaceObject`.
    pub(crate) requires_text: FastMap<(FieldId, SubgraphId), Box<str>>,
    pub(crate) errors: Vec<Diagnostic>,
    pub(crate) warnings: Vec<Diagnostic>,
}

/// Compiles the rows of a supergraph. Errors come in the order in which rows are read.
pub(crate) fn read_rows(input: &Input<'_>) -> (QueryGraph, Vec<Diagnostic>, Vec<Diagnostic>) {
    let schema = input.schema;
    let values = || input.subgraphs.iter();
    let mut rows = Rows {
        schema,
        names: JoinNames::new(schema, input.links),
        words: Words::new(schema),
        subgraphs: input.subgraphs,
        source: input.source,
        errors_max: input.errors_max,
        by_value: values().map(|(id, s)| (&*s.enum_value, id)).collect(),
        by_name: values().map(|(id, s)| (&*s.name, id)).collect(),
        machinery: schema
            .types()
            .filter(|(id, _)| input.links.owner_of_type(schema.type_name(*id)).is_some())
            .map(|(id, _)| id.0)
            .collect(),
        sets: FieldSets::default(),
        graph: QueryGraph::default(),
        requires_text: FastMap::default(),
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    rows.graph.types = schema.types.ids().map(|_| Default::default()).collect();
    rows.graph.fields = schema.fields.ids().map(|_| Default::default()).collect();
    if input.version < join::ROWS_SINCE {
        rows.read_legacy();
    } else {
        rows.read_types();
        rows.read_possible();
        rows.read_enums();
        rows.read_fields();
        rows.read_inputs();
    }
    rows.derive();
    rows.graph.field_sets = rows.sets.sets;
    (rows.graph, rows.errors, rows.warnings)
}

/// The applications of one directive, in order.
pub(crate) fn applied(
    list: &[AppliedDirective],
    name: Option<Symbol>,
) -> impl Iterator<Item = &AppliedDirective> + Clone {
    list.iter().filter(move |d| Some(d.name) == name)
}

impl<'a> Rows<'a> {
    // --- arguments -----------------------------------------------------------------------------------------------

    pub(crate) fn arg<'d>(
        &self,
        directive: &'d AppliedDirective,
        name: Option<Symbol>,
    ) -> Option<&'d ConstValue> {
        directive.arg(name?).filter(|v| **v != ConstValue::Null)
    }
    fn flag(&self, directive: &AppliedDirective, name: Option<Symbol>, default: bool) -> bool {
        self.arg(directive, name)
            .and_then(ConstValue::as_bool)
            .unwrap_or(default)
    }
    pub(crate) fn text<'d>(
        &self,
        directive: &'d AppliedDirective,
        name: Option<Symbol>,
    ) -> Option<&'d str> {
        self.arg(directive, name).and_then(ConstValue::as_str)
    }
    /// The subgraph named by `graph:`; `Ok(None)` if the argument is absent.
    pub(crate) fn graph_arg(
        &mut self,
        directive: &AppliedDirective,
    ) -> Result<Option<SubgraphId>, ()> {
        let name = match self.arg(directive, self.words.graph) {
            None => return Ok(None),
            Some(ConstValue::Enum(name) | ConstValue::String(name)) => name.clone(),
            Some(_) => Box::from(""),
        };
        if let Some(id) = self.by_value.get(&*name) {
            return Ok(Some(*id));
        }
        let help = did_you_mean(&name, self.subgraphs.iter().map(|(_, s)| &*s.enum_value));
        self.error(
            Diagnostic::error(
                "UNKNOWN_SUBGRAPH",
                format!("no subgraph is called `{name}` here"),
            )
            .label(
                self.source,
                directive.span,
                "not a value of the enum of subgraphs",
            )
            .help(help.unwrap_or_else(|| {
                "every subgraph is a value of the `join__Graph` enum; compose the supergraph again"
                    .to_owned()
            })),
        );
        Err(())
    }

    // --- reports -------------------------------------------------------------------------------------------------

    pub(crate) fn error(&mut self, error: Diagnostic) {
        if self.errors.len() < self.errors_max {
            self.errors.push(error);
        }
    }
    pub(crate) fn warn(&mut self, code: &'static str, span: Span, message: String, help: &str) {
        if self.warnings.len() < self.errors_max {
            let mut warning = Diagnostic::error(code, message)
                .label(self.source, span, "")
                .help(help);
            warning.severity = ogive_base::Severity::Warning;
            self.warnings.push(warning);
        }
    }
    fn field_set_error(
        &mut self,
        code: &'static str,
        what: &str,
        span: Span,
        error: FieldSetError,
    ) {
        let mut diagnostic = Diagnostic::error(
            code,
            format!("{what} makes no sense: {}", error.message),
        )
        .label(self.source, span, "");
        diagnostic.help = Some(error.help.unwrap_or_else(|| {
            "a field set selects fields of the supergraph, as in `\"id organization { id }\"`"
                .to_owned()
        }));
        self.error(diagnostic);
    }

    // --- field sets ----------------------------------------------------------------------------------------------

    pub(crate) fn key(&mut self, ty: TypeId, text: &str, span: Span) -> Option<FieldSetId> {
        match self.sets.resolve(self.schema, ty, text) {
            Ok(id) => Some(id),
            Err(error) => {
                let what = format!("the key of `{}`", self.schema.type_name(ty));
                self.field_set_error("KEY_INVALID_FIELDS", &what, span, error);
                None
            }
        }
    }
    fn requires(&mut self, field: FieldId, text: &str, span: Span) -> Option<FieldSetId> {
        let parent = self.schema.fields[field].parent;
        match self.sets.resolve(self.schema, parent, text) {
            Ok(id) => Some(id),
            Err(error) => {
                let what = format!("what `{}` requires", self.schema.field_coordinate(field));
                self.field_set_error("REQUIRES_INVALID_FIELDS", &what, span, error);
                None
            }
        }
    }
    fn provides(
        &mut self,
        field: FieldId,
        value: TypeId,
        text: &str,
        span: Span,
    ) -> Option<FieldSetId> {
        let resolved = if self.schema.types[value].kind.is_composite() {
            self.sets.resolve(self.schema, value, text)
        } else {
            Err(FieldSetError {
                message: format!("`{}` has no fields", self.schema.type_name(value)),
                help: None,
            })
        };
        match resolved {
            Ok(id) => Some(id),
            Err(error) => {
                let what = format!("what `{}` provides", self.schema.field_coordinate(field));
                self.field_set_error("PROVIDES_INVALID_FIELDS", &what, span, error);
                None
            }
        }
    }

    // --- types ---------------------------------------------------------------------------------------------------

    /// All subgraphs.
    pub(crate) fn everywhere(&self) -> BitSet {
        BitSet::all(self.subgraphs.len())
    }
    /// The row of a type in a subgraph, made if there is none.
    pub(crate) fn type_source(&mut self, ty: TypeId, subgraph: SubgraphId) -> &mut TypeSource {
        let row = &mut self.graph.types[ty];
        row.subgraphs.insert(subgraph.0);
        let at = match row.sources.binary_search_by_key(&subgraph, |s| s.subgraph) {
            Ok(at) => at,
            Err(at) => {
                row.sources.insert(at, new_type_source(subgraph));
                at
            }
        };
        &mut row.sources[at]
    }
    /// Defines a type in each of `subgraphs`.
    pub(crate) fn define_in(&mut self, ty: TypeId, subgraphs: &BitSet) {
        for subgraph in subgraphs.iter() {
            self.type_source(ty, SubgraphId(subgraph));
        }
    }
    /// Whether rows are read for this type at all.
    pub(crate) fn is_of_graph(&self, ty: TypeId) -> bool {
        !self.schema.types[ty].built_in && !self.machinery.contains(ty.0)
    }
    /// Adds a key unless it is there; resolvable if any of its definitions is.
    pub(crate) fn add_key(
        &mut self,
        ty: TypeId,
        subgraph: SubgraphId,
        fields: FieldSetId,
        resolvable: bool,
    ) {
        let keys = &mut self.type_source(ty, subgraph).keys;
        match keys.iter_mut().find(|k| k.fields == fields) {
            Some(key) => key.resolvable |= resolvable,
            None => keys.push(Key { fields, resolvable }),
        }
    }

    fn read_types(&mut self) {
        let schema = self.schema;
        let everywhere = self.everywhere();
        for (ty, def) in schema.types() {
            if def.built_in && def.kind == TypeKind::Scalar {
                self.define_in(ty, &everywhere);
            }
            if !self.is_of_graph(ty) {
                continue;
            }
            let mut stated = false;
            for directive in applied(&def.directives, self.names.ty) {
                stated = true;
                let Ok(Some(subgraph)) = self.graph_arg(directive) else {
                    continue;
                };
                let extension = self.flag(directive, self.words.extension, false);
                let interface_object = self.flag(directive, self.words.is_interface_object, false);
                let resolvable = self.flag(directive, self.words.resolvable, true);
                let source = self.type_source(ty, subgraph);
                source.extension |= extension;
                source.interface_object |= interface_object;
                if let Some(text) = self.text(directive, self.words.key)
                    && let Some(fields) = self.key(ty, text, directive.span)
                {
                    self.add_key(ty, subgraph, fields, resolvable);
                }
            }
            if !stated && def.kind.is_composite() {
                let name = schema.type_name(ty);
                self.error(
                    Diagnostic::error(
                        "TYPE_WITHOUT_SUBGRAPH",
                        format!("no subgraph defines `{name}`"),
                    )
                    .label(self.source, def.span, "has no `@join__type`")
                    .help("a composed supergraph says it for every type; compose it again"),
                );
            } else if !stated {
                // Leaf and input types of custom directives carry no rows; anyone may use them.
                self.define_in(ty, &everywhere);
            }
        }
    }

    // --- possible types ------------------------------------------------------------------------------------------

    fn read_possible(&mut self) {
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
                    for source in &mut self.graph.types[ty].sources {
                        if source.interface_object {
                            source.possible.union_with(&def.possible);
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

    fn unknown_type(&mut self, span: Span, name: &str, help: Option<String>) {
        self.error(
            Diagnostic::error("UNKNOWN_TYPE", format!("no type is called `{name}`"))
                .label(self.source, span, "")
                .help(help.unwrap_or_else(|| "compose the supergraph again".to_owned())),
        );
    }

    fn read_enums(&mut self) {
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

    // --- fields --------------------------------------------------------------------------------------------------

    fn read_fields(&mut self) {
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

    fn read_inputs(&mut self) {
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

/// A type without keys.
pub(crate) fn new_type_source(subgraph: SubgraphId) -> TypeSource {
    TypeSource {
        subgraph,
        keys: Vec::new(),
        interface_object: false,
        extension: false,
        possible: BitSet::new(),
        enum_values: BitSet::new(),
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
    })
}
