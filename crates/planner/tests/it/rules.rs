//! `docs/planner-rules.md` links every rule to what shows it; this keeps the links true in both directions.

use std::path::Path;

use super::folder;

/// `(text, target)` of the links in one table cell.
fn links(cell: &str) -> Vec<(&str, &str)> {
    cell.split("](")
        .zip(cell.split("](").skip(1))
        .filter_map(|(before, after)| {
            let text = before.rsplit('[').next()?;
            Some((text, after.split(')').next()?))
        })
        .collect()
}

#[test]
fn the_table_of_rules_is_complete() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let text = std::fs::read_to_string(docs.join("planner-rules.md")).expect("the table");
    let mut rows = Vec::new();
    let mut shown = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Some(rule) = cells.get(1).and_then(|c| c.parse::<u32>().ok()) else {
            continue;
        };
        let [_, _, _, evidence, state, _] = cells[..] else {
            panic!("a row has four cells: {line}");
        };
        rows.push(rule);
        let links = links(evidence);
        let state = state.split(':').next().unwrap_or_default();
        match state {
            "planned" | "partly" | "executed" => assert!(!links.is_empty(), "rule {rule} is shown"),
            "not yet" => {}
            other => panic!("rule {rule}: unknown state {other}"),
        }
        let mut has_folder = false;
        for (name, target) in links {
            let path = docs.join(target);
            if path.is_dir() {
                assert!(
                    name.starts_with(&format!("r{rule:02}-")),
                    "rule {rule}: {name}"
                );
                assert!(target.ends_with(name), "rule {rule}: {target}");
                has_folder = true;
                shown.push(name.to_string());
            } else {
                let code = std::fs::read_to_string(&path)
                    .unwrap_or_else(|e| panic!("rule {rule}: {target}: {e}"));
                assert!(
                    code.contains(&format!("fn {name}(")),
                    "rule {rule}: no {name} in {target}"
                );
            }
        }
        assert!(
            has_folder || state == "not yet",
            "rule {rule}: cases show how it is planned"
        );
    }
    assert_eq!(
        rows,
        (1..=71).collect::<Vec<u32>>(),
        "one row for each rule"
    );
    let mut folders: Vec<String> = std::fs::read_dir(folder("cases"))
        .expect("cases")
        .map(|e| {
            e.expect("entry")
                .file_name()
                .into_string()
                .expect("a plain name")
        })
        // Others show what is no rule of the federation.
        .filter(|name| name.starts_with('r'))
        .collect();
    folders.sort();
    shown.sort();
    assert_eq!(folders, shown, "every folder of cases is in the table");
}
