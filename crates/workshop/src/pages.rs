//! `ogive explain CODE`: the page of every code that any part of Ogive reports. Needs no network.

mod rows;

use std::fmt::Write;

use ogive_compose::codes::{self as compose, ELSEWHERE, Example, Kind, Level};
use ogive_failure::{ErrorCode, Origin};
use ogive_schema::suggest::suggestions;

use crate::{diff, lint};
use rows::ROWS;

/// The page of a code, in any case; the error names codes that are close.
pub fn page(code: &str) -> Result<String, String> {
    let code = code.to_ascii_uppercase();
    let mut sections = Vec::new();
    sections.extend(compose::explain(&code).iter().map(composition));
    if let Some(code) = ErrorCode::find(&code) {
        sections.push(answer(code));
    }
    if let Some(kind) = diff::KINDS.iter().find(|k| k.code == code) {
        sections.push(format!(
            "{code}, a {} change of `ogive diff` and `ogive check`\n\n  {}\n",
            kind.impact.as_str(),
            kind.summary
        ));
    }
    if let Some(rule) = lint::RULES.iter().find(|r| r.id == code) {
        sections.push(format!(
            "{code}, a rule of `ogive lint`; its level is {} unless `checks.yaml` says otherwise\n\n  {}\n\nBad\n\n  {}\n\nGood\n\n  {}\n",
            format!("{:?}", rule.level).to_lowercase(),
            rule.summary,
            rule.bad,
            rule.good
        ));
    }
    for (part, rows) in ROWS {
        for (_, meaning, remedy) in rows.iter().filter(|(known, ..)| *known == code) {
            sections.push(format!(
                "{code}, {part}\n\n  {meaning}\n\nWhat to do\n\n  {remedy}\n"
            ));
        }
    }
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(c, _)| *c == code)
        && sections.is_empty()
    {
        sections.push(format!(
            "{code}, a code of other tools that Ogive never raises\n\n  Instead: {instead}.\n"
        ));
    }
    if !sections.is_empty() {
        return Ok(sections.join("\n"));
    }
    let known = all();
    let near = suggestions(&code, known.iter().map(|(c, _)| *c));
    Err(match near.first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`ogive explain codes` lists every code".into(),
    })
}

/// Every code with one sentence, in order of the parts that report them.
pub fn all() -> Vec<(&'static str, &'static str)> {
    let mut out: Vec<(&str, &str)> = Vec::new();
    out.extend(compose::pages().map(|p| (p.code, p.title)));
    let answers = ErrorCode::ALL.iter();
    out.extend(answers.map(|code| (code.as_str(), code.meaning())));
    out.extend(diff::KINDS.iter().map(|k| (k.code, k.summary)));
    out.extend(lint::RULES.iter().map(|r| (r.id, r.summary)));
    let rows = ROWS.iter().flat_map(|(_, rows)| rows.iter());
    out.extend(rows.map(|(code, meaning, _)| (*code, *meaning)));
    let mut seen: Vec<&str> = Vec::new();
    out.retain(|(code, _)| {
        let new = !seen.contains(code);
        seen.push(code);
        new
    });
    out
}

fn composition(page: &compose::Page) -> String {
    let kind = match page.kind {
        Kind::Error => "an error of composition",
        Kind::Hint(Level::Warn) => "a warning of composition",
        Kind::Hint(Level::Info) => "a hint of composition",
        Kind::Hint(Level::Debug) => "a quiet hint of composition",
    };
    let mut out = format!(
        "{}, {kind}\n\n  {}\n  {}\n\nWhat to do\n\n  {}\n",
        page.code, page.title, page.meaning, page.remedy
    );
    out.push_str("\nBad\n\n");
    example(&page.bad, &mut out);
    for said in page.bad.diagnostics(page.code).take(1) {
        let _ = writeln!(out, "  says\n\n{}", indented(said));
    }
    out.push_str("\nGood\n\n");
    example(&page.good, &mut out);
    out
}

fn example(example: &Example, out: &mut String) {
    for file in example.files {
        let _ = writeln!(
            out,
            "  # {}.graphql\n{}\n",
            file.name,
            indented(file.sdl.trim_end())
        );
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            if line.is_empty() {
                String::new()
            } else {
                format!("  {line}")
            }
        })
        .collect();
    lines.join("\n")
}

fn answer(code: ErrorCode) -> String {
    let who = match code.origin() {
        Origin::Client => "the client",
        Origin::Subgraph => "a subgraph",
        Origin::Gateway => "the gateway",
    };
    let passes = if code.is_transient() {
        "; the same request may be answered a while later"
    } else {
        ""
    };
    let shown = serde_json::json!({ "code": code.as_str() });
    let bad = serde_json::json!({ "errors": [{ "message": "…", "extensions": shown }] });
    format!(
        "{code}, an error in the gateway's answers\n\n  {}\n  Who has to act: {who}{passes}. \
         HTTP status when the whole request fails with it: {}.\n\nWhat to do\n\n  {}\n\nLooks like\n\n  {bad}\n",
        code.meaning(),
        code.status(),
        code.remedy()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page() {
        let all = all();
        assert!(all.len() > 150, "{}", all.len());
        for (code, _) in all {
            let page = page(&code.to_lowercase()).unwrap();
            assert!(page.starts_with(code), "{page}");
        }
    }

    /// Found by a first user: `ogive operations check` prints these.
    #[test]
    fn codes_of_documents_have_pages() {
        for code in ["UNNAMED_OPERATION", "UNKNOWN_FRAGMENT", "DYNAMIC_DOCUMENT"] {
            assert!(page(code).unwrap().contains("the sources of an app"));
        }
    }

    #[test]
    fn pages_of_composition_have_both_examples() {
        for code in compose::pages() {
            let page = page(code.code).unwrap();
            assert!(
                page.contains("\nBad\n\n  # ") && page.contains("\nGood\n\n  # "),
                "{page}"
            );
            assert!(page.contains("  says\n"), "{page}");
        }
        assert_eq!(
            page("INVALID_FIELD_SHARNG").unwrap_err(),
            "did you mean `INVALID_FIELD_SHARING`?"
        );
    }
}
