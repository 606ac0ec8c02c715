//! Keys of JSON objects that are compared or written, each compiled once.

use ogive_base::FastMap;
use ogive_json::Key;

/// Keys, each once.
#[derive(Debug, Default)]
pub(crate) struct KeyTable {
    keys: Vec<Key>,
    known: FastMap<Box<[u8]>, u32>,
}

impl KeyTable {
    /// The key of a member that begins with `json`, which is `"key":`.
    pub(crate) fn of(&mut self, json: &[u8]) -> u32 {
        if let Some(key) = self.known.get(json) {
            return *key;
        }
        let key = self.keys.len() as u32;
        self.keys.push(Key::from_json(json));
        self.known.insert(json.into(), key);
        key
    }
    pub(crate) fn of_name(&mut self, name: &str) -> u32 {
        self.of(&[b"\"", name.as_bytes(), b"\":"].concat())
    }
    pub(crate) fn finish(mut self) -> Vec<Key> {
        self.keys.shrink_to_fit();
        self.keys
    }
}

/// Whether a key stands in JSON as it is.
pub(crate) fn needs_no_escapes(key: &str) -> bool {
    !key.bytes()
        .any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\')
}
