//! Damaged supergraphs: whatever is missing, doubled or swapped, reading ends with rows or with located reasons.

use ogive_base::SourceId;
use ogive_federation::{ReadOptions, describe, read_supergraph, subgraph_schema};
use ogive_testbase::Rng;

use crate::cases::{case_paths, case_text};

/// One line or one word is dropped, doubled, swapped with another or replaced by another.
fn damage(text: &str, random: &mut Rng) -> String {
    let mut parts: Vec<&str> = if random.below(2) == 0 {
        text.split_inclusive('\n').collect()
    } else {
        text.split_inclusive([' ', '\n', '(', ')', ':', '"'])
            .collect()
    };
    if parts.is_empty() {
        return String::new();
    }
    let (a, b) = (random.below(parts.len()), random.below(parts.len()));
    match random.below(4) {
        0 => drop(parts.remove(a)),
        1 => parts.insert(a, parts[b]),
        2 => parts.swap(a, b),
        _ => parts[a] = parts[b],
    }
    parts.concat()
}

#[test]
fn damaged_supergraphs_end_with_rows_or_reasons() {
    let seed = 0x05ee_d0f0_917e;
    let mut random = Rng::new(seed);
    let (mut loaded, mut refused) = (0, 0);
    for path in case_paths() {
        let text = case_text(&path);
        for round in 0..40 {
            let damaged = damage(&text, &mut random);
            match read_supergraph(&damaged, SourceId(0), &ReadOptions::default()) {
                Ok(supergraph) => {
                    loaded += 1;
                    assert!(!describe(&supergraph).is_empty());
                    for subgraph in supergraph.subgraphs.ids() {
                        let (schema, _) = subgraph_schema(&supergraph, subgraph);
                        assert!(schema.type_by_name("_Service").is_some());
                    }
                }
                Err(errors) => {
                    refused += 1;
                    let located = |e: &ogive_base::Diagnostic| !e.labels.is_empty();
                    assert!(
                        !errors.is_empty() && errors.iter().all(located),
                        "{} round {round}: {errors:?}\n{damaged}",
                        path.display()
                    );
                }
            }
        }
    }
    // Both ends must be exercised for this to mean anything.
    assert!(
        loaded > 150 && refused > 300,
        "{loaded} loaded, {refused} refused"
    );
}
