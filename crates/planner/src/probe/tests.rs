//! The probe against the readable closure, on request sets of every size.

use ogive_base::{BitSet, SourceId};
use ogive_federation::Supergraph;

use super::Probe;
use crate::{
    PlanOptions,
    closure::{Closure, NEVER, Requests},
    tree::{FactId, Tree, grow},
};

const SHOP: &str = include_str!("../../tests/supergraphs/shop.graphql");
const JOIN: &str = include_str!("../../tests/join.graphql");
const ARCHIVE: &str = include_str!("../../tests/supergraphs/archive.graphql");
const LIBRARY: &str = include_str!("../../tests/supergraphs/library.graphql");

fn read(types: &str) -> Supergraph {
    let sdl = format!(
        "schema @link(url: \"https://specs.apollo.dev/link/v1.0\") @link(url: \"https://specs.apollo.dev/join/v0.4\", for: EXECUTION) {{ query: Query }}\n{JOIN}{types}"
    );
    ogive_federation::read_supergraph(&sdl, SourceId(0), &Default::default()).expect("a supergraph")
}

fn wanted(tree: &Tree<'_>) -> Vec<FactId> {
    tree.facts
        .iter()
        .filter(|(_, f)| f.is_wanted())
        .map(|(id, _)| id)
        .collect()
}

/// Every third subset of the (wave, subgraph) requests of a small instance; of a larger one a few thousand.
fn compare(supergraph: &Supergraph, operation: &str, waves: usize) {
    let parsed = ogive_syntax::parse(operation, SourceId(0), &Default::default());
    let op = parsed.document.operations().next().expect("an operation");
    let op = ogive_operation::normalise(&supergraph.api, &parsed.document, op, &Default::default())
        .expect("a form");
    let tree = grow(supergraph, &op, &PlanOptions::default()).expect("a tree");
    let wanted = wanted(&tree);
    let subgraphs = supergraph.subgraphs.len();
    let subsets = 1u32 << (waves * subgraphs);
    let step = (subsets as usize / 3_000).max(3) | 1;
    let mut suffice = [0; 2];
    for scope in tree.scopes() {
        let mut probe = Probe::<1>::new(&tree, &scope, &wanted);
        let mut closure = Closure::default();
        for subset in (0..subsets).step_by(step) {
            let set = |w: usize| -> BitSet {
                (0..subgraphs as u32)
                    .filter(|s| subset & (1 << (w * subgraphs + *s as usize)) != 0)
                    .collect()
            };
            let requests = Requests {
                waves: (0..waves).map(set).collect(),
            };
            closure.run(&tree, &scope, &requests);
            let expected = wanted.iter().all(|f| closure.known(*f) != NEVER);
            assert_eq!(
                probe.accept(&requests),
                expected,
                "{operation} with {requests:?}"
            );
            suffice[usize::from(expected)] += 1;
            if expected {
                // A removal answers like a fresh start without the request.
                for wave in 0..waves {
                    for s in requests.waves[wave].iter() {
                        let mut fewer = requests.clone();
                        fewer.waves[wave].remove(s);
                        closure.run(&tree, &scope, &fewer);
                        let expected = wanted.iter().all(|f| closure.known(*f) != NEVER);
                        probe.accept(&requests);
                        assert_eq!(
                            probe.try_remove(wave, s),
                            expected,
                            "{operation} without {wave}/{s}"
                        );
                    }
                }
            }
        }
    }
    assert!(
        suffice[0] > 0 && suffice[1] > 0,
        "both answers must occur: {suffice:?}"
    );
}

#[test]
fn agrees_with_the_reference() {
    let shop = read(SHOP);
    compare(
        &shop,
        "{ product(sku: \"1\") { name fee reviews { author { name email } } } }",
        3,
    );
    compare(
        &shop,
        "{ motto me { name reviews { product { inStock } } } }",
        3,
    );
    let library = read(LIBRARY);
    compare(
        &library,
        "{ books { title pages borrowed } branch { address { phone postcode } } }",
        3,
    );
    let archive = read(ARCHIVE);
    compare(
        &archive,
        "{ best { stars due { day } reviews { by { name } } ... on Book { aisle } } }",
        3,
    );
}
