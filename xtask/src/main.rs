//! Repository tasks, run as `cargo xtask TASK`.
//!
//! - `tidy`: rules of the repository that no compiler knows ([`tidy`]).
//! - `changelog`: a release's section of `CHANGELOG.md` from the fragments ([`changelog`]).
//! - `licences`: what is depended on is allowed ([`licences`]).
//! - `test`: sets up and runs everything a change must pass ([`mod@test`]); what continuous integration calls.
//! - `prove`: runs the long forms of the tests ([`prove`]).
//! - `release` and `verify-release`: what users download, and whether it is that ([`release`]).
//! - `site`: the documentation as static pages ([`site`]).
//! - `miri` and `foreign`: two of those that need more than a stable toolchain ([`components`]).
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool speaks to its terminal"
)]

mod changelog;
mod code;
mod components;
mod lane;
mod layers;
mod left_out;
mod licences;
mod manifest;
mod map;
mod programs;
mod prove;
mod release;
mod run;
mod silent;
mod site;
mod size;
mod test;
mod tidy;

use std::{path::PathBuf, process::ExitCode};

const USAGE: &str = "\
usage: cargo xtask TASK

tasks:
  tidy                 check layers, purity, cycles, names, sizes, module docs
  test [--quick]       set up and run all checks and tests; --quick leaves out oracles, fuzzing and the browser
  prove [--list] [NAME..]
                       run the long forms of the tests, or those whose name contains NAME; resumes at the same commit
  changelog [VERSION]  print what the fragments of changes/ say, or move it into CHANGELOG.md as a release
  release [--binary PATH] [--target TRIPLE] [--output FOLDER] [--system FOLDER] [--index]
                       build the binary, or take the one at PATH, and write every artefact of a release;
                       --index only writes what covers all targets: formula, flake, sums, signature
  verify-release FOLDER [--key PUBLIC.pem]
                       check signature, sums, SBOM and provenance of a folder of artefacts
  site [--output FOLDER]
                       render the documentation to static pages, and check its links
  licences             check licences and sources of all dependencies against deny.toml
  miri                 run the JSON scanner's tests under Miri, if it is installed
  foreign              type-check the vector instructions of another architecture, if its library is installed
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let root = root();
    let done = match args.as_slice() {
        ["tidy"] => tidy::run(&root),
        ["changelog"] => changelog::run(&root, None),
        ["changelog", version] => changelog::run(&root, Some(version)),
        ["licences"] => licences::run(&root),
        ["miri"] => components::run(&root, components::miri()),
        ["foreign"] => components::run(&root, components::foreign()),
        ["prove", names @ ..] => prove::run(&root, names),
        ["release", options @ ..] => release::run(&root, options),
        ["verify-release", options @ ..] => release::verify(options),
        ["site", options @ ..] => site::run(&root, options),
        ["test", options @ ..] => test::run(&root, options),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace root: the folder above this package.
fn root() -> PathBuf {
    let mut path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    path.pop();
    path
}
