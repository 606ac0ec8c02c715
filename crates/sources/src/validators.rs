//! What a URL says of the text that it gave last, by which it tells whether there is another one (RFC 9110, section 8.8).

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// What is known of a text.
#[derive(Clone, Debug, Default)]
pub struct Validators([Option<HeaderValue>; 2]);

const NAMES: [(HeaderName, HeaderName); 2] = [
    (header::ETAG, header::IF_NONE_MATCH),
    (header::LAST_MODIFIED, header::IF_MODIFIED_SINCE),
];

impl Validators {
    /// Those of an answer.
    pub fn of(headers: &HeaderMap) -> Self {
        Validators(NAMES.map(|(name, _)| headers.get(name).cloned()))
    }
    /// Asks for another text only.
    pub fn ask(&self, headers: &mut HeaderMap) {
        for (known, (_, asked)) in self.0.iter().zip(NAMES) {
            if let Some(known) = known {
                headers.insert(asked, known.clone());
            }
        }
    }
}
