//! Conditions that are judged where a request to a subgraph is made: of header rules, and of other URLs.

use std::{borrow::Cow, sync::Arc};

use http::{HeaderMap, HeaderName};
use ogive_base::Client;
use ogive_config::ClientsOptions;
use ogive_selectors::{Condition, Selector};
use ogive_transport::{CallerContext, ClientValue, RequestCondition, SharedCondition, first_text};

use crate::shared::selectors::{Selected, header_text, is_met};

/// The headers in which clients say what they are called.
#[derive(Clone, Debug)]
pub(crate) struct ClientHeaders {
    pub(crate) names: Box<[HeaderName]>,
    pub(crate) versions: Box<[HeaderName]>,
}

impl ClientHeaders {
    pub(crate) fn new(clients: &ClientsOptions) -> Self {
        // They were checked when they were read.
        let headers = |names: &[ogive_config::HeaderName]| {
            let names = names.iter();
            let names = names.filter_map(|name| HeaderName::from_bytes(name.0.as_bytes()).ok());
            names.collect()
        };
        ClientHeaders {
            names: headers(&clients.name_headers),
            versions: headers(&clients.version_headers),
        }
    }
}

/// One of the configuration.
#[derive(Debug)]
struct ConfiguredCondition {
    condition: Condition,
    clients: ClientHeaders,
    /// The client's headers that it looks at.
    headers: Box<[HeaderName]>,
}

/// A condition of the configuration, to be judged for each client request.
pub(crate) fn condition(condition: &Condition, clients: &ClientsOptions) -> SharedCondition {
    let clients = ClientHeaders::new(clients);
    SharedCondition(Arc::new(ConfiguredCondition {
        headers: looked_at(condition, &clients),
        condition: condition.clone(),
        clients,
    }))
}

fn looked_at(condition: &Condition, clients: &ClientHeaders) -> Box<[HeaderName]> {
    let mut out = Vec::new();
    for selector in condition.selectors() {
        match selector {
            Selector::RequestHeader(name) => {
                out.extend(HeaderName::from_bytes(name.as_bytes()).ok());
            }
            Selector::ClientName => out.extend_from_slice(&clients.names),
            Selector::ClientVersion => out.extend_from_slice(&clients.versions),
            _ => {}
        }
    }
    out.into()
}

impl RequestCondition for ConfiguredCondition {
    fn is_met(&self, client: &HeaderMap, caller: Option<&dyn CallerContext>) -> bool {
        let values = CallerValues {
            headers: client,
            caller,
            clients: &self.clients,
        };
        is_met(&self.condition, &values)
    }
    fn headers(&self) -> &[HeaderName] {
        &self.headers
    }
    fn claims(&self) -> bool {
        let selectors = self.condition.selectors();
        let mut selectors = selectors.into_iter();
        selectors.any(|one| matches!(one, Selector::JwtClaim(_) | Selector::ClientAddress))
    }
}

/// What is known of a request where another one is made of it.
struct CallerValues<'a> {
    headers: &'a HeaderMap,
    caller: Option<&'a dyn CallerContext>,
    clients: &'a ClientHeaders,
}

impl CallerValues<'_> {
    fn value(&self, value: ClientValue) -> Option<Cow<'_, str>> {
        self.caller?.value(value)
    }
}

impl Selected for CallerValues<'_> {
    fn text(&self, selector: &Selector) -> Option<Cow<'_, str>> {
        match selector {
            Selector::JwtClaim(claim) => self.caller?.claim_text(claim),
            Selector::RequestHeader(name) => header_text(self.headers, name),
            Selector::ClientName => first_text(self.headers, &*self.clients.names),
            Selector::ClientVersion => first_text(self.headers, &*self.clients.versions),
            Selector::ClientAddress => self.value(ClientValue::Address),
            Selector::OperationName => self.value(ClientValue::OperationName),
            Selector::OperationKind => self.value(ClientValue::OperationKind),
            // The configuration refuses others here.
            _ => None,
        }
    }
    fn headers<'a>(&'a self, selector: &'a Selector) -> Option<(&'a HeaderMap, &'a str)> {
        match selector {
            Selector::RequestHeader(name) => Some((self.headers, name)),
            _ => None,
        }
    }
    fn items(&self, selector: &Selector) -> Vec<Cow<'_, str>> {
        match selector {
            Selector::JwtClaim(claim) => {
                let items = self.caller.map(|caller| caller.claim_items(claim));
                items.unwrap_or_default()
            }
            _ => {
                let text = self.text(selector).unwrap_or_default();
                let words = text.split_ascii_whitespace();
                words.map(|word| word.to_owned().into()).collect()
            }
        }
    }
    fn has(&self, selector: &Selector) -> bool {
        match selector {
            Selector::JwtClaim(claim) => {
                let claimed = self.caller.and_then(|caller| caller.claim_json(claim));
                claimed.is_some()
            }
            _ => self.text(selector).is_some(),
        }
    }
    fn client(&self) -> Option<Client> {
        let address = self.value(ClientValue::Address)?;
        match address.parse() {
            Ok(address) => Some(Client::At(address)),
            // The only one without an address.
            Err(_) => Some(Client::Unix),
        }
    }
}
