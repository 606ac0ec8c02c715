//! One served subgraph: prepares a request (parse, validate, coerce variables) and executes it. Pure and
//! synchronous; sockets, delays and counters are the service's job.

use std::sync::{Arc, Mutex, PoisonError};

use ogive_base::{Diagnostic, FastMap, SourceId, diagnostic::line_column};
use ogive_operation::{ValidationLimits, validate};
use ogive_schema::OperationKind;
use ogive_syntax::{Document, Limits, ast::OperationDefinition, parse};
use serde_json::{Map, Value, json};

use crate::{
    engine::{Context, execute},
    field_fault::CoordinateFaults,
    input::{self, Values},
    model::{Model, SdlError},
    resolver::Source,
    sdl::Federation,
};

/// Documents kept parsed and validated; all are dropped when there are more.
const DOCUMENTS_MAX: usize = 4096;

/// How strict a subgraph is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Validate documents against the schema; off only for speed. Default on.
    pub validate: bool,
    /// Refuse to resolve external fields that are no key and not provided on the path. Default on.
    pub strict_external: bool,
    /// Whether to add federation machinery.
    pub federation: Federation,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            validate: true,
            strict_external: true,
            federation: Federation::Auto,
        }
    }
}

/// An answer to one GraphQL request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200, or 400 for a request that could not be executed.
    pub status: u16,
    /// The response as JSON text.
    pub body: Vec<u8>,
    /// Representations that were asked for.
    pub n_entities: usize,
    /// Whether the response has errors.
    pub has_errors: bool,
    /// Whether it was a mutation.
    pub is_mutation: bool,
}

/// A subgraph: schema, values and strictness.
#[derive(Debug)]
pub struct Subgraph {
    model: Model,
    source: Source,
    options: Options,
    documents: Mutex<FastMap<Box<str>, Arc<Prepared>>>,
}

#[derive(Debug)]
struct Prepared {
    document: Document,
    errors: Vec<Diagnostic>,
}

impl Subgraph {
    /// A subgraph from its SDL. `name` is used in messages about the SDL.
    pub fn new(
        name: &str,
        sdl: &str,
        source: Source,
        options: Options,
    ) -> Result<Subgraph, SdlError> {
        let model = Model::from_sdl(name, sdl, options.federation)?;
        Ok(Subgraph::from_model(model, source, options))
    }

    /// A subgraph over a model that was built elsewhere.
    pub fn from_model(model: Model, source: Source, options: Options) -> Subgraph {
        Subgraph {
            model,
            source,
            options,
            documents: Mutex::new(FastMap::default()),
        }
    }

    /// The type system and its federation facts.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Executes a request and returns the response as a JSON value; `null` if it is nested deeper than the JSON parser
    /// goes (128 levels).
    pub fn execute_json(
        &self,
        query: &str,
        operation_name: Option<&str>,
        variables: &Map<String, Value>,
    ) -> Value {
        let answer = self.execute(query, operation_name, variables, &FastMap::default());
        serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
    }

    /// Executes a request given as the JSON body of a POST.
    pub fn execute_body(&self, body: &[u8], faults: &CoordinateFaults) -> Answer {
        self.execute_json_body(body, faults, None)
    }

    /// Executes a request for one event of a subscription, counted from 0; queries and mutations are executed as ever.
    pub fn execute_event(&self, body: &[u8], faults: &CoordinateFaults, number: u64) -> Answer {
        self.execute_json_body(body, faults, Some(number))
    }

    /// Whether a request given as the JSON body of a POST is for a subscription.
    pub fn is_subscription(&self, body: &[u8]) -> bool {
        let Ok(Value::Object(request)) = serde_json::from_slice(body) else {
            return false;
        };
        let Some(Value::String(query)) = request.get("query") else {
            return false;
        };
        let prepared = self.prepare(query);
        let name = request.get("operationName").and_then(Value::as_str);
        let operation = get_operation(&prepared.document, name);
        operation.is_ok_and(|operation| operation.kind == OperationKind::Subscription)
    }

    fn execute_json_body(
        &self,
        body: &[u8],
        faults: &CoordinateFaults,
        event: Option<u64>,
    ) -> Answer {
        let Ok(Value::Object(mut request)) = serde_json::from_slice(body) else {
            return refused("The body must be a JSON object.", "BAD_REQUEST");
        };
        let Some(Value::String(query)) = request.remove("query") else {
            return refused("The request has no \"query\".", "BAD_REQUEST");
        };
        let operation_name = match request.remove("operationName") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(name),
            Some(_) => return refused("\"operationName\" must be a string.", "BAD_REQUEST"),
        };
        let variables = match request.remove("variables") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(variables)) => variables,
            Some(_) => return refused("\"variables\" must be an object.", "BAD_REQUEST"),
        };
        let operation_name = operation_name.as_deref();
        self.execute_operation((&query, operation_name), &variables, faults, event)
    }

    /// Executes a request.
    pub fn execute(
        &self,
        query: &str,
        operation_name: Option<&str>,
        variables: &Map<String, Value>,
        faults: &CoordinateFaults,
    ) -> Answer {
        self.execute_operation((query, operation_name), variables, faults, None)
    }

    fn execute_operation(
        &self,
        (query, operation_name): (&str, Option<&str>),
        variables: &Map<String, Value>,
        faults: &CoordinateFaults,
        event: Option<u64>,
    ) -> Answer {
        let prepared = self.prepare(query);
        if !prepared.errors.is_empty() {
            return refused_all(&prepared.document, &prepared.errors);
        }
        let document = &prepared.document;
        let operation = match get_operation(document, operation_name) {
            Ok(operation) => operation,
            Err(message) => return refused(&message, "OPERATION_RESOLUTION_FAILURE"),
        };
        if operation.kind == OperationKind::Subscription && event.is_none() {
            let message =
                "Subscriptions are served over WebSocket, server-sent events and multipart.";
            return refused(message, "BAD_REQUEST");
        }
        let schema = &self.model.schema;
        let Some(root) = schema.root(operation.kind) else {
            let message = format!(
                "Schema is not configured to execute {} operation.",
                operation.kind.as_str()
            );
            return refused(&message, "OPERATION_RESOLUTION_FAILURE");
        };
        let values = match input::coerce_variables(schema, document, operation, variables) {
            Ok(values) => values,
            Err(messages) => {
                let errors = messages.into_iter().map(
                    |message| json!({"message": message, "extensions": {"code": "BAD_USER_INPUT"}}),
                );
                return refusal(errors.collect());
            }
        };
        let event = event.unwrap_or_default();
        self.run(document, (operation, event), root, &values, faults)
    }

    fn run(
        &self,
        document: &Document,
        (operation, event): (&OperationDefinition, u64),
        root: ogive_schema::TypeId,
        variables: &Values,
        faults: &CoordinateFaults,
    ) -> Answer {
        let context = Context {
            model: &self.model,
            resolver: &self.source,
            document,
            variables,
            faults,
            strict_external: self.options.strict_external,
            event,
        };
        let answer = execute(&context, operation, root);
        let mut body = Vec::with_capacity(answer.data.len() + 16);
        body.extend_from_slice(b"{\"data\":");
        body.extend_from_slice(&answer.data);
        for (i, error) in answer.errors.iter().enumerate() {
            body.extend_from_slice(if i == 0 { b",\"errors\":[" } else { b"," });
            body.extend_from_slice(error);
        }
        if !answer.errors.is_empty() {
            body.push(b']');
        }
        body.push(b'}');
        Answer {
            status: 200,
            body,
            n_entities: answer.n_entities,
            has_errors: !answer.errors.is_empty(),
            is_mutation: operation.kind == OperationKind::Mutation,
        }
    }

    fn prepare(&self, query: &str) -> Arc<Prepared> {
        // A poisoned lock only means that another thread panicked between two complete entries.
        let documents = || {
            self.documents
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(found) = documents().get(query) {
            return found.clone();
        }
        let parsed = parse(query, SourceId(0), &Limits::default());
        let mut errors = parsed.errors;
        if errors.is_empty() && self.options.validate {
            let limits = ValidationLimits::default();
            errors = validate(&self.model.schema, &parsed.document, &limits);
        }
        let prepared = Arc::new(Prepared {
            document: parsed.document,
            errors,
        });
        let mut documents = documents();
        if documents.len() >= DOCUMENTS_MAX {
            documents.clear();
        }
        documents.insert(query.into(), prepared.clone());
        prepared
    }
}

/// `GetOperation` (specification 6.1).
fn get_operation<'d>(
    document: &'d Document,
    name: Option<&str>,
) -> Result<&'d OperationDefinition, String> {
    let mut operations = document.operations();
    match name {
        None => match (operations.next(), operations.next()) {
            (Some(operation), None) => Ok(operation),
            (None, _) => Err("Must provide an operation.".to_string()),
            _ => Err(
                "Must provide operation name if query contains multiple operations.".to_string(),
            ),
        },
        Some(name) => operations
            .find(|o| o.name.is_some_and(|n| document.name(n) == name))
            .ok_or_else(|| format!("Unknown operation named \"{name}\".")),
    }
}

fn refused(message: &str, code: &str) -> Answer {
    refusal(vec![
        json!({"message": message, "extensions": {"code": code}}),
    ])
}

fn refused_all(document: &Document, diagnostics: &[Diagnostic]) -> Answer {
    let errors = diagnostics.iter().map(|diagnostic| {
        let locations: Vec<Value> = diagnostic
            .labels
            .iter()
            .map(|label| {
                let (line, column) = line_column(document.source(), label.span.start);
                json!({"line": line, "column": column})
            })
            .collect();
        json!({
            "message": diagnostic.message,
            "locations": locations,
            "extensions": {"code": diagnostic.code},
        })
    });
    refusal(errors.collect())
}

fn refusal(errors: Vec<Value>) -> Answer {
    Answer {
        status: 400,
        body: json!({ "errors": errors }).to_string().into_bytes(),
        n_entities: 0,
        has_errors: true,
        is_mutation: false,
    }
}
