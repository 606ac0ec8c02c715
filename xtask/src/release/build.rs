//! Builds the binary so that a second build elsewhere gives equal bytes: no path of this machine is in it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::product::{FEATURES, GLIBC, NAME, Target};
use crate::run::target_folder;

/// A command that builds the binary.
pub(crate) struct Recipe {
    /// The command and its arguments.
    pub(crate) command: Vec<String>,
    /// Names and values.
    variables: Vec<(&'static str, String)>,
    /// Where the binary will be.
    binary: PathBuf,
}

/// What is known of the sources.
#[derive(Clone)]
pub(crate) struct Sources {
    /// Empty outside a checkout.
    pub(crate) commit: String,
    /// Seconds since 1970: `SOURCE_DATE_EPOCH`, else the time of the commit.
    pub(crate) time: u64,
}

impl Sources {
    /// Asks the environment, then git.
    pub(crate) fn read(root: &Path) -> Result<Sources> {
        let given = std::env::var("SOURCE_DATE_EPOCH").ok();
        let time = given.or_else(|| git(root, &["log", "-1", "--format=%ct"]));
        let time = time.context("no time: set SOURCE_DATE_EPOCH, or run in a git checkout")?;
        Ok(Sources {
            commit: git(root, &["rev-parse", "HEAD"]).unwrap_or_default(),
            time: time
                .parse()
                .context("SOURCE_DATE_EPOCH is not a number of seconds")?,
        })
    }
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

impl Recipe {
    /// The recipe for a target. Where `cargo zigbuild` is installed, it links with the lowest glibc of a release.
    pub(crate) fn new(root: &Path, target: &Target, sources: &Sources) -> Result<Recipe> {
        let zig = target.is_glibc() && succeeds(&["cargo", "zigbuild", "--version"]);
        let triple = target.triple;
        let (subcommand, target) = if zig {
            ("zigbuild", format!("{triple}.{GLIBC}"))
        } else {
            ("build", triple.to_owned())
        };
        let folder = target_folder(root);
        let command = [
            "cargo",
            subcommand,
            "--locked",
            "--profile",
            "dist",
            "--package",
            "ogive-cli",
            "--features",
            FEATURES,
            "--target",
            &target,
        ];
        let home = std::env::var("CARGO_HOME").map(PathBuf::from).ok();
        let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
        let home = home.context("neither CARGO_HOME nor HOME is set")?;
        // The last one that fits wins.
        let places = [(root, "/ogive"), (&folder, "/target"), (&home, "/cargo")];
        let text = |path: &Path| -> Result<String> {
            let text = path.to_str().context("a folder whose name is not UTF-8")?;
            if text.contains(' ') {
                bail!("`{text}`: C compilers take no folder with a space; build elsewhere");
            }
            Ok(text.to_owned())
        };
        let (mut rust, mut c) = (Vec::new(), Vec::new());
        for (path, name) in places {
            let path = text(path)?;
            rust.push(format!("--remap-path-prefix={path}={name}"));
            c.push(format!("-ffile-prefix-map={path}={name}"));
        }
        Ok(Recipe {
            command: command.map(str::to_owned).to_vec(),
            variables: vec![
                ("CARGO_ENCODED_RUSTFLAGS", rust.join("\x1f")),
                ("CFLAGS", c.join(" ")),
                ("CARGO_INCREMENTAL", "0".to_owned()),
                ("SOURCE_DATE_EPOCH", sources.time.to_string()),
                ("OGIVE_COMMIT", sources.commit.clone()),
            ],
            binary: folder.join(triple).join("dist").join(NAME),
        })
    }

    /// Builds the binary, and returns where it is.
    pub(crate) fn run(&self, root: &Path) -> Result<PathBuf> {
        println!("== {}", self.command.join(" "));
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).current_dir(root);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION");
        if !command.status().context("cargo")?.success() {
            bail!("the binary could not be built; the compiler's messages are above");
        }
        Ok(self.binary.clone())
    }
}

/// Why this machine cannot build for a target; `None` if it can.
pub(crate) fn missing(target: &Target) -> Option<String> {
    let triple = target.triple;
    if triple.contains("apple") && !cfg!(target_os = "macos") {
        return Some("Apple's libraries are on macOS only".to_owned());
    }
    let found = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", triple])
        .output();
    let folder = found.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if !folder.is_ok_and(|folder| !folder.is_empty() && Path::new(&folder).is_dir()) {
        return Some(format!(
            "no standard library for it: `rustup target add {triple}` installs one"
        ));
    }
    None
}

/// `rustc --version`.
pub(crate) fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

fn succeeds(command: &[&str]) -> bool {
    let output = Command::new(command[0]).args(&command[1..]).output();
    output.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_folder_of_this_machine_is_left_in_the_binary() {
        let sources = Sources {
            commit: "abc".to_owned(),
            time: 1,
        };
        let target = Target::find("x86_64-unknown-linux-musl").unwrap();
        let recipe = Recipe::new(Path::new("/some/checkout"), target, &sources).unwrap();
        let value = |name: &str| {
            let (_, value) = recipe
                .variables
                .iter()
                .find(|(known, _)| *known == name)
                .unwrap();
            value.as_str()
        };
        assert!(
            value("CARGO_ENCODED_RUSTFLAGS")
                .starts_with("--remap-path-prefix=/some/checkout=/ogive\x1f")
        );
        assert!(value("CFLAGS").contains("-ffile-prefix-map=/some/checkout=/ogive"));
        assert_eq!(
            (value("SOURCE_DATE_EPOCH"), value("OGIVE_COMMIT")),
            ("1", "abc")
        );
        assert!(Recipe::new(Path::new("/a b"), target, &sources).is_err());
    }
}
