//! Settings that several gateways have, each on or off: what becomes of them.

use ogive_yaml::Node;

use super::{
    Format,
    nodes::{plain, scalar},
    rules::Walk,
};

/// Whether directives for authorization are enforced.
pub(crate) fn enforced(_: Format, node: &Node) -> Result<Node, String> {
    Ok(plain(match scalar(node) {
        Some("false") => "ignore",
        _ => "enforce",
    }))
}

/// Whether mutations may be sent twice.
pub(crate) fn retry_mutations(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    match scalar(node) {
        Some("false") => walk.not_needed(path, "they never are"),
        _ => walk.unsupported(path, "mutations are never sent twice"),
    }
}
