//! Keys of rates that components give (`{ component: NAME }`): each is asked once for an operation, and only if a rate that
//! names it counts the operation.

use std::{borrow::Cow, sync::Arc};

use http::HeaderMap;
use ogive_base::Client;
use ogive_edge::error::RequestError;
use ogive_hooks::{
    CallMode, ContextEntries, Exchange, RequestHead, Stage,
    components::{Component, Decision},
    entries::{JWT_CLAIMS, OPERATION_KIND, OPERATION_NAME, home},
};
use ogive_selectors::Selector;
use ogive_telemetry::codes;
use serde_json::value::{RawValue, to_raw_value};

use super::operation_rates::{OperationRate, OperationRates, component};
use crate::{
    hooks::{components::LoadedComponent, decide::Question, run::request_head},
    shared::{
        operation_values::OperationValues,
        selectors::{Selected, is_met},
        telling::Telling,
    },
};

/// What selectors give for an operation, those that name components included.
pub(super) struct KeyValues<'a, 'o> {
    asked: &'a OperationValues<'o>,
    /// What components say, by their names.
    keys: Vec<(&'a str, Option<String>)>,
}

/// Asks the components that keys of rates name. One that failed refuses the operation, or has said nothing.
pub(super) async fn component_keys<'a, 'o>(
    rates: &'a OperationRates,
    asked: &'a OperationValues<'o>,
) -> Result<KeyValues<'a, 'o>, RequestError> {
    let mut keys = Vec::with_capacity(rates.components.len());
    for of in &rates.components {
        let mut counting = rates.rates.iter().filter(|rate| {
            let mut names = rate.key.iter().filter_map(component);
            names.any(|name| name == of.name())
                && rate.when.as_ref().is_none_or(|when| is_met(when, asked))
        });
        let Some(first) = counting.next() else {
            continue;
        };
        let refuses = |rate: &OperationRate| rate.measured.is_none();
        let may_refuse = refuses(first) || counting.any(refuses);
        let mut lent = lent_to(of, asked);
        let question = Question {
            decision: Decision::RateKey,
            call: move |component: &Component, mode: CallMode| component.rate_key(&mut lent, mode),
            ends: |_: &Option<String>| false,
            code: codes::PLUGIN_FAILED,
        };
        let telling = Telling::of_operation(asked.context);
        let said = match of.ask(question, telling).await {
            Ok(said) => said.flatten(),
            Err(cause) if may_refuse => return Err(failed(cause)),
            // What is only measured refuses nobody.
            Err(cause) => {
                let message = "a component failed, and what is only measured counts by the address";
                telling.failed(&cause, message, codes::PLUGIN_FAILED);
                None
            }
        };
        keys.push((of.name(), said));
    }
    Ok(KeyValues { asked, keys })
}

fn failed(cause: Box<str>) -> RequestError {
    RequestError {
        cause: Some(cause),
        ..RequestError::http(codes::PLUGIN_FAILED, "the request could not be processed")
    }
}

/// What a component is lent of an operation.
fn lent_to(of: &LoadedComponent, asked: &OperationValues<'_>) -> Exchange {
    let (context, permitted) = (asked.context, &of.component.options().permissions);
    let headers = Arc::new(context.headers.clone());
    let head = match context.parts() {
        Some(parts) => request_head(parts, headers),
        None => RequestHead {
            headers,
            ..RequestHead::default()
        },
    };
    let mut lent = Exchange::of(Stage::SupergraphRequest, Arc::default(), head.into());
    if permitted.read_context.is_empty() {
        return lent;
    }
    let told = context.hooks();
    lent.context = told.map_or_else(ContextEntries::default, |told| {
        told.run.entries.borrow().clone()
    });
    let mut own = told.map_or_else(ContextEntries::default, |told| told.own.borrow().clone());
    let mut note = |name: &str, value: serde_json::Result<Box<RawValue>>| {
        if let Ok(value) = value {
            // What does not fit beside all others is not there.
            let _ = home(&mut lent.context, Some(&mut own), name).set(name, value);
        }
    };
    let caller = context.caller();
    if let Some(caller) = caller.filter(|caller| caller.granted.authenticated) {
        note(JWT_CLAIMS, to_raw_value(&caller.claims));
    }
    if let Some(name) = asked.operation.name() {
        note(OPERATION_NAME, to_raw_value(name));
    }
    let kind = asked.operation.definition.kind.as_str();
    note(OPERATION_KIND, to_raw_value(kind));
    lent.own = Some(own);
    lent
}

impl Selected for KeyValues<'_, '_> {
    fn text(&self, selector: &Selector) -> Option<Cow<'_, str>> {
        let Some(name) = component(selector) else {
            return self.asked.text(selector);
        };
        let mut keys = self.keys.iter();
        let (_, key) = keys.find(|(known, _)| *known == name)?;
        key.as_deref().map(Cow::Borrowed)
    }
    fn items(&self, selector: &Selector) -> Vec<Cow<'_, str>> {
        self.asked.items(selector)
    }
    fn has(&self, selector: &Selector) -> bool {
        match component(selector) {
            Some(_) => self.text(selector).is_some(),
            None => self.asked.has(selector),
        }
    }
    fn headers<'a>(&'a self, selector: &'a Selector) -> Option<(&'a HeaderMap, &'a str)> {
        self.asked.headers(selector)
    }
    fn client(&self) -> Option<Client> {
        self.asked.client()
    }
}
