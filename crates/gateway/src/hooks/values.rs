//! What selectors give at a stage of a coprocessor: of the request, of who asks, of the context, and of what the stage is
//! about. Judged before anything is written for the coprocessor.

use std::borrow::Cow;

use http::HeaderMap;
use ogive_base::Client;
use ogive_hooks::{
    ContextSelection, Exchange, Stage,
    entries::{OPERATION_KIND, OPERATION_NAME, visible},
};
use ogive_selectors::Selector;
use ogive_transport::first_text;
use serde_json::Value;

use super::{
    body::has_errors,
    run::{HookRun, OperationHooks},
};
use crate::shared::selectors::{Selected, header_text, shown};

/// One stage.
pub(crate) struct StageValues<'a> {
    pub(crate) run: &'a HookRun<'a>,
    pub(crate) operation: Option<&'a OperationHooks<'a>>,
    /// What the stage is about.
    pub(crate) exchange: &'a Exchange,
    /// What entries of the context are called there.
    pub(crate) names: &'a ContextSelection,
}

impl StageValues<'_> {
    /// The headers of the client's request.
    fn request_headers(&self) -> &HeaderMap {
        match self.exchange.stage {
            Stage::RouterRequest | Stage::SupergraphRequest | Stage::ExecutionRequest => {
                &self.exchange.headers
            }
            _ => &self.exchange.client.headers,
        }
    }
    /// An entry of the context, by what it is called at the stage.
    fn entry(&self, name: &str) -> Option<Value> {
        entry(self.run, self.operation, self.names.known(name))
    }
    fn has_errors(&self) -> bool {
        if self.exchange.stage == Stage::RouterResponse {
            // What the client is sent may be a list, or framed as a stream.
            return self.run.has_errors.get();
        }
        let body = self.exchange.body.as_ref();
        body.is_some_and(|body| has_errors(body.bytes()))
    }
}

/// An entry of the context.
fn entry(run: &HookRun<'_>, operation: Option<&OperationHooks<'_>>, name: &str) -> Option<Value> {
    let own = operation.map(|operation| operation.own.borrow());
    let shared = run.entries.borrow();
    serde_json::from_str(visible(&shared, own.as_deref(), name)?.get()).ok()
}

/// The same as a text; lists and objects are none.
pub(crate) fn entry_of(
    run: &HookRun<'_>,
    operation: Option<&OperationHooks<'_>>,
    name: &str,
) -> Option<Cow<'static, str>> {
    scalar(entry(run, operation, name)?)
}

/// A scalar as a text.
fn scalar(value: Value) -> Option<Cow<'static, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

impl Selected for StageValues<'_> {
    fn text(&self, selector: &Selector) -> Option<Cow<'_, str>> {
        let (exchange, observe) = (self.exchange, self.run.observe);
        match selector {
            Selector::JwtClaim(claim) => self.run.caller()?.scalar(claim),
            Selector::ClientName => first_text(self.request_headers(), &observe.client_names),
            Selector::ClientVersion => first_text(self.request_headers(), &observe.client_versions),
            Selector::ClientAddress => Some(shown(self.run.address)),
            Selector::OperationName => scalar(self.entry(OPERATION_NAME)?),
            Selector::OperationKind => scalar(self.entry(OPERATION_KIND)?),
            Selector::RequestMethod if exchange.stage == Stage::SubgraphRequest => {
                Some("POST".into())
            }
            Selector::RequestMethod => Some(exchange.client.method.as_str().into()),
            Selector::RequestContext(name) => scalar(self.entry(name)?),
            Selector::SubgraphName => exchange.subgraph.as_deref().map(Cow::Borrowed),
            Selector::ResponseStatus => Some(exchange.status?.to_string().into()),
            Selector::OnGraphqlError => Some(self.has_errors().to_string().into()),
            Selector::IsPrimaryResponse => Some(exchange.is_first.to_string().into()),
            // Only keys of rates name one.
            Selector::Component(_) => None,
            Selector::RequestHeader(_)
            | Selector::SubgraphRequestHeader(_)
            | Selector::ResponseHeader(_) => {
                let (headers, name) = self.headers(selector)?;
                header_text(headers, name).map(|text| text.into_owned().into())
            }
        }
    }
    fn items(&self, selector: &Selector) -> Vec<Cow<'_, str>> {
        if let Selector::JwtClaim(claim) = selector {
            let caller = self.run.caller();
            let items = caller.map_or_else(Vec::new, |caller| caller.items(claim));
            return items.into_iter().map(Cow::Borrowed).collect();
        }
        if let Selector::RequestContext(name) = selector
            && let Some(Value::Array(items)) = self.entry(name)
        {
            return items.into_iter().filter_map(scalar).collect();
        }
        let text = self.text(selector).unwrap_or_default();
        let words = text.split_ascii_whitespace();
        words.map(|word| word.to_owned().into()).collect()
    }
    fn has(&self, selector: &Selector) -> bool {
        match selector {
            Selector::JwtClaim(claim) => {
                let caller = self.run.caller();
                caller.is_some_and(|caller| caller.claim(claim).is_some())
            }
            Selector::RequestContext(name) => {
                self.entry(name).is_some_and(|value| !value.is_null())
            }
            _ => self.text(selector).is_some(),
        }
    }
    fn headers<'a>(&'a self, selector: &'a Selector) -> Option<(&'a HeaderMap, &'a str)> {
        let exchange = self.exchange;
        match selector {
            Selector::RequestHeader(name) => Some((self.request_headers(), name)),
            Selector::SubgraphRequestHeader(_) if exchange.stage != Stage::SubgraphRequest => None,
            Selector::SubgraphRequestHeader(name) | Selector::ResponseHeader(name) => {
                Some((&exchange.headers, name))
            }
            _ => None,
        }
    }
    fn client(&self) -> Option<Client> {
        Some(self.run.address)
    }
}
