//! What is observed of requests, as far as a reload may change it: ids, execution traces, names of clients, attributes.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_config::Config;
use ogive_telemetry::operation::ClientIdentity;
use ogive_transport::first_text;

use crate::shared::attributes::AttributeRules;

/// Longest id of a request that a client may choose.
const REQUEST_ID_MAX: usize = 128;

/// What can change while the process runs.
#[derive(Clone, Debug, Default)]
pub struct ObserveOptions {
    /// The header in which the id of a request travels; `None`: requests have none.
    pub request_id: Option<HeaderName>,
    /// Which clients see where the time went.
    pub execution_trace: Option<ExecutionTrace>,
    /// Headers in which clients say what they are called: the first that is there counts.
    pub client_names: Vec<HeaderName>,
    /// Likewise their version.
    pub client_versions: Vec<HeaderName>,
    /// What log lines, spans and metrics say besides; `None`: nothing.
    pub(crate) attributes: Option<Arc<AttributeRules>>,
}

/// The header that asks for the execution trace, and what it must say.
#[derive(Clone, Debug)]
pub struct ExecutionTrace {
    header: HeaderName,
    secret: Box<[u8]>,
}

impl ObserveOptions {
    /// The options that a configuration asks for.
    pub fn new(config: &Config) -> Self {
        let telemetry = &config.telemetry;
        let name = |name: &ogive_config::HeaderName| HeaderName::from_bytes(name.0.as_bytes()).ok();
        let trace = &telemetry.execution_trace;
        let names = |list: &[ogive_config::HeaderName]| list.iter().filter_map(name).collect();
        ObserveOptions {
            request_id: name(&telemetry.request_id.header).filter(|_| telemetry.request_id.enabled),
            execution_trace: name(&trace.header).filter(|_| trace.enabled).map(|header| {
                ExecutionTrace {
                    header,
                    secret: trace.secret.as_deref().unwrap_or("true").as_bytes().into(),
                }
            }),
            client_names: names(&telemetry.clients.name_headers),
            client_versions: names(&telemetry.clients.version_headers),
            attributes: AttributeRules::new(config),
        }
    }
    /// What the client of a request is called, if it says so.
    pub(crate) fn client_of(&self, headers: &HeaderMap) -> Option<Box<ClientIdentity>> {
        let (name, version) = (&self.client_names, &self.client_versions);
        let (name, version) = (first_text(headers, name), first_text(headers, version));
        if name.is_none() && version.is_none() {
            return None;
        }
        // Labels of metrics, and attributes of spans.
        Some(Box::new(ClientIdentity {
            name: name.unwrap_or_default().into(),
            version: version.unwrap_or_default().into(),
        }))
    }
    /// Whether requests need a record although nothing is exported.
    pub(crate) fn is_on(&self) -> bool {
        self.request_id.is_some() || self.execution_trace.is_some()
    }
    /// The header with which everybody gets the execution trace, if there is one.
    pub(crate) fn open_trace(&self) -> Option<&str> {
        let trace = self.execution_trace.as_ref()?;
        (&*trace.secret == b"true").then(|| trace.header.as_str())
    }
    /// Whether this client gets the execution trace.
    pub(crate) fn traces(&self, headers: &HeaderMap) -> bool {
        let Some(trace) = &self.execution_trace else {
            return false;
        };
        let sent = headers.get(&trace.header).map(HeaderValue::as_bytes);
        // In constant time: how long it takes must not tell how much of a guess was right.
        sent.is_some_and(|sent| {
            sent.len() == trace.secret.len()
                && sent
                    .iter()
                    .zip(&trace.secret)
                    .fold(0, |acc, (a, b)| acc | (a ^ b))
                    == 0
        })
    }
    /// The id of a request: the client's, if it is one, else `make`'s.
    pub(crate) fn id_of(
        &self,
        headers: &HeaderMap,
        make: impl FnOnce() -> u128,
    ) -> Option<HeaderValue> {
        let name = self.request_id.as_ref()?;
        let fine = |value: &&HeaderValue| {
            let bytes = value.as_bytes();
            (1..=REQUEST_ID_MAX).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
        };
        match headers.get(name).filter(fine) {
            Some(value) => Some(value.clone()),
            None => HeaderValue::from_str(&format!("{:032x}", make())).ok(),
        }
    }
}
