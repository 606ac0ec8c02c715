//! Files of the operator: how each of them is read, and how those that are written to are opened.
//!
//! What stands at a path may be a pipe that nobody writes to, or a device without end, by mistake or put there while the
//! process runs. So no read is without a bound, whatever length the file system tells, and a process that serves reads
//! files only: opening a pipe would wait for its other end for ever, and what was read from it cannot be read again.
//! Commands that read once and end may be given pipes, as shells make them for `<(command)`.

pub mod kept;

use std::{
    fs::{self, File, FileType, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

use rustix::{fs::OFlags, io::Errno};

/// What else than a file may be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pipes {
    /// Nothing: for whoever serves.
    Refused,
    /// Pipes and devices, to their end or to the bound: for commands that read once.
    Read,
}

/// The bytes of a file, at most `bytes_max`; more are an error.
pub fn read(path: &Path, bytes_max: u64, pipes: Pipes) -> io::Result<Vec<u8>> {
    let file = match pipes {
        Pipes::Read => File::open(path)?,
        Pipes::Refused => match open_file(path)? {
            Some(file) => file,
            None => return Ok(Vec::new()),
        },
    };
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        Err(io::Error::other(format!(
            "it is larger than {}",
            size(bytes_max)
        )))
    } else {
        Ok(bytes)
    }
}

/// The text of a file, at most `bytes_max` bytes.
pub fn read_text(path: &Path, bytes_max: u64, pipes: Pipes) -> io::Result<String> {
    let text = String::from_utf8(read(path, bytes_max, pipes)?);
    text.map_err(|_| io::Error::other("it is not UTF-8"))
}

/// Opens a file, makes it if it is not there, and writes behind its end. Pipes and devices may be written to if they take
/// something now: what they do not take later is an error of writing ([`io::ErrorKind::WouldBlock`]).
pub fn append(path: &Path, mode: u32) -> io::Result<File> {
    let opened = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(mode)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path);
    opened.map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::NXIO.raw_os_error() => {
            io::Error::other("it is a pipe that nobody reads, or no such device")
        }
        _ => error,
    })
}

/// Opens a file without waiting for anybody. `None`: the device that holds nothing, which stands for an empty file.
fn open_file(path: &Path) -> io::Result<Option<File>> {
    // Devices may do something when they are opened.
    let found = fs::metadata(path)?;
    if is_null(&found) {
        return Ok(None);
    }
    check(found.file_type())?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    // Another one may have its name by now.
    check(file.metadata()?.file_type())?;
    Ok(Some(file))
}

fn is_null(found: &Metadata) -> bool {
    let null = || fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == found.rdev());
    found.file_type().is_char_device() && null()
}

fn check(found: FileType) -> io::Result<()> {
    let what = match found {
        found if found.is_file() => return Ok(()),
        found if found.is_dir() => "it is a folder, no file",
        found if found.is_fifo() => {
            "it is a pipe, which cannot be read again while serving: give a file"
        }
        found if found.is_socket() => "it is a socket, no file",
        _ => "it is a device, no file",
    };
    Err(io::Error::other(what))
}

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, path::PathBuf};

    use rustix::fs::{CWD, Mode, mknodat};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("ogive-files-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn pipe(path: &Path) {
        let mode = Mode::from_raw_mode(0o600);
        mknodat(CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }

    fn why(path: &Path, bytes_max: u64, pipes: Pipes) -> String {
        read(path, bytes_max, pipes).unwrap_err().to_string()
    }

    #[test]
    fn files_are_read_up_to_the_bound() {
        let folder = folder("bound");
        let (path, link) = (folder.join("file"), folder.join("link"));
        fs::write(&path, "four").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for pipes in [Pipes::Refused, Pipes::Read] {
            for path in [&path, &link] {
                assert_eq!(read(path, 4, pipes).unwrap(), b"four");
                assert_eq!(why(path, 3, pipes), "it is larger than 3 bytes");
            }
        }
        assert_eq!(read_text(&path, 4, Pipes::Refused).unwrap(), "four");
        fs::write(&path, b"\xff").unwrap();
        let error = read_text(&path, 4, Pipes::Refused).unwrap_err();
        assert_eq!(error.to_string(), "it is not UTF-8");
        // The file system tells no length of it.
        let kernel = Path::new("/proc/self/status");
        assert!(!read(kernel, 1 << 20, Pipes::Refused).unwrap().is_empty());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn whoever_serves_reads_files_only() {
        let folder = folder("kinds");
        let (fifo, link) = (folder.join("fifo"), folder.join("link"));
        pipe(&fifo);
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert!(why(&fifo, 9, Pipes::Refused).starts_with("it is a pipe"));
        for device in [Path::new("/dev/zero"), &link] {
            assert_eq!(why(device, 9, Pipes::Refused), "it is a device, no file");
            assert_eq!(why(device, 9, Pipes::Read), "it is larger than 9 bytes");
        }
        assert_eq!(why(&folder, 9, Pipes::Refused), "it is a folder, no file");
        let nothing = read(Path::new("/dev/null"), 9, Pipes::Refused);
        assert_eq!(nothing.unwrap(), b"");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_pipe_is_read_once_by_whoever_may() {
        let folder = folder("once");
        let fifo = folder.join("fifo");
        pipe(&fifo);
        std::thread::scope(|scope| {
            scope.spawn(|| fs::write(&fifo, "five!").unwrap());
            assert_eq!(read(&fifo, 9, Pipes::Read).unwrap(), b"five!");
        });
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn nobody_waits_for_the_reader_of_a_pipe() {
        let folder = folder("append");
        let (fifo, path) = (folder.join("fifo"), folder.join("log"));
        pipe(&fifo);
        let error = append(&fifo, 0o640).unwrap_err();
        assert!(error.to_string().contains("nobody reads"), "{error}");
        // Whoever reads and writes it waits for nobody.
        let both = OpenOptions::new().read(true).write(true).open(&fifo);
        let mut reader = both.unwrap();
        append(&fifo, 0o640).unwrap().write_all(b"one\n").unwrap();
        let mut line = [0; 4];
        reader.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"one\n");
        for _ in 0..2 {
            append(&path, 0o640).unwrap().write_all(b"two\n").unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"two\ntwo\n");
        fs::remove_dir_all(folder).unwrap();
    }
}
