//! Directive definitions of the supergraph: executable ones all subgraphs have, and composed ones.

use std::fmt::Write;

use ogive_base::Symbol;
use ogive_schema::{DirectiveId, DirectiveLocation, InputId};

use super::{Applied, DirectiveRow, InputRow, Merger, Ref};
use crate::{
    codes::{self, hint},
    report::Place,
    spec::Word,
};

impl Merger<'_> {
    /// Executable directives all subgraphs define, and composed ones.
    pub(crate) fn directive_definitions(&mut self) {
        let mut names: Vec<(Symbol, Vec<u32>)> = Vec::new();
        for (i, sub) in self.subs.iter().enumerate() {
            for id in &sub.schema.directive_list {
                let def = &sub.schema.directive_defs[*id];
                if def.built_in || sub.machinery_directives.contains(id.0) {
                    continue;
                }
                if !def.locations.iter().any(|l| *l < DirectiveLocation::Schema) {
                    continue;
                }
                let name = self.out.sub_names[i][def.name.0 as usize];
                match names.iter_mut().find(|(n, _)| *n == name) {
                    Some((_, list)) => list.push(i as u32),
                    None => names.push((name, vec![i as u32])),
                }
            }
        }
        for (name, with) in names {
            self.executable(name, &with);
        }
        for i in 0..self.out.features.custom.len() {
            let feature = self.out.features.custom[i].clone();
            for (_, name) in &feature.directives {
                self.composed_definition(feature.newest, name);
            }
        }
        self.out.directives.sort_by(|a, b| a.name.cmp(&b.name));
        self.out.directives.dedup_by(|a, b| a.name == b.name);
    }

    fn executable(&mut self, name: Symbol, with: &[u32]) {
        let text = self.out.name(name).to_owned();
        let about = format!("@{text}");
        let at: Vec<(Place, String)> = with
            .iter()
            .filter_map(|s| {
                let sub = &self.subs[*s as usize];
                let def = sub.schema.directive_by_name(&text)?;
                Some((
                    sub.place(sub.schema.directive_defs[def].span),
                    String::new(),
                ))
            })
            .collect();
        if with.len() < self.subs.len() {
            let without: Vec<u32> = (0..self.subs.len() as u32)
                .filter(|s| !with.contains(s))
                .collect();
            self.report.hint(
                hint::INCONSISTENT_EXECUTABLE_DIRECTIVE_PRESENCE,
                &about,
                format!(
                    "`{about}` is dropped from the supergraph: it is missing in {}",
                    self.sub_names(&without)
                ),
                &at,
            );
            return;
        }
        let defs: Vec<_> = with
            .iter()
            .filter_map(|s| {
                let schema = &self.subs[*s as usize].schema;
                schema.directive_by_name(&text).map(|d| (*s, d))
            })
            .collect();
        let rows: Vec<(Vec<DirectiveLocation>, bool)> = defs
            .iter()
            .map(|(s, d)| {
                let def = &self.subs[*s as usize].schema.directive_defs[*d];
                (
                    def.locations
                        .iter()
                        .copied()
                        .filter(|l| *l < DirectiveLocation::Schema)
                        .collect(),
                    def.repeatable,
                )
            })
            .collect();
        let repeatable = rows.iter().all(|r| r.1);
        if !repeatable && rows.iter().any(|r| r.1) {
            self.report.hint(
                hint::INCONSISTENT_EXECUTABLE_DIRECTIVE_REPEATABLE,
                &about,
                format!(
                    "`{about}` is repeatable in some subgraphs only; it is not in the supergraph"
                ),
                &at,
            );
        }
        let common: Vec<DirectiveLocation> = rows[0]
            .0
            .iter()
            .copied()
            .filter(|l| rows.iter().all(|r| r.0.contains(l)))
            .collect();
        if common.is_empty() {
            self.report.hint(
                hint::NO_EXECUTABLE_DIRECTIVE_INTERSECTION,
                &about,
                format!("`{about}` is dropped from the supergraph: it has no location common to all subgraphs"),
                &at,
            );
            return;
        }
        if rows.iter().any(|r| r.0.len() != common.len()) {
            self.report.hint(
                hint::INCONSISTENT_EXECUTABLE_DIRECTIVE_LOCATIONS,
                &about,
                format!("`{about}` has different locations in different subgraphs; the supergraph has the common ones"),
                &at,
            );
        }
        let sources = self.common_args(&defs);
        let mut sdl = String::new();
        let args = self.write_definition(&sources, repeatable, &common, &mut sdl);
        self.out.directives.push(DirectiveRow {
            name: text.into(),
            sdl,
            args,
            composed: false,
        });
    }

    /// Arguments that a directive has in all subgraphs, in the order of the first one.
    fn common_args(&mut self, defs: &[(u32, DirectiveId)]) -> Vec<(Symbol, Vec<(u32, InputId)>)> {
        let mut common = Vec::new();
        let Some((first, def)) = defs.first() else {
            return common;
        };
        let first = &self.subs[*first as usize].schema;
        for arg in &first.directive_defs[*def].args {
            let name = first.name(first.inputs[*arg].name);
            let found: Vec<_> = defs
                .iter()
                .filter_map(|(s, d)| {
                    let schema = &self.subs[*s as usize].schema;
                    schema
                        .arg_by_name(&schema.directive_defs[*d].args, name)
                        .map(|a| (*s, a))
                })
                .collect();
            if found.len() == defs.len() {
                common.push((self.out.names.intern(name), found));
            }
        }
        common
    }

    fn composed_definition(&mut self, newest: u32, name: &str) {
        let sub = &self.subs[newest as usize];
        let Some(id) = sub.schema.directive_by_name(name) else {
            let about = format!("@{name}");
            if let Some((_, span)) = self.subs[newest as usize].composed.first() {
                let at = [(self.subs[newest as usize].place(*span), String::new())];
                self.report.error(
                    codes::DIRECTIVE_COMPOSITION_ERROR,
                    &about,
                    format!("`{about}` is composed, and the subgraph with its newest version does not define it"),
                    &at,
                );
            }
            return;
        };
        let def = sub.schema.directive_defs[id].clone();
        let args: Vec<_> = def
            .args
            .iter()
            .map(|a| {
                (
                    self.out.sub_names[newest as usize][sub.schema.inputs[*a].name.0 as usize],
                    vec![(newest, *a)],
                )
            })
            .collect();
        let mut sdl = String::new();
        let args = self.write_definition(&args, def.repeatable, &def.locations, &mut sdl);
        self.out.directives.push(DirectiveRow {
            name: name.into(),
            sdl,
            args,
            composed: true,
        });
    }

    /// Writes a definition; returns its arguments, with what is hidden about them.
    fn write_definition(
        &mut self,
        args: &[(Symbol, Vec<(u32, InputId)>)],
        repeatable: bool,
        locations: &[DirectiveLocation],
        out: &mut String,
    ) -> Vec<InputRow> {
        let mut rows = Vec::with_capacity(args.len());
        for (i, (name, found)) in args.iter().enumerate() {
            let (s, a) = found[0];
            let sub = &self.subs[s as usize];
            let row = &sub.schema.inputs[a];
            let merged = self.out.of(s, row.ty.id);
            let ty = merged.map_or_else(
                || sub.schema.type_name(row.ty.id),
                |t| self.out.type_name(t),
            );
            let _ = write!(
                out,
                "{}{}: {}",
                if i == 0 { "(" } else { ", " },
                self.out.name(*name),
                row.ty.wrapping.display(ty)
            );
            if let Some(default) = &row.default {
                let _ = write!(out, " = {default}");
            }
            let hidden = found.iter().any(|(s, a)| {
                let sub = &self.subs[*s as usize];
                sub.find(&sub.schema.inputs[*a].directives, Word::Inaccessible)
                    .is_some()
            });
            if hidden {
                self.out.features.used[Word::Inaccessible as usize] = true;
                out.push_str(" @inaccessible");
            }
            let Some(ty) = merged else { continue };
            let inaccessible = Applied {
                name: "inaccessible".into(),
                args: Vec::new(),
                word: Some(Word::Inaccessible),
                graphs: Vec::new(),
            };
            rows.push(InputRow {
                name: *name,
                ty: Ref {
                    ty,
                    wrapping: row.ty.wrapping,
                },
                default: row.default.clone(),
                sources: found.clone(),
                description: None,
                directives: hidden.then_some(inaccessible).into_iter().collect(),
                join: Vec::new(),
            });
        }
        if !args.is_empty() {
            out.push(')');
        }
        if repeatable {
            out.push_str(" repeatable");
        }
        for (i, location) in locations.iter().enumerate() {
            let _ = write!(
                out,
                "{}{}",
                if i == 0 { " on " } else { " | " },
                location.as_str()
            );
        }
        rows
    }
}
