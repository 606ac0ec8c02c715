//! Redis, from any thread: asked on a thread of its own, left alone while it does not answer.

use std::{
    fmt,
    sync::{
        Arc, LazyLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use redis::{AsyncCommands, FromRedisValue, RedisResult, Script};
use tokio::{
    runtime::Handle,
    sync::{Mutex, Notify, oneshot},
    time::{sleep, timeout},
};

use crate::{
    connection::{Connection, Source},
    options::{StoreError, StoreOptions},
};

/// How often Redis is looked for while it does not answer. No request waits for that.
const PAUSE: Duration = Duration::from_millis(500);
/// How often a process says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How much longer processes count alone than they need to find Redis again.
const REGROUP_SLACK: Duration = Duration::from_millis(200);
/// The part of the timeout that counts towards the time in which processes find Redis again.
const REGROUP_TIMEOUT_MAX: Duration = Duration::from_secs(2);
/// The key at which Redis keeps when processes share rates again.
const REGROUP_KEY: &str = "regroup";
/// After how many seconds without that it is not.
const GONE_SECONDS: u64 = 5;
/// Where that is kept.
const PROCESSES_KEY: &str = "processes";
/// How often values that are of no use are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// The code of what Redis answers where a value is of another type than asked for.
const WRONG_TYPE: &str = "WRONGTYPE";

/// Says that a process is there, and gives how many are, and whether something else lay there and was replaced.
static PROCESSES: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local now = tonumber(redis.call('TIME')[1])
local added = redis.pcall('ZADD', KEYS[1], now, ARGV[1])
local replaced = type(added) == 'table'
if replaced then
  if not string.find(added.err, 'WRONGTYPE', 1, true) then return added end
  redis.call('EXPIRE', KEYS[1], 0)
  redis.call('ZADD', KEYS[1], now, ARGV[1])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('EXPIRE', KEYS[1], 60)
return {redis.call('ZCARD', KEYS[1]), replaced and 1 or 0}",
    )
});

/// The first process that finds Redis again sets when all processes share again; gives the milliseconds until then.
static REGROUP: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local wait = tonumber(ARGV[1])
local kept = redis.pcall('GET', KEYS[1])
local ends = type(kept) == 'string' and tonumber(kept) or 0
if ends <= now or ends > now + wait then
  ends = now + wait
  redis.call('SET', KEYS[1], string.format('%.0f', ends), 'PX', wait)
end
return ends - now",
    )
});

struct Shared {
    source: Source,
    options: StoreOptions,
    connection: Mutex<Option<Connection>>,
    /// Whether it did not answer when it was asked last.
    is_away: AtomicBool,
    /// Until when processes that have found Redis again count alone, in milliseconds since `started`.
    regrouped: AtomicU64,
    started: Instant,
    /// Wakes who looks for it.
    lost: Notify,
    processes: AtomicU64,
    /// When a value that is of no use was reported last.
    reported: std::sync::Mutex<Option<Instant>>,
}

/// Redis, from any thread. Dropped with its last clone.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    handle: Handle,
    /// Ends the thread.
    _stop: Arc<oneshot::Sender<()>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.options.fmt(f)
    }
}

impl Store {
    /// A store that is not connected yet. Fails if the options make no sense, not if Redis is away.
    pub fn new(options: StoreOptions) -> Result<Self, StoreError> {
        // The client of Redis asks for what the process has; it stays if there is one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let source = Source::new(&options)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(StoreError::Thread)?;
        let handle = runtime.handle().clone();
        let shared = Arc::new(Shared {
            source,
            options,
            connection: Mutex::default(),
            is_away: AtomicBool::new(false),
            regrouped: AtomicU64::new(0),
            started: Instant::now(),
            lost: Notify::new(),
            processes: AtomicU64::new(1),
            reported: std::sync::Mutex::default(),
        });
        let (stop, stopped) = oneshot::channel();
        let beating = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("store".to_owned());
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = beating.heartbeat() => {}
                    _ = stopped => {}
                }
            });
        };
        thread.spawn(run).map_err(StoreError::Thread)?;
        let _stop = Arc::new(stop);
        Ok(Store {
            shared,
            handle,
            _stop,
        })
    }

    /// What it was made with.
    pub fn options(&self) -> &StoreOptions {
        &self.shared.options
    }

    /// How many processes share it, as far as is known; at least this one.
    pub fn processes(&self) -> u64 {
        self.shared.processes.load(Ordering::Relaxed).max(1)
    }

    /// Whether it did not answer when it was asked last. Who asks then is told so at once.
    pub fn is_away(&self) -> bool {
        self.shared.is_away.load(Ordering::Relaxed)
    }

    /// Whether other processes may not have found Redis again yet after an outage. Until all of them have, Redis does not know
    /// what they let pass during it, so no process may lease what Redis believes to be free.
    pub fn is_regrouping(&self) -> bool {
        let until = self.shared.regrouped.load(Ordering::Relaxed);
        until > 0 && self.shared.milliseconds() < until
    }

    /// The text at a key; anything else counts as nothing. Waits for no longer than the timeout.
    pub async fn get(&self, key: &str) -> Result<Option<String>, StoreError> {
        let wanted = self.shared.key(key);
        let ask = move |mut connection: Connection| async move {
            match connection.get::<_, Option<Vec<u8>>>(wanted).await {
                Err(error) if error.code() == Some(WRONG_TYPE) => Ok(Some(Vec::new())),
                found => found,
            }
        };
        let Some(found) = self.ask(ask).await? else {
            return Ok(None);
        };
        let text = String::from_utf8(found).ok();
        let text = text.filter(|text| !text.is_empty());
        if text.is_none() {
            self.shared.unusable(key);
        }
        Ok(text)
    }

    /// Lays something at a key, to be kept for so long, without waiting for it.
    pub fn put(&self, key: &str, value: String, kept: Duration) {
        let key = self.shared.key(key);
        let shared = Arc::clone(&self.shared);
        self.spawn(async move {
            let seconds = kept.as_secs().max(1);
            let _: Result<(), _> = shared
                .ask(async move |mut connection| connection.set_ex(key, value, seconds).await)
                .await;
        });
    }

    /// Runs a script of one key; waits for no longer than the timeout.
    pub(crate) async fn run<T: FromRedisValue + Send + 'static>(
        &self,
        script: &'static Script,
        key: &str,
        arguments: Vec<u64>,
    ) -> Result<T, StoreError> {
        let key = self.shared.key(key);
        let ask = move |connection| invoke(script, key, arguments, connection);
        self.ask(ask).await
    }

    /// Reports that a value at a key was of no use, and was replaced.
    pub(crate) fn replaced(&self, key: &str) {
        self.shared.unusable(key);
    }

    /// Asks on the thread of the store.
    async fn ask<T, F>(
        &self,
        ask: impl FnOnce(Connection) -> F + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = RedisResult<T>> + Send,
    {
        if self.is_away() {
            return Err(StoreError::Unavailable);
        }
        let shared = Arc::clone(&self.shared);
        let work = async move { shared.ask(ask).await };
        match self.handle.spawn(work).await {
            Ok(answer) => answer,
            Err(_) => Err(StoreError::Unavailable),
        }
    }

    /// Does something on the thread of the store.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }
}

async fn invoke<T: FromRedisValue>(
    script: &Script,
    key: String,
    arguments: Vec<u64>,
    mut connection: Connection,
) -> RedisResult<T> {
    let mut invocation = script.key(key);
    for argument in arguments {
        invocation.arg(argument);
    }
    invocation.invoke_async(&mut connection).await
}

impl Shared {
    fn key(&self, key: &str) -> String {
        format!("{}:{key}", self.options.namespace)
    }

    /// Asks, unless it is known not to answer.
    async fn ask<T, F>(&self, ask: impl FnOnce(Connection) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        if self.is_away.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable);
        }
        let answer = self.try_ask(ask).await;
        if let Err(error) = &answer {
            self.is_lost(error).await;
        }
        answer
    }

    async fn try_ask<T, F>(&self, ask: impl FnOnce(Connection) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let asked = async { Ok(ask(self.connected().await?).await?) };
        match timeout(self.options.timeout, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(StoreError::Timeout),
        }
    }

    /// Reports a value that is of no use. The others are as good as before, so Redis is not away.
    fn unusable(&self, key: &str) {
        let now = Instant::now();
        let mut last = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| now - last >= REPORT_INTERVAL) {
            *last = Some(now);
            let key = self.key(key);
            tracing::warn!(
                key,
                "the value at this key of Redis is not one that the gateway writes: it is replaced; keep others from \
                 writing to `store.redis.namespace`"
            );
        }
    }

    async fn is_lost(&self, error: &StoreError) {
        if !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "Redis does not answer: this process goes on without it, and looks for it");
            self.lost.notify_one();
        }
        self.forget().await;
    }

    /// Whatever is wrong with a connection may be wrong for good: a server that was replaced, for instance.
    async fn forget(&self) {
        if let Ok(mut connection) = self.connection.try_lock() {
            *connection = None;
        }
    }

    async fn connected(&self) -> Result<Connection, StoreError> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = &*kept {
            return Ok(connection.clone());
        }
        let connection = self.source.connect(self.options.timeout).await?;
        *kept = Some(connection.clone());
        Ok(connection)
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Ends an outage: this process asks Redis again. If several processes share it, none leases before all have had the time
    /// to find it.
    async fn end_outage(&self) -> Result<(), StoreError> {
        if self.processes.load(Ordering::Relaxed) > 1 {
            // A process looks for Redis after each pause; one look may fail just before Redis is back.
            let look = self.options.timeout.min(REGROUP_TIMEOUT_MAX);
            let wait = PAUSE + look * 2 + REGROUP_SLACK;
            let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let key = self.key(REGROUP_KEY);
            let ask = |connection| invoke(&REGROUP, key, vec![wait], connection);
            let left = self.try_ask::<u64, _>(ask).await?;
            let until = self.milliseconds().saturating_add(left);
            self.regrouped.store(until, Ordering::Relaxed);
        }
        self.is_away.store(false, Ordering::Relaxed);
        tracing::info!("Redis answers again");
        Ok(())
    }

    /// Says that this process is there, and looks for Redis while it is away.
    async fn heartbeat(&self) {
        let id = random_id();
        let mut returned: Option<Instant> = None;
        loop {
            let key = self.key(PROCESSES_KEY);
            let arguments = vec![id, GONE_SECONDS];
            let ask = |connection| invoke(&PROCESSES, key, arguments, connection);
            match self.try_ask::<(u64, u64), _>(ask).await {
                Ok((found, replaced)) => {
                    let is_back = self.is_away.load(Ordering::Relaxed);
                    returned = returned.filter(|_| !is_back).or(is_back.then(Instant::now));
                    // Others may not have found it again yet.
                    let is_recent = |at: Instant| at.elapsed().as_secs() <= GONE_SECONDS;
                    if returned.is_some_and(is_recent) {
                        self.processes.fetch_max(found, Ordering::Relaxed);
                    } else {
                        self.processes.store(found, Ordering::Relaxed);
                    }
                    if replaced > 0 {
                        self.unusable(PROCESSES_KEY);
                    }
                    if is_back && let Err(error) = self.end_outage().await {
                        self.is_lost(&error).await;
                    }
                }
                Err(error) => self.is_lost(&error).await,
            }
            if self.is_away.load(Ordering::Relaxed) {
                sleep(PAUSE).await;
            } else {
                let _ = timeout(HEARTBEAT, self.lost.notified()).await;
            }
        }
    }
}

/// A number that no other process has.
fn random_id() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
