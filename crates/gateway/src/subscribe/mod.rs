//! What follows planning for a subscription: a source that may be shared ([`sources`], [`run`]), a queue for the client
//! ([`queue`]), hooks that look at events before the client gets them ([`event_hooks`]), and an answer that comes in parts
//! ([`mod@format`]) or goes over a WebSocket ([`websocket`]).
//!
//! A subscription passes all stages before this one like any other operation, so the same limits hold. Events are
//! responses that are executed like requests of their own. Whatever ends a subscription is told to its client, by a code;
//! nothing is dropped without a word.

pub(crate) mod callback;
pub(crate) mod counts;
pub(crate) mod direct;
pub(crate) mod end;
pub(crate) mod event_hooks;
pub(crate) mod format;
pub(crate) mod hooked;
pub(crate) mod opening;
pub mod options;
pub(crate) mod owner;
pub(crate) mod plan;
pub(crate) mod queue;
pub(crate) mod rates;
pub(crate) mod run;
pub(crate) mod sender;
pub(crate) mod source_memory;
pub mod sources;
pub(crate) mod stream_requests;
pub(crate) mod streams;
pub(crate) mod upgrade;
pub(crate) mod websocket;
pub(crate) mod whole_body;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderName, HeaderValue, Response, header};
use ogive_base::Shortage;
use ogive_edge::{
    client_shares,
    error::{RequestError, no_subscriptions},
    media::{Media, StreamMedia, stream_media},
};
use ogive_execute::incremental::IncrementalForm;
use ogive_server::ResponseBody;
use ogive_telemetry::codes;

use crate::{
    charge::{OperationCost, OperationEstimate},
    execution::BoundOperation,
    gateway::{Gateway, Serving},
    hooks::{kept::KeptRun, settings::HookState},
    operation::OperationRun,
    prepare::Prepared,
    schema::operation::PlannedOperation,
    shared::open_response::OpenSubscription,
    subscribe::{
        end::{EndLine, EndLog, ending},
        event_hooks::look_at_events,
        format::EventBody,
        opening::Opening,
        owner::{Opener, expires_after, kept_apart},
        plan::{SourceIdentity, SourcePlan},
        rates::EventRates,
        run::SourceInput,
        sources::Subscriber,
    },
};

/// In the extensions of a request of which whoever made it wants the events themselves: operations over WebSockets.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubscriberSlot {
    subscriber: Arc<Mutex<Option<Subscriber>>>,
    /// Whether answers in parts are taken, too, and the form that was named for them.
    parts: Option<Option<IncrementalForm>>,
}

impl SubscriberSlot {
    /// Of whoever takes answers in parts, too.
    pub(crate) fn with_parts(form: Option<IncrementalForm>) -> Self {
        SubscriberSlot {
            parts: Some(form),
            ..SubscriberSlot::default()
        }
    }
    pub(crate) fn reads_parts(&self) -> bool {
        self.parts.is_some()
    }
    pub(crate) fn form(&self) -> Option<IncrementalForm> {
        self.parts.flatten()
    }
    fn lock(&self) -> MutexGuard<'_, Option<Subscriber>> {
        let subscriber = self.subscriber.lock();
        subscriber.unwrap_or_else(PoisonError::into_inner)
    }
    fn put(&self, subscriber: Subscriber) {
        *self.lock() = Some(subscriber);
    }
    /// The subscriber of this response.
    pub(crate) fn take<B>(&self, of: &Response<B>) -> Option<Subscriber> {
        let subscriber = self.lock().take();
        subscriber.filter(|_| of.extensions().get::<OpenSubscription>().is_some())
    }
}

impl Gateway {
    /// The stages that events pass, if anybody looks at them.
    fn hooks(&self, run: &OperationRun<'_>) -> Result<Option<KeptRun>, RequestError> {
        let told = run.context.hooks();
        let Some(told) = told.filter(|told| told.run.looks_at_parts()) else {
            return Ok(None);
        };
        // Nothing leaves past whoever looks.
        let kept = KeptRun::of(told, self, run.serving, run.worker);
        kept.map(Some).ok_or_else(no_subscriptions)
    }

    /// How the source of a subscription is opened, and the hooks that go on seeing it, if there are any.
    async fn open(
        &self,
        run: &OperationRun<'_>,
        plan: &mut SourcePlan,
    ) -> Result<(Opening, Option<KeptRun>), RequestError> {
        let told = run.context.hooks();
        let Some(told) = told.filter(|told| told.run.looks_at_fetches()) else {
            return Ok((Opening::Planned, None));
        };
        let decided = Opening::decide(told, plan, run.context, run.worker).await;
        plan.identity = decided.identity;
        if !decided.is_kept {
            return Ok((decided.opening, None));
        }
        let kept = KeptRun::of(told, self, run.serving, run.worker);
        let kept = kept.ok_or_else(no_subscriptions)?;
        Ok((decided.opening, Some(kept)))
    }

    /// Subscribes, and answers with the events.
    pub(crate) async fn subscribe(
        &self,
        run: &OperationRun<'_>,
        prepared: Prepared,
        planned: &Arc<PlannedOperation>,
        estimate: Option<OperationEstimate>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let (serving, context, worker) = (run.serving, run.context, run.worker);
        let options = serving
            .options
            .subscription
            .as_ref()
            .ok_or_else(no_subscriptions)?;
        let slot = context
            .parts
            .and_then(|parts| parts.extensions.get::<SubscriberSlot>());
        let media = stream_media(context.headers);
        if slot.is_none() && media.is_none() {
            return Err(no_stream_is_read());
        }
        let hooks = self.hooks(run)?;
        let state = &serving.state;
        let control = serving.options.demand_control.as_ref();
        let charged = OperationCost::open(control, &prepared, estimate);
        let asked = prepared.variables.values.clone();
        let bound = BoundOperation::new(state, prepared, planned, context, worker)?;
        let mut plan = SourcePlan {
            state: Arc::clone(state),
            planned: Arc::clone(planned),
            bound: bound.into_owned(),
            asked,
            charged,
            rates: EventRates::of(&serving.options),
            identity: SourceIdentity::Rules,
            hooks: serving
                .hooks
                .as_ref()
                .and_then(HookState::of_streams)
                .cloned(),
            loaded: Arc::clone(&serving.options.hooks),
        };
        let (opening, source_hooks) = self.open(run, &mut plan).await?;
        // Before anybody finds the source: whoever joins one has nothing to keep.
        let held = self
            .source_memory
            .hold(&plan.bound.operation, plan.variable_bytes())?;
        let key = options.shared.then(|| plan.key(context, worker));
        let place = self.sources.places.take(
            serving.options.counted(context.client()),
            1,
            serving.options.share_of(options.opened_max),
        );
        let place = place.map_err(|shortage| limited(shortage, "subscription"))?;
        let (mut subscriber, new) =
            self.sources
                .join(key.flatten(), plan.subgraph(), options.queue, place);
        let line = self.telemetry.access.is_some().then(EndLine::default);
        subscriber.log_end(
            line.clone()
                .map(|line| EndLog::new(Arc::clone(&self.telemetry), line)),
        );
        subscriber.expire(context.caller().and_then(expires_after));
        subscriber.watch(|queue| self.watch(run, &planned.plan, queue));
        if let Some(kept) = hooks {
            look_at_events(subscriber.hook(), kept);
        }
        if let Some(source) = new {
            let handles = self.handle_of().zip(worker.handle());
            let (gateway, worker) = handles.ok_or_else(no_subscriptions)?;
            let input = SourceInput {
                gateway,
                worker,
                _memory: held,
                opener: Opener {
                    headers: kept_apart(context.headers_to_send()),
                    caller: context.shared_caller().cloned(),
                    client: context.client(),
                },
                opening,
                hooks: source_hooks,
                reload_window: options.reload_window,
                drain_window: options.drain_window,
            };
            let running = run::run(Box::new(input), Box::new(plan), source);
            tokio::task::spawn_local(running);
        }
        let Some(media) = media.filter(|_| slot.is_none()) else {
            if let Some(slot) = slot {
                slot.put(subscriber);
            }
            let mut response = Response::new(ResponseBody::default());
            response.extensions_mut().insert(OpenSubscription);
            return Ok(ending(response, line));
        };
        let body = EventBody::new(subscriber, media, options.heartbeat);
        Ok(ending(streamed(body, media), line))
    }
}

/// Refuses a subscription that is only explained as it would be refused if it were sent, by what is known before its stream
/// is opened.
pub(crate) fn check_subscribable(serving: &Serving) -> Result<(), RequestError> {
    if serving.options.subscription.is_none() {
        return Err(no_subscriptions());
    }
    Ok(())
}

/// A response whose body is a stream.
fn streamed(body: EventBody, media: StreamMedia) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::of_events(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, Media::Stream(media).content_type());
    for (name, value) in STREAM_HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Whoever subscribes reads no stream.
fn no_stream_is_read() -> RequestError {
    RequestError {
        well_formed: false,
        ..RequestError::http(
            codes::NOT_ACCEPTABLE,
            "the answer to a subscription is a stream: accept `text/event-stream` or \
             `multipart/mixed;subscriptionSpec=1.0`, or use a WebSocket",
        )
    }
}

/// What keeps others from keeping a stream, or from holding it back until it is whole.
pub(crate) const STREAM_HEADERS: [(HeaderName, &str); 2] = [
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("x-accel-buffering"), "no"),
];

pub(crate) fn limited(shortage: Shortage, what: &str) -> RequestError {
    client_shares::refused(codes::SUBSCRIPTIONS_LIMITED, shortage, what)
}
