//! Getting gateways and tools from package registries, into a cache folder outside the repository's files.
//!
//! What no registry offers is named by the user (`--binary NAME=PATH`) or said to be missing, never left out silently.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;

use crate::{
    Error, Result,
    model::{Gateway, Install},
    process,
};

/// Where things are installed, and what the user brought along.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The folder, `target/bench` unless said otherwise.
    pub folder: PathBuf,
    /// This program.
    pub ogive: PathBuf,
    /// Programs named by the user.
    pub binaries: BTreeMap<String, PathBuf>,
}

/// Something installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Its folder; for npm the one with `node_modules`.
    pub folder: PathBuf,
    /// Its program, if it is one.
    pub binary: Option<PathBuf>,
}

impl Cache {
    /// Where something is installed; the error says what to do.
    pub fn find(&self, gateway: &Gateway) -> Result<Installed> {
        let missing = |message: String| Error::Install {
            name: gateway.name.clone(),
            message,
        };
        if let Some(path) = self.binaries.get(&gateway.name) {
            if !path.is_file() {
                return Err(missing(format!("{} is no file", path.display())));
            }
            return Ok(Installed {
                folder: self.place(gateway),
                binary: Some(path.clone()),
            });
        }
        let place = self.place(gateway);
        let program = |path: PathBuf, how: String| {
            if path.is_file() {
                Ok(Installed {
                    folder: place.clone(),
                    binary: Some(path),
                })
            } else {
                Err(missing(how))
            }
        };
        let how = format!("run `ogive bench install {}`", gateway.name);
        match &gateway.spec.install {
            Install::Ogive {} => program(self.ogive.clone(), "this program is gone".into()),
            Install::Npm { .. } => {
                if place.join(DONE).is_file() {
                    Ok(Installed {
                        folder: place,
                        binary: None,
                    })
                } else {
                    Err(missing(how))
                }
            }
            Install::Cargo { binary, .. } | Install::Go { binary, .. } => {
                program(place.join("bin").join(binary), how)
            }
            Install::Apt { binary, .. } => match on_path(binary) {
                Some(path) => program(path, how),
                None => Err(missing(how)),
            },
            Install::Binary { hint } => Err(missing(format!(
                "no registry offers it; {hint}, then name it with `--binary {}=PATH`",
                gateway.name
            ))),
        }
    }

    /// Installs something; what is there already stays.
    pub fn install(&self, gateway: &Gateway) -> Result<Installed> {
        if let Ok(found) = self.find(gateway) {
            return Ok(found);
        }
        let place = self.place(gateway);
        fs::create_dir_all(&place).map_err(Error::file(&place))?;
        let run = |command: &[&str], env: &BTreeMap<String, String>| {
            let command: Vec<String> = command.iter().map(|s| (*s).to_owned()).collect();
            process::output(&command, &place, env).map_err(|error| Error::Install {
                name: gateway.name.clone(),
                message: error.to_string(),
            })
        };
        match &gateway.spec.install {
            Install::Ogive {} | Install::Binary { .. } => {}
            Install::Npm {
                packages,
                overrides,
            } => {
                let path = place.join("package.json");
                let text = package_json(packages, overrides);
                fs::write(&path, text).map_err(Error::file(&path))?;
                run(
                    &[
                        "npm",
                        "install",
                        "--no-audit",
                        "--no-fund",
                        "--loglevel=error",
                    ],
                    &BTreeMap::new(),
                )?;
                let done = place.join(DONE);
                fs::write(&done, "").map_err(Error::file(&done))?;
            }
            Install::Cargo {
                package,
                version,
                binary,
                features,
                env,
                ..
            } => {
                let mut env = env.clone();
                let target = self.folder.join("cargo-target");
                env.insert("CARGO_TARGET_DIR".into(), target.display().to_string());
                let root = place.display().to_string();
                let features = features.join(",");
                let mut command = vec![
                    "cargo",
                    "install",
                    package,
                    "--version",
                    version,
                    "--locked",
                    "--bin",
                    binary,
                ];
                command.extend(["--root", &root]);
                if !features.is_empty() {
                    command.extend(["--features", &features]);
                }
                run(&command, &env)?;
            }
            Install::Go { module, .. } => {
                let bin = place.join("bin").display().to_string();
                run(
                    &["go", "install", module],
                    &BTreeMap::from([("GOBIN".into(), bin)]),
                )?;
            }
            Install::Apt { package, .. } => {
                let env = BTreeMap::from([("DEBIAN_FRONTEND".into(), "noninteractive".into())]);
                run(
                    &[
                        "apt-get",
                        "install",
                        "-y",
                        "--no-install-recommends",
                        package,
                    ],
                    &env,
                )?;
            }
        }
        self.find(gateway)
    }

    /// The version of what is installed, as it says it itself.
    pub fn version(&self, gateway: &Gateway, installed: &Installed) -> String {
        let mut parts = Vec::new();
        for package in &gateway.spec.version.npm {
            let path = installed
                .folder
                .join("node_modules")
                .join(package)
                .join("package.json");
            let text = fs::read_to_string(path).unwrap_or_default();
            let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            parts.push(format!(
                "{package} {}",
                json["version"].as_str().unwrap_or("?")
            ));
        }
        let command = &gateway.spec.version.command;
        if !command.is_empty() {
            let binary = installed
                .binary
                .as_ref()
                .map_or(String::new(), |b| b.display().to_string());
            let folder = installed.folder.display().to_string();
            let filled: Vec<String> = command
                .iter()
                .map(|c| c.replace("{binary}", &binary).replace("{install}", &folder))
                .collect();
            let said =
                process::output(&filled, Path::new("/"), &BTreeMap::new()).unwrap_or_default();
            parts.extend(
                said.lines()
                    .map(str::trim)
                    .find(|l| !l.is_empty())
                    .map(str::to_owned),
            );
        }
        parts.join(", ")
    }

    fn place(&self, gateway: &Gateway) -> PathBuf {
        self.folder.join("installed").join(&gateway.name)
    }
}

/// Says that npm has finished.
const DONE: &str = ".installed";

fn package_json(packages: &[String], overrides: &BTreeMap<String, String>) -> String {
    let dependencies: BTreeMap<&str, &str> = packages
        .iter()
        .filter_map(|package| {
            package
                .rsplit_once('@')
                .filter(|(name, _)| !name.is_empty())
        })
        .collect();
    let json = json!({
        "private": true,
        "type": "module",
        "dependencies": dependencies,
        "overrides": overrides,
    });
    format!("{json:#}\n")
}

fn on_path(binary: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // Where Debian puts servers, which is not on everybody's path.
    folders.push("/usr/sbin".into());
    folders
        .into_iter()
        .map(|folder| folder.join(binary))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_keep_their_scopes() {
        let text = package_json(
            &["@scope/name@1.2.3".into(), "plain@4.0.0".into()],
            &BTreeMap::new(),
        );
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["dependencies"]["@scope/name"], "1.2.3");
        assert_eq!(json["dependencies"]["plain"], "4.0.0");
    }
}
