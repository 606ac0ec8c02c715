//! Progressive overrides (planner rule 25): which labels of `@override(label:)` are on for a request.
//!
//! Labels are settled before planning, and only those that can matter to the operation enter the key of its plan. One draw
//! decides about all percentages of a request: whoever is among the first 5 % is among the first 20 % too, so `n`
//! labels make at most `n + 1` plans of an operation, and fields that move together in one schema move together for
//! one client. With `sticky_by` the draw is a hash of what a selector says, the same in every process.

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
use ogive_selectors::Selector;

use crate::{
    schema::fingerprint::{Part, rests_on},
    shared::selectors::Selected,
};

/// How the labels of one schema are settled.
#[derive(Debug)]
pub struct Labels {
    names: Vec<Box<str>>,
    /// By label: for which part of requests it is on.
    shares: Vec<LabelShare>,
    header: Option<Box<str>>,
    sticky_by: Option<Selector>,
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
            sticky_by: options.sticky_by.as_ref().map(|by| by.0.clone()),
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
    pub(crate) fn on(&self, labels: &[u32], headers: &HeaderMap, asked: &dyn Selected) -> BitSet {
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
                percent => *draw.get_or_insert_with(|| self.draw(headers, asked)) < percent,
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
    fn draw(&self, headers: &HeaderMap, asked: &dyn Selected) -> f64 {
        let hash = match self.sticky_by.as_ref() {
            // Whatever bytes it has.
            Some(Selector::RequestHeader(name)) => {
                headers.get(name).map(|value| stable_hash(value.as_bytes()))
            }
            Some(by) => asked.text(by).map(|text| stable_hash(text.as_bytes())),
            None => None,
        };
        let bits = match hash {
            Some(hash) => mixed(hash),
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

#[cfg(test)]
mod tests {
    use ogive_identity::{Caller, CallerOptions};
    use serde_json::json;

    use super::*;

    /// Whoever a claim names gets the same, whatever headers a client makes up; chance decides for those it does not name.
    #[test]
    fn a_claim_decides_about_parts_of_requests_and_no_header_does() {
        let labels = Labels {
            names: vec!["percent(20)".into()],
            shares: vec![LabelShare(20.0)],
            header: None,
            sticky_by: Some(Selector::JwtClaim("sub".into())),
            random: RandomState::new(),
            drawn: AtomicU64::new(0),
        };
        let is_on = |sub: Option<usize>, header: usize| {
            let mut claims = serde_json::Map::new();
            claims.extend(sub.map(|sub| ("sub".to_owned(), json!(sub.to_string()))));
            let caller = Caller::proved(claims, &CallerOptions::default());
            let mut headers = HeaderMap::new();
            headers.insert("sub", header.into());
            !labels.on(&[0], &headers, &caller).is_empty()
        };
        let by_claim = |sub| (0..20).map(move |header| is_on(Some(sub), header));
        let mut on = 0;
        for sub in 0..500 {
            let first = is_on(Some(sub), 0);
            assert!(by_claim(sub).all(|again| again == first));
            on += usize::from(first);
        }
        // A hash decides, so the number is always the same; about a fifth.
        assert!((60..140).contains(&on), "{on}");
        let chances = (0..200).filter(|_| is_on(None, 0)).count();
        assert!((1..200).contains(&chances), "{chances}");
    }
}
