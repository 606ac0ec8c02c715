//! Schema coordinates (specification 3.14): `Type`, `Type.member`, `Type.field(arg:)`, `@directive(arg:)`.
//! A grammar of its own: no white space, no comments.

use crate::{
    Diagnostic, SourceId,
    lexer::{is_name_continue, is_name_start},
    parser::report::{Code, Report},
};

/// A schema coordinate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SchemaCoordinate {
    /// `Type`
    Type(String),
    /// `Type.member`: a field, input field or enum value.
    Member(String, String),
    /// `Type.field(arg:)`
    Argument(String, String, String),
    /// `@directive`
    Directive(String),
    /// `@directive(arg:)`
    DirectiveArgument(String, String),
}

/// Parses a schema coordinate such as `Query.user(id:)` or `@deprecated(reason:)` (specification 2.14).
pub fn parse_schema_coordinate(source: &str) -> Result<SchemaCoordinate, Vec<Diagnostic>> {
    let mut cursor = Cursor { source, pos: 0 };
    cursor.coordinate().map_err(|expected| {
        let mut report = Report::new(SourceId(0), 1);
        let (start, end, found) = cursor.found();
        report.push(
            Code::Syntax,
            (start, end),
            format!("Expected {expected}, found {found}."),
            format!("expected {expected}"),
        );
        report.into_errors()
    })
}

impl std::fmt::Display for SchemaCoordinate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SchemaCoordinate::Type(ty) => write!(f, "{ty}"),
            SchemaCoordinate::Member(ty, member) => write!(f, "{ty}.{member}"),
            SchemaCoordinate::Argument(ty, field, arg) => write!(f, "{ty}.{field}({arg}:)"),
            SchemaCoordinate::Directive(directive) => write!(f, "@{directive}"),
            SchemaCoordinate::DirectiveArgument(directive, arg) => {
                write!(f, "@{directive}({arg}:)")
            }
        }
    }
}

struct Cursor<'a> {
    source: &'a str,
    pos: usize,
}

impl Cursor<'_> {
    /// The coordinate, or what was expected where the cursor stopped.
    fn coordinate(&mut self) -> Result<SchemaCoordinate, &'static str> {
        let coordinate = if self.eat('@') {
            let directive = self.name()?;
            match self.argument()? {
                Some(argument) => SchemaCoordinate::DirectiveArgument(directive, argument),
                None => SchemaCoordinate::Directive(directive),
            }
        } else {
            let ty = self.name()?;
            if self.eat('.') {
                let member = self.name()?;
                match self.argument()? {
                    Some(argument) => SchemaCoordinate::Argument(ty, member, argument),
                    None => SchemaCoordinate::Member(ty, member),
                }
            } else {
                SchemaCoordinate::Type(ty)
            }
        };
        if self.pos < self.source.len() {
            return Err("<EOF>");
        }
        Ok(coordinate)
    }

    /// `(name:)` if there is one.
    fn argument(&mut self) -> Result<Option<String>, &'static str> {
        if !self.eat('(') {
            return Ok(None);
        }
        let name = self.name()?;
        if !self.eat(':') {
            return Err("\":\"");
        }
        if !self.eat(')') {
            return Err("\")\"");
        }
        Ok(Some(name))
    }

    fn name(&mut self) -> Result<String, &'static str> {
        let len = self.name_len();
        if len == 0 {
            return Err("Name");
        }
        let name = self.source[self.pos..self.pos + len].to_owned();
        self.pos += len;
        Ok(name)
    }

    fn name_len(&self) -> usize {
        let rest = &self.source.as_bytes()[self.pos..];
        if !rest.first().is_some_and(|b| is_name_start(*b)) {
            return 0;
        }
        rest.iter().take_while(|b| is_name_continue(**b)).count()
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.source[self.pos..].starts_with(c);
        if found {
            self.pos += c.len_utf8();
        }
        found
    }

    /// What stands where the cursor is: its place and description.
    fn found(&self) -> (usize, usize, String) {
        let rest = &self.source[self.pos..];
        let name = self.name_len();
        if name > 0 {
            let end = self.pos + name;
            return (self.pos, end, format!("Name \"{}\"", &rest[..name]));
        }
        match rest.chars().next() {
            None => (self.pos, self.pos, "<EOF>".to_owned()),
            Some(c) => (self.pos, self.pos + c.len_utf8(), format!("{c:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_parses_and_prints_back() {
        for source in ["T", "T.f", "T.f(a:)", "@d", "@d(a:)", "__T.__f"] {
            let coordinate = parse_schema_coordinate(source).unwrap();
            assert_eq!(coordinate.to_string(), source);
        }
    }

    #[test]
    fn anything_else_is_an_error() {
        for (source, message) in [
            ("", "Syntax Error: Expected Name, found <EOF>."),
            ("T.", "Syntax Error: Expected Name, found <EOF>."),
            ("T(a:)", "Syntax Error: Expected <EOF>, found '('."),
            ("T.f(a)", "Syntax Error: Expected \":\", found ')'."),
            ("T.f(a: )", "Syntax Error: Expected \")\", found ' '."),
            ("T.f()", "Syntax Error: Expected Name, found ')'."),
            (" T", "Syntax Error: Expected Name, found ' '."),
            ("T.f.g", "Syntax Error: Expected <EOF>, found '.'."),
            ("@d.f", "Syntax Error: Expected <EOF>, found '.'."),
            ("T é", "Syntax Error: Expected <EOF>, found ' '."),
            ("é", "Syntax Error: Expected Name, found 'é'."),
        ] {
            let errors = parse_schema_coordinate(source).unwrap_err();
            assert_eq!(errors.len(), 1);
            assert_eq!(errors[0].message, message, "{source}");
            assert!(!errors[0].labels.is_empty());
        }
    }
}
