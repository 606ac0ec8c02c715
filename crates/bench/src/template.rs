//! `{name}` placeholders in commands and configuration files.
//!
//! Only known names are replaced, so braces of YAML, JSON and JavaScript need no escaping. In commands an unknown
//! placeholder is an error, in files it is text. `{#subgraphs}` to `{/subgraphs}` is repeated for each subgraph, with
//! `{name}`, `{url}` and `{sdl}` (a path) of that one.

use std::collections::BTreeMap;

/// One subgraph as gateways need to know it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SubgraphPlace {
    /// Its name.
    pub name: String,
    /// Where it is served.
    pub url: String,
    /// The path of its SDL.
    pub sdl: String,
}

/// Names and what they stand for.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// By name.
    pub names: BTreeMap<String, String>,
    /// For `{#subgraphs}`.
    pub subgraphs: Vec<SubgraphPlace>,
}

impl Values {
    /// Adds or replaces a name.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.names.insert(name.to_owned(), value.into());
    }

    /// Fills in one argument of a command; the error is the name nobody knows.
    pub fn argument(&self, text: &str) -> Result<String, String> {
        let filled = fill(text, &self.names);
        match unknown(&filled) {
            Some(name) => Err(format!("`{{{name}}}` stands for nothing here")),
            None => Ok(filled),
        }
    }

    /// Fills in a file.
    pub fn file(&self, text: &str) -> String {
        const START: &str = "{#subgraphs}";
        const END: &str = "{/subgraphs}";
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(START) {
            out.push_str(before);
            let (block, after) = after.split_once(END).unwrap_or((after, ""));
            for subgraph in &self.subgraphs {
                let mut names = self.names.clone();
                names.insert("name".into(), subgraph.name.clone());
                names.insert("url".into(), subgraph.url.clone());
                names.insert("sdl".into(), subgraph.sdl.clone());
                out.push_str(&fill(block.strip_prefix('\n').unwrap_or(block), &names));
            }
            rest = after.strip_prefix('\n').unwrap_or(after);
        }
        out.push_str(rest);
        fill(&out, &self.names)
    }
}

fn fill(text: &str, names: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = rest[1..].find('}').and_then(|end| {
            let value = names.get(&rest[1..=end])?;
            Some((value, end + 2))
        });
        match known {
            Some((value, length)) => {
                out.push_str(value);
                rest = &rest[length..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn unknown(text: &str) -> Option<&str> {
    let start = text.find('{')?;
    let end = text[start..].find('}')? + start;
    let name = &text[start + 1..end];
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        let mut values = Values::default();
        values.set("port", "4000");
        for name in ["a", "b"] {
            values.subgraphs.push(SubgraphPlace {
                name: name.into(),
                url: format!("http://{name}"),
                sdl: format!("/{name}.graphql"),
            });
        }
        values
    }

    #[test]
    fn fills_commands_and_refuses_unknown_names() {
        assert_eq!(values().argument("--port={port}").unwrap(), "--port=4000");
        assert!(values().argument("{prot}").unwrap_err().contains("{prot}"));
        assert_eq!(values().argument("{\"a\":1}").unwrap(), "{\"a\":1}");
    }

    #[test]
    fn fills_files_and_repeats_blocks() {
        let text = "listen: {port}\n{#subgraphs}\n- {name}: {url}\n{/subgraphs}\nkeep {this}\n";
        assert_eq!(
            values().file(text),
            "listen: 4000\n- a: http://a\n- b: http://b\nkeep {this}\n"
        );
    }
}
