//! Rules about links of a subgraph and about its own definitions of what it links.

use ogive_base::{Diagnostic, Span};
use ogive_federation::{
    Import, Link, Links,
    vocabulary::{Spec, Version},
};
use ogive_schema::{DirectiveLocation, Schema, suggest::suggestions};
use ogive_syntax::{
    Document,
    ast::{
        Definition, DirectiveDefinition, InputValueDefinition, TypeDefinition, TypeDefinitionKind,
    },
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
        if let Some(problem) = name_problem(&link.prefix) {
            error(
                codes::INVALID_LINK_DIRECTIVE_USAGE,
                format!(
                    "`{}` cannot be the name of the link to `{}`: it {problem}",
                    link.prefix, link.url
                ),
                "choose another name with `as`".into(),
            );
        }
        for (n, import) in link.imports.iter().enumerate() {
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
            } else if let Some((problem, help)) = clash(&links.all[..=i], n) {
                error(codes::INVALID_LINK_DIRECTIVE_USAGE, problem, help);
            } else if let Some(problem) = confusion(links, link, import) {
                error(
                    codes::INVALID_LINK_DIRECTIVE_USAGE,
                    problem,
                    "choose another name with `as`".into(),
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
fn imported_twice(links: &Links, link: &Link, element: &str) -> Option<String> {
    if link.spec != Some(Spec::Federation) {
        return None;
    }
    let spec = ELEMENTS.iter().find(|e| e.name == element)?.spec?;
    Some(links.get(spec)?.url.to_string())
}

fn imported(
    link: &Link,
    import: &Import,
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
}

/// What keeps a link from being called so: elements of a link `a` are called `a__b`.
fn name_problem(prefix: &str) -> Option<&'static str> {
    if prefix.contains("__") {
        Some("contains `__`")
    } else if prefix.ends_with('_') {
        Some("ends in `_`")
    } else if prefix.starts_with(|c: char| c.is_ascii_digit()) {
        Some("begins with a digit")
    } else {
        None
    }
}

/// How an element is written in `import`.
fn written(name: &str, directive: bool) -> String {
    format!("{}{name}", if directive { "@" } else { "" })
}

/// What is wrong with import `n` of the last link beside those before it, and what to do: each element has one name,
/// and each name one element.
fn clash(links: &[Link], n: usize) -> Option<(String, String)> {
    let (last, others) = links.split_last()?;
    let import = &last.imports[n];
    let element = written(&import.element, import.directive);
    let of_last = last.imports[..n].iter().map(|before| (last, before));
    let of_others = others
        .iter()
        .flat_map(|l| l.imports.iter().map(move |i| (l, i)));
    // One element of two known specifications is reported where it is imported from federation.
    let is_known = |link: &Link, before: &Import| {
        let is_other = link.identity != last.identity && before.element == import.element;
        is_other && link.spec.is_some() && last.spec.is_some()
    };
    let is_alike = |(link, before): &(&Link, &Import)| {
        before.directive == import.directive && !is_known(link, before)
    };
    for (link, before) in of_last.chain(of_others).filter(is_alike) {
        let is_same = link.identity == last.identity && before.element == import.element;
        let name = written(&before.name, before.directive);
        if is_same && before.name != import.name {
            let other = written(&import.name, import.directive);
            return Some((
                format!("`{element}` is imported twice, as `{name}` and as `{other}`"),
                "remove one of the two imports".into(),
            ));
        }
        if !is_same && before.name == import.name {
            let other = written(&before.element, before.directive);
            return Some((
                format!(
                    "`{name}` is imported both for `{other}` of `{}` and for `{element}` of `{}`",
                    link.url, last.url
                ),
                "choose another name with `as` for one of the two".into(),
            ));
        }
    }
    None
}

/// What is wrong with the name of an import that some link gives to another element: `a__b` is element `b` of link `a`,
/// and `@a` its directive of the specification's own name.
fn confusion(links: &Links, link: &Link, import: &Import) -> Option<String> {
    let (prefix, element) = match import.name.split_once("__") {
        Some((prefix, element)) => (prefix, Some(element)),
        None if import.directive => (&*import.name, None),
        None => return None,
    };
    let named = links.all.iter().find(|l| *l.prefix == *prefix);
    let (url, element) = match named {
        Some(owner) => {
            let element = element.unwrap_or(&owner.name);
            if owner.identity == link.identity && *import.element == *element {
                return None;
            }
            (&*owner.url, element)
        }
        // Linking itself need not be linked.
        None if prefix == Spec::Link.name() && links.get(Spec::Link).is_none() => {
            (Spec::Link.name(), element.unwrap_or(prefix))
        }
        None => return None,
    };
    Some(format!(
        "`{}` imported as `{}` reads like `{}` of `{url}`",
        written(&import.element, import.directive),
        written(&import.name, import.directive),
        written(element, import.directive)
    ))
}

/// Holds a subgraph's own definitions of linked elements against those of their specifications; returns what it
/// defines, as `(name, is directive)`. Its own definitions count then, with the locations and arguments they have.
/// Those that do not fit are taken out of the document, so that nobody complains of what follows from them.
pub(crate) fn check_definitions(
    doc: &mut Document,
    vocabulary: &Vocabulary,
    legacy: bool,
    errors: &mut Vec<Diagnostic>,
) -> Vec<(String, bool)> {
    let mut defined = Vec::new();
    let mut definitions = std::mem::take(&mut doc.definitions);
    definitions.retain(|definition| {
        let (name, span, is_directive) = match definition {
            Definition::Directive(d) => (d.name, d.name.span(), true),
            Definition::Type(d) if !d.extend => (d.name, d.name.span(), false),
            _ => return true,
        };
        let text = doc.name(name);
        if text.starts_with("join__") && is_merged(doc, definition) {
            errors.push(reserved(doc, text, is_directive, span));
            return true;
        }
        let find = |list: &[(Box<str>, bool, String)]| {
            list.iter()
                .find(|(n, directive, _)| **n == *text && *directive == is_directive)
                .map(|(_, _, known)| known.clone())
        };
        let linked = find(&vocabulary.definitions);
        let is_linked = linked.is_some();
        let Some(known) = linked.or_else(|| find(&vocabulary.reserved)) else {
            return true;
        };
        let before = errors.len();
        match definition {
            Definition::Directive(d) => check_directive(doc, d, &known, legacy, errors),
            Definition::Type(d) if !type_fits(doc, d, &known) => {
                type_error(doc, text, span, &known, errors);
            }
            _ => {}
        }
        let fits = errors.len() == before;
        if is_linked && fits {
            defined.push((text.to_owned(), is_directive));
        }
        fits
    });
    doc.definitions = definitions;
    defined
}

/// Whether a definition can come to stand in the supergraph under its name.
fn is_merged(doc: &Document, definition: &Definition) -> bool {
    match definition {
        Definition::Directive(d) => doc[d.locations].iter().any(|l| {
            DirectiveLocation::from_name(doc.name(*l)).is_some_and(DirectiveLocation::is_executable)
        }),
        _ => true,
    }
}

/// A name that supergraphs need for themselves.
fn reserved(doc: &Document, name: &str, is_directive: bool, span: Span) -> Diagnostic {
    let (code, sigil) = if is_directive {
        (codes::DIRECTIVE_DEFINITION_INVALID, "@")
    } else {
        (codes::TYPE_DEFINITION_INVALID, "")
    };
    let message =
        format!("`{sigil}{name}`: names that begin with `join__` belong to the supergraph");
    Diagnostic::error(code, message)
        .about(format!("{sigil}{name}"))
        .label(doc.source_id(), span, "")
        .help("choose another name")
}

/// Whether a type is of the kind that its specification says, with the same values.
fn type_fits(doc: &Document, def: &TypeDefinition, known: &str) -> bool {
    match def.kind {
        TypeDefinitionKind::Scalar => known.starts_with("scalar"),
        TypeDefinitionKind::Enum { values } => {
            let mut ours: Vec<&str> = doc[values].iter().map(|v| doc.name(v.name)).collect();
            let known = known.split(['{', '}']).nth(1).unwrap_or_default();
            let mut theirs: Vec<&str> = known.split_whitespace().collect();
            ours.sort_unstable();
            theirs.sort_unstable();
            !theirs.is_empty() && ours == theirs
        }
        _ => false,
    }
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
    def: &DirectiveDefinition,
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
            Some(a) => wrong = argument_problem((doc, arg), (&parsed, a), legacy).or(wrong),
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

/// How an argument differs from what the specification says. A scalar of the specification may be `String` or `ID`,
/// what may be left out may be required, and what must be given may have a default value.
fn argument_problem(
    (doc, ours): (&Document, &InputValueDefinition),
    (known, theirs): (&Document, &InputValueDefinition),
    legacy: bool,
) -> Option<(Span, String)> {
    let name = doc.name(ours.name);
    let (our_type, their_type) = (doc.name(ours.ty.name), known.name(theirs.ty.name));
    let is_scalar = ["FieldSet", "Scope", "Policy", "ContextFieldValue", "Import"]
        .iter()
        .any(|s| their_type.ends_with(s));
    let same_name = our_type == their_type || (is_scalar && matches!(our_type, "String" | "ID"));
    let (have, want) = (ours.ty.wrapping, theirs.ty.wrapping);
    // Federation 1 was not strict about field sets, nor is anybody about the URL of a link.
    let lenient = (legacy && their_type.ends_with("FieldSet")) || matches!(name, "url" | "feature");
    let same_wrapping = have.lists() == want.lists()
        && (0..=want.lists())
            .all(|l| have.layer_is_non_null(l) || !want.layer_is_non_null(l) || lenient);
    if !same_name || !same_wrapping {
        let shown = want.display(their_type);
        let why = format!("argument `{name}` should be of type `{shown}`");
        return Some((ours.ty.span, why));
    }
    if want.is_non_null() {
        return None;
    }
    let text = |doc: &Document, input: &InputValueDefinition| {
        input.default.map(|v| doc.text(v.span).to_owned())
    };
    let (have, want) = (text(doc, ours), text(known, theirs));
    (have != want).then(|| {
        let why = match want {
            Some(want) => format!("the default of argument `{name}` should be `{want}`"),
            None => format!("argument `{name}` should have no default"),
        };
        (ours.ty.span, why)
    })
}

/// An unknown directive may be misspelt, not imported, or one of federation 2 in a document that does not link it.
pub(crate) fn explain_unknown(error: &mut Diagnostic, schema: &Schema, legacy: bool) {
    if error.code != ogive_schema::codes::UNKNOWN_DIRECTIVE || error.help.is_some() {
        return;
    }
    let Some(name) = error.message.split('"').nth(1) else {
        return;
    };
    let name = name.trim_start_matches('@').to_owned();
    let import = |element: &spec::Element| {
        if legacy {
            format!(
                "without a link to federation this is a federation 1 subgraph: add `extend schema @link(url: \"https://specs.apollo.dev/federation/{}\", import: [\"@{}\"])`",
                spec::FEDERATION_MAX.min(element.since.max(Version::new(2, 3))),
                element.name
            )
        } else {
            format!("import it: `import: [\"@{}\"]`", element.name)
        }
    };
    if let Some(element) = ELEMENTS.iter().find(|e| e.name == name) {
        error.help = Some(import(element));
        return;
    }
    let own = schema.directive_list.iter().map(|id| {
        let row = &schema.directive_defs[*id];
        schema.name(row.name)
    });
    let names = own.chain(ELEMENTS.iter().map(|e| e.name));
    // Names that both have would be suggested twice.
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    let close = suggestions(&name, names.iter().copied()).into_iter().next();
    error.help = close.map(|close| {
        let known = schema.directive_by_name(close).is_some();
        match ELEMENTS.iter().find(|e| e.name == close && !known) {
            Some(element) => format!("did you mean `@{close}`? Then {}", import(element)),
            None => format!("did you mean `@{close}`?"),
        }
    });
}
