//! Shapes: what is known of values before a program runs.
//!
//! The caller describes variables and the type that a mapping is for; the checker adds the shapes of expressions to the
//! same table. Types may refer to themselves, so shapes are rows of a table.

use std::sync::Arc;

use ogive_base::{FastSet, Span, define_id, id::Id as _};

use crate::kinds::Kinds;

define_id! {
    /// One row of [`Shapes`].
    pub struct ShapeId;
}

/// What is known of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing.
    Unknown,
    /// It is null.
    Null,
    /// A boolean.
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// This string.
    Literal(Box<str>),
    /// No list and no object.
    Scalar,
    /// A list of those.
    List(ShapeId),
    /// That, or a list of those.
    Each(ShapeId),
    /// An object.
    Object(ObjectShape),
    /// One of those.
    OneOf(Vec<ShapeId>),
}

/// What is known of an object.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ObjectShape {
    /// The name of its type, if it has one.
    pub name: Option<Box<str>>,
    /// Its members.
    pub fields: Vec<FieldShape>,
    /// Whether it may have other members.
    pub open: bool,
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldShape {
    /// Its key.
    pub name: Box<str>,
    /// What is known of its value.
    pub shape: ShapeId,
    /// Where the mapping writes it.
    pub span: Option<Span>,
}

impl ObjectShape {
    /// The member with that key.
    pub fn field(&self, name: &str) -> Option<&FieldShape> {
        self.fields.iter().rev().find(|field| &*field.name == name)
    }
}

/// A table of shapes. A clone copies the rows that were added since [`Shapes::share`].
#[derive(Clone, Debug)]
pub struct Shapes {
    /// Rows that clones of the table share: the types of a schema.
    shared: Arc<Vec<Shape>>,
    /// Rows that were added since.
    added: Vec<Shape>,
}

impl Default for Shapes {
    fn default() -> Self {
        Self::new()
    }
}

impl Shapes {
    /// [`Shape::Unknown`].
    pub const UNKNOWN: ShapeId = ShapeId(0);
    /// [`Shape::Null`].
    pub const NULL: ShapeId = ShapeId(1);
    /// [`Shape::Bool`].
    pub const BOOL: ShapeId = ShapeId(2);
    /// [`Shape::Number`].
    pub const NUMBER: ShapeId = ShapeId(3);
    /// [`Shape::String`].
    pub const STRING: ShapeId = ShapeId(4);
    /// [`Shape::Scalar`].
    pub const SCALAR: ShapeId = ShapeId(5);

    /// A table with the shapes that have no parts.
    pub fn new() -> Self {
        let simple = vec![
            Shape::Unknown,
            Shape::Null,
            Shape::Bool,
            Shape::Number,
            Shape::String,
            Shape::Scalar,
        ];
        Shapes {
            shared: Arc::default(),
            added: simple,
        }
    }
    /// Makes clones share all rows that are in the table now.
    pub fn share(&mut self) {
        Arc::make_mut(&mut self.shared).append(&mut self.added);
    }
    /// Adds a shape.
    pub fn add(&mut self, shape: Shape) -> ShapeId {
        let id = ShapeId::from_usize(self.shared.len() + self.added.len());
        self.added.push(shape);
        id
    }
    /// Adds an object with these members.
    pub fn add_object(&mut self, name: Option<&str>, fields: &[(&str, ShapeId)]) -> ShapeId {
        let fields = fields.iter().map(|(name, shape)| FieldShape {
            name: (*name).into(),
            shape: *shape,
            span: None,
        });
        self.add(Shape::Object(ObjectShape {
            name: name.map(Into::into),
            fields: fields.collect(),
            open: false,
        }))
    }
    /// Replaces a shape: for types that refer to themselves.
    pub fn set(&mut self, id: ShapeId, shape: Shape) {
        *self.get_mut(id) = shape;
    }
    /// Takes a shape out of its row, which is unknown then.
    pub(crate) fn take(&mut self, id: ShapeId) -> Shape {
        std::mem::replace(self.get_mut(id), Shape::Unknown)
    }
    fn get_mut(&mut self, id: ShapeId) -> &mut Shape {
        match id.index().checked_sub(self.shared.len()) {
            Some(row) => &mut self.added[row],
            None => &mut Arc::make_mut(&mut self.shared)[id.index()],
        }
    }
    /// The shape with that id.
    pub fn get(&self, id: ShapeId) -> &Shape {
        match id.index().checked_sub(self.shared.len()) {
            Some(row) => &self.added[row],
            None => &self.shared[id.index()],
        }
    }

    /// The kinds that a value of that shape may have. Looks at each shape once.
    pub(crate) fn kinds(&self, id: ShapeId) -> Kinds {
        let mut kinds = Kinds::NONE;
        let mut seen = FastSet::default();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            kinds = kinds.or(match self.get(id) {
                Shape::Unknown => Kinds::ANY,
                Shape::Null => Kinds::NULL,
                Shape::Bool => Kinds::BOOL,
                Shape::Number => Kinds::NUMBER,
                Shape::String | Shape::Literal(_) => Kinds::STRING,
                Shape::Scalar => Kinds::SCALAR,
                Shape::List(_) => Kinds::LIST,
                Shape::Object(_) => Kinds::OBJECT,
                Shape::Each(_) | Shape::OneOf(_) if !seen.insert(id) => Kinds::NONE,
                Shape::Each(item) => {
                    open.push(*item);
                    Kinds::LIST
                }
                Shape::OneOf(shapes) => {
                    open.extend_from_slice(shapes);
                    Kinds::NONE
                }
            });
        }
        // Such as an interface that no type of the document implements.
        if kinds == Kinds::NONE {
            Kinds::ANY
        } else {
            kinds
        }
    }

    /// One of several shapes; equal ones count once.
    pub(crate) fn one_of(&mut self, shapes: Vec<ShapeId>) -> ShapeId {
        let mut distinct: Vec<ShapeId> = Vec::new();
        for shape in shapes {
            if shape == Self::UNKNOWN {
                return Self::UNKNOWN;
            }
            if !distinct.contains(&shape) {
                distinct.push(shape);
            }
        }
        match distinct.as_slice() {
            [] => Self::UNKNOWN,
            [one] => *one,
            _ => self.add(Shape::OneOf(distinct)),
        }
    }
    /// The items of a list; what is no list is an item itself.
    pub(crate) fn item(&self, id: ShapeId) -> ShapeId {
        match self.get(id) {
            Shape::List(item) | Shape::Each(item) => *item,
            _ => id,
        }
    }
    /// What a value becomes if `item` is made of each of its items, or of itself if it is no list.
    pub(crate) fn mapped_over(&mut self, over: ShapeId, item: ShapeId) -> ShapeId {
        match self.get(over) {
            Shape::List(_) => self.add(Shape::List(item)),
            Shape::Unknown | Shape::Each(_) | Shape::OneOf(_) => self.add(Shape::Each(item)),
            _ => item,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_shares_rows_and_adds_its_own() {
        let mut shapes = Shapes::new();
        let list = shapes.add(Shape::List(Shapes::NUMBER));
        shapes.share();
        let mut clone = shapes.clone();
        assert!(Arc::ptr_eq(&shapes.shared, &clone.shared) && clone.added.is_empty());
        let own = clone.add(Shape::List(list));
        assert_eq!(shapes.add(Shape::Null), own);
        clone.set(list, Shape::Bool);
        assert_eq!(clone.get(own), &Shape::List(list));
        assert_eq!(clone.get(list), &Shape::Bool);
        assert_eq!(shapes.get(list), &Shape::List(Shapes::NUMBER));
    }

    #[test]
    fn alternatives_of_alternatives_are_looked_at_once() {
        let mut shapes = Shapes::new();
        let mut level = vec![Shapes::NUMBER, Shapes::STRING];
        for _ in 0..10 {
            level = (0..30)
                .map(|_| shapes.add(Shape::OneOf(level.clone())))
                .collect();
        }
        let kinds = shapes.kinds(level[0]);
        assert_eq!(kinds, Kinds::NUMBER.or(Kinds::STRING));
        let none = shapes.add(Shape::OneOf(Vec::new()));
        assert_eq!(shapes.kinds(none), Kinds::ANY);
    }
}
