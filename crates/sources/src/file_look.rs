//! Files that are watched: by size, time and identity, which needs no help of the operating system and works on every mounted
//! volume, links of config maps included.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// What a file looks like from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileLook {
    inode: u64,
    bytes: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl FileLook {
    /// That of a file; `None` if it is not there.
    pub fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(FileLook {
            inode: found.ino(),
            bytes: found.size(),
            seconds: found.mtime(),
            nanoseconds: found.mtime_nsec(),
        })
    }
}

/// Files that are watched, and how each of them looked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileLooks(Vec<(PathBuf, Option<FileLook>)>);

impl FileLooks {
    /// How these look now.
    pub fn look(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths = paths.into_iter();
        FileLooks(
            paths
                .map(|p| (FileLook::of(&p), p))
                .map(|(s, p)| (p, s))
                .collect(),
        )
    }
    /// How the same ones look now.
    pub fn again(&self) -> Self {
        Self::look(self.0.iter().map(|(path, _)| path.clone()))
    }
    /// The same files as they looked before, so that a change while they were read is not lost. `otherwise`: those that were
    /// not looked at then.
    pub fn as_before(mut self, before: &Self, otherwise: FirstLook) -> Self {
        for (path, stamp) in &mut self.0 {
            match before.0.iter().find(|(known, _)| known == path) {
                Some((_, seen)) => *stamp = *seen,
                None if otherwise == FirstLook::Changed => *stamp = None,
                None => {}
            }
        }
        self
    }
    /// Whether files have changed and are whole: one that still changes from look to look is being written, and the first
    /// half of a configuration may be valid, without what protects. One that is gone is being replaced. `pending` is how
    /// they looked the last time.
    pub fn is_settled(&self, pending: &mut Self, now: &Self) -> bool {
        let is_other = now != self && now.0.iter().all(|(_, stamp)| stamp.is_some());
        let is_settled = is_other && pending == now;
        pending.clone_from(now);
        is_settled
    }
    /// Those that are not there.
    pub fn missing(&self) -> Vec<&Path> {
        let missing = self.0.iter().filter(|(_, stamp)| stamp.is_none());
        missing.map(|(path, _)| path.as_path()).collect()
    }
    /// Those that look different from before, for people.
    pub fn changed_since(&self, before: &Self) -> Vec<String> {
        let changed = self.0.iter().filter(|file| !before.0.contains(file));
        changed
            .map(|(path, _)| format!("`{}`", path.display()))
            .collect()
    }
}

/// What becomes of files that were not looked at before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstLook {
    /// They are as they are now.
    Known,
    /// They count as changed: something may have happened since they were read.
    Changed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(sizes: &[Option<u64>]) -> FileLooks {
        let stamp = |bytes: u64| FileLook {
            inode: 1,
            bytes,
            seconds: 0,
            nanoseconds: 0,
        };
        let files = sizes.iter().enumerate();
        FileLooks(
            files
                .map(|(at, size)| (PathBuf::from(at.to_string()), size.map(stamp)))
                .collect(),
        )
    }

    #[test]
    fn a_file_counts_once_two_looks_agree() {
        let seen = files(&[Some(9), Some(9)]);
        let mut pending = FileLooks::default();
        for (now, settled) in [
            (files(&[Some(9), Some(9)]), false),
            (files(&[Some(9), Some(0)]), false),
            (files(&[Some(9), Some(4)]), false),
            // Gone, as while it is replaced.
            (files(&[Some(9), None]), false),
            (files(&[Some(9), None]), false),
            (files(&[Some(9), Some(8)]), false),
            (files(&[Some(9), Some(8)]), true),
        ] {
            assert_eq!(seen.is_settled(&mut pending, &now), settled, "{now:?}");
        }
    }

    #[test]
    fn what_was_read_meanwhile_is_not_lost() {
        let (before, now) = (files(&[Some(1)]), files(&[Some(2), Some(3)]));
        let kept = now.clone().as_before(&before, FirstLook::Known);
        assert_eq!(kept, files(&[Some(1), Some(3)]));
        assert_eq!(now.changed_since(&kept), ["`0`"]);
        assert_eq!(files(&[Some(1), None]).missing(), [Path::new("1")]);
        let kept = now.clone().as_before(&before, FirstLook::Changed);
        assert_eq!(now.changed_since(&kept), ["`0`", "`1`"]);
    }
}
