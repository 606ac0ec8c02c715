//! What the binary is made of: the crates that are compiled into it, and the C and assembly inside them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::product::FEATURES;

/// A crate.
#[derive(Debug, Clone)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) version: String,
    /// SPDX expression, as the crate says it.
    pub(crate) licence: String,
    /// SHA-256 of what the registry delivers; `None` for crates of this repository.
    pub(crate) checksum: Option<String>,
    /// Its sources on this machine.
    pub(crate) folder: PathBuf,
    /// Parts of it are in the binary, rather than only used to build it.
    pub(crate) is_shipped: bool,
    /// Crates that it depends on.
    pub(crate) depends: BTreeSet<Id>,
}

/// Name and version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// A library in C or assembly that a crate brings along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignPart {
    /// The crate that contains it.
    pub(crate) inside: Id,
    pub(crate) name: &'static str,
    pub(crate) version: String,
    pub(crate) licence: &'static str,
    /// Package URL without the version.
    pub(crate) purl: &'static str,
}

/// Crates with C or assembly for unix, and what that is. A shipped crate with such sources that is not in this list
/// fails the release.
const FOREIGN: &[Foreign] = &[
    Foreign {
        inside: "libmimalloc-sys",
        name: "mimalloc",
        licence: "MIT",
        purl: "pkg:github/microsoft/mimalloc",
        version: Version::Define("c_src/mimalloc/v3/include/mimalloc.h", "MI_MALLOC_VERSION"),
    },
    Foreign {
        inside: "zstd-sys",
        name: "zstd",
        licence: "BSD-3-Clause",
        purl: "pkg:github/facebook/zstd",
        version: Version::AfterPlus("zstd."),
    },
    Foreign {
        inside: "ring",
        name: "BoringSSL (parts)",
        licence: "ISC AND Apache-2.0",
        purl: "pkg:github/google/boringssl",
        version: Version::OfCrate,
    },
    Foreign {
        inside: "psm",
        name: "psm assembly",
        licence: "MIT OR Apache-2.0",
        purl: "pkg:github/rust-lang/stacker",
        version: Version::OfCrate,
    },
    Foreign {
        inside: "wasmtime",
        name: "wasmtime helpers.c",
        licence: "Apache-2.0 WITH LLVM-exception",
        purl: "pkg:github/bytecodealliance/wasmtime",
        version: Version::OfCrate,
    },
];

/// Crates whose C files are not compiled for unix: examples, and parts for Windows.
const FOREIGN_ELSEWHERE: &[&str] = &["walkdir", "stacker"];

struct Foreign {
    inside: &'static str,
    name: &'static str,
    licence: &'static str,
    purl: &'static str,
    version: Version,
}

/// Where the version of a foreign part stands.
enum Version {
    /// In the crate's version behind `+` and this prefix.
    AfterPlus(&'static str),
    /// In a `#define` of a header: a number with two digits for the minor version and two for the patch.
    Define(&'static str, &'static str),
    /// It is released with the crate only.
    OfCrate,
}

/// Crates of the binary for a target, sorted by name and version.
pub(crate) fn read(root: &Path, target: &str) -> Result<Vec<Crate>> {
    let shipped = tree(root, target, "normal,no-proc-macro")?;
    let all = tree(root, target, "normal,build")?;
    let checksums = checksums(&fs::read_to_string(root.join("Cargo.lock")).context("Cargo.lock")?);
    let metadata = cargo(
        root,
        &[
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            target,
        ],
    )?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata")?;
    let mut out = Vec::new();
    for package in metadata["packages"].as_array().context("no packages")? {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let id = Id {
            name: text("name"),
            version: text("version"),
        };
        let Some(depends) = all.get(&id).or_else(|| shipped.get(&id)) else {
            continue;
        };
        let folder = PathBuf::from(text("manifest_path"));
        out.push(Crate {
            licence: text("license"),
            checksum: checksums.get(&id).cloned(),
            folder: folder.parent().unwrap_or(&folder).to_owned(),
            is_shipped: shipped.contains_key(&id),
            depends: depends.clone(),
            name: id.name,
            version: id.version,
        });
    }
    out.sort_by_key(Crate::id);
    Ok(out)
}

impl Crate {
    /// Name and version.
    pub(crate) fn id(&self) -> Id {
        Id {
            name: self.name.clone(),
            version: self.version.clone(),
        }
    }
}

/// Crates and what each depends on, by the edges that are followed.
fn tree(root: &Path, target: &str, edges: &str) -> Result<BTreeMap<Id, BTreeSet<Id>>> {
    let text = cargo(
        root,
        &[
            "tree",
            "--locked",
            "--package",
            "ogive-cli",
            "--features",
            FEATURES,
            "--target",
            target,
            "--edges",
            edges,
            "--prefix",
            "depth",
            "--format",
            "\t{p}",
        ],
    )?;
    parse_tree(&text)
}

/// Reads lines such as `2\tserde v1.0.0 (*)`: depth, name, version.
fn parse_tree(text: &str) -> Result<BTreeMap<Id, BTreeSet<Id>>> {
    let mut out: BTreeMap<Id, BTreeSet<Id>> = BTreeMap::new();
    let mut above: Vec<Id> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let words = line.split_once('\t').and_then(|(depth, package)| {
            let mut words = package.split(' ');
            let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
            Some((depth.parse::<usize>().ok()?, name, version))
        });
        let (depth, name, version) = words.with_context(|| format!("cargo tree: `{line}`"))?;
        let id = Id {
            name: name.to_owned(),
            version: version.to_owned(),
        };
        above.truncate(depth);
        if let Some(parent) = above.last() {
            out.entry(parent.clone()).or_default().insert(id.clone());
        }
        out.entry(id.clone()).or_default();
        above.push(id);
    }
    Ok(out)
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(root)
        // Would unify the features of what is released with those of tests.
        .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
        .output()
        .context("cargo")?;
    if !output.status.success() {
        bail!(
            "cargo {}: {}",
            arguments[0],
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Checksums of a lock file.
fn checksums(lock: &str) -> BTreeMap<Id, String> {
    let packages = lock.split("[[package]]").skip(1);
    let checksum = |package: &str| {
        let value = |key: &str| {
            let mut lines = package.lines();
            let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
            value.strip_suffix('"').map(str::to_owned)
        };
        let id = Id {
            name: value("name")?,
            version: value("version")?,
        };
        Some((id, value("checksum")?))
    };
    packages.filter_map(checksum).collect()
}

/// The foreign parts of shipped crates.
pub(crate) fn foreign_parts(crates: &[Crate]) -> Result<Vec<ForeignPart>> {
    let mut out = Vec::new();
    for krate in crates
        .iter()
        .filter(|krate| krate.is_shipped && krate.checksum.is_some())
    {
        let name = krate.name.as_str();
        if FOREIGN_ELSEWHERE.contains(&name) || !has_foreign_sources(&krate.folder)? {
            continue;
        }
        let Some(part) = FOREIGN.iter().find(|part| part.inside == name) else {
            bail!(
                "{name} {} contains C or assembly that the SBOM does not list: add the crate to `FOREIGN`",
                krate.version
            );
        };
        out.push(ForeignPart {
            inside: krate.id(),
            name: part.name,
            version: part.version.read(krate)?,
            licence: part.licence,
            purl: part.purl,
        });
    }
    Ok(out)
}

impl Version {
    fn read(&self, krate: &Crate) -> Result<String> {
        match self {
            Version::OfCrate => Ok(krate.version.clone()),
            Version::AfterPlus(prefix) => {
                let version = krate
                    .version
                    .split_once('+')
                    .and_then(|(_, rest)| rest.strip_prefix(prefix));
                version
                    .map(str::to_owned)
                    .with_context(|| format!("no `+{prefix}` in {}", krate.version))
            }
            Version::Define(header, name) => {
                let text = fs::read_to_string(krate.folder.join(header))
                    .with_context(|| (*header).to_owned())?;
                defined(&text, name).with_context(|| format!("{header} does not define {name}"))
            }
        }
    }
}

/// The version in `#define NAME 30302`, which is 3.3.2.
fn defined(header: &str, name: &str) -> Option<String> {
    let mut lines = header.lines();
    let value = lines.find_map(|line| {
        line.strip_prefix("#define ")?
            .trim_start()
            .strip_prefix(name)
    })?;
    let number: u32 = value.split_whitespace().next()?.parse().ok()?;
    Some(format!(
        "{}.{}.{}",
        number / 10_000,
        number / 100 % 100,
        number % 100
    ))
}

fn has_foreign_sources(folder: &Path) -> Result<bool> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let path = entry.path();
        let is_foreign = || {
            path.extension()
                .is_some_and(|e| ["c", "cc", "cpp", "s", "S", "asm"].iter().any(|f| e == *f))
        };
        if entry.file_type()?.is_dir() && has_foreign_sources(&path)? || is_foreign() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_read_from_depths() {
        let text = "0\ta v1.0.0 (/x)\n1\tb v0.1.0\n2\tc v2.0.0+zstd.1 (proc-macro)\n1\tc v2.0.0+zstd.1 (*)\n";
        let tree = parse_tree(text).unwrap();
        let edges = |name: &str| -> Vec<&str> {
            let (_, found) = tree.iter().find(|(id, _)| id.name == name).unwrap();
            found.iter().map(|id| id.name.as_str()).collect()
        };
        assert_eq!(
            (edges("a"), edges("b"), edges("c")),
            (vec!["b", "c"], vec!["c"], vec![])
        );
        assert!(parse_tree("what").is_err());
    }

    #[test]
    fn a_version_is_read_from_a_header() {
        let header = "#pragma once\n#define MI_MALLOC_VERSION 30302   // major\n";
        assert_eq!(defined(header, "MI_MALLOC_VERSION").unwrap(), "3.3.2");
        assert_eq!(defined(header, "OTHER"), None);
    }

    /// The C of the real dependencies, with versions that are not the crates'.
    #[test]
    fn the_c_parts_of_the_binary_are_found() {
        let crates = read(&crate::root(), "x86_64-unknown-linux-gnu").unwrap();
        let parts = foreign_parts(&crates).unwrap();
        let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
        for name in ["mimalloc", "zstd", "BoringSSL (parts)"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let version = |name: &str| &parts.iter().find(|part| part.name == name).unwrap().version;
        assert!(version("zstd").starts_with("1."), "{}", version("zstd"));
        assert!(
            version("mimalloc").starts_with(['2', '3']),
            "{}",
            version("mimalloc")
        );
        let shipped = |name: &str| {
            crates
                .iter()
                .any(|krate| krate.name == name && krate.is_shipped)
        };
        assert!(shipped("tokio") && shipped("ogive-cedar") && !shipped("cc") && !shipped("syn"));
    }
}
