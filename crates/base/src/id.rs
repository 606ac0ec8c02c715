//! Typed `u32` ids and the dense tables they index.
//!
//! An id is an index into exactly one kind of table; [`define_id!`](crate::define_id) makes a new kind.
//! Tables are plain vectors, so graphs built from ids are cache-friendly, trivially cloned and compared.

use std::{
    fmt,
    marker::PhantomData,
    ops::{Index, IndexMut},
};

/// A dense index of one kind. Implemented by [`define_id!`](crate::define_id) only.
pub trait Id: Copy + Eq + Ord + std::hash::Hash + fmt::Debug {
    /// The id of row `index`; saturates at `u32::MAX`, which no table reaches.
    fn from_usize(index: usize) -> Self;
    /// The row this id stands for.
    fn index(self) -> usize;
}

/// Declares a typed id: `define_id!(/// docs
/// pub struct TypeId);`.
#[macro_export]
macro_rules! define_id {
    ($(#[$meta:meta])* $vis:vis struct $name:ident;) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(pub u32);
        impl $crate::id::Id for $name {
            #[inline]
            fn from_usize(index: usize) -> Self {
                $name(u32::try_from(index).unwrap_or(u32::MAX))
            }
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

/// A vector indexed by one kind of id.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdVec<I, T> {
    rows: Vec<T>,
    kind: PhantomData<fn(I)>,
}

impl<I: Id, T> IdVec<I, T> {
    /// An empty table.
    pub const fn new() -> Self {
        IdVec {
            rows: Vec::new(),
            kind: PhantomData,
        }
    }
    /// A table over existing rows; row 0 gets id 0.
    pub const fn from_vec(rows: Vec<T>) -> Self {
        IdVec {
            rows,
            kind: PhantomData,
        }
    }
    /// Appends a row and returns its id.
    pub fn push(&mut self, row: T) -> I {
        let id = I::from_usize(self.rows.len());
        self.rows.push(row);
        id
    }
    /// The id the next [`push`](Self::push) will return.
    pub fn next_id(&self) -> I {
        I::from_usize(self.rows.len())
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// The row of `id`, if there is one.
    pub fn get(&self, id: I) -> Option<&T> {
        self.rows.get(id.index())
    }
    /// All ids in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.rows.len()).map(I::from_usize)
    }
    /// All rows with their ids, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.rows
            .iter()
            .enumerate()
            .map(|(i, row)| (I::from_usize(i), row))
    }
    /// All rows with their ids, in order, mutable.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (I, &mut T)> + ExactSizeIterator {
        self.rows
            .iter_mut()
            .enumerate()
            .map(|(i, row)| (I::from_usize(i), row))
    }
    /// The rows as a slice.
    pub fn as_slice(&self) -> &[T] {
        &self.rows
    }
    /// Gives up spare capacity.
    pub fn shrink_to_fit(&mut self) {
        self.rows.shrink_to_fit();
    }
}

impl<I: Id, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T: fmt::Debug> fmt::Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        &self.rows[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.rows[id.index()]
    }
}

impl<I: Id, T> Index<IdRange<I>> for IdVec<I, T> {
    type Output = [T];
    #[inline]
    fn index(&self, range: IdRange<I>) -> &[T] {
        &self.rows[range.start as usize..range.end as usize]
    }
}

impl<I: Id, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(iter: A) -> Self {
        IdVec::from_vec(iter.into_iter().collect())
    }
}

/// A run of neighbouring ids, half open.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdRange<I> {
    /// First row.
    pub start: u32,
    /// One past the last row.
    pub end: u32,
    kind: PhantomData<fn(I)>,
}

impl<I: Id> IdRange<I> {
    /// The run from `start` up to but excluding `end`.
    pub fn new(start: I, end: I) -> Self {
        IdRange {
            start: start.index() as u32,
            end: end.index() as u32,
            kind: PhantomData,
        }
    }
    /// The empty run.
    pub const fn empty() -> Self {
        IdRange {
            start: 0,
            end: 0,
            kind: PhantomData,
        }
    }
    /// Number of ids.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
    /// The ids in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator {
        (self.start as usize..self.end as usize).map(I::from_usize)
    }
}

impl<I: Id> fmt::Debug for IdRange<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}
