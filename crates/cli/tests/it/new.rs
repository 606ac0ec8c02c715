//! A project that `ogive new` writes: it is checked, run and queried.

use std::{fs, path::Path, process::Command};

use crate::process::{Running, address, answer, ask, folder, ogive, run};

/// A new project in a folder of its own.
fn project(name: &str) -> String {
    let path = folder().join(name);
    let _ = fs::remove_dir_all(&path);
    let path = path.to_string_lossy().into_owned();
    let (code, out, err) = run(&["new", &path]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("ogive serve"), "{out}");
    path
}

fn command(project: &str, arguments: &[&str]) -> Command {
    let mut command = ogive(arguments);
    command.current_dir(project);
    command
}

#[test]
fn a_new_project_runs_at_once() {
    let project = project("shop");
    let mut mock = Running::of(command(
        &project,
        &["mock", "--config", "mock.yaml", "--listen", "127.0.0.1:0"],
    ));
    let subgraphs = address(&mock.printed("products "));
    let mut serve = command(&project, &["serve", "--listen", "127.0.0.1:0"]);
    serve.env("SUBGRAPHS", &subgraphs);
    let mut serve = Running::of(serve);
    let gateway = address(&serve.logged("serving http://"));
    let query =
        fs::read_to_string(Path::new(&project).join("operations/products.graphql")).unwrap();
    let body = serde_json::json!({ "query": query }).to_string();
    let (status, body) = answer(ask(&gateway, "POST", "/graphql", &body));
    assert_eq!(
        (status, body.as_str()),
        (
            200,
            r#"{"data":{"products":[{"name":"Desk lamp","price":4900,"reviews":[{"stars":5,"text":"Bright and quiet."}]},{"name":"Oak chair","price":12900,"reviews":[{"stars":3,"text":"Arrived late."}]}]}}"#
        )
    );
}

/// Continuous integration calls this script, with `ogive` from the path.
#[test]
fn the_checks_of_a_new_project_pass_and_notice_a_broken_operation() {
    let project = project("checked");
    let binary = Path::new(env!("CARGO_BIN_EXE_ogive")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let check = || {
        let output = Command::new("./checks.sh")
            .current_dir(&project)
            .env("PATH", &path)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let (code, text) = check();
    assert_eq!(code, Some(0), "{text}");
    let sdl = Path::new(&project).join("products.graphql");
    let text = fs::read_to_string(&sdl).unwrap();
    let without = text.replace("  \"The price in cents.\"\n  price: Int!\n", "");
    assert_ne!(without, text);
    fs::write(&sdl, without).unwrap();
    let (code, text) = check();
    assert_ne!(code, Some(0), "{text}");
    assert!(text.contains("price"), "{text}");
}

#[test]
fn nothing_is_overwritten() {
    let project = project("taken");
    let (code, _, err) = run(&["new", &project]);
    assert_eq!(code, Some(1));
    assert!(err.contains("is not empty"), "{err}");
    for name in ["1st", "a b", "..", ""] {
        assert_ne!(run(&["new", name]).0, Some(0), "{name}");
    }
}

/// Editors read the schema beside the configuration, images are those of this version.
#[test]
fn files_name_each_other() {
    let project = project("named");
    let read = |name: &str| fs::read_to_string(Path::new(&project).join(name)).unwrap();
    assert!(read("ogive.yaml").starts_with("# yaml-language-server: $schema=ogive.schema.json\n"));
    assert_eq!(
        read("ogive.schema.json").trim_end(),
        ogive_config::schema::schema().trim_end()
    );
    let compose = read("compose.yaml");
    assert!(
        compose.contains(&format!("ogive:{}", env!("CARGO_PKG_VERSION")))
            && compose.contains("name: \"named\"")
    );
    assert!(!read("README.md").contains("{{"));
    let workflow = read(".github/workflows/graph.yml");
    assert!(workflow.contains("./checks.sh") && !workflow.contains("{{version}}"));
}
