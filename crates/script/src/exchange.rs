//! What a stage lends to a script, and takes back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::HeaderMap;
use ogive_coprocessor::{ContextEntries, Stage};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// One request or response at a stage.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Where it is.
    pub stage: Stage,
    /// Which HTTP request it is about.
    pub id: String,
    /// Which request to a subgraph it is about.
    pub subgraph_request_id: String,
    /// The headers of the client's request, where the stage is about something else.
    pub client: HeaderMap,
    /// The headers that it is about.
    pub headers: HeaderMap,
    /// The method of the client's request.
    pub method: String,
    /// The URL that it is about: of the client's request, or of the subgraph.
    pub uri: String,
    /// The URL of the client's request, where the stage is about something else.
    pub client_uri: String,
    /// The name of the subgraph.
    pub subgraph: String,
    /// The status of a response.
    pub status: u16,
    /// Whether it is no part that comes after the first.
    pub is_primary: bool,
    /// Whether further parts follow.
    pub has_next: bool,
    /// The members of the body, if the script looks at bodies.
    pub body: Members,
    /// What stages of one request leave for later ones.
    pub context: ContextEntries,
    /// The same of one operation.
    pub own: Option<ContextEntries>,
    /// Whether headers were changed.
    pub has_new_headers: bool,
    /// Whether the URL was changed.
    pub has_new_uri: bool,
    /// Whether the status was changed.
    pub has_new_status: bool,
}

impl Exchange {
    /// Of nothing yet.
    pub fn new(stage: Stage) -> Self {
        Exchange {
            stage,
            id: String::new(),
            subgraph_request_id: String::new(),
            client: HeaderMap::new(),
            headers: HeaderMap::new(),
            method: String::new(),
            uri: String::new(),
            client_uri: String::new(),
            subgraph: String::new(),
            status: 200,
            is_primary: true,
            has_next: false,
            body: Members::default(),
            context: ContextEntries::default(),
            own: None,
            has_new_headers: false,
            has_new_uri: false,
            has_new_status: false,
        }
    }
}

/// An exchange while a script has it.
#[derive(Clone, Debug)]
pub(crate) struct Lent(pub(crate) Arc<Mutex<Exchange>>);

impl Lent {
    pub(crate) fn look(&self) -> MutexGuard<'_, Exchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
