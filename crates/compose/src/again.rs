//! Composing again after a few subgraphs changed, without doing again what cannot have changed.
//!
//! A merged type depends on the subgraphs that define it, and on the *shape* of the graph: which types there are, of
//! which kinds, with which interfaces, members and keys. If a subgraph keeps its shape ([`is_same_shape`]), only the
//! types it defines are merged, printed and checked again. Everything that would reach further (authorisation,
//! contexts, interface objects, overrides of the changed subgraphs), and every error, is left to a full composition:
//! [`Kept::again`] then returns nothing. So the result is always that of a full composition.

use std::sync::Arc;

use ogive_base::{FastSet, SourceId};
use ogive_schema::{DirectiveLocation, TypeId};

use crate::{
    ComposeOptions, Finished, Graph,
    merge::{MTypeId, Merger},
    post,
    print::{self, Printed},
    report::{Given, Report, Stage},
    satisfy, selections,
    spec::WORDS,
    subgraph::Subgraph,
    upgrade, validate,
};

/// Most subgraphs that may change at once; with more, a full composition is as fast.
pub(crate) const CHANGED_MAX: usize = 8;
/// How many rows of fields may be left behind for each one in use before a full composition cleans up.
const LEFTOVERS_MAX: usize = 2;

/// A composition without errors, to start the next one from.
#[derive(Debug)]
pub(crate) struct Kept {
    graph: Graph,
    keys: upgrade::FirstKeys,
    satisfied: satisfy::Kept,
    hints: Vec<Given>,
    pub(crate) printed: Printed,
    /// Subgraphs some `@override` takes fields from, and those with one.
    overrides: FastSet<Box<str>>,
    /// Rows of fields after the full composition.
    fields: usize,
}

impl Kept {
    /// What is kept of a composition; nothing if it could not be continued.
    pub(crate) fn new(done: Finished, options: &ComposeOptions) -> (Printed, Option<Kept>) {
        let Finished {
            mut graph,
            mut report,
            keys,
            satisfied,
        } = done;
        let printed = print::print(&graph.merged, &graph.subs, graph.join, None);
        let hints = report.given();
        let merger = Merger {
            subs: &mut graph.subs,
            out: std::mem::take(&mut graph.merged),
            report: &mut report,
        };
        let near = merger.is_near() && !options.assume_satisfiable;
        graph.merged = merger.out;
        let Some(satisfied) = satisfied.filter(|_| near) else {
            return (printed, None);
        };
        let mut overrides: FastSet<Box<str>> = FastSet::default();
        for sub in &graph.subs {
            for info in sub.fields.as_slice() {
                if let Some(over) = &info.overrides {
                    overrides.insert(over.from.clone());
                    overrides.insert(sub.name.clone());
                }
            }
        }
        let kept = Kept {
            fields: graph.merged.fields.len(),
            graph,
            keys,
            satisfied,
            hints,
            printed: printed.clone(),
            overrides,
        };
        (printed, Some(kept))
    }

    /// The hints in order.
    pub(crate) fn hints(&self) -> Vec<ogive_base::Diagnostic> {
        self.hints.iter().map(|(.., hint)| hint.clone()).collect()
    }

    /// Composes again with some subgraphs replaced: where they are among the others, and as they were and are now.
    pub(crate) fn again(
        mut self,
        changed: &[(usize, Arc<Subgraph>, Arc<Subgraph>)],
        raw: &[Arc<Subgraph>],
        options: &ComposeOptions,
    ) -> Option<Kept> {
        if self.graph.merged.fields.len() > self.fields.saturating_mul(1 + LEFTOVERS_MAX) {
            return None;
        }
        let mut report = Report::default();
        let positions: Vec<u32> = changed.iter().map(|(s, ..)| *s as u32).collect();
        let mut touched: Vec<MTypeId> = Vec::new();
        for (at, before, now) in changed {
            let near = !self.overrides.contains(&now.name)
                && !self.overrides.contains(&self.graph.subs[*at].name);
            if !near || !is_same_shape(before, now) {
                return None;
            }
            let mine = self.graph.merged.sub_types[*at].iter();
            touched.extend(
                mine.filter(|t| **t != crate::merge::NONE)
                    .map(|t| MTypeId(*t)),
            );
            let known = &self.graph.subs[*at];
            let mut sub = (**now).clone();
            (sub.name, sub.url) = (known.name.clone(), known.url.clone());
            sub.relabel(SourceId(*at as u32));
            if sub.is_v1() {
                upgrade::alone(&mut sub, &self.keys, &mut report);
            }
            self.graph.subs[*at] = sub;
        }
        touched.sort_unstable();
        touched.dedup();
        touched.retain(|t| !self.graph.merged.types[*t].built_in);
        for id in &touched {
            self.upgrade_together(*id, &positions, raw, changed)?;
        }
        for at in &positions {
            let sub = &mut self.graph.subs[*at as usize];
            report.errors.append(&mut sub.field_set_errors);
            validate::validate(sub, &mut report);
        }
        if report.has_errors() {
            return None;
        }
        let mut merger = Merger {
            subs: &mut self.graph.subs,
            out: std::mem::take(&mut self.graph.merged),
            report: &mut report,
        };
        let near = merger.again(&positions, &touched);
        self.graph.merged = merger.out;
        near?;
        if report.has_errors() {
            return None;
        }
        let Graph { merged, subs, join } = &self.graph;
        post::check(merged, subs, &mut report);
        selections::check(merged, subs, &mut report);
        if report.has_errors() {
            return None;
        }
        let states_max = options.states_max.unwrap_or(satisfy::STATES_MAX);
        self.satisfied = self
            .satisfied
            .again(merged, subs, &positions, &touched, states_max)?;
        self.printed = print::print(merged, subs, *join, Some((&self.printed, &touched)));
        self.hints = merge_hints(self.hints, report.given(), &positions, &touched)?;
        Some(self)
    }

    /// What federation 1 subgraphs share of a touched type, from the start.
    fn upgrade_together(
        &mut self,
        id: MTypeId,
        positions: &[u32],
        raw: &[Arc<Subgraph>],
        changed: &[(usize, Arc<Subgraph>, Arc<Subgraph>)],
    ) -> Option<()> {
        let mut group: Vec<(u32, TypeId)> = Vec::new();
        for (s, ty) in &self.graph.merged.types[id].sources {
            let at = *s as usize;
            if positions.contains(s) {
                // Its ids are new.
                let (.., before, _) = changed.iter().find(|(c, ..)| *c == at)?;
                let name = before.schema.type_name(*ty);
                let ty = self.graph.subs[at].schema.type_by_name(name)?;
                group.push((*s, ty));
                continue;
            }
            group.push((*s, *ty));
            let sub = &mut self.graph.subs[at];
            if !sub.is_v1() {
                continue;
            }
            let raw = &raw[at];
            for field in sub.schema.types[*ty].fields.clone() {
                sub.fields[field].shareable = raw.fields[field].shareable;
                let known = &raw.schema.fields[field].directives;
                if sub.schema.fields[field].directives.len() != known.len() {
                    sub.schema.fields[field].directives.clone_from(known);
                }
            }
        }
        upgrade::together(&mut self.graph.subs, &group);
        Some(())
    }
}

/// Old hints but for what was asked again, and new ones, in order. `None` if an old one points into a changed text.
fn merge_hints(
    old: Vec<Given>,
    new: Vec<Given>,
    changed: &[u32],
    touched: &[MTypeId],
) -> Option<Vec<Given>> {
    let is_again = |stage: Stage, item: u32| {
        stage == Stage::Features
            || stage.is_per_type() && touched.binary_search(&MTypeId(item)).is_ok()
    };
    let mut out: Vec<Given> = old
        .into_iter()
        .filter(|(stage, item, _)| !is_again(*stage, *item))
        .collect();
    let stale = |given: &Given| given.2.labels.iter().any(|l| changed.contains(&l.source.0));
    if out.iter().any(stale) || new.iter().any(|(stage, item, _)| !is_again(*stage, *item)) {
        return None;
    }
    out.extend(new);
    out.sort_by_key(|(stage, item, _)| (*stage, *item));
    Some(out)
}

/// Whether two versions of a subgraph differ only in what their own types say of fields, input fields and values.
fn is_same_shape(before: &Subgraph, now: &Subgraph) -> bool {
    let fine = |sub: &Subgraph| {
        sub.errors.is_empty()
            && sub.field_set_errors.is_empty()
            && sub.composed.is_empty()
            && !has_executable_directives(sub)
            && sub.fields.iter().all(|(_, f)| f.overrides.is_none())
    };
    if !fine(before) || !fine(now) || before.version != now.version {
        return false;
    }
    let word = |sub: &Subgraph, i: usize| sub.words[i].map(|w| sub.schema.name(w).to_owned());
    if (0..WORDS).any(|i| word(before, i) != word(now, i)) {
        return false;
    }
    let links = |sub: &Subgraph| {
        let mut all = sub.links.all.clone();
        for link in &mut all {
            link.span = ogive_base::Span::new(0, 0);
        }
        all
    };
    let about_schema = |sub: &Subgraph| {
        let applied: Vec<_> = sub
            .schema
            .directives
            .iter()
            .map(|d| applied(sub, d))
            .collect();
        (sub.schema.description.clone(), applied)
    };
    links(before) == links(now)
        && about_schema(before) == about_schema(now)
        && shapes(before) == shapes(now)
}

fn applied(sub: &Subgraph, directive: &ogive_schema::AppliedDirective) -> String {
    let mut out = sub.schema.name(directive.name).to_owned();
    for (name, value) in &directive.args {
        out.push_str(&format!(" {}: {value}", sub.schema.name(*name)));
    }
    out
}

fn has_executable_directives(sub: &Subgraph) -> bool {
    sub.schema.directive_list.iter().any(|id| {
        let def = &sub.schema.directive_defs[*id];
        !def.built_in
            && !sub.machinery_directives.contains(id.0)
            && def.locations.iter().any(|l| *l < DirectiveLocation::Schema)
    })
}

/// What other types depend on of one type.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Shape<'a> {
    name: &'a str,
    kind: u8,
    root: Option<u8>,
    flags: [bool; 4],
    interfaces: Vec<&'a str>,
    members: Vec<&'a str>,
    keys: Vec<(&'a str, [bool; 3])>,
}

fn shapes(sub: &Subgraph) -> Option<Vec<Shape<'_>>> {
    let mut out = Vec::new();
    for ty in sub.merged_types() {
        let (row, info) = (&sub.schema.types[ty], &sub.types[ty]);
        if info.interface_object || !info.contexts.is_empty() {
            return None;
        }
        let names = |list: &[TypeId]| list.iter().map(|t| sub.schema.type_name(*t)).collect();
        let keys = info.keys.iter().map(|k| {
            let flags = [k.resolvable, k.resolvable_written, k.of_extension];
            (&*k.text, flags)
        });
        out.push(Shape {
            name: sub.schema.type_name(ty),
            kind: row.kind as u8,
            root: sub.root_kind(ty).map(|k| k as u8),
            flags: [
                info.defined,
                info.extended,
                info.extends,
                row.fields.is_empty(),
            ],
            interfaces: names(&row.interfaces),
            members: names(&row.members),
            keys: keys.collect(),
        });
    }
    out.sort();
    Some(out)
}
