//! What tokens, keys and callers are known by where they are not to be kept.

use ring::digest::{SHA256, digest};

/// A SHA-256.
pub type Digest = [u8; 32];

/// The digest of a token, a key, or whatever says who a caller is.
pub fn digest_of(bytes: &[u8]) -> Digest {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, bytes).as_ref());
    out
}
