//! What an answer consists of: fragments with their units, and what is left of lists. See `delivery`.

use std::{ops::Range, rc::Rc};

use bytes::Bytes;
use ogive_json::write_string;
use ogive_plan::LeafKind;

use crate::{
    graphql_error::{Path, PathStep},
    incremental::{errors::Piece, groups::Shown, streams::Streams},
    output::ResponseBody,
    run::Run,
    store::{ListRange, RawRange, RecordId},
};

/// What is announced and completed: a fragment, or a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Fragment(usize),
    Stream(usize),
}

/// What was written of a piece.
pub(super) struct PieceOutput {
    pub(super) body: Option<ResponseBody>,
    pub(super) errors: Option<Bytes>,
    /// Objects of which more is to come.
    pub(super) records: Vec<RecordId>,
    /// Lists of which more is to come: the object, and the entry of its output.
    pub(super) lists: Vec<(RecordId, usize)>,
    /// What it costs, if somebody counts it.
    pub(super) cost: u64,
}

/// A group at one object.
pub(super) struct Fragment {
    pub(super) group: u32,
    pub(super) record: RecordId,
    pub(super) units: Vec<usize>,
    pub(super) children: Vec<usize>,
    /// What it was announced as, until it is complete.
    pub(super) id: Option<u32>,
    /// How many of its units were written...
    pub(super) written: usize,
    /// ... and sent, once all are written.
    pub(super) sent: usize,
}

/// What is written at one time of one object.
pub(super) struct Unit {
    pub(super) piece: Piece,
    pub(super) fragments: Vec<usize>,
    /// Lists in it of which more is to come.
    pub(super) streams: Vec<usize>,
    pub(super) outcome: Outcome,
}

/// What came of writing a unit.
pub(super) enum Outcome {
    Waiting,
    /// With its errors, and what it costs.
    Written(ResponseBody, Option<Bytes>, u64),
    Failed(Bytes),
    Sent,
}

/// What is left of a list at one object.
pub(super) struct OpenStream {
    /// Which list it is.
    pub(super) row: usize,
    pub(super) record: RecordId,
    pub(super) shown: Shown,
    /// The group that it is part of.
    pub(super) group: Option<u32>,
    /// Groups around it that its items have something of.
    pub(super) waits_for: Rc<[u32]>,
    pub(super) items: Items,
    pub(super) next: u32,
    pub(super) id: u32,
}

/// What a list has.
pub(super) enum Items {
    Objects(ListRange),
    Leaves(LeafKind, RawRange, Vec<Range<usize>>),
}

impl Items {
    pub(super) fn len(&self) -> u32 {
        match self {
            Items::Objects(list) => list.len,
            Items::Leaves(_, _, items) => items.len() as u32,
        }
    }
}

impl Fragment {
    /// The first of its units that was not written as part of it.
    pub(super) fn next_unwritten(&self) -> Option<usize> {
        self.units.get(self.written).copied()
    }
    /// The first of its units that was not sent as part of it.
    pub(super) fn next_unsent(&self) -> Option<usize> {
        self.units.get(self.sent).copied()
    }
}

impl OpenStream {
    /// The path of the list, or of an item.
    pub(super) fn path<'e>(
        &self,
        streams: &Streams<'_>,
        run: &Run<'e>,
        item: Option<u32>,
    ) -> Path<'e> {
        let store = run.store();
        let mut path = store.path(self.record);
        let entry = streams.row(self.row).entry;
        let outputs = &store.plan().layouts[store.layout(self.record)].output;
        path.extend(outputs.get(entry).map(|entry| PathStep::Key(&entry.key)));
        path.extend(item.map(PathStep::Index));
        path
    }
}

/// A path as a JSON list.
pub(super) fn json(path: &[PathStep<'_>]) -> Bytes {
    let mut out = vec![b'['];
    for (at, step) in path.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        match step {
            PathStep::Key(key) => write_string(&mut out, key),
            PathStep::Index(index) => out.extend_from_slice(index.to_string().as_bytes()),
        }
    }
    out.push(b']');
    Bytes::from(out)
}
