//! Costs of operations in other gateways. All count as IBM's specification has it: `@cost`, `@listSize`, scalars for
//! nothing.

use ogive_yaml::{Node, Value};

use super::{
    convert::same,
    nodes::{at, is_on, scalar},
    rules::Walk,
    why::{COSTS, OFF},
};

const STRATEGY: &str = "demand_control.strategy.static_estimated";

/// Grafbase's `complexity_control`, which is off without a `mode`.
pub(crate) fn grafbase(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match at(node, "mode") {
        None => walk.not_needed(path, OFF),
        Some(_) => section(walk, path, node),
    }
}

/// Cosmo's `security.cost_control`.
pub(crate) fn cosmo(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    if at(node, "enabled").is_some_and(is_on) {
        section(walk, path, node);
    } else {
        walk.not_needed(path, OFF);
    }
}

fn section(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, COSTS);
    };
    for (key, value) in entries {
        let from = [path, std::slice::from_ref(&key.text)].concat();
        let target = match &*key.text {
            "enabled" => {
                walk.not_needed(&from, "it is on");
                continue;
            }
            "mode" if matches!(scalar(value), Some("enforce" | "measure")) => {
                "demand_control.mode".to_owned()
            }
            "expose_headers" => "demand_control.expose_headers".to_owned(),
            "limit" | "max_estimated_limit" => format!("{STRATEGY}.max"),
            "list_size" | "estimated_list_size" => format!("{STRATEGY}.list_size"),
            _ => {
                walk.unsupported(&from, COSTS);
                continue;
            }
        };
        walk.bound(&from, &target, value, same);
    }
    walk.implied("demand_control.enabled", "true", "costs are counted there");
}
