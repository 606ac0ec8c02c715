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
}

const SELECTORS: [&str; 7] = [
    "jwt_claim",
    "request_header",
    "client_name",
    "client_version",
    "client_address",
    "operation_name",
    "operation_kind",
];

impl Selector {
    /// How it is written.
    pub fn word(&self) -> &'static str {
        match self {
            Selector::JwtClaim(_) => "jwt_claim",
            Selector::RequestHeader(_) => "request_header",
            Selector::ClientName => "client_name",
            Selector::ClientVersion => "client_version",
            Selector::ClientAddress => "client_address",
            Selector::OperationName => "operation_name",
            Selector::OperationKind => "operation_kind",
        }
    }
}

impl Decode for Selector {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let found = crate::decode::fields(node, SELECTORS, errors)?;
        let mut present = found.iter().zip(SELECTORS);
        let mut present = present.by_ref().filter_map(|(n, w)| Some(((*n)?, w)));
        let (Some((body, word)), None) = (present.next(), present.next()) else {
            let message = "a selector names one value of a request";
            errors.invalid(node.span, message, "such as `{ jwt_claim: sub }`");
            return None;
        };
        let text = errors.scalar(body, "a text")?;
        match word {
            "jwt_claim" if text.trim_start_matches('.').is_empty() => {
                errors.invalid(node.span, "a claim needs a name", "");
                None
            }
            "jwt_claim" => Some(Selector::JwtClaim(text.to_owned())),
            "request_header" => {
                crate::decode::header_name(body, errors).map(Selector::RequestHeader)
            }
            _ if text != "true" => {
                errors.invalid(body.span, format!("write `{word}: true`"), "");
                None
            }
            "client_name" => Some(Selector::ClientName),
            "client_version" => Some(Selector::ClientVersion),
            "client_address" => Some(Selector::ClientAddress),
            "operation_name" => Some(Selector::OperationName),
            _ => Some(Selector::OperationKind),
        }
    }
}

/// Most conditions within one another.
const DEPTH_MAX: usize = 16;

/// What has to hold of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Both are the same text; lists and objects are no texts, and nothing equals what is not there.
    Eq(Operand, Operand),
    /// The first is a list that has the second, or a text that has it between spaces; with `client_address` as the second,
    /// ranges of addresses between spaces, one of which has it.
    Contains(Operand, Operand),
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
            Condition::Eq(left, right) | Condition::Contains(left, right) => {
                let both = [left, right].into_iter();
                both.filter_map(Operand::selector).collect()
            }
            Condition::Exists(selector) => vec![selector],
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
        condition(node, DEPTH_MAX, errors)
    }
}

const WORDS: [&str; 6] = ["eq", "contains", "exists", "not", "all", "any"];

fn condition(node: &Node, depth: usize, errors: &mut Errors) -> Option<Condition> {
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
        let message = "a condition is one of `eq`, `contains`, `exists`, `not`, `all`, `any`";
        errors.invalid(node.span, message, "combine several with `all` or `any`");
        return None;
    };
    Some(match word {
        "eq" | "contains" => {
            let [left, right] = pair(body, errors)?;
            let (left, right) = (operand(left, errors)?, operand(right, errors)?);
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
                && let Some(help) = ranges
                    .split_ascii_whitespace()
                    .find_map(|range| PeerRange::parse(range).err())
            {
                errors.invalid(
                    body.span,
                    "an address is compared with ranges of addresses",
                    help,
                );
                return None;
            }
            if word == "eq" {
                Condition::Eq(left, right)
            } else {
                Condition::Contains(left, right)
            }
        }
        "exists" => match operand(body, errors)? {
            Operand::Selector(selector) => Condition::Exists(selector),
            Operand::Text(_) => {
                let message = "`exists` needs what is looked for, such as `{ jwt_claim: sub }`";
                errors.invalid(body.span, message, "");
                return None;
            }
        },
        "not" => Condition::Not(Box::new(condition(body, depth, errors)?)),
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
                .map(|item| condition(item, depth, errors))
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

fn operand(node: &Node, errors: &mut Errors) -> Option<Operand> {
    if matches!(node.value, Value::Map(_)) {
        return Selector::decode(node, errors).map(Operand::Selector);
    }
    let text = errors.scalar(node, "a text, or `{ jwt_claim: NAME }`")?;
    Some(Operand::Text(text.to_owned()))
}
