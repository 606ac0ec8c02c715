//! Trusted documents: the operations that clients are known to send.
//!
//! - [`form`](mod@form): when two documents ask for the same, however they are written;
//! - [`manifest`]: lists of documents by id, in the formats of Apollo, Relay, Hive and Cosmo;
//! - [`source_tree`]: the files of a front end, and [`extract`](mod@extract): the operations in them, whole, with the
//!   fragments that they spread; [`javascript`] finds documents in JavaScript and TypeScript, and [`embedded`] says where
//!   in a file each of their bytes is;
//! - [`client_form`]: what a client makes of a document before it sends it.
//!
//! Invariants: nothing recurses over what is read, every input has a limit, and equal inputs give equal bytes.

pub mod client_form;
pub mod embedded;
pub mod extract;
pub mod form;
pub mod javascript;
pub mod manifest;
pub mod source_tree;

pub use extract::{ExtractOptions, Extraction, FoundOperation, extract};
pub use form::{form, sha256};
pub use manifest::{ManifestEntry, ManifestError, ManifestFormat};
pub use source_tree::{SourceFile, SourceTree, TreeError};

/// Codes of this crate's diagnostics.
pub mod codes {
    /// A fragment that is spread is nowhere.
    pub const UNKNOWN_FRAGMENT: &str = "UNKNOWN_FRAGMENT";
    /// Two fragments of one name are not the same.
    pub const AMBIGUOUS_FRAGMENT: &str = "AMBIGUOUS_FRAGMENT";
    /// Two operations of one name are not the same.
    pub const DUPLICATE_OPERATION: &str = "DUPLICATE_OPERATION";
    /// An operation has no name.
    pub const UNNAMED_OPERATION: &str = "UNNAMED_OPERATION";
    /// A part of a document is only known when the program runs.
    pub const DYNAMIC_DOCUMENT: &str = "DYNAMIC_DOCUMENT";
    /// A literal is not closed.
    pub const UNTERMINATED_LITERAL: &str = "UNTERMINATED_LITERAL";
    /// A file cannot be read.
    pub const FILE_LEFT_OUT: &str = "FILE_LEFT_OUT";
    /// There are more operations than can be taken.
    pub const TOO_MANY_OPERATIONS: &str = "TOO_MANY_OPERATIONS";
}
