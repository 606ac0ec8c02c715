//! `ogive lint` and `ogive fix` as a user meets them.

use std::fs;

use serde_json::Value;

use crate::{
    composing::fresh,
    process::{demo, run},
};

const LINK: &str =
    "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.9\", import: [\"@key\"])\n";

/// A folder with subgraphs.
fn folder(name: &str, files: &[(&str, &str)]) -> String {
    let folder = fresh(name);
    for (file, sdl) in files {
        fs::write(folder.join(format!("{file}.graphql")), sdl).unwrap();
    }
    folder.to_string_lossy().into_owned()
}

#[test]
fn lint_finds_ignores_and_fails_as_configured() {
    let subgraphs = folder(
        "lint",
        &[(
            "a",
            "type Query {\n  get_user: Int @deprecated\n}\ntype Forgotten { b: Int }\n",
        )],
    );
    let (code, stdout, stderr) = run(&["lint", &subgraphs]);
    assert_eq!((code, &*stdout), (Some(0), ""), "{stderr}");
    for part in [
        "warning[FIELD_NAMES_CAMEL_CASE]: the field `Query.get_user`",
        "a.graphql:2:3",
        "call it `getUser`",
        "warning[DEPRECATION_REASON]",
        "warning[UNUSED_TYPE]: the type `Forgotten`",
        "3 warnings",
    ] {
        assert!(stderr.contains(part), "no {part} in\n{stderr}");
    }
    let checks = format!("{subgraphs}/checks.yaml");
    fs::write(
        &checks,
        "lint:\n  rules: { UNUSED_TYPE: error, DEPRECATION_REASON: off }\n  ignore: [{ rule: FIELD_NAMES_CAMEL_CASE, coordinate: 'Query.*' }]\n",
    )
    .unwrap();
    let (code, stdout, _) = run(&["lint", &subgraphs, "--checks", &checks, "--format", "json"]);
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (code, json["findings"].as_array().unwrap().len()),
        (Some(1), 1)
    );
    assert_eq!(json["findings"][0]["code"], "UNUSED_TYPE");
    fs::write(&checks, "lint: { rules: { UNUSED_TIPE: error } }\n").unwrap();
    let (code, _, stderr) = run(&["lint", &subgraphs, "--checks", &checks]);
    assert_eq!(code, Some(3));
    assert!(stderr.contains("did you mean `UNUSED_TYPE`?"), "{stderr}");
    let (code, stdout, _) = run(&["lint", "--rules"]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("NULLABLE_KEY"), "{stdout}");
    assert!(run(&["explain", "NULLABLE_KEY"]).1.contains("\nGood\n"));
    let demo_files =
        ["accounts", "inventory", "products", "reviews"].map(|s| demo(&format!("{s}.graphql")));
    let mut arguments = vec!["lint".to_owned()];
    arguments.extend(demo_files);
    assert_eq!(run(&arguments).0, Some(0));
}

/// Repairs, and expects these parts in what is printed, and that the result composes.
fn repaired(name: &str, files: &[(&str, &str)], more: &[&str], wanted: &[&str]) -> String {
    let subgraphs = folder(name, files);
    assert_eq!(
        run(&["compose", &subgraphs]).0,
        Some(1),
        "{name}: broken before"
    );
    let mut arguments = vec!["fix", &subgraphs];
    arguments.extend(more);
    let (code, stdout, stderr) = run(&arguments);
    assert_eq!(code, Some(0), "{name}\n{stdout}{stderr}");
    for part in wanted {
        assert!(
            stdout.contains(part) || stderr.contains(part),
            "{name}: no {part} in\n{stdout}{stderr}"
        );
    }
    assert_eq!(
        run(&["compose", &subgraphs]).0,
        Some(1),
        "{name}: nothing is written"
    );
    arguments.push("--write");
    assert_eq!(run(&arguments).0, Some(0));
    let (code, stdout, stderr) = run(&["compose", &subgraphs]);
    assert_eq!(code, Some(0), "{name}\n{stderr}");
    let (_, _, again) = run(&["fix", &subgraphs]);
    assert!(again.contains("nothing to repair"), "{again}");
    stdout
}

#[test]
fn repairs_make_subgraphs_compose() {
    let a = format!("{LINK}type Query {{ n: Int }}\n");
    repaired(
        "fix-shareable",
        &[("a", &a), ("b", &a)],
        &[],
        &[
            "add `@shareable` to `Query.n`",
            "+type Query { n: Int @shareable }",
            "import: [\"@key\", \"@shareable\"]",
        ],
    );
    repaired(
        "fix-import",
        &[(
            "a",
            "type Query { n: Int @shareable t: T }\ntype T @key(fields: \"id\") { id: ID! }\n",
        )],
        &[],
        &[
            "+extend schema @link(url: \"https://specs.apollo.dev/federation/v2.9\", import: [\"@key\", \"@shareable\"])",
        ],
    );
    let a = format!(
        "{LINK}type Query {{ t: T }}\ntype T @key(fields: \"id\") {{\n  id: ID!\n  x: Int @requires(fields: \"n\")\n}}\n"
    );
    let b = format!("{LINK}type T @key(fields: \"id\") {{ id: ID! n: Int }}\n");
    repaired(
        "fix-external",
        &[("a", &a), ("b", &b)],
        &[],
        &["+  n: Int @external", "import `@requires`"],
    );
    let a = a
        .replace("  x:", "  n: Int\n  x:")
        .replace("[\"@key\"]", "[\"@key\", \"@requires\"]");
    repaired(
        "fix-mark",
        &[("a", &a), ("b", &b)],
        &[],
        &["+  n: Int @external"],
    );
    let a = "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.9\", import: [\"@key\", \"@external\", \"@override\"])\n\
        type Query { t: T @override(from: \"a\") }\ntype T @key(fields: \"id\") {\n  id: ID!\n  unused: Int @external\n}\n";
    let b = format!("{LINK}type T @key(fields: \"id\") {{ id: ID! unused: Int }}\n");
    repaired(
        "fix-remove",
        &[("a", a), ("b", &b)],
        &[],
        &[
            "-  unused: Int @external",
            "remove `@override` from `Query.t`",
        ],
    );
    let a = format!("{LINK}type Query {{ a: Int }}\nextend type T {{ n: Int }}\n");
    repaired(
        "fix-define",
        &[("a", &a)],
        &["--suggested"],
        &["+type T { n: Int }"],
    );
    let a = format!("{LINK}type Query {{ t: T }}\ntype T @key(fields: \"id\") {{ id: ID! }}\n");
    let b = format!("{LINK}type Query {{ other: T }}\ntype T @shareable {{ id: ID! m: Int }}\n")
        .replace("[\"@key\"]", "[\"@key\", \"@shareable\"]");
    repaired(
        "fix-key",
        &[("a", &a), ("b", &b)],
        &["--suggested"],
        &["give `T` the key `id`", "@key(fields: \"id\") {"],
    );
}

#[test]
fn what_no_repair_is_known_for_is_left_and_said() {
    let a = format!("{LINK}type Query {{ n: Int }}\n");
    let b = format!("{LINK}type Query {{ n: String }}\n");
    let subgraphs = folder("fix-left", &[("a", &a), ("b", &b)]);
    let (code, stdout, stderr) = run(&["fix", &subgraphs]);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(
        stderr.contains("FIELD_TYPE_MISMATCH")
            && stderr.contains("left that no repair is known for"),
        "{stderr}"
    );
    let a = format!("{LINK}type Query {{ a: Int }}\nextend type T {{ n: Int }}\n");
    let subgraphs = folder("fix-suggested", &[("a", &a)]);
    let (code, _, stderr) = run(&["fix", &subgraphs]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("suggested: define `T` instead of extending it"),
        "{stderr}"
    );
}

#[test]
fn a_typo_in_a_field_set_takes_nothing_away_and_moves_nothing() {
    let a = "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.9\", import: [\"@key\", \"@external\", \"@requires\"])\n\
        type Query { t: T }\ntype T @key(fields: \"id\") {\n  id: ID!\n  weight: Int @external\n  shipping: Int @requires(fields: \"weight prize\")\n}\n";
    let b = format!("{LINK}type T @key(fields: \"id\") {{ id: ID! weight: Int price: Int }}\n");
    let subgraphs = folder("fix-typo", &[("a", a), ("b", &b)]);
    let (code, stdout, stderr) = run(&["fix", &subgraphs]);
    assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
    assert!(
        !stderr.contains("a: remove") && !stderr.contains("a: declare"),
        "{stderr}"
    );
    assert!(
        stderr.contains("error[REQUIRES_INVALID_FIELDS]"),
        "{stderr}"
    );
    assert!(!stderr.contains("EXTERNAL_UNUSED"), "{stderr}");
    // What is missing is declared behind what is there, and an unused field waits until the rest is right.
    let a = a
        .replace("weight prize", "weight price")
        .replace("  shipping", "  unused: Int @external\n  shipping");
    let subgraphs = folder(
        "fix-missing",
        &[
            ("a", &a),
            ("b", &b.replace("price: Int", "price: Int unused: Int")),
        ],
    );
    let (code, stdout, stderr) = run(&["fix", &subgraphs]);
    assert_eq!(code, Some(0), "{stderr}");
    let changed: Vec<&str> = stdout
        .lines()
        .filter(|l| l.starts_with(['+', '-']) && !l.starts_with("+++") && !l.starts_with("---"))
        .collect();
    assert_eq!(
        changed,
        ["-  unused: Int @external", "+  price: Int @external"]
    );
}
