//! Cutting templates into pieces, and evaluating them.

use ogive_base::{Diagnostic, Span};

use super::{ReadTemplate, RequestError};
use crate::{
    compile::{Environment, compile},
    diagnostics::DiagnosticList,
    kinds::Kinds,
    limits::{ParseLimits, RunLimits},
    origin::{Located, Origin},
    parse::{self, INVALID_SYNTAX},
    program::Program,
    run::Inputs,
    version::Version,
};

/// What a template is read with.
pub(super) struct Context<'a> {
    origin: &'a Origin,
    version: Version,
    environment: Environment,
    limits: &'a ParseLimits,
    diagnostics: DiagnosticList,
}

/// A part of a template.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// A character that stands for itself.
    Character(char),
    /// `{…}`; `None` if it has mistakes, which were reported.
    Expression(Option<Box<Program>>),
}

/// A part, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct LocatedPart {
    pub(super) part: Part,
    pub(super) span: Span,
}

impl<'a> Context<'a> {
    /// Reads a text: `read` makes a template of its parts.
    pub(super) fn read<T>(
        text: &'a Located,
        version: Version,
        environment: &Environment,
        limits: &'a ParseLimits,
        read: impl FnOnce(&mut Self, &[LocatedPart]) -> T,
    ) -> ReadTemplate<T> {
        let mut environment = environment.clone().expecting(Kinds::SCALAR);
        environment.diagnostics_max = limits.diagnostics_max;
        let mut context = Context {
            origin: &text.origin,
            version,
            environment,
            limits,
            diagnostics: DiagnosticList::new(limits.diagnostics_max),
        };
        let parts = context.parts(&text.text);
        let template = read(&mut context, &parts);
        let fails = context.diagnostics.has_errors();
        ReadTemplate {
            template: (!fails).then_some(template),
            diagnostics: context.diagnostics.into_vec(),
        }
    }

    pub(super) fn report(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        let span = self.origin.span(span);
        let diagnostic = Diagnostic::error(code, message).label(self.origin.source(), span, "");
        self.diagnostics.push(diagnostic);
    }

    /// Reads a template. Line breaks, and white space around them, are left out: they are there for people.
    fn parts(&mut self, text: &str) -> Vec<LocatedPart> {
        let mut parts: Vec<LocatedPart> = Vec::new();
        let bytes_max = self.limits.text_bytes_max;
        if text.len() > bytes_max {
            let message = format!(
                "a template of {} bytes is too long: at most {bytes_max} bytes are allowed",
                text.len()
            );
            self.report(INVALID_SYNTAX, Span::default(), message);
            return parts;
        }
        let mut at = 0;
        while let Some(character) = text[at..].chars().next()
            && !self.diagnostics.is_full()
        {
            let end = at + character.len_utf8();
            let span = Span::new(at as u32, end as u32);
            match character {
                '{' => {
                    let Some(close) = parse::closing_brace(text, end) else {
                        self.report(INVALID_SYNTAX, span, "`{` is not closed");
                        return parts;
                    };
                    let program = self.expression(text, end, close);
                    parts.push(LocatedPart {
                        part: Part::Expression(program.map(Box::new)),
                        span: Span::new(at as u32, close as u32 + 1),
                    });
                    at = close + 1;
                    continue;
                }
                '}' => self.report(INVALID_SYNTAX, span, "`}` closes nothing"),
                '\n' | '\r' => {
                    let is_blank =
                        |located: &LocatedPart| matches!(located.part, Part::Character(' ' | '\t'));
                    while parts.last().is_some_and(is_blank) {
                        parts.pop();
                    }
                    let rest = text[at..].trim_start_matches([' ', '\t', '\n', '\r']);
                    at = text.len() - rest.len();
                    continue;
                }
                _ => parts.push(LocatedPart {
                    part: Part::Character(character),
                    span,
                }),
            }
            at = end;
        }
        parts
    }

    fn expression(&mut self, text: &str, start: usize, end: usize) -> Option<Program> {
        let origin = self.origin.part(start as u32);
        let parsed = parse::parse(&text[start..end], &origin, self.version, self.limits);
        if !parsed.diagnostics.is_empty() {
            self.add_diagnostics(parsed.diagnostics);
            return None;
        }
        let compiled = compile(&parsed.mapping, &origin, &self.environment);
        self.add_diagnostics(compiled.diagnostics);
        compiled.program
    }
    fn add_diagnostics(&mut self, diagnostics: Vec<Diagnostic>) {
        for diagnostic in diagnostics {
            self.diagnostics.push(diagnostic);
        }
    }
}

/// A run of text that is put in as it is, or an expression.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Text(String),
    Expression { program: Box<Program>, span: Span },
}

/// Pieces that are put together.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces(pub(super) Vec<Piece>);

impl Pieces {
    pub(super) fn push_text(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.0.push(Piece::Text(text.to_owned())),
        }
    }
    pub(super) fn push_expression(&mut self, program: Option<Box<Program>>, span: Span) {
        // One with mistakes was reported, and the template is not used.
        if let Some(program) = program {
            self.0.push(Piece::Expression { program, span });
        }
    }
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(super) fn has_expressions(&self) -> bool {
        let mut all = self.0.iter();
        all.any(|piece| matches!(piece, Piece::Expression { .. }))
    }
    /// The programs of all expressions.
    pub(super) fn programs(&self) -> impl Iterator<Item = &Program> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Expression { program, .. } => Some(&**program),
        })
    }

    /// Appends all pieces; `encode` appends the value of an expression. An error once `out` is longer than `bytes_max`.
    pub(super) fn render(
        &self,
        inputs: &Inputs<'_>,
        limits: &RunLimits,
        bytes_max: usize,
        out: &mut String,
        encode: impl Fn(&str, &mut String),
    ) -> Result<(), RequestError> {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Expression { program, span } => match program.run_text(inputs, limits)? {
                    Some(text) => encode(&text, out),
                    None => return Err(RequestError::NotText(*span)),
                },
            }
            if out.len() > bytes_max {
                return Err(RequestError::TooLong);
            }
        }
        Ok(())
    }
}
