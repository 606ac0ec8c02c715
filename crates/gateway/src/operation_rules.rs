//! Operations that are refused by what they are (`limits.operation_rules`): mutations, those without a name, those that a rule
//! lists, for some callers or for all. Comes after [`prepare`](crate::prepare), before anything is charged or planned.
//!
//! What an operation is, is found out once for each that is kept; conditions are looked at for every request.

use std::borrow::Cow;

use ogive_telemetry::codes;

use crate::{
    gateway::Gateway,
    operation::OperationRun,
    prepare::Prepared,
    schema::operation::PreparedOperation,
    schema::operation_rules::{OperationFacts, OperationRule},
    shared::{
        error::RequestError,
        operation_values::OperationValues,
        selectors::{is_met, is_met_by_all},
    },
};

fn holds_for(rule: &OperationRule, request: &OperationValues<'_>) -> bool {
    let (when, unless) = (rule.when.as_ref(), rule.unless.as_ref());
    when.is_none_or(|when| is_met(when, request))
        && !unless.is_some_and(|unless| is_met_by_all(unless, request))
}

/// The rules that are about an operation, of one caller.
fn broken<'r>(
    run: &'r OperationRun<'_>,
    prepared: &'r Prepared,
) -> impl Iterator<Item = &'r OperationRule> {
    let state = &run.serving.state;
    let operation = &*prepared.operation;
    let (supergraph, compared) = (&state.supergraph, &state.compared);
    let rules = state.rules.iter().flat_map(move |rules| {
        let made = || {
            let facts = OperationFacts::of(rules, supergraph, compared, &operation.operation);
            Box::new(facts)
        };
        let facts = operation.facts.get_or_init(made);
        rules.rules.iter().zip(std::iter::repeat(facts))
    });
    rules.filter_map(move |(rule, facts)| {
        let request = run.values(&prepared.operation);
        let holds = rule.is_about(&operation.definition, facts) && holds_for(rule, &request);
        holds.then_some(rule)
    })
}

impl Gateway {
    /// Refuses an operation that a rule is about.
    pub(crate) fn check_rules(
        &self,
        run: &OperationRun<'_>,
        prepared: &Prepared,
    ) -> Result<(), RequestError> {
        let Some(rules) = &run.serving.state.rules else {
            return Ok(());
        };
        let context = run.context;
        context.note("rules", || format!("{} in all", rules.rules.len()));
        for rule in broken(run, prepared) {
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
                operation = &*operation_name(&prepared.operation),
                refuse = rule.refuse.word(),
                "an operation would be refused"
            );
            self.exceeded(context.record(), [codes::OPERATION_REFUSED.as_str()].iter());
        }
        Ok(())
    }
}

fn operation_name(operation: &PreparedOperation) -> Cow<'_, str> {
    let name = operation.definition.name;
    let name = name.map_or("", |name| operation.document.name(name));
    ogive_base::bounded_name(name)
}
