//! Any texts as subgraphs, separated by lines of `---`: composition must not panic, every error and hint must point
//! into a subgraph, a supergraph must be readable, and a composer that remembers must say the same as a fresh one.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_compose::{ComposeOptions, Composed, Composer, SubgraphInput, api_sdl, compose};

/// Most subgraphs of one input.
const SUBGRAPHS_MAX: usize = 4;
/// Most states of satisfiability, so that one input stays quick.
const STATES_MAX: usize = 20_000;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let parts: Vec<&str> = text.split("\n---\n").take(SUBGRAPHS_MAX).collect();
    let names = ["a", "b", "c", "d"];
    let inputs: Vec<SubgraphInput<'_>> = parts
        .iter()
        .zip(names)
        .map(|(sdl, name)| SubgraphInput {
            name,
            url: "http://localhost",
            sdl,
        })
        .collect();
    let options = ComposeOptions {
        states_max: Some(STATES_MAX),
        ..ComposeOptions::default()
    };
    let composed = compose(&inputs, &options);
    located(&composed);
    if composed.errors.is_empty() {
        assert!(
            composed.api_sdl().is_some(),
            "the supergraph cannot be read"
        );
        let supergraph = composed.supergraph_sdl.as_deref().expect("no errors");
        assert!(api_sdl(supergraph).is_some());
    }
    // The last subgraph is edited, and edited back.
    let mut composer = Composer::new();
    let mut edited = inputs.clone();
    if let Some(last) = edited.last_mut() {
        last.sdl = inputs[0].sdl;
    }
    for set in [&inputs, &edited, &inputs] {
        let (again, fresh) = (composer.compose(set, &options), compose(set, &options));
        assert_eq!(again.supergraph_sdl, fresh.supergraph_sdl);
        assert_eq!(again.errors, fresh.errors);
        assert_eq!(again.hints, fresh.hints);
    }
});

fn located(composed: &Composed) {
    for diagnostic in composed.errors.iter().chain(&composed.hints) {
        let code = diagnostic.code;
        assert!(!diagnostic.labels.is_empty(), "{code} points nowhere");
        for label in &diagnostic.labels {
            let source = composed.sources.get(label.source).expect("a subgraph");
            assert!(
                source.text.get(label.span.range()).is_some(),
                "{} points outside of its subgraph",
                diagnostic.code
            );
        }
    }
}
