//! The table `tests/cases.txt`: every rule of how costs are counted, with the sum written out.

use super::{estimate, shop};

/// Fewer mean that some were not found.
const CASES: usize = 30;

#[test]
fn operations_cost_what_the_table_says() {
    let graph = shop();
    let table = include_str!("../cases.txt");
    let mut found = 0;
    for case in table.split("\n== ").skip(1) {
        let mut lines = case
            .lines()
            .filter(|l| !l.is_empty() && !l.starts_with('#'));
        let name = lines.next().unwrap();
        let operation = lines.next().unwrap();
        let (mut variables, mut expected) = ("{}", lines.next().unwrap());
        if expected.starts_with('{') {
            variables = expected;
            expected = lines.next().unwrap();
        }
        assert_eq!(lines.next(), None, "{name}");
        let (estimate, normal) = estimate(&graph, operation, variables);
        let got = match estimate.unsized_field {
            Some(field) => format!("refused {}", normal.keys.text(normal.fields[field].key)),
            None => format!("cost {}", estimate.cost),
        };
        assert_eq!(got, expected, "{name}: {operation}");
        found += 1;
    }
    assert!(found >= CASES, "cases are gone");
}
