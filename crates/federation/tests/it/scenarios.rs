//! The published benchmark scenarios load, where they are at hand.

use std::path::PathBuf;

use ogive_base::{SourceId, Sources};
use ogive_federation::{ReadOptions, describe, read_supergraph};

fn shared() -> PathBuf {
    std::env::var_os("OGIVE_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    )
}

#[test]
fn published_scenarios_load() {
    let dir = shared().join("data/scenarios");
    if !dir.exists() {
        eprintln!("skipped: no {}", dir.display());
        return;
    }
    for (name, subgraphs) in [("fed", 4), ("many-plans", 7), ("big-response", 2)] {
        let sdl = std::fs::read_to_string(dir.join(name).join("supergraph.graphql")).unwrap();
        let mut sources = Sources::new();
        sources.add(name, sdl.as_str());
        let supergraph = read_supergraph(&sdl, SourceId(0), &ReadOptions::default())
            .map_err(|errors| {
                errors
                    .iter()
                    .map(|e| e.render(&sources, false))
                    .collect::<Vec<_>>()
                    .join("\n")
            })
            .unwrap_or_else(|e| panic!("{e}"));
        println!("{}", describe(&supergraph));
        assert_eq!(supergraph.subgraphs.len(), subgraphs, "{name}");
        assert!(supergraph.warnings.is_empty(), "{name}");
    }
}
