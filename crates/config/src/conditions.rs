//! Conditions on what a request says, by [selectors](crate::selectors).
//!
//! ```yaml
//! { any: [{ eq: [{ client_name: true }, shop] }, { exists: { request_header: x-debug } }] }
//! ```

use ogive_base::PeerRange;
use ogive_selectors::{Condition, Operand, Selector};
use ogive_yaml::{Node, Value};

use crate::{
    decode::{Decode, Errors},
    selectors::{DecodeIn, Place},
};

/// What has to hold of what a hook is told: a condition that may also name what only hooks see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookCondition(pub Condition);

/// Entries of the context that say what is asked and what it costs; those of before version 2.0 of Apollo Router behind them.
const OF_OPERATION: [[&str; 2]; 7] = [
    ["apollo::supergraph::operation_name", "operation_name"],
    ["apollo::supergraph::operation_kind", "operation_kind"],
    [
        "apollo::authorization::required_policies",
        "apollo_authorization::policies::required",
    ],
    ["apollo::demand_control::estimated_cost", "cost.estimated"],
    ["apollo::demand_control::actual_cost", "cost.actual"],
    ["apollo::demand_control::result", "cost.result"],
    ["apollo::demand_control::strategy", "cost.strategy"],
];

impl HookCondition {
    /// Reads one that is judged at a stage. `has_old_names`: whether entries of the context have their old names there.
    pub fn decode_at(
        node: &Node,
        stage: Place,
        has_old_names: bool,
        errors: &mut Errors,
    ) -> Option<Self> {
        let found = condition(node, stage, DEPTH_MAX, errors)?;
        let is_early = |selector: &&Selector| {
            let Selector::RequestContext(name) = selector else {
                return false;
            };
            let mut entries = OF_OPERATION.iter();
            entries.any(|[new, old]| name == new || (has_old_names && name == old))
        };
        if stage == Place::RouterRequest
            && let Some(Selector::RequestContext(name)) =
                found.selectors().into_iter().find(is_early)
        {
            let message = format!("the context has no `{name}` yet: it would never be met");
            errors.invalid(
                node.span,
                message,
                "look at it from `supergraph.request` on",
            );
            return None;
        }
        Some(HookCondition(found))
    }
}

/// Most conditions within one another.
const DEPTH_MAX: usize = 16;

impl DecodeIn for Condition {
    fn decode_at(node: &Node, place: Place, errors: &mut Errors) -> Option<Self> {
        condition(node, place, DEPTH_MAX, errors)
    }
}

impl Decode for Condition {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        Condition::decode_at(node, Place::Operation, errors)
    }
}

const WORDS: [&str; 8] = ["eq", "contains", "gt", "lt", "exists", "not", "all", "any"];

fn condition(node: &Node, place: Place, depth: usize, errors: &mut Errors) -> Option<Condition> {
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
                operand(left, place, errors)?,
                operand(right, place, errors)?,
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
        "exists" => match operand(body, place, errors)? {
            Operand::Selector(selector) => Condition::Exists(selector),
            Operand::Text(_) => {
                let message = "`exists` needs what is looked for, such as `{ jwt_claim: sub }`";
                errors.invalid(body.span, message, "");
                return None;
            }
        },
        "not" => Condition::Not(Box::new(condition(body, place, depth, errors)?)),
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
                .map(|item| condition(item, place, depth, errors))
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

fn operand(node: &Node, place: Place, errors: &mut Errors) -> Option<Operand> {
    if matches!(node.value, Value::Map(_)) {
        return Selector::decode_at(node, place, errors).map(Operand::Selector);
    }
    let text = errors.scalar(node, "a text, or `{ jwt_claim: NAME }`")?;
    Some(Operand::Text(text.to_owned()))
}
