//! `ogive diff`, `check`, `graph why` and `explain CODE` as a user meets them.

use std::fs;

use serde_json::Value;

use crate::{
    composing::{demo_folder, fresh},
    process::{demo, run},
};

const LINK: &str = "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.9\", import: [\"@key\", \"@tag\"])\n";

/// Two folders with one subgraph each.
fn before_and_after(name: &str, before: &str, after: &str) -> (String, String) {
    let folder = fresh(name);
    let write = |part: &str, sdl: &str| {
        let inner = folder.join(part);
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("a.graphql"), format!("{LINK}{sdl}\n")).unwrap();
        inner.to_string_lossy().into_owned()
    };
    (write("before", before), write("after", after))
}

const BEFORE: &str = "type Query { me: User now: String! } \
    type User { id: ID! name: String @deprecated(reason: \"use title\") title: String mail: String @tag(name: \"internal\") }";
const AFTER: &str = "type Query { me: User now: String! } type User { id: ID! title: String! }";

#[test]
fn a_diff_tells_clients_and_owners_apart() {
    let folder = demo_folder("diff-owners");
    let before = folder.to_string_lossy().into_owned();
    assert_eq!(
        run(&["diff", &before, &before]),
        (Some(0), "no changes\n".into(), String::new())
    );
    // A supergraph file is a graph, too.
    let supergraph = demo("supergraph.graphql");
    let (code, stdout, stderr) = run(&["diff", &supergraph, &before, "--api-only"]);
    assert_eq!((code, &*stdout), (Some(0), "no changes\n"), "{stderr}");
    let moved = demo_folder("diff-owners-after");
    let products = fs::read_to_string(moved.join("products.graphql")).unwrap();
    fs::write(
        moved.join("names.graphql"),
        "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.3\", import: [\"@key\"])\n\
         type Product @key(fields: \"sku\") { sku: ID! name: String! }\n",
    )
    .unwrap();
    fs::write(
        moved.join("products.graphql"),
        products.replacen("  name: String!\n", "", 1),
    )
    .unwrap();
    let after = moved.to_string_lossy().into_owned();
    let (code, stdout, stderr) = run(&["diff", &before, &after, "--fail-on", "breaking"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("FIELD_MOVED"), "{stdout}");
    assert!(
        stdout.contains("`Product.name` moved from `products` to `names`"),
        "{stdout}"
    );
    assert!(
        stdout.contains("SUBGRAPH_ADDED") && !stdout.contains("API\n"),
        "{stdout}"
    );
}

#[test]
fn a_diff_fails_where_it_is_asked_to() {
    let (before, after) = before_and_after("diff-fail", BEFORE, AFTER);
    let (code, stdout, _) = run(&["diff", &before, &after, "--format", "json"]);
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &json["breaking"]), (Some(0), &2.into()));
    assert_eq!(json["changes"][0]["coordinate"], "User.mail");
    assert_eq!(json["changes"][1]["deprecated"], "use title");
    assert_eq!(
        run(&["diff", &before, &after, "--fail-on", "breaking"]).0,
        Some(1)
    );
    assert_eq!(
        run(&["diff", &before, &after, "--fail-on", "dangerous"]).0,
        Some(1)
    );
    assert_eq!(
        run(&["diff", &before, &before, "--fail-on", "any"]).0,
        Some(0)
    );
}

#[test]
fn a_check_knows_operations_waivers_deprecation_and_contracts() {
    let (before, after) = before_and_after("check", BEFORE, AFTER);
    let check = |more: &[&str]| {
        let mut arguments = vec!["check", &after, "--baseline", &before];
        arguments.extend(more);
        run(&arguments)
    };
    let (code, stdout, stderr) = check(&[]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(
        stdout.ends_with("check failed\n") && stdout.contains("it was deprecated: use title"),
        "{stdout}"
    );

    // Operations: what nobody asks for may go, what somebody asks for may not.
    let folder = fresh("check-operations");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    };
    let fine = file(
        "fine.json",
        r#"{"operations": [{"id": "1", "name": "Me", "body": "query Me { me { ...U } } fragment U on User { id title }"}]}"#,
    );
    let (code, stdout, _) = check(&["--operations", &fine]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("no known operation meets it")
            && stdout.contains("1 operation known, 0 broken, 0 not checked\ncheck passed"),
        "{stdout}"
    );
    let bad = file("bad.graphql", "query Mail { me { mail } }");
    let (code, stdout, _) = check(&["--operations", &bad, "--format", "json"]);
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &json["passes"]), (Some(1), &false.into()));
    let graph = &json["graphs"][0];
    assert_eq!(graph["broken_operations"][0]["operation"], "Mail");
    assert_eq!(graph["changes"][0]["used_by"][0], "Mail");
    assert_eq!(graph["changes"][1]["verdict"], "unused");

    // Waivers, with their day.
    let waiver = |coordinate: &str, until: &str| {
        format!(
            "- {{ change: FIELD_REMOVED, coordinate: {coordinate}, until: {until}, reason: agreed }}\n"
        )
    };
    let good = file(
        "good.yaml",
        &format!(
            "waivers:\n{}{}",
            waiver("User.mail", "2999-01-01"),
            waiver("User.na*", "2999-01-01")
        ),
    );
    let (code, stdout, _) = check(&["--checks", &good, "--operations", &bad]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("waived until 2999-01-01: agreed"),
        "{stdout}"
    );
    let expired = file(
        "expired.yaml",
        &format!(
            "waivers:\n{}{}",
            waiver("User.mail", "2020-01-01"),
            waiver("User.name", "2999-01-01")
        ),
    );
    let (code, stdout, _) = check(&["--checks", &expired]);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(
        stdout.contains("for User.mail expired on 2020-01-01"),
        "{stdout}"
    );

    // Deprecation.
    let mail = file(
        "mail.yaml",
        &format!("waivers:\n{}", waiver("User.mail", "2999-01-01")),
    );
    assert_eq!(check(&["--checks", &mail]).0, Some(1));
    assert_eq!(
        check(&["--checks", &mail, "--deprecated-may-go"]).0,
        Some(0)
    );

    // Contracts: what their clients never saw does not break them.
    let contracts = file(
        "contracts.yaml",
        "contracts: { partners: { exclude: [internal] } }\n",
    );
    let (_, stdout, stderr) = check(&["--checks", &contracts]);
    let partners = stdout
        .split("contract partners")
        .nth(1)
        .unwrap_or_else(|| panic!("{stdout}{stderr}"));
    assert!(
        partners.contains("User.name") && !partners.contains("User.mail"),
        "{stdout}"
    );
    // A contract has the subgraphs of its graph: nothing has moved that has not moved there.
    assert!(
        !partners.contains("FIELD_MOVED") && !partners.contains("SUBGRAPH_"),
        "{stdout}"
    );
    let (code, stdout, _) = check(&["--format", "github"]);
    assert_eq!(code, Some(1));
    assert!(
        stdout.starts_with("::error title=FIELD_REMOVED::the field `User.mail` is gone: fails\n"),
        "{stdout}"
    );
}

#[test]
fn why_tells_who_resolves_a_field_and_how_one_gets_there() {
    let supergraph = demo("supergraph.graphql");
    let why = |more: &[&str]| {
        let mut arguments = vec!["graph", "why", "Product.reviews", &supergraph];
        arguments.extend(more);
        run(&arguments)
    };
    let (code, stdout, stderr) = why(&[]);
    assert_eq!(code, Some(0), "{stderr}");
    for part in [
        "Product.reviews: [Review!]!",
        "resolved by reviews",
        "entered by { sku } from inventory, products",
        "Product by { sku } into reviews → Product.reviews in reviews",
    ] {
        assert!(stdout.contains(part), "no {part} in\n{stdout}");
    }
    let json: Value = serde_json::from_str(&why(&["--format", "json"]).1).unwrap();
    assert_eq!(json["resolvers"][0]["subgraph"], "reviews");
    assert_eq!(json["resolvers"][0]["entries"][0]["key"], "sku");
    assert!(
        why(&["--format", "dot"])
            .1
            .contains("\"products\" -> \"reviews\" [label=\"{ sku }\"]")
    );
    assert!(why(&["--format", "mermaid"]).1.contains("-->|\"sku\"|"));
    let svg = why(&["--format", "svg"]).1;
    assert!(
        svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
        "{svg}"
    );
    let (code, _, stderr) = run(&["graph", "why", "Product.revews", &supergraph]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("did you mean `reviews`?"), "{stderr}");
}

#[test]
fn codes_of_every_part_are_explained() {
    for (code, wanted) in [
        ("INVALID_FIELD_SHARING", "\nGood\n"),
        ("invalid_field_sharing", "error[INVALID_FIELD_SHARING]"),
        ("GATEWAY_TIMEOUT", "an error in the gateway's answers"),
        ("FIELD_REMOVED", "a breaking change"),
        ("SUBGRAPH_FROM_CACHE", "asked again"),
    ] {
        let (status, stdout, stderr) = run(&["explain", code]);
        assert_eq!(status, Some(0), "{stderr}");
        assert!(stdout.contains(wanted), "{stdout}");
    }
    let (status, stdout, _) = run(&["explain", "codes"]);
    assert_eq!(status, Some(0));
    assert!(stdout.lines().count() > 150, "{stdout}");
    let (status, _, stderr) = run(&["explain", "SATISFIABILITY_EROR"]);
    assert_eq!(status, Some(1));
    assert!(
        stderr.contains("did you mean `SATISFIABILITY_ERROR`?"),
        "{stderr}"
    );
}

#[test]
fn a_check_knows_exactly_what_operations_use_and_where() {
    let (before, after) = before_and_after(
        "check-exact",
        "type Query { me: User products(first: Int = 10, by: By, filter: Filter): [Product] sizes(by: By): [Size] }\n\
            type User { name: String email: String }\ntype Product { id: ID! size: Size }\n\
            enum By { NAME PRICE }\nenum Size { S M }\ninput Filter { text: String max: Int = 1 }",
        "type Query { me: User products(by: By, filter: Filter): [Product] sizes(by: By): [Size] }\n\
            type User { name: String email: Int }\ntype Product { id: ID! size: Size }\n\
            enum By { NAME }\nenum Size { S M L }\ninput Filter { text: String max: Int = 2 }",
    );
    let folder = fresh("check-exact-operations");
    for (name, text) in [
        ("me", "{ me { name } }"),
        ("mail", "query Mail {\n  me {\n    email\n  }\n}\n"),
        (
            "first",
            "query First {\n  products(first: 1, by: NAME) { id }\n}\n",
        ),
        ("price", "query Price { products(by: PRICE) { id } }"),
        ("any", "query Any($by: By) { sizes(by: $by) }"),
        (
            "filter",
            "query Filter { products(filter: { text: \"x\", max: 3 }) { id } }",
        ),
        ("old", "query Old {\n  gone\n}\n"),
    ] {
        fs::write(folder.join(format!("{name}.graphql")), text).unwrap();
    }
    let folder = folder.to_string_lossy();
    let arguments = [
        "check",
        &after,
        "--baseline",
        &before,
        "--operations",
        &folder,
    ];
    let (code, stdout, stderr) = run(&[&arguments[..], &["--format", "json"]].concat());
    let json: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
    assert_eq!(code, Some(1));
    let graph = &json["graphs"][0];
    let uses: Vec<String> = graph["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| {
            let uses = change["uses"].as_array().unwrap().iter();
            let uses: Vec<String> = uses
                .map(|u| {
                    let place = u["place"].as_str().unwrap().rsplit('/').next().unwrap();
                    format!(" {}", place)
                })
                .collect();
            format!(
                "{}{}",
                change["coordinate"].as_str().unwrap(),
                uses.concat()
            )
        })
        .collect();
    assert_eq!(
        uses,
        [
            "By.PRICE any.graphql:1:11 price.graphql:1:28",
            "Query.products(first:) first.graphql:2:12",
            "User.email mail.graphql:3:5",
            "Filter.max",
            "Size.L any.graphql:1:22",
        ]
    );
    let list = |key: &str| -> Vec<String> {
        let list = graph[key].as_array().unwrap().iter();
        list.map(|o| {
            let place = o["place"].as_str().unwrap().rsplit('/').next().unwrap();
            format!("{} {place}", o["operation"].as_str().unwrap())
        })
        .collect()
    };
    assert_eq!(list("invalid_operations"), ["Old old.graphql:2:3"]);
    assert_eq!(
        list("broken_operations"),
        ["First first.graphql:2:12", "Price price.graphql:1:28"]
    );
    let (_, stdout, _) = run(&arguments);
    for part in [
        "used by Mail (",
        "mail.graphql:3:5)",
        "unchecked  Old: the baseline does not answer this operation: ",
        "7 operations known, 2 broken, 1 not checked",
    ] {
        assert!(stdout.contains(part), "no {part} in\n{stdout}");
    }
}

/// Fragments in files of their own, several operations in a file, and what cannot be checked.
#[test]
fn a_check_reads_operations_as_the_other_commands_do() {
    let (before, after) = before_and_after(
        "check-fragments",
        "type Query { me: User } type User { name: String email: String }",
        "type Query { me: User } type User { name: String }",
    );
    let folder = fresh("check-fragments-operations");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("package.json", r#"{"dependencies": {"query-string": "9"}}"#);
    write("fragment.graphql", "fragment F on User { name email }");
    write("spread.ts", "const Q = gql`query Spread { me { ...F } }`;");
    write(
        "two.graphql",
        "query Name { me { name } }\nquery Mail { me { email } }",
    );
    write("unnamed.graphql", "{ me { email } }");
    let path = folder.to_string_lossy().into_owned();
    let arguments = ["check", &after, "--baseline", &before, "--operations"];
    let check = |more: &[&str]| run(&[&arguments[..], more].concat());

    let (code, stdout, stderr) = check(&[&path]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    for part in [
        "fragment.graphql:1:27)",
        "Mail (",
        "two.graphql:2:19)",
        "(unnamed) (",
        "operation  Spread fails: ",
        "4 operations known, 3 broken, 0 not checked\ncheck failed\n",
    ] {
        assert!(stdout.contains(part), "no {part} in\n{stdout}");
    }
    assert!(!stdout.contains("Name"), "{stdout}");

    // Two paths are one body of documents.
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (fragment, spread) = (file("fragment.graphql"), file("spread.ts"));
    let (code, stdout, _) = check(&[&fragment, "--operations", &spread]);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.contains("1 operation known, 1 broken"), "{stdout}");

    // A fragment that is nowhere, a file that cannot be read, a broken manifest, nothing at all.
    let (code, stdout, stderr) = check(&[&spread]);
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    assert!(stderr.contains("UNKNOWN_FRAGMENT"), "{stderr}");
    for (name, bytes, said) in [
        (
            "latin.graphql",
            b"query L { me { name } } # \xff".as_slice(),
            "latin.graphql",
        ),
        (
            "cut.json",
            br#"{"operations": [{"id": "1", "body": "query Me { me"#,
            "is not a manifest",
        ),
        (
            "odd.json",
            br#"{"a": "query A { me { name } }", "b": 3}"#,
            "`b` is not a string",
        ),
        (
            "part.json",
            br#"{"a": "query A { me { ", "b": "{ me { name } }"}"#,
            "part.json",
        ),
    ] {
        let folder = fresh(&format!("check-unreadable-{name}"));
        fs::write(folder.join("fine.graphql"), "query Fine { me { name } }").unwrap();
        fs::write(folder.join(name), bytes).unwrap();
        let (code, stdout, stderr) = check(&[&folder.to_string_lossy()]);
        assert_eq!(code, Some(3), "{name}: {stdout}{stderr}");
        assert!(stderr.contains(said), "{name}: {stderr}");
    }
    let empty = fresh("check-no-operations");
    fs::write(empty.join("schema.graphql"), "type Query { a: Int }").unwrap();
    let (code, _, stderr) = check(&[&empty.to_string_lossy()]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("holds no operations"), "{stderr}");
    // Each of several places is there for its operations; fragments alone are a part of those of another.
    let full = fresh("check-some-operations");
    fs::write(full.join("a.graphql"), "query A { ...F }").unwrap();
    let fragments = fresh("check-fragments-alone");
    fs::write(
        fragments.join("f.graphql"),
        "fragment F on Query { me { name } }",
    )
    .unwrap();
    let (full, fragments, empty) = (
        full.to_string_lossy(),
        fragments.to_string_lossy(),
        empty.to_string_lossy(),
    );
    assert_eq!(check(&[&full, "--operations", &fragments]).0, Some(0));
    let (code, _, stderr) = check(&[&full, "--operations", &fragments, "--operations", &empty]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(
        stderr.contains(&format!("`{empty}` holds no operations")),
        "{stderr}"
    );
}

/// Contracts may have been in it.
#[test]
fn a_file_of_checks_that_is_empty_is_refused() {
    let (before, after) = before_and_after(
        "check-empty-checks",
        "type Query { a: Int }",
        "type Query { a: Int }",
    );
    let folder = fresh("check-empty-checks-files");
    for (text, status) in [("", 1), ("\n# later\n", 1), ("waivers: []\n", 0)] {
        let checks = folder.join("checks.yaml");
        fs::write(&checks, text).unwrap();
        let checks = checks.to_string_lossy();
        let (code, out, err) = run(&["check", &after, "--baseline", &before, "--checks", &checks]);
        assert_eq!(code, Some(status), "{text}: {out}{err}");
        let (code, out, err) = run(&["lint", &after, "--checks", &checks]);
        assert_eq!(code, Some(status), "{text}: {out}{err}");
    }
}

#[test]
fn a_check_does_not_pass_with_operations_that_it_cannot_check() {
    let (before, after) = before_and_after(
        "check-unchecked",
        "type Query { me: String gone: String }",
        "type Query { me: String }",
    );
    let folder = fresh("check-unchecked-operations");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    };
    let old = file("old.graphql", "query Old { older }\nquery Me { me }");
    let counted = file(
        "counted.ndjson",
        "{\"name\":\"Me\",\"operation\":\"query Me { me }\",\"requests\":1}\n{\"requests\":9}\n",
    );
    let nothing = file("nothing.ndjson", "\n");
    let check = |more: &[&str]| {
        let arguments = ["check", &after, "--baseline", &before];
        run(&[&arguments[..], more].concat())
    };
    for (more, said) in [
        (["--operations", &old], "unchecked  Old"),
        (["--usage", &counted], "unchecked  9 requests"),
    ] {
        let (code, stdout, _) = check(&more);
        assert_eq!(code, Some(1), "{stdout}");
        assert!(stdout.contains(said), "{stdout}");
        assert!(
            stdout.contains("\ncheck failed (--allow-unchecked "),
            "{stdout}"
        );
        let (_, stdout, _) = check(&[&more[..], &["--format", "github"]].concat());
        assert!(
            stdout.contains("::error title=OPERATION_INVALID::"),
            "{stdout}"
        );
        let (code, stdout, _) = check(&[&more[..], &["--allow-unchecked"]].concat());
        assert_eq!(code, Some(0), "{stdout}");
        assert!(
            stdout.contains(said) && stdout.contains("\ncheck passed\n"),
            "{stdout}"
        );
    }
    let (code, stdout, stderr) = check(&["--usage", &nothing]);
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    assert!(stderr.contains("holds no operations"), "{stderr}");
}

#[test]
fn a_check_says_whom_a_change_hits_and_what_costs_more() {
    let schema = |weight: u32, more: &str| {
        format!(
            "type Query {{ me: User users: [User] @federation__listSize(assumedSize: {weight}) {more} }} type User {{ id: ID! }}"
        )
    };
    let (before, after) =
        before_and_after("check-usage", &schema(10, "gone: String"), &schema(30, ""));
    let row = |name: &str, client: &str, text: &str, requests: u32| {
        format!(
            "{{\"name\":\"{name}\",\"client\":{{\"name\":\"{client}\",\"version\":\"1\"}},\"operation\":\"{text}\",\"requests\":{requests}}}\n"
        )
    };
    let gone = "query Gone { gone }";
    let lines = [
        row("Gone", "web", gone, 3),
        row("Gone", "ios", gone, 5),
        row("All", "web", "query All { users { id } }", 1),
        row("Gone", "web", gone, 4),
        "{\"requests\":9}\n".to_owned(),
    ];
    let path = fresh("check-usage-lines").join("usage.ndjson");
    fs::write(&path, lines.concat()).unwrap();
    let path = path.to_string_lossy();
    let arguments = ["check", &after, "--baseline", &before, "--usage", &path];
    let (code, stdout, stderr) = run(&arguments);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    for said in [
        "Gone is asked by web 1: 7 requests, ios 1: 5 requests",
        "): 10 before, 30 after",
        "2 operations known, 1 broken, 0 not checked",
        "unchecked  9 requests whose operation the gateway did not record",
    ] {
        assert!(stdout.contains(said), "{said}: {stdout}");
    }
    let (_, stdout, _) = run(&[&arguments[..], &["--format", "json"]].concat());
    let json: Value = serde_json::from_str(&stdout).unwrap();
    let graph = &json["graphs"][0];
    let costs = &graph["cost_changes"];
    assert_eq!(costs.as_array().unwrap().len(), 1);
    assert_eq!(costs[0]["operation"], "All");
    assert_eq!(
        (&costs[0]["before"], &costs[0]["after"]),
        (&10.into(), &30.into())
    );
    let changes = graph["changes"].as_array().unwrap();
    let hit = changes
        .iter()
        .find(|change| change["coordinate"] == "Query.gone");
    let clients = &hit.unwrap()["uses"][0]["clients"];
    assert_eq!(
        (&clients[0]["name"], &clients[0]["requests"]),
        (&"web".into(), &7.into())
    );
    // What nobody asks for may go.
    let quiet = fresh("check-usage-quiet").join("usage.ndjson");
    fs::write(&quiet, row("All", "web", "query All { users { id } }", 1)).unwrap();
    let quiet = quiet.to_string_lossy();
    let (code, stdout, _) = run(&["check", &after, "--baseline", &before, "--usage", &quiet]);
    assert_eq!(code, Some(0), "{stdout}");
}
