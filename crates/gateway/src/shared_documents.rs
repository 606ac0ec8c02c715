//! Registered documents that all processes know: looked up where one of them is asked for by a hash that this process does
//! not know, and told to the others when a client has registered one here.

use std::pin::Pin;

use crate::{
    documents::{hex, persisted_hash, unhex},
    gateway::{Gateway, Serving},
    receive::GraphqlRequest,
};

/// Looks a document up.
type Looking<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

impl Gateway {
    /// Looks for the document of a hash, if others may know it and this process does not. Who does not find it, finds out as
    /// if nothing were shared: the client then sends the document.
    pub(crate) fn find_shared<'a>(
        &'a self,
        serving: &'a Serving,
        request: &GraphqlRequest,
    ) -> Option<Looking<'a>> {
        let shared = serving.shared.as_deref()?;
        let options = &serving.options.documents;
        options.shared.filter(|_| options.apq)?;
        if !request.query.is_empty() {
            return None;
        }
        let hash = persisted_hash(request).ok()??;
        let trusted = options.trusted.as_ref();
        if trusted.is_some_and(|trusted| trusted.manifest.get(&hash).is_some()) {
            return None;
        }
        let wanted = unhex(&hash)?;
        if self.registered.has(&wanted) {
            return None;
        }
        Some(Box::pin(async move {
            if let Ok(Some(text)) = shared.store.get(&key(&wanted)).await {
                self.registered.insert_found(wanted, &text);
            }
        }))
    }

    /// Remembers a document that a client has registered, and tells other processes of it.
    pub(crate) fn register(&self, serving: &Serving, hash: [u8; 32], text: &str) {
        let is_new = self.registered.insert(hash, text);
        let shared = serving.shared.as_ref().filter(|_| is_new);
        if let (Some(kept), Some(shared)) = (serving.options.documents.shared, shared) {
            shared.store.put(&key(&hash), text.to_owned(), kept);
        }
    }
}

fn key(hash: &[u8; 32]) -> String {
    format!("document:{}", hex(hash))
}
