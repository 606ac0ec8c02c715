//! `ogive plan` in all its forms, and plans made ahead of time.

use std::fs;

use serde_json::Value;

use crate::process::{Running, address, answer, ask, demo, file, folder, run};

fn planned(arguments: &[&str]) -> String {
    let (supergraph, query) = (demo("supergraph.graphql"), demo("query.graphql"));
    let mut all = vec!["plan", "-s", &supergraph, &query];
    all.extend(arguments);
    let (code, stdout, stderr) = run(&all);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
    stdout
}

#[test]
fn every_form_has_its_own_start() {
    for (form, start) in [
        ("text", "query: 6 fetches in 3 waves"),
        ("json", "{\n  \"kind\": \"query\""),
        ("apollo", "{\n  \"kind\": \"QueryPlan\""),
        ("apollo-text", "QueryPlan {\n"),
        ("dot", "digraph plan {"),
        ("mermaid", "flowchart LR"),
        ("svg", "<svg xmlns="),
    ] {
        let found = planned(&["--format", form]);
        assert!(found.starts_with(start), "{form}: {found}");
        assert_eq!(found, planned(&["--format", form]), "the same every time");
    }
    let text = planned(&[]);
    assert!(
        text.ends_with("literals as variables: $first = 3, $first_1 = 2\n"),
        "{text}"
    );
}

#[test]
fn the_cost_of_an_operation_follows_directives_and_variables() {
    let sdl = include_str!("../../../cost/tests/shop.graphql");
    let supergraph = file("cost-shop.graphql", sdl);
    let text = "query Q($n: Int) { things(count: $n) { id owner { id } } strict { id } }";
    let query = file("cost.graphql", text);
    let variables = file("cost-variables.json", "{\"n\": 6}");
    let cost = |arguments: &[&str]| {
        let mut all = vec!["cost", "-s", &supergraph, &query];
        all.extend(arguments);
        let (code, stdout, stderr) = run(&all);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
        stdout
    };
    // 6 × (3 + 1), and 50 that are assumed where the required argument is missing.
    let text = cost(&["--variables", &variables, "--fields"]);
    assert_eq!(
        text,
        "cost 74\n`strict` needs exactly one slicing argument\n          24  things  6 items\n          50  strict  50 items\n           1  things.owner\n"
    );
    let json = cost(&["--variables", "{\"n\": 1}", "--json"]);
    assert_eq!(
        json,
        "{\n  \"cost\": 54,\n  \"needsSlicingArgument\": \"strict\",\n  \"fields\": []\n}\n"
    );
    let (code, stdout, _) = run(&["cost", "--demo"]);
    assert!(code == Some(0) && stdout.starts_with("cost "), "{stdout}");
}

#[test]
fn a_gateway_counts_what_the_command_says() {
    let sdl = include_str!("../../../cost/tests/shop.graphql");
    let supergraph = file("cost-served.graphql", sdl);
    let config = file(
        "cost-served.yaml",
        "listen: 127.0.0.1:0\ndemand_control: { enabled: true, mode: enforce, strategy: { static_estimated: { max: 1 } } }\n",
    );
    let mut serve = Running::start(&["serve", "-s", &supergraph, "-c", &config]);
    let gateway = address(&serve.logged("serving http://"));
    for (text, variables) in [
        (
            "query Q($n: Int) { things(count: $n) { id owner { id } } }",
            "{\"n\": 6}",
        ),
        (
            "query Q($n: Int = 3) { things(count: $n) { id } again: things(count: 2) { owner { id } } }",
            "{}",
        ),
        (
            "query Q($with: Boolean!) { things(count: 4) { id owner @include(if: $with) { id } } }",
            "{\"with\": false}",
        ),
        ("{ plain { id author { id } } grid { id } }", "{}"),
    ] {
        let query = file("cost-served-query.graphql", text);
        let arguments = [
            "cost",
            "-s",
            &supergraph,
            &query,
            "--variables",
            variables,
            "--json",
        ];
        let (code, stdout, stderr) = run(&arguments);
        assert_eq!(code, Some(0), "{stderr}");
        let said: Value = serde_json::from_str(&stdout).unwrap();
        let body = format!(
            "{{\"query\":{},\"variables\":{variables}}}",
            Value::from(text)
        );
        let (_, told) = answer(ask(&gateway, "POST", "/graphql", &body));
        let refusal = format!("estimated to cost {}, and", said["cost"]);
        assert!(told.contains(&refusal), "{text}: {stdout} {told}");
    }
}

#[test]
fn every_pass_can_be_seen() {
    for (stage, wanted) in [
        ("normalise", "topProducts(first: $first)"),
        (
            "tree",
            "shippingCost from nobody, inventory given weightGrams price",
        ),
        (
            "closure",
            "wave 2: inventory, products, reviews -> inStock shippingCost reviews",
        ),
        ("search", "6 requests in 3 waves"),
        (
            "assign",
            "topProducts[] Product (by sku): inStock shippingCost",
        ),
        ("emit", "bytes in memory"),
    ] {
        let found = planned(&["--stage", stage]);
        assert!(found.starts_with(&format!("== {stage} ==")), "{found}");
        assert!(found.contains(wanted), "{stage}: {found}");
        assert_eq!(found.matches("\n== ").count(), 0, "{found}");
    }
    let all = planned(&["--stage", "all"]);
    assert_eq!(all.lines().filter(|l| l.starts_with("== ")).count(), 6);
    assert!(all.contains("lower bound 4"), "{all}");
    assert!(all.contains("fuel used: "), "{all}");
}

#[test]
fn profiles_are_compared() {
    let found = planned(&["--compare", "fewest-requests"]);
    let mut lines = found.lines();
    let (one, two) = (lines.next().unwrap(), lines.next().unwrap());
    assert!(
        one.starts_with("critical-path    6 requests in 3 waves"),
        "{found}"
    );
    assert!(two.starts_with("fewest-requests  "), "{found}");
    assert!(
        found.contains("\n== fewest-requests ==\nquery: "),
        "{found}"
    );
}

const QUERIES: [&str; 2] = [
    "query Me { me { name } }\nquery Stock { topProducts(first: 1) { name inStock } }\n",
    "fragment Unused on Query { me { name } }",
];
const MANIFEST: &str = r#"{"format":"apollo-persisted-query-manifest","version":1,"operations":[
  {"id":"f00","name":"Again","type":"query","body":"query Again { me { ...F } } fragment F on Person { name }"},
  {"id":"f01","name":"Price","type":"query","body":"{ topProducts { price { amount } } }"}]}"#;

#[test]
fn a_plan_that_is_the_best_stays_so_with_more_fuel() {
    let refined = planned(&["--refine"]);
    assert_eq!(refined, planned(&[]));
    let search = planned(&["--refine", "--stage", "search"]);
    assert!(search.contains("6 requests in 3 waves, proven"), "{search}");
}

/// A folder of operations.
fn operations(name: &str) -> String {
    let path = folder().join(name);
    fs::create_dir_all(path.join("nested")).unwrap();
    fs::write(path.join("a.graphql"), QUERIES[0]).unwrap();
    fs::write(path.join("nested/fragments.gql"), QUERIES[1]).unwrap();
    fs::write(path.join("nested/manifest.json"), MANIFEST).unwrap();
    fs::write(path.join("plain.json"), r#"{"f02": "{ __typename }"}"#).unwrap();
    fs::write(path.join("README.md"), "not an operation").unwrap();
    path.to_string_lossy().into_owned()
}

fn build(operations: &str, bundle: &str) -> (Option<i32>, String, String) {
    let supergraph = demo("supergraph.graphql");
    run(&[
        "plan",
        "build",
        "-s",
        &supergraph,
        "--operations",
        operations,
        "-o",
        bundle,
    ])
}

#[test]
fn what_gateways_have_seen_can_be_planned_ahead_of_time() {
    let line = |name: &str, text: &str| {
        format!(
            "{{\"name\":\"{name}\",\"client\":{{\"name\":\"web\"}},\"operation\":\"{text}\",\"requests\":1}}\n"
        )
    };
    let me = line("Me", "query Me { me { name } }");
    let seen = file(
        "seen.ndjson",
        format!(
            "{me}{}{me}{{\"requests\":3}}\n",
            line("Top", "query Top { topProducts(first: 0) { name } }")
        ),
    );
    let bundle = folder().join("seen.plans").to_string_lossy().into_owned();
    let supergraph = demo("supergraph.graphql");
    let arguments = [
        "plan",
        "build",
        "-s",
        &supergraph,
        "--from",
        &seen,
        "-o",
        &bundle,
    ];
    let (code, stdout, stderr) = run(&arguments);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("\n2 operations, 2 plans, "), "{stdout}");
    let broken = file("seen-broken.ndjson", "nothing\n");
    let arguments = [
        "plan",
        "build",
        "-s",
        &supergraph,
        "--from",
        &broken,
        "-o",
        &bundle,
    ];
    let (code, _, stderr) = run(&arguments);
    assert!(code != Some(0) && stderr.contains("line 1 of"), "{stderr}");
}

#[test]
fn bundled_operations_are_served_without_planning() {
    let bundle = folder().join("shop.plans").to_string_lossy().into_owned();
    let (code, stdout, stderr) = build(&operations("bundled"), &bundle);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("1 requests   1 waves  Me\n"), "{stdout}");
    assert!(stdout.contains("2 requests   2 waves  Stock\n"), "{stdout}");
    assert!(stdout.contains("Again (same plan)\n"), "{stdout}");
    assert!(stdout.contains("\n5 operations, 4 plans, "), "{stdout}");

    let config = file(
        "bundled.yaml",
        "listen: 127.0.0.1:0\nlog: { filter: \"info,ogive_gateway=debug\" }\n\
         override_subgraph_url: { products: 'http://127.0.0.1:1/', accounts: 'http://127.0.0.1:1/' }\n",
    );
    let supergraph = demo("supergraph.graphql");
    let arguments = [
        "serve",
        "-s",
        &supergraph,
        "-c",
        &config,
        "--plans",
        &bundle,
    ];
    let mut serve = Running::start(&arguments);
    serve.logged("plans=4 outdated=0");
    let gateway = address(&serve.logged("serving http://"));
    for (query, source) in [
        ("{ me { name } }", "bundle"),
        // Another literal, another text.
        (
            "query Other { topProducts(first: 7) { name, inStock } }",
            "bundle",
        ),
        ("{ me { username } }", "planner"),
        ("{ me { ... { username } } }", "cache"),
    ] {
        answer(ask(
            &gateway,
            "POST",
            "/graphql",
            &format!("{{\"query\":\"{query}\"}}"),
        ));
        let line = serve.logged("plan.source=");
        assert!(
            line.contains(&format!("plan.source=\"{source}\"")),
            "{query}: {line}"
        );
    }
    serve.signal("TERM");
    assert_eq!(serve.ended().0, Some(0));
}

#[test]
fn plans_of_another_schema_are_refused() {
    let bundle = folder().join("other.plans").to_string_lossy().into_owned();
    build(&operations("other"), &bundle);
    let serve = |supergraph: &str| {
        run(&[
            "serve",
            "-s",
            supergraph,
            "--plans",
            &bundle,
            "--listen",
            "127.0.0.1:0",
        ])
    };
    let other = file(
        "other.graphql",
        fs::read_to_string(demo("supergraph.graphql"))
            .unwrap()
            .replace(
                "type Query\n",
                "type Query @join__type(graph: PRODUCTS, key: \"__typename\")\n",
            ),
    );
    let (code, _, stderr) = serve(&other);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains("were made for another schema: `Query`"),
        "{stderr}"
    );
    assert!(
        stderr.contains("help: make it anew: `ogive plan build"),
        "{stderr}"
    );
    fs::write(&bundle, "no plans").unwrap();
    let (code, _, stderr) = serve(&demo("supergraph.graphql"));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("this is no file of plans"), "{stderr}");
}

#[test]
fn a_bad_operation_fails_the_build() {
    let folder = operations("bad");
    let path = format!("{folder}/bad.graphql");
    fs::write(path, "query Bad {\n  me { nme }\n}\n").unwrap();
    let bundle = format!("{folder}.plans");
    let (code, stdout, stderr) = build(&folder, &bundle);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("bad.graphql:2:8"), "{stderr}");
    assert!(!fs::exists(&bundle).unwrap(), "nothing is written");
    let (code, _, stderr) = build("nowhere", &bundle);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("cannot read the folder `nowhere`"),
        "{stderr}"
    );
}

#[test]
fn override_labels_can_be_switched_on() {
    let sdl = "
schema @link(url: \"https://specs.apollo.dev/link/v1.0\") @link(url: \"https://specs.apollo.dev/join/v0.4\", for: EXECUTION) { query: Query }
directive @link(url: String, as: String, for: link__Purpose, import: [link__Import]) repeatable on SCHEMA
directive @join__field(graph: join__Graph, override: String, overrideLabel: String) repeatable on FIELD_DEFINITION
directive @join__graph(name: String!, url: String!) on ENUM_VALUE
directive @join__type(graph: join__Graph!) repeatable on OBJECT
scalar link__Import
enum link__Purpose { SECURITY EXECUTION }
enum join__Graph { NEW @join__graph(name: \"new\", url: \"\") OLD @join__graph(name: \"old\", url: \"\") }
type Query @join__type(graph: NEW) @join__type(graph: OLD) {
  news: String @join__field(graph: NEW, override: \"old\", overrideLabel: \"percent(5)\") @join__field(graph: OLD)
}
";
    let supergraph = file("labels.graphql", sdl);
    let query = file("news.graphql", "{ news }");
    let plan = |arguments: &[&str]| {
        let mut all = vec!["plan", "-s", &supergraph, &query];
        all.extend(arguments);
        run(&all)
    };
    assert!(plan(&[]).1.contains("fetch 0 old"));
    assert!(plan(&["--label", "percent(5)"]).1.contains("fetch 0 new"));
    let (code, _, stderr) = plan(&["--label", "percent(50)"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("its labels are `percent(5)`"), "{stderr}");
}
