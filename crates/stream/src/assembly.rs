//! Messages of WebSockets that are not whole: fragments of them, and the frame whose payload is still coming.
//!
//! A payload goes to its message as it comes, so nothing but that has room for it, and how much room that is is known.

use bytes::Bytes;

use crate::frame::{Head, mask};

/// A message that is not whole.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) is_text: bool,
    bytes: Vec<u8>,
    /// How many of them are whole characters.
    checked: usize,
    /// The frame of which more is to come, if there is one; else the next frame is.
    frame: Option<FrameRest>,
}

/// What is to come of a frame.
#[derive(Debug)]
struct FrameRest {
    payload: usize,
    mask: Option<[u8; 4]>,
    is_last: bool,
}

impl Assembly {
    /// A message of which nothing has come.
    pub(crate) fn new(is_text: bool) -> Self {
        Assembly {
            is_text,
            bytes: Vec::new(),
            checked: 0,
            frame: None,
        }
    }
    /// Begins with a frame whose payload has `payload` bytes.
    pub(crate) fn begin_frame(&mut self, head: Head, payload: usize) {
        self.frame = Some(FrameRest {
            payload,
            mask: head.mask,
            is_last: head.is_last,
        });
    }
    /// Bytes that are to come of the frame that has begun; `None` if none has.
    pub(crate) fn frame_rest(&self) -> Option<usize> {
        self.frame.as_ref().map(|frame| frame.payload)
    }
    /// Takes the next bytes of the frame: not more than are to come. When the frame has ended with them, whether it was the
    /// last one.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<bool> {
        let frame = self.frame.as_mut()?;
        let begin = self.bytes.len();
        if self.bytes.capacity() - begin < bytes.len() {
            // Twice the room, but for no more than the frame brings.
            let more = begin.max(bytes.len()).min(frame.payload);
            self.bytes.reserve_exact(more);
        }
        self.bytes.extend_from_slice(bytes);
        if let Some(key) = &mut frame.mask {
            mask(&mut self.bytes[begin..], *key);
            key.rotate_left(bytes.len() % 4);
        }
        frame.payload -= bytes.len();
        if frame.payload > 0 {
            return None;
        }
        self.frame.take().map(|frame| frame.is_last)
    }
    /// Takes a whole payload, without its mask.
    pub(crate) fn push_whole(&mut self, payload: &[u8]) {
        self.bytes.extend_from_slice(payload);
    }
    /// Whether it is said to be text and is none, however it goes on.
    pub(crate) fn is_no_text(&mut self) -> bool {
        if !self.is_text {
            return false;
        }
        let error = std::str::from_utf8(&self.bytes[self.checked..]).err();
        self.checked = error.map_or(self.bytes.len(), |error| self.checked + error.valid_up_to());
        error.is_some_and(|error| error.error_len().is_some())
    }
    /// Bytes that came.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
    /// Bytes that it takes.
    pub(crate) fn room(&self) -> usize {
        self.bytes.capacity()
    }
    /// All of it.
    pub(crate) fn whole(self) -> Bytes {
        self.bytes.into()
    }
}
