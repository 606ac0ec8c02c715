//! Traces that span processes: reading the client's context, writing ours for subgraphs.
//!
//! Formats: W3C `traceparent` and `tracestate`, Zipkin's B3 (`b3`, or the `x-b3-` headers), Jaeger's `uber-trace-id` and
//! Datadog's `x-datadog-` headers. The first one that is switched on and well-formed counts, in this order; all that are
//! switched on are written. Whatever is malformed counts as absent: a client must not be able to break a request with it.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Which formats are read and written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Propagation {
    /// W3C trace context; default on.
    pub trace_context: bool,
    /// W3C `baggage` is passed on; default off.
    pub baggage: bool,
    /// Zipkin's B3; default off.
    pub b3: bool,
    /// Jaeger; default off.
    pub jaeger: bool,
    /// Datadog; default off.
    pub datadog: bool,
}

impl Default for Propagation {
    fn default() -> Self {
        Propagation {
            trace_context: true,
            baggage: false,
            b3: false,
            jaeger: false,
            datadog: false,
        }
    }
}

/// Where a request is in its trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: u128,
    /// The span of the request in the gateway.
    pub span_id: u64,
    /// The span of whoever asked; 0 if nobody told.
    pub parent_id: u64,
    /// Whether the trace is recorded.
    pub sampled: bool,
    /// `tracestate`, passed on unread.
    pub state: Option<HeaderValue>,
    /// `baggage`, passed on unread.
    pub baggage: Option<HeaderValue>,
}

/// What a client told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parent {
    /// The trace.
    pub trace_id: u128,
    /// The client's span.
    pub span_id: u64,
    /// Whether the client records it; `None` leaves it to us.
    pub sampled: Option<bool>,
}

impl TraceContext {
    /// Appends what the client said and subgraphs are told word for word, because they may answer by it. Ids are not
    /// among it: they name a request, and say nothing about who asks or what for.
    pub fn write_identity(&self, to: &mut Vec<u8>) {
        for value in [&self.state, &self.baggage] {
            let Some(value) = value else {
                to.push(0);
                continue;
            };
            to.push(1);
            to.extend_from_slice(&(value.len() as u64).to_ne_bytes());
            to.extend_from_slice(value.as_bytes());
        }
    }
}

static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
static BAGGAGE: HeaderName = HeaderName::from_static("baggage");
static B3: HeaderName = HeaderName::from_static("b3");
static B3_TRACE: HeaderName = HeaderName::from_static("x-b3-traceid");
static B3_SPAN: HeaderName = HeaderName::from_static("x-b3-spanid");
static B3_SAMPLED: HeaderName = HeaderName::from_static("x-b3-sampled");
static UBER: HeaderName = HeaderName::from_static("uber-trace-id");
static DD_TRACE: HeaderName = HeaderName::from_static("x-datadog-trace-id");
static DD_PARENT: HeaderName = HeaderName::from_static("x-datadog-parent-id");
static DD_PRIORITY: HeaderName = HeaderName::from_static("x-datadog-sampling-priority");
static DD_TAGS: HeaderName = HeaderName::from_static("x-datadog-tags");

/// Reads one format.
type Read = fn(&HeaderMap) -> Option<Parent>;

impl Propagation {
    /// What the headers tell.
    pub fn read(&self, headers: &HeaderMap) -> Option<Parent> {
        let formats: [(bool, Read); 4] = [
            (self.trace_context, read_trace_context),
            (self.b3, read_b3),
            (self.jaeger, read_jaeger),
            (self.datadog, read_datadog),
        ];
        let mut found = formats.iter().filter(|(on, _)| *on);
        found.find_map(|(_, read)| read(headers).filter(|p| p.trace_id != 0 && p.span_id != 0))
    }

    /// The context of a new span of the gateway: a child of what the headers tell, or the root of a new trace.
    /// `decide` is asked whether a trace is recorded if the client does not say.
    pub fn context(
        &self,
        headers: &HeaderMap,
        new_id: &mut dyn FnMut() -> u64,
        decide: &dyn Fn(Option<bool>, u128) -> bool,
    ) -> TraceContext {
        let parent = self.read(headers);
        let trace_id = match parent {
            Some(parent) => parent.trace_id,
            None => u128::from(new_id()) << 64 | u128::from(new_id()),
        };
        let passed = |on: bool, name: &HeaderName| headers.get(name).filter(|_| on).cloned();
        TraceContext {
            trace_id,
            span_id: new_id(),
            parent_id: parent.map_or(0, |p| p.span_id),
            sampled: decide(parent.and_then(|p| p.sampled), trace_id),
            state: passed(self.trace_context && parent.is_some(), &TRACESTATE),
            baggage: passed(self.baggage, &BAGGAGE),
        }
    }

    /// Writes the headers of a request that the gateway's span `span_id` sends.
    pub fn write(&self, context: &TraceContext, span_id: u64, headers: &mut HeaderMap) {
        let mut insert = |name: &HeaderName, value: String| {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        };
        let (trace, flag) = (context.trace_id, u8::from(context.sampled));
        if self.trace_context {
            insert(
                &TRACEPARENT,
                format!("00-{trace:032x}-{span_id:016x}-{flag:02x}"),
            );
        }
        if self.b3 {
            insert(&B3, format!("{trace:032x}-{span_id:016x}-{flag}"));
            insert(&B3_TRACE, format!("{trace:032x}"));
            insert(&B3_SPAN, format!("{span_id:016x}"));
            insert(&B3_SAMPLED, flag.to_string());
        }
        if self.jaeger {
            insert(&UBER, format!("{trace:032x}:{span_id:016x}:0:{flag}"));
        }
        if self.datadog {
            insert(&DD_TRACE, (trace as u64).to_string());
            insert(&DD_PARENT, span_id.to_string());
            insert(&DD_PRIORITY, flag.to_string());
            insert(&DD_TAGS, format!("_dd.p.tid={:016x}", (trace >> 64) as u64));
        }
        if let Some(state) = &context.state {
            headers.insert(&TRACESTATE, state.clone());
        }
        if let Some(baggage) = &context.baggage {
            headers.insert(&BAGGAGE, baggage.clone());
        }
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// So many lower-case hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let ok = text.len() == digits
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    ok.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

fn read_trace_context(headers: &HeaderMap) -> Option<Parent> {
    let mut parts = text(headers, &TRACEPARENT)?.split('-');
    let version = hex(parts.next()?, 2).filter(|version| *version != 0xff)?;
    let (trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?);
    // Later versions may add parts.
    if version == 0 && parts.next().is_some() {
        return None;
    }
    Some(Parent {
        trace_id: hex(trace, 32)?,
        span_id: hex(span, 16)? as u64,
        sampled: Some(hex(flags, 2)? & 1 == 1),
    })
}

fn read_b3(headers: &HeaderMap) -> Option<Parent> {
    let (trace, span, sampled) = match text(headers, &B3) {
        Some(single) => {
            let mut parts = single.split('-');
            (parts.next()?, parts.next()?, parts.next())
        }
        None => (
            text(headers, &B3_TRACE)?,
            text(headers, &B3_SPAN)?,
            text(headers, &B3_SAMPLED),
        ),
    };
    Some(Parent {
        trace_id: hex(trace, 32).or_else(|| hex(trace, 16))?,
        span_id: hex(span, 16)? as u64,
        sampled: match sampled {
            Some("1" | "d" | "true") => Some(true),
            Some("0" | "false") => Some(false),
            _ => None,
        },
    })
}

fn read_jaeger(headers: &HeaderMap) -> Option<Parent> {
    let whole = text(headers, &UBER)?.replace("%3A", ":");
    let mut parts = whole.split(':');
    let (trace, span) = (parts.next()?, parts.next()?);
    let flags = parts.nth(1)?;
    // Leading zeros may be left out.
    let number = |text: &str, digits: usize| hex(&format!("{text:0>digits$}"), digits);
    Some(Parent {
        trace_id: number(trace, 32)?,
        span_id: number(span, 16)? as u64,
        sampled: Some(number(flags, 2)? & 1 == 1),
    })
}

fn read_datadog(headers: &HeaderMap) -> Option<Parent> {
    let low: u64 = text(headers, &DD_TRACE)?.parse().ok()?;
    // The upper half travels among the tags.
    let mut tags = text(headers, &DD_TAGS).unwrap_or_default().split(',');
    let high = tags.find_map(|tag| hex(tag.strip_prefix("_dd.p.tid=")?, 16));
    let priority = text(headers, &DD_PRIORITY).and_then(|p| p.parse::<i64>().ok());
    Some(Parent {
        trace_id: high.unwrap_or(0) << 64 | u128::from(low),
        span_id: text(headers, &DD_PARENT)?.parse().ok()?,
        sampled: priority.map(|p| p > 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Propagation = Propagation {
        trace_context: true,
        baggage: true,
        b3: true,
        jaeger: true,
        datadog: true,
    };
    const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;

    fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn every_format_is_read() {
        let told = |headers: &[(&'static str, &'static str)]| ALL.read(&map(headers)).unwrap();
        let w3c = told(&[(
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        )]);
        assert_eq!(
            (w3c.trace_id, w3c.span_id, w3c.sampled),
            (TRACE, 0x00f0_67aa_0ba9_02b7, Some(true))
        );
        let b3 = told(&[("b3", "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0")]);
        assert_eq!((b3.trace_id, b3.sampled), (TRACE, Some(false)));
        let b3 = told(&[
            ("x-b3-traceid", "a3ce929d0e0e4736"),
            ("x-b3-spanid", "00f067aa0ba902b7"),
        ]);
        assert_eq!((b3.trace_id, b3.sampled), (0xa3ce_929d_0e0e_4736, None));
        let jaeger = told(&[("uber-trace-id", "a3ce:2b7:0:1")]);
        assert_eq!(
            (jaeger.trace_id, jaeger.span_id, jaeger.sampled),
            (0xa3ce, 0x2b7, Some(true))
        );
        let datadog = told(&[
            ("x-datadog-trace-id", "11803532876627986230"),
            ("x-datadog-parent-id", "67667974448284343"),
            ("x-datadog-sampling-priority", "1"),
            ("x-datadog-tags", "a=b,_dd.p.tid=4bf92f3577b34da6"),
        ]);
        assert_eq!(
            (datadog.trace_id, datadog.span_id),
            (TRACE, 0x00f0_67aa_0ba9_02b7)
        );
    }

    #[test]
    fn what_is_malformed_counts_as_absent() {
        for value in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", HeaderValue::from_str(value).unwrap());
            assert_eq!(ALL.read(&headers), None, "{value}");
        }
        assert_eq!(ALL.read(&map(&[("uber-trace-id", "x:1:0:1")])), None);
        assert_eq!(ALL.read(&map(&[("b3", "0")])), None);
        assert_eq!(
            ALL.read(&map(&[
                ("x-datadog-trace-id", "-5"),
                ("x-datadog-parent-id", "1")
            ])),
            None
        );
    }

    #[test]
    fn callers_are_told_apart_by_what_is_passed_on_word_for_word() {
        let mut next = 0;
        let mut identity = |more: &[(&'static str, &'static str)]| {
            let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
            let headers = [&[("traceparent", parent)], more].concat();
            let mut id = || {
                next += 1;
                next
            };
            let context = ALL.context(&map(&headers), &mut id, &|_, _| true);
            let mut identity = Vec::new();
            context.write_identity(&mut identity);
            identity
        };
        // Ids, which are other ones each time, do not.
        assert_eq!(
            identity(&[("baggage", "u=a")]),
            identity(&[("baggage", "u=a")])
        );
        let all = [
            identity(&[]),
            identity(&[("baggage", "u=a")]),
            identity(&[("baggage", "u=b")]),
            identity(&[("tracestate", "u=a")]),
            identity(&[("tracestate", "u=a"), ("baggage", "u=a")]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one), "{at}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut next = 0x77;
        let mut id = || {
            next += 1;
            next
        };
        let context = ALL.context(&map(&[("baggage", "a=1")]), &mut id, &|told, _| {
            told.is_none()
        });
        assert!(context.sampled && context.parent_id == 0);
        let single = |change: fn(&mut Propagation)| {
            let mut one = Propagation {
                trace_context: false,
                ..Propagation::default()
            };
            change(&mut one);
            let mut headers = HeaderMap::new();
            one.write(&context, 0x99, &mut headers);
            let told = one.read(&headers).unwrap();
            assert_eq!(
                (told.trace_id, told.span_id, told.sampled),
                (context.trace_id, 0x99, Some(true))
            );
            assert_eq!(headers["baggage"], "a=1");
        };
        single(|p| p.trace_context = true);
        single(|p| p.b3 = true);
        single(|p| p.jaeger = true);
        single(|p| p.datadog = true);
    }

    #[test]
    fn a_client_decides_for_its_trace() {
        let headers = map(&[
            (
                "traceparent",
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
            ),
            ("tracestate", "x=y"),
        ]);
        let context = ALL.context(&headers, &mut || 5, &|told, _| told.unwrap_or(true));
        assert!(!context.sampled);
        assert_eq!(
            (context.parent_id, context.span_id),
            (0x00f0_67aa_0ba9_02b7, 5)
        );
        assert_eq!(context.state.unwrap(), "x=y");
    }
}
