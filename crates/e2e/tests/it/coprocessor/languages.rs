//! Coprocessors in Node and Python, as `docs/coprocessors.md` shows them: they are started from the files that the page names.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use ogive_testbase::left_out;

use super::{EVERYTHING, ME};
use crate::{graph::Graph, http_client::post_with};

/// A coprocessor in a process of its own; ends with the test.
struct Running {
    child: Child,
    url: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts an example, which says where it listens; `None` if its language is not there.
fn start(program: &str, file: &str) -> Option<Running> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/coprocessors");
    let child = Command::new(program)
        .arg(path.join(file))
        .env("PORT", "0")
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.ok()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let url = line.trim().to_owned();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    Some(Running { child, url })
}

/// Both do the same.
fn serves(running: &Running) {
    let yaml = format!(
        "coprocessor:\n  url: '{}'\n  timeout: 20s\n  {}\nheaders: {{ all: {{ request: [{{ propagate: {{ named: x-tenant }} }}] }} }}\n",
        running.url,
        EVERYTHING.trim()
    );
    let graph = Graph::with(&yaml);
    graph
        .service
        .configure("accounts", |settings| settings.record = true);
    let refused = post_with(graph.address(), ME, &[]);
    assert_eq!(
        (refused.status, refused.codes()),
        (401, vec!["UNAUTHENTICATED".into()])
    );
    let answer = post_with(graph.address(), ME, &[("x-api-key", "tenant-7")]);
    assert_eq!((answer.status, answer.codes()), (200, Vec::new()));
    assert!(answer.json()["data"]["me"]["name"].is_string());
    assert_eq!(answer.header("x-tenant"), Some("7"));
    let recorded = graph.service.recorded();
    let mut sent = recorded[0].headers.iter();
    let tenant = sent.find(|(name, _)| name == "x-tenant");
    assert_eq!(tenant.map(|(_, value)| value.as_str()), Some("7"));
}

#[test]
fn a_coprocessor_in_node_runs_as_the_page_shows_it() {
    match start("node", "node.mjs") {
        Some(running) => serves(&running),
        None => left_out("there is no Node"),
    }
}

#[test]
fn a_coprocessor_in_python_runs_as_the_page_shows_it() {
    match start("python3", "python.py") {
        Some(running) => serves(&running),
        None => left_out("there is no Python"),
    }
}
