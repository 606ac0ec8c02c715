//! The five stops of one operation, each with its artefact: what `ogive explain` shows and one test snapshots.

use std::{fmt::Write, sync::Arc};

use bytes::Bytes;
use http::HeaderMap;
use ogive_base::Reservation;
use ogive_execute::{ExecuteOutput, FetchTrace};
use ogive_identity::Caller;
use ogive_operation::describe;
use ogive_plan::Plan;
use serde_json::Value;

use crate::{
    execute::execute,
    identify::explain_token::restrictions,
    plan::plan_for,
    policies::Policies,
    prepare::{Prepared, prepare},
    receive::GraphqlRequest,
    schema::state::SchemaState,
    schema::views::view,
    shared::context::OperationContext,
    shared::error::RequestError,
    shared::worker::WorkerState,
};

/// What became of an operation.
#[derive(Debug)]
pub struct Explanation {
    /// Stop 1: the request.
    pub request: GraphqlRequest,
    /// Who asks, and what restrictions make of that; `None` if nobody was said to ask.
    pub caller: Option<String>,
    /// Stop 2: normal form and coerced variables, as text.
    pub prepared: Option<String>,
    /// Stop 3: the plan.
    pub plan: Option<Arc<Plan>>,
    /// How much was done to find it.
    pub tier: Option<String>,
    /// Literals of the document that are variables of the plan.
    pub literals: Vec<(Box<str>, Box<str>)>,
    /// Stop 4: the fetches, if they were sent.
    pub fetches: Option<Vec<FetchTrace>>,
    /// Stop 5: the response, if there is one.
    pub response: Option<Bytes>,
}

/// Takes a request through the stops. Without `worker` it stays at home: nothing is sent, and the last two stops have
/// nothing to show.
pub async fn explain(
    state: &SchemaState,
    request: GraphqlRequest,
    headers: &HeaderMap,
    worker: Option<&WorkerState>,
) -> Explanation {
    explain_for(state, request, headers, worker, None, None).await
}

/// The same for a request of a caller, with what is to be said of them.
pub async fn explain_for(
    state: &SchemaState,
    request: GraphqlRequest,
    headers: &HeaderMap,
    worker: Option<&WorkerState>,
    asked_by: Option<(String, Option<Arc<Caller>>)>,
    policies: Option<&Policies>,
) -> Explanation {
    let (told, caller) = asked_by.map_or((None, None), |(told, caller)| (Some(told), caller));
    let mut explanation = Explanation {
        caller: told,
        request,
        prepared: None,
        plan: None,
        tier: None,
        literals: Vec::new(),
        fetches: None,
        response: None,
    };
    if let Err(error) = stops(state, headers, worker, (caller, policies), &mut explanation).await {
        explanation.response = Some(error.to_json().into());
    }
    explanation
}

async fn stops(
    state: &SchemaState,
    headers: &HeaderMap,
    worker: Option<&WorkerState>,
    (caller, policies): (Option<Arc<Caller>>, Option<&Policies>),
    explanation: &mut Explanation,
) -> Result<(), RequestError> {
    let prepared = prepare(
        state,
        &explanation.request,
        &Reservation::new(&Arc::default()),
    )?;
    explanation.prepared = Some(prepared_text(state, &prepared));
    let (planned, _) = plan_for(state, &prepared.operation, headers).await?;
    explanation.plan = Some(Arc::clone(&planned.plan));
    let context = OperationContext::new(headers).asked_by(caller.clone());
    let requirements = &planned.plan.requirements;
    let views = state.views.as_ref().filter(|_| planned.plan.locals > 0);
    if let Some(policies) = policies {
        let asked = views.map_or(requirements, |views| &views.requirements);
        policies.decide_for(asked, &context).await?;
    }
    if let Some(views) = views {
        let met = views.met_by(context.claims());
        context.note_view(Arc::new(view(&state.supergraph, &met)));
    }
    if let Some(told) = &mut explanation.caller {
        let nobody = Arc::default();
        let caller = caller.as_ref().unwrap_or(&nobody);
        if let Some(policies) = policies {
            told.push_str(&policies.explain(requirements, caller, context.claims()));
        }
        told.push_str(&restrictions(&planned.plan, context.claims()));
    }
    explanation.tier = Some(planned.shared.describe());
    let names = &planned.plan.variables;
    let literals = planned.binding.literals();
    explanation.literals = literals
        .filter_map(|(index, json)| Some((names.get(index)?.clone(), json.into())))
        .collect();
    if let Some(worker) = worker {
        let output = execute(state, prepared, &planned, &context, worker, true).await?;
        let ExecuteOutput { body, trace, .. } = output;
        explanation.fetches = Some(trace.unwrap_or_default());
        explanation.response = Some(body.into_bytes());
    }
    Ok(())
}

fn prepared_text(state: &SchemaState, prepared: &Prepared) -> String {
    let operation = &prepared.operation.operation;
    let mut out = describe(&state.supergraph.api, operation);
    for (variable, value) in operation.variables.iter().zip(&prepared.variables.values) {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        let value = value.as_deref().unwrap_or("(not given)");
        let _ = write!(out, "${} = {value}", variable.name);
    }
    out
}

impl Explanation {
    /// All five sections. `timings` adds how long fetches took, which differs from run to run.
    pub fn text(&self, timings: bool) -> String {
        let mut out = String::new();
        section(&mut out, "1. receive", &self.receive_text());
        if let Some(caller) = &self.caller {
            section(&mut out, "who asks", caller);
        }
        let none = "(not reached)";
        let prepared = self.prepared.as_deref().unwrap_or(none);
        section(&mut out, "2. prepare", prepared);
        let plan = self.plan.as_deref().map(|plan| {
            let mut text = ogive_plan::text(plan);
            literals_text(&self.literals, &mut text);
            if let Some(tier) = &self.tier {
                let _ = writeln!(text, "\ntier: {tier}");
            }
            text
        });
        section(&mut out, "3. plan", plan.as_deref().unwrap_or(none));
        let fetches = match (&self.fetches, &self.plan) {
            (Some(fetches), Some(plan)) => fetches_text(fetches, plan, timings),
            (None, Some(_)) => "(not executed)".into(),
            _ => none.into(),
        };
        section(&mut out, "4. execute", &fetches);
        let response = self.response.as_deref().map(pretty);
        section(
            &mut out,
            "5. respond",
            response.as_deref().unwrap_or("(not executed)"),
        );
        out
    }

    fn receive_text(&self) -> String {
        let request = &self.request;
        let mut out = request.query.trim().to_owned();
        if let Some(name) = &request.operation_name {
            let _ = write!(out, "\noperationName: {name}");
        }
        if !request.variables.is_empty() {
            let variables = request.variables.compact();
            let _ = write!(out, "\nvariables: {}", String::from_utf8_lossy(&variables));
        }
        out
    }
}

/// One line for the literals that became variables; nothing if there are none.
pub fn literals_text(literals: &[(Box<str>, Box<str>)], out: &mut String) {
    if literals.is_empty() {
        return;
    }
    let literals: Vec<String> = literals
        .iter()
        .map(|(name, json)| format!("${name} = {json}"))
        .collect();
    let _ = writeln!(out, "\nliterals as variables: {}", literals.join(", "));
}

fn section(out: &mut String, title: &str, text: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "== {title} ==\n{}", text.trim_end());
}

fn fetches_text(fetches: &[FetchTrace], plan: &Plan, timings: bool) -> String {
    let mut out = String::new();
    for trace in fetches {
        let fetch = &plan.fetches[trace.fetch];
        let subgraph = plan
            .subgraphs
            .get(fetch.subgraph as usize)
            .map_or("?", |name| name);
        let _ = write!(out, "fetch {} {subgraph}", trace.fetch.0);
        let Some(request) = &trace.request else {
            out.push_str(": nothing to ask\n");
            continue;
        };
        if timings {
            let _ = write!(out, " ({:.1?} after {:.1?})", trace.took, trace.started);
        }
        let _ = write!(out, "\n  > {}\n", String::from_utf8_lossy(request));
        let _ = match &trace.response {
            Some(Ok((status, body))) => {
                let body = String::from_utf8_lossy(body);
                writeln!(out, "  < {status} {}", body.trim_end())
            }
            Some(Err(error)) => writeln!(out, "  < {}: {}", error.code, error.detail),
            None => writeln!(out, "  < (given up)"),
        };
    }
    if out.is_empty() {
        out.push_str("(no fetches)");
    }
    out
}

/// JSON with line breaks; anything else as it is.
fn pretty(body: &[u8]) -> String {
    serde_json::from_slice::<Value>(body)
        .and_then(|value| serde_json::to_string_pretty(&value))
        .unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned())
}
