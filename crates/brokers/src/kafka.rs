//! Kafka: topics, all partitions of them, from where they end when somebody begins to hear.
//!
//! Every process hears everything, so there are no consumer groups. The position of each partition is kept here while
//! somebody hears the topic: after the broker was away nothing is missing.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use ogive_federation::Broker;
use rskafka::{
    BackoffConfig,
    chrono::{DateTime, Utc},
    client::{
        Client, ClientBuilder, Credentials as KafkaCredentials, SaslConfig,
        error::{Error, ProtocolError},
        partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling},
    },
    record::Record,
};
use tokio::{runtime::Handle, sync::OnceCell, task::JoinSet, time::timeout};

use crate::{
    channels::{ChannelKey, ChannelTable, OutgoingError, in_time},
    queue::{Channel, Message},
    settings::{ConnectionSettings, Credentials},
    tls,
};

/// Most bytes that are fetched at a time.
const FETCH_BYTES_MAX: i32 = 8 << 20;
/// How long the broker waits for an event before it answers that there is none.
const FETCH_WAIT_MS: i32 = 5_000;
/// How long nothing is asked after an answer without records.
const IDLE_PAUSE: Duration = Duration::from_millis(100);
/// How long the library tries on its own.
const TRY_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked for partitions that are new.
const LOOK_AFTER: Duration = Duration::from_secs(30);

/// One Kafka.
pub(crate) struct Kafka {
    inner: Arc<Inner>,
    runtime: Handle,
}

struct Inner {
    settings: ConnectionSettings,
    heard: Arc<ChannelTable>,
    client: OnceCell<Client>,
    /// Which partition gets what is published next.
    turn: AtomicUsize,
}

impl Kafka {
    pub(crate) fn new(
        settings: ConnectionSettings,
        heard: Arc<ChannelTable>,
        runtime: Handle,
    ) -> Kafka {
        let inner = Inner {
            settings,
            heard,
            client: OnceCell::new(),
            turn: AtomicUsize::new(0),
        };
        Kafka {
            inner: Arc::new(inner),
            runtime,
        }
    }
    /// Hears a topic until nobody wants it.
    pub(crate) fn hear(&self, key: ChannelKey, channel: Arc<Channel>) {
        let inner = Arc::clone(&self.inner);
        self.runtime.spawn(async move {
            if let ChannelKey::Named(topic) = &key {
                tokio::select! {
                    () = follow(&inner, topic, &channel) => {}
                    () = channel.left() => {}
                }
            }
            channel.left().await;
            inner.heard.remove(&key, &channel);
        });
    }
    pub(crate) async fn publish(
        &self,
        topic: &str,
        payload: Bytes,
        within: Duration,
    ) -> Result<(), OutgoingError> {
        let (inner, topic) = (Arc::clone(&self.inner), topic.to_owned());
        let publishing = self
            .runtime
            .spawn(async move { inner.publish(&topic, payload).await });
        in_time(publishing, within).await
    }
}

impl Inner {
    async fn client(&self) -> Result<&Client, String> {
        self.client.get_or_try_init(|| self.connect()).await
    }
    async fn connect(&self) -> Result<Client, String> {
        let urls = self
            .settings
            .urls
            .iter()
            .map(|url| url.to_string())
            .collect();
        let mut builder =
            ClientBuilder::new(urls)
                .client_id("ogive")
                .backoff_config(BackoffConfig {
                    init_backoff: Duration::from_millis(50),
                    max_backoff: Duration::from_secs(1),
                    base: 2.0,
                    deadline: Some(TRY_WITHIN),
                });
        if let Some(tls) = &self.settings.tls {
            builder = builder.tls_config(Arc::new(tls::client(tls)?));
        }
        let credentials = |user: &str, password: &str| {
            KafkaCredentials::new(user.to_owned(), password.to_owned())
        };
        builder = match &self.settings.credentials {
            Credentials::None | Credentials::Token(_) => builder,
            Credentials::User(user, password) => {
                builder.sasl_config(SaslConfig::Plain(credentials(user, password)))
            }
            Credentials::Scram(user, password, false) => {
                builder.sasl_config(SaslConfig::ScramSha256(credentials(user, password)))
            }
            Credentials::Scram(user, password, true) => {
                builder.sasl_config(SaslConfig::ScramSha512(credentials(user, password)))
            }
        };
        let built = timeout(TRY_WITHIN * 2, builder.build()).await;
        let built = built.map_err(|_| "no connection in time".to_owned())?;
        built.map_err(|error| error.to_string())
    }
    /// The partitions of a topic; none if it is not there.
    async fn partitions(&self, topic: &str) -> Result<Vec<i32>, String> {
        let topics = self.client().await?.list_topics().await;
        let topics = topics.map_err(|error| error.to_string())?;
        let found = topics.into_iter().find(|found| found.name == topic);
        Ok(found
            .map(|found| found.partitions.into_iter().collect())
            .unwrap_or_default())
    }
    async fn partition(&self, topic: &str, partition: i32) -> Result<PartitionClient, String> {
        let client = self.client().await?;
        let made = client
            .partition_client(topic, partition, UnknownTopicHandling::Error)
            .await;
        made.map_err(|error| error.to_string())
    }
    async fn publish(&self, topic: &str, payload: Bytes) -> Result<(), OutgoingError> {
        let partitions = self.partitions(topic).await.map_err(OutgoingError::Away)?;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let Some(partition) = partitions.get(turn % partitions.len().max(1)) else {
            return Err(OutgoingError::Refused(format!(
                "there is no topic `{topic}`"
            )));
        };
        let partition = self
            .partition(topic, *partition)
            .await
            .map_err(OutgoingError::Away)?;
        let record = Record {
            key: None,
            value: Some(payload.to_vec()),
            headers: BTreeMap::new(),
            timestamp: now(),
        };
        let produced = partition
            .produce(vec![record], Compression::NoCompression)
            .await;
        produced
            .map(drop)
            .map_err(|error| OutgoingError::Refused(error.to_string()))
    }
}

fn now() -> DateTime<Utc> {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let millis = i64::try_from(since.as_millis()).unwrap_or_default();
    DateTime::from_timestamp_millis(millis).unwrap_or_default()
}

/// Where each partition is read from next.
type Offsets = BTreeMap<i32, Arc<AtomicI64>>;

/// Follows a topic, partition by partition.
async fn follow(inner: &Arc<Inner>, topic: &str, channel: &Arc<Channel>) {
    let patience = inner.settings.patience;
    let mut offsets = Offsets::new();
    let mut attempt = 0;
    loop {
        // Dropping it stops those that read.
        let mut tasks = JoinSet::new();
        let why = match begin(inner, topic, &mut offsets, channel, &mut tasks).await {
            Ok(0) => return channel.refuse(&format!("there is no topic `{topic}`")),
            Ok(_) => {
                attempt = 0;
                channel.heard();
                watch(inner, topic, &mut offsets, channel, &mut tasks).await
            }
            Err(why) => why,
        };
        drop(tasks);
        channel.lost(&why);
        inner.heard.trouble(Broker::Kafka, why);
        tokio::time::sleep(patience.wait(attempt)).await;
        attempt = attempt.saturating_add(1);
    }
}

/// Begins to read, or reads on where it was. How many partitions there are.
async fn begin(
    inner: &Arc<Inner>,
    topic: &str,
    offsets: &mut Offsets,
    channel: &Arc<Channel>,
    tasks: &mut JoinSet<String>,
) -> Result<usize, String> {
    let partitions = inner.partitions(topic).await?;
    let is_first = offsets.is_empty();
    let mut begun = Vec::new();
    for number in &partitions {
        let client = inner.partition(topic, *number).await?;
        if !offsets.contains_key(number) {
            // What came to be meanwhile is read from its beginning.
            let at = if is_first {
                OffsetAt::Latest
            } else {
                OffsetAt::Earliest
            };
            let offset = client
                .get_offset(at)
                .await
                .map_err(|error| error.to_string())?;
            begun.push((*number, Arc::new(AtomicI64::new(offset))));
        }
        let offset = begun
            .last()
            .filter(|(n, _)| n == number)
            .map(|(_, offset)| offset);
        if let Some(offset) = offset.or_else(|| offsets.get(number)) {
            tasks.spawn(read(client, Arc::clone(offset), Arc::clone(channel)));
        }
    }
    offsets.extend(begun);
    Ok(partitions.len())
}

/// Waits until something is lost, and looks for partitions that are new meanwhile. What was lost.
async fn watch(
    inner: &Arc<Inner>,
    topic: &str,
    offsets: &mut Offsets,
    channel: &Arc<Channel>,
    tasks: &mut JoinSet<String>,
) -> String {
    loop {
        tokio::select! {
            Some(stopped) = tasks.join_next() => {
                return stopped.unwrap_or_else(|error| error.to_string());
            }
            () = tokio::time::sleep(LOOK_AFTER) => {
                for number in inner.partitions(topic).await.unwrap_or_default() {
                    if offsets.contains_key(&number) {
                        continue;
                    }
                    if let Ok(client) = inner.partition(topic, number).await {
                        let offset: Arc<AtomicI64> = Arc::default();
                        offsets.insert(number, Arc::clone(&offset));
                        tasks.spawn(read(client, offset, Arc::clone(channel)));
                    }
                }
            }
        }
    }
}

/// Reads one partition until it is lost, and says why.
async fn read(client: PartitionClient, offset: Arc<AtomicI64>, channel: Arc<Channel>) -> String {
    loop {
        let from = offset.load(Ordering::Relaxed);
        let fetched = client
            .fetch_records(from, 1..FETCH_BYTES_MAX, FETCH_WAIT_MS)
            .await;
        let records = match fetched {
            Ok((records, _)) => records,
            Err(Error::ServerError {
                protocol_error: ProtocolError::OffsetOutOfRange,
                ..
            }) => {
                // It was deleted before it was read: that is told as a loss, and reading goes on with what there is.
                match client.get_offset(OffsetAt::Earliest).await {
                    Ok(earliest) => offset.store(earliest, Ordering::Relaxed),
                    Err(error) => return error.to_string(),
                }
                return "events were deleted before they were read".to_owned();
            }
            Err(error) => return error.to_string(),
        };
        if records.is_empty() {
            // The end of a transaction is no record, and is answered at once.
            tokio::time::sleep(IDLE_PAUSE).await;
        }
        for record in records {
            // What only deletes a key is no event.
            if let Some(value) = record.record.value {
                let message = Message::new(Bytes::from(value), None);
                channel.push_patiently(&Arc::new(message)).await;
            }
            offset.store(record.offset + 1, Ordering::Relaxed);
        }
    }
}
