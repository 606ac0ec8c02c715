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
//!       - insert: { name: x-app, template: "{client_name}/{client_version}" }
//!         when: { exists: { client_name: true } }
//!     response:
//!       - propagate: { named: set-cookie }
//!       - propagate: { matching: "^x-rate-", algorithm: first }
//!       - insert: { name: x-tenant, template: "{jwt_claim: tenant}" }
//! ```

use ogive_selectors::{Condition, Selector, TemplatePart};
use ogive_yaml::{Key, Node, Value};

use crate::{
    HeaderAlgorithm, codes,
    decode::{Decode, Errors, fields, header_name, header_value},
    selectors::{DecodeIn, Place},
    template,
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
    /// Sets a header to what is known of the caller, client or operation, whatever it was before; takes it back if nothing is.
    InsertFrom {
        /// Its name.
        name: String,
        /// What: a claim, as in `.sub` or `.realm.roles`, what the client says it is called, or what it asks.
        from: Selector,
        /// Sent if nothing is known.
        default: Option<String>,
    },
    /// Sets a header to a text with what is known in it, whatever it was before; takes it back if something of it is not known.
    InsertTemplate {
        /// Its name.
        name: String,
        /// The text.
        template: Vec<TemplatePart>,
        /// Sent if something of it is not known.
        default: Option<String>,
    },
    /// Takes back headers that earlier steps have set.
    Remove(HeaderSelector),
    /// Another step, for requests of which something holds.
    When(Condition, Box<HeaderRule>),
}

/// Which headers a step is about. Names are lower case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeaderSelector {
    /// The header of that name.
    Named(String),
    /// Headers whose name matches this regular expression (checked to be valid), in upper or lower case, anywhere in the name
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
    /// Sets a header to a text with what is known of the client's request in it, whatever it was before; takes it back if something
    /// of it is not known.
    InsertTemplate {
        /// Its name.
        name: String,
        /// The text.
        template: Vec<TemplatePart>,
        /// Set if something of it is not known.
        default: Option<String>,
    },
    /// Takes back what earlier steps have copied from the same answer.
    Remove(HeaderSelector),
    /// Another step, for client requests of which something holds.
    When(Condition, Box<ResponseHeaderRule>),
}

impl Decode for ResponseHeaderRule {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let Some((when, rest)) = conditional(node) else {
            return ResponseHeaderRule::step(node, errors);
        };
        let rule = ResponseHeaderRule::step(&rest, errors);
        let when = Condition::decode_at(when, Place::SubgraphRule, errors)?;
        Some(ResponseHeaderRule::When(when, Box::new(rule?)))
    }
}

impl ResponseHeaderRule {
    /// What it does where it holds.
    pub fn effect(&self) -> &ResponseHeaderRule {
        match self {
            ResponseHeaderRule::When(_, rule) => rule.effect(),
            rule => rule,
        }
    }

    /// What of the client's request it looks at.
    pub fn selectors(&self) -> Vec<&Selector> {
        match self {
            ResponseHeaderRule::When(when, rule) => {
                let mut all = when.selectors();
                all.extend(rule.selectors());
                all
            }
            ResponseHeaderRule::InsertTemplate { template, .. } => template::selectors(template),
            _ => Vec::new(),
        }
    }

    fn step(node: &Node, errors: &mut Errors) -> Option<Self> {
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
            "insert" => insert_response(body, errors),
            "remove" => remove(body, errors).map(ResponseHeaderRule::Remove),
            _ => {
                errors.unknown_key(step, STEPS.into_iter());
                None
            }
        }
    }
}

const STEPS: [&str; 3] = ["propagate", "insert", "remove"];

/// A rule without its condition, if it has one.
fn conditional(node: &Node) -> Option<(&Node, Node)> {
    let Value::Map(entries) = &node.value else {
        return None;
    };
    let is_condition = |(key, _): &&(Key, Node)| key.text == "when";
    let (_, when) = entries.iter().find(is_condition)?;
    let others = entries.iter().filter(|entry| !is_condition(entry));
    let rest = Node {
        span: node.span,
        value: Value::Map(others.cloned().collect()),
    };
    Some((when, rest))
}

/// Towards clients all that is known is a text with one selector at least, so that there is one way to make it.
fn insert_response(body: &Node, errors: &mut Errors) -> Option<ResponseHeaderRule> {
    let one = |selector| vec![TemplatePart::Selector(selector)];
    let [.., from, _, _, _, _] = fields(body, INSERT, errors)?;
    // A header of the client is not propagated this way round.
    if let Some(from) = from
        && let Value::Map(entries) = &from.value
        && let [(key, _)] = entries.as_slice()
        && key.text.ends_with("request_header")
    {
        let help = "write `template: \"{request_header: NAME}\"`";
        errors.invalid(from.span, "`from` names no header of the client", help);
        return None;
    }
    Some(match insert_request(body, errors)? {
        HeaderRule::Insert { name, value } => ResponseHeaderRule::Insert { name, value },
        HeaderRule::InsertFrom {
            name,
            from,
            default,
        } => ResponseHeaderRule::InsertTemplate {
            name,
            template: one(from),
            default,
        },
        HeaderRule::InsertTemplate {
            name,
            template,
            default,
        } => ResponseHeaderRule::InsertTemplate {
            name,
            template,
            default,
        },
        _ => return None,
    })
}

/// The words in which Apollo Router calls what a header can be made of.
const CLAIMS: &str = "apollo::authentication::jwt_claims";
const CLIENT_NAME: &str = "apollo::telemetry::client_name";
const CLIENT_VERSION: &str = "apollo::telemetry::client_version";
const OPERATION_NAME: &str = "apollo::supergraph::operation_name";
const OPERATION_KIND: &str = "apollo::supergraph::operation_kind";

/// The same words before its version 2.0.
const DEPRECATED: [(&str, &str); 5] = [
    ("apollo_authentication::JWT::claims", CLAIMS),
    ("apollo_telemetry::client_name", CLIENT_NAME),
    ("apollo_telemetry::client_version", CLIENT_VERSION),
    ("operation_name", OPERATION_NAME),
    ("operation_kind", OPERATION_KIND),
];

/// The keys of an inserting step.
const INSERT: [&str; 7] = [
    "name",
    "value",
    "from",
    "from_context",
    "path",
    "default",
    "template",
];

/// `{ name, value }`, `{ name, from }`, `{ name, template }` or `{ name, from_context, path }`.
fn insert_request(body: &Node, errors: &mut Errors) -> Option<HeaderRule> {
    let [name, value, from, context, path, default, template] = fields(body, INSERT, errors)?;
    let Some(name) = name else {
        errors.invalid(body.span, "`insert` needs `name` and `value`", "");
        return None;
    };
    let name = header_name(name, errors)?;
    if let Some(template) = template {
        if let Some(extra) = value.or(from).or(context).or(path) {
            let message = "`template` stands alone, with `default` at the most";
            errors.invalid(extra.span, message, "");
            return None;
        }
        return Some(HeaderRule::InsertTemplate {
            name,
            template: template::decode(template, Place::SubgraphRule, errors)?,
            default: match default {
                Some(node) => Some(header_value(node, errors)?),
                None => None,
            },
        });
    }
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
            let message = "`insert` needs `name` and `value`, or `from_context` and `path`, or `from` or `template` instead of `value`";
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
    let is_header = |(key, _): &(Key, Node)| key.text.ends_with("request_header");
    if matches!(&from.value, Value::Map(entries) if entries.iter().any(is_header)) {
        let help = "write `propagate: { named: HEADER, rename: NAME }`";
        errors.invalid(from.span, "headers of the client are propagated", help);
        return None;
    }
    Selector::decode_at(from, Place::Header, errors)
}

/// What `from_context` names.
fn context_selector(
    body: &Node,
    context: &Node,
    path: Option<&Node>,
    errors: &mut Errors,
) -> Option<Selector> {
    let found = errors.scalar(context, "a key of the context")?;
    let today = DEPRECATED.iter().find(|(old, _)| *old == found);
    let of_client = match today.map_or(found, |(_, today)| today) {
        CLIENT_NAME => Some(Selector::ClientName),
        CLIENT_VERSION => Some(Selector::ClientVersion),
        OPERATION_NAME => Some(Selector::OperationName),
        OPERATION_KIND => Some(Selector::OperationKind),
        CLAIMS => None,
        _ => {
            let message = format!("`{found}` is nothing that a header can be taken from");
            let known = [CLIENT_NAME, CLIENT_VERSION, OPERATION_NAME, OPERATION_KIND];
            let known = known.map(|name| format!("`{name}`")).join(", ");
            let help = format!("there are {known}, and `{CLAIMS}` with `path`");
            errors.invalid(context.span, message, &help);
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
        let Some((when, rest)) = conditional(node) else {
            return HeaderRule::step(node, errors);
        };
        let rule = HeaderRule::step(&rest, errors);
        let when = Condition::decode_at(when, Place::SubgraphRule, errors)?;
        Some(HeaderRule::When(when, Box::new(rule?)))
    }
}

impl HeaderRule {
    /// What it does where it holds.
    pub fn effect(&self) -> &HeaderRule {
        match self {
            HeaderRule::When(_, rule) => rule.effect(),
            rule => rule,
        }
    }

    /// What of a request it looks at, beside headers that it copies.
    pub fn selectors(&self) -> Vec<&Selector> {
        match self {
            HeaderRule::When(when, rule) => {
                let mut all = when.selectors();
                all.extend(rule.selectors());
                all
            }
            HeaderRule::InsertFrom { from, .. } => vec![from],
            HeaderRule::InsertTemplate { template, .. } => template::selectors(template),
            _ => Vec::new(),
        }
    }

    fn step(node: &Node, errors: &mut Errors) -> Option<Self> {
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
