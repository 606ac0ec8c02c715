//! `cargo xtask site`: the documentation as a folder of static pages.
//!
//! Pages need no other host and no JavaScript; the search needs JavaScript, but no server. Navigation is that of
//! `docs/README.md`, whose sections are readers and whose rows are tasks. A broken link or anchor fails the run. Equal
//! sources give equal bytes.

mod contents;
mod links;
mod page;
mod search;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use self::{contents::Contents, links::Links, page::Page};
use crate::run::target_folder;

/// Largest page: what a reader on a slow line waits for. The table of all keys of the configuration comes near it; servers
/// compress it to a fifth.
const PAGE_MAX: usize = 240_000;

const STYLE: &str = include_str!("style.css");
const SEARCH: &str = include_str!("search.js");
const FIND: &str = include_str!("find.js");

/// Renders the pages into `target/site`, or into the folder after `--output`.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let output = match arguments {
        [] => target_folder(root).join("site"),
        ["--output", folder] => PathBuf::from(folder),
        _ => bail!("usage: cargo xtask site [--output FOLDER]"),
    };
    let site = Site::read(root)?;
    let files = site.render(root)?;
    for (name, bytes) in &files {
        let path = output.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        fs::write(&path, bytes).with_context(|| path.display().to_string())?;
    }
    println!(
        "{} files, {} pages: {}",
        files.len(),
        site.pages.len(),
        output.display()
    );
    Ok(())
}

/// All pages, by the path of their source.
struct Site {
    pages: BTreeMap<String, Page>,
    contents: Contents,
}

impl Site {
    /// Reads the Markdown files of the repository that are documentation.
    fn read(root: &Path) -> Result<Site> {
        let mut sources: Vec<String> = [
            "README.md",
            "ARCHITECTURE.md",
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
        ]
        .map(str::to_owned)
        .to_vec();
        for folder in ["docs", "docs/decisions"] {
            for entry in fs::read_dir(root.join(folder)).with_context(|| folder.to_owned())? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                if name.ends_with(".md") {
                    sources.push(format!("{folder}/{name}"));
                }
            }
        }
        sources.sort();
        let mut pages = BTreeMap::new();
        for source in sources {
            let text = fs::read_to_string(root.join(&source)).with_context(|| source.clone())?;
            let page = Page::read(&source, &text);
            pages.insert(source, page);
        }
        let index = pages.get("docs/README.md").context("no docs/README.md")?;
        let contents = Contents::read(&index.text)?;
        Ok(Site { pages, contents })
    }

    /// Every file of the site: name and bytes. Fails with all broken links, and with pages that are too large.
    fn render(&self, root: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
        let links = Links::new(root, &self.pages);
        let (mut files, mut wrong) = (BTreeMap::new(), Vec::new());
        let mut images = BTreeSet::new();
        for page in self.pages.values() {
            let rendered = page.render(&links, &self.contents);
            wrong.extend(
                rendered
                    .broken
                    .iter()
                    .map(|link| format!("{}: broken link {link}", page.source)),
            );
            images.extend(rendered.images);
            if rendered.html.len() > PAGE_MAX {
                wrong.push(format!(
                    "{}: {} bytes, at most {PAGE_MAX}",
                    page.output,
                    rendered.html.len()
                ));
            }
            files.insert(page.output.clone(), rendered.html.into_bytes());
        }
        for (source, name) in images {
            files.insert(name, fs::read(root.join(&source)).with_context(|| source)?);
        }
        files.insert("style.css".to_owned(), STYLE.into());
        files.insert("search.js".to_owned(), SEARCH.into());
        files.insert("find.js".to_owned(), FIND.into());
        let index = search::index(&self.pages, &self.contents)?;
        files.insert("index.js".to_owned(), index.into_bytes());
        if wrong.is_empty() {
            return Ok(files);
        }
        bail!("{}", wrong.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also the check of all links of the documentation.
    #[test]
    fn the_documentation_renders_without_broken_links_and_without_other_hosts() {
        let root = crate::root();
        let files = Site::read(&root).unwrap().render(&root).unwrap();
        let again = Site::read(&root).unwrap().render(&root).unwrap();
        assert!(files == again);
        for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".html")) {
            let html = std::str::from_utf8(bytes).unwrap();
            for loads in [
                "src=\"http",
                "src=\"//",
                "@import",
                "<link rel=\"stylesheet\" href=\"http",
            ] {
                assert!(!html.contains(loads), "{name} loads from another host");
            }
            assert_eq!(html.matches("<h1").count(), 1, "{name}");
            assert!(
                html.contains("<main id=\"main\">") && html.contains("lang=\"en\""),
                "{name}"
            );
        }
    }

    #[test]
    fn every_key_code_and_metric_has_an_anchor() {
        let root = crate::root();
        let files = Site::read(&root).unwrap().render(&root).unwrap();
        for (page, id) in [
            ("configuration.html", "supergraph.introspection"),
            ("errors.html", "REQUEST_RATE_LIMITED"),
        ] {
            let html = String::from_utf8_lossy(&files[page]);
            assert!(html.contains(&format!("id=\"{id}\"")), "{page}#{id}");
        }
    }
}
