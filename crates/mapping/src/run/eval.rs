//! Evaluating the program: expressions, objects, selections.

use std::borrow::Cow;

use ogive_base::{FastMap, Span};

use super::{
    Failure,
    heap::{Entry, Heap, Value, key_bytes},
    problem::{Found, Problems},
};
use crate::{
    ast::FallbackOperator,
    kinds::Kinds,
    limits::RunLimits,
    need::NeedId,
    program::{
        EntryNode, EntryRole, Node, NodeId, ObjectNode, PathNode, Program, RootNode, Rows, StepRole,
    },
    variable::Variable,
};

pub(super) type Result<T> = std::result::Result<T, Failure>;

/// What `$` and `@` are.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    pub(super) dollar: Value,
    pub(super) at: Value,
}

/// One run of a program.
pub(super) struct Run<'p> {
    pub(super) program: &'p Program,
    pub(super) heap: Heap<'p>,
    pub(super) limits: &'p RunLimits,
    pub(super) steps_left: u64,
    /// Evaluations that are inside one another now.
    pub(super) nesting: u32,
    /// Items of lists that are not complete.
    pub(super) stack: Vec<Value>,
    /// Members of objects that are not complete.
    pub(super) members: Vec<Entry>,
    pub(super) locals: Vec<Value>,
    pub(super) variables: [Value; Variable::COUNT],
    pub(super) problems: Problems,
}

impl Run<'_> {
    pub(super) fn eval(&mut self, node: NodeId, scope: Scope) -> Result<Value> {
        self.deeper(|run| run.eval_node(node, scope))
    }

    fn eval_node(&mut self, node: NodeId, scope: Scope) -> Result<Value> {
        let program = self.program;
        match &program.nodes[node] {
            Node::Null => Ok(Value::Null),
            Node::Bool(value) => Ok(Value::Bool(*value)),
            Node::Number(text) => Ok(Value::Number(self.heap.constant(*text))),
            Node::String(text) => Ok(Value::String(self.heap.constant(*text))),
            Node::List(items) => {
                let base = self.stack.len();
                for item in &program.operands[items.range()] {
                    let value = self.eval(*item, scope)?;
                    self.push_item(value);
                }
                self.list(base)
            }
            Node::Object(object) => self.object(*object, scope),
            Node::Path(path) => self.path(path, scope),
            Node::Fallback(operator, operands) => self.fallback(*operator, *operands, scope),
        }
    }

    fn fallback(
        &mut self,
        operator: FallbackOperator,
        operands: Rows,
        scope: Scope,
    ) -> Result<Value> {
        let program = self.program;
        let mut value = Value::Missing;
        let operands = &program.operands[operands.range()];
        for (index, operand) in operands.iter().enumerate() {
            let mark = self.problems.mark();
            value = self.eval(*operand, scope)?;
            let falls = match operator {
                FallbackOperator::Nullish => value.is_nullish(),
                FallbackOperator::Missing => value.is_missing(),
            };
            if !falls {
                break;
            }
            if index + 1 < operands.len() {
                self.problems.forget(mark);
            }
        }
        Ok(value)
    }

    // Paths.

    fn path(&mut self, path: &PathNode, scope: Scope) -> Result<Value> {
        let program = self.program;
        let mut value = match path.root {
            RootNode::Dollar | RootNode::At => {
                let is_dollar = matches!(path.root, RootNode::Dollar);
                let value = if is_dollar { scope.dollar } else { scope.at };
                if value.is_missing() && !path.optional {
                    self.problem(path.root_span, None, None, || {
                        "the response has no body".to_owned()
                    });
                }
                value
            }
            RootNode::Local(slot) => self.locals[slot as usize],
            RootNode::Node(node) => self.eval(node, scope)?,
            RootNode::Key(key) => {
                let quiet = path.optional;
                self.key(scope.dollar, key, path.root_span, quiet)?
            }
            RootNode::Variable(variable) => {
                let value = self.variables[variable.index()];
                if value.is_missing() && !path.optional {
                    self.problem(path.root_span, None, None, || {
                        format!("`${}` has no value", variable.name())
                    });
                }
                value
            }
        };
        if path.optional && value.is_nullish() {
            return Ok(Value::Missing);
        }
        for step in &program.steps[path.steps.range()] {
            if value.is_missing() {
                return Ok(value);
            }
            value = match step.kind {
                StepRole::Key(key) => self.key(value, key, step.span, step.optional)?,
                StepRole::Call(method, arguments) => {
                    let mark = self.problems.mark();
                    let given = self.call(method, arguments, value, scope, step.span)?;
                    if given.is_missing() && step.optional {
                        self.problems.forget(mark);
                    }
                    given
                }
                StepRole::Bind(slot, bound) => {
                    let bound = match bound {
                        Some(node) => self.eval(node, Scope { at: value, ..scope })?,
                        None => value,
                    };
                    self.locals[slot as usize] = bound;
                    // An argument that is missing makes the call missing.
                    if bound.is_missing() { bound } else { value }
                }
            };
            if step.optional && value.is_nullish() {
                return Ok(Value::Missing);
            }
        }
        match path.selection {
            Some(selection) => self.select(selection.object, selection.need, value),
            None => Ok(value),
        }
    }

    /// Applies the entries of an object to a value, or to each item of a list. Null stays null.
    pub(super) fn select(&mut self, object: NodeId, need: NeedId, value: Value) -> Result<Value> {
        let value = self.open(value, need)?;
        match self.as_list(value)? {
            Some(items) => {
                self.deeper(|run| run.map_cells(items, |run, item| run.select(object, need, item)))
            }
            None if value.is_nullish() => Ok(value),
            None => {
                let scope = Scope {
                    dollar: value,
                    at: value,
                };
                self.eval(object, scope)
            }
        }
    }

    // Objects.

    fn object(&mut self, object: ObjectNode, scope: Scope) -> Result<Value> {
        let program = self.program;
        let base = self.members.len();
        for entry in &program.entries[object.entries.range()] {
            let value = self.eval(entry.value, scope)?;
            match entry.kind {
                EntryRole::Whole => return Ok(value),
                EntryRole::Named(key) if !value.is_missing() => {
                    let key = self.heap.constant(key);
                    self.members.push(Entry { key, value });
                }
                EntryRole::Named(_) => {}
                EntryRole::Spread if value == Value::Null => {
                    self.members.truncate(base);
                    return Ok(Value::Null);
                }
                EntryRole::Spread | EntryRole::Merged => self.merge(value, entry)?,
            }
        }
        if object.merges {
            self.keep_last(base)?;
        }
        self.made_object(base)
    }

    /// Adds the members of a value to the object that is being made.
    fn merge(&mut self, value: Value, entry: &EntryNode) -> Result<()> {
        if value.is_nullish() {
            return Ok(());
        }
        let Some(members) = self.as_members(value)? else {
            let found = self.heap.kind(value);
            self.problem(entry.span, Some(value), Some(Kinds::OBJECT), || {
                format!("members of an object are added here, found {found}")
            });
            return Ok(());
        };
        self.spend(u64::from(members.len))?;
        self.members
            .extend_from_slice(&self.heap.members[members.range()]);
        Ok(())
    }

    /// Of members with equal keys only the last one stays, where the first one was.
    pub(super) fn keep_last(&mut self, base: usize) -> Result<()> {
        self.spend((self.members.len() - base) as u64)?;
        self.spend_bytes(key_bytes(&self.members[base..]))?;
        let Run { heap, members, .. } = self;
        let mut places: FastMap<Cow<'_, str>, usize> = FastMap::default();
        let mut kept = base;
        for index in base..members.len() {
            let member = members[index];
            let key = heap.string(member.key);
            if let Some(place) = places.get(&key) {
                members[*place].value = member.value;
                continue;
            }
            places.insert(key, kept);
            members[kept] = member;
            kept += 1;
        }
        members.truncate(kept);
        Ok(())
    }

    // Tables.

    /// Puts a value into the list that is being made: one that is missing becomes null, so that no item moves.
    pub(super) fn push_item(&mut self, value: Value) {
        let item = if value.is_missing() {
            Value::Null
        } else {
            value
        };
        self.stack.push(item);
    }
    /// The list of all items that were pushed since `base`.
    pub(super) fn list(&mut self, base: usize) -> Result<Value> {
        let items = Rows::append(&mut self.heap.cells, self.stack.drain(base..));
        self.heap.check(self.limits)?;
        Ok(Value::List(items))
    }
    /// The object of all members that were pushed since `base`.
    pub(super) fn made_object(&mut self, base: usize) -> Result<Value> {
        self.made_members(base).map(Value::Object)
    }
    pub(super) fn made_members(&mut self, base: usize) -> Result<Rows> {
        let members = Rows::append(&mut self.heap.members, self.members.drain(base..));
        self.heap.check(self.limits)?;
        Ok(members)
    }
    /// Makes a list of what `then` makes of each item.
    pub(super) fn map_cells(
        &mut self,
        items: Rows,
        mut then: impl FnMut(&mut Self, Value) -> Result<Value>,
    ) -> Result<Value> {
        let base = self.stack.len();
        for index in items.range() {
            self.spend(1)?;
            let item = self.heap.cells[index];
            let value = then(self, item)?;
            self.push_item(value);
        }
        self.list(base)
    }

    // Limits and problems.

    /// Uses fuel.
    pub(super) fn spend(&mut self, steps: u64) -> Result<()> {
        match self.steps_left.checked_sub(steps) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => {
                self.steps_left = 0;
                Err(Failure::Steps)
            }
        }
    }
    /// Uses fuel for looking at bytes.
    pub(super) fn spend_bytes(&mut self, bytes: usize) -> Result<()> {
        self.spend(bytes as u64 / 64 + 1)
    }
    pub(super) fn deeper<T>(&mut self, then: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.spend(1)?;
        if self.nesting >= self.limits.nesting_max {
            return Err(Failure::Nesting);
        }
        self.nesting += 1;
        let result = then(self);
        self.nesting -= 1;
        result
    }
    /// Says that something is missing because of a value.
    pub(super) fn problem(
        &mut self,
        span: Span,
        value: Option<Value>,
        expected: Option<Kinds>,
        message: impl FnOnce() -> String,
    ) {
        let place = value.and_then(|value| self.heap.slice_of(value));
        self.problems.push(self.limits.problems_max, || Found {
            message: message(),
            expected,
            place,
            key: None,
            span,
        });
    }
}
