//! Commands that answer and exit.

use crate::process::{demo, file, run};

#[test]
fn version_and_help() {
    let (code, stdout, _) = run(&["--version"]);
    assert_eq!(code, Some(0));
    let number = format!("ogive {}", env!("CARGO_PKG_VERSION"));
    // In a checkout there is a commit; sources without one build all the same.
    let commit = stdout.trim_end().strip_prefix(&number).unwrap();
    let hash = commit.strip_prefix(" (").and_then(|c| c.strip_suffix(')'));
    let is_hash = |hash: &str| hash.len() >= 7 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    assert!(commit.is_empty() || hash.is_some_and(is_hash), "{stdout}");
    let (code, told, _) = run(&["version"]);
    let features = told.strip_prefix(&stdout).unwrap();
    assert_eq!(code, Some(0));
    let engines = ["cedar", "components"].map(|name| features.contains(name));
    assert!(
        features.starts_with("features: ") && engines == [true; 2],
        "{told}"
    );
    let (code, stdout, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    for command in ["demo", "serve", "plan", "cost", "explain", "mock"] {
        assert!(stdout.contains(&format!("\n  {command} ")), "{stdout}");
        let (code, help, _) = run(&[command, "--help"]);
        assert_eq!(code, Some(0));
        assert!(help.contains("Usage: ogive"), "{help}");
    }
}

/// The commands whose names everybody tries first.
#[test]
fn help_completions_and_manual_pages() {
    let help = run(&["help", "dev"]);
    assert_eq!(help.0, Some(0));
    assert!(help.1.contains("Usage: ogive dev"), "{help:?}");
    let (code, all, _) = run(&["help"]);
    assert_eq!(code, Some(0));
    assert!(
        all.contains("\n  completions ") && all.contains("\n  man "),
        "{all}"
    );
    for (shell, wanted) in [
        ("bash", "complete -F _ogive"),
        ("zsh", "#compdef ogive"),
        ("fish", "complete -c ogive"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let (code, script, err) = run(&["completions", shell]);
        assert_eq!(code, Some(0), "{err}");
        assert!(
            script.contains(wanted) && script.contains("migrate"),
            "{shell}: {script}"
        );
    }
    assert_eq!(run(&["completions", "cmd"]).0, Some(2));
    for arguments in [
        &["man"][..],
        &["man", "serve"],
        &["man", "config", "migrate"],
    ] {
        let (code, page, err) = run(arguments);
        assert_eq!(code, Some(0), "{err}");
        assert!(
            page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"),
            "{page}"
        );
    }
    assert!(run(&["man", "serve"]).1.contains("OGIVE_SUPERGRAPH"));
    let (code, _, err) = run(&["man", "srve"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("name one of demo, serve"), "{err}");
    let folder = crate::process::folder().join("man1");
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!(
        run(&["man", "--output", &folder.to_string_lossy()]).0,
        Some(0)
    );
    for page in ["ogive.1", "ogive-serve.1", "ogive-config-migrate.1"] {
        assert!(folder.join(page).is_file(), "{page}");
    }
}

#[test]
fn demo_once_answers_and_exits() {
    let (code, stdout, stderr) = run(&["demo", "--once"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let expected = std::fs::read_to_string(demo("expected.json")).unwrap();
    let (_, rest) = stdout.split_once("== answer ==\n").unwrap();
    let (answer, plan) = rest.split_once("\n\n== plan ==\n").unwrap();
    assert_eq!(answer, expected.trim_end());
    assert!(plan.starts_with("query: 6 fetches in 3 waves"), "{plan}");
}

#[test]
fn plan_as_text_and_json() {
    let (supergraph, query) = (demo("supergraph.graphql"), demo("query.graphql"));
    let (code, stdout, stderr) = run(&["plan", "--supergraph", &supergraph, &query]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(
        stdout.starts_with("query: 6 fetches in 3 waves"),
        "{stdout}"
    );
    let (code, stdout, _) = run(&["plan", "-s", &supergraph, &query, "--format", "json"]);
    assert_eq!(code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["fetches"].as_array().unwrap().len(), 6);
}

#[test]
fn plan_of_one_operation_among_several() {
    let supergraph = demo("supergraph.graphql");
    let path = file(
        "several.graphql",
        "query A { me { name } }\nquery B { topProducts { inStock } }\n",
    );
    let (code, _, stderr) = run(&["plan", "-s", &supergraph, &path]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("GRAPHQL_UNKNOWN_OPERATION_NAME"),
        "{stderr}"
    );
    let (code, stdout, _) = run(&["plan", "-s", &supergraph, &path, "--operation", "B"]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("inventory"), "{stdout}");
}

#[test]
fn explain_shows_five_stops_without_asking_anybody() {
    let (code, stdout, _) = run(&[
        "explain",
        "-s",
        &demo("supergraph.graphql"),
        &demo("query.graphql"),
    ]);
    assert_eq!(code, Some(0));
    let stops: Vec<&str> = stdout.lines().filter(|l| l.starts_with("== ")).collect();
    assert_eq!(
        stops,
        [
            "== 1. receive ==",
            "== 2. prepare ==",
            "== 3. plan ==",
            "== 4. execute ==",
            "== 5. respond =="
        ]
    );
    assert!(
        stdout.contains("== 4. execute ==\n(not executed)"),
        "{stdout}"
    );
}

#[test]
fn the_demo_graph_can_be_planned_and_explained_without_files() {
    let (code, stdout, stderr) = run(&["plan", "--demo"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stdout.starts_with("query: 6 fetches in 3 waves"),
        "{stdout}"
    );
    let (code, stdout, stderr) = run(&["explain", "--demo", "--execute"]);
    assert_eq!(code, Some(0), "{stderr}");
    let (_, executed) = stdout.split_once("== 4. execute ==\n").unwrap();
    assert!(executed.contains("  > {\"query\":"), "{executed}");
    assert!(executed.contains("  < 200 {\"data\":"), "{executed}");
    let (_, response) = stdout.split_once("== 5. respond ==\n").unwrap();
    let expected = std::fs::read_to_string(demo("expected.json")).unwrap();
    assert_eq!(response, expected);
}
