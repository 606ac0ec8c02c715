//! A package for Debian and its descendants (deb(5), format 2.0).

use anyhow::Result;

use super::{
    elf::Glibc,
    entries::{Entry, Stamp, ar, tar, with_folders},
    payload::Payload,
    product::{DESCRIPTION, MAINTAINER, NAME, REPOSITORY, SUMMARY, Target, VERSION},
};

/// The file's name.
pub(crate) fn name(target: &Target) -> String {
    format!("{NAME}_{VERSION}-1_{}.deb", target.debian)
}

/// The package.
pub(crate) fn write(
    payload: &Payload,
    target: &Target,
    glibc: Option<Glibc>,
    stamp: Stamp,
) -> Result<Vec<u8>> {
    let files = with_folders(&payload.system());
    let data = tar(&files, "./", stamp)?;
    let depends = match glibc {
        Some(version) => format!("Depends: libc6 (>= {version}), libgcc-s1\n"),
        None => String::new(),
    };
    let control = format!(
        "Package: {NAME}\nVersion: {VERSION}-1\nArchitecture: {}\nMaintainer: {MAINTAINER}\nInstalled-Size: {}\n{depends}\
         Recommends: ca-certificates\nSection: web\nPriority: optional\nHomepage: {REPOSITORY}\n\
         Description: {SUMMARY}\n {DESCRIPTION}\n",
        target.debian,
        data.len().div_ceil(1024)
    );
    let control = tar(&[Entry::text("control", control)], "./", stamp)?.gzip();
    let data = data.gzip();
    let members = [
        ("debian-binary", &b"2.0\n"[..]),
        ("control.tar.gz", &control),
        ("data.tar.gz", &data),
    ];
    Ok(ar(&members, stamp.time))
}
