//! What of a response is written: all of it, or what a filter shows.

use ogive_plan::{LayoutId, RuntimeType};

use crate::{
    condition::Conditions,
    store::{RawRange, RecordId, Store},
};

/// Which entries of the output lists are written. What is told of frames is for those who want to know what was written
/// in the end.
pub(crate) trait Filter {
    /// Whether all entries are: then nobody needs to be asked.
    const WHOLE: bool;
    /// Whether an entry of a layout's output is written.
    fn shows(&self, layout: LayoutId, entry: usize) -> bool;
    /// The first entry from one on that may be written, so that those between need not be asked about.
    #[inline(always)]
    fn next(&self, _: LayoutId, from: usize) -> usize {
        from
    }
    /// An object or list begins.
    fn begin(&mut self, object: Option<(RecordId, LayoutId)>);
    /// The innermost object or list is complete.
    fn end(&mut self);
    /// The innermost object or list is null instead.
    fn take_back(&mut self);
    /// An object is null because nobody has said what it is yet.
    fn untold(&mut self);
    /// How many items of a list are written, if not all are.
    fn cut(&self, layout: LayoutId, entry: usize) -> Option<Cut>;
    /// A list that begins has more items than are written.
    fn streams(&mut self, record: RecordId, entry: usize);
    /// How many of the frames are around what is written.
    fn base(&self) -> usize;

    /// Whether what follows is asked: then somebody counts what is written.
    const COUNTS: bool = false;
    /// An object is about to begin.
    #[inline(always)]
    fn enter(&mut self, _: RecordId, _: LayoutId, _: Option<RuntimeType>) {}
    /// An entry of the innermost object's output is written.
    #[inline(always)]
    fn member(&mut self, _: usize) {}
    /// Its value is a leaf that is used as it stands, or a list of such.
    #[inline(always)]
    fn leaf(&mut self, _: &Store<'_>, _: RawRange, _lists: u8) {}
    /// A leaf, or an item of a list of such.
    #[inline(always)]
    fn scalar(&mut self) {}
    /// An object that is used as it stands, or a list of such.
    #[inline(always)]
    fn value(&mut self, _: &Store<'_>, _: &Conditions, _: RawRange, _lists: u8) {}
    /// What was counted so far...
    #[inline(always)]
    fn mark(&self) -> u64 {
        0
    }
    /// ... and only that: all since was taken back.
    #[inline(always)]
    fn reset(&mut self, _: u64) {}
}

/// How many items of a list are written at first; none if what was asked for makes no sense.
pub(crate) type Cut = Option<u32>;

/// Everything.
pub(crate) struct Whole;

impl Filter for Whole {
    const WHOLE: bool = true;
    #[inline(always)]
    fn shows(&self, _: LayoutId, _: usize) -> bool {
        true
    }
    #[inline(always)]
    fn begin(&mut self, _: Option<(RecordId, LayoutId)>) {}
    #[inline(always)]
    fn end(&mut self) {}
    #[inline(always)]
    fn take_back(&mut self) {}
    #[inline(always)]
    fn untold(&mut self) {}
    #[inline(always)]
    fn cut(&self, _: LayoutId, _: usize) -> Option<Cut> {
        None
    }
    #[inline(always)]
    fn streams(&mut self, _: RecordId, _: usize) {}
    #[inline(always)]
    fn base(&self) -> usize {
        0
    }
}
