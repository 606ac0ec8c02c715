//! Completes a subgraph's SDL: the federation definitions it uses but does not define, and the machinery
//! (`_service`, `_entities`, `_Any`, `_Entity`) every subgraph serves.
//!
//! Why a text edit and not an AST edit: what is served must go through the same parser and schema validation as
//! any other schema. `extend type T` without a definition of `T`, as federation v1 wrote it, becomes a definition by
//! blanking the word `extend`; offsets stay, so diagnostics still point at the author's text.

use ogive_base::{FastMap, FastSet};
use ogive_syntax::ast::{
    Argument, Definition, Directive, Document, List, OperationKind, TypeDefinitionKind, Value,
    ValueKind,
};

/// Whether to treat an SDL as a subgraph schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Federation {
    /// Yes if it links the federation specification or uses a federation v1 directive; `_service` is served anyway.
    #[default]
    Auto,
    /// Serve it as it is, without any machinery.
    Off,
}

/// Local names of the federation directives in one document.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    canonical: FastMap<Box<str>, &'static str>,
    local: FastMap<&'static str, Box<str>>,
}

impl Vocabulary {
    /// Every directive under its own name, as in federation v1.
    pub fn plain() -> Self {
        let mut vocabulary = Vocabulary::default();
        for definition in DIRECTIVES {
            vocabulary.add(definition.name, definition.name);
        }
        vocabulary
    }
    fn add(&mut self, local: &str, canonical: &'static str) {
        self.canonical.insert(local.into(), canonical);
        self.local.insert(canonical, local.into());
    }
    /// The federation directive a local name stands for.
    pub fn canonical(&self, local: &str) -> Option<&'static str> {
        self.canonical.get(local).copied()
    }
}

/// A completed SDL.
pub(crate) struct Completed {
    /// The SDL with `extend` blanked where there is nothing to extend; same length as the original.
    pub(crate) text: String,
    /// Definitions to be built together with it.
    pub(crate) added: String,
    /// Directive names.
    pub(crate) vocabulary: Vocabulary,
    /// Whether it is a subgraph schema.
    pub(crate) federated: bool,
}

struct DirectiveSdl {
    name: &'static str,
    /// Arguments with `FieldSet`, `Scope`, `Policy` and `ContextFieldValue` for the local scalar names.
    args: &'static str,
    rest: &'static str,
    /// Known to federation v1, where it needs no import.
    v1: bool,
}

const fn directive(
    name: &'static str,
    args: &'static str,
    rest: &'static str,
    v1: bool,
) -> DirectiveSdl {
    DirectiveSdl {
        name,
        args,
        rest,
        v1,
    }
}

const DIRECTIVES: [DirectiveSdl; 18] = [
    directive(
        "key",
        "(fields: FieldSet!, resolvable: Boolean = true)",
        "repeatable on OBJECT | INTERFACE",
        true,
    ),
    directive(
        "requires",
        "(fields: FieldSet!)",
        "on FIELD_DEFINITION",
        true,
    ),
    directive(
        "provides",
        "(fields: FieldSet!)",
        "on FIELD_DEFINITION",
        true,
    ),
    directive(
        "external",
        "(reason: String)",
        "on OBJECT | FIELD_DEFINITION",
        true,
    ),
    directive("extends", "", "on OBJECT | INTERFACE", true),
    directive(
        "tag",
        "(name: String!)",
        "repeatable on FIELD_DEFINITION | INTERFACE | OBJECT | UNION | ARGUMENT_DEFINITION | SCALAR | ENUM | ENUM_VALUE | INPUT_OBJECT | INPUT_FIELD_DEFINITION | SCHEMA",
        true,
    ),
    directive(
        "inaccessible",
        "",
        "on FIELD_DEFINITION | INTERFACE | OBJECT | UNION | ARGUMENT_DEFINITION | SCALAR | ENUM | ENUM_VALUE | INPUT_OBJECT | INPUT_FIELD_DEFINITION",
        true,
    ),
    directive(
        "shareable",
        "",
        "repeatable on OBJECT | FIELD_DEFINITION",
        false,
    ),
    directive(
        "override",
        "(from: String!, label: String)",
        "on FIELD_DEFINITION",
        false,
    ),
    directive(
        "composeDirective",
        "(name: String!)",
        "repeatable on SCHEMA",
        false,
    ),
    directive("interfaceObject", "", "on OBJECT", false),
    directive(
        "authenticated",
        "",
        "on FIELD_DEFINITION | OBJECT | INTERFACE | SCALAR | ENUM",
        false,
    ),
    directive(
        "requiresScopes",
        "(scopes: [[Scope!]!]!)",
        "on FIELD_DEFINITION | OBJECT | INTERFACE | SCALAR | ENUM",
        false,
    ),
    directive(
        "policy",
        "(policies: [[Policy!]!]!)",
        "on FIELD_DEFINITION | OBJECT | INTERFACE | SCALAR | ENUM",
        false,
    ),
    directive(
        "context",
        "(name: String!)",
        "repeatable on INTERFACE | OBJECT | UNION",
        false,
    ),
    directive(
        "fromContext",
        "(field: ContextFieldValue)",
        "on ARGUMENT_DEFINITION",
        false,
    ),
    directive(
        "cost",
        "(weight: Int!)",
        "on ARGUMENT_DEFINITION | ENUM | FIELD_DEFINITION | INPUT_FIELD_DEFINITION | OBJECT | SCALAR",
        false,
    ),
    directive(
        "listSize",
        "(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = true)",
        "on FIELD_DEFINITION",
        false,
    ),
];

const SCALARS: [&str; 4] = ["FieldSet", "Scope", "Policy", "ContextFieldValue"];

/// What a document defines and links.
#[derive(Default)]
struct Survey {
    types: FastSet<String>,
    directives: FastSet<String>,
    directives_used: FastSet<String>,
    roots: [Option<String>; 3],
    has_schema: bool,
    federation_link: Option<Link>,
    has_link: bool,
    entities: Vec<(String, bool)>,
}

#[derive(Default)]
struct Link {
    alias: Option<String>,
    /// `(imported, local)`, with `@` for directives.
    imports: Vec<(String, String)>,
}

pub(crate) fn complete(document: &Document, federation: Federation) -> Completed {
    let mut survey = survey(document);
    let vocabulary = vocabulary(&survey);
    let mut text = document.source().to_string();
    blank_orphan_extends(document, &mut survey, &mut text);
    if federation == Federation::Off {
        return Completed {
            text,
            added: String::new(),
            vocabulary,
            federated: false,
        };
    }
    let federated = survey.federation_link.is_some()
        || DIRECTIVES
            .iter()
            .any(|d| d.v1 && survey.directives_used.contains(d.name));
    entities(document, &vocabulary, &mut survey);
    let mut added = String::new();
    if federated {
        add_definitions(&survey, &vocabulary, &mut added);
    }
    add_machinery(&survey, &mut added);
    Completed {
        text,
        added,
        vocabulary,
        federated,
    }
}

fn survey(document: &Document) -> Survey {
    let mut survey = Survey::default();
    let mut used = |list: List<Directive>| {
        for directive in &document[list] {
            survey
                .directives_used
                .insert(document.name(directive.name).to_string());
        }
    };
    for definition in &document.definitions {
        match definition {
            Definition::Type(ty) => {
                used(ty.directives);
                if let TypeDefinitionKind::Object { fields, .. }
                | TypeDefinitionKind::Interface { fields, .. } = ty.kind
                {
                    for field in &document[fields] {
                        used(field.directives);
                    }
                }
            }
            Definition::Schema(schema) => used(schema.directives),
            _ => {}
        }
    }
    for definition in &document.definitions {
        match definition {
            Definition::Type(ty) if !ty.extend => {
                survey.types.insert(document.name(ty.name).to_string());
            }
            Definition::Directive(d) => {
                survey.directives.insert(document.name(d.name).to_string());
            }
            Definition::Schema(schema) => {
                survey.has_schema |= !schema.extend;
                for root in &document[schema.root_types] {
                    survey.roots[root.kind as usize] = Some(document.name(root.ty).to_string());
                }
                for directive in &document[schema.directives] {
                    if document.name(directive.name) == "link" {
                        survey.has_link = true;
                        read_link(document, directive.arguments, &mut survey);
                    }
                }
            }
            _ => {}
        }
    }
    survey
}

fn read_link(document: &Document, arguments: List<Argument>, survey: &mut Survey) {
    let text = |value: &Value| {
        value
            .as_string()
            .map(|s| document.string_value(s).into_owned())
    };
    let mut link = Link::default();
    let mut federation = false;
    for argument in &document[arguments] {
        match (document.name(argument.name), argument.value.kind) {
            ("url", _) => {
                let url = text(&argument.value).unwrap_or_default();
                federation = url.split('/').rev().nth(1) == Some("federation");
            }
            ("as", _) => link.alias = text(&argument.value),
            ("import", ValueKind::List(items)) => {
                for item in &document[items] {
                    match item.kind {
                        ValueKind::Object(fields) => {
                            let member = |name: &str| {
                                document[fields]
                                    .iter()
                                    .find(|f| document.name(f.name) == name)
                                    .and_then(|f| text(&f.value))
                            };
                            if let Some(name) = member("name") {
                                let local = member("as").unwrap_or_else(|| name.clone());
                                link.imports.push((name, local));
                            }
                        }
                        _ => {
                            if let Some(name) = text(item) {
                                link.imports.push((name.clone(), name));
                            }
                        }
                    }
                }
            }
            _ => {}
        }
    }
    if federation {
        survey.federation_link = Some(link);
    }
}

fn vocabulary(survey: &Survey) -> Vocabulary {
    let Some(link) = &survey.federation_link else {
        return Vocabulary::plain();
    };
    let mut vocabulary = Vocabulary::default();
    let prefix = link.alias.as_deref().unwrap_or("federation");
    for definition in DIRECTIVES {
        let imported = link
            .imports
            .iter()
            .find(|(name, _)| name.strip_prefix('@') == Some(definition.name));
        match imported {
            Some((_, local)) => vocabulary.add(local.trim_start_matches('@'), definition.name),
            None => vocabulary.add(&format!("{prefix}__{}", definition.name), definition.name),
        }
    }
    vocabulary
}

/// The first `extend` of a type that is defined nowhere becomes its definition.
fn blank_orphan_extends(document: &Document, survey: &mut Survey, text: &mut String) {
    for definition in &document.definitions {
        let Definition::Type(ty) = definition else {
            continue;
        };
        let name = document.name(ty.name);
        if ty.extend && !survey.types.contains(name) {
            let start = ty.span.start as usize;
            if text.get(start..start + 6) == Some("extend") {
                text.replace_range(start..start + 6, "      ");
            }
            survey.types.insert(name.to_string());
        }
    }
}

fn entities(document: &Document, vocabulary: &Vocabulary, survey: &mut Survey) {
    let mut seen: FastSet<&str> = FastSet::default();
    for definition in &document.definitions {
        let Definition::Type(ty) = definition else {
            continue;
        };
        let is_object = matches!(ty.kind, TypeDefinitionKind::Object { .. });
        let resolvable = document[ty.directives].iter().any(|d| {
            vocabulary.canonical(document.name(d.name)) == Some("key")
                && !document[d.arguments].iter().any(|a| {
                    document.name(a.name) == "resolvable"
                        && a.value.kind == ValueKind::Boolean(false)
                })
        });
        let name = document.name(ty.name);
        if resolvable && seen.insert(name) {
            survey.entities.push((name.to_string(), is_object));
        }
    }
}

fn add_definitions(survey: &Survey, vocabulary: &Vocabulary, out: &mut String) {
    let scalar = |name: &str| match &survey.federation_link {
        None if name == "FieldSet" => "_FieldSet".to_string(),
        None => name.to_string(),
        Some(link) => link
            .imports
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, local)| local.clone())
            .unwrap_or_else(|| {
                format!("{}__{name}", link.alias.as_deref().unwrap_or("federation"))
            }),
    };
    let mut scalars_needed = Vec::new();
    for definition in &DIRECTIVES {
        if survey.federation_link.is_none() && !definition.v1 {
            continue;
        }
        let Some(local) = vocabulary.local.get(definition.name) else {
            continue;
        };
        if survey.directives.contains(&**local) {
            continue;
        }
        let mut args = definition.args.to_string();
        for name in SCALARS {
            if args.contains(&format!("{name}!")) || args.ends_with(&format!("{name})")) {
                args = args.replace(name, &scalar(name));
                scalars_needed.push(scalar(name));
            }
        }
        out.push_str(&format!("directive @{local}{args} {}\n", definition.rest));
    }
    scalars_needed.sort();
    scalars_needed.dedup();
    for name in scalars_needed {
        if !survey.types.contains(&name) {
            out.push_str(&format!("scalar {name}\n"));
        }
    }
    if survey.has_link && !survey.directives.contains("link") {
        out.push_str(
            "directive @link(url: String!, as: String, for: link__Purpose, import: [link__Import]) repeatable on SCHEMA\n",
        );
        if !survey.types.contains("link__Purpose") {
            out.push_str("enum link__Purpose { SECURITY EXECUTION }\n");
        }
        if !survey.types.contains("link__Import") {
            out.push_str("scalar link__Import\n");
        }
    }
}

fn add_machinery(survey: &Survey, out: &mut String) {
    let query = survey.roots[OperationKind::Query as usize]
        .as_deref()
        .unwrap_or("Query");
    let has_query = survey.types.contains(query);
    let objects: Vec<&str> = survey
        .entities
        .iter()
        .filter(|(_, object)| *object)
        .map(|(name, _)| name.as_str())
        .collect();
    let mut fields = String::new();
    if !survey.types.contains("_Service") {
        out.push_str("type _Service { sdl: String }\n");
        fields.push_str(" _service: _Service!");
    }
    if !objects.is_empty() && !survey.types.contains("_Entity") {
        if !survey.types.contains("_Any") {
            out.push_str("scalar _Any\n");
        }
        out.push_str(&format!("union _Entity = {}\n", objects.join(" | ")));
        fields.push_str(" _entities(representations: [_Any!]!): [_Entity]!");
    }
    if fields.is_empty() {
        return;
    }
    let extend = if has_query { "extend " } else { "" };
    out.push_str(&format!("{extend}type {query} {{{fields} }}\n"));
}
