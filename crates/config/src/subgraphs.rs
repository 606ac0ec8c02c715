//! `supergraph.yaml`: where subgraphs are served and where their schemas are, in the format of the `rover` tool.
//!
//! ```yaml
//! federation_version: 2
//! subgraphs:
//!   reviews:
//!     routing_url: http://reviews:4001/graphql
//!     schema:
//!       file: ./reviews.graphql   # or `subgraph_url` and `introspection_headers`, or `sdl`
//! ```

use ogive_base::{Diagnostic, SourceId, Span};
use ogive_yaml::{Node, Value};

use crate::{Expansion, decode::Errors, expand, yaml};

/// Most subgraphs of one list.
pub const SUBGRAPHS_MAX: usize = 2_000;

/// A list of subgraphs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubgraphList {
    /// `federation_version` as written: `1`, `2`, or an exact one such as `=2.9.0`.
    pub federation_version: Option<String>,
    /// The subgraphs in order of the file.
    pub subgraphs: Vec<SubgraphEntry>,
}

/// One subgraph of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubgraphEntry {
    /// Its name.
    pub name: String,
    /// Where it is served; none means the URL its schema is asked at, if there is one.
    pub routing_url: Option<String>,
    /// Where its schema is.
    pub schema: SchemaSource,
}

/// Where a subgraph's schema is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaSource {
    /// An SDL file, relative to the list.
    File(String),
    /// A running subgraph that is asked for its schema.
    Url {
        /// Where.
        url: String,
        /// Headers to send along, names and values.
        headers: Vec<(String, String)>,
    },
    /// The schema itself.
    Sdl(String),
}

/// Reads a list. Diagnostics point into `source_id`, whose text must be `text`; every mistake is reported, up to 50.
pub fn load(
    source_id: SourceId,
    text: &str,
    from: Expansion<'_>,
) -> Result<SubgraphList, Vec<Diagnostic>> {
    let mut errors = Errors::new(source_id);
    let mut list = SubgraphList::default();
    if let Some(mut root) = yaml::parse(text, &mut errors) {
        expand::expand(&mut root, from, &mut errors);
        read(&root, &mut list, &mut errors);
    }
    errors.finish(list)
}

fn read(root: &Node, list: &mut SubgraphList, errors: &mut Errors) {
    let Some(entries) = errors.entries(root) else {
        return;
    };
    let mut seen = false;
    for (key, node) in entries {
        match &*key.text {
            "federation_version" => {
                if let Some(text) = errors.scalar(node, "a version such as `2` or `=2.9.0`") {
                    let number = text.trim_start_matches('=');
                    if !number.starts_with(['1', '2', '0']) || number.contains(char::is_whitespace)
                    {
                        let message =
                            format!("`{text}` is no federation version that can be composed");
                        errors.invalid(node.span, message, "write `2`, or leave the key out");
                    }
                    list.federation_version = Some(text.to_owned());
                }
            }
            "subgraphs" => {
                seen = true;
                let Some(entries) = errors.entries(node) else {
                    continue;
                };
                if entries.len() > SUBGRAPHS_MAX {
                    let message = format!("more than {SUBGRAPHS_MAX} subgraphs");
                    errors.invalid(node.span, message, "");
                }
                for (key, node) in entries.iter().take(SUBGRAPHS_MAX) {
                    let entry = subgraph(&key.text, key.span, node, errors);
                    list.subgraphs.extend(entry);
                }
            }
            _ => errors.unknown_key(key, ["federation_version", "subgraphs"].into_iter()),
        }
    }
    if !seen || list.subgraphs.is_empty() && errors.is_empty() {
        errors.invalid(
            root.span,
            "no subgraphs are listed",
            "write `subgraphs:` and below it, per subgraph, `name: { routing_url: ..., schema: { file: ... } }`",
        );
    }
}

fn subgraph(name: &str, at: Span, node: &Node, errors: &mut Errors) -> Option<SubgraphEntry> {
    let (mut routing_url, mut schema) = (None, None);
    let mut found = false;
    for (key, node) in errors.entries(node)? {
        match &*key.text {
            "routing_url" if node.is_null() => {}
            "routing_url" => routing_url = errors.scalar(node, "a URL").map(str::to_owned),
            "schema" => {
                found = true;
                schema = source(node, errors);
            }
            _ => errors.unknown_key(key, ["routing_url", "schema"].into_iter()),
        }
    }
    if !found {
        errors.invalid(
            at,
            format!("the subgraph `{name}` has no `schema`"),
            "write `schema: { file: ./name.graphql }` or `schema: { subgraph_url: http://... }`",
        );
    }
    Some(SubgraphEntry {
        name: name.to_owned(),
        routing_url,
        schema: schema?,
    })
}

fn source(node: &Node, errors: &mut Errors) -> Option<SchemaSource> {
    const KEYS: [&str; 4] = ["file", "subgraph_url", "introspection_headers", "sdl"];
    let mut source = None;
    let mut headers = Vec::new();
    let mut sources = 0;
    for (key, node) in errors.entries(node)? {
        match &*key.text {
            "file" => {
                sources += 1;
                let text = errors.scalar(node, "a path");
                source = text.map(|t| SchemaSource::File(t.to_owned()));
            }
            "subgraph_url" => {
                sources += 1;
                source = errors.scalar(node, "a URL").map(|t| SchemaSource::Url {
                    url: t.to_owned(),
                    headers: Vec::new(),
                });
            }
            "sdl" => {
                sources += 1;
                let text = errors.scalar(node, "a schema");
                source = text.map(|t| SchemaSource::Sdl(t.to_owned()));
            }
            "introspection_headers" => {
                for (name, node) in errors.entries(node)? {
                    if let Some(value) = errors.scalar(node, "a header value") {
                        headers.push((name.text.clone(), value.to_owned()));
                    }
                }
            }
            "graphref" | "subgraph" => errors.invalid(
                key.span,
                format!(
                    "`{}` needs a schema registry, which is not supported",
                    key.text
                ),
                "fetch the schema into a file and write `file: ./name.graphql`",
            ),
            _ => errors.unknown_key(key, KEYS.into_iter()),
        }
    }
    if sources != 1 && errors.is_empty() {
        let help = "write exactly one of `file`, `subgraph_url` and `sdl`";
        errors.invalid(node.span, "where the schema is must be said once", help);
    }
    match &mut source {
        Some(SchemaSource::Url { headers: own, .. }) => *own = headers,
        _ if !headers.is_empty() => errors.invalid(
            node.span,
            "`introspection_headers` without `subgraph_url` mean nothing",
            "write `subgraph_url`, or remove them",
        ),
        _ => {}
    }
    source
}

/// The items of a list; nothing counts as an empty one, and a single value as a list of one.
pub(crate) fn texts(node: &Node, errors: &mut Errors) -> Vec<String> {
    match &node.value {
        Value::List(items) => items
            .iter()
            .filter_map(|n| errors.scalar(n, "text").map(str::to_owned))
            .collect(),
        _ if node.is_null() => Vec::new(),
        _ => errors
            .scalar(node, "a list of names")
            .map(str::to_owned)
            .into_iter()
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_text(text: &str) -> Result<SubgraphList, String> {
        let from = Expansion {
            env: &|name| (name == "TOKEN").then(|| "secret".to_owned()),
            file: &|_| Err("none".into()),
        };
        load(SourceId(0), text, from).map_err(|errors| errors[0].message.clone())
    }

    #[test]
    fn every_kind_of_source() {
        let list = load_text(
            "federation_version: =2.9.0\nsubgraphs:\n  a:\n    routing_url: http://a\n    schema: { file: ./a.graphql }\n  \
             b:\n    schema:\n      subgraph_url: http://b\n      introspection_headers: { authorization: 'Bearer ${env.TOKEN}' }\n  \
             c:\n    routing_url: ~\n    schema:\n      sdl: |\n        type Query { c: Int }\n",
        )
        .unwrap();
        assert_eq!(list.federation_version.as_deref(), Some("=2.9.0"));
        assert_eq!(
            list.subgraphs[0].schema,
            SchemaSource::File("./a.graphql".into())
        );
        assert_eq!(
            list.subgraphs[1].schema,
            SchemaSource::Url {
                url: "http://b".into(),
                headers: vec![("authorization".into(), "Bearer secret".into())]
            }
        );
        assert_eq!(
            list.subgraphs[2].schema,
            SchemaSource::Sdl("type Query { c: Int }\n".into())
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("", "no subgraphs are listed"),
            ("subgraphs: {}", "no subgraphs are listed"),
            ("subgraph: {}", "unknown key `subgraph`"),
            (
                "subgraphs: { a: { routing_url: x } }",
                "the subgraph `a` has no `schema`",
            ),
            (
                "subgraphs: { a: { schema: {} } }",
                "where the schema is must be said once",
            ),
            (
                "subgraphs: { a: { schema: { file: x, sdl: y } } }",
                "where the schema is must be said once",
            ),
            (
                "subgraphs: { a: { schema: { graphref: g@v, subgraph: a } } }",
                "`graphref` needs a schema registry, which is not supported",
            ),
            (
                "federation_version: three\nsubgraphs: { a: { schema: { file: x } } }",
                "`three` is no federation version that can be composed",
            ),
        ] {
            assert_eq!(load_text(text), Err(message.into()), "{text}");
        }
    }
}
