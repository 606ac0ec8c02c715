//! Clients that come back after `retry-after`, by a clock of the test: each of them is served in the end.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::*;

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;
/// How long clients are looked at.
const END: u64 = 20 * SECOND;

/// What a subgraph and its clients are like.
struct Load {
    clients: usize,
    /// How many requests the subgraph answers at a time, and how long it takes on average.
    places: usize,
    takes: u64,
    /// How long a client that was answered takes to ask again: it finds the place that it has left.
    again: u64,
}

/// What became of the clients.
struct Served {
    answered: u64,
    refused: u64,
    /// Clients without any answer.
    none: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ask { client: usize },
    Answer { client: usize, since: u64 },
}

/// Numbers that look like chance, and are the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = { self.0 }
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn serve(overload: &Overload, load: &Load) -> Served {
    let mut chance = Chance(1);
    let mut events = BinaryHeap::new();
    for client in 0..load.clients {
        events.push(Reverse((chance.below(SECOND), Event::Ask { client })));
    }
    let mut places = vec![0_u64; load.places];
    let (mut answered, mut refused) = (vec![0_u64; load.clients], 0);
    while let Some(Reverse((now, event))) = events.pop()
        && now < END
    {
        match event {
            Event::Ask { client } if overload.may_enter(0) && overload.begin(0) => {
                let place = places.iter_mut().min().unwrap();
                *place = now.max(*place) + load.takes / 2 + chance.below(load.takes);
                let since = now;
                events.push(Reverse((*place, Event::Answer { client, since })));
            }
            Event::Ask { client } => {
                refused += 1;
                let back = now + SECOND + chance.below(SECOND / 5);
                events.push(Reverse((back, Event::Ask { client })));
            }
            Event::Answer { client, since } => {
                overload.finish(0, since, now);
                answered[client] += 1;
                let back = now + load.again / 2 + chance.below(load.again);
                events.push(Reverse((back, Event::Ask { client })));
            }
        }
    }
    Served {
        answered: answered.iter().sum(),
        refused,
        none: answered.iter().filter(|answered| **answered == 0).count(),
    }
}

fn overload(least: usize, most: usize) -> Overload {
    Overload::new(OverloadOptions {
        tolerance: 1.5,
        least,
        most,
        retry_after: 1,
        classes: Vec::new(),
    })
}

/// What clients that were refused find, while those that were answered ask again at once.
#[test]
fn clients_that_come_back_are_served_as_well_as_those_that_never_leave() {
    let load = Load {
        clients: 1_100,
        places: 70,
        takes: 100 * MILLISECOND,
        again: 300_000,
    };
    let served = serve(&overload(8, 1_000), &load);
    assert!(served.none <= load.clients / 100, "{} without", served.none);
    // Of the 14,000 that the subgraph can answer.
    assert!(served.answered >= 13_000, "{}", served.answered);
}

#[test]
fn clients_that_come_back_are_served_where_few_may_run() {
    let load = Load {
        clients: 1_100,
        places: 16,
        takes: 10 * MILLISECOND,
        again: 300_000,
    };
    let served = serve(&overload(8, 8), &load);
    assert!(served.none <= load.clients / 100, "{} without", served.none);
    // Of the 16,000 that eight at a time can be.
    assert!(served.answered >= 12_000, "{}", served.answered);
}

#[test]
fn nobody_is_refused_where_all_clients_find_a_place() {
    let load = Load {
        clients: 16,
        places: 16,
        takes: 10 * MILLISECOND,
        again: 300_000,
    };
    let overload = overload(16, 16);
    let served = serve(&overload, &load);
    assert_eq!(served.refused, 0);
    assert!(served.answered >= 30_000, "{}", served.answered);
}
