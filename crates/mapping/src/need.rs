//! What a program reads of its inputs: the keys at every place, as a tree for each input.
//!
//! The tree is an index for [`pick`](crate::run): values at its places are found in one pass over the text. A place
//! stands for its value and, if that is a list, for every item, because paths map over lists.

use ogive_base::{IdVec, define_id};
use ogive_json::write_string;

define_id! {
    /// One place of an input.
    pub struct NeedId;
}

/// One place of an input that a program reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Need {
    /// Keys that are read there, in the order of first use.
    pub(crate) children: Vec<NeedChild>,
    /// Whether the value as a whole is used, with all that is in it.
    pub(crate) used: bool,
}

/// A key that is read at a place.
#[derive(Clone, Debug)]
pub(crate) struct NeedChild {
    pub(crate) key: Box<str>,
    /// The key as JSON, quotes included.
    pub(crate) json: Box<[u8]>,
    pub(crate) need: NeedId,
}

/// The place below another with some key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    /// Its row of [`Need::children`].
    pub(crate) slot: u32,
    pub(crate) need: NeedId,
}

/// All places of all inputs of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    rows: IdVec<NeedId, Need>,
}

impl Needs {
    /// A new tree.
    pub(crate) fn add_root(&mut self) -> NeedId {
        self.rows.push(Need::default())
    }
    /// The place below `parent` with that key; added if it is new.
    pub(crate) fn child(&mut self, parent: NeedId, key: &str) -> Child {
        let children = &self.rows[parent].children;
        if let Some(slot) = children.iter().position(|child| &*child.key == key) {
            return Child {
                slot: slot as u32,
                need: children[slot].need,
            };
        }
        let slot = children.len() as u32;
        let need = self.add_root();
        let mut json = Vec::with_capacity(key.len() + 2);
        write_string(&mut json, key);
        self.rows[parent].children.push(NeedChild {
            key: key.into(),
            json: json.into(),
            need,
        });
        Child { slot, need }
    }
    /// Says that the value at a place is used as a whole.
    pub(crate) fn mark_used(&mut self, need: NeedId) {
        self.rows[need].used = true;
    }
    pub(crate) fn get(&self, need: NeedId) -> &Need {
        &self.rows[need]
    }

    /// All paths below a place whose values are used as a whole, as keys with dots between them.
    pub(crate) fn paths(&self, root: NeedId) -> Vec<String> {
        let mut paths = Vec::new();
        // Depth is bounded by the number of steps in the mapping, so the stack is on the heap.
        let mut open = vec![(root, String::new())];
        while let Some((need, path)) = open.pop() {
            let row = &self.rows[need];
            for child in row.children.iter().rev() {
                let dot = if path.is_empty() { "" } else { "." };
                open.push((child.need, format!("{path}{dot}{}", child.key)));
            }
            if row.used {
                paths.push(path);
            }
        }
        paths
    }
}
