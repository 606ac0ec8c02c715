//! What values cost that are used as they stand ([`ogive_plan::OutputCosts`]): of them there are no records. [`ValueTally`] is
//! told what they consist of when they are read, and [`CountedValues`] keeps what that comes to until they are written. What
//! was not counted then (it arrived in parts, or belongs to another place as well) is looked at when it is written.

use ogive_base::FastMap;
use ogive_json::{Kind, ScanError, Scanner, Tally};
use ogive_plan::{FieldCost, LayoutId, OutputCosts, OutputEntry, RuntimeType};

/// Most values of which is kept what they cost.
const VALUES_MAX: usize = 1 << 16;

/// What values cost that are used as they stand.
#[derive(Debug)]
pub(crate) struct CountedValues<'p> {
    costs: &'p OutputCosts,
    values: FastMap<(u32, u32, LayoutId), ValueCost>,
}

/// What a value consists of: its objects, and what these cost but for the field that has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ValueCost {
    items: u64,
    inside: u64,
}

impl ValueCost {
    pub(crate) fn of(self, item: u64) -> u64 {
        self.items.saturating_mul(item).saturating_add(self.inside)
    }
}

impl<'p> CountedValues<'p> {
    pub(crate) fn new(costs: &'p OutputCosts) -> Self {
        CountedValues {
            costs,
            values: FastMap::default(),
        }
    }
    /// Counts a value whose objects belong to a layout.
    pub(crate) fn tally(&self, layout: LayoutId) -> ValueTally<'p> {
        ValueTally::new(self.costs, layout)
    }
    /// Keeps what a value costs, by its answer and where it begins there.
    pub(crate) fn keep(&mut self, (source, start): (u32, u32), tally: &ValueTally<'p>) {
        if self.values.len() < VALUES_MAX {
            let key = (source, start, tally.layout);
            self.values.insert(key, tally.cost);
        }
    }
    pub(crate) fn get(&self, (source, start): (u32, u32), layout: LayoutId) -> Option<ValueCost> {
        self.values.get(&(source, start, layout)).copied()
    }
}

/// Where counting stands in an object.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Position<'c> {
    row: &'c [FieldCost],
    below: &'c [OutputEntry],
    entry: usize,
    /// What each value of the entry costs.
    pub(crate) item: u64,
    /// Whether the entry was counted before.
    pub(crate) is_repeated: bool,
}

impl<'c> Position<'c> {
    pub(crate) fn of(costs: &'c OutputCosts, layout: LayoutId, ty: Option<RuntimeType>) -> Self {
        let (row, below) = costs.of(layout, ty);
        Position {
            row,
            below,
            entry: 0,
            item: 0,
            is_repeated: false,
        }
    }
    /// Turns to an entry; says what its arguments cost.
    pub(crate) fn turn_to(&mut self, entry: usize) -> u64 {
        let cost = self.row.get(entry).copied().unwrap_or_default();
        (self.entry, self.item) = (entry, cost.item);
        cost.args
    }
    pub(crate) fn below(&self) -> OutputEntry {
        self.below.get(self.entry).copied().unwrap_or_default()
    }
}

/// Counts one value.
pub(crate) struct ValueTally<'c> {
    costs: &'c OutputCosts,
    layout: LayoutId,
    pub(crate) cost: ValueCost,
    open: Vec<Position<'c>>,
}

impl<'c> ValueTally<'c> {
    pub(crate) fn new(costs: &'c OutputCosts, layout: LayoutId) -> Self {
        ValueTally {
            costs,
            layout,
            cost: ValueCost::default(),
            open: Vec::new(),
        }
    }
    fn add(&mut self, amount: u64) {
        self.cost.inside = self.cost.inside.saturating_add(amount);
    }
}

impl Tally for ValueTally<'_> {
    #[inline(always)]
    fn object(&mut self) {
        let layout = match self.open.last() {
            None => {
                self.cost.items += 1;
                Some(self.layout)
            }
            Some(around) => {
                let (item, below) = (around.item, around.below());
                self.add(item);
                below.layout
            }
        };
        // Objects that are used as they stand are of one type.
        let of = |layout| Position::of(self.costs, layout, None);
        let position = layout.map(of).unwrap_or_default();
        self.open.push(position);
    }
    #[inline(always)]
    fn member(&mut self, left: usize) {
        if let Some(position) = self.open.last_mut() {
            // Their patterns have a field for every entry.
            let entry = position.row.len().saturating_sub(left + 1);
            let args = position.turn_to(entry);
            self.add(args);
        }
    }
    #[inline(always)]
    fn scalar(&mut self) {
        let item = self.open.last().map_or(0, |position| position.item);
        self.add(item);
    }
    #[inline(always)]
    fn close(&mut self) {
        self.open.pop();
    }
}

/// How many leaves that are not null a list has.
pub(crate) fn leaves(raw: &[u8], lists: u8) -> Result<u64, ScanError> {
    let mut scanner = Scanner::with_depth_max(raw, Scanner::DEPTH_MAX);
    let (mut found, mut open) = (0, 0_u8);
    loop {
        match scanner.peek()? {
            Kind::Null => scanner.null()?,
            Kind::Array if open < lists => {
                if scanner.begin_array()? {
                    open += 1;
                    continue;
                }
            }
            _ => {
                scanner.skip_value()?;
                found += u64::from(open == lists);
            }
        }
        loop {
            if open == 0 {
                return Ok(found);
            }
            if scanner.next_item()? {
                break;
            }
            open -= 1;
        }
    }
}
