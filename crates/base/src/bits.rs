//! A growable set of small numbers: one inline word for the common case (up to 64 subgraphs, types of one
//! interface, ...), spilled words beyond.

use std::fmt;

/// A set of `u32`s stored as bits. Equality and hashing ignore capacity.
#[derive(Clone, Default)]
pub struct BitSet {
    first: u64,
    /// A boxed slice, because plans hold many sets.
    rest: Box<[u64]>,
}

impl BitSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }
    /// The set `{0, 1, .., n-1}`.
    pub fn all(n: usize) -> Self {
        (0..n as u32).collect()
    }
    #[inline]
    fn word(&self, i: usize) -> u64 {
        if i == 0 {
            self.first
        } else {
            self.rest.get(i - 1).copied().unwrap_or(0)
        }
    }
    #[inline]
    fn words(&self) -> usize {
        1 + self.rest.len()
    }
    #[inline]
    fn word_mut(&mut self, i: usize) -> &mut u64 {
        if i == 0 {
            return &mut self.first;
        }
        if self.rest.len() < i {
            let mut rest = std::mem::take(&mut self.rest).into_vec();
            rest.resize(i, 0);
            self.rest = rest.into_boxed_slice();
        }
        &mut self.rest[i - 1]
    }
    /// Adds `bit`; says whether it was absent.
    #[inline]
    pub fn insert(&mut self, bit: u32) -> bool {
        let word = match bit {
            0..64 => &mut self.first,
            _ => self.word_mut((bit / 64) as usize),
        };
        let mask = 1u64 << (bit % 64);
        let absent = *word & mask == 0;
        *word |= mask;
        absent
    }
    /// Takes `bit` out; says whether it was there.
    pub fn remove(&mut self, bit: u32) -> bool {
        if !self.contains(bit) {
            return false;
        }
        *self.word_mut((bit / 64) as usize) &= !(1u64 << (bit % 64));
        true
    }
    /// Whether `bit` is in the set.
    #[inline]
    pub fn contains(&self, bit: u32) -> bool {
        self.word((bit / 64) as usize) & (1u64 << (bit % 64)) != 0
    }
    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        let rest = self.rest.iter().map(|word| word.count_ones() as usize);
        self.first.count_ones() as usize + rest.sum::<usize>()
    }
    /// Whether there is no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == 0 && self.rest.iter().all(|w| *w == 0)
    }
    /// Adds every member of `other`; says whether anything was new.
    #[inline]
    pub fn union_with(&mut self, other: &BitSet) -> bool {
        if self.rest.is_empty() && other.rest.is_empty() {
            let grew = other.first & !self.first != 0;
            self.first |= other.first;
            return grew;
        }
        let mut grew = false;
        for i in 0..other.words() {
            let theirs = other.word(i);
            if theirs != 0 {
                let ours = self.word_mut(i);
                grew |= theirs & !*ours != 0;
                *ours |= theirs;
            }
        }
        grew
    }
    /// Keeps only members of `other`.
    #[inline]
    pub fn intersect_with(&mut self, other: &BitSet) {
        self.first &= other.first;
        for (i, word) in self.rest.iter_mut().enumerate() {
            *word &= other.word(i + 1);
        }
    }
    /// Drops all members of `other`.
    pub fn subtract(&mut self, other: &BitSet) {
        self.first &= !other.first;
        for (i, word) in self.rest.iter_mut().enumerate() {
            *word &= !other.word(i + 1);
        }
    }
    /// Both sets' members.
    #[inline]
    pub fn union(&self, other: &BitSet) -> BitSet {
        let mut out = self.clone();
        out.union_with(other);
        out
    }
    /// The members both sets have.
    #[inline]
    pub fn intersection(&self, other: &BitSet) -> BitSet {
        if self.rest.is_empty() || other.rest.is_empty() {
            return BitSet {
                first: self.first & other.first,
                rest: Box::default(),
            };
        }
        let mut out = self.clone();
        out.intersect_with(other);
        out
    }
    /// The members only `self` has.
    pub fn difference(&self, other: &BitSet) -> BitSet {
        let mut out = self.clone();
        out.subtract(other);
        out
    }
    /// Whether the sets share a member.
    #[inline]
    pub fn intersects(&self, other: &BitSet) -> bool {
        self.first & other.first != 0
            || self.rest.iter().zip(&other.rest).any(|(a, b)| *a & *b != 0)
    }
    /// Whether every member is in `other` too.
    #[inline]
    pub fn is_subset(&self, other: &BitSet) -> bool {
        let mut rest = self.rest.iter().enumerate();
        self.first & !other.first == 0 && rest.all(|(i, word)| *word & !other.word(i + 1) == 0)
    }
    /// The members in ascending order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        Members {
            word: self.first,
            base: 0,
            rest: self.rest.iter(),
        }
    }
    /// The members both sets have in ascending order, without making a set of them.
    #[inline]
    pub fn iter_both<'a>(&'a self, other: &'a BitSet) -> impl Iterator<Item = u32> + 'a {
        let mut word = self.first & other.first;
        let mut base = 0;
        let mut rest = self.rest.iter().zip(&other.rest);
        std::iter::from_fn(move || {
            while word == 0 {
                let (a, b) = rest.next()?;
                word = a & b;
                base += 64;
            }
            let bit = word.trailing_zeros();
            word &= word - 1;
            Some(base + bit)
        })
    }
    /// The smallest member.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }
}

/// The members of a set, ascending.
struct Members<'a> {
    /// What is left of the word that is being read.
    word: u64,
    /// Its first number.
    base: u32,
    rest: std::slice::Iter<'a, u64>,
}

impl Iterator for Members<'_> {
    type Item = u32;
    #[inline]
    fn next(&mut self) -> Option<u32> {
        while self.word == 0 {
            self.word = *self.rest.next()?;
            self.base += 64;
        }
        let bit = self.word.trailing_zeros();
        self.word &= self.word - 1;
        Some(self.base + bit)
    }
}

impl PartialEq for BitSet {
    fn eq(&self, other: &Self) -> bool {
        self.first == other.first
            && (1..self.words().max(other.words())).all(|i| self.word(i) == other.word(i))
    }
}
impl Eq for BitSet {}

impl std::hash::Hash for BitSet {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let used = (0..self.words())
            .rev()
            .find(|i| self.word(*i) != 0)
            .map_or(0, |i| i + 1);
        for i in 0..used {
            self.word(i).hash(state);
        }
    }
}

impl fmt::Debug for BitSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<u32> for BitSet {
    fn from_iter<T: IntoIterator<Item = u32>>(iter: T) -> Self {
        let mut set = BitSet::new();
        for bit in iter {
            set.insert(bit);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_and_hash_ignore_spilled_zero_words() {
        let mut a: BitSet = [1, 200].into_iter().collect();
        a.remove(200);
        let b: BitSet = [1].into_iter().collect();
        assert_eq!(a, b);
        assert_eq!(crate::hash::hash_one(&a), crate::hash::hash_one(&b));
    }

    #[test]
    fn set_algebra_across_words() {
        let a: BitSet = [0, 63, 64, 130].into_iter().collect();
        let b: BitSet = [63, 130, 131].into_iter().collect();
        assert_eq!(a.intersection(&b).iter().collect::<Vec<_>>(), [63, 130]);
        assert_eq!(a.iter_both(&b).collect::<Vec<_>>(), [63, 130]);
        assert_eq!(a.iter_both(&BitSet::all(65)).last(), Some(64));
        assert_eq!(a.difference(&b).iter().collect::<Vec<_>>(), [0, 64]);
        assert_eq!(a.union(&b).len(), 5);
        assert!(a.intersection(&b).is_subset(&a));
        assert!(!a.is_subset(&b));
    }
}
