//! `@override`: which subgraph loses a field to which.

use ogive_base::Span;
use ogive_schema::{FieldId, TypeId, suggest::suggestions};

use super::Merger;
use crate::{
    codes::{self, hint},
    report::Place,
    subgraph::Override,
};

impl Merger<'_> {
    /// Resolves every override; losers are marked on their own subgraph's field.
    pub(crate) fn overrides(&mut self) {
        let mut found: Vec<(u32, TypeId, FieldId, Override)> = Vec::new();
        for (i, sub) in self.subs.iter().enumerate() {
            for (field, info) in sub.fields.iter() {
                if let Some(over) = &info.overrides {
                    found.push((
                        i as u32,
                        sub.schema.fields[field].parent,
                        field,
                        over.clone(),
                    ));
                }
            }
        }
        for (sub, ty, field, over) in found {
            self.one_override(sub, ty, field, over);
        }
    }

    fn one_override(&mut self, sub: u32, ty: TypeId, field: FieldId, over: Override) {
        let this = &self.subs[sub as usize];
        let about = match self.out.of(sub, ty) {
            Some(t) => format!(
                "{}.{}",
                self.out.type_name(t),
                this.schema.field_name(field)
            ),
            None => this.coordinate(field),
        };
        let here = (this.place(over.span), String::new());
        self.contradicting_override(&about, sub, field, &here);
        let Some(loser) = self.override_source(&about, sub, &over, &here) else {
            return self.takes_nothing(sub, field);
        };
        let Some(theirs) = self.overridden_field(loser, sub, ty, field) else {
            self.takes_nothing(sub, field);
            let message = format!(
                "subgraph `{}` has no `{about}` (any more): the `@override` can go",
                over.from
            );
            let code = hint::OVERRIDE_DIRECTIVE_CAN_BE_REMOVED;
            return self.report.hint(code, &about, message, &[here]);
        };
        let other = &self.subs[loser as usize];
        if let Some(second) = &other.fields[theirs].overrides {
            let place = other.place(second.span);
            self.report.error_help(
                codes::OVERRIDE_SOURCE_HAS_OVERRIDE,
                &about,
                format!(
                    "`{about}` of subgraph `{}` overrides a field that overrides another",
                    self.subs[sub as usize].name
                ),
                "override the subgraph that has it in the first place, and drop the override in between".into(),
                &[here, (place, "which is an override too".into())],
            );
            return;
        }
        if self.override_collides(&about, loser, theirs, &here) {
            return;
        }
        let info = &self.subs[loser as usize].fields[theirs];
        if info.marked_external.is_some() && info.external {
            let message = format!(
                "`{about}` is external in subgraph `{}`: the `@override` can go",
                over.from
            );
            let code = hint::OVERRIDE_DIRECTIVE_CAN_BE_REMOVED;
            self.report.hint(code, &about, message, &[here]);
            if over.label.is_none() {
                return;
            }
        }
        self.mark_overridden(&about, loser, theirs, over);
    }

    /// Settles an override without a field to take: its subgraph resolves the field whatever labels are on.
    fn takes_nothing(&mut self, sub: u32, field: FieldId) {
        if let Some(over) = &mut self.subs[sub as usize].fields[field].overrides {
            over.label = None;
            over.is_needed = false;
        }
    }

    /// `@override` beside a directive that says that the field is another subgraph's.
    fn contradicting_override(
        &mut self,
        about: &str,
        sub: u32,
        field: FieldId,
        here: &(Place, String),
    ) {
        let this = &self.subs[sub as usize];
        let info = &this.fields[field];
        let clash = [
            ("external", info.marked_external.filter(|_| info.external)),
            ("provides", info.provides.as_ref().map(|p| p.span)),
        ];
        for (name, span) in clash {
            let Some(span) = span else { continue };
            let at = [here.clone(), (this.place(span), String::new())];
            self.report.error(
                codes::OVERRIDE_COLLISION_WITH_ANOTHER_DIRECTIVE,
                about,
                format!("`@override` and `@{name}` on `{about}` contradict each other"),
                &at,
            );
        }
    }

    /// The subgraph that an override takes the field from.
    fn override_source(
        &mut self,
        about: &str,
        sub: u32,
        over: &Override,
        here: &(Place, String),
    ) -> Option<u32> {
        let this = &self.subs[sub as usize];
        if *over.from == *this.name {
            self.report.error_help(
                codes::OVERRIDE_FROM_SELF_ERROR,
                about,
                format!("`{about}` of subgraph `{}` overrides itself", this.name),
                "name the subgraph the field comes from".into(),
                std::slice::from_ref(here),
            );
            return None;
        }
        let loser = self.subs.iter().position(|s| *s.name == *over.from);
        if loser.is_none() {
            let names = self
                .subs
                .iter()
                .map(|s| &*s.name)
                .filter(|n| *n != &*this.name);
            let close = suggestions(&over.from, names)
                .first()
                .map(|s| format!("; did you mean `{s}`?"))
                .unwrap_or_default();
            self.report.hint(
                hint::FROM_SUBGRAPH_DOES_NOT_EXIST,
                about,
                format!(
                    "`{about}` overrides subgraph `{}`, which does not exist{close}",
                    over.from
                ),
                std::slice::from_ref(here),
            );
        }
        loser.map(|loser| loser as u32)
    }

    /// The field of the subgraph that loses it.
    fn overridden_field(
        &self,
        loser: u32,
        sub: u32,
        ty: TypeId,
        field: FieldId,
    ) -> Option<FieldId> {
        let merged = self.out.of(sub, ty)?;
        let sources = &self.out.types[merged].sources;
        let (_, theirs) = sources.iter().find(|source| source.0 == loser)?;
        let name = self.subs[sub as usize].schema.field_name(field);
        self.subs[loser as usize]
            .schema
            .field_by_name(*theirs, name)
    }

    /// Takes a field away from the subgraph that loses it, wholly or by label.
    fn mark_overridden(&mut self, about: &str, loser: u32, theirs: FieldId, over: Override) {
        let other = &self.subs[loser as usize];
        let span = other.schema.fields[theirs].span;
        let there = (other.place(span), format!("in `{}`", other.name));
        let (code, message) = match over.label {
            Some(label) => {
                self.subs[loser as usize].fields[theirs].override_label = Some(label);
                let message = format!(
                    "`{about}` moves from subgraph `{}` step by step; remove it there when done",
                    over.from
                );
                (hint::OVERRIDE_MIGRATION_IN_PROGRESS, message)
            }
            None => {
                let used = self.is_used(loser, theirs);
                self.subs[loser as usize].fields[theirs].overridden = Some(used);
                let end = if used {
                    ", and still used by keys or other directives there"
                } else {
                    " and can be removed there"
                };
                let message = format!("`{about}` of subgraph `{}` is overridden{end}", over.from);
                (hint::OVERRIDDEN_FIELD_CAN_BE_REMOVED, message)
            }
        };
        self.report.hint(code, about, message, &[there]);
    }

    fn override_collides(
        &mut self,
        about: &str,
        loser: u32,
        theirs: FieldId,
        here: &(Place, String),
    ) -> bool {
        let other = &self.subs[loser as usize];
        let info = &other.fields[theirs];
        let clash: Option<(&str, Span)> = info
            .requires
            .as_ref()
            .map(|r| ("requires", r.span))
            .or(info.provides.as_ref().map(|p| ("provides", p.span)));
        let Some((name, span)) = clash else {
            return false;
        };
        let at = [here.clone(), (other.place(span), String::new())];
        self.report.error(
            codes::OVERRIDE_COLLISION_WITH_ANOTHER_DIRECTIVE,
            about,
            format!(
                "`{about}` cannot be overridden: subgraph `{}` applies `@{name}` to it",
                other.name
            ),
            &at,
        );
        true
    }

    /// Whether a field is used by keys, requirements, provisions or interfaces of its own subgraph.
    pub(crate) fn is_used(&self, sub: u32, field: FieldId) -> bool {
        let s = &self.subs[sub as usize];
        if s.fields[field].used {
            return true;
        }
        let row = &s.schema.fields[field];
        s.schema.types[row.parent]
            .interfaces
            .iter()
            .any(|i| s.schema.fields_by_name.contains_key(&(*i, row.name)))
    }
}
