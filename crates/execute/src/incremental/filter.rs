//! What of an object is written at one time: the entries of one key.

use ogive_plan::LayoutId;

use crate::{incremental::groups::Groups, respond::Filter, store::RecordId};

/// See the module documentation.
pub(crate) struct KeyFilter<'g, 'p> {
    groups: &'g Groups<'p>,
    key: u32,
    /// Objects that were written and of which more is to come.
    pub(crate) written: Vec<RecordId>,
    /// Whether an object was met of which nobody has said yet what it is.
    pub(crate) is_untold: bool,
    /// For everything that is open: how many there were before it.
    open: Vec<usize>,
}

impl<'g, 'p> KeyFilter<'g, 'p> {
    pub(crate) fn new(groups: &'g Groups<'p>, key: u32) -> Self {
        KeyFilter {
            groups,
            key,
            written: Vec::new(),
            is_untold: false,
            open: Vec::new(),
        }
    }
}

impl Filter for KeyFilter<'_, '_> {
    const WHOLE: bool = false;
    fn shows(&self, layout: LayoutId, entry: usize) -> bool {
        self.groups.key(layout, entry) == self.key
    }
    fn begin(&mut self, object: Option<(RecordId, LayoutId)>) {
        self.open.push(self.written.len());
        if let Some((record, layout)) = object
            && !self.groups.keys(layout).is_empty()
        {
            self.written.push(record);
        }
    }
    fn end(&mut self) {
        self.open.pop();
    }
    fn take_back(&mut self) {
        if let Some(before) = self.open.pop() {
            self.written.truncate(before);
        }
    }
    fn untold(&mut self) {
        self.is_untold = true;
    }
}
