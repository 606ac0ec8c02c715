//! Join directives to rows: which subgraph defines which type, and which resolves which field.
//!
//! Join v0.2 to v0.5 say it per subgraph (`@join__type`, `@join__field`, ...); v0.1 says it by ownership, which
//! [`legacy`](crate::legacy) turns into the same raw rows. What follows from raw rows is in
//! [`derive`](crate::derive). Directives are found by the names the document's links give them.
//!
//! Lenient where a supergraph says less than it could (no `@join__unionMember` at all means every member), strict
//! where it contradicts itself (an unknown subgraph, a key over an unknown field).

use ogive_base::{BitSet, Diagnostic, FastMap, IdVec, SourceId, Span, Symbol};
use ogive_schema::{AppliedDirective, ConstValue, FieldId, Schema, TypeId, TypeKind};

use crate::{
    FieldSetId, Key, Links, QueryGraph, Subgraph, SubgraphId, TypeSource,
    applied::{JoinNames, Words, applied},
    costs::read_costs,
    field_set::{FieldSetError, FieldSets, did_you_mean},
    vocabulary::{Version, join},
};

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
    pub(crate) source: SourceId,
    errors_max: usize,
    by_value: FastMap<&'a str, SubgraphId>,
    pub(crate) by_name: FastMap<&'a str, SubgraphId>,
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
    rows.graph.costs = read_costs(schema, input.links);
    (rows.graph, rows.errors, rows.warnings)
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
    pub(crate) fn flag(
        &self,
        directive: &AppliedDirective,
        name: Option<Symbol>,
        default: bool,
    ) -> bool {
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
    pub(crate) fn requires(
        &mut self,
        field: FieldId,
        text: &str,
        span: Span,
    ) -> Option<FieldSetId> {
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
    pub(crate) fn provides(
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
