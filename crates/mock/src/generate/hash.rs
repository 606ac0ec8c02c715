//! The hash behind generated values: the same on every machine and in every version.
//!
//! Why our own: generated data is part of seeds printed by failing tests, so it must outlive updates of hashing
//! libraries. FNV-1a over length-prefixed parts, finished by the SplitMix64 mixer.

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// Hashes parts so that moving a byte from one part to the next changes the result.
pub(crate) fn hash(seed: u64, parts: &[&[u8]]) -> u64 {
    let mut state = OFFSET ^ mix(seed);
    let mut byte = |b: u8| state = (state ^ u64::from(b)).wrapping_mul(PRIME);
    for part in parts {
        (part.len() as u32)
            .to_le_bytes()
            .into_iter()
            .for_each(&mut byte);
        part.iter().copied().for_each(&mut byte);
    }
    mix(state)
}

/// The SplitMix64 finaliser.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A hash derived from another one.
pub(crate) fn derive(h: u64, salt: u64) -> u64 {
    mix(h ^ mix(salt))
}

/// A number in `0..n`; 0 if `n` is 0.
pub(crate) fn below(h: u64, n: u64) -> u64 {
    // The high half of a wide product is uniform enough and needs no division.
    ((u128::from(h) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_stable_and_separates_parts() {
        assert_eq!(hash(1, &[b"User", b"7"]), hash(1, &[b"User", b"7"]));
        assert_ne!(hash(1, &[b"User", b"7"]), hash(1, &[b"User7", b""]));
        assert_ne!(hash(1, &[b"User", b"7"]), hash(2, &[b"User", b"7"]));
        // A change of this value changes every printed seed.
        assert_eq!(hash(1, &[b"User", b"7"]), 2162855878664237970);
        assert!((0..1000).all(|i| below(mix(i), 7) < 7));
    }
}
