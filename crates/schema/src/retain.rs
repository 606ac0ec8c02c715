//! Views: a schema with rows withheld (see [`types`](crate::types)).
//!
//! Invariants: ids of a view are ids of the original; a view is closed: what is visible refers to visible types only.

use ogive_base::{BitSet, Symbol};

use crate::{build::compute_possible, builtins, types::*};

/// An element of the schema one decides about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Element {
    /// A type.
    Type(TypeId),
    /// A field of an object or interface.
    Field(FieldId),
    /// An argument of a field.
    Argument(FieldId, InputId),
    /// A field of an input object.
    InputField(TypeId, InputId),
    /// A value of an enum.
    EnumValue(EnumValueId),
    /// A directive definition.
    Directive(DirectiveId),
    /// An argument of a directive definition.
    DirectiveArgument(DirectiveId, InputId),
}

/// What a view lost beyond what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    /// Visible types left without any field, member or value: no valid schema has them.
    pub empty: Vec<TypeId>,
    /// Required arguments and input fields that are gone because their type is, or were not kept: operations cannot
    /// give them any more.
    pub required: Vec<InputId>,
}

impl Schema {
    /// A view with those elements for which `keep` holds. Built-in types and directives are always kept and not asked
    /// about. Fields, arguments and input fields whose type is withheld vanish too, as do declarations of withheld
    /// interfaces, memberships and root operation types; possible types are computed anew. Linear in the schema.
    pub fn retain(&self, mut keep: impl FnMut(Element) -> bool) -> (Schema, Withheld) {
        let mut view = self.clone();
        let mut withheld = Withheld::default();
        let types: BitSet = self
            .types()
            .filter(|(id, ty)| ty.built_in || keep(Element::Type(*id)))
            .map(|(id, _)| id.0)
            .collect();
        let is_visible = |id: TypeId| types.contains(id.0);
        let mut fields = BitSet::new();
        for (id, ty) in self.types() {
            if ty.built_in {
                fields.extend_with(ty.fields.iter().map(|f| f.0));
                continue;
            }
            if !is_visible(id) {
                continue;
            }
            let row = &mut view.types[id];
            row.interfaces.retain(|t| is_visible(*t));
            row.members.retain(|t| is_visible(*t));
            row.enum_values.retain(|v| keep(Element::EnumValue(*v)));
            row.fields
                .retain(|f| is_visible(self.fields[*f].ty.id) && keep(Element::Field(*f)));
            fields.extend_with(row.fields.iter().map(|f| f.0));
            let mut retain = |list: &mut Vec<InputId>, element: &dyn Fn(InputId) -> Element| {
                list.retain(|i| {
                    let input = &self.inputs[*i];
                    let kept = is_visible(input.ty.id) && keep(element(*i));
                    if !kept && input.is_required() {
                        withheld.required.push(*i);
                    }
                    kept
                });
            };
            retain(&mut row.input_fields, &|i| Element::InputField(id, i));
            for field in &row.fields {
                retain(&mut view.fields[*field].args, &|i| {
                    Element::Argument(*field, i)
                });
            }
            let is_empty = match row.kind {
                TypeKind::Scalar => false,
                TypeKind::Object | TypeKind::Interface => row.fields.is_empty(),
                TypeKind::Union => row.members.is_empty(),
                TypeKind::Enum => row.enum_values.is_empty(),
                TypeKind::InputObject => row.input_fields.is_empty(),
            };
            if is_empty {
                withheld.empty.push(id);
            }
        }
        view.directive_list
            .retain(|id| self.directive_defs[*id].built_in || keep(Element::Directive(*id)));
        for id in &view.directive_list {
            let row = &mut view.directive_defs[*id];
            if !row.built_in {
                row.args.retain(|i| {
                    is_visible(self.inputs[*i].ty.id) && keep(Element::DirectiveArgument(*id, *i))
                });
            }
        }
        let directives: BitSet = view.directive_list.iter().map(|id| id.0).collect();
        view.type_list.retain(|id| is_visible(*id));
        view.types_by_name.retain(|_, id| is_visible(*id));
        view.fields_by_name
            .retain(|(parent, _): &(TypeId, Symbol), id| {
                is_visible(*parent) && fields.contains(id.0)
            });
        view.directives_by_name
            .retain(|_, id| directives.contains(id.0));
        for root in &mut view.roots {
            *root = root.filter(|id| is_visible(*id));
        }
        view.withhold_unreferenced_scalars();
        compute_possible(&mut view);
        (view, withheld)
    }

    /// Withholds `Int`, `Float` and `ID` where no visible element refers to them: a built-in scalar that is not
    /// referenced must not be part of the schema (specification 3.5). For who makes a view by hand.
    pub fn withhold_unreferenced_scalars(&mut self) {
        self.withhold_unreferenced(&BitSet::new());
    }

    /// The same, but not for types (as `TypeId.0`) that a document declares.
    pub(crate) fn withhold_unreferenced(&mut self, declared: &BitSet) {
        let mut used = BitSet::new();
        let inputs = |list: &[InputId], used: &mut BitSet| {
            for id in list {
                used.insert(self.inputs[*id].ty.id.0);
            }
        };
        for (_, ty) in self.types() {
            inputs(&ty.input_fields, &mut used);
            for field in &ty.fields {
                used.insert(self.fields[*field].ty.id.0);
                inputs(&self.fields[*field].args, &mut used);
            }
        }
        for id in &self.directive_list {
            inputs(&self.directive_defs[*id].args, &mut used);
        }
        for id in [builtins::INT, builtins::FLOAT, builtins::ID] {
            if !used.contains(id.0) && !declared.contains(id.0) {
                self.type_list.retain(|t| *t != id);
                let name = self.types[id].name;
                self.types_by_name.remove(&name);
            }
        }
    }
}

/// Adding many at once.
trait Extend {
    fn extend_with(&mut self, ids: impl Iterator<Item = u32>);
}

impl Extend for BitSet {
    fn extend_with(&mut self, ids: impl Iterator<Item = u32>) {
        for id in ids {
            self.insert(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use ogive_syntax::{Limits, SourceId, parse};

    use super::*;
    use crate::{
        BuildOptions, build,
        print::{PrintOptions, print},
    };

    #[test]
    fn a_view_is_closed_and_keeps_ids() {
        let parsed = parse(
            r#"
            directive @secret(a: Hidden) on FIELD_DEFINITION
            directive @open(h: Hidden, i: String) on FIELD_DEFINITION
            type Query { a(x: In, y: Hidden!): Node b: Gone c: [U!] keep: Int f: Float }
            type Mutation { m: Gone }
            interface Node { id: ID! }
            type Gone implements Node { id: ID! }
            type Kept implements Node { id: ID! g: Gone }
            union U = Gone | Kept
            input In { a: Hidden b: E }
            input Hidden { a: Int }
            enum E { A B }
            "#,
            SourceId(0),
            &Limits::default(),
        );
        let schema = build(&[&parsed.document], &BuildOptions::default()).schema;
        let id = |name: &str| schema.type_by_name(name).unwrap();
        let float = schema.field_by_name(id("Query"), "f").unwrap();
        let b = schema.enum_value_by_name(id("E"), "B").unwrap();
        let secret = schema.directive_by_name("secret").unwrap();
        let hidden = [
            Element::Type(id("Gone")),
            Element::Type(id("Hidden")),
            Element::Field(float),
            Element::EnumValue(b),
            Element::Directive(secret),
        ];
        let (view, withheld) = schema.retain(|element| !hidden.contains(&element));
        assert_eq!(
            print(&view, &PrintOptions::default()),
            "directive @open(i: String) on FIELD_DEFINITION

type Query {
  a(x: In): Node
  c: [U!]
  keep: Int
}

type Mutation

interface Node {
  id: ID!
}

type Kept implements Node {
  id: ID!
}

union U = Kept

input In {
  b: E
}

enum E {
  A
}
"
        );
        assert_eq!(withheld.empty, [id("Mutation")]);
        assert_eq!(withheld.required.len(), 1);
        assert_eq!(view.type_by_name("Kept"), Some(id("Kept")), "ids stay");
        assert_eq!(view.type_by_name("Gone"), None);
        assert_eq!(view.type_by_name("Float"), None, "no longer referenced");
        assert_eq!(view.field_by_name(id("Query"), "f"), None);
        let possible: Vec<u32> = view.types[id("Node")].possible.iter().collect();
        assert_eq!(possible, [id("Kept").0]);
    }
}
