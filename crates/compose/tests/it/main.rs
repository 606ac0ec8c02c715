//! Tests of the composition crate: cases in files, graphs of a company's size, metamorphic properties, hostile input.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod brute;
mod cases;
mod company;
mod contracts;
mod edits;
mod events;
mod hostile;
#[path = "../../examples/generate/mutants.rs"]
mod mutants;
#[path = "mutants.rs"]
mod mutated;
mod normal;
mod real;
mod relations;
#[path = "../../examples/generate/sets.rs"]
mod sets;
mod variants;

use ogive_compose::{ComposeOptions, Composed, SubgraphInput, compose};

/// An owned subgraph.
#[derive(Clone, Debug)]
pub struct Owned {
    /// Its name.
    pub name: String,
    /// Its schema.
    pub sdl: String,
}

/// Composes owned subgraphs with made-up URLs.
pub fn run(set: &[Owned]) -> Composed {
    run_with(set, &ComposeOptions::default())
}

/// Composes owned subgraphs with made-up URLs and options.
pub fn run_with(set: &[Owned], options: &ComposeOptions) -> Composed {
    let urls: Vec<String> = set.iter().map(|s| format!("http://{}", s.name)).collect();
    let inputs: Vec<SubgraphInput<'_>> = set
        .iter()
        .zip(&urls)
        .map(|(s, url)| SubgraphInput {
            name: &s.name,
            url,
            sdl: &s.sdl,
        })
        .collect();
    compose(&inputs, options)
}

/// A subgraph from text.
pub fn sub(name: &str, sdl: &str) -> Owned {
    Owned {
        name: name.into(),
        sdl: sdl.into(),
    }
}
