//! What must not change the result: order of subgraphs, formatting, a newer link, an isolated subgraph.

use crate::{Owned, normal::normal, run, sub};

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
