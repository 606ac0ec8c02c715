//! Values of headers.

use ogive_base::Diagnostic;

use super::{
    INVALID_HEADER, RequestError,
    pieces::{Context, Part, Pieces},
};
use crate::{
    compile::Environment,
    limits::{ParseLimits, RunLimits},
    origin::Origin,
    program::Program,
    run::Inputs,
    version::Version,
};

/// The value of a header: text with expressions.
#[derive(Clone, Debug)]
pub struct HeaderTemplate {
    pieces: Pieces,
}

/// Reads the value of a header; `None` if there are errors.
pub fn parse_header_template(
    text: &str,
    origin: &Origin,
    version: Version,
    environment: &Environment,
    limits: &ParseLimits,
) -> (Option<HeaderTemplate>, Vec<Diagnostic>) {
    let mut context = Context {
        origin,
        version,
        environment,
        limits,
        diagnostics: Vec::new(),
    };
    let mut pieces = Pieces::default();
    for located in context.parts(text) {
        match located.part {
            Part::Character(character) if is_forbidden(character) => {
                context.report(
                    INVALID_HEADER,
                    located.span,
                    "a header cannot hold a control character",
                );
            }
            Part::Character(character) => {
                pieces.push_text(character.encode_utf8(&mut [0; 4]));
            }
            Part::Expression(program) => pieces.push_expression(program, located.span),
        }
    }
    let template = (!context.fails()).then_some(HeaderTemplate { pieces });
    (template, context.diagnostics)
}

impl HeaderTemplate {
    /// The programs of all expressions.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.pieces.programs()
    }
    /// The value, without white space at both ends.
    pub fn render(&self, inputs: &Inputs<'_>, limits: &RunLimits) -> Result<String, RequestError> {
        let mut value = String::new();
        self.pieces
            .render(inputs, limits, &mut value, |text, out| out.push_str(text))?;
        if value.chars().any(is_forbidden) {
            return Err(RequestError::ControlCharacter);
        }
        if value.len() > limits.header_bytes_max {
            return Err(RequestError::TooLong);
        }
        Ok(value.trim_matches([' ', '\t']).to_owned())
    }
}

/// Whether a character cannot stand in the value of a header (RFC 9110, 5.5).
fn is_forbidden(character: char) -> bool {
    character != '\t' && character.is_ascii_control()
}
