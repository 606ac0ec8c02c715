//! What clients use: operations from a folder or a manifest, and the schema coordinates they need.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ogive_base::{FastMap, SourceId, diagnostic::line_column};
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
/// Deepest folder below the one named.
pub const FOLDER_DEPTH_MAX: usize = 16;

/// One document of a client.
#[derive(Clone, Debug)]
pub struct Used {
    /// Name of its operation, else of its file or id.
    pub name: String,
    /// Its file.
    pub place: String,
    /// Whether the document is the whole file, so that its lines are those of the file.
    pub whole: bool,
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

impl Used {
    /// Where a byte of the document stands, as `file:line:column`; of a manifest, which holds many documents, the name
    /// of the operation is part of it.
    pub fn at(&self, byte: u32) -> String {
        let (line, column) = line_column(self.document.source(), byte);
        if self.whole {
            format!("{}:{line}:{column}", self.place)
        } else {
            format!("{} {}:{line}:{column}", self.place, self.name)
        }
    }
}

/// Operations that clients send.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// One row per document with operations.
    pub operations: Vec<Used>,
}

impl Usage {
    /// Reads a folder of `.graphql` and `.gql` files and manifests, or one such file.
    pub fn read(path: &Path, schema: &Schema) -> Result<Usage, Refused> {
        let mut files = Vec::new();
        // What happens to lie in a folder was not named by anybody.
        let pipes = if path.is_dir() {
            list(path, &mut files)?;
            Pipes::Refused
        } else {
            files.push(path.to_path_buf());
            Pipes::Read
        };
        let mut usage = Usage::default();
        for file in files {
            let text = read_text(&file, "operations", pipes)?;
            let place = file.display().to_string();
            if file.extension().is_some_and(|e| e == "json") {
                usage.manifest(&text, &place, schema)?;
            } else {
                usage.document(&text, &place, &place, schema)?;
            }
        }
        if usage.operations.is_empty() {
            return Err(invalid(
                format!("`{}` holds no operations", path.display()),
                "name a folder of .graphql files, or a manifest of persisted queries",
            ));
        }
        Ok(usage)
    }

    /// Reads a text that is a manifest if it is JSON, else a document.
    pub fn read_text(text: &str, place: &str, schema: &Schema) -> Result<Usage, Refused> {
        let mut usage = Usage::default();
        match serde_json::from_str::<Value>(text) {
            Ok(_) => usage.manifest(text, place, schema)?,
            Err(_) => usage.document(text, place, place, schema)?,
        }
        Ok(usage)
    }

    /// Adds one document, which is a whole file.
    pub fn document(
        &mut self,
        text: &str,
        label: &str,
        place: &str,
        schema: &Schema,
    ) -> Result<(), Refused> {
        self.add(text, label, place, true, schema)
    }

    fn add(
        &mut self,
        text: &str,
        label: &str,
        place: &str,
        whole: bool,
        schema: &Schema,
    ) -> Result<(), Refused> {
        let parsed = parse(text, SourceId(0), &Limits::default());
        if let Some(mut error) = parsed.errors.into_iter().next() {
            let mut refused = Refused::default();
            refused.sources.add(place, text);
            error.help = error.help.or(Some("correct the document".into()));
            refused.diagnostics.push(error);
            return Err(refused);
        }
        let document = parsed.document;
        let named = document.operations().find_map(|o| o.name);
        let name = named.map_or(label, |n| document.name(n)).to_owned();
        // A file of fragments alone is no operation.
        if document.operations().next().is_none() {
            return Ok(());
        }
        if self.operations.len() >= OPERATIONS_MAX {
            return Err(invalid(
                format!("more than {OPERATIONS_MAX} operations"),
                "give those of the last weeks only",
            ));
        }
        let needs = needs(schema, &document);
        self.operations.push(Used {
            name,
            place: place.to_owned(),
            whole,
            document,
            needs,
            clients: Vec::new(),
        });
        Ok(())
    }

    /// Adds what gateways have counted (`usage.file`): lines of one JSON object each.
    pub fn counted(&mut self, text: &str, place: &str, schema: &Schema) -> Result<(), Refused> {
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
            let row: Value = serde_json::from_str(line).map_err(|_| fail("is no JSON"))?;
            let requests = row["requests"].as_u64();
            let requests = requests.ok_or_else(|| fail("has no `requests`"))?;
            // What was not told apart says nothing of any operation.
            let Some(text) = row["operation"].as_str() else {
                continue;
            };
            let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let key = (said(&row["name"]), text.to_owned());
            let at = match known.get(&key) {
                Some(at) => *at,
                None => {
                    let at = self.operations.len();
                    self.add(text, "(unnamed)", place, false, schema)?;
                    if self.operations.len() == at {
                        return Err(fail("has no operation"));
                    }
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
        let fail = |what: &str| {
            invalid(
                format!("`{place}` is no manifest of operations: {what}"),
                "write Apollo's manifest format, one object of id and document, or a list of documents",
            )
        };
        let json: Value = serde_json::from_str(text).map_err(|error| fail(&error.to_string()))?;
        let listed = json.get("operations").unwrap_or(&json);
        if let Some(list) = listed.as_array() {
            for operation in list {
                let field = |name: &str| operation.get(name).and_then(Value::as_str);
                let body = operation.as_str().or(field("body")).or(field("query"));
                let body = body.ok_or_else(|| fail("an operation has no `body`"))?;
                let label = field("name").or(field("id")).unwrap_or("(unnamed)");
                self.add(body, label, place, false, schema)?;
            }
            return Ok(());
        }
        for (id, body) in json.as_object().ok_or_else(|| fail("it is no object"))? {
            let body = body.as_str();
            let body = body.ok_or_else(|| fail(&format!("the document of `{id}` is no text")))?;
            self.add(body, id, place, false, schema)?;
        }
        Ok(())
    }
}

fn list(folder: &Path, out: &mut Vec<PathBuf>) -> Result<(), Refused> {
    let mut open = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = open.pop() {
        let fail = |error: std::io::Error| {
            unreadable(
                format!("cannot read the folder `{}`: {error}", folder.display()),
                "check the path",
            )
        };
        for entry in fs::read_dir(&folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let path = entry.path();
            // Links are followed to files, not to folders: they could lead in circles.
            if entry.file_type().map_err(fail)?.is_dir() {
                if depth < FOLDER_DEPTH_MAX {
                    open.push((path, depth + 1));
                }
            } else if matches!(
                path.extension().and_then(|e| e.to_str()),
                Some("graphql" | "gql" | "json")
            ) {
                out.push(path);
            }
        }
    }
    out.sort();
    Ok(())
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
