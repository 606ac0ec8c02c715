//! Documents that somebody else has. Those of Hive's CDN, and registered documents that all processes know: looked up where one of them is asked for by a hash that this process does
//! not know, and told to the others when a client has registered one here.

use std::{pin::Pin, time::Instant};

use http::HeaderMap;
use ogive_config::Client;

use super::{DocumentClient, Trusted, hex, hive::HiveDocuments, persisted_hash, resolve, unhex};
use crate::{
    gateway::{Gateway, Serving},
    receive::GraphqlRequest,
    shared::error::RequestError,
};

/// Looks a document up.
type Looking<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

impl Gateway {
    /// Gives a request its document. The hash, if any, is to be registered once the document has proved valid.
    pub(crate) fn resolve(
        &self,
        serving: &Serving,
        headers: &HeaderMap,
        request: &mut GraphqlRequest,
    ) -> Result<Option<[u8; 32]>, RequestError> {
        let options = &serving.options;
        let client = DocumentClient {
            headers,
            observe: &options.observe,
        };
        resolve(request, &options.documents, &self.registered, client)
    }
    /// The same, if it has not got it yet.
    pub(crate) fn resolve_once(
        &self,
        serving: &Serving,
        headers: &HeaderMap,
        request: &mut GraphqlRequest,
    ) -> Result<Option<[u8; 32]>, RequestError> {
        match request.resolved.take() {
            Some(resolved) => Ok(*resolved),
            // A document that was sent, where nobody looks for others.
            None if serving.options.documents.trusted.is_none()
                && request.document_id.is_none()
                && request.persisted_query.is_none() =>
            {
                Ok(None)
            }
            None => self.resolve(serving, headers, request),
        }
    }

    /// Looks for the document of an id or a hash, if others may know it and this process does not. Who does not find it, finds out as
    /// if nothing were shared: the client then sends the document.
    pub(crate) fn find_shared<'a>(
        &'a self,
        serving: &'a Serving,
        headers: &HeaderMap,
        request: &GraphqlRequest,
    ) -> Option<Looking<'a>> {
        let client = DocumentClient {
            headers,
            observe: &serving.options.observe,
        };
        if let Some(trusted) = &serving.options.documents.trusted
            && let Some(looking) = trusted.find_elsewhere(request, client)
        {
            return Some(looking);
        }
        let shared = serving.shared.as_deref()?;
        let options = &serving.options.documents;
        options.shared.filter(|_| options.apq)?;
        if !request.query.is_empty() {
            return None;
        }
        let hash = persisted_hash(request).ok()??;
        let trusted = options.trusted.as_ref();
        if trusted.is_some_and(|trusted| trusted.documents().get(None, &hash).is_some()) {
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
    pub(crate) fn register(
        &self,
        serving: &Serving,
        client: Option<Client>,
        hash: [u8; 32],
        text: &str,
    ) {
        let is_new = self.registered.insert(hash, text);
        let shared = serving.shared.as_ref().filter(|_| is_new);
        let (Some(kept), Some(shared)) = (serving.options.documents.shared, shared) else {
            return;
        };
        let limits = serving.options.share_of(kept.bytes_max);
        let client = serving.options.counted(client);
        let now = Instant::now();
        if self.written.admit(client, text.len(), kept, limits, now) {
            shared
                .store
                .put(&key(&hash), text.to_owned(), kept.kept_for);
        }
    }
}

impl Trusted {
    /// Fetches the document of an id, if it is one that is fetched when it is asked for.
    fn find_elsewhere<'a>(
        &'a self,
        request: &GraphqlRequest,
        client: DocumentClient<'_>,
    ) -> Option<Looking<'a>> {
        if self.hive.is_empty() {
            return None;
        }
        let id = match &request.document_id {
            Some(id) => id.clone(),
            None => persisted_hash(request).ok()??,
        };
        if !HiveDocuments::is_id(&id) {
            return None;
        }
        let client = client.name();
        let own = self
            .hive
            .iter()
            .filter(|hive| hive.is_for(client.as_deref()));
        let unknown: Vec<_> = own.filter(|hive| hive.known(&id).is_none()).collect();
        if unknown.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            for hive in unknown {
                hive.look(&id).await;
            }
        }))
    }
}

fn key(hash: &[u8; 32]) -> String {
    format!("document:{}", hex(hash))
}
