//! Attributes that an operator adds to log lines, spans and metrics. What their values are is found out elsewhere; here is
//! where they are kept until a request is done, and what they are called.
//!
//! Names come from the configuration, so there are few: each is kept for the life of the process, as the names of the
//! gateway's own attributes are.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use ogive_base::bounded;

use crate::credentials::without_tokens;

/// Longest value in bytes.
pub const VALUE_MAX: usize = 256;

/// Who shows an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// A line of the access log.
    Log,
    /// A span.
    Span,
    /// A metric.
    Metric,
}

/// One attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttributeName {
    /// Its name.
    pub name: &'static str,
    /// Who shows it.
    pub signal: Signal,
    /// What it says if nothing is noted.
    pub default: Option<Box<str>>,
}

/// A name of the configuration, kept for good.
pub fn kept_name(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.into());
    names.insert(kept);
    kept
}

/// What is noted of one request, operation or request to a subgraph.
#[derive(Clone, Debug)]
pub struct Attributes {
    names: Arc<[AttributeName]>,
    /// In the order of the names.
    values: Box<[Option<Box<str>>]>,
}

impl Attributes {
    /// Nothing is noted yet.
    pub fn new(names: &Arc<[AttributeName]>) -> Self {
        Attributes {
            values: names.iter().map(|_| None).collect(),
            names: Arc::clone(names),
        }
    }
    /// Notes the value of the attribute of this number.
    pub fn note(&mut self, number: usize, value: &str) {
        if let Some(place) = self.values.get_mut(number) {
            // What looks like a token is none of ours to show, wherever it was found.
            *place = Some(bounded(&without_tokens(value), VALUE_MAX).into());
        }
    }
    /// Whether it is noted.
    pub fn has(&self, number: usize) -> bool {
        self.values.get(number).is_some_and(Option::is_some)
    }
    /// What is shown there, defaults filled in.
    pub fn of(&self, signal: Signal) -> impl Iterator<Item = (&'static str, &str)> {
        self.with_origin(signal)
            .map(|(name, value, _)| (name, value))
    }
    /// The same, and whether a value was noted, which there may be any number of.
    pub(crate) fn with_origin(
        &self,
        signal: Signal,
    ) -> impl Iterator<Item = (&'static str, &str, bool)> {
        let all = self.names.iter().zip(&self.values);
        let all = all.filter(move |(name, _)| name.signal == signal);
        all.filter_map(|(name, value)| {
            let shown = value.as_deref().or(name.default.as_deref())?;
            Some((name.name, shown, value.is_some()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_noted_has_its_default_or_is_left_out() {
        let name = |name, signal, default: Option<&str>| AttributeName {
            name: kept_name(name),
            signal,
            default: default.map(Into::into),
        };
        let names: Arc<[AttributeName]> = [
            name("user", Signal::Log, Some("nobody")),
            name("tenant", Signal::Log, None),
            name("user", Signal::Span, None),
        ]
        .into();
        let mut noted = Attributes::new(&names);
        let of = |noted: &Attributes, signal| -> Vec<String> {
            let all = noted.of(signal);
            all.map(|(name, value)| format!("{name}={value}")).collect()
        };
        assert_eq!(of(&noted, Signal::Log), ["user=nobody"]);
        noted.note(0, "ida");
        noted.note(2, &"x".repeat(1_000));
        noted.note(9, "not there");
        noted.note(1, "of eyJhbGciOiJFZERTQSJ9.e30.c2lnbmF0dXJl and eyJ");
        assert_eq!(of(&noted, Signal::Log)[1], "tenant=of [redacted] and eyJ");
        noted.note(1, "");
        assert!(noted.has(0));
        assert!(of(&noted, Signal::Span)[0].len() <= VALUE_MAX + "user=".len());
        assert!(of(&noted, Signal::Metric).is_empty());
        assert!(std::ptr::eq(kept_name("user"), kept_name("user")));
    }
}
