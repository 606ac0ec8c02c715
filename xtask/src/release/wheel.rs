//! A Python wheel (binary distribution format 1.0) that puts the binary into the folder of scripts.

use anyhow::Result;
use ring::digest;

use super::{
    content::base64,
    elf::Glibc,
    entries::{Body, Entry, Stamp, zip},
    payload::Payload,
    product::{DESCRIPTION, LICENCE, NAME, REPOSITORY, SUMMARY, Target, VERSION},
};

/// The file's name, which says where it can be installed.
pub(crate) fn name(target: &Target, glibc: Option<Glibc>) -> String {
    format!("{NAME}-{VERSION}-{}.whl", tag(target, glibc))
}

fn tag(target: &Target, glibc: Option<Glibc>) -> String {
    let platform = match glibc {
        Some(Glibc(major, minor)) => format!("manylinux_{major}_{minor}_{}", target.wheel),
        None => target.wheel.to_owned(),
    };
    format!("py3-none-{platform}")
}

/// The wheel.
pub(crate) fn write(
    payload: &Payload,
    target: &Target,
    glibc: Option<Glibc>,
    stamp: Stamp,
) -> Result<Vec<u8>> {
    let info = format!("{NAME}-{VERSION}.dist-info");
    let metadata = format!(
        "Metadata-Version: 2.4\nName: {NAME}\nVersion: {VERSION}\nSummary: {SUMMARY}\nLicense-Expression: {LICENCE}\n{}\
         Project-URL: Repository, {REPOSITORY}\nDescription-Content-Type: text/markdown\n\n{DESCRIPTION}\n",
        payload
            .licences
            .iter()
            .map(|(name, _)| format!("License-File: {name}\n"))
            .collect::<String>()
    );
    let wheel = format!(
        "Wheel-Version: 1.0\nGenerator: cargo xtask release\nRoot-Is-Purelib: false\nTag: {}\n",
        tag(target, glibc)
    );
    let mut entries = vec![Entry::program(
        format!("{NAME}-{VERSION}.data/scripts/{NAME}"),
        &payload.binary,
    )];
    entries.extend([
        Entry::text(format!("{info}/METADATA"), metadata),
        Entry::text(format!("{info}/WHEEL"), wheel),
    ]);
    let licences = payload.licences.iter();
    entries
        .extend(licences.map(|(name, text)| Entry::file(format!("{info}/licenses/{name}"), text)));
    let record: String = entries.iter().map(recorded).collect();
    // The record comes last, and is in itself without a sum.
    entries.push(Entry::text(
        format!("{info}/RECORD"),
        format!("{record}{info}/RECORD,,\n"),
    ));
    zip(&entries, stamp)
}

/// A row of `RECORD`: path, sum, size.
fn recorded(entry: &Entry) -> String {
    let Body::File(content) = &entry.body else {
        return String::new();
    };
    let sum = digest::digest(&digest::SHA256, content.plain());
    format!(
        "{},sha256={},{}\n",
        entry.path,
        base64(sum.as_ref(), true),
        content.plain().len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_that_of_the_measured_glibc() {
        let target = Target::find("x86_64-unknown-linux-gnu").unwrap();
        assert_eq!(
            name(target, Some(Glibc(2, 28))),
            format!("ogive-{VERSION}-py3-none-manylinux_2_28_x86_64.whl")
        );
        let target = Target::find("aarch64-unknown-linux-musl").unwrap();
        assert_eq!(tag(target, None), "py3-none-musllinux_1_2_aarch64");
    }
}
