//! Another configuration or supergraph while requests are under way: none of them fails, and a broken one changes
//! nothing.

use std::{
    fs,
    io::{Read as _, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ogive_testbase::subgraph::{self, ManualSubgraph, StubSubgraph};

use crate::{
    process::{Running, address, answer, ask, demo, file, folder, run, subgraphs},
    refusals::pipe,
};

const QUERY: &str = r#"{"query":"{ me { name } }"}"#;
const ANSWER: &str = r#"{"data":{"me":{"name":"Ida Lindqvist"}}}"#;
/// A second SIGTERM that comes so soon is the first one's.
const SAME_SIGNAL: Duration = Duration::from_secs(2);

/// Replaces a file in one step, as tools that deploy files do.
fn replace(path: &str, text: &str) {
    let other = format!("{path}.new");
    fs::write(&other, text).unwrap();
    fs::rename(other, path).unwrap();
}

#[test]
fn twenty_reloads_under_load_fail_no_request() {
    let (_mock, urls) = subgraphs();
    let schema = fs::read_to_string(demo("supergraph.graphql")).unwrap();
    let supergraph = file("reload.graphql", &schema);
    let config = |extra: &str| {
        format!("listen: 127.0.0.1:0\nsupergraph: {{ path: '{supergraph}' }}\n{urls}{extra}\n")
    };
    let path = file("reload.yaml", config(""));
    let mut serve = Running::start(&["serve", "-c", &path]);
    let gateway = address(&serve.logged("serving http://"));
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let (gateway, stop, asked) = (gateway.clone(), Arc::clone(&stop), Arc::clone(&asked));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(
                        answer(ask(&gateway, "POST", "/graphql", QUERY)),
                        (200, ANSWER.into())
                    );
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for swap in 0..20 {
        let before = asked.load(Ordering::Relaxed);
        match swap {
            7 => replace(&supergraph, "type Query { broken"),
            8 => replace(&supergraph, ""),
            9 => {
                replace(&supergraph, &schema);
                replace(&path, &config("limits: { max_dept: 3 }"));
            }
            _ => {
                replace(
                    &path,
                    &config(&format!("limits: {{ max_depth: {} }}", 10 + swap)),
                );
                replace(
                    &supergraph,
                    &schema.replace("type Person", &format!("\"v{swap}\"\ntype Person")),
                );
            }
        }
        serve.signal("HUP");
        let line = serve.logged("SIGHUP: reload");
        let refused = line.contains("reload refused");
        assert_eq!(refused, (7..=9).contains(&swap), "{swap}: {line}");
        // Requests go on between two swaps, too.
        while asked.load(Ordering::Relaxed) < before + 5 && !clients.iter().any(|c| c.is_finished())
        {
            std::thread::yield_now();
        }
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("no request fails");
    }
    assert!(asked.load(Ordering::Relaxed) >= 100);
    assert_eq!(answer(ask(&gateway, "GET", "/readiness", "")).0, 200);
    serve.signal("TERM");
    assert_eq!(serve.ended().0, Some(0));
}

#[test]
fn watched_files_are_reloaded_and_options_take_hold() {
    let (_mock, urls) = subgraphs();
    let config = |extra: &str| {
        format!(
            "listen: 127.0.0.1:0\n{urls}\
             hot_reload: {{ interval: 10ms }}\n{extra}\n"
        )
    };
    let path = file("watch.yaml", config(""));
    let mut serve = Running::start(&[
        "serve",
        "--hot-reload",
        "-c",
        &path,
        "-s",
        &demo("supergraph.graphql"),
    ]);
    let gateway = address(&serve.logged("serving http://"));
    assert_eq!(
        answer(ask(&gateway, "POST", "/graphql", QUERY)),
        (200, ANSWER.into())
    );
    replace(&path, &config("limits: { max_depth: 1 }"));
    serve.logged("` has changed: reloaded");
    let (status, body) = answer(ask(&gateway, "POST", "/graphql", QUERY));
    assert!(
        status == 400 && body.contains("MAX_DEPTH_LIMIT"),
        "{status} {body}"
    );
    replace(&path, &config("limits: { max_depth: deep }"));
    serve.logged("` has changed: reload refused");
    assert_eq!(
        answer(ask(&gateway, "POST", "/graphql", QUERY)).0,
        400,
        "as before"
    );
    for emptied in ["", "# limits: none\n---\n"] {
        replace(&path, emptied);
        let refused = serve.logged("reload refused");
        assert!(refused.contains("has become empty"), "{refused}");
        let (status, _) = answer(ask(&gateway, "POST", "/graphql", QUERY));
        assert_eq!(status, 400, "as before");
    }
    // Half of it is valid, too.
    let whole = config("limits: { max_depth: 1 }");
    replace(&path, whole.split("{ max_depth").next().unwrap().trim_end());
    let refused = serve.logged("reload refused");
    assert!(refused.contains("half written"), "{refused}");
    assert_eq!(answer(ask(&gateway, "POST", "/graphql", QUERY)).0, 400);
    replace(
        &path,
        &config("http: { workers: 1 }\ntelemetry: { service_name: shop, resource: { a: b } }"),
    );
    serve.logged("the configuration does not set `limits.max_depth` any more: defaults hold");
    serve.logged("`http.workers` has changed; it needs a restart");
    serve.logged("`telemetry.service_name` has changed; it needs a restart");
    serve.logged("`telemetry.resource` has changed; it needs a restart");
    assert_eq!(
        answer(ask(&gateway, "POST", "/graphql", QUERY)),
        (200, ANSWER.into())
    );
}

/// Asks over and over while something is reloaded, and fails if an answer is not that of every request.
struct Load {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    clients: Vec<std::thread::JoinHandle<()>>,
}

impl Load {
    fn on(gateway: &str) -> Load {
        let (stop, asked) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let clients = (0..3).map(|_| {
            let (gateway, stop, asked) =
                (gateway.to_owned(), Arc::clone(&stop), Arc::clone(&asked));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let found = answer(ask(&gateway, "POST", "/graphql", QUERY));
                    assert_eq!(found, (200, ANSWER.into()));
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        Load {
            clients: clients.collect(),
            stop,
            asked,
        }
    }
    /// Waits until more requests were answered.
    fn goes_on(&self) {
        let before = self.asked.load(Ordering::Relaxed);
        while self.asked.load(Ordering::Relaxed) < before + 5
            && !self
                .clients
                .iter()
                .any(std::thread::JoinHandle::is_finished)
        {
            std::thread::yield_now();
        }
    }
    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().expect("no request fails");
        }
    }
}

/// A script of the folder, one that it imports, one that is new, one that is gone: all are looked at like any other file.
#[test]
fn watched_scripts_and_what_they_import_are_reloaded_under_load() {
    let (_mock, urls) = subgraphs();
    let rhai = folder().join("watched-rhai");
    let _ = fs::remove_dir_all(&rhai);
    fs::create_dir_all(rhai.join("more")).unwrap();
    let write = |name: &str, text: &str| replace(&rhai.join(name).to_string_lossy(), text);
    let main = |by: &str| {
        format!(
            "import \"more/said\" as said;\n\
             fn router_service(service) {{ service.map_response(|response| {{ \
             response.headers[\"x-said\"] = said::word() + {by}; }}); }}\n"
        )
    };
    write("more/said.rhai", "fn word() { \"a\" }\n");
    write("main.rhai", &main("\"1\""));
    let config = format!(
        "listen: 127.0.0.1:0\n{urls}hot_reload: {{ enabled: true, interval: 10ms }}\n\
         rhai: {{ scripts: '{}', limits: {{ timeout: 60s }} }}\n",
        rhai.display()
    );
    let config = file("scripted.yaml", config);
    let supergraph = demo("supergraph.graphql");
    let mut serve = Running::start(&["serve", "-c", &config, "-s", &supergraph]);
    let gateway = address(&serve.logged("serving http://"));
    let said = || {
        let mut text = String::new();
        let mut stream = ask(&gateway, "POST", "/graphql", QUERY);
        stream.read_to_string(&mut text).unwrap();
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix("x-said: "));
        line.unwrap_or("").to_owned()
    };
    assert_eq!(said(), "a1");
    let load = Load::on(&gateway);
    write("main.rhai", &main("\"2\""));
    serve.logged("main.rhai` has changed: reloaded");
    assert_eq!(said(), "a2");
    write("more/said.rhai", "fn word() { \"b\" }\n");
    serve.logged("said.rhai` has changed: reloaded");
    assert_eq!(said(), "b2");
    load.goes_on();
    // What cannot be used changes nothing, be it imported or not.
    write("more/said.rhai", "fn word() {");
    serve.logged("said.rhai` has changed: reload refused");
    assert_eq!(said(), "b2");
    write("more/said.rhai", "fn word() { \"c\" }\n");
    serve.logged("said.rhai` has changed: reloaded");
    write("new.rhai", "fn unused() { }\n");
    serve.logged("new.rhai` has changed: reloaded");
    load.goes_on();
    fs::remove_file(rhai.join("new.rhai")).unwrap();
    serve.logged("have changed: reloaded");
    assert_eq!(said(), "c2");
    load.end();
}

/// Another URL, other stages, none at all, and again: requests in flight end with the one that they began with.
#[test]
fn coprocessors_are_reconfigured_under_load() {
    let (_mock, urls) = subgraphs();
    let coprocessors = [0, 1].map(|_| StubSubgraph::answering(200, "", "{}"));
    let config = |more: &str| {
        format!(
            "listen: 127.0.0.1:0\n{urls}hot_reload: {{ enabled: true, interval: 10ms }}\n{more}\n"
        )
    };
    let with = |number: usize, stages: &str| {
        let url = coprocessors[number].url();
        config(&format!(
            "coprocessor: {{ url: '{url}', timeout: 60s, {stages} }}"
        ))
    };
    let path = file("reconfigured.yaml", config(""));
    let supergraph = demo("supergraph.graphql");
    let mut serve = Running::start(&["serve", "-c", &path, "-s", &supergraph]);
    let gateway = address(&serve.logged("serving http://"));
    let load = Load::on(&gateway);
    let response = "router: { response: { headers: true } }";
    for (number, stages, is_good) in [
        (0, response, true),
        (1, response, true),
        (
            1,
            "router: { response: { headers: true, } }, nowhere: true",
            false,
        ),
        (
            0,
            "router: { response: { headers: true, body: true } }",
            true,
        ),
        (
            1,
            "subgraph: { all: { request: { body: true }, response: { headers: true } } }",
            true,
        ),
        (
            0,
            "supergraph: { response: { headers: true, body: true } }",
            true,
        ),
    ] {
        let before = coprocessors[number].asked();
        replace(&path, &with(number, stages));
        let outcome = if is_good {
            "reloaded"
        } else {
            "reload refused"
        };
        let line = serve.logged("reconfigured.yaml` has changed: ");
        assert!(line.contains(outcome), "{line}");
        load.goes_on();
        assert!(coprocessors[number].asked() > before, "{stages}");
    }
    replace(&path, &config("limits: { max_depth: 20 }"));
    serve.logged("has changed: reloaded");
    load.goes_on();
    load.end();
}

/// What is to be kept from callers is there, or the supergraph is not served.
#[test]
fn a_supergraph_without_a_field_that_is_redacted_is_refused() {
    let schema = fs::read_to_string(demo("supergraph.graphql")).unwrap();
    let supergraph = file("redacted.graphql", &schema);
    let (_mock, urls) = subgraphs();
    let config = |field: &str| {
        format!(
            "listen: 127.0.0.1:0\nsupergraph: {{ path: '{supergraph}' }}\n{urls}\
             hot_reload: {{ enabled: true, interval: 10ms }}\n\
             authorization: {{ directives: enforce, redact: [{{ fields: [{field}] }}] }}\n"
        )
    };
    let bad = file("redacting-nothing.yaml", config("Person.town"));
    for command in [&["serve", "-c"][..], &["config", "validate"]] {
        let arguments = [command, &[&bad]].concat();
        let (code, _, error) = run(&arguments);
        assert_eq!(code, Some(1), "{error}");
        let wanted =
            "error[REDACTION_UNUSABLE]: `authorization.redact` mentions the field `Person.town`";
        assert!(error.contains(wanted), "{error}");
    }
    let good = file("redacting.yaml", config("Person.city"));
    let mut serve = Running::start(&["serve", "-c", &good]);
    let gateway = address(&serve.logged("serving http://"));
    replace(
        &supergraph,
        &schema.replace("  city: String", "  town: String"),
    );
    let line = serve.logged("reload refused");
    assert!(line.contains("`Person.city`"), "{line}");
    let asked = r#"{"query":"{ me { city } }"}"#;
    let (status, body) = answer(ask(&gateway, "POST", "/graphql", asked));
    assert!(status == 200 && body.contains("\"city\":null"), "{body}");
}

/// A read that waits would end all reloads.
#[test]
fn a_pipe_in_the_place_of_a_watched_file_is_refused_and_watched_on() {
    let schema = fs::read_to_string(demo("supergraph.graphql")).unwrap();
    let supergraph = file("piped.graphql", &schema);
    let config = file(
        "piped.yaml",
        "listen: 127.0.0.1:0\nhot_reload: { enabled: true, interval: 10ms }\n",
    );
    let mut serve = Running::start(&["serve", "-c", &config, "-s", &supergraph]);
    let gateway = address(&serve.logged("serving http://"));
    for (path, good) in [
        (&supergraph, schema),
        (&config, fs::read_to_string(&config).unwrap()),
    ] {
        fs::rename(pipe("in-the-way"), path).unwrap();
        let line = serve.logged("reload refused");
        assert!(line.contains("serving on as before"), "{line}");
        assert_eq!(answer(ask(&gateway, "GET", "/readiness", "")).0, 200);
        replace(path, &format!("{good}\n"));
        serve.logged("` has changed: reloaded");
    }
}

/// Nothing is reloaded meanwhile, so somebody has to know.
#[test]
fn a_watched_file_that_is_gone_is_told_once() {
    let schema = fs::read_to_string(demo("supergraph.graphql")).unwrap();
    let supergraph = file("gone.graphql", &schema);
    let config = file(
        "gone.yaml",
        "listen: 127.0.0.1:0\nhot_reload: { enabled: true, interval: 10ms }\n",
    );
    let mut serve = Running::start(&["serve", "-c", &config, "-s", &supergraph]);
    let gateway = address(&serve.logged("serving http://"));
    for _ in 0..2 {
        fs::remove_file(&supergraph).unwrap();
        let line = serve.logged("is gone");
        assert!(
            line.contains("gone.graphql") && line.contains("WARN"),
            "{line}"
        );
        assert_eq!(answer(ask(&gateway, "GET", "/readiness", "")).0, 200);
        replace(&supergraph, &format!("{schema}\n"));
        serve.logged("` has changed: reloaded");
    }
}

/// Supervisors such as `timeout` send SIGTERM to the process and then to its group.
#[test]
fn the_same_sigterm_twice_cuts_nothing_off() {
    let accounts = ManualSubgraph::start();
    let path = file(
        "twice.yaml",
        format!(
            "listen: 127.0.0.1:0\nsupergraph: {{ path: '{}' }}\n\
             http: {{ connection_shutdown_timeout: 10m }}\n\
             override_subgraph_url: {{ accounts: '{}' }}\n",
            demo("supergraph.graphql"),
            accounts.url()
        ),
    );
    loop {
        let mut serve = Running::start(&["serve", "-c", &path]);
        let gateway = address(&serve.logged("serving http://"));
        let client = std::thread::spawn(move || answer(ask(&gateway, "POST", "/graphql", QUERY)));
        let mut upstream = accounts.next();
        let began = Instant::now();
        serve.signal("TERM");
        serve.logged("SIGTERM: draining");
        serve.signal("TERM");
        // Whoever is cut off reads nothing any more.
        let whole = subgraph::answer(200, "", ANSWER.as_bytes());
        let _ = upstream.stream.write_all(&whole);
        let (code, rest) = serve.ended();
        // On a busy machine there may have been so much time between the two that somebody meant the second.
        if rest.contains("again") && began.elapsed() >= SAME_SIGNAL {
            let _ = client.join();
            continue;
        }
        assert_eq!(client.join().unwrap(), (200, ANSWER.into()));
        assert_eq!(code, Some(0));
        assert!(!rest.contains("again"), "{rest}");
        break;
    }
}
