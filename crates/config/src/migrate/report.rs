//! The report, for people and for machines.

use std::fmt::Write;

use super::{Migration, Verdict};
use crate::schema::quoted;

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

impl Migration {
    /// How many keys met that fate.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.report.iter().filter(|r| r.verdict == verdict).count()
    }

    /// One line per key, then the counts.
    pub fn report_text(&self) -> String {
        let width = self.report.iter().map(|r| r.from.len()).max().unwrap_or(0);
        let mut out = String::new();
        for row in &self.report {
            let _ = write!(out, "{:<11}  {:<width$}", row.verdict.word(), row.from);
            if let Some(to) = row.to.as_deref().filter(|to| *to != row.from) {
                let _ = write!(out, "  -> {to}");
            }
            if !row.note.is_empty() {
                let _ = write!(out, "  ({})", row.note);
            }
            let kept = out.trim_end().len();
            out.truncate(kept);
            out.push('\n');
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
        out
    }

    /// The same as one JSON object: `format` and `keys`, a list of objects with `from`, `to`, `verdict` and `note`.
    pub fn report_json(&self) -> String {
        let mut out = format!("{{\"format\":{},\"keys\":[", quoted(self.format.word()));
        for (i, row) in self.report.iter().enumerate() {
            let to = row.to.as_deref().map_or("null".to_owned(), quoted);
            let _ = write!(
                out,
                "{}\n{{\"from\":{},\"to\":{to},\"verdict\":{},\"note\":{}}}",
                if i > 0 { "," } else { "" },
                quoted(&row.from),
                quoted(row.verdict.word()),
                quoted(&row.note),
            );
        }
        out.push_str("\n]}");
        out
    }
}
