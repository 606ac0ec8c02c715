//! Where an HTTP/1.1 answer begins and ends (RFC 9112), without reading anything itself.
//!
//! Bytes come in any pieces into one buffer. [`HeadReader`] takes heads off its front, [`Body`] turns the rest into the
//! body where it lies: of a body in one piece or one chunk no byte is moved, further chunks are moved down over the lines
//! between them. What is found does not depend on how the bytes are cut, but for which of several faults is named.
//!
//! Lenient only where servers in use need it (lines of a head that end without `\r`, no reason phrase); what could be read in
//! two ways is refused, and an answer with any doubt about its end is the last one of its connection. This folder depends on
//! nothing else of the crate, so that `fuzz/` can include it.

mod body;
mod head;
mod personal;
#[cfg(test)]
mod tests;

use std::fmt;

pub(crate) use body::Body;
pub(crate) use head::{Framing, Head, HeadReader, HeaderScope};
pub(crate) use personal::is_personal;

/// Longest head of an answer in bytes. (hyper: about 400 KiB.)
pub(crate) const HEAD_MAX: usize = 64 << 10;
/// Most headers of an answer. (hyper: as many.)
pub(crate) const HEADERS_MAX: usize = 100;
/// Most heads with a status of 1xx before an answer.
pub(crate) const INTERIM_MAX: usize = 16;
/// Most bytes of all chunk extensions of an answer. (hyper: as many.)
pub(crate) const EXTENSIONS_MAX: usize = 16 << 10;
/// Most bytes of trailers. (hyper: as many.)
pub(crate) const TRAILERS_MAX: usize = 16 << 10;

/// Why an answer is no HTTP/1.1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the answer is no HTTP/1.1: {}", self.0)
    }
}
