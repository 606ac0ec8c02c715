//! What `@requires` and contexts select of other subgraphs, held against the merged graph: arguments that every subgraph
//! takes, and types that the selected objects can have.

use ogive_schema::{ConstValue, TypeId, TypeKind};

use crate::{
    codes,
    fields::Item,
    merge::{FieldRow, InputRow, MFieldId, MTypeId, Merged, NONE, Ref},
    report::{Problem, Report, quoted},
    subgraph::Subgraph,
};

/// Checks every `@requires` and every argument from a context.
pub(crate) fn check(merged: &Merged, subs: &[Subgraph], report: &mut Report) {
    for (s, sub) in subs.iter().enumerate() {
        let checker = Checker {
            merged,
            subs,
            sub: s as u32,
        };
        for (field, info) in sub.fields.iter() {
            if let Some(set) = &info.requires
                && let Err(problem) = checker.items(&set.items)
            {
                let about = sub.coordinate(field);
                report.error(
                    codes::REQUIRES_INVALID_FIELDS,
                    &about,
                    format!(
                        "`@requires(fields: \"{}\")` on `{about}`: {problem}",
                        set.text
                    ),
                    &[(sub.place(set.span), String::new())],
                );
            }
            for arg in &info.context_args {
                let mut selected = sub.selected(arg);
                let problem = selected.find_map(|(setter, items)| {
                    let all = checker.items(&items);
                    all.and_then(|()| checker.all_types(setter, &items)).err()
                });
                let Some(problem) = problem else {
                    continue;
                };
                let name = sub.schema.name(sub.schema.inputs[arg.arg].name);
                let about = format!("{}({name}:)", sub.coordinate(field));
                report.error(
                    codes::CONTEXT_INVALID_SELECTION,
                    &about,
                    format!("`@fromContext` of `{about}`: {problem}"),
                    &[(sub.place(arg.span), String::new())],
                );
            }
        }
    }
}

struct Checker<'a> {
    merged: &'a Merged,
    subs: &'a [Subgraph],
    sub: u32,
}

impl Checker<'_> {
    /// What is wrong with a selection, if anything.
    fn items(&self, items: &[Item]) -> Result<(), Problem> {
        for item in items {
            match item {
                Item::Field {
                    field: Some(field),
                    args,
                    sub,
                    ..
                } => {
                    let id = self.merged.sub_fields[self.sub as usize][field.0 as usize];
                    if id != NONE {
                        self.arguments(MFieldId(id), args)?;
                        self.conditions(self.merged.fields[MFieldId(id)].ty.ty, sub)?;
                    }
                    self.items(sub)?;
                }
                Item::Field { .. } => {}
                Item::On { sub, .. } => self.items(sub)?,
            }
        }
        Ok(())
    }

    /// A context has a value for every type of object that sets it.
    fn all_types(&self, setter: TypeId, items: &[Item]) -> Result<(), Problem> {
        let Some(setter) = self.merged.of(self.sub, setter) else {
            return Ok(());
        };
        let mut objects = self.merged.types[setter].possible.iter().map(MTypeId);
        match objects.find(|object| !self.selects_from(*object, items)) {
            Some(object) => Err(Problem(format!(
                "it selects nothing of `{}`, which sets the context",
                self.merged.type_name(object)
            ))),
            None => Ok(()),
        }
    }

    fn selects_from(&self, object: MTypeId, items: &[Item]) -> bool {
        items.iter().any(|item| match item {
            Item::Field { .. } => true,
            Item::On { ty, sub } => {
                let condition = self.merged.of(self.sub, *ty);
                let possible = condition.map(|ty| &self.merged.types[ty].possible);
                possible.is_some_and(|p| p.contains(object.0)) && self.selects_from(object, sub)
            }
        })
    }

    /// Type conditions of the selection of a field are about types that its objects have in some subgraph.
    fn conditions(&self, ty: MTypeId, items: &[Item]) -> Result<(), Problem> {
        let conditions = items.iter().filter_map(|item| match item {
            Item::On { ty, .. } => self.merged.of(self.sub, *ty),
            Item::Field { .. } => None,
        });
        let row = &self.merged.types[ty];
        for condition in conditions {
            let possible = &self.merged.types[condition].possible;
            if row.kind.is_abstract() && !row.possible.intersects(possible) {
                return Err(Problem(format!(
                    "a `{}` is never a `{}`",
                    self.merged.type_name(ty),
                    self.merged.type_name(condition)
                )));
            }
        }
        Ok(())
    }

    fn arguments(&self, field: MFieldId, args: &[(Box<str>, ConstValue)]) -> Result<(), Problem> {
        let row = &self.merged.fields[field];
        let about = self.merged.coordinate(field);
        for (name, value) in args {
            let Some(arg) = row
                .args
                .iter()
                .find(|a| self.merged.name(a.name) == &**name)
            else {
                let lacking = quoted(self.without(row, name));
                return Err(Problem(format!(
                    "`{about}` has no argument `{name}` in subgraph {lacking}"
                )));
            };
            if !self.fits(value, arg.ty) {
                let ty = self.merged.display(arg.ty);
                return Err(Problem(format!(
                    "`{value}` is no `{ty}` for argument `{name}` of `{about}`"
                )));
            }
        }
        let is_missing = |arg: &&InputRow| {
            let name = self.merged.name(arg.name);
            is_required(arg) && !args.iter().any(|(given, _)| **given == *name)
        };
        match row.args.iter().find(is_missing) {
            Some(arg) => Err(Problem(format!(
                "`{about}` needs its argument `{}`",
                self.merged.name(arg.name)
            ))),
            None => Ok(()),
        }
    }

    /// Names of the subgraphs that have a field without an argument.
    fn without(&self, row: &FieldRow, arg: &str) -> Vec<&str> {
        let name = self.merged.name(row.name);
        let sources = self.merged.types[row.parent].sources.iter();
        sources
            .filter_map(|(s, ty)| {
                let sub = &self.subs[*s as usize];
                let field = sub.schema.field_by_name(*ty, name)?;
                let args = &sub.schema.fields[field].args;
                let has_it = sub.schema.arg_by_name(args, arg).is_some();
                (!has_it).then_some(&*sub.name)
            })
            .collect()
    }

    /// Whether subgraphs take a literal where they expect a type. Literals are as deep as the parser allows.
    fn fits(&self, value: &ConstValue, ty: Ref) -> bool {
        if *value == ConstValue::Null {
            return !ty.wrapping.is_non_null();
        }
        if let Some(wrapping) = ty.wrapping.nullable().item() {
            let item = Ref {
                ty: ty.ty,
                wrapping,
            };
            return match value {
                ConstValue::List(items) => items.iter().all(|value| self.fits(value, item)),
                // A single value stands for a list of one.
                _ => self.fits(value, item),
            };
        }
        let row = &self.merged.types[ty.ty];
        match (row.kind, value) {
            (TypeKind::Scalar, value) => fits_scalar(self.merged.type_name(ty.ty), value),
            (TypeKind::Enum, ConstValue::Enum(name)) => {
                let mut values = row.values.iter();
                values.any(|value| self.merged.name(value.name) == &**name)
            }
            (TypeKind::InputObject, ConstValue::Object(fields)) => {
                let known = |input: &InputRow, name: &str| self.merged.name(input.name) == name;
                let all_fit = fields.iter().all(|(name, value)| {
                    let mut inputs = row.inputs.iter();
                    let input = inputs.find(|input| known(input, name));
                    input.is_some_and(|input| self.fits(value, input.ty))
                });
                let mut required = row.inputs.iter().filter(|input| is_required(input));
                all_fit && required.all(|input| fields.iter().any(|(name, _)| known(input, name)))
            }
            _ => false,
        }
    }
}

fn is_required(input: &InputRow) -> bool {
    input.ty.wrapping.is_non_null() && input.default.is_none()
}

/// Scalars of a graph's own take anything.
fn fits_scalar(name: &str, value: &ConstValue) -> bool {
    use ConstValue::{Boolean, Float, Int, String};
    match name {
        "Int" => matches!(value, Int(digits) if digits.parse::<i32>().is_ok()),
        "Float" => matches!(value, Int(_) | Float(_)),
        "String" => matches!(value, String(_)),
        "Boolean" => matches!(value, Boolean(_)),
        "ID" => matches!(value, String(_) | Int(_)),
        _ => true,
    }
}
