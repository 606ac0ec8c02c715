//! What became of a text that is looked at again and again: one event, logged and counted in one place.
//!
//! A look that finds nothing new is no event. What cannot be used is told once, however often it is looked at, and counted
//! once; what was there before goes on.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Most texts whose last failure is remembered; it is told again of those beyond.
const FAILURES_MAX: usize = 1_024;

/// Which text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SourceKind {
    /// The file of API keys.
    ApiKeys,
    /// Certificates and their keys, of the listener or towards a subgraph.
    Certificates,
    /// The configuration, with the supergraph and the manifests that it names.
    Configuration,
    /// Trusted documents.
    Documents,
    /// Keys by which tokens are proved.
    KeySet,
    /// Keys that requests to subgraphs are signed with.
    SigningKey,
    /// The supergraph.
    Supergraph,
}

impl SourceKind {
    /// All of them.
    pub const ALL: [SourceKind; 7] = [
        SourceKind::ApiKeys,
        SourceKind::Certificates,
        SourceKind::Configuration,
        SourceKind::Documents,
        SourceKind::KeySet,
        SourceKind::SigningKey,
        SourceKind::Supergraph,
    ];
    /// Its name, for people and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            SourceKind::ApiKeys => "API keys",
            SourceKind::Certificates => "certificates",
            SourceKind::Configuration => "configuration",
            SourceKind::Documents => "documents",
            SourceKind::KeySet => "key set",
            SourceKind::SigningKey => "signing key",
            SourceKind::Supergraph => "supergraph",
        }
    }
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceResult<'a> {
    /// It is the one before, and there is nothing wrong with it.
    Same,
    /// It is used from now on.
    Taken,
    /// It did not come, or cannot be used, for this reason; the last good one goes on.
    Kept(&'a str),
    /// The same, and there is no good one to go on with.
    Missing(&'a str),
}

/// A look at a text.
#[derive(Clone, Copy, Debug)]
pub struct SourceEvent<'a> {
    /// Which text.
    pub kind: SourceKind,
    /// Where it is from, or whose it is; without anything secret.
    pub from: &'a str,
    /// What became of it.
    pub result: SourceResult<'a>,
}

impl SourceEvent<'_> {
    /// Counts it, and writes one line if there is something new to be said.
    pub fn tell(&self) {
        let (source, from) = (self.kind.as_str(), self.from);
        let is_new = self.is_new();
        match self.result {
            SourceResult::Same if is_new => tracing::info!(source, from, "{source}: usable again"),
            SourceResult::Same => {}
            SourceResult::Taken => tracing::info!(source, from, "{source}: taken over"),
            _ if !is_new => return,
            SourceResult::Kept(why) => tracing::error!(
                source,
                from,
                "{source}: not usable, going on with what was there before: {why}"
            ),
            SourceResult::Missing(why) => {
                tracing::error!(
                    source,
                    from,
                    "{source}: not usable, and there is none: {why}"
                );
            }
        }
        self.count();
    }
    /// Counts it, where a line of its own says more.
    pub fn count(&self) {
        let at = match self.result {
            SourceResult::Same => return,
            SourceResult::Taken => 0,
            SourceResult::Kept(_) | SourceResult::Missing(_) => 1,
        };
        COUNTS[self.kind as usize][at].fetch_add(1, Ordering::Relaxed);
    }
    /// Whether this was not told of the text the last time.
    fn is_new(&self) -> bool {
        let mut failures = FAILURES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = failures.get_mut(&(self.kind, self.from.to_owned()));
        match (self.result, known) {
            (SourceResult::Same | SourceResult::Taken, None) => false,
            (SourceResult::Same | SourceResult::Taken, Some(_)) => {
                failures.remove(&(self.kind, self.from.to_owned()));
                true
            }
            (SourceResult::Kept(why) | SourceResult::Missing(why), Some(known)) => {
                let is_new = *known != why;
                why.clone_into(known);
                is_new
            }
            (SourceResult::Kept(why) | SourceResult::Missing(why), None) => {
                if failures.len() < FAILURES_MAX {
                    failures.insert((self.kind, self.from.to_owned()), why.to_owned());
                }
                true
            }
        }
    }
}

/// What is wrong with texts now, by what they are and where they are from.
static FAILURES: Mutex<BTreeMap<(SourceKind, String), String>> = Mutex::new(BTreeMap::new());
/// How often a text of each kind was taken over, and how often it was not usable.
static COUNTS: [[AtomicU64; 2]; SourceKind::ALL.len()] =
    [const { [const { AtomicU64::new(0) }; 2] }; SourceKind::ALL.len()];

/// How often texts were taken over, and how often they were not usable, of each kind of which there was an event.
pub fn counts() -> Vec<(&'static str, u64, u64)> {
    let all = SourceKind::ALL.iter().map(|kind| {
        let [taken, refused] = &COUNTS[*kind as usize];
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (kind.as_str(), load(taken), load(refused))
    });
    all.filter(|(_, taken, refused)| taken + refused > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(result: SourceResult<'_>) -> (bool, [u64; 2]) {
        let event = SourceEvent {
            kind: SourceKind::SigningKey,
            from: "a",
            result,
        };
        let is_new = event.is_new();
        if is_new || result == SourceResult::Taken {
            event.count();
        }
        let counts = COUNTS[SourceKind::SigningKey as usize].each_ref();
        (is_new, counts.map(|count| count.load(Ordering::Relaxed)))
    }

    #[test]
    fn what_stays_wrong_is_told_and_counted_once() {
        assert_eq!(look(SourceResult::Same), (false, [0, 0]));
        assert_eq!(look(SourceResult::Kept("gone")), (true, [0, 1]));
        assert_eq!(look(SourceResult::Kept("gone")), (false, [0, 1]));
        assert_eq!(look(SourceResult::Kept("empty")), (true, [0, 2]));
        assert_eq!(look(SourceResult::Same), (true, [0, 2]));
        assert_eq!(look(SourceResult::Same), (false, [0, 2]));
        assert_eq!(look(SourceResult::Taken), (false, [1, 2]));
        assert_eq!(look(SourceResult::Missing("gone")), (true, [1, 3]));
        assert_eq!(look(SourceResult::Taken), (true, [2, 3]));
        // Other tests of this process count as well.
        assert!(counts().contains(&("signing key", 2, 3)));
    }
}
