//! The report, for people and for machines.

use std::fmt::Write;

use ogive_config::schema::quoted;

use super::{Format, Lost, Migration, ReportRow, Verdict, nodes, write};

/// Most lines of a lost protection that are repeated in the result.
const LINES_MAX: usize = 40;

/// What the result says about protections that are lost, as comments.
pub(crate) fn comments(format: Format, lost: &[Lost]) -> String {
    if lost.is_empty() {
        return String::new();
    }
    let product = format.product();
    let mut out = format!(
        "#\n# NOT PROTECTED AS BEFORE: what follows protected {product}, or may have, and nothing below does.\n\
         # Bring each of these over by hand, or put something in front, before anybody is served.\n"
    );
    for lost in lost {
        let _ = writeln!(
            out,
            "#\n# {}: {}",
            one_line(&lost.path),
            one_line(&lost.why)
        );
        let Some(value) = &lost.value else { continue };
        let mut tree = nodes::map();
        nodes::set_key(&mut tree, &lost.path, value.clone());
        let text = write::yaml(&tree);
        for line in text.lines().take(LINES_MAX) {
            let _ = writeln!(out, "#   {}", one_line(line));
        }
        if text.lines().count() > LINES_MAX {
            out.push_str("#   ...\n");
        }
    }
    out.push_str("#\n");
    out
}

/// Nothing that is foreign ends a comment.
fn one_line(text: &str) -> String {
    let ends = |c: char| c.is_control() || matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}');
    text.replace(ends, " ")
}

impl Verdict {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Kept => "kept",
            Verdict::Renamed => "renamed",
            Verdict::Added => "added",
            Verdict::NotNeeded => "not needed",
            Verdict::Unsupported => "unsupported",
        }
    }
}

/// Columns that a line takes, unless a word is longer.
const COLUMNS: usize = 120;
/// Where keys and notes begin.
const INDENT: usize = 13;

/// A text in lines of at most 120 columns. The first begins with `head`, the others with as many spaces and two more.
pub fn wrapped(head: &str, text: &str) -> String {
    let mut out = String::new();
    let mut line = head.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            let _ = writeln!(out, "{line}");
            line = " ".repeat(head.chars().count() + 2);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    let _ = writeln!(out, "{}", line.trim_end());
    out
}

/// One key: its verdict, where it is from and goes to, and a note.
fn row_text(row: &ReportRow) -> String {
    let keys = match (row.from.as_str(), row.to.as_deref()) {
        (from, None) => from.to_owned(),
        ("", Some(to)) => format!("-> {to}"),
        (from, Some(to)) if from == to => from.to_owned(),
        (from, Some(to)) => format!("{from} -> {to}"),
    };
    let note = match row.note.as_str() {
        "" => String::new(),
        note => format!(" ({note})"),
    };
    let head = format!("{:<INDENT$}", row.verdict.word());
    wrapped(&head, &format!("{keys}{note}"))
}

impl Migration {
    /// How many keys met that fate.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.report.iter().filter(|r| r.verdict == verdict).count()
    }

    /// How many protections could not be brought over.
    pub fn protections_lost(&self) -> usize {
        self.report.iter().filter(|r| r.protection).count()
    }

    /// Protections that are lost, then what else is unsupported, then all other keys, then the counts.
    pub fn report_text(&self) -> String {
        let mut out = String::new();
        let lost = self.protections_lost();
        if lost > 0 {
            let product = self.format.product();
            let _ = writeln!(
                out,
                "NOT PROTECTED AS BEFORE: of {product}'s configuration, these are lost"
            );
        }
        let unsupported = self.count(Verdict::Unsupported);
        for (at, row) in self.report.iter().enumerate() {
            if at > 0 && (at == lost || at == unsupported) {
                out.push('\n');
            }
            out.push_str(&row_text(row));
        }
        let _ = writeln!(
            out,
            "\n{}: {} kept, {} renamed, {} added, {} not needed, {} unsupported",
            self.format.product(),
            self.count(Verdict::Kept),
            self.count(Verdict::Renamed),
            self.count(Verdict::Added),
            self.count(Verdict::NotNeeded),
            self.count(Verdict::Unsupported),
        );
        if lost > 0 {
            let _ = writeln!(
                out,
                "{lost} protection{} lost; bring what is lost over by hand, or accept that with --accept-unsupported",
                if lost == 1 { " is" } else { "s are" }
            );
        }
        out
    }

    /// The report as one JSON object: `format`, `protections_lost`, `not_here`, `warnings`, and `keys`, a list of objects
    /// with `from`, `to`, `verdict`, `protection` and `note`.
    pub fn report_json(&self, not_here: &[String], warnings: &[String]) -> String {
        let listed = |texts: &[String]| {
            let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            texts.join(",")
        };
        let mut out = format!(
            "{{\"format\":{},\"protections_lost\":{},\"not_here\":[{}],\"warnings\":[{}],\"keys\":[",
            quoted(self.format.word()),
            self.protections_lost(),
            listed(not_here),
            listed(warnings),
        );
        for (i, row) in self.report.iter().enumerate() {
            let to = row.to.as_deref().map_or("null".to_owned(), quoted);
            let _ = write!(
                out,
                "{}\n{{\"from\":{},\"to\":{to},\"verdict\":{},\"protection\":{},\"note\":{}}}",
                if i > 0 { "," } else { "" },
                quoted(&row.from),
                quoted(row.verdict.word()),
                row.protection,
                quoted(&row.note),
            );
        }
        out.push_str("\n]}");
        out
    }
}
