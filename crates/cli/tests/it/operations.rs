//! `ogive operations`: what a front end asks for, found, checked and published.

use std::{fs, path::Path};

use serde_json::Value;

use crate::process::{demo, folder, ogive, run};

fn app() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shop-app");
    path.to_string_lossy().into_owned()
}

/// A front end of these files.
fn tree(name: &str, files: &[(&str, &str)]) -> String {
    let root = folder().join(name);
    let _ = fs::remove_dir_all(&root);
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root.to_string_lossy().into_owned()
}

#[test]
fn extract_writes_what_clients_send() {
    let (code, stdout, stderr) = run(&["operations", "extract", &app()]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stderr, "3 operations, 1 fragments in 4 files\n");
    let manifest: Value = serde_json::from_str(&stdout).unwrap();
    let names: Vec<&str> = manifest["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Account", "Promotions", "TopProducts"]);
    let body = manifest["operations"][2]["body"].as_str().unwrap();
    assert!(
        body.starts_with("query TopProducts($first: Int = 3) {\n"),
        "{body}"
    );
    assert!(body.contains("fragment ProductCard on Product {") && body.contains("__typename"));
    // What Relay and Hive take is one object, and what is written is not changed.
    let (_, map, _) = run(&["operations", "extract", &app(), "--format", "hive"]);
    let map: Value = serde_json::from_str(&map).unwrap();
    let map = map.as_object().unwrap();
    assert_eq!(map.len(), 3);
    assert!(
        !map.values()
            .any(|text| text.as_str().unwrap().contains("__typename"))
    );
}

#[test]
fn check_says_what_is_wrong_where_it_is_written() {
    let supergraph = demo("supergraph.graphql");
    let (code, stdout, stderr) = run(&["operations", "check", "-s", &supergraph, &app()]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(
        stdout.contains("ok") && stdout.contains("src/TopProducts.tsx:6:3"),
        "{stdout}"
    );
    assert!(
        stdout.contains("3 operations, 1 fragments in 4 files, 0 of them fail; the dearest costs")
    );

    let root = tree(
        "operations-wrong",
        &[
            (
                "a.ts",
                "export const F = gql`\n  fragment F on Product {\n    sku\n    colour\n  }\n`;",
            ),
            (
                "b.ts",
                "const q = gql`query B { topProducts(first: 1) { ...F } }`",
            ),
            ("c.graphql", "query C { me { name } }"),
        ],
    );
    let check = |more: &[&str]| {
        let mut all = vec!["operations", "check", "-s", &supergraph, &root];
        all.extend(more);
        run(&all)
    };
    let (code, stdout, _) = check(&[]);
    assert_eq!(code, Some(1));
    assert!(
        stdout.contains("a.ts:4:5") && stdout.contains("colour"),
        "{stdout}"
    );
    assert!(
        stdout.contains("2 operations, 1 fragments in 3 files, 1 of them fail"),
        "{stdout}"
    );
    let (_, json, _) = check(&["--report", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["passes"], false);
    assert_eq!(json["operations"][1]["errors"], serde_json::json!([]));
    let (_, github, _) = check(&["--report", "github"]);
    assert!(github.contains("a.ts,line=4,col=5,title="), "{github}");

    // The limits are those of the configuration.
    let config = tree(
        "operations-config",
        &[(
            "ogive.yaml",
            "limits: { max_depth: 1 }\ndemand_control: { enabled: true, mode: enforce, strategy: { static_estimated: { max: 1 } } }\n",
        )],
    );
    let config = format!("{config}/ogive.yaml");
    let one = format!("{root}/c.graphql");
    let (code, stdout, _) = run(&[
        "operations",
        "check",
        "-s",
        &supergraph,
        "-c",
        &config,
        &one,
    ]);
    assert_eq!(code, Some(1));
    assert!(stdout.contains("MAX_DEPTH_LIMIT"), "{stdout}");
}

#[test]
fn what_cannot_be_known_before_is_an_error_with_its_place() {
    let root = tree(
        "operations-dynamic",
        &[(
            "a.js",
            "const q = gql`\n  query A { ${fields} }\n`;\nconst r = gql`query R { me { ...None } }`",
        )],
    );
    let (code, stdout, stderr) = run(&["operations", "extract", &root]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(
        stderr.contains("a.js:2:13") && stderr.contains("DYNAMIC_DOCUMENT"),
        "{stderr}"
    );
    assert!(
        stderr.contains("a.js:4:33") && stderr.contains("UNKNOWN_FRAGMENT"),
        "{stderr}"
    );
    let empty = tree("operations-none", &[("a.js", "x")]);
    let (code, _, stderr) = run(&["operations", "extract", &empty]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("no operations"), "{stderr}");
    // Of several places each is there for its operations.
    let (code, _, stderr) = run(&["operations", "extract", &app(), &empty]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains(&format!("no operations in `{empty}`")),
        "{stderr}"
    );
}

#[test]
fn publish_writes_the_same_bytes_and_keeps_what_is_replaced() {
    let supergraph = demo("supergraph.graphql");
    let root = tree(
        "operations-published",
        &[(
            "a.graphql",
            "query A { me { name } } query B { accounts { name } }",
        )],
    );
    let (manifest, plans) = (format!("{root}/out/m.json"), format!("{root}/out/p.bin"));
    let publish = |at: &str, more: &[&str]| {
        let mut all = vec![
            "operations",
            "publish",
            "-s",
            &supergraph,
            &root,
            "--exclude",
            "out",
            "-m",
            &manifest,
            "-p",
            &plans,
        ];
        all.extend(more);
        let output = ogive(&all).env("SOURCE_DATE_EPOCH", at).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout) + &text(&output.stderr),
        )
    };
    let (code, said) = publish("1000", &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.starts_with("2 operations, ") && said.contains("\n2 plans, "),
        "{said}"
    );
    let first = (fs::read(&manifest).unwrap(), fs::read(&plans).unwrap());
    publish("2000", &["--keep", "30"]);
    let again = (fs::read(&manifest).unwrap(), fs::read(&plans).unwrap());
    assert_eq!(first, again);

    // B is gone from the sources; who still has the old version can ask for it for 30 days.
    fs::write(format!("{root}/a.graphql"), "query A { me { name } }").unwrap();
    let (_, said) = publish("100000", &["--keep", "30"]);
    assert!(
        said.starts_with("1 operations, 1 kept of those before"),
        "{said}"
    );
    let read = || -> Value { serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap() };
    assert_eq!(read()["operations"][1]["name"], "B");
    assert_eq!(read()["operations"][1]["expires"], 100_000 + 30 * 86_400);
    publish("5000000", &["--keep", "30"]);
    assert_eq!(read()["operations"].as_array().unwrap().len(), 1);

    // What fails leaves what is there.
    let before = fs::read(&manifest).unwrap();
    fs::write(format!("{root}/a.graphql"), "query A { me { colour } }").unwrap();
    let (code, said) = publish("1000", &[]);
    assert_eq!(code, Some(1));
    assert!(said.contains("a.graphql:1:16"), "{said}");
    assert_eq!(fs::read(&manifest).unwrap(), before);
}

#[test]
fn manifests_of_others_are_checked_too() {
    let root = tree(
        "operations-manifests",
        &[
            ("relay.json", r#"{"0f": "query R { me { name } }"}"#),
            (
                "apollo.json",
                r#"{"format":"apollo-persisted-query-manifest","version":1,"operations":[{"id":"1","name":"P","type":"query","body":"query P { nope }"}]}"#,
            ),
            ("page.json", "<!doctype html>"),
        ],
    );
    let supergraph = demo("supergraph.graphql");
    let check = |name: &str| {
        let path = format!("{root}/{name}");
        run(&["operations", "check", "-s", &supergraph, &path])
    };
    let (code, stdout, _) = check("relay.json");
    assert_eq!(code, Some(0), "{stdout}");
    let (code, stdout, _) = check("apollo.json");
    assert_eq!(code, Some(1));
    assert!(stdout.contains("apollo.json 1:1:11"), "{stdout}");
    let (_, _, stderr) = check("page.json");
    assert!(stderr.contains("it is HTML, not JSON"), "{stderr}");
}
