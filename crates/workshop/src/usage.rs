//! What clients use: operations from a folder or a manifest, and the schema coordinates they need.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ogive_base::{FastSet, SourceId};
use ogive_schema::{Schema, TypeId, TypeKind};
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
    /// The parsed text.
    pub document: Document,
    /// What of the schema it needs; see [`needs`].
    pub needs: FastSet<String>,
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
        if path.is_dir() {
            list(path, &mut files)?;
        } else {
            files.push(path.to_path_buf());
        }
        let mut usage = Usage::default();
        for file in files {
            let text = read_text(&file, "operations")?;
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

    /// Adds one document.
    pub fn document(
        &mut self,
        text: &str,
        label: &str,
        place: &str,
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
            document,
            needs,
        });
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
                self.document(body, label, place, schema)?;
            }
            return Ok(());
        }
        for (id, body) in json.as_object().ok_or_else(|| fail("it is no object"))? {
            let body = body.as_str();
            let body = body.ok_or_else(|| fail(&format!("the document of `{id}` is no text")))?;
            self.document(body, id, place, schema)?;
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

/// The coordinates that a document needs: `Type.field` and `Type.field(arg:)` of what it selects and gives, and `Type`
/// of every type it can meet: types of values it selects, of its conditions, and everything inside its input types.
pub fn needs(schema: &Schema, document: &Document) -> FastSet<String> {
    let mut walk = Walk {
        schema,
        document,
        out: FastSet::default(),
        inputs: Vec::new(),
        open: Vec::new(),
    };
    for definition in &document.definitions {
        match definition {
            Definition::Operation(operation) => {
                for variable in &document[operation.variables] {
                    walk.type_named(document.name(variable.ty.name));
                }
                walk.directives(operation.directives);
                if let Some(root) = schema.root(operation.kind) {
                    walk.open.push((operation.selection_set, root));
                }
            }
            Definition::Fragment(fragment) => {
                let condition = document.name(fragment.type_condition);
                walk.type_named(condition);
                if let Some(ty) = schema.type_by_name(condition) {
                    walk.open.push((fragment.selection_set, ty));
                }
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
    out: FastSet<String>,
    inputs: Vec<TypeId>,
    open: Vec<(SelectionSet, TypeId)>,
}

impl Walk<'_> {
    fn run(&mut self) {
        let (schema, document) = (self.schema, self.document);
        while let Some((set, ty)) = self.open.pop() {
            self.out.insert(schema.type_name(ty).to_owned());
            for selection in &document[set.items] {
                match selection {
                    Selection::Field(field) => self.field(field, ty),
                    Selection::Spread(spread) => self.directives(spread.directives),
                    Selection::Inline(inline) => {
                        self.directives(inline.directives);
                        let condition = inline.type_condition.map(|n| document.name(n));
                        let inner = condition.and_then(|n| schema.type_by_name(n));
                        self.open.push((inline.selection_set, inner.unwrap_or(ty)));
                    }
                }
            }
        }
        // An input type is needed with everything inside it: variables may hold any of it.
        while let Some(ty) = self.inputs.pop() {
            for field in &schema.types[ty].input_fields {
                self.type_named(schema.type_name(schema.inputs[*field].ty.id));
            }
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
        for argument in &document[field.arguments] {
            let name = document.name(argument.name);
            self.out.insert(format!("{coordinate}({name}:)"));
            if let Some(input) = schema.arg_by_name(&row.args, name) {
                self.type_named(schema.type_name(schema.inputs[input].ty.id));
            }
        }
        self.out.insert(coordinate);
        self.type_named(schema.type_name(row.ty.id));
        if let Some(set) = field.selection_set {
            self.open.push((set, row.ty.id));
        }
    }

    fn directives(&mut self, list: ast::List<ast::Directive>) {
        for directive in &self.document[list] {
            let name = format!("@{}", self.document.name(directive.name));
            for argument in &self.document[directive.arguments] {
                let argument_name = self.document.name(argument.name);
                self.out.insert(format!("{name}({argument_name}:)"));
                if argument.value.kind == ValueKind::Enum {
                    self.out
                        .insert(self.document.text(argument.value.span).to_owned());
                }
            }
            self.out.insert(name);
        }
    }

    fn type_named(&mut self, name: &str) {
        if self.out.insert(name.to_owned())
            && let Some(ty) = self.schema.type_by_name(name)
            && self.schema.types[ty].kind == TypeKind::InputObject
        {
            self.inputs.push(ty);
        }
    }
}
