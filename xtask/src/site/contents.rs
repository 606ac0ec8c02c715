//! The navigation: sections and pages of `docs/README.md`.

use anyhow::{Result, bail};

/// Sections in their order.
pub(crate) struct Contents(Vec<Section>);

/// For one kind of reader.
struct Section {
    title: String,
    pages: Vec<Entry>,
}

/// A page: its title in the navigation, and its source relative to the repository.
struct Entry {
    title: String,
    source: String,
}

impl Contents {
    /// Reads headings of the second level and the first link of every row below them.
    pub(crate) fn read(text: &str) -> Result<Contents> {
        let mut sections: Vec<Section> = Vec::new();
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                sections.push(Section {
                    title: title.to_owned(),
                    pages: Vec::new(),
                });
            }
            if let (Some(section), Some(entry)) = (sections.last_mut(), Entry::of_row(line)) {
                section.pages.push(entry);
            }
        }
        if sections.iter().all(|section| section.pages.is_empty()) {
            bail!("docs/README.md has no sections with tables of pages");
        }
        Ok(Contents(sections))
    }

    /// The number of the section that lists a source, from 0: readers first, maintainers last.
    pub(crate) fn section(&self, source: &str) -> Option<usize> {
        let lists = |section: &Section| section.pages.iter().any(|page| page.source == source);
        self.0.iter().position(lists)
    }

    /// The navigation on a page. `href` gives the link to a source, if it is a page.
    pub(crate) fn html(&self, current: &str, href: impl Fn(&str) -> Option<String>) -> String {
        let mut out = String::new();
        for section in &self.0 {
            out.push_str(&format!("<h2>{}</h2>\n<ul>\n", section.title));
            for entry in &section.pages {
                let Some(href) = href(&entry.source) else {
                    continue;
                };
                let mark = if entry.source == current {
                    " aria-current=\"page\""
                } else {
                    ""
                };
                out.push_str(&format!(
                    "<li><a href=\"{href}\"{mark}>{}</a></li>\n",
                    entry.title
                ));
            }
            out.push_str("</ul>\n");
        }
        out
    }
}

impl Entry {
    /// The entry in `| [title](page.md) | … |`.
    fn of_row(line: &str) -> Option<Entry> {
        let (title, rest) = line.strip_prefix("| [")?.split_once("](")?;
        let (target, _) = rest.split_once(')')?;
        let source = match target.strip_prefix("../") {
            Some(path) => path.to_owned(),
            None if target == "decisions" => "docs/decisions/README.md".to_owned(),
            None => format!("docs/{target}"),
        };
        Some(Entry {
            title: title.to_owned(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_rows_become_links() {
        let text = "# Docs\n\n## Running it\n\n| page | what |\n|---|---|\n| [limits](limits.md) | [x](y.md) |\n\
                    | [architecture](../ARCHITECTURE.md) | |\n";
        let html = Contents::read(text)
            .unwrap()
            .html("docs/limits.md", |source| Some(format!("to:{source}")));
        assert!(html.contains("<h2>Running it</h2>"));
        assert!(html.contains("<a href=\"to:docs/limits.md\" aria-current=\"page\">limits</a>"));
        assert!(html.contains("to:ARCHITECTURE.md") && !html.contains("y.md"));
        let contents = Contents::read(text).unwrap();
        assert_eq!(contents.section("docs/limits.md"), Some(0));
        assert_eq!(contents.section("docs/y.md"), None);
        assert!(Contents::read("# Docs").is_err());
    }
}
