//! Values and type references (specification 2.9 and 2.11).

use super::{Failed, Parser, Step};
use crate::{Span, ast::*, lexer::TokenKind};

/// The explicit stack of nested list and object literals.
#[derive(Default)]
pub(super) struct Scratch {
    items: Vec<Value>,
    fields: Vec<ObjectField>,
    open: Vec<OpenValue>,
}

/// A list or object whose closing bracket was not read yet.
#[derive(Clone, Copy)]
struct OpenValue {
    /// Where its bracket is.
    start: u32,
    /// Its first child on the scratch stack of its kind.
    first: usize,
    /// For an object: the name of the field whose value is being read.
    key: Option<Name>,
    object: bool,
}

impl Parser<'_> {
    /// `= value` if there is one; always constant.
    #[inline]
    pub(super) fn default_value(&mut self) -> Step<Option<Value>> {
        if self.eat(TokenKind::Equals) {
            Ok(Some(self.value(true)?))
        } else {
            Ok(None)
        }
    }

    /// One value; `constant` forbids variables.
    #[inline]
    pub(super) fn value(&mut self, constant: bool) -> Step<Value> {
        if matches!(self.token.kind, TokenKind::BracketL | TokenKind::BraceL) {
            self.nested_value(constant)
        } else {
            self.leaf_value(constant)
        }
    }

    /// A value that is neither list nor object.
    fn leaf_value(&mut self, constant: bool) -> Step<Value> {
        let kind = match self.token.kind {
            TokenKind::Int => ValueKind::Int,
            TokenKind::Float => ValueKind::Float,
            TokenKind::String => ValueKind::String { block: false },
            TokenKind::BlockString => ValueKind::String { block: true },
            TokenKind::Name => match self.keyword_text(self.token) {
                b"true" => ValueKind::Boolean(true),
                b"false" => ValueKind::Boolean(false),
                b"null" => ValueKind::Null,
                _ => ValueKind::Enum,
            },
            TokenKind::Dollar => {
                let start = self.token;
                self.bump();
                if constant {
                    return Err(self.variable_in_constant(start));
                }
                let name = self.name()?;
                return Ok(Value {
                    span: self.span_from(start.start),
                    kind: ValueKind::Variable(name),
                });
            }
            _ => return Err(self.unexpected()),
        };
        Ok(Value {
            span: self.bump(),
            kind,
        })
    }

    fn nested_value(&mut self, constant: bool) -> Step<Value> {
        let depth = self.depth;
        let scratch = &self.values;
        let (items, fields, open) = (
            scratch.items.len(),
            scratch.fields.len(),
            scratch.open.len(),
        );
        let value = self.nested_value_in(constant);
        self.depth = depth;
        if value.is_err() {
            self.values.items.truncate(items);
            self.values.fields.truncate(fields);
            self.values.open.truncate(open);
        }
        value
    }

    fn nested_value_in(&mut self, constant: bool) -> Step<Value> {
        let mut open = self.open_value()?;
        loop {
            // Inside the innermost list or object: its end, or its next child.
            let close = if open.object {
                TokenKind::BraceR
            } else {
                TokenKind::BracketR
            };
            let value;
            if self.eat(close) {
                value = self.close_value(open);
                self.depth -= 1;
                let Some(outer) = self.values.open.pop() else {
                    return Ok(value);
                };
                open = outer;
            } else {
                if open.object {
                    open.key = Some(self.name()?);
                    self.expect(TokenKind::Colon)?;
                }
                if matches!(self.token.kind, TokenKind::BracketL | TokenKind::BraceL) {
                    self.values.open.push(open);
                    open = self.open_value()?;
                    continue;
                }
                value = self.leaf_value(constant)?;
            }
            match open.key {
                Some(name) => {
                    let span = Span::new(name.span().start, value.span.end);
                    self.values.fields.push(ObjectField { span, name, value });
                }
                None => self.values.items.push(value),
            }
        }
    }

    fn open_value(&mut self) -> Step<OpenValue> {
        self.enter()?;
        let object = self.at(TokenKind::BraceL);
        let first = if object {
            self.values.fields.len()
        } else {
            self.values.items.len()
        };
        let start = self.bump().start;
        Ok(OpenValue {
            start,
            first,
            key: None,
            object,
        })
    }

    /// Moves the children of a finished list or object to their arena.
    fn close_value(&mut self, open: OpenValue) -> Value {
        let kind = if open.object {
            let from = self.doc.object_fields.len();
            let children = self.values.fields.get(open.first..).unwrap_or(&[]);
            self.doc.object_fields.extend_from_slice(children);
            self.values.fields.truncate(open.first);
            ValueKind::Object(List::new(from, self.doc.object_fields.len() - from))
        } else {
            let from = self.doc.values.len();
            let children = self.values.items.get(open.first..).unwrap_or(&[]);
            self.doc.values.extend_from_slice(children);
            self.values.items.truncate(open.first);
            ValueKind::List(List::new(from, self.doc.values.len() - from))
        };
        Value {
            span: self.span_from(open.start),
            kind,
        }
    }

    /// A named type under lists and non-null marks.
    pub(super) fn type_ref(&mut self) -> Step<TypeRef> {
        let start = self.token.start;
        let mut lists = 0u32;
        while self.at(TokenKind::BracketL) {
            lists += 1;
            if self.depth + lists > self.depth_max {
                return Err(self.too_deep(self.depth_max));
            }
            if lists > u32::from(Wrapping::LISTS_MAX) {
                return Err(self.too_deep(u32::from(Wrapping::LISTS_MAX)));
            }
            self.bump();
        }
        let name = self.name()?;
        let mut wrapping = Wrapping::NULLABLE;
        if self.eat(TokenKind::Bang) {
            wrapping = Wrapping::NON_NULL;
        }
        for _ in 0..lists {
            self.expect(TokenKind::BracketR)?;
            wrapping = wrapping.list_of().ok_or(Failed)?;
            if self.eat(TokenKind::Bang) {
                wrapping = wrapping.non_null();
            }
        }
        Ok(TypeRef {
            span: self.span_from(start),
            name,
            wrapping,
        })
    }
}
