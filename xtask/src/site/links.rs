//! Where links of the sources lead: to pages of the site, to files of the repository, or to other hosts.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::page::Page;
use crate::release::REPOSITORY;

/// What is there to link to.
pub(crate) struct Links<'a> {
    root: &'a Path,
    pages: &'a BTreeMap<String, Page>,
    anchors: BTreeMap<&'a str, BTreeSet<String>>,
}

/// A link of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// The address to write.
    Url(String),
    /// An image of the repository: its source, its name in the site, and the address to write.
    Image(String, String, String),
    Broken,
}

impl<'a> Links<'a> {
    pub(crate) fn new(root: &'a Path, pages: &'a BTreeMap<String, Page>) -> Links<'a> {
        let anchors = pages
            .iter()
            .map(|(source, page)| (source.as_str(), page.anchors()));
        Links {
            root,
            pages,
            anchors: anchors.collect(),
        }
    }

    /// Where a link or, `is_image`, an image of a page leads.
    pub(crate) fn resolve(&self, from: &Page, target: &str, is_image: bool) -> Resolved {
        if target.contains("://") || target.starts_with("mailto:") {
            // Images of other hosts would tell them who reads.
            return if is_image {
                Resolved::Broken
            } else {
                Resolved::Url(target.to_owned())
            };
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let Some(source) = join(&from.source, path) else {
            return Resolved::Broken;
        };
        let folder = format!("{source}/README.md");
        let page = self.pages.get(&source).or_else(|| self.pages.get(&folder));
        if let Some(page) = page {
            let is_there = anchor.is_empty() || self.anchors[page.source.as_str()].contains(anchor);
            let hash = if anchor.is_empty() {
                String::new()
            } else {
                format!("#{anchor}")
            };
            let url = format!("{}{hash}", from.to(&page.output));
            return if is_there {
                Resolved::Url(url)
            } else {
                Resolved::Broken
            };
        }
        if !self.root.join(&source).exists() {
            return Resolved::Broken;
        }
        if is_image {
            let name = source.strip_prefix("docs/").unwrap_or(&source).to_owned();
            let url = from.to(&name);
            return Resolved::Image(source, name, url);
        }
        Resolved::Url(format!("{REPOSITORY}/blob/main/{source}"))
    }

    /// The address of the page of a source.
    pub(crate) fn page(&self, from: &Page, source: &str) -> Option<String> {
        self.pages.get(source).map(|page| from.to(&page.output))
    }
}

/// A path relative to a file, as one relative to the repository; `None` if it leads out of that.
fn join(file: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(file.to_owned());
    }
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_files_and_hosts_or_are_broken() {
        let pages: BTreeMap<String, Page> = [
            ("docs/a.md", "# A\n\n## Two words\n"),
            ("docs/sub/README.md", "# B\n[x](../a.md)"),
        ]
        .map(|(source, text)| (source.to_owned(), Page::read(source, text)))
        .into();
        let root = crate::root();
        let links = Links::new(&root, &pages);
        let from = |source: &str, target: &str| links.resolve(&pages[source], target, false);
        let url = |text: &str| Resolved::Url(text.to_owned());
        assert_eq!(
            from("docs/sub/README.md", "../a.md#two-words"),
            url("../a.html#two-words")
        );
        assert_eq!(from("docs/a.md", "#two-words"), url("a.html#two-words"));
        assert_eq!(from("docs/a.md", "sub"), url("sub/index.html"));
        assert_eq!(
            from("docs/a.md", "../NOTICE"),
            url(&format!("{REPOSITORY}/blob/main/NOTICE"))
        );
        assert_eq!(
            from("docs/a.md", "https://example.com/x#y"),
            url("https://example.com/x#y")
        );
        for broken in ["b.md", "a.md#three", "#two", "../../out.md"] {
            assert_eq!(from("docs/a.md", broken), Resolved::Broken, "{broken}");
        }
    }
}
