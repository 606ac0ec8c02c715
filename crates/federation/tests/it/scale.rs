//! Sizes: what grows with the supergraph grows with it and not faster.

use std::fmt::Write;

use ogive_base::SourceId;
use ogive_federation::{ReadOptions, read_supergraph, subgraph_sdl};

/// `subgraphs` subgraphs that all extend each of `types` entities with one field.
fn mesh(subgraphs: usize, types: usize) -> String {
    let prelude = |name: &str| {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/preludes");
        std::fs::read_to_string(format!("{dir}/{name}.graphql")).unwrap()
    };
    let mut sdl = String::from(
        "schema @link(url: \"https://specs.apollo.dev/link/v1.0\") \
         @link(url: \"https://specs.apollo.dev/join/v0.3\", for: EXECUTION) { query: Query }\n",
    );
    sdl += &prelude("link");
    sdl += &prelude("join-v0.3");
    sdl += "enum join__Graph {\n";
    for s in 0..subgraphs {
        let _ = writeln!(
            sdl,
            "  S{s} @join__graph(name: \"s{s}\", url: \"http://s{s}\")"
        );
    }
    sdl += "}\ntype Query @join__type(graph: S0) { first: E0 }\n";
    for t in 0..types {
        let _ = write!(sdl, "type E{t}");
        for s in 0..subgraphs {
            let _ = write!(sdl, " @join__type(graph: S{s}, key: \"id of {{ id }}\")");
        }
        let _ = write!(sdl, " {{ id: ID! of: E{t}");
        for s in 0..subgraphs {
            let _ = write!(sdl, " f{s}: Int @join__field(graph: S{s})");
        }
        sdl += " }\n";
    }
    sdl
}

#[test]
fn equal_keys_are_one_field_set() {
    let supergraph = read_supergraph(&mesh(70, 3), SourceId(0), &ReadOptions::default()).unwrap();
    let graph = &supergraph.graph;
    assert_eq!(supergraph.subgraphs.len(), 70);
    // One per type for the key and one for its `{ id }`.
    assert_eq!(graph.field_sets.len(), 6);
    let e2 = supergraph.schema.type_by_name("E2").unwrap();
    assert_eq!(graph.types[e2].sources.len(), 70);
    let last = supergraph.subgraphs.ids().next_back().unwrap();
    assert!(subgraph_sdl(&supergraph, last).contains("f69: Int"));
    assert!(!subgraph_sdl(&supergraph, last).contains("f68: Int"));
}

#[test]
fn too_many_subgraphs_are_refused() {
    let options = ReadOptions {
        subgraphs_max: 10,
        ..ReadOptions::default()
    };
    let errors = read_supergraph(&mesh(11, 1), SourceId(0), &options).unwrap_err();
    assert_eq!(errors[0].code, "TOO_MANY_SUBGRAPHS");
}

#[test]
fn diagnostics_stop_at_the_limit() {
    let sdl = mesh(30, 2).replace("id of { id }", "nope");
    let options = ReadOptions {
        errors_max: 7,
        ..ReadOptions::default()
    };
    let errors = read_supergraph(&sdl, SourceId(0), &options).unwrap_err();
    assert_eq!(errors.len(), 7);
    assert!(errors.iter().all(|e| e.code == "KEY_INVALID_FIELDS"));
}
