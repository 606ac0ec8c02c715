//! Labels of progressive overrides decide who resolves a field.

use ogive_base::{BitSet, SourceId};
use ogive_federation::{ReadOptions, read_supergraph};

#[test]
fn a_label_that_is_on_moves_the_field() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let sdl = [
        "cases/progressive_override",
        "preludes/link",
        "preludes/join-v0.4",
    ]
    .map(|f| std::fs::read_to_string(format!("{dir}/{f}.graphql")).unwrap())
    .join("\n");
    let supergraph = read_supergraph(&sdl, SourceId(0), &ReadOptions::default()).unwrap();
    let (schema, graph) = (&supergraph.schema, &supergraph.graph);
    let query = schema.type_by_name("Query").unwrap();
    let find = &graph.fields[schema.field_by_name(query, "find").unwrap()];
    let set = |bits: &[u32]| bits.iter().copied().collect::<BitSet>();
    let (legacy, search) = (0, 1);
    assert_eq!(graph.override_labels[0].as_ref(), "percent(50)");
    assert_eq!(find.resolvers_with(&set(&[])), set(&[legacy]));
    assert_eq!(find.resolvers_with(&set(&[0])), set(&[search]));
    assert_eq!(
        find.resolvers_with(&set(&[1])),
        set(&[legacy]),
        "another label"
    );
}
