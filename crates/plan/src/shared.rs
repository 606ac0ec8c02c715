//! Lists that several rows of a plan may share.
//!
//! In an operation that asks the same of many places, most places have the same slots, output and shapes. Such lists
//! are held once; a [`Shared`] is a counted reference to one. It reads like a slice and is copied when it is written
//! to while others hold it.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// An immutable list behind a counted reference; cheap to clone, copied on write.
pub struct Shared<T>(Arc<[T]>);

impl<T> Shared<T> {
    /// Whether both are one list in memory.
    pub fn is_same(&self, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
    /// Number of holders of this list.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl<T: Clone> Shared<T> {
    /// Changes the list as a vector; copies it: O(n).
    pub fn edit<R>(&mut self, change: impl FnOnce(&mut Vec<T>) -> R) -> R {
        let mut rows = self.0.to_vec();
        let out = change(&mut rows);
        self.0 = rows.into();
        out
    }
    /// Appends a row; copies the list: O(n).
    pub fn push(&mut self, row: T) {
        self.edit(|rows| rows.push(row));
    }
}

impl<T> Deref for Shared<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        &self.0
    }
}
impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        Arc::make_mut(&mut self.0)
    }
}
impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(Arc::clone(&self.0))
    }
}
impl<T> Default for Shared<T> {
    fn default() -> Self {
        Shared(Arc::default())
    }
}
impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<T: Eq> Eq for Shared<T> {}
impl<T: std::hash::Hash> std::hash::Hash for Shared<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<T> From<Vec<T>> for Shared<T> {
    fn from(rows: Vec<T>) -> Self {
        if rows.is_empty() {
            Shared::default()
        } else {
            Shared(rows.into())
        }
    }
}
impl<T> FromIterator<T> for Shared<T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        Shared(rows.into_iter().collect())
    }
}
impl<'a, T> IntoIterator for &'a Shared<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_to_a_shared_list_leaves_the_others_alone() {
        let one: Shared<u32> = vec![1, 2].into();
        let mut other = one.clone();
        assert!(one.is_same(&other) && one.holders() == 2);
        other[0] = 7;
        other.push(3);
        assert_eq!((&*one, &*other), (&[1, 2][..], &[7, 2, 3][..]));
    }
}
