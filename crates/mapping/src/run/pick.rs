//! Reading inputs: one pass over a text keeps what a program reads of it.
//!
//! It recurses over objects and lists that something is read of, whose depth the scanner bounds.

use ogive_json::{JsonStr, Kind, ScanError, ScanErrorKind, Scanner};

use super::{
    Failure,
    eval::Run,
    heap::{Heap, Record, Slice, Source, Value},
};
use crate::{
    limits::RunLimits,
    need::{Need, NeedChild, NeedId, Needs},
    program::Rows,
    variable::Variable,
};

/// Why a text could not be read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    Json(ScanError),
    Values,
}

impl Stop {
    /// The failure of a run; `json` says what bad JSON means.
    pub(super) fn into_failure(self, json: impl FnOnce(ScanError) -> Failure) -> Failure {
        match self {
            Stop::Json(error) => json(error),
            Stop::Values => Failure::Values,
        }
    }
}

impl From<ScanError> for Stop {
    fn from(error: ScanError) -> Self {
        Stop::Json(error)
    }
}

type Result<T> = std::result::Result<T, Stop>;

impl Run<'_> {
    /// Reads all variables that are read, and the body; gives the body.
    pub(super) fn read_inputs(&mut self) -> std::result::Result<Value, Failure> {
        for variable in Variable::ALL {
            let source = Source::variable(variable);
            if let Some(need) = self.program.variables[variable.index()]
                && self.heap.is_given(source)
            {
                let value =
                    self.read_source(source, need, |error| Failure::Variable(variable, error))?;
                self.variables[variable.index()] = value;
            }
        }
        if !self.heap.is_given(Source::BODY) {
            return Ok(Value::Missing);
        }
        self.read_source(Source::BODY, self.program.body, Failure::Body)
    }

    fn read_source(
        &mut self,
        source: Source,
        need: NeedId,
        json: impl FnOnce(ScanError) -> Failure,
    ) -> std::result::Result<Value, Failure> {
        let len = self.heap.text(source).len();
        self.spend_bytes(len)?;
        let Ok(end) = u32::try_from(len) else {
            // Offsets have 32 bits.
            return Err(json(ScanError {
                offset: 0,
                kind: ScanErrorKind::TooDeep,
            }));
        };
        let slice = Slice {
            source,
            start: 0,
            end,
        };
        self.pick(slice, need)
            .map_err(|stop| stop.into_failure(json))
    }

    /// Looks into an object or list that was not looked into, for a place.
    pub(super) fn open(
        &mut self,
        value: Value,
        need: NeedId,
    ) -> std::result::Result<Value, Failure> {
        match value {
            Value::Raw(slice) if !self.program.needs.get(need).children.is_empty() => {
                self.spend_bytes(slice.len())?;
                // The text was read before, so it is JSON.
                self.pick(slice, need)
                    .map_err(|stop| stop.into_failure(|_| Failure::Nesting))
            }
            _ => Ok(value),
        }
    }

    fn pick(&mut self, slice: Slice, need: NeedId) -> Result<Value> {
        let before = self.heap.values();
        let value = self
            .heap
            .pick(&self.program.needs, slice, need, self.limits)?;
        let added = (self.heap.values() - before) as u64;
        self.steps_left = self.steps_left.saturating_sub(added);
        Ok(value)
    }
}

impl Heap<'_> {
    /// Reads the value at `slice`, with nothing behind it, for a place.
    pub(super) fn pick(
        &mut self,
        needs: &Needs,
        slice: Slice,
        need: NeedId,
        limits: &RunLimits,
    ) -> Result<Value> {
        let mut picker = self.picker(needs, slice, limits);
        let value = picker.value(need)?;
        picker.scanner.finish()?;
        Ok(value)
    }
    /// The items of the list at `slice`, none of them looked into.
    pub(super) fn items(&mut self, slice: Slice, limits: &RunLimits) -> Result<Rows> {
        let needs = Needs::default();
        let mut picker = self.picker(&needs, slice, limits);
        picker.items(None)
    }

    fn picker<'h>(&'h mut self, needs: &'h Needs, slice: Slice, limits: &RunLimits) -> Picker<'h> {
        let Heap {
            sources,
            scratch,
            cells,
            members,
            records,
            ..
        } = self;
        let text: &[u8] = match slice.source {
            Source::SCRATCH => scratch,
            source => sources[source.index()],
        };
        let range = slice.start as usize..slice.end as usize;
        Picker {
            needs,
            source: slice.source,
            scanner: Scanner::with_depth_max(text, limits.depth_max).within(range),
            cells,
            records,
            pending: Vec::new(),
            values_max: limits.values_max.saturating_sub(members.len()),
        }
    }
}

struct Picker<'h> {
    needs: &'h Needs,
    source: Source,
    scanner: Scanner<'h>,
    cells: &'h mut Vec<Value>,
    records: &'h mut Vec<Record>,
    /// Items of lists that are not complete.
    pending: Vec<Value>,
    values_max: usize,
}

impl<'h> Picker<'h> {
    fn value(&mut self, need: NeedId) -> Result<Value> {
        let needs: &'h Needs = self.needs;
        let row = needs.get(need);
        let kind = self.scanner.peek()?;
        if row.children.is_empty() {
            return self.whole(kind);
        }
        match kind {
            Kind::Object => self.record(need, row),
            Kind::Array => self.items(Some(need)).map(Value::List),
            _ => self.whole(kind),
        }
    }

    /// A value that is not looked into.
    fn whole(&mut self, kind: Kind) -> Result<Value> {
        let range = match kind {
            Kind::Object | Kind::Array => self.scanner.skip_value()?,
            _ => self.scanner.scalar()?,
        };
        Ok(Value::at(Slice::new(self.source, range), kind))
    }

    fn record(&mut self, need: NeedId, row: &'h Need) -> Result<Value> {
        let start = self.scanner.position();
        let slots = self.cells.len();
        self.cells
            .resize(slots + row.children.len(), Value::Missing);
        self.check_room()?;
        let mut more = self.scanner.begin_object()?;
        // Members mostly come in one order.
        let mut next = 0;
        while more {
            let key = self.scanner.key()?;
            match find(&row.children, key, next) {
                Some(slot) => {
                    let value = self.value(row.children[slot].need)?;
                    self.cells[slots + slot] = value;
                    next = slot + 1;
                }
                None => {
                    self.scanner.skip_value()?;
                }
            }
            more = self.scanner.next_member()?;
        }
        let record = self.records.len() as u32;
        let slice = Slice::new(self.source, start..self.scanner.position());
        self.records.push(Record {
            slice,
            need,
            slots: slots as u32,
        });
        Ok(Value::Record(record))
    }

    /// The items of a list, read for a place or not looked into.
    fn items(&mut self, need: Option<NeedId>) -> Result<Rows> {
        let base = self.pending.len();
        let mut more = self.scanner.begin_array()?;
        while more {
            let value = match need {
                Some(need) => self.value(need)?,
                None => {
                    let kind = self.scanner.peek()?;
                    self.whole(kind)?
                }
            };
            self.pending.push(value);
            self.check_room()?;
            more = self.scanner.next_item()?;
        }
        Ok(Rows::append(self.cells, self.pending.drain(base..)))
    }

    fn check_room(&self) -> Result<()> {
        let values = self.cells.len() + self.records.len() + self.pending.len();
        if values > self.values_max {
            return Err(Stop::Values);
        }
        Ok(())
    }
}

/// The slot of a key, if it is read; the one at `next` is tried first.
fn find(children: &[NeedChild], key: JsonStr<'_>, next: usize) -> Option<usize> {
    let is_key = |child: &NeedChild| key.is(&child.key);
    if children.get(next).is_some_and(is_key) {
        return Some(next);
    }
    children.iter().position(is_key)
}
