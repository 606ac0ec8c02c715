//! What went wrong, told to operators: one line in the log and one count per failure.
//!
//! Lines of one kind (subgraph and code) are limited, so that a flood of failures cannot fill a disk: the first
//! [`BURST`] are written, then one per [`INTERVAL`], which says how many were left out since the last one. Everything is
//! counted. Text from outside is bounded, on one line, and without what looks like credentials ([`told`]).

use std::{
    borrow::Cow,
    fmt::Display,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ogive_base::{
    FastMap,
    foreign::{MESSAGE_BYTES_MAX, NAME_BYTES_MAX, bounded, bounded_name, bounded_string},
};

use ogive_failure::{ErrorCode, Origin};

use crate::{credentials::without_credentials, record::Record};

/// Lines of one kind that are written at once.
pub const BURST: u32 = 10;
/// How often one is written beyond them.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Most kinds that are told apart; those beyond are limited together.
const KINDS_MAX: usize = 512;
/// Bytes that are shown of an answer.
const SAMPLE_BYTES_MAX: usize = 200;
/// Bytes of an answer that are looked at for them.
const SAMPLE_READ_MAX: usize = 400;
/// Bytes of any text that are looked through for credentials.
const TOLD_READ_MAX: usize = 16 << 10;

/// How urgent a failure is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Urgency {
    /// Nothing to do: a client's affair, which metrics and access log have.
    Debug,
    /// May be as it should be: a subgraph reports an error, or does not know an entity.
    Info,
    /// An operator must act.
    Warn,
    /// The gateway is at fault.
    Error,
}

/// One failure.
#[derive(Clone, Copy, Debug)]
pub struct FailureLine<'a> {
    /// What happened, in general.
    pub what: &'static str,
    /// How urgent it is.
    pub urgency: Urgency,
    /// The subgraph to blame; empty if it is none.
    pub subgraph: &'a str,
    /// Its code.
    pub code: &'a str,
    /// What happened in this case.
    pub cause: &'a str,
    /// Name of the operation.
    pub operation: Option<&'a str>,
    /// Where in the client's response.
    pub path: &'a str,
    /// In how many places.
    pub places: u32,
    /// HTTP status of the subgraph's answer, or of the refusal.
    pub status: Option<u16>,
    /// The beginning of what came.
    pub answer: Option<&'a [u8]>,
    /// The request.
    pub record: Option<&'a Record>,
}

impl<'a> FailureLine<'a> {
    /// A failure of which no more is known.
    pub fn new(what: &'static str, urgency: Urgency, code: &'a str) -> Self {
        FailureLine {
            what,
            urgency,
            subgraph: "",
            code,
            cause: "",
            operation: None,
            path: "",
            places: 1,
            status: None,
            answer: None,
            record: None,
        }
    }
}

/// Which lines are written.
#[derive(Debug, Default)]
pub struct Failures {
    kinds: Mutex<Kinds>,
    suppressed: AtomicU64,
}

/// The kinds of failures that are told apart: by subgraph and code, so that a known one is found without a copy of either.
#[derive(Debug, Default)]
struct Kinds {
    by_subgraph: FastMap<Box<str>, FastMap<Box<str>, Kind>>,
    /// How many there are.
    len: usize,
}

impl Kinds {
    /// A kind, made if there is room for another one; otherwise that of all others.
    fn of(&mut self, subgraph: &str, code: &str, now: Instant) -> &mut Kind {
        let is_known = |codes: &FastMap<Box<str>, Kind>| codes.contains_key(code);
        let is_known = self.by_subgraph.get(subgraph).is_some_and(is_known);
        let (subgraph, code) = if is_known || self.len < KINDS_MAX {
            (subgraph, code)
        } else {
            ("", "")
        };
        if !self.by_subgraph.contains_key(subgraph) {
            self.by_subgraph.insert(subgraph.into(), FastMap::default());
        }
        let codes = self.by_subgraph.get_mut(subgraph);
        let codes = codes.expect("it was there or is now");
        if !codes.contains_key(code) {
            self.len += 1;
            codes.insert(code.into(), Kind::new(now));
        }
        codes.get_mut(code).expect("it was there or is now")
    }
}

/// One kind of failure.
#[derive(Debug)]
struct Kind {
    /// Lines that may still be written at once.
    left: u32,
    refilled: Instant,
    suppressed: u64,
}

impl Kind {
    fn new(now: Instant) -> Self {
        Kind {
            left: BURST,
            refilled: now,
            suppressed: 0,
        }
    }
    /// Whether a line may be written; if so, how many were not since the last one.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        let passed = now.saturating_duration_since(self.refilled).as_secs_f64();
        let more = (passed / INTERVAL.as_secs_f64()) as u32;
        if more > 0 {
            self.left = self.left.saturating_add(more).min(BURST);
            self.refilled = now;
        }
        match self.left {
            0 => {
                self.suppressed += 1;
                None
            }
            _ => {
                self.left -= 1;
                Some(std::mem::take(&mut self.suppressed))
            }
        }
    }
}

impl Failures {
    /// Whether a line of this kind may be written; if so, how many were not since the last one.
    fn admit(&self, subgraph: &str, code: &str, now: Instant) -> Option<u64> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = kinds.of(subgraph, code, now).admit(now);
        drop(kinds);
        if admitted.is_none() {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
        }
        admitted
    }
    /// Lines that were not written because there were many like them.
    pub fn suppressed(&self) -> u64 {
        self.suppressed.load(Ordering::Relaxed)
    }
    /// Says how many lines of each kind were left out, of kinds of which none was written for a while.
    pub fn settle(&self) {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        let mut len = 0;
        kinds.by_subgraph.retain(|subgraph, codes| {
            codes.retain(|code, kind| {
                let is_quiet = kind.refilled.elapsed() >= 10 * INTERVAL;
                if is_quiet && kind.suppressed > 0 {
                    due.push((subgraph.clone(), code.clone(), kind.suppressed));
                }
                !is_quiet
            });
            len += codes.len();
            !codes.is_empty()
        });
        kinds.len = len;
        drop(kinds);
        for (subgraph, code, suppressed) in due {
            let subgraph = (!subgraph.is_empty()).then_some(&*subgraph);
            tracing::warn!(
                subgraph,
                code = &*code,
                suppressed,
                "failures like others were not logged"
            );
        }
    }
    /// Writes the line, if it may be written.
    pub fn tell(&self, line: &FailureLine<'_>) {
        let is_on = match line.urgency {
            Urgency::Debug => tracing::enabled!(tracing::Level::DEBUG),
            Urgency::Info => tracing::enabled!(tracing::Level::INFO),
            Urgency::Warn => tracing::enabled!(tracing::Level::WARN),
            Urgency::Error => tracing::enabled!(tracing::Level::ERROR),
        };
        if !is_on {
            return;
        }
        // Most codes are those of the table, and most others look like them.
        let code = if is_plain_code(line.code) {
            Cow::Borrowed(line.code)
        } else {
            Cow::Owned(told(line.code, NAME_BYTES_MAX))
        };
        if let Some(suppressed) = self.admit(line.subgraph, &code, Instant::now()) {
            write(line, &code, suppressed);
        }
    }
}

/// Writes the line. Fields without a value are left out.
fn write(line: &FailureLine<'_>, code: &str, suppressed: u64) {
    let what = line.what;
    let subgraph = (!line.subgraph.is_empty()).then_some(line.subgraph);
    let operation = line.operation.map(bounded_name);
    let operation = operation.as_deref();
    let path = (!line.path.is_empty()).then_some(line.path);
    let places = (line.places > 1).then_some(line.places);
    let (status, record) = (line.status, line.record);
    let request_id = record.and_then(|record| record.request_id.as_ref());
    let request_id = request_id.and_then(|id| id.to_str().ok());
    let trace_id = record.and_then(|record| record.trace.as_ref());
    let trace_id = trace_id.map(|trace| format!("{:032x}", trace.trace_id));
    let trace_id = trace_id.as_deref();
    let cause = told(line.cause, MESSAGE_BYTES_MAX);
    let cause = (!cause.is_empty()).then_some(&*cause);
    let answer = line.answer.map(sample);
    let answer = answer.as_deref();
    let suppressed = (suppressed > 0).then_some(suppressed);
    macro_rules! event {
        ($level:ident) => {
            tracing::$level!(
                subgraph, code, cause, operation, path, places, status, request_id, trace_id,
                answer, suppressed, "{what}"
            )
        };
    }
    match line.urgency {
        Urgency::Debug => event!(debug),
        Urgency::Info => event!(info),
        Urgency::Warn => event!(warn),
        Urgency::Error => event!(error),
    }
}

/// How urgent a failure of that code is.
pub fn urgency(code: ErrorCode) -> Urgency {
    match (code, code.origin()) {
        (ErrorCode::INTERNAL_SERVER_ERROR, _) => Urgency::Error,
        (_, Origin::Client) => Urgency::Debug,
        _ => Urgency::Warn,
    }
}

/// The beginning of an answer, as text.
fn sample(answer: &[u8]) -> String {
    let read = &answer[..answer.len().min(SAMPLE_READ_MAX)];
    let text = told(&String::from_utf8_lossy(read), usize::MAX);
    let end = text.floor_char_boundary(SAMPLE_BYTES_MAX.min(text.len()));
    text[..end].to_owned()
}

/// Text from outside as it may stand in a log: bounded, on one line, without what looks like credentials.
pub fn told(text: &str, bytes_max: usize) -> String {
    let text = bounded(text, TOLD_READ_MAX);
    let mut out = String::with_capacity(text.len());
    for c in without_credentials(&text).chars() {
        match c {
            c if c.is_whitespace() || c.is_control() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            // What changes the direction of text, or cannot be seen.
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' => {
                out.push(char::REPLACEMENT_CHARACTER);
            }
            c => out.push(c),
        }
    }
    // Not before: what is left out may be the name that a credential stands behind.
    bounded_string(out, bytes_max)
}

/// Whether a code is in capitals, as codes are, so that it can be shown as it is.
fn is_plain_code(code: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_';
    code.len() <= NAME_BYTES_MAX && code.bytes().all(is_plain)
}

impl Display for Urgency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Urgency::Debug => "debug",
            Urgency::Info => "info",
            Urgency::Warn => "warn",
            Urgency::Error => "error",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_kind_is_limited_and_says_how_many_are_missing() {
        let failures = Failures::default();
        let begin = Instant::now();
        let admitted = |subgraph, after| failures.admit(subgraph, "X", begin + after);
        let passed = (0..1_000)
            .filter(|_| admitted("a", Duration::ZERO).is_some())
            .count();
        assert_eq!(passed, BURST as usize);
        // Others are not concerned.
        assert_eq!(admitted("b", Duration::ZERO), Some(0));
        assert_eq!(admitted("a", INTERVAL), Some(990));
        assert_eq!(admitted("a", INTERVAL), None);
        assert_eq!(failures.suppressed(), 991);
        for n in 0..2 * KINDS_MAX {
            failures.admit("c", &n.to_string(), begin);
        }
        assert!(failures.kinds.lock().unwrap().len <= KINDS_MAX + 1);
        // Those that came first are told apart all the same.
        assert_eq!(failures.admit("b", "X", begin), Some(0));
        failures.settle();
        assert!(failures.kinds.lock().unwrap().len <= KINDS_MAX + 1);
    }

    #[test]
    fn a_kind_that_is_known_is_found_where_it_is() {
        let (mut kinds, now) = (Kinds::default(), Instant::now());
        let first = std::ptr::from_ref(kinds.of("a", "X", now));
        for _ in 0..100 {
            assert_eq!(std::ptr::from_ref(kinds.of("a", "X", now)), first);
        }
        assert_eq!(kinds.len, 1);
        for n in 0..2 * KINDS_MAX {
            kinds.of(&n.to_string(), "X", now);
        }
        assert_eq!(kinds.len, KINDS_MAX + 1);
        let n_kinds: usize = kinds.by_subgraph.values().map(FastMap::len).sum();
        assert_eq!(n_kinds, kinds.len);
        // All others are one.
        let others = std::ptr::from_ref(kinds.of("new", "X", now));
        assert_eq!(std::ptr::from_ref(kinds.of("new", "Y", now)), others);
    }

    #[test]
    fn codes_in_capitals_are_shown_as_they_are() {
        for code in ["NOT_FOUND", "E404", "TOKEN_EXPIRED", ""] {
            assert!(is_plain_code(code));
            assert_eq!(told(code, NAME_BYTES_MAX), code);
        }
        for code in ["a", "A B", "A=B", "Ä", &"A".repeat(NAME_BYTES_MAX + 1)] {
            assert!(!is_plain_code(code), "{code}");
        }
    }

    #[test]
    fn what_looks_like_credentials_is_not_told() {
        for (text, expected) in [
            ("no token here", "no token here"),
            ("Basic usage of it", "Basic usage of it"),
            ("password=hunter2&x=1", "password=[redacted]&x=1"),
            (
                r#"{"token":"abc","b":1}"#,
                r#"{"token":"[redacted]","b":1}"#,
            ),
            (
                "Authorization: Bearer abcdefgh.1 and",
                "Authorization: Bearer [redacted] and",
            ),
            ("Set-Cookie: a=b; c=d\nnext", "Set-Cookie: [redacted] next"),
            (
                "<p>eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x</p>",
                "<p>[redacted]</p>",
            ),
            ("two\r\n\x1b[31mlines", "two [31mlines"),
            ("a\u{202e}b", "a\u{fffd}b"),
        ] {
            assert_eq!(told(text, 1_000), expected);
        }
        assert!(told(&"ä".repeat(10_000), 100).len() <= 100);
        assert!(told(&"token=a;".repeat(100), 800).len() <= 800);
        let cut = format!("{}password={}", "x".repeat(500), "s".repeat(800));
        assert!(!told(&cut, 1_000).contains("sss"));
        assert!(sample(&[0xff; 10_000]).len() <= SAMPLE_BYTES_MAX);
    }

    /// What a subscriber writes, kept.
    #[derive(Clone, Default)]
    struct Kept(std::sync::Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn text_and_json_say_the_same() {
        let line = FailureLine {
            what: "a request to a subgraph failed",
            urgency: Urgency::Warn,
            subgraph: "inventory",
            code: "X",
            cause: "a \"cause\"",
            operation: Some("Costs"),
            path: "a.0.b",
            places: 2,
            status: Some(502),
            answer: Some(b"<html>"),
            record: None,
        };
        let (text, json) = (Kept::default(), Kept::default());
        let of = text.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .compact()
            .with_writer(move || of.clone());
        tracing::subscriber::with_default(subscriber.finish(), || write(&line, "X", 3));
        let of = json.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_writer(move || of.clone());
        tracing::subscriber::with_default(subscriber.finish(), || write(&line, "X", 3));
        let read = |kept: &Kept| String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let (text, json) = (read(&text), read(&json));
        assert_eq!((text.lines().count(), json.lines().count()), (1, 1));
        for (name, value) in [
            ("subgraph", "\"inventory\""),
            ("code", "\"X\""),
            ("cause", "\"a \\\"cause\\\"\""),
            ("operation", "\"Costs\""),
            ("path", "\"a.0.b\""),
            ("places", "2"),
            ("status", "502"),
            ("answer", "\"<html>\""),
            ("suppressed", "3"),
        ] {
            assert!(text.contains(&format!("{name}={value}")), "{name}: {text}");
            assert!(
                json.contains(&format!("\"{name}\":{value}")),
                "{name}: {json}"
            );
        }
        assert!(text.contains(line.what) && json.contains(line.what));
        assert!(!text.contains("request_id") && !json.contains("request_id"));
    }
}
