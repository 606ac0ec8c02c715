//! Interned strings: each distinct text gets one dense [`Symbol`].

use crate::{IdVec, define_id, hash::hash_one};
use hashbrown::HashTable;

define_id! {
    /// An interned string; meaningful only with the [`Interner`] that made it.
    pub struct Symbol;
}

/// A set of strings with dense ids. Text lives in one buffer.
#[derive(Clone, Default)]
pub struct Interner {
    text: String,
    ends: IdVec<Symbol, u32>,
    table: HashTable<Symbol>,
}

impl Interner {
    /// An empty interner.
    pub fn new() -> Self {
        Self::default()
    }
    /// An empty interner with room for so many short strings.
    pub fn with_capacity(strings: usize) -> Self {
        Interner {
            text: String::with_capacity(strings * 8),
            ends: IdVec::from_vec(Vec::with_capacity(strings)),
            table: HashTable::with_capacity(strings),
        }
    }
    /// The symbol of `text`, made if new.
    pub fn intern(&mut self, text: &str) -> Symbol {
        if let Some(found) = self.get(text) {
            return found;
        }
        self.text.push_str(text);
        let symbol = self.ends.push(self.text.len() as u32);
        let (buffer, ends) = (&self.text, &self.ends);
        self.table.insert_unique(hash_one(text), symbol, |s| {
            hash_one(slice(buffer, ends, *s))
        });
        symbol
    }
    /// The symbol of `text`, if it was interned.
    pub fn get(&self, text: &str) -> Option<Symbol> {
        self.table
            .find(hash_one(text), |s| {
                slice(&self.text, &self.ends, *s) == text
            })
            .copied()
    }
    /// The text of `symbol`.
    #[inline]
    pub fn text(&self, symbol: Symbol) -> &str {
        slice(&self.text, &self.ends, symbol)
    }
    /// Number of distinct strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Whether nothing was interned.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl std::ops::Index<Symbol> for Interner {
    type Output = str;
    #[inline]
    fn index(&self, symbol: Symbol) -> &str {
        self.text(symbol)
    }
}

impl std::fmt::Debug for Interner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(self.ends.ids().map(|s| (s, self.text(s))))
            .finish()
    }
}

#[inline]
fn slice<'a>(text: &'a str, ends: &IdVec<Symbol, u32>, symbol: Symbol) -> &'a str {
    let start = if symbol.0 == 0 {
        0
    } else {
        ends[Symbol(symbol.0 - 1)]
    };
    &text[start as usize..ends[symbol] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_text_gets_one_symbol() {
        let mut names = Interner::new();
        let (a, empty, b) = (names.intern("id"), names.intern(""), names.intern("name"));
        assert_eq!(names.intern("id"), a);
        assert_eq!(names.intern(""), empty);
        assert_eq!((&names[a], &names[empty], &names[b]), ("id", "", "name"));
        assert_eq!(names.get("nope"), None);
        assert_eq!(names.len(), 3);
    }
}
