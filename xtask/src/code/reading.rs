//! Files of the operator are read by `ogive-files`, which bounds them and waits for no pipe; nobody else opens a file to read.

use syn::{
    ExprPath, Item,
    visit::{self, Visit},
};

use super::{Crate, attributes, is_test};

/// Crates that may: the one that does it for all, those of tests, and the lab, which is given nothing by anybody.
const CRATES: [&str; 6] = ["files", "bench", "testbase", "testkit", "e2e", "icount"];

/// Files that may: they read what the kernel tells, or open a folder, or the lab's own report.
const FILES: [&str; 5] = [
    "crates/cli/src/bench.rs",
    "crates/server/src/listener.rs",
    "crates/gateway/src/shared/memory.rs",
    "crates/telemetry/src/process.rs",
    "crates/workshop/src/kept.rs",
];

/// What reads, by its last two names.
const READING: [[&str; 2]; 3] = [["fs", "read"], ["fs", "read_to_string"], ["File", "open"]];

/// Says where a crate reads files by itself.
pub(crate) fn check(krate: &Crate) -> Vec<String> {
    let mut found = Found::default();
    if CRATES.contains(&krate.name.as_str()) {
        return Vec::new();
    }
    for file in &krate.files {
        if !FILES.contains(&file.shown.as_str()) {
            found.shown.clone_from(&file.shown);
            file.items.iter().for_each(|item| found.visit_item(item));
        }
    }
    found.wrong
}

#[derive(Default)]
struct Found {
    shown: String,
    wrong: Vec<String>,
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }
    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        let names: Vec<String> = path
            .path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        if READING
            .iter()
            .any(|last| names.ends_with(&last.map(str::to_owned)))
        {
            let line = path
                .path
                .segments
                .first()
                .map_or(0, |first| first.ident.span().start().line);
            self.wrong.push(format!(
                "{}:{line}: `{}` reads without a bound, and waits for pipes: use `ogive_files::read`",
                self.shown,
                names.join("::")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::planted, *};

    #[test]
    fn a_planted_read_is_refused() {
        let text = "fn f() { std::fs::read(p); fs::read_to_string(p); File::open(p); ogive_files::read(p); fs::read_dir(p) }\n\
                    #[cfg(test)] mod tests { fn g() { fs::read(p); } }";
        let wrong = check(&planted(&[("a", text)]));
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(wrong[0].starts_with("a.rs:1: `std::fs::read`"), "{wrong:?}");
    }
}
