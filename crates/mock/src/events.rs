//! How a subgraph sends the events of subscriptions: how many, how often, and what goes wrong.

use std::time::Duration;

use serde_json::Value;

use crate::{data::expr::text_of, delay::Delay};

/// One way to fail with a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFaultKind {
    /// `drop`: the connection is closed without a word instead of this event.
    Drop,
    /// `garbage`: something that is no event instead of this one.
    Garbage,
    /// `twice`: the end is sent twice (WebSocket).
    Twice,
    /// `early`: an event comes before the acknowledgement (WebSocket).
    Early,
    /// `no-ack`: the connection is never acknowledged (WebSocket).
    NoAck,
    /// `silent`: pings are not answered (WebSocket).
    Silent,
    /// `no-end`: the stream stops without a word that it is over.
    NoEnd,
}

/// A fault, and at which event it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventFault {
    /// What happens.
    pub kind: EventFaultKind,
    /// The event, counted from 1; without meaning for those that are no event's.
    pub at: u64,
}

/// The events of every subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSchedule {
    /// How many; none: without end.
    pub count: Option<u64>,
    /// The time before each.
    pub interval: Duration,
    /// What goes wrong.
    pub faults: Vec<EventFault>,
}

impl Default for EventSchedule {
    fn default() -> Self {
        EventSchedule {
            count: None,
            interval: Duration::from_secs(1),
            faults: Vec::new(),
        }
    }
}

impl EventFault {
    /// Reads one fault: `drop@3`.
    pub fn parse(text: &str) -> Result<EventFault, String> {
        let (word, at) = match text.trim().split_once('@') {
            None => (text.trim(), 1),
            Some((word, at)) => {
                let at = at.parse().ok().filter(|at| *at > 0);
                let at = at.ok_or_else(|| format!("\"{text}\": events count from 1"))?;
                (word, at)
            }
        };
        let kind = match word {
            "drop" => EventFaultKind::Drop,
            "garbage" => EventFaultKind::Garbage,
            "twice" => EventFaultKind::Twice,
            "early" => EventFaultKind::Early,
            "no-ack" => EventFaultKind::NoAck,
            "silent" => EventFaultKind::Silent,
            "no-end" => EventFaultKind::NoEnd,
            _ => {
                return Err(format!(
                    "unknown fault \"{word}\"; known are drop, garbage, twice, early, no-ack, silent, no-end"
                ));
            }
        };
        Ok(EventFault { kind, at })
    }
}

impl EventSchedule {
    /// Reads the value of `events`; an error names the key.
    pub(crate) fn read(value: &Value) -> Result<EventSchedule, (String, String)> {
        let at = |key: &str, what: String| (key.to_owned(), what);
        let Value::Object(map) = value else {
            return Err(at("", "expected a mapping".into()));
        };
        let mut script = EventSchedule::default();
        for (key, value) in map {
            match key.as_str() {
                "count" => {
                    let count = value.as_u64();
                    let wrong = || at(key, format!("expected a whole number, not {value}"));
                    script.count = Some(count.ok_or_else(wrong)?);
                }
                "interval" => {
                    let interval = Delay::parse(&text_of(value)).map_err(|what| at(key, what))?;
                    script.interval = interval.max;
                }
                "faults" => {
                    let Value::Array(items) = value else {
                        return Err(at(key, "expected a list".into()));
                    };
                    let read = items.iter().map(|item| EventFault::parse(&text_of(item)));
                    script.faults = read
                        .collect::<Result<_, _>>()
                        .map_err(|what| at(key, what))?;
                }
                _ => {
                    let what = "unknown key; known are count, interval, faults";
                    return Err(at(key, what.into()));
                }
            }
        }
        Ok(script)
    }

    /// Whether there is such a fault.
    pub(crate) fn has(&self, kind: EventFaultKind) -> bool {
        self.faults.iter().any(|fault| fault.kind == kind)
    }

    /// The fault that strikes instead of that event.
    pub(crate) fn strikes(&self, event: u64) -> Option<EventFaultKind> {
        let of_event = |kind| matches!(kind, EventFaultKind::Drop | EventFaultKind::Garbage);
        let mut faults = self.faults.iter();
        let fault = faults.find(|fault| fault.at == event && of_event(fault.kind));
        fault.map(|fault| fault.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_read() {
        let value =
            serde_json::json!({"count": 2, "interval": "10ms", "faults": ["drop@3", "early"]});
        let script = EventSchedule::read(&value).unwrap();
        assert_eq!((script.count, script.interval.as_millis()), (Some(2), 10));
        assert_eq!(script.strikes(3), Some(EventFaultKind::Drop));
        assert_eq!(script.strikes(1), None);
        assert!(script.has(EventFaultKind::Early));
        for wrong in [
            serde_json::json!({"counts": 2}),
            serde_json::json!({"faults": ["boom"]}),
            serde_json::json!({"faults": ["drop@0"]}),
            serde_json::json!([]),
        ] {
            assert!(EventSchedule::read(&wrong).is_err(), "{wrong}");
        }
    }
}
