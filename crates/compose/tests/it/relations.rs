//! What must not change the result: order of subgraphs, formatting, a newer link, an isolated subgraph, names of
//! subgraphs, extensions instead of definitions.

use crate::{Owned, normal::normal, run, sets, sub};

const LINK: &str = r#"extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable", "@external", "@requires"])
"#;

fn shop() -> Vec<Owned> {
    vec![
        sub(
            "accounts",
            &format!(
                "{LINK}type Query {{ me: User }} type User @key(fields: \"id\") {{ id: ID! name: String @shareable }}"
            ),
        ),
        sub(
            "reviews",
            &format!(
                "{LINK}type User @key(fields: \"id\") {{ id: ID! reviews: [Review!] }} type Review {{ body: String author: User }}"
            ),
        ),
        sub(
            "names",
            &format!(
                "{LINK}type User @key(fields: \"id\") {{ id: ID! name: String @shareable nick: String }}"
            ),
        ),
    ]
}

fn supergraph(set: &[Owned]) -> String {
    let composed = run(set);
    assert!(composed.errors.is_empty(), "{:?}", composed.errors);
    composed.supergraph_sdl.unwrap()
}

#[test]
fn order_of_subgraphs_does_not_matter() {
    let mut set = shop();
    let first = supergraph(&set);
    set.reverse();
    assert_eq!(first, supergraph(&set));
}

#[test]
fn formatting_does_not_matter() {
    let set = shop();
    let spaced: Vec<Owned> = set
        .iter()
        .map(|s| {
            sub(
                &s.name,
                &s.sdl
                    .replace("} ", "}\n\n# comment\n")
                    .replace(": ", " :   "),
            )
        })
        .collect();
    assert_eq!(normal(&supergraph(&set)), normal(&supergraph(&spaced)));
}

#[test]
fn a_newer_link_changes_nothing_but_the_join_version() {
    let set = shop();
    let newer: Vec<Owned> = set
        .iter()
        .map(|s| sub(&s.name, &s.sdl.replace("v2.3", "v2.9")))
        .collect();
    let types = |sdl: &str| sdl[sdl.find("type Query").unwrap()..].to_owned();
    assert_eq!(types(&supergraph(&set)), types(&supergraph(&newer)));
}

#[test]
fn an_isolated_subgraph_changes_no_verdict() {
    let mut set = shop();
    set.push(sub(
        "zoo",
        &format!("{LINK}type Query {{ zoo: Zoo }} type Zoo {{ animals: Int }}"),
    ));
    assert!(supergraph(&set).contains("type Zoo"));
}

#[test]
fn an_unsatisfiable_field_is_explained_with_query_reason_and_remedy() {
    let mut set = shop();
    set.push(sub("extra", &format!("{LINK}type User {{ extra: Int }}")));
    let composed = run(&set);
    assert_eq!(composed.errors.len(), 1, "{:?}", composed.errors);
    let text = composed.errors[0].render(&composed.sources, false);
    assert_eq!(composed.errors[0].coordinate.as_deref(), Some("User.extra"));
    for part in [
        "SATISFIABILITY_ERROR",
        "{ me { extra } }",
        "has no `@key` there",
        "add `@key(fields: \"id\")` to `User` in subgraph `extra`",
        "extra:2:13",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

/// Verdict, codes with coordinates and hint codes.
fn said(set: &[Owned]) -> (Vec<(String, Option<String>)>, Vec<&'static str>) {
    let composed = run(set);
    let mut errors: Vec<_> = composed
        .errors
        .iter()
        .map(|e| {
            (
                e.code.to_owned(),
                e.coordinate.as_deref().map(str::to_owned),
            )
        })
        .collect();
    let mut hints: Vec<_> = composed.hints.iter().map(|h| h.code).collect();
    errors.sort();
    hints.sort_unstable();
    (errors, hints)
}

/// Names keep their order, so that ties are broken as before.
#[test]
fn names_of_subgraphs_do_not_matter() {
    for i in 0..90 {
        let set: Vec<Owned> = sets::set(31, i).iter().map(|(n, s)| sub(n, s)).collect();
        let renamed: Vec<Owned> = set
            .iter()
            .map(|s| {
                let sdl = set.iter().fold(s.sdl.clone(), |sdl, other| {
                    sdl.replace(
                        &format!("from: \"{}\"", other.name),
                        &format!("from: \"{}_renamed\"", other.name),
                    )
                });
                sub(&format!("{}_renamed", s.name), &sdl)
            })
            .collect();
        assert_eq!(said(&set), said(&renamed), "set {i}");
    }
}

#[test]
fn extensions_and_definitions_are_the_same_in_federation_2() {
    let set = shop();
    let extended: Vec<Owned> = set
        .iter()
        .enumerate()
        .map(|(i, s)| match i {
            0 => s.clone(),
            _ => sub(&s.name, &s.sdl.replace("type User", "extend type User")),
        })
        .collect();
    let plain = |text: String| normal(&text.replace(", extension: true", ""));
    assert_eq!(plain(supergraph(&set)), plain(supergraph(&extended)));
}
