//! The two maps for newcomers: which file answers which question (`ARCHITECTURE.md`), and the functions a request passes
//! (`docs/walk.md`). What they name must be there.

use std::{fs, path::Path};

/// Least number of questions.
const QUESTIONS_MIN: usize = 20;
/// Most steps of the walk.
const STEPS_MAX: usize = 40;
/// The heading of the questions.
const QUESTIONS: &str = "\n## Which file\n";

/// Checks both.
pub(crate) fn check(root: &Path, wrong: &mut Vec<String>) {
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let is_file = |path: &str| root.join(path).is_file();
    wrong.extend(questions(&read("ARCHITECTURE.md"), is_file));
    wrong.extend(walk(&read("docs/walk.md"), |path| {
        fs::read_to_string(root.join(path)).ok()
    }));
}

/// Rows of the table of questions: a question that ends so, and files that exist.
fn questions(page: &str, is_file: impl Fn(&str) -> bool) -> Vec<String> {
    let section = page.split(QUESTIONS).nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(1);
    let mut wrong = Vec::new();
    let mut asked = 0;
    for row in rows {
        let Some((question, files)) = row[2..].split_once(" | ") else {
            wrong.push(format!("ARCHITECTURE.md: `{row}` is no row of two cells"));
            continue;
        };
        asked += 1;
        if !question.ends_with('?') {
            wrong.push(format!("ARCHITECTURE.md: `{question}` is no question"));
        }
        let paths: Vec<&str> = quoted(files).filter(|path| path.contains('/')).collect();
        if paths.is_empty() {
            wrong.push(format!("ARCHITECTURE.md: `{question}` leads to no file"));
        }
        let missing = paths.iter().filter(|path| !is_file(path));
        wrong.extend(missing.map(|path| format!("ARCHITECTURE.md: `{question}`: no file {path}")));
    }
    if asked < QUESTIONS_MIN {
        wrong.push(format!(
            "ARCHITECTURE.md: {asked} of {QUESTIONS_MIN} questions have a file"
        ));
    }
    wrong
}

/// Numbered steps, each a file and the name of a function in it.
fn walk(page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let is_step = |line: &&str| {
        line.split_once(". ")
            .is_some_and(|(n, _)| n.parse::<u32>().is_ok())
    };
    let mut wrong = Vec::new();
    let mut steps = 0;
    for line in page.lines().filter(is_step) {
        steps += 1;
        let mut named = quoted(line);
        let (Some(file), Some(function)) = (named.next(), named.next()) else {
            wrong.push(format!("docs/walk.md: `{line}` names no file and function"));
            continue;
        };
        match read(file) {
            None => wrong.push(format!("docs/walk.md: no file {file}")),
            Some(text) if !declares(&text, function) => {
                wrong.push(format!("docs/walk.md: no function `{function}` in {file}"));
            }
            Some(_) => {}
        }
    }
    if steps == 0 || steps > STEPS_MAX {
        wrong.push(format!("docs/walk.md: {steps} steps, of 1 to {STEPS_MAX}"));
    }
    wrong
}

/// Whether a source declares a function, called `name` or `Type::name`.
fn declares(source: &str, name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name);
    let declaration = format!("fn {name}");
    let ends = |rest: &str| rest.starts_with(['(', '<']);
    source
        .match_indices(&declaration)
        .any(|(at, found)| ends(&source[at + found.len()..]))
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_lead_to_files() {
        let rows = "| where? | `a/b.rs` |\n".repeat(QUESTIONS_MIN);
        let page = |rows: &str| {
            format!("# A\n\n## Which file\n\n| question | file |\n|---|---|\n{rows}\n## Next\n")
        };
        assert_eq!(questions(&page(&rows), |path| path == "a/b.rs"), [""; 0]);
        assert_eq!(questions(&page(&rows), |_| false).len(), QUESTIONS_MIN);
        let few = questions(&page("| where? | `a/b.rs` |\n"), |_| true);
        assert_eq!(few, ["ARCHITECTURE.md: 1 of 20 questions have a file"]);
        let none = format!("{rows}| where | nowhere |\n");
        assert_eq!(questions(&page(&none), |_| true).len(), 2);
        assert_eq!(questions("", |_| true).len(), 1);
    }

    #[test]
    fn steps_are_functions_that_are_there() {
        let source =
            |path: &str| (path == "a.rs").then(|| "fn run<T>() {}\nfn running() {}".into());
        assert_eq!(walk("1. `a.rs` `Run::run`: runs", source), [""; 0]);
        assert_eq!(walk("1. `a.rs` `runn`: runs", source).len(), 1);
        assert_eq!(walk("1. `b.rs` `run`: runs", source).len(), 1);
        assert_eq!(walk("1. runs", source).len(), 1);
        assert_eq!(walk("", source).len(), 1);
        assert_eq!(
            walk(&"1. `a.rs` `run`\n".repeat(STEPS_MAX + 1), source).len(),
            1
        );
    }
}
