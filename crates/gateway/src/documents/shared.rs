//! Documents that somebody else has. Those of Hive's CDN, and registered documents that all processes know: looked up where one of them is asked for by a hash that this process does
//! not know, and told to the others when a client has registered one here.

use std::{pin::Pin, sync::Arc, time::Instant};

use http::HeaderMap;
use ogive_base::Client;
use ogive_edge::{error::RequestError, receive::GraphqlRequest};

use super::{
    DocumentClient, Registered, Trusted, decode_hex, hex, hive::HiveDocuments, persisted_hash,
    resolve, written::WrittenDocuments,
};
use crate::{
    options::GatewayOptions,
    shared::{shared_state::SharedState, stage::Stage},
};

/// Looks a document up.
type Looking<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Gives a request its document, where it asks for one by an id or a hash.
#[derive(Debug)]
pub(crate) struct ResolveDocument {
    pub(crate) options: Arc<GatewayOptions>,
    pub(crate) registered: Arc<Registered>,
    /// Registered documents that were written where all processes find them.
    pub(crate) written: Arc<WrittenDocuments>,
    pub(crate) shared: Option<Arc<SharedState>>,
}

impl Stage for ResolveDocument {
    const NAME: &'static str = "resolve document";
    const DOES: &'static str =
        "find the document of an id or a hash, reject one that is not trusted";
}

impl ResolveDocument {
    /// Gives a request its document. The hash, if any, is to be registered once the document has proved valid.
    pub(crate) fn resolve(
        &self,
        headers: &HeaderMap,
        request: &mut GraphqlRequest,
    ) -> Result<Option<[u8; 32]>, RequestError> {
        let options = &self.options;
        let client = DocumentClient {
            headers,
            observe: &options.observe,
        };
        resolve(request, &options.documents, &self.registered, client)
    }
    /// Gives a request its document, if it has not got it yet.
    pub(crate) fn run(
        &self,
        headers: &HeaderMap,
        request: &mut GraphqlRequest,
    ) -> Result<Option<[u8; 32]>, RequestError> {
        match request.resolved.take() {
            Some(resolved) => Ok(*resolved),
            // A document that was sent, where nobody looks for others.
            None if self.options.documents.trusted.is_none()
                && request.document_id.is_none()
                && request.persisted_query.is_none() =>
            {
                Ok(None)
            }
            None => self.resolve(headers, request),
        }
    }

    /// Looks for the document of an id or a hash elsewhere, if this process does not have it. If the document is nowhere, the
    /// request is answered as without shared documents: the client then sends the document.
    pub(crate) fn find<'a>(
        &'a self,
        headers: &HeaderMap,
        request: &GraphqlRequest,
    ) -> Option<Looking<'a>> {
        let client = DocumentClient {
            headers,
            observe: &self.options.observe,
        };
        if let Some(trusted) = &self.options.documents.trusted
            && let Some(looking) = trusted.find_elsewhere(request, client)
        {
            return Some(looking);
        }
        let shared = self.shared.as_deref()?;
        let options = &self.options.documents;
        options.shared.filter(|_| options.apq)?;
        if !request.query.is_empty() {
            return None;
        }
        let hash = persisted_hash(request).ok()??;
        let trusted = options.trusted.as_ref();
        if trusted.is_some_and(|trusted| trusted.documents().get(None, &hash).is_some()) {
            return None;
        }
        let wanted = decode_hex(&hash)?;
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
    pub(crate) fn register(&self, client: Option<Client>, hash: [u8; 32], text: &str) {
        let is_new = self.registered.insert(hash, text);
        let shared = self.shared.as_ref().filter(|_| is_new);
        let (Some(kept), Some(shared)) = (self.options.documents.shared, shared) else {
            return;
        };
        let limits = self.options.share_of(kept.bytes_max);
        let client = self.options.counted(client);
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
