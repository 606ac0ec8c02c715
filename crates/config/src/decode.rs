//! Reading the tree into types: collects mistakes, names the place, suggests the key that was meant.
//!
//! Recursion follows the types, which are finite, never the depth of the text.

use std::{collections::BTreeMap, fmt, num::NonZeroUsize, str::FromStr};

use ogive_base::{Diagnostic, SourceId, Span};
use ogive_yaml::{Key, Node, Value};

use crate::{
    ByteSize, Duration, codes, suggest,
    units::{parse_byte_size, parse_duration},
};

/// Most diagnostics of one configuration.
const ERRORS_MAX: usize = 50;

/// What a section offers, for reference pages and the JSON schema.
pub trait Section {
    /// Its options in order of documentation.
    const OPTIONS: &'static [OptionDoc];
}

/// One option of a section.
#[derive(Clone, Copy, Debug)]
pub struct OptionDoc {
    /// The key.
    pub name: &'static str,
    /// Documentation, line by line.
    pub doc: &'static [&'static str],
}

/// Collected mistakes of one text.
pub struct Errors {
    source_id: SourceId,
    found: Vec<Diagnostic>,
}

impl Errors {
    /// No mistakes of the text `source_id` so far.
    pub fn new(source_id: SourceId) -> Self {
        Errors {
            source_id,
            found: Vec::new(),
        }
    }
    /// Reports a mistake at `span`, with `help` that says what to write.
    pub fn push(&mut self, code: &'static str, span: Span, message: String, help: Option<String>) {
        // What could not be expanded is no value at all; one mistake is enough.
        let unexpanded = |d: &Diagnostic| {
            d.code == codes::EXPANSION && d.labels.iter().any(|label| label.span == span)
        };
        if self.found.len() < ERRORS_MAX && !self.found.iter().any(unexpanded) {
            let mut error = Diagnostic::error(code, message).label(self.source_id, span, "");
            error.help = help;
            self.found.push(error);
        }
    }
    pub(crate) fn push_with(
        &mut self,
        code: &'static str,
        span: Span,
        message: String,
        other: (Span, String),
    ) {
        if self.found.len() < ERRORS_MAX {
            let error = Diagnostic::error(code, message)
                .label(self.source_id, span, "")
                .label(self.source_id, other.0, other.1);
            self.found.push(error);
        }
    }
    pub(crate) fn invalid(&mut self, span: Span, message: impl Into<String>, help: &str) {
        let help = (!help.is_empty()).then(|| help.to_owned());
        self.push(codes::INVALID_VALUE, span, message.into(), help);
    }
    /// The entries of a mapping; nothing counts as an empty one. `None` if the node is no mapping, which is reported.
    pub fn entries<'n>(&mut self, node: &'n Node) -> Option<&'n [(Key, Node)]> {
        match &node.value {
            Value::Map(entries) => Some(entries),
            _ if node.is_null() => Some(&[]),
            _ => {
                self.invalid(
                    node.span,
                    format!("expected a mapping, found {}", node.kind()),
                    "write `key: value` lines, indented below this key",
                );
                None
            }
        }
    }
    pub(crate) fn unknown_key<'k>(
        &mut self,
        key: &Key,
        known: impl Iterator<Item = &'k str> + Clone,
    ) {
        let help = match suggest::nearest(&key.text, known.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let known: Vec<&str> = known.collect();
                format!("known keys here: {}", known.join(", "))
            }
        };
        self.push(
            codes::UNKNOWN_KEY,
            key.span,
            format!("unknown key `{}`", key.text),
            Some(help),
        );
    }
    /// A scalar's text.
    pub(crate) fn scalar<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        match &node.value {
            Value::Scalar { text, .. } if !node.is_null() => Some(text),
            _ => {
                self.invalid(
                    node.span,
                    format!("expected {what}, found {}", node.kind()),
                    "",
                );
                None
            }
        }
    }
    /// Whether no mistake was found so far.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
    /// The value if nothing was reported, or the mistakes in the order of the text.
    pub fn finish<T>(mut self, value: T) -> Result<T, Vec<Diagnostic>> {
        if self.found.is_empty() {
            return Ok(value);
        }
        self.found
            .sort_by_key(|d| d.labels.first().map(|l| l.span.start));
        Err(self.found)
    }
}

/// A type that can be read from a node. On failure the mistake has been reported.
pub trait Decode: Sized {
    /// Whether the type is a section: a mapping whose presence can switch a feature on.
    const IS_SECTION: bool = false;
    /// Reads the node. `None` if it cannot be read, which is reported.
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self>;
}

impl Decode for bool {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        match errors.scalar(node, "`true` or `false`")? {
            "true" => Some(true),
            "false" => Some(false),
            other => {
                errors.invalid(
                    node.span,
                    format!("expected `true` or `false`, found `{other}`"),
                    "",
                );
                None
            }
        }
    }
}

impl Decode for u32 {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        whole_number(node, errors, format_args!("up to {}", u32::MAX))
    }
}

impl Decode for NonZeroUsize {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        whole_number(node, errors, format_args!("of at least 1"))
    }
}

fn whole_number<T: FromStr>(
    node: &Node,
    errors: &mut Errors,
    range: fmt::Arguments<'_>,
) -> Option<T> {
    let text = errors.scalar(node, "a whole number")?;
    let value = text.replace('_', "").parse().ok();
    if value.is_none() {
        let message = format!("expected a whole number {range}, found `{text}`");
        errors.invalid(node.span, message, "");
    }
    value
}

impl Decode for String {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        errors.scalar(node, "text").map(str::to_owned)
    }
}

impl Decode for Duration {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "a duration")?;
        parse_duration(text)
            .map_err(|help| errors.invalid(node.span, format!("`{text}` is no duration"), help))
            .ok()
    }
}

impl Decode for ByteSize {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "a number of bytes")?;
        parse_byte_size(text)
            .map_err(|help| {
                errors.invalid(node.span, format!("`{text}` is no number of bytes"), help);
            })
            .ok()
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        if T::IS_SECTION && node.is_blank() {
            let help = "write `{}` to use the section with its defaults, or `null` to leave it out";
            errors.invalid(node.span, "this section has no value", help);
            return None;
        }
        if node.is_null() {
            return Some(None);
        }
        T::decode(node, errors).map(Some)
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        match &node.value {
            Value::List(items) => Some(items.iter().filter_map(|n| T::decode(n, errors)).collect()),
            _ if node.is_null() => Some(Vec::new()),
            _ => {
                errors.invalid(
                    node.span,
                    format!("expected a list, found {}", node.kind()),
                    "write one `- item` per line, indented below this key",
                );
                None
            }
        }
    }
}

impl<T: Decode> Decode for BTreeMap<String, T> {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let mut out = BTreeMap::new();
        for (key, value) in errors.entries(node)? {
            if let Some(value) = T::decode(value, errors) {
                out.insert(key.text.clone(), value);
            }
        }
        Some(out)
    }
}

/// Declares a section: a struct whose fields are options with documentation and default.
macro_rules! section {
    ($(
        $(#[doc = $doc:literal])*
        pub struct $name:ident {
            $( $(#[doc = $field_doc:literal])* pub $field:ident : $ty:ty = $default:expr, )*
        }
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, PartialEq, Debug)]
        pub struct $name {
            $( $(#[doc = $field_doc])* pub $field: $ty, )*
        }
        impl Default for $name {
            fn default() -> Self {
                $name { $( $field: $default, )* }
            }
        }
        impl $crate::decode::Section for $name {
            const OPTIONS: &'static [$crate::decode::OptionDoc] = &[$(
                $crate::decode::OptionDoc {
                    name: stringify!($field),
                    doc: &[$($field_doc),*],
                },
            )*];
        }
        impl $crate::reference::Describe for $name {
            fn describe(
                &self,
                path: &str,
                _: &[&str],
                rows: &mut Vec<$crate::reference::OptionRow>,
            ) {
                let mut docs = <Self as $crate::decode::Section>::OPTIONS.iter();
                $(
                    let doc = docs.next().map_or(&[][..], |option| option.doc);
                    let at = $crate::reference::join(path, stringify!($field));
                    $crate::reference::Describe::describe(&self.$field, &at, doc, rows);
                )*
            }
        }
        impl $crate::decode::Decode for $name {
            const IS_SECTION: bool = true;
            fn decode(
                node: &ogive_yaml::Node,
                errors: &mut $crate::decode::Errors,
            ) -> Option<Self> {
                let mut out = $name::default();
                for (key, value) in errors.entries(node)? {
                    match key.text.as_str() {
                        $( stringify!($field) => {
                            if let Some(value) = <$ty as $crate::decode::Decode>::decode(value, errors) {
                                out.$field = value;
                            }
                        } )*
                        _ => errors.unknown_key(
                            key,
                            <Self as $crate::decode::Section>::OPTIONS.iter().map(|o| o.name),
                        ),
                    }
                }
                Some(out)
            }
        }
    )*};
}
pub(crate) use section;

/// The values of these keys, none of them required, no other key allowed.
pub(crate) fn fields<'n, const N: usize>(
    node: &'n Node,
    names: [&'static str; N],
    errors: &mut Errors,
) -> Option<[Option<&'n Node>; N]> {
    let mut out = [None; N];
    let mut known = true;
    for (key, value) in errors.entries(node)? {
        match names.iter().position(|name| *name == key.text) {
            Some(at) => out[at] = Some(value),
            None => {
                errors.unknown_key(key, names.into_iter());
                known = false;
            }
        }
    }
    known.then_some(out)
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

pub(crate) fn header_name(node: &Node, errors: &mut Errors) -> Option<String> {
    let text = errors.scalar(node, "a header name")?;
    // RFC 9110, section 5.6.2: token.
    let ok = !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
    if !ok {
        errors.invalid(node.span, format!("`{text}` is no header name"), "");
        return None;
    }
    Some(text.to_ascii_lowercase())
}
