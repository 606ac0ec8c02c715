//! The canonical form of a representation: plans write the members of one entity's key in different orders.

use std::borrow::Cow;

use ogive_json::{Kind, Node, Tree};

/// Deepest nesting of objects and lists. A text that is nested more deeply is its own canonical form.
const DEPTH_MAX: u32 = 64;

/// What is still to be written.
enum Step<'t> {
    Value(Node<'t>),
    Bytes(&'t [u8]),
}

/// Returns a JSON text with the members of all objects sorted by their keys, without white space. Strings and numbers keep
/// their bytes. A text that is not JSON is its own canonical form.
pub fn canonical(text: &[u8]) -> Cow<'_, [u8]> {
    let Ok(tree) = Tree::read(text, DEPTH_MAX) else {
        return Cow::Borrowed(text);
    };
    let mut out = Vec::with_capacity(text.len());
    let mut steps = vec![Step::Value(tree.root())];
    while let Some(step) = steps.pop() {
        match step {
            Step::Bytes(bytes) => out.extend_from_slice(bytes),
            Step::Value(node) => write(node, &mut out, &mut steps),
        }
    }
    Cow::Owned(out)
}

/// Writes a value, or puts its parts on the stack, the first one on top.
fn write<'t>(node: Node<'t>, out: &mut Vec<u8>, steps: &mut Vec<Step<'t>>) {
    match node.kind() {
        Kind::Object => {
            let mut members: Vec<_> = node.members().collect();
            // Equal keys stay in their order: the last one counts.
            members.sort_by(|a, b| a.0.raw().cmp(b.0.raw()));
            steps.push(Step::Bytes(b"}"));
            for (at, (key, value)) in members.iter().enumerate().rev() {
                steps.push(Step::Value(*value));
                steps.push(Step::Bytes(b"\":"));
                steps.push(Step::Bytes(key.raw()));
                steps.push(Step::Bytes(if at > 0 { b",\"" } else { b"\"" }));
            }
            out.push(b'{');
        }
        Kind::Array => {
            let items: Vec<_> = node.items().collect();
            steps.push(Step::Bytes(b"]"));
            for (at, item) in items.iter().enumerate().rev() {
                steps.push(Step::Value(*item));
                if at > 0 {
                    steps.push(Step::Bytes(b","));
                }
            }
            out.push(b'[');
        }
        _ => out.extend_from_slice(node.raw()),
    }
}
