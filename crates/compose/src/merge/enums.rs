//! Merging enums: union for output, intersection for input, equality for both.

use ogive_base::Symbol;
use ogive_schema::{EnumValueId, TypeKind};

use super::{MTypeId, Merger, ValueRow};
use crate::{
    codes::{self, hint},
    report::{Place, Stage},
    spec::Word,
};

impl Merger<'_> {
    /// Merges every enum; where it is used must be known.
    pub(crate) fn enums(&mut self) {
        for id in self.out.types.ids() {
            if self.out.types[id].kind == TypeKind::Enum && !self.out.types[id].sources.is_empty() {
                self.item(Stage::Enum, id, |m| m.one_enum(id));
            }
        }
    }

    pub(super) fn one_enum(&mut self, id: MTypeId) {
        let sources = self.out.types[id].sources.clone();
        let type_name = self.out.type_name(id).to_owned();
        let (input, output) = (
            self.out.types[id].used_as_input,
            self.out.types[id].used_as_output,
        );
        let mut order: Vec<(Symbol, Vec<(u32, EnumValueId)>)> = Vec::new();
        for (sub, ty) in &sources {
            let schema = &self.subs[*sub as usize].schema;
            for value in &schema.types[*ty].enum_values {
                let name =
                    self.out.sub_names[*sub as usize][schema.enum_values[*value].name.0 as usize];
                match order.iter_mut().find(|(n, _)| *n == name) {
                    Some((_, list)) => list.push((*sub, *value)),
                    None => order.push((name, vec![(*sub, *value)])),
                }
            }
        }
        if !input && !output {
            let at = self.type_places(id);
            self.report.hint(
                hint::UNUSED_ENUM_TYPE,
                &type_name,
                format!("enum `{type_name}` is used by nothing"),
                &at,
            );
        }
        let mut rows = Vec::new();
        for (name, found) in order {
            let coordinate = format!("{type_name}.{}", self.out.name(name));
            let hidden = found.iter().any(|(s, v)| {
                let s = &self.subs[*s as usize];
                s.find(&s.schema.enum_values[*v].directives, Word::Inaccessible)
                    .is_some()
            });
            if found.len() < sources.len()
                && !self.uneven_value(id, &coordinate, &found, hidden, (input, output))
            {
                continue;
            }
            let texts: Vec<(Place, Option<String>)> = found
                .iter()
                .map(|(s, v)| {
                    let sub = &self.subs[*s as usize];
                    let row = &sub.schema.enum_values[*v];
                    (
                        sub.place(row.span),
                        row.description.as_deref().map(str::to_owned),
                    )
                })
                .collect();
            let description = if texts.iter().any(|(_, d)| d.is_some()) {
                let refs: Vec<(Place, Option<&str>)> =
                    texts.iter().map(|(p, d)| (*p, d.as_deref())).collect();
                self.description(&coordinate, &refs)
            } else {
                None
            };
            let directives = self.merge_directives(&coordinate, &found, |m, (sub, v)| {
                (sub, &m.subs[sub as usize].schema.enum_values[v].directives)
            });
            rows.push(ValueRow {
                name,
                sources: found,
                description,
                directives,
            });
        }
        if rows.is_empty() {
            let at = self.type_places(id);
            self.report.error_help(
                codes::EMPTY_MERGED_ENUM_TYPE,
                &type_name,
                format!("no value of enum `{type_name}` exists in all subgraphs that define it, so nothing is left of it"),
                "define the same values everywhere".into(),
                &at,
            );
        }
        self.out.types[id].values = rows;
    }

    /// A value that only some subgraphs have: whether it stays.
    fn uneven_value(
        &mut self,
        id: MTypeId,
        coordinate: &str,
        found: &[(u32, EnumValueId)],
        hidden: bool,
        used: (bool, bool),
    ) -> bool {
        let with: Vec<u32> = found.iter().map(|f| f.0).collect();
        let without: Vec<u32> = self.out.types[id]
            .sources
            .iter()
            .map(|s| s.0)
            .filter(|s| !with.contains(s))
            .collect();
        let mut at: Vec<(Place, String)> = found
            .iter()
            .map(|(s, v)| {
                let sub = &self.subs[*s as usize];
                (sub.place(sub.schema.enum_values[*v].span), String::new())
            })
            .collect();
        for (s, t) in &self.out.types[id].sources {
            if without.contains(s) {
                let sub = &self.subs[*s as usize];
                at.push((
                    sub.place(sub.schema.types[*t].span),
                    format!("missing in `{}`", sub.name),
                ));
            }
        }
        let (with, without) = (self.sub_names(&with), self.sub_names(&without));
        match used {
            (true, true) if hidden => true,
            (true, true) => {
                let name = self.out.type_name(id).to_owned();
                self.report.error_help(
                    codes::ENUM_VALUE_MISMATCH,
                    &name,
                    format!("enum `{name}` is used for input and output, and `{coordinate}` exists in {with} and not in {without}"),
                    "define the same values everywhere, or hide the value with `@inaccessible` until then".into(),
                    &at,
                );
                true
            }
            (true, false) if hidden => true,
            (true, false) => {
                self.report.hint(
                    hint::INCONSISTENT_ENUM_VALUE_FOR_INPUT_ENUM,
                    coordinate,
                    format!(
                        "`{coordinate}` is dropped from the supergraph: it is missing in {without}"
                    ),
                    &at,
                );
                false
            }
            (false, _) => {
                self.report.hint(
                    hint::INCONSISTENT_ENUM_VALUE_FOR_OUTPUT_ENUM,
                    coordinate,
                    format!("`{coordinate}` exists in {with} and not in {without}"),
                    &at,
                );
                true
            }
        }
    }
}
