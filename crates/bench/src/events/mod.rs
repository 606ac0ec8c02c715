//! Loads of events: subscribers before a gateway, and a source behind it that is the lab's own.
//!
//! [`source`] is a process of its own that sends numbered events with the time they were made, written once for all who
//! get them; [`subscriber`] are clients on one thread that look for number and time in the bytes and parse nothing;
//! [`run`] brings both together and counts. [`protocol`] has the frames of all of them.
//!
//! Invariants: whoever subscribes is measured only after an event has come through; every number that is missing is
//! counted, and whether the subscriber was told of it.

pub mod protocol;
pub mod run;
pub mod source;
pub mod subscriber;

use std::time::{SystemTime, UNIX_EPOCH};

/// The text of every event: what makes it as long as events are.
pub const TEXT: &str =
    "A change of the kind that subscribers wait for, long enough to be like a real one.";
/// The number of the first event; all have as many digits.
pub const FIRST: u64 = 100_000_000;

/// Microseconds by the clock that all processes of a machine have in common.
pub fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_micros() as u64)
}

/// The result that a subgraph sends for an event. All are equally long.
pub fn payload(n: u64, at: u64, typename: bool) -> String {
    let typename = if typename {
        "\"__typename\":\"Tick\","
    } else {
        ""
    };
    format!(
        "{{\"data\":{{\"tick\":{{{typename}\"n\":{n:09},\"at\":\"{at:016}\",\"text\":\"{TEXT}\"}}}}}}"
    )
}

/// Number and time of an event, wherever they stand in a message; `None`: it is none.
pub fn read_payload(message: &[u8]) -> Option<(u64, u64)> {
    let (n, end) = number_after(message, b"\"n\":")?;
    let (at, _) = number_after(&message[end..], b"\"at\":\"")?;
    Some((n, at))
}

/// The number behind a key, and where it ends.
fn number_after(bytes: &[u8], key: &[u8]) -> Option<(u64, usize)> {
    let start = bytes.windows(key.len()).position(|w| w == key)? + key.len();
    let digits = bytes[start..].iter().take_while(|b| b.is_ascii_digit());
    let mut end = start;
    let mut number = 0u64;
    for digit in digits {
        number = number
            .wrapping_mul(10)
            .wrapping_add(u64::from(digit - b'0'));
        end += 1;
    }
    (end > start).then_some((number, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_equally_long_and_can_be_read_again() {
        let (one, two) = (
            payload(FIRST, 1, false),
            payload(FIRST + 99, now_micros(), false),
        );
        assert_eq!(one.len(), two.len());
        assert_eq!(read_payload(one.as_bytes()), Some((FIRST, 1)));
        let typed = payload(FIRST + 7, 12, true);
        let message = format!("{{\"id\":\"1\",\"type\":\"next\",\"payload\":{typed}}}");
        assert_eq!(read_payload(message.as_bytes()), Some((FIRST + 7, 12)));
        assert!(serde_json::from_str::<serde_json::Value>(&typed).is_ok());
        assert_eq!(read_payload(b"{\"type\":\"connection_ack\"}"), None);
    }
}
