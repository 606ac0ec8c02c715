//! What operations cost, in histograms. Nothing is there before the first operation whose cost is counted.

use std::sync::{Arc, LazyLock};

use super::{
    counts::Counts,
    family::{Family, Series, Value},
};
use crate::names::{self, Metric};

/// Upper bounds of the buckets.
static BOUNDS: LazyLock<Arc<[u64]>> = LazyLock::new(|| {
    Arc::from([
        0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
    ])
});

/// One thread's, by result: there are few.
#[derive(Debug, Default)]
pub(super) struct CostCounts {
    rows: Vec<(&'static str, [Counts; 3])>,
}

const METRICS: [&Metric; 3] = [
    &names::COST_ESTIMATED,
    &names::COST_ACTUAL,
    &names::COST_DELTA,
];

impl CostCounts {
    pub(super) fn estimated(&mut self, result: &'static str, estimated: u64) {
        self.row(result)[0].record_number(estimated, &BOUNDS);
    }
    pub(super) fn actual(&mut self, result: &'static str, actual: u64, delta: u64) {
        let [_, actuals, deltas] = self.row(result);
        actuals.record_number(actual, &BOUNDS);
        deltas.record_number(delta, &BOUNDS);
    }
    fn row(&mut self, result: &'static str) -> &mut [Counts; 3] {
        let at = self.rows.iter().position(|(known, _)| *known == result);
        let at = at.unwrap_or_else(|| {
            self.rows.push((result, Default::default()));
            self.rows.len() - 1
        });
        &mut self.rows[at].1
    }
    pub(super) fn merge(&mut self, other: &CostCounts) {
        for (result, counts) in &other.rows {
            for (mine, other) in self.row(result).iter_mut().zip(counts) {
                mine.add(other);
            }
        }
    }
    pub(super) fn families(&self) -> Vec<Family> {
        let families = METRICS.into_iter().enumerate().map(|(at, metric)| {
            let rows = self.rows.iter().filter_map(|(result, counts)| {
                let counts = counts.get(at).filter(|counts| !counts.is_empty())?;
                Some(Series {
                    labels: vec![(names::COST_RESULT, (*result).to_owned())],
                    value: Value::Histogram(counts.with(&BOUNDS, 1)),
                })
            });
            let mut series: Vec<Series> = rows.collect();
            series.sort_by(|one, other| one.labels.cmp(&other.labels));
            Family { metric, series }
        });
        families
            .filter(|family| !family.series.is_empty())
            .collect()
    }
}
