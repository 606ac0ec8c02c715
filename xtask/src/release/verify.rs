//! Checks a folder of artefacts: signature, sums, and what SBOM and provenance say of the other files.

use std::{collections::BTreeMap, fs, io::Read as _, path::Path};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{content::sha256, product::NAME, signature};

/// The list of files with their sums, as `sha256sum --check` reads it.
pub(crate) const SUMS: &str = "SHA256SUMS";
/// The signature of the list.
pub(crate) const SIGNATURE: &str = "SHA256SUMS.sig";

/// Fails with everything that is wrong. Without a public key the signature is not checked, and the summary says so.
pub(crate) fn run(folder: &Path, public: Option<&str>) -> Result<()> {
    let files = read(folder)?;
    let mut wrong = Vec::new();
    match public {
        None => println!("signature: not checked, because no --key was given"),
        Some(public) => check_signature(&files, public, &mut wrong),
    }
    check_sums(&files, &mut wrong);
    for (name, bytes) in &files {
        if name.ends_with(".provenance.json") {
            check_provenance(name, bytes, &files, &mut wrong);
        } else if let Some(stem) = name.strip_suffix(".cdx.json") {
            check_sbom(
                name,
                bytes,
                files.get(&format!("{stem}.tar.gz")),
                stem,
                &mut wrong,
            );
        }
    }
    if wrong.is_empty() {
        println!("{} files are what the release says they are", files.len());
        return Ok(());
    }
    bail!("{}", wrong.join("\n"))
}

/// All files of a folder.
fn read(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let bytes = fs::read(entry.path()).with_context(|| entry.path().display().to_string())?;
        files.insert(entry.file_name().to_string_lossy().into_owned(), bytes);
    }
    Ok(files)
}

fn check_signature(files: &BTreeMap<String, Vec<u8>>, public: &str, wrong: &mut Vec<String>) {
    let verified = match (files.get(SUMS), files.get(SIGNATURE)) {
        (Some(sums), Some(signature)) => signature::verify(public, sums, signature),
        _ => return wrong.push(format!("{SUMS} or {SIGNATURE} is missing")),
    };
    if let Err(why) = verified {
        wrong.push(format!("{SIGNATURE}: {why}"));
    }
}

fn check_sums(files: &BTreeMap<String, Vec<u8>>, wrong: &mut Vec<String>) {
    let Some(list) = files.get(SUMS) else {
        return wrong.push(format!("{SUMS}: missing, so no file can be checked"));
    };
    let list = String::from_utf8_lossy(list);
    let sums: BTreeMap<&str, &str> = list
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(sum, name)| (name, sum))
        .collect();
    for (name, bytes) in files
        .iter()
        .filter(|(name, _)| ![SUMS, SIGNATURE].contains(&name.as_str()))
    {
        match sums.get(name.as_str()) {
            None => wrong.push(format!("{name}: not in {SUMS}")),
            Some(sum) if **sum != sha256(bytes) => {
                wrong.push(format!("{name}: its SHA-256 is not that in {SUMS}"))
            }
            Some(_) => {}
        }
    }
    let missing = sums.keys().filter(|name| !files.contains_key(**name));
    wrong.extend(missing.map(|name| format!("{name}: missing, though {SUMS} lists it")));
}

fn check_provenance(
    name: &str,
    bytes: &[u8],
    files: &BTreeMap<String, Vec<u8>>,
    wrong: &mut Vec<String>,
) {
    let Ok(statement) = serde_json::from_slice::<Value>(bytes) else {
        return wrong.push(format!("{name}: not JSON"));
    };
    let subjects = statement["subject"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if subjects.is_empty() {
        wrong.push(format!("{name}: about no file"));
    }
    for subject in subjects {
        let file = subject["name"].as_str().unwrap_or_default();
        let sum = subject["digest"]["sha256"].as_str();
        let found = files.get(file).map(|bytes| sha256(bytes));
        if found.is_none() || found.as_deref() != sum {
            wrong.push(format!("{name}: `{file}` is not the file that was built"));
        }
    }
}

fn check_sbom(
    name: &str,
    bytes: &[u8],
    archive: Option<&Vec<u8>>,
    stem: &str,
    wrong: &mut Vec<String>,
) {
    let bom: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let stated = bom
        .pointer("/metadata/component/hashes/0/content")
        .and_then(Value::as_str);
    let binary = archive.and_then(|archive| unpack(archive, &format!("{stem}/{NAME}")));
    if stated.is_none() || binary.map(|bytes| sha256(&bytes)).as_deref() != stated {
        wrong.push(format!("{name}: its binary is not that of the archive"));
    }
}

/// A file of a tar archive in gzip.
fn unpack(archive: &[u8], path: &str) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(archive)
        .read_to_end(&mut plain)
        .ok()?;
    let mut rest = plain.as_slice();
    while let Some((header, after)) = rest.split_first_chunk::<512>() {
        let text = |field: &[u8]| {
            String::from_utf8_lossy(field)
                .trim_end_matches('\0')
                .to_owned()
        };
        let size = usize::from_str_radix(text(&header[124..135]).trim(), 8).ok()?;
        if text(&header[..100]) == path {
            return after.get(..size).map(<[u8]>::to_vec);
        }
        rest = after.get(size.next_multiple_of(512)..)?;
    }
    None
}
