//! The compiled query graph: who resolves what, and by which keys one can enter.
//!
//! Rows are indexed by the supergraph schema's [`TypeId`] and [`FieldId`]. There are no edges between subgraphs:
//! entry into subgraph S at an object of type T is possible if *some* key alternative of (T, S) is known, so memory is
//! O(types x subgraphs x keys). Sets of subgraphs are bitsets over [`SubgraphId`]. Field sets (`@key`, `@requires`,
//! `@provides`) are parsed, resolved against the supergraph schema and hash-consed.
//!
//! Invariants: only object and interface types have field rows; a field row's `sources` are sorted by subgraph.

use ogive_base::{BitSet, FastMap, IdVec, define_id};
use ogive_schema::{ConstValue, FieldId, InputId, Type, TypeId};

use crate::{SubgraphId, costs::Costs};

define_id! {
    /// A parsed field set.
    pub struct FieldSetId;
}

/// The compiled rows.
#[derive(Clone, Debug, Default)]
pub struct QueryGraph {
    /// One row per type of the supergraph schema.
    pub types: IdVec<TypeId, TypeRow>,
    /// One row per field of the supergraph schema.
    pub fields: IdVec<FieldId, FieldRow>,
    /// Hash-consed field sets.
    pub field_sets: IdVec<FieldSetId, FieldSet>,
    /// Contexts by name, with the types that set them (`@context`).
    pub contexts: Vec<(Box<str>, Vec<TypeId>)>,
    /// Labels of progressive overrides, by index.
    pub override_labels: Vec<Box<str>>,
    /// Subgraphs that define an argument or input field, where not all that define its parent do; absent = all.
    pub partial_inputs: FastMap<InputId, BitSet>,
    /// The type of an input field in a subgraph, where it differs from the supergraph's.
    pub input_types: FastMap<(InputId, SubgraphId), Type>,
    /// Lengths of lists and costs of fields, as directives say.
    pub costs: Costs,
}

/// Where one type lives.
#[derive(Clone, Debug, Default)]
pub struct TypeRow {
    /// Subgraphs that define the type.
    pub subgraphs: BitSet,
    /// Details per defining subgraph, sorted by subgraph.
    pub sources: Vec<TypeSource>,
    /// Whether any subgraph has a resolvable key for it.
    pub is_entity: bool,
}

/// One type in one subgraph.
#[derive(Clone, Debug)]
pub struct TypeSource {
    /// The subgraph.
    pub subgraph: SubgraphId,
    /// Keys in order of definition.
    pub keys: Vec<Key>,
    /// Whether the subgraph declares the (interface) type as `@interfaceObject`.
    pub interface_object: bool,
    /// Federation v1 `extend type` / `@extends`.
    pub extension: bool,
    /// Abstract types: the object types (`TypeId.0`) that a value of this type can have in this subgraph, from
    /// `@join__implements`, `@join__unionMember`. Objects: the type itself.
    pub possible: BitSet,
    /// Enum types: values (`EnumValueId.0`) this subgraph defines. Empty otherwise.
    pub enum_values: BitSet,
}

/// One `@key` of a type in one subgraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its members.
    pub fields: FieldSetId,
    /// Whether the subgraph can be entered by it.
    pub resolvable: bool,
}

/// Who resolves one field.
#[derive(Clone, Debug, Default)]
pub struct FieldRow {
    /// Subgraphs that can resolve it on any object they have, without `@requires` or `@fromContext`: not external (unless part of a
    /// key of an extension), not overridden. Progressive overrides count as off; see [`Self::resolvers_with`].
    pub resolvers: BitSet,
    /// Details per subgraph that mentions the field, sorted by subgraph.
    pub sources: Vec<FieldSource>,
}

/// One field in one subgraph.
#[derive(Clone, Debug)]
pub struct FieldSource {
    /// The subgraph.
    pub subgraph: SubgraphId,
    /// `@external`: resolvable only inside a matching `@provides`, or as part of a key of an extension.
    pub external: bool,
    /// `@requires` selection.
    pub requires: Option<FieldSetId>,
    /// `@provides` selection on the value.
    pub provides: Option<FieldSetId>,
    /// The type in this subgraph, where it differs from the supergraph's.
    pub ty: Option<Type>,
    /// Wholly overridden by another subgraph, kept for its keys and requires only (`usedOverridden`).
    pub used_overridden: bool,
    /// `@override(from:, label:)`: the subgraph it takes the field from, and the label index if progressive.
    pub overrides: Option<(SubgraphId, Option<u32>)>,
    /// Arguments filled from `@fromContext`, as written; empty for most fields.
    pub context_args: Vec<ContextArg>,
    /// The subgraph knows the parent only through this interface, which it declares as `@interfaceObject`: it must
    /// be entered by a key of the interface (the parent has no row there), and answers for the interface's name.
    pub via_interface_object: Option<TypeId>,
}

/// `@join__field(contextArguments:)` entry.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextArg {
    /// Context name as in `@join__context`.
    pub context: Box<str>,
    /// Argument name in the subgraph.
    pub name: Box<str>,
    /// Argument type as written.
    pub ty: Box<str>,
    /// Selection as written.
    pub selection: Box<str>,
    /// The types that set the context, and what is selected on each.
    pub selections: Vec<(TypeId, FieldSetId)>,
}

/// A selection over the supergraph schema, as in `"id organization { id }"`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FieldSet {
    /// Members in order.
    pub items: Vec<FieldSetItem>,
}

/// One member of a field set.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldSetItem {
    /// The field; `None` for `__typename`.
    pub field: Option<FieldId>,
    /// Concrete parent types (`TypeId.0`) it applies to; all possible types of the parent if no type condition.
    pub types: BitSet,
    /// Static arguments in definition order.
    pub args: Vec<(Box<str>, ConstValue)>,
    /// Sub-selection of a composite field.
    pub selection: Option<FieldSetId>,
}

impl FieldRow {
    /// [`resolvers`](Self::resolvers) when the override labels in `on` (indexes) are switched on: the overriding
    /// subgraph resolves instead of the overridden one.
    pub fn resolvers_with(&self, on: &BitSet) -> BitSet {
        let mut resolvers = self.resolvers.clone();
        for source in &self.sources {
            if let Some((from, Some(label))) = source.overrides
                && on.contains(label)
            {
                resolvers.remove(from.0);
                if !source.external
                    && source.requires.is_none()
                    && source.context_args.is_empty()
                    && !source.used_overridden
                {
                    resolvers.insert(source.subgraph.0);
                }
            }
        }
        resolvers
    }
}

impl FieldRow {
    /// Whether a source of this field counts when the override labels in `on` are switched on: an overriding one does
    /// if its label is on, an overridden one unless it is.
    pub fn is_active(&self, source: &FieldSource, on: &BitSet) -> bool {
        if source.used_overridden {
            return false;
        }
        if let Some((_, Some(label))) = source.overrides
            && !on.contains(label)
        {
            return false;
        }
        !self.sources.iter().any(|other| {
            matches!(other.overrides, Some((from, Some(label)))
                if from == source.subgraph && on.contains(label))
        })
    }
}

impl QueryGraph {
    /// The type in a subgraph, if that subgraph defines it.
    pub fn type_source(&self, ty: TypeId, subgraph: SubgraphId) -> Option<&TypeSource> {
        let sources = &self.types[ty].sources;
        sources
            .binary_search_by_key(&subgraph, |s| s.subgraph)
            .ok()
            .map(|i| &sources[i])
    }
    /// The field in a subgraph, if that subgraph mentions it.
    pub fn field_source(&self, field: FieldId, subgraph: SubgraphId) -> Option<&FieldSource> {
        let sources = &self.fields[field].sources;
        sources
            .binary_search_by_key(&subgraph, |s| s.subgraph)
            .ok()
            .map(|i| &sources[i])
    }
}
