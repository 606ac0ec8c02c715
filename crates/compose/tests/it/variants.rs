//! Contracts, the API schema, and composing again.

use ogive_compose::{ComposeOptions, Composer, ContractFilter, SubgraphInput, compose};

use crate::{run, sub};

const LINK: &str = r#"extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@tag", "@shareable"])
"#;

fn filter(include: &[&str], exclude: &[&str], hide_unreachable: bool) -> ContractFilter {
    let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
    ContractFilter {
        include: own(include),
        exclude: own(exclude),
        hide_unreachable,
    }
}

fn contract(sdl: &str, filter: &ContractFilter) -> Result<String, Vec<&'static str>> {
    let composed = run(&[sub("a", &format!("{LINK}{sdl}"))]);
    assert!(composed.errors.is_empty(), "{:?}", composed.errors);
    let contract = composed.contract(filter).unwrap();
    match contract.supergraph_sdl {
        Some(sdl) => Ok(ogive_compose::api_sdl(&sdl).unwrap()),
        None => Err(contract.errors.iter().map(|e| e.code).collect()),
    }
}

#[test]
fn excluded_elements_are_gone_and_the_rest_stays() {
    let api = contract("type Query { a: Int b(x: Int, y: Int @tag(name: \"in\")): T @tag(name: \"ok\") c: Int @tag(name: \"in\") } type T { d: Int e: E } enum E { X Y @tag(name: \"in\") }", &filter(&[], &["in"], false)).unwrap();
    for part in ["a: Int", "b(x: Int): T", "d: Int", "X"] {
        assert!(api.contains(part), "{part} is missing:\n{api}");
    }
    for part in ["c: Int", "y: Int", "  Y"] {
        assert!(!api.contains(part), "{part} is still there:\n{api}");
    }
}

#[test]
fn only_included_elements_stay_and_tags_of_types_count() {
    let api = contract("type Query { a: Int @tag(name: \"p\") b: Int t: T @tag(name: \"p\") } type T @tag(name: \"p\") { d: Int } type U { e: Int }", &filter(&["p"], &[], false)).unwrap();
    assert!(api.contains("a: Int") && api.contains("d: Int"), "{api}");
    assert!(!api.contains("b: Int") && !api.contains("type U"), "{api}");
}

#[test]
fn a_contract_that_contradicts_itself_says_where() {
    let errors = contract(
        "type Query { t: T @tag(name: \"p\") } type T { d: Int }",
        &filter(&["p"], &[], false),
    )
    .unwrap_err();
    assert_eq!(errors, ["REFERENCED_INACCESSIBLE"]);
}

#[test]
fn unreachable_types_go_if_asked_for() {
    let sdl = "type Query { a: Int } type T { d: Int x: In } scalar In";
    assert!(
        contract(sdl, &filter(&[], &["none"], false))
            .unwrap()
            .contains("type T")
    );
    assert!(
        !contract(sdl, &filter(&[], &["none"], true))
            .unwrap()
            .contains("type T")
    );
}

#[test]
fn a_composer_reads_only_what_changed_and_agrees_with_a_fresh_one() {
    let text = |name: &str, extra: &str| {
        format!(
            "{LINK}type Query {{ {name}: T }} type T @key(fields: \"id\") {{ id: ID! f{name}: Int {extra} }}"
        )
    };
    let (a, b, c) = (text("a", ""), text("b", ""), text("c", ""));
    let changed = text("b", "g: Int");
    let broken = text("b", "g: Missing");
    let input = |name, sdl| SubgraphInput { name, url: "", sdl };
    let mut composer = Composer::new();
    let options = ComposeOptions::default();
    for (set, reads) in [
        ([&a, &b, &c], 3),
        ([&a, &changed, &c], 4),
        ([&a, &broken, &c], 5),
        ([&a, &b, &c], 5),
    ] {
        let inputs = [
            input("a", set[0].as_str()),
            input("b", set[1].as_str()),
            input("c", set[2].as_str()),
        ];
        let (again, fresh) = (
            composer.compose(&inputs, &options),
            compose(&inputs, &options),
        );
        assert_eq!(composer.reads(), reads);
        assert_eq!(again.supergraph_sdl, fresh.supergraph_sdl);
        assert_eq!(again.errors, fresh.errors);
        assert_eq!(again.hints, fresh.hints);
    }
}

#[test]
fn two_subgraphs_of_one_name_are_refused() {
    let sdl = format!("{LINK}type Query {{ a: Int }}");
    let composed = run(&[sub("a", &sdl), sub("a", &sdl)]);
    assert_eq!(composed.errors[0].code, "INVALID_SUBGRAPH_NAME");
}

#[test]
fn the_join_version_follows_the_newest_link_or_is_pinned() {
    use ogive_federation::vocabulary::Version;
    let links = |version: &str| {
        format!(
            "extend schema @link(url: \"https://specs.apollo.dev/federation/{version}\", import: [\"@key\"])\ntype Query {{ a: Int }}"
        )
    };
    let join = |version: &str, pin: Option<Version>| {
        let sdl = links(version);
        let inputs = [SubgraphInput {
            name: "a",
            url: "http://a",
            sdl: &sdl,
        }];
        let options = ComposeOptions {
            join_version: pin,
            ..ComposeOptions::default()
        };
        let out = compose(&inputs, &options).supergraph_sdl.unwrap();
        let at = out.find("/join/").unwrap() + 6;
        out[at..at + 4].to_owned()
    };
    for (version, expected) in [
        ("v2.0", "v0.3"),
        ("v2.6", "v0.3"),
        ("v2.7", "v0.4"),
        ("v2.8", "v0.5"),
        ("v2.14", "v0.5"),
    ] {
        assert_eq!(join(version, None), expected, "{version}");
    }
    assert_eq!(join("v2.0", Some(Version::new(0, 5))), "v0.5");
}
