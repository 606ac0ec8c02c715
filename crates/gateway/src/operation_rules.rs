//! Operations that are refused by what they are (`limits.operation_rules`): mutations, those without a name, those that a rule
//! lists, for some callers or for all. Comes after [`prepare`](crate::prepare), before anything is charged or planned.
//!
//! What an operation is, is found out once for each that is kept; conditions are looked at for every request.

use std::{borrow::Cow, sync::Arc};

use ogive_edge::error::RequestError;
use ogive_telemetry::codes;

use crate::{
    options::GatewayOptions,
    prepare::Prepared,
    schema::{
        operation::PreparedOperation,
        operation_rules::{OperationFacts, OperationRule},
        state::SchemaState,
    },
    shared::{
        context::OperationContext,
        operation_values::OperationValues,
        selectors::{is_met, is_met_by_all},
        stage::Stage,
    },
};

fn holds_for(rule: &OperationRule, request: &OperationValues<'_>) -> bool {
    let (when, unless) = (rule.when.as_ref(), rule.unless.as_ref());
    when.is_none_or(|when| is_met(when, request))
        && !unless.is_some_and(|unless| is_met_by_all(unless, request))
}

/// Rejects an operation that a rule is about.
#[derive(Debug)]
pub(crate) struct CheckRules {
    pub(crate) state: Arc<SchemaState>,
    pub(crate) options: Arc<GatewayOptions>,
}

impl Stage for CheckRules {
    const NAME: &'static str = "check rules";
    const DOES: &'static str = "reject an operation that a rule is about";
    const OPTION: Option<&'static str> = Some("limits.operation_rules");
}

impl CheckRules {
    /// Whether requests pass it.
    pub(crate) fn is_on(state: &SchemaState) -> bool {
        state.rules.is_some()
    }
    pub(crate) fn run(
        &self,
        context: &OperationContext<'_>,
        prepared: &Prepared,
    ) -> Result<(), RequestError> {
        let state = &*self.state;
        let Some(rules) = &state.rules else {
            return Ok(());
        };
        let operation = &prepared.operation;
        let values = OperationValues {
            context,
            operation,
            observe: &self.options.observe,
        };
        let facts = operation.facts.get_or_init(|| {
            let (supergraph, compared) = (&state.supergraph, &state.compared);
            let normal = &operation.operation;
            Box::new(OperationFacts::of(rules, supergraph, compared, normal))
        });
        let broken = rules
            .rules
            .iter()
            .filter(|rule| rule.is_about(&operation.definition, facts) && holds_for(rule, &values));
        context.note("rules", || format!("{} in all", rules.rules.len()));
        for rule in broken {
            context.note("rules", || {
                let how = if rule.warn_only {
                    "would refuse, and only measures"
                } else {
                    "refuses"
                };
                format!("the rule `{}` {how}: {}", rule.refuse.word(), rule.message)
            });
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
            context.count_exceeded(&[codes::OPERATION_REFUSED.as_str()]);
        }
        Ok(())
    }
}

fn operation_name(operation: &PreparedOperation) -> Cow<'_, str> {
    let name = operation.definition.name;
    let name = name.map_or("", |name| operation.document.name(name));
    ogive_base::bounded_name(name)
}
