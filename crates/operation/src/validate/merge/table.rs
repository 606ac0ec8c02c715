//! Every field of a document once, with what merging compares, and the selection sets that hold them.

use std::{fmt::Write, ops::Range};

use ogive_base::FastMap;
use ogive_schema::{Type, TypeId, TypeKind, Wrapping};
use ogive_syntax::ast::{Argument, Definition, Directive, Field, List, Selection, SelectionSet};

use super::super::{context::Context, incremental, literal};

/// A field selection.
pub(super) struct Row<'a> {
    pub(super) field: &'a Field,
    /// Its response name.
    pub(super) response: u32,
    /// The type it is selected on, if known.
    pub(super) parent: Option<TypeId>,
    /// The parent if it is an object type: fields on different object types never meet in one response object.
    pub(super) object: Option<TypeId>,
    /// Its name, and its arguments whatever their order.
    pub(super) call: Call,
    /// Its type, if known.
    pub(super) ty: Option<Type>,
    /// The lists, non-nulls and leaf type of `ty`; all composite types count as one.
    pub(super) shape: Option<(Wrapping, Option<TypeId>)>,
    /// Its own selection set.
    pub(super) set: Option<u32>,
}

/// What a field asks for: equal calls on one object give one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Call {
    pub(super) name: u32,
    pub(super) arguments: u32,
    /// Its `@stream`: whether there is one, and its arguments.
    pub(super) stream: u32,
}

/// A selection set with its inline fragments flattened.
#[derive(Default)]
pub(super) struct Set {
    /// Its fields.
    pub(super) rows: Range<u32>,
    /// The fragments it spreads, each once, as sets.
    pub(super) spreads: Vec<u32>,
}

/// All fields and selection sets. The set of fragment `i` is set `i`.
pub(super) struct Table<'a> {
    pub(super) rows: Vec<Row<'a>>,
    pub(super) sets: Vec<Set>,
    /// Sets of the operations, in document order.
    pub(super) roots: Vec<u32>,
    /// By set: the place of its opening brace.
    pub(super) places: Vec<u32>,
    /// Number of different response names and field names.
    pub(super) names: usize,
}

/// Names that room is made for at once.
const NAMES: usize = 56;

/// Dense numbers for strings.
#[derive(Default)]
struct Numbers<K> {
    map: FastMap<K, u32>,
}

impl<K: std::hash::Hash + Eq> Numbers<K> {
    fn of(&mut self, key: K) -> u32 {
        let next = self.map.len() as u32;
        *self.map.entry(key).or_insert(next)
    }
}

impl<'a> Table<'a> {
    pub(super) fn row(&self, row: u32) -> &Row<'a> {
        &self.rows[row as usize]
    }

    pub(super) fn new(cx: &Context<'a>) -> Self {
        let selections = cx.doc.selection_count();
        let mut table = Table {
            rows: Vec::with_capacity(selections),
            sets: Vec::with_capacity(selections / 2 + 1),
            roots: Vec::new(),
            places: Vec::with_capacity(selections / 2 + 1),
            names: 0,
        };
        let mut pending: Vec<(&'a SelectionSet, Option<TypeId>)> =
            Vec::with_capacity(selections / 2 + 1);
        for fragment in &cx.fragments {
            let ty = cx.schema.type_by_name(cx.text(fragment.type_condition));
            pending.push((&fragment.selection_set, cx.composite(ty)));
        }
        for definition in &cx.doc.definitions {
            if let Definition::Operation(operation) = definition {
                let root = cx.composite(cx.schema.root(operation.kind));
                table.roots.push(pending.len() as u32);
                pending.push((&operation.selection_set, root));
            }
        }
        let mut names = Numbers::default();
        names.map.reserve(selections.min(NAMES));
        let mut arguments = Numbers::default();
        arguments.of(String::new());
        // By fragment: the set that spread it last.
        let mut spread_in = vec![usize::MAX; cx.fragments.len()];
        let mut open = Vec::new();
        let mut next = 0;
        while let Some((set, parent)) = pending.get(next).copied() {
            table.places.push(set.span.start);
            next += 1;
            let start = table.rows.len() as u32;
            let mut spreads = Vec::new();
            open.push((cx.doc[set.items].iter(), parent));
            while let Some((selections, parent)) = open.last_mut() {
                let parent = *parent;
                match selections.next() {
                    None => {
                        open.pop();
                    }
                    Some(Selection::Field(field)) => {
                        let mut row = row(cx, field, parent, &mut names, &mut arguments);
                        if let Some(set) = &field.selection_set {
                            row.set = Some(pending.len() as u32);
                            pending.push((set, cx.composite(row.ty.map(|ty| ty.id))));
                        }
                        table.rows.push(row);
                    }
                    Some(Selection::Spread(spread)) => {
                        if let Some(fragment) = cx.fragment(cx.text(spread.name))
                            && std::mem::replace(&mut spread_in[fragment], next) != next
                        {
                            spreads.push(fragment as u32);
                        }
                    }
                    Some(Selection::Inline(inline)) => {
                        let parent = match inline.type_condition {
                            Some(name) => cx.composite(cx.schema.type_by_name(cx.text(name))),
                            None => parent,
                        };
                        open.push((cx.doc[inline.selection_set.items].iter(), parent));
                    }
                }
            }
            let rows = start..table.rows.len() as u32;
            table.sets.push(Set { rows, spreads });
        }
        table.names = names.map.len();
        table
    }
}

fn row<'a>(
    cx: &Context<'a>,
    field: &'a Field,
    parent: Option<TypeId>,
    names: &mut Numbers<&'a str>,
    arguments: &mut Numbers<String>,
) -> Row<'a> {
    let name = cx.text(field.name);
    let ty = cx.field(parent, name).and_then(|f| cx.field_type(f));
    let response = names.of(cx.text(field.response_key()));
    let called = match field.alias {
        Some(_) => names.of(name),
        None => response,
    };
    Row {
        field,
        response,
        parent,
        object: parent.filter(|id| cx.schema.types[*id].kind == TypeKind::Object),
        call: Call {
            name: called,
            arguments: if field.arguments.is_empty() {
                0
            } else {
                arguments.of(canonical(cx, field.arguments))
            },
            stream: match streamed(cx, field) {
                None => 0,
                Some(stream) => 1 + arguments.of(canonical(cx, stream.arguments)),
            },
        },
        ty,
        shape: ty.map(|ty| {
            let leaf = cx.schema.types[ty.id].kind.is_leaf();
            (ty.wrapping, leaf.then_some(ty.id))
        }),
        set: None,
    }
}

/// The `@stream` of a field.
fn streamed<'a>(cx: &Context<'a>, field: &Field) -> Option<&'a Directive> {
    if field.directives.is_empty() {
        return None;
    }
    let mut directives = cx.doc[field.directives].iter();
    directives.find(|d| cx.text(d.name) == incremental::STREAM)
}

/// A text that is equal for equal arguments, whatever their order. Arguments that contradict each other (which is
/// reported by itself) are equal to none, not even to the same ones elsewhere.
fn canonical(cx: &Context<'_>, arguments: List<Argument>) -> String {
    let mut sorted: Vec<&Argument> = cx.doc[arguments].iter().collect();
    sorted.sort_by_key(|a| cx.text(a.name));
    let mut out = String::new();
    let mut last = ("", String::new());
    for argument in sorted {
        let name = cx.text(argument.name);
        let mut value = String::new();
        literal::write_canonical(cx.doc, &argument.value, &mut value);
        if last.0 == name && last.1 != value {
            let _ = write!(out, "@{}", argument.span.start);
        }
        let _ = write!(out, "{name}:{value},");
        last = (name, value);
    }
    out
}
