//! What selectors give for a request, and for an operation in it: of its caller, its client, its headers and itself.

use std::{borrow::Cow, sync::Arc};

use http::{HeaderMap, HeaderValue};
use ogive_base::Client;
use ogive_identity::Caller;
use ogive_selectors::Selector;
use ogive_transport::{CallerContext, ClientValue, first_text};

use crate::{
    schema::operation::PreparedOperation,
    shared::{
        context::OperationContext,
        observe_options::ObserveOptions,
        selectors::{Selected, header_text, shown},
    },
};

/// A request, of which it is not known yet what it asks.
pub(crate) struct RequestValues<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) caller: Option<&'a Caller>,
    pub(crate) client: Option<Client>,
    pub(crate) observe: &'a ObserveOptions,
}

/// An operation, who asks it and how.
pub(crate) struct OperationValues<'a> {
    pub(crate) context: &'a OperationContext<'a>,
    pub(crate) operation: &'a Arc<PreparedOperation>,
    pub(crate) observe: &'a ObserveOptions,
}

impl<'a> RequestValues<'a> {
    /// What a selector gives.
    pub(crate) fn find(&self, selector: &Selector) -> Option<Cow<'a, str>> {
        let headers = self.headers;
        match selector {
            Selector::JwtClaim(claim) => self.caller?.scalar(claim),
            Selector::RequestHeader(name) => header_text(headers, name),
            Selector::ClientName => first_text(headers, &self.observe.client_names),
            Selector::ClientVersion => first_text(headers, &self.observe.client_versions),
            Selector::ClientAddress => Some(shown(self.client?)),
            // What is not known yet, or only hooks see; the configuration refuses it here.
            _ => None,
        }
    }
}

impl Selected for RequestValues<'_> {
    fn text(&self, selector: &Selector) -> Option<Cow<'_, str>> {
        self.find(selector)
    }
    fn items(&self, selector: &Selector) -> Vec<Cow<'_, str>> {
        items(self.caller, selector, self.find(selector))
    }
    fn has(&self, selector: &Selector) -> bool {
        has(self.caller, selector, || self.find(selector).is_some())
    }
    fn headers<'a>(&'a self, selector: &'a Selector) -> Option<(&'a HeaderMap, &'a str)> {
        request_header(self.headers, selector)
    }
    fn client(&self) -> Option<Client> {
        self.client
    }
}

impl OperationValues<'_> {
    fn request(&self) -> RequestValues<'_> {
        RequestValues {
            headers: self.context.headers,
            caller: self.context.caller(),
            client: self.context.client(),
            observe: self.observe,
        }
    }
}

impl Selected for OperationValues<'_> {
    fn text(&self, selector: &Selector) -> Option<Cow<'_, str>> {
        match selector {
            Selector::OperationName => {
                let name = self.operation.definition.name?;
                Some(Cow::Borrowed(self.operation.document.name(name)))
            }
            Selector::OperationKind => Some(self.operation.definition.kind.as_str().into()),
            _ => self.request().find(selector),
        }
    }
    fn items(&self, selector: &Selector) -> Vec<Cow<'_, str>> {
        items(self.context.caller(), selector, self.text(selector))
    }
    fn has(&self, selector: &Selector) -> bool {
        let caller = self.context.caller();
        has(caller, selector, || self.text(selector).is_some())
    }
    fn headers<'a>(&'a self, selector: &'a Selector) -> Option<(&'a HeaderMap, &'a str)> {
        request_header(self.context.headers, selector)
    }
    fn client(&self) -> Option<Client> {
        self.context.client()
    }
}

/// The client's headers and the name of one, if that is what is asked for.
fn request_header<'a>(
    headers: &'a HeaderMap,
    selector: &'a Selector,
) -> Option<(&'a HeaderMap, &'a str)> {
    match selector {
        Selector::RequestHeader(name) => Some((headers, name)),
        _ => None,
    }
}

/// Longest name of an operation that subgraphs are told in headers and extensions: the client writes it, and servers refuse
/// heads that are too large.
const NAME_BYTES_MAX: usize = 256;

/// Who asks an operation, and what, for rules of requests to subgraphs.
pub(crate) struct OperationCaller<'a> {
    context: &'a OperationContext<'a>,
    operation: &'a PreparedOperation,
}

impl<'a> OperationCaller<'a> {
    pub(crate) fn new(context: &'a OperationContext<'a>, operation: &'a PreparedOperation) -> Self {
        OperationCaller { context, operation }
    }
}

impl CallerContext for OperationCaller<'_> {
    fn claim(&self, path: &str) -> Option<HeaderValue> {
        self.context.claim(path)
    }
    fn is_unsayable(&self, path: &str) -> bool {
        self.context.is_unsayable(path)
    }
    fn claim_json(&self, path: &str) -> Option<String> {
        Some(self.context.caller()?.value(path)?.to_string())
    }
    fn claim_text(&self, path: &str) -> Option<Cow<'_, str>> {
        self.context.caller()?.scalar(path)
    }
    fn claim_items(&self, path: &str) -> Vec<Cow<'_, str>> {
        let items = self.context.caller().map(|caller| caller.items(path));
        let items = items.into_iter().flatten();
        items.map(Cow::Borrowed).collect()
    }
    fn value(&self, value: ClientValue) -> Option<Cow<'_, str>> {
        match value {
            ClientValue::Address => Some(shown(self.context.client()?)),
            ClientValue::OperationName => {
                let name = self.operation.name()?;
                (name.len() <= NAME_BYTES_MAX).then_some(Cow::Borrowed(name))
            }
            ClientValue::OperationKind => Some(self.operation.definition.kind.as_str().into()),
        }
    }
}

/// The items of a claim, or else the words of a text.
fn items<'a>(
    caller: Option<&'a Caller>,
    selector: &Selector,
    text: Option<Cow<'a, str>>,
) -> Vec<Cow<'a, str>> {
    match (selector, caller, text) {
        (Selector::JwtClaim(_), Some(caller), _) => Selected::items(caller, selector),
        (Selector::JwtClaim(_), None, _) | (_, _, None) => Vec::new(),
        (_, _, Some(Cow::Borrowed(text))) => {
            text.split_ascii_whitespace().map(Cow::Borrowed).collect()
        }
        (_, _, Some(Cow::Owned(text))) => {
            let words = text.split_ascii_whitespace();
            words.map(|word| word.to_owned().into()).collect()
        }
    }
}

fn has(caller: Option<&Caller>, selector: &Selector, else_has: impl FnOnce() -> bool) -> bool {
    match selector {
        Selector::JwtClaim(_) => caller.is_some_and(|caller| caller.has(selector)),
        _ => else_has(),
    }
}
