//! `ogive rhai check`: which calls of scripts are not offered.

use std::fs;

use crate::process::{Running, demo, file, folder, run};

/// What is said of a folder with one script.
fn checked(name: &str, script: &str) -> (Option<i32>, String, String) {
    let path = folder().join(name);
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("main.rhai"), script).unwrap();
    run(&["rhai", "check", &path.to_string_lossy()])
}

#[test]
fn calls_that_are_not_offered_are_named_with_their_place() {
    let good = "fn supergraph_service(service) {\n  service.map_request(|request| { log_info(request.id); });\n}\n";
    let (code, stdout, stderr) = checked("rhai-good", good);
    assert_eq!(
        (code, stdout.as_str(), stderr.as_str()),
        (Some(0), "every call is offered\n", "")
    );
    let bad = "fn supergraph_service(service) {\n  service.map_request(|request| {\n    let a = Router.TRACE;\n    telephone(request.id);\n  });\n}\n";
    let (code, stdout, stderr) = checked("rhai-bad", bad);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert_eq!(
        stdout,
        "main.rhai, line 3, position 13: `Router.TRACE` is not there\n\
         main.rhai, line 4, position 5: `telephone` is not offered\n"
    );
    assert!(
        stderr.contains("2 of the calls and members are not offered"),
        "{stderr}"
    );
    let (code, stdout, stderr) = checked("rhai-slip", "fn supergraph_servce(service) { }");
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "every call is offered\n")
    );
    for wanted in [
        "warning: `supergraph_servce` of `main.rhai` is no entry point; did you mean `supergraph_service`?",
        "warning: no script is ever called",
    ] {
        assert!(stderr.contains(wanted), "{stderr}");
    }
    let (code, _, stderr) = checked("rhai-broken", "fn supergraph_service(service) {");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("main.rhai"), "{stderr}");
    // Also in what is imported, where a module knows its own functions.
    let path = folder().join("rhai-imports");
    fs::create_dir_all(&path).unwrap();
    let module = "fn known() { 1 }\nfn used() { known() + carrier_pigeon() }\n";
    fs::write(path.join("other.rhai"), module).unwrap();
    let importing = "import \"other\" as other;\nfn supergraph_service(service) {\n  service.map_request(|request| { other::used(); });\n}\n";
    let (code, stdout, stderr) = checked("rhai-imports", importing);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert_eq!(
        stdout,
        "other.rhai, line 2, position 23: `carrier_pigeon` is not offered\n"
    );
    let (code, ..) = run(&["rhai", "check", "/nowhere/at/all"]);
    assert_eq!(code, Some(1));
}

#[test]
fn a_script_that_calls_what_is_not_offered_is_refused_everywhere() {
    let path = folder().join("rhai-not-offered");
    fs::create_dir_all(&path).unwrap();
    let script = "fn supergraph_service(service) {\n  service.map_request(|request| {\n    if request.context.contains_key(\"a\") { }\n  });\n}\n";
    fs::write(path.join("main.rhai"), script).unwrap();
    let config = file(
        "rhai-not-offered.yaml",
        format!(
            "listen: 127.0.0.1:0\nrhai: {{ scripts: '{}' }}\n",
            path.display()
        ),
    );
    let router = file(
        "rhai-not-offered-router.yaml",
        format!("rhai: {{ scripts: '{}' }}\n", path.display()),
    );
    let supergraph = demo("supergraph.graphql");
    let wanted = "main.rhai, line 3, position 24: `contains_key` is not offered";
    for arguments in [
        &["config", "validate", &config][..],
        &["config", "migrate", "--from", "apollo", &router],
        &["serve", "-s", &supergraph, "-c", &config],
    ] {
        let (code, stdout, stderr) = run(arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {stdout}{stderr}");
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
    }
}

#[test]
fn scripts_that_are_never_called_are_reported() {
    let config = |name: &str, script: &str| {
        let path = folder().join(name);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("main.rhai"), script).unwrap();
        let text = format!(
            "listen: 127.0.0.1:0\nsubscription: {{ enabled: true }}\nrhai: {{ scripts: '{}' }}\n",
            path.display()
        );
        file(&format!("{name}.yaml"), text)
    };
    let wanted = "no script is ever called: `main.rhai` has no entry point";
    let config = config("rhai-never", "fn supergraph_servce(service) { }");
    let supergraph = demo("supergraph.graphql");
    let asked = file("rhai-asked.graphql", "{ me { id } }");
    let (code, stdout, stderr) = run(&["config", "validate", &config]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains(&format!("warning: {wanted}")), "{stderr}");
    let (_, _, stderr) = run(&["explain", "-s", &supergraph, "-c", &config, &asked]);
    assert!(stderr.contains(&format!("note: {wanted}")), "{stderr}");
    let mut serve = Running::start(&["serve", "-s", &supergraph, "-c", &config]);
    serve.logged(wanted);
    serve.logged("serving http://");
    serve.signal("TERM");
    assert_eq!(serve.ended().0, Some(0));
}

#[test]
fn an_entry_point_that_fails_for_one_subgraph_is_refused_at_the_start() {
    let path = folder().join("rhai-reviews");
    fs::create_dir_all(&path).unwrap();
    let script = "fn subgraph_service(service, subgraph) { if subgraph == \"reviews\" { throw \"not me\"; } }";
    fs::write(path.join("main.rhai"), script).unwrap();
    let text = format!(
        "listen: 127.0.0.1:0\nsupergraph: {{ path: '{}' }}\nrhai: {{ scripts: '{}' }}\n",
        demo("supergraph.graphql"),
        path.display()
    );
    let config = file("rhai-reviews.yaml", text);
    let wanted = "`rhai`: `subgraph_service` of the scripts failed for the subgraph `reviews`";
    let (code, _, stderr) = run(&["config", "validate", &config]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains(wanted), "{stderr}");
    let (code, said) = Running::start(&["serve", "-c", &config]).ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(wanted), "{said}");
}
