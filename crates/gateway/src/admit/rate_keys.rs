//! The keys that this process counts rates by. Each rate has room of its own for them, so that whoever makes up many keys of
//! one makes no other forget what it has counted; and those who are counted by their address because their key says nothing
//! have room apart from those whose key says something.

use std::{
    convert::Infallible,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use ogive_base::FastMap;
use ogive_store::gcra::Cell;
use quick_cache::sync::Cache;

/// About so many keys are kept, those of all rates together.
pub(crate) const KEYS_MAX: usize = 100_000;
/// Of each rate so many at least.
const KEYS_MIN: usize = 1_000;
/// What part of its room a rate has beside it for keys that say nothing.
const STRANGERS_PART: usize = 4;

/// Those of all rates.
#[derive(Debug)]
pub(crate) struct RateKeys {
    /// By what each rate is called in the configuration.
    tables: RwLock<FastMap<Box<str>, Arc<KeyTable>>>,
    /// Room of each.
    share: AtomicUsize,
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
    fn len(&self) -> usize {
        self.known.len() + self.strangers.len()
    }
}

impl Default for RateKeys {
    fn default() -> Self {
        RateKeys {
            tables: RwLock::default(),
            share: AtomicUsize::new(KEYS_MAX),
        }
    }
}

impl RateKeys {
    /// Shares the room among the rates of a configuration. Those that are no more are forgotten.
    pub(crate) fn share_among<'n>(&self, rates: impl Iterator<Item = &'n str>) {
        let rates: Vec<&str> = rates.collect();
        let share = (KEYS_MAX / rates.len().max(1)).max(KEYS_MIN);
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|name, _| rates.contains(&&**name));
        if self.share.swap(share, Ordering::Relaxed) != share {
            tables.values().for_each(|table| table.resize(share));
        }
    }
    fn table(&self, rate: &str) -> Arc<KeyTable> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(rate) {
            return Arc::clone(table);
        }
        drop(tables);
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(KeyTable::new(self.share.load(Ordering::Relaxed)));
        Arc::clone(tables.entry(rate.into()).or_insert_with(made))
    }
    /// What a key has taken of a rate, and whether it was not known. `is_stranger`: it is counted by its address for want of
    /// anything else.
    pub(crate) fn cell(&self, rate: &str, is_stranger: bool, key: u64) -> (Arc<Cell>, bool) {
        let table = self.table(rate);
        let keys = if is_stranger {
            &table.strangers
        } else {
            &table.known
        };
        let mut is_new = false;
        let made = || {
            is_new = true;
            Ok::<_, Infallible>(Arc::default())
        };
        match keys.get_or_insert_with(&key, made) {
            Ok(cell) => (cell, is_new),
            Err(never) => match never {},
        }
    }
    /// How many are kept.
    pub(crate) fn len(&self) -> usize {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables.values().map(|table| table.len()).sum()
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
        let (kept, is_new) = keys.cell("tenant", false, 7);
        assert!(is_new);
        for key in 0..2 * KEYS_MAX as u64 {
            keys.cell("address", false, key);
            keys.cell("tenant", true, key);
        }
        let (found, is_new) = keys.cell("tenant", false, 7);
        assert!(!is_new && Arc::ptr_eq(&kept, &found));
        let most = KEYS_MAX / 2 + KEYS_MAX / 2 / STRANGERS_PART;
        assert!(keys.len() <= most + most / 10, "{}", keys.len());
    }

    #[test]
    fn another_configuration_keeps_what_its_rates_have_counted() {
        let keys = RateKeys::default();
        keys.share_among(["a", "b"].into_iter());
        let (kept, _) = keys.cell("a", false, 1);
        keys.cell("b", false, 1);
        keys.share_among(["a", "c", "d"].into_iter());
        assert!(Arc::ptr_eq(&kept, &keys.cell("a", false, 1).0));
        assert!(keys.cell("b", false, 1).1);
    }
}
