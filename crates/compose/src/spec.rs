//! What each specification brings into a subgraph, by version: directive and type definitions as data.
//!
//! A subgraph need not define what it links. [`vocabulary`] writes the missing definitions under the names the
//! subgraph's links give them, so that the ordinary schema builder can check the document.

use std::fmt::Write;

use ogive_federation::{
    Link, Links,
    vocabulary::{Spec, Version},
};

/// Newest federation version that is composed.
pub const FEDERATION_MAX: Version = Version::new(2, 14);

/// Directives that composition gives a meaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
#[expect(missing_docs, reason = "the specification's own names")]
pub enum Word {
    Key,
    Requires,
    Provides,
    External,
    Extends,
    Shareable,
    Override,
    Inaccessible,
    Tag,
    ComposeDirective,
    InterfaceObject,
    Authenticated,
    RequiresScopes,
    Policy,
    Context,
    FromContext,
    Cost,
    ListSize,
    CacheTag,
}

/// Number of [`Word`]s.
pub const WORDS: usize = 19;

/// One directive of a specification.
#[derive(Debug)]
pub struct Element {
    /// Its meaning.
    pub word: Word,
    /// Its name in the specification.
    pub name: &'static str,
    /// First federation version that has it.
    pub since: Version,
    /// The stand-alone specification it comes from, if any.
    pub spec: Option<Spec>,
    /// Arguments, `$T` standing for the prefix of the specification's types.
    pub args: &'static str,
    /// Whether it may be repeated (from 2.2 on in the case of `@shareable`).
    pub repeatable: bool,
    /// Where it may stand.
    pub locations: &'static str,
}

const ANYWHERE: &str = "FIELD_DEFINITION | OBJECT | INTERFACE | UNION | ARGUMENT_DEFINITION | SCALAR | ENUM | ENUM_VALUE | INPUT_OBJECT | INPUT_FIELD_DEFINITION";
const PROTECTED: &str = "FIELD_DEFINITION | OBJECT | INTERFACE | SCALAR | ENUM";

const fn element(word: Word, name: &'static str, minor: u32, args: &'static str) -> Element {
    Element {
        word,
        name,
        since: Version::new(2, minor),
        spec: None,
        args,
        repeatable: false,
        locations: "FIELD_DEFINITION",
    }
}

/// Every directive, in order of [`Word`].
pub static ELEMENTS: [Element; WORDS] = [
    Element {
        repeatable: true,
        locations: "OBJECT | INTERFACE",
        ..element(
            Word::Key,
            "key",
            0,
            "(fields: $FieldSet!, resolvable: Boolean = true)",
        )
    },
    element(Word::Requires, "requires", 0, "(fields: $FieldSet!)"),
    element(Word::Provides, "provides", 0, "(fields: $FieldSet!)"),
    Element {
        locations: "OBJECT | FIELD_DEFINITION",
        ..element(Word::External, "external", 0, "(reason: String)")
    },
    Element {
        locations: "OBJECT | INTERFACE",
        ..element(Word::Extends, "extends", 0, "")
    },
    Element {
        repeatable: true,
        locations: "OBJECT | FIELD_DEFINITION",
        ..element(Word::Shareable, "shareable", 0, "")
    },
    element(Word::Override, "override", 0, "(from: String!)"),
    Element {
        spec: Some(Spec::Inaccessible),
        locations: ANYWHERE,
        ..element(Word::Inaccessible, "inaccessible", 0, "")
    },
    Element {
        spec: Some(Spec::Tag),
        repeatable: true,
        locations: ANYWHERE,
        ..element(Word::Tag, "tag", 0, "(name: String!)")
    },
    Element {
        repeatable: true,
        locations: "SCHEMA",
        ..element(
            Word::ComposeDirective,
            "composeDirective",
            1,
            "(name: String)",
        )
    },
    Element {
        locations: "OBJECT",
        ..element(Word::InterfaceObject, "interfaceObject", 3, "")
    },
    Element {
        spec: Some(Spec::Authenticated),
        locations: PROTECTED,
        ..element(Word::Authenticated, "authenticated", 5, "")
    },
    Element {
        spec: Some(Spec::RequiresScopes),
        locations: PROTECTED,
        ..element(
            Word::RequiresScopes,
            "requiresScopes",
            5,
            "(scopes: [[$Scope!]!]!)",
        )
    },
    Element {
        spec: Some(Spec::Policy),
        locations: PROTECTED,
        ..element(Word::Policy, "policy", 6, "(policies: [[$Policy!]!]!)")
    },
    Element {
        spec: Some(Spec::Context),
        repeatable: true,
        locations: "INTERFACE | OBJECT | UNION",
        ..element(Word::Context, "context", 8, "(name: String!)")
    },
    Element {
        spec: Some(Spec::Context),
        locations: "ARGUMENT_DEFINITION",
        ..element(
            Word::FromContext,
            "fromContext",
            8,
            "(field: $ContextFieldValue)",
        )
    },
    Element {
        spec: Some(Spec::Cost),
        locations: "ARGUMENT_DEFINITION | ENUM | FIELD_DEFINITION | INPUT_FIELD_DEFINITION | OBJECT | SCALAR",
        ..element(Word::Cost, "cost", 9, "(weight: Int!)")
    },
    Element {
        spec: Some(Spec::Cost),
        ..element(
            Word::ListSize,
            "listSize",
            9,
            "(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = true)",
        )
    },
    Element {
        spec: Some(Spec::CacheTag),
        repeatable: true,
        locations: "OBJECT | FIELD_DEFINITION | INTERFACE",
        ..element(Word::CacheTag, "cacheTag", 12, "(format: String!)")
    },
];

/// Scalars of the federation specification and the version that brought them.
const SCALARS: [(&str, Version); 4] = [
    ("FieldSet", Version::new(2, 0)),
    ("Scope", Version::new(2, 5)),
    ("Policy", Version::new(2, 6)),
    ("ContextFieldValue", Version::new(2, 8)),
];

/// Directives a federation 1 subgraph knows without linking anything.
const LEGACY: [Word; 6] = [
    Word::Key,
    Word::Requires,
    Word::Provides,
    Word::External,
    Word::Extends,
    Word::Tag,
];

/// What a subgraph calls the directives, and the types its prelude brings.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    /// Name per [`Word`]; `None` if the subgraph does not have it.
    pub directives: [Option<Box<str>>; WORDS],
    /// Names of machinery types.
    pub types: Vec<Box<str>>,
    /// SDL of the definitions; one line each, `(name, is directive, text)`.
    pub definitions: Vec<(Box<str>, bool, String)>,
    /// Definitions that are not there, and that a subgraph cannot make otherwise either.
    pub reserved: Vec<(Box<str>, bool, String)>,
}

/// The names a subgraph uses, from its links; `version` is its federation version, `None` for federation 1.
pub fn vocabulary(links: &Links, version: Option<Version>) -> Vocabulary {
    let mut out = Vocabulary::default();
    match (version, links.get(Spec::Federation)) {
        (Some(version), Some(link)) => linked(&mut out, link, links, version),
        _ => {
            for word in LEGACY {
                let element = &ELEMENTS[word as usize];
                out.directive(element, element.name.into(), Version::new(2, 0), |name| {
                    format!("_{name}")
                });
            }
            out.scalar("_FieldSet".into());
            out.reserved = reserved();
        }
    }
    for element in &ELEMENTS {
        let Some(link) = element.spec.and_then(|spec| links.get(spec)) else {
            continue;
        };
        if out.directives[element.word as usize].is_none() {
            out.directive(
                element,
                link.directive_name(element.name),
                FEDERATION_MAX,
                |name| link.type_name(name),
            );
            for (scalar, _) in SCALARS {
                if element.args.contains(&format!("${scalar}")) {
                    out.scalar(link.type_name(scalar));
                }
            }
        }
    }
    // The linking directive itself.
    let link = links.get(Spec::Link).or_else(|| links.get(Spec::Core));
    if !links.all.is_empty() {
        let name = link.map_or("link".into(), |l| l.directive_name(&l.name));
        let prefix = |element: &str| match link {
            Some(l) => l.type_name(element),
            None => format!("link__{element}"),
        };
        let (purpose, import) = (prefix("Purpose"), prefix("Import"));
        let url = if link.is_some_and(|l| l.spec == Some(Spec::Core)) {
            "feature: String!"
        } else {
            "url: String!"
        };
        out.definitions.push((
            name.as_str().into(),
            true,
            format!("directive @{name}({url}, as: String, for: {purpose}, import: [{import}]) repeatable on SCHEMA"),
        ));
        out.definitions.push((
            purpose.as_str().into(),
            false,
            format!("enum {purpose} {{ SECURITY EXECUTION }}"),
        ));
        out.types.push(purpose.into());
        out.scalar(import);
    }
    out
}

/// What a federation 1 subgraph need not have, but cannot define as something else: it becomes one of federation 2.
fn reserved() -> Vec<(Box<str>, bool, String)> {
    let mut known = Vocabulary::default();
    for element in &ELEMENTS {
        if element.since <= Version::new(2, 4) && !LEGACY.contains(&element.word) {
            let name = element.name.to_owned();
            known.directive(element, name, Version::new(2, 4), |n| format!("_{n}"));
        }
    }
    let purpose = "enum link__Purpose { SECURITY EXECUTION }".to_owned();
    known
        .definitions
        .push(("link__Purpose".into(), false, purpose));
    known.scalar("link__Import".into());
    known.definitions
}

fn linked(out: &mut Vocabulary, link: &Link, links: &Links, version: Version) {
    // What a link of its own brings goes by the names of that link.
    let elsewhere = |e: &Element| e.spec.is_some_and(|spec| links.get(spec).is_some());
    for element in ELEMENTS
        .iter()
        .filter(|e| e.since <= version && !elsewhere(e))
    {
        out.directive(
            element,
            link.directive_name(element.name),
            version,
            |name| link.type_name(name),
        );
    }
    for (scalar, since) in SCALARS {
        if since <= version {
            out.scalar(link.type_name(scalar));
        }
    }
}

impl Vocabulary {
    fn scalar(&mut self, name: String) {
        self.definitions
            .push((name.as_str().into(), false, format!("scalar {name}")));
        self.types.push(name.into());
    }

    fn directive(
        &mut self,
        element: &Element,
        name: String,
        version: Version,
        type_name: impl Fn(&str) -> String,
    ) {
        let mut args = element.args.to_owned();
        for (scalar, _) in SCALARS {
            let marker = format!("${scalar}");
            if args.contains(&marker) {
                args = args.replace(&marker, &type_name(scalar));
            }
        }
        if element.word == Word::Override && version >= Version::new(2, 7) {
            args = "(from: String!, label: String)".into();
        }
        let repeatable = element.repeatable
            && (element.word != Word::Shareable || version >= Version::new(2, 2));
        let mut text = String::new();
        let _ = write!(
            text,
            "directive @{name}{args}{} on {}",
            if repeatable { " repeatable" } else { "" },
            element.locations
        );
        if element.word == Word::Tag && version >= Version::new(2, 3) {
            text.push_str(" | SCHEMA");
        }
        self.definitions.push((name.as_str().into(), true, text));
        self.directives[element.word as usize] = Some(name.into());
    }
}

/// The federation version a specification implies that is linked on its own; the reference knows these two.
pub fn implied_federation(spec: Spec) -> Option<Version> {
    Some(match spec {
        Spec::Authenticated => Version::new(2, 5),
        Spec::Cost => Version::new(2, 9),
        _ => return None,
    })
}

/// Whether federation version `version` is one we compose.
pub fn is_known_federation(version: Version) -> bool {
    version.major == 2 && version <= FEDERATION_MAX
}
