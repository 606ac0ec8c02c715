//! The response in the making, and made: text of ours, and ranges of subgraphs' answers that are never copied.
//!
//! Small ranges are copied into the text, because a vectored write of many small pieces costs more than the copy. Big
//! ones share the memory of the answer they came in.
//!
//! Values that follow one another in an answer mostly do so in the response, with the same keys, commas and brackets
//! between them. So what was written last is held back as a *run* of an answer; what comes next is compared with what
//! follows there, and if it is the same, the run grows and nothing is written.

use std::ops::Range;

use bytes::Bytes;
use ogive_json::{Key, append_short};
use ogive_plan::FetchId;

use crate::store::{RawRange, Source, Store};

/// Ranges of fewer bytes are copied: a piece of its own costs as much as copying so many.
const SHARED_BYTES_MIN: usize = 16 << 10;

/// Runs up to here are written in line.
const SHORT: usize = 32;

/// Bounds of what is set aside for text before anything is written.
const TEXT_BYTES_MIN: usize = 512;
const TEXT_BYTES_MAX: usize = 128 << 10;

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
    /// Everything but the shared ranges and the run.
    text: Vec<u8>,
    /// Shared ranges, and where in `text` they belong.
    cuts: Vec<(usize, RawRange)>,
    /// What was written last, if it is part of an answer; possibly nothing.
    run: RawRange,
    /// The answer that the run is part of.
    answer: &'e [u8],
    /// Bytes of shared ranges.
    shared: usize,
    /// Bytes that there may be.
    bytes_max: usize,
    /// Whether something was left out because there would have been more.
    overflows: bool,
}

/// A position in an [`Output`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    text: usize,
    cuts: usize,
    run: RawRange,
}

impl<'e, 'p> Output<'e, 'p> {
    #[inline(always)]
    pub(crate) fn new(store: &'e Store<'p>) -> Self {
        Output {
            store,
            text: Vec::with_capacity(store.likely_bytes().clamp(TEXT_BYTES_MIN, TEXT_BYTES_MAX)),
            cuts: Vec::new(),
            run: RawRange::unchecked(Source::new(FetchId(0), 0), 0..0),
            answer: &[],
            shared: 0,
            bytes_max: store.limits().response_bytes_max,
            overflows: false,
        }
    }
    /// One for which no room is set aside: there may be many of them.
    pub(crate) fn unreserved(store: &'e Store<'p>) -> Self {
        Output {
            store,
            text: Vec::new(),
            cuts: Vec::new(),
            run: RawRange::unchecked(Source::new(FetchId(0), 0), 0..0),
            answer: &[],
            shared: 0,
            bytes_max: store.limits().response_bytes_max,
            overflows: false,
        }
    }
    /// Appends a value of an answer.
    #[inline]
    pub(crate) fn put(&mut self, range: RawRange) {
        if self.run.len > 0
            && self.run.is_of_answer(range)
            && self.run.start + self.run.len == range.start
        {
            self.run.len += range.len;
            return;
        }
        self.flush();
        self.turn_to(range);
    }
    /// Appends a member of an object: a comma if it is not the first one, the key with its colon, and the value.
    #[inline(always)]
    pub(crate) fn put_member(&mut self, first: bool, key: &Key, range: RawRange) {
        if self.run.len > 0 {
            let end = self.run.start + self.run.len;
            let gap = key.len() as u32 - u32::from(first);
            if range.start == end + gap
                && self.run.is_of_answer(range)
                && key.stands_at(self.answer, end as usize, first)
            {
                self.run.len += gap + range.len;
                return;
            }
            self.flush();
        }
        key.append(&mut self.text, first);
        self.turn_to(range);
    }
    /// Begins a run.
    #[inline(always)]
    fn turn_to(&mut self, range: RawRange) {
        if self.answer.is_empty() || !self.run.is_of_answer(range) {
            self.answer = self.store.answer_of(range);
        }
        self.run = range;
    }
    /// Appends the key of a member, after a comma if it is not the first one.
    #[inline(always)]
    pub(crate) fn put_key(&mut self, first: bool, key: &Key) {
        if self.run.len > 0 {
            let end = (self.run.start + self.run.len) as usize;
            if key.stands_at(self.answer, end, first) {
                self.run.len += key.len() as u32 - u32::from(first);
                return;
            }
            self.flush();
        }
        key.append(&mut self.text, first);
    }
    /// Appends text of ours.
    #[inline]
    pub(crate) fn literal(&mut self, text: &[u8]) {
        if self.run.len > 0 {
            let end = (self.run.start + self.run.len) as usize;
            if self.answer.get(end..end + text.len()) == Some(text) {
                self.run.len += text.len() as u32;
                return;
            }
            self.flush();
        }
        if text.len() > SHORT && self.is_too_long_with(text.len()) {
            self.overflows = true;
            return;
        }
        self.text.extend_from_slice(text);
    }
    /// Appends a byte of ours.
    #[inline(always)]
    pub(crate) fn byte(&mut self, byte: u8) {
        if self.run.len > 0 {
            let end = (self.run.start + self.run.len) as usize;
            if self.answer.get(end) == Some(&byte) {
                self.run.len += 1;
                return;
            }
            self.flush();
        }
        self.text.push(byte);
    }
    /// For appending text of ours in any other way.
    pub(crate) fn text(&mut self) -> &mut Vec<u8> {
        self.flush();
        &mut self.text
    }
    /// Writes the run.
    #[inline(always)]
    fn flush(&mut self) {
        let run = self.run;
        if run.len as usize <= SHORT {
            append_short(
                &mut self.text,
                self.answer,
                run.start as usize,
                run.len as usize,
            );
            self.run.len = 0;
            return;
        }
        self.flush_long();
    }
    #[inline(never)]
    fn flush_long(&mut self) {
        let run = self.run;
        let (start, len) = (run.start as usize, run.len as usize);
        // Many records may have one value in common. (What is shorter is bounded by the number of values.)
        if self.is_too_long_with(len) {
            self.overflows = true;
        } else if len >= SHARED_BYTES_MIN {
            self.shared += len;
            self.cuts.push((self.text.len(), run));
        } else {
            append_short(&mut self.text, self.answer, start, len);
        }
        self.run.len = 0;
    }
    /// A position behind which only what is written from now on stands.
    pub(crate) fn fresh(&mut self) -> Position {
        self.flush();
        self.position()
    }
    /// Where in the text everything since a [fresh](Output::fresh) position stands; `None` if it is in several pieces.
    pub(crate) fn text_since(&mut self, start: Position) -> Option<Range<usize>> {
        self.flush();
        (self.cuts.len() == start.cuts).then_some(start.text..self.text.len())
    }
    /// Appends some of the text once more.
    pub(crate) fn again(&mut self, text: Range<usize>) {
        self.flush();
        if self.is_too_long_with(text.len()) {
            self.overflows = true;
            return;
        }
        self.text.extend_from_within(text);
    }
    /// Whether it is too long with so many more bytes.
    fn is_too_long_with(&self, more: usize) -> bool {
        self.text.len() + self.shared + more > self.bytes_max
    }
    /// Whether it is longer than it may be, or would be, had nothing been left out. Then nothing of it is of use, even if
    /// some of it is taken back.
    pub(crate) fn is_too_long(&mut self) -> bool {
        self.overflows |= self.is_too_long_with(0);
        self.overflows
    }
    /// Begins anew.
    pub(crate) fn restart(&mut self) {
        self.text.clear();
        self.cuts.clear();
        self.run.len = 0;
        (self.shared, self.overflows) = (0, false);
    }
    pub(crate) fn position(&self) -> Position {
        Position {
            text: self.text.len(),
            cuts: self.cuts.len(),
            run: self.run,
        }
    }
    /// Takes everything back that was written since.
    pub(crate) fn truncate(&mut self, position: Position) {
        self.text.truncate(position.text);
        let gone = self.cuts.drain(position.cuts..);
        self.shared -= gone.map(|(_, range)| range.len as usize).sum::<usize>();
        self.run = position.run;
        self.answer = self.store.answer_of(position.run);
    }
    pub(crate) fn finish(mut self) -> ResponseBody {
        self.flush();
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
