//! What a response costs, counted with what is written from records: what is taken back is taken off again. Values that are
//! used as they stand were counted when they were read ([`crate::value_costs`]).

use ogive_base::FastSet;
use ogive_json::{Open, Scanner};
use ogive_plan::{LayoutId, OutputCosts, RuntimeType};

use super::{Cut, Filter};
use crate::{
    condition::Conditions,
    store::{RawRange, RecordId, Store},
    value_costs::{Position, ValueTally, leaves},
};

type CountedField = (RecordId, usize, u32);

/// Fields that were counted already: some are sent again with every fragment that asks for them.
#[derive(Debug, Default)]
pub(crate) struct CountedFields {
    /// The object, the first entry of the key, and 0; of an item that is sent by itself, one more than its index.
    fields: FastSet<CountedField>,
    /// Those that what is being written has added.
    added: Vec<CountedField>,
}

impl CountedFields {
    fn take_back(&mut self, to: usize) {
        for field in self.added.drain(to..) {
            self.fields.remove(&field);
        }
    }
}

/// Counts what another filter lets through.
pub(crate) struct Counted<'c, V> {
    pub(crate) inner: V,
    costs: &'c OutputCosts,
    cost: u64,
    record: RecordId,
    now: Position<'c>,
    open: Vec<(u64, usize, RecordId, Position<'c>)>,
    once: Option<CountedFields>,
    /// Whether something was taken back.
    is_partial: bool,
}

impl<'c, V: Filter> Counted<'c, V> {
    /// From an object on.
    pub(crate) fn new(inner: V, costs: &'c OutputCosts, cost: u64) -> Self {
        Counted {
            inner,
            costs,
            cost,
            record: Store::ROOT,
            now: Position::default(),
            open: Vec::new(),
            once: None,
            is_partial: false,
        }
    }
    /// The same; fields that were counted are not counted again.
    #[must_use]
    pub(crate) fn once(mut self, counted: Option<CountedFields>) -> Self {
        self.once = counted;
        self
    }
    /// From an item of a list on: that of an entry of an object.
    #[must_use]
    pub(crate) fn of_item(
        mut self,
        store: &Store<'_>,
        record: RecordId,
        (entry, index): (usize, u32),
    ) -> Self {
        self.now = Position::of(self.costs, store.layout(record), store.known_type(record));
        self.now.turn_to(entry);
        if let Some(once) = &mut self.once {
            let item = (record, self.now.below().first, index + 1);
            if once.fields.insert(item) {
                once.added.push(item);
            } else {
                (self.now.is_repeated, self.now.item) = (true, 0);
            }
        }
        self.open = vec![(0, 0, record, Position::default()); self.inner.base()];
        self
    }
    /// What was counted, and the filter; `is_written`: whether what was written is of use.
    pub(crate) fn end(self, is_written: bool) -> (u64, V, Option<CountedFields>) {
        let mut once = self.once;
        if let Some(once) = &mut once {
            if !is_written {
                once.take_back(0);
            }
            once.added.clear();
        }
        let cost = if is_written { self.cost } else { 0 };
        (cost, self.inner, once)
    }
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Whether something was fetched that is not counted, because an object around it became null.
    pub(crate) fn is_partial(&self) -> bool {
        self.is_partial
    }

    fn add(&mut self, amount: u64) {
        self.cost = self.cost.saturating_add(amount);
    }
    fn open(&mut self) {
        let added = self.once.as_ref().map_or(0, |once| once.added.len());
        self.open.push((self.cost, added, self.record, self.now));
    }
}

impl<V: Filter> Filter for Counted<'_, V> {
    const WHOLE: bool = V::WHOLE;
    const COUNTS: bool = true;

    #[inline(always)]
    fn shows(&self, layout: LayoutId, entry: usize) -> bool {
        self.inner.shows(layout, entry)
    }
    #[inline(always)]
    fn next(&self, layout: LayoutId, from: usize) -> usize {
        self.inner.next(layout, from)
    }
    fn begin(&mut self, object: Option<(RecordId, LayoutId)>) {
        // Objects are counted by `enter`, which comes before.
        if object.is_none() {
            self.open();
        }
        self.inner.begin(object);
    }
    fn end(&mut self) {
        if let Some((_, _, record, now)) = self.open.pop() {
            (self.record, self.now) = (record, now);
        }
        self.inner.end();
    }
    fn take_back(&mut self) {
        self.is_partial = true;
        if let Some((cost, added, record, now)) = self.open.pop() {
            (self.cost, self.record, self.now) = (cost, record, now);
            if let Some(once) = &mut self.once {
                once.take_back(added);
            }
        }
        self.inner.take_back();
    }
    fn untold(&mut self) {
        self.inner.untold();
    }
    fn cut(&self, layout: LayoutId, entry: usize) -> Option<Cut> {
        self.inner.cut(layout, entry)
    }
    fn streams(&mut self, record: RecordId, entry: usize) {
        self.inner.streams(record, entry);
    }
    fn base(&self) -> usize {
        self.inner.base()
    }

    fn enter(&mut self, record: RecordId, layout: LayoutId, ty: Option<RuntimeType>) {
        self.open();
        self.add(self.now.item);
        self.record = record;
        self.now = Position::of(self.costs, layout, ty);
    }
    #[inline(always)]
    fn member(&mut self, entry: usize) {
        let args = self.now.turn_to(entry);
        if let Some(once) = &mut self.once {
            let field = (self.record, self.now.below().first, 0);
            self.now.is_repeated = !once.fields.insert(field);
            if self.now.is_repeated {
                // Nor is what is in it, but for what is new there.
                self.now.item = 0;
                return;
            }
            once.added.push(field);
        }
        self.add(args);
    }
    #[inline(always)]
    fn leaf(&mut self, store: &Store<'_>, range: RawRange, lists: u8) {
        if self.now.item == 0 {
            return;
        }
        let items = match lists {
            0 => 1,
            _ => leaves(store.raw(range), lists).unwrap_or(0),
        };
        self.add(self.now.item.saturating_mul(items));
    }
    fn scalar(&mut self) {
        self.add(self.now.item);
    }
    fn value(&mut self, store: &Store<'_>, conditions: &Conditions, range: RawRange, lists: u8) {
        let below = self.now.below();
        let (Some(layout), Some(mut verbatim)) = (below.layout, below.verbatim) else {
            return;
        };
        if self.now.is_repeated {
            return;
        }
        if let Some(cost) = store.counted(range, layout) {
            return self.add(cost.of(self.now.item));
        }
        while verbatim.lists() > lists {
            verbatim = verbatim.item();
        }
        let mut tally = ValueTally::new(self.costs, layout);
        let pattern = &store.plan().derived().pattern;
        let (text, conditions) = (store.raw(range), conditions.for_patterns());
        let depth = (0, Scanner::DEPTH_MAX);
        let means = (&mut Open::default(), &mut tally);
        let _ = pattern.tally(means, text, 0, verbatim, conditions, depth);
        self.add(tally.cost.of(self.now.item));
    }
    fn mark(&self) -> u64 {
        self.cost
    }
    fn reset(&mut self, mark: u64) {
        self.is_partial |= self.cost != mark;
        self.cost = mark;
    }
}
