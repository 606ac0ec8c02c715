//! Small tables of emission: rows grouped by a dense number, positions of keys, lists that are made once.

use std::hash::Hash;

use ogive_base::FastMap;
use ogive_plan::Shared;

/// Rows grouped by a dense number, in order of insertion within each group. Built in one pass: O(groups + rows).
#[derive(Default)]
pub(crate) struct Grouped<T> {
    /// First row of each group, and the end of the last.
    starts: Vec<u32>,
    rows: Vec<T>,
}

impl<T: Copy> Grouped<T> {
    /// Groups `pairs` of (group, row).
    pub(crate) fn new(groups: usize, pairs: &[(u32, T)]) -> Self {
        let mut starts = vec![0; groups + 1];
        for (group, _) in pairs {
            starts[*group as usize + 1] += 1;
        }
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut rows: Vec<T> = pairs.iter().map(|(_, row)| *row).collect();
        for (group, row) in pairs {
            let at = &mut next[*group as usize];
            rows[*at as usize] = *row;
            *at += 1;
        }
        Grouped { starts, rows }
    }
    /// The rows of one group.
    pub(crate) fn of(&self, group: usize) -> &[T] {
        &self.rows[self.starts[group] as usize..self.starts[group + 1] as usize]
    }
    /// The rows of one group, to be sorted.
    pub(crate) fn of_mut(&mut self, group: usize) -> &mut [T] {
        &mut self.rows[self.starts[group] as usize..self.starts[group + 1] as usize]
    }
}

/// Keys that are scanned for before a map is worth it.
const SCANNED_MAX: usize = 12;

/// Distinct keys in order of insertion, and where each is: a scan while there are few, a map beyond.
pub(crate) struct Positions<K> {
    keys: Vec<K>,
    map: FastMap<K, usize>,
}

impl<K> Default for Positions<K> {
    fn default() -> Self {
        Positions {
            keys: Vec::new(),
            map: FastMap::default(),
        }
    }
}

impl<K: Copy + Eq + Hash> Positions<K> {
    /// Where the key is.
    pub(crate) fn find(&self, key: K) -> Option<usize> {
        if self.map.is_empty() {
            self.keys.iter().position(|k| *k == key)
        } else {
            self.map.get(&key).copied()
        }
    }
    /// Forgets all keys.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.map.clear();
    }
    /// All keys in order of insertion.
    pub(crate) fn keys(&self) -> &[K] {
        &self.keys
    }
    /// Adds a key that is not there.
    pub(crate) fn push(&mut self, key: K) -> usize {
        let at = self.keys.len();
        self.keys.push(key);
        if at >= SCANNED_MAX {
            if self.map.is_empty() {
                let keys = self.keys.iter().copied();
                self.map.extend(keys.enumerate().map(|(i, k)| (k, i)));
            } else {
                self.map.insert(key, at);
            }
        }
        at
    }
}

/// Lists of a plan by what they are made of: equal ones are made once.
pub(crate) struct ListCache<K, T>(FastMap<Box<[K]>, Shared<T>>);

impl<K, T> Default for ListCache<K, T> {
    fn default() -> Self {
        ListCache(FastMap::default())
    }
}

impl<K: Clone + Eq + Hash, T> ListCache<K, T> {
    /// Makes room for so many lists.
    pub(crate) fn reserve(&mut self, lists: usize) {
        self.0.reserve(lists);
    }
    /// The list for these keys, made if new.
    pub(crate) fn get_or_make(
        &mut self,
        keys: &[K],
        make: impl FnOnce() -> Shared<T>,
    ) -> Shared<T> {
        if let Some(found) = self.0.get(keys) {
            return found.clone();
        }
        let made = make();
        self.0.insert(keys.into(), made.clone());
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_the_order_of_their_rows() {
        let grouped = Grouped::new(3, &[(2, 'a'), (0, 'b'), (2, 'c')]);
        assert_eq!(
            [grouped.of(0), grouped.of(1), grouped.of(2)],
            [&['b'][..], &[], &['a', 'c']]
        );
    }

    #[test]
    fn positions_are_found_before_and_after_the_map_is_made() {
        let mut positions = Positions::default();
        for key in 0..100 {
            assert_eq!(positions.find(key), None);
            assert_eq!(positions.push(key), key);
            assert!((0..=key).all(|k| positions.find(k) == Some(k)));
        }
    }
}
