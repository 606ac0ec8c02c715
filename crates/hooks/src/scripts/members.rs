//! Which members the messages of each stage have, and which of them can be set: what [`objects`](super::objects) and
//! [`body`](super::body) offer, and what counts at that stage.

use std::collections::BTreeSet;

use crate::Stage;

use super::{
    loaded::ROUTER,
    uses::{Definition, MemberPath},
};

/// What a member is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Message,
    SubgraphRequest,
    Body,
    /// A URL; whether its members can be set.
    Uri(bool),
    /// Headers or context, which are set by name; whether that can be done.
    Named(bool),
    /// A value; whether it can be set.
    Value(bool),
}

/// What is wrong with the use of a member.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct MemberProblem {
    /// The variable and its members.
    pub(crate) name: String,
    pub(crate) why: &'static str,
}

/// It is not there.
pub(crate) const MISSING: &str = "is not there";
/// It is there and cannot be set.
pub(crate) const READ_ONLY: &str = "cannot be set";

/// The members of something at a stage.
fn member(kind: Kind, name: &str, stage: Stage) -> Option<Kind> {
    let (is_response, at_subgraph) = (stage.is_response(), stage == Stage::SubgraphRequest);
    let is_router = matches!(stage, Stage::RouterRequest | Stage::RouterResponse);
    Some(match (kind, name) {
        (Kind::Message, "headers") => Kind::Named(!at_subgraph),
        (Kind::Message, "context") => Kind::Named(true),
        (Kind::Message, "body") if !is_router && !at_subgraph => Kind::Body,
        (Kind::Message, "uri") => Kind::Uri(false),
        (Kind::Message, "method" | "id") => Kind::Value(false),
        (Kind::Message, "status_code") if is_response => Kind::Value(true),
        (Kind::Message, "has_next") if is_response => Kind::Value(false),
        (Kind::Message, "subgraph_request_id") if stage.is_of_subgraph() => Kind::Value(false),
        (Kind::Message, "subgraph") if at_subgraph => Kind::SubgraphRequest,
        (Kind::SubgraphRequest, "headers") => Kind::Named(true),
        (Kind::SubgraphRequest, "body") => Kind::Body,
        (Kind::SubgraphRequest, "uri") => Kind::Uri(true),
        (Kind::SubgraphRequest, "method") => Kind::Value(false),
        (Kind::Uri(is_set), "host" | "port" | "path" | "scheme") => Kind::Value(is_set),
        (Kind::Uri(_), "query") => Kind::Value(false),
        (Kind::Body, name) => Kind::Value(of_body(name, stage)?),
        _ => return None,
    })
}

/// Whether a member of a body can be set at a stage; `None` if it is never there.
fn of_body(name: &str, stage: Stage) -> Option<bool> {
    if stage.is_response() {
        return match name {
            "data" | "errors" | "extensions" | "label" | "path" | "incremental" | "pending"
            | "completed" => Some(true),
            "hasNext" => Some(false),
            _ => None,
        };
    }
    match name {
        // What was planned is executed, whatever becomes of the document.
        "query" | "operation_name" | "variables" => Some(stage != Stage::ExecutionRequest),
        // Those of the client's request are read before.
        "extensions" => Some(stage == Stage::SubgraphRequest),
        _ => None,
    }
}

/// What is wrong with members of a message at a stage.
pub(crate) fn problem(chain: &MemberPath, stage: Stage) -> Option<MemberProblem> {
    let mut kind = Kind::Message;
    let mut name = chain.root.clone();
    let wrong = |name: String, why| Some(MemberProblem { name, why });
    for (at, one) in chain.members.iter().enumerate() {
        let Some(next) = member(kind, one, stage) else {
            // Headers and the context have members of any name.
            if matches!(kind, Kind::Named(_)) {
                return None;
            }
            name = format!("{name}.{one}");
            return wrong(name, MISSING);
        };
        name = format!("{name}.{one}");
        kind = next;
        let is_last = at + 1 == chain.members.len() && !chain.goes_on;
        let is_refused = match kind {
            Kind::Value(is_set) => !is_set,
            Kind::Named(is_set) => is_last || !is_set,
            _ => is_last,
        };
        if chain.is_set && is_refused {
            return wrong(name, READ_ONLY);
        }
        if matches!(kind, Kind::Value(_)) {
            return None;
        }
    }
    None
}

/// The same of `Router`, which is the same everywhere.
pub(crate) fn router_problem(chain: &MemberPath, function: &Definition) -> Option<MemberProblem> {
    // Closures have what they use of outside as their first parameters.
    let given = match function.parameters.as_slice() {
        [.., last] if function.name.starts_with("anon$") => std::slice::from_ref(last),
        all => all,
    };
    let is_router = chain.root == "Router"
        && !function.reused.contains("Router")
        && !given.iter().any(|name| name == "Router");
    let one = chain.members.first().filter(|_| is_router)?;
    let mut known = ROUTER.iter().map(|(name, _)| *name);
    let is_known = matches!(&**one, "APOLLO_SDL" | "APOLLO_START") || known.any(|name| name == one);
    let why = match (is_known, chain.is_set) {
        (false, _) => MISSING,
        (true, true) => READ_ONLY,
        (true, false) => return None,
    };
    let name = format!("Router.{one}");
    Some(MemberProblem { name, why })
}

/// The stages at which parameters of functions are messages: by function and parameter.
type Messages = BTreeSet<(usize, usize, usize)>;

/// All that is wrong with the members of messages, as far as it is known what is a message: a parameter of a hook, and of
/// functions that are given it. With the place of the chain. What is right at one of the stages where a function is called is
/// not named.
pub(crate) fn problems(functions: &[Definition]) -> Vec<(MemberProblem, rhai::Position)> {
    let messages = messages(functions);
    let mut out = Vec::new();
    for (index, function) in functions.iter().enumerate() {
        for chain in &function.chains {
            if let Some(found) = router_problem(chain, function) {
                out.push((found, chain.at));
            }
            let parameter = function
                .parameters
                .iter()
                .position(|name| *name == chain.root);
            let Some(parameter) = parameter.filter(|_| !function.reused.contains(&chain.root))
            else {
                continue;
            };
            let stages = messages.range((index, parameter, 0)..=(index, parameter, usize::MAX));
            let found: Vec<_> = stages
                .map(|(_, _, stage)| problem(chain, Stage::ALL[*stage]))
                .collect();
            let all: Option<Vec<MemberProblem>> = found.into_iter().collect();
            if let Some(first) = all.and_then(|all| all.into_iter().next()) {
                out.push((first, chain.at));
            }
        }
    }
    out
}

fn messages(functions: &[Definition]) -> Messages {
    let mut known = Messages::new();
    for entry in functions {
        for (way, to) in &entry.hooks {
            let Some(stage) = stage(&entry.name, way == "map_response") else {
                continue;
            };
            for (index, function) in functions.iter().enumerate() {
                if let Some(last) = function.parameters.len().checked_sub(1)
                    && function.name == *to
                {
                    known.insert((index, last, stage));
                }
            }
        }
    }
    loop {
        let mut next = known.clone();
        for (index, parameter, stage) in &known {
            let function = &functions[*index];
            let name = &function.parameters[*parameter];
            if function.reused.contains(name) {
                continue;
            }
            for (called, given) in &function.calls {
                let places = given.iter().enumerate();
                let places = places.filter(|(_, given)| given.as_ref() == Some(name));
                for (place, _) in places {
                    let is_called = |one: &Definition| {
                        one.name == *called && one.parameters.len() == given.len()
                    };
                    let callee = functions.iter().position(is_called);
                    next.extend(callee.map(|callee| (callee, place, *stage)));
                }
            }
        }
        if next.len() == known.len() {
            return known;
        }
        known = next;
    }
}

/// The place of a stage among all, by its entry point.
fn stage(entry: &str, is_response: bool) -> Option<usize> {
    let (request, response) = match entry {
        "router_service" => (Stage::RouterRequest, Stage::RouterResponse),
        "supergraph_service" => (Stage::SupergraphRequest, Stage::SupergraphResponse),
        "execution_service" => (Stage::ExecutionRequest, Stage::ExecutionResponse),
        "subgraph_service" => (Stage::SubgraphRequest, Stage::SubgraphResponse),
        _ => return None,
    };
    let stage = if is_response { response } else { request };
    Stage::ALL.iter().position(|one| *one == stage)
}
