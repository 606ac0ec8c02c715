//! `tests/contracts/<case>/`: subgraphs, `filter.json`, and in `guild.json` what a second implementation makes of it,
//! recorded by `oracle/compose/record_contracts.mjs`. Contracts have no specification, so API schemas must be equal
//! but for the differences listed in [`INTENDED`].

use std::{fs, path::Path};

use ogive_compose::ContractFilter;
use serde_json::Value;

use crate::{normal::normal, run, sub};

/// Cases in which the two differ on purpose, each with its reason.
const INTENDED: &[(&str, &str)] = &[
    (
        "plain_exclude_beta_reachable",
        "what cannot be reached goes before references are checked, so it refuses nothing",
    ),
    (
        "plain_include_beta",
        "a union follows its members; it needs no tag of its own",
    ),
    (
        "shop_include_public",
        "arguments go by an excluded tag only, as Apollo documents it; an included field keeps its arguments",
    ),
    ("shop_include_public_exclude_internal", "the same"),
];

/// FNV-1a, as the recorder computes it.
fn hash(texts: &[&str]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for text in texts {
        for byte in text.bytes().chain([0]) {
            hash ^= u64::from(byte);
            hash = hash.wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[test]
fn contracts_are_those_of_a_second_implementation() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contracts");
    let mut dirs: Vec<_> = fs::read_dir(&root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    dirs.sort();
    assert!(dirs.len() >= 8);
    let mut wrong = String::new();
    for dir in dirs {
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap();
        let mut files: Vec<String> = fs::read_dir(&dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|f| f.ends_with(".graphql"))
            .collect();
        files.sort();
        let set: Vec<_> = files
            .iter()
            .map(|f| sub(f.trim_end_matches(".graphql"), &read(f)))
            .collect();
        let filter_text = read("filter.json");
        let guild: Value = serde_json::from_str(&read("guild.json")).unwrap();
        let mut hashed: Vec<&str> = set
            .iter()
            .flat_map(|s| [s.name.as_str(), s.sdl.as_str()])
            .collect();
        hashed.push(&filter_text);
        assert_eq!(
            guild["input"].as_str().unwrap(),
            hash(&hashed),
            "{name} changed: run oracle/compose/record_contracts.mjs"
        );
        let filter: Value = serde_json::from_str(&filter_text).unwrap();
        let tags = |key: &str| -> Vec<String> {
            let list = filter[key].as_array().unwrap();
            list.iter().map(|t| t.as_str().unwrap().into()).collect()
        };
        let filter = ContractFilter {
            include: tags("include"),
            exclude: tags("exclude"),
            hide_unreachable: filter["hideUnreachable"].as_bool().unwrap(),
        };
        let contract = run(&set).contract(&filter).unwrap();
        let mut codes: Vec<&str> = contract.errors.iter().map(|e| e.code).collect();
        let theirs = guild["errors"].as_array().unwrap();
        let mut theirs: Vec<&str> = theirs.iter().filter_map(Value::as_str).collect();
        codes.sort_unstable();
        theirs.sort_unstable();
        let api = contract
            .supergraph_sdl
            .and_then(|sdl| ogive_compose::api_sdl(&sdl))
            .map(|api| normal(&api));
        let their_api = guild["api"].as_str().map(normal);
        let same = codes == theirs && api == their_api;
        if same == INTENDED.iter().any(|(n, _)| *n == name) {
            wrong.push_str(&format!(
                "{name}: ours {codes:?}\n{}\ntheirs {theirs:?}\n{}\n",
                api.unwrap_or_default(),
                their_api.unwrap_or_default()
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
