//! What `@defer` and `@stream` say of the fields they stand at, kept in [`Operation::deferral`](crate::ir::Operation).

use ogive_base::{Diagnostic, FastSet};
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
                cond: CondId::TRUE,
            })
        });
        Ok(Some(*id))
    }

    /// Notes the groups of a field that is reached through deferred fragments only, given what of its appearances is deferred.
    pub(super) fn note_deferred(&mut self, node: FieldNodeId, defers: &[Option<DeferId>]) {
        let groups: Option<Vec<DeferId>> = defers.iter().copied().collect();
        if let Some(mut groups) = groups {
            self.op.deferral.reduce(&mut groups);
            self.op.deferral.fields.insert(node, groups);
        }
    }

    /// The group of every appearance of a field. Fields are collected after `@skip` and `@include` (specification 6.3.2), so
    /// where some count only under conditions, these are in groups of their own: what a field is answered with depends on
    /// which of its appearances count.
    pub(super) fn defers(
        &mut self,
        members: &[usize],
        found: &[Found<'_>],
    ) -> Vec<Option<DeferId>> {
        let own = |i: &usize| found[*i].defer;
        let mut defers: Vec<Option<DeferId>> = members.iter().map(own).collect();
        let clause = |i: &usize| &found[*i].clause;
        let first = &found[members[0]].clause;
        if members[1..].iter().all(|i| clause(i) == first) || defers.iter().all(Option::is_none) {
            return defers;
        }
        // What is a condition of all is a condition of the field.
        let mut common = first.clone();
        common.retain(|literal| {
            members
                .iter()
                .all(|i| clause(i).binary_search(literal).is_ok())
        });
        let mut conditions: Vec<Clause> = Vec::with_capacity(members.len());
        for (i, defer) in members.iter().zip(&defers) {
            conditions.push(self.further(clause(i), &common, *defer));
        }
        let always = conditions.iter().zip(&defers);
        let always = always.filter(|(condition, _)| condition.is_empty());
        let always: FastSet<Option<DeferId>> = always.map(|(_, defer)| *defer).collect();
        for (defer, condition) in defers.iter_mut().zip(&conditions) {
            // What is around it brings the field anyway.
            let is_there = self.around(*defer).any(|around| always.contains(&around));
            if !is_there {
                *defer = Some(self.conditional(*defer, condition));
            }
        }
        defers
    }

    /// A group and those around it, then the primary part.
    fn around(&self, group: Option<DeferId>) -> impl Iterator<Item = Option<DeferId>> {
        let parent = |at: &Option<DeferId>| at.map(|group| self.op.deferral.groups[group].parent);
        std::iter::successors(Some(group), parent)
    }

    /// What of a condition is no condition of all appearances, nor of the groups around this one.
    fn further(&self, clause: &Clause, common: &Clause, group: Option<DeferId>) -> Clause {
        let mut out = clause.clone();
        out.retain(|literal| common.binary_search(literal).is_err());
        for group in self.around(group).flatten() {
            let cond = self.op.deferral.groups[group].cond;
            if let (false, [known]) = (cond == CondId::TRUE, self.op.conditions.clauses(cond)) {
                out.retain(|literal| known.binary_search(literal).is_err());
            }
        }
        out
    }

    /// The group of what counts only under a condition, inside of another one.
    fn conditional(&mut self, parent: Option<DeferId>, clause: &Clause) -> DeferId {
        let cond = self.condition(clause);
        let groups = &mut self.op.deferral.groups;
        let place = parent.map_or(self.op.root, |parent| groups[parent].place);
        let id = self.conditional_groups.entry((parent, cond));
        *id.or_insert_with(|| {
            groups.push(DeferredGroup {
                label: None,
                parent,
                place,
                variable: None,
                cond,
            })
        })
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
