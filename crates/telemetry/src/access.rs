//! The access log: one line per request, with the fields that were chosen.
//!
//! Lines go through [`Lines`], so that a slow disk or terminal never holds up a request.

use std::{
    fs::File,
    io,
    os::fd::AsFd,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, header};
use ogive_base::bounded;
use ogive_json::write_string;

use crate::{
    attributes::Signal,
    lines::{LineCounts, Lines, Target, Trouble},
    operation::Operation,
    record::Record,
};

/// Longest text of one field in bytes.
const TEXT_MAX: usize = 256;

/// How lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineFormat {
    /// A JSON object.
    Json,
    /// `name=value` pairs.
    Text,
}

macro_rules! fields {
    ($( $(#[doc = $doc:literal])* $field:ident = $word:literal, )*) => {
        /// What a line can say.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Field { $( $(#[doc = $doc])* $field, )* }
        impl Field {
            /// All of them.
            pub const ALL: &'static [Field] = &[$( Field::$field ),*];
            /// Its name.
            pub fn word(self) -> &'static str {
                match self { $( Field::$field => $word, )* }
            }
            /// The field of that name.
            pub fn parse(word: &str) -> Option<Field> {
                Field::ALL.iter().copied().find(|field| field.word() == word)
            }
        }
    };
}

fields! {
    /// When the request came, RFC 3339 with milliseconds, in UTC.
    Time = "time",
    /// Its id.
    RequestId = "request_id",
    /// Its trace.
    TraceId = "trace_id",
    /// Address of the client's end of the connection.
    ClientAddress = "client_address",
    /// HTTP method.
    Method = "method",
    /// Path without query string.
    Path = "path",
    /// HTTP status; 499 if the client left.
    Status = "status",
    /// From the head of the request to the response, in milliseconds.
    DurationMs = "duration_ms",
    /// Bytes of the response's body before it is encoded.
    ResponseBytes = "response_bytes",
    /// Name of the operation; in a batch, of the first.
    OperationName = "operation_name",
    /// `query` or `mutation`; in a batch, of the first.
    OperationType = "operation_type",
    /// Number of operations: more than one in a batch.
    Operations = "operations",
    /// Where the plan came from.
    PlanSource = "plan_source",
    /// Number of requests to subgraphs.
    SubgraphRequests = "subgraph_requests",
    /// Number of errors in the responses.
    Errors = "errors",
    /// Code of the refusal.
    Code = "code",
    /// `user-agent` of the client.
    UserAgent = "user_agent",
    /// What the client says it is called (`telemetry.clients`).
    ClientName = "client_name",
    /// The version that it says it has.
    ClientVersion = "client_version",
    /// What its operations were estimated to cost (`demand_control`).
    CostEstimated = "cost_estimated",
    /// What their answers did cost (`actual_cost_mode`).
    CostActual = "cost_actual",
    /// Codes of the limits that it exceeds and that are only measured, with commas between them.
    LimitsExceeded = "limits_exceeded",
    /// Events of a subscription that its client was sent; in the line of its end.
    Events = "events",
    /// How a subscription ended; likewise.
    End = "end",
}

/// The log.
#[derive(Debug)]
pub struct AccessLog {
    fields: Vec<Field>,
    format: LineFormat,
    lines: Lines,
}

/// What a line says besides the record.
#[derive(Clone, Copy, Debug)]
pub struct Finished<'a> {
    /// HTTP status.
    pub status: u16,
    /// Bytes of the response's body.
    pub bytes: u64,
    /// The client's address.
    pub address: Option<std::net::IpAddr>,
    /// The client's headers.
    pub headers: &'a HeaderMap,
    /// Its operations.
    pub operations: &'a [Operation],
}

/// What the line of a subscription's end repeats of the one of its beginning.
#[derive(Debug)]
pub struct StartLine {
    kept: Vec<(Field, Option<Kept>)>,
    attributes: Vec<(&'static str, Box<str>)>,
    started: Instant,
}

#[derive(Debug)]
enum Kept {
    Text(Box<str>),
    Number(u64),
}

enum Shown<'a> {
    Text(&'a str),
    Number(u64),
    Decimal(f64),
}

impl AccessLog {
    /// Starts the writing thread. `path` is the file that lines are appended to; without one they go to standard output.
    pub fn start(path: Option<&str>, format: LineFormat, fields: Vec<Field>) -> io::Result<Self> {
        let target = match path {
            Some(path) => Target::Path(path.into()),
            None => Target::Stream(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
        };
        Ok(AccessLog {
            fields,
            format,
            lines: Lines::start("ogive-access-log", target, tell)?,
        })
    }
    /// Logs a request.
    pub fn log(&self, record: &Record, finished: &Finished<'_>) {
        self.lines
            .push(&line(&self.fields, self.format, record, finished));
    }
    /// What is repeated when a subscription ends.
    pub fn opened(&self, record: &Record, finished: &Finished<'_>) -> StartLine {
        let keep = |field: &Field| {
            let mut kept = None;
            value(*field, record, finished, &mut |shown| {
                kept = match shown {
                    Shown::Text(text) => Some(Kept::Text(bounded(text, TEXT_MAX).into())),
                    Shown::Number(n) => Some(Kept::Number(n)),
                    Shown::Decimal(_) => None,
                };
            });
            (*field, kept)
        };
        let noted = record.attributes();
        let noted = noted.iter().flat_map(|noted| noted.of(Signal::Log));
        StartLine {
            attributes: noted.map(|(name, value)| (name, value.into())).collect(),
            kept: self.fields.iter().map(keep).collect(),
            started: record.started,
        }
    }
    /// Logs that a subscription has ended: how, and how many events its client was sent.
    pub fn ended(&self, opened: &StartLine, events: u64, end: &str) {
        self.lines.push(&end_line(self.format, opened, events, end));
    }
    /// Opens the file anew, because it may have been moved away.
    pub fn reopen(&self) {
        self.lines.reopen();
    }
    /// Waits until the lines so far are written, but not longer than `patience`.
    pub fn finish(&self, patience: Duration) {
        self.lines.finish(patience);
    }
    /// What became of lines so far.
    pub fn counts(&self) -> LineCounts {
        self.lines.counts()
    }
}

fn tell(trouble: Trouble<'_>) {
    match trouble {
        Trouble::Dropped(lines) => tracing::warn!(
            lines,
            "lines of the access log were dropped: they are not written in time"
        ),
        Trouble::Failed(error) => {
            tracing::error!(%error, "the access log cannot be written");
        }
        Trouble::Mended(lines) => {
            tracing::warn!(lines, "the access log is written again; lines are missing");
        }
    }
}

fn line(fields: &[Field], format: LineFormat, record: &Record, done: &Finished<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    for field in fields {
        value(*field, record, done, &mut |shown| {
            write_field(&mut out, format, field.word(), shown);
        });
    }
    if let Some(noted) = &*record.attributes() {
        for (name, value) in noted.of(Signal::Log) {
            write_field(&mut out, format, name, Shown::Text(value));
        }
    }
    write_end(&mut out, format);
    out
}

fn end_line(format: LineFormat, opened: &StartLine, events: u64, end: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    for (field, kept) in &opened.kept {
        let shown = match (field, kept) {
            (Field::DurationMs, _) => Shown::Decimal(opened.started.elapsed().as_secs_f64() * 1e3),
            (Field::Events, _) => Shown::Number(events),
            (Field::End, _) => Shown::Text(end),
            // Of the head alone.
            (Field::ResponseBytes, _) | (_, None) => continue,
            (_, Some(Kept::Text(text))) => Shown::Text(text),
            (_, Some(Kept::Number(n))) => Shown::Number(*n),
        };
        write_field(&mut out, format, field.word(), shown);
    }
    for (name, value) in &opened.attributes {
        write_field(&mut out, format, name, Shown::Text(value));
    }
    write_end(&mut out, format);
    out
}

fn write_field(out: &mut Vec<u8>, format: LineFormat, name: &str, shown: Shown<'_>) {
    match (format, out.is_empty()) {
        (LineFormat::Json, true) => out.push(b'{'),
        (LineFormat::Json, false) => out.push(b','),
        (LineFormat::Text, true) => {}
        (LineFormat::Text, false) => out.push(b' '),
    }
    match format {
        LineFormat::Json => {
            write_string(out, name);
            out.push(b':');
        }
        LineFormat::Text => {
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
        }
    }
    match shown {
        Shown::Number(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Shown::Decimal(n) => out.extend_from_slice(format!("{n:.3}").as_bytes()),
        Shown::Text(text) => {
            let text = &*bounded(text, TEXT_MAX);
            let bare = text
                .bytes()
                .all(|b| b.is_ascii_graphic() && b != b'"' && b != b'=');
            match format {
                LineFormat::Text if bare && !text.is_empty() => {
                    out.extend_from_slice(text.as_bytes());
                }
                _ => write_string(out, text),
            }
        }
    }
}

fn write_end(out: &mut Vec<u8>, format: LineFormat) {
    if format == LineFormat::Json {
        if out.is_empty() {
            out.push(b'{');
        }
        out.push(b'}');
    }
    out.push(b'\n');
}

/// Calls `show` with the field's value, if it has one.
fn value(field: Field, record: &Record, done: &Finished<'_>, show: &mut dyn FnMut(Shown<'_>)) {
    let first = done.operations.first();
    match field {
        Field::Time => show(Shown::Text(&rfc3339(record.time))),
        Field::RequestId => {
            if let Some(id) = record.request_id.as_ref().and_then(|id| id.to_str().ok()) {
                show(Shown::Text(id));
            }
        }
        Field::TraceId => {
            if let Some(trace) = &record.trace {
                show(Shown::Text(&format!("{:032x}", trace.trace_id)));
            }
        }
        Field::ClientAddress => {
            if let Some(address) = done.address {
                show(Shown::Text(&address.to_string()));
            }
        }
        // Known when it is over.
        Field::Events | Field::End => {}
        Field::Method => show(Shown::Text(record.method)),
        Field::Path => show(Shown::Text(&record.path)),
        Field::Status => show(Shown::Number(u64::from(done.status))),
        Field::DurationMs => show(Shown::Decimal(record.now().as_secs_f64() * 1e3)),
        Field::ResponseBytes => show(Shown::Number(done.bytes)),
        Field::OperationName => {
            if let Some(name) = first.and_then(|o| o.name.as_deref()) {
                show(Shown::Text(name));
            }
        }
        Field::OperationType => {
            if let Some(kind) = first.map(|o| o.kind).filter(|kind| !kind.is_empty()) {
                show(Shown::Text(kind));
            }
        }
        Field::Operations => show(Shown::Number(done.operations.len() as u64)),
        Field::PlanSource => {
            if let Some(source) = first.map(|o| o.plan_source).filter(|s| !s.is_empty()) {
                show(Shown::Text(source));
            }
        }
        Field::CostEstimated => {
            let costs = done.operations.iter().filter_map(|o| o.cost_estimated);
            if let Some(cost) = costs.reduce(u64::saturating_add) {
                show(Shown::Number(cost));
            }
        }
        Field::CostActual => {
            let costs = done.operations.iter().filter_map(|o| o.cost_actual);
            if let Some(cost) = costs.reduce(u64::saturating_add) {
                show(Shown::Number(cost));
            }
        }
        Field::LimitsExceeded => {
            let exceeded = record.limits_exceeded();
            if !exceeded.is_empty() {
                show(Shown::Text(&exceeded.join(",")));
            }
        }
        Field::SubgraphRequests => {
            let calls: usize = done.operations.iter().map(|o| o.calls.len()).sum();
            show(Shown::Number(calls as u64));
        }
        Field::Errors => {
            let errors: usize = done.operations.iter().map(|o| o.errors).sum();
            show(Shown::Number(errors as u64));
        }
        Field::Code => {
            if let Some(code) = record.told_code() {
                show(Shown::Text(code));
            }
        }
        Field::ClientName | Field::ClientVersion => {
            if let Some(client) = &record.client {
                let text = if field == Field::ClientName {
                    &client.name
                } else {
                    &client.version
                };
                if !text.is_empty() {
                    show(Shown::Text(text));
                }
            }
        }
        Field::UserAgent => {
            let agent = done.headers.get(header::USER_AGENT);
            if let Some(agent) = agent.and_then(|v| v.to_str().ok()) {
                show(Shown::Text(agent));
            }
        }
    }
}

/// A time in UTC with milliseconds; days to dates after H. Hinnant's `civil_from_days`.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (seconds, ms) = (since.as_secs(), since.subsec_millis());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that the day that comes and goes is the last of the year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12 + 1;
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let at = |s: u64| rfc3339(UNIX_EPOCH + Duration::from_secs(s));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_763_711_956), "2025-11-21T07:59:16.000Z");
        assert_eq!(at(4_102_444_800), "2100-01-01T00:00:00.000Z");
    }

    #[test]
    fn fields_are_found_by_their_words() {
        for field in Field::ALL {
            assert_eq!(Field::parse(field.word()), Some(*field));
        }
    }
}
