//! Durations as people write them, and delays drawn from a range.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::generate::mix;

/// How long an answer is held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// Shortest.
    pub min: Duration,
    /// Longest.
    pub max: Duration,
}

impl Delay {
    /// Always the same.
    pub const fn fixed(duration: Duration) -> Delay {
        Delay {
            min: duration,
            max: duration,
        }
    }

    /// Reads `10ms`, `1.5s`, `250us` or a range such as `20..150ms`.
    pub fn parse(text: &str) -> Result<Delay, String> {
        let text = text.trim();
        let Some((low, high)) = text.split_once("..") else {
            return Ok(Delay::fixed(parse_duration(text)?));
        };
        let max = parse_duration(high)?;
        // The unit of a range is written once.
        let unit = high.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let min = if low.ends_with(|c: char| c.is_ascii_digit()) {
            parse_duration(&format!("{low}{unit}"))?
        } else {
            parse_duration(low)?
        };
        if min > max {
            return Err(format!("\"{text}\": the range is upside down"));
        }
        Ok(Delay { min, max })
    }

    /// The next delay of a seeded sequence.
    pub fn draw(&self, sequence: &AtomicU64) -> Duration {
        let span = self.max.saturating_sub(self.min);
        if span.is_zero() {
            return self.min;
        }
        let h = mix(sequence.fetch_add(1, Ordering::Relaxed));
        let nanos = (u128::from(h) * (span.as_nanos() + 1)) >> 64;
        self.min + Duration::from_nanos(nanos as u64)
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(f, "{:?}", self.min)
        } else {
            write!(f, "{:?}..{:?}", self.min, self.max)
        }
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" is no duration; write for example 10ms, 1.5s or 250us");
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| wrong())?;
    let seconds = match &text[digits..] {
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        // `0` needs no unit.
        "" if number == 0.0 => 0.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations_and_ranges() {
        let ms = Duration::from_millis;
        assert_eq!(Delay::parse("10ms"), Ok(Delay::fixed(ms(10))));
        assert_eq!(Delay::parse("1.5s"), Ok(Delay::fixed(ms(1500))));
        let range = Delay {
            min: ms(20),
            max: ms(150),
        };
        assert_eq!(Delay::parse("20..150ms"), Ok(range));
        assert_eq!(Delay::parse("20ms..0.15s"), Ok(range));
        for wrong in ["", "10", "ms", "-1ms", "5..1ms", "1..2", "1h", "1e300s"] {
            assert!(Delay::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn draws_stay_in_the_range_and_repeat_with_the_seed() {
        let delay = Delay::parse("20..150ms").unwrap();
        let draw = |seed| {
            let sequence = AtomicU64::new(seed);
            (0..100).map(|_| delay.draw(&sequence)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(1000));
        assert!(draw(1).iter().all(|d| (delay.min..=delay.max).contains(d)));
    }
}
