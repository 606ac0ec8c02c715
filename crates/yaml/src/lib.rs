//! YAML text to a tree of nodes with their places in the text.
//!
//! One reader for all files that are written by hand. JSON is YAML, too. What such files do not need is refused instead
//! of half supported: several documents, tags, keys that are no single words, and aliases unless [`Limits`] let them be.
//!
//! Reading order: [`tree`] (what a text becomes), [`parse`].

mod reader;
pub mod tree;

pub use reader::{ErrorKind, Limits, YamlError, parse};
pub use tree::{Key, Node, Value};
