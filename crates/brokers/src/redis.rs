//! Redis: channels by publish and subscribe.
//!
//! One connection hears all channels and patterns, another one publishes: Redis lets one connection do one of both. What
//! is published while the connection is lost is lost with it, which is told.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use ogive_base::FastSet;
use ogive_federation::Broker;
use redis::{
    AsyncConnectionConfig, Client, Msg, TlsCertificates,
    aio::{MultiplexedConnection, PubSubSink, PubSubStream},
};
use tokio::{
    runtime::Handle,
    sync::{Mutex, mpsc},
    time::timeout,
};

use crate::{
    channels::{ChannelKey, ChannelTable, OutgoingError, in_time},
    queue::{Channel, Message},
    settings::{ConnectionSettings, Credentials},
    template::is_pattern,
};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take to begin or to end to hear a channel.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the server is asked whether it is there while nothing comes; it has as long to answer.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// One Redis.
pub(crate) struct Redis {
    settings: Arc<ConnectionSettings>,
    heard: Arc<ChannelTable>,
    runtime: Handle,
    /// To the task that hears; made with it.
    wanted: std::sync::Mutex<Option<mpsc::UnboundedSender<Box<str>>>>,
    publisher: Arc<Mutex<Option<MultiplexedConnection>>>,
}

impl Redis {
    pub(crate) fn new(
        settings: ConnectionSettings,
        heard: Arc<ChannelTable>,
        runtime: Handle,
    ) -> Redis {
        Redis {
            settings: Arc::new(settings),
            heard,
            runtime,
            wanted: std::sync::Mutex::default(),
            publisher: Arc::default(),
        }
    }
    /// Hears a channel until nobody wants it.
    pub(crate) fn hear(&self, key: ChannelKey, channel: Arc<Channel>) {
        let mut wanted = self
            .wanted
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let changed = match &*wanted {
            Some(sender) if !sender.is_closed() => sender.clone(),
            _ => {
                let (sender, changes) = mpsc::unbounded_channel();
                let task = drive(
                    Arc::clone(&self.settings),
                    Arc::downgrade(&self.heard),
                    changes,
                );
                self.runtime.spawn(task);
                *wanted = Some(sender.clone());
                sender
            }
        };
        let ChannelKey::Named(name) = key.clone() else {
            return channel.refuse("Redis has no streams here");
        };
        let _ = changed.send(name.clone());
        drop(wanted);
        let (heard, changed) = (Arc::downgrade(&self.heard), changed.downgrade());
        self.runtime.spawn(async move {
            channel.left().await;
            if let Some(heard) = heard.upgrade() {
                heard.remove(&key, &channel);
            }
            if let Some(changed) = changed.upgrade() {
                let _ = changed.send(name);
            }
        });
    }
    pub(crate) async fn publish(
        &self,
        channel: &str,
        payload: Bytes,
        within: Duration,
    ) -> Result<(), OutgoingError> {
        let (settings, publisher) = (Arc::clone(&self.settings), Arc::clone(&self.publisher));
        let channel = channel.to_owned();
        let publishing = self.runtime.spawn(async move {
            let mut publisher = publisher.lock().await;
            let mut connection = match publisher.take() {
                Some(connection) => connection,
                None => {
                    let client = client(&settings).map_err(OutgoingError::Away)?;
                    let config = AsyncConnectionConfig::new()
                        .set_connection_timeout(Some(CONNECT_TIMEOUT))
                        .set_response_timeout(Some(within));
                    let made = client
                        .get_multiplexed_async_connection_with_config(&config)
                        .await;
                    made.map_err(|error| OutgoingError::Away(error.to_string()))?
                }
            };
            let mut command = redis::cmd("PUBLISH");
            command.arg(channel).arg(payload.as_ref());
            let published: Result<i64, _> = command.query_async(&mut connection).await;
            match published {
                Ok(_) => {
                    *publisher = Some(connection);
                    Ok(())
                }
                // The connection may be of no use any more; the next one makes another.
                Err(error) => Err(OutgoingError::Refused(error.to_string())),
            }
        });
        in_time(publishing, within).await
    }
}

fn client(settings: &ConnectionSettings) -> Result<Client, String> {
    use redis::IntoConnectionInfo;
    let url = settings.urls.first().ok_or("it has no URL")?;
    let info = (&**url)
        .into_connection_info()
        .map_err(|error| error.to_string())?;
    let redis = info.redis_settings().clone();
    let redis = match &settings.credentials {
        Credentials::None => redis,
        Credentials::Token(password) => redis.set_password(&**password),
        Credentials::User(user, password) | Credentials::Scram(user, password, _) => {
            redis.set_username(&**user).set_password(&**password)
        }
    };
    let info = info.set_redis_settings(redis);
    let made = match &settings.tls {
        None => Client::open(info),
        Some(tls) => {
            let certificates = TlsCertificates {
                client_tls: tls.identity.clone().map(|(client_cert, client_key)| {
                    redis::ClientTlsConfig {
                        client_cert,
                        client_key,
                    }
                }),
                root_cert: tls.authorities.clone(),
            };
            Client::build_with_tls(info, certificates)
        }
    };
    made.map_err(|error| error.to_string())
}

/// Hears what is wanted until nobody can want anything any more.
async fn drive(
    settings: Arc<ConnectionSettings>,
    heard: Weak<ChannelTable>,
    mut changes: mpsc::UnboundedReceiver<Box<str>>,
) {
    let mut attempt = 0;
    loop {
        let connected = match client(&settings) {
            Ok(client) => match timeout(CONNECT_TIMEOUT, client.get_async_pubsub()).await {
                Ok(made) => made.map_err(|error| error.to_string()),
                Err(_) => Err("no connection in time".to_owned()),
            },
            Err(why) => Err(why),
        };
        let why = match connected {
            Ok(connection) => {
                let (sink, stream) = connection.split();
                let mut session = Session {
                    sink,
                    subscribed: FastSet::default(),
                };
                match session
                    .work(stream, &heard, &mut changes, &mut attempt)
                    .await
                {
                    Some(why) => why,
                    None => return,
                }
            }
            Err(why) => why,
        };
        let Some(known) = heard.upgrade() else {
            return;
        };
        known.trouble(Broker::Redis, why.clone());
        for (_, channel) in known.named() {
            channel.lost(&why);
        }
        drop(known);
        tokio::time::sleep(settings.patience.wait(attempt)).await;
        // The next connection begins with all that is wanted.
        while changes.try_recv().is_ok() {}
        attempt = attempt.saturating_add(1);
    }
}

/// One connection that hears.
struct Session {
    sink: PubSubSink,
    subscribed: FastSet<Box<str>>,
}

impl Session {
    /// Works until the connection is lost, and says why; `None` if nobody can want anything any more.
    async fn work(
        &mut self,
        stream: PubSubStream,
        heard: &Weak<ChannelTable>,
        changes: &mut mpsc::UnboundedReceiver<Box<str>>,
        attempt: &mut u32,
    ) -> Option<String> {
        let mut stream = Box::pin(stream);
        let mut ticks =
            tokio::time::interval_at(tokio::time::Instant::now() + HEARTBEAT, HEARTBEAT);
        if let Err(error) = self.settle(heard).await {
            return Some(error);
        }
        *attempt = 0;
        loop {
            tokio::select! {
                message = next(&mut stream) => match message {
                    Some(message) => pass_on(heard, &message),
                    None => return Some("the connection to Redis is lost".to_owned()),
                },
                change = changes.recv() => {
                    if let Err(error) = self.change(heard, &change?).await {
                        return Some(error);
                    }
                }
                _ = ticks.tick() => {
                    let alive: Result<Result<(), _>, _> = timeout(HEARTBEAT, self.ping()).await;
                    if !matches!(alive, Ok(Ok(()))) {
                        return Some(silent());
                    }
                }
            }
        }
    }
    async fn ping(&mut self) -> redis::RedisResult<()> {
        let _: redis::Value = self.sink.ping().await?;
        Ok(())
    }
    /// Subscribes to all that is wanted.
    async fn settle(&mut self, heard: &Weak<ChannelTable>) -> Result<(), String> {
        let wanted = heard.upgrade().map(|heard| heard.named());
        for (name, _) in wanted.into_iter().flatten() {
            self.change(heard, &name).await?;
        }
        Ok(())
    }
    /// Subscribes to a channel that is wanted and not heard yet, or the other way round.
    async fn change(&mut self, heard: &Weak<ChannelTable>, name: &str) -> Result<(), String> {
        let key = ChannelKey::Named(name.into());
        let wanted = heard.upgrade().and_then(|heard| heard.get(&key));
        match (wanted, self.subscribed.contains(name)) {
            // Somebody may have come to it after everybody had left.
            (Some(channel), true) => channel.heard(),
            (Some(channel), false) => {
                let subscribing = async {
                    if is_pattern(name) {
                        self.sink.psubscribe(name).await
                    } else {
                        self.sink.subscribe(name).await
                    }
                };
                let subscribed = timeout(COMMAND_TIMEOUT, subscribing).await;
                let subscribed = subscribed.map_err(|_| silent())?;
                match subscribed {
                    Ok(()) => {
                        self.subscribed.insert(name.into());
                        channel.heard();
                    }
                    // The server has said why: rights, most of the time.
                    Err(error) if error.code().is_some() => channel.refuse(&error.to_string()),
                    Err(error) => return Err(error.to_string()),
                }
            }
            (None, true) => {
                let leaving = async {
                    if is_pattern(name) {
                        self.sink.punsubscribe(name).await
                    } else {
                        self.sink.unsubscribe(name).await
                    }
                };
                let left = timeout(COMMAND_TIMEOUT, leaving).await;
                left.map_err(|_| silent())?
                    .map_err(|error| error.to_string())?;
                self.subscribed.remove(name);
            }
            (None, false) => {}
        }
        Ok(())
    }
}

fn silent() -> String {
    "Redis does not answer".to_owned()
}

/// An event for those who hear its channel, or the pattern that it came by.
fn pass_on(heard: &Weak<ChannelTable>, message: &Msg) {
    let Some(heard) = heard.upgrade() else {
        return;
    };
    let by: Option<String> = message.get_pattern().ok().flatten();
    let name = by.unwrap_or_else(|| message.get_channel_name().to_owned());
    let channel = heard.get(&ChannelKey::Named(name.into()));
    if let Some(channel) = channel {
        let payload = Bytes::copy_from_slice(message.get_payload_bytes());
        channel.push(&Arc::new(Message::new(payload, None)));
    }
}

/// The next one of a stream.
async fn next<S: Stream + ?Sized>(stream: &mut Pin<Box<S>>) -> Option<S::Item> {
    poll_fn(|cx| stream.as_mut().poll_next(cx)).await
}
