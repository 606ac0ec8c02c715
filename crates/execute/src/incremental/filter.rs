//! What of an object is written at one time: the entries of one key; of a streamed list, its first items.

use ogive_plan::LayoutId;

use crate::{
    incremental::{
        groups::{Groups, Shown},
        streams::Streams,
    },
    respond::{Cut, Filter},
    store::RecordId,
};

/// See the module documentation.
pub(crate) struct KeyFilter<'g, 'p> {
    groups: &'g Groups<'p>,
    streams: &'g Streams<'p>,
    shown: Shown,
    base: usize,
    /// Objects that were written and of which more is to come.
    pub(crate) written: Vec<RecordId>,
    /// Whether an object was met of which nobody has said yet what it is.
    pub(crate) is_untold: bool,
    /// For everything that is open: how many there were before it.
    open: Vec<(usize, usize)>,
    /// Lists with more items than were written: the object, and the entry of its output.
    pub(crate) lists: Vec<(RecordId, usize)>,
}

impl<'g, 'p> KeyFilter<'g, 'p> {
    /// Of an object; or of an item of a list, if there are frames around it.
    pub(crate) fn new(
        groups: &'g Groups<'p>,
        streams: &'g Streams<'p>,
        shown: Shown,
        base: usize,
    ) -> Self {
        KeyFilter {
            groups,
            streams,
            shown,
            base,
            written: Vec::new(),
            is_untold: false,
            open: vec![(0, 0); base],
            lists: Vec::new(),
        }
    }
}

impl Filter for KeyFilter<'_, '_> {
    const WHOLE: bool = false;
    fn shows(&self, layout: LayoutId, entry: usize) -> bool {
        let key = self.groups.key(layout, entry);
        self.groups.shows(self.shown, key)
    }
    fn next(&self, layout: LayoutId, from: usize) -> usize {
        match self.shown.floor {
            Some(_) => from,
            None => self.groups.next_of_key(layout, self.shown.key, from),
        }
    }
    fn begin(&mut self, object: Option<(RecordId, LayoutId)>) {
        self.open.push((self.written.len(), self.lists.len()));
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
            self.written.truncate(before.0);
            self.lists.truncate(before.1);
        }
    }
    fn untold(&mut self) {
        self.is_untold = true;
    }
    fn cut(&self, layout: LayoutId, entry: usize) -> Option<Cut> {
        let row = self.streams.get(layout, entry)?;
        Some(self.streams.row(row).initial)
    }
    fn streams(&mut self, record: RecordId, entry: usize) {
        self.lists.push((record, entry));
    }
    fn base(&self) -> usize {
        self.base
    }
}
