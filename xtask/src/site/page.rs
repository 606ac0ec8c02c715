//! One page: Markdown to HTML, with an anchor at every heading and at every row that is named by a word of code.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::{
    contents::Contents,
    links::{Links, Resolved},
};

const TEMPLATE: &str = include_str!("page.html");

/// A page before it is rendered.
pub(crate) struct Page {
    /// The path of the source in the repository.
    pub(crate) source: String,
    /// The path of the page in the site.
    pub(crate) output: String,
    pub(crate) title: String,
    pub(crate) text: String,
}

/// A page as it is written.
pub(crate) struct Rendered {
    pub(crate) html: String,
    /// Links that lead nowhere.
    pub(crate) broken: Vec<String>,
    /// Images: source and name in the site.
    pub(crate) images: BTreeSet<(String, String)>,
}

/// A part of a page that a search finds: what stands below a heading, or a row of a table that has a name.
pub(crate) struct Part {
    /// Empty for what stands before the first heading.
    pub(crate) anchor: String,
    pub(crate) title: String,
    /// All words, code included.
    pub(crate) text: String,
    /// The beginning of the prose, for the list of results; about [`EXCERPT_MAX`] bytes.
    pub(crate) excerpt: String,
    pub(crate) is_row: bool,
}

/// Bytes after which an excerpt takes no further text.
const EXCERPT_MAX: usize = 120;

impl Page {
    pub(crate) fn read(source: &str, text: &str) -> Page {
        let title = text
            .lines()
            .find_map(|line| line.strip_prefix("# "))
            .unwrap_or(source);
        Page {
            source: source.to_owned(),
            output: output(source),
            title: title.replace('`', ""),
            text: text.to_owned(),
        }
    }

    fn events(&self) -> Vec<Event<'_>> {
        Parser::new_ext(
            &self.text,
            Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH,
        )
        .collect()
    }

    /// Everything that a link to this page can name.
    pub(crate) fn anchors(&self) -> BTreeSet<String> {
        let events = self.events();
        let headings = headings(&events).into_values();
        headings.chain(rows(&events).into_values()).collect()
    }

    /// The relative address of a file of the site.
    pub(crate) fn to(&self, output: &str) -> String {
        let (mut from, mut to) = (
            self.output.split('/').peekable(),
            output.split('/').peekable(),
        );
        while from.peek() == to.peek() && from.clone().count() > 1 && to.clone().count() > 1 {
            from.next();
            to.next();
        }
        let up = "../".repeat(from.count() - 1);
        let down: Vec<&str> = to.collect();
        format!("{up}{}", down.join("/"))
    }

    /// The page's HTML.
    pub(crate) fn render(&self, links: &Links<'_>, contents: &Contents) -> Rendered {
        let events = self.events();
        let (headings, rows) = (headings(&events), rows(&events));
        let (mut broken, mut images) = (Vec::new(), BTreeSet::new());
        let mut resolve = |target: CowStr<'_>, is_image: bool| -> CowStr<'static> {
            match links.resolve(self, &target, is_image) {
                Resolved::Url(url) => url.into(),
                Resolved::Image(source, name, url) => {
                    images.insert((source, name));
                    url.into()
                }
                Resolved::Broken => {
                    broken.push(target.to_string());
                    "".into()
                }
            }
        };
        let mut out = Vec::new();
        let mut toc = String::new();
        for (at, event) in events.iter().cloned().enumerate() {
            let event = match event {
                Event::Start(Tag::Heading { level, .. }) => {
                    let id = headings.get(&at).cloned().unwrap_or_default();
                    if level == HeadingLevel::H2 {
                        let title = escape(&plain(&events[at..], TagEnd::Heading(level)));
                        toc.push_str(&format!("<li><a href=\"#{id}\">{title}</a></li>\n"));
                    }
                    Event::Html(format!("<{level} id=\"{id}\">").into())
                }
                Event::Start(Tag::Link {
                    link_type,
                    dest_url,
                    title,
                    id,
                }) => Event::Start(Tag::Link {
                    link_type,
                    dest_url: resolve(dest_url, false),
                    title,
                    id,
                }),
                Event::Start(Tag::Image {
                    link_type,
                    dest_url,
                    title,
                    id,
                }) => Event::Start(Tag::Image {
                    link_type,
                    dest_url: resolve(dest_url, true),
                    title,
                    id,
                }),
                // A wide table scrolls by itself, with the keyboard, too.
                Event::Start(Tag::Table(columns)) => {
                    out.push(Event::Html(
                        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"table\">"
                            .into(),
                    ));
                    Event::Start(Tag::Table(columns))
                }
                Event::End(TagEnd::Table) => {
                    out.push(Event::End(TagEnd::Table));
                    Event::Html("</div>\n".into())
                }
                Event::Start(Tag::TableCell) if rows.contains_key(&at) => {
                    Event::InlineHtml(format!("<td id=\"{}\">", escape(&rows[&at])).into())
                }
                event => event,
            };
            out.push(event);
        }
        let mut body = String::new();
        html::push_html(&mut body, out.into_iter());
        // So does a wide block of code.
        let body = body.replace("<pre>", "<pre tabindex=\"0\">");
        let html = self.fill(&body, &toc, contents, links);
        Rendered {
            html,
            broken,
            images,
        }
    }

    fn fill(&self, body: &str, toc: &str, contents: &Contents, links: &Links<'_>) -> String {
        let nav = contents.html(&self.source, |source| links.page(self, source));
        let toc = match toc {
            "" => String::new(),
            toc => {
                format!("<nav class=\"toc\" aria-label=\"On this page\">\n<ul>\n{toc}</ul>\n</nav>")
            }
        };
        // Below the title, so that a phone shows the title first.
        let (title, rest) = body.split_once("</h1>\n").unwrap_or(("", body));
        let body = format!("{title}</h1>\n{toc}\n{rest}");
        let root = "../".repeat(self.output.matches('/').count());
        // The body comes last: it may contain the words that are filled in.
        [
            ("{{title}}", escape(&self.title)),
            ("{{root}}", root),
            ("{{nav}}", nav),
            ("{{body}}", body),
        ]
        .iter()
        .fold(TEMPLATE.to_owned(), |html, (name, value)| {
            html.replace(name, value)
        })
    }

    /// The parts that a search finds: the text below each heading, and each row that has a name.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let events = self.events();
        let (headings, rows) = (headings(&events), rows(&events));
        let mut parts = vec![Part::new("", &self.title, false)];
        let (mut section, mut current, mut is_prose) = (0, 0, true);
        for (at, event) in events.iter().enumerate() {
            match event {
                Event::Start(Tag::Heading { level, .. }) => {
                    is_prose = false;
                    if *level > HeadingLevel::H1 {
                        let title = plain(&events[at..], TagEnd::Heading(*level));
                        (section, current) = (parts.len(), parts.len());
                        parts.push(Part::new(&headings[&at], &title, false));
                    }
                }
                Event::Start(Tag::TableCell) if rows.contains_key(&at) => {
                    current = parts.len();
                    parts.push(Part::new(&rows[&at], &rows[&at], true));
                }
                Event::Start(Tag::CodeBlock(_) | Tag::TableHead) => is_prose = false,
                Event::End(TagEnd::Heading(_)) => {
                    parts[current].add(" ", is_prose);
                    is_prose = true;
                }
                Event::End(TagEnd::CodeBlock | TagEnd::TableHead) => is_prose = true,
                // What follows a table belongs to its section, not to its last row.
                Event::End(TagEnd::Table) => current = section,
                Event::Text(text) | Event::Code(text) => parts[current].add(text, is_prose),
                Event::SoftBreak
                | Event::End(TagEnd::Paragraph | TagEnd::TableCell | TagEnd::Item) => {
                    parts[current].add(" ", is_prose);
                }
                _ => {}
            }
        }
        parts
    }
}

impl Part {
    fn new(anchor: &str, title: &str, is_row: bool) -> Part {
        Part {
            anchor: anchor.to_owned(),
            title: title.to_owned(),
            text: String::new(),
            excerpt: String::new(),
            is_row,
        }
    }

    fn add(&mut self, text: &str, is_prose: bool) {
        self.text.push_str(text);
        if is_prose && self.excerpt.len() < EXCERPT_MAX {
            self.excerpt.push_str(text);
        }
    }
}

/// The name of a page: `docs/x.md` is `x.html`, `README.md` in a folder its `index.html`.
fn output(source: &str) -> String {
    let path = match source {
        "README.md" => "ogive.md".to_owned(),
        _ => source
            .strip_prefix("docs/")
            .unwrap_or(source)
            .to_lowercase(),
    };
    let path = path.replace("readme.md", "index.md");
    path.strip_suffix(".md")
        .map_or(path.clone(), |stem| format!("{stem}.html"))
}

/// The text up to an end.
fn plain(events: &[Event<'_>], end: TagEnd) -> String {
    let inside = events
        .iter()
        .take_while(|event| !matches!(event, Event::End(tag) if *tag == end));
    inside
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
            _ => None,
        })
        .collect()
}

/// Anchors of headings, by the position of their event: as GitHub makes them, so links hold in both places.
fn headings(events: &[Event<'_>]) -> BTreeMap<usize, String> {
    let (mut out, mut seen) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
    for (at, event) in events.iter().enumerate() {
        if let Event::Start(Tag::Heading { level, .. }) = event {
            let slug = slug(&plain(&events[at..], TagEnd::Heading(*level)));
            let count = seen.entry(slug.clone()).or_default();
            let anchor = if *count == 0 {
                slug
            } else {
                format!("{slug}-{count}")
            };
            *count += 1;
            out.insert(at, anchor);
        }
    }
    out
}

fn slug(title: &str) -> String {
    let title = title.trim().to_lowercase();
    let kept = title
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Anchors of table rows by the position of their first cell: keys, codes, metrics. The first row with a name has it.
fn rows(events: &[Event<'_>]) -> BTreeMap<usize, String> {
    let (mut out, mut seen) = (
        BTreeMap::new(),
        headings(events).into_values().collect::<BTreeSet<_>>(),
    );
    for (at, window) in events.windows(4).enumerate() {
        if let [
            Event::Start(Tag::TableRow),
            Event::Start(Tag::TableCell),
            Event::Code(name),
            Event::End(TagEnd::TableCell),
        ] = window
            && !name.contains([' ', '"'])
            && seen.insert(name.to_string())
        {
            out.insert(at + 1, name.to_string());
        }
    }
    out
}

/// Text as HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_github_and_of_rows() {
        let page = Page::read(
            "docs/x.md",
            "# `ogive`: X\n\n## A & b, `c`\n\n## A & b, `c`\n\n| key | what |\n|---|---|\n| `a.b` | x |\n| two words | y |\n",
        );
        let anchors: Vec<String> = page.anchors().into_iter().collect();
        assert_eq!(anchors, ["a--b-c", "a--b-c-1", "a.b", "ogive-x"]);
        assert_eq!(page.title, "ogive: X");
    }

    #[test]
    fn sections_and_rows_with_a_name_are_found() {
        let text = "# T\nstart\n\n## S\n\n| key | what |\n|---|---|\n| `a.b` | row |\n\nafter `x`, y\n\n```\ncode\n```\n";
        let parts = Page::read("docs/x.md", text).parts();
        let found: Vec<_> = parts
            .iter()
            .map(|part| {
                (
                    part.anchor.as_str(),
                    part.text.trim(),
                    part.excerpt.trim(),
                    part.is_row,
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("", "T start", "start", false),
                ("s", "S key what after x, y code", "after x, y", false),
                ("a.b", "a.b row", "a.b row", true),
            ]
        );
    }

    #[test]
    fn addresses_are_relative() {
        let page = |source: &str| Page::read(source, "");
        assert_eq!(page("docs/a.md").to("b.html"), "b.html");
        assert_eq!(page("docs/decisions/0001-x.md").to("a.html"), "../a.html");
        assert_eq!(
            page("docs/decisions/0001-x.md").to("decisions/index.html"),
            "index.html"
        );
        assert_eq!(
            page("docs/a.md").to("decisions/index.html"),
            "decisions/index.html"
        );
        assert_eq!(page("README.md").output, "ogive.html");
        assert_eq!(page("docs/README.md").output, "index.html");
    }
}
