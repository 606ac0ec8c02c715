//! Files of an artefact, and the containers that hold them: tar, zip, ar and cpio.
//!
//! Containers are sorted by path and have one owner and one time, so equal files give equal bytes.

use std::rc::Rc;

use anyhow::{Result, bail};

use super::content::{Content, Stream};

/// One file or folder.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Relative, with `/` between its parts.
    pub(crate) path: String,
    /// Permission bits.
    pub(crate) mode: u32,
    pub(crate) body: Body,
}

/// What an entry is.
#[derive(Clone)]
pub(crate) enum Body {
    Folder,
    File(Rc<Content>),
}

/// What is the same for all entries of a container.
#[derive(Clone, Copy)]
pub(crate) struct Stamp {
    /// Seconds since 1970.
    pub(crate) time: u64,
    /// User and group number.
    pub(crate) owner: u32,
}

impl Entry {
    /// A file that everybody may read.
    pub(crate) fn file(path: impl Into<String>, content: &Rc<Content>) -> Entry {
        Entry {
            path: path.into(),
            mode: 0o644,
            body: Body::File(Rc::clone(content)),
        }
    }

    /// A file that everybody may execute.
    pub(crate) fn program(path: impl Into<String>, content: &Rc<Content>) -> Entry {
        Entry {
            mode: 0o755,
            ..Entry::file(path, content)
        }
    }

    /// A small file of text.
    pub(crate) fn text(path: impl Into<String>, text: impl Into<String>) -> Entry {
        Entry::file(path, &Content::new(text.into().into_bytes()))
    }

    /// A folder with permission bits.
    pub(crate) fn folder(path: impl Into<String>, mode: u32) -> Entry {
        Entry {
            path: path.into(),
            mode,
            body: Body::Folder,
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.body {
            Body::File(content) => content.plain(),
            Body::Folder => &[],
        }
    }
}

/// The entries sorted by path, with the folders that contain them.
pub(crate) fn with_folders(entries: &[Entry]) -> Vec<Entry> {
    let mut all = entries.to_vec();
    for entry in entries {
        let mut path = entry.path.as_str();
        while let Some((folder, _)) = path.rsplit_once('/') {
            if !all.iter().any(|entry| entry.path == folder) {
                all.push(Entry::folder(folder, 0o755));
            }
            path = folder;
        }
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

/// A tar archive (POSIX.1-1988 `ustar`) of entries in their order, each path below `prefix`.
pub(crate) fn tar(entries: &[Entry], prefix: &str, stamp: Stamp) -> Result<Stream> {
    let mut out = Stream::default();
    for entry in entries {
        out.push(&tar_header(entry, prefix, stamp)?);
        if let Body::File(content) = &entry.body {
            out.push_content(content);
            out.pad(512);
        }
    }
    out.push(&[0; 1024]);
    Ok(out)
}

fn tar_header(entry: &Entry, prefix: &str, stamp: Stamp) -> Result<[u8; 512]> {
    let (kind, slash) = match &entry.body {
        Body::File(_) => (b'0', ""),
        Body::Folder => (b'5', "/"),
    };
    let path = format!("{prefix}{}{slash}", entry.path);
    // A long path is split at a slash: at most 155 bytes before it and 100 after it.
    let split = match path.len() {
        0..=100 => Some(("", path.as_str())),
        _ => path.match_indices('/').find_map(|(at, _)| {
            let parts = (&path[..at], &path[at + 1..]);
            (parts.0.len() <= 155 && parts.1.len() <= 100).then_some(parts)
        }),
    };
    let Some((before, name)) = split else {
        bail!("the path `{path}` is too long for a tar archive");
    };
    let mut header = [0; 512];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, format!("{:07o}", entry.mode).as_bytes());
    put(108, format!("{:07o}", stamp.owner).as_bytes());
    put(116, format!("{:07o}", stamp.owner).as_bytes());
    put(124, format!("{:011o}", entry.bytes().len()).as_bytes());
    put(136, format!("{:011o}", stamp.time).as_bytes());
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(345, before.as_bytes());
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// A zip archive of the files among the entries, in their order.
pub(crate) fn zip(entries: &[Entry], stamp: Stamp) -> Result<Vec<u8>> {
    let (mut out, mut directory, mut count) = (Vec::new(), Vec::new(), 0_u16);
    let (date, time) = dos_time(stamp.time);
    for entry in entries {
        let Body::File(content) = &entry.body else {
            continue;
        };
        let compressed = content.deflate();
        let mut crc = flate2::Crc::new();
        crc.update(content.plain());
        let mut fields = Vec::new();
        // Version 2.0, UTF-8 names, DEFLATE.
        for field in [20, 0x0800, 8, time, date] {
            fields.extend(u16::to_le_bytes(field));
        }
        for field in [
            crc.sum(),
            u32::try_from(compressed.len())?,
            u32::try_from(content.plain().len())?,
        ] {
            fields.extend(field.to_le_bytes());
        }
        fields.extend(u16::try_from(entry.path.len())?.to_le_bytes());
        fields.extend([0, 0]);
        let offset = u32::try_from(out.len())?;
        out.extend(b"PK\x03\x04");
        out.extend(&fields);
        out.extend(entry.path.as_bytes());
        out.extend(&compressed);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&fields);
        directory.extend([0; 6]);
        directory.extend(((0o100_000 | entry.mode) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(entry.path.as_bytes());
        count += 1;
    }
    let (offset, size) = (u32::try_from(out.len())?, u32::try_from(directory.len())?);
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(size.to_le_bytes());
    out.extend(offset.to_le_bytes());
    out.extend([0, 0]);
    Ok(out)
}

/// Date and time as zip stores them; times before 1980 become its first.
fn dos_time(seconds: u64) -> (u16, u16) {
    let (year, month, day) = date(seconds);
    let Some(years) = year.checked_sub(1980) else {
        return ((1 << 5) | 1, 0);
    };
    let of_day = seconds % 86_400;
    let date = (years << 9) | (month << 5) | day;
    let time = ((of_day / 3_600) << 11) | ((of_day / 60 % 60) << 5) | (of_day % 60 / 2);
    (date as u16, time as u16)
}

/// Year, month and day of a time since 1970 in UTC.
pub(crate) fn date(seconds: u64) -> (u64, u64, u64) {
    // Days from 1 March of the year 0, in whole cycles of 400 years.
    let days = seconds / 86_400 + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..=9 => (year, month + 3),
        _ => (year + 1, month - 9),
    };
    (year + cycle * 400, month, day_of_month)
}

/// An `ar` archive, as Debian packages are.
pub(crate) fn ar(members: &[(&str, &[u8])], time: u64) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let header = format!(
            "{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            0,
            0,
            "100644",
            bytes.len()
        );
        out.extend(header.into_bytes());
        out.extend_from_slice(bytes);
        if bytes.len() % 2 == 1 {
            out.push(b'\n');
        }
    }
    out
}

/// A `cpio` archive in the new portable form, as RPM packages contain it.
pub(crate) fn cpio(entries: &[Entry], stamp: Stamp) -> Stream {
    let mut out = Stream::default();
    for (at, entry) in entries.iter().enumerate() {
        let (mode, content) = cpio_body(entry);
        let path = format!("./{}", entry.path);
        out.push(cpio_header(at + 1, mode, stamp, content.plain().len(), &path).as_bytes());
        out.pad(4);
        out.push_content(&content);
        out.pad(4);
    }
    out.push(cpio_header(0, 0, Stamp { time: 0, owner: 0 }, 0, "TRAILER!!!").as_bytes());
    out.pad(4);
    out
}

/// The mode with the kind of file, and what is stored.
pub(crate) fn cpio_body(entry: &Entry) -> (u32, Rc<Content>) {
    match &entry.body {
        Body::File(content) => (0o100_000 | entry.mode, Rc::clone(content)),
        Body::Folder => (0o040_000 | entry.mode, Content::new([])),
    }
}

fn cpio_header(inode: usize, mode: u32, stamp: Stamp, size: usize, path: &str) -> String {
    let Stamp { time, owner } = stamp;
    let name = path.len() + 1;
    format!(
        "070701{inode:08x}{mode:08x}{owner:08x}{owner:08x}{:08x}{time:08x}{size:08x}{:032x}{name:08x}{:08x}{path}\0",
        1, 0, 0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp {
        time: 1_764_000_000,
        owner: 0,
    };

    fn entries() -> Vec<Entry> {
        vec![
            Entry::text("b/more", ""),
            Entry::text("b/deep/file", "text"),
            Entry::program("a", &Content::new(*b"#!")),
        ]
    }

    #[test]
    fn containers_are_sorted_and_equal_for_equal_files() {
        let sorted = with_folders(&entries());
        let paths: Vec<&str> = sorted.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["a", "b", "b/deep", "b/deep/file", "b/more"]);
        let mut backwards = entries();
        backwards.reverse();
        let other = with_folders(&backwards);
        let write = |entries: &[Entry]| {
            let tar = tar(entries, "x/", STAMP).unwrap().gzip();
            (
                tar,
                zip(entries, STAMP).unwrap(),
                cpio(entries, STAMP).plain(),
            )
        };
        assert!(write(&sorted) == write(&other));
    }

    #[test]
    fn a_changed_byte_changes_every_container() {
        let changed = |byte: u8| {
            let entries = [Entry::file("a", &Content::new([byte]))];
            let tar = tar(&entries, "", STAMP).unwrap().plain();
            [
                tar,
                zip(&entries, STAMP).unwrap(),
                cpio(&entries, STAMP).plain(),
                ar(&[("a", &[byte])], 0),
            ]
        };
        for (one, other) in changed(1).iter().zip(&changed(2)) {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn long_paths_are_split_or_refused() {
        let path = format!("{}/{}", "a".repeat(120), "b".repeat(90));
        let header = tar_header(&Entry::text(path, ""), "", STAMP).unwrap();
        assert_eq!(&header[345..348], b"aaa");
        assert!(tar_header(&Entry::text("a".repeat(120), ""), "", STAMP).is_err());
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, (1970, 1, 1)),
            (951_782_400, (2000, 2, 29)),
            (1_735_689_599, (2024, 12, 31)),
            (1_764_000_000, (2025, 11, 24)),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }
}
