//! What an ELF program needs of the C library: read from its dynamic symbols, not assumed from the machine that built it.

use std::{collections::BTreeMap, fmt};

use anyhow::{Context, Result, bail};

/// What a program is linked with.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Linkage {
    /// `e_machine`: 62 is x86-64, 183 is AArch64.
    pub(crate) machine: u16,
    /// Shared libraries, in the order of the program.
    pub(crate) libraries: Vec<String>,
    /// Symbols by library and version, such as `libc.so.6` and `GLIBC_2.17`. Weak needs are left out: the program starts
    /// without them.
    pub(crate) symbols: BTreeMap<Need, Vec<String>>,
    /// The dynamic loader, `None` for a static program.
    pub(crate) interpreter: Option<String>,
}

/// A version of a library.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Need {
    pub(crate) library: String,
    pub(crate) version: String,
}

/// A version of glibc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Glibc(pub(crate) u32, pub(crate) u32);

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Linkage {
    /// The lowest glibc that the program starts with, and what needs it; `None` without glibc.
    pub(crate) fn glibc(&self) -> Option<(Glibc, &[String])> {
        let needs = self.symbols.iter().filter_map(|(need, symbols)| {
            let mut parts = need.version.strip_prefix("GLIBC_")?.split('.');
            let mut part = || parts.next()?.parse().ok();
            Some((Glibc(part()?, part()?), symbols.as_slice()))
        });
        needs.max_by_key(|(version, _)| *version)
    }
}

/// Reads a little-endian 64-bit program.
pub(crate) fn read(bytes: &[u8]) -> Result<Linkage> {
    if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
        bail!("not a 64-bit little-endian ELF program");
    }
    let file = File(bytes);
    let sections = file.sections()?;
    let find = |kind: u64| sections.iter().find(|section| section.kind == kind);
    let mut linkage = Linkage {
        machine: file.number(18, 2)? as u16,
        ..Linkage::default()
    };
    let (dynamic, needs) = (find(6), find(0x6fff_fffe));
    let Some(dynamic) = dynamic else {
        return Ok(linkage);
    };
    let strings = sections
        .get(dynamic.link)
        .context("no strings of the dynamic section")?;
    for at in (0..dynamic.size).step_by(16) {
        if file.number(dynamic.offset + at, 8)? == 1 {
            let name = file.number(dynamic.offset + at + 8, 8)? as usize;
            linkage.libraries.push(file.text(strings.offset + name)?);
        }
    }
    linkage.interpreter = file.interpreter()?;
    if let Some(needs) = needs {
        let versions = file.versions(needs, strings.offset)?;
        let (symbols, indices) = (find(11), find(0x6fff_ffff));
        let symbols = symbols.context("no dynamic symbols")?;
        let indices = indices.context("no versions of symbols")?;
        for need in versions.values() {
            linkage.symbols.entry(need.clone()).or_default();
        }
        for at in 0..symbols.size / 24 {
            let version = file.number(indices.offset + at * 2, 2)? & 0x7fff;
            let name = file.number(symbols.offset + at * 24, 4)? as usize;
            if let Some(need) = versions.get(&version) {
                let name = file.text(strings.offset + name)?;
                linkage.symbols.entry(need.clone()).or_default().push(name);
            }
        }
    }
    Ok(linkage)
}

/// A row of the section table.
struct Section {
    kind: u64,
    offset: usize,
    size: usize,
    link: usize,
}

struct File<'a>(&'a [u8]);

impl File<'_> {
    fn number(&self, at: usize, size: usize) -> Result<u64> {
        let bytes = self.0.get(at..at.saturating_add(size));
        let bytes = bytes.with_context(|| format!("the file ends before byte {at}"))?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn text(&self, at: usize) -> Result<String> {
        let bytes = self
            .0
            .get(at..)
            .context("a name behind the end of the file")?;
        let end = bytes
            .iter()
            .position(|byte| *byte == 0)
            .context("a name without an end")?;
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    fn sections(&self) -> Result<Vec<Section>> {
        let (table, size, count) = (
            self.number(40, 8)?,
            self.number(58, 2)?,
            self.number(60, 2)?,
        );
        let section = |n: u64| -> Result<Section> {
            let at = (table + n * size) as usize;
            Ok(Section {
                kind: self.number(at + 4, 4)?,
                offset: self.number(at + 24, 8)? as usize,
                size: self.number(at + 32, 8)? as usize,
                link: self.number(at + 40, 4)? as usize,
            })
        };
        (0..count).map(section).collect()
    }

    /// The path in the program header `PT_INTERP`.
    fn interpreter(&self) -> Result<Option<String>> {
        let (table, size, count) = (
            self.number(32, 8)?,
            self.number(54, 2)?,
            self.number(56, 2)?,
        );
        for n in 0..count {
            let at = (table + n * size) as usize;
            if self.number(at, 4)? == 3 {
                return self.text(self.number(at + 8, 8)? as usize).map(Some);
            }
        }
        Ok(None)
    }

    /// Needed versions by the index that symbols have, without the weak ones.
    fn versions(&self, needs: &Section, strings: usize) -> Result<BTreeMap<u64, Need>> {
        let mut out = BTreeMap::new();
        let mut library = needs.offset;
        loop {
            let count = self.number(library + 2, 2)?;
            let name = self.text(strings + self.number(library + 4, 4)? as usize)?;
            let mut version = library + self.number(library + 8, 4)? as usize;
            for _ in 0..count {
                let is_weak = self.number(version + 4, 2)? & 2 != 0;
                if !is_weak {
                    let need = Need {
                        library: name.clone(),
                        version: self.text(strings + self.number(version + 8, 4)? as usize)?,
                    };
                    out.insert(self.number(version + 6, 2)?, need);
                }
                version += self.number(version + 12, 4)? as usize;
            }
            match self.number(library + 12, 4)? {
                0 => return Ok(out),
                next => library += next as usize,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_is_by_number() {
        let need = |version: &str| Need {
            library: "libc.so.6".to_owned(),
            version: version.to_owned(),
        };
        let mut linkage = Linkage::default();
        assert_eq!(linkage.glibc(), None);
        for version in [
            "GLIBC_2.9",
            "GLIBC_2.28",
            "GLIBC_2.2.5",
            "GCC_4.2.0",
            "GLIBC_ABI_DT_RELR",
        ] {
            linkage
                .symbols
                .insert(need(version), vec![version.to_lowercase()]);
        }
        let (version, symbols) = linkage.glibc().unwrap();
        assert_eq!(version.to_string(), "2.28");
        assert_eq!(symbols, ["glibc_2.28"]);
    }

    /// This test is a program itself.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn a_program_is_read() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let linkage = read(&bytes).unwrap();
        assert!(linkage.libraries.iter().any(|name| name == "libc.so.6"));
        assert!(linkage.interpreter.as_ref().unwrap().contains("ld-linux"));
        assert!(linkage.glibc().unwrap().0 >= Glibc(2, 2));
        assert!(
            linkage
                .symbols
                .values()
                .any(|names| names.iter().any(|name| name == "memcpy"))
        );
        assert!(read(&bytes[..4_000]).is_err());
        assert!(read(b"#!/bin/sh").is_err());
    }
}
