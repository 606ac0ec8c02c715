//! Counts by two labels of which others choose, so that their number is bounded.

use ogive_base::FastMap;

use super::{
    attribute_values::OTHER,
    family::{Series, Value},
};
use crate::names;

/// By the first label, then by the second.
#[derive(Debug, Default)]
pub(super) struct PairCounts {
    counts: FastMap<Box<str>, Vec<(Box<str>, u64)>>,
    series: usize,
    /// Of pairs beyond the limit.
    overflow: u64,
}

impl PairCounts {
    /// Adds to a pair; to those beyond the limit if there are as many already. Whether the pair is new, and has room.
    pub(super) fn add(&mut self, pair: (&str, &str), more: u64, limit: usize) -> bool {
        self.add_if(pair, more, limit, || true)
    }

    /// The same; a pair that is new has room only if it is let in.
    pub(super) fn add_if(
        &mut self,
        (first, second): (&str, &str),
        more: u64,
        limit: usize,
        is_let_in: impl FnOnce() -> bool,
    ) -> bool {
        let found = self.counts.get_mut(first);
        let mut found = found.into_iter().flatten();
        if let Some((_, count)) = found.find(|(known, _)| **known == *second) {
            *count += more;
            return false;
        } else if self.series >= limit || !is_let_in() {
            self.overflow += more;
            return false;
        } else {
            self.series += 1;
            let counts = self.counts.entry(first.into()).or_default();
            counts.push((second.into(), more));
        }
        true
    }

    /// Adds to those that are not told apart, for which there is always room.
    pub(super) fn add_other(&mut self, more: u64) {
        let counts = self.counts.entry(OTHER.into()).or_default();
        match counts.iter_mut().find(|(second, _)| second.is_empty()) {
            Some((_, count)) => *count += more,
            None => counts.push((Box::default(), more)),
        }
    }

    /// Adds all of another.
    pub(super) fn merge(&mut self, other: &PairCounts, limit: usize) {
        let mut firsts: Vec<&Box<str>> = other.counts.keys().collect();
        // Which are beyond the limit must not depend on the map's order.
        firsts.sort_unstable();
        for first in firsts {
            for (second, more) in other.counts.get(first).into_iter().flatten() {
                if **first == *OTHER && second.is_empty() {
                    self.add_other(*more);
                } else {
                    self.add((first, second), *more, limit);
                }
            }
        }
        self.overflow += other.overflow;
    }

    /// With these labels; one that is empty is left out.
    pub(super) fn series(&self, labels: [&'static str; 2]) -> Vec<Series> {
        let all = self.counts.iter().flat_map(|(first, seconds)| {
            seconds.iter().map(move |(second, count)| Series {
                labels: labels
                    .into_iter()
                    .zip([first, second])
                    .filter(|(_, text)| !text.is_empty())
                    .map(|(label, text)| (label, text.to_string()))
                    .collect(),
                value: Value::Counter(*count),
            })
        });
        let overflow = (self.overflow > 0).then(|| Series {
            labels: vec![(names::OVERFLOW, "true".to_owned())],
            value: Value::Counter(self.overflow),
        });
        let mut series: Vec<Series> = all.chain(overflow).collect();
        series.sort_by(|a, b| a.labels.cmp(&b.labels));
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by an attacker: names of requests that were refused took the room of those that are served.
    #[test]
    fn those_that_are_not_told_apart_take_no_room() {
        let mut counts = PairCounts::default();
        (0..5).for_each(|_| counts.add_other(1));
        assert!(counts.add(("shop", "1"), 1, 1));
        assert!(!counts.add(("shop", "1"), 1, 1), "it is known");
        assert!(!counts.add(("shop", "2"), 1, 1), "there is no room");
        let mut sum = PairCounts::default();
        sum.merge(&counts, 1);
        let found = sum.series(["name", "version"]);
        let found: Vec<_> = found.iter().map(|series| &series.labels).collect();
        let label = |label, text: &str| (label, text.to_owned());
        assert_eq!(
            found,
            [
                &vec![label("name", OTHER)],
                &vec![label("name", "shop"), label("version", "1")],
                &vec![label(names::OVERFLOW, "true")],
            ]
        );
    }
}
