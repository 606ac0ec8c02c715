//! NATS: subjects by publish and subscribe, requests, and durable positions in streams (JetStream).
//!
//! The library connects again by itself and subscribes anew; meanwhile events may be lost, which is told. Positions in
//! streams are the server's, so they are not.

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Weak},
    task::Poll,
    time::Duration,
};

use async_nats::{
    Client, ConnectOptions, Event, Request, RequestErrorKind,
    connection::State,
    jetstream::{self, consumer::pull},
};
use bytes::Bytes;
use futures_core::Stream;
use ogive_federation::Broker;
use tokio::{
    runtime::Handle,
    sync::OnceCell,
    time::{Interval, timeout},
};

use crate::{
    channels::{ChannelKey, ChannelTable, OutgoingError, in_time},
    queue::{Channel, Delivery, Message},
    settings::{ConnectionSettings, Credentials},
    tls,
};

/// How many messages the library keeps for one subject while we look at others. More are told as lost.
const KEPT_MAX: usize = 65_536;
/// How many messages of a stream are asked for at a time.
const BATCH: usize = 64;
/// So many messages are remembered before those are forgotten that are done.
const WAITING_MAX: usize = 8 * BATCH;
/// The server is told no more often than this of what waits.
const TOLD_MIN: Duration = Duration::from_millis(50);
/// How long we wait for the sign that the server has seen a subscription, once there is a connection.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// One NATS.
pub(crate) struct Nats {
    inner: Arc<Inner>,
    runtime: Handle,
}

struct Inner {
    settings: ConnectionSettings,
    heard: Arc<ChannelTable>,
    client: OnceCell<Client>,
}

impl Nats {
    pub(crate) fn new(
        settings: ConnectionSettings,
        heard: Arc<ChannelTable>,
        runtime: Handle,
    ) -> Nats {
        let inner = Inner {
            settings,
            heard,
            client: OnceCell::new(),
        };
        Nats {
            inner: Arc::new(inner),
            runtime,
        }
    }
    /// Hears a subject or a stream until nobody wants it.
    pub(crate) fn hear(&self, key: ChannelKey, channel: Arc<Channel>) {
        let (inner, runtime) = (Arc::clone(&self.inner), self.runtime.clone());
        self.runtime.spawn(async move {
            let hearing = async {
                match inner.client().await {
                    Err(why) => channel.refuse(&why),
                    Ok(client) => match &key {
                        ChannelKey::Named(subject) => subscribe(&client, subject, &channel).await,
                        ChannelKey::Durable { .. } => {
                            follow(&inner, &client, &key, &channel, &runtime).await;
                        }
                    },
                }
                // Whoever was refused leaves.
                channel.left().await;
            };
            tokio::select! {
                // First: it may have something to give back.
                biased;
                () = hearing => {}
                () = channel.left() => {}
            }
            inner.heard.remove(&key, &channel);
        });
    }
    /// Does something on the brokers' thread.
    async fn on_runtime<T: Send + 'static>(
        &self,
        within: Duration,
        work: impl AsyncFnOnceSend<T>,
    ) -> Result<T, OutgoingError> {
        let inner = Arc::clone(&self.inner);
        let working = self.runtime.spawn(async move {
            let client = inner.client().await.map_err(OutgoingError::Away)?;
            if client.connection_state() != State::Connected {
                // Right after the start the connection is being made.
                let connecting = async {
                    while client.connection_state() == State::Pending {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                let _ = timeout(within, connecting).await;
            }
            if client.connection_state() != State::Connected {
                return Err(OutgoingError::Away(inner.heard.last_trouble()));
            }
            work.run(client).await
        });
        in_time(working, within).await
    }
    pub(crate) async fn publish(
        &self,
        subject: &str,
        payload: Bytes,
        within: Duration,
    ) -> Result<(), OutgoingError> {
        let subject = subject.to_owned();
        self.on_runtime(within, Publish { subject, payload }).await
    }
    pub(crate) async fn request(
        &self,
        subject: &str,
        payload: Bytes,
        within: Duration,
    ) -> Result<Bytes, OutgoingError> {
        let subject = subject.to_owned();
        let ask = Ask {
            subject,
            payload,
            within,
        };
        self.on_runtime(within, ask).await
    }
}

/// Work with a client, on another thread.
trait AsyncFnOnceSend<T>: Send + 'static {
    fn run(self, client: Client) -> impl Future<Output = Result<T, OutgoingError>> + Send;
}

struct Publish {
    subject: String,
    payload: Bytes,
}

impl AsyncFnOnceSend<()> for Publish {
    async fn run(self, client: Client) -> Result<(), OutgoingError> {
        let refused = |error: String| OutgoingError::Refused(error);
        let published = client.publish(self.subject, self.payload).await;
        published.map_err(|error| refused(error.to_string()))?;
        client
            .flush()
            .await
            .map_err(|error| refused(error.to_string()))
    }
}

struct Ask {
    subject: String,
    payload: Bytes,
    within: Duration,
}

impl AsyncFnOnceSend<Bytes> for Ask {
    async fn run(self, client: Client) -> Result<Bytes, OutgoingError> {
        let request = Request::new()
            .payload(self.payload)
            .timeout(Some(self.within));
        let answered = client.send_request(self.subject, request).await;
        answered
            .map(|message| message.payload)
            .map_err(|error| match error.kind() {
                RequestErrorKind::TimedOut => OutgoingError::Late,
                _ => OutgoingError::Refused(error.to_string()),
            })
    }
}

impl Inner {
    async fn client(&self) -> Result<Client, String> {
        self.client
            .get_or_try_init(|| self.connect())
            .await
            .cloned()
    }
    async fn connect(&self) -> Result<Client, String> {
        let (patience, heard) = (self.settings.patience, Arc::downgrade(&self.heard));
        let mut options = ConnectOptions::new()
            .name("ogive")
            .retry_on_initial_connect()
            .subscription_capacity(KEPT_MAX)
            .reconnect_delay_callback(move |attempt| {
                patience.wait(u32::try_from(attempt).unwrap_or(u32::MAX).saturating_sub(1))
            })
            .event_callback(move |event| {
                let heard = heard.clone();
                async move { noted(&heard, event) }
            });
        options = match &self.settings.credentials {
            Credentials::None => options,
            Credentials::Token(token) => options.token(token.to_string()),
            Credentials::User(user, password) | Credentials::Scram(user, password, _) => {
                options.user_and_password(user.to_string(), password.to_string())
            }
        };
        if let Some(settings) = &self.settings.tls {
            options = options
                .tls_client_config(tls::client(settings)?)
                .require_tls(true);
        }
        let mut servers = Vec::new();
        for url in &self.settings.urls {
            let server: Result<async_nats::ServerAddr, _> = url.parse();
            servers.push(server.map_err(|error| format!("its URL cannot be used: {error}"))?);
        }
        let connected = options.connect(servers).await;
        connected.map_err(|error| error.to_string())
    }
}

/// What the library tells of the connection.
fn noted(heard: &Weak<ChannelTable>, event: Event) {
    let Some(heard) = heard.upgrade() else {
        return;
    };
    match event {
        Event::Connected => {
            for (_, channel) in heard.named() {
                channel.heard();
            }
        }
        Event::Disconnected => {
            let why = "the connection to NATS is lost";
            heard.trouble(Broker::Nats, why.to_owned());
            for (_, channel) in heard.all() {
                channel.lost(why);
            }
        }
        Event::SlowConsumer(_) => {
            heard.trouble(
                Broker::Nats,
                "events were dropped: they came faster than they were read".to_owned(),
            );
            for (_, channel) in heard.named() {
                channel.overflow();
            }
        }
        Event::ServerError(error) => {
            let why = error.to_string();
            if let Some(subject) = refused_subject(&why) {
                let channel = heard.get(&ChannelKey::Named(subject.into()));
                if let Some(channel) = channel {
                    channel.refuse(&why);
                }
            }
            heard.trouble(Broker::Nats, why);
        }
        Event::ClientError(error) => heard.trouble(Broker::Nats, error.to_string()),
        Event::LameDuckMode | Event::Draining | Event::Closed => {}
    }
}

/// The subject to which the server does not let us subscribe, if that is what it says.
fn refused_subject(why: &str) -> Option<&str> {
    const SAID: &str = "permissions violation for subscription to \"";
    let at = why.to_ascii_lowercase().find(SAID)? + SAID.len();
    why.get(at..)?.split('"').next()
}

/// Hears a subject. The library subscribes again after a loss.
async fn subscribe(client: &Client, subject: &str, channel: &Channel) {
    let subscriber = match client.subscribe(subject.to_owned()).await {
        Ok(subscriber) => subscriber,
        Err(error) => return channel.refuse(&error.to_string()),
    };
    let mut subscriber = Box::pin(subscriber);
    seen(client).await;
    channel.heard();
    while let Some(message) = next(&mut subscriber).await {
        channel.push(&Arc::new(Message::new(message.payload, None)));
    }
    channel.lost("the connection to NATS is closed");
}

/// Waits until the server has seen all that was sent before: what one sends to oneself comes back behind it.
async fn seen(client: &Client) {
    let inbox = client.new_inbox();
    let echo = async {
        let mut echo = Box::pin(client.subscribe(inbox.clone()).await.ok()?);
        client.publish(inbox.clone(), Bytes::new()).await.ok()?;
        next(&mut echo).await
    };
    // Without a connection it takes as long as whoever waits has time.
    let echo = std::pin::pin!(echo);
    let give_up = async {
        loop {
            tokio::time::sleep(SEEN_WITHIN).await;
            if client.connection_state() == State::Connected {
                return;
            }
        }
    };
    tokio::select! {
        _ = echo => {}
        () = give_up => {}
    }
}

/// Follows a stream from a durable position.
async fn follow(
    inner: &Inner,
    client: &Client,
    key: &ChannelKey,
    channel: &Channel,
    runtime: &Handle,
) {
    let patience = inner.settings.patience;
    let (mut attempt, mut was_heard) = (0, false);
    loop {
        match open(client, key).await {
            Ok((messages, ack_wait)) => {
                (attempt, was_heard) = (0, true);
                channel.heard();
                let why = pass_on((messages, ack_wait), channel, runtime).await;
                let Some(why) = why else {
                    return;
                };
                channel.lost(&why);
            }
            Err(why) if !was_heard && client.connection_state() == State::Connected => {
                return channel.refuse(&why);
            }
            Err(why) => inner.heard.trouble(Broker::Nats, why),
        }
        tokio::time::sleep(patience.wait(attempt)).await;
        attempt = attempt.saturating_add(1);
    }
}

async fn open(client: &Client, key: &ChannelKey) -> Result<(pull::Stream, Duration), String> {
    let ChannelKey::Durable {
        stream,
        consumer,
        subjects,
        inactive,
    } = key
    else {
        return Err("no stream".to_owned());
    };
    let context = jetstream::new(client.clone());
    let found = context.get_stream(&**stream).await;
    let found = found.map_err(|error| format!("the stream `{stream}`: {error}"))?;
    let mut config = pull::Config {
        durable_name: Some(consumer.to_string()),
        inactive_threshold: inactive.unwrap_or_default(),
        // Few enough that none of them waits so long in a queue that it is sent again.
        max_ack_pending: 2 * BATCH as i64,
        ..pull::Config::default()
    };
    // Servers before 2.10 know one only.
    match subjects.as_slice() {
        [subject] => config.filter_subject = subject.to_string(),
        subjects => config.filter_subjects = subjects.iter().map(|s| s.to_string()).collect(),
    }
    let consumer = found.get_or_create_consumer(consumer, config).await;
    let consumer = consumer.map_err(|error| error.to_string())?;
    let ack_wait = consumer.cached_info().config.ack_wait;
    let messages = consumer.stream().max_messages_per_batch(BATCH);
    let messages = messages.heartbeat(Duration::from_secs(5)).messages().await;
    let messages = messages.map_err(|error| error.to_string())?;
    Ok((messages, ack_wait))
}

/// Passes messages on until nobody wants them, or they stop; why they did. The server sends again what is not acknowledged
/// within `ack_wait`, so it is told of what still waits.
async fn pass_on(
    (messages, ack_wait): (pull::Stream, Duration),
    channel: &Channel,
    runtime: &Handle,
) -> Option<String> {
    let mut messages = Box::pin(messages);
    let mut waiting: VecDeque<Weak<Message>> = VecDeque::new();
    let mut ticks = tokio::time::interval((ack_wait / 3).max(TOLD_MIN));
    let message = |message: jetstream::Message| {
        let (message, acker) = message.split();
        let runtime = runtime.clone();
        Arc::new(Message::new(
            message.payload,
            Some(Delivery { acker, runtime }),
        ))
    };
    loop {
        tokio::select! {
            biased;
            () = channel.left() => {
                // What has come already is given back, so that whoever comes next gets it at once.
                let waiting = poll_fn(|cx| Poll::Ready(match messages.as_mut().poll_next(cx) {
                    Poll::Ready(Some(Ok(waiting))) => Some(waiting),
                    _ => None,
                }));
                let mut waiting = std::pin::pin!(waiting);
                while let Some(given_back) = waiting.as_mut().await {
                    drop(message(given_back));
                }
                return None;
            }
            found = next(&mut messages) => match found {
                Some(Ok(found)) => {
                    let found = message(found);
                    if waiting.len() >= WAITING_MAX {
                        waiting.retain(|message| message.strong_count() > 0);
                    }
                    waiting.push_back(Arc::downgrade(&found));
                    tell_all(&mut waiting, channel.push_patiently(&found), &mut ticks).await;
                }
                Some(Err(error)) => return Some(error.to_string()),
                None => return Some("the stream has ended".to_owned()),
            },
            _ = ticks.tick() => tell(&mut waiting).await,
        }
    }
}

/// Tells of what waits while something else is done.
async fn tell_all(
    waiting: &mut VecDeque<Weak<Message>>,
    work: impl Future<Output = ()>,
    ticks: &mut Interval,
) {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            () = &mut work => return,
            _ = ticks.tick() => tell(waiting).await,
        }
    }
}

/// Tells the server of what is still looked at.
async fn tell(waiting: &mut VecDeque<Weak<Message>>) {
    waiting.retain(|message| message.strong_count() > 0);
    for message in waiting.iter().filter_map(Weak::upgrade) {
        message.is_looked_at().await;
    }
}

/// The next one of a stream.
async fn next<S: Stream + ?Sized>(stream: &mut Pin<Box<S>>) -> Option<S::Item> {
    poll_fn(|cx| stream.as_mut().poll_next(cx)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_of_a_refusal_is_read() {
        let of = |text| refused_subject(text);
        let said = "nats: Permissions Violation for Subscription to \"orders.*\"";
        assert_eq!(of(said), Some("orders.*"));
        let queued = "permissions violation for subscription to \"a\" using queue \"q\"";
        assert_eq!(of(queued), Some("a"));
        assert_eq!(of("Permissions Violation for Publish to \"a\""), None);
    }
}
