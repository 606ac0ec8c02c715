//! Stop 2 of 5: prepare. Comes from [`receive`](ogive_edge::receive), goes to [`plan`](crate::plan).
//!
//! A request becomes a valid operation in normal form with coerced variables. A document that was seen before is
//! found by its text and costs one look-up; any other is parsed, validated and normalised.

pub mod operation_limits;

use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwapOption;
use ogive_base::{Reservation, SourceId, bounded_name};
use ogive_edge::{
    error::{RequestError, no_subscriptions, queue_full},
    receive::{Delivery, GraphqlRequest},
};
use ogive_json::{Tree, tree};
use ogive_operation::{
    FieldRef, NormaliseLimits, Variables, coerce_variables, normalise, validate,
};
use ogive_schema::OperationKind;
use ogive_server::offload::{LIGHT_BODY, LIGHT_DOCUMENT, Offload, PlanPermit, QueueFull, Share};
use ogive_syntax::{Document, ast::OperationDefinition, parse};
use ogive_telemetry::codes;

use crate::{
    schema::{
        labels::labels_of,
        operation::{PreparedOperation, TREE_BYTES_PER_TEXT_BYTE},
        state::SchemaState,
    },
    shared::stage::Stage,
};

/// What stop 3 gets.
#[derive(Debug)]
pub struct Prepared {
    /// The operation, shared with every request for it.
    pub operation: Arc<PreparedOperation>,
    /// This request's variables.
    pub variables: Variables,
    /// Whether the operation was known before.
    pub cached: bool,
    /// Code of the limit on variables, if they exceed it and it is only measured.
    pub exceeded: Option<&'static str>,
}

/// Makes a valid operation in normal form of a request, with coerced variables.
#[derive(Debug)]
pub(crate) struct Prepare {
    pub(crate) state: Arc<SchemaState>,
    pub(crate) offload: Arc<Offload>,
}

impl Stage for Prepare {
    const NAME: &'static str = "prepare";
    const DOES: &'static str = "validate and normalise the document, coerce the variables";
}

impl Prepare {
    /// See [`prepare_fairly`].
    pub(crate) fn run<'a>(
        &'a self,
        request: &'a mut GraphqlRequest,
        share: &'a Share,
        memory: &'a Reservation,
    ) -> impl Future<Output = Result<(Prepared, Option<PlanPermit>), RequestError>> + 'a {
        prepare_fairly(
            &self.state,
            request,
            Means::of(&self.offload, share, memory),
        )
    }
}

/// As much text of a document as becomes syntax tree, about: there is a limit on tokens.
const TREE_TEXT_MAX: usize = 256 << 10;

/// The client's document is the only source its diagnostics can point into.
const DOCUMENT: SourceId = SourceId(0);

/// Prepares one request; what it takes is counted in `memory`.
pub fn prepare(
    state: &SchemaState,
    request: &GraphqlRequest,
    memory: &Reservation,
) -> Result<Prepared, RequestError> {
    prepare_with(state, request, known(state, request), memory)
}

/// Where work is done, and what counts the memory it takes.
#[derive(Clone, Copy)]
pub(crate) struct Means<'a> {
    pub(crate) offload: &'a Offload,
    /// What the worker may do by itself.
    pub(crate) share: &'a Share,
    pub(crate) memory: &'a Reservation,
}

impl<'a> Means<'a> {
    pub(crate) fn of(offload: &'a Offload, share: &'a Share, memory: &'a Reservation) -> Self {
        Means {
            offload,
            share,
            memory,
        }
    }
    /// Does work on the worker if it is light and the worker has time for it.
    pub(crate) fn spend<T>(self, is_light: bool, work: impl FnOnce() -> T) -> Option<T> {
        is_light.then(|| self.share.spend(work)).flatten()
    }
    /// Waits for the permit that an operation that is not known needs on other threads, unless it has one.
    pub(crate) async fn permit(self, own: Option<PlanPermit>) -> Result<PlanPermit, RequestError> {
        match own {
            Some(permit) => Ok(permit),
            None => (self.offload.plan_permit().await).map_err(|QueueFull| queue_full()),
        }
    }
}

/// Prepares a request. What may take long is done on other threads. The variables of the request are gone afterwards. An
/// operation that is not known may come with its permit, which it keeps until it is planned.
pub(crate) async fn prepare_fairly(
    state: &Arc<SchemaState>,
    request: &mut GraphqlRequest,
    means: Means<'_>,
) -> Result<(Prepared, Option<PlanPermit>), RequestError> {
    // Looking up a document reads all of it, so that of a large request is looked up elsewhere, too.
    if request.bytes as usize <= LIGHT_BODY {
        let found = known(state, request);
        if found.is_some() {
            let prepared = prepare_with(state, request, found, means.memory)?;
            return Ok((prepared, None));
        }
        let light = || prepare_with(state, request, None, means.memory);
        if let Some(prepared) = means.spend(is_light(&request.query), light) {
            return Ok((prepared?, None));
        }
    }
    // Boxed: keeps the common future small.
    Box::pin(prepare_elsewhere(state, request, means)).await
}

async fn prepare_elsewhere(
    state: &Arc<SchemaState>,
    request: &mut GraphqlRequest,
    means: Means<'_>,
) -> Result<(Prepared, Option<PlanPermit>), RequestError> {
    if request.bytes as usize > LIGHT_BODY {
        let only_known = |state: &_, request: &_, memory: &_| {
            let found = known(state, request)?;
            Some(prepare_with(state, request, Some(found), memory))
        };
        if let Some(prepared) = elsewhere(state, request, means, only_known).await {
            return Ok((prepared?, None));
        }
    }
    let permit = means.permit(None).await?;
    // Looked up once more: another request may have made it known while this one waited.
    let prepared = elsewhere(state, request, means, prepare).await?;
    Ok((prepared, Some(permit)))
}

/// Does work on a request on another thread; the request and the memory that the work takes come back with it.
async fn elsewhere<T: Send + 'static>(
    state: &Arc<SchemaState>,
    request: &mut GraphqlRequest,
    means: Means<'_>,
    work: impl FnOnce(&SchemaState, &GraphqlRequest, &Reservation) -> T + Send + 'static,
) -> T {
    let (state, moved) = (Arc::clone(state), std::mem::take(request));
    let memory = means.memory.beside();
    let work = means.offload.run(move || {
        let done = work(&state, &moved, &memory);
        (done, moved, memory)
    });
    let (done, moved, memory) = work.await;
    *request = moved;
    means.memory.absorb(memory);
    done
}

/// The operation of a request, if it is known.
fn known(state: &SchemaState, request: &GraphqlRequest) -> Option<Arc<PreparedOperation>> {
    let name = request.operation_name.as_deref();
    let operations = &state.operations;
    operations.get(&request.query, name, request.delivery())
}

/// Whether a document takes no longer than handing it over would. Fragments multiply what a few bytes can ask for.
fn is_light(document: &str) -> bool {
    document.len() <= LIGHT_DOCUMENT && !document.contains("...")
}

fn prepare_with(
    state: &SchemaState,
    request: &GraphqlRequest,
    found: Option<Arc<PreparedOperation>>,
    memory: &Reservation,
) -> Result<Prepared, RequestError> {
    let name = request.operation_name.as_deref();
    let (operation, cached) = match found {
        Some(operation) => (operation, true),
        None => {
            // Before it is known how large it becomes, which the limits on documents bound.
            let text = request.query.len();
            let about = text.saturating_add(text.min(TREE_TEXT_MAX) * TREE_BYTES_PER_TEXT_BYTE);
            memory.grow(about)?;
            let delivery = request.delivery();
            let operation = prepare_operation_for(state, &request.query, name, delivery)?;
            let operation = Arc::new(operation);
            memory.shrink(about);
            // Whoever keeps it has a limit of its own; this counts what nobody keeps.
            memory.grow(operation.heap_bytes())?;
            state.operations.admit(name, Arc::clone(&operation));
            (operation, false)
        }
    };
    let kind = operation.definition.kind;
    if kind == OperationKind::Subscription && !request.may_subscribe {
        return Err(no_subscriptions());
    }
    if request.read_only && kind == OperationKind::Mutation {
        return Err(RequestError {
            allow: Some("POST"),
            ..RequestError::http(
                codes::METHOD_NOT_ALLOWED,
                format!(
                    "GET is for queries only: send this {} by POST",
                    kind.as_str()
                ),
            )
        });
    }
    let exceeded = state
        .options
        .prepare
        .operation
        .check_variables(&request.variables)?;
    let variables = coerced(state, request, &operation, memory)?;
    Ok(Prepared {
        operation,
        variables,
        cached,
        exceeded,
    })
}

/// The values of the request's variables. They count in `memory`, and so does the table that they are read from, while it
/// is there.
pub fn coerced(
    state: &SchemaState,
    request: &GraphqlRequest,
    operation: &PreparedOperation,
    memory: &Reservation,
) -> Result<Variables, RequestError> {
    let text = request.variables.text().len();
    let table = text * (tree::BYTES_PER_TEXT_BYTE + 1);
    let most = state.options.request_memory.ceiling;
    // What a worker reads by itself is there for no longer than the worker takes.
    if table > most.max(LIGHT_BODY) {
        return Err(RequestError {
            status: 413,
            ..RequestError::graphql(
                codes::REQUEST_MEMORY_LIMIT,
                format!("the variables need more memory than the {most} bytes of a request"),
            )
        });
    }
    memory.grow(table)?;
    let read = request.variables.tree();
    let variables = coerce_variables(
        &state.supergraph.api,
        &operation.document,
        &operation.definition,
        read.as_ref().map(Tree::root),
        state.options.prepare.validation.suggestions,
    );
    memory.shrink(table);
    let variables = variables.map_err(|errors| {
        RequestError::diagnostics(&errors, DOCUMENT, operation.document.source())
    })?;
    let values = variables.values.iter().flatten();
    memory.grow(values.map(|value| value.len()).sum())?;
    Ok(variables)
}

/// Prepares what does not depend on the variables of one request, to be answered as a whole. Looks nothing up and keeps
/// nothing.
pub fn prepare_operation(
    state: &SchemaState,
    text: &str,
    name: Option<&str>,
) -> Result<PreparedOperation, RequestError> {
    prepare_operation_for(state, text, name, Delivery::Whole)
}

/// The same, to be answered in a given way.
pub(crate) fn prepare_operation_for(
    state: &SchemaState,
    text: &str,
    name: Option<&str>,
    delivery: Delivery,
) -> Result<PreparedOperation, RequestError> {
    let limits = &state.options.prepare;
    let parsed = parse(text, DOCUMENT, &limits.syntax);
    let refuse = |errors: &[_]| Err(RequestError::diagnostics(errors, DOCUMENT, text));
    if !parsed.errors.is_empty() {
        return refuse(&parsed.errors);
    }
    let document = parsed.document;
    let mut exceeded = Vec::new();
    limits.operation.check_document(&document, &mut exceeded)?;
    // Which operation is meant is part of the request; whether the document is valid is asked first, because a
    // document without any operation is best explained by its own error.
    let api = &state.supergraph.api;
    let errors = validate(api, &document, &limits.validation);
    if !errors.is_empty() {
        return refuse(&errors);
    }
    let definition = *select_operation(&document, name)?;
    let normalised = NormaliseLimits {
        deferral: limits.normalise.deferral || delivery == Delivery::InParts,
        ..limits.normalise
    };
    let operation = match normalise(api, &document, &definition, &normalised) {
        Ok(operation) => operation,
        Err(error) => return refuse(&[error]),
    };
    limits
        .operation
        .check_operation(api, &operation, &mut exceeded)?;
    let introspects = operation
        .fields
        .as_slice()
        .iter()
        .any(|field| matches!(field.field, FieldRef::Schema | FieldRef::Type));
    if introspects && !state.options.introspection {
        return Err(RequestError::graphql(
            codes::INTROSPECTION_DISABLED,
            "introspection is disabled: `__schema` and `__type` are not answered",
        ));
    }
    let cost = limits.list_size.map(|list_size| {
        let (schema, costs) = (&state.supergraph.schema, &state.supergraph.graph.costs);
        let settings = ogive_cost::Settings {
            list_size,
            fields: limits.prices,
            ..ogive_cost::Settings::default()
        };
        Box::new(ogive_cost::compile(schema, costs, &operation, &settings))
    });
    Ok(PreparedOperation {
        delivery,
        cost,
        facts: OnceLock::new(),
        usage: OnceLock::new(),
        labels: labels_of(&state.supergraph, &operation),
        variants: Mutex::default(),
        document,
        definition,
        operation,
        exceeded: exceeded.into(),
        planned: ArcSwapOption::empty(),
    })
}

/// `GetOperation` (specification 6.1).
fn select_operation<'d>(
    document: &'d Document,
    name: Option<&str>,
) -> Result<&'d OperationDefinition, RequestError> {
    let unknown =
        |message: String| RequestError::graphql(codes::GRAPHQL_UNKNOWN_OPERATION_NAME, message);
    let mut operations = document.operations();
    match name {
        Some(name) => operations
            .find(|o| o.name.is_some_and(|n| document.name(n) == name))
            .ok_or_else(|| {
                unknown(format!(
                    "Unknown operation named \"{}\".",
                    bounded_name(name)
                ))
            }),
        None => match (operations.next(), operations.next()) {
            (Some(only), None) => Ok(only),
            (Some(_), Some(_)) => Err(unknown(
                "Must provide operation name if query contains multiple operations.".into(),
            )),
            (None, _) => Err(unknown("Must provide an operation.".into())),
        },
    }
}
