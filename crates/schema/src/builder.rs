//! A schema while it is built: the tables so far, where their rows stand in the documents, and what is still to be
//! read ([`mod@crate::build`]) or to be checked ([`mod@crate::validate`]).

use ogive_base::{BitSet, FastMap, IdVec, Symbol};
use ogive_syntax::{
    Document,
    ast::{self, DirectiveDefinition, SchemaDefinition, TypeDefinition},
};

use crate::{
    Schema, builtins,
    report::{Place, Report},
    types::*,
};

/// Most types of one schema; possible types are bitsets over them.
pub const TYPES_MAX: u32 = 1 << 16;
/// Most fields, arguments, input fields and enum values of one schema together.
pub const MEMBERS_MAX: usize = 1 << 22;
/// Most directive definitions of one schema.
pub const DIRECTIVES_MAX: usize = 1 << 14;

/// What to check while building.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildOptions {
    /// Check every type system validation rule (specification 3); off only for schemas that were checked before.
    pub validate: bool,
    /// Refuse a schema without query root.
    pub require_query: bool,
    /// Most diagnostics before giving up; default 100.
    pub errors_max: u32,
    /// Whose rules to check; default [`Edition::September2025`].
    pub edition: Edition,
    /// Whether an extension of an undefined type defines it, as in the schemas of subgraphs; default false.
    pub extensions_define: bool,
    /// Whether default values are held only against what their types could mean, in every edition: integers have any
    /// size, enum values may be strings and strings enum values, and objects, in arguments of directives too, may leave
    /// out what is required. Tools write such schemas, and gateways never coerce these values; default false.
    pub loose_values: bool,
}

/// An edition of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edition {
    /// October 2021: for schemas made by tools that do not know the rules of the next edition, which are: default
    /// values fit their types and do not need themselves; `@deprecated(reason:)` is not null; what implements a field that is not deprecated is not
    /// deprecated either; no extension adds `@oneOf`.
    October2021,
    /// September 2025.
    September2025,
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions {
            validate: true,
            require_query: true,
            errors_max: 100,
            edition: Edition::September2025,
            extensions_define: false,
            loose_values: false,
        }
    }
}

/// Applied directives of one node, to be checked when all definitions are known.
pub(crate) struct DirectiveUse {
    pub(crate) doc: u32,
    pub(crate) list: ast::List<ast::Directive>,
    pub(crate) location: DirectiveLocation,
    /// The type (or [`DirectiveUse::SCHEMA`]) whose definition and extensions share one location.
    pub(crate) owner: Option<TypeId>,
}

impl DirectiveUse {
    pub(crate) const SCHEMA: TypeId = TypeId(u32::MAX);
}

/// A default value to be checked when all input objects are known.
pub(crate) struct DefaultUse {
    pub(crate) doc: u32,
    pub(crate) input: InputId,
    pub(crate) value: ast::Value,
    pub(crate) coordinate: InputOwner,
}

/// What an input belongs to, for messages.
#[derive(Clone, Copy)]
pub(crate) enum InputOwner {
    Field(FieldId),
    InputObject(TypeId),
    Directive(DirectiveId),
}

/// A name in `implements` or a union's member list.
#[derive(Clone, Copy)]
pub(crate) struct TypeUse {
    pub(crate) by: TypeId,
    pub(crate) of: TypeId,
    pub(crate) place: Place,
}

/// The state of one build. Rows' places live beside the schema because only diagnostics need them.
pub(crate) struct Builder<'d> {
    pub(crate) docs: &'d [&'d Document],
    pub(crate) schema: Schema,
    pub(crate) report: Report,
    pub(crate) check: bool,
    pub(crate) edition: Edition,
    pub(crate) loose_values: bool,
    /// Types that lost a row to an error.
    pub(crate) incomplete: BitSet,
    /// Fields of unknown types, for the next field of that name.
    pub(crate) refused_fields: FastMap<(TypeId, Symbol), FieldId>,
    /// Arguments that directive definitions lost to an error.
    pub(crate) lost_args: Vec<(DirectiveId, Symbol)>,
    pub(crate) type_places: IdVec<TypeId, Place>,
    pub(crate) field_places: IdVec<FieldId, Place>,
    pub(crate) input_places: IdVec<InputId, Place>,
    pub(crate) directive_places: IdVec<DirectiveId, Place>,
    pub(crate) directive_uses: Vec<DirectiveUse>,
    pub(crate) default_uses: Vec<DefaultUse>,
    pub(crate) implements: Vec<TypeUse>,
    pub(crate) members: Vec<TypeUse>,
    pub(crate) root_places: [Option<Place>; 3],
    pub(crate) schema_place: Place,
    pub(crate) definitions: Vec<(u32, TypeDefinition, TypeId)>,
    pub(crate) extensions: Vec<(u32, TypeDefinition)>,
    pub(crate) directives: Vec<(u32, DirectiveDefinition, DirectiveId)>,
    pub(crate) schema_definition: Option<(u32, SchemaDefinition)>,
    pub(crate) schema_extensions: Vec<(u32, SchemaDefinition)>,
    /// Types without definition, see [`BuildOptions::extensions_define`].
    pub(crate) only_extended: BitSet,
    /// Built-in scalars and introspection types that a document repeats.
    pub(crate) redeclared: BitSet,
    pub(crate) redeclared_directives: BitSet,
    pub(crate) too_large: bool,
}

impl<'d> Builder<'d> {
    pub(crate) fn new(docs: &'d [&'d Document], options: &BuildOptions) -> Self {
        let mut schema = Schema::default();
        builtins::install(&mut schema);
        Builder {
            docs,
            type_places: schema.types.ids().map(|_| Place::BUILT_IN).collect(),
            field_places: schema.fields.ids().map(|_| Place::BUILT_IN).collect(),
            input_places: schema.inputs.ids().map(|_| Place::BUILT_IN).collect(),
            directive_places: schema
                .directive_defs
                .ids()
                .map(|_| Place::BUILT_IN)
                .collect(),
            schema,
            report: Report::new(
                docs.iter().map(|d| d.source_id()).collect(),
                options.errors_max,
            ),
            check: options.validate,
            edition: options.edition,
            loose_values: options.loose_values,
            incomplete: BitSet::new(),
            refused_fields: FastMap::default(),
            lost_args: Vec::new(),
            directive_uses: Vec::new(),
            default_uses: Vec::new(),
            implements: Vec::new(),
            members: Vec::new(),
            root_places: [None; 3],
            schema_place: Place::BUILT_IN,
            definitions: Vec::new(),
            extensions: Vec::new(),
            directives: Vec::new(),
            schema_definition: None,
            schema_extensions: Vec::new(),
            only_extended: BitSet::new(),
            redeclared: BitSet::new(),
            redeclared_directives: BitSet::new(),
            too_large: false,
        }
    }
}
