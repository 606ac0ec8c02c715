//! Times as signatures and credentials write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// Seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Year, month and day of a number of days since 1970, in the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March, so that the day that some have more is their last one.
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + 400 * era + u64::from(month <= 2), month, day)
}

/// `20150830T123600Z`.
pub(crate) fn compact(time: SystemTime) -> String {
    let seconds = seconds(time);
    let ((year, month, day), of_day) = (date(seconds / DAY), seconds % DAY);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Reads `2015-08-30T12:36:00Z`, with or without a fraction of a second, or with an offset (RFC 3339).
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let number = |from: usize, to: usize| -> Option<u64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
        digits.parse().ok()
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let bytes = text.as_bytes();
    let has =
        |(at, mark): &(usize, u8)| bytes.get(*at).is_some_and(|b| b.eq_ignore_ascii_case(mark));
    marks.iter().all(has).then_some(())?;
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if year < 1970
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    let rest = text.get(19..)?;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let ahead: i64 = match zone {
        "Z" | "z" => 0,
        _ => {
            let sign = match zone.as_bytes() {
                [b'+', _, _, b':', _, _] => 1,
                [b'-', _, _, b':', _, _] => -1,
                _ => return None,
            };
            let hours: i64 = zone.get(1..3)?.parse().ok()?;
            let minutes: i64 = zone.get(4..6)?.parse().ok()?;
            sign * (hours * 3_600 + minutes * 60)
        }
    };
    let (y, m) = if month <= 2 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    let day_of_era =
        (y % 400) * 365 + (y % 400) / 4 - (y % 400) / 100 + (153 * m + 2) / 5 + day - 1;
    let days = (y / 400) * 146_097 + day_of_era - 719_468;
    let local = days * DAY + hour * 3_600 + minute * 60 + second;
    let seconds = u64::try_from(i64::try_from(local).ok()? - ahead).ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read() {
        for (text, seconds, written) in [
            ("2015-08-30T12:36:00Z", 1_440_938_160, "20150830T123600Z"),
            ("2000-02-29T23:59:59.123Z", 951_868_799, "20000229T235959Z"),
            (
                "2024-12-31T00:00:00+00:00",
                1_735_603_200,
                "20241231T000000Z",
            ),
            (
                "2024-03-01T01:00:00+02:00",
                1_709_247_600,
                "20240229T230000Z",
            ),
            ("1970-01-01T00:00:00Z", 0, "19700101T000000Z"),
        ] {
            let time = parse(text).unwrap();
            assert_eq!(super::seconds(time), seconds, "{text}");
            assert_eq!(compact(time), written, "{text}");
        }
        for text in [
            "",
            "2015-08-30",
            "2015-13-30T12:36:00Z",
            "2015-08-30T12:36:00",
            "2015-08-30T12:36:0xZ",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
