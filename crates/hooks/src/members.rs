//! Members of JSON objects that are changed without reading the others.

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of a JSON object, each as it is written: those that nobody touches keep every digit.
#[derive(Clone, Debug, Default)]
pub struct Members {
    members: Vec<(String, Box<RawValue>)>,
    is_changed: bool,
}

impl Members {
    /// Reads an object; `None` if it is none.
    pub fn read(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }
    /// The object, if it is another one than was read.
    pub fn changed(&self) -> Option<Bytes> {
        if !self.is_changed {
            return None;
        }
        let mut out = vec![b'{'];
        for (at, (name, value)) in self.members.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            ogive_json::write_string(&mut out, name);
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
        out.push(b'}');
        Some(out.into())
    }
    /// A member, as it is written.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).map(RawValue::get)
    }
    /// Sets a member.
    pub fn put(&mut self, name: &str, value: Box<RawValue>) {
        self.set(name, Some(value));
    }
    pub(crate) fn get(&self, name: &str) -> Option<&RawValue> {
        let mut members = self.members.iter();
        members
            .find(|(known, _)| known == name)
            .map(|(_, value)| &**value)
    }
    /// Sets a member; `None` takes it away.
    pub(crate) fn set(&mut self, name: &str, value: Option<Box<RawValue>>) {
        self.is_changed = true;
        let at = self.members.iter().position(|(known, _)| known == name);
        match (at, value) {
            (Some(at), Some(value)) => self.members[at].1 = value,
            (Some(at), None) => {
                self.members.remove(at);
            }
            (None, Some(value)) => self.members.push((name.to_owned(), value)),
            (None, None) => {}
        }
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut out = Members::default();
                while let Some(member) = map.next_entry()? {
                    out.members.push(member);
                }
                Ok(out)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}
