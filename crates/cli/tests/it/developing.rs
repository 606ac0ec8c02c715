//! `ogive dev` and `ogive serve --subgraphs` as a new user tries them: files are edited, subgraphs die and come back.

use std::{fs, net::TcpListener, path::Path, time::Instant};

use crate::{
    composing::fresh,
    process::{Running, address, answer, ask, run},
};

const HELLO: &str = "type Query { hello: String! }\n";
const BROKEN: &str = "type Query { hello: String! wrld: Strng }\n";
const FIXED: &str = "type Query { hello: String! world: String }\n";
const WORLD: &str = r#"{"query":"{ hello world }"}"#;

/// Subgraphs with every field that the tests come to.
fn mock(folder: &Path) -> (Running, String) {
    let a = folder.join("mock-a.graphql");
    fs::write(&a, FIXED).unwrap();
    let b = folder.join("mock-b.graphql");
    fs::write(&b, "type Query { other: Int! }\n").unwrap();
    let (a, b) = (format!("a={}", a.display()), format!("b={}", b.display()));
    let mut mock = Running::start(&["mock", &a, &b, "--listen", "127.0.0.1:0"]);
    let host = address(&mock.printed("http://"));
    (mock, host)
}

fn notice(gateway: &str) -> serde_json::Value {
    let (status, body) = answer(ask(gateway, "GET", "/__ogive/composition", ""));
    assert_eq!(status, 200);
    serde_json::from_str(&body).unwrap()
}

#[test]
fn an_edit_with_an_error_keeps_the_graph_and_its_correction_is_served() {
    let folder = fresh("dev-edit");
    let (_mock, host) = mock(&folder);
    let file = folder.join("a.graphql");
    fs::write(&file, HELLO).unwrap();
    let subgraph = format!("a={}", file.display());
    let url = format!("a=http://{host}/graphql/a");
    let mut dev = Running::start(&["dev", &subgraph, "--url", &url, "-l", "127.0.0.1:0"]);
    let gateway = address(&dev.logged("serving http://"));
    let hello = || {
        answer(ask(
            &gateway,
            "POST",
            "/graphql",
            r#"{"query":"{ hello }"}"#,
        ))
    };
    let (status, body) = hello();
    assert!(status == 200 && body.contains(r#""hello":"#), "{body}");
    assert_eq!(notice(&gateway)["text"], "");

    fs::write(&file, BROKEN).unwrap();
    dev.logged("error[INVALID_GRAPHQL]: Unknown type \"Strng\". Did you mean \"String\"?");
    assert!(dev.logged("-->").contains("a.graphql:1:35"));
    dev.logged("the graph before serves on");
    assert_eq!(hello(), (200, body));
    let said = notice(&gateway);
    assert_eq!(said["ok"], false);
    assert_eq!(said["diagnostics"][0]["places"][0]["start"]["line"], 1);
    assert!(said["text"].as_str().unwrap().contains("wrld: Strng"));

    let start = Instant::now();
    fs::write(&file, FIXED).unwrap();
    // Asked until it is there: what counts is when the first client sees it.
    let served = loop {
        let (status, body) = answer(ask(&gateway, "POST", "/graphql", WORLD));
        if status == 200 {
            break body;
        }
        assert!(body.contains("Cannot query field"), "{body}");
    };
    eprintln!(
        "the new field was served {:?} after the edit",
        start.elapsed()
    );
    assert!(
        served.contains(r#""world":"#) && !served.contains("errors"),
        "{served}"
    );
    assert_eq!(notice(&gateway)["ok"], true);
    dev.logged("a.graphql` of the subgraph `a` has changed: reloaded");
    dev.signal("INT");
    assert_eq!(dev.ended().0, Some(0));
}

#[test]
fn development_starts_with_an_error_and_waits_for_its_correction() {
    let folder = fresh("dev-wait");
    fs::write(folder.join("a.graphql"), BROKEN).unwrap();
    let mut dev = Running::start(&["dev", &folder.to_string_lossy(), "-l", "127.0.0.1:0"]);
    dev.logged("error[INVALID_GRAPHQL]");
    dev.logged("nothing to serve yet; waiting for a change");
    fs::write(folder.join("a.graphql"), FIXED).unwrap();
    let gateway = address(&dev.logged("serving http://"));
    let introspection = r#"{"query":"{ __type(name: \"Query\") { fields { name } } }"}"#;
    let (_, body) = answer(ask(&gateway, "POST", "/graphql", introspection));
    assert!(body.contains("world"), "{body}");
}

/// Restrictions hold while a graph is developed, and whoever develops it is told how to be known.
#[test]
fn restrictions_are_enforced_while_developing() {
    let folder = fresh("dev-restricted");
    let sdl = "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.5\", import: [\"@authenticated\"])\n\
               type Query { open: Int! secret: Int @authenticated }\n";
    fs::write(folder.join("a.graphql"), sdl).unwrap();
    let mut dev = Running::start(&["dev", &folder.to_string_lossy(), "-l", "127.0.0.1:0"]);
    let told = dev.logged("the supergraph restricts `Query.secret` with `@authenticated`");
    assert!(told.contains("authentication.router.jwt"), "{told}");
    let gateway = address(&dev.logged("serving http://"));
    let (_, body) = answer(ask(
        &gateway,
        "POST",
        "/graphql",
        r#"{"query":"{ open secret }"}"#,
    ));
    assert!(
        body.contains("\"open\":") && body.contains("\"secret\":null"),
        "{body}"
    );
    assert!(body.contains("UNAUTHORIZED_FIELD_OR_TYPE"), "{body}");
    dev.signal("INT");
    assert_eq!(dev.ended().0, Some(0));
}

#[test]
fn a_dead_subgraph_is_served_with_its_cached_schema() {
    let folder = fresh("dev-dead");
    let (mock, host) = mock(&folder);
    let cache = folder.join("schemas").to_string_lossy().into_owned();
    let url = format!("a=http://{host}/graphql/a");
    let b = folder.join("b.graphql");
    fs::write(&b, "type Query { other: Int! }\n").unwrap();
    let b = format!("b={}", b.display());
    let arguments = [
        "dev",
        &url,
        &b,
        "--schema-cache",
        &cache,
        "-l",
        "127.0.0.1:0",
    ];
    let mut dev = Running::start(&arguments);
    let gateway = address(&dev.logged("serving http://"));
    let (_, body) = answer(ask(&gateway, "POST", "/graphql", WORLD));
    assert!(body.starts_with(r#"{"data":{"hello":"#), "{body}");
    dev.signal("INT");
    assert_eq!(dev.ended().0, Some(0));
    mock.signal("TERM");
    mock.ended();
    // Another test's subgraphs cannot come to be where these were.
    if let Ok(held) = TcpListener::bind(&host) {
        std::thread::spawn(move || held.incoming().for_each(drop));
    }

    let mut dev = Running::start(&arguments);
    let line = dev.logged("warning[SUBGRAPH_FROM_CACHE]: the subgraph `a`");
    assert!(line.contains("does not tell its schema"), "{line}");
    dev.logged("its schema is the one of the cache");
    let gateway = address(&dev.logged("serving http://"));
    assert!(
        notice(&gateway)["text"]
            .as_str()
            .unwrap()
            .contains("SUBGRAPH_FROM_CACHE")
    );
    // The graph is whole; only what the dead subgraph resolves is missing.
    let (status, body) = answer(ask(&gateway, "POST", "/graphql", WORLD));
    assert!(status == 200 && body.contains("errors"), "{body}");
    drop(dev);

    // Without a cache there is nothing to serve it with.
    let (code, _, stderr) = run(&[
        "serve",
        "--subgraphs",
        &url,
        "--schema-cache",
        "none",
        "-l",
        "127.0.0.1:0",
    ]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("SUBGRAPH_UNREACHABLE"), "{stderr}");
}

#[test]
fn a_list_of_subgraphs_is_served_and_followed() {
    let folder = fresh("serve-list");
    let (mut mock, host) = mock(&folder);
    let list = folder.join("supergraph.yaml");
    let entry = |name: &str| {
        format!("  {name}: {{ schema: {{ subgraph_url: 'http://{host}/graphql/{name}' }} }}\n")
    };
    fs::write(&list, format!("subgraphs:\n{}", entry("a"))).unwrap();
    let config = folder.join("ogive.yaml");
    fs::write(
        &config,
        format!(
            "listen: 127.0.0.1:0\nsupergraph: {{ subgraphs: '{}' }}\n",
            list.display()
        ),
    )
    .unwrap();
    let cache = folder.join("schemas").to_string_lossy().into_owned();
    let mut serve = Running::start(&[
        "serve",
        "-c",
        &config.to_string_lossy(),
        "--schema-cache",
        &cache,
    ]);
    let gateway = address(&serve.logged("serving http://"));
    let (_, body) = answer(ask(&gateway, "POST", "/graphql", WORLD));
    assert!(body.starts_with(r#"{"data":{"hello":"#), "{body}");
    // Nothing about composition is told outside of development.
    assert_eq!(
        answer(ask(&gateway, "GET", "/__ogive/composition", "")).0,
        404
    );

    fs::write(&list, format!("subgraphs:\n{}{}", entry("a"), entry("b"))).unwrap();
    serve.logged("has changed: reloaded");
    let (_, body) = answer(ask(
        &gateway,
        "POST",
        "/graphql",
        r#"{"query":"{ hello other }"}"#,
    ));
    assert!(
        body.contains(r#""other":"#) && !body.contains("errors"),
        "{body}"
    );

    fs::write(&list, "subgraphs: {}\n").unwrap();
    // It may have been looked at before anything was in it.
    assert!(serve.logged("no subgraphs are listed").contains("ERROR"));
    let (status, _) = answer(ask(&gateway, "POST", "/graphql", WORLD));
    assert_eq!(status, 200, "the graph before serves on");
    mock.signal("TERM");
    serve.signal("TERM");
    assert_eq!(serve.ended().0, Some(0));
    let _ = &mut mock;
}

#[test]
fn subgraphs_that_are_only_schemas_are_played() {
    let folder = fresh("dev-played");
    let users =
        "type Query { me: User }\ntype User @key(fields: \"id\") { id: ID! name: String! }\n";
    fs::write(folder.join("users.graphql"), users).unwrap();
    let orders = "type Query { orders: [Int!]! }\nextend type User @key(fields: \"id\") { id: ID! @external total: Int! }\n";
    fs::write(folder.join("orders.graphql"), orders).unwrap();
    let mut dev = Running::start(&["dev", &folder.to_string_lossy(), "-l", "127.0.0.1:0"]);
    dev.logged("`orders`, `users` are only a schema: ogive plays them, with made-up values");
    dev.logged("--url orders=http://...");
    let gateway = address(&dev.logged("serving http://"));
    let (_, body) = answer(ask(
        &gateway,
        "POST",
        "/graphql",
        r#"{"query":"{ me { name total } orders }"}"#,
    ));
    assert!(body.starts_with(r#"{"data":{"me":{"name":""#), "{body}");
    assert!(!body.contains("errors"), "{body}");
    fs::write(
        folder.join("users.graphql"),
        users.replace("name: String!", "name: String! age: Int!"),
    )
    .unwrap();
    dev.logged("users.graphql` of the subgraph `users` has changed: reloaded");
    let (_, body) = answer(ask(
        &gateway,
        "POST",
        "/graphql",
        r#"{"query":"{ me { age total } }"}"#,
    ));
    assert!(body.starts_with(r#"{"data":{"me":{"age":"#), "{body}");
    assert!(!body.contains("errors"), "{body}");
    dev.signal("INT");
    assert_eq!(dev.ended().0, Some(0));
}

#[test]
fn a_running_subgraph_tells_its_schema() {
    let folder = fresh("introspect");
    let (_mock, host) = mock(&folder);
    let (code, stdout, stderr) = run(&["introspect", &format!("http://{host}/graphql/a")]);
    assert_eq!((code, &*stdout), (Some(0), FIXED), "{stderr}");
    let file = folder.join("b.graphql");
    let file = file.to_string_lossy();
    let (code, stdout, _) = run(&[
        "introspect",
        &format!("http://{host}/graphql/b"),
        "-o",
        &file,
    ]);
    assert_eq!((code, &*stdout), (Some(0), ""));
    assert_eq!(
        fs::read_to_string(&*file).unwrap(),
        "type Query { other: Int! }\n"
    );
    // An address where nothing is says where something could be.
    let (code, _, stderr) = run(&["introspect", &format!("http://{host}/nothing")]);
    assert_eq!(code, Some(3));
    let suggested =
        format!("HTTP status 404; many servers listen at http://{host}/nothing/graphql");
    assert!(stderr.contains(&suggested), "{stderr}");
}

/// Most likely its name is mistyped, and nothing would ever come.
#[test]
fn development_does_not_wait_for_a_file_that_is_not_there() {
    let folder = fresh("dev-missing");
    fs::write(folder.join("a.graphql"), FIXED).unwrap();
    let (there, missing) = (folder.join("a.graphql"), folder.join("missing.graphql"));
    for files in [vec![&missing], vec![&there, &missing]] {
        let files = files.iter().map(|file| file.to_str().unwrap());
        let arguments: Vec<&str> = ["dev", "-l", "127.0.0.1:0"]
            .into_iter()
            .chain(files)
            .collect();
        let (code, _, err) = run(&arguments);
        assert_eq!(code, Some(3), "{err}");
        assert!(
            err.contains("error[UNREADABLE_INPUT]: cannot read the subgraph")
                && err.contains("missing.graphql"),
            "{err}"
        );
    }
}
