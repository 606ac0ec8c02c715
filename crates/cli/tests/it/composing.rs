//! `ogive compose` as a user meets it: every form of input and output, exit codes, watching.

use std::{fs, io::Write, path::PathBuf, process::Stdio};

use crate::process::{Running, address, demo, folder, ogive, run};

/// An empty folder for one test.
pub(crate) fn fresh(name: &str) -> PathBuf {
    let folder = folder().join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A folder with the demo's subgraphs.
pub(crate) fn demo_folder(name: &str) -> PathBuf {
    let folder = fresh(name);
    for subgraph in ["accounts", "inventory", "products", "reviews"] {
        let file = format!("{subgraph}.graphql");
        fs::copy(demo(&file), folder.join(file)).unwrap();
    }
    folder
}

/// Its list keeps apart what is a subgraph and what is not.
#[test]
fn the_folder_of_the_demo_composes_as_it_is() {
    let (code, supergraph, stderr) = run(&["compose", &demo("")]);
    assert_eq!(code, Some(0), "{stderr}");
    let served = "(name: \"reviews\", url: \"http://127.0.0.1:4200/graphql/reviews\")";
    assert!(supergraph.contains(served), "{supergraph}");
}

/// A subgraph that disagrees with the demo about `Product.name`.
const DISAGREES: &str = "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.3\", import: [\"@key\"])\n\
    type Product @key(fields: \"sku\") { sku: ID! name: Int }\n";

fn path(folder: &std::path::Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

#[test]
fn a_folder_a_list_and_standard_input_compose_to_the_same() {
    let folder = demo_folder("compose-forms");
    let (code, from_folder, stderr) = run(&["compose", &folder.to_string_lossy()]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(from_folder.contains("enum join__Graph"), "{from_folder}");
    let files: Vec<String> = ["accounts", "inventory", "products", "reviews"]
        .map(|s| path(&folder, &format!("{s}.graphql")))
        .to_vec();
    let mut arguments = vec!["compose".to_owned()];
    arguments.extend(files);
    let (code, stdout, _) = run(&arguments);
    assert_eq!((code, &stdout), (Some(0), &from_folder));
    // One subgraph comes from standard input.
    let reviews = fs::read_to_string(folder.join("reviews.graphql")).unwrap();
    arguments.pop();
    arguments.push("reviews=-".into());
    let piped = |arguments: &[String], text: &str| {
        let mut child = ogive(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    assert_eq!(piped(&arguments, &reviews), from_folder);
    // A list in rover's format, with routing URLs; paths are relative to the list.
    let mut list = "federation_version: 2\nsubgraphs:\n".to_owned();
    for name in ["accounts", "inventory", "products"] {
        list += &format!(
            "  {name}:\n    routing_url: http://{name}/graphql\n    schema: {{ file: ./{name}.graphql }}\n"
        );
    }
    let indented = reviews.replace('\n', "\n        ");
    list += &format!("  reviews:\n    schema:\n      sdl: |\n        {indented}\n");
    fs::write(folder.join("supergraph.yaml"), &list).unwrap();
    let (code, from_list, stderr) = run(&["compose", &folder.to_string_lossy()]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(from_list.contains("url: \"http://accounts/graphql\""));
    let without = from_list
        .replace("http://accounts/graphql", "")
        .replace("http://inventory/graphql", "");
    assert_eq!(without.replace("http://products/graphql", ""), from_folder);
}

#[test]
fn running_subgraphs_are_asked_for_their_schemas() {
    let mut mock = Running::start(&[
        "mock",
        "--config",
        &demo("mock.yaml"),
        "--listen",
        "127.0.0.1:0",
    ]);
    let host = address(&mock.printed("accounts "));
    let urls = ["accounts", "inventory", "products", "reviews"]
        .map(|s| format!("{s}=http://{host}/graphql/{s}"));
    let mut arguments = vec!["compose", "-H", "authorization: Bearer x"];
    arguments.extend(urls.iter().map(String::as_str));
    let (code, stdout, stderr) = run(&arguments);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stdout.contains(&format!("url: \"http://{host}/graphql/reviews\"")),
        "{stdout}"
    );
}

#[test]
fn errors_are_located_in_every_format() {
    let folder = demo_folder("compose-errors");
    fs::write(folder.join("bad.graphql"), DISAGREES).unwrap();
    let folder = folder.to_string_lossy().into_owned();
    let (code, stdout, stderr) = run(&["compose", &folder]);
    assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
    for part in [
        "error[FIELD_TYPE_MISMATCH]",
        "bad.graphql:2:45",
        "products.graphql:15:3",
        "`String!` in `products`",
        "= help: ",
        "2 errors",
    ] {
        assert!(stderr.contains(part), "no {part} in\n{stderr}");
    }
    let (code, stdout, _) = run(&["compose", &folder, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(code, Some(1));
    assert_eq!(json["supergraph"], serde_json::Value::Null);
    let error = &json["errors"][0];
    assert_eq!(error["coordinate"], "Product.name");
    assert_eq!(error["places"][0]["subgraph"], "bad");
    assert_eq!(error["places"][0]["start"]["line"], 2);
    let (code, stdout, _) = run(&["compose", &folder, "--format", "sarif"]);
    let sarif: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(
        (code, &result["ruleId"]),
        (Some(1), &"FIELD_TYPE_MISMATCH".into())
    );
    assert_eq!(
        result["locations"][0]["physicalLocation"]["region"]["startLine"],
        2
    );
    assert_eq!(result["relatedLocations"].as_array().unwrap().len(), 1);
    let (code, stdout, _) = run(&["compose", &folder, "--format", "github"]);
    assert_eq!(code, Some(1));
    assert!(stdout.starts_with("::error file="), "{stdout}");
    assert!(
        stdout.contains(",line=2,endLine=2,col=45,endColumn=49,title=FIELD_TYPE_MISMATCH::"),
        "{stdout}"
    );
}

#[test]
fn inputs_that_cannot_be_read_have_their_own_exit_code() {
    for (argument, wanted) in [
        (
            "nowhere.graphql",
            "cannot read the subgraph `nowhere.graphql`",
        ),
        (
            "a=http://127.0.0.1:1/graphql",
            "the subgraph `a` at http://127.0.0.1:1/graphql does not tell its schema",
        ),
        (
            "nowhere.yaml",
            "cannot read the list of subgraphs `nowhere.yaml`",
        ),
    ] {
        let (code, stdout, stderr) = run(&["compose", argument]);
        assert_eq!((code, &*stdout), (Some(3), ""), "{stderr}");
        assert!(
            stderr.contains(wanted) && stderr.contains("help: "),
            "{stderr}"
        );
    }
    let (code, _, _) = run(&["compose"]);
    assert_eq!(code, Some(2));
}

#[test]
fn a_contract_is_composed_by_its_name() {
    let folder = fresh("compose-contract");
    let schema = path(&folder, "shop.graphql");
    let checks = path(&folder, "checks.yaml");
    let text = "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.3\", import: [\"@tag\"])\n\
        type Query { open: String secret: String @tag(name: \"internal\") }\n";
    fs::write(&schema, text).unwrap();
    fs::write(
        &checks,
        "contracts: { partners: { exclude: [internal] } }\n",
    )
    .unwrap();
    let with = |contract: &str, api: &[&str]| {
        let named = [
            "compose",
            &schema,
            "--checks",
            &checks,
            "--contract",
            contract,
        ];
        run(&[&named[..], api].concat())
    };
    let (code, api, stderr) = with("partners", &["--api"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(api.contains("open") && !api.contains("secret"), "{api}");
    let (code, supergraph, _) = with("partners", &[]);
    assert_eq!(code, Some(0));
    assert!(supergraph.contains("@inaccessible"), "{supergraph}");
    let (code, _, stderr) = with("partner", &[]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("it has partners"), "{stderr}");
    // A contract that leaves no query is an error.
    fs::write(&checks, "contracts: { partners: { include: [none] } }\n").unwrap();
    let (code, supergraph, stderr) = with("partners", &[]);
    assert_eq!((code, &*supergraph), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("error["), "{stderr}");
}

#[test]
fn watching_composes_again_and_keeps_the_last_good_supergraph() {
    let folder = demo_folder("compose-watch");
    let output = path(&folder, "supergraph.out");
    let mut watch = Running::start(&[
        "compose",
        &folder.to_string_lossy(),
        "--watch",
        "-o",
        &output,
    ]);
    watch.logged("composed 4 subgraphs");
    let good = fs::read_to_string(&output).unwrap();
    fs::write(folder.join("bad.graphql"), DISAGREES).unwrap();
    watch.logged("error[FIELD_TYPE_MISMATCH]");
    watch.logged("not composed; watching");
    assert_eq!(fs::read_to_string(&output).unwrap(), good);
    // In one step: nobody sees it empty.
    let beside = folder.with_extension("new");
    fs::write(&beside, DISAGREES.replace("name: Int", "colour: String")).unwrap();
    fs::rename(&beside, folder.join("bad.graphql")).unwrap();
    watch.logged("composed 5 subgraphs");
    assert!(
        fs::read_to_string(&output)
            .unwrap()
            .contains("colour: String")
    );
    fs::remove_file(folder.join("bad.graphql")).unwrap();
    watch.logged("composed 4 subgraphs");
    assert_eq!(fs::read_to_string(&output).unwrap(), good);
    watch.signal("INT");
    assert_eq!(watch.ended().0, Some(0));
}

#[test]
fn what_composes_and_cannot_be_served_is_said() {
    let folder = fresh("compose-warned");
    let file = folder.join("users.graphql");
    fs::write(
        &file,
        "type Query { me: Int }\ntype Subscription { ticks: Int }\n",
    )
    .unwrap();
    let file = file.to_string_lossy();
    let output = folder.join("s.graphql");
    let output = output.to_string_lossy();
    let (code, _, stderr) = run(&["compose", &file, "-o", &output]);
    assert_eq!(code, Some(0), "{stderr}");
    for part in [
        "warning[SUBGRAPH_WITHOUT_URL]: the subgraph `users` has no URL",
        "--url users=http://...",
    ] {
        assert!(stderr.contains(part), "no {part} in\n{stderr}");
    }
    assert!(!stderr.to_lowercase().contains("subscription"), "{stderr}");
    let query = folder.join("q.graphql");
    fs::write(&query, "{ me }").unwrap();
    let (_, stdout, stderr) = run(&[
        "explain",
        "-s",
        &output,
        &query.to_string_lossy(),
        "--execute",
    ]);
    assert!(
        format!("{stdout}{stderr}").contains("--url NAME=URL"),
        "{stdout}{stderr}"
    );
    let url = ["--url", "users=http://127.0.0.1:9/graphql"];
    let (code, _, stderr) = run(&[&["compose", &*file, "-o", &*output][..], &url[..]].concat());
    assert_eq!((code, &*stderr), (Some(0), ""));
}

#[test]
fn a_dash_is_standard_input() {
    let piped = |arguments: &[&str], text: &str| {
        let mut child = ogive(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let supergraph = demo("supergraph.graphql");
    let (code, stdout, stderr) = piped(
        &["plan", "-s", &supergraph, "-"],
        "{ __typename me { id } }",
    );
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("me"), "{stdout}");
    let (code, _, stderr) = piped(&["plan", "-s", &supergraph, "-"], "{ nothing }");
    assert!(
        code != Some(0) && stderr.contains("--> standard input:1:3"),
        "{stderr}"
    );
    let text = fs::read_to_string(&supergraph).unwrap();
    let (code, _, stderr) = piped(&["plan", "-s", "-", "-"], &text);
    assert!(
        code != Some(0) && stderr.contains("cannot be the"),
        "{stderr}"
    );
    let folder = demo_folder("dash");
    let folder = folder.to_string_lossy();
    let check = ["check", &folder, "--baseline", &folder, "--operations", "-"];
    let (code, stdout, stderr) = piped(&check, "query Me { me { id } }");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stdout.contains("1 operation known, 0 broken, 0 not checked"),
        "{stdout}"
    );
}
