//! Packages for npm: one with a launcher, and one per platform with the binary. No script runs at installation: npm picks
//! the platform's package by `os`, `cpu` and `libc`.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::{
    entries::{Entry, Stamp, tar, with_folders},
    payload::{NOTICES, Payload},
    product::{DESCRIPTION, LICENCE, NAME, REPOSITORY, SUMMARY, TARGETS, Target, VERSION},
};

/// Finds the platform's package and becomes its program, as far as Node can: signals go to it, and its end is passed on.
const LAUNCHER: &str = r#"#!/usr/bin/env node
"use strict";
const { spawn } = require("node:child_process");

const { platform, arch } = process;
const names = ["", "-musl"].map((libc) => `ogive-${platform}-${arch}${libc}`);

function find() {
  for (const name of names) {
    try {
      return require.resolve(`${name}/ogive`);
    } catch {}
  }
  console.error(`error: no binary of ogive for ${platform} ${arch}: none of ${names.join(", ")} is installed`);
  console.error("  = help: install without --omit=optional, or see docs/install.md for other ways");
  process.exit(1);
}

const child = spawn(find(), process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`error: ogive cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
"#;

/// The package with the launcher, which depends on those of all platforms.
pub(crate) fn launcher(payload: &Payload, stamp: Stamp) -> Result<Vec<u8>> {
    let platforms: Map<String, Value> = TARGETS
        .iter()
        .map(|target| (target.npm_name(), json!(VERSION)))
        .collect();
    let mut manifest = manifest(NAME);
    manifest["bin"] = json!({ NAME: "ogive.js" });
    manifest["optionalDependencies"] = json!(platforms);
    let mut entries = vec![
        Entry::text("package.json", format!("{manifest:#}\n")),
        Entry::text(
            "README.md",
            format!("# Ogive\n\n{SUMMARY}. {DESCRIPTION}\n\nDocumentation: <{REPOSITORY}>\n"),
        ),
        Entry {
            mode: 0o755,
            ..Entry::text("ogive.js", LAUNCHER)
        },
    ];
    // Without the notices of the libraries, which differ by platform: each target writes this package with equal bytes.
    entries.extend(licences(payload).filter(|entry| entry.path != NOTICES));
    package(entries, stamp)
}

/// The package with the binary of a platform.
pub(crate) fn platform(payload: &Payload, target: &Target, stamp: Stamp) -> Result<Vec<u8>> {
    let (os, cpu, libc) = target.npm;
    let mut manifest = manifest(&target.npm_name());
    manifest["os"] = json!([os]);
    manifest["cpu"] = json!([cpu]);
    if let Some(libc) = libc {
        manifest["libc"] = json!([libc]);
    }
    manifest["preferUnplugged"] = json!(true);
    let mut entries = vec![
        Entry::text("package.json", format!("{manifest:#}\n")),
        Entry::program(NAME, &payload.binary),
    ];
    entries.extend(licences(payload));
    package(entries, stamp)
}

fn manifest(name: &str) -> Value {
    json!({
        "name": name,
        "version": VERSION,
        "description": SUMMARY,
        "license": LICENCE,
        "repository": { "type": "git", "url": format!("git+{REPOSITORY}.git") },
        "engines": { "node": ">=18" }
    })
}

fn licences(payload: &Payload) -> impl Iterator<Item = Entry> {
    payload
        .licences
        .iter()
        .map(|(name, text)| Entry::file(*name, text))
}

fn package(entries: Vec<Entry>, stamp: Stamp) -> Result<Vec<u8>> {
    // npm makes the folders itself.
    let mut files = with_folders(&entries);
    files.retain(|entry| !matches!(entry.body, super::entries::Body::Folder));
    Ok(tar(&files, "package/", stamp)?.gzip())
}

#[cfg(test)]
mod tests {
    use super::{super::content::Content, *};

    #[test]
    fn every_target_writes_an_equal_launcher() {
        let launcher = |notices: &str| {
            let mut payload = Payload::small();
            let notices = Content::new(notices.as_bytes());
            payload.licences.push((NOTICES, notices));
            launcher(&payload, Stamp { time: 0, owner: 0 }).unwrap()
        };
        assert!(launcher("of x86-64") == launcher("of AArch64"));
    }

    #[test]
    fn no_package_runs_scripts_and_every_platform_has_a_name() {
        let text = manifest("x").to_string() + LAUNCHER;
        assert!(!text.contains("\"scripts\"") && !text.contains("install\":"));
        let mut names: Vec<String> = TARGETS.iter().map(Target::npm_name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), TARGETS.len());
        // The launcher looks for these names.
        assert!(
            names.contains(&"ogive-linux-x64".to_owned())
                && names.contains(&"ogive-linux-arm64-musl".to_owned())
        );
    }
}
