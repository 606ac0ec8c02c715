//! Real, anonymised graphs from the shared data folder; skipped where it is absent.

use std::path::PathBuf;

use ogive_federation::{ReadOptions, read_supergraph};
use serde_json::Value;

use crate::{Owned, run};

pub(crate) fn load(name: &str) -> Option<Vec<Owned>> {
    let root = std::env::var_os("OGIVE_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let text = std::fs::read_to_string(root.join("data/compose").join(name)).ok()?;
    let value: Value = serde_json::from_str(&text).unwrap();
    Some(
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|s| Owned {
                name: s["name"].as_str().unwrap().into(),
                sdl: s["sdl"].as_str().unwrap().into(),
            })
            .collect(),
    )
}

fn composes(name: &str, subgraphs: usize, hints: usize) {
    let Some(set) = load(name) else { return };
    assert_eq!(set.len(), subgraphs);
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
        hints,
        "as many as the reference gives"
    );
    let sdl = composed.supergraph_sdl.unwrap();
    let read = read_supergraph(&sdl, ogive_base::SourceId(0), &ReadOptions::default()).unwrap();
    assert_eq!(read.subgraphs.len(), subgraphs);
}

#[test]
fn eleven_subgraphs_compose() {
    composes("dgs.json", 11, 10);
}

#[test]
fn one_hundred_and_ninety_one_subgraphs_compose() {
    composes("huge.json", 191, 67);
}
