//! What `ogive` refuses to start with: one clear diagnostic with file, line and remedy, and a failure code.

use crate::process::{demo, file, ogive, run};

/// Runs, expects failure, and checks what standard error says.
fn refused(arguments: &[&str], wanted: &[&str]) {
    let (code, stdout, stderr) = run(arguments);
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(stdout, "", "results go to standard output, nothing else");
    for part in wanted {
        assert!(stderr.contains(part), "no {part:?} in:\n{stderr}");
    }
    let headlines = stderr.lines().filter(|line| line.starts_with("error"));
    assert_eq!(headlines.count(), 1, "one diagnostic:\n{stderr}");
    assert!(stderr.contains("help: "), "no remedy in:\n{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(
        !stderr.contains('\x1b'),
        "colour without a terminal:\n{stderr}"
    );
}

#[test]
fn a_supergraph_that_is_not_there() {
    refused(
        &["serve", "--supergraph", "nowhere.graphql"],
        &[
            "error[UNREADABLE_INPUT]: cannot read the supergraph `nowhere.graphql`",
            "--supergraph",
        ],
    );
    refused(
        &["serve"],
        &[
            "error[NO_SUPERGRAPH]: no supergraph to serve",
            "ogive serve --supergraph",
        ],
    );
    let config = file(
        "no-supergraph.yaml",
        "supergraph: { path: nowhere.graphql }",
    );
    refused(
        &["serve", "-c", &config],
        &[
            "error[UNREADABLE_INPUT]: cannot read the supergraph `nowhere.graphql`",
            "help: check `supergraph.path` in the configuration",
        ],
    );
}

/// Nobody is told that it would start without what is wrong: that would be without what protects, too.
#[test]
fn what_is_wrong_is_to_be_corrected_and_not_left_out() {
    let supergraph = demo("supergraph.graphql");
    for (name, text) in [
        ("regex", "cors: { policies: [{ match_origins: ['('] }] }"),
        ("depth", "limits: { max_depth: deep }"),
        (
            "twice",
            "limits: { max_depth: 5 }\nlimits: { max_depth: 6 }",
        ),
        (
            "keys",
            "authentication: { router: { api_keys: { file: no-such.json } } }",
        ),
        ("secret", "homepage: { path: '${file.no-such}' }"),
    ] {
        let config = file(&format!("wrong-{name}.yaml"), text);
        for arguments in [
            &["serve", "-s", &supergraph, "-c", &config][..],
            &["config", "validate", &config],
        ] {
            let (code, _, stderr) = run(arguments);
            assert_eq!(code, Some(1), "{stderr}");
            assert!(stderr.contains("error[CONFIG_"), "{stderr}");
            for word in ["runs without", "start again", "remove the key"] {
                assert!(!stderr.contains(word), "{stderr}");
            }
            assert_eq!(
                name == "twice",
                stderr.contains("keep the one that is meant")
            );
        }
    }
}

#[test]
fn a_supergraph_with_a_syntax_error() {
    let path = file("syntax.graphql", "type Query {\n  a: Int\n  b: [Int\n}\n");
    refused(
        &["serve", "-s", &path],
        &[
            "GRAPHQL_PARSE_FAILED",
            "syntax.graphql:4:1",
            "compose it again",
        ],
    );
}

#[test]
fn a_schema_that_is_no_supergraph() {
    let path = file("plain.graphql", "type Query {\n  a: Int\n}\n");
    refused(&["serve", "-s", &path], &["plain.graphql:"]);
}

#[test]
fn a_supergraph_that_is_not_text() {
    let path = file("bytes.graphql", b"type Query {\n  a\xff: Int\n}\n");
    refused(
        &["serve", "-s", &path],
        &["is not UTF-8 (line 2)", "save the file as UTF-8"],
    );
}

/// A device has no length that could be looked at before it is read.
#[test]
fn files_without_end() {
    let supergraph = demo("supergraph.graphql");
    serve_refuses("endless", "/dev/zero", &supergraph, "it is a device");
    // Whoever reads once reads up to the bound.
    refused(
        &["plan", "-s", "/dev/zero", "-"],
        &["it is larger than 64 MiB"],
    );
    refused(
        &["config", "validate", "/dev/zero"],
        &["it is larger than 64 MiB"],
    );
}

/// Opening a pipe waits for its other end, and what was read of it cannot be read again.
#[test]
fn pipes_in_the_place_of_files() {
    let fifo = pipe("fifo");
    let supergraph = demo("supergraph.graphql");
    serve_refuses("pipe", &fifo, &supergraph, "it is a pipe");
    let log = file(
        "pipe-log.yaml",
        format!("telemetry: {{ access_log: {{ enabled: true, path: '{fifo}' }} }}"),
    );
    let wanted = ["it is a pipe that nobody reads"];
    refused(&["config", "validate", &log], &wanted);
    refused(
        &["serve", "-s", &supergraph, "-c", &log, "-l", "127.0.0.1:0"],
        &wanted,
    );
}

/// Everything that `ogive serve` reads, at a path that holds no file.
fn serve_refuses(name: &str, path: &str, supergraph: &str, why: &str) {
    refused(&["serve", "-s", path, "-l", "127.0.0.1:0"], &[why]);
    refused(&["serve", "-s", supergraph, "-c", path], &[why]);
    refused(
        &[
            "serve",
            "-s",
            supergraph,
            "-l",
            "127.0.0.1:0",
            "--plans",
            path,
        ],
        &[why],
    );
    for (what, text) in [
        ("secret", format!("log: {{ filter: '${{file.{path}}}' }}")),
        (
            "manifest",
            format!("persisted_queries: {{ enabled: true, local_manifests: ['{path}'] }}"),
        ),
        (
            "certificate",
            format!("tls: {{ supergraph: {{ certificate_chain: '{path}', key: '{path}' }} }}"),
        ),
    ] {
        let config = file(&format!("{name}-{what}.yaml"), text);
        refused(&["config", "validate", &config], &[why]);
        refused(
            &[
                "serve",
                "-s",
                supergraph,
                "-c",
                &config,
                "-l",
                "127.0.0.1:0",
            ],
            &[why],
        );
    }
}

/// As shells make them for `<(command)`.
#[test]
fn commands_that_read_once_may_be_given_pipes() {
    let fifo = pipe("once");
    let schema = format!("a={fifo}");
    std::thread::scope(|scope| {
        scope.spawn(|| std::fs::write(&fifo, "type Query { a: Int }").unwrap());
        let (code, out, err) = run(&["compose", &schema, "--url", "a=http://a/"]);
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains("join__Graph"), "{out}");
    });
    std::thread::scope(|scope| {
        let text = std::fs::read(demo("supergraph.graphql")).unwrap();
        let fifo = &fifo;
        scope.spawn(move || std::fs::write(fifo, text).unwrap());
        let operation = file("once.graphql", "{ me { name } }");
        let (code, _, err) = run(&["plan", "-s", fifo, &operation]);
        assert_eq!(code, Some(0), "{err}");
    });
}

/// A pipe that nobody has opened.
pub(crate) fn pipe(name: &str) -> String {
    let path = crate::process::folder().join(name);
    let _ = std::fs::remove_file(&path);
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    path.display().to_string()
}

#[test]
fn a_configuration_that_is_not_there() {
    refused(
        &[
            "serve",
            "-s",
            &demo("supergraph.graphql"),
            "--config",
            "nowhere.yaml",
        ],
        &[
            "error[UNREADABLE_INPUT]: cannot read the configuration `nowhere.yaml`",
            "--config",
        ],
    );
}

#[test]
fn a_configuration_with_an_unknown_key() {
    let path = file(
        "unknown.yaml",
        "listen: 127.0.0.1:0\ntraffic_shapping:\n  all: {}\n",
    );
    refused(
        &["serve", "-s", &demo("supergraph.graphql"), "-c", &path],
        &[
            "CONFIG_UNKNOWN_KEY",
            "unknown.yaml:2:1",
            "did you mean `traffic_shaping`?",
        ],
    );
}

#[test]
fn a_configuration_that_is_no_yaml() {
    let path = file("broken.yaml", "listen: [\n");
    refused(
        &["serve", "-s", &demo("supergraph.graphql"), "-c", &path],
        &["CONFIG_SYNTAX", "broken.yaml:"],
    );
}

#[test]
fn an_address_that_cannot_be_used() {
    let supergraph = demo("supergraph.graphql");
    refused(
        &["serve", "-s", &supergraph, "-l", "4000"],
        &["error[INVALID_ARGUMENT]: `4000` is no address", "HOST:PORT"],
    );
    refused(
        &["serve", "-s", &supergraph, "--log", "loud"],
        &[
            "error[INVALID_ARGUMENT]: `loud` is no log filter",
            "`--log`",
        ],
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(
        &["serve", "-s", &supergraph, "-l", &address, "--log", "warn"],
        &[
            "error[ADDRESS_UNUSABLE]: cannot listen on",
            &address,
            "`listen` in the configuration, or `--listen",
        ],
    );
    for (key, text) in [
        (
            "`telemetry.exporters.metrics.prometheus.listen`",
            format!(
                "telemetry: {{ exporters: {{ metrics: {{ prometheus: {{ enabled: true, listen: '{address}' }} }} }} }}"
            ),
        ),
        (
            "`health_check.listen`",
            format!("health_check: {{ listen: '{address}' }}"),
        ),
    ] {
        let config = file("taken.yaml", text);
        let arguments = [
            "serve",
            "-s",
            &supergraph,
            "-c",
            &config,
            "-l",
            "127.0.0.1:0",
        ];
        refused(
            &[&arguments[..], &["--log", "error"]].concat(),
            &["error[ADDRESS_UNUSABLE]: cannot listen on", &address, key],
        );
    }
}

#[test]
fn a_configuration_in_the_working_directory_is_read() {
    let folder = crate::process::folder().join("with-config");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("ogive.yaml"), "nope: 1\n").unwrap();
    let output = ogive(&["serve", "-s", &demo("supergraph.graphql")])
        .current_dir(folder)
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("ogive.yaml:1:1"), "{stderr}");
}

#[test]
fn operations_that_cannot_be_planned() {
    let supergraph = demo("supergraph.graphql");
    let path = file("invalid.graphql", "{\n  me {\n    nope\n  }\n}\n");
    let (code, _, stderr) = run(&["plan", "-s", &supergraph, &path]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("GRAPHQL_VALIDATION_FAILED"), "{stderr}");
    assert!(stderr.contains("invalid.graphql:3:5"), "{stderr}");
    let (code, _, stderr) = run(&["plan", "-s", &supergraph, "nowhere.graphql"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("cannot read the operation"), "{stderr}");
}

#[test]
fn usage_errors_have_their_own_code() {
    let (code, _, stderr) = run(&["serv"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("serve"), "{stderr}");
}

/// The demo's supergraph, of which somebody has to be known to see anything.
fn restricted() -> String {
    let sdl = std::fs::read_to_string(demo("supergraph.graphql")).expect("the demo");
    let sdl = sdl.replacen(
        "schema",
        "directive @authenticated on FIELD_DEFINITION | OBJECT\n\
         schema @link(url: \"https://specs.apollo.dev/authenticated/v0.1\", for: SECURITY)",
        1,
    );
    let sdl = sdl.replacen("type Query", "type Query @authenticated", 1);
    file("restricted.graphql", &sdl)
}

#[test]
fn a_supergraph_with_restrictions_that_are_not_enforced() {
    let supergraph = restricted();
    let wanted = [
        "error[SUPERGRAPH_RESTRICTED]: the supergraph restricts `Query` with `@authenticated`",
        "`authentication.router.jwt`",
        "authorization.directives: ignore",
    ];
    refused(&["serve", "-s", &supergraph], &wanted);
    // What is not served is not fine.
    let text = format!("supergraph: {{ path: '{supergraph}' }}");
    refused(
        &["config", "validate", &file("of-restricted.yaml", &text)],
        &wanted,
    );
    let text = format!("{text}\nauthorization: {{ directives: enforce }}");
    let (code, _, err) = run(&["config", "validate", &file("enforcing.yaml", &text)]);
    assert_eq!(code, Some(0), "{err}");
    assert!(
        err.contains("nobody may see what the supergraph restricts"),
        "{err}"
    );
}

#[test]
fn a_subgraph_that_the_supergraph_does_not_have() {
    let text = format!(
        "supergraph: {{ path: '{}' }}\noverride_subgraph_url: {{ prodcts: 'http://127.0.0.1:1/' }}",
        demo("supergraph.graphql")
    );
    let (code, _, err) = run(&["config", "validate", &file("prodcts.yaml", text)]);
    assert_eq!(code, Some(0), "{err}");
    assert!(
        err.contains("`prodcts`") && err.contains("did you mean `products`?"),
        "{err}"
    );
}

#[test]
fn a_fault_that_nobody_knows() {
    let sdl = file("faulty.graphql", "type Query { a: Int }");
    let (code, _, err) = run(&["mock", &sdl, "--fault", "nope:1"]);
    assert_ne!(code, Some(0));
    assert!(err.contains("unknown fault \"nope\""), "{err}");
}

/// A path that was mistyped costs no file.
#[test]
fn a_unix_socket_that_is_trusted_and_not_there() {
    let config = file(
        "trusting.yaml",
        "authorization: { directives: enforce, claims: { header: x-claims, trusted: [10.0.0.0/8, unix] } }",
    );
    let supergraph = demo("supergraph.graphql");
    let wanted = [
        "`authorization.claims.trusted` has `unix`, but nobody listens on a unix socket: `listen` is 127.0.0.1:0",
        "listen on `unix:///PATH`",
    ];
    let listen = ["--listen", "127.0.0.1:0"];
    let arguments = ["serve", "-c", &config, "-s", &supergraph];
    refused(&[&arguments[..], &listen].concat(), &wanted);
    refused(
        &["config", "validate", &config],
        &["nobody listens on a unix socket"],
    );
}

#[test]
fn a_unix_socket_where_a_file_is() {
    let precious = file("precious.txt", "kept");
    let listen = format!("unix://{precious}");
    refused(
        &["serve", "-s", &demo("supergraph.graphql"), "-l", &listen],
        &["cannot listen on unix://", "no socket; it is left alone"],
    );
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
}
