//! Subgraphs with one or two things changed at random: values, names, types, directives, definitions.
//!
//! Whether such a subgraph is still valid is what composition is asked; the reference is asked the same
//! (`tests/it/mutants.rs`). Places are found in the syntax tree, so every change is one of a kind that people make.
//! The same seed gives the same sets.

#![allow(unreachable_pub, reason = "included by tests")]

use ogive_base::{SourceId, Span};
use ogive_syntax::{
    Document, Limits,
    ast::{
        Definition, Directive, FieldDefinition, InputValueDefinition, List, TypeDefinition,
        TypeDefinitionKind, TypeRef, Value, ValueKind,
    },
    parse,
};

use ogive_testbase::Rng;

use super::sets::{self, Set};

/// Mutated set `i` of a seed.
pub fn mutant(seed: u64, i: usize) -> Set {
    let mut rng = Rng::new(seed.wrapping_mul(7_368_787).wrapping_add(i as u64));
    let mut set: Set = match rng.below(10) {
        0 => sets::set(seed, i * 3),
        1 | 2 => vec![
            ("alpha".into(), LEGACY.into()),
            ("beta".into(), BETA.into()),
        ],
        3 => vec![("alpha".into(), SPECIFIED.into())],
        _ => vec![("alpha".into(), ALPHA.into()), ("beta".into(), BETA.into())],
    };
    // The rich subgraph is first.
    let at = if set[0].0 == "alpha" && rng.below(5) > 0 {
        0
    } else {
        rng.below(set.len())
    };
    for _ in 0..1 + usize::from(rng.below(4) == 0) {
        for _ in 0..8 {
            if let Some(changed) = change(&mut rng, &set[at].1) {
                set[at].1 = changed;
                break;
            }
        }
    }
    set
}

/// One change; `None` if there is no such place, or the text does not parse.
fn change(rng: &mut Rng, sdl: &str) -> Option<String> {
    if rng.below(5) == 0 {
        let more = line(rng, DEFINITIONS);
        return Some(format!("{sdl}{more}\n"));
    }
    let parsed = parse(sdl, SourceId(0), &Limits::default());
    let places = Places::of(&parsed.document);
    let doc = &parsed.document;
    let replace = |span: Span, by: &str| {
        let (from, to) = (span.start as usize, span.end as usize);
        Some(format!("{}{by}{}", &sdl[..from], &sdl[to..]))
    };
    let insert = |at: u32, text: &str| replace(Span::new(at, at), text);
    match rng.below(20) {
        0..=2 => replace(some(rng, &places.values)?, line(rng, VALUES)),
        3 | 4 => {
            let value = line(rng, VALUES);
            insert(some(rng, &places.without_default)?, &format!(" = {value}"))
        }
        5..=8 => {
            let directive = line(rng, DIRECTIVES);
            insert(some(rng, &places.directives_at)?, &format!(" {directive} "))
        }
        9 => {
            let again = some(rng, &places.directives)?;
            insert(again.end, &format!(" {}", doc.text(again)))
        }
        10 => replace(some(rng, &places.directives)?, ""),
        11 => {
            let argument = some(rng, &places.arguments)?;
            match rng.below(4) {
                0 => replace(argument, ""),
                1 => insert(argument.end, &format!(", {}", doc.text(argument))),
                2 => insert(argument.end, ", nope: 1"),
                _ => insert(argument.start, "x"),
            }
        }
        12..=14 => {
            let span = some(rng, &places.types)?;
            let name = *rng.pick(&places.type_names(doc));
            let form = *rng.pick(&["_", "_", "_", "_!", "[_]", "[_!]!"]);
            replace(span, &form.replace('_', name))
        }
        15 | 16 => {
            let by = line(rng, NAMES);
            replace(some(rng, &places.names)?, by)
        }
        17 => {
            let member = some(rng, &places.members)?;
            insert(member.end, &format!(" {}", doc.text(member)))
        }
        18 => replace(some(rng, &places.members)?, ""),
        _ => {
            let definition = *rng.pick(&doc.definitions);
            let span = definition.span();
            let text = doc.text(span);
            match (rng.below(4), text.strip_prefix("extend ")) {
                (0, _) => insert(span.end, &format!("\n{text}\n")),
                (1, _) => replace(span, ""),
                (_, Some(plain)) => replace(span, plain),
                (2, None) => insert(span.start, "extend "),
                (_, None) => {
                    let keyword = text.split(' ').next()?;
                    let by = *rng.pick(&["type", "interface", "input", "enum", "scalar", "union"]);
                    replace(Span::new(span.start, span.start + keyword.len() as u32), by)
                }
            }
        }
    }
}

/// A line of a list.
fn line(rng: &mut Rng, list: &'static str) -> &'static str {
    let lines: Vec<&str> = list.lines().collect();
    lines[rng.below(lines.len())]
}

fn some<T: Copy>(rng: &mut Rng, places: &[T]) -> Option<T> {
    (!places.is_empty()).then(|| *rng.pick(places))
}

/// Where something can be changed.
#[derive(Default)]
struct Places {
    values: Vec<Span>,
    without_default: Vec<u32>,
    directives_at: Vec<u32>,
    directives: Vec<Span>,
    arguments: Vec<Span>,
    types: Vec<Span>,
    names: Vec<Span>,
    members: Vec<Span>,
}

impl Places {
    fn of(doc: &Document) -> Places {
        let mut places = Places::default();
        for definition in &doc.definitions {
            match definition {
                Definition::Type(ty) => places.ty(doc, ty),
                Definition::Directive(directive) => {
                    places.names.push(directive.name.span());
                    places.inputs(doc, directive.arguments);
                    places
                        .members
                        .extend(doc[directive.locations].iter().map(|l| l.span()));
                }
                Definition::Schema(schema) => {
                    let keyword = if schema.extend {
                        "extend schema"
                    } else {
                        "schema"
                    };
                    places.directives(
                        doc,
                        schema.directives,
                        schema.span.start + keyword.len() as u32,
                    );
                    for root in &doc[schema.root_types] {
                        places.types.push(root.ty.span());
                        places.members.push(root.span);
                    }
                }
                _ => {}
            }
        }
        places
    }
    fn type_names<'d>(&self, doc: &'d Document) -> Vec<&'d str> {
        let mut names = vec!["Int", "String", "ID", "Nope", "__Type", "_Any", "Query"];
        for definition in &doc.definitions {
            if let Definition::Type(ty) = definition {
                names.push(doc.name(ty.name));
            }
        }
        names
    }
    fn ty(&mut self, doc: &Document, ty: &TypeDefinition) {
        self.names.push(ty.name.span());
        let mut head = ty.name.span().end;
        match ty.kind {
            TypeDefinitionKind::Scalar => {}
            TypeDefinitionKind::Object { interfaces, fields }
            | TypeDefinitionKind::Interface { interfaces, fields } => {
                for interface in &doc[interfaces] {
                    head = interface.span().end;
                    self.types.push(interface.span());
                }
                for field in &doc[fields] {
                    self.field(doc, field);
                }
            }
            TypeDefinitionKind::Union { members } => {
                for member in &doc[members] {
                    self.types.push(member.span());
                }
            }
            TypeDefinitionKind::Enum { values } => {
                for value in &doc[values] {
                    self.names.push(value.name.span());
                    self.members.push(value.span);
                    self.directives(doc, value.directives, value.span.end);
                }
            }
            TypeDefinitionKind::InputObject { fields } => self.inputs(doc, fields),
        }
        self.directives(doc, ty.directives, head);
    }
    fn field(&mut self, doc: &Document, field: &FieldDefinition) {
        self.names.push(field.name.span());
        self.members.push(field.span);
        self.type_ref(field.ty);
        self.inputs(doc, field.arguments);
        self.directives(doc, field.directives, field.span.end);
    }
    fn inputs(&mut self, doc: &Document, inputs: List<InputValueDefinition>) {
        for input in &doc[inputs] {
            self.names.push(input.name.span());
            self.members.push(input.span);
            self.type_ref(input.ty);
            match &input.default {
                Some(value) => self.value(doc, value),
                None => self.without_default.push(input.ty.span.end),
            }
            self.directives(doc, input.directives, input.span.end);
        }
    }
    fn type_ref(&mut self, ty: TypeRef) {
        self.types.push(ty.span);
    }
    fn directives(&mut self, doc: &Document, list: List<Directive>, at: u32) {
        self.directives_at.push(at);
        for directive in &doc[list] {
            self.directives.push(directive.span);
            for argument in &doc[directive.arguments] {
                self.arguments.push(argument.span);
                self.value(doc, &argument.value);
            }
        }
    }
    fn value(&mut self, doc: &Document, value: &Value) {
        self.values.push(value.span);
        match value.kind {
            ValueKind::List(items) => doc[items].iter().for_each(|v| self.value(doc, v)),
            ValueKind::Object(fields) => doc[fields].iter().for_each(|f| self.value(doc, &f.value)),
            _ => {}
        }
    }
}

/// What values become.
const VALUES: &str = include_str!("mutants/values.txt");
/// What names become.
const NAMES: &str = include_str!("mutants/names.txt");
/// Directives that are applied somewhere.
const DIRECTIVES: &str = include_str!("mutants/directives.txt");
/// Definitions that are added at the end.
const DEFINITIONS: &str = include_str!("mutants/definitions.txt");

/// Federation 2, everything it knows.
const ALPHA: &str = include_str!("mutants/alpha.graphql");
/// What the others refer to.
const BETA: &str = include_str!("mutants/beta.graphql");
/// Federation 1.
const LEGACY: &str = include_str!("mutants/legacy.graphql");
/// A subgraph that defines the directives of federation itself, as many libraries print them.
const SPECIFIED: &str = include_str!("mutants/specified.graphql");
