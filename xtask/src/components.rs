//! Checks that need a component of the Rust toolchain which not every machine has. Without it they are left out, loudly.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, bail};

/// The architecture whose vector instructions no machine of the project has.
const FOREIGN: &str = "aarch64-unknown-linux-gnu";

/// A command, or what is missing for it and how to get that.
type Check = Result<Vec<String>, String>;

/// The scanner's tests under Miri, which knows no vector instructions: the plain bytes that all others are compared with.
pub(crate) fn miri() -> Check {
    // The stable toolchain has no Miri.
    for toolchain in ["", "+nightly "] {
        let command = format!("cargo {toolchain}miri --version");
        if succeeds(&command) {
            return Ok(words(&format!(
                "cargo {toolchain}miri test --package ogive-json --test it"
            )));
        }
    }
    Err(
        "no Miri; `rustup toolchain install nightly --component miri,rust-src` installs it"
            .to_owned(),
    )
}

/// What is compiled for another architecture only, for the compiler to look at; nobody runs it.
pub(crate) fn foreign() -> Check {
    let found = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", FOREIGN])
        .output();
    let folder = found.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if folder.is_ok_and(|folder| !folder.is_empty() && PathBuf::from(folder).is_dir()) {
        return Ok(words(&format!(
            "cargo check --target {FOREIGN} --package ogive-json"
        )));
    }
    Err(format!(
        "no standard library for {FOREIGN}; `rustup target add {FOREIGN}` installs it"
    ))
}

/// Runs one of the checks by itself; an error if it is left out.
pub(crate) fn run(root: &Path, command: Check) -> Result<()> {
    let command = match command {
        Ok(command) => command,
        Err(missing) => bail!("left out: {missing}"),
    };
    println!("== {}", command.join(" "));
    let status = Command::new(&command[0])
        .args(&command[1..])
        .current_dir(root)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        bail!("it failed; its output is above")
    }
}

fn words(command: &str) -> Vec<String> {
    command.split_whitespace().map(str::to_owned).collect()
}

fn succeeds(command: &str) -> bool {
    let command = words(command);
    Command::new(&command[0])
        .args(&command[1..])
        .output()
        .is_ok_and(|output| output.status.success())
}
