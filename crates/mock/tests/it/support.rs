//! What several test modules need.

use std::path::PathBuf;

use ogive_mock::{Data, Options, Source, Subgraph};
use serde_json::{Map, Value};

/// A folder of `bench/graphs`.
pub(crate) fn graph(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../bench/graphs")
        .join(name)
}

pub(crate) fn subgraph(sdl: &str, data: &str) -> Subgraph {
    let data = Data::parse(data).unwrap_or_else(|e| panic!("{e}"));
    build(sdl, Source::Data(data.into()))
}

pub(crate) fn build(sdl: &str, source: Source) -> Subgraph {
    Subgraph::new("test.graphql", sdl, source, Options::default()).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn run(subgraph: &Subgraph, query: &str, variables: Value) -> Value {
    let variables: Map<String, Value> = variables.as_object().cloned().unwrap_or_default();
    subgraph.execute_json(query, None, &variables)
}

/// Compares long texts without printing them whole.
pub(crate) fn assert_same(found: &[u8], expected: &str) {
    let found = String::from_utf8_lossy(found);
    if found == expected {
        return;
    }
    let at = found
        .bytes()
        .zip(expected.bytes())
        .position(|(a, b)| a != b)
        .unwrap_or(found.len().min(expected.len()));
    let around = |text: &str| {
        let start = text.floor_char_boundary(at.saturating_sub(100));
        let end = text.floor_char_boundary(text.len().min(at + 100));
        text[start..end].to_string()
    };
    panic!(
        "different at byte {at}\nfound    ..{}\nexpected ..{}",
        around(&found),
        around(expected)
    );
}
