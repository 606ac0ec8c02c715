//! Composing again and again: what did not change is not done again.
//!
//! [`Composer`] keeps what was read of each subgraph under the hash of its text, and the last composition without errors. An
//! edit of one of two hundred subgraphs that keeps the graph's shape costs the reading of that one and the merging,
//! checking and printing of its types (see `again`); any other edit costs the stages after reading.
//! The result is that of a fresh composition, to the byte.

use std::sync::Arc;

use ogive_base::{FastMap, hash::hash_one};

use crate::{
    ComposeOptions, Composed, Merging, SubgraphInput,
    again::{CHANGED_MAX, Kept},
    finish,
    subgraph::{self, Preludes, Subgraph},
};

/// Most subgraph texts that are remembered beyond those of the last composition.
pub const REMEMBERED_MAX: usize = 1_024;

/// A composer with a memory. Same inputs, same result, whatever was composed before.
#[derive(Debug, Default)]
pub struct Composer {
    preludes: Preludes,
    read: FastMap<u64, Remembered>,
    last: Option<Box<Last>>,
    /// Subgraphs read since it was made.
    reads: usize,
    /// Compositions that continued the one before.
    continued: usize,
}

#[derive(Debug)]
struct Remembered {
    sdl: Arc<str>,
    subgraph: Arc<Subgraph>,
}

/// The last composition without errors.
#[derive(Debug)]
struct Last {
    names: Vec<(Box<str>, Box<str>)>,
    texts: Vec<Arc<str>>,
    raw: Vec<Arc<Subgraph>>,
    options: ComposeOptions,
    kept: Kept,
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
    /// How many compositions only did what had changed since the one before; for tests and figures.
    pub fn continued(&self) -> usize {
        self.continued
    }
    /// Composes subgraphs, doing only what is new.
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
        if let Some(last) = self.last.take() {
            match self.again(last, &inputs, options) {
                Ok(composed) => return composed,
                Err(last) => self.last = last,
            }
        }
        self.full(&inputs, options)
    }

    /// Continues the last composition; gives it back if it is no start.
    fn again(
        &mut self,
        last: Box<Last>,
        inputs: &[&SubgraphInput<'_>],
        options: &ComposeOptions,
    ) -> Result<Composed, Option<Box<Last>>> {
        let same_names = last.names.len() == inputs.len()
            && last
                .names
                .iter()
                .zip(inputs)
                .all(|((name, url), input)| **name == *input.name && **url == *input.url);
        let changed: Vec<usize> = (0..inputs.len().min(last.texts.len()))
            .filter(|i| *last.texts[*i] != *inputs[*i].sdl)
            .collect();
        if !same_names || last.options != *options || changed.len() > CHANGED_MAX {
            return Err(Some(last));
        }
        let Last {
            names,
            mut texts,
            mut raw,
            options,
            kept,
        } = *last;
        let mut replaced = Vec::with_capacity(changed.len());
        for at in changed {
            let (text, now) = self.subgraph(inputs[at]);
            let before = std::mem::replace(&mut raw[at], now.clone());
            texts[at] = text;
            replaced.push((at, before, now));
        }
        let kept = kept.again(&replaced, &raw, &options).ok_or(None)?;
        self.continued += 1;
        let mut composed = Composed {
            supergraph_sdl: Some(kept.printed.supergraph()),
            stages_passed: crate::STAGES,
            hints: kept.hints(),
            ..Composed::default()
        };
        for ((name, _), text) in names.iter().zip(&texts) {
            composed.sources.add(&**name, text.clone());
        }
        composed.graph = Some(Merging::Again(names.clone(), options));
        self.last = Some(Box::new(Last {
            names,
            texts,
            raw,
            options,
            kept,
        }));
        Ok(composed)
    }

    fn full(&mut self, inputs: &[&SubgraphInput<'_>], options: &ComposeOptions) -> Composed {
        let mut composed = Composed::default();
        let mut subs = Vec::with_capacity(inputs.len());
        let (mut texts, mut raw) = (Vec::new(), Vec::new());
        for input in inputs {
            let (text, subgraph) = self.subgraph(input);
            let mut sub = (*subgraph).clone();
            (sub.name, sub.url) = (input.name.into(), input.url.into());
            sub.relabel(composed.sources.add(input.name, text.clone()));
            composed.errors.append(&mut sub.errors);
            subs.push(sub);
            texts.push(text);
            raw.push(subgraph);
        }
        let Some(done) = finish(subs, &mut composed, options) else {
            return composed;
        };
        let (printed, kept) = Kept::new(done, options);
        composed.supergraph_sdl = Some(printed.supergraph());
        let names: Vec<(Box<str>, Box<str>)> = inputs
            .iter()
            .map(|i| (i.name.into(), i.url.into()))
            .collect();
        composed.graph = Some(Merging::Again(names.clone(), *options));
        self.last = kept.map(|kept| {
            Box::new(Last {
                names,
                texts,
                raw,
                options: *options,
                kept,
            })
        });
        composed
    }

    fn subgraph(&mut self, input: &SubgraphInput<'_>) -> (Arc<str>, Arc<Subgraph>) {
        let key = hash_one(input.sdl);
        if let Some(known) = self.read.get(&key).filter(|r| *r.sdl == *input.sdl) {
            return (known.sdl.clone(), known.subgraph.clone());
        }
        self.reads += 1;
        let sdl: Arc<str> = input.sdl.into();
        let subgraph = subgraph::read(input.name, input.url, input.sdl, &mut self.preludes);
        let subgraph = Arc::new(subgraph);
        let remembered = Remembered {
            sdl: sdl.clone(),
            subgraph: subgraph.clone(),
        };
        self.read.insert(key, remembered);
        (sdl, subgraph)
    }
}
