//! Rules about the merged type system: interfaces are implemented, what clients see makes sense.

use ogive_schema::{ConstValue, OperationKind, TypeKind};

use crate::{
    codes,
    merge::{Applied, FieldRow, InputRow, MFieldId, MTypeId, Merged},
    report::{Place, Report, quoted},
    spec::Word,
    subgraph::Subgraph,
};

/// Checks the merged types.
pub(crate) fn check(merged: &Merged, subs: &[Subgraph], report: &mut Report) {
    let mut post = Post {
        merged,
        subs,
        report,
    };
    post.interfaces();
    if !post.report.has_errors() {
        post.inaccessible();
    }
    crate::merge::auth::transitive(merged, subs, report);
}

struct Post<'a, 'r> {
    merged: &'a Merged,
    subs: &'a [Subgraph],
    report: &'r mut Report,
}

fn is_hidden(list: &[Applied]) -> bool {
    list.iter().any(|a| a.word == Some(Word::Inaccessible))
}

impl Post<'_, '_> {
    fn type_places(&self, ty: MTypeId, text: &str) -> Vec<(Place, String)> {
        self.merged.types[ty]
            .sources
            .iter()
            .map(|(s, t)| {
                let sub = &self.subs[*s as usize];
                (sub.place(sub.schema.types[*t].span), text.to_owned())
            })
            .collect()
    }

    fn field_places(&self, field: MFieldId) -> Vec<(Place, String)> {
        let row = &self.merged.fields[field];
        let at: Vec<(Place, String)> = row
            .sources
            .iter()
            .map(|(s, f)| {
                let sub = &self.subs[*s as usize];
                (sub.place(sub.schema.fields[*f].span), String::new())
            })
            .collect();
        if at.is_empty() {
            self.type_places(row.parent, "")
        } else {
            at
        }
    }

    fn input_places(&self, input: &InputRow) -> Vec<(Place, String)> {
        input
            .sources
            .iter()
            .map(|(s, i)| {
                let sub = &self.subs[*s as usize];
                (sub.place(sub.schema.inputs[*i].span), String::new())
            })
            .collect()
    }

    fn interfaces(&mut self) {
        let merged = self.merged;
        for (id, row) in merged.types.iter() {
            for interface in &row.interfaces {
                for field in &merged.types[*interface].fields {
                    self.implements(id, *interface, *field);
                }
            }
        }
    }

    fn implements(&mut self, ty: MTypeId, interface: MTypeId, field: MFieldId) {
        let merged = self.merged;
        let wanted = &merged.fields[field];
        let (type_name, field_name) = (merged.type_name(ty), merged.name(wanted.name));
        let about = merged.coordinate(field);
        let Some(own) = merged.field_by_name.get(&(ty, wanted.name)) else {
            let with: Vec<&str> = wanted
                .sources
                .iter()
                .map(|(s, _)| &*self.subs[*s as usize].name)
                .collect();
            let mut at = self.type_places(ty, &format!("no `{field_name}` here"));
            at.extend(self.field_places(field));
            self.report.error_help(
                codes::INTERFACE_FIELD_NO_IMPLEM,
                &about,
                format!("`{about}` (of {}) is implemented by `{type_name}` in no subgraph", quoted(with)),
                format!("add `{field_name}` to `{type_name}` in a subgraph, or remove it from the interface"),
                &at,
            );
            return;
        };
        let own_row = &merged.fields[*own];
        let own_about = format!("{type_name}.{field_name}");
        if !merged.is_subtype(own_row.ty, wanted.ty) {
            let mut at = self.field_places(*own);
            at.extend(self.field_places(field));
            self.report.error(
                codes::INVALID_GRAPHQL,
                &own_about,
                format!(
                    "`{own_about}` is merged to type `{}`, which does not fit `{about}` of type `{}`",
                    merged.display(own_row.ty),
                    merged.display(wanted.ty)
                ),
                &at,
            );
        }
        self.arguments(&own_about, &about, *own, field, own_row, wanted);
        let _ = interface;
    }

    fn arguments(
        &mut self,
        own_about: &str,
        about: &str,
        own: MFieldId,
        field: MFieldId,
        own_row: &FieldRow,
        wanted: &FieldRow,
    ) {
        let merged = self.merged;
        for arg in &wanted.args {
            let name = merged.name(arg.name);
            match own_row.args.iter().find(|a| a.name == arg.name) {
                Some(a) if a.ty == arg.ty => {}
                found => {
                    let mut at = self.field_places(own);
                    at.extend(self.field_places(field));
                    let what = if found.is_some() {
                        "is of another type there"
                    } else {
                        "is missing there"
                    };
                    self.report.error(
                        codes::INVALID_GRAPHQL,
                        &format!("{own_about}({name}:)"),
                        format!("argument `{name}` of `{about}` is not implemented by `{own_about}`: it {what}"),
                        &at,
                    );
                }
            }
        }
        for arg in &own_row.args {
            if arg.ty.wrapping.is_non_null()
                && arg.default.is_none()
                && !wanted.args.iter().any(|a| a.name == arg.name)
            {
                let name = merged.name(arg.name);
                let mut at = self.input_places(arg);
                at.extend(self.field_places(field));
                self.report.error(
                    codes::INVALID_GRAPHQL,
                    &format!("{own_about}({name}:)"),
                    format!("argument `{name}` of `{own_about}` is required, and `{about}` does not have it"),
                    &at,
                );
            }
        }
    }

    fn inaccessible(&mut self) {
        let merged = self.merged;
        if !merged.features.used[Word::Inaccessible as usize] {
            return;
        }
        if let Some(query) = merged.root(OperationKind::Query)
            && is_hidden(&merged.types[query].directives)
        {
            let at = self.type_places(query, "");
            self.report.error_help(
                codes::QUERY_ROOT_TYPE_INACCESSIBLE,
                "Query",
                "the query root type is inaccessible, so nothing could be queried".into(),
                "hide single fields instead".into(),
                &at,
            );
        }
        self.directive_arguments();
        for (id, row) in merged.types.iter() {
            if row.built_in || is_hidden(&row.directives) {
                continue;
            }
            self.only_hidden_children(id);
            for field in &row.fields {
                self.visible_field(id, *field);
            }
            for input in &row.inputs {
                let about = format!("{}.{}", merged.type_name(id), merged.name(input.name));
                self.input(&about, input);
            }
        }
    }

    fn directive_arguments(&mut self) {
        let merged = self.merged;
        for directive in &merged.directives {
            for arg in &directive.args {
                let about = format!("@{}({}:)", directive.name, merged.name(arg.name));
                if directive.composed && is_hidden(&arg.directives) {
                    let at = self.input_places(arg);
                    self.report.error_help(
                        codes::DISALLOWED_INACCESSIBLE,
                        &format!("@{}", directive.name),
                        format!(
                            "`{about}` is inaccessible, and `@{}` is composed for tools that need to read it",
                            directive.name
                        ),
                        "remove `@inaccessible`".into(),
                        &at,
                    );
                } else {
                    self.input(&about, arg);
                }
            }
        }
    }

    fn only_hidden_children(&mut self, id: MTypeId) {
        let merged = self.merged;
        let row = &merged.types[id];
        let (count, hidden, word) = match row.kind {
            TypeKind::Object | TypeKind::Interface => (
                row.fields.len(),
                row.fields
                    .iter()
                    .filter(|f| is_hidden(&merged.fields[**f].directives))
                    .count(),
                "fields",
            ),
            TypeKind::Union => (
                row.members.len(),
                row.members
                    .iter()
                    .filter(|m| is_hidden(&merged.types[**m].directives))
                    .count(),
                "members",
            ),
            TypeKind::Enum => (
                row.values.len(),
                row.values
                    .iter()
                    .filter(|v| is_hidden(&v.directives))
                    .count(),
                "values",
            ),
            TypeKind::InputObject => (
                row.inputs.len(),
                row.inputs
                    .iter()
                    .filter(|i| is_hidden(&i.directives))
                    .count(),
                "input fields",
            ),
            TypeKind::Scalar => return,
        };
        if count == 0 || hidden < count {
            return;
        }
        let name = merged.type_name(id);
        let at = self.type_places(id, "");
        self.report.error_help(
            codes::ONLY_INACCESSIBLE_CHILDREN,
            name,
            format!("all {word} of `{name}` are inaccessible, and `{name}` is not"),
            format!("mark `{name}` `@inaccessible` too"),
            &at,
        );
    }

    /// What is visible must not be of a hidden type.
    fn hidden_type(&mut self, ty: MTypeId, about: &str, mut at: Vec<(Place, String)>) {
        let name = self.merged.type_name(ty);
        at.extend(self.type_places(ty, "inaccessible"));
        self.report.error_help(
            codes::REFERENCED_INACCESSIBLE,
            name,
            format!("`{about}` is visible and of the inaccessible type `{name}`"),
            format!("mark `{about}` `@inaccessible` too"),
            &at,
        );
    }

    fn visible_field(&mut self, parent: MTypeId, field: MFieldId) {
        let merged = self.merged;
        let row = &merged.fields[field];
        let about = merged.coordinate(field);
        if is_hidden(&row.directives) {
            self.hidden_implementation(parent, field, &about);
            return;
        }
        if is_hidden(&merged.types[row.ty.ty].directives) {
            let at = self.field_places(field);
            self.hidden_type(row.ty.ty, &about, at);
        }
        for arg in &row.args {
            let coordinate = format!("{about}({}:)", merged.name(arg.name));
            if is_hidden(&arg.directives) {
                self.hidden_argument(parent, row, arg, &coordinate);
            } else {
                self.input(&coordinate, arg);
            }
        }
    }

    /// A hidden field of a visible type implements nothing visible.
    fn hidden_implementation(&mut self, parent: MTypeId, field: MFieldId, about: &str) {
        let merged = self.merged;
        let name = merged.fields[field].name;
        for interface in &merged.types[parent].interfaces {
            let Some(wanted) = merged.field_by_name.get(&(*interface, name)) else {
                continue;
            };
            if is_hidden(&merged.types[*interface].directives)
                || is_hidden(&merged.fields[*wanted].directives)
            {
                continue;
            }
            let other = merged.coordinate(*wanted);
            let mut at = self.field_places(field);
            at.extend(self.field_places(*wanted));
            self.report.error_help(
                codes::IMPLEMENTED_BY_INACCESSIBLE,
                about,
                format!("`{about}` is inaccessible and implements `{other}`, which is visible"),
                format!("mark `{other}` `@inaccessible` too, or neither"),
                &at,
            );
        }
    }

    fn hidden_argument(
        &mut self,
        parent: MTypeId,
        row: &FieldRow,
        arg: &InputRow,
        coordinate: &str,
    ) {
        let merged = self.merged;
        if arg.ty.wrapping.is_non_null() && arg.default.is_none() {
            let at = self.input_places(arg);
            self.report.error_help(
                codes::REQUIRED_INACCESSIBLE,
                coordinate,
                format!(
                    "`{coordinate}` is required and inaccessible, so its field cannot be queried"
                ),
                "make it optional, or hide the field".into(),
                &at,
            );
        }
        for interface in &merged.types[parent].interfaces {
            let Some(wanted) = merged.field_by_name.get(&(*interface, row.name)) else {
                continue;
            };
            let wanted_row = &merged.fields[*wanted];
            if is_hidden(&merged.types[*interface].directives) || is_hidden(&wanted_row.directives)
            {
                continue;
            }
            if wanted_row
                .args
                .iter()
                .any(|a| a.name == arg.name && !is_hidden(&a.directives))
            {
                let at = self.input_places(arg);
                self.report.error(
                    codes::IMPLEMENTED_BY_INACCESSIBLE,
                    coordinate,
                    format!("`{coordinate}` is inaccessible and implements an argument of `{}`, which is visible", merged.coordinate(*wanted)),
                    &at,
                );
            }
        }
    }

    /// An argument or input field of something visible.
    fn input(&mut self, about: &str, input: &InputRow) {
        let merged = self.merged;
        if is_hidden(&input.directives) {
            if input.ty.wrapping.is_non_null() && input.default.is_none() {
                let at = self.input_places(input);
                self.report.error_help(
                    codes::REQUIRED_INACCESSIBLE,
                    about,
                    format!("`{about}` is required and inaccessible, so no value of its type could be given"),
                    "make it optional, or hide the type".into(),
                    &at,
                );
            }
            return;
        }
        if is_hidden(&merged.types[input.ty.ty].directives) {
            let at = self.input_places(input);
            self.hidden_type(input.ty.ty, about, at);
            return;
        }
        if let Some(default) = &input.default
            && let Some(hidden) = self.hidden_in(input.ty.ty, default)
        {
            let at = self.input_places(input);
            self.report.error_help(
                codes::DEFAULT_VALUE_USES_INACCESSIBLE,
                about,
                format!("the default of `{about}` uses the inaccessible `{hidden}`"),
                "choose a default clients can see".into(),
                &at,
            );
        }
    }

    /// Something inaccessible in a value; values are as deep as the parser allows.
    fn hidden_in(&self, ty: MTypeId, value: &ConstValue) -> Option<String> {
        let merged = self.merged;
        let row = &merged.types[ty];
        match value {
            ConstValue::List(items) => items.iter().find_map(|i| self.hidden_in(ty, i)),
            ConstValue::Enum(name) => {
                let value = row.values.iter().find(|v| merged.name(v.name) == &**name)?;
                is_hidden(&value.directives).then(|| format!("{}.{name}", merged.type_name(ty)))
            }
            ConstValue::Object(fields) => fields.iter().find_map(|(name, value)| {
                let field = row.inputs.iter().find(|i| merged.name(i.name) == &**name)?;
                if is_hidden(&field.directives) {
                    return Some(format!("{}.{name}", merged.type_name(ty)));
                }
                self.hidden_in(field.ty.ty, value)
            }),
            _ => None,
        }
    }
}
