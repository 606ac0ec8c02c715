//! A whole release of a few bytes: written twice, verified, and tampered with.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use ogive_testbase::{left_out, runs};

use super::*;
use crate::release::{crates::Crate, product::SUMMARY};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ogive-release-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A release for glibc, with a binary that is none.
fn write(output: &Path, key: &signature::Key) {
    let system = output.join("system");
    for path in [
        "etc/ssl/certs/ca-certificates.crt",
        "lib64/ld-linux-x86-64.so.2",
    ] {
        fs::create_dir_all(system.join(path).parent().unwrap()).unwrap();
        fs::write(system.join(path), "file").unwrap();
    }
    let options = Options {
        target: Target::find("x86_64-unknown-linux-gnu").unwrap(),
        binary: None,
        system,
        index_only: false,
        output: output.join("out"),
    };
    fs::create_dir_all(&options.output).unwrap();
    let mut linkage = Linkage {
        interpreter: Some("/lib64/ld-linux-x86-64.so.2".to_owned()),
        ..Linkage::default()
    };
    let need = elf::Need {
        library: "libc.so.6".to_owned(),
        version: "GLIBC_2.17".to_owned(),
    };
    linkage
        .symbols
        .insert(need, vec!["clock_gettime".to_owned()]);
    let mut build = Build {
        target: options.target.triple,
        commit: "abc".to_owned(),
        command: None,
        compiler: "rustc".to_owned(),
        lock: "00".to_owned(),
        time: 1_764_000_000,
        materials: Vec::new(),
    };
    let payload = Payload::small();
    let mut artefacts = Artefacts {
        output: &options.output,
        files: Vec::new(),
    };
    let crates: [Crate; 0] = [];
    let bom = sbom::write(
        &crates,
        &[],
        build.target,
        &sha256(payload.binary.plain()),
        &time(build.time),
    );
    artefacts
        .write(
            format!("{}.cdx.json", options.target.stem()),
            bom.to_string().as_bytes(),
        )
        .unwrap();
    write_packages(&mut artefacts, &payload, &options, &linkage, &mut build).unwrap();
    let statement = provenance::write(&build, &artefacts.files);
    artefacts
        .write("x.provenance.json", statement.to_string().as_bytes())
        .unwrap();
    write_index(&options.output).unwrap();
    let sums = fs::read(options.output.join(verify::SUMS)).unwrap();
    fs::write(options.output.join(verify::SIGNATURE), key.sign(&sums)).unwrap();
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .collect()
}

#[test]
fn two_folders_give_equal_bytes() {
    let (one, other) = (folder("one"), folder("another-name"));
    let (key, public) = signature::throw_away();
    write(&one, &key);
    write(&other, &key);
    let (first, second) = (files(&one.join("out")), files(&other.join("out")));
    assert!(first.len() >= 11, "{:?}", first.keys());
    for (name, bytes) in &first {
        assert!(Some(bytes) == second.get(name), "{name} differs");
    }
    verify::run(&one.join("out"), Some(&public)).unwrap();
    let control = fs::read(one.join("out").join(format!("ogive_{VERSION}-1_amd64.deb"))).unwrap();
    assert!(control.starts_with(b"!<arch>\ndebian-binary"));
    assert!(
        fs::read_to_string(one.join("out/ogive.rb"))
            .unwrap()
            .contains(SUMMARY)
    );
    fs::remove_dir_all(one).unwrap();
    fs::remove_dir_all(other).unwrap();
}

#[test]
fn a_wrong_byte_in_any_file_is_noticed() {
    let folder = folder("tampered");
    let (key, public) = signature::throw_away();
    write(&folder, &key);
    let out = folder.join("out");
    for (name, bytes) in files(&out) {
        let path = out.join(&name);
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).unwrap();
            let error = verify::run(&out, Some(&public))
                .expect_err(&name)
                .to_string();
            // A wrong list shows by its signature.
            let named = name == verify::SUMS || error.contains(&name);
            assert!(named, "{name}: {error}");
        }
        fs::remove_file(&path).unwrap();
        assert!(
            verify::run(&out, Some(&public)).is_err(),
            "{name} is missing"
        );
        fs::write(&path, bytes).unwrap();
    }
    fs::write(out.join("more.tar.gz"), "added").unwrap();
    let error = verify::run(&out, Some(&public)).unwrap_err().to_string();
    assert!(error.contains("more.tar.gz: not in"), "{error}");
    fs::remove_dir_all(folder).unwrap();
}

/// A list that was signed again with another key, over a binary that is not the SBOM's.
#[test]
fn sbom_and_provenance_notice_another_archive() {
    let folder = folder("replaced");
    let (key, public) = signature::throw_away();
    write(&folder, &key);
    let out = folder.join("out");
    let archive = format!(
        "{}.tar.gz",
        Target::find("x86_64-unknown-linux-gnu").unwrap().stem()
    );
    fs::write(
        out.join(archive),
        tar(&[], "", Stamp { time: 0, owner: 0 }).unwrap().gzip(),
    )
    .unwrap();
    write_index(&out).unwrap();
    let sums = fs::read(out.join(verify::SUMS)).unwrap();
    fs::write(out.join(verify::SIGNATURE), key.sign(&sums)).unwrap();
    let error = verify::run(&out, Some(&public)).unwrap_err().to_string();
    assert!(
        error.contains("cdx.json: its binary") && error.contains("is not the file that was built"),
        "{error}"
    );
    assert!(!error.contains("signature"), "{error}");
    fs::remove_dir_all(folder).unwrap();
}

/// Statements that are absent or empty agree with every file.
#[test]
fn a_missing_list_or_sum_is_not_verified() {
    let folder = folder("stating-nothing");
    let error = verify::run(&folder, None).unwrap_err().to_string();
    assert!(error.contains("SHA256SUMS: missing"), "{error}");
    let statement = r#"{"subject":[{"name":"absent"}]}"#;
    fs::write(folder.join("x.provenance.json"), statement).unwrap();
    let sums = format!("{}  x.provenance.json\n", sha256(statement.as_bytes()));
    fs::write(folder.join(verify::SUMS), sums).unwrap();
    let error = verify::run(&folder, None).unwrap_err().to_string();
    assert!(error.contains("`absent` is not the file"), "{error}");
    fs::remove_dir_all(folder).unwrap();
}

/// The commands of the page, copied from it, against a folder instead of a host.
#[test]
fn the_commands_of_the_page_install_a_release() {
    for program in ["bash", "curl", "sha256sum", "tar", "openssl"] {
        if !runs(program) {
            return left_out(&format!("{program} is not installed"));
        }
    }
    let folder = folder("installed");
    let (key, public) = signature::throw_away();
    write(&folder, &key);
    let page = fs::read_to_string(crate::root().join("docs/install.md")).unwrap();
    let (_, section) = page.split_once("## Download, verify, run").unwrap();
    let mut blocks = section.split("```sh\n").skip(1);
    let mut block = || blocks.next().unwrap().split("```").next().unwrap();
    let (install, verify) = (block(), block());
    let downloads = format!("file://{}", folder.join("out").display());
    assert!(install.contains(product::DOWNLOADS) && install.lines().count() <= 6);
    let install = install.replace(product::DOWNLOADS, &downloads);
    let home = folder.join("home");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("ogive.pub"), public).unwrap();
    let bash = |commands: &str| {
        let script = format!("set -euo pipefail\n{commands}");
        let output = Command::new("bash")
            .args(["-c", &script])
            .current_dir(&home)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.success(),
            text(&output.stdout) + &text(&output.stderr),
        )
    };
    let (ok, text) = bash(&install);
    assert!(
        ok && text.contains("tar.gz: OK") && text.ends_with("small\n"),
        "{text}"
    );
    let (ok, text) = bash(verify);
    assert!(ok, "{text}");
    let sums = home.join("SHA256SUMS");
    let mut changed = fs::read(&sums).unwrap();
    changed[0] ^= 1;
    fs::write(&sums, changed).unwrap();
    assert!(!bash(verify).0, "a wrong list has a good signature");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn binstall_finds_the_archives() {
    let manifest = fs::read_to_string(crate::root().join("crates/cli/Cargo.toml")).unwrap();
    let value = |key: &str| {
        let line = manifest
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))
            .unwrap();
        let target = Target::find("x86_64-unknown-linux-gnu").unwrap();
        let line = line
            .trim_end_matches('"')
            .replace("{ version }", VERSION)
            .replace("{ target }", target.triple);
        line.replace("{ repo }", REPOSITORY)
            .replace("{ bin }", NAME)
    };
    let stem = Target::find("x86_64-unknown-linux-gnu").unwrap().stem();
    assert_eq!(
        value("pkg-url"),
        format!("{}/{stem}.tar.gz", product::DOWNLOADS)
    );
    assert_eq!(value("bin-dir"), format!("{stem}/{NAME}"));
}

#[test]
fn hosted_integration_makes_every_target() {
    let workflow = fs::read_to_string(crate::root().join(".github/workflows/release.yml")).unwrap();
    for target in &TARGETS {
        let row = format!("{{ target: {}, runner: {} }}", target.triple, target.runner);
        assert!(workflow.contains(&row), "{row}");
    }
    assert!(
        workflow.contains("cargo xtask release --target")
            && workflow.contains("cargo xtask release --index")
    );
    assert!(workflow.contains(KEY));
}
