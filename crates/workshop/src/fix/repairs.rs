//! Diagnostics to edits.

use std::ops::Range;

use ogive_base::{Diagnostic, Label, SourceId, Span};
use ogive_syntax::{
    Document, Limits,
    ast::{
        Definition, Directive, FieldDefinition, List, TypeDefinition, TypeDefinitionKind, ValueKind,
    },
    parse, print_type_ref,
};

use super::{Repair, apply::Edit};
use crate::load::Loaded;

/// The version a subgraph is linked to if it has no link and needs one.
const LINK: &str = "https://specs.apollo.dev/federation/v2.9";

/// Directives of federation that can be imported.
const FEDERATION: [&str; 20] = [
    "key",
    "requires",
    "provides",
    "external",
    "shareable",
    "extends",
    "override",
    "inaccessible",
    "tag",
    "composeDirective",
    "interfaceObject",
    "authenticated",
    "requiresScopes",
    "policy",
    "context",
    "fromContext",
    "cost",
    "listSize",
    "link",
    "cacheTag",
];

/// Edits under construction.
pub(super) struct Repairs<'l> {
    loaded: &'l [Loaded],
    documents: Vec<Document>,
    suggested: bool,
    group: usize,
    pub(super) edits: Vec<Edit>,
    pub(super) suggestions: Vec<Repair>,
}

impl<'l> Repairs<'l> {
    /// Repairs of subgraphs, which are in order of names as composition has them.
    pub(super) fn new(loaded: &'l [Loaded], suggested: bool) -> Self {
        let documents = loaded
            .iter()
            .enumerate()
            .map(|(at, s)| parse(&*s.sdl, SourceId(at as u32), &Limits::default()).document)
            .collect();
        Repairs {
            loaded,
            documents,
            suggested,
            group: 0,
            edits: Vec::new(),
            suggestions: Vec::new(),
        }
    }

    /// Adds what repairs one diagnostic, if something does.
    pub(super) fn of(&mut self, diagnostic: &Diagnostic) {
        self.group += 1;
        let code = diagnostic.code;
        let coordinate = diagnostic.coordinate.as_deref().unwrap_or_default();
        match code {
            "INVALID_GRAPHQL" => self.unknown_directive(diagnostic),
            "INVALID_FIELD_SHARING" if !coordinate.starts_with("Subscription.") => {
                for label in diagnostic
                    .labels
                    .iter()
                    .filter(|l| l.message.starts_with("not shareable"))
                {
                    let what = format!("add `@shareable` to `{coordinate}`");
                    self.mark(code, label, "shareable", &what);
                }
            }
            "REQUIRES_FIELDS_MISSING_EXTERNAL" | "PROVIDES_FIELDS_MISSING_EXTERNAL" => {
                for label in diagnostic
                    .labels
                    .iter()
                    .filter(|l| l.message.contains("`@external`"))
                {
                    self.mark(code, label, "external", "add `@external`");
                }
            }
            "REQUIRES_INVALID_FIELDS" | "PROVIDES_INVALID_FIELDS" => {
                self.missing_field(diagnostic, true)
            }
            "KEY_INVALID_FIELDS" => self.missing_field(diagnostic, false),
            "EXTERNAL_ON_INTERFACE" => self.remove_directive(diagnostic, "external"),
            "INVALID_SHAREABLE_USAGE" => self.remove_directive(diagnostic, "shareable"),
            "OVERRIDE_FROM_SELF_ERROR" | "OVERRIDE_DIRECTIVE_CAN_BE_REMOVED" => {
                self.remove_directive(diagnostic, "override");
            }
            "EXTERNAL_UNUSED" => self.remove_field(diagnostic, "is external and used by nothing"),
            "OVERRIDDEN_FIELD_CAN_BE_REMOVED" => self.remove_field(diagnostic, "is overridden"),
            "EXTENSION_WITH_NO_BASE" => self.define(diagnostic),
            "SATISFIABILITY_ERROR" => self.missing_key(diagnostic),
            _ => {}
        }
    }

    fn push(
        &mut self,
        code: &'static str,
        subgraph: usize,
        range: Range<usize>,
        text: String,
        what: &str,
    ) {
        let repair = Repair {
            code,
            subgraph: self.loaded[subgraph].name.clone(),
            what: what.to_owned(),
        };
        self.edits.push(Edit {
            subgraph,
            range,
            text,
            takes_field: false,
            group: self.group,
            repair,
        });
    }
    /// Whether a suggested repair may be made; remembers it otherwise.
    fn may_suggest(&mut self, code: &'static str, subgraph: usize, what: &str) -> bool {
        if !self.suggested {
            let repair = Repair {
                code,
                subgraph: self.loaded[subgraph].name.clone(),
                what: what.to_owned(),
            };
            if !self.suggestions.contains(&repair) {
                self.suggestions.push(repair);
            }
        }
        self.suggested
    }

    fn subgraph(&self, label: &Label) -> Option<usize> {
        let at = label.source.0 as usize;
        (at < self.loaded.len()).then_some(at)
    }

    /// The field definition around a place, and its type.
    fn field_at(&self, at: usize, place: Span) -> Option<(TypeDefinition, FieldDefinition)> {
        let document = &self.documents[at];
        for definition in &document.definitions {
            let Definition::Type(ty) = definition else {
                continue;
            };
            let found = document[fields_of(ty)]
                .iter()
                .find(|f| f.span.start <= place.start && place.end <= f.span.end);
            if let Some(field) = found {
                return Some((*ty, *field));
            }
        }
        None
    }

    // --- repairs -------------------------------------------------------------------------------------------------

    /// Adds a directive to the field at a label.
    fn mark(&mut self, code: &'static str, label: &Label, directive: &str, what: &str) {
        let Some(at) = self.subgraph(label) else {
            return;
        };
        let Some((ty, field)) = self.field_at(at, label.span) else {
            return;
        };
        let document = &self.documents[at];
        // A federation 1 subgraph needs no `@shareable`; it is not the one to change.
        let Some(name) = self.directive_name(at, directive) else {
            return;
        };
        let coordinate = format!("{}.{}", document.name(ty.name), document.name(field.name));
        let what = if what.contains(&coordinate) {
            what.to_owned()
        } else {
            format!("{what} to `{coordinate}`")
        };
        let end = field.span.end as usize;
        self.push(code, at, end..end, format!(" @{name}"), &what);
        self.import(code, at, &[directive], &what);
    }

    /// The name of a federation directive in a subgraph that links federation; `None` without a link. One that is not
    /// imported yet is going to be, under its own name.
    fn directive_name(&self, at: usize, directive: &str) -> Option<String> {
        let document = &self.documents[at];
        let link = federation_link(document)?;
        for item in imports(document, &link) {
            match item {
                Import::Name(name) if name == format!("@{directive}") => {
                    return Some(directive.into());
                }
                Import::Renamed(name, new) if name == format!("@{directive}") => {
                    return Some(new.trim_start_matches('@').to_owned());
                }
                _ => {}
            }
        }
        Some(directive.to_owned())
    }

    /// Imports directives that are not imported yet.
    fn import(&mut self, code: &'static str, at: usize, directives: &[&str], what: &str) {
        let document = &self.documents[at];
        let Some(link) = federation_link(document) else {
            return;
        };
        let known = imports(document, &link);
        let missing: Vec<String> = directives
            .iter()
            .filter(|d| {
                let wanted = format!("@{d}");
                !known.iter().any(|i| match i {
                    Import::Name(name) | Import::Renamed(name, _) => *name == wanted,
                })
            })
            .map(|d| format!("\"@{d}\""))
            .collect();
        if missing.is_empty() {
            return;
        }
        let missing = missing.join(", ");
        let list = document[link.arguments]
            .iter()
            .find(|a| document.name(a.name) == "import");
        let (place, text) = match list {
            Some(argument) => match argument.value.kind {
                ValueKind::List(items) => match document[items].last() {
                    Some(last) => (last.span.end as usize, format!(", {missing}")),
                    None => (argument.value.span.start as usize + 1, missing),
                },
                _ => return,
            },
            None => (link.span.end as usize - 1, format!(", import: [{missing}]")),
        };
        self.push(code, at, place..place, text, what);
    }

    /// An unknown directive of federation is imported, with a link if there is none.
    fn unknown_directive(&mut self, diagnostic: &Diagnostic) {
        let Some(name) = between(&diagnostic.message, "Unknown directive \"@", "\"") else {
            return;
        };
        let Some(at) = diagnostic.labels.first().and_then(|l| self.subgraph(l)) else {
            return;
        };
        let name = name.strip_prefix("federation__").unwrap_or(name);
        if !FEDERATION.contains(&name) || name == "link" {
            return;
        }
        let document = &self.documents[at];
        if federation_link(document).is_some() {
            let what = format!("import `@{name}`");
            self.import(diagnostic.code, at, &[name], &what);
            return;
        }
        let mut used: Vec<&str> = Vec::new();
        for directive in FEDERATION.iter().filter(|d| **d != "link") {
            // Words behind an at sign are directives, or text of no harm.
            let text = &self.loaded[at].sdl;
            let written = format!("@{directive}");
            let mut ends = text.match_indices(&written).map(|(i, m)| i + m.len());
            let longer = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if ends.any(|end| !text[end..].starts_with(longer)) {
                used.push(directive);
            }
        }
        let list: Vec<String> = used.iter().map(|d| format!("\"@{d}\"")).collect();
        let text = format!(
            "extend schema @link(url: \"{LINK}\", import: [{}])\n\n",
            list.join(", ")
        );
        let what = "link federation 2, whose directives are used";
        self.push(diagnostic.code, at, 0..0, text, what);
    }

    /// A field that a field set names and the subgraph does not declare, if another subgraph has it.
    fn missing_field(&mut self, diagnostic: &Diagnostic, external: bool) {
        let message = &diagnostic.message;
        let tail = message
            .rsplit_once("`: `")
            .map_or(&**message, |(_, tail)| tail);
        let (Some(ty), Some(field)) = (
            tail.split('`').find(|w| !w.trim().is_empty()),
            between(message, "has no field `", "`"),
        ) else {
            return;
        };
        let Some(at) = diagnostic.labels.first().and_then(|l| self.subgraph(l)) else {
            return;
        };
        let declared = self.documents.iter().enumerate().filter(|(i, _)| *i != at);
        let Some(declared) = declared
            .into_iter()
            .find_map(|(_, d)| declaration(d, ty, field))
        else {
            return;
        };
        let document = &self.documents[at];
        if !is_known(document, &declared.named) || declared.takes_arguments {
            return;
        }
        let Some(place) = end_of(document, ty) else {
            return;
        };
        let name = self.directive_name(at, "external");
        let mark = match (external, &name) {
            (true, Some(name)) => format!(" @{name}"),
            (true, None) => " @external".into(),
            (false, _) => String::new(),
        };
        let what = format!(
            "declare `{ty}.{field}: {}`{}",
            declared.ty,
            if external { " as `@external`" } else { "" }
        );
        if !external && !self.may_suggest(diagnostic.code, at, &what) {
            return;
        }
        // As the field before it: on a line of its own, or on the same one.
        let before = &self.loaded[at].sdl[..place];
        let line = &before[before.rfind('\n').map_or(0, |i| i + 1)..];
        let gap = if line.contains('{') {
            " ".to_owned()
        } else {
            format!("\n{}", &line[..line.len() - line.trim_start().len()])
        };
        let text = format!("{gap}{field}: {}{mark}", declared.ty);
        self.push(diagnostic.code, at, place..place, text, &what);
        if external {
            self.import(diagnostic.code, at, &["external"], &what);
        }
    }

    /// Removes a directive, and the space before it.
    fn remove_directive(&mut self, diagnostic: &Diagnostic, directive: &str) {
        let Some(label) = diagnostic.labels.first() else {
            return;
        };
        let Some(at) = self.subgraph(label) else {
            return;
        };
        let text = &self.loaded[at].sdl;
        let (start, end) = (label.span.start as usize, label.span.end as usize);
        if !text.get(start..end).is_some_and(|t| t.starts_with('@')) {
            return;
        }
        let start = start - spaces_before(text, start);
        let about = diagnostic.coordinate.as_deref().unwrap_or_default();
        let what = format!("remove `@{directive}` from `{about}`");
        self.push(diagnostic.code, at, start..end, String::new(), &what);
    }

    /// Removes a field that means nothing, unless it is the last one.
    fn remove_field(&mut self, diagnostic: &Diagnostic, why: &str) {
        let Some(label) = diagnostic.labels.first() else {
            return;
        };
        let Some(at) = self.subgraph(label) else {
            return;
        };
        let Some((ty, field)) = self.field_at(at, label.span) else {
            return;
        };
        let interface = matches!(ty.kind, TypeDefinitionKind::Interface { .. });
        if self.documents[at][fields_of(&ty)].len() < 2 || interface {
            return;
        }
        let about = diagnostic.coordinate.as_deref().unwrap_or_default();
        let what = format!("remove `{about}`, which {why}");
        if why == "is overridden" && !self.may_suggest(diagnostic.code, at, &what) {
            return;
        }
        let text = &self.loaded[at].sdl;
        let (mut start, end) = (field.span.start as usize, field.span.end as usize);
        start -= spaces_before(text, start);
        // A line of its own goes as a whole.
        let after = text[end..].trim_start_matches([' ', '\t', ',']);
        if text[..start].ends_with('\n') && after.starts_with(['\n', '\r']) {
            start -= 1;
        }
        self.push(diagnostic.code, at, start..end, String::new(), &what);
        if let Some(edit) = self.edits.last_mut() {
            edit.takes_field = true;
        }
    }

    /// An extension that nobody defines becomes the definition.
    fn define(&mut self, diagnostic: &Diagnostic) {
        let Some(label) = diagnostic.labels.first() else {
            return;
        };
        let Some(at) = self.subgraph(label) else {
            return;
        };
        let document = &self.documents[at];
        let found = document.definitions.iter().find_map(|d| match d {
            Definition::Type(ty)
                if ty.extend
                    && ty.span.start <= label.span.start
                    && label.span.end <= ty.span.end =>
            {
                Some(*ty)
            }
            _ => None,
        });
        let Some(ty) = found else {
            return;
        };
        let name = document.name(ty.name).to_owned();
        let start = ty.span.start as usize;
        let text = &self.loaded[at].sdl[start..];
        let Some(rest) = text.strip_prefix("extend") else {
            return;
        };
        let end = start + text.len() - rest.trim_start().len();
        let what = format!("define `{name}` instead of extending it");
        if self.may_suggest(diagnostic.code, at, &what) {
            self.push(diagnostic.code, at, start..end, String::new(), &what);
        }
    }

    /// A type that other subgraphs can be entered at gets the same key where it has its fields.
    fn missing_key(&mut self, diagnostic: &Diagnostic) {
        let Some((ty, _)) = diagnostic
            .coordinate
            .as_deref()
            .and_then(|c| c.split_once('.'))
        else {
            return;
        };
        let ty = ty.to_owned();
        let keys: Vec<String> = self
            .documents
            .iter()
            .flat_map(|d| keys_of(d, &ty))
            .collect();
        for at in 0..self.documents.len() {
            let document = &self.documents[at];
            if !keys_of(document, &ty).is_empty() {
                continue;
            }
            let Some(definition) = definition_of(document, &ty) else {
                continue;
            };
            if !matches!(definition.kind, TypeDefinitionKind::Object { .. }) {
                continue;
            }
            let has = |field: &str| declaration(document, &ty, field).is_some();
            let key = keys.iter().find(|k| k.split_whitespace().all(has));
            let (Some(key), Some(name)) = (key.cloned(), self.directive_name(at, "key")) else {
                continue;
            };
            let what = format!("give `{ty}` the key `{key}`");
            if !self.may_suggest(diagnostic.code, at, &what) {
                continue;
            }
            let Some(open) = body_of(&self.documents[at], &ty, &self.loaded[at].sdl) else {
                continue;
            };
            // Before the brace, and the space before that.
            let text = format!(" @{name}(fields: \"{key}\")");
            let brace = open - 1;
            let place = brace - spaces_before(&self.loaded[at].sdl, brace);
            self.push(diagnostic.code, at, place..place, text, &what);
            self.import(diagnostic.code, at, &["key"], &what);
        }
    }
}

enum Import {
    Name(String),
    Renamed(String, String),
}

fn spaces_before(text: &str, at: usize) -> usize {
    let before = &text[..at];
    before.len() - before.trim_end_matches([' ', '\t']).len()
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

fn fields_of(ty: &TypeDefinition) -> List<FieldDefinition> {
    match ty.kind {
        TypeDefinitionKind::Object { fields, .. }
        | TypeDefinitionKind::Interface { fields, .. } => fields,
        _ => List::EMPTY,
    }
}

/// The application of `@link` that brings federation.
fn federation_link(document: &Document) -> Option<Directive> {
    let schemas = document.definitions.iter().filter_map(|d| match d {
        Definition::Schema(schema) => Some(schema.directives),
        _ => None,
    });
    schemas
        .flat_map(|list| document[list].iter())
        .find(|d| {
            document[d.arguments].iter().any(|a| {
                let url = a.value.as_string().map(|s| document.string_value(s));
                document.name(a.name) == "url" && url.is_some_and(|u| u.contains("/federation/v"))
            })
        })
        .copied()
}

fn imports(document: &Document, link: &Directive) -> Vec<Import> {
    let mut out = Vec::new();
    for argument in document[link.arguments]
        .iter()
        .filter(|a| document.name(a.name) == "import")
    {
        let ValueKind::List(items) = argument.value.kind else {
            continue;
        };
        for item in &document[items] {
            if let Some(name) = item.as_string() {
                out.push(Import::Name(document.string_value(name).into_owned()));
            } else if let ValueKind::Object(fields) = item.kind {
                let get = |key: &str| {
                    let found = document[fields]
                        .iter()
                        .find(|f| document.name(f.name) == key)?;
                    Some(document.string_value(found.value.as_string()?).into_owned())
                };
                if let (Some(name), Some(new)) = (get("name"), get("as")) {
                    out.push(Import::Renamed(name, new));
                }
            }
        }
    }
    out
}

/// The first definition of a type, else its first extension.
fn definition_of(document: &Document, name: &str) -> Option<TypeDefinition> {
    let mut all = document.definitions.iter().filter_map(|d| match d {
        Definition::Type(ty) if document.name(ty.name) == name => Some(*ty),
        _ => None,
    });
    let first = all.next()?;
    Some(if first.extend {
        all.find(|t| !t.extend).unwrap_or(first)
    } else {
        first
    })
}

/// The place behind the brace that opens a type's fields.
fn body_of(document: &Document, name: &str, text: &str) -> Option<usize> {
    let ty = definition_of(document, name)?;
    let first = document[fields_of(&ty)].first()?;
    // Between the directives and the first field stands nothing but the brace, space and comments.
    let from = document[ty.directives]
        .last()
        .map_or(ty.name.span().end, |d| d.span.end) as usize;
    let open = text[from..first.span.start as usize].find('{')?;
    Some(from + open + 1)
}

/// The place behind a type's last field.
fn end_of(document: &Document, name: &str) -> Option<usize> {
    let ty = definition_of(document, name)?;
    Some(document[fields_of(&ty)].last()?.span.end as usize)
}

struct Declared {
    ty: String,
    named: String,
    takes_arguments: bool,
}

fn declaration(document: &Document, ty: &str, field: &str) -> Option<Declared> {
    let types = document.definitions.iter().filter_map(|d| match d {
        Definition::Type(t) if document.name(t.name) == ty => Some(t),
        _ => None,
    });
    types
        .flat_map(|t| document[fields_of(t)].iter())
        .find(|f| document.name(f.name) == field)
        .map(|f| Declared {
            ty: print_type_ref(document, &f.ty),
            named: document.name(f.ty.name).to_owned(),
            takes_arguments: !f.arguments.is_empty(),
        })
}

fn is_known(document: &Document, name: &str) -> bool {
    matches!(name, "Int" | "Float" | "String" | "Boolean" | "ID")
        || definition_of(document, name).is_some()
}

/// Keys of a type whose fields are plain names.
fn keys_of(document: &Document, name: &str) -> Vec<String> {
    let types = document.definitions.iter().filter_map(|d| match d {
        Definition::Type(t) if document.name(t.name) == name => Some(t),
        _ => None,
    });
    let mut out = Vec::new();
    for directive in types.flat_map(|t| document[t.directives].iter()) {
        let called = document.name(directive.name);
        if called != "key" && called != "federation__key" {
            continue;
        }
        let fields = document[directive.arguments]
            .iter()
            .find(|a| document.name(a.name) == "fields");
        let text = fields
            .and_then(|a| a.value.as_string())
            .map(|s| document.string_value(s).into_owned());
        out.extend(text.filter(|t| !t.contains(['{', '.'])));
    }
    out
}
