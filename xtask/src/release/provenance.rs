//! Where the artefacts come from: an in-toto statement (v1) with the predicate SLSA provenance v1.

use serde_json::{Value, json};

use super::product::{FEATURES, REPOSITORY};

/// How a binary came to be.
pub(crate) struct Build {
    pub(crate) target: &'static str,
    /// The commit of the sources; empty if it is not known.
    pub(crate) commit: String,
    /// The command that built the binary; `None` if the release was given a binary, about which it knows nothing.
    pub(crate) command: Option<Vec<String>>,
    /// `rustc --version`.
    pub(crate) compiler: String,
    /// SHA-256 of `Cargo.lock`.
    pub(crate) lock: String,
    /// SOURCE_DATE_EPOCH, in seconds since 1970.
    pub(crate) time: u64,
    /// Files of this machine that are in artefacts: path and SHA-256.
    pub(crate) materials: Vec<(String, String)>,
}

/// The statement about files: name and SHA-256 of each.
pub(crate) fn write(build: &Build, files: &[(String, String)]) -> Value {
    let subjects: Vec<Value> = files
        .iter()
        .map(|(name, sha256)| json!({ "name": name, "digest": { "sha256": sha256 } }))
        .collect();
    let mut dependencies = vec![
        json!({ "uri": format!("git+{REPOSITORY}"), "digest": { "gitCommit": build.commit } }),
        json!({ "uri": "Cargo.lock", "digest": { "sha256": build.lock } }),
    ];
    dependencies.extend(build.materials.iter().map(
        |(path, sha256)| json!({ "uri": format!("file://{path}"), "digest": { "sha256": sha256 } }),
    ));
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": format!("{REPOSITORY}/blob/main/docs/install.md#build-a-release"),
                "externalParameters": {
                    "target": build.target,
                    "features": FEATURES,
                    "sourceDateEpoch": build.time.to_string(),
                    "command": build.command.clone().map_or_else(
                        || json!("none: the binary was given with --binary"),
                        |command| json!(command)
                    )
                },
                "internalParameters": { "compiler": build.compiler },
                "resolvedDependencies": dependencies
            },
            "runDetails": { "builder": { "id": format!("{REPOSITORY}/blob/main/xtask/src/release/mod.rs") } }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_binary_is_not_said_to_be_built() {
        let build = |command: Option<Vec<String>>| Build {
            target: "x86_64-unknown-linux-gnu",
            commit: "abc".to_owned(),
            command,
            compiler: "rustc 1".to_owned(),
            lock: "00".to_owned(),
            time: 1,
            materials: vec![("/lib/libc.so.6".to_owned(), "11".to_owned())],
        };
        let files = [("a.tar.gz".to_owned(), "22".to_owned())];
        let command = "/predicate/buildDefinition/externalParameters/command";
        let given = write(&build(None), &files);
        assert!(
            given
                .pointer(command)
                .unwrap()
                .as_str()
                .unwrap()
                .starts_with("none")
        );
        assert_eq!(given.pointer("/subject/0/digest/sha256").unwrap(), "22");
        let built = write(&build(Some(vec!["cargo".to_owned()])), &files);
        assert_eq!(built.pointer(command).unwrap(), &json!(["cargo"]));
        let dependencies = built
            .pointer("/predicate/buildDefinition/resolvedDependencies")
            .unwrap();
        assert_eq!(dependencies.as_array().unwrap().len(), 3);
    }
}
