//! Methods of lists.

use super::{
    calls::Call,
    eval::{Result, Run},
    heap::Value,
};
use crate::{kinds::Kinds, program::Rows};

impl Run<'_> {
    /// `->map(expression)`: a value that is no list is a list of one item.
    pub(super) fn call_map(&mut self, call: Call) -> Result<Value> {
        match self.as_list(call.value)? {
            Some(items) => self.map_cells(items, |run, item| run.argument(call, 0, item)),
            None => {
                let value = self.argument(call, 0, call.value)?;
                let base = self.stack.len();
                self.push_item(value);
                self.list(base)
            }
        }
    }

    /// `->filter(condition)`
    pub(super) fn call_filter(&mut self, call: Call) -> Result<Value> {
        let items = self.items_of(call)?;
        let base = self.stack.len();
        for index in items.range() {
            let item = self.heap.cells[index];
            match self.truth_argument(call, 0, item)? {
                Some(true) => self.push_item(item),
                Some(false) => {}
                None => {
                    self.stack.truncate(base);
                    return Ok(Value::Missing);
                }
            }
        }
        self.list(base)
    }

    /// `->find(condition)`: missing if no item meets it, without a problem.
    pub(super) fn call_find(&mut self, call: Call) -> Result<Value> {
        let items = self.items_of(call)?;
        for index in items.range() {
            let item = self.heap.cells[index];
            match self.truth_argument(call, 0, item)? {
                Some(true) => return Ok(item),
                Some(false) => {}
                None => return Ok(Value::Missing),
            }
        }
        Ok(Value::Missing)
    }

    /// `->first`, `->last`: missing for an empty list, without a problem.
    pub(super) fn call_end(&mut self, call: Call, first: bool) -> Result<Value> {
        let items = self.items_of(call)?;
        let mut indexes = items.range();
        let index = if first {
            indexes.next()
        } else {
            indexes.last()
        };
        Ok(index.map_or(Value::Missing, |index| self.heap.cells[index]))
    }

    /// `->get(index)`, `->get("key")`
    pub(super) fn call_get(&mut self, call: Call) -> Result<Value> {
        if self.heap.kind(call.value) == Kinds::OBJECT {
            return self.get_member(call);
        }
        let Some(index) = self.index_argument(call, 0)? else {
            return Ok(Value::Missing);
        };
        let found = match self.as_list(call.value)? {
            Some(items) => items.range().nth(index).map(|index| self.heap.cells[index]),
            None => self.character(call.value, index)?,
        };
        match found {
            Some(value) => Ok(value),
            None => self.fail(call, "the index is beyond the end"),
        }
    }
    fn get_member(&mut self, call: Call) -> Result<Value> {
        let Some(key) = self.text_argument(call, 0)? else {
            return Ok(Value::Missing);
        };
        let Some(members) = self.as_members(call.value)? else {
            return Ok(Value::Missing);
        };
        match self.member(members, key)? {
            Value::Missing => self.fail(call, "the object has no such key"),
            value => Ok(value),
        }
    }

    /// `->slice(start, end)`: both are cut to what there is.
    pub(super) fn call_slice(&mut self, call: Call) -> Result<Value> {
        let Some(start) = self.index_argument(call, 0)? else {
            return Ok(Value::Missing);
        };
        let Some(end) = self.index_or(call, 1, usize::MAX)? else {
            return Ok(Value::Missing);
        };
        match self.as_list(call.value)? {
            Some(items) => {
                let len = items.len as usize;
                let start = start.min(len);
                let end = end.clamp(start, len);
                Ok(Value::List(Rows {
                    start: items.start + start as u32,
                    len: (end - start) as u32,
                }))
            }
            None => self.slice_text(call.value, start, end),
        }
    }

    /// `->size`
    pub(super) fn call_size(&mut self, call: Call) -> Result<Value> {
        let size = match self.as_list(call.value)? {
            Some(items) => items.len as usize,
            None => match self.as_members(call.value)? {
                Some(members) => members.len as usize,
                None => self.characters(call.value)?,
            },
        };
        self.make_number(&size.to_string())
    }

    /// `->joinNotNull(separator)`
    pub(super) fn call_join(&mut self, call: Call) -> Result<Value> {
        let Some(separator) = self.text_argument(call, 0)? else {
            return Ok(Value::Missing);
        };
        let separator = self.heap.string(separator).into_owned();
        let items = self.items_of(call)?;
        let mut out = String::new();
        let mut first = true;
        for index in items.range() {
            let item = self.heap.cells[index];
            if item.is_nullish() {
                continue;
            }
            let Some(text) = self.scalar_text(item) else {
                return self.fail(call, "the list holds a list or an object");
            };
            if !first {
                out.push_str(&separator);
            }
            first = false;
            out.push_str(&text);
            self.spend_bytes(text.len() + separator.len())?;
            self.check_computed(out.len())?;
        }
        self.make_string(&out)
    }

    /// `->contains(value)`
    pub(super) fn call_contains(&mut self, call: Call) -> Result<Value> {
        let wanted = self.argument(call, 0, call.value)?;
        if wanted.is_missing() {
            return Ok(Value::Missing);
        }
        let items = self.items_of(call)?;
        self.holds(items, wanted).map(Value::Bool)
    }

    /// `->in(a, b)`, `->in([a, b])`
    pub(super) fn call_in(&mut self, call: Call) -> Result<Value> {
        let base = self.stack.len();
        for index in 0..call.arguments.len as usize {
            let value = self.argument(call, index, call.value)?;
            if value.is_missing() {
                self.stack.truncate(base);
                return Ok(Value::Missing);
            }
            self.push_item(value);
        }
        let single = self.stack[base..].first().copied();
        let single = single.filter(|_| call.arguments.len == 1);
        let Value::List(values) = self.list(base)? else {
            return Ok(Value::Missing);
        };
        let values = match single {
            Some(list) => self.as_list(list)?.unwrap_or(values),
            None => values,
        };
        self.holds(values, call.value).map(Value::Bool)
    }

    fn holds(&mut self, items: Rows, wanted: Value) -> Result<bool> {
        for index in items.range() {
            let item = self.heap.cells[index];
            if self.equal(item, wanted)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The items of the value that a method is called on, which was checked to be a list.
    fn items_of(&mut self, call: Call) -> Result<Rows> {
        let items = self.as_list(call.value)?;
        Ok(items.unwrap_or(Rows::NONE))
    }

    /// An argument that is an index, or `default` if the call does not have it.
    pub(super) fn index_or(
        &mut self,
        call: Call,
        argument: usize,
        default: usize,
    ) -> Result<Option<usize>> {
        if argument >= self.arguments(call).len() {
            return Ok(Some(default));
        }
        self.index_argument(call, argument)
    }
    /// An argument that is an index: a whole number from 0 on.
    pub(super) fn index_argument(&mut self, call: Call, argument: usize) -> Result<Option<usize>> {
        let value = self.argument_of(call, argument, call.value, Kinds::NUMBER)?;
        let Value::Number(slice) = value else {
            return Ok(None);
        };
        let index = self.number(slice)?.index();
        if index.is_none() {
            self.fail(call, "an index is a whole number from 0 on")?;
        }
        Ok(index)
    }
}
