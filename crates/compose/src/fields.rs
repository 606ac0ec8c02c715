//! Field sets of `@key`, `@requires`, `@provides` and context selections, resolved against one subgraph's schema.
//!
//! Invariant: nesting is bounded by [`DEPTH_MAX`], so what walks a tree of [`Item`]s may recurse.

use ogive_base::SourceId;
use ogive_federation::field_set::has_variable;
use ogive_schema::{
    ConstValue, FieldId, Schema, TypeId, TypeKind, suggest::suggestions, value::const_value,
};
use ogive_syntax::{
    Limits,
    ast::{self, Document},
    parse_selection_set,
};

/// Deepest nesting of a field set.
pub const DEPTH_MAX: u32 = 32;

/// One member of a field set.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// A field; `None` is `__typename`.
    Field {
        /// The field.
        field: Option<FieldId>,
        /// The type it is looked up on.
        parent: TypeId,
        /// Arguments as written.
        args: Vec<(Box<str>, ConstValue)>,
        /// Sub-selection.
        sub: Vec<Item>,
    },
    /// `... on T { }`
    On {
        /// The type condition.
        ty: TypeId,
        /// What is selected.
        sub: Vec<Item>,
    },
}

/// Which family of error codes a problem belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Syntax, unknown names.
    Invalid,
    /// A directive is applied.
    Directive,
}

/// Why a field set makes no sense.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The family.
    pub kind: Kind,
    /// One clause.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

fn invalid(message: String) -> Problem {
    Problem {
        kind: Kind::Invalid,
        message,
        help: None,
    }
}

/// Which type conditions a field set may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conditions {
    /// Types that this subgraph can have there.
    Possible,
    /// On interfaces and unions any type: objects that are required come from other subgraphs, which may know more types.
    Foreign,
    /// Any type: the selection of a context is one text for all types that set the context.
    Any,
}

/// How strictly a field set is read.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Its type conditions.
    pub conditions: Conditions,
    /// Directives are ignored.
    pub ignores_directives: bool,
}

/// Parses `text` as a selection on `parent`.
pub fn read(
    schema: &Schema,
    parent: TypeId,
    text: &str,
    rules: Rules,
) -> Result<Vec<Item>, Problem> {
    if let Some(items) = read_plain(schema, parent, text) {
        return Ok(items);
    }
    let limits = Limits {
        depth_max: DEPTH_MAX,
        ..Limits::default()
    };
    let inner = without_braces(text);
    if inner.trim().is_empty() {
        return Err(invalid("it selects nothing".into()));
    }
    let parsed = parse_selection_set(inner, SourceId(0), &limits);
    if let Some(error) = parsed.errors.first() {
        return Err(invalid(format!("it cannot be read: {}", error.message)));
    }
    let doc = &parsed.document;
    let Some(operation) = doc.operations().next() else {
        return Err(invalid("it selects nothing".into()));
    };
    select(
        schema,
        parent,
        doc,
        &doc[operation.selection_set.items],
        rules,
    )
}

/// A selection, which may be written with its braces.
fn without_braces(text: &str) -> &str {
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
    inner.unwrap_or(trimmed)
}

/// The fields that a field set means, as far as it can be read and they exist: of what is wrong in one place, the rest is
/// used all the same.
pub fn mentioned(schema: &Schema, parent: TypeId, text: &str) -> Vec<FieldId> {
    let limits = Limits {
        depth_max: DEPTH_MAX,
        ..Limits::default()
    };
    let parsed = parse_selection_set(without_braces(text), SourceId(0), &limits);
    let doc = &parsed.document;
    let mut out = Vec::new();
    let Some(operation) = doc.operations().next() else {
        return out;
    };
    let mut open = vec![(operation.selection_set, parent)];
    while let Some((set, parent)) = open.pop() {
        for selection in &doc[set.items] {
            match selection {
                ast::Selection::Field(field) => {
                    let Some(id) = schema.field_by_name(parent, doc.name(field.name)) else {
                        continue;
                    };
                    out.push(id);
                    if let Some(set) = field.selection_set {
                        open.push((set, schema.fields[id].ty.id));
                    }
                }
                ast::Selection::Inline(inline) => {
                    let condition = inline.type_condition.map(|n| doc.name(n));
                    let ty = condition.and_then(|n| schema.type_by_name(n));
                    open.push((inline.selection_set, ty.unwrap_or(parent)));
                }
                ast::Selection::Spread(_) => {}
            }
        }
    }
    out
}

/// The common case without the parser: plain names of leaf fields.
fn read_plain(schema: &Schema, parent: TypeId, text: &str) -> Option<Vec<Item>> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b' ';
    if text.is_empty() || !text.bytes().all(plain) {
        return None;
    }
    let items: Option<Vec<Item>> = text
        .split(' ')
        .filter(|word| !word.is_empty())
        .map(|word| {
            let field = schema.field_by_name(parent, word)?;
            let ty = &schema.types[schema.fields[field].ty.id];
            (!ty.kind.is_composite()).then_some(Item::Field {
                field: Some(field),
                parent,
                args: Vec::new(),
                sub: Vec::new(),
            })
        })
        .collect();
    items.filter(|i| !i.is_empty())
}

fn select(
    schema: &Schema,
    parent: TypeId,
    doc: &Document,
    selections: &[ast::Selection],
    rules: Rules,
) -> Result<Vec<Item>, Problem> {
    let mut out = Vec::with_capacity(selections.len());
    for selection in selections {
        let directives = match selection {
            ast::Selection::Field(f) => f.directives,
            ast::Selection::Inline(f) => f.directives,
            ast::Selection::Spread(f) => f.directives,
        };
        let directive = doc[directives].first();
        if let Some(directive) = directive.filter(|_| !rules.ignores_directives) {
            return Err(Problem {
                kind: Kind::Directive,
                message: format!(
                    "it applies `@{}`, and directives have no meaning there",
                    doc.name(directive.name)
                ),
                help: Some("remove the directive".into()),
            });
        }
        match selection {
            ast::Selection::Spread(spread) => {
                return Err(invalid(format!(
                    "`...{}` names a fragment, and a field set has none",
                    doc.name(spread.name)
                )));
            }
            ast::Selection::Inline(inline) => {
                let ty = match inline.type_condition {
                    None => parent,
                    Some(name) => {
                        let name = doc.name(name);
                        let ty = schema
                            .type_by_name(name)
                            .filter(|t| schema.types[*t].kind.is_composite())
                            .ok_or_else(|| {
                                invalid(format!(
                                    "`{name}` is no object, interface or union of this subgraph"
                                ))
                            })?;
                        let is_accepted = match rules.conditions {
                            Conditions::Any => true,
                            Conditions::Foreign if schema.types[parent].kind.is_abstract() => true,
                            Conditions::Foreign | Conditions::Possible => schema.types[parent]
                                .possible
                                .intersects(&schema.types[ty].possible),
                        };
                        if !is_accepted {
                            return Err(invalid(format!(
                                "a `{}` is never a `{name}`",
                                schema.type_name(parent)
                            )));
                        }
                        ty
                    }
                };
                let sub = select(schema, ty, doc, &doc[inline.selection_set.items], rules)?;
                out.push(Item::On { ty, sub });
            }
            ast::Selection::Field(field) => {
                out.push(field_item(schema, parent, doc, field, rules)?)
            }
        }
    }
    Ok(out)
}

fn field_item(
    schema: &Schema,
    parent: TypeId,
    doc: &Document,
    field: &ast::Field,
    rules: Rules,
) -> Result<Item, Problem> {
    let name = doc.name(field.name);
    if field.alias.is_some() {
        return Err(invalid(format!(
            "`{name}` has an alias, and a field set has none"
        )));
    }
    if name == "__typename" {
        return Ok(Item::Field {
            field: None,
            parent,
            args: Vec::new(),
            sub: Vec::new(),
        });
    }
    let Some(id) = schema.field_by_name(parent, name) else {
        let known = schema.types[parent]
            .fields
            .iter()
            .map(|f| schema.field_name(*f));
        let help = suggestions(name, known)
            .first()
            .map(|s| format!("did you mean `{s}`?"));
        return Err(Problem {
            kind: Kind::Invalid,
            message: format!(
                "`{}` has no field `{name}` in this subgraph",
                schema.type_name(parent)
            ),
            help: help.or_else(|| {
                Some(format!(
                    "declare `{name}` on `{}`, as `@external` if another subgraph resolves it",
                    schema.type_name(parent)
                ))
            }),
        });
    };
    let row = &schema.fields[id];
    let mut args = Vec::new();
    for argument in &doc[field.arguments] {
        let arg = doc.name(argument.name);
        if schema.arg_by_name(&row.args, arg).is_none() {
            return Err(invalid(format!(
                "`{}` has no argument `{arg}`",
                schema.field_coordinate(id)
            )));
        }
        if has_variable(doc, &argument.value) {
            return Err(invalid(format!(
                "argument `{arg}` uses a variable, and a field set has none"
            )));
        }
        args.push((Box::from(arg), const_value(doc, &argument.value)));
    }
    let ty = row.ty.id;
    let sub = match (schema.types[ty].kind.is_composite(), field.selection_set) {
        (false, None) => Vec::new(),
        (true, Some(set)) => select(schema, ty, doc, &doc[set.items], rules)?,
        (false, Some(_)) => {
            return Err(invalid(format!(
                "`{}` has no fields to select",
                schema.field_coordinate(id)
            )));
        }
        (true, None) => {
            return Err(Problem {
                kind: Kind::Invalid,
                message: format!(
                    "`{}` is of type `{}` and needs a selection",
                    schema.field_coordinate(id),
                    schema.type_name(ty)
                ),
                help: Some(format!("write `{name} {{ … }}`")),
            });
        }
    };
    Ok(Item::Field {
        field: Some(id),
        parent,
        args,
        sub,
    })
}

/// Calls `see` for every field of a field set, inner ones after outer ones.
pub fn each_field(items: &[Item], see: &mut dyn FnMut(FieldId, &[Item])) {
    for item in items {
        match item {
            Item::Field { field, sub, .. } => {
                if let Some(field) = field {
                    see(*field, sub);
                }
                each_field(sub, see);
            }
            Item::On { sub, .. } => each_field(sub, see),
        }
    }
}

/// The same field on the implementations of an interface, or the field itself.
pub fn implementations(schema: &Schema, field: FieldId) -> Vec<FieldId> {
    let row = &schema.fields[field];
    if schema.types[row.parent].kind != TypeKind::Interface {
        return Vec::new();
    }
    schema.types[row.parent]
        .possible
        .iter()
        .filter_map(|t| schema.fields_by_name.get(&(TypeId(t), row.name)).copied())
        .collect()
}
