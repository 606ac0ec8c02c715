//! Progressive overrides (planner rule 25): which labels of `@override(label:)` are on for a request.
//!
//! Labels are settled before planning, and only those that can matter to the operation enter the key of its plan. One draw
//! decides about all percentages of a request: whoever is among the first 5 % is among the first 20 % too, so `n`
//! labels make at most `n + 1` plans of an operation, and fields that move together in one schema move together for
//! one client. With `sticky_by` the draw is a hash of a header's value, the same in every process.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

use http::HeaderMap;
use ogive_base::BitSet;
use ogive_config::{Config, LabelShare};
use ogive_federation::Supergraph;
use ogive_operation::Operation;
use ogive_plan::stable_hash;

use crate::schema::fingerprint::{Part, rests_on};

/// How the labels of one schema are settled.
#[derive(Debug)]
pub struct Labels {
    names: Vec<Box<str>>,
    /// By label: for which part of requests it is on.
    shares: Vec<LabelShare>,
    header: Option<Box<str>>,
    sticky_by: Option<Box<str>>,
    random: RandomState,
    drawn: AtomicU64,
}

impl Labels {
    /// The labels of a supergraph as a configuration sets them.
    pub fn new(supergraph: &Supergraph, config: &Config) -> Self {
        let options = &config.override_labels;
        let names = supergraph.graph.override_labels.clone();
        let share = |name: &str| {
            let own = name.strip_prefix("percent(");
            let own = own.and_then(|rest| LabelShare::percent(rest.strip_suffix(')')?.trim()));
            options.labels.get(name).copied().or(own)
        };
        Labels {
            shares: names
                .iter()
                .map(|name| share(name).unwrap_or(LabelShare(0.0)))
                .collect(),
            names,
            header: options.header.as_ref().map(|h| h.0.as_str().into()),
            sticky_by: options.sticky_by.as_ref().map(|h| h.0.as_str().into()),
            random: RandomState::new(),
            drawn: AtomicU64::new(0),
        }
    }

    /// Labels that the configuration names and the supergraph does not have.
    pub(crate) fn unknown<'c>(&self, config: &'c Config) -> impl Iterator<Item = &'c str> {
        let named = config.override_labels.labels.keys();
        named
            .map(String::as_str)
            .filter(|name| !self.names.iter().any(|n| **n == **name))
    }

    /// Those of `labels` that are on for a request.
    pub fn on(&self, labels: &[u32], headers: &HeaderMap) -> BitSet {
        let mut draw = None;
        let on = |label: &&u32| {
            let at = **label as usize;
            let (Some(name), Some(share)) = (self.names.get(at), self.shares.get(at)) else {
                return false;
            };
            if self.is_asked_for(name, headers) {
                return true;
            }
            match share.0 {
                0.0 => false,
                100.0 => true,
                percent => *draw.get_or_insert_with(|| self.draw(headers)) < percent,
            }
        };
        let labels = labels.iter();
        labels.filter(on).copied().collect()
    }

    fn is_asked_for(&self, name: &str, headers: &HeaderMap) -> bool {
        let Some(header) = &self.header else {
            return false;
        };
        let values = headers.get_all(&**header).into_iter();
        values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|asked| asked.trim() == name)
    }

    /// A number from 0 up to 100, exclusive.
    fn draw(&self, headers: &HeaderMap) -> f64 {
        let key = self
            .sticky_by
            .as_ref()
            .and_then(|name| headers.get(&**name));
        let bits = match key {
            Some(value) => mixed(stable_hash(value.as_bytes())),
            None => self
                .random
                .hash_one(self.drawn.fetch_add(1, Ordering::Relaxed)),
        };
        // 53 bits are what a double holds.
        (bits >> 11) as f64 / (1_u64 << 53) as f64 * 100.0
    }

    /// The key of a plan: the canonical form, which says itself where it ends, and the names of labels that are on.
    pub(crate) fn write_key(&self, on: &BitSet, key: Box<[u8]>) -> Box<[u8]> {
        if on.is_empty() {
            return key;
        }
        let mut names: Vec<&str> = on
            .iter()
            .filter_map(|label| self.names.get(label as usize))
            .map(|name| &**name)
            .collect();
        names.sort_unstable();
        let mut key = Vec::from(key);
        for name in names {
            key.push(0xff);
            key.extend_from_slice(name.as_bytes());
        }
        key.into()
    }
}

/// Spreads a hash over all bits (the last step of splitmix64): values that differ in a digit must not end up side by side.
fn mixed(hash: u128) -> u64 {
    let mut z = (hash >> 64) as u64 ^ hash as u64;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The labels that can matter to the plan of an operation, sorted.
pub(crate) fn labels_of(supergraph: &Supergraph, operation: &Operation) -> Box<[u32]> {
    let graph = &supergraph.graph;
    if graph.override_labels.is_empty() {
        return Box::default();
    }
    let parts = rests_on(supergraph, operation);
    let fields = parts.iter().filter_map(|part| match part {
        Part::Field(field) => graph.fields.get(*field),
        Part::Type(_) => None,
    });
    let found: BitSet = fields
        .flat_map(|row| &row.sources)
        .filter_map(|source| source.overrides?.1)
        .collect();
    found.iter().collect()
}
