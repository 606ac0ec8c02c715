//! Scripts as they are read: parsed once, with all that they import.

use std::{
    cell::Cell,
    path::{Component, Path, PathBuf},
    time::Instant,
};

use ogive_files::Pipes;
use rhai::{
    AST, Dynamic, Engine, Scope,
    module_resolvers::{DummyModuleResolver, FileModuleResolver},
};

use super::{Limits, ProgramError, modules, objects};

/// Scripts that were read.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) ast: AST,
    pub(crate) limits: Limits,
    /// What they were read from: paths in the folder, and texts.
    pub(crate) files: Vec<(String, String)>,
}

/// The same text under the same limits is the same program.
impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.files == other.files && self.limits == other.limits
    }
}

/// Largest file of a script.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Most files of scripts.
const FILES_MAX: usize = 1_000;

impl Program {
    /// Reads `main` in a folder, and what it imports from there.
    pub fn read(folder: &str, main: &str, limits: Limits) -> Result<Self, ProgramError> {
        let path = Path::new(folder).join(main);
        let text = read(&path)?;
        let mut engine = engine(limits);
        engine.set_module_resolver(FileModuleResolver::new_with_path(folder));
        let ast = engine.compile_into_self_contained(&Scope::new(), &text);
        let ast = ast.map_err(|error| ProgramError(format!("`{}`: {error}", path.display())))?;
        let imported = ast.resolver().map(|resolver| resolver.paths());
        if let Some(outside) = imported.into_iter().flatten().find(|name| !is_within(name)) {
            return Err(ProgramError(format!(
                "`{outside}` is imported from outside of the folder `{folder}`, where nobody looks whether it changes"
            )));
        }
        let mut all = vec![(main.to_owned(), text)];
        for file in files(Path::new(folder))? {
            if file != path {
                let name = file.strip_prefix(folder).unwrap_or(&file);
                all.push((name.display().to_string(), read(&file)?));
            }
        }
        Ok(Program {
            ast,
            limits,
            files: all,
        })
    }

    /// The files that it is read from, for those who look whether they change. Of a folder that cannot be read: the folder.
    pub fn watched(folder: &str, main: &str) -> Vec<PathBuf> {
        let folder = Path::new(folder);
        let mut all = files(folder).unwrap_or_else(|_| vec![folder.to_owned()]);
        let main = folder.join(main);
        if !all.contains(&main) {
            all.push(main);
        }
        all
    }

    /// Whether the main script has an entry point, which takes so many parameters.
    pub(crate) fn has_entry(&self, name: &str, parameters: usize) -> bool {
        let mut functions = self.ast.iter_functions();
        functions.any(|function| function.name == name && function.params.len() == parameters)
    }

    /// Whether it may look at requests to subgraphs, or at their answers.
    pub fn is_at_subgraphs(&self) -> bool {
        self.has_entry("subgraph_service", 2)
    }

    /// What does not do what it seems to, for the operator: functions that look like entry points and are never called, or none
    /// at all. Each a sentence.
    pub fn warnings(&self) -> Vec<String> {
        let main = self.files.first().map_or("", |(name, _)| name);
        let entry = |name: &str| ENTRY_POINTS.into_iter().find(|(known, _)| *known == name);
        let (mut out, mut has_any) = (Vec::new(), false);
        for function in self.ast.iter_functions() {
            let (name, parameters) = (function.name, function.params.len());
            match entry(name) {
                Some((_, wanted)) if wanted == parameters => has_any = true,
                Some((_, wanted)) => out.push(format!(
                    "`{name}` of `{main}` is never called: it has {parameters} parameters, and an entry point of that name has {wanted}"
                )),
                None => {
                    let meant = ENTRY_POINTS.iter().find(|(known, _)| is_slip(name, known));
                    out.extend(meant.map(|(meant, _)| {
                        format!("`{name}` of `{main}` is no entry point; did you mean `{meant}`?")
                    }));
                }
            }
        }
        let (size, usable) = (self.limits.size, self.limits.usable_size());
        if usable < size {
            out.push(format!(
                "`rhai.limits.memory` counts as {usable} bytes and not as {size}: one operation on a larger value may outlast `rhai.limits.timeout` ({:?}), which allows 1 MiB for each 100 ms",
                self.limits.time
            ));
        }
        if !has_any {
            let names = ENTRY_POINTS.map(|(name, _)| format!("`{name}`"));
            out.push(format!(
                "no script is ever called: `{main}` has no entry point; there are {}",
                names.join(", ")
            ));
        }
        out
    }

    /// Whether it may look at the context.
    pub fn looks_at_context(&self) -> bool {
        self.mentions("context")
    }

    /// Whether a word stands in it anywhere, be it in a comment.
    pub(crate) fn mentions(&self, word: &str) -> bool {
        self.files.iter().any(|(_, text)| text.contains(word))
    }
}

/// The entry points, and how many parameters they have.
const ENTRY_POINTS: [(&str, usize); 4] = [
    ("router_service", 1),
    ("supergraph_service", 1),
    ("execution_service", 1),
    ("subgraph_service", 2),
];

/// Whether a name is another one with a slip or two: what stands between what they have in common at both ends is short.
fn is_slip(name: &str, known: &str) -> bool {
    const SLIP_MAX: usize = 2;
    let (name, known) = (name.to_ascii_lowercase(), known.as_bytes());
    let name = name.as_bytes();
    let same = |a: &u8, b: &u8| a == b;
    let shorter = name.len().min(known.len());
    let before = name
        .iter()
        .zip(known)
        .take_while(|(a, b)| same(a, b))
        .count();
    let (ends, known_ends) = (name.iter().rev(), known.iter().rev());
    let after = ends.zip(known_ends).take_while(|(a, b)| same(a, b)).count();
    name.len().max(known.len()) - (before + after).min(shorter) <= SLIP_MAX
}

fn read(path: &Path) -> Result<String, ProgramError> {
    let text = ogive_files::read_text(path, FILE_BYTES_MAX, Pipes::Refused);
    text.map_err(|error| {
        ProgramError(format!(
            "cannot read the script `{}`: {error}",
            path.display()
        ))
    })
}

/// Whether a module comes from the folder of the scripts, and from a file that is looked at.
fn is_within(name: &str) -> bool {
    Path::new(name).components().all(|part| match part {
        Component::Normal(part) => !part.as_encoded_bytes().starts_with(b"."),
        Component::CurDir => true,
        _ => false,
    })
}

/// The scripts of a folder and the folders in it, in order of their names. Hidden ones are none: editors and mounted volumes keep
/// theirs there.
fn files(folder: &Path) -> Result<Vec<PathBuf>, ProgramError> {
    let (mut open, mut out) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        let fail = |error: std::io::Error| {
            ProgramError(format!(
                "cannot read the folder `{}`: {error}",
                folder.display()
            ))
        };
        for entry in std::fs::read_dir(&folder).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            let name = path.file_name().unwrap_or_default();
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "rhai")
            {
                out.push(path);
            }
            if out.len() + open.len() > FILES_MAX {
                return Err(ProgramError(format!(
                    "there are more than {FILES_MAX} scripts"
                )));
            }
        }
    }
    out.sort();
    Ok(out)
}

/// When a call has to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    /// By the limits of scripts.
    pub(crate) limit: Instant,
    /// By what the worker gives it, if it runs there.
    pub(crate) turn: Option<Instant>,
}

/// What a call ends with that is not done within its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeOver;

thread_local! {
    /// When the call of this thread has to end.
    static DEADLINE: Cell<Option<Deadline>> = const { Cell::new(None) };
}

/// Runs something that has to end in a while.
pub(crate) fn within<T>(deadline: Deadline, run: impl FnOnce() -> T) -> T {
    DEADLINE.set(Some(deadline));
    let done = run();
    DEADLINE.set(None);
    done
}

/// What the call of this thread ends with, if it has to.
fn over() -> Option<Dynamic> {
    let deadline = DEADLINE.get()?;
    let now = Instant::now();
    if now >= deadline.limit {
        return Some("its time is over".into());
    }
    let is_turn_over = deadline.turn.is_some_and(|turn| now >= turn);
    is_turn_over.then(|| Dynamic::from(TimeOver))
}

/// After how many operations the clock is looked at: one of them may be a digest of a long text.
const LOOK: u64 = 8;

/// The language as it is offered.
pub(crate) fn engine(limits: Limits) -> Engine {
    let (mut engine, size) = (Engine::new(), limits.usable_size());
    engine
        .set_max_operations(limits.operations)
        .set_max_call_levels(limits.calls)
        .set_max_expr_depths(64, 32)
        .set_max_string_size(size)
        .set_max_array_size(size / 16)
        .set_max_map_size(size / 64)
        .set_max_modules(FILES_MAX)
        .set_module_resolver(DummyModuleResolver::new())
        .disable_symbol("eval")
        .on_progress(|operations| {
            if operations % LOOK != 0 {
                return None;
            }
            over()
        });
    modules::register(&mut engine);
    objects::register(&mut engine);
    engine
}
