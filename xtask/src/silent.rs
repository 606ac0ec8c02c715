//! Tests that pass because something is missing.
//!
//! A test that returns early looks like one that has found all well. So a test function that cannot do its work ends with
//! `return left_out("why")`, which is counted ([`crate::left_out`]), and a bare `return` in one is refused; so is a text
//! that says `skipped:`, which nobody counts. The rule is textual: it reads what `cargo fmt` has written, and knows a
//! test by its attribute.

/// What begins a test function.
const ATTRIBUTES: [&str; 2] = ["#[test]", "#[tokio::test"];

/// What is wrong with the tests of one file.
pub(crate) fn check(file: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut wrong = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let start = line.trim_start();
        if !ATTRIBUTES.iter().any(|a| start.starts_with(a)) {
            at += 1;
            continue;
        }
        // To the bracket below the attribute.
        let end = format!("{}}}", &line[..line.len() - start.len()]);
        while at < lines.len() && lines[at] != end {
            if returns_silently(lines[at]) {
                wrong.push(format!(
                    "{file}:{}: a test that returns early hides that nothing was tested: `return left_out(\"why\")`",
                    at + 1
                ));
            }
            at += 1;
        }
    }
    if is_test_file(file) {
        for (at, line) in lines.iter().enumerate() {
            let said = line.to_ascii_lowercase();
            if said.contains(&["\"", "skipped:"].concat()) {
                wrong.push(format!(
                    "{file}:{}: what is skipped must be counted: `left_out(\"why\")`",
                    at + 1
                ));
            }
        }
    }
    wrong
}

fn is_test_file(file: &str) -> bool {
    file.contains("/tests/") || file.ends_with("/tests.rs")
}

/// A `return` without a value.
fn returns_silently(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.split("return").skip(1).any(|rest| {
        let rest = rest.trim_start();
        rest.starts_with([';', '}', ',']) || rest.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted texts say `LEAVE`, so that the rule does not refuse its own tests.
    fn checked(file: &str, text: &str) -> Vec<String> {
        check(file, &text.replace("LEAVE", "return"))
    }

    fn found(body: &str) -> usize {
        let text = format!("#[test]\nfn a() {{\n{body}\n}}\n");
        checked("crates/a/tests/it/a.rs", &text).len()
    }

    #[test]
    fn planted_tests_that_pass_without_testing_are_refused() {
        for body in [
            "    if !has(\"wrk\") {\n        LEAVE;\n    }",
            "    let Some(dir) = oracle() else { LEAVE };",
            "    let Ok(path) = std::env::var(\"A\") else {\n        LEAVE;\n    };",
            "    match oracle() {\n        None => LEAVE,\n        Some(_) => {}\n    }",
        ] {
            assert_eq!(found(body), 1, "{body}");
        }
        let skipped = ["    eprintln!(\"", "skipped: no node\");"].concat();
        assert_eq!(found(&skipped), 1);
    }

    #[test]
    fn tests_that_say_what_they_leave_out_are_fine() {
        for body in [
            "    if !has(\"wrk\") {\n        return left_out(\"no wrk\");\n    }",
            "    let Some(dir) = oracle() else {\n        return left_out(OFF);\n    };",
            "    let values = (|| { return 1; })();",
        ] {
            assert_eq!(found(body), 0, "{body}");
        }
        // Functions that are no tests return as they like, and so do async tests' neighbours.
        let text = "fn a() {\n    LEAVE;\n}\n\n#[tokio::test(flavor = \"current_thread\")]\nasync fn b() {\n    c();\n}\n\nfn d() {\n    LEAVE;\n}\n";
        assert_eq!(
            checked("crates/a/tests/it/a.rs", text),
            Vec::<String>::new()
        );
    }

    #[test]
    fn tests_inside_of_modules_end_at_their_own_bracket() {
        let text = "mod tests {\n    #[tokio::test]\n    async fn a() {\n        if b {\n            LEAVE;\n        }\n    }\n}\n";
        let wrong = checked("crates/a/src/b.rs", text);
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].starts_with("crates/a/src/b.rs:5: "), "{wrong:?}");
    }
}
