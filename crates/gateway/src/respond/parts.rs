//! Answers in parts (`@defer`, `@stream`): `multipart/mixed`, a part for every payload of the execution, server-sent
//! events, or messages of a WebSocket.
//!
//! The execution is the body: it goes on while the connection takes parts, and ends when the client leaves. Until its first
//! payload is there nothing is answered, so the head says what a head says of any answer.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    rc::Rc,
    sync::{Arc, OnceLock, Weak},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts};
use ogive_base::{Client, Reservation};
use ogive_edge::{
    error::RequestError,
    error_rules::ErrorRewrites,
    media::{IncrementalMedia, Media, PartFraming, StreamMedia, event_form, incremental_media},
};
use ogive_execute::incremental::{
    CompletedGroup, GroupData, GroupValues, IncrementalForm, IncrementalOutput, Payload,
    PendingGroup,
};
use ogive_identity::Caller;
use ogive_plan::Claims;
use ogive_schema::Schema;
use ogive_server::{
    ResponseBody,
    panic::contained,
    parts::{PartReceiver, PartSender, channel},
};
use ogive_stream::sse;
use ogive_telemetry::Telemetry;
use ogive_transport::FetchAdmission;

use tokio::{
    sync::Notify,
    time::{Instant, Sleep, sleep},
};

use crate::{
    admit::{operation::RateSources, subgraph_rates::FetchRates},
    execute::execute_in_parts,
    gateway::{Gateway, Serving},
    hooks::{kept::KeptRun, parts::PartOutcome, run::OperationHooks},
    identify::revocation::{Revocable, RevocationGuard, Revoked},
    operation::OperationRun,
    options::GatewayOptions,
    pending_cost::PendingCost,
    prepare::Prepared,
    respond::{add_headers, respond_with},
    schema::{
        operation::{PlannedOperation, PreparedOperation},
        state::SchemaState,
    },
    shared::{
        context::OperationContext, cost_transport::RefusedSubgraph, failures,
        open_response::FirstPart, stage_observer::StageEvent, worker::WorkerState,
    },
    subscribe::{
        SubscriberSlot,
        end::{EndLine, EndLog, ending},
        format::errors_of,
    },
};

/// So many bytes of parts are made ahead of the client. Beyond that the execution waits for it; a larger part waits alone.
const AHEAD_BYTES_MAX: usize = 1 << 20;

/// What an execution keeps that goes on behind its request.
pub(crate) struct Kept {
    media: IncrementalMedia,
    state: Arc<SchemaState>,
    prepared: Prepared,
    planned: Arc<PlannedOperation>,
    headers: HeaderMap,
    caller: Option<Arc<Caller>>,
    client: Option<Client>,
    claims: Claims,
    /// The part of the schema that the caller may see.
    view: Option<Arc<Schema>>,
    worker: Rc<WorkerState>,
    telemetry: Arc<Telemetry>,
    /// How it ends if all that was made of it is taken.
    ending: Rc<Cell<&'static str>>,
    memory: Reservation,
    /// How often something is sent on an event stream on which nothing else is.
    heartbeat: Option<Duration>,
    /// Headers that the response has anyway.
    added: HeaderMap,
    /// Subgraphs that are not asked.
    refused: Option<Vec<RefusedSubgraph>>,
    /// What is settled when all of it has left.
    settling: Option<Box<PendingCost>>,
    gateway: Option<Arc<Gateway>>,
    /// Ends it when its credential is withdrawn, if it can be.
    end: Option<(Arc<PartsEnd>, RevocationGuard)>,
    /// The stages that its parts pass, if anybody looks at them, and what is notified when the first part has left.
    hooks: Option<(KeptRun, Rc<Notify>)>,
}

/// Ends an answer from another thread.
#[derive(Default)]
struct PartsEnd {
    error: OnceLock<RequestError>,
    told: Notify,
}

impl Revocable for PartsEnd {
    fn revoke(&self, how: Revoked) {
        let (Revoked::Credential(error) | Revoked::Authorization(error)) = how;
        let _ = self.error.set(error);
        self.told.notify_one();
    }
}

impl PartsEnd {
    /// Waits until it is told to end.
    async fn error(&self) -> RequestError {
        loop {
            let told = self.told.notified();
            if let Some(error) = self.error.get() {
                return error.clone();
            }
            told.await;
        }
    }
}

/// An answer in parts that a client reads, to an operation of which something may come later.
pub(crate) struct InParts {
    media: IncrementalMedia,
    worker: Rc<WorkerState>,
    hooks: Option<KeptRun>,
}

impl InParts {
    /// `None` if nothing of it comes later, or nothing can go on behind its request.
    pub(crate) fn of(
        media: IncrementalMedia,
        run: &OperationRun<'_>,
        planned: &PlannedOperation,
        gateway: &Gateway,
    ) -> Option<Self> {
        let worker = run.worker.handle()?;
        planned.plan.deferral.as_ref()?;
        let told = run.context.hooks();
        let looks = |told: &&OperationHooks<'_>| {
            let run = told.run;
            run.looks_at_parts() || run.looks_at_fetches() || run.looks_at_errors()
        };
        let hooks = match told.filter(looks) {
            None => None,
            // Nothing leaves past whoever looks.
            Some(told) => Some(KeptRun::of(told, gateway, run.serving, run.worker)?),
        };
        Some(InParts {
            media,
            worker,
            hooks,
        })
    }
    /// Keeps what goes on behind the request.
    pub(crate) fn keep(
        self,
        run: &OperationRun<'_>,
        prepared: Prepared,
        planned: Arc<PlannedOperation>,
        (gateway, settling): (&Gateway, Option<Box<PendingCost>>),
    ) -> Kept {
        let context = run.context;
        let end = Arc::<PartsEnd>::default();
        let revocable: Weak<PartsEnd> = Arc::downgrade(&end);
        let watch = gateway.watch(run, &planned.plan, revocable);
        Kept {
            media: self.media,
            state: Arc::clone(&run.serving.state),
            prepared,
            planned,
            headers: context.headers_to_send().clone(),
            caller: context.shared_caller().cloned(),
            client: context.client(),
            claims: context.claims().clone(),
            view: context.shared_view().cloned(),
            worker: self.worker,
            telemetry: Arc::clone(&gateway.telemetry),
            ending: Rc::new(Cell::new("complete")),
            end: watch.map(|watch| (end, watch)),
            memory: run.memory.beside(),
            heartbeat: (run.serving.options.subscription.as_ref())
                .and_then(|subscription| subscription.heartbeat)
                .filter(|_| self.media.framing == PartFraming::EventStream),
            added: context.take_added(),
            refused: context.refused().map(<[_]>::to_vec),
            settling,
            gateway: gateway.handle_of(),
            hooks: self.hooks.map(|kept| (kept, Rc::default())),
        }
    }
}

/// The answer in parts that a client reads. What came over a WebSocket is answered over it.
pub(crate) fn parts_asked(
    options: &GatewayOptions,
    parts: &Parts,
    media: Media,
) -> Option<IncrementalMedia> {
    let default = options.incremental?;
    if let Some(slot) = parts.extensions.get::<SubscriberSlot>() {
        return slot.reads_parts().then(|| IncrementalMedia {
            form: slot.form().unwrap_or(default),
            is_only: false,
            framing: PartFraming::Message,
        });
    }
    match media {
        Media::Stream(StreamMedia::EventStream) => Some(IncrementalMedia {
            form: event_form(&parts.headers, default),
            is_only: false,
            framing: PartFraming::EventStream,
        }),
        Media::Stream(StreamMedia::Multipart) => None,
        _ => incremental_media(&parts.headers, default),
    }
}

/// Whether a document has a directive by which something of it may come later. One that says so in a comment or a text is
/// only taken for another operation than it is for others.
pub(crate) fn may_come_later(document: &str) -> bool {
    let is_ignored = |c: char| c.is_whitespace() || matches!(c, ',' | '\u{feff}');
    // The directive's name may be on the line after a comment.
    let comment = document.find('#').unwrap_or(document.len());
    let named = |(at, _): (usize, &str)| {
        comment < at || document[..at].trim_end_matches(is_ignored).ends_with('@')
    };
    let mut directives = ["defer", "stream"].into_iter();
    directives.any(|name| document.match_indices(name).any(named))
}

/// The first payload, and the headers that subgraphs' answers add to the response.
type First = Rc<RefCell<Option<(Payload, HeaderMap)>>>;

type Work = Pin<Box<dyn Future<Output = Result<(), RequestError>>>>;

/// Answers an operation in parts, or at once if nothing of it comes later and the client reads JSON, too.
pub(crate) async fn respond_in_parts(
    mut kept: Kept,
    media: Media,
) -> Result<Response<ResponseBody>, RequestError> {
    let incremental = kept.media;
    let form = incremental.form;
    let mut added = std::mem::take(&mut kept.added);
    let telemetry = Arc::clone(&kept.telemetry);
    let heartbeat = kept.heartbeat;
    let end = Rc::clone(&kept.ending);
    let left = kept.hooks.as_ref().map(|(_, left)| Rc::clone(left));
    let (sender, receiver) = channel(AHEAD_BYTES_MAX);
    let first: First = Rc::default();
    let mut work: Work = Box::pin(work(kept, incremental, Rc::clone(&first), sender));
    let mut ended = None;
    poll_fn(|cx| {
        if let Poll::Ready(end) = work.as_mut().poll(cx) {
            ended = Some(end);
            return Poll::Ready(());
        }
        if first.borrow().is_some() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    let is_over = ended.is_some();
    if let Some(Err(error)) = ended {
        return Err(error);
    }
    let (payload, of_subgraphs) = first.take().unwrap_or_default();
    added.extend(of_subgraphs);
    let mut response = match &payload.initial {
        Some(initial) if !payload.has_next && !incremental.is_only => {
            respond_with(initial.to_json().into(), media)
        }
        _ => {
            let line = telemetry.access.is_some().then(EndLine::default);
            let first = FirstPart::new(payload.to_json(form).into(), payload.has_next);
            let hooked = left.is_some().then(|| first.clone());
            let body = PartBody {
                framing: incremental.framing,
                start: Some(first),
                left,
                work: (!is_over).then_some(work),
                receiver,
                heartbeat: heartbeat.map(|every| (every, Box::pin(sleep(every)))),
                is_complete: false,
                end,
                end_log: line.clone().map(|line| EndLog::new(telemetry, line)),
            };
            let mut response = framed(ResponseBody::of_parts(Box::pin(body)), incremental);
            if let Some(first) = hooked {
                response.extensions_mut().insert(first);
            }
            ending(response, line)
        }
    };
    if !added.is_empty() {
        add_headers(&mut response, added, false);
    }
    Ok(response)
}

/// A response for a client that reads nothing but parts: a whole one is one part.
pub(crate) fn only_in_parts(
    whole: Response<ResponseBody>,
    incremental: IncrementalMedia,
) -> Response<ResponseBody> {
    let media = whole.headers().get(header::CONTENT_TYPE);
    if media.is_some_and(|media| media.as_bytes().starts_with(b"multipart/")) {
        return whole;
    }
    let mut json: Vec<u8> = Vec::with_capacity(whole.body().len() + 32);
    for piece in whole.body().pieces() {
        json.extend_from_slice(piece);
    }
    // What others say in its place may have white space behind it, and may be empty.
    let end = json.iter().rposition(|byte| *byte == b'}');
    json.truncate(end.unwrap_or_default());
    let last = json.iter().rfind(|byte| !byte.is_ascii_whitespace());
    if last.is_some_and(|byte| *byte != b'{') {
        json.push(b',');
    }
    json.extend_from_slice(b"\"hasNext\":false}");
    let framing = incremental.framing;
    let mut body = framing.start();
    framing.write(&mut body, &json);
    framing.end(&mut body);
    let mut response = framed(Bytes::from(body).into(), incremental);
    for (name, value) in whole.headers() {
        if *name != header::CONTENT_TYPE {
            response.headers_mut().append(name, value.clone());
        }
    }
    response
}

async fn work(
    kept: Kept,
    IncrementalMedia { form, framing, .. }: IncrementalMedia,
    first: First,
    mut sender: PartSender,
) -> Result<(), RequestError> {
    let (hooks, left) = kept.hooks.unzip();
    let hooks_run = hooks.as_ref().map(KeptRun::run);
    let told = hooks.as_ref().zip(hooks_run.as_ref());
    let told = told.map(|(hooks, run)| hooks.operation(run));
    let mut context = OperationContext::new(&kept.headers)
        .asked_by(kept.caller)
        .with_hooks(told.as_ref())
        .observed_by(kept.worker.observer())
        .told_to(&kept.telemetry)
        .counted_in(&kept.memory);
    if let Some(client) = kept.client {
        context = context.of_client(client);
    }
    context.note_decided(kept.claims);
    if let Some(view) = kept.view {
        context.note_view(view);
    }
    if let Some(refused) = kept.refused {
        context.refuse(refused);
    }
    let gateway = kept.gateway;
    let serving = gateway.as_ref().map(|gateway| gateway.serving.load_full());
    let operation = Arc::clone(&kept.prepared.operation);
    let rates = fetch_rates(gateway.as_deref(), serving.as_deref(), &context, &operation);
    let admission = rates.as_ref().map(|rates| rates as &dyn FetchAdmission);
    let end = kept.end;
    let (is_begun, pending) = (Cell::new(false), RefCell::new(BTreeMap::new()));
    let hooks_end = RefCell::new(None);
    let executed = {
        let send = async |payload: Payload, headers: Option<HeaderMap>| {
            is_begun.set(true);
            if let Some(observer) = context.observer() {
                observer.passed(&StageEvent::Part(&payload.to_json(form)));
            }
            if let Some(headers) = headers {
                note_pending(&mut pending.borrow_mut(), &payload);
                *first.borrow_mut() = Some((payload, headers));
                return true;
            }
            let json = Bytes::from(payload.to_json(form));
            let told = told.as_ref().zip(left.as_deref());
            let json = match hooked(told, json, payload.has_next).await {
                Ok(json) => json,
                Err(ended) => {
                    *hooks_end.borrow_mut() = Some(ended);
                    return false;
                }
            };
            note_pending(&mut pending.borrow_mut(), &payload);
            sender.send(framing.framed(&json).into()).await.is_ok()
        };
        let executed = execute_in_parts(
            &kept.state,
            kept.prepared,
            &kept.planned,
            &context,
            (&kept.worker, admission),
            form,
            send,
        );
        let executed = pin!(executed);
        tokio::select! {
            biased;
            executed = contained(executed) => Ok(executed),
            error = revoked(end.as_ref()) => Err(error),
        }
    };
    let rules = kept.state.options.error_rules.as_deref();
    let ended = match (hooks_end.take(), &executed) {
        (Some(end), _) => Some(("failed", end.errors(&kept.telemetry, rules))),
        (None, Err(error)) if is_begun.get() => {
            Some(("revoked", Bytes::from(error.to_json_by(rules))))
        }
        (None, _) => None,
    };
    if let Some((how, errors)) = ended {
        kept.ending.set(how);
        let last = last_payload(pending.into_inner().into_values(), form, &errors).to_json(form);
        // Whoever has left needs no last word.
        let _ = sender.send(framing.framed(&last).into()).await;
        return Ok(());
    }
    // Nothing has left if it is revoked now: it is refused.
    let executed = executed?;
    if let Some(Ok(output)) = &executed {
        context.passed(|| StageEvent::ExecuteInParts(&kept.planned, output));
    }
    let settling = (kept.settling, gateway.as_deref());
    finish(executed, settling, &kept.telemetry, sender)
}

/// The rates towards subgraphs that count the requests of an operation; `None` without a gateway or without rates.
fn fetch_rates<'a>(
    gateway: Option<&'a Gateway>,
    serving: Option<&'a Serving>,
    context: &'a OperationContext<'a>,
    operation: &'a Arc<PreparedOperation>,
) -> Option<FetchRates<'a>> {
    let (gateway, serving) = gateway.zip(serving)?;
    let sources = RateSources {
        admission: &gateway.admission,
        shared: serving.services.shared.as_deref(),
    };
    FetchRates::of(sources, &serving.options, context, operation)
}

/// The end of what was executed.
fn finish(
    executed: Option<Result<IncrementalOutput, RequestError>>,
    (settling, gateway): (Option<Box<PendingCost>>, Option<&Gateway>),
    telemetry: &Telemetry,
    sender: PartSender,
) -> Result<(), RequestError> {
    match executed {
        Some(Ok(output)) if output.is_complete => {
            if let Some(settling) = settling {
                let admission = gateway.map(|gateway| &*gateway.admission);
                settling.settle(telemetry, admission, &output);
            }
            Ok(())
        }
        Some(Err(error)) => Err(error),
        // Whoever takes what came for the whole answer would be wrong.
        Some(Ok(_)) | None => {
            sender.abort(io::Error::other("the answer is not complete"));
            Ok(())
        }
    }
}

/// Waits until an answer is to end, if it can be.
async fn revoked(end: Option<&(Arc<PartsEnd>, RevocationGuard)>) -> RequestError {
    match end {
        Some((end, _)) => end.error().await,
        None => std::future::pending().await,
    }
}

/// How a hook ends an answer at one of its parts.
enum PartEnd {
    /// With the errors of this response.
    Said(Bytes),
    /// By failing.
    Failed(RequestError),
}

impl PartEnd {
    /// The errors that the client is told, and the operator of what failed.
    fn errors(self, telemetry: &Telemetry, rules: Option<&ErrorRewrites>) -> Bytes {
        match self {
            PartEnd::Said(response) => response,
            PartEnd::Failed(error) => {
                failures::refused(telemetry, None, &error);
                error.to_json_by(rules).into()
            }
        }
    }
}

/// A part that comes later as whoever looks at it leaves it, if anybody does. The first one has to leave before.
async fn hooked(
    told: Option<(&OperationHooks<'_>, &Notify)>,
    json: Bytes,
    has_next: bool,
) -> Result<Bytes, PartEnd> {
    let Some((told, left)) = told else {
        return Ok(json);
    };
    if told.run.sent.get().is_none() {
        left.notified().await;
    }
    match Box::pin(told.part(json, (has_next, true))).await {
        Ok(PartOutcome::Sent(json)) => Ok(json),
        Ok(PartOutcome::Ended(response)) => Err(PartEnd::Said(response)),
        Err(error) => Err(PartEnd::Failed(error)),
    }
}

/// Notes what a payload announces, and what is complete with it.
fn note_pending(pending: &mut BTreeMap<u32, PendingGroup>, payload: &Payload) {
    let announced = payload.pending.iter();
    pending.extend(announced.map(|group| (group.id, group.clone())));
    for done in &payload.completed {
        pending.remove(&done.id);
    }
}

/// The last payload of an answer that ends early: what was announced and has not come is null because of the errors of
/// this response.
fn last_payload(
    pending: impl IntoIterator<Item = PendingGroup>,
    form: IncrementalForm,
    response: &[u8],
) -> Payload {
    let errors = Bytes::copy_from_slice(errors_of(response));
    let mut last = Payload::default();
    for PendingGroup { id, path, label } in pending {
        last.completed.push(CompletedGroup {
            id,
            errors: Some(errors.clone()),
        });
        if form == IncrementalForm::Repeated {
            last.incremental.push(GroupData {
                id,
                label,
                path,
                sub_path: None,
                data: GroupValues::NoObject,
                errors: Some(errors.clone()),
            });
        }
    }
    last
}

fn framed(
    body: ResponseBody,
    IncrementalMedia { form, framing, .. }: IncrementalMedia,
) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
    let media = match (framing, form) {
        (PartFraming::EventStream, _) => Media::Stream(StreamMedia::EventStream).content_type(),
        (PartFraming::Message, _) => Media::Json.content_type(),
        (PartFraming::Multipart, IncrementalForm::Repeated) => {
            HeaderValue::from_static("multipart/mixed; boundary=\"-\"; deferSpec=20220824")
        }
        (PartFraming::Multipart, IncrementalForm::Distinct) => {
            HeaderValue::from_static("multipart/mixed; boundary=\"-\"; incrementalSpec=v0.2")
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, media);
    // Nobody on the way may wait for all of it.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The body: the first part, then what comes of the work.
struct PartBody {
    framing: PartFraming,
    start: Option<FirstPart>,
    /// Notified when that has left.
    left: Option<Rc<Notify>>,
    work: Option<Work>,
    receiver: PartReceiver,
    /// Due where nothing else is sent.
    heartbeat: Option<(Duration, Pin<Box<Sleep>>)>,
    is_complete: bool,
    /// How it ends.
    end: Rc<Cell<&'static str>>,
    /// What logs its end, if anybody wants that.
    end_log: Option<EndLog>,
}

impl PartBody {
    /// Sends something if nothing else was for long.
    fn poll_heartbeat(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let Some((every, due)) = &mut self.heartbeat else {
            return Poll::Pending;
        };
        ready!(due.as_mut().poll(cx));
        due.as_mut().reset(Instant::now() + *every);
        Poll::Ready(Some(Ok(Bytes::from_static(sse::HEARTBEAT))))
    }
    /// Notes a part, or how it ended.
    fn note(&mut self, end: Option<&'static str>) {
        match (&mut self.end_log, end) {
            (Some(log), Some(end)) => log.end(end),
            (Some(log), None) => log.sent(1),
            (None, _) => {}
        }
    }
}

impl Stream for PartBody {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(first) = this.start.take() {
            this.note(None);
            if let Some(left) = &this.left {
                left.notify_one();
            }
            let mut start = this.framing.start();
            this.framing.write(&mut start, &first.json());
            return Poll::Ready(Some(Ok(start.into())));
        }
        let mut next = Pin::new(&mut this.receiver).poll_next(cx);
        if next.is_pending()
            && let Some(work) = &mut this.work
        {
            if work.as_mut().poll(cx).is_pending() {
                // A part that it made wakes the reader, so that other tasks have their turn before it is sent.
                return this.poll_heartbeat(cx);
            }
            this.work = None;
            next = Pin::new(&mut this.receiver).poll_next(cx);
        }
        match next {
            Poll::Ready(None) if !this.is_complete => {
                this.is_complete = true;
                this.note(Some(this.end.get()));
                let mut end = Vec::new();
                this.framing.end(&mut end);
                Poll::Ready((!end.is_empty()).then(|| Ok(end.into())))
            }
            Poll::Ready(Some(Err(error))) => {
                this.is_complete = true;
                this.note(Some("failed"));
                Poll::Ready(Some(Err(error)))
            }
            Poll::Ready(Some(Ok(part))) => {
                this.note(None);
                if let Some((every, due)) = &mut this.heartbeat {
                    due.as_mut().reset(Instant::now() + *every);
                }
                Poll::Ready(Some(Ok(part)))
            }
            step => step,
        }
    }
}
