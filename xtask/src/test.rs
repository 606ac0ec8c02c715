//! What every change must pass, with its own set-up: the checks of a landing. Long forms are in [`crate::prove`].
//!
//! Steps and tests that need a program which is not installed (node, chromium, a C++ compiler) are left out and counted
//! ([`crate::left_out`]): in continuous integration any count but zero fails.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{
    components,
    run::{Run, has, target_folder},
};

/// Features of what is released, for commands over the whole workspace.
pub(crate) const SHIPPED: &str =
    "ogive-cli/shipped,ogive-e2e/components,ogive-hooks/components,ogive-cedar/engine";

/// Documents what is released. Links to private items are allowed, because maintainers read the pages of private items.
const DOCUMENTATION: &str = "cargo doc --workspace --no-deps --document-private-items --features ogive-cli/shipped,ogive-hooks/components,ogive-cedar/engine";

/// One program of `fuzz/`.
pub(crate) struct FuzzTarget {
    pub(crate) what: &'static str,
    pub(crate) name: &'static str,
    /// How long a landing runs it; `None` if only `cargo xtask prove` does, because building it takes too long.
    landing_seconds: Option<u32>,
}

impl FuzzTarget {
    const fn new(what: &'static str, name: &'static str, landing_seconds: Option<u32>) -> Self {
        FuzzTarget {
            what,
            name,
            landing_seconds,
        }
    }

    pub(crate) fn command(&self, seconds: u32) -> String {
        format!("bash fuzz/run.sh {} {seconds} -verbosity=0", self.name)
    }
}

/// All of them. `cargo xtask prove` runs each for longer than a landing.
pub(crate) const FUZZ: &[FuzzTarget] = &[
    FuzzTarget::new("lexer and parser", "parse", Some(15)),
    FuzzTarget::new("HTTP answers", "answer", Some(5)),
    FuzzTarget::new("JSON", "json", Some(15)),
    FuzzTarget::new("mappings", "mapping", Some(15)),
    FuzzTarget::new("composition", "compose", Some(20)),
    FuzzTarget::new("tokens and key sets", "token", None),
];

/// Folders with the npm packages of reference implementations and clients.
const PACKAGES: &[&str] = &[
    "oracle",
    "oracle/compose",
    "oracle/signing",
    "oracle/identity",
    "oracle/cache",
    "oracle/subscriptions",
    "oracle/clients",
    "oracle/documents",
    "oracle/incremental",
];

/// Virtual environments with Python packages: the folder, and the list of packages.
const PYTHON: &[(&str, &str)] = &[
    (
        "examples/plugins/python/venv",
        "examples/plugins/python/requirements.txt",
    ),
    (
        "oracle/subscriptions/python",
        "oracle/subscriptions/requirements.txt",
    ),
];

/// Runs all steps; the first failing step does not stop the others.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<()> {
    let quick = match options {
        [] => false,
        ["--quick"] => true,
        _ => bail!("unknown option; see `cargo xtask`"),
    };
    let mut run = Run::new(root)?;
    run.step("format", "cargo fmt --all --check");
    run.step("tidy", "cargo run --quiet --package xtask -- tidy");
    run.step("licences", "cargo run --quiet --package xtask -- licences");
    let installs = if quick {
        Vec::new()
    } else {
        installs(&mut run)
    };
    let installs = run.start(installs);
    // Fuzzing has a target folder of its own, so its builds fill the cores that the build of the tests leaves idle.
    let fuzzing = if quick { Vec::new() } else { fuzzing(&mut run) };
    let fuzzing = run.start(fuzzing);
    let programs = run.build_tests(&["--workspace", "--features", SHIPPED]);
    run.oracles = run.join(installs) && !quick && has_node();
    // Tests with sockets leave the cores idle for much of their time.
    let lints = run.start(lints(quick));
    for program in &programs {
        run.program(program);
    }
    let binary = target_folder(root).join("debug").join("ogive");
    let binary = binary.to_string_lossy();
    run.step_of("demo", &[&binary, "demo", "--once"], &[]);
    if quick {
        for step in ["oracles", "browser and clients", "site", "fuzz"] {
            run.leave_out(step, "--quick");
        }
    } else {
        clients(&mut run, &binary);
        site(&mut run, root);
        optional(&mut run);
    }
    run.join(fuzzing);
    run.join(lints);
    run.finish()
}

fn has_node() -> bool {
    has("node") && has("npm")
}

fn step(name: &str, command: &str) -> (String, String) {
    (name.to_owned(), command.to_owned())
}

/// What installs the reference implementations, which tests compare with if `OGIVE_ORACLE` is set.
fn installs(run: &mut Run<'_>) -> Vec<(String, String)> {
    let mut steps = Vec::new();
    if has_node() {
        for folder in PACKAGES {
            steps.push((
                format!("npm packages of {folder}"),
                format!("npm ci --prefix {folder} --no-audit --no-fund"),
            ));
        }
    } else {
        run.leave_out("oracles", "node and npm are not installed");
    }
    if !has("python3") {
        run.leave_out("Python packages", "python3 is not installed");
        return steps;
    }
    for (folder, packages) in PYTHON {
        steps.push(step(folder, &format!("python3 -m venv {folder}")));
        steps.push(step(
            packages,
            &format!("{folder}/bin/pip install --quiet --timeout 120 --requirement {packages}"),
        ));
    }
    steps
}

/// Lints and documentation of what is released and of the build without any feature.
fn lints(quick: bool) -> Vec<(String, String)> {
    let mut steps = vec![
        step(
            "clippy",
            &format!(
                "cargo clippy --workspace --all-targets --features {SHIPPED} --quiet -- -D warnings"
            ),
        ),
        step(
            "clippy without features",
            "cargo clippy --package ogive-cli --no-default-features --quiet -- -D warnings",
        ),
    ];
    if !quick {
        steps.push(step(
            "documentation",
            &format!("env RUSTDOCFLAGS=-Dwarnings {DOCUMENTATION}"),
        ));
    }
    steps
}

/// Runs of the fuzz targets that a landing builds.
fn fuzzing(run: &mut Run<'_>) -> Vec<(String, String)> {
    if !has("c++") {
        run.leave_out("fuzz", "no C++ compiler for the fuzzing runtime");
        return Vec::new();
    }
    let step = |target: &FuzzTarget| {
        let seconds = target.landing_seconds?;
        Some((format!("fuzz: {}", target.what), target.command(seconds)))
    };
    FUZZ.iter().filter_map(step).collect()
}

/// Checks that need components of the toolchain which most machines lack. They are not counted where these are missing.
fn optional(run: &mut Run<'_>) {
    for (name, check) in [
        ("scanner under Miri", components::miri()),
        ("vector instructions elsewhere", components::foreign()),
    ] {
        match check {
            Err(missing) => println!("== {name}: optional, left out ({missing})"),
            Ok(command) => {
                let command: Vec<&str> = command.iter().map(String::as_str).collect();
                run.step_of(name, &command, &[]);
            }
        }
    }
}

/// Renders the documentation and uses it as readers do: by its search, and in a browser.
fn site(run: &mut Run<'_>, root: &Path) {
    let folder = target_folder(root).join("site");
    let folder = folder.to_string_lossy();
    run.step("site", "cargo run --quiet --package xtask -- site");
    if !has("node") {
        return run.leave_out("site: search", "node is not installed");
    }
    let search = ["node", "oracle/readers/search.mjs", &folder, "--check"];
    run.step_of("site: search", &search, &[]);
    if !run.oracles || !has("chromium") {
        return run.leave_out(
            "site: browser",
            "chromium or the npm packages are not installed",
        );
    }
    let browser = ["node", "oracle/browser/site.mjs", &folder, "chromium"];
    run.step_of("site: browser", &browser, &[]);
}

/// Runs the clients that are in use, browsers among them, against the binary.
fn clients(run: &mut Run<'_>, binary: &str) {
    if !run.oracles {
        return run.leave_out("browser and clients", "the npm packages are not installed");
    }
    if has("chromium") {
        let command = ["node", "oracle/browser/graphiql.mjs", binary, "chromium"];
        run.step_of("browser: GraphiQL", &command, &[]);
    } else {
        run.leave_out("browser: GraphiQL", "chromium is not installed");
    }
    let chromium: &[&str] = &["chromium"];
    for (name, script, arguments) in [
        ("clients", "oracle/clients/run.mjs", chromium),
        (
            "documents: tools of Apollo and Relay",
            "oracle/documents/run.mjs",
            &[],
        ),
        (
            "answers in parts: graphql 17, clients",
            "oracle/incremental/run.mjs",
            &[],
        ),
    ] {
        let command = [&["node", script, binary], arguments].concat();
        run.step_of(name, &command, &[]);
    }
}
