//! How long the listener's certificate is good.

use std::time::SystemTime;

use ogive_net::{ServerTls, Validity};

/// Seconds of a day.
pub(crate) const DAY: u64 = 24 * 3_600;
/// How long before its end a certificate is warned of, unless it lives for a short time only.
const SOON: u64 = 14 * DAY;
/// The last part of a certificate's life, in which it is warned of if that is shorter: those that live for a day are
/// replaced every few hours, and that is no news.
const LAST_PART: u64 = 8;

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// Says if the listener's certificate is not good, or soon will not be.
pub fn warn_of_end(tls: &ServerTls) {
    if let Some(remark) = tls.validity().and_then(|validity| remark(validity, now())) {
        tracing::warn!("the certificate in `tls.supergraph` {remark}");
    }
}

/// What is wrong with a certificate, or soon will be.
fn remark(validity: Validity, now: u64) -> Option<String> {
    let Validity { begins, ends } = validity;
    if now < begins {
        let time = time(begins - now);
        return Some(format!(
            "is good only in {time}: clients refuse it until then"
        ));
    }
    if now > ends {
        let time = time(now - ends);
        return Some(format!("expired {time} ago: clients refuse it"));
    }
    let soon = SOON.min((ends - begins) / LAST_PART);
    (ends - now < soon).then(|| format!("expires in {}", time(ends - now)))
}

/// A time for people.
fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} minutes", seconds / 60),
        7_200..172_800 => format!("{} hours", seconds / 3_600),
        _ => format!("{} days", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_warned_of() {
        let (begins, ends) = (100 * DAY, 200 * DAY);
        let remark = |now| remark(Validity { begins, ends }, now);
        let of = |now: u64| remark(now).unwrap_or_default();
        assert_eq!(
            of(99 * DAY),
            "is good only in 24 hours: clients refuse it until then"
        );
        assert_eq!(remark(100 * DAY), None);
        assert_eq!(remark(187 * DAY), None);
        assert_eq!(of(188 * DAY), "expires in 12 days");
        assert_eq!(of(200 * DAY - 60), "expires in 60 s");
        assert_eq!(of(200 * DAY), "expires in 0 s");
        assert_eq!(
            of(200 * DAY + 600),
            "expired 10 minutes ago: clients refuse it"
        );
        // Of 80 years the last fortnight counts.
        let long = Validity {
            begins: 0,
            ends: 80 * 365 * DAY,
        };
        assert_eq!(super::remark(long, long.ends - 15 * DAY), None);
        assert!(super::remark(long, long.ends - 13 * DAY).is_some());
    }
}
