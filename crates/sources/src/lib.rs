//! Texts that change while a process runs: configurations, supergraphs, schemas of subgraphs, key sets. Where they come from,
//! how their changes arrive, and how a change is told; not what they mean.
//!
//! - [`FileLook`], [`FileLooks`]: a file is looked at from outside, and counts when it is written;
//! - [`Validators`]: a URL says whether its text is another one;
//! - [`Poller`]: a URL is asked again and again, less and less often while it fails; the last good text is kept on disk;
//! - [`SourceEvent`]: what became of a text, logged and counted by its name;
//! - [`told`]: what has changed, as the cause of what follows.
//!
//! Invariant: a text that cannot be used changes nothing, and is told once.

mod change;
mod event;
mod file_look;
mod poller;
mod validators;

pub use change::told;
pub use event::{SourceEvent, SourceKind, SourceResult, counts};
pub use file_look::{FileLook, FileLooks, FirstLook};
pub use poller::{Poller, PollerOptions, TextReader};
pub use validators::Validators;
