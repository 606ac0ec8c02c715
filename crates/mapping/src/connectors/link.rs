//! `@link` to the connect specification: its version, and the names of its directives.

use ogive_base::Diagnostic;
use ogive_syntax::ast::{Argument, Definition, Directive, Document, Value, ValueKind};

use super::INVALID_CONNECTOR;
use crate::version::Version;

/// Where the specification is; its version follows.
const IDENTITY: &str = "https://specs.apollo.dev/connect/";

/// What a document links.
pub(super) struct Link {
    pub(super) version: Version,
    /// The name of `@connect` in the document.
    pub(super) connect: String,
    /// The name of `@source` in the document.
    pub(super) source: String,
}

/// The link to the connect specification, if the document has one.
pub(super) fn find(document: &Document, diagnostics: &mut Vec<Diagnostic>) -> Option<Link> {
    let schemas = document
        .definitions
        .iter()
        .filter_map(|definition| match definition {
            Definition::Schema(schema) => Some(schema),
            _ => None,
        });
    let mut links = schemas.flat_map(|schema| &document[schema.directives]);
    links.find_map(|directive| read(document, directive, diagnostics))
}

fn read(
    document: &Document,
    directive: &Directive,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Link> {
    if document.name(directive.name) != "link" {
        return None;
    }
    let arguments = &document[directive.arguments];
    let url = argument(document, arguments, "url")?;
    let text = document.string_value(url.as_string()?);
    let linked = text.strip_prefix(IDENTITY)?.trim_end_matches('/');
    let Some(version) = Version::from_link(linked) else {
        let known = Version::ALL.map(|version| version.to_string()).join(", ");
        let message = format!("version `{}` is not known", ogive_base::bounded(linked, 20));
        let source = document.source_id();
        let diagnostic = Diagnostic::error(INVALID_CONNECTOR, message)
            .label(source, url.span, "")
            .help(format!("link one of {known}"));
        diagnostics.push(diagnostic);
        return None;
    };
    let prefix = argument(document, arguments, "as").and_then(|value| {
        let string = value.as_string()?;
        Some(document.string_value(string).into_owned())
    });
    let prefix = prefix.unwrap_or_else(|| "connect".to_owned());
    // The directive with the name of the specification has the name of the link.
    let mut link = Link {
        version,
        source: format!("{prefix}__source"),
        connect: prefix,
    };
    if let Some(Value {
        kind: ValueKind::List(imports),
        ..
    }) = argument(document, arguments, "import")
    {
        for import in &document[imports] {
            link.import(document, import);
        }
    }
    Some(link)
}

impl Link {
    /// `"@connect"`, or `{ name: "@connect", as: "@rest" }`.
    fn import(&mut self, document: &Document, import: &Value) {
        let text = |value: &Value| {
            let string = value.as_string()?;
            let text = document.string_value(string);
            text.strip_prefix('@').map(str::to_owned)
        };
        let (name, to) = match import.kind {
            ValueKind::Object(fields) => {
                let field = |wanted: &str| {
                    let fields = &document[fields];
                    let field = fields
                        .iter()
                        .find(|field| document.name(field.name) == wanted);
                    field.and_then(|field| text(&field.value))
                };
                (field("name"), field("as"))
            }
            _ => (text(import), None),
        };
        let Some(name) = name else { return };
        let to = to.unwrap_or_else(|| name.clone());
        match name.as_str() {
            "connect" => self.connect = to,
            "source" => self.source = to,
            _ => {}
        }
    }
}

fn argument(document: &Document, arguments: &[Argument], name: &str) -> Option<Value> {
    let found = arguments
        .iter()
        .find(|argument| document.name(argument.name) == name);
    found.map(|argument| argument.value)
}
