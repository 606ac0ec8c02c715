//! What `ogive explain CODE` shows: meaning, remedy, and a bad and a good example of every code.
//!
//! Examples are cases of `tests/cases`, embedded as they are tested: the bad one raises the code, the good one, which
//! differs in the remedy only, does not. Texts live in `subgraph_errors`, `merge_errors` and `hints`, in the order of the tables
//! in [`super`]; `docs/composition-codes.md` is written from here by [`table`].

use std::fmt::Write;

pub use super::texts::{Example, ExampleFile};
use super::{ERRORS, HINTS, Level, hints, merge_errors, subgraph_errors, texts::Text};

/// Error or hint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Composition fails.
    Error,
    /// Composition succeeds.
    Hint(Level),
}

/// Everything there is to say about one code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    /// The code.
    pub code: &'static str,
    /// Error or hint.
    pub kind: Kind,
    /// What it means, in one sentence.
    pub title: &'static str,
    /// Why it is a problem.
    pub meaning: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// Subgraphs that raise it.
    pub bad: Example,
    /// The same subgraphs after the remedy.
    pub good: Example,
}

/// Codes of other tools that Ogive never raises, and what happens instead.
pub const ELSEWHERE: &[(&str, &str)] = &[
    (
        "CONTEXT_NAME_CONTAINS_UNDERSCORE",
        "reported as `CONTEXT_NAME_INVALID`",
    ),
    (
        "DOWNSTREAM_SERVICE_ERROR",
        "subgraphs are asked by the command line and the gateway, whose errors are in [errors.md](errors.md)",
    ),
    (
        "INCONSISTENT_TYPE_SYSTEM_DIRECTIVE_LOCATIONS",
        "a composed directive is defined as by the newest version linked",
    ),
    (
        "INCONSISTENT_TYPE_SYSTEM_DIRECTIVE_REPEATABLE",
        "a composed directive is defined as by the newest version linked",
    ),
    (
        "INVALID_FEDERATION_SUPERGRAPH",
        "a supergraph that cannot be read is reported with the rule it breaks",
    ),
    (
        "UNSUPPORTED_FEATURE",
        "there is no feature that is recognised and not supported",
    ),
    (
        "UNSUPPORTED_LINKED_FEATURE",
        "links to unknown specifications stay in their subgraph",
    ),
];

/// Every page, errors first, in order of the tables.
pub fn pages() -> impl Iterator<Item = Page> {
    let errors = ERRORS.iter().map(|e| (e.code, Kind::Error, e.summary));
    let hints = HINTS
        .iter()
        .map(|h| (h.code, Kind::Hint(h.level), h.summary));
    errors.chain(hints).filter_map(|(code, kind, title)| {
        let text = text(code, kind)?;
        Some(Page {
            code,
            kind,
            title,
            meaning: text.meaning,
            remedy: text.remedy,
            bad: text.bad,
            good: text.good,
        })
    })
}

/// The pages of a code: none if it is unknown, two if it is an error and a hint.
pub fn explain(code: &str) -> Vec<Page> {
    pages().filter(|p| p.code == code).collect()
}

fn text(code: &str, kind: Kind) -> Option<&'static Text> {
    let find = |list: &'static [(&'static str, Text)]| {
        list.iter().find(|(c, _)| *c == code).map(|(_, text)| text)
    };
    match kind {
        Kind::Error => find(subgraph_errors::TEXTS).or_else(|| find(merge_errors::TEXTS)),
        Kind::Hint(_) => find(hints::TEXTS),
    }
}

/// `docs/composition-codes.md`: every code with its meaning and remedy, as Markdown.
pub fn table() -> String {
    let mut out = String::from(
        "# Composition codes\n\n\
         Written from `crates/compose/src/codes` by `BLESS=1 cargo test -p ogive-compose codes`; do not edit.\n\
         `ogive explain CODE` prints each with a bad and a good example.\n",
    );
    let mut section = |title: &str, hints: bool| {
        let _ = write!(out, "\n## {title}\n\n");
        out.push_str(if hints {
            "| code | level | meaning | remedy |\n|---|---|---|---|\n"
        } else {
            "| code | meaning | remedy |\n|---|---|---|\n"
        });
        for page in pages().filter(|p| matches!(p.kind, Kind::Hint(_)) == hints) {
            let level = match page.kind {
                Kind::Error => "",
                Kind::Hint(Level::Warn) => " warning |",
                Kind::Hint(Level::Info) => " info |",
                Kind::Hint(Level::Debug) => " debug |",
            };
            let cell = |text: &str| text.replace('|', "\\|");
            let _ = writeln!(
                out,
                "| `{}` |{level} {} {} | {} |",
                page.code,
                cell(page.title),
                cell(page.meaning),
                cell(page.remedy)
            );
        }
    };
    section("Errors", false);
    section("Hints", true);
    out.push_str(
        "\n## Codes of other tools that Ogive never raises\n\n| code | instead |\n|---|---|\n",
    );
    for (code, instead) in ELSEWHERE {
        let _ = writeln!(out, "| `{code}` | {instead} |");
    }
    out
}
