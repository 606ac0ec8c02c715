//! Which client asks which operation, how often, how long it takes and what it costs: counted beside the requests, and told
//! from time to time ([`report`]). What fields and arguments an operation uses, its text says.
//!
//! Invariants: texts hold no literals of the operation; rows and bytes have limits, and beyond them requests are counted
//! without being told apart, so that who makes up names of clients or operations fills nothing but the table.

pub(crate) mod report;

use std::{
    hash::BuildHasher,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use ogive_base::FastMap;
use ogive_config::Config;
use ogive_operation::FieldRef;
use ogive_schema::Schema;
use ogive_telemetry::operation::ClientIdentity;

use crate::{
    documents,
    schema::{operation::PreparedOperation, state::SchemaState},
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

impl Counts {
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

/// An operation as it is told.
type Text = (Arc<str>, Arc<[Box<str>]>);

#[derive(Debug)]
struct Table {
    since: SystemTime,
    /// By hash of operation and client.
    rows: FastMap<(u64, u64), Row>,
    texts: FastMap<u64, Text>,
    bytes: usize,
    others: Counts,
}

impl Default for Table {
    fn default() -> Self {
        Table {
            since: SystemTime::now(),
            rows: FastMap::default(),
            texts: FastMap::default(),
            bytes: 0,
            others: Counts::default(),
        }
    }
}

/// What one process counts.
#[derive(Debug)]
pub(crate) struct Usage {
    pub(crate) options: UsageOptions,
    table: Mutex<Table>,
    hasher: foldhash::fast::RandomState,
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
            table: Mutex::default(),
            hasher: foldhash::fast::RandomState::default(),
        }
    }

    // Numbers cannot be left half written.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was counted since the last time.
    pub(crate) fn take(&self) -> UsageReport {
        let table = std::mem::take(&mut *self.table());
        let mut rows: Vec<Row> = table.rows.into_values().collect();
        rows.sort_by(|a, b| {
            let key = |row: &Row| (row.name.clone(), row.text.clone(), row.client.name.clone());
            key(a).cmp(&key(b))
        });
        UsageReport {
            since: table.since,
            rows,
            others: table.others,
        }
    }

    fn add(
        &self,
        (operation, schema): (&PreparedOperation, &Schema),
        client: Option<&ClientIdentity>,
        one: &Noted,
    ) {
        let name = operation.name().unwrap_or_default();
        let source = operation.document.source();
        let hash = self.hasher.hash_one((source, name));
        let said = client.map_or(("", ""), |client| (&*client.name, &*client.version));
        let key = (hash, self.hasher.hash_one(said));
        let mut table = self.table();
        let table = &mut *table;
        let counts = match table.rows.get_mut(&key) {
            Some(row) => &mut row.counts,
            None => match self.new_row(table, key, (operation, name, schema), said) {
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
        (operation, name, schema): (&PreparedOperation, &str, &Schema),
        (client, version): (&str, &str),
    ) -> Option<&'t mut Row> {
        if table.rows.len() >= self.options.rows_max {
            return None;
        }
        let (text, fields) = match table.texts.get(&key.0) {
            Some(text) => text.clone(),
            None => {
                let text: Arc<str> = shown(operation).into();
                let is_told = self.options.hive.is_some();
                let fields = is_told.then(|| coordinates(operation, schema));
                let fields = fields.unwrap_or_default();
                let bytes = text.len() + fields.iter().map(|field| field.len()).sum::<usize>();
                if table.bytes + bytes > self.options.bytes_max {
                    return None;
                }
                table.bytes += bytes;
                let text = (text, fields);
                table.texts.insert(key.0, text.clone());
                text
            }
        };
        let row = Row {
            text,
            fields,
            name: name.into(),
            client: ClientIdentity {
                name: shortened(client),
                version: shortened(version),
            },
            counts: Counts::default(),
        };
        Some(table.rows.entry(key).or_insert(row))
    }
}

/// The document as it is told: without literals, comments and descriptions.
fn shown(operation: &PreparedOperation) -> String {
    let printed = documents::form(operation.document.source());
    without_literals(&printed.unwrap_or_default())
}

/// A printed document with `0` for every number and `""` for every text: names, mail addresses or keys that belong in
/// variables are nothing to tell others.
fn without_literals(printed: &str) -> String {
    let mut out = String::with_capacity(printed.len());
    let mut rest = printed;
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match first {
            '"' => {
                out.push_str("\"\"");
                text_length(rest)
            }
            '-' | '0'..='9' => {
                out.push('0');
                let is_number = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
                rest.find(|c| !is_number(c)).unwrap_or(rest.len())
            }
            c if is_name(c) => {
                let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                out.push_str(rest.get(..length).unwrap_or_default());
                length
            }
            c => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// Bytes of the string that a text begins with.
fn text_length(text: &str) -> usize {
    let quotes = if text.starts_with("\"\"\"") {
        "\"\"\""
    } else {
        "\""
    };
    let mut at = quotes.len();
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let Some(found) = rest.find(['"', '\\']) else {
            return text.len();
        };
        at += found;
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with(quotes) {
            return at + quotes.len();
        }
        let escaped = if rest.starts_with("\\\"\"\"") && quotes.len() == 3 {
            4
        } else {
            2
        };
        at += if rest.starts_with('\\') { escaped } else { 1 };
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_left_out_wherever_they_are() {
        let text = "query A1($a: [Int] = [1, -2] @x(y: \"\u{e9}\\\" 5\")) { b2(c: {d: [3.5e-1, {e: \"\"\"f \\\"\"\" \"g\" \"\"\"}], g: RED_1}, h: true, i: $a1) ... on L { m(n: \"\") } }";
        assert_eq!(
            without_literals(text),
            "query A1($a: [Int] = [0, 0] @x(y: \"\")) { b2(c: {d: [0, {e: \"\"}], g: RED_1}, h: true, i: $a1) ... on L { m(n: \"\") } }"
        );
    }
}
