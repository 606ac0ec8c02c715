//! Sections with a switch of their own: `{ enabled, ... }`, as routers write retries and circuit breakers.

use ogive_yaml::{Key, Node, Value};

use super::{
    Format,
    nodes::{dotted, plain, scalar},
    rules::Walk,
    why::OFF,
};

/// What becomes of one key of a section.
pub(crate) enum Entry {
    /// The key's name in the section here, and its value or why it cannot be brought over.
    To(&'static str, Result<Node, String>),
    /// Not needed, because of this.
    NotNeeded(&'static str),
    /// There is no such key.
    Unknown,
}

/// Brings the keys of a section over, or none of them where it is switched off.
pub(crate) fn section(
    walk: &mut Walk<'_>,
    path: &[String],
    node: &Node,
    known: impl Fn(Format, &str, &Node) -> Entry,
) {
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, "it is not a mapping");
    };
    let off = |(key, value): &(Key, Node)| is_switch(key) && scalar(value) == Some("false");
    if entries.iter().any(off) {
        return walk.not_needed(path, OFF);
    }
    let base = dotted(path);
    for (key, value) in entries {
        let mut from = path.to_vec();
        from.push(key.text.clone());
        if is_switch(key) {
            walk.not_needed(&from, "it is on where any of its keys is set");
            continue;
        }
        match known(walk.format, &key.text, value) {
            Entry::To(name, value) => walk.try_put(&from, &format!("{base}.{name}"), value),
            Entry::NotNeeded(why) => walk.not_needed(&from, why),
            Entry::Unknown => walk.unsupported(&from, "there is no such setting here"),
        }
    }
}

/// Keeps one subgraph's breaker off if the breaker of `all` is on, which the subgraph would inherit.
pub(crate) fn breaker_off(walk: &mut Walk<'_>, path: &[String]) {
    // The most that the option takes.
    const NEVER: &str = "4294967295";
    let of_all = "traffic_shaping.all.circuit_breaker.enabled";
    if path.get(1).is_some_and(|key| key == "subgraphs") && walk.is_on(of_all) {
        let target = format!("{}.volume_threshold", dotted(path));
        let note = "off: one window never has so many requests";
        walk.put(path, &target, plain(NEVER), note);
    } else {
        walk.not_needed(path, OFF);
    }
}

/// Writes the other gateway's defaults for a section that is on, so that the section is on here, too.
pub(crate) fn defaults(walk: &mut Walk<'_>, path: &[String], values: &[(&str, &str)], why: &str) {
    let base = dotted(path);
    for (key, value) in values {
        walk.implied(&format!("{base}.{key}"), value, why);
    }
}

fn is_switch(key: &Key) -> bool {
    key.text == "enabled"
}
