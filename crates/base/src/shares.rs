//! Shares: how much each of many may take of something that all of them have together.
//!
//! A table that all clients share has two limits: one on the whole table, and one on what a single client has in it. A
//! client that fills its share does not keep other clients out.

use std::{
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::FastMap;

/// A share is at least that: a table of a few places is not for many clients.
const EACH_LEAST: usize = 100;

/// What was taken of one table, by whom.
#[derive(Debug)]
pub struct Shares<K>(Mutex<Taken<K>>);

#[derive(Debug)]
struct Taken<K> {
    all: usize,
    /// Only those who have something: there are never more of them than things taken.
    each: FastMap<K, usize>,
}

/// How much there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareLimits {
    /// For all together.
    pub all: usize,
    /// For each of them.
    pub each: usize,
}

impl ShareLimits {
    /// Each may have so many percent of what there is for all, and [`EACH_LEAST`] in any case, if there are so many.
    pub fn of(all: usize, percent: usize) -> Self {
        // Without a product that could be too large.
        let each = all / 100 * percent + all % 100 * percent / 100;
        ShareLimits {
            all,
            each: each.max(EACH_LEAST).min(all),
        }
    }
}

/// Why nothing could be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shortage {
    /// All of it is taken.
    All,
    /// The client has its whole share; the table has places left.
    Own,
}

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Shares(Mutex::new(Taken {
            all: 0,
            each: FastMap::default(),
        }))
    }
}

impl<K: Hash + Eq> Shares<K> {
    /// Every change is complete when the lock is given back.
    fn lock(&self) -> MutexGuard<'_, Taken<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Takes `amount` for the client `who`. `None` counts in the whole table only, because the client is unknown.
    pub fn take(
        self: &Arc<Self>,
        who: Option<K>,
        amount: usize,
        limits: ShareLimits,
    ) -> Result<Share<K>, Shortage>
    where
        K: Clone,
    {
        let mut share = Share::of(self, who);
        share.grow(amount, limits)?;
        Ok(share)
    }
    /// How much is taken.
    pub fn taken(&self) -> usize {
        self.lock().all
    }
}

/// What one client has taken of a table. Dropping it gives everything back.
#[derive(Debug)]
pub struct Share<K: Hash + Eq> {
    shares: Arc<Shares<K>>,
    who: Option<K>,
    amount: usize,
}

impl<K: Hash + Eq + Clone> Share<K> {
    /// Nothing yet.
    pub fn of(shares: &Arc<Shares<K>>, who: Option<K>) -> Self {
        Share {
            shares: Arc::clone(shares),
            who,
            amount: 0,
        }
    }
    /// Takes so much more.
    pub fn grow(&mut self, amount: usize, limits: ShareLimits) -> Result<(), Shortage> {
        let mut taken = self.shares.lock();
        let all = taken.all.saturating_add(amount);
        if all > limits.all {
            return Err(Shortage::All);
        }
        if let Some(who) = &self.who {
            let own = taken.each.get(who).copied().unwrap_or(0);
            let own = own.saturating_add(amount);
            if own > limits.each {
                return Err(Shortage::Own);
            }
            taken.each.insert(who.clone(), own);
        }
        taken.all = all;
        self.amount += amount;
        Ok(())
    }
}

impl<K: Hash + Eq> Drop for Share<K> {
    fn drop(&mut self) {
        let mut taken = self.shares.lock();
        taken.all -= self.amount;
        if let Some(who) = &self.who
            && let Some(own) = taken.each.get_mut(who)
        {
            *own -= self.amount;
            if *own == 0 {
                taken.each.remove(who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_more_than_a_share_and_all_no_more_than_there_is() {
        let shares = Arc::new(Shares::<u8>::default());
        let limits = ShareLimits { all: 10, each: 5 };
        let take = |who, amount| shares.take(who, amount, limits);
        let mut first = take(Some(1), 4).unwrap();
        first.grow(1, limits).unwrap();
        assert_eq!(first.grow(1, limits), Err(Shortage::Own));
        assert_eq!(take(Some(1), 1).unwrap_err(), Shortage::Own);
        let second = take(Some(2), 3).unwrap();
        // Of those who are not known nobody can tell which is which.
        let unknown = take(None, 2).unwrap();
        assert_eq!(take(Some(2), 1).unwrap_err(), Shortage::All);
        assert_eq!(shares.taken(), 10);
        drop(first);
        take(Some(1), 5).unwrap();
        drop((second, unknown));
        assert_eq!(shares.taken(), 0);
        assert!(
            shares.lock().each.is_empty(),
            "nobody is kept who has nothing"
        );
    }

    #[test]
    fn a_share_is_a_part_of_all_and_not_too_small() {
        let each = |all, percent| ShareLimits::of(all, percent).each;
        assert_eq!(each(10_000, 50), 5_000);
        assert_eq!(each(250, 50), 125);
        assert_eq!(each(150, 50), EACH_LEAST);
        assert_eq!(each(1, 50), 1);
        assert_eq!(each(1_000, 100), 1_000);
        assert_eq!(each(usize::MAX, 50), usize::MAX / 100 * 50 + 7);
    }
}
