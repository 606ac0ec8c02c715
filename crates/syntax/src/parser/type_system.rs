//! Type system definitions and extensions (specification 3).
//!
//! The optional parts of a definition may all be missing; an extension must have at least one of them.

use super::{Failed, Head, Parser, Step};
use crate::{ast::*, lexer::TokenKind};

impl Parser<'_> {
    pub(super) fn schema_definition(&mut self, head: Head) -> Step<Definition> {
        self.bump();
        let directives = self.directives(true)?;
        if !self.at(TokenKind::BraceL) {
            return Err(self.expected(TokenKind::BraceL.describe()));
        }
        let root_types = self.root_types()?;
        Ok(Definition::Schema(SchemaDefinition {
            span: self.span_from(head.start),
            extend: false,
            description: head.description,
            directives,
            root_types,
        }))
    }

    pub(super) fn schema_extension(&mut self, head: Head) -> Step<Definition> {
        self.bump();
        let directives = self.directives(true)?;
        let root_types = self.root_types()?;
        if directives.is_empty() && root_types.is_empty() {
            return Err(self.unexpected());
        }
        Ok(Definition::Schema(SchemaDefinition {
            span: self.span_from(head.start),
            extend: true,
            description: None,
            directives,
            root_types,
        }))
    }

    fn root_types(&mut self) -> Step<List<RootTypeDefinition>> {
        let first = self.doc.root_types.len();
        self.members(|parser| {
            let root_type = parser.root_type()?;
            parser.doc.root_types.push(root_type);
            Ok(())
        })?;
        Ok(List::new(first, self.doc.root_types.len() - first))
    }

    fn root_type(&mut self) -> Step<RootTypeDefinition> {
        let start = self.token.start;
        if !self.at(TokenKind::Name) {
            return Err(self.expected(TokenKind::Name.describe()));
        }
        let kind = match self.keyword_text(self.token) {
            b"query" => OperationKind::Query,
            b"mutation" => OperationKind::Mutation,
            b"subscription" => OperationKind::Subscription,
            _ => return Err(self.unexpected()),
        };
        self.bump();
        self.expect(TokenKind::Colon)?;
        let ty = self.name()?;
        Ok(RootTypeDefinition {
            span: self.span_from(start),
            kind,
            ty,
        })
    }

    pub(super) fn scalar_type(&mut self, head: Head, extend: bool) -> Step<Definition> {
        let (name, directives) = self.keyword_name_directives()?;
        self.type_definition(head, extend, name, directives, TypeDefinitionKind::Scalar)
    }

    pub(super) fn object_type(&mut self, head: Head, extend: bool) -> Step<Definition> {
        self.bump();
        let name = self.name()?;
        let interfaces = self.interfaces()?;
        let directives = self.directives(true)?;
        let fields = self.fields()?;
        let kind = TypeDefinitionKind::Object { interfaces, fields };
        self.type_definition(head, extend, name, directives, kind)
    }

    pub(super) fn interface_type(&mut self, head: Head, extend: bool) -> Step<Definition> {
        self.bump();
        let name = self.name()?;
        let interfaces = self.interfaces()?;
        let directives = self.directives(true)?;
        let fields = self.fields()?;
        let kind = TypeDefinitionKind::Interface { interfaces, fields };
        self.type_definition(head, extend, name, directives, kind)
    }

    pub(super) fn union_type(&mut self, head: Head, extend: bool) -> Step<Definition> {
        let (name, directives) = self.keyword_name_directives()?;
        let members = if self.eat(TokenKind::Equals) {
            self.names_separated_by(TokenKind::Pipe)?
        } else {
            List::EMPTY
        };
        let kind = TypeDefinitionKind::Union { members };
        self.type_definition(head, extend, name, directives, kind)
    }

    pub(super) fn enum_type(&mut self, head: Head, extend: bool) -> Step<Definition> {
        let (name, directives) = self.keyword_name_directives()?;
        let first = self.doc.enum_values.len();
        self.members(|parser| {
            let value = parser.enum_value()?;
            parser.doc.enum_values.push(value);
            Ok(())
        })?;
        let values = List::new(first, self.doc.enum_values.len() - first);
        let kind = TypeDefinitionKind::Enum { values };
        self.type_definition(head, extend, name, directives, kind)
    }

    pub(super) fn input_object_type(&mut self, head: Head, extend: bool) -> Step<Definition> {
        let (name, directives) = self.keyword_name_directives()?;
        let first = self.doc.inputs.len();
        self.members(|parser| {
            let input = parser.input_value()?;
            parser.doc.inputs.push(input);
            Ok(())
        })?;
        let fields = List::new(first, self.doc.inputs.len() - first);
        let kind = TypeDefinitionKind::InputObject { fields };
        self.type_definition(head, extend, name, directives, kind)
    }

    fn keyword_name_directives(&mut self) -> Step<(Name, List<Directive>)> {
        self.bump();
        let name = self.name()?;
        let directives = self.directives(true)?;
        Ok((name, directives))
    }

    /// The finished definition; an extension that extends nothing is an error.
    fn type_definition(
        &mut self,
        head: Head,
        extend: bool,
        name: Name,
        directives: List<Directive>,
        kind: TypeDefinitionKind,
    ) -> Step<Definition> {
        if extend && directives.is_empty() {
            let adds_nothing = match kind {
                TypeDefinitionKind::Scalar => true,
                TypeDefinitionKind::Object { interfaces, fields }
                | TypeDefinitionKind::Interface { interfaces, fields } => {
                    interfaces.is_empty() && fields.is_empty()
                }
                TypeDefinitionKind::Union { members } => members.is_empty(),
                TypeDefinitionKind::Enum { values } => values.is_empty(),
                TypeDefinitionKind::InputObject { fields } => fields.is_empty(),
            };
            if adds_nothing {
                return Err(self.unexpected());
            }
        }
        Ok(Definition::Type(TypeDefinition {
            span: self.span_from(head.start),
            extend,
            description: head.description,
            name,
            directives,
            kind,
        }))
    }

    pub(super) fn directive_definition(&mut self, head: Head) -> Step<Definition> {
        self.bump();
        self.expect(TokenKind::At)?;
        let name = self.name()?;
        let arguments = self.argument_definitions()?;
        let repeatable = self.eat_keyword("repeatable");
        self.expect_keyword("on")?;
        self.eat(TokenKind::Pipe);
        let first = self.doc.names.len();
        loop {
            if self.at(TokenKind::Name) && !is_directive_location(self.keyword_text(self.token)) {
                return Err(self.unknown_location());
            }
            let location = self.name()?;
            self.doc.names.push(location);
            if !self.eat(TokenKind::Pipe) {
                break;
            }
        }
        let locations = List::new(first, self.doc.names.len() - first);
        Ok(Definition::Directive(DirectiveDefinition {
            span: self.span_from(head.start),
            description: head.description,
            name,
            arguments,
            repeatable,
            locations,
        }))
    }

    /// `implements A & B` if there is one.
    fn interfaces(&mut self) -> Step<List<Name>> {
        if self.eat_keyword("implements") {
            self.names_separated_by(TokenKind::Amp)
        } else {
            Ok(List::EMPTY)
        }
    }

    /// `A & B`, also with a leading separator.
    fn names_separated_by(&mut self, separator: TokenKind) -> Step<List<Name>> {
        self.eat(separator);
        let first = self.doc.names.len();
        loop {
            let name = self.name()?;
            self.doc.names.push(name);
            if !self.eat(separator) {
                return Ok(List::new(first, self.doc.names.len() - first));
            }
        }
    }

    fn fields(&mut self) -> Step<List<FieldDefinition>> {
        let first = self.doc.fields.len();
        if self.doc.fields.capacity() == 0 && self.at(TokenKind::BraceL) {
            // A field definition with indentation, type and its share of type headers.
            self.doc.fields.reserve(self.text.len() / 48 + 4);
        }
        self.members(|parser| {
            let field = parser.field()?;
            parser.doc.fields.push(field);
            Ok(())
        })?;
        Ok(List::new(first, self.doc.fields.len() - first))
    }

    #[inline]
    fn field(&mut self) -> Step<FieldDefinition> {
        let start = self.token.start;
        let description = self.description();
        let name = self.name()?;
        let arguments = self.argument_definitions()?;
        self.expect(TokenKind::Colon)?;
        let ty = self.type_ref()?;
        let directives = self.directives(true)?;
        Ok(FieldDefinition {
            span: self.span_from(start),
            description,
            name,
            arguments,
            ty,
            directives,
        })
    }

    /// `(name: Type = default ..)` if there is one.
    #[inline]
    fn argument_definitions(&mut self) -> Step<List<InputValueDefinition>> {
        if !self.eat(TokenKind::ParenL) {
            return Ok(List::EMPTY);
        }
        let first = self.doc.inputs.len();
        loop {
            let input = self.input_value()?;
            self.doc.inputs.push(input);
            if self.eat(TokenKind::ParenR) {
                return Ok(List::new(first, self.doc.inputs.len() - first));
            }
        }
    }

    fn input_value(&mut self) -> Step<InputValueDefinition> {
        let start = self.token.start;
        let description = self.description();
        let name = self.name()?;
        self.expect(TokenKind::Colon)?;
        let ty = self.type_ref()?;
        let default = self.default_value()?;
        let directives = self.directives(true)?;
        Ok(InputValueDefinition {
            span: self.span_from(start),
            description,
            name,
            ty,
            default,
            directives,
        })
    }

    fn enum_value(&mut self) -> Step<EnumValueDefinition> {
        let start = self.token.start;
        let description = self.description();
        if self.at(TokenKind::Name)
            && matches!(self.keyword_text(self.token), b"true" | b"false" | b"null")
        {
            return Err(self.reserved_enum_value());
        }
        let name = self.name()?;
        let directives = self.directives(true)?;
        Ok(EnumValueDefinition {
            span: self.span_from(start),
            description,
            name,
            directives,
        })
    }

    /// `{ member .. }` if there is one; a broken member is skipped.
    #[inline]
    fn members(&mut self, mut member: impl FnMut(&mut Self) -> Step<()>) -> Step<()> {
        if !self.at(TokenKind::BraceL) {
            return Ok(());
        }
        let open = self.bump().start;
        loop {
            let start = self.token.start;
            if let Err(Failed) = member(self) {
                self.recover_in_braces(start, open, TokenKind::BraceR)?;
            }
            if self.eat(TokenKind::BraceR) {
                return Ok(());
            }
        }
    }
}

/// Specification 3.13, `DirectiveLocation`.
pub(super) const DIRECTIVE_LOCATIONS: [&str; 19] = [
    "QUERY",
    "MUTATION",
    "SUBSCRIPTION",
    "FIELD",
    "FRAGMENT_DEFINITION",
    "FRAGMENT_SPREAD",
    "INLINE_FRAGMENT",
    "VARIABLE_DEFINITION",
    "SCHEMA",
    "SCALAR",
    "OBJECT",
    "FIELD_DEFINITION",
    "ARGUMENT_DEFINITION",
    "INTERFACE",
    "UNION",
    "ENUM",
    "ENUM_VALUE",
    "INPUT_OBJECT",
    "INPUT_FIELD_DEFINITION",
];

fn is_directive_location(name: &[u8]) -> bool {
    DIRECTIVE_LOCATIONS.iter().any(|l| l.as_bytes() == name)
}
