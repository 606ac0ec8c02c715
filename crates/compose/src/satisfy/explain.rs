//! Why a field cannot be resolved: the smallest query that fails, what stands in the way, and what would help.

use std::fmt::Write;

use ogive_base::Diagnostic;
use ogive_schema::TypeKind;

use super::{
    Failure, State, Step,
    closure::Closure,
    graph::{Graph, NodeId, Want},
};
use crate::{
    codes,
    merge::{InputRow, MFieldId, MTypeId, Ref},
    report::{LABELS_MAX, Report, quoted},
};

/// Most reasons listed of one failure.
const REASONS_MAX: usize = 8;

/// What keeps a field from being resolved.
#[derive(PartialEq, Eq)]
struct Cause {
    state: usize,
    parent: MTypeId,
    sources: Vec<u32>,
    /// The field, if it has a cause of its own.
    alone: Option<MFieldId>,
}

pub(super) struct Explainer<'x, 'a> {
    pub(super) states: &'x [State],
    pub(super) graph: &'x Graph<'a>,
    pub(super) closure: &'x Closure,
}

impl Explainer<'_, '_> {
    /// One error per root cause: fields of one type that the same subgraphs resolve without `@requires` and that
    /// cannot be had at the same place lack the same way in.
    pub(super) fn report(&self, failures: &[&Failure], report: &mut Report) {
        let mut groups: Vec<(Cause, Vec<&Failure>)> = Vec::new();
        for failure in failures {
            let cause = self.cause(failure);
            match groups.iter_mut().find(|(c, _)| *c == cause) {
                Some((_, list)) => list.push(failure),
                None => groups.push((cause, vec![failure])),
            }
        }
        for (_, list) in groups {
            self.report_one(list[0], &list[1..], report);
        }
    }

    fn cause(&self, failure: &Failure) -> Cause {
        let row = &self.graph.merged.fields[failure.field];
        let mut sources: Vec<u32> = Vec::new();
        let mut alone = row.sources.is_empty() || row.via_interface_object;
        for (sub, field) in &row.sources {
            let info = &self.graph.subs[*sub as usize].fields[*field];
            alone |= info.requires.is_some()
                || info.external
                || info.overridden.is_some()
                || info.override_label.is_some()
                || info.overrides.is_some()
                || !info.context_args.is_empty();
            sources.push(*sub);
        }
        Cause {
            state: failure.state,
            parent: row.parent,
            sources,
            alone: alone.then_some(failure.field),
        }
    }

    fn report_one(&self, failure: &Failure, others: &[&Failure], report: &mut Report) {
        let merged = self.graph.merged;
        let about = merged.coordinate(failure.field);
        let query = self.query(failure);
        let state = &self.states[failure.state];
        let mut error = Diagnostic::error(
            codes::SATISFIABILITY_ERROR,
            format!("no plan resolves `{about}` in this query: {query}"),
        )
        .about(about.as_str());
        let row = &merged.fields[failure.field];
        for (sub, field) in &row.sources {
            let s = &self.graph.subs[*sub as usize];
            let info = &s.fields[*field];
            let text = if info.external {
                "external here"
            } else if info.overridden.is_some() {
                "overridden here"
            } else {
                "resolved here"
            };
            error = error.label(
                s.source,
                s.schema.fields[*field].span,
                format!("{text}, in `{}`", s.name),
            );
        }
        for node in &state.nodes {
            let n = &self.graph.nodes[*node];
            let s = &self.graph.subs[n.sub as usize];
            if error.labels.len() < LABELS_MAX && !row.sources.iter().any(|(sub, _)| *sub == n.sub)
            {
                error = error.label(
                    s.source,
                    s.schema.types[n.ty].span,
                    format!("reached here, in `{}`", s.name),
                );
            }
        }
        for other in others {
            for (sub, field) in &merged.fields[other.field].sources {
                let s = &self.graph.subs[*sub as usize];
                if error.labels.len() < LABELS_MAX {
                    error = error.label(s.source, s.schema.fields[*field].span, "nor this");
                }
            }
        }
        if error.labels.is_empty()
            && let Some((sub, ty)) = merged.types[row.parent].sources.first()
        {
            let s = &self.graph.subs[*sub as usize];
            error = error.label(s.source, s.schema.types[*ty].span, "");
        }
        let (reasons, help) = self.reasons(failure.field, &state.nodes);
        let shown = reasons.len().min(REASONS_MAX);
        for reason in &reasons[..shown] {
            error = error.note(reason.as_str());
        }
        if reasons.len() > shown {
            error = error.note(format!("and {} more reasons", reasons.len() - shown));
        }
        if failure.count > 1 {
            error = error.note(format!(
                "{} ways lead to `{}`; none of them resolves it",
                failure.count,
                merged.type_name(state.ty)
            ));
        }
        if !others.is_empty() {
            let names = others.iter().map(|f| merged.coordinate(f.field));
            error = error.note(format!(
                "the same keeps {} from being resolved",
                quoted_all(names)
            ));
        }
        error.help = help;
        report.push(error);
    }

    /// The query down to the failing field.
    fn query(&self, failure: &Failure) -> String {
        let merged = self.graph.merged;
        let mut steps = vec![Step::Field(failure.field)];
        let state = &self.states[failure.state];
        if merged.types[state.ty].kind != TypeKind::Object {
            steps.push(Step::On(merged.fields[failure.field].parent));
        }
        let mut at = failure.state;
        while let Some((from, step)) = self.states[at].from {
            steps.push(step);
            at = from as usize;
        }
        let root = merged.type_name(self.states[at].ty);
        let mut out = match root {
            "Mutation" => String::from("mutation "),
            "Subscription" => String::from("subscription "),
            _ => String::new(),
        };
        let depth = steps.len();
        for step in steps.iter().rev() {
            match step {
                Step::Field(field) => {
                    let row = &merged.fields[*field];
                    let _ = write!(out, "{{ {}{} ", merged.name(row.name), self.args(&row.args));
                }
                Step::On(ty) => {
                    let _ = write!(out, "{{ ... on {} ", merged.type_name(*ty));
                }
            }
        }
        let last = merged.types[merged.fields[failure.field].ty.ty].kind;
        if last.is_composite() {
            out.push_str("{ __typename } ");
        }
        out.push_str(&"} ".repeat(depth));
        out.truncate(out.trim_end().len());
        out
    }

    fn args(&self, args: &[InputRow]) -> String {
        let required: Vec<String> = args
            .iter()
            .filter(|a| a.ty.wrapping.is_non_null() && a.default.is_none())
            .map(|a| format!("{}: {}", self.graph.merged.name(a.name), self.sample(a.ty)))
            .collect();
        if required.is_empty() {
            String::new()
        } else {
            format!("({})", required.join(", "))
        }
    }

    /// Some value of an input type.
    fn sample(&self, ty: Ref) -> String {
        let row = &self.graph.merged.types[ty.ty];
        if ty.wrapping.is_list() {
            return "[]".into();
        }
        match self.graph.merged.name(row.name) {
            "Int" => "1".into(),
            "Float" => "1.5".into(),
            "Boolean" => "true".into(),
            _ if row.kind == TypeKind::Enum => row.values.first().map_or_else(
                || "null".into(),
                |v| self.graph.merged.name(v.name).to_owned(),
            ),
            _ if row.kind == TypeKind::InputObject => "{}".into(),
            _ => "\"x\"".into(),
        }
    }

    /// What stands in the way, subgraph by subgraph, and the first thing that would help.
    fn reasons(&self, field: MFieldId, nodes: &[NodeId]) -> (Vec<String>, Option<String>) {
        let merged = self.graph.merged;
        let row = &merged.fields[field];
        let about = merged.coordinate(field);
        let (field_name, type_name) = (merged.name(row.name), merged.type_name(row.parent));
        let mut reasons = Vec::new();
        let mut help = None;
        let here: Vec<&str> = nodes
            .iter()
            .map(|n| &*self.graph.subs[self.graph.nodes[*n].sub as usize].name)
            .collect();
        for (sub, f) in &row.sources {
            let s = &self.graph.subs[*sub as usize];
            let info = &s.fields[*f];
            if info.overridden.is_some() {
                reasons.push(format!(
                    "subgraph `{}` lost `{about}` to an `@override`",
                    s.name
                ));
                continue;
            }
            if info.external {
                reasons.push(format!(
                    "subgraph `{}` knows `{about}` as `@external` only",
                    s.name
                ));
                continue;
            }
            if let Some(node) = nodes.iter().find(|n| {
                self.graph.nodes[**n].sub == *sub && self.graph.edge(**n, row.name) == Some(*f)
            }) {
                if let Some(set) = &info.requires {
                    let missing = self.missing(*sub, &set.items, *node);
                    reasons.push(format!("subgraph `{}` resolves `{about}` with `@requires(fields: \"{}\")`, and {missing} cannot be fetched for it", s.name, set.text));
                    help.get_or_insert(format!("give `{type_name}` a resolvable `@key` in subgraph `{}` whose fields are known there, and let {missing} be reached by a key", s.name));
                } else {
                    reasons.push(format!("subgraph `{}` resolves `{about}` only where its context or override label holds", s.name));
                }
                continue;
            }
            let ty = s.schema.fields[*f].parent;
            let keys: Vec<_> = s.types[ty].keys.iter().filter(|k| k.resolvable).collect();
            if keys.is_empty() {
                let why = if s.types[ty].keys.is_empty() {
                    "has no `@key`"
                } else {
                    "has only keys that are not resolvable"
                };
                reasons.push(format!("subgraph `{}` resolves `{about}`, and `{type_name}` {why} there, so it cannot be entered", s.name));
                let way = match self.shared_key(row.parent, nodes) {
                    Some(key) => format!(
                        "add `@key(fields: \"{key}\")` to `{type_name}` in subgraph `{}`",
                        s.name
                    ),
                    None => format!(
                        "add a field that identifies `{type_name}`, with a `@key` of it, in {} and `{}`",
                        quoted(dedup(&here)),
                        s.name
                    ),
                };
                help.get_or_insert(format!(
                    "{way}, or resolve `{field_name}` in {} too and mark it `@shareable`",
                    quoted(dedup(&here))
                ));
                continue;
            }
            for key in keys {
                let missing = nodes
                    .first()
                    .map_or_else(|| "it".to_owned(), |n| self.missing(*sub, &key.items, *n));
                reasons.push(format!("subgraph `{}` resolves `{about}` and is entered by `@key(fields: \"{}\")`; {missing} cannot be had from {}", s.name, key.text, quoted(dedup(&here))));
                help.get_or_insert(format!("define {missing} on `{type_name}` in {}, or give `{type_name}` in subgraph `{}` a key that is known there", quoted(dedup(&here)), s.name));
            }
        }
        if row.via_interface_object || row.sources.is_empty() {
            reasons.push(format!("`{about}` comes from interface objects, which must be reached by a key of the interface"));
            help.get_or_insert(format!(
                "let the subgraphs that return `{type_name}` know a key of its interface"
            ));
        }
        (reasons, help)
    }

    /// The fields of a set that cannot be had from a node.
    fn missing(&self, sub: u32, items: &[crate::fields::Item], node: NodeId) -> String {
        let merged = self.graph.merged;
        let wants = self.graph.wants(sub, items);
        let names: Vec<String> = wants
            .iter()
            .filter_map(|w| match w {
                Want::Field(Some(name), _) => {
                    let had = self
                        .graph
                        .edge(node, *name)
                        .is_some_and(|f| self.closure.resolves(self.graph, node, f));
                    (!had).then(|| merged.name(*name).to_owned())
                }
                _ => None,
            })
            .collect();
        if names.is_empty() {
            "what it selects".into()
        } else {
            quoted(names)
        }
    }

    /// A key some subgraph has for the type and that is known where we are.
    fn shared_key(&self, ty: MTypeId, nodes: &[NodeId]) -> Option<String> {
        let groups = &self.graph.groups_of[ty.0 as usize];
        for (sub, local) in &self.graph.merged.types[ty].sources {
            let s = &self.graph.subs[*sub as usize];
            for key in &s.types[*local].keys {
                let wants = self.graph.wants(*sub, &key.items);
                let at_hand = groups.iter().any(|g| {
                    self.graph.groups[*g as usize].wants == wants
                        && nodes.iter().any(|n| self.closure.has_key(*n, *g))
                });
                if at_hand || nodes.iter().any(|n| self.graph.nodes[*n].sub == *sub) {
                    return Some(key.text.to_string());
                }
            }
        }
        None
    }
}

/// Every name in backquotes.
fn quoted_all(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.map(|n| format!("`{n}`")).collect();
    names.join(", ")
}

fn dedup<'s>(names: &[&'s str]) -> Vec<&'s str> {
    let mut out: Vec<&str> = Vec::new();
    for name in names {
        if !out.contains(name) {
            out.push(name);
        }
    }
    out
}
