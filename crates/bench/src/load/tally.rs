//! What is noted about answers: histograms, counts, seconds.

use std::{collections::BTreeMap, time::Duration};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longest latency told apart, in microseconds: an hour.
const LONGEST: u64 = 3_600_000_000;
/// Most kinds of failure told apart.
const KINDS_MAX: usize = 32;

/// Numbers of one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Who made it.
    pub tool: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Answers with status 200.
    pub answered: u64,
    /// Requests without one.
    pub failed: u64,
    /// By kind.
    pub failures: BTreeMap<String, u64>,
    /// Requests that were due or under way when the load ended and were not answered in the time given after it. They
    /// count with the time they waited, and are no failures: nobody gave up on them.
    #[serde(default)]
    pub unfinished: u64,
    /// Bytes of all bodies.
    pub bytes: u64,
    /// Answers whose length is not that of a right answer.
    pub odd: u64,
    /// Latencies in microseconds by name (`mean`, `min`, `p50`, .., `p99.9`, `max`).
    pub latency: BTreeMap<String, f64>,
    /// Latencies as `[microseconds, count]`, from the moment a request was due.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(u64, u64)>,
    /// Percentiles from the moment a request was sent, where that is another one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub service: BTreeMap<String, f64>,
    /// Second by second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Second>,
}

/// One second of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Answers.
    pub answered: u64,
    /// Failures.
    pub failed: u64,
    /// Mean latency in microseconds.
    pub mean: f64,
    /// Largest latency in microseconds.
    pub max: u64,
}

/// Collects numbers.
#[derive(Debug)]
pub struct Tally {
    latency: Histogram<u64>,
    service: Histogram<u64>,
    result: LoadResult,
    open_loop: bool,
}

impl Tally {
    /// Nothing yet.
    pub fn new(open_loop: bool) -> Tally {
        let histogram = || Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are right");
        Tally {
            latency: histogram(),
            service: histogram(),
            result: LoadResult::default(),
            open_loop,
        }
    }

    /// An answer with status 200, `at` after the start.
    pub fn answer(
        &mut self,
        at: Duration,
        latency: Duration,
        service: Duration,
        bytes: usize,
        odd: bool,
    ) {
        self.note(latency, service);
        self.result.answered += 1;
        self.result.bytes += bytes as u64;
        self.result.odd += u64::from(odd);
        let micros = latency.as_micros() as u64;
        let second = self.second(at);
        second.answered += 1;
        second.mean += (micros as f64 - second.mean) / second.answered as f64;
        second.max = second.max.max(micros);
    }

    /// A failure. `waited`: how long somebody waited in vain; a failure that came at once says nothing about latency.
    pub fn failure(&mut self, at: Duration, kind: &str, waited: Option<Duration>) {
        if let Some(waited) = waited {
            self.note(waited, waited);
        }
        self.result.failed += 1;
        let failures = &mut self.result.failures;
        let kind = if failures.contains_key(kind) || failures.len() < KINDS_MAX {
            kind
        } else {
            "other"
        };
        *failures.entry(kind.to_owned()).or_default() += 1;
        self.second(at).failed += 1;
    }

    /// A request that is still waiting when the load is over.
    pub fn unfinished(&mut self, waited: Duration) {
        // Most of these were never sent: nothing served them.
        self.latency.saturating_record(waited.as_micros() as u64);
        self.result.unfinished += 1;
    }

    pub(crate) fn n_odd(&self) -> u64 {
        self.result.odd
    }

    fn note(&mut self, latency: Duration, service: Duration) {
        self.latency.saturating_record(latency.as_micros() as u64);
        if self.open_loop {
            self.service.saturating_record(service.as_micros() as u64);
        }
    }

    fn second(&mut self, at: Duration) -> &mut Second {
        let i = (at.as_secs() as usize).min(100_000);
        let timeline = &mut self.result.timeline;
        if timeline.len() <= i {
            timeline.resize(i + 1, Second::default());
        }
        &mut timeline[i]
    }

    /// All numbers.
    pub fn finish(mut self, tool: &str, wall: Duration) -> LoadResult {
        self.result.tool = tool.to_owned();
        self.result.seconds = wall.as_secs_f64();
        self.result.latency = percentiles(&self.latency);
        if self.open_loop {
            self.result.service = percentiles(&self.service);
        }
        let recorded = self.latency.iter_recorded();
        self.result.histogram = recorded
            .map(|v| (v.value_iterated_to(), v.count_at_value()))
            .collect();
        self.result
    }
}

/// The percentiles every report shows.
pub const PERCENTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

fn percentiles(histogram: &Histogram<u64>) -> BTreeMap<String, f64> {
    if histogram.is_empty() {
        return BTreeMap::new();
    }
    let mut out: BTreeMap<String, f64> = PERCENTILES
        .iter()
        .map(|(name, q)| ((*name).to_owned(), histogram.value_at_quantile(*q) as f64))
        .collect();
    out.insert("min".into(), histogram.min() as f64);
    out.insert("max".into(), histogram.max() as f64);
    out.insert("mean".into(), histogram.mean());
    out
}

impl LoadResult {
    /// Answers per second.
    pub fn throughput(&self) -> f64 {
        if self.seconds > 0.0 {
            self.answered as f64 / self.seconds
        } else {
            0.0
        }
    }
    /// A latency in milliseconds.
    pub fn millis(&self, name: &str) -> Option<f64> {
        self.latency.get(name).map(|micros| micros / 1e3)
    }
    /// The part of requests still waiting at the end.
    pub fn unfinished_share(&self) -> f64 {
        let all = self.answered + self.failed + self.unfinished;
        match all {
            0 => 0.0,
            n => self.unfinished as f64 / n as f64,
        }
    }
    /// The part of requests that failed.
    pub fn failure_share(&self) -> f64 {
        let all = self.answered + self.failed + self.unfinished;
        match all {
            0 => 0.0,
            n => self.failed as f64 / n as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_become_percentiles() {
        let mut tally = Tally::new(false);
        for ms in 1..=1000u64 {
            let latency = Duration::from_millis(ms);
            tally.answer(Duration::from_millis(ms * 2), latency, latency, 10, ms == 5);
        }
        tally.failure(Duration::ZERO, "status 503", None);
        let result = tally.finish("test", Duration::from_secs(2));
        assert_eq!(
            (result.answered, result.failed, result.odd, result.bytes),
            (1000, 1, 1, 10_000)
        );
        let close = |name: &str, ms: f64| {
            let found = result.millis(name).unwrap();
            assert!((found - ms).abs() <= ms * 0.002, "{name} {found}");
        };
        close("p50", 500.0);
        close("p99", 990.0);
        close("max", 1000.0);
        close("mean", 500.5);
        assert_eq!(result.histogram.iter().map(|(_, n)| n).sum::<u64>(), 1000);
        assert_eq!(result.timeline.len(), 3);
        assert_eq!(result.throughput(), 500.0);
    }
}
