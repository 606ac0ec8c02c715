//! The configuration file `ogive.yaml`: typed, strict, and with the place of every mistake.
//!
//! A text becomes a tree of nodes with spans ([`yaml`]), `${env.NAME:-default}` is expanded inside its scalars
//! ([`expand`]), and the tree is read into the types of [`options`] by [`decode`]. Reading never stops at the first
//! mistake, and never guesses: an unknown key, a number without its unit or a duplicate key is an error with file,
//! line and column and, where one is near, the key that was meant.
//!
//! Words are those of Apollo Router's configuration wherever it has one, because everybody knows them.
//!
//! Reading order: [`options`] (what can be set, with defaults), `words`, `scalars` and `units` (the values it takes),
//! [`load`] (the entry), `decode`, `expand`, `yaml`, `tree`,
//! [`mod@reference`] (the same options as a table), [`schema`] (as a JSON schema, and as a file).
//! Two further files are read in the same way: [`subgraphs`] (`supergraph.yaml`) and [`checks`].

mod attributes;
pub mod authentication;
pub mod checks;
mod claims;
mod clear_text;
pub mod conditions;
mod contradictions;
pub mod coprocessor;
pub mod credentials;
pub mod decode;
pub mod demand_control;
pub mod documents;
pub mod error_rules;
pub mod event_sources;
pub mod events;
mod expand;
pub mod headers;
mod measured;
pub mod operation_rules;
pub mod options;
pub mod overload;
mod overrides;
pub mod plugins;
pub mod policies;
pub mod rate_limits;
pub mod redaction;
pub mod reference;
mod response_cache;
mod rhai;
mod scalars;
pub mod schema;
pub mod selectors;
pub mod single_connection;
pub mod static_responses;
pub mod store;
pub mod subgraph_authentication;
pub mod subgraph_urls;
pub mod subgraphs;
pub mod subscription;
mod suggest;
mod telemetry_options;
mod template;
pub mod tls;
pub mod traffic;
mod units;
pub mod usage;
mod warnings;
mod words;
pub mod yaml;

use ogive_base::{Diagnostic, SourceId, Span};
use ogive_yaml::{Node, Value};

pub use attributes::*;
pub use authentication::*;
pub use conditions::HookCondition;
pub use coprocessor::*;
pub use decode::Decode;
pub use decode::{OptionDoc, Section};
pub use demand_control::*;
pub use documents::*;
pub use error_rules::ErrorRule;
pub use event_sources::*;
pub use events::*;
pub use headers::{HeaderRule, HeaderSelector, ResponseHeaderRule};
pub use operation_rules::*;
pub use options::*;
pub use overload::*;
pub use overrides::{Override, PREFIX};
pub use plugins::*;
pub use policies::*;
pub use rate_limits::*;
pub use redaction::RedactionRule;
pub use response_cache::*;
pub use rhai::*;
pub use scalars::*;
pub use selectors::{LabelSelector, Place};
pub use single_connection::*;
pub use static_responses::*;
pub use store::*;
pub use subgraph_authentication::*;
pub use subgraph_urls::{SubgraphCondition, SubgraphUrlRule};
pub use subscription::*;
pub use suggest::nearest;
pub use telemetry_options::*;
pub use tls::*;
pub use traffic::*;
pub use units::{ByteSize, Duration, parse_byte_size, parse_duration};
pub use usage::*;
pub use words::*;

/// Codes of this crate's diagnostics.
pub mod codes {
    /// The text is not YAML.
    pub const SYNTAX: &str = "CONFIG_SYNTAX";
    /// A key that no option has.
    pub const UNKNOWN_KEY: &str = "CONFIG_UNKNOWN_KEY";
    /// A key that is written twice.
    pub const DUPLICATE_KEY: &str = "CONFIG_DUPLICATE_KEY";
    /// A value of the wrong type or outside its range.
    pub const INVALID_VALUE: &str = "CONFIG_INVALID_VALUE";
    /// A `${...}` that cannot be expanded.
    pub const EXPANSION: &str = "CONFIG_EXPANSION";
    /// Larger or deeper than any sensible configuration.
    pub const LIMIT: &str = "CONFIG_LIMIT";
    /// A value that is fine by itself and cannot be used here: a file that is missing, for example.
    pub const UNUSABLE: &str = "CONFIG_UNUSABLE";
}

/// Where `${env.NAME}` looks names up: the process environment, or a table in tests.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where values come from that are not in the text. This crate reads neither environment nor files itself.
#[derive(Clone, Copy)]
pub struct Expansion<'a> {
    /// For `${env.NAME}`.
    pub env: Env<'a>,
    /// For `${file.PATH}`: the file's text, or why there is none.
    pub file: &'a dyn Fn(&str) -> Result<String, String>,
}

/// Reads a configuration that refers to no files. Diagnostics point into `source_id`, whose text must be `text`.
/// Every mistake is reported, up to 50 of them.
pub fn load(source_id: SourceId, text: &str, env: Env<'_>) -> Result<Config, Vec<Diagnostic>> {
    let file = |_: &str| Err("files are not read here".to_owned());
    load_with(source_id, text, Expansion { env, file: &file })
}

/// Reads a configuration. Diagnostics point into `source_id`, whose text must be `text`. Every mistake is reported, up
/// to 50 of them.
pub fn load_with(
    source_id: SourceId,
    text: &str,
    from: Expansion<'_>,
) -> Result<Config, Vec<Diagnostic>> {
    match load_whole(source_id, text, from, &[]) {
        (config, errors) if errors.is_empty() => Ok(config),
        (_, errors) => Err(errors),
    }
}

/// The same with values of the environment that win over the text; and what could be read of it in spite of all
/// mistakes, so that it can be looked at further.
pub fn load_whole(
    source_id: SourceId,
    text: &str,
    from: Expansion<'_>,
    overrides: &[Override],
) -> (Config, Vec<Diagnostic>) {
    let mut errors = decode::Errors::new(source_id);
    let config = match yaml::parse(text, &mut errors) {
        Some(mut root) => {
            overrides::apply(&mut root, overrides, &mut errors);
            expand::expand(&mut root, from, &mut errors);
            flatten(&mut root, &mut errors);
            let config = Config::decode(&root, &mut errors).unwrap_or_default();
            contradictions::check(&root, &config, &mut errors);
            config
        }
        None => Config::default(),
    };
    match errors.finish(()) {
        Ok(()) => (config, Vec::new()),
        Err(mut errors) => {
            overrides::redact(&mut errors, overrides);
            errors.iter_mut().for_each(name_section);
            (config, errors)
        }
    }
}

/// Says of an unknown key where it stands, if that is in one other section.
fn name_section(error: &mut Diagnostic) {
    let key = error.message.strip_prefix("unknown key `");
    let key = key.and_then(|rest| rest.strip_suffix('`'));
    let (Some(key), Some(known)) = (key, &error.help) else {
        return;
    };
    if error.code == codes::UNKNOWN_KEY
        && known.starts_with("known keys here")
        && let Some(section) = reference::section_of(key)
    {
        error.help = Some(format!("`{key}` stands in `{section}`; {known}"));
    }
}

/// The keys that a text sets, with dots between their parts; a list counts as one value.
pub fn keys_set(text: &str) -> Vec<String> {
    let mut errors = decode::Errors::new(SourceId(0));
    let mut keys = Vec::new();
    let mut open: Vec<(String, Node)> = yaml::parse(text, &mut errors)
        .map(|root| (String::new(), root))
        .into_iter()
        .collect();
    while let Some((path, node)) = open.pop() {
        match node.value {
            Value::Map(entries) => {
                let below = entries.into_iter();
                open.extend(below.map(|(key, node)| (reference::join(&path, &key.text), node)));
            }
            _ if path.is_empty() => {}
            _ => keys.push(path),
        }
    }
    keys.sort();
    keys
}

/// Where a text sets a key, if it does: `["tls", "supergraph", "key"]`.
pub fn place_of(text: &str, path: &[String]) -> Option<Span> {
    let mut errors = decode::Errors::new(SourceId(0));
    let root = yaml::parse(text, &mut errors)?;
    let mut node = &root;
    for part in path {
        node = match &node.value {
            Value::Map(entries) => &entries.iter().find(|(key, _)| key.text == *part)?.1,
            Value::List(items) => items.get(part.parse::<usize>().ok()?)?,
            Value::Scalar { .. } => return None,
        };
    }
    Some(node.span)
}

#[cfg(test)]
mod tests;
