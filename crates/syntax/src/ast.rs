//! The arena AST of one source text.
//!
//! Nodes are small and flat. Children of one parent lie next to each other in the arena of their kind and
//! are named by a [`List`]; text is never copied, a [`Name`] is a place in the source.
//! Read children with `&doc[list]`, text with `doc.name(n)` or `doc.text(span)`.
//!
//! Invariants: every list and span of a node belongs to the document that holds it; children are stored
//! before their parent is; nothing here recurses, so depth costs no stack.

use std::{fmt, marker::PhantomData, num::NonZeroU32, ops::Index, sync::Arc};

use ogive_base::{SourceId, Span};

/// A GraphQL `Name` token: where it stands in the source.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name {
    start: u32,
    len: NonZeroU32,
}

impl Name {
    /// The name at `start` of `len` bytes; `None` if `len` is 0.
    pub fn new(start: u32, len: u32) -> Option<Name> {
        Some(Name {
            start,
            len: NonZeroU32::new(len)?,
        })
    }
    /// Its place.
    pub fn span(self) -> Span {
        Span::new(self.start, self.start + self.len.get())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({:?})", self.span())
    }
}

/// A run of neighbouring `T`s in the arena of their kind.
pub struct List<T> {
    pub(crate) start: u32,
    pub(crate) len: u32,
    kind: PhantomData<fn() -> T>,
}

impl<T> List<T> {
    /// No children.
    pub const EMPTY: Self = List {
        start: 0,
        len: 0,
        kind: PhantomData,
    };
    pub(crate) fn new(start: usize, len: usize) -> Self {
        List {
            start: start as u32,
            len: len as u32,
            kind: PhantomData,
        }
    }
    /// Number of children.
    pub fn len(self) -> usize {
        self.len as usize
    }
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for List<T> {}
impl<T> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        self.start == other.start && self.len == other.len
    }
}
impl<T> Eq for List<T> {}
impl<T> std::hash::Hash for List<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.start, self.len).hash(state);
    }
}
impl<T> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}; {}]", self.start, self.len)
    }
}
impl<T> Default for List<T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// One parsed source text.
#[derive(Clone, Debug, Default)]
pub struct Document {
    pub(crate) source: Arc<str>,
    pub(crate) source_id: Option<SourceId>,
    pub(crate) tokens: u32,
    /// Top-level definitions in source order.
    pub definitions: Vec<Definition>,
    pub(crate) variables: Vec<VariableDefinition>,
    pub(crate) selections: Vec<Selection>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) directives: Vec<Directive>,
    pub(crate) values: Vec<Value>,
    pub(crate) object_fields: Vec<ObjectField>,
    pub(crate) names: Vec<Name>,
    pub(crate) root_types: Vec<RootTypeDefinition>,
    pub(crate) fields: Vec<FieldDefinition>,
    pub(crate) inputs: Vec<InputValueDefinition>,
    pub(crate) enum_values: Vec<EnumValueDefinition>,
}

impl Document {
    /// The whole source text.
    pub fn source(&self) -> &str {
        &self.source
    }
    /// The whole source text, shared.
    pub fn source_arc(&self) -> &Arc<str> {
        &self.source
    }
    /// Which source diagnostics of this document point into (`SourceId(0)` if never set).
    pub fn source_id(&self) -> SourceId {
        self.source_id.unwrap_or(SourceId(0))
    }
    /// The text of a name.
    #[inline]
    pub fn name(&self, name: Name) -> &str {
        self.text(name.span())
    }
    /// The source text at `span`.
    #[inline]
    pub fn text(&self, span: Span) -> &str {
        &self.source[span.range()]
    }
    /// The value of a string: quotes gone, escapes resolved, block-string indentation removed
    /// (specification 2.9.4, `BlockStringValue`). Borrows when the raw text is the value.
    pub fn string_value(&self, string: StringValue) -> std::borrow::Cow<'_, str> {
        crate::string_value::string_value(self.text(string.span), string.block)
    }
    /// Number of lexical tokens.
    pub fn token_count(&self) -> u32 {
        self.tokens
    }
    /// Number of directives, wherever they are.
    pub fn directive_count(&self) -> usize {
        self.directives.len()
    }
    /// Number of selections, wherever they are: fields, spreads and inline fragments.
    pub fn selection_count(&self) -> usize {
        self.selections.len()
    }
    /// All operations in source order.
    pub fn operations(&self) -> impl Iterator<Item = &OperationDefinition> {
        self.definitions.iter().filter_map(|d| match d {
            Definition::Operation(op) => Some(op),
            _ => None,
        })
    }
    /// All fragment definitions in source order.
    pub fn fragments(&self) -> impl Iterator<Item = &FragmentDefinition> {
        self.definitions.iter().filter_map(|d| match d {
            Definition::Fragment(f) => Some(f),
            _ => None,
        })
    }
}

macro_rules! arena {
    ($($node:ty => $field:ident),* $(,)?) => {$(
        impl Index<List<$node>> for Document {
            type Output = [$node];
            #[inline]
            fn index(&self, list: List<$node>) -> &[$node] {
                &self.$field[list.start as usize..(list.start + list.len) as usize]
            }
        }
    )*};
}

arena! {
    VariableDefinition => variables,
    Selection => selections,
    Argument => arguments,
    Directive => directives,
    Value => values,
    ObjectField => object_fields,
    Name => names,
    RootTypeDefinition => root_types,
    FieldDefinition => fields,
    InputValueDefinition => inputs,
    EnumValueDefinition => enum_values,
}

/// A string literal: its whole token, quotes included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StringValue {
    /// The token, quotes included.
    pub span: Span,
    /// Whether it is a `"""` block string.
    pub block: bool,
}

/// The three kinds of operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OperationKind {
    /// `query`
    Query,
    /// `mutation`
    Mutation,
    /// `subscription`
    Subscription,
}

impl OperationKind {
    /// The keyword.
    pub fn as_str(self) -> &'static str {
        match self {
            OperationKind::Query => "query",
            OperationKind::Mutation => "mutation",
            OperationKind::Subscription => "subscription",
        }
    }
}

/// One top-level definition or extension.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Definition {
    /// `query`, `mutation`, `subscription` or `{ .. }`
    Operation(OperationDefinition),
    /// `fragment F on T { .. }`
    Fragment(FragmentDefinition),
    /// `schema { .. }`, `extend schema`
    Schema(SchemaDefinition),
    /// `directive @d on ..`
    Directive(DirectiveDefinition),
    /// A type definition or extension.
    Type(TypeDefinition),
}

impl Definition {
    /// The whole definition, description included.
    pub fn span(&self) -> Span {
        match self {
            Definition::Operation(d) => d.span,
            Definition::Fragment(d) => d.span,
            Definition::Schema(d) => d.span,
            Definition::Directive(d) => d.span,
            Definition::Type(d) => d.span,
        }
    }
}

/// An operation definition (specification 2.3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OperationDefinition {
    /// The whole definition.
    pub span: Span,
    /// `"..." query` (September 2025).
    pub description: Option<StringValue>,
    /// Query, mutation or subscription.
    pub kind: OperationKind,
    /// Its name, if any.
    pub name: Option<Name>,
    /// `($v: T = d)`
    pub variables: List<VariableDefinition>,
    /// Directives on the operation.
    pub directives: List<Directive>,
    /// The root selection set.
    pub selection_set: SelectionSet,
    /// Whether it was written in the `{ .. }` short form.
    pub shorthand: bool,
}

/// `fragment F on T { .. }` (specification 2.8).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FragmentDefinition {
    /// The whole definition.
    pub span: Span,
    /// `"..." fragment` (September 2025).
    pub description: Option<StringValue>,
    /// The fragment's name.
    pub name: Name,
    /// The type condition.
    pub type_condition: Name,
    /// Directives.
    pub directives: List<Directive>,
    /// What it selects.
    pub selection_set: SelectionSet,
}

/// `{ .. }` with its braces.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SelectionSet {
    /// From `{` to `}`.
    pub span: Span,
    /// The selections.
    pub items: List<Selection>,
}

/// One selection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Selection {
    /// `alias: name(args) @d { .. }`
    Field(Field),
    /// `...Name @d`
    Spread(FragmentSpread),
    /// `... on T @d { .. }`
    Inline(InlineFragment),
}

impl Selection {
    /// The whole selection.
    pub fn span(&self) -> Span {
        match self {
            Selection::Field(s) => s.span,
            Selection::Spread(s) => s.span,
            Selection::Inline(s) => s.span,
        }
    }
}

/// A field selection (specification 2.5).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Field {
    /// The whole selection.
    pub span: Span,
    /// `alias:`
    pub alias: Option<Name>,
    /// The field's name.
    pub name: Name,
    /// Arguments.
    pub arguments: List<Argument>,
    /// Directives.
    pub directives: List<Directive>,
    /// Sub-selections, if a `{` was written.
    pub selection_set: Option<SelectionSet>,
}

impl Field {
    /// The alias, else the name.
    pub fn response_key(&self) -> Name {
        self.alias.unwrap_or(self.name)
    }
}

/// `...Name` (specification 2.8).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FragmentSpread {
    /// The whole selection.
    pub span: Span,
    /// The fragment's name.
    pub name: Name,
    /// Directives.
    pub directives: List<Directive>,
}

/// `... on T { .. }` (specification 2.8.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct InlineFragment {
    /// The whole selection.
    pub span: Span,
    /// The type condition, if any.
    pub type_condition: Option<Name>,
    /// Directives.
    pub directives: List<Directive>,
    /// What it selects.
    pub selection_set: SelectionSet,
}

/// `name: value`
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Argument {
    /// The whole argument.
    pub span: Span,
    /// Its name.
    pub name: Name,
    /// Its value.
    pub value: Value,
}

/// `@name(args)`
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Directive {
    /// From `@` to the end of the arguments.
    pub span: Span,
    /// Its name without `@`.
    pub name: Name,
    /// Arguments.
    pub arguments: List<Argument>,
}

/// A value literal or variable (specification 2.9).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Value {
    /// The whole value.
    pub span: Span,
    /// What it is.
    pub kind: ValueKind,
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ValueKind {
    /// `$name`; the name without `$`.
    Variable(Name),
    /// An integer; its text is the value's span.
    Int,
    /// A float; its text is the value's span.
    Float,
    /// A string; see [`Document::string_value`].
    String {
        /// Whether it is a block string.
        block: bool,
    },
    /// `true` or `false`
    Boolean(bool),
    /// `null`
    Null,
    /// An enum value; its text is the value's span.
    Enum,
    /// `[..]`
    List(List<Value>),
    /// `{..}`
    Object(List<ObjectField>),
}

impl Value {
    /// The string literal this value is, if it is one.
    pub fn as_string(&self) -> Option<StringValue> {
        match self.kind {
            ValueKind::String { block } => Some(StringValue {
                span: self.span,
                block,
            }),
            _ => None,
        }
    }
}

/// `name: value` in an input object literal.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ObjectField {
    /// The whole field.
    pub span: Span,
    /// Its name.
    pub name: Name,
    /// Its value.
    pub value: Value,
}

/// `$name: Type = default @d`
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VariableDefinition {
    /// The whole definition.
    pub span: Span,
    /// `"..." $v` (September 2025).
    pub description: Option<StringValue>,
    /// Its name without `$`.
    pub name: Name,
    /// Its type.
    pub ty: TypeRef,
    /// Its default.
    pub default: Option<Value>,
    /// Directives.
    pub directives: List<Directive>,
}

/// A type reference: a name under lists and non-nulls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypeRef {
    /// The whole reference.
    pub span: Span,
    /// The named type at the bottom.
    pub name: Name,
    /// The lists and non-nulls around it.
    pub wrapping: Wrapping,
}

/// The lists and non-null marks around a named type, packed: at most [`Wrapping::LISTS_MAX`] lists deep.
///
/// Layers count from the inside: layer 0 is the named type itself, layer `n` the `n`th list around it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Wrapping {
    lists: u8,
    /// Bit `n`: layer `n` is non-null.
    non_null: u16,
}

impl Wrapping {
    /// Deepest list nesting of a type reference.
    pub const LISTS_MAX: u8 = 15;
    /// A nullable named type.
    pub const NULLABLE: Wrapping = Wrapping {
        lists: 0,
        non_null: 0,
    };
    /// A non-null named type.
    pub const NON_NULL: Wrapping = Wrapping {
        lists: 0,
        non_null: 1,
    };

    /// Number of lists around the named type.
    pub fn lists(self) -> u8 {
        self.lists
    }
    /// Whether the outermost layer is a list.
    pub fn is_list(self) -> bool {
        self.lists > 0
    }
    /// Whether the outermost layer is non-null.
    pub fn is_non_null(self) -> bool {
        self.layer_is_non_null(self.lists)
    }
    /// Whether layer `layer` (0 = the named type) is non-null.
    pub fn layer_is_non_null(self, layer: u8) -> bool {
        self.non_null & (1 << layer) != 0
    }
    /// Whether null for the innermost value is null for the whole.
    pub fn is_solid(self) -> bool {
        (0..=self.lists).all(|layer| self.layer_is_non_null(layer))
    }
    /// The same type with a nullable outermost layer.
    #[must_use]
    pub fn nullable(self) -> Wrapping {
        Wrapping {
            lists: self.lists,
            non_null: self.non_null & !(1 << self.lists),
        }
    }
    /// The same type with a non-null outermost layer.
    #[must_use]
    pub fn non_null(self) -> Wrapping {
        Wrapping {
            lists: self.lists,
            non_null: self.non_null | 1 << self.lists,
        }
    }
    /// A nullable list of this; `None` beyond [`LISTS_MAX`](Self::LISTS_MAX).
    pub fn list_of(self) -> Option<Wrapping> {
        (self.lists < Self::LISTS_MAX).then_some(Wrapping {
            lists: self.lists + 1,
            non_null: self.non_null,
        })
    }
    /// The item type of this list; `None` if it is no list.
    pub fn item(self) -> Option<Wrapping> {
        let lists = self.lists.checked_sub(1)?;
        Some(Wrapping {
            lists,
            non_null: self.non_null & ((1 << (lists + 1)) - 1),
        })
    }
    /// Writes `name` inside its wrapping, e.g. `[Int!]!`.
    pub fn write(self, name: &str, out: &mut impl fmt::Write) -> fmt::Result {
        for _ in 0..self.lists {
            out.write_char('[')?;
        }
        out.write_str(name)?;
        for layer in 0..=self.lists {
            if layer > 0 {
                out.write_char(']')?;
            }
            if self.layer_is_non_null(layer) {
                out.write_char('!')?;
            }
        }
        Ok(())
    }
    /// `name` inside its wrapping as a string.
    pub fn display(self, name: &str) -> String {
        let mut out = String::new();
        let _ = self.write(name, &mut out);
        out
    }
}

impl fmt::Debug for Wrapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write("_", f)
    }
}

/// `schema { query: Q }` or `extend schema` (specification 3.3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SchemaDefinition {
    /// The whole definition.
    pub span: Span,
    /// Whether it starts with `extend`.
    pub extend: bool,
    /// Description.
    pub description: Option<StringValue>,
    /// Directives.
    pub directives: List<Directive>,
    /// Root operation types.
    pub root_types: List<RootTypeDefinition>,
}

/// `query: Q`
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RootTypeDefinition {
    /// The whole entry.
    pub span: Span,
    /// Which operation.
    pub kind: OperationKind,
    /// The root type.
    pub ty: Name,
}

/// `directive @d(args) repeatable on LOCATIONS` (specification 3.13).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DirectiveDefinition {
    /// The whole definition.
    pub span: Span,
    /// Description.
    pub description: Option<StringValue>,
    /// Its name without `@`.
    pub name: Name,
    /// Arguments.
    pub arguments: List<InputValueDefinition>,
    /// Whether it may be repeated.
    pub repeatable: bool,
    /// Where it may stand, as written; unknown locations are reported by the parser.
    pub locations: List<Name>,
}

/// A type definition or extension of any kind (specification 3.4 to 3.10).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TypeDefinition {
    /// The whole definition.
    pub span: Span,
    /// Whether it starts with `extend`.
    pub extend: bool,
    /// Description.
    pub description: Option<StringValue>,
    /// The type's name.
    pub name: Name,
    /// Directives.
    pub directives: List<Directive>,
    /// What kind of type, with its members.
    pub kind: TypeDefinitionKind,
}

/// The part of a type definition that differs by kind.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TypeDefinitionKind {
    /// `scalar S`
    Scalar,
    /// `type T implements I & J { .. }`
    Object {
        /// Implemented interfaces.
        interfaces: List<Name>,
        /// Fields.
        fields: List<FieldDefinition>,
    },
    /// `interface I implements J { .. }`
    Interface {
        /// Implemented interfaces.
        interfaces: List<Name>,
        /// Fields.
        fields: List<FieldDefinition>,
    },
    /// `union U = A | B`
    Union {
        /// Member types.
        members: List<Name>,
    },
    /// `enum E { .. }`
    Enum {
        /// Values.
        values: List<EnumValueDefinition>,
    },
    /// `input I { .. }`
    InputObject {
        /// Input fields.
        fields: List<InputValueDefinition>,
    },
}

/// A field definition (specification 3.6).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FieldDefinition {
    /// The whole definition.
    pub span: Span,
    /// Description.
    pub description: Option<StringValue>,
    /// Its name.
    pub name: Name,
    /// Arguments.
    pub arguments: List<InputValueDefinition>,
    /// Its type.
    pub ty: TypeRef,
    /// Directives.
    pub directives: List<Directive>,
}

/// An argument or input field definition.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct InputValueDefinition {
    /// The whole definition.
    pub span: Span,
    /// Description.
    pub description: Option<StringValue>,
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeRef,
    /// Default value.
    pub default: Option<Value>,
    /// Directives.
    pub directives: List<Directive>,
}

/// An enum value definition (specification 3.9).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EnumValueDefinition {
    /// The whole definition.
    pub span: Span,
    /// Description.
    pub description: Option<StringValue>,
    /// Its name.
    pub name: Name,
    /// Directives.
    pub directives: List<Directive>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_prints_and_peels_from_the_outside() {
        let ty = Wrapping::NON_NULL
            .list_of()
            .unwrap()
            .list_of()
            .unwrap()
            .non_null();
        assert_eq!(ty.display("Int"), "[[Int!]]!");
        assert!(ty.is_non_null() && ty.is_list());
        let item = ty.item().unwrap();
        assert_eq!(item.display("Int"), "[Int!]");
        assert_eq!(item.non_null().display("Int"), "[Int!]!");
        assert_eq!(item.item().unwrap().display("Int"), "Int!");
        assert_eq!(item.item().unwrap().item(), None);
        assert_eq!(ty.nullable().display("Int"), "[[Int!]]");
    }
}
