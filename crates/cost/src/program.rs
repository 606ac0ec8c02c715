//! The cost program of one operation: steps that each give a number, later ones from earlier ones.
//!
//! Invariants: a step uses only the results of steps before it; every range lies within its table.

use std::ops::Range;

use ogive_base::BitSet;
use ogive_operation::{Clause, FieldNodeId};
use ogive_schema::{InputId, TypeId};

/// A number, and the first field that says too little of its size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Value {
    /// [`ABSENT`]: no number at all.
    pub(crate) number: u64,
    /// One more than the [`FieldNodeId`]; 0: none.
    pub(crate) broken: u32,
}

/// In place of a size: nobody says it. No size is as large.
pub(crate) const ABSENT: u64 = u64::MAX;

impl Value {
    pub(crate) const ZERO: Value = Value::of(0);

    pub(crate) const fn of(number: u64) -> Value {
        Value { number, broken: 0 }
    }

    /// Another number that says as little as both.
    pub(crate) fn with(self, other: Value, number: u64) -> Value {
        let broken = match self.broken {
            0 => other.broken,
            own => own,
        };
        Value { number, broken }
    }

    pub(crate) fn plus(self, other: Value) -> Value {
        self.with(other, self.number.saturating_add(other.number))
    }

    pub(crate) fn times(self, other: Value) -> Value {
        self.with(other, self.number.saturating_mul(other.number))
    }

    pub(crate) fn max(self, other: Value) -> Value {
        self.with(other, self.number.max(other.number))
    }
}

/// What a step works on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Operand {
    /// Known when the program was compiled.
    Const(Value),
    /// The result of an earlier step.
    Step(u32),
}

impl Operand {
    pub(crate) const ZERO: Operand = Operand::Const(Value::ZERO);
}

/// Operands in [`Program::operands`].
pub(crate) type Operands = Range<u32>;

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The number, or the length of the list, at a path of a variable's value.
    Given { variable: u32, path: u32 },
    /// A number where a variable has no value at all: `null` is one.
    Default { variable: u32, number: u64 },
    /// What a variable's value costs as a value of this type; `weight`: of the argument that it is given to.
    Input {
        variable: u32,
        ty: TypeId,
        weight: Option<u32>,
    },
    /// The largest of sizes, which are given in pairs with their defaults, else `fallback`. `one`: the field that has to be given
    /// exactly one of them, if no default says any.
    Size {
        given: Operands,
        fallback: u64,
        one: Option<FieldNodeId>,
    },
    /// A field: its arguments, and for each item its weight and selections. `cond`: index of the condition.
    Field {
        cond: Option<u32>,
        field: FieldOperands,
    },
    /// A sum.
    Sum(Operands),
    /// The largest.
    Max(Operands),
}

/// What the cost of a field is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldOperands {
    pub(crate) args: Operand,
    pub(crate) size: Operand,
    /// Items in each of the lists, if they are lists themselves.
    pub(crate) nested: u64,
    pub(crate) weight: u64,
    pub(crate) selections: Operand,
}

/// One field in a report.
#[derive(Clone, Debug)]
pub(crate) struct FieldRow {
    pub(crate) node: FieldNodeId,
    pub(crate) size: Operand,
    pub(crate) cost: Operand,
}

/// What a field costs on one object of some types, without its selections.
#[derive(Clone, Debug)]
pub(crate) struct VariantRow {
    pub(crate) node: FieldNodeId,
    /// The types; `None`: all that the field is for.
    pub(crate) types: Option<BitSet>,
    pub(crate) args: Operand,
    pub(crate) weight: u64,
}

/// What one operation costs, as a function of its variables.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) steps: Vec<Step>,
    pub(crate) operands: Vec<Operand>,
    pub(crate) conditions: Vec<Vec<Clause>>,
    /// Input fields below the value of a variable.
    pub(crate) paths: Vec<Vec<InputId>>,
    pub(crate) total: Operand,
    /// Number of variables; what conditions name beyond them holds.
    pub(crate) variables: u32,
    /// Nothing unless asked for.
    pub(crate) fields: Vec<FieldRow>,
    /// The same.
    pub(crate) variants: Vec<VariantRow>,
    /// Whether it was.
    pub(crate) has_fields: bool,
}

impl Program {
    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let clauses = self.conditions.iter().flatten();
        let clauses = clauses.map(|clause| size_of_val(&clause[..]) + size_of::<Clause>());
        let paths = self.paths.iter();
        let paths = paths.map(|path| size_of_val(&path[..]) + size_of::<Vec<InputId>>());
        size_of_val(&self.steps[..])
            + size_of_val(&self.operands[..])
            + size_of_val(&self.fields[..])
            + size_of_val(&self.variants[..])
            + self.conditions.len() * size_of::<Vec<Clause>>()
            + clauses.sum::<usize>()
            + paths.sum::<usize>()
    }

    /// Whether it was compiled with [`fields`](crate::Settings::fields).
    pub fn has_fields(&self) -> bool {
        self.has_fields
    }
    /// Number of steps; 0 if the cost does not depend on variables.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether the cost does not depend on variables.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}
