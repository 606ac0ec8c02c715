//! Lists that mostly have very few entries: up to `N` of them stand where the list does, and only more need memory of
//! their own. A plan can have hundreds of places and look-ups of an object or two each.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

/// A list of mostly no more than `N` entries.
#[derive(Clone, Default)]
pub(crate) enum InlineList<T, const N: usize> {
    #[default]
    Empty,
    /// So many of these; the others mean nothing.
    FastPathState(u8, [T; N]),
    There(Vec<T>),
}

impl<T: Copy, const N: usize> InlineList<T, N> {
    /// Appends an entry.
    #[inline]
    pub(crate) fn push(&mut self, entry: T) {
        match self {
            InlineList::There(all) => all.push(entry),
            InlineList::Empty => *self = InlineList::FastPathState(1, [entry; N]),
            InlineList::FastPathState(len, items) => match items.get_mut(usize::from(*len)) {
                Some(free) => {
                    *free = entry;
                    *len += 1;
                }
                None => {
                    self.move_out(1);
                    self.push(entry);
                }
            },
        }
    }
    /// Takes the last entry away.
    pub(crate) fn pop(&mut self) {
        match self {
            InlineList::Empty => {}
            InlineList::FastPathState(len, _) => *len = len.saturating_sub(1),
            InlineList::There(all) => {
                all.pop();
            }
        }
    }
    /// Makes room for so many more entries.
    #[inline]
    pub(crate) fn reserve(&mut self, more: usize) {
        if self.len() + more > N {
            self.move_out(more);
        }
    }
    #[cold]
    fn move_out(&mut self, more: usize) {
        if let InlineList::There(all) = self {
            return all.reserve(more);
        }
        let mut all = Vec::with_capacity((self.len() + more).max(2 * N));
        all.extend_from_slice(self);
        *self = InlineList::There(all);
    }
}

impl<T, const N: usize> Deref for InlineList<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            InlineList::Empty => &[],
            InlineList::FastPathState(len, items) => {
                items.get(..usize::from(*len)).unwrap_or_default()
            }
            InlineList::There(all) => all,
        }
    }
}
impl<T, const N: usize> DerefMut for InlineList<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            InlineList::Empty => &mut [],
            InlineList::FastPathState(len, items) => {
                items.get_mut(..usize::from(*len)).unwrap_or_default()
            }
            InlineList::There(all) => all,
        }
    }
}

impl<T: Copy, const N: usize> Extend<T> for InlineList<T, N> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, entries: I) {
        entries.into_iter().for_each(|entry| self.push(entry));
    }
}
impl<T: Copy, const N: usize> FromIterator<T> for InlineList<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut few = InlineList::Empty;
        few.extend(entries);
        few
    }
}

/// As the entries are, wherever they stand.
impl<T: fmt::Debug, const N: usize> fmt::Debug for InlineList<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::InlineList;

    #[test]
    fn it_is_a_list_however_long() {
        let mut few: InlineList<u32, 2> = InlineList::default();
        let mut list: Vec<u32> = Vec::new();
        for step in 0..12 {
            match step % 4 {
                3 => {
                    few.pop();
                    list.pop();
                }
                _ => {
                    few.push(step);
                    list.push(step);
                }
            }
            assert_eq!(*few, *list);
        }
        few.extend([3, 1, 2]);
        list.extend([3, 1, 2]);
        few.sort_unstable();
        list.sort_unstable();
        assert_eq!(*few, *list);
        let mut few: InlineList<u32, 2> = InlineList::default();
        few.pop();
        few.push(5);
        few.pop();
        assert!(few.is_empty());
        few.push(6);
        assert_eq!(*few, [6]);
        let mut few: InlineList<u32, 2> = [7].into_iter().collect();
        few.reserve(1);
        assert!(matches!(few, InlineList::FastPathState(..)));
        few.reserve(2);
        assert_eq!(*few, [7]);
        assert_eq!(format!("{few:?}"), "[7]");
    }
}
