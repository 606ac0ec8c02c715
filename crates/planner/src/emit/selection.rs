//! Selection text, written once: equal selections are one row, and a selection inside another is a reference to it.
//!
//! A selection is a list of [`Piece`]s, each written if its condition holds. Text is escaped for a JSON string when it
//! is interned, so that a request is put together by copying. Comparing two selections compares two numbers, which is
//! what makes look-ups of hundreds of places and types cost no more than their number.

use std::{
    hash::{Hash, Hasher},
    rc::Rc,
};

use ogive_base::{FastMap, IdVec, Interner, Symbol, define_id};
use ogive_operation::CondId;

use crate::emit::print;

define_id! {
    /// What is asked of an object; equal for the same text under the same conditions.
    pub struct SelectionId;
}

/// A piece of a selection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Must hold for the piece to be written.
    pub(crate) cond: CondId,
    pub(crate) chunk: Chunk,
}

impl Hash for Piece {
    /// One word: every selection is hashed.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let chunk = match self.chunk {
            Chunk::Text(text) => u64::from(text.0) << 1,
            Chunk::Selection(selection) => u64::from(selection.0) << 1 | 1,
        };
        state.write_u64(u64::from(self.cond.0) << 40 ^ chunk);
    }
}

/// What a piece writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Chunk {
    /// Text.
    Text(Symbol),
    /// Another selection, whose pieces have no conditions unless this one's has none.
    Selection(SelectionId),
}

struct Row {
    pieces: Rc<[Piece]>,
    is_plain: bool,
}

/// All texts and selections of a plan.
#[derive(Default)]
pub(crate) struct Selections {
    texts: Interner,
    /// Variables that a text uses, if any.
    variables: FastMap<Symbol, Vec<u32>>,
    rows: IdVec<SelectionId, Row>,
    known: FastMap<Rc<[Piece]>, SelectionId>,
    escaped: String,
    /// A closing brace.
    closing: Option<Symbol>,
}

impl Selections {
    /// Room for so many selections, each with some texts of its own.
    pub(crate) fn with_capacity(selections: usize) -> Self {
        let mut out = Selections {
            texts: Interner::with_capacity(selections * 4),
            ..Selections::default()
        };
        out.known.reserve(selections);
        out
    }
    /// A text under a condition.
    pub(crate) fn text(&mut self, cond: CondId, text: &str) -> Piece {
        Piece {
            cond,
            chunk: Chunk::Text(self.text_with(text, &[])),
        }
    }
    /// The end of a selection that was opened by a brace.
    pub(crate) fn close(&mut self, cond: CondId) -> Piece {
        let text = match self.closing {
            Some(text) => text,
            None => *self.closing.insert(self.texts.intern("} ")),
        };
        Piece {
            cond,
            chunk: Chunk::Text(text),
        }
    }
    /// A text that uses variables.
    pub(crate) fn text_with(&mut self, text: &str, variables: &[u32]) -> Symbol {
        let symbol = if print::is_plain(text) {
            self.texts.intern(text)
        } else {
            self.escaped.clear();
            print::escape(text, &mut self.escaped);
            self.texts.intern(&self.escaped)
        };
        if !variables.is_empty() {
            self.variables
                .entry(symbol)
                .or_insert_with(|| variables.to_vec());
        }
        symbol
    }
    /// The selection of these pieces.
    pub(crate) fn intern(&mut self, pieces: &[Piece]) -> SelectionId {
        if let Some(found) = self.known.get(pieces) {
            return *found;
        }
        let pieces: Rc<[Piece]> = pieces.into();
        let id = self.rows.push(Row {
            is_plain: pieces.iter().all(|p| p.cond == CondId::TRUE),
            pieces: Rc::clone(&pieces),
        });
        self.known.insert(pieces, id);
        id
    }
    /// The pieces of a selection.
    pub(crate) fn pieces(&self, id: SelectionId) -> Rc<[Piece]> {
        Rc::clone(&self.rows[id].pieces)
    }
    /// Whether no piece has a condition.
    pub(crate) fn is_plain(&self, id: SelectionId) -> bool {
        self.rows[id].is_plain
    }

    /// Calls `write` for every text in order, with its condition and the variables it uses. Nesting is followed on a
    /// stack of its own.
    pub(crate) fn write(&self, pieces: &[Piece], mut write: impl FnMut(&str, CondId, &[u32])) {
        let mut stack: Vec<(&[Piece], CondId)> = Vec::with_capacity(16);
        stack.push((pieces, CondId::TRUE));
        while let Some((pieces, outer)) = stack.pop() {
            let Some((piece, rest)) = pieces.split_first() else {
                continue;
            };
            stack.push((rest, outer));
            let cond = match outer {
                CondId::TRUE => piece.cond,
                outer => outer,
            };
            match piece.chunk {
                Chunk::Text(text) => {
                    let variables = if self.variables.is_empty() {
                        &[][..]
                    } else {
                        self.variables.get(&text).map_or(&[][..], Vec::as_slice)
                    };
                    write(&self.texts[text], cond, variables);
                }
                Chunk::Selection(id) => stack.push((&self.rows[id].pieces, cond)),
            }
        }
    }
}
