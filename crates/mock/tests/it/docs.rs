//! What `docs/mock.md` shows works as written there.

use std::{fs, path::Path};

use ogive_mock::{Config, Data, EventFault, Fault};
use serde_json::json;

use crate::support::{run, subgraph};

fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mock.md");
    fs::read_to_string(path).unwrap()
}

/// The YAML blocks: config files have subgraphs, the others are data files.
fn blocks(text: &str) -> (Vec<&str>, Vec<&str>) {
    let blocks = text.split("```yaml\n").skip(1);
    blocks
        .filter_map(|b| b.split("```").next())
        .partition(|b| b.contains("\nsubgraphs:"))
}

#[test]
fn every_block_can_be_read() {
    let text = text();
    let (configs, data) = blocks(&text);
    assert_eq!((configs.len(), data.len()), (3, 2));
    for block in configs {
        Config::parse(block, Path::new("")).unwrap_or_else(|e| panic!("{e}\n{block}"));
    }
    for block in data {
        Data::parse(block).unwrap_or_else(|e| panic!("{e}\n{block}"));
    }
}

#[test]
fn the_data_file_answers() {
    let text = text();
    let (_, data) = blocks(&text);
    let served = subgraph(
        r#"type Query { me: User topProducts(first: Int): [Product] }
           type User @key(fields: "id") { id: ID! name: String reviews: [Review] }
           type Review @key(fields: "id") { id: ID! stars: Int author: User product: Product }
           type Product @key(fields: "upc") { upc: String! label: String size: Size shippingEstimate: Int }
           type Size { w: Int h: Int }"#,
        data[0],
    );
    let answer = run(
        &served,
        "{ me { name reviews { stars product { label size { w } shippingEstimate } } } topProducts(first: 1) { upc } }",
        json!({}),
    );
    let product = json!({"label": "Table for 1299", "size": {"w": 180}, "shippingEstimate": 0});
    assert_eq!(
        answer["data"],
        json!({"me": {"name": "Ann", "reviews": [{"stars": 5, "product": product}]}, "topProducts": [{"upc": "table"}]})
    );
}

#[test]
fn every_fault_of_the_table_can_be_read() {
    let text = text();
    let table = text.split("| fault | what happens |").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|l| l.starts_with('|'));
    let mut n_faults = 0;
    for row in rows {
        let cell = row.split('|').nth(1).unwrap();
        for fault in cell.split('`').skip(1).step_by(2) {
            Fault::parse(fault).unwrap_or_else(|e| panic!("{e}"));
            n_faults += 1;
        }
    }
    assert_eq!(n_faults, 16);
}

#[test]
fn every_fault_of_events_can_be_read() {
    let text = text();
    let table = text
        .split("| fault of events | what happens |")
        .nth(1)
        .unwrap();
    let rows = table.lines().skip(2).take_while(|l| l.starts_with('|'));
    let faults = rows.map(|row| row.split('`').nth(1).unwrap());
    let read = faults.map(|fault| EventFault::parse(fault).unwrap_or_else(|e| panic!("{e}")));
    assert_eq!(read.count(), 7);
}
