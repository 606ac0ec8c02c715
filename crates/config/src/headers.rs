//! Header rules: which of the client's headers a subgraph gets to see, and which of a subgraph's the client.
//!
//! ```yaml
//! headers:
//!   all:
//!     request:
//!       - propagate: { named: authorization }
//!       - propagate: { matching: "^x-tenant-" }
//!       - insert: { name: x-from, value: ogive }
//!       - remove: { named: cookie }
//!     response:
//!       - propagate: { named: set-cookie }
//!       - propagate: { matching: "^x-rate-", algorithm: first }
//! ```

use crate::{
    HeaderAlgorithm, codes,
    decode::{Decode, Errors, fields, header_name},
    selectors::Selector,
    tree::{Key, Node},
};

/// One step; steps are taken in order, those of `all` before those of the subgraph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeaderRule {
    /// Copies client headers. A header that an earlier step has set stays as it is.
    Propagate {
        /// Which client headers.
        from: HeaderSelector,
        /// The name towards the subgraph; only with [`HeaderSelector::Named`].
        rename: Option<String>,
        /// Sent if the client did not send the header; only with [`HeaderSelector::Named`].
        default: Option<String>,
    },
    /// Sets a header, whatever it was before.
    Insert {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// Sets a header to what is known of the caller or client, whatever it was before; takes it back if nothing is.
    InsertFrom {
        /// Its name.
        name: String,
        /// What: a claim, as in `.sub` or `.realm.roles`, or what the client says it is called.
        from: Selector,
        /// Sent if nothing is known.
        default: Option<String>,
    },
    /// Takes back headers that earlier steps have set.
    Remove(HeaderSelector),
}

/// Which headers a step is about. Names are lower case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeaderSelector {
    /// The header of that name.
    Named(String),
    /// Headers whose lower-case name matches this regular expression (checked to be valid), anywhere in the name
    /// unless anchored.
    Matching(String),
}

/// One step for the answers of subgraphs, taken for each of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResponseHeaderRule {
    /// Copies headers of the answer.
    Propagate {
        /// Which.
        from: HeaderSelector,
        /// The name towards the client; only with [`HeaderSelector::Named`].
        rename: Option<String>,
        /// Taken if the answer has none; only with [`HeaderSelector::Named`].
        default: Option<String>,
        /// What becomes of several answers' values; `None` leaves it to the header.
        algorithm: Option<HeaderAlgorithm>,
    },
    /// Sets a header, whatever it was before.
    Insert {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// Takes back what earlier steps have copied from the same answer.
    Remove(HeaderSelector),
}

impl Decode for ResponseHeaderRule {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let (step, body) = step(node, "set-cookie", errors)?;
        match step.text.as_str() {
            "propagate" => {
                let names = ["named", "matching", "rename", "default", "algorithm"];
                let [named, matching, rename, default, algorithm] = fields(body, names, errors)?;
                let algorithm = match algorithm {
                    Some(node) => Some(HeaderAlgorithm::decode(node, errors)?),
                    None => None,
                };
                let rule = propagate(body, [named, matching, rename, default], errors)?;
                let HeaderRule::Propagate {
                    from,
                    rename,
                    default,
                } = rule
                else {
                    return None;
                };
                Some(ResponseHeaderRule::Propagate {
                    from,
                    rename,
                    default,
                    algorithm,
                })
            }
            "insert" => {
                insert(body, errors).map(|(name, value)| ResponseHeaderRule::Insert { name, value })
            }
            "remove" => remove(body, errors).map(ResponseHeaderRule::Remove),
            _ => {
                errors.unknown_key(step, STEPS.into_iter());
                None
            }
        }
    }
}

const STEPS: [&str; 3] = ["propagate", "insert", "remove"];

fn insert(body: &Node, errors: &mut Errors) -> Option<(String, String)> {
    let [name, value] = fields(body, ["name", "value"], errors)?;
    let (Some(name), Some(value)) = (name, value) else {
        errors.invalid(body.span, "`insert` needs `name` and `value`", "");
        return None;
    };
    Some((header_name(name, errors)?, header_value(value, errors)?))
}

/// The words in which Apollo Router calls what a header can be made of.
const CLAIMS: &str = "apollo::authentication::jwt_claims";
const CLIENT_NAME: &str = "apollo::telemetry::client_name";
const CLIENT_VERSION: &str = "apollo::telemetry::client_version";

/// `{ name, value }`, `{ name, from }` or `{ name, from_context, path }`.
fn insert_request(body: &Node, errors: &mut Errors) -> Option<HeaderRule> {
    let names = ["name", "value", "from", "from_context", "path", "default"];
    let [name, value, from, context, path, default] = fields(body, names, errors)?;
    let Some(name) = name else {
        errors.invalid(body.span, "`insert` needs `name` and `value`", "");
        return None;
    };
    let name = header_name(name, errors)?;
    let from = match (value, from, context) {
        (Some(value), None, None) => {
            if let Some(extra) = path.or(default) {
                let message = "`path` and `default` go with `from_context`, not with `value`";
                errors.invalid(extra.span, message, "");
                return None;
            }
            let value = header_value(value, errors)?;
            return Some(HeaderRule::Insert { name, value });
        }
        (None, Some(from), None) if path.is_none() => insert_selector(from, errors)?,
        (None, None, Some(context)) => context_selector(body, context, path, errors)?,
        _ => {
            let message = "`insert` needs `name` and `value`, or `from_context` and `path`, or `from` instead of `value`";
            errors.invalid(body.span, message, "");
            return None;
        }
    };
    let default = match default {
        Some(node) => Some(header_value(node, errors)?),
        None => None,
    };
    Some(HeaderRule::InsertFrom {
        name,
        from,
        default,
    })
}

/// What `from` names.
fn insert_selector(from: &Node, errors: &mut Errors) -> Option<Selector> {
    let selector = Selector::decode(from, errors)?;
    match selector {
        Selector::JwtClaim(_) | Selector::ClientName | Selector::ClientVersion => Some(selector),
        Selector::RequestHeader(_) => {
            let help = "write `propagate: { named: HEADER, rename: NAME }`";
            errors.invalid(from.span, "headers of the client are propagated", help);
            None
        }
        _ => {
            let message = format!("no header can be taken from `{}`", selector.word());
            let help = "there are `jwt_claim`, `client_name` and `client_version`";
            errors.invalid(from.span, message, help);
            None
        }
    }
}

/// What `from_context` names.
fn context_selector(
    body: &Node,
    context: &Node,
    path: Option<&Node>,
    errors: &mut Errors,
) -> Option<Selector> {
    let found = errors.scalar(context, "a key of the context")?;
    let of_client = match found {
        CLIENT_NAME => Some(Selector::ClientName),
        CLIENT_VERSION => Some(Selector::ClientVersion),
        CLAIMS => None,
        _ => {
            let message = format!("`{found}` is nothing that a header can be taken from");
            errors.invalid(context.span, message, &format!("write `{CLAIMS}`"));
            return None;
        }
    };
    match (of_client, path) {
        (Some(selector), None) => Some(selector),
        (Some(_), Some(path)) => {
            errors.invalid(path.span, "`path` goes with claims", "");
            None
        }
        (None, None) => {
            let help = "write the claim, such as `path: .sub`";
            errors.invalid(body.span, "`from_context` needs `path`", help);
            None
        }
        (None, Some(path)) => {
            let text = errors.scalar(path, "a path")?.to_owned();
            if text.trim_start_matches('.').is_empty() {
                let help = "write it such as `.sub`";
                errors.invalid(path.span, "the path names no claim", help);
                return None;
            }
            Some(Selector::JwtClaim(text))
        }
    }
}

/// The only step of a rule; `example` is a header that a rule may be about.
fn step<'n>(node: &'n Node, example: &str, errors: &mut Errors) -> Option<(&'n Key, &'n Node)> {
    let entries = errors.entries(node)?;
    let [(step, body)] = entries else {
        errors.invalid(
            node.span,
            "a header rule is one of `propagate`, `insert` and `remove`",
            &format!(
                "write each rule as its own list item, such as `- propagate: {{ named: {example} }}`"
            ),
        );
        return None;
    };
    Some((step, body))
}

fn remove(body: &Node, errors: &mut Errors) -> Option<HeaderSelector> {
    let [named, matching] = fields(body, ["named", "matching"], errors)?;
    selector(body, named, matching, errors)
}

impl Decode for HeaderRule {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let (step, body) = step(node, "authorization", errors)?;
        match step.text.as_str() {
            "propagate" => {
                let names = ["named", "matching", "rename", "default"];
                let parts = fields(body, names, errors)?;
                propagate(body, parts, errors)
            }
            "insert" => insert_request(body, errors),
            "remove" => remove(body, errors).map(HeaderRule::Remove),
            _ => {
                errors.unknown_key(step, STEPS.into_iter());
                None
            }
        }
    }
}

fn propagate(
    body: &Node,
    [named, matching, rename, default]: [Option<&Node>; 4],
    errors: &mut Errors,
) -> Option<HeaderRule> {
    let from = selector(body, named, matching, errors)?;
    if let (HeaderSelector::Matching(_), Some(extra)) = (&from, rename.or(default)) {
        errors.invalid(
            extra.span,
            "`rename` and `default` go with `named`, not with `matching`",
            "",
        );
        return None;
    }
    Some(HeaderRule::Propagate {
        from,
        rename: match rename {
            Some(node) => Some(header_name(node, errors)?),
            None => None,
        },
        default: match default {
            Some(node) => Some(header_value(node, errors)?),
            None => None,
        },
    })
}

fn selector(
    body: &Node,
    named: Option<&Node>,
    matching: Option<&Node>,
    errors: &mut Errors,
) -> Option<HeaderSelector> {
    match (named, matching) {
        (Some(node), None) => header_name(node, errors).map(HeaderSelector::Named),
        (None, Some(node)) => {
            let text = errors.scalar(node, "a regular expression")?;
            if let Err(error) = regex_lite::Regex::new(text) {
                errors.push(
                    codes::INVALID_VALUE,
                    node.span,
                    format!("`{text}` is no regular expression: {error}"),
                    None,
                );
                return None;
            }
            Some(HeaderSelector::Matching(text.to_owned()))
        }
        _ => {
            errors.invalid(body.span, "expected one of `named` and `matching`", "");
            None
        }
    }
}

pub(crate) fn header_value(node: &Node, errors: &mut Errors) -> Option<String> {
    let text = errors.scalar(node, "a header value")?;
    if text.bytes().any(|b| b < 0x20 && b != b'\t' || b == 0x7f) {
        errors.invalid(
            node.span,
            "a header value cannot hold control characters or line breaks",
            "",
        );
        return None;
    }
    Some(text.to_owned())
}
