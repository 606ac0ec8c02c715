//! What is written by hand for each code: a meaning, a remedy and two examples. The texts themselves are in
//! `subgraph_errors`, `merge_errors` and `hints`.

/// One subgraph of an example.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExampleFile {
    /// The subgraph's name.
    pub name: &'static str,
    /// Its schema.
    pub sdl: &'static str,
}

/// Some subgraphs, and what composing them says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Example {
    /// The subgraphs, in order of their names.
    pub files: &'static [ExampleFile],
    /// What comes out: rendered diagnostics, each under its coordinate, then the supergraph's own types.
    pub output: &'static str,
}

impl Example {
    /// The rendered diagnostics of one code.
    pub fn diagnostics(&self, code: &str) -> impl Iterator<Item = &'static str> {
        let heads = ["error", "warning", "note"].map(|w| format!("{w}[{code}]"));
        self.output.split("\n\n[").filter_map(move |block| {
            let at = heads.iter().find_map(|h| block.find(h.as_str()))?;
            Some(block[at..].trim_end())
        })
    }
}

/// What is written per code; the rest of a page is in the tables of [`codes`](super).
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    pub(super) meaning: &'static str,
    pub(super) remedy: &'static str,
    pub(super) bad: Example,
    pub(super) good: Example,
}

macro_rules! example {
    ($dir:literal [$($file:literal)*]) => {
        $crate::codes::texts::Example {
            files: &[$($crate::codes::texts::ExampleFile {
                name: $file,
                sdl: include_str!(concat!("../../tests/cases/", $dir, "/", $file, ".graphql")),
            }),*],
            output: include_str!(concat!("../../tests/cases/", $dir, "/expected.txt")),
        }
    };
}
macro_rules! texts {
    ($($code:ident { $meaning:literal $remedy:literal $bad:literal $bad_files:tt $good:literal $good_files:tt })*) => {
        &[$((stringify!($code), Text {
            meaning: $meaning,
            remedy: $remedy,
            bad: $crate::codes::texts::example!($bad $bad_files),
            good: $crate::codes::texts::example!($good $good_files),
        })),*]
    };
}
pub(super) use {example, texts};
