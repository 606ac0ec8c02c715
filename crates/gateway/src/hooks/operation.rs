//! The stages of one operation: around all of it (`SupergraphRequest`, `SupergraphResponse`), and around the execution of its
//! plan.

use std::{
    cell::{Cell, OnceCell},
    collections::BTreeMap,
    rc::Rc,
    sync::Arc,
};

use http::{HeaderMap, Response, header, request::Parts};
use ogive_edge::{error::RequestError, media::Media};
use ogive_hooks::{
    Body, Exchange, Stage,
    entries::{OPERATION_KIND, OPERATION_NAME, REQUIRED_POLICIES},
};
use ogive_plan::{OperationKind, apollo};
use ogive_server::ResponseBody;

use super::{
    body::{self, break_response},
    condition::StageCondition,
    message_batch::MessageBatch,
    run::{HookRun, OperationHooks},
    settings::may_be_told,
    values::StageValues,
};
use crate::{
    gateway::{Gateway, Serving},
    operation::OperationInput,
    plan::plan_fairly,
    policies::asked_for,
    prepare::{Means, Prepared, prepare_fairly},
    respond::refusal::refused,
    schema::operation::PlannedOperation,
    shared::{
        context::{OperationContext, RequestContext},
        open_response::goes_on,
        operation_values::OperationValues,
    },
    subscribe::format::whole,
};

impl Gateway {
    /// One operation of which a coprocessor is told.
    pub(crate) async fn run_hooked(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        run: &HookRun<'_>,
        mut input: OperationInput<'_>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let media = input.media;
        // What is one event of a stream is framed after everybody has looked at it.
        if let Media::Stream(_) = media {
            input.media = Media::Json;
        }
        let is_told = run.looks_at_body(Stage::ExecutionRequest);
        let mut operation = OperationHooks {
            run,
            own: Rc::new(run.entries.borrow().of_operation().into()),
            body: None,
            headers: OnceCell::new(),
            batch: MessageBatch::default(),
            is_executed: Cell::new(false),
        };
        let answer = self.coprocessed(serving, context, (&mut operation, is_told), input);
        let answer = Box::pin(answer).await;
        operation.hand_over();
        // Once, of what leaves, whatever has become of it on the way.
        if run.looks_at_errors() {
            let has_errors = answer
                .as_ref()
                .map_or(true, |response| run.sees_errors(response));
            run.has_errors.set(run.has_errors.get() || has_errors);
        }
        Ok(reframed(answer?, media))
    }

    /// The same, before it is framed.
    async fn coprocessed(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        (operation, is_told): (&mut OperationHooks<'_>, bool),
        mut input: OperationInput<'_>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let run = operation.run;
        let mut changed = None;
        if run.is_on(Stage::SupergraphRequest) {
            let told = self.supergraph_request(serving, context, operation, &mut input);
            match told.await? {
                Some(Changed::Parts(parts)) => changed = Some(parts),
                Some(Changed::Ended(response)) => return Ok(*response),
                None => {}
            }
        }
        let parts = changed.as_deref().unwrap_or(context.parts);
        operation.body = is_told.then(|| body::of_request(input.request).into());
        let within = RequestContext { parts, ..context };
        let inner = input.media;
        let answer = Box::pin(self.run_operation(serving, within, Some(operation), input));
        let mut response = match answer.await {
            Ok(response) => response,
            Err(error) if !run.is_on(Stage::SupergraphResponse) => return Err(error),
            Err(error) => {
                // Somebody may make another answer of it.
                let untold = RequestContext {
                    hooks: None,
                    ..context
                };
                refused(untold, &error, inner)
            }
        };
        let told = Some(&*operation);
        if operation.is_executed.get() {
            run.answered(told, Stage::ExecutionResponse, &mut response)
                .await?;
        }
        run.answered(told, Stage::SupergraphResponse, &mut response)
            .await?;
        Ok(response)
    }

    /// Tells of a request of GraphQL, and takes over what is said of it.
    async fn supergraph_request(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        operation: &OperationHooks<'_>,
        input: &mut OperationInput<'_>,
    ) -> Result<Option<Changed>, RequestError> {
        let (stage, run) = (Stage::SupergraphRequest, operation.run);
        let headers = &context.parts.headers;
        if let Some(looking) = self.find_shared(serving, headers, input.request) {
            looking.await;
        }
        let register = self.resolve(serving, headers, input.request)?;
        self.look_ahead(serving, context, operation, input).await?;
        let request = &mut *input.request;
        let body = run.looks_at_body(stage).then(|| body::of_request(request));
        let mut exchange = Exchange {
            body: body.map(|body| Body::Json(body.into())),
            ..run.exchange(stage)
        };
        let check = |exchange: &Exchange| {
            let body = exchange.body.as_ref().filter(|_| exchange.changes.body);
            body.map(body::ReplyRequest::read).transpose()
        };
        let said = run.ask(Some(operation), &mut exchange, check).await?;
        let changed = match exchange.changes.ending.take() {
            Some(ending) => Some(Changed::Ended(Box::new(break_response(*ending, true)))),
            None => exchange.changes.headers.then(|| {
                let mut parts = context.parts.clone();
                parts.headers = without_connection(Arc::unwrap_or_clone(exchange.headers));
                Changed::Parts(Box::new(parts))
            }),
        };
        if let Some(said) = said.flatten() {
            // The hash is that of what the client has sent, and is known once what became of it has proved valid.
            if register.is_some() && said.query != request.query {
                request.original = Some(request.query.as_str().into());
            }
            if !said.asks_as(request) {
                // What was found out of it is so no more.
                let mut own = operation.own.borrow_mut();
                own.remove(OPERATION_NAME);
                own.remove(OPERATION_KIND);
            }
            said.apply(request);
        }
        request.resolved = Some(Box::new(register));
        Ok(changed)
    }

    /// Leaves in the context what an operation is called and which policies it asks for, if anybody looks at that before it is
    /// prepared. What is found out is kept, so nothing is done twice; what cannot be prepared is refused where it always is,
    /// unless that could end otherwise the next time: nobody is to pass by a stage unseen because there was no room to look.
    async fn look_ahead(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        operation: &OperationHooks<'_>,
        input: &OperationInput<'_>,
    ) -> Result<(), RequestError> {
        let (run, stage) = (operation.run, Stage::SupergraphRequest);
        let has_script = run.scripts_at(stage).is_some() && run.uses_context;
        let state = &serving.state;
        let mut restrictions = state.supergraph.restrictions.requirements.iter();
        let has_policies = restrictions.any(|restriction| restriction.policies.is_some());
        let looking = Looking::at(run, stage);
        let asks_policies = has_policies && (has_script || looking.sees_policies);
        if !asks_policies && !looking.sees_operation {
            return Ok(());
        }
        let exchange = run.exchange(stage);
        let may_be_told = |knows_operation| {
            let told = looking.conditions.iter().any(|when| {
                let values = StageValues {
                    run,
                    operation: Some(operation),
                    exchange: &exchange,
                    names: &when.names,
                };
                may_be_told(when, &values, knows_operation)
            });
            told || has_script
        };
        if !may_be_told(false) {
            return Ok(());
        }
        let means = Means {
            offload: &self.offload,
            share: &context.worker.share,
            memory: &input.memory,
        };
        let mut request = input.request.clone();
        let prepared = Box::pin(prepare_fairly(state, &mut request, means)).await;
        let Some((prepared, permit)) = seen(prepared)? else {
            return Ok(());
        };
        operation.note_operation(&prepared);
        if !asks_policies || !may_be_told(true) {
            return Ok(());
        }
        let asking = OperationContext::new(&context.parts.headers)
            .asked_by(context.identity.caller().ok().flatten())
            .of_client(context.identity.client);
        let asked = OperationValues {
            context: &asking,
            operation: &prepared.operation,
            observe: &serving.options.observe,
        };
        let planned = plan_fairly(state, &asked, means, permit);
        if let Some((planned, _)) = seen(Box::pin(planned).await)? {
            let asked = asked_for(&planned.plan.requirements);
            let undecided: BTreeMap<&str, ()> = asked.into_iter().map(|p| (p, ())).collect();
            if !undecided.is_empty() {
                operation.note(REQUIRED_POLICIES, &undecided);
            }
        }
        Ok(())
    }
}

/// Who looks at what an operation is, or at the policies that it asks for, before it is prepared.
struct Looking<'a> {
    /// For which requests.
    conditions: Vec<&'a StageCondition>,
    sees_operation: bool,
    sees_policies: bool,
}

impl<'a> Looking<'a> {
    fn at(run: &'a HookRun<'_>, stage: Stage) -> Self {
        let told = run.at(stage).map(|settings| {
            let sees = settings.sees(REQUIRED_POLICIES);
            (&settings.when, settings.when.looks_at_operation(), sees)
        });
        let called = run.components_at(stage).map(|of| {
            let (when, permitted) = (of.when(stage), &of.component.options().permissions);
            let sees = permitted.knows(REQUIRED_POLICIES) || when.looks_at(REQUIRED_POLICIES);
            (when, when.looks_at_operation(), sees)
        });
        let mut looking = Looking {
            conditions: Vec::new(),
            sees_operation: false,
            sees_policies: false,
        };
        let all = told.into_iter().chain(called);
        for (when, operation, policies) in all.filter(|(_, one, other)| *one || *other) {
            looking.conditions.push(when);
            looking.sees_operation |= operation;
            looking.sees_policies |= policies;
        }
        looking
    }
}

/// What was found out of an operation; `None` if it will be refused for the same again.
fn seen<T>(found: Result<T, RequestError>) -> Result<Option<T>, RequestError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code().is_transient() || error.status >= 500 => Err(error),
        Err(_) => Ok(None),
    }
}

/// What became of a request at a stage.
enum Changed {
    /// It goes on with this head.
    Parts(Box<Parts>),
    /// It ends.
    Ended(Box<Response<ResponseBody>>),
}

impl OperationHooks<'_> {
    /// Leaves its name and kind in the context.
    fn note_operation(&self, prepared: &Prepared) {
        let definition = &prepared.operation.definition;
        match &definition.name {
            Some(name) => self.note(OPERATION_NAME, &prepared.operation.document.name(*name)),
            None => self.own.borrow_mut().remove(OPERATION_NAME),
        }
        self.note(OPERATION_KIND, &definition.kind.as_str());
    }

    /// The policies that were said to hold.
    pub(crate) fn policies(&self) -> Vec<Box<str>> {
        let own = self.own.borrow();
        let decided: BTreeMap<String, Option<bool>> = own
            .get(REQUIRED_POLICIES)
            .and_then(|entry| serde_json::from_str(entry.get()).ok())
            .unwrap_or_default();
        let holding = decided
            .into_iter()
            .filter(|(_, holds)| *holds == Some(true));
        holding.map(|(policy, _)| policy.into()).collect()
    }

    /// Notes what operation it is, and tells of it before it is executed. A response ends it.
    pub(crate) async fn planned(
        &self,
        headers: &HeaderMap,
        prepared: &Prepared,
        planned: &PlannedOperation,
    ) -> Result<Option<Response<ResponseBody>>, RequestError> {
        let run = self.run;
        let kind = prepared.operation.definition.kind;
        self.note_operation(prepared);
        let ended = self.execution_request(headers, planned).await?;
        self.is_executed.set(ended.is_none());
        if ended.is_none() && kind != OperationKind::Subscription {
            // What is begun is finished, and told of.
            run.memory.run();
        }
        Ok(ended)
    }

    async fn execution_request(
        &self,
        headers: &HeaderMap,
        planned: &PlannedOperation,
    ) -> Result<Option<Response<ResponseBody>>, RequestError> {
        let (run, stage) = (self.run, Stage::ExecutionRequest);
        if !run.is_on(stage) {
            return Ok(None);
        }
        let plan = run.at(stage).is_some_and(|told| told.selection.query_plan);
        let plan = plan.then(|| apollo::json_line(&planned.plan).into());
        let mut exchange = Exchange {
            headers: Arc::new(headers.clone()),
            body: self.body.clone().map(Body::Json),
            query_plan: plan,
            ..run.exchange(stage)
        };
        run.ask(Some(self), &mut exchange, |_| Ok(())).await?;
        if let Some(ending) = exchange.changes.ending.take() {
            return Ok(Some(break_response(*ending, true)));
        }
        if exchange.changes.headers {
            let headers = Arc::unwrap_or_clone(exchange.headers);
            let _ = self.headers.set(without_connection(headers));
        }
        Ok(None)
    }
}

/// What is said to be all headers of a request: what the client's connection named is about those that it sent.
pub(super) fn without_connection(mut headers: HeaderMap) -> HeaderMap {
    headers.remove(header::CONNECTION);
    headers
}

/// A response as the client reads it that reads streams only.
fn reframed(mut response: Response<ResponseBody>, media: Media) -> Response<ResponseBody> {
    let Media::Stream(stream) = media else {
        return response;
    };
    if response.status() != http::StatusCode::OK || goes_on(&response) {
        return response;
    }
    let body = whole(stream, &response.body().to_vec());
    response.body_mut().replace(body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, media.content_type());
    response
}

#[cfg(test)]
mod tests {
    use ogive_edge::error::{internal, no_memory, queue_full};

    use ogive_telemetry::codes;

    use super::*;

    #[test]
    fn nobody_passes_unseen_for_want_of_room() {
        for passing in [queue_full(), no_memory(), internal()] {
            assert_eq!(seen::<()>(Err(passing.clone())), Err(passing));
        }
        let invalid = RequestError::graphql(codes::GRAPHQL_VALIDATION_FAILED, "no");
        assert_eq!(seen::<()>(Err(invalid)), Ok(None));
        assert_eq!(seen(Ok(1)), Ok(Some(1)));
    }
}
