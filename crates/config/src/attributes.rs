//! Attributes that an operator adds to log lines, spans and metrics: a name, and a [selector](crate::selectors) that says
//! the value. The keys are those of Apollo Router (`telemetry.instrumentation`).
//!
//! ```yaml
//! telemetry:
//!   access_log: { attributes: { user: { jwt_claim: sub, default: nobody } } }
//! ```
//!
//! What would show a credential is refused.

use std::collections::BTreeMap;

use ogive_selectors::Selector;
use ogive_yaml::{Node, Value};

use crate::{
    decode::{Decode, Errors},
    reference::{Describe, OptionRow, join},
    selectors::{DecodeIn, Place},
};

/// Most attributes of one place.
const ATTRIBUTES_MAX: usize = 32;
/// Longest name, in bytes.
const NAME_MAX: usize = 128;

/// The places that attributes may be at.
pub const ATTRIBUTE_PLACES: [Place; 3] = [
    Place::RequestAttribute,
    Place::OperationAttribute,
    Place::SubgraphAttribute,
];

/// The metrics of each of these places that take attributes, with the labels that they have anyway.
pub const INSTRUMENTS: [(&str, &[&str]); 3] = [
    (
        "http.server.request.duration",
        &["http.request.method", "http.response.status_code"],
    ),
    (
        "graphql.operation.duration",
        &[
            "graphql.operation.name",
            "graphql.operation.type",
            "graphql.response.has_errors",
        ],
    ),
    (
        "http.client.request.duration",
        &["subgraph.name", "http.response.status_code", "error.type"],
    ),
];

/// Where the value of an attribute comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttributeSource {
    /// What the request says there.
    Selector(Selector),
    /// Always the same: `{ static: TEXT }`.
    Static(String),
}

/// One attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attribute {
    /// Where its value comes from.
    pub from: AttributeSource,
    /// Its value if nothing is there; without it the attribute is left out then.
    pub default: Option<String>,
}

impl Attribute {
    /// Reads one of a place.
    pub fn decode_at(node: &Node, place: Place, errors: &mut Errors) -> Option<Self> {
        let mut rest = node.clone();
        let mut default = None;
        if let Value::Map(entries) = &mut rest.value
            && let Some(at) = entries.iter().position(|(key, _)| key.text == "default")
        {
            let (_, value) = entries.remove(at);
            default = Some(errors.scalar(&value, "a text")?.to_owned());
        }
        let from = match &rest.value {
            Value::Map(entries) => match entries.as_slice() {
                [(key, value)] if key.text == "static" => {
                    AttributeSource::Static(errors.scalar(value, "a text")?.to_owned())
                }
                _ => AttributeSource::Selector(Selector::decode_at(&rest, place, errors)?),
            },
            _ => {
                let help = "such as `{ jwt_claim: sub, default: nobody }`";
                errors.invalid(
                    node.span,
                    "an attribute says where its value comes from",
                    help,
                );
                return None;
            }
        };
        Some(Attribute { from, default })
    }
}

/// Whether an attribute can be called so.
pub fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(is_part)
}

/// Attributes by name, of the place of this number in [`ATTRIBUTE_PLACES`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attributes<const AT: usize>(pub BTreeMap<String, Attribute>);

impl<const AT: usize> Decode for Attributes<AT> {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let mut out = BTreeMap::new();
        let entries = errors.entries(node)?;
        if entries.len() > ATTRIBUTES_MAX {
            let message = format!("there are more than {ATTRIBUTES_MAX} attributes");
            errors.invalid(node.span, message, "");
        }
        for (key, value) in entries {
            let name = &key.text;
            if !is_name(name) {
                let message = format!("`{name}` is no name of an attribute");
                let help = "letters, digits, `.`, `_`, `-` and `:`, at most 128 of them";
                errors.invalid(key.span, message, help);
                continue;
            }
            if let Some(attribute) = Attribute::decode_at(value, ATTRIBUTE_PLACES[AT], errors) {
                out.insert(name.clone(), attribute);
            }
        }
        Some(Attributes(out))
    }
}

impl<const AT: usize> Describe for Attributes<AT> {
    fn describe(&self, path: &str, doc: &[&str], rows: &mut Vec<OptionRow>) {
        describe(&join(path, "<name>"), doc, rows);
    }
}

fn describe(path: &str, doc: &[&str], rows: &mut Vec<OptionRow>) {
    let doc: Vec<&str> = doc.iter().map(|line| line.trim()).collect();
    rows.push(OptionRow {
        path: path.to_owned(),
        kind: "selector".to_owned(),
        default: String::new(),
        doc: doc.join(" "),
    });
}

/// Members of the `extensions` of requests to a subgraph, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestExtensions(pub BTreeMap<String, Attribute>);

/// Members that have a meaning of their own.
const RESERVED: [&str; 3] = ["persistedQuery", "hmac-signature", "subscription"];

impl Decode for RequestExtensions {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let mut out = BTreeMap::new();
        let entries = errors.entries(node)?;
        if entries.len() > ATTRIBUTES_MAX {
            let message = format!("there are more than {ATTRIBUTES_MAX} extensions");
            errors.invalid(node.span, message, "");
        }
        for (key, value) in entries {
            if RESERVED.contains(&key.text.as_str()) {
                let message = format!("`{}` is the gateway's own to write", key.text);
                errors.invalid(key.span, message, "name another member");
            } else if let Some(member) = Attribute::decode_at(value, Place::Extension, errors) {
                out.insert(key.text.clone(), member);
            }
        }
        Some(RequestExtensions(out))
    }
}

impl Describe for RequestExtensions {
    fn describe(&self, path: &str, doc: &[&str], rows: &mut Vec<OptionRow>) {
        describe(&join(path, "<name>"), doc, rows);
    }
}

/// Attributes of the metrics of a place: `METRIC: { attributes: { NAME: SELECTOR } }`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Instruments<const AT: usize>(pub Attributes<AT>);

/// Whether the metric of a place can have a label of that name beside its own.
pub fn is_label(name: &str, place: usize) -> bool {
    let found = label(name);
    let own = INSTRUMENTS[place].1.iter().map(|name| label(name));
    let mut taken = own.chain(RESERVED_LABELS.map(str::to_owned));
    let is_bad = found.starts_with("__") || found.starts_with(|c: char| c.is_ascii_digit());
    !is_bad && !taken.any(|taken| taken == found)
}

/// Labels that mean something of their own.
const RESERVED_LABELS: [&str; 2] = ["le", "otel_metric_overflow"];

/// A name as a label of Prometheus has it.
fn label(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

impl<const AT: usize> Decode for Instruments<AT> {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let mut out = Instruments::default();
        let (instrument, _) = INSTRUMENTS[AT];
        for (key, value) in errors.entries(node)? {
            if key.text != instrument {
                errors.unknown_key(key, [instrument].into_iter());
                continue;
            }
            let [attributes] = crate::decode::fields(value, ["attributes"], errors)?;
            let Some(attributes) = attributes else {
                continue;
            };
            out.0 = Attributes::decode(attributes, errors)?;
            let mut known: Vec<String> = Vec::new();
            for name in out.0.0.keys() {
                let label = label(name);
                if known.contains(&label) || !is_label(name, AT) {
                    let message = format!("`{name}` cannot be a label of `{instrument}`");
                    let help = "Prometheus cannot tell two labels of one name apart, and takes none that begins with a digit \
                                or with `__`";
                    errors.invalid(attributes.span, message, help);
                }
                known.push(label);
            }
        }
        Some(out)
    }
}

impl<const AT: usize> Describe for Instruments<AT> {
    fn describe(&self, path: &str, doc: &[&str], rows: &mut Vec<OptionRow>) {
        describe(&join(path, "<name>.attributes.<name>"), doc, rows);
    }
}
