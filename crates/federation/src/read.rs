//! Supergraph SDL to [`Supergraph`].
//!
//! Steps, each of which ends the reading if it found errors: parse; find the links (a file without the join
//! specification is no supergraph, and says so before anything else is complained about); refuse what cannot be
//! served; build and check the type system; name the subgraphs; compile the rows; derive the API schema.

use ogive_base::{Diagnostic, FastSet, IdVec, SourceId, Span};
use ogive_schema::{
    AppliedDirective, BuildOptions, ConstValue, Edition, OperationKind, Schema, TypeId, build,
};
use ogive_syntax::{
    Document, Limits,
    ast::{Definition, TypeDefinitionKind},
    parse,
};

use crate::{
    Link, Links, Subgraph, SubgraphId, Supergraph,
    api::api_schema,
    applied::applied,
    events::read_events,
    possible_rows::standing_alone,
    restrictions::read_restrictions,
    rows::{Input, read_rows},
    vocabulary::{JOIN_VERSIONS, Spec, Version, join},
};

/// Limits on a supergraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Most subgraphs; default 2,000.
    pub subgraphs_max: u32,
    /// Most diagnostics before giving up; default 100.
    pub errors_max: u32,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            subgraphs_max: 2_000,
            errors_max: 100,
        }
    }
}

const COMPOSE_HELP: &str =
    "compose the subgraphs first, for example with `ogive compose`, and give the result here";

const RECOMPOSE_HELP: &str =
    "a composed supergraph is a valid schema; if it was changed by hand, compose it again";

/// Reads a supergraph of join v0.1 to v0.5. Unknown specifications marked `for: EXECUTION` or `SECURITY` are refused.
/// Diagnostics point into `source_id`.
pub fn read_supergraph(
    sdl: &str,
    source_id: SourceId,
    options: &ReadOptions,
) -> Result<Supergraph, Vec<Diagnostic>> {
    let limits = Limits {
        errors_max: options.errors_max,
        ..Limits::default()
    };
    let parsed = parse(sdl, source_id, &limits);
    if parsed.document.definitions.is_empty() && is_blank(sdl) {
        return Err(vec![
            Diagnostic::error("EMPTY_SUPERGRAPH", "the supergraph is empty")
                .label(source_id, Span::default(), "nothing here")
                .help(COMPOSE_HELP),
        ]);
    }
    refuse(parsed.errors)?;
    let document = &parsed.document;
    let (links, errors) = Links::read(document);
    refuse(errors)?;
    let version = join_version(document, &links).map_err(|error| vec![*error])?;
    refuse(unknown_features(&links, source_id))?;
    let built = build(
        &[document],
        &BuildOptions {
            // Composition tools that do not know later rules made most supergraphs there are.
            edition: Edition::October2021,
            errors_max: options.errors_max,
            ..BuildOptions::default()
        },
    );
    let errors = built.errors.into_iter().map(|error| match error.help {
        None => error.help(RECOMPOSE_HELP),
        Some(_) => error,
    });
    refuse(errors.collect())?;
    let mut schema = built.schema;
    let alone = standing_alone(&schema, &links);
    for interface in &alone {
        schema.types[*interface].possible.insert(interface.0);
    }
    let (subgraphs, errors) = read_subgraphs(&schema, &links, source_id, options);
    refuse(errors)?;
    let (graph, errors, warnings) = read_rows(&Input {
        schema: &schema,
        links: &links,
        version,
        subgraphs: &subgraphs,
        source: source_id,
        errors_max: options.errors_max as usize,
    });
    refuse(errors)?;
    let mut api = api_schema(&schema, &links);
    for interface in alone {
        api.types[interface].possible.insert(interface.0);
    }
    if api.root(OperationKind::Query).is_none() {
        let query = schema.root(OperationKind::Query);
        let span = query.map(|q| schema.types[q].span).unwrap_or_default();
        return Err(vec![
            Diagnostic::error(
                "QUERY_ROOT_TYPE_INACCESSIBLE",
                "clients cannot see any query field",
            )
            .label(
                source_id,
                span,
                "this type or all its fields are inaccessible",
            )
            .help("leave at least one field of the query type accessible"),
        ]);
    }
    let restrictions = read_restrictions(&schema, &links, &graph);
    Ok(Supergraph {
        events: read_events(&schema, &links, &subgraphs),
        restrictions,
        api,
        subgraphs,
        graph,
        links,
        warnings,
        schema,
    })
}

fn refuse(errors: Vec<Diagnostic>) -> Result<(), Vec<Diagnostic>> {
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// Nothing but white space, commas and comments.
fn is_blank(sdl: &str) -> bool {
    sdl.trim_start_matches('\u{feff}').lines().all(|line| {
        let line = line.trim_matches(|c: char| c.is_whitespace() || c == ',');
        line.is_empty() || line.starts_with('#')
    })
}

// --- links -----------------------------------------------------------------------------------------------------------

fn join_version(document: &Document, links: &Links) -> Result<Version, Box<Diagnostic>> {
    let Some(link) = links.get(Spec::Join) else {
        return Err(Box::new(no_supergraph(document, links)));
    };
    let (oldest, newest) = JOIN_VERSIONS;
    match link.version {
        Some(version) if (oldest..=newest).contains(&version) => Ok(version),
        _ => Err(Box::new(
            Diagnostic::error(
                "UNSUPPORTED_JOIN_VERSION",
                "the supergraph follows a version of the join specification that is not known here",
            )
            .label(document.source_id(), link.span, "")
            .note(format!("versions {oldest} to {newest} are read"))
            .help("compose it for one of these versions, or use a newer gateway"),
        )),
    }
}

/// Says what the document is instead of a supergraph.
fn no_supergraph(document: &Document, links: &Links) -> Diagnostic {
    let source = document.source_id();
    let error =
        Diagnostic::error("NOT_A_SUPERGRAPH", "this is not a supergraph").help(COMPOSE_HELP);
    if let Some(federation) = links.get(Spec::Federation) {
        return error.label(
            source,
            federation.span,
            "a schema that links the federation specification is a subgraph",
        );
    }
    if let Some(link) = links.all.first() {
        let last = links.all.last().unwrap_or(link);
        return error
            .label(
                source,
                link.span.to(last.span),
                "the join specification is not among the linked ones",
            )
            .note("a supergraph links `https://specs.apollo.dev/join/v0.x`");
    }
    for definition in &document.definitions {
        let Definition::Type(ty) = definition else {
            let message = match definition {
                Definition::Operation(_) | Definition::Fragment(_) => {
                    "this is an operation, not a schema"
                }
                _ => continue,
            };
            return error.label(source, definition.span(), message);
        };
        if matches!(
            ty.kind,
            TypeDefinitionKind::Object { .. } | TypeDefinitionKind::Interface { .. }
        ) && let Some(key) = document[ty.directives]
            .iter()
            .find(|d| document.name(d.name) == "key")
        {
            return error.label(source, key.span, "a type with `@key` belongs to a subgraph");
        }
    }
    error
        .label(
            source,
            Span::default(),
            "no `@link` or `@core` on the schema definition",
        )
        .note("a supergraph links `https://specs.apollo.dev/join/v0.x`")
}

/// Specifications that a reader has to know but does not.
fn unknown_features(links: &Links, source: SourceId) -> Vec<Diagnostic> {
    let unknown = |link: &&Link| !link.spec.is_some_and(Spec::is_served);
    links
        .all
        .iter()
        .filter(unknown)
        .filter_map(|link| {
            let purpose = link.purpose?;
            Some(
                Diagnostic::error(
                    "UNKNOWN_EXECUTION_FEATURE",
                    format!(
                        "the supergraph needs `{}`, which is not supported",
                        link.name
                    ),
                )
                .label(
                    source,
                    link.span,
                    format!("needed for {}", purpose.as_str()),
                )
                .note(format!(
                    "without it, operations would be answered wrongly{}",
                    match purpose {
                        crate::Purpose::Security => " or show what must not be seen",
                        crate::Purpose::Execution => "",
                    }
                ))
                .help("compose the supergraph without this feature"),
            )
        })
        .collect()
}

// --- subgraphs -------------------------------------------------------------------------------------------------------

fn read_subgraphs(
    schema: &Schema,
    links: &Links,
    source: SourceId,
    options: &ReadOptions,
) -> (IdVec<SubgraphId, Subgraph>, Vec<Diagnostic>) {
    let mut subgraphs = IdVec::new();
    let mut errors = Vec::new();
    let Some(link) = links.get(Spec::Join) else {
        return (subgraphs, errors);
    };
    let name = link.type_name(join::GRAPH_ENUM);
    let directive = link.directive_name(join::GRAPH);
    let values = schema
        .type_by_name(&name)
        .map(|ty: TypeId| &schema.types[ty]);
    let Some(def) = values.filter(|def| !def.enum_values.is_empty()) else {
        errors.push(
            Diagnostic::error("NO_SUBGRAPHS", "the supergraph names no subgraphs")
                .label(source, link.span, format!("expects the enum `{name}`"))
                .help(COMPOSE_HELP),
        );
        return (subgraphs, errors);
    };
    if def.enum_values.len() > options.subgraphs_max as usize {
        errors.push(
            Diagnostic::error(
                "TOO_MANY_SUBGRAPHS",
                "the supergraph has too many subgraphs",
            )
            .label(
                source,
                def.span,
                format!("{} values", def.enum_values.len()),
            )
            .note(format!("the limit is {}", options.subgraphs_max)),
        );
        return (subgraphs, errors);
    }
    let mut names: FastSet<Box<str>> = FastSet::default();
    for value in &def.enum_values {
        let value = &schema.enum_values[*value];
        let enum_value = schema.name(value.name);
        let Some(graph) = applied(&value.directives, schema.names.get(&directive)).next() else {
            errors.push(
                Diagnostic::error(
                    "SUBGRAPH_WITHOUT_NAME",
                    format!("`{enum_value}` says neither name nor URL of its subgraph"),
                )
                .label(source, value.span, format!("has no `@{directive}`"))
                .help(COMPOSE_HELP),
            );
            continue;
        };
        let subgraph = Subgraph {
            name: string_arg(schema, graph, "name")
                .unwrap_or(enum_value)
                .into(),
            enum_value: enum_value.into(),
            url: string_arg(schema, graph, "url").unwrap_or("").into(),
        };
        if !names.insert(subgraph.name.clone()) {
            errors.push(
                Diagnostic::error(
                    "DUPLICATE_SUBGRAPH",
                    format!("two subgraphs are called `{}`", subgraph.name),
                )
                .label(source, graph.span, "")
                .help("give every subgraph a name of its own and compose again"),
            );
        }
        subgraphs.push(subgraph);
    }
    (subgraphs, errors)
}

fn string_arg<'a>(schema: &Schema, directive: &'a AppliedDirective, name: &str) -> Option<&'a str> {
    directive
        .arg(schema.names.get(name)?)
        .and_then(ConstValue::as_str)
}
