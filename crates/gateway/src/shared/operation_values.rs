//! What selectors give for an operation: of its caller, its client, its headers and itself.

use std::borrow::Cow;

use ogive_config::{Client, PeerRange, Selector};
use ogive_transport::first_text;

use crate::{
    schema::operation::PreparedOperation,
    shared::{context::OperationContext, observe::ObserveOptions, selectors::Selected},
};

/// An operation, who asks it and how.
pub(crate) struct OperationValues<'a> {
    pub(crate) context: &'a OperationContext<'a>,
    pub(crate) operation: &'a PreparedOperation,
    pub(crate) observe: &'a ObserveOptions,
}

impl Selected for OperationValues<'_> {
    fn text(&self, selector: &Selector) -> Option<Cow<'_, str>> {
        let headers = self.context.headers;
        match selector {
            Selector::JwtClaim(claim) => self.context.caller()?.scalar(claim),
            Selector::RequestHeader(name) => {
                let value = headers.get(name.as_str())?.to_str().ok()?;
                Some(Cow::Borrowed(value))
            }
            Selector::ClientName => first_text(headers, &self.observe.client_names),
            Selector::ClientVersion => first_text(headers, &self.observe.client_versions),
            Selector::ClientAddress => Some(match self.context.client()? {
                Client::At(address) => address.to_string().into(),
                Client::Unix => "unix".into(),
            }),
            Selector::OperationName => {
                let name = self.operation.definition.name?;
                Some(Cow::Borrowed(self.operation.document.name(name)))
            }
            Selector::OperationKind => Some(self.operation.definition.kind.as_str().into()),
            // What only hooks see; the configuration refuses it here.
            _ => None,
        }
    }
    fn items(&self, selector: &Selector) -> Vec<Cow<'_, str>> {
        match (selector, self.context.caller()) {
            (Selector::JwtClaim(_), Some(caller)) => Selected::items(caller, selector),
            (Selector::JwtClaim(_), None) => Vec::new(),
            _ => match self.text(selector) {
                Some(Cow::Borrowed(text)) => {
                    text.split_ascii_whitespace().map(Cow::Borrowed).collect()
                }
                Some(Cow::Owned(text)) => {
                    let words = text.split_ascii_whitespace();
                    words.map(|word| word.to_owned().into()).collect()
                }
                None => Vec::new(),
            },
        }
    }
    fn has(&self, selector: &Selector) -> bool {
        match (selector, self.context.caller()) {
            (Selector::JwtClaim(_), caller) => caller.is_some_and(|caller| caller.has(selector)),
            _ => self.text(selector).is_some(),
        }
    }
    fn is_within(&self, range: &str) -> bool {
        let range = PeerRange::parse(range);
        let client = self.context.client();
        client.is_some_and(|client| range.is_ok_and(|range| range.contains(client)))
    }
}
