//! Arguments of fields: in the order of their definitions, with the variables in them.

use ogive_base::Diagnostic;
use ogive_schema::{InputId, value::const_value};
use ogive_syntax::{
    Document,
    ast::{self, ValueKind},
};

use super::Work;
use crate::ir::*;

impl Work<'_> {
    pub(super) fn same_arguments(&self, a: &ast::Field, b: &ast::Field) -> bool {
        if std::ptr::eq(a, b) {
            return true;
        }
        self.document.name(a.name) == self.document.name(b.name)
            && a.arguments.len() == b.arguments.len()
            && self.document[a.arguments].iter().all(|x| {
                self.document[b.arguments].iter().any(|y| {
                    self.document.name(x.name) == self.document.name(y.name)
                        && ogive_syntax::print_value(self.document, &x.value)
                            == ogive_syntax::print_value(self.document, &y.value)
                })
            })
    }

    pub(super) fn arguments(
        &self,
        field: FieldRef,
        written: &ast::Field,
    ) -> Result<Vec<Arg>, Diagnostic> {
        let defined: &[InputId] = match field {
            FieldRef::Field(id) => &self.schema.fields[id].args,
            _ => &[],
        };
        let mut out = Vec::new();
        for argument in &self.document[written.arguments] {
            let name = self.document.name(argument.name);
            let input = self
                .schema
                .arg_by_name(defined, name)
                .unwrap_or(InputId(u32::MAX));
            out.push(Arg {
                input,
                name: name.into(),
                value: self.value(&argument.value)?,
            });
        }
        out.sort_by_key(|a| defined.iter().position(|d| *d == a.input));
        Ok(out)
    }

    /// Nesting of values is bounded by the parser's depth limit.
    fn value(&self, value: &ast::Value) -> Result<ArgValue, Diagnostic> {
        if !has_variable(self.document, value) {
            return Ok(ArgValue::Const(const_value(self.document, value)));
        }
        Ok(match value.kind {
            ValueKind::Variable(name) => ArgValue::Variable(self.variable(name)?),
            ValueKind::List(items) => ArgValue::List(
                self.document[items]
                    .iter()
                    .map(|v| self.value(v))
                    .collect::<Result<_, _>>()?,
            ),
            ValueKind::Object(fields) => ArgValue::Object(
                self.document[fields]
                    .iter()
                    .map(|f| Ok((self.document.name(f.name).into(), self.value(&f.value)?)))
                    .collect::<Result<_, Diagnostic>>()?,
            ),
            _ => ArgValue::Const(const_value(self.document, value)),
        })
    }
}

fn has_variable(document: &Document, value: &ast::Value) -> bool {
    let mut stack = vec![*value];
    while let Some(v) = stack.pop() {
        match v.kind {
            ValueKind::Variable(_) => return true,
            ValueKind::List(items) => stack.extend_from_slice(&document[items]),
            ValueKind::Object(fields) => stack.extend(document[fields].iter().map(|f| f.value)),
            _ => {}
        }
    }
    false
}
