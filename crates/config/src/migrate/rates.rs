//! Rates of subgraphs.

use super::{
    convert::{duration, same},
    nodes::{at, map, one, set, text},
    rules::Walk,
};
use crate::tree::{Node, Value};

/// How a rate is called that has no name elsewhere.
const NAME: &str = "subgraph";

/// So much in so much time: `capacity` and `interval`, or `limit` and `duration`.
pub(super) fn of_subgraph(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = match path {
        [_, all, _] if all == "all" => "traffic_shaping.all.rate_limits".to_owned(),
        [.., name, _] => format!("traffic_shaping.subgraphs.{name}.rate_limits"),
        _ => return walk.unsupported(path, "it is of no subgraph"),
    };
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, "it is no mapping");
    };
    let known = ["capacity", "interval", "limit", "duration"];
    if let Some((key, _)) = entries.iter().find(|(key, _)| !known.contains(&&*key.text)) {
        return walk.unsupported(path, &format!("`{}` is not known here", key.text));
    }
    let either = |one: &str, other: &str| at(node, one).or_else(|| at(node, other));
    let (Some(capacity), Some(interval)) =
        (either("capacity", "limit"), either("interval", "duration"))
    else {
        return walk.unsupported(path, "it does not say how much in how much time");
    };
    let format = walk.format;
    match (same(format, capacity), duration(format, interval)) {
        (Ok(capacity), Ok(interval)) => {
            let mut rate = map();
            set(&mut rate, "name", text(NAME));
            set(&mut rate, "capacity", capacity);
            set(&mut rate, "interval", interval);
            walk.put(path, &target, one(rate), "");
        }
        (Err(why), _) | (_, Err(why)) => walk.unsupported(path, &why),
    }
}
