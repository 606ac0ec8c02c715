//! Attributes that operators add to metrics, as a part of the key of a series; and how many values each of them may have.

use std::{
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
};

use ogive_base::{FastMap, Share, ShareLimits, Shares, Shortage};

use crate::attributes::{Attributes, Signal, kept_name};

/// Stands for all values beyond the limit.
pub(super) const OTHER: &str = "other";

/// Between a series' own name and its attributes, and between those; in no value.
const NEXT: char = '\u{0}';
/// Between name and value.
const IS: char = '\u{1}';

/// The metric that an attribute is of: each has values of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Instrument {
    Request,
    Operation,
    Subgraph,
}

/// What becomes of a value that was not seen before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NewValue {
    /// It is told apart from now on, if there is room, and this client may bring one more; `None` if nobody can tell whose it
    /// is.
    Learn(Option<IpAddr>),
    /// It counts with others: who is refused could take the room of those who are not.
    Other,
}

impl NewValue {
    pub(crate) fn refused(is_refused: bool, client: Option<IpAddr>) -> Self {
        if is_refused {
            NewValue::Other
        } else {
            NewValue::Learn(client)
        }
    }
}

/// The values of each attribute, told apart up to a limit. What the configuration itself says is always told apart.
#[derive(Debug)]
pub(super) struct AttributeValues {
    limits: ShareLimits,
    /// By metric and attribute.
    known: RwLock<FastMap<(Instrument, &'static str), Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// With the place that each has taken.
    values: FastMap<Box<str>, Share<IpAddr>>,
    places: Arc<Shares<IpAddr>>,
    /// Whether it was told that there are more.
    is_told: bool,
}

impl AttributeValues {
    pub(super) fn new(limits: ShareLimits) -> Self {
        AttributeValues {
            limits,
            known: RwLock::default(),
        }
    }

    /// Whether a value is told apart from others.
    fn admits(&self, of: (Instrument, &'static str), value: &str, is_new: NewValue) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&of)
            && (found.values.contains_key(value) || found.is_told)
        {
            return found.values.contains_key(value);
        }
        drop(known);
        let NewValue::Learn(client) = is_new else {
            return false;
        };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let found = known.entry(of).or_default();
        if found.values.contains_key(value) {
            return true;
        }
        match found.places.take(client, 1, self.limits) {
            Ok(place) => {
                found.values.insert(value.into(), place);
                true
            }
            // Others may have further ones.
            Err(Shortage::Own) => false,
            Err(Shortage::All) => {
                if !std::mem::replace(&mut found.is_told, true) {
                    tracing::warn!(
                        attribute = of.1,
                        values = self.limits.all,
                        "an attribute of metrics has too many values: further ones are counted as `other`"
                    );
                }
                false
            }
        }
    }

    /// The name of a series with the attributes of metrics; `None` if there are none.
    pub(super) fn key(
        &self,
        instrument: Instrument,
        name: &str,
        noted: Option<&Attributes>,
        is_new: NewValue,
    ) -> Option<String> {
        let mut attributes = noted?.with_origin(Signal::Metric).peekable();
        attributes.peek()?;
        let mut key = name.to_owned();
        for (name, value, is_noted) in attributes {
            let value = value.replace([NEXT, IS], " ");
            let is_known = !is_noted || self.admits((instrument, name), &value, is_new);
            key.push(NEXT);
            key.push_str(name);
            key.push(IS);
            key.push_str(if is_known { &value } else { OTHER });
        }
        Some(key)
    }
}

/// The series' own name and its attributes.
pub(super) fn read(key: &str) -> (&str, Vec<(&'static str, String)>) {
    let mut parts = key.split(NEXT);
    let name = parts.next().unwrap_or_default();
    let attributes = parts.filter_map(|part| part.split_once(IS));
    let attributes = attributes.map(|(name, value)| (kept_name(name), value.to_owned()));
    (name, attributes.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::AttributeName;

    #[test]
    fn values_beyond_the_limit_are_counted_together() {
        let names: Arc<[AttributeName]> = [AttributeName {
            name: kept_name("tenant"),
            signal: Signal::Metric,
            default: Some("none".into()),
        }]
        .into();
        let values = AttributeValues::new(ShareLimits::of(2, 50));
        let of = |instrument, value: Option<&str>| {
            let mut noted = Attributes::new(&names);
            if let Some(value) = value {
                noted.note(0, value);
            }
            let key = values
                .key(instrument, "Shop", Some(&noted), NewValue::Learn(None))
                .unwrap();
            let (name, attributes) = read(&key);
            assert_eq!((name, attributes[0].0), ("Shop", "tenant"));
            attributes[0].1.clone()
        };
        let key = |value: &str| of(Instrument::Request, Some(value));
        let found: Vec<String> = ["a", "b\u{0}c", "d", "e", "a", "b\u{0}c"].map(key).into();
        assert_eq!(found, ["a", "b c", OTHER, OTHER, "a", "b c"]);
        // What the configuration says takes no place of another, and other metrics have places of their own.
        assert_eq!(of(Instrument::Request, None), "none");
        assert_eq!(of(Instrument::Operation, Some("d")), "d");
        let nothing: Arc<[AttributeName]> = [].into();
        let nothing = Attributes::new(&nothing);
        assert_eq!(
            values.key(
                Instrument::Request,
                "Shop",
                Some(&nothing),
                NewValue::Learn(None)
            ),
            None
        );
        let none = values.key(Instrument::Request, "Shop", None, NewValue::Learn(None));
        assert_eq!(none, None);
        assert_eq!(read("Shop"), ("Shop", Vec::new()));
    }

    #[test]
    fn who_is_refused_takes_nobody_s_room() {
        let values = AttributeValues::new(ShareLimits::of(1, 50));
        let of = (Instrument::Request, kept_name("app"));
        assert!(!values.admits(of, "forged", NewValue::Other));
        assert!(values.admits(of, "checkout", NewValue::Learn(None)));
        assert!(values.admits(of, "checkout", NewValue::Other));
        assert!(!values.admits(of, "forged", NewValue::Learn(None)));
    }
}
