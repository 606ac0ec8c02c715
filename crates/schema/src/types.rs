//! The tables of a schema.
//!
//! Invariants: ids index the arenas of the schema that made them. A *view* of a schema (for example the API
//! schema of a supergraph) is a clone in which rows are withheld from the lists and name maps but keep their
//! ids, so ids of a view are valid in the original. Iterate over lists ([`Schema::types`], [`TypeDef::fields`], ...),
//! never over arenas, unless withheld rows are wanted.

use ogive_base::{BitSet, FastMap, IdVec, Interner, Span, Symbol, define_id};
use ogive_syntax::ast::{OperationKind, Wrapping};

define_id! {
    /// A named type.
    pub struct TypeId;
}
define_id! {
    /// A field of one object or interface type.
    pub struct FieldId;
}
define_id! {
    /// An argument of a field or directive, or an input object's field.
    pub struct InputId;
}
define_id! {
    /// A value of an enum type.
    pub struct EnumValueId;
}
define_id! {
    /// A directive definition.
    pub struct DirectiveId;
}

/// A validated type system.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// Every name of the type system.
    pub names: Interner,
    /// Description of the schema definition.
    pub description: Option<Box<str>>,
    /// Directives applied to the schema definition and its extensions, in order.
    pub directives: Vec<AppliedDirective>,
    /// Root operation types: query, mutation, subscription.
    pub roots: [Option<TypeId>; 3],
    /// Visible types: specified scalars and introspection types first, then definition order.
    pub type_list: Vec<TypeId>,
    /// Visible directive definitions: specified ones first, then definition order.
    pub directive_list: Vec<DirectiveId>,
    /// Arena of types.
    pub types: IdVec<TypeId, TypeDef>,
    /// Arena of fields.
    pub fields: IdVec<FieldId, FieldDef>,
    /// Arena of arguments and input fields.
    pub inputs: IdVec<InputId, InputDef>,
    /// Arena of enum values.
    pub enum_values: IdVec<EnumValueId, EnumValueDef>,
    /// Arena of directive definitions.
    pub directive_defs: IdVec<DirectiveId, DirectiveDef>,
    /// Visible types by name.
    pub types_by_name: FastMap<Symbol, TypeId>,
    /// Visible fields by parent type and name.
    pub fields_by_name: FastMap<(TypeId, Symbol), FieldId>,
    /// Visible directive definitions by name.
    pub directives_by_name: FastMap<Symbol, DirectiveId>,
}

/// What kind of type it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TypeKind {
    /// `scalar`
    Scalar,
    /// `type`
    Object,
    /// `interface`
    Interface,
    /// `union`
    Union,
    /// `enum`
    Enum,
    /// `input`
    InputObject,
}

impl TypeKind {
    /// Object, interface or union: needs a selection set.
    pub fn is_composite(self) -> bool {
        matches!(
            self,
            TypeKind::Object | TypeKind::Interface | TypeKind::Union
        )
    }
    /// Interface or union.
    pub fn is_abstract(self) -> bool {
        matches!(self, TypeKind::Interface | TypeKind::Union)
    }
    /// Scalar or enum.
    pub fn is_leaf(self) -> bool {
        matches!(self, TypeKind::Scalar | TypeKind::Enum)
    }
    /// Scalar, enum or input object.
    pub fn is_input(self) -> bool {
        matches!(
            self,
            TypeKind::Scalar | TypeKind::Enum | TypeKind::InputObject
        )
    }
}

/// One named type.
#[derive(Clone, Debug)]
pub struct TypeDef {
    /// Its name.
    pub name: Symbol,
    /// Its kind.
    pub kind: TypeKind,
    /// Description.
    pub description: Option<Box<str>>,
    /// Where its name is defined; empty for built-in types.
    pub span: Span,
    /// Directives applied to definition and extensions, in order.
    pub directives: Vec<AppliedDirective>,
    /// Visible fields of an object or interface, in definition order.
    pub fields: Vec<FieldId>,
    /// Visible input fields.
    pub input_fields: Vec<InputId>,
    /// Visible enum values.
    pub enum_values: Vec<EnumValueId>,
    /// Interfaces an object or interface declares (transitive ones must be declared too), in order.
    pub interfaces: Vec<TypeId>,
    /// Member types of a union, in order.
    pub members: Vec<TypeId>,
    /// `GetPossibleTypes` (specification 5.5.2.3): object types (as `TypeId.0`) a value of this composite type can
    /// have; the type itself for objects; empty for others.
    pub possible: BitSet,
    /// Whether an input object is `@oneOf`.
    pub one_of: bool,
    /// `@specifiedBy(url:)` of a scalar.
    pub specified_by: Option<Box<str>>,
    /// Specified scalar or introspection type.
    pub built_in: bool,
}

/// A reference to a type under lists and non-nulls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Type {
    /// The named type.
    pub id: TypeId,
    /// Lists and non-nulls around it.
    pub wrapping: Wrapping,
}

/// One field of an object or interface.
#[derive(Clone, Debug)]
pub struct FieldDef {
    /// Its name.
    pub name: Symbol,
    /// The type that has it.
    pub parent: TypeId,
    /// What it returns.
    pub ty: Type,
    /// Visible arguments.
    pub args: Vec<InputId>,
    /// Description.
    pub description: Option<Box<str>>,
    /// Where its name is defined.
    pub span: Span,
    /// Applied directives.
    pub directives: Vec<AppliedDirective>,
    /// Reason of `@deprecated`, if deprecated.
    pub deprecated: Option<Box<str>>,
}

/// One argument or input field.
#[derive(Clone, Debug)]
pub struct InputDef {
    /// Its name.
    pub name: Symbol,
    /// Its type.
    pub ty: Type,
    /// Its default value.
    pub default: Option<ConstValue>,
    /// Description.
    pub description: Option<Box<str>>,
    /// Where its name is defined.
    pub span: Span,
    /// Applied directives.
    pub directives: Vec<AppliedDirective>,
    /// Reason of `@deprecated`, if deprecated.
    pub deprecated: Option<Box<str>>,
}

impl InputDef {
    /// Non-null without default (specification 5.4.3).
    pub fn is_required(&self) -> bool {
        self.ty.wrapping.is_non_null() && self.default.is_none()
    }
}

/// One value of an enum.
#[derive(Clone, Debug)]
pub struct EnumValueDef {
    /// Its name.
    pub name: Symbol,
    /// The enum that has it.
    pub parent: TypeId,
    /// Description.
    pub description: Option<Box<str>>,
    /// Where its name is defined.
    pub span: Span,
    /// Applied directives.
    pub directives: Vec<AppliedDirective>,
    /// Reason of `@deprecated`, if deprecated.
    pub deprecated: Option<Box<str>>,
}

/// One directive definition.
#[derive(Clone, Debug)]
pub struct DirectiveDef {
    /// Its name without `@`.
    pub name: Symbol,
    /// Arguments.
    pub args: Vec<InputId>,
    /// Where it may stand, in definition order.
    pub locations: Vec<DirectiveLocation>,
    /// Whether it may be repeated at one place.
    pub repeatable: bool,
    /// Description.
    pub description: Option<Box<str>>,
    /// Where its name is defined; empty for built-in ones.
    pub span: Span,
    /// Specified by GraphQL itself.
    pub built_in: bool,
}

/// A directive applied somewhere in the type system.
#[derive(Clone, PartialEq, Debug)]
pub struct AppliedDirective {
    /// Its name without `@`.
    pub name: Symbol,
    /// Arguments as written; defaults are not filled in.
    pub args: Vec<(Symbol, ConstValue)>,
    /// Where it is applied.
    pub span: Span,
}

impl AppliedDirective {
    /// The value written for argument `name`.
    pub fn arg(&self, name: Symbol) -> Option<&ConstValue> {
        self.args.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }
}

/// A value without variables. Nesting is bounded by the parser's depth limit.
#[derive(Clone, PartialEq, Debug)]
pub enum ConstValue {
    /// `null`
    Null,
    /// A boolean.
    Boolean(bool),
    /// An integer, as written.
    Int(Box<str>),
    /// A float, as written.
    Float(Box<str>),
    /// A string's value.
    String(Box<str>),
    /// An enum value.
    Enum(Box<str>),
    /// A list.
    List(Vec<ConstValue>),
    /// An input object, fields as written.
    Object(Vec<(Box<str>, ConstValue)>),
}

impl ConstValue {
    /// The string value, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            ConstValue::String(s) => Some(s),
            _ => None,
        }
    }
    /// The boolean value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            ConstValue::Boolean(b) => Some(*b),
            _ => None,
        }
    }
}

/// Where a directive may stand (specification 3.13).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
#[expect(missing_docs, reason = "the specification's own names")]
pub enum DirectiveLocation {
    Query,
    Mutation,
    Subscription,
    Field,
    FragmentDefinition,
    FragmentSpread,
    InlineFragment,
    VariableDefinition,
    Schema,
    Scalar,
    Object,
    FieldDefinition,
    ArgumentDefinition,
    Interface,
    Union,
    Enum,
    EnumValue,
    InputObject,
    InputFieldDefinition,
}

impl DirectiveLocation {
    const NAMES: [(&'static str, DirectiveLocation); 19] = [
        ("QUERY", DirectiveLocation::Query),
        ("MUTATION", DirectiveLocation::Mutation),
        ("SUBSCRIPTION", DirectiveLocation::Subscription),
        ("FIELD", DirectiveLocation::Field),
        ("FRAGMENT_DEFINITION", DirectiveLocation::FragmentDefinition),
        ("FRAGMENT_SPREAD", DirectiveLocation::FragmentSpread),
        ("INLINE_FRAGMENT", DirectiveLocation::InlineFragment),
        ("VARIABLE_DEFINITION", DirectiveLocation::VariableDefinition),
        ("SCHEMA", DirectiveLocation::Schema),
        ("SCALAR", DirectiveLocation::Scalar),
        ("OBJECT", DirectiveLocation::Object),
        ("FIELD_DEFINITION", DirectiveLocation::FieldDefinition),
        ("ARGUMENT_DEFINITION", DirectiveLocation::ArgumentDefinition),
        ("INTERFACE", DirectiveLocation::Interface),
        ("UNION", DirectiveLocation::Union),
        ("ENUM", DirectiveLocation::Enum),
        ("ENUM_VALUE", DirectiveLocation::EnumValue),
        ("INPUT_OBJECT", DirectiveLocation::InputObject),
        (
            "INPUT_FIELD_DEFINITION",
            DirectiveLocation::InputFieldDefinition,
        ),
    ];
    /// The specification's name.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
    /// Whether it is one of operations, not of a type system.
    pub fn is_executable(self) -> bool {
        self as usize <= DirectiveLocation::VariableDefinition as usize
    }
    /// The location of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, l)| *l)
    }
}

impl Schema {
    /// Text of a name.
    pub fn name(&self, symbol: Symbol) -> &str {
        self.names.text(symbol)
    }
    /// Name of a type.
    pub fn type_name(&self, id: TypeId) -> &str {
        self.names.text(self.types[id].name)
    }
    /// Name of a field.
    pub fn field_name(&self, id: FieldId) -> &str {
        self.names.text(self.fields[id].name)
    }
    /// `Type.field`
    pub fn field_coordinate(&self, id: FieldId) -> String {
        // Not formatted: plans hold the coordinate of every field.
        [self.type_name(self.fields[id].parent), self.field_name(id)].join(".")
    }
    /// Visible types in order.
    pub fn types(&self) -> impl Iterator<Item = (TypeId, &TypeDef)> {
        self.type_list.iter().map(|id| (*id, &self.types[*id]))
    }
    /// The visible type of that name.
    pub fn type_by_name(&self, name: &str) -> Option<TypeId> {
        self.types_by_name.get(&self.names.get(name)?).copied()
    }
    /// The visible field of that name on an object or interface. Meta-fields (`__typename`, `__schema`, `__type`)
    /// are not rows; callers treat them by name.
    pub fn field_by_name(&self, parent: TypeId, name: &str) -> Option<FieldId> {
        self.fields_by_name
            .get(&(parent, self.names.get(name)?))
            .copied()
    }
    /// The visible input field of that name.
    pub fn input_field_by_name(&self, parent: TypeId, name: &str) -> Option<InputId> {
        let name = self.names.get(name)?;
        self.types[parent]
            .input_fields
            .iter()
            .copied()
            .find(|i| self.inputs[*i].name == name)
    }
    /// The argument of that name.
    pub fn arg_by_name(&self, args: &[InputId], name: &str) -> Option<InputId> {
        let name = self.names.get(name)?;
        args.iter().copied().find(|i| self.inputs[*i].name == name)
    }
    /// The visible enum value of that name.
    pub fn enum_value_by_name(&self, parent: TypeId, name: &str) -> Option<EnumValueId> {
        let name = self.names.get(name)?;
        self.types[parent]
            .enum_values
            .iter()
            .copied()
            .find(|v| self.enum_values[*v].name == name)
    }
    /// The visible directive definition of that name.
    pub fn directive_by_name(&self, name: &str) -> Option<DirectiveId> {
        self.directives_by_name.get(&self.names.get(name)?).copied()
    }
    /// The root type of an operation kind.
    pub fn root(&self, kind: OperationKind) -> Option<TypeId> {
        self.roots[kind as usize]
    }
    /// Whether every value of object or abstract type `sub` is one of `sup` (identity, implementation, membership).
    pub fn is_subtype(&self, sub: TypeId, sup: TypeId) -> bool {
        sub == sup
            || self.types[sub].interfaces.contains(&sup)
            || self.types[sup].members.contains(&sub)
    }
    /// A type as written, e.g. `[User!]!`.
    pub fn display_type(&self, ty: Type) -> String {
        ty.wrapping.display(self.type_name(ty.id))
    }
}
