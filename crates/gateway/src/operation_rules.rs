//! Operations that are refused by what they are (`limits.operation_rules`): mutations, those without a name, those that a rule
//! lists, for some callers or for all. Comes after [`prepare`](crate::prepare), before anything is charged or planned.
//!
//! What an operation is, is found out once for each that is kept; conditions are looked at for every request.

use std::borrow::Cow;

use ogive_config::{Client, PeerRange, Selector};
use ogive_telemetry::codes;
use ogive_transport::first_text;

use crate::{
    gateway::Gateway,
    operation::OperationRun,
    prepare::Prepared,
    schema::operation::PreparedOperation,
    schema::operation_rules::{OperationFacts, OperationRule},
    shared::{
        context::OperationContext,
        error::RequestError,
        observe::ObserveOptions,
        selectors::{Selected, is_met},
    },
};

/// What conditions look at.
struct Asked<'a> {
    context: &'a OperationContext<'a>,
    operation: &'a PreparedOperation,
    observe: &'a ObserveOptions,
}

impl Selected for Asked<'_> {
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

fn holds_for(rule: &OperationRule, request: &Asked<'_>) -> bool {
    let (when, unless) = (rule.when.as_ref(), rule.unless.as_ref());
    when.is_none_or(|when| is_met(when, request))
        && !unless.is_some_and(|unless| is_met(unless, request))
}

impl Gateway {
    /// Refuses an operation that a rule is about.
    pub(crate) fn check_rules(
        &self,
        run: &OperationRun<'_>,
        prepared: &Prepared,
    ) -> Result<(), RequestError> {
        let state = &run.serving.state;
        let Some(rules) = &state.rules else {
            return Ok(());
        };
        let operation = &*prepared.operation;
        let (supergraph, compared) = (&state.supergraph, &state.compared);
        let made = || {
            let facts = OperationFacts::of(rules, supergraph, compared, &operation.operation);
            Box::new(facts)
        };
        let facts = operation.facts.get_or_init(made);
        let request = Asked {
            context: run.context,
            operation,
            observe: &run.serving.options.observe,
        };
        for rule in &rules.rules {
            if !rule.is_about(&operation.definition, facts) || !holds_for(rule, &request) {
                continue;
            }
            if !rule.warn_only {
                return Err(RequestError {
                    status: 403,
                    ..RequestError::graphql(codes::OPERATION_REFUSED, rule.message.to_string())
                });
            }
            tracing::warn!(
                operation = &*operation_name(operation),
                refuse = rule.refuse.word(),
                "an operation would be refused"
            );
            self.exceeded([&codes::OPERATION_REFUSED].into_iter());
        }
        Ok(())
    }
}

fn operation_name(operation: &PreparedOperation) -> Cow<'_, str> {
    let name = operation.definition.name;
    let name = name.map_or("", |name| operation.document.name(name));
    ogive_base::bounded_name(name)
}
