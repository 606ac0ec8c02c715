//! Files that are kept for later: the last good supergraph or configuration, schemas of running subgraphs, bundles.
//!
//! Written beside and moved into place, so that a reader sees a whole one and a process that ends meanwhile leaves the one
//! before. The file beside is a new one under a name that nobody can guess, and no link is followed: in a folder that
//! others can write to, a link that waits there must not choose which file is written. What is in place is on the disk.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    hash::{BuildHasher, RandomState},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readers {
    /// Its owner.
    Owner,
    /// Whoever the process lets read what it makes (`umask`).
    Anybody,
}

/// Keeps `bytes` in a file, whatever was there before. A folder that is not there is made, for the same
/// readers.
pub fn keep(path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let (folder_mode, mode) = match readers {
        Readers::Owner => (0o700, 0o600),
        Readers::Anybody => (0o777, 0o666),
    };
    DirBuilder::new()
        .recursive(true)
        .mode(folder_mode)
        .create(folder)?;
    let beside = path.with_file_name(name_beside(path)?);
    let written = OpenOptions::new()
        .write(true)
        // Which also follows no link (`O_EXCL`).
        .create_new(true)
        .mode(mode)
        .open(&beside)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
    let moved = written.and_then(|()| fs::rename(&beside, path));
    if moved.is_err() {
        let _ = fs::remove_file(&beside);
    }
    moved?;
    // Not every file system can do that with a folder; the file itself is whole in any case.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// A name in the same folder that nobody can guess.
fn name_beside(path: &Path) -> io::Result<OsString> {
    let name = path.file_name();
    let name =
        name.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "this names no file"))?;
    let chance = || RandomState::new().hash_one(0u8);
    let mut beside = name.to_owned();
    beside.push(format!(".{:016x}{:016x}.new", chance(), chance()));
    Ok(beside)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn no_link_chooses_the_file_and_only_the_owner_reads_it() {
        let folder = std::env::temp_dir().join(format!("ogive-kept-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (victim, path) = (folder.join("victim"), folder.join("kept"));
        fs::write(&victim, "precious").unwrap();
        // Under every name that could be guessed, and at the place itself.
        for guess in ["kept", "kept.new", &format!("kept.{}", std::process::id())] {
            symlink(&victim, folder.join(guess)).unwrap();
        }
        keep(&path, b"new", Readers::Owner).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        let found = fs::symlink_metadata(&path).unwrap();
        assert!(found.is_file(), "it is no link any more");
        assert_eq!(found.mode() & 0o777, 0o600);
        // An old file's mode is not kept.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        keep(&path, b"newer", Readers::Owner).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read(&path).unwrap(), b"newer");
        let others = fs::read_dir(&folder).unwrap().count();
        assert_eq!(others, 4, "nothing is left beside");
        let new = folder.join("a/b/kept");
        keep(&new, b"", Readers::Owner).unwrap();
        let made = fs::metadata(folder.join("a/b")).unwrap();
        assert_eq!(made.mode() & 0o777, 0o700);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn names_beside_are_never_the_same() {
        let name = || name_beside(Path::new("x/kept")).unwrap();
        assert_ne!(name(), name());
        assert!(name_beside(Path::new("..")).is_err());
    }
}
