//! `ogive bench` before the gateway itself, with loads so small that they only show that everything fits together.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::Value;

use crate::process::{folder, run};

/// Numbers of scenarios, and what they become here.
const SMALLER: [(&str, &str); 14] = [
    // On a busy machine events may take long.
    ("within = \"30s\"", "within = \"60s\""),
    ("count = 1000", "count = 5"),
    ("count = 2000", "count = 5"),
    ("count = 10", "count = 3"),
    ("rate = 25", "rate = 50"),
    ("rate = 5,", "rate = 50,"),
    ("events = 100000", "events = 300"),
    ("clients = 20", "clients = 2"),
    ("\"20s\"", "\"3s\""),
    ("\"30s\"", "\"300ms\""),
    ("warmup = \"2s\"", "warmup = \"0s\""),
    ("warmup = \"0s\"", "warmup = \"0s\"\nsettle = \"10s\""),
    ("duration = \"2s\"", "duration = \"100ms\""),
    ("\"100ms\" }\n\n[load]", "\"1s\" }\n\n[load]"),
];

/// A lab with this gateway alone, and scenarios of events and of answers in parts.
fn lab(root: &Path) -> Vec<String> {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let bench = fs::canonicalize(bench).unwrap();
    fs::create_dir_all(root.join("gateways")).unwrap();
    fs::create_dir_all(root.join("scenarios")).unwrap();
    for name in ["features.toml", "graphs", "tools", "gateways/ogive"] {
        symlink(bench.join(name), root.join(name)).unwrap();
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(bench.join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("events-") && !name.starts_with("defer-") {
            continue;
        }
        let mut text = fs::read_to_string(&path).unwrap();
        for (from, to) in SMALLER {
            text = text.replace(from, to);
        }
        fs::write(root.join("scenarios").join(format!("{name}.toml")), text).unwrap();
        names.push(name);
    }
    names.sort();
    names
}

#[test]
fn scenarios_of_events_and_of_answers_in_parts_can_be_run() {
    let root = folder().join("bench-of-events");
    let _ = fs::remove_dir_all(&root);
    let names = lab(&root);
    assert!(names.len() >= 9, "{names:?}");
    let [lab, cache, out] = ["", "cache", "out"].map(|name| root.join(name).display().to_string());
    let arguments = ["bench", "--lab", &lab, "--cache", &cache, "run", "-o", &out];
    let arguments = arguments
        .iter()
        .chain(&["--rounds", "1", "--format", "json"]);
    let (code, stdout, stderr) = run(&arguments.collect::<Vec<_>>());
    assert_eq!(code, Some(0), "{stderr}");
    let summary: Value = serde_json::from_str(&stdout).unwrap();
    let scenarios = summary["scenarios"].as_array().unwrap();
    let found: Vec<_> = scenarios
        .iter()
        .filter_map(|s| s["name"].as_str())
        .collect();
    assert_eq!(found, names);
    for scenario in scenarios {
        let (name, row) = (&scenario["name"], &scenario["rows"][0]);
        assert_eq!(row["verdict"]["verdict"], "ok", "{name} {row}");
        let metric = |of: &str| row["metrics"][of]["median"].as_f64();
        assert!(metric("p50").is_some_and(|p50| p50 > 0.0), "{name} {row}");
        if name == "defer-first-part" {
            // The rest is held back for a second.
            assert!(metric("whole").is_some_and(|ms| ms >= 1e3), "{row}");
            assert!(metric("p50") < metric("whole"), "{row}");
            continue;
        }
        assert_eq!(metric("lost"), Some(0.0), "{name} {row}");
        let is_distinct = name.as_str().is_some_and(|name| name.contains("distinct"));
        let upstreams = if is_distinct { 5.0 } else { 1.0 };
        assert_eq!(metric("upstreams"), Some(upstreams), "{name} {row}");
    }
}
