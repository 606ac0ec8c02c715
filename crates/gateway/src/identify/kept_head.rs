//! What stays of the head of a request for components that say who asks.

use http::HeaderMap;

/// The head of a request as components look at it, kept to be judged once more.
#[derive(Clone)]
pub(crate) struct KeptHead {
    pub(super) method: Box<str>,
    pub(super) uri: Box<str>,
    /// Those that one of them may read.
    pub(super) headers: HeaderMap,
}

impl KeptHead {
    /// All of it, for a digest.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let headers = self.headers.iter();
        let headers =
            headers.flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
        let line = [self.method.as_bytes(), self.uri.as_bytes()];
        line.into_iter().chain(headers)
    }
}
