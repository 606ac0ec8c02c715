//! Keys of objects that are known before: compared and written in one step.

use crate::lanes::{BASELINE, KEY_BLOCK, Lanes};

/// A key as it stands in an object: `,"key":`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    text: Box<[u8]>,
    /// The first bytes of it, zeros behind it; one more than a block, so that a block without the comma is in it too.
    padded: [u8; KEY_BLOCK + 1],
    /// Which bytes of the first block count.
    mask: u32,
}

impl Key {
    /// `name` must need no escapes.
    pub fn new(name: &str) -> Self {
        Self::from_json(&[b"\"", name.as_bytes(), b"\":"].concat())
    }
    /// From `"key":` as JSON.
    pub fn from_json(member: &[u8]) -> Self {
        let text = [b",", member].concat();
        let mut padded = [0; KEY_BLOCK + 1];
        let len = text.len().min(padded.len());
        padded[..len].copy_from_slice(&text[..len]);
        let mask = match text.len() {
            len if len >= KEY_BLOCK => u32::MAX,
            len => (1 << len) - 1,
        };
        Key {
            text: text.into(),
            padded,
            mask,
        }
    }
    /// Number of bytes, the comma included.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.text.len()
    }
    #[inline(always)]
    fn block(&self) -> &[u8; KEY_BLOCK] {
        self.padded.first_chunk().unwrap_or(&[0; KEY_BLOCK])
    }

    /// Whether the key stands at `at`; whatever is where its comma would be.
    #[inline(always)]
    pub(crate) fn is_behind<L: Lanes>(&self, lanes: L, text: &[u8], at: usize) -> bool {
        let block = lanes.matches(text, at, self.block(), self.mask & !1);
        match block {
            Some(equal) if self.text.len() <= KEY_BLOCK => equal,
            Some(false) => false,
            _ => {
                let key = self.text.get(1..).unwrap_or_default();
                text.get(at + 1..).is_some_and(|text| text.starts_with(key))
            }
        }
    }
    /// Whether the key stands at `at`, after its comma unless it is the `first` one, which has none.
    #[inline(always)]
    pub fn stands_at(&self, text: &[u8], at: usize, first: bool) -> bool {
        if first {
            return at > 0 && self.is_behind(BASELINE, text, at - 1);
        }
        text.get(at) == Some(&b',') && self.is_behind(BASELINE, text, at)
    }
    /// Appends the key, after a comma unless it is the `first` one.
    #[inline(always)]
    pub fn append(&self, out: &mut Vec<u8>, first: bool) {
        let len = self.text.len() - usize::from(first);
        let block = if first {
            self.padded.last_chunk()
        } else {
            self.padded.first_chunk()
        };
        match block {
            Some(block) if len <= KEY_BLOCK => append_block(out, block, len),
            _ => out.extend_from_slice(&self.text[usize::from(first)..]),
        }
    }
}

/// Appends the first `len` bytes of a block.
#[inline(always)]
fn append_block(out: &mut Vec<u8>, block: &[u8; KEY_BLOCK], len: usize) {
    let end = out.len() + len;
    // More than wanted, but in one step.
    out.extend_from_slice(block);
    out.truncate(end);
}

/// Appends `len` bytes of `text` from `start` on, or as many as there are; quick for short ones.
#[inline(always)]
pub fn append_short(out: &mut Vec<u8>, text: &[u8], start: usize, len: usize) {
    let rest = text.get(start..).unwrap_or_default();
    match rest.first_chunk() {
        Some(block) if len <= KEY_BLOCK => append_block(out, block, len),
        _ => out.extend_from_slice(&rest[..len.min(rest.len())]),
    }
}
