//! Texts of configurations, and of files beside them, as trees.

use ogive_yaml::{ErrorKind, Limits, Node, YamlError};

use crate::{codes, decode::Errors};

/// What a configuration may have.
const LIMITS: Limits = Limits {
    subject: "a configuration",
    text_bytes: 1 << 20,
    depth: 32,
    nodes: 20_000,
    aliases: false,
};

/// Reads one document. `None` if an error was reported; an empty text is null.
pub fn parse(text: &str, errors: &mut Errors) -> Option<Node> {
    ogive_yaml::parse(text, LIMITS, &mut |error| errors.push_yaml(error))
}

/// Reads one document of another gateway, which may have anchors and aliases.
pub fn parse_with_aliases(text: &str, errors: &mut Errors) -> Option<Node> {
    let limits = Limits {
        aliases: true,
        ..LIMITS
    };
    ogive_yaml::parse(text, limits, &mut |error| errors.push_yaml(error))
}

impl Errors {
    fn push_yaml(&mut self, error: YamlError) {
        let (span, message) = (error.span, error.message);
        let code = match error.kind {
            ErrorKind::Syntax => codes::SYNTAX,
            ErrorKind::Limit => codes::LIMIT,
            ErrorKind::DuplicateKey(first) => {
                let first = (first, "first set here".to_owned());
                return self.push_with(codes::DUPLICATE_KEY, span, message, first);
            }
        };
        self.push(code, span, message, error.help.map(str::to_owned));
    }
}
