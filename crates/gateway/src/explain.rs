//! One operation on its way through the gateway's stages, each with what came of it: what `ogive explain` shows and one test
//! snapshots. It is the gateway's own run, with an observer.

use std::{cell::RefCell, fmt::Write, sync::Arc};

use http::{HeaderMap, Method, Request};
use ogive_config::Peer;
use ogive_execute::{ExecuteOutput, FetchTrace};
use ogive_identity::Caller;
use ogive_operation::describe;
use ogive_plan::Plan;
use serde_json::Value;

use crate::{
    gateway::Gateway,
    operation::OperationInput,
    prepare::Prepared,
    receive::GraphqlRequest,
    schema::brokers::brokers_text,
    schema::operation::PlannedOperation,
    schema::state::SchemaState,
    shared::context::{Identity, RequestContext},
    shared::media::Media,
    shared::stage_observer::{StageEvent, StageObserver},
    shared::worker::WorkerState,
};

/// What is to be explained.
#[derive(Debug)]
pub struct ExplainInput {
    /// The request, as it is received.
    pub request: GraphqlRequest,
    /// The client's headers.
    pub headers: HeaderMap,
    /// Who asks, with what is to be said of them; `None` if nobody was said to ask.
    pub caller: Option<(String, Option<Arc<Caller>>)>,
    /// Whether subgraphs are asked. Otherwise it stays at home, and the last two stops have nothing to show.
    pub is_executed: bool,
    /// Whether to say how long fetches took, which differs from run to run.
    pub has_timings: bool,
}

/// The stops that are shown however far it came.
const STOPS: [&str; 5] = [RECEIVE, PREPARE, PLAN, EXECUTE, RESPOND];
const RECEIVE: &str = "1. receive";
const PREPARE: &str = "2. prepare";
const PLAN: &str = "3. plan";
const EXECUTE: &str = "4. execute";
const RESPOND: &str = "5. respond";

impl Gateway {
    /// Takes a request through the stages, and says what came of each: one section per stage.
    pub async fn explain(&self, input: ExplainInput, worker: &WorkerState) -> String {
        let ExplainInput {
            mut request,
            headers,
            caller,
            is_executed,
            has_timings,
        } = input;
        let serving = self.serving.load_full();
        // What becomes of it can be told without a stream.
        request.may_subscribe |= !is_executed;
        let (mut parts, ()) = Request::new(()).into_parts();
        (parts.method, parts.headers) = (Method::POST, headers);
        let recorder = Recorder {
            state: Arc::clone(&serving.state),
            sections: RefCell::default(),
            is_executed,
            has_timings,
        };
        recorder.note(RECEIVE, receive_text(&request));
        let mut identity = Identity::of(Peer::Unix);
        if let Some((told, caller)) = caller {
            recorder.note("who asks", told);
            identity.caller = caller.map(|caller| Box::new(Ok(caller)));
        }
        let context = RequestContext {
            parts: &parts,
            identity: &identity,
            worker,
            telemetry: &self.telemetry,
            record: None,
            // Nothing is explained that depends on what somebody else says.
            coprocessor: None,
        };
        let input = OperationInput {
            request: &mut request,
            media: Media::Json,
            files: None,
            memory: worker.reserve(&self.memory),
            observer: Some(&recorder),
            body_bytes: 0,
        };
        match self.operation(&serving, context, input).await {
            Ok(response) if is_executed => {
                recorder.note(RESPOND, pretty(&response.body().to_vec()));
            }
            Ok(_) => {}
            Err(error) => recorder.note(RESPOND, pretty(&error.to_json())),
        }
        recorder.text()
    }
}

/// Notes what comes of every stage.
struct Recorder {
    state: Arc<SchemaState>,
    /// Names of stages, and texts.
    sections: RefCell<Vec<(&'static str, String)>>,
    is_executed: bool,
    has_timings: bool,
}

impl StageObserver for Recorder {
    fn passed(&self, stage: &StageEvent<'_>) {
        match stage {
            // With the document that its id stands for.
            StageEvent::Document(request) => self.note(RECEIVE, receive_text(request)),
            StageEvent::Prepare(state, prepared) => {
                self.note(PREPARE, prepared_text(state, prepared))
            }
            StageEvent::Plan(planned, _) => {
                let mut text = plan_text(planned);
                brokers_text(&self.state.supergraph, &planned.plan, &mut text);
                self.note(PLAN, text);
            }
            StageEvent::Execute(planned, output) => {
                self.note(
                    EXECUTE,
                    fetches_text(output, &planned.plan, self.has_timings),
                );
            }
            // Its bytes are there when it has left the last stage.
            StageEvent::Respond => {}
            StageEvent::Other(name, text) => self.note(name, text()),
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
    /// Notes what came of a stage, instead of what was noted of it before.
    fn note(&self, name: &'static str, text: String) {
        let mut sections = self.sections.borrow_mut();
        match sections.iter_mut().find(|(noted, _)| *noted == name) {
            Some((_, noted)) => *noted = text,
            None if text.is_empty() => {}
            None => sections.push((name, text)),
        }
    }
    /// The stages in their order, and the stops that were not reached.
    fn text(&self) -> String {
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

fn fetches_text(output: &ExecuteOutput, plan: &Plan, timings: bool) -> String {
    let mut out = String::new();
    let fetches: &[FetchTrace] = output.trace.as_deref().unwrap_or_default();
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
