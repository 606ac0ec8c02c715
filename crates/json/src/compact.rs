//! Taking the white space out of a text that is printed for people.
//!
//! Reading is fastest where nothing stands between tokens, and clients need no white space either. So an answer that
//! has some is rewritten once, a block at a time: quotes and backslashes tell what is inside a string, everything else
//! that is white space is left out; by one instruction without a branch where the processor has it, otherwise one run
//! after another. Nothing is validated. The rewritten text is JSON if and only if the text is: what could become one
//! token by losing the space inside it is not rewritten at all.

use crate::lanes::{self, Job, Lanes, TextMasks, is_punctuation};

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
#[derive(Default)]
struct State {
    /// All ones if the next byte is inside a string.
    inside: u64,
    /// Whether the next byte is escaped.
    escaped: bool,
    /// Whether the byte before is part of a number or literal, for [`State::kept`].
    word: bool,
    /// Whether the byte before is white space, behind a number or literal; for [`State::by_runs`] behind anything.
    gap: bool,
    /// Whether only white space stood between two numbers or literals.
    joined: bool,
    /// The last byte that was kept, for [`State::by_runs`]; a comma before the first.
    last: u8,
}

/// Bytes that are read before room is made for more; few enough to stay in the nearest cache.
const STEP: usize = 4096;
/// Most bytes of a block.
const BLOCK_MAX: usize = 64;

impl Job for Compact<'_> {
    type Output = Option<Vec<u8>>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Option<Vec<u8>> {
        let text = self.text;
        // Blocks are written whole, whatever counts of them.
        let mut out = Vec::with_capacity(text.len() + STEP + 2 * BLOCK_MAX);
        let mut state = State {
            last: b',',
            ..State::default()
        };
        let mut at = 0;
        while at + L::BLOCK <= text.len() {
            let step = &text[..text.len().min(at + STEP)];
            let mut len = out.len();
            out.resize(len + STEP + 2 * BLOCK_MAX, 0);
            while let Some(masks) = lanes.text_masks(step, at) {
                if L::SQUEEZES {
                    let keep = state.kept(lanes, masks);
                    lanes.squeeze(text, at, keep, &mut out[len..]);
                    len += keep.count_ones() as usize;
                } else {
                    len += state.by_runs(lanes, masks, &text[at..], &mut out[len..]);
                }
                at += L::BLOCK;
            }
            out.truncate(len);
            if state.joined {
                return None;
            }
        }
        let rest = &text[at..];
        let mut last = [b' '; BLOCK_MAX];
        last[..rest.len()].copy_from_slice(rest);
        if let Some(masks) = lanes.text_masks(&last, 0) {
            let mut block = [0; BLOCK_MAX];
            let len = if L::SQUEEZES {
                let keep = state.kept(lanes, masks);
                lanes.squeeze(&last, 0, keep, &mut block);
                keep.count_ones() as usize
            } else {
                state.by_runs(lanes, masks, &last, &mut block)
            };
            // What was added stays only inside a string that does not end.
            let added = match state.inside {
                0 => 0,
                _ => L::BLOCK - rest.len(),
            };
            out.extend_from_slice(&block[..len - added]);
        }
        (!state.joined).then_some(out)
    }
}

impl State {
    /// Takes in a block; says which bytes of it stay.
    #[inline(always)]
    fn kept<L: Lanes>(&mut self, lanes: L, masks: TextMasks) -> u64 {
        let all = u64::MAX >> (64 - L::BLOCK);
        let strings = self.strings(lanes, &masks);
        let space = masks.space & !strings;
        let word = !(strings | masks.quote | space | masks.punctuation) & all;
        // Adding the first byte of a run of white space to the run gives the byte behind it.
        let first = (word << 1 | u64::from(self.word | self.gap)) & space;
        let (sum, beyond) = space.overflowing_add(first);
        let behind = sum & !space | u64::from(self.gap & (space & 1 == 0));
        self.joined |= behind & word != 0;
        self.word = word >> (L::BLOCK - 1) & 1 != 0;
        self.gap = beyond | (L::BLOCK < 64 && sum >> (L::BLOCK % 64) & 1 != 0);
        !space & all
    }

    /// What is inside strings: from every opening quote to before the closing one.
    #[inline(always)]
    fn strings<L: Lanes>(&mut self, lanes: L, masks: &TextMasks) -> u64 {
        let mut quote = masks.quote;
        if masks.slash != 0 || self.escaped {
            quote &= !self.escapes::<L>(masks.slash);
        }
        let strings = lanes.parities(quote) ^ self.inside;
        self.inside ^= u64::from(quote.count_ones() & 1).wrapping_neg();
        strings
    }

    /// Takes in a block, the first of `text`, and writes what stays of it, one run after another; says how much that is.
    #[inline(always)]
    fn by_runs<L: Lanes>(
        &mut self,
        lanes: L,
        masks: TextMasks,
        text: &[u8],
        out: &mut [u8],
    ) -> usize {
        let all = u64::MAX >> (64 - L::BLOCK);
        let strings = self.strings(lanes, &masks);
        let space = masks.space & !strings;
        let mut len = 0;
        if space == 0 && !self.gap {
            copy::<L>(text, 0, L::BLOCK, out);
            len = L::BLOCK;
        } else {
            let (mut keep, mut before) = (!space & all, self.gap);
            while keep != 0 {
                let start = keep.trailing_zeros() as usize;
                let n = (!(keep >> start)).trailing_zeros() as usize;
                if before || start > 0 {
                    let last = if len > 0 { out[len - 1] } else { self.last };
                    self.joined |= is_word(last) && is_word(text[start]);
                }
                before = true;
                copy::<L>(text, start, n, &mut out[len..]);
                len += n;
                keep &= u64::MAX.checked_shl((start + n) as u32).unwrap_or_default();
            }
        }
        if len > 0 {
            self.last = out[len - 1];
        }
        self.gap = space >> (L::BLOCK - 1) & 1 != 0;
        len
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
}

/// Copies `len` bytes, and if there is room a whole block: its length is known to the compiler.
#[inline(always)]
fn copy<L: Lanes>(text: &[u8], start: usize, len: usize, out: &mut [u8]) {
    match (text.get(start..start + L::BLOCK), out.get_mut(..L::BLOCK)) {
        (Some(from), Some(to)) => to.copy_from_slice(from),
        _ => out[..len].copy_from_slice(&text[start..start + len]),
    }
}

/// Whether a byte outside strings is part of a number or literal (or of nothing that JSON knows).
#[inline(always)]
fn is_word(byte: u8) -> bool {
    !is_punctuation(byte) && byte != b'"'
}
