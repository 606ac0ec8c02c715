//! Composing again and again: subgraphs are read once per content.
//!
//! [`Composer`] keeps what was read of each subgraph under the hash of its text, so that an edit of one of two hundred
//! subgraphs costs the reading of that one. The stages after reading run anew: they are what the edit may change.

use std::sync::Arc;

use ogive_base::{FastMap, SourceId, hash::hash_one};

use crate::{
    ComposeOptions, Composed, SubgraphInput, finish,
    subgraph::{self, Preludes, Subgraph},
};

/// Most subgraph texts that are remembered beyond those of the last composition.
pub const REMEMBERED_MAX: usize = 1_024;

/// A composer with a memory. Same inputs, same result, whatever was composed before.
#[derive(Debug, Default)]
pub struct Composer {
    preludes: Preludes,
    read: FastMap<u64, Remembered>,
    /// Subgraphs read since it was made.
    reads: usize,
}

#[derive(Debug)]
struct Remembered {
    sdl: Arc<str>,
    subgraph: Subgraph,
}

impl Composer {
    /// A composer that remembers nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// How many subgraph texts were read so far; for tests and figures.
    pub fn reads(&self) -> usize {
        self.reads
    }
    /// Composes subgraphs, reading only texts that are new.
    pub fn compose(
        &mut self,
        subgraphs: &[SubgraphInput<'_>],
        options: &ComposeOptions,
    ) -> Composed {
        let mut inputs: Vec<&SubgraphInput<'_>> = subgraphs.iter().collect();
        inputs.sort_by_key(|s| s.name);
        if self.read.len() > REMEMBERED_MAX.max(2 * inputs.len()) {
            self.read.clear();
        }
        let mut composed = Composed::default();
        let mut subs = Vec::with_capacity(inputs.len());
        for input in &inputs {
            let (id, sub) = self.subgraph(input, &mut composed);
            let mut sub = sub;
            sub.relabel(id);
            composed.errors.append(&mut sub.errors);
            subs.push(sub);
        }
        finish(subs, composed, options)
    }

    fn subgraph(
        &mut self,
        input: &SubgraphInput<'_>,
        composed: &mut Composed,
    ) -> (SourceId, Subgraph) {
        let key = hash_one(input.sdl);
        let known = self.read.get(&key).filter(|r| *r.sdl == *input.sdl);
        if let Some(known) = known {
            let id = composed.sources.add(input.name, known.sdl.clone());
            let mut sub = known.subgraph.clone();
            sub.name = input.name.into();
            sub.url = input.url.into();
            return (id, sub);
        }
        self.reads += 1;
        let sdl: Arc<str> = input.sdl.into();
        let id = composed.sources.add(input.name, sdl.clone());
        let subgraph = subgraph::read(input.name, input.url, input.sdl, &mut self.preludes);
        self.read.insert(
            key,
            Remembered {
                sdl,
                subgraph: subgraph.clone(),
            },
        );
        (id, subgraph)
    }
}
