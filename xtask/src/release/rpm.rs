//! A package for RPM (format 4): lead, signature header with digests, header, and a cpio archive as gzip.

use std::collections::BTreeMap;

use anyhow::Result;
use ring::digest;

use super::{
    content::{hex, sha256},
    elf::Linkage,
    entries::{Entry, Stamp, cpio, cpio_body},
    payload::Payload,
    product::{DESCRIPTION, LICENCE, MAINTAINER, NAME, REPOSITORY, SUMMARY, Target, VERSION},
};

/// `RPMSENSE_RPMLIB`, less or equal: a feature that the installing program must have.
const OF_RPM: u32 = 1 << 24 | 2 | 8;
/// `RPMSENSE_FIND_REQUIRES`: a library, found by looking into the binary.
const OF_BINARY: u32 = 1 << 14;

/// The file's name.
pub(crate) fn name(target: &Target) -> String {
    format!("{NAME}-{VERSION}-1.{}.rpm", target.rpm)
}

/// The package.
pub(crate) fn write(
    payload: &Payload,
    target: &Target,
    linkage: &Linkage,
    stamp: Stamp,
) -> Result<Vec<u8>> {
    let mut entries = payload.system();
    entries.push(Entry::folder(format!("usr/share/doc/{NAME}"), 0o755));
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let archive = cpio(&entries, stamp);
    let plain_size = u32::try_from(archive.len())?;
    let archive = archive.gzip();
    let mut header = Header::default();
    describe(&mut header, target, stamp);
    list_files(&mut header, &entries, stamp)?;
    list_needs(&mut header, target, linkage);
    header.strings(5092, [sha256(&archive)]);
    header.numbers(5093, [8]);
    let header = header.write(63);
    let mut signature = Header::default();
    let sha1 = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, &header);
    signature.string(269, &hex(sha1.as_ref()));
    signature.string(273, &sha256(&header));
    signature.numbers(1000, [u32::try_from(header.len() + archive.len())?]);
    signature.numbers(1007, [plain_size]);
    let mut out = lead(target);
    out.extend(signature.write(62));
    out.resize(out.len().next_multiple_of(8), 0);
    out.extend(header);
    out.extend(archive);
    Ok(out)
}

/// 96 bytes that only `file` still reads.
fn lead(target: &Target) -> Vec<u8> {
    let machine: u8 = if target.rpm == "aarch64" { 19 } else { 1 };
    let mut out = vec![0xed, 0xab, 0xee, 0xdb, 3, 0, 0, 0, 0, machine];
    out.extend(format!("{NAME}-{VERSION}-1").into_bytes());
    out.resize(76, 0);
    out.extend([0, 1, 0, 5]);
    out.resize(96, 0);
    out
}

fn describe(header: &mut Header, target: &Target, stamp: Stamp) {
    header.strings(100, ["C".to_owned()]);
    for (tag, text) in [
        (1000, NAME),
        (1001, VERSION),
        (1002, "1"),
        (1007, "reproducible"),
        (1014, LICENCE),
        (1015, MAINTAINER),
        (1020, REPOSITORY),
        (1021, "linux"),
        (1022, target.rpm),
        (1044, &format!("{NAME}-{VERSION}-1.src.rpm")),
        (1064, "4.16"),
        (1124, "cpio"),
        (1125, "gzip"),
        (1126, "9"),
        (5062, "utf-8"),
    ] {
        header.string(tag, text);
    }
    for (tag, text) in [(1004, SUMMARY), (1005, DESCRIPTION), (1016, "Unspecified")] {
        header.translated(tag, text);
    }
    header.numbers(1006, [stamp.time as u32]);
}

fn list_files(header: &mut Header, entries: &[Entry], stamp: Stamp) -> Result<()> {
    let mut folders: Vec<String> = Vec::new();
    let (mut places, mut names, mut sizes, mut modes, mut sums) =
        (vec![], vec![], vec![], vec![], vec![]);
    for entry in entries {
        let (folder, name) = entry.path.rsplit_once('/').unwrap_or(("", &entry.path));
        let folder = format!("/{folder}/");
        let at = folders.iter().position(|known| *known == folder);
        let at = at.unwrap_or_else(|| {
            folders.push(folder);
            folders.len() - 1
        });
        let (mode, content) = cpio_body(entry);
        let is_file = mode & 0o170_000 == 0o100_000;
        places.push(u32::try_from(at)?);
        names.push(name.to_owned());
        sizes.push(u32::try_from(content.plain().len())?);
        modes.push(mode as u16);
        sums.push(if is_file {
            sha256(content.plain())
        } else {
            String::new()
        });
    }
    let count = entries.len();
    let same = |text: &str| vec![text.to_owned(); count];
    header.numbers(1009, [sizes.iter().sum()]);
    header.numbers(1028, sizes);
    header.short_numbers(1030, modes);
    header.short_numbers(1033, vec![0; count]);
    header.numbers(1034, vec![stamp.time as u32; count]);
    header.strings(1035, sums);
    header.strings(1036, same(""));
    header.numbers(1037, vec![0; count]);
    header.strings(1039, same("root"));
    header.strings(1040, same("root"));
    header.numbers(1045, vec![u32::MAX; count]);
    header.numbers(1095, vec![1; count]);
    header.numbers(1096, 1..=u32::try_from(count)?);
    header.strings(1097, same(""));
    header.numbers(1116, places);
    header.strings(1117, names);
    header.strings(1118, folders);
    header.numbers(5011, [8]);
    Ok(())
}

/// What the package provides, and the libraries and features that it needs.
fn list_needs(header: &mut Header, target: &Target, linkage: &Linkage) {
    let own = [
        NAME.to_owned(),
        format!("{NAME}({})", target.rpm.replace('_', "-")),
    ];
    header.strings(1047, own);
    header.numbers(1112, [8, 8]);
    header.strings(1113, vec![format!("{VERSION}-1"); 2]);
    let mut needs: BTreeMap<String, (u32, &str)> = BTreeMap::new();
    for library in linkage
        .libraries
        .iter()
        .filter(|name| !name.starts_with("ld-"))
    {
        needs.insert(format!("{library}()(64bit)"), (OF_BINARY, ""));
    }
    for need in linkage
        .symbols
        .keys()
        .filter(|need| !need.library.starts_with("ld-"))
    {
        needs.insert(
            format!("{}({})(64bit)", need.library, need.version),
            (OF_BINARY, ""),
        );
    }
    for (feature, since) in [
        ("CompressedFileNames", "3.0.4-1"),
        ("FileDigests", "4.6.0-1"),
        ("PayloadFilesHavePrefix", "4.0-1"),
    ] {
        needs.insert(format!("rpmlib({feature})"), (OF_RPM, since));
    }
    header.numbers(1048, needs.values().map(|(flags, _)| *flags));
    header.strings(1050, needs.values().map(|(_, since)| (*since).to_owned()));
    header.strings(1049, needs.into_keys());
}

/// Tagged values in the order of their tags.
#[derive(Default)]
struct Header(BTreeMap<u32, Value>);

struct Value {
    kind: u32,
    count: usize,
    bytes: Vec<u8>,
    align: usize,
}

impl Header {
    fn string(&mut self, tag: u32, text: &str) {
        self.put(tag, 6, 1, [text.as_bytes(), &[0]].concat(), 1);
    }

    fn translated(&mut self, tag: u32, text: &str) {
        self.put(tag, 9, 1, [text.as_bytes(), &[0]].concat(), 1);
    }

    fn strings(&mut self, tag: u32, texts: impl IntoIterator<Item = String>) {
        let (mut bytes, mut count) = (Vec::new(), 0);
        for text in texts {
            bytes.extend(text.into_bytes());
            bytes.push(0);
            count += 1;
        }
        self.put(tag, 8, count, bytes, 1);
    }

    fn numbers(&mut self, tag: u32, numbers: impl IntoIterator<Item = u32>) {
        let bytes: Vec<u8> = numbers.into_iter().flat_map(u32::to_be_bytes).collect();
        self.put(tag, 4, bytes.len() / 4, bytes, 4);
    }

    fn short_numbers(&mut self, tag: u32, numbers: Vec<u16>) {
        let bytes: Vec<u8> = numbers.into_iter().flat_map(u16::to_be_bytes).collect();
        self.put(tag, 3, bytes.len() / 2, bytes, 2);
    }

    fn put(&mut self, tag: u32, kind: u32, count: usize, bytes: Vec<u8>, align: usize) {
        let value = Value {
            kind,
            count,
            bytes,
            align,
        };
        self.0.insert(tag, value);
    }

    /// The header with all of it in one region, whose tag is `region`.
    fn write(self, region: u32) -> Vec<u8> {
        let rows = self.0.len() + 1;
        let (mut index, mut store) = (Vec::new(), Vec::new());
        for (tag, value) in self.0 {
            store.resize(store.len().next_multiple_of(value.align), 0);
            for field in [tag, value.kind, store.len() as u32, value.count as u32] {
                index.extend(field.to_be_bytes());
            }
            store.extend(value.bytes);
        }
        let end = store.len() as u32;
        // The region's last row: how far before it the index begins.
        for field in [region, 7, (rows as u32 * 16).wrapping_neg(), 16] {
            store.extend(field.to_be_bytes());
        }
        let mut out = vec![0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
        for field in [rows as u32, store.len() as u32, region, 7, end, 16] {
            out.extend(field.to_be_bytes());
        }
        out.extend(index);
        out.extend(store);
        out
    }
}
