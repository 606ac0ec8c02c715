//! `cargo xtask release`: every artefact of a release, from one manifest ([`product`]).
//!
//! The artefacts of a target are written first: archive, image, packages, SBOM, provenance. The index over all targets
//! follows: Homebrew formula, nix flake, sums, signature. Equal sources give equal bytes, in any folder and at any time.

mod build;
mod content;
mod crates;
mod deb;
mod elf;
mod entries;
mod image;
mod notices;
mod npm;
mod payload;
mod product;
mod provenance;
mod recipes;
mod rpm;
mod sbom;
mod signature;
#[cfg(test)]
mod tests;
mod verify;
mod wheel;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

pub(crate) use self::product::REPOSITORY;
use self::{
    build::{Recipe, Sources},
    content::sha256,
    elf::{Glibc, Linkage},
    entries::{Stamp, tar, with_folders},
    payload::Payload,
    product::{GLIBC, NAME, TARGETS, Target, VERSION},
    provenance::Build,
    recipes::Archive,
};
use crate::run::target_folder;

/// The environment variable with the path of the private key.
const KEY: &str = "OGIVE_RELEASE_KEY";

/// Most bytes of the archive.
const ARCHIVE_MAX: usize = 22_000_000;
/// Most bytes of the compressed layers of the image.
const IMAGE_MAX: usize = 27_000_000;

/// What the command line asks for.
struct Options {
    target: &'static Target,
    /// A binary that is built already.
    binary: Option<PathBuf>,
    /// The folder whose libraries and authorities are in the image.
    system: PathBuf,
    /// Only write what covers all targets.
    index_only: bool,
    /// The folder of the artefacts.
    output: PathBuf,
}

/// Builds or takes the binary, and writes every artefact that this machine can make.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let options = Options::read(root, arguments)?;
    let sources = Sources::read(root)?;
    fs::create_dir_all(&options.output).with_context(|| options.output.display().to_string())?;
    if !options.index_only {
        write_target(root, &options, &sources)?;
    }
    write_index(&options.output)?;
    println!("\n{}", options.output.display());
    print_others(&options);
    Ok(())
}

/// `cargo xtask verify-release FOLDER [--key PUBLIC.pem]`.
pub(crate) fn verify(arguments: &[&str]) -> Result<()> {
    match arguments {
        [folder] => verify::run(Path::new(folder), None),
        [folder, "--key", key] => {
            let key = fs::read_to_string(key).with_context(|| (*key).to_owned())?;
            verify::run(Path::new(folder), Some(&key))
        }
        _ => bail!("usage: cargo xtask verify-release FOLDER [--key PUBLIC.pem]"),
    }
}

impl Options {
    fn read(root: &Path, arguments: &[&str]) -> Result<Options> {
        let native = TARGETS
            .iter()
            .find(|target| is_native(target))
            .context("no release for this machine")?;
        let mut options = Options {
            target: native,
            binary: None,
            system: PathBuf::from("/"),
            index_only: false,
            output: target_folder(root).join("release-artefacts").join(VERSION),
        };
        let mut rest = arguments;
        loop {
            rest = match rest {
                [] => return Ok(options),
                ["--index", rest @ ..] => {
                    options.index_only = true;
                    rest
                }
                ["--binary", path, rest @ ..] => {
                    options.binary = Some(PathBuf::from(path));
                    rest
                }
                ["--system", path, rest @ ..] => {
                    options.system = PathBuf::from(path);
                    rest
                }
                ["--output", path, rest @ ..] => {
                    options.output = PathBuf::from(path);
                    rest
                }
                ["--target", triple, rest @ ..] => {
                    let names = TARGETS.map(|target| target.triple).join(", ");
                    options.target = Target::find(triple)
                        .with_context(|| format!("`{triple}` is none of {names}"))?;
                    rest
                }
                [option, ..] => bail!(
                    "unknown option `{option}`: --binary PATH, --target TRIPLE, --system FOLDER, --output FOLDER, --index"
                ),
            }
        }
    }
}

/// Whether a program for the target is one for this machine, and the usual one.
fn is_native(target: &Target) -> bool {
    let [cpu, os] = [std::env::consts::ARCH, std::env::consts::OS];
    let os = if os == "macos" { "darwin" } else { "linux-gnu" };
    target.triple.starts_with(cpu) && target.triple.ends_with(os)
}

/// The artefacts of one target, and what is needed to write them.
struct Artefacts<'a> {
    output: &'a Path,
    /// Name and SHA-256 of the files that are written.
    files: Vec<(String, String)>,
}

impl Artefacts<'_> {
    fn write(&mut self, name: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
        let name = name.as_ref().to_string_lossy().into_owned();
        fs::write(self.output.join(&name), bytes).with_context(|| name.clone())?;
        println!("{:>12}  {name}", bytes.len());
        self.files.push((name, sha256(bytes)));
        Ok(())
    }
}

fn write_target(root: &Path, options: &Options, sources: &Sources) -> Result<()> {
    let target = options.target;
    let recipe = Recipe::new(root, target, sources)?;
    let (binary, command) = match &options.binary {
        Some(binary) => (binary.clone(), None),
        None => (recipe.run(root)?, Some(recipe.command)),
    };
    let crates = crates::read(root, target.triple)?;
    let payload = Payload::collect(root, &binary, notices::write(root, &crates)?)?;
    let linkage = inspect(payload.binary.plain(), target)?;
    let lock = fs::read(root.join("Cargo.lock")).context("Cargo.lock")?;
    let mut build = Build {
        target: target.triple,
        commit: sources.commit.clone(),
        command,
        compiler: build::compiler(),
        lock: sha256(&lock),
        time: sources.time,
        materials: Vec::new(),
    };
    let parts = crates::foreign_parts(&crates)?;
    let sum = sha256(payload.binary.plain());
    let bom = sbom::write(&crates, &parts, target.triple, &sum, &time(sources.time));
    let mut artefacts = Artefacts {
        output: &options.output,
        files: Vec::new(),
    };
    artefacts.write(
        format!("{}.cdx.json", target.stem()),
        format!("{bom:#}\n").as_bytes(),
    )?;
    write_packages(&mut artefacts, &payload, options, &linkage, &mut build)?;
    let statement = provenance::write(&build, &artefacts.files);
    artefacts.write(
        format!("{}.provenance.json", target.stem()),
        format!("{statement:#}\n").as_bytes(),
    )
}

/// Reads what the binary needs, and reports the lowest glibc that it starts with.
fn inspect(binary: &[u8], target: &Target) -> Result<Linkage> {
    let Some(machine) = target.machine else {
        return Ok(Linkage::default());
    };
    let linkage = elf::read(binary)?;
    if linkage.machine != machine {
        bail!("the binary is for another machine than {}", target.triple);
    }
    match linkage.glibc() {
        None if target.is_glibc() => bail!(
            "the binary needs no glibc, so it is not one for {}",
            target.triple
        ),
        Some(_) if !target.is_glibc() => bail!(
            "the binary needs glibc, so it is not one for {}",
            target.triple
        ),
        Some((version, symbols)) if version > GLIBC => println!(
            "glibc: {version} is needed, by {}; the goal is {GLIBC}: install ziglang and cargo-zigbuild (PyPI) to link with it",
            symbols.join(", ")
        ),
        Some((version, _)) => println!("glibc: {version} is needed; the goal is {GLIBC}"),
        None => println!("glibc: none is needed"),
    }
    Ok(linkage)
}

fn write_packages(
    artefacts: &mut Artefacts<'_>,
    payload: &Payload,
    options: &Options,
    linkage: &Linkage,
    build: &mut Build,
) -> Result<()> {
    let target = options.target;
    let stamp = Stamp {
        time: build.time,
        owner: 0,
    };
    let glibc: Option<Glibc> = linkage.glibc().map(|(version, _)| version);
    let archive = tar(
        &with_folders(&payload.archive()),
        &format!("{}/", target.stem()),
        stamp,
    )?
    .gzip();
    artefacts.write(format!("{}.tar.gz", target.stem()), &archive)?;
    let mut sizes = vec![("archive", archive.len(), ARCHIVE_MAX)];
    artefacts.write(
        format!("{}-{VERSION}.tgz", target.npm_name()),
        &npm::platform(payload, target, stamp)?,
    )?;
    artefacts.write(
        wheel::name(target, glibc),
        &wheel::write(payload, target, glibc, stamp)?,
    )?;
    if target.machine.is_some() {
        let image = image::write(
            payload,
            target,
            linkage,
            &options.system,
            &build.commit,
            stamp,
        )?;
        artefacts.write(image::name(target), &image.bytes)?;
        sizes.push(("image", image.pulled, IMAGE_MAX));
        build.materials = image.materials;
    }
    // One package per machine: the program of glibc, which every Debian and every system with RPM has.
    if target.is_glibc() {
        artefacts.write(npm_launcher_name(), &npm::launcher(payload, stamp)?)?;
        artefacts.write(
            deb::name(target),
            &deb::write(payload, target, glibc, stamp)?,
        )?;
        artefacts.write(
            rpm::name(target),
            &rpm::write(payload, target, linkage, stamp)?,
        )?;
    }
    for (what, size, most) in sizes {
        println!("{what}: {size} bytes compressed, at most {most}");
        if size > most {
            eprintln!("warning: the {what} is larger than it may be");
        }
    }
    Ok(())
}

fn npm_launcher_name() -> String {
    format!("{NAME}-{VERSION}.tgz")
}

/// Writes what covers all targets whose files are in the folder.
fn write_index(output: &Path) -> Result<()> {
    let mut archives = Vec::new();
    for target in &TARGETS {
        let path = output.join(format!("{}.tar.gz", target.stem()));
        if path.exists() {
            let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
            archives.push(Archive {
                target,
                sha256: sha256(&bytes),
            });
        }
    }
    if archives.is_empty() {
        bail!("no archive in {}", output.display());
    }
    fs::write(output.join("ogive.rb"), recipes::formula(&archives))?;
    fs::write(output.join("flake.nix"), recipes::flake(&archives))?;
    for name in [verify::SUMS, verify::SIGNATURE] {
        let _ = fs::remove_file(output.join(name));
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(output)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let mut sums = String::new();
    for name in names {
        let bytes = fs::read(output.join(&name)).with_context(|| name.clone())?;
        sums.push_str(&format!("{}  {name}\n", sha256(&bytes)));
    }
    fs::write(output.join(verify::SUMS), &sums)?;
    let Some(path) = std::env::var_os(KEY) else {
        println!("signature: none, because {KEY} names no key");
        return Ok(());
    };
    let pem = fs::read_to_string(&path).with_context(|| format!("{KEY}: {}", path.display()))?;
    let key = signature::Key::read(&pem).context(KEY)?;
    fs::write(output.join(verify::SIGNATURE), key.sign(sums.as_bytes()))?;
    verify::run(output, Some(&key.public()))
}

/// Says what is missing in this release, and why.
fn print_others(options: &Options) {
    let others = TARGETS.iter().filter(|target| *target != options.target);
    for target in others {
        let archive = options.output.join(format!("{}.tar.gz", target.stem()));
        if !archive.exists() {
            let why =
                build::missing(target).unwrap_or_else(|| "run with --target to make it".to_owned());
            println!(
                "not made: {} ({why}); .github/workflows/release.yml makes it",
                target.triple
            );
        }
    }
}

/// A time since 1970 as RFC 3339 writes it.
fn time(seconds: u64) -> String {
    let (year, month, day) = entries::date(seconds);
    let of_day = seconds % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        of_day / 3_600,
        of_day / 60 % 60,
        of_day % 60
    )
}
