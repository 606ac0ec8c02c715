//! The seam to the transport: answers requests and subscriptions of one event subgraph.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use ogive_base::FastMap;
use ogive_execute::{EventStream, EventStreamFuture, Failure, SubgraphResponse, TransportFuture};
use ogive_failure::{ErrorCode, codes};
use ogive_federation::{Broker, EventAction, SubgraphId, Supergraph};
use ogive_schema::OperationKind;
use ogive_syntax::ast::Field;
use ogive_transport::{ServiceRequest, SubgraphService};
use serde_json::{Map, Value};

use crate::{
    answer::answer,
    channels::{ChannelKey, OutgoingError},
    events::{BrokerEvents, Source, Subscribed},
    failure::{failed, invalid_argument},
    fields::{BoundField, EventFields},
    provider::Provider,
    queue::Feed,
    request::EventRequest,
    settings::Settings,
    template::Template,
};

/// When the server forgets a durable position that depends on arguments, and that nobody hears.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// The brokers of a configuration.
#[derive(Debug)]
pub struct Brokers {
    providers: FastMap<(&'static str, Box<str>), Arc<Provider>>,
    settings: Settings,
}

impl Brokers {
    /// Knows these brokers. Nothing is connected before somebody needs it.
    ///
    /// # Errors
    ///
    /// If the thread that drives them cannot be started.
    pub fn new(settings: Settings) -> Result<Brokers, String> {
        let mut providers = FastMap::default();
        for provider in &settings.providers {
            let key = (provider.broker.name(), provider.id.clone());
            providers.insert(key, Provider::get(provider)?);
        }
        Ok(Brokers {
            providers,
            settings,
        })
    }
    fn provider(&self, broker: Broker, id: &str) -> Option<&Arc<Provider>> {
        self.providers.get(&(broker.name(), id.into()))
    }
    /// Whether there is a broker of that name.
    pub fn knows(&self, broker: Broker, id: &str) -> bool {
        self.provider(broker, id).is_some()
    }
}

/// Stands in for one event subgraph.
pub struct EventService {
    name: Box<str>,
    fields: EventFields,
    brokers: Arc<Brokers>,
}

impl fmt::Debug for EventService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventService")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl EventService {
    /// The service of one subgraph; `None` if it is bound to no broker.
    pub fn new(
        supergraph: &Supergraph,
        subgraph: SubgraphId,
        brokers: &Arc<Brokers>,
    ) -> Option<EventService> {
        supergraph
            .events
            .iter()
            .find(|field| field.subgraph == subgraph)?;
        let fields = EventFields::new(supergraph, subgraph);
        Some(EventService {
            name: supergraph.subgraphs[subgraph].name.clone(),
            fields,
            brokers: Arc::clone(brokers),
        })
    }
    fn error(&self, code: ErrorCode, what: &str, detail: impl Into<String>) -> Failure {
        failed(&self.name, code, what, detail)
    }
    fn unreadable(&self, why: impl Into<String>) -> Failure {
        self.error(codes::EVENT_BROKER_ERROR, "the request cannot be read", why)
    }
    /// What a root field is bound to, where that is, and its arguments.
    fn bound<'s>(
        &'s self,
        asked: &EventRequest,
        kind: OperationKind,
        field: &Field,
    ) -> Result<Bound<'s>, Failure> {
        let name = asked.document.name(field.name);
        let bound = self.fields.get(kind, name);
        let bound =
            bound.ok_or_else(|| self.unreadable(format!("`{name}` is bound to no broker")))?;
        let provider = self
            .brokers
            .provider(bound.broker, &bound.provider)
            .ok_or_else(|| {
                let (broker, id) = (bound.broker.name(), &bound.provider);
                let detail = format!("`events.providers.{broker}` has no `{id}`");
                self.error(
                    codes::EVENT_PROVIDER_UNKNOWN,
                    "its broker is not configured",
                    detail,
                )
            })?;
        let mut arguments = asked.arguments(field);
        bound.complete(&mut arguments);
        let names: Result<Vec<Box<str>>, String> = bound
            .channels
            .iter()
            .map(|channel| channel.name(&arguments, bound.broker))
            .collect();
        let names = names.map_err(invalid_argument)?;
        Ok(Bound {
            field: bound,
            provider,
            arguments,
            names,
        })
    }
    async fn answered(&self, asked: ServiceRequest<'_>) -> Result<SubgraphResponse, Failure> {
        let kind = if asked.request.idempotent {
            OperationKind::Query
        } else {
            OperationKind::Mutation
        };
        let request =
            EventRequest::read(&asked.request.body).map_err(|why| self.unreadable(why))?;
        // Either all of them can be asked, or none is.
        for field in request.fields() {
            if request.document.name(field.name) != "__typename" {
                self.bound(&request, kind, &field)?;
            }
        }
        let mut bodies = Vec::new();
        for field in request.fields() {
            if request.document.name(field.name) == "__typename" {
                continue;
            }
            // One after the other: mutations are serial.
            bodies.push(self.field(&request, kind, &field, &asked).await?);
        }
        Ok(SubgraphResponse {
            status: 200,
            body: merged(bodies).into(),
        })
    }
    async fn field(
        &self,
        request: &EventRequest,
        kind: OperationKind,
        field: &Field,
        asked: &ServiceRequest<'_>,
    ) -> Result<Vec<u8>, Failure> {
        let bound = self.bound(request, kind, field)?;
        let name = bound.names.first().cloned().unwrap_or_default();
        let payload = Bytes::from(Value::Object(bound.arguments.clone()).to_string());
        let (provider, within) = (bound.provider, early(asked.within));
        let of = &bound.field.returns;
        match bound.field.action {
            EventAction::Publish => {
                let published = provider.publish(&name, payload, within).await;
                if let Err(error) = &published {
                    tracing::warn!(subgraph = &*self.name, %error, "an event was not published");
                }
                let result = serde_json::json!({ "success": published.is_ok() });
                Ok(answer(request, &self.fields, field, of, &result))
            }
            EventAction::Request => {
                let answered = provider.request(&name, payload, within).await;
                let answered = answered.map_err(|error| {
                    let what = match error {
                        OutgoingError::Away(_) => "the broker cannot be reached",
                        OutgoingError::Late => "nobody answered in time",
                        OutgoingError::Refused(_) => "nobody answered",
                    };
                    self.error(codes::EVENT_BROKER_ERROR, what, error.to_string())
                })?;
                if answered.len() > asked.bytes_max {
                    return Err(self.error(
                        codes::EVENT_MALFORMED,
                        "the answer is too large",
                        answered.len().to_string(),
                    ));
                }
                let value: Value = serde_json::from_slice(&answered).map_err(|error| {
                    self.error(
                        codes::EVENT_MALFORMED,
                        "the answer is no JSON",
                        error.to_string(),
                    )
                })?;
                Ok(answer(request, &self.fields, field, of, &value))
            }
            EventAction::Subscribe => Err(self.unreadable("a subscription is no request")),
        }
    }
    async fn opened<'a>(&'a self, asked: ServiceRequest<'a>) -> Result<EventStream<'a>, Failure> {
        let request =
            EventRequest::read(&asked.request.body).map_err(|why| self.unreadable(why))?;
        let fields = request.fields();
        let [field] = fields.as_slice() else {
            return Err(self.unreadable("a subscription has one root field"));
        };
        let bound = self.bound(&request, OperationKind::Subscription, field)?;
        let filter = bound
            .field
            .filter
            .as_ref()
            .map(|filter| filter.with(&bound.arguments));
        let condition = filter.transpose().map_err(invalid_argument)?;
        let provider = Arc::clone(bound.provider);
        let feed = Arc::new(Feed::new(self.brokers.settings.queue));
        let mut heard = Subscribed::new(Arc::clone(&feed));
        for key in self.keys(&bound) {
            heard.add(provider.hear(&key, &feed, self.brokers.settings.durable_max));
        }
        match tokio::time::timeout(early(asked.within), heard.accepted()).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => {
                return Err(self.error(
                    codes::SUBREQUEST_STREAM_REFUSED,
                    "the broker refused the subscription",
                    why,
                ));
            }
            Err(_) => {
                let why = provider.last_trouble();
                return Err(self.error(
                    codes::SUBREQUEST_STREAM_LOST,
                    "the broker cannot be reached",
                    why,
                ));
            }
        }
        let source = Source {
            name: &self.name,
            fields: &self.fields,
            of: &bound.field.returns,
            field: *field,
            request,
            condition,
            bytes_max: asked.bytes_max,
            patience: provider.patience(),
            on_loss: asked.on_loss,
        };
        Ok(Box::pin(BrokerEvents::new(heard, source, provider)))
    }
    fn keys(&self, bound: &Bound<'_>) -> Vec<ChannelKey> {
        let Some(consumer) = &bound.field.consumer else {
            let mut names = bound.names.clone();
            names.sort_unstable();
            names.dedup();
            return names.into_iter().map(ChannelKey::Named).collect();
        };
        let instance = &self.brokers.settings.instance;
        let seconds = consumer
            .inactive_seconds
            .map(|seconds| Duration::from_secs(seconds.into()));
        let mut channels = bound.field.channels.iter();
        // Whatever clients ask for may be another one.
        let by_arguments = channels.any(Template::has_arguments);
        vec![ChannelKey::Durable {
            stream: consumer.stream.clone(),
            consumer: durable_name(&consumer.consumer, &bound.names, instance).into(),
            subjects: bound.names.clone(),
            inactive: seconds.or(by_arguments.then_some(FORGOTTEN_AFTER)),
        }]
    }
}

/// A root field of a request.
struct Bound<'s> {
    field: &'s BoundField,
    provider: &'s Arc<Provider>,
    arguments: Map<String, Value>,
    names: Vec<Box<str>>,
}

/// A bit less: whoever asks gives up then, and would not learn why.
fn early(within: Duration) -> Duration {
    within - within / 16
}

/// The name of a durable position: another one for other subjects and other processes.
fn durable_name(consumer: &str, subjects: &[Box<str>], instance: &str) -> String {
    // FNV-1a, so that it is the same in every version.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let texts = subjects.iter().map(|subject| &**subject).chain([instance]);
    for text in texts {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{consumer}-{hash:016x}")
}

/// The answers to several root fields as one.
fn merged(bodies: Vec<Vec<u8>>) -> Vec<u8> {
    if bodies.len() == 1 {
        return bodies.into_iter().next().unwrap_or_default();
    }
    let mut data = Map::new();
    let mut errors = Vec::new();
    for body in bodies {
        let Ok(Value::Object(mut body)) = serde_json::from_slice(&body) else {
            continue;
        };
        if let Some(Value::Object(part)) = body.remove("data") {
            data.extend(part);
        }
        if let Some(Value::Array(part)) = body.remove("errors") {
            errors.extend(part);
        }
    }
    let mut whole = serde_json::json!({ "data": data });
    if !errors.is_empty() {
        whole["errors"] = Value::Array(errors);
    }
    whole.to_string().into_bytes()
}

impl SubgraphService for EventService {
    fn send<'a>(&'a self, asked: ServiceRequest<'a>) -> TransportFuture<'a> {
        Box::pin(self.answered(asked))
    }
    fn fingerprint(&self, body: &[u8]) -> Option<String> {
        let request = EventRequest::read(body).ok()?;
        let Settings {
            queue, instance, ..
        } = &self.brokers.settings;
        let mut out = format!("{queue:?} {instance}");
        for field in request.fields() {
            let name = request.document.name(field.name);
            out.push_str(&self.fields.describe(name)?);
            let bound = self.fields.get(OperationKind::Subscription, name)?;
            // One that is kept is the same object.
            let provider = self.brokers.provider(bound.broker, &bound.provider);
            out.push_str(&format!("{:?} ", provider.map(Arc::as_ptr)));
        }
        Some(out)
    }
    fn subscribe<'a>(&'a self, asked: ServiceRequest<'a>) -> EventStreamFuture<'a> {
        Box::pin(self.opened(asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_differ_by_subjects_and_processes() {
        let name = |subject: &str, instance: &str| durable_name("c", &[subject.into()], instance);
        assert_eq!(name("a", "x"), name("a", "x"));
        assert_ne!(name("a", "x"), name("b", "x"));
        assert_ne!(name("a", "x"), name("a", "y"));
        assert_ne!(name("ax", ""), name("a", "x"));
    }
}
