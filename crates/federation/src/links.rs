//! Links of a document: which specifications it uses, and what their elements are called in it.
//!
//! A link gives a specification a prefix (its own name unless `as` says otherwise). An element `e` is called
//! `prefix__e` unless it is imported, maybe under another name; a directive named like its specification
//! (`@tag`, `@inaccessible`) is called by the bare prefix. Both `@link(url:)` and its predecessor `@core(feature:)`
//! are read; the linking directive may itself be renamed, so it is found by what it links to.
//!
//! Works on the syntax tree, before any schema is built, because a document that is no supergraph at all should be
//! told so before its unknown directives are complained about.

use ogive_base::{Diagnostic, Span};
use ogive_syntax::ast::{self, Definition, Document, ValueKind};

use crate::vocabulary::{CORE_URL_ARG, Spec, Version};

/// Why a specification is linked: what happens if a reader does not know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Needed to resolve fields without leaking what must not be seen.
    Security,
    /// Needed to resolve fields at all.
    Execution,
}

impl Purpose {
    /// As in `for: EXECUTION`.
    pub fn as_str(self) -> &'static str {
        match self {
            Purpose::Security => "SECURITY",
            Purpose::Execution => "EXECUTION",
        }
    }
}

/// One imported element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Import {
    /// Its name in the specification, without `@`.
    pub element: Box<str>,
    /// Its name in the document, without `@`.
    pub name: Box<str>,
    /// Whether it is a directive; else it is a type.
    pub directive: bool,
}

/// One linked specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// The URL as written.
    pub url: Box<str>,
    /// The URL without version.
    pub identity: Box<str>,
    /// Last path segment of the identity.
    pub name: Box<str>,
    /// The version, if the URL has one.
    pub version: Option<Version>,
    /// Which known specification it is.
    pub spec: Option<Spec>,
    /// Prefix of its elements in this document.
    pub prefix: Box<str>,
    /// Elements with names of their own.
    pub imports: Vec<Import>,
    /// `for:`
    pub purpose: Option<Purpose>,
    /// Where the link is written.
    pub span: Span,
}

impl Link {
    /// What the document calls the specification's directive `element`.
    pub fn directive_name(&self, element: &str) -> String {
        match self.import(element, true) {
            Some(name) => name.to_owned(),
            None if element == &*self.name => self.prefix.to_string(),
            None => format!("{}__{element}", self.prefix),
        }
    }
    /// What the document calls the specification's type `element`.
    pub fn type_name(&self, element: &str) -> String {
        match self.import(element, false) {
            Some(name) => name.to_owned(),
            None => format!("{}__{element}", self.prefix),
        }
    }
    fn import(&self, element: &str, directive: bool) -> Option<&str> {
        self.imports
            .iter()
            .find(|i| i.directive == directive && &*i.element == element)
            .map(|i| &*i.name)
    }
    fn has_prefix(&self, name: &str) -> bool {
        name.strip_prefix(&*self.prefix)
            .is_some_and(|rest| rest.starts_with("__"))
    }
    /// Whether the document's directive `name` is one of this specification.
    pub fn owns_directive(&self, name: &str) -> bool {
        name == &*self.prefix || self.has_prefix(name) || self.imports(name, true)
    }
    /// Whether the document's type `name` is one of this specification.
    pub fn owns_type(&self, name: &str) -> bool {
        self.has_prefix(name) || self.imports(name, false)
    }
    fn imports(&self, name: &str, directive: bool) -> bool {
        self.imports
            .iter()
            .any(|i| i.directive == directive && &*i.name == name)
    }
}

/// The links of one document, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Links {
    /// All links.
    pub all: Vec<Link>,
}

impl Links {
    /// Reads the links of the schema definition and its extensions. Links that make no sense are left out and reported.
    pub fn read(document: &Document) -> (Links, Vec<Diagnostic>) {
        let applied = schema_directives(document);
        let mut errors = Vec::new();
        let Some(linking) = linking_directive(document, &applied) else {
            return (Links::default(), errors);
        };
        let mut all = Vec::new();
        for directive in applied {
            if document.name(directive.name) != linking {
                continue;
            }
            match read_link(document, directive) {
                Ok(link) => all.push(link),
                Err(error) => errors.push(*error),
            }
        }
        (Links { all }, errors)
    }
    /// The link to a known specification.
    pub fn get(&self, spec: Spec) -> Option<&Link> {
        self.all.iter().find(|l| l.spec == Some(spec))
    }
    /// What the document calls directive `element` of `spec`; `None` if `spec` is not linked.
    pub fn directive(&self, spec: Spec, element: &str) -> Option<String> {
        Some(self.get(spec)?.directive_name(element))
    }
    /// The specification that defines the document's directive `name`.
    pub fn owner_of_directive(&self, name: &str) -> Option<&Link> {
        self.all.iter().find(|l| l.owns_directive(name))
    }
    /// The specification that defines the document's type `name`.
    pub fn owner_of_type(&self, name: &str) -> Option<&Link> {
        self.all.iter().find(|l| l.owns_type(name))
    }
}

fn schema_directives(document: &Document) -> Vec<&ast::Directive> {
    document
        .definitions
        .iter()
        .filter_map(|d| match d {
            Definition::Schema(schema) => Some(&document[schema.directives]),
            _ => None,
        })
        .flatten()
        .collect()
}

/// The name of the directive that links: the one that links to the linking specification under its own name, or,
/// as subgraphs may leave that out, a plain `@link` or `@core`.
fn linking_directive<'d>(document: &'d Document, applied: &[&ast::Directive]) -> Option<&'d str> {
    let links_itself = applied.iter().copied().find(|directive| {
        let name = document.name(directive.name);
        read_link(document, directive).is_ok_and(|link| {
            matches!(link.spec, Some(Spec::Link | Spec::Core))
                && link.directive_name(&link.name) == name
        })
    });
    let plain = |wanted: &'static str, arg: &'static str| {
        applied
            .iter()
            .copied()
            .find(move |d| document.name(d.name) == wanted && argument(document, d, arg).is_some())
    };
    links_itself
        .or_else(|| plain(Spec::Link.name(), "url"))
        .or_else(|| plain(Spec::Core.name(), CORE_URL_ARG))
        .map(|d| document.name(d.name))
}

fn argument<'d>(
    document: &'d Document,
    directive: &ast::Directive,
    name: &str,
) -> Option<&'d ast::Value> {
    document[directive.arguments]
        .iter()
        .find(|a| document.name(a.name) == name)
        .map(|a| &a.value)
        .filter(|v| v.kind != ValueKind::Null)
}

fn read_link(document: &Document, directive: &ast::Directive) -> Result<Link, Box<Diagnostic>> {
    let bad = |span: Span, message: &str, help: &str| {
        Box::new(
            Diagnostic::error("INVALID_LINK_DIRECTIVE_USAGE", message)
                .label(document.source_id(), span, "")
                .help(help),
        )
    };
    let string = |value: &ast::Value| {
        value
            .as_string()
            .map(|s| document.string_value(s).into_owned())
    };
    let url = argument(document, directive, "url")
        .or_else(|| argument(document, directive, CORE_URL_ARG))
        .and_then(string)
        .ok_or_else(|| {
            bad(
                directive.span,
                "a link needs the URL of a specification",
                "write `url: \"https://…/name/v1.0\"`",
            )
        })?;
    let (identity, name, version) = split_url(&url);
    let prefix = match argument(document, directive, "as") {
        None => name.to_owned(),
        Some(value) => string(value)
            .ok_or_else(|| bad(value.span, "`as` of a link is a string", "quote the name"))?,
    };
    let purpose = match argument(document, directive, "for") {
        None => None,
        Some(value) => match document.text(value.span).trim_matches('"') {
            "SECURITY" => Some(Purpose::Security),
            "EXECUTION" => Some(Purpose::Execution),
            _ => {
                return Err(bad(
                    value.span,
                    "`for` of a link is `SECURITY` or `EXECUTION`",
                    "leave it out if the specification changes neither",
                ));
            }
        },
    };
    let mut imports = Vec::new();
    if let Some(value) = argument(document, directive, "import") {
        let ValueKind::List(items) = value.kind else {
            return Err(bad(
                value.span,
                "`import` of a link is a list",
                "put it in `[…]`",
            ));
        };
        for item in &document[items] {
            imports.push(read_import(document, item).ok_or_else(|| {
                bad(
                    item.span,
                    "an import is a name or `{ name:, as: }`, both with `@` for directives",
                    "for example `\"@key\"` or `{ name: \"@key\", as: \"@id\" }`",
                )
            })?);
        }
    }
    Ok(Link {
        spec: Spec::from_identity(identity),
        identity: identity.into(),
        name: name.into(),
        version,
        prefix: prefix.into(),
        imports,
        purpose,
        span: directive.span,
        url: url.as_str().into(),
    })
}

fn read_import(document: &Document, item: &ast::Value) -> Option<Import> {
    let text = |value: &ast::Value| {
        value
            .as_string()
            .map(|s| document.string_value(s).into_owned())
    };
    let (element, name) = match item.kind {
        ValueKind::Object(fields) => {
            let field = |wanted: &str| {
                document[fields]
                    .iter()
                    .find(|f| document.name(f.name) == wanted)
                    .map(|f| &f.value)
            };
            let element = field("name").and_then(text)?;
            let name = match field("as") {
                Some(value) => text(value)?,
                None => element.clone(),
            };
            (element, name)
        }
        _ => {
            let element = text(item)?;
            (element.clone(), element)
        }
    };
    match (element.strip_prefix('@'), name.strip_prefix('@')) {
        (Some(element), Some(name)) => Some(Import {
            element: element.into(),
            name: name.into(),
            directive: true,
        }),
        (None, None) => Some(Import {
            element: element.into(),
            name: name.into(),
            directive: false,
        }),
        _ => None,
    }
}

/// Identity, name and version of a specification's URL; a URL without version is its own identity.
fn split_url(url: &str) -> (&str, &str, Option<Version>) {
    let url = url.trim_end_matches('/');
    let (head, tail) = url.rsplit_once('/').unwrap_or(("", url));
    match Version::parse(tail) {
        Some(version) => {
            let name = head.rsplit_once('/').map_or(head, |(_, name)| name);
            (head, name, Some(version))
        }
        None => (url, tail, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_split_into_identity_name_and_version() {
        assert_eq!(
            split_url("https://specs.apollo.dev/join/v0.3/"),
            (
                "https://specs.apollo.dev/join",
                "join",
                Some(Version::new(0, 3))
            )
        );
        assert_eq!(
            split_url("https://example.com/audit"),
            ("https://example.com/audit", "audit", None)
        );
        assert_eq!(split_url("audit"), ("audit", "audit", None));
        assert_eq!(Version::parse("v1.x"), None);
        assert_eq!(Version::parse("1.0"), None);
    }
}
