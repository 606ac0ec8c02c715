//! A validated operation to its normal form ([`Operation`]).
//!
//! One selection set of the response at a time: its sources (a field merged from several places has several) are
//! flattened through fragments, appearances are grouped by response key, and each group is split by concrete parent
//! type only where the result differs: other sub-selections, other conditions, or another type of the concrete field
//! (null propagation follows the concrete field, specification 6.3.3). So an interface with many implementers that
//! are selected alike costs one node.
//!
//! No recursion: selection sets are a work list, fragments a frame stack. Fragment bombs meet the limits; within one
//! selection set a fragment is entered once per (type, condition).

mod arguments;
mod conditions;
mod incremental;
mod occurrences;

use ogive_base::{BitSet, Diagnostic, FastMap, FastSet, IdVec, Interner, Span, Symbol};
use ogive_failure::codes;
use ogive_schema::{FieldId, OperationKind, Schema, Type, TypeId, Wrapping, value::const_value};
use ogive_syntax::{
    Document,
    ast::{self, List, Selection},
};

use crate::{ir::*, least::Least};
use conditions::without;
use occurrences::{Entries, appearance, first_appearances};

/// Limits on the normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormaliseLimits {
    /// Most field nodes; default 50,000.
    pub fields_max: u32,
    /// Most appearances of fields looked at; default 200,000.
    pub occurrences_max: u32,
    /// Most selections looked at that are under `@skip` or `@include` with variables; default 20,000.
    pub conditional_max: u32,
    /// Deepest field nesting after fragments; default 200.
    pub depth_max: u32,
    /// Whether `@defer` and `@stream` are kept ([`Operation::deferral`]); default no: as though they were not there.
    pub deferral: bool,
}

impl Default for NormaliseLimits {
    fn default() -> Self {
        NormaliseLimits {
            fields_max: 50_000,
            occurrences_max: 200_000,
            conditional_max: 20_000,
            depth_max: 200,
            deferral: false,
        }
    }
}

/// Response keys that room is made for at once.
const NAMES: usize = 56;

/// Brings `operation` of a *validated* document into normal form. Fails only on limits
/// (`OPERATION_TOO_LARGE`, `MAX_DEPTH_LIMIT`) or on a document that validation would have refused.
pub fn normalise(
    schema: &Schema,
    document: &Document,
    operation: &ast::OperationDefinition,
    limits: &NormaliseLimits,
) -> Result<Operation, Diagnostic> {
    let root_type = schema.root(operation.kind).ok_or_else(|| {
        refused(
            document,
            operation.span,
            "the schema has no such operation type",
        )
    })?;
    let expected = document.selection_count().min(limits.fields_max as usize);
    let mut work = Work {
        schema,
        document,
        limits,
        fragments: document
            .fragments()
            .map(|f| (document.name(f.name), f))
            .collect(),
        variable_index: document[operation.variables]
            .iter()
            .enumerate()
            .map(|(i, v)| (document.name(v.name), i as u32))
            .collect(),
        root: operation.selection_set.items,
        occurrences: 0,
        conditional: 0,
        op: Operation {
            kind: operation.kind,
            name: operation.name.map(|n| document.name(n).into()),
            keys: Interner::with_capacity(expected.min(NAMES)),
            root: SelectionSetId(0),
            selection_sets: IdVec::from_vec(Vec::with_capacity(expected / 2)),
            fields: IdVec::from_vec(Vec::with_capacity(expected)),
            conditions: Conditions::default(),
            variables: Vec::new(),
            requirements: Vec::new(),
            is_restricted: false,
            deferral: Deferral::default(),
        },
        // The events of a subscription are answered whole.
        deferral: limits.deferral && operation.kind != OperationKind::Subscription,
        deferred: FastMap::default(),
        conditional_groups: FastMap::default(),
        pending: Vec::with_capacity(expected / 2),
        group_of: Vec::new(),
        groups: Vec::new(),
        frames: Vec::new(),
        found: Vec::new(),
    };
    work.variables(operation)?;
    let root = Source {
        items: operation.selection_set.items,
        clause: Clause::new(),
        defer: None,
    };
    work.selection_set(root_type, None, 0, vec![root]);
    let mut next = 0;
    while next < work.pending.len() {
        let sources = std::mem::take(&mut work.pending[next]);
        work.fill(SelectionSetId(next as u32), &sources)?;
        next += 1;
    }
    Ok(work.op)
}

/// So many fields may be made before it is looked how many there will be; more than most operations have, and made in a
/// millisecond.
const FEW_FIELDS: usize = 1_000;

/// Part of a selection set: one written selection list under a condition.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Source {
    items: List<Selection>,
    clause: Clause,
    /// The deferred fragment around it.
    defer: Option<DeferId>,
}

/// One field selection as found while flattening.
struct Found<'a> {
    field: &'a ast::Field,
    types: BitSet,
    clause: Clause,
    defer: Option<DeferId>,
}

struct Work<'a> {
    schema: &'a Schema,
    document: &'a Document,
    limits: &'a NormaliseLimits,
    fragments: FastMap<&'a str, &'a ast::FragmentDefinition>,
    variable_index: FastMap<&'a str, u32>,
    /// What the operation selects.
    root: List<Selection>,
    occurrences: u32,
    /// Selections so far that are under a condition of their own.
    conditional: u32,
    op: Operation,
    /// Whether `@defer` and `@stream` are kept.
    deferral: bool,
    /// Deferred fragments by where the directive stands, the place, and the deferred fragment around it.
    deferred: FastMap<(u32, SelectionSetId, Option<DeferId>), DeferId>,
    /// Conditional groups by the group around them and their condition.
    conditional_groups: FastMap<(Option<DeferId>, CondId), DeferId>,
    /// Sources of each selection set, by id, until it is filled.
    pending: Vec<Vec<Source>>,
    /// By response key: the last selection set that has it, and its group there.
    group_of: Vec<(u32, u32)>,
    /// Room for the fields of one selection set, for its response keys, each with its first appearance, and for the
    /// selections that are being followed.
    found: Vec<Found<'a>>,
    groups: Vec<(Symbol, usize)>,
    frames: Vec<Frame<'a>>,
}

/// Selections that are being followed.
struct Frame<'a> {
    items: std::slice::Iter<'a, Selection>,
    types: BitSet,
    clause: Clause,
    defer: Option<DeferId>,
}

impl<'a> Work<'a> {
    fn variables(&mut self, operation: &ast::OperationDefinition) -> Result<(), Diagnostic> {
        for v in &self.document[operation.variables] {
            let name = self.document.name(v.name);
            let id = self
                .schema
                .type_by_name(self.document.name(v.ty.name))
                .ok_or_else(|| refused(self.document, v.span, "unknown variable type"))?;
            self.op.variables.push(Variable {
                name: name.into(),
                ty: Type {
                    id,
                    wrapping: v.ty.wrapping,
                },
                default: v.default.as_ref().map(|d| const_value(self.document, d)),
            });
        }
        Ok(())
    }

    fn selection_set(
        &mut self,
        ty: TypeId,
        parent: Option<FieldNodeId>,
        depth: u32,
        sources: Vec<Source>,
    ) -> SelectionSetId {
        self.pending.push(sources);
        self.op.selection_sets.push(SelectionSet {
            ty,
            possible: self.schema.types[ty].possible.clone(),
            depth,
            parent,
            fields: Vec::new(),
            order: Vec::new(),
            restricted: Vec::new(),
        })
    }

    /// Groups everything found in a selection set into nodes.
    fn fill(&mut self, set: SelectionSetId, sources: &[Source]) -> Result<(), Diagnostic> {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        self.flatten(set, sources, &mut found)?;
        // By response key: its first appearance.
        let mut groups = std::mem::take(&mut self.groups);
        groups.clear();
        // Group and place of all others.
        let mut others: Vec<(u32, usize)> = Vec::new();
        for (i, f) in found.iter().enumerate() {
            let key = self
                .op
                .keys
                .intern(self.document.name(f.field.response_key()));
            if self.group_of.len() <= key.0 as usize {
                self.group_of.resize(key.0 as usize + 1, (u32::MAX, 0));
            }
            let (owner, group) = self.group_of[key.0 as usize];
            if owner == set.0 {
                others.push((group, i));
            } else {
                self.group_of[key.0 as usize] = (set.0, groups.len() as u32);
                groups.push((key, i));
            }
        }
        self.op.selection_sets[set].fields.reserve(groups.len());
        let mut entries = Entries::default();
        entries.order.reserve(found.len());
        if others.is_empty() {
            for (key, i) in groups.iter().copied() {
                self.group(set, key, &[i], &found, &mut entries)?;
            }
            self.op.selection_sets[set].order = entries.order;
        } else {
            // Stable: appearances stay in order.
            others.sort_by_key(|(group, _)| *group);
            let mut rest = others.as_slice();
            let mut group = Vec::new();
            for (at, (key, i)) in groups.iter().copied().enumerate() {
                let end = rest.partition_point(|(group, _)| *group as usize <= at);
                group.clear();
                group.push(i);
                group.extend(rest[..end].iter().map(|(_, i)| *i));
                rest = &rest[end..];
                self.group(set, key, &group, &found, &mut entries)?;
            }
            self.op.selection_sets[set].order = first_appearances(entries);
        }
        (self.found, self.groups) = (found, groups);
        Ok(())
    }

    /// Every field selection of the sources in flattened document order (specification 6.3.2).
    fn flatten(
        &mut self,
        set: SelectionSetId,
        sources: &[Source],
        found: &mut Vec<Found<'a>>,
    ) -> Result<(), Diagnostic> {
        let document = self.document;
        let possible = self.op.selection_sets[set].possible.clone();
        let mut entered: FastSet<(&'a str, BitSet, Clause, Option<DeferId>)> = FastSet::default();
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        for source in sources {
            frames.push(Frame {
                items: document[source.items].iter(),
                types: possible.clone(),
                clause: source.clause.clone(),
                defer: source.defer,
            });
            while let Some(frame) = frames.last_mut() {
                let Some(selection) = frame.items.next() else {
                    frames.pop();
                    continue;
                };
                self.occurrences += 1;
                if self.occurrences > self.limits.occurrences_max {
                    return Err(self.too_large(selection.span()));
                }
                let directives = match selection {
                    Selection::Field(f) => f.directives,
                    Selection::Spread(s) => s.directives,
                    Selection::Inline(i) => i.directives,
                };
                let mut defer = frame.defer;
                let clause = if directives.is_empty() {
                    frame.clause.clone()
                } else {
                    let Some(clause) = self.conditions(directives, &frame.clause)? else {
                        continue;
                    };
                    self.conditional += 1;
                    if self.conditional > self.limits.conditional_max {
                        return Err(self.too_many_conditions(selection.span()));
                    }
                    if self.deferral && !matches!(selection, Selection::Field(_)) {
                        defer = self.defer(directives, set, defer)?;
                    }
                    clause
                };
                let (condition, items) = match selection {
                    Selection::Field(field) => {
                        found.push(Found {
                            field,
                            types: frame.types.clone(),
                            clause,
                            defer,
                        });
                        continue;
                    }
                    Selection::Inline(inline) => {
                        (inline.type_condition, inline.selection_set.items)
                    }
                    Selection::Spread(spread) => {
                        let name = document.name(spread.name);
                        let fragment = *self
                            .fragments
                            .get(name)
                            .ok_or_else(|| refused(document, spread.span, "unknown fragment"))?;
                        if !entered.insert((name, frame.types.clone(), clause.clone(), defer)) {
                            continue;
                        }
                        (Some(fragment.type_condition), fragment.selection_set.items)
                    }
                };
                let mut types = frame.types.clone();
                if let Some(name) = condition {
                    let ty = self
                        .schema
                        .type_by_name(document.name(name))
                        .ok_or_else(|| refused(document, name.span(), "unknown type condition"))?;
                    types.intersect_with(&self.schema.types[ty].possible);
                }
                if !types.is_empty() {
                    if frames.len() > self.limits.depth_max as usize * 8 {
                        return Err(self.too_deep(selection.span()));
                    }
                    frames.push(Frame {
                        items: document[items].iter(),
                        types,
                        clause,
                        defer,
                    });
                }
            }
        }
        self.frames = frames;
        Ok(())
    }

    fn variable(&self, name: ast::Name) -> Result<u32, Diagnostic> {
        self.variable_index
            .get(self.document.name(name))
            .copied()
            .ok_or_else(|| refused(self.document, name.span(), "undefined variable"))
    }

    /// Makes the nodes of one response key.
    fn group(
        &mut self,
        set: SelectionSetId,
        key: Symbol,
        group: &[usize],
        found: &[Found<'a>],
        entries: &mut Entries,
    ) -> Result<(), Diagnostic> {
        if let [only] = group
            && let types = &found[*only].types
            && types.len() == 1
            && let Some(t) = types.first()
        {
            let field = self.field_of(TypeId(t), found[*only].field)?;
            return self.node(set, key, types.clone(), group, field, found, entries, None);
        }
        let mut types = BitSet::new();
        for i in group {
            types.union_with(&found[*i].types);
        }
        let parts = parts(group, found);
        let mut classes: Vec<Class> = Vec::new();
        let mut applicable: Vec<usize> = Vec::new();
        let mut asked: Vec<u32> = Vec::new();
        // By part, the last type for which it was met; nothing where there is but one part. In which order parts come is in
        // which order the answer has them.
        let several = parts.iter().copied().max().filter(|last| *last > 0);
        let mut met: Vec<Option<u32>> =
            several.map_or_else(Vec::new, |n| vec![None; n as usize + 1]);
        for t in types.iter() {
            applicable.clear();
            asked.clear();
            for (i, part) in group.iter().zip(&parts) {
                if found[*i].types.contains(t) {
                    applicable.push(*i);
                    let is_first = match met.get_mut(*part as usize) {
                        Some(last) => last.replace(t) != Some(t),
                        None => asked.is_empty(),
                    };
                    if is_first {
                        asked.push(*part);
                    }
                }
            }
            let Some(first) = applicable.first() else {
                continue;
            };
            let (field, ty) = self.field_of(TypeId(t), found[*first].field)?;
            let same = classes.iter_mut().find(|class| {
                class.ty == ty
                    && same_field(class.field, field)
                    && class.parts == asked
                    && self.same_arguments(found[class.members[0]].field, found[*first].field)
            });
            match same {
                Some(class) => {
                    class.types.insert(t);
                    for i in &applicable {
                        if let Err(at) = class.members.binary_search(i) {
                            class.members.insert(at, *i);
                        }
                    }
                }
                None => classes.push(Class {
                    types: [t].into_iter().collect(),
                    members: applicable.clone(),
                    parts: asked.clone(),
                    field,
                    ty,
                }),
            }
        }
        for class in classes {
            let Class {
                types,
                members,
                field,
                ty,
                ..
            } = class;
            if self.op.kind == OperationKind::Mutation && set == self.op.root {
                self.serial(set, key, &types, &members, (field, ty), found, entries)?;
            } else {
                self.node(set, key, types, &members, (field, ty), found, entries, None)?;
            }
        }
        Ok(())
    }

    /// A root field of a mutation runs where it first appears, which depends on conditions if it appears more than
    /// once: one node per appearance, on the condition that no earlier appearance counts.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call site; the parts of one node"
    )]
    fn serial(
        &mut self,
        set: SelectionSetId,
        key: Symbol,
        types: &BitSet,
        members: &[usize],
        field: (FieldRef, Type),
        found: &[Found<'a>],
        entries: &mut Entries,
    ) -> Result<(), Diagnostic> {
        let mut earlier: Vec<&Clause> = Vec::new();
        for i in members {
            let clause = &found[*i].clause;
            let clauses = without(clause, &earlier)
                .ok_or_else(|| self.too_many_conditions(found[*i].field.span))?;
            if !earlier.contains(&clause) {
                earlier.push(clause);
            }
            if let Some(cond) = self.op.conditions.of(clauses) {
                let place = Some((*i, cond));
                self.node(
                    set,
                    key,
                    types.clone(),
                    members,
                    field,
                    found,
                    entries,
                    place,
                )?;
            }
        }
        Ok(())
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one call site; the parts of one node"
    )]
    fn node(
        &mut self,
        set: SelectionSetId,
        key: Symbol,
        types: BitSet,
        members: &[usize],
        (field, ty): (FieldRef, Type),
        found: &[Found<'a>],
        entries: &mut Entries,
        place: Option<(usize, CondId)>,
    ) -> Result<(), Diagnostic> {
        let written = found[members[0]].field;
        let count = self.op.fields.len();
        if count as u32 >= self.limits.fields_max
            || (count == self.document.selection_count().max(FEW_FIELDS)
                && self.will_be_too_large())
        {
            return Err(self.too_large(written.span));
        }
        let first = &found[members[0]].clause;
        let several = members[1..].iter().any(|i| found[*i].clause != *first);
        let cond = match place {
            Some((_, cond)) => cond,
            None if several => self.widened(members.iter().map(|i| found[*i].clause.clone())),
            None => self.condition(first),
        };
        let args = self.arguments(field, written)?;
        let node = self.op.fields.push(FieldNode {
            parent: set,
            key,
            field,
            args,
            types: types.clone(),
            cond,
            granted: CondId::TRUE,
            selection_set: None,
            ty,
        });
        let defers: Vec<Option<DeferId>> = if self.deferral {
            self.note_stream(node, written, ty)?;
            let defers = self.defers(members, found);
            self.note_deferred(node, &defers);
            defers
        } else {
            Vec::new()
        };
        let defer_of = |at: usize| defers.get(at).copied().flatten();
        if self.schema.types[ty.id].kind.is_composite() {
            let depth = self.op.selection_sets[set].depth + 1;
            if depth > self.limits.depth_max {
                return Err(self.too_deep(written.span));
            }
            let mut sources: Vec<Source> = Vec::with_capacity(members.len().min(4));
            let mut known: FastSet<Source> = FastSet::default();
            for (at, i) in members.iter().enumerate() {
                if let Some(sub) = found[*i].field.selection_set {
                    // One condition for all: the object's existence implies it, so its fields need not repeat it.
                    let clause = if several {
                        found[*i].clause.clone()
                    } else {
                        Clause::new()
                    };
                    let source = Source {
                        items: sub.items,
                        clause,
                        defer: defer_of(at),
                    };
                    // A scan of few, a set of many.
                    let is_new = match members.len() {
                        0..=8 => !sources.contains(&source),
                        _ => known.insert(source.clone()),
                    };
                    if is_new {
                        sources.push(source);
                    }
                }
            }
            let child = self.selection_set(ty.id, Some(node), depth, sources);
            self.op.fields[node].selection_set = Some(child);
        }
        self.op.selection_sets[set].fields.push(node);
        if let Some((at, cond)) = place {
            let entry = appearance(node, types, cond, None);
            entries.push(at, entry);
            return Ok(());
        }
        for (at, i) in members.iter().enumerate() {
            let types = types.intersection(&found[*i].types);
            let cond = self.condition(&found[*i].clause);
            let entry = appearance(node, types, cond, defer_of(at));
            entries.push(*i, entry);
        }
        Ok(())
    }

    fn field_of(&self, parent: TypeId, field: &ast::Field) -> Result<(FieldRef, Type), Diagnostic> {
        let named = |name: &str, wrapping: Wrapping| {
            let id = self.schema.type_by_name(name);
            id.map(|id| Type { id, wrapping }).ok_or_else(|| {
                refused(
                    self.document,
                    field.span,
                    "the schema lacks a built-in type",
                )
            })
        };
        let name = self.document.name(field.name);
        let is_query_root = self.schema.root(OperationKind::Query) == Some(parent);
        Ok(match name {
            "__typename" => (FieldRef::Typename, named("String", Wrapping::NON_NULL)?),
            "__schema" if is_query_root => {
                (FieldRef::Schema, named("__Schema", Wrapping::NON_NULL)?)
            }
            "__type" if is_query_root => (FieldRef::Type, named("__Type", Wrapping::NULLABLE)?),
            _ => {
                let id: FieldId = self
                    .schema
                    .field_by_name(parent, name)
                    .ok_or_else(|| refused(self.document, field.span, "unknown field"))?;
                (FieldRef::Field(id), self.schema.fields[id].ty)
            }
        })
    }

    /// Whether it is certain already that the limit on fields will be met. Looked at once, when there are more fields than
    /// were written, and more than a few: fragments multiply them, and whoever makes millions of a few need not see the
    /// first 50,000 made.
    fn will_be_too_large(&self) -> bool {
        let set = self.op.selection_sets.as_slice().first();
        let root = set.map(|set| set.ty);
        root.is_some_and(|root| {
            let least = Least::new(self.schema, self.document, &self.fragments);
            least.of(root, self.root) > self.limits.fields_max
        })
    }

    fn too_large(&self, span: Span) -> Diagnostic {
        let most = self.limits.fields_max;
        Diagnostic::error(
            codes::OPERATION_TOO_LARGE.as_str(),
            format!("the operation selects more than {most} fields once fragments are expanded"),
        )
        .label(self.document.source_id(), span, "the limit is reached here")
        .help("ask for less in one operation, or raise the limit")
    }

    fn too_deep(&self, span: Span) -> Diagnostic {
        let most = self.limits.depth_max;
        Diagnostic::error(
            codes::MAX_DEPTH_LIMIT.as_str(),
            format!("the operation nests deeper than {most} fields once fragments are expanded"),
        )
        .label(self.document.source_id(), span, "the limit is reached here")
        .help("ask for less depth, or raise the limit")
    }
}

/// Concrete types of a response key that see the same result.
struct Class {
    types: BitSet,
    /// Appearances.
    members: Vec<usize>,
    /// What they ask for, see [`parts`].
    parts: Vec<u32>,
    /// The node's field.
    field: FieldRef,
    ty: Type,
}

/// By appearance a number for its sub-selections and condition: equal numbers ask for the same.
fn parts(group: &[usize], found: &[Found<'_>]) -> Vec<u32> {
    if group.len() == 1 {
        return vec![0];
    }
    type Part<'a> = (Option<List<Selection>>, &'a Clause, Option<DeferId>);
    let mut known: FastMap<Part<'_>, u32> = FastMap::default();
    let number = |i: &usize| {
        let part = &found[*i];
        let next = known.len() as u32;
        let items = part.field.selection_set.map(|s| s.items);
        *known
            .entry((items, &part.clause, part.defer))
            .or_insert(next)
    };
    group.iter().map(number).collect()
}

/// Two rows of one group are the same field if both are rows (their names are equal) or the same meta field.
fn same_field(a: FieldRef, b: FieldRef) -> bool {
    matches!((a, b), (FieldRef::Field(_), FieldRef::Field(_))) || a == b
}

/// Validation would have refused this; said as an error rather than trusted.
fn refused(document: &Document, span: Span, what: &str) -> Diagnostic {
    Diagnostic::error(
        codes::GRAPHQL_VALIDATION_FAILED.as_str(),
        format!("the operation is not valid: {what}"),
    )
    .label(document.source_id(), span, "")
}
