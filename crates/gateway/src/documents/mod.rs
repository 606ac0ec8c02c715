//! Documents known by an id: automatic persisted queries, and trusted documents from manifests.
//!
//! Part of stop 1: afterwards a request has a document, or was refused. An automatic persisted query is remembered only
//! after its document turned out to be valid, so that nobody can fill the memory with noise; its id must be the
//! document's SHA-256, so one client cannot change what another means.
//!
//! - [`trusted`]: trusted documents, from files ([`manifest`]), other sources (`source`) and Hive's CDN (`hive`), and what
//!   becomes of others (`unknown`);
//! - [`registered`]: those that clients have registered, and [`shared`] those that all processes know.

pub(crate) mod epoch;
mod hive;
pub mod manifest;
pub mod registered;
pub(crate) mod shared;
mod source;
pub mod trusted;
mod unknown;
pub(crate) mod written;

use std::{sync::Arc, time::Duration};

use http::HeaderMap;
pub(crate) use ogive_base::encode::{decode_hex, hex};
use ogive_config::{Config, PersistedMode, StorageWord};
pub use ogive_documents::form;
use ogive_documents::{manifest::SHA256_PREFIX, sha256};
use ogive_edge::{error::RequestError, json_value, receive::GraphqlRequest};
use ogive_telemetry::codes;
use serde_json::Value;

use hive::{HiveAnswer, HiveDocuments};
pub use manifest::Manifest;
pub use registered::Registered;
pub use trusted::Trusted;

use crate::shared::observe::ObserveOptions;

/// Largest `extensions.persistedQuery` in bytes.
const PERSISTED_QUERY_BYTES_MAX: usize = 8 << 10;
/// Longest id in bytes.
const ID_BYTES_MAX: usize = 512;

/// How registered documents are kept where all processes find them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedDocumentOptions {
    /// How long.
    pub kept_for: Duration,
    /// Most bytes of one.
    pub document_bytes_max: usize,
    /// Most bytes of all that this process has written there.
    pub bytes_max: usize,
}

/// How documents are found.
#[derive(Clone, Debug, Default)]
pub struct DocumentOptions {
    /// Whether clients may register documents.
    pub apq: bool,
    /// How those are kept where all processes find them; `None`: each process has its own.
    pub shared: Option<SharedDocumentOptions>,
    /// Trusted documents, if ids are looked up.
    pub trusted: Option<Arc<Trusted>>,
}

impl DocumentOptions {
    /// The options that a configuration asks for; reads its manifests. The error is for the operator.
    pub fn new(config: &Config) -> Result<Self, String> {
        let trusted = if config.persisted_queries.enabled {
            Some(Arc::new(Trusted::new(config)?))
        } else {
            None
        };
        Ok(DocumentOptions {
            trusted,
            ..Self::without_files(config)
        })
    }

    /// The same without trusted documents.
    pub(crate) fn without_files(config: &Config) -> Self {
        let cache = &config.apq.router.cache;
        let is_shared = cache.storage == StorageWord::Redis;
        DocumentOptions {
            apq: config.apq.enabled,
            shared: is_shared.then_some(SharedDocumentOptions {
                kept_for: cache.ttl.0,
                document_bytes_max: cache.max_document_size.0,
                bytes_max: cache.max_shared_size.0,
            }),
            trusted: None,
        }
    }
}

impl DocumentOptions {
    /// Whether an operation that was let in may go on.
    pub(crate) fn still_admit(&self, text: &str, client: DocumentClient<'_>) -> bool {
        let trusted = self.trusted.as_ref();
        trusted.is_none_or(|trusted| trusted.still_admits(text, client.name().as_deref()))
    }
}

/// Who asks, for rules and documents of single clients.
#[derive(Clone, Copy, Debug)]
pub struct DocumentClient<'a> {
    /// What the client sends.
    pub headers: &'a HeaderMap,
    /// Where in it its name is.
    pub observe: &'a ObserveOptions,
}

impl DocumentClient<'_> {
    fn name(&self) -> Option<Box<str>> {
        let identity = self.observe.client_of(self.headers)?;
        Some(identity.name).filter(|name| !name.is_empty())
    }
}

/// Gives a request its document. The hash, if any, is to be registered once the document has proved valid.
pub fn resolve(
    request: &mut GraphqlRequest,
    options: &DocumentOptions,
    registered: &Registered,
    client: DocumentClient<'_>,
) -> Result<Option<[u8; 32]>, RequestError> {
    let hash = match persisted_hash(request)? {
        Some(hash) => Some(hash),
        None if request.document_id.is_none() && options.trusted.is_none() => return Ok(None),
        None => None,
    };
    if let Some(trusted) = &options.trusted {
        if resolve_trusted(request, trusted, hash.as_deref(), client)? {
            return Ok(None);
        }
    } else if request.document_id.is_some() && request.query.is_empty() {
        return Err(RequestError::graphql(
            codes::PERSISTED_QUERY_NOT_IN_LIST,
            "documents are not served by id here",
        ));
    }
    let Some(hash) = hash else {
        return Ok(None);
    };
    if !options.apq {
        return if request.query.is_empty() {
            Err(RequestError::graphql(
                codes::PERSISTED_QUERY_NOT_SUPPORTED,
                "PersistedQueryNotSupported",
            ))
        } else {
            Ok(None)
        };
    }
    let wanted = decode_hex(&hash).ok_or_else(|| {
        RequestError::graphql(
            codes::PERSISTED_QUERY_HASH_MISMATCH,
            "the hash is not a SHA-256 in hexadecimal",
        )
    })?;
    if request.query.is_empty() {
        // Clients of automatic persisted queries look for these very words.
        let text = registered.get(&wanted).ok_or_else(|| {
            RequestError::graphql(codes::PERSISTED_QUERY_NOT_FOUND, "PersistedQueryNotFound")
        })?;
        request.query = text.to_string();
        if let Some(trusted) = &options.trusted {
            judge_text(request, trusted, client.name().as_deref())?;
        }
        return Ok(None);
    }
    if sha256(&request.query) != wanted {
        return Err(RequestError::graphql(
            codes::PERSISTED_QUERY_HASH_MISMATCH,
            "provided sha does not match query",
        ));
    }
    Ok(Some(wanted))
}

/// Gives a request the trusted document it asks for, or refuses it. Whether nothing more is to be looked for.
fn resolve_trusted(
    request: &mut GraphqlRequest,
    trusted: &Trusted,
    hash: Option<&str>,
    client: DocumentClient<'_>,
) -> Result<bool, RequestError> {
    let documents = trusted.documents();
    let client = if trusted.asks_for_client(&documents) {
        client.name()
    } else {
        None
    };
    let client = client.as_deref();
    let rule = trusted.rule(client);
    let id = request.document_id.as_deref().or(hash);
    if let Some((id, text)) = id.and_then(|id| Some((id, documents.get(client, id)?))) {
        if !request.query.is_empty() && !documents.is_of(client, id, &request.query) {
            return Err(other_document());
        }
        request.query = text.to_string();
        return Ok(true);
    }
    if let Some(answer) = id.and_then(|id| trusted.hive_answer(id, client)) {
        let text = answer?;
        if !request.query.is_empty() && form(&request.query) != form(&text) {
            return Err(other_document());
        }
        request.query = text.to_string();
        return Ok(true);
    }
    if request.query.is_empty()
        && (request.document_id.is_some()
            || (rule.mode == PersistedMode::Require && !trusted.warn_only))
    {
        return match id {
            None => Ok(true),
            Some(_) => Err(not_in_list()),
        };
    }
    let own = request.document_id.as_deref();
    if let Some(hash) = own.and_then(|id| id.strip_prefix(SHA256_PREFIX))
        && decode_hex(hash) != Some(sha256(&request.query))
    {
        return Err(other_document());
    }
    judge_text(request, trusted, client)?;
    Ok(false)
}

/// Whether a document that was sent, or registered before, may be served though nobody asks for it by an id of a manifest.
fn judge_text(
    request: &GraphqlRequest,
    trusted: &Trusted,
    client: Option<&str>,
) -> Result<(), RequestError> {
    let rule = trusted.rule(client);
    if request.query.is_empty() || (rule.mode == PersistedMode::Allow && !trusted.log_unknown) {
        return Ok(());
    }
    let known = trusted.documents().has(client, &request.query);
    let refusal = match (rule.mode, known) {
        (_, false) => (
            codes::QUERY_NOT_IN_SAFELIST,
            "the operation is not in the list of known operations",
        ),
        (PersistedMode::Require, true) if rule.require_id => (
            codes::PERSISTED_QUERY_ID_REQUIRED,
            "the operation must be asked for by its id",
        ),
        _ => return Ok(()),
    };
    let is_served = rule.mode != PersistedMode::Require || trusted.warn_only;
    if is_served || (trusted.log_unknown && !known) {
        let why = match (known, is_served) {
            (true, _) => "an operation is not asked for by its id",
            (false, true) => "an operation is not in any manifest",
            (false, false) => "an operation is refused, because it is not in any manifest",
        };
        let name = request.operation_name.as_deref();
        trusted.unknown().note(client, name, &request.query, why);
    }
    if is_served {
        return Ok(());
    }
    Err(RequestError::graphql(refusal.0, refusal.1))
}

impl Trusted {
    /// What is known of a document of Hive's; `None` if it is none.
    fn hive_answer(
        &self,
        id: &str,
        client: Option<&str>,
    ) -> Option<Result<Arc<str>, RequestError>> {
        if self.hive.is_empty() || !HiveDocuments::is_id(id) {
            return None;
        }
        let mut is_unknown = false;
        for hive in self.hive.iter().filter(|hive| hive.is_for(client)) {
            match hive.known(id) {
                Some(HiveAnswer::Text(text)) => return Some(Ok(text)),
                Some(HiveAnswer::Absent) => {}
                None => is_unknown = true,
            }
        }
        Some(Err(if is_unknown {
            RequestError::graphql(
                codes::PERSISTED_QUERIES_UNAVAILABLE,
                "whoever has the documents does not answer",
            )
        } else {
            not_in_list()
        }))
    }
}

fn other_document() -> RequestError {
    RequestError::graphql(
        codes::PERSISTED_QUERY_HASH_MISMATCH,
        "the document sent along is not the one of this id",
    )
}

fn not_in_list() -> RequestError {
    RequestError::graphql(
        codes::PERSISTED_QUERY_NOT_IN_LIST,
        "no document has this id",
    )
}

/// `extensions.persistedQuery.sha256Hash` of version 1.
pub(crate) fn persisted_hash(request: &GraphqlRequest) -> Result<Option<String>, RequestError> {
    let Some(persisted) = &request.persisted_query else {
        return Ok(None);
    };
    let malformed = |what: &str| Err(RequestError::http(codes::INVALID_GRAPHQL_REQUEST, what));
    if persisted.len() > PERSISTED_QUERY_BYTES_MAX {
        return malformed("`extensions.persistedQuery` is larger than 8,192 bytes");
    }
    let persisted = json_value::read(persisted).unwrap_or_default();
    match persisted.get("version").and_then(Value::as_u64) {
        Some(1) => {}
        _ => return malformed("`extensions.persistedQuery.version` is not 1"),
    }
    match persisted.get("sha256Hash") {
        Some(Value::String(hash)) if hash.len() <= ID_BYTES_MAX => Ok(Some(hash.clone())),
        _ => malformed("`extensions.persistedQuery.sha256Hash` is not a hash"),
    }
}
