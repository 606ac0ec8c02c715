//! Durations and sizes as people write them: `60s`, `250ms`, `1h`, `1GiB`.

use std::{fmt, time::Duration};

use serde::{Deserialize, Deserializer, de::Error as _};

/// A length of time such as `10ms`, `1.5s`, `2m` or `1h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Time(pub Duration);

impl Time {
    /// So many seconds.
    pub const fn seconds(seconds: u64) -> Time {
        Time(Duration::from_secs(seconds))
    }
    /// Reads a length of time.
    pub fn parse(text: &str) -> Result<Time, String> {
        let (number, unit) = split(text);
        let scale = match unit {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => {
                return Err(format!(
                    "`{text}` is no length of time; write 10ms, 1.5s, 2m or 1h"
                ));
            }
        };
        let seconds = number
            .parse::<f64>()
            .map_err(|_| format!("`{text}` has no number"))?
            * scale;
        Duration::try_from_secs_f64(seconds)
            .map(Time)
            .map_err(|_| format!("`{text}` is out of range"))
    }
    /// This times a factor.
    pub fn scaled(self, factor: f64) -> Time {
        Time(self.0.mul_f64(factor))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Scaled times are shown to a millisecond: nobody meant more.
        match self.0 {
            time if time >= Duration::from_secs(1) => {
                let millis = Duration::from_millis((time.as_secs_f64() * 1e3).round() as u64);
                write!(f, "{millis:?}")
            }
            time if time >= Duration::from_millis(1) => {
                write!(f, "{}ms", (time.as_secs_f64() * 1e3).round())
            }
            time => write!(f, "{time:?}"),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
        Time::parse(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// A number of bytes such as `512MiB` or `1GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl Size {
    /// Reads a number of bytes.
    pub fn parse(text: &str) -> Result<Size, String> {
        let (number, unit) = split(text);
        let scale: u64 = match unit {
            "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(format!("`{text}` is no size; write 512MiB or 1GiB")),
        };
        let number: f64 = number
            .parse()
            .map_err(|_| format!("`{text}` has no number"))?;
        Ok(Size((number * scale as f64) as u64))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Size, D::Error> {
        Size::parse(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    (&text[..at], text[at..].trim())
}

/// A moment as `2026-01-31T08:30:00Z`.
pub fn timestamp(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let (year, month, day) = civil((seconds / 86_400) as i64);
    let rest = seconds % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// The present moment.
pub fn now() -> Duration {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
}

/// Days since 1970-01-01 as a date of the Gregorian calendar; the algorithm is Howard Hinnant's `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_part = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_part + 2) / 5 + 1;
    let month = if month_part < 10 {
        month_part + 3
    } else {
        month_part - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_and_sizes() {
        assert_eq!(Time::parse("1.5s"), Ok(Time(Duration::from_millis(1500))));
        assert_eq!(Time::parse("2m"), Ok(Time::seconds(120)));
        assert_eq!(Size::parse("1GiB"), Ok(Size(1 << 30)));
        for wrong in ["", "10", "s", "1 day", "-1s"] {
            assert!(Time::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Size::parse("1GB").is_err());
    }

    #[test]
    fn writes_moments() {
        assert_eq!(timestamp(Duration::from_secs(0)), "1970-01-01T00:00:00Z");
        assert_eq!(
            timestamp(Duration::from_secs(951_827_696)),
            "2000-02-29T12:34:56Z"
        );
        assert_eq!(
            timestamp(Duration::from_secs(1_798_761_599)),
            "2026-12-31T23:59:59Z"
        );
    }
}
