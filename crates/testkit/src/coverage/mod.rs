//! Which rules of federation a run exercised, and which of them together.
//!
//! [`rules`] says for each rule when an operation counts, [`evidence`] decides it from graph, operation, plan and what
//! went over the wire. Two rules are covered as a pair if one and the same operation exercised both and its answer was
//! the monolith's.

pub mod evidence;
pub mod rules;

use std::fmt;

use rules::{IMPOSSIBLE, Meets, RULES};

/// A set of rules as a bitset; bit `n` is rule `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleSet(pub u128);

impl RuleSet {
    /// Adds a rule (1 to 71) if `is`.
    pub fn set(&mut self, rule: usize, is: bool) {
        if is {
            self.0 |= 1 << rule;
        }
    }
    /// Whether a rule is in it.
    pub fn has(self, rule: usize) -> bool {
        self.0 & (1 << rule) != 0
    }
    /// Its rules in order.
    pub fn rules(self) -> impl Iterator<Item = usize> {
        (1..=RULES.len()).filter(move |r| self.has(*r))
    }
}

/// How many operations exercised each rule and each pair of rules.
#[derive(Clone, Debug)]
pub struct PairCoverage {
    counts: Vec<u32>,
}

const WIDTH: usize = RULES.len() + 1;

impl Default for PairCoverage {
    fn default() -> Self {
        PairCoverage {
            counts: vec![0; WIDTH * WIDTH],
        }
    }
}

impl PairCoverage {
    /// Counts one operation.
    pub fn add(&mut self, exercised: RuleSet) {
        let rules: Vec<usize> = exercised.rules().collect();
        for a in &rules {
            for b in &rules {
                self.counts[a * WIDTH + b] += 1;
            }
        }
    }
    /// Operations that exercised both; with a rule itself, that exercised it.
    pub fn count(&self, a: usize, b: usize) -> u32 {
        self.counts[a * WIDTH + b]
    }
    /// Rules that operations of this harness can exercise.
    pub fn reachable() -> Vec<usize> {
        (1..=RULES.len())
            .filter(|r| matches!(RULES[r - 1], Meets::When(_)))
            .collect()
    }
    /// Rules that could have been exercised and were not.
    pub fn missing_rules(&self) -> Vec<usize> {
        let mut out = Self::reachable();
        out.retain(|r| self.count(*r, *r) == 0);
        out
    }
    /// Pairs that one operation can exercise and none did.
    pub fn missing_pairs(&self) -> Vec<(usize, usize)> {
        let mut out = possible_pairs();
        out.retain(|(a, b)| self.count(*a, *b) == 0);
        out
    }
    /// Percentage of the possible pairs that were exercised.
    pub fn percent(&self) -> f64 {
        let all = possible_pairs().len();
        (all - self.missing_pairs().len()) as f64 * 100.0 / all as f64
    }
}

/// Pairs of different reachable rules that are not impossible.
fn possible_pairs() -> Vec<(usize, usize)> {
    let rules = PairCoverage::reachable();
    let mut out = Vec::new();
    for (i, b) in rules.iter().enumerate() {
        for a in &rules[..i] {
            if !IMPOSSIBLE.iter().any(|(x, y, _)| (x, y) == (a, b)) {
                out.push((*a, *b));
            }
        }
    }
    out
}

impl fmt::Display for PairCoverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "operations by rule:")?;
        for (i, meets) in RULES.iter().enumerate() {
            let rule = i + 1;
            match meets {
                Meets::When(how) => writeln!(f, "  {rule:2} {:7} {how}", self.count(rule, rule))?,
                Meets::Never(why) => writeln!(f, "  {rule:2}       - {why}")?,
            }
        }
        let all = RULES.len() * (RULES.len() - 1) / 2;
        let possible = possible_pairs().len();
        let reachable = Self::reachable().len();
        let missing = self.missing_pairs();
        writeln!(
            f,
            "pairs of rules: {} of {possible} covered, {:.1} %",
            possible - missing.len(),
            self.percent()
        )?;
        writeln!(
            f,
            "  of all {all}: {} with a rule that no operation here can exercise, {} excluded:",
            all - reachable * (reachable - 1) / 2,
            IMPOSSIBLE.len()
        )?;
        for (a, b, why) in IMPOSSIBLE {
            writeln!(f, "    {a}+{b}: {why}")?;
        }
        let list: Vec<String> = missing.iter().map(|(a, b)| format!("{a}+{b}")).collect();
        writeln!(f, "  not covered: {}", list.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_both_ways_and_impossible_ones_left_out() {
        let mut coverage = PairCoverage::default();
        let mut set = RuleSet::default();
        set.set(1, true);
        set.set(67, false);
        set.set(50, true);
        coverage.add(set);
        assert_eq!((coverage.count(1, 50), coverage.count(50, 1)), (1, 1));
        assert_eq!(coverage.count(1, 67), 0);
        assert!(!coverage.missing_pairs().contains(&(1, 50)));
        assert!(!coverage.missing_pairs().contains(&(50, 51)));
        assert!(coverage.missing_pairs().contains(&(1, 2)));
        assert!(coverage.percent() > 0.0);
    }

    #[test]
    fn a_run_must_meet_what_it_was_widened_for() {
        let reachable = PairCoverage::reachable();
        assert!((68..=71).all(|rule| reachable.contains(&rule)));
        let missing = PairCoverage::default().missing_rules();
        assert_eq!(missing, reachable, "an empty run lacks all of them");
    }
}
