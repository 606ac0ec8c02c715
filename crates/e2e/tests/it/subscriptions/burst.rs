//! Bursts: everything arrives, in order, or it is told that it does not.

use super::{
    Streamed,
    over_http::{ADDED, Client, MULTIPART, SSE},
};

fn number(name: &str, default: usize) -> usize {
    let asked = std::env::var(name).ok();
    asked.map_or(default, |asked| asked.parse().unwrap())
}

/// Reads to the end: how many events came, one after another from the first on, and whether an overflow was told.
fn read(mut client: Client) -> (usize, bool) {
    let (mut next, mut is_told) = (0, false);
    client.each_line(|line| {
        if let Some((_, rest)) = line.split_once("\"id\":\"") {
            let (id, _) = rest.split_once('"').unwrap();
            assert_eq!(id, next.to_string());
            next += 1;
        }
        is_told |= line.contains("SUBSCRIPTION_OVERFLOW");
    });
    (next, is_told)
}

fn burst(yaml: &str) -> (Vec<(usize, bool)>, usize, u64) {
    let (events, subscribers) = (
        number("OGIVE_EVENTS", 1_000),
        number("OGIVE_SUBSCRIBERS", 40),
    );
    let graph = Streamed::with(yaml);
    let address = graph.served.address;
    let clients: Vec<Client> = (0..subscribers)
        .map(|at| Client::subscribe(address, if at % 2 == 0 { SSE } else { MULTIPART }, ADDED))
        .collect();
    let silent = Client::subscribe(address, SSE, ADDED);
    let mut source = graph.feed.opened();
    graph.wait_for_open(subscribers + 1);
    let reading: Vec<_> = clients
        .into_iter()
        .map(|client| std::thread::spawn(move || read(client)))
        .collect();
    for event in 0..events {
        source.add(&event.to_string());
    }
    source.complete();
    let read = reading.into_iter().map(|reading| reading.join().unwrap());
    let read: Vec<(usize, bool)> = read.collect();
    let counts = graph.served.gateway.subscriptions();
    assert!(graph.feed.is_quiet(), "more than one source");
    assert_eq!(
        (graph.feed.lookups(), counts.events),
        (events, events as u64)
    );
    drop(silent);
    (read, events, counts.deliveries)
}

#[test]
fn a_burst_arrives_whole_and_in_order_with_one_source_and_one_look_up_for_each_event() {
    let (read, events, deliveries) = burst("  queue_capacity: 1000000\n  queue_bytes: 1GiB\n");
    assert!(read.iter().all(|read| *read == (events, false)), "{read:?}");
    assert_eq!(deliveries as usize, events * (read.len() + 1));
}

#[test]
fn what_does_not_arrive_of_a_burst_is_told_to_whom_it_was_for() {
    let (read, events, _) = burst("  queue_capacity: 2\n");
    for (came, is_told) in read {
        assert!(
            came == events || is_told,
            "{came} events, and nothing was told"
        );
    }
}
