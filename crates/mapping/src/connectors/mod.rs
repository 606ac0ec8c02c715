//! Connectors of a subgraph: `@source` and `@connect`, read from its schema document, checked and compiled.
//!
//! [`read_connectors`] needs the document only: types, arguments and directives are taken as they are written, and
//! composition checks the rest of the schema. Every message points into the document.

mod arguments;
mod http;
mod link;
mod types;

use ogive_base::{Diagnostic, Severity, Span};
use ogive_syntax::ast::{
    Definition, Directive, Document, FieldDefinition, List, OperationKind, TypeDefinition,
    TypeDefinitionKind, Value,
};

use crate::{
    compile::Environment,
    kinds::Kinds,
    limits::ParseLimits,
    program::Program,
    shape::{Shape, ShapeId, Shapes},
    template::{HeaderTemplate, UrlTemplate},
    variable::Variable,
    version::Version,
};
use arguments::Arguments;
use link::Link;
use types::Types;

/// Code of a directive of connectors with an argument that is missing, unknown or of another kind.
pub const INVALID_CONNECTOR: &str = "CONNECTORS_INVALID_CONNECTOR";

/// The connectors of a subgraph.
#[derive(Clone, Debug)]
pub struct Connectors {
    /// The version that the document links.
    pub version: Version,
    /// `@source`, in the order of the document.
    pub sources: Vec<ConnectorSource>,
    /// `@connect`, in the order of the document.
    pub connectors: Vec<Connector>,
}

/// What reading a document gives.
#[derive(Clone, Debug, Default)]
pub struct ReadConnectors {
    /// The connectors; `None` if the document links none, or has errors.
    pub connectors: Option<Connectors>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// `@source`: what connectors of one service have in common.
#[derive(Clone, Debug)]
pub struct ConnectorSource {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub span: Span,
    /// `baseURL`.
    pub base: UrlTemplate,
    /// What it adds to requests.
    pub request: RequestParts,
    /// What it says of responses.
    pub response: ResponseParts,
}

/// `@connect`: one way to get a field or a type.
#[derive(Clone, Debug)]
pub struct Connector {
    /// `Query.user` for a field, `User` for a type.
    pub coordinate: String,
    /// Where it stands.
    pub span: Span,
    /// The row of its source.
    pub source: Option<usize>,
    /// The request; `None` if nothing is asked (from version 0.4 on).
    pub http: Option<ConnectorHttp>,
    /// What becomes of the response.
    pub selection: Program,
    /// Whether a root field answers for references to an entity.
    pub entity: bool,
    /// Most references in one request.
    pub batch_size_max: Option<u32>,
    /// What it says of responses.
    pub response: ResponseParts,
}

/// The request of a connector.
#[derive(Clone, Debug)]
pub struct ConnectorHttp {
    /// The method.
    pub method: RequestMethod,
    /// The URL, or what follows that of the source.
    pub url: UrlTemplate,
    /// What it adds to the URL and the headers.
    pub request: RequestParts,
    /// The body.
    pub body: Option<Program>,
}

/// A method of HTTP that connectors have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "they are the names of the methods")]
pub enum RequestMethod {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl RequestMethod {
    /// All methods with their names.
    pub const ALL: [(&'static str, RequestMethod); 5] = [
        ("GET", RequestMethod::Get),
        ("POST", RequestMethod::Post),
        ("PUT", RequestMethod::Put),
        ("PATCH", RequestMethod::Patch),
        ("DELETE", RequestMethod::Delete),
    ];
}

/// What a source or a connector adds to a request.
#[derive(Clone, Debug, Default)]
pub struct RequestParts {
    /// `path`: segments.
    pub path: Option<Program>,
    /// `queryParams`: parameters.
    pub parameters: Option<Program>,
    /// `headers`.
    pub headers: Vec<ConnectorHeader>,
}

/// What a source or a connector says of responses.
#[derive(Clone, Debug, Default)]
pub struct ResponseParts {
    /// `errors.message`: the text of an error.
    pub message: Option<Program>,
    /// `errors.extensions`: members of an error's `extensions`.
    pub extensions: Option<Program>,
    /// `isSuccess`: whether a response is an answer.
    pub is_success: Option<Program>,
}

/// A header of a request.
#[derive(Clone, Debug)]
pub struct ConnectorHeader {
    /// Its name, as it is written.
    pub name: String,
    /// Its value.
    pub value: ConnectorHeaderValue,
}

/// Where the value of a header comes from.
#[derive(Clone, Debug)]
pub enum ConnectorHeaderValue {
    /// From the header of that name of the client's request.
    From(String),
    /// From a template.
    Template(HeaderTemplate),
}

/// Reads the connectors of a subgraph's schema document.
pub fn read_connectors(document: &Document, limits: &ParseLimits) -> ReadConnectors {
    let mut diagnostics = Vec::new();
    let Some(link) = link::find(document, &mut diagnostics) else {
        return ReadConnectors {
            connectors: None,
            diagnostics,
        };
    };
    let mut shapes = Shapes::new();
    let types = Types::read(document, &mut shapes);
    shapes.share();
    let mut reader = Reader {
        document,
        limits,
        version: link.version,
        shapes,
        types,
        sources: Vec::new(),
        diagnostics,
    };
    reader.read_sources(&link);
    let connectors = reader.read_connectors(&link);
    let fails = reader
        .diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error);
    let connectors = (!fails).then_some(Connectors {
        version: link.version,
        sources: reader.sources.into_iter().flatten().collect(),
        connectors,
    });
    ReadConnectors {
        connectors,
        diagnostics: reader.diagnostics,
    }
}

struct Reader<'d> {
    document: &'d Document,
    limits: &'d ParseLimits,
    version: Version,
    shapes: Shapes,
    types: Types<'d>,
    /// Sources that were read; `None` where one has errors, so that rows stay those of the document.
    sources: Vec<Option<ConnectorSource>>,
    diagnostics: Vec<Diagnostic>,
}

/// Where a connector stands.
#[derive(Clone, Copy)]
struct Place<'d> {
    parent: &'d TypeDefinition,
    field: Option<&'d FieldDefinition>,
    root: Option<OperationKind>,
}

impl<'d> Reader<'d> {
    fn report(&mut self, span: Span, message: impl Into<String>) {
        let source = self.document.source_id();
        let diagnostic = Diagnostic::error(INVALID_CONNECTOR, message).label(source, span, "");
        self.diagnostics.push(diagnostic);
    }
    fn directives(&self, list: List<Directive>, name: &str) -> Vec<Directive> {
        let all = self.document[list].iter();
        all.filter(|directive| self.document.name(directive.name) == name)
            .copied()
            .collect()
    }

    fn read_sources(&mut self, link: &Link) {
        for definition in &self.document.definitions {
            let Definition::Schema(schema) = definition else {
                continue;
            };
            for directive in self.directives(schema.directives, &link.source) {
                let source = self.source(directive);
                self.sources.push(source);
            }
        }
    }

    fn source(&mut self, directive: Directive) -> Option<ConnectorSource> {
        let mut arguments = Arguments::of_directive(self.document, directive, "`@source`");
        let name = arguments.take("name");
        let http = arguments.take("http");
        let response = self.response_parts(&mut arguments, None);
        arguments.finish(self);
        let name = self.required_text(name, directive.span, "@source", "name")?;
        let before = self.sources.iter().flatten();
        if before.into_iter().any(|source| source.name == name) {
            let message = format!("there are two sources with the name `{name}`");
            self.report(directive.span, message);
        }
        let Some(http) = http else {
            self.report(directive.span, "`@source` needs `http`");
            return None;
        };
        let (base, request) = self.source_http(&http)?;
        Some(ConnectorSource {
            name,
            span: directive.span,
            base,
            request,
            response,
        })
    }

    fn read_connectors(&mut self, link: &Link) -> Vec<Connector> {
        let mut connectors = Vec::new();
        let document = self.document;
        for definition in &document.definitions {
            let Definition::Type(parent) = definition else {
                continue;
            };
            let place = Place {
                parent,
                field: None,
                root: self.types.root(document.name(parent.name)),
            };
            for directive in self.directives(parent.directives, &link.connect) {
                connectors.extend(self.connector(directive, place));
            }
            let TypeDefinitionKind::Object { fields, .. } = parent.kind else {
                continue;
            };
            for field in &document[fields] {
                let place = Place {
                    field: Some(field),
                    ..place
                };
                for directive in self.directives(field.directives, &link.connect) {
                    connectors.extend(self.connector(directive, place));
                }
            }
        }
        connectors
    }

    fn connector(&mut self, directive: Directive, place: Place<'d>) -> Option<Connector> {
        let document = self.document;
        let mut arguments = Arguments::of_directive(document, directive, "`@connect`");
        let source = arguments.take("source");
        let http = arguments.take("http");
        let selection = arguments.take("selection");
        let entity = arguments.take("entity");
        let batch = arguments.take("batch");
        // A name for logs; nothing is made of it here.
        arguments.take("id");
        let response = self.response_parts(&mut arguments, Some(place));
        arguments.finish(self);
        let source = source.and_then(|value| self.source_row(&value));
        let has_base = source.is_some();
        let http = match http {
            Some(value) => self.connector_http(&value, place, has_base),
            None => {
                if !self.version.has_one_syntax() {
                    let message = format!("`@connect` without `http` needs {}", Version::V0_4);
                    self.report(directive.span, message);
                }
                None
            }
        };
        let entity = entity.is_some_and(|value| self.is_entity(&value, place));
        let batch_size_max = batch.and_then(|value| self.batch_size(&value, place));
        let Some(selection) = selection else {
            self.report(directive.span, "`@connect` needs `selection`");
            return None;
        };
        let mut environment = self.response_environment("`selection`", Some(place));
        let target = self.target(place, &mut environment.shapes);
        environment.target = Some(target);
        let selection = self.mapping(&selection, &environment)?;
        let parent = document.name(place.parent.name);
        let coordinate = match place.field {
            Some(field) => format!("{parent}.{}", document.name(field.name)),
            None => parent.to_owned(),
        };
        Some(Connector {
            coordinate,
            span: directive.span,
            source,
            http,
            selection,
            entity,
            batch_size_max,
            response,
        })
    }

    fn source_row(&mut self, value: &Value) -> Option<usize> {
        let name = self.text(value, "`source`")?.text;
        let is_named = |source: &Option<ConnectorSource>| {
            source.as_ref().is_some_and(|source| source.name == name)
        };
        let row = self.sources.iter().position(is_named);
        // A source with errors was reported.
        if row.is_none() && self.sources.iter().all(Option::is_some) {
            let shown = ogive_base::bounded(&name, 60);
            self.report(value.span, format!("there is no source `{shown}`"));
        }
        row
    }

    fn is_entity(&mut self, value: &Value, place: Place<'_>) -> bool {
        let entity = self.boolean(value, "`entity`").unwrap_or(false);
        if entity && (place.root != Some(OperationKind::Query) || place.field.is_none()) {
            let message = "`entity: true` is for fields of the query type only";
            self.report(value.span, message);
        }
        entity
    }

    fn batch_size(&mut self, value: &Value, place: Place<'_>) -> Option<u32> {
        if place.field.is_some() {
            self.report(value.span, "`batch` is for connectors of types only");
        }
        self.needs(Version::V0_2, value.span, "`batch`");
        let mut batch = Arguments::of_object(self, value, "`batch`")?;
        let size = batch.take("maxSize");
        batch.finish(self);
        let size = size?;
        let number = self.document.text(size.span).parse::<u32>().ok();
        let number = number.filter(|number| *number > 0);
        if number.is_none() {
            self.report(size.span, "`maxSize` has to be a whole number from 1 on");
        }
        number
    }

    fn response_parts(
        &mut self,
        arguments: &mut Arguments<'d>,
        place: Option<Place<'d>>,
    ) -> ResponseParts {
        let mut parts = ResponseParts::default();
        if let Some(value) = arguments.take("isSuccess") {
            self.needs(Version::V0_3, value.span, "`isSuccess`");
            let environment = self.response_environment("`isSuccess`", place);
            parts.is_success = self.mapping(&value, &environment.expecting(Kinds::BOOL));
        }
        let Some(errors) = arguments.take("errors") else {
            return parts;
        };
        self.needs(Version::V0_2, errors.span, "`errors`");
        let Some(mut errors) = Arguments::of_object(self, &errors, "`errors`") else {
            return parts;
        };
        if let Some(value) = errors.take("message") {
            let environment = self.response_environment("`errors.message`", place);
            let kinds = Kinds::STRING.or(Kinds::NULL);
            parts.message = self.mapping(&value, &environment.expecting(kinds));
        }
        if let Some(value) = errors.take("extensions") {
            let environment = self.response_environment("`errors.extensions`", place);
            let kinds = Kinds::OBJECT.or(Kinds::NULL);
            parts.extensions = self.mapping(&value, &environment.expecting(kinds));
        }
        errors.finish(self);
        parts
    }

    // Environments.

    fn request_environment(&mut self, name: &'static str, place: Option<Place<'d>>) -> Environment {
        let environment = Environment::request(name, self.shapes.clone());
        self.with_place(environment, place)
    }
    fn response_environment(
        &mut self,
        name: &'static str,
        place: Option<Place<'d>>,
    ) -> Environment {
        let environment = Environment::response(name, self.shapes.clone());
        self.with_place(environment, place)
    }
    /// Adds what a place has: arguments, the parent object, references.
    fn with_place(
        &mut self,
        mut environment: Environment,
        place: Option<Place<'d>>,
    ) -> Environment {
        environment.diagnostics_max = self.limits.diagnostics_max;
        let Some(place) = place else {
            return environment;
        };
        let parent = self.types.named(self.document.name(place.parent.name));
        if let Some(field) = place.field {
            let arguments = &self.document[field.arguments];
            if !arguments.is_empty() {
                let shape = self
                    .types
                    .arguments(self.document, arguments, &mut environment.shapes);
                environment.set(Variable::Args, shape);
            }
        }
        if place.root.is_none() {
            environment.set(Variable::This, parent);
            if place.field.is_none() && self.version >= Variable::Batch.since() {
                let batch = environment.shapes.add(Shape::List(parent));
                environment.set(Variable::Batch, batch);
            }
        }
        environment
    }
    /// The type that a selection is for: of a connector on a type also a list of it, for a batch.
    fn target(&self, place: Place<'d>, shapes: &mut Shapes) -> ShapeId {
        match place.field {
            Some(field) => self.types.reference(self.document, field.ty, shapes),
            None => {
                let parent = self.types.named(self.document.name(place.parent.name));
                shapes.add(Shape::Each(parent))
            }
        }
    }
}
