//! Values of a request by which rules decide: selectors name them, conditions compare them, templates hold them.
//!
//! How each is written, and where, is the configuration's; what a request says there is looked up by whoever has the
//! request.

use ogive_base::PeerRange;

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
    /// `{ is_primary_response: true }`: `true` for a whole response or its first part, `false` for later parts and events.
    IsPrimaryResponse,
    /// `{ component: NAME }`: what that component of `plugins` says (`rate-key`).
    Component(String),
}

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

/// A part of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TemplatePart {
    /// As it is.
    Text(String),
    /// What the request says there.
    Selector(Selector),
}
