//! Comparisons, logic, and `->match`.

use std::cmp::Ordering;

use super::{
    Failure,
    calls::Call,
    eval::{Result, Run},
    heap::{Value, key_bytes},
};
use crate::{kinds::Kinds, method::Method};

impl Run<'_> {
    /// `->eq(value)`, `->ne(value)`
    pub(super) fn call_equal(&mut self, call: Call, wanted: bool) -> Result<Value> {
        let other = self.argument(call, 0, call.value)?;
        if other.is_missing() {
            return Ok(Value::Missing);
        }
        let equal = self.equal(call.value, other)?;
        Ok(Value::Bool(equal == wanted))
    }

    /// `->gt(value)` and the others: of two numbers, or of two strings.
    pub(super) fn call_order(&mut self, call: Call) -> Result<Value> {
        let expected = self.heap.kind(call.value);
        let other = self.argument_of(call, 0, call.value, expected)?;
        let order = match (call.value, other) {
            (Value::Number(one), Value::Number(other)) => self.compare_numbers(one, other)?,
            (Value::String(one), Value::String(other)) => {
                self.spend_bytes(one.len() + other.len())?;
                self.heap.string(one).cmp(&self.heap.string(other))
            }
            _ => return Ok(Value::Missing),
        };
        let truth = match call.method {
            Method::Gt => order == Ordering::Greater,
            Method::Gte => order != Ordering::Less,
            Method::Lt => order == Ordering::Less,
            _ => order != Ordering::Greater,
        };
        Ok(Value::Bool(truth))
    }

    /// `->and(value, …)`, `->or(value, …)`, `->not`. All arguments are evaluated.
    pub(super) fn call_logic(&mut self, call: Call) -> Result<Value> {
        let Value::Bool(mut truth) = call.value else {
            return Ok(Value::Missing);
        };
        if call.method == Method::Not {
            return Ok(Value::Bool(!truth));
        }
        for index in 0..call.arguments.len as usize {
            let Some(argument) = self.truth_argument(call, index, call.value)? else {
                return Ok(Value::Missing);
            };
            truth = match call.method {
                Method::And => truth && argument,
                _ => truth || argument,
            };
        }
        Ok(Value::Bool(truth))
    }

    /// `->match([candidate, result], …)`: the result of the first candidate that is equal.
    pub(super) fn call_match(&mut self, call: Call) -> Result<Value> {
        // Arguments are candidates and results in turn.
        for pair in 0..call.arguments.len as usize / 2 {
            let candidate = self.argument(call, pair * 2, call.value)?;
            if self.equal(candidate, call.value)? {
                return self.argument(call, pair * 2 + 1, call.value);
            }
        }
        self.fail(call, "the value is none of the candidates")
    }

    /// Whether two values are equal: numbers by value, objects whatever the order of their members.
    pub(super) fn equal(&mut self, one: Value, other: Value) -> Result<bool> {
        self.spend(1)?;
        let kinds = (self.heap.kind(one), self.heap.kind(other));
        if kinds.0 != kinds.1 || one.is_missing() != other.is_missing() {
            return Ok(false);
        }
        match (one, other) {
            (Value::Number(one), Value::Number(other)) => {
                Ok(self.compare_numbers(one, other)? == Ordering::Equal)
            }
            (Value::String(one), Value::String(other)) => {
                self.spend_bytes(one.len().min(other.len()))?;
                Ok(self.same_text(one, other))
            }
            _ if one == other => Ok(true),
            _ if kinds.0 == Kinds::LIST => self.deeper(|run| run.equal_lists(one, other)),
            _ if kinds.0 == Kinds::OBJECT => self.deeper(|run| run.equal_objects(one, other)),
            _ => Ok(false),
        }
    }
    fn equal_lists(&mut self, one: Value, other: Value) -> Result<bool> {
        let (Some(one), Some(other)) = (self.as_list(one)?, self.as_list(other)?) else {
            return Ok(false);
        };
        if one.len != other.len {
            return Ok(false);
        }
        for (one, other) in one.range().zip(other.range()) {
            let (one, other) = (self.heap.cells[one], self.heap.cells[other]);
            if !self.equal(one, other)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
    fn equal_objects(&mut self, one: Value, other: Value) -> Result<bool> {
        let (Some(one), Some(other)) = (self.as_members(one)?, self.as_members(other)?) else {
            return Ok(false);
        };
        if one.len != other.len {
            return Ok(false);
        }
        // Keys are distinct in both, so they are in one order once they are sorted.
        let mut sorted = [Vec::new(), Vec::new()];
        for (keys, members) in sorted.iter_mut().zip([one, other]) {
            self.spend(u64::from(members.len) + 1)?;
            self.spend_bytes(key_bytes(&self.heap.members[members.range()]))?;
            let members = &self.heap.members[members.range()];
            let named = members.iter().map(|member| {
                let name = self.heap.string(member.key).into_owned();
                (name, member.value)
            });
            keys.extend(named);
            keys.sort_by(|one, other| one.0.cmp(&other.0));
        }
        let [one, other] = sorted;
        for (one, other) in one.iter().zip(&other) {
            if one.0 != other.0 || !self.equal(one.1, other.1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks bytes that a method is about to add.
    pub(super) fn check_computed(&self, bytes: usize) -> Result<()> {
        if self.heap.scratch.len() + bytes > self.limits.computed_bytes_max {
            return Err(Failure::ComputedBytes);
        }
        Ok(())
    }
}
