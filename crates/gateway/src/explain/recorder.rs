//! Notes what comes of every stage, and writes it down.

use std::{
    cell::{Cell, RefCell},
    fmt::Write,
    sync::Arc,
};

use http::{StatusCode, header, response};
use ogive_edge::receive::GraphqlRequest;
use ogive_execute::FetchTrace;
use ogive_operation::describe;
use ogive_plan::Plan;
use ogive_telemetry::HookCall;
use serde_json::Value;

use super::ExplainInput;
use crate::{
    gateway::Serving,
    identify::{explain_token::CallerFacts, tokens::Authentication},
    prepare::Prepared,
    schema::{brokers::brokers_text, operation::PlannedOperation, state::SchemaState},
    shared::stage_observer::{StageEvent, StageObserver},
};

/// The stops that are shown however far it came.
const STOPS: [&str; 5] = [RECEIVE, PREPARE, PLAN, EXECUTE, RESPOND];
const RECEIVE: &str = "1. receive";
const PREPARE: &str = "2. prepare";
const PLAN: &str = "3. plan";
const EXECUTE: &str = "4. execute";
pub(super) const RESPOND: &str = "5. respond";
const SUBSCRIBE: &str = "subscribe";
pub(super) const WHO_ASKS: &str = "who asks";
/// Coprocessors and scripts.
pub(super) const HOOKS: &str = "hooks";

/// Notes what comes of every stage.
pub(super) struct Recorder {
    state: Arc<SchemaState>,
    authentication: Option<Arc<Authentication>>,
    /// Names of stages, and texts.
    sections: RefCell<Vec<(&'static str, String)>>,
    /// What says who asks, once it was looked at.
    brought: RefCell<Option<CallerFacts>>,
    /// Payloads of an answer in parts, and answers to events.
    payloads: RefCell<Vec<String>>,
    has_event: Cell<bool>,
    is_executed: bool,
    has_timings: bool,
    has_token: bool,
}

impl StageObserver for Recorder {
    fn passed(&self, stage: &StageEvent<'_>) {
        match stage {
            StageEvent::Known(parts, identity) => {
                let authentication = self.authentication.as_deref();
                let brought = CallerFacts::of(authentication, parts, identity, self.has_token);
                self.note(WHO_ASKS, brought.summary());
                *self.brought.borrow_mut() = Some(brought);
            }
            // With the document that its id stands for, once that is found.
            StageEvent::Receive(request) | StageEvent::Document(request) => {
                self.note(RECEIVE, receive_text(request));
            }
            StageEvent::Prepare(state, prepared) => {
                self.note(PREPARE, prepared_text(state, prepared))
            }
            StageEvent::Plan(planned, _) => {
                let mut text = plan_text(planned);
                brokers_text(&self.state.supergraph, &planned.plan, &mut text);
                self.note(PLAN, text);
            }
            StageEvent::Execute(planned, output) => self.executed(planned, output.trace.as_deref()),
            StageEvent::Part(json) => self.payloads.borrow_mut().push(pretty(json)),
            StageEvent::ExecuteInParts(planned, output) => {
                self.executed(planned, output.trace.as_deref());
            }
            StageEvent::Source(subgraph, body) => {
                let body = String::from_utf8_lossy(body);
                self.add(SUBSCRIBE, format!("asked of `{subgraph}`:\n  > {body}"));
            }
            StageEvent::Event(planned, output) => {
                self.executed(planned, output.trace.as_deref());
                let body = output.body.clone().into_bytes();
                self.payloads.borrow_mut().push(pretty(&body));
                self.has_event.set(true);
            }
            // Its bytes are there when it has left the last stage.
            StageEvent::Respond => {}
            // Told with its limit by the stage itself.
            StageEvent::Charge(_) => {}
            StageEvent::Hook(call) => self.add(HOOKS, self.hook_text(call)),
            StageEvent::Other(name, text) => self.add(name, text()),
        }
    }
    fn wants_fetches(&self) -> bool {
        true
    }
    fn is_dry_run(&self) -> bool {
        !self.is_executed
    }
}

impl Recorder {
    pub(super) fn new(serving: &Serving, input: &ExplainInput) -> Self {
        Recorder {
            state: Arc::clone(&serving.state),
            authentication: serving.services.authentication.clone(),
            sections: RefCell::default(),
            brought: RefCell::default(),
            payloads: RefCell::default(),
            has_event: Cell::new(false),
            is_executed: input.is_executed,
            has_timings: input.has_timings,
            has_token: input.token.is_some(),
        }
    }
    /// What says who asks; `None` if that was not looked at, or is not worth a word.
    pub(super) fn brought(&self) -> Option<CallerFacts> {
        let brought = self.brought.take();
        brought.filter(|brought| !brought.summary().is_empty())
    }
    /// Whether a source of events is asked.
    pub(super) fn is_subscription(&self) -> bool {
        let sections = self.sections.borrow();
        sections.iter().any(|(name, _)| *name == SUBSCRIBE)
    }
    /// Whether an event of a subscription has come.
    pub(super) fn has_event(&self) -> bool {
        self.has_event.get()
    }
    /// Notes the response; says whether it refuses the request.
    pub(super) fn responded(
        &self,
        head: &response::Parts,
        body: &[u8],
        broken: Option<String>,
    ) -> bool {
        let is_refused = !head.status.is_success() || has_no_data(body);
        let payloads = self.payloads.take();
        if is_refused {
            let mut out = format!("HTTP {}\n", head.status);
            for name in [header::WWW_AUTHENTICATE, header::RETRY_AFTER, header::ALLOW] {
                if let Some(value) = head.headers.get(&name) {
                    let _ = writeln!(out, "{name}: {}", String::from_utf8_lossy(value.as_bytes()));
                }
            }
            self.note(RESPOND, out + &pretty(body));
        } else if self.is_executed {
            // That of a response is 200 unless somebody sets another one.
            let mut out = match head.status {
                StatusCode::OK => String::new(),
                status => format!("HTTP {status}\n"),
            };
            match payloads.as_slice() {
                [] if broken.is_some() => {}
                [] => out.push_str(&pretty(body)),
                payloads => out.push_str(&payloads.join("\n\n")),
            }
            if let Some(why) = &broken {
                let _ = write!(out, "\n({why})");
            }
            self.note(RESPOND, out);
        }
        is_refused || broken.is_some()
    }
    fn hook_text(&self, call: &HookCall) -> String {
        let (hook, outcome) = (call.hook.word(), call.outcome.word());
        let took = if self.has_timings {
            format!(" ({:.1?})", call.took)
        } else {
            String::new()
        };
        format!("{}: {hook}, {outcome}{took}", call.stage)
    }
    fn executed(&self, planned: &PlannedOperation, trace: Option<&[FetchTrace]>) {
        let trace = trace.unwrap_or_default();
        let mut text = fetches_text(trace, &planned.plan, self.has_timings);
        if !trace.is_empty() {
            self.add_unseen(&mut text);
        }
        self.note(EXECUTE, text);
    }
    /// Says of requests and answers what the executor does not see of them.
    fn add_unseen(&self, out: &mut String) {
        let sections = self.sections.borrow();
        let mut hooks = sections.iter().filter(|(name, _)| *name == HOOKS);
        if hooks.any(|(_, text)| text.contains("Subgraph")) {
            out.push_str(
                "(requests as they were before hooks, answers as hooks left them or gave them)\n",
            );
        }
        let mut endpoints = self.state.endpoints.iter();
        if endpoints.any(|endpoint| !endpoint.extensions.is_empty()) {
            out.push_str("(requests without the `extensions` that rules add)\n");
        }
    }
    /// Notes what came of a stage, instead of what was noted of it before.
    pub(super) fn note(&self, name: &'static str, text: String) {
        let mut sections = self.sections.borrow_mut();
        match sections.iter_mut().find(|(noted, _)| *noted == name) {
            Some((_, noted)) => *noted = text,
            None if text.is_empty() => {}
            None => sections.push((name, text)),
        }
    }
    /// Notes it behind what was noted of it before.
    fn add(&self, name: &'static str, text: String) {
        let before = {
            let sections = self.sections.borrow();
            let noted = sections.iter().find(|(noted, _)| *noted == name);
            noted.map(|(_, noted)| noted.trim_end().to_owned())
        };
        match before {
            Some(before) if !text.is_empty() => self.note(name, format!("{before}\n{text}")),
            Some(_) => {}
            None => self.note(name, text),
        }
    }
    /// The stages in their order, and the stops that were not reached.
    pub(super) fn text(&self) -> String {
        let sections = self.sections.borrow();
        let is_planned = sections.iter().any(|(name, _)| *name == PLAN);
        let mut out = String::new();
        let mut stops = STOPS.iter().peekable();
        for (name, text) in sections.iter() {
            // A refusal is the answer, however far it came.
            while let Some(stop) = stops.next_if(|_| STOPS.contains(name)) {
                if stop == name {
                    break;
                }
                section(&mut out, stop, unreached(stop, is_planned));
            }
            section(&mut out, name, text);
        }
        for stop in stops {
            section(&mut out, stop, unreached(stop, is_planned));
        }
        out
    }
}

fn unreached(stop: &str, is_planned: bool) -> &'static str {
    if stop == RESPOND || stop == EXECUTE && is_planned {
        "(not executed)"
    } else {
        "(not reached)"
    }
}

fn receive_text(request: &GraphqlRequest) -> String {
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

fn plan_text(planned: &PlannedOperation) -> String {
    let mut out = ogive_plan::text(&planned.plan);
    let names = &planned.plan.variables;
    let literals = planned.binding.literals();
    let literals: Vec<(Box<str>, Box<str>)> = literals
        .filter_map(|(index, json)| Some((names.get(index)?.clone(), json.into())))
        .collect();
    literals_text(&literals, &mut out);
    let _ = writeln!(out, "\ntier: {}", planned.shared.describe());
    out
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

/// Whether a body is a response of GraphQL that was not executed.
fn has_no_data(body: &[u8]) -> bool {
    let response: Option<Value> = serde_json::from_slice(body).ok();
    let response = response.as_ref().and_then(Value::as_object);
    response
        .is_some_and(|response| response.contains_key("errors") && !response.contains_key("data"))
}
