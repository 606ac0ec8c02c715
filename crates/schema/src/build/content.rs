//! The contents of definitions and extensions: fields, arguments, values, members, directives.

use ogive_base::{FastSet, Symbol};
use ogive_syntax::ast::{
    self, EnumValueDefinition, FieldDefinition, InputValueDefinition, List, Name, TypeDefinition,
    TypeDefinitionKind, TypeRef,
};

use super::{Seen, description, kind_of};
use crate::{
    builder::{Builder, DefaultUse, DirectiveUse, Edition, InputOwner, MEMBERS_MAX, TypeUse},
    builtins, codes,
    report::Place,
    suggest,
    types::*,
    value::const_value,
};

impl Builder<'_> {
    pub(super) fn read_directives(&mut self) {
        for (doc_index, definition, id) in std::mem::take(&mut self.directives) {
            let doc = self.docs[doc_index as usize];
            let mut locations: Vec<DirectiveLocation> = Vec::new();
            for name in &doc[definition.locations] {
                // Unknown names are the parser's business; repeating one says nothing new.
                let location = DirectiveLocation::from_name(doc.name(*name));
                locations.extend(location.filter(|l| !locations.contains(l)));
            }
            let args = self.read_inputs(
                doc_index,
                definition.arguments,
                InputOwner::Directive(id),
                &mut Vec::new(),
            );
            let row = &mut self.schema.directive_defs[id];
            row.locations = locations;
            row.args = args;
            row.repeatable = definition.repeatable;
        }
    }

    pub(super) fn read_types(&mut self) {
        for (doc, definition, id) in std::mem::take(&mut self.definitions) {
            self.read_type(doc, &definition, id);
        }
        for (doc_index, extension) in std::mem::take(&mut self.extensions) {
            let name = self.docs[doc_index as usize].name(extension.name);
            let place = Place {
                doc: doc_index,
                span: extension.name.span(),
            };
            // The built-in types cannot be extended: no document defines them.
            let found = self
                .schema
                .type_by_name(name)
                .filter(|id| !self.schema.types[*id].built_in);
            let Some(id) = found else {
                let visible = self
                    .schema
                    .types()
                    .filter(|(_, t)| !t.built_in)
                    .map(|(_, t)| self.schema.name(t.name));
                let suggestions = suggest::suggestions(name, visible);
                let hint = suggest::did_you_mean(None, &suggestions);
                self.report.error(
                    codes::INVALID_EXTENSION,
                    format!("Cannot extend type \"{name}\" because it is not defined.{hint}"),
                    place,
                );
                continue;
            };
            if self.schema.types[id].kind != kind_of(&extension) {
                self.report.error_with(
                    codes::INVALID_EXTENSION,
                    format!(
                        "Cannot extend non-{} type \"{name}\".",
                        kind_word(kind_of(&extension))
                    ),
                    place,
                    &[(self.type_places[id], "defined here")],
                );
                continue;
            }
            self.read_type(doc_index, &extension, id);
        }
    }

    fn read_type(&mut self, doc: u32, definition: &TypeDefinition, id: TypeId) {
        let location = match definition.kind {
            TypeDefinitionKind::Scalar => DirectiveLocation::Scalar,
            TypeDefinitionKind::Object { interfaces, fields } => {
                self.read_interfaces(doc, id, interfaces);
                self.read_fields(doc, id, fields);
                DirectiveLocation::Object
            }
            TypeDefinitionKind::Interface { interfaces, fields } => {
                self.read_interfaces(doc, id, interfaces);
                self.read_fields(doc, id, fields);
                DirectiveLocation::Interface
            }
            TypeDefinitionKind::Union { members } => {
                self.read_members(doc, id, members);
                DirectiveLocation::Union
            }
            TypeDefinitionKind::Enum { values } => {
                self.read_values(doc, id, values);
                DirectiveLocation::Enum
            }
            TypeDefinitionKind::InputObject { fields } => {
                let mut rows = std::mem::take(&mut self.schema.types[id].input_fields);
                rows = self.read_inputs(doc, fields, InputOwner::InputObject(id), &mut rows);
                self.schema.types[id].input_fields = rows;
                DirectiveLocation::InputObject
            }
        };
        let applied = self.apply(doc, definition.directives, location, Some(id));
        if self.schema.types[id].kind == TypeKind::InputObject {
            let one_of = self.schema.directive_defs[builtins::ONE_OF].name;
            let defines = !definition.extend || self.only_extended.contains(id.0);
            if let Some(found) = applied.iter().find(|d| d.name == one_of) {
                self.schema.types[id].one_of |= defines;
                if !defines && self.check && self.edition >= Edition::September2025 {
                    let message = format!(
                        "The directive \"@oneOf\" cannot be added to {} by an extension.",
                        self.schema.type_name(id)
                    );
                    let place = Place {
                        doc,
                        span: found.span,
                    };
                    self.report.error(codes::INVALID_ONE_OF, message, place);
                }
            }
        }
        if self.schema.types[id].kind == TypeKind::Scalar
            && let Some(url) = self.string_arg(&applied, builtins::SPECIFIED_BY, "url")
        {
            self.schema.types[id].specified_by = Some(url);
        }
        self.schema.types[id].directives.extend(applied);
    }

    fn read_interfaces(&mut self, doc: u32, id: TypeId, interfaces: List<Name>) {
        let doc_ref = self.docs[doc as usize];
        let mut seen: FastSet<TypeId> = self.schema.types[id].interfaces.iter().copied().collect();
        for name in &doc_ref[interfaces] {
            let place = Place {
                doc,
                span: name.span(),
            };
            let Some(of) = self.resolve(doc, *name) else {
                self.incomplete.insert(id.0);
                continue;
            };
            let (by_name, of_name) = (self.schema.type_name(id), self.schema.type_name(of));
            if self.schema.types[of].kind != TypeKind::Interface {
                let message = format!(
                    "Type {by_name} must only implement Interface types, it cannot implement {of_name}."
                );
                self.report
                    .error(codes::INVALID_IMPLEMENTATION, message, place);
            } else if of == id {
                let message = format!(
                    "Type {by_name} cannot implement itself because it would create a circular reference."
                );
                self.report
                    .error(codes::CIRCULAR_DEFINITION, message, place);
            } else if !seen.insert(of) {
                let message = format!("Type {by_name} can only implement {of_name} once.");
                self.report
                    .error(codes::DUPLICATE_DEFINITION, message, place);
            } else {
                self.schema.types[id].interfaces.push(of);
                self.implements.push(TypeUse { by: id, of, place });
            }
        }
    }

    fn read_members(&mut self, doc: u32, id: TypeId, members: List<Name>) {
        let doc_ref = self.docs[doc as usize];
        let mut seen: FastSet<TypeId> = self.schema.types[id].members.iter().copied().collect();
        for name in &doc_ref[members] {
            let place = Place {
                doc,
                span: name.span(),
            };
            let Some(of) = self.resolve(doc, *name) else {
                self.incomplete.insert(id.0);
                continue;
            };
            let (by_name, of_name) = (self.schema.type_name(id), self.schema.type_name(of));
            if !seen.insert(of) {
                let message = format!("Union type {by_name} can only include type {of_name} once.");
                self.report
                    .error(codes::INVALID_UNION_MEMBER, message, place);
            } else if self.schema.types[of].kind != TypeKind::Object {
                let message = format!(
                    "Union type {by_name} can only include Object types, it cannot include {of_name}."
                );
                self.report
                    .error(codes::INVALID_UNION_MEMBER, message, place);
                self.incomplete.insert(id.0);
                // Meant as a member: fields of its type are what they should be.
                self.members.push(TypeUse { by: id, of, place });
            } else {
                self.schema.types[id].members.push(of);
                self.members.push(TypeUse { by: id, of, place });
            }
        }
    }

    fn read_fields(&mut self, doc: u32, parent: TypeId, fields: List<FieldDefinition>) {
        let doc_ref = self.docs[doc as usize];
        for field in &doc_ref[fields] {
            let text = doc_ref.name(field.name);
            let place = Place {
                doc,
                span: field.name.span(),
            };
            let name = self.schema.names.intern(text);
            let key = (parent, name);
            let first = self.schema.fields_by_name.get(&key);
            let first = first.or(self.refused_fields.get(&key)).copied();
            if let Some(first) = first {
                let message = format!(
                    "Field \"{}.{text}\" can only be defined once.",
                    self.schema.type_name(parent)
                );
                let first = self.field_places[first];
                self.report.error_with(
                    codes::DUPLICATE_DEFINITION,
                    message,
                    place,
                    &[(first, "first defined here")],
                );
            }
            if !self.is_introspection_type(parent) {
                self.check_name(text, place);
            }
            if !self.has_room(place) {
                self.incomplete.insert(parent.0);
                continue;
            }
            let resolved = self.resolve_type(doc, &field.ty);
            let ty = resolved.unwrap_or(Type {
                id: builtins::STRING,
                wrapping: field.ty.wrapping,
            });
            if !self.schema.types[ty.id].kind.is_composite()
                && !self.schema.types[ty.id].kind.is_leaf()
            {
                let message = format!(
                    "The type of {}.{text} must be Output Type but got: {}.",
                    self.schema.type_name(parent),
                    self.schema.display_type(ty)
                );
                self.refuse_position(message, doc, &field.ty);
            }
            let id = self.schema.fields.push(FieldDef {
                name,
                parent,
                ty,
                args: Vec::new(),
                description: description(doc_ref, field.description),
                span: place.span,
                directives: Vec::new(),
                deprecated: None,
            });
            self.field_places.push(place);
            // A row that is refused is withheld; it is there so that its arguments are checked.
            if resolved.is_none() {
                self.incomplete.insert(parent.0);
                self.refused_fields.insert(key, id);
            } else if first.is_none() {
                self.schema.fields_by_name.insert(key, id);
                self.schema.types[parent].fields.push(id);
            }
            let args =
                self.read_inputs(doc, field.arguments, InputOwner::Field(id), &mut Vec::new());
            let applied = self.apply(
                doc,
                field.directives,
                DirectiveLocation::FieldDefinition,
                None,
            );
            let deprecated = self.deprecation(&applied);
            let row = &mut self.schema.fields[id];
            row.args = args;
            row.deprecated = deprecated;
            row.directives = applied;
        }
    }

    /// Arguments or input fields after those already there.
    fn read_inputs(
        &mut self,
        doc: u32,
        inputs: List<InputValueDefinition>,
        owner: InputOwner,
        rows: &mut Vec<InputId>,
    ) -> Vec<InputId> {
        let mut rows = std::mem::take(rows);
        let doc_ref = self.docs[doc as usize];
        let mut seen: Seen = rows
            .iter()
            .map(|id| (self.schema.inputs[*id].name, self.input_places[*id]))
            .collect();
        for input in &doc_ref[inputs] {
            let text = doc_ref.name(input.name);
            let place = Place {
                doc,
                span: input.name.span(),
            };
            let name = self.schema.names.intern(text);
            if let Some(first) = seen.get(&name) {
                let message = match owner {
                    InputOwner::InputObject(_) => {
                        format!(
                            "Field \"{}\" can only be defined once.",
                            self.coordinate(owner, text)
                        )
                    }
                    _ => format!(
                        "Argument \"{}\" can only be defined once.",
                        self.coordinate(owner, text)
                    ),
                };
                self.report.error_with(
                    codes::DUPLICATE_DEFINITION,
                    message,
                    place,
                    &[(*first, "first defined here")],
                );
                let _ = self.resolve_type(doc, &input.ty);
                continue;
            }
            seen.insert(name, place);
            self.check_name(text, place);
            let location = match owner {
                InputOwner::InputObject(_) => DirectiveLocation::InputFieldDefinition,
                _ => DirectiveLocation::ArgumentDefinition,
            };
            let applied = self.apply(doc, input.directives, location, None);
            let resolved = self.resolve_type(doc, &input.ty);
            let Some(ty) = resolved.filter(|_| self.has_room(place)) else {
                self.lose_input(owner, name);
                continue;
            };
            if !self.schema.types[ty.id].kind.is_input() {
                let message = format!(
                    "The type of {} must be Input Type but got: {}.",
                    self.coordinate(owner, text),
                    self.schema.display_type(ty)
                );
                self.refuse_position(message, doc, &input.ty);
            }
            let deprecated = self.deprecation(&applied);
            let id = self.schema.inputs.push(InputDef {
                name,
                ty,
                default: input.default.map(|v| const_value(doc_ref, &v)),
                description: description(doc_ref, input.description),
                span: place.span,
                directives: applied,
                deprecated,
            });
            self.input_places.push(place);
            if let Some(value) = input.default.filter(|_| self.check) {
                self.default_uses.push(DefaultUse {
                    doc,
                    input: id,
                    value,
                    coordinate: owner,
                });
            }
            rows.push(id);
        }
        rows
    }

    /// Whether `id` is a document's copy of an introspection type, whose members are named as it likes.
    fn is_introspection_type(&self, id: TypeId) -> bool {
        let visible = self.schema.types_by_name.get(&self.schema.types[id].name);
        visible.is_some_and(|id| self.schema.types[*id].built_in)
    }

    fn lose_input(&mut self, owner: InputOwner, name: Symbol) {
        match owner {
            InputOwner::Field(id) => {
                let parent = self.schema.fields[id].parent;
                self.incomplete.insert(parent.0);
            }
            InputOwner::InputObject(id) => {
                self.incomplete.insert(id.0);
            }
            InputOwner::Directive(id) => self.lost_args.push((id, name)),
        }
    }

    fn read_values(&mut self, doc: u32, parent: TypeId, values: List<EnumValueDefinition>) {
        let doc_ref = self.docs[doc as usize];
        let mut seen: FastSet<_> = self.schema.types[parent]
            .enum_values
            .iter()
            .map(|id| self.schema.enum_values[*id].name)
            .collect();
        for value in &doc_ref[values] {
            let text = doc_ref.name(value.name);
            let place = Place {
                doc,
                span: value.name.span(),
            };
            let name = self.schema.names.intern(text);
            if !seen.insert(name) {
                let message = format!(
                    "Enum value \"{}.{text}\" can only be defined once.",
                    self.schema.type_name(parent)
                );
                self.report
                    .error(codes::DUPLICATE_DEFINITION, message, place);
                continue;
            }
            self.check_name(text, place);
            if !self.has_room(place) {
                self.incomplete.insert(parent.0);
                continue;
            }
            let applied = self.apply(doc, value.directives, DirectiveLocation::EnumValue, None);
            let deprecated = self.deprecation(&applied);
            let id = self.schema.enum_values.push(EnumValueDef {
                name,
                parent,
                description: description(doc_ref, value.description),
                span: place.span,
                directives: applied,
                deprecated,
            });
            self.schema.types[parent].enum_values.push(id);
        }
    }

    /// Reads applied directives and queues them for checking.
    pub(super) fn apply(
        &mut self,
        doc: u32,
        list: List<ast::Directive>,
        location: DirectiveLocation,
        owner: Option<TypeId>,
    ) -> Vec<AppliedDirective> {
        if list.is_empty() {
            return Vec::new();
        }
        if self.check {
            self.directive_uses.push(DirectiveUse {
                doc,
                list,
                location,
                owner,
            });
        }
        let doc = self.docs[doc as usize];
        doc[list]
            .iter()
            .map(|directive| AppliedDirective {
                name: self.schema.names.intern(doc.name(directive.name)),
                args: doc[directive.arguments]
                    .iter()
                    .map(|argument| {
                        (
                            self.schema.names.intern(doc.name(argument.name)),
                            const_value(doc, &argument.value),
                        )
                    })
                    .collect(),
                span: directive.span,
            })
            .collect()
    }

    /// The reason of `@deprecated` among applied directives.
    fn deprecation(&self, applied: &[AppliedDirective]) -> Option<Box<str>> {
        let name = self.schema.directive_defs[builtins::DEPRECATED].name;
        applied.iter().find(|d| d.name == name)?;
        Some(
            self.string_arg(applied, builtins::DEPRECATED, "reason")
                .unwrap_or_else(|| builtins::DEPRECATED_REASON.into()),
        )
    }

    fn string_arg(
        &self,
        applied: &[AppliedDirective],
        directive: DirectiveId,
        arg: &str,
    ) -> Option<Box<str>> {
        let name = self.schema.directive_defs[directive].name;
        let arg = self.schema.names.get(arg)?;
        let found = applied.iter().find(|d| d.name == name)?;
        found.arg(arg)?.as_str().map(Into::into)
    }

    fn resolve_type(&mut self, doc: u32, ty: &TypeRef) -> Option<Type> {
        Some(Type {
            id: self.resolve(doc, ty.name)?,
            wrapping: ty.wrapping,
        })
    }

    fn refuse_position(&mut self, message: String, doc: u32, ty: &TypeRef) {
        let place = Place { doc, span: ty.span };
        self.report
            .error(codes::INVALID_TYPE_POSITION, message, place);
    }

    fn has_room(&mut self, place: Place) -> bool {
        let members =
            self.schema.fields.len() + self.schema.inputs.len() + self.schema.enum_values.len();
        if members >= MEMBERS_MAX {
            self.refuse_size(place, "fields, arguments and enum values", MEMBERS_MAX);
        }
        members < MEMBERS_MAX
    }

    /// The schema coordinate of input `name`.
    pub(crate) fn coordinate(&self, owner: InputOwner, name: &str) -> String {
        match owner {
            InputOwner::Field(id) => format!("{}({name}:)", self.schema.field_coordinate(id)),
            InputOwner::InputObject(id) => format!("{}.{name}", self.schema.type_name(id)),
            InputOwner::Directive(id) => {
                let directive = self.schema.directive_defs[id].name;
                format!("@{}({name}:)", self.schema.name(directive))
            }
        }
    }
}

/// The word for a kind in messages.
pub(crate) fn kind_word(kind: TypeKind) -> &'static str {
    match kind {
        TypeKind::Scalar => "scalar",
        TypeKind::Object => "object",
        TypeKind::Interface => "interface",
        TypeKind::Union => "union",
        TypeKind::Enum => "enum",
        TypeKind::InputObject => "input object",
    }
}
