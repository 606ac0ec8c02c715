//! Execution by the letter of the specification, section 6, straight to response bytes.
//!
//! Why bytes: an answer is written once, front to back; when a null propagates, the output is cut back to where the
//! nearest nullable value began and `null` is written there (6.4.4). `CollectFields` (6.3.2) runs once per selection
//! set and concrete type and is reused for every object of a list.
//!
//! Invariants: response keys in order of first appearance; fields run one after the other, depth first, so
//! mutations are serial; a field error is reported once, with the path of the field that raised it; nesting is
//! bounded by [`DEPTH_MAX`], answers by [`ANSWER_BYTES_MAX`].
//!
//! Reading order: this file (requests and selection sets), `complete` (values), `introspect` (`__schema`, `__type`).

mod complete;
pub(crate) mod introspect;

use std::{rc::Rc, sync::Arc};

use ogive_base::{FastMap, diagnostic::line_column};
use ogive_schema::{FieldId, OperationKind, TypeId};
use ogive_syntax::{Document, ast};
use serde_json::{Map, Value};

use crate::{
    field_fault::{CoordinateFaults, FaultAction},
    input::{self, Values},
    model::{FieldSet, Model},
    node::{FieldCall, FieldError, Meta, Node, NodeKind, Resolved},
    resolver::Resolver,
};

/// Deepest nesting of response objects and lists; deeper values are a field error.
pub(crate) const DEPTH_MAX: usize = 200;
/// Most field errors of one answer; further ones are dropped.
pub(crate) const ERRORS_MAX: usize = 10_000;

/// Longest data of one answer; what comes after is a field error, and lists end there.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 << 20;

/// What one execution works with.
pub(crate) struct Context<'s> {
    pub(crate) model: &'s Model,
    pub(crate) resolver: &'s Resolver,
    pub(crate) document: &'s Document,
    pub(crate) variables: &'s Values,
    /// Faults by field.
    pub(crate) faults: &'s CoordinateFaults,
    /// Refuse external fields that no path provides.
    pub(crate) strict_external: bool,
    /// The number of the event of a subscription, counted from 0.
    pub(crate) event: u64,
}

/// The data of an answer and its field errors, each as JSON text.
pub(crate) struct Answer {
    pub(crate) data: Vec<u8>,
    pub(crate) errors: Vec<Vec<u8>>,
    /// Representations that were asked for.
    pub(crate) n_entities: usize,
}

/// The value was nulled; the nearest nullable ancestor takes the null.
#[derive(Debug)]
struct Nulled;

#[derive(Clone, Debug)]
enum Segment<'s> {
    Key(&'s str),
    Index(usize),
}

/// One response key of a grouped field set.
struct Group<'s> {
    id: u32,
    key: &'s str,
    what: What,
    fields: Vec<&'s ast::Field>,
    arguments: Result<Values, String>,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Field(FieldId),
    Typename,
    Schema,
    Type,
    /// Not defined on the type; only when validation is off.
    Unknown,
}

struct Execution<'s> {
    context: &'s Context<'s>,
    fragments: FastMap<&'s str, &'s ast::FragmentDefinition>,
    /// `CollectSubfields` by group and concrete type.
    collected: FastMap<(u32, TypeId), Rc<[Group<'s>]>>,
    groups: u32,
    path: Vec<Segment<'s>>,
    out: Vec<u8>,
    errors: Vec<Vec<u8>>,
    n_entities: usize,
}

/// `ExecuteQuery` and `ExecuteMutation` (6.2.1, 6.2.2).
pub(crate) fn execute<'s>(
    context: &'s Context<'s>,
    operation: &'s ast::OperationDefinition,
    root: TypeId,
) -> Answer {
    let mut execution = Execution {
        context,
        fragments: context
            .document
            .fragments()
            .map(|f| (context.document.name(f.name), f))
            .collect(),
        collected: FastMap::default(),
        groups: 0,
        path: Vec::new(),
        out: Vec::with_capacity(1024),
        errors: Vec::new(),
        n_entities: 0,
    };
    let node = Node::new(root, NodeKind::Root);
    let groups = execution.collect(root, &[operation.selection_set]);
    let is_query = operation.kind == OperationKind::Query;
    if execution.selection_set(&node, &groups, is_query).is_err() {
        execution.out.clear();
        execution.out.extend_from_slice(b"null");
    }
    Answer {
        data: execution.out,
        errors: execution.errors,
        n_entities: execution.n_entities,
    }
}

impl<'s> Execution<'s> {
    /// `ExecuteSelectionSet` (6.3).
    fn selection_set(
        &mut self,
        node: &Node<'s>,
        groups: &[Group<'s>],
        query_root: bool,
    ) -> Result<(), Nulled> {
        self.out.push(b'{');
        for (i, group) in groups.iter().enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            // A response key is a GraphQL name: nothing to escape.
            self.out.push(b'"');
            self.out.extend_from_slice(group.key.as_bytes());
            self.out.extend_from_slice(b"\":");
            self.path.push(Segment::Key(group.key));
            self.field(node, group, query_root)?;
            self.path.pop();
        }
        self.out.push(b'}');
        Ok(())
    }

    /// `ExecuteField` (6.4).
    fn field(
        &mut self,
        node: &Node<'s>,
        group: &Group<'s>,
        query_root: bool,
    ) -> Result<(), Nulled> {
        let schema = &self.context.model.schema;
        match group.what {
            What::Typename => {
                self.write_string(schema.type_name(node.ty));
                Ok(())
            }
            What::Schema if query_root => {
                let schema_type = schema.type_by_name("__Schema").unwrap_or(node.ty);
                let value = Node::new(schema_type, NodeKind::Meta(Meta::Schema));
                self.object(group, value)
            }
            What::Type if query_root => self.meta_type(group),
            What::Field(id) => {
                let definition = &schema.fields[id];
                let resolved = match &group.arguments {
                    Err(message) => Resolved::error(message.clone()),
                    Ok(arguments) => self.resolve(node, id, arguments),
                };
                self.complete(
                    group,
                    id,
                    definition.ty.id,
                    definition.ty.wrapping,
                    resolved,
                )
            }
            _ => {
                self.error(
                    group,
                    &FieldError {
                        message: format!(
                            "Cannot query field \"{}\" on type \"{}\".",
                            group.key,
                            schema.type_name(node.ty)
                        ),
                        extensions: None,
                    },
                );
                self.out.extend_from_slice(b"null");
                Ok(())
            }
        }
    }

    /// `ResolveFieldValue` (6.4.2), with faults and the refusal of external fields before it.
    fn resolve(&mut self, node: &Node<'s>, id: FieldId, arguments: &Values) -> Resolved<'s> {
        let Context {
            model,
            resolver,
            faults,
            ..
        } = self.context;
        let schema = &model.schema;
        if let Some(fault) = faults.get(&id) {
            match &fault.action {
                FaultAction::Error(error) => return Resolved::Error(Box::new(error.clone())),
                FaultAction::Null => return Resolved::Null,
                FaultAction::Raw(value) => return Resolved::Raw(value.clone()),
            }
        }
        if self.path.len() > DEPTH_MAX {
            return Resolved::error(format!(
                "The answer is nested deeper than {DEPTH_MAX} levels"
            ));
        }
        if self.out.len() > ANSWER_BYTES_MAX {
            return Resolved::error(format!(
                "The answer is longer than {ANSWER_BYTES_MAX} bytes"
            ));
        }
        let name = schema.field_name(id);
        match &node.kind {
            NodeKind::Meta(meta) => introspect::resolve(schema, *meta, name, arguments),
            NodeKind::Service if name == "sdl" => Resolved::leaf(&*model.sdl),
            NodeKind::Service => Resolved::Null,
            _ => {
                let facts = model.fields.get(&id);
                let provided = node.provided.as_ref().and_then(|p| p.get(name));
                if self.context.strict_external
                    && provided.is_none()
                    && facts.is_some_and(|f| f.external)
                    && !model.key_fields.contains(&id)
                {
                    return Resolved::error(format!(
                        "Field \"{}\" is external here and not provided on this path.",
                        schema.field_coordinate(id)
                    ));
                }
                if matches!(node.kind, NodeKind::Root) {
                    match name {
                        "_service" => {
                            let ty = schema.fields[id].ty.id;
                            return Resolved::Object(Node::new(ty, NodeKind::Service));
                        }
                        "_entities" => return self.entities(arguments),
                        _ => {}
                    }
                }
                let mut resolved = resolver.field(&FieldCall {
                    model,
                    node,
                    field: id,
                    arguments,
                    event: self.context.event,
                });
                let here = facts.and_then(|f| f.provides.as_deref());
                if here.is_some() || provided.is_some_and(|p| !p.sub.is_empty()) {
                    let mut set = here.cloned().unwrap_or_default();
                    if let Some(item) = provided {
                        set.items.extend(item.sub.items.iter().cloned());
                    }
                    provide(&mut resolved, &Arc::new(set));
                }
                resolved
            }
        }
    }

    fn entities(&mut self, arguments: &Values) -> Resolved<'s> {
        let Some(Value::Array(representations)) = arguments.get("representations") else {
            return Resolved::error("\"representations\" must be a list");
        };
        self.n_entities += representations.len();
        Resolved::List(representations.iter().map(|r| self.entity(r)).collect())
    }

    fn entity(&self, representation: &Value) -> Resolved<'s> {
        let model = self.context.model;
        let Value::Object(map) = representation else {
            return Resolved::error("A representation must be an object");
        };
        let Some(Value::String(typename)) = map.get("__typename") else {
            return Resolved::error("A representation must have a \"__typename\"");
        };
        let Some(ty) = model.schema.type_by_name(typename) else {
            return Resolved::error(format!("Unknown type \"{typename}\" in a representation"));
        };
        let Some(keys) = model.keys.get(&ty) else {
            return Resolved::error(format!("Type \"{typename}\" is not an entity here"));
        };
        if !keys.iter().any(|k| k.resolvable) {
            return Resolved::error(format!("Type \"{typename}\" has no resolvable key here"));
        }
        self.context.resolver.entity(model, ty, keys, map)
    }

    /// `CollectFields` and `CollectSubfields` (6.3.2, 6.4.3).
    fn collect(&mut self, ty: TypeId, sets: &[ast::SelectionSet]) -> Rc<[Group<'s>]> {
        let mut grouped: Vec<(&'s str, Vec<&'s ast::Field>)> = Vec::new();
        let mut index: FastMap<&'s str, usize> = FastMap::default();
        let mut visited: Vec<&'s str> = Vec::new();
        let document = self.context.document;
        // A stack of iterators instead of recursion; the top is the innermost fragment.
        let mut stack: Vec<std::slice::Iter<'s, ast::Selection>> = sets
            .iter()
            .rev()
            .map(|s| document[s.items].iter())
            .collect();
        while let Some(top) = stack.last_mut() {
            let Some(selection) = top.next() else {
                stack.pop();
                continue;
            };
            match selection {
                ast::Selection::Field(field) => {
                    if !self.included(field.directives) {
                        continue;
                    }
                    let key = document.name(field.response_key());
                    let at = *index.entry(key).or_insert_with(|| {
                        grouped.push((key, Vec::new()));
                        grouped.len() - 1
                    });
                    grouped[at].1.push(field);
                }
                ast::Selection::Spread(spread) => {
                    let name = document.name(spread.name);
                    if !self.included(spread.directives) || visited.contains(&name) {
                        continue;
                    }
                    visited.push(name);
                    let Some(fragment) = self.fragments.get(name) else {
                        continue;
                    };
                    if self.applies(ty, document.name(fragment.type_condition)) {
                        stack.push(document[fragment.selection_set.items].iter());
                    }
                }
                ast::Selection::Inline(inline) => {
                    let applies = inline
                        .type_condition
                        .is_none_or(|c| self.applies(ty, document.name(c)));
                    if applies && self.included(inline.directives) {
                        stack.push(document[inline.selection_set.items].iter());
                    }
                }
            }
        }
        grouped
            .into_iter()
            .map(|(key, fields)| self.group(ty, key, fields))
            .collect()
    }

    fn group(&mut self, ty: TypeId, key: &'s str, fields: Vec<&'s ast::Field>) -> Group<'s> {
        let schema = &self.context.model.schema;
        let document = self.context.document;
        let name = document.name(fields[0].name);
        let what = match name {
            "__typename" => What::Typename,
            "__schema" => What::Schema,
            "__type" => What::Type,
            _ => schema
                .field_by_name(ty, name)
                .map_or(What::Unknown, What::Field),
        };
        let arguments = match what {
            What::Field(id) => input::coerce_arguments(
                schema,
                document,
                &schema.fields[id].args,
                &document[fields[0].arguments],
                self.context.variables,
            ),
            _ => Ok(Values::new()),
        };
        self.groups += 1;
        Group {
            id: self.groups,
            key,
            what,
            fields,
            arguments,
        }
    }

    /// `DoesFragmentTypeApply` (6.3.2).
    fn applies(&self, ty: TypeId, condition: &str) -> bool {
        let schema = &self.context.model.schema;
        schema
            .type_by_name(condition)
            .is_some_and(|c| schema.is_subtype(ty, c))
    }

    /// `@skip` and `@include` (6.3.2).
    fn included(&self, directives: ast::List<ast::Directive>) -> bool {
        let document = self.context.document;
        document[directives].iter().all(|directive| {
            let wanted = match document.name(directive.name) {
                "skip" => false,
                "include" => true,
                _ => return true,
            };
            let condition = document[directive.arguments]
                .iter()
                .find(|a| document.name(a.name) == "if")
                .and_then(|a| match a.value.kind {
                    ast::ValueKind::Boolean(b) => Some(b),
                    ast::ValueKind::Variable(v) => {
                        self.context.variables.get(document.name(v))?.as_bool()
                    }
                    _ => None,
                });
            condition.is_none_or(|c| c == wanted)
        })
    }

    /// Reports a field error at the current path.
    fn error(&mut self, group: &Group<'s>, error: &FieldError) {
        if self.errors.len() >= ERRORS_MAX {
            return;
        }
        let mut json = Map::new();
        json.insert("message".into(), error.message.as_str().into());
        let source = self.context.document.source();
        let locations: Vec<Value> = group
            .fields
            .iter()
            .map(|field| {
                let (line, column) = line_column(source, field.span.start);
                serde_json::json!({"line": line, "column": column})
            })
            .collect();
        json.insert("locations".into(), locations.into());
        let path: Vec<Value> = self
            .path
            .iter()
            .map(|segment| match segment {
                Segment::Key(key) => (*key).into(),
                Segment::Index(index) => (*index).into(),
            })
            .collect();
        json.insert("path".into(), path.into());
        if let Some(extensions) = &error.extensions {
            json.insert("extensions".into(), extensions.clone().into());
        }
        self.errors
            .push(Value::Object(json).to_string().into_bytes());
    }

    fn write_string(&mut self, text: &str) {
        // Writing to a vector cannot fail.
        let _ = serde_json::to_writer(&mut self.out, text);
    }
}

/// Marks every object of a value as reached through a path that provides `set`.
fn provide(resolved: &mut Resolved<'_>, set: &Arc<FieldSet>) {
    match resolved {
        Resolved::Object(node) => node.provided = Some(set.clone()),
        Resolved::List(items) => items.iter_mut().for_each(|i| provide(i, set)),
        _ => {}
    }
}

/// Writes a JSON value. Writing to a vector cannot fail.
pub(crate) fn write_json(out: &mut Vec<u8>, value: &Value) {
    let _ = serde_json::to_writer(out, value);
}
