//! What a mapping gives, beside the type that it is for.

use ogive_base::Span;

use super::{Compiler, FIELD_NOT_FOUND, GROUP_IS_NOT_OBJECT, WRONG_TYPE};
use crate::{
    kinds::Kinds,
    shape::{ObjectShape, Shape, ShapeId},
};

/// Most fields inside one another that are compared; variables may have types that refer to themselves.
const DEPTH_MAX: u32 = 40;

impl Compiler<'_> {
    /// Reports where what is given cannot be what the environment expects.
    pub(super) fn expect_target(&mut self, given: ShapeId, span: Span) {
        let place = self.environment.place;
        self.expect_kinds(given, self.environment.expects, span, place);
        if let Some(target) = self.environment.target {
            self.compare(given, target, span, DEPTH_MAX);
        }
    }

    fn compare(&mut self, given: ShapeId, target: ShapeId, span: Span, depth: u32) {
        let (given_shape, target_shape) = (self.shapes.get(given), self.shapes.get(target));
        // The executor has rules for null.
        let accepts_all = matches!(given_shape, Shape::Unknown | Shape::Null)
            || *target_shape == Shape::Unknown
            || given == target;
        if accepts_all || depth == 0 || !self.compared.insert((given, target, span)) {
            return;
        }
        let (given_shape, target_shape) = (self.shapes.get(given), self.shapes.get(target));
        match (given_shape.clone(), target_shape.clone()) {
            (Shape::OneOf(all), _) => {
                for one in all {
                    self.compare(one, target, span, depth - 1);
                }
            }
            (_, Shape::Each(target)) => {
                let item = self.shapes.item(given);
                self.compare(item, target, span, depth - 1);
            }
            (Shape::Each(item), Shape::List(target)) => self.compare(item, target, span, depth - 1),
            (Shape::Each(item), _) => self.compare(item, target, span, depth - 1),
            (Shape::List(item), Shape::List(target)) => {
                self.compare(item, target, span, depth - 1);
            }
            (Shape::Object(object), Shape::Object(target)) => {
                self.compare_objects(&object, &target, span, depth);
            }
            (Shape::Object(object), Shape::OneOf(members)) => {
                self.compare_member(&object, &members, span, depth);
            }
            // A list may come later, item by item.
            (Shape::Object(_), Shape::List(item)) => self.compare(given, item, span, depth - 1),
            (Shape::Object(_), _) => {
                let expected = self.shapes.kinds(target);
                self.report(
                    GROUP_IS_NOT_OBJECT,
                    span,
                    format!("fields are selected for a type that has none: it is {expected}"),
                );
            }
            _ => {
                let (found, expected) = (self.shapes.kinds(given), self.shapes.kinds(target));
                if !found.meets(expected) {
                    let message = format!("expected {expected}, found {found}");
                    self.report(WRONG_TYPE, span, message);
                }
            }
        }
    }

    fn compare_objects(
        &mut self,
        given: &ObjectShape,
        target: &ObjectShape,
        span: Span,
        depth: u32,
    ) {
        for field in &given.fields {
            // Fields of variables are not written in the mapping.
            let span = field.span.unwrap_or(span);
            if &*field.name == "__typename" {
                self.expect_kinds(field.shape, Kinds::STRING, span, "`__typename`");
                continue;
            }
            match target.field(&field.name) {
                Some(expected) => self.compare(field.shape, expected.shape, span, depth - 1),
                None if target.open => {}
                None => {
                    let name = target.name.as_deref().unwrap_or("the type");
                    let shown = ogive_base::bounded(&field.name, 40);
                    self.report_with(
                        FIELD_NOT_FOUND,
                        span,
                        format!("`{name}` has no field `{shown}`"),
                        |diagnostic| diagnostic.help("give the entry the name of a field as alias"),
                    );
                }
            }
        }
    }

    /// An object for an abstract type says which member it is.
    fn compare_member(&mut self, given: &ObjectShape, members: &[ShapeId], span: Span, depth: u32) {
        let typename = given.field("__typename");
        let name = typename.and_then(|field| match self.shapes.get(field.shape) {
            Shape::Literal(name) => Some(name.clone()),
            _ => None,
        });
        let Some(name) = name else {
            if !given.open {
                self.report_with(
                    WRONG_TYPE,
                    typename.and_then(|field| field.span).unwrap_or(span),
                    "an object for an abstract type needs a literal `__typename`",
                    |diagnostic| {
                        diagnostic
                            .help("write `...` and `->match` with `{ __typename: \"Type\" … }`")
                    },
                );
            }
            return;
        };
        let member = members
            .iter()
            .find_map(|member| match self.shapes.get(*member) {
                Shape::Object(object) if object.name.as_ref() == Some(&name) => {
                    Some(object.clone())
                }
                _ => None,
            });
        match member {
            Some(member) => self.compare_objects(given, &member, span, depth),
            None => {
                let span = typename.and_then(|field| field.span).unwrap_or(span);
                let shown = ogive_base::bounded(&name, 40);
                let message = format!("`{shown}` is no member of the abstract type");
                self.report(WRONG_TYPE, span, message);
            }
        }
    }
}
