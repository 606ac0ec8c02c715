//! Selectors: how rules name a value of a request, and conditions on such values. One language for header rules, policies,
//! switches and whatever else decides by who asks what.
//!
//! ```yaml
//! { jwt_claim: org.plan }
//! { any: [{ eq: [{ client_name: true }, shop] }, { exists: { request_header: x-debug } }] }
//! ```

use crate::{
    PeerRange,
    decode::{Decode, Errors},
    tree::{Node, Value},
};

/// A value of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selector {
    /// `{ jwt_claim: NAME }`: what the caller claims; a dot leads into an object.
    JwtClaim(String),
    /// `{ request_header: NAME }`: the first header of that name, in lower case.
    RequestHeader(String),
    /// `{ client_name: true }`: what the client says it is called (`telemetry.clients`).
    ClientName,
    /// `{ client_version: true }`: the version that it says it has.
    ClientVersion,
    /// `{ client_address: true }`: its address, or that which a trusted proxy names.
    ClientAddress,
    /// `{ operation_name: true }`: the name of the operation.
    OperationName,
    /// `{ operation_kind: true }`: `query`, `mutation` or `subscription`.
    OperationKind,
    /// `{ request_method: true }`: the method of the HTTP request.
    RequestMethod,
    /// `{ request_context: NAME }`: an entry of the context.
    RequestContext(String),
    /// `{ subgraph_name: true }`: the name of the subgraph.
    SubgraphName,
    /// `{ subgraph_request_header: NAME }`: the first header of that name towards the subgraph.
    SubgraphRequestHeader(String),
    /// `{ response_header: NAME }`: the first header of that name of the response.
    ResponseHeader(String),
    /// `{ response_status: code }`: its status.
    ResponseStatus,
    /// `{ on_graphql_error: true }`: `true` if it has errors, else `false`.
    OnGraphqlError,
    /// `{ is_primary_response: true }`: `false` of parts that come after the first, else `true`.
    IsPrimaryResponse,
}

/// What is written behind the word of a selector.
enum Argument {
    /// `true`, or this word of Apollo Router.
    Flag(&'static str, Selector),
    /// A name.
    Name(fn(String) -> Selector),
    /// The name of a header.
    Header(fn(String) -> Selector),
}

/// Where a selector says something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Scope {
    /// Wherever there is a request.
    Request,
    /// At the stages of hooks.
    Hook,
    /// At those that look at a response.
    Response,
}

use Argument::{Flag, Header, Name};

/// Every selector by its words, the one that is ours first.
static SELECTORS: [(&str, Scope, Argument); 21] = [
    ("jwt_claim", Scope::Request, Name(Selector::JwtClaim)),
    (
        "request_header",
        Scope::Request,
        Header(Selector::RequestHeader),
    ),
    (
        "client_name",
        Scope::Request,
        Flag("string", Selector::ClientName),
    ),
    (
        "client_version",
        Scope::Request,
        Flag("string", Selector::ClientVersion),
    ),
    (
        "client_address",
        Scope::Request,
        Flag("string", Selector::ClientAddress),
    ),
    (
        "operation_name",
        Scope::Request,
        Flag("string", Selector::OperationName),
    ),
    (
        "operation_kind",
        Scope::Request,
        Flag("string", Selector::OperationKind),
    ),
    (
        "request_method",
        Scope::Hook,
        Flag("true", Selector::RequestMethod),
    ),
    (
        "request_context",
        Scope::Hook,
        Name(Selector::RequestContext),
    ),
    (
        "response_context",
        Scope::Response,
        Name(Selector::RequestContext),
    ),
    (
        "subgraph_name",
        Scope::Hook,
        Flag("true", Selector::SubgraphName),
    ),
    (
        "supergraph_request_header",
        Scope::Hook,
        Header(Selector::RequestHeader),
    ),
    (
        "supergraph_operation_name",
        Scope::Hook,
        Flag("string", Selector::OperationName),
    ),
    (
        "supergraph_operation_kind",
        Scope::Hook,
        Flag("string", Selector::OperationKind),
    ),
    (
        "subgraph_request_header",
        Scope::Hook,
        Header(Selector::SubgraphRequestHeader),
    ),
    (
        "response_header",
        Scope::Response,
        Header(Selector::ResponseHeader),
    ),
    (
        "subgraph_response_header",
        Scope::Response,
        Header(Selector::ResponseHeader),
    ),
    (
        "response_status",
        Scope::Response,
        Flag("code", Selector::ResponseStatus),
    ),
    (
        "subgraph_response_status",
        Scope::Response,
        Flag("code", Selector::ResponseStatus),
    ),
    (
        "on_graphql_error",
        Scope::Response,
        Flag("true", Selector::OnGraphqlError),
    ),
    (
        "is_primary_response",
        Scope::Response,
        Flag("true", Selector::IsPrimaryResponse),
    ),
];

impl Selector {
    /// How it is written.
    pub fn word(&self) -> &'static str {
        let row = SELECTORS.iter().find(|(_, _, argument)| match argument {
            Flag(_, selector) => selector == self,
            Name(make) | Header(make) => {
                std::mem::discriminant(&make(String::new())) == std::mem::discriminant(self)
            }
        });
        row.map_or("", |(word, ..)| word)
    }

    fn decode_in(node: &Node, scope: Scope, errors: &mut Errors) -> Option<Self> {
        let known = || SELECTORS.iter().filter(|(_, of, _)| *of <= scope);
        let entries = errors.entries(node)?;
        let [(key, body)] = entries else {
            let message = "a selector names one value of a request";
            errors.invalid(node.span, message, "such as `{ jwt_claim: sub }`");
            return None;
        };
        let Some((word, _, argument)) = known().find(|(word, ..)| *word == key.text) else {
            errors.unknown_key(key, known().map(|(word, ..)| *word));
            return None;
        };
        match argument {
            Header(make) => crate::decode::header_name(body, errors).map(make),
            Name(make) => {
                let text = errors.scalar(body, "a text")?;
                if text.trim_start_matches('.').is_empty() {
                    errors.invalid(node.span, format!("`{word}` needs a name"), "");
                    return None;
                }
                Some(make(text.to_owned()))
            }
            Flag(also, selector) => {
                let text = errors.scalar(body, "a text")?;
                if text != "true" && text != *also {
                    errors.invalid(body.span, format!("write `{word}: true`"), "");
                    return None;
                }
                Some(selector.clone())
            }
        }
    }
}

impl Decode for Selector {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        Selector::decode_in(node, Scope::Request, errors)
    }
}

/// What has to hold of what a hook is told: a condition that may also name what only hooks see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookCondition(pub Condition);

impl HookCondition {
    /// Reads one. `is_response`: whether there is a response where it is judged.
    pub(crate) fn decode_at(node: &Node, is_response: bool, errors: &mut Errors) -> Option<Self> {
        let scope = if is_response {
            Scope::Response
        } else {
            Scope::Hook
        };
        condition(node, scope, DEPTH_MAX, errors).map(HookCondition)
    }
}

/// Most conditions within one another.
const DEPTH_MAX: usize = 16;

/// What has to hold of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Both are the same text; lists and objects are no texts, and nothing equals what is not there.
    Eq(Operand, Operand),
    /// The first is a list that has the second, or a text that has it between spaces.
    Contains(Operand, Operand),
    /// Both are numbers, and the first is the larger one.
    Gt(Operand, Operand),
    /// Both are numbers, and the first is the smaller one.
    Lt(Operand, Operand),
    /// The client's address is within one of these ranges: `contains` with `client_address` as the second.
    Within(Vec<PeerRange>),
    /// There is such a value, and it is not null.
    Exists(Selector),
    /// The condition is not met.
    Not(Box<Condition>),
    /// All are met; none listed: refused.
    All(Vec<Condition>),
    /// One is met.
    Any(Vec<Condition>),
}

/// One side of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operand {
    /// What the request says there.
    Selector(Selector),
    /// A text.
    Text(String),
}

impl Condition {
    /// What of a request it looks at.
    pub fn selectors(&self) -> Vec<&Selector> {
        match self {
            Condition::Eq(left, right)
            | Condition::Contains(left, right)
            | Condition::Gt(left, right)
            | Condition::Lt(left, right) => {
                let both = [left, right].into_iter();
                both.filter_map(Operand::selector).collect()
            }
            Condition::Exists(selector) => vec![selector],
            Condition::Within(_) => vec![&Selector::ClientAddress],
            Condition::Not(inner) => inner.selectors(),
            Condition::All(all) | Condition::Any(all) => {
                all.iter().flat_map(Condition::selectors).collect()
            }
        }
    }
}

impl Operand {
    fn selector(&self) -> Option<&Selector> {
        match self {
            Operand::Selector(selector) => Some(selector),
            Operand::Text(_) => None,
        }
    }
}

impl Decode for Condition {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        condition(node, Scope::Request, DEPTH_MAX, errors)
    }
}

const WORDS: [&str; 8] = ["eq", "contains", "gt", "lt", "exists", "not", "all", "any"];

fn condition(node: &Node, scope: Scope, depth: usize, errors: &mut Errors) -> Option<Condition> {
    let Some(depth) = depth.checked_sub(1) else {
        errors.invalid(node.span, "conditions are nested too deep", "");
        return None;
    };
    let found = crate::decode::fields(node, WORDS, errors)?;
    let mut present = found
        .iter()
        .zip(WORDS)
        .filter_map(|(n, w)| Some(((*n)?, w)));
    let (Some((body, word)), None) = (present.next(), present.next()) else {
        let message =
            "a condition is one of `eq`, `contains`, `gt`, `lt`, `exists`, `not`, `all`, `any`";
        errors.invalid(node.span, message, "combine several with `all` or `any`");
        return None;
    };
    Some(match word {
        "eq" | "contains" | "gt" | "lt" => {
            let [left, right] = pair(body, errors)?;
            let (left, right) = (
                operand(left, scope, errors)?,
                operand(right, scope, errors)?,
            );
            if let (Operand::Text(_), Operand::Text(_)) = (&left, &right) {
                errors.invalid(
                    body.span,
                    "nothing of the request is compared",
                    "name it: `{ jwt_claim: sub }`",
                );
                return None;
            }
            if let (Operand::Text(ranges), Operand::Selector(Selector::ClientAddress)) =
                (&left, &right)
                && word == "contains"
            {
                let ranges = ranges.split_ascii_whitespace().map(PeerRange::parse);
                return match ranges.collect() {
                    Ok(ranges) => Some(Condition::Within(ranges)),
                    Err(help) => {
                        let message = "an address is compared with ranges of addresses";
                        errors.invalid(body.span, message, help);
                        None
                    }
                };
            }
            match word {
                "eq" => Condition::Eq(left, right),
                "gt" => Condition::Gt(left, right),
                "lt" => Condition::Lt(left, right),
                _ => Condition::Contains(left, right),
            }
        }
        "exists" => match operand(body, scope, errors)? {
            Operand::Selector(selector) => Condition::Exists(selector),
            Operand::Text(_) => {
                let message = "`exists` needs what is looked for, such as `{ jwt_claim: sub }`";
                errors.invalid(body.span, message, "");
                return None;
            }
        },
        "not" => Condition::Not(Box::new(condition(body, scope, depth, errors)?)),
        _ => {
            let Value::List(items) = &body.value else {
                errors.invalid(
                    body.span,
                    format!("`{word}` needs a list of conditions"),
                    "",
                );
                return None;
            };
            if items.is_empty() {
                errors.invalid(body.span, format!("`{word}` has no condition"), "");
                return None;
            }
            let all: Option<Vec<Condition>> = items
                .iter()
                .map(|item| condition(item, scope, depth, errors))
                .collect();
            if word == "all" {
                Condition::All(all?)
            } else {
                Condition::Any(all?)
            }
        }
    })
}

fn pair<'n>(node: &'n Node, errors: &mut Errors) -> Option<[&'n Node; 2]> {
    if let Value::List(items) = &node.value
        && let [left, right] = items.as_slice()
    {
        return Some([left, right]);
    }
    let help = "such as `[{ jwt_claim: plan }, gold]`";
    errors.invalid(node.span, "a comparison is a list of two values", help);
    None
}

fn operand(node: &Node, scope: Scope, errors: &mut Errors) -> Option<Operand> {
    if matches!(node.value, Value::Map(_)) {
        return Selector::decode_in(node, scope, errors).map(Operand::Selector);
    }
    let text = errors.scalar(node, "a text, or `{ jwt_claim: NAME }`")?;
    Some(Operand::Text(text.to_owned()))
}
