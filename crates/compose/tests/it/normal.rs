//! SDL in an order of its own: definitions, members, directives and arguments sorted, so that texts can be compared.

use ogive_syntax::{
    Limits, SourceId,
    ast::{Definition, Directive, Document, InputValueDefinition, List, TypeDefinitionKind},
    parse, print_value,
};

/// The sorted text of a schema.
pub(crate) fn normal(sdl: &str) -> String {
    let parsed = parse(sdl, SourceId(0), &Limits::default());
    assert!(parsed.errors.is_empty(), "{:?}\n{sdl}", parsed.errors);
    let doc = &parsed.document;
    let mut out: Vec<String> = doc.definitions.iter().map(|d| definition(doc, d)).collect();
    out.sort();
    out.join("\n")
}

fn description(doc: &Document, text: Option<ogive_syntax::ast::StringValue>) -> String {
    text.map(|d| format!("{:?} ", doc.string_value(d)))
        .unwrap_or_default()
}

fn directives(doc: &Document, list: List<Directive>) -> String {
    let mut out: Vec<String> = doc[list]
        .iter()
        .map(|d| {
            let mut args: Vec<String> = doc[d.arguments]
                .iter()
                .map(|a| {
                    let mut value = print_value(doc, &a.value);
                    if doc.name(a.name) == "import" {
                        let mut items: Vec<char> = value.chars().collect();
                        items.sort_unstable();
                        value = items.into_iter().collect();
                    }
                    format!("{}: {value}", doc.name(a.name))
                })
                .collect();
            args.sort();
            format!("@{}({})", doc.name(d.name), args.join(", "))
        })
        .collect();
    out.sort();
    out.join(" ")
}

fn input(doc: &Document, i: &InputValueDefinition) -> String {
    let default = i.default.map(|v| print_value(doc, &v)).unwrap_or_default();
    format!(
        "{}{}: {} = {default} {}",
        description(doc, i.description),
        doc.name(i.name),
        i.ty.wrapping.display(doc.name(i.ty.name)),
        directives(doc, i.directives)
    )
}

fn lines(mut items: Vec<String>) -> String {
    items.sort();
    items.join("\n  ")
}

fn definition(doc: &Document, d: &Definition) -> String {
    match d {
        Definition::Schema(s) => {
            let roots = doc[s.root_types]
                .iter()
                .map(|r| format!("{}: {}", r.kind.as_str(), doc.name(r.ty)))
                .collect();
            format!(
                "{}schema {} {}",
                description(doc, s.description),
                directives(doc, s.directives),
                lines(roots)
            )
        }
        Definition::Directive(d) => {
            let args = doc[d.arguments].iter().map(|a| input(doc, a)).collect();
            let locations = doc[d.locations]
                .iter()
                .map(|l| doc.name(*l).to_owned())
                .collect();
            format!(
                "directive @{} {} {} on {}",
                doc.name(d.name),
                lines(args),
                d.repeatable,
                lines(locations)
            )
        }
        Definition::Type(t) => {
            let names = |list: List<ogive_syntax::ast::Name>| {
                doc[list]
                    .iter()
                    .map(|n| doc.name(*n).to_owned())
                    .collect::<Vec<String>>()
            };
            let field = |f: &ogive_syntax::ast::FieldDefinition| {
                let args = doc[f.arguments].iter().map(|a| input(doc, a)).collect();
                format!(
                    "{}{}({}): {} {}",
                    description(doc, f.description),
                    doc.name(f.name),
                    lines(args),
                    f.ty.wrapping.display(doc.name(f.ty.name)),
                    directives(doc, f.directives)
                )
            };
            let body = match t.kind {
                TypeDefinitionKind::Scalar => "scalar".to_owned(),
                TypeDefinitionKind::Object { interfaces, fields } => {
                    format!(
                        "type {} {}",
                        lines(names(interfaces)),
                        lines(doc[fields].iter().map(field).collect())
                    )
                }
                TypeDefinitionKind::Interface { interfaces, fields } => {
                    format!(
                        "interface {} {}",
                        lines(names(interfaces)),
                        lines(doc[fields].iter().map(field).collect())
                    )
                }
                TypeDefinitionKind::Union { members } => format!("union {}", lines(names(members))),
                TypeDefinitionKind::Enum { values } => {
                    let values = doc[values]
                        .iter()
                        .map(|v| {
                            format!(
                                "{}{} {}",
                                description(doc, v.description),
                                doc.name(v.name),
                                directives(doc, v.directives)
                            )
                        })
                        .collect();
                    format!("enum {}", lines(values))
                }
                TypeDefinitionKind::InputObject { fields } => format!(
                    "input {}",
                    lines(doc[fields].iter().map(|i| input(doc, i)).collect())
                ),
            };
            format!(
                "{} {}{} {body}",
                doc.name(t.name),
                description(doc, t.description),
                directives(doc, t.directives)
            )
        }
        _ => panic!("no operations here"),
    }
}
