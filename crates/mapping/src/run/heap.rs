//! The values of a run, in flat tables that are freed with it.

use std::{borrow::Cow, ops::Range};

use ogive_json::{Kind, Scanner};

use super::{Failure, Inputs};
use crate::{
    kinds::Kinds,
    need::NeedId,
    program::{Program, Rows, Text},
    variable::Variable,
};

/// One of the texts that values point into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Source(u8);

impl Source {
    pub(super) const BODY: Source = Source(0);
    const PROGRAM: Source = Source(Variable::COUNT as u8 + 1);
    pub(super) const SCRATCH: Source = Source(Variable::COUNT as u8 + 2);

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
    pub(super) fn variable(variable: Variable) -> Source {
        Source(variable.index() as u8 + 1)
    }
    /// How paths in the source begin.
    pub(super) fn name(self) -> Option<String> {
        match self {
            Source::BODY => Some("$".to_owned()),
            Source(index) => {
                let variable = Variable::ALL.get(usize::from(index) - 1)?;
                Some(format!("${}", variable.name()))
            }
        }
    }
}

/// A run of bytes of a source: one JSON value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slice {
    pub(super) source: Source,
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Slice {
    pub(super) fn new(source: Source, range: Range<usize>) -> Slice {
        Slice {
            source,
            start: range.start as u32,
            end: range.end as u32,
        }
    }
    pub(super) fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// A value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    /// There is none.
    Missing,
    Null,
    Bool(bool),
    /// A number, as it is written.
    Number(Slice),
    /// A string as JSON, quotes included.
    String(Slice),
    /// A list: rows of [`Heap::cells`].
    List(Rows),
    /// An object that was made: rows of [`Heap::members`].
    Object(Rows),
    /// An object of an input: a row of [`Heap::records`].
    Record(u32),
    /// A list or an object of an input that was not looked into.
    Raw(Slice),
}

impl Value {
    /// The value of this kind whose text is `slice`. A list or an object is not looked into.
    pub(super) fn at(slice: Slice, kind: Kind) -> Value {
        match kind {
            Kind::Null => Value::Null,
            Kind::True => Value::Bool(true),
            Kind::False => Value::Bool(false),
            Kind::Number => Value::Number(slice),
            Kind::String => Value::String(slice),
            Kind::Object | Kind::Array => Value::Raw(slice),
        }
    }
    pub(super) fn is_missing(self) -> bool {
        self == Value::Missing
    }
    /// Null or missing.
    pub(super) fn is_nullish(self) -> bool {
        matches!(self, Value::Missing | Value::Null)
    }
}

/// An object of an input whose members were picked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// The whole object.
    pub(super) slice: Slice,
    /// The place it was read for: its children are the keys of the slots.
    pub(super) need: NeedId,
    /// The first slot, a row of [`Heap::cells`].
    pub(super) slots: u32,
}

/// A member of an object that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Its key as JSON, quotes included.
    pub(super) key: Slice,
    pub(super) value: Value,
}

/// How many bytes the keys of members have.
pub(super) fn key_bytes(members: &[Entry]) -> usize {
    members.iter().map(|member| member.key.len()).sum()
}

pub(super) struct Heap<'p> {
    /// Texts of all sources but the scratch.
    pub(super) sources: [&'p [u8]; Variable::COUNT + 2],
    /// Which inputs there are.
    given: [bool; Variable::COUNT + 1],
    /// Text that methods made.
    pub(super) scratch: Vec<u8>,
    pub(super) cells: Vec<Value>,
    pub(super) members: Vec<Entry>,
    pub(super) records: Vec<Record>,
}

impl<'p> Heap<'p> {
    pub(super) fn new(program: &'p Program, inputs: &Inputs<'p>) -> Self {
        let mut sources: [&'p [u8]; Variable::COUNT + 2] = [&[]; Variable::COUNT + 2];
        let mut given = [false; Variable::COUNT + 1];
        let all = std::iter::once(inputs.body).chain(inputs.variables);
        for (index, input) in all.enumerate() {
            sources[index] = input.unwrap_or_default();
            given[index] = input.is_some();
        }
        sources[Source::PROGRAM.index()] = &program.texts;
        Heap {
            sources,
            given,
            scratch: Vec::new(),
            cells: Vec::new(),
            members: Vec::new(),
            records: Vec::new(),
        }
    }

    pub(super) fn is_given(&self, source: Source) -> bool {
        self.given[source.index()]
    }
    pub(super) fn text(&self, source: Source) -> &[u8] {
        match source {
            Source::SCRATCH => &self.scratch,
            source => self.sources[source.index()],
        }
    }
    pub(super) fn bytes(&self, slice: Slice) -> &[u8] {
        &self.text(slice.source)[slice.start as usize..slice.end as usize]
    }
    /// A scanner over a value; positions are those of its source.
    pub(super) fn scanner(&self, slice: Slice, depth_max: u32) -> Scanner<'_> {
        let text = self.text(slice.source);
        Scanner::with_depth_max(text, depth_max).within(slice.start as usize..slice.end as usize)
    }
    /// The text that a string denotes.
    pub(super) fn string(&self, slice: Slice) -> Cow<'_, str> {
        let mut scanner = Scanner::new(self.bytes(slice));
        match scanner.string() {
            Ok(string) => string.unescape(),
            Err(_) => Cow::Borrowed(""),
        }
    }
    pub(super) fn constant(&self, text: Text) -> Slice {
        Slice {
            source: Source::PROGRAM,
            start: text.start,
            end: text.end,
        }
    }

    /// What a value is. Missing values are of no kind, and count as null.
    pub(super) fn kind(&self, value: Value) -> Kinds {
        match value {
            Value::Missing | Value::Null => Kinds::NULL,
            Value::Bool(_) => Kinds::BOOL,
            Value::Number(_) => Kinds::NUMBER,
            Value::String(_) => Kinds::STRING,
            Value::List(_) => Kinds::LIST,
            Value::Object(_) | Value::Record(_) => Kinds::OBJECT,
            Value::Raw(slice) => match self.bytes(slice).first() {
                Some(b'[') => Kinds::LIST,
                _ => Kinds::OBJECT,
            },
        }
    }
    /// The text of a value that is as it stands in an input.
    pub(super) fn slice_of(&self, value: Value) -> Option<Slice> {
        match value {
            Value::Number(slice) | Value::String(slice) | Value::Raw(slice) => Some(slice),
            Value::Record(record) => Some(self.records[record as usize].slice),
            Value::Missing | Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => {
                None
            }
        }
    }

    /// The text that a method has added to the scratch since `start`.
    pub(super) fn added_since(&self, start: usize) -> Slice {
        Slice::new(Source::SCRATCH, start..self.scratch.len())
    }

    /// Values held.
    pub(super) fn values(&self) -> usize {
        self.cells.len() + self.members.len() + self.records.len()
    }
    /// Checks what is held against limits.
    pub(super) fn check(&self, limits: &crate::RunLimits) -> Result<(), Failure> {
        if self.values() > limits.values_max {
            return Err(Failure::Values);
        }
        if self.scratch.len() > limits.computed_bytes_max {
            return Err(Failure::ComputedBytes);
        }
        Ok(())
    }
}
