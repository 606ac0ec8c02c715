//! The memory tier stays within its limits.

use std::{net::IpAddr, sync::Arc};

use ogive_base::{MemoryBudget, Reservation};
use ogive_cache::{ClockStamp, Key, MemoryLimits, MemoryTier, StoringRefusal, VaryRecord};
use ogive_testbase::Rng;

use crate::made::entry;

fn random_key(rng: &mut Rng) -> Key {
    let (a, b) = (rng.next().to_le_bytes(), rng.next().to_le_bytes());
    Key(std::array::from_fn(|at| [a, b][at / 8][at % 8]))
}

fn fill(tier: &MemoryTier, rng: &mut Rng, count: usize, client: Option<IpAddr>) -> usize {
    let body = "x".repeat(2_000);
    let stored = (0..count).filter(|_| {
        let entry = entry(&body, &[], ClockStamp::default());
        tier.insert(random_key(rng), entry.into(), client).is_ok()
    });
    stored.count()
}

#[test]
fn random_keys_fill_it_to_the_limit_and_not_beyond() {
    let budget = Arc::new(MemoryBudget::default());
    let limits = MemoryLimits {
        bytes: 8 << 20,
        ..MemoryLimits::default()
    };
    let tier = MemoryTier::new(limits, &budget);
    fill(&tier, &mut Rng::new(1), 20_000, None);
    let (held, limit) = (tier.bytes(), limits.bytes as u64);
    assert!(
        held <= limit && held > limit / 100 * 90,
        "{held} of {limit}"
    );
    assert_eq!(budget.used() as u64, held, "all of it counts in the budget");
    drop(tier);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_request_that_needs_memory_gets_it_from_the_cache_which_fills_again() {
    let budget = Arc::new(MemoryBudget::new(16 << 20));
    let limits = MemoryLimits {
        bytes: 12 << 20,
        ..MemoryLimits::default()
    };
    let tier = MemoryTier::new(limits, &budget);
    let mut rng = Rng::new(1);
    fill(&tier, &mut rng, 20_000, None);
    let full = budget.used();
    assert!(
        full <= 8 << 20 && full > 7 << 20,
        "{full}: half of the budget"
    );
    let request = Reservation::new(&budget);
    request.grow(11 << 20).unwrap();
    assert!(tier.bytes() <= 1 << 20, "{}", tier.bytes());
    let stored = fill(&tier, &mut rng, 10, None);
    assert_eq!(stored, 0, "requests come first");
    drop(request);
    fill(&tier, &mut rng, 20_000, None);
    assert!(budget.used() > 7 << 20, "{}", budget.used());
}

#[test]
fn one_client_fills_its_share_only() {
    let budget = Arc::new(MemoryBudget::default());
    let limits = MemoryLimits {
        bytes: 4 << 20,
        client_percent: 25,
    };
    let tier = MemoryTier::new(limits, &budget);
    let mut rng = Rng::new(1);
    let client = Some(IpAddr::from([10, 0, 0, 1]));
    fill(&tier, &mut rng, 5_000, client);
    assert!(tier.bytes() <= 1 << 20);
    let entry = entry(&"x".repeat(2_000), &[], ClockStamp::default());
    let refused = tier.insert(random_key(&mut rng), entry.into(), client);
    assert_eq!(refused, Err(StoringRefusal::ClientShare));
    let other = Some(IpAddr::from([10, 0, 0, 2]));
    assert_eq!(fill(&tier, &mut rng, 10, other), 10);
}

#[test]
fn what_is_larger_than_a_part_of_the_table_is_refused() {
    let budget = Arc::new(MemoryBudget::default());
    let limits = MemoryLimits {
        bytes: 1 << 20,
        client_percent: 100,
    };
    let tier = MemoryTier::new(limits, &budget);
    let entry = entry(&"x".repeat(1 << 20), &[], ClockStamp::default());
    let refused = tier.insert(Key([1; 16]), entry.into(), None);
    assert_eq!(refused, Err(StoringRefusal::TooBig));
    assert_eq!(budget.used(), 0);
}

#[test]
fn an_entry_and_a_record_are_not_taken_for_each_other() {
    let budget = Arc::new(MemoryBudget::default());
    let tier = MemoryTier::new(MemoryLimits::default(), &budget);
    let (one, other) = (Key([1; 16]), Key([2; 16]));
    tier.insert(one, entry("a", &[], ClockStamp::default()).into(), None)
        .unwrap();
    tier.insert_record(other, VaryRecord::default(), None)
        .unwrap();
    assert!(tier.entry(&one).is_some() && tier.record(&one).is_none());
    assert!(tier.entry(&other).is_none() && tier.record(&other).is_some());
    tier.remove(&one);
    assert!(tier.entry(&one).is_none() && tier.len() == 1);
}
