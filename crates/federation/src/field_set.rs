//! Field sets: the selections of `@key`, `@requires` and `@provides`, resolved against a schema and hash-consed.
//!
//! Invariants: children are interned before their parents; equal sets have equal ids; a set names every
//! (field, arguments, types) at most once; nesting is at most [`FIELD_SET_DEPTH_MAX`], so the two functions that
//! follow it ([`FieldSets::merge`], [`write_field_set`]) may recurse.

use std::fmt::Write;

use ogive_base::{BitSet, FastMap, IdVec, SourceId, hash::hash_one};
use ogive_schema::{Schema, TypeId, suggest::suggestions, value::const_value};
use ogive_syntax::{
    Limits,
    ast::{self, Document, Selection, ValueKind},
    parse_selection_set,
};

use crate::{FieldSet, FieldSetId, FieldSetItem};

/// Deepest nesting of braces and values in a field set.
pub const FIELD_SET_DEPTH_MAX: u32 = 32;

/// Why a field set makes no sense.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldSetError {
    /// One sentence.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl FieldSetError {
    fn new(message: impl Into<String>) -> Self {
        FieldSetError {
            message: message.into(),
            help: None,
        }
    }
}

/// The interner of field sets over one schema.
#[derive(Debug, Default)]
pub struct FieldSets {
    /// All sets.
    pub sets: IdVec<FieldSetId, FieldSet>,
    by_hash: FastMap<u64, Vec<FieldSetId>>,
    by_text: FastMap<(TypeId, Box<str>), FieldSetId>,
}

/// One open `{ … }` while resolving.
struct Frame<'d> {
    rest: &'d [Selection],
    /// The type whose fields are looked up.
    parent: TypeId,
    /// Concrete types the selections apply to.
    types: BitSet,
    items: Vec<FieldSetItem>,
    /// The field whose sub-selection this is; `None` for fragments, whose items join the enclosing set.
    field: Option<FieldSetItem>,
}

impl<'d> Frame<'d> {
    /// Selections that apply to every type that `parent` can be.
    fn of(schema: &Schema, parent: TypeId, rest: &'d [Selection]) -> Self {
        Frame {
            rest,
            parent,
            types: schema.types[parent].possible.clone(),
            items: Vec::new(),
            field: None,
        }
    }
}

impl FieldSets {
    /// Parses `text` as a selection on `parent` and interns it.
    pub fn resolve(
        &mut self,
        schema: &Schema,
        parent: TypeId,
        text: &str,
    ) -> Result<FieldSetId, FieldSetError> {
        let key = (parent, Box::from(text));
        if let Some(known) = self.by_text.get(&key) {
            return Ok(*known);
        }
        if text.trim().is_empty() {
            return Err(FieldSetError::new("it selects nothing"));
        }
        let limits = Limits {
            depth_max: FIELD_SET_DEPTH_MAX,
            ..Limits::default()
        };
        let parsed = parse_selection_set(text, SourceId(0), &limits);
        if let Some(error) = parsed.errors.first() {
            return Err(FieldSetError::new(format!(
                "it is not a selection: {}",
                error.message
            )));
        }
        let document = &parsed.document;
        let Some(operation) = document.operations().next() else {
            return Err(FieldSetError::new("it selects nothing"));
        };
        let items = &document[operation.selection_set.items];
        let id = self.resolve_items(schema, parent, document, items)?;
        self.by_text.insert(key, id);
        Ok(id)
    }

    fn resolve_items(
        &mut self,
        schema: &Schema,
        parent: TypeId,
        document: &Document,
        items: &[Selection],
    ) -> Result<FieldSetId, FieldSetError> {
        let mut open = vec![Frame::of(schema, parent, items)];
        loop {
            let depth = open.len();
            let Some(frame) = open.last_mut() else {
                // Unreachable: the bottom frame returns below.
                return Err(FieldSetError::new("it selects nothing"));
            };
            let Some((selection, rest)) = frame.rest.split_first() else {
                let Some(done) = open.pop() else { continue };
                let Some(above) = open.last_mut() else {
                    return Ok(self.intern(done.items));
                };
                match done.field {
                    None => {
                        for item in done.items {
                            self.add_item(&mut above.items, item);
                        }
                    }
                    Some(mut field) => {
                        field.selection = Some(self.intern(done.items));
                        self.add_item(&mut above.items, field);
                    }
                }
                continue;
            };
            frame.rest = rest;
            debug_assert!(depth <= 2 * FIELD_SET_DEPTH_MAX as usize, "parser's limit");
            match selection {
                Selection::Spread(spread) => {
                    return Err(FieldSetError::new(format!(
                        "`...{}` names a fragment, and a field set has none",
                        document.name(spread.name)
                    )));
                }
                Selection::Inline(inline) => {
                    no_directives(document, inline.directives)?;
                    let (parent, types) = match inline.type_condition {
                        None => (frame.parent, frame.types.clone()),
                        Some(name) => {
                            let condition = type_condition(schema, document.name(name))?;
                            let possible = &schema.types[condition].possible;
                            (condition, frame.types.intersection(possible))
                        }
                    };
                    let rest = &document[inline.selection_set.items];
                    open.push(Frame {
                        types,
                        ..Frame::of(schema, parent, rest)
                    });
                }
                Selection::Field(field) => {
                    let item = field_item(schema, frame, document, field)?;
                    match sub_selection(schema, document, field, &item)? {
                        None => self.add_item(&mut frame.items, item),
                        Some(below) => open.push(Frame {
                            field: Some(item),
                            ..below
                        }),
                    }
                }
            }
        }
    }

    /// The id of the set with these members.
    pub fn intern(&mut self, items: Vec<FieldSetItem>) -> FieldSetId {
        let set = FieldSet { items };
        let hash = hash_one(
            &set.items
                .iter()
                .map(|i| (i.field, &i.types, i.selection, i.args.len()))
                .collect::<Vec<_>>(),
        );
        let bucket = self.by_hash.entry(hash).or_default();
        if let Some(known) = bucket.iter().find(|id| self.sets[**id] == set) {
            return *known;
        }
        let id = self.sets.push(set);
        bucket.push(id);
        id
    }

    /// The set that selects what either selects, `a`'s members first.
    pub fn merge(&mut self, a: FieldSetId, b: FieldSetId) -> FieldSetId {
        if a == b {
            return a;
        }
        let mut items = self.sets[a].items.clone();
        for item in self.sets[b].items.clone() {
            self.add_item(&mut items, item);
        }
        self.intern(items)
    }

    /// Adds one member; a member that is there already takes over its sub-selection.
    fn add_item(&mut self, items: &mut Vec<FieldSetItem>, item: FieldSetItem) {
        let known = items
            .iter_mut()
            .find(|i| i.field == item.field && i.types == item.types && i.args == item.args);
        match known {
            None => items.push(item),
            Some(known) => {
                if let (Some(a), Some(b)) = (known.selection, item.selection) {
                    known.selection = Some(self.merge(a, b));
                }
            }
        }
    }
}

fn no_directives(
    document: &Document,
    list: ast::List<ast::Directive>,
) -> Result<(), FieldSetError> {
    match document[list].first() {
        None => Ok(()),
        Some(directive) => Err(FieldSetError::new(format!(
            "`@{}` stands in a field set, where directives have no meaning",
            document.name(directive.name)
        ))),
    }
}

fn type_condition(schema: &Schema, name: &str) -> Result<TypeId, FieldSetError> {
    let composite = |id: &TypeId| schema.types[*id].kind.is_composite();
    schema
        .type_by_name(name)
        .filter(composite)
        .ok_or_else(|| FieldSetError {
            message: format!("`... on {name}` names no object, interface or union"),
            help: did_you_mean(name, schema.types().map(|(id, _)| schema.type_name(id))),
        })
}

fn field_item(
    schema: &Schema,
    frame: &Frame<'_>,
    document: &Document,
    field: &ast::Field,
) -> Result<FieldSetItem, FieldSetError> {
    no_directives(document, field.directives)?;
    let name = document.name(field.name);
    if field.alias.is_some() {
        return Err(FieldSetError::new(format!(
            "`{name}` has an alias, and a representation uses field names"
        )));
    }
    let mut item = FieldSetItem {
        field: None,
        types: frame.types.clone(),
        args: Vec::new(),
        selection: None,
    };
    if name == "__typename" {
        return Ok(item);
    }
    let parent = &schema.types[frame.parent];
    let id = schema.field_by_name(frame.parent, name).ok_or_else(|| {
        let fields = parent.fields.iter().map(|f| schema.field_name(*f));
        FieldSetError {
            message: format!("`{}` has no field `{name}`", schema.type_name(frame.parent)),
            help: did_you_mean(name, fields),
        }
    })?;
    item.field = Some(id);
    for argument in &document[field.arguments] {
        let arg_name = document.name(argument.name);
        if schema
            .arg_by_name(&schema.fields[id].args, arg_name)
            .is_none()
        {
            return Err(FieldSetError::new(format!(
                "`{}` has no argument `{arg_name}`",
                schema.field_coordinate(id)
            )));
        }
        if has_variable(document, &argument.value) {
            return Err(FieldSetError::new(format!(
                "argument `{arg_name}` uses a variable, and a field set has none"
            )));
        }
        let value = const_value(document, &argument.value);
        item.args.push((arg_name.into(), value));
    }
    // Definition order, so that equal selections are equal however they were written.
    let order = |name: &str| {
        schema.fields[id]
            .args
            .iter()
            .position(|a| schema.name(schema.inputs[*a].name) == name)
    };
    item.args.sort_by_key(|(name, _)| order(name));
    Ok(item)
}

/// What is selected below a field: something if its type has fields, else nothing.
fn sub_selection<'d>(
    schema: &Schema,
    document: &'d Document,
    field: &ast::Field,
    item: &FieldSetItem,
) -> Result<Option<Frame<'d>>, FieldSetError> {
    let value = item.field.map(|f| schema.fields[f].ty.id);
    let composite = value.filter(|v| schema.types[*v].kind.is_composite());
    let name = document.name(field.name);
    match (composite, field.selection_set) {
        (None, None) => Ok(None),
        (Some(value), Some(set)) => Ok(Some(Frame::of(schema, value, &document[set.items]))),
        (None, Some(_)) => Err(FieldSetError::new(format!(
            "`{name}` has no fields to select"
        ))),
        (Some(value), None) => Err(FieldSetError {
            message: format!(
                "`{name}` is of type `{}`, so it needs a selection",
                schema.type_name(value)
            ),
            help: Some(format!("write `{name} {{ … }}`")),
        }),
    }
}

/// Whether a value uses a variable somewhere.
pub fn has_variable(document: &Document, value: &ast::Value) -> bool {
    let mut open = vec![*value];
    while let Some(value) = open.pop() {
        match value.kind {
            ValueKind::Variable(_) => return true,
            ValueKind::List(items) => open.extend(&document[items]),
            ValueKind::Object(fields) => open.extend(document[fields].iter().map(|f| f.value)),
            _ => {}
        }
    }
    false
}

/// "did you mean `x`?" for the name closest to an unknown one, if any is close.
pub(crate) fn did_you_mean<'a>(
    name: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let closest = suggestions(name, names).into_iter().next()?;
    Some(format!("did you mean `{closest}`?"))
}

/// Writes a field set as GraphQL, a type condition before every member that does not apply to all of `types`.
/// Recursion is bounded by [`FIELD_SET_DEPTH_MAX`].
pub fn write_field_set(
    schema: &Schema,
    sets: &IdVec<FieldSetId, FieldSet>,
    id: FieldSetId,
    types: &BitSet,
    out: &mut String,
) {
    let mut first = true;
    for item in &sets[id].items {
        for condition in conditions(schema, item, types) {
            out.push_str(if first { "" } else { " " });
            first = false;
            if let Some(condition) = condition {
                let _ = write!(out, "... on {} {{ ", schema.type_name(condition));
            }
            write_item(schema, sets, item, out);
            out.push_str(if condition.is_some() { " }" } else { "" });
        }
    }
}

/// The type conditions that say what a member applies to: none, the member's own parent, or type by type.
fn conditions(schema: &Schema, item: &FieldSetItem, types: &BitSet) -> Vec<Option<TypeId>> {
    if types.is_subset(&item.types) {
        return vec![None];
    }
    if let Some(field) = item.field {
        let parent = schema.fields[field].parent;
        if item.types == types.intersection(&schema.types[parent].possible) {
            return vec![Some(parent)];
        }
    }
    item.types.iter().map(|t| Some(TypeId(t))).collect()
}

fn write_item(
    schema: &Schema,
    sets: &IdVec<FieldSetId, FieldSet>,
    item: &FieldSetItem,
    out: &mut String,
) {
    let Some(field) = item.field else {
        out.push_str("__typename");
        return;
    };
    out.push_str(schema.field_name(field));
    for (i, (name, value)) in item.args.iter().enumerate() {
        let _ = write!(out, "{}{name}: {value}", if i == 0 { "(" } else { ", " });
    }
    out.push_str(if item.args.is_empty() { "" } else { ")" });
    if let Some(selection) = item.selection {
        let inner = &schema.types[schema.fields[field].ty.id].possible;
        out.push_str(" { ");
        write_field_set(schema, sets, selection, inner, out);
        out.push_str(" }");
    }
}
