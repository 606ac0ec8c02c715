//! Rules about links of a subgraph and about its own definitions of what it links.

use ogive_base::{Diagnostic, Span};
use ogive_federation::{
    Links,
    vocabulary::{Spec, Version},
};
use ogive_schema::suggest::suggestions;
use ogive_syntax::{
    Document,
    ast::{Definition, TypeDefinitionKind},
};

use crate::{
    codes,
    spec::{self, ELEMENTS, Vocabulary},
};

/// Types of the federation specification that can be imported.
const TYPES: [&str; 4] = ["FieldSet", "Scope", "Policy", "ContextFieldValue"];

/// Checks versions, repetitions and imports of links.
pub(crate) fn check(doc: &Document, links: &Links, errors: &mut Vec<Diagnostic>) {
    for (i, link) in links.all.iter().enumerate() {
        let mut error = |code: &'static str, message: String, help: String| {
            errors.push(
                Diagnostic::error(code, message)
                    .label(doc.source_id(), link.span, "")
                    .help(help),
            );
        };
        if let Some(first) = links.all[..i].iter().find(|l| l.identity == link.identity) {
            error(
                codes::INVALID_LINK_DIRECTIVE_USAGE,
                format!("`{}` is linked twice", link.identity),
                format!("merge it with the link to `{}`", first.url),
            );
            continue;
        }
        if let Some(first) = links.all[..i].iter().find(|l| l.prefix == link.prefix) {
            error(
                codes::INVALID_LINK_DIRECTIVE_USAGE,
                format!(
                    "the links to `{}` and `{}` use the same name `{}`",
                    first.url, link.url, link.prefix
                ),
                "rename one with `as`".into(),
            );
        }
        let version = link.version;
        if let Some(problem) = identifier_problem(&link.url) {
            error(
                codes::INVALID_LINK_IDENTIFIER,
                format!("`{}` {problem}", link.url),
                "write `https://…/name/v1.0`".into(),
            );
            continue;
        }
        match link.spec {
            Some(Spec::Federation) if !version.is_some_and(spec::is_known_federation) => error(
                codes::UNKNOWN_FEDERATION_LINK_VERSION,
                format!("`{}` is no federation version known here", link.url),
                format!("federation v2.0 to {} are composed", spec::FEDERATION_MAX),
            ),
            Some(Spec::Link) if version != Some(Version::new(1, 0)) => error(
                codes::UNKNOWN_LINK_VERSION,
                format!(
                    "`{}` is no version of the link specification known here",
                    link.url
                ),
                "link v1.0".into(),
            ),
            _ => {}
        }
        for import in &link.imports {
            if import.directive
                && let Some(other) = imported_twice(links, link, &import.element)
            {
                error(
                    codes::INVALID_LINK_DIRECTIVE_USAGE,
                    format!(
                        "`@{}` is imported from federation and linked by `{other}` too",
                        import.element
                    ),
                    format!("remove the link to `{other}`"),
                );
            }
            imported(link, import, version, &mut error);
        }
    }
}

/// What is wrong with the URL of a specification: it is an identity whose last segment is the name, and a version.
fn identifier_problem(url: &str) -> Option<&'static str> {
    let Some((_, rest)) = url.split_once(':').filter(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    }) else {
        return Some("is no URL");
    };
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.split_once('/').map_or("", |(_, path)| path),
        None => rest,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let (head, tail) = path.rsplit_once('/').unwrap_or(("", path));
    if Version::parse(tail).is_none() {
        return Some("does not end in a version such as `v1.0`");
    }
    let name = head.rsplit('/').next().unwrap_or_default();
    name.is_empty()
        .then_some("has no name of a specification before its version")
}

/// One directive of federation under two links would have two names.
fn imported_twice(links: &Links, link: &ogive_federation::Link, element: &str) -> Option<String> {
    if link.spec != Some(Spec::Federation) {
        return None;
    }
    let spec = ELEMENTS.iter().find(|e| e.name == element)?.spec?;
    Some(links.get(spec)?.url.to_string())
}

fn imported(
    link: &ogive_federation::Link,
    import: &ogive_federation::Import,
    version: Option<Version>,
    error: &mut dyn FnMut(&'static str, String, String),
) {
    if link.spec == Some(Spec::Federation)
        && let Some(version) = version
        && spec::is_known_federation(version)
    {
        let known = |name: &str| {
            if import.directive {
                ELEMENTS.iter().find(|e| e.name == name).map(|e| e.since)
            } else {
                TYPES.contains(&name).then_some(Version::new(2, 0))
            }
        };
        let sigil = if import.directive { "@" } else { "" };
        match known(&import.element) {
            Some(since) if since <= version => {}
            Some(since) => error(
                codes::INVALID_LINK_DIRECTIVE_USAGE,
                format!("federation {version} has no `{sigil}{}`", import.element),
                format!("it came with {since}: link `https://specs.apollo.dev/federation/{since}`"),
            ),
            None => {
                let names: Vec<&str> = if import.directive {
                    ELEMENTS.iter().map(|e| e.name).collect()
                } else {
                    TYPES.to_vec()
                };
                let help =
                    if !import.directive && ELEMENTS.iter().any(|e| *e.name == *import.element) {
                        format!(
                            "directives are imported with `@`: `\"@{}\"`",
                            import.element
                        )
                    } else {
                        match suggestions(&import.element, names).first() {
                            Some(close) => format!("did you mean `{sigil}{close}`?"),
                            None => "remove it from `import`".into(),
                        }
                    };
                error(
                    codes::INVALID_LINK_DIRECTIVE_USAGE,
                    format!("federation {version} has no `{sigil}{}`", import.element),
                    help,
                );
            }
        }
    }
    let spec_name = &*link.name;
    if import.directive && *import.name == *spec_name && *import.element != *spec_name {
        error(
            codes::INVALID_LINK_DIRECTIVE_USAGE,
            format!(
                "`@{}` imported as `@{}` reads like the specification's own directive",
                import.element, import.name
            ),
            "choose another name with `as`".into(),
        );
    }
    if import.name.contains("__")
        && !import.name.starts_with(&format!("{}__", link.prefix))
        && import.name != import.element
    {
        // `a__b` is how elements of link `a` are called.
    }
}

/// Takes a subgraph's own definitions of linked elements out of its document: the specification's hold instead.
/// Incompatible ones are reported.
pub(crate) fn drop_definitions(
    doc: &mut Document,
    vocabulary: &Vocabulary,
    legacy: bool,
    errors: &mut Vec<Diagnostic>,
) {
    let mut definitions = std::mem::take(&mut doc.definitions);
    definitions.retain(|definition| {
        let (name, span, is_directive) = match definition {
            Definition::Directive(d) => (d.name, d.name.span(), true),
            Definition::Type(d) if !d.extend => (d.name, d.name.span(), false),
            _ => return true,
        };
        let text = doc.name(name);
        let Some((_, _, known)) = vocabulary
            .definitions
            .iter()
            .find(|(n, directive, _)| **n == *text && *directive == is_directive)
        else {
            return true;
        };
        match definition {
            Definition::Directive(d) => check_directive(doc, d, known, legacy, errors),
            Definition::Type(d) => {
                let fits = match d.kind {
                    TypeDefinitionKind::Scalar => known.starts_with("scalar"),
                    TypeDefinitionKind::Enum { .. } => known.starts_with("enum"),
                    _ => false,
                };
                if !fits {
                    type_error(doc, text, span, known, errors);
                }
            }
            _ => {}
        }
        false
    });
    doc.definitions = definitions;
}

fn type_error(doc: &Document, name: &str, span: Span, known: &str, errors: &mut Vec<Diagnostic>) {
    errors.push(
        Diagnostic::error(
            codes::TYPE_DEFINITION_INVALID,
            format!("`{name}` is a type of a linked specification and defined differently here"),
        )
        .about(name)
        .label(doc.source_id(), span, "")
        .help(format!("leave the definition out, or write `{known}`")),
    );
}

/// A definition may leave out optional arguments and locations, and may not add any.
fn check_directive(
    doc: &Document,
    def: &ogive_syntax::ast::DirectiveDefinition,
    known: &str,
    legacy: bool,
    errors: &mut Vec<Diagnostic>,
) {
    let parsed =
        ogive_syntax::parse(known, doc.source_id(), &ogive_syntax::Limits::default()).document;
    let Some(Definition::Directive(expected)) = parsed.definitions.first() else {
        return;
    };
    let mut wrong: Option<(Span, String)> = None;
    for arg in &doc[def.arguments] {
        let name = doc.name(arg.name);
        let found = parsed[expected.arguments]
            .iter()
            .find(|a| parsed.name(a.name) == name);
        match found {
            None => {
                wrong = Some((
                    arg.name.span(),
                    format!("argument `{name}` is not part of it"),
                ))
            }
            Some(a) => {
                let (ours, theirs) = (doc.name(arg.ty.name), parsed.name(a.ty.name));
                // Old documents say `String` or `_FieldSet` for field sets, and are loose about `!`.
                let same_name = ours == theirs
                    || ((theirs.ends_with("FieldSet")
                        || theirs.ends_with("Scope")
                        || theirs.ends_with("Policy"))
                        && (ours == "String" || ours.ends_with("FieldSet")));
                let same_wrapping = arg.ty.wrapping == a.ty.wrapping
                    || arg.ty.wrapping.non_null() == a.ty.wrapping.non_null();
                if !same_name || !same_wrapping {
                    wrong = Some((
                        arg.ty.span,
                        format!(
                            "argument `{name}` should be of type `{}`",
                            a.ty.wrapping.display(theirs)
                        ),
                    ));
                }
            }
        }
    }
    for arg in &parsed[expected.arguments] {
        let name = parsed.name(arg.name);
        let required = arg.ty.wrapping.is_non_null() && arg.default.is_none();
        if required && !doc[def.arguments].iter().any(|a| doc.name(a.name) == name) {
            wrong = Some((def.name.span(), format!("argument `{name}` is missing")));
        }
    }
    for location in &doc[def.locations] {
        let name = doc.name(*location);
        if !parsed[expected.locations]
            .iter()
            .any(|l| parsed.name(*l) == name)
        {
            wrong = Some((location.span(), format!("it does not stand on {name}")));
        }
    }
    if def.repeatable && !expected.repeatable {
        wrong = Some((def.name.span(), "it is not repeatable".into()));
    }
    let Some((span, why)) = wrong else { return };
    if legacy
        && !matches!(
            doc.name(def.name),
            "key" | "requires" | "provides" | "external" | "extends" | "tag"
        )
    {
        return;
    }
    let name = doc.name(def.name);
    errors.push(
        Diagnostic::error(
            codes::DIRECTIVE_DEFINITION_INVALID,
            format!("`@{name}` is defined differently by its specification: {why}"),
        )
        .about(format!("@{name}"))
        .label(doc.source_id(), span, "")
        .help(format!("leave the definition out, or write `{known}`")),
    );
}

/// An unknown directive may be a federation 2 directive in a document that does not link federation.
pub(crate) fn explain_unknown(error: &mut Diagnostic, _links: &Links, legacy: bool) {
    if error.code != ogive_schema::codes::UNKNOWN_DIRECTIVE || error.help.is_some() {
        return;
    }
    let named = ELEMENTS
        .iter()
        .find(|e| error.message.contains(&format!("\"@{}\"", e.name)));
    if let Some(element) = named {
        error.help = Some(if legacy {
            format!(
                "without a link to federation this is a federation 1 subgraph: add `extend schema @link(url: \"https://specs.apollo.dev/federation/{}\", import: [\"@{}\"])`",
                spec::FEDERATION_MAX.min(element.since.max(Version::new(2, 3))),
                element.name
            )
        } else {
            format!("import it: `import: [\"@{}\"]`", element.name)
        });
    }
}
