//! The API schema: what clients see of a supergraph.
//!
//! A view (same ids) without elements marked `@inaccessible`, without the elements of linked specifications, and
//! without directives that only decorate a type system. Hiding cascades: a field of a hidden type is hidden, a type
//! whose members are all hidden is hidden, a field or input object that needs a hidden value cannot be used and is
//! hidden.
//! Composition refuses such supergraphs; at run time the safe answer is to show less.
//!
//! Linear: every element is hidden at most once, and hiding one visits only what refers to it.

use ogive_base::{BitSet, FastMap, Symbol};
use ogive_schema::{
    AppliedDirective, DirectiveLocation, FieldId, InputId, Schema, TypeId, TypeKind,
};

use crate::{Links, vocabulary::Spec};

/// Hidden rows, by id.
#[derive(Default)]
struct Hidden {
    types: BitSet,
    fields: BitSet,
    inputs: BitSet,
    enum_values: BitSet,
}

/// What refers to what, for the cascade.
#[derive(Default)]
struct Users {
    /// Fields that return a type.
    fields: FastMap<TypeId, Vec<FieldId>>,
    /// Arguments and input fields of a type.
    inputs: FastMap<TypeId, Vec<InputId>>,
    /// Where an argument or input field belongs.
    owners: FastMap<InputId, Owner>,
    /// Unions with a member.
    unions: FastMap<TypeId, Vec<TypeId>>,
    /// Visible members (fields, values, ...) per type.
    members: FastMap<TypeId, usize>,
}

#[derive(Clone, Copy)]
enum Owner {
    Field(FieldId),
    InputObject(TypeId),
}

enum Hide {
    Type(TypeId),
    Field(FieldId),
    Input(InputId),
}

/// The view of `schema` that clients may see.
pub fn api_schema(schema: &Schema, links: &Links) -> Schema {
    let inaccessible = links
        .directive(Spec::Inaccessible, Spec::Inaccessible.name())
        .and_then(|name| schema.names.get(&name));
    view(schema, links, hide(schema, links, inaccessible))
}

fn hide(schema: &Schema, links: &Links, inaccessible: Option<Symbol>) -> Hidden {
    let is_marked =
        |list: &[AppliedDirective]| inaccessible.is_some_and(|n| list.iter().any(|d| d.name == n));
    let mut users = Users::default();
    let mut hidden = Hidden::default();
    let mut open: Vec<Hide> = Vec::new();
    for (ty, def) in schema.types() {
        let machinery = !def.built_in && links.owner_of_type(schema.type_name(ty)).is_some();
        if machinery || is_marked(&def.directives) {
            open.push(Hide::Type(ty));
        }
        for field in &def.fields {
            let row = &schema.fields[*field];
            users.fields.entry(row.ty.id).or_default().push(*field);
            if is_marked(&row.directives) {
                open.push(Hide::Field(*field));
            }
            for arg in &row.args {
                users.owners.insert(*arg, Owner::Field(*field));
            }
        }
        for input in &def.input_fields {
            users.owners.insert(*input, Owner::InputObject(ty));
        }
        let inputs = def.fields.iter().flat_map(|f| &schema.fields[*f].args);
        for input in inputs.chain(&def.input_fields) {
            let row = &schema.inputs[*input];
            users.inputs.entry(row.ty.id).or_default().push(*input);
            if is_marked(&row.directives) {
                open.push(Hide::Input(*input));
            }
        }
        for member in &def.members {
            users.unions.entry(*member).or_default().push(ty);
        }
        let mut visible_values = 0;
        for value in &def.enum_values {
            if is_marked(&schema.enum_values[*value].directives) {
                hidden.enum_values.insert(value.0);
            } else {
                visible_values += 1;
            }
        }
        if def.kind == TypeKind::Enum && visible_values == 0 {
            open.push(Hide::Type(ty));
        }
        users.members.insert(
            ty,
            def.fields.len() + def.input_fields.len() + def.members.len(),
        );
    }
    while let Some(next) = open.pop() {
        match next {
            Hide::Type(ty) => {
                if !hidden.types.insert(ty.0) {
                    continue;
                }
                open.extend(
                    users
                        .fields
                        .get(&ty)
                        .into_iter()
                        .flatten()
                        .map(|f| Hide::Field(*f)),
                );
                open.extend(
                    users
                        .inputs
                        .get(&ty)
                        .into_iter()
                        .flatten()
                        .map(|i| Hide::Input(*i)),
                );
                for union in users.unions.get(&ty).cloned().unwrap_or_default() {
                    lose_member(&mut users, union, &mut open);
                }
            }
            Hide::Field(field) => {
                if hidden.fields.insert(field.0) {
                    lose_member(&mut users, schema.fields[field].parent, &mut open);
                }
            }
            Hide::Input(input) => {
                if !hidden.inputs.insert(input.0) {
                    continue;
                }
                let is_required = schema.inputs[input].is_required();
                match users.owners.get(&input).copied() {
                    Some(Owner::InputObject(ty)) if is_required => open.push(Hide::Type(ty)),
                    Some(Owner::InputObject(ty)) => lose_member(&mut users, ty, &mut open),
                    Some(Owner::Field(field)) if is_required => open.push(Hide::Field(field)),
                    _ => {}
                }
            }
        }
    }
    hidden
}

fn lose_member(users: &mut Users, ty: TypeId, open: &mut Vec<Hide>) {
    if let Some(left) = users.members.get_mut(&ty) {
        *left = left.saturating_sub(1);
        if *left == 0 {
            open.push(Hide::Type(ty));
        }
    }
}

fn view(schema: &Schema, links: &Links, hidden: Hidden) -> Schema {
    let mut api = schema.clone();
    let see_type = |id: &TypeId| !hidden.types.contains(id.0);
    api.directives.clear();
    api.type_list.retain(see_type);
    api.types_by_name.retain(|_, id| see_type(id));
    api.fields_by_name
        .retain(|(parent, _), id| see_type(parent) && !hidden.fields.contains(id.0));
    for (_, def) in api.types.iter_mut() {
        def.fields.retain(|f| !hidden.fields.contains(f.0));
        def.input_fields.retain(|i| !hidden.inputs.contains(i.0));
        def.enum_values
            .retain(|v| !hidden.enum_values.contains(v.0));
        def.interfaces.retain(see_type);
        def.members.retain(see_type);
        def.possible.subtract(&hidden.types);
    }
    for (_, field) in api.fields.iter_mut() {
        field.args.retain(|a| !hidden.inputs.contains(a.0));
    }
    for root in &mut api.roots {
        *root = root.filter(see_type);
    }
    let see_directive = |name: &str, locations: &[DirectiveLocation]| {
        links.owner_of_directive(name).is_none()
            && locations.iter().any(|l| *l < DirectiveLocation::Schema)
    };
    api.directive_list.retain(|id| {
        let def = &schema.directive_defs[*id];
        def.built_in || see_directive(schema.name(def.name), &def.locations)
    });
    let visible: BitSet = api.directive_list.iter().map(|d| d.0).collect();
    api.directives_by_name
        .retain(|_, id| visible.contains(id.0));
    forget_unused_scalars(&mut api);
    api
}

/// Introspection lists a specified scalar only if something visible refers to it (specification, section 3.5).
fn forget_unused_scalars(api: &mut Schema) {
    let mut used = BitSet::new();
    for ty in &api.type_list {
        let def = &api.types[*ty];
        for field in &def.fields {
            let row = &api.fields[*field];
            used.insert(row.ty.id.0);
            for arg in &row.args {
                used.insert(api.inputs[*arg].ty.id.0);
            }
        }
        for input in &def.input_fields {
            used.insert(api.inputs[*input].ty.id.0);
        }
    }
    for directive in &api.directive_list {
        for arg in &api.directive_defs[*directive].args {
            used.insert(api.inputs[*arg].ty.id.0);
        }
    }
    let types = &api.types;
    api.type_list.retain(|ty| {
        let def = &types[*ty];
        !def.built_in || def.kind != TypeKind::Scalar || used.contains(ty.0)
    });
}
