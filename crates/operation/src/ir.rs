//! The normal form of one operation: what to answer, free of fragments, aliases of types and constant conditions.
//!
//! A [`SelectionSet`] holds for every response key the [`FieldNode`]s that can answer it. Two nodes of one set with
//! the same key have disjoint `types`, so for one concrete type at most one node answers a key
//! (specification 6.3.2, `CollectFields`, done once for all concrete types). Only at the root of a mutation, where
//! order is execution order, such nodes may have exclusive conditions instead. Order of first appearance is kept in
//! `order`: an output visits it front to back and skips nodes it has already emitted.
//!
//! Invariants: every id belongs to this operation; children come after their parents; the tree is bounded by
//! [`NormaliseLimits`](crate::normalise::NormaliseLimits).

use ogive_base::{BitSet, FastMap, IdVec, Interner, Symbol, define_id};
use ogive_schema::{ConstValue, FieldId, InputId, OperationKind, Type, TypeId};

define_id! {
    /// A selection set at one place of the response.
    pub struct SelectionSetId;
}
define_id! {
    /// A field to answer.
    pub struct FieldNodeId;
}
define_id! {
    /// A fragment under `@defer`, at one place of the response.
    pub struct DeferId;
}
define_id! {
    /// A condition over variables; [`CondId::TRUE`] always holds.
    pub struct CondId;
}

impl CondId {
    /// The condition that always holds.
    pub const TRUE: CondId = CondId(0);
}

/// One operation in normal form.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Query, mutation or subscription.
    pub kind: OperationKind,
    /// Its name.
    pub name: Option<Box<str>>,
    /// Response keys.
    pub keys: Interner,
    /// The root selection set.
    pub root: SelectionSetId,
    /// All selection sets.
    pub selection_sets: IdVec<SelectionSetId, SelectionSet>,
    /// All fields.
    pub fields: IdVec<FieldNodeId, FieldNode>,
    /// All conditions.
    pub conditions: Conditions,
    /// Variables in definition order; indexes match [`Variables::values`](crate::Variables::values).
    pub variables: Vec<Variable>,
    /// What callers must be to see parts of it, by numbers that mean something to whoever restricted the operation:
    /// none in a client's. Literals of conditions beyond the variables stand for them, in this order.
    pub requirements: Vec<u32>,
    /// Whether somebody looked for what only some callers may see.
    pub is_restricted: bool,
    /// What may be answered later; nothing unless [`NormaliseLimits::deferral`](crate::NormaliseLimits::deferral).
    pub deferral: Deferral,
}

/// What may be answered later (`@defer`, `@stream`).
#[derive(Clone, Debug, Default)]
pub struct Deferral {
    /// Fragments under `@defer` and conditional groups, parents before children.
    pub groups: IdVec<DeferId, DeferredGroup>,
    /// The groups of every field that is reached through deferred fragments only: sorted, none of them below another.
    pub fields: FastMap<FieldNodeId, Vec<DeferId>>,
    /// Lists of which the first items are answered, and the others later.
    pub streams: FastMap<FieldNodeId, Stream>,
}

/// A list under `@stream`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// What the client calls it.
    pub label: Option<Box<str>>,
    /// How many items are answered with what is around it...
    pub initial_count: u32,
    /// ... unless this variable (index into [`Operation::variables`]) has a value.
    pub initial_variable: Option<u32>,
    /// Streamed if this variable is true or not given; else answered whole. `None`: always streamed.
    pub variable: Option<u32>,
}

/// A fragment under `@defer`, at one place of the response; or a *conditional group*: appearances that count only under a
/// condition of fields that have others, too. Without it they would be taken for appearances that always count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeferredGroup {
    /// What the client calls it.
    pub label: Option<Box<str>>,
    /// The group around it.
    pub parent: Option<DeferId>,
    /// The place it is part of.
    pub place: SelectionSetId,
    /// Deferred if this variable is true or not given (index into [`Operation::variables`]); else part of what is
    /// around it. `None`: always deferred.
    pub variable: Option<u32>,
    /// Of a conditional group: when its appearances count. They are never deferred by it, but part of what is around it.
    /// [`CondId::TRUE`]: it is a fragment under `@defer`.
    pub cond: CondId,
}

impl Deferral {
    /// The groups a field is answered with; none if it is not deferred.
    pub fn of(&self, field: FieldNodeId) -> &[DeferId] {
        self.fields.get(&field).map_or(&[], Vec::as_slice)
    }
    /// Whether there is nothing of it.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.streams.is_empty()
    }
    /// A copy of a field is answered with the same groups, and in the same way.
    pub fn copy(&mut self, field: FieldNodeId, copy: FieldNodeId) {
        if let Some(groups) = self.fields.get(&field).cloned() {
            self.fields.insert(copy, groups);
        }
        if let Some(stream) = self.streams.get(&field).cloned() {
            self.streams.insert(copy, stream);
        }
    }
    /// Whether `group` is `other` or below it. Linear in the nesting.
    pub fn is_within(&self, group: DeferId, other: DeferId) -> bool {
        let mut at = Some(group);
        while let Some(id) = at {
            if id == other {
                return true;
            }
            at = self.groups[id].parent;
        }
        false
    }
    /// Sorted, without duplicates and without groups below others: those come later anyway. Each group is looked at once for
    /// every group around it.
    pub fn reduce(&self, groups: &mut Vec<DeferId>) {
        groups.sort_unstable();
        groups.dedup();
        if groups.len() < 2 {
            return;
        }
        let all = groups.clone();
        groups.retain(|group| {
            let parent = |group: DeferId| self.groups[group].parent;
            let mut around = std::iter::successors(parent(*group), |group| parent(*group));
            !around.any(|other| all.binary_search(&other).is_ok())
        });
    }
}

/// What is selected on one object-valued place of the response.
#[derive(Clone, Debug)]
pub struct SelectionSet {
    /// Declared type: object, interface or union.
    pub ty: TypeId,
    /// Concrete types (`TypeId.0`) its objects can have.
    pub possible: BitSet,
    /// Number of fields above it.
    pub depth: u32,
    /// The field whose value this is; `None` for the root.
    pub parent: Option<FieldNodeId>,
    /// Nodes in order of creation.
    pub fields: Vec<FieldNodeId>,
    /// Every appearance in flattened document order. The first entry of a node whose type and condition hold
    /// places it in the response.
    pub order: Vec<Occurrence>,
    /// Concrete types whose objects only some callers may see, with the condition; disjoint.
    pub restricted: Vec<(BitSet, CondId)>,
}

/// One appearance of a field in the flattened selection set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The field.
    pub field: FieldNodeId,
    /// Concrete parent types (`TypeId.0`) for which it appears here.
    pub types: BitSet,
    /// Holds if this appearance counts.
    pub cond: CondId,
    /// The deferred fragment that it stands in, if any.
    pub defer: Option<DeferId>,
}

/// One field to answer for some concrete types of its parent.
#[derive(Clone, Debug)]
pub struct FieldNode {
    /// The selection set it belongs to.
    pub parent: SelectionSetId,
    /// Response key: alias or name.
    pub key: Symbol,
    /// Which field; for a field row, that of one of the concrete `types` (all of them have the same name and type).
    pub field: FieldRef,
    /// Arguments as written, in definition order of the field's arguments.
    pub args: Vec<Arg>,
    /// Concrete parent types (`TypeId.0`) this node answers for.
    pub types: BitSet,
    /// Holds if any appearance holds, and the caller may see the value.
    pub cond: CondId,
    /// Holds if the caller may see the value; else it is null in the response, and an error.
    pub granted: CondId,
    /// Sub-selections of a composite field.
    pub selection_set: Option<SelectionSetId>,
    /// Declared type of the value.
    pub ty: Type,
}

/// Which field of the type system.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FieldRef {
    /// A field row.
    Field(FieldId),
    /// `__typename`
    Typename,
    /// `__schema` on the query root
    Schema,
    /// `__type(name:)` on the query root
    Type,
}

/// One argument.
#[derive(Clone, PartialEq, Debug)]
pub struct Arg {
    /// Which argument; meaningless for the meta field `__type`, whose only argument is `name`.
    pub input: InputId,
    /// Its name.
    pub name: Box<str>,
    /// Its value.
    pub value: ArgValue,
}

/// An argument's value: literals as written, variables by index into [`Operation::variables`].
#[derive(Clone, PartialEq, Debug)]
pub enum ArgValue {
    /// A variable.
    Variable(u32),
    /// A literal without variables.
    Const(ConstValue),
    /// A list with a variable somewhere inside.
    List(Vec<ArgValue>),
    /// An input object with a variable somewhere inside.
    Object(Vec<(Box<str>, ArgValue)>),
}

/// One variable of the operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Variable {
    /// Its name without `$`.
    pub name: Box<str>,
    /// Its type.
    pub ty: Type,
    /// Its default.
    pub default: Option<ConstValue>,
}

/// Conditions in disjunctive normal form: some clause has all its literals true.
#[derive(Clone, Debug)]
pub struct Conditions {
    rows: IdVec<CondId, Vec<Clause>>,
    /// By clauses, once there are more rows than are scanned.
    known: FastMap<Vec<Clause>, CondId>,
}

/// A conjunction: `(variable index, wanted value)`, sorted, no contradictions.
pub type Clause = Vec<(u32, bool)>;

impl Default for Conditions {
    fn default() -> Self {
        Conditions {
            rows: IdVec::from_vec(vec![vec![Vec::new()]]),
            known: FastMap::default(),
        }
    }
}

impl Conditions {
    /// Most clauses of one condition. A condition that would need more becomes [`CondId::TRUE`] where that is only
    /// wasteful (fetching); exact users keep separate occurrences instead.
    pub const CLAUSES_MAX: usize = 16;

    /// Rows that are looked through one by one.
    const SCANNED_MAX: usize = 16;

    /// The clauses of a condition.
    pub fn clauses(&self, id: CondId) -> &[Clause] {
        &self.rows[id]
    }
    /// Number of distinct conditions.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Never: [`CondId::TRUE`] is always there.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// The condition with these clauses (any order, duplicates allowed); `None` when there is no clause, which never
    /// holds.
    pub fn of(&mut self, mut clauses: Vec<Clause>) -> Option<CondId> {
        if clauses.is_empty() {
            return None;
        }
        clauses.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        let mut kept: Vec<Clause> = Vec::new();
        for clause in clauses {
            // A clause that contains a kept one adds nothing.
            if !kept.iter().any(|k| k.iter().all(|l| clause.contains(l))) {
                kept.push(clause);
            }
        }
        // `x or not x` always holds.
        if kept.len() == 2
            && kept[0].len() == 1
            && kept[1].len() == 1
            && kept[0][0].0 == kept[1][0].0
        {
            return Some(CondId::TRUE);
        }
        Some(self.find(&kept).unwrap_or_else(|| self.push(kept)))
    }

    fn find(&self, clauses: &Vec<Clause>) -> Option<CondId> {
        if self.rows.len() > Self::SCANNED_MAX {
            return self.known.get(clauses).copied();
        }
        let mut rows = self.rows.iter();
        rows.find(|(_, row)| *row == clauses).map(|(id, _)| id)
    }

    fn push(&mut self, clauses: Vec<Clause>) -> CondId {
        let id = self.rows.push(clauses);
        match self.rows.len() - 1 {
            0..Self::SCANNED_MAX => {}
            Self::SCANNED_MAX => {
                let rows = self.rows.iter();
                self.known = rows.map(|(id, row)| (row.clone(), id)).collect();
            }
            _ => {
                self.known.insert(self.rows[id].clone(), id);
            }
        }
        id
    }

    /// Either holds; widened to [`CondId::TRUE`] beyond [`CLAUSES_MAX`](Self::CLAUSES_MAX).
    pub fn or(&mut self, a: CondId, b: CondId) -> CondId {
        if a == b || b == CondId::TRUE {
            return b;
        }
        if a == CondId::TRUE {
            return a;
        }
        let clauses: Vec<Clause> = self.rows[a].iter().chain(&self.rows[b]).cloned().collect();
        if clauses.len() > Self::CLAUSES_MAX {
            return CondId::TRUE;
        }
        self.of(clauses).unwrap_or(CondId::TRUE)
    }
    /// Whether the condition holds for these variable values.
    pub fn holds(&self, id: CondId, value: impl Fn(u32) -> bool) -> bool {
        self.rows[id]
            .iter()
            .any(|clause| clause.iter().all(|(v, want)| value(*v) == *want))
    }
}
