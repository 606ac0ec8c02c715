//! The tests' only source of chance: splitmix64, so one `u64` seed names a case on every machine for ever.
//!
//! Verdicts of other implementations are recorded for cases of some seeds: what a seed gives must not change.

/// A deterministic random number generator. Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// A generator whose whole output follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Rng { state: seed }
    }
    /// An independent generator for a part of the work, so that adding draws in one part leaves the others alone.
    #[must_use]
    pub fn fork(&mut self, salt: u64) -> Rng {
        Rng::new(mix(self.next() ^ mix(salt)))
    }
    /// The next 64 random bits.
    #[expect(
        clippy::should_implement_trait,
        reason = "an infinite stream of one type gains nothing from Iterator"
    )]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }
    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 {
            0
        } else {
            (self.next() % n as u64) as usize
        }
    }
    /// A number in `low..=high`.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high + 1 - low)
    }
    /// True `percent` times out of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
    /// Any item.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
    /// Any item, if there is one.
    pub fn try_pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() {
            None
        } else {
            Some(self.pick(items))
        }
    }
    /// A random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// A bijection of 64 bits that scatters neighbouring inputs (the finaliser of splitmix64).
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A hash of some texts that is the same in every process and release.
pub fn hash_texts(seed: u64, texts: &[&str]) -> u64 {
    let mut hash = mix(seed ^ 0x5eed);
    for text in texts {
        // Length first, so that ("ab", "c") and ("a", "bc") differ.
        hash = mix(hash ^ text.len() as u64);
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = mix(hash ^ u64::from_le_bytes(word));
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_stream() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            [rng.next(), rng.next(), rng.next()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    /// The first numbers of splitmix64 with the seed 1234567, as its authors' programs give them.
    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut rng = Rng::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!([rng.next(), rng.next(), rng.next()], expected);
    }

    #[test]
    fn text_boundaries_count() {
        assert_ne!(hash_texts(0, &["ab", "c"]), hash_texts(0, &["a", "bc"]));
    }
}
