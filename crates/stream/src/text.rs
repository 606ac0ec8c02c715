//! Text that shares its bytes.

use std::{fmt, ops::Deref};

use bytes::Bytes;

/// UTF-8 in bytes that may be shared: with other messages that came together, or with who else is sent the same.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Utf8Bytes(Bytes);

impl Utf8Bytes {
    /// The bytes, if they are UTF-8.
    pub(crate) fn checked(bytes: Bytes) -> Option<Self> {
        std::str::from_utf8(&bytes).is_ok().then_some(())?;
        Some(Utf8Bytes(bytes))
    }
    /// As text.
    pub fn as_str(&self) -> &str {
        // Nothing else is made one of these.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Deref for Utf8Bytes {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Debug for Utf8Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl From<String> for Utf8Bytes {
    fn from(text: String) -> Self {
        Utf8Bytes(text.into())
    }
}

impl From<&str> for Utf8Bytes {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Utf8Bytes> for Bytes {
    fn from(text: Utf8Bytes) -> Self {
        text.0
    }
}
