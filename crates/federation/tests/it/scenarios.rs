//! The graphs that the benchmarks run on load, whole and without a warning.

use std::{collections::BTreeMap, path::Path};

use ogive_base::{SourceId, Sources};
use ogive_federation::{ReadOptions, describe, read_supergraph};

#[test]
fn the_graphs_of_the_benchmarks_load() {
    let graphs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/graphs");
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(graphs).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let sdl = std::fs::read_to_string(folder.join("supergraph.graphql")).unwrap();
        let mut sources = Sources::new();
        sources.add(&*name, sdl.as_str());
        let supergraph = read_supergraph(&sdl, SourceId(0), &ReadOptions::default())
            .map_err(|errors| {
                errors
                    .iter()
                    .map(|e| e.render(&sources, false))
                    .collect::<Vec<_>>()
                    .join("\n")
            })
            .unwrap_or_else(|e| panic!("{e}"));
        assert!(supergraph.warnings.is_empty(), "{name}");
        // As many as there are files beside it, and every one of them with something to say.
        let files = std::fs::read_dir(folder.join("subgraphs")).unwrap().count();
        assert_eq!(supergraph.subgraphs.len(), files, "{name}");
        let described = describe(&supergraph);
        for (_, subgraph) in supergraph.subgraphs.iter() {
            assert!(described.contains(&*subgraph.name), "{name}\n{described}");
        }
        found.insert(name, files);
    }
    let expected = [
        ("big-response", 2),
        ("chain", 3),
        ("events", 1),
        ("four-services", 4),
        ("many-plans", 7),
        ("shop", 4),
        ("single", 1),
        ("twelve", 12),
        ("two-services", 2),
    ];
    let expected = expected.map(|(name, subgraphs)| (name.to_owned(), subgraphs));
    assert_eq!(found, BTreeMap::from(expected));
}
