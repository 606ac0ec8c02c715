//! Taking the white space out of a text that is printed for people.
//!
//! Reading is fastest where nothing stands between tokens, and clients need no white space either. So an answer that
//! has some is rewritten once, a block at a time: quotes and backslashes tell what is inside a string, everything else
//! that is white space is left out. Nothing is validated. The rewritten text is JSON if and only if the text is: what
//! could become one token by losing the space inside it is not rewritten at all.

use crate::lanes::{self, Job, Lanes, TextMasks};

/// Whether a text begins as texts do that have white space between tokens. Looks at the first few bytes only.
pub fn is_spaced(text: &[u8]) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\n' | b'\t' | b'\r'));
    let head = &text[..text.len().min(HEAD)];
    let colon = head.iter().position(|byte| *byte == b':');
    is_space(text.first())
        || is_space(text.get(1))
        || colon.is_some_and(|at| is_space(text.get(at + 1)))
}

/// Bytes in which the first colon is looked for.
const HEAD: usize = 24;

/// The text without white space between tokens: O(n). `None` if it is no JSON in a way that leaving white space out
/// could hide, as in `1 2`.
pub fn compact(text: &[u8]) -> Option<Vec<u8>> {
    lanes::run(Compact { text })
}

struct Compact<'t> {
    text: &'t [u8],
}

/// What is known of the blocks before.
struct State {
    out: Vec<u8>,
    /// Bytes of `out` that count.
    len: usize,
    /// All ones if the next byte is inside a string.
    inside: u64,
    /// Whether the next byte is escaped.
    escaped: bool,
    /// Whether white space was left out right before.
    gap: bool,
}

/// Most bytes of a block.
const BLOCK_MAX: usize = 64;

impl Job for Compact<'_> {
    type Output = Option<Vec<u8>>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Option<Vec<u8>> {
        let text = self.text;
        let mut state = State {
            // Copies go in whole blocks.
            out: vec![0; text.len() + BLOCK_MAX],
            len: 0,
            inside: 0,
            escaped: false,
            gap: false,
        };
        let mut at = 0;
        while let Some(masks) = lanes.text_masks(text, at) {
            state.block::<L>(&text[at..], masks, L::BLOCK)?;
            at += L::BLOCK;
        }
        let rest = &text[at..];
        let mut last = [b' '; BLOCK_MAX];
        last[..rest.len()].copy_from_slice(rest);
        if let Some(masks) = lanes.text_masks(&last, 0) {
            state.block::<L>(&last, masks, rest.len())?;
        }
        state.out.truncate(state.len);
        Some(state.out)
    }
}

impl State {
    /// Takes in a block, of which `n` bytes count.
    #[inline(always)]
    fn block<L: Lanes>(&mut self, text: &[u8], masks: TextMasks, n: usize) -> Option<()> {
        let mut quote = masks.quote;
        if masks.slash != 0 || self.escaped {
            quote &= !self.escapes::<L>(masks.slash);
        }
        let mut strings = quote;
        for shift in [1, 2, 4, 8, 16, 32] {
            strings ^= strings << shift;
        }
        strings ^= self.inside;
        self.inside = match strings >> (L::BLOCK - 1) & 1 {
            0 => 0,
            _ => u64::MAX,
        };
        let space = masks.space & !strings;
        let counts = u64::MAX >> (64 - n.max(1)) & u64::from(n > 0).wrapping_neg();
        let mut keep = !space & counts;
        if space == 0 && !self.gap && n == L::BLOCK {
            self.copy::<L>(text, 0, n);
            return Some(());
        }
        let mut before = self.gap;
        while keep != 0 {
            let start = keep.trailing_zeros() as usize;
            let len = (!(keep >> start)).trailing_zeros() as usize;
            if (before || start > 0) && self.len > 0 {
                let (last, next) = (self.out[self.len - 1], text[start]);
                if is_word(last) && is_word(next) {
                    return None;
                }
            }
            before = true;
            self.copy::<L>(text, start, len);
            keep &= u64::MAX
                .checked_shl((start + len) as u32)
                .unwrap_or_default();
        }
        self.gap = space >> (L::BLOCK - 1) & 1 != 0;
        Some(())
    }

    /// Which bytes of a block are escaped.
    #[inline(always)]
    fn escapes<L: Lanes>(&mut self, slash: u64) -> u64 {
        let mut escaped = u64::from(self.escaped);
        self.escaped = false;
        let mut slashes = slash & !escaped;
        while slashes != 0 {
            let at = slashes.trailing_zeros() as usize;
            if at + 1 == L::BLOCK {
                self.escaped = true;
                break;
            }
            escaped |= 1 << (at + 1);
            slashes &= !(3 << at);
        }
        escaped
    }

    /// Appends `len` bytes of a block.
    #[inline(always)]
    fn copy<L: Lanes>(&mut self, text: &[u8], start: usize, len: usize) {
        let to = self.len;
        self.len += len;
        // A whole block if there is one: its length is known to the compiler.
        match (
            text.get(start..start + L::BLOCK),
            self.out.get_mut(to..to + L::BLOCK),
        ) {
            (Some(from), Some(to)) => to.copy_from_slice(from),
            _ => self.out[to..to + len].copy_from_slice(&text[start..start + len]),
        }
    }
}

/// Whether a byte outside strings is part of a number or literal (or of nothing that JSON knows).
#[inline(always)]
fn is_word(byte: u8) -> bool {
    !matches!(byte, b'{' | b'}' | b'[' | b']' | b':' | b',' | b'"')
}
