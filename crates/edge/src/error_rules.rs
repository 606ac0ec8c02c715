//! What clients are told of errors in place of what happened (`error_rules`): the first rule that an error fits says it.
//!
//! Errors of single fields are rewritten by the executor as they are reported, so that answers, parts of them and events are
//! treated alike; those of whole requests as they are refused. Operators read of the original.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use ogive_config::{Config, ErrorRule};
use ogive_execute::{ErrorRules, ShownError};
use ogive_json::write_string;
use serde_json::value::RawValue;

/// All rules of a configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct ErrorRewrites(Box<[Rewrite]>);

/// One rule.
#[derive(Clone, PartialEq, Debug)]
struct Rewrite {
    /// None: every code.
    codes: Box<[CodeMatch]>,
    /// None: every subgraph, and errors of nobody.
    subgraphs: Box<[Box<str>]>,
    /// Response keys at or below which it holds.
    path: Box<[Box<str>]>,
    code: Option<Box<str>>,
    message: Option<Box<str>>,
    /// Members to add, written as the executor wants them.
    added: Bytes,
    /// Their names, and those of members to take away.
    gone: Box<[Box<str>]>,
    names_service: bool,
}

#[derive(Clone, PartialEq, Debug)]
enum CodeMatch {
    Exact(Box<str>),
    Prefix(Box<str>),
}

impl ErrorRewrites {
    /// Those of a configuration; `None` if there are none.
    pub fn new(config: &Config) -> Option<Self> {
        let rules: Box<[Rewrite]> = config.error_rules.iter().map(Rewrite::new).collect();
        (!rules.is_empty()).then_some(ErrorRewrites(rules))
    }
}

impl Rewrite {
    fn new(rule: &ErrorRule) -> Self {
        let boxed = |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect();
        let mut added = Vec::new();
        for (name, value) in &rule.set_extensions {
            write_string(&mut added, name);
            added.push(b':');
            // `true`, `3` or `null` as they are, everything else as a text.
            let is_plain = |value: &serde_json::Value| !value.is_array() && !value.is_object();
            match serde_json::from_str(value) {
                Ok(value) if is_plain(&value) && !value.is_string() => {
                    added.extend_from_slice(value.to_string().as_bytes());
                }
                _ => write_string(&mut added, value),
            }
            added.push(b',');
        }
        let gone = rule
            .remove_extensions
            .iter()
            .chain(rule.set_extensions.keys());
        let gone = gone.map(|name| name.as_str().into());
        Rewrite {
            codes: rule.codes.iter().map(|code| CodeMatch::new(code)).collect(),
            subgraphs: boxed(&rule.subgraphs),
            path: rule
                .path
                .iter()
                .flat_map(|path| path.split('.'))
                .map(Into::into)
                .collect(),
            code: rule.set_code.as_deref().map(Into::into),
            message: rule.set_message.as_deref().map(Into::into),
            added: added.into(),
            gone: gone.collect(),
            names_service: !rule.remove_extensions.iter().any(|name| name == "service"),
        }
    }

    fn fits(&self, error: &ShownError<'_>) -> bool {
        let mut codes = self.codes.iter();
        let mut subgraphs = self.subgraphs.iter();
        let at = |name: &str| subgraphs.any(|known| **known == *name);
        let mut steps = self.path.iter().zip(error.path);
        (self.codes.is_empty() || codes.any(|code| code.fits(error.code)))
            && (self.subgraphs.is_empty() || error.subgraph.is_some_and(at))
            && self.path.len() <= error.path.len()
            && steps.all(|(wanted, key)| **wanted == **key)
    }

    fn apply(&self, error: &mut ShownError<'_>) {
        if let Some(code) = &self.code {
            *error.code = Cow::Owned(code.to_string());
        }
        if let Some(message) = &self.message {
            *error.message = Cow::Owned(message.to_string());
        }
        error.names_service &= self.names_service;
        if self.gone.is_empty() {
            return;
        }
        let mut members = without(error.extensions, &self.gone);
        members.extend_from_slice(&self.added);
        *error.extensions = members.into();
    }
}

/// The members that have none of these names.
fn without(members: &[u8], names: &[Box<str>]) -> Vec<u8> {
    let mut out = Vec::new();
    let Some(inner) = members.strip_suffix(b",") else {
        return out;
    };
    let object = [b"{", inner, b"}"].concat();
    // What cannot be read is left out: it was to be changed.
    let read: Result<BTreeMap<String, Box<RawValue>>, _> = serde_json::from_slice(&object);
    for (name, value) in read.unwrap_or_default() {
        if names.iter().any(|gone| **gone == *name) {
            continue;
        }
        write_string(&mut out, &name);
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
        out.push(b',');
    }
    out
}

impl CodeMatch {
    fn new(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(prefix) => CodeMatch::Prefix(prefix.into()),
            None => CodeMatch::Exact(text.into()),
        }
    }
    fn fits(&self, code: &str) -> bool {
        match self {
            CodeMatch::Exact(known) => **known == *code,
            CodeMatch::Prefix(prefix) => code.starts_with(&**prefix),
        }
    }
}

impl ErrorRules for ErrorRewrites {
    fn rewrite(&self, error: &mut ShownError<'_>) {
        let found = self.0.iter().find(|rule| rule.fits(error));
        if let Some(rule) = found {
            rule.apply(error);
        }
    }
}
