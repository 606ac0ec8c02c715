//! Test programs that cargo builds, so that they are built once and run by themselves.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The unit tests of a crate, or one file of its `tests` folder.
pub(crate) struct TestProgram {
    /// The folder of the crate and the name of the target: `gateway it`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The folder of the crate, where `cargo test` would run it.
    pub(crate) folder: PathBuf,
    /// The name of the crate as its manifest has it.
    pub(crate) package: String,
}

impl TestProgram {
    /// The variables that `cargo test` sets and tests read.
    pub(crate) fn variables(&self) -> [(&str, &str); 1] {
        [("CARGO_PKG_NAME", &self.package)]
    }
}

/// Builds what `cargo test` with `options` would run. Documentation tests are not among them.
pub(crate) fn build(root: &Path, options: &[&str]) -> Result<Vec<TestProgram>> {
    let output = Command::new(env!("CARGO"))
        .arg("test")
        .args(options)
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo test --no-run")?;
    if !output.status.success() {
        bail!("the tests do not compile; the messages are above");
    }
    let mut programs = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        programs.extend(program(&serde_json::from_str(line)?));
    }
    // The order in which cargo finished them depends on the machine.
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    if programs.is_empty() {
        bail!("cargo built no test program");
    }
    Ok(programs)
}

/// The test program that a message of cargo is about.
fn program(message: &Value) -> Option<TestProgram> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let path = message["executable"].as_str()?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let crate_name = folder.file_name()?.to_string_lossy();
    // `path+file:///…/crates/json#ogive-json@0.1.0`, or without a name where the folder has it.
    let id = message["package_id"].as_str()?.rsplit('#').next()?;
    let package = id.split_once('@').map_or(&*crate_name, |(name, _)| name);
    Some(TestProgram {
        name: format!("{crate_name} {}", message["target"]["name"].as_str()?),
        path: path.into(),
        folder: folder.to_owned(),
        package: package.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_programs_are_run() {
        let message = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///r/crates/json#ogive-json@0.1.0","manifest_path":"/r/crates/json/Cargo.toml",
                "target":{{"name":"it"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let read = |text: &str| program(&serde_json::from_str(text).unwrap());
        let found = read(&message(true, r#""/r/target/debug/deps/it-1""#)).unwrap();
        assert_eq!(found.name, "json it");
        assert_eq!(found.folder, Path::new("/r/crates/json"));
        assert_eq!(found.package, "ogive-json");
        assert!(read(&message(false, r#""/r/target/debug/ogive""#)).is_none());
        assert!(read(&message(true, "null")).is_none());
        assert!(read(r#"{"reason":"build-finished","success":true}"#).is_none());
    }
}
