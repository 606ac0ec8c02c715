//! Many subgraphs in one process: delays, faults, counters, the answer cache and the request log. Everything but
//! sockets and sleeping, so tests can use it as an in-memory transport.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use ogive_base::FastMap;
use serde_json::{Value, json};

use crate::{
    delay::Delay,
    events::EventSchedule,
    fault::{Fault, FaultKind, coordinate_faults, shorten_entities},
    subgraph::{Answer, Subgraph},
};

/// Requests kept by the request log; older ones are dropped.
pub const LOG_MAX: usize = 1000;
/// Default size of one subgraph's answer cache.
pub const CACHE_BYTES: usize = 64 << 20;

/// How one subgraph behaves; can be changed while it serves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Held back at least so long, counted from the arrival of the whole request.
    pub delay: Delay,
    /// Ways to fail.
    pub faults: Vec<Fault>,
    /// Answers are remembered by request body.
    pub cache: bool,
    /// Most bytes of remembered requests and answers.
    pub cache_bytes_max: usize,
    /// Requests are logged with their headers.
    pub record: bool,
    /// The events of subscriptions.
    pub events: EventSchedule,
    /// Obey the request headers `x-mock-fault` and `x-mock-delay`.
    pub headers: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            delay: Delay::default(),
            faults: Vec::new(),
            cache: true,
            cache_bytes_max: CACHE_BYTES,
            record: false,
            events: EventSchedule::default(),
            headers: true,
        }
    }
}

/// How the body goes over the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// At once.
    Whole,
    /// Not at all: the connection is closed without an answer.
    Drop,
    /// Half of it, then the connection is closed.
    Truncate,
    /// In pieces over this time.
    Slow(Duration),
}

/// What to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// `content-type`.
    pub content_type: &'static str,
    /// The body.
    pub body: Bytes,
    /// Not before so long after the request came.
    pub delay: Duration,
    /// How to send it.
    pub transfer: Transfer,
}

/// One logged request.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Subgraph asked.
    pub subgraph: Arc<str>,
    /// Headers in order of arrival.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

/// Counters of one subgraph since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// GraphQL requests.
    pub requests: u64,
    /// Representations asked for.
    pub entities: u64,
    /// Bytes of request bodies.
    pub bytes_in: u64,
    /// Bytes of response bodies.
    pub bytes_out: u64,
    /// Responses with GraphQL errors.
    pub errors: u64,
    /// Requests refused with status 400: what a strict subgraph would not accept.
    pub refused: u64,
    /// Faults that struck.
    pub faults: u64,
    /// Answers from the cache.
    pub cache_hits: u64,
}

#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    entities: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    errors: AtomicU64,
    refused: AtomicU64,
    faults: AtomicU64,
    cache_hits: AtomicU64,
}

/// A subgraph with its behaviour and counters.
#[derive(Debug)]
struct Hosted {
    name: Arc<str>,
    subgraph: Subgraph,
    settings: RwLock<Arc<Settings>>,
    counters: Counters,
    delays: AtomicU64,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    answers: FastMap<Bytes, Cached>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Cached {
    body: Bytes,
    status: u16,
    n_entities: usize,
    has_errors: bool,
}

/// Subgraphs by name.
#[derive(Debug, Default)]
pub struct Service {
    subgraphs: Vec<Hosted>,
    by_name: FastMap<Box<str>, usize>,
    log: Mutex<VecDeque<Recorded>>,
}

impl Service {
    /// No subgraphs yet.
    pub fn new() -> Service {
        Service::default()
    }

    /// Adds a subgraph; a later one of the same name replaces the earlier.
    pub fn add(&mut self, name: &str, subgraph: Subgraph, settings: Settings) {
        let hosted = Hosted {
            name: name.into(),
            subgraph,
            settings: RwLock::new(Arc::new(settings)),
            counters: Counters::default(),
            delays: AtomicU64::new(0),
            cache: Mutex::default(),
        };
        match self.by_name.get(name) {
            Some(at) => self.subgraphs[*at] = hosted,
            None => {
                self.by_name.insert(name.into(), self.subgraphs.len());
                self.subgraphs.push(hosted);
            }
        }
    }

    /// Names in order of addition.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.subgraphs.iter().map(|h| &*h.name)
    }

    /// The subgraph of that name.
    pub fn subgraph(&self, name: &str) -> Option<&Subgraph> {
        Some(&self.subgraphs[*self.by_name.get(name)?].subgraph)
    }

    /// Changes how a subgraph behaves; forgets its remembered answers. `false` if there is no such subgraph.
    pub fn configure(&self, name: &str, change: impl FnOnce(&mut Settings)) -> bool {
        let Some(at) = self.by_name.get(name) else {
            return false;
        };
        let hosted = &self.subgraphs[*at];
        let mut settings = hosted
            .settings
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut changed = Settings::clone(&settings);
        change(&mut changed);
        *settings = Arc::new(changed);
        *lock(&hosted.cache) = Cache::default();
        true
    }

    /// Answers a POST of `body` to a subgraph; `None` if there is no such subgraph.
    pub fn respond(&self, name: &str, headers: &[(String, String)], body: &Bytes) -> Option<Reply> {
        let hosted = &self.subgraphs[*self.by_name.get(name)?];
        let settings = hosted.settings();
        if settings.record {
            let mut log = lock(&self.log);
            if log.len() >= LOG_MAX {
                log.pop_front();
            }
            log.push_back(Recorded {
                subgraph: hosted.name.clone(),
                headers: headers.to_vec(),
                body: body.clone(),
            });
        }
        Some(hosted.respond(&settings, headers, body))
    }

    /// The events of a subgraph's subscriptions.
    pub(crate) fn event_schedule(&self, name: &str) -> EventSchedule {
        let hosted = self.by_name.get(name).map(|at| &self.subgraphs[*at]);
        hosted.map_or_else(EventSchedule::default, |h| h.settings().events.clone())
    }

    /// Whether the request is for a subscription.
    pub(crate) fn is_subscription(&self, name: &str, request: &[u8]) -> bool {
        let subgraph = self.subgraph(name);
        subgraph.is_some_and(|subgraph| subgraph.is_subscription(request))
    }

    /// The answer that is the event of that number, counted from 0, and whether there is no other one: that to a query,
    /// or to what cannot be executed.
    pub(crate) fn event(&self, name: &str, request: &[u8], number: u64) -> (Vec<u8>, bool) {
        let Some(at) = self.by_name.get(name) else {
            return (
                b"{\"errors\":[{\"message\":\"No such subgraph.\"}]}".to_vec(),
                true,
            );
        };
        let hosted = &self.subgraphs[*at];
        let settings = hosted.settings();
        let schema = &hosted.subgraph.model().schema;
        let faults = settings.faults.iter();
        let fields = coordinate_faults(schema, faults.filter(|fault| fault.strikes(number + 1)));
        let answer = hosted.subgraph.execute_event(request, &fields, number);
        let counters = &hosted.counters;
        let add = |counter: &AtomicU64, n: usize| counter.fetch_add(n as u64, Ordering::Relaxed);
        add(&counters.requests, usize::from(number == 0));
        add(&counters.errors, usize::from(answer.has_errors));
        add(&counters.bytes_out, answer.body.len());
        let is_last = answer.status != 200 || !hosted.subgraph.is_subscription(request);
        (answer.body, is_last)
    }

    /// The place of the subgraph of that name.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Answers a POST without headers that concern the mock; `None` if the subgraph has faults or records requests, so
    /// that there is more to do than to send the answer. The body is sent whole then.
    pub(crate) fn respond_plainly(&self, place: usize, body: &[u8]) -> Option<Reply> {
        let hosted = &self.subgraphs[place];
        let settings = hosted.settings();
        let is_plain = settings.faults.is_empty() && !settings.record;
        is_plain.then(|| hosted.respond(&settings, &[], body))
    }

    /// Whether requests to a subgraph are logged with all their headers.
    pub fn is_recording(&self, name: &str) -> bool {
        let hosted = self.by_name.get(name).map(|at| &self.subgraphs[*at]);
        hosted.is_some_and(|h| h.settings().record)
    }

    /// Counters of one subgraph.
    pub fn counts(&self, name: &str) -> Option<Counts> {
        let counters = &self.subgraphs[*self.by_name.get(name)?].counters;
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        Some(Counts {
            requests: get(&counters.requests),
            entities: get(&counters.entities),
            bytes_in: get(&counters.bytes_in),
            bytes_out: get(&counters.bytes_out),
            errors: get(&counters.errors),
            refused: get(&counters.refused),
            faults: get(&counters.faults),
            cache_hits: get(&counters.cache_hits),
        })
    }

    /// Counters of all subgraphs together.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for counts in self.names().filter_map(|n| self.counts(n)) {
            total.requests += counts.requests;
            total.entities += counts.entities;
            total.bytes_in += counts.bytes_in;
            total.bytes_out += counts.bytes_out;
            total.errors += counts.errors;
            total.refused += counts.refused;
            total.faults += counts.faults;
            total.cache_hits += counts.cache_hits;
        }
        total
    }

    /// All counters as the JSON of `/stats`.
    pub fn stats(&self) -> Value {
        let subgraphs = self
            .names()
            .filter_map(|n| Some((n.to_string(), counts_json(&self.counts(n)?))));
        json!({
            "total": counts_json(&self.total()),
            "subgraphs": subgraphs.collect::<serde_json::Map<_, _>>(),
        })
    }

    /// Sets all counters to 0 and empties the request log.
    pub fn reset(&self) {
        for hosted in &self.subgraphs {
            let c = &hosted.counters;
            for counter in [
                &c.requests,
                &c.entities,
                &c.bytes_in,
                &c.bytes_out,
                &c.errors,
                &c.refused,
                &c.faults,
                &c.cache_hits,
            ] {
                counter.store(0, Ordering::Relaxed);
            }
        }
        lock(&self.log).clear();
    }

    /// The logged requests, oldest first.
    pub fn recorded(&self) -> Vec<Recorded> {
        lock(&self.log).iter().cloned().collect()
    }
}

impl Hosted {
    fn settings(&self) -> Arc<Settings> {
        let settings = self.settings.read();
        settings.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn respond(&self, settings: &Settings, headers: &[(String, String)], body: &[u8]) -> Reply {
        let add = |counter: &AtomicU64, n: usize| counter.fetch_add(n as u64, Ordering::Relaxed);
        let nth = add(&self.counters.requests, 1) + 1;
        add(&self.counters.bytes_in, body.len());
        let mut delay = settings.delay.draw(&self.delays);
        let mut faults: Vec<Fault> = settings
            .faults
            .iter()
            .filter(|f| f.strikes(nth))
            .cloned()
            .collect();
        if settings.headers {
            for (name, value) in headers {
                let read = match name.as_str() {
                    "x-mock-fault" => Fault::parse_list(value).map(|f| faults.extend(f)),
                    "x-mock-delay" => Delay::parse(value).map(|d| delay = d.draw(&self.delays)),
                    _ => Ok(()),
                };
                if let Err(message) = read {
                    return Reply::text(400, format!("{name}: {message}"));
                }
            }
        }
        add(&self.counters.faults, faults.len());
        for fault in &faults {
            if let FaultKind::Delay(extra) = &fault.kind {
                delay += extra.draw(&self.delays);
            }
        }
        let mut reply = match early(&faults) {
            Some(reply) => reply,
            None => self.answer(settings, &faults, body),
        };
        late(&faults, &mut reply);
        reply.delay = delay;
        add(&self.counters.bytes_out, reply.body.len());
        reply
    }

    fn answer(&self, settings: &Settings, faults: &[Fault], body: &[u8]) -> Reply {
        let changes_fields = faults.iter().any(|f| f.coordinate().is_some());
        let use_cache = settings.cache && !changes_fields;
        let cached = if use_cache {
            lock(&self.cache).answers.get(body).cloned()
        } else {
            None
        };
        let hit = cached.is_some();
        let cached = cached.unwrap_or_else(|| {
            let fields = coordinate_faults(&self.subgraph.model().schema, faults.iter());
            let answer: Answer = self.subgraph.execute_body(body, &fields);
            let cached = Cached {
                status: answer.status,
                n_entities: answer.n_entities,
                has_errors: answer.has_errors,
                body: answer.body.into(),
            };
            if use_cache {
                let mut cache = lock(&self.cache);
                let size = body.len() + cached.body.len();
                if cache.bytes + size <= settings.cache_bytes_max {
                    cache.bytes += size;
                    cache
                        .answers
                        .insert(Bytes::copy_from_slice(body), cached.clone());
                }
            }
            cached
        });
        let counters = &self.counters;
        let add = |counter: &AtomicU64, n: usize| counter.fetch_add(n as u64, Ordering::Relaxed);
        add(&counters.cache_hits, usize::from(hit));
        add(&counters.entities, cached.n_entities);
        add(&counters.errors, usize::from(cached.has_errors));
        add(&counters.refused, usize::from(cached.status == 400));
        Reply {
            status: cached.status,
            content_type: "application/json",
            body: cached.body,
            delay: Duration::ZERO,
            transfer: Transfer::Whole,
        }
    }
}

impl Reply {
    pub(crate) fn new(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
        Reply {
            status,
            content_type,
            body: body.into(),
            delay: Duration::ZERO,
            transfer: Transfer::Whole,
        }
    }
    /// The client likes the GraphQL media type better than plain JSON.
    pub(crate) fn prefer_graphql_json(&mut self) {
        if self.content_type == "application/json" {
            self.content_type = "application/graphql-response+json";
        }
    }
    pub(crate) fn text(status: u16, body: impl Into<Bytes>) -> Reply {
        Reply::new(status, "text/plain; charset=utf-8", body)
    }
}

/// Faults that answer without executing anything.
fn early(faults: &[Fault]) -> Option<Reply> {
    let json = |body: &'static str| Reply::new(200, "application/json", body);
    faults.iter().find_map(|fault| {
        Some(match &fault.kind {
            FaultKind::Status(status) => Reply::text(*status, format!("status {status}")),
            FaultKind::Drop => Reply {
                transfer: Transfer::Drop,
                ..Reply::text(500, "")
            },
            FaultKind::Malformed => json("{\"data\":{\"half\":"),
            FaultKind::Html => Reply::new(
                200,
                "text/html; charset=utf-8",
                "<!doctype html><title>Sorry</title><h1>We'll be back</h1>",
            ),
            FaultKind::Empty => json(""),
            FaultKind::NotAnObject => json("[1,2,3]"),
            FaultKind::NullData => json("{\"data\":null}"),
            FaultKind::RequestError => json(
                "{\"errors\":[{\"message\":\"Injected error\",\"extensions\":{\"code\":\"INJECTED\"}}]}",
            ),
            _ => return None,
        })
    })
}

/// Faults that change how an answer is sent.
fn late(faults: &[Fault], reply: &mut Reply) {
    for fault in faults {
        match &fault.kind {
            FaultKind::Truncate => reply.transfer = Transfer::Truncate,
            FaultKind::SlowBody(time) => reply.transfer = Transfer::Slow(*time),
            FaultKind::ShortEntities => {
                if let Some(short) = shorten_entities(&reply.body) {
                    reply.body = short.into();
                }
            }
            _ => {}
        }
    }
}

fn counts_json(counts: &Counts) -> Value {
    json!({
        "requests": counts.requests,
        "entities": counts.entities,
        "bytes_in": counts.bytes_in,
        "bytes_out": counts.bytes_out,
        "errors": counts.errors,
        "refused": counts.refused,
        "faults": counts.faults,
        "cache_hits": counts.cache_hits,
    })
}

/// A poisoned lock guards complete values here: every write is one assignment or insertion.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
