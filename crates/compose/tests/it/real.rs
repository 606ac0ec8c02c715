//! Graphs of a company's size ([`crate::company`]) compose, with the hints that the reference implementation gives.

use std::collections::BTreeMap;

use ogive_base::SourceId;
use ogive_federation::{ReadOptions, read_supergraph};
use ogive_testbase::{left_out, needs::ORACLE_IS_OFF};

use crate::{Owned, company::company, mutated, run};

/// A graph of a company, and what the reference says of it.
pub(crate) struct Graph {
    seed: u64,
    subgraphs: usize,
    /// How many of the biggest subgraphs come first.
    large: usize,
    /// Its text has at least so many bytes.
    bytes: usize,
    /// Hints of the reference.
    hints: usize,
}

/// Few big subgraphs.
pub(crate) const ELEVEN: Graph = Graph {
    seed: 1,
    subgraphs: 11,
    large: 8,
    bytes: 100_000,
    hints: 8,
};
/// Many, most of them small.
pub(crate) const HUGE: Graph = Graph {
    seed: 2,
    subgraphs: 191,
    large: 4,
    bytes: 400_000,
    hints: 93,
};

impl Graph {
    pub(crate) fn set(&self) -> Vec<Owned> {
        let set = company(self.seed, self.subgraphs, self.large);
        let bytes: usize = set.iter().map(|s| s.sdl.len()).sum();
        assert!(bytes >= self.bytes, "only {bytes} bytes");
        set
    }
}

fn composes(graph: &Graph) {
    let set = graph.set();
    assert_eq!(set.len(), graph.subgraphs);
    let composed = run(&set);
    let errors: Vec<String> = composed
        .errors
        .iter()
        .take(3)
        .map(|e| e.render(&composed.sources, false))
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    assert_eq!(
        composed.hints.len(),
        graph.hints,
        "as many as the reference gives"
    );
    let sdl = composed.supergraph_sdl.unwrap();
    let read = read_supergraph(&sdl, SourceId(0), &ReadOptions::default()).unwrap();
    assert_eq!(read.subgraphs.len(), graph.subgraphs);
}

#[test]
fn eleven_subgraphs_compose() {
    composes(&ELEVEN);
}

#[test]
fn one_hundred_and_ninety_one_subgraphs_compose() {
    composes(&HUGE);
}

/// Kinds of hints, and how many of each.
fn by_code<'a>(codes: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut out = BTreeMap::new();
    for code in codes {
        *out.entry(code).or_default() += 1;
    }
    out
}

#[test]
fn the_reference_gives_the_same_hints() {
    let Some(script) = mutated::oracle() else {
        return left_out(ORACLE_IS_OFF);
    };
    let sets: Vec<Vec<Owned>> = [ELEVEN, HUGE].iter().map(Graph::set).collect();
    let answers = mutated::ask(&script, sets.clone());
    for (set, answer) in sets.iter().zip(&answers) {
        assert_eq!(
            answer["errors"].as_array().map(Vec::len),
            Some(0),
            "{answer}"
        );
        let theirs = answer["hints"].as_array().unwrap().iter();
        let theirs = by_code(theirs.map(|hint| hint["code"].as_str().unwrap()));
        let composed = run(set);
        let ours = by_code(composed.hints.iter().map(|hint| hint.code));
        assert_eq!(ours, theirs);
        assert!(ours.len() >= 5, "only {} kinds", ours.len());
    }
}
