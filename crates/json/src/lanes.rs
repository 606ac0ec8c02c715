//! Vector instructions for scanning, chosen once per process: AVX-512, AVX2, SSE4.2, NEON, or plain bytes.
//!
//! A value that implements [`Lanes`] is the proof that its instructions exist: only [`run`], which has asked the
//! processor, makes the ones that need asking. Scanning code is written once, generic over `Lanes`, and compiled once
//! per instruction set ([`Job`]); the choice is made per scan, not per string.
//!
//! Other crates may scan with them too: what a [`Job`] does is compiled for every set, and needs no `unsafe`.
//!
//! All `unsafe` of the hot path is here (ARCHITECTURE.md names the other places of the workspace). Every load goes through
//! a reference to an array of the load's size, so nothing is read outside the text.
//!
//! Invariants: all implementations give the same answers (`tests/it`, `fuzz/fuzz_targets/json.rs`); [`Scalar`] has no
//! `unsafe` and is what Miri runs, by `cargo xtask miri`. NEON is type-checked (`cargo xtask foreign`); the tests have
//! not been run on a processor that has it.

#![allow(
    unsafe_code,
    reason = "vector instructions; each block says why it is sound"
)]

use std::sync::atomic::{AtomicU8, Ordering};

/// Instruction sets, from plain to wide.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// One byte at a time.
    Scalar = 1,
    /// 16 bytes at a time, aarch64.
    Neon = 2,
    /// 16 bytes at a time, `x86_64`.
    Sse42 = 3,
    /// 32 bytes at a time.
    Avx2 = 4,
    /// 64 bytes at a time; with VBMI2, so not on the first processors that had AVX-512.
    Avx512 = 5,
}

impl Level {
    /// The widest set this processor has, or the one set by [`Level::force`].
    pub fn current() -> Level {
        match CHOSEN.load(Ordering::Relaxed) {
            1 => Level::Scalar,
            2 => Level::Neon,
            3 => Level::Sse42,
            4 => Level::Avx2,
            5 => Level::Avx512,
            _ => {
                let level = Level::detect();
                CHOSEN.store(level as u8, Ordering::Relaxed);
                level
            }
        }
    }
    /// All sets this processor has.
    pub fn available() -> Vec<Level> {
        let all = [
            Level::Scalar,
            Level::Neon,
            Level::Sse42,
            Level::Avx2,
            Level::Avx512,
        ];
        all.into_iter().filter(|level| level.exists()).collect()
    }
    /// Uses another set from now on, for tests and measurements; false if this processor does not have it.
    pub fn force(self) -> bool {
        let exists = self.exists();
        if exists {
            CHOSEN.store(self as u8, Ordering::Relaxed);
        }
        exists
    }

    fn detect() -> Level {
        Level::available().last().copied().unwrap_or(Level::Scalar)
    }
    fn exists(self) -> bool {
        if cfg!(miri) {
            return self == Level::Scalar;
        }
        match self {
            Level::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Level::Sse42 => {
                is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("popcnt")
                    && is_x86_feature_detected!("pclmulqdq")
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                Level::Avx2.exists()
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vbmi2")
            }
            #[cfg(target_arch = "aarch64")]
            Level::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            #[allow(unreachable_patterns, reason = "depends on the architecture")]
            _ => false,
        }
    }
}

/// 0 until the first scan.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// Where the bytes of interest are in the next 32 (or fewer, see [`Lanes::BLOCK`]) bytes, one bit each.
#[derive(Clone, Copy, Debug)]
pub struct StringMasks {
    /// Quote, backslash or control character.
    pub stop: u64,
    /// No ASCII.
    pub high: u64,
}

/// Where the bytes are that say what is inside a string, white space, and what ends a token; one bit each.
#[derive(Clone, Copy, Debug)]
pub struct TextMasks {
    /// `"`.
    pub quote: u64,
    /// `\\`.
    pub slash: u64,
    /// Space, tab, line feed or carriage return.
    pub space: u64,
    /// Brackets, colon and comma (and two control characters, see [`is_punctuation`]).
    pub punctuation: u64,
}

/// Whether a byte is a bracket, a colon or a comma, or 0x0C or 0x1A, which no JSON text has outside strings either, and
/// which are cheaper to find than to tell from those.
#[inline(always)]
pub(crate) fn is_punctuation(byte: u8) -> bool {
    matches!(byte | 0x20, b',' | b':' | b'{' | b'}')
}

/// White space by its low four bits; zeros, which nothing here is compared with, elsewhere.
#[cfg(target_arch = "x86_64")]
const SPACES: [u8; 16] = [
    b' ', 0, 0, 0, 0, 0, 0, 0, 0, b'\t', b'\n', 0, 0, b'\r', 0, 0,
];
/// The same of what [`is_punctuation`].
#[cfg(target_arch = "x86_64")]
const PUNCTUATION: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b':', b'{', b',', b'}', 0, 0];

/// One instruction set.
pub trait Lanes: Copy {
    /// Bytes per block: at most 64.
    const BLOCK: usize;
    /// Bytes per block of [`Lanes::digit_mask`]: numbers are short.
    const DIGIT_BLOCK: usize;
    /// Whether there is an instruction for [`Lanes::squeeze`].
    const SQUEEZES: bool = false;

    /// What is in the block at `at`; `None` if the text ends within it.
    fn string_masks(self, text: &[u8], at: usize) -> Option<StringMasks>;
    /// Which bytes of the short block at `at` are digits; `None` if the text ends within it.
    fn digit_mask(self, text: &[u8], at: usize) -> Option<u64>;
    /// Which bytes of the block at `at` are JSON white space; `None` if the text ends within it.
    fn space_mask(self, text: &[u8], at: usize) -> Option<u64>;
    /// What is in the block at `at`; `None` if the text ends within it.
    fn text_masks(self, text: &[u8], at: usize) -> Option<TextMasks>;
    /// Every bit with the parity of those up to it: from every odd one to before the next even one.
    #[inline(always)]
    fn parities(self, bits: u64) -> u64 {
        let mut parities = bits;
        for shift in [1, 2, 4, 8, 16, 32] {
            parities ^= parities << shift;
        }
        parities
    }
    /// Copies the bytes of the block at `at`, which must be a whole one, that `keep` names to the beginning of `out`,
    /// without gaps; what is behind them there may be anything afterwards, for up to a block. Copies nothing without an
    /// instruction for it ([`Lanes::SQUEEZES`]).
    #[inline(always)]
    fn squeeze(self, _text: &[u8], _at: usize, _keep: u64, _out: &mut [u8]) {}
    /// Whether the [`KEY_BLOCK`] bytes at `at` agree with `key` in those that `mask` names; `None` if the text ends
    /// within them.
    fn matches(self, text: &[u8], at: usize, key: &[u8; KEY_BLOCK], mask: u32) -> Option<bool>;
}

/// Bytes of a key that are compared in one step.
pub const KEY_BLOCK: usize = 32;

#[inline(always)]
fn chunk<const N: usize>(text: &[u8], at: usize) -> Option<&[u8; N]> {
    text.get(at..)?.first_chunk()
}

/// Plain bytes.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Lanes for Scalar {
    const BLOCK: usize = 8;
    const DIGIT_BLOCK: usize = 8;

    #[inline(always)]
    fn string_masks(self, text: &[u8], at: usize) -> Option<StringMasks> {
        let bytes: &[u8; 8] = chunk(text, at)?;
        let (mut stop, mut high) = (0, 0);
        for (i, byte) in bytes.iter().enumerate() {
            stop |= u64::from(*byte < 0x20 || *byte == b'"' || *byte == b'\\') << i;
            high |= u64::from(*byte >= 0x80) << i;
        }
        Some(StringMasks { stop, high })
    }
    #[inline(always)]
    fn digit_mask(self, text: &[u8], at: usize) -> Option<u64> {
        let bytes: &[u8; 8] = chunk(text, at)?;
        let mut mask = 0;
        for (i, byte) in bytes.iter().enumerate() {
            mask |= u64::from(byte.is_ascii_digit()) << i;
        }
        Some(mask)
    }
    #[inline(always)]
    fn space_mask(self, text: &[u8], at: usize) -> Option<u64> {
        let bytes: &[u8; 8] = chunk(text, at)?;
        let mut mask = 0;
        for (i, byte) in bytes.iter().enumerate() {
            mask |= u64::from(matches!(byte, b' ' | b'\n' | b'\t' | b'\r')) << i;
        }
        Some(mask)
    }
    #[inline(always)]
    fn text_masks(self, text: &[u8], at: usize) -> Option<TextMasks> {
        let bytes: &[u8; 8] = chunk(text, at)?;
        let (mut quote, mut slash, mut punctuation) = (0, 0, 0);
        for (i, byte) in bytes.iter().enumerate() {
            quote |= u64::from(*byte == b'"') << i;
            slash |= u64::from(*byte == b'\\') << i;
            punctuation |= u64::from(is_punctuation(*byte)) << i;
        }
        let space = self.space_mask(text, at)?;
        Some(TextMasks {
            quote,
            slash,
            space,
            punctuation,
        })
    }
    #[inline(always)]
    fn matches(self, text: &[u8], at: usize, key: &[u8; KEY_BLOCK], mask: u32) -> Option<bool> {
        let bytes: &[u8; KEY_BLOCK] = chunk(text, at)?;
        let differs = |i: &usize| bytes[*i] != key[*i] && mask & (1 << *i) != 0;
        Some(!(0..KEY_BLOCK).any(|i| differs(&i)))
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    use std::arch::x86_64::*;

    use super::{KEY_BLOCK, Lanes, PUNCTUATION, SPACES, StringMasks, TextMasks, chunk};

    /// 16 bytes. Uses nothing beyond SSE2, which every `x86_64` has, so that anybody may make one.
    #[derive(Clone, Copy)]
    pub(crate) struct Sse;
    /// 32 bytes.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(());
    /// 64 bytes.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(());

    impl Avx2 {
        /// # Safety
        /// The processor must have AVX2 and PCLMULQDQ.
        #[inline(always)]
        pub(super) unsafe fn new() -> Self {
            Avx2(())
        }
    }
    impl Avx512 {
        /// # Safety
        /// The processor must have AVX2, PCLMULQDQ, AVX-512BW, AVX-512VL and AVX-512VBMI2.
        #[inline(always)]
        pub(super) unsafe fn new() -> Self {
            Avx512(())
        }
    }

    #[inline(always)]
    fn load16(text: &[u8], at: usize) -> Option<__m128i> {
        let bytes: &[u8; 16] = chunk(text, at)?;
        // SAFETY: SSE2 is part of x86_64; the reference covers the 16 bytes read, at any alignment.
        Some(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
    }

    impl Lanes for Sse {
        const BLOCK: usize = 16;
        const DIGIT_BLOCK: usize = 16;

        #[inline(always)]
        fn string_masks(self, text: &[u8], at: usize) -> Option<StringMasks> {
            let block = load16(text, at)?;
            // SAFETY: SSE2 is part of x86_64.
            unsafe {
                let quote = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'"' as i8));
                let slash = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'\\' as i8));
                let control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1f)), block);
                let stop = _mm_or_si128(_mm_or_si128(quote, slash), control);
                Some(StringMasks {
                    stop: u64::from(_mm_movemask_epi8(stop) as u16),
                    high: u64::from(_mm_movemask_epi8(block) as u16),
                })
            }
        }
        #[inline(always)]
        fn digit_mask(self, text: &[u8], at: usize) -> Option<u64> {
            let block = load16(text, at)?;
            // SAFETY: SSE2 is part of x86_64.
            unsafe {
                let value = _mm_sub_epi8(block, _mm_set1_epi8(b'0' as i8));
                let digit = _mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value);
                Some(u64::from(_mm_movemask_epi8(digit) as u16))
            }
        }
        #[inline(always)]
        fn space_mask(self, text: &[u8], at: usize) -> Option<u64> {
            let block = load16(text, at)?;
            // SAFETY: SSE2 is part of x86_64.
            unsafe {
                let is = |byte: u8| _mm_cmpeq_epi8(block, _mm_set1_epi8(byte as i8));
                let space = _mm_or_si128(
                    _mm_or_si128(is(b' '), is(b'\n')),
                    _mm_or_si128(is(b'\t'), is(b'\r')),
                );
                Some(u64::from(_mm_movemask_epi8(space) as u16))
            }
        }
        #[inline(always)]
        fn text_masks(self, text: &[u8], at: usize) -> Option<TextMasks> {
            let block = load16(text, at)?;
            let space = self.space_mask(text, at)?;
            // SAFETY: SSE2 is part of x86_64.
            unsafe {
                let quote = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'"' as i8));
                let slash = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'\\' as i8));
                let folded = _mm_or_si128(block, _mm_set1_epi8(0x20));
                let is = |byte: u8| _mm_cmpeq_epi8(folded, _mm_set1_epi8(byte as i8));
                let punctuation = _mm_or_si128(
                    _mm_or_si128(is(b','), is(b':')),
                    _mm_or_si128(is(b'{'), is(b'}')),
                );
                Some(TextMasks {
                    quote: u64::from(_mm_movemask_epi8(quote) as u16),
                    slash: u64::from(_mm_movemask_epi8(slash) as u16),
                    space,
                    punctuation: u64::from(_mm_movemask_epi8(punctuation) as u16),
                })
            }
        }
        #[inline(always)]
        fn matches(self, text: &[u8], at: usize, key: &[u8; KEY_BLOCK], mask: u32) -> Option<bool> {
            let _: &[u8; KEY_BLOCK] = chunk(text, at)?;
            let (low, high) = (load16(text, at)?, load16(text, at + 16)?);
            let (key_low, key_high) = (load16(key, 0)?, load16(key, 16)?);
            // SAFETY: SSE2 is part of x86_64.
            let equal = unsafe {
                u32::from(_mm_movemask_epi8(_mm_cmpeq_epi8(low, key_low)) as u16)
                    | u32::from(_mm_movemask_epi8(_mm_cmpeq_epi8(high, key_high)) as u16) << 16
            };
            Some(equal & mask == mask)
        }
    }

    #[inline(always)]
    fn load32(_: Avx2, text: &[u8], at: usize) -> Option<__m256i> {
        let bytes: &[u8; 32] = chunk(text, at)?;
        // SAFETY: the argument proves AVX2; the reference covers the 32 bytes read, at any alignment.
        Some(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
    }

    impl Lanes for Avx2 {
        const BLOCK: usize = 32;
        const DIGIT_BLOCK: usize = 32;

        #[inline(always)]
        fn string_masks(self, text: &[u8], at: usize) -> Option<StringMasks> {
            let block = load32(self, text, at)?;
            // SAFETY: `self` proves AVX2.
            unsafe {
                let quote = _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'"' as i8));
                let slash = _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'\\' as i8));
                let control =
                    _mm256_cmpeq_epi8(_mm256_min_epu8(block, _mm256_set1_epi8(0x1f)), block);
                let stop = _mm256_or_si256(_mm256_or_si256(quote, slash), control);
                Some(StringMasks {
                    stop: u64::from(_mm256_movemask_epi8(stop) as u32),
                    high: u64::from(_mm256_movemask_epi8(block) as u32),
                })
            }
        }
        #[inline(always)]
        fn digit_mask(self, text: &[u8], at: usize) -> Option<u64> {
            let block = load32(self, text, at)?;
            // SAFETY: `self` proves AVX2.
            unsafe {
                let value = _mm256_sub_epi8(block, _mm256_set1_epi8(b'0' as i8));
                let digit = _mm256_cmpeq_epi8(_mm256_min_epu8(value, _mm256_set1_epi8(9)), value);
                Some(u64::from(_mm256_movemask_epi8(digit) as u32))
            }
        }
        #[inline(always)]
        fn space_mask(self, text: &[u8], at: usize) -> Option<u64> {
            let block = load32(self, text, at)?;
            // SAFETY: `self` proves AVX2.
            unsafe {
                let space = _mm256_or_si256(
                    _mm256_or_si256(
                        _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b' ' as i8)),
                        _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'\n' as i8)),
                    ),
                    _mm256_or_si256(
                        _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'\t' as i8)),
                        _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'\r' as i8)),
                    ),
                );
                Some(u64::from(_mm256_movemask_epi8(space) as u32))
            }
        }
        #[inline(always)]
        fn text_masks(self, text: &[u8], at: usize) -> Option<TextMasks> {
            let block = load32(self, text, at)?;
            // SAFETY: `self` proves AVX2; the tables have the 16 bytes read.
            unsafe {
                let spaces = _mm256_broadcastsi128_si256(_mm_loadu_si128(SPACES.as_ptr().cast()));
                let marks =
                    _mm256_broadcastsi128_si256(_mm_loadu_si128(PUNCTUATION.as_ptr().cast()));
                let quote = _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'"' as i8));
                let slash = _mm256_cmpeq_epi8(block, _mm256_set1_epi8(b'\\' as i8));
                // A byte is in a table if the table has it where its low four bits say.
                let space = _mm256_cmpeq_epi8(_mm256_shuffle_epi8(spaces, block), block);
                let folded = _mm256_or_si256(block, _mm256_set1_epi8(0x20));
                let punctuation = _mm256_cmpeq_epi8(_mm256_shuffle_epi8(marks, folded), folded);
                Some(TextMasks {
                    quote: u64::from(_mm256_movemask_epi8(quote) as u32),
                    slash: u64::from(_mm256_movemask_epi8(slash) as u32),
                    space: u64::from(_mm256_movemask_epi8(space) as u32),
                    punctuation: u64::from(_mm256_movemask_epi8(punctuation) as u32),
                })
            }
        }
        #[inline(always)]
        fn parities(self, bits: u64) -> u64 {
            // SAFETY: `self` proves PCLMULQDQ.
            unsafe {
                let bits = _mm_set_epi64x(0, bits as i64);
                _mm_cvtsi128_si64(_mm_clmulepi64_si128(bits, _mm_set1_epi8(-1), 0)) as u64
            }
        }
        #[inline(always)]
        fn matches(self, text: &[u8], at: usize, key: &[u8; KEY_BLOCK], mask: u32) -> Option<bool> {
            let (block, key) = (load32(self, text, at)?, load32(self, key, 0)?);
            // SAFETY: `self` proves AVX2.
            let equal = unsafe { _mm256_movemask_epi8(_mm256_cmpeq_epi8(block, key)) as u32 };
            Some(equal & mask == mask)
        }
    }

    #[inline(always)]
    fn load64(_: Avx512, text: &[u8], at: usize) -> Option<__m512i> {
        let bytes: &[u8; 64] = chunk(text, at)?;
        // SAFETY: the argument proves AVX-512; the reference covers the 64 bytes read, at any alignment.
        Some(unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) })
    }

    impl Lanes for Avx512 {
        const BLOCK: usize = 64;
        const DIGIT_BLOCK: usize = 32;
        const SQUEEZES: bool = true;

        #[inline(always)]
        fn string_masks(self, text: &[u8], at: usize) -> Option<StringMasks> {
            let block = load64(self, text, at)?;
            // SAFETY: `self` proves AVX-512BW.
            unsafe {
                let quote = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'"' as i8));
                let slash = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'\\' as i8));
                let control = _mm512_cmple_epu8_mask(block, _mm512_set1_epi8(0x1f));
                Some(StringMasks {
                    stop: quote | slash | control,
                    high: _mm512_movepi8_mask(block),
                })
            }
        }
        #[inline(always)]
        fn digit_mask(self, text: &[u8], at: usize) -> Option<u64> {
            // SAFETY: a processor with AVX-512 has AVX2, and `self` is the proof.
            unsafe { Avx2::new() }.digit_mask(text, at)
        }
        #[inline(always)]
        fn space_mask(self, text: &[u8], at: usize) -> Option<u64> {
            let block = load64(self, text, at)?;
            // SAFETY: `self` proves AVX-512BW.
            unsafe {
                Some(
                    _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b' ' as i8))
                        | _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'\n' as i8))
                        | _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'\t' as i8))
                        | _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'\r' as i8)),
                )
            }
        }
        #[inline(always)]
        fn text_masks(self, text: &[u8], at: usize) -> Option<TextMasks> {
            let block = load64(self, text, at)?;
            // SAFETY: `self` proves AVX-512BW; the tables have the 16 bytes read.
            unsafe {
                let spaces = _mm512_broadcast_i32x4(_mm_loadu_si128(SPACES.as_ptr().cast()));
                let marks = _mm512_broadcast_i32x4(_mm_loadu_si128(PUNCTUATION.as_ptr().cast()));
                let spaces = _mm512_shuffle_epi8(spaces, block);
                let folded = _mm512_or_si512(block, _mm512_set1_epi8(0x20));
                let punctuation = _mm512_shuffle_epi8(marks, folded);
                Some(TextMasks {
                    quote: _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'"' as i8)),
                    slash: _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'\\' as i8)),
                    space: _mm512_cmpeq_epi8_mask(spaces, block),
                    punctuation: _mm512_cmpeq_epi8_mask(punctuation, folded),
                })
            }
        }
        #[inline(always)]
        fn parities(self, bits: u64) -> u64 {
            // SAFETY: a processor with AVX-512 has AVX2, and `self` is the proof of all that `Avx2` wants.
            unsafe { Avx2::new() }.parities(bits)
        }
        #[inline(always)]
        fn squeeze(self, text: &[u8], at: usize, keep: u64, out: &mut [u8]) {
            let (Some(block), Some(out)) = (load64(self, text, at), out.first_chunk_mut::<64>())
            else {
                return;
            };
            // SAFETY: `self` proves AVX-512VBMI2; the reference covers the 64 bytes written, at any alignment. (Not
            // compressed right into memory, which some processors are very slow at.)
            unsafe {
                let squeezed = _mm512_maskz_compress_epi8(keep, block);
                _mm512_storeu_si512(out.as_mut_ptr().cast(), squeezed);
            }
        }
        #[inline(always)]
        fn matches(self, text: &[u8], at: usize, key: &[u8; KEY_BLOCK], mask: u32) -> Option<bool> {
            // SAFETY: a processor with AVX-512 has AVX2, and `self` is the proof.
            unsafe { Avx2::new() }.matches(text, at, key, mask)
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) mod arm {
    use std::arch::aarch64::*;

    use super::{KEY_BLOCK, Lanes, StringMasks, TextMasks, chunk};

    /// 16 bytes; NEON is part of the aarch64 targets Rust has.
    #[derive(Clone, Copy)]
    pub(crate) struct Neon;

    #[inline(always)]
    fn load(text: &[u8], at: usize) -> Option<uint8x16_t> {
        let bytes: &[u8; 16] = chunk(text, at)?;
        // SAFETY: NEON is part of aarch64; the reference covers the 16 bytes read.
        Some(unsafe { vld1q_u8(bytes.as_ptr()) })
    }
    /// One bit per byte whose high bit is set.
    #[inline(always)]
    fn bits(lanes: uint8x16_t) -> u64 {
        const WEIGHTS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        // SAFETY: NEON is part of aarch64; `WEIGHTS` has 16 bytes.
        unsafe {
            let weighted = vandq_u8(lanes, vld1q_u8(WEIGHTS.as_ptr()));
            u64::from(vaddv_u8(vget_low_u8(weighted)))
                | u64::from(vaddv_u8(vget_high_u8(weighted))) << 8
        }
    }

    impl Lanes for Neon {
        const BLOCK: usize = 16;
        const DIGIT_BLOCK: usize = 16;

        #[inline(always)]
        fn string_masks(self, text: &[u8], at: usize) -> Option<StringMasks> {
            let block = load(text, at)?;
            // SAFETY: NEON is part of aarch64.
            unsafe {
                let quote = vceqq_u8(block, vdupq_n_u8(b'"'));
                let slash = vceqq_u8(block, vdupq_n_u8(b'\\'));
                let control = vcltq_u8(block, vdupq_n_u8(0x20));
                let stop = vorrq_u8(vorrq_u8(quote, slash), control);
                let high = vcgeq_u8(block, vdupq_n_u8(0x80));
                Some(StringMasks {
                    stop: bits(stop),
                    high: bits(high),
                })
            }
        }
        #[inline(always)]
        fn digit_mask(self, text: &[u8], at: usize) -> Option<u64> {
            let block = load(text, at)?;
            // SAFETY: NEON is part of aarch64.
            unsafe {
                let value = vsubq_u8(block, vdupq_n_u8(b'0'));
                Some(bits(vcleq_u8(value, vdupq_n_u8(9))))
            }
        }
        #[inline(always)]
        fn space_mask(self, text: &[u8], at: usize) -> Option<u64> {
            let block = load(text, at)?;
            // SAFETY: NEON is part of aarch64.
            unsafe {
                let space = vorrq_u8(
                    vorrq_u8(
                        vceqq_u8(block, vdupq_n_u8(b' ')),
                        vceqq_u8(block, vdupq_n_u8(b'\n')),
                    ),
                    vorrq_u8(
                        vceqq_u8(block, vdupq_n_u8(b'\t')),
                        vceqq_u8(block, vdupq_n_u8(b'\r')),
                    ),
                );
                Some(bits(space))
            }
        }
        #[inline(always)]
        fn text_masks(self, text: &[u8], at: usize) -> Option<TextMasks> {
            let block = load(text, at)?;
            let space = self.space_mask(text, at)?;
            // SAFETY: NEON is part of aarch64.
            unsafe {
                let folded = vorrq_u8(block, vdupq_n_u8(0x20));
                let is = |byte: u8| vceqq_u8(folded, vdupq_n_u8(byte));
                Some(TextMasks {
                    quote: bits(vceqq_u8(block, vdupq_n_u8(b'"'))),
                    slash: bits(vceqq_u8(block, vdupq_n_u8(b'\\'))),
                    space,
                    punctuation: bits(vorrq_u8(
                        vorrq_u8(is(b','), is(b':')),
                        vorrq_u8(is(b'{'), is(b'}')),
                    )),
                })
            }
        }
        #[inline(always)]
        fn matches(self, text: &[u8], at: usize, key: &[u8; KEY_BLOCK], mask: u32) -> Option<bool> {
            let _: &[u8; KEY_BLOCK] = chunk(text, at)?;
            let (low, high) = (load(text, at)?, load(text, at + 16)?);
            let (key_low, key_high) = (load(key, 0)?, load(key, 16)?);
            // SAFETY: NEON is part of aarch64.
            let equal =
                unsafe { bits(vceqq_u8(low, key_low)) | bits(vceqq_u8(high, key_high)) << 16 };
            Some(equal as u32 & mask == mask)
        }
    }
}

/// The set that every processor of this architecture has, for single tokens.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod baseline {
    pub(crate) type Baseline = super::x86::Sse;
    pub(crate) const BASELINE: Baseline = super::x86::Sse;
}
#[cfg(all(target_arch = "aarch64", not(miri)))]
mod baseline {
    pub(crate) type Baseline = super::arm::Neon;
    pub(crate) const BASELINE: Baseline = super::arm::Neon;
}
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod baseline {
    pub(crate) type Baseline = super::Scalar;
    pub(crate) const BASELINE: Baseline = super::Scalar;
}
pub(crate) use baseline::{BASELINE, Baseline};

/// Something to do with vector instructions. Implementations are `#[inline(always)]`, and so is all they call, down
/// to [`Lanes`]: only then is everything compiled for the instruction set.
pub trait Job {
    /// What comes of it.
    type Output;
    /// Does it.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// Does something with the widest instructions there are.
#[inline]
pub fn run<J: Job>(job: J) -> J::Output {
    match Level::current() {
        // SAFETY: `Level::current` asked the processor for exactly these features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { run_avx512(job) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { run_avx2(job) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Sse42 => unsafe { run_sse42(job) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon => job.run(arm::Neon),
        _ => run_scalar(job),
    }
}

#[inline(never)]
fn run_scalar<J: Job>(job: J) -> J::Output {
    job.run(Scalar)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2,popcnt")]
fn run_sse42<J: Job>(job: J) -> J::Output {
    job.run(x86::Sse)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn run_avx2<J: Job>(job: J) -> J::Output {
    // SAFETY: this function is compiled for AVX2, so its caller has made sure of it.
    job.run(unsafe { x86::Avx2::new() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512vbmi2,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn run_avx512<J: Job>(job: J) -> J::Output {
    // SAFETY: this function is compiled for AVX-512, so its caller has made sure of it.
    job.run(unsafe { x86::Avx512::new() })
}
