//! Nothing that was invalidated is found again, however look-ups, writes and invalidations come between each other.

use std::time::Duration;

use ogive_cache::{
    CacheOptions, ClockStamp, ClockState, InvalidationList, Position, Tag, Timestamp,
    clock::Invalidation,
};
use ogive_testbase::Rng;

use crate::made::{Answered, NOW, anyone, body, cache, first, headers, store};

/// A request under way: what it was answered, and the clock before it was sent.
struct InFlight {
    thing: usize,
    stamp: ClockStamp,
    version: u64,
}

/// Things that change, and a cache of them. Each thing has a tag of its own; a tag of all is the last one.
struct World {
    rng: Rng,
    cache: ogive_cache::ResponseCache,
    now: Timestamp,
    versions: Vec<u64>,
    /// The version that each thing had when it was invalidated last.
    invalidated: Vec<u64>,
    in_flight: Vec<InFlight>,
    hits: usize,
    late: usize,
}

const THINGS: usize = 3;

fn tags(thing: usize) -> [Tag; 2] {
    [Tag(thing as u64), Tag(THINGS as u64)]
}

impl World {
    fn step(&mut self) {
        match self.rng.below(100) {
            0..25 => {
                let thing = self.rng.below(THINGS);
                self.in_flight.push(InFlight {
                    thing,
                    stamp: self.cache.stamp(),
                    version: self.versions[thing],
                });
            }
            25..50 if !self.in_flight.is_empty() => self.write(),
            50..60 => self.invalidate(),
            60..62 => self.now = self.now.plus(Duration::from_secs(40)),
            _ => self.look_up(),
        }
    }

    fn write(&mut self) {
        let at = self.rng.below(self.in_flight.len());
        let InFlight {
            thing,
            stamp,
            version,
        } = self.in_flight.swap_remove(at);
        let key = first(&self.cache, &thing.to_string());
        let (text, tags) = (version.to_string(), tags(thing));
        let answered = Answered {
            stamp,
            body: &text,
            tags: &tags,
        };
        let said = headers(&[("cache-control", "max-age=60, public")]);
        let stored = store(&self.cache, key, &anyone(), answered, &said, self.now);
        self.late += usize::from(stored.is_err());
    }

    /// First the thing changes, then it is invalidated.
    fn invalidate(&mut self) {
        let tag = self.rng.below(THINGS + 1);
        for thing in (0..THINGS).filter(|thing| tag == *thing || tag == THINGS) {
            self.versions[thing] += 1;
            self.invalidated[thing] = self.versions[thing];
        }
        self.cache.invalidate_locally(&[Tag(tag as u64)], self.now);
    }

    fn look_up(&mut self) {
        let thing = self.rng.below(THINGS);
        let key = first(&self.cache, &thing.to_string());
        let lookup = self.cache.look_up_in_memory(key, &anyone(), self.now);
        if let Some(found) = body(&lookup) {
            self.hits += 1;
            let version: u64 = found.parse().unwrap();
            assert!(
                version >= self.invalidated[thing],
                "a value from before an invalidation"
            );
        }
    }
}

fn play(seed: u64, tags_max: usize) -> (usize, usize) {
    let options = CacheOptions {
        tags_max,
        kept_max: Duration::from_secs(100),
        ..CacheOptions::default()
    };
    let mut world = World {
        rng: Rng::new(seed),
        cache: cache(options, None),
        now: NOW,
        versions: vec![0; THINGS],
        invalidated: vec![0; THINGS],
        in_flight: Vec::new(),
        hits: 0,
        late: 0,
    };
    (0..80).for_each(|_| world.step());
    (world.hits, world.late)
}

#[test]
fn ten_thousand_interleavings_bring_nothing_back() {
    let (mut hits, mut late) = (0, 0);
    for seed in 0..10_000 {
        // A list of two tags forgets all the time.
        let (some, others) = play(seed, if seed % 2 == 0 { 2 } else { 100 });
        hits += some;
        late += others;
    }
    assert!(hits > 20_000, "{hits} hits say too little");
    assert!(
        late > 10_000,
        "{late} writers that were too slow say too little"
    );
}

#[test]
fn numbers_that_are_missing_are_noticed() {
    let list = InvalidationList::new(10, Duration::from_secs(60));
    let at = |number, nonce| Position {
        epoch: 5,
        number,
        nonce,
    };
    let of = |number, tag| Invalidation {
        position: at(number, number * 10),
        tags: vec![Tag(tag)],
    };
    assert_eq!(list.observe(at(3, 30)), ClockState::Replaced);
    list.begin_epoch(at(3, 30));
    let stamp = list.stamp();
    assert_eq!(list.observe(at(3, 30)), ClockState::Current);
    assert_eq!(list.apply(&of(4, 1), NOW), ClockState::Current);
    assert!(!list.is_behind());
    // The fifth is lost; what the sixth says is known at once.
    assert_eq!(list.apply(&of(6, 2), NOW), ClockState::Behind);
    assert!(list.is_behind());
    assert!(!list.is_valid(stamp, &[Tag(2)]) && list.is_valid(stamp, &[Tag(3)]));
    assert_eq!(list.apply(&of(5, 3), NOW), ClockState::Behind);
    assert!(!list.is_valid(stamp, &[Tag(3)]));
    assert_eq!(list.apply(&of(6, 2), NOW), ClockState::Current);
    assert_eq!(list.stamp().number, 6);
    // Another sixth, or fewer than there were: another history.
    assert_eq!(list.observe(at(6, 61)), ClockState::Replaced);
    assert_eq!(list.observe(at(5, 50)), ClockState::Replaced);
    assert_eq!(list.observe(at(7, 70)), ClockState::Behind);
    assert!(list.is_behind());
}

#[test]
fn invalidations_of_one_tag_do_not_crowd_out_others() {
    let list = InvalidationList::new(2, Duration::from_secs(60));
    list.invalidate(&[Tag(1)], NOW);
    let stamp = list.stamp();
    for _ in 0..10 {
        list.invalidate(&[Tag(2), Tag(2)], NOW);
    }
    assert!(list.is_valid(stamp, &[Tag(1)]) && !list.is_valid(stamp, &[Tag(2)]));
    // A third tag makes the list forget the oldest, and with it everything that was sent before.
    list.invalidate(&[Tag(3)], NOW);
    assert!(list.is_valid(stamp, &[Tag(1)]));
    list.invalidate(&[Tag(4)], NOW);
    assert!(!list.is_valid(stamp, &[Tag(1)]));
}
