//! What `@defer` and `@stream` say of the fields they stand at, kept in [`Operation::deferral`](crate::ir::Operation).

use ogive_base::Diagnostic;
use ogive_schema::{ConstValue, Type, value::const_value};
use ogive_syntax::ast::{self, List, ValueKind};

use super::{Found, Work};
use crate::ir::*;

impl Work<'_> {
    /// The deferred group of a fragment in a selection set, given the group around it.
    pub(super) fn defer(
        &mut self,
        directives: List<ast::Directive>,
        place: SelectionSetId,
        parent: Option<DeferId>,
    ) -> Result<Option<DeferId>, Diagnostic> {
        let document = self.document;
        let mut directives = document[directives].iter();
        let Some(directive) = directives.find(|d| document.name(d.name) == "defer") else {
            return Ok(parent);
        };
        let (mut label, mut variable) = (None, None);
        for argument in &document[directive.arguments] {
            match (document.name(argument.name), argument.value.kind) {
                ("if", ValueKind::Boolean(false)) => return Ok(parent),
                ("if", ValueKind::Variable(name)) => variable = Some(self.variable(name)?),
                ("label", ValueKind::String { .. }) => {
                    if let ConstValue::String(text) = const_value(document, &argument.value) {
                        label = Some(text.as_ref().into());
                    }
                }
                _ => {}
            }
        }
        let groups = &mut self.op.deferral.groups;
        let key = (directive.span.start, place, parent);
        let id = self.deferred.entry(key).or_insert_with(|| {
            groups.push(DeferredGroup {
                label,
                parent,
                place,
                variable,
            })
        });
        Ok(Some(*id))
    }

    /// Notes the groups of a field that is reached through deferred fragments only.
    pub(super) fn note_deferred(
        &mut self,
        node: FieldNodeId,
        members: &[usize],
        found: &[Found<'_>],
    ) {
        let groups: Option<Vec<DeferId>> = members.iter().map(|i| found[*i].defer).collect();
        if let Some(mut groups) = groups {
            self.op.deferral.reduce(&mut groups);
            self.op.deferral.fields.insert(node, groups);
        }
    }

    /// Notes how a list is streamed. All appearances of a field say the same of it.
    pub(super) fn note_stream(
        &mut self,
        node: FieldNodeId,
        field: &ast::Field,
        ty: Type,
    ) -> Result<(), Diagnostic> {
        let document = self.document;
        let mut directives = document[field.directives].iter();
        let Some(directive) = directives.find(|d| document.name(d.name) == "stream") else {
            return Ok(());
        };
        let mut stream = Stream {
            label: None,
            initial_count: 0,
            initial_variable: None,
            variable: None,
        };
        for argument in &document[directive.arguments] {
            match (document.name(argument.name), argument.value.kind) {
                ("if", ValueKind::Boolean(false)) => return Ok(()),
                ("if", ValueKind::Variable(name)) => stream.variable = Some(self.variable(name)?),
                ("initialCount", ValueKind::Variable(name)) => {
                    stream.initial_variable = Some(self.variable(name)?);
                }
                ("initialCount", _) => {
                    if let ConstValue::Int(count) = const_value(document, &argument.value) {
                        stream.initial_count = count.parse().unwrap_or_default();
                    }
                }
                ("label", ValueKind::String { .. }) => {
                    if let ConstValue::String(text) = const_value(document, &argument.value) {
                        stream.label = Some(text.as_ref().into());
                    }
                }
                _ => {}
            }
        }
        if ty.wrapping.is_list() {
            self.op.deferral.streams.insert(node, stream);
        }
        Ok(())
    }
}
