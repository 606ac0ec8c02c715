//! The keys that this process counts rates by. Each rate has room of its own for them, so that whoever makes up many keys of
//! one makes no other forget what it has counted; and those who are counted by their address because their key says nothing
//! have room apart from those whose key says something.

use std::{convert::Infallible, sync::Arc};

use arc_swap::ArcSwap;
use ogive_base::FastMap;
use ogive_store::gcra::Cell;
use quick_cache::sync::Cache;

/// About so many keys are kept, those of all rates together.
pub(crate) const KEYS_MAX: usize = 100_000;
/// Of each rate so many at least.
const KEYS_MIN: usize = 1_000;
/// What part of its room a rate has beside it for keys that say nothing.
const STRANGERS_PART: usize = 4;

/// By what somebody is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateKey {
    hash: u64,
    /// It is an address, for want of anything else.
    is_stranger: bool,
}

impl RateKey {
    /// That of somebody of whom is known what a rate asks for.
    pub(crate) fn known(hash: u64) -> Self {
        RateKey {
            hash,
            is_stranger: false,
        }
    }
    /// That of somebody who is counted by the address.
    pub(crate) fn stranger(hash: u64) -> Self {
        RateKey {
            hash,
            is_stranger: true,
        }
    }
}

/// Those of all rates. They are looked up with every request, and change with configurations: readers write nothing that
/// other threads read.
#[derive(Debug)]
pub(crate) struct RateKeys(ArcSwap<KeyTables>);

#[derive(Clone, Debug)]
struct KeyTables {
    /// By what each rate is called in the configuration.
    by_rate: FastMap<Box<str>, Arc<KeyTable>>,
    /// Room of each.
    share: usize,
}

/// Those of one rate, by their hashes. The least used ones are forgotten first.
#[derive(Debug)]
struct KeyTable {
    known: Cache<u64, Arc<Cell>>,
    strangers: Cache<u64, Arc<Cell>>,
}

impl KeyTable {
    fn new(share: usize) -> Self {
        KeyTable {
            known: Cache::new(share),
            strangers: Cache::new(share / STRANGERS_PART),
        }
    }
    fn resize(&self, share: usize) {
        self.known.set_capacity(share as u64);
        self.strangers.set_capacity((share / STRANGERS_PART) as u64);
    }
    /// What a key has taken, and whether it was not known.
    fn cell(&self, key: RateKey) -> (Arc<Cell>, bool) {
        let keys = if key.is_stranger {
            &self.strangers
        } else {
            &self.known
        };
        let mut is_new = false;
        let made = || {
            is_new = true;
            Ok::<_, Infallible>(Arc::default())
        };
        match keys.get_or_insert_with(&key.hash, made) {
            Ok(cell) => (cell, is_new),
            Err(never) => match never {},
        }
    }
    fn len(&self) -> usize {
        self.known.len() + self.strangers.len()
    }
}

impl Default for RateKeys {
    fn default() -> Self {
        RateKeys(ArcSwap::from_pointee(KeyTables {
            by_rate: FastMap::default(),
            share: KEYS_MAX,
        }))
    }
}

impl RateKeys {
    /// Shares the room among the rates of a configuration. Those that are no more are forgotten.
    pub(crate) fn share_among<'n>(&self, rates: impl Iterator<Item = &'n str>) {
        let rates: Vec<&str> = rates.collect();
        let share = (KEYS_MAX / rates.len().max(1)).max(KEYS_MIN);
        self.0.rcu(|before| {
            let mut by_rate = before.by_rate.clone();
            by_rate.retain(|name, _| rates.contains(&&**name));
            if before.share != share {
                by_rate.values().for_each(|table| table.resize(share));
            }
            KeyTables { by_rate, share }
        });
    }
    /// The table of a rate that has none yet.
    fn add(&self, rate: &str) -> Arc<KeyTable> {
        self.0.rcu(|before| {
            if before.by_rate.contains_key(rate) {
                return Arc::clone(before);
            }
            let mut tables = KeyTables::clone(before);
            let table = Arc::new(KeyTable::new(before.share));
            tables.by_rate.insert(rate.into(), table);
            Arc::new(tables)
        });
        let tables = self.0.load();
        let table = tables.by_rate.get(rate).cloned();
        // Another configuration may be served meanwhile, without the rate.
        table.unwrap_or_else(|| Arc::new(KeyTable::new(tables.share)))
    }
    /// What a key has taken of a rate, and whether it was not known.
    pub(crate) fn cell(&self, rate: &str, key: RateKey) -> (Arc<Cell>, bool) {
        match self.0.load().by_rate.get(rate) {
            Some(table) => table.cell(key),
            None => self.add(rate).cell(key),
        }
    }
    /// How many are kept.
    pub(crate) fn len(&self) -> usize {
        let tables = self.0.load();
        tables.by_rate.values().map(|table| table.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by an attacker: keys of a rate by address had one by claims forget who has used it up.
    #[test]
    fn many_keys_of_one_rate_are_no_loss_to_another() {
        let keys = RateKeys::default();
        keys.share_among(["tenant", "address"].into_iter());
        let (kept, is_new) = keys.cell("tenant", RateKey::known(7));
        assert!(is_new);
        for key in 0..2 * KEYS_MAX as u64 {
            keys.cell("address", RateKey::known(key));
            keys.cell("tenant", RateKey::stranger(key));
        }
        let (found, is_new) = keys.cell("tenant", RateKey::known(7));
        assert!(!is_new && Arc::ptr_eq(&kept, &found));
        let most = KEYS_MAX / 2 + KEYS_MAX / 2 / STRANGERS_PART;
        assert!(keys.len() <= most + most / 10, "{}", keys.len());
    }

    #[test]
    fn another_configuration_keeps_what_its_rates_have_counted() {
        let keys = RateKeys::default();
        keys.share_among(["a", "b"].into_iter());
        let (kept, _) = keys.cell("a", RateKey::known(1));
        keys.cell("b", RateKey::known(1));
        keys.share_among(["a", "c", "d"].into_iter());
        assert!(Arc::ptr_eq(&kept, &keys.cell("a", RateKey::known(1)).0));
        assert!(keys.cell("b", RateKey::known(1)).1);
    }
}
