//! Calls of methods: which function runs one, and arguments.
//!
//! A method of a missing value was not called; a method with a missing argument gives a missing value. What went wrong
//! was reported where the argument was evaluated.

use ogive_base::Span;

use super::{
    eval::{Result, Run, Scope},
    heap::{Slice, Value},
};
use crate::{
    kinds::Kinds,
    method::Method,
    program::{NodeId, Rows},
};

/// A call that is running.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) method: Method,
    /// Arguments: rows of [`Program::operands`](crate::Program).
    pub(super) arguments: Rows,
    /// What the method is called on.
    pub(super) value: Value,
    /// The scope of the path; arguments see `value` as `@`.
    pub(super) scope: Scope,
    pub(super) span: Span,
}

impl Run<'_> {
    pub(super) fn call(
        &mut self,
        method: Method,
        arguments: Rows,
        value: Value,
        scope: Scope,
        span: Span,
    ) -> Result<Value> {
        let call = Call {
            method,
            arguments,
            value,
            scope,
            span,
        };
        if !self.takes(call) {
            return Ok(Value::Missing);
        }
        match method {
            Method::Echo => self.argument(call, 0, value),
            Method::As => Ok(value),
            Method::Map => self.call_map(call),
            Method::Filter => self.call_filter(call),
            Method::Find => self.call_find(call),
            Method::First => self.call_end(call, true),
            Method::Last => self.call_end(call, false),
            Method::Get => self.call_get(call),
            Method::Slice => self.call_slice(call),
            Method::Size => self.call_size(call),
            Method::JoinNotNull => self.call_join(call),
            Method::Contains => self.call_contains(call),
            Method::In => self.call_in(call),
            Method::Eq => self.call_equal(call, true),
            Method::Ne => self.call_equal(call, false),
            Method::Gt | Method::Gte | Method::Lt | Method::Lte => self.call_order(call),
            Method::And | Method::Or | Method::Not => self.call_logic(call),
            Method::Match => self.call_match(call),
            Method::Add | Method::Sub | Method::Mul | Method::Div | Method::Mod => {
                self.call_arithmetic(call)
            }
            Method::ParseInt => self.call_parse_int(call),
            Method::ToString => self.call_to_string(call),
            Method::JsonStringify => self.call_stringify(call),
            Method::JsonParse => self.call_parse(call),
            Method::Entries => self.call_entries(call),
            Method::KeysToCamelCase => self.call_camel_case(call, false),
            Method::KeysToCamelCaseDeep => self.call_camel_case(call, true),
            Method::Split => self.call_split(call),
            Method::Trim | Method::TrimStart | Method::TrimEnd => self.call_trim(call),
        }
    }

    /// Reports a value of a kind that the method does not take.
    fn takes(&mut self, call: Call) -> bool {
        let found = self.heap.kind(call.value);
        let info = call.method.info();
        let takes = found.meets(info.takes);
        if !takes {
            self.problem(call.span, Some(call.value), Some(info.takes), || {
                format!("`->{}` expects {}, found {found}", info.name, info.takes)
            });
        }
        takes
    }

    /// Nodes of all arguments.
    pub(super) fn arguments(&self, call: Call) -> &[NodeId] {
        &self.program.operands[call.arguments.range()]
    }
    /// Evaluates an argument with `at` as `@`; missing if it was not written.
    pub(super) fn argument(&mut self, call: Call, index: usize, at: Value) -> Result<Value> {
        match self.arguments(call).get(index) {
            Some(node) => self.eval(*node, Scope { at, ..call.scope }),
            None => Ok(Value::Missing),
        }
    }
    /// Evaluates an argument that has to be of a kind; missing, with a problem, if it is of another.
    pub(super) fn argument_of(
        &mut self,
        call: Call,
        index: usize,
        at: Value,
        expected: Kinds,
    ) -> Result<Value> {
        let value = self.argument(call, index, at)?;
        let found = self.heap.kind(value);
        if value.is_missing() || found.meets(expected) {
            return Ok(value);
        }
        self.problem(call.span, Some(value), Some(expected), || {
            let name = call.method.name();
            format!("`->{name}` expects {expected} as its argument, found {found}")
        });
        Ok(Value::Missing)
    }
    /// A string argument, whose bytes cost fuel.
    pub(super) fn text_argument(&mut self, call: Call, index: usize) -> Result<Option<Slice>> {
        match self.argument_of(call, index, call.value, Kinds::STRING)? {
            Value::String(slice) => {
                self.spend_bytes(slice.len())?;
                Ok(Some(slice))
            }
            _ => Ok(None),
        }
    }
    /// A boolean argument with `at` as `@`.
    pub(super) fn truth_argument(
        &mut self,
        call: Call,
        index: usize,
        at: Value,
    ) -> Result<Option<bool>> {
        match self.argument_of(call, index, at, Kinds::BOOL)? {
            Value::Bool(truth) => Ok(Some(truth)),
            _ => Ok(None),
        }
    }

    /// Reports that a call gives nothing, and why.
    pub(super) fn fail(&mut self, call: Call, message: &str) -> Result<Value> {
        self.problem(call.span, Some(call.value), None, || {
            format!("`->{}`: {message}", call.method.name())
        });
        Ok(Value::Missing)
    }
}
