//! Values of headers.

use super::{
    INVALID_HEADER, ReadTemplate, RequestError,
    pieces::{Context, Part, Pieces},
};
use crate::{
    compile::Environment,
    limits::{ParseLimits, RunLimits},
    origin::Located,
    program::Program,
    run::Inputs,
    version::Version,
};

/// The value of a header: text with expressions.
#[derive(Clone, Debug)]
pub struct HeaderTemplate {
    pieces: Pieces,
}

/// Reads the value of a header.
pub fn parse_header_template(
    text: &Located,
    version: Version,
    environment: &Environment,
    limits: &ParseLimits,
) -> ReadTemplate<HeaderTemplate> {
    Context::read(text, version, environment, limits, |context, parts| {
        let mut pieces = Pieces::default();
        for located in parts {
            match &located.part {
                Part::Character(character) if is_forbidden(*character) => {
                    let message = "a header cannot hold a control character";
                    context.report(INVALID_HEADER, located.span, message);
                }
                Part::Character(character) => {
                    pieces.push_text(character.encode_utf8(&mut [0; 4]));
                }
                Part::Expression(program) => pieces.push_expression(program.clone(), located.span),
            }
        }
        HeaderTemplate { pieces }
    })
}

impl HeaderTemplate {
    /// The programs of all expressions.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.pieces.programs()
    }
    /// The value, without white space at both ends.
    pub fn render(&self, inputs: &Inputs<'_>, limits: &RunLimits) -> Result<String, RequestError> {
        let mut value = String::new();
        let bytes_max = limits.header_bytes_max;
        let push = |text: &str, out: &mut String| out.push_str(text);
        self.pieces
            .render(inputs, limits, bytes_max, &mut value, push)?;
        if value.chars().any(is_forbidden) {
            return Err(RequestError::ControlCharacter);
        }
        Ok(value.trim_matches([' ', '\t']).to_owned())
    }
}

/// Whether a character cannot stand in the value of a header (RFC 9110, 5.5).
fn is_forbidden(character: char) -> bool {
    character != '\t' && character.is_ascii_control()
}
