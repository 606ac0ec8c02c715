//! Headers that are for the gateway alone.

use http::{HeaderMap, HeaderName, HeaderValue, header::Entry};
use ogive_transport::headers::is_read_as;

/// Takes a header out, and what others read as one of its name.
pub fn take(headers: &mut HeaderMap, name: &HeaderName) -> Vec<HeaderValue> {
    let is_like = |other: &&HeaderName| *other != name && is_read_as(other, name);
    let like: Vec<HeaderName> = headers.keys().filter(is_like).cloned().collect();
    for name in like {
        headers.remove(name);
    }
    match headers.entry(name) {
        Entry::Occupied(entry) => entry.remove_entry_mult().1.collect(),
        Entry::Vacant(_) => Vec::new(),
    }
}
