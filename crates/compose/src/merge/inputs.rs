//! Merging arguments and input fields: what all subgraphs have, with the strictest type and one default.

use std::fmt::Write;

use ogive_base::{FastMap, Symbol};
use ogive_schema::{FieldId, InputId, TypeKind};

use super::{
    InputRow, JoinField, MTypeId, Merger, Ref,
    types::{Position, Stated},
};
use crate::{
    codes::{self, HintCode, hint},
    report::{Place, Stage},
    spec::Word,
};

impl Merger<'_> {
    /// The arguments all of `sources` have.
    pub(crate) fn arguments(&mut self, about: &str, sources: &[(u32, FieldId)]) -> Vec<InputRow> {
        if sources
            .iter()
            .all(|(s, f)| self.subs[*s as usize].schema.fields[*f].args.is_empty())
        {
            return Vec::new();
        }
        let mut order: Vec<(Symbol, Vec<(u32, InputId)>)> = Vec::new();
        let mut contextual: Vec<Symbol> = Vec::new();
        for (sub, field) in sources {
            let s = &self.subs[*sub as usize];
            for arg in &s.schema.fields[*field].args {
                let row = &s.schema.inputs[*arg];
                let name = self.out.sub_names[*sub as usize][row.name.0 as usize];
                if s.find(&row.directives, Word::FromContext).is_some() {
                    contextual.push(name);
                    continue;
                }
                match order.iter_mut().find(|(n, _)| *n == name) {
                    Some((_, list)) => list.push((*sub, *arg)),
                    None => order.push((name, vec![(*sub, *arg)])),
                }
            }
        }
        let mut out = Vec::with_capacity(order.len());
        for (name, found) in order {
            let coordinate = format!("{about}({}:)", self.out.name(name));
            if contextual.contains(&name) {
                self.half_contextual(&coordinate, &found);
                continue;
            }
            if found.len() < sources.len() {
                self.missing_argument(about, &coordinate, &found, sources);
                continue;
            }
            let row = self.input(&coordinate, name, found, true);
            out.push(row);
        }
        out
    }

    fn input_place(&self, sub: u32, input: InputId) -> Place {
        let s = &self.subs[sub as usize];
        s.place(s.schema.inputs[input].span)
    }

    fn half_contextual(&mut self, coordinate: &str, found: &[(u32, InputId)]) {
        let required: Vec<(Place, String)> = found
            .iter()
            .filter(|(s, i)| self.subs[*s as usize].schema.inputs[*i].is_required())
            .map(|(s, i)| (self.input_place(*s, *i), "required here".into()))
            .collect();
        if required.is_empty() {
            let at: Vec<_> = found
                .iter()
                .map(|(s, i)| (self.input_place(*s, *i), String::new()))
                .collect();
            self.report.hint(
                hint::CONTEXTUAL_ARGUMENT_NOT_CONTEXTUAL_IN_ALL_SUBGRAPHS,
                coordinate,
                format!("`{coordinate}` is filled from context in some subgraphs only; it is not part of the supergraph"),
                &at,
            );
        } else {
            self.report.error(
                codes::CONTEXTUAL_ARGUMENT_NOT_CONTEXTUAL_IN_ALL_SUBGRAPHS,
                coordinate,
                format!("`{coordinate}` is filled from context in one subgraph and required from the client in another"),
                &required,
            );
        }
    }

    fn missing_argument(
        &mut self,
        about: &str,
        coordinate: &str,
        found: &[(u32, InputId)],
        sources: &[(u32, FieldId)],
    ) {
        let places = sources.iter().map(|(s, f)| (*s, self.field_place(*s, *f)));
        let codes = (
            codes::REQUIRED_ARGUMENT_MISSING_IN_SOME_SUBGRAPH,
            hint::INCONSISTENT_ARGUMENT_PRESENCE,
        );
        self.missing_input(
            coordinate,
            found,
            places.collect(),
            codes,
            &format!(" of `{about}`"),
        );
    }

    /// An argument or input field that some of its parent's subgraphs lack: an error where one requires it, else it is
    /// dropped with a hint. `places` are the parent's, by subgraph; `of` ends the hint's sentence.
    fn missing_input(
        &mut self,
        coordinate: &str,
        found: &[(u32, InputId)],
        mut places: Vec<(u32, Place)>,
        (error, hint): (&'static str, HintCode),
        of: &str,
    ) {
        let with: Vec<u32> = found.iter().map(|f| f.0).collect();
        places.retain(|(s, _)| !with.contains(s));
        let without: Vec<u32> = places.iter().map(|(s, _)| *s).collect();
        let required = found
            .iter()
            .any(|(s, i)| self.subs[*s as usize].schema.inputs[*i].is_required());
        let mut at: Vec<(Place, String)> = found
            .iter()
            .map(|(s, i)| (self.input_place(*s, *i), String::new()))
            .collect();
        at.extend(places.into_iter().map(|(s, place)| {
            (
                place,
                format!("missing in `{}`", self.subs[s as usize].name),
            )
        }));
        let missing = self.sub_names(&without);
        if required {
            let with = self.sub_names(&with);
            self.report.error_help(
                error,
                coordinate,
                format!("`{coordinate}` is required in {with} and missing in {missing}"),
                "make it optional, or add it everywhere".into(),
                &at,
            );
        } else {
            self.report.hint(
                hint,
                coordinate,
                format!(
                    "`{coordinate}` is dropped from the supergraph: it is missing in {missing}{of}"
                ),
                &at,
            );
        }
    }

    /// Merges one argument or input field.
    fn input(
        &mut self,
        coordinate: &str,
        name: Symbol,
        found: Vec<(u32, InputId)>,
        argument: bool,
    ) -> InputRow {
        let stated = found.iter().map(|(s, i)| {
            let ty = self.subs[*s as usize].schema.inputs[*i].ty;
            let ty = Ref {
                ty: self.out.of(*s, ty.id).unwrap_or(MTypeId(0)),
                wrapping: ty.wrapping,
            };
            Stated {
                sub: *s,
                place: self.input_place(*s, *i),
                ty,
            }
        });
        let position = if argument {
            Position::Argument
        } else {
            Position::InputField
        };
        let best = self.merge_types(coordinate, stated.collect(), position);
        self.out.types[best.ty].used_as_input = true;
        let default = self.default(coordinate, &found, argument);
        let found_descriptions: Vec<(Place, Option<String>)> = found
            .iter()
            .map(|(s, i)| {
                (
                    self.input_place(*s, *i),
                    self.subs[*s as usize].schema.inputs[*i]
                        .description
                        .as_deref()
                        .map(str::to_owned),
                )
            })
            .collect();
        let description = if found_descriptions.iter().any(|(_, d)| d.is_some()) {
            let refs: Vec<(Place, Option<&str>)> = found_descriptions
                .iter()
                .map(|(p, d)| (*p, d.as_deref()))
                .collect();
            self.description(coordinate, &refs)
        } else {
            None
        };
        let directives = self.merge_directives(coordinate, &found, |m, (sub, input)| {
            (sub, &m.subs[sub as usize].schema.inputs[input].directives)
        });
        InputRow {
            name,
            ty: best,
            default,
            sources: found,
            description,
            directives,
            join: Vec::new(),
        }
    }

    /// One default for all: equal ones, none if only some have one.
    fn default(
        &mut self,
        coordinate: &str,
        found: &[(u32, InputId)],
        argument: bool,
    ) -> Option<ogive_schema::ConstValue> {
        let defaults: Vec<Option<&ogive_schema::ConstValue>> = found
            .iter()
            .map(|(s, i)| self.subs[*s as usize].schema.inputs[*i].default.as_ref())
            .collect();
        let first = defaults.iter().flatten().next().copied()?.clone();
        let missing = defaults.iter().any(Option::is_none);
        let different = defaults.iter().flatten().any(|d| !same_value(d, &first));
        let at: Vec<(Place, String)> = found
            .iter()
            .zip(&defaults)
            .map(|((s, i), d)| {
                (
                    self.input_place(*s, *i),
                    match d {
                        Some(value) => format!("`{value}` in `{}`", self.subs[*s as usize].name),
                        None => format!("no default in `{}`", self.subs[*s as usize].name),
                    },
                )
            })
            .collect();
        if different {
            let code = if argument {
                codes::FIELD_ARGUMENT_DEFAULT_MISMATCH
            } else {
                codes::INPUT_FIELD_DEFAULT_MISMATCH
            };
            self.report.error_help(
                code,
                coordinate,
                format!("`{coordinate}` has different defaults in different subgraphs"),
                "use one default everywhere".into(),
                &at,
            );
            return None;
        }
        if missing {
            self.report.hint(
                hint::INCONSISTENT_DEFAULT_VALUE_PRESENCE,
                coordinate,
                format!(
                    "`{coordinate}` has a default in some subgraphs only; the supergraph has none"
                ),
                &at,
            );
            return None;
        }
        Some(first)
    }

    /// Merges every input object.
    pub(crate) fn input_objects(&mut self) {
        for id in self.out.types.ids() {
            if self.out.types[id].kind == TypeKind::InputObject {
                self.item(Stage::Input, id, |m| m.input_object(id));
            }
        }
    }

    pub(super) fn input_object(&mut self, id: MTypeId) {
        let sources = self.out.types[id].sources.clone();
        let type_name = self.out.type_name(id).to_owned();
        let mut order: Vec<(Symbol, Vec<(u32, InputId)>)> = Vec::new();
        let mut at: FastMap<Symbol, usize> = FastMap::default();
        for (sub, ty) in &sources {
            let schema = &self.subs[*sub as usize].schema;
            for input in &schema.types[*ty].input_fields {
                let name = self.out.sub_names[*sub as usize][schema.inputs[*input].name.0 as usize];
                let i = *at.entry(name).or_insert_with(|| {
                    order.push((name, Vec::new()));
                    order.len() - 1
                });
                order[i].1.push((*sub, *input));
            }
        }
        let had_fields = !order.is_empty();
        let mut rows = Vec::new();
        for (name, found) in order {
            let coordinate = format!("{type_name}.{}", self.out.name(name));
            let hidden = found.iter().any(|(s, i)| {
                let s = &self.subs[*s as usize];
                s.find(&s.schema.inputs[*i].directives, Word::Inaccessible)
                    .is_some()
            });
            let everywhere = found.len() == sources.len();
            if !everywhere && !hidden {
                self.missing_input_field(&coordinate, &found, &sources);
                continue;
            }
            let uneven_type = {
                let first = self.subs[found[0].0 as usize].schema.inputs[found[0].1].ty;
                let first = (self.out.of(found[0].0, first.id), first.wrapping);
                found.iter().any(|(s, i)| {
                    let ty = self.subs[*s as usize].schema.inputs[*i].ty;
                    (self.out.of(*s, ty.id), ty.wrapping) != first
                })
            };
            let mut row = self.input(&coordinate, name, found, false);
            if !everywhere || uneven_type {
                row.join = row
                    .sources
                    .iter()
                    .map(|(sub, input)| {
                        let mut args = String::new();
                        if uneven_type {
                            let ty = self.subs[*sub as usize].schema.inputs[*input].ty;
                            let name = self
                                .out
                                .of(*sub, ty.id)
                                .map(|t| self.out.type_name(t))
                                .unwrap_or_default();
                            let _ = write!(args, ", type: \"{}\"", ty.wrapping.display(name));
                        }
                        JoinField {
                            subgraph: *sub,
                            args,
                        }
                    })
                    .collect();
            }
            rows.push(row);
        }
        if rows.is_empty() && had_fields {
            let at = self.type_places(id);
            self.report.error_help(
                codes::EMPTY_MERGED_INPUT_TYPE,
                &type_name,
                format!("no field of `{type_name}` exists in all subgraphs that define it, so nothing is left of it"),
                "define the same fields everywhere".into(),
                &at,
            );
        }
        self.one_of(&type_name, &sources, &rows);
        self.out.types[id].inputs = rows;
    }

    /// An input object that one subgraph takes with exactly one field cannot have one that another always needs.
    fn one_of(
        &mut self,
        type_name: &str,
        sources: &[(u32, ogive_schema::TypeId)],
        rows: &[InputRow],
    ) {
        let of = |m: &Self, (sub, ty): (u32, ogive_schema::TypeId)| {
            m.subs[sub as usize].schema.types[ty].one_of
        };
        let Some(&(sub, ty)) = sources.iter().find(|s| of(self, **s)) else {
            return;
        };
        for row in rows {
            let what = match (row.ty.wrapping.is_non_null(), &row.default) {
                (true, _) => "is required",
                (false, Some(_)) => "has a default",
                (false, None) => continue,
            };
            let coordinate = format!("{type_name}.{}", self.out.name(row.name));
            let mut at: Vec<(Place, String)> = row
                .sources
                .iter()
                .map(|(s, input)| (self.input_place(*s, *input), String::new()))
                .collect();
            let s = &self.subs[sub as usize];
            at.push((s.place(s.schema.types[ty].span), "`@oneOf` here".into()));
            self.report.error_help(
                codes::INVALID_GRAPHQL,
                &coordinate,
                format!("`{coordinate}` {what}, and `{type_name}` is `@oneOf` in subgraph `{}`: exactly one of its fields is given", s.name),
                "make the field nullable without a default, or remove `@oneOf`".into(),
                &at,
            );
        }
    }

    fn missing_input_field(
        &mut self,
        coordinate: &str,
        found: &[(u32, InputId)],
        sources: &[(u32, ogive_schema::TypeId)],
    ) {
        let places = sources.iter().map(|(s, t)| {
            let sub = &self.subs[*s as usize];
            (*s, sub.place(sub.schema.types[*t].span))
        });
        let codes = (
            codes::REQUIRED_INPUT_FIELD_MISSING_IN_SOME_SUBGRAPH,
            hint::INCONSISTENT_INPUT_OBJECT_FIELD,
        );
        self.missing_input(coordinate, found, places.collect(), codes, "");
    }
}

/// Equality of values: numbers by value, object fields in any order. Depth is bounded by the parser.
pub(crate) fn same_value(a: &ogive_schema::ConstValue, b: &ogive_schema::ConstValue) -> bool {
    use ogive_schema::ConstValue::{Float, Int, List, Object};
    match (a, b) {
        (Int(x) | Float(x), Int(y) | Float(y)) => {
            x == y || matches!((x.parse::<f64>(), y.parse::<f64>()), (Ok(p), Ok(q)) if p == q)
        }
        (List(x), List(y)) => x.len() == y.len() && x.iter().zip(y).all(|(p, q)| same_value(p, q)),
        (Object(x), Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .all(|(n, p)| y.iter().any(|(m, q)| n == m && same_value(p, q)))
        }
        _ => a == b,
    }
}
