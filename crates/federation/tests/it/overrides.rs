//! Labels of progressive overrides decide who resolves a field.

use ogive_base::{BitSet, SourceId};
use ogive_federation::{ReadOptions, Supergraph, read_supergraph};
use ogive_schema::FieldId;

fn case() -> String {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let files = [
        "cases/progressive_override",
        "preludes/link",
        "preludes/join-v0.4",
    ];
    files
        .map(|f| std::fs::read_to_string(format!("{dir}/{f}.graphql")).unwrap())
        .join("\n")
}

fn read(sdl: &str) -> (Supergraph, FieldId) {
    let supergraph = read_supergraph(sdl, SourceId(0), &ReadOptions::default()).unwrap();
    let query = supergraph.schema.type_by_name("Query").unwrap();
    let find = supergraph.schema.field_by_name(query, "find").unwrap();
    (supergraph, find)
}

fn set(bits: &[u32]) -> BitSet {
    bits.iter().copied().collect()
}

const LEGACY: u32 = 0;
const SEARCH: u32 = 1;

#[test]
fn a_label_that_is_on_moves_the_field() {
    let (supergraph, find) = read(&case());
    let find = &supergraph.graph.fields[find];
    assert_eq!(supergraph.graph.override_labels[0].as_ref(), "percent(50)");
    assert_eq!(find.resolvers_with(&set(&[])), set(&[LEGACY]));
    assert_eq!(find.resolvers_with(&set(&[0])), set(&[SEARCH]));
    assert_eq!(
        find.resolvers_with(&set(&[1])),
        set(&[LEGACY]),
        "another label"
    );
}

#[test]
fn a_label_does_not_count_where_the_subgraph_before_no_longer_has_the_field() {
    let lost = case().replace(
        "@join__field(graph: LEGACY, overrideLabel: \"percent(50)\")",
        "",
    );
    assert_ne!(lost, case());
    let (supergraph, find) = read(&lost);
    let find = &supergraph.graph.fields[find];
    assert_eq!(find.resolvers_with(&set(&[])), set(&[SEARCH]));
    assert_eq!(find.resolvers_with(&set(&[0])), set(&[SEARCH]));
}
