//! Which client asks which operation, how often, how long it takes and what it costs: counted beside the requests, and told
//! from time to time ([`report`]). What fields and arguments an operation uses, its text says.
//!
//! Invariants: texts hold no literals of the operation; rows and bytes have limits, and beyond them requests are counted
//! without being told apart, so that who makes up names of clients or operations fills nothing but the table.

pub(crate) mod report;

use std::{
    hash::BuildHasher,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use ogive_base::FastMap;
use ogive_config::{Config, UsageOtlpOptions};
use ogive_operation::FieldRef;
use ogive_schema::Schema;
use ogive_syntax::without_literals;
use ogive_telemetry::operation::ClientIdentity;

use crate::{
    documents,
    schema::{operation::PreparedOperation, operation_usage::OperationUsage, state::SchemaState},
};

/// Buckets of durations: each twice as long as the one before, from a microsecond on.
pub(crate) const BUCKETS: usize = 28;

/// Longest name or version of a client that is told, in bytes.
const CLIENT_BYTES_MAX: usize = 128;

/// What a configuration asks for.
#[derive(Clone, PartialEq, Debug)]
pub struct UsageOptions {
    pub(crate) interval: Duration,
    rows_max: usize,
    bytes_max: usize,
    pub(crate) file: Option<(String, u64)>,
    pub(crate) hive: Option<HiveOptions>,
    pub(crate) otlp: Option<UsageOtlpOptions>,
}

/// Hive's usage reporting.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct HiveOptions {
    pub(crate) endpoint: String,
    pub(crate) token: ogive_config::SecretText,
    pub(crate) executions_max: u64,
    pub(crate) timeout: Duration,
}

impl UsageOptions {
    /// `None` if nothing is counted.
    pub fn new(config: &Config) -> Option<Self> {
        let usage = &config.usage;
        usage.enabled.then(|| UsageOptions {
            interval: usage.interval.0.max(Duration::from_millis(10)),
            rows_max: usage.rows_max.get(),
            bytes_max: usage.memory_max.0,
            file: {
                let path = usage.file.path.clone();
                path.map(|path| (path, usage.file.max_size.0 as u64))
            },
            hive: usage.hive.as_ref().map(|hive| HiveOptions {
                endpoint: hive.endpoint.0.clone(),
                token: hive.token.clone(),
                executions_max: hive.executions_max.get() as u64,
                timeout: hive.timeout.0,
            }),
            otlp: usage.otlp.clone(),
        })
    }
}

/// One operation of one client.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The document without literals, and the name of its operation.
    pub(crate) text: Arc<str>,
    /// Coordinates of its fields and arguments, where somebody is told them.
    pub(crate) fields: Arc<[Box<str>]>,
    pub(crate) name: Box<str>,
    pub(crate) client: ClientIdentity,
    pub(crate) counts: Counts,
}

/// What was counted.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    /// Of them, those that were answered with errors.
    pub(crate) failed: u64,
    pub(crate) nanoseconds: u64,
    pub(crate) longest: u64,
    pub(crate) cost: u64,
    pub(crate) durations: [u32; BUCKETS],
}

impl Row {
    /// What it takes. Its text counts, though others may have the same one: operations come and go.
    fn bytes(&self) -> usize {
        let fields = self.fields.iter();
        let fields = fields.map(|field| field.len() + size_of::<Box<str>>());
        let names = self.name.len() + self.client.name.len() + self.client.version.len();
        size_of::<((u64, u64), Row)>() + self.text.len() + fields.sum::<usize>() + names
    }
}

// Numbers cannot be left half written.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Counts {
    fn merge(&mut self, other: &Counts) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.nanoseconds = self.nanoseconds.saturating_add(other.nanoseconds);
        self.longest = self.longest.max(other.longest);
        self.cost = self.cost.saturating_add(other.cost);
        for (count, more) in self.durations.iter_mut().zip(other.durations) {
            *count = count.saturating_add(more);
        }
    }
    fn add(&mut self, nanoseconds: u64, is_failed: bool, cost: u64) {
        self.requests += 1;
        self.failed += u64::from(is_failed);
        self.nanoseconds = self.nanoseconds.saturating_add(nanoseconds);
        self.longest = self.longest.max(nanoseconds);
        self.cost = self.cost.saturating_add(cost);
        let bucket = (nanoseconds / 1_000).max(1).ilog2() as usize;
        if let Some(count) = self.durations.get_mut(bucket.min(BUCKETS - 1)) {
            *count = count.saturating_add(1);
        }
    }
}

/// What was counted since the last time.
#[derive(Debug)]
pub(crate) struct UsageReport {
    pub(crate) since: SystemTime,
    pub(crate) rows: Vec<Row>,
    /// What was not told apart.
    pub(crate) others: Counts,
}

/// Equal for operations of equal text and name, whichever schema they were prepared for.
static HASHER: LazyLock<foldhash::fast::RandomState> =
    LazyLock::new(foldhash::fast::RandomState::default);

fn usage_of(operation: &PreparedOperation) -> &OperationUsage {
    operation.usage.get_or_init(|| {
        let name = operation.name().unwrap_or_default();
        let hash = HASHER.hash_one((operation.document.source(), name));
        Box::new(OperationUsage::new(hash))
    })
}

/// Tables of as many threads; further ones share them.
const TABLES: usize = 64;

/// What one thread counts. Its lock is its own, but for when all tables are read.
#[derive(Debug, Default)]
struct Table {
    /// By hash of operation and client.
    rows: FastMap<(u64, u64), Row>,
    others: Counts,
}

/// What one process counts.
#[derive(Debug)]
pub(crate) struct Usage {
    pub(crate) options: UsageOptions,
    tables: Box<[Mutex<Table>]>,
    since: Mutex<SystemTime>,
    /// Rows of all tables, and their bytes.
    rows: AtomicUsize,
    bytes: AtomicUsize,
}

/// What the options ask for; what was there before goes on if they ask for the same.
pub(crate) fn usage(
    options: Option<&UsageOptions>,
    before: Option<Arc<Usage>>,
) -> Option<Arc<Usage>> {
    let options = options?;
    let before = before.filter(|before| before.options == *options);
    Some(before.unwrap_or_else(|| Arc::new(Usage::new(options.clone()))))
}

impl Usage {
    fn new(options: UsageOptions) -> Self {
        Usage {
            options,
            tables: (0..TABLES).map(|_| Mutex::default()).collect(),
            since: Mutex::new(SystemTime::now()),
            rows: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// The table of this thread.
    fn table(&self) -> MutexGuard<'_, Table> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
        }
        locked(&self.tables[MINE.with(|mine| *mine) % TABLES])
    }

    /// What was counted since the last time.
    pub(crate) fn take(&self) -> UsageReport {
        let since = std::mem::replace(&mut *locked(&self.since), SystemTime::now());
        let (mut all, mut others) = (FastMap::default(), Counts::default());
        for table in &self.tables {
            let table = std::mem::take(&mut *locked(table));
            let bytes = table.rows.values().map(Row::bytes).sum();
            self.rows.fetch_sub(table.rows.len(), Ordering::Relaxed);
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            others.merge(&table.others);
            for (key, row) in table.rows {
                let known: Option<&mut Row> = all.get_mut(&key);
                match known {
                    Some(known) => known.counts.merge(&row.counts),
                    None => drop(all.insert(key, row)),
                }
            }
        }
        let mut rows: Vec<Row> = all.into_values().collect();
        rows.sort_by(|a, b| {
            let key = |row: &Row| (row.name.clone(), row.text.clone(), row.client.name.clone());
            key(a).cmp(&key(b))
        });
        UsageReport {
            since,
            rows,
            others,
        }
    }

    fn add(
        &self,
        (operation, schema): (&PreparedOperation, &Schema),
        client: Option<&ClientIdentity>,
        one: &Noted,
    ) {
        let used = usage_of(operation);
        let said = client.map_or(("", ""), |client| (&*client.name, &*client.version));
        let key = (used.hash, HASHER.hash_one(said));
        let mut table = self.table();
        let table = &mut *table;
        let counts = match table.rows.get_mut(&key) {
            Some(row) => &mut row.counts,
            None => match self.new_row(table, key, (operation, used, schema), said) {
                Some(row) => &mut row.counts,
                None => &mut table.others,
            },
        };
        counts.add(one.nanoseconds, one.is_failed, one.cost);
    }

    fn new_row<'t>(
        &self,
        table: &'t mut Table,
        key: (u64, u64),
        (operation, used, schema): (&PreparedOperation, &OperationUsage, &Schema),
        (client, version): (&str, &str),
    ) -> Option<&'t mut Row> {
        if self.rows.load(Ordering::Relaxed) >= self.options.rows_max {
            return None;
        }
        let (text, fields) = used.text.get_or_init(|| {
            let text: Arc<str> = shown(operation).into();
            (text, coordinates(operation, schema))
        });
        let row = Row {
            text: Arc::clone(text),
            fields: Arc::clone(fields),
            name: operation.name().unwrap_or_default().into(),
            client: ClientIdentity {
                name: shortened(client),
                version: shortened(version),
            },
            counts: Counts::default(),
        };
        let bytes = row.bytes();
        if self.bytes.load(Ordering::Relaxed) + bytes > self.options.bytes_max {
            return None;
        }
        self.rows.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Some(table.rows.entry(key).or_insert(row))
    }
}

/// The document as it is told: without literals, comments and descriptions.
fn shown(operation: &PreparedOperation) -> String {
    let printed = documents::form(operation.document.source());
    without_literals(&printed.unwrap_or_default())
}

/// The schema coordinates of the fields and arguments that an operation uses.
fn coordinates(operation: &PreparedOperation, schema: &Schema) -> Arc<[Box<str>]> {
    let mut out: Vec<Box<str>> = Vec::new();
    for node in operation.operation.fields.as_slice() {
        let FieldRef::Field(field) = node.field else {
            continue;
        };
        let coordinate = schema.field_coordinate(field);
        for arg in &node.args {
            let name = &arg.name;
            out.push(format!("{coordinate}.{name}").into());
        }
        out.push(coordinate.into());
    }
    out.sort_unstable();
    out.dedup();
    out.into()
}

fn shortened(text: &str) -> Box<str> {
    text.get(..text.floor_char_boundary(CLIENT_BYTES_MAX))
        .unwrap_or_default()
        .into()
}

struct Noted {
    nanoseconds: u64,
    is_failed: bool,
    cost: u64,
}

/// An operation under way; counted when it is dropped.
pub(crate) struct UsedOperation {
    usage: Arc<Usage>,
    state: Arc<SchemaState>,
    operation: Arc<PreparedOperation>,
    client: Option<Box<ClientIdentity>>,
    began: Instant,
    /// Whether it was answered with errors.
    is_failed: bool,
    /// What it cost, as far as that is known.
    cost: u64,
}

impl UsedOperation {
    /// Begins with one; `cost` is what it is estimated to cost.
    pub(crate) fn begin(
        usage: &Arc<Usage>,
        state: &Arc<SchemaState>,
        operation: &Arc<PreparedOperation>,
        client: Option<Box<ClientIdentity>>,
        cost: u64,
    ) -> Box<UsedOperation> {
        Box::new(UsedOperation {
            usage: Arc::clone(usage),
            state: Arc::clone(state),
            operation: Arc::clone(operation),
            client,
            began: Instant::now(),
            is_failed: false,
            cost,
        })
    }

    /// It is answered.
    pub(crate) fn finish(used: Option<Box<Self>>, errors: usize, unused: u64) {
        if let Some(mut used) = used {
            used.is_failed = errors > 0;
            used.cost = used.cost.saturating_sub(unused);
        }
    }
}

impl Drop for UsedOperation {
    fn drop(&mut self) {
        let elapsed = self.began.elapsed().as_nanos();
        let one = Noted {
            nanoseconds: u64::try_from(elapsed).unwrap_or(u64::MAX),
            is_failed: self.is_failed,
            cost: self.cost,
        };
        let operation = (&*self.operation, &self.state.supergraph.schema);
        self.usage.add(operation, self.client.as_deref(), &one);
    }
}
