//! Contracts: a variant of a supergraph with only what some tags let through.
//!
//! Works on the merged graph, so one composition serves any number of contracts. Tags are those of the merged
//! element, and of its type. With `include`, fields, input fields, enum values and scalars stay if they carry one of the tags;
//! with `exclude`, they go if they carry one; arguments go by `exclude` only. A type none of whose members stays goes
//! too. What goes becomes `@inaccessible`: the subgraphs still resolve it for keys and requirements.

use ogive_base::{Diagnostic, FastSet};
use ogive_schema::{ConstValue, OperationKind, TypeKind};

use crate::{
    Composed,
    merge::{Applied, MTypeId, Merged},
    post, print,
    report::Report,
    spec::{ELEMENTS, Word},
};

/// Which tags a contract lets through.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContractFilter {
    /// Only what carries one of these stays; everything if empty.
    pub include: Vec<String>,
    /// What carries one of these goes.
    pub exclude: Vec<String>,
    /// Whether types that cannot be reached from the roots go too.
    pub hide_unreachable: bool,
}

/// A variant.
#[derive(Clone, Debug, Default)]
pub struct Contract {
    /// Its supergraph, unless there are errors.
    pub supergraph_sdl: Option<String>,
    /// Why there is none.
    pub errors: Vec<Diagnostic>,
}

impl Composed {
    /// Applies a contract; `None` if composition failed.
    pub fn contract(&self, filter: &ContractFilter) -> Option<Contract> {
        self.with_graph(|graph| {
            let mut merged = graph.merged.clone();
            hide(&mut merged, filter);
            let mut report = Report::default();
            post::check(&merged, &graph.subs, &mut report);
            let supergraph_sdl =
                (!report.has_errors()).then(|| print::supergraph(&merged, &graph.subs, graph.join));
            Contract {
                supergraph_sdl,
                errors: report.errors,
            }
        })
    }
}

struct Judge<'f> {
    filter: &'f ContractFilter,
}

impl Judge<'_> {
    fn has(list: &[Applied], tags: &[String]) -> bool {
        list.iter().any(|a| {
            a.word == Some(Word::Tag)
                && a.arg("name")
                    .and_then(ConstValue::as_str)
                    .is_some_and(|n| tags.iter().any(|t| t == n))
        })
    }
    /// Whether a member goes, given its own tags and its type's.
    fn goes(&self, own: &[Applied], parent: &[Applied]) -> bool {
        let f = self.filter;
        let kept =
            f.include.is_empty() || Self::has(own, &f.include) || Self::has(parent, &f.include);
        !kept || Self::has(own, &f.exclude) || Self::has(parent, &f.exclude)
    }
    fn excluded(&self, own: &[Applied]) -> bool {
        Self::has(own, &self.filter.exclude)
    }
}

fn is_hidden(list: &[Applied]) -> bool {
    list.iter().any(|a| a.word == Some(Word::Inaccessible))
}

fn hide(merged: &mut Merged, filter: &ContractFilter) {
    let judge = Judge { filter };
    let word = Word::Inaccessible as usize;
    let name = merged.features.names[word]
        .clone()
        .unwrap_or_else(|| ELEMENTS[word].name.into());
    let mark = Applied {
        name,
        args: Vec::new(),
        word: Some(Word::Inaccessible),
        graphs: Vec::new(),
    };
    let mut any = merged.features.used[word];
    let mut set = |list: &mut Vec<Applied>| {
        if !is_hidden(list) {
            list.push(mark.clone());
        }
        any = true;
    };
    for id in merged.types.ids() {
        if merged.types[id].built_in {
            continue;
        }
        let parent = merged.types[id].directives.clone();
        for field in merged.types[id].fields.clone() {
            let row = &mut merged.fields[field];
            if judge.goes(&row.directives, &parent) {
                set(&mut row.directives);
            }
            for arg in &mut row.args {
                if judge.excluded(&arg.directives) {
                    set(&mut arg.directives);
                }
            }
        }
        let row = &mut merged.types[id];
        for input in &mut row.inputs {
            if judge.goes(&input.directives, &parent) {
                set(&mut input.directives);
            }
        }
        for value in &mut row.values {
            if judge.goes(&value.directives, &parent) {
                set(&mut value.directives);
            }
        }
        if row.kind == TypeKind::Scalar && judge.goes(&[], &parent) {
            set(&mut row.directives);
        }
    }
    // Types without a visible member go; unions last, because their members are types.
    for union in [false, true] {
        for id in merged.types.ids() {
            let row = &merged.types[id];
            if row.built_in
                || (row.kind == TypeKind::Union) != union
                || row.kind == TypeKind::Scalar
            {
                continue;
            }
            let empty = match row.kind {
                TypeKind::Object | TypeKind::Interface => row
                    .fields
                    .iter()
                    .all(|f| is_hidden(&merged.fields[*f].directives)),
                TypeKind::InputObject => row.inputs.iter().all(|i| is_hidden(&i.directives)),
                TypeKind::Enum => row.values.iter().all(|v| is_hidden(&v.directives)),
                _ => row
                    .members
                    .iter()
                    .all(|m| is_hidden(&merged.types[*m].directives)),
            };
            // A query root without fields stays, so that the error says so.
            if (empty && merged.root(OperationKind::Query) != Some(id))
                || judge.excluded(&row.directives)
            {
                set(&mut merged.types[id].directives);
            }
        }
    }
    if filter.hide_unreachable {
        for id in unreachable(merged) {
            set(&mut merged.types[id].directives);
        }
    }
    merged.features.used[word] = any;
}

/// Types nothing visible leads to.
fn unreachable(merged: &Merged) -> Vec<MTypeId> {
    let mut seen: FastSet<MTypeId> = FastSet::default();
    let mut open: Vec<MTypeId> = [
        OperationKind::Query,
        OperationKind::Mutation,
        OperationKind::Subscription,
    ]
    .into_iter()
    .filter_map(|k| merged.root(k))
    .collect();
    while let Some(ty) = open.pop() {
        let row = &merged.types[ty];
        if is_hidden(&row.directives) || !seen.insert(ty) {
            continue;
        }
        for field in &row.fields {
            let field = &merged.fields[*field];
            if is_hidden(&field.directives) {
                continue;
            }
            open.push(field.ty.ty);
            open.extend(
                field
                    .args
                    .iter()
                    .filter(|a| !is_hidden(&a.directives))
                    .map(|a| a.ty.ty),
            );
        }
        open.extend(
            row.inputs
                .iter()
                .filter(|i| !is_hidden(&i.directives))
                .map(|i| i.ty.ty),
        );
        open.extend(row.possible.iter().map(MTypeId));
        open.extend(row.interfaces.iter().copied());
    }
    merged
        .types
        .iter()
        .filter(|(id, row)| !row.built_in && !seen.contains(id))
        .map(|(id, _)| id)
        .collect()
}
