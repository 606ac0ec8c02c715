//! Objects: groups, selections, literals.

use ogive_base::{FastSet, Span};

use super::{Compiler, Known, Scope, WRONG_TYPE};
use crate::{
    ast::{Entry, EntryKind},
    program::{EntryNode, EntryRole, Node, ObjectNode, Rows},
    shape::{FieldShape, ObjectShape, Shape, ShapeId, Shapes},
};

/// Most alternatives that the checker tracks for one object. An object with more may have any member.
const ALTERNATIVES_MAX: usize = 64;

impl<'m> Compiler<'m> {
    pub(super) fn object(&mut self, entries: &'m [Entry], scope: Scope) -> (Node, Known) {
        // A selection may be one path: then its value is that of the path.
        if let [entry] = entries
            && matches!(entry.kind, EntryKind::Unnamed)
        {
            let (value, known) = self.used(entry.value, scope);
            let row = EntryNode {
                span: entry.span,
                kind: EntryRole::Whole,
                value,
            };
            return (self.object_node(vec![row], false), known);
        }
        self.check_names(entries);
        let mut rows = Vec::with_capacity(entries.len());
        let mut alternatives = vec![ObjectShape::default()];
        let mut may_be_null = false;
        let mut merges = false;
        for entry in entries {
            let (value, known) = self.used(entry.value, scope);
            let kind = match &entry.kind {
                EntryKind::Named(name) => {
                    for object in &mut alternatives {
                        object.fields.push(FieldShape {
                            name: name.clone(),
                            shape: known.shape,
                            span: Some(entry.span),
                        });
                    }
                    EntryRole::Named(self.add_string(name))
                }
                EntryKind::Unnamed | EntryKind::Spread => {
                    merges = true;
                    let is_spread = matches!(entry.kind, EntryKind::Spread);
                    may_be_null |= is_spread && self.may_be_null(known.shape);
                    alternatives = self.merged(&alternatives, known.shape, entry.span);
                    if is_spread {
                        EntryRole::Spread
                    } else {
                        EntryRole::Merged
                    }
                }
            };
            rows.push(EntryNode {
                span: entry.span,
                kind,
                value,
            });
        }
        let mut shapes: Vec<ShapeId> = alternatives
            .into_iter()
            .map(|object| self.shapes.add(Shape::Object(object)))
            .collect();
        if may_be_null {
            shapes.push(Shapes::NULL);
        }
        let shape = self.shapes.one_of(shapes);
        (self.object_node(rows, merges), Known::made(shape))
    }

    fn object_node(&mut self, rows: Vec<EntryNode>, merges: bool) -> Node {
        Node::Object(ObjectNode {
            entries: Rows::append(&mut self.entries, rows),
            merges,
        })
    }

    /// Two entries of one object cannot have one name.
    fn check_names(&mut self, entries: &[Entry]) {
        let mut names = FastSet::default();
        for entry in entries {
            if let EntryKind::Named(name) = &entry.kind
                && !names.insert(name)
            {
                let shown = ogive_base::bounded(name, 40);
                self.report_with(
                    WRONG_TYPE,
                    entry.span,
                    format!("`{shown}` is selected twice"),
                    |diagnostic| diagnostic.help("remove one entry, or give it an alias"),
                );
            }
        }
    }

    fn may_be_null(&self, shape: ShapeId) -> bool {
        match self.shapes.get(shape) {
            Shape::Null => true,
            Shape::OneOf(shapes) => shapes.contains(&Shapes::NULL),
            _ => false,
        }
    }

    /// The alternatives of an object after members of a value were added.
    fn merged(&mut self, to: &[ObjectShape], shape: ShapeId, span: Span) -> Vec<ObjectShape> {
        let added: Vec<Shape> = match self.shapes.get(shape) {
            Shape::OneOf(shapes) => {
                let shapes = shapes.iter().map(|shape| self.shapes.get(*shape).clone());
                shapes.collect()
            }
            other => vec![other.clone()],
        };
        if added.len() * to.len() > ALTERNATIVES_MAX {
            return vec![open_object()];
        }
        let mut merged = Vec::new();
        for added in added {
            let object = match &added {
                Shape::Object(object) => object.clone(),
                Shape::Each(item) => match self.shapes.get(*item) {
                    Shape::Object(object) => object.clone(),
                    _ => open_object(),
                },
                Shape::Null => continue,
                Shape::Unknown | Shape::OneOf(_) => open_object(),
                Shape::Bool
                | Shape::Number
                | Shape::String
                | Shape::Literal(_)
                | Shape::Scalar
                | Shape::List(_) => {
                    let kinds = self.shapes.kinds(shape);
                    self.report(
                        WRONG_TYPE,
                        span,
                        format!("members of an object are expected here, found {kinds}"),
                    );
                    open_object()
                }
            };
            merged.extend(to.iter().map(|to| {
                let mut to = to.clone();
                to.fields
                    .retain(|field| object.field(&field.name).is_none());
                to.fields.extend(object.fields.iter().cloned());
                to.open |= object.open;
                to
            }));
        }
        if merged.is_empty() {
            to.to_vec()
        } else {
            merged
        }
    }
}

fn open_object() -> ObjectShape {
    ObjectShape {
        open: true,
        ..ObjectShape::default()
    }
}
