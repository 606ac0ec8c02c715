//! Answers `__schema` and `__type` from the tables of a schema (specification 4).
//!
//! The caller has an operation in normal form; it flattens what is selected below one meta-field into a slice of
//! [`Selected`] (fragments inlined, `@skip` and `@include` decided, fields with one response key merged, variables
//! replaced by values) and [`execute`] writes the JSON of that meta-field's value:
//!
//! ```
//! # use ogive_schema::{build, BuildOptions, introspection::*};
//! # let parsed = ogive_syntax::parse("type Query { a: Int }", ogive_syntax::SourceId(0), &Default::default());
//! # let schema = build(&[&parsed.document], &BuildOptions::default()).schema;
//! // { __type(name: "Query") { kind fields { key: name } } }
//! let ty = |name| schema.field_by_name(schema.type_by_name("__Type").unwrap(), name).unwrap();
//! let field = |name| schema.field_by_name(schema.type_by_name("__Field").unwrap(), name).unwrap();
//! let selected = [
//!     Selected::new("kind", Meta::Field(ty("kind"))),
//!     Selected::new("fields", Meta::Field(ty("fields"))).children(2..3),
//!     Selected::new("key", Meta::Field(field("name"))),
//! ];
//! let mut out = Vec::new();
//! execute(&schema, &selected, 0..2, Root::Type("Query"), OUTPUT_BYTES_MAX, &mut out).unwrap();
//! assert_eq!(out, br#"{"kind":"OBJECT","fields":[{"key":"a"}]}"#);
//! ```
//!
//! Invariants: only visible rows are shown; nothing recurses, so `ofType` may nest as deep as the operation allows;
//! output is bounded, and so is time, because every step writes something or skips one deprecated row.

mod values;

use std::{fmt, ops::Range};

use ogive_json::write_string;

use crate::types::*;
use values::{Items, Node, Part, Shown, resolve};

/// Most bytes of one answer; default for [`execute`].
pub const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// A field below `__schema` or `__type`, as [`execute`] wants it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selected {
    /// Its key in the answer: alias or name.
    pub response_key: Box<str>,
    /// Which field.
    pub field: Meta,
    /// The value of its argument `includeDeprecated`; false if it has none or none was given.
    pub include_deprecated: bool,
    /// Where its sub-selections lie in the slice given to [`execute`]; empty for leaves.
    pub children: Range<u32>,
}

/// A field of an introspection type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meta {
    /// `__typename`
    Typename,
    /// A field row of `__Schema`, `__Type`, `__Field`, `__InputValue`, `__EnumValue` or `__Directive`.
    Field(FieldId),
}

impl Selected {
    /// A field without sub-selections.
    pub fn new(response_key: impl Into<Box<str>>, field: Meta) -> Self {
        Selected {
            response_key: response_key.into(),
            field,
            include_deprecated: false,
            children: 0..0,
        }
    }
    /// With sub-selections.
    #[must_use]
    pub fn children(mut self, children: Range<u32>) -> Self {
        self.children = children;
        self
    }
    /// With `includeDeprecated`.
    #[must_use]
    pub fn include_deprecated(mut self, include: bool) -> Self {
        self.include_deprecated = include;
        self
    }
}

/// Which meta-field of the query root to answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Root<'a> {
    /// `__schema`
    Schema,
    /// `__type(name:)`
    Type(&'a str),
}

/// The answer would be larger than the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputTooLarge {
    /// The limit in bytes.
    pub output_bytes_max: usize,
}

impl fmt::Display for OutputTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The answer to the introspection query is larger than {} bytes.",
            self.output_bytes_max
        )
    }
}

impl std::error::Error for OutputTooLarge {}

/// An object or list whose opening bracket is written.
enum Open<'s> {
    Object {
        node: Node<'s>,
        children: Range<u32>,
        is_first: bool,
    },
    List {
        items: Items<'s>,
        children: Range<u32>,
        is_first: bool,
    },
}

impl<'s> Open<'s> {
    #[inline]
    fn object(node: Node<'s>, children: Range<u32>, out: &mut Vec<u8>) -> Self {
        out.push(b'{');
        Open::Object {
            node,
            children,
            is_first: true,
        }
    }
    #[inline]
    fn list(items: Items<'s>, children: Range<u32>, out: &mut Vec<u8>) -> Self {
        out.push(b'[');
        Open::List {
            items,
            children,
            is_first: true,
        }
    }
}

/// Appends the value of meta-field `root`: an object, or `null` for an unknown type. `children` are the selections of
/// `root` itself. On error `out` is as it was. O(output).
pub fn execute(
    schema: &Schema,
    selected: &[Selected],
    children: Range<u32>,
    root: Root<'_>,
    output_bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), OutputTooLarge> {
    let start = out.len();
    let node = match root {
        Root::Schema => Node::Schema,
        Root::Type(name) => match schema.type_by_name(name) {
            Some(id) => Node::named(id),
            None => {
                out.extend_from_slice(b"null");
                return Ok(());
            }
        },
    };
    let parts: Vec<Part> = selected.iter().map(|s| Part::of(schema, s.field)).collect();
    let mut stack = vec![Open::object(node, children, out)];
    while let Some(top) = stack.last_mut() {
        if out.len() - start > output_bytes_max {
            out.truncate(start);
            return Err(OutputTooLarge { output_bytes_max });
        }
        match top {
            Open::Object {
                node,
                children,
                is_first,
            } => {
                let Some(index) = children.next() else {
                    out.push(b'}');
                    stack.pop();
                    continue;
                };
                let Some((field, part)) =
                    selected.get(index as usize).zip(parts.get(index as usize))
                else {
                    continue;
                };
                comma(is_first, out);
                write_string(out, &field.response_key);
                out.push(b':');
                match resolve(schema, node, *part, field.include_deprecated) {
                    Shown::Null => out.extend_from_slice(b"null"),
                    Shown::Bool(true) => out.extend_from_slice(b"true"),
                    Shown::Bool(false) => out.extend_from_slice(b"false"),
                    Shown::Text(text) => write_string(out, &text),
                    Shown::Node(node) => {
                        stack.push(Open::object(node, field.children.clone(), out));
                    }
                    Shown::List(items) => {
                        stack.push(Open::list(items, field.children.clone(), out));
                    }
                    Shown::Locations(locations) => write_locations(locations, out),
                }
            }
            Open::List {
                items,
                children,
                is_first,
            } => {
                let Some(node) = items.next(schema) else {
                    out.push(b']');
                    stack.pop();
                    continue;
                };
                comma(is_first, out);
                let children = children.clone();
                stack.push(Open::object(node, children, out));
            }
        }
    }
    Ok(())
}

#[inline]
fn write_locations(locations: &[DirectiveLocation], out: &mut Vec<u8>) {
    out.push(b'[');
    let mut is_first = true;
    for location in locations {
        comma(&mut is_first, out);
        write_string(out, location.as_str());
    }
    out.push(b']');
}

fn comma(is_first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::replace(is_first, false) {
        out.push(b',');
    }
}
