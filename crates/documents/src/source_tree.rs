//! The files of a front end that can have operations in them.
//!
//! Left out is what `.gitignore` and `.ignore` files say, hidden files, `node_modules`, declarations of types, and tests.
//! What the user of this machine ignores everywhere is not: the same tree gives the same files on every machine.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use ignore::{DirEntry, WalkBuilder, overrides::OverrideBuilder};
use ogive_files::Pipes;
use thiserror::Error;

/// Most bytes of a file.
pub const FILE_BYTES_MAX: u64 = 8 << 20;
/// Most files of a tree.
pub const FILES_MAX: usize = 200_000;
/// Deepest folder.
pub const DEPTH_MAX: usize = 64;

const GRAPHQL: [&str; 3] = ["graphql", "gql", "graphqls"];
const SCRIPTS: [&str; 8] = ["ts", "tsx", "js", "jsx", "mts", "cts", "mjs", "cjs"];
const COMPONENTS: [&str; 3] = ["vue", "svelte", "astro"];

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// A document as a whole.
    Graphql,
    /// A program; whether it may have JSX in it.
    Script {
        /// Whether `<` may begin an element.
        jsx: bool,
    },
    /// A page with programs in it.
    Component,
}

impl FileKind {
    /// By the end of its name.
    pub fn of(path: &Path) -> Option<FileKind> {
        let extension = path.extension()?.to_str()?;
        if GRAPHQL.contains(&extension) {
            return Some(FileKind::Graphql);
        }
        if SCRIPTS.contains(&extension) {
            let jsx = !matches!(extension, "ts" | "mts" | "cts");
            return Some(FileKind::Script { jsx });
        }
        COMPONENTS
            .contains(&extension)
            .then_some(FileKind::Component)
    }
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
    /// What it says.
    pub text: String,
}

/// Which files are read.
#[derive(Clone, Debug, Default)]
pub struct SourceTree {
    /// Files and folders.
    pub roots: Vec<PathBuf>,
    /// Patterns, as in `.gitignore`, of what is left out besides.
    pub exclude: Vec<String>,
    /// Whether tests and stories are read, too.
    pub tests: bool,
}

/// Why a tree cannot be read.
#[derive(Debug, Error)]
pub enum TreeError {
    /// A file or a folder.
    #[error("cannot read `{0}`: {1}")]
    Unreadable(String, String),
    /// A pattern.
    #[error("`{0}` is no pattern: {1}")]
    Pattern(String, String),
    /// There are too many.
    #[error("more than {FILES_MAX} files")]
    TooMany,
    /// A folder is too deep.
    #[error("`{0}` is more than {DEPTH_MAX} folders deep")]
    TooDeep(String),
}

/// What becomes of a file that is looked at.
#[derive(Debug)]
pub enum Visit {
    /// It was read.
    Read(SourceFile),
    /// It cannot be taken, for that reason.
    LeftOut(PathBuf, String),
}

impl SourceTree {
    /// Reads the files one by one, in order of their names.
    pub fn visit(&self, mut take: impl FnMut(Visit)) -> Result<(), TreeError> {
        let mut count = 0;
        for path in self.files()? {
            let Some(kind) = FileKind::of(&path) else {
                continue;
            };
            count += 1;
            if count > FILES_MAX {
                return Err(TreeError::TooMany);
            }
            take(read(path, kind)?);
        }
        Ok(())
    }

    /// All files that are not left out, of whatever kind, in order of their names below each root.
    pub fn files(&self) -> Result<Vec<PathBuf>, TreeError> {
        let mut files = Vec::new();
        for root in &self.roots {
            files.extend(self.list(root)?);
        }
        Ok(files)
    }

    fn list(&self, root: &Path) -> Result<Vec<PathBuf>, TreeError> {
        let mut overrides = OverrideBuilder::new(root);
        for pattern in &self.exclude {
            let added = overrides.add(&format!("!{pattern}"));
            added.map_err(|why| TreeError::Pattern(pattern.clone(), why.to_string()))?;
        }
        let overrides = overrides.build();
        let overrides =
            overrides.map_err(|why| TreeError::Pattern(self.exclude.join(" "), why.to_string()))?;
        let (tests, depth_of_root) = (self.tests, 0);
        let walk = WalkBuilder::new(root)
            .require_git(false)
            .git_global(false)
            .git_exclude(false)
            .follow_links(false)
            .max_depth(Some(DEPTH_MAX))
            .overrides(overrides)
            .sort_by_file_path(Path::cmp)
            .filter_entry(move |entry| {
                // Whoever names a file means it.
                entry.depth() == depth_of_root || is_wanted(entry, tests)
            })
            .build();
        let mut files = Vec::new();
        for entry in walk {
            let entry = entry.map_err(|why| {
                TreeError::Unreadable(root.display().to_string(), why.to_string())
            })?;
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            if is_folder && entry.depth() == DEPTH_MAX {
                return Err(TreeError::TooDeep(entry.path().display().to_string()));
            }
            // Links are followed to files, not to folders: they could lead in circles. A link that leads nowhere cannot be read.
            if !entry.path().is_dir() {
                files.push(entry.into_path());
            }
        }
        Ok(files)
    }
}

fn is_wanted(entry: &DirEntry, tests: bool) -> bool {
    let name = entry.file_name();
    if entry.file_type().is_some_and(|kind| kind.is_dir()) {
        let is_test = matches!(name.to_str(), Some("__tests__" | "__mocks__"));
        return name != OsStr::new("node_modules") && (tests || !is_test);
    }
    let name = name.to_string_lossy();
    let mut parts = name.rsplit('.').skip(1);
    match parts.next() {
        Some("d") => false,
        Some("test" | "spec" | "story" | "stories") => tests,
        _ => true,
    }
}

fn read(path: PathBuf, kind: FileKind) -> Result<Visit, TreeError> {
    // Pipes and devices lie in no tree of sources.
    let length = std::fs::metadata(&path).map(|file| file.len());
    if length.is_ok_and(|length| length > FILE_BYTES_MAX) {
        let why = format!("it has more than {} MiB", FILE_BYTES_MAX >> 20);
        return Ok(Visit::LeftOut(path, why));
    }
    let bytes = ogive_files::read(&path, FILE_BYTES_MAX, Pipes::Refused);
    let bytes =
        bytes.map_err(|why| TreeError::Unreadable(path.display().to_string(), why.to_string()))?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Visit::Read(SourceFile { path, kind, text }),
        Err(_) => Visit::LeftOut(path, "it is not UTF-8".into()),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_nobody_wrote_by_hand_is_left_out() {
        let folder = std::env::temp_dir().join(format!("ogive-tree-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for (name, text) in [
            (".gitignore", "build/\n*.gen.ts\n"),
            ("src/b.ts", ""),
            ("src/a.tsx", ""),
            ("src/a.test.tsx", ""),
            ("src/a.d.ts", ""),
            ("src/x.gen.ts", ""),
            ("src/page.vue", ""),
            ("src/q.graphql", ""),
            ("src/style.css", ""),
            ("src/__tests__/c.ts", ""),
            ("build/d.js", ""),
            ("node_modules/m/e.js", ""),
            ("legacy/f.js", ""),
            ("src/latin.js", "\u{fffd}"),
        ] {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(folder.join("src/latin.js"), b"\xff").unwrap();
        let tree = |tests| SourceTree {
            roots: vec![folder.clone()],
            exclude: vec!["legacy".into()],
            tests,
        };
        let names = |tree: SourceTree| {
            let (mut names, mut left_out) = (Vec::new(), 0);
            let visited = tree.visit(|visit| match visit {
                Visit::Read(file) => {
                    let name = file.path.strip_prefix(&folder).unwrap();
                    names.push(name.display().to_string());
                }
                Visit::LeftOut(..) => left_out += 1,
            });
            visited.unwrap();
            assert_eq!(left_out, 1);
            names
        };
        assert_eq!(
            names(tree(false)),
            ["src/a.tsx", "src/b.ts", "src/page.vue", "src/q.graphql"]
        );
        assert_eq!(names(tree(true)).len(), 6);
        let missing = SourceTree {
            roots: vec![folder.join("none")],
            ..SourceTree::default()
        };
        assert!(missing.visit(|_| {}).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
