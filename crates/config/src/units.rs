//! Scalars with units: durations and sizes.

use std::fmt;

/// A span of time, written with its unit: `250ms`, `30s`, `5m`, `1h`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Duration(pub std::time::Duration);

impl Duration {
    /// So many seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Duration(std::time::Duration::from_secs(seconds))
    }
    /// So many milliseconds.
    pub const fn milliseconds(milliseconds: u64) -> Self {
        Duration(std::time::Duration::from_millis(milliseconds))
    }
    /// Longest: a day. Whoever waits longer means "never", which no option here supports.
    pub const MAX: Duration = Duration::seconds(86_400);
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        match ms {
            0 => f.write_str("0s"),
            _ if ms.is_multiple_of(3_600_000) => write!(f, "{}h", ms / 3_600_000),
            _ if ms.is_multiple_of(60_000) => write!(f, "{}m", ms / 60_000),
            _ if ms.is_multiple_of(1_000) => write!(f, "{}s", ms / 1_000),
            _ => write!(f, "{ms}ms"),
        }
    }
}

/// Parses a duration; the error says what to write.
pub fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number
        .parse()
        .map_err(|_| "write a whole number and its unit, such as `30s` or `250ms`")?;
    let ms = match unit.trim() {
        "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        "" => return Err("write the unit too, such as `30s` or `250ms`"),
        _ => return Err("units are `ms`, `s`, `m` and `h`"),
    };
    ms.map(|ms| Duration(std::time::Duration::from_millis(ms)))
        .filter(|d| *d <= Duration::MAX)
        .ok_or("the longest duration is `24h`")
}

/// A number of bytes: `2000000`, `2MB` (10⁶) or `2MiB` (2²⁰).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ByteSize(pub usize);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        match n {
            0 => f.write_str("0"),
            _ if n.is_multiple_of(1 << 20) => write!(f, "{}MiB", n >> 20),
            _ if n.is_multiple_of(1_000_000) => write!(f, "{}MB", n / 1_000_000),
            _ if n.is_multiple_of(1 << 10) => write!(f, "{}KiB", n >> 10),
            _ => write!(f, "{n}"),
        }
    }
}

/// Parses a size; the error says what to write.
pub fn parse_byte_size(text: &str) -> Result<ByteSize, &'static str> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: usize = number
        .parse()
        .map_err(|_| "write a number of bytes, such as `2000000` or `2MB`")?;
    let factor = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("units are `B`, `kB`, `MB`, `GB`, `KiB`, `MiB` and `GiB`"),
    };
    number
        .checked_mul(factor)
        .map(ByteSize)
        .ok_or("that is more than a machine can address")
}
