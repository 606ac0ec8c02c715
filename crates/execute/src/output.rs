//! The response in the making, and made: text of ours, and ranges of subgraphs' answers that are never copied.
//!
//! Small ranges are copied into the text, because a vectored write of many small pieces costs more than the copy. Big
//! ones share the memory of the answer they came in.

use bytes::Bytes;

use crate::store::{RawRange, Store};

/// Ranges of fewer bytes are copied.
const SHARED_BYTES_MIN: usize = 256;

/// The body of a response, in pieces.
#[derive(Clone, Debug)]
pub struct ResponseBody {
    segments: Vec<Bytes>,
    len: usize,
}

impl ResponseBody {
    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there is no byte; never true for a response.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The bytes in pieces that are to be written one after another. Pieces share memory with subgraphs' answers;
    /// nothing is copied.
    pub fn segments(&self) -> impl Iterator<Item = Bytes> {
        self.segments.iter().cloned()
    }
    /// The same; every piece can be let go as soon as it is written.
    pub fn into_segments(self) -> impl Iterator<Item = Bytes> {
        self.segments.into_iter()
    }
    /// The bytes in one piece; copies them if there are several.
    pub fn into_bytes(self) -> Bytes {
        let mut segments = self.segments;
        match segments.len() {
            0 => Bytes::new(),
            1 => segments.swap_remove(0),
            _ => {
                let mut whole = Vec::with_capacity(self.len);
                for segment in &segments {
                    whole.extend_from_slice(segment);
                }
                Bytes::from(whole)
            }
        }
    }
}

/// Two bodies are equal if their bytes are, however they are cut.
impl PartialEq for ResponseBody {
    fn eq(&self, other: &Self) -> bool {
        fn bytes(body: &ResponseBody) -> impl Iterator<Item = u8> {
            body.segments.iter().flat_map(|s| s.iter().copied())
        }
        self.len == other.len && bytes(self).eq(bytes(other))
    }
}
impl Eq for ResponseBody {}

/// A response that is being written.
pub(crate) struct Output<'e, 'p> {
    store: &'e Store<'p>,
    /// Everything but the shared ranges.
    pub(crate) text: Vec<u8>,
    /// Shared ranges, and where in `text` they belong.
    cuts: Vec<(usize, RawRange)>,
}

/// A position in an [`Output`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    text: usize,
    cuts: usize,
}

impl<'e, 'p> Output<'e, 'p> {
    pub(crate) fn new(store: &'e Store<'p>) -> Self {
        Output {
            store,
            text: Vec::with_capacity(512),
            cuts: Vec::new(),
        }
    }
    /// Appends a value of an answer.
    pub(crate) fn put(&mut self, range: RawRange) {
        if (range.len as usize) < SHARED_BYTES_MIN {
            self.text.extend_from_slice(self.store.raw(range));
        } else {
            self.cuts.push((self.text.len(), range));
        }
    }
    pub(crate) fn position(&self) -> Position {
        Position {
            text: self.text.len(),
            cuts: self.cuts.len(),
        }
    }
    /// Takes everything back that was written since.
    pub(crate) fn truncate(&mut self, position: Position) {
        self.text.truncate(position.text);
        self.cuts.truncate(position.cuts);
    }
    pub(crate) fn finish(self) -> ResponseBody {
        let text = Bytes::from(self.text);
        let mut segments = Vec::with_capacity(2 * self.cuts.len() + 1);
        let mut written = 0;
        for (at, range) in self.cuts {
            if written < at {
                segments.push(text.slice(written..at));
                written = at;
            }
            segments.push(self.store.shared(range));
        }
        if written < text.len() {
            segments.push(text.slice(written..));
        }
        ResponseBody {
            len: segments.iter().map(Bytes::len).sum(),
            segments,
        }
    }
}
