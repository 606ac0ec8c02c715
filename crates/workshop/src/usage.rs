//! What clients use: operations from a folder or a manifest, and the schema coordinates they need.

use std::path::{Path, PathBuf};

use ogive_base::{FastMap, Severity, SourceId, diagnostic::line_column};
use ogive_documents::{
    ExtractOptions, Extraction, SourceFile, SourceTree,
    extract::{Collector, UNNAMED},
    form, manifest,
    source_tree::FileKind,
};
use ogive_files::Pipes;
use ogive_schema::{Schema, TypeId};
use ogive_syntax::{
    Document, Limits,
    ast::{self, Definition, Selection, SelectionSet, ValueKind},
    parse,
};
use serde_json::Value;

use crate::{
    Refused,
    inputs::{invalid, read_text, unreadable},
};

/// Most operations.
pub const OPERATIONS_MAX: usize = 200_000;

/// One document of a client: an operation of a file with its fragments, or a document of a manifest.
#[derive(Clone, Debug)]
pub struct Used {
    /// Name of its operation; of a manifest, else its id.
    pub name: String,
    /// Where it is: file, line and column; of a manifest, the file.
    pub place: String,
    /// Which operation of the files it is; a document of a manifest is none.
    found: Option<usize>,
    /// The parsed text.
    pub document: Document,
    /// What of the schema it needs; see [`needs`].
    pub needs: Needs,
    /// Who asks it, most often first; nobody if that is not known.
    pub clients: Vec<ClientUse>,
}

/// A client of an operation, as a gateway has counted it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientUse {
    /// Its name; empty if it does not say.
    pub name: String,
    /// Likewise its version.
    pub version: String,
    /// How often it has asked.
    pub requests: u64,
}

/// What a document needs of a schema, and where it first does.
pub type Needs = FastMap<String, u32>;

/// Operations that clients send.
#[derive(Debug, Default)]
pub struct Usage {
    /// One row per document with operations.
    pub operations: Vec<Used>,
    /// Requests that a gateway has counted without their operation, so that nothing is known of what they need.
    pub unattributed_requests: u64,
    /// The operations of files, for where they are.
    extraction: Extraction,
}

impl Usage {
    /// Reads folders and files as `ogive operations` does, and the `.json` manifests in them or named.
    pub fn read(paths: &[PathBuf], schema: &Schema) -> Result<Usage, Refused> {
        let mut usage = Usage::default();
        let mut collector = Usage::collector();
        let (folders, files): (Vec<_>, Vec<_>) = paths.iter().partition(|path| path.is_dir());
        for file in files {
            let text = read_text(file, "operations", Pipes::Read)?;
            match FileKind::of(file) {
                None if is_json(file) => {
                    usage.manifest(&text, &file.display().to_string(), schema)?;
                }
                kind => collector.add(SourceFile {
                    path: file.clone(),
                    kind: kind.unwrap_or(FileKind::Graphql),
                    text,
                }),
            }
        }
        let tree = SourceTree {
            roots: folders.into_iter().cloned().collect(),
            ..SourceTree::default()
        };
        let unread = |error: ogive_documents::TreeError| {
            unreadable(error.to_string(), "check the path and the permissions")
        };
        collector.add_tree(&tree).map_err(unread)?;
        for file in tree.files().map_err(unread)? {
            if !is_json(&file) {
                continue;
            }
            // What happens to lie in a folder was not named by the user.
            let text = read_text(&file, "operations", Pipes::Refused)?;
            if may_hold_operations(&text) {
                usage.manifest(&text, &file.display().to_string(), schema)?;
            }
        }
        usage.extracted(collector, schema)?;
        match paths.iter().find(|path| !usage.holds(path)) {
            Some(empty) => Err(no_operations(&empty.display().to_string())),
            None => usage.not_empty("the files"),
        }
    }

    /// Whether anything was found at or below a path: an operation, or a fragment of one that is elsewhere.
    fn holds(&self, path: &Path) -> bool {
        let mut places = self.operations.iter().map(|used| Path::new(&used.place));
        self.extraction.holds(path) || places.any(|place| place.starts_with(path))
    }

    /// Reads a text that is a manifest if it is JSON, else a document.
    pub fn read_text(text: &str, place: &str, schema: &Schema) -> Result<Usage, Refused> {
        let mut usage = Usage::default();
        if serde_json::from_str::<Value>(text).is_ok() {
            usage.manifest(text, place, schema)?;
        } else {
            let mut collector = Usage::collector();
            collector.add(SourceFile {
                path: place.into(),
                kind: FileKind::Graphql,
                text: text.to_owned(),
            });
            usage.extracted(collector, schema)?;
        }
        usage.not_empty(place)
    }

    /// Reads what gateways have counted (`usage.file`): lines of one JSON object each.
    pub fn read_counted(text: &str, place: &str, schema: &Schema) -> Result<Usage, Refused> {
        let mut usage = Usage::default();
        usage.counted(text, place, schema)?;
        usage.not_empty(place)
    }

    /// Where a byte of a document stands, as `file:line:column`; of a manifest, which holds many documents, the name
    /// of the operation is part of it.
    pub fn place(&self, used: &Used, byte: u32) -> String {
        let found = used
            .found
            .and_then(|found| self.extraction.operations.get(found));
        let Some(found) = found else {
            let (line, column) = line_column(used.document.source(), byte);
            return format!("{} {}:{line}:{column}", used.place, used.name);
        };
        let (source, byte) = self.extraction.place(found, byte);
        self.place_in(source, byte)
    }

    fn place_in(&self, source: SourceId, byte: u32) -> String {
        let Some(source) = self.extraction.sources.get(source) else {
            return String::new();
        };
        let (line, column) = line_column(&source.text, byte);
        format!("{}:{line}:{column}", source.name)
    }

    /// Operations are checked as they are written, and need no names.
    fn collector() -> Collector {
        Collector::new(ExtractOptions {
            unique_names: false,
            ..ExtractOptions::default()
        })
    }

    fn not_empty(self, place: &str) -> Result<Usage, Refused> {
        if !self.operations.is_empty() {
            return Ok(self);
        }
        Err(no_operations(place))
    }

    /// Adds the operations of files.
    fn extracted(&mut self, collector: Collector, schema: &Schema) -> Result<(), Refused> {
        let mut extraction = collector.finish();
        let mut errors = std::mem::take(&mut extraction.diagnostics);
        errors.retain(|diagnostic| diagnostic.severity == Severity::Error);
        if !errors.is_empty() {
            return Err(Refused {
                diagnostics: errors,
                sources: extraction.sources,
            });
        }
        self.extraction = extraction;
        for at in 0..self.extraction.operations.len() {
            let found = &self.extraction.operations[at];
            let (name, place) = (found.name.clone(), (found.source, found.span.start));
            let place = self.place_in(place.0, place.1);
            let document = parsed(&found.written, &place)?;
            self.push(name, place, document, Some(at), schema)?;
        }
        Ok(())
    }

    fn push(
        &mut self,
        name: String,
        place: String,
        document: Document,
        found: Option<usize>,
        schema: &Schema,
    ) -> Result<(), Refused> {
        if self.operations.len() >= OPERATIONS_MAX {
            return Err(invalid(
                format!("more than {OPERATIONS_MAX} operations"),
                "give those of the last weeks only",
            ));
        }
        let needs = needs(schema, &document);
        self.operations.push(Used {
            name,
            place,
            found,
            document,
            needs,
            clients: Vec::new(),
        });
        Ok(())
    }

    /// Adds a document that is whole: of a manifest, or as a gateway has counted it.
    fn document(
        &mut self,
        text: &str,
        label: &str,
        place: &str,
        schema: &Schema,
    ) -> Result<(), Refused> {
        let document = parsed(text, place)?;
        let names = document.operations().filter_map(|operation| operation.name);
        let names: Vec<&str> = names.map(|name| document.name(name)).collect();
        let name = match names.as_slice() {
            [] => label.to_owned(),
            names => names.join(", "),
        };
        if document.operations().next().is_none() {
            return Err(invalid(
                format!("the document `{label}` of `{place}` has no operation"),
                "remove it, or add an operation to it",
            ));
        }
        self.push(name, place.to_owned(), document, None, schema)
    }

    fn counted(&mut self, text: &str, place: &str, schema: &Schema) -> Result<(), Refused> {
        let mut known: FastMap<(String, String), usize> = FastMap::default();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let fail = |what: &str| {
                let at = number + 1;
                let help = "name a file that a gateway has written (`usage.file`)";
                invalid(format!("line {at} of `{place}` {what}"), help)
            };
            let row: Value = serde_json::from_str(line).map_err(|_| fail("is not JSON"))?;
            let requests = row["requests"].as_u64();
            let requests = requests.ok_or_else(|| fail("has no `requests`"))?;
            let Some(text) = row["operation"].as_str() else {
                self.unattributed_requests = self.unattributed_requests.saturating_add(requests);
                continue;
            };
            let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let key = (said(&row["name"]), text.to_owned());
            let at = match known.get(&key) {
                Some(at) => *at,
                None => {
                    let at = self.operations.len();
                    self.document(text, UNNAMED, place, schema)?;
                    known.insert(key, at);
                    at
                }
            };
            let (name, version) = (
                said(&row["client"]["name"]),
                said(&row["client"]["version"]),
            );
            let clients = &mut self.operations[at].clients;
            let same = |c: &&mut ClientUse| c.name == name && c.version == version;
            match clients.iter_mut().find(same) {
                Some(client) => client.requests = client.requests.saturating_add(requests),
                None => clients.push(ClientUse {
                    name,
                    version,
                    requests,
                }),
            }
        }
        for used in &mut self.operations {
            used.clients
                .sort_by_key(|client| std::cmp::Reverse(client.requests));
        }
        Ok(())
    }

    fn manifest(&mut self, text: &str, place: &str, schema: &Schema) -> Result<(), Refused> {
        let entries = manifest::read(text.as_bytes(), None).map_err(|error| {
            invalid(
                format!("`{place}` is not a manifest of operations: {error}"),
                "write Apollo's manifest format, one object of id and document, or a list of documents",
            )
        })?;
        for entry in entries {
            let label = entry.name.as_deref().unwrap_or(&entry.id);
            self.document(&entry.text, label, place, schema)?;
        }
        Ok(())
    }
}

fn parsed(text: &str, place: &str) -> Result<Document, Refused> {
    let parsed = parse(text, SourceId(0), &Limits::default());
    let Some(mut error) = parsed.errors.into_iter().next() else {
        return Ok(parsed.document);
    };
    let mut refused = Refused::default();
    refused.sources.add(place, text);
    error.help = error.help.or(Some("correct the document".into()));
    refused.diagnostics.push(error);
    Err(refused)
}

fn no_operations(place: &str) -> Refused {
    invalid(
        format!("`{place}` holds no operations"),
        "name a folder with documents, a manifest of persisted queries, or what a gateway has counted",
    )
}

fn is_json(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "json")
}

/// Whether a JSON text of a folder may be a manifest: whether any string of it looks like a document. Other JSON files are
/// part of most front ends.
fn may_hold_operations(text: &str) -> bool {
    const WORDS: [&str; 4] = ["query", "mutation", "subscription", "fragment"];
    let is_document = |text: &str| {
        let begins = |word: &&str| text.trim_start().starts_with(word);
        (text.contains('{') && WORDS.iter().any(begins)) || form(text).is_some()
    };
    let text = text.trim_start_matches('\u{feff}');
    let Ok(json) = serde_json::from_str::<Value>(text) else {
        // It cannot be read, so it may be a manifest that is cut off.
        return WORDS[..3].iter().any(|word| text.contains(word));
    };
    let mut open = vec![&json];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) if is_document(text) => return true,
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    false
}

/// What a document needs of a schema:
///
/// - `Type.field` it selects, `Type.field(arg:)` it gives, `Type.field(arg:) omitted` it leaves out;
/// - `Type` it has objects of or writes values of, `on Type` of its conditions, `out Type` of leaves it selects;
/// - `Input.field` and `Enum.VALUE` it writes, `Input.field omitted`, and `Type.*` where a variable may hold anything;
/// - `@directive` and `@directive(arg:)`.
pub fn needs(schema: &Schema, document: &Document) -> Needs {
    let mut walk = Walk {
        schema,
        document,
        out: Needs::default(),
        open: Vec::new(),
    };
    for definition in &document.definitions {
        match definition {
            Definition::Operation(operation) => {
                for variable in &document[operation.variables] {
                    let name = document.name(variable.ty.name);
                    if let Some(ty) = schema.type_by_name(name) {
                        walk.any(ty, variable.span.start);
                        if let Some(value) = &variable.default {
                            walk.value(ty, value);
                        }
                    }
                    walk.directives(variable.directives);
                }
                walk.directives(operation.directives);
                if let Some(root) = schema.root(operation.kind) {
                    walk.open.push((operation.selection_set, root));
                }
            }
            Definition::Fragment(fragment) => {
                walk.directives(fragment.directives);
                walk.condition(fragment.type_condition, fragment.selection_set, None);
            }
            _ => {}
        }
    }
    walk.run();
    walk.out
}

struct Walk<'a> {
    schema: &'a Schema,
    document: &'a Document,
    out: Needs,
    open: Vec<(SelectionSet, TypeId)>,
}

impl Walk<'_> {
    fn need(&mut self, what: String, at: u32) {
        let first = self.out.entry(what).or_insert(at);
        *first = at.min(*first);
    }

    fn run(&mut self) {
        let (schema, document) = (self.schema, self.document);
        while let Some((set, ty)) = self.open.pop() {
            self.need(schema.type_name(ty).to_owned(), set.span.start);
            for selection in &document[set.items] {
                match selection {
                    Selection::Field(field) => self.field(field, ty),
                    Selection::Spread(spread) => self.directives(spread.directives),
                    Selection::Inline(inline) => {
                        self.directives(inline.directives);
                        match inline.type_condition {
                            Some(name) => self.condition(name, inline.selection_set, Some(ty)),
                            None => self.open.push((inline.selection_set, ty)),
                        }
                    }
                }
            }
        }
    }

    fn condition(&mut self, name: ast::Name, set: SelectionSet, outer: Option<TypeId>) {
        let text = self.document.name(name);
        self.need(format!("on {text}"), name.span().start);
        if let Some(ty) = self.schema.type_by_name(text).or(outer) {
            self.open.push((set, ty));
        }
    }

    fn field(&mut self, field: &ast::Field, parent: TypeId) {
        let (schema, document) = (self.schema, self.document);
        self.directives(field.directives);
        let Some(id) = schema.field_by_name(parent, document.name(field.name)) else {
            return;
        };
        let row = &schema.fields[id];
        let coordinate = schema.field_coordinate(id);
        let given = &document[field.arguments];
        for argument in given {
            let name = document.name(argument.name);
            let at = argument.span.start;
            self.need(format!("{coordinate}({name}:)"), at);
            if let Some(input) = schema.arg_by_name(&row.args, name) {
                self.value(schema.inputs[input].ty.id, &argument.value);
            }
        }
        let at = field.name.span().start;
        for arg in &row.args {
            let name = schema.name(schema.inputs[*arg].name);
            if !given.iter().any(|a| document.name(a.name) == name) {
                self.need(format!("{coordinate}({name}:) omitted"), at);
            }
        }
        self.need(coordinate, at);
        if let Some(set) = field.selection_set {
            self.open.push((set, row.ty.id));
        } else {
            self.need(format!("out {}", schema.type_name(row.ty.id)), at);
        }
    }

    /// What a literal has; what its variables hold was said where they are declared.
    fn value(&mut self, ty: TypeId, value: &ast::Value) {
        let (schema, document) = (self.schema, self.document);
        let mut open = vec![(ty, *value)];
        while let Some((ty, value)) = open.pop() {
            let name = schema.type_name(ty);
            let at = value.span.start;
            match value.kind {
                ValueKind::List(items) => open.extend(document[items].iter().map(|v| (ty, *v))),
                ValueKind::Enum => {
                    self.need(format!("{name}.{}", document.text(value.span)), at);
                    self.need(name.to_owned(), at);
                }
                ValueKind::Object(fields) => {
                    self.need(name.to_owned(), at);
                    let given = &document[fields];
                    for field in given {
                        let written = document.name(field.name);
                        self.need(format!("{name}.{written}"), field.span.start);
                        let inputs = &schema.types[ty].input_fields;
                        if let Some(input) = schema.arg_by_name(inputs, written) {
                            open.push((schema.inputs[input].ty.id, field.value));
                        }
                    }
                    for input in &schema.types[ty].input_fields {
                        let field = schema.name(schema.inputs[*input].name);
                        if !given.iter().any(|f| document.name(f.name) == field) {
                            self.need(format!("{name}.{field} omitted"), at);
                        }
                    }
                }
                ValueKind::Variable(_) => {}
                _ => self.need(name.to_owned(), at),
            }
        }
    }

    /// An input type with everything inside it: a variable may hold any of it.
    fn any(&mut self, ty: TypeId, at: u32) {
        let schema = self.schema;
        let mut open = vec![ty];
        while let Some(ty) = open.pop() {
            let name = schema.type_name(ty);
            if self.out.contains_key(&format!("{name}.*")) {
                continue;
            }
            self.need(format!("{name}.*"), at);
            self.need(name.to_owned(), at);
            for field in &schema.types[ty].input_fields {
                open.push(schema.inputs[*field].ty.id);
            }
        }
    }

    fn directives(&mut self, list: ast::List<ast::Directive>) {
        let (schema, document) = (self.schema, self.document);
        for directive in &document[list] {
            let called = document.name(directive.name);
            let definition = schema.directive_by_name(called);
            let name = format!("@{called}");
            for argument in &document[directive.arguments] {
                let arg = document.name(argument.name);
                self.need(format!("{name}({arg}:)"), argument.span.start);
                let args = definition.map_or(&[][..], |d| &schema.directive_defs[d].args);
                if let Some(input) = schema.arg_by_name(args, arg) {
                    self.value(schema.inputs[input].ty.id, &argument.value);
                }
            }
            self.need(name, directive.span.start);
        }
    }
}
